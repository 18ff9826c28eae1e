//! Finished verdicts, kept for as long as they are fresh.
//!
//! Trusted verdicts, other verdicts and failures have a pool each: unknown names cannot push good ones out, and a
//! failure evicts no verdict, unless it shows that the records have changed. There is one flight per key. A run belongs
//! to the cache and not to its first caller, so a caller that gives up cancels nothing.
//!
//! A trusted verdict that was asked for is refreshed in the last tenth of its freshness, and kept beyond it: where the
//! run after it failed, it may be described, marked as stale.
//!
//! A name is evicted by a hint at a change on chain ([`Changes`]), or by the word of somebody who saw one: what was asked
//! before is not served in any way, and whoever asks after it joins no run that began before it.

mod changes;
mod content;
mod contradiction;
mod evicted;
#[cfg(feature = "daemon")]
mod feed;
mod key;
#[cfg(feature = "daemon")]
mod operate;
mod proven;

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

#[cfg(feature = "redis")]
use alloy_primitives::Address;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use jiff::{SignedDuration, Timestamp};
use metrics::Counter;
use moka::future::Cache;
use moka::notification::RemovalCause;

pub use self::content::ContentCache;
pub use self::contradiction::OnChange;
#[cfg(feature = "daemon")]
use self::contradiction::says_the_same;
use self::contradiction::{shows_change, shows_other_records};
use self::evicted::{Evicted, Mark, PermittedUpTo};
pub use self::key::CacheKey;
pub use self::proven::ProvenContent;
use crate::config::CacheConfig;
use crate::cpu_share;
use crate::name::EnsName;
use crate::telemetry::{self, Eviction, NotCached, Pool};
use crate::verdict::{Published, Resolution, Stale, State, Verdict};
use clresolve_core::freshness::*;

pub(crate) use self::changes::{Changes, EndpointId, Unread};
#[cfg(feature = "daemon")]
pub(crate) use self::feed::{Event, Feed, Follower};
#[cfg(feature = "daemon")]
pub(crate) use self::operate::{Held, PoolSize, PoolSizes};

/// What a verdict takes in memory for each byte of its JSON: its values are small, and each is an allocation of its
/// own.
const MEMORY_PER_JSON_BYTE: usize = 3;
/// What an entry takes beside its verdict and its card, in bytes: the key, which may be a long name, and the pool's
/// own.
const ENTRY_BYTES: usize = 1024;

/// The pools, in the order in which they are looked into.
const POOLS: [Pool; 3] = [Pool::Trusted, Pool::Untrusted, Pool::Failures];

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
    flights: Flights,
    evicted: Evicted,
    /// What may have changed on chain.
    pub(crate) changes: Arc<Changes>,
    /// What happens to the verdicts, for those who follow it.
    #[cfg(feature = "daemon")]
    pub(crate) feed: Arc<Feed>,
    /// Counters of the three pools, from the first answer on: the program installs its recorder before that.
    hits: [OnceLock<Counter>; 3],
}

/// What a run ended with.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its answer.
    pub resolution: Resolution,
    /// What it proved of the content, where a refresh may use that again.
    pub content: Option<Arc<ProvenContent>>,
    /// Whether a change was announced while it was under way, of which a run that begins now would know.
    pub is_overtaken: bool,
    /// Hears that the answer shows what was held before to be wrong.
    pub on_change: Option<OnChange>,
}

impl From<Resolution> for Finished {
    fn from(resolution: Resolution) -> Self {
        Self { resolution, content: None, is_overtaken: false, on_change: None }
    }
}

/// What earlier runs for a key left to the next one.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Failures in a row.
    pub failures: u32,
    /// What the last trusted run proved of the content.
    pub content: Option<Arc<ProvenContent>>,
}

type Flights = Arc<Mutex<HashMap<CacheKey, Flight>>>;

/// What a run will have found; `None` where it panicked.
type Answer = Shared<BoxFuture<'static, Option<Resolution>>>;

/// A run that is under way.
struct Flight {
    began: Began,
    answer: Answer,
}

/// When a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Began {
    /// The evictions before it.
    evictions: Mark,
    /// By which [`Changes`] knows it. Each run has another one.
    ticket: u64,
}

/// A finished verdict, as it is served from the cache.
struct Entry {
    resolution: Resolution,
    content: Option<Arc<ProvenContent>>,
    /// The evictions before its run, and those after it that were of other names.
    permitted: PermittedUpTo,
    /// By which [`Changes`] knows its run.
    run: u64,
    /// From when on it may be refreshed.
    refresh_from: Timestamp,
    fresh_until: Timestamp,
    /// Until when it may be described as stale.
    stale_until: Timestamp,
    /// How often it was served.
    asked: AtomicU32,
    /// How often its predecessors were, each of them half as much as the one after it.
    asked_before: u32,
    /// Failures in a row, this one included; 0 for a verdict.
    failures: u32,
    /// An estimate of what it takes in memory, in bytes.
    bytes: usize,
    /// By which [`Changes`] knows it, from when it is in a pool.
    ticket: Option<u64>,
}

/// How an entry is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serving {
    /// As an answer, which may open a gate.
    Answer,
    /// As a description of what was true a moment ago.
    Stale,
}

impl Entry {
    /// An entry for the result of a run that began then (`began`). `failures_before` counts the failures in
    /// a row before that run.
    fn new(found: &Finished, failures_before: u32, began: Began) -> Self {
        let verdict = found.resolution.verdict();
        let state = verdict.state;
        let fresh_until = verdict.freshness.fresh_until;
        let fresh = fresh_for(state, failures_before);
        let card = found.resolution.card();
        let content = found.content.as_ref().map_or(0, |content| content.bytes(card));
        Self {
            resolution: found.resolution.from_cache(),
            content: found.content.clone(),
            permitted: began.evictions.into(),
            run: began.ticket,
            refresh_from: before(fresh_until, fresh.saturating_sub(refresh_after(fresh))),
            fresh_until,
            stale_until: after(fresh_until, STALE_FOR),
            asked: AtomicU32::new(0),
            asked_before: 0,
            failures: if state == State::Indeterminate { failures_before.saturating_add(1) } else { 0 },
            bytes: weight(&found.resolution) + content,
            ticket: None,
        }
    }

