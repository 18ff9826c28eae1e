//! The common form of the three kinds of updates, and the rules that need no store.

use alloy_primitives::B256;

use crate::containers::{
    LightClientFinalityUpdate, LightClientHeader, LightClientOptimisticUpdate, LightClientUpdate, SyncAggregate,
    SyncCommittee,
};
use crate::error::{LightClientError, UpdateHeaderRole};
use crate::hash::is_valid_merkle_branch;
use crate::header::check_execution_header;
use crate::spec::ChainSpec;

/// A value in the state of the attested header, with the branch that proves it.
#[derive(Debug)]
pub(crate) struct StateFieldProof<'a, T> {
    pub(crate) value: &'a T,
    pub(crate) branch: &'a [B256],
}

impl<T> Clone for StateFieldProof<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StateFieldProof<'_, T> {}

/// What an update claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LightClientUpdateClaim<'a> {
    pub(crate) attested: &'a LightClientHeader,
    pub(crate) finalized: Option<StateFieldProof<'a, LightClientHeader>>,
    pub(crate) next_committee: Option<StateFieldProof<'a, SyncCommittee>>,
    pub(crate) aggregate: &'a SyncAggregate,
    pub(crate) signature_slot: u64,
}

impl<'a> LightClientUpdateClaim<'a> {
    pub(crate) fn from_update(update: &'a LightClientUpdate) -> Result<Self, LightClientError> {
        Ok(Self {
            attested: &update.attested_header,
            finalized: finalized_header_proof(&update.finalized_header, &update.finality_branch)?,
            next_committee: next_committee_proof(&update.next_sync_committee, &update.next_sync_committee_branch)?,
            aggregate: &update.sync_aggregate,
            signature_slot: update.signature_slot,
        })
    }

    pub(crate) fn from_finality_update(update: &'a LightClientFinalityUpdate) -> Result<Self, LightClientError> {
        Ok(Self {
            attested: &update.attested_header,
            finalized: finalized_header_proof(&update.finalized_header, &update.finality_branch)?,
            next_committee: None,
            aggregate: &update.sync_aggregate,
            signature_slot: update.signature_slot,
        })
    }

    pub(crate) const fn from_optimistic_update(update: &'a LightClientOptimisticUpdate) -> Self {
        Self {
            attested: &update.attested_header,
            finalized: None,
            next_committee: None,
            aggregate: &update.sync_aggregate,
            signature_slot: update.signature_slot,
        }
    }

    pub(crate) const fn attested_slot(&self) -> u64 {
        self.attested.beacon.slot
    }

    /// Slot of the finalized header; 0 if there is none.
    pub(crate) fn finalized_slot(&self) -> u64 {
        self.finalized.map_or(0, |finalized| finalized.value.beacon.slot)
    }

    /// Verifies that two thirds of the committee signed.
    pub(crate) fn check_participation(&self, size: usize) -> Result<(), LightClientError> {
        let participants = self.aggregate.participant_count();
        if participants * 3 < size * 2 && !clresolve_core::mutant!("beacon-participation") {
            return Err(LightClientError::Participation { participants, size });
        }
        Ok(())
    }

    /// Verifies the order of the slots.
    pub(crate) fn check_slots(&self, current_slot: u64) -> Result<(), LightClientError> {
        let (signature_slot, attested_slot) = (self.signature_slot, self.attested_slot());
        let finalized_slot = self.finalized_slot();
        if signature_slot > current_slot && !clresolve_core::mutant!("beacon-future") {
            return Err(LightClientError::SignatureInFuture { signature_slot, current_slot });
        }
        if signature_slot <= attested_slot && !clresolve_core::mutant!("beacon-signature-slot") {
            return Err(LightClientError::SignatureBeforeHeader { signature_slot, attested_slot });
        }
        if finalized_slot > attested_slot && !clresolve_core::mutant!("beacon-finalized-slot") {
            return Err(LightClientError::FinalizedAfterAttested { finalized_slot, attested_slot });
        }
        Ok(())
    }

    /// Verifies that the state of the attested header finalizes the finalized header.
    pub(crate) fn check_finality(&self, spec: &ChainSpec) -> Result<(), LightClientError> {
        let Some(StateFieldProof { value: header, branch }) = self.finalized else { return Ok(()) };
        let root = expected_finalized_root(header, spec)?;
        let index = spec.fork_at_slot(self.attested_slot())?.generalized_indices().finalized_root;
        if !is_valid_merkle_branch(root, branch, index, self.attested.beacon.state_root)
            && !clresolve_core::mutant!("beacon-finality-branch")
        {
            return Err(LightClientError::FinalityBranch);
        }
        Ok(())
    }

    /// Verifies that the state of the attested header has the next committee.
    pub(crate) fn check_next_committee(&self, spec: &ChainSpec) -> Result<(), LightClientError> {
        let Some(StateFieldProof { value: committee, branch }) = self.next_committee else { return Ok(()) };
        committee.check_length(spec.preset)?;
        let index = spec.fork_at_slot(self.attested_slot())?.generalized_indices().next_sync_committee;
        if !is_valid_merkle_branch(committee.hash_tree_root(), branch, index, self.attested.beacon.state_root)
            && !clresolve_core::mutant!("beacon-next-committee-branch")
        {
            return Err(LightClientError::NextCommitteeBranch);
        }
        Ok(())
    }
}

/// The root that the state has for a finalized header. That of genesis is zero, and its header is left out.
fn expected_finalized_root(header: &LightClientHeader, spec: &ChainSpec) -> Result<B256, LightClientError> {
    if header.beacon.slot == 0 {
        if !header.is_empty() && !clresolve_core::mutant!("beacon-genesis-header") {
            return Err(LightClientError::GenesisHeaderNotEmpty);
        }
        return Ok(B256::ZERO);
    }
    check_execution_header(header, UpdateHeaderRole::Finalized, spec)?;
    Ok(header.beacon.hash_tree_root())
}

fn finalized_header_proof<'a>(
    value: &'a LightClientHeader,
    branch: &'a [B256],
) -> Result<Option<StateFieldProof<'a, LightClientHeader>>, LightClientError> {
    if !is_zero_branch(branch) {
        return Ok(Some(StateFieldProof { value, branch }));
    }
    if !value.is_empty() && !clresolve_core::mutant!("beacon-finalized-without-branch") {
        return Err(LightClientError::FinalizedHeaderUnproven);
    }
    Ok(None)
}

fn next_committee_proof<'a>(
    value: &'a SyncCommittee,
    branch: &'a [B256],
) -> Result<Option<StateFieldProof<'a, SyncCommittee>>, LightClientError> {
    if !is_zero_branch(branch) {
        return Ok(Some(StateFieldProof { value, branch }));
    }
    if !value.is_empty() && !clresolve_core::mutant!("beacon-committee-without-branch") {
        return Err(LightClientError::NextCommitteeUnproven);
    }
    Ok(None)
}

fn is_zero_branch(branch: &[B256]) -> bool {
    branch.iter().all(B256::is_zero)
}
