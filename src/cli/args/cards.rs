//! Arguments of the commands that create, convert, check and publish cards.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use clresolve_cards::generate::PublicBaseUrl;
use clresolve_cards::ledger::{AevumAgentId, PacrDecayRate};
use clresolve_cards::system::CardSystem;
use clresolve_ipfs::build::IpfsImportProfile;
use jiff::Timestamp;

use super::output::{CardOutputFormat, ConversionOutputFormat, LintOutputFormat, OutputArguments, OutputFileArguments};
use super::signing::VerdictSigningArguments;
use super::world::{NetworkArguments, OfflineRulesArguments};
use crate::cli::hint::parse_name_argument;
use crate::plan::PayeeAccount;

/// What is made of cards.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  clresolve cards new mybot.eth --verb summarize --owner me.eth
  clresolve cards convert card.json --to a2a
  clresolve cards project summarizeagent.eth --to a2a")]
pub(in crate::cli) enum CardsCommand {
    /// Write a new Agent-Card for a name, to edit and publish
    New(NewCardArguments),
    /// Convert a card to another system, and report what is lost
    Convert(ConvertCardArguments),
    /// Generate agent cards from Orloj's AgentSystem resources
    Generate(GenerateCardsArguments),
    /// Write a trusted agent as an A2A card, for clients without ENS
    Project(Box<ProjectCardArguments>),
    /// Compute the ledger's part of Aevum cards
    #[command(subcommand)]
    Aevum(AevumCommand),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The card is valid. Edit at least display_name, description, networks and license
before you publish it. It binds the released schemas, or those of --sandbox. A
file that exists is never replaced.
Exit codes: 0 written, 2 usage.

Examples:
  clresolve cards new mybot.eth --verb summarize --owner me.eth
  clresolve cards new mybot.eth --verb summarize --owner me.eth \\
    --base-url https://mybot.example/cards --out card.json")]
pub(in crate::cli) struct NewCardArguments {
    /// The ENS name of the agent
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The agent's verb, such as summarize; an unknown verb lists all
    #[arg(long, value_name = "VERB")]
    pub(in crate::cli) verb: String,
    /// The ENS name of the publisher
    #[arg(long, value_name = "NAME", value_parser = parse_name_argument)]
    pub(in crate::cli) owner: String,
    /// Base URL of your published cards; the card's $id becomes URL/CLASS/NAME.json
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) base_url: Option<PublicBaseUrl>,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
    #[command(flatten)]
    pub(in crate::cli) offline: OfflineRulesArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The agent must pass the gate: trusted, proven as gate.min-proof demands, without
a warning in gate.deny. The card is signed if a key is configured, except in the
sandbox.
Exit codes: 0 written, 1 refused, 2 usage, 3 undecided.

Examples:
  clresolve cards project summarizeagent.eth --to a2a
  clresolve cards project a.eth --sign-key k.pem \\
    --sign-issuer https://clresolve.example")]
pub(in crate::cli) struct ProjectCardArguments {
    /// The ENS name
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The card system to write
    #[arg(long, value_name = "SYSTEM", value_enum, default_value_t, ignore_case = true)]
    pub(in crate::cli) to: ProjectionTarget,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
    #[command(flatten)]
    pub(in crate::cli) sign: VerdictSigningArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

/// What a verdict can be projected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ProjectionTarget {
    /// The A2A project's card, 1.0
    #[default]
    A2a,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The system is detected unless --as sets it. --fix derives members from others (a
slug), sorts members and sets the time of the last change. Names and records
are not looked up: `clresolve plan` checks a card with its records.
Exit codes: 0 valid, 1 not valid, 2 usage, 3 a URL returned nothing.

Examples:
  clresolve lint card.json
  clresolve lint cards/*.json -o sarif --out findings.sarif")]
pub(in crate::cli) struct LintArguments {
    /// Cards as files or https URLs; - is standard input
    #[arg(required = true, value_name = "FILE|URL|-")]
    pub(in crate::cli) documents: Vec<PathBuf>,
    /// Check as a card of this system
    #[arg(long = "as", value_name = "SYSTEM", value_parser = card_system_parser(), ignore_case = true)]
    pub(in crate::cli) card_system: Option<CardSystem>,
    /// The card's previous version, for the rules on changes
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) previous: Option<PathBuf>,
    /// Ledger of PACR records (JSON Lines) to compare an Aevum card with
    #[arg(long, value_name = "FILE|-")]
    pub(in crate::cli) ledger: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) weights: LedgerDecayArguments,
    /// Correct the files where there is only one correction
    #[arg(long)]
    pub(in crate::cli) fix: bool,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments<LintOutputFormat>,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Standard error lists what is lost and what the new card still needs (-o json has
all in one object).
Exit codes: 0 the new card is valid, 1 not yet, 2 usage.

Examples:
  clresolve cards convert card.json --to a2a
  clresolve cards convert - --from anypoint --to commandlayer --json < card.json")]
pub(in crate::cli) struct ConvertCardArguments {
    /// The card; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) document: PathBuf,
    /// The card system to write
    #[arg(long, value_name = "SYSTEM", value_parser = card_system_parser(), ignore_case = true)]
    pub(in crate::cli) to: CardSystem,
    /// The card system to read [default: detected]
    #[arg(long, value_name = "SYSTEM", value_parser = card_system_parser(), ignore_case = true)]
    pub(in crate::cli) from: Option<CardSystem>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments<ConversionOutputFormat>,
    #[command(flatten)]
    pub(in crate::cli) offline: OfflineRulesArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Works without a network, so a plan is not a verdict. The CID is that of the
importer profile of --import (IPIP-499): unixfs-v1-2025, such as
`ipfs add -r --cid-version=1 DIR`, or unixfs-v0-2015. Cards that would not be
trusted come first.

--calldata writes a line with NAME and call data for each card that would be
trusted. The name's holder sends the data to the name's resolver, which sets all
records at once (multicall(bytes[]), as in ENS's PublicResolver).
Exit codes: 0 every card would be trusted, 1 one would not, 2 usage.

Examples:
  clresolve plan agents/
  clresolve plan card.json --url https://agent.example/card.json --json")]
pub(in crate::cli) struct PublicationPlanArguments {
    /// A folder to publish, or a single card
    #[arg(value_name = "DIR|FILE")]
    pub(in crate::cli) target: PathBuf,
    /// URL of the card; after a slash at the end, the card's path is added [default: the card's $id]
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) url: Option<String>,
    /// Import profile for the CID
    #[arg(long, value_name = "PROFILE", default_value = IpfsImportProfile::UnixfsV1.as_str(), value_parser = import_profile_parser())]
    pub(in crate::cli) import: IpfsImportProfile,
    /// Payee account, such as eip155:8453:0x…, or eip155:0:0x… for all other EVM chains; repeatable
    #[arg(long, value_name = "ACCOUNT")]
    pub(in crate::cli) payee: Vec<PayeeAccount>,
    /// File for the call data that sets the records
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) calldata: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) offline: OfflineRulesArguments,
}

/// Parses the name of an import profile.
fn import_profile_parser() -> impl TypedValueParser<Value = IpfsImportProfile> {
    let words = PossibleValuesParser::new(IpfsImportProfile::ALL.map(IpfsImportProfile::as_str));
    let named = |word: String| IpfsImportProfile::ALL.into_iter().find(|profile| profile.as_str() == word);
    words.try_map(move |word| named(word).ok_or("no import profile has this name"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each AgentSystem with spec.a2a.enabled: true gets a card with name, description,
url, version, skills, capabilities, authentication and provider of the system,
its Agents and their Tools, and nothing else. A document without kind sets the
server's settings under the card's names:

  a2a: {publicBaseURL: https://orloj.example, protocolVersion: \"0.2\"}
  capabilities:
    {streaming: true, pushNotifications: false, stateTransitionHistory: true}
  authentication: {schemes: [bearer]}
  provider: {organization: Orloj, url: https://orloj.example}

schemes is [bearer] by default, and empty with spec.a2a.auth: public. With
protocolVersion 1.0 the card also gets the members of A2A 1.0, unless they
cannot express a scheme (apiKey, oauth2).
Exit codes: 0 written, 2 usage, or no card in the resources.

Examples:
  clresolve cards generate --from orloj.yaml --base-url https://orloj.example
  kubectl get agentsystems,agents,tools -o yaml |
    clresolve cards generate --from - -o jsonl")]
pub(in crate::cli) struct GenerateCardsArguments {
    /// YAML with resources; - is standard input; repeatable
    #[arg(long, required = true, value_name = "FILE|-")]
    pub(in crate::cli) from: Vec<PathBuf>,
    /// URL of the server; overrides the resources
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) base_url: Option<PublicBaseUrl>,
    /// Only this AgentSystem; NAMESPACE/NAME outside of namespace default
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) system: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments<CardOutputFormat>,
}

/// What is done for Aevum's agent cards.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  clresolve cards aevum metadata --ledger ledger.jsonl
  clresolve cards aevum metadata --ledger ledger.jsonl --into card.json")]
pub(in crate::cli) enum AevumCommand {
    /// Compute the members pacr:* of a card's metadata from a ledger
    Metadata(AevumMetadataArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The ledger has one PACR record per line in Aevum's JSON encoding: id,
predecessors, landauer_cost, resources, cognitive_split, payload. A record
belongs to the agent_id in its payload; the first 48 bits of its id are its
time. It weighs exp(-lambda * age in seconds); records after --at are ignored.
latency and cost are the points of resources.time and .energy.

The graph has one edge from a record's agent to the agent of each direct
predecessor, without loops. pacr:influence_rank is its PageRank (damping 0.85),
pacr:critical_score its betweenness (directed, normalised).
pacr:reputation_score is not computed: the specification gives no formula for
it.

Limits: 1000000 records of at most 512 KiB; 10000 agents; 100000000 agents
times links.
Exit codes: 0 computed, 1 invalid ledger or unknown agent, 2 usage.

Examples:
  clresolve cards aevum metadata --ledger ledger.jsonl
  clresolve cards aevum metadata --ledger ledger.jsonl --into card.json
  clresolve cards aevum metadata --ledger - --at 2026-11-21T00:00:00Z \\
    --json < ledger.jsonl")]
pub(in crate::cli) struct AevumMetadataArguments {
    /// The ledger (JSON Lines); - is standard input
    #[arg(long, value_name = "FILE|-")]
    pub(in crate::cli) ledger: PathBuf,
    /// Show only this agent
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) agent: Option<AevumAgentId>,
    /// Write the figures of this card's agent into the card
    #[arg(long, value_name = "CARD", conflicts_with = "agent")]
    pub(in crate::cli) into: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) weights: LedgerDecayArguments,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

/// How the records of a ledger weigh.
#[derive(Clone, Copy, Debug, Args)]
pub(in crate::cli) struct LedgerDecayArguments {
    /// Decay of a ledger's records per second [default: 2.674e-7, half in 30 days]
    #[arg(long, value_name = "NUMBER", requires = "ledger")]
    pub(in crate::cli) lambda: Option<PacrDecayRate>,
    /// Time from which ages count, such as 2026-11-21T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", requires = "ledger")]
    pub(in crate::cli) at: Option<Timestamp>,
}

/// Parses the stable name of a card system.
pub(super) fn card_system_parser() -> impl TypedValueParser<Value = CardSystem> {
    let slugs = PossibleValuesParser::new(CardSystem::ALL.iter().map(|system| system.slug()));
    slugs.try_map(|slug| slug.to_ascii_lowercase().parse::<CardSystem>())
}
