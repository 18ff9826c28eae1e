//! Exports a resolution with all its evidence as a bundle.

use std::sync::{Arc, Mutex, PoisonError};

use clresolve_bundle::{Bundle, BundleError, OfChain, Packed};
use clresolve_core::name::{EnsName, NameError};
use clresolve_core::state::State;
use clresolve_ipfs::WalkedBlocks;

use super::question::RuleSet;
use super::setup::SetupError;
use super::sources::ContentSources;
use super::spans::RunSpans;
use super::walk::Walker;
use crate::cache::ContentCache;

/// Resolves the name separately and packs the verdict into a bundle. Nothing from earlier resolutions is reused.
pub(super) async fn export(walker: &Walker, name: EnsName, rules: &RuleSet) -> Result<Packed, ExportError> {
    let kept = Arc::new(Mutex::new(WalkedBlocks::default()));
    let (chain, recording) = walker.chain.recording().unzip();
    let mut config = walker.config.clone();
    // The bundle format does not include links.
    config.rules.links = false;
    let walker = Walker {
        chain: chain.unwrap_or_else(|| Arc::clone(&walker.chain)),
        sources: ContentSources {
            proven: ContentCache::new(walker.config.cache.content_bytes),
            kept: Some(Arc::clone(&kept)),
            ..walker.sources.clone()
        },
        history: None,
        config,
        ..walker.clone()
    };
    let mut run = walker.gather(name, &rules.policy, None, &RunSpans::none()).await;
    run.evidence.misspelt_keys.clear();
    let header = match &run.evidence.reading {
        Ok(reading) => {
            let header = walker.chain.header(&reading.block, &reading.endpoints);
            tokio::time::timeout(walker.config.timeout, header).await.ok().flatten()
        }
        Err(_) => None,
    };
    let blocks = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    let chain = OfChain { header, state_proof: recording.and_then(|recording| recording.take()) };
    Ok(Bundle::pack(&walker.reporter(&rules.profile, &rules.policy), &run, chain, &blocks)?)
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
    Name(#[from] NameError),
    /// A bundle would not contain what is known of a purchase.
    #[error("the purchase cannot be shown again: {why}")]
    Purchase {
        /// A description of the reason.
        why: String,
        /// The state of the receipt if it was judged, otherwise indeterminate.
        state: State,
    },
    /// The evidence does not reproduce the verdict.
    #[error("the resolution cannot be replayed: {0}")]
    Bundle(#[from] BundleError),
}
