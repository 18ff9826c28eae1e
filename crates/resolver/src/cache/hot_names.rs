//! Hot names: those that the gate and decisions used recently. They are reread at each new head. Reads no clock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use clresolve_core::name::EnsName;
use jiff::{SignedDuration, Timestamp};

/// Maximum number of hot names: a hundred calls to each endpoint at each head. Others are confirmed on demand.
const MAX_NAMES: usize = 2_000;

/// How long a name is hot after a request.
const WINDOW: SignedDuration = SignedDuration::from_mins(5);

/// The hot names, by their text.
#[derive(Default)]
pub(crate) struct HotNameSet {
    names: RwLock<HashMap<String, HotNameUse>>,
    /// When expired names were last removed, in seconds of Unix time.
    pruned: AtomicI64,
}

struct HotNameUse {
    name: EnsName,
    /// When it was last requested, in seconds of Unix time.
    asked: AtomicI64,
}

impl HotNameSet {
    /// Records a request for `name`, which is in normal form.
    pub(crate) fn record_request(&self, name: &str, now: Timestamp) {
        if let Some(hot) = self.names.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return hot.asked.store(now.as_second(), Ordering::Relaxed);
        }
        let Ok(parsed) = EnsName::parse(name) else { return };
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        // At most once a second, since every answer of the gate waits for it.
        if names.len() >= MAX_NAMES && self.pruned.swap(now.as_second(), Ordering::Relaxed) != now.as_second() {
            names.retain(|_, hot| hot.is_recent(now));
        }
        if names.len() < MAX_NAMES || clresolve_core::mutant!("hot-names-unbounded") {
            names.insert(name.to_owned(), HotNameUse { name: parsed, asked: now.as_second().into() });
        }
    }

    pub(crate) fn is_hot(&self, name: &EnsName, now: Timestamp) -> bool {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.get(name.as_str()).is_some_and(|hot| hot.is_recent(now))
    }

    pub(crate) fn is_empty(&self, now: Timestamp) -> bool {
        !self.names.read().unwrap_or_else(PoisonError::into_inner).values().any(|hot| hot.is_recent(now))
    }

    pub(crate) fn names(&self, now: Timestamp) -> Vec<EnsName> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.values().filter(|hot| hot.is_recent(now)).map(|hot| hot.name.clone()).collect()
    }
}

impl HotNameUse {
    fn is_recent(&self, now: Timestamp) -> bool {
        now.as_second() - self.asked.load(Ordering::Relaxed) < WINDOW.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn name(number: usize) -> EnsName {
        EnsName::parse(&format!("a{number}.eth")).expect("a name")
    }

    #[test]
    fn name_is_hot_for_five_minutes_after_the_last_question() {
        let hot = HotNameSet::default();
        hot.record_request(name(1).as_str(), START);
        hot.record_request(name(1).as_str(), START + SignedDuration::from_secs(200));
        assert_eq!(hot.names(START + SignedDuration::from_secs(499)), [name(1)]);
        assert_eq!(hot.names(START + SignedDuration::from_secs(500)), []);
    }

    #[test]
    fn names_are_bounded_and_give_way_after_the_window() {
        let hot = HotNameSet::default();
        (0..=MAX_NAMES).for_each(|number| hot.record_request(name(number).as_str(), START));
        assert_eq!(hot.names(START).len(), MAX_NAMES);
        let later = START + WINDOW;
        hot.record_request(name(MAX_NAMES).as_str(), later);
        assert_eq!(hot.names(later), [name(MAX_NAMES)]);
    }
}
