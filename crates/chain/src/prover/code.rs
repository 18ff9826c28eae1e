//! A cache of contract code by code hash. The code for a hash never changes.

use alloy_primitives::{Address, B256, Bytes};
use moka::future::Cache;
use revm::state::Bytecode;

use clresolve_state::{ProvenCallError, verify_account_code};

/// Capacity in bytes: several hundred contracts of the largest size that a chain allows.
const CAPACITY_BYTES: u64 = 16 << 20;

/// Number of accounts whose code hash is remembered.
const MAX_ACCOUNTS: u64 = 4096;

/// Memory of a piece of code: its bytes, its table of jump targets (one bit per byte) and the cache entry.
const fn bytecode_cache_weight(code_bytes: usize) -> usize {
    code_bytes + code_bytes / 8 + 256
}

pub(super) struct CodeCache {
    by_hash: Cache<B256, Bytecode>,
    /// Each account's last known code hash. A guess, used to avoid fetching cached code again together with the proof
    /// of its hash.
    last_of: Cache<Address, B256>,
}

impl CodeCache {
    pub(super) fn new() -> Self {
        let weigh = |_: &B256, code: &Bytecode| u32::try_from(bytecode_cache_weight(code.len())).unwrap_or(u32::MAX);
        Self {
            by_hash: Cache::builder().max_capacity(CAPACITY_BYTES).weigher(weigh).build(),
            last_of: Cache::new(MAX_ACCOUNTS),
        }
    }

    /// Whether the last known code of the account is cached.
    pub(super) async fn has_last_code(&self, address: Address) -> bool {
        match self.last_of.get(&address).await {
            Some(hash) => self.by_hash.contains_key(&hash),
            None => false,
        }
    }

    pub(super) async fn get(&self, hash: B256) -> Option<Bytecode> {
        self.by_hash.get(&hash).await
    }

    pub(super) async fn set_last_code_hash(&self, address: Address, hash: B256) {
        self.last_of.insert(address, hash).await;
    }

    /// Verifies that an endpoint's code for `address` has the proven `hash`, and caches it.
    ///
    /// # Errors
    /// [`ProvenCallError::Code`] or [`ProvenCallError::CodeTooLong`].
    pub(super) async fn verify_and_cache(
        &self,
        address: Address,
        hash: B256,
        code: Bytes,
    ) -> Result<Bytecode, ProvenCallError> {
        let code = verify_account_code(address, hash, code)?;
        self.by_hash.insert(hash, code.clone()).await;
        Ok(code)
    }
}
