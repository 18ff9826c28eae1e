//! What can be typed.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use alloy_primitives::Address;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::expect::ExpectArgs;
use crate::config::{
    BlockSelector, ConnectTo, Endpoint, Gateway, OriginSpec, ProofDemand, parse_address, parse_duration, parse_issuer,
    parse_profile, parse_quorum,
};
use crate::discover::{SystemName, Target};
use crate::generate::BaseUrl;
use crate::ledger::{AgentId, Lambda};
use crate::signature::DidWeb;
use crate::system::CardSystem;
use crate::text;

const AFTER_HELP: &str = "\
Examples:
  clresolve --sandbox summarizeagent.eth     try it: an embedded world, no network
  clresolve summarizeagent.eth               may I call and pay this agent?
  clresolve a.eth b.eth -o short             a line each
  clresolve a.eth -o json | jq .reasons      everything, for programs
  clresolve trace a.eth                      each step with its evidence and time
  clresolve card a.eth > card.json           the card's bytes, if and only if proven
  clresolve lint card.json                   is this card fit to be published?
  clresolve discover https://agent.example   which cards does this host serve?
  clresolve plan agents/                     which CID, which records; would it pass?
  clresolve bundle export a.eth > b.json     the verdict with all its evidence
  clresolve signature verify card.json --ens a.eth
                                             who has signed this A2A card?
  clresolve generate --from orloj.yaml       agent cards of Orloj's resources
  clresolve serve                            a daemon for programs and proxies
  clresolve explain checksum-mismatch        what a reason code means, and who can fix it
  clresolve audit --names FILE --format html a report on many names
  clresolve a.eth --rpc http://127.0.0.1:8545 --gateway http://127.0.0.1:8080
                                             ask your own node and gateway

A bare argument is an ENS name. For a name that is spelt like a command write
`clresolve verify trace` or `clresolve -- trace`.

Exit codes:
    0  trusted               3  indeterminate: could not be decided
    1  untrusted             4  trusted, but not what an --expect-* names
    2  usage, configuration  70  a bug in clresolve      130  interrupted
  Of several names the worst counts, in the order 70, 2, 1, 3, 4, 0.

Configuration: defaults < --config FILE < environment < flags. The environment
has CLRESOLVE_CONFIG, _RPC, _GATEWAY, _BLOCK, _PROFILE, _DEPTH, _TIMEOUT,
_CHAIN_ID and _UNIVERSAL_RESOLVER; the file has a key for each world option.";

/// Is the binding of an ENS name, an Agent-Card and an x402:// entry real?
///
/// clresolve reads the name's cl.* records at one block of the chain, fetches the Agent-Card over HTTPS and IPFS, proves
/// its bytes against CID and checksum, and judges them by the published rules. The answer is trusted, untrusted or
/// indeterminate, with reasons; never a score.
#[derive(Debug, Parser)]
#[command(
    name = "clresolve",
    version,
    after_help = AFTER_HELP,
    override_usage = "clresolve [OPTIONS] NAME...\n       clresolve COMMAND ...",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub(super) struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    verify: VerifyArgs,
}

impl Cli {
    /// The command; names alone are to be verified.
    pub(super) fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Verify(self.verify))
    }
}

