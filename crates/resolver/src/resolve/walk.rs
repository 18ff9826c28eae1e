//! Runs a resolution: name, records, card, proof, verdict.
//!
//! The walker reads the chain, fetches what the records name, passes the [`Evidence`] to the pure checks and builds the
//! verdict. It collects all reasons. It skips a step only if an earlier result makes the step irrelevant.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clresolve_bundle::TrustAnchors;
use clresolve_chain::{Chain, Heads};
use clresolve_core::name::EnsName;
use clresolve_core::reading::{Answer, ChainError, Found, Reading};
use clresolve_core::reason::Step;
use clresolve_core::records::{Key, Record};
use clresolve_core::state::State;
use clresolve_core::text::excerpt;
use clresolve_verdict::build::{self, Run};
use clresolve_verdict::check::Policy;
use clresolve_verdict::evidence::continuity::Continuity;
use clresolve_verdict::evidence::links::{self, Links, Registration, RegistrationFile};
use clresolve_verdict::evidence::{Evidence, IpfsOutcome, OwnerEvidence, OwnerFault, Source, Targets, Usable};
use clresolve_verdict::incident::Incident;
use clresolve_verdict::profile::{Profile, Profiles};
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::{Depth, Status, Verdict};
use futures_util::future::OptionFuture;
use jiff::Timestamp;
use tokio::time::Instant;

use super::consensus::LightClient;
use super::content::Liars;
use super::continuity::{History, MemoryError, SellerMemory};
use super::progress::Progress;
use super::question::RuleSet;
use super::sources::{ContentSources, Sources, elapsed, timed};
use super::spans::{RunSpans, TraceQueue};
use super::turns::Turns;
use super::upstream::Upstream;
use crate::cache::{Before, Began, CacheKey, Finished, ProvenContent, VerdictCache};
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
pub(super) struct Walker {
    pub(super) chain: Arc<dyn Chain>,
    /// The endpoints behind `chain`, if it has any.
    pub(super) upstream: Option<Upstream>,
    /// The reader of the head of `chain`, if it has endpoints.
    pub(super) heads: Option<Arc<dyn Heads>>,
    /// The light client, if `chain` takes its headers from one.
    pub(super) light_client: Option<Arc<LightClient>>,
    pub(super) sources: ContentSources,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) profiles: Profiles,
    /// What earlier resolutions observed, if a memory is configured.
    pub(super) history: Option<History>,
    /// What is remembered about sellers, if a memory is configured.
    pub(super) seller_memory: Option<SellerMemory>,
    pub(super) config: Config,
    /// Digest of the sources that answers come from.
    pub(super) world: Arc<str>,
    pub(super) pool: Arc<CpuPool>,
    pub(super) progress: Progress,
    /// Permits for querying content sources.
    pub(super) turns: Turns,
    pub(super) traces: TraceQueue,
}

/// A resolution that the cache requests.
#[derive(Clone)]
pub(super) struct RunRequest {
    pub(super) key: CacheKey,
    pub(super) rules: RuleSet,
    /// Results of earlier resolutions. Content is reused if the records are unchanged.
    pub(super) before: Before,
    pub(super) cache: Arc<VerdictCache>,
}

