//! Names whose answers may no longer be used: what was asked before the eviction is refused.
//!
//! Answers of this process are told apart by a count, which no clock can turn back. Those of other processes carry a
//! time, so the time of each eviction is kept too.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use crate::name::EnsName;

/// Most names remembered, some 10 MiB. Beyond it the oldest eviction stands for all names: more is refused, never less.
const MAX_NAMES: usize = 65_536;

/// How many evictions there had been when a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(u64);

/// The evictions of names.
#[derive(Default)]
pub(super) struct Evicted {
    /// How many there were: a look-up without an eviction since takes no lock.
    count: AtomicU64,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    latest: HashMap<EnsName, (Mark, Timestamp)>,
    /// In the order of the evictions; a name that was evicted again stands in it twice.
    order: VecDeque<(Mark, EnsName)>,
    /// The latest of the evictions that were forgotten.
    forgotten: Option<(Mark, Timestamp)>,
}

impl Evicted {
    /// Refuses what was asked about `name` before `now`.
    pub(super) fn record(&self, name: &EnsName, now: Timestamp) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = Mark(self.count.load(Ordering::Relaxed) + 1);
        let at = names.latest.get(name).map_or(now, |(_, before)| now.max(*before));
        names.latest.insert(name.clone(), (mark, at));
        names.order.push_back((mark, name.clone()));
        // Ends: each turn takes one out.
        while names.order.len() > MAX_NAMES {
            names.forget_oldest();
        }
        // Last, and under the lock: who sees the count sees the name.
        self.count.store(mark.0, Ordering::Release);
    }

    /// How many there were by now.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.count.load(Ordering::Acquire))
    }

    /// Whether what was asked about `name` at `began` may be used.
    pub(super) fn permits(&self, name: &EnsName, began: Mark) -> bool {
        if self.mark() <= began || clresolve_core::mutant!("evictions-are-ignored") {
            return true;
        }
        self.latest(name).is_none_or(|(mark, _)| mark <= began)
    }

    /// When `name` was evicted last, as far as that is remembered.
    #[cfg(feature = "redis")]
    pub(super) fn at(&self, name: &EnsName) -> Option<Timestamp> {
        self.latest(name).map(|(_, at)| at)
    }

    fn latest(&self, name: &EnsName) -> Option<(Mark, Timestamp)> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.latest.get(name).copied().or(names.forgotten)
    }
}

impl Names {
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
        let evicted = Evicted::default();
        let before = evicted.mark();
        evicted.record(&name("a.eth"), START);
        assert!(!evicted.permits(&name("a.eth"), before));
        assert!(evicted.permits(&name("b.eth"), before));
        assert!(evicted.permits(&name("a.eth"), evicted.mark()));
        assert_eq!((evicted.at(&name("a.eth")), evicted.at(&name("b.eth"))), (Some(START), None));
    }

    #[test]
    fn a_forgotten_eviction_stands_for_all_names() {
        let evicted = Evicted::default();
        let before = evicted.mark();
        for number in 0..=MAX_NAMES {
            evicted.record(&name(&format!("a{number}.eth")), START + (number as i64).seconds());
        }
        assert_eq!(evicted.names.lock().unwrap().latest.len(), MAX_NAMES);
        assert!(!evicted.permits(&name("a0.eth"), before) && !evicted.permits(&name("other.eth"), before));
        assert!(evicted.permits(&name("other.eth"), evicted.mark()));
    }
}
