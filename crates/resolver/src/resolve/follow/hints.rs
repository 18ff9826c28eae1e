//! When an endpoint is asked for news: after a time, or as soon as it says over its WebSocket that there is a new block.
//!
//! What a stream says is a hint that it is worth asking now, and no more. The poll that it wakes is the one that time would
//! make, so all that holds for polls holds here: what is read, what is believed, and what a gap does.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use clresolve_chain::{MessageStream, NewHeads, Notice, StreamEnd};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use url::Url;

#[cfg(feature = "web-socket")]
use crate::fetch::WebSocket;
use crate::fetch::{Egress, FetchError};
#[cfg(not(feature = "web-socket"))]
use crate::fetch::{EgressViolation, Forbidden};
use crate::telemetry;

/// Shortest time between two polls of an endpoint, whatever its stream says. So a flood makes no more work than an
/// endpoint of the operator's own does that has no stream.
const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// Time between two polls of an endpoint whose stream tells of blocks: a slot of mainnet. They find what a stream leaves
/// out.
const SAFETY_PAUSE: Duration = Duration::from_secs(12);

/// Pause before a stream is opened again. It doubles each time, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest such pause. After a stream that lasted as long, the pauses begin anew.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Whether one endpoint has something new, by its own word.
#[derive(Default)]
pub(super) struct Hints {
    /// A hint came that no poll has answered yet.
    is_pending: AtomicBool,
    /// Its stream has told of a block, and stands.
    is_live: AtomicBool,
    bell: Notify,
}

impl Hints {
    /// Waits until the endpoint is to be asked again, which without a hint is after `pause`.
    pub(super) async fn wait(&self, pause: Duration) {
        let least =
            if clresolve_core::mutant!("floods-wake-without-bound") { Duration::ZERO } else { pause.min(LEAST_PAUSE) };
        sleep(least).await;
        let pause = if self.is_live.load(Ordering::Relaxed) { pause.max(SAFETY_PAUSE) } else { pause };
        let _ = timeout(pause.saturating_sub(least), self.bell.notified()).await;
        self.is_pending.store(false, Ordering::Relaxed);
    }

    /// The stream told of a block. Says whether a poll was still to come for another one.
    fn told(&self) -> bool {
        self.is_live.store(true, Ordering::Relaxed);
        self.wake()
    }

    /// The stream ended: blocks may have been missed, and time alone wakes again.
    fn ended(&self) {
        if !clresolve_core::mutant!("dead-streams-stay-live") {
            self.is_live.store(false, Ordering::Relaxed);
        }
        self.wake();
    }

    fn wake(&self) -> bool {
        let was_pending = self.is_pending.swap(true, Ordering::Relaxed);
        self.bell.notify_one();
        was_pending
    }
}

/// The door to WebSockets that the operator configured.
#[async_trait]
pub(in crate::resolve) trait Streams: Send + Sync {
    /// Opens the one at this URL.
    async fn open(&self, url: &Url) -> Result<Box<dyn MessageStream>, FetchError>;
}

#[cfg(not(feature = "web-socket"))]
#[async_trait]
impl Streams for Egress {
    async fn open(&self, url: &Url) -> Result<Box<dyn MessageStream>, FetchError> {
        Err(Forbidden { hop: 0, target: url.authority().to_owned(), why: EgressViolation::Disabled }.into())
    }
}

#[cfg(feature = "web-socket")]
#[async_trait]
impl Streams for Egress {
    async fn open(&self, url: &Url) -> Result<Box<dyn MessageStream>, FetchError> {
        Ok(Box::new(Open(self.operator_web_socket(url).await?)))
    }
}

#[cfg(feature = "web-socket")]
struct Open(WebSocket);

#[cfg(feature = "web-socket")]
#[async_trait]
impl MessageStream for Open {
    async fn send(&mut self, text: String) -> Result<(), FetchError> {
        self.0.send(text).await
    }

    async fn next(&mut self) -> Result<String, FetchError> {
        self.0.next().await
    }
}

