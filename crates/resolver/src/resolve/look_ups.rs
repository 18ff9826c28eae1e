//! Payment lookups, which determine a payee. At most one runs for each question, and few run concurrently in total. A
//! positive result serves the questions of the same moment, another one is cached as long as a verdict with its state
//! would be, and each only for the verdict that it belongs to.

use std::hash::Hash;
use std::sync::Arc;

use clresolve_core::freshness::fresh_for;
use clresolve_core::name::EnsName;
use clresolve_core::state::State;
use clresolve_verdict::trust::Resolution;
use jiff::{SignedDuration, Timestamp};
use moka::Entry;
use moka::future::Cache;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::cpu_share;

/// Maximum number of concurrent lookups of one kind, over all names. Each sends requests to endpoints and hosts, and
/// anyone's terms may start one.
const MAX_LOOK_UPS: usize = 16;

/// Maximum number of cached results. Each takes less than a kilobyte.
const KEPT: u64 = 4096;

/// The result type of a lookup.
pub(super) trait LookUpResult: Clone + Send + Sync + 'static {
    /// The state of a verdict with the same lifetime.
    fn state(&self) -> State;

    /// The result of a lookup that found nothing out, with the cause.
    fn undecided(cause: &str) -> Self;
}

/// The verdict that a lookup belongs to. A later verdict on the name is a different one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Beside {
    pub(super) name: EnsName,
    verdict: String,
}

impl Beside {
    /// The verdict of this answer, regardless of how its name was typed. `None` if it has no name in normal form.
    pub(super) fn of(resolution: &Resolution) -> Option<Self> {
        let name = EnsName::parse(resolution.verdict().name.normalized.as_deref()?).ok()?;
        let verdict = resolution.clone().asked_as(name.as_str()).verdict().id.clone();
        Some(Self { name, verdict })
    }
}

/// Lookups in progress and recent results, keyed by their subject. Clones share both.
pub(super) struct LookUps<A, V>(Arc<Inner<A, V>>);

struct Inner<A, V> {
    kept: Cache<(Beside, A), Arc<LookedUp<V>>>,
    places: Semaphore,
}

/// How long a result serves further questions. Nothing rereads these records at each head, so each decision reads them
/// itself, except those that arrive at nearly the same time.
const SHARED: SignedDuration = SignedDuration::from_secs(5);

/// A cached result and its expiry.
struct LookedUp<V> {
    found: V,
    until: Timestamp,
    /// Number of consecutive lookups without a decision, including this one. Each makes the pause longer, so that there
    /// are few.
    failures: u32,
}

impl<V> LookedUp<V> {
    fn is_given(&self, now: Timestamp) -> bool {
        now < self.until || clresolve_core::mutant!("claims-never-end")
    }
}

impl<A, V> Clone for LookUps<A, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A, V> Default for LookUps<A, V>
where
    A: Clone + Eq + Hash + Send + Sync + 'static,
    V: LookUpResult,
{
    fn default() -> Self {
        Self(Arc::new(Inner { kept: Cache::new(KEPT), places: Semaphore::new(MAX_LOOK_UPS) }))
    }
}

impl<A, V> LookUps<A, V>
where
    A: Clone + Eq + Hash + Send + Sync + 'static,
    V: LookUpResult,
{
    /// Returns the cached result, or that of `look_up`. Only one lookup runs for each subject. It continues if its
    /// caller gives up.
    pub(super) async fn answer(
        &self,
        beside: Beside,
        about: A,
        clock: &Arc<dyn Clock>,
        look_up: impl Future<Output = V> + Send + 'static,
    ) -> V {
        let key = (beside, about);
        if let Some(kept) = self.0.kept.get(&key).await.filter(|kept| kept.is_given(clock.now())) {
            return kept.found.clone();
        }
        let (this, clock) = (Arc::clone(&self.0), Arc::clone(clock));
        let task = cpu_share::spawn(async move {
            let kept_or_found = async |known: Option<Entry<_, Arc<LookedUp<V>>>>| {
                this.kept_or_found(known.map(Entry::into_value), &*clock, look_up).await
            };
            this.kept.entry(key).and_upsert_with(kept_or_found).await.into_value()
        });
        task.await.map_or_else(|_| V::undecided("the lookup was aborted"), |kept| kept.found.clone())
    }
}

