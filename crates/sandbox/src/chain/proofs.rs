//! Merkle-Patricia proofs of the sandbox's state, in the format of `eth_getProof` (EIP-1186).
//!
//! Complete tries are stored, since a chain is immutable and must serve many proofs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_trie::nodes::{BranchNode, ExtensionNode, LeafNode, RlpNode, TrieNode};
use alloy_trie::{Nibbles, TrieAccount, TrieMask};

use super::evm::SandboxEvmAccounts;

/// A node shorter than this is embedded in its parent and does not appear separately in a proof.
const HASH_BYTES: usize = 32;

pub(super) struct StateTries {
    accounts: HashMap<Address, TrieAccount>,
    state: MerklePatriciaTrie,
    /// The storage tries that have been requested.
    storage: Mutex<HashMap<Address, Arc<MerklePatriciaTrie>>>,
}

impl StateTries {
    pub(super) fn new(state: &SandboxEvmAccounts) -> Self {
        let accounts: HashMap<_, _> = state.trie_accounts().collect();
        let leaves = accounts.iter().map(|(address, account)| (keccak256(address), alloy_rlp::encode(account)));
        Self { state: MerklePatriciaTrie::new(leaves), accounts, storage: Mutex::default() }
    }

    /// The account and its slots, present or absent, with their proofs.
    pub(super) fn prove_account(
        &self,
        state: &SandboxEvmAccounts,
        address: Address,
        slots: &[U256],
    ) -> EIP1186AccountProofResponse {
        let account = self.accounts.get(&address).copied().unwrap_or_default();
        let storage = self.storage_trie(state, address);
        let storage_proof = slots.iter().map(|slot| EIP1186StorageProof {
            key: B256::from(*slot).into(),
            value: state.storage(address, *slot),
            proof: storage.prove_path(keccak256(slot.to_be_bytes::<32>())),
        });
        EIP1186AccountProofResponse {
            address,
            balance: account.balance,
            code_hash: account.code_hash,
            nonce: account.nonce,
            storage_hash: account.storage_root,
            account_proof: self.state.prove_path(keccak256(address)),
            storage_proof: storage_proof.collect(),
        }
    }

    fn storage_trie(&self, state: &SandboxEvmAccounts, address: Address) -> Arc<MerklePatriciaTrie> {
        let mut known = self.storage.lock().unwrap_or_else(PoisonError::into_inner);
        let trie = known.entry(address).or_insert_with(|| {
            let leaves = state.trie_slots(address).map(|(slot, value)| (keccak256(slot), alloy_rlp::encode(value)));
            Arc::new(MerklePatriciaTrie::new(leaves))
        });
        Arc::clone(trie)
    }
}

/// The nodes of a trie, keyed by path.
#[derive(Default)]
struct MerklePatriciaTrie(HashMap<Nibbles, Bytes>);

impl MerklePatriciaTrie {
    fn new(leaves: impl Iterator<Item = (B256, Vec<u8>)>) -> Self {
        let mut leaves: Vec<_> = leaves.map(|(path, value)| (Nibbles::unpack(path), value)).collect();
        leaves.sort_unstable();
        let mut trie = Self::default();
        if !leaves.is_empty() {
            trie.add_subtree(&leaves, 0);
        }
        trie
    }

    /// Adds the node above these leaves, whose paths share the first `depth` nibbles.
    fn add_subtree(&mut self, leaves: &[(Nibbles, Vec<u8>)], depth: usize) -> RlpNode {
        let (first, last) = (&leaves[0], &leaves[leaves.len() - 1]);
        let common = first.0.common_prefix_length(&last.0);
        let node = if leaves.len() == 1 {
            TrieNode::Leaf(LeafNode::new(first.0.slice(depth..), first.1.clone()))
        } else if common > depth {
            TrieNode::Extension(ExtensionNode::new(first.0.slice(depth..common), self.add_subtree(leaves, common)))
        } else {
            let same_child = |a: &(Nibbles, Vec<u8>), b: &(Nibbles, Vec<u8>)| a.0.get(depth) == b.0.get(depth);
            let mut branch = BranchNode::new(Vec::new(), TrieMask::default());
            for group in leaves.chunk_by(same_child) {
                branch.stack.push(self.add_subtree(group, depth + 1));
                branch.state_mask.set_bit(group[0].0.get(depth).unwrap_or_default());
            }
            TrieNode::Branch(branch)
        };
        let mut bytes = Vec::new();
        let reference = node.rlp(&mut bytes);
        self.0.insert(first.0.slice(..depth), bytes.into());
        reference
    }

    /// The nodes along `path`, from the root down.
    fn prove_path(&self, path: B256) -> Vec<Bytes> {
        let path = Nibbles::unpack(path);
        let nodes = (0..=path.len()).filter_map(|depth| self.0.get(&path.slice(..depth)).map(|node| (depth, node)));
        let listed = nodes.filter(|(depth, node)| *depth == 0 || node.len() >= HASH_BYTES);
        listed.map(|(_, node)| node.clone()).collect()
    }
}
