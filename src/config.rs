//! The configuration: which chain, gateways, rules and limits. Defaults < file < environment < flags, validated once,
//! then immutable.
//!
//! [`Config::default`] reads Ethereum mainnet through public endpoints. A [`Layer`] holds what one source says;
//! [`Config::with`] lays layers over a configuration.

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
mod chains;
mod cors;
mod demand;
mod endpoint;
mod error;
mod explorer;
mod file;
mod follow;
mod forms;
mod keys;
mod labels;
mod layer;
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
use chains::five_slots;
pub use chains::{ChainId, Chains, RegistryChain};
pub use clresolve_core::base_url::BaseUrl;
pub use cors::{ANY_ORIGIN, CorsConfig, CorsLayer};
pub use demand::DEFAULT_QUORUM;
#[cfg(not(feature = "state-proof"))]
pub(crate) use demand::NO_STATE_PROOF;
use demand::demanded;
pub use endpoint::Endpoint;
pub use error::ConfigError;
pub use explorer::{ExplorerConfig, ExplorerLayer};
#[cfg(feature = "cli")]
pub(crate) use file::MAX_FILE_BYTES;
pub use follow::{FollowConfig, FollowLayer};
use keys::{OrNone, table};
use labels::labelled;
pub use layer::Layer;
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
use value::FilePath;
pub use value::{ProofDemand, parse_address, parse_duration, parse_issuer, parse_profile, parse_quorum};

/// The profile in force unless another is chosen: the letter of the specification.
pub const DEFAULT_PROFILE: &str = "agent-cards/1.0.0";

/// Time limit of one question unless another is chosen.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

/// A validated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The chain and how to read it.
    pub chain: ChainConfig,
    /// IPFS gateways, asked in this order.
    pub gateways: Vec<Gateway>,
    /// What the doors to the network permit beyond their defaults.
    pub network: NetworkConfig,
    /// Which rules apply.
    pub rules: RulesConfig,
    /// Time limit of one question.
    pub timeout: Duration,
    /// Sizes of the caches.
    pub cache: CacheConfig,
    /// What is remembered of names.
    pub memory: MemoryConfig,
    /// The server through which many daemons share evidence.
    pub redis: RedisConfig,
    /// How the daemon follows the chain.
    pub follow: FollowConfig,
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
    /// What the daemon makes Orloj's agent cards of.
    pub orloj: OrlojConfig,
    /// What the daemon does with receipts.
    pub receipts: ReceiptsConfig,
    /// Whom the daemon's face for agents answers.
    pub mcp: McpConfig,
    /// Where the daemon sends its traces.
    pub telemetry: TelemetryConfig,
    /// What may be paid.
    pub limits: LimitsConfig,
    /// Where agents are called.
    pub routes: Routes,
    /// Accounts that the operator knows to be an agent's.
    pub payees: KnownPayees,
    /// Chains whose ERC-8004 registries say where agents are paid.
    pub chains: Chains,
}

/// The chain and how to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainConfig {
    /// `anchor.world` of the verdicts: `mainnet`, `sandbox`, or a name of the operator's.
    pub world: String,
    /// EIP-155 chain id.
    pub id: u64,
    /// Hash of block 0. Not needed: mainnet's is known, and that of another chain is learnt from the first quorum.
    pub genesis: Option<B256>,
    /// RPC endpoints, in order of preference.
    pub endpoints: Vec<Endpoint>,
    /// How far they must vouch for an answer. Nothing said: see [`ChainConfig::demand`].
    pub proof: Option<ProofDemand>,
    /// How many operators must agree, in a quorum. Nothing said: [`DEFAULT_QUORUM`].
    pub quorum: Option<usize>,
    /// The Universal Resolver.
    pub universal_resolver: Address,
    /// Which block to read.
    pub block: BlockSelector,
    /// Whether CCIP-Read gateways may be asked.
    pub ccip_read: bool,
    /// The age that the newest block may have. Nothing said: see [`ChainConfig::head_age`].
    pub max_head_age: Option<Duration>,
}

/// What the doors to the network permit beyond their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkConfig {
    /// Connections to the first host and port go to the second (curl's `--connect-to`).
    pub connect_to: Vec<ConnectTo>,
    /// Origins that the foreign door permits although they are not public.
    pub allow_hosts: Vec<OriginSpec>,
    /// PEM files with further trust roots.
    pub ca_files: Vec<PathBuf>,
    /// PEM texts with further trust roots, held in memory (the sandbox's).
    pub ca_pems: Vec<String>,
    /// Addresses that no door ever connects to: this process's own listeners.
    pub denied: Vec<SocketAddr>,
    /// When an IPFS gateway is asked beside another one.
    pub hedging: Hedging,
    /// Whether host names are looked up.
    pub dns: Dns,
}

