//! Which cached names may have changed on chain: what endpoints hint at, within a budget for each.
//!
//! A hint is no evidence. It puts a name's verdicts out of the cache, and until a run has begun after it and has read the
//! chain up to its block, what runs say of the name is not relied on. Trusted verdicts alone are followed: what denies may
//! wait for its time. [`Changes`] does no I/O and reads no clock.

mod budget;
mod endpoint;
mod index;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use alloy_primitives::{Address, B256};
#[cfg(feature = "redis")]
use clresolve_chain::OVERLAP;
use clresolve_chain::{Endpoint, News, Source};
use clresolve_core::name::EnsName;
use clresolve_core::state::State;
use clresolve_verdict::trust::Resolution;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use self::budget::Budget;
pub(crate) use self::endpoint::EndpointId;
use self::endpoint::Followed;
use self::index::{Index, Knows, Places, Read};
use super::key::CacheKey;
use crate::telemetry;

/// How long a run must have read up to the block of a hint: two blocks of mainnet and some, in which the endpoints that
/// count reach a block that one of them has. After it a run counts that has not: an endpoint that names a block to come
/// withholds a name no longer than this.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// How long a hint is remembered: longer than any run that was under way when it came, and as long as an endpoint may
/// repeat it without a new charge to its budget.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(10);

/// Most names with a hint that is remembered. It is more than six strangers' endpoints may cause in that time. Beyond it
/// hints evict, and no run waits for their blocks.
const MAX_MARKS: usize = 16_384;

/// Shortest time between two runs for hints of one name.
const BETWEEN_READINGS: SignedDuration = SignedDuration::from_secs(1);

/// How far beyond the runs' newest block a hint's block may be, in blocks: endpoints are seldom further apart.
const MAX_AHEAD: u64 = 16;

/// How many strangers, of other operators, must have read the blocks that a stranger left out: one of them may lie. So
/// many say how far the chain is.
const ENOUGH_STRANGERS: usize = 2;

/// Cached names, and which of them may have changed.
pub(crate) struct Changes {
    ledger: Mutex<Ledger>,
    /// Rings when names are to be read again.
    bell: Notify,
}

struct Ledger {
    /// Counts runs, entries, hints and endpoints, so that one can be said to be before another.
    tickets: u64,
    index: Index,
    marks: HashMap<EnsName, Mark>,
    /// [`MAX_MARKS`].
    most_marks: usize,
    endpoints: BTreeMap<EndpointId, Followed>,
    /// The highest block that a trusted run has read, and when that was. Enough endpoints have vouched for it.
    read: Option<(u64, Timestamp)>,
    /// Names to read again, and from when on.
    changed: BTreeMap<EnsName, Timestamp>,
    /// Names whose hints were found when a run ended, and which are still to be evicted everywhere.
    recalled: BTreeSet<EnsName>,
    /// Names to read again after a gap.
    stale: VecDeque<EnsName>,
    /// The ticket of the last gap. Runs that began before it may have missed what it hides.
    gap: u64,
    /// The newest block of all gaps.
    missed: Option<u64>,
    /// Gaps of endpoints that others may cover as soon as they have come so far.
    open: BTreeMap<EndpointId, OpenGap>,
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
    by: BTreeMap<EndpointId, u64>,
    /// When the name was last given to be read.
    read: Option<Timestamp>,
}

/// Blocks that an endpoint left out, and that others may still read.
#[derive(Clone, Copy, Debug)]
struct OpenGap {
    first: u64,
    /// How far others must have come to cover it: no further than the chain is known to go.
    last: u64,
    /// The last of them.
    end: u64,
    /// Since when the others are waited for.
    since: Timestamp,
}

/// A run does not know of a change that was announced; with the block that it had to read, where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unread(pub(crate) Option<u64>);

