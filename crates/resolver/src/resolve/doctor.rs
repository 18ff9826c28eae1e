//! Examines the endpoints and gateways of a configuration, and recommends changes.
//!
//! Nothing here is evidence for a verdict. The requests use the same clients as questions do. Endpoints and gateways
//! are identified only by their labels.

mod gateways;
mod light_client;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clresolve_chain::transport::HttpRequestError;
use clresolve_chain::{EndpointCapabilities, MAX_AHEAD, MAX_STEP_BACK};
use clresolve_core::cause::HostConnectionError;
use clresolve_core::reading::max_finalized_header_age;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

pub use self::gateways::{IpfsGatewayHealth, IpfsGatewayProbeOutcome};
use self::gateways::{advice_on_gateways, probe_ipfs_gateway};
pub use self::light_client::{BeaconApiEndpointHealth, LightClientHealth, VerifiedHeaderHealth};
use super::upstream::ChainRpcUpstream;
use super::{SetupError, setup};
use crate::clock::Clock;
use crate::config::{ChainId, Config, ProofGradeDemand, RegistryChainConfig, RpcEndpointConfig};
use crate::fetch::{Egress, FetchError, SingleOriginClient, SystemAddressLookup};

/// Maximum length of an endpoint's answer, in bytes: a header with the hashes of a full block's transactions.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// Maximum time for one request. A slower endpoint is of no use to a question either.
const MAX_REQUEST_TIME: Duration = Duration::from_secs(5);

/// Maximum clock difference that is not reported: answers take time, and blocks arrive every twelve seconds.
const MAX_SKEW_SECONDS: i64 = 30;

/// How far a block may be ahead of this machine's clock, in seconds, as in readings.
const MAX_AHEAD_SECONDS: i64 = MAX_AHEAD.as_secs() as i64;

/// The result of an examination.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DoctorReport {
    /// Time of the examination.
    pub checked_at: String,
    /// The chain that the configuration names.
    pub chain: String,
    /// The RPC endpoints, in the order of the configuration.
    pub endpoints: Vec<RpcEndpointHealth>,
    /// Which endpoints agree on one finalized block, the largest group first.
    pub agreement: Option<BlockHashAgreement>,
    /// The chains of `[chains]`, whose registries list the accounts of agents.
    pub registry_chains: Vec<RegistryChainHealth>,
    /// The light client of the beacon chain. `None` if headers need no consensus.
    pub light_client: Option<LightClientHealth>,
    /// The gateways, in the order of the configuration.
    pub gateways: Vec<IpfsGatewayHealth>,
    /// Why no host could be reached. `None` if any was, or if only one was tried.
    pub network: Option<HostConnectionError>,
    /// Recommended changes; empty if there is no problem.
    pub advice: Vec<String>,
}

/// The results for the endpoints of another chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RegistryChainHealth {
    /// The chain.
    pub chain: String,
    /// Its RPC endpoints, in the order of the configuration.
    pub endpoints: Vec<RpcEndpointHealth>,
}

/// The results for an RPC endpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RpcEndpointHealth {
    /// Its label in verdicts and logs.
    pub label: String,
    /// Whether it answered.
    pub reachable: bool,
    /// Why it did not answer some request.
    pub error: Option<String>,
    /// Why no connection to it was opened, if that is the error.
    #[serde(skip)]
    pub unconnected: Option<HostConnectionError>,
    /// Why the exchange that starts a resolution fails, although the endpoint answers.
    pub resolution_error: Option<String>,
    /// Time of one request over an open connection, in milliseconds.
    pub latency_ms: Option<u64>,
    /// EIP-155 chain id.
    pub chain: Option<u64>,
    /// The newest block.
    pub latest: Option<ProbedBlock>,
    /// The newest block of a second request, if it is far below `latest`.
    pub fell_back_to: Option<ProbedBlock>,
    /// The newest finalized block.
    pub finalized: Option<ProbedBlock>,
    /// Seconds by which its HTTP `Date` is ahead of this machine's clock.
    pub clock_ahead_s: Option<i64>,
    /// Missing capabilities without which resolutions still work.
    pub lacks: Vec<MissingEndpointCapability>,
}

/// A missing capability of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MissingEndpointCapability {
    /// Several requests in one body. They are sent one by one instead.
    Batches,
    /// Old blocks.
    Archive,
    /// State proofs, without which no reading can be computed from its answers.
    Proofs,
    /// The gas that a reading may use: names with many records may fail.
    Gas,
}