    /// Whether it is young enough to be served in this way at `now`.
    fn is_young(&self, now: Timestamp, how: Serving) -> bool {
        match how {
            Serving::Answer => {
                now < self.fresh_until || (clresolve_core::mutant!("stale-opens-the-gate") && now < self.stale_until)
            }
            Serving::Stale => now < self.stale_until,
        }
    }

    /// Whether it is to be refreshed at `now`, as long as it may be served.
    fn is_due(&self, now: Timestamp) -> bool {
        self.asked.load(Ordering::Relaxed) > 0 && now >= self.refresh_from
    }

    /// Counts an answer. Two at once may count as one: an exact count would cost each answer more than it is worth.
    fn was_asked(&self) {
        self.asked.store(self.asked.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    /// How much its key is asked for.
    fn demand(&self) -> u32 {
        self.asked.load(Ordering::Relaxed).saturating_add(self.asked_before)
    }
}

fn after(moment: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| moment.checked_add(time).ok()).unwrap_or(moment)
}

fn before(moment: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| moment.checked_sub(time).ok()).unwrap_or(moment)
}

impl VerdictCache {
    /// A cache with pools of the configured sizes, in entries and in bytes.
    pub fn new(config: &CacheConfig) -> Self {
        let changes = Arc::new(Changes::new());
        // moka drops what is no longer served. One time for a pool, and not one for each entry, costs a hit least.
        let pool = |pool, entries: u64, keep: Duration| {
            let followed = Arc::clone(&changes);
            let leave = move |_, entry: Arc<Entry>, cause| {
                if let Some(ticket) = entry.ticket {
                    followed.remove(ticket);
                }
                count_eviction(pool, cause);
            };
            // No entry weighs less than its share, so that neither bound is passed.
            let share = (config.verdict_bytes / entries.max(1)).max(1);
            let weigh = move |_: &CacheKey, entry: &Arc<Entry>| {
                let bytes = if clresolve_core::mutant!("large-verdicts-weigh-nothing") { 0 } else { entry.bytes };
                u32::try_from(share.max(u64::try_from(bytes).unwrap_or(u64::MAX))).unwrap_or(u32::MAX)
            };
            let capacity = share.saturating_mul(entries).min(config.verdict_bytes);
            Cache::builder().max_capacity(capacity).weigher(weigh).time_to_live(keep).eviction_listener(leave).build()
        };
        Self {
            trusted: pool(Pool::Trusted, config.trusted, TRUSTED_FRESH + STALE_FOR),
            other: pool(Pool::Untrusted, config.untrusted, UNTRUSTED_FRESH),
            failures: pool(Pool::Failures, config.untrusted, 2 * LONGEST_BACKOFF),
            flights: Arc::default(),
            evicted: Evicted::default(),
            changes: Arc::clone(&changes),
            #[cfg(feature = "daemon")]
            feed: Arc::default(),
            hits: Default::default(),
        }
    }

    /// The verdict under `key` that is fresh at `now`, else that of a run, which gets what earlier runs left.
    ///
    /// # Panics
    /// When the run panicked.
    pub async fn get_or_run<F, Run>(self: &Arc<Self>, key: CacheKey, now: Timestamp, run: F) -> Resolution
    where
        F: FnOnce(Before) -> Run + Send + 'static,
        Run: Future<Output: Into<Finished>> + Send + 'static,
    {
        if let Some(resolution) = self.fresh(&key, now).await {
            return resolution;
        }
        telemetry::cache_miss(telemetry::Cache::Verdicts);
        self.flight(key, 0, run).await.expect("a run of the walk does not panic")
    }

    /// The verdict of a new run, or of one that is under way and began after the last gap in what is known of the chain. A fresh
    /// verdict is not used.
    ///
    /// # Panics
    /// When the run panicked.
    pub async fn run_anew<F, Run>(self: &Arc<Self>, key: CacheKey, run: F) -> Resolution
    where
        F: FnOnce(Before) -> Run + Send + 'static,
        Run: Future<Output: Into<Finished>> + Send + 'static,
    {
        self.flight(key, self.changes.gap(), run).await.expect("a run of the walk does not panic")
    }

    /// The keys of trusted verdicts that were asked for and are in the last tenth of their freshness at `now`; what ends
    /// first stands first. As many as the pool holds at most.
    pub fn due(&self, now: Timestamp) -> Vec<Arc<CacheKey>> {
        let due = self.trusted.iter().filter(|(key, entry)| self.is_due(key, entry, now));
        let mut due: Vec<_> = due.map(|(key, entry)| (entry.fresh_until, key)).collect();
        due.sort_by_key(|(until, _)| *until);
        due.into_iter().map(|(_, key)| key).collect()
    }

    /// Makes the run for a key that is still due at `now`, or waits for the one that is under way. After a failure its
    /// pause is kept. `None` where no run was made.
    pub async fn refresh<F, Run>(self: &Arc<Self>, key: &CacheKey, now: Timestamp, run: F) -> Option<Resolution>
    where
        F: FnOnce(Before) -> Run + Send + 'static,
        Run: Future<Output: Into<Finished>> + Send + 'static,
    {
        let is_due = self.trusted.get(key).await.is_some_and(|entry| self.is_due(key, &entry, now));
        let failure = self.failures.get(key).await;
        let failed = failure.is_some_and(|failure| self.servable(key, &failure, now, Serving::Answer));
        let is_backed_off = failed && !clresolve_core::mutant!("refreshes-without-a-pause");
        if !is_due || is_backed_off {
            return None;
        }
        let resolution = self.flight(key.clone(), 0, run).await?;
        telemetry::cache_refreshed(resolution.verdict().state.as_str());
        Some(resolution)
    }

    /// The trusted verdict under `key` that has ceased to be fresh less than [`STALE_FOR`] ago, where the run after it
    /// failed and showed no change. It answers a question that was typed as `input`.
    pub async fn stale(&self, key: &CacheKey, input: &str, now: Timestamp) -> Option<Stale> {
        self.failures.get(key).await?;
        let entry = self.trusted.get(key).await.filter(|entry| self.servable(key, entry, now, Serving::Stale))?;
        telemetry::cache_hit(Pool::Stale);
        Some(entry.resolution.clone().asked_as(input).stale())
    }

