//! Operator access to a resolver: inspect its caches and drop entries.

use std::collections::BTreeSet;

use clresolve_core::name::EnsName;
use clresolve_core::state::State;
use clresolve_ipfs::ContentId;
use clresolve_verdict::verdict::Verdict;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Resolver;
use crate::cache::{Held, PoolSize, PoolSizes};

/// What to drop from the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Everything, including all proven content.
    All,
    /// All entries of a name, including a resolution in progress.
    Name(EnsName),
    /// All entries of each name with a cached verdict of this state.
    State(State),
    /// All entries of each name with this value of `cl.owner`.
    Owner(String),
    /// All entries of each name whose card has this CID, and the content proven for it.
    Cid(ContentId),
}

/// The number of dropped entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flushed {
    /// Number of names that must be resolved again.
    pub names: usize,
}

/// The sizes of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheSizes {
    #[serde(flatten)]
    verdicts: PoolSizes,
    content: PoolSize,
}

/// The newest head of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeadStatus {
    /// Its height.
    pub number: u64,
    /// When enough endpoints last reported it.
    pub reported_at: Timestamp,
}

impl Resolver {
    /// Drops the selected entries. The next question about each name starts a resolution.
    pub async fn flush(&self, what: &Flush) -> Flushed {
        let cache = &self.0.cached.cache;
        let proven = &self.0.walker.sources.proven;
        match what {
            Flush::All => proven.clear(),
            Flush::Cid(cid) => proven.remove(cid).await,
            Flush::Name(_) | Flush::State(_) | Flush::Owner(_) => {}
        }
        let names = match what {
            Flush::All => &cache.names(|_| true) | &cache.under_way(),
            Flush::Name(name) => BTreeSet::from([name.clone()]),
            what => cache.names(|verdict| what.fits(verdict)),
        };
        self.0.cached.evict(&names);
        cache.remove(&names).await;
        Flushed { names: names.len() }
    }

    /// The sizes of the caches.
    pub async fn cache_sizes(&self) -> CacheSizes {
        let verdicts = self.0.cached.cache.sizes().await;
        CacheSizes { verdicts, content: self.0.walker.sources.proven.size().await }
    }

    /// Every cached verdict on `name`.
    pub fn held_about(&self, name: &EnsName) -> Vec<Held> {
        self.0.cached.cache.held_about(name, self.now())
    }

    /// The newest head of the chain. `None` before the first question that requires one.
    pub fn head(&self) -> Option<HeadStatus> {
        let seen = self.0.cached.cache.heads.newest()?;
        Some(HeadStatus { number: seen.head.block.number, reported_at: seen.head.reported_at })
    }
}

impl Flush {
    fn fits(&self, verdict: &Verdict) -> bool {
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
