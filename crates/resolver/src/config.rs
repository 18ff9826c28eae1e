//! The configuration: chain, endpoints, gateways, rules and limits.
//!
//! A source (file, environment, flags) is a [`ConfigLayer`], and [`Config::with_layers`] applies layers to a
//! configuration, the weakest first: defaults, then file, environment and flags. The result is validated once and never
//! changes. [`Config::default`] reads Ethereum mainnet through public endpoints.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use clresolve_core::payment::RequestedCoinTypes;
pub use clresolve_core::reading::{BlockSelector, ProofGrade, ProofGradeDemand};
use clresolve_core::world::{MAINNET_ID as MAINNET, RESERVED as RESERVED_WORLDS};
use clresolve_verdict::verdict::ResolutionDepth;
use serde::{Deserialize, Serialize};

pub use crate::fetch::ipfs::{HedgeDelay, IpfsGateway};
pub use crate::fetch::{ConnectToRule, HostPort};

mod admin;
mod beacon;
mod chains;
mod check;
mod conflicts;
mod cors;
mod demand;
mod endpoint;
mod error;
mod explorer;
mod file;
mod labels;
mod layer;
mod light_client;
mod listen;
mod manifest_source;
mod mcp;
mod memory;
mod message;
mod origin;
mod orloj;
mod payment;
mod public;
mod receipts;
mod redis;
mod serve;
mod sign;
mod telemetry;
mod text;
mod value;

pub use admin::AdminConfig;
pub use beacon::{BeaconConfig, BeaconNetwork};
use chains::five_slot_duration;
pub use chains::{ChainId, RegistryChainConfig, RegistryChainMap};
pub use check::SellerCheckConfig;
pub use clresolve_core::base_url::PublicBaseUrl;
pub use cors::{ANY_ORIGIN, CorsConfig};
pub use demand::DEFAULT_QUORUM;
#[cfg(not(feature = "state-proof"))]
pub(crate) use demand::NO_STATE_PROOF;
use demand::{chain_table, derive_header_proof_mode, derive_proof_demand_with_header};
pub use endpoint::{BeaconEndpointConfig, RpcEndpointConfig};
pub use error::ConfigError;
pub use explorer::ExplorerPageConfig;
#[doc(hidden)]
pub use file::MAX_FILE_BYTES;
use labels::label_endpoints;
pub use layer::{ConfigLayer, PREPENDED_LISTS, VARIABLES};
#[cfg(feature = "state-proof")]
pub(crate) use light_client::LightClientSettings;
pub use listen::{ListenAddress, SocketPath};
pub use manifest_source::SchemaManifestSource;
pub use mcp::McpConfig;
pub use memory::ResolverMemoryConfig;
pub use orloj::OrlojCardGenerationConfig;
pub use payment::{
    AgentRouteUrls, Caip10Account, KnownPayees, PaymentLimitsConfig, PermittedAssetConfig, PermittedNetworks,
};
use public::{PUBLIC_GATEWAYS, PUBLIC_RPC};
pub use receipts::ReceiptReplayConfig;
pub use redis::{RedisConfig, RedisUrl};
pub use serve::{GateConfig, HttpServerConfig, MAX_HEADERS};
pub use sign::SignConfig;
pub use telemetry::TelemetryConfig;
use text::block;
use value::deserialize_quorum;
pub use value::{
    BlockHeaderProofMode, ChainProofMode, parse_address, parse_chain_id, parse_duration, parse_issuer, parse_profile,
    parse_quorum,
};

/// The default profile: the specification taken literally.
pub const DEFAULT_PROFILE: &str = "agent-cards/1.0.0";

/// Time limit of one question.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

/// Default of [`EnsChainConfig::head_poll`]: six polls per slot of mainnet.
const DEFAULT_HEAD_POLL: Duration = Duration::from_secs(2);

/// Default of [`CacheConfig::max_unconfirmed`]: a slot of mainnet, plus time for a late block to spread.
const DEFAULT_MAX_UNCONFIRMED: Duration = Duration::from_secs(15);

