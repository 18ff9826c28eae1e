//! A test for each rule of `validate_light_client_update`, and for those that this crate adds.

use alloy_primitives::{B256, Bytes, FixedBytes};

use super::chain::{CHECKPOINT, Chain, MEMBERS, NOW, committee, execution};
use crate::codec::LightClientCodec;
use crate::containers::{LightClientHeader, LightClientUpdate, SyncCommittee};
use crate::error::{LightClientError, UpdateHeaderRole};
use crate::fork::ConsensusFork;
use crate::store::{LightClientStore, LightClientStoreChange, MAX_CHECKPOINT_AGE};
use crate::testing::{BeaconBlock, BeaconState};

/// The fewest members that are two thirds of 32.
const TWO_THIRDS: usize = 22;

/// Asserts that an update is refused, and changes nothing.
fn assert_refused(store: &LightClientStore, update: &LightClientUpdate, expected: &LightClientError) {
    let mut changed = store.clone();
    assert_eq!(changed.process_update(update, NOW).as_ref(), Err(expected));
    assert_eq!(changed.to_bytes(), store.to_bytes());
}

#[test]
fn two_thirds_advance_both_headers() {
    let chain = Chain::electra();
    let mut store = chain.store();
    let update = chain.signed(&chain.block(96, Some(88)), TWO_THIRDS);
    let change = store.process_update(&update, NOW);
    assert_eq!(change, Ok(LightClientStoreChange { finalized: true, optimistic: true, next_committee: true }));
    let (finalized, optimistic) = (store.finalized_header(), store.optimistic_header());
    assert_eq!((finalized.slot(), optimistic.slot()), (88, 96));
    assert_eq!(finalized.beacon_root(), chain.header(88).beacon.hash_tree_root());
    let block = execution(88);
    assert_eq!((finalized.block_number(), finalized.block_hash()), (88, block.block_hash));
    assert_eq!((finalized.state_root(), finalized.timestamp()), (block.state_root, block.timestamp));
}

#[test]
fn update_below_two_thirds_finalizes_nothing() {
    let chain = Chain::electra();
    let update = chain.signed(&chain.block(96, Some(88)), TWO_THIRDS - 1);
    let expected = LightClientError::Participation { participants: TWO_THIRDS - 1, size: MEMBERS };
    assert_refused(&chain.store(), &update, &expected);
}

#[test]
fn optimistic_update_below_two_thirds_is_rejected() {
    let chain = Chain::electra();
    let block = chain.block(96, Some(88));
    let mut store = chain.store();
    let mut process = |participants| {
        let aggregate = chain.signed(&block, participants).sync_aggregate;
        store.process_optimistic_update(&block.attesting_optimistic_update(aggregate, 97), NOW)
    };
    let expected = LightClientError::Participation { participants: TWO_THIRDS - 1, size: MEMBERS };
    assert_eq!(process(TWO_THIRDS - 1), Err(expected));
    assert_eq!(
        process(TWO_THIRDS),
        Ok(LightClientStoreChange { optimistic: true, ..LightClientStoreChange::default() })
    );
    assert_eq!((store.finalized_header().slot(), store.optimistic_header().slot()), (CHECKPOINT, 96));
}

#[test]
fn finality_update_below_two_thirds_is_rejected() {
    let chain = Chain::electra();
    let block = chain.block(96, Some(88));
    let mut store = chain.store();
    let mut process = |participants| {
        let aggregate = chain.signed(&block, participants).sync_aggregate;
        store.process_finality_update(&block.attesting_finality_update(aggregate, 97), NOW)
    };
    let expected = LightClientError::Participation { participants: TWO_THIRDS - 1, size: MEMBERS };
    assert_eq!(process(TWO_THIRDS - 1), Err(expected));
    assert_eq!(
        process(TWO_THIRDS),
        Ok(LightClientStoreChange { finalized: true, optimistic: true, next_committee: false })
    );
    assert_eq!((store.finalized_header().slot(), store.optimistic_header().slot()), (88, 96));
}

#[test]
fn bootstrap_of_another_block_is_rejected() {
    let chain = Chain::electra();
    let block = chain.block(CHECKPOINT, None);
    let expected = B256::repeat_byte(1);
    let refused = LightClientStore::from_bootstrap(chain.spec, expected, block.light_client_bootstrap());
    assert_eq!(refused.err(), Some(LightClientError::OtherCheckpoint { expected, observed: block.block_root() }));
}

