//! What is read of the chain, and the way to its endpoints.

use std::sync::Arc;
#[cfg(feature = "cli")]
use std::time::Duration;

#[cfg(feature = "cli")]
use crate::chain::NameFinder;
use crate::chain::transport::HttpPost;
use crate::chain::{ChainConfig, Follower};
#[cfg(feature = "daemon")]
use crate::fetch::Egress;

/// The endpoints of the configuration.
#[derive(Clone)]
pub(super) struct Upstream {
    pub(super) settings: ChainConfig,
    pub(super) http: Arc<dyn HttpPost>,
    /// The door to their WebSockets.
    #[cfg(feature = "daemon")]
    pub(super) egress: Egress,
}

impl Upstream {
    /// A follower for each endpoint.
    pub(super) fn followers(&self) -> Vec<Follower> {
        Follower::all(&self.settings, &self.http)
    }
}

#[cfg(feature = "cli")]
impl super::Resolver {
    /// How long the last server to answer again still rests, as it has asked for: of a resolver for lists.
    pub(crate) fn rest(&self) -> Option<Duration> {
        self.0.walker.upstream.as_ref()?.egress.rest()
    }

    /// What finds names through the endpoints; `None` where the chain is not read through endpoints.
    pub(crate) fn name_finder(&self) -> Option<NameFinder> {
        let Upstream { settings, http, .. } = self.0.walker.upstream.as_ref()?;
        Some(NameFinder::new(settings, http))
    }
}
