//! Exports a resolution with all its evidence as a bundle.

use std::sync::{Arc, Mutex, PoisonError};

use clresolve_bundle::{BundleError, HeaderAndStateProof, ResolutionBundle, SignableBundle};
use clresolve_core::name::{EnsName, EnsNameError};
use clresolve_core::reading::{ChainError, NameReading, ProofGrade};
use clresolve_core::state::TrustState;
use clresolve_ipfs::VerifiedBlocks;
use tokio::time::timeout;

use super::question::VerdictRules;
use super::setup_error::SetupError;
use super::sources::ContentSources;
use super::spans::ResolutionSpanRecorder;
use super::walk::UncachedResolver;
use crate::cache::IpfsContentCache;

/// Resolves the name separately and packs the verdict into a bundle. Nothing from earlier resolutions is reused.
pub(super) async fn export_bundle(
    walker: &UncachedResolver,
    name: EnsName,
    rules: &VerdictRules,
) -> Result<SignableBundle, ExportError> {
    let kept = Arc::new(Mutex::new(VerifiedBlocks::default()));
    let (chain, recording) = walker.chain.with_proof_recorder().unzip();
    let mut config = walker.config.clone();
    // The bundle format does not include links.
    config.rules.links = false;
    let walker = UncachedResolver {
        chain: chain.unwrap_or_else(|| Arc::clone(&walker.chain)),
        sources: ContentSources {
            proven: IpfsContentCache::new(walker.config.cache.content_bytes),
            kept: Some(Arc::clone(&kept)),
            ..walker.sources.clone()
        },
        history: None,
        config,
        ..walker.clone()
    };
    let mut run = walker.gather_evidence(name, &rules.policy, None, &ResolutionSpanRecorder::without_trace()).await;
    run.evidence.misspelt_keys.clear();
    let mut chain =
        HeaderAndStateProof { header: None, state_proof: recording.and_then(|recording| recording.take_proof()) };
    if let Ok(reading) = &run.evidence.reading {
        let header = walker.chain.fetch_header_rlp(&reading.block, &reading.endpoints);
        chain.header = timeout(walker.config.timeout, header).await.ok().flatten();
        add_header_proof(&walker, reading, &mut chain).await?;
    }
    let blocks = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(ResolutionBundle::pack_resolution(&walker.verdict_context(&rules.profile, &rules.policy), &run, chain, &blocks)?)
}

/// Adds to the state proofs of a reading what proves its header, if a light client verified it.
pub(super) async fn add_header_proof(
    walker: &UncachedResolver,
    reading: &NameReading,
    chain: &mut HeaderAndStateProof,
) -> Result<(), ChainError> {
    let Some(state_proof) = chain.state_proof.as_mut().filter(|_| reading.proof.grade == ProofGrade::ConsensusProof)
    else {
        return Ok(());
    };
    let limit = walker.config.timeout;
    let milliseconds = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    let proof = timeout(limit, walker.chain.fetch_header_proof(&reading.block)).await;
    state_proof.light_client = proof.map_err(|_| ChainError::Late { milliseconds })??;
    Ok(())
}

/// Why a verdict cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The question names an unknown profile.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The input is not a name, so there is no evidence.
    #[error("this is not an ENS name: {0}")]
    Name(#[from] EnsNameError),
    /// The light client cannot show others what proves the block's header.
    #[error("the proof of the block's header is not available: {0}")]
    Header(#[from] ChainError),
    /// A bundle would not contain what is known of a purchase.
    #[error("the purchase cannot be exported: {why}")]
    Purchase {
        /// A description of the reason.
        why: String,
        /// The state of the receipt if it was judged, otherwise indeterminate.
        state: TrustState,
    },
    /// The evidence does not reproduce the verdict.
    #[error("the resolution cannot be replayed: {0}")]
    Bundle(#[from] BundleError),
}
