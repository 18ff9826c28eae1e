//! Limits the request rate per server, for lists of names, which send thousands of requests to the same few servers.
//!
//! A configured server that asks for a pause gets it. For any server that asks for a pause, the concurrency limit is
//! halved. The limit then grows by one each time as many responses arrive as requests are allowed at once. It also
//! shrinks if a server's responses take several times as long as its fastest one, unless response time is no sign of
//! load. If a server refused one of several concurrent requests, that concurrency is seldom tried again, because each
//! trial may cause a refusal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};
use url::Origin;

/// Maximum number of concurrent requests to one server, until the response head. A list has at most as many names in
/// progress at once.
const MOST_AT_ONCE: f64 = 64.0;

/// Maximum number of servers that are paced. Requests to further ones are not paced. A list of agents has few hosts.
const MOST_SERVERS: usize = 4096;

/// Maximum pause, whatever a server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A response is slow if it takes more than this many times as long as the server's fastest one.
const SLOW: u32 = 4;

/// A response within this time is never slow.
const NEVER_SLOW: Duration = Duration::from_millis(500);

/// Roughly how many successful responses raise the limit by one, once it has reached the concurrency below the last
/// refusal. Each such trial may cause a refusal.
const ANSWERS_TO_A_TRIAL: f64 = 64.0;

/// The pace of each server. Cheap to clone; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Pacer(Arc<Mutex<HashMap<Origin, Arc<SharedServerPace>>>>);

/// The pace of one server, with notification of changes.
#[derive(Default)]
struct SharedServerPace {
    pace: Mutex<ServerPace>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct ServerPace {
    at_once: f64,
    in_flight: u32,
    resting_until: Option<Instant>,
    best: Option<Duration>,
    /// One less than the concurrency that the server refused, if it refused one of several requests.
    bears: Option<f64>,
}

impl Default for ServerPace {
    fn default() -> Self {
        Self { at_once: MOST_AT_ONCE, in_flight: 0, resting_until: None, best: None, bears: None }
    }
}

/// A permit to send one request, released on drop.
pub(crate) struct SendPermit {
    server: Option<Arc<SharedServerPace>>,
    began: Instant,
    /// Number of requests in flight when the permit was granted, including its own.
    in_flight: u32,
}

impl Pacer {
    /// Waits for a permit for `origin`; `None` if none is free by the deadline.
    pub(crate) async fn acquire_permit(&self, origin: Origin, deadline: Instant) -> Option<SendPermit> {
        let Some(server) = self.server(origin) else { return Some(SendPermit::granted(None, 1)) };
        loop {
            let changed = server.changed.notified();
            let next = server.lock_pace().try_begin(Instant::now());
            match next {
                NextSendTime::Now { in_flight } => {
                    return Some(SendPermit::granted(Some(Arc::clone(&server)), in_flight));
                }
                NextSendTime::At(time) if time >= deadline => return None,
                NextSendTime::At(time) => sleep_until(time).await,
                NextSendTime::AfterAnother => timeout_at(deadline, changed).await.ok()?,
            }
        }
    }

    /// The longest remaining pause among the servers that paused within the last `past`. Zero if all of these pauses
    /// are over; `None` if no server paused.
    pub(crate) fn remaining_pause(&self, past: Duration) -> Option<Duration> {
        let now = Instant::now();
        let servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ends =
            servers.values().filter_map(|server| server.lock_pace().resting_until).filter(|end| *end + past > now);
        ends.map(|end| end.saturating_duration_since(now)).max()
    }

    fn server(&self, origin: Origin) -> Option<Arc<SharedServerPace>> {
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if servers.len() >= MOST_SERVERS && !servers.contains_key(&origin) {
            return None;
        }
        Some(Arc::clone(servers.entry(origin).or_default()))
    }
}

impl SharedServerPace {
    fn lock_pace(&self) -> std::sync::MutexGuard<'_, ServerPace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the next request may be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum NextSendTime {
    /// Now. `in_flight` counts the requests in flight, including this one.
    Now {
        in_flight: u32,
    },
    At(Instant),
    AfterAnother,
}

impl ServerPace {
    fn try_begin(&mut self, now: Instant) -> NextSendTime {
        if let Some(end) = self.resting_until.filter(|end| *end > now) {
            return NextSendTime::At(end);
        }
        if f64::from(self.in_flight) >= self.at_once.floor() {
            return NextSendTime::AfterAnother;
        }
        self.in_flight += 1;
        NextSendTime::Now { in_flight: self.in_flight }
    }

