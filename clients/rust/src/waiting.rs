//! The decisions that wait for their payment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use reqwest::Url;

use crate::guard::{Allowed, Reply};

/// Most of them, of some 100 KiB each at most. Beyond it the oldest are forgotten.
const MAX_WAITING: usize = 256;

/// What was allowed of a reply.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) reply: Reply,
    pub(crate) allowed: Allowed,
}

/// The newest stands last. What is over is forgotten at each look.
#[derive(Debug)]
pub(crate) struct Waiting {
    list: Mutex<Vec<Arc<Decision>>>,
    now: fn() -> SystemTime,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { list: Mutex::default(), now: SystemTime::now }
    }
}

impl Waiting {
    pub(crate) fn add(&self, decision: Decision) {
        let mut list = self.in_time();
        list.push(Arc::new(decision));
        if list.len() > MAX_WAITING {
            list.remove(0);
        }
    }

    /// Those for a URL, the newest first, each with each of its entries that may be paid.
    pub(crate) fn questions(&self, url: &Url) -> Vec<(Arc<Decision>, usize)> {
        let list = self.in_time();
        let decisions = list.iter().rev().filter(|decision| decision.reply.url == *url);
        let entries = |decision: &Arc<Decision>| {
            let decision = Arc::clone(decision);
            decision.allowed.entries().to_vec().into_iter().map(move |entry| (Arc::clone(&decision), entry))
        };
        decisions.flat_map(entries).collect()
    }

    /// Takes a decision out, once. Whether it was still there, and in time.
    pub(crate) fn take(&self, decision: &Arc<Decision>) -> bool {
        let mut list = self.in_time();
        let place = list.iter().position(|other| Arc::ptr_eq(other, decision));
        place.map(|place| list.remove(place)).is_some()
    }

    fn in_time(&self) -> MutexGuard<'_, Vec<Arc<Decision>>> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (self.now)();
        list.retain(|decision| now < decision.allowed.until());
        list
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn decision() -> Decision {
        let url = Url::parse("https://api.example/").expect("a URL");
        let allowed = Allowed::new(vec![0], SystemTime::UNIX_EPOCH + Duration::from_secs(60)).expect("an entry");
        Decision { reply: Reply { url, headers: Vec::new(), body: Vec::new() }, allowed }
    }

    fn all(waiting: &Waiting) -> Vec<Arc<Decision>> {
        waiting.questions(&decision().reply.url).into_iter().map(|(decision, _)| decision).collect()
    }

    #[test]
    fn the_oldest_are_forgotten_and_each_is_there_once() {
        let waiting = Waiting { now: || SystemTime::UNIX_EPOCH, ..Waiting::default() };
        waiting.add(decision());
        let oldest = all(&waiting);
        (0..MAX_WAITING).for_each(|_| waiting.add(decision()));
        assert!(!waiting.take(&oldest[0]));
        let kept = all(&waiting);
        assert_eq!(kept.len(), MAX_WAITING);
        assert!(waiting.take(&kept[0]) && !waiting.take(&kept[0]));
    }

    #[test]
    fn a_decision_ends() {
        let early = Waiting { now: || SystemTime::UNIX_EPOCH + Duration::from_secs(59), ..Waiting::default() };
        early.add(decision());
        let kept = all(&early);
        let late = Waiting { now: || SystemTime::UNIX_EPOCH + Duration::from_secs(60), ..early };
        assert!(kept.len() == 1 && all(&late).is_empty() && !late.take(&kept[0]));
    }
}
