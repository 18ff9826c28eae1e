//! Evicted names: answers that were requested before the eviction are refused.
//!
//! For answers of this process, a counter decides, since a clock can be set back. Answers of other processes only have
//! a time, so the time of each eviction is stored too.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use jiff::Timestamp;

use clresolve_core::name::EnsName;

/// Maximum number of remembered names, about 10 MiB. Beyond it, the newest forgotten eviction applies to all other
/// names, so that more answers are refused, never fewer.
const MAX_NAMES: usize = 65_536;

/// Number of evictions at the start of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TotalEvictionCount(u64);

/// Number of evictions that an answer is known to survive. Its name is looked up once per eviction, not once per hit.
pub(super) struct SurvivedEvictionCount(AtomicU64);

impl From<TotalEvictionCount> for SurvivedEvictionCount {
    fn from(TotalEvictionCount(began): TotalEvictionCount) -> Self {
        Self(began.into())
    }
}

#[derive(Default)]
pub(super) struct EvictionLog {
    /// Number of evictions. A lookup takes no lock if there was no eviction since.
    count: AtomicU64,
    names: RwLock<EvictedNames>,
}

#[derive(Default)]
struct EvictedNames {
    latest: HashMap<EnsName, (TotalEvictionCount, Timestamp)>,
    /// In the order of the evictions. A name that was evicted twice is listed twice.
    order: VecDeque<(TotalEvictionCount, EnsName)>,
    /// The latest of the evictions that were forgotten.
    forgotten: Option<(TotalEvictionCount, Timestamp)>,
}

impl EvictionLog {
    /// Refuses answers about `name` that were requested before `now`.
    pub(super) fn record_eviction(&self, name: &EnsName, now: Timestamp) {
        self.insert_eviction(&mut self.write_lock_names(), name, now);
    }

    /// Evicts `name` because of the result of a resolution that started at `began`. Returns the mark with which that
    /// result survives this eviction. If `name` was evicted after `began`, the result itself is outdated: evicts
    /// nothing and returns `None`.
    pub(super) fn record_eviction_by_result(
        &self,
        name: &EnsName,
        began: TotalEvictionCount,
        now: Timestamp,
    ) -> Option<TotalEvictionCount> {
        let mut names = self.write_lock_names();
        let stands = names.latest_eviction(name).is_none_or(|(mark, _)| mark <= began);
        stands.then(|| self.insert_eviction(&mut names, name, now))
    }

    fn insert_eviction(&self, names: &mut EvictedNames, name: &EnsName, now: Timestamp) -> TotalEvictionCount {
        let mark = TotalEvictionCount(self.count.load(Ordering::Relaxed) + 1);
        let at = names.latest.get(name).map_or(now, |(_, before)| now.max(*before));
        names.latest.insert(name.clone(), (mark, at));
        names.order.push_back((mark, name.clone()));
        // Terminates: each iteration removes one.
        while names.order.len() > MAX_NAMES {
            names.forget_oldest();
        }
        // Last, and under the lock, so that a reader of the new count also finds the name.
        self.count.store(mark.0, Ordering::Release);
        mark
    }

    pub(super) fn eviction_count(&self) -> TotalEvictionCount {
        TotalEvictionCount(self.count.load(Ordering::Acquire))
    }

    /// Whether an answer about `name` that was requested at `began` may be used.
    pub(super) fn may_use_answer(&self, name: &EnsName, began: TotalEvictionCount) -> bool {
        if self.eviction_count() <= began || clresolve_core::mutant!("evictions-are-ignored") {
            return true;
        }
        self.latest_eviction(name).is_none_or(|(mark, _)| mark <= began)
    }

    /// As [`EvictionLog::may_use_answer`], for an answer that is checked repeatedly.
    pub(super) fn may_still_use_answer(&self, name: &EnsName, permitted: &SurvivedEvictionCount) -> bool {
        // Before the lookup of the name, so that an eviction in between is found by the next check.
        let (now, began) = (self.eviction_count(), TotalEvictionCount(permitted.0.load(Ordering::Relaxed)));
        let is_permitted = self.may_use_answer(name, began);
        if is_permitted && began < now {
            permitted.0.fetch_max(now.0, Ordering::Relaxed);
        }
        is_permitted
    }

