//! Arguments of the commands about names, hosts and content.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alloy_primitives::B256;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};
use clresolve_audit::difference::AuditChangeKind;
use clresolve_cards::system::CardSystem;
use clresolve_core::name::EnsName;
use clresolve_discover::{DiscoveryTarget, HostedAgentSystemName};
use clresolve_payment::check::WebOrigin;
use clresolve_resolver::config::{BlockSelector, parse_issuer};
use clresolve_resolver::resolve::NameSearchScope;

use super::cards::card_system_parser;
use super::output::{AuditReportOutputArguments, OutputArguments, OutputFileArguments, VerdictOutputFormat};
use super::signing::VerdictSigningArguments;
use super::world::{NetworkArguments, OfflineVerificationArguments};
use crate::cli::expect::ExpectationArguments;
use crate::cli::hint::parse_name_argument;

#[derive(Debug, Args)]
pub(in crate::cli) struct VerifyArguments {
    /// ENS names, such as summarizeagent.eth; - reads them from standard input
    #[arg(required = true, value_name = "NAME", value_parser = parse_name_argument)]
    pub(in crate::cli) names: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments<VerdictOutputFormat>,
    #[command(flatten)]
    pub(in crate::cli) sign: VerdictSigningArguments,
    #[command(flatten)]
    pub(in crate::cli) expect: ExpectationArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve records summarizeagent.eth
  clresolve records a.eth b.eth --json")]
pub(in crate::cli) struct RecordsArguments {
    /// ENS names; - reads them from standard input
    #[arg(required = true, value_name = "NAME", value_parser = parse_name_argument)]
    pub(in crate::cli) names: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve card summarizeagent.eth > card.json
  clresolve card a.eth --expect-owner publisher.eth --out card.json")]
pub(in crate::cli) struct CardArguments {
    /// The ENS name
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
    #[command(flatten)]
    pub(in crate::cli) expect: ExpectationArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The gate denies untrusted and undecided agents, records from a single foreign
endpoint, warnings in gate.deny, verbs that the card does not implement or has
no entry for (gate.verbs), and networks that it does not list.
Exit codes: 0 allow, 1 deny, 2 usage.

Examples:
  clresolve gate summarizeagent.eth summarize
  clresolve gate a.eth -o short || exit 1")]
pub(in crate::cli) struct GateArguments {
    /// The ENS name
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The verb to call
    pub(in crate::cli) verb: Option<String>,
    /// The network to pay on (CAIP-2, such as eip155:1)
    #[arg(long, value_name = "NETWORK", value_parser = crate::cli::expect::parse_caip2_network)]
    pub(in crate::cli) network: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 proven and written, 1 proven absent or invalid, 2 usage,
3 incomplete or unreachable. The error is `class: message`.

Examples:
  clresolve cat bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi
  clresolve cat CID/card.json --car folder.car   read the blocks from a CAR file")]
pub(in crate::cli) struct CatArguments {
    /// A CID, and the path below it if it is a directory: CID/path/to/file
    #[arg(value_name = "CID/PATH")]
    pub(in crate::cli) target: String,
    /// Read the blocks from this CAR file, without a network
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) car: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Fetches /.well-known/agent-card.json, /.well-known/agent.json and a registry's
descriptor; with --system also that system's path; for a URL that ends in
.json only that document. Only public https hosts are contacted, or origins
that --allow-host permits, without credentials; URLs in cards are not followed.
The result is not a verdict: only the host vouches for the cards. --bind
resolves the ENS name in a CommandLayer card and compares the bytes.
Exit codes: 0 all cards are valid, 1 one is not, 2 usage, 3 no card found.

Examples:
  clresolve discover https://agent.example
  clresolve discover agent.example --as a2a --json")]
pub(in crate::cli) struct DiscoverArguments {
    /// A host, its URL, or the URL of a document
    #[arg(value_name = "HOST|URL", value_parser = DiscoveryTarget::parse_allowing_http)]
    pub(in crate::cli) target: DiscoveryTarget,
    /// Look only for cards of this system
    #[arg(long = "as", value_name = "SYSTEM", value_parser = card_system_parser(), ignore_case = true)]
    pub(in crate::cli) card_system: Option<CardSystem>,
    /// A system of an Orloj host; NAMESPACE/NAME outside of namespace default
    #[arg(long, value_name = "NAME")]
    pub(in crate::cli) system: Option<HostedAgentSystemName>,
    /// Resolve the ENS names in CommandLayer cards
    #[arg(long)]
    pub(in crate::cli) bind: bool,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The list has one name per line; blank lines and comments after # are ignored,
and invalid names become rows of the report. --registry adds the names of a
registry's meta/manifest.json or .well-known/agent.json (https, ipfs or a
file). Schemas are fetched too, unless the depth identity is set.
Ctrl-C ends the audit; the report has the names judged so far.
Exit codes are those of `verify`, the worst of all names. With --since, those
of audit diff count too: 1 for a change, 3 for an incomplete report without
one. Each [[waiver]] in the file of --waive accepts one finding. Its keys are
name, code, where, observed, reason and until, such as until = \"2026-12-31\".
The exit code ignores the finding until the end of that day, unless its place
or value changes. No state, gate or decision depends on it.

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
pub(in crate::cli) struct AuditArguments {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<AuditCommand>,
    /// File with the names, one per line; - reads standard input
    #[arg(long, value_name = "FILE", required_unless_present = "registry")]
    pub(in crate::cli) names: Option<PathBuf>,
    /// Add the names of a registry's manifest or descriptor, and compare it with the chain
    #[arg(long, value_name = "URL|FILE")]
    pub(in crate::cli) registry: Option<String>,
    /// Check the published schemas of the profile too, as audit schemas does; states do not depend on it
    #[arg(long)]
    pub(in crate::cli) schema_layers: bool,
    #[command(flatten)]
    pub(in crate::cli) earlier: EarlierAuditReportsArguments,
    /// TOML file of findings that the exit code ignores until a date
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) waive: Option<PathBuf>,
    /// Journal to continue from after a kill or a full disk; removed at the end
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) resume: Option<PathBuf>,
    /// Names that are resolved at the same time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(in crate::cli) concurrency: u8,
    #[command(flatten)]
    pub(in crate::cli) output: AuditReportOutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

/// The reports that an audit is held against.
#[derive(Debug, Args)]
pub(in crate::cli) struct EarlierAuditReportsArguments {
    /// Earlier JSON report: report what changed, and warn of cards that are no proper successors
    #[arg(long, value_name = "REPORT", alias = "previous")]
    pub(in crate::cli) since: Option<PathBuf>,
    /// Earlier JSON reports, for the chart of states over time
    #[arg(long, value_name = "REPORT", num_args = 1..)]
    pub(in crate::cli) history: Vec<PathBuf>,
    /// Changes since that report that set exit code 1 [default: all]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = audit_change_kind_parser(), requires = "since")]
    pub(in crate::cli) fail_on: Vec<AuditChangeKind>,
}

impl EarlierAuditReportsArguments {
    /// The files, each with its option.
    pub(in crate::cli) fn report_files(&self) -> impl Iterator<Item = (&str, Option<&Path>)> {
        let history = self.history.iter().map(|report| ("--history", Some(&**report)));
        history.chain([("--since", self.since.as_deref())])
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
The logs of all endpoints are combined, so no single endpoint can hide a name.
Logs contain hashes of names, which are looked up in --known and then in the
NameWrapper; a hash without a known name is listed as it is. Off-chain and
wildcard names leave no logs.
Exit codes: 0 all endpoints sent all logs, 2 usage, 3 one did not, or no
endpoint could look up a name.

Examples:
  clresolve audit list --changed 23000000.. --known names.txt --out changed.txt
  clresolve audit list --below publisher.eth |
    clresolve audit --names - --format html --out audit.html")]
#[command(group = ArgGroup::new("wanted").args(["changed", "below"]).required(true).multiple(true))]
pub(in crate::cli) struct AuditListArguments {
    /// Names with a cl.* text record set in these blocks; without TO up to the finalized block
    #[arg(long, value_name = "FROM..TO", value_parser = parse_changed_block_range)]
    pub(in crate::cli) changed: Option<NameSearchScope>,
    /// All registered subnames of NAME, on every level
    #[arg(long, value_name = "NAME", value_parser = parse_parent_name)]
    pub(in crate::cli) below: Vec<NameSearchScope>,
    /// Names to compare hashes with, one per line
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) known: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Fetches each schema from its canonical location and every mirror, and compares
its CID, its digest and its $id with the manifest.
Exit codes: 0 all agree, 1 one differs, 2 usage, 3 one could not be fetched or
is not pinned.

Examples:
  clresolve audit schemas
  clresolve audit schemas --profile agent-cards/1.0.0+released --json")]
pub(in crate::cli) struct AuditSchemasArguments {
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

/// Parses the blocks of [`AuditListArguments`].
fn parse_changed_block_range(text: &str) -> Result<NameSearchScope, String> {
    let expected = || "expected FROM..TO, such as 23000000..23010000, or FROM..".to_owned();
    let (first, last) = text.split_once("..").ok_or_else(expected)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| expected());
    let (first, last) = (number(first)?, Some(last).filter(|last| !last.is_empty()).map(number).transpose()?);
    match last {
        Some(last) if last < first => Err("the last block is before the first".to_owned()),
        last => Ok(NameSearchScope::Changed { first, last }),
    }
}

/// Parses the name of [`AuditListArguments`].
fn parse_parent_name(text: &str) -> Result<NameSearchScope, String> {
    EnsName::parse(text).map(NameSearchScope::Below).map_err(|error| error.to_string())
}

/// Parses a kind of change.
fn audit_change_kind_parser() -> impl TypedValueParser<Value = AuditChangeKind> {
    let words = PossibleValuesParser::new(AuditChangeKind::ALL.map(AuditChangeKind::as_str));
    words.try_map(|word| {
        AuditChangeKind::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or("no change has this word")
    })
}

/// What to do with reports.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum AuditCommand {
    /// List names from the chain's logs: with changed agent records, or below a name
    List(Box<AuditListArguments>),
    /// Compare the published schemas of a profile with its manifests
    Schemas(Box<AuditSchemasArguments>),
    /// Compare two reports; exit code 0: no change, 1: changes, 3: unknown
    Diff(AuditDiffArguments),
    /// Convert a JSON report to other formats, without a network
    Render(AuditRenderArguments),
    /// Compare a governance log with audits; exit code 0: they agree, 1: no, 3: unknown
    Resolution(AuditResolutionArguments),
    /// Sign a report: a detached JWS over its JSON form
    Sign(AuditSignArguments),
    /// Check that a report is unmodified, and who signed it
    Verify(AuditVerifyArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Writes what `clresolve audit` would have written, waivers and changes included.
A truncated or modified report is refused.
Exit codes: 0 written, whatever the report says; 2 usage.

Examples:
  clresolve audit render july.json --format html --out july.html
  clresolve audit render july.json --format html --format sarif --out july")]
pub(in crate::cli) struct AuditRenderArguments {
    /// The JSON report
    #[arg(value_name = "REPORT")]
    pub(in crate::cli) report: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) output: AuditReportOutputArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A truncated or modified report is refused. Readers need the public key:
`clresolve signature key public FILE`.

Examples:
  clresolve signature key new auditor.pem > jwks.json
  clresolve audit sign july.json --key auditor.pem --out july.json.jws
  clresolve audit verify july.json --signature july.json.jws --jwks jwks.json")]
pub(in crate::cli) struct AuditSignArguments {
    /// The JSON report
    #[arg(value_name = "REPORT")]
    pub(in crate::cli) report: PathBuf,
    /// File with the private key; `clresolve signature key new` makes one
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) key: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --signature only the report's own digest is checked, which detects
accidents, not forgery.
Exit codes: 0 valid, 1 not valid, 2 usage.

Examples:
  clresolve audit verify july.json
  clresolve audit verify july.json --signature july.json.jws --jwks jwks.json")]
pub(in crate::cli) struct AuditVerifyArguments {
    /// The JSON report
    #[arg(value_name = "REPORT")]
    pub(in crate::cli) report: PathBuf,
    /// Its signature (a detached JWS)
    #[arg(long, value_name = "FILE", requires = "jwks")]
    pub(in crate::cli) signature: Option<PathBuf>,
    /// The auditor's keys (a JSON Web Key Set), from a source that you trust
    #[arg(long, value_name = "FILE", requires = "signature")]
    pub(in crate::cli) jwks: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The log is a Markdown table:
| Date | Agent Name(s) | Action | Reason | Resolution | Approver(s) |,
with reasons that begin with \"incident:\" or \"correction:\"; or
| date | subject | kind | decision | reason |, with the kinds decision,
incident, correction and change. The date is the day of the audited block. The
last such row of an untrusted name must be an incident, and of a name that is
trusted again a correction. With --since, each change needs a row and each new
row a change. Missing rows are drafted. Rows without approver, or with a
decision that begins with \"draft:\", do not count.

Examples:
  clresolve audit resolution --log RESOLUTION.md july.json
  clresolve audit resolution --log RESOLUTION.md --since june.json july.json")]
pub(in crate::cli) struct AuditResolutionArguments {
    /// The latest JSON report
    #[arg(value_name = "REPORT")]
    pub(in crate::cli) report: PathBuf,
    /// The governance log
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) log: PathBuf,
    /// An earlier JSON report
    #[arg(long, value_name = "REPORT")]
    pub(in crate::cli) since: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Differences in block, time or id alone do not count. If a report is incomplete
and no counted change was found, the exit code is 3.

Examples:
  clresolve audit diff june.json july.json
  clresolve audit diff june.json july.json --fail-on newly-broken,payee --json")]
pub(in crate::cli) struct AuditDiffArguments {
    /// The earlier JSON report
    #[arg(value_name = "EARLIER")]
    pub(in crate::cli) before: PathBuf,
    /// The later JSON report
    #[arg(value_name = "LATER")]
    pub(in crate::cli) after: PathBuf,
    /// Changes that set exit code 1 [default: all]
    #[arg(long, value_name = "CHANGE", value_delimiter = ',', value_parser = audit_change_kind_parser())]
    pub(in crate::cli) fail_on: Vec<AuditChangeKind>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
}

/// What to do with the memory.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
The key memory.path names the file; one process at a time can use it. Of names,
only trusted verdicts are remembered. The sandbox has no memory file.

Examples:
  clresolve memory show summarizeagent.eth
  clresolve memory accept https://api.example
  clresolve memory forget summarizeagent.eth")]
pub(in crate::cli) enum MemoryCommand {
    /// Show what is remembered: versions and digests of names, identities and payees of origins
    Show(MemoryShowArguments),
    /// Accept the identity that is proposed for an origin
    #[command(after_help = "\
First compare the proposed identity with what the seller publishes elsewhere.
The origin and the identity name each other, but anyone can set that up, and
any client of the daemon can propose an identity. Once one is accepted, checks
report any other identity at this origin as identity-changed.

Examples:
  clresolve memory show https://api.example
  clresolve memory accept https://api.example")]
    Accept {
        /// The origin, such as https://api.example
        #[arg(value_parser = parse_web_origin)]
        origin: WebOrigin,
        #[command(flatten)]
        world: NetworkArguments,
    },
    /// Forget names and origins, so that what is seen next counts as new
    Forget(MemoryForgetArguments),
}

/// The subject of a memory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum MemorySubject {
    Name(String),
    Origin(WebOrigin),
}

/// Parses an origin if the argument has a scheme, or else an ENS name.
fn parse_memory_subject(given: &str) -> Result<MemorySubject, String> {
    if given.contains("://") {
        parse_web_origin(given).map(MemorySubject::Origin)
    } else {
        parse_name_argument(given).map(MemorySubject::Name)
    }
}

/// Parses an origin, or a URL at one.
fn parse_web_origin(given: &str) -> Result<WebOrigin, String> {
    let expected = "expected an origin such as https://api.example; http is for this machine alone";
    WebOrigin::from_url_text(given).ok_or_else(|| expected.to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve memory show
  clresolve memory show summarizeagent.eth
  clresolve memory show a.eth https://api.example --json")]
pub(in crate::cli) struct MemoryShowArguments {
    /// ENS names, or origins such as https://api.example; without any, all origins
    #[arg(value_name = "NAME|ORIGIN", value_parser = parse_memory_subject)]
    pub(in crate::cli) subjects: Vec<MemorySubject>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve memory forget summarizeagent.eth
  clresolve memory forget https://api.example
  clresolve memory forget --all")]
pub(in crate::cli) struct MemoryForgetArguments {
    /// ENS names, or origins such as https://api.example
    #[arg(required_unless_present = "all", value_name = "NAME|ORIGIN", value_parser = parse_memory_subject)]
    pub(in crate::cli) subjects: Vec<MemorySubject>,
    /// Forget every name, of every world; origins stay
    #[arg(long, conflicts_with = "subjects")]
    pub(in crate::cli) all: bool,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

/// What is done with a bundle.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  clresolve bundle export summarizeagent.eth --out summarize.bundle.json
  clresolve bundle verify summarize.bundle.json")]
pub(in crate::cli) enum BundleCommand {
    /// Resolve a name and write the verdict of any state with all its evidence
    Export(BundleExportArguments),
    /// Check the evidence in a bundle again, without a network
    Verify(BundleVerifyArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes: 0 written, 1 invalid name or nothing to replay, 2 usage, 3 the
block's header cannot be proven now (consensus-proof).

Examples:
  clresolve bundle export summarizeagent.eth --out summarize.bundle.json
  clresolve bundle export a.eth --proof state-proof > a.bundle.json")]
pub(in crate::cli) struct BundleExportArguments {
    /// The ENS name
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
    #[command(flatten)]
    pub(in crate::cli) sign: VerdictSigningArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Checks the header's hash, the card against its CID and checksum, and that the
verdict follows from the evidence. State-proof and consensus-proof bundles also
prove the records. A consensus-proof bundle also proves the block, if it starts
from the checkpoint that you trust (--checkpoint); otherwise it is
indeterminate. The output lists what only the exporter vouches for.
With --jwks, the verdict must be signed by one of the keys, be about --name and
the configured profile, depth and chain, be proven as --proof demands, and be
unexpired (--max-age replaces the expiry). A bundle about a numbered block
needs --block. A purchase (receipt verify --bundle) is checked with its receipt
and payment. Purchases are not signed, so --jwks rejects them.
Exit codes: 0 trusted, 1 untrusted or rejected, 2 usage, 3 indeterminate, 4 an
--expect-* is unmet. A rejection is `class: message`.

Examples:
  clresolve bundle verify a.bundle.json --name a.eth
  clresolve bundle verify - --name a.eth --jwks keys.json \\
    --max-age 10m < a.bundle.json")]
pub(in crate::cli) struct BundleVerifyArguments {
    /// The bundle; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) document: PathBuf,
    /// Reject a bundle about another name
    #[arg(long, value_name = "NAME", value_parser = parse_name_argument)]
    pub(in crate::cli) name: Option<String>,
    /// Reject an older bundle, such as 10m; replaces the signature's expiry
    #[arg(long, value_name = "DUR", value_parser = parse_max_age)]
    pub(in crate::cli) max_age: Option<Duration>,
    /// Reject a bundle that none of these keys signed (a JSON Web Key Set)
    #[arg(long, value_name = "FILE", requires = "name")]
    pub(in crate::cli) jwks: Option<PathBuf>,
    /// Required issuer [default: any holder of the keys]
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer, requires = "jwks")]
    pub(in crate::cli) issuer: Option<String>,
    /// Accept a bundle about this numbered block
    #[arg(long, value_name = "TAG")]
    pub(in crate::cli) block: Option<BlockSelector>,
    /// The beacon block root that you trust [default: beacon.checkpoint]
    #[arg(long, value_name = "ROOT")]
    pub(in crate::cli) checkpoint: Option<B256>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) expect: ExpectationArguments,
    #[command(flatten)]
    pub(in crate::cli) about: OfflineVerificationArguments,
}

/// Parses an age, which unlike a timeout may be years.
fn parse_max_age(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "expected a duration such as 10m or 30d".to_owned())
}