impl<A, V: LookUpResult> Inner<A, V> {
    async fn kept_or_found(
        &self,
        known: Option<Arc<LookedUp<V>>>,
        clock: &dyn Clock,
        look_up: impl Future<Output = V>,
    ) -> Arc<LookedUp<V>> {
        let now = clock.now();
        let failures = match known {
            Some(kept) if kept.is_given(now) => return kept,
            Some(kept) => kept.failures,
            None => 0,
        };
        let place = self.places.try_acquire();
        if place.is_err() && !clresolve_core::mutant!("look-ups-without-places") {
            return Arc::new(LookedUp { found: V::undecided("too many look-ups are under way"), until: now, failures });
        }
        let found = look_up.await;
        // A result's age counts from the start of its lookup, a pause from the end.
        let (until, failures) = match found.state() {
            State::Trusted => (now.checked_add(SHARED).unwrap_or(now), 0),
            State::Untrusted => (after(clock.now(), State::Untrusted, 0), 0),
            State::Indeterminate => (after(clock.now(), State::Indeterminate, failures), failures + 1),
        };
        Arc::new(LookedUp { found, until, failures })
    }
}

/// When a result expires that was obtained at `now` and has the lifetime of this state. Returns `now` if the time would
/// overflow.
pub(super) fn after(now: Timestamp, state: State, failures: u32) -> Timestamp {
    let fresh = SignedDuration::try_from(fresh_for(state, failures));
    fresh.ok().and_then(|fresh| now.checked_add(fresh).ok()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A result with the state that determines its lifetime.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Answer(State, String);

    impl LookUpResult for Answer {
        fn state(&self) -> State {
            self.0
        }

        fn undecided(cause: &str) -> Self {
            Self(State::Indeterminate, cause.to_owned())
        }
    }

    struct Stopped(Mutex<Timestamp>);

    impl Stopped {
        fn add(&self, seconds: i64) {
            let mut now = self.0.lock().expect("no panic before");
            *now += SignedDuration::from_secs(seconds);
        }
    }

    impl Clock for Stopped {
        fn now(&self) -> Timestamp {
            *self.0.lock().expect("no panic before")
        }
    }

    fn beside(verdict: &str) -> Beside {
        Beside { name: EnsName::parse("a.eth").expect("a name"), verdict: verdict.to_owned() }
    }

    /// A clock, and a question that returns how many lookups were made for it.
    fn stage() -> (Arc<Stopped>, impl AsyncFn(&str, State) -> u32) {
        let clock = Arc::new(Stopped(Mutex::new(Timestamp::UNIX_EPOCH)));
        let (look_ups, made) = (LookUps::<(), Answer>::default(), Arc::new(AtomicU32::new(0)));
        let reads = Arc::clone(&clock);
        let ask = async move |verdict: &str, state: State| {
            let (clock, counts) = (Arc::clone(&reads) as Arc<dyn Clock>, Arc::clone(&made));
            let found = async move {
                counts.fetch_add(1, Ordering::Relaxed);
                Answer(state, String::new())
            };
            look_ups.answer(beside(verdict), (), &clock, found).await;
            made.load(Ordering::Relaxed)
        };
        (clock, ask)
    }

    #[tokio::test]
    async fn what_was_found_is_kept_for_its_verdict_alone() {
        let (_, ask) = stage();
        assert_eq!((ask("1", State::Trusted).await, ask("1", State::Trusted).await), (1, 1));
        assert_eq!(ask("2", State::Trusted).await, 2);
    }

    #[tokio::test]
    async fn a_result_is_kept_for_a_moment_and_an_absence_as_long_as_a_verdict() {
        let absence = fresh_for(State::Untrusted, 0).as_secs() as i64;
        for (state, seconds) in [(State::Trusted, SHARED.as_secs()), (State::Untrusted, absence)] {
            let (clock, ask) = stage();
            ask("1", state).await;
            clock.add(seconds - 1);
            assert_eq!(ask("1", state).await, 1, "{state}");
            clock.add(1);
            assert_eq!(ask("1", state).await, 2, "{state}");
        }
    }

    /// The pause grows with each failure.
    #[tokio::test]
    async fn failures_make_look_ups_rarer() {
        let (clock, ask) = stage();
        let mut last = 0;
        for _ in 0..120 {
            last = ask("1", State::Indeterminate).await;
            clock.add(1);
        }
        assert_eq!(last, 7, "after 0, 1, 3, 7, 15, 31 and 63 s");
    }

    /// While the maximum number of lookups is running, no further one starts.
    #[tokio::test]
    async fn look_ups_at_the_same_time_are_bounded() {
        let clock: Arc<dyn Clock> = Arc::new(Stopped(Mutex::new(Timestamp::UNIX_EPOCH)));
        let look_ups = LookUps::<usize, Answer>::default();
        let begun = (0..MAX_LOOK_UPS).map(|place| look_ups.answer(beside("1"), place, &clock, pending()));
        let one_more = async {
            while look_ups.0.places.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            let found = ready(Answer(State::Trusted, String::new()));
            look_ups.answer(beside("1"), MAX_LOOK_UPS, &clock, found).await
        };
        tokio::select! {
            _ = futures_util::future::join_all(begun) => panic!("none ends"),
            answer = one_more => assert_eq!(answer, Answer::undecided("too many look-ups are under way")),
        }
    }
}