impl MissingEndpointCapability {
    /// The capability's identifier.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Batches => "batches",
            Self::Archive => "old blocks",
            Self::Proofs => "proofs",
            Self::Gas => "enough gas for names with many records",
        }
    }
}

/// A block as reported by an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProbedBlock {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: String,
    /// Its age by this machine's clock, in seconds; negative if it is in the future.
    pub age_s: i64,
}

/// The hashes that the endpoints report for one block that all of them have finalized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlockHashAgreement {
    /// Its number.
    pub number: u64,
    /// Endpoints (labels) by the hash that they report.
    pub groups: Vec<AgreeingEndpoints>,
}

/// Endpoints that report the same hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgreeingEndpoints {
    /// The hash.
    pub hash: String,
    /// Their labels.
    pub endpoints: Vec<String>,
}

/// Queries every endpoint and gateway of `config`. `clock` determines ages.
///
/// # Errors
/// If the configuration refers to something unusable, such as a trust root that is not PEM.
pub async fn examine_upstreams(config: &Config, clock: &dyn Clock) -> Result<DoctorReport, SetupError> {
    let egress = setup::configured_egress(config, Arc::new(SystemAddressLookup), setup::ExpectedWorkload::Questions)?;
    // Without a demand that can be met, `advice` reports what is missing.
    let upstream = setup::configured_upstream(config, &egress).ok();
    let limit = config.timeout.min(MAX_REQUEST_TIME);
    let (names, registries) = ChainRequirements::from_config(config);
    let probes = names.endpoint_probes(&egress, clock, limit, upstream.as_ref());
    let registry_health = async |chain: &ChainRequirements| RegistryChainHealth {
        chain: format!("eip155:{}", chain.id),
        endpoints: join_all(
            chain.endpoint_probes(&egress, clock, limit, None).iter().map(RpcEndpointProbe::probe_endpoint),
        )
        .await,
    };
    let (endpoints, registry_chains, light_client, gateways) = tokio::join!(
        join_all(probes.iter().map(RpcEndpointProbe::probe_endpoint)),
        join_all(registries.iter().map(registry_health)),
        light_client::examine_light_client(config, upstream.as_ref(), clock),
        join_all(config.gateways.iter().map(|gateway| probe_ipfs_gateway(gateway, &egress, clock, limit))),
    );
    let agreement = read_hash_agreement(config, &probes, &endpoints).await;
    let mut found = DoctorReport {
        checked_at: clock.now().to_string(),
        chain: format!("eip155:{}", config.chain.id),
        endpoints,
        agreement,
        registry_chains,
        light_client,
        gateways,
        network: None,
        advice: Vec::new(),
    };
    found.network = detect_network_outage(config, &found);
    found.advice = match found.network {
        Some(why) => vec![format!("this machine seems to have no network: {}", why.symptom_of_all_hosts())],
        None => doctor_advice(config, &found),
    };
    Ok(found)
}

/// Why no connection to any endpoint or gateway was opened, if several of them are on the Internet.
fn detect_network_outage(config: &Config, found: &DoctorReport) -> Option<HostConnectionError> {
    let urls = config.chain.endpoints.iter().map(|endpoint| &endpoint.url);
    let urls = urls.chain(config.gateways.iter().map(|gateway| &gateway.url));
    let are_elsewhere = !config.network.connect_to.is_empty();
    if are_elsewhere || urls.filter(|url| clresolve_chain::has_public_host_name(url)).count() < 2 {
        return None;
    }
    let endpoints = found.endpoints.iter().chain(found.registry_chains.iter().flat_map(|chain| &chain.endpoints));
    let endpoints = endpoints.map(|health| health.unconnected);
    let gateways = found.gateways.iter().map(|health| health.unconnected);
    let all: Vec<HostConnectionError> = endpoints.chain(gateways).collect::<Option<_>>()?;
    Some(if all.contains(&HostConnectionError::Host) { HostConnectionError::Host } else { HostConnectionError::Name })
}

/// A configured chain, and the requirements on its endpoints.
struct ChainRequirements {
    id: u64,
    /// Whether only its registry is read, and no names.
    is_registry: bool,
    endpoints: Vec<RpcEndpointConfig>,
    /// Maximum age of the newest block, if there is one.
    max_head_age: Option<Duration>,
    demand: Option<ProofGradeDemand>,
}

