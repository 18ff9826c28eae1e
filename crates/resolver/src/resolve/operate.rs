//! Operator access to a resolver: inspect its caches and drop entries.

use std::collections::BTreeSet;

use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_ipfs::ContentId;
use clresolve_verdict::verdict::Verdict;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Resolver;
use crate::cache::{CachePoolSize, CachedVerdictDocument, VerdictPoolSizes};

/// What to drop from the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheFlushScope {
    /// Everything, including all proven content.
    All,
    /// All entries of a name, including a resolution in progress.
    Name(EnsName),
    /// All entries of each name with a cached verdict of this state.
    State(TrustState),
    /// All entries of each name with this value of `cl.owner`.
    Owner(String),
    /// All entries of each name whose card has this CID, and the content proven for it.
    Cid(ContentId),
}

/// The number of dropped entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheFlushResultDocument {
    /// Number of names that must be resolved again.
    pub names: usize,
}

/// The sizes of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheSizes {
    #[serde(flatten)]
    verdicts: VerdictPoolSizes,
    content: CachePoolSize,
}

/// The newest head of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ChainHeadStatus {
    /// Its height.
    pub number: u64,
    /// When enough endpoints last reported it.
    pub reported_at: Timestamp,
}

impl Resolver {
    /// Drops the selected entries. The next question about each name starts a resolution.
    pub async fn flush_caches(&self, what: &CacheFlushScope) -> CacheFlushResultDocument {
        let cache = &self.0.cached.cache;
        let proven = &self.0.walker.sources.proven;
        match what {
            CacheFlushScope::All => proven.clear(),
            CacheFlushScope::Cid(cid) => proven.remove_cid(cid).await,
            CacheFlushScope::Name(_) | CacheFlushScope::State(_) | CacheFlushScope::Owner(_) => {}
        }
        let names = match what {
            CacheFlushScope::All => &cache.names_with_matching_verdict(|_| true) | &cache.names_in_progress(),
            CacheFlushScope::Name(name) => BTreeSet::from([name.clone()]),
            what => cache.names_with_matching_verdict(|verdict| what.selects_verdict(verdict)),
        };
        self.0.cached.evict_names(&names);
        cache.remove_names(&names).await;
        CacheFlushResultDocument { names: names.len() }
    }

    /// The sizes of the caches.
    pub async fn cache_sizes(&self) -> CacheSizes {
        let verdicts = self.0.cached.cache.pool_sizes().await;
        CacheSizes { verdicts, content: self.0.walker.sources.proven.size().await }
    }

    /// Every cached verdict on `name`.
    pub fn cached_verdict_documents(&self, name: &EnsName) -> Vec<CachedVerdictDocument> {
        self.0.cached.cache.cached_verdict_documents(name, self.now())
    }

    /// The newest head of the chain. `None` before the first question that requires one.
    pub fn chain_head_status(&self) -> Option<ChainHeadStatus> {
        let seen = self.0.cached.cache.heads.newest_head()?;
        Some(ChainHeadStatus { number: seen.head.block.number, reported_at: seen.head.reported_at })
    }
}

impl CacheFlushScope {
    fn selects_verdict(&self, verdict: &Verdict) -> bool {
        let identity = verdict.identity.as_ref();
        match self {
            Self::All => true,
            Self::Name(name) => verdict.name.normalized.as_deref() == Some(name.as_str()),
            Self::State(state) => verdict.state == *state,
            Self::Owner(owner) => {
                identity.and_then(|identity| identity.owner.as_ref()).is_some_and(|found| found.name == *owner)
            }
            Self::Cid(cid) => {
                let found = identity.and_then(|identity| identity.card.cid.as_deref());
                found.and_then(|found| ContentId::parse(found).ok()).is_some_and(|found| found == *cid)
            }
        }
    }
}
