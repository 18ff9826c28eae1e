//! `decide`: decides once whether terms may be paid, as the daemon does.

use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_core::reason::Reason;
use clresolve_core::text::UntrustedText;
use clresolve_payment::decide::PaymentOptionSelection;
use clresolve_payment::decision::{DecisionOutcome, PaymentDecision, PaymentOptionResult};
use clresolve_payment::limits::CallerLimits;
use clresolve_payment::request::{PaymentDecisionRequest, PaymentDemand};
use clresolve_payment::signed::MAX_HEADER_BYTES;
use clresolve_payment::terms::{MAX_TERMS_BYTES, MAX_VALUE_BYTES, SellerHttpReply};
use serde_json::Value;

use super::args::{DecideArguments, OutputFormat};
use super::exit::ExitStatus;
use super::input::{STDIN, read_file_or_stdin};
use super::output::{OutputSink, ResultWriter};
use super::progress::ProgressLine;
use super::verify::verify_progress_message;
use super::world::CommandContext;

pub(super) fn run(args: DecideArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(write_payment_decision(args))
}

async fn write_payment_decision(args: DecideArguments) -> anyhow::Result<ExitStatus> {
    let mut results = ResultWriter::for_single_result(OutputSink::new(&args.output.out)?, args.output.output_format());
    let request = read_decision_request(&args)?;
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open_for_payment_command(&args.world).await?;
    world.require_current_judgement()?;
    let decision = world.resolver.decide_payment(&request).await;
    drop(progress);
    results.push(&decision, |format| match format {
        OutputFormat::Text => format_payment_decision(&decision),
        _ => format_decision_line(&decision),
    })?;
    results.finish()?;
    Ok(decision_exit_status(decision.decision))
}

pub(super) fn format_payment_decision(decision: &PaymentDecision) -> String {
    let mut lines = vec![format!("{}", decision.decision)];
    if let Some(route) = &decision.route {
        lines.push(format!("route {} ({})", UntrustedText::new(route.url().as_str()), route.source()));
    }
    lines.extend(payment_option_lines(&decision.entries));
    for reason in further_decision_reasons(decision) {
        lines.push(format!("{}: {}", reason.code, UntrustedText::new(&reason.message)));
    }
    lines.push(decision_conclusion(decision));
    lines.join("\n") + "\n"
}

/// One line per entry, if there are several.
pub(super) fn payment_option_lines(entries: &[PaymentOptionResult]) -> impl Iterator<Item = String> {
    entries.iter().filter(|_| entries.len() > 1).map(|row| {
        let said = if row.abort { row.codes.join(", ") } else { "may be paid".to_owned() };
        format!("entry {}: {said}", row.index)
    })
}

/// The reasons except the one in the last line.
pub(super) fn further_decision_reasons(decision: &PaymentDecision) -> impl Iterator<Item = &Reason> {
    reasons_except_code(&decision.reasons, concluding_reason_code(decision))
}

/// The reasons except the one in the last line, which starts with the code `concluding`.
pub(super) fn reasons_except_code<'a>(
    reasons: &'a [Reason],
    concluding: Option<&str>,
) -> impl Iterator<Item = &'a Reason> {
    let at = reasons.iter().position(|reason| concluding.is_some_and(|code| code == reason.code.slug()));
    reasons.iter().enumerate().filter(move |(index, _)| Some(*index) != at).map(|(_, reason)| reason)
}

/// The last line: what is paid to whom, or the first reason against it.
pub(super) fn decision_conclusion(decision: &PaymentDecision) -> String {
    decision_conclusion_line(&decision.reason, concluding_reason_code(decision))
}

/// The last line for this reason. `concluding` is the code of a reason against the payment.
pub(super) fn decision_conclusion_line(reason: &str, concluding: Option<&str>) -> String {
    let reason = UntrustedText::new(reason);
    match concluding {
        Some(code) => format!("Do not pay. {reason} `clresolve explain {code}` says more."),
        None => reason.to_string(),
    }
}

/// The code at the start of a negative decision's sentence.
fn concluding_reason_code(decision: &PaymentDecision) -> Option<&str> {
    decision.codes.first().filter(|_| decision.abort).map(String::as_str)
}

pub(super) fn format_decision_line(decision: &PaymentDecision) -> String {
    let name = UntrustedText::new(&decision.name);
    format!("{name}\t{}\t{}\n", decision.decision, decision.codes.join(","))
}

pub(super) const fn decision_exit_status(outcome: DecisionOutcome) -> ExitStatus {
    match outcome {
        DecisionOutcome::Allow => ExitStatus::Trusted,
        DecisionOutcome::Deny => ExitStatus::Untrusted,
        DecisionOutcome::Undecided => ExitStatus::Indeterminate,
    }
}

fn read_decision_request(args: &DecideArguments) -> anyhow::Result<PaymentDecisionRequest> {
    let is_stdin = |path: &Path| path == Path::new(STDIN);
    if is_stdin(&args.terms) && args.signed.as_deref().is_some_and(is_stdin) {
        bail!("--terms and --signed cannot both be read from standard input; name a file for one");
    }
    let header = match &args.signed {
        Some(path) => {
            let bytes = read_file_or_stdin(path, MAX_HEADER_BYTES).context("--signed")?;
            Some(String::from_utf8(bytes).context("--signed: expected text")?.trim().to_owned())
        }
        None => None,
    };
    let bytes = read_file_or_stdin(&args.terms, MAX_VALUE_BYTES).context("--terms")?;
    Ok(PaymentDecisionRequest {
        name: args.name.clone(),
        verb: args.verb.clone(),
        demand: detect_demand_format(bytes),
        url: Some(args.url.clone()),
        selected: args.select.map(PaymentOptionSelection::Index),
        limits: CallerLimits { max_amount: args.max_amount, ..CallerLimits::default() },
        header,
    })
}

/// Detects the format of a file with terms: version 2 terms in JSON, the body of a 402, or a header value.
fn detect_demand_format(bytes: Vec<u8>) -> PaymentDemand {
    let text = String::from_utf8_lossy(&bytes);
    if !text.trim_start().starts_with('{') {
        let headers = vec![("payment-required".to_owned(), text.trim().to_owned())];
        return PaymentDemand::Reply(SellerHttpReply { status: PAYMENT_REQUIRED, headers, body: Vec::new() });
    }
    match clresolve_core::json::parse_strict_json(&bytes, JSON) {
        Ok(value) if value.get("x402Version") == Some(&Value::from(2)) => {
            PaymentDemand::PaymentRequired(text.into_owned())
        }
        _ => {
            PaymentDemand::Reply(SellerHttpReply { status: PAYMENT_REQUIRED, headers: Vec::new(), body: bytes.clone() })
        }
    }
}

/// The status of every reply with terms.
const PAYMENT_REQUIRED: u16 = 402;

/// Limits for JSON. Deeper documents are treated as bodies, whose parser rejects them.
const JSON: clresolve_core::json::JsonLimits = clresolve_core::json::JsonLimits {
    bytes: MAX_TERMS_BYTES + 1,
    levels: 32,
    ..clresolve_core::json::JsonLimits::CARD
};
