//! The sandbox as the program uses it: its servers as a configuration, its manifests as rules.
//!
//! The sandbox itself is the crate `clresolve-sandbox`, which does not depend on configurations.

use std::io;
use std::time::Duration;

use alloy_primitives::{Address, U256, address};
use clresolve_core::reading::ChainBlock;
use clresolve_payment::asset::AssetProperties;
use clresolve_payment::check::{OriginMemoryEntry, ProvenSellerIdentity, RememberedPayee, SellerIdentity, WebOrigin};
use clresolve_payment::limits::{AtomicAmount, NetworkAllowlistSource};
use clresolve_sandbox::purchase::{self, SettlementHeaderSample};
use clresolve_sandbox::spec::PublisherCardSet;
use clresolve_sandbox::{agents, receipts, sellers};
use jiff::Timestamp;

use clresolve_core::name::EnsName;
use clresolve_core::world::SANDBOX;
use clresolve_sandbox::SandboxUpstreamUrl;
use clresolve_sandbox::chain::{DOLLAR, SandboxChainBuildError, SandboxChainBuilder};
use clresolve_sandbox::demo::DemoSellerServer;
use clresolve_sandbox::purchase::SandboxPurchase;
use clresolve_verdict::profile::ConformanceProfiles;

use crate::config::{
    BeaconConfig, BeaconEndpointConfig, BeaconNetwork, ChainId, Config, DnsResolutionMode, EnsChainConfig, HedgeDelay,
    IpfsGateway, OutboundNetworkConfig, PaymentLimitsConfig, PermittedAssetConfig, PermittedNetworks,
    RegistryChainConfig, RpcEndpointConfig, SchemaManifestSource, VerdictRulesConfig,
};

pub use clresolve_sandbox::agents::ExpectedAgentVerdict;
pub use clresolve_sandbox::beacon::SandboxBeaconBehaviour;
pub use clresolve_sandbox::chain::SandboxRpcFault;
pub use clresolve_sandbox::sellers::ExpectedSellerCheck;
pub use clresolve_sandbox::spec::{SandboxSpec, SandboxSpecError};
pub use clresolve_sandbox::{IpfsGatewayBehaviour, SandboxRequestCounts, SandboxStartError, ServedChainState};

/// Gateways are asked in turn, each with an equal share of the time, so that the results do not depend on the machine's
/// load. The delay is the longest that a configuration permits, and longer than any question.
const IN_TURN: HedgeDelay = HedgeDelay::After(Duration::from_secs(3600));

/// How often other programs ask the running sandbox for its newest block. Polls of a chain on this machine cost little.
const HEAD_POLL: Duration = Duration::from_millis(200);

/// A custom network for tests.
pub struct CustomSandbox(clresolve_sandbox::RunningSandbox);

impl CustomSandbox {
    /// Builds the network and starts its servers on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// If `spec` is invalid, or if no port is available.
    pub async fn start(spec: &SandboxSpec) -> Result<Self, SandboxStartError> {
        clresolve_sandbox::RunningSandbox::start(spec).await.map(Self)
    }

    /// A configuration that reads only this network.
    pub fn config(&self) -> Config {
        sandbox_config(&self.0)
    }

    /// An endpoint that serves `state` and fails as `fault` specifies.
    ///
    /// # Errors
    /// If no port is available.
    pub async fn start_rpc_endpoint(
        &self,
        fault: SandboxRpcFault,
        state: ServedChainState,
        own: bool,
    ) -> Result<RpcEndpointConfig, SandboxStartError> {
        let endpoint = rpc_endpoint_config(self.0.start_rpc_endpoint(fault, state).await?, own);
        Ok(RpcEndpointConfig { operator: endpoint.url.authority().to_owned(), ..endpoint })
    }

    /// An endpoint of the beacon API with this behaviour.
    ///
    /// # Errors
    /// If no port is available.
    pub async fn start_beacon_endpoint(
        &self,
        behaviour: SandboxBeaconBehaviour,
    ) -> Result<BeaconEndpointConfig, SandboxStartError> {
        self.0.start_beacon_endpoint(behaviour).await.map(beacon_endpoint_config)
    }

