//! Builds the parts of a [`Resolver`](super::Resolver) from a configuration.

use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_chain::transport::{HttpRequestError, JsonRpcHttpClient};
use clresolve_chain::{ChainReaderConfig, RpcEnsReader};
use clresolve_core::digest::Digest;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::ProofGradeDemand;
use clresolve_core::text::strip_url_secrets;
use clresolve_state::EnsContractAddresses;
use clresolve_verdict::profile::ConformanceProfiles;
use futures_util::TryStreamExt as _;
use futures_util::stream::FuturesOrdered;
use url::Url;

#[cfg(feature = "state-proof")]
use super::consensus::proven_chain_readers;
use super::consensus::{ChainReaders, LightClient};
use super::content::ContentFetcher;
use super::continuity::{NameMemory, SellerMemory};
use super::fleet::ReplicaFleet;
use super::network::NetworkContentFetcher;
use super::registration::{AgentRegistries, ConfiguredAgentRegistry};
use super::setup_error::SetupError;
use super::shared_content::SharedContentFetcher;
use super::turns::ConcurrentNameLimit;
use super::upstream::{ChainRpcUpstream, http_request_error};
use crate::cache::VerdictCache;
use crate::clock::Clock;
#[cfg(not(feature = "state-proof"))]
use crate::config::NO_STATE_PROOF;
use crate::config::{
    ChainId, Config, ConfigError, DnsResolutionMode, RegistryChainConfig, RpcEndpointConfig, SchemaManifestSource,
};
use crate::fetch::ccip::GuardedCcipReadGatewayClient;
use crate::fetch::https::{self, FetchLimits};
use crate::fetch::ipfs::IpfsClient;
use crate::fetch::{AddressLookup, BufferedResponse, Egress, EgressConfig};

/// Maximum time for fetching a manifest at startup.
const MANIFEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The memory, if a file is configured.
pub(super) fn open_name_memory(config: &Config) -> Result<Option<NameMemory>, SetupError> {
    let Some(path) = &config.memory.path else { return Ok(None) };
    NameMemory::open(path, config).map(Some).map_err(|error| SetupError::invalid("memory.path", error))
}

/// The memory of sellers: in the memory's file, if one is configured. The sandbox otherwise keeps it in this process.
pub(super) fn open_seller_memory(
    config: &Config,
    history: Option<&NameMemory>,
) -> Result<Option<SellerMemory>, SetupError> {
    #[cfg(feature = "sandbox")]
    if history.is_none() && config.chain.world == clresolve_core::world::SANDBOX {
        return SellerMemory::for_sandbox(config).map(Some).map_err(|error| SetupError::invalid("memory", error));
    }
    let _ = config;
    Ok(history.map(NameMemory::seller_memory))
}

/// The fleet, if a server for shared evidence is configured.
pub(super) async fn join_replica_fleet(
    config: &Config,
    egress: &Egress,
    clock: &Arc<dyn Clock>,
    cache: &Arc<VerdictCache>,
) -> Result<Option<ReplicaFleet>, SetupError> {
    config.check_evidence_sharing().map_err(|error| match error {
        ConfigError::Conflict { key, detail } => SetupError::invalid(&key, detail),
        other => SetupError::invalid("redis", other),
    })?;
    ReplicaFleet::join(config, egress, clock, cache).await.map_err(|error| SetupError::invalid("redis.mac-key", error))
}

/// The egress guard with the exceptions that the configuration permits.
pub fn configured_egress(
    config: &Config,
    lookup: Arc<dyn AddressLookup>,
    load: ExpectedWorkload,
) -> Result<Egress, SetupError> {
    let network = &config.network;
    let lookup = match network.dns {
        DnsResolutionMode::Off if !clresolve_core::mutant!("look-ups-stay-on") => Arc::new(DisabledDnsLookup),
        DnsResolutionMode::System | DnsResolutionMode::Off => lookup,
    };
    let mut extra_roots: Vec<Bytes> = network.ca_pems.iter().map(|pem| Bytes::from(pem.clone())).collect();
    for path in &network.ca_files {
        extra_roots.push(read_operator_file("ca", path)?.into());
    }
    let config = EgressConfig {
        allow_host: network.allow_hosts.clone(),
        connect_to: network.connect_to.clone(),
        extra_roots,
        denied: network.denied.clone(),
        is_paced: load != ExpectedWorkload::Questions,
        ..EgressConfig::default()
    };
    Egress::with_lookup(config, lookup).map_err(|error| SetupError::invalid("ca", error))
}

struct DisabledDnsLookup;

