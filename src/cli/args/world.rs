//! Arguments that select the network and the rules.

use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::Address;
use clap::{Args, ValueEnum};
use clresolve_resolver::config::{
    BlockSelector, ChainProofMode, ConnectToRule, HostPort, IpfsGateway, RpcEndpointConfig, parse_address,
    parse_chain_id, parse_duration, parse_quorum,
};
use clresolve_verdict::verdict::ResolutionDepth;

use super::suggest;

/// The heading of the network options. `help` recognizes them by it.
pub(super) const HEADING: &str = "Network options";

/// The network options: which network is queried, and which rules apply.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(in crate::cli) struct NetworkArguments {
    /// Use the embedded sandbox instead of a network
    #[arg(long, conflicts_with_all = [
        "rpc", "gateway", "config", "universal_resolver", "chain_id", "connect_to", "ca", "allow_host",
    ])]
    pub(in crate::cli) sandbox: bool,
    /// RPC endpoint; repeatable, in order of preference
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) rpc: Vec<RpcEndpointConfig>,
    /// Required proof of records: single-rpc, quorum, state-proof or consensus-proof
    #[arg(long, value_name = "GRADE", value_parser = suggest::proof_demand_parser(), hide_possible_values = true)]
    pub(in crate::cli) proof: Option<ChainProofMode>,
    /// Number of operators that must agree; 2 if several are configured
    #[arg(long, value_name = "K", value_parser = parse_quorum)]
    pub(in crate::cli) quorum: Option<usize>,
    /// The Universal Resolver's address
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(in crate::cli) universal_resolver: Option<Address>,
    /// Chain id; 1 is Ethereum mainnet
    #[arg(long, value_name = "N", value_parser = parse_chain_id)]
    pub(in crate::cli) chain_id: Option<u64>,
    /// Block to read: finalized, safe, latest or a number
    #[arg(long, value_name = "TAG")]
    pub(in crate::cli) block: Option<BlockSelector>,
    /// Maximum age of an endpoint's newest block, such as 60s
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub(in crate::cli) max_head_age: Option<Duration>,
    /// IPFS gateway; repeatable
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) gateway: Vec<IpfsGateway>,
    #[command(flatten)]
    pub(in crate::cli) rules: RulesArguments,
    /// Also read links back to the card (ENSIP-25, ENSIP-26, ERC-8004) as evidence
    #[arg(long)]
    pub(in crate::cli) links: bool,
    /// Time limit of one resolution, such as 15s
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub(in crate::cli) timeout: Option<Duration>,
    /// Connect to ADDR:PORT for HOST:PORT; the certificate must still be HOST's
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    pub(in crate::cli) connect_to: Vec<ConnectToRule>,
    /// PEM file with a further trust root
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) ca: Vec<PathBuf>,
    /// Permit this non-public origin
    #[arg(long, value_name = "HOST:PORT")]
    pub(in crate::cli) allow_host: Vec<HostPort>,
}

impl NetworkArguments {
    /// The flags that select the same network in another command, one word each. URLs are omitted, since they may
    /// contain keys.
    pub(in crate::cli) fn network_flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        flags.extend(self.sandbox.then(|| "--sandbox".to_owned()));
        flags.extend(self.rules.no_config.then(|| "--no-config".to_owned()));
        let mut valued = |flag: &str, value: Option<String>| {
            flags.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        };
        valued("--config", self.rules.config.as_ref().map(|file| file.display().to_string()));
        valued("--chain-id", self.chain_id.map(|id| id.to_string()));
        valued("--universal-resolver", self.universal_resolver.map(|address| address.to_string()));
        flags
    }
}

/// How deep to look: each depth with its name and its help.
const DEPTHS: &[(ResolutionDepth, &str, &str)] = &[
    (ResolutionDepth::Identity, "identity", "Name, records, card and schema locations"),
    (ResolutionDepth::Schemas, "schemas", "The bytes of the bound schemas too"),
];

/// By which rules a command judges, whether it asks a world or not. The heading is that of the options around them.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct RulesArguments {
    /// Profile of rules, such as agent-cards/1.0.0
    #[arg(long, value_name = "ID", value_parser = suggest::conformance_profile_parser(), hide_possible_values = true)]
    pub(in crate::cli) profile: Option<String>,
    /// Depth: identity, or schemas to check the bound schemas too
    #[arg(long, value_parser = suggest::named_value_parser(DEPTHS))]
    pub(in crate::cli) depth: Option<ResolutionDepth>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) config: Option<PathBuf>,
    /// Do not read a default configuration file
    #[arg(long)]
    pub(in crate::cli) no_config: bool,
}

/// The same, where the rules may be those of the embedded world.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Rules")]
pub(in crate::cli) struct OfflineRulesArguments {
    /// Use the rules of the sandbox
    #[arg(long, conflicts_with = "config")]
    pub(in crate::cli) sandbox: bool,
    #[command(flatten)]
    pub(in crate::cli) rules: RulesArguments,
}

impl From<&OfflineRulesArguments> for NetworkArguments {
    fn from(args: &OfflineRulesArguments) -> Self {
        Self { sandbox: args.sandbox, rules: args.rules.clone(), ..Self::default() }
    }
}

/// The rules for verifying a document without a network.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Rules")]
pub(in crate::cli) struct OfflineVerificationArguments {
    #[command(flatten)]
    pub(in crate::cli) rules: RulesArguments,
    /// Weakest accepted proof: single-rpc, quorum, state-proof or consensus-proof
    #[arg(long, value_name = "GRADE", value_parser = suggest::proof_demand_parser(), hide_possible_values = true)]
    pub(in crate::cli) proof: Option<ChainProofMode>,
    /// Chain id; 1 is Ethereum mainnet
    #[arg(long, value_name = "N", value_parser = parse_chain_id)]
    pub(in crate::cli) chain_id: Option<u64>,
}

impl From<&OfflineVerificationArguments> for NetworkArguments {
    fn from(about: &OfflineVerificationArguments) -> Self {
        Self { proof: about.proof, chain_id: about.chain_id, rules: about.rules.clone(), ..Self::default() }
    }
}

/// What every command takes.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(in crate::cli) struct GlobalArguments {
    /// Log more; twice for still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(in crate::cli) verbose: u8,
    /// Write only errors to standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(in crate::cli) quiet: bool,
    /// Colours: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t, hide_possible_values = true)]
    pub(in crate::cli) color: ColorMode,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ColorMode {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Even in a file or a pipe
    Always,
    /// Nowhere
    Never,
}
