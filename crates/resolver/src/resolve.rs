//! Questions about names, and their verdicts.
//!
//! [`Resolver`] is the only entry point. The cache (`cached`) answers a question or starts a resolution (`walk`), which
//! reads the chain and the [`ContentFetcher`] that the records name (`sources`).

mod audit;
mod cached;
mod check;
mod confirm;
mod consensus;
mod content;
mod continuity;
mod decide;
pub mod doctor;
mod export;
#[cfg(feature = "redis")]
mod fleet;
#[cfg(not(feature = "redis"))]
#[path = "resolve/fleet/absent.rs"]
mod fleet;
mod follow_heads;
mod look_ups;
mod network;
mod operate;
mod probe;
mod progress;
mod question;
mod readings;
mod receipt;
mod registration;
mod request;
mod route;
mod schemas;
mod seller_url;
mod settlement;
mod setup;
mod setup_error;
mod shared_content;
mod signer;
mod sources;
mod spans;
mod turns;
mod upstream;
mod walk;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clresolve_bundle::SignableBundle;
use clresolve_chain::{ChainHeadReader, EnsReader};
pub use clresolve_chain::{FoundNamehashes, NameSearchScope, NamehashPreimages};
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
pub use clresolve_core::reading::{ChainError, EnsAnswer, NameReading};
#[cfg(feature = "unstable")]
use clresolve_core::reason::ReasonCode;
use clresolve_ipfs::{ContentId, DagWalkBudget, UnixFsPath};
use clresolve_payment::terms::SellerHttpReply as SellerReply;
use clresolve_verdict::check::JudgementPolicy;
use clresolve_verdict::evidence::HttpsOutcome;
use clresolve_verdict::profile::ConformanceProfiles;
pub use clresolve_verdict::trust::{Resolution, StaleVerdict};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use self::cached::CachingResolver;
pub use self::check::FinishedSellerCheck;
use self::consensus::{ChainReaders, LightClient};
pub use self::content::{ContentFetcher, IpfsPathResult, LyingGateways};
pub use self::decide::DecisionLogEvent;
pub use self::export::ExportError;
pub use self::follow_heads::HeadFollower;
pub use self::operate::CacheFlushScope;
pub use self::probe::{EMPTY, SellerProbeRequest, SellerProbeResultDocument};
use self::progress::StepEventChannel;
pub use self::progress::{StepEvent, StepEventSubscription, StepTransition};
pub use self::question::NameQuestion;
use self::question::VerdictRules;
use self::registration::AgentRegistries;
pub use self::route::AgentRouteDocument;
use self::schemas::BoundSchemaCache;
pub use self::seller_url::{SellerUrl, SellerUrlError};
pub use self::setup::ExpectedWorkload;
pub use self::setup::configured_egress;
pub use self::setup::local_profiles;
pub use self::setup_error::SetupError;
use self::signer::OfferSigningKeyCache;
use self::signer::receipts::ReceiptSignerCache;
pub use self::signer::{SignerRecords, SignerRecordsError};
use self::sources::ContentSources;
pub use self::sources::RegistryDocumentFetchError;
use self::spans::TraceQueue;
pub use self::spans::{ResolutionTrace, StepSpan};
use self::turns::ConcurrentNameLimit;
use self::upstream::ChainRpcUpstream;
use self::walk::UncachedResolver;
use crate::cache::NameEventFeed;
pub use crate::cache::VerdictCacheKeyStatus;
use crate::cache::{IpfsContentCache, VerdictCache};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, VerdictRulesConfig};
use crate::cpu_pool::CpuPool;
use crate::fetch::https::FetchedDocument;
pub use crate::fetch::https::REGISTRY_LIMIT;
use crate::fetch::{AddressLookup, FetchError, SystemAddressLookup};

/// Answers questions about names. Cheap to clone; one per process.
#[derive(Clone)]
pub struct Resolver(Arc<ResolverState>);

struct ResolverState {
    walker: Arc<UncachedResolver>,
    registries: AgentRegistries,
    offer_keys: OfferSigningKeyCache,
    receipt_signers: ReceiptSignerCache,
    settlements: settlement::SettlementLookupCache,
    schemas: BoundSchemaCache,
    cached: CachingResolver,
    /// The default rules of a question.
    configured: VerdictRules,
}

/// What a resolver reads.
struct ResolverSources {
    chain: Arc<dyn EnsReader>,
    upstream: Option<ChainRpcUpstream>,
    heads: Option<Arc<dyn ChainHeadReader>>,
    light_client: Option<Arc<LightClient>>,
    content: Arc<dyn ContentFetcher>,
    registries: AgentRegistries,
    turns: ConcurrentNameLimit,
}

