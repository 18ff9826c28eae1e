//! Tracks what a connection is doing. The connection's timeouts depend on it, and so does the choice of the connection
//! to close when the listener is full.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::head_scan::{RequestHeadFindings, RequestHeadScanner};

/// What one connection is doing, shared between its stream, its handler and the [set](super::connection_set) it is in.
pub(super) struct ConnectionActivity {
    now: Mutex<ConnectionState>,
    /// Notified when the connection must close to make room for another.
    told: Notify,
}

#[derive(Debug)]
struct ConnectionState {
    phase: ConnectionPhase,
    /// When the connection was opened, or when its last response was produced.
    idle_since: Instant,
    /// When the client stopped reading although bytes are ready to be written.
    stalled_since: Option<Instant>,
    /// Since when the current request has been waiting for the rest of its body.
    body_awaited_since: Option<Instant>,
    has_asked: bool,
    has_asked_the_gate: bool,
    makes_room: bool,
    /// Whether the connection closes after the response in progress.
    ends_after_answer: bool,
    heads: RequestHeadScanner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    /// Between two requests.
    Idle,
    /// Part of a request head has arrived.
    Head { since: Instant },
    /// A request is being processed, or its response is being written.
    Request { since: Instant },
}

/// How long a new connection without a request is protected from eviction: a few round trips. Otherwise a client that
/// keeps reconnecting would evict each newcomer before its first request.
const NEWCOMER: Duration = Duration::from_secs(1);

/// How suitable a connection is for eviction: the smallest value is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EvictionRank {
    /// Whether the connection is evicted last: its latest request was to the gate, or it is too new to have sent one.
    pub(super) is_spared: bool,
    pub(super) since: Instant,
}

impl ConnectionActivity {
    pub(super) fn new() -> Self {
        let now = ConnectionState {
            phase: ConnectionPhase::Idle,
            idle_since: Instant::now(),
            stalled_since: None,
            body_awaited_since: None,
            has_asked: false,
            has_asked_the_gate: false,
            makes_room: false,
            ends_after_answer: false,
            heads: RequestHeadScanner::default(),
        };
        Self { now: Mutex::new(now), told: Notify::new() }
    }

    fn lock_state(&self) -> MutexGuard<'_, ConnectionState> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The deadline for a complete request head: `head` after its first byte, and `idle` after the last response. The
    /// second deadline also applies to bytes that the client sent ahead of a response (pipelining).
    pub(super) fn head_deadline(&self, idle: Duration, head: Duration) -> Option<Instant> {
        let now = self.lock_state();
        let idle_ends = now.idle_since + idle;
        match now.phase {
            ConnectionPhase::Idle => Some(idle_ends),
            ConnectionPhase::Head { since } => {
                Some(idle_ends.min(since + if clresolve_core::mutant!("slow-heads") { idle } else { head }))
            }
            ConnectionPhase::Request { .. } => None,
        }
    }

    /// Whether the server can still send an error response: part of a head has arrived, and all earlier responses are
    /// written.
    pub(super) fn may_send_error_response(&self) -> bool {
        let now = self.lock_state();
        matches!(now.phase, ConnectionPhase::Head { .. }) && now.stalled_since.is_none()
    }

    /// How the connection ranks for eviction if it is waiting for its client. Closing it then loses no response.
    pub(super) fn eviction_rank(&self) -> Option<EvictionRank> {
        let now = self.lock_state();
        let since = match now.phase {
            _ if now.makes_room => return None,
            ConnectionPhase::Idle | ConnectionPhase::Head { .. } => now.stalled_since.unwrap_or(now.idle_since),
            ConnectionPhase::Request { .. } => now.client_wait_since()?,
        };
        let is_new = !now.has_asked && now.idle_since.elapsed() < NEWCOMER;
        let is_the_gates = now.has_asked_the_gate && !clresolve_core::mutant!("what-asked-the-gate-is-cut");
        Some(EvictionRank { is_spared: is_the_gates || is_new, since })
    }

    /// When the current request started, if it does not depend on its client and its response would not be the last
    /// anyway.
    pub(super) fn evictable_request_start(&self) -> Option<Instant> {
        let now = self.lock_state();
        now.unblocked_request_start().filter(|_| !now.ends_after_answer)
    }

    /// Asks the connection to close: at once if it is waiting for its client, otherwise after the response in progress.
    pub(super) fn request_close(&self) {
        self.lock_state().makes_room = true;
        self.told.notify_one();
    }

    /// Whether the connection was asked to close while a request was in progress.
    pub(super) fn closes_after_response(&self) -> bool {
        self.lock_state().ends_after_answer
    }

    /// Completes when the connection has been asked to close and is waiting for its client. If a request is in
    /// progress, its response becomes the last one.
    pub(super) async fn wait_for_close_request(&self) {
        loop {
            self.told.notified().await;
            let mut now = self.lock_state();
            if now.unblocked_request_start().is_none() {
                return;
            }
            (now.makes_room, now.ends_after_answer) = (false, true);
        }
    }

    /// Records that a head is complete. Returns the findings of the scan of that head.
    pub(super) fn begin_request(&self, asks_the_gate: bool) -> RequestHeadFindings {
        let mut now = self.lock_state();
        (now.phase, now.has_asked) = (ConnectionPhase::Request { since: Instant::now() }, true);
        now.has_asked_the_gate = asks_the_gate;
        now.heads.take_findings()
    }

    /// Records that the response has been produced.
    pub(super) fn end_request(&self) {
        let mut now = self.lock_state();
        (now.phase, now.idle_since) = (ConnectionPhase::Idle, Instant::now());
    }

