//! Arguments of `receipt`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use clresolve_resolver::config::{ChainProofMode, parse_issuer};

use super::output::{OutputArguments, VerdictOutputFormat};
use super::signing::{VerdictSigningArguments, parse_chain};
use super::suggest;
use super::world::NetworkArguments;
use crate::cli::hint::parse_name_argument;

/// What is done with receipts.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  clresolve receipt verify receipt.json --name summarizeagent.eth
  clresolve receipt check a.jws --receipt r.json --jwks keys.json --name a.eth")]
pub(in crate::cli) enum ReceiptCommand {
    /// Check whether the agent's signer signed a receipt for this agent and request
    Verify(Box<ReceiptVerifyArguments>),
    /// Check a signed receipt verdict (verify -o jws), without a network
    Check(ReceiptVerdictCheckArguments),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("occasion").multiple(true))]
#[command(after_help = "\
The key comes from the chain: cl.sig.pub of the name in the agent's record
cl.receipt.signer. Keys and names in the receipt prove nothing. Without
--request, a receipt for someone else's request is trusted too. To check the
payment, give --payment, --settlement and [chains.ID] endpoints. A bundle
contains neither the bound schema nor the agent's addresses and URL. The
receipt is stored only with --remember or --bundle.
Exit codes: 0 trusted, 1 untrusted, 2 usage, 3 indeterminate.

Examples:
  clresolve receipt verify receipt.json --name summarizeagent.eth
  clresolve receipt verify receipt.json --name a.eth \\
    --payment paid --settlement reply
  clresolve receipt verify receipt.json --name a.eth --bundle purchase.json
  clresolve receipt verify - --name a.eth --request request.json \\
    -o json < receipt.json")]
pub(in crate::cli) struct ReceiptVerifyArguments {
    /// The receipt; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) receipt: PathBuf,
    /// The ENS name of the agent
    #[arg(long, value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// The request
    #[arg(long, value_name = "FILE|-", group = "occasion")]
    pub(in crate::cli) request: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) purchase: PurchaseEvidenceArguments,
    /// Store in the memory that the receipt was seen for this request or decision
    #[arg(long, requires = "occasion")]
    pub(in crate::cli) remember: bool,
    /// The request to POST /v1/decisions, for the bundle
    #[arg(long, value_name = "FILE", requires = "bundle", requires = "decision")]
    pub(in crate::cli) asked: Option<PathBuf>,
    /// Write the purchase with its evidence, for `bundle verify`
    #[arg(long, value_name = "OUT", conflicts_with = "remember")]
    pub(in crate::cli) bundle: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments<VerdictOutputFormat>,
    #[command(flatten)]
    pub(in crate::cli) sign: VerdictSigningArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

/// What was kept of a purchase.
#[derive(Debug, Args)]
pub(in crate::cli) struct PurchaseEvidenceArguments {
    /// The decision before the payment (decide -o json)
    #[arg(long, value_name = "FILE", group = "occasion")]
    pub(in crate::cli) decision: Option<PathBuf>,
    /// The payment header: PAYMENT-SIGNATURE, in version 1 X-PAYMENT
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) payment: Option<PathBuf>,
    /// The reply's header: PAYMENT-RESPONSE, in version 1 X-PAYMENT-RESPONSE
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) settlement: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --chain the configured chain is required. Without --proof, the proof by
one foreign endpoint is rejected.
Exit codes: 0 trusted, 1 untrusted or rejected, 2 usage, 3 indeterminate.

Examples:
  clresolve receipt check a.jws --receipt r.json --jwks keys.json --name a.eth
  clresolve receipt check - --receipt r.json --request q.json \\
    --decision d.json --settled --jwks keys.json --name a.eth")]
pub(in crate::cli) struct ReceiptVerdictCheckArguments {
    /// The signed receipt verdict (a JWS); - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) jws: PathBuf,
    /// The receipt
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) receipt: PathBuf,
    /// The request, if it was verified with one
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) request: Option<PathBuf>,
    /// The decision, if it was verified with one
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) decision: Option<PathBuf>,
    /// Require that the payment was settled
    #[arg(long)]
    pub(in crate::cli) settled: bool,
    /// The issuer's keys (a JSON Web Key Set), from a source that you trust
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) jwks: PathBuf,
    /// The ENS name of the agent
    #[arg(long, value_name = "NAME", value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// Required chain, such as eip155:1 (mainnet)
    #[arg(long, value_name = "eip155:N", value_parser = parse_chain)]
    pub(in crate::cli) chain: Option<u64>,
    /// Weakest accepted proof: single-rpc, quorum, state-proof or consensus-proof
    #[arg(long, value_name = "GRADE", value_parser = suggest::proof_demand_parser(), hide_possible_values = true)]
    pub(in crate::cli) proof: Option<ChainProofMode>,
    /// Required issuer [default: any holder of the keys]
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer)]
    pub(in crate::cli) issuer: Option<String>,
}
