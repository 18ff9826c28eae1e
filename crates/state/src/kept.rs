//! Proofs that are handed on, and calls computed over them again, without anybody to ask. No I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rpc_types_eth::EIP1186AccountProofResponse;

use super::code::checked_code;
use super::error::{MAX_ACCOUNTS, MAX_SLOTS, ProofError};
use super::evm::{self, Run};
use super::evm::{Call, Outcome};
use super::header::HashedHeader;
use super::proven::Proven;
use super::trie::{Pool, is_node};

/// Sessions whose proofs stand together: that of the name and that of its owner.
const SESSIONS: usize = 2;

/// What was proven in a block, and the bytes that prove it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Kept {
    /// Accounts, with their slots.
    pub accounts: BTreeMap<Address, BTreeSet<B256>>,
    /// The nodes on the ways to them in the tries of state and storage, each once.
    nodes: BTreeSet<Bytes>,
    /// The code of those accounts, each once.
    pub codes: BTreeSet<Bytes>,
}

impl Kept {
    /// Adds what an endpoint's proof was found to hold.
    pub fn add(&mut self, address: Address, slots: &[U256], answer: &EIP1186AccountProofResponse) {
        self.accounts.entry(address).or_default().extend(slots.iter().map(|slot| B256::from(*slot)));
        let storage = answer.storage_proof.iter().flat_map(|slot| &slot.proof);
        self.nodes.extend(answer.account_proof.iter().chain(storage).filter(|node| is_node(node)).cloned());
    }

    /// The same, with the code of its accounts as far as it is in hand.
    #[must_use]
    pub fn with_codes_of(mut self, proven: &Proven) -> Self {
        let hashes = self.accounts.keys().filter_map(|address| proven.code_hash(*address));
        self.codes = hashes.filter_map(|hash| proven.code(hash)).collect();
        self
    }

    /// Adds what was kept in another session of the same block.
    pub fn extend(&mut self, other: Self) {
        for (address, slots) in other.accounts {
            self.accounts.entry(address).or_default().extend(slots);
        }
        self.nodes.extend(other.nodes);
        self.codes.extend(other.codes);
    }
}

/// State that was proven against a header from [`Kept`] proofs.
pub struct Ground {
    header: HashedHeader,
    chain_id: u64,
    proven: Proven,
}

impl Ground {
    /// Proves all that is kept, with nothing missing and nothing left over.
    ///
    /// # Errors
    /// [`ProofError`], for the first thing wrong.
    pub fn new(header: HashedHeader, chain_id: u64, kept: &Kept) -> Result<Self, ProofError> {
        if kept.accounts.len() > SESSIONS * MAX_ACCOUNTS {
            return Err(ProofError::TooManyAccounts);
        }
        if kept.accounts.values().map(BTreeSet::len).sum::<usize>() > SESSIONS * MAX_SLOTS {
            return Err(ProofError::TooManySlots);
        }
        let mut pool = Pool::new(&kept.nodes).map_err(ProofError::Kept)?;
        let mut codes: HashMap<B256, &Bytes> = kept.codes.iter().map(|code| (keccak256(code), code)).collect();
        let mut proven = Proven::default();
        for (address, slots) in &kept.accounts {
            let slots = slots.iter().map(|slot| U256::from_be_bytes(slot.0));
            proven.insert(*address, pool.verify(header.state_root(), *address, slots)?);
            if let Some(hash) = proven.code_hash(*address)
                && let Some(bytes) = codes.remove(&hash)
            {
                proven.insert_code(hash, checked_code(*address, hash, bytes.clone())?);
            }
        }
        if pool.is_used_up() && codes.is_empty() {
            Ok(Self { header, chain_id, proven })
        } else {
            Err(ProofError::LeftOver)
        }
    }

    /// What the call does, in one run.
    ///
    /// # Errors
    /// [`ProofError::NotKept`] where it reads what is not proven.
    pub fn call(&self, call: &Call) -> Result<Outcome, ProofError> {
        match evm::run(&self.proven, &self.header, self.chain_id, call)? {
            Run::Closed { outcome, .. } => Ok(outcome),
            Run::Open { .. } => Err(ProofError::NotKept),
        }
    }

    /// The block's number.
    pub const fn number(&self) -> u64 {
        self.header.number()
    }
}
