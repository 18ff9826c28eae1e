//! Payment lookups, which determine a payee. Each question has at most one lookup in flight, and the number of
//! concurrent lookups is limited. Questions that arrive during a lookup share its result. The result is cached for
//! later questions only if it is final or not positive, with the lifetime of a verdict of the same state, or while the
//! head that confirms it is the newest, and only for the verdict to which it belongs.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clresolve_core::freshness::verdict_fresh_duration;
use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_verdict::trust::Resolution;
use futures_util::future::{BoxFuture, FutureExt as _};
use jiff::{SignedDuration, Timestamp};
use moka::Entry;
use moka::future::Cache;
use tokio::sync::Semaphore;

use crate::cache::HeadSequenceNumber;
use crate::clock::Clock;
use crate::cpu_share;

/// Maximum number of concurrent lookups of one kind, over all names. Each sends requests to endpoints and hosts, and
/// anyone's terms may start one.
const MAX_LOOK_UPS: usize = 16;

/// Maximum number of cached results, each less than a kilobyte.
const KEPT: u64 = 4096;

pub(super) trait LookupCacheValue: Clone + Send + Sync + 'static {
    /// Whether positive results are final, so that later questions can reuse them.
    const IS_FINAL: bool = false;

    /// The head that confirms a positive result. Questions reuse the result while this is the newest head.
    fn confirming_head(&self) -> Option<HeadSequenceNumber> {
        None
    }

    /// The state of a verdict with the same lifetime.
    fn lifetime_state(&self) -> TrustState;

    /// The result of a lookup that determined nothing, with the cause.
    fn undecided(cause: &str) -> Self;
}

/// The verdict that a lookup belongs to. A later verdict on the name is a different one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ResolvedVerdictKey {
    pub(super) name: EnsName,
    verdict: String,
    /// SHA-256 of the card in hex, if the verdict is trusted.
    pub(super) card: Option<String>,
}

impl ResolvedVerdictKey {
    /// The verdict of this answer, regardless of how its name was typed. `None` if it has no name in normal form.
    pub(super) fn from_resolution(resolution: &Resolution) -> Option<Self> {
        let found = resolution.verdict();
        let name = EnsName::parse(found.name.normalized.as_deref()?).ok()?;
        let card = found.identity.as_ref().filter(|_| found.state == TrustState::Trusted);
        let card = card.map(|agent| agent.card.sha256.clone());
        let verdict = resolution.clone().with_input_name(name.as_str()).verdict().id.clone();
        Some(Self { name, verdict, card })
    }
}

/// Lookups in progress and recent results, keyed by their subject. Clones share both.
pub(super) struct LookupCache<A, V>(Arc<LookupCacheState<A, V>>);

struct LookupCacheState<A, V> {
    kept: Cache<(ResolvedVerdictKey, A), Arc<LookupCacheEntry<V>>>,
    permits: Semaphore,
    ended: AtomicU64,
}

/// A cached result and its expiry.
struct LookupCacheEntry<V> {
    found: V,
    /// When the result expires for questions that arrive after its lookup.
    until: Timestamp,
    /// Number of lookups that had ended, including this one.
    ended: u64,
    /// Number of consecutive lookups without a decision, including this one. Each makes the pause longer, so that there
    /// are few.
    failures: u32,
}

impl<V: LookupCacheValue> LookupCacheEntry<V> {
    /// Whether the result answers a question that arrived under `head` when `arrived` lookups had ended.
    fn may_answer_question(&self, arrived: u64, now: Timestamp, head: Option<HeadSequenceNumber>) -> bool {
        let is_confirmed = head.is_some() && self.found.confirming_head() == head;
        arrived < self.ended || now < self.until || is_confirmed || clresolve_core::mutant!("claims-never-end")
    }
}

impl<A, V> Clone for LookupCache<A, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A, V> Default for LookupCache<A, V>
where
    A: Clone + Eq + Hash + Send + Sync + 'static,
    V: LookupCacheValue,
{
    fn default() -> Self {
        let (kept, permits) = (Cache::new(KEPT), Semaphore::new(MAX_LOOK_UPS));
        Self(Arc::new(LookupCacheState { kept, permits, ended: AtomicU64::new(0) }))
    }
}

