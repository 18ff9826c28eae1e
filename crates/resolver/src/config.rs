//! The configuration: chain, endpoints, gateways, rules and limits.
//!
//! A source (file, environment, flags) is a [`Layer`], and [`Config::with`] applies layers to a configuration, the
//! weakest first: defaults, then file, environment and flags. The result is validated once and never changes.
//! [`Config::default`] reads Ethereum mainnet through public endpoints.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::{Address, B256};
use clresolve_core::payment::Coins;
pub use clresolve_core::reading::{BlockSelector, Grade, GradeDemand};
use clresolve_core::world::{MAINNET_ID as MAINNET, RESERVED as RESERVED_WORLDS};
use clresolve_verdict::verdict::Depth;

pub use crate::fetch::ipfs::{Gateway, Hedging};
pub use crate::fetch::{ConnectTo, OriginSpec};

mod admin;
mod beacon;
mod chains;
mod check;
mod cors;
mod demand;
mod endpoint;
mod error;
mod explorer;
mod file;
mod forms;
mod keys;
mod labels;
mod layer;
mod light_client;
mod listen;
mod manifest_source;
mod mcp;
mod memory;
mod orloj;
mod paths;
mod payment;
mod public;
mod receipts;
mod redis;
mod serve;
mod sign;
mod telemetry;
mod value;

pub use admin::{AdminConfig, AdminLayer};
pub use beacon::{BeaconConfig, BeaconLayer, BeaconNetwork};
use chains::five_slots;
pub use chains::{ChainId, Chains, RegistryChain};
pub use check::{CheckConfig, CheckLayer};
pub use clresolve_core::base_url::BaseUrl;
pub use cors::{ANY_ORIGIN, CorsConfig, CorsLayer};
pub use demand::DEFAULT_QUORUM;
#[cfg(not(feature = "state-proof"))]
pub(crate) use demand::NO_STATE_PROOF;
use demand::{demanded_with_header, header_demand};
pub use endpoint::{BeaconEndpoint, Endpoint};
pub use error::ConfigError;
pub use explorer::{ExplorerConfig, ExplorerLayer};
#[doc(hidden)]
pub use file::MAX_FILE_BYTES;
use keys::{One, OrNone, table};
use labels::labelled;
pub use layer::{Layer, VARIABLES};
pub use light_client::ChainLayer;
#[cfg(feature = "state-proof")]
pub(crate) use light_client::LightClientSettings;
pub use listen::{ListenAt, SocketPath};
pub use manifest_source::ManifestSource;
pub use mcp::{McpConfig, McpLayer};
pub use memory::{MemoryConfig, MemoryLayer};
pub use orloj::{OrlojConfig, OrlojLayer};
pub use payment::{Account, AssetConfig, KnownPayees, LimitsConfig, LimitsLayer, Networks, Routes};
use public::{PUBLIC_GATEWAYS, PUBLIC_RPC};
pub use receipts::{ReceiptsConfig, ReceiptsLayer};
pub use redis::{RedisConfig, RedisLayer, RedisUrl};
pub use serve::{GateConfig, GateLayer, HttpConfig, HttpLayer, MAX_HEADERS};
pub use sign::{SignConfig, SignLayer};
pub use telemetry::{TelemetryConfig, TelemetryLayer};
use value::{FilePath, Time};
pub use value::{
    HeaderDemand, ProofDemand, parse_address, parse_chain_id, parse_duration, parse_issuer, parse_profile, parse_quorum,
};

/// The default profile: the specification taken literally.
pub const DEFAULT_PROFILE: &str = "agent-cards/1.0.0";

/// Time limit of one question.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

/// Default of [`ChainConfig::head_poll`]: six polls per slot of mainnet.
const DEFAULT_HEAD_POLL: Duration = Duration::from_secs(2);

/// Default of [`CacheConfig::max_unconfirmed`]: a slot of mainnet, plus time for a late block to spread.
const DEFAULT_MAX_UNCONFIRMED: Duration = Duration::from_secs(15);