    /// The names with trusted verdicts that are asked for, the most asked for first, at most `most` of them.
    #[cfg(feature = "daemon")]
    pub fn hot(&self, most: usize) -> Vec<EnsName> {
        let mut demand: HashMap<EnsName, u32> = HashMap::new();
        for (key, entry) in self.trusted.iter().filter(|(_, entry)| entry.demand() > 0) {
            let of_name = demand.entry(key.name.clone()).or_default();
            *of_name = of_name.saturating_add(entry.demand());
        }
        let mut names: Vec<(EnsName, u32)> = demand.into_iter().collect();
        names.sort_by(|(one, of_one), (other, of_other)| {
            of_other.cmp(of_one).then_with(|| one.as_str().cmp(other.as_str()))
        });
        names.into_iter().take(most).map(|(name, _)| name).collect()
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
        let (pool, entry) = self.find(key, now).await?;
        entry.was_asked();
        self.hits[pool].get_or_init(|| telemetry::cache_hits(POOLS[pool])).increment(1);
        Some(entry.resolution.clone())
    }

    /// The entry that answers at `now`, and the place of its pool in [`POOLS`].
    async fn find(&self, key: &CacheKey, now: Timestamp) -> Option<(usize, Arc<Entry>)> {
        for (pool, entries) in [&self.trusted, &self.other, &self.failures].into_iter().enumerate() {
            if let Some(entry) = entries.get(key).await.filter(|entry| self.servable(key, entry, now, Serving::Answer))
            {
                return Some((pool, entry));
            }
        }
        None
    }

    /// Whether an entry may be served in this way at `now`. Every way of serving asks here.
    fn servable(&self, key: &CacheKey, entry: &Entry, now: Timestamp, how: Serving) -> bool {
        entry.is_young(now, how) && self.evicted.permits_still(&key.name, &entry.permitted)
    }

    fn is_due(&self, key: &CacheKey, entry: &Entry, now: Timestamp) -> bool {
        entry.is_due(now) && self.servable(key, entry, now, Serving::Answer)
    }

    /// Refuses what was answered about `name` until `now`, and what runs under way will say of it.
    pub fn evict(&self, name: &EnsName, now: Timestamp) {
        self.evicted.record(name, now);
        self.leave_flights(name);
        #[cfg(feature = "daemon")]
        self.feed.tell(Event::Eviction { name: name.clone(), at: now });
    }

    /// Whoever asks about `name` from now on joins no run that is under way.
    fn leave_flights(&self, name: &EnsName) {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.retain(|key, _| key.name != *name);
    }

    /// What begins now knows of every eviction and hint until now.
    pub(crate) fn begin(&self) -> Began {
        Began { evictions: self.evicted.mark(), ticket: self.changes.begin() }
    }

    /// Whether `name` was evicted since, or a hint came since that `found` does not know.
    pub(crate) fn unread(&self, name: &EnsName, began: Began, found: &Resolution, now: Timestamp) -> Option<Unread> {
        let unread = self.changes.unread(name, began.ticket, found, now);
        unread.or_else(|| (!self.is_standing(name, began)).then_some(Unread(None)))
    }

    /// Whether what was read up to the block `newest` may be used as it is: this process knows of every change after it that
    /// its endpoints told of.
    #[cfg(feature = "redis")]
    pub(crate) fn remembers_since(&self, newest: Option<u64>, resolver: Option<Address>, now: Timestamp) -> bool {
        self.changes.remembers_since(newest, resolver, now)
    }

    /// A run for hints has ended. Whether it knows of all of them and of every eviction, or is to be made again.
    #[cfg(feature = "daemon")]
    pub(crate) fn judge(&self, name: &EnsName, began: Began, found: &Resolution, now: Timestamp) -> bool {
        self.changes.judge(name, began.ticket, found, now) && self.is_standing(name, began)
    }

    /// Whether `name` was not evicted since.
    pub(crate) fn is_standing(&self, name: &EnsName, began: Began) -> bool {
        self.evicted.permits(name, began.evictions)
    }

    /// When `name` was evicted last, as far as that is remembered.
    #[cfg(feature = "redis")]
    pub fn evicted_at(&self, name: &EnsName) -> Option<Timestamp> {
        self.evicted.at(name)
    }

    /// Joins the run that is under way for `key` and began after the ticket `since`, or starts one.
    fn flight<F, Run>(self: &Arc<Self>, key: CacheKey, since: u64, run: F) -> Answer
    where
        F: FnOnce(Before) -> Run + Send + 'static,
        Run: Future<Output: Into<Finished>> + Send + 'static,
    {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(&key).filter(|flight| flight.began.ticket > since) {
            return flight.answer.clone();
        }
        let began = self.begin();
        let guard = FlightGuard { key: key.clone(), began, flights: Arc::clone(&self.flights) };
        let cache = Arc::clone(self);
        let task = cpu_share::spawn(async move {
            let before = cache.before(&guard.key).await;
            let failures = before.failures;
            let found = run(before).await.into();
            cache.keep(&guard.key, &found, failures, began).await;
            drop(guard);
            found.resolution
        });
        let answer = task.map(Result::ok).boxed().shared();
        flights.insert(key, Flight { began, answer: answer.clone() });
        answer
    }

    /// Keeps what a run found, unless its name was evicted meanwhile. What it shows to be wrong is evicted.
    async fn keep(&self, key: &CacheKey, found: &Finished, failures_before: u32, began: Began) {
        #[cfg(feature = "daemon")]
        let before = self.told_last(key, found.resolution.verdict()).await;
        let began = self.outdate(key, found, began).await;
        if !self.is_standing(&key.name, began) {
            return telemetry::not_cached(key.name.as_str(), NotCached::Overtaken);
        }
        if let Err(why) = self.insert(key.clone(), found, failures_before, began).await {
            telemetry::not_cached(key.name.as_str(), why);
        }
        #[cfg(feature = "daemon")]
        self.tell(&key.name, before.as_deref(), &found.resolution);
        self.settle(key, began, &found.resolution);
    }