#[async_trait]
impl AddressLookup for DisabledDnsLookup {
    async fn lookup(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// The share of the time limit that the endpoints may use: half, so that time remains for the owner and the content.
const ENDPOINTS_SHARE: f64 = 0.5;

/// Number of endpoints that can fail in turn within that share. With more endpoints, one resolution may not reach the
/// last ones. Endpoints that failed are asked last for a while.
const ENDPOINTS_IN_TURN: usize = 3;

/// The fraction of a request's timeout after which the next endpoint is asked in parallel with stalling ones. With the
/// default time limit this is half a second, which honest public endpoints seldom exceed.
const HEDGE_SHARE: f64 = 0.2;

/// The share of the time limit that one off-chain lookup may use, counted from the start of the lookup. It is less than
/// the share of the whole reading (`CHAIN_SHARE`). If the endpoints answer within the difference, a silent CCIP-Read
/// gateway is reported; otherwise the reading times out first, and the gateway is not named.
const LOOKUP_SHARE: f64 = 0.4;

/// The configured endpoints, through the operator's egress client.
pub(super) fn configured_upstream(config: &Config, egress: &Egress) -> Result<ChainRpcUpstream, SetupError> {
    let timeout = rpc_request_timeout(config, &config.chain.endpoints);
    let settings = ChainReaderConfig {
        chain_id: config.chain.id,
        genesis: config.chain.genesis,
        demand: config.chain.proof_grade_demand().map_err(|error| SetupError::invalid("proof", error))?,
        contracts: EnsContractAddresses {
            universal_resolver: config.chain.universal_resolver,
            ..EnsContractAddresses::default()
        },
        endpoints: config.chain.labelled_endpoints().into_iter().map(Into::into).collect(),
        timeout,
        hedge_after: timeout.mul_f64(HEDGE_SHARE),
        lookup_timeout: config.chain.ccip_read.then(|| config.timeout.mul_f64(LOOKUP_SHARE)),
        coins: config.coin_types(),
        max_head_age: config.chain.effective_max_head_age(),
    };
    Ok(ChainRpcUpstream { settings, http: Arc::new(RpcEgressClient(egress.clone())), egress: egress.clone() })
}

/// The expected workload of a resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedWorkload {
    /// Individual questions.
    Questions,
    /// A list of names. At most `at_once` of them query their content sources concurrently.
    List {
        /// Maximum concurrency.
        at_once: u8,
    },
}

impl ExpectedWorkload {
    pub(super) fn concurrency_limit(self) -> ConcurrentNameLimit {
        match self {
            Self::Questions => ConcurrentNameLimit::default(),
            Self::List { at_once } => ConcurrentNameLimit::with_limit(at_once),
        }
    }

