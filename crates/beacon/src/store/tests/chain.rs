//! A synthetic chain of the preset `minimal`, with one committee per period of 64 slots.

use std::sync::LazyLock;

use alloy_primitives::B256;

use crate::containers::{ExecutionPayloadHeader, LightClientHeader, LightClientUpdate};
use crate::fork::ConsensusFork;
use crate::spec::{BeaconPreset, ChainSpec, ForkActivation};
use crate::store::LightClientStore;
use crate::testing::{BeaconBlock, BeaconState, SigningSyncCommittee};

/// Members of a committee.
pub(super) const MEMBERS: usize = 32;

/// A slot later than all of the tests.
pub(super) const NOW: u64 = 1000;

/// Slot of the checkpoint: the first of period 1.
pub(super) const CHECKPOINT: u64 = 64;

static COMMITTEES: LazyLock<Vec<SigningSyncCommittee>> =
    LazyLock::new(|| (0..8).map(|period| SigningSyncCommittee::new(period, MEMBERS)).collect());

/// The committee of a period.
pub(super) fn committee(period: u64) -> &'static SigningSyncCommittee {
    &COMMITTEES[usize::try_from(period).expect("a small number")]
}

#[derive(Clone)]
pub(super) struct Chain {
    pub(super) spec: ChainSpec,
}

impl Chain {
    /// A chain whose forks begin at these epochs of 8 slots.
    pub(super) fn with_forks(forks: &[(ConsensusFork, u64)]) -> Self {
        let version = |fork: ConsensusFork| [3 + fork as u8, 0, 0, 1];
        let forks =
            forks.iter().map(|(fork, epoch)| ForkActivation { fork: *fork, epoch: *epoch, version: version(*fork) });
        let spec = ChainSpec {
            preset: BeaconPreset::MINIMAL,
            seconds_per_slot: 6,
            genesis_time: 1_700_000_000,
            genesis_validators_root: B256::repeat_byte(0x42),
            forks: forks.collect(),
        };
        Self { spec }
    }

    /// A chain with Electra from genesis on.
    pub(super) fn electra() -> Self {
        Self::with_forks(&[(ConsensusFork::Electra, 0)])
    }

    pub(super) fn state(&self, slot: u64, finalized: Option<LightClientHeader>) -> BeaconState {
        let period = self.spec.period_at_slot(slot);
        BeaconState {
            current_sync_committee: committee(period).committee().clone(),
            next_sync_committee: committee(period + 1).committee().clone(),
            finalized,
        }
    }

    /// The block at a slot with this state.
    pub(super) fn block_with(&self, slot: u64, parent: B256, state: BeaconState) -> BeaconBlock {
        BeaconBlock::new(slot, parent, execution(slot), state, &self.spec).expect("a supported fork")
    }

    /// The block at a slot, whose state finalizes another slot, or nothing yet.
    pub(super) fn block(&self, slot: u64, finalized: Option<u64>) -> BeaconBlock {
        let finalized = finalized.map(|slot| self.header(slot));
        self.block_with(slot, B256::ZERO, self.state(slot, finalized))
    }

    pub(super) fn header(&self, slot: u64) -> LightClientHeader {
        self.block_with(slot, B256::ZERO, self.state(slot, None)).header
    }

    /// An update that the first members sign in the slot after the block.
    pub(super) fn signed(&self, block: &BeaconBlock, participants: usize) -> LightClientUpdate {
        self.signed_at(block, block.header.beacon.slot + 1, participants)
    }

    pub(super) fn signed_at(&self, block: &BeaconBlock, slot: u64, participants: usize) -> LightClientUpdate {
        let committee = committee(self.spec.period_at_slot(slot));
        let aggregate = committee.sign_header(&block.header.beacon, slot, participants, &self.spec);
        block.attesting_update(aggregate.expect("a supported fork"), slot)
    }

    /// The update for a block at `attested` that finalizes `finalized`, signed by all.
    pub(super) fn update(&self, attested: u64, finalized: u64) -> LightClientUpdate {
        self.signed(&self.block(attested, Some(finalized)), MEMBERS)
    }

    /// A store that starts from the block at a slot.
    pub(super) fn store_at(&self, slot: u64) -> LightClientStore {
        let block = self.block(slot, None);
        LightClientStore::from_bootstrap(self.spec.clone(), block.block_root(), block.light_client_bootstrap())
            .expect("a valid bootstrap")
    }

    pub(super) fn store(&self) -> LightClientStore {
        self.store_at(CHECKPOINT)
    }
}

pub(super) fn execution(slot: u64) -> ExecutionPayloadHeader {
    ExecutionPayloadHeader {
        state_root: B256::left_padding_from(&slot.to_be_bytes()),
        block_hash: B256::right_padding_from(&slot.to_be_bytes()),
        block_number: slot,
        timestamp: 1_700_000_000 + 6 * slot,
        extra_data: vec![7; 20].into(),
        ..ExecutionPayloadHeader::default()
    }
}
