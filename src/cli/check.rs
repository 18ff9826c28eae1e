//! `check`: who would be paid at a URL, and what proves it. The seller is asked without paying.

use std::path::Path;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use clresolve_core::reason::ReasonEffect;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_payment::check::{
    PayeeEvidenceKind, PayeeEvidenceRow, PayeeEvidenceState, SellerCheckDocument, SellerCheckRequest,
    SellerIdentitySource,
};
use clresolve_payment::decision::DecisionOutcome;
use clresolve_resolver::config::HostPort;
use clresolve_resolver::resolve::{EMPTY, SellerUrl};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_sandbox::sellers::ExpectedSellerCheck;

use super::args::{OutputFormat, ProbeMethod, SellerCheckArguments};
use super::decide::{decision_conclusion_line, decision_exit_status, payment_option_lines, reasons_except_code};
use super::exit::ExitStatus;
use super::input::read_file_or_stdin;
use super::output::{OutputSink, ResultWriter};
use super::probe::payment_demand_lines;
use super::progress::ProgressLine;
use super::render::Palette;
use super::world::CommandContext;

/// Maximum number of bytes of the body that is sent.
const MAX_BODY_BYTES: usize = 256 << 10;

const NOTHING_PAID: &str = "Nothing was paid. Only a guard judges the reply that is paid.";

pub(super) fn run(args: SellerCheckArguments) -> anyhow::Result<ExitStatus> {
    match &args.url {
        Some(url) if !args.list => {
            let url = url.clone();
            super::runtime::run_async_until_interrupt(check_seller(args, url))
        }
        _ => list_sandbox_sellers(args),
    }
}

async fn check_seller(args: SellerCheckArguments, url: SellerUrl) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let palette = output.palette();
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    let body = read_post_body(args.method, args.body.as_deref())?;
    let progress = ProgressLine::start(format!("asking {}", UntrustedText::new(url.as_str())));
    let world = CommandContext::open_for_payment_command(&args.world).await?;
    world.require_current_judgement()?;
    reject_plain_http(&url, &world.config.network.allow_hosts)?;
    let answered = world.resolver.request_seller_terms(&url, body).await;
    let request = SellerCheckRequest { name: args.name, verb: args.verb, ..answered };
    let check = world.resolver.check_seller(&request).await;
    drop(progress);
    let demanded = payment_demand_lines(request.parse_terms().as_ref().ok(), &world.config.limits.payment_limits());
    results.push(&check, |format| match format {
        OutputFormat::Text => format_seller_check(&url, &check, demanded, &palette),
        _ => format!("{}\t{}\t{}\n", UntrustedText::new(url.as_str()), check.decision, check.codes.join(",")),
    })?;
    results.finish()?;
    Ok(decision_exit_status(check.decision))
}

/// The body of a POST, or `None` for a GET.
fn read_post_body(method: Option<ProbeMethod>, file: Option<&Path>) -> anyhow::Result<Option<Bytes>> {
    let Some(file) = file else {
        return Ok((method == Some(ProbeMethod::Post)).then(|| Bytes::from_static(EMPTY.as_bytes())));
    };
    if method == Some(ProbeMethod::Get) {
        bail!("--body: a GET has no body; leave out --method get");
    }
    let bytes = read_file_or_stdin(file, MAX_BODY_BYTES).context("--body")?;
    if bytes.len() > MAX_BODY_BYTES {
        bail!("--body: expected at most {} KiB", MAX_BODY_BYTES >> 10);
    }
    Ok(Some(bytes.into()))
}

/// Rejects plain http, except to sellers on this machine that `network.allow_hosts` lists.
fn reject_plain_http(url: &SellerUrl, allowed: &[HostPort]) -> anyhow::Result<()> {
    match url.plain_http_host() {
        Some(host) if !allowed.iter().any(|named| named.to_string() == host) => {
            bail!(
                "sellers are queried over https; for plain http to this one, add --allow-host {}",
                UntrustedText::new(&host)
            )
        }
        _ => Ok(()),
    }
}

