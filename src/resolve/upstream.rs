//! What is read of the chain, and the way to its endpoints.

use std::sync::Arc;

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