/// A validated configuration. Read it with [`ConfigLayer`], whose errors name line and key, and
/// [`Config::with_layers`], which validates it. Deserializing it directly would ignore unknown keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Config {
    /// The chain and how to read it.
    #[serde(flatten)]
    pub chain: EnsChainConfig,
    /// The light client that verifies block headers.
    pub beacon: BeaconConfig,
    /// IPFS gateways, asked in this order.
    #[serde(rename = "gateway")]
    pub gateways: Vec<IpfsGateway>,
    /// Exceptions to the rules for outbound connections.
    #[serde(flatten)]
    pub network: OutboundNetworkConfig,
    /// Which rules apply.
    #[serde(flatten)]
    pub rules: VerdictRulesConfig,
    /// Time limit of one question.
    #[serde(with = "text")]
    pub timeout: Duration,
    /// Sizes of the caches.
    pub cache: CacheConfig,
    /// What is remembered about names between runs.
    pub memory: ResolverMemoryConfig,
    /// The Redis server through which daemons share evidence.
    pub redis: RedisConfig,
    /// The daemon's listener and its limits.
    pub http: HttpServerConfig,
    /// Where the daemon's operator reaches it.
    pub admin: AdminConfig,
    /// Which web pages may read the daemon's answers.
    pub cors: CorsConfig,
    /// What the daemon does for its page.
    pub explorer: ExplorerPageConfig,
    /// The daemon's gate.
    pub gate: GateConfig,
    /// The key that verdicts are signed with.
    pub sign: SignConfig,
    /// The resources from which the daemon generates Orloj agent cards.
    pub orloj: OrlojCardGenerationConfig,
    /// How the daemon treats receipts.
    pub receipts: ReceiptReplayConfig,
    /// Who may use the daemon's MCP endpoint.
    pub mcp: McpConfig,
    /// Where the daemon sends its traces.
    pub telemetry: TelemetryConfig,
    /// The payment limits.
    pub limits: PaymentLimitsConfig,
    /// The evidence that a payment to a seller needs.
    pub check: SellerCheckConfig,
    /// The URLs at which agents are called.
    pub routes: AgentRouteUrls,
    /// Accounts that the operator knows to belong to an agent.
    pub payees: KnownPayees,
    /// Chains whose ERC-8004 registries list the accounts of agents.
    pub chains: RegistryChainMap,
}

/// The chain and how to read it: keys of the top level, and `[chain]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct EnsChainConfig {
    /// `anchor.world` of the verdicts: `mainnet`, `sandbox`, or a name that the operator chose.
    #[serde(deserialize_with = "text::deserialize_world")]
    pub world: String,
    /// EIP-155 chain id.
    #[serde(rename = "chain-id")]
    pub id: u64,
    /// Hash of block 0. Optional: mainnet's is built in, and another chain's is learnt from the first quorum.
    #[serde(with = "text::optional")]
    pub genesis: Option<B256>,
    /// RPC endpoints, in order of preference.
    #[serde(rename = "rpc")]
    pub endpoints: Vec<RpcEndpointConfig>,
    /// The grade of proof that the endpoints must provide. If unset, see [`EnsChainConfig::proof_grade_demand`].
    #[serde(with = "text::optional")]
    pub proof: Option<ChainProofMode>,
    /// Number of operators that must agree in a quorum. If unset: [`DEFAULT_QUORUM`].
    #[serde(deserialize_with = "deserialize_quorum")]
    pub quorum: Option<usize>,
    /// Who must vouch for a block header. If unset: the chain's validators if `proof` is `consensus-proof`, else RPC
    /// operators.
    #[serde(rename = "chain", with = "chain_table")]
    pub header: Option<BlockHeaderProofMode>,
    /// The Universal Resolver.
    #[serde(with = "text")]
    pub universal_resolver: Address,
    /// Which block to read.
    #[serde(with = "block")]
    pub block: BlockSelector,
    /// Whether CCIP-Read gateways may be asked.
    pub ccip_read: bool,
    /// Maximum age of the newest block. If unset, see [`EnsChainConfig::effective_max_head_age`].
    #[serde(with = "text::optional")]
    pub max_head_age: Option<Duration>,
    /// How often each endpoint is asked for its newest block.
    #[serde(with = "text")]
    pub head_poll: Duration,
}

