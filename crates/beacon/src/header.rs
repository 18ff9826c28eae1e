//! Whether a light-client header is consistent, and what a verified one is good for.

use alloy_primitives::B256;

use crate::containers::LightClientHeader;
use crate::error::{LightClientError, UpdateHeaderRole};
use crate::hash::is_valid_merkle_branch;
use crate::spec::ChainSpec;

/// A header on which a sync committee agreed, with its execution block. Only
/// [`LightClientStore`](crate::LightClientStore) makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedBeaconHeader {
    slot: u64,
    beacon_root: B256,
    block_number: u64,
    block_hash: B256,
    state_root: B256,
    timestamp: u64,
}

impl VerifiedBeaconHeader {
    pub(crate) fn new(header: &LightClientHeader) -> Self {
        Self {
            slot: header.beacon.slot,
            beacon_root: header.beacon.hash_tree_root(),
            block_number: header.execution.block_number,
            block_hash: header.execution.block_hash,
            state_root: header.execution.state_root,
            timestamp: header.execution.timestamp,
        }
    }

    /// Slot of the beacon block.
    pub const fn slot(&self) -> u64 {
        self.slot
    }

    /// Root of the beacon block.
    pub const fn beacon_root(&self) -> B256 {
        self.beacon_root
    }

    /// Number of the execution block.
    pub const fn block_number(&self) -> u64 {
        self.block_number
    }

    /// Hash of the execution block.
    pub const fn block_hash(&self) -> B256 {
        self.block_hash
    }

    /// State root of the execution block, under which accounts and slots are proven.
    pub const fn state_root(&self) -> B256 {
        self.state_root
    }

    /// Timestamp of the execution block in seconds since 1970.
    pub const fn timestamp(&self) -> u64 {
        self.timestamp
    }
}

/// Verifies that the execution header is in the body of the beacon block (`is_valid_light_client_header`).
pub(crate) fn check_execution_header(
    header: &LightClientHeader,
    role: UpdateHeaderRole,
    spec: &ChainSpec,
) -> Result<(), LightClientError> {
    let fork = spec.fork_at_slot(header.beacon.slot)?;
    let execution = &header.execution;
    let has_blob_gas = execution.blob_gas_used != 0 || execution.excess_blob_gas != 0;
    if has_blob_gas && !fork.has_blob_gas() && !clresolve_core::mutant!("beacon-early-blob-gas") {
        return Err(LightClientError::BlobGasBeforeDeneb { header: role });
    }
    let root = execution.hash_tree_root(fork);
    if !is_valid_merkle_branch(
        root,
        &header.execution_branch,
        fork.generalized_indices().execution,
        header.beacon.body_root,
    ) && !clresolve_core::mutant!("beacon-execution-branch")
    {
        return Err(LightClientError::ExecutionBranch { header: role });
    }
    Ok(())
}
