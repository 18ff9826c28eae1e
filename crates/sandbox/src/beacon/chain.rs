//! The blocks of the beacon chain.
//!
//! A beacon block has the slot of its EVM block's timestamp, or the next free one. Slots only increase: where the EVM
//! chain pauses, or replaces its newest block by an older one, the next beacon block still has a later slot. In each
//! period the chain has two more blocks, which repeat the EVM block before them: one that is finalized, and one that
//! finalizes it. Light clients therefore follow the committees through periods without EVM blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{B256, U256};
use clresolve_beacon::testing::{BeaconBlock, BeaconState};
use clresolve_beacon::{
    ChainSpec, ExecutionPayloadHeader, LightClientBootstrap, LightClientFinalityUpdate, LightClientHeader,
    LightClientOptimisticUpdate, LightClientUpdate,
};
use jiff::Timestamp;

use super::behaviour::SandboxBeaconBehaviour;
use super::signer::{SandboxBeaconSigner, block_signature, period_committee};
use crate::chain::SandboxChain;

/// The parent of blocks that compete with those of the chain.
const OTHER_PARENT: B256 = B256::repeat_byte(1);

/// Slots between the beginning of a period and the end of it that a replayed update has: those of the finalized
/// header, of the attested one and of the signature.
const REPLAYED_SLOTS: u64 = 3;

/// The beacon chain. Its first block is built when it is first used.
pub(super) struct LazySandboxBeaconChain {
    /// The chain whose finalized block the checkpoint has.
    first: Arc<SandboxChain>,
    evm: Arc<SandboxChain>,
    blocks: Option<SandboxBeaconBlocks>,
}

impl LazySandboxBeaconChain {
    pub(super) fn new(evm: Arc<SandboxChain>) -> Self {
        Self { first: Arc::clone(&evm), evm, blocks: None }
    }

    pub(super) fn follow_chain(&mut self, evm: Arc<SandboxChain>) {
        self.evm = evm;
    }

    pub(super) fn checkpoint_root(&mut self) -> B256 {
        self.initialized_blocks().checkpoint.block_root()
    }

    pub(super) fn bootstrap(&mut self, root: B256) -> Option<LightClientBootstrap> {
        let checkpoint = &self.initialized_blocks().checkpoint;
        (checkpoint.block_root() == root).then(|| checkpoint.light_client_bootstrap())
    }

    /// The update of a period. `None` if the period is before the checkpoint, or neither over nor finalized.
    pub(super) fn light_client_update(
        &mut self,
        period: u64,
        now: Timestamp,
        behaviour: SandboxBeaconBehaviour,
    ) -> Option<LightClientUpdate> {
        let evm = Arc::clone(&self.evm);
        let blocks = self.synced_blocks();
        let attested = blocks.attested_block_in(period, &evm, now)?;
        let signature = blocks.signer.sign_block(&attested, behaviour, &blocks.spec);
        let mut update = attested.attesting_update(signature, attested.header.beacon.slot + 1);
        match behaviour {
            SandboxBeaconBehaviour::ForgedFinality => forge_finality(&mut update.finalized_header),
            SandboxBeaconBehaviour::ForgedExecution => forge_execution_header(&mut update.attested_header),
            _ => {}
        }
        Some(update)
    }

    /// The update whose finalized header has the EVM chain's finalized block.
    pub(super) fn finality_update(&mut self, behaviour: SandboxBeaconBehaviour) -> LightClientFinalityUpdate {
        let blocks = self.synced_blocks();
        let (attested, aggregate) = match behaviour {
            SandboxBeaconBehaviour::Replayed | SandboxBeaconBehaviour::Equivocation => {
                let attested = blocks.competing_block(behaviour);
                let aggregate = block_signature(&attested, behaviour, &blocks.spec);
                (attested, aggregate)
            }
            _ => (blocks.head.clone(), blocks.signer.sign_block(&blocks.head, behaviour, &blocks.spec)),
        };
        let mut update = attested.attesting_finality_update(aggregate, attested.header.beacon.slot + 1);
        match behaviour {
            SandboxBeaconBehaviour::ForgedFinality => forge_finality(&mut update.finalized_header),
            SandboxBeaconBehaviour::ForgedExecution => forge_execution_header(&mut update.attested_header),
            _ => {}
        }
        update
    }

