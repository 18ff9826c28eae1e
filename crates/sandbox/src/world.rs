//! A running sandbox: the chain, the web hosts, the IPFS gateways and the CCIP-Read gateway of a [`SandboxSpec`], on
//! loopback.

mod hosts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::{Address, B256, keccak256};
use jiff::{SignedDuration, Timestamp};

use self::hosts::{GATEWAY_HOST, SandboxHosts, gateway_host};
use super::beacon::{SandboxBeaconBehaviour, SandboxBeaconServers};
use super::ca;
use super::ccip::CCIP_HOST;
use super::chain::{
    EnsResolverKind, SandboxChain, SandboxChainBuildError, SandboxChainBuilder, SandboxNameRegistration,
    SandboxRpcFault, SandboxRpcServer,
};
use super::demo::DemoSellerServer;
use super::discovery;
use super::gateway::IpfsGatewayBehaviour;
use super::planned;
use super::published::{CARDS_HOST, SandboxAgentPublication};
use super::purchase::SandboxPurchase;
use super::registrations::{self, AgentRegistryEntry};
pub use super::schemas::SandboxSchemaManifest;
use super::schemas::{MIRROR_HOST, SCHEMAS_HOST, SandboxSchemaLayers};
use super::seller::{self, SELLER_HOST, THIEF_HOST};
use super::sellers;
use super::spec::{
    AgentWalletSpec, CardlessNameSpec, EnsResolverSpec, PUBLISHER_ACCOUNT, SandboxAgentSpec, SandboxSpec,
    SandboxSpecError,
};
use super::web::{SandboxHttpsServer, VirtualHostHandler};
use clresolve_core::name::EnsName;
use clresolve_core::payment::{CoinType, EndpointRecordKey};
use clresolve_core::reading::ChainBlock;

/// A host that the servers' certificate does not cover.
const UNTRUSTED_HOST: &str = "untrusted.sandbox.example";

const HTTPS: u16 = 443;

/// How far the finalized block lags behind the clock, as on mainnet.
const FINALITY: SignedDuration = SignedDuration::from_mins(13);

/// Time between the finalized blocks of two nodes at an epoch boundary.
const EPOCH: SignedDuration = SignedDuration::from_secs(384);

/// How far the newest block lags behind the clock.
const NEWEST: SignedDuration = SignedDuration::from_secs(12);

/// How often a long-running sandbox seals a block by default: well within the age at which a chain counts as stopped.
pub const SEAL_EVERY: Duration = Duration::from_secs(300);

/// Maximum age of the newest block of a long-running sandbox: one seal may be late.
pub const MAX_HEAD_AGE: Duration = Duration::from_secs(2 * SEAL_EVERY.as_secs());

/// Time between blocks for records that are written later: the minimum on a chain.
const BETWEEN_WRITES: SignedDuration = SignedDuration::from_secs(1);

/// A running sandbox. Dropping it stops the servers.
pub struct RunningSandbox {
    ca_pem: String,
    server: SandboxHttpsServer,
    rpc: SandboxRpcServer,
    beacon: SandboxBeaconServers,
    /// Endpoints with faults that have been requested. They keep running.
    faulty: Mutex<Vec<(ServedChainState, SandboxRpcServer)>>,
    draft: GrowingSandboxChain,
    /// The chain with a newest block that is hours old.
    stopped: Arc<SandboxChain>,
    started: Timestamp,
    hosts: Arc<SandboxHosts>,
    manifests: Vec<SandboxSchemaManifest>,
    agents: BTreeMap<String, u64>,
    /// The sellers' own hosts.
    sellers: BTreeSet<String>,
}

/// Why a sandbox cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxStartError {
    /// The data does not define a sandbox.
    #[error(transparent)]
    Spec(#[from] SandboxSpecError),
    /// The chain rejects the data.
    #[error("the sandbox's chain: {0}")]
    Chain(#[from] SandboxChainBuildError),
    /// No loopback port is free, or no certificate can be created.
    #[error("the sandbox cannot listen on 127.0.0.1: {0}")]
    Listen(String),
}

/// An upstream of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxUpstreamUrl {
    /// Its label in verdicts and logs.
    pub label: String,
    /// Its URL.
    pub url: String,
}