impl ChainRequirements {
    /// The chain of names, and the chains of registries.
    fn from_config(config: &Config) -> (Self, Vec<Self>) {
        let names = Self {
            id: config.chain.id,
            is_registry: false,
            endpoints: config.chain.labelled_endpoints(),
            max_head_age: config.chain.effective_max_head_age(),
            demand: config.chain.proof_grade_demand().ok(),
        };
        let registry = |(id, chain): (&ChainId, &RegistryChainConfig)| Self {
            id: id.number(),
            is_registry: true,
            endpoints: chain.endpoints.clone(),
            max_head_age: chain.effective_max_head_age(*id),
            demand: chain.proof_grade_demand().ok(),
        };
        (names, config.chains.iter().map(registry).collect())
    }

    fn endpoint_probes<'e>(
        &'e self,
        egress: &'e Egress,
        clock: &'e dyn Clock,
        limit: Duration,
        upstream: Option<&'e ChainRpcUpstream>,
    ) -> Vec<RpcEndpointProbe<'e>> {
        self.endpoints.iter().map(|endpoint| RpcEndpointProbe::new(endpoint, egress, clock, limit, upstream)).collect()
    }

    fn chain_advice(&self, healths: &[RpcEndpointHealth]) -> Vec<String> {
        let of_endpoints = healths.iter().filter_map(|health| self.advice_on_endpoint(health));
        of_endpoints
            .chain(self.advice_on_operators())
            .chain(self.advice_on_demand(healths))
            .chain(self.advice_on_head_age())
            .collect()
    }

    /// Advice about endpoints that share a public host but count as different operators in a quorum.
    fn advice_on_operators(&self) -> Vec<String> {
        let mut by_host: BTreeMap<Option<&str>, BTreeMap<&str, &str>> = BTreeMap::new();
        for RpcEndpointConfig { url, operator, label, .. } in &self.endpoints {
            if clresolve_chain::has_public_host_name(url) {
                by_host.entry(url.host_str()).or_default().insert(operator, label);
            }
        }
        let twice = by_host.into_values().filter(|operators| operators.len() > 1);
        let advice = |operators: BTreeMap<&str, &str>| {
            let labels = operators.into_values().collect::<Vec<_>>().join(" and ");
            format!("{labels} are reached at one host, but count as different operators: name one operator for both")
        };
        twice.map(advice).collect()
    }

    /// Advice for a quorum without a maximum age of the newest block.
    fn advice_on_head_age(&self) -> Option<String> {
        let is_quorum = self.demand.is_some_and(|demand| demand != ProofGradeDemand::SingleRpc);
        (is_quorum && self.max_head_age.is_none()).then(|| {
            let table = if self.is_registry { format!(" in [chains.{}]", self.id) } else { String::new() };
            let unknown =
                format!("the slot time of chain {} is not known, so endpoints that stand still count", self.id);
            format!("{unknown}: set max-head-age{table}")
        })
    }

    fn advice_on_endpoint(&self, health: &RpcEndpointHealth) -> Option<String> {
        let label = &health.label;
        let error = health.error.as_deref().unwrap_or("no answer");
        if !health.reachable {
            let is_refusal = health.unconnected.is_none();
            let (fault, also) = if is_refusal { ("does not answer", ", use a key") } else { ("cannot be reached", "") };
            return Some(format!("{label} {fault} ({error}): correct its URL{also}, or take it out of the endpoints"));
        }
        if health.chain != Some(self.id) {
            let serves = health.chain.map_or_else(|| "no chain id".to_owned(), |id| format!("chain {id}"));
            let or = if self.is_registry { "" } else { ", or set chain-id" };
            return Some(format!("{label} serves {serves}, not chain {}: take it out{or}", self.id));
        }
        let Some(finalized) = &health.finalized else {
            return Some(format!(
                "{label} has no finalized block ({error}): let it finish its synchronisation, or take it out"
            ));
        };
        if let Some(cause) = &health.resolution_error {
            return Some(format!("{label} answers, but resolutions through it fail ({cause}): take it out"));
        }
        if self.demand.is_some_and(ProofGradeDemand::requires_state_proof)
            && health.lacks.contains(&MissingEndpointCapability::Proofs)
        {
            return Some(format!("{label} returns no state proofs, which proof requires: take it out"));
        }
        if finalized.age_s > max_finalized_header_age(self.id).as_secs() {
            let minutes = finalized.age_s / 60;
            let behind = format!("{label} is behind, its finalized block is {minutes} minutes old");
            return Some(format!("{behind}: let it finish its synchronisation"));
        }
        if let (Some(latest), Some(later)) = (&health.latest, &health.fell_back_to) {
            let (from, to) = (latest.number, later.number);
            return Some(format!("{label} runs backwards, its newest block was {from} and then {to}: take it out"));
        }
        self.advice_on_head(health)
    }

    /// The problem of an endpoint whose newest block is too old or in the future.
    fn advice_on_head(&self, health: &RpcEndpointHealth) -> Option<String> {
        let (most, head) = (self.max_head_age?, health.latest.as_ref()?);
        let label = &health.label;
        if head.age_s > i64::try_from(most.as_secs()).unwrap_or(i64::MAX) {
            let stands = format!("{label} stands still, its newest block {} is {} s old", head.number, head.age_s);
            return Some(format!("{stands} (max-head-age: {} s): restart it, or take it out", most.as_secs()));
        }
        (head.age_s < -MAX_AHEAD_SECONDS).then(|| {
            let runs =
                format!("{label} runs ahead, its newest block {} lies {} s in the future", head.number, -head.age_s);
            format!("{runs}: set the clock of this machine, or take the endpoint out")
        })
    }

    /// The problem of a chain on which too few operators answer.
    fn advice_on_demand(&self, healths: &[RpcEndpointHealth]) -> Option<String> {
        let needed = match self.demand? {
            ProofGradeDemand::SingleRpc => 1,
            ProofGradeDemand::Quorum(agree) | ProofGradeDemand::StateProof(agree) => agree,
            ProofGradeDemand::ConsensusProof(agree) => agree.max(1),
        };
        let usable = self.endpoints.iter().zip(healths);
        let usable = usable.filter(|(_, health)| {
            health.chain == Some(self.id) && health.finalized.is_some() && self.advice_on_head(health).is_none()
        });
        let mut operators: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (endpoint, _) in usable {
            operators.entry(&endpoint.operator).or_default().push(&endpoint.label);
        }
        (operators.len() < needed).then(|| {
            let (has, plural) = (operators.len(), if needed == 1 { "" } else { "s" });
            let once = operators.values().filter(|labels| labels.len() > 1).map(|labels| labels.join(" and "));
            let once: String = once.map(|labels| format!(" ({labels} count once)")).collect();
            let with = if self.is_registry { format!("in [chains.{}]", self.id) } else { "with --rpc".to_owned() };
            format!("endpoints of {needed} operator{plural} are needed, and {has} can be used{once}: name more {with}")
        })
    }
}

