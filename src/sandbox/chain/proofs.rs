//! Merkle-Patricia proofs of the sandbox's state, as `eth_getProof` gives them (EIP-1186).

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{EMPTY_ROOT_HASH, HashBuilder, Nibbles, TrieAccount};

use super::evm::State;

/// The leaves of the state trie of one block, in the order of their paths.
pub(super) struct Tries {
    accounts: Vec<(B256, TrieAccount)>,
}

impl Tries {
    pub(super) fn new(state: &State) -> Self {
        let mut accounts: Vec<_> =
            state.trie_accounts().map(|(address, account)| (keccak256(address), account)).collect();
        accounts.sort_unstable_by_key(|(path, _)| *path);
        Self { accounts }
    }

    /// The account and the slots of it, present or absent, with their proofs.
    pub(super) fn prove(&self, state: &State, address: Address, slots: &[U256]) -> EIP1186AccountProofResponse {
        let path = keccak256(address);
        let account = self.accounts.iter().find(|(other, _)| *other == path);
        let account = account.map(|(_, account)| *account).unwrap_or_default();
        let leaves = self.accounts.iter().map(|(path, account)| (*path, alloy_rlp::encode(account)));
        let mut account_proof = prove(leaves, &[path]);
        let paths: Vec<B256> = slots.iter().map(|slot| keccak256(slot.to_be_bytes::<32>())).collect();
        let storage = if account.storage_root == EMPTY_ROOT_HASH || slots.is_empty() {
            vec![Vec::new(); slots.len()]
        } else {
            let mut leaves: Vec<_> =
                state.trie_slots(address).map(|(slot, value)| (keccak256(slot), alloy_rlp::encode(value))).collect();
            leaves.sort_unstable_by_key(|(path, _)| *path);
            prove(leaves.into_iter(), &paths)
        };
        let storage_proof = slots.iter().zip(storage).map(|(slot, proof)| EIP1186StorageProof {
            key: B256::from(*slot).into(),
            value: state.storage(address, *slot),
            proof,
        });
        EIP1186AccountProofResponse {
            address,
            balance: account.balance,
            code_hash: account.code_hash,
            nonce: account.nonce,
            storage_hash: account.storage_root,
            account_proof: account_proof.pop().unwrap_or_default(),
            storage_proof: storage_proof.collect(),
        }
    }
}

/// The nodes on the way to each target, from the root down, in the trie of these leaves.
fn prove(leaves: impl Iterator<Item = (B256, Vec<u8>)>, targets: &[B256]) -> Vec<Vec<Bytes>> {
    let targets: Vec<Nibbles> = targets.iter().map(Nibbles::unpack).collect();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(targets.clone()));
    for (path, value) in leaves {
        builder.add_leaf(Nibbles::unpack(path), &value);
    }
    builder.root();
    let nodes = builder.take_proof_nodes();
    let way = |target: &Nibbles| nodes.matching_nodes_sorted(target).into_iter().map(|(_, node)| node).collect();
    targets.iter().map(way).collect()
}
