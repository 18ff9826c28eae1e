//! Builds the parts of a [`Resolver`](super::Resolver) from a configuration.

use std::fmt::Display;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_chain::transport::{HttpPost, PostError};
use clresolve_chain::{ChainConfig, RpcChain};
use clresolve_core::digest::Digest;
use clresolve_core::payment::Coins;
use clresolve_core::reading::GradeDemand;
use clresolve_core::text::without_secrets;
use clresolve_state::Contracts;
use clresolve_verdict::profile::Profiles;
use futures_util::TryStreamExt as _;
use futures_util::stream::FuturesOrdered;
use url::Url;

#[cfg(feature = "state-proof")]
use super::consensus::proven;
use super::consensus::{ChainReaders, LightClient};
use super::content::Content;
use super::continuity::{History, SellerMemory};
use super::fleet::Fleet;
use super::network::Network;
use super::registration::{AgentRegistries, Registry};
use super::setup_error::SetupError;
use super::shared_content::SharedContent;
use super::turns::Turns;
use super::upstream::{Upstream, post_error};
use crate::cache::VerdictCache;
use crate::clock::Clock;
#[cfg(not(feature = "state-proof"))]
use crate::config::NO_STATE_PROOF;
use crate::config::{ChainId, Config, ConfigError, Dns, Endpoint, ManifestSource, RegistryChain};
use crate::fetch::ccip::GuardedGateway;
use crate::fetch::https::{self, FetchLimits};
use crate::fetch::ipfs::IpfsClient;
use crate::fetch::{Answer, Egress, EgressConfig, Lookup};

/// Maximum time for fetching a manifest at startup.
const MANIFEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The memory, if a file is configured.
pub(super) fn history(config: &Config) -> Result<Option<History>, SetupError> {
    let Some(path) = &config.memory.path else { return Ok(None) };
    History::open(path, config).map(Some).map_err(|error| SetupError::invalid("memory.path", error))
}

/// The memory of sellers: in the memory's file, if one is configured. The sandbox otherwise keeps it in this process.
pub(super) fn seller_memory(config: &Config, history: Option<&History>) -> Result<Option<SellerMemory>, SetupError> {
    #[cfg(feature = "sandbox")]
    if history.is_none() && config.chain.world == clresolve_core::world::SANDBOX {
        return SellerMemory::of_sandbox(config).map(Some).map_err(|error| SetupError::invalid("memory", error));
    }
    let _ = config;
    Ok(history.map(History::seller_memory))
}

/// The fleet, if a server for shared evidence is configured.
pub(super) async fn fleet(
    config: &Config,
    egress: &Egress,
    clock: &Arc<dyn Clock>,
    cache: &Arc<VerdictCache>,
) -> Result<Option<Fleet>, SetupError> {
    config.check_sharing().map_err(|error| match error {
        ConfigError::Conflict { key, detail } => SetupError::invalid(&key, detail),
        other => SetupError::invalid("redis", other),
    })?;
    Fleet::join(config, egress, clock, cache).await.map_err(|error| SetupError::invalid("redis.mac-key", error))
}

/// The egress guard with the exceptions that the configuration permits.
pub fn egress(config: &Config, lookup: Arc<dyn Lookup>, load: Load) -> Result<Egress, SetupError> {
    let network = &config.network;
    let lookup = match network.dns {
        Dns::Off if !clresolve_core::mutant!("look-ups-stay-on") => Arc::new(NoLookup),
        Dns::System | Dns::Off => lookup,
    };
    let mut extra_roots: Vec<Bytes> = network.ca_pems.iter().map(|pem| Bytes::from(pem.clone())).collect();
    for path in &network.ca_files {
        extra_roots.push(read("ca", path)?.into());
    }
    let config = EgressConfig {
        allow_host: network.allow_hosts.clone(),
        connect_to: network.connect_to.clone(),
        extra_roots,
        denied: network.denied.clone(),
        is_paced: load != Load::Questions,
        ..EgressConfig::default()
    };
    Egress::with_lookup(config, lookup).map_err(|error| SetupError::invalid("ca", error))
}

struct NoLookup;

#[async_trait]
impl Lookup for NoLookup {
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
pub(super) fn upstream(config: &Config, egress: &Egress) -> Result<Upstream, SetupError> {
    let timeout = request_timeout(config, &config.chain.endpoints);
    let settings = ChainConfig {
        chain_id: config.chain.id,
        genesis: config.chain.genesis,
        demand: config.chain.demand().map_err(|error| SetupError::invalid("proof", error))?,
        contracts: Contracts { universal_resolver: config.chain.universal_resolver, ..Contracts::default() },
        endpoints: config.chain.labelled().into_iter().map(Into::into).collect(),
        timeout,
        hedge_after: timeout.mul_f64(HEDGE_SHARE),
        lookup_timeout: config.chain.ccip_read.then(|| config.timeout.mul_f64(LOOKUP_SHARE)),
        coins: config.coins(),
        max_head_age: config.chain.head_age(),
    };
    Ok(Upstream { settings, http: Arc::new(OperatorDoor(egress.clone())), egress: egress.clone() })
}

/// The expected workload of a resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Individual questions.
    Questions,
    /// A list of names. At most `at_once` of them query their content sources concurrently.
    List {
        /// Maximum concurrency.
        at_once: u8,
    },
}