    /// Lowers the limit after a refusal of a request that was one of `when_sent` in flight when it was sent. Requests
    /// may have been sent or completed since, so the larger of the counts then and now is halved. Halving the previous
    /// limit would not measure the server: with few requests at a time, each halving would cost a refusal, and each
    /// refusal a pause. A server that refuses a single request does not do so because of concurrency, so `bears` stays
    /// unchanged.
    fn lower_limit(&mut self, when_sent: u32) {
        let in_flight = when_sent.max(self.in_flight);
        if in_flight > 1 {
            self.at_once = self.at_once.min(f64::from(in_flight));
            self.bears = Some(f64::from(in_flight - 1));
        }
        self.at_once = (self.at_once / 2.0).max(1.0);
    }

    /// Raises the limit by one per as many responses as requests are allowed at once.
    fn raise_limit(&mut self) {
        let is_trial = self.bears.is_some_and(|bears| self.at_once >= bears);
        let step = if is_trial { ANSWERS_TO_A_TRIAL } else { self.at_once };
        self.at_once = (self.at_once + 1.0 / step).min(MOST_AT_ONCE);
    }

    fn start_pause(&mut self, when_sent: u32, pause: Duration, now: Instant) {
        self.lower_limit(when_sent);
        self.resting_until = self.resting_until.max(Some(now + pause.min(LONGEST_PAUSE)));
    }

    /// Adjusts the limit after a response that took this long.
    fn adjust_to_response(&mut self, took: Duration) {
        let best = self.best.map_or(took, |best| best.min(took));
        self.best = Some(best);
        if took > NEVER_SLOW && took > best * SLOW {
            self.at_once = (self.at_once * 0.75).max(1.0);
        } else {
            self.raise_limit();
        }
    }
}

impl SendPermit {
    fn granted(server: Option<Arc<SharedServerPace>>, in_flight: u32) -> Self {
        Self { server, began: Instant::now(), in_flight }
    }

    /// Records that the server asks for a pause. No request is sent to it during the pause.
    pub(crate) fn record_pause(self, pause: Duration) {
        if let Some(server) = &self.server {
            server.lock_pace().start_pause(self.in_flight, pause, Instant::now());
        }
    }

    /// Records that the server asks for fewer requests.
    pub(crate) fn record_throttling(self) {
        if let Some(server) = &self.server {
            server.lock_pace().lower_limit(self.in_flight);
        }
    }

    /// Records a response whose duration is no sign of load.
    pub(crate) fn record_untimed_response(self) {
        if let Some(server) = &self.server {
            server.lock_pace().raise_limit();
        }
    }

    /// Records a response, and its duration as a sign of load.
    pub(crate) fn record_response(self) {
        if let Some(server) = &self.server {
            server.lock_pace().adjust_to_response(self.began.elapsed());
        }
    }
}

impl Drop for SendPermit {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.lock_pace().in_flight -= 1;
            server.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use url::Url;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn origin(url: &str) -> Origin {
        Url::parse(url).expect("a URL").origin()
    }

    fn later() -> Instant {
        Instant::now() + 600 * SECOND
    }

