//! Finished verdicts, kept for as long as they are fresh.
//!
//! Trusted verdicts, other verdicts and failures have a pool each: unknown names cannot push good ones out, and a
//! failure never evicts a verdict. There is one flight per key. A run belongs to the cache and not to its first caller,
//! so a caller that gives up cancels nothing.

mod changes;

use std::collections::HashMap;
use std::future::Future;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use jiff::Timestamp;
use metrics::Counter;
use moka::future::Cache;
use moka::notification::RemovalCause;

use crate::chain::BlockSelector;
use crate::cid::{ContentId, ContentPath};
use crate::config::CacheConfig;
use crate::digest::Digest;
use crate::name::EnsName;
use crate::telemetry::{self, Eviction, Pool};
use crate::verdict::{Depth, Published, Resolution, State};
use clresolve_core::freshness::*;

pub(crate) use self::changes::{Changes, Unread};

/// What a verdict takes in memory for each byte of its JSON: its values are small, and each is an allocation of its
/// own.
const MEMORY_PER_JSON_BYTE: usize = 3;
/// What an entry takes beside its verdict and its card, in bytes: the key, which may be a long name, and the pool's
/// own.
const ENTRY_BYTES: usize = 1024;

/// Everything that an answer depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey {
    /// The name in normal form.
    pub name: EnsName,
    /// The block that is asked for.
    pub block: BlockSelector,
    /// How deep the walk goes.
    pub depth: Depth,
    /// Digest of the profile in force, which covers its manifests.
    pub rules: Digest,
    /// Digest of the world: chain, Universal Resolver, endpoints, proof demand, gateways, source flags.
    pub world: Arc<str>,
}

impl Hash for CacheKey {
    /// Hashes name and depth. Keys that differ only in the rest are few, and `Eq` tells them apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.depth.hash(state);
    }
}

/// What the cache holds under a key.
#[derive(Clone, Debug)]
pub enum CacheStatus {
    /// A fresh verdict.
    Fresh(Resolution),
    /// No fresh verdict, but a run for one is under way.
    UnderWay,
    /// Neither: an answer takes a run.
    Missing,
}

/// The cache of finished verdicts.
pub struct VerdictCache {
    trusted: Cache<CacheKey, Arc<Entry>>,
    other: Cache<CacheKey, Arc<Entry>>,
    failures: Cache<CacheKey, Arc<Entry>>,
    flights: Arc<Mutex<HashMap<CacheKey, Flight>>>,
    /// What may have changed on chain.
    pub(crate) changes: Arc<Changes>,
    /// Counters of the three pools, from the first answer on: the program installs its recorder before that.
    hits: [OnceLock<Counter>; 3],
}

type Flight = Shared<BoxFuture<'static, Option<Resolution>>>;

/// A finished verdict, as it is served from the cache.
struct Entry {
    resolution: Resolution,
    fresh_until: Timestamp,
    /// Failures in a row, this one included; 0 for a verdict.
    failures: u32,
    /// How long the entry is kept at all.
    keep: Duration,
    /// An estimate of what it takes in memory, in bytes.
    bytes: usize,
    /// By which [`Changes`] knows it.
    ticket: u64,
}

impl VerdictCache {
    /// A cache with pools of the configured sizes, in entries and in bytes.
    pub fn new(config: CacheConfig) -> Self {
        let changes = Arc::new(Changes::new());
        let pool = |pool, entries: u64| {
            let followed = Arc::clone(&changes);
            let leave = move |_, entry: Arc<Entry>, cause| {
                followed.remove(entry.ticket);
                count_eviction(pool, cause);
            };
            // No entry weighs less than its share, so that neither bound is passed.
            let share = (config.verdict_bytes / entries.max(1)).max(1);
            let weigh = move |_: &CacheKey, entry: &Arc<Entry>| {
                let bytes = if clresolve_core::mutant!("large-verdicts-weigh-nothing") { 0 } else { entry.bytes };
                u32::try_from(share.max(u64::try_from(bytes).unwrap_or(u64::MAX))).unwrap_or(u32::MAX)
            };
            let capacity = share.saturating_mul(entries).min(config.verdict_bytes);
            Cache::builder()
                .max_capacity(capacity)
                .weigher(weigh)
                .expire_after(EntryExpiry)
                .eviction_listener(leave)
                .build()
        };
        Self {
            trusted: pool(Pool::Trusted, config.trusted),
            other: pool(Pool::Untrusted, config.untrusted),
            failures: pool(Pool::Failures, config.untrusted),
            flights: Arc::default(),
            changes: Arc::clone(&changes),
            hits: Default::default(),
        }
    }

