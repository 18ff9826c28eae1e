//! Server-sent events (HTML, 9.2), and the permits for long-lived streams.

use std::convert::Infallible;
use std::fmt::Display;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use clresolve_core::reason::RefusalCode;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::watch;

use super::client_limits::{ClientIdentity, SharedSlotPool, SlotReservation};
use super::negotiate;

/// Maximum number of concurrent streams, because each event of the daemon wakes all of them.
const MAX_STREAMS: usize = 256;

/// At most one in this many connections may be a stream. Streams are never closed to make room for new connections,
/// some of which may be for the gate on the same listener.
const PART_OF_CONNECTIONS: usize = 3;

/// At most one in this many streams may belong to the same client. A proxy counts as one client.
const PART_OF_STREAMS: usize = 4;

/// Makes nginx forward each event at once.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A response whose body consists of these events, as formatted by [`format_event`].
pub(super) fn event_stream_response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(events.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(negotiate::EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Formats an event. Its data is JSON on one line.
pub(super) fn format_event(kind: &str, data: &[u8]) -> Bytes {
    [format!("event: {kind}\ndata: ").as_bytes(), data, b"\n\n"].concat().into()
}

/// Adds the event ID from which a client can resume.
pub(super) fn add_event_id(id: impl Display, event: &[u8]) -> Bytes {
    [format!("id: {id}\n").as_bytes(), event].concat().into()
}

/// Permits for streams that last until their client disconnects.
pub(super) struct EventStreamSlots {
    slots: SharedSlotPool,
    ended: watch::Sender<bool>,
}

/// Maximum number of streams of a daemon that accepts at most `connections` connections.
fn max_streams(connections: usize) -> usize {
    divide_to_at_least_one(connections, PART_OF_CONNECTIONS).min(MAX_STREAMS)
}

fn divide_to_at_least_one(of: usize, share: usize) -> usize {
    (of / share).max(1)
}

pub(super) struct EventStreamPermit {
    _slot: SlotReservation,
    ended: watch::Receiver<bool>,
}

impl EventStreamSlots {
    /// The permits of a daemon that accepts at most `connections` connections.
    pub(super) fn new(connections: usize) -> Self {
        let streams = max_streams(connections);
        let of_one_client = if clresolve_core::mutant!("one-client-takes-all-streams") {
            streams
        } else {
            divide_to_at_least_one(streams, PART_OF_STREAMS)
        };
        Self { slots: SharedSlotPool::new(streams, of_one_client), ended: watch::Sender::new(false) }
    }

    /// Ends all current and future streams.
    pub(super) fn end_streams(&self) {
        self.ended.send_replace(true);
    }

    /// Acquires a permit for one more stream of a client.
    pub(super) fn acquire(&self, client: ClientIdentity) -> Result<EventStreamPermit, RefusalCode> {
        Ok(EventStreamPermit { _slot: self.slots.reserve_slots(client, 1)?, ended: self.ended.subscribe() })
    }
}

impl EventStreamPermit {
    pub(super) async fn wait_for_end(&mut self) {
        // If the sender is gone, the streams have ended.
        let _ = self.ended.wait_for(|ended| *ended).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use clresolve_resolver::config::HttpServerConfig;

    /// Neither requests in progress nor streams can be evicted, so they must never use all connections.
    #[test]
    fn requests_in_work_and_streams_leave_connections_to_newcomers() {
        let HttpServerConfig { connections, requests, .. } = HttpServerConfig::default();
        assert!(requests + max_streams(connections) < connections);
    }

    #[test]
    fn streams_are_few_and_fewer_of_one_client() {
        let streams = EventStreamSlots::new(3 * MAX_STREAMS);
        let client = |last| ClientIdentity::from(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
        let take = |last, most: usize| (0..most).map_while(|_| streams.acquire(client(last)).ok()).collect::<Vec<_>>();
        let first = take(1, MAX_STREAMS);
        assert_eq!(first.len(), MAX_STREAMS / PART_OF_STREAMS);
        assert_eq!(streams.acquire(client(1)).err(), Some(RefusalCode::ClientOverQuota));
        let rest: Vec<_> = (2..=4).flat_map(|last| take(last, MAX_STREAMS)).collect();
        assert_eq!(first.len() + rest.len(), MAX_STREAMS);
        assert_eq!(streams.acquire(client(5)).err(), Some(RefusalCode::Overloaded));
        drop(first);
        assert!(streams.acquire(client(5)).is_ok());
        let small = EventStreamSlots::new(12);
        let held: Vec<_> = (1..=9).map_while(|last| small.acquire(client(last)).ok()).collect();
        assert_eq!(held.len(), 4, "a third of the connections");
    }
}
