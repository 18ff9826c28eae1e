//! Commands about cards: before they are published, from one system to another, and how they are made.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use clresolve_cards::generate::BaseUrl;
use clresolve_cards::ledger::{AgentId, Lambda};
use clresolve_cards::system::CardSystem;
use clresolve_ipfs::build::ImportProfile;
use jiff::Timestamp;

use super::output::{CardFormat, ConvertFormat, LintFormat, OutArgs, OutputArgs};
use super::signing::SignArgs;
use super::world::{OfflineArgs, WorldArgs};
use crate::cli::hint::parse_name;
use crate::plan::Payee;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve cards new mybot.eth --verb summarize --owner me.eth
  clresolve cards convert card.json --to a2a
  clresolve cards project summarizeagent.eth --to a2a")]
pub(in crate::cli) struct CardsArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: CardsCommand,
}

/// What is made of cards.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum CardsCommand {
    /// Write a new Agent-Card for a name, to edit and publish
    New(NewCardArgs),
    /// Write a card of one system as a card of another, and what could not be carried over
    Convert(ConvertArgs),
    /// Make agent cards from Orloj's AgentSystem resources
    Generate(GenerateArgs),
    /// Write a trusted agent as an A2A card, for clients without ENS
    Project(Box<ProjectArgs>),
    /// Compute the ledger's part of Aevum's agent cards
    Aevum(AevumArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The card is complete, and `clresolve lint` finds nothing in it. Edit at least
display_name, description, networks and license before you publish it. The
card binds the released schemas, or with --sandbox those of the sandbox.
Exit codes: 0 written, 2 usage.

Examples:
  clresolve cards new mybot.eth --verb summarize --owner me.eth
  clresolve cards new mybot.eth --verb summarize --owner me.eth \\
    --base-url https://mybot.example/cards --out card.json")]
pub(in crate::cli) struct NewCardArgs {
    /// The ENS name of the agent
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// The verb that the agent implements, such as summarize; the error for an unknown verb lists all verbs
    #[arg(long, value_name = "VERB")]
    pub(in crate::cli) verb: String,
    /// The ENS name of the publisher
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(in crate::cli) owner: String,
    /// Base URL of your published cards; the card's $id becomes URL/CLASS/NAME.json
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) base_url: Option<BaseUrl>,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
    #[command(flatten)]
    pub(in crate::cli) offline: OfflineArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Only an agent that the gate would let pass is written: a trusted verdict,
proven as the key gate.min-proof demands, without a warning that gate.deny
names. The card is signed where a key is configured; a card of the sandbox
never is.
Exit codes: 0 written, 1 refused, 2 usage, 3 could not be decided.

Examples:
  clresolve cards project summarizeagent.eth --to a2a
  clresolve cards project a.eth --sign-key k.pem \\
    --sign-issuer https://clresolve.example")]
pub(in crate::cli) struct ProjectArgs {
    /// The ENS name
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// The card system to write
    #[arg(long, value_name = "SYSTEM", value_enum, default_value_t, ignore_case = true)]
    pub(in crate::cli) to: Projection,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
    #[command(flatten)]
    pub(in crate::cli) sign: SignArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

/// What a verdict can be projected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Projection {
    /// The A2A project's card, 1.0
    #[default]
    A2a,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The shape of a card tells its system; --as names it instead. --fix sets what
follows from other members (a slug), puts the members in the order of the
specification, and sets the time of the last change; nothing is guessed. No
name and no record is looked up: `clresolve plan` judges a card together with
the records to set.
Exit codes: 0 valid, warnings or not; 1 not valid; 2 usage; 3 a URL gave
nothing.

Examples:
  clresolve lint card.json
  clresolve lint cards/*.json -o sarif --out findings.sarif")]
pub(in crate::cli) struct LintArgs {
    /// Cards; an https URL is fetched as a name's card is, - is standard input
    #[arg(required = true, value_name = "FILE|URL|-")]
    pub(in crate::cli) documents: Vec<PathBuf>,
    /// Judge as a card of this system, whatever its shape
    #[arg(long = "as", value_name = "SYSTEM", value_parser = card_system(), ignore_case = true)]
    pub(in crate::cli) card_system: Option<CardSystem>,
    /// The card of the version before, for the rules on changes
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) previous: Option<PathBuf>,
    /// A ledger of PACR records (JSON Lines), to compare an Aevum card's figures with
    #[arg(long, value_name = "FILE|-")]
    pub(in crate::cli) ledger: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) weights: WeightArgs,
    /// Correct in the files what can be corrected without guessing
    #[arg(long)]
    pub(in crate::cli) fix: bool,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs<LintFormat>,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The new card goes to standard output. What is lost, and what the target
demands and the old card does not state, goes to standard error (-o json has
all in one object). Nothing is made up.
Exit codes: 0 the new card is valid, 1 it is not yet, 2 usage.

Examples:
  clresolve cards convert card.json --to a2a
  clresolve cards convert - --from anypoint --to commandlayer --json < card.json")]
pub(in crate::cli) struct ConvertArgs {
    /// The card; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) document: PathBuf,
    /// The card system to write
    #[arg(long, value_name = "SYSTEM", value_parser = card_system(), ignore_case = true)]
    pub(in crate::cli) to: CardSystem,
    /// The card system to read, where the shape does not tell
    #[arg(long, value_name = "SYSTEM", value_parser = card_system(), ignore_case = true)]
    pub(in crate::cli) from: Option<CardSystem>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs<ConvertFormat>,
    #[command(flatten)]
    pub(in crate::cli) offline: OfflineArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
No network is used, so a plan is not a verdict. The CID, and every record and
call that names it, is that of importers of the profile of --import
(IPIP-499): unixfs-v1-2025 with CIDv1 and raw leaves, such as
`ipfs add -r --cid-version=1 DIR`, or unixfs-v0-2015. At --depth schemas the
schemas are taken to be served as the manifests pin them. Cards that would not
be trusted come first.

--calldata writes one line for each card that would be trusted: NAME and call
data. The name's holder sends the data to the name's resolver, which sets all
records at once: multicall(bytes[]), as in ENS's PublicResolver.
Exit codes: 0 every card would be trusted, 1 one would not, 2 usage.

Examples:
  clresolve plan agents/
  clresolve plan card.json --url https://agent.example/card.json --json")]
pub(in crate::cli) struct PlanArgs {
    /// A folder to be published, or a single card
    #[arg(value_name = "DIR|FILE")]
    pub(in crate::cli) target: PathBuf,
    /// Where the card will be served; the card's path follows a slash at the end [default: the card's $id]
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) url: Option<String>,
    /// How your importer makes the CID
    #[arg(long, value_name = "PROFILE", default_value = ImportProfile::UnixfsV1.as_str(), value_parser = import_profile())]
    pub(in crate::cli) import: ImportProfile,
    /// Account that is paid, such as eip155:8453:0x…; repeatable; eip155:0:0x… is for every other EVM chain
    #[arg(long, value_name = "ACCOUNT")]
    pub(in crate::cli) payee: Vec<Payee>,
    /// File for the call data that sets the records, with a line for each card that would be trusted
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) calldata: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) offline: OfflineArgs,
}

/// Reads the name of an import profile.
fn import_profile() -> impl TypedValueParser<Value = ImportProfile> {
    let words = PossibleValuesParser::new(ImportProfile::ALL.map(ImportProfile::as_str));
    let named = |word: String| ImportProfile::ALL.into_iter().find(|profile| profile.as_str() == word);
    words.try_map(move |word| named(word).ok_or("no import profile has this name"))
}

#[derive(Debug, Args)]
#[command(after_help = "\
Of each AgentSystem with spec.a2a.enabled: true, its Agents and their Tools
the card shows name, description, url, version, skills, capabilities,
authentication and provider; nothing else of a resource can reach it. A
document without kind holds what the server is configured to do, under the
card's own names:

  a2a: {publicBaseURL: https://orloj.example, protocolVersion: \"0.2\"}
  capabilities:
    {streaming: true, pushNotifications: false, stateTransitionHistory: true}
  authentication: {schemes: [bearer]}
  provider: {organization: Orloj, url: https://orloj.example}

What is not stated is left out, except schemes: it is [bearer], which
spec.a2a.auth: public takes away. With protocolVersion 1.0 the card also gets
the members of A2A 1.0, unless they cannot express a scheme (apiKey, oauth2).
Exit codes: 0 written, 2 usage, or resources that make no card.

Examples:
  clresolve cards generate --from orloj.yaml --base-url https://orloj.example
  kubectl get agentsystems,agents,tools -o yaml |
    clresolve cards generate --from - -o jsonl")]
pub(in crate::cli) struct GenerateArgs {
    /// YAML with resources in one document or several; - is standard input; repeatable
    #[arg(long, required = true, value_name = "FILE|-")]
    pub(in crate::cli) from: Vec<PathBuf>,
    /// Where the server is reached; overrides the resources
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) base_url: Option<BaseUrl>,
    /// The card of this AgentSystem alone; NAMESPACE/NAME outside the namespace default
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) system: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs<CardFormat>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve cards aevum metadata --ledger ledger.jsonl
  clresolve cards aevum metadata --ledger ledger.jsonl --into card.json")]
pub(in crate::cli) struct AevumArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: AevumCommand,
}

/// What is done for Aevum's agent cards.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AevumCommand {
    /// Compute the members pacr:* of a card's metadata from a ledger
    Metadata(MetadataArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The ledger has a PACR record per line, in the JSON encoding that Aevum
publishes: id, predecessors, landauer_cost, resources, cognitive_split,
payload. A record is about the agent whose agent_id stands in its payload; the
first 48 bits of its id are its time. A record weighs exp(-lambda * age in
seconds); records after --at are left out, older ones only fade. latency and
cost are the points of resources.time and .energy.

The graph has an edge from a record's agent to the agent of each direct
predecessor, once, without loops. pacr:influence_rank is PageRank (damping
0.85) on it, pacr:critical_score betweenness (directed, normalised).
pacr:reputation_score is not computed: the specification gives no formula for
it. The result states all of this.

Limits: 1000000 records of at most 512 KiB; 10000 agents; 100000000 agents
times links.
Exit codes: 0 computed, 1 a ledger that is refused or has no record of the
agent, 2 usage.

Examples:
  clresolve cards aevum metadata --ledger ledger.jsonl
  clresolve cards aevum metadata --ledger ledger.jsonl --into card.json
  clresolve cards aevum metadata --ledger - --at 2026-11-21T00:00:00Z \\
    --json < ledger.jsonl")]
pub(in crate::cli) struct MetadataArgs {
    /// The ledger (JSON Lines); - is standard input
    #[arg(long, value_name = "FILE|-")]
    pub(in crate::cli) ledger: PathBuf,
    /// Show this agent alone; the figures are those of the whole ledger
    #[arg(long, value_name = "ID")]
    pub(in crate::cli) agent: Option<AgentId>,
    /// Write the figures of this card's agent into the card, and show them
    #[arg(long, value_name = "CARD", conflicts_with = "agent")]
    pub(in crate::cli) into: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) weights: WeightArgs,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
}

/// How the records of a ledger weigh.
#[derive(Clone, Copy, Debug, Args)]
pub(in crate::cli) struct WeightArgs {
    /// How fast a ledger's records fade, per second; 0 is never [default: 2.674e-7, halved in 30 days]
    #[arg(long, value_name = "NUMBER", requires = "ledger")]
    pub(in crate::cli) lambda: Option<Lambda>,
    /// The moment from which a ledger's ages count, such as 2026-11-21T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", requires = "ledger")]
    pub(in crate::cli) at: Option<Timestamp>,
}

/// The card systems by their stable names.
pub(super) fn card_system() -> impl TypedValueParser<Value = CardSystem> {
    let slugs = PossibleValuesParser::new(CardSystem::ALL.iter().map(|system| system.slug()));
    slugs.try_map(|slug| slug.to_ascii_lowercase().parse::<CardSystem>())
}
