//! Finished verdicts, kept for as long as they are fresh.
//!
//! Trusted verdicts, other verdicts and failures have a pool each: unknown names cannot push good ones out, and a
//! failure evicts no verdict, unless it shows that the records have changed. There is one flight per key. A run belongs
//! to the cache and not to its first caller, so a caller that gives up cancels nothing.
//!
//! A trusted verdict that was asked for is refreshed in the last tenth of its freshness, and kept beyond it: where the
//! run after it failed, it may be described, marked as stale.
//!
//! A name is evicted by a hint at a change on chain (`Changes`), or by the word of somebody who saw one: what was asked
//! before is not served in any way, and whoever asks after it joins no run that began before it.

mod changes;
mod content;
mod contradiction;
mod evicted;
mod feed;
mod key;
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
use clresolve_core::freshness::*;
use clresolve_core::name::EnsName;
use clresolve_core::state::State;
use clresolve_verdict::published::Published;
use clresolve_verdict::trust::{Resolution, Stale};
use clresolve_verdict::verdict::Verdict;
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use jiff::{SignedDuration, Timestamp};
use metrics::Counter;
use moka::future::Cache;
use moka::notification::RemovalCause;

pub(crate) use self::changes::{Changes, EndpointId, Unread};
pub use self::content::ContentCache;
pub use self::contradiction::OnChange;
use self::contradiction::says_the_same;
use self::contradiction::{shows_change, shows_other_records};
use self::evicted::{Evicted, Mark, PermittedUpTo};
pub use self::feed::{Event, Feed, Follower};
pub use self::key::CacheKey;
pub(crate) use self::operate::{Held, PoolSize, PoolSizes};
pub use self::proven::ProvenContent;
use crate::config::CacheConfig;
use crate::cpu_share::{self, Work};
use crate::telemetry::{self, Eviction, NotCached, Pool};

/// What a verdict takes in memory for each byte of its JSON: its values are small, and each is an allocation of its
/// own.
const MEMORY_PER_JSON_BYTE: usize = 3;
/// What it takes for each value of its JSON at least, in bytes: the place of the value and its allocation. Lists of the
/// shortest values take more by this than by their bytes.
const MEMORY_PER_JSON_VALUE: usize = 96;
/// What an entry takes beside its verdict and its card, in bytes: the key, which may be a long name, and the pool's
/// own.
const ENTRY_BYTES: usize = 1024;

