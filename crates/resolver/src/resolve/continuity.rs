//! Connects a resolution to the memory, which is read before a judgement and written after a trusted verdict.

use std::path::Path;

use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_core::state::TrustState;
use clresolve_messages::receipt::replay::{ReceiptReplayKey, ReceiptReplayStatus};
use clresolve_payment::check::{OriginMemoryEntry, WebOrigin};
use clresolve_verdict::evidence::ResolutionEvidence;
use clresolve_verdict::evidence::continuity::HistoryOutcome;
use clresolve_verdict::verdict::Verdict;

use crate::config::Config;
pub(super) use crate::memory::ResolverMemoryError;
use crate::memory::{NameHistoryKey, OriginKey, ResolverMemory};

/// The memory, and which observations to store in it.
#[derive(Clone)]
pub(super) struct NameMemory {
    memory: ResolverMemory,
    world: String,
    chain_id: u64,
    /// Identifier of the configured profile. Verdicts under other profiles are not remembered.
    profile: String,
    receipts: u64,
}

impl NameMemory {
    /// The part of the same memory that stores sellers.
    pub(super) fn seller_memory(&self) -> SellerMemory {
        SellerMemory { memory: self.memory.clone(), world: self.world.clone(), chain_id: self.chain_id }
    }

    /// Opens the memory in the file at `path`.
    pub(super) fn open(path: &Path, config: &Config) -> Result<Self, ResolverMemoryError> {
        let memory = ResolverMemory::open(path, config.memory.names)?;
        let (world, chain_id) = (config.chain.world.clone(), config.chain.id);
        Ok(Self { memory, world, chain_id, profile: config.rules.profile.clone(), receipts: config.memory.receipts })
    }

    /// Returns what is remembered of the name. The memory is not read for a block chosen by number, which may be older
    /// than every observation.
    pub(super) async fn recall_history(&self, evidence: &ResolutionEvidence) -> HistoryOutcome {
        if evidence.resolved_records().is_none() || matches!(evidence.block, BlockSelector::Number(_)) {
            return HistoryOutcome::NotAsked;
        }
        match self.memory.recall_history(self.history_key(&evidence.name)).await {
            Ok(history) => HistoryOutcome::Recalled(history),
            Err(error) => HistoryOutcome::Unavailable(error.to_string()),
        }
    }

    /// Stores what a resolution observed.
    ///
    /// Only a trusted verdict under the configured profile and at a finalized block is remembered. A verdict that rests
    /// on a single endpoint is remembered only if the operator runs that endpoint. Otherwise a party that can write to
    /// the memory could later make it warn about the honest card.
    pub(super) async fn remember_verdict(
        &self,
        evidence: &ResolutionEvidence,
        verdict: &Verdict,
    ) -> Result<(), ResolverMemoryError> {
        let is_lasting = matches!(evidence.block, BlockSelector::Finalized | BlockSelector::Pinned(_))
            && (verdict.state == TrustState::Trusted || clresolve_core::mutant!("falsehoods-are-remembered"))
            && verdict.profile.id == self.profile
            && evidence.reading.as_ref().is_ok_and(|reading| {
                !reading.proof.relies_on_single_third_party() || clresolve_core::mutant!("strangers-are-remembered")
            });
        let HistoryOutcome::Recalled(known) = &evidence.continuity else { return Ok(()) };
        let Some(sighting) = evidence.name_observation().filter(|_| is_lasting) else { return Ok(()) };
        if known.with_observation(&sighting).is_none() {
            return Ok(());
        }
        self.memory.remember_observation(self.history_key(&evidence.name), sighting).await
    }

    /// Records that a valid receipt was presented for its request.
    pub(super) async fn mark_receipt_as_seen(
        &self,
        mark: ReceiptReplayKey,
    ) -> Result<ReceiptReplayStatus, ResolverMemoryError> {
        self.memory.mark_receipt_as_seen(&self.world, self.chain_id, mark, self.receipts).await
    }

    fn history_key(&self, name: &EnsName) -> NameHistoryKey {
        NameHistoryKey::new(&self.world, self.chain_id, name)
    }
}

/// What is remembered about sellers, by origin.
#[derive(Clone)]
pub(super) struct SellerMemory {
    pub(super) memory: ResolverMemory,
    world: String,
    chain_id: u64,
}

impl SellerMemory {
    /// The memory of a sandbox without a file, with its initial entries.
    #[cfg(feature = "sandbox")]
    pub(super) fn for_sandbox(config: &Config) -> Result<Self, ResolverMemoryError> {
        let memory = ResolverMemory::in_memory(config.memory.names)?;
        let sellers = Self { memory, world: config.chain.world.clone(), chain_id: config.chain.id };
        let entries = crate::sandbox::Sandbox::initial_origin_memory();
        sellers.memory.seed_origins(entries.into_iter().map(|(origin, entry)| (sellers.origin_key(&origin), entry)))?;
        Ok(sellers)
    }

    pub(super) async fn recall_origin(&self, origin: &WebOrigin) -> Result<OriginMemoryEntry, ResolverMemoryError> {
        self.memory.recall_origin(self.origin_key(origin)).await
    }

    /// Adds what a check found about an origin. Returns what is remembered afterwards.
    pub(super) async fn remember_origin(
        &self,
        origin: &WebOrigin,
        noted: OriginMemoryEntry,
    ) -> Result<OriginMemoryEntry, ResolverMemoryError> {
        self.memory.remember_origin(self.origin_key(origin), noted).await
    }

    fn origin_key(&self, origin: &WebOrigin) -> OriginKey {
        OriginKey::new(&self.world, self.chain_id, origin)
    }
}
