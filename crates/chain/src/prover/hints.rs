//! What calls are likely to read. A hint saves exchanges and is believed in nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_rpc_types_eth::{AccessList, AccessListItem};
use moka::future::Cache;

use clresolve_state::Call;

/// Room for hints, in bytes: those of some thousand names.
const ROOM_BYTES: u64 = 4 << 20;

/// What a hint takes beside its slots, in bytes: the key and the entry, and so much for each account.
const ENTRY_BYTES: usize = 256;
const ACCOUNT_BYTES: usize = 64;

/// What calls read the last time, or will read as somebody says, by their target and data. Under which block they do is
/// not part of it: most reads are the same in the next one.
pub(super) struct Hints(Cache<B256, Arc<AccessList>>);

impl Hints {
    pub(super) fn new() -> Self {
        let weigh = |_: &B256, hint: &Arc<AccessList>| u32::try_from(weight(hint)).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(ROOM_BYTES).weigher(weigh).build())
    }

    /// What is known of the call.
    pub(super) async fn get(&self, call: &Call) -> Option<Arc<AccessList>> {
        self.0.get(&key(call)).await
    }

    /// What is known of the call, else what `asking` gives: asked once, whoever else wants to know.
    pub(super) async fn get_or(&self, call: &Call, asking: impl Future<Output = AccessList>) -> Arc<AccessList> {
        self.0.get_with(key(call), async { Arc::new(asking.await) }).await
    }

    /// Keeps what the call did read, in place of what was said.
    pub(super) async fn learn(&self, call: &Call, read: BTreeMap<Address, BTreeSet<U256>>) {
        let item = |(address, slots): (Address, BTreeSet<U256>)| AccessListItem {
            address,
            storage_keys: slots.into_iter().map(B256::from).collect(),
        };
        self.0.insert(key(call), Arc::new(AccessList(read.into_iter().map(item).collect()))).await;
    }
}

fn key(call: &Call) -> B256 {
    keccak256([call.to.as_slice(), &call.data].concat())
}

fn weight(hint: &AccessList) -> usize {
    let slots = hint.0.iter().map(|item| item.storage_keys.len() * size_of::<B256>() + ACCOUNT_BYTES);
    ENTRY_BYTES + slots.sum::<usize>()
}