impl<A, V> LookupCache<A, V>
where
    A: Clone + Eq + Hash + Send + Sync + 'static,
    V: LookupCacheValue,
{
    /// Returns the cached result, the result of the lookup in flight, or that of `look_up`. Each subject has at most
    /// one lookup in flight, which continues if its caller gives up.
    pub(super) fn get_or_look_up(
        &self,
        beside: ResolvedVerdictKey,
        about: A,
        clock: &Arc<dyn Clock>,
        look_up: impl Future<Output = V> + Send + 'static,
    ) -> impl Future<Output = V> + Send {
        self.get_or_look_up_at_head(None, beside, about, clock, look_up.boxed())
    }

    /// Like [`LookupCache::get_or_look_up`]. Also returns a result that `head`, the newest one, confirms. `look_up` is
    /// boxed, so that the futures of questions are small.
    pub(super) async fn get_or_look_up_at_head(
        &self,
        head: Option<HeadSequenceNumber>,
        beside: ResolvedVerdictKey,
        about: A,
        clock: &Arc<dyn Clock>,
        look_up: BoxFuture<'static, V>,
    ) -> V {
        let (key, arrived) = ((beside, about), self.0.ended.load(Ordering::SeqCst));
        if let Some(kept) =
            self.0.kept.get(&key).await.filter(|kept| kept.may_answer_question(arrived, clock.now(), head))
        {
            return kept.found.clone();
        }
        let (this, clock) = (Arc::clone(&self.0), Arc::clone(clock));
        let task = cpu_share::spawn_task(async move {
            let kept_or_found = async |known: Option<Entry<_, Arc<LookupCacheEntry<V>>>>| {
                this.find_or_look_up(known.map(Entry::into_value), arrived, head, &*clock, look_up).await
            };
            this.kept.entry(key).and_upsert_with(kept_or_found).await.into_value()
        });
        task.await.map_or_else(|_| V::undecided("the lookup was aborted"), |kept| kept.found.clone())
    }
}

impl<A, V: LookupCacheValue> LookupCacheState<A, V> {
    async fn find_or_look_up(
        &self,
        known: Option<Arc<LookupCacheEntry<V>>>,
        arrived: u64,
        head: Option<HeadSequenceNumber>,
        clock: &dyn Clock,
        look_up: BoxFuture<'static, V>,
    ) -> Arc<LookupCacheEntry<V>> {
        let now = clock.now();
        let failures = match known {
            Some(kept) if kept.may_answer_question(arrived, now, head) => return kept,
            Some(kept) => kept.failures,
            None => 0,
        };
        let permit = self.permits.try_acquire();
        if permit.is_err() && !clresolve_core::mutant!("look-ups-without-places") {
            let found = V::undecided("too many lookups are in progress");
            return Arc::new(LookupCacheEntry { found, until: now, ended: arrived, failures });
        }
        let found = look_up.await;
        let ended = self.ended.fetch_add(1, Ordering::SeqCst) + 1;
        let (until, failures) = match found.lifetime_state() {
            TrustState::Trusted if V::IS_FINAL => (result_expiry(now, TrustState::Trusted, 0), 0),
            TrustState::Trusted => (now, 0),
            TrustState::Untrusted => (result_expiry(clock.now(), TrustState::Untrusted, 0), 0),
            TrustState::Indeterminate => {
                (result_expiry(clock.now(), TrustState::Indeterminate, failures), failures + 1)
            }
        };
        Arc::new(LookupCacheEntry { found, until, ended, failures })
    }
}