/// Exceptions to the rules for outbound connections: keys of the top level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct OutboundNetworkConfig {
    /// Connections to the first host and port go to the second (curl's `--connect-to`).
    #[serde(with = "text::list")]
    pub connect_to: Vec<ConnectToRule>,
    /// Origins that untrusted URLs may use although they are not public.
    #[serde(rename = "allow-host", with = "text::list")]
    pub allow_hosts: Vec<HostPort>,
    /// PEM files with further trust roots.
    #[serde(rename = "ca")]
    pub ca_files: Vec<PathBuf>,
    /// PEM texts with further trust roots, in memory (those of the sandbox).
    #[serde(skip)]
    pub ca_pems: Vec<String>,
    /// Addresses that this process never connects to: its own listeners.
    #[serde(skip)]
    pub denied: Vec<SocketAddr>,
    /// When a second IPFS gateway is asked in parallel with the first.
    #[serde(rename = "hedge-after", with = "text")]
    pub hedging: HedgeDelay,
    /// Whether host names are resolved in DNS.
    #[serde(skip)]
    pub dns: DnsResolutionMode,
}

/// Whether host names are resolved in DNS. A host to which `connect_to` gives an address needs no DNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DnsResolutionMode {
    /// With the system's resolver.
    #[default]
    System,
    /// Never: a host without a `connect_to` rule has no address. For the sandbox, which runs all of its hosts itself.
    Off,
}

/// Which rules apply: keys of the top level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct VerdictRulesConfig {
    /// Identifier of the profile.
    #[serde(deserialize_with = "text::deserialize_profile")]
    pub profile: String,
    /// The depth of a resolution.
    pub depth: ResolutionDepth,
    /// Whether both sources of the card must answer.
    pub require_all_sources: bool,
    /// Whether the documents that link back to the card are read too: ENSIP-25 and ENSIP-26 records, and an ERC-8004
    /// registration file.
    pub links: bool,
    /// Further profiles, from files.
    pub profile_files: Vec<PathBuf>,
    /// Manifests that replace the built-in manifest with the same id: files or https URLs.
    #[serde(rename = "manifest")]
    pub manifests: Vec<SchemaManifestSource>,
    /// Owners whose commons cards are accepted (CL-58). If empty, all are accepted.
    #[serde(deserialize_with = "text::deserialize_owners")]
    pub allowed_publishers: Vec<String>,
}

/// Sizes of the caches, in entries and in bytes, and how they are kept warm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CacheConfig {
    /// Maximum number of trusted verdicts.
    pub trusted: u64,
    /// Maximum number of other verdicts, which have their own pool.
    pub untrusted: u64,
    /// Maximum bytes of each of the three pools: trusted verdicts, other verdicts, and failures.
    pub verdict_bytes: u64,
    /// Maximum bytes of content that was proven by its CID.
    pub content_bytes: u64,
    /// Maximum number of concurrent refreshes of trusted verdicts; 0 disables refreshing. Refreshes wait for the
    /// resolutions of clients until a verdict is about to expire. Each is cheap: a few are enough for a thousand names.
    pub refresh_runs: usize,
    /// The file that stores the most requested names across restarts of the daemon. An empty path means none.
    #[serde(with = "text::or_empty")]
    pub hot_names: Option<PathBuf>,
    /// How long a verdict stays confirmed after the endpoints last reported the head that confirmed it.
    #[serde(with = "text")]
    pub max_unconfirmed: Duration,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            trusted: 10_000,
            untrusted: 10_000,
            verdict_bytes: 128 * 1024 * 1024,
            content_bytes: 64 * 1024 * 1024,
            refresh_runs: 4,
            hot_names: None,
            max_unconfirmed: DEFAULT_MAX_UNCONFIRMED,
        }
    }
}

