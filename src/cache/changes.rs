//! Which cached names may have changed on chain: what endpoints hint at, within a budget for each.
//!
//! A hint is no evidence. It puts a name's verdicts out of the cache, and until a run has begun after it and has read the
//! chain up to its block, what runs say of the name is not relied on. [`Changes`] does no I/O and reads no clock.

mod budget;
mod index;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::{Address, B256};
use jiff::{SignedDuration, Timestamp};

use self::budget::Budget;
use self::index::Index;
use super::{CacheKey, VerdictCache};
use crate::chain::{Change, News, Source};
use crate::name::EnsName;
use crate::telemetry::{self, Eviction, Pool};
use crate::verdict::{Resolution, State};

/// How long a run must have read up to the block of a hint: two blocks of mainnet and some, in which the endpoints that
/// count reach a block that one of them has. After it a run counts that has not: an endpoint that names a block to come
/// withholds a name no longer than this.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// How long a hint is remembered: longer than any run that was under way when it came, and as long as an endpoint may
/// repeat it without a new charge to its budget.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(10);

/// How long an endpoint is doubted whose hint came to nothing: its block did not come in time, or nothing had changed and no
/// other endpoint said so. Its hints still have names read again, but no run waits for their blocks. So it withholds no
/// name for more than a small part of the time.
const DOUBT: SignedDuration = SignedDuration::from_mins(10);

/// Most names with a hint that is remembered. It is more than eight endpoints may cause in that time.
const MAX_MARKS: usize = 16_384;

/// Shortest time between two runs for hints of one name.
const BETWEEN_READINGS: SignedDuration = SignedDuration::from_secs(1);

/// How far beyond the runs' newest block a hint's block may be, in blocks: endpoints are seldom further apart.
const MAX_AHEAD: u64 = 16;

/// Cached names, and which of them may have changed.
pub(crate) struct Changes(Mutex<Ledger>);

struct Ledger {
    /// Counts runs, entries and hints, so that one can be said to be before another.
    tickets: u64,
    index: Index,
    marks: HashMap<EnsName, Mark>,
    endpoints: Vec<Endpoint>,
    /// The highest block that a run has read, and when that was.
    read: Option<(u64, Timestamp)>,
    /// Names to read again, and from when on.
    changed: BTreeMap<EnsName, Timestamp>,
    /// Names to read again after a gap, with the ticket of the gap.
    stale: VecDeque<(EnsName, u64)>,
    stale_budget: Budget,
}

/// A hint about a name.
struct Mark {
    /// Runs that began before this know nothing of it.
    ticket: u64,
    at: Timestamp,
    /// The block that a run must have read; `None` where the endpoint's word is not enough for that.
    block: Option<u64>,
    /// Since when a block is waited for. Further hints do not prolong it.
    awaited_since: Timestamp,
    /// The block of a hint that came true: what has read less is of the past, for as long as the hint is remembered.
    reached: Option<u64>,
    /// The highest block that each endpoint has hinted at.
    by: BTreeMap<usize, u64>,
    /// When the name was last given to be read.
    read: Option<Timestamp>,
}

/// A run does not know of a hint; with the block that it had to read, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unread(pub(crate) Option<u64>);

/// How an endpoint is followed.
struct Endpoint {
    /// Whether it alone is enough, so that no other says what blocks it can have: the operator's own, or the only one.
    is_authority: bool,
    budget: Budget,
    /// Whether it answered the last time.
    is_up: bool,
    /// The lowest block from which its logs were read without a gap.
    since: Option<u64>,
    /// What it said the last time: places, with the newest block of each. A run that was under way then may have missed it.
    said: HashMap<(Source, B256), u64>,
    /// Until when runs wait for no block of its hints, since one of them came to nothing.
    doubted_until: Option<Timestamp>,
}

/// What came of the news of an endpoint.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The entries that are no longer to be served.
    pub(crate) evicted: Vec<CacheKey>,
    /// Hints that were taken.
    pub(crate) hints: u64,
    /// Hints that were beyond the budget.
    pub(crate) over_budget: u64,
    /// Hints at blocks too far ahead.
    pub(crate) too_far: u64,
    /// Whether the gap leaves names that must be read again.
    pub(crate) is_stale: bool,
}