impl Load {
    pub(super) fn turns(self) -> Turns {
        match self {
            Self::Questions => Turns::default(),
            Self::List { at_once } => Turns::of(at_once),
        }
    }

    /// For a list, wraps the content source so that names share common content.
    pub(super) fn shared(self, content: Arc<dyn Content>) -> Arc<dyn Content> {
        match self {
            Self::Questions => content,
            Self::List { .. } => Arc::new(SharedContent::over(content)),
        }
    }
}

/// The client for off-chain lookups. A CCIP-Read gateway may use a quarter of the time limit, so that its failure is
/// attributed to it.
pub(super) fn look_ups(config: &Config, egress: &Egress) -> Arc<GuardedGateway> {
    Arc::new(GuardedGateway::new(egress.clone(), config.timeout / 4))
}

pub(super) fn chain_clock(clock: &Arc<dyn Clock>) -> clresolve_chain::Clock {
    let clock = Arc::clone(clock);
    Arc::new(move || clock.now())
}

pub(super) fn chain(
    upstream: &Upstream,
    config: &Config,
    egress: &Egress,
    clock: &Arc<dyn Clock>,
    load: Load,
    before: Option<&LightClient>,
) -> Result<ChainReaders, SetupError> {
    let (gateway, now) = (look_ups(config, egress), chain_clock(clock));
    if upstream.settings.demand.is_computed() && !clresolve_core::mutant!("state-is-told") {
        return proven(upstream, config, gateway, &now, before);
    }
    let Upstream { settings, http, .. } = upstream.clone();
    let reader = match load {
        Load::Questions => RpcChain::new(settings, &http, gateway),
        Load::List { .. } => RpcChain::in_batches(settings, &http, gateway),
    };
    let heads = upstream.head_reader(Arc::clone(&now));
    Ok(ChainReaders { chain: Arc::new(reader.with_clock(now)), heads, light_client: None })
}

/// The timeout of one request, if these endpoints may have to be asked in turn.
fn request_timeout(config: &Config, endpoints: &[Endpoint]) -> Duration {
    let in_turn = endpoints.len().clamp(1, ENDPOINTS_IN_TURN) as f64;
    config.timeout.mul_f64(ENDPOINTS_SHARE / in_turn)
}

/// The readers of the payment chains, with `clock`. Requests go through `http`.
pub(super) fn registries(
    config: &Config,
    http: &Arc<dyn HttpPost>,
    clock: &Arc<dyn Clock>,
) -> Result<AgentRegistries, SetupError> {
    let of_chain = |(id, chain): (&ChainId, &RegistryChain)| {
        let demand = chain.demand().map_err(|error| SetupError::invalid("chains", error))?;
        let timeout = request_timeout(config, &chain.endpoints);
        let settings = ChainConfig {
            chain_id: id.number(),
            genesis: None,
            demand: if clresolve_core::mutant!("one-endpoint-tells-the-wallet") {
                GradeDemand::SingleRpc
            } else {
                demand
            },
            contracts: Contracts::default(),
            endpoints: chain.endpoints.iter().cloned().map(Into::into).collect(),
            timeout,
            hedge_after: timeout.mul_f64(HEDGE_SHARE),
            lookup_timeout: None,
            coins: Coins::default(),
            max_head_age: chain.head_age(*id),
        };
        Ok(Registry::new(chain, settings, http, clock))
    };
    Ok(AgentRegistries::new(config.chains.iter().map(of_chain).collect::<Result<Vec<_>, _>>()?))
}

/// A build without the feature verifies no proofs, and does not fall back to a lower grade.
#[cfg(not(feature = "state-proof"))]
fn proven(
    _: &Upstream,
    _: &Config,
    _: Arc<GuardedGateway>,
    _: &clresolve_chain::Clock,
    _: Option<&LightClient>,
) -> Result<ChainReaders, SetupError> {
    Err(SetupError::invalid("proof", NO_STATE_PROOF))
}

/// Sends the chain's requests through the operator's egress client.
struct OperatorDoor(Egress);

#[async_trait]
impl HttpPost for OperatorDoor {
    async fn post(&self, url: &Url, body: Bytes, cap: usize, timeout: Duration) -> Result<Bytes, PostError> {
        let client = self.0.operator(url).map_err(|refusal| PostError::Connection(refusal.to_string()))?;
        match client.post_json(url, body, cap, timeout).await {
            Ok(answer) if answer.is_success() => Ok(answer.body),
            Ok(Answer { status, body, .. }) => Err(PostError::Status(status, body)),
            Err(error) => Err(post_error(error, timeout)),
        }
    }
}

/// The content source on the network, with `clock`.
pub(super) fn content(config: &Config, egress: &Egress, clock: &Arc<dyn Clock>) -> Result<Network, SetupError> {
    Ok(Network { egress: egress.clone(), ipfs: gateways(config, egress)?, clock: Arc::clone(clock) })
}

