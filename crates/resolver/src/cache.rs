//! Caches finished verdicts for as long as they are fresh.
//!
//! Trusted verdicts, other verdicts and failures are in separate pools, so that unknown names cannot evict good ones. A
//! failure evicts no verdict unless it shows that the records have changed. Each key has at most one resolution in
//! flight. It belongs to the cache and not to its first caller, so a caller that gives up cancels nothing.
//!
//! A trusted verdict that was requested is refreshed in the last tenth of its freshness. It is kept beyond that: if the
//! next resolution fails, it may be described, marked as stale.
//!
//! A name is evicted by the operator, or if a reading shows that it has changed on chain. From then on, no earlier
//! answer is served in any way, and no caller joins an earlier resolution. The head log determines which heads confirm
//! a verdict.

mod confirmed;
mod content;
mod contradiction;
mod entry;
mod evicted;
mod feed;
mod hot_names;
mod key;
mod operate;
mod proven;

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ahash::RandomState;
use clresolve_chain::NameStateAtHead;
use clresolve_core::digest::Digest;
use clresolve_core::freshness::*;
use clresolve_core::name::EnsName;
use clresolve_core::reason::RefusalCode;
use clresolve_core::state::TrustState;
use clresolve_verdict::trust::{Resolution, StaleVerdict};
use clresolve_verdict::verdict::{ResolutionDepth, Verdict};
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use jiff::Timestamp;
use metrics::Counter;
use moka::future::Cache;
use moka::notification::RemovalCause;

pub use self::confirmed::HeadConfirmationLimits;
pub(crate) use self::confirmed::{HeadLog, HeadLogEntry, HeadSequenceNumber, is_confirming_reading};
pub use self::content::IpfsContentCache;
use self::contradiction::{contradicts_earlier_verdict, has_same_result, shows_changed_records};
pub use self::entry::FinishedResolution;
use self::entry::{CachedVerdict, CachedVerdictUse};
pub(crate) use self::entry::{RequiredConfirmationMethod, ResolutionStartSnapshot};
use self::evicted::EvictionLog;
pub use self::feed::{NameEvent, NameEventFeed, NameEventReader};
use self::hot_names::HotNameSet;
pub use self::key::VerdictCacheKey;
pub(crate) use self::operate::{CachePoolSize, CachedVerdictDocument, VerdictPoolSizes};
pub use self::proven::ReusableContent;
use crate::config::CacheConfig;
use crate::cpu_share::{self, CpuTaskContext};
use crate::telemetry::{self, CachePoolLabel, EvictionCause, NotCachedReason};

/// The pools, in the order in which they are searched.
const POOLS: [CachePoolLabel; 3] = [CachePoolLabel::Trusted, CachePoolLabel::Untrusted, CachePoolLabel::Failures];

/// What the cache contains under a key.
#[derive(Clone, Debug)]
pub enum VerdictCacheKeyStatus {
    /// A fresh verdict.
    Fresh(Resolution),
    /// No fresh verdict, but a resolution is in progress.
    UnderWay,
    /// Neither: an answer requires a resolution.
    Missing,
}

/// The entries of a pool. Third parties choose the names, so the hasher is keyed at random.
type CachedVerdictPool = Cache<VerdictCacheKey, Arc<CachedVerdict>, RandomState>;

/// The cache of finished verdicts.
pub struct VerdictCache {
    trusted: CachedVerdictPool,
    untrusted: CachedVerdictPool,
    failures: CachedVerdictPool,
    flights: Arc<Mutex<HashMap<VerdictCacheKey, InFlightResolution>>>,
    evicted: EvictionLog,
    /// The heads of the chain so far.
    pub(crate) heads: HeadLog,
    /// The names used by the gate and by decisions.
    pub(crate) hot_names: HotNameSet,
    /// Number of resolutions so far, which identifies each of them.
    runs: AtomicU64,
    /// The rules and depths under which verdicts were cached so far.
    rules: Mutex<Vec<(Digest, ResolutionDepth)>>,
    /// Events for subscribers.
    pub(crate) feed: Arc<NameEventFeed>,
    /// Counters of the three pools, created on first use: the program installs its recorder before that.
    hits: [OnceLock<Counter>; 3],
}