    /// When `name` was last evicted, if that is remembered.
    pub(super) fn last_eviction_time(&self, name: &EnsName) -> Option<Timestamp> {
        self.latest_eviction(name).map(|(_, at)| at)
    }

    fn latest_eviction(&self, name: &EnsName) -> Option<(TotalEvictionCount, Timestamp)> {
        self.names.read().unwrap_or_else(PoisonError::into_inner).latest_eviction(name)
    }

    fn write_lock_names(&self) -> RwLockWriteGuard<'_, EvictedNames> {
        self.names.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EvictedNames {
    fn latest_eviction(&self, name: &EnsName) -> Option<(TotalEvictionCount, Timestamp)> {
        self.latest.get(name).copied().or(self.forgotten)
    }

    fn forget_oldest(&mut self) {
        let Some((mark, name)) = self.order.pop_front() else { return };
        let is_latest = self.latest.get(&name).is_some_and(|(latest, _)| *latest == mark);
        self.forgotten = if is_latest { self.latest.remove(&name) } else { self.forgotten };
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn name(text: &str) -> EnsName {
        EnsName::parse(text).expect("a good name")
    }

    #[test]
    fn what_was_asked_before_an_eviction_is_refused_for_that_name_alone() {
        let evicted = EvictionLog::default();
        let before = evicted.eviction_count();
        evicted.record_eviction(&name("a.eth"), START);
        assert!(!evicted.may_use_answer(&name("a.eth"), before));
        assert!(evicted.may_use_answer(&name("b.eth"), before));
        assert!(evicted.may_use_answer(&name("a.eth"), evicted.eviction_count()));
        assert_eq!(
            (evicted.last_eviction_time(&name("a.eth")), evicted.last_eviction_time(&name("b.eth"))),
            (Some(START), None)
        );
    }

    /// Otherwise, after one eviction of any name, every hit would wait for a lock.
    #[test]
    fn answer_is_checked_once_after_eviction_of_another_name() {
        let evicted = EvictionLog::default();
        let permitted = SurvivedEvictionCount::from(evicted.eviction_count());
        evicted.record_eviction(&name("b.eth"), START);
        assert!(evicted.may_still_use_answer(&name("a.eth"), &permitted));
        assert_eq!(
            TotalEvictionCount(permitted.0.load(Ordering::Relaxed)),
            evicted.eviction_count(),
            "no lock is taken until the next one"
        );
        evicted.record_eviction(&name("a.eth"), START);
        assert!(!evicted.may_still_use_answer(&name("a.eth"), &permitted));
        evicted.record_eviction(&name("b.eth"), START);
        assert!(!evicted.may_still_use_answer(&name("a.eth"), &permitted), "and for good");
    }

    #[test]
    fn what_evicts_a_name_stands_unless_it_was_overtaken() {
        let evicted = EvictionLog::default();
        let began = evicted.eviction_count();
        let after = evicted.record_eviction_by_result(&name("a.eth"), began, START).expect("nothing came between");
        assert!(!evicted.may_use_answer(&name("a.eth"), began) && evicted.may_use_answer(&name("a.eth"), after));
        assert_eq!(evicted.record_eviction_by_result(&name("a.eth"), began, START), None);
    }

    #[test]
    fn a_forgotten_eviction_stands_for_all_names() {
        let evicted = EvictionLog::default();
        let before = evicted.eviction_count();
        for number in 0..=MAX_NAMES {
            evicted.record_eviction(&name(&format!("a{number}.eth")), START + (number as i64).seconds());
        }
        assert_eq!(evicted.names.read().unwrap().latest.len(), MAX_NAMES);
        assert!(
            !evicted.may_use_answer(&name("a0.eth"), before) && !evicted.may_use_answer(&name("other.eth"), before)
        );
        assert!(evicted.may_use_answer(&name("other.eth"), evicted.eviction_count()));
    }
}
