//! [`LightClientUpdateHistory`]: what a proof from the checkpoint on consists of.

use alloy_primitives::Bytes;
use clresolve_beacon::LightClientStore;

/// The data from the checkpoint up to the state of `store`.
#[derive(Clone)]
pub(super) struct LightClientUpdateHistory {
    pub(super) store: LightClientStore,
    pub(super) bootstrap: Bytes,
    pub(super) updates: Vec<Bytes>,
}