/// What came of the news of an endpoint.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NewsEffect {
    /// The entries that are no longer to be served.
    pub(crate) evicted: Vec<CacheKey>,
    /// Hints that were taken.
    pub(crate) hints: u64,
    /// Hints that were beyond the budget: the first of them with the name, further ones with all names of their place.
    pub(crate) over_budget: u64,
    /// Hints at blocks too far ahead.
    pub(crate) too_far: u64,
    /// Whether the gap leaves names that must be read again.
    pub(crate) is_stale: bool,
}

/// A hint of an endpoint.
#[derive(Clone, Copy)]
struct Hint {
    from: EndpointId,
    block: u64,
    /// Whether its block stands in place of another one.
    is_new_chain: bool,
    at: Timestamp,
}

impl Changes {
    /// Nothing is followed yet, and so nothing is held.
    pub(crate) fn new() -> Self {
        let ledger = Ledger {
            tickets: 0,
            index: Index::default(),
            marks: HashMap::new(),
            most_marks: MAX_MARKS,
            endpoints: BTreeMap::new(),
            read: None,
            changed: BTreeMap::new(),
            recalled: BTreeSet::new(),
            stale: VecDeque::new(),
            gap: 0,
            missed: None,
            open: BTreeMap::new(),
            stale_budget: Budget::of_readings(),
        };
        Self { ledger: Mutex::new(ledger), bell: Notify::new() }
    }

    /// The endpoints that are followed from now on; gives by what each is known, in their order. What others still say is
    /// ignored. One that was followed before keeps its budget and the doubt about it. What is cached is read again, as
    /// after a gap: the logs of the blocks between the two were not read.
    pub(crate) fn follow(&self, endpoints: &[Endpoint]) -> Vec<EndpointId> {
        let mut ledger = self.ledger();
        let mut before = std::mem::take(&mut ledger.endpoints);
        let mut ids = Vec::new();
        for endpoint in endpoints {
            let is_same = |(id, followed): (&EndpointId, &Followed)| (followed.endpoint == *endpoint).then_some(*id);
            let known = before.iter().find_map(is_same).filter(|_| !clresolve_core::mutant!("reloads-forgive"));
            let (id, followed) = match known.and_then(|id| before.remove_entry(&id)) {
                Some(known) => known,
                None => (EndpointId(ledger.ticket()), Followed::new(endpoint.clone())),
            };
            ledger.endpoints.insert(id, followed.resumed(endpoints.len() == 1));
            ids.push(id);
        }
        ledger.open.clear();
        ledger.note_gap(None);
        ids
    }

    /// The ticket of the last gap.
    pub(crate) fn gap(&self) -> u64 {
        self.ledger().gap
    }

    /// Evictions that the fleet told of were not heard for a while: all names are read again, as after a gap. Where nothing
    /// is followed nobody reads any again, and it gives the names that are to be evicted.
    #[cfg(feature = "redis")]
    pub(crate) fn missed_messages(&self) -> BTreeSet<EnsName> {
        let mut ledger = self.ledger();
        if ledger.endpoints.is_empty() {
            return ledger.index.names();
        }
        ledger.note_gap(None);
        self.bell.notify_one();
        BTreeSet::new()
    }

    /// Whether this process knows of every change after the block `newest` that its endpoints told of, for a name with this
    /// resolver. They tell of the last few blocks again and again, and what they said the last time is held; of resolvers,
    /// only those are asked for that a cached verdict was read from. Where nothing is followed nobody tells of any.
    #[cfg(feature = "redis")]
    pub(crate) fn remembers_since(&self, newest: Option<u64>, resolver: Option<Address>, now: Timestamp) -> bool {
        let ledger = self.ledger();
        if ledger.endpoints.is_empty() || clresolve_core::mutant!("evidence-of-any-age-is-taken") {
            return true;
        }
        if resolver.is_some_and(|resolver| !ledger.index.has_resolver(resolver)) {
            return false;
        }
        let head =
            ledger.heads().filter(|(from, head)| !ledger.is_too_far(*from, *head, now)).map(|(_, head)| head).max();
        let (Some(head), Some(newest)) = (head, newest) else { return false };
        let missed = ledger.missed.max(ledger.open.values().map(|gap| gap.end).max());
        newest.saturating_add(OVERLAP) >= head && missed.is_none_or(|missed| missed <= newest)
    }

