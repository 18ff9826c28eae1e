//! Proofs of state, block headers and the receipts of blocks, as endpoints send them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use alloy_primitives::{Address, B256, Bytes, Log, U256, keccak256};
use alloy_rlp::{BufMut as _, Decodable as _};
use alloy_rpc_types_eth::{EIP1186AccountProofResponse, EIP1186StorageProof, Header};
use alloy_trie::proof::ProofRetainer;
use alloy_trie::root::ordered_trie_root_with_encoder;
use alloy_trie::{HashBuilder, Nibbles, TrieAccount};
use clresolve_core::execution::ExecutedTransaction;
use clresolve_state::receipts::{ReceiptInclusionError, ReceiptInclusionProof, RpcReceiptDocument};
use clresolve_state::{HashedBlockHeader, verify_account_proof};
use serde_json::Value;

use super::chain::{HEADER, told_header};
use super::pieces;

/// Accounts of the state, each with slots. The questions go beyond both.
const ACCOUNTS: u8 = 12;
const SLOTS: u8 = 20;

/// An answer to `eth_getProof`. The first two bytes choose a question, the pieces after them change the honest answer
/// to it. Whatever is accepted is what the state holds. A proof that is made up whole, with a root of its own, is
/// accepted with one value at most.
pub(crate) fn proof(input: &[u8]) {
    made_up(input);
    let Some(([account, slot], edits)) = input.split_first_chunk::<2>() else { return };
    let question = ProofQuestion::of(*account, *slot);
    let mut answer = question.answer();
    for edit in pieces(edits) {
        change(&mut answer, edit);
    }
    let Ok(seen) = verify_account_proof(STATE.root, question.address, &question.slots, &answer) else {
        assert!(!edits.is_empty(), "the honest answer is refused");
        return;
    };
    assert_eq!(seen.account, STATE.accounts.get(&question.address).map(Account::leaf), "another account");
    let slots: Vec<_> = question.slots.iter().map(|slot| (*slot, question.value(*slot))).collect();
    assert_eq!(seen.slots, slots, "other values");
}

/// Nodes that prove whatever they prove, under a root that is made for them: the account's, then the slot's.
fn made_up(input: &[u8]) {
    let mut parts = pieces(input).into_iter().map(Bytes::copy_from_slice);
    let (Some(of_account), Some(of_slot)) = (parts.next(), parts.next()) else { return };
    let account = TrieAccount { storage_root: keccak256(&of_slot), ..TrieAccount::default() };
    let claim = |account: TrieAccount, value| EIP1186AccountProofResponse {
        address: Address::ZERO,
        balance: account.balance,
        code_hash: account.code_hash,
        nonce: account.nonce,
        storage_hash: account.storage_root,
        account_proof: vec![of_account.clone()],
        storage_proof: vec![EIP1186StorageProof { key: B256::ZERO.into(), value, proof: vec![of_slot.clone()] }],
    };
    let claims = [
        claim(account, U256::ZERO),
        claim(account, U256::ONE),
        claim(TrieAccount { nonce: 1, ..account }, U256::ZERO),
        claim(TrieAccount { nonce: 1, ..account }, U256::ONE),
    ];
    let root = keccak256(&of_account);
    let accepted =
        claims.iter().filter(|claim| verify_account_proof(root, Address::ZERO, &[U256::ZERO], claim).is_ok());
    assert!(accepted.count() <= 1, "one proof proves two things");
}

/// A header. As RLP it has the hash of its bytes exactly if it is written as it has to be. As the endpoint's JSON it is
/// believed under the hash of its fields, and under no other.
pub(crate) fn header(input: &[u8]) {
    let mut rest = input;
    if let Ok(decoded) = alloy_consensus::Header::decode(&mut rest) {
        let is_exact = rest.is_empty() && alloy_rlp::encode(&decoded) == input;
        let hashed = HashedBlockHeader::new(decoded.clone());
        assert_eq!(hashed.hash() == keccak256(input), is_exact, "a hash that is not that of the bytes");
        if let Some(block) = hashed.block() {
            assert_eq!((block.number, block.hash), (decoded.number, hashed.hash()));
            assert_eq!(u64::try_from(block.timestamp.as_second()), Ok(decoded.timestamp));
        }
    }
    let Ok(json) = serde_json::from_slice::<Value>(input) else { return };
    let Ok(reading) = told_header(&json) else {
        assert!(json != *HEADER, "an honest header is refused");
        return;
    };
    let fields: Header = serde_json::from_value(json).expect("it was read");
    assert_eq!(
        keccak256(alloy_rlp::encode(&fields.inner)),
        reading.block.hash,
        "a hash that is not that of the fields"
    );
    assert_eq!(fields.inner.number, reading.block.number);
    assert_eq!(u64::try_from(reading.block.timestamp.as_second()), Ok(fields.inner.timestamp));
}

