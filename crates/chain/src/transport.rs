//! JSON-RPC to one endpoint: an alloy transport over an injected [`HttpPost`].
//!
//! The length of a reply is bounded, and every response in it must belong to exactly one request.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use alloy_json_rpc::{Id, RequestPacket, Response, ResponsePacket, ResponsePayload, SerializedRequest};
use alloy_transport::{TransportError, TransportErrorKind, TransportFut};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::try_join_all;
use tower::Service;
use url::Url;

use clresolve_core::cause::LocalLimit;
use clresolve_core::text::excerpt;
use clresolve_egress::count::{self, RequestOutcome, Upstream};

/// Longest reply of an endpoint, in bytes. A header with all its transaction hashes takes about 100 KB, the records of
/// a name about 20 KB. The limit protects against memory exhaustion.
pub const MAX_REPLY_BYTES: usize = 1 << 20;

/// HTTP statuses with which servers refuse a batch although they accept its requests one by one.
const BATCH_REFUSALS: [u16; 6] = [400, 405, 413, 415, 422, 501];

/// The HTTP client for endpoints.
#[async_trait]
pub trait HttpPost: Send + Sync {
    /// POSTs `body` as `application/json` to `url`, follows no redirect, and returns the body of a 2xx response.
    ///
    /// The body has at most `cap` bytes, also after decompression. Head and body arrive within `timeout`.
    ///
    /// # Errors
    /// [`PostError`], whose message must not contain the URL, since that may include a key.
    async fn post(&self, url: &Url, body: Bytes, cap: usize, timeout: Duration) -> Result<Bytes, PostError>;
}

/// Why a request returned no body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The timeout expired.
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The response has a status other than 2xx.
    #[error("HTTP status {0}")]
    Status(u16),
    /// The body is longer than the cap, in bytes.
    #[error("the reply has more than {0} bytes")]
    TooLarge(usize),
    /// The connection failed or is forbidden: the cause, without the URL.
    #[error("{0}")]
    Connection(String),
}

impl PostError {
    /// The value of the outcome label in metrics.
    const fn outcome(&self) -> RequestOutcome {
        match self {
            Self::Timeout(_) => RequestOutcome::Timeout,
            Self::Status(status) => RequestOutcome::of_status(*status),
            Self::TooLarge(_) | Self::Connection(_) => RequestOutcome::Failed,
        }
    }
}

