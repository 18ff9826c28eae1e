//! `explain`: what reason codes mean, and which belong to a requirement.

pub(super) mod guard;

use std::fmt::Write as _;

use anyhow::bail;
use clresolve_core::reason::{FixerRole, ReasonCode, ReasonCodeEntry, ReasonEffect, RefusalCode, ResolutionStep};
use clresolve_core::text::{UntrustedText, nearest_word};
use serde_json::{Value, json};

use self::guard::ClientGuardCode;
use super::args::{ExplainArguments, OutputFormat};
use super::exit::ExitStatus;
use super::output::{OutputSink, ResultWriter};
use super::render::{self, LINE_WIDTH, Palette};

const INDENT: usize = 2;

pub(super) fn run(args: ExplainArguments) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let palette = output.palette();
    let width = output.terminal_width().map_or(LINE_WIDTH, |width| width.saturating_sub(INDENT).min(LINE_WIDTH));
    let all = args.codes.is_empty();
    let codes = if all {
        ReasonCode::ALL.iter().copied().map(ExplainedCode::Reason).collect()
    } else {
        find_explained_codes(&args.codes)?
    };
    let mut results = ResultWriter::for_requested_results(output, args.output.output_format(), codes.len());
    for (i, code) in codes.into_iter().enumerate() {
        let gap = if i > 0 { "\n" } else { "" };
        match code {
            ExplainedCode::Reason(code) => results.push(code.entry(), |format| match format {
                OutputFormat::Text if !all => format!("{gap}{}", format_code_paragraph(code.entry(), width, &palette)),
                _ => format_code_line(code.entry(), &palette),
            })?,
            ExplainedCode::Refusal(refusal) => results.push(&refusal_json(refusal), |format| match format {
                OutputFormat::Text => format!("{gap}{}", explain_refusal(refusal)),
                _ => format!("{:<28} {}\n", refusal.slug(), refusal.title()),
            })?,
            ExplainedCode::Guard(code) => results.push(&code, |format| match format {
                OutputFormat::Text => format!("{gap}{}", explain_guard_code(code)),
                _ => format!("{:<28} {}\n", code.code, code.title),
            })?,
        }
    }
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

/// A code: of what is found about a name, of a request that is refused, or of a guard.
#[derive(Clone, Copy)]
enum ExplainedCode {
    Reason(ReasonCode),
    Refusal(RefusalCode),
    Guard(ClientGuardCode),
}

fn explain_guard_code(ClientGuardCode { code, title, next }: ClientGuardCode) -> String {
    format!(
        "{code}: {title}\n\n  {next}\n  It comes from the guard of an x402 client. The guard did not send this payment.\n"
    )
}

fn refusal_json(refusal: RefusalCode) -> Value {
    json!({"code": refusal, "title": refusal.title(), "type": refusal.uri()})
}

fn explain_refusal(refusal: RefusalCode) -> String {
    let title = refusal.title();
    let next = refusal_next_step(refusal).map(|next| format!("  {next}\n")).unwrap_or_default();
    format!(
        "{refusal}: {title}\n\n{next}  It answers a request or the gate's question, and is never in a verdict on a name.\n"
    )
}

/// What to do about a refusal of the gate.
const fn refusal_next_step(refusal: RefusalCode) -> Option<&'static str> {
    Some(match refusal {
        RefusalCode::VerbWithoutEntry => "Ask for the first verb of the card, or set gate.verbs = \"implemented\".",
        RefusalCode::VerbNotImplemented => "Ask for a verb of the card: `clresolve card NAME` shows it.",
        RefusalCode::NetworkNotListed => "Only a network of the card passes, by its CAIP-2 id such as eip155:1.",
        RefusalCode::HostUnexpected => {
            "Pages of other sites cannot start resolutions. Add the origin of the page, or of the host name under which \
             programs on this machine reach the daemon, to cors.origins. For /mcp there are mcp.origins and mcp.hosts."
        }
        RefusalCode::DeadlinePassed => "Ask again: the resolution continues, and its result is cached.",
        RefusalCode::Unconfirmed => "Ask again: the name is being read at the newest block.",
        RefusalCode::HeadStalled => "`clresolve doctor` shows which endpoints have stopped following the chain.",
        RefusalCode::ProofTooWeak => "Configure endpoints of further operators, or your own (own = true).",
        RefusalCode::RequestAmbiguous => {
            "Send the name in its normal form (`clresolve name NAME` prints it), and no escapes, dots or empty segments behind it."
        }
        _ => return None,
    })
}

fn find_explained_codes(slugs: &[String]) -> anyhow::Result<Vec<ExplainedCode>> {
    let mut codes = Vec::new();
    for slug in slugs {
        let slug = slug.to_ascii_lowercase();
        let required = codes_of_requirement(&slug);
        if !required.is_empty() {
            codes.extend(required);
            continue;
        }
        if is_requirement_id(&slug) {
            bail!(
                "no reason code belongs to the requirement {}; `clresolve explain` lists the codes with theirs",
                slug.to_ascii_uppercase()
            );
        }
        if let Some(refusal) = RefusalCode::ALL.iter().find(|refusal| refusal.slug() == slug) {
            codes.push(ExplainedCode::Refusal(*refusal));
            continue;
        }
        if let Some(code) = guard::CODES.iter().find(|code| code.code == slug) {
            codes.push(ExplainedCode::Guard(*code));
            continue;
        }
        let Some(code) = ReasonCode::from_slug(&slug) else {
            bail!("no reason code is called {}{}", UntrustedText::new(&slug), unknown_code_hint(&slug));
        };
        codes.push(ExplainedCode::Reason(code));
    }
    Ok(codes)
}