impl Resolver {
    /// Builds the network clients, the chain reader, the rules and an empty cache.
    ///
    /// # Errors
    /// If a file or URL in the configuration cannot be read or has invalid content.
    pub async fn new(config: &Config) -> Result<Self, SetupError> {
        Self::build(config, Arc::new(SystemAddressLookup), Arc::new(SystemClock), ExpectedWorkload::Questions).await
    }

    /// As [`Resolver::new`], with a source of addresses other than the system's resolver.
    ///
    /// # Errors
    /// As [`Resolver::new`].
    pub async fn with_lookup(config: &Config, lookup: Arc<dyn AddressLookup>) -> Result<Self, SetupError> {
        Self::build(config, lookup, Arc::new(SystemClock), ExpectedWorkload::Questions).await
    }

    /// As [`Resolver::new`], with a clock other than the system's, which verdicts, cache and chain all use.
    ///
    /// # Errors
    /// As [`Resolver::new`].
    pub async fn with_clock(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        Self::build(config, Arc::new(SystemAddressLookup), clock, ExpectedWorkload::Questions).await
    }

    /// As [`Resolver::new`], for a list of names with many concurrent questions. They share requests to the chain, and
    /// at most `at_once` of them query hosts and gateways at the same time.
    pub async fn for_name_list(config: &Config, at_once: u8) -> Result<Self, SetupError> {
        Self::build(config, Arc::new(SystemAddressLookup), Arc::new(SystemClock), ExpectedWorkload::List { at_once })
            .await
    }

    async fn build(
        config: &Config,
        lookup: Arc<dyn AddressLookup>,
        clock: Arc<dyn Clock>,
        load: ExpectedWorkload,
    ) -> Result<Self, SetupError> {
        let egress = setup::configured_egress(config, lookup, load)?;
        let profiles = setup::load_profiles(config, &egress).await?;
        let upstream = setup::configured_upstream(config, &egress)?;
        let readers = setup::configured_chain_readers(&upstream, config, &egress, &clock, load, None)?;
        let content = load.with_shared_content(Arc::new(setup::network_content_fetcher(config, &egress, &clock)?));
        let world = cached::sources_digest(config, egress.extra_roots());
        let registries = setup::agent_registries(config, &upstream.http, &clock)?;
        let cache = Arc::new(VerdictCache::new(&config.cache));
        let fleet = setup::join_replica_fleet(config, &egress, &clock, &cache).await?;
        let cached = |walker| CachingResolver::with_fleet(walker, cache, fleet);
        let ChainReaders { chain, heads, light_client } = readers;
        let reads = ResolverSources {
            chain,
            upstream: Some(upstream),
            heads: Some(heads),
            light_client,
            content,
            registries,
            turns: load.concurrency_limit(),
        };
        Self::from_sources(config.clone(), world, profiles, reads, clock, cached)
    }

    /// A resolver with another configuration of the same world, for a daemon that reloads it. Keeps the clock, the
    /// memory and its file, and the cache with its sizes; cached verdicts stay valid if rules and endpoints are
    /// unchanged. Chain and content are those of the new configuration, with the system's DNS resolver.
    ///
    /// # Errors
    /// As [`Resolver::new`].
    pub async fn reconfigured(&self, config: &Config) -> Result<Self, SetupError> {
        let old = &self.0.walker;
        let egress = setup::configured_egress(config, Arc::new(SystemAddressLookup), ExpectedWorkload::Questions)?;
        let profiles = setup::load_profiles(config, &egress).await?;
        let policy = JudgementPolicy { record_rest: config.memory.record_rest, ..judgement_policy(&config.rules) };
        check_profile(config, &profiles)?;
        let upstream = setup::configured_upstream(config, &egress)?;
        let registries = setup::agent_registries(config, &upstream.http, &old.clock)?;
        let before = old.light_client.as_deref();
        let readers = setup::configured_chain_readers(
            &upstream,
            config,
            &egress,
            &old.clock,
            ExpectedWorkload::Questions,
            before,
        )?;
        let walker = Arc::new(UncachedResolver {
            chain: readers.chain,
            heads: Some(readers.heads),
            light_client: readers.light_client,
            upstream: Some(upstream),
            sources: ContentSources {
                content: Arc::new(setup::network_content_fetcher(config, &egress, &old.clock)?),
                ..old.sources.clone()
            },
            profiles,
            config: config.clone(),
            world: cached::sources_digest(config, egress.extra_roots()),
            ..UncachedResolver::clone(old)
        });
        let cached = self.0.cached.with_uncached_resolver(Arc::clone(&walker));
        Ok(Self::from_caching_resolver(walker, cached, registries, policy))
    }

