//! Answers as events (HTML, 9.2), and who may have one that goes on.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::client_limits::{Client, ClientLimits, ClientPermit};
use super::negotiate;
use crate::reason::Refusal;

/// Most streams that go on at once: each is a connection, and is woken by each event of the daemon.
const MAX_STREAMS: usize = 256;

/// Most of them that one client has, so that one leaves room for others. A proxy counts as one client.
const MAX_STREAMS_PER_CLIENT: usize = 64;

/// Tells nginx to pass on each event as it comes.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An answer that events come in, as [`event`] writes them.
pub(super) fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(events.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(negotiate::EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// An event. Its data is JSON in one line.
pub(super) fn event(kind: &str, data: &[u8]) -> Bytes {
    [format!("event: {kind}\ndata: ").as_bytes(), data, b"\n\n"].concat().into()
}

/// The same, and where a reader stands after it.
pub(super) fn placed(place: impl Display, event: &[u8]) -> Bytes {
    [format!("id: {place}\n").as_bytes(), event].concat().into()
}

/// Permits for streams that go on until their reader has enough.
pub(super) struct EventStreams {
    all: Arc<Semaphore>,
    per_client: ClientLimits,
}

/// A permit for a stream.
pub(super) struct StreamPermit {
    _of_all: OwnedSemaphorePermit,
    _of_client: ClientPermit,
}

impl EventStreams {
    pub(super) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_STREAMS)), per_client: ClientLimits::new(MAX_STREAMS_PER_CLIENT) }
    }

    /// A permit for one more stream of a client.
    pub(super) fn take(&self, client: Client) -> Result<StreamPermit, Refusal> {
        let of_client = self.per_client.take(client).ok_or(Refusal::ClientOverQuota)?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().map_err(|_| Refusal::Overloaded)?;
        Ok(StreamPermit { _of_all: of_all, _of_client: of_client })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn streams_are_few_and_fewer_of_one_client() {
        let streams = EventStreams::new();
        let client = |last| Client::from(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
        let take = |last, most: usize| (0..most).map_while(|_| streams.take(client(last)).ok()).collect::<Vec<_>>();
        let first = take(1, MAX_STREAMS);
        assert_eq!(first.len(), MAX_STREAMS_PER_CLIENT);
        assert_eq!(streams.take(client(1)).err(), Some(Refusal::ClientOverQuota));
        let rest: Vec<_> = (2..=4).flat_map(|last| take(last, MAX_STREAMS)).collect();
        assert_eq!(first.len() + rest.len(), MAX_STREAMS);
        assert_eq!(streams.take(client(5)).err(), Some(Refusal::Overloaded));
        drop(first);
        assert!(streams.take(client(5)).is_ok());
    }
}