#[test]
fn bootstrap_with_another_committee_is_rejected() {
    let chain = Chain::electra();
    let block = chain.block(CHECKPOINT, None);
    let mut bootstrap = block.light_client_bootstrap();
    bootstrap.current_sync_committee = committee(5).committee().clone();
    let refused = LightClientStore::from_bootstrap(chain.spec, block.block_root(), bootstrap);
    assert_eq!(refused.err(), Some(LightClientError::CurrentCommitteeBranch));
}

#[test]
fn bootstrap_with_forged_execution_header_is_rejected() {
    let chain = Chain::electra();
    let block = chain.block(CHECKPOINT, None);
    let mut bootstrap = block.light_client_bootstrap();
    bootstrap.header.execution.state_root = B256::repeat_byte(1);
    let refused = LightClientStore::from_bootstrap(chain.spec, block.block_root(), bootstrap);
    assert_eq!(refused.err(), Some(LightClientError::ExecutionBranch { header: UpdateHeaderRole::Checkpoint }));
}

#[test]
fn forged_attested_execution_header_is_rejected() {
    let chain = Chain::electra();
    let mut update = chain.update(96, 88);
    update.attested_header.execution.state_root = B256::repeat_byte(1);
    let expected = LightClientError::ExecutionBranch { header: UpdateHeaderRole::Attested };
    assert_refused(&chain.store(), &update, &expected);
}

#[test]
fn forged_finalized_execution_header_is_rejected() {
    let chain = Chain::electra();
    let mut update = chain.update(96, 88);
    update.finalized_header.execution.block_hash = B256::repeat_byte(1);
    let expected = LightClientError::ExecutionBranch { header: UpdateHeaderRole::Finalized };
    assert_refused(&chain.store(), &update, &expected);
}

#[test]
fn blob_gas_before_deneb_is_rejected() {
    let chain = Chain::with_forks(&[(ConsensusFork::Capella, 0), (ConsensusFork::Deneb, 50)]);
    let mut with_blob_gas = execution(96);
    with_blob_gas.excess_blob_gas = 1;
    let state = chain.state(96, Some(chain.header(88)));
    let block = BeaconBlock::new(96, B256::ZERO, with_blob_gas, state, &chain.spec).expect("a supported fork");
    let expected = LightClientError::BlobGasBeforeDeneb { header: UpdateHeaderRole::Attested };
    assert_refused(&chain.store(), &chain.signed(&block, MEMBERS), &expected);
}

#[test]
fn signature_from_the_future_is_rejected() {
    let chain = Chain::electra();
    let update = chain.update(96, 88);
    let mut store = chain.store();
    let expected = LightClientError::SignatureInFuture { signature_slot: 97, current_slot: 96 };
    assert_eq!(store.process_update(&update, 96), Err(expected));
    assert!(store.process_update(&update, 97).is_ok());
}

#[test]
fn signature_in_slot_of_its_header_is_rejected() {
    let chain = Chain::electra();
    let update = chain.signed_at(&chain.block(96, Some(88)), 96, MEMBERS);
    let expected = LightClientError::SignatureBeforeHeader { signature_slot: 96, attested_slot: 96 };
    assert_refused(&chain.store(), &update, &expected);
}

#[test]
fn finalized_header_after_attested_header_is_rejected() {
    let chain = Chain::electra();
    let expected = LightClientError::FinalizedAfterAttested { finalized_slot: 104, attested_slot: 96 };
    assert_refused(&chain.store(), &chain.update(96, 104), &expected);
}

#[test]
fn signature_of_earlier_period_is_rejected() {
    let chain = Chain::electra();
    let expected = LightClientError::PeriodPast { observed: 1, store: 2 };
    assert_refused(&chain.store_at(136), &chain.update(96, 88), &expected);
}

#[test]
fn signature_of_period_after_next_is_rejected() {
    let chain = Chain::electra();
    let mut store = chain.store();
    let update = chain.update(200, 192);
    let expected = LightClientError::PeriodSkipped { observed: 3, store: 1 };
    assert_refused(&store, &update, &expected);
    store.process_update(&chain.update(96, 88), NOW).expect("it brings the next committee");
    assert_refused(&store, &update, &expected);
}

