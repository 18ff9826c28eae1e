//! Merkle-Patricia proofs (EIP-1186) checked against a root. No I/O; nothing here panics on foreign bytes.
//!
//! The nodes are decoded by `alloy_trie`, the walk is ours: that of `alloy_trie::proof::verify_proof` asserts that no
//! path is longer than a key, and whoever makes up a header makes up such a path with it (see the tests).

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Decodable, EMPTY_STRING_CODE};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_trie::nodes::{BranchNode, RlpNode, TrieNode};
use alloy_trie::{EMPTY_ROOT_HASH, KECCAK_EMPTY, Nibbles, TrieAccount};

use super::error::ProofError;

/// Most nodes of one proof: a branch for each of the 64 nibbles of a key, and the leaf.
const MAX_NODES: usize = 65;

/// Longest node in bytes: a branch with sixteen hashes has 532. Nodes that stand in their parent's place of a hash
/// have at most 32, each less than the one around it, so the depth of decoding is bounded too.
const MAX_NODE_BYTES: usize = 532;

/// What is wrong with a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// It has more nodes than a path can have.
    #[error("it has more than {MAX_NODES} nodes")]
    TooManyNodes,
    /// A node is longer than any can be.
    #[error("a node has more than {MAX_NODE_BYTES} bytes")]
    NodeTooLong,
    /// A node does not hash to what the root, or the node above, says.
    #[error("a node does not have the hash that leads to it")]
    WrongHash,
    /// A node is no RLP of a branch, an extension or a leaf.
    #[error("a node is malformed")]
    Malformed,
    /// It ends before the key does.
    #[error("it ends too early")]
    Truncated,
    /// Nodes follow after the end of the path.
    #[error("it has nodes that lead nowhere")]
    Surplus,
    /// The leaf holds something else than an account or a word.
    #[error("the value is not of its type")]
    BadValue,
    /// The values that the endpoint names are not those of its own proof.
    #[error("the values beside it are not the proven ones")]
    OtherValues,
    /// The proof is for another account or for other slots than those that were asked for.
    #[error("it answers another question")]
    OtherQuestion,
}

/// An account and some of its slots, proven. `None` for an account that is proven absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Nonce, balance and the two hashes.
    pub account: Option<TrieAccount>,
    /// Each slot that was asked for, with its value; zero where nothing stands.
    pub slots: Vec<(U256, U256)>,
}

/// Checks an answer to `eth_getProof` (EIP-1186) for `address` and `slots` against the root of a state trie. Whatever
/// else the endpoint says is not believed.
///
/// # Errors
/// The first [`Flaw`].
pub fn verify_proof(
    state_root: B256,
    address: Address,
    slots: &[U256],
    answer: &EIP1186AccountProofResponse,
) -> Result<Verified, Flaw> {
    verify(state_root, address, slots, answer).map_err(|refused| refused.flaw)
}

/// A proof that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    address: Address,
    /// The slot whose proof it is; none for that of the account.
    slot: Option<U256>,
    flaw: Flaw,
}

impl From<Refused> for ProofError {
    fn from(Refused { address, slot, flaw }: Refused) -> Self {
        match slot {
            Some(slot) => Self::Slot { address, slot, flaw },
            None => Self::Account { address, flaw },
        }
    }
}

/// Checks an answer to `eth_getProof` for `address` and `slots` against the root of the state trie.
///
/// # Errors
/// [`Refused`], for the first thing wrong.
pub fn verify(
    state_root: B256,
    address: Address,
    slots: &[U256],
    answer: &EIP1186AccountProofResponse,
) -> Result<Verified, Refused> {
    let refused = |flaw| Refused { address, slot: None, flaw };
    if answer.address != address || answer.storage_proof.len() != slots.len() {
        return Err(refused(Flaw::OtherQuestion));
    }
    let account = verify_account(state_root, answer).map_err(refused)?;
    let storage_root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
    let proven = slots.iter().zip(&answer.storage_proof).map(|(slot, proof)| {
        let value = verify_slot(storage_root, *slot, proof);
        value.map(|value| (*slot, value)).map_err(|flaw| Refused { address, slot: Some(*slot), flaw })
    });
    Ok(Verified { account, slots: proven.collect::<Result<_, _>>()? })
}