    fn record_received(&self, bytes: &[u8]) {
        let mut now = self.lock_state();
        now.heads.scan_bytes(bytes);
        if now.phase == ConnectionPhase::Idle {
            now.phase = ConnectionPhase::Head { since: Instant::now() };
        }
    }

    fn record_body_wait(&self, awaits: bool) {
        let mut now = self.lock_state();
        now.body_awaited_since = awaits.then(|| now.body_awaited_since.unwrap_or_else(Instant::now));
    }

    fn record_write_progress(&self, progress: bool) {
        let mut now = self.lock_state();
        now.stalled_since = if progress { None } else { now.stalled_since.or_else(|| Some(Instant::now())) };
    }
}

impl ConnectionState {
    /// When the request in progress started to wait for its client.
    fn client_wait_since(&self) -> Option<Instant> {
        self.stalled_since.or(self.body_awaited_since)
    }

    /// When the request in progress started, if it does not wait for its client.
    fn unblocked_request_start(&self) -> Option<Instant> {
        match self.phase {
            ConnectionPhase::Request { since } if self.client_wait_since().is_none() => Some(since),
            _ => None,
        }
    }
}

/// A stream that records the progress of reads and writes in a [`ConnectionActivity`].
pub(super) struct TrackedStream<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
}

impl<S> TrackedStream<S> {
    pub(super) const fn new(stream: S, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity }
    }

    fn record_write_poll<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.activity.record_write_progress(polled.is_ready());
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(received @ [_, ..]) = buffer.filled().get(before..) {
            self.activity.record_received(received);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record_write_poll(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.record_write_poll(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// A request body that records whether the client is making it wait.
pub(super) struct TrackedRequestBody {
    body: Incoming,
    activity: Arc<ConnectionActivity>,
}

impl TrackedRequestBody {
    pub(super) const fn new(body: Incoming, activity: Arc<ConnectionActivity>) -> Self {
        Self { body, activity }
    }
}

impl Drop for TrackedRequestBody {
    fn drop(&mut self) {
        self.activity.record_body_wait(false);
    }
}

impl HttpBody for TrackedRequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.activity.record_body_wait(polled.is_pending() && !clresolve_core::mutant!("stalled-bodies-are-in-work"));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

/// A response body. When it ends, the request ends.
pub(super) struct TrackedResponseBody {
    body: Body,
    _end: RequestGuard,
}

impl TrackedResponseBody {
    pub(super) const fn new(body: Body, activity: Arc<ConnectionActivity>) -> Self {
        Self { body, _end: RequestGuard(activity) }
    }
}

/// Reports the end of the request when it is dropped.
struct RequestGuard(Arc<ConnectionActivity>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.end_request();
    }
}

impl HttpBody for TrackedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_drips_has_no_more_time_than_another() {
        let activity = ConnectionActivity::new();
        let (idle, head) = (Duration::from_secs(75), Duration::from_secs(10));
        let opened = activity.lock_state().idle_since;
        assert_eq!(activity.head_deadline(idle, head), Some(opened + idle));
        activity.record_received(b"G");
        let due = activity.head_deadline(idle, head).expect("a head is under way");
        activity.record_received(b"E");
        assert_eq!(activity.head_deadline(idle, head), Some(due), "only the first byte counts");
        assert!((opened + head..opened + idle).contains(&due));
        assert_eq!(activity.head_deadline(head, idle), Some(opened + head), "both bounds hold");
        assert!(activity.may_send_error_response());
        activity.record_write_progress(false);
        assert!(!activity.may_send_error_response(), "an answer before it is not written");
        activity.begin_request(false);
        assert_eq!(activity.head_deadline(idle, head), None);
    }

    /// Bytes of the next head may arrive before, with or after the response.
    #[test]
    fn a_head_that_came_ahead_of_an_answer_is_scanned_whole() {
        let first = b"POST /v1/lint HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}".as_slice();
        let next = b"GET /v1/gate/a.eth#b HTTP/1.1\r\n\r\n".as_slice();
        let sent = [first, next].concat();
        let head = first.len() - 2;
        for (before, during) in (head..=sent.len()).flat_map(|at| (at..=sent.len()).map(move |then| (at, then))) {
            let activity = ConnectionActivity::new();
            activity.record_received(&sent[..before]);
            assert_eq!(activity.begin_request(false), RequestHeadFindings::default());
            activity.record_received(&sent[before..during]);
            activity.end_request();
            activity.record_received(&sent[during..]);
            let found = activity.begin_request(true);
            assert_eq!((found.fragment, found.unseen), (true, false), "{before} {during}");
        }
    }

    #[tokio::test]
    async fn a_request_that_comes_first_is_answered_before_its_connection_makes_room() {
        use futures_util::FutureExt as _;

        let activity = ConnectionActivity::new();
        let told = || activity.wait_for_close_request().now_or_never().is_some();
        activity.request_close();
        activity.begin_request(false);
        assert_eq!((told(), activity.closes_after_response()), (false, true));
        assert_eq!(activity.evictable_request_start(), None, "it is told once");
        for awaits in [true, false] {
            activity.record_body_wait(awaits);
            assert_eq!(activity.eviction_rank().is_some(), awaits, "its body");
        }
        activity.record_write_progress(false);
        let stalled = activity.eviction_rank().expect("its reader takes nothing").since;
        activity.record_write_progress(false);
        assert_eq!(activity.eviction_rank().map(|waiting| waiting.since), Some(stalled), "as long as it takes nothing");
        activity.request_close();
        assert!(told());
    }
}