    /// A run begins.
    pub(crate) fn begin(&self) -> u64 {
        self.ledger().ticket()
    }

    /// Whether there was a hint that a run does not know, which began then (`began`) and found this. With that the block
    /// that it had to read, where there is one.
    pub(crate) fn unread(&self, name: &EnsName, began: u64, found: &Resolution, now: Timestamp) -> Option<Unread> {
        let mut ledger = self.ledger();
        if ledger.recall(name, found, now) {
            self.bell.notify_one();
        }
        ledger.unread(name, began, found.newest(), now)
    }

    /// A run after hints has ended. Whether it knows of all of them, or is to be made again. An endpoint whose block did not
    /// come in time is doubted. That nothing has changed in a block that came says nothing against it: most logs are of
    /// what no verdict reads.
    pub(crate) fn judge(&self, name: &EnsName, began: u64, found: &Resolution, now: Timestamp) -> bool {
        let (mut ledger, newest) = (self.ledger(), found.newest());
        if ledger.unread(name, began, newest, now).is_some() {
            return false;
        }
        let Some(mark) = ledger.marks.get_mut(name) else { return true };
        let Some(block) = mark.block.take() else { return true };
        if newest.is_some_and(|newest| newest >= block) {
            mark.reached = mark.reached.max(Some(block));
            return true;
        }
        let guilty: Vec<EndpointId> = mark.by.iter().filter(|(_, by)| **by == block).map(|(id, _)| *id).collect();
        for id in guilty {
            ledger.endpoints.entry(id).and_modify(|endpoint| endpoint.doubt(now));
        }
        true
    }

    /// Whether an endpoint announced a change of the name in a block beyond the newest one that a run has read.
    pub(super) fn is_behind(&self, name: &EnsName, newest: Option<u64>) -> bool {
        let ledger = self.ledger();
        let told = ledger.marks.get(name).and_then(|mark| mark.by.values().max());
        told.is_some_and(|block| newest.is_none_or(|newest| newest < *block))
    }

    /// An entry comes into the cache, of a run that began then. What is returned names it.
    pub(super) fn add(&self, key: &CacheKey, resolution: &Resolution, began: u64) -> u64 {
        let mut ledger = self.ledger();
        let entry = ledger.ticket();
        let (verdict, newest) = (resolution.verdict(), resolution.newest());
        let is_followed = verdict.state == State::Trusted || clresolve_core::mutant!("every-verdict-is-followed");
        if !is_followed {
            return entry;
        }
        ledger.note_read(newest, verdict.freshness.checked_at);
        ledger.index.add(entry, key, Read { began, newest }, verdict);
        if began < ledger.gap && !ledger.stale.contains(&key.name) {
            ledger.stale.push_back(key.name.clone());
            self.bell.notify_one();
        }
        entry
    }

    /// The keys of the trusted entries about a name that came into the cache and were not hinted at.
    pub(super) fn keys(&self, name: &EnsName) -> Vec<CacheKey> {
        self.ledger().index.keys(name)
    }

    /// An entry has left the cache.
    pub(super) fn remove(&self, entry: u64) {
        self.ledger().index.remove(entry);
    }

    /// The resolvers that cached verdicts have read from.
    pub(crate) fn resolvers(&self) -> BTreeSet<Address> {
        self.ledger().index.resolvers()
    }

    /// Whether a cached verdict was read at this place.
    pub(crate) fn follows(&self, source: Source, node: B256) -> bool {
        self.ledger().index.is_read_at(&(source, node))
    }

