//! Contract code by its hash, kept for as long as there is room: what hashes to it can never be other code.

use alloy_primitives::{Address, B256, Bytes};
use moka::future::Cache;
use revm::state::Bytecode;

use clresolve_state::{ProofError, checked_code};

/// Room for code, in bytes: some hundred contracts of the largest size that there is.
const ROOM_BYTES: u64 = 16 << 20;

/// Accounts whose code hash is remembered.
const MAX_ACCOUNTS: u64 = 4096;

/// What a piece of code takes beside its bytes: its table of jump targets (one bit a byte) and the entry.
const fn weight(code_bytes: usize) -> usize {
    code_bytes + code_bytes / 8 + 256
}

/// The code of contracts, and which account was last seen to have which.
pub(super) struct Codes {
    by_hash: Cache<B256, Bytecode>,
    /// A guess, so that code in hand need not be fetched again together with the proof of its hash.
    last_seen: Cache<Address, B256>,
}

impl Codes {
    pub(super) fn new() -> Self {
        let weigh = |_: &B256, code: &Bytecode| u32::try_from(weight(code.len())).unwrap_or(u32::MAX);
        Self {
            by_hash: Cache::builder().max_capacity(ROOM_BYTES).weigher(weigh).build(),
            last_seen: Cache::new(MAX_ACCOUNTS),
        }
    }

    /// Whether the code that the account last had is in hand.
    pub(super) async fn has_last_of(&self, address: Address) -> bool {
        match self.last_seen.get(&address).await {
            Some(hash) => self.by_hash.contains_key(&hash),
            None => false,
        }
    }

    pub(super) async fn get(&self, hash: B256) -> Option<Bytecode> {
        self.by_hash.get(&hash).await
    }

    pub(super) async fn saw(&self, address: Address, hash: B256) {
        self.last_seen.insert(address, hash).await;
    }

    /// Keeps what an endpoint gave for the code of `address`, which is proven to hash to `hash`.
    ///
    /// # Errors
    /// [`ProofError::Code`] or [`ProofError::CodeTooLong`].
    pub(super) async fn put(&self, address: Address, hash: B256, code: Bytes) -> Result<Bytecode, ProofError> {
        let code = checked_code(address, hash, code)?;
        self.by_hash.insert(hash, code.clone()).await;
        Ok(code)
    }
}
