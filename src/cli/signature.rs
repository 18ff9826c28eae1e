//! `signature`: signs A2A cards, and verifies their signatures.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_cards::lint::MAX_BYTES;
use clresolve_cards::signature::{
    CardSignatureOutcome, CardSignatureVerification, CardSigningKey, CardTrustRoot, CardTrustRoots,
    CheckedCardSignature, SignedCardState, has_signature_by_key, sign_text, verify_card_signatures,
};
use clresolve_cards::system::{CardSystem, CardSystemDetection, detect_card_system};
use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_discover::{VerificationKeySource, fetch_trust_root};
use clresolve_resolver::sign;
use clresolve_verdict::card::AgentCard;

use super::args::{CardSignArguments, OutputFormat, SignatureCommand, SignatureVerifyArguments};
use super::exit::ExitStatus;
use super::input::read_file_or_stdin;
use super::key;
use super::notice;
use super::output::{OutputSink, ResultWriter};
use super::render::{Palette, write_reason};
use super::world::CommandContext;

/// Maximum size of a key file, in bytes: far more than 64 keys need.
const MAX_KEYS_BYTES: usize = 256 * 1024;

fn write_signed_card(args: CardSignArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.out)?;
    let pem = sign::read_private_key_text(&args.key)?;
    let mut key = CardSigningKey::from_pem(&pem).with_context(|| args.key.display().to_string())?;
    if let Some(kid) = args.kid {
        key = key.with_key_id(kid);
    }
    if let Some(jku) = args.jku {
        key = key.with_key_set_url(jku);
    }
    let text = String::from_utf8(read_file_or_stdin(&args.card, MAX_BYTES)?).context("the card is not UTF-8")?;
    let card = AgentCard::parse(text.as_bytes()).ok();
    if card.as_ref().is_some_and(|card| has_signature_by_key(card.document(), &key)) {
        notice::print_notice(format_args!(
            "clresolve: the card already has a signature by this key, which is kept; remove it if the card has changed since"
        ));
    }
    let is_a2a = |card: &AgentCard| {
        matches!(detect_card_system(card), CardSystemDetection::One(CardSystem::A2a | CardSystem::Orloj))
    };
    if !card.as_ref().is_some_and(is_a2a) {
        notice::print_notice(format_args!(
            "clresolve: this does not look like an A2A card; it is signed anyway (`clresolve cards project NAME` makes one from a trusted name)"
        ));
    }
    let signed =
        sign_text(&text, &key).map_err(|error| anyhow::anyhow!("{}", UntrustedText::new(&error.to_string())))?;
    output.write_all_and_finish(signed.as_bytes())?;
    Ok(ExitStatus::Trusted)
}

pub(super) fn run(command: SignatureCommand) -> anyhow::Result<ExitStatus> {
    match command {
        SignatureCommand::Sign(args) => write_signed_card(args),
        SignatureCommand::Verify(args) => super::runtime::run_async_until_interrupt(verify_card_file_signatures(*args)),
        SignatureCommand::Key(command) => key::run(command),
    }
}

async fn verify_card_file_signatures(args: SignatureVerifyArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let palette = output.palette();
    let name = args.card.display().to_string();
    let bytes = read_file_or_stdin(&args.card, MAX_BYTES)?;
    let roots = read_trust_roots(&args).await?;
    let card = match AgentCard::parse(&bytes) {
        Ok(card) => card,
        Err(error) => {
            anstream::eprintln!("clresolve: card rejected: {}", UntrustedText::new(&error.to_string()));
            return Ok(ExitStatus::Untrusted);
        }
    };
    let verification = verify_card_signatures(card.document(), &roots);
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    results.push(&verification, |format| match format {
        OutputFormat::Short => format_signature_line(&verification, &name, &palette),
        _ => format_signature_report(&verification, &name, &palette),
    })?;
    results.finish()?;
    Ok(signature_trust_state(verification.state).into())
}