    /// Takes what is new at an endpoint. What is beyond its budget is not looked at. It counts as missed: names are read
    /// again after a gap on a budget of their own.
    pub(crate) fn news(&self, from: EndpointId, news: &News, now: Timestamp) -> NewsEffect {
        let mut ledger = self.ledger();
        let mut effect = NewsEffect::default();
        if !ledger.endpoints.contains_key(&from) {
            return effect;
        }
        ledger.forget(now);
        // An endpoint may repeat a log as often as it likes: each place is looked at once.
        let mut said = HashMap::new();
        for change in &news.changes {
            let block = said.entry((change.source, change.node)).or_insert(change.block);
            *block = change.block.max(*block);
        }
        let mut beyond: Option<u64> = None;
        for (place, block) in &said {
            let is_new_chain = news.replaced.is_some_and(|lowest| *block >= lowest)
                && !clresolve_core::mutant!("replaced-blocks-are-known");
            let hint = Hint { from, block: *block, is_new_chain, at: now };
            let is_taken = if beyond.is_none() {
                ledger.hint_at(place, hint, &mut effect)
            } else {
                effect.over_budget += u64::from(ledger.index.is_read_at(place));
                !ledger.index.is_read_at(place)
            };
            if !is_taken {
                beyond = Some(beyond.map_or(*block, |lowest| lowest.min(*block)));
            }
        }
        if let Some(endpoint) = ledger.endpoints.get_mut(&from) {
            (endpoint.said, endpoint.is_up, endpoint.head) = (said, true, Some(news.head.number));
        }
        effect.is_stale = ledger.cover(from, news, beyond, now);
        self.bell.notify_one();
        effect
    }

    /// Whether the endpoint answered the last time that it was asked. Gaps that others did not cover in time are read again.
    pub(crate) fn answered(&self, endpoint: EndpointId, is_up: bool, now: Timestamp) {
        let mut ledger = self.ledger();
        ledger.endpoints.entry(endpoint).and_modify(|endpoint| endpoint.is_up = is_up);
        if ledger.close_gaps(now) {
            self.bell.notify_one();
        }
    }

    /// How many endpoints are followed now.
    pub(crate) fn followed(&self) -> usize {
        self.ledger().endpoints.values().filter(|endpoint| endpoint.is_up).count()
    }

    /// A name is to be read again, from then on.
    pub(crate) fn read_again(&self, name: EnsName, from: Timestamp) {
        self.ledger().changed.insert(name, from);
    }

    /// The names whose hints were found when a run ended. They are to be evicted.
    pub(crate) fn recalled(&self) -> BTreeSet<EnsName> {
        std::mem::take(&mut self.ledger().recalled)
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
        ledger.changed.is_empty() && ledger.stale.is_empty() && ledger.recalled.is_empty()
    }

