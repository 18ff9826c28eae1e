//! Merkle-Patricia proofs (EIP-1186), verified against a root. No I/O, and no panic on foreign bytes.
//!
//! `alloy_trie` decodes the nodes, but this module walks the trie itself. `alloy_trie::proof::verify_proof` asserts
//! that no path is longer than a key. A forged header can contain a longer path, and would cause a panic (see the
//! tests).

use std::collections::{HashMap, HashSet};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rlp::{Decodable, EMPTY_STRING_CODE};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_trie::nodes::{BranchNode, RlpNode, TrieNode};
use alloy_trie::{EMPTY_ROOT_HASH, KECCAK_EMPTY, Nibbles, TrieAccount};

use super::error::{MAX_NODE_BYTES, MAX_NODES, MAX_RECEIPT_BYTES, ProvenCallError, TrieProofError};

/// An account and some of its slots, proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedAccount {
    /// Nonce, balance, storage root and code hash; `None` if the account is proven absent.
    pub account: Option<TrieAccount>,
    /// Each requested slot with its value. An empty slot has the value zero.
    pub slots: Vec<(U256, U256)>,
}

/// Verifies a response to `eth_getProof` (EIP-1186) for `address` and `slots` against the root of a state trie. Nothing
/// else in the response is trusted.
///
/// # Errors
/// [`ProvenCallError::Account`] or [`ProvenCallError::Slot`] for the first violation.
pub fn verify_account_proof(
    state_root: B256,
    address: Address,
    slots: &[U256],
    response: &EIP1186AccountProofResponse,
) -> Result<VerifiedAccount, ProvenCallError> {
    let refused = |flaw| ProvenCallError::Account { address, flaw };
    if response.address != address || response.storage_proof.len() != slots.len() {
        return Err(refused(TrieProofError::OtherRequest));
    }
    let account = verify_account(state_root, response).map_err(refused)?;
    let storage_root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
    let proven = slots.iter().zip(&response.storage_proof).map(|(slot, proof)| {
        let value = verify_slot(storage_root, *slot, proof);
        value.map(|value| (*slot, value)).map_err(|flaw| ProvenCallError::Slot { address, slot: *slot, flaw })
    });
    Ok(VerifiedAccount { account, slots: proven.collect::<Result<_, _>>()? })
}

fn verify_account(
    state_root: B256,
    response: &EIP1186AccountProofResponse,
) -> Result<Option<TrieAccount>, TrieProofError> {
    let claimed = TrieAccount {
        nonce: response.nonce,
        balance: response.balance,
        storage_root: response.storage_hash,
        code_hash: response.code_hash,
    };
    let proven = look_up_by_key(state_root, keccak256(response.address), &response.account_proof)?;
    let account = proven
        .as_deref()
        .map(|value| decode_rlp_exactly::<TrieAccount>(value, TrieProofError::BadValue))
        .transpose()?;
    let agrees = clresolve_core::mutant!("account-unproven")
        || account.map_or_else(|| is_claimed_absent(&claimed), |account| account == claimed);
    if agrees { Ok(account) } else { Err(TrieProofError::OtherValues) }
}

/// Whether the claimed account is absent. For an absent account, nodes state its two hashes either as those of empty
/// data or as zero.
fn is_claimed_absent(claimed: &TrieAccount) -> bool {
    claimed.nonce == 0
        && claimed.balance.is_zero()
        && (claimed.code_hash == KECCAK_EMPTY || claimed.code_hash.is_zero())
        && (claimed.storage_root == EMPTY_ROOT_HASH || claimed.storage_root.is_zero())
}

fn verify_slot(storage_root: B256, slot: U256, proof: &EIP1186StorageProof) -> Result<U256, TrieProofError> {
    if U256::from_be_bytes(proof.key.as_b256().0) != slot {
        return Err(TrieProofError::OtherRequest);
    }
    let proven = look_up_by_key(storage_root, keccak256(slot.to_be_bytes::<32>()), &proof.proof)?;
    let value =
        proven.as_deref().map_or(Ok(U256::ZERO), |value| decode_rlp_exactly(value, TrieProofError::BadValue))?;
    if value == proof.value || clresolve_core::mutant!("slot-unproven") {
        Ok(value)
    } else {
        Err(TrieProofError::OtherValues)
    }
}