impl Walker {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) async fn run(self: &Arc<Self>, request: &RunRequest) -> Finished {
        let _running = telemetry::run_begins();
        let began = request.cache.begin();
        let spans = self.traces.begin(&*self.clock);
        let run = self.gather_for(request, &spans).await;
        let (_, found) = self.conclude(run, request, began).await;
        spans.end(found.resolution.verdict());
        found
    }

    pub(super) async fn gather_for(&self, request: &RunRequest, spans: &RunSpans) -> Run {
        let RunRequest { key, rules, before, .. } = request;
        self.gather(key.name.clone(), &rules.policy, before.content.as_deref(), spans).await
    }

    /// Like [`Walker::settle`]. Also counts and logs the verdict.
    pub(super) async fn conclude(self: &Arc<Self>, run: Run, request: &RunRequest, began: Began) -> (Run, Finished) {
        let (run, found) = self.settle(run, request, began).await;
        tell(found.resolution.verdict());
        (run, found)
    }

    /// Judges and remembers a resolution whose gathering began at `began`. If the name was evicted meanwhile, the
    /// verdict makes no statement about the newest block.
    pub(super) async fn settle(self: &Arc<Self>, run: Run, request: &RunRequest, began: Began) -> (Run, Finished) {
        let RunRequest { key, rules, before, cache } = request;
        let (mut run, mut resolution) = self.judged(run, rules, before.failures).await;
        if let Err(error) = self.remember(&run.evidence, resolution.verdict()).await {
            run.evidence.continuity = run.evidence.continuity.not_kept(error.to_string());
            (run, resolution) = self.judged(run, rules, before.failures).await;
        }
        let mut is_overtaken = false;
        if !cache.is_standing(&key.name, began)
            && let Ok(reading) = &mut run.evidence.reading
            && !clresolve_core::mutant!("overtaken-runs-answer")
        {
            is_overtaken = true;
            reading.latest = Some(Err(overtaken()));
            (run, resolution) = self.judged(run, rules, before.failures).await;
        }
        let is_trusted = resolution.verdict().state == State::Trusted;
        let content = ProvenContent::of(&run).filter(|_| is_trusted).map(Arc::new);
        (run, Finished { content, is_overtaken, reads_chain: true, ..resolution.into() })
    }

    /// Judges the evidence off the threads that answer requests.
    pub(super) async fn judged(self: &Arc<Self>, run: Run, rules: &RuleSet, failures: u32) -> (Run, Resolution) {
        let (walker, rules) = (Arc::clone(self), rules.clone());
        let judge = move || {
            let resolution = build::resolution(&walker.reporter(&rules.profile, &rules.policy), &run, failures);
            (run, resolution)
        };
        if clresolve_core::mutant!("judged-by-those-who-answer") {
            return judge();
        }
        self.pool.run(judge).await
    }

    pub(super) fn reporter<'a>(&'a self, profile: &'a Profile, policy: &'a Policy) -> build::Reporter<'a> {
        build::Reporter {
            world: &self.config.chain.world,
            chain_id: self.config.chain.id,
            profiles: &self.profiles,
            profile,
            policy,
        }
    }

    /// What this process trusts when it verifies a bundle.
    pub(super) fn trust_anchors(&self) -> TrustAnchors<'_> {
        TrustAnchors { profiles: &self.profiles, checkpoint: self.config.beacon.checkpoint }
    }

    /// Gathers all evidence about a name. If content of an earlier resolution is given and still valid, it is reused.
    pub(super) async fn gather(
        &self,
        name: EnsName,
        policy: &Policy,
        earlier: Option<&ProvenContent>,
        spans: &RunSpans,
    ) -> Run {
        let started = Instant::now();
        let deadline = started + self.config.timeout;
        let watched = self.progress.of(&name, spans);
        let reading =
            watched.during(Step::Records, self.read(&name, deadline), |read| Some(reading_status(read))).await;
        let mut milliseconds = BTreeMap::from([(Step::Records, elapsed(started))]);
        let mut evidence = Evidence {
            name,
            now: self.now(),
            chain_id: self.config.chain.id,
            block: self.config.chain.block,
            reading,
            owner: OwnerEvidence::NotAsked,
            https: Source::NotAsked,
            ipfs: IpfsOutcome::NotAsked,
            mirror: IpfsOutcome::NotAsked,
            liars: Vec::new(),
            schemas: None,
            continuity: Continuity::NotAsked,
            links: None,
            misspelt_keys: Vec::new(),
        };
        evidence.continuity = self.recall(&evidence).await;
        let (Ok(reading), Some(found)) = (&evidence.reading, evidence.found()) else {
            return Run { evidence, milliseconds, content_fetched_at: None };
        };
        let earlier = earlier.filter(|earlier| earlier.holds(reading, evidence.now));

        let (progress, limit) = (self.progress.of(&evidence.name, spans), content_time(deadline));
        let binding = async {
            tokio::join!(
                self.owner(found, reading, limit),
                OptionFuture::from(self.config.rules.links.then(|| self.links(&evidence.name, found, reading, limit))),
                self.misspelt_keys(&evidence.name, found, reading, limit),
            )
        };
        let content = async {
            let turn = self.turns.next().await;
            let sources = match earlier {
                Some(earlier) => Sources::again(earlier),
                None => self.sources.of_card(found, policy.require_all_sources, limit, progress).await,
            };
            (sources, turn)
        };
        let (((owner, links, misspelt_keys), binding_ms), (sources, turn)) =
            tokio::join!(timed(progress.during(Step::Binding, binding, |_| None)), content);
        let deadline = deadline + turn.waited;
        milliseconds.extend(sources.milliseconds);
        milliseconds.insert(Step::Binding, binding_ms);
        evidence.links = links;
        evidence.misspelt_keys = misspelt_keys;
        evidence.owner = owner;
        evidence.https = sources.https;
        evidence.ipfs = sources.ipfs.walked;
        evidence.mirror = sources.mirror.walked;
        evidence.liars = [sources.ipfs.liars, sources.mirror.liars].concat();

        if policy.depth == Depth::Schemas {
            let started = Instant::now();
            let read = async {
                match earlier.map(ProvenContent::schemas) {
                    Some(Some(schemas)) => Some((self.sources.schemas_again(schemas).await, Liars::new())),
                    Some(None) => None,
                    None => self.sources.of_schemas(&evidence, content_time(deadline)).await,
                }
            };
            let schemas = spans.during(Step::Schemas, read).await;
            if let Some((schemas, liars)) = schemas {
                evidence.schemas = Some(schemas);
                evidence.liars.extend(liars);
            }
            milliseconds.insert(Step::Schemas, elapsed(started));
        }
        Run { evidence, milliseconds, content_fetched_at: earlier.map(ProvenContent::fetched_at) }
    }

    /// Reads the records of a name before `deadline`.
    pub(super) async fn read(&self, name: &EnsName, deadline: Instant) -> Result<Reading, ChainError> {
        let limit = deadline.saturating_duration_since(Instant::now()).mul_f64(CHAIN_SHARE);
        let milliseconds = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let late = |_| Err(ChainError::Late { milliseconds });
        tokio::time::timeout(limit, self.chain.read(name, self.config.chain.block)).await.unwrap_or_else(late)
    }

    async fn owner(&self, found: &Found, reading: &Reading, limit: Duration) -> OwnerEvidence {
        let Some(owner) = Usable::of(&found.records, Key::Owner).text() else { return OwnerEvidence::NotAsked };
        let owner = match EnsName::parse(owner) {
            Ok(owner) => owner,
            Err(error) => return OwnerEvidence::NotAName(error.into()),
        };
        match tokio::time::timeout(limit, self.chain.holding(&owner, &reading.block, &reading.endpoints)).await {
            Ok(Ok(holding)) => OwnerEvidence::Read(holding),
            Ok(Err(error)) => OwnerEvidence::Failed(OwnerFault::from(error).into()),
            Err(_) => OwnerEvidence::Failed(OwnerFault::Late.into()),
        }
    }

    /// Adds what a bundle does not contain: the evidence that links back to the card, if required, misspelt keys, and
    /// what is remembered of the name.
    #[cfg(feature = "redis")]
    pub(super) async fn complete(&self, evidence: &mut Evidence) {
        evidence.continuity = self.recall(evidence).await;
        if let (true, Ok(reading), Some(found)) = (self.config.rules.links, &evidence.reading, evidence.found()) {
            evidence.links = Some(self.links(&evidence.name, found, reading, self.config.timeout).await);
        }
        if let (Ok(reading), Some(found)) = (&evidence.reading, evidence.found()) {
            evidence.misspelt_keys = self.misspelt_keys(&evidence.name, found, reading, self.config.timeout).await;
        }
    }

    /// Finds records that are set under misspelt variants of missing keys. This takes one request in parallel with
    /// those for the content. It takes none if every key is set, if the name has no agent record, or if an off-chain
    /// gateway would be queried once per key. Read errors are not reported, since nothing depends on the result.
    async fn misspelt_keys(
        &self,
        name: &EnsName,
        found: &Found,
        reading: &Reading,
        limit: Duration,
    ) -> Vec<(Key, &'static str)> {
        let is_missing = |key: &Key| *found.records.get(*key) == Record::Absent;
        if found.offchain || Key::ALL.iter().all(is_missing) {
            return Vec::new();
        }
        let spellings = |key: Key| key.near_misses().iter().map(move |spelt| (key, *spelt));
        let near: Vec<_> = Key::CARD.into_iter().filter(is_missing).flat_map(spellings).collect();
        if near.is_empty() {
            return near;
        }
        let keys: Vec<_> = near.iter().map(|(_, spelt)| (*spelt).to_owned()).collect();
        let asked = self.chain.texts(name, &reading.block, &reading.endpoints, &keys);
        let records = tokio::time::timeout(limit, asked).await.ok().and_then(Result::ok).unwrap_or_default();
        let set = near.into_iter().zip(records).filter(|(_, record)| *record != Record::Absent);
        set.map(|(near, _)| near).collect()
    }

    /// Reads the evidence that links back to the card. A timeout or other failure is described in words.
    async fn links(&self, name: &EnsName, found: &Found, reading: &Reading, limit: Duration) -> Links {
        let started = Instant::now();
        let texts = async |keys: Vec<String>, limit: Duration| {
            if keys.is_empty() {
                return Ok(Vec::new());
            }
            let asked = self.chain.texts(name, &reading.block, &reading.endpoints, &keys);
            match tokio::time::timeout(limit, asked).await {
                Ok(Ok(records)) => Ok(keys.into_iter().zip(records).collect()),
                Ok(Err(error)) => Err(excerpt(&error.to_string())),
                Err(_) => Err("no answer in time".to_owned()),
            }
        };
        let url = links::registration_file(Targets::of(&found.records).url.as_deref());
        let file = async {
            let url = url.ok_or("the card's URL names no host")?;
            let body = self.sources.content.document(&url, limit / 2).await;
            body.map(|body| body.bytes).map_err(|error| excerpt(&error.to_string()))
        };
        let keys = links::KEYS.map(str::to_owned).into();
        let (records, file) = tokio::join!(texts(keys, limit), file);
        let entries = match file.clone() {
            Ok(bytes) => self.pool.run(move || RegistrationFile::parse(&bytes).ok()).await.unwrap_or_default(),
            Err(_) => RegistrationFile::default(),
        };
        let keys = entries.registrations.iter().map(Registration::key).collect();
        let registrations = texts(keys, limit.saturating_sub(started.elapsed())).await;
        Links { records, file, registrations }
    }

    async fn recall(&self, evidence: &Evidence) -> Continuity {
        match &self.history {
            Some(history) => history.recall(evidence).await,
            None => Continuity::NotAsked,
        }
    }

    async fn remember(&self, evidence: &Evidence, verdict: &Verdict) -> Result<(), MemoryError> {
        match &self.history {
            Some(history) => history.remember(evidence, verdict).await,
            None => Ok(()),
        }
    }
}