impl Default for Config {
    /// Ethereum mainnet at its finalized block, under the default profile, through public endpoints and gateways.
    fn default() -> Self {
        Self {
            chain: EnsChainConfig::default(),
            beacon: BeaconConfig::default(),
            gateways: PUBLIC_GATEWAYS.map(|url| url.parse().expect("a gateway of the table parses")).to_vec(),
            network: OutboundNetworkConfig::default(),
            rules: VerdictRulesConfig::default(),
            timeout: DEFAULT_TIMEOUT,
            cache: CacheConfig::default(),
            memory: ResolverMemoryConfig::default(),
            redis: RedisConfig::default(),
            admin: AdminConfig::default(),
            cors: CorsConfig::default(),
            explorer: ExplorerPageConfig::default(),
            http: HttpServerConfig::default(),
            gate: GateConfig::default(),
            sign: SignConfig::default(),
            orloj: OrlojCardGenerationConfig::default(),
            receipts: ReceiptReplayConfig::default(),
            mcp: McpConfig::default(),
            telemetry: TelemetryConfig::default(),
            limits: PaymentLimitsConfig::default(),
            check: SellerCheckConfig::default(),
            routes: AgentRouteUrls::default(),
            payees: KnownPayees::default(),
            chains: RegistryChainMap::default(),
        }
    }
}

impl Default for EnsChainConfig {
    fn default() -> Self {
        Self {
            world: "mainnet".to_owned(),
            id: MAINNET,
            genesis: None,
            proof: None,
            quorum: None,
            header: None,
            endpoints: PUBLIC_RPC.map(|url| url.parse().expect("an endpoint of the table parses")).to_vec(),
            universal_resolver: alloy_ens::UNIVERSAL_RESOLVER_ADDRESS,
            block: BlockSelector::Finalized,
            ccip_read: true,
            max_head_age: None,
            head_poll: DEFAULT_HEAD_POLL,
        }
    }
}

impl Config {
    /// The coin types whose addresses are read together with the records of a name.
    pub(crate) fn coin_types(&self) -> RequestedCoinTypes {
        RequestedCoinTypes::new(self.limits.coin_types()).unwrap_or_default()
    }
}

impl EnsChainConfig {
    /// The endpoints, each with a unique label. An [`RpcEndpointConfig::UNNAMED`] one becomes `rpc-N`, where N is its
    /// position.
    pub fn labelled_endpoints(&self) -> Vec<RpcEndpointConfig> {
        label_endpoints(&self.endpoints, RpcEndpointConfig::UNNAMED)
    }

    /// The demand that the endpoints must meet for an answer. By default, a single answer suffices if only one operator
    /// is configured, or if the first endpoint is the operator's own. Otherwise [`DEFAULT_QUORUM`] operators must
    /// agree.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if more operators must agree than are configured, if `header` and `proof` contradict
    /// each other, or if this build lacks a feature that the demand needs.
    pub fn proof_grade_demand(&self) -> Result<ProofGradeDemand, ConfigError> {
        derive_proof_demand_with_header(&self.endpoints, self.proof, self.quorum, self.header)
    }

    /// Who must vouch for a block header: as configured, else what `proof` needs.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if `header` and `proof` contradict each other.
    pub fn block_header_proof_mode(&self) -> Result<BlockHeaderProofMode, ConfigError> {
        derive_header_proof_mode(self.header, self.proof)
    }

    /// Maximum age of the newest block: as configured, else five slots of the chain. `None` if the chain's slot time is
    /// unknown: then any age is accepted.
    pub fn effective_max_head_age(&self) -> Option<Duration> {
        self.max_head_age.or_else(|| five_slot_duration(self.id))
    }
}

impl Default for VerdictRulesConfig {
    fn default() -> Self {
        Self {
            profile: DEFAULT_PROFILE.to_owned(),
            depth: ResolutionDepth::Identity,
            require_all_sources: false,
            links: false,
            profile_files: Vec::new(),
            manifests: Vec::new(),
            allowed_publishers: Vec::new(),
        }
    }
}

#[cfg(test)]
mod testing {
    use super::{Config, ConfigError, ConfigLayer};

    /// The defaults, overlaid with the text of a file.
    pub(super) fn parse_over_defaults(text: &str) -> Result<Config, ConfigError> {
        Config::default().with_layers([ConfigLayer::from_toml(text, "f.toml")?])
    }
}
