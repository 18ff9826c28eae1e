//! The one walk: name, records, card, proof, verdict.
//!
//! [`Resolver::resolve`] asks the chain, fetches what the records name, hands the [`Evidence`] to the pure checks and
//! builds the verdict. It gathers all reasons and stops only where a step is moot.

mod continuity;
mod network;
mod roots;
mod setup;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, OptionFuture};
use jiff::Timestamp;
use tokio::time::Instant;

pub use self::roots::RootSource;
pub use self::setup::local_profiles;
use crate::build::{self, Run};
use crate::bundle::{Bundle, BundleError, OfChain, Packed};
pub use crate::cache::Standing;
use crate::cache::{ContentCache, Key as CacheKey, VerdictCache};
use crate::card::Card;
pub use crate::chain::{Answer, ChainError, Reading};
use crate::chain::{Chain, Found};
use crate::check::Policy;
use crate::check::verbs::holds_placeholder;
use crate::cid::{Budget, ContentId, ContentPath, WalkedBlocks};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, RulesConfig};
use crate::evidence::continuity::Continuity;
use crate::evidence::links::{self, Links, Registration, RegistrationFile};
use crate::evidence::{
    BoundSchema, Evidence, Mirror, OwnerEvidence, OwnerFault, ProvenBy, SchemaEvidence, Source, Targets, Usable, Walked,
};
use crate::fetch::https::Body;
use crate::fetch::{FetchError, Forbidden, Lookup, Refusal, SystemLookup};
use crate::manifest::Side;
use crate::memory::Memory;
use crate::name::{EnsName, NameError};
use crate::profile::{Profile, Profiles};
#[cfg(feature = "unstable")]
use crate::reason::Code;
use crate::reason::Step;
use crate::records::Key;
use crate::telemetry;
use crate::text::excerpt;
pub use crate::verdict::Resolution;
use crate::verdict::{Depth, Verdict, canonical_digest};

/// What the sources of the card and the schemas may take of the time that is left after the chain: the rest is kept
/// so that a stalling source ends in a verdict and not in a time-out.
const CONTENT_SHARE: f64 = 0.9;

/// What the chain may take of the whole time limit, for the same reason.
const CHAIN_SHARE: f64 = 0.6;

/// Fetches bytes for the walk: the doors to the network, or a script in a test.
#[async_trait]
pub trait Content: Send + Sync {
    /// What the card's URL serves, within `limit`.
    async fn card(&self, url: &str, limit: Duration) -> Source;

    /// The walk from `cid` along `path`. `known` are bytes in hand that may be the file itself.
    async fn walk(&self, cid: &ContentId, path: &ContentPath, known: &[Bytes], budget: Budget, limit: Duration)
    -> Walk;

    /// What is served where a trust root of card signatures keeps its keys, within `limit`. Where there are redirects
    /// to follow, none of them may lead to another origin.
    async fn key_set(&self, url: &str, limit: Duration) -> Source {
        self.card(url, limit).await
    }

    /// What the URL of a schema serves.
    ///
    /// # Errors
    /// The cause in words.
    async fn schema(&self, url: &str, limit: Duration) -> Result<Bytes, String>;

    /// The document at a URL that somebody names, with what its host says of it. Without such an implementation none is
    /// fetched.
    ///
    /// # Errors
    /// As [`crate::fetch::https::get`].
    async fn document(&self, _url: &str, _limit: Duration) -> Result<Body, FetchError> {
        Err(Forbidden { hop: 0, target: "the URL".to_owned(), why: Refusal::Disabled }.into())
    }
}

/// What a walk found, and who lied on the way.
#[derive(Clone, Debug)]
pub struct Walk {
    /// What was found.
    pub walked: Walked,
    /// Who lied.
    pub liars: Liars,
    /// The blocks that were proven on the way.
    pub blocks: WalkedBlocks,
}

/// Answers questions about names. Cheap to clone; one per process.
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

struct Inner {
    chain: Arc<dyn Chain>,
    content: Arc<dyn Content>,
    clock: Arc<dyn Clock>,
    profiles: Profiles,
    cache: Arc<VerdictCache>,
    proven: ContentCache,
    /// The blocks of the walks, in a run that is to be exported.
    kept: Option<Arc<Mutex<WalkedBlocks>>>,
    memory: Option<Memory>,
    config: Config,
    policy: Policy,
    world: Arc<str>,
}