/// When a result expires that was obtained at `now` and has the lifetime of this state. Returns `now` if the time would
/// overflow.
pub(super) fn result_expiry(now: Timestamp, state: TrustState, failures: u32) -> Timestamp {
    let fresh = SignedDuration::try_from(verdict_fresh_duration(state, failures));
    fresh.ok().and_then(|fresh| now.checked_add(fresh).ok()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU32;

    use futures_util::future::join_all;
    use tokio::sync::Notify;

    use super::*;

    /// A result with the state that determines its lifetime.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct CountedOutcome<const FINAL: bool>(TrustState, String);

    impl<const FINAL: bool> LookupCacheValue for CountedOutcome<FINAL> {
        const IS_FINAL: bool = FINAL;

        fn lifetime_state(&self) -> TrustState {
            self.0
        }

        fn undecided(cause: &str) -> Self {
            Self(TrustState::Indeterminate, cause.to_owned())
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

    fn beside(verdict: &str) -> ResolvedVerdictKey {
        ResolvedVerdictKey { name: EnsName::parse("a.eth").expect("a name"), verdict: verdict.to_owned(), card: None }
    }

    /// A clock, and a question that returns how many lookups were made for it.
    fn stage<const FINAL: bool>() -> (Arc<Stopped>, impl AsyncFn(&str, TrustState) -> u32) {
        let clock = Arc::new(Stopped(Mutex::new(Timestamp::UNIX_EPOCH)));
        let (look_ups, made) = (LookupCache::<(), CountedOutcome<FINAL>>::default(), Arc::new(AtomicU32::new(0)));
        let reads = Arc::clone(&clock);
        let ask = async move |verdict: &str, state: TrustState| {
            let (clock, counts) = (Arc::clone(&reads) as Arc<dyn Clock>, Arc::clone(&made));
            let found = async move {
                counts.fetch_add(1, Ordering::Relaxed);
                CountedOutcome(state, String::new())
            };
            look_ups.get_or_look_up(beside(verdict), (), &clock, found).await;
            made.load(Ordering::Relaxed)
        };
        (clock, ask)
    }

    #[tokio::test]
    async fn final_result_is_kept_for_its_verdict_alone() {
        let (_, ask) = stage::<true>();
        assert_eq!((ask("1", TrustState::Trusted).await, ask("1", TrustState::Trusted).await), (1, 1));
        assert_eq!(ask("2", TrustState::Trusted).await, 2);
    }

    #[tokio::test]
    async fn positive_result_is_read_again_by_each_later_question() {
        let (_, ask) = stage::<false>();
        for count in 1..4 {
            assert_eq!(ask("1", TrustState::Trusted).await, count);
        }
    }

    #[tokio::test]
    async fn final_results_and_absences_are_kept_as_long_as_a_verdict() {
        for state in [TrustState::Trusted, TrustState::Untrusted] {
            let (clock, ask) = stage::<true>();
            let seconds = i64::try_from(verdict_fresh_duration(state, 0).as_secs()).expect("minutes");
            ask("1", state).await;
            clock.add(seconds - 1);
            assert_eq!(ask("1", state).await, 1, "{state}");
            clock.add(1);
            assert_eq!(ask("1", state).await, 2, "{state}");
        }
    }

    #[tokio::test]
    async fn questions_that_arrive_during_a_lookup_share_it() {
        let clock: Arc<dyn Clock> = Arc::new(Stopped(Mutex::new(Timestamp::UNIX_EPOCH)));
        let look_ups = LookupCache::<(), CountedOutcome<false>>::default();
        let (made, proceed) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let ask = |_| {
            let (made, proceed) = (Arc::clone(&made), Arc::clone(&proceed));
            let found = async move {
                if made.fetch_add(1, Ordering::Relaxed) == 0 {
                    proceed.notified().await;
                }
                CountedOutcome(TrustState::Trusted, String::new())
            };
            look_ups.get_or_look_up(beside("1"), (), &clock, found)
        };
        // All questions arrive before the lookup continues.
        tokio::join!(join_all((0..5).map(ask)), async { proceed.notify_one() });
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn failures_make_look_ups_rarer() {
        let (clock, ask) = stage::<false>();
        let mut last = 0;
        for _ in 0..120 {
            last = ask("1", TrustState::Indeterminate).await;
            clock.add(1);
        }
        assert_eq!(last, 7, "after 0, 1, 3, 7, 15, 31 and 63 s");
    }

    /// While the maximum number of lookups is running, no further one starts.
    #[tokio::test]
    async fn look_ups_at_the_same_time_are_bounded() {
        let clock: Arc<dyn Clock> = Arc::new(Stopped(Mutex::new(Timestamp::UNIX_EPOCH)));
        let look_ups = LookupCache::<usize, CountedOutcome<false>>::default();
        let begun = (0..MAX_LOOK_UPS).map(|subject| look_ups.get_or_look_up(beside("1"), subject, &clock, pending()));
        let one_more = async {
            while look_ups.0.permits.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            let found = ready(CountedOutcome(TrustState::Trusted, String::new()));
            look_ups.get_or_look_up(beside("1"), MAX_LOOK_UPS, &clock, found).await
        };
        tokio::select! {
            _ = futures_util::future::join_all(begun) => panic!("none ends"),
            answer = one_more => assert_eq!(answer, CountedOutcome::undecided("too many lookups are in progress")),
        }
    }
}
