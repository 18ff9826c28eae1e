//! Commands about what agents are sent.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::{OutArgs, OutputArgs};
use super::world::WorldArgs;
use crate::cli::hint::parse_name;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve request template summarizeagent.eth summarize --out request.json
  clresolve request check summarizeagent.eth summarize request.json")]
pub(in crate::cli) struct RequestArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: RequestCommand,
}

/// What is done with requests.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RequestCommand {
    /// Check a request before it is sent: is it what the agent's schema demands?
    Check(RequestCheckArgs),
    /// Print a request that the agent's schema allows, with a fresh request_id, to be filled in
    Template(RequestTemplateArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The schema is the one that the agent's card binds for the verb, its bytes
proven by their digest. Nothing is sent. Each finding has its line and column.
Exit codes: 0 it fits, 1 it must not be sent, 2 usage, 3 it is not known.
Where the gate would deny the agent, the text says so.

Examples:
  clresolve request check summarizeagent.eth summarize request.json
  clresolve request template a.eth summarize |
    clresolve request check a.eth summarize -")]
pub(in crate::cli) struct RequestCheckArgs {
    /// The ENS name of the agent
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// What it is to do
    pub(in crate::cli) verb: String,
    /// The request; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) request: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
What the schema fixes stands there as it demands; standard error names what is
to be filled in. The request_id is random: send each request with one of its
own.

Examples:
  clresolve request template summarizeagent.eth summarize > request.json
  clresolve --sandbox request template checkoutagent.eth checkout \\
    --out request.json")]
pub(in crate::cli) struct RequestTemplateArgs {
    /// The ENS name of the agent
    #[arg(value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// What it is to do
    pub(in crate::cli) verb: String,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}