/// The status that a reading implies by itself: whether there are records to judge.
const fn reading_status(reading: &Result<Reading, ChainError>) -> Status {
    match reading {
        Ok(Reading { answer: Answer::Records(_), .. }) => Status::Pass,
        _ => Status::Unknown,
    }
}

/// The error of a reading during which the name was evicted, so that it implies nothing about the newest block.
fn overtaken() -> ChainError {
    let detail = "the name was evicted while it was read".to_owned();
    ChainError::BlockUnavailable { block: "latest".to_owned(), detail }
}

/// The time that the content sources have until `deadline`.
fn content_time(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now()).mul_f64(CONTENT_SHARE)
}

/// Counts and logs the verdict of a resolution, and its incidents.
pub(super) fn tell(verdict: &Verdict) {
    telemetry::verdict(verdict.state.as_str());
    log(verdict);
    report(verdict);
}

/// Logs one event for each incident in the verdict of a resolution. The message is JSON.
fn report(verdict: &Verdict) {
    if tracing::enabled!(target: INCIDENTS, tracing::Level::INFO) && !clresolve_core::mutant!("incidents-are-silent") {
        for incident in Incident::all(verdict) {
            tracing::info!(target: INCIDENTS, "{}", incident.to_line());
        }
    }
}

/// Logs one line for the verdict of a resolution, and one more for each step.
fn log(verdict: &Verdict) {
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
        let reading = walker.chain.read(&name, walker.config.chain.block).await.expect("an endpoint answers");
        let Answer::Records(found) = &reading.answer else { panic!("{reading:?}") };
        assert!(matches!(walker.owner(found, &reading, walker.config.timeout).await, OwnerEvidence::Read(_)));
        let (_world, stalled) = stalled().await;
        let owner = stalled.0.walker.owner(found, &reading, Duration::ZERO).await;
        assert_eq!(owner, OwnerEvidence::Failed(OwnerFault::Late.into()));
    }
}