/// Whether a subscription to new blocks is taken at this URL.
pub(in crate::resolve) async fn subscribes(streams: &dyn Streams, url: &Url) -> Result<(), StreamEnd> {
    NewHeads::subscribe(streams.open(url).await?).await.map(drop)
}

/// Keeps the stream of one endpoint open.
pub(super) struct Subscriber {
    pub(super) streams: Arc<dyn Streams>,
    pub(super) url: Url,
    pub(super) label: String,
    pub(super) hints: Arc<Hints>,
}

impl Subscriber {
    /// Opens the stream again and again. Never ends.
    pub(super) async fn run(self) {
        telemetry::stream_is_configured(&self.label);
        let mut pauses = Pauses::default();
        loop {
            let began = Instant::now();
            let Err(end) = self.listen().await;
            self.hints.ended();
            telemetry::stream_ended(&self.label, end.as_str());
            let pause = pauses.next(began.elapsed());
            tracing::info!(endpoint = self.label, %end, again_after_ms = pause.as_millis() as u64, "stream of blocks ended");
            sleep(pause).await;
        }
    }

    /// Takes hints until the stream ends.
    async fn listen(&self) -> Result<Infallible, StreamEnd> {
        let mut heads = NewHeads::subscribe(self.streams.open(&self.url).await?).await?;
        let _open = telemetry::stream_opens(&self.label);
        // Blocks may have come since the last poll.
        self.hints.wake();
        loop {
            let ignored = match heads.next().await? {
                Notice::Head if self.hints.told() => "waiting",
                Notice::Head => continue,
                Notice::Unasked => "unasked",
            };
            telemetry::notice_ignored(&self.label, ignored);
        }
    }
}

/// The pauses between one stream and the next.
#[derive(Default)]
struct Pauses {
    /// Streams in a row that ended soon.
    short: u32,
}

impl Pauses {
    /// The pause after a stream that lasted so long: half of its time at least, and the rest by chance, so that many
    /// daemons do not come back at once.
    fn next(&mut self, lasted: Duration) -> Duration {
        if lasted >= LONGEST_PAUSE {
            self.short = 0;
        }
        let pause = FIRST_PAUSE.saturating_mul(1_u32.checked_shl(self.short).unwrap_or(u32::MAX)).min(LONGEST_PAUSE);
        self.short = self.short.saturating_add(1);
        pause / 2 + (pause / 2).mul_f64(chance())
    }
}

