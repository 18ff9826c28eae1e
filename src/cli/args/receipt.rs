//! Commands about what agents answer.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use clresolve_resolver::config::{ProofDemand, parse_issuer};

use super::output::{OutputArgs, VerdictFormat};
use super::signing::{SignArgs, parse_chain};
use super::suggest;
use super::world::WorldArgs;
use crate::cli::hint::parse_name;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve receipt verify receipt.json --name summarizeagent.eth
  clresolve receipt check a.jws --receipt r.json --jwks keys.json --name a.eth")]
pub(in crate::cli) struct ReceiptArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: ReceiptCommand,
}

/// What is done with receipts.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ReceiptCommand {
    /// Judge a receipt: did the agent's own signer sign it, for this agent and request?
    Verify(Box<ReceiptVerifyArgs>),
    /// Check what was signed of a receipt (verify -o jws), without a network
    Check(ReceiptCheckArgs),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("occasion").multiple(true))]
#[command(after_help = "\
The key is the one that the chain names: cl.receipt.signer of the agent, then
cl.sig.pub of that name. A key or a name that the receipt brings proves
nothing. Without --request a receipt that somebody else was given is trusted
too. Whether the call was paid takes --payment, --settlement and [chains.ID]
endpoints. A bundle holds neither the bound schema nor the agent's addresses
and URL. Of the receipt nothing is written without --remember or --bundle; a
memory (memory.path) takes the agent's verdict, as with every command.
Exit codes: 0 trusted, 1 untrusted, 2 usage, 3 indeterminate.

Examples:
  clresolve receipt verify receipt.json --name summarizeagent.eth
  clresolve receipt verify receipt.json --name a.eth \\
    --payment paid --settlement reply
  clresolve receipt verify receipt.json --name a.eth --bundle purchase.json
  clresolve receipt verify - --name a.eth --request request.json \\
    -o json < receipt.json")]
pub(in crate::cli) struct ReceiptVerifyArgs {
    /// The receipt; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) receipt: PathBuf,
    /// The ENS name of the agent that was asked
    #[arg(long, value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// The request that was sent to it
    #[arg(long, value_name = "FILE|-", group = "occasion")]
    pub(in crate::cli) request: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) purchase: PurchaseArgs,
    /// Mark the receipt as seen for this request, or x402's own for this decision, in the memory (memory.path)
    #[arg(long, requires = "occasion")]
    pub(in crate::cli) remember: bool,
    /// What was asked when it was decided, into the bundle: the request to POST /v1/decisions
    #[arg(long, value_name = "FILE", requires = "bundle", requires = "decision")]
    pub(in crate::cli) asked: Option<PathBuf>,
    /// Write the purchase with all its evidence, for `bundle verify`
    #[arg(long, value_name = "OUT", conflicts_with = "remember")]
    pub(in crate::cli) bundle: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs<VerdictFormat>,
    #[command(flatten)]
    pub(in crate::cli) sign: SignArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

/// What was kept of a purchase.
#[derive(Debug, Args)]
pub(in crate::cli) struct PurchaseArgs {
    /// The decision that the payment was made on (decide -o json)
    #[arg(long, value_name = "FILE", group = "occasion")]
    pub(in crate::cli) decision: Option<PathBuf>,
    /// The payment header that was sent: PAYMENT-SIGNATURE, in version 1 X-PAYMENT
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) payment: Option<PathBuf>,
    /// The header of the reply: PAYMENT-RESPONSE, in version 1 X-PAYMENT-RESPONSE
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) settlement: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Unless --chain names it, the chain and its world are those of the
configuration: mainnet by default. --proof names the least grade; without it
the word of one endpoint is refused, as the gate does.
Exit codes: those of the document (0 trusted, 1 untrusted, 3 indeterminate),
1 for one that is refused, 2 usage.

Examples:
  clresolve receipt check a.jws --receipt r.json --jwks keys.json --name a.eth
  clresolve receipt check - --receipt r.json --request q.json \\
    --decision d.json --settled --jwks keys.json --name a.eth")]
pub(in crate::cli) struct ReceiptCheckArgs {
    /// The signed document (a JWS); - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) jws: PathBuf,
    /// The receipt that it must be about
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) receipt: PathBuf,
    /// The request that it must be for; without it one for no request
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) request: Option<PathBuf>,
    /// The decision that it must be held against; without it one against none
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) decision: Option<PathBuf>,
    /// It must show that the payment was settled
    #[arg(long)]
    pub(in crate::cli) settled: bool,
    /// The keys of the issuer (a JSON Web Key Set), received over a way that you trust
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) jwks: PathBuf,
    /// The ENS name of the agent that it must be about
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// The chain that the agent must be of; eip155:1 is mainnet
    #[arg(long, value_name = "eip155:N", value_parser = parse_chain)]
    pub(in crate::cli) chain: Option<u64>,
    /// The weakest proof that is accepted: single-rpc, quorum or state-proof
    #[arg(long, value_name = "GRADE", value_parser = suggest::proof(), hide_possible_values = true)]
    pub(in crate::cli) proof: Option<ProofDemand>,
    /// Who must have issued it; otherwise any holder of one of the keys
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer)]
    pub(in crate::cli) issuer: Option<String>,
}