fn verify_account(state_root: B256, answer: &EIP1186AccountProofResponse) -> Result<Option<TrieAccount>, Flaw> {
    let claimed = TrieAccount {
        nonce: answer.nonce,
        balance: answer.balance,
        storage_root: answer.storage_hash,
        code_hash: answer.code_hash,
    };
    let proven = look_up(state_root, keccak256(answer.address), &answer.account_proof)?;
    let account = proven.as_deref().map(|value| decode::<TrieAccount>(value, Flaw::BadValue)).transpose()?;
    let agrees = account.map_or_else(|| says_absent(&claimed), |account| account == claimed);
    if agrees { Ok(account) } else { Err(Flaw::OtherValues) }
}

/// Nodes write the two hashes of an account that is not there as those of nothing, or as zero.
fn says_absent(claimed: &TrieAccount) -> bool {
    claimed.nonce == 0
        && claimed.balance.is_zero()
        && (claimed.code_hash == KECCAK_EMPTY || claimed.code_hash.is_zero())
        && (claimed.storage_root == EMPTY_ROOT_HASH || claimed.storage_root.is_zero())
}

fn verify_slot(storage_root: B256, slot: U256, proof: &EIP1186StorageProof) -> Result<U256, Flaw> {
    if U256::from_be_bytes(proof.key.as_b256().0) != slot {
        return Err(Flaw::OtherQuestion);
    }
    let proven = look_up(storage_root, keccak256(slot.to_be_bytes::<32>()), &proof.proof)?;
    let value = proven.as_deref().map_or(Ok(U256::ZERO), |value| decode(value, Flaw::BadValue))?;
    if value == proof.value { Ok(value) } else { Err(Flaw::OtherValues) }
}

/// What stands under `key` in the trie with this root; `None` when the proof shows that nothing does.
fn look_up(root: B256, key: B256, proof: &[Bytes]) -> Result<Option<Vec<u8>>, Flaw> {
    if root == EMPTY_ROOT_HASH {
        return if proof.iter().any(is_node) { Err(Flaw::Surplus) } else { Ok(None) };
    }
    if proof.len() > MAX_NODES {
        return Err(Flaw::TooManyNodes);
    }
    let mut nodes = proof.iter();
    let value = walk(root, key, |hash| {
        let node = nodes.next().ok_or(Flaw::Truncated)?;
        if node.len() > MAX_NODE_BYTES {
            return Err(Flaw::NodeTooLong);
        }
        if keccak256(node) == hash { Ok(node) } else { Err(Flaw::WrongHash) }
    })?;
    if nodes.next().is_some() { Err(Flaw::Surplus) } else { Ok(value) }
}

/// Walks from the root to what stands under `key`; `node_at` gives the node with a hash, which it has checked.
fn walk<'a>(
    root: B256,
    key: B256,
    mut node_at: impl FnMut(B256) -> Result<&'a Bytes, Flaw>,
) -> Result<Option<Vec<u8>>, Flaw> {
    let mut place = Place { hash: root, rest: Nibbles::unpack(key) };
    for _ in 0..MAX_NODES {
        match descend(node_at(place.hash)?, place.rest)? {
            Step::Down(next) => place = next,
            Step::End(value) => return Ok(value),
        }
    }
    Err(Flaw::TooManyNodes)
}

/// Nodes of tries, each found by its hash, whatever proof it was part of.
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

    /// Whether every node led somewhere.
    pub(crate) fn is_used_up(&self) -> bool {
        self.used.len() == self.nodes.len()
    }

    /// The account and these slots of it, as the nodes show them.
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

/// Whether a node of a proof is a node at all: some endpoints prove what is not in an empty trie with one for nothing.
pub(crate) fn is_node(node: &Bytes) -> bool {
    node.as_ref() != [EMPTY_STRING_CODE]
}

/// A node by its hash, and what is left of the key there.
struct Place {
    hash: B256,
    rest: Nibbles,
}

enum Step {
    Down(Place),
    /// The path ends, at a value or where it leaves the trie.
    End(Option<Vec<u8>>),
}

/// Walks through one node and those that stand in it in place of a hash.
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
            return Ok(Step::Down(Place { hash, rest }));
        }
        node = decode::<TrieNode>(&child, Flaw::Malformed)?;
    }
}

fn child_at(branch: &BranchNode, nibble: u8) -> Option<RlpNode> {
    let branch = branch.as_ref();
    let child = branch.children().find(|(index, _)| *index == nibble);
    child.and_then(|(_, child)| child.cloned())
}

/// The one value that the bytes are, to the last one.
fn decode<T: Decodable>(bytes: &[u8], flaw: Flaw) -> Result<T, Flaw> {
    alloy_rlp::decode_exact(bytes).map_err(|_| flaw)
}
