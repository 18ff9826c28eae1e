//! Each changed byte of genuine data is refused, or has no meaning: the slot of a signature is not signed, and a slot
//! nearby of the same fork and period changes nothing.

use std::fs;

use super::data;
use super::mainnet::{CURRENT_SLOT, Mainnet};
use super::vectors::Vector;
use crate::codec::LightClientCodec;
use crate::containers::{LightClientFinalityUpdate, LightClientOptimisticUpdate, LightClientUpdate};
use crate::error::LightClientError;
use crate::fork::ConsensusFork;
use crate::store::LightClientStore;

/// Changes one bit of each `stride`th byte. `process` returns the store after the data was processed.
fn assert_each_byte_counts(
    ssz: &[u8],
    stride: usize,
    process: impl Fn(&[u8]) -> Result<LightClientStore, LightClientError>,
) {
    let genuine = process(ssz).expect("it is genuine").to_bytes();
    let mut without_meaning = Vec::new();
    for position in (0..ssz.len()).step_by(stride) {
        let mut changed = ssz.to_vec();
        changed[position] ^= 1 << (position % 8);
        if let Ok(store) = process(&changed) {
            assert!(store.to_bytes() == genuine, "byte {position} changes what is verified");
            without_meaning.push(position);
        }
    }
    println!("{} bytes, each {stride}th changed: those without meaning are {without_meaning:?}", ssz.len());
    assert!(without_meaning.len() <= 8, "{without_meaning:?}");
}

#[test]
fn each_byte_of_a_vector_counts() {
    let Some(folder) = data::folder() else { return };
    for fork in [ConsensusFork::Deneb, ConsensusFork::Electra] {
        for entry in fs::read_dir(folder.join("spec").join(fork.name())).expect("a folder of vectors") {
            let vector = Vector::open(&entry.expect("a readable folder").path(), fork);
            let (ssz, current_slot) = vector.first_update();
            assert_each_byte_counts(&ssz, 1, |bytes| {
                let mut store = vector.store.clone();
                let update = LightClientUpdate::from_ssz(bytes, fork, store.spec())?;
                store.process_update(&update, current_slot)?;
                Ok(store)
            });
        }
    }
}

#[test]
fn each_byte_of_a_mainnet_bootstrap_counts() {
    let Some(mainnet) = Mainnet::read() else { return };
    assert_each_byte_counts(&mainnet.bootstrap.to_ssz(ConsensusFork::Capella), 13, |bytes| {
        let bootstrap = LightClientCodec::from_ssz(bytes, ConsensusFork::Capella, &mainnet.spec)?;
        LightClientStore::from_bootstrap(mainnet.spec.clone(), mainnet.checkpoint, bootstrap)
    });
}

#[test]
fn each_byte_of_a_mainnet_update_counts() {
    let Some(mainnet) = Mainnet::read() else { return };
    let before = mainnet.updated_store(1);
    assert_each_byte_counts(&mainnet.updates[1].to_ssz(ConsensusFork::Capella), 13, |bytes| {
        let mut store = before.clone();
        let update = LightClientUpdate::from_ssz(bytes, ConsensusFork::Capella, &mainnet.spec)?;
        store.process_update(&update, CURRENT_SLOT)?;
        Ok(store)
    });
}

#[test]
fn each_byte_of_mainnet_head_updates_counts() {
    let Some(mainnet) = Mainnet::read() else { return };
    let before = mainnet.updated_store(6);
    assert_each_byte_counts(&mainnet.finality.to_ssz(ConsensusFork::Capella), 1, |bytes| {
        let mut store = before.clone();
        let update = LightClientFinalityUpdate::from_ssz(bytes, ConsensusFork::Capella, &mainnet.spec)?;
        store.process_finality_update(&update, CURRENT_SLOT)?;
        Ok(store)
    });
    assert_each_byte_counts(&mainnet.optimistic.to_ssz(ConsensusFork::Capella), 1, |bytes| {
        let mut store = before.clone();
        let update = LightClientOptimisticUpdate::from_ssz(bytes, ConsensusFork::Capella, &mainnet.spec)?;
        store.process_optimistic_update(&update, CURRENT_SLOT)?;
        Ok(store)
    });
}
