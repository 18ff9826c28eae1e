//! Arguments of the commands that sign, or check signatures.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clresolve_cards::signature::DidWeb;
use clresolve_core::text;
use clresolve_resolver::config::parse_issuer;

use super::output::{OutputArguments, OutputFileArguments};
use super::world::{NetworkArguments, OfflineVerificationArguments};
use crate::cli::expect::ExpectationArguments;
use crate::cli::hint::parse_name_argument;

/// What is done with signatures.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  clresolve signature verify card.json --ens a.eth
  clresolve signature sign card.json --key k.pem --out signed.json")]
pub(in crate::cli) enum SignatureCommand {
    /// Sign an A2A card
    Sign(CardSignArguments),
    /// Check the signatures of an A2A card with the keys of trusted roots
    Verify(Box<SignatureVerifyArguments>),
    /// Make a signing key, or show its public part
    #[command(subcommand)]
    Key(SigningKeyCommand),
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("roots").required(true).multiple(true),
    after_help = "\
One valid signature under a named root is enough; defects of others are then
warnings. Key locations in the card are ignored.
Exit codes: 0 valid, 1 not valid, 2 usage, 3 a root is unavailable.

Examples:
  clresolve signature verify card.json --ens a.eth
  clresolve signature verify - --jwks keys.json \\
    --did did:web:example.com < card.json"
)]
pub(in crate::cli) struct SignatureVerifyArguments {
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
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) world: NetworkArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Adds the signature and changes nothing else. Readers need the public key:
`clresolve signature key public FILE`.

Examples:
  clresolve signature sign card.json --key k.pem --out signed.json
  clresolve signature key public k.pem > jwks.json
  clresolve signature verify signed.json --jwks jwks.json")]
pub(in crate::cli) struct CardSignArguments {
    /// The card; - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) card: PathBuf,
    /// File with the private key (PKCS#8, PEM): Ed25519, P-256 or RSA
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) key: PathBuf,
    /// Key id in the signature [default: the RFC 7638 thumbprint]
    #[arg(long, value_name = "ID", value_parser = parse_kid)]
    pub(in crate::cli) kid: Option<String>,
    /// URL of the public key, for the signature's header
    #[arg(long, value_name = "URL", value_parser = parse_jku)]
    pub(in crate::cli) jku: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
}

/// What is done with a key.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  clresolve signature key new k.pem > jwks.json
  clresolve signature key public k.pem")]
pub(in crate::cli) enum SigningKeyCommand {
    /// Write an Ed25519 key to a new file that only you can read, and print its public part
    New(SigningKeyFileArguments),
    /// Print the public part of a key as a JSON Web Key Set
    Public(SigningKeyFileArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clresolve signature key new k.pem > jwks.json
  clresolve signature key public k.pem --out jwks.json")]
pub(in crate::cli) struct SigningKeyFileArguments {
    /// File with the private key (PKCS#8, PEM)
    #[arg(value_name = "FILE")]
    pub(in crate::cli) key: PathBuf,
    #[command(flatten)]
    pub(in crate::cli) out: OutputFileArguments,
}

/// What is done with a signed verdict.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  clresolve verdict verify a.jws --jwks keys.json --name a.eth
  clresolve verdict verify - --jwks keys.json --name a.eth < a.jws")]
pub(in crate::cli) enum VerdictCommand {
    /// Check signature, time, name, profile and chain of a signed verdict
    Verify(VerdictVerifyArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The verdict must have the configured profile and depth and, without --chain, the
configured chain. Without --proof, the proof by one foreign endpoint is
rejected.
Exit codes: 0 trusted, 1 untrusted or rejected, 2 usage, 3 indeterminate, 4 an
--expect-* is unmet.

Examples:
  clresolve verdict verify a.jws --jwks keys.json --name a.eth
  clresolve verdict verify - --jwks keys.json --name a.eth \\
    --proof quorum < a.jws")]
pub(in crate::cli) struct VerdictVerifyArguments {
    /// The signed verdict (a JWS); - is standard input
    #[arg(value_name = "FILE|-")]
    pub(in crate::cli) jws: PathBuf,
    /// The issuer's keys (a JSON Web Key Set), from a source that you trust
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) jwks: PathBuf,
    /// The ENS name of the verdict
    #[arg(long, value_name = "NAME", value_parser = parse_name_argument)]
    pub(in crate::cli) name: String,
    /// Required chain, such as eip155:1 (mainnet)
    #[arg(long, value_name = "eip155:N", value_parser = parse_chain)]
    pub(in crate::cli) chain: Option<u64>,
    /// Required issuer [default: any holder of the keys]
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer)]
    pub(in crate::cli) issuer: Option<String>,
    #[command(flatten)]
    pub(in crate::cli) output: OutputArguments,
    #[command(flatten)]
    pub(in crate::cli) expect: ExpectationArguments,
    #[command(flatten)]
    pub(in crate::cli) about: OfflineVerificationArguments,
}

/// What signs verdicts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Signing")]
pub(in crate::cli) struct VerdictSigningArguments {
    /// File with the private key; `clresolve signature key new` makes one
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) sign_key: Option<PathBuf>,
    /// Issuer, such as https://clresolve.example
    #[arg(long, value_name = "ISSUER", value_parser = parse_issuer)]
    pub(in crate::cli) sign_issuer: Option<String>,
}

/// Maximum length of a key id, in bytes.
const MAX_KID_BYTES: usize = 255;

/// Parses a key id.
fn parse_kid(text: &str) -> Result<String, String> {
    let good = (1..=MAX_KID_BYTES).contains(&text.len()) && !text.chars().any(text::is_unsafe_character);
    good.then(|| text.to_owned()).ok_or_else(|| format!("expected at most {MAX_KID_BYTES} plain characters"))
}

/// Parses the URL of a key set.
fn parse_jku(text: &str) -> Result<String, String> {
    let good = url::Url::parse(text).is_ok_and(|url| url.scheme() == "https");
    good.then(|| text.to_owned()).ok_or_else(|| "expected an https URL".to_owned())
}

/// Parses a chain in CAIP-2 form.
pub(super) fn parse_chain(text: &str) -> Result<u64, String> {
    let id = text.strip_prefix("eip155:").and_then(|id| id.parse().ok());
    id.ok_or_else(|| "expected a chain such as eip155:1".to_owned())
}
