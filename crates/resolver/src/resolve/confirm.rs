//! Confirms verdicts at the newest block: rereads the records of a verdict at the head of the chain, and evicts
//! verdicts that the chain contradicts.
//!
//! All callers that wait for one name at one head share a reading, which belongs to none of them. Concurrent readings
//! share calls.

use std::sync::Arc;
use std::time::Duration;

use clresolve_chain::{ChainHeadReader, NameStateAtHead};
use clresolve_core::name::EnsName;
use clresolve_core::reading::ChainBlock;
use clresolve_core::reason::RefusalCode;
use clresolve_core::state::TrustState;
use clresolve_verdict::trust::Resolution;
use futures_util::future::FutureExt as _;
use tokio::time::Instant;

use super::cached::CachingResolver;
use super::question::VerdictRules;
use super::readings::{
    ChainHeadFuture, HeadConfirmationOutcome, InFlightReadingGuard, LastHeadRequest, NameReadingFuture,
};
use super::walk::ResolutionRequest;
use crate::cache::{FinishedResolution, HeadLogEntry, HeadSequenceNumber, VerdictCacheKey, is_confirming_reading};
use crate::telemetry::{self, EvictionCause, NameRereadOutcome};

/// Maximum number of confirmations or replacements for one question: a change leads to one more resolution.
const ROUNDS: usize = 2;

/// Minimum time between two requests for the head outside the polls. It bounds the load of questions on the endpoints
/// while too few of them answer.
const HEAD_PAUSE: Duration = Duration::from_secs(1);

impl CachingResolver {
    /// Returns `resolution`, or that of a later run, with its standing at the newest block. Reads the chain if its
    /// verdict has one of `states` and is unconfirmed there.
    pub(super) async fn confirm_resolution(
        &self,
        resolution: Resolution,
        rules: &VerdictRules,
        states: &[TrustState],
    ) -> Resolution {
        if self.unconfirmed_key(&resolution, rules, states).is_none() {
            return resolution;
        }
        // Boxed, so that the future of a confirmed verdict is small.
        Box::pin(self.confirm_or_resolve(resolution, rules, states)).await
    }

    async fn confirm_or_resolve(
        &self,
        mut resolution: Resolution,
        rules: &VerdictRules,
        states: &[TrustState],
    ) -> Resolution {
        for _ in 0..ROUNDS {
            let began = self.cache.snapshot_resolution_start();
            let Some(key) = self.unconfirmed_key(&resolution, rules, states) else { return resolution };
            if self.is_evicted(&key.name, &resolution) {
                resolution = self.resolve(key.name.as_str(), rules).await;
                continue;
            }
            // Without endpoints of its own, or for off-chain records, only another run can confirm it.
            if self.walker.heads.is_none() || self.cache.needs_new_resolution(&key, self.walker.now()).await {
                if self.cache.is_backed_off(&key, self.walker.now()).await {
                    return resolution;
                }
                resolution = self.resolve_changed_name(&key.name, rules).await;
                continue;
            }
            match self.is_confirmed_at_head(&key, rules, &resolution).await {
                Ok(true) if self.cache.is_unevicted_since(&key.name, began) => {
                    return resolution.with_newest_block_confirmation(Ok(()));
                }
                Ok(_) => resolution = self.resolve(key.name.as_str(), rules).await,
                Err(refusal) => return resolution.with_newest_block_confirmation(Err(refusal)),
            }
        }
        resolution
    }

    /// Compares a trusted verdict with the newest head that is followed, unless its records were read up to there.
    /// Fetching content can take seconds, and shared evidence is older still.
    pub(super) async fn compare_with_head(
        &self,
        request: &ResolutionRequest,
        found: &FinishedResolution,
    ) -> HeadConfirmationOutcome {
        let (ResolutionRequest { key, rules, .. }, resolution) = (request, &found.resolution);
        let is_of_now = key.block.number().is_none() && self.cache.heads.follows_heads();
        let Some(reader) = self.walker.heads.as_ref().filter(|_| is_of_now) else {
            return HeadConfirmationOutcome::Not;
        };
        if resolution.verdict().state != TrustState::Trusted {
            return HeadConfirmationOutcome::Not;
        }
        let at = if found.reads_chain { self.followed_block() } else { self.block_for_reading(reader).await };
        let Some(at) = at.ok().filter(|at| resolution.newest_block() < Some(at.block.number)) else {
            return HeadConfirmationOutcome::Not;
        };
        match (self.join_or_start_reading(reader, key, rules, at).await, at.id) {
            (Some(later), _) if !is_confirming_reading(&later, resolution) => HeadConfirmationOutcome::Changed,
            (Some(_), Some(head)) => HeadConfirmationOutcome::Confirmed(head),
            _ => HeadConfirmationOutcome::Not,
        }
    }