    /// A gateway with this behaviour.
    pub fn ipfs_gateway(&self, behaviour: IpfsGatewayBehaviour) -> IpfsGateway {
        ipfs_gateway_at_upstream(self.0.gateway_upstream(behaviour))
    }

    /// Number of requests received so far.
    pub fn request_counts(&self) -> SandboxRequestCounts {
        self.0.request_counts()
    }

    /// Writes a text record, as the holder of the name would, in a new block that is not final.
    ///
    /// # Errors
    /// If the name has no resolver with records.
    pub fn write_text(&mut self, name: &EnsName, key: &str, value: &str) -> Result<ChainBlock, SandboxStartError> {
        self.0.write_text_record(name, key, value)
    }

    /// Makes a change in a new block that is not final.
    ///
    /// # Errors
    /// If the change fails.
    pub fn apply_in_new_block(
        &mut self,
        change: impl FnOnce(&mut SandboxChainBuilder) -> Result<(), SandboxChainBuildError>,
    ) -> Result<ChainBlock, SandboxStartError> {
        self.0.change_chain(change)
    }
}

/// The running sandbox. It stops on drop.
pub struct Sandbox(clresolve_sandbox::RunningSandbox);

impl Sandbox {
    /// Starts the sandbox on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// If no port is available.
    pub async fn start() -> Result<Self, SandboxStartError> {
        Self::start_with_publications(Vec::new()).await
    }

    /// Starts the sandbox with these publications in addition to its own agents.
    ///
    /// # Errors
    /// If no port is available, or if a card cannot be published in the sandbox.
    pub async fn start_with_publications(publications: Vec<PublisherCardSet>) -> Result<Self, SandboxStartError> {
        let spec = SandboxSpec { planned: publications, ..agents::sandbox_spec() };
        clresolve_sandbox::RunningSandbox::start(&spec).await.map(Self)
    }

    /// A configuration that reads only the sandbox.
    pub fn config(&self) -> Config {
        let mut config = sandbox_config(&self.0);
        config.network.dns = DnsResolutionMode::Off;
        config.explorer.probe = true;
        config.check.origins = sellers::pinned_identities()
            .iter()
            .map(|(at, seller)| (parse_origin(at), parse_identity(seller)))
            .collect();
        config
    }

    /// The agent of the demo whose seller is honest.
    pub const HONEST_AGENT: &str = "summarizeagent.eth";

    /// The agent of the demo whose seller demands payment to another address than the name publishes.
    pub const LYING_AGENT: &str = "payee-mismatch.eth";

    /// Starts the sellers of the demo on this port of 127.0.0.1, or on a free one if it is 0.
    ///
    /// # Errors
    /// If the port cannot be bound.
    pub async fn start_sellers(&self, port: u16) -> io::Result<DemoSellerServer> {
        self.0.start_demo_sellers(port).await
    }

    /// The configuration of the demo, which routes two agents to its sellers.
    pub fn demo_config(&self, sellers: &DemoSellerServer) -> Config {
        let routes = [(Self::HONEST_AGENT, sellers.honest_url()), (Self::LYING_AGENT, sellers.lying_url())];
        Config { routes: routes.map(|(agent, url)| (agent.to_owned(), url)).into(), ..self.config() }
    }

    /// Number of requests received so far.
    pub fn request_counts(&self) -> SandboxRequestCounts {
        self.0.request_counts()
    }

    /// The listeners: label, and URL or address.
    pub fn listener_addresses(&self) -> Vec<(String, String)> {
        self.0.listener_addresses()
    }

    /// Every name of the sandbox with its expected verdict: good agents first, then by name.
    pub fn expected_verdicts() -> Vec<ExpectedAgentVerdict> {
        agents::expected_agents()
    }

    /// The sellers of the sandbox, each with the expected decision of a check of its URL. All but one have no
    /// Agent-Card. Those that may be paid come first; both groups are sorted by URL. The decisions assume the
    /// configuration of the sandbox, and a memory with the entries of [`Sandbox::initial_origin_memory`].
    pub fn expected_seller_checks() -> Vec<ExpectedSellerCheck> {
        sellers::expected_sellers()
    }