/// Whether host names are looked up. Those to which `connect_to` gives an address need no look-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dns {
    /// In the system's resolver.
    #[default]
    System,
    /// Never: no other host name has an address. For the sandbox, which has all of its hosts itself.
    Off,
}

/// Which rules apply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RulesConfig {
    /// Identifier of the profile.
    pub profile: String,
    /// How deep the walk goes.
    pub depth: Depth,
    /// Whether both sources of the card must answer.
    pub require_all_sources: bool,
    /// Whether what links back to the card is read too: ENSIP-25 and ENSIP-26 records, an ERC-8004 registration file.
    pub links: bool,
    /// Further profiles, from files.
    pub profile_files: Vec<PathBuf>,
    /// Manifests that replace a built-in one of the same id: files or https URLs.
    pub manifests: Vec<ManifestSource>,
    /// Owners whose commons cards are accepted (CL-58); empty accepts all.
    pub allowed_publishers: Vec<String>,
}

table! {
    /// Sizes of the caches, in entries and in bytes, and what keeps them warm.
    #[derive(Clone, Debug, PartialEq, Eq)]
    config CacheConfig;
    /// `[cache]`, as one source names its keys.
    layer CacheLayer;

    /// Trusted verdicts kept.
    trusted: u64 = 10_000;
    /// Other verdicts kept, in a pool of their own.
    untrusted: u64 = 10_000;
    /// Bytes that trusted verdicts, other verdicts and failures may take: this number for each of the three.
    verdict_bytes: u64 = 128 * 1024 * 1024;
    /// Bytes of proven content kept.
    content_bytes: u64 = 64 * 1024 * 1024;
    /// Most runs at once that refresh trusted verdicts before they end; 0 refreshes none. They stand behind the runs of
    /// clients until a verdict is about to end, and each takes little: a few follow a thousand names.
    refresh_runs: usize = 4;
    /// The file that keeps the names that are asked for most from one run of the daemon to the next; an empty path means
    /// none.
    hot_names: Option<PathBuf> = None, [with = "OrNone::<FilePath>"];
}

impl Default for Config {
    /// Ethereum mainnet at its finalized block, judged by the letter, through public endpoints and gateways.
    fn default() -> Self {
        Self {
            chain: ChainConfig::default(),
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
            follow: FollowConfig::default(),
            http: HttpConfig::default(),
            gate: GateConfig::default(),
            sign: SignConfig::default(),
            orloj: OrlojConfig::default(),
            receipts: ReceiptsConfig::default(),
            mcp: McpConfig::default(),
            telemetry: TelemetryConfig::default(),
            limits: LimitsConfig::default(),
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
            endpoints: PUBLIC_RPC.map(|url| url.parse().expect("an endpoint of the table parses")).to_vec(),
            universal_resolver: alloy_ens::UNIVERSAL_RESOLVER_ADDRESS,
            block: BlockSelector::Finalized,
            ccip_read: true,
            max_head_age: None,
        }
    }
}

impl Config {
    /// The coin types for which addresses are read with the records of a name.
    pub(crate) fn coins(&self) -> Coins {
        Coins::new(self.limits.coins()).unwrap_or_default()
    }
}

impl ChainConfig {
    /// The endpoints, each under a label of its own: `rpc-N`, by its place, where it is [`Endpoint::UNNAMED`].
    pub(crate) fn labelled(&self) -> Vec<Endpoint> {
        labelled(&self.endpoints, Endpoint::UNNAMED)
    }

    /// What the endpoints must do for an answer. Where nothing is said: one word is enough when one operator alone is
    /// named, or when the first endpoint is the operator's own; else [`DEFAULT_QUORUM`] of them must agree.
    ///
    /// # Errors
    /// [`ConfigError::Conflict`] where more must agree than there are operators, or where this build lacks what the demand
    /// takes.
    pub fn demand(&self) -> Result<GradeDemand, ConfigError> {
        demanded(&self.endpoints, self.proof, self.quorum)
    }

    /// The age that the newest block may have: as configured, else five slots of the chain. `None`: any, since the slot
    /// time of the chain is not known.
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

    /// The defaults with what a file says.
    pub(super) fn read(text: &str) -> Result<Config, ConfigError> {
        Config::default().with([Layer::from_toml(text, "f.toml")?])
    }
}