    /// The verdict under `key` that is fresh at `now`, else that of a run. `run` gets the number of
    /// failures in a row before it.
    ///
    /// # Panics
    /// When the run panicked.
    pub async fn get_or_run<F, Run>(self: &Arc<Self>, key: CacheKey, now: Timestamp, run: F) -> Resolution
    where
        F: FnOnce(u32) -> Run + Send + 'static,
        Run: Future<Output = Resolution> + Send + 'static,
    {
        if let Some(resolution) = self.fresh(&key, now).await {
            return resolution;
        }
        telemetry::cache_miss(telemetry::Cache::Verdicts);
        self.flight(key, run).await.expect("a run of the walk does not panic")
    }

    /// The verdict of a new run, or of the run that is under way. A fresh verdict is not used.
    ///
    /// # Panics
    /// When the run panicked.
    pub async fn run_anew<F, Run>(self: &Arc<Self>, key: CacheKey, run: F) -> Resolution
    where
        F: FnOnce(u32) -> Run + Send + 'static,
        Run: Future<Output = Resolution> + Send + 'static,
    {
        self.flight(key, run).await.expect("a run of the walk does not panic")
    }

    /// What the cache holds under `key` at `now`.
    pub async fn status(&self, key: &CacheKey, now: Timestamp) -> CacheStatus {
        if let Some(resolution) = self.fresh(key, now).await {
            return CacheStatus::Fresh(resolution);
        }
        let flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.contains_key(key) { CacheStatus::UnderWay } else { CacheStatus::Missing }
    }

    /// The time since the latest run for `key`, whatever its result: a failed run counts that left a verdict in place.
    /// [`Duration::MAX`] where none is remembered.
    pub async fn since_run(&self, key: &CacheKey, now: Timestamp) -> Duration {
        let mut latest = Duration::MAX;
        for pool in [&self.trusted, &self.other, &self.failures] {
            if let Some(entry) = pool.get(key).await {
                latest = latest.min(entry.resolution.verdict().freshness.age(now));
            }
        }
        latest
    }

    /// The verdict under `key` that is fresh at `now`, if there is one.
    pub async fn fresh(&self, key: &CacheKey, now: Timestamp) -> Option<Resolution> {
        let pools = [(Pool::Trusted, &self.trusted), (Pool::Untrusted, &self.other), (Pool::Failures, &self.failures)];
        for ((pool, entries), hits) in pools.into_iter().zip(&self.hits) {
            if let Some(entry) = entries.get(key).await.filter(|entry| now < entry.fresh_until) {
                hits.get_or_init(|| telemetry::cache_hits(pool)).increment(1);
                return Some(entry.resolution.clone());
            }
        }
        None
    }

    /// Joins the run that is under way for `key`, or starts one.
    fn flight<F, Run>(self: &Arc<Self>, key: CacheKey, run: F) -> Flight
    where
        F: FnOnce(u32) -> Run + Send + 'static,
        Run: Future<Output = Resolution> + Send + 'static,
    {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(&key) {
            return flight.clone();
        }
        let guard = FlightGuard { key: key.clone(), flights: Arc::clone(&self.flights) };
        let cache = Arc::clone(self);
        let task = tokio::spawn(async move {
            let (key, began) = (guard.key.clone(), cache.changes.begin());
            let failures = cache.failures.get(&key).await.map_or(0, |entry| entry.failures);
            let resolution = run(failures).await;
            cache.insert(key.clone(), &resolution, failures).await;
            cache.settle(&key, began, &resolution).await;
            drop(guard);
            resolution
        });
        let flight = task.map(Result::ok).boxed().shared();
        flights.insert(key, flight.clone());
        flight
    }

