//! The endpoints of the chain, and the client that connects to them.

use std::sync::Arc;

use clresolve_chain::transport::HttpPost;
use clresolve_chain::{ChainConfig, Clock, HeadReader, Heads};

use crate::fetch::Egress;

#[derive(Clone)]
pub(super) struct Upstream {
    pub(super) settings: ChainConfig,
    pub(super) http: Arc<dyn HttpPost>,
    /// The client behind `http`.
    pub(super) egress: Egress,
}

impl Upstream {
    /// Reads heads that enough operators report.
    pub(super) fn head_reader(&self, clock: Clock) -> Arc<dyn Heads> {
        Arc::new(HeadReader::new(self.settings.clone(), &self.http).with_clock(clock))
    }
}