/// The codes of a requirement of the checklist, such as `cl-45`.
fn codes_of_requirement(id: &str) -> Vec<ExplainedCode> {
    let codes =
        ReasonCode::ALL.iter().filter(|code| code.entry().requirement.eq_ignore_ascii_case(id) && !id.is_empty());
    codes.copied().map(ExplainedCode::Reason).collect()
}

/// Whether `id` has the form of a requirement: letters, a dash, digits.
fn is_requirement_id(id: &str) -> bool {
    id.split_once('-').is_some_and(|(list, number)| {
        !list.is_empty()
            && list.bytes().all(|b| b.is_ascii_alphabetic())
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// The code that was nearly typed, or else codes that share a word with it.
fn unknown_code_hint(slug: &str) -> String {
    let mut requirements = ReasonCode::ALL.iter().map(|code| code.entry().requirement);
    if let Some(meant) = requirements.find(|id| !id.is_empty() && id.replace('-', "").eq_ignore_ascii_case(slug)) {
        return format!("; did you mean the requirement {meant}?");
    }
    let reasons =
        ReasonCode::ALL.iter().map(|code| code.slug()).chain(RefusalCode::ALL.iter().map(|refusal| refusal.slug()));
    if let Some(near) = nearest_word(slug, reasons.chain(guard::CODES.iter().map(|code| code.code))) {
        return format!("; did you mean {near}? `clresolve explain` lists all");
    }
    let words: Vec<&str> = slug.split('-').filter(|w| w.len() > 2).collect();
    let near: Vec<&str> =
        ReasonCode::ALL.iter().map(|c| c.slug()).filter(|s| s.split('-').any(|w| words.contains(&w))).take(5).collect();
    if near.is_empty() {
        "; `clresolve explain` lists all".to_owned()
    } else {
        format!("; did you mean {}? `clresolve explain` lists all", near.join(", "))
    }
}

fn format_code_line(entry: &ReasonCodeEntry, palette: &Palette) -> String {
    let (effect, step) = (reason_effect_text(entry.effect), entry.step.slug());
    let style = palette.effect_style(entry.effect);
    format!(
        "{:<28} {style}{effect:<8}{style:#} {step:<12} {:<6} {}\n",
        entry.code.slug(),
        entry.requirement,
        entry.title
    )
}

fn format_code_paragraph(entry: &ReasonCodeEntry, width: usize, palette: &Palette) -> String {
    let style = palette.effect_style(entry.effect);
    let mut text = format!("{style}{}{style:#}: {}\n\n", entry.code.slug(), entry.title);
    for line in render::wrap_words(entry.explanation, width) {
        let _ = writeln!(text, "  {line}");
    }
    let requirement = if entry.requirement.is_empty() { "not on the checklist" } else { entry.requirement };
    let again = if entry.retryable { "may help" } else { "does not help" };
    let _ = write!(
        text,
        "\n  effect       {}\n  found in     {}\n  requirement  {requirement}\n  who fixes it {}\n  asking again {again}\n",
        code_effect_meaning(entry),
        entry.step,
        fixer_role_text(entry.fixer),
    );
    text
}

const fn reason_effect_text(effect: ReasonEffect) -> &'static str {
    match effect {
        ReasonEffect::Fail => "fail",
        ReasonEffect::Unknown => "unknown",
        ReasonEffect::Warn => "warn",
    }
}

const fn code_effect_meaning(entry: &ReasonCodeEntry) -> &'static str {
    match (entry.effect, entry.step) {
        (ReasonEffect::Fail, ResolutionStep::Document) => "fail: the card is not valid",
        (ReasonEffect::Fail, ResolutionStep::Signature) => "fail: the signature does not count",
        (ReasonEffect::Fail, ResolutionStep::Payment) => "fail: the payment is denied",
        (ReasonEffect::Fail, ResolutionStep::Request) => "fail: the request must not be sent",
        (ReasonEffect::Unknown, ResolutionStep::Request) => {
            "unknown: it is not known whether the request may be sent, unless something fails"
        }
        (ReasonEffect::Fail, ResolutionStep::Receipt) => "fail: the receipt is untrusted",
        (ReasonEffect::Unknown, ResolutionStep::Receipt) => {
            "unknown: the receipt is indeterminate, unless something fails"
        }
        (ReasonEffect::Unknown, ResolutionStep::Payment) => "unknown: the payment is not made, unless this is settled",
        (ReasonEffect::Unknown, ResolutionStep::Discovery | ResolutionStep::Signature) => {
            "unknown: it cannot be decided"
        }
        (ReasonEffect::Fail, _) => "fail: the verdict is untrusted",
        (ReasonEffect::Unknown, _) => "unknown: the verdict is indeterminate, unless something fails",
        (
            ReasonEffect::Warn,
            ResolutionStep::Document
            | ResolutionStep::Discovery
            | ResolutionStep::Signature
            | ResolutionStep::Payment
            | ResolutionStep::Request
            | ResolutionStep::Receipt,
        ) => "warn: reported, and changes nothing",
        (ReasonEffect::Warn, _) => "warn: reported, and the verdict stays as it is",
    }
}

const fn fixer_role_text(fixer: FixerRole) -> &'static str {
    match fixer {
        FixerRole::Asker => "the one who asks",
        FixerRole::Publisher => "the publisher of the card and its records",
        FixerRole::Operator => "the operator of this resolver",
        FixerRole::Nobody => "nobody: it passes with time",
    }
}
