//! Inspects the caches and removes entries, for the operator.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_ipfs::ContentId;
use clresolve_verdict::verdict::{ResolutionDepth, Verdict};
use jiff::Timestamp;
use serde::Serialize;

use super::{CachedVerdict, CachedVerdictPool, CachedVerdictUse, IpfsContentCache, VerdictCache, VerdictCacheKey};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CachePoolSize {
    entries: u64,
    /// As weighed by the pool. Small verdicts count with their share of it.
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct VerdictPoolSizes {
    trusted: CachePoolSize,
    untrusted: CachePoolSize,
    failures: CachePoolSize,
}

/// A cached verdict on a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CachedVerdictDocument {
    state: TrustState,
    /// The verdict's ID.
    verdict: String,
    block: String,
    depth: ResolutionDepth,
    /// The profile's identifier.
    profile: String,
    checked_at: Timestamp,
    fresh_until: Timestamp,
    /// Whether the cache still serves the entry: it has not expired, and its name was not evicted.
    answers: bool,
}

impl CachePoolSize {
    async fn measure(pool: &CachedVerdictPool) -> Self {
        pool.run_pending_tasks().await;
        Self { entries: pool.entry_count(), bytes: pool.weighted_size() }
    }
}

impl VerdictCache {
    pub(crate) async fn pool_sizes(&self) -> VerdictPoolSizes {
        VerdictPoolSizes {
            trusted: CachePoolSize::measure(&self.trusted).await,
            untrusted: CachePoolSize::measure(&self.untrusted).await,
            failures: CachePoolSize::measure(&self.failures).await,
        }
    }

    /// The names with at least one cached verdict for which `fits` is true.
    pub(crate) fn names_with_matching_verdict(&self, fits: impl Fn(&Verdict) -> bool) -> BTreeSet<EnsName> {
        let fitting = self.entries().filter(|(_, entry)| fits(&entry.verdict()));
        fitting.map(|(key, _)| key.name.clone()).collect()
    }

    /// The names with a resolution in progress.
    pub(crate) fn names_in_progress(&self) -> BTreeSet<EnsName> {
        let flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        flights.keys().map(|key| key.name.clone()).collect()
    }

    /// Every cached verdict on `name`.
    pub(crate) fn cached_verdict_documents(&self, name: &EnsName, now: Timestamp) -> Vec<CachedVerdictDocument> {
        let of_name = self.entries().filter(|(key, _)| key.name == *name);
        of_name.map(|(key, entry)| self.describe_entry(&key, &entry, now)).collect()
    }

    /// Removes the verdicts on these names, with the content that earlier resolutions proved.
    pub(crate) async fn remove_names(&self, names: &BTreeSet<EnsName>) {
        let keys: Vec<Arc<VerdictCacheKey>> =
            self.entries().map(|(key, _)| key).filter(|key| names.contains(&key.name)).collect();
        for key in keys {
            for pool in [&self.trusted, &self.untrusted, &self.failures] {
                pool.invalidate(&*key).await;
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = (Arc<VerdictCacheKey>, Arc<CachedVerdict>)> {
        self.trusted.iter().chain(self.untrusted.iter()).chain(self.failures.iter())
    }

    fn describe_entry(&self, key: &VerdictCacheKey, entry: &CachedVerdict, now: Timestamp) -> CachedVerdictDocument {
        let verdict = entry.verdict();
        CachedVerdictDocument {
            state: verdict.state,
            verdict: verdict.id.clone(),
            block: key.block.to_string(),
            depth: key.depth,
            profile: verdict.profile.id.clone(),
            checked_at: verdict.freshness.checked_at,
            fresh_until: verdict.freshness.fresh_until,
            answers: self.is_servable(key, entry, now, CachedVerdictUse::Answer),
        }
    }
}

impl IpfsContentCache {
    pub(crate) async fn size(&self) -> CachePoolSize {
        self.0.run_pending_tasks().await;
        CachePoolSize { entries: self.0.entry_count(), bytes: self.0.weighted_size() }
    }

    pub(crate) fn clear(&self) {
        self.0.invalidate_all();
    }

    /// Removes the content that was proven for `cid`.
    pub(crate) async fn remove_cid(&self, cid: &ContentId) {
        let keys: Vec<_> = self.0.iter().map(|(key, _)| key).filter(|key| key.0 == *cid).collect();
        for key in keys {
            self.0.invalidate(&*key).await;
        }
    }
}