/// Numbers of requests received so far, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SandboxRequestCounts {
    /// For cards.
    pub https: u64,
    /// For blocks and CARs.
    pub gateway: u64,
    /// JSON-RPC to the default endpoint. A batch counts as one.
    pub rpc: u64,
    /// JSON-RPC to the other endpoints.
    pub further_rpc: u64,
    /// To the CCIP-Read gateway.
    pub ccip: u64,
    /// For schemas and manifests.
    pub schemas: u64,
    /// To sellers.
    pub sellers: u64,
}

/// The chain that an endpoint serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServedChainState {
    /// A growing chain.
    #[default]
    Growing,
    /// The same chain, with one more finalized block, as seen on some nodes at an epoch boundary.
    Ahead,
    /// The same chain with an old newest block.
    Stopped,
}

impl RunningSandbox {
    /// Builds the sandbox and starts its servers on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// `spec` does not define a sandbox, or no port is free.
    pub async fn start(spec: &SandboxSpec) -> Result<Self, SandboxStartError> {
        let now = Timestamp::now();
        let schemas = SandboxSchemaLayers::with_schema_defects(&spec.schemas);
        let published = publish_agents(&spec.agents, &schemas)?;
        let mut draft = GrowingSandboxChain::new(spec, &published, now)?;
        let stopped = Arc::new(draft.chain_with_pending_block(SandboxPurchase::SETTLED_AT + EPOCH)?);
        draft.seal_final_block(now - EPOCH)?;
        let chain = Arc::new(draft.grow_chain(now)?);

        let sellers = sellers::seller_hosts(spec);
        let of_sellers: Vec<&str> = sellers.iter().map(String::as_str).collect();
        let (ca_pem, tls) = ca::issue_certificates(&[&CERTIFIED[..], &discovery::HOSTS, &of_sellers].concat())
            .map_err(|error| SandboxStartError::Listen(error.to_string()))?;
        let hosts = Arc::new(SandboxHosts::new(spec, &published, &schemas, Arc::clone(&chain)));
        let server = SandboxHttpsServer::start(tls, Arc::clone(&hosts) as Arc<dyn VirtualHostHandler>)
            .await
            .map_err(|error| SandboxStartError::Listen(error.to_string()))?;
        let beacon = SandboxBeaconServers::start(Arc::clone(&chain)).await;
        let beacon = beacon.map_err(|error| SandboxStartError::Listen(error.to_string()))?;
        let rpc = SandboxRpcServer::bind(chain).await.map_err(|error| SandboxStartError::Listen(error.to_string()))?;
        let manifests = schemas.manifests().cloned().collect();
        let is_agent = |name: &str| spec.agents.iter().any(|agent| agent.name == name);
        let entries = registrations::registry_entries(spec);
        let of_agents = entries.iter().filter(|entry| is_agent(entry.subject));
        Ok(Self {
            ca_pem,
            server,
            rpc,
            beacon,
            faulty: Mutex::default(),
            draft,
            stopped,
            started: now,
            hosts,
            manifests,
            agents: of_agents.map(|entry| (entry.subject.to_owned(), entry.number)).collect(),
            sellers,
        })
    }

    /// The endpoint without faults.
    pub fn rpc_upstream(&self) -> SandboxUpstreamUrl {
        SandboxUpstreamUrl { label: "sandbox-rpc".to_owned(), url: self.rpc.url() }
    }

    /// The honest endpoint of the beacon API.
    pub fn beacon_upstream(&self) -> SandboxUpstreamUrl {
        SandboxUpstreamUrl { label: "sandbox-beacon".to_owned(), url: self.beacon.honest_url() }
    }

    /// The beacon block root from which a light client can start.
    pub fn beacon_checkpoint_root(&self) -> B256 {
        self.beacon.checkpoint_root()
    }