    /// For a list, wraps the content source so that names share common content.
    pub(super) fn with_shared_content(self, content: Arc<dyn ContentFetcher>) -> Arc<dyn ContentFetcher> {
        match self {
            Self::Questions => content,
            Self::List { .. } => Arc::new(SharedContentFetcher::new_round(content)),
        }
    }
}

/// The client for off-chain lookups. A CCIP-Read gateway may use a quarter of the time limit, so that its failure is
/// attributed to it.
pub(super) fn ccip_read_gateway_client(config: &Config, egress: &Egress) -> Arc<GuardedCcipReadGatewayClient> {
    Arc::new(GuardedCcipReadGatewayClient::new(egress.clone(), config.timeout / 4))
}

pub(super) fn chain_time_source(clock: &Arc<dyn Clock>) -> clresolve_chain::TimeSource {
    let clock = Arc::clone(clock);
    Arc::new(move || clock.now())
}

pub(super) fn configured_chain_readers(
    upstream: &ChainRpcUpstream,
    config: &Config,
    egress: &Egress,
    clock: &Arc<dyn Clock>,
    load: ExpectedWorkload,
    before: Option<&LightClient>,
) -> Result<ChainReaders, SetupError> {
    let (gateway, now) = (ccip_read_gateway_client(config, egress), chain_time_source(clock));
    if upstream.settings.demand.requires_state_proof() && !clresolve_core::mutant!("state-is-told") {
        return proven_chain_readers(upstream, config, gateway, &now, before);
    }
    let ChainRpcUpstream { settings, http, .. } = upstream.clone();
    let reader = match load {
        ExpectedWorkload::Questions => RpcEnsReader::new(settings, &http, gateway),
        ExpectedWorkload::List { .. } => RpcEnsReader::new_batching(settings, &http, gateway),
    };
    let heads = upstream.head_reader(Arc::clone(&now));
    Ok(ChainReaders { chain: Arc::new(reader.with_clock(now)), heads, light_client: None })
}

/// The timeout of one request, if these endpoints may have to be asked in turn.
fn rpc_request_timeout(config: &Config, endpoints: &[RpcEndpointConfig]) -> Duration {
    let in_turn = endpoints.len().clamp(1, ENDPOINTS_IN_TURN) as f64;
    config.timeout.mul_f64(ENDPOINTS_SHARE / in_turn)
}

/// The readers of the payment chains, with `clock`. Requests go through `http`.
pub(super) fn agent_registries(
    config: &Config,
    http: &Arc<dyn JsonRpcHttpClient>,
    clock: &Arc<dyn Clock>,
) -> Result<AgentRegistries, SetupError> {
    let of_chain = |(id, chain): (&ChainId, &RegistryChainConfig)| {
        let demand = chain.proof_grade_demand().map_err(|error| SetupError::invalid("chains", error))?;
        let timeout = rpc_request_timeout(config, &chain.endpoints);
        let settings = ChainReaderConfig {
            chain_id: id.number(),
            genesis: None,
            demand: if clresolve_core::mutant!("one-endpoint-tells-the-wallet") {
                ProofGradeDemand::SingleRpc
            } else {
                demand
            },
            contracts: EnsContractAddresses::default(),
            endpoints: chain.endpoints.iter().cloned().map(Into::into).collect(),
            timeout,
            hedge_after: timeout.mul_f64(HEDGE_SHARE),
            lookup_timeout: None,
            coins: RequestedCoinTypes::default(),
            max_head_age: chain.effective_max_head_age(*id),
        };
        Ok(ConfiguredAgentRegistry::new(chain, settings, http, clock))
    };
    Ok(AgentRegistries::new(config.chains.iter().map(of_chain).collect::<Result<Vec<_>, _>>()?))
}

/// A build without the feature verifies no proofs, and does not fall back to a lower grade.
#[cfg(not(feature = "state-proof"))]
fn proven_chain_readers(
    _: &ChainRpcUpstream,
    _: &Config,
    _: Arc<GuardedCcipReadGatewayClient>,
    _: &clresolve_chain::TimeSource,
    _: Option<&LightClient>,
) -> Result<ChainReaders, SetupError> {
    Err(SetupError::invalid("proof", NO_STATE_PROOF))
}

/// Sends the chain's requests through the operator's egress client.
struct RpcEgressClient(Egress);

#[async_trait]
impl JsonRpcHttpClient for RpcEgressClient {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let client =
            self.0.single_origin_client(url).map_err(|refusal| HttpRequestError::Connection(refusal.to_string()))?;
        match client.post_json(url, body, cap, timeout).await {
            Ok(answer) if answer.is_success() => Ok(answer.body),
            Ok(BufferedResponse { status, body, .. }) => Err(HttpRequestError::Status(status, body)),
            Err(error) => Err(http_request_error(error, timeout)),
        }
    }
}

/// The content source on the network, with `clock`.
pub(super) fn network_content_fetcher(
    config: &Config,
    egress: &Egress,
    clock: &Arc<dyn Clock>,
) -> Result<NetworkContentFetcher, SetupError> {
    Ok(NetworkContentFetcher { egress: egress.clone(), ipfs: ipfs_client(config, egress)?, clock: Arc::clone(clock) })
}

pub(super) fn ipfs_client(config: &Config, egress: &Egress) -> Result<IpfsClient, SetupError> {
    let client = IpfsClient::new(egress, config.gateways.clone(), config.network.hedging);
    client.map_err(|error| SetupError::invalid("gateway", error))
}

/// The built-in profiles, with the manifests that the configuration replaces and the profiles that it adds. Manifests
/// are fetched concurrently. If several are unusable, the first one is reported.
pub(super) async fn load_profiles(config: &Config, egress: &Egress) -> Result<ConformanceProfiles, SetupError> {
    let fetched: FuturesOrdered<_> =
        config.rules.manifests.iter().map(|source| load_manifest(source, egress)).collect();
    let manifests: Vec<Bytes> = fetched.try_collect().await?;
    profiles_with_manifests(&manifests, config)
}

/// The built-in rules, and those in files that a configuration names. Uses no network.
///
/// # Errors
/// A file cannot be read, or is not a manifest or profile.
pub fn local_profiles(config: &Config) -> Result<ConformanceProfiles, SetupError> {
    let files = config.rules.manifests.iter().filter_map(|source| match source {
        SchemaManifestSource::File(path) => Some(read_operator_file("manifest", path).map(Bytes::from)),
        SchemaManifestSource::Url { .. } => None,
    });
    profiles_with_manifests(&files.collect::<Result<Vec<_>, _>>()?, config)
}

