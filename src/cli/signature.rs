//! `signature`: signs A2A cards, and verifies their signatures.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_cards::lint::MAX_BYTES;
use clresolve_cards::signature::{
    CardKey, CardVerification, CheckedSignature, Root, SignatureOutcome, SignatureState, TrustRoots, names_key,
    sign_text, verify,
};
use clresolve_cards::system::{CardSystem, Detection, detect};
use clresolve_core::name::EnsName;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_discover::{RootSource, trust_root};
use clresolve_resolver::sign;
use clresolve_verdict::card::Card;
use serde::Serialize;

use super::args::{Format, SignCardArgs, SignatureCommand, SignatureVerifyArgs};
use super::exit::Exit;
use super::input::read;
use super::key;
use super::notice;
use super::output::{Output, Results};
use super::render::{Palette, write_reason};
use super::world::World;

/// Maximum size of a key file, in bytes: far more than 64 keys need.
const MAX_KEYS_BYTES: usize = 256 * 1024;

fn sign(args: SignCardArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.out)?;
    let pem = sign::private_text(&args.key)?;
    let mut key = CardKey::from_pem(&pem).with_context(|| args.key.display().to_string())?;
    if let Some(kid) = args.kid {
        key = key.named(kid);
    }
    if let Some(jku) = args.jku {
        key = key.at(jku);
    }
    let text = String::from_utf8(read(&args.card, MAX_BYTES)?).context("the card is not UTF-8")?;
    let card = Card::parse(text.as_bytes()).ok();
    if card.as_ref().is_some_and(|card| names_key(card.document(), &key)) {
        notice::note(format_args!(
            "clresolve: the card already has a signature by this key, which is kept; remove it if the card has changed since"
        ));
    }
    let is_a2a = |card: &Card| matches!(detect(card), Detection::One(CardSystem::A2a | CardSystem::Orloj));
    if !card.as_ref().is_some_and(is_a2a) {
        notice::note(format_args!(
            "clresolve: this does not look like an A2A card; it is signed anyway (`clresolve cards project NAME` makes one from a trusted name)"
        ));
    }
    let signed = sign_text(&text, &key).map_err(|error| anyhow::anyhow!("{}", Foreign::new(&error.to_string())))?;
    output.write_whole(signed.as_bytes())?;
    Ok(Exit::Trusted)
}

pub(super) fn run(command: SignatureCommand) -> anyhow::Result<Exit> {
    match command {
        SignatureCommand::Sign(args) => sign(args),
        SignatureCommand::Verify(args) => super::runtime::run_async(check(*args)),
        SignatureCommand::Key(command) => key::run(command),
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    verification: &'a CardVerification,
    roots: Vec<String>,
}

async fn check(args: SignatureVerifyArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let palette = output.palette();
    let name = args.card.display().to_string();
    let bytes = read(&args.card, MAX_BYTES)?;
    let roots = roots(&args).await?;
    let card = match Card::parse(&bytes) {
        Ok(card) => card,
        Err(error) => {
            anstream::eprintln!("clresolve: card rejected: {}", Foreign::new(&error.to_string()));
            return Ok(Exit::Untrusted);
        }
    };
    let verification = verify(card.document(), &roots);
    let labels = roots.iter().map(|root| root.label().to_owned()).collect();
    let answer = Answer { verification: &verification, roots: labels };
    let mut results = Results::one(output, args.output.form());
    results.push(&answer, |format| match format {
        Format::Short => short(&verification, &name, &palette),
        _ => people(&verification, &name, &palette),
    })?;
    results.finish()?;
    Ok(verdict_of(verification.state).into())
}

/// The roots in the options. Only those that are not files are fetched.
async fn roots(args: &SignatureVerifyArgs) -> anyhow::Result<TrustRoots> {
    let mut sources = Vec::new();
    let mut roots = Vec::new();
    for place in &args.jwks {
        match place.split_once("://") {
            Some(("https", _)) => sources.push(RootSource::Url(place.clone())),
            Some(_) => bail!("--jwks {}: expected a file or an https URL", Foreign::new(place)),
            None => roots.push(of_file(place)?),
        }
    }
    sources.extend(args.did.iter().cloned().map(RootSource::Did));
    for name in &args.ens {
        let name =
            EnsName::parse(name).map_err(|error| anyhow::anyhow!("--ens: {}", Foreign::new(&error.to_string())))?;
        sources.push(RootSource::Ens(name));
    }
    if !sources.is_empty() {
        let world = World::open(&args.world).await?;
        for source in &sources {
            roots.push(trust_root(&world.resolver, source).await);
        }
    }
    Ok(TrustRoots::new(roots)?)
}

/// Reads the key set in a file. An unusable one is a usage error, not a finding about the card.
fn of_file(path: &str) -> anyhow::Result<Root> {
    let shown = || format!("--jwks {}", Foreign::new(path));
    let keys = read(Path::new(path), MAX_KEYS_BYTES).with_context(shown)?;
    if keys.len() > MAX_KEYS_BYTES {
        bail!("{}: a key set has at most {MAX_KEYS_BYTES} bytes", shown());
    }
    Root::from_jwks(path, &keys).with_context(shown)
}

const fn verdict_of(state: SignatureState) -> State {
    match state {
        SignatureState::Verified => State::Trusted,
        SignatureState::Refused => State::Untrusted,
        SignatureState::Undecided => State::Indeterminate,
    }
}

const fn word(state: SignatureState) -> &'static str {
    match state {
        SignatureState::Verified => "verified",
        SignatureState::Refused => "refused",
        SignatureState::Undecided => "undecided",
    }
}

fn short(verification: &CardVerification, name: &str, palette: &Palette) -> String {
    let style = palette.state(verdict_of(verification.state));
    let mut codes: Vec<&str> = verification.reasons.iter().map(|reason| reason.code.slug()).collect();
    codes.dedup();
    format!("{style}{}{style:#}  {}  {}\n", word(verification.state), Foreign::new(name), codes.join(","))
}

fn people(verification: &CardVerification, name: &str, palette: &Palette) -> String {
    let style = palette.state(verdict_of(verification.state));
    let mut text = format!("{style}{}{style:#}  {}\n", word(verification.state), Foreign::new(name));
    for checked in &verification.signatures {
        let _ = writeln!(text, "  {}", line(checked));
    }
    if !verification.reasons.is_empty() {
        text.push('\n');
    }
    for reason in &verification.reasons {
        write_reason(&mut text, reason, palette);
    }
    let advice = match verification.state {
        SignatureState::Verified => "A key that you trust signed exactly this card.",
        SignatureState::Refused => "Do not rely on this card: no key that you trust signed exactly this card.",
        SignatureState::Undecided => "Do not rely on this card yet: a root could not be fetched; try again.",
    };
    let _ = writeln!(text, "\n{style}{advice}{style:#}");
    text
}

fn line(checked: &CheckedSignature) -> String {
    let foreign = |text: &Option<String>| Foreign::new(text.as_deref().unwrap_or("?")).to_string();
    let said = format!("signature {}  {}  kid {}", checked.index, foreign(&checked.alg), foreign(&checked.kid));
    match &checked.outcome {
        SignatureOutcome::Verified { root, key, .. } => {
            format!("{said}  holds, by key {key} of {}", Foreign::new(root))
        }
        SignatureOutcome::Refused(code) => format!("{said}  {code}"),
    }
}
