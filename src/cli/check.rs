//! `check`: who would be paid at a URL, and what proves it. The seller is asked without paying.

use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clresolve_core::reason::Effect;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_payment::check::{CheckAnswer, CheckRequest, EvidenceKind, EvidenceRow, EvidenceState, NamedBy};
use clresolve_payment::decision::Outcome;
use clresolve_resolver::config::OriginSpec;
use clresolve_resolver::resolve::{EMPTY, SellerUrl};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_sandbox::sellers::ExpectedSeller;

use super::args::{Format, ProbeMethod, SellerCheckArgs};
use super::decide::{conclusion_line, entry_lines, exit, other_reasons};
use super::exit::Exit;
use super::input::read;
use super::output::{Output, Results};
use super::probe::demanded;
use super::progress::Progress;
use super::render::Palette;
use super::world::World;

/// Maximum number of bytes of the body that is sent.
const MAX_BODY_BYTES: usize = 256 << 10;

const NOTHING_PAID: &str = "Nothing was paid. Only a guard judges the reply that is paid.";

pub(super) fn run(args: SellerCheckArgs) -> anyhow::Result<Exit> {
    match &args.url {
        Some(url) if !args.list => {
            let url = url.clone();
            super::runtime::run_async(check(args, url))
        }
        _ => list(args),
    }
}

async fn check(args: SellerCheckArgs, url: SellerUrl) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let palette = output.palette();
    let mut results = Results::one(output, args.output.form());
    let body = body(args.method, args.body.as_deref())?;
    let progress = Progress::start(format!("asking {}", Foreign::new(url.as_str())));
    let world = World::open_for_payers(&args.world).await?;
    world.check_now()?;
    permit(&url, &world.config.network.allow_hosts)?;
    let answered = world.resolver.ask_seller(&url, body).await;
    let request = CheckRequest { name: args.name, verb: args.verb, ..answered };
    let check = world.resolver.check(&request).await;
    drop(progress);
    let demanded = demanded(request.terms().as_ref().ok(), &world.config.limits.limits());
    results.push(&check, |format| match format {
        Format::Text => text(&url, &check, demanded, &palette),
        _ => format!("{}\t{}\t{}\n", Foreign::new(url.as_str()), check.decision, check.codes.join(",")),
    })?;
    results.finish()?;
    Ok(exit(check.decision))
}

/// The body of a POST, or `None` for a GET.
fn body(method: Option<ProbeMethod>, file: Option<&Path>) -> anyhow::Result<Option<Bytes>> {
    let Some(file) = file else {
        return Ok((method == Some(ProbeMethod::Post)).then(|| Bytes::from_static(EMPTY.as_bytes())));
    };
    if method == Some(ProbeMethod::Get) {
        bail!("--body: a GET has no body; leave out --method get");
    }
    let bytes = read(file, MAX_BODY_BYTES).context("--body")?;
    if bytes.len() > MAX_BODY_BYTES {
        bail!("--body: expected at most {} KiB", MAX_BODY_BYTES >> 10);
    }
    Ok(Some(bytes.into()))
}

/// Rejects plain http, except to sellers on this machine that `network.allow_hosts` lists.
fn permit(url: &SellerUrl, allowed: &[OriginSpec]) -> anyhow::Result<()> {
    match url.plain_host() {
        Some(host) if !allowed.iter().any(|named| named.to_string() == host) => {
            bail!(
                "sellers are queried over https; for plain http to this one, add --allow-host {}",
                Foreign::new(&host)
            )
        }
        _ => Ok(()),
    }
}

/// The decision, a row for each kind of evidence, what is demanded, and the conclusion.
fn text(url: &SellerUrl, check: &CheckAnswer, demanded: Vec<String>, palette: &Palette) -> String {
    let style = palette.state(match check.decision {
        Outcome::Allow => State::Trusted,
        Outcome::Deny => State::Untrusted,
        Outcome::Undecided => State::Indeterminate,
    });
    let mut lines = vec![format!("{style}{}{style:#}  {}", check.decision, Foreign::new(url.as_str()))];
    lines.extend(check.evidence.iter().map(|row| evidence_line(row, palette)));
    lines.extend(identity(check));
    lines.extend(demanded);
    lines.extend(entry_lines(&check.entries));
    let concluding = check.codes.first().filter(|_| check.abort).map(String::as_str);
    for reason in other_reasons(&check.reasons, concluding) {
        lines.push(format!("{}: {}", reason.code, Foreign::new(&reason.message)));
    }
    lines.push(format!("{style}{}{style:#}", conclusion_line(&check.reason, concluding)));
    lines.push(NOTHING_PAID.to_owned());
    lines.join("\n") + "\n"
}

/// The identity and who names it, and the evidence that proves the payee.
fn identity(check: &CheckAnswer) -> Option<String> {
    let proves = |row: &&EvidenceRow| row.state == EvidenceState::Proven && row.kind != EvidenceKind::History;
    let kinds: Vec<_> = check.evidence.iter().filter(proves).map(|row| row.kind.as_str()).collect();
    let named = check.identity.as_ref().map(|named| {
        let by = match named.named_by {
            NamedBy::Configuration => "the configuration",
            NamedBy::Caller => "the caller",
            NamedBy::Memory => "the memory",
            NamedBy::Seller => "the seller alone",
        };
        format!("{}, named by {by}", Foreign::new(&named.identity.to_string()))
    });
    match (kinds.is_empty(), named) {
        (false, Some(named)) => Some(format!("  payee proven by {}: {named}", kinds.join(" and "))),
        (_, named) => named.map(|named| format!("  identity: {named}")),
    }
}

fn evidence_line(row: &EvidenceRow, palette: &Palette) -> String {
    let style = match row.state {
        EvidenceState::Proven => palette.state(State::Trusted),
        EvidenceState::Claimed | EvidenceState::Undecided => palette.state(State::Indeterminate),
        EvidenceState::Contradicted => palette.state(State::Untrusted),
        EvidenceState::Absent => palette.effect(Effect::Warn),
    };
    let state = row.state.as_str();
    format!("  {:<8} {style}{state:<12}{style:#} {}", row.kind.as_str(), Foreign::new(&row.detail))
}

/// Lists each seller of the sandbox with the decision that it should get. Does not start the sandbox.
fn list(args: SellerCheckArgs) -> anyhow::Result<Exit> {
    let mut results = Results::list(Output::new(&args.output.out)?, args.output.form());
    for seller in Sandbox::sellers() {
        results.push(&seller, |_| line(&seller))?;
    }
    results.finish()?;
    Ok(Exit::Trusted)
}

fn line(seller: &ExpectedSeller) -> String {
    let (url, name) = (Foreign::new(&seller.url), Foreign::new(seller.name.as_deref().unwrap_or_default()));
    let line = format!("{:<10} {:<56} {name}", seller.decision, url.to_string());
    format!("{}\n", line.trim_end())
}