/// A question about one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// The name, as typed.
    pub input: String,
    /// Identifier of the profile, where it is not the configured one.
    pub profile: Option<String>,
    /// How deep the walk goes, where it is not the configured depth.
    pub depth: Option<Depth>,
}

impl Question {
    /// A question under the configured profile and depth.
    pub fn new(input: impl Into<String>) -> Self {
        Self { input: input.into(), profile: None, depth: None }
    }
}

/// Why a [`Resolver`] cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A key of the configuration holds, or leads to, something unusable.
    #[error("{what}: {detail}")]
    Invalid {
        /// Which key of the configuration.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
}

/// Why a verdict cannot be exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The question names no profile.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Not a name: nobody is asked about it, so there is no evidence.
    #[error("this is not an ENS name: {0}")]
    Name(#[from] NameError),
    /// The evidence does not give the verdict again.
    #[error("the run cannot be replayed: {0}")]
    Bundle(#[from] BundleError),
}

impl Resolver {
    /// Builds the doors, the reader of the chain, the rules and an empty cache.
    ///
    /// # Errors
    /// When a file or URL of the configuration cannot be read or does not hold what it should.
    pub async fn new(config: &Config) -> Result<Self, SetupError> {
        Self::with_lookup(config, Arc::new(SystemLookup)).await
    }

    /// As [`Resolver::new`], with another source of addresses than the system's resolver.
    ///
    /// # Errors
    /// As [`Resolver::new`].
    pub async fn with_lookup(config: &Config, lookup: Arc<dyn Lookup>) -> Result<Self, SetupError> {
        let egress = setup::egress(config, lookup)?;
        let profiles = setup::profiles(config, &egress).await?;
        let chain = setup::chain(config, &egress)?;
        let content = setup::content(config, &egress)?;
        Self::with_parts(config.clone(), profiles, chain, Arc::new(content))
    }

    /// Builds a resolver from its parts.
    ///
    /// # Errors
    /// When the configured profile does not exist, or the file of the memory cannot be used.
    pub fn with_parts(
        config: Config,
        profiles: Profiles,
        chain: Arc<dyn Chain>,
        content: Arc<dyn Content>,
    ) -> Result<Self, SetupError> {
        if profiles.get(&config.rules.profile).is_none() {
            let known: Vec<_> = profiles.iter().map(|profile| profile.id().to_owned()).collect();
            let detail = format!("no profile {}; known are {}", config.rules.profile, known.join(", "));
            return Err(SetupError::Invalid { what: "profile".to_owned(), detail });
        }
        let policy = Policy { record_rest: config.memory.record_rest, ..policy(&config.rules) };
        Ok(Self(Arc::new(Inner {
            chain,
            content,
            clock: Arc::new(SystemClock),
            profiles,
            cache: Arc::new(VerdictCache::new(config.cache)),
            proven: ContentCache::new(config.cache.content_bytes),
            kept: None,
            memory: setup::memory(&config)?,
            world: world_digest(&config),
            policy,
            config,
        })))
    }

    /// The same resolver, with an empty cache, under another clock.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Self {
        self.changed(|inner| inner.clock = clock)
    }

    /// The same resolver, with an empty cache and `code` taken out of the registry.
    #[cfg(feature = "unstable")]
    #[must_use]
    pub fn without(&self, code: Code) -> Self {
        self.changed(|inner| inner.policy.without.push(code))
    }

    fn changed(&self, change: impl FnOnce(&mut Inner)) -> Self {
        let inner = &self.0;
        let mut copy = Inner {
            chain: Arc::clone(&inner.chain),
            content: Arc::clone(&inner.content),
            clock: Arc::clone(&inner.clock),
            profiles: inner.profiles.clone(),
            cache: Arc::new(VerdictCache::new(inner.config.cache)),
            proven: ContentCache::new(inner.config.cache.content_bytes),
            kept: inner.kept.clone(),
            memory: inner.memory.clone(),
            config: inner.config.clone(),
            policy: inner.policy.clone(),
            world: Arc::clone(&inner.world),
        };
        change(&mut copy);
        Self(Arc::new(copy))
    }

    /// The verdict on `input` under the configured profile and depth, from the cache or from a run.
    ///
    /// Never fails: what went wrong is in the verdict.
    pub async fn resolve(&self, input: &str) -> Resolution {
        let profile = self.0.profiles.get(&self.0.config.rules.profile).expect("checked when the resolver was built");
        self.answer(input, profile, self.0.policy.clone()).await
    }

    /// The verdict on a question of its own profile and depth.
    ///
    /// # Errors
    /// When the question names a profile that does not exist.
    pub async fn ask(&self, question: &Question) -> Result<Resolution, SetupError> {
        let (profile, policy) = self.rules(question)?;
        Ok(self.answer(&question.input, profile, policy).await)
    }

    /// The verdict of a new run, although the cache may hold a fresh one. It takes the other's place.
    ///
    /// # Errors
    /// When the question names a profile that does not exist.
    pub async fn ask_anew(&self, question: &Question) -> Result<Resolution, SetupError> {
        let (profile, policy) = self.rules(question)?;
        let name = match EnsName::parse(&question.input) {
            Ok(name) => name,
            Err(error) => return Ok(build::invalid_name(&question.input, &error, &profile, &policy, self.now())),
        };
        let key = self.key(name, &profile, &policy);
        let run = self.run(key.name.clone(), profile, policy);
        Ok(self.0.cache.run_anew(key, run).await.asked_as(&question.input))
    }

    /// What the answer to a question would take. Nobody is asked.
    ///
    /// # Errors
    /// When the question names a profile that does not exist.
    pub async fn standing(&self, question: &Question) -> Result<Standing, SetupError> {
        let (profile, policy) = self.rules(question)?;
        let name = match EnsName::parse(&question.input) {
            Ok(name) => name,
            Err(error) => {
                let resolution = build::invalid_name(&question.input, &error, &profile, &policy, self.now());
                return Ok(Standing::Known(resolution));
            }
        };
        Ok(match self.0.cache.standing(&self.key(name, &profile, &policy), self.now()).await {
            Standing::Known(resolution) => Standing::Known(resolution.asked_as(&question.input)),
            other => other,
        })
    }

    /// How long ago the latest run for a question was, whatever came of it: also one whose failure left an answer in
    /// place. [`Duration::MAX`] where none is remembered; zero for what is no name, which is judged each time.
    ///
    /// # Errors
    /// When the question names a profile that does not exist.
    pub async fn since_run(&self, question: &Question) -> Result<Duration, SetupError> {
        let (profile, policy) = self.rules(question)?;
        Ok(match EnsName::parse(&question.input) {
            Ok(name) => self.0.cache.since_run(&self.key(name, &profile, &policy), self.now()).await,
            Err(_) => Duration::ZERO,
        })
    }

    /// The time by the resolver's clock.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    fn rules(&self, question: &Question) -> Result<(Arc<Profile>, Policy), SetupError> {
        let id = question.profile.as_deref().unwrap_or(&self.0.config.rules.profile);
        let Some(profile) = self.0.profiles.get(id) else {
            return Err(SetupError::Invalid { what: "profile".to_owned(), detail: format!("no profile {id}") });
        };
        let mut policy = self.0.policy.clone();
        policy.depth = question.depth.unwrap_or(policy.depth);
        Ok((profile, policy))
    }

    /// The verdict of a run of its own, in a bundle with all that it rests on. Nothing of an earlier run is used.
    ///
    /// # Errors
    /// [`ExportError`]: for what is no name or no profile, and where the evidence would not stand for itself.
    pub async fn export(&self, question: &Question) -> Result<Packed, ExportError> {
        let (profile, policy) = self.rules(question)?;
        let name = EnsName::parse(&question.input)?;
        let kept = Arc::new(Mutex::new(WalkedBlocks::default()));
        let (chain, recording) = self.0.chain.recording().unzip();
        let Self(inner) = self.changed(|inner| {
            inner.kept = Some(Arc::clone(&kept));
            inner.memory = None;
            inner.chain = chain.unwrap_or_else(|| Arc::clone(&inner.chain));
        });
        let run = inner.gather(name, &policy).await;
        let header = match &run.evidence.reading {
            Ok(reading) => {
                let header = inner.chain.header(&reading.block, &reading.endpoints);
                tokio::time::timeout(inner.config.timeout, header).await.ok().flatten()
            }
            Err(_) => None,
        };
        let blocks = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
        let chain = OfChain { header, witness: recording.and_then(|recording| recording.take()) };
        Ok(Bundle::pack(&inner.reporter(&profile, &policy), &run, chain, &blocks)?)
    }

    /// The records of a name, judged by nothing.
    ///
    /// # Errors
    /// When the chain could not be asked.
    pub async fn records(&self, name: &EnsName) -> Result<Reading, ChainError> {
        self.0.read(name, Instant::now() + self.0.config.timeout).await
    }

    /// The proven bytes under a CID and a path, as a trustless `ipfs cat`.
    pub async fn cat(&self, cid: &ContentId, path: &ContentPath) -> Walk {
        self.0.content.walk(cid, path, &[], Budget::cat(), self.0.config.timeout).await
    }

    /// How long one question may take.
    pub fn time_limit(&self) -> Duration {
        self.0.config.timeout
    }

    /// The document at a foreign URL, judged by nothing.
    ///
    /// # Errors
    /// As [`crate::fetch::https::get`].
    pub(crate) async fn document(&self, url: &str) -> Result<Body, FetchError> {
        self.0.content.document(url, self.0.config.timeout).await
    }

    /// What is asked of the evidence besides the rules.
    pub(crate) fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// The rules that the resolver knows.
    pub fn profiles(&self) -> &Profiles {
        &self.0.profiles
    }

    async fn answer(&self, input: &str, profile: Arc<Profile>, policy: Policy) -> Resolution {
        let now = self.now();
        let name = match EnsName::parse(input) {
            Ok(name) => name,
            Err(error) => return build::invalid_name(input, &error, &profile, &policy, now),
        };
        let key = self.key(name, &profile, &policy);
        if let Some(known) = self.0.cache.fresh(&key, now).await {
            return known.asked_as(input);
        }
        let run = self.run(key.name.clone(), profile, policy);
        self.0.cache.get_or_run(key, now, run).await.asked_as(input)
    }

    fn key(&self, name: EnsName, profile: &Profile, policy: &Policy) -> CacheKey {
        CacheKey {
            name,
            block: self.0.config.chain.block,
            depth: policy.depth,
            rules: profile.digest(),
            world: Arc::clone(&self.0.world),
        }
    }

    /// The run for `name`, as the cache starts it: told how many failures in a row came before. What the cache keeps was
    /// typed in normal form, as it will mostly be asked for.
    fn run(
        &self,
        name: EnsName,
        profile: Arc<Profile>,
        policy: Policy,
    ) -> impl FnOnce(u32) -> BoxFuture<'static, Resolution> + Send + 'static {
        let inner = Arc::clone(&self.0);
        move |failures| {
            let work = async move {
                let _running = telemetry::run_begins();
                let mut run = inner.gather(name, &policy).await;
                let resolved = |run: &Run| build::resolution(&inner.reporter(&profile, &policy), run, failures);
                let mut resolution = resolved(&run);
                if let Err(error) = inner.remember(&run.evidence, resolution.verdict()).await {
                    run.evidence.continuity = run.evidence.continuity.not_kept(error.to_string());
                    resolution = resolved(&run);
                }
                telemetry::verdict(resolution.verdict().state.as_str());
                log(resolution.verdict());
                resolution
            };
            work.boxed()
        }
    }
}

