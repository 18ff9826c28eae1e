//! The header of a bundle, verified from checkpoints of several readers.

use std::sync::LazyLock;

use clresolve_beacon::testing::{BeaconBlock, BeaconState, SigningSyncCommittee};
use clresolve_beacon::{ConsensusFork, ExecutionPayloadHeader, LightClientCodec as _};

use super::*;

/// Slot of the checkpoint; the sandbox has a slot a second.
const CHECKPOINT: u64 = 1_700_000_000;
const FINALIZED: u64 = CHECKPOINT + 12;
const ATTESTED: u64 = CHECKPOINT + 24;

const NETWORK: (&str, u64) = (SANDBOX, SANDBOX_ID);

static COMMITTEE: LazyLock<SigningSyncCommittee> =
    LazyLock::new(|| SigningSyncCommittee::new(1, ChainSpec::sandbox().preset.sync_committee_size));

fn beacon_block(slot: u64, finalized: Option<&BeaconBlock>) -> BeaconBlock {
    let execution = ExecutionPayloadHeader {
        block_number: slot - CHECKPOINT,
        block_hash: B256::left_padding_from(&slot.to_be_bytes()),
        timestamp: slot,
        ..ExecutionPayloadHeader::default()
    };
    let committee = COMMITTEE.committee();
    let state = BeaconState {
        current_sync_committee: committee.clone(),
        next_sync_committee: committee.clone(),
        finalized: finalized.map(|block| block.header.clone()),
    };
    BeaconBlock::new(slot, B256::ZERO, execution, state, &ChainSpec::sandbox()).expect("a supported fork")
}

fn proof() -> LightClientSyncTranscript {
    let (spec, checkpoint) = (ChainSpec::sandbox(), beacon_block(CHECKPOINT, None));
    let attested = beacon_block(ATTESTED, Some(&beacon_block(FINALIZED, None)));
    let aggregate = COMMITTEE.sign_header(&attested.header.beacon, ATTESTED + 1, 32, &spec).expect("a supported fork");
    LightClientSyncTranscript {
        checkpoint: checkpoint.block_root(),
        bootstrap: checkpoint.light_client_bootstrap().to_ssz(ConsensusFork::Electra).into(),
        updates: Vec::new(),
        finality_update: attested
            .attesting_finality_update(aggregate, ATTESTED + 1)
            .to_ssz(ConsensusFork::Electra)
            .into(),
    }
}

fn block() -> ChainBlock {
    ChainBlock {
        number: FINALIZED - CHECKPOINT,
        hash: B256::left_padding_from(&FINALIZED.to_be_bytes()),
        timestamp: at(FINALIZED),
    }
}

/// Another block of the same height.
fn other_block() -> ChainBlock {
    ChainBlock { hash: B256::repeat_byte(7), ..block() }
}

fn at(slot: u64) -> Timestamp {
    Timestamp::from_second(i64::try_from(slot).expect("a time")).expect("a time")
}

fn checked(block: &ChainBlock, checkpoint: Option<B256>) -> Result<(), BundleError> {
    check_finality(&proof(), block, checkpoint, NETWORK, at(ATTESTED + 60))
}

#[test]
fn finalized_block_verifies_from_the_checkpoint() {
    assert_eq!(checked(&block(), Some(proof().checkpoint)), Ok(()));
}

#[test]
fn age_of_the_checkpoint_is_not_bounded() {
    let in_a_century = at(ATTESTED + 100 * 365 * 24 * 60 * 60);
    assert_eq!(check_finality(&proof(), &block(), Some(proof().checkpoint), NETWORK, in_a_century), Ok(()));
}

#[test]
fn reader_without_a_related_checkpoint_decides_nothing() {
    let unrelated = |result: Result<(), BundleError>| {
        let error = result.expect_err("undecided");
        assert!(error.is_undecided() && error.error_class() == "checkpoint-unrelated", "{error}");
        let BundleError::CheckpointUnrelated(cause) = error else { panic!("{error}") };
        cause
    };
    let (checkpoint, block) = (proof().checkpoint, block());
    let unnamed = unrelated(checked(&block, None));
    assert_eq!(unnamed, CheckpointError::Unnamed { observed: checkpoint });
    let message = unnamed.to_string();
    assert!(message.contains("--checkpoint") && message.contains(&checkpoint.to_string()), "{message}");
    for other in
        [beacon_block(FINALIZED, None).block_root(), beacon_block(ATTESTED + 60, None).block_root(), B256::ZERO]
    {
        let cause = unrelated(checked(&block, Some(other)));
        assert!(matches!(cause, CheckpointError::NoPath(_)), "{cause}");
    }
    for (world, id) in [("eip155-10", 10), ("eip155-31337", SANDBOX_ID), (SANDBOX, 10)] {
        let unknown = unrelated(check_finality(&proof(), &block, Some(checkpoint), (world, id), at(ATTESTED + 60)));
        assert_eq!(unknown, CheckpointError::UnknownChain(id), "{world}");
    }
    let before = ChainBlock { number: block.number - 1, ..other_block() };
    let other = unrelated(checked(&before, Some(checkpoint)));
    assert_eq!(other, CheckpointError::OtherBlock { expected: before.number, observed: block.number });
}

#[test]
fn another_block_of_the_finalized_height_is_refused() {
    let error = checked(&other_block(), Some(proof().checkpoint)).expect_err("refused");
    assert_eq!(error.error_class(), "bundle-header-mismatch");
}

#[test]
fn broken_proof_is_refused() {
    let broken = LightClientSyncTranscript { finality_update: proof().bootstrap, ..proof() };
    let checkpoint = Some(proof().checkpoint);
    let error = check_finality(&broken, &block(), checkpoint, NETWORK, at(ATTESTED + 60)).expect_err("refused");
    let early = check_finality(&proof(), &block(), checkpoint, NETWORK, at(ATTESTED)).expect_err("a later signature");
    for error in [error, early] {
        assert!(matches!(error, BundleError::LightClient(_)), "{error}");
        assert_eq!(error.error_class(), "bundle-proof-refused");
    }
}
