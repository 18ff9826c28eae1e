//! Merkle-Patricia proofs (EIP-1186) checked against a root. No I/O; nothing here panics on foreign bytes.
//!
//! `alloy_trie` decodes the nodes. The walk is implemented here: `alloy_trie::proof::verify_proof` asserts that no path is
//! longer than a key, and the author of a forged header can forge such a path with it (see the tests).

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Decodable, EMPTY_STRING_CODE};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_trie::nodes::{BranchNode, RlpNode, TrieNode};
use alloy_trie::{EMPTY_ROOT_HASH, KECCAK_EMPTY, Nibbles, TrieAccount};

use super::error::{Flaw, MAX_NODE_BYTES, MAX_NODES, ProofError};

/// An account and some of its slots, proven. `None` for an account that is proven absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Nonce, balance and the two hashes.
    pub account: Option<TrieAccount>,
    /// Each requested slot with its value; zero for an empty slot.
    pub slots: Vec<(U256, U256)>,
}

/// Checks a response to `eth_getProof` (EIP-1186) for `address` and `slots` against the root of a state trie. Nothing else in
/// the response is trusted.
///
/// # Errors
/// [`ProofError::Account`] or [`ProofError::Slot`], for the first thing wrong.
pub fn verify_proof(
    state_root: B256,
    address: Address,
    slots: &[U256],
    response: &EIP1186AccountProofResponse,
) -> Result<Verified, ProofError> {
    let refused = |flaw| ProofError::Account { address, flaw };
    if response.address != address || response.storage_proof.len() != slots.len() {
        return Err(refused(Flaw::OtherRequest));
    }
    let account = verify_account(state_root, response).map_err(refused)?;
    let storage_root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
    let proven = slots.iter().zip(&response.storage_proof).map(|(slot, proof)| {
        let value = verify_slot(storage_root, *slot, proof);
        value.map(|value| (*slot, value)).map_err(|flaw| ProofError::Slot { address, slot: *slot, flaw })
    });
    Ok(Verified { account, slots: proven.collect::<Result<_, _>>()? })
}

fn verify_account(state_root: B256, response: &EIP1186AccountProofResponse) -> Result<Option<TrieAccount>, Flaw> {
    let claimed = TrieAccount {
        nonce: response.nonce,
        balance: response.balance,
        storage_root: response.storage_hash,
        code_hash: response.code_hash,
    };
    let proven = look_up(state_root, keccak256(response.address), &response.account_proof)?;
    let account = proven.as_deref().map(|value| decode::<TrieAccount>(value, Flaw::BadValue)).transpose()?;
    let agrees = clresolve_core::mutant!("account-unproven")
        || account.map_or_else(|| is_absent(&claimed), |account| account == claimed);
    if agrees { Ok(account) } else { Err(Flaw::OtherValues) }
}

/// Whether the claim is that of an absent account. Nodes state its two hashes as those of empty data, or as zero.
fn is_absent(claimed: &TrieAccount) -> bool {
    claimed.nonce == 0
        && claimed.balance.is_zero()
        && (claimed.code_hash == KECCAK_EMPTY || claimed.code_hash.is_zero())
        && (claimed.storage_root == EMPTY_ROOT_HASH || claimed.storage_root.is_zero())
}

fn verify_slot(storage_root: B256, slot: U256, proof: &EIP1186StorageProof) -> Result<U256, Flaw> {
    if U256::from_be_bytes(proof.key.as_b256().0) != slot {
        return Err(Flaw::OtherRequest);
    }
    let proven = look_up(storage_root, keccak256(slot.to_be_bytes::<32>()), &proof.proof)?;
    let value = proven.as_deref().map_or(Ok(U256::ZERO), |value| decode(value, Flaw::BadValue))?;
    if value == proof.value || clresolve_core::mutant!("slot-unproven") { Ok(value) } else { Err(Flaw::OtherValues) }
}

