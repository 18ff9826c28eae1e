//! Runs a resolution: name, records, card, proof, verdict.
//!
//! [`UncachedResolver`] reads the chain, fetches the content that the records name, passes the [`ResolutionEvidence`]
//! to the pure checks and builds the verdict. It collects all reasons. It skips a step only if an earlier result makes
//! the step irrelevant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clresolve_bundle::BundleTrustAnchors;
use clresolve_chain::{ChainHeadReader, EnsReader};
use clresolve_core::name::EnsName;
use clresolve_core::reading::{ChainError, EnsAnswer, NameReading, ResolvedRecords};
use clresolve_core::reason::ResolutionStep;
use clresolve_core::records::{TextRecord, TextRecordKey};
use clresolve_core::state::TrustState;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::build::{self, EvidenceWithStepDurations};
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::evidence::continuity::HistoryOutcome;
use clresolve_verdict::evidence::links::{self, ExternalLinks, RegisteredAgentId, RegistrationFile};
use clresolve_verdict::evidence::{
    CardLocations, ClOwnerEvidence, ClOwnerReadError, HttpsOutcome, IpfsWalkOutcome, RecordUsability,
    ResolutionEvidence,
};
use clresolve_verdict::incident::SecurityIncident;
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::{ResolutionDepth, StepStatus, Verdict};
use futures_util::future::OptionFuture;
use jiff::Timestamp;
use tokio::time::Instant;

use super::consensus::LightClient;
use super::content::LyingGateways;
use super::continuity::{NameMemory, ResolverMemoryError, SellerMemory};
use super::progress::StepEventChannel;
use super::question::VerdictRules;
use super::sources::{ContentFetchResults, ContentSources, elapsed_milliseconds, run_timed};
use super::spans::{ResolutionSpanRecorder, TraceQueue};
use super::turns::ConcurrentNameLimit;
use super::upstream::ChainRpcUpstream;
use crate::cache::{
    EarlierResults, FinishedResolution, ResolutionStartSnapshot, ReusableContent, VerdictCache, VerdictCacheKey,
};
use crate::clock::Clock;
use crate::config::Config;
use crate::cpu_pool::CpuPool;
use crate::telemetry::{self, INCIDENTS};

/// The share of the remaining time that the sources of the card and the schemas may use. The rest is reserved, so that
/// a stalling source leads to a verdict and not to a timeout.
const CONTENT_SHARE: f64 = 0.9;

/// The share of the whole time limit that the chain may use, for the same reason.
const CHAIN_SHARE: f64 = 0.6;

#[derive(Clone)]
pub(super) struct UncachedResolver {
    pub(super) chain: Arc<dyn EnsReader>,
    /// The endpoints behind `chain`, if it has any.
    pub(super) upstream: Option<ChainRpcUpstream>,
    /// The reader of the head of `chain`, if it has endpoints.
    pub(super) heads: Option<Arc<dyn ChainHeadReader>>,
    /// The light client that supplies the headers of `chain`, if any.
    pub(super) light_client: Option<Arc<LightClient>>,
    pub(super) sources: ContentSources,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) profiles: ConformanceProfiles,
    /// What earlier resolutions observed, if a memory is configured.
    pub(super) history: Option<NameMemory>,
    /// What is remembered about sellers, if a memory is configured.
    pub(super) seller_memory: Option<SellerMemory>,
    pub(super) config: Config,
    /// Digest of the sources that answers come from.
    pub(super) world: Arc<str>,
    pub(super) pool: Arc<CpuPool>,
    pub(super) progress: StepEventChannel,
    /// Permits for querying content sources.
    pub(super) turns: ConcurrentNameLimit,
    pub(super) traces: TraceQueue,
}

/// A resolution that the cache requests.
#[derive(Clone)]
pub(super) struct ResolutionRequest {
    pub(super) key: VerdictCacheKey,
    pub(super) rules: VerdictRules,
    /// Results of earlier resolutions. Content is reused if the records are unchanged.
    pub(super) before: EarlierResults,
    pub(super) cache: Arc<VerdictCache>,
}

