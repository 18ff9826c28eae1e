//! Who must have signed what.

use alloy_primitives::{B256, FixedBytes};

use super::chain::{Chain, MEMBERS, NOW, committee};
use crate::committee::ProvenSyncCommittee;
use crate::containers::LightClientUpdate;
use crate::error::LightClientError;
use crate::fork::ConsensusFork;
use crate::spec::{BeaconPreset, ChainSpec};

/// An update signed by another committee, or under another network's rules.
fn signed_by(chain: &Chain, period: u64, spec: &ChainSpec) -> LightClientUpdate {
    let block = chain.block(96, Some(88));
    let aggregate = committee(period).sign_header(&block.header.beacon, 97, MEMBERS, spec).expect("a supported fork");
    block.attesting_update(aggregate, 97)
}

fn refusal(chain: &Chain, update: &LightClientUpdate) -> Option<LightClientError> {
    chain.store().process_update(update, NOW).err()
}

#[test]
fn signature_of_another_committee_is_rejected() {
    let chain = Chain::electra();
    assert_eq!(refusal(&chain, &signed_by(&chain, 1, &chain.spec)), None);
    for period in [0, 2, 5] {
        let update = signed_by(&chain, period, &chain.spec);
        assert_eq!(refusal(&chain, &update), Some(LightClientError::Signature));
    }
}

#[test]
fn current_committee_does_not_sign_in_the_next_period() {
    let chain = Chain::electra();
    let mut store = chain.store();
    store.process_update(&chain.update(96, 88), NOW).expect("it brings the next committee");
    let block = chain.block(136, Some(128));
    let signed = |period| {
        let aggregate = committee(period).sign_header(&block.header.beacon, 137, MEMBERS, &chain.spec);
        block.attesting_update(aggregate.expect("a supported fork"), 137)
    };
    assert_eq!(store.process_update(&signed(1), NOW), Err(LightClientError::Signature));
    assert!(store.process_update(&signed(2), NOW).is_ok());
}

#[test]
fn signature_of_another_network_is_rejected() {
    let chain = Chain::electra();
    let other = ChainSpec { genesis_validators_root: B256::ZERO, ..chain.spec.clone() };
    assert_eq!(refusal(&chain, &signed_by(&chain, 1, &other)), Some(LightClientError::Signature));
}

#[test]
fn signature_with_another_fork_version_is_rejected() {
    let chain = Chain::electra();
    let other = Chain::with_forks(&[(ConsensusFork::Deneb, 0)]);
    assert_eq!(refusal(&chain, &signed_by(&chain, 1, &other.spec)), Some(LightClientError::Signature));
}

#[test]
fn first_signature_of_a_fork_has_the_version_before() {
    let chain = Chain::with_forks(&[(ConsensusFork::Capella, 0), (ConsensusFork::Deneb, 12)]);
    let block = chain.block(95, Some(88));
    let signed = |spec| {
        block.attesting_update(committee(1).sign_header(&block.header.beacon, 96, MEMBERS, spec).expect("a fork"), 96)
    };
    let before = Chain::with_forks(&[(ConsensusFork::Capella, 0)]);
    assert_eq!(refusal(&chain, &signed(&before.spec)), None);
    let after = Chain::with_forks(&[(ConsensusFork::Deneb, 0)]);
    assert_eq!(refusal(&chain, &signed(&after.spec)), Some(LightClientError::Signature));
}

#[test]
fn signature_is_exactly_of_the_named_members() {
    let chain = Chain::electra();
    let known = ProvenSyncCommittee::new(committee(1).committee().clone(), BeaconPreset::MINIMAL).expect("valid keys");
    assert_eq!(known.has_valid_aggregate_key(), Ok(true));
    let header = chain.header(96).beacon;
    let root = chain.spec.signing_root(header.hash_tree_root(), 97).expect("a supported fork");
    for participants in [1, 2, 15, 16, 17, 31, 32] {
        let mut aggregate = committee(1).sign_header(&header, 97, participants, &chain.spec).expect("a supported fork");
        assert_eq!(known.verify_signature(&aggregate, root), Ok(()));
        let mut bits = aggregate.sync_committee_bits.to_vec();
        bits[2] ^= 1;
        aggregate.sync_committee_bits = bits.into();
        assert_eq!(known.verify_signature(&aggregate, root), Err(LightClientError::Signature));
    }
}

#[test]
fn signature_of_nobody_is_rejected() {
    let chain = Chain::electra();
    let known = ProvenSyncCommittee::new(committee(1).committee().clone(), BeaconPreset::MINIMAL).expect("valid keys");
    let mut aggregate = chain.update(96, 88).sync_aggregate;
    aggregate.sync_committee_bits = vec![0; 4].into();
    aggregate.sync_committee_signature = FixedBytes::ZERO;
    aggregate.sync_committee_signature[0] = 0xc0;
    assert_eq!(known.verify_signature(&aggregate, B256::ZERO), Err(LightClientError::Signature));
}

#[test]
fn malformed_signature_is_rejected() {
    let chain = Chain::electra();
    let mut update = chain.update(96, 88);
    update.sync_aggregate.sync_committee_signature = FixedBytes::ZERO;
    assert_eq!(refusal(&chain, &update), Some(LightClientError::SignatureMalformed));
    update.sync_aggregate.sync_committee_signature[0] = 0xc0;
    assert_eq!(refusal(&chain, &update), Some(LightClientError::Signature));
}
