//! What a light client knows, and how updates change it.

mod saved;

use std::time::Duration;

use alloy_primitives::B256;

use crate::claim::LightClientUpdateClaim;
use crate::committee::ProvenSyncCommittee;
use crate::containers::{
    LightClientBootstrap, LightClientFinalityUpdate, LightClientHeader, LightClientOptimisticUpdate, LightClientUpdate,
};
use crate::error::{LightClientError, UpdateHeaderRole};
use crate::hash::is_valid_merkle_branch;
use crate::header::{VerifiedBeaconHeader, check_execution_header};
use crate::spec::ChainSpec;

/// Greatest age of the finalized header from which a live sync continues (weak subjectivity). Members of an older
/// committee may have left the chain, and lose nothing if they sign another history.
pub const MAX_CHECKPOINT_AGE: Duration = Duration::from_secs(MAX_AGE_DAYS * DAY);

const MAX_AGE_DAYS: u64 = 14;
const DAY: u64 = 24 * 60 * 60;

/// What an update changed in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LightClientStoreChange {
    /// The finalized header is a later one.
    pub finalized: bool,
    /// The optimistic header is a later one.
    pub optimistic: bool,
    /// The committee of the next period is known, and was not before.
    pub next_committee: bool,
}

/// The verified state of a light client (`LightClientStore`).
///
/// Unlike the specification, the store counts an update only if two thirds of the committee signed it, for the
/// optimistic header too. There is no `force_update`: without finality, the store stays where it is.
#[derive(Clone, Debug)]
pub struct LightClientStore {
    spec: ChainSpec,
    checkpoint: B256,
    finalized: LightClientHeader,
    optimistic: LightClientHeader,
    current_committee: ProvenSyncCommittee,
    next_committee: Option<ProvenSyncCommittee>,
}

impl LightClientStore {
    /// Starts from the block that the caller trusts (`initialize_light_client_store`). For live sync, call
    /// [`Self::check_finalized_header_age`] next.
    ///
    /// # Errors
    /// [`LightClientError::OtherCheckpoint`], [`LightClientError::ExecutionBranch`],
    /// [`LightClientError::CurrentCommitteeBranch`] and others.
    pub fn from_bootstrap(
        spec: ChainSpec,
        trusted_block_root: B256,
        bootstrap: LightClientBootstrap,
    ) -> Result<Self, LightClientError> {
        let LightClientBootstrap { header, current_sync_committee: committee, .. } = bootstrap;
        check_execution_header(&header, UpdateHeaderRole::Checkpoint, &spec)?;
        let observed = header.beacon.hash_tree_root();
        if observed != trusted_block_root && !clresolve_core::mutant!("beacon-checkpoint") {
            return Err(LightClientError::OtherCheckpoint { expected: trusted_block_root, observed });
        }
        let index = spec.fork_at_slot(header.beacon.slot)?.generalized_indices().current_sync_committee;
        let (root, branch) = (committee.hash_tree_root(), &bootstrap.current_sync_committee_branch);
        if !is_valid_merkle_branch(root, branch, index, header.beacon.state_root)
            && !clresolve_core::mutant!("beacon-current-committee-branch")
        {
            return Err(LightClientError::CurrentCommitteeBranch);
        }
        Ok(Self {
            current_committee: ProvenSyncCommittee::new(committee, spec.preset)?,
            spec,
            checkpoint: trusted_block_root,
            optimistic: header.clone(),
            finalized: header,
            next_committee: None,
        })
    }

    /// The network.
    pub const fn spec(&self) -> &ChainSpec {
        &self.spec
    }

    /// The block root that the store started from.
    pub const fn checkpoint(&self) -> B256 {
        self.checkpoint
    }

    /// The latest finalized header.
    pub fn finalized_header(&self) -> VerifiedBeaconHeader {
        VerifiedBeaconHeader::new(&self.finalized)
    }

    /// The latest header that two thirds of the committee signed. A reorganization may still replace its block.
    pub fn optimistic_header(&self) -> VerifiedBeaconHeader {
        VerifiedBeaconHeader::new(&self.optimistic)
    }

    /// The sync committee period of the finalized header.
    pub const fn finalized_period(&self) -> u64 {
        self.spec.period_at_slot(self.finalized.beacon.slot)
    }