pub(super) fn gateways(config: &Config, egress: &Egress) -> Result<IpfsClient, SetupError> {
    let client = IpfsClient::new(egress, config.gateways.clone(), config.network.hedging);
    client.map_err(|error| SetupError::invalid("gateway", error))
}

/// The built-in profiles, with the manifests that the configuration replaces and the profiles that it adds. Manifests
/// are fetched concurrently. If several are unusable, the first one is reported.
pub(super) async fn profiles(config: &Config, egress: &Egress) -> Result<Profiles, SetupError> {
    let fetched: FuturesOrdered<_> = config.rules.manifests.iter().map(|source| manifest(source, egress)).collect();
    let manifests: Vec<Bytes> = fetched.try_collect().await?;
    with(&manifests, config)
}

/// The built-in rules, and those in files that a configuration names. Uses no network.
///
/// # Errors
/// A file cannot be read, or is not a manifest or profile.
pub fn local_profiles(config: &Config) -> Result<Profiles, SetupError> {
    let files = config.rules.manifests.iter().filter_map(|source| match source {
        ManifestSource::File(path) => Some(read("manifest", path).map(Bytes::from)),
        ManifestSource::Url { .. } => None,
    });
    with(&files.collect::<Result<Vec<_>, _>>()?, config)
}

/// The built-in rules with these manifests, and the configured profiles.
fn with(manifests: &[Bytes], config: &Config) -> Result<Profiles, SetupError> {
    let mut profiles = Profiles::builtin();
    for bytes in manifests {
        profiles.replace_manifest(bytes).map_err(|error| SetupError::invalid("manifest", error))?;
    }
    for path in &config.rules.profile_files {
        profiles
            .add_profile(&read("profile_files", path)?)
            .map_err(|error| SetupError::invalid("profile_files", error))?;
    }
    Ok(profiles)
}

/// The bytes of a manifest. Bytes from a URL must match the configured digest.
async fn manifest(source: &ManifestSource, egress: &Egress) -> Result<Bytes, SetupError> {
    match source {
        ManifestSource::File(path) => Ok(read("manifest", path)?.into()),
        ManifestSource::Url { url, digest } => {
            let digest: Digest = digest.parse().map_err(|error| SetupError::invalid("manifest", error))?;
            let limits = FetchLimits { total: MANIFEST_TIMEOUT, ..FetchLimits::card() };
            let unusable = |error: &dyn Display| {
                SetupError::invalid("manifest", format!("{}: {error}", without_secrets(url.as_str())))
            };
            let body = https::get(egress, url.as_str(), limits).await.map_err(|error| unusable(&error))?;
            digest.check(&body.bytes).map_err(|error| unusable(&error))?;
            Ok(body.bytes)
        }
    }
}

/// Reads a file that the operator named.
fn read(what: &str, path: &Path) -> Result<Vec<u8>, SetupError> {
    std::fs::read(path).map_err(|error| SetupError::invalid(what, format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::fetch::SystemLookup;

    /// The result of the operator's egress client for a server with this response, or without one.
    async fn posted(answer: &[u8], timeout: Duration) -> Result<Bytes, PostError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let door = OperatorDoor(Egress::new(EgressConfig::default()).unwrap());
        let served = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await.unwrap();
            stream.write_all(answer).await.unwrap();
            stream
        };
        let post = door.post(&url, Bytes::from_static(b"{}"), 2, timeout);
        tokio::join!(post, served).0
    }

    #[tokio::test]
    async fn why_an_endpoint_gave_nothing_is_told_apart() {
        let [short, long] = [Duration::from_millis(100), Duration::from_secs(60)];
        let good = posted(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", long).await;
        assert_eq!(good, Ok(Bytes::from_static(b"{}")));
        let large = posted(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{ }", long).await;
        assert_eq!(large, Err(PostError::TooLarge(2)));
        let refused = posted(b"HTTP/1.1 429 Slow\r\ncontent-length: 0\r\n\r\n", long).await;
        assert_eq!(refused, Err(PostError::Status(429, Bytes::new())));
        assert_eq!(posted(b"", short).await, Err(PostError::Timeout(short)));
        assert!(matches!(posted(b"no HTTP\r\n\r\n", long).await, Err(PostError::Connection(_))));
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
        let source = |host: &str| ManifestSource::Url {
            url: format!("https://{host}/manifest.json").parse().unwrap(),
            digest: Digest::of(b"").to_string(),
        };
        config.rules.manifests = hosts.map(source).into();
        let egress = egress(&config, Arc::new(SystemLookup), Load::Questions).unwrap();
        // No request is answered before all have arrived.
        let all_come = async {
            let mut open = Vec::new();
            while open.len() < hosts.len() {
                open.push(listener.accept().await.unwrap());
            }
        };
        let (fetched, came) = tokio::join!(profiles(&config, &egress), timeout(MANIFEST_TIMEOUT, all_come));
        came.expect("each is asked for while the others wait");
        let SetupError::Invalid { what, detail } = fetched.expect_err("the hosts hang up");
        assert!(what == "manifest" && detail.contains(hosts[0]), "{what}: {detail}");
    }
}