    #[tokio::test(start_paused = true)]
    async fn requested_pause_applies_to_that_server_only() {
        let pacer = Pacer::default();
        let (one, other) = (|| origin("https://one.example"), || origin("https://other.example"));
        pacer.acquire_permit(one(), later()).await.expect("it may be asked").record_pause(10 * SECOND);
        assert_eq!(pacer.remaining_pause(Duration::ZERO), Some(10 * SECOND));
        assert!(pacer.acquire_permit(one(), Instant::now() + 9 * SECOND).await.is_none());
        assert!(pacer.acquire_permit(other(), later()).now_or_never().is_some());
        let began = Instant::now();
        pacer.acquire_permit(one(), later()).await.expect("after the pause").record_response();
        assert_eq!(began.elapsed(), 10 * SECOND);
        assert_eq!(pacer.remaining_pause(Duration::ZERO), None);
        assert_eq!(pacer.remaining_pause(SECOND), Some(Duration::ZERO), "it has rested a moment ago");
        pacer.acquire_permit(one(), later()).await.expect("it may be asked").record_pause(3600 * SECOND);
        assert_eq!(pacer.remaining_pause(Duration::ZERO), Some(LONGEST_PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_lower_concurrency_and_answers_raise_it() {
        let pacer = Pacer::default();
        let at_once = async || {
            let mut taken = Vec::new();
            while let Some(Some(leave)) = pacer.acquire_permit(origin("https://one.example"), later()).now_or_never() {
                taken.push(leave);
            }
            taken.len()
        };
        assert_eq!(at_once().await, 64);
        for _ in 0..10 {
            pacer
                .acquire_permit(origin("https://one.example"), later())
                .await
                .expect("it may be asked")
                .record_throttling();
        }
        assert_eq!(pacer.remaining_pause(Duration::ZERO), None);
        assert_eq!(at_once().await, 1);
        for _ in 0..20 {
            pacer
                .acquire_permit(origin("https://one.example"), later())
                .await
                .expect("it may be asked")
                .record_response();
        }
        assert_eq!(at_once().await, 6);
    }

    /// The successful responses arrive before or after the refusals of the same burst.
    #[tokio::test(start_paused = true)]
    async fn refused_concurrency_is_seldom_tried_again() {
        for answers_come_first in [false, true] {
            let pacer = Pacer::default();
            let leave = async || pacer.acquire_permit(origin("https://one.example"), later()).now_or_never().flatten();
            // The server accepts two concurrent requests.
            let ask = async || {
                let mut taken = Vec::new();
                while let Some(leave) = leave().await.filter(|_| taken.len() < 8) {
                    taken.push(leave);
                }
                let refused = taken.split_off(taken.len().min(2));
                let (answered, refusals) = (taken.len(), refused.len());
                let answer = || taken.into_iter().for_each(SendPermit::record_untimed_response);
                let refuse = || refused.into_iter().for_each(SendPermit::record_throttling);
                if answers_come_first {
                    answer();
                    refuse();
                } else {
                    refuse();
                    answer();
                }
                (answered, refusals)
            };
            assert_eq!(ask().await, (2, 6));
            let (mut answered, mut refused) = (0, 0);
            while answered < 640 {
                let (more, refusals) = ask().await;
                (answered, refused) = (answered + more, refused + refusals);
            }
            assert!((1..=16).contains(&refused), "{refused} refusals for {answered} answers");
        }
    }

    /// How many requests may be in flight after `refuse` has received `in_flight` permits, granted one after another.
    async fn left_after(in_flight: usize, refuse: impl FnOnce(Vec<SendPermit>)) -> usize {
        let pacer = Pacer::default();
        let leave = async || pacer.acquire_permit(origin("https://one.example"), later()).now_or_never().flatten();
        let mut sent = Vec::new();
        while sent.len() < in_flight {
            sent.push(leave().await.expect("it may be asked"));
        }
        refuse(sent);
        let mut left = Vec::new();
        while let Some(leave) = leave().await {
            left.push(leave);
        }
        left.len()
    }

    #[tokio::test(start_paused = true)]
    async fn one_refusal_halves_what_was_on_its_way_whichever_was_refused() {
        for (in_flight, half) in [(3, 1), (4, 2), (10, 5), (64, 32)] {
            for refused in [0, 1, in_flight / 2, in_flight - 1] {
                let left = left_after(in_flight, |mut sent| sent.remove(refused).record_throttling()).await;
                assert_eq!(left, half, "{refused} of {in_flight}, while the others are on their way");
            }
            let last_alone = |mut sent: Vec<SendPermit>| {
                let last = sent.pop().expect("the last one");
                drop(sent);
                last.record_throttling();
            };
            assert_eq!(left_after(in_flight, last_alone).await, half, "the last of {in_flight}, after the others");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_of_a_single_request_leaves_what_the_server_bears() {
        let mut pace = ServerPace { bears: Some(2.0), ..ServerPace::default() };
        pace.lower_limit(1);
        assert_eq!((pace.bears, pace.at_once), (Some(2.0), MOST_AT_ONCE / 2.0));
        pace.lower_limit(4);
        assert_eq!(pace.bears, Some(3.0));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_answers_without_load_keep_the_concurrency() {
        let pacer = Pacer::default();
        for took in [SECOND / 100, 20 * SECOND, 20 * SECOND] {
            let leave = pacer.acquire_permit(origin("https://one.example"), later()).await.expect("it may be asked");
            tokio::time::advance(took).await;
            leave.record_untimed_response();
        }
        let at_once = pacer.server(origin("https://one.example")).expect("a known server").lock_pace().at_once;
        assert_eq!(at_once, MOST_AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_becomes_slow_gets_fewer_requests_at_once() {
        let mut pace = ServerPace::default();
        pace.adjust_to_response(SECOND / 10);
        for _ in 0..20 {
            pace.adjust_to_response(SECOND);
        }
        assert!(pace.at_once < 2.0, "{pace:?}");
        let mut steady = ServerPace::default();
        for _ in 0..20 {
            steady.adjust_to_response(SECOND);
        }
        assert_eq!(steady.at_once, MOST_AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_on_when_another_request_ends_or_is_given_up() {
        let pacer = Pacer::default();
        let leave = || pacer.acquire_permit(origin("https://one.example"), later());
        for _ in 0..10 {
            leave().await.expect("it may be asked").record_throttling();
        }
        let only = leave().await.expect("one may go");
        let mut waiting = Box::pin(leave());
        assert!((&mut waiting).now_or_never().is_none());
        drop(only);
        assert!(waiting.await.is_some());
    }
}