    /// Evicts the name of `key` where a finding shows that something is wrong of what is held about it. The finding stands by
    /// that, as one of a run that began when it is said here, unless something that it contradicts has read further.
    async fn outdate(&self, key: &CacheKey, found: &Finished, began: Began) -> Began {
        let (verdict, newest) = (found.resolution.verdict(), found.resolution.newest());
        let wrong = self.contradicted(key, verdict).await;
        if wrong.is_empty() || clresolve_core::mutant!("stale-across-a-change") {
            return began;
        }
        let at = verdict.freshness.checked_at;
        let Some(evictions) = self.evicted.record_by(&key.name, began.evictions, at) else { return began };
        self.leave_flights(&key.name);
        if let Some(on_change) = &found.on_change {
            on_change.hear();
        }
        if wrong.iter().any(|entry| entry.resolution.newest() > newest) {
            self.evict(&key.name, at);
        }
        Began { evictions, ..began }
    }

    /// What may still be served in some way and contradicts what was found under `key`: the verdict under this key, and
    /// trusted ones under others, which were read from the same chain at the same kind of block.
    async fn contradicted(&self, key: &CacheKey, found: &Verdict) -> Vec<Arc<Entry>> {
        let mut entries = Vec::new();
        for pool in [&self.trusted, &self.other] {
            let held = pool.get(key).await;
            entries.extend(held.filter(|entry| shows_change(entry.resolution.verdict(), found)));
        }
        let is_other = |other: &CacheKey| other != key && other.world == key.world && other.block == key.block;
        for other in self.changes.keys(&key.name).into_iter().filter(is_other) {
            let held = self.trusted.get(&other).await;
            entries.extend(held.filter(|entry| shows_other_records(entry.resolution.verdict(), found)));
        }
        entries.retain(|entry| self.servable(key, entry, found.freshness.checked_at, Serving::Stale));
        entries
    }

    /// What those who follow a name were told last: the failure after the latest verdict, else that verdict while it is fresh.
    /// Beyond that a failure may have come and gone, so what is found then is told anew.
    #[cfg(feature = "daemon")]
    async fn told_last(&self, key: &CacheKey, found: &Verdict) -> Option<Arc<Entry>> {
        let is_standing = |entry: &Arc<Entry>| self.evicted.permits_still(&key.name, &entry.permitted);
        if let Some(failure) = self.failures.get(key).await.filter(is_standing) {
            return Some(failure);
        }
        let now = found.freshness.checked_at;
        for pool in [&self.trusted, &self.other] {
            let fresh = |entry: &Arc<Entry>| is_standing(entry) && entry.is_young(now, Serving::Answer);
            if let Some(verdict) = pool.get(key).await.filter(fresh) {
                return Some(verdict);
            }
        }
        None
    }

    /// Tells what a run found, where that is not what was held before.
    #[cfg(feature = "daemon")]
    fn tell(&self, name: &EnsName, before: Option<&Entry>, found: &Resolution) {
        let (before, found) = (before.map(|before| before.resolution.verdict()), found.verdict());
        if !before.is_some_and(|before| says_the_same(before, found)) {
            self.feed.tell(Event::decided(name, before.map(|before| &**before), found));
        }
    }

    /// Evicts a name whose run does not know of a hint, that run's own verdict among the rest: the hint came just before that
    /// was kept, when nothing of the name was.
    fn settle(&self, key: &CacheKey, began: Began, found: &Resolution) {
        let verdict = found.verdict();
        let at = verdict.freshness.checked_at;
        let is_unread = verdict.state != State::Indeterminate && self.unread(&key.name, began, found, at).is_some();
        if is_unread && !clresolve_core::mutant!("overtaken-verdicts-are-kept") {
            self.evict(&key.name, at);
        }
    }

    async fn before(&self, key: &CacheKey) -> Before {
        let content = self.trusted.get(key).await.and_then(|entry| entry.content.clone());
        Before { failures: self.failures.get(key).await.map_or(0, |entry| entry.failures), content }
    }

    /// Keeps what a run found, or says why it is not an answer to the next question. A failure is remembered as one.
    async fn insert(
        &self,
        key: CacheKey,
        found: &Finished,
        failures_before: u32,
        began: Began,
    ) -> Result<(), NotCached> {
        let mut entry = Entry::new(found, failures_before, began);
        let earlier = self.trusted.get(&key).await;
        let (pool, others) = match found.resolution.verdict().state {
            State::Trusted => (&self.trusted, [&self.other, &self.failures]),
            State::Untrusted => (&self.other, [&self.trusted, &self.failures]),
            State::Indeterminate => return self.insert_failure(key, entry, earlier).await,
        };
        for other in others {
            other.invalidate(&key).await;
        }
        if pool
            .policy()
            .max_capacity()
            .is_some_and(|most| u64::try_from(entry.bytes).map_or(true, |bytes| bytes > most))
        {
            pool.invalidate(&key).await;
            return Err(NotCached::TooLarge);
        }
        entry.asked_before = earlier.map_or(0, |earlier| earlier.demand() / 2);
        self.put(pool, key, entry).await;
        Ok(())
    }

    async fn put(&self, pool: &Cache<CacheKey, Arc<Entry>>, key: CacheKey, mut entry: Entry) {
        entry.ticket = Some(self.changes.add(&key, &entry.resolution, entry.run));
        pool.insert(key, Arc::new(entry)).await;
    }