    /// Builds a resolver from its parts, with the system's clock. It reads no ERC-8004 registries.
    ///
    /// # Errors
    /// If the configured profile does not exist, or the memory's file cannot be used.
    #[cfg(feature = "unstable")]
    pub fn from_chain_and_content(
        config: Config,
        profiles: ConformanceProfiles,
        chain: Arc<dyn EnsReader>,
        content: Arc<dyn ContentFetcher>,
    ) -> Result<Self, SetupError> {
        let world = cached::sources_digest(&config, &[]);
        let registries = AgentRegistries::new([]);
        let (upstream, heads, light_client, turns) = (None, None, None, ConcurrentNameLimit::default());
        let reads = ResolverSources { chain, upstream, heads, light_client, content, registries, turns };
        Self::from_sources(config, world, profiles, reads, Arc::new(SystemClock), CachingResolver::new)
    }

    fn from_sources(
        config: Config,
        world: Arc<str>,
        profiles: ConformanceProfiles,
        ResolverSources { chain, upstream, heads, light_client, content, registries, turns }: ResolverSources,
        clock: Arc<dyn Clock>,
        cached: impl FnOnce(Arc<UncachedResolver>) -> CachingResolver,
    ) -> Result<Self, SetupError> {
        check_profile(&config, &profiles)?;
        let policy = JudgementPolicy { record_rest: config.memory.record_rest, ..judgement_policy(&config.rules) };
        let history = setup::open_name_memory(&config)?;
        let seller_memory = setup::open_seller_memory(&config, history.as_ref())?;
        let pool = CpuPool::start_pool()
            .map_err(|error| SetupError::Invalid { what: "threads".to_owned(), detail: error.to_string() })?;
        let (pool, progress, traces) = (Arc::new(pool), StepEventChannel::new(), TraceQueue::new());
        let proven = IpfsContentCache::new(config.cache.content_bytes);
        let sources = ContentSources { content, proven, kept: None, pool: Arc::clone(&pool) };
        let walker = Arc::new(UncachedResolver {
            chain,
            upstream,
            heads,
            light_client,
            sources,
            clock,
            profiles,
            history,
            seller_memory,
            config,
            world,
            pool,
            progress,
            turns,
            traces,
        });
        let cached = cached(Arc::clone(&walker));
        Ok(Self::from_caching_resolver(walker, cached, registries, policy))
    }

    fn from_uncached_resolver(walker: UncachedResolver, registries: AgentRegistries, policy: JudgementPolicy) -> Self {
        let walker = Arc::new(walker);
        let cached = CachingResolver::new(Arc::clone(&walker));
        Self::from_caching_resolver(walker, cached, registries, policy)
    }

    /// A resolver without results of payment lookups.
    fn from_caching_resolver(
        walker: Arc<UncachedResolver>,
        cached: CachingResolver,
        registries: AgentRegistries,
        policy: JudgementPolicy,
    ) -> Self {
        let UncachedResolver { profiles, config, .. } = &*walker;
        let profile = profiles.get(&config.rules.profile).expect("checked when the configuration was read");
        Self(Arc::new(ResolverState {
            walker,
            registries,
            offer_keys: OfferSigningKeyCache::default(),
            receipt_signers: ReceiptSignerCache::default(),
            settlements: settlement::SettlementLookupCache::default(),
            schemas: BoundSchemaCache::default(),
            cached,
            configured: VerdictRules { profile, policy },
        }))
    }

    /// The same resolver with an empty cache and no fetched content. The chain reader keeps its connections and proven
    /// code.
    #[must_use]
    pub fn with_empty_cache(&self) -> Self {
        self.with_policy(self.0.configured.policy.clone())
    }

    /// The same resolver for another block, with an empty cache.
    pub fn at_block(&self, block: BlockSelector) -> Self {
        let mut walker = UncachedResolver::clone(&self.0.walker);
        walker.config.chain.block = block;
        Self::from_uncached_resolver(walker, self.0.registries.without_cache(), self.0.configured.policy.clone())
    }

    /// The same resolver with an empty cache and without `code` in the registry.
    #[cfg(feature = "unstable")]
    #[must_use]
    pub fn without_reason_code(&self, code: ReasonCode) -> Self {
        let mut policy = self.0.configured.policy.clone();
        policy.without.push(code);
        self.with_policy(policy)
    }

    fn with_policy(&self, policy: JudgementPolicy) -> Self {
        let mut walker = UncachedResolver::clone(&self.0.walker);
        walker.sources.proven = IpfsContentCache::new(walker.config.cache.content_bytes);
        if let Some(content) = walker.sources.content.without_stored_content() {
            walker.sources.content = content;
        }
        Self::from_uncached_resolver(walker, self.0.registries.without_cache(), policy)
    }