/// The value of `key` in the trie with this root; `None` where the proof shows that it is absent.
fn look_up(root: B256, key: B256, proof: &[Bytes]) -> Result<Option<Vec<u8>>, Flaw> {
    if root == EMPTY_ROOT_HASH {
        return if proof.iter().any(is_node) { Err(Flaw::Surplus) } else { Ok(None) };
    }
    if proof.len() > MAX_NODES && !clresolve_core::mutant!("endless-proofs") {
        return Err(Flaw::TooManyNodes);
    }
    let mut nodes = proof.iter();
    let value = walk(root, key, |hash| {
        let node = nodes.next().ok_or(Flaw::Truncated)?;
        if node.len() > MAX_NODE_BYTES {
            return Err(Flaw::NodeTooLong);
        }
        if keccak256(node) == hash || clresolve_core::mutant!("nodes-unhashed-below-the-root") && hash != root {
            Ok(node)
        } else {
            Err(Flaw::WrongHash)
        }
    })?;
    if nodes.next().is_some() { Err(Flaw::Surplus) } else { Ok(value) }
}

/// Walks from the root to the value of `key`. `node_at` gives the node with a hash, which it has checked.
fn walk<'a>(
    root: B256,
    key: B256,
    mut node_at: impl FnMut(B256) -> Result<&'a Bytes, Flaw>,
) -> Result<Option<Vec<u8>>, Flaw> {
    let mut position = Position { hash: root, rest: Nibbles::unpack(key) };
    for _ in 0..MAX_NODES {
        match descend(node_at(position.hash)?, position.rest)? {
            Step::Down(next) => position = next,
            Step::End(value) => return Ok(value),
        }
    }
    Err(Flaw::TooManyNodes)
}

/// Trie nodes by their hash, whatever proof they were part of.
pub(crate) struct Pool<'a> {
    nodes: HashMap<B256, &'a Bytes>,
    used: HashSet<B256>,
}

impl<'a> Pool<'a> {
    /// # Errors
    /// [`Flaw::NodeTooLong`].
    pub(crate) fn new(nodes: impl IntoIterator<Item = &'a Bytes>) -> Result<Self, Flaw> {
        let nodes = nodes
            .into_iter()
            .map(|node| if node.len() > MAX_NODE_BYTES { Err(Flaw::NodeTooLong) } else { Ok((keccak256(node), node)) });
        Ok(Self { nodes: nodes.collect::<Result<_, _>>()?, used: HashSet::new() })
    }

    /// Whether every node was used.
    pub(crate) fn is_used_up(&self) -> bool {
        self.used.len() == self.nodes.len()
    }

    /// The account and these slots of it, as the nodes prove them.
    ///
    /// # Errors
    /// [`ProofError::Account`] or [`ProofError::Slot`], for the first thing wrong.
    pub(crate) fn verify(
        &mut self,
        state_root: B256,
        address: Address,
        slots: impl IntoIterator<Item = U256>,
    ) -> Result<Verified, ProofError> {
        let account = self.look_up::<TrieAccount>(state_root, keccak256(address));
        let account = account.map_err(|flaw| ProofError::Account { address, flaw })?;
        let storage_root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        let proven = slots.into_iter().map(|slot| {
            let value = self.look_up::<U256>(storage_root, keccak256(slot.to_be_bytes::<32>()));
            let value = value.map_err(|flaw| ProofError::Slot { address, slot, flaw })?;
            Ok((slot, value.unwrap_or_default()))
        });
        let slots = proven.collect::<Result<_, ProofError>>()?;
        Ok(Verified { account, slots })
    }

    fn look_up<T: Decodable>(&mut self, root: B256, key: B256) -> Result<Option<T>, Flaw> {
        if root == EMPTY_ROOT_HASH {
            return Ok(None);
        }
        let Self { nodes, used } = self;
        let value = walk(root, key, |hash| {
            used.insert(hash);
            nodes.get(&hash).copied().ok_or(Flaw::Truncated)
        })?;
        value.as_deref().map(|value| decode(value, Flaw::BadValue)).transpose()
    }
}

/// Whether a node of a proof is a node at all. Some endpoints prove absence from an empty trie with one empty string.
pub(crate) fn is_node(node: &Bytes) -> bool {
    node.as_ref() != [EMPTY_STRING_CODE]
}

/// A node by its hash, and the rest of the key there.
struct Position {
    hash: B256,
    rest: Nibbles,
}

