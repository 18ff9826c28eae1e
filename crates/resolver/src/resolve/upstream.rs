//! The endpoints of the chain, and the client that connects to them.

use std::sync::Arc;
use std::time::Duration;

use clresolve_chain::transport::{HttpPost, PostError};
use clresolve_chain::{ChainConfig, Clock, HeadReader, Heads};

use crate::fetch::{Cause, Egress, FetchError};

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

/// The cause of a failed request to an endpoint, without its URL.
pub(super) fn post_error(error: FetchError, timeout: Duration) -> PostError {
    match error {
        FetchError::Oversize { limit } => PostError::TooLarge(limit),
        FetchError::Unavailable(Cause::Timeout) => PostError::Timeout(timeout),
        other => other.unconnected().map_or_else(|| PostError::Connection(other.to_string()), PostError::Unconnected),
    }
}
