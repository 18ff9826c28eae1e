//! The endpoints of the chain, and the client that connects to them.

use std::sync::Arc;
use std::time::Duration;

use clresolve_chain::transport::{HttpRequestError, JsonRpcHttpClient};
use clresolve_chain::{ChainHeadReader, ChainReaderConfig, QuorumHeadReader, TimeSource};

use crate::fetch::{Egress, FetchError, SourceUnavailableError};

#[derive(Clone)]
pub(super) struct ChainRpcUpstream {
    pub(super) settings: ChainReaderConfig,
    pub(super) http: Arc<dyn JsonRpcHttpClient>,
    /// The client behind `http`.
    pub(super) egress: Egress,
}

impl ChainRpcUpstream {
    /// Reads heads that enough operators report.
    pub(super) fn head_reader(&self, clock: TimeSource) -> Arc<dyn ChainHeadReader> {
        Arc::new(QuorumHeadReader::new(self.settings.clone(), &self.http).with_clock(clock))
    }
}

/// The cause of a failed request to an endpoint, without its URL.
pub(super) fn http_request_error(error: FetchError, timeout: Duration) -> HttpRequestError {
    match error {
        FetchError::Oversize { limit } => HttpRequestError::TooLarge(limit),
        FetchError::Unavailable(SourceUnavailableError::Timeout) => HttpRequestError::Timeout(timeout),
        other => other
            .connection_error()
            .map_or_else(|| HttpRequestError::Connection(other.to_string()), HttpRequestError::Unconnected),
    }
}