    /// Starts an endpoint of the beacon API that behaves like this.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start_beacon_endpoint(
        &self,
        behaviour: SandboxBeaconBehaviour,
    ) -> Result<SandboxUpstreamUrl, SandboxStartError> {
        let url = self
            .beacon
            .start_endpoint(behaviour)
            .await
            .map_err(|error| SandboxStartError::Listen(error.to_string()))?;
        Ok(SandboxUpstreamUrl { label: format!("beacon-{behaviour}"), url })
    }

    /// Hash of block 0.
    pub fn genesis(&self) -> B256 {
        self.hosts.chain().genesis().hash
    }

    /// The certificate of the authority for its hosts, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The manifests of its schemas.
    pub fn manifests(&self) -> &[SandboxSchemaManifest] {
        &self.manifests
    }

    /// The numbers of its agents in the registry of agents (ERC-8004), by name.
    pub const fn agent_numbers(&self) -> &BTreeMap<String, u64> {
        &self.agents
    }

    /// Starts an endpoint that reads `state` and has the fault `fault`.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start_rpc_endpoint(
        &self,
        fault: SandboxRpcFault,
        state: ServedChainState,
    ) -> Result<SandboxUpstreamUrl, SandboxStartError> {
        let chain = match state {
            ServedChainState::Growing => self.hosts.chain(),
            ServedChainState::Ahead => Arc::new(self.draft.clone().grow_chain(self.started + EPOCH)?),
            ServedChainState::Stopped => Arc::clone(&self.stopped),
        };
        let server =
            SandboxRpcServer::bind(chain).await.map_err(|error| SandboxStartError::Listen(error.to_string()))?;
        server.set_fault(fault);
        let mut faulty = self.faulty.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoint = SandboxUpstreamUrl { label: format!("rpc-{}", faulty.len() + 1), url: server.url() };
        faulty.push((state, server));
        Ok(endpoint)
    }

    /// Starts the sellers of the demo on this port of 127.0.0.1, or on a free one if it is 0.
    ///
    /// # Errors
    /// The port cannot be bound.
    pub async fn start_demo_sellers(&self, port: u16) -> std::io::Result<DemoSellerServer> {
        DemoSellerServer::start(port, &self.hosts.chain()).await
    }

    /// Writes a text record on behalf of the name's holder, in a new block that is not final. Every endpoint of a
    /// growing chain serves it from the next request on.
    ///
    /// # Errors
    /// The name has no resolver with records.
    pub fn write_text_record(
        &mut self,
        name: &EnsName,
        key: &str,
        value: &str,
    ) -> Result<ChainBlock, SandboxStartError> {
        self.change_chain(|newest| newest.set_text(name, key, value))
    }

    /// Makes a change in a new block that is not final. Every endpoint of a growing chain serves it from the next
    /// request on.
    ///
    /// # Errors
    /// The change fails.
    pub fn change_chain(
        &mut self,
        change: impl FnOnce(&mut SandboxChainBuilder) -> Result<(), SandboxChainBuildError>,
    ) -> Result<ChainBlock, SandboxStartError> {
        let newest = &mut self.draft.newest;
        change(newest)?;
        let block = newest.seal_block(newest.build()?.latest().timestamp + BETWEEN_WRITES)?;
        let chain = Arc::new(newest.build()?);
        self.serve_chain(&chain);
        Ok(block)
    }

    fn serve_chain(&self, chain: &Arc<SandboxChain>) {
        self.hosts.serve_chain(Arc::clone(chain));
        self.rpc.serve_chain(Arc::clone(chain));
        self.beacon.follow_chain(Arc::clone(chain));
        let faulty = self.faulty.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, server) in faulty.iter().filter(|(state, _)| *state == ServedChainState::Growing) {
            server.serve_chain(Arc::clone(chain));
        }
    }

    /// The gateway with this behaviour.
    pub fn gateway_upstream(&self, behaviour: IpfsGatewayBehaviour) -> SandboxUpstreamUrl {
        let host = gateway_host(behaviour);
        let label = host.trim_end_matches(&format!(".{}", ca::DOMAIN)).to_owned();
        SandboxUpstreamUrl { label, url: format!("https://{host}/") }
    }

    /// Requests received so far.
    pub fn request_counts(&self) -> SandboxRequestCounts {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let hosts = &self.hosts;
        let further = self.faulty.lock().unwrap_or_else(PoisonError::into_inner);
        SandboxRequestCounts {
            https: count(&hosts.cards),
            gateway: count(&hosts.gateways),
            rpc: self.rpc.request_count(),
            further_rpc: further.iter().map(|(_, server)| server.request_count()).sum(),
            ccip: count(&hosts.ccip),
            schemas: count(&hosts.schemas),
            sellers: count(&hosts.sellers),
        }
    }

    /// All listeners: label and URL or address.
    pub fn listener_addresses(&self) -> Vec<(String, String)> {
        let web = self.server.address();
        let at = |label: &str, host: &str| (label.to_owned(), format!("https://{host} at {web}"));
        vec![
            ("JSON-RPC".to_owned(), self.rpc.url()),
            ("beacon API".to_owned(), self.beacon.honest_url()),
            at("cards", CARDS_HOST),
            at("IPFS gateway", GATEWAY_HOST),
            at("CCIP-Read gateway", CCIP_HOST),
            at("schemas", SCHEMAS_HOST),
            at("sellers", SELLER_HOST),
            at("discovery", &discovery::HOSTS.join(", ")),
        ]
    }

    /// Seals a block every `block_interval`. Never returns.
    pub async fn keep_growing(mut self, block_interval: Duration) {
        loop {
            tokio::time::sleep(block_interval).await;
            // If the clock was set back, no block is sealed. The next round may seal one.
            if let Ok(chain) = self.draft.grow_chain(Timestamp::now()) {
                self.serve_chain(&Arc::new(chain));
            }
        }
    }

    /// The address of each host: `HOST:PORT:ADDRESS:PORT`, the format of `--connect-to`.
    pub fn connect_to_rules(&self) -> Vec<String> {
        let target = self.server.address();
        let faulty = IpfsGatewayBehaviour::ALL.into_iter().map(gateway_host);
        [CARDS_HOST, SCHEMAS_HOST, MIRROR_HOST, CCIP_HOST, SELLER_HOST, THIEF_HOST, UNTRUSTED_HOST]
            .into_iter()
            .chain(discovery::HOSTS)
            .map(str::to_owned)
            .chain(faulty)
            .chain(self.sellers.iter().cloned())
            .map(|host| format!("{host}:{HTTPS}:{target}"))
            .collect()
    }
}

