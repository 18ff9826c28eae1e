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

use super::head_scan::{HeadFindings, HeadScan};

/// What one connection is doing, shared between its stream, its handler and the [set](super::connection_set) it is in.
pub(super) struct Activity {
    now: Mutex<Now>,
    /// Notified when the connection must close to make room for another.
    told: Notify,
}

#[derive(Debug)]
struct Now {
    phase: Phase,
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
    heads: HeadScan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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
pub(super) struct Waiting {
    /// Whether the connection is evicted last: its latest request was to the gate, or it is too new to have sent one.
    pub(super) is_spared: bool,
    pub(super) since: Instant,
}

impl Activity {
    pub(super) fn new() -> Self {
        let now = Now {
            phase: Phase::Idle,
            idle_since: Instant::now(),
            stalled_since: None,
            body_awaited_since: None,
            has_asked: false,
            has_asked_the_gate: false,
            makes_room: false,
            ends_after_answer: false,
            heads: HeadScan::default(),
        };
        Self { now: Mutex::new(now), told: Notify::new() }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The deadline for a complete request head: `head` after its first byte, and `idle` after the last response. The
    /// second deadline also applies to bytes that the client sent ahead of a response (pipelining).
    pub(super) fn head_is_due(&self, idle: Duration, head: Duration) -> Option<Instant> {
        let now = self.now();
        let idle_ends = now.idle_since + idle;
        match now.phase {
            Phase::Idle => Some(idle_ends),
            Phase::Head { since } => {
                Some(idle_ends.min(since + if clresolve_core::mutant!("slow-heads") { idle } else { head }))
            }
            Phase::Request { .. } => None,
        }
    }

    /// Whether the server can still send an error response: part of a head has arrived, and all earlier responses are
    /// written.
    pub(super) fn can_be_refused(&self) -> bool {
        let now = self.now();
        matches!(now.phase, Phase::Head { .. }) && now.stalled_since.is_none()
    }

    /// How the connection ranks for eviction if it is waiting for its client. Closing it then loses no response.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        let now = self.now();
        let since = match now.phase {
            _ if now.makes_room => return None,
            Phase::Idle | Phase::Head { .. } => now.stalled_since.unwrap_or(now.idle_since),
            Phase::Request { .. } => now.waits_for_its_client()?,
        };
        let is_new = !now.has_asked && now.idle_since.elapsed() < NEWCOMER;
        let is_the_gates = now.has_asked_the_gate && !clresolve_core::mutant!("what-asked-the-gate-is-cut");
        Some(Waiting { is_spared: is_the_gates || is_new, since })
    }

    /// When the current request started, if it does not depend on its client and its response would not be the last
    /// anyway.
    pub(super) fn in_work(&self) -> Option<Instant> {
        let now = self.now();
        now.works_since().filter(|_| !now.ends_after_answer)
    }

    /// Asks the connection to close: at once if it is waiting for its client, otherwise after the response in progress.
    pub(super) fn make_room(&self) {
        self.now().makes_room = true;
        self.told.notify_one();
    }

    /// Whether the connection was asked to close while a request was in progress.
    pub(super) fn ends_after_answer(&self) -> bool {
        self.now().ends_after_answer
    }

    /// Completes when the connection has been asked to close and is waiting for its client. If a request is in
    /// progress, its response becomes the last one.
    pub(super) async fn told_to_make_room(&self) {
        loop {
            self.told.notified().await;
            let mut now = self.now();
            if now.works_since().is_none() {
                return;
            }
            (now.makes_room, now.ends_after_answer) = (false, true);
        }
    }

    /// Records that a head is complete. Returns the findings of the scan of that head.
    pub(super) fn request_begins(&self, asks_the_gate: bool) -> HeadFindings {
        let mut now = self.now();
        (now.phase, now.has_asked) = (Phase::Request { since: Instant::now() }, true);
        now.has_asked_the_gate = asks_the_gate;
        now.heads.next()
    }

    /// Records that the response has been produced.
    pub(super) fn request_ends(&self) {
        let mut now = self.now();
        (now.phase, now.idle_since) = (Phase::Idle, Instant::now());
    }

    fn has_received(&self, bytes: &[u8]) {
        let mut now = self.now();
        now.heads.take(bytes);
        if now.phase == Phase::Idle {
            now.phase = Phase::Head { since: Instant::now() };
        }
    }

    fn awaits_body(&self, awaits: bool) {
        let mut now = self.now();
        now.body_awaited_since = awaits.then(|| now.body_awaited_since.unwrap_or_else(Instant::now));
    }

