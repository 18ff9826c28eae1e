//! Answers as events (HTML, 9.2), and who may have one that goes on.

use std::convert::Infallible;
use std::fmt::Display;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use bytes::Bytes;
use clresolve_core::reason::Refusal;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::watch;

use super::client_limits::{Client, HeldPlaces, Places};
use super::negotiate;

/// Most streams that go on at once: each is woken by each event of the daemon.
const MAX_STREAMS: usize = 256;

/// The part of all connections that streams may hold: one that is read makes no room for another connection, and the gate
/// may be on the same listener.
const PART_OF_CONNECTIONS: usize = 3;

/// The part of all streams that one client may have, so that it leaves room for others. A proxy counts as one client.
const PART_OF_STREAMS: usize = 4;

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
    places: Places,
    ended: watch::Sender<bool>,
}

/// Most streams of a daemon that has at most `connections` connections.
fn most(connections: usize) -> usize {
    part(connections, PART_OF_CONNECTIONS).min(MAX_STREAMS)
}

fn part(of: usize, share: usize) -> usize {
    (of / share).max(1)
}

/// A permit for a stream.
pub(super) struct StreamPermit {
    _place: HeldPlaces,
    ended: watch::Receiver<bool>,
}

impl EventStreams {
    /// The permits of a daemon that has at most `connections` connections.
    pub(super) fn new(connections: usize) -> Self {
        let streams = most(connections);
        let of_one_client = if clresolve_core::mutant!("one-client-takes-all-streams") {
            streams
        } else {
            part(streams, PART_OF_STREAMS)
        };
        Self { places: Places::new(streams, of_one_client), ended: watch::Sender::new(false) }
    }

    /// Ends all streams, now and later.
    pub(super) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// A permit for one more stream of a client.
    pub(super) fn take(&self, client: Client) -> Result<StreamPermit, Refusal> {
        Ok(StreamPermit { _place: self.places.take(client, 1)?, ended: self.ended.subscribe() })
    }
}

impl StreamPermit {
    /// Waits until all streams end.
    pub(super) async fn ended(&mut self) {
        // Where nobody can end it any more, it has ended.
        let _ = self.ended.wait_for(|ended| *ended).await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use clresolve_resolver::config::HttpConfig;

    /// What is in work makes no room: it must never hold all connections.
    #[test]
    fn requests_in_work_and_streams_leave_connections_to_newcomers() {
        let HttpConfig { connections, requests, .. } = HttpConfig::default();
        assert!(requests + most(connections) < connections);
    }

    #[test]
    fn streams_are_few_and_fewer_of_one_client() {
        let streams = EventStreams::new(3 * MAX_STREAMS);
        let client = |last| Client::from(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
        let take = |last, most: usize| (0..most).map_while(|_| streams.take(client(last)).ok()).collect::<Vec<_>>();
        let first = take(1, MAX_STREAMS);
        assert_eq!(first.len(), MAX_STREAMS / PART_OF_STREAMS);
        assert_eq!(streams.take(client(1)).err(), Some(Refusal::ClientOverQuota));
        let rest: Vec<_> = (2..=4).flat_map(|last| take(last, MAX_STREAMS)).collect();
        assert_eq!(first.len() + rest.len(), MAX_STREAMS);
        assert_eq!(streams.take(client(5)).err(), Some(Refusal::Overloaded));
        drop(first);
        assert!(streams.take(client(5)).is_ok());
        let small = EventStreams::new(12);
        let held: Vec<_> = (1..=9).map_while(|last| small.take(client(last)).ok()).collect();
        assert_eq!(held.len(), 4, "a third of the connections");
    }
}