/// The receipts of a block. Under the root of their leaves each is proven to say what is stated of it, and nothing
/// else; under another root none is.
pub(crate) fn block_receipts(input: &[u8]) {
    let Ok(receipts) = serde_json::from_slice::<Vec<RpcReceiptDocument>>(input) else { return };
    let with_root = |receipts_root| {
        HashedBlockHeader::new(alloy_consensus::Header { number: 7, receipts_root, ..Default::default() })
    };
    let other = with_root(B256::repeat_byte(1));
    let Some(leaves) = receipts.iter().map(RpcReceiptDocument::trie_leaf).collect::<Option<Vec<_>>>() else {
        assert!(ReceiptInclusionProof::new(&other, &receipts, 0).is_none(), "a receipt of no known form");
        return;
    };
    let header = with_root(ordered_trie_root_with_encoder(&leaves, |leaf, out| out.put_slice(leaf)));
    for (index, receipt) in (0..).zip(&receipts) {
        assert!(ReceiptInclusionProof::new(&other, &receipts, index).is_none(), "a proof under another root");
        let proof = ReceiptInclusionProof::new(&header, &receipts, index).expect("the root is that of these receipts");
        let stated = ExecutedTransaction {
            transaction: receipt.transaction_hash,
            block: header.block().expect("it has a time"),
            index,
            has_succeeded: receipt.has_succeeded().expect("it has a leaf"),
            to: receipt.to,
            input: Bytes::new(),
            logs: receipt.logs.iter().cloned().map(Log::from).collect(),
        };
        assert_eq!(proof.check_inclusion(&stated), Ok(()));
        let reverted = ExecutedTransaction { has_succeeded: !stated.has_succeeded, ..stated.clone() };
        let logged = ExecutedTransaction { logs: [&stated.logs[..], &[Log::default()]].concat(), ..stated };
        for false_one in [reverted, logged] {
            assert_eq!(proof.check_inclusion(&false_one), Err(ReceiptInclusionError::OtherReceipt));
        }
    }
}

/// An account and slots of it that are asked for.
struct ProofQuestion {
    address: Address,
    slots: Vec<U256>,
}

impl ProofQuestion {
    /// The account and the slot may be missing in the state.
    fn of(account: u8, slot: u8) -> Self {
        let slots = [slot % (SLOTS + 4), slot / (SLOTS + 4)].map(U256::from);
        Self { address: Address::repeat_byte(account % (ACCOUNTS + 4)), slots: slots.into() }
    }

    fn value(&self, slot: U256) -> U256 {
        let account = STATE.accounts.get(&self.address);
        account.and_then(|account| account.slots.get(&slot).copied()).unwrap_or_default()
    }

    /// What an honest endpoint answers.
    fn answer(&self) -> EIP1186AccountProofResponse {
        let account = STATE.accounts.get(&self.address);
        let leaf = account.map(Account::leaf).unwrap_or_default();
        let storage =
            |slot: &U256| account.map(|account| account.storage(Some(slot_path(*slot))).1).unwrap_or_default();
        EIP1186AccountProofResponse {
            address: self.address,
            balance: leaf.balance,
            code_hash: leaf.code_hash,
            nonce: leaf.nonce,
            storage_hash: leaf.storage_root,
            account_proof: trie(STATE.leaves.clone(), Some(keccak256(self.address))).1,
            storage_proof: self
                .slots
                .iter()
                .map(|slot| EIP1186StorageProof {
                    key: B256::from(*slot).into(),
                    value: self.value(*slot),
                    proof: storage(slot),
                })
                .collect(),
        }
    }
}

