//! The store as the specification has it, for its vectors: with `force_update`, and with a lower threshold for
//! optimistic headers.

use std::cmp::Reverse;

use crate::claim::{LightClientUpdateClaim, StateFieldProof};
use crate::containers::LightClientUpdate;
use crate::error::LightClientError;
use crate::store::LightClientStore;

pub(super) struct SpecificationStore {
    pub(super) store: LightClientStore,
    best_valid_update: Option<LightClientUpdate>,
    previous_max_active_participants: usize,
    current_max_active_participants: usize,
}

impl SpecificationStore {
    pub(super) const fn new(store: LightClientStore) -> Self {
        Self { store, best_valid_update: None, previous_max_active_participants: 0, current_max_active_participants: 0 }
    }

    /// `process_light_client_update`.
    pub(super) fn process_update(
        &mut self,
        update: &LightClientUpdate,
        current_slot: u64,
    ) -> Result<(), LightClientError> {
        let claim = LightClientUpdateClaim::from_update(update)?;
        self.store.validate_claim(&claim, current_slot)?;
        if self.best_valid_update.as_ref().is_none_or(|best| self.rank(update) > self.rank(best)) {
            self.best_valid_update = Some(update.clone());
        }
        let participants = claim.aggregate.participant_count();
        self.current_max_active_participants = self.current_max_active_participants.max(participants);
        if participants > self.safety_threshold() && claim.attested_slot() > self.store.optimistic.beacon.slot {
            self.store.optimistic = claim.attested.clone();
        }
        if participants * 3 >= self.store.spec.preset.sync_committee_size * 2 && self.store.is_finality_progress(&claim)
        {
            self.apply(&claim)?;
            self.best_valid_update = None;
        }
        Ok(())
    }

    /// `process_light_client_store_force_update`.
    pub(super) fn force_update(&mut self, current_slot: u64) -> Result<(), LightClientError> {
        let preset = self.store.spec.preset;
        let timeout = preset.slots_per_epoch * preset.epochs_per_sync_committee_period;
        if current_slot <= self.store.finalized.beacon.slot + timeout {
            return Ok(());
        }
        let Some(update) = self.best_valid_update.take() else { return Ok(()) };
        let mut claim = LightClientUpdateClaim::from_update(&update)?;
        if claim.finalized_slot() <= self.store.finalized.beacon.slot {
            claim.finalized = Some(StateFieldProof { value: claim.attested, branch: &[] });
        }
        self.apply(&claim)
    }

    fn apply(&mut self, claim: &LightClientUpdateClaim<'_>) -> Result<(), LightClientError> {
        let period = self.store.finalized_period();
        self.store.apply_claim(claim)?;
        if self.store.finalized_period() > period {
            self.previous_max_active_participants = std::mem::take(&mut self.current_max_active_participants);
        }
        Ok(())
    }

    /// `get_safety_threshold`.
    fn safety_threshold(&self) -> usize {
        self.previous_max_active_participants.max(self.current_max_active_participants) / 2
    }

    /// The order of updates in `is_better_update`.
    fn rank(&self, update: &LightClientUpdate) -> impl Ord + use<> {
        let period = |slot| self.store.spec.period_at_slot(slot);
        let claim = LightClientUpdateClaim::from_update(update).expect("a valid update");
        let participants = claim.aggregate.participant_count();
        let has_supermajority = participants * 3 >= self.store.spec.preset.sync_committee_size * 2;
        let attested_period = period(claim.attested_slot());
        let has_committee = claim.next_committee.is_some() && attested_period == period(claim.signature_slot);
        let has_finality = claim.finalized.is_some();
        (
            has_supermajority,
            if has_supermajority { 0 } else { participants },
            has_committee,
            has_finality,
            has_finality && period(claim.finalized_slot()) == attested_period,
            participants,
            Reverse(claim.attested_slot()),
            Reverse(claim.signature_slot),
        )
    }
}
