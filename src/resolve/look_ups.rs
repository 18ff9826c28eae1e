//! Look-ups beside a verdict, which settle a payee: one at a time for a question, few at the same time over all, and what
//! they find is kept as long as a verdict of its kind would be, and for its own verdict alone.

use std::hash::Hash;
use std::sync::Arc;

use clresolve_core::freshness::fresh_for;
use jiff::{SignedDuration, Timestamp};
use moka::Entry;
use moka::future::Cache;
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::cpu_share;
use crate::name::EnsName;
use crate::verdict::{Resolution, State};

/// Look-ups of one kind at the same time, over all names: each asks endpoints and hosts, and anybody's terms may start one.
const MAX_LOOK_UPS: usize = 16;

/// Answers that are kept; each takes less than a kilobyte.
const KEPT: u64 = 4096;

/// What a look-up may find.
pub(super) trait LookUpResult: Clone + Send + Sync + 'static {
    /// The state of a verdict that holds for as long.
    fn state(&self) -> State;

    /// Nothing was found out, for this cause.
    fn undecided(cause: &str) -> Self;
}

/// A verdict beside which something is looked up. A later verdict on the name is another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Beside {
    pub(super) name: EnsName,
    verdict: String,
}

impl Beside {
    /// The verdict of this answer, however its name was typed; `None` where it has no name in normal form.
    pub(super) fn of(resolution: &Resolution) -> Option<Self> {
        let name = EnsName::parse(resolution.verdict().name.normalized.as_deref()?).ok()?;
        let verdict = resolution.clone().asked_as(name.as_str()).verdict().id.clone();
        Some(Self { name, verdict })
    }
}

/// Look-ups, by what they are about, and what they found a moment ago. Clones share both.
pub(super) struct LookUps<A, V>(Arc<Inner<A, V>>);

struct Inner<A, V> {
    kept: Cache<(Beside, A), Arc<LookedUp<V>>>,
    places: Semaphore,
}

/// What was found, and until when it is given again.
struct LookedUp<V> {
    found: V,
    until: Timestamp,
    /// Look-ups in a row that decided nothing, this one included. Each makes the pause longer, so there are few.
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
    /// What a look-up about this found a moment ago, else what `look_up` finds. One at a time is made about the same; it
    /// goes on where its asker gives up.
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
        task.await.map_or_else(|_| V::undecided("the look-up was broken off"), |kept| kept.found.clone())
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
        // What was found is as old as the question for it; a pause begins when the look-up is over.
        let (until, failures) = match found.state() {
            State::Trusted => (after(now, State::Trusted, 0), 0),
            State::Untrusted => (after(clock.now(), State::Untrusted, 0), 0),
            State::Indeterminate => (after(clock.now(), State::Indeterminate, failures), failures + 1),
        };
        Arc::new(LookedUp { found, until, failures })
    }
}

/// The end of what is known since `now` and holds as long as a verdict of this state; `now` itself where no time has room
/// for it.
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

    /// What was found, by the state of a verdict that holds for as long.
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

    /// A clock, and a question that says how many look-ups were made for it.
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
    async fn what_was_found_is_kept_as_long_as_a_verdict_of_its_kind() {
        for state in [State::Trusted, State::Untrusted] {
            let (clock, ask) = stage();
            ask("1", state).await;
            clock.add(fresh_for(state, 0).as_secs() as i64 - 1);
            assert_eq!(ask("1", state).await, 1, "{state}");
            clock.add(1);
            assert_eq!(ask("1", state).await, 2, "{state}");
        }
    }

    /// Each pause after a failure is longer.
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

    /// While as many as may be under way are under way, one more is not begun.
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