/// A number from 0 to 1. A new hasher has a key of its own, which is chance enough to spread calls.
fn chance() -> f64 {
    f64::from(RandomState::new().hash_one(0_u8) as u32) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::pending;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;

    use serde_json::json;

    use super::*;
    use crate::fetch::Cause;

    /// How one stream goes on after its subscription.
    #[derive(Clone, Copy)]
    enum Course {
        /// The time between two blocks, and how many come before it closes.
        Blocks(Duration, u64),
        Silence,
        Refusal,
    }

    /// Streams with these courses, one after the other; then none can be opened.
    struct Played {
        courses: Mutex<VecDeque<Course>>,
        opened: AtomicU64,
    }

    #[async_trait]
    impl Streams for Played {
        async fn open(&self, _: &Url) -> Result<Box<dyn MessageStream>, FetchError> {
            self.opened.fetch_add(1, Ordering::Relaxed);
            match self.courses.lock().unwrap().pop_front() {
                Some(Course::Refusal) | None => Err(Cause::Status(404).into()),
                Some(course) => Ok(Box::new(Playing { course, is_asked: false })),
            }
        }
    }

    struct Playing {
        course: Course,
        is_asked: bool,
    }

    #[async_trait]
    impl MessageStream for Playing {
        async fn send(&mut self, _: String) -> Result<(), FetchError> {
            self.is_asked = true;
            Ok(())
        }

        async fn next(&mut self) -> Result<String, FetchError> {
            if std::mem::take(&mut self.is_asked) {
                return Ok(json!({"id": 1, "result": "0x1"}).to_string());
            }
            match &mut self.course {
                Course::Blocks(_, 0) => Err(Cause::Truncated.into()),
                Course::Blocks(between, left) => {
                    *left -= 1;
                    sleep(*between).await;
                    Ok(json!({"method": "eth_subscription", "params": {"subscription": "0x1"}}).to_string())
                }
                Course::Silence | Course::Refusal => pending().await,
            }
        }
    }

    /// Polls of an endpoint whose streams have these courses, in so much time. With the times of streams that were opened.
    async fn polls(courses: &[Course], pause: Duration, within: Duration) -> (u64, u64) {
        let courses = Mutex::new(courses.iter().copied().collect());
        let played = Arc::new(Played { courses, opened: AtomicU64::new(0) });
        let hints = Arc::new(Hints::default());
        let subscriber = Subscriber {
            streams: Arc::clone(&played) as Arc<dyn Streams>,
            url: Url::parse("ws://a.example").unwrap(),
            label: "a".to_owned(),
            hints: Arc::clone(&hints),
        };
        let polls = AtomicU64::new(0);
        let polling = async {
            loop {
                hints.wait(pause).await;
                polls.fetch_add(1, Ordering::Relaxed);
            }
        };
        let _ = timeout(within, async { tokio::join!(subscriber.run(), polling) }).await;
        (polls.into_inner(), played.opened.load(Ordering::Relaxed))
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_hint_wakes_long_before_the_time_does() {
        let blocks = Course::Blocks(Duration::from_secs(12), u64::MAX);
        let (polls, opened) = polls(&[blocks], MINUTE * 60, MINUTE * 10 + Duration::from_secs(1)).await;
        // One when the stream opens, and one for each block.
        assert_eq!((polls, opened), (51, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_wakes_no_more_often_than_the_least_pause() {
        let flood = Course::Blocks(Duration::from_micros(100), u64::MAX);
        let within = Duration::from_secs(10);
        let (polls, _) = polls(&[flood], MINUTE, within).await;
        assert!(u128::from(polls) <= within.as_millis() / LEAST_PAUSE.as_millis(), "{polls}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_tells_of_blocks_makes_polls_rare_and_one_that_does_not_changes_nothing() {
        let pause = Duration::from_secs(1);
        let rare = Course::Blocks(Duration::from_secs(50), u64::MAX);
        let (with_blocks, _) = polls(&[rare], pause, MINUTE * 5).await;
        // Until the first block by time, then each 12 s at most, and for each block.
        assert!((70..90).contains(&with_blocks), "{with_blocks}");
        for other in [&[Course::Silence][..], &[Course::Refusal], &[]] {
            let (polls, _) = polls(other, pause, MINUTE * 5).await;
            assert!((295..320).contains(&polls), "{polls}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn polling_goes_on_when_a_stream_falls_silent_or_ends() {
        let pause = Duration::from_secs(1);
        let ended = Course::Blocks(Duration::from_secs(10), 1);
        let (polls, _) = polls(&[ended], pause, MINUTE * 5).await;
        assert!(polls > 280, "{polls}");
        let hints = Hints::default();
        hints.told();
        hints.ended();
        hints.wait(pause).await;
        let began = Instant::now();
        hints.wait(pause).await;
        assert_eq!(began.elapsed(), pause);
    }

    /// Streams that end at once are opened about once a minute in the end.
    #[tokio::test(start_paused = true)]
    async fn streams_that_end_at_once_are_opened_ever_more_seldom() {
        let closes_at_once = [Course::Blocks(Duration::ZERO, 1); 200];
        let (polls, opened) = polls(&closes_at_once, MINUTE * 60, MINUTE * 60).await;
        assert!((60..140).contains(&opened), "{opened}");
        assert!(polls <= 2 * opened + 1, "{polls}");
    }

    #[test]
    fn pauses_grow_vary_and_begin_anew() {
        let mut pauses = Pauses::default();
        let mut last = Duration::ZERO;
        for longest in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
            last = pauses.next(Duration::ZERO);
            assert!(last >= Duration::from_secs(longest) / 2 && last <= Duration::from_secs(longest), "{last:?}");
        }
        assert!((0..8).any(|_| pauses.next(Duration::ZERO) != last));
        assert!(pauses.next(LONGEST_PAUSE) <= FIRST_PAUSE);
    }
}