/// A validated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The chain and how to read it.
    pub chain: ChainConfig,
    /// The light client that verifies block headers.
    pub beacon: BeaconConfig,
    /// IPFS gateways, asked in this order.
    pub gateways: Vec<Gateway>,
    /// Exceptions to the rules for outbound connections.
    pub network: NetworkConfig,
    /// Which rules apply.
    pub rules: RulesConfig,
    /// Time limit of one question.
    pub timeout: Duration,
    /// Sizes of the caches.
    pub cache: CacheConfig,
    /// What is remembered about names between runs.
    pub memory: MemoryConfig,
    /// The Redis server through which daemons share evidence.
    pub redis: RedisConfig,
    /// The daemon's listener and its limits.
    pub http: HttpConfig,
    /// Where the daemon's operator reaches it.
    pub admin: AdminConfig,
    /// Which web pages may read the daemon's answers.
    pub cors: CorsConfig,
    /// What the daemon does for its page.
    pub explorer: ExplorerConfig,
    /// The daemon's gate.
    pub gate: GateConfig,
    /// The key that verdicts are signed with.
    pub sign: SignConfig,
    /// The resources from which the daemon generates Orloj agent cards.
    pub orloj: OrlojConfig,
    /// How the daemon treats receipts.
    pub receipts: ReceiptsConfig,
    /// Who may use the daemon's MCP endpoint.
    pub mcp: McpConfig,
    /// Where the daemon sends its traces.
    pub telemetry: TelemetryConfig,
    /// The payment limits.
    pub limits: LimitsConfig,
    /// The evidence that a payment to a seller needs.
    pub check: CheckConfig,
    /// The URLs at which agents are called.
    pub routes: Routes,
    /// Accounts that the operator knows to belong to an agent.
    pub payees: KnownPayees,
    /// Chains whose ERC-8004 registries list the accounts of agents.
    pub chains: Chains,
}

/// The chain and how to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainConfig {
    /// `anchor.world` of the verdicts: `mainnet`, `sandbox`, or a name that the operator chose.
    pub world: String,
    /// EIP-155 chain id.
    pub id: u64,
    /// Hash of block 0. Optional: mainnet's is built in, and another chain's is learnt from the first quorum.
    pub genesis: Option<B256>,
    /// RPC endpoints, in order of preference.
    pub endpoints: Vec<Endpoint>,
    /// The grade of proof that the endpoints must provide. If unset, see [`ChainConfig::demand`].
    pub proof: Option<ProofDemand>,
    /// Number of operators that must agree in a quorum. If unset: [`DEFAULT_QUORUM`].
    pub quorum: Option<usize>,
    /// Who must vouch for a block header. If unset: the chain's validators if `proof` is `consensus-proof`, else RPC
    /// operators.
    pub header: Option<HeaderDemand>,
    /// The Universal Resolver.
    pub universal_resolver: Address,
    /// Which block to read.
    pub block: BlockSelector,
    /// Whether CCIP-Read gateways may be asked.
    pub ccip_read: bool,
    /// Maximum age of the newest block. If unset, see [`ChainConfig::head_age`].
    pub max_head_age: Option<Duration>,
    /// How often each endpoint is asked for its newest block.
    pub head_poll: Duration,
}

/// Exceptions to the rules for outbound connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkConfig {
    /// Connections to the first host and port go to the second (curl's `--connect-to`).
    pub connect_to: Vec<ConnectTo>,
    /// Origins that untrusted URLs may use although they are not public.
    pub allow_hosts: Vec<OriginSpec>,
    /// PEM files with further trust roots.
    pub ca_files: Vec<PathBuf>,
    /// PEM texts with further trust roots, in memory (those of the sandbox).
    pub ca_pems: Vec<String>,
    /// Addresses that this process never connects to: its own listeners.
    pub denied: Vec<SocketAddr>,
    /// When a second IPFS gateway is asked in parallel with the first.
    pub hedging: Hedging,
    /// Whether host names are resolved in DNS.
    pub dns: Dns,
}

/// Whether host names are resolved in DNS. A host to which `connect_to` gives an address needs no DNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dns {
    /// With the system's resolver.
    #[default]
    System,
    /// Never: a host without a `connect_to` rule has no address. For the sandbox, which runs all of its hosts itself.
    Off,
}

/// Which rules apply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RulesConfig {
    /// Identifier of the profile.
    pub profile: String,
    /// The depth of a resolution.
    pub depth: Depth,
    /// Whether both sources of the card must answer.
    pub require_all_sources: bool,
    /// Whether the documents that link back to the card are read too: ENSIP-25 and ENSIP-26 records, and an ERC-8004
    /// registration file.
    pub links: bool,
    /// Further profiles, from files.
    pub profile_files: Vec<PathBuf>,
    /// Manifests that replace the built-in manifest with the same id: files or https URLs.
    pub manifests: Vec<ManifestSource>,
    /// Owners whose commons cards are accepted (CL-58). If empty, all are accepted.
    pub allowed_publishers: Vec<String>,
}

