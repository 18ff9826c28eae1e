//! Real responses of mainnet's beacon API, from August 2023 (Capella).

use std::fs;
use std::path::Path;

use alloy_primitives::{B256, b256};

use super::data;
use crate::codec::LightClientCodec;
use crate::containers::{
    LightClientBootstrap, LightClientFinalityUpdate, LightClientOptimisticUpdate, LightClientUpdate,
};
use crate::spec::ChainSpec;
use crate::store::{LightClientStore, LightClientStoreChange};

/// The slot after the last update.
pub(super) const CURRENT_SLOT: u64 = 7_109_433;

/// The responses, decoded.
pub(super) struct Mainnet {
    pub(super) spec: ChainSpec,
    pub(super) checkpoint: B256,
    pub(super) bootstrap: LightClientBootstrap,
    pub(super) updates: Vec<LightClientUpdate>,
    pub(super) finality: LightClientFinalityUpdate,
    pub(super) optimistic: LightClientOptimisticUpdate,
}

impl Mainnet {
    pub(super) fn read() -> Option<Self> {
        let folder = data::folder()?.join("mainnet");
        let spec = ChainSpec::mainnet();
        let bootstrap: LightClientBootstrap = response(&folder, "bootstrap.json", &spec);
        Some(Self {
            checkpoint: bootstrap.header.beacon.hash_tree_root(),
            bootstrap,
            updates: LightClientUpdate::list_from_json(&read(&folder, "updates.json"), 6, &spec).expect("six updates"),
            finality: response(&folder, "finality.json", &spec),
            optimistic: response(&folder, "optimistic.json", &spec),
            spec,
        })
    }

    pub(super) fn store(&self) -> LightClientStore {
        LightClientStore::from_bootstrap(self.spec.clone(), self.checkpoint, self.bootstrap.clone())
            .expect("it is genuine")
    }

    /// A store after the first `count` updates.
    pub(super) fn updated_store(&self, count: usize) -> LightClientStore {
        let mut store = self.store();
        for update in &self.updates[..count] {
            store.process_update(update, CURRENT_SLOT).expect("it is genuine");
        }
        store
    }
}

#[test]
fn mainnet_responses_verify() {
    let Some(mainnet) = Mainnet::read() else { return };
    let mut store = mainnet.store();
    assert_eq!((store.finalized_header().slot(), store.finalized_period()), (7_069_376, 862));
    for (update, period) in mainnet.updates.iter().zip(862..) {
        assert_eq!(store.next_update_period(), period);
        let change = store.process_update(update, CURRENT_SLOT).expect("it is genuine");
        assert!(change.next_committee);
    }
    let change = store.process_finality_update(&mainnet.finality, CURRENT_SLOT).expect("it is genuine");
    assert_eq!(change, LightClientStoreChange { finalized: true, optimistic: true, next_committee: false });
    let change = store.process_optimistic_update(&mainnet.optimistic, CURRENT_SLOT).expect("it is genuine");
    assert_eq!(change, LightClientStoreChange { optimistic: true, ..LightClientStoreChange::default() });
    let (finalized, optimistic) = (store.finalized_header(), store.optimistic_header());
    assert_eq!((finalized.slot(), finalized.block_number()), (7_109_344, 17_923_026));
    assert_eq!((optimistic.slot(), optimistic.block_number()), (7_109_431, 17_923_113));
    let hash = b256!("0xbc8499537876e5406c7a65e25f99063f1cd85a17014a3aa5ade38271b1fbf64f");
    let state_root = b256!("0x226f5ff47ab3725b5a4a3afc74b1e79e4aa3a29704561eccce590e58900baec3");
    assert_eq!((finalized.block_hash(), finalized.state_root()), (hash, state_root));
    assert_eq!((finalized.timestamp(), optimistic.timestamp()), (1_692_136_151, 1_692_137_195));
    assert_eq!(mainnet.spec.slot_start_time(finalized.slot()), finalized.timestamp());
    assert_eq!(finalized.beacon_root(), mainnet.finality.finalized_header.beacon.hash_tree_root());
}

fn response<T: LightClientCodec>(folder: &Path, name: &str, spec: &ChainSpec) -> T {
    T::from_json(&read(folder, name), spec).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect("a readable file")
}
