//! Commands that sign, and that check signatures.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clresolve_cards::signature::DidWeb;
use clresolve_core::text;
use clresolve_resolver::config::parse_issuer;

use super::output::{OutArgs, OutputArgs};
use super::world::{AboutArgs, WorldArgs};
use crate::cli::expect::ExpectArgs;
use crate::cli::hint::parse_name;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve signature verify card.json --ens a.eth
  clresolve signature sign card.json --key k.pem --out signed.json")]
pub(in crate::cli) struct SignatureArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: SignatureCommand,
}

/// What is done with signatures.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SignatureCommand {
    /// Sign an A2A card
    Sign(SignCardArgs),
    /// Check the signatures of an A2A card by keys of the roots that you name
    Verify(Box<SignatureVerifyArgs>),
    /// Make a key to sign verdicts and cards with, or show the public part of one
    Key(KeyArgs),
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("roots").required(true).multiple(true),
    after_help = "\
One signature that holds under a named root is enough; the defects of others
are then warnings. The place where the card says that its keys are is never
looked at.
Exit codes: 0 verified, 1 refused, 2 usage, 3 a root could not be asked.

Examples:
  clresolve signature verify card.json --ens a.eth
  clresolve signature verify - --jwks keys.json \\
    --did did:web:example.com < card.json"
)]
pub(in crate::cli) struct SignatureVerifyArgs {
    /// The card; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) card: PathBuf,
    /// Trust the keys of this JSON Web Key Set; repeatable
    #[arg(long, value_name = "FILE|URL", group = "roots")]
    pub(in crate::cli) jwks: Vec<String>,
    /// Trust the keys of this DID's document, such as did:web:example.com; repeatable
    #[arg(long, value_name = "DID", group = "roots")]
    pub(in crate::cli) did: Vec<DidWeb>,
    /// Trust the key in this name's record cl.sig.pub; repeatable
    #[arg(long, value_name = "NAME", group = "roots")]
    pub(in crate::cli) ens: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) world: WorldArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The signature is added to those of the card; no other byte of the card
changes. Its reader needs the public part: `clresolve signature key public
FILE`.

Examples:
  clresolve signature sign card.json --key k.pem --out signed.json
  clresolve signature key public k.pem > jwks.json
  clresolve signature verify signed.json --jwks jwks.json")]
pub(in crate::cli) struct SignCardArgs {
    /// The card; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) card: PathBuf,
    /// The file with the private key (PKCS#8, PEM): Ed25519, P-256 or RSA
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) key: PathBuf,
    /// What the signature calls the key [default: its RFC 7638 thumbprint]
    #[arg(long, value_name = "ID", value_parser = parse_kid)]
    pub(in crate::cli) kid: Option<String>,
    /// Where the public part is published, for the header; clresolve itself never looks there
    #[arg(long, value_name = "URL", value_parser = parse_jku)]
    pub(in crate::cli) jku: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve signature key new k.pem > jwks.json
  clresolve signature key public k.pem")]
pub(in crate::cli) struct KeyArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: KeyCommand,
}

/// What is done with a key.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum KeyCommand {
    /// Make an Ed25519 key in a new file that only you can read, and print its public part
    New(KeyFileArgs),
    /// Print the public part of a key as a JSON Web Key Set
    Public(KeyFileArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve signature key new k.pem > jwks.json
  clresolve signature key public k.pem --out jwks.json")]
pub(in crate::cli) struct KeyFileArgs {
    /// The file with the private key (PKCS#8, PEM)
    #[arg(value_name = "FILE")]
    pub(in crate::cli) key: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) out: OutArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve verdict verify a.jws --jwks keys.json --name a.eth
  clresolve verdict verify - --jwks keys.json --name a.eth < a.jws")]
pub(in crate::cli) struct VerdictArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: VerdictCommand,
}

/// What is done with a signed verdict.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum VerdictCommand {
    /// Check signature, time, name, profile and chain of a signed verdict
    Verify(VerdictVerifyArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Profile, depth and, unless --chain names it, the chain and its world are those
of the configuration: agent-cards/1.0.0, identity, and mainnet by default.
--proof names the least grade; without it the word of one endpoint is refused,
as the gate does.
Exit codes: those of the verdict (0 trusted, 1 untrusted, 3 indeterminate),
4 for an --expect-* that is not met, 1 for a signed verdict that is refused,
2 usage.

Examples:
  clresolve verdict verify a.jws --jwks keys.json --name a.eth
  clresolve verdict verify - --jwks keys.json --name a.eth \\
    --proof quorum < a.jws")]
pub(in crate::cli) struct VerdictVerifyArgs {
    /// The signed verdict (a JWS); - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) jws: PathBuf,
    /// The keys of the issuer (a JSON Web Key Set), received over a way that you trust
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) jwks: PathBuf,
    /// The ENS name that the verdict must be about
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(in crate::cli) name: String,
    /// The chain that it must be about; eip155:1 is mainnet
    #[arg(long, value_name = "eip155:N", value_parser = parse_chain)]
    pub(in crate::cli) chain: Option<u64>,
    /// Who must have issued it; otherwise any holder of one of the keys
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer)]
    pub(in crate::cli) issuer: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArgs,
    #[command(flatten)]
    pub(in crate::cli) expect: ExpectArgs,
    #[command(flatten)]
    pub(in crate::cli) about: AboutArgs,
}

/// What signs verdicts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Signing")]
pub(in crate::cli) struct SignArgs {
    /// File with the private key; `clresolve signature key new` makes one
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) sign_key: Option<PathBuf>,
    /// In whose name, such as https://clresolve.example
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer)]
    pub(in crate::cli) sign_issuer: Option<String>,
}

/// Longest name of a key, in bytes: twice a long URL's worth would not name a key better.
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
pub(super) fn parse_chain(text: &str) -> Result<u64, String> {
    let id = text.strip_prefix("eip155:").and_then(|id| id.parse().ok());
    id.ok_or_else(|| "expected a chain such as eip155:1".to_owned())
}