    /// `resolution`, which a caller has kept for a while, with its current standing.
    pub(super) async fn with_current_confirmation(&self, resolution: Resolution, rules: &VerdictRules) -> Resolution {
        let name = resolution.verdict().name.normalized.as_deref().and_then(|name| EnsName::parse(name).ok());
        let is_trusted = resolution.verdict().state == TrustState::Trusted;
        match name.filter(|_| is_trusted && self.cache.heads.follows_heads()) {
            Some(name) => {
                let (key, now) = (self.cache_key(name, rules), self.walker.now());
                self.cache.with_current_confirmation(&key, resolution, self.head_confirmation_limits(), now).await
            }
            None => resolution,
        }
    }

    /// Whether the name was evicted after the run of `resolution` began.
    fn is_evicted(&self, name: &EnsName, resolution: &Resolution) -> bool {
        let checked_at = resolution.verdict().freshness.checked_at;
        self.cache.last_eviction_time(name).is_some_and(|at| at > checked_at)
    }

    /// The key of a resolution in one of `states` that a reading may confirm.
    fn unconfirmed_key(
        &self,
        resolution: &Resolution,
        rules: &VerdictRules,
        states: &[TrustState],
    ) -> Option<VerdictCacheKey> {
        let verdict = resolution.verdict();
        let is_of_now = self.walker.config.chain.block.number().is_none();
        let is_open = states.contains(&verdict.state) && resolution.newest_block_confirmation().is_err() && is_of_now;
        let name = verdict.name.normalized.as_deref().filter(|_| is_open)?;
        Some(self.cache_key(EnsName::parse(name).ok()?, rules))
    }

    /// Whether the head confirms `resolution`.
    ///
    /// # Errors
    /// [`RefusalCode::Unconfirmed`] if the head cannot be read, [`RefusalCode::HeadStalled`] if it is too
    /// old.
    async fn is_confirmed_at_head(
        &self,
        key: &VerdictCacheKey,
        rules: &VerdictRules,
        resolution: &Resolution,
    ) -> Result<bool, RefusalCode> {
        let reader = self.walker.heads.as_ref().ok_or(RefusalCode::Unconfirmed)?;
        let at = self.block_for_reading(reader).await?;
        let found = self.join_or_start_reading(reader, key, rules, at).await.ok_or(RefusalCode::Unconfirmed)?;
        Ok(is_confirming_reading(&found, resolution))
    }

    /// The head at which a name may be read now: the one that is followed, or else the one that endpoints report on
    /// request.
    async fn block_for_reading(&self, reader: &Arc<dyn ChainHeadReader>) -> Result<NameReadingBlock, RefusalCode> {
        if let Ok(at) = self.followed_block() {
            return Ok(at);
        }
        let head = self.request_head(reader).await.ok_or(RefusalCode::Unconfirmed)?;
        if self.cache.heads.follows_heads() {
            self.cache.heads.record_head(head);
            return self.followed_block();
        }
        self.head_confirmation_limits().check_head(&head, self.walker.now())?;
        Ok(NameReadingBlock { block: head.block, id: None })
    }

    fn followed_block(&self) -> Result<NameReadingBlock, RefusalCode> {
        self.followed_head().map(|seen| NameReadingBlock { block: seen.head.block, id: Some(seen.id) })
    }