fn policy(rules: &RulesConfig) -> Policy {
    Policy {
        depth: rules.depth,
        require_all_sources: rules.require_all_sources,
        allowed_publishers: rules.allowed_publishers.clone(),
        ..Policy::default()
    }
}

/// One line for the verdict of a run, one more for each step.
fn log(verdict: &Verdict) {
    let name = verdict.name.normalized.as_deref().unwrap_or_default();
    let codes: Vec<_> = verdict.reasons.iter().map(|reason| reason.code.slug()).collect();
    tracing::info!(name, state = %verdict.state, codes = codes.join(","), id = verdict.id, "verdict");
    for step in &verdict.steps {
        tracing::debug!(name, step = %step.step, status = ?step.status, ms = step.ms, "step");
    }
}

impl Inner {
    fn reporter<'a>(&'a self, profile: &'a Profile, policy: &'a Policy) -> build::Reporter<'a> {
        build::Reporter {
            world: &self.config.chain.world,
            chain_id: self.config.chain.id,
            profiles: &self.profiles,
            profile,
            policy,
        }
    }

    /// Gathers all evidence about a name.
    async fn gather(&self, name: EnsName, policy: &Policy) -> Run {
        let started = Instant::now();
        let deadline = started + self.config.timeout;
        let reading = self.read(&name, deadline).await;
        let mut milliseconds = BTreeMap::from([(Step::Records, elapsed(started))]);
        let mut evidence = Evidence {
            name,
            now: self.clock.now(),
            block: self.config.chain.block,
            reading,
            owner: OwnerEvidence::NotAsked,
            https: Source::NotAsked,
            ipfs: Walked::NotAsked,
            mirror: Walked::NotAsked,
            liars: Vec::new(),
            schemas: None,
            continuity: Continuity::NotAsked,
            links: None,
        };
        evidence.continuity = self.recall(&evidence).await;
        let (Ok(reading), Some(found)) = (&evidence.reading, evidence.found()) else {
            return Run { evidence, milliseconds };
        };

        let limit = deadline.saturating_duration_since(Instant::now()).mul_f64(CONTENT_SHARE);
        let (owner, sources, links) = tokio::join!(
            self.owner(found, reading, limit),
            self.sources(found, policy.require_all_sources, limit),
            OptionFuture::from(self.reads_links().then(|| self.links(&evidence.name, found, reading, limit))),
        );
        milliseconds.extend(sources.milliseconds);
        evidence.links = links;
        evidence.owner = owner;
        evidence.https = sources.https;
        evidence.ipfs = sources.ipfs.walked;
        evidence.mirror = sources.mirror.walked;
        evidence.liars = [sources.ipfs.liars, sources.mirror.liars].concat();

        if policy.depth == Depth::Schemas {
            let started = Instant::now();
            if let Some((schemas, liars)) = self.schemas(&evidence, deadline).await {
                evidence.schemas = Some(schemas);
                evidence.liars.extend(liars);
            }
            milliseconds.insert(Step::Schemas, elapsed(started));
        }
        Run { evidence, milliseconds }
    }

    async fn read(&self, name: &EnsName, deadline: Instant) -> Result<Reading, ChainError> {
        let limit = deadline.saturating_duration_since(Instant::now()).mul_f64(CHAIN_SHARE);
        let late = |_| Err(ChainError::Unreachable(vec![("all".to_owned(), "no answer in time".to_owned())]));
        tokio::time::timeout(limit, self.chain.read(name, self.config.chain.block)).await.unwrap_or_else(late)
    }

    async fn owner(&self, found: &Found, reading: &Reading, limit: Duration) -> OwnerEvidence {
        let Some(owner) = Usable::of(&found.records, Key::Owner).text() else { return OwnerEvidence::NotAsked };
        let owner = match EnsName::parse(owner) {
            Ok(owner) => owner,
            Err(error) => return OwnerEvidence::NotAName(error.to_string()),
        };
        match tokio::time::timeout(limit, self.chain.holding(&owner, &reading.block, &reading.endpoints)).await {
            Ok(Ok(holding)) => OwnerEvidence::Read(holding),
            Ok(Err(error)) => OwnerEvidence::Failed(error.into()),
            Err(_) => OwnerEvidence::Failed(OwnerFault::Late),
        }
    }

    /// A run that is to be exported reads none: a bundle has no place for them.
    fn reads_links(&self) -> bool {
        self.config.rules.links && self.kept.is_none()
    }

    /// What links back to the card. What cannot be read in time is told in words.
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
            let body = self.content.document(&url, limit / 2).await;
            body.map(|body| body.bytes).map_err(|error| excerpt(&error.to_string()))
        };
        let keys = links::KEYS.map(str::to_owned).into();
        let (records, file) = tokio::join!(texts(keys, limit), file);
        let entries = file.as_ref().ok().and_then(|bytes| RegistrationFile::parse(bytes).ok()).unwrap_or_default();
        let keys = entries.registrations.iter().map(Registration::key).collect();
        let registrations = texts(keys, limit.saturating_sub(started.elapsed())).await;
        Links { records, file, registrations }
    }

    /// Asks the card's URL and the gateways, at the same time where one does not need the other.
    async fn sources(&self, found: &Found, all: bool, limit: Duration) -> Sources {
        let Targets { url, cid, path, mirror: other } = Targets::of(&found.records);

        let started = Instant::now();
        // A raw CID is checked against bytes in hand, so a gateway is asked only where those are not its content. A host
        // that stalls leaves the gateways their half of the time.
        let needs_https = cid.as_ref().is_some_and(ContentId::is_raw) && !all;
        let https_limit = if needs_https { limit / 2 } else { limit };
        let fetch = async {
            let source = match &url {
                Some(url) => self.content.card(url, https_limit).await,
                None => Source::NotAsked,
            };
            (source, elapsed(started))
        };
        let ((https, https_ms), walked) = if needs_https {
            let fetched = fetch.await;
            let limit = limit.saturating_sub(started.elapsed());
            let walked = self.walk(cid.as_ref(), &path, fetched.0.bytes(), limit).await;
            (fetched, walked)
        } else {
            tokio::join!(fetch, self.walk(cid.as_ref(), &path, None, limit))
        };
        let ipfs_ms = elapsed(started);
        let left = || limit.saturating_sub(started.elapsed());
        let ipfs = self.with_known_leaf(walked, cid.as_ref(), &path, &https, left()).await;
        let mirror = match other {
            Some(mirror) => self.walk(Some(&mirror.cid), &mirror.path, https.bytes(), left()).await,
            None => Walk::not_asked(),
        };
        let milliseconds = BTreeMap::from([(Step::FetchHttps, https_ms), (Step::FetchIpfs, ipfs_ms)]);
        Sources { https, ipfs, mirror, milliseconds }
    }

    async fn walk(&self, cid: Option<&ContentId>, path: &ContentPath, known: Option<&Bytes>, limit: Duration) -> Walk {
        let Some(cid) = cid else { return Walk::not_asked() };
        if let Some(bytes) = known.filter(|bytes| path.is_empty() && cid.is_raw() && cid.verify(bytes)) {
            self.keep(|kept| kept.add(cid, bytes.clone()));
            return Walked::Proven { bytes: bytes.clone(), by: ProvenBy::BytesInHand, blocks: 1 }.into();
        }
        if let Some(bytes) = self.proven.get(cid, path).await {
            return Walked::Proven { bytes, by: ProvenBy::EarlierRun, blocks: 0 }.into();
        }
        let known: Vec<Bytes> = known.cloned().into_iter().collect();
        let mut walk = self.content.walk(cid, path, &known, Budget::card(), limit).await;
        let blocks = std::mem::take(&mut walk.blocks);
        self.keep(|kept| kept.extend(blocks));
        if let Some(bytes) = walk.walked.bytes() {
            self.proven.insert(cid, path, bytes.clone()).await;
        }
        walk
    }

    /// Keeps blocks, in a run that is to be exported.
    fn keep(&self, keep: impl FnOnce(&mut WalkedBlocks)) {
        if let Some(kept) = &self.kept {
            keep(&mut kept.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Where the gateways gave all but the last block, the bytes that https served may be that block.
    async fn with_known_leaf(
        &self,
        walk: Walk,
        cid: Option<&ContentId>,
        path: &ContentPath,
        https: &Source,
        limit: Duration,
    ) -> Walk {
        match (&walk.walked, https.bytes()) {
            (Walked::Unproven(_), Some(bytes)) if cid.is_some_and(|cid| !cid.is_raw()) => {
                let again = self.walk(cid, path, Some(bytes), limit).await;
                Walk { liars: [walk.liars, again.liars].concat(), ..again }
            }
            _ => walk,
        }
    }

    /// The bytes of the schemas that the card binds, from their canonical locations and their mirrors.
    async fn schemas(&self, evidence: &Evidence, deadline: Instant) -> Option<(SchemaEvidence, Liars)> {
        let card = Card::parse(evidence.card_bytes()?).ok()?;
        let limit = deadline.saturating_duration_since(Instant::now()).mul_f64(CONTENT_SHARE);
        let bound = |side: Side| {
            let canonical = card.schema(side).map(str::to_owned);
            let mirror = card.schema_mirror(side).filter(|mirror| !holds_placeholder(mirror)).map(str::to_owned);
            async move {
                let (canonical, mirror) = tokio::join!(
                    OptionFuture::from(canonical.as_deref().map(|location| self.schema(location, limit))),
                    OptionFuture::from(mirror.as_deref().map(|location| self.schema(location, limit))),
                );
                let unnamed = || (Err("the card names no location".to_owned()), Liars::new());
                let (canonical, mut liars) = canonical.unwrap_or_else(unnamed);
                let mirror = mirror.map(|(bytes, others)| {
                    liars.extend(others);
                    bytes
                });
                (BoundSchema { canonical, mirror }, liars)
            }
        };
        let ((request, of_request), (receipt, of_receipt)) = tokio::join!(bound(Side::Request), bound(Side::Receipt));
        Some((SchemaEvidence { request, receipt }, [of_request, of_receipt].concat()))
    }

    /// The bytes at a schema's location (an `https` URL, or an `ipfs` one, walked and proven), and who lied on the way.
    async fn schema(&self, location: &str, limit: Duration) -> (Result<Bytes, String>, Liars) {
        if !location.starts_with("ipfs://") {
            return (self.content.schema(location, limit).await, Liars::new());
        }
        let Mirror { cid, path } = match Mirror::parse(location) {
            Ok(mirror) => mirror,
            Err(error) => return (Err(error.to_string()), Liars::new()),
        };
        let Walk { walked, liars, .. } = self.content.walk(&cid, &path, &[], Budget::card(), limit).await;
        let bytes = match walked {
            Walked::Proven { bytes, .. } => Ok(bytes),
            other => Err(other.to_string()),
        };
        (bytes, liars)
    }
}

/// Gateways (labels) that sent a wrong block, with the CID that was asked for.
pub type Liars = Vec<(String, String)>;

/// What the sources of the card gave.
struct Sources {
    https: Source,
    ipfs: Walk,
    mirror: Walk,
    milliseconds: BTreeMap<Step, u64>,
}

impl Walk {
    fn not_asked() -> Self {
        Walked::NotAsked.into()
    }
}

impl From<Walked> for Walk {
    /// What nobody lied about, with no block that was not known before.
    fn from(walked: Walked) -> Self {
        Self { walked, liars: Vec::new(), blocks: WalkedBlocks::default() }
    }
}

fn elapsed(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Digest of the world that answers come from; part of the cache key.
fn world_digest(config: &Config) -> Arc<str> {
    let chain = &config.chain;
    let endpoints: Vec<_> = chain.endpoints.iter().map(|e| (e.url.as_str(), e.own, e.operator.as_str())).collect();
    let gateways: Vec<_> = config.gateways.iter().map(|g| g.url.as_str()).collect();
    canonical_digest(&serde_json::json!({
        "world": chain.world,
        "chain": chain.id,
        "universal_resolver": chain.universal_resolver.to_string(),
        "ccip_read": chain.ccip_read,
        "endpoints": endpoints,
        "proof": chain.proof.map(|proof| proof.to_string()),
        "quorum": chain.quorum,
        "genesis": chain.genesis.map(|hash| hash.to_string()),
        "gateways": gateways,
        "require_all_sources": config.rules.require_all_sources,
        "links": config.rules.links,
        "allowed_publishers": config.rules.allowed_publishers,
    }))
    .into()
}

#[cfg(test)]
pub(crate) mod testing {
    //! Resolutions for the tests of other modules.

    use jiff::Timestamp;

    use super::*;
    use crate::verdict::State;

    /// A resolution of this state, made at `now` after `failures` failures in a row.
    pub(crate) fn resolution(state: State, now: Timestamp, failures: u32) -> Resolution {
        clresolve_verdict::sample::empty(state, now, failures)
    }

    /// The same with the bytes of a card.
    pub(crate) fn with_card(of: &Resolution, card: Bytes) -> Resolution {
        clresolve_verdict::sample::live(Verdict::clone(of.verdict()), Some(card))
    }
}