    /// The period whose update the store needs next: its own until the next committee is known, then the next one.
    pub const fn next_update_period(&self) -> u64 {
        if self.next_committee.is_some() { self.finalized_period() + 1 } else { self.finalized_period() }
    }

    /// Verifies that the finalized header is at most [`MAX_CHECKPOINT_AGE`] old at `now`, in seconds since 1970. Live
    /// sync calls this before it processes updates, and stops on an error. Replays of old data do not call it.
    ///
    /// # Errors
    /// [`LightClientError::CheckpointTooOld`].
    pub fn check_finalized_header_age(&self, now: u64) -> Result<(), LightClientError> {
        let age = self.spec.slot_age(self.finalized.beacon.slot, now);
        if age > MAX_CHECKPOINT_AGE && !clresolve_core::mutant!("beacon-age") {
            return Err(LightClientError::CheckpointTooOld { age_days: age.as_secs() / DAY, most_days: MAX_AGE_DAYS });
        }
        Ok(())
    }

    /// Verifies an update and applies it (`process_light_client_update`). An error leaves the store as it was.
    ///
    /// # Errors
    /// The first rule that the update violates.
    pub fn process_update(
        &mut self,
        update: &LightClientUpdate,
        current_slot: u64,
    ) -> Result<LightClientStoreChange, LightClientError> {
        self.process_claim(&LightClientUpdateClaim::from_update(update)?, current_slot)
    }

    /// Verifies a finality update and applies it (`process_light_client_finality_update`).
    ///
    /// # Errors
    /// The first rule that the update violates.
    pub fn process_finality_update(
        &mut self,
        update: &LightClientFinalityUpdate,
        current_slot: u64,
    ) -> Result<LightClientStoreChange, LightClientError> {
        self.process_claim(&LightClientUpdateClaim::from_finality_update(update)?, current_slot)
    }

    /// Verifies an optimistic update and applies it (`process_light_client_optimistic_update`).
    ///
    /// # Errors
    /// The first rule that the update violates.
    pub fn process_optimistic_update(
        &mut self,
        update: &LightClientOptimisticUpdate,
        current_slot: u64,
    ) -> Result<LightClientStoreChange, LightClientError> {
        self.process_claim(&LightClientUpdateClaim::from_optimistic_update(update), current_slot)
    }

    fn process_claim(
        &mut self,
        claim: &LightClientUpdateClaim<'_>,
        current_slot: u64,
    ) -> Result<LightClientStoreChange, LightClientError> {
        claim.check_participation(self.spec.preset.sync_committee_size)?;
        self.validate_claim(claim, current_slot)?;
        self.check_equivocation(claim)?;
        let mut change = LightClientStoreChange::default();
        if self.is_finality_progress(claim) {
            change = self.apply_claim(claim)?;
        }
        if claim.attested_slot() > self.optimistic.beacon.slot {
            self.optimistic = claim.attested.clone();
            change.optimistic = true;
        }
        Ok(change)
    }

    /// Verifies an update, except for the number of participants (`validate_light_client_update`).
    fn validate_claim(&self, claim: &LightClientUpdateClaim<'_>, current_slot: u64) -> Result<(), LightClientError> {
        check_execution_header(claim.attested, UpdateHeaderRole::Attested, &self.spec)?;
        claim.check_slots(current_slot)?;
        let committee = self.committee_at_slot(claim.signature_slot)?;
        self.check_claim_relevance(claim)?;
        claim.check_finality(&self.spec)?;
        self.check_next_committee_matches(claim)?;
        claim.check_next_committee(&self.spec)?;
        self.check_signature(claim, committee)
    }

    /// The committee that signs in the period of a slot.
    fn committee_at_slot(&self, signature_slot: u64) -> Result<&ProvenSyncCommittee, LightClientError> {
        let (store, observed) = (self.finalized_period(), self.spec.period_at_slot(signature_slot));
        if observed < store && !clresolve_core::mutant!("beacon-past-period") {
            return Err(LightClientError::PeriodPast { observed, store });
        }
        if observed > store + 1 && !clresolve_core::mutant!("beacon-skipped-period") {
            return Err(LightClientError::PeriodSkipped { observed, store });
        }
        if observed == store || clresolve_core::mutant!("beacon-any-committee") {
            return Ok(&self.current_committee);
        }
        self.next_committee.as_ref().ok_or(LightClientError::NextCommitteeUnknown { store })
    }