/// The value of `key` in the trie with this root; `None` if the proof shows that it is absent.
fn look_up_by_key(root: B256, key: B256, proof: &[Bytes]) -> Result<Option<Vec<u8>>, TrieProofError> {
    look_up_path(root, Nibbles::unpack(key), proof, MAX_NODE_BYTES)
}

/// The receipt at a path of the receipts trie with this root; `None` if the proof shows that there is none.
pub(crate) fn look_up_receipt(root: B256, path: Nibbles, proof: &[Bytes]) -> Result<Option<Vec<u8>>, TrieProofError> {
    look_up_path(root, path, proof, MAX_RECEIPT_BYTES)
}

fn look_up_path(root: B256, path: Nibbles, proof: &[Bytes], longest: usize) -> Result<Option<Vec<u8>>, TrieProofError> {
    if root == EMPTY_ROOT_HASH {
        return if proof.iter().any(is_trie_node) { Err(TrieProofError::Surplus) } else { Ok(None) };
    }
    if proof.len() > MAX_NODES && !clresolve_core::mutant!("endless-proofs") {
        return Err(TrieProofError::TooManyNodes);
    }
    let mut nodes = proof.iter();
    let value = walk_trie(root, path, |hash| {
        let node = nodes.next().ok_or(TrieProofError::Truncated)?;
        if node.len() > longest {
            return Err(TrieProofError::NodeTooLong);
        }
        if keccak256(node) == hash || clresolve_core::mutant!("nodes-unhashed-below-the-root") && hash != root {
            Ok(node)
        } else {
            Err(TrieProofError::WrongHash)
        }
    })?;
    if nodes.next().is_some() { Err(TrieProofError::Surplus) } else { Ok(value) }
}

/// Walks from the root to the value at `path`. `node_at` returns the node with a given hash, which it has verified.
fn walk_trie<'a>(
    root: B256,
    path: Nibbles,
    mut node_at: impl FnMut(B256) -> Result<&'a Bytes, TrieProofError>,
) -> Result<Option<Vec<u8>>, TrieProofError> {
    let mut position = TriePosition { hash: root, rest: path };
    for _ in 0..MAX_NODES {
        match descend_node(node_at(position.hash)?, position.rest)? {
            TrieStep::Down(next) => position = next,
            TrieStep::End(value) => return Ok(value),
        }
    }
    Err(TrieProofError::TooManyNodes)
}

/// Trie nodes by hash, from any number of proofs.
pub(crate) struct TrieNodePool<'a> {
    nodes: HashMap<B256, &'a Bytes>,
    used: HashSet<B256>,
}

impl<'a> TrieNodePool<'a> {
    /// # Errors
    /// [`TrieProofError::NodeTooLong`].
    pub(crate) fn new(nodes: impl IntoIterator<Item = &'a Bytes>) -> Result<Self, TrieProofError> {
        let nodes = nodes.into_iter().map(|node| {
            if node.len() > MAX_NODE_BYTES { Err(TrieProofError::NodeTooLong) } else { Ok((keccak256(node), node)) }
        });
        Ok(Self { nodes: nodes.collect::<Result<_, _>>()?, used: HashSet::new() })
    }

    pub(crate) fn is_fully_used(&self) -> bool {
        self.used.len() == self.nodes.len()
    }

    /// The account and these slots, as the nodes prove them.
    ///
    /// # Errors
    /// [`ProvenCallError::Account`] or [`ProvenCallError::Slot`] for the first violation.
    pub(crate) fn verify_account_slots(
        &mut self,
        state_root: B256,
        address: Address,
        slots: impl IntoIterator<Item = U256>,
    ) -> Result<VerifiedAccount, ProvenCallError> {
        let account = self.look_up_value::<TrieAccount>(state_root, keccak256(address));
        let account = account.map_err(|flaw| ProvenCallError::Account { address, flaw })?;
        let storage_root = account.map_or(EMPTY_ROOT_HASH, |account| account.storage_root);
        let proven = slots.into_iter().map(|slot| {
            let value = self.look_up_value::<U256>(storage_root, keccak256(slot.to_be_bytes::<32>()));
            let value = value.map_err(|flaw| ProvenCallError::Slot { address, slot, flaw })?;
            Ok((slot, value.unwrap_or_default()))
        });
        let slots = proven.collect::<Result<_, ProvenCallError>>()?;
        Ok(VerifiedAccount { account, slots })
    }