    /// Remembers a failure. A trusted verdict stays, unless the run saw that the records have changed.
    async fn insert_failure(
        &self,
        key: CacheKey,
        failure: Entry,
        trusted: Option<Arc<Entry>>,
    ) -> Result<(), NotCached> {
        let seen = failure.resolution.verdict();
        let is_change = trusted.is_some_and(|trusted| shows_change(trusted.resolution.verdict(), seen));
        if is_change && !clresolve_core::mutant!("stale-across-a-change") {
            self.trusted.invalidate(&key).await;
        }
        self.put(&self.failures, key, failure).await;
        Err(if is_change { NotCached::Changed } else { NotCached::Undecided })
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
    began: Began,
    flights: Flights,
}

impl Drop for FlightGuard {
    fn drop(&mut self) {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        // After an eviction another one may have taken its place.
        if flights.get(&self.key).is_some_and(|flight| flight.began == self.began) {
            flights.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use jiff::ToSpan as _;

    use super::*;
    use crate::chain::BlockSelector;
    use crate::digest::Digest;
    use crate::reason::{Code, Reason};
    use crate::records::Record;
    use crate::verdict::{Anchor, AnchorBlock, Depth, Identity, Served};
    use clresolve_core::payment::{EndpointKey, EndpointRecord, PaymentRecords};
    use clresolve_core::reading::{Grade, Proof};
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
        Arc::new(VerdictCache::new(&CacheConfig::default()))
    }

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    /// Keeps the verdict of a run that ended at that time; gives why it is not in the cache.
    async fn keep(cache: &VerdictCache, name: &str, state: State, at: Timestamp) -> Option<NotCached> {
        cache.insert(key(name), &resolution(state, at, 0).into(), 0, cache.begin()).await.err()
    }

    /// A verdict on a name whose records have this digest.
    fn anchored(state: State, records: &str) -> Verdict {
        let anchor = Anchor {
            world: "mainnet".to_owned(),
            chain: "eip155:1".to_owned(),
            block: AnchorBlock {
                number: 1,
                hash: String::new(),
                timestamp: START.to_string(),
                tag: "finalized".to_owned(),
            },
            resolver: Some("0x1".to_owned()),
            wildcard: None,
            offchain: false,
            proof: Proof { grade: Grade::Quorum, asked: 3, agreed: 2, own: false },
            records_digest: Some(records.to_owned()),
        };
        Verdict { anchor: Some(anchor), ..Verdict::clone(resolution(state, START, 0).verdict()) }
    }

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
        let fail = |before: Before| async move { resolution(State::Indeterminate, START, before.failures) };
        let first = cache.get_or_run(key("a.eth"), START, fail).await;
        assert_eq!(first.verdict().freshness.retry_after, Some(1));
        let later = START + 1.second();
        let second = cache
            .get_or_run(key("a.eth"), later, move |before: Before| async move {
                resolution(State::Indeterminate, later, before.failures)
            })
            .await;
        assert_eq!(second.verdict().freshness.retry_after, Some(2));

        keep(&cache, "b.eth", State::Trusted, START).await;
        keep(&cache, "b.eth", State::Indeterminate, START).await;
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

        keep(&cache, "b.eth", State::Trusted, START).await;
        let later = START + 9.seconds();
        assert!(matches!(cache.status(&key("b.eth"), later).await, CacheStatus::Fresh(_)));
        assert_eq!(cache.since_run(&key("b.eth"), later).await.as_secs(), 9);
        keep(&cache, "b.eth", State::Indeterminate, later).await;
        assert_eq!(cache.since_run(&key("b.eth"), later).await.as_secs(), 0, "a failed run counts too");
    }

    #[tokio::test]
    async fn a_new_run_is_made_although_a_verdict_is_fresh() {
        let cache = cache();
        keep(&cache, "a.eth", State::Trusted, START).await;
        let run = |_| async { resolution(State::Untrusted, START, 0) };
        assert_eq!(cache.run_anew(key("a.eth"), run).await.verdict().state, State::Untrusted);
        assert_eq!(cache.fresh(&key("a.eth"), START).await.map(|r| r.verdict().state), Some(State::Untrusted));
    }

    /// How many of twenty trusted verdicts with cards of this size are kept, and what they weigh.
    async fn kept(config: CacheConfig, card_bytes: usize) -> (u64, u64) {
        let cache = VerdictCache::new(&config);
        for number in 0..20 {
            let verdict = Verdict::clone(resolution(State::Trusted, START, 0).verdict());
            let resolution = live(verdict, Some(vec![b' '; card_bytes].into()));
            let _ = cache.insert(key(&format!("a{number}.eth")), &resolution.into(), 0, cache.begin()).await;
            cache.trusted.run_pending_tasks().await;
        }
        (cache.trusted.entry_count(), cache.trusted.weighted_size())
    }

    #[tokio::test]
    async fn verdicts_are_bounded_in_number_and_in_bytes() {
        let config = CacheConfig { verdict_bytes: 1 << 20, ..CacheConfig::default() };
        let (entries, bytes) = kept(config.clone(), 256 << 10).await;
        assert!(
            (1..=3).contains(&entries) && bytes <= 1 << 20,
            "{entries} entries of the largest cards, {bytes} bytes"
        );
        assert_eq!(kept(config.clone(), 2 << 10).await.0, 20, "small ones have room");
        assert_eq!(kept(CacheConfig { trusted: 7, ..config.clone() }, 2 << 10).await.0, 7);
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
        keep(&cache, "a.eth", State::Trusted, START).await;
        keep(&cache, "a.eth", State::Untrusted, START).await;
        assert_eq!(cache.fresh(&key("a.eth"), START).await.map(|r| r.verdict().state), Some(State::Untrusted));
    }

    #[tokio::test]
    async fn what_was_asked_for_is_due_in_its_last_tenth() {
        let cache = cache();
        for (name, at) in [("later.eth", START + 5.seconds()), ("a.eth", START), ("unasked.eth", START)] {
            keep(&cache, name, State::Trusted, at).await;
        }
        keep(&cache, "bad.eth", State::Untrusted, START + 240.seconds()).await;
        assert!(cache.due(START + 280.seconds()).is_empty(), "nobody has asked");
        for name in ["a.eth", "later.eth", "bad.eth"] {
            assert!(cache.fresh(&key(name), START + 6.seconds()).await.is_some());
        }
        let due = |seconds: i64| -> Vec<String> {
            cache.due(START + seconds.seconds()).iter().map(|key| key.name.as_str().to_owned()).collect()
        };
        assert!(due(269).is_empty());
        assert_eq!(due(270), ["a.eth"]);
        assert_eq!(due(280), ["a.eth", "later.eth"], "what ends first stands first");
        assert_eq!(due(300), ["later.eth"], "what has ended is not refreshed");
        keep(&cache, "a.eth", State::Trusted, START + 280.seconds()).await;
        assert!(!due(579).contains(&"a.eth".to_owned()), "nobody has asked since the run");
    }

