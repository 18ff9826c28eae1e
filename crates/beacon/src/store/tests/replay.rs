//! Replays of what a light client received: from the reader's checkpoint alone, without gaps, and every byte counts.

use std::sync::LazyLock;

use alloy_primitives::{B256, Bytes};

use super::chain::{CHECKPOINT, Chain, MEMBERS, NOW, committee};
use super::mainnet::{CURRENT_SLOT, Mainnet};
use crate::codec::{LightClientCodec, MAX_UPDATES};
use crate::error::LightClientError;
use crate::fork::ConsensusFork;
use crate::header::VerifiedBeaconHeader;
use crate::proof::{
    LightClientSyncTranscript, LightClientTranscriptError, MAX_SSZ_BYTES, verify_light_client_transcript,
};

/// Slot of the header that [`proof`] finalizes: in period 3, two after that of the checkpoint.
const FINALIZED: u64 = 200;

/// A proof over two updates, from the synthetic chain's checkpoint.
static PROOF: LazyLock<LightClientSyncTranscript> = LazyLock::new(|| {
    let chain = Chain::electra();
    let checkpoint = chain.block(CHECKPOINT, None);
    let attested = chain.block(230, Some(FINALIZED));
    let slot = attested.header.beacon.slot + 1;
    let aggregate =
        committee(3).sign_header(&attested.header.beacon, slot, MEMBERS, &chain.spec).expect("a supported fork");
    let update = |attested, finalized| chain.update(attested, finalized).to_ssz(ConsensusFork::Electra).into();
    LightClientSyncTranscript {
        checkpoint: checkpoint.block_root(),
        bootstrap: checkpoint.light_client_bootstrap().to_ssz(ConsensusFork::Electra).into(),
        updates: vec![update(100, 80), update(160, 150)],
        finality_update: attested.attesting_finality_update(aggregate, slot).to_ssz(ConsensusFork::Electra).into(),
    }
});

fn proof() -> LightClientSyncTranscript {
    PROOF.clone()
}

fn verified(proof: &LightClientSyncTranscript) -> Result<VerifiedBeaconHeader, LightClientTranscriptError> {
    verify_light_client_transcript(proof, PROOF.checkpoint, Chain::electra().spec, NOW)
}

#[test]
fn proof_leads_from_the_checkpoint_to_its_header() {
    let header = verified(&proof()).expect("it is genuine");
    assert_eq!((header.slot(), header.block_number()), (FINALIZED, FINALIZED));
    assert_eq!(header.block_hash(), B256::right_padding_from(&FINALIZED.to_be_bytes()));
}

#[test]
fn proof_from_another_checkpoint_is_unrelated() {
    let (proof, other) = (proof(), B256::repeat_byte(1));
    let error = verify_light_client_transcript(&proof, other, Chain::electra().spec, NOW).unwrap_err();
    assert_eq!(error, LightClientTranscriptError::OtherCheckpoint { expected: other, observed: proof.checkpoint });
    assert!(error.is_disconnected_from_checkpoint());
    // Whoever writes the proof can state any checkpoint, but has no bootstrap for it.
    let claimed = LightClientSyncTranscript { checkpoint: other, ..proof };
    let error = verify_light_client_transcript(&claimed, other, Chain::electra().spec, NOW).unwrap_err();
    assert!(
        matches!(error, LightClientTranscriptError::Bootstrap(LightClientError::OtherCheckpoint { .. })),
        "{error}"
    );
}

#[test]
fn missing_update_is_a_gap() {
    for missing in [vec![0], vec![1], vec![0, 1]] {
        let mut proof = proof();
        missing.iter().rev().for_each(|position| drop(proof.updates.remove(*position)));
        let error = verified(&proof).unwrap_err();
        assert!(matches!(error, LightClientTranscriptError::Gap(_)), "{missing:?}: {error}");
        assert!(error.is_disconnected_from_checkpoint());
    }
}

#[test]
fn unneeded_update_is_refused() {
    for position in [0, 1] {
        let mut proof = proof();
        proof.updates.insert(position + 1, proof.updates[position].clone());
        let error = verified(&proof).unwrap_err();
        assert_eq!(error, LightClientTranscriptError::Unneeded { position: position + 1 });
    }
}

