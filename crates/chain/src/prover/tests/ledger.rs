//! A state in which every byte can be changed, and an endpoint for it that may lie.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};
use alloy_rpc_types_eth::{AccessList, BlockId, EIP1186AccountProofResponse, EIP1186StorageProof};
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{HashBuilder, Nibbles, TrieAccount};
use async_trait::async_trait;

use crate::failure::EndpointFailure;
use crate::prover::*;

pub(super) const CHAIN: u64 = 31_337;
pub(super) const ALICE: Address = address!("00000000000000000000000000000000000a11ce");
pub(super) const CONTRACT: Address = address!("0000000000000000000000000000000000c0de01");
pub(super) const OTHER: Address = address!("0000000000000000000000000000000000c0de02");

/// An account of a state made for a test.
#[derive(Clone, Default)]
pub(super) struct Account {
    pub(super) balance: u64,
    pub(super) code: Vec<u8>,
    pub(super) slots: BTreeMap<U256, U256>,
}

impl Account {
    pub(super) fn contract(code: &[u8], slots: &[(u64, u64)]) -> Self {
        let slots = slots.iter().map(|(slot, value)| (U256::from(*slot), U256::from(*value))).collect();
        Self { balance: 0, code: code.to_vec(), slots }
    }

    pub(super) fn leaf(&self) -> TrieAccount {
        TrieAccount {
            nonce: 1,
            balance: U256::from(self.balance),
            storage_root: self.storage(&[]).0,
            code_hash: keccak256(&self.code),
        }
    }

    fn storage(&self, targets: &[B256]) -> (B256, Vec<Vec<Bytes>>) {
        let leaves = self.slots.iter().map(|(slot, value)| (slot_path(*slot), alloy_rlp::encode(value)));
        trie(leaves.collect(), targets)
    }
}

pub(super) fn slot_path(slot: U256) -> B256 {
    keccak256(slot.to_be_bytes::<32>())
}

/// The root of the trie of these leaves, and a proof for each target.
pub(super) fn trie(mut leaves: Vec<(B256, Vec<u8>)>, targets: &[B256]) -> (B256, Vec<Vec<Bytes>>) {
    leaves.sort_unstable();
    let targets: Vec<Nibbles> = targets.iter().map(Nibbles::unpack).collect();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(targets.clone()));
    for (path, value) in leaves {
        builder.add_leaf(Nibbles::unpack(path), &value);
    }
    let root = builder.root();
    let nodes = builder.take_proof_nodes();
    let proof = |target| nodes.matching_nodes_sorted(target).into_iter().map(|(_, node)| node).collect();
    (root, targets.iter().map(proof).collect())
}

#[derive(Clone)]
pub(super) struct Ledger {
    accounts: BTreeMap<Address, Account>,
    leaves: Vec<(B256, Vec<u8>)>,
}

impl Ledger {
    pub(super) fn of<const N: usize>(accounts: [(Address, Account); N]) -> Self {
        // Neighbouring accounts, so that the proofs contain branch nodes.
        let crowd = (0..12).map(|i: u8| (Address::repeat_byte(0x80 + i), Account { balance: 7, ..Account::default() }));
        let accounts: BTreeMap<_, _> = crowd.chain(accounts).collect();
        let leaf = |(address, account): (&Address, &Account)| (keccak256(address), alloy_rlp::encode(account.leaf()));
        let leaves = accounts.iter().map(leaf).collect();
        Self { accounts, leaves }
    }

    pub(super) fn root(&self, targets: &[B256]) -> (B256, Vec<Vec<Bytes>>) {
        trie(self.leaves.clone(), targets)
    }

    pub(super) fn header(&self) -> HashedBlockHeader {
        HashedBlockHeader::new(Header {
            number: 100,
            timestamp: 1_800_000_000,
            gas_limit: 30_000_000,
            state_root: self.root(&[]).0,
            parent_hash: B256::repeat_byte(9),
            beneficiary: ALICE,
            base_fee_per_gas: Some(7),
            withdrawals_root: Some(B256::ZERO),
            blob_gas_used: Some(0),
            excess_blob_gas: Some(0),
            parent_beacon_block_root: Some(B256::ZERO),
            requests_hash: Some(B256::ZERO),
            ..Header::default()
        })
    }

    pub(super) fn session(&self) -> CallProverSession {
        CallProverSession::new(Arc::new(self.header()))
    }

    pub(super) fn prove(&self, address: Address, slots: &[U256]) -> EIP1186AccountProofResponse {
        let account = self.accounts.get(&address);
        let leaf = account.map(Account::leaf).unwrap_or_default();
        let targets: Vec<B256> = slots.iter().map(|slot| slot_path(*slot)).collect();
        let storage = account.filter(|account| !account.slots.is_empty()).map(|account| account.storage(&targets).1);
        let value = |slot| account.and_then(|account| account.slots.get(slot).copied()).unwrap_or_default();
        let proofs = storage.unwrap_or_else(|| vec![Vec::new(); slots.len()]);
        EIP1186AccountProofResponse {
            address,
            balance: leaf.balance,
            code_hash: leaf.code_hash,
            nonce: leaf.nonce,
            storage_hash: leaf.storage_root,
            account_proof: self.root(&[keccak256(address)]).1.remove(0),
            storage_proof: slots
                .iter()
                .zip(proofs)
                .map(|(slot, proof)| EIP1186StorageProof { key: B256::from(*slot).into(), value: value(slot), proof })
                .collect(),
        }
    }

    fn code(&self, address: Address) -> Bytes {
        self.accounts.get(&address).map(|account| account.code.clone().into()).unwrap_or_default()
    }
}

/// An endpoint over a [`Ledger`], which may lie.
pub(super) struct Endpoint {
    ledger: Ledger,
    lie: Box<dyn Fn(&mut StateProofOrCode) + Send + Sync>,
    pub(super) fetches: AtomicUsize,
    pub(super) codes: AtomicUsize,
}

impl Endpoint {
    pub(super) fn honest(ledger: &Ledger) -> Self {
        Self::lying(ledger, |_| {})
    }

    pub(super) fn lying(ledger: &Ledger, lie: impl Fn(&mut StateProofOrCode) + Send + Sync + 'static) -> Self {
        let (fetches, codes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { ledger: ledger.clone(), lie: Box::new(lie), fetches, codes }
    }
}

#[async_trait]
impl StateSource for Endpoint {
    async fn fetch_access_list(&self, _: &EvmCall, _: BlockId) -> Result<AccessList, CallProverError> {
        Err(CallProverError::Endpoint(EndpointFailure::Unusable("it has no such method".to_owned())))
    }

    async fn fetch_state(&self, wanted: &WantedState, _: BlockId) -> Result<Vec<StateProofOrCode>, CallProverError> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        self.codes.fetch_add(wanted.codes.len(), Ordering::Relaxed);
        let proofs = wanted.accounts.iter().map(|(address, slots)| {
            let slots: Vec<U256> = slots.iter().copied().collect();
            StateProofOrCode::Proof(*address, slots.clone(), Box::new(self.ledger.prove(*address, &slots)))
        });
        let codes = wanted.codes.iter().map(|address| StateProofOrCode::Code(*address, self.ledger.code(*address)));
        let mut given: Vec<StateProofOrCode> = proofs.chain(codes).collect();
        given.iter_mut().for_each(|given| (self.lie)(given));
        Ok(given)
    }
}
