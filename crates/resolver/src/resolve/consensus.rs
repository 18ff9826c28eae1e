//! Headers by consensus: a light client of the beacon chain, and what reads the chain under its headers.

#[cfg(feature = "state-proof")]
mod built;

use std::sync::Arc;

use clresolve_chain::{ChainHeadReader, EnsReader};

#[cfg(feature = "state-proof")]
pub(super) use self::built::{beacon_client, light_client_config, proven_chain_readers};
#[cfg(feature = "state-proof")]
pub(super) use clresolve_chain::LightClient;

/// A build without proven state has no light client.
#[cfg(not(feature = "state-proof"))]
pub(super) enum LightClient {}

/// What reads the chain.
pub(super) struct ChainReaders {
    pub(super) chain: Arc<dyn EnsReader>,
    pub(super) heads: Arc<dyn ChainHeadReader>,
    /// The light client, if headers come from it.
    pub(super) light_client: Option<Arc<LightClient>>,
}
