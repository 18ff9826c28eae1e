//! Where a light client starts, and which endpoints it asks.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::B256;
use clresolve_beacon::ChainSpec;
use url::Url;

/// From where a light client starts, and whom it asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LightClientConfig {
    /// The network.
    pub spec: ChainSpec,
    /// The block root that the operator trusts.
    pub checkpoint: B256,
    /// The beacon endpoints, in order of preference.
    pub endpoints: Vec<BeaconEndpointSettings>,
    /// The file that keeps the verified state. `None`: each process starts from the checkpoint.
    pub file: Option<PathBuf>,
    /// Time limit of one request.
    pub timeout: Duration,
    /// After a stall of this length, other endpoints are asked too.
    pub hedge_after: Duration,
}

/// A beacon endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct BeaconEndpointSettings {
    /// The name of the endpoint in logs.
    pub label: String,
    /// The base URL, without `/eth/v1/beacon`. It may contain an API key and is never printed.
    pub url: Url,
}

impl fmt::Debug for BeaconEndpointSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BeaconEndpointSettings").field("label", &self.label).finish_non_exhaustive()
    }
}