    async fn insert(&self, key: CacheKey, resolution: &Resolution, failures_before: u32) {
        let state = resolution.verdict().state;
        let failures = if state == State::Indeterminate { failures_before.saturating_add(1) } else { 0 };
        let Ok(fresh_until) = resolution.verdict().freshness.fresh_until.parse() else { return };
        let fresh = fresh_for(state, failures_before);
        let keep = if state == State::Indeterminate { fresh + LONGEST_BACKOFF } else { fresh };
        let ticket = self.changes.add(&key, resolution);
        let (bytes, resolution) = (weight(resolution), resolution.from_cache());
        let entry = Arc::new(Entry { resolution, fresh_until, failures, keep, bytes, ticket });
        match state {
            State::Trusted => {
                self.other.invalidate(&key).await;
                self.failures.invalidate(&key).await;
                self.trusted.insert(key, entry).await;
            }
            State::Untrusted => {
                self.trusted.invalidate(&key).await;
                self.failures.invalidate(&key).await;
                self.other.insert(key, entry).await;
            }
            State::Indeterminate => self.failures.insert(key, entry).await,
        }
    }
}

/// Content that was proven under a CID and a path. It never changes, so it has no expiry; the least used goes first.
#[derive(Clone)]
pub struct ContentCache(Cache<(ContentId, ContentPath), Bytes>);

impl ContentCache {
    /// A cache of at most this many bytes.
    pub fn new(bytes: u64) -> Self {
        let weigh = |_: &(ContentId, ContentPath), content: &Bytes| u32::try_from(content.len()).unwrap_or(u32::MAX);
        let count = |_, _, cause| count_eviction(Pool::Content, cause);
        Self(Cache::builder().max_capacity(bytes).weigher(weigh).eviction_listener(count).build())
    }

    /// What was proven under `cid` and `path`.
    pub async fn get(&self, cid: &ContentId, path: &ContentPath) -> Option<Bytes> {
        let content = self.0.get(&(*cid, path.clone())).await;
        match content {
            Some(_) => telemetry::cache_hit(Pool::Content),
            None => telemetry::cache_miss(telemetry::Cache::Content),
        }
        content
    }

    /// Keeps what was proven.
    pub async fn insert(&self, cid: &ContentId, path: &ContentPath, content: Bytes) {
        self.0.insert((*cid, path.clone()), content).await;
    }
}

/// Counts the entries that a pool dropped by itself, but not those that were removed on purpose.
fn count_eviction(pool: Pool, cause: RemovalCause) {
    match cause {
        RemovalCause::Expired => telemetry::cache_evicted(pool, Eviction::Expired),
        RemovalCause::Size => telemetry::cache_evicted(pool, Eviction::Size),
        RemovalCause::Explicit | RemovalCause::Replaced => {}
    }
}

/// What an entry takes in memory, in bytes.
fn weight(resolution: &Resolution) -> usize {
    let json = serde_json::to_vec(resolution.verdict().as_ref()).map_or(0, |json| json.len());
    let payment = resolution.payment().map_or(0, Published::bytes);
    ENTRY_BYTES + json * MEMORY_PER_JSON_BYTE + resolution.card().map_or(0, Bytes::len) + payment
}

/// Removes the flight when its task ends, also by a panic.
struct FlightGuard {
    key: CacheKey,
    flights: Arc<Mutex<HashMap<CacheKey, Flight>>>,
}