    #[tokio::test]
    async fn a_refresh_that_fails_is_backed_off_and_leaves_what_is_fresh() {
        let (cache, runs) = (cache(), Arc::new(AtomicUsize::new(0)));
        keep(&cache, "a.eth", State::Trusted, START).await;
        cache.fresh(&key("a.eth"), START).await.expect("it is fresh");
        for (seconds, expected_runs) in [(200, 0), (270, 1), (270, 1), (271, 2), (272, 2), (273, 3), (300, 3)] {
            let (now, counter) = (START + seconds.seconds(), Arc::clone(&runs));
            let run = move |before: Before| async move {
                counter.fetch_add(1, Ordering::SeqCst);
                resolution(State::Indeterminate, now, before.failures)
            };
            cache.refresh(&key("a.eth"), now, run).await;
            assert_eq!(runs.load(Ordering::SeqCst), expected_runs, "after {seconds} s");
            let served = cache.fresh(&key("a.eth"), now).await.map(|served| served.verdict().state);
            assert_eq!(served, (seconds < 300).then_some(State::Trusted), "after {seconds} s");
        }
    }

    #[tokio::test]
    async fn whoever_asks_joins_the_refresh() {
        let cache = cache();
        keep(&cache, "a.eth", State::Trusted, START).await;
        cache.fresh(&key("a.eth"), START).await.expect("it is fresh");
        let (release, gate) = tokio::sync::oneshot::channel::<()>();
        let now = START + 299.seconds();
        let run = move |_| async move {
            let _ = gate.await;
            resolution(State::Untrusted, now, 0)
        };
        let key = key("a.eth");
        let mut refresh = Box::pin(cache.refresh(&key, now, run));
        assert!(futures_util::poll!(&mut refresh).is_pending());
        assert!(matches!(cache.status(&key, now + 1.second()).await, CacheStatus::UnderWay));
        let asked =
            cache.get_or_run(key.clone(), now + 1.second(), move |_| async move { resolution(State::Trusted, now, 0) });
        release.send(()).expect("the run waits");
        assert_eq!(asked.await.verdict().state, State::Untrusted);
    }

    #[tokio::test]
    async fn what_has_ended_is_stale_for_ten_minutes_after_a_failure_alone() {
        let cache = cache();
        keep(&cache, "a.eth", State::Trusted, START).await;
        let stale = async |name: &str, seconds: i64| {
            let stale = cache.stale(&key(name), "A.eth", START + seconds.seconds()).await;
            stale.map(|stale| (stale.verdict().freshness.served, stale.verdict().name.input.clone()))
        };
        assert_eq!(stale("a.eth", 300).await, None, "no run has failed");
        keep(&cache, "a.eth", State::Indeterminate, START + 300.seconds()).await;
        let described = Some((Served::Stale, "A.eth".to_owned()));
        assert_eq!((stale("a.eth", 300).await, stale("a.eth", 899).await), (described.clone(), described));
        assert_eq!(stale("a.eth", 900).await, None);
        let answer = cache.fresh(&key("a.eth"), START + 300.seconds()).await.expect("the failure is remembered");
        assert_eq!(answer.verdict().state, State::Indeterminate, "an answer is never stale");
        let stored = cache.trusted.get(&key("a.eth")).await.expect("it is kept");
        let id = |resolution: &Resolution| Verdict::clone(resolution.verdict()).with_digests().id;
        assert_eq!(stored.resolution.stale().verdict().as_ref().clone().with_digests().id, id(&stored.resolution));

        keep(&cache, "b.eth", State::Untrusted, START).await;
        keep(&cache, "b.eth", State::Indeterminate, START + 60.seconds()).await;
        assert_eq!(stale("b.eth", 60).await, None, "what was not trusted is never stale");
    }

    #[tokio::test]
    async fn nothing_is_served_across_a_change() {
        let pending =
            Verdict { reasons: vec![Reason::new(Code::RecordPending)], ..anchored(State::Indeterminate, "sha256:1") };
        let other_resolver = {
            let mut verdict = anchored(State::Indeterminate, "sha256:1");
            verdict.anchor.as_mut().expect("it has one").resolver = None;
            verdict
        };
        let unread = Verdict { anchor: None, ..anchored(State::Indeterminate, "") };
        for (seen, is_change) in [
            (anchored(State::Indeterminate, "sha256:1"), false),
            (unread, false),
            (anchored(State::Indeterminate, "sha256:2"), true),
            (other_resolver, true),
            (pending, true),
        ] {
            let cache = cache();
            let trusted = live(anchored(State::Trusted, "sha256:1"), None);
            let began = cache.begin();
            cache.insert(key("a.eth"), &trusted.into(), 0, began).await.expect("it is cached");
            let why =
                cache.insert(key("a.eth"), &live(seen, None).into(), 0, began).await.expect_err("it is a failure");
            assert_eq!(why == NotCached::Changed, is_change, "{why:?}");
            let state = cache.fresh(&key("a.eth"), START).await.expect("the failure at least").verdict().state;
            assert_eq!(state == State::Trusted, !is_change);
            assert_eq!(cache.stale(&key("a.eth"), "a.eth", START + 300.seconds()).await.is_some(), !is_change);
        }
    }