/// The hosts that the certificate covers, in addition to those of [`discovery::HOSTS`].
const CERTIFIED: [&str; 8] = [
    CARDS_HOST,
    SCHEMAS_HOST,
    MIRROR_HOST,
    CCIP_HOST,
    SELLER_HOST,
    THIEF_HOST,
    GATEWAY_HOST,
    "*.gateway.sandbox.example",
];

fn publish_agents(
    agents: &[SandboxAgentSpec],
    schemas: &SandboxSchemaLayers,
) -> Result<Vec<(SandboxAgentSpec, SandboxAgentPublication)>, SandboxSpecError> {
    agents.iter().map(|agent| Ok((agent.clone(), agent.publish(schemas)?))).collect()
}

/// The final blocks of the chain.
#[derive(Clone)]
struct GrowingSandboxChain {
    builder: SandboxChainBuilder,
    /// The same chain with the blocks that are not final.
    newest: SandboxChainBuilder,
    /// Records that are in the newest block but not in the finalized one.
    pending: Vec<(EnsName, String, String)>,
    /// Address records that are in the newest block but not in the finalized one.
    pending_addresses: Vec<(EnsName, CoinType, alloy_primitives::Bytes)>,
    /// Names that have another holder in the newest block.
    pending_holders: Vec<(EnsName, Address)>,
    /// Registry agents whose wallets are unset in the newest block, each with its account.
    pending_wallets: Vec<(Address, u64)>,
}