/// Changes one thing: the first byte selects what, the second which, the others how.
fn change(answer: &mut EIP1186AccountProofResponse, edit: &[u8]) {
    let Some(([what, which], how)) = edit.split_first_chunk::<2>() else { return };
    let which = usize::from(*which);
    let word = U256::from_be_slice(&how[..how.len().min(32)]);
    let slots = answer.storage_proof.len();
    let proof = match which % 3 {
        0 => &mut answer.account_proof,
        place => &mut answer.storage_proof[(place - 1) % slots].proof,
    };
    match what % 10 {
        0 => xor(proof, how),
        1 => proof.push(Bytes::copy_from_slice(how)),
        2 => drop(proof.pop()),
        3 => proof.reverse(),
        4 => proof.clear(),
        5 => answer.storage_proof[which % slots].value = word,
        6 => answer.balance = word,
        7 => answer.nonce = word.as_limbs()[0],
        8 => answer.storage_hash = word.into(),
        _ => answer.storage_proof.swap(0, slots - 1),
    }
}

/// Changes one byte of one node: node, place (two bytes), mask.
fn xor(proof: &mut [Bytes], how: &[u8]) {
    let (&[node, high, low, mask, ..], false) = (how, proof.is_empty()) else { return };
    let count = proof.len();
    let node = &mut proof[usize::from(node) % count];
    let mut bytes = node.to_vec();
    let place = usize::from(u16::from_be_bytes([high, low]));
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= mask;
    }
    *node = bytes.into();
}

struct Account {
    nonce: u64,
    slots: BTreeMap<U256, U256>,
}

impl Account {
    fn leaf(&self) -> TrieAccount {
        let storage_root = self.storage(None).0;
        TrieAccount { nonce: self.nonce, balance: U256::from(7), storage_root, code_hash: B256::repeat_byte(3) }
    }

    fn storage(&self, target: Option<B256>) -> (B256, Vec<Bytes>) {
        let leaves = self.slots.iter().map(|(slot, value)| (slot_path(*slot), alloy_rlp::encode(value)));
        trie(leaves.collect(), target)
    }
}

fn slot_path(slot: U256) -> B256 {
    keccak256(slot.to_be_bytes::<32>())
}

/// The root of the trie of these leaves, and the proof for a target.
fn trie(mut leaves: Vec<(B256, Vec<u8>)>, target: Option<B256>) -> (B256, Vec<Bytes>) {
    leaves.sort_unstable();
    let targets: Vec<Nibbles> = target.iter().map(Nibbles::unpack).collect();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(targets.clone()));
    for (path, value) in leaves {
        builder.add_leaf(Nibbles::unpack(path), &value);
    }
    let root = builder.root();
    let nodes = builder.take_proof_nodes();
    let of = |target| nodes.matching_nodes_sorted(target).into_iter().map(|(_, node)| node).collect();
    (root, targets.first().map(of).unwrap_or_default())
}

struct State {
    accounts: BTreeMap<Address, Account>,
    leaves: Vec<(B256, Vec<u8>)>,
    root: B256,
}

static STATE: LazyLock<State> = LazyLock::new(|| {
    // Values of one byte and of many, so that some leaves stand in their parents and some do not.
    let value = |account: u8, slot: u8| match slot % 2 {
        0 => U256::from(account) + U256::ONE,
        _ => U256::from_be_bytes(keccak256([account, slot]).0),
    };
    let account = |account: u8| {
        let slots = (0..SLOTS).map(|slot| (U256::from(slot), value(account, slot)));
        (Address::repeat_byte(account), Account { nonce: account.into(), slots: slots.collect() })
    };
    let accounts: BTreeMap<_, _> = (0..ACCOUNTS).map(account).collect();
    let leaf = |(address, account): (&Address, &Account)| (keccak256(address), alloy_rlp::encode(account.leaf()));
    let leaves: Vec<_> = accounts.iter().map(leaf).collect();
    let root = trie(leaves.clone(), None).0;
    State { accounts, leaves, root }
});