    fn look_up_value<T: Decodable>(&mut self, root: B256, key: B256) -> Result<Option<T>, TrieProofError> {
        if root == EMPTY_ROOT_HASH {
            return Ok(None);
        }
        let Self { nodes, used } = self;
        let value = walk_trie(root, Nibbles::unpack(key), |hash| {
            used.insert(hash);
            nodes.get(&hash).copied().ok_or(TrieProofError::Truncated)
        })?;
        value.as_deref().map(|value| decode_rlp_exactly(value, TrieProofError::BadValue)).transpose()
    }
}

/// Whether an element of a proof is a node. Some endpoints prove absence from an empty trie with one empty string,
/// which is not a node.
pub(crate) fn is_trie_node(node: &Bytes) -> bool {
    node.as_ref() != [EMPTY_STRING_CODE]
}

/// A node by its hash, and the rest of the key at that node.
struct TriePosition {
    hash: B256,
    rest: Nibbles,
}

enum TrieStep {
    Down(TriePosition),
    /// The path ends, at a value or where it leaves the trie.
    End(Option<Vec<u8>>),
}

/// Walks through one node and the nodes embedded in it.
fn descend_node(bytes: &[u8], mut rest: Nibbles) -> Result<TrieStep, TrieProofError> {
    let mut node = decode_rlp_exactly::<TrieNode>(bytes, TrieProofError::Malformed)?;
    loop {
        let child = match node {
            TrieNode::EmptyRoot => return Err(TrieProofError::Malformed),
            TrieNode::Leaf(leaf) => return Ok(TrieStep::End((leaf.key == rest).then_some(leaf.value))),
            TrieNode::Extension(extension) if rest.starts_with(&extension.key) => {
                rest = rest.slice(extension.key.len()..);
                extension.child
            }
            TrieNode::Extension(_) => return Ok(TrieStep::End(None)),
            TrieNode::Branch(branch) => {
                let nibble = rest.first().ok_or(TrieProofError::Malformed)?;
                rest = rest.slice(1..);
                match child_at(&branch, nibble) {
                    Some(child) => child,
                    None => return Ok(TrieStep::End(None)),
                }
            }
        };
        if let Some(hash) = child.as_hash() {
            return Ok(TrieStep::Down(TriePosition { hash, rest }));
        }
        node = decode_rlp_exactly::<TrieNode>(&child, TrieProofError::Malformed)?;
    }
}

fn child_at(branch: &BranchNode, nibble: u8) -> Option<RlpNode> {
    let branch = branch.as_ref();
    let child = branch.children().find(|(index, _)| *index == nibble);
    child.and_then(|(_, child)| child.cloned())
}

/// Decodes one value, and refuses trailing bytes.
fn decode_rlp_exactly<T: Decodable>(bytes: &[u8], flaw: TrieProofError) -> Result<T, TrieProofError> {
    alloy_rlp::decode_exact(bytes).map_err(|_| flaw)
}

#[cfg(test)]
mod tests {
    use alloy_trie::HashBuilder;
    use alloy_trie::proof::ProofRetainer;

    use super::*;

    const AGENT: Address = Address::repeat_byte(0xa9);

