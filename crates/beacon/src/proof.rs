//! Replays what a light client received, so that a reader who names a checkpoint can verify the header.

use alloy_primitives::B256;
pub use clresolve_core::light_client::LightClientSyncTranscript;

use crate::codec::{LightClientCodec, MAX_UPDATES, fork_of_first_header};
use crate::containers::{LightClientBootstrap, LightClientFinalityUpdate, LightClientUpdate};
use crate::error::LightClientError;
use crate::header::VerifiedBeaconHeader;
use crate::spec::ChainSpec;
use crate::store::LightClientStore;

/// Longest SSZ of one object in bytes. An update of mainnet has about 26,700, most of them keys.
pub const MAX_SSZ_BYTES: usize = 32 * 1024;

/// Why a [`LightClientSyncTranscript`] does not prove a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LightClientTranscriptError {
    /// The proof starts from another block than the reader trusts.
    #[error("the proof starts from the checkpoint {observed}, not from yours; name that one if you trust it")]
    OtherCheckpoint {
        /// The block root that the reader trusts.
        expected: B256,
        /// The block root that the proof starts from.
        observed: B256,
    },
    /// A sync committee between the checkpoint and the header is missing.
    #[error("the updates do not lead from the checkpoint to the header: {0}")]
    Gap(LightClientError),
    /// More updates than a proof may have.
    #[error("the proof has {observed} updates; at most {MAX_UPDATES} are accepted")]
    TooManyUpdates {
        /// The number of updates.
        observed: usize,
    },
    /// The bootstrap violates a rule.
    #[error("the bootstrap: {0}")]
    Bootstrap(LightClientError),
    /// An update violates a rule.
    #[error("update {position}: {error}")]
    Update {
        /// Position in the list, counted from 0.
        position: usize,
        /// The rule.
        error: LightClientError,
    },
    /// The sync committees are known without this update.
    #[error("update {position} is not needed")]
    Unneeded {
        /// Position in the list, counted from 0.
        position: usize,
    },
    /// The finality update violates a rule.
    #[error("the finality update: {0}")]
    FinalityUpdate(LightClientError),
}

impl LightClientTranscriptError {
    /// Whether the proof may be valid, but has no path from the reader's checkpoint.
    pub const fn is_disconnected_from_checkpoint(&self) -> bool {
        matches!(self, Self::OtherCheckpoint { .. } | Self::Gap(_))
    }
}

/// The header that the proof finalizes, for a reader who trusts the block root `checkpoint`. A proof with an unneeded
/// update is refused.
///
/// The age of the checkpoint is not bounded: a reader of old evidence names an old checkpoint. `current_slot` is the
/// slot in which the evidence was gathered; later signatures are refused.
///
/// # Errors
/// [`LightClientTranscriptError`]: the first defect.
pub fn verify_light_client_transcript(
    proof: &LightClientSyncTranscript,
    checkpoint: B256,
    spec: ChainSpec,
    current_slot: u64,
) -> Result<VerifiedBeaconHeader, LightClientTranscriptError> {
    if proof.checkpoint != checkpoint && !clresolve_core::mutant!("proofs-bring-checkpoints") {
        return Err(LightClientTranscriptError::OtherCheckpoint { expected: checkpoint, observed: proof.checkpoint });
    }
    if proof.updates.len() > MAX_UPDATES && !clresolve_core::mutant!("endless-light-client-proofs") {
        return Err(LightClientTranscriptError::TooManyUpdates { observed: proof.updates.len() });
    }
    let mut store = store_from_transcript(proof, spec).map_err(LightClientTranscriptError::Bootstrap)?;
    for (position, update) in proof.updates.iter().enumerate() {
        let known = store.next_update_period();
        let processed = decode_ssz(update, store.spec())
            .and_then(|update: LightClientUpdate| store.process_update(&update, current_slot));
        processed.map_err(|error| {
            gap_error_or_refusal(error, |error| LightClientTranscriptError::Update { position, error })
        })?;
        if store.next_update_period() == known && !clresolve_core::mutant!("unneeded-updates-are-accepted") {
            return Err(LightClientTranscriptError::Unneeded { position });
        }
    }
    let finalized = decode_ssz(&proof.finality_update, store.spec())
        .and_then(|update: LightClientFinalityUpdate| store.process_finality_update(&update, current_slot));
    finalized.map_err(|error| gap_error_or_refusal(error, LightClientTranscriptError::FinalityUpdate))?;
    Ok(store.finalized_header())
}

fn store_from_transcript(
    proof: &LightClientSyncTranscript,
    spec: ChainSpec,
) -> Result<LightClientStore, LightClientError> {
    let bootstrap: LightClientBootstrap = decode_ssz(&proof.bootstrap, &spec)?;
    LightClientStore::from_bootstrap(spec, proof.checkpoint, bootstrap)
}

/// Decodes SSZ in the layout of its fork, which follows from the slot of its first header.
fn decode_ssz<T: LightClientCodec>(ssz: &[u8], spec: &ChainSpec) -> Result<T, LightClientError> {
    if ssz.len() > MAX_SSZ_BYTES {
        return Err(LightClientError::TooLong { most: MAX_SSZ_BYTES, observed: ssz.len() });
    }
    T::from_ssz(ssz, fork_of_first_header(ssz, spec)?, spec)
}

/// [`LightClientTranscriptError::Gap`] if a sync committee is missing, else what `refused` makes of the error.
fn gap_error_or_refusal(
    error: LightClientError,
    refused: impl FnOnce(LightClientError) -> LightClientTranscriptError,
) -> LightClientTranscriptError {
    match error {
        LightClientError::PeriodSkipped { .. } | LightClientError::NextCommitteeUnknown { .. } => {
            LightClientTranscriptError::Gap(error)
        }
        _ => refused(error),
    }
}