    /// Ends when names may be to be read again.
    pub(crate) async fn wait(&self) {
        self.bell.notified().await;
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    const fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Drops what no run and no endpoint can refer to any more. A mark may be dated after `now`: clocks are set back.
    fn forget(&mut self, now: Timestamp) {
        self.marks.retain(|_, mark| now.duration_since(mark.at).abs() < REMEMBERED);
    }

    fn unread(&self, name: &EnsName, began: u64, newest: Option<u64>, now: Timestamp) -> Option<Unread> {
        let mark = self.marks.get(name).filter(|_| !clresolve_core::mutant!("hints-are-forgotten"))?;
        let awaited = mark.block.filter(|_| now.duration_since(mark.awaited_since) < PATIENCE);
        let known = mark.reached.filter(|_| !clresolve_core::mutant!("reached-blocks-are-forgotten"));
        let is_late = awaited.max(known).is_some_and(|block| newest.is_none_or(|newest| newest < block));
        (began < mark.ticket || is_late).then_some(Unread(awaited.max(known)))
    }

    /// Takes a hint at all names that were read at this place. False where the budget is spent: the rest is not looked at.
    fn hint_at(&mut self, place: &(Source, B256), hint: Hint, effect: &mut NewsEffect) -> bool {
        let names = self.index.concerned(place, hint.block, hint.is_new_chain);
        names.into_iter().all(|(name, knows)| self.hint(name, knows, hint, effect))
    }

    /// Takes a hint at one name. False where the budget is spent.
    fn hint(&mut self, name: EnsName, knows: Knows, hint: Hint, effect: &mut NewsEffect) -> bool {
        let known = self.marks.get(&name).and_then(|mark| mark.by.get(&hint.from));
        if known.is_some_and(|block| *block >= hint.block) && !hint.is_new_chain {
            return true;
        }
        if self.is_too_far(hint.from, hint.block, hint.at) {
            effect.too_far += 1;
            return true;
        }
        let first = self.endpoints.keys().next().copied();
        let payer = first.filter(|_| clresolve_core::mutant!("one-budget-for-all")).unwrap_or(hint.from);
        let may_hint = self.endpoints.get_mut(&payer).is_some_and(|endpoint| endpoint.may_hint(hint.at));
        if !may_hint && !clresolve_core::mutant!("hints-without-end") {
            effect.over_budget += 1;
            return false;
        }
        if knows == Knows::Nothing {
            effect.hints += 1;
            effect.evicted.extend(self.index.take(&name));
        }
        self.mark(name, knows, hint);
        true
    }

    /// Notes how far a trusted run has read the chain.
    fn note_read(&mut self, newest: Option<u64>, at: Timestamp) {
        if newest.is_some_and(|newest| self.read.is_none_or(|(before, _)| before < newest)) {
            self.read = newest.map(|newest| (newest, at));
        }
    }

    /// Takes what endpoints said the last time for hints about what a run found: it came while the run was under way, or
    /// before anything of its name was cached. Whether there was one.
    fn recall(&mut self, name: &EnsName, found: &Resolution, now: Timestamp) -> bool {
        let (verdict, newest) = (found.verdict(), found.newest());
        let Some(places) = Places::of(name, verdict).filter(|_| verdict.state == State::Trusted) else { return false };
        if clresolve_core::mutant!("what-was-said-is-forgotten") {
            return false;
        }
        self.note_read(newest, now);
        let said = |(id, endpoint): (&EndpointId, &Followed)| {
            let block = places.iter().filter_map(|place| endpoint.said.get(&place)).max().copied()?;
            newest.is_none_or(|newest| newest < block).then_some((*id, block))
        };
        let unread: Vec<(EndpointId, u64)> = self.endpoints.iter().filter_map(said).collect();
        let (mut is_hinted, mut is_over_budget) = (false, false);
        for (from, block) in unread {
            let mut effect = NewsEffect::default();
            let hint = Hint { from, block, is_new_chain: false, at: now };
            self.hint(name.clone(), Knows::Nothing, hint, &mut effect);
            is_hinted |= effect.hints > 0;
            is_over_budget |= effect.over_budget > 0;
            if let Some(endpoint) = self.endpoints.get(&from) {
                effect.count(&endpoint.endpoint.label);
            }
        }
        if is_hinted {
            self.recalled.insert(name.clone());
        } else if is_over_budget {
            self.read_later(name);
        }
        is_hinted
    }

    /// Notes a hint, and has the name read again. Runs that are under way count where nothing says that they missed it.
    fn mark(&mut self, name: EnsName, knows: Knows, hint: Hint) {
        let now = hint.at;
        if !self.has_room(&name, now) {
            return;
        }
        let ticket = self.ticket();
        let is_doubted = self.endpoints.get(&hint.from).is_some_and(|endpoint| endpoint.is_doubted(now));
        let mark = self.marks.entry(name.clone()).or_insert_with(|| Mark::new(now));
        mark.by.insert(hint.from, hint.block);
        mark.at = now;
        if knows == Knows::Nothing {
            mark.ticket = ticket;
            if mark.block.is_none() || clresolve_core::mutant!("hints-prolong-the-wait") {
                mark.awaited_since = now;
            }
            let awaited = (!is_doubted || clresolve_core::mutant!("liars-are-waited-for")).then_some(hint.block);
            mark.block = mark.block.max(awaited);
        }
        let last = mark.read.filter(|_| !clresolve_core::mutant!("readings-without-a-pause"));
        self.changed.insert(name, last.map_or(now, |read| now.max(read + BETWEEN_READINGS)));
    }

    /// Whether a hint at the name can be remembered. Old ones make room.
    fn has_room(&mut self, name: &EnsName, now: Timestamp) -> bool {
        if self.marks.len() < self.most_marks
            || self.marks.contains_key(name)
            || clresolve_core::mutant!("marks-without-end")
        {
            return true;
        }
        self.marks.retain(|_, mark| now.duration_since(mark.at) < PATIENCE);
        self.marks.len() < self.most_marks
    }

    /// Whether no honest endpoint can have that block: the runs have read far less, and a chain has at most one block a
    /// second.
    fn is_too_far(&self, from: EndpointId, block: u64, now: Timestamp) -> bool {
        let is_authority = self.endpoints.get(&from).is_some_and(Followed::is_authority);
        let Some((read, at)) = self.read.filter(|_| !is_authority) else { return false };
        let since = u64::try_from(now.duration_since(at).as_secs()).unwrap_or(0);
        block > read.saturating_add(since).saturating_add(MAX_AHEAD)
            && !clresolve_core::mutant!("hints-of-the-far-future")
    }

    /// How far each endpoint has read.
    #[cfg(feature = "redis")]
    fn heads(&self) -> impl Iterator<Item = (EndpointId, u64)> + '_ {
        self.endpoints.iter().filter_map(|(id, followed)| Some((*id, followed.head?)))
    }