/// The decision, a row for each kind of evidence, what is demanded, and the conclusion.
fn format_seller_check(
    url: &SellerUrl,
    check: &SellerCheckDocument,
    demanded: Vec<String>,
    palette: &Palette,
) -> String {
    let style = palette.state_style(match check.decision {
        DecisionOutcome::Allow => TrustState::Trusted,
        DecisionOutcome::Deny => TrustState::Untrusted,
        DecisionOutcome::Undecided => TrustState::Indeterminate,
    });
    let mut lines = vec![format!("{style}{}{style:#}  {}", check.decision, UntrustedText::new(url.as_str()))];
    lines.extend(check.evidence.iter().map(|row| payee_evidence_line(row, palette)));
    lines.extend(seller_identity_text(check));
    lines.extend(demanded);
    lines.extend(payment_option_lines(&check.entries));
    let concluding = check.codes.first().filter(|_| check.abort).map(String::as_str);
    for reason in reasons_except_code(&check.reasons, concluding) {
        lines.push(format!("{}: {}", reason.code, UntrustedText::new(&reason.message)));
    }
    lines.push(format!("{style}{}{style:#}", decision_conclusion_line(&check.reason, concluding)));
    lines.push(NOTHING_PAID.to_owned());
    lines.join("\n") + "\n"
}

/// The identity and who names it, and the evidence that proves the payee.
fn seller_identity_text(check: &SellerCheckDocument) -> Option<String> {
    let proves =
        |row: &&PayeeEvidenceRow| row.state == PayeeEvidenceState::Proven && row.kind != PayeeEvidenceKind::History;
    let kinds: Vec<_> = check.evidence.iter().filter(proves).map(|row| row.kind.as_str()).collect();
    let named = check.identity.as_ref().map(|named| {
        let by = match named.named_by {
            SellerIdentitySource::Configuration => "the configuration",
            SellerIdentitySource::Caller => "the caller",
            SellerIdentitySource::Memory => "the memory",
            SellerIdentitySource::Seller => "the seller alone",
        };
        format!("{}, named by {by}", UntrustedText::new(&named.identity.to_string()))
    });
    match (kinds.is_empty(), named) {
        (false, Some(named)) => Some(format!("  payee proven by {}: {named}", kinds.join(" and "))),
        (_, named) => named.map(|named| format!("  identity: {named}")),
    }
}

fn payee_evidence_line(row: &PayeeEvidenceRow, palette: &Palette) -> String {
    let style = match row.state {
        PayeeEvidenceState::Proven => palette.state_style(TrustState::Trusted),
        PayeeEvidenceState::Claimed | PayeeEvidenceState::Undecided => palette.state_style(TrustState::Indeterminate),
        PayeeEvidenceState::Contradicted => palette.state_style(TrustState::Untrusted),
        PayeeEvidenceState::Absent => palette.effect_style(ReasonEffect::Warn),
    };
    let state = row.state.as_str();
    format!("  {:<8} {style}{state:<12}{style:#} {}", row.kind.as_str(), UntrustedText::new(&row.detail))
}

/// Lists each seller of the sandbox with the decision that it should get. Does not start the sandbox.
fn list_sandbox_sellers(args: SellerCheckArguments) -> anyhow::Result<ExitStatus> {
    let mut results = ResultWriter::for_result_list(OutputSink::new(&args.output.out)?, args.output.output_format());
    for seller in Sandbox::expected_seller_checks() {
        results.push(&seller, |_| format_seller_expectation(&seller))?;
    }
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

fn format_seller_expectation(seller: &ExpectedSellerCheck) -> String {
    let (url, name) = (UntrustedText::new(&seller.url), UntrustedText::new(seller.name.as_deref().unwrap_or_default()));
    let line = format!("{:<10} {:<56} {name}", seller.decision, url.to_string());
    format!("{}\n", line.trim_end())
}