impl Changes {
    /// Nothing is followed yet, and so nothing is held.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Ledger {
            tickets: 0,
            index: Index::default(),
            marks: HashMap::new(),
            endpoints: Vec::new(),
            read: None,
            changed: BTreeMap::new(),
            stale: VecDeque::new(),
            stale_budget: Budget::of_readings(),
        }))
    }

    /// The endpoints that are followed from now on, in this order: for each, whether it is the operator's own.
    pub(crate) fn follow(&self, own: &[bool]) {
        let is_alone = own.len() == 1;
        let endpoint = |own: &bool| Endpoint {
            is_authority: *own || is_alone,
            budget: Budget::of_hints(),
            is_up: false,
            since: None,
            said: HashMap::new(),
            doubted_until: None,
        };
        self.ledger().endpoints = own.iter().map(endpoint).collect();
    }

    /// A run begins.
    pub(crate) fn begin(&self) -> u64 {
        self.ledger().ticket()
    }

    /// Whether there was a hint that a run does not know: it began before (`began`), or has read up to `newest` only. With
    /// that the block that it had to read, where there is one.
    pub(crate) fn unread(&self, name: &EnsName, began: u64, newest: Option<u64>, now: Timestamp) -> Option<Unread> {
        let ledger = self.ledger();
        let mark = ledger.marks.get(name).filter(|_| !clresolve_core::mutant!("hints-are-forgotten"))?;
        let awaited = mark.block.filter(|_| now.duration_since(mark.awaited_since) < PATIENCE);
        let known = mark.reached.filter(|_| !clresolve_core::mutant!("reached-blocks-are-forgotten"));
        let is_late = awaited.max(known).is_some_and(|block| newest.is_none_or(|newest| newest < block));
        (began < mark.ticket || is_late).then_some(Unread(awaited.max(known)))
    }

    /// A run after the hints about a name has ended: it had read up to `newest`, and whether it saw a change. An endpoint
    /// whose hint came to nothing is doubted.
    pub(crate) fn judge(&self, name: &EnsName, newest: Option<u64>, is_changed: bool, now: Timestamp) {
        let mut ledger = self.ledger();
        let Some(mark) = ledger.marks.get_mut(name) else { return };
        let Some(block) = mark.block.take() else { return };
        let has_come = newest.is_some_and(|newest| newest >= block);
        if has_come && (is_changed || mark.by.len() > 1) {
            mark.reached = mark.reached.max(Some(block));
            return;
        }
        let guilty: Vec<usize> =
            mark.by.iter().filter(|(_, by)| **by == block).map(|(endpoint, _)| *endpoint).collect();
        for (index, endpoint) in ledger.endpoints.iter_mut().enumerate() {
            if guilty.contains(&index) && !endpoint.is_authority {
                endpoint.doubted_until = Some(now + DOUBT);
            }
        }
    }

    /// An entry comes into the cache. What is returned names it.
    pub(super) fn add(&self, key: &CacheKey, resolution: &Resolution) -> u64 {
        let mut ledger = self.ledger();
        let entry = ledger.ticket();
        if ledger.endpoints.is_empty() {
            return entry;
        }
        let (verdict, newest) = (resolution.verdict(), resolution.newest());
        let Ok(at) = verdict.freshness.checked_at.parse() else { return entry };
        if newest.is_some_and(|newest| ledger.read.is_none_or(|(before, _)| before < newest)) {
            ledger.read = newest.map(|newest| (newest, at));
        }
        ledger.index.add(entry, key, verdict, newest);
        ledger.recall(entry, at);
        entry
    }

    /// An entry has left the cache.
    pub(super) fn remove(&self, entry: u64) {
        self.ledger().index.remove(entry);
    }

    /// The resolvers that cached verdicts have read from.
    pub(crate) fn resolvers(&self) -> BTreeSet<Address> {
        self.ledger().index.resolvers()
    }

    /// Takes what is new at the endpoint with this index.
    pub(crate) fn news(&self, endpoint: usize, news: &News, now: Timestamp) -> Outcome {
        let mut ledger = self.ledger();
        let mut outcome = Outcome::default();
        ledger.forget(now);
        // An endpoint may repeat a log as often as it likes: each place is looked at once.
        let mut said = HashMap::new();
        for change in &news.changes {
            let block = said.entry((change.source, change.node)).or_insert(change.block);
            *block = change.block.max(*block);
        }
        for ((source, node), block) in &said {
            let change = Change { block: *block, source: *source, node: *node };
            let is_new_chain = news.replaced.is_some_and(|lowest| change.block >= lowest);
            ledger.hint(endpoint, &change, is_new_chain, now, &mut outcome);
        }
        if let Some(endpoint) = ledger.endpoints.get_mut(endpoint) {
            (endpoint.said, endpoint.is_up) = (said, true);
        }
        outcome.is_stale = ledger.cover(endpoint, news);
        outcome
    }

    /// Whether the endpoint answered the last time that it was asked.
    pub(crate) fn answered(&self, endpoint: usize, is_up: bool) {
        if let Some(endpoint) = self.ledger().endpoints.get_mut(endpoint) {
            endpoint.is_up = is_up;
        }
    }

    /// How many endpoints are followed now.
    pub(crate) fn followed(&self) -> usize {
        self.ledger().endpoints.iter().filter(|endpoint| endpoint.is_up).count()
    }

    /// A name is to be read again, from then on.
    pub(crate) fn read_again(&self, name: EnsName, from: Timestamp) {
        self.ledger().changed.insert(name, from);
    }

    /// The names that are to be read now. A name with a hint is given at most once a second.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<EnsName> {
        let mut ledger = self.ledger();
        let is_due = |(name, from): (&EnsName, &Timestamp)| (*from <= now).then(|| name.clone());
        let names: Vec<EnsName> = ledger.changed.iter().filter_map(is_due).collect();
        for name in &names {
            ledger.changed.remove(name);
            if let Some(mark) = ledger.marks.get_mut(name) {
                mark.read = Some(now);
            }
        }
        names.into_iter().chain(ledger.stale(now)).collect()
    }

    /// Whether no name is to be read again, now or later.
    pub(crate) fn is_idle(&self) -> bool {
        let ledger = self.ledger();
        ledger.changed.is_empty() && ledger.stale.is_empty()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    const fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Drops what no run and no endpoint can refer to any more.
    fn forget(&mut self, now: Timestamp) {
        self.marks.retain(|_, mark| (SignedDuration::ZERO..REMEMBERED).contains(&now.duration_since(mark.at)));
    }

    fn hint(&mut self, endpoint: usize, change: &Change, is_new_chain: bool, now: Timestamp, outcome: &mut Outcome) {
        for name in self.index.concerned(change, is_new_chain) {
            let known = self.marks.get(&name).and_then(|mark| mark.by.get(&endpoint));
            if known.is_some_and(|block| *block >= change.block) && !is_new_chain {
                continue;
            }
            if self.is_too_far(endpoint, change.block, now) {
                outcome.too_far += 1;
                continue;
            }
            let payer = if clresolve_core::mutant!("one-budget-for-all") { 0 } else { endpoint };
            let Some(of) = self.endpoints.get_mut(payer) else { continue };
            if !of.budget.take(now) && !clresolve_core::mutant!("hints-without-end") {
                outcome.over_budget += 1;
                continue;
            }
            outcome.hints += 1;
            outcome.evicted.extend(self.index.keys_of(&name));
            self.mark(name, endpoint, change.block, now);
        }
    }

    /// Takes what endpoints said the last time for hints about an entry that is new.
    fn recall(&mut self, entry: u64, now: Timestamp) {
        let places = self.index.places(entry);
        for endpoint in 0..self.endpoints.len() {
            for place in &places {
                let Some(block) = self.endpoints[endpoint].said.get(place).copied() else { continue };
                let change = Change { block, source: place.0, node: place.1 };
                self.hint(endpoint, &change, false, now, &mut Outcome::default());
            }
        }
    }

    fn mark(&mut self, name: EnsName, endpoint: usize, block: u64, now: Timestamp) {
        let ticket = self.ticket();
        if self.marks.len() >= MAX_MARKS && !self.marks.contains_key(&name) {
            self.marks.retain(|_, mark| now.duration_since(mark.at) < PATIENCE);
            if self.marks.len() >= MAX_MARKS {
                return;
            }
        }
        let is_doubted = self.endpoints.get(endpoint).and_then(|of| of.doubted_until).is_some_and(|until| now < until);
        let awaited = (!is_doubted || clresolve_core::mutant!("liars-are-waited-for")).then_some(block);
        let by = BTreeMap::new();
        let new = || Mark { ticket, at: now, block: None, awaited_since: now, reached: None, by, read: None };
        let mark = self.marks.entry(name.clone()).or_insert_with(new);
        if mark.block.is_none() || clresolve_core::mutant!("hints-prolong-the-wait") {
            mark.awaited_since = now;
        }
        mark.block = mark.block.max(awaited);
        (mark.ticket, mark.at) = (ticket, now);
        mark.by.insert(endpoint, block);
        self.changed.insert(name, mark.read.map_or(now, |read| now.max(read + BETWEEN_READINGS)));
    }

    /// Whether no honest endpoint can have that block: the runs have read far less, and a chain has at most one block a
    /// second.
    fn is_too_far(&self, endpoint: usize, block: u64, now: Timestamp) -> bool {
        let is_authority = self.endpoints.get(endpoint).is_some_and(|endpoint| endpoint.is_authority);
        let Some((read, at)) = self.read.filter(|_| !is_authority) else { return false };
        let since = u64::try_from(now.duration_since(at).as_secs()).unwrap_or(0);
        block > read.saturating_add(since).saturating_add(MAX_AHEAD)
            && !clresolve_core::mutant!("hints-of-the-far-future")
    }

    /// Notes which blocks the endpoint covers. Whether a gap leaves names that must be read again: no other endpoint has
    /// covered it.
    fn cover(&mut self, endpoint: usize, news: &News) -> bool {
        let Some(missed) = &news.missed else {
            if let Some(endpoint) = self.endpoints.get_mut(endpoint) {
                endpoint.since = endpoint.since.or(Some(news.head.number));
            }
            return false;
        };
        if let Some(endpoint) = self.endpoints.get_mut(endpoint) {
            endpoint.since = Some(news.head.number.max(missed.end().saturating_add(1)));
        }
        let covers = |(index, other): (usize, &Endpoint)| {
            index != endpoint && other.is_up && other.since.is_some_and(|since| since <= *missed.start())
        };
        if self.endpoints.iter().enumerate().any(covers) {
            return false;
        }
        let ticket = self.ticket();
        self.stale = self.index.names().into_iter().map(|name| (name, ticket)).collect();
        true
    }

    /// The next names of a gap, as far as the budget goes. One that was read since then is left out.
    fn stale(&mut self, now: Timestamp) -> Vec<EnsName> {
        let mut names = Vec::new();
        while let Some((name, gap)) = self.stale.front() {
            if !self.index.has_before(name, *gap) {
                self.stale.pop_front();
            } else if self.stale_budget.take(now) {
                names.extend(self.stale.pop_front().map(|(name, _)| name));
            } else {
                break;
            }
        }
        names
    }
}

impl VerdictCache {
    /// Drops the verdicts under these keys, failures among them, because of a change on chain.
    pub(crate) async fn drop_changed(&self, keys: &[CacheKey]) {
        let pools = [(Pool::Trusted, &self.trusted), (Pool::Untrusted, &self.other), (Pool::Failures, &self.failures)];
        for key in keys {
            for (pool, entries) in pools {
                if entries.remove(key).await.is_some() {
                    telemetry::cache_evicted(pool, Eviction::Changed);
                }
            }
        }
    }

    /// Evicts a name whose run does not know of a hint, and drops what it has brought: the hint came while it was under
    /// way, or at the sight of it. Who asks after the hint is not served by it.
    pub(super) async fn settle(&self, key: &CacheKey, began: u64, resolution: &Resolution) {
        let verdict = resolution.verdict();
        let Ok(at) = verdict.freshness.checked_at.parse() else { return };
        let is_unread = self.changes.unread(&key.name, began, resolution.newest(), at).is_some();
        if verdict.state != State::Indeterminate && is_unread {
            self.evict(&key.name, at);
            self.drop_changed(std::slice::from_ref(key)).await;
        }
    }
}

#[cfg(test)]
mod tests;