    /// What an agent is under one set of rules rests on the same records as what it is under another.
    #[tokio::test]
    async fn a_change_that_a_run_shows_ends_what_was_answered_under_every_key() {
        let (cache, told) = (cache(), Arc::new(AtomicUsize::new(0)));
        let under = |rules: &[u8]| CacheKey { rules: Digest::of(rules), ..key("a.eth") };
        let elsewhere = CacheKey { world: "elsewhere".into(), ..key("a.eth") };
        let found = |records: &str, checked_at: Timestamp, newest: u64| {
            let mut verdict = anchored(State::Trusted, records);
            verdict.freshness = resolution(State::Trusted, checked_at, 0).verdict().freshness.clone();
            let (told, resolution) = (Arc::clone(&told), clresolve_verdict::sample::read_to(verdict, newest));
            let on_change = Some(OnChange::new(move || {
                told.fetch_add(1, Ordering::SeqCst);
            }));
            Finished { on_change, ..resolution.into() }
        };
        let run = async |key: CacheKey, found: Finished| {
            let now = found.resolution.verdict().freshness.checked_at;
            cache.get_or_run(key, now, |_| async { found }).await
        };
        let later = START + 300.seconds();
        for (key, at) in
            [(under(b"1"), later - 301.seconds()), (under(b"2"), later - 1.second()), (elsewhere.clone(), later)]
        {
            run(key, found("sha256:1", at, 7)).await;
        }
        keep(&cache, "a.eth", State::Indeterminate, later).await;
        run(under(b"1"), found("sha256:1", later, 8)).await;
        assert_eq!(told.load(Ordering::SeqCst), 0, "nothing has changed");
        assert!(cache.fresh(&under(b"2"), later).await.is_some());

        run(under(b"3"), found("sha256:2", later, 9)).await;
        assert_eq!(told.load(Ordering::SeqCst), 1);
        for gone in [under(b"1"), under(b"2"), elsewhere] {
            assert!(cache.fresh(&gone, later).await.is_none());
        }
        assert!(cache.fresh(&under(b"3"), later).await.is_some(), "the one that showed it stands");

        // One that has read less shows nothing but that something is wrong.
        run(under(b"1"), found("sha256:1", later, 8)).await;
        assert_eq!(told.load(Ordering::SeqCst), 2);
        for gone in [under(b"1"), under(b"3")] {
            assert!(cache.fresh(&gone, later).await.is_none());
        }
    }

    #[tokio::test]
    async fn what_has_ended_is_not_stale_once_a_run_under_other_rules_showed_a_change() {
        let cache = cache();
        let other = CacheKey { depth: Depth::Schemas, ..key("a.eth") };
        let trusted = live(anchored(State::Trusted, "sha256:1"), None);
        cache.get_or_run(key("a.eth"), START, |_| async { trusted }).await;
        keep(&cache, "a.eth", State::Indeterminate, START + 300.seconds()).await;
        let stale = async || cache.stale(&key("a.eth"), "a.eth", START + 301.seconds()).await.is_some();
        assert!(stale().await);
        let mut pending = anchored(State::Indeterminate, "sha256:1");
        pending.reasons = vec![Reason::new(Code::RecordPending)];
        pending.freshness = resolution(State::Indeterminate, START + 301.seconds(), 0).verdict().freshness.clone();
        let found = live(pending, None);
        cache.get_or_run(other, START + 301.seconds(), |_| async { found }).await;
        assert!(!stale().await);
    }

    #[test]
    fn another_state_is_a_change_and_a_failure_is_none() {
        let of = |state| anchored(state, "sha256:1");
        let change = |before, after| shows_change(&of(before), &of(after));
        assert!(change(State::Trusted, State::Untrusted) && change(State::Untrusted, State::Trusted));
        assert!(!change(State::Trusted, State::Trusted) && !change(State::Trusted, State::Indeterminate));
        assert!(!change(State::Indeterminate, State::Trusted), "nothing was wrong");
        let pending =
            Verdict { reasons: vec![Reason::new(Code::RecordPending)], ..anchored(State::Indeterminate, "sha256:1") };
        assert!(shows_change(&of(State::Trusted), &pending) && !shows_change(&pending, &pending));
        let unread = Verdict { anchor: None, ..of(State::Indeterminate) };
        assert!(!shows_change(&unread, &of(State::Trusted)));
    }

    #[tokio::test]
    async fn an_evicted_name_is_neither_served_nor_stale_nor_refreshed() {
        let cache = cache();
        keep(&cache, "a.eth", State::Trusted, START).await;
        keep(&cache, "a.eth", State::Indeterminate, START + 299.seconds()).await;
        cache.fresh(&key("a.eth"), START).await.expect("it is fresh");
        let (last, after) = (START + 299.seconds(), START + 301.seconds());
        let stale = async || cache.stale(&key("a.eth"), "a.eth", after).await.is_some();
        assert!(cache.due(last).len() == 1 && stale().await);
        cache.evict(&key("a.eth").name, last);
        assert!(cache.fresh(&key("a.eth"), last).await.is_none());
        assert!(cache.due(last).is_empty() && !stale().await);
        let refreshed = cache.refresh(&key("a.eth"), last, |_| async { resolution(State::Trusted, START, 0) }).await;
        assert!(refreshed.is_none());
    }

    #[tokio::test]
    async fn whoever_asks_after_an_eviction_joins_no_run_from_before_it() {
        let cache = cache();
        let (release, gate) = tokio::sync::oneshot::channel::<()>();
        let overtaken = |_| async move {
            let _ = gate.await;
            resolution(State::Trusted, START, 0)
        };
        let mut first = Box::pin(cache.get_or_run(key("a.eth"), START, overtaken));
        assert!(futures_util::poll!(&mut first).is_pending());
        cache.evict(&key("a.eth").name, START);
        let (go_on, wait) = tokio::sync::oneshot::channel::<()>();
        let after = |_| async move {
            let _ = wait.await;
            resolution(State::Untrusted, START, 0)
        };
        let mut second = Box::pin(cache.get_or_run(key("a.eth"), START, after));
        assert!(futures_util::poll!(&mut second).is_pending());
        release.send(()).expect("the run waits");
        assert_eq!(first.await.verdict().state, State::Trusted, "to those who asked before");
        let status = cache.status(&key("a.eth"), START).await;
        assert!(matches!(status, CacheStatus::UnderWay), "it left nothing, and not the place of the other: {status:?}");
        go_on.send(()).expect("the run waits");
        assert_eq!(second.await.verdict().state, State::Untrusted);
        assert_eq!(cache.fresh(&key("a.eth"), START).await.map(|r| r.verdict().state), Some(State::Untrusted));
    }

    #[tokio::test]
    async fn why_a_verdict_is_not_cached_is_a_value() {
        let cache = VerdictCache::new(&CacheConfig { trusted: 0, ..CacheConfig::default() });
        assert_eq!(keep(&cache, "a.eth", State::Trusted, START).await, Some(NotCached::TooLarge));
        assert_eq!(keep(&cache, "a.eth", State::Indeterminate, START).await, Some(NotCached::Undecided));
        assert_eq!(keep(&cache, "a.eth", State::Untrusted, START).await, None);
    }

