//! Arguments of `request`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::{OutputArguments, OutputFileArguments};
use super::world::NetworkArguments;
use crate::cli::hint::parse_name_argument;

/// What is done with requests.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  clresolve request template summarizeagent.eth summarize --out request.json
  clresolve request check summarizeagent.eth summarize request.json")]
pub(in crate::cli) enum AgentRequestCommand {
    /// Check a request against the agent's schema before you send it
    Check(RequestCheckArguments),
    /// Print a request to fill in, with a fresh request_id
    Template(RequestTemplateArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The schema is the one that the agent's card binds for the verb, proven by its
digest. Nothing is sent. The text also reports whether the gate denies the
agent.
Exit codes: 0 valid, 1 not valid, 2 usage, 3 undecided.

Examples:
  clresolve request check summarizeagent.eth summarize request.json
  clresolve request template a.eth summarize |
    clresolve request check a.eth summarize -")]
pub(in crate::cli) struct RequestCheckArguments {
    /// The ENS name of the agent
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The verb to call
    pub(in crate::cli) verb: String,
    /// The request; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) request: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Fixed values of the schema are set; standard error lists what to fill in. Use a
new request_id, which is random, for each request.

Examples:
  clresolve request template summarizeagent.eth summarize > request.json
  clresolve --sandbox request template checkoutagent.eth checkout \\
    --out request.json")]
pub(in crate::cli) struct RequestTemplateArguments {
    /// The ENS name of the agent
    #[arg(value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The verb to call
    pub(in crate::cli) verb: String,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}