impl GrowingSandboxChain {
    fn new(
        spec: &SandboxSpec,
        published: &[(SandboxAgentSpec, SandboxAgentPublication)],
        now: Timestamp,
    ) -> Result<Self, SandboxStartError> {
        let builder = SandboxChainBuilder::new()?;
        let newest = builder.clone();
        let mut draft = Self {
            builder,
            newest,
            pending: Vec::new(),
            pending_addresses: Vec::new(),
            pending_holders: Vec::new(),
            pending_wallets: Vec::new(),
        };
        for plain in &spec.names {
            draft.register_cardless_name(plain, now)?;
        }
        for (agent, published) in published {
            draft.register_agent_name(agent, published, now)?;
        }
        for registration in planned::publisher_card_registrations(spec, account_address(PUBLISHER_ACCOUNT))? {
            draft.register_name(&registration)?;
        }
        for plain in sellers::seller_names(spec) {
            draft.register_cardless_name(&plain, now)?;
        }
        for entry in registrations::registry_entries(spec) {
            draft.register_agent_entry(&entry)?;
        }
        draft.builder.seal_block(SandboxPurchase::SETTLED_AT - NEWEST)?;
        // In their own block, since the block with all names has too many receipts to read.
        for purchase in SandboxPurchase::FINAL {
            purchase.settle_on_chain(&mut draft.builder)?;
        }
        draft.builder.seal_block(SandboxPurchase::SETTLED_AT)?;
        draft.builder.finalize_newest_block()?;
        Ok(draft)
    }

    /// Registers an entry in the registry of agents.
    fn register_agent_entry(&mut self, entry: &AgentRegistryEntry<'_>) -> Result<(), SandboxStartError> {
        let account = entry.registering_account();
        self.builder.register_agent(account, &entry.uri())?;
        match entry.spec.wallet {
            AgentWalletSpec::Unset => self.builder.unset_agent_wallet(account, entry.number)?,
            AgentWalletSpec::Leaving => self.pending_wallets.push((account, entry.number)),
            AgentWalletSpec::Payee | AgentWalletSpec::Stranger => {}
        }
        Ok(())
    }

    fn register_cardless_name(&mut self, plain: &CardlessNameSpec, now: Timestamp) -> Result<(), SandboxStartError> {
        let (name, resolver) = resolver_for_spec(&plain.name, &plain.resolver)?;
        self.register_name(&SandboxNameRegistration {
            custody: plain.custody,
            expiry: plain.expires_in_days.map(|days| add_days(now, days)),
            resolver,
            texts: plain.records.clone(),
            addr: plain.addr.as_deref().map(account_address),
            addresses: plain.addresses.0.clone(),
            ..SandboxNameRegistration::new(name, account_address(&plain.holder))
        })
    }

    fn register_agent_name(
        &mut self,
        agent: &SandboxAgentSpec,
        published: &SandboxAgentPublication,
        now: Timestamp,
    ) -> Result<(), SandboxStartError> {
        let chain = &agent.chain;
        if !chain.registered {
            return Ok(());
        }
        let (name, resolver) = resolver_for_spec(&agent.name, &chain.resolver)?;
        let mut texts = published.records.clone();
        let mut addresses = agent.addresses.0.clone();
        if let Some(seller) = &agent.seller {
            let runtime = EndpointRecordKey::Runtime.as_str();
            if !agent.records.contains_key(runtime) {
                texts.insert(runtime.to_owned(), seller::runtime_url(seller));
            }
            addresses = seller::payee_address_records().into_iter().chain(addresses).collect();
        }
        if matches!(resolver, EnsResolverKind::None | EnsResolverKind::Address(_)) {
            texts.clear();
            addresses.clear();
        }
        for (key, value) in &published.latest {
            self.pending.push((name.clone(), key.clone(), value.clone()));
        }
        for (coin, address) in &agent.latest_addresses.0 {
            self.pending_addresses.push((name.clone(), *coin, address.clone()));
        }
        if let Some(holder) = &agent.latest_holder {
            self.pending_holders.push((name.clone(), account_address(holder)));
        }
        self.register_name(&SandboxNameRegistration {
            custody: chain.custody,
            expiry: Some(add_days(now, chain.expires_in_days)),
            resolver,
            migrated: chain.migrated,
            texts,
            addresses,
            ..SandboxNameRegistration::new(name, account_address(&chain.holder))
        })
    }

