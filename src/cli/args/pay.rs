//! Arguments of the commands about payments.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clresolve_resolver::resolve::SellerUrl;

use super::output::OutputArguments;
use super::world::NetworkArguments;
use crate::cli::hint::parse_name_argument;

#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is sent to the seller, and no payment is signed. The check `identity`
is the gate's. Limits come from the table [limits] of the configuration;
options here only tighten them.
Exit codes: 0 allow, 1 deny, 2 usage, 3 undecided. Pay on 0 alone.

Examples:
  clresolve decide a.eth summarize --terms 402.json \\
    --url https://api.a.example/summarize
  curl -so /dev/null -w '%header{payment-required}' URL |
    clresolve decide a.eth summarize --url URL --terms -")]
pub(in crate::cli) struct DecideArguments {
    /// The ENS name
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The verb to be called
    pub(in crate::cli) verb: String,
    /// The URL that answered 402
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) url: String,
    /// The 402's JSON body, or the value of its header PAYMENT-REQUIRED, encoded or not; - is standard input
    #[arg(long, value_name = "FILE|-")]
    pub(in crate::cli) terms: PathBuf,
    /// The chosen entry, from 0; by default every entry must pass
    #[arg(long, value_name = "N")]
    pub(in crate::cli) select: Option<usize>,
    /// File with the signed payment header, to compare with the decision
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) signed: Option<PathBuf>,
    /// Maximum atomic units of one payment
    #[arg(long, value_name = "UNITS", value_parser = clresolve_payment::limits::AtomicAmount::parse)]
    pub(in crate::cli) max_amount: Option<clresolve_payment::limits::AtomicAmount>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The URL comes from [routes] of the configuration, from the name's records
cl.endpoint.runtime and agent-endpoint[web|mcp|a2a], or from an https entry.
Exit codes: 0 known, 1 the agent is untrusted or denied by the gate, 2 usage,
3 unknown. `-o short` prints a URL only with 0.

Examples:
  clresolve route summarizeagent.eth summarize
  clresolve route a.eth -o short")]
pub(in crate::cli) struct RouteArguments {
    /// The ENS name
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The verb to call [default: the entry's]
    pub(in crate::cli) verb: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sends one request without payment to the agent's route and follows no redirect.
Agents that the gate denies are asked only with --untrusted; the decision then
aborts.
Exit codes: 0 allow, 1 deny, 2 usage, 3 undecided.

Examples:
  clresolve probe --sandbox summarizeagent.eth summarize
  clresolve probe a.eth summarize --json")]
pub(in crate::cli) struct ProbeArguments {
    /// The ENS name
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The verb to be called
    pub(in crate::cli) verb: String,
    /// Method of the request; POST sends the empty object {}
    #[arg(long, value_enum, default_value_t)]
    pub(in crate::cli) method: ProbeMethod,
    /// Ask the route of an agent that the gate denies
    #[arg(long)]
    pub(in crate::cli) untrusted: bool,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Sends one request without a payment to the URL, and follows no redirect. Shows
the evidence for who would be paid: a trusted card, a name, an ERC-8004
registration, a signed offer, and earlier checks. Limits come from [limits] of
the configuration, accepted evidence from [check].
Only a guard judges the reply that is paid: a seller may answer it differently.
Exit codes: 0 allow, 1 deny, 2 usage, 3 undecided.

Examples:
  clresolve check --sandbox --list
  clresolve check https://api.a.example/summarize
  clresolve check https://api.a.example/summarize --name a.eth --body q.json")]
pub(in crate::cli) struct SellerCheckArguments {
    /// The URL of the seller; https, or plain http to this machine with --allow-host
    #[arg(required_unless_present = "list")]
    pub(in crate::cli) url: Option<SellerUrl>,
    /// The ENS name that you expect the seller to have
    #[arg(long, value_name = "NAME", value_parser = parse_name_argument)]
    pub(in crate::cli) name: Option<String>,
    /// The verb to call, if the name has a card
    #[arg(long, value_name = "VERB")]
    pub(in crate::cli) verb: Option<String>,
    /// Method of the request [default: get, with --body post]; POST without --body sends the empty object {}
    #[arg(long, value_enum, hide_possible_values = true)]
    pub(in crate::cli) method: Option<ProbeMethod>,
    /// JSON to send, of at most 256 KiB; - reads it from standard input
    #[arg(long, value_name = "FILE|-")]
    pub(in crate::cli) body: Option<PathBuf>,
    /// List the sandbox's sellers with their expected decisions
    #[arg(long, requires = "sandbox", conflicts_with_all = ["url", "name", "verb", "method", "body"])]
    pub(in crate::cli) list: bool,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

/// The method of a request that is not paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ProbeMethod {
    /// As verbs are invoked
    #[default]
    Post,
    /// As pages are read
    Get,
}