/// Results of earlier resolutions for a key.
#[derive(Clone, Debug, Default)]
pub struct EarlierResults {
    /// Number of consecutive failures.
    pub failures: u32,
    /// The content that the last trusted resolution proved.
    pub content: Option<Arc<ReusableContent>>,
}

/// A resolution in flight.
struct InFlightResolution {
    began: ResolutionStartSnapshot,
    /// `None` if the resolution panicked.
    answer: Shared<BoxFuture<'static, Option<Resolution>>>,
    work: CpuTaskContext,
}

impl VerdictCache {
    /// Creates a cache whose pools have the configured sizes, in entries and in bytes.
    pub fn new(config: &CacheConfig) -> Self {
        // moka drops what is no longer served. One lifetime per pool, rather than per entry, makes hits cheapest.
        let pool = |pool, entries: u64, keep: Duration| {
            let leave = move |_, _, cause| count_eviction(pool, cause);
            // No entry weighs less than its share, so that both bounds are respected.
            let share = (config.verdict_bytes / entries.max(1)).max(1);
            let weigh = move |_: &VerdictCacheKey, entry: &Arc<CachedVerdict>| {
                let bytes = if clresolve_core::mutant!("large-verdicts-weigh-nothing") { 0 } else { entry.bytes };
                u32::try_from(share.max(u64::try_from(bytes).unwrap_or(u64::MAX))).unwrap_or(u32::MAX)
            };
            let capacity = share.saturating_mul(entries).min(config.verdict_bytes);
            let pool =
                Cache::builder().max_capacity(capacity).weigher(weigh).time_to_live(keep).eviction_listener(leave);
            pool.build_with_hasher(RandomState::new())
        };
        Self {
            trusted: pool(CachePoolLabel::Trusted, config.trusted, TRUSTED_FRESH + STALE_FOR),
            untrusted: pool(CachePoolLabel::Untrusted, config.untrusted, UNTRUSTED_FRESH),
            failures: pool(CachePoolLabel::Failures, config.untrusted, 2 * LONGEST_BACKOFF),
            flights: Arc::default(),
            evicted: EvictionLog::default(),
            heads: HeadLog::default(),
            hot_names: HotNameSet::default(),
            runs: AtomicU64::default(),
            rules: Mutex::default(),
            feed: Arc::default(),
            hits: Default::default(),
        }
    }

    /// The verdict under `key` that is fresh at `now`, else that of a resolution, which gets the results of earlier
    /// ones.
    ///
    /// # Panics
    /// If the resolution panicked.
    pub async fn get_or_resolve<F, Run>(
        self: &Arc<Self>,
        key: VerdictCacheKey,
        now: Timestamp,
        limits: HeadConfirmationLimits,
        run: F,
    ) -> Resolution
    where
        F: FnOnce(EarlierResults) -> Run + Send + 'static,
        Run: Future<Output: Into<FinishedResolution>> + Send + 'static,
    {
        if let Some(resolution) = self.fresh_resolution(&key, now, limits).await {
            return resolution;
        }
        telemetry::count_cache_miss(telemetry::CacheLabel::Verdicts);
        self.join_or_start_resolution(key, limits, run).await.expect("a run of the walk does not panic")
    }

    /// The verdict of a new resolution, or of one in flight. A fresh verdict is not used.
    ///
    /// # Panics
    /// If the resolution panicked.
    pub async fn resolve_anew<F, Run>(
        self: &Arc<Self>,
        key: VerdictCacheKey,
        limits: HeadConfirmationLimits,
        run: F,
    ) -> Resolution
    where
        F: FnOnce(EarlierResults) -> Run + Send + 'static,
        Run: Future<Output: Into<FinishedResolution>> + Send + 'static,
    {
        self.join_or_start_resolution(key, limits, run).await.expect("a run of the walk does not panic")
    }