    /// The verdict on `input` under the configured profile and depth, from the cache or from a resolution. Never a
    /// stale one.
    ///
    /// Never fails: errors are part of the verdict.
    pub async fn resolve(&self, input: &str) -> Resolution {
        self.0.cached.resolve(input, &self.0.configured).await
    }

    /// The verdict on a question with its own profile and depth.
    ///
    /// # Errors
    /// If the question names an unknown profile.
    pub async fn resolve_question(&self, question: &NameQuestion) -> Result<Resolution, SetupError> {
        Ok(self.0.cached.resolve(&question.input, &*self.question_rules(question)?).await)
    }

    /// Subscribes to the steps of resolutions of the question's name. `None` if the name has no normal form.
    pub fn subscribe_to_steps(&self, question: &NameQuestion) -> Option<StepEventSubscription> {
        EnsName::parse(&question.input).ok().map(|name| self.0.walker.progress.subscribe(name))
    }

    /// The events of the cache.
    pub fn name_event_feed(&self) -> &Arc<NameEventFeed> {
        &self.0.cached.cache.feed
    }

    /// The verdict of a new resolution, even if the cache has a fresh one. It replaces the cached one.
    ///
    /// # Errors
    /// If the question names an unknown profile.
    pub async fn resolve_question_anew(&self, question: &NameQuestion) -> Result<Resolution, SetupError> {
        Ok(self.0.cached.resolve_anew(&question.input, &*self.question_rules(question)?).await)
    }

    /// What the cache contains for a question. Starts no resolution.
    ///
    /// # Errors
    /// If the question names an unknown profile.
    pub async fn cache_status(&self, question: &NameQuestion) -> Result<VerdictCacheKeyStatus, SetupError> {
        Ok(self.0.cached.cache_status(&question.input, &*self.question_rules(question)?).await)
    }

    /// The trusted verdict that expired less than [`STALE_FOR`] ago, if the latest resolution for the question failed
    /// and saw no change of the records. For APIs that describe: nothing else returns a stale verdict, and no gate
    /// accepts one.
    ///
    /// [`STALE_FOR`]: clresolve_core::freshness::STALE_FOR
    ///
    /// # Errors
    /// If the question names an unknown profile.
    pub async fn stale_verdict(&self, question: &NameQuestion) -> Result<Option<StaleVerdict>, SetupError> {
        Ok(self.0.cached.stale_verdict(&question.input, &*self.question_rules(question)?).await)
    }

    /// Refreshes trusted verdicts that were requested and are in the final 10 % of their lifetime. Runs at most
    /// `cache.refresh_runs` at a time, soonest expiry first, while `may_start(time_left)` returns true. Call it every
    /// few seconds. The chain is read anew; content is fetched again if the records have changed, and after an hour.
    pub async fn refresh_expiring_verdicts(&self, may_start: impl Fn(SignedDuration) -> bool) {
        self.0.cached.refresh_expiring_verdicts(&self.0.configured.policy, may_start).await;
    }

    /// Resolves names as [`Resolver::resolve`] does, at most `cache.refresh_runs` at a time. Calls `decided` for each
    /// name that then has a verdict other than a failure.
    pub async fn warm_cache(&self, names: impl Iterator<Item = EnsName>, decided: impl Fn(&EnsName)) {
        self.0.cached.warm_cache(names, &self.0.configured, decided).await;
    }

    /// The names with requested trusted verdicts, the most requested first, at most `most` of them.
    pub fn most_requested_names(&self, most: usize) -> Vec<EnsName> {
        self.0.cached.most_requested_names(most)
    }

    /// The time since the latest resolution for a question, whatever its result: a failure that left an earlier verdict
    /// in place counts too. [`Duration::MAX`] if none is remembered; zero for an invalid name, which is judged each
    /// time.
    ///
    /// # Errors
    /// If the question names an unknown profile.
    pub async fn time_since_resolution(&self, question: &NameQuestion) -> Result<Duration, SetupError> {
        Ok(self.0.cached.time_since_resolution(&question.input, &*self.question_rules(question)?).await)
    }

    /// The traces of resolutions that begin from now on, including those after a reload of the configuration. `None` if
    /// they have a receiver already.
    pub fn open_trace_queue(&self) -> Option<tokio::sync::mpsc::Receiver<ResolutionTrace>> {
        self.0.walker.traces.open_receiver()
    }

    /// Evicts `name`: the next question about it starts a resolution.
    pub fn evict_name(&self, name: &EnsName) {
        self.0.cached.evict_names([name]);
    }

