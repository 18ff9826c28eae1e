//! Commands that ask about names, hosts and content.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};
use clresolve_audit::difference::Kind;
use clresolve_cards::system::CardSystem;
use clresolve_core::name::EnsName;
use clresolve_discover::{SystemName, Target};
use clresolve_resolver::config::{BlockSelector, parse_issuer};
use clresolve_resolver::resolve::WantedNames;

use super::cards::card_system;
use super::output::{OutArgs, OutputArgs, ReportOutputArgs, VerdictFormat};
use super::signing::SignArgs;
use super::world::{AboutArgs, WorldArgs};
use crate::cli::expect::ExpectArgs;
use crate::cli::hint::parse_name;

#[derive(Debug, Args)]
pub(in crate::cli) struct VerifyArgs {
    /// ENS names, such as summarizeagent.eth; - reads them from standard input
    #[arg(required = true, value_name = "NAME", value_parser = parse_name)]
    pub(in crate::cli) names: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs<VerdictFormat>,
    #[command(flatten)]
    pub(in crate::cli) sign: SignArgs,
    #[command(flatten)]
    pub(in crate::cli) expect: ExpectArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve records summarizeagent.eth
  clresolve records a.eth b.eth --json")]
pub(in crate::cli) struct RecordsArgs {
    /// ENS names; - reads them from standard input
    #[arg(required = true, value_name = "NAME", value_parser = parse_name)]
    pub(in crate::cli) names: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve card summarizeagent.eth > card.json
  clresolve card a.eth --expect-owner publisher.eth --out card.json")]
pub(in crate::cli) struct CardArgs {
    /// The ENS name
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
    #[command(flatten)]
    pub(in crate::cli) expect: ExpectArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The gate denies a verdict that is not trusted, a proof by one endpoint that is
not your own, a warning that the key gate.deny names, a verb that the card
does not implement or names no entry for (the key gate.verbs), and a network
that it does not list.
Exit codes: 0 allow, 1 deny, 2 usage.

Examples:
  clresolve gate summarizeagent.eth summarize
  clresolve gate a.eth -o short || exit 1")]
pub(in crate::cli) struct GateArgs {
    /// The ENS name
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// The verb to be called
    pub(in crate::cli) verb: Option<String>,
    /// The network to be paid on (CAIP-2, such as eip155:1)
    #[arg(long, value_name = "NETWORK", value_parser = crate::cli::expect::network)]
    pub(in crate::cli) network: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 proven and written, 1 proven absent or invalid, 2 usage,
3 incomplete or unreachable. The error is `class: message`.

Examples:
  clresolve cat bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi
  clresolve cat CID/card.json --car folder.car   read the blocks from a CAR file")]
pub(in crate::cli) struct CatArgs {
    /// A CID, and a path if the content lies in a directory: CID/path/to/file
    #[arg(value_name = "CID/PATH")]
    pub(in crate::cli) target: String,
    /// Read the blocks from this CAR file and ask no gateway
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) car: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Asks /.well-known/agent-card.json, /.well-known/agent.json and the descriptor
of a registry; with --system, or the URL of a system, that system's own path
too; for a URL that ends in .json that document alone. Over https only,
without credentials, on public hosts only. No URL in a card is followed.
An http URL is for an origin that --allow-host names: nothing authenticates
such a host.
The answer is not a verdict: a card that only a host serves is that host's
word. With --bind the name that a CommandLayer card states is looked up on
ENS, and the answer says whether a verdict proved the same bytes.
Exit codes: 0 a card, and all cards follow their rules; 1 one breaks them;
2 usage; 3 no card could be judged.

Examples:
  clresolve discover https://agent.example
  clresolve discover agent.example --as a2a --json")]
pub(in crate::cli) struct DiscoverArgs {
    /// A host, its URL, or that of a document
    #[arg(value_name = "HOST|URL", value_parser = Target::parse_plain)]
    pub(in crate::cli) target: Target,
    /// Look for cards of this system only, and judge by its rules
    #[arg(long = "as", value_name = "SYSTEM", value_parser = card_system(), ignore_case = true)]
    pub(in crate::cli) card_system: Option<CardSystem>,
    /// One of the host's own systems (Orloj); NAMESPACE/NAME outside the namespace default
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) system: Option<SystemName>,
    /// Look up the names that CommandLayer cards state, on the chain
    #[arg(long)]
    pub(in crate::cli) bind: bool,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The list has a name per line; blank lines and what follows a # are left out. A
line that is not a name is a row of the report. --registry takes the names of
a registry's meta/manifest.json, or .well-known/agent.json, from https, ipfs
or a file; both may be given, and a name in both is judged once. The report
counts states and reasons, shows for each name which of text records, HTTPS,
IPFS and manifest agree, gives the text record to set where the CID proves its
value, and drafts the rows of a RESOLUTION.md. Schemas are fetched and proven
too, unless flag, environment or file names the depth identity.
Ctrl-C ends the audit; the report then holds the names judged until then.
Exit codes are those of several names: the worst counts. With --since, those
of audit diff count too: 1 for a change, 3 for an incomplete report without
one. Each [[waiver]] in the file of --waive accepts one finding. Its keys are
name, code, where, observed, reason and until, such as until = \"2026-12-31\".
The exit code ignores the finding until the end of that day; a finding with
another place or value counts. States do not change, and neither the gate nor
decisions read waivers.

Examples:
  clresolve audit --names names.txt --format html --out audit.html
  clresolve audit --names names.txt --format json --format html --out june
  clresolve audit \\
    --registry https://commandlayer.org/agent-cards/meta/manifest.json
  clresolve audit --names names.txt --since june.json \\
    --fail-on newly-broken,payee
  clresolve audit --names names.txt --block 23000000 \\
    --resume audit.journal --out audit.md
  clresolve audit --names names.txt --since june.json \\
    --history april.json may.json --format html --out audit.html
  clresolve sandbox --list -o json | jq -r '.[].name' |
    clresolve audit --sandbox --names - --depth identity")]
#[command(subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct AuditArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<AuditCommand>,
    /// File with the names, one per line; - reads standard input
    #[arg(long, value_name = "FILE", required_unless_present = "registry")]
    pub(in crate::cli) names: Option<PathBuf>,
    /// Manifest of a registry, or the descriptor that leads to it: the names that it lists, and where it and the chain differ
    #[arg(long, value_name = "URL|FILE")]
    pub(in crate::cli) registry: Option<String>,
    /// Look at the published schemas of the profile's layers too, as audit schemas does; no state depends on it
    #[arg(long)]
    pub(in crate::cli) schema_layers: bool,
    #[command(flatten)]
    pub(in crate::cli) earlier: EarlierReportsArgs,
    /// TOML file of findings to accept until a date: reports still list them, but the exit code ignores them
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) waive: Option<PathBuf>,
    /// Journal of what was judged: after a kill or a full disk the same command goes on from it; removed at the end
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) resume: Option<PathBuf>,
    /// Names that ask hosts and gateways at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(in crate::cli) concurrency: u8,
    #[command(flatten)]
    pub(in crate::cli) output: ReportOutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

/// The reports that an audit is held against.
#[derive(Debug, Args)]
pub(in crate::cli) struct EarlierReportsArgs {
    /// An earlier report in its JSON form: says what changed, and warns of cards that do not follow those in it
    #[arg(long, value_name = "REPORT", alias = "previous")]
    pub(in crate::cli) since: Option<PathBuf>,
    /// Earlier reports in their JSON form: their states stand in the report's picture of states over time
    #[arg(long, value_name = "REPORT", num_args = 1..)]
    pub(in crate::cli) history: Vec<PathBuf>,
    /// Kinds of change since that report that make the exit code 1 [default: all]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = change(), requires = "since")]
    pub(in crate::cli) fail_on: Vec<Kind>,
}

impl EarlierReportsArgs {
    /// The files, and the option that names each.
    pub(in crate::cli) fn files(&self) -> impl Iterator<Item = (&str, Option<&Path>)> {
        let history = self.history.iter().map(|report| ("--history", Some(&**report)));
        history.chain([("--since", self.since.as_deref())])
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every endpoint is asked for its logs, and their logs are put together: an
endpoint that hides a name hides nothing. The keys of the specification are
asked for first, then those of all text records. Where an endpoint does not
send the latter, the command says so, and the names of the former stand in the
list. Logs hold hashes of names. The name of a hash is looked up in the names
of --known, then in the NameWrapper. A hash without a known name stands in the
list as it is, and an audit has a row for it.
Names off the chain, and those that a wildcard resolver makes up, leave no
logs.
Exit codes: 0 every endpoint sent all its logs, 3 one of them did not, or none
answered how a name is spelt, 2 usage.

Examples:
  clresolve audit list --changed 23000000.. --known names.txt --out changed.txt
  clresolve audit list --below publisher.eth |
    clresolve audit --names - --format html --out audit.html")]
#[command(group = ArgGroup::new("wanted").args(["changed", "below"]).required(true).multiple(true))]
pub(in crate::cli) struct AuditListArgs {
    /// Names of which a text record that begins with cl. was set in these blocks; without TO up to the finalized one
    #[arg(long, value_name = "FROM..TO", value_parser = parse_blocks)]
    pub(in crate::cli) changed: Option<WantedNames>,
    /// All subnames of NAME that the registry has, on every level
    #[arg(long, value_name = "NAME", value_parser = parse_below)]
    pub(in crate::cli) below: Vec<WantedNames>,
    /// A list of names that hashes are compared with
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) known: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each schema is fetched from its canonical location and from every mirror,
proven by its CID where that is in IPFS, and held against the digest that the
manifest pins and against its $id. A digest that fits only after line ends
were changed is a finding of its own. Schemas without a pinned digest are not
known to be right.
Exit codes: 0 all agree, 1 one differs, 3 one could not be fetched or is not
pinned, 2 usage.

Examples:
  clresolve audit schemas
  clresolve audit schemas --profile agent-cards/1.0.0+released --json")]
pub(in crate::cli) struct AuditSchemasArgs {
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

/// Reads the blocks of [`AuditListArgs`].
fn parse_blocks(text: &str) -> Result<WantedNames, String> {
    let expected = || "expected FROM..TO, such as 23000000..23010000, or FROM..".to_owned();
    let (first, last) = text.split_once("..").ok_or_else(expected)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| expected());
    let (first, last) = (number(first)?, Some(last).filter(|last| !last.is_empty()).map(number).transpose()?);
    match last {
        Some(last) if last < first => Err("the last block is before the first".to_owned()),
        last => Ok(WantedNames::Changed { first, last }),
    }
}

/// Reads the name of [`AuditListArgs`].
fn parse_below(text: &str) -> Result<WantedNames, String> {
    EnsName::parse(text).map(WantedNames::Below).map_err(|error| error.to_string())
}

/// Reads the word for a change.
fn change() -> impl TypedValueParser<Value = Kind> {
    let words = PossibleValuesParser::new(Kind::ALL.map(Kind::as_str));
    words.try_map(|word| Kind::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or("no change has this word"))
}

/// What to do with reports.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AuditCommand {
    /// List names from the logs of the chain: those whose records of an agent changed, or those below a name
    List(Box<AuditListArgs>),
    /// Hold the published schemas of a profile's layers against its manifests; exit code 0: they agree, 1: no, 3: not known
    Schemas(Box<AuditSchemasArgs>),
    /// Say what changed from one report to a later one; exit code 0: nothing, 1: something, 3: not known
    Diff(AuditDiffArgs),
    /// Convert a JSON report to other formats, without a network
    Render(AuditRenderArgs),
    /// Hold a governance log against what audits saw; exit code 0: it agrees, 1: it does not, 3: not known
    Resolution(AuditResolutionArgs),
    /// Sign a report: a detached JWS over its JSON form
    Sign(AuditSignArgs),
    /// Check that a report is as it was written, and who signed it
    Verify(AuditVerifyArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Writes what `clresolve audit` would have written, waivers and changes included.
A truncated or modified report is refused.
Exit codes: 0 written, whatever the report says; 2 usage.

Examples:
  clresolve audit render july.json --format html --out july.html
  clresolve audit render july.json --format html --format sarif --out july")]
pub(in crate::cli) struct AuditRenderArgs {
    /// The JSON report
    #[arg(value_name = "REPORT")]
    pub(in crate::cli) report: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) output: ReportOutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A report that was cut or changed is not signed. Its reader needs the public
part of the key: `clresolve signature key public FILE`.

Examples:
  clresolve signature key new auditor.pem > jwks.json
  clresolve audit sign july.json --key auditor.pem --out july.json.jws
  clresolve audit verify july.json --signature july.json.jws --jwks jwks.json")]
pub(in crate::cli) struct AuditSignArgs {
    /// The report, in its JSON form
    #[arg(value_name = "REPORT")]
    pub(in crate::cli) report: PathBuf,
    /// The file with the private key; `clresolve signature key new` makes one
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) key: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --signature only the digest in the report is checked. It shows
accidents: anybody who can change a report can make a new digest.
Exit codes: 0 it holds, 1 it does not, 2 usage.

Examples:
  clresolve audit verify july.json
  clresolve audit verify july.json --signature july.json.jws --jwks jwks.json")]
pub(in crate::cli) struct AuditVerifyArgs {
    /// The report, in its JSON form
    #[arg(value_name = "REPORT")]
    pub(in crate::cli) report: PathBuf,
    /// Its signature (a detached JWS)
    #[arg(long, value_name = "FILE", requires = "jwks")]
    pub(in crate::cli) signature: Option<PathBuf>,
    /// The auditor's keys (a JSON Web Key Set), received over a way that you trust
    #[arg(long, value_name = "FILE", requires = "signature")]
    pub(in crate::cli) jwks: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The log is a table in Markdown, in the published form:
| Date | Agent Name(s) | Action | Reason | Resolution | Approver(s) |,
where a Reason begins with \"incident:\" or \"correction:\" if it is one; or
| date | subject | kind | decision | reason |, with the kinds decision,
incident, correction and change. The date is the day of the block that the
audit read. An untrusted name must have an incident as its last such row, and
one that is trusted again a correction. With --since each change since then
must have a row of a later day, and each row dated since then must match a
change. What is missing is drafted in the form of the log; a row that nobody
has approved, or whose decision begins with \"draft:\", counts as nothing.

Examples:
  clresolve audit resolution --log RESOLUTION.md july.json
  clresolve audit resolution --log RESOLUTION.md --since june.json july.json")]
pub(in crate::cli) struct AuditResolutionArgs {
    /// The latest report, in its JSON form
    #[arg(value_name = "REPORT")]
    pub(in crate::cli) report: PathBuf,
    /// The governance log
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) log: PathBuf,
    /// An earlier report in its JSON form
    #[arg(long, value_name = "REPORT")]
    pub(in crate::cli) since: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Differences in block, time or id alone do not count. Where a report is
incomplete and no counted change was found, the exit code is 3: what it lacks
may have changed.

Examples:
  clresolve audit diff june.json july.json
  clresolve audit diff june.json july.json --fail-on newly-broken,payee --json")]
pub(in crate::cli) struct AuditDiffArgs {
    /// The earlier report, in its JSON form
    #[arg(value_name = "EARLIER")]
    pub(in crate::cli) before: PathBuf,
    /// The later report
    #[arg(value_name = "LATER")]
    pub(in crate::cli) after: PathBuf,
    /// Kinds of change that make the exit code 1 [default: all]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = change())]
    pub(in crate::cli) fail_on: Vec<Kind>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The key memory.path names the file; one process at a time can use it. Only
trusted verdicts are remembered. --sandbox remembers nothing.

Examples:
  clresolve memory show summarizeagent.eth
  clresolve memory forget summarizeagent.eth")]
pub(in crate::cli) struct MemoryArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: MemoryCommand,
}

/// What to do with the memory.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum MemoryCommand {
    /// Show what is remembered of names: versions, digests, blocks
    Show(ShowArgs),
    /// Forget names, so that what is seen next counts as new
    Forget(ForgetArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve memory show summarizeagent.eth
  clresolve memory show a.eth b.eth --json")]
pub(in crate::cli) struct ShowArgs {
    /// ENS names
    #[arg(required = true, value_name = "NAME", value_parser = parse_name)]
    pub(in crate::cli) names: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve memory forget summarizeagent.eth
  clresolve memory forget --all")]
pub(in crate::cli) struct ForgetArgs {
    /// ENS names
    #[arg(required_unless_present = "all", value_name = "NAME", value_parser = parse_name)]
    pub(in crate::cli) names: Vec<String>,
    /// Forget every name, of every world
    #[arg(long, conflicts_with = "names")]
    pub(in crate::cli) all: bool,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve bundle export summarizeagent.eth --out summarize.bundle.json
  clresolve bundle verify summarize.bundle.json")]
pub(in crate::cli) struct BundleArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: BundleCommand,
}

/// What is done with a bundle.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum BundleCommand {
    /// Judge a name anew and write the verdict with all its evidence, whatever its state
    Export(ExportArgs),
    /// Judge the evidence in a bundle again, without a network
    Verify(ReplayArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 written, whatever the verdict; 1 the name is invalid, or nothing
could be replayed; 2 usage.

Examples:
  clresolve bundle export summarizeagent.eth --out summarize.bundle.json
  clresolve bundle export a.eth --proof state-proof > a.bundle.json")]
pub(in crate::cli) struct ExportArgs {
    /// The ENS name
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
    #[command(flatten)]
    pub(in crate::cli) sign: SignArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The replay proves the header's hash, the card under its CID block by block,
the checksum, and that the verdict follows; for a bundle made with --proof
state-proof also the records, computed again under that header. All else is
the exporter's word, and is listed. Only a signature says who the exporter is,
and only with --jwks: the verdict must then be about --name and, as for
`verdict verify`, about the profile, depth and chain of the configuration,
proven as --proof demands; and it must not have expired, unless --max-age says
how old a bundle may be. A bundle about a numbered block is about the past:
--block must name it. Profiles that --config adds are known. A purchase
(receipt verify --bundle) is judged with the name's bundle in it: its receipt,
and whether it was paid. Nobody signs a purchase, so --jwks refuses it;
--max-age holds for both times.
Exit codes: 0 trusted, 1 untrusted or the bundle is refused, 2 usage,
3 indeterminate, 4 an --expect-* unmet. A refusal is `class: message`.

Examples:
  clresolve bundle verify a.bundle.json --name a.eth
  clresolve bundle verify - --name a.eth --jwks keys.json \\
    --max-age 10m < a.bundle.json")]
pub(in crate::cli) struct ReplayArgs {
    /// The bundle; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) document: PathBuf,
    /// Refuse a bundle about another name
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(in crate::cli) name: Option<String>,
    /// Refuse an older bundle, such as 10m; the signature of a younger one may have expired
    #[arg(long, value_name = "DUR", value_parser = parse_age)]
    pub(in crate::cli) max_age: Option<Duration>,
    /// Refuse a bundle whose verdict none of these keys signed (a JSON Web Key Set)
    #[arg(long, value_name = "FILE", requires = "name")]
    pub(in crate::cli) jwks: Option<PathBuf>,
    /// Who must have signed it; otherwise any holder of one of the keys
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer, requires = "jwks")]
    pub(in crate::cli) issuer: Option<String>,
    /// The numbered block that the bundle may be about
    #[arg(long, value_name = "TAG")]
    pub(in crate::cli) block: Option<BlockSelector>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) expect: ExpectArgs,
    #[command(flatten)]
    pub(in crate::cli) about: AboutArgs,
}

/// An age, which unlike a time limit may be of years.
fn parse_age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "expected a duration such as 10m or 30d".to_owned())
}
