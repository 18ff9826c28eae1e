//! What an operator asks of a resolver: what its caches hold, and to drop some of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Resolver;
use crate::cache::{Held, PoolSize, PoolSizes};
use crate::cid::ContentId;
use crate::name::EnsName;
use crate::verdict::{State, Verdict};

/// What an operator drops from the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// All, and all proven content.
    All,
    /// What is known of a name, a run under way included.
    Name(EnsName),
    /// What is known of each name about which there is an answer of this state.
    State(State),
    /// The same by the value of `cl.owner`.
    Owner(String),
    /// The same by the CID of the card, and what was proven under it.
    Cid(ContentId),
}

/// How much was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flushed {
    /// Names whose next answer takes a run.
    pub(crate) names: usize,
}

/// How much the caches hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CacheSizes {
    #[serde(flatten)]
    verdicts: PoolSizes,
    content: PoolSize,
}

/// How the chain is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Followed {
    enabled: bool,
    /// Endpoints that are configured.
    endpoints: usize,
    /// Those that answered the last time that they were asked for new blocks.
    answering: usize,
}

impl Resolver {
    /// Drops what the operator names. The next answer about each name takes a run, and every daemon of the fleet is told.
    pub(crate) async fn flush(&self, what: &Flush) -> Flushed {
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

    /// How much the caches hold.
    pub(crate) async fn cache_sizes(&self) -> CacheSizes {
        let verdicts = self.0.cached.cache.sizes().await;
        CacheSizes { verdicts, content: self.0.walker.sources.proven.size().await }
    }

    /// Every answer that the cache holds about `name`.
    pub(crate) fn held_about(&self, name: &EnsName) -> Vec<Held> {
        self.0.cached.cache.held_about(name, self.now())
    }

    /// How the chain is followed.
    pub(crate) fn followed(&self) -> Followed {
        let config = &self.0.walker.config;
        Followed {
            enabled: config.follow.enabled,
            endpoints: config.chain.endpoints.len(),
            answering: self.0.cached.cache.changes.followed(),
        }
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