impl UncachedResolver {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) async fn resolve(self: &Arc<Self>, request: &ResolutionRequest) -> FinishedResolution {
        let _running = telemetry::track_running_resolution();
        let began = request.cache.snapshot_resolution_start();
        let spans = self.traces.begin_recorder(&*self.clock);
        let run = self.gather_request_evidence(request, &spans).await;
        let (_, found) = self.judge_and_report(run, request, began).await;
        spans.send_trace(found.resolution.verdict());
        found
    }

    pub(super) async fn gather_request_evidence(
        &self,
        request: &ResolutionRequest,
        spans: &ResolutionSpanRecorder,
    ) -> EvidenceWithStepDurations {
        let ResolutionRequest { key, rules, before, .. } = request;
        self.gather_evidence(key.name.clone(), &rules.policy, before.content.as_deref(), spans).await
    }

    /// Like [`UncachedResolver::judge_and_remember`]. Also counts and logs the verdict.
    pub(super) async fn judge_and_report(
        self: &Arc<Self>,
        run: EvidenceWithStepDurations,
        request: &ResolutionRequest,
        began: ResolutionStartSnapshot,
    ) -> (EvidenceWithStepDurations, FinishedResolution) {
        let (run, found) = self.judge_and_remember(run, request, began).await;
        report_verdict(found.resolution.verdict());
        (run, found)
    }

    /// Builds the verdict of a resolution that began at `began`, and remembers it. If the name was evicted in the
    /// meantime, the reading at the newest block counts as failed.
    pub(super) async fn judge_and_remember(
        self: &Arc<Self>,
        run: EvidenceWithStepDurations,
        request: &ResolutionRequest,
        began: ResolutionStartSnapshot,
    ) -> (EvidenceWithStepDurations, FinishedResolution) {
        let ResolutionRequest { key, rules, before, cache } = request;
        let (mut run, mut resolution) = self.judge_evidence(run, rules, before.failures).await;
        if let Err(error) = self.remember_verdict(&run.evidence, resolution.verdict()).await {
            run.evidence.continuity = run.evidence.continuity.with_store_failure(error.to_string());
            (run, resolution) = self.judge_evidence(run, rules, before.failures).await;
        }
        let mut is_overtaken = false;
        if !cache.is_unevicted_since(&key.name, began)
            && let Ok(reading) = &mut run.evidence.reading
            && !clresolve_core::mutant!("overtaken-runs-answer")
        {
            is_overtaken = true;
            reading.latest = Some(Err(evicted_during_resolution_error()));
            (run, resolution) = self.judge_evidence(run, rules, before.failures).await;
        }
        let is_trusted = resolution.verdict().state == TrustState::Trusted;
        let content = ReusableContent::from_evidence(&run).filter(|_| is_trusted).map(Arc::new);
        (run, FinishedResolution { content, is_overtaken, reads_chain: true, ..resolution.into() })
    }

    /// Judges the evidence in the CPU pool, so that it does not block the threads that serve requests.
    pub(super) async fn judge_evidence(
        self: &Arc<Self>,
        run: EvidenceWithStepDurations,
        rules: &VerdictRules,
        failures: u32,
    ) -> (EvidenceWithStepDurations, Resolution) {
        let (walker, rules) = (Arc::clone(self), rules.clone());
        let judge = move || {
            let resolution =
                build::build_resolution(&walker.verdict_context(&rules.profile, &rules.policy), &run, failures);
            (run, resolution)
        };
        if clresolve_core::mutant!("judged-by-those-who-answer") {
            return judge();
        }
        self.pool.run(judge).await
    }

    pub(super) fn verdict_context<'a>(
        &'a self,
        profile: &'a ConformanceProfile,
        policy: &'a JudgementPolicy,
    ) -> build::VerdictContext<'a> {
        build::VerdictContext {
            world: &self.config.chain.world,
            chain_id: self.config.chain.id,
            profiles: &self.profiles,
            profile,
            policy,
        }
    }

    /// What this process trusts when it verifies a bundle.
    pub(super) fn trust_anchors(&self) -> BundleTrustAnchors<'_> {
        BundleTrustAnchors { profiles: &self.profiles, checkpoint: self.config.beacon.checkpoint }
    }

    /// Gathers all evidence about a name. If content of an earlier resolution is given and still valid, it is reused.
    pub(super) async fn gather_evidence(
        &self,
        name: EnsName,
        policy: &JudgementPolicy,
        earlier: Option<&ReusableContent>,
        spans: &ResolutionSpanRecorder,
    ) -> EvidenceWithStepDurations {
        let started = Instant::now();
        let deadline = started + self.config.timeout;
        let watched = self.progress.sender_for_name(&name, spans);
        let reading = watched
            .run_step(ResolutionStep::Records, self.read_records(&name, deadline), |read| {
                Some(records_step_status(read))
            })
            .await;
        let mut milliseconds = BTreeMap::from([(ResolutionStep::Records, elapsed_milliseconds(started))]);
        let mut evidence = ResolutionEvidence {
            name,
            now: self.now(),
            chain_id: self.config.chain.id,
            block: self.config.chain.block,
            reading,
            owner: ClOwnerEvidence::NotAsked,
            https: HttpsOutcome::NotAsked,
            ipfs: IpfsWalkOutcome::NotAsked,
            mirror: IpfsWalkOutcome::NotAsked,
            liars: Vec::new(),
            schemas: None,
            continuity: HistoryOutcome::NotAsked,
            links: None,
            misspelt_keys: Vec::new(),
        };
        evidence.continuity = self.recall_history(&evidence).await;
        let (Ok(reading), Some(found)) = (&evidence.reading, evidence.resolved_records()) else {
            return EvidenceWithStepDurations { evidence, milliseconds, content_fetched_at: None };
        };
        let earlier = earlier.filter(|earlier| earlier.is_reusable_for(reading, evidence.now));

        let (progress, limit) = (self.progress.sender_for_name(&evidence.name, spans), content_time_limit(deadline));
        let binding = async {
            tokio::join!(
                self.read_owner(found, reading, limit),
                OptionFuture::from(self.config.rules.links.then(|| self.read_backlinks(
                    &evidence.name,
                    found,
                    reading,
                    limit
                ))),
                self.find_misspelt_keys(&evidence.name, found, reading, limit),
            )
        };
        let content = async {
            let turn = self.turns.acquire_permit().await;
            let sources = match earlier {
                Some(earlier) => ContentFetchResults::from_reusable_content(earlier),
                None => self.sources.fetch_card_content(found, policy.require_all_sources, limit, progress).await,
            };
            (sources, turn)
        };
        let (((owner, links, misspelt_keys), binding_ms), (sources, turn)) =
            tokio::join!(run_timed(progress.run_step(ResolutionStep::Binding, binding, |_| None)), content);
        let deadline = deadline + turn.waited;
        milliseconds.extend(sources.milliseconds);
        milliseconds.insert(ResolutionStep::Binding, binding_ms);
        evidence.links = links;
        evidence.misspelt_keys = misspelt_keys;
        evidence.owner = owner;
        evidence.https = sources.https;
        evidence.ipfs = sources.ipfs.walked;
        evidence.mirror = sources.mirror.walked;
        evidence.liars = [sources.ipfs.liars, sources.mirror.liars].concat();

        if policy.depth == ResolutionDepth::Schemas {
            let started = Instant::now();
            let read = async {
                match earlier.map(ReusableContent::schemas) {
                    Some(Some(schemas)) => Some((self.sources.reuse_schemas(schemas).await, LyingGateways::new())),
                    Some(None) => None,
                    None => self.sources.fetch_schemas(&evidence, content_time_limit(deadline)).await,
                }
            };
            let schemas = spans.record_step(ResolutionStep::Schemas, read).await;
            if let Some((schemas, liars)) = schemas {
                evidence.schemas = Some(schemas);
                evidence.liars.extend(liars);
            }
            milliseconds.insert(ResolutionStep::Schemas, elapsed_milliseconds(started));
        }
        EvidenceWithStepDurations {
            evidence,
            milliseconds,
            content_fetched_at: earlier.map(ReusableContent::fetched_at),
        }
    }

    /// Reads the records of a name before `deadline`.
    pub(super) async fn read_records(&self, name: &EnsName, deadline: Instant) -> Result<NameReading, ChainError> {
        let limit = deadline.saturating_duration_since(Instant::now()).mul_f64(CHAIN_SHARE);
        let milliseconds = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let late = |_| Err(ChainError::Late { milliseconds });
        tokio::time::timeout(limit, self.chain.read_name(name, self.config.chain.block)).await.unwrap_or_else(late)
    }

    async fn read_owner(&self, found: &ResolvedRecords, reading: &NameReading, limit: Duration) -> ClOwnerEvidence {
        let Some(owner) = RecordUsability::from_record(&found.records, TextRecordKey::Owner).text() else {
            return ClOwnerEvidence::NotAsked;
        };
        let owner = match EnsName::parse(owner) {
            Ok(owner) => owner,
            Err(error) => return ClOwnerEvidence::NotAName(error.into()),
        };
        match tokio::time::timeout(limit, self.chain.read_cl_owner(&owner, &reading.block, &reading.endpoints)).await {
            Ok(Ok(holding)) => ClOwnerEvidence::Read(holding),
            Ok(Err(error)) => ClOwnerEvidence::Failed(ClOwnerReadError::from(error).into()),
            Err(_) => ClOwnerEvidence::Failed(ClOwnerReadError::Late.into()),
        }
    }

    /// Adds the evidence that a bundle does not contain: the remembered history of the name, links back to the card (if
    /// `rules.links` is set), and misspelt keys.
    #[cfg(feature = "redis")]
    pub(super) async fn add_unbundled_evidence(&self, evidence: &mut ResolutionEvidence) {
        evidence.continuity = self.recall_history(evidence).await;
        if let (true, Ok(reading), Some(found)) =
            (self.config.rules.links, &evidence.reading, evidence.resolved_records())
        {
            evidence.links = Some(self.read_backlinks(&evidence.name, found, reading, self.config.timeout).await);
        }
        if let (Ok(reading), Some(found)) = (&evidence.reading, evidence.resolved_records()) {
            evidence.misspelt_keys = self.find_misspelt_keys(&evidence.name, found, reading, self.config.timeout).await;
        }
    }

    /// Finds records that are set under misspelt variants of missing keys. Sends one request, in parallel with the
    /// requests for the content. Sends none if every key is set, if the name has no agent record, or if the records are
    /// off-chain, because the gateway would be queried once per key. Read errors are not reported, since nothing
    /// depends on the result.
    async fn find_misspelt_keys(
        &self,
        name: &EnsName,
        found: &ResolvedRecords,
        reading: &NameReading,
        limit: Duration,
    ) -> Vec<(TextRecordKey, &'static str)> {
        let is_missing = |key: &TextRecordKey| *found.records.get(*key) == TextRecord::Absent;
        if found.offchain || TextRecordKey::ALL.iter().all(is_missing) {
            return Vec::new();
        }
        let spellings = |key: TextRecordKey| key.misspellings().iter().map(move |spelt| (key, *spelt));
        let near: Vec<_> = TextRecordKey::CARD.into_iter().filter(is_missing).flat_map(spellings).collect();
        if near.is_empty() {
            return near;
        }
        let keys: Vec<_> = near.iter().map(|(_, spelt)| (*spelt).to_owned()).collect();
        let asked = self.chain.read_texts_at_block(name, &reading.block, &reading.endpoints, &keys);
        let records = tokio::time::timeout(limit, asked).await.ok().and_then(Result::ok).unwrap_or_default();
        let set = near.into_iter().zip(records).filter(|(_, record)| *record != TextRecord::Absent);
        set.map(|(near, _)| near).collect()
    }

    /// Reads the evidence that links back to the card. Failures, including timeouts, are returned as text.
    async fn read_backlinks(
        &self,
        name: &EnsName,
        found: &ResolvedRecords,
        reading: &NameReading,
        limit: Duration,
    ) -> ExternalLinks {
        let started = Instant::now();
        let texts = async |keys: Vec<String>, limit: Duration| {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let asked = self.chain.read_texts_at_block(name, &reading.block, &reading.endpoints, &keys);
            match tokio::time::timeout(limit, asked).await {
                Ok(Ok(records)) => Ok(keys.into_iter().zip(records).collect()),
                Ok(Err(error)) => Err(excerpt_text(&error.to_string())),
                Err(_) => Err("no answer in time".to_owned()),
            }
        };
        let url = links::registration_file_url(CardLocations::from_records(&found.records).url.as_deref());
        let file = async {
            let url = url.ok_or("the card's URL names no host")?;
            let body = self.sources.content.fetch_document(&url, limit / 2).await;
            body.map(|body| body.bytes).map_err(|error| excerpt_text(&error.to_string()))
        };
        let keys = links::KEYS.map(str::to_owned).into();
        let (records, file) = tokio::join!(texts(keys, limit), file);
        let entries = match file.clone() {
            Ok(bytes) => self.pool.run(move || RegistrationFile::parse(&bytes).ok()).await.unwrap_or_default(),
            Err(_) => RegistrationFile::default(),
        };
        let keys = entries.registrations.iter().map(RegisteredAgentId::ensip25_record_key).collect();
        let registrations = texts(keys, limit.saturating_sub(started.elapsed())).await;
        ExternalLinks { records, file, registrations }
    }

    async fn recall_history(&self, evidence: &ResolutionEvidence) -> HistoryOutcome {
        match &self.history {
            Some(history) => history.recall_history(evidence).await,
            None => HistoryOutcome::NotAsked,
        }
    }

    async fn remember_verdict(
        &self,
        evidence: &ResolutionEvidence,
        verdict: &Verdict,
    ) -> Result<(), ResolverMemoryError> {
        match &self.history {
            Some(history) => history.remember_verdict(evidence, verdict).await,
            None => Ok(()),
        }
    }
}

