//! `explain`: what reason codes mean, and which belong to a requirement.

pub(super) mod guard;

use std::fmt::Write as _;

use anyhow::bail;
use clresolve_core::reason::{Code, CodeEntry, Effect, Fixer, Refusal, Step};
use clresolve_core::text::{Foreign, nearest};
use serde_json::{Value, json};

use self::guard::GuardCode;
use super::args::{ExplainArgs, Format};
use super::exit::Exit;
use super::output::{Output, Results};
use super::render::{self, LINE_WIDTH, Palette};

const INDENT: usize = 2;

pub(super) fn run(args: ExplainArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let palette = output.palette();
    let width = output.width().map_or(LINE_WIDTH, |width| width.saturating_sub(INDENT).min(LINE_WIDTH));
    let all = args.codes.is_empty();
    let codes = if all { Code::ALL.iter().copied().map(Explained::Reason).collect() } else { find(&args.codes)? };
    let mut results = Results::named(output, args.output.form(), codes.len());
    for (i, code) in codes.into_iter().enumerate() {
        let gap = if i > 0 { "\n" } else { "" };
        match code {
            Explained::Reason(code) => results.push(code.entry(), |format| match format {
                Format::Text if !all => format!("{gap}{}", paragraph(code.entry(), width, &palette)),
                _ => line(code.entry(), &palette),
            })?,
            Explained::Refusal(refusal) => results.push(&refused(refusal), |format| match format {
                Format::Text => format!("{gap}{}", of_request(refusal)),
                _ => format!("{:<28} {}\n", refusal.slug(), refusal.title()),
            })?,
            Explained::Guard(code) => results.push(&code, |format| match format {
                Format::Text => format!("{gap}{}", of_guard(code)),
                _ => format!("{:<28} {}\n", code.code, code.title),
            })?,
        }
    }
    results.finish()?;
    Ok(Exit::Trusted)
}

/// A code: of what is found about a name, of a request that is refused, or of a guard.
#[derive(Clone, Copy)]
enum Explained {
    Reason(Code),
    Refusal(Refusal),
    Guard(GuardCode),
}

fn of_guard(GuardCode { code, title, next }: GuardCode) -> String {
    format!(
        "{code}: {title}\n\n  {next}\n  It comes from the guard of an x402 client. The guard did not send this payment.\n"
    )
}

fn refused(refusal: Refusal) -> Value {
    json!({"code": refusal, "title": refusal.title(), "type": refusal.uri()})
}

fn of_request(refusal: Refusal) -> String {
    let title = refusal.title();
    let next = next_step(refusal).map(|next| format!("  {next}\n")).unwrap_or_default();
    format!(
        "{refusal}: {title}\n\n{next}  It answers a request or the gate's question, and is never in a verdict on a name.\n"
    )
}

/// What to do about a refusal of the gate.
const fn next_step(refusal: Refusal) -> Option<&'static str> {
    Some(match refusal {
        Refusal::VerbWithoutEntry => "Ask for the first verb of the card, or set gate.verbs = \"implemented\".",
        Refusal::VerbNotImplemented => "Ask for a verb of the card: `clresolve card NAME` shows it.",
        Refusal::NetworkNotListed => "Only a network of the card passes, by its CAIP-2 id such as eip155:1.",
        Refusal::HostUnexpected => {
            "Pages of other sites cannot start resolutions. Add the origin of the page, or of the host name under which \
             programs on this machine reach the daemon, to cors.origins. For /mcp there are mcp.origins and mcp.hosts."
        }
        Refusal::DeadlinePassed => "Ask again: the resolution continues, and its result is cached.",
        Refusal::Unconfirmed => "Ask again: the name is being read at the newest block.",
        Refusal::HeadStalled => "`clresolve doctor` shows which endpoints have stopped following the chain.",
        Refusal::ProofTooWeak => "Configure endpoints of further operators, or your own (own = true).",
        Refusal::RequestAmbiguous => {
            "Send the name in its normal form (`clresolve name NAME` prints it), and no escapes, dots or empty segments behind it."
        }
        _ => return None,
    })
}

fn find(slugs: &[String]) -> anyhow::Result<Vec<Explained>> {
    let mut codes = Vec::new();
    for slug in slugs {
        let slug = slug.to_ascii_lowercase();
        let required = of_requirement(&slug);
        if !required.is_empty() {
            codes.extend(required);
            continue;
        }
        if is_requirement(&slug) {
            bail!(
                "no reason code belongs to the requirement {}; `clresolve explain` lists the codes with theirs",
                slug.to_ascii_uppercase()
            );
        }
        if let Some(refusal) = Refusal::ALL.iter().find(|refusal| refusal.slug() == slug) {
            codes.push(Explained::Refusal(*refusal));
            continue;
        }
        if let Some(code) = guard::CODES.iter().find(|code| code.code == slug) {
            codes.push(Explained::Guard(*code));
            continue;
        }
        let Some(code) = Code::from_slug(&slug) else {
            bail!("no reason code is called {}{}", Foreign::new(&slug), hint(&slug));
        };
        codes.push(Explained::Reason(code));
    }
    Ok(codes)
}