    /// The keys of trusted verdicts that were requested and are in the last tenth of their freshness at `now`, with
    /// their expiry, soonest first. At most as many as the pool contains.
    pub fn keys_due_for_refresh(&self, now: Timestamp) -> Vec<(Timestamp, Arc<VerdictCacheKey>)> {
        let due = self.trusted.iter().filter(|(key, entry)| self.is_due_for_refresh(key, entry, now));
        let mut due: Vec<_> = due.map(|(key, entry)| (entry.fresh_until, key)).collect();
        due.sort_by_key(|(until, _)| *until);
        due
    }

    /// Refreshes a key that is still due at `now`, or waits for the resolution in flight. Respects the pause after a
    /// failure. Returns `None` if there was no resolution.
    pub async fn refresh_key<F, Run>(
        self: &Arc<Self>,
        key: &VerdictCacheKey,
        now: Timestamp,
        limits: HeadConfirmationLimits,
        run: F,
    ) -> Option<Resolution>
    where
        F: FnOnce(EarlierResults) -> Run + Send + 'static,
        Run: Future<Output: Into<FinishedResolution>> + Send + 'static,
    {
        let is_due = self.trusted.get(key).await.is_some_and(|entry| self.is_due_for_refresh(key, &entry, now));
        let is_backed_off = self.is_backed_off(key, now).await && !clresolve_core::mutant!("refreshes-without-a-pause");
        if !is_due || is_backed_off {
            return None;
        }
        let resolution = self.join_or_start_resolution(key.clone(), limits, run).await?;
        telemetry::count_cache_refresh(resolution.verdict().state.as_str());
        Some(resolution)
    }

    /// The trusted verdict under `key` that expired less than [`STALE_FOR`] ago, if the next resolution failed and
    /// showed no change. It answers a question that was typed as `input`.
    pub async fn stale_verdict(&self, key: &VerdictCacheKey, input: &str, now: Timestamp) -> Option<StaleVerdict> {
        self.failures.get(key).await?;
        let entry =
            self.trusted.get(key).await.filter(|entry| self.is_servable(key, entry, now, CachedVerdictUse::Stale))?;
        telemetry::count_cache_hit(CachePoolLabel::Stale);
        Some(entry.resolution().with_input_name(input).to_stale())
    }

    /// The names with requested trusted verdicts, the most requested first, at most `most` of them.
    pub fn most_requested_names(&self, most: usize) -> Vec<EnsName> {
        let mut demand: HashMap<EnsName, u32> = HashMap::new();
        for (key, entry) in self.trusted.iter().filter(|(_, entry)| entry.request_count() > 0) {
            let of_name = demand.entry(key.name.clone()).or_default();
            *of_name = of_name.saturating_add(entry.request_count());
        }
        let mut names: Vec<(EnsName, u32)> = demand.into_iter().collect();
        names.sort_by(|(one, of_one), (other, of_other)| {
            of_other.cmp(of_one).then_with(|| one.as_str().cmp(other.as_str()))
        });
        names.into_iter().take(most).map(|(name, _)| name).collect()
    }

    /// What the cache contains under `key` at `now`.
    pub async fn key_status(
        &self,
        key: &VerdictCacheKey,
        now: Timestamp,
        limits: HeadConfirmationLimits,
    ) -> VerdictCacheKeyStatus {
        if let Some(resolution) = self.fresh_resolution(key, now, limits).await {
            return VerdictCacheKeyStatus::Fresh(resolution);
        }
        let flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.contains_key(key) { VerdictCacheKeyStatus::UnderWay } else { VerdictCacheKeyStatus::Missing }
    }