    /// The newest head that is followed, if it confirms what is read there.
    ///
    /// # Errors
    /// [`RefusalCode::Unconfirmed`] if there is none, [`RefusalCode::HeadStalled`] if it is too old.
    pub(super) fn followed_head(&self) -> Result<HeadLogEntry, RefusalCode> {
        let heads = &self.cache.heads;
        let seen = heads.newest_head().ok_or(RefusalCode::Unconfirmed)?;
        heads.check_confirmation(Some(seen.id), self.head_confirmation_limits(), self.walker.now())?;
        Ok(seen)
    }

    /// The head that endpoints report. Concurrent callers share the answer. While heads are followed, the last answer
    /// is reused for [`HEAD_PAUSE`].
    fn request_head(&self, reader: &Arc<dyn ChainHeadReader>) -> ChainHeadFuture {
        let mut last = self.readings.lock_last_head_request();
        let pause = if self.cache.heads.follows_heads() { HEAD_PAUSE } else { Duration::ZERO };
        let is_recent = |last: &&LastHeadRequest| !last.task.is_finished() || last.at.elapsed() < pause;
        if let Some(last) = last.as_ref().filter(is_recent) {
            return last.answer.clone();
        }
        let reader = Arc::clone(reader);
        let report = |error: &_| tracing::debug!(%error, "there is no head");
        let asking = tokio::spawn(async move { reader.newest_head().await.inspect_err(report).ok() });
        let task = asking.abort_handle();
        let answer = asking.map(|ended| ended.ok().flatten()).boxed().shared();
        *last = Some(LastHeadRequest { at: Instant::now(), task, answer: answer.clone() });
        answer
    }

    /// Reads a name at a head, or joins the reading in flight. A name in the cache that the head contradicts is evicted
    /// and resolved again.
    pub(super) fn join_or_start_reading(
        &self,
        reader: &Arc<dyn ChainHeadReader>,
        key: &VerdictCacheKey,
        rules: &VerdictRules,
        at: NameReadingBlock,
    ) -> NameReadingFuture {
        let place = (key.name.clone(), at.block.hash);
        let mut readings = self.readings.lock_readings();
        if let Some(reading) = readings.get(&place) {
            return reading.clone();
        }
        let (this, reader, key, rules) = (self.clone(), Arc::clone(reader), key.clone(), rules.clone());
        let under_way = place.clone();
        let task = tokio::spawn(async move {
            let _under_way = InFlightReadingGuard { readings: Arc::clone(&this.readings), place: under_way };
            match reader.read_name_state(&key.name, &at.block).await.map(Arc::new) {
                Ok(found) => {
                    this.apply_reading(&key, &rules, at, &found).await;
                    Some(found)
                }
                Err(error) => {
                    tracing::debug!(name = key.name.as_str(), %error, "name is not read at the head");
                    telemetry::count_name_reread(NameRereadOutcome::Failed);
                    None
                }
            }
        });
        let reading = task.map(|ended| ended.ok().flatten()).boxed().shared();
        readings.insert(place, reading.clone());
        reading
    }

    async fn apply_reading(
        &self,
        key: &VerdictCacheKey,
        rules: &VerdictRules,
        at: NameReadingBlock,
        found: &NameStateAtHead,
    ) {
        let contradicted = self.cache.contradicted_pools(key, found, at.id, at.block.number).await;
        if contradicted.is_empty() {
            return telemetry::count_name_reread(NameRereadOutcome::Same);
        }
        telemetry::count_name_reread(NameRereadOutcome::Changed);
        telemetry::record_eviction_delay(self.walker.now().duration_since(at.block.timestamp));
        // First, so that evictions are counted before they become visible.
        contradicted.into_iter().for_each(|pool| telemetry::count_cache_eviction(pool, EvictionCause::Changed));
        self.evict_names([&key.name]);
        let (this, name, rules) = (self.clone(), key.name.clone(), rules.clone());
        tokio::spawn(async move {
            let _place = this.readings.acquire_replacement_permit().await;
            this.resolve(name.as_str(), &rules).await;
        });
    }
}

/// The block at which a name is read.
#[derive(Clone, Copy)]
pub(super) struct NameReadingBlock {
    pub(super) block: ChainBlock,
    /// Its identifier as a head, if heads are followed.
    pub(super) id: Option<HeadSequenceNumber>,
}
