//! The decisions whose payments are still pending.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use reqwest::Url;

use crate::reply::{Allowed, Payable, Reply};

/// Maximum number of pending decisions, each of at most about 100 KiB. Beyond it, the oldest are dropped.
const MAX_WAITING: usize = 256;

/// The entries of a 402 response that may be paid.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) reply: Reply,
    pub(crate) allowed: Allowed,
}

/// Pending decisions, the newest last. Each access drops expired ones.
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
        let (mut list, _) = self.in_time();
        list.push(Arc::new(decision));
        if list.len() > MAX_WAITING {
            list.remove(0);
        }
    }

    /// The decisions for a URL, newest first, each with each of its entries that may still be paid.
    pub(crate) fn questions(&self, url: &Url) -> Vec<(Arc<Decision>, Payable)> {
        let (list, now) = self.in_time();
        let decisions = list.iter().rev().filter(|decision| decision.reply.url == *url);
        let entries = |decision: &Arc<Decision>| {
            let decision = Arc::clone(decision);
            let entries = decision.allowed.entries().to_vec().into_iter().filter(move |entry| entry.is_in_time(now));
            entries.map(move |entry| (Arc::clone(&decision), entry))
        };
        decisions.flat_map(entries).collect()
    }

    /// Removes a decision to use it for an entry. Returns whether it was still pending and the entry had not expired.
    pub(crate) fn take(&self, decision: &Arc<Decision>, paid: Payable) -> bool {
        let (mut list, now) = self.in_time();
        let place = list.iter().position(|other| Arc::ptr_eq(other, decision)).filter(|_| paid.is_in_time(now));
        place.map(|place| list.remove(place)).is_some()
    }

    /// The pending decisions, and the time of this access.
    fn in_time(&self) -> (MutexGuard<'_, Vec<Arc<Decision>>>, SystemTime) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (self.now)();
        list.retain(|decision| decision.allowed.entries().iter().any(|entry| entry.is_in_time(now)));
        (list, now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn decision() -> Decision {
        ending([60])
    }

    /// A decision with one entry for each of these expiry times, in seconds since the epoch.
    fn ending<const N: usize>(seconds: [u64; N]) -> Decision {
        let url = Url::parse("https://api.example/").expect("a URL");
        let entry = |(entry, seconds)| Payable { entry, until: at(seconds) };
        let allowed = Allowed::new(seconds.into_iter().enumerate().map(entry).collect()).expect("an entry");
        Decision { reply: Reply { url, headers: Vec::new(), body: Vec::new() }, allowed }
    }

    fn all(waiting: &Waiting) -> Vec<(Arc<Decision>, Payable)> {
        waiting.questions(&decision().reply.url)
    }

    fn take(waiting: &Waiting, (decision, entry): &(Arc<Decision>, Payable)) -> bool {
        waiting.take(decision, *entry)
    }

    #[test]
    fn the_oldest_are_forgotten_and_each_is_there_once() {
        let waiting = Waiting { now: || SystemTime::UNIX_EPOCH, ..Waiting::default() };
        waiting.add(decision());
        let oldest = all(&waiting);
        (0..MAX_WAITING).for_each(|_| waiting.add(decision()));
        assert!(!take(&waiting, &oldest[0]));
        let kept = all(&waiting);
        assert_eq!(kept.len(), MAX_WAITING);
        assert!(take(&waiting, &kept[0]) && !take(&waiting, &kept[0]));
    }

    #[test]
    fn a_decision_ends() {
        let early = Waiting { now: || at(59), ..Waiting::default() };
        early.add(decision());
        let kept = all(&early);
        let late = Waiting { now: || at(60), ..early };
        assert!(kept.len() == 1 && all(&late).is_empty() && !take(&late, &kept[0]));
    }

    #[test]
    fn an_entry_ends_by_itself() {
        let early = Waiting { now: || at(29), ..Waiting::default() };
        early.add(ending([60, 30]));
        let kept = all(&early);
        let late = Waiting { now: || at(30), ..early };
        let left: Vec<usize> = all(&late).iter().map(|(_, payable)| payable.entry).collect();
        assert_eq!((kept.len(), left), (2, vec![0]));
        assert!(!take(&late, &kept[1]) && take(&late, &kept[0]));
    }
}