    /// The series of a family that this thread has counted.
    fn counted(counts: &telemetry::Exposition, family: &str) -> Vec<String> {
        counts.render().lines().filter(|line| line.starts_with(family)).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn what_is_not_cached_is_counted_by_its_reason() {
        let counts = telemetry::Exposition::default();
        let _counting = metrics::set_default_local_recorder(&counts);
        let run = async |cache: &Arc<VerdictCache>, found: Resolution| {
            cache.run_anew(key("a.eth"), |_| async { found }).await;
        };
        let no_room = Arc::new(VerdictCache::new(&CacheConfig { trusted: 0, ..CacheConfig::default() }));
        run(&no_room, resolution(State::Trusted, START, 0)).await;
        let cache = cache();
        for _ in 0..2 {
            run(&cache, resolution(State::Indeterminate, START, 0)).await;
        }
        for (state, records) in
            [(State::Trusted, "sha256:1"), (State::Indeterminate, "sha256:2"), (State::Untrusted, "sha256:2")]
        {
            run(&cache, live(anchored(state, records), None)).await;
        }
        assert_eq!(
            counted(&counts, "clresolve_cache_not_stored_total{"),
            [("changed", 1), ("too-large", 1), ("undecided", 2)]
                .map(|(why, count)| format!("clresolve_cache_not_stored_total{{why=\"{why}\"}} {count}"))
        );
    }

    /// It may have read what stood before the eviction.
    #[tokio::test]
    async fn a_verdict_that_an_eviction_overtook_is_not_kept_and_counted() {
        let counts = telemetry::Exposition::default();
        let _counting = metrics::set_default_local_recorder(&counts);
        let cache = cache();
        let evicting = Arc::clone(&cache);
        let overtaken = |_| async move {
            evicting.evict(&key("a.eth").name, START);
            resolution(State::Trusted, START, 0)
        };
        let found = cache.get_or_run(key("a.eth"), START, overtaken).await;
        assert_eq!(found.verdict().state, State::Trusted, "to whoever asked before");
        assert!(cache.trusted.get(&key("a.eth")).await.is_none(), "it takes nobody's place");
        let why = counted(&counts, "clresolve_cache_not_stored_total{");
        assert_eq!(why, ["clresolve_cache_not_stored_total{why=\"overtaken\"} 1"]);
        let after = |_| async { resolution(State::Untrusted, START, 0) };
        assert_eq!(cache.get_or_run(key("a.eth"), START, after).await.verdict().state, State::Untrusted);
    }

    #[tokio::test]
    async fn refreshes_are_counted_by_what_they_found() {
        let counts = telemetry::Exposition::default();
        let _counting = metrics::set_default_local_recorder(&counts);
        let cache = cache();
        let mut now = START;
        for state in [State::Trusted, State::Trusted, State::Indeterminate, State::Untrusted] {
            keep(&cache, "a.eth", State::Trusted, now).await;
            let too_early = |_| async { resolution(State::Untrusted, START, 0) };
            assert!(cache.refresh(&key("a.eth"), now, too_early).await.is_none());
            cache.fresh(&key("a.eth"), now).await.expect("it is fresh");
            now += 280.seconds();
            cache.refresh(&key("a.eth"), now, move |_| async move { resolution(state, now, 0) }).await;
        }
        assert_eq!(
            counted(&counts, "clresolve_cache_refreshes_total{"),
            [("indeterminate", 1), ("trusted", 2), ("untrusted", 1)]
                .map(|(state, count)| format!("clresolve_cache_refreshes_total{{state=\"{state}\"}} {count}"))
        );
    }

    #[tokio::test]
    async fn the_most_asked_for_is_the_hottest_and_its_past_counts_half() {
        let cache = cache();
        for (name, times) in [("b.eth", 4), ("a.eth", 4), ("once.eth", 0), ("c.eth", 6)] {
            keep(&cache, name, State::Trusted, START).await;
            for _ in 0..times {
                cache.fresh(&key(name), START).await.expect("it is fresh");
            }
        }
        let hot = |most| -> Vec<String> { cache.hot(most).iter().map(|name| name.as_str().to_owned()).collect() };
        assert_eq!(hot(9), ["c.eth", "a.eth", "b.eth"]);
        assert_eq!(hot(1), ["c.eth"]);
        keep(&cache, "c.eth", State::Trusted, START).await;
        assert_eq!(hot(9), ["a.eth", "b.eth", "c.eth"]);
    }

    /// Beyond its freshness a failure may have come and gone without a trace.
    #[cfg(feature = "daemon")]
    #[tokio::test]
    async fn who_follows_is_told_what_differs_and_anew_once_a_verdict_has_aged() {
        let cache = cache();
        let mut follower = cache.feed.follow([key("a.eth").name].into());
        for (state, seconds, is_told) in [
            (State::Trusted, 0, true),
            (State::Trusted, 10, false),
            (State::Indeterminate, 20, true),
            (State::Indeterminate, 30, false),
            (State::Trusted, 40, true),
            (State::Untrusted, 50, true),
            (State::Untrusted, 60, false),
            (State::Untrusted, 5000, true),
        ] {
            let at = START + seconds.seconds();
            cache.run_anew(key("a.eth"), move |_| async move { resolution(state, at, 0) }).await;
            let told = follower.next().now_or_never().is_some();
            assert_eq!(told, is_told, "{state} after {seconds} s");
        }
    }

    /// Other codes, warnings too, or another identity are news. Another block is not.
    #[cfg(feature = "daemon")]
    #[tokio::test]
    async fn who_follows_is_told_of_other_codes_and_of_another_identity() {
        let cache = cache();
        let mut follower = cache.feed.follow([key("a.eth").name].into());
        let good = anchored(State::Trusted, "sha256:1");
        let mut later = good.clone();
        later.anchor.as_mut().expect("it is anchored").block.number += 1;
        let expired = Verdict { reasons: vec![Reason::new(Code::NameExpired)], ..good.clone() };
        let identified = Verdict { identity: Some(Identity::default()), ..good.clone() };
        for (verdict, is_told) in
            [(&good, true), (&later, false), (&expired, true), (&expired, false), (&good, true), (&identified, true)]
        {
            let found = live(verdict.clone(), None);
            cache.run_anew(key("a.eth"), move |_| async move { found }).await;
            assert_eq!(follower.next().now_or_never().is_some(), is_told, "{verdict:?}");
        }
    }
}