    /// The schema that the card of a trusted agent binds for its first verb. `None` if it is unknown.
    #[cfg(feature = "unstable")]
    pub async fn bound_schema(
        &self,
        name: &str,
        side: clresolve_verdict::card::SchemaRole,
    ) -> Option<Arc<clresolve_verdict::schema::bound::BoundSchema>> {
        let ResolverState { walker, schemas, .. } = &*self.0;
        let resolution = self.resolve(name).await;
        schemas.bound_schema_of_agent(walker, &self.0.configured.profile, &resolution, side).await?.ok()
    }

    /// The cache key of a question. `None` for an invalid name or an unknown profile.
    #[cfg(feature = "unstable")]
    pub fn cache_key(&self, question: &NameQuestion) -> Option<crate::cache::VerdictCacheKey> {
        let rules = self.question_rules(question).ok()?;
        Some(self.0.cached.cache_key(EnsName::parse(&question.input).ok()?, &rules))
    }

    /// Waits until all evidence that is shared so far has been written.
    #[cfg(feature = "unstable")]
    pub async fn wait_for_shared_writes(&self) {
        self.0.cached.wait_for_shared_writes().await;
    }

    fn question_rules(&self, question: &NameQuestion) -> Result<Cow<'_, VerdictRules>, SetupError> {
        let NameQuestion { profile: None, depth: None, .. } = question else {
            return self.build_question_rules(question).map(Cow::Owned);
        };
        Ok(Cow::Borrowed(&self.0.configured))
    }

    fn build_question_rules(
        &self,
        NameQuestion { profile, depth, .. }: &NameQuestion,
    ) -> Result<VerdictRules, SetupError> {
        let VerdictRules { profile: configured, policy } = &self.0.configured;
        let profile = match profile {
            None => Arc::clone(configured),
            Some(id) => self.0.walker.profiles.get(id).ok_or_else(|| SetupError::Invalid {
                what: "profile".to_owned(),
                detail: format!("no profile {id}"),
            })?,
        };
        Ok(VerdictRules { profile, policy: JudgementPolicy { depth: depth.unwrap_or(policy.depth), ..policy.clone() } })
    }

    /// Resolves a name separately and returns the verdict in a bundle with everything on which it rests. Nothing of an
    /// earlier resolution is used.
    ///
    /// # Errors
    /// [`ExportError`] for an invalid name or an unknown profile, or if the evidence does not reproduce the verdict.
    pub async fn export_bundle(&self, question: &NameQuestion) -> Result<SignableBundle, ExportError> {
        let rules = self.question_rules(question)?;
        let name = EnsName::parse(&question.input)?;
        export::export_bundle(&self.0.walker, name, &rules).await
    }

    /// The records of a name, without any judgement.
    ///
    /// # Errors
    /// If the chain cannot be read.
    pub async fn read_records(&self, name: &EnsName) -> Result<NameReading, ChainError> {
        self.0.walker.read_records(name, Instant::now() + self.question_time_limit()).await
    }

    /// Sends a request without a payment to a seller's URL and returns the response: a POST of `body` if there is one,
    /// otherwise a GET. The request goes through the egress guard, and no redirect is followed.
    ///
    /// # Errors
    /// The egress guard refuses the URL, or its host does not respond.
    pub async fn send_unpaid_request(
        &self,
        url: &str,
        body: Option<impl Into<Bytes>>,
    ) -> Result<SellerReply, FetchError> {
        self.0.walker.sources.content.send_unpaid_request(url, body.map(Into::into), self.question_time_limit()).await
    }

    /// Retrieves and proves the bytes under a CID and a path, as a trustless `ipfs cat`.
    pub async fn ipfs_cat(&self, cid: &ContentId, path: &UnixFsPath) -> IpfsPathResult {
        self.0
            .walker
            .sources
            .content
            .walk_ipfs_path(cid, path, &[], DagWalkBudget::for_cat_command(), self.question_time_limit())
            .await
    }

    /// Fetches the key set at `url`, within the time limit of one question.
    pub async fn fetch_key_set(&self, url: &str) -> HttpsOutcome {
        self.0.walker.sources.content.fetch_key_set(url, self.question_time_limit()).await
    }

    /// Reads the records that name the signing key of `name`, within the time limit of one question.
    ///
    /// # Errors
    /// [`SignerRecordsError`] if the records cannot be read or are not settled.
    pub async fn read_signer_records(&self, name: &EnsName) -> Result<SignerRecords, SignerRecordsError> {
        SignerRecords::read_records(&self.0.walker, name, self.question_time_limit()).await
    }

    /// The document at a foreign URL, without any judgement.
    ///
    /// # Errors
    /// As [`crate::fetch::https::fetch_document`].
    pub async fn fetch_document(&self, url: &str) -> Result<FetchedDocument, FetchError> {
        self.0.walker.sources.content.fetch_document(url, self.question_time_limit()).await
    }

    /// The document at a plain `http` URL whose origin the operator named, without any judgement. Its server is not
    /// authenticated.
    ///
    /// # Errors
    /// As [`crate::fetch::https::fetch_document`].
    pub async fn fetch_plain_http_document(&self, url: &str) -> Result<FetchedDocument, FetchError> {
        self.0.walker.sources.content.fetch_plain_http_document(url, self.question_time_limit()).await
    }

    /// The manifest of a registry, or the descriptor that leads to it, at an `https` or `ipfs` URL. Its CID proves
    /// content from `ipfs`.
    ///
    /// # Errors
    /// [`RegistryDocumentFetchError`]
    pub async fn fetch_registry_manifest(&self, location: &str) -> Result<Bytes, RegistryDocumentFetchError> {
        self.0.walker.sources.fetch_registry_manifest(location, self.question_time_limit()).await
    }

    /// The threads that judge evidence.
    pub fn cpu_pool(&self) -> &Arc<CpuPool> {
        &self.0.walker.pool
    }

    /// The rules that the resolver knows.
    pub fn profiles(&self) -> &ConformanceProfiles {
        &self.0.walker.profiles
    }

    /// Time limit of one question.
    pub fn question_time_limit(&self) -> Duration {
        self.0.walker.config.timeout
    }

    /// The time by the resolver's clock.
    pub fn now(&self) -> Timestamp {
        self.0.walker.now()
    }
}

