//! A beacon chain with known secret keys: blocks, states and signatures that this crate accepts. It reaches only
//! stores that start from one of its blocks.

use std::collections::BTreeMap;

use alloy_primitives::{B256, FixedBytes};
use blst::min_pk::{AggregatePublicKey, AggregateSignature, PublicKey, SecretKey, Signature};

use crate::committee::CIPHERSUITE;
use crate::containers::{
    BeaconBlockHeader, ExecutionPayloadHeader, LightClientBootstrap, LightClientFinalityUpdate, LightClientHeader,
    LightClientOptimisticUpdate, LightClientUpdate, SyncAggregate, SyncCommittee,
};
use crate::error::LightClientError;
use crate::fork::GeneralizedIndices;
use crate::hash::hash_pair;
use crate::spec::ChainSpec;
use crate::store::LightClientStore;

/// A sync committee with its secret keys.
#[derive(Clone, Debug)]
pub struct SigningSyncCommittee {
    secrets: Vec<SecretKey>,
    committee: SyncCommittee,
}

impl SigningSyncCommittee {
    /// A committee with `size` keys, which follow from the seed.
    ///
    /// # Panics
    /// If `size` is 0.
    pub fn new(seed: u64, size: usize) -> Self {
        let secrets: Vec<SecretKey> = (0..size as u64).map(|member| derive_secret_key(seed, member)).collect();
        let keys: Vec<PublicKey> = secrets.iter().map(SecretKey::sk_to_pk).collect();
        let sum = AggregatePublicKey::aggregate(&keys.iter().collect::<Vec<_>>(), false).expect("it has a member");
        let committee = SyncCommittee {
            pubkeys: keys.iter().map(|key| FixedBytes::new(key.compress())).collect(),
            aggregate_pubkey: FixedBytes::new(sum.to_public_key().compress()),
        };
        Self { secrets, committee }
    }

    /// The public keys.
    pub const fn committee(&self) -> &SyncCommittee {
        &self.committee
    }

    /// The signature of the first `participants` members for a header, in the fork of the slot before
    /// `signature_slot`.
    ///
    /// # Errors
    /// [`LightClientError::BeforeCapella`].
    ///
    /// # Panics
    /// If `participants` is 0.
    pub fn sign_header(
        &self,
        header: &BeaconBlockHeader,
        signature_slot: u64,
        participants: usize,
        spec: &ChainSpec,
    ) -> Result<SyncAggregate, LightClientError> {
        let root = spec.signing_root(header.hash_tree_root(), signature_slot)?;
        let signers = self.secrets.iter().take(participants);
        let signatures: Vec<Signature> = signers.map(|secret| secret.sign(root.as_slice(), CIPHERSUITE, &[])).collect();
        let signatures: Vec<&Signature> = signatures.iter().collect();
        let signature = AggregateSignature::aggregate(&signatures, false).expect("a member signs");
        let mut bits = vec![0; spec.preset.participation_bits_length()];
        (0..participants.min(self.secrets.len())).for_each(|member| bits[member / 8] |= 1 << (member % 8));
        Ok(SyncAggregate {
            sync_committee_bits: bits.into(),
            sync_committee_signature: FixedBytes::new(signature.to_signature().compress()),
        })
    }
}

fn derive_secret_key(seed: u64, member: u64) -> SecretKey {
    let mut material = [0; 32];
    material[..8].copy_from_slice(&seed.to_be_bytes());
    material[8..16].copy_from_slice(&member.to_be_bytes());
    SecretKey::key_gen(&material, b"clresolve testing").expect("32 bytes are enough")
}

/// What the state after a block holds for light clients.
#[derive(Clone, Debug)]
pub struct BeaconState {
    /// The committee that signs in the period of the block.
    pub current_sync_committee: SyncCommittee,
    /// The committee that signs in the next period.
    pub next_sync_committee: SyncCommittee,
    /// The block that the state finalizes; `None` before the first.
    pub finalized: Option<LightClientHeader>,
}