    /// Verifies that the update is later than the finalized header, or brings the missing next committee.
    fn check_claim_relevance(&self, claim: &LightClientUpdateClaim<'_>) -> Result<(), LightClientError> {
        let (attested_slot, finalized_slot) = (claim.attested_slot(), self.finalized.beacon.slot);
        let brings_committee = self.next_committee.is_none()
            && claim.next_committee.is_some()
            && self.spec.period_at_slot(attested_slot) == self.finalized_period();
        if attested_slot <= finalized_slot && !brings_committee && !clresolve_core::mutant!("beacon-relevance") {
            return Err(LightClientError::NothingNew { attested_slot, finalized_slot });
        }
        Ok(())
    }

    /// Verifies that the next committee is the one already known for the same period.
    fn check_next_committee_matches(&self, claim: &LightClientUpdateClaim<'_>) -> Result<(), LightClientError> {
        let (Some(known), Some(observed)) = (&self.next_committee, claim.next_committee) else { return Ok(()) };
        let is_same_period = self.spec.period_at_slot(claim.attested_slot()) == self.finalized_period();
        if is_same_period
            && known.committee() != observed.value
            && !clresolve_core::mutant!("beacon-other-next-committee")
        {
            return Err(LightClientError::OtherNextCommittee);
        }
        Ok(())
    }

    /// Verifies that these members of the committee signed the attested header, in this network and its fork.
    fn check_signature(
        &self,
        claim: &LightClientUpdateClaim<'_>,
        committee: &ProvenSyncCommittee,
    ) -> Result<(), LightClientError> {
        claim.aggregate.check_length(self.spec.preset)?;
        let root = claim.attested.beacon.hash_tree_root();
        committee.verify_signature(claim.aggregate, self.spec.signing_root(root, claim.signature_slot)?)
    }

    /// Compares the headers of a verified update with those of the store for the same slots.
    fn check_equivocation(&self, claim: &LightClientUpdateClaim<'_>) -> Result<(), LightClientError> {
        let observed = [Some(claim.attested), claim.finalized.map(|finalized| finalized.value)];
        for observed in observed.into_iter().flatten().filter(|header| !header.is_empty()) {
            for known in [&self.finalized, &self.optimistic] {
                let slot = known.beacon.slot;
                if observed.beacon.slot == slot
                    && observed.beacon != known.beacon
                    && !clresolve_core::mutant!("beacon-equivocation")
                {
                    let (known, observed) = (known.beacon.hash_tree_root(), observed.beacon.hash_tree_root());
                    return Err(LightClientError::Equivocation { slot, known, observed });
                }
            }
        }
        Ok(())
    }

    /// Whether a verified update finalizes a later header, or finalizes the missing next committee.
    fn is_finality_progress(&self, claim: &LightClientUpdateClaim<'_>) -> bool {
        let Some(finalized) = claim.finalized else { return false };
        let finalized_slot = finalized.value.beacon.slot;
        let is_one_period = self.spec.period_at_slot(finalized_slot) == self.spec.period_at_slot(claim.attested_slot());
        let brings_committee = self.next_committee.is_none() && claim.next_committee.is_some() && is_one_period;
        finalized_slot > self.finalized.beacon.slot || brings_committee
    }

    /// Takes over a verified update (`apply_light_client_update`).
    fn apply_claim(&mut self, claim: &LightClientUpdateClaim<'_>) -> Result<LightClientStoreChange, LightClientError> {
        let Some(finalized) = claim.finalized else { return Ok(LightClientStoreChange::default()) };
        let mut change = LightClientStoreChange::default();
        let begins_period = self.spec.period_at_slot(finalized.value.beacon.slot) > self.finalized_period();
        if begins_period || self.next_committee.is_none() {
            let committee = claim.next_committee.map(|committee| committee.value.clone());
            let committee =
                committee.map(|committee| ProvenSyncCommittee::new(committee, self.spec.preset)).transpose()?;
            change.next_committee = committee.is_some();
            let known = std::mem::replace(&mut self.next_committee, committee);
            if let Some(known) = known {
                self.current_committee = known;
            }
        }
        if finalized.value.beacon.slot > self.finalized.beacon.slot {
            self.finalized = finalized.value.clone();
            change.finalized = true;
        }
        if self.finalized.beacon.slot > self.optimistic.beacon.slot {
            self.optimistic = self.finalized.clone();
            change.optimistic = true;
        }
        Ok(change)
    }
}

#[cfg(test)]
mod tests;
