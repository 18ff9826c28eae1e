//! What a run shows to be wrong of what was found before, under whatever key.

use std::fmt;
use std::sync::Arc;

use super::{Began, CacheKey, Entry, Finished, Serving, VerdictCache};
use crate::reason::Code;
use crate::verdict::{State, Verdict};

/// Who hears of a change that a run has shown.
#[derive(Clone)]
pub struct OnChange(Arc<dyn Fn() + Send + Sync>);

impl OnChange {
    /// One that does this.
    pub fn new(hear: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }
}

impl fmt::Debug for OnChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OnChange")
    }
}

impl VerdictCache {
    /// Evicts the name of `key` where a finding shows that something is wrong of what is held about it. The finding stands by
    /// that, as one of a run that began when it is said here, unless something that it contradicts has read further.
    pub(super) async fn outdate(&self, key: &CacheKey, found: &Finished, began: Began) -> Began {
        let (verdict, newest) = (found.resolution.verdict(), found.resolution.newest());
        let wrong = self.contradicted(key, verdict).await;
        if wrong.is_empty() || clresolve_core::mutant!("stale-across-a-change") {
            return began;
        }
        let at = verdict.freshness.checked_at;
        let Some(evictions) = self.evicted.record_by(&key.name, began.evictions, at) else { return began };
        self.leave_flights(&key.name);
        if let Some(OnChange(hear)) = &found.on_change {
            hear();
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
}

/// Whether a later run saw what makes an earlier verdict wrong: another state, other records, or others to come. What a
/// failure did not see is no change.
pub(super) fn shows_change(before: &Verdict, after: &Verdict) -> bool {
    let decided = |verdict: &Verdict| Some(verdict.state).filter(|state| *state != State::Indeterminate);
    shows_other_records(before, after) || differ(decided(before), decided(after))
}

/// Whether a later run, under whatever rules, read other records, or others to come.
fn shows_other_records(before: &Verdict, after: &Verdict) -> bool {
    let is_pending = |verdict: &Verdict| verdict.reasons.iter().any(|reason| reason.code == Code::RecordPending);
    let source = |verdict: &Verdict| {
        verdict.anchor.clone().map(|anchor| (anchor.resolver, anchor.wildcard, anchor.offchain, anchor.records_digest))
    };
    (is_pending(after) && !is_pending(before)) || differ(source(before), source(after))
}

/// Whether both are there, and not the same.
fn differ<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.zip(other).is_some_and(|(one, other)| one != other)
}