    fn register_name(&mut self, registration: &SandboxNameRegistration) -> Result<(), SandboxStartError> {
        let detail = |error: SandboxChainBuildError| SandboxSpecError {
            agent: registration.name.to_string(),
            detail: error.to_string(),
        };
        Ok(self.builder.register_name(registration).map_err(detail)?)
    }

    /// Seals a block that is final at `now`.
    fn seal_final_block(&mut self, now: Timestamp) -> Result<(), SandboxStartError> {
        self.builder.seal_block(now - FINALITY)?;
        Ok(self.builder.finalize_newest_block()?)
    }

    /// Seals a block that is final at `now`, and returns the chain with the [newest](Self::chain_with_pending_block)
    /// block after it.
    fn grow_chain(&mut self, now: Timestamp) -> Result<SandboxChain, SandboxStartError> {
        self.seal_final_block(now)?;
        self.chain_with_pending_block(now)
    }

    /// The chain with a block after the final ones that is not final. It contains the pending records. The next round
    /// replaces it.
    fn chain_with_pending_block(&mut self, now: Timestamp) -> Result<SandboxChain, SandboxStartError> {
        let mut newest = self.builder.clone();
        for (name, key, value) in &self.pending {
            newest.set_text(name, key, value)?;
        }
        for (name, coin, address) in &self.pending_addresses {
            newest.set_address(name, *coin, address)?;
        }
        for (name, holder) in &self.pending_holders {
            newest.transfer_name(name, *holder)?;
        }
        for (account, number) in &self.pending_wallets {
            newest.unset_agent_wallet(*account, *number)?;
        }
        SandboxPurchase::Pending.settle_on_chain(&mut newest)?;
        newest.seal_block(now - NEWEST)?;
        let chain = newest.build()?;
        self.newest = newest;
        Ok(chain)
    }
}

/// The name whose resolver has the records of `name`, and that resolver.
fn resolver_for_spec(name: &str, spec: &EnsResolverSpec) -> Result<(EnsName, EnsResolverKind), SandboxSpecError> {
    let parsed = parse_normalized_name(name)?;
    let kind = match spec {
        EnsResolverSpec::Public => EnsResolverKind::Public,
        EnsResolverSpec::ParentWildcard => {
            let parent = name.split_once('.').map_or("", |(_, parent)| parent);
            return Ok((parse_normalized_name(parent)?, EnsResolverKind::Wildcard));
        }
        EnsResolverSpec::Offchain(urls) => EnsResolverKind::Offchain { urls: urls.clone() },
        EnsResolverSpec::Hostile { mode, arg } => EnsResolverKind::Hostile { mode: *mode, arg: arg.clone() },
        EnsResolverSpec::None => EnsResolverKind::None,
        EnsResolverSpec::NoCode => EnsResolverKind::Address(account_address("nobody")),
    };
    Ok((parsed, kind))
}

fn add_days(now: Timestamp, days: i64) -> Timestamp {
    now + SignedDuration::from_hours(24 * days)
}

fn parse_normalized_name(name: &str) -> Result<EnsName, SandboxSpecError> {
    let normal = EnsName::parse(name).map_err(|error| error.to_string());
    normal
        .and_then(|normal| if normal.as_str() == name { Ok(normal) } else { Err(format!("write it as {normal}")) })
        .map_err(|detail| SandboxSpecError { agent: name.to_owned(), detail })
}

/// The address of the account `label` in the data. Its key is unknown.
fn account_address(label: &str) -> Address {
    Address::from_slice(&keccak256(format!("clresolve sandbox account {label}"))[12..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_lived_world_keeps_its_chain_young() {
        let start: Timestamp = "2026-11-01T00:00:00Z".parse().unwrap();
        let later = start + SEAL_EVERY;
        let mut draft = GrowingSandboxChain::new(&SandboxSpec::default(), &[], start).unwrap();
        let [old, new] = [start, later].map(|now| draft.grow_chain(now).unwrap());
        assert_eq!(new.finalized().number, old.finalized().number + 1);
        assert_eq!(new.latest().number, new.finalized().number + 1);
        assert_eq!(new.finalized().timestamp, later - FINALITY);
    }
}
