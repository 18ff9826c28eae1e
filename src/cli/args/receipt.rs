//! Commands about what agents answer.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::OutputArgs;
use super::world::WorldArgs;

#[derive(Debug, Args)]
pub(in crate::cli) struct ReceiptArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: ReceiptCommand,
}

/// What is done with receipts.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ReceiptCommand {
    /// Judge a receipt: did the agent's own signer sign it, for this agent and request?
    Verify(ReceiptVerifyArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The key is the one that the chain names: cl.receipt.signer of the agent, then
cl.sig.pub of that name. A key or a name that the receipt brings proves nothing.
Without --request a receipt that somebody else was given is trusted too.
Exit codes: 0 trusted, 1 untrusted, 2 usage, 3 indeterminate.

Examples:
  clresolve receipt verify receipt.json --name summarizeagent.eth
  clresolve receipt verify - --name a.eth --request request.json -o json < receipt.json")]
pub(in crate::cli) struct ReceiptVerifyArgs {
    /// The receipt; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) receipt: PathBuf,
    /// The ENS name of the agent that was asked
    #[arg(long)]
    pub(in crate::cli) name: String,
    /// The request that was sent to it
    #[arg(long, value_name = "FILE|-")]
    pub(in crate::cli) request: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}