    /// The initial entries of the sandbox's memory, if it has no file.
    pub fn initial_origin_memory() -> Vec<(WebOrigin, OriginMemoryEntry)> {
        let remembered = |seller: sellers::SellerMemorySeed| {
            let payee = seller.payee.map(|(address, network)| RememberedPayee {
                address,
                network: network.parse().expect("a CAIP-2 identifier"),
                at: Timestamp::UNIX_EPOCH,
                block: None,
            });
            let seen = |text: &str| ProvenSellerIdentity {
                identity: parse_identity(text),
                at: Timestamp::UNIX_EPOCH,
                block: None,
            };
            let identity = seller.identity.as_deref().map(seen);
            (parse_origin(&seller.origin), OriginMemoryEntry { identity, payee, ..OriginMemoryEntry::default() })
        };
        sellers::seller_memory_seeds().into_iter().map(remembered).collect()
    }

    /// Receipts of the sandbox's agents, good ones first, each with the expected result for
    /// [`Sandbox::sample_request`].
    pub fn sample_receipts() -> &'static [receipts::ReceiptSample] {
        receipts::SAMPLES
    }

    /// The request that the receipts answer: file name and text.
    pub const fn sample_request() -> (&'static str, &'static str) {
        receipts::REQUEST
    }

    /// The payment for that request, as its header (`PAYMENT-SIGNATURE`): file name and text.
    pub fn sample_payment() -> (&'static str, String) {
        ("payment.txt", SandboxPurchase::Settled.payment_header())
    }

    /// `PAYMENT-RESPONSE` headers of sellers, the good one first, each with the expected result.
    pub fn sample_settlement_headers() -> [SettlementHeaderSample; 3] {
        purchase::settlement_samples()
    }

    /// The rules for the sandbox's names: the built-in profiles with the manifests of its own schemas. Starts nothing.
    pub fn profiles() -> ConformanceProfiles {
        let mut profiles = ConformanceProfiles::builtin();
        for manifest in agents::schema_manifests() {
            profiles.replace_manifest(&manifest.bytes).expect("its manifests have the ids of the built-in ones");
        }
        profiles
    }

    /// The configuration for other programs that use the running sandbox. It sets a maximum head age, since the chain
    /// seals a block only every few minutes, and a short interval of head polls.
    pub fn client_program_config(&self) -> Config {
        let mut config = self.config();
        config.chain.max_head_age = Some(clresolve_sandbox::MAX_HEAD_AGE);
        config.chain.head_poll = HEAD_POLL;
        config.chains.values_mut().for_each(|chain| chain.max_head_age = config.chain.max_head_age);
        config
    }

    /// Keeps the sandbox running and its chain growing until dropped.
    pub async fn run_until_dropped(self) {
        self.run_with_block_interval(clresolve_sandbox::SEAL_EVERY).await;
    }

    /// The same, with a new block every `interval`.
    pub async fn run_with_block_interval(self, interval: Duration) {
        self.0.keep_growing(interval).await;
    }
}

fn parse_origin(text: &str) -> WebOrigin {
    text.parse().expect("a seller of the sandbox has an origin")
}

fn parse_identity(text: &str) -> SellerIdentity {
    text.parse().expect("a seller of the sandbox has a name or a registration")
}

fn sandbox_config(world: &clresolve_sandbox::RunningSandbox) -> Config {
    let source = |manifest: &clresolve_sandbox::SandboxSchemaManifest| SchemaManifestSource::Url {
        url: manifest.url.parse().expect("the location of a manifest is a URL"),
        digest: manifest.digest.clone(),
    };
    let connect_to = world.connect_to_rules();
    let rule = |rule: &String| rule.parse().expect("hosts and addresses make a rule");
    Config {
        chain: EnsChainConfig {
            world: SANDBOX.to_owned(),
            id: clresolve_sandbox::CHAIN_ID,
            genesis: Some(world.genesis()),
            endpoints: vec![rpc_endpoint_config(world.rpc_upstream(), true)],
            universal_resolver: clresolve_sandbox::UNIVERSAL_RESOLVER,
            ..EnsChainConfig::default()
        },
        beacon: BeaconConfig {
            checkpoint: Some(world.beacon_checkpoint_root()),
            endpoints: vec![beacon_endpoint_config(world.beacon_upstream())],
            network: BeaconNetwork::Sandbox,
            ..BeaconConfig::default()
        },
        gateways: vec![ipfs_gateway_at_upstream(world.gateway_upstream(IpfsGatewayBehaviour::Ok))],
        network: OutboundNetworkConfig {
            connect_to: connect_to.iter().map(rule).collect(),
            ca_pems: vec![world.ca_pem().to_owned()],
            hedging: IN_TURN,
            ..OutboundNetworkConfig::default()
        },
        rules: VerdictRulesConfig {
            manifests: world.manifests().iter().map(source).collect(),
            ..VerdictRulesConfig::default()
        },
        limits: payment_limits_config(),
        chains: agent_registry_config(world).into_iter().collect(),
        ..Config::default()
    }
}

