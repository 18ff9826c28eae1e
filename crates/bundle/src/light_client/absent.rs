//! Proofs of a light client are refused in a build without the feature `state-proof`.

use alloy_primitives::B256;
use clresolve_core::light_client::LightClientSyncTranscript;
use clresolve_core::reading::ChainBlock;
use clresolve_state::StateProofError;
use jiff::Timestamp;

use super::error::BundleError;

/// Fails with [`StateProofError::NotBuilt`].
pub(super) fn check_finality(
    _proof: &LightClientSyncTranscript,
    _block: &ChainBlock,
    _checkpoint: Option<B256>,
    _network: (&str, u64),
    _at: Timestamp,
) -> Result<(), BundleError> {
    Err(StateProofError::NotBuilt.into())
}
