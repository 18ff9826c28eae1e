//! The decisions whose payments are still pending.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use reqwest::Url;

use crate::reply::{PayableEntries, PayableEntry, PaymentRequiredResponse};

/// Maximum number of pending decisions, each of at most about 100 KiB. Beyond it, the oldest are dropped.
const MAX_WAITING: usize = 256;

/// The entries of a 402 response that may be paid.
#[derive(Debug)]
pub(crate) struct PendingDecision {
    pub(crate) reply: PaymentRequiredResponse,
    pub(crate) allowed: PayableEntries,
}

/// Pending decisions, the newest last. Each access drops expired ones.
#[derive(Debug)]
pub(crate) struct PendingDecisions {
    list: Mutex<Vec<Arc<PendingDecision>>>,
    now: fn() -> SystemTime,
}

impl Default for PendingDecisions {
    fn default() -> Self {
        Self { list: Mutex::default(), now: SystemTime::now }
    }
}

impl PendingDecisions {
    pub(crate) fn add(&self, decision: PendingDecision) {
        let (mut list, _) = self.lock_unexpired();
        list.push(Arc::new(decision));
        if list.len() > MAX_WAITING {
            list.remove(0);
        }
    }

    /// The decisions for a URL, newest first, each with each of its entries that may still be paid.
    pub(crate) fn payable_entries_for_url(&self, url: &Url) -> Vec<(Arc<PendingDecision>, PayableEntry)> {
        let (list, now) = self.lock_unexpired();
        let decisions = list.iter().rev().filter(|decision| decision.reply.url == *url);
        let entries = |decision: &Arc<PendingDecision>| {
            let decision = Arc::clone(decision);
            let entries = decision.allowed.entries().to_vec().into_iter().filter(move |entry| entry.is_unexpired(now));
            entries.map(move |entry| (Arc::clone(&decision), entry))
        };
        decisions.flat_map(entries).collect()
    }

    /// Removes a decision to use it for an entry. Returns whether it was still pending and the entry had not expired.
    pub(crate) fn take_decision(&self, decision: &Arc<PendingDecision>, paid: PayableEntry) -> bool {
        let (mut list, now) = self.lock_unexpired();
        let place = list.iter().position(|other| Arc::ptr_eq(other, decision)).filter(|_| paid.is_unexpired(now));
        place.map(|place| list.remove(place)).is_some()
    }

    /// The pending decisions, and the time of this access.
    fn lock_unexpired(&self) -> (MutexGuard<'_, Vec<Arc<PendingDecision>>>, SystemTime) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (self.now)();
        list.retain(|decision| decision.allowed.entries().iter().any(|entry| entry.is_unexpired(now)));
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

    fn decision() -> PendingDecision {
        ending([60])
    }

    /// A decision with one entry for each of these expiry times, in seconds since the epoch.
    fn ending<const N: usize>(seconds: [u64; N]) -> PendingDecision {
        let url = Url::parse("https://api.example/").expect("a URL");
        let entry = |(entry, seconds)| PayableEntry { entry, until: at(seconds) };
        let allowed = PayableEntries::new(seconds.into_iter().enumerate().map(entry).collect()).expect("an entry");
        PendingDecision { reply: PaymentRequiredResponse { url, headers: Vec::new(), body: Vec::new() }, allowed }
    }

    fn all(waiting: &PendingDecisions) -> Vec<(Arc<PendingDecision>, PayableEntry)> {
        waiting.payable_entries_for_url(&decision().reply.url)
    }

    fn take(waiting: &PendingDecisions, (decision, entry): &(Arc<PendingDecision>, PayableEntry)) -> bool {
        waiting.take_decision(decision, *entry)
    }

    #[test]
    fn the_oldest_are_forgotten_and_each_is_there_once() {
        let waiting = PendingDecisions { now: || SystemTime::UNIX_EPOCH, ..PendingDecisions::default() };
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
        let early = PendingDecisions { now: || at(59), ..PendingDecisions::default() };
        early.add(decision());
        let kept = all(&early);
        let late = PendingDecisions { now: || at(60), ..early };
        assert!(kept.len() == 1 && all(&late).is_empty() && !take(&late, &kept[0]));
    }

    #[test]
    fn an_entry_ends_by_itself() {
        let early = PendingDecisions { now: || at(29), ..PendingDecisions::default() };
        early.add(ending([60, 30]));
        let kept = all(&early);
        let late = PendingDecisions { now: || at(30), ..early };
        let left: Vec<usize> = all(&late).iter().map(|(_, payable)| payable.entry).collect();
        assert_eq!((kept.len(), left), (2, vec![0]));
        assert!(!take(&late, &kept[1]) && take(&late, &kept[0]));
    }
}
