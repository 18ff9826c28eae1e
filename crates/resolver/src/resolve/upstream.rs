//! The endpoints of the chain, and the client that connects to them.

use std::sync::Arc;

use clresolve_chain::transport::HttpPost;
use clresolve_chain::{ChainConfig, Clock, HeadReader};

use crate::fetch::Egress;

/// The configured endpoints.
#[derive(Clone)]
pub(super) struct Upstream {
    pub(super) settings: ChainConfig,
    pub(super) http: Arc<dyn HttpPost>,
    /// The client behind `http`.
    pub(super) egress: Egress,
}

impl Upstream {
    /// Creates the reader of the chain's head.
    pub(super) fn head_reader(&self, clock: Clock) -> Arc<HeadReader> {
        Arc::new(HeadReader::new(self.settings.clone(), &self.http).with_clock(clock))
    }
}
