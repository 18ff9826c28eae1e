//! JSON-RPC to one endpoint: an alloy transport over an injected [`JsonRpcHttpClient`].
//!
//! The length of a reply is bounded, and every response in it must belong to exactly one request. A batch has at most
//! three requests until the endpoint has answered such batches. If the endpoint does not answer a batch, its
//! requests are sent again one by one.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use alloy_json_rpc::{Id, RequestPacket, Response, ResponsePacket, ResponsePayload, SerializedRequest};
use alloy_transport::{TransportError, TransportErrorKind, TransportFut};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use tower::Service;
use url::Url;

use clresolve_core::cause::{HostConnectionError, LocalLimitError};
use clresolve_core::text::{excerpt_text, truncate_bytes};
use clresolve_egress::count::{self, RequestOutcome, UpstreamKind};

use crate::keys::redact_url_keys;
use crate::revert::normalize_revert_data;

/// Maximum length of an endpoint's reply, in bytes. A header with all its transaction hashes has about 100 KB, the
/// records of a name about 20 KB. The limit protects against memory exhaustion.
pub const MAX_REPLY_BYTES: usize = 1 << 20;

/// Maximum number of requests in the first batches to an endpoint. Free plans of common providers refuse more.
const FIRST_BATCH: usize = 3;

/// Maximum number of requests in a batch. The limit doubles after each exchange whose several batches were answered.
const MAX_BATCH: usize = 48;

/// Maximum number of batches of one exchange in flight.
const MAX_IN_FLIGHT: usize = 8;

/// After a batch that succeeded only as single requests: the number of further batches sent as single requests before a
/// batch is tried again. Without the retry, one overload would triple the requests to the endpoint permanently.
const SENT_SINGLY: u32 = 1000;

/// Statuses that concern the client and not the request, whatever the body contains: no key, no plan, too many
/// requests. The endpoint rests.
const ABOUT_THE_CLIENT: [u16; 4] = [401, 402, 403, 429];

/// Maximum length of the part of a refusal that is read as text, in bytes.
const MAX_REFUSAL_BYTES: usize = 4096;

/// The HTTP client for endpoints.
#[async_trait]
pub trait JsonRpcHttpClient: Send + Sync {
    /// POSTs `body` as `application/json` to `url`, follows no redirect, and returns the body of a success
    /// (2xx).
    ///
    /// The body has at most `cap` bytes, also after decompression. Head and body arrive within `timeout`.
    ///
    /// # Errors
    /// [`HttpRequestError`], whose message must not contain the URL, since that may include a key.
    async fn post_json(&self, url: &Url, body: Bytes, cap: usize, timeout: Duration)
    -> Result<Bytes, HttpRequestError>;
}

/// Why a request returned no body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpRequestError {
    /// The timeout expired.
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The response has a status other than 2xx, and this body, which is empty if it could not be read.
    #[error("HTTP status {0}{cause}", cause = response_error_text(.1).map(|text| format!(": {text}")).unwrap_or_default())]
    Status(u16, Bytes),
    /// The body is longer than the cap, in bytes.
    #[error("the reply has more than {0} bytes")]
    TooLarge(usize),
    /// No connection was opened.
    #[error(transparent)]
    Unconnected(HostConnectionError),
    /// The connection failed or is forbidden: the cause, without the URL.
    #[error("{0}")]
    Connection(String),
}

impl HttpRequestError {
    /// The value of the outcome label in metrics.
    pub(crate) const fn request_outcome(&self) -> RequestOutcome {
        match self {
            Self::Timeout(_) => RequestOutcome::Timeout,
            Self::Status(status, _) => RequestOutcome::from_status(*status),
            Self::TooLarge(_) | Self::Unconnected(_) | Self::Connection(_) => RequestOutcome::Failed,
        }
    }
}

/// The error message in the body of a response with a status other than 2xx: the message of a JSON error, or else the
/// first line of text. `None` if the body has none, or is HTML.
fn response_error_text(body: &[u8]) -> Option<String> {
    if let Ok(body) = serde_json::from_slice::<Value>(body) {
        let places = [&body["error"]["message"], &body["error"], &body["message"]];
        return places.into_iter().find_map(Value::as_str).map(truncate_for_redaction);
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_REFUSAL_BYTES)]);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    (!line.starts_with('<')).then(|| line.to_owned())
}