/// The built-in rules with these manifests, and the configured profiles.
fn profiles_with_manifests(manifests: &[Bytes], config: &Config) -> Result<ConformanceProfiles, SetupError> {
    let mut profiles = ConformanceProfiles::builtin();
    for bytes in manifests {
        profiles.replace_manifest(bytes).map_err(|error| SetupError::invalid("manifest", error))?;
    }
    for path in &config.rules.profile_files {
        profiles
            .add_profile(&read_operator_file("profile_files", path)?)
            .map_err(|error| SetupError::invalid("profile_files", error))?;
    }
    Ok(profiles)
}

/// The bytes of a manifest. Bytes from a URL must match the configured digest.
async fn load_manifest(source: &SchemaManifestSource, egress: &Egress) -> Result<Bytes, SetupError> {
    match source {
        SchemaManifestSource::File(path) => Ok(read_operator_file("manifest", path)?.into()),
        SchemaManifestSource::Url { url, digest } => {
            let digest: Digest = digest.parse().map_err(|error| SetupError::invalid("manifest", error))?;
            let limits = FetchLimits { total: MANIFEST_TIMEOUT, ..FetchLimits::for_card() };
            let unusable = |error: &dyn Display| {
                SetupError::invalid("manifest", format!("{}: {error}", strip_url_secrets(url.as_str())))
            };
            let body = https::fetch_document(egress, url.as_str(), limits).await.map_err(|error| unusable(&error))?;
            digest.verify_bytes(&body.bytes).map_err(|error| unusable(&error))?;
            Ok(body.bytes)
        }
    }
}

/// Reads a file that the operator named.
fn read_operator_file(what: &str, path: &Path) -> Result<Vec<u8>, SetupError> {
    std::fs::read(path).map_err(|error| SetupError::invalid(what, format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::fetch::SystemAddressLookup;

    /// The result of the operator's egress client for a server with this response, or without one.
    async fn posted(answer: &[u8], timeout: Duration) -> Result<Bytes, HttpRequestError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let client = RpcEgressClient(Egress::new(EgressConfig::default()).unwrap());
        let served = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await.unwrap();
            stream.write_all(answer).await.unwrap();
            stream
        };
        let post = client.post_json(&url, Bytes::from_static(b"{}"), 2, timeout);
        tokio::join!(post, served).0
    }

    #[tokio::test]
    async fn why_an_endpoint_gave_nothing_is_told_apart() {
        let [short, long] = [Duration::from_millis(100), Duration::from_secs(60)];
        let good = posted(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", long).await;
        assert_eq!(good, Ok(Bytes::from_static(b"{}")));
        let large = posted(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{ }", long).await;
        assert_eq!(large, Err(HttpRequestError::TooLarge(2)));
        let refused = posted(b"HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n\r\n", long).await;
        assert_eq!(refused, Err(HttpRequestError::Status(429, Bytes::new())));
        assert_eq!(posted(b"", short).await, Err(HttpRequestError::Timeout(short)));
        assert!(matches!(posted(b"no HTTP\r\n\r\n", long).await, Err(HttpRequestError::Connection(_))));
    }

    /// Otherwise each of them adds its round trips to the startup time.
    #[tokio::test]
    async fn manifests_are_fetched_at_the_same_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = ["one.example", "two.example", "three.example"];
        let mut config = Config::default();
        let detour = |host: &&str| format!("{host}:443:{address}").parse().unwrap();
        config.network.connect_to = hosts.iter().map(detour).collect();
        let source = |host: &str| SchemaManifestSource::Url {
            url: format!("https://{host}/manifest.json").parse().unwrap(),
            digest: Digest::compute(b"").to_string(),
        };
        config.rules.manifests = hosts.map(source).into();
        let egress = configured_egress(&config, Arc::new(SystemAddressLookup), ExpectedWorkload::Questions).unwrap();
        // No request is answered before all have arrived.
        let all_come = async {
            let mut open = Vec::new();
            while open.len() < hosts.len() {
                open.push(listener.accept().await.unwrap());
            }
        };
        let (fetched, came) = tokio::join!(load_profiles(&config, &egress), timeout(MANIFEST_TIMEOUT, all_come));
        came.expect("each is asked for while the others wait");
        let SetupError::Invalid { what, detail } = fetched.expect_err("the hosts hang up");
        assert!(what == "manifest" && detail.contains(hosts[0]), "{what}: {detail}");
    }
}