    /// The time since the latest resolution for `key`, whatever its result: a failure that left a verdict in place
    /// counts too. [`Duration::MAX`] if none is remembered.
    pub async fn time_since_resolution(&self, key: &VerdictCacheKey, now: Timestamp) -> Duration {
        let mut latest = Duration::MAX;
        for pool in [&self.trusted, &self.untrusted, &self.failures] {
            if let Some(entry) = pool.get(key).await {
                latest = latest.min(entry.verdict().freshness.age(now));
            }
        }
        latest
    }

    /// The fresh verdict under `key` at `now`, with its standing within `limits`. Counts as a hit and a request.
    pub async fn fresh_resolution(
        &self,
        key: &VerdictCacheKey,
        now: Timestamp,
        limits: HeadConfirmationLimits,
    ) -> Option<Resolution> {
        let (pool, entry) = self.find_entry(key, now).await?;
        entry.count_request();
        self.hits[pool].get_or_init(|| telemetry::cache_hit_counter(POOLS[pool])).increment(1);
        Some(entry.resolution_with_confirmation(&self.heads, limits, now))
    }

    /// The entry that answers at `now`, and the index of its pool in [`POOLS`].
    async fn find_entry(&self, key: &VerdictCacheKey, now: Timestamp) -> Option<(usize, Arc<CachedVerdict>)> {
        for (pool, entries) in [&self.trusted, &self.untrusted, &self.failures].into_iter().enumerate() {
            if let Some(entry) =
                entries.get(key).await.filter(|entry| self.is_servable(key, entry, now, CachedVerdictUse::Answer))
            {
                return Some((pool, entry));
            }
        }
        None
    }

    /// Whether an entry may be served in this way at `now`. Every way of serving checks this.
    fn is_servable(&self, key: &VerdictCacheKey, entry: &CachedVerdict, now: Timestamp, how: CachedVerdictUse) -> bool {
        entry.is_young_enough_to_serve(now, how) && self.evicted.may_still_use_answer(&key.name, &entry.permitted)
    }

    fn is_due_for_refresh(&self, key: &VerdictCacheKey, entry: &CachedVerdict, now: Timestamp) -> bool {
        entry.is_due_for_refresh(now) && self.is_servable(key, entry, now, CachedVerdictUse::Answer)
    }

    /// Invalidates all answers about `name` up to `now`, and the results of resolutions in flight.
    pub fn evict_name(&self, name: &EnsName, now: Timestamp) {
        self.evicted.record_eviction(name, now);
        self.forget_in_flight_resolution(name);
        self.feed.publish_event(NameEvent::Eviction { name: name.clone(), at: now });
    }