/// An endpoint and the client for it.
struct RpcEndpointProbe<'e> {
    endpoint: &'e RpcEndpointConfig,
    client: Result<SingleOriginClient, String>,
    clock: &'e dyn Clock,
    limit: Duration,
    /// How names are read. `None` for the endpoint of a registry.
    upstream: Option<&'e ChainRpcUpstream>,
}

impl<'e> RpcEndpointProbe<'e> {
    fn new(
        endpoint: &'e RpcEndpointConfig,
        egress: &'e Egress,
        clock: &'e dyn Clock,
        limit: Duration,
        upstream: Option<&'e ChainRpcUpstream>,
    ) -> Self {
        let client = egress.single_origin_client(&endpoint.url).map_err(|refusal| refusal.to_string());
        Self { endpoint, client, clock, limit, upstream }
    }

    async fn probe_endpoint(&self) -> RpcEndpointHealth {
        let mut health = RpcEndpointHealth { label: self.endpoint.label.clone(), ..RpcEndpointHealth::default() };
        // The first request opens the connection, so that the second one measures the endpoint.
        match self.send_rpc_request("eth_chainId", json!([])).await {
            Ok((result, _)) => health.chain = parse_number(&result),
            Err(fault) => {
                health.unconnected = fault.unconnected;
                health.error = Some(fault.text);
                return health;
            }
        }
        health.reachable = true;
        let asked = Instant::now();
        match self.request_block("latest").await {
            Ok((block, date)) => {
                health.latency_ms = u64::try_from(asked.elapsed().as_millis()).ok();
                health.clock_ahead_s = date.map(|date| seconds_between(self.clock.now(), date));
                health.latest = Some(block);
            }
            Err(fault) => health.error = Some(fault.text),
        }
        match self.request_block("finalized").await {
            Ok((block, _)) => health.finalized = Some(block),
            Err(fault) => health.error = Some(fault.text),
        }
        self.probe_capabilities(&mut health).await;
        health.fell_back_to = self.newest_block_if_lower(health.latest.as_ref()).await;
        health
    }

    /// Requests the newest block again, and returns it if it is far below `before`.
    async fn newest_block_if_lower(&self, before: Option<&ProbedBlock>) -> Option<ProbedBlock> {
        let (now, _) = self.request_block("latest").await.ok()?;
        (now.number.saturating_add(MAX_STEP_BACK) < before?.number).then_some(now)
    }