    /// The update whose attested header has the EVM chain's newest block.
    pub(super) fn optimistic_update(&mut self, behaviour: SandboxBeaconBehaviour) -> LightClientOptimisticUpdate {
        // Two signed headers of its slot would make the light client depend on which it sees first.
        let behaviour =
            if behaviour == SandboxBeaconBehaviour::Equivocation { SandboxBeaconBehaviour::Honest } else { behaviour };
        let LightClientFinalityUpdate { attested_header, sync_aggregate, signature_slot, .. } =
            self.finality_update(behaviour);
        LightClientOptimisticUpdate { attested_header, sync_aggregate, signature_slot }
    }

    fn initialized_blocks(&mut self) -> &mut SandboxBeaconBlocks {
        self.blocks.get_or_insert_with(|| SandboxBeaconBlocks::new(&self.first))
    }

    /// The blocks, up to those of the published EVM chain.
    fn synced_blocks(&mut self) -> &mut SandboxBeaconBlocks {
        let evm = Arc::clone(&self.evm);
        let blocks = self.initialized_blocks();
        blocks.add_evm_blocks(&evm);
        blocks
    }
}

struct SandboxBeaconBlocks {
    spec: ChainSpec,
    signer: SandboxBeaconSigner,
    /// The slots that have a block.
    slots: BTreeSet<u64>,
    checkpoint: BeaconBlock,
    finalized: BeaconBlock,
    head: BeaconBlock,
    /// The last slot with a block that a committee signed.
    last_attested: u64,
    /// The blocks that the updates attest, by period.
    attested: BTreeMap<u64, BeaconBlock>,
}

impl SandboxBeaconBlocks {
    fn new(evm: &SandboxChain) -> Self {
        let spec = ChainSpec::sandbox();
        let (header, hash) = evm.finalized_header();
        let slot = spec.slot_at_time(header.timestamp);
        let checkpoint = new_beacon_block(slot, B256::ZERO, execution_header(header, hash), None, &spec);
        Self {
            spec,
            signer: SandboxBeaconSigner::default(),
            slots: BTreeSet::from([slot]),
            head: checkpoint.clone(),
            finalized: checkpoint.clone(),
            checkpoint,
            last_attested: slot,
            attested: BTreeMap::new(),
        }
    }

    /// Adds the finalized and the newest block of the EVM chain.
    fn add_evm_blocks(&mut self, evm: &SandboxChain) {
        let (header, hash) = evm.finalized_header();
        if evm_block_hash(&self.finalized) != hash {
            let is_head = evm_block_hash(&self.head) == hash && block_slot(&self.head) > block_slot(&self.finalized);
            let earliest = self.spec.slot_at_time(header.timestamp).max(block_slot(&self.finalized) + 1);
            self.finalized = if is_head {
                self.head.clone()
            } else {
                self.add_block(earliest, execution_header(header, hash), None)
            };
        }
        let (header, hash) = evm.newest_header();
        let finalized = &self.finalized.header;
        let is_followed = evm_block_hash(&self.head) == hash
            && self.head.state.finalized.as_ref() == Some(finalized)
            && block_slot(&self.head) >= self.last_attested;
        if is_followed {
            return;
        }
        let earliest = self.last_attested.max(block_slot(&self.finalized)) + 1;
        let earliest = self.spec.slot_at_time(header.timestamp).max(earliest);
        let finalized = Some(finalized.clone());
        self.head = self.add_block(earliest, execution_header(header, hash), finalized);
        self.last_attested = block_slot(&self.head);
    }

    /// The block that the update of a period attests.
    fn attested_block_in(&mut self, period: u64, evm: &SandboxChain, now: Timestamp) -> Option<BeaconBlock> {
        if let Some(attested) = self.attested.get(&period) {
            return Some(attested.clone());
        }
        let period_at = |slot| self.spec.period_at_slot(slot);
        let now = u64::try_from(now.as_second()).unwrap_or_default();
        let is_over = period < period_at(self.spec.slot_at_time(now));
        let is_finalized = period <= period_at(block_slot(&self.finalized));
        if period < period_at(block_slot(&self.checkpoint)) || !(is_over || is_finalized) {
            return None;
        }
        let finalized = self.add_finalized_block(period, evm);
        let earliest = block_slot(&finalized) + 1;
        let execution = match earliest > block_slot(&self.head) {
            true => self.head.header.execution.clone(),
            false => finalized.header.execution.clone(),
        };
        let attested = self.add_block(earliest, execution, Some(finalized.header.clone()));
        self.last_attested = self.last_attested.max(block_slot(&attested));
        if block_slot(&finalized) > block_slot(&self.finalized) {
            self.finalized = finalized;
        }
        self.attested.insert(period, attested.clone());
        self.add_evm_blocks(evm);
        Some(attested)
    }