enum Step {
    Down(Position),
    /// The path ends, at a value or where it leaves the trie.
    End(Option<Vec<u8>>),
}

/// Walks through one node and the nodes embedded in it.
fn descend(bytes: &[u8], mut rest: Nibbles) -> Result<Step, Flaw> {
    let mut node = decode::<TrieNode>(bytes, Flaw::Malformed)?;
    loop {
        let child = match node {
            TrieNode::EmptyRoot => return Err(Flaw::Malformed),
            TrieNode::Leaf(leaf) => return Ok(Step::End((leaf.key == rest).then_some(leaf.value))),
            TrieNode::Extension(extension) if rest.starts_with(&extension.key) => {
                rest = rest.slice(extension.key.len()..);
                extension.child
            }
            TrieNode::Extension(_) => return Ok(Step::End(None)),
            TrieNode::Branch(branch) => {
                let nibble = rest.first().ok_or(Flaw::Malformed)?;
                rest = rest.slice(1..);
                match child_at(&branch, nibble) {
                    Some(child) => child,
                    None => return Ok(Step::End(None)),
                }
            }
        };
        if let Some(hash) = child.as_hash() {
            return Ok(Step::Down(Position { hash, rest }));
        }
        node = decode::<TrieNode>(&child, Flaw::Malformed)?;
    }
}

fn child_at(branch: &BranchNode, nibble: u8) -> Option<RlpNode> {
    let branch = branch.as_ref();
    let child = branch.children().find(|(index, _)| *index == nibble);
    child.and_then(|(_, child)| child.cloned())
}

/// Decodes one value, without trailing bytes.
fn decode<T: Decodable>(bytes: &[u8], flaw: Flaw) -> Result<T, Flaw> {
    alloy_rlp::decode_exact(bytes).map_err(|_| flaw)
}

#[cfg(test)]
mod tests {
    use alloy_trie::HashBuilder;
    use alloy_trie::proof::ProofRetainer;

    use super::*;

    const AGENT: Address = Address::repeat_byte(0xa9);

    /// The root of a ledger of many accounts, and the proof of one of them, of which the balance is told.
    fn ledger(balance: u64) -> (B256, EIP1186AccountProofResponse) {
        let account = |balance| TrieAccount {
            nonce: 1,
            balance: U256::from(balance),
            storage_root: EMPTY_ROOT_HASH,
            code_hash: KECCAK_EMPTY,
        };
        let neighbours = (0..32).map(|byte| (Address::repeat_byte(byte), account(7)));
        let accounts = neighbours.chain([(AGENT, account(balance))]);
        let mut leaves: Vec<_> =
            accounts.map(|(address, held)| (keccak256(address), alloy_rlp::encode(held))).collect();
        leaves.sort_unstable();
        let path = Nibbles::unpack(keccak256(AGENT));
        let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(vec![path]));
        leaves.iter().for_each(|(path, leaf)| builder.add_leaf(Nibbles::unpack(path), leaf));
        let root = builder.root();
        let proof = builder.take_proof_nodes().into_nodes_sorted().into_iter().map(|(_, node)| node).collect();
        let response = EIP1186AccountProofResponse {
            address: AGENT,
            balance: U256::from(balance),
            nonce: 1,
            storage_hash: EMPTY_ROOT_HASH,
            code_hash: KECCAK_EMPTY,
            account_proof: proof,
            ..EIP1186AccountProofResponse::default()
        };
        (root, response)
    }

    #[test]
    fn a_ledger_of_ones_own_is_refused_at_the_root_and_below_a_genuine_one() {
        let (root, honest) = ledger(1);
        let (_, own) = ledger(2);
        assert!(verify_proof(root, AGENT, &[], &honest).is_ok());
        let refused = ProofError::Account { address: AGENT, flaw: Flaw::WrongHash };
        for genuine in 0..honest.account_proof.len() {
            let mut lie = own.clone();
            lie.account_proof[..genuine].clone_from_slice(&honest.account_proof[..genuine]);
            assert_eq!(verify_proof(root, AGENT, &[], &lie), Err(refused.clone()), "{genuine} genuine nodes");
        }
        assert!(honest.account_proof.len() > 1, "there are nodes below the root");
    }
}