    fn has_written(&self, progress: bool) {
        let mut now = self.now();
        now.stalled_since = if progress { None } else { now.stalled_since.or_else(|| Some(Instant::now())) };
    }
}

impl Now {
    /// When the request in progress started to wait for its client.
    fn waits_for_its_client(&self) -> Option<Instant> {
        self.stalled_since.or(self.body_awaited_since)
    }

    /// When the request in progress started, if it does not wait for its client.
    fn works_since(&self) -> Option<Instant> {
        match self.phase {
            Phase::Request { since } if self.waits_for_its_client().is_none() => Some(since),
            _ => None,
        }
    }
}

/// A stream that records the progress of reads and writes in an [`Activity`].
pub(super) struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
}

impl<S> Watched<S> {
    pub(super) const fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity }
    }

    fn watch<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.activity.has_written(polled.is_ready());
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(received @ [_, ..]) = buffer.filled().get(before..) {
            self.activity.has_received(received);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(polled)
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
        self.watch(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// A request body that records whether the client is making it wait.
pub(super) struct ArrivingBody {
    body: Incoming,
    activity: Arc<Activity>,
}

impl ArrivingBody {
    pub(super) const fn new(body: Incoming, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        self.activity.awaits_body(false);
    }
}

impl HttpBody for ArrivingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        self.activity.awaits_body(polled.is_pending() && !clresolve_core::mutant!("stalled-bodies-are-in-work"));
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
pub(super) struct WatchedBody {
    body: Body,
    _end: RequestGuard,
}

impl WatchedBody {
    pub(super) const fn new(body: Body, activity: Arc<Activity>) -> Self {
        Self { body, _end: RequestGuard(activity) }
    }
}

/// Reports the end of the request when it is dropped.
struct RequestGuard(Arc<Activity>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.request_ends();
    }
}

impl HttpBody for WatchedBody {
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
        let activity = Activity::new();
        let (idle, head) = (Duration::from_secs(75), Duration::from_secs(10));
        let opened = activity.now().idle_since;
        assert_eq!(activity.head_is_due(idle, head), Some(opened + idle));
        activity.has_received(b"G");
        let due = activity.head_is_due(idle, head).expect("a head is under way");
        activity.has_received(b"E");
        assert_eq!(activity.head_is_due(idle, head), Some(due), "only the first byte counts");
        assert!((opened + head..opened + idle).contains(&due));
        assert_eq!(activity.head_is_due(head, idle), Some(opened + head), "both bounds hold");
        assert!(activity.can_be_refused());
        activity.has_written(false);
        assert!(!activity.can_be_refused(), "an answer before it is not written");
        activity.request_begins(false);
        assert_eq!(activity.head_is_due(idle, head), None);
    }

    /// Bytes of the next head may arrive before, with or after the response.
    #[test]
    fn a_head_that_came_ahead_of_an_answer_is_scanned_whole() {
        let first = b"POST /v1/lint HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}".as_slice();
        let next = b"GET /v1/gate/a.eth#b HTTP/1.1\r\n\r\n".as_slice();
        let sent = [first, next].concat();
        let head = first.len() - 2;
        for (before, during) in (head..=sent.len()).flat_map(|at| (at..=sent.len()).map(move |then| (at, then))) {
            let activity = Activity::new();
            activity.has_received(&sent[..before]);
            assert_eq!(activity.request_begins(false), HeadFindings::default());
            activity.has_received(&sent[before..during]);
            activity.request_ends();
            activity.has_received(&sent[during..]);
            let found = activity.request_begins(true);
            assert_eq!((found.fragment, found.unseen), (true, false), "{before} {during}");
        }
    }

    #[tokio::test]
    async fn a_request_that_comes_first_is_answered_before_its_connection_makes_room() {
        use futures_util::FutureExt as _;

        let activity = Activity::new();
        let told = || activity.told_to_make_room().now_or_never().is_some();
        activity.make_room();
        activity.request_begins(false);
        assert_eq!((told(), activity.ends_after_answer()), (false, true));
        assert_eq!(activity.in_work(), None, "it is told once");
        for awaits in [true, false] {
            activity.awaits_body(awaits);
            assert_eq!(activity.waiting().is_some(), awaits, "its body");
        }
        activity.has_written(false);
        let stalled = activity.waiting().expect("its reader takes nothing").since;
        activity.has_written(false);
        assert_eq!(activity.waiting().map(|waiting| waiting.since), Some(stalled), "as long as it takes nothing");
        activity.make_room();
        assert!(told());
    }
}