/// The status of the records step before judgement: whether the reading found records to judge.
const fn records_step_status(reading: &Result<NameReading, ChainError>) -> StepStatus {
    match reading {
        Ok(NameReading { answer: EnsAnswer::Records(_), .. }) => StepStatus::Pass,
        _ => StepStatus::Unknown,
    }
}

/// The error that replaces the reading at the newest block if the name was evicted during the resolution.
fn evicted_during_resolution_error() -> ChainError {
    let detail = "the name was evicted while it was read".to_owned();
    ChainError::BlockUnavailable { block: "latest".to_owned(), detail }
}

/// The time that the content sources have until `deadline`.
fn content_time_limit(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).mul_f64(CONTENT_SHARE)
}

/// Counts and logs the verdict of a resolution, and its incidents.
pub(super) fn report_verdict(verdict: &Verdict) {
    telemetry::count_verdict(verdict.state.as_str());
    log_verdict(verdict);
    log_incidents(verdict);
}

/// Logs one event for each incident in the verdict of a resolution. The message is JSON.
fn log_incidents(verdict: &Verdict) {
    if tracing::enabled!(target: INCIDENTS, tracing::Level::INFO) && !clresolve_core::mutant!("incidents-are-silent") {
        for incident in SecurityIncident::from_verdict(verdict) {
            tracing::info!(target: INCIDENTS, "{}", incident.to_line());
        }
    }
}

