//! The endpoints of the chain, and the client that connects to them.

use std::sync::Arc;

use clresolve_chain::transport::HttpPost;
use clresolve_chain::{ChainConfig, Follower};

use crate::fetch::Egress;

/// The configured endpoints.
#[derive(Clone)]
pub(super) struct Upstream {
    pub(super) settings: ChainConfig,
    pub(super) http: Arc<dyn HttpPost>,
    /// The client for their WebSockets.
    pub(super) egress: Egress,
}

impl Upstream {
    /// Creates a follower for each endpoint.
    pub(super) fn followers(&self) -> Vec<Follower> {
        Follower::all(&self.settings, &self.http)
    }
}