#[test]
fn signature_of_unknown_next_committee_is_rejected() {
    let chain = Chain::electra();
    let expected = LightClientError::NextCommitteeUnknown { store: 1 };
    assert_refused(&chain.store(), &chain.update(136, 128), &expected);
}

#[test]
fn replayed_old_update_is_rejected() {
    let chain = Chain::electra();
    let mut store = chain.store();
    let old = chain.update(96, 88);
    store.process_update(&old, NOW).expect("it is new");
    assert_eq!(store.process_update(&old, NOW), Ok(LightClientStoreChange::default()));
    store.process_update(&chain.update(112, 104), NOW).expect("it is later");
    let expected = LightClientError::NothingNew { attested_slot: 96, finalized_slot: 104 };
    assert_refused(&store, &old, &expected);
}

#[test]
fn older_update_brings_only_the_missing_committee() {
    let chain = Chain::electra();
    let mut store = chain.store_at(104);
    assert_eq!(store.next_update_period(), 1);
    let change = store.process_update(&chain.update(96, 88), NOW);
    assert_eq!(change, Ok(LightClientStoreChange { next_committee: true, ..LightClientStoreChange::default() }));
    assert_eq!(
        (store.finalized_header().slot(), store.optimistic_header().slot(), store.next_update_period()),
        (104, 104, 2)
    );
}

#[test]
fn next_committee_needs_finality_in_its_period() {
    let chain = Chain::electra();
    let mut store = chain.store();
    let change = store.process_update(&chain.update(66, 56), NOW);
    assert_eq!(change, Ok(LightClientStoreChange { optimistic: true, ..LightClientStoreChange::default() }));
    assert_eq!((store.finalized_header().slot(), store.next_update_period()), (CHECKPOINT, 1));
}

#[test]
fn committee_of_earlier_state_is_nothing_new() {
    let chain = Chain::electra();
    let update = chain.signed_at(&chain.block(126, Some(112)), 129, MEMBERS);
    let expected = LightClientError::NothingNew { attested_slot: 126, finalized_slot: 136 };
    assert_refused(&chain.store_at(136), &update, &expected);
}

#[test]
fn finalized_header_without_branch_is_rejected() {
    let chain = Chain::electra();
    let mut update = chain.update(96, 88);
    update.finality_branch.fill(B256::ZERO);
    assert_refused(&chain.store(), &update, &LightClientError::FinalizedHeaderUnproven);
    update.finalized_header = LightClientHeader::default();
    let change = chain.store().process_update(&update, NOW);
    assert_eq!(change, Ok(LightClientStoreChange { optimistic: true, ..LightClientStoreChange::default() }));
}

#[test]
fn finalized_genesis_has_an_empty_header() {
    let chain = Chain::electra();
    let mut update = chain.signed(&chain.block(40, None), MEMBERS);
    let mut store = chain.store_at(0);
    let change = store.process_update(&update, NOW);
    assert_eq!(
        change,
        Ok(LightClientStoreChange { optimistic: true, next_committee: true, ..LightClientStoreChange::default() })
    );
    update.finalized_header.beacon.proposer_index = 1;
    assert_refused(&chain.store_at(0), &update, &LightClientError::GenesisHeaderNotEmpty);
}

#[test]
fn forged_finality_branch_is_rejected() {
    let chain = Chain::electra();
    for level in 0..7 {
        let mut update = chain.update(96, 88);
        update.finality_branch[level].0[31] ^= 1;
        assert_refused(&chain.store(), &update, &LightClientError::FinalityBranch);
    }
    let mut update = chain.update(96, 88);
    update.finalized_header = chain.header(80);
    assert_refused(&chain.store(), &update, &LightClientError::FinalityBranch);
    update.finality_branch.truncate(3);
    assert_refused(&chain.store(), &update, &LightClientError::FinalityBranch);
}

#[test]
fn next_committee_without_branch_is_rejected() {
    let chain = Chain::electra();
    let mut update = chain.update(96, 88);
    update.next_sync_committee_branch.fill(B256::ZERO);
    assert_refused(&chain.store(), &update, &LightClientError::NextCommitteeUnproven);
}