fn check_profile(config: &Config, profiles: &ConformanceProfiles) -> Result<(), SetupError> {
    if profiles.get(&config.rules.profile).is_some() {
        return Ok(());
    }
    let known: Vec<_> = profiles.iter().map(|profile| profile.id().to_owned()).collect();
    let detail = format!("no profile {}; known are {}", config.rules.profile, known.join(", "));
    Err(SetupError::Invalid { what: "profile".to_owned(), detail })
}

/// What the configured rules require of the evidence, besides the profile.
pub fn judgement_policy(rules: &VerdictRulesConfig) -> JudgementPolicy {
    JudgementPolicy {
        depth: rules.depth,
        require_all_sources: rules.require_all_sources,
        allowed_publishers: rules.allowed_publishers.clone(),
        ..JudgementPolicy::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    use clresolve_core::reason::ReasonCode;
    use futures_util::future::join_all;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::config::{ChainProofMode, IpfsGateway};
    use crate::cpu_pool::OccupiedCpuPool;
    use crate::sandbox::{CustomSandbox, Sandbox, ServedChainState};
    use clresolve_sandbox::chain::SandboxRpcFault;
    use clresolve_sandbox::spec::SandboxSpec;

    /// The machine's time, shifted by this number of seconds.
    #[derive(Default)]
    struct Shifted(AtomicI64);

    impl Clock for Shifted {
        fn now(&self) -> Timestamp {
            Timestamp::now() + SignedDuration::from_secs(self.0.load(Ordering::Relaxed))
        }
    }

    /// A resolver whose only endpoint never answers, and its world, so that every time limit is reached.
    pub(super) async fn stalled() -> (CustomSandbox, Resolver) {
        let spec =
            SandboxSpec::parse("[[agent]]\nname = \"summarizeagent.eth\"\nabout = \"Good.\"\n").expect("it is a world");
        let world = CustomSandbox::start(&spec).await.expect("it starts");
        let mut config = world.config();
        let endpoint =
            world.start_rpc_endpoint(SandboxRpcFault::Stall, ServedChainState::Growing, true).await.expect("a port");
        config.chain.endpoints[0].url = endpoint.url;
        let resolver = Resolver::new(&config).await.expect("its configuration is good");
        (world, resolver)
    }

    /// A gateway that always asks for the longest pause, and the number of its requests.
    async fn busy_gateway() -> (IpfsGateway, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address")).parse().expect("a URL");
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                let answer = b"HTTP/1.1 503 Busy\r\nRetry-After: 300\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer).await;
            }
        });
        (IpfsGateway { label: "busy".to_owned(), url, own: true }, count)
    }

    /// An endpoint that closes every connection, and the number of connections.
    async fn closing_endpoint() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        (url, count)
    }

    /// While every judging thread is busy, a resolution waits with its evidence, and known answers are still returned.
    #[tokio::test]
    async fn judging_takes_no_time_of_those_who_answer() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        config.timeout = Duration::from_secs(120);
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let known = resolver.resolve("summarizeagent.eth").await;
        let busy = OccupiedCpuPool::occupy_all(resolver.cpu_pool());
        let asking = resolver.clone();
        let judged = tokio::spawn(async move { asking.resolve("checkoutagent.eth").await });
        while !OccupiedCpuPool::is_waited_for(resolver.cpu_pool()) {
            assert!(!judged.is_finished(), "it was judged on the thread that answers");
            tokio::task::yield_now().await;
        }
        assert_eq!(resolver.resolve("summarizeagent.eth").await.verdict().id, known.verdict().id);
        assert!(!judged.is_finished());
        busy.release().await;
        assert_eq!(judged.await.expect("it ends").verdict().state, crate::TrustState::Trusted);
    }

    /// The content of a cached verdict may be known to be wrong although the chain has not changed.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_held_verdict_whose_name_was_evicted_is_made_again() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let resolver = Resolver::new(&sandbox.config()).await.expect("a resolver");
        resolver.resolve("summarizeagent.eth").await;
        let held = resolver.resolve("summarizeagent.eth").await;
        let checked_at = |resolution: &Resolution| resolution.verdict().freshness.checked_at;
        assert_eq!(checked_at(&resolver.confirm_for_gate(held.clone()).await), checked_at(&held));
        resolver.evict_name(&EnsName::parse("summarizeagent.eth").expect("a name"));
        let again = resolver.confirm_for_gate(held.clone()).await;
        assert!(checked_at(&again) > checked_at(&held) && again.newest_block_confirmation().is_ok());
    }

    /// An eviction while a resolution is judged applies to its callers.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_that_a_change_overtook_is_not_given() {
        let agent = "[[agent]]\nname = \"good.eth\"\nabout = \"Good.\"\nstate = \"trusted\"\n";
        let mut world =
            CustomSandbox::start(&SandboxSpec::parse(agent).expect("it is a world")).await.expect("it starts");
        let mut config = world.config();
        config.timeout = Duration::from_secs(120);
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let busy = OccupiedCpuPool::occupy_all(resolver.cpu_pool());
        let asking = resolver.clone();
        let judged = tokio::spawn(async move { asking.resolve("good.eth").await });
        while !OccupiedCpuPool::is_waited_for(resolver.cpu_pool()) {
            tokio::task::yield_now().await;
        }
        let name = EnsName::parse("good.eth").expect("a name");
        world.write_text(&name, "cl.owner", "thief.eth").expect("it has a resolver");
        resolver.evict_name(&name);
        busy.release().await;
        let answer = judged.await.expect("it ends");
        let codes: Vec<_> = answer.verdict().reasons.iter().map(|reason| reason.code).collect();
        assert_eq!((answer.verdict().state, codes[0]), (crate::TrustState::Indeterminate, ReasonCode::RecordPending));
    }

    /// No cached verdict is there to be evicted.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_answer_that_a_new_head_contradicts_is_not_given() {
        let agent = "[[agent]]\nname = \"good.eth\"\nabout = \"Good.\"\nstate = \"trusted\"\n";
        let mut world =
            CustomSandbox::start(&SandboxSpec::parse(agent).expect("it is a world")).await.expect("it starts");
        let mut config = world.config();
        (config.timeout, config.chain.head_poll) = (Duration::from_secs(120), Duration::from_millis(10));
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let _following = resolver.follow_heads();
        let busy = OccupiedCpuPool::occupy_all(resolver.cpu_pool());
        let asking = resolver.clone();
        let judged = tokio::spawn(async move { asking.resolve("good.eth").await });
        resolver.0.cached.cache.hot_names.record_request("other.eth", resolver.now());
        while !OccupiedCpuPool::is_waited_for(resolver.cpu_pool()) || resolver.chain_head_status().is_none() {
            tokio::task::yield_now().await;
        }
        let before = resolver.chain_head_status().map(|head| head.number);
        let name = EnsName::parse("good.eth").expect("a name");
        world.write_text(&name, "cl.owner", "thief.eth").expect("it has a resolver");
        while resolver.chain_head_status().map(|head| head.number) == before {
            tokio::task::yield_now().await;
        }
        busy.release().await;
        let answer = judged.await.expect("it ends");
        let codes: Vec<_> = answer.verdict().reasons.iter().map(|reason| reason.code).collect();
        assert_eq!((answer.verdict().state, codes[0]), (crate::TrustState::Indeterminate, ReasonCode::RecordPending));
    }

    /// Nothing follows the head here, so each question reads it. Concurrent questions share the requests.
    #[tokio::test(flavor = "multi_thread")]
    async fn questions_at_the_same_time_share_one_confirmation() {
        let agent = "[[agent]]\nname = \"good.eth\"\nabout = \"Good.\"\nstate = \"trusted\"\n";
        let mut world =
            CustomSandbox::start(&SandboxSpec::parse(agent).expect("it is a world")).await.expect("it starts");
        let mut config = world.config();
        config.timeout = Duration::from_secs(120);
        let resolver = Resolver::new(&config).await.expect("a resolver");
        resolver.resolve("good.eth").await;
        let before = world.request_counts().rpc;
        let admitted = join_all((0..20).map(|_| resolver.check_gate("good.eth", "summarize"))).await;
        assert!(admitted.iter().all(Result::is_ok), "{admitted:?}");
        // Requests for the chain id, the head and the name.
        assert_eq!(world.request_counts().rpc - before, 3);
        let name = EnsName::parse("good.eth").expect("a name");
        world.write_text(&name, "cl.owner", "thief.eth").expect("it has a resolver");
        assert_eq!(resolver.check_gate("good.eth", "summarize").await, Err("record-pending"));
    }

    /// An endpoint that failed is asked last for a while, which the resolver's clock measures.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_clock_reaches_the_chain() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let (closing, connections) = closing_endpoint().await;
        let mut config = sandbox.config();
        config.timeout = Duration::from_secs(120);
        config.chain.proof = Some(ChainProofMode::SingleRpc);
        config.chain.endpoints.insert(0, closing.parse().expect("an endpoint"));
        let clock = Arc::new(Shifted::default());
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("a resolver");
        let name = EnsName::parse("summarizeagent.eth").expect("a name");
        let connections_of_a_reading = async || {
            let before = connections.load(Ordering::Relaxed);
            resolver.read_records(&name).await.expect("the second endpoint answers");
            connections.load(Ordering::Relaxed) - before
        };
        assert!(connections_of_a_reading().await > 0, "it is the first of the list");
        assert_eq!(connections_of_a_reading().await, 0, "it failed a moment ago");
        clock.0.store(24 * 60 * 60, Ordering::Relaxed);
        assert!(connections_of_a_reading().await > 0, "a day later it is asked first again");
    }

    /// A timeout of a reading is not the failure of an endpoint.
    #[tokio::test]
    async fn a_reading_that_takes_too_long_says_how_long_it_had() {
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", silent.local_addr().expect("an address"));
        let mut config = Config { timeout: Duration::from_secs(120), ..Config::default() };
        config.chain.proof = Some(ChainProofMode::SingleRpc);
        config.chain.endpoints = vec![url.parse().expect("an endpoint")];
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let name = EnsName::parse("a.eth").expect("a name");
        let found = resolver.0.walker.read_records(&name, Instant::now() + Duration::from_millis(200)).await;
        let Err(error @ ChainError::Late { milliseconds }) = found else { panic!("{found:?}") };
        assert!((1..=120).contains(&milliseconds), "{milliseconds}");
        assert_eq!(clresolve_verdict::check::records::chain_error_reason(&error).code, ReasonCode::RpcUnreachable);
    }

    /// A gateway that asked for a pause is not asked before it is over by the resolver's clock.
    #[tokio::test]
    async fn the_clock_reaches_the_gateways() {
        let (gateway, asked) = busy_gateway().await;
        let config = Config { gateways: vec![gateway], timeout: Duration::from_secs(120), ..Config::default() };
        let clock = Arc::new(Shifted::default());
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("a resolver");
        let (cid, path) = (ContentId::from_raw_block(b"bytes"), UnixFsPath::default());
        resolver.ipfs_cat(&cid, &path).await;
        resolver.ipfs_cat(&cid, &path).await;
        assert_eq!(asked.load(Ordering::Relaxed), 1, "it rests");
        clock.0.store(10 * 60, Ordering::Relaxed);
        resolver.ipfs_cat(&cid, &path).await;
        assert_eq!(asked.load(Ordering::Relaxed), 2, "ten minutes later it is asked again");
    }
    /// After a reload, a daemon resolves anew if a file of trust roots has changed.
    #[tokio::test]
    async fn other_bytes_in_a_file_of_trust_roots_are_another_world() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        let pem = config.network.ca_pems.concat();
        config.network.ca_pems.clear();
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, &pem).expect("the file is written");
        config.network.ca_files.push(file.clone());
        let resolver = Resolver::new(&config).await.expect("a resolver");
        resolver.resolve("summarizeagent.eth").await;
        let is_known = async || {
            let again = resolver.reconfigured(&config).await.expect("the configuration is good");
            let status =
                again.cache_status(&NameQuestion::new("summarizeagent.eth")).await.expect("the profile exists");
            matches!(status, VerdictCacheKeyStatus::Fresh(_))
        };
        assert!(is_known().await);
        std::fs::write(&file, pem.repeat(2)).expect("the file is written");
        assert!(!is_known().await);
    }
}