table! {
    /// Sizes of the caches, in entries and in bytes, and how they are kept warm.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config CacheConfig;
    /// `[cache]`, as one source names its keys.
    layer CacheLayer;

    /// Maximum number of trusted verdicts.
    trusted: u64 = 10_000;
    /// Maximum number of other verdicts, which have their own pool.
    untrusted: u64 = 10_000;
    /// Maximum bytes of each of the three pools: trusted verdicts, other verdicts, and failures.
    verdict_bytes: u64 = 128 * 1024 * 1024;
    /// Maximum bytes of content that was proven by its CID.
    content_bytes: u64 = 64 * 1024 * 1024;
    /// Maximum number of concurrent refreshes of trusted verdicts; 0 disables refreshing. Refreshes wait for the
    /// resolutions of clients until a verdict is about to expire. Each is cheap: a few are enough for a thousand names.
    refresh_runs: usize = 4;
    /// The file that stores the most requested names across restarts of the daemon. An empty path means none.
    hot_names: Option<PathBuf> = None, [with = "OrNone::<FilePath>"];
    /// How long a verdict stays confirmed after the endpoints last reported the head that confirmed it.
    max_unconfirmed: Duration = DEFAULT_MAX_UNCONFIRMED, [with = "One::<Time>"];
}

impl Default for Config {
    /// Ethereum mainnet at its finalized block, under the default profile, through public endpoints and gateways.
    fn default() -> Self {
        Self {
            chain: ChainConfig::default(),
            beacon: BeaconConfig::default(),
            gateways: PUBLIC_GATEWAYS.map(|url| url.parse().expect("a gateway of the table parses")).to_vec(),
            network: NetworkConfig::default(),
            rules: RulesConfig::default(),
            timeout: DEFAULT_TIMEOUT,
            cache: CacheConfig::default(),
            memory: MemoryConfig::default(),
            redis: RedisConfig::default(),
            admin: AdminConfig::default(),
            cors: CorsConfig::default(),
            explorer: ExplorerConfig::default(),
            http: HttpConfig::default(),
            gate: GateConfig::default(),
            sign: SignConfig::default(),
            orloj: OrlojConfig::default(),
            receipts: ReceiptsConfig::default(),
            mcp: McpConfig::default(),
            telemetry: TelemetryConfig::default(),
            limits: LimitsConfig::default(),
            check: CheckConfig::default(),
            routes: Routes::default(),
            payees: KnownPayees::default(),
            chains: Chains::default(),
        }
    }
}

impl Default for ChainConfig {
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
    pub(crate) fn coins(&self) -> Coins {
        Coins::new(self.limits.coins()).unwrap_or_default()
    }
}

impl ChainConfig {
    /// The endpoints, each with a unique label. An [`Endpoint::UNNAMED`] one becomes `rpc-N`, where N is its position.
    pub fn labelled(&self) -> Vec<Endpoint> {
        labelled(&self.endpoints, Endpoint::UNNAMED)
    }

    /// The demand that the endpoints must meet for an answer. By default, a single answer suffices if only one operator
    /// is configured, or if the first endpoint is the operator's own. Otherwise [`DEFAULT_QUORUM`] operators must
    /// agree.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if more operators must agree than are configured, if `header` and `proof` contradict
    /// each other, or if this build lacks a feature that the demand needs.
    pub fn demand(&self) -> Result<GradeDemand, ConfigError> {
        demanded_with_header(&self.endpoints, self.proof, self.quorum, self.header)
    }

    /// Who must vouch for a block header: as configured, else what `proof` needs.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] if `header` and `proof` contradict each other.
    pub fn header_demand(&self) -> Result<HeaderDemand, ConfigError> {
        header_demand(self.header, self.proof)
    }

    /// Maximum age of the newest block: as configured, else five slots of the chain. `None` if the chain's slot time is
    /// unknown: then any age is accepted.
    pub fn head_age(&self) -> Option<Duration> {
        self.max_head_age.or_else(|| five_slots(self.id))
    }
}

impl Default for RulesConfig {
    fn default() -> Self {
        Self {
            profile: DEFAULT_PROFILE.to_owned(),
            depth: Depth::Identity,
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
    use super::{Config, ConfigError, Layer};

    /// The defaults, overlaid with the text of a file.
    pub(super) fn read(text: &str) -> Result<Config, ConfigError> {
        Config::default().with([Layer::from_toml(text, "f.toml")?])
    }
}