#[test]
fn number_and_length_of_the_parts_are_bounded() {
    let mut many = proof();
    many.updates = vec![many.updates[0].clone(); MAX_UPDATES + 1];
    assert_eq!(verified(&many), Err(LightClientTranscriptError::TooManyUpdates { observed: MAX_UPDATES + 1 }));
    let long = LightClientSyncTranscript { finality_update: vec![0; MAX_SSZ_BYTES + 1].into(), ..proof() };
    let error = LightClientError::TooLong { most: MAX_SSZ_BYTES, observed: MAX_SSZ_BYTES + 1 };
    assert_eq!(verified(&long), Err(LightClientTranscriptError::FinalityUpdate(error.clone())));
    let mut long = proof();
    long.updates[1] = vec![0; MAX_SSZ_BYTES + 1].into();
    assert_eq!(verified(&long), Err(LightClientTranscriptError::Update { position: 1, error }));
}

#[test]
fn signature_after_the_evidence_is_refused() {
    let at = |slot| verify_light_client_transcript(&proof(), proof().checkpoint, Chain::electra().spec, slot);
    assert!(at(231).is_ok());
    let future = LightClientError::SignatureInFuture { signature_slot: 231, current_slot: 230 };
    assert_eq!(at(230), Err(LightClientTranscriptError::FinalityUpdate(future)));
}

/// Changes one bit of each fifth byte of the parts, and of each byte of the checkpoint.
#[test]
fn each_byte_of_a_proof_counts() {
    let (genuine, header) = (proof(), verified(&proof()).expect("it is genuine"));
    fn parts(proof: &mut LightClientSyncTranscript) -> Vec<&mut Bytes> {
        let LightClientSyncTranscript { bootstrap, updates, finality_update, .. } = proof;
        [bootstrap].into_iter().chain(updates).chain([finality_update]).collect()
    }
    let mut without_meaning = Vec::new();
    for part in 0..4 {
        let length = parts(&mut genuine.clone())[part].len();
        for position in (0..length).step_by(5) {
            let mut changed = genuine.clone();
            let bytes = &mut parts(&mut changed)[part];
            let mut other = bytes.to_vec();
            other[position] ^= 1 << (position % 8);
            **bytes = other.into();
            if let Ok(observed) = verified(&changed) {
                assert_eq!(observed, header, "part {part}, byte {position}");
                without_meaning.push((part, position));
            }
        }
        for length in [0, 1, 4, length - 1] {
            let mut cut = genuine.clone();
            let bytes = &mut parts(&mut cut)[part];
            **bytes = bytes.slice(..length);
            assert!(verified(&cut).is_err(), "part {part}, the first {length} bytes");
        }
    }
    println!("without meaning: {without_meaning:?}");
    assert!(without_meaning.len() <= 4, "{without_meaning:?}");
    for position in 0..32 {
        let mut changed = genuine.clone();
        changed.checkpoint.0[position] ^= 1;
        assert!(verified(&changed).is_err_and(|error| error.is_disconnected_from_checkpoint()), "byte {position}");
    }
}

#[test]
fn mainnet_responses_are_a_proof() {
    let Some(mainnet) = Mainnet::read() else { return };
    let proof = LightClientSyncTranscript {
        checkpoint: mainnet.checkpoint,
        bootstrap: mainnet.bootstrap.to_ssz(ConsensusFork::Capella).into(),
        updates: mainnet.updates.iter().map(|update| update.to_ssz(ConsensusFork::Capella).into()).collect(),
        finality_update: mainnet.finality.to_ssz(ConsensusFork::Capella).into(),
    };
    let header =
        verify_light_client_transcript(&proof, mainnet.checkpoint, mainnet.spec, CURRENT_SLOT).expect("it is genuine");
    assert_eq!((header.slot(), header.block_number()), (7_109_344, 17_923_026));
    let longest = [&proof.bootstrap, &proof.finality_update].into_iter().chain(&proof.updates).map(|ssz| ssz.len());
    assert!(longest.max() <= Some(MAX_SSZ_BYTES * 9 / 10), "there is room for later forks");
}