impl Command {
    /// How often `-v` was given.
    pub(super) const fn verbosity(&self) -> u8 {
        match self {
            Self::Verify(args) | Self::Trace(args) => args.world.verbose,
            Self::Card(args) => args.world.verbose,
            Self::Gate(args) => args.world.verbose,
            Self::Records(args) => args.world.verbose,
            Self::Cat(args) => args.world.verbose,
            Self::Audit(args) => args.world.verbose,
            Self::Bundle(args) => args.command.verbosity(),
            Self::Memory(MemoryArgs { command: MemoryCommand::Show(args) }) => args.world.verbose,
            Self::Memory(MemoryArgs { command: MemoryCommand::Forget(args) }) => args.world.verbose,
            Self::Lint(args) => args.world.verbose,
            Self::Discover(args) => args.world.verbose,
            Self::Convert(args) => args.world.verbose,
            Self::Project(args) => args.world.verbose,
            Self::Plan(args) => args.world.verbose,
            // A daemon logs runs and refusals; with -v each request.
            Self::Serve(args) => args.world.verbose.saturating_add(1),
            Self::Sandbox(args) => args.world.verbose,
            Self::Key(KeyArgs { command: KeyCommand::New(args) | KeyCommand::Public(args) }) => args.world.verbose,
            Self::Verdict(VerdictArgs { command: VerdictCommand::Verify(args) }) => args.world.verbose,
            Self::Sign(args) => args.world.verbose,
            Self::Signature(SignatureArgs { command: SignatureCommand::Verify(args) }) => args.world.verbose,
            Self::Explain(args) => args.world.verbose,
            Self::Name(args) => args.world.verbose,
            Self::Generate(args) => args.world.verbose,
            Self::Aevum(AevumArgs { command: AevumCommand::Metadata(args) }) => args.world.verbose,
            Self::Completions(args) => args.world.verbose,
        }
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Judge names; the same as naming them without a command
    Verify(VerifyArgs),
    /// Judge names and show each step with its evidence and time
    Trace(VerifyArgs),
    /// Show the cl.* text records as they stand on the chain, judged by nothing
    Records(RecordsArgs),
    /// Write the verified bytes of a name's card; nothing if it is not trusted
    Card(CardArgs),
    /// Decide whether a request to an agent may pass, as the daemon's gate does
    Gate(GateArgs),
    /// Explain a reason code, or list all of them
    Explain(ExplainArgs),
    /// Show normal form, namehash and DNS encoding of names, asking nobody
    Name(NameArgs),
    /// Judge cards of any system before they are published, with line and column of each finding
    Lint(LintArgs),
    /// Ask a host for its cards, of any system, and judge each
    Discover(DiscoverArgs),
    /// Write a trusted agent as an A2A card, for clients that know nothing of ENS
    Project(ProjectArgs),
    /// Write a card of one system as a card of another, and what could not be carried
    Convert(ConvertArgs),
    /// Foretell CID and records of a folder of cards, and how they would be judged
    Plan(PlanArgs),
    /// Write content of IPFS, each block proven; from gateways or from a CAR file
    Cat(CatArgs),
    /// Put a verdict with all its evidence into a file, or replay one without a network
    Bundle(BundleArgs),
    /// Judge a list of names and write a report
    Audit(AuditArgs),
    /// Show or forget what is remembered of names
    Memory(MemoryArgs),
    /// Answer over HTTP: verdicts for programs, and a gate for proxies
    Serve(ServeArgs),
    /// Run the embedded world, so that any client can be pointed at it
    Sandbox(SandboxArgs),
    /// Make a key to sign verdicts with, or show the public part of one
    Key(KeyArgs),
    /// Check a signed verdict, asking nobody
    Verdict(VerdictArgs),
    /// Sign an A2A card
    Sign(SignCardArgs),
    /// Check who has signed an A2A card
    Signature(SignatureArgs),
    /// Make agent cards from Orloj's AgentSystem resources
    Generate(GenerateArgs),
    /// Compute the ledger's part of Aevum's agent cards
    Aevum(AevumArgs),
    /// Write a completion script for a shell
    Completions(CompletionsArgs),
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// ENS names, such as summarizeagent.eth
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    #[command(flatten)]
    pub(super) output: VerdictOutputArgs,
    #[command(flatten)]
    pub(super) sign: SignArgs,
    #[command(flatten)]
    pub(super) expect: ExpectArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
pub(super) struct RecordsArgs {
    /// ENS names
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
pub(super) struct CardArgs {
    /// The ENS name
    pub(super) name: String,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) expect: ExpectArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Only what the gate would let pass is written: a trusted verdict, vouched for as the
key gate.min-proof demands, without a warning that gate.deny names.
The card is signed where a key is configured; never that of the sandbox.
Exit codes: 0 written, 1 refused, 2 usage, 3 could not be decided.")]
pub(super) struct ProjectArgs {
    /// The ENS name
    pub(super) name: String,
    /// The card system to write
    #[arg(long, value_name = "FLAVOUR", value_enum, default_value_t, ignore_case = true)]
    pub(super) to: Projection,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) sign: SignArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

/// What a verdict can be projected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Projection {
    /// The A2A project's card, 1.0
    #[default]
    A2a,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A verdict that is not trusted, one stranger's word, a warning that the key
gate.deny names, or a verb that the card does not implement is a denial.
Exit codes: 0 allow, 1 deny, 2 usage.")]
pub(super) struct GateArgs {
    /// The ENS name
    pub(super) name: String,
    /// The verb that is to be called
    pub(super) verb: Option<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The key memory.path names the file; one process at a time can use it. Only trusted
verdicts are remembered. --sandbox remembers nothing.")]
pub(super) struct MemoryArgs {
    #[command(subcommand)]
    pub(super) command: MemoryCommand,
}

/// What to do with the memory.
#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// Show what is remembered of names: versions, digests, blocks
    Show(ShowArgs),
    /// Forget names, so that what is seen next is taken as new
    Forget(ForgetArgs),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// ENS names
    #[arg(required = true, value_name = "NAME")]
    pub(super) names: Vec<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// ENS names
    #[arg(required_unless_present = "all", value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Forget every name, of every world
    #[arg(long, conflicts_with = "names")]
    pub(super) all: bool,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// Reason codes, such as checksum-mismatch; without one all are listed
    #[arg(value_name = "CODE")]
    pub(super) codes: Vec<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without NAMEs they are read from standard input, one per line. A name that is
none is a row with its error, and the exit code is then 1.")]
pub(super) struct NameArgs {
    /// Names; without one they are read from standard input
    #[arg(value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Each line of standard input is a JSON string, so that a name may hold anything
    #[arg(long, conflicts_with = "names")]
    pub(super) json_input: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Which card system a card belongs to is told by its shape; --as names it instead.
--fix sets what follows from other members (a slug), puts the members in the order
of the specification, and sets the time of the last change; nothing is guessed.
Exit codes: 0 valid, warnings or not; 1 not valid; 2 usage; 3 a URL gave nothing.
No name and no record is asked for: `clresolve plan` judges a card together with the records to set.")]
pub(super) struct LintArgs {
    /// Cards; an https URL is fetched as a name's card is, - is standard input
    #[arg(required = true, value_name = "FILE|URL|-")]
    pub(super) documents: Vec<PathBuf>,
    /// Judge as a card of this system, whatever the shape says
    #[arg(long = "as", value_name = "FLAVOUR", value_parser = flavour(), ignore_case = true)]
    pub(super) flavour: Option<CardSystem>,
    /// The card of the version before, for the rules on changes
    #[arg(long, value_name = "FILE")]
    pub(super) previous: Option<PathBuf>,
    /// Mend in the files what can be mended without guessing
    #[arg(long)]
    pub(super) fix: bool,
    #[command(flatten)]
    pub(super) output: LintOutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Asks /.well-known/agent-card.json, /.well-known/agent.json and the descriptor of a
registry; with --system, or the URL of a system, that system's own path too; for a
URL that ends in .json that document alone. Over https only, without credentials,
on public hosts only, and nothing that a card names is asked.
The answer is no verdict: a card that only a host serves is that host's word. With
--bind the name that a CommandLayer card states is asked for on ENS, and the answer
says whether a verdict proved these very bytes.
Exit codes: 0 a card, and none that breaks its rules; 1 one breaks them; 2 usage;
3 no card could be judged.")]
pub(super) struct DiscoverArgs {
    /// A host, its URL, or that of a document
    #[arg(value_name = "HOST|URL")]
    pub(super) target: Target,
    /// Look for cards of this system only, and judge by its rules
    #[arg(long = "as", value_name = "FLAVOUR", value_parser = flavour(), ignore_case = true)]
    pub(super) flavour: Option<CardSystem>,
    /// One of the host's own systems (Orloj); NAMESPACE/NAME outside the namespace default
    #[arg(long, value_name = "NAME")]
    pub(super) system: Option<SystemName>,
    /// Ask for the names that CommandLayer cards state, on the chain
    #[arg(long)]
    pub(super) bind: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The new card goes to standard output; what is lost, and what the target demands and the
old card does not say, goes to stderr (-o json has all of it in one object).
Nothing is made up. Exit codes: 0 the new card is valid, 1 it is not yet, 2 usage.")]
pub(super) struct ConvertArgs {
    /// The card; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(super) document: PathBuf,
    /// The card system to write
    #[arg(long, value_name = "FLAVOUR", value_parser = flavour(), ignore_case = true)]
    pub(super) to: CardSystem,
    /// The card system to read, where the shape does not tell
    #[arg(long, value_name = "FLAVOUR", value_parser = flavour(), ignore_case = true)]
    pub(super) from: Option<CardSystem>,
    #[command(flatten)]
    pub(super) output: ConvertOutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

/// Where the new card goes, and in which form.
#[derive(Debug, Args)]
pub(super) struct ConvertOutputArgs {
    /// Form of the result
    #[arg(short = 'o', long = "output", value_name = "FORM", value_enum, default_value_t)]
    pub(super) format: ConvertFormat,
    #[command(flatten)]
    pub(super) out: OutArgs,
}

/// Form of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ConvertFormat {
    /// The card alone
    #[default]
    Card,
    /// One object with the card, what is lost and what is missing
    Json,
}

/// The card systems by their stable names.
fn flavour() -> impl TypedValueParser<Value = CardSystem> {
    let slugs = PossibleValuesParser::new(CardSystem::ALL.iter().map(|flavour| flavour.slug()));
    slugs.try_map(|slug| slug.to_ascii_lowercase().parse::<CardSystem>())
}

/// Where findings go, and in which form.
#[derive(Debug, Args)]
pub(super) struct LintOutputArgs {
    /// Form of the findings
    #[arg(short = 'o', long = "output", value_name = "FORM", value_enum, default_value_t)]
    pub(super) format: LintFormat,
    #[command(flatten)]
    pub(super) out: OutArgs,
}

/// Form of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LintFormat {
    /// For people
    #[default]
    Text,
    /// A line each, for people and grep
    Short,
    /// One object, or an array for several
    Json,
    /// A JSON object per line
    Jsonl,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Nobody is asked, so a plan is no verdict. The CID is that of importers with CIDv1,
SHA-256 and raw leaves, such as `ipfs add -r --cid-version=1 DIR`.
Exit codes: 0 every card would be trusted, 1 one would not, 2 usage.")]
pub(super) struct PlanArgs {
    /// A folder to be published, or a single card
    #[arg(value_name = "DIR|FILE")]
    pub(super) target: PathBuf,
    /// Where the card will be served; with a slash at its end the card's path follows. Default: the card's $id
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    #[command(subcommand)]
    pub(super) command: BundleCommand,
}

/// What is done with a bundle.
#[derive(Debug, Subcommand)]
pub(super) enum BundleCommand {
    /// Judge a name anew and write the verdict with all that it rests on, whatever its state
    Export(ExportArgs),
    /// Judge the evidence in a bundle again; no network is touched
    Verify(ReplayArgs),
}

impl BundleCommand {
    const fn verbosity(&self) -> u8 {
        match self {
            Self::Export(args) => args.world.verbose,
            Self::Verify(args) => args.world.verbose,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 written, whatever the verdict; 1 no name, or nothing that could be
replayed; 2 usage.")]
pub(super) struct ExportArgs {
    /// The ENS name
    pub(super) name: String,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) sign: SignArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shown here: the header's hash, the card under its CID block by block, the checksum,
and that the verdict follows; of a bundle made with --proof state-proof also the
records, computed again under that header. All else is the word of whoever made the
bundle, and is listed. Who that is only a signature tells, and only with --jwks. It
must be about --name and, as for `verdict verify`, about the profile, depth and chain
of the configuration, vouched for as --proof demands; and it must not have expired,
unless --max-age says how old a bundle may be. A bundle about a numbered block is about
the past: --block must name it. Rules that --config adds from files are known. The
other world options change nothing without --jwks.

Exit codes: 0 trusted, 1 untrusted or the bundle is refused, 2 usage,
3 indeterminate, 4 an --expect-* unmet. A refusal is `class: message`.")]
pub(super) struct ReplayArgs {
    /// The bundle; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(super) document: PathBuf,
    /// Refuse a bundle about another name
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Refuse a bundle that was made longer ago, such as 10m; of one made since, the signature may have expired
    #[arg(long, value_name = "DUR", value_parser = parse_age)]
    pub(super) max_age: Option<Duration>,
    /// Refuse a bundle whose verdict none of these keys signed (a JSON Web Key Set)
    #[arg(long, value_name = "FILE", requires = "name")]
    pub(super) jwks: Option<PathBuf>,
    /// Who must have signed it; else whoever holds one of the keys
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer, requires = "jwks")]
    pub(super) issuer: Option<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) expect: ExpectArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 proven and written, 1 proven absent or invalid, 2 usage,
3 incomplete or unreachable. The error is `class: message`.")]
pub(super) struct CatArgs {
    /// A CID, and a path if the content lies in a directory: CID/path/to/file
    #[arg(value_name = "CID/PATH")]
    pub(super) target: String,
    /// Read the blocks from this CAR file; no gateway is asked
    #[arg(long, value_name = "FILE")]
    pub(super) car: Option<PathBuf>,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
  GET  /v1/verdicts/{name}?profile=&depth=   the verdict, 200 whatever its state
  POST /v1/verdicts {\"names\": [...]}         up to 100 verdicts, a line each
  any  /v1/gate/{name}[/{verb}]              200 lets pass, 403 does not
  any  /v1/envoy/{name}/{verb}/...           the same for Envoy's ext_authz
  GET  /v1/cards/{name}                      the card's bytes, if proven
  GET  /v1/agents/{name}/.well-known/agent-card.json
                                             a trusted agent as an A2A card
  POST /v1/lint?as=&profile=                 a card of any system, judged by itself
  GET  /.well-known/agent-card.json, /v1/agent-systems/{name}/.well-known/agent-card.json
                                             where [orloj] names resources
  GET  /v1/discover?url=&as=&system=&bind=   a host's cards, where http.discover is on
  GET  /v1/reasons, /v1/profiles, /livez, /readyz, /metrics
  GET  /.well-known/jwks.json                where a key to sign with is configured

SIGTERM and Ctrl-C drain: readyz says 503, the gate 403, then it ends.
With `Accept: application/jose` and a key, a verdict comes signed.
Limits are keys of the configuration file, under [http] and [gate].")]
pub(super) struct ServeArgs {
    /// Where to listen; port 0 takes a free one, which is printed [default: 127.0.0.1:8402]
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_listen)]
    pub(super) listen: Option<SocketAddr>,
    /// Read and check the configuration, say what is wrong with it, and end
    #[arg(long)]
    pub(super) check_config: bool,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The world has an EVM chain (eip155:31337) with ENS contracts, an HTTPS origin and
an IPFS gateway, all on loopback and in this process. Its CA is made anew each run.
A verdict from it says so: anchor.world is `sandbox`.

  clresolve sandbox --list                            which names, which verdicts
  clresolve sandbox --write-config sandbox.toml &     run it
  clresolve --config sandbox.toml summarizeagent.eth  ask it, from any client")]
pub(super) struct SandboxArgs {
    /// List the names of the world with the verdict that each should get
    #[arg(long, conflicts_with = "write_config")]
    pub(super) list: bool,
    /// Write a configuration file (and its trust root beside it) for use with --config
    #[arg(long, value_name = "FILE")]
    pub(super) write_config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The list has a name per line; blank lines and what follows a # are left out. A
line that is no name is a row of the report. The report counts states and reasons,
shows for each name which of text records, HTTPS, IPFS and manifest agree, gives
the text record to set where the CID proves its value, and drafts the rows of a
RESOLUTION.md. Schemas are fetched and proven too, unless flag, environment or
file names the depth identity.

  clresolve audit --names names.txt --format html --out audit.html
  clresolve sandbox --list -o json | jq -r '.[].name' |
    clresolve audit --sandbox --names - --depth identity

Ctrl-C ends the audit; the report then holds what was judged until then.
Exit codes are those of several names: the worst counts.")]
pub(super) struct AuditArgs {
    /// File with the names, one per line; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub(super) names: PathBuf,
    /// Form of the report
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(super) format: ReportFormat,
    /// Names judged at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) concurrency: u8,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

/// Form of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// Markdown, for people and repositories
    #[default]
    Md,
    /// JSON, for programs
    Json,
    /// A row per name, for spreadsheets
    Csv,
    /// One page that prints well
    Html,
}

#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    #[command(subcommand)]
    pub(super) command: KeyCommand,
}

/// What is done with a key.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make an Ed25519 key in a new file that only you can read, and print its public part
    New(KeyFileArgs),
    /// Print the public part of a key as a JSON Web Key Set
    Public(KeyFileArgs),
}

#[derive(Debug, Args)]
pub(super) struct KeyFileArgs {
    /// The file with the private key (PKCS#8, PEM)
    #[arg(value_name = "FILE")]
    pub(super) key: PathBuf,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
pub(super) struct VerdictArgs {
    #[command(subcommand)]
    pub(super) command: VerdictCommand,
}

/// What is done with a signed verdict.
#[derive(Debug, Subcommand)]
pub(super) enum VerdictCommand {
    /// Check signature, time, name, profile and chain of a signed verdict
    Verify(VerdictVerifyArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Profile, depth and, unless --chain names it, the chain and its world are those of
the configuration: agent-cards/1.0.0, identity, and mainnet by default. --proof names
the least grade; without it one stranger's word is refused, as the gate does.
Exit codes: those of the verdict (0 trusted, 1 untrusted, 3 indeterminate), 4 for
an --expect-* that is not met, 1 for a signed verdict that is refused, 2 usage.")]
pub(super) struct VerdictVerifyArgs {
    /// The signed verdict (a JWS); - is standard input
    #[arg(value_name = "FILE|-")]
    pub(super) jws: PathBuf,
    /// The keys of the issuer (a JSON Web Key Set), got from it over a way that you trust
    #[arg(long, value_name = "FILE")]
    pub(super) jwks: PathBuf,
    /// The ENS name that the verdict must be about
    #[arg(long, value_name = "NAME")]
    pub(super) name: String,
    /// The chain that it must be about; eip155:1 is mainnet
    #[arg(long, value_name = "eip155:N", value_parser = parse_chain)]
    pub(super) chain: Option<u64>,
    /// Who must have issued it; else whoever holds one of the keys
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer)]
    pub(super) issuer: Option<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) expect: ExpectArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The signature is added to those that are there; no other byte of the card changes.
Whoever is to check it needs the public part: `clresolve key public FILE`.

  clresolve sign card.json --key k.pem --out signed.json
  clresolve key public k.pem > jwks.json
  clresolve signature verify signed.json --jwks jwks.json")]
pub(super) struct SignCardArgs {
    /// The card; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(super) card: PathBuf,
    /// The file with the private key (PKCS#8, PEM): Ed25519, P-256 or RSA; `clresolve key new` makes one
    #[arg(long, value_name = "FILE")]
    pub(super) key: PathBuf,
    /// What the signature calls the key [default: its RFC 7638 thumbprint]
    #[arg(long, value_name = "ID", value_parser = parse_kid)]
    pub(super) kid: Option<String>,
    /// Where the public part is published, for the header; clresolve itself never looks there
    #[arg(long, value_name = "URL", value_parser = parse_jku)]
    pub(super) jku: Option<String>,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
pub(super) struct SignatureArgs {
    #[command(subcommand)]
    pub(super) command: SignatureCommand,
}

/// What is done with the signatures of a card.
#[derive(Debug, Subcommand)]
pub(super) enum SignatureCommand {
    /// Check the signatures of an A2A card by keys of the roots that you name
    Verify(SignatureVerifyArgs),
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("roots").required(true).multiple(true),
    after_help = "\
One signature that holds under a named root is enough; what is wrong with others is
then a warning. Where the card says that its keys are is never looked at.
Exit codes: 0 verified, 1 refused, 2 usage, 3 a root could not be asked."
)]
pub(super) struct SignatureVerifyArgs {
    /// The card; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(super) card: PathBuf,
    /// Trust the keys of this JSON Web Key Set; repeatable
    #[arg(long, value_name = "FILE|URL", group = "roots")]
    pub(super) jwks: Vec<String>,
    /// Trust the keys of this DID's document, such as did:web:example.com; repeatable
    #[arg(long, value_name = "DID", group = "roots")]
    pub(super) did: Vec<DidWeb>,
    /// Trust the key in this name's record cl.sig.pub; repeatable
    #[arg(long, value_name = "NAME", group = "roots")]
    pub(super) ens: Vec<String>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

/// Longest name of a key, in bytes.
const MAX_KID_BYTES: usize = 255;

/// What a signature may call its key.
fn parse_kid(text: &str) -> Result<String, String> {
    let good = (1..=MAX_KID_BYTES).contains(&text.len()) && !text.chars().any(text::is_unsafe);
    good.then(|| text.to_owned()).ok_or_else(|| format!("expected at most {MAX_KID_BYTES} plain characters"))
}

/// Where a key set is published.
fn parse_jku(text: &str) -> Result<String, String> {
    let good = url::Url::parse(text).is_ok_and(|url| url.scheme() == "https");
    good.then(|| text.to_owned()).ok_or_else(|| "expected an https URL".to_owned())
}

/// A chain in CAIP-2 form.
fn parse_chain(text: &str) -> Result<u64, String> {
    let id = text.strip_prefix("eip155:").and_then(|id| id.parse().ok());
    id.ok_or_else(|| "expected a chain such as eip155:1".to_owned())
}

/// What signs verdicts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Signing")]
pub(super) struct SignArgs {
    /// File with the private key; `clresolve key new` makes one
    #[arg(long, value_name = "FILE")]
    pub(super) sign_key: Option<PathBuf>,
    /// In whose name, such as https://clresolve.example
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer)]
    pub(super) sign_issuer: Option<String>,
}

/// Where verdicts go, and in which form.
#[derive(Debug, Args)]
pub(super) struct VerdictOutputArgs {
    /// Form of the verdicts
    #[arg(short = 'o', long = "output", value_name = "FORM", value_enum, default_value_t)]
    pub(super) format: VerdictFormat,
    #[command(flatten)]
    pub(super) out: OutArgs,
}

/// Form of verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum VerdictFormat {
    /// For people
    #[default]
    Text,
    /// A line each, for people and grep
    Short,
    /// One object, or an array for several
    Json,
    /// A JSON object per line
    Jsonl,
    /// A signed verdict per line, for those who know your key
    Jws,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Of each AgentSystem with spec.a2a.enabled: true, its Agents and their Tools the card
shows name, description, url, version, skills, capabilities, authentication and
provider; nothing else of a resource can reach it. A document without kind holds what
the server is configured to do, under the card's own names:

  a2a: {publicBaseURL: https://orloj.example, protocolVersion: \"0.2\"}
  capabilities: {streaming: true, pushNotifications: false, stateTransitionHistory: true}
  authentication: {schemes: [bearer]}
  provider: {organization: Orloj, url: https://orloj.example}

What is not told is left out, except: protocolVersion is then 1.0 (with the members
of A2A 1.0, unless no scheme can be told in them: apiKey and oauth2 cannot), schemes
[bearer], which spec.a2a.auth: public takes away.
Exit codes: 0 written, 2 usage, or resources that make no card.")]
pub(super) struct GenerateArgs {
    /// YAML with resources, several documents or not; - is standard input; repeatable
    #[arg(long, required = true, value_name = "FILE|-")]
    pub(super) from: Vec<PathBuf>,
    /// Where the server is reached; goes before what the resources say
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<BaseUrl>,
    /// The card of this AgentSystem alone; NAMESPACE/NAME outside the namespace default
    #[arg(long, value_name = "NAME")]
    pub(super) system: Option<String>,
    /// Form of the cards
    #[arg(short = 'o', long = "output", value_name = "FORM", value_enum, default_value_t)]
    pub(super) format: CardFormat,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

/// Form of cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum CardFormat {
    /// The card, or an array for several
    #[default]
    Json,
    /// A card per line
    Jsonl,
}

#[derive(Debug, Args)]
pub(super) struct AevumArgs {
    #[command(subcommand)]
    pub(super) command: AevumCommand,
}

/// What is done for Aevum's agent cards.
#[derive(Debug, Subcommand)]
pub(super) enum AevumCommand {
    /// Compute the members pacr:* of a card's metadata from a ledger
    Metadata(MetadataArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The ledger has a PACR record per line, in the JSON encoding that Aevum publishes: id,
predecessors, landauer_cost, resources, cognitive_split, payload. A record is about the
agent whose agent_id stands in its payload, and as old as the first 48 bits of its id
say. A record weighs exp(-lambda * age in seconds); records after --at are left out,
older ones only fade. latency and cost are the points of resources.time and .energy.

The graph has an edge from a record's agent to the agent of each direct predecessor,
once, without loops. pacr:influence_rank is PageRank (damping 0.85) on it,
pacr:critical_score betweenness (directed, normalised). pacr:reputation_score is not
computed: the specification gives no formula for it. The result states all of this.

Limits: 1000000 records of at most 512 KiB; 10000 agents; 100000000 agents times links.
Exit codes: 0 computed, 1 a ledger that is refused or has no record of --agent, 2 usage.")]
pub(super) struct MetadataArgs {
    /// The ledger (JSON Lines); - is standard input
    #[arg(long, value_name = "FILE|-")]
    pub(super) ledger: PathBuf,
    /// Show this agent alone; the figures are those of the whole ledger
    #[arg(long, value_name = "ID")]
    pub(super) agent: Option<AgentId>,
    /// How fast records fade, per second; 0 is never [default: 2.674e-7, halved in 30 days]
    #[arg(long, value_name = "NUMBER")]
    pub(super) lambda: Option<Lambda>,
    /// The moment that ages are counted from, such as 2026-11-21T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME")]
    pub(super) at: Option<Timestamp>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: clap_complete::Shell,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) world: WorldArgs,
}

/// An age, which unlike a time limit may be of years.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "expected address and port, such as 127.0.0.1:8402".to_owned())
}

fn parse_age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "expected a duration such as 10m or 30d".to_owned())
}

/// Where results go, and in which form.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Form of the results
    #[arg(short = 'o', long = "output", value_name = "FORM", value_enum, default_value_t)]
    pub(super) format: Format,
    #[command(flatten)]
    pub(super) out: OutArgs,
}

/// Where results go.
#[derive(Clone, Debug, Args)]
pub(super) struct OutArgs {
    /// Write results to FILE, not to standard output
    #[arg(long = "out", value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
}

/// Form of the results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Text,
    /// A line each, for people and grep
    Short,
    /// One object, or an array for several
    Json,
    /// A JSON object per line
    Jsonl,
}

/// Which world is asked, and by which rules.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "World")]
pub(super) struct WorldArgs {
    /// Answer from the embedded world: no network, nothing to install
    #[arg(long, conflicts_with_all = [
        "rpc", "gateway", "config", "universal_resolver", "chain_id", "connect_to", "ca", "allow_host",
    ])]
    pub(super) sandbox: bool,
    /// RPC endpoint; repeatable, in order of preference
    #[arg(long, value_name = "URL")]
    pub(super) rpc: Vec<Endpoint>,
    /// How far the chain's answer must be vouched for: single-rpc, quorum or state-proof
    #[arg(long, value_name = "GRADE")]
    pub(super) proof: Option<ProofDemand>,
    /// How many endpoints of different operators must agree; 2 where several are named
    #[arg(long, value_name = "K", value_parser = parse_quorum)]
    pub(super) quorum: Option<usize>,
    /// The Universal Resolver's address
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub(super) universal_resolver: Option<Address>,
    /// Chain id; 1 is Ethereum mainnet
    #[arg(long, value_name = "N")]
    pub(super) chain_id: Option<u64>,
    /// Block to read: finalized, safe, latest or a number
    #[arg(long, value_name = "TAG")]
    pub(super) block: Option<BlockSelector>,
    /// IPFS gateway; repeatable
    #[arg(long, value_name = "URL")]
    pub(super) gateway: Vec<Gateway>,
    /// Rules to judge by, such as agent-cards/1.0.0
    #[arg(long, value_name = "ID", value_parser = parse_profile)]
    pub(super) profile: Option<String>,
    /// How deep to look; schemas fetches and proves the bound schemas too
    #[arg(long, value_enum)]
    pub(super) depth: Option<DepthArg>,
    /// Read too what links back to the card (ENSIP-25, ENSIP-26, ERC-8004); for the evidence alone
    #[arg(long)]
    pub(super) links: bool,
    /// Time limit of one question, such as 15s
    #[arg(long, value_name = "DUR", value_parser = parse_duration)]
    pub(super) timeout: Option<Duration>,
    /// Connect to ADDR:PORT for HOST:PORT; the certificate is still checked for HOST
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    pub(super) connect_to: Vec<ConnectTo>,
    /// PEM file with one more trust root
    #[arg(long, value_name = "FILE")]
    pub(super) ca: Vec<PathBuf>,
    /// Permit this origin although it is not public
    #[arg(long, value_name = "HOST:PORT")]
    pub(super) allow_host: Vec<OriginSpec>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Log more; twice for still more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
}

/// How deep to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DepthArg {
    /// Name, records, card and schema locations
    Identity,
    /// The bytes of the bound schemas too
    Schemas,
}

/// Reads a command line, the program's own name first.
pub(super) fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(command_first(arguments))
}

/// What `error` says, without colour, without a character that acts on a terminal, and without what may be a secret.
pub(super) fn plain_message(mut error: clap::Error) -> String {
    let typed = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let argument = typed(ContextKind::InvalidArg);
    if ["--rpc", "--gateway", "<HOST|URL>", "<FILE|URL|->"].iter().any(|secret| argument.starts_with(secret)) {
        let value = typed(ContextKind::InvalidValue);
        let shown = if value.contains("://") { text::without_secrets(&value) } else { "…".to_owned() };
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    let mut message = String::new();
    for c in error.render().to_string().chars() {
        if c != '\n' && text::is_unsafe(c) {
            message.extend(c.escape_unicode());
        } else {
            message.push(c);
        }
    }
    message
}

/// The clap command, for completion scripts.
pub(super) fn command() -> clap::Command {
    Cli::command()
}

/// Moves a command that stands after flags to the front, and the command below it behind it, so that flags may come before
/// and after them.
///
/// Only the first argument that is no flag can be a command; after `--` none is.
fn command_first(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let cli = Cli::command();
    let (mut command, mut place) = (&cli, 1);
    while let Some(at) = first_positional(&cli, &arguments, place)
        && let Some(below) = arguments[at].to_str().and_then(|name| command.find_subcommand(name))
    {
        arguments[place..=at].rotate_right(1);
        (command, place) = (below, place + 1);
    }
    arguments
}

fn first_positional(command: &clap::Command, arguments: &[OsString], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(argument) = arguments.get(at) {
        match argument.to_str() {
            Some("--") => return None,
            Some(flag) if flag.starts_with('-') && flag.len() > 1 => at += 1 + usize::from(takes_next(command, flag)),
            _ => return Some(at),
        }
    }
    None
}

/// Whether the argument after `flag` is its value.
fn takes_next(command: &clap::Command, flag: &str) -> bool {
    let takes_value = |a: &clap::Arg| a.get_action().takes_values();
    if let Some(long) = flag.strip_prefix("--") {
        return !long.contains('=') && command.get_arguments().any(|a| a.get_long() == Some(long) && takes_value(a));
    }
    // Of a cluster such as -vo only the last letter can take the next argument; in -ojson the value is attached.
    let first = flag[1..]
        .char_indices()
        .find(|(_, c)| command.get_arguments().any(|a| a.get_short() == Some(*c) && takes_value(a)));
    first.is_some_and(|(i, c)| 1 + i + c.len_utf8() == flag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Command {
        parse(line.split(' ').map(OsString::from).collect()).unwrap_or_else(|e| panic!("{line}: {e}")).into_command()
    }

    fn names(line: &str) -> Vec<String> {
        match parsed(line) {
            Command::Verify(args) => args.names,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn a_bare_argument_is_a_name() {
        assert_eq!(names("clresolve a.eth"), ["a.eth"]);
        assert_eq!(names("clresolve --sandbox a.eth"), ["a.eth"]);
        assert_eq!(names("clresolve a.eth trace"), ["a.eth", "trace"]);
        assert_eq!(names("clresolve verify trace"), ["trace"]);
        assert_eq!(names("clresolve -- trace"), ["trace"]);
        assert_eq!(names("clresolve --block latest -- trace"), ["trace"]);
        assert_eq!(names("clresolve -o short trace.eth"), ["trace.eth"]);
    }

    #[test]
    fn flags_may_stand_before_the_command() {
        for line in [
            "clresolve trace a.eth --sandbox",
            "clresolve --sandbox trace a.eth",
            "clresolve --timeout 3s trace a.eth",
            "clresolve --timeout=3s trace a.eth",
            "clresolve -o json trace a.eth",
            "clresolve -ojson trace a.eth",
            "clresolve -vo json trace a.eth",
            "clresolve -v trace a.eth",
        ] {
            assert!(matches!(parsed(line), Command::Trace(a) if a.names == ["a.eth"]), "{line}");
        }
    }

    #[test]
    fn flags_may_stand_before_a_command_of_two_words() {
        for line in [
            "clresolve memory show a.eth --timeout 3s",
            "clresolve --timeout 3s memory show a.eth",
            "clresolve memory --timeout 3s show a.eth",
        ] {
            assert!(matches!(parsed(line), Command::Memory(_)), "{line}");
        }
        assert!(matches!(parsed("clresolve --sandbox bundle export a.eth"), Command::Bundle(_)));
    }

    #[test]
    fn the_value_of_a_flag_is_no_command() {
        assert_eq!(names("clresolve --expect-verb trace a.eth"), ["a.eth"]);
        assert_eq!(names("clresolve --profile card a.eth"), ["a.eth"]);
    }

    #[test]
    fn flags_that_would_leave_the_sandbox_are_refused() {
        for flag in ["--rpc http://a.example", "--gateway http://a.example", "--config f", "--ca f", "--chain-id 1"] {
            let line = format!("clresolve --sandbox {flag} a.eth");
            let error = parse(line.split(' ').map(OsString::from).collect()).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{line}");
        }
    }

    #[test]
    fn usage_errors_show_neither_keys_nor_control_characters() {
        for flag in
            ["--rpc ftp://rpc.example/SECRET", "--rpc rpc.example/SECRET", "--gateway https://u:SECRET@g.example"]
        {
            let line = format!("clresolve a.eth {flag}");
            let message = plain_message(parse(line.split(' ').map(OsString::from).collect()).unwrap_err());
            assert!(message.contains("expected") && !message.contains("SECRET"), "{message}");
        }
        let line = ["clresolve", "a.eth", "--expect-owner", "a\u{1b}[31m\u{7}\u{202e}b"].map(OsString::from);
        let message = plain_message(parse(line.to_vec()).unwrap_err());
        assert!(message.contains("\\u{202e}b'"), "{message}");
        assert!(!message.contains(|c| c != '\n' && text::is_unsafe(c)), "{message}");
    }

    #[test]
    fn an_unknown_proof_is_refused_with_those_that_are_known() {
        let proof = |grade: &str| parse(["clresolve", "--proof", grade, "a.eth"].map(OsString::from).to_vec());
        assert!(proof("state-proof").is_ok());
        let error = proof("word-of-honour").unwrap_err().to_string();
        assert!(error.contains("single-rpc, quorum or state-proof"), "{error}");
    }
}