#[test]
fn forged_next_committee_is_rejected() {
    let chain = Chain::electra();
    let mut update = chain.update(96, 88);
    update.next_sync_committee = committee(5).committee().clone();
    assert_refused(&chain.store(), &update, &LightClientError::NextCommitteeBranch);
    update.next_sync_committee.pubkeys.pop();
    let expected = LightClientError::CommitteeSize { expected: MEMBERS, observed: MEMBERS - 1 };
    assert_refused(&chain.store(), &update, &expected);
}

#[test]
fn second_next_committee_of_a_period_is_rejected() {
    let chain = Chain::electra();
    let mut store = chain.store();
    store.process_update(&chain.update(96, 88), NOW).expect("it brings the next committee");
    let update = update_with_next(&chain, committee(5).committee().clone());
    assert_refused(&store, &update, &LightClientError::OtherNextCommittee);
}

/// An update that brings another next committee, proven like a genuine one.
fn update_with_next(chain: &Chain, next_sync_committee: SyncCommittee) -> LightClientUpdate {
    let state = BeaconState { next_sync_committee, ..chain.state(96, Some(chain.header(88))) };
    chain.signed(&chain.block_with(96, B256::ZERO, state), MEMBERS)
}

#[test]
fn bad_aggregate_key_is_rejected() {
    let chain = Chain::electra();
    let next = SyncCommittee { aggregate_pubkey: FixedBytes::repeat_byte(0xff), ..committee(2).committee().clone() };
    assert_refused(&chain.store(), &update_with_next(&chain, next), &LightClientError::AggregateKey);
}

#[test]
fn bad_key_of_a_member_is_rejected_once_needed() {
    let chain = Chain::electra();
    let mut next = committee(2).committee().clone();
    next.pubkeys[MEMBERS - 1] = FixedBytes::repeat_byte(0xff);
    let mut store = chain.store();
    store.process_update(&update_with_next(&chain, next), NOW).expect("it is proven");
    let update = chain.signed(&chain.block(136, Some(128)), MEMBERS - 1);
    assert_refused(&store, &update, &LightClientError::PublicKey { position: MEMBERS - 1 });
    assert!(store.process_update(&chain.update(136, 128), NOW).is_ok());
}

#[test]
fn second_header_of_a_slot_is_rejected() {
    let chain = Chain::electra();
    let mut store = chain.store();
    store.process_update(&chain.update(96, 88), NOW).expect("it is the first");
    let second = |slot, finalized| chain.block_with(slot, B256::repeat_byte(1), chain.state(slot, finalized));
    let (known, other) = (chain.block(96, Some(88)).block_root(), second(96, Some(chain.header(88))));
    let expected = LightClientError::Equivocation { slot: 96, known, observed: other.block_root() };
    assert_refused(&store, &chain.signed(&other, MEMBERS), &expected);
    let finalized = second(88, None);
    let expected = LightClientError::Equivocation {
        slot: 88,
        known: store.finalized_header().beacon_root(),
        observed: finalized.block_root(),
    };
    assert_refused(&store, &chain.signed(&second(104, Some(finalized.header)), MEMBERS), &expected);
}

#[test]
fn committees_follow_each_other() {
    let chain = Chain::electra();
    let mut store = chain.store();
    for period in 1..6 {
        assert_eq!(store.next_update_period(), period);
        let slot = period * 64 + 32;
        let change = store.process_update(&chain.update(slot, slot - 8), NOW).expect("it is genuine");
        assert!(change.next_committee);
        assert_eq!(store.finalized_period(), period);
    }
}

#[test]
fn finality_update_of_next_period_leaves_its_successor_unknown() {
    let chain = Chain::electra();
    let mut store = chain.store();
    store.process_update(&chain.update(96, 88), NOW).expect("it brings the next committee");
    let block = chain.block(144, Some(128));
    let update = block.attesting_finality_update(chain.signed(&block, MEMBERS).sync_aggregate, 145);
    let change = store.process_finality_update(&update, NOW);
    assert_eq!(change, Ok(LightClientStoreChange { finalized: true, optimistic: true, next_committee: false }));
    assert_eq!((store.finalized_period(), store.next_update_period()), (2, 2));
    let expected = LightClientError::NextCommitteeUnknown { store: 2 };
    assert_refused(&store, &chain.update(200, 192), &expected);
    assert!(store.process_update(&chain.update(152, 136), NOW).expect("it is genuine").next_committee);
}