/// The codes of a requirement of the checklist, such as `cl-45`.
fn of_requirement(id: &str) -> Vec<Explained> {
    let codes = Code::ALL.iter().filter(|code| code.entry().requirement.eq_ignore_ascii_case(id) && !id.is_empty());
    codes.copied().map(Explained::Reason).collect()
}

/// Whether `id` has the form of a requirement: letters, a dash, digits.
fn is_requirement(id: &str) -> bool {
    id.split_once('-').is_some_and(|(list, number)| {
        !list.is_empty()
            && list.bytes().all(|b| b.is_ascii_alphabetic())
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// The code that was nearly typed, or else codes that share a word with it.
fn hint(slug: &str) -> String {
    let mut requirements = Code::ALL.iter().map(|code| code.entry().requirement);
    if let Some(meant) = requirements.find(|id| !id.is_empty() && id.replace('-', "").eq_ignore_ascii_case(slug)) {
        return format!("; did you mean the requirement {meant}?");
    }
    let reasons = Code::ALL.iter().map(|code| code.slug()).chain(Refusal::ALL.iter().map(|refusal| refusal.slug()));
    if let Some(near) = nearest(slug, reasons.chain(guard::CODES.iter().map(|code| code.code))) {
        return format!("; did you mean {near}? `clresolve explain` lists all");
    }
    let words: Vec<&str> = slug.split('-').filter(|w| w.len() > 2).collect();
    let near: Vec<&str> =
        Code::ALL.iter().map(|c| c.slug()).filter(|s| s.split('-').any(|w| words.contains(&w))).take(5).collect();
    if near.is_empty() {
        "; `clresolve explain` lists all".to_owned()
    } else {
        format!("; did you mean {}? `clresolve explain` lists all", near.join(", "))
    }
}

fn line(entry: &CodeEntry, palette: &Palette) -> String {
    let (effect, step) = (effect(entry.effect), entry.step.slug());
    let style = palette.effect(entry.effect);
    format!(
        "{:<28} {style}{effect:<8}{style:#} {step:<12} {:<6} {}\n",
        entry.code.slug(),
        entry.requirement,
        entry.title
    )
}

fn paragraph(entry: &CodeEntry, width: usize, palette: &Palette) -> String {
    let style = palette.effect(entry.effect);
    let mut text = format!("{style}{}{style:#}: {}\n\n", entry.code.slug(), entry.title);
    for line in render::wrapped(entry.explanation, width) {
        let _ = writeln!(text, "  {line}");
    }
    let requirement = if entry.requirement.is_empty() { "not on the checklist" } else { entry.requirement };
    let again = if entry.retryable { "may help" } else { "does not help" };
    let _ = write!(
        text,
        "\n  effect       {}\n  found in     {}\n  requirement  {requirement}\n  who fixes it {}\n  asking again {again}\n",
        meaning(entry),
        entry.step,
        fixer(entry.fixer),
    );
    text
}

const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail",
        Effect::Unknown => "unknown",
        Effect::Warn => "warn",
    }
}

const fn meaning(entry: &CodeEntry) -> &'static str {
    match (entry.effect, entry.step) {
        (Effect::Fail, Step::Document) => "fail: the card is not valid",
        (Effect::Fail, Step::Signature) => "fail: the signature does not count",
        (Effect::Fail, Step::Payment) => "fail: the payment is denied",
        (Effect::Fail, Step::Request) => "fail: the request must not be sent",
        (Effect::Unknown, Step::Request) => {
            "unknown: it is not known whether the request may be sent, unless something fails"
        }
        (Effect::Fail, Step::Receipt) => "fail: the receipt is untrusted",
        (Effect::Unknown, Step::Receipt) => "unknown: the receipt is indeterminate, unless something fails",
        (Effect::Unknown, Step::Payment) => "unknown: the payment is not made, unless this is settled",
        (Effect::Unknown, Step::Discovery | Step::Signature) => "unknown: it cannot be decided",
        (Effect::Fail, _) => "fail: the verdict is untrusted",
        (Effect::Unknown, _) => "unknown: the verdict is indeterminate, unless something fails",
        (
            Effect::Warn,
            Step::Document | Step::Discovery | Step::Signature | Step::Payment | Step::Request | Step::Receipt,
        ) => "warn: reported, and changes nothing",
        (Effect::Warn, _) => "warn: reported, and the verdict stays as it is",
    }
}

const fn fixer(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "the one who asks",
        Fixer::Publisher => "the publisher of the card and its records",
        Fixer::Operator => "the operator of this resolver",
        Fixer::Nobody => "nobody: it passes with time",
    }
}