    /// Sends the requests of a resolution, unless only a registry is read here.
    async fn probe_capabilities(&self, health: &mut RpcEndpointHealth) {
        let Some(upstream) = self.upstream else { return };
        let found =
            EndpointCapabilities::probe_endpoint(self.endpoint.clone().into(), &upstream.settings, &upstream.http)
                .await;
        health.resolution_error = found.fault;
        if health.resolution_error.is_some() {
            return;
        }
        let lacks = [
            (!found.takes_batches, MissingEndpointCapability::Batches),
            (!found.has_first_block, MissingEndpointCapability::Archive),
            (!found.has_proofs, MissingEndpointCapability::Proofs),
            (!found.has_gas, MissingEndpointCapability::Gas),
        ];
        health.lacks = lacks.into_iter().filter(|(lacks, _)| *lacks).map(|(_, lack)| lack).collect();
    }

    async fn request_block(&self, tag: &str) -> Result<(ProbedBlock, Option<Timestamp>), ProbeRequestFault> {
        let (result, date) = self.send_rpc_request("eth_getBlockByNumber", json!([tag, false])).await?;
        let block = parse_block(&result, self.clock.now()).ok_or_else(|| format!("returns no block for {tag}"))?;
        Ok((block, date))
    }

    /// The result of a request, and the date of the response.
    async fn send_rpc_request(
        &self,
        method: &str,
        params: Value,
    ) -> Result<(Value, Option<Timestamp>), ProbeRequestFault> {
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let reply = client.post_json(&self.endpoint.url, Bytes::from(body), MAX_ANSWER_BYTES, self.limit).await?;
        let redacted = |text: &str| clresolve_chain::RpcEndpointSettings::from(self.endpoint.clone()).redact_keys(text);
        let answer: Option<Value> = serde_json::from_slice(&reply.body).ok();
        if let Some(message) = answer.as_ref().and_then(|answer| answer["error"]["message"].as_str()) {
            return Err(format!("{method}: {}", redacted(message)).into());
        }
        if !reply.is_success() {
            let refusal = HttpRequestError::Status(reply.status, reply.body);
            return Err(redacted(&refusal.to_string()).into());
        }
        let mut answer = answer.ok_or_else(|| "the answer is not JSON".to_owned())?;
        Ok((answer["result"].take(), reply.date))
    }
}

/// Why a request has no answer.
struct ProbeRequestFault {
    unconnected: Option<HostConnectionError>,
    text: String,
}

impl From<String> for ProbeRequestFault {
    fn from(text: String) -> Self {
        Self { unconnected: None, text }
    }
}

impl From<FetchError> for ProbeRequestFault {
    fn from(error: FetchError) -> Self {
        Self { unconnected: error.connection_error(), text: error.to_string() }
    }
}