/// Logs one line for the verdict of a resolution, and one more for each step.
fn log_verdict(verdict: &Verdict) {
    let name = verdict.name.normalized.as_deref().unwrap_or_default();
    let codes: Vec<_> = verdict.reasons.iter().map(|reason| reason.code.slug()).collect();
    tracing::info!(name, state = %verdict.state, codes = codes.join(","), id = verdict.id, "verdict");
    for step in &verdict.steps {
        tracing::debug!(name, step = %step.step, status = ?step.status, ms = step.ms, "step");
    }
}

#[cfg(all(test, feature = "sandbox"))]
mod tests {
    use super::*;
    use crate::resolve::Resolver;
    use crate::resolve::tests::stalled;
    use crate::sandbox::Sandbox;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_owner_that_is_not_read_in_time_is_not_known() {
        let sandbox = Sandbox::start().await.expect("it starts");
        let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
        let walker = &resolver.0.walker;
        let name = EnsName::parse("summarizeagent.eth").expect("a name");
        let reading = walker.chain.read_name(&name, walker.config.chain.block).await.expect("an endpoint answers");
        let EnsAnswer::Records(found) = &reading.answer else { panic!("{reading:?}") };
        assert!(matches!(walker.read_owner(found, &reading, walker.config.timeout).await, ClOwnerEvidence::Read(_)));
        let (_world, stalled) = stalled().await;
        let owner = stalled.0.walker.read_owner(found, &reading, Duration::ZERO).await;
        assert_eq!(owner, ClOwnerEvidence::Failed(ClOwnerReadError::Late.into()));
    }
}
