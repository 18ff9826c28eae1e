//! The state proven by recorded proofs, and calls over it. No I/O.

use std::collections::{BTreeSet, HashMap};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rpc_types_eth::EIP1186AccountProofResponse;

use super::code::verify_account_code;
use super::error::{MAX_ACCOUNTS, MAX_HINTED_ACCOUNTS, MAX_HINTED_SLOTS, MAX_SLOTS, ProvenCallError};
use super::evm::{self, EvmCall, EvmCallOutcome, EvmRunResult};
use super::header::HashedBlockHeader;
use super::proof_nodes::StateWitness;
use super::proven::ProvenStateValues;
use super::trie::{TrieNodePool, is_trie_node};

/// Number of sessions whose proofs are merged: one for the name and one for its owner.
const SESSIONS: usize = 2;

/// State that [`StateWitness`] prove under a header.
pub(crate) struct ProvenBlockState {
    header: HashedBlockHeader,
    chain_id: u64,
    proven: ProvenStateValues,
}

impl ProvenBlockState {
    /// Verifies the proofs. No node or code may be missing, and none may be unused.
    ///
    /// # Errors
    /// [`ProvenCallError`] for the first violation.
    pub(crate) fn new(header: HashedBlockHeader, chain_id: u64, nodes: &StateWitness) -> Result<Self, ProvenCallError> {
        if nodes.accounts.len() > SESSIONS * (MAX_ACCOUNTS + MAX_HINTED_ACCOUNTS) {
            return Err(ProvenCallError::TooManyAccounts);
        }
        if nodes.accounts.values().map(BTreeSet::len).sum::<usize>() > SESSIONS * (MAX_SLOTS + MAX_HINTED_SLOTS) {
            return Err(ProvenCallError::TooManySlots);
        }
        let mut pool = TrieNodePool::new(&nodes.nodes).map_err(ProvenCallError::Node)?;
        let mut codes: HashMap<B256, &Bytes> = nodes.codes.iter().map(|code| (keccak256(code), code)).collect();
        let mut proven = ProvenStateValues::default();
        for (address, slots) in &nodes.accounts {
            let slots = slots.iter().map(|slot| U256::from_be_bytes(slot.0));
            proven.insert_account(*address, pool.verify_account_slots(header.state_root(), *address, slots)?);
            if let Some(hash) = proven.code_hash(*address)
                && let Some(bytes) = codes.remove(&hash)
            {
                proven.insert_code(hash, verify_account_code(*address, hash, bytes.clone())?);
            }
        }
        if pool.is_fully_used() && codes.is_empty() {
            Ok(Self { header, chain_id, proven })
        } else {
            Err(ProvenCallError::LeftOver)
        }
    }

    /// The outcome of the call, computed in a single run.
    ///
    /// # Errors
    /// [`ProvenCallError::NotProven`] if it reads unproven state.
    pub(crate) fn compute_call(&self, call: &EvmCall) -> Result<EvmCallOutcome, ProvenCallError> {
        match evm::run_call(&self.proven, &self.header, self.chain_id, call)? {
            EvmRunResult::Complete { outcome, .. } => Ok(outcome),
            EvmRunResult::Incomplete { .. } => Err(ProvenCallError::NotProven),
        }
    }

    pub(crate) const fn block_number(&self) -> u64 {
        self.header.number()
    }
}

impl StateWitness {
    /// Adds a verified proof.
    pub fn add_proof(&mut self, address: Address, slots: &[U256], answer: &EIP1186AccountProofResponse) {
        self.accounts.entry(address).or_default().extend(slots.iter().map(|slot| B256::from(*slot)));
        let storage = answer.storage_proof.iter().flat_map(|slot| &slot.proof);
        self.nodes.extend(answer.account_proof.iter().chain(storage).filter(|node| is_trie_node(node)).cloned());
    }

    /// Adds the code of the accounts, if `proven` contains it.
    #[must_use]
    pub fn with_codes_of(mut self, proven: &ProvenStateValues) -> Self {
        let hashes = self.accounts.keys().filter_map(|address| proven.code_hash(*address));
        self.codes = hashes.filter_map(|hash| proven.code(hash)).collect();
        self
    }
}