/// The sandbox's agent registry.
fn agent_registry_config(world: &clresolve_sandbox::RunningSandbox) -> Option<(ChainId, RegistryChainConfig)> {
    let mut registry = RegistryChainConfig::new(vec![rpc_endpoint_config(world.rpc_upstream(), true)]);
    registry.agents.clone_from(world.agent_numbers());
    Some((ChainId::new(clresolve_sandbox::CHAIN_ID)?, registry))
}

/// The sandbox's payment limits: its own dollar, and one asset on a network that has a name in x402 v1. One asset has
/// no limit, to show the consequence.
fn payment_limits_config() -> PaymentLimitsConfig {
    let own = format!("eip155:{}", clresolve_sandbox::CHAIN_ID);
    let dollar =
        AssetProperties { name: "Sandbox Dollar".into(), version: "1".into(), decimals: 6, symbol: "SBD".into() };
    let listed = |network: &str, address, most: Option<u64>, asset: Option<&AssetProperties>| PermittedAssetConfig {
        network: network.parse().expect("a CAIP-2 identifier"),
        address,
        max_amount: most.map(|most| AtomicAmount(U256::from(most))),
        name: asset.map(|asset| asset.name.to_string()),
        version: asset.map(|asset| asset.version.to_string()),
        decimals: asset.map(|asset| asset.decimals),
        symbol: asset.map(|asset| asset.symbol.to_string()),
    };
    let most = Some(5 * clresolve_sandbox::seller::PRICE);
    PaymentLimitsConfig {
        networks: PermittedNetworks::Source(NetworkAllowlistSource::Limits),
        assets: vec![
            listed(&own, DOLLAR, most, Some(&dollar)),
            listed(&own, clresolve_sandbox::seller::UNLIMITED, None, Some(&dollar)),
            listed("eip155:84532", BASE_SEPOLIA_USDC, most, None),
        ],
        ..PaymentLimitsConfig::default()
    }
}

const BASE_SEPOLIA_USDC: Address = address!("036CbD53842c5426634e7929541eC2318f3dCF7e");

fn rpc_endpoint_config(at: SandboxUpstreamUrl, own: bool) -> RpcEndpointConfig {
    let url = at.url.parse().expect("a loopback address makes a URL");
    RpcEndpointConfig { label: at.label, operator: RpcEndpointConfig::operator_from_url(&url), url, own }
}

fn beacon_endpoint_config(SandboxUpstreamUrl { label, url }: SandboxUpstreamUrl) -> BeaconEndpointConfig {
    BeaconEndpointConfig { label, url: url.parse().expect("a loopback address makes a URL") }
}