    /// A new block at the beginning of a period, with the last finalized EVM block before it.
    fn add_finalized_block(&mut self, period: u64, evm: &SandboxChain) -> BeaconBlock {
        let slot = self.first_free_slot(self.period_start(period));
        let (header, hash) = evm.finalized_header_at(self.spec.slot_start_time(slot));
        self.add_block(slot, execution_header(header, hash), None)
    }

    /// A signed block that light clients refuse, with a finalized block that they refuse.
    fn competing_block(&self, behaviour: SandboxBeaconBehaviour) -> BeaconBlock {
        let (finalized_slot, attested_slot) = match behaviour {
            SandboxBeaconBehaviour::Replayed => {
                let period = self.spec.period_at_slot(block_slot(&self.checkpoint));
                let first = self.period_start(period).saturating_sub(REPLAYED_SLOTS);
                (first, first + 1)
            }
            _ => (block_slot(&self.finalized), block_slot(&self.head)),
        };
        let other = |slot, of: &BeaconBlock, finalized| {
            new_beacon_block(slot, OTHER_PARENT, of.header.execution.clone(), finalized, &self.spec)
        };
        let finalized = other(finalized_slot, &self.finalized, None);
        other(attested_slot, &self.head, Some(finalized.header))
    }

    fn period_start(&self, period: u64) -> u64 {
        let preset = self.spec.preset;
        period * preset.epochs_per_sync_committee_period * preset.slots_per_epoch
    }

    fn first_free_slot(&self, earliest: u64) -> u64 {
        let mut slot = earliest;
        while self.slots.contains(&slot) {
            slot += 1;
        }
        slot
    }

    /// Adds a block in the first free slot.
    fn add_block(
        &mut self,
        earliest: u64,
        execution: ExecutionPayloadHeader,
        finalized: Option<LightClientHeader>,
    ) -> BeaconBlock {
        let slot = self.first_free_slot(earliest);
        self.slots.insert(slot);
        new_beacon_block(slot, B256::ZERO, execution, finalized, &self.spec)
    }
}

fn new_beacon_block(
    slot: u64,
    parent_root: B256,
    execution: ExecutionPayloadHeader,
    finalized: Option<LightClientHeader>,
    spec: &ChainSpec,
) -> BeaconBlock {
    let period = spec.period_at_slot(slot);
    let state = BeaconState {
        current_sync_committee: period_committee(period),
        next_sync_committee: period_committee(period + 1),
        finalized,
    };
    BeaconBlock::new(slot, parent_root, execution, state, spec).expect("the chain begins with Electra")
}

const fn block_slot(block: &BeaconBlock) -> u64 {
    block.header.beacon.slot
}

const fn evm_block_hash(block: &BeaconBlock) -> B256 {
    block.header.execution.block_hash
}

/// The execution header of an EVM block. Light clients do not read the roots of its transactions and withdrawals.
fn execution_header(header: &Header, block_hash: B256) -> ExecutionPayloadHeader {
    ExecutionPayloadHeader {
        parent_hash: header.parent_hash,
        fee_recipient: header.beneficiary,
        state_root: header.state_root,
        receipts_root: header.receipts_root,
        logs_bloom: header.logs_bloom.0,
        prev_randao: header.mix_hash,
        block_number: header.number,
        gas_limit: header.gas_limit,
        gas_used: header.gas_used,
        timestamp: header.timestamp,
        extra_data: header.extra_data.clone(),
        base_fee_per_gas: U256::from(header.base_fee_per_gas.unwrap_or_default()),
        block_hash,
        transactions_root: B256::ZERO,
        withdrawals_root: B256::ZERO,
        blob_gas_used: header.blob_gas_used.unwrap_or_default(),
        excess_blob_gas: header.excess_blob_gas.unwrap_or_default(),
    }
}

fn forge_finality(finalized: &mut LightClientHeader) {
    finalized.beacon.proposer_index += 1;
}

fn forge_execution_header(attested: &mut LightClientHeader) {
    attested.execution.state_root = OTHER_PARENT;
}