    /// Makes later callers start a new resolution instead of joining one in flight.
    fn forget_in_flight_resolution(&self, name: &EnsName) {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|key, _| key.name != *name);
    }

    /// The start of a resolution that begins now.
    pub(crate) fn snapshot_resolution_start(&self) -> ResolutionStartSnapshot {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        ResolutionStartSnapshot {
            evictions: self.evicted.eviction_count(),
            head: self.heads.newest_head().map(|seen| seen.id),
            run,
        }
    }

    /// The finished verdict under `key`.
    async fn cached_entry(&self, key: &VerdictCacheKey) -> Option<Arc<CachedVerdict>> {
        match self.trusted.get(key).await {
            Some(entry) => Some(entry),
            None => self.untrusted.get(key).await,
        }
    }

    /// Compares the verdicts about the name of `key` with a reading at a head of this height. Returns the pools of
    /// those that it contradicts.
    pub(crate) async fn contradicted_pools(
        &self,
        key: &VerdictCacheKey,
        found: &NameStateAtHead,
        at: Option<HeadSequenceNumber>,
        block: u64,
    ) -> Vec<CachePoolLabel> {
        let entries = self.entries_for_name(key).await;
        let contradicted = entries.iter().filter(|entry| entry.compare_and_confirm(found, at, block));
        let pool = |entry: &Arc<CachedVerdict>| match entry.verdict().state {
            TrustState::Trusted => CachePoolLabel::Trusted,
            TrustState::Untrusted | TrustState::Indeterminate => CachePoolLabel::Untrusted,
        };
        contradicted.map(pool).collect()
    }

    /// What the verdict under `key` needs at `now` to stay confirmed. `Some(None)` if it needs nothing; `None` if there
    /// is no head, or no such verdict. An untrusted verdict counts only while its name is hot, because its payment
    /// records are then in use.
    pub(crate) async fn required_confirmation(
        &self,
        key: &VerdictCacheKey,
        now: Timestamp,
    ) -> Option<Option<RequiredConfirmationMethod>> {
        let newest = self.heads.newest_head()?.id;
        let is_hot = self.hot_names.is_hot(&key.name, now);
        let entry =
            self.cached_entry(key).await.filter(|entry| is_hot || entry.verdict().state == TrustState::Trusted)?;
        self.is_servable(key, &entry, now, CachedVerdictUse::Answer).then(|| entry.required_confirmation(newest, now))
    }

    /// Whether only another resolution can confirm the verdict under `key` at `now`.
    pub(crate) async fn needs_new_resolution(&self, key: &VerdictCacheKey, now: Timestamp) -> bool {
        self.cached_entry(key).await.is_some_and(|entry| entry.needs_new_resolution(now))
    }

    /// `resolution` with the current standing of its entry. It is unconfirmed if it is no longer in the cache.
    pub(crate) async fn with_current_confirmation(
        &self,
        key: &VerdictCacheKey,
        resolution: Resolution,
        limits: HeadConfirmationLimits,
        now: Timestamp,
    ) -> Resolution {
        // The id depends on how the name was typed.
        let run = |verdict: &Verdict| (verdict.conclusion.clone(), verdict.freshness.checked_at);
        let held = self.cached_entry(key).await.filter(|entry| run(&entry.verdict()) == run(resolution.verdict()));
        let held = held.filter(|entry| self.is_servable(key, entry, now, CachedVerdictUse::Answer));
        let standing =
            held.map(|entry| entry.resolution_with_confirmation(&self.heads, limits, now).newest_block_confirmation());
        resolution.with_newest_block_confirmation(standing.unwrap_or(Err(RefusalCode::Unconfirmed)))
    }

    /// Whether the last resolution for `key` failed too recently for another one.
    pub(crate) async fn is_backed_off(&self, key: &VerdictCacheKey, now: Timestamp) -> bool {
        let failure = self.failures.get(key).await;
        failure.is_some_and(|failure| self.is_servable(key, &failure, now, CachedVerdictUse::Answer))
    }

    /// The verdicts about the name of `key` under any rules, from the same chain at the same kind of block, unless the
    /// name was evicted since.
    async fn entries_for_name(&self, key: &VerdictCacheKey) -> Vec<Arc<CachedVerdict>> {
        let mut entries = Vec::new();
        for key in self.keys_under_any_rules(key) {
            let entry = self.cached_entry(&key).await;
            entries.extend(entry.filter(|entry| self.evicted.may_still_use_answer(&key.name, &entry.permitted)));
        }
        entries
    }

    /// The keys for the same name, network and kind of block, under all rules so far.
    fn keys_under_any_rules(&self, key: &VerdictCacheKey) -> Vec<VerdictCacheKey> {
        let rules = self.lock_noted_rules();
        rules.iter().map(|(rules, depth)| VerdictCacheKey { rules: *rules, depth: *depth, ..key.clone() }).collect()
    }

    fn lock_noted_rules(&self) -> MutexGuard<'_, Vec<(Digest, ResolutionDepth)>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `name` was not evicted after `began`.
    pub(crate) fn is_unevicted_since(&self, name: &EnsName, began: ResolutionStartSnapshot) -> bool {
        self.evicted.may_use_answer(name, began.evictions)
    }

    /// When `name` was last evicted, if that is remembered.
    pub fn last_eviction_time(&self, name: &EnsName) -> Option<Timestamp> {
        self.evicted.last_eviction_time(name)
    }

    /// Joins the resolution in flight for `key`, or starts one.
    fn join_or_start_resolution<F, Run>(
        self: &Arc<Self>,
        key: VerdictCacheKey,
        limits: HeadConfirmationLimits,
        run: F,
    ) -> Shared<BoxFuture<'static, Option<Resolution>>>
    where
        F: FnOnce(EarlierResults) -> Run + Send + 'static,
        Run: Future<Output: Into<FinishedResolution>> + Send + 'static,
    {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(&key) {
            flight.work.raise_urgency_to(&CpuTaskContext::current());
            return flight.answer.clone();
        }
        let began = self.snapshot_resolution_start();
        let work = CpuTaskContext::current().with_independent_urgency();
        let guard = InFlightResolutionGuard { key: key.clone(), began, flights: Arc::clone(&self.flights) };
        let cache = Arc::clone(self);
        let task = cpu_share::spawn_task_in_context(work.clone(), async move {
            let before = cache.earlier_results(&guard.key).await;
            let failures = before.failures;
            let found = run(before).await.into();
            cache.cache_result(&guard.key, &found, failures, began).await;
            let resolution = cache.with_confirmation(&guard.key, found, limits).await;
            drop(guard);
            resolution
        });
        let answer = task.map(Result::ok).boxed().shared();
        flights.insert(key, InFlightResolution { began, answer: answer.clone(), work });
        answer
    }

    /// Caches a result, unless its name was evicted meanwhile. Evicts what the result contradicts.
    async fn cache_result(
        &self,
        key: &VerdictCacheKey,
        found: &FinishedResolution,
        failures_before: u32,
        began: ResolutionStartSnapshot,
    ) {
        let before = self.last_published_entry(key, found.resolution.verdict()).await;
        let began = self.evict_outdated(key, found, began).await;
        if !self.is_unevicted_since(&key.name, began) {
            return telemetry::count_uncached_verdict(key.name.as_str(), NotCachedReason::Overtaken);
        }
        if let Err(why) = self.insert(key.clone(), found, failures_before, began).await {
            telemetry::count_uncached_verdict(key.name.as_str(), why);
        }
        self.notify_subscribers(&key.name, before.as_deref(), &found.resolution);
    }

    /// A result with its standing. While heads are followed, this is the standing of the cache entry. Otherwise a
    /// resolution of this process has just read the newest block itself.
    async fn with_confirmation(
        &self,
        key: &VerdictCacheKey,
        found: FinishedResolution,
        limits: HeadConfirmationLimits,
    ) -> Resolution {
        let FinishedResolution { resolution, reads_chain, .. } = found;
        let is_of_run = |entry: &Arc<CachedVerdict>| entry.verdict().id == resolution.verdict().id;
        let Some(newest) = self.heads.newest_head().filter(|_| self.heads.follows_heads()) else {
            return resolution.with_newest_block_confirmation(if reads_chain {
                Ok(())
            } else {
                Err(RefusalCode::Unconfirmed)
            });
        };
        let now = resolution.verdict().freshness.checked_at.max(newest.head.reported_at);
        let entry = self.cached_entry(key).await.filter(is_of_run);
        let standing = entry.map_or(Err(RefusalCode::Unconfirmed), |entry| {
            entry.resolution_with_confirmation(&self.heads, limits, now).newest_block_confirmation()
        });
        resolution.with_newest_block_confirmation(standing)
    }

    /// Evicts the name of `key` if the result contradicts a cached verdict, or replaces a result that a head
    /// contradicted. The result itself remains valid, with the returned start, unless a verdict that it contradicts was
    /// read up to a later block.
    async fn evict_outdated(
        &self,
        key: &VerdictCacheKey,
        found: &FinishedResolution,
        began: ResolutionStartSnapshot,
    ) -> ResolutionStartSnapshot {
        let (verdict, newest) = (found.resolution.verdict(), found.resolution.newest_block());
        let wrong = self.contradicted_entries(key, verdict).await;
        if wrong.is_empty() && !found.is_after_change || clresolve_core::mutant!("stale-across-a-change") {
            return began;
        }
        let at = verdict.freshness.checked_at;
        let Some(evictions) = self.evicted.record_eviction_by_result(&key.name, began.evictions, at) else {
            return began;
        };
        self.forget_in_flight_resolution(&key.name);
        if wrong.iter().any(|entry| entry.resolution().newest_block() > newest) {
            self.evict_name(&key.name, at);
        }
        ResolutionStartSnapshot { evictions, ..began }
    }

    /// The entries that may still be served and contradict the result for `key`: the verdict under this key, and
    /// trusted ones under other rules, from the same chain at the same kind of block.
    async fn contradicted_entries(&self, key: &VerdictCacheKey, found: &Verdict) -> Vec<Arc<CachedVerdict>> {
        let mut entries = Vec::new();
        for pool in [&self.trusted, &self.untrusted] {
            let held = pool.get(key).await;
            entries.extend(held.filter(|entry| contradicts_earlier_verdict(&entry.verdict(), found)));
        }
        for other in self.keys_under_any_rules(key).into_iter().filter(|other| other != key) {
            let held = self.trusted.get(&other).await;
            entries.extend(held.filter(|entry| shows_changed_records(&entry.verdict(), found)));
        }
        entries.retain(|entry| self.is_servable(key, entry, found.freshness.checked_at, CachedVerdictUse::Stale));
        entries
    }

    /// The latest result that was sent to the subscribers of a name: the failure after the latest verdict, or else that
    /// verdict while it is fresh. `None` once the verdict has expired: a failure may have come and gone since then, so
    /// subscribers are notified of the next result in any case.
    async fn last_published_entry(&self, key: &VerdictCacheKey, found: &Verdict) -> Option<Arc<CachedVerdict>> {
        let is_standing = |entry: &Arc<CachedVerdict>| self.evicted.may_still_use_answer(&key.name, &entry.permitted);
        if let Some(failure) = self.failures.get(key).await.filter(is_standing) {
            return Some(failure);
        }
        let now = found.freshness.checked_at;
        for pool in [&self.trusted, &self.untrusted] {
            let fresh = |entry: &Arc<CachedVerdict>| {
                is_standing(entry) && entry.is_young_enough_to_serve(now, CachedVerdictUse::Answer)
            };
            if let Some(verdict) = pool.get(key).await.filter(fresh) {
                return Some(verdict);
            }
        }
        None
    }

    /// Notifies the subscribers of a name if the new result differs from the previous one.
    fn notify_subscribers(&self, name: &EnsName, before: Option<&CachedVerdict>, found: &Resolution) {
        let (before, found) = (before.map(CachedVerdict::verdict), found.verdict());
        if !before.as_ref().is_some_and(|before| has_same_result(before, found)) {
            self.feed.publish_event(NameEvent::from_verdicts(name, before.as_deref(), found));
        }
    }

    async fn earlier_results(&self, key: &VerdictCacheKey) -> EarlierResults {
        let content = self.trusted.get(key).await.and_then(|entry| entry.content.clone());
        EarlierResults { failures: self.failures.get(key).await.map_or(0, |entry| entry.failures), content }
    }

    /// Caches a result, or returns why it does not answer the next question. A failure is cached as one.
    async fn insert(
        &self,
        key: VerdictCacheKey,
        found: &FinishedResolution,
        failures_before: u32,
        began: ResolutionStartSnapshot,
    ) -> Result<(), NotCachedReason> {
        let earlier = self.trusted.get(&key).await;
        let stands = |entry: &&Arc<CachedVerdict>| self.evicted.may_still_use_answer(&key.name, &entry.permitted);
        // A confirmation at a head stays valid if a later resolution below that head read the same.
        let before = earlier.as_ref().filter(stands).and_then(|entry| entry.confirming_head_for(&found.resolution));
        let mut entry =
            CachedVerdict::new(found, failures_before, began, self.confirming_head(found, began).max(before));
        let (pool, others) = match found.resolution.verdict().state {
            TrustState::Trusted => (&self.trusted, [&self.untrusted, &self.failures]),
            TrustState::Untrusted => (&self.untrusted, [&self.trusted, &self.failures]),
            TrustState::Indeterminate => return self.insert_failure(key, entry, earlier).await,
        };
        for elsewhere in others {
            elsewhere.invalidate(&key).await;
        }
        if pool
            .policy()
            .max_capacity()
            .is_some_and(|most| u64::try_from(entry.bytes).map_or(true, |bytes| bytes > most))
        {
            pool.invalidate(&key).await;
            return Err(NotCachedReason::TooLarge);
        }
        entry.asked_before = earlier.map_or(0, |earlier| earlier.request_count() / 2);
        self.note_rules(&key);
        pool.insert(key, Arc::new(entry)).await;
        Ok(())
    }

    /// The newest head, if it confirms the result: the result was compared with it, or the resolution began under this
    /// head and read up to its height.
    fn confirming_head(
        &self,
        found: &FinishedResolution,
        began: ResolutionStartSnapshot,
    ) -> Option<HeadSequenceNumber> {
        let seen = self.heads.newest_head()?;
        let is_of_run = Some(seen.id) == began.head && found.reads_chain;
        let is_read = is_of_run && found.resolution.newest_block() >= Some(seen.head.block.number);
        (is_read || found.confirmed_at == Some(seen.id)).then_some(seen.id)
    }

    fn note_rules(&self, key: &VerdictCacheKey) {
        let mut rules = self.lock_noted_rules();
        let of_key = (key.rules, key.depth);
        if !rules.contains(&of_key) {
            rules.push(of_key);
        }
    }

    /// Caches a failure. A trusted verdict stays, unless the resolution saw that the records have changed.
    async fn insert_failure(
        &self,
        key: VerdictCacheKey,
        failure: CachedVerdict,
        trusted: Option<Arc<CachedVerdict>>,
    ) -> Result<(), NotCachedReason> {
        let seen = failure.verdict();
        let is_change = trusted.is_some_and(|trusted| contradicts_earlier_verdict(&trusted.verdict(), &seen));
        if is_change && !clresolve_core::mutant!("stale-across-a-change") {
            self.trusted.invalidate(&key).await;
        }
        self.failures.insert(key, Arc::new(failure)).await;
        Err(if is_change { NotCachedReason::Changed } else { NotCachedReason::Undecided })
    }
}

/// Counts the entries that a pool dropped by itself, not those that were removed on purpose.
fn count_eviction(pool: CachePoolLabel, cause: RemovalCause) {
    match cause {
        RemovalCause::Expired => telemetry::count_cache_eviction(pool, EvictionCause::Expired),
        RemovalCause::Size => telemetry::count_cache_eviction(pool, EvictionCause::Size),
        RemovalCause::Explicit | RemovalCause::Replaced => {}
    }
}

/// Removes the flight when its task ends, even by a panic.
struct InFlightResolutionGuard {
    key: VerdictCacheKey,
    began: ResolutionStartSnapshot,
    flights: Arc<Mutex<HashMap<VerdictCacheKey, InFlightResolution>>>,
}

impl Drop for InFlightResolutionGuard {
    fn drop(&mut self) {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        // After an eviction, another flight may have replaced it.
        if flights.get(&self.key).is_some_and(|flight| flight.began.run == self.began.run) {
            flights.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests;
