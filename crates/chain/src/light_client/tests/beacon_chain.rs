//! A beacon chain of the preset `minimal`, in which every slot has a block and every epoch *n* finalizes the first
//! block of epoch *n* - 2.

use std::sync::{Arc, LazyLock};

use alloy_primitives::B256;
use clresolve_beacon::testing::{BeaconBlock, BeaconState, SigningSyncCommittee};
use clresolve_beacon::{
    BeaconPreset, ChainSpec, ConsensusFork, ExecutionPayloadHeader, ForkActivation, LightClientFinalityUpdate,
    LightClientOptimisticUpdate, LightClientUpdate, SyncAggregate,
};

/// Members of a committee.
pub(crate) const MEMBERS: usize = 32;

/// Slot of the checkpoint: the first of period 1.
pub(crate) const CHECKPOINT: u64 = 64;

const SLOTS_PER_EPOCH: u64 = 8;
const SLOTS_PER_PERIOD: u64 = 64;

static COMMITTEES: LazyLock<Vec<SigningSyncCommittee>> =
    LazyLock::new(|| (0..12).map(|period| SigningSyncCommittee::new(period, MEMBERS)).collect());

fn committee(period: u64) -> &'static SigningSyncCommittee {
    &COMMITTEES[usize::try_from(period).unwrap() % COMMITTEES.len()]
}

type Execution = dyn Fn(u64) -> ExecutionPayloadHeader + Send + Sync;

#[derive(Clone)]
pub(crate) struct BeaconChain {
    pub(crate) spec: ChainSpec,
    execution: Arc<Execution>,
}

/// Who signs an update, and for which fork.
#[derive(Clone)]
pub(crate) struct Signers {
    pub(crate) participants: usize,
    /// Added to the period whose committee signs.
    pub(crate) period_offset: u64,
    pub(crate) spec: ChainSpec,
}

impl BeaconChain {
    /// A chain whose execution blocks follow from the slot.
    pub(crate) fn new() -> Self {
        Self::with_execution(Arc::new(|slot| ExecutionPayloadHeader {
            state_root: B256::left_padding_from(&slot.to_be_bytes()),
            block_hash: B256::right_padding_from(&slot.to_be_bytes()),
            block_number: slot,
            timestamp: spec().slot_start_time(slot),
            ..ExecutionPayloadHeader::default()
        }))
    }

    pub(crate) fn with_execution(execution: Arc<Execution>) -> Self {
        Self { spec: spec(), execution }
    }

    pub(crate) fn honest(&self) -> Signers {
        Signers { participants: MEMBERS, period_offset: 0, spec: self.spec.clone() }
    }

    pub(crate) fn block(&self, slot: u64) -> BeaconBlock {
        self.child_of(slot, B256::ZERO)
    }

    pub(crate) fn child_of(&self, slot: u64, parent: B256) -> BeaconBlock {
        let period = slot / SLOTS_PER_PERIOD;
        let state = BeaconState {
            current_sync_committee: committee(period).committee().clone(),
            next_sync_committee: committee(period + 1).committee().clone(),
            finalized: finalized_at(slot).map(|finalized| self.block(finalized).header),
        };
        BeaconBlock::new(slot, parent, (self.execution)(slot), state, &self.spec).unwrap()
    }

    fn sign(&self, block: &BeaconBlock, signers: &Signers) -> (SyncAggregate, u64) {
        let signature_slot = block.header.beacon.slot + 1;
        let committee = committee(signature_slot / SLOTS_PER_PERIOD + signers.period_offset);
        let aggregate =
            committee.sign_header(&block.header.beacon, signature_slot, signers.participants, &signers.spec);
        (aggregate.unwrap(), signature_slot)
    }

    /// The update of a period. Its attested header is the last but one, or `head` if that is earlier.
    pub(crate) fn update(&self, period: u64, head: u64, signers: &Signers) -> LightClientUpdate {
        let block = self.block(head.min(period * SLOTS_PER_PERIOD + SLOTS_PER_PERIOD - 2));
        let (aggregate, signature_slot) = self.sign(&block, signers);
        block.attesting_update(aggregate, signature_slot)
    }

    pub(crate) fn finality_update(&self, slot: u64, signers: &Signers) -> LightClientFinalityUpdate {
        let block = self.block(slot);
        let (aggregate, signature_slot) = self.sign(&block, signers);
        block.attesting_finality_update(aggregate, signature_slot)
    }

    pub(crate) fn optimistic_update(&self, block: &BeaconBlock, signers: &Signers) -> LightClientOptimisticUpdate {
        let (aggregate, signature_slot) = self.sign(block, signers);
        block.attesting_optimistic_update(aggregate, signature_slot)
    }
}

/// The slot that is finalized at `slot`.
pub(crate) const fn finalized_at(slot: u64) -> Option<u64> {
    match (slot / SLOTS_PER_EPOCH).checked_sub(2) {
        None | Some(0) => None,
        Some(epoch) => Some(epoch * SLOTS_PER_EPOCH),
    }
}

fn spec() -> ChainSpec {
    ChainSpec {
        preset: BeaconPreset::MINIMAL,
        seconds_per_slot: 6,
        genesis_time: 1_700_000_000,
        genesis_validators_root: B256::repeat_byte(0x42),
        forks: vec![ForkActivation { fork: ConsensusFork::Electra, epoch: 0, version: [5, 0, 0, 1] }],
    }
}