/// A beacon block and its state.
#[derive(Clone, Debug)]
pub struct BeaconBlock {
    /// The block's header.
    pub header: LightClientHeader,
    /// The state after the block.
    pub state: BeaconState,
    indices: GeneralizedIndices,
    tree: SparseMerkleTree,
}

impl BeaconBlock {
    /// A block with this execution header, in the fork of its slot.
    ///
    /// # Errors
    /// [`LightClientError::BeforeCapella`], [`LightClientError::ForkUnsupported`].
    pub fn new(
        slot: u64,
        parent_root: B256,
        execution: ExecutionPayloadHeader,
        state: BeaconState,
        spec: &ChainSpec,
    ) -> Result<Self, LightClientError> {
        let fork = spec.fork_at_slot(slot)?;
        let indices = fork.generalized_indices();
        let finalized_root = state.finalized.as_ref().map(|header| header.beacon.hash_tree_root());
        let tree = SparseMerkleTree(BTreeMap::from([
            (indices.finalized_root, finalized_root.unwrap_or_default()),
            (indices.current_sync_committee, state.current_sync_committee.hash_tree_root()),
            (indices.next_sync_committee, state.next_sync_committee.hash_tree_root()),
        ]));
        let body = SparseMerkleTree(BTreeMap::from([(indices.execution, execution.hash_tree_root(fork))]));
        let (state_root, body_root) = (tree.node_hash(1), body.node_hash(1));
        let beacon = BeaconBlockHeader { slot, proposer_index: 0, parent_root, state_root, body_root };
        let branch = body.merkle_branch(indices.execution);
        let execution_branch = std::array::from_fn(|level| branch.get(level).copied().unwrap_or_default());
        let header = LightClientHeader { beacon, execution, execution_branch };
        Ok(Self { header, state, indices, tree })
    }

    /// The beacon block root.
    pub fn block_root(&self) -> B256 {
        self.header.beacon.hash_tree_root()
    }

    /// The bootstrap for a client that trusts this block.
    pub fn light_client_bootstrap(&self) -> LightClientBootstrap {
        LightClientBootstrap {
            header: self.header.clone(),
            current_sync_committee: self.state.current_sync_committee.clone(),
            current_sync_committee_branch: self.tree.merkle_branch(self.indices.current_sync_committee),
        }
    }

    /// The update that attests this block.
    pub fn attesting_update(&self, sync_aggregate: SyncAggregate, signature_slot: u64) -> LightClientUpdate {
        LightClientUpdate {
            attested_header: self.header.clone(),
            next_sync_committee: self.state.next_sync_committee.clone(),
            next_sync_committee_branch: self.tree.merkle_branch(self.indices.next_sync_committee),
            finalized_header: self.state.finalized.clone().unwrap_or_default(),
            finality_branch: self.tree.merkle_branch(self.indices.finalized_root),
            sync_aggregate,
            signature_slot,
        }
    }

    /// The finality update that attests this block.
    pub fn attesting_finality_update(
        &self,
        sync_aggregate: SyncAggregate,
        signature_slot: u64,
    ) -> LightClientFinalityUpdate {
        LightClientFinalityUpdate {
            attested_header: self.header.clone(),
            finalized_header: self.state.finalized.clone().unwrap_or_default(),
            finality_branch: self.tree.merkle_branch(self.indices.finalized_root),
            sync_aggregate,
            signature_slot,
        }
    }

    /// The optimistic update that attests this block.
    pub fn attesting_optimistic_update(
        &self,
        sync_aggregate: SyncAggregate,
        signature_slot: u64,
    ) -> LightClientOptimisticUpdate {
        LightClientOptimisticUpdate { attested_header: self.header.clone(), sync_aggregate, signature_slot }
    }
}

