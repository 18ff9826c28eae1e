//! A cache of what calls are likely to read. A hint saves exchanges but is not trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_rpc_types_eth::{AccessList, AccessListItem};
use moka::future::Cache;

use clresolve_state::EvmCall;

/// Capacity in bytes: the hints of several thousand names.
const CAPACITY_BYTES: u64 = 4 << 20;

/// Memory of a hint without its slots, in bytes: the key with its entry, and each account.
const ENTRY_BYTES: usize = 256;
const ACCOUNT_BYTES: usize = 64;

/// What each call read last time, or what an endpoint claims that it reads, keyed by target and data. The block is not
/// part of the key, since most reads are the same at the next block.
pub(super) struct AccessListCache(Cache<B256, Arc<AccessList>>);

impl AccessListCache {
    pub(super) fn new() -> Self {
        let weigh = |_: &B256, hint: &Arc<AccessList>| u32::try_from(access_list_weight(hint)).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(CAPACITY_BYTES).weigher(weigh).build())
    }

    /// The hint for the call, if there is one.
    pub(super) async fn get(&self, call: &EvmCall) -> Option<Arc<AccessList>> {
        self.0.get(&call_cache_key(call)).await
    }

    /// The hint for the call; if there is none, the result of `request`. Concurrent callers share one request.
    pub(super) async fn get_or_request(
        &self,
        call: &EvmCall,
        request: impl Future<Output = AccessList>,
    ) -> Arc<AccessList> {
        self.0.get_with(call_cache_key(call), async { Arc::new(request.await) }).await
    }

    /// Replaces the hint with what the call actually read.
    pub(super) async fn replace_access_list(&self, call: &EvmCall, read: BTreeMap<Address, BTreeSet<U256>>) {
        let item = |(address, slots): (Address, BTreeSet<U256>)| AccessListItem {
            address,
            storage_keys: slots.into_iter().map(B256::from).collect(),
        };
        self.0.insert(call_cache_key(call), Arc::new(AccessList(read.into_iter().map(item).collect()))).await;
    }
}

fn call_cache_key(call: &EvmCall) -> B256 {
    keccak256([call.to.as_slice(), &call.data].concat())
}

fn access_list_weight(hint: &AccessList) -> usize {
    let slots = hint.0.iter().map(|item| item.storage_keys.len() * size_of::<B256>() + ACCOUNT_BYTES);
    ENTRY_BYTES + slots.sum::<usize>()
}
