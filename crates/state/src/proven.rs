//! The state proven so far, as the EVM reads it. Unproven state is recorded and read as zero, so that one run discovers
//! most of what the next one needs. The outcome of a run that read unproven state is never used.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

use alloy_primitives::{Address, B256, Bytes, U256, address};
use alloy_trie::{EMPTY_ROOT_HASH, KECCAK_EMPTY, TrieAccount};
use revm::Database;
use revm::state::{AccountInfo, Bytecode};

use super::header::HashedBlockHeader;
use super::trie::VerifiedAccount;

/// The contract that stores the hashes of past blocks, and their number (EIP-2935).
const HISTORY: Address = address!("0000F90827F1C53a10cb7A02335B175320002935");
const HISTORY_LENGTH: u64 = 8191;

/// Accounts, slots and code that are proven under one state root.
#[derive(Clone, Default)]
pub struct ProvenStateValues {
    accounts: HashMap<Address, Option<TrieAccount>>,
    slots: HashMap<(Address, U256), U256>,
    codes: HashMap<B256, Bytecode>,
}

impl ProvenStateValues {
    /// Adds an account and its slots.
    pub fn insert_account(&mut self, address: Address, verified: VerifiedAccount) {
        self.accounts.insert(address, verified.account);
        self.slots.extend(verified.slots.into_iter().map(|(slot, value)| ((address, slot), value)));
    }

    /// Adds the code with this hash.
    pub fn insert_code(&mut self, hash: B256, code: Bytecode) {
        self.codes.insert(hash, code);
    }

    /// The account's code hash, if the account is proven to have code.
    pub fn code_hash(&self, address: Address) -> Option<B256> {
        let account = self.accounts.get(&address).copied().flatten()?;
        Some(account.code_hash).filter(|hash| *hash != KECCAK_EMPTY)
    }

    /// Whether the code with this hash is known.
    pub fn has_code(&self, hash: B256) -> bool {
        self.codes.contains_key(&hash)
    }

    pub(crate) fn code(&self, hash: B256) -> Option<Bytes> {
        self.codes.get(&hash).map(Bytecode::original_bytes)
    }

    /// Whether the account's presence or absence is proven.
    pub fn has_proven_account(&self, address: Address) -> bool {
        self.accounts.contains_key(&address)
    }

    /// Removes from `wanted` what is already proven.
    pub fn remove_proven_state(&self, wanted: &mut WantedState) {
        wanted.accounts.retain(|address, slots| {
            slots.retain(|slot| self.slot_value(*address, *slot).is_none());
            !slots.is_empty() || !self.has_proven_account(*address)
        });
    }

    /// Number of proven accounts.
    pub fn account_count(&self) -> usize {
        self.accounts.len()
    }

    /// Number of proven slots.
    pub fn slot_count(&self) -> usize {
        self.slots.len()
    }

    fn slot_value(&self, address: Address, slot: U256) -> Option<U256> {
        let account = self.accounts.get(&address)?;
        if account.is_none_or(|account| account.storage_root == EMPTY_ROOT_HASH) {
            return Some(U256::ZERO);
        }
        self.slots.get(&(address, slot)).copied()
    }
}

/// State to be proven, and code to be fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedState {
    /// Accounts, each with its slots.
    pub accounts: BTreeMap<Address, BTreeSet<U256>>,
    /// Accounts whose code is needed.
    pub codes: BTreeSet<Address>,
}

impl WantedState {
    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.codes.is_empty()
    }

    /// Number of wanted slots.
    pub fn slot_count(&self) -> usize {
        self.accounts.values().map(BTreeSet::len).sum()
    }
}

/// One run's view of the proven state.
pub(crate) struct ProvenStateDatabase<'a> {
    proven: &'a ProvenStateValues,
    header: &'a HashedBlockHeader,
    /// The proven state that the run read.
    pub read: BTreeMap<Address, BTreeSet<U256>>,
    /// The unproven state that the run read.
    pub missed: WantedState,
    /// A past block that the run asked for, and whose hash the state does not contain.
    pub unknown_block: Option<u64>,
    /// An account for each code hash.
    owners: HashMap<B256, Address>,
}

impl<'a> ProvenStateDatabase<'a> {
    pub(crate) fn new(proven: &'a ProvenStateValues, header: &'a HashedBlockHeader) -> Self {
        Self {
            proven,
            header,
            read: BTreeMap::new(),
            missed: WantedState::default(),
            unknown_block: None,
            owners: HashMap::new(),
        }
    }

    fn read_slot(&mut self, address: Address, slot: U256) -> U256 {
        // A slot of an account without storage is zero and needs no proof of its own.
        if self.proven.slots.contains_key(&(address, slot)) {
            self.read.entry(address).or_default().insert(slot);
        }
        self.proven.slot_value(address, slot).unwrap_or_else(|| {
            self.missed.accounts.entry(address).or_default().insert(slot);
            U256::ZERO
        })
    }
}

impl Database for ProvenStateDatabase<'_> {
    type Error = Infallible;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Infallible> {
        let Some(account) = self.proven.accounts.get(&address) else {
            self.missed.accounts.entry(address).or_default();
            return Ok(None);
        };
        self.read.entry(address).or_default();
        let Some(account) = account else { return Ok(None) };
        self.owners.insert(account.code_hash, address);
        let info = AccountInfo {
            nonce: account.nonce,
            balance: account.balance,
            code_hash: account.code_hash,
            code: None,
            ..AccountInfo::default()
        };
        Ok(Some(info))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, Infallible> {
        if hash == KECCAK_EMPTY {
            return Ok(Bytecode::default());
        }
        if let Some(code) = self.proven.codes.get(&hash) {
            return Ok(code.clone());
        }
        self.missed.codes.extend(self.owners.get(&hash));
        Ok(Bytecode::default())
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Infallible> {
        Ok(self.read_slot(address, slot))
    }

    /// The parent's hash is in the header. Earlier hashes are in the state, if the chain stores them there.
    fn block_hash(&mut self, number: u64) -> Result<B256, Infallible> {
        if number.checked_add(1) == Some(self.header.number()) {
            return Ok(self.header.parent_hash());
        }
        let kept = self.header.keeps_block_hashes();
        let hash = if kept { self.read_slot(HISTORY, U256::from(number % HISTORY_LENGTH)) } else { U256::ZERO };
        if hash.is_zero() {
            self.unknown_block = Some(number);
        }
        Ok(hash.into())
    }
}
