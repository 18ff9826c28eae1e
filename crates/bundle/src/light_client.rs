//! Verifies a header that a light client of the beacon chain supplied.

use alloy_primitives::B256;
use clresolve_beacon::{ChainSpec, VerifiedBeaconHeader, verify_light_client_transcript};
use clresolve_core::light_client::LightClientSyncTranscript;
use clresolve_core::reading::ChainBlock;
use clresolve_core::world::{MAINNET_ID, SANDBOX, SANDBOX_ID};
use jiff::Timestamp;

use super::error::{BundleError, CheckpointError};

/// Checks that the validators finalized `block`, for a reader who trusts the block root `checkpoint`. `at` is when the
/// evidence was gathered. The network is given by name and chain id.
pub(super) fn check_finality(
    proof: &LightClientSyncTranscript,
    block: &ChainBlock,
    checkpoint: Option<B256>,
    (world, chain_id): (&str, u64),
    at: Timestamp,
) -> Result<(), BundleError> {
    let checkpoint = checkpoint.ok_or(CheckpointError::Unnamed { observed: proof.checkpoint })?;
    let spec = beacon_chain_spec(world, chain_id).ok_or(CheckpointError::UnknownChain(chain_id))?;
    let slot = spec.slot_at_time(u64::try_from(at.as_second()).unwrap_or_default());
    let verified = verify_light_client_transcript(proof, checkpoint, spec, slot);
    let verified = verified.map_err(|error| match error.is_disconnected_from_checkpoint() {
        true => CheckpointError::NoPath(error.to_string()).into(),
        false => BundleError::LightClient(error.to_string()),
    })?;
    check_header_block(&verified, block)
}

/// Checks that the verified header is that of `block`.
fn check_header_block(verified: &VerifiedBeaconHeader, block: &ChainBlock) -> Result<(), BundleError> {
    if verified.block_hash() == block.hash || clresolve_core::mutant!("any-finalized-header") {
        return Ok(());
    }
    if verified.block_number() == block.number {
        return Err(BundleError::Header("the validators finalized another block of its height"));
    }
    let (observed, expected) = (verified.block_number(), block.number);
    Err(CheckpointError::OtherBlock { expected, observed }.into())
}

/// The beacon chain whose blocks contain those of this network. Other networks have the sandbox's chain id too, but the
/// keys of its validators are public.
fn beacon_chain_spec(world: &str, chain_id: u64) -> Option<ChainSpec> {
    match (world, chain_id) {
        (_, MAINNET_ID) => Some(ChainSpec::mainnet()),
        (SANDBOX, SANDBOX_ID) => Some(ChainSpec::sandbox()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