/// The beginning of a server's text, long enough that the keys in its displayed part are complete and can be removed.
fn truncate_for_redaction(text: &str) -> String {
    truncate_bytes(text, MAX_REFUSAL_BYTES)
}

/// Why an exchange with an endpoint failed, apart from JSON-RPC errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EndpointTransportError {
    #[error(transparent)]
    Post(#[from] HttpRequestError),
    /// The body is HTML, for example a login page.
    #[error("the reply is HTML, not JSON")]
    Html,
    /// The body is not a JSON-RPC response.
    #[error("the reply is not JSON-RPC: {0}")]
    NotJsonRpc(String),
    /// A response id matches no request, or occurs twice.
    #[error("the reply answers a request that was not made")]
    WrongId,
    /// Number of requests without a response.
    #[error("the reply leaves {0} requests unanswered")]
    Missing(usize),
    /// The endpoint returned an error that belongs to no request, or refused every request of a batch in the same way.
    #[error("the endpoint refused: {0}")]
    Refused(String),
    /// Too few of several endpoints returned the same response. Lists each response by label.
    #[error("the endpoints contradict each other")]
    Divided(Vec<(String, String)>),
    /// A local limit of this program was reached by a reply or by a call over proven state.
    #[error(transparent)]
    LocalLimit(#[from] LocalLimitError),
    /// No endpoint returned a valid proof for a call over proven state. Lists the cause for each label.
    #[error("no endpoint returned a valid proof")]
    #[cfg_attr(not(feature = "state-proof"), allow(dead_code, reason = "no call is computed in this build"))]
    Unproven(Vec<(String, String)>),
}

impl EndpointTransportError {
    /// Whether the endpoint may answer the requests of a batch one by one. Providers refuse batches in many ways.
    const fn may_succeed_singly(&self) -> bool {
        matches!(self, Self::Post(HttpRequestError::Status(..)) | Self::Html | Self::NotJsonRpc(_) | Self::Refused(_))
    }
}

/// One endpoint as an alloy transport. Clones share the state of the connection.
#[derive(Clone)]
pub(super) struct EndpointTransport(Arc<EndpointConnection>);

impl EndpointTransport {
    pub(super) fn new(http: Arc<dyn JsonRpcHttpClient>, url: Url, label: String, timeout: Duration) -> Self {
        let batches = Arc::new(BatchSizeLimit { most: AtomicUsize::new(FIRST_BATCH), ..BatchSizeLimit::default() });
        Self(Arc::new(EndpointConnection { http, url, label, timeout, longest: MAX_REPLY_BYTES, batches }))
    }

    /// The same endpoint, with another limit on the length of a reply, in bytes.
    #[cfg(feature = "state-proof")]
    pub(super) fn with_reply_limit(&self, longest: usize) -> Self {
        Self(Arc::new(EndpointConnection { longest, ..(*self.0).clone() }))
    }

    /// Whether the endpoint has refused no batch of at most [`FIRST_BATCH`] requests.
    pub(super) fn takes_batches(&self) -> bool {
        self.0.batches.sent_singly.load(Ordering::Relaxed) == 0
    }
}

impl Service<RequestPacket> for EndpointTransport {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> Self::Future {
        let connection = Arc::clone(&self.0);
        Box::pin(async move { connection.send_packet(packet).await.map_err(TransportErrorKind::custom) })
    }
}

#[derive(Clone)]
struct EndpointConnection {
    http: Arc<dyn JsonRpcHttpClient>,
    url: Url,
    label: String,
    timeout: Duration,
    /// Longest reply, in bytes.
    longest: usize,
    batches: Arc<BatchSizeLimit>,
}

#[derive(Debug, Default)]
struct BatchSizeLimit {
    /// Maximum number of requests in the next batch.
    most: AtomicUsize,
    /// Whether the endpoint has refused a batch of more than [`FIRST_BATCH`] requests.
    is_limited: AtomicBool,
    /// How many further batches are sent as single requests, because the endpoint refused a batch of at most
    /// [`FIRST_BATCH`] requests.
    sent_singly: AtomicU32,
}

impl BatchSizeLimit {
    /// Records that the endpoint answered several batches of `size` requests in one exchange. Unless it has refused a
    /// batch, later batches may have twice as many.
    fn note_answered_batches(&self, size: usize) {
        if !self.is_limited.load(Ordering::Relaxed) && self.sent_singly.load(Ordering::Relaxed) == 0 {
            self.most.fetch_max((2 * size).min(MAX_BATCH), Ordering::Relaxed);
        }
    }

    /// Registers that a batch of this many requests was refused, and the requests were answered one by one.
    fn note_refused_batch(&self, size: usize) {
        if size > FIRST_BATCH {
            self.is_limited.store(true, Ordering::Relaxed);
            self.most.store(FIRST_BATCH, Ordering::Relaxed);
        } else {
            self.sent_singly.store(SENT_SINGLY, Ordering::Relaxed);
        }
    }
}

impl EndpointConnection {
    async fn send_packet(&self, packet: RequestPacket) -> Result<ResponsePacket, EndpointTransportError> {
        let requests = match packet {
            RequestPacket::Single(request) => return self.send_single(&request).await.map(ResponsePacket::Single),
            RequestPacket::Batch(requests) => requests,
        };
        let most = self.batches.most.load(Ordering::Relaxed);
        let parts: Vec<_> = requests.chunks(most).map(|part| self.send_batch_or_singles(part)).collect();
        let responses: Vec<Vec<Response>> = stream::iter(parts).buffered(MAX_IN_FLIGHT).try_collect().await?;
        if responses.len() > 1 {
            self.batches.note_answered_batches(most);
        }
        Ok(ResponsePacket::Batch(responses.into_iter().flatten().collect()))
    }

    /// Sends these requests as one batch. If the endpoint does not answer it, sends them again one by one.
    async fn send_batch_or_singles(
        &self,
        requests: &[SerializedRequest],
    ) -> Result<Vec<Response>, EndpointTransportError> {
        let [first, others @ ..] = requests else { return Ok(Vec::new()) };
        if others.is_empty() {
            return Ok(vec![self.send_single(first).await?]);
        }
        let spend = |left: u32| left.checked_sub(1);
        let is_sent_singly = self.batches.sent_singly.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok();
        if is_sent_singly {
            return try_join_all(requests.iter().map(|request| self.send_single(request))).await;
        }
        match self.send_batch(requests).await {
            Err(fault) if fault.may_succeed_singly() => {}
            answered => return answered,
        }
        // Send the first one alone: an endpoint that limits the request rate gets no further ones.
        let mut responses = vec![self.send_single(first).await?];
        let others: Vec<_> = others.iter().map(|request| self.send_single(request)).collect();
        responses.extend(stream::iter(others).buffered(MAX_IN_FLIGHT).try_collect::<Vec<_>>().await?);
        self.batches.note_refused_batch(requests.len());
        Ok(responses)
    }

    async fn send_single(&self, request: &SerializedRequest) -> Result<Response, EndpointTransportError> {
        let body = match self.post_body(request.serialized().get().to_owned().into()).await {
            Err(EndpointTransportError::Post(HttpRequestError::Status(status, body))) => {
                let error =
                    if ABOUT_THE_CLIENT.contains(&status) { None } else { error_response_from_body(&body, request) };
                let refused = EndpointTransportError::Post(HttpRequestError::Status(status, body));
                return error.map(|response| self.redact_response(response)).ok_or(refused);
            }
            answer => answer?,
        };
        match self.parse_response_packet(&body)? {
            ResponsePacket::Single(response) if response.id == *request.id() => Ok(self.redact_response(response)),
            ResponsePacket::Single(response) => {
                Err(unaddressed_response_error(&self.redact_response(response))
                    .unwrap_or(EndpointTransportError::WrongId))
            }
            ResponsePacket::Batch(_) => Err(EndpointTransportError::NotJsonRpc("an array for one request".to_owned())),
        }
    }

    async fn send_batch(&self, requests: &[SerializedRequest]) -> Result<Vec<Response>, EndpointTransportError> {
        let packet = serde_json::to_vec(requests)
            .map_err(|e| EndpointTransportError::NotJsonRpc(excerpt_text(&e.to_string())))?;
        match self.parse_response_packet(&self.post_body(packet.into()).await?)? {
            ResponsePacket::Single(response) => Err(unaddressed_response_error(&self.redact_response(response))
                .unwrap_or_else(|| EndpointTransportError::NotJsonRpc("one response for several requests".to_owned()))),
            ResponsePacket::Batch(responses) => {
                let responses: Vec<_> = responses.into_iter().map(|response| self.redact_response(response)).collect();
                match batch_refusal_error(&responses) {
                    Some(refusal) => Err(refusal),
                    None => match_response_ids(requests, &responses).map(|()| responses),
                }
            }
        }
    }

    async fn post_body(&self, body: Bytes) -> Result<Bytes, EndpointTransportError> {
        let longest = if clresolve_core::mutant!("long-replies-are-read") { 256 << 20 } else { self.longest };
        let answer = self.http.post_json(&self.url, body, longest, self.timeout).await;
        count::count_request(
            UpstreamKind::Rpc,
            &self.label,
            answer.as_ref().map_or_else(HttpRequestError::request_outcome, |_| RequestOutcome::Ok),
        );
        answer.map_err(|error| match error {
            HttpRequestError::Status(status, body) => HttpRequestError::Status(status, self.redact_body(&body)).into(),
            HttpRequestError::TooLarge(bytes) => LocalLimitError::Reply { endpoint: self.label.clone(), bytes }.into(),
            error => error.into(),
        })
    }
}

impl EndpointConnection {
    /// Removes possible keys from the message of an error, and shortens it.
    fn redact_response(&self, mut response: Response) -> Response {
        if let ResponsePayload::Failure(error) = &mut response.payload {
            normalize_revert_data(error);
            error.message = excerpt_text(&redact_url_keys(&self.url, &error.message)).into();
        }
        response
    }

    fn parse_response_packet(&self, body: &[u8]) -> Result<ResponsePacket, EndpointTransportError> {
        if body.trim_ascii_start().starts_with(b"<") {
            return Err(EndpointTransportError::Html);
        }
        let unusable = |error: serde_json::Error| excerpt_text(&redact_url_keys(&self.url, &error.to_string()));
        serde_json::from_slice(body).map_err(|error| EndpointTransportError::NotJsonRpc(unusable(error)))
    }

    fn redact_body(&self, body: &[u8]) -> Bytes {
        redact_url_keys(&self.url, &String::from_utf8_lossy(body)).into()
    }
}

fn match_response_ids(requests: &[SerializedRequest], responses: &[Response]) -> Result<(), EndpointTransportError> {
    let mut open: HashSet<&Id> = requests.iter().map(SerializedRequest::id).collect();
    if !responses.iter().all(|response| open.remove(&response.id)) {
        return Err(EndpointTransportError::WrongId);
    }
    if open.is_empty() { Ok(()) } else { Err(EndpointTransportError::Missing(open.len())) }
}

/// The error that an endpoint returns for this request in the body of an error status. Some nodes report reverts and
/// unknown blocks this way.
fn error_response_from_body(body: &[u8], request: &SerializedRequest) -> Option<Response> {
    let Response { id, payload } = serde_json::from_slice(body).ok()?;
    let is_about_this = id.is_none() || id == *request.id();
    (is_about_this && payload.is_error()).then(|| Response { id: request.id().clone(), payload })
}

/// The error of a response that answers no request.
fn unaddressed_response_error(response: &Response) -> Option<EndpointTransportError> {
    let error = response.payload.as_error()?;
    Some(EndpointTransportError::Refused(truncate_for_redaction(&error.message)))
}

/// The refusal, if each response is an error that belongs to no request or rejects batches.
fn batch_refusal_error(responses: &[Response]) -> Option<EndpointTransportError> {
    let refuses = |response: &Response| {
        let is_about_batches = |message: &str| message.to_ascii_lowercase().contains("batch");
        response.payload.as_error().is_some_and(|error| response.id.is_none() || is_about_batches(&error.message))
    };
    responses.first().filter(|_| responses.iter().all(refuses)).and_then(unaddressed_response_error)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use alloy_json_rpc::Request;
    use serde_json::json;

    use super::*;

    type ServerScript = fn(&Value) -> Result<String, HttpRequestError>;

    /// An endpoint that answers according to the function, and the number of requests in each body that it received.
    struct Scripted {
        answer: ServerScript,
        sizes: Mutex<Vec<usize>>,
    }

    #[async_trait]
    impl JsonRpcHttpClient for Scripted {
        async fn post_json(&self, _: &Url, body: Bytes, _: usize, _: Duration) -> Result<Bytes, HttpRequestError> {
            let body: Value = serde_json::from_slice(&body).unwrap();
            self.sizes.lock().unwrap().push(body.as_array().map_or(1, Vec::len));
            (self.answer)(&body).map(Bytes::from)
        }
    }

    struct World {
        script: Arc<Scripted>,
        endpoint: EndpointTransport,
    }

    impl World {
        fn new(answer: ServerScript) -> Self {
            let script = Arc::new(Scripted { answer, sizes: Mutex::default() });
            let url = Url::parse("http://endpoint/").unwrap();
            let http: Arc<dyn JsonRpcHttpClient> = Arc::clone(&script) as _;
            Self { script, endpoint: EndpointTransport::new(http, url, "a".to_owned(), Duration::MAX) }
        }

        /// The result of an exchange of this many requests, and the number of requests in each body.
        async fn exchange(&self, requests: u64) -> (Result<Vec<Id>, EndpointTransportError>, Vec<usize>) {
            let packet = RequestPacket::Batch((0..requests).map(request).collect());
            let sent = self.endpoint.0.send_packet(packet).await;
            let ids = sent.map(|packet| match packet {
                ResponsePacket::Batch(responses) => responses.into_iter().map(|response| response.id).collect(),
                ResponsePacket::Single(response) => vec![response.id],
            });
            (ids, std::mem::take(&mut self.script.sizes.lock().unwrap()))
        }
    }

    fn good(request: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": request["id"], "result": "0x1"})
    }

    fn status(status: u16, body: &'static str) -> Result<String, HttpRequestError> {
        Err(HttpRequestError::Status(status, Bytes::from_static(body.as_bytes())))
    }

    /// Answers single requests, and batches with `refusal`.
    fn singly(body: &Value, refusal: Result<String, HttpRequestError>) -> Result<String, HttpRequestError> {
        if body.is_array() { refusal } else { Ok(good(body).to_string()) }
    }

    fn request(id: u64) -> SerializedRequest {
        Request::new("eth_chainId", Id::Number(id), ()).serialize().unwrap()
    }

    #[tokio::test]
    async fn a_batch_has_three_requests_and_more_once_those_were_answered() {
        let world = World::new(|body| match body.as_array() {
            Some(requests) => Ok(Value::from(requests.iter().map(good).collect::<Vec<_>>()).to_string()),
            None => Ok(good(body).to_string()),
        });
        for (requests, expected) in [
            (0, vec![]),
            (1, vec![1]),
            (3, vec![3]),
            (7, vec![3, 3, 1]),
            (7, vec![6, 1]),
            (13, vec![12, 1]),
            (30, vec![24, 6]),
            (100, vec![48, 48, 4]),
            (100, vec![48, 48, 4]),
        ] {
            let (answered, sizes) = world.exchange(requests).await;
            assert_eq!(answered, Ok((0..requests).map(Id::Number).collect()));
            assert_eq!(sizes, expected);
        }
    }

    #[tokio::test]
    async fn refused_batch_is_resent_once_as_single_requests() {
        let refusals: [ServerScript; 15] = [
            |body| singly(body, status(500, r#"{"error":{"code":31,"message":"Batch of more than 3 requests"}}"#)),
            |body| singly(body, status(400, "")),
            |body| singly(body, status(402, "pay")),
            |body| singly(body, status(403, "<html>forbidden")),
            |body| singly(body, status(405, "")),
            |body| singly(body, status(413, "too large")),
            |body| singly(body, status(429, "slow down")),
            |body| singly(body, status(501, "")),
            |body| singly(body, status(503, "")),
            |body| singly(body, Ok("<html>".to_owned())),
            |body| singly(body, Ok(String::new())),
            |body| singly(body, Ok(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#.to_owned())),
            |body| singly(body, Ok(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"limit"}}"#.to_owned())),
            |body| singly(body, Ok(good(&body[0]).to_string())),
            |body| {
                let error = json!({"code": -32000, "message": "Batches are disabled"});
                let refused = |request: &Value| json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
                let requests = body.as_array().into_iter().flatten();
                singly(body, Ok(Value::from(requests.map(refused).collect::<Vec<_>>()).to_string()))
            },
        ];
        for (number, refusal) in refusals.into_iter().enumerate() {
            let world = World::new(refusal);
            let all = Ok((0..2).map(Id::Number).collect());
            assert_eq!(world.exchange(2).await, (all.clone(), vec![2, 1, 1]), "refusal {number}");
            assert_eq!(world.exchange(2).await, (all, vec![1, 1]), "refusal {number}");
        }
    }

    #[tokio::test]
    async fn an_endpoint_that_takes_three_at_once_is_tried_with_more_once() {
        let world = World::new(|body| match body.as_array() {
            Some(requests) if requests.len() > FIRST_BATCH => status(500, ""),
            Some(requests) => Ok(Value::from(requests.iter().map(good).collect::<Vec<_>>()).to_string()),
            None => Ok(good(body).to_string()),
        });
        let sizes = [vec![3, 1], vec![4, 1, 1, 1, 1], vec![3, 1], vec![3, 1]];
        for expected in sizes {
            let (answered, sizes) = world.exchange(4).await;
            assert_eq!((answered.map(|ids| ids.len()), sizes), (Ok(4), expected));
        }
    }

    #[tokio::test]
    async fn a_batch_is_tried_again_after_a_while() {
        let world = World::new(|body| singly(body, status(503, "")));
        world.exchange(2).await.0.unwrap();
        for _ in 0..SENT_SINGLY {
            assert_eq!(world.exchange(2).await.1, [1, 1]);
        }
        assert_eq!(world.exchange(2).await.1, [2, 1, 1]);
    }

    #[tokio::test]
    async fn an_outage_is_not_taken_for_a_limit() {
        let world = World::new(|_| status(503, "<html>"));
        for _ in 0..2 {
            let (answered, sizes) = world.exchange(2).await;
            assert_eq!(
                answered,
                Err(EndpointTransportError::Post(HttpRequestError::Status(503, Bytes::from_static(b"<html>"))))
            );
            assert_eq!(sizes, [2, 1], "what is limited gets no further requests");
        }
        for silent in
            [|_: &Value| Err(HttpRequestError::Timeout(Duration::ZERO)), |_: &Value| Err(HttpRequestError::TooLarge(1))]
        {
            let (answered, sizes) = World::new(silent).exchange(2).await;
            assert!(answered.is_err());
            assert_eq!(sizes, [2]);
        }
    }

    #[tokio::test]
    async fn json_rpc_error_in_an_error_status_answers_the_request() {
        let of = async |answer: ServerScript| {
            World::new(answer).endpoint.0.send_packet(RequestPacket::Single(request(7))).await
        };
        let answers: [ServerScript; 2] = [
            |_| {
                status(
                    500,
                    r#"{"jsonrpc":"2.0","id":7,"error":{"code":3,"message":"execution reverted","data":"0x01"}}"#,
                )
            },
            |_| status(400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":3,"message":"execution reverted"}}"#),
        ];
        for answer in answers {
            let packet = of(answer).await.unwrap();
            let ResponsePacket::Single(response) = packet else { panic!("one response") };
            assert_eq!((response.id, response.payload.as_error().map(|error| error.code)), (Id::Number(7), Some(3)));
        }
        let refused: [ServerScript; 5] = [
            |_| status(429, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"Too many requests"}}"#),
            |_| status(403, r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no API key"}}"#),
            |_| status(500, r#"{"jsonrpc":"2.0","id":8,"error":{"code":3,"message":"of another"}}"#),
            |_| status(500, r#"{"jsonrpc":"2.0","id":7,"result":"0x1"}"#),
            |_| status(502, "<html>"),
        ];
        for answer in refused {
            assert!(matches!(of(answer).await, Err(EndpointTransportError::Post(HttpRequestError::Status(..)))));
        }
    }

    #[tokio::test]
    async fn a_key_that_an_endpoint_echoes_is_removed() {
        let answers: [ServerScript; 3] = [
            |_| status(429, r#"{"message":"key KEYKEYKEY is exhausted"}"#),
            |_| {
                Ok(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"key KEYKEYKEY is exhausted"}}"#
                    .to_owned())
            },
            |_| {
                let error = json!({"code": 1, "message": "key KEYKEYKEY is exhausted", "data": {"key": "KEYKEYKEY"}});
                Ok(json!({"jsonrpc": "2.0", "id": 7, "error": error}).to_string())
            },
        ];
        for answer in answers {
            let http: Arc<dyn JsonRpcHttpClient> = Arc::new(Scripted { answer, sizes: Mutex::default() });
            let url = Url::parse("http://endpoint/v2/KEYKEYKEY").unwrap();
            let endpoint = EndpointTransport::new(http, url, "a".to_owned(), Duration::MAX);
            let message = match endpoint.0.send_packet(RequestPacket::Single(request(7))).await {
                Ok(packet) => format!("{packet:?}"),
                Err(fault) => fault.to_string(),
            };
            assert!(message.contains("key [key] is exhausted") && !message.contains("KEYKEYKEY"), "{message}");
        }
    }

    #[test]
    fn what_a_server_says_about_its_refusal_is_kept() {
        for (body, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":31,"message":"Batch of more than 3"}}"#,
                "500: Batch of more than 3",
            ),
            (r#"{"error":"plan exhausted"}"#, "500: plan exhausted"),
            (r#"{"message":"no API key","code":403}"#, "500: no API key"),
            ("\n  over capacity\nsecond line", "500: over capacity"),
            ("<!DOCTYPE html><title>Blocked</title>", "500"),
            ("{}", "500"),
            ("", "500"),
        ] {
            let error = HttpRequestError::Status(500, Bytes::from_static(body.as_bytes()));
            assert_eq!(error.to_string(), format!("HTTP status {expected}"), "{body}");
        }
        let long = "x".repeat(1 << 20);
        assert!(response_error_text(long.as_bytes()).is_some_and(|text| text.len() <= MAX_REFUSAL_BYTES));
    }

    /// An endpoint that returns this reply to every request.
    struct Replies(&'static str);

    #[async_trait]
    impl JsonRpcHttpClient for Replies {
        async fn post_json(&self, _: &Url, _: Bytes, _: usize, _: Duration) -> Result<Bytes, HttpRequestError> {
            Ok(Bytes::from_static(self.0.as_bytes()))
        }
    }

    async fn fault(reply: &'static str, packet: RequestPacket) -> EndpointTransportError {
        let url = Url::parse("http://endpoint/").unwrap();
        let endpoint = EndpointTransport::new(Arc::new(Replies(reply)), url, "a".to_owned(), Duration::MAX);
        endpoint.0.send_packet(packet).await.expect_err(reply)
    }

    async fn of_one(reply: &'static str) -> EndpointTransportError {
        fault(reply, RequestPacket::Single(request(1))).await
    }

    async fn of_two(reply: &'static str) -> EndpointTransportError {
        fault(reply, RequestPacket::Batch(vec![request(1), request(2)])).await
    }

    #[tokio::test]
    async fn a_reply_that_is_no_response_is_refused() {
        assert_eq!(of_one(" <html>").await, EndpointTransportError::Html);
        assert_eq!(of_two("<html>").await, EndpointTransportError::Html);
        for reply in ["", "{}", "7", "[{}]"] {
            assert!(matches!(of_one(reply).await, EndpointTransportError::NotJsonRpc(_)), "{reply}");
            assert!(matches!(of_two(reply).await, EndpointTransportError::NotJsonRpc(_)), "{reply}");
        }
        let array = of_one(r#"[{"jsonrpc":"2.0","id":1,"result":"0x1"}]"#).await;
        assert_eq!(array, EndpointTransportError::NotJsonRpc("an array for one request".to_owned()));
    }

    #[tokio::test]
    async fn each_request_gets_its_own_response_and_no_other() {
        assert_eq!(of_one(r#"{"jsonrpc":"2.0","id":2,"result":"0x1"}"#).await, EndpointTransportError::WrongId);
        let of_ids = [
            (
                r#"[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":3,"result":"0x1"}]"#,
                EndpointTransportError::WrongId,
            ),
            (
                r#"[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":1,"result":"0x1"}]"#,
                EndpointTransportError::WrongId,
            ),
            (r#"[{"jsonrpc":"2.0","id":2,"result":"0x1"}]"#, EndpointTransportError::Missing(1)),
        ];
        for (reply, expected) in of_ids {
            assert_eq!(of_two(reply).await, expected, "{reply}");
        }
    }

    #[tokio::test]
    async fn an_error_about_no_request_is_a_refusal() {
        let slow_down = r#"{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"slow down"}}"#;
        let refused = EndpointTransportError::Refused("slow down".to_owned());
        assert_eq!((of_one(slow_down).await, of_two(slow_down).await), (refused.clone(), refused));
    }
}