    /// The newest block that the chain is known to have: an authority or some operators have read it, or a run has. Another
    /// endpoint alone may say what it likes.
    fn known_head(&self) -> u64 {
        let of_authorities = self.endpoints.values().filter(|followed| followed.is_up && followed.is_authority());
        let read = of_authorities.filter_map(|followed| followed.head).chain(self.read.map(|(read, _)| read)).max();
        let mut heads: BTreeMap<&str, u64> = BTreeMap::new();
        for followed in self.endpoints.values().filter(|followed| followed.is_up) {
            let head = heads.entry(&followed.endpoint.operator).or_default();
            *head = followed.head.unwrap_or_default().max(*head);
        }
        let mut heads: Vec<u64> = heads.into_values().collect();
        heads.sort_unstable_by(|one, other| other.cmp(one));
        let vouched = heads.get(ENOUGH_STRANGERS - 1).copied().unwrap_or_default();
        vouched.max(read.unwrap_or_default())
    }

    /// Notes which blocks the endpoint covers, whose hints beyond its budget begin with the block `beyond`. Whether a gap
    /// leaves names that must be read again: no other endpoint has covered it, or will in a moment.
    fn cover(&mut self, from: EndpointId, news: &News, beyond: Option<u64>, now: Timestamp) -> bool {
        let Some(endpoint) = self.endpoints.get_mut(&from) else { return false };
        let head = news.head.number;
        let beyond = beyond.filter(|_| !clresolve_core::mutant!("what-is-beyond-the-budget-is-lost"));
        let firsts = news.missed.as_ref().map(|missed| *missed.start()).into_iter().chain(beyond);
        let Some(first) = firsts.min() else {
            endpoint.since = endpoint.since.or(Some(head));
            return false;
        };
        let last = news.missed.as_ref().map(|missed| *missed.end()).into_iter().chain(beyond.map(|_| head)).max();
        let after = last.map_or(head, |last| last.saturating_add(1)).max(head);
        endpoint.since = endpoint.since.max(Some(after));
        if self.is_too_far(from, first, now) {
            return false;
        }
        let (known, end) = (self.known_head().max(first), last.unwrap_or(head));
        let end = if self.is_too_far(from, end, now) { known } else { end };
        let gap = OpenGap { first, last: end.min(known), end, since: now };
        if self.is_covered(from, |other| other.reads_from(gap.first) && other.has_reached(gap.last)) {
            return false;
        }
        let is_stale = !self.is_covered(from, |other| other.reads_from(gap.first));
        if is_stale {
            self.note_gap(Some(gap.end));
        } else {
            self.open.entry(from).and_modify(|open| *open = open.with(&gap)).or_insert(gap);
        }
        is_stale
    }