#[test]
fn store_crosses_forks() {
    let chain = Chain::with_forks(&[
        (ConsensusFork::Capella, 0),
        (ConsensusFork::Deneb, 9),
        (ConsensusFork::Electra, 12),
        (ConsensusFork::Fulu, 15),
    ]);
    let mut store = chain.store();
    for (attested, finalized, fork) in [
        (70, 66, ConsensusFork::Capella),
        (80, 72, ConsensusFork::Deneb),
        (104, 88, ConsensusFork::Electra),
        (121, 112, ConsensusFork::Fulu),
    ] {
        assert_eq!(chain.spec.fork_at_slot(attested), Ok(fork));
        let ssz = chain.update(attested, finalized).to_ssz(fork);
        let update = LightClientUpdate::from_ssz(&ssz, fork, &chain.spec).expect("SSZ");
        store.process_update(&update, NOW).expect("it is genuine");
        assert_eq!((store.finalized_header().slot(), store.optimistic_header().slot()), (finalized, attested));
    }
}

#[test]
fn branch_in_a_later_layout_is_padded_with_zero() {
    let chain = Chain::with_forks(&[(ConsensusFork::Deneb, 0), (ConsensusFork::Electra, 50)]);
    let mut update = chain.update(96, 88);
    update.finality_branch.insert(0, B256::ZERO);
    update.next_sync_committee_branch.insert(0, B256::ZERO);
    let update =
        LightClientUpdate::from_ssz(&update.to_ssz(ConsensusFork::Electra), ConsensusFork::Electra, &chain.spec);
    let mut update = update.expect("SSZ");
    assert!(chain.store().process_update(&update, NOW).is_ok());
    update.finality_branch[0] = B256::repeat_byte(1);
    assert_refused(&chain.store(), &update, &LightClientError::FinalityBranch);
}

#[test]
fn header_of_draft_fork_is_rejected() {
    let chain = Chain::electra();
    let update = chain.update(96, 88);
    let future = Chain::with_forks(&[(ConsensusFork::Electra, 0), (ConsensusFork::Gloas, 12)]);
    assert_refused(&future.store(), &update, &LightClientError::ForkUnsupported { fork: ConsensusFork::Gloas });
}

#[test]
fn header_before_capella_is_rejected() {
    let chain = Chain::electra();
    let later = Chain::with_forks(&[(ConsensusFork::Capella, 9)]);
    let block = chain.block(CHECKPOINT, None);
    let refused = LightClientStore::from_bootstrap(later.spec, block.block_root(), block.light_client_bootstrap());
    assert_eq!(refused.err(), Some(LightClientError::BeforeCapella { slot: CHECKPOINT }));
}

#[test]
fn checkpoint_of_more_than_two_weeks_is_rejected() {
    let chain = Chain::electra();
    let store = chain.store();
    let limit = chain.spec.slot_start_time(CHECKPOINT) + MAX_CHECKPOINT_AGE.as_secs();
    assert_eq!(store.check_finalized_header_age(limit), Ok(()));
    let expected = LightClientError::CheckpointTooOld { age_days: 14, most_days: 14 };
    assert_eq!(store.check_finalized_header_age(limit + 1), Err(expected));
    assert_eq!(store.check_finalized_header_age(0), Ok(()));
}

#[test]
fn participation_bits_of_another_length_are_rejected() {
    let chain = Chain::electra();
    let mut update = chain.update(96, 88);
    update.sync_aggregate.sync_committee_bits = Bytes::from_static(&[0xff; 5]);
    assert_refused(&chain.store(), &update, &LightClientError::BitsLength { expected: 4, observed: 5 });
}

#[test]
fn endpoints_are_blamed_for_lies_alone() {
    let lies =
        [LightClientError::Signature, LightClientError::FinalityBranch, LightClientError::PublicKey { position: 0 }];
    assert!(lies.iter().all(LightClientError::is_endpoint_dishonest));
    let others = [
        LightClientError::Participation { participants: 1, size: MEMBERS },
        LightClientError::SignatureInFuture { signature_slot: 2, current_slot: 1 },
        LightClientError::ForkUnsupported { fork: ConsensusFork::Gloas },
        LightClientError::Json { line: 1, column: 1 },
    ];
    assert!(!others.iter().any(LightClientError::is_endpoint_dishonest));
}