/// The roots in the options. Only those that are not files are fetched.
async fn read_trust_roots(args: &SignatureVerifyArguments) -> anyhow::Result<CardTrustRoots> {
    let mut sources = Vec::new();
    let mut roots = Vec::new();
    for place in &args.jwks {
        match place.split_once("://") {
            Some(("https", _)) => sources.push(VerificationKeySource::Url(place.clone())),
            Some(_) => bail!("--jwks {}: expected a file or an https URL", UntrustedText::new(place)),
            None => roots.push(read_jwks_file_trust_root(place)?),
        }
    }
    sources.extend(args.did.iter().cloned().map(VerificationKeySource::Did));
    for name in &args.ens {
        let name = EnsName::parse(name)
            .map_err(|error| anyhow::anyhow!("--ens: {}", UntrustedText::new(&error.to_string())))?;
        sources.push(VerificationKeySource::Ens(name));
    }
    if !sources.is_empty() {
        let world = CommandContext::open(&args.world).await?;
        for source in &sources {
            roots.push(fetch_trust_root(&world.resolver, source).await);
        }
    }
    Ok(CardTrustRoots::new(roots)?)
}

/// Reads the key set in a file. An unusable one is a usage error, not a finding about the card.
fn read_jwks_file_trust_root(path: &str) -> anyhow::Result<CardTrustRoot> {
    let shown = || format!("--jwks {}", UntrustedText::new(path));
    let keys = read_file_or_stdin(Path::new(path), MAX_KEYS_BYTES).with_context(shown)?;
    if keys.len() > MAX_KEYS_BYTES {
        bail!("{}: a key set has at most {MAX_KEYS_BYTES} bytes", shown());
    }
    CardTrustRoot::from_jwks(path, &keys).with_context(shown)
}

const fn signature_trust_state(state: SignedCardState) -> TrustState {
    match state {
        SignedCardState::Verified => TrustState::Trusted,
        SignedCardState::Refused => TrustState::Untrusted,
        SignedCardState::Undecided => TrustState::Indeterminate,
    }
}

const fn signature_state_word(state: SignedCardState) -> &'static str {
    match state {
        SignedCardState::Verified => "verified",
        SignedCardState::Refused => "refused",
        SignedCardState::Undecided => "undecided",
    }
}

fn format_signature_line(verification: &CardSignatureVerification, name: &str, palette: &Palette) -> String {
    let style = palette.state_style(signature_trust_state(verification.state));
    let mut codes: Vec<&str> = verification.reasons.iter().map(|reason| reason.code.slug()).collect();
    codes.dedup();
    format!(
        "{style}{}{style:#}  {}  {}\n",
        signature_state_word(verification.state),
        UntrustedText::new(name),
        codes.join(",")
    )
}

fn format_signature_report(verification: &CardSignatureVerification, name: &str, palette: &Palette) -> String {
    let style = palette.state_style(signature_trust_state(verification.state));
    let mut text =
        format!("{style}{}{style:#}  {}\n", signature_state_word(verification.state), UntrustedText::new(name));
    for checked in &verification.signatures {
        let _ = writeln!(text, "  {}", format_signature(checked));
    }
    if !verification.reasons.is_empty() {
        text.push('\n');
    }
    for reason in &verification.reasons {
        write_reason(&mut text, reason, palette);
    }
    let advice = match verification.state {
        SignedCardState::Verified => "A key that you trust signed exactly this card.",
        SignedCardState::Refused => "Do not rely on this card: no key that you trust signed exactly this card.",
        SignedCardState::Undecided => "Do not rely on this card yet: a root could not be fetched; try again.",
    };
    let _ = writeln!(text, "\n{style}{advice}{style:#}");
    text
}

fn format_signature(checked: &CheckedCardSignature) -> String {
    let foreign = |text: &Option<String>| UntrustedText::new(text.as_deref().unwrap_or("?")).to_string();
    let said = format!("signature {}  {}  kid {}", checked.index, foreign(&checked.alg), foreign(&checked.kid));
    match &checked.outcome {
        CardSignatureOutcome::Verified { root, key, .. } => {
            format!("{said}  holds, by key {key} of {}", UntrustedText::new(root))
        }
        CardSignatureOutcome::Refused(code) => format!("{said}  {code}"),
    }
}
