//! Sending JSON-RPC to one endpoint: an alloy transport over an injected [`HttpPost`].
//!
//! What comes back is bounded, and every answer belongs to a request that was made, exactly once.

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
use clresolve_egress::count::{self, Outcome, Upstream};

/// Longest reply of an endpoint, in bytes. A header with all its transaction hashes takes some 100 KB, the records of
/// a name some 20 KB; what is larger is an attack on memory, not an answer.
pub const MAX_REPLY_BYTES: usize = 1 << 20;

/// Statuses with which servers refuse a batch as such, though they answer its requests one by one.
const BATCH_REFUSALS: [u16; 6] = [400, 405, 413, 415, 422, 501];

/// The door through which endpoints are asked.
#[async_trait]
pub trait HttpPost: Send + Sync {
    /// POSTs `body` as `application/json` to `url`, follows no redirect, and gives the body of a 2xx answer.
    ///
    /// The body has at most `cap` bytes, after decompression too; head and body have arrived within `timeout`.
    ///
    /// # Errors
    /// [`PostError`], whose message must not hold the URL: it may carry a key.
    async fn post(&self, url: &Url, body: Bytes, cap: usize, timeout: Duration) -> Result<Bytes, PostError>;
}

/// Why a request got no body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The time ran out.
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The answer has a status other than 2xx.
    #[error("HTTP status {0}")]
    Status(u16),
    /// The body is longer than the cap, in bytes.
    #[error("the reply has more than {0} bytes")]
    TooLarge(usize),
    /// No connection, a broken one, or one that policy forbids: the cause, without the URL.
    #[error("{0}")]
    Connection(String),
}

impl PostError {
    /// How the request is counted.
    const fn outcome(&self) -> Outcome {
        match self {
            Self::Timeout(_) => Outcome::Timeout,
            Self::Status(status) => Outcome::of_status(*status),
            Self::TooLarge(_) | Self::Connection(_) => Outcome::Failed,
        }
    }
}

/// Why an exchange with an endpoint failed below the level of JSON-RPC errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TransportFault {
    /// HTTP failed.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The body is HTML, as login pages and proxies send it.
    #[error("the reply is HTML, not JSON")]
    Html,
    /// The body is no JSON-RPC response.
    #[error("the reply is not JSON-RPC: {0}")]
    NotJsonRpc(String),
    /// An answer carries the id of no request, or one a second time.
    #[error("the reply answers a request that was not made")]
    WrongId,
    /// So many requests were left without an answer.
    #[error("the reply leaves {0} requests unanswered")]
    Missing(usize),
    /// The endpoint answered the whole with one error, which is not about batches.
    #[error("the endpoint refused: {0}")]
    Refused(String),
    /// Several endpoints were asked, and too few of them said the same; what each said, by label.
    #[error("the endpoints contradict each other")]
    Divided(Vec<(String, String)>),
    /// The call was to be computed from proven state, and met a bound of this program.
    #[error("{0}")]
    LocalLimit(LocalLimit),
    /// The call was to be computed from proven state, and no endpoint gave a proof that holds; what became of each.
    #[error("no endpoint gave a proof that holds")]
    Unproven(Vec<(String, String)>),
}

/// One endpoint as an alloy transport. Clones share what was learnt about the endpoint.
#[derive(Clone)]
pub(super) struct EndpointTransport(Arc<Line>);

impl EndpointTransport {
    pub(super) fn new(http: Arc<dyn HttpPost>, url: Url, label: String, timeout: Duration) -> Self {
        Self(Arc::new(Line { http, url, label, timeout, takes_batches: AtomicBool::new(true) }))
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
        let line = Arc::clone(&self.0);
        Box::pin(async move { line.send(packet).await.map_err(TransportErrorKind::custom) })
    }
}

struct Line {
    http: Arc<dyn HttpPost>,
    url: Url,
    label: String,
    timeout: Duration,
    /// Cleared when the endpoint refuses a batch, so that it is asked one by one from then on.
    takes_batches: AtomicBool,
}

/// What became of a batch.
enum Batch {
    Answered(Vec<Response>),
    /// The endpoint takes no batches, or none of this size.
    Refused,
}

impl Line {
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
        let answer = self.http.post(&self.url, body, MAX_REPLY_BYTES, self.timeout).await;
        count::upstream(Upstream::Rpc, &self.label, answer.as_ref().map_or_else(PostError::outcome, |_| Outcome::Ok));
        Ok(answer?)
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

/// An error that answers no request in particular.
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