fn ipfs_gateway_at_upstream(at: SandboxUpstreamUrl) -> IpfsGateway {
    let url = at.url.parse().expect("a host of the world makes a URL");
    IpfsGateway { label: at.label, url, own: false }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clresolve_core::reason::ReasonCode;
    use clresolve_payment::check::{Erc8004Outcome, PayeeEvidenceKind, SellerCheckRequest};

    use super::*;
    use crate::resolve::Resolver;

    /// Every seller replies with valid terms, unless its expected code is `payment-terms-malformed`.
    #[tokio::test(flavor = "multi_thread")]
    async fn sellers_reply_with_terms_that_can_be_read() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let resolver = Resolver::new(&sandbox.config()).await.expect("a resolver");
        for seller in Sandbox::expected_seller_checks() {
            let reply = resolver.send_unpaid_request(&seller.url, Some("{}")).await.expect("the seller answers");
            let request = SellerCheckRequest::from_seller_reply(&seller.url, reply);
            let malformed = ReasonCode::PaymentTermsMalformed.slug();
            match request.parse_terms() {
                Ok(terms) => {
                    assert!(terms.entries.iter().all(|entry| entry.price.is_ok()), "{}: {terms:?}", seller.url);
                    assert!(!seller.codes.iter().any(|code| code == malformed), "{}", seller.url);
                }
                Err(reason) => assert_eq!(seller.codes, [reason.code.slug()], "{}: {reason:?}", seller.url),
            }
        }
    }

    /// Every name that the caller passes, the configuration pins or the memory has accepted has records at a block.
    #[tokio::test(flavor = "multi_thread")]
    async fn names_of_sellers_resolve() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let resolver = Resolver::new(&sandbox.config()).await.expect("a resolver");
        let of_caller = Sandbox::expected_seller_checks().into_iter().filter_map(|seller| seller.name);
        let pinned = sellers::pinned_identities().into_iter().map(|(_, identity)| identity);
        let remembered = sellers::seller_memory_seeds().into_iter().filter_map(|seller| seller.identity);
        let names: BTreeSet<String> =
            of_caller.chain(pinned).chain(remembered).filter(|id| !id.contains(':')).collect();
        for name in names {
            let resolution = resolver.resolve(&name).await;
            let verdict = resolution.verdict();
            let codes: Vec<&str> = verdict.reasons.iter().map(|reason| reason.code.slug()).collect();
            assert!(verdict.anchor.is_some(), "{name}: {codes:?}");
            for missing in ["name-unregistered", "resolver-missing", "resolver-failed", "ccip-failed"] {
                assert!(!codes.contains(&missing), "{name}: {codes:?}");
            }
        }
    }

    /// A seller for each outcome of a registration.
    const OUTCOMES: [(&str, Erc8004Outcome); 7] = [
        ("https://registration-pinned.sandbox.example/weather", Erc8004Outcome::VerifiedWallet),
        ("https://registration-other-wallet.sandbox.example/weather", Erc8004Outcome::Mismatch),
        ("https://endpoint-unlisted.sandbox.example/weather", Erc8004Outcome::EndpointUnlisted),
        ("https://registration-owner-only.sandbox.example/weather", Erc8004Outcome::OwnerOnly),
        ("https://registration-no-wallet.sandbox.example/weather", Erc8004Outcome::NoAgentWallet),
        ("https://registration-unknown.sandbox.example/weather", Erc8004Outcome::NoIdentity),
        ("https://registration-elsewhere.sandbox.example/weather", Erc8004Outcome::NotRead),
    ];

    #[tokio::test(flavor = "multi_thread")]
    async fn every_seller_gets_its_decision() {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let config = Config { timeout: Duration::from_secs(120), ..sandbox.config() };
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let mut outcomes = BTreeMap::from(OUTCOMES);
        for seller in Sandbox::expected_seller_checks() {
            let reply = resolver.send_unpaid_request(&seller.url, Some("{}")).await.expect("the seller answers");
            let about = SellerCheckRequest::from_seller_reply(&seller.url, reply);
            let answer = resolver.check_seller(&SellerCheckRequest { name: seller.name, ..about }).await;
            let codes: BTreeSet<&str> = answer.codes.iter().map(String::as_str).collect();
            let expected: BTreeSet<&str> = seller.codes.iter().map(String::as_str).collect();
            let decision = serde_json::to_value(answer.decision).expect("a word");
            assert_eq!((decision.as_str(), codes), (Some(seller.decision), expected), "{}: {answer:#?}", seller.url);
            if let outcome @ Some(_) = outcomes.remove(&*seller.url) {
                let row = answer.evidence_row(PayeeEvidenceKind::Erc8004).expect("there is a row for each kind");
                assert_eq!(row.outcome, outcome, "{}", seller.url);
            }
        }
        assert!(outcomes.is_empty(), "{outcomes:?}");
    }
}