/// Lifetime of a verdict whose run did not reach a change that an endpoint announced. The other endpoints may stand still:
/// they are refused once their newest block is too old.
const UNTIL_REACHED: Duration = Duration::from_secs(20);

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
    untrusted: Cache<CacheKey, Arc<Entry>>,
    failures: Cache<CacheKey, Arc<Entry>>,
    flights: Flights,
    evicted: Evicted,
    /// What may have changed on chain.
    pub(crate) changes: Arc<Changes>,
    /// What happens to the verdicts, for those who follow it.
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
    work: Work,
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

    /// Lets it be served no longer than until `end`.
    fn keep_until(&mut self, end: Timestamp) {
        self.refresh_from = self.refresh_from.min(end);
        self.fresh_until = self.fresh_until.min(end);
        self.stale_until = self.stale_until.min(end);
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
            untrusted: pool(Pool::Untrusted, config.untrusted, UNTRUSTED_FRESH),
            failures: pool(Pool::Failures, config.untrusted, 2 * LONGEST_BACKOFF),
            flights: Arc::default(),
            evicted: Evicted::default(),
            changes: Arc::clone(&changes),
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
    /// first stands first, beside its end. As many as the pool holds at most.
    pub fn due(&self, now: Timestamp) -> Vec<(Timestamp, Arc<CacheKey>)> {
        let due = self.trusted.iter().filter(|(key, entry)| self.is_due(key, entry, now));
        let mut due: Vec<_> = due.map(|(key, entry)| (entry.fresh_until, key)).collect();
        due.sort_by_key(|(until, _)| *until);
        due
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
        for pool in [&self.trusted, &self.untrusted, &self.failures] {
            if let Some(entry) = pool.get(key).await {
                latest = latest.min(entry.resolution.verdict().freshness.age(now));
            }
        }
        latest
    }

    /// The verdict under `key` that is fresh at `now`, if there is one. Counts as a hit, and as asked for.
    pub async fn fresh(&self, key: &CacheKey, now: Timestamp) -> Option<Resolution> {
        let (pool, entry) = self.find(key, now).await?;
        entry.was_asked();
        self.hits[pool].get_or_init(|| telemetry::cache_hits(POOLS[pool])).increment(1);
        Some(entry.resolution.clone())
    }

    /// The entry that answers at `now`, and the place of its pool in [`POOLS`].
    async fn find(&self, key: &CacheKey, now: Timestamp) -> Option<(usize, Arc<Entry>)> {
        for (pool, entries) in [&self.trusted, &self.untrusted, &self.failures].into_iter().enumerate() {
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
            flight.work.is_awaited_by(&Work::current());
            return flight.answer.clone();
        }
        let began = self.begin();
        let work = Work::current().apart();
        let guard = FlightGuard { key: key.clone(), began, flights: Arc::clone(&self.flights) };
        let cache = Arc::clone(self);
        let task = cpu_share::spawn_for(work.clone(), async move {
            let before = cache.before(&guard.key).await;
            let failures = before.failures;
            let found = run(before).await.into();
            cache.keep(&guard.key, &found, failures, began).await;
            drop(guard);
            found.resolution
        });
        let answer = task.map(Result::ok).boxed().shared();
        flights.insert(key, Flight { began, answer: answer.clone(), work });
        answer
    }

    /// Keeps what a run found, unless its name was evicted meanwhile. What it shows to be wrong is evicted.
    async fn keep(&self, key: &CacheKey, found: &Finished, failures_before: u32, began: Began) {
        let before = self.told_last(key, found.resolution.verdict()).await;
        let began = self.outdate(key, found, began).await;
        if !self.is_standing(&key.name, began) {
            return telemetry::not_cached(key.name.as_str(), NotCached::Overtaken);
        }
        if let Err(why) = self.insert(key.clone(), found, failures_before, began).await {
            telemetry::not_cached(key.name.as_str(), why);
        }
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
        for pool in [&self.trusted, &self.untrusted] {
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
    async fn told_last(&self, key: &CacheKey, found: &Verdict) -> Option<Arc<Entry>> {
        let is_standing = |entry: &Arc<Entry>| self.evicted.permits_still(&key.name, &entry.permitted);
        if let Some(failure) = self.failures.get(key).await.filter(is_standing) {
            return Some(failure);
        }
        let now = found.freshness.checked_at;
        for pool in [&self.trusted, &self.untrusted] {
            let fresh = |entry: &Arc<Entry>| is_standing(entry) && entry.is_young(now, Serving::Answer);
            if let Some(verdict) = pool.get(key).await.filter(fresh) {
                return Some(verdict);
            }
        }
        None
    }

    /// Tells what a run found, where that is not what was held before.
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
            State::Trusted => (&self.trusted, [&self.untrusted, &self.failures]),
            State::Untrusted => (&self.untrusted, [&self.trusted, &self.failures]),
            State::Indeterminate => return self.insert_failure(key, entry, earlier).await,
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
            return Err(NotCached::TooLarge);
        }
        if self.changes.is_behind(&key.name, entry.resolution.newest()) {
            entry.keep_until(after(entry.resolution.verdict().freshness.checked_at, UNTIL_REACHED));
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
    let json = serde_json::to_vec(resolution.verdict().as_ref()).unwrap_or_default();
    let values = json.iter().filter(|byte| **byte == b',').count();
    let verdict = (json.len() * MEMORY_PER_JSON_BYTE).max(json.len() + values * MEMORY_PER_JSON_VALUE);
    let payment = resolution.payment().map_or(0, Published::bytes);
    ENTRY_BYTES + verdict + resolution.card().map_or(0, Bytes::len) + payment
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
mod tests;