    /// Drops the gaps that others have covered by now, and notes those that they did not cover in time. Whether there was one.
    fn close_gaps(&mut self, now: Timestamp) -> bool {
        let (mut open, mut missed) = (std::mem::take(&mut self.open), None);
        open.retain(|from, gap| {
            let is_covered = self.is_covered(*from, |other| other.reads_from(gap.first) && other.has_reached(gap.last));
            let is_over = now.duration_since(gap.since).abs() >= PATIENCE
                || !self.is_covered(*from, |other| other.reads_from(gap.first));
            if is_over && !is_covered {
                missed = missed.max(Some(gap.end));
            }
            !is_covered && !is_over
        });
        self.open = open;
        if missed.is_some() {
            self.note_gap(missed);
        }
        missed.is_some()
    }

    /// The name is read again, as after a gap, since nothing that was said of it could be taken. Runs that are under way began
    /// before: their names are read again, too.
    fn read_later(&mut self, name: &EnsName) {
        self.gap = self.ticket();
        if self.index.has_before(name, self.gap) && !self.stale.contains(name) {
            self.stale.push_back(name.clone());
        }
    }

    /// Whether enough others cover what an endpoint left out (`covers`): an endpoint of the operator's own, or, where a
    /// stranger left it out, some strangers. None of them stands in for the operator's own.
    fn is_covered(&self, from: EndpointId, covers: impl Fn(&Followed) -> bool) -> bool {
        let Some(gap) = self.endpoints.get(&from).map(|followed| &followed.endpoint) else { return false };
        let others = self.endpoints.iter().filter(|(id, other)| **id != from && covers(other));
        let others: Vec<&Endpoint> = others.map(|(_, other)| &other.endpoint).collect();
        let operators: BTreeSet<&str> =
            others.iter().map(|other| other.operator.as_str()).filter(|operator| *operator != gap.operator).collect();
        let strangers_are_enough = operators.len() >= ENOUGH_STRANGERS && !gap.own;
        let is_known_by_any = clresolve_core::mutant!("strangers-cover-gaps") && !others.is_empty();
        strangers_are_enough || is_known_by_any || others.iter().any(|other| other.own)
    }

    /// All names are read again that are followed now, for what they may have missed up to a block. Those that already wait
    /// for that keep their place.
    fn note_gap(&mut self, missed: Option<u64>) {
        self.gap = self.ticket();
        self.missed = self.missed.max(missed);
        let mut names = self.index.names();
        if clresolve_core::mutant!("gaps-begin-anew") {
            self.stale.clear();
        }
        self.stale.retain(|name| names.remove(name));
        self.stale.extend(names);
    }

    /// The next names of a gap, as far as the budget goes. One that was read since then is left out.
    fn stale(&mut self, now: Timestamp) -> Vec<EnsName> {
        let mut names = Vec::new();
        while let Some(name) = self.stale.front() {
            if !self.index.has_before(name, self.gap) {
                self.stale.pop_front();
            } else if self.stale_budget.take(now) {
                names.extend(self.stale.pop_front());
            } else {
                break;
            }
        }
        names
    }
}

impl Mark {
    const fn new(now: Timestamp) -> Self {
        Self { ticket: 0, at: now, block: None, awaited_since: now, reached: None, by: BTreeMap::new(), read: None }
    }
}

impl OpenGap {
    /// Both gaps as one.
    fn with(self, other: &Self) -> Self {
        let (first, last, end) = (self.first.min(other.first), self.last.max(other.last), self.end.max(other.end));
        Self { first, last, end, since: self.since }
    }
}

impl NewsEffect {
    /// Counts the hints of the endpoint with this label.
    pub(crate) fn count(&self, label: &str) {
        telemetry::hints(label, self.hints);
        telemetry::hints_ignored(label, "budget", self.over_budget);
        telemetry::hints_ignored(label, "too-far", self.too_far);
    }
}

#[cfg(test)]
mod tests;