/// A number in the JSON-RPC or the JSON form.
fn parse_number(value: &Value) -> Option<u64> {
    if value.is_number() {
        return value.as_u64();
    }
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

fn parse_block(value: &Value, now: Timestamp) -> Option<ProbedBlock> {
    let time = i64::try_from(parse_number(&value["timestamp"])?).ok()?;
    let hash = value["hash"].as_str().filter(|hash| is_hash(hash))?;
    let time = Timestamp::from_second(time).ok()?;
    Some(ProbedBlock {
        number: parse_number(&value["number"])?,
        hash: hash.to_owned(),
        age_s: seconds_between(time, now),
    })
}

fn is_hash(text: &str) -> bool {
    text.strip_prefix("0x").is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn seconds_between(earlier: Timestamp, later: Timestamp) -> i64 {
    later.as_second() - earlier.as_second()
}

/// The hashes that the endpoints of the configured chain report for the newest block that all of them have finalized.
async fn read_hash_agreement(
    config: &Config,
    probes: &[RpcEndpointProbe<'_>],
    healths: &[RpcEndpointHealth],
) -> Option<BlockHashAgreement> {
    let known = || healths.iter().filter(|health| health.chain == Some(config.chain.id));
    let number = known().filter_map(|health| Some(health.finalized.as_ref()?.number)).min()?;
    let tag = format!("{number:#x}");
    let asked = probes.iter().zip(healths).filter(|(_, health)| health.chain == Some(config.chain.id));
    let said = join_all(asked.map(async |(probe, health)| {
        let block =
            probe.request_block(&tag).await.ok().map(|(block, _)| block).filter(|block| block.number == number)?;
        Some((block.hash, health.label.clone()))
    }));
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (hash, label) in said.await.into_iter().flatten() {
        groups.entry(hash).or_default().push(label);
    }
    let mut groups: Vec<_> =
        groups.into_iter().map(|(hash, endpoints)| AgreeingEndpoints { hash, endpoints }).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.endpoints.len()));
    Some(BlockHashAgreement { number, groups })
}

fn doctor_advice(config: &Config, found: &DoctorReport) -> Vec<String> {
    let (names, registries) = ChainRequirements::from_config(config);
    let mut advice = names.chain_advice(&found.endpoints);
    advice.extend(advice_on_agreement(found));
    advice.extend(advice_on_clock(found));
    for (chain, health) in registries.iter().zip(&found.registry_chains) {
        advice.extend(chain.chain_advice(&health.endpoints));
    }
    advice.extend(found.light_client.iter().flat_map(light_client::light_client_advice));
    advice.extend(advice_on_gateways(&found.gateways));
    advice
}

fn advice_on_agreement(found: &DoctorReport) -> Option<String> {
    let agreement = found.agreement.as_ref().filter(|agreement| agreement.groups.len() > 1)?;
    let groups: Vec<String> = agreement.groups.iter().map(|group| group.endpoints.join(" and ")).collect();
    Some(format!(
        "the endpoints give different hashes for the finalized block {}: {}: take out those that are wrong",
        agreement.number,
        groups.join(" against ")
    ))
}

/// Compares this machine's clock with the time that most endpoints report.
fn advice_on_clock(found: &DoctorReport) -> Option<String> {
    let mut ahead: Vec<i64> = found.endpoints.iter().filter_map(|health| health.clock_ahead_s).collect();
    ahead.sort_unstable();
    let by_date = ahead.get(ahead.len() / 2).copied().unwrap_or(0);
    // A block in the future shows a wrong clock even if no endpoint sends a date.
    let by_block = found.endpoints.iter().filter_map(|health| Some(-health.latest.as_ref()?.age_s)).max().unwrap_or(0);
    let behind = if by_date.abs() > MAX_SKEW_SECONDS { by_date } else { by_block };
    if behind > MAX_SKEW_SECONDS || by_date < -MAX_SKEW_SECONDS {
        let word = if behind > 0 { "behind" } else { "ahead" };
        let seconds = behind.abs();
        return Some(format!(
            "the clock of this machine is {seconds} s {word}: synchronise it, verdicts state its time"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(labels: &[&str]) -> Config {
        let mut config = Config::default();
        let endpoint = |label: &&str| format!("https://{label}.example").parse().expect("an endpoint");
        config.chain.endpoints = labels.iter().map(endpoint).collect();
        config
    }

    fn block(age_s: i64) -> Option<ProbedBlock> {
        Some(ProbedBlock { number: 7, hash: format!("0x{}", "11".repeat(32)), age_s })
    }

    fn healthy(label: &str) -> RpcEndpointHealth {
        RpcEndpointHealth {
            label: format!("{label}.example"),
            reachable: true,
            chain: Some(1),
            latest: block(5),
            finalized: block(900),
            clock_ahead_s: Some(0),
            ..RpcEndpointHealth::default()
        }
    }

    fn found(endpoints: Vec<RpcEndpointHealth>) -> DoctorReport {
        DoctorReport {
            checked_at: String::new(),
            chain: "eip155:1".to_owned(),
            endpoints,
            agreement: None,
            registry_chains: Vec::new(),
            light_client: None,
            gateways: Vec::new(),
            network: None,
            advice: Vec::new(),
        }
    }

    struct Later;

    impl Clock for Later {
        fn now(&self) -> Timestamp {
            Timestamp::now() + jiff::SignedDuration::from_hours(1)
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn ages_are_those_by_the_clock_that_is_given() {
        let world = crate::sandbox::Sandbox::start().await.expect("the sandbox starts");
        let found = examine_upstreams(&world.config(), &Later).await.expect("the configuration is good");
        let latest = found.endpoints[0].latest.as_ref().expect("the endpoint is well");
        assert!(latest.age_s >= 3600, "{found:?}");
        let checked_at: Timestamp = found.checked_at.parse().expect("a time");
        assert!(checked_at > Timestamp::now() + jiff::SignedDuration::from_mins(59), "{found:?}");
    }

    #[test]
    fn where_all_is_well_nothing_is_advised() {
        let config = config(&["a", "b"]);
        assert_eq!(doctor_advice(&config, &found(vec![healthy("a"), healthy("b")])), Vec::<String>::new());
    }

    #[test]
    fn each_fault_of_an_endpoint_has_its_advice() {
        let (name, error) = (HostConnectionError::Name, |text: &str| Some(text.to_owned()));
        let down =
            RpcEndpointHealth { reachable: false, error: error("no name"), unconnected: Some(name), ..healthy("b") };
        let refusing = RpcEndpointHealth { reachable: false, error: error("HTTP status 429"), ..healthy("b") };
        let half = RpcEndpointHealth { resolution_error: error("no eth_call"), ..healthy("b") };
        let other_chain = RpcEndpointHealth { chain: Some(5), ..healthy("b") };
        let syncing = RpcEndpointHealth { finalized: None, ..healthy("b") };
        let behind = RpcEndpointHealth { finalized: block(1561), ..healthy("b") };
        let still = RpcEndpointHealth { latest: block(300), ..healthy("b") };
        let ahead = RpcEndpointHealth { latest: block(-20), ..healthy("b") };
        let earlier = ProbedBlock { number: 4, hash: String::new(), age_s: 40 };
        let backwards = RpcEndpointHealth { fell_back_to: Some(earlier), ..healthy("b") };
        for (health, part) in [
            (down, "b.example cannot be reached (no name): correct its URL, or take it out"),
            (refusing, "b.example does not answer (HTTP status 429): correct its URL, use a key, or take it out"),
            (half, "b.example answers, but resolutions through it fail (no eth_call): take it out"),
            (other_chain, "b.example serves chain 5, not chain 1"),
            (syncing, "b.example has no finalized block"),
            (behind, "its finalized block is 26 minutes old"),
            (still, "b.example stands still, its newest block 7 is 300 s old (max-head-age: 60 s)"),
            (ahead, "b.example runs ahead, its newest block 7 lies 20 s in the future"),
            (backwards, "b.example runs backwards, its newest block was 7 and then 4: take it out"),
        ] {
            let advice = doctor_advice(&config(&["a", "b"]), &found(vec![healthy("a"), health]));
            assert!(advice[0].contains(part), "{advice:?}");
        }
    }

    #[test]
    fn unreachable_internet_hosts_mean_no_network() {
        let unconnected =
            |label: &str, why| RpcEndpointHealth { reachable: false, unconnected: Some(why), ..healthy(label) };
        let (name, host) = (HostConnectionError::Name, HostConnectionError::Host);
        let of = |labels: &[&str], endpoints| {
            let config = Config { gateways: Vec::new(), ..config(labels) };
            detect_network_outage(&config, &found(endpoints))
        };
        assert_eq!(of(&["a", "b"], vec![unconnected("a", name), unconnected("b", name)]), Some(name));
        assert_eq!(of(&["a", "b"], vec![unconnected("a", name), unconnected("b", host)]), Some(host));
        assert_eq!(of(&["a", "b"], vec![unconnected("a", name), healthy("b")]), None);
        assert_eq!(of(&["a"], vec![unconnected("a", name)]), None, "one host may be misspelt");
        let mut elsewhere = Config { gateways: Vec::new(), ..config(&["a", "b"]) };
        elsewhere.network.connect_to = vec!["a.example:443:127.0.0.1:1".parse().expect("a rule")];
        let unreached = found(vec![unconnected("a", host), unconnected("b", host)]);
        assert_eq!(detect_network_outage(&elsewhere, &unreached), None, "a rule may lead nowhere");
    }

    #[test]
    fn registry_endpoints_follow_the_rules_of_their_chain() {
        let chain = |id| ChainId::new(id).expect("it has a coin type");
        let endpoints = || ["c", "d"].map(|label| format!("https://{label}.example").parse().expect("one")).to_vec();
        let mut config = config(&["a", "b"]);
        config.chains.insert(chain(8453), RegistryChainConfig::new(endpoints()));
        let advised = |config: &Config, id: u64, health: RpcEndpointHealth| {
            let health = RpcEndpointHealth { chain: Some(id), ..health };
            let well = RpcEndpointHealth { chain: Some(id), ..healthy("c") };
            let mut found = found(vec![healthy("a"), healthy("b")]);
            let endpoints = vec![well, health];
            found.registry_chains = vec![RegistryChainHealth { chain: format!("eip155:{id}"), endpoints }];
            doctor_advice(config, &found)
        };
        let old = RpcEndpointHealth { finalized: block(2700), ..healthy("d") };
        assert_eq!(advised(&config, 8453, old), Vec::<String>::new(), "its finality takes longer than mainnet's");
        let needed = "endpoints of 2 operators are needed, and 1 can be used: name more in [chains.8453]";
        for (health, expected) in [
            (
                RpcEndpointHealth { latest: block(11), ..healthy("d") },
                "d.example stands still, its newest block 7 is 11 s old (max-head-age: 10 s): restart it, or take it out",
            ),
            (
                RpcEndpointHealth { latest: block(-20), ..healthy("d") },
                "d.example runs ahead, its newest block 7 lies 20 s in the future: set the clock of this machine, or take the endpoint out",
            ),
        ] {
            assert_eq!(advised(&config, 8453, health), [expected, needed]);
        }

        config.chains = [(chain(59_144), RegistryChainConfig::new(endpoints()))].into();
        let still = || RpcEndpointHealth { latest: block(3000), ..healthy("d") };
        let unbounded = "the slot time of chain 59144 is not known, so endpoints that stand still count: set max-head-age in [chains.59144]";
        assert_eq!(advised(&config, 59_144, still()), [unbounded]);
        config.chains.values_mut().for_each(|chain| chain.max_head_age = Some(Duration::from_secs(20)));
        assert!(advised(&config, 59_144, still())[0].contains("d.example stands still"));
    }

    #[test]
    fn a_quorum_needs_enough_operators() {
        let down = RpcEndpointHealth { reachable: false, chain: None, finalized: None, ..healthy("b") };
        let advice = doctor_advice(&config(&["a", "b"]), &found(vec![healthy("a"), down]));
        let needed = "endpoints of 2 operators are needed, and 1 can be used: name more with --rpc";
        assert_eq!(advice[1..], [needed]);
        let still = RpcEndpointHealth { latest: block(300), ..healthy("b") };
        assert_eq!(super::doctor_advice(&config(&["a", "b"]), &found(vec![healthy("a"), still]))[1..], [needed]);
    }

    #[test]
    fn operator_under_two_names_is_noticed() {
        let mut config = config(&["a", "b"]);
        config.chain.endpoints[1].url = "https://a.example/other".parse().expect("a URL");
        let well = || found(vec![healthy("a"), healthy("b")]);
        let noticed =
            "rpc-1 and rpc-2 are reached at one host, but count as different operators: name one operator for both";
        assert_eq!(doctor_advice(&config, &well()), [noticed]);
        config.chain.endpoints[1].url = "http://127.0.0.1:8546".parse().expect("a URL");
        config.chain.endpoints[0].url = "http://127.0.0.1:8545".parse().expect("a URL");
        assert_eq!(doctor_advice(&config, &well()), Vec::<String>::new(), "tunnels end on this machine");
    }

    #[test]
    fn endpoints_of_one_operator_count_once() {
        let mut config = config(&["a", "b", "c"]);
        config.chain.endpoints[1].operator = config.chain.endpoints[0].operator.clone();
        let down = RpcEndpointHealth { reachable: false, chain: None, finalized: None, ..healthy("c") };
        let advice = doctor_advice(&config, &found(vec![healthy("a"), healthy("b"), down]));
        let once =
            "endpoints of 2 operators are needed, and 1 can be used (rpc-1 and rpc-2 count once): name more with --rpc";
        assert_eq!(advice[1..], [once]);
    }

    #[test]
    fn different_hashes_name_who_stands_with_whom() {
        let group = |hash: &str, labels: &[&str]| AgreeingEndpoints {
            hash: hash.to_owned(),
            endpoints: labels.iter().map(|label| (*label).to_owned()).collect(),
        };
        let groups = vec![group("0x1", &["a", "c"]), group("0x2", &["b"])];
        let mut found = found(vec![healthy("a"), healthy("b")]);
        found.agreement = Some(BlockHashAgreement { number: 7, groups });
        let expected = "the endpoints give different hashes for the finalized block 7: a and c against b: take out those that are wrong";
        assert_eq!(doctor_advice(&config(&["a", "b"]), &found), [expected]);
    }

    #[test]
    fn a_wrong_clock_is_told_by_dates_and_by_blocks_of_the_future() {
        let clock = |ahead: Option<i64>, age: i64| {
            let health = RpcEndpointHealth { clock_ahead_s: ahead, latest: block(age), ..healthy("a") };
            advice_on_clock(&found(vec![health]))
        };
        assert_eq!(clock(Some(20), 5), None);
        assert_eq!(clock(None, 5), None);
        assert!(clock(Some(90), -80).is_some_and(|advice| advice.contains("90 s behind")));
        assert!(clock(Some(-90), 95).is_some_and(|advice| advice.contains("90 s ahead")));
        assert!(clock(None, -60).is_some_and(|advice| advice.contains("60 s behind")));
    }
}