impl Drop for FlightGuard {
    fn drop(&mut self) {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

/// Lets moka drop entries that are no longer served.
struct EntryExpiry;

impl moka::Expiry<CacheKey, Arc<Entry>> for EntryExpiry {
    fn expire_after_create(&self, _: &CacheKey, entry: &Arc<Entry>, _: Instant) -> Option<Duration> {
        Some(entry.keep)
    }

    fn expire_after_update(
        &self,
        _: &CacheKey,
        entry: &Arc<Entry>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(entry.keep)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use jiff::ToSpan as _;

    use super::*;
    use crate::records::Record;
    use crate::verdict::{Served, Verdict};
    use clresolve_core::payment::{EndpointKey, EndpointRecord, PaymentRecords};
    use clresolve_verdict::sample::{empty as resolution, live, paid, published};

    fn key(name: &str) -> CacheKey {
        CacheKey {
            name: EnsName::parse(name).expect("a good name"),
            block: BlockSelector::Finalized,
            depth: Depth::Identity,
            rules: Digest::of(b"rules"),
            world: "world".into(),
        }
    }

    fn cache() -> Arc<VerdictCache> {
        Arc::new(VerdictCache::new(CacheConfig::default()))
    }

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    #[test]
    fn failures_back_off_from_one_second_to_five_minutes() {
        let pauses: Vec<u64> = (0..11).map(|n| fresh_for(State::Indeterminate, n).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(fresh_for(State::Indeterminate, u32::MAX), LONGEST_BACKOFF);
    }

    #[tokio::test]
    async fn a_trusted_verdict_is_served_until_it_is_no_longer_fresh() {
        let (cache, runs) = (cache(), Arc::new(AtomicUsize::new(0)));
        for (seconds, expected_runs) in [(0, 1), (299, 1), (300, 2)] {
            let now = START + seconds.seconds();
            let counter = Arc::clone(&runs);
            let run = move |_| async move {
                counter.fetch_add(1, Ordering::SeqCst);
                resolution(State::Trusted, now, 0)
            };
            cache.get_or_run(key("a.eth"), now, run).await;
            assert_eq!(runs.load(Ordering::SeqCst), expected_runs, "after {seconds} s");
        }
    }

    #[tokio::test]
    async fn many_callers_share_one_run_and_a_caller_that_gives_up_cancels_nothing() {
        let (cache, runs) = (cache(), Arc::new(AtomicUsize::new(0)));
        let (release, gate) = tokio::sync::watch::channel(false);
        let ask = || {
            let (cache, counter, mut gate) = (Arc::clone(&cache), Arc::clone(&runs), gate.clone());
            async move {
                let run = move |_| async move {
                    counter.fetch_add(1, Ordering::SeqCst);
                    let _ = gate.wait_for(|open| *open).await;
                    resolution(State::Trusted, START, 0)
                };
                cache.get_or_run(key("a.eth"), START, run).await
            }
        };
        let mut first = Box::pin(ask());
        assert!(futures_util::poll!(&mut first).is_pending());
        drop(first);
        let second = tokio::spawn(ask());
        release.send(true).expect("the run waits");
        assert_eq!(second.await.expect("no panic").verdict().state, State::Trusted);
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_failure_is_backed_off_counted_and_never_hides_a_fresh_trusted_verdict() {
        let cache = cache();
        let fail = |failures| async move { resolution(State::Indeterminate, START, failures) };
        let first = cache.get_or_run(key("a.eth"), START, fail).await;
        assert_eq!(first.verdict().freshness.retry_after, Some(1));
        let later = START + 1.second();
        let second = cache
            .get_or_run(key("a.eth"), later, move |failures| async move {
                resolution(State::Indeterminate, later, failures)
            })
            .await;
        assert_eq!(second.verdict().freshness.retry_after, Some(2));

        cache.insert(key("b.eth"), &resolution(State::Trusted, START, 0), 0).await;
        cache.insert(key("b.eth"), &resolution(State::Indeterminate, START, 0), 0).await;
        let served = cache.fresh(&key("b.eth"), START).await.expect("still fresh");
        assert_eq!((served.verdict().state, served.verdict().freshness.served), (State::Trusted, Served::Cached));
    }

    #[tokio::test]
    async fn the_status_is_reported_without_a_run() {
        let cache = cache();
        assert!(matches!(cache.status(&key("a.eth"), START).await, CacheStatus::Missing));
        let never = std::future::pending::<Resolution>;
        let mut asked = Box::pin(cache.get_or_run(key("a.eth"), START, move |_| never()));
        assert!(futures_util::poll!(&mut asked).is_pending());
        assert!(matches!(cache.status(&key("a.eth"), START).await, CacheStatus::UnderWay));

        cache.insert(key("b.eth"), &resolution(State::Trusted, START, 0), 0).await;
        let later = START + 9.seconds();
        assert!(matches!(cache.status(&key("b.eth"), later).await, CacheStatus::Fresh(_)));
        assert_eq!(cache.since_run(&key("b.eth"), later).await.as_secs(), 9);
        cache.insert(key("b.eth"), &resolution(State::Indeterminate, later, 0), 0).await;
        assert_eq!(cache.since_run(&key("b.eth"), later).await.as_secs(), 0, "a failed run counts too");
    }

    #[tokio::test]
    async fn a_new_run_is_made_although_a_verdict_is_fresh() {
        let cache = cache();
        cache.insert(key("a.eth"), &resolution(State::Trusted, START, 0), 0).await;
        let run = |_| async { resolution(State::Untrusted, START, 0) };
        assert_eq!(cache.run_anew(key("a.eth"), run).await.verdict().state, State::Untrusted);
        assert_eq!(cache.fresh(&key("a.eth"), START).await.map(|r| r.verdict().state), Some(State::Untrusted));
    }

    /// How many of twenty trusted verdicts with cards of this size are kept, and what they weigh.
    async fn kept(config: CacheConfig, card_bytes: usize) -> (u64, u64) {
        let cache = VerdictCache::new(config);
        for number in 0..20 {
            let verdict = Verdict::clone(resolution(State::Trusted, START, 0).verdict());
            let resolution = live(verdict, Some(vec![b' '; card_bytes].into()));
            cache.insert(key(&format!("a{number}.eth")), &resolution, 0).await;
            cache.trusted.run_pending_tasks().await;
        }
        (cache.trusted.entry_count(), cache.trusted.weighted_size())
    }

    #[tokio::test]
    async fn verdicts_are_bounded_in_number_and_in_bytes() {
        let config = CacheConfig { verdict_bytes: 1 << 20, ..CacheConfig::default() };
        let (entries, bytes) = kept(config, 256 << 10).await;
        assert!(
            (1..=3).contains(&entries) && bytes <= 1 << 20,
            "{entries} entries of the largest cards, {bytes} bytes"
        );
        assert_eq!(kept(config, 2 << 10).await.0, 20, "small ones have room");
        assert_eq!(kept(CacheConfig { trusted: 7, ..config }, 2 << 10).await.0, 7);
        assert_eq!(kept(CacheConfig { trusted: 0, ..config }, 0).await.0, 0);
    }

    #[test]
    fn what_a_name_publishes_about_payments_has_its_weight() {
        let weight = |url: &str| {
            let endpoint = EndpointRecord::Read(Record::Text(url.to_owned()));
            let records = PaymentRecords { endpoints: [(EndpointKey::Web, endpoint)].into(), ..Default::default() };
            let payment = published(records.clone(), records).expect("it publishes an endpoint");
            let verdict = Verdict::clone(resolution(State::Trusted, START, 0).verdict());
            super::weight(&paid(verdict, payment))
        };
        assert_eq!(weight(&"a".repeat(1 << 20)) - weight(""), 2 << 20);
    }

    #[tokio::test]
    async fn an_untrusted_verdict_replaces_a_trusted_one() {
        let cache = cache();
        cache.insert(key("a.eth"), &resolution(State::Trusted, START, 0), 0).await;
        cache.insert(key("a.eth"), &resolution(State::Untrusted, START, 0), 0).await;
        assert_eq!(cache.fresh(&key("a.eth"), START).await.map(|r| r.verdict().state), Some(State::Untrusted));
    }
}