/// Three blocks of one sync committee period: a checkpoint, a block that the last one finalizes, and the last one.
#[derive(Clone, Debug)]
pub struct SampleBeaconChain {
    /// The network.
    pub spec: ChainSpec,
    /// The block that the light client trusts.
    pub checkpoint: BeaconBlock,
    /// The last block, which the committee attests in the next slot.
    pub attested: BeaconBlock,
    signers: SigningSyncCommittee,
}

impl SampleBeaconChain {
    /// Number of slots between two blocks.
    const DISTANCE: u64 = 32;

    /// The chain whose last block has this slot.
    ///
    /// # Errors
    /// [`LightClientError::BeforeCapella`], [`LightClientError::ForkUnsupported`].
    pub fn new(spec: ChainSpec, slot: u64) -> Result<Self, LightClientError> {
        let size = spec.preset.sync_committee_size;
        let (signers, next) = (SigningSyncCommittee::new(1, size), SigningSyncCommittee::new(2, size));
        let block = |slot, finalized| {
            let (current_sync_committee, next_sync_committee) = (signers.committee().clone(), next.committee().clone());
            let state = BeaconState { current_sync_committee, next_sync_committee, finalized };
            BeaconBlock::new(slot, B256::ZERO, sample_execution_header(slot, &spec), state, &spec)
        };
        let checkpoint = block(slot.saturating_sub(2 * Self::DISTANCE), None)?;
        let finalized = block(slot.saturating_sub(Self::DISTANCE), None)?.header;
        let attested = block(slot, Some(finalized))?;
        Ok(Self { checkpoint, attested, signers, spec })
    }

    /// A store that starts from the checkpoint.
    ///
    /// # Errors
    /// As [`LightClientStore::from_bootstrap`].
    pub fn store_at_checkpoint(&self) -> Result<LightClientStore, LightClientError> {
        LightClientStore::from_bootstrap(
            self.spec.clone(),
            self.checkpoint.block_root(),
            self.checkpoint.light_client_bootstrap(),
        )
    }

    /// The update with finality and the next committee, signed by the first `participants` members.
    ///
    /// # Errors
    /// [`LightClientError::BeforeCapella`].
    ///
    /// # Panics
    /// If `participants` is 0.
    pub fn signed_update(&self, participants: usize) -> Result<LightClientUpdate, LightClientError> {
        let (beacon, slot) = (&self.attested.header.beacon, self.signature_slot());
        Ok(self.attested.attesting_update(self.signers.sign_header(beacon, slot, participants, &self.spec)?, slot))
    }

    /// The slot in which the committee signs.
    pub const fn signature_slot(&self) -> u64 {
        self.attested.header.beacon.slot + 1
    }
}

fn sample_execution_header(slot: u64, spec: &ChainSpec) -> ExecutionPayloadHeader {
    ExecutionPayloadHeader {
        state_root: B256::left_padding_from(&slot.to_be_bytes()),
        block_hash: B256::right_padding_from(&slot.to_be_bytes()),
        block_number: slot,
        timestamp: spec.slot_start_time(slot),
        extra_data: vec![7; 32].into(),
        ..ExecutionPayloadHeader::default()
    }
}

/// A Merkle tree with nodes at some generalized indices, and zero everywhere else.
#[derive(Clone, Debug)]
struct SparseMerkleTree(BTreeMap<u64, B256>);

impl SparseMerkleTree {
    fn node_hash(&self, index: u64) -> B256 {
        if let Some(node) = self.0.get(&index) {
            return *node;
        }
        if !self.0.keys().any(|known| is_descendant_index(*known, index)) {
            return B256::ZERO;
        }
        hash_pair(self.node_hash(2 * index), self.node_hash(2 * index + 1))
    }

    fn merkle_branch(&self, mut index: u64) -> Vec<B256> {
        let mut branch = Vec::new();
        while index > 1 {
            branch.push(self.node_hash(index ^ 1));
            index /= 2;
        }
        branch
    }
}

const fn is_descendant_index(mut index: u64, ancestor: u64) -> bool {
    while index > ancestor {
        index /= 2;
    }
    index == ancestor
}
