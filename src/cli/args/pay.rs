//! Commands about payments: where an agent is called, what it demands, and whether that may be paid.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::output::OutputArgs;
use super::world::WorldArgs;
use crate::cli::hint::parse_name;

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
pub(in crate::cli) struct DecideArgs {
    /// The ENS name
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// The verb to be called
    pub(in crate::cli) verb: String,
    /// The URL that answered 402
    #[arg(long, value_name = "URL")]
    pub(in crate::cli) url: String,
    /// The terms: the JSON of a 402's body, or the value of its header PAYMENT-REQUIRED
    /// as it came or decoded; - reads them from standard input
    #[arg(long, value_name = "FILE|-")]
    pub(in crate::cli) terms: PathBuf,
    /// The entry that you chose, from 0; without it every entry must pass
    #[arg(long, value_name = "N")]
    pub(in crate::cli) select: Option<usize>,
    /// The payment header that is about to be sent, in this file: is what was signed what was decided?
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) signed: Option<PathBuf>,
    /// Most atomic units of one payment
    #[arg(long, value_name = "UNITS", value_parser = clresolve_payment::limits::Atomic::parse)]
    pub(in crate::cli) max_amount: Option<clresolve_payment::limits::Atomic>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The URL comes from [routes] of the configuration, from the records
cl.endpoint.runtime and agent-endpoint[web|mcp|a2a] of the name, or from a
card whose entry is https.
Exit codes: 0 known, 1 the agent is untrusted or the gate denies it for the
verb, 2 usage, 3 not known. `-o short` has a URL only with 0.

Examples:
  clresolve route summarizeagent.eth summarize
  clresolve route a.eth -o short")]
pub(in crate::cli) struct RouteArgs {
    /// The ENS name
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// The verb to be called; without it that of the entry
    pub(in crate::cli) verb: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
One request goes to the agent's route, through the door for foreign URLs,
without a payment; no redirect is followed. An agent that the gate denies is
not asked, unless --untrusted is given; the decision aborts in any case.
Exit codes: 0 allow, 1 deny, 2 usage, 3 undecided.

Examples:
  clresolve probe --sandbox summarizeagent.eth summarize
  clresolve probe a.eth summarize --json")]
pub(in crate::cli) struct ProbeArgs {
    /// The ENS name
    #[arg(value_parser = parse_name)]
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
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
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
