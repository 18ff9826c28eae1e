//! `[beacon]`: the beacon chain that the light client follows.

use std::path::PathBuf;

use alloy_primitives::B256;
use clresolve_core::world::{MAINNET_ID, SANDBOX_ID};
use serde::{Deserialize, Serialize};

use super::endpoint::BeaconEndpointConfig;
use super::labels::{label_unnamed_by_position, number_duplicate_labels};
use super::text;

/// The light client of the beacon chain. It is used only if a header must be vouched for by consensus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BeaconConfig {
    /// The block root that the light client starts from. The operator trusts it.
    #[serde(with = "text::or_empty")]
    pub checkpoint: Option<B256>,
    /// Beacon endpoints, in order of preference. Any honest one is enough.
    pub endpoints: Vec<BeaconEndpointConfig>,
    /// The file that keeps the verified state across restarts. An empty path means the default: beside the file of
    /// the memory.
    #[serde(with = "text::or_empty")]
    pub file: Option<PathBuf>,
    /// The network of the beacon chain.
    pub network: BeaconNetwork,
}

/// A beacon chain whose constants are built in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeaconNetwork {
    /// Ethereum mainnet.
    #[default]
    Mainnet,
    /// The beacon chain of the embedded sandbox, whose keys are public.
    Sandbox,
}

impl BeaconNetwork {
    /// The EIP-155 chain id of the execution blocks in its headers.
    pub const fn chain_id(self) -> u64 {
        match self {
            Self::Mainnet => MAINNET_ID,
            Self::Sandbox => SANDBOX_ID,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Mainnet => "mainnet",
            Self::Sandbox => "sandbox",
        }
    }
}

impl BeaconConfig {
    /// The endpoints, each with a unique label.
    pub(super) fn labelled_endpoints(&self) -> Vec<BeaconEndpointConfig> {
        let mut endpoints = self.endpoints.clone();
        let labels = endpoints.iter_mut().map(|endpoint| &mut endpoint.label);
        label_unnamed_by_position(labels, BeaconEndpointConfig::UNNAMED, BeaconEndpointConfig::UNNAMED);
        number_duplicate_labels(endpoints.iter_mut().map(|endpoint| &mut endpoint.label));
        endpoints
    }
}