    /// The root of a trie with these leaves, and the nodes on the path of a key.
    fn trie(leaves: impl IntoIterator<Item = (B256, Vec<u8>)>, key: B256) -> (B256, Vec<Bytes>) {
        let mut leaves: Vec<_> = leaves.into_iter().collect();
        leaves.sort_unstable();
        let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(vec![Nibbles::unpack(key)]));
        leaves.iter().for_each(|(path, leaf)| builder.add_leaf(Nibbles::unpack(path), leaf));
        let root = builder.root();
        (root, builder.take_proof_nodes().into_nodes_sorted().into_iter().map(|(_, node)| node).collect())
    }

    const fn account(balance: U256, storage_root: B256) -> TrieAccount {
        TrieAccount { nonce: 1, balance, storage_root, code_hash: KECCAK_EMPTY }
    }

    /// A state trie with the agent's account, if it is given, and many others: the root, and the proof for the agent.
    fn state(agent: Option<TrieAccount>) -> (B256, Vec<Bytes>) {
        let neighbours = (0..32).map(|byte| (Address::repeat_byte(byte), account(U256::from(7), EMPTY_ROOT_HASH)));
        let accounts = neighbours.chain(agent.map(|agent| (AGENT, agent)));
        trie(accounts.map(|(address, held)| (keccak256(address), alloy_rlp::encode(held))), keccak256(AGENT))
    }

    /// An honest node's response about an account.
    fn response(of: TrieAccount, account_proof: Vec<Bytes>) -> EIP1186AccountProofResponse {
        EIP1186AccountProofResponse {
            address: AGENT,
            balance: of.balance,
            nonce: of.nonce,
            storage_hash: of.storage_root,
            code_hash: of.code_hash,
            account_proof,
            ..EIP1186AccountProofResponse::default()
        }
    }

    /// The root of a state trie with many accounts, and the proof of one of them, which has this balance.
    fn ledger(balance: u64) -> (B256, EIP1186AccountProofResponse) {
        let agent = account(U256::from(balance), EMPTY_ROOT_HASH);
        let (root, proof) = state(Some(agent));
        (root, response(agent, proof))
    }

    fn refused<T>(flaw: TrieProofError) -> Result<T, ProvenCallError> {
        Err(ProvenCallError::Account { address: AGENT, flaw })
    }

    /// The first slot whose trie path satisfies `fits`.
    fn slot_where(fits: impl Fn(&Nibbles) -> bool) -> U256 {
        (0..100_000_u64).map(U256::from).find(|slot| fits(&path_of(*slot))).expect("one in a few hundred fits")
    }

    fn path_of(slot: U256) -> Nibbles {
        Nibbles::unpack(hashed(slot))
    }

    fn hashed(slot: U256) -> B256 {
        keccak256(slot.to_be_bytes::<32>())
    }

    /// The agent's account with storage, and the proof of one slot, which the endpoint states to have this value.
    fn with_storage(held: &[(U256, u64)], slot: U256, value: u64) -> (B256, EIP1186AccountProofResponse) {
        let leaves = held.iter().map(|(slot, value)| (hashed(*slot), alloy_rlp::encode(U256::from(*value))));
        let (storage_root, proof) = trie(leaves, hashed(slot));
        let agent = account(U256::ZERO, storage_root);
        let (root, account_proof) = state(Some(agent));
        let storage = EIP1186StorageProof { key: B256::from(slot).into(), value: U256::from(value), proof };
        (root, EIP1186AccountProofResponse { storage_proof: vec![storage], ..response(agent, account_proof) })
    }

    #[test]
    fn a_proof_is_for_what_was_asked() {
        let (root, honest) = ledger(1);
        let proven = verify_account_proof(root, AGENT, &[], &honest).expect("an honest proof");
        assert_eq!(proven, VerifiedAccount { account: Some(account(U256::ONE, EMPTY_ROOT_HASH)), slots: Vec::new() });
        assert_eq!(verify_account_proof(root, Address::ZERO, &[], &honest).unwrap_err().to_string(), {
            ProvenCallError::Account { address: Address::ZERO, flaw: TrieProofError::OtherRequest }.to_string()
        });
        assert_eq!(verify_account_proof(root, AGENT, &[U256::ZERO], &honest), refused(TrieProofError::OtherRequest));
        let richer = EIP1186AccountProofResponse { balance: U256::from(2), ..honest };
        assert_eq!(verify_account_proof(root, AGENT, &[], &richer), refused(TrieProofError::OtherValues));
    }

    #[test]
    fn a_receipt_is_what_lies_on_its_path_however_long() {
        let [path, other] = [keccak256("receipt"), keccak256("other")];
        let receipt = vec![7; MAX_NODE_BYTES + 1];
        let leaves = [(path, receipt.clone()), (keccak256("neighbour"), vec![8; MAX_NODE_BYTES + 1])];
        let (root, proof) = trie(leaves.clone(), path);
        assert_eq!(look_up_receipt(root, Nibbles::unpack(path), &proof), Ok(Some(receipt)));
        assert_eq!(look_up_by_key(root, path, &proof), Err(TrieProofError::NodeTooLong));
        let (root, proof) = trie(leaves, other);
        assert_eq!(look_up_receipt(root, Nibbles::unpack(other), &proof), Ok(None));
        let endless = vec![Bytes::from(vec![0; MAX_RECEIPT_BYTES + 1])];
        assert_eq!(look_up_receipt(root, Nibbles::unpack(path), &endless), Err(TrieProofError::NodeTooLong));
    }

    #[test]
    fn an_absent_account_has_nothing() {
        let (root, proof) = state(None);
        let nothing = TrieAccount { nonce: 0, balance: U256::ZERO, storage_root: B256::ZERO, code_hash: B256::ZERO };
        let said = |claimed| verify_account_proof(root, AGENT, &[], &response(claimed, proof.clone()));
        let absent = Ok(VerifiedAccount { account: None, slots: Vec::new() });
        for storage_root in [B256::ZERO, EMPTY_ROOT_HASH] {
            for code_hash in [B256::ZERO, KECCAK_EMPTY] {
                assert_eq!(said(TrieAccount { storage_root, code_hash, ..nothing }), absent);
            }
        }
        let other = B256::repeat_byte(1);
        for something in [
            TrieAccount { nonce: 1, ..nothing },
            TrieAccount { balance: U256::ONE, ..nothing },
            TrieAccount { storage_root: other, ..nothing },
            TrieAccount { code_hash: other, ..nothing },
        ] {
            assert_eq!(said(something), refused(TrieProofError::OtherValues), "{something:?}");
        }
    }

    #[test]
    fn nodes_are_counted_measured_and_all_used() {
        let (root, honest) = ledger(1);
        let with = |change: &dyn Fn(&mut Vec<Bytes>)| {
            let mut changed = honest.clone();
            change(&mut changed.account_proof);
            verify_account_proof(root, AGENT, &[], &changed)
        };
        let junk = |length| Bytes::from(vec![0; length]);
        assert_eq!(with(&|proof| proof.truncate(proof.len() - 1)), refused(TrieProofError::Truncated));
        assert_eq!(with(&|proof| proof.push(junk(1))), refused(TrieProofError::Surplus));
        assert_eq!(with(&|proof| proof.resize(MAX_NODES, junk(1))), refused(TrieProofError::Surplus));
        assert_eq!(with(&|proof| proof.resize(MAX_NODES + 1, junk(1))), refused(TrieProofError::TooManyNodes));
        assert_eq!(with(&|proof| proof[0] = junk(MAX_NODE_BYTES)), refused(TrieProofError::WrongHash));
        assert_eq!(with(&|proof| proof[0] = junk(MAX_NODE_BYTES + 1)), refused(TrieProofError::NodeTooLong));
    }

    #[test]
    fn an_empty_trie_needs_no_node() {
        let nothing = TrieAccount { nonce: 0, balance: U256::ZERO, storage_root: B256::ZERO, code_hash: B256::ZERO };
        let said = |proof| verify_account_proof(EMPTY_ROOT_HASH, AGENT, &[], &response(nothing, proof));
        let absent = Ok(VerifiedAccount { account: None, slots: Vec::new() });
        assert_eq!(said(Vec::new()), absent);
        assert_eq!(said(vec![Bytes::from_static(&[EMPTY_STRING_CODE])]), absent, "as some endpoints say it");
        assert_eq!(said(vec![Bytes::new()]), refused(TrieProofError::Surplus));
    }

    #[test]
    fn a_slot_is_proven_with_its_value() {
        let slots = [U256::from(5), U256::from(6)];
        let (root, honest) = with_storage(&[(slots[0], 17), (slots[1], 18)], slots[0], 17);
        let slot = |flaw| Err(ProvenCallError::Slot { address: AGENT, slot: slots[0], flaw });
        let said = |response: &EIP1186AccountProofResponse| verify_account_proof(root, AGENT, &slots[..1], response);
        assert_eq!(said(&honest).map(|proven| proven.slots), Ok(vec![(slots[0], U256::from(17))]));
        let mut other_value = honest.clone();
        other_value.storage_proof[0].value = U256::from(18);
        assert_eq!(said(&other_value), slot(TrieProofError::OtherValues));
        let mut other_slot = honest;
        other_slot.storage_proof[0].key = B256::from(slots[1]).into();
        assert_eq!(said(&other_slot), slot(TrieProofError::OtherRequest));
    }

    /// The paths of two slots share the first nibble, so the root is an extension. The path of the third slot leaves
    /// the trie there, although its second nibble is that of the first slot.
    #[test]
    fn a_path_that_leaves_an_extension_is_absent() {
        let one = U256::ZERO;
        let at = |path: &Nibbles, index| path.get(index);
        let first = path_of(one);
        let two = slot_where(|path| at(path, 0) == at(&first, 0) && at(path, 1) != at(&first, 1));
        let astray = slot_where(|path| at(path, 0) != at(&first, 0) && at(path, 1) == at(&first, 1));
        let held = [(one, 17), (two, 18)];
        for (slot, value) in [(one, 17), (two, 18), (astray, 0)] {
            let (root, response) = with_storage(&held, slot, value);
            let proven = verify_account_proof(root, AGENT, &[slot], &response).expect("an honest proof");
            assert_eq!(proven.slots, [(slot, U256::from(value))]);
        }
    }

    #[test]
    fn node_pool_proves_like_separate_proofs_and_tracks_use() {
        let slot = U256::from(5);
        let (root, response) = with_storage(&[(slot, 17), (U256::from(6), 18)], slot, 17);
        let nodes = [response.account_proof.clone(), response.storage_proof[0].proof.clone()].concat();
        let mut pool = TrieNodePool::new(&nodes).expect("short nodes");
        let agent = pool.verify_account_slots(root, AGENT, []).expect("the account's nodes are there");
        assert_eq!(agent.account.map(|agent| agent.storage_root), Some(response.storage_hash));
        assert!(!pool.is_fully_used(), "the slot's nodes are left");
        assert_eq!(
            pool.verify_account_slots(root, AGENT, [slot]).map(|proven| proven.slots),
            Ok(vec![(slot, U256::from(17))])
        );
        assert!(pool.is_fully_used());
        let mut without_leaf = TrieNodePool::new(&nodes[..nodes.len() - 1]).expect("short nodes");
        let missing = ProvenCallError::Slot { address: AGENT, slot, flaw: TrieProofError::Truncated };
        assert_eq!(without_leaf.verify_account_slots(root, AGENT, [slot]), Err(missing));
        let absent = VerifiedAccount { account: None, slots: vec![(slot, U256::ZERO)] };
        assert_eq!(
            TrieNodePool::new([]).expect("no node").verify_account_slots(EMPTY_ROOT_HASH, AGENT, [slot]),
            Ok(absent)
        );
        let long = Bytes::from(vec![0; MAX_NODE_BYTES + 1]);
        assert_eq!(TrieNodePool::new([&long]).err(), Some(TrieProofError::NodeTooLong));
    }

    #[test]
    fn a_ledger_of_ones_own_is_refused_at_the_root_and_below_a_genuine_one() {
        let (root, honest) = ledger(1);
        let (_, own) = ledger(2);
        assert!(verify_account_proof(root, AGENT, &[], &honest).is_ok());
        for genuine in 0..honest.account_proof.len() {
            let mut lie = own.clone();
            lie.account_proof[..genuine].clone_from_slice(&honest.account_proof[..genuine]);
            assert_eq!(
                verify_account_proof(root, AGENT, &[], &lie),
                refused(TrieProofError::WrongHash),
                "{genuine} genuine nodes"
            );
        }
        assert!(honest.account_proof.len() > 1, "there are nodes below the root");
    }
}
