//! Saved states, read back.

use std::sync::LazyLock;

use alloy_primitives::B256;
use sha2::{Digest as _, Sha256};

use super::chain::{CHECKPOINT, Chain, NOW, committee};
use crate::committee::ProvenSyncCommittee;
use crate::error::{LightClientError, SszContainerKind, SszError};
use crate::fork::ConsensusFork;
use crate::spec::BeaconPreset;
use crate::store::LightClientStore;

/// Root of the block that all stores here start from.
static CHECKPOINT_ROOT: LazyLock<B256> = LazyLock::new(|| Chain::electra().block(CHECKPOINT, None).block_root());

/// Stores without and with a next committee.
fn stores(chain: &Chain) -> [LightClientStore; 2] {
    let mut later = chain.store();
    later.process_update(&chain.update(96, 88), NOW).expect("it is genuine");
    [chain.store(), later]
}

fn read(chain: &Chain, bytes: &[u8]) -> Result<LightClientStore, LightClientError> {
    LightClientStore::from_bytes(bytes, chain.spec.clone(), *CHECKPOINT_ROOT)
}

/// The bytes with a digest that fits.
fn with_digest(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 32);
    bytes.extend(Sha256::digest(&bytes));
    bytes
}

#[test]
fn saved_state_continues() {
    let chain = Chain::electra();
    for store in stores(&chain) {
        let mut again = read(&chain, &store.to_bytes()).expect("it is as saved");
        assert_eq!(again.to_bytes(), store.to_bytes());
        assert_eq!(
            (again.finalized_header(), again.optimistic_header(), again.next_update_period(), again.checkpoint()),
            (store.finalized_header(), store.optimistic_header(), store.next_update_period(), store.checkpoint())
        );
        again.process_update(&chain.update(112, 104), NOW).expect("it is genuine");
    }
}

#[test]
fn saved_state_with_changed_byte_is_rejected() {
    let chain = Chain::electra();
    let bytes = chain.store().to_bytes();
    for position in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[position] ^= 0x10;
        let expected = if position < 8 { LightClientError::SavedVersion } else { LightClientError::SavedDamaged };
        assert_eq!(read(&chain, &changed).err(), Some(expected));
    }
}

#[test]
fn saved_state_cut_anywhere_is_rejected() {
    let chain = Chain::electra();
    let bytes = chain.store().to_bytes();
    for length in (0..bytes.len()).step_by(7) {
        assert!(read(&chain, &bytes[..length]).is_err());
        if length >= 40 {
            let cut = with_digest(bytes[..length].to_vec());
            let error = read(&chain, &cut).expect_err("something is missing");
            assert_ne!(error, LightClientError::SavedDamaged);
        }
    }
    let cut = read(&chain, &with_digest(bytes[..40].to_vec()));
    let expected = LightClientError::Ssz { container: SszContainerKind::SavedState, flaw: SszError::Truncated };
    assert_eq!(cut.err(), Some(expected));
}

#[test]
fn saved_state_of_another_network_is_rejected() {
    let chain = Chain::electra();
    let mut other = Chain::electra();
    other.spec.genesis_validators_root = B256::ZERO;
    let refused = read(&other, &chain.store().to_bytes()).err();
    let expected =
        LightClientError::SavedNetwork { expected: B256::ZERO, observed: chain.spec.genesis_validators_root };
    assert_eq!(refused, Some(expected));
}

#[test]
fn saved_state_of_another_fork_schedule_is_rejected() {
    let bytes = Chain::electra().store().to_bytes();
    let other = Chain::with_forks(&[(ConsensusFork::Deneb, 0)]);
    let refused = LightClientStore::from_bytes(&bytes, other.spec, *CHECKPOINT_ROOT).err();
    assert_eq!(refused, Some(LightClientError::SavedFork));
}

#[test]
fn saved_state_of_another_checkpoint_is_rejected() {
    let chain = Chain::electra();
    let store = chain.store();
    let expected = B256::repeat_byte(1);
    let refused = LightClientStore::from_bytes(&store.to_bytes(), chain.spec, expected).err();
    assert_eq!(refused, Some(LightClientError::SavedCheckpoint { expected, observed: store.checkpoint() }));
}

#[test]
fn saved_committee_with_other_keys_is_rejected() {
    let chain = Chain::electra();
    let mut store = chain.store();
    let mut keys = committee(1).committee().clone();
    keys.pubkeys[3] = committee(2).committee().pubkeys[3];
    store.current_committee = ProvenSyncCommittee::new(keys, BeaconPreset::MINIMAL).expect("valid keys");
    assert_eq!(read(&chain, &store.to_bytes()).err(), Some(LightClientError::SavedCommittee));
}

#[test]
fn saved_headers_in_wrong_order_are_rejected() {
    let chain = Chain::electra();
    let [first, mut later] = stores(&chain);
    later.optimistic = first.optimistic;
    assert_eq!(read(&chain, &later.to_bytes()).err(), Some(LightClientError::SavedOrder));
}