/// Why an exchange with an endpoint failed, apart from JSON-RPC errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TransportFault {
    /// HTTP failed.
    #[error(transparent)]
    Post(#[from] PostError),
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
    /// The endpoint answered the batch with a single error that is not about batches.
    #[error("the endpoint refused: {0}")]
    Refused(String),
    /// Too few of several endpoints returned the same response. Lists each response by label.
    #[error("the endpoints contradict each other")]
    Divided(Vec<(String, String)>),
    /// A reply, or a call over proven state, reached a local limit of this program.
    #[error(transparent)]
    LocalLimit(#[from] LocalLimit),
    /// No endpoint returned a valid proof for a call over proven state. Lists the cause for each label.
    #[error("no endpoint gave a proof that holds")]
    #[cfg_attr(not(feature = "state-proof"), allow(dead_code, reason = "no call is computed in this build"))]
    Unproven(Vec<(String, String)>),
}

/// One endpoint as an alloy transport. Clones share the state of the connection.
#[derive(Clone)]
pub(super) struct EndpointTransport(Arc<Connection>);

impl EndpointTransport {
    pub(super) fn new(http: Arc<dyn HttpPost>, url: Url, label: String, timeout: Duration) -> Self {
        let takes_batches = AtomicBool::new(true);
        Self(Arc::new(Connection { http, url, label, timeout, longest: MAX_REPLY_BYTES, takes_batches }))
    }

    /// The same endpoint, with another limit on the length of a reply, in bytes.
    #[cfg(feature = "state-proof")]
    pub(super) fn with_replies_up_to(&self, longest: usize) -> Self {
        let Connection { http, url, label, timeout, .. } = &*self.0;
        let (http, url, label) = (Arc::clone(http), url.clone(), label.clone());
        let takes_batches = AtomicBool::new(self.0.takes_batches.load(Ordering::Relaxed));
        Self(Arc::new(Connection { http, url, label, timeout: *timeout, longest, takes_batches }))
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
        Box::pin(async move { connection.send(packet).await.map_err(TransportErrorKind::custom) })
    }
}

struct Connection {
    http: Arc<dyn HttpPost>,
    url: Url,
    label: String,
    timeout: Duration,
    /// Longest reply, in bytes.
    longest: usize,
    /// Cleared when the endpoint refuses a batch. From then on requests are sent one by one.
    takes_batches: AtomicBool,
}

/// The result of a batch.
enum Batch {
    Answered(Vec<Response>),
    /// The endpoint accepts no batches, or none of this size.
    Refused,
}

impl Connection {
    async fn send(&self, packet: RequestPacket) -> Result<ResponsePacket, TransportFault> {
        let requests = match packet {
            RequestPacket::Single(request) => return self.single(request).await.map(ResponsePacket::Single),
            RequestPacket::Batch(requests) => requests,
        };
        if self.takes_batches.load(Ordering::Relaxed) {
            if let Batch::Answered(responses) = self.batch(&requests).await? {
                return Ok(ResponsePacket::Batch(responses));
            }
            self.takes_batches.store(false, Ordering::Relaxed);
        }
        try_join_all(requests.into_iter().map(|request| self.single(request))).await.map(ResponsePacket::Batch)
    }

    async fn single(&self, request: SerializedRequest) -> Result<Response, TransportFault> {
        let body = self.post(request.serialized().get().to_owned().into()).await?;
        match parse(&body)? {
            ResponsePacket::Single(response) if response.id == *request.id() => Ok(response),
            ResponsePacket::Single(response) => Err(refusal(&response).unwrap_or(TransportFault::WrongId)),
            ResponsePacket::Batch(_) => Err(TransportFault::NotJsonRpc("an array for one request".to_owned())),
        }
    }

    async fn batch(&self, requests: &[SerializedRequest]) -> Result<Batch, TransportFault> {
        let packet = serde_json::to_vec(requests).map_err(|e| TransportFault::NotJsonRpc(excerpt(&e.to_string())))?;
        let body = match self.post(packet.into()).await {
            Err(TransportFault::Post(PostError::Status(status))) if BATCH_REFUSALS.contains(&status) => {
                return Ok(Batch::Refused);
            }
            other => other?,
        };
        match parse(&body)? {
            ResponsePacket::Single(response) if is_rate_limit(&response) => {
                Err(refusal(&response).unwrap_or(TransportFault::WrongId))
            }
            ResponsePacket::Single(_) => Ok(Batch::Refused),
            ResponsePacket::Batch(responses) if all_refuse_the_batch(&responses) => Ok(Batch::Refused),
            ResponsePacket::Batch(responses) => {
                match_ids(requests, &responses)?;
                Ok(Batch::Answered(responses))
            }
        }
    }

    async fn post(&self, body: Bytes) -> Result<Bytes, TransportFault> {
        let longest = if clresolve_core::mutant!("long-replies-are-read") { 256 << 20 } else { self.longest };
        let answer = self.http.post(&self.url, body, longest, self.timeout).await;
        count::upstream(
            Upstream::Rpc,
            &self.label,
            answer.as_ref().map_or_else(PostError::outcome, |_| RequestOutcome::Ok),
        );
        answer.map_err(|error| match error {
            PostError::TooLarge(bytes) => LocalLimit::Reply { endpoint: self.label.clone(), bytes }.into(),
            error => error.into(),
        })
    }
}

fn parse(body: &[u8]) -> Result<ResponsePacket, TransportFault> {
    if body.trim_ascii_start().starts_with(b"<") {
        return Err(TransportFault::Html);
    }
    serde_json::from_slice(body).map_err(|e| TransportFault::NotJsonRpc(excerpt(&e.to_string())))
}

fn match_ids(requests: &[SerializedRequest], responses: &[Response]) -> Result<(), TransportFault> {
    let mut open: HashSet<&Id> = requests.iter().map(SerializedRequest::id).collect();
    if !responses.iter().all(|response| open.remove(&response.id)) {
        return Err(TransportFault::WrongId);
    }
    if open.is_empty() { Ok(()) } else { Err(TransportFault::Missing(open.len())) }
}

/// An error that belongs to no particular request.
fn refusal(response: &Response) -> Option<TransportFault> {
    match &response.payload {
        ResponsePayload::Failure(error) if response.id.is_none() => {
            Some(TransportFault::Refused(excerpt(&error.message)))
        }
        _ => None,
    }
}

fn is_rate_limit(response: &Response) -> bool {
    matches!(&response.payload, ResponsePayload::Failure(error) if error.is_retry_err())
}

fn all_refuse_the_batch(responses: &[Response]) -> bool {
    let refuses = |response: &Response| match &response.payload {
        ResponsePayload::Failure(error) => error.message.to_ascii_lowercase().contains("batch"),
        ResponsePayload::Success(_) => false,
    };
    !responses.is_empty() && responses.iter().all(refuses)
}

#[cfg(test)]
mod tests {
    use alloy_json_rpc::Request;

    use super::*;

    /// An endpoint that returns this reply to every request.
    struct Replies(&'static str);

    #[async_trait]
    impl HttpPost for Replies {
        async fn post(&self, _: &Url, _: Bytes, _: usize, _: Duration) -> Result<Bytes, PostError> {
            Ok(Bytes::from_static(self.0.as_bytes()))
        }
    }

    fn request(id: u64) -> SerializedRequest {
        Request::new("eth_chainId", Id::Number(id), ()).serialize().unwrap()
    }

    async fn fault(reply: &'static str, packet: RequestPacket) -> TransportFault {
        let url = Url::parse("http://endpoint/").unwrap();
        let endpoint = EndpointTransport::new(Arc::new(Replies(reply)), url, "a".to_owned(), Duration::MAX);
        endpoint.0.send(packet).await.expect_err(reply)
    }

    async fn of_one(reply: &'static str) -> TransportFault {
        fault(reply, RequestPacket::Single(request(1))).await
    }

    async fn of_two(reply: &'static str) -> TransportFault {
        fault(reply, RequestPacket::Batch(vec![request(1), request(2)])).await
    }

    #[tokio::test]
    async fn a_reply_that_is_no_response_is_refused() {
        assert_eq!(of_one(" <html>").await, TransportFault::Html);
        assert_eq!(of_two("<html>").await, TransportFault::Html);
        for reply in ["", "{}", "7", "[{}]"] {
            assert!(matches!(of_one(reply).await, TransportFault::NotJsonRpc(_)), "{reply}");
            assert!(matches!(of_two(reply).await, TransportFault::NotJsonRpc(_)), "{reply}");
        }
        let array = of_one(r#"[{"jsonrpc":"2.0","id":1,"result":"0x1"}]"#).await;
        assert_eq!(array, TransportFault::NotJsonRpc("an array for one request".to_owned()));
    }

    #[tokio::test]
    async fn each_request_gets_its_own_response_and_no_other() {
        assert_eq!(of_one(r#"{"jsonrpc":"2.0","id":2,"result":"0x1"}"#).await, TransportFault::WrongId);
        let of_ids = [
            (
                r#"[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":3,"result":"0x1"}]"#,
                TransportFault::WrongId,
            ),
            (
                r#"[{"jsonrpc":"2.0","id":1,"result":"0x1"},{"jsonrpc":"2.0","id":1,"result":"0x1"}]"#,
                TransportFault::WrongId,
            ),
            (r#"[{"jsonrpc":"2.0","id":2,"result":"0x1"}]"#, TransportFault::Missing(1)),
        ];
        for (reply, expected) in of_ids {
            assert_eq!(of_two(reply).await, expected, "{reply}");
        }
    }

    #[tokio::test]
    async fn an_error_about_no_request_is_a_refusal() {
        let slow_down = r#"{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"slow down"}}"#;
        let refused = TransportFault::Refused("slow down".to_owned());
        assert_eq!((of_one(slow_down).await, of_two(slow_down).await), (refused.clone(), refused));
    }
}
