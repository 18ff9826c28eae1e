//! `receipt`: verifies receipts that agents sent.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clresolve_bundle::purchase::PurchaseDocuments;
use clresolve_bundle::signed::{ExpectedVerdict, MAX_JWS_BYTES};
use clresolve_core::digest::Digest;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_messages::receipt::judge::StepStatus;
use clresolve_messages::receipt::{MAX_BYTES, ReceiptVerificationDocument};
use clresolve_payment::request::MAX_REQUEST_BYTES;
use clresolve_payment::settlement::{MAX_DECISION_BYTES, PurchasePaymentDocuments};
use clresolve_payment::signed::MAX_HEADER_BYTES;
use clresolve_resolver::clock::{Clock as _, SystemClock};
use clresolve_resolver::config::ConfigLayer;
use clresolve_resolver::resolve::{ExportError, NameQuestion as AgentQuestion};
use clresolve_resolver::sign::{
    ExpectedReceiptResult, VerifiedReceiptResult, read_trusted_keys, sign_receipt_result, verify_signed_receipt_result,
};

use super::args::{
    NetworkArguments, OutputFileArguments, OutputFormat, PurchaseEvidenceArguments, ReceiptCommand,
    ReceiptVerdictCheckArguments, ReceiptVerifyArguments, VerdictOutputFormat,
};
use super::exit::ExitStatus;
use super::input::read_file_or_stdin;
use super::notice;
use super::output::{OutputSink, ResultWriter, json_line, pretty_json};
use super::progress::ProgressLine;
use super::render::{Palette, write_reason};
use super::verdict::expected_verdict;
use super::verify::{verdict_signer_and_format, verify_progress_message};
use super::world::{self, CommandContext, CommandPaymentAuthority};

pub(super) fn run(command: ReceiptCommand) -> anyhow::Result<ExitStatus> {
    match command {
        ReceiptCommand::Verify(args) => super::runtime::run_async_until_interrupt(verify_purchase_receipt(*args)),
        ReceiptCommand::Check(args) => check_receipt_verdict(&args),
    }
}

async fn verify_purchase_receipt(args: ReceiptVerifyArguments) -> anyhow::Result<ExitStatus> {
    if let Some(bundle) = &args.bundle {
        return export_receipt_bundle(&args, bundle).await;
    }
    let output = OutputSink::new(&args.output.out)?;
    let papers = read_purchase_documents(&args)?;
    let question =
        papers.verification_request(&args.name).map_err(|why| anyhow::anyhow!("--{}", UntrustedText::new(&why)))?;
    let question = Arc::new(question);
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open_with_layer(&args.world, args.sign.try_into()?).await?;
    let (signer, format) = verdict_signer_and_format(&world, args.output.output_format())?;
    let resolution = world.resolver.resolve(&question.name).await;
    let found = if args.remember {
        require_configured_memory(&args.world, &world)?;
        world.resolver.verify_and_remember_receipt_with_resolution(&resolution, question).await
    } else {
        world.resolver.verify_receipt_with_resolution(&resolution, question).await
    };
    drop(progress);
    let signed =
        signer.map(|signer| sign_receipt_result(&signer, &found, &resolution, world.resolver.now())).transpose();
    let signed = match signed {
        Ok(signed) => signed,
        Err(error) => {
            anstream::eprintln!("clresolve: the receipt is {}, not signed: {error}", found.state);
            return Ok(found.state.into());
        }
    };
    write_receipt_result(output, format, &found, signed)
}

/// Verifies a receipt and writes a bundle with all evidence. The output reports what the bundle proves.
async fn export_receipt_bundle(args: &ReceiptVerifyArguments, to: &Path) -> anyhow::Result<ExitStatus> {
    if args.output.output_format() == VerdictOutputFormat::Jws {
        bail!("--bundle: a purchase bundle cannot be signed; use -o jws without it");
    }
    let output = OutputSink::new(&args.output.out)?;
    let file = OutputSink::open_file("--bundle", to)?;
    let papers = read_purchase_documents(args)?;
    papers.verification_request(&args.name).map_err(|why| anyhow::anyhow!("--{}", UntrustedText::new(&why)))?;
    let progress = ProgressLine::start(verify_progress_message(std::slice::from_ref(&args.name)));
    let world = CommandContext::open(&args.world).await?;
    let (_, format) = verdict_signer_and_format(&world, args.output.output_format())?;
    let exported = world.resolver.export_purchase(&AgentQuestion::new(&args.name), &papers).await;
    drop(progress);
    match exported {
        Ok((bundle, found)) => {
            file.write_all_and_finish((json_line(&bundle.to_json())? + "\n").as_bytes())?;
            write_receipt_result(output, format, &found, None)
        }
        Err(ExportError::Setup(error)) => Err(error.into()),
        Err(error) => {
            anstream::eprintln!("clresolve: no bundle was written: {}", UntrustedText::new(&error.to_string()));
            Ok(match error {
                ExportError::Purchase { state: TrustState::Untrusted, .. } => ExitStatus::Untrusted,
                // Without its bundle, a valid receipt is not proven.
                _ => ExitStatus::Indeterminate,
            })
        }
    }
}

fn write_receipt_result(
    output: OutputSink,
    format: OutputFormat,
    found: &ReceiptVerificationDocument,
    signed: Option<String>,
) -> anyhow::Result<ExitStatus> {
    let palette = output.palette();
    let mut results = ResultWriter::for_single_result(output, format);
    results.push(found, |format| match (signed, format) {
        (Some(signed), _) => signed + "\n",
        (None, OutputFormat::Short) => format_receipt_line(found, &palette),
        (None, _) => format_receipt_result(found, &palette),
    })?;
    results.finish()?;
    Ok(found.state.into())
}

/// Checks a signed receipt verdict without a network.
fn check_receipt_verdict(args: &ReceiptVerdictCheckArguments) -> anyhow::Result<ExitStatus> {
    let digest = |path: &PathBuf| -> anyhow::Result<Digest> {
        let bytes = read_file_or_stdin(path, MAX_BYTES)?;
        if bytes.len() > MAX_BYTES {
            bail!("{}: longer than {MAX_BYTES} bytes, so nothing is signed that names it", path.display());
        }
        Ok(Digest::compute(&bytes))
    };
    let about = NetworkArguments { proof: args.proof, ..NetworkArguments::default() };
    let config = world::read_merged_config(&about, CommandPaymentAuthority::Others, ConfigLayer::default())?;
    let ExpectedVerdict { name, chain, world, proof, issuer, .. } =
        expected_verdict(&args.name, args.chain, args.issuer.clone(), &config)?;
    let receipt = digest(&args.receipt)?;
    let request = args.request.as_ref().map(digest).transpose()?;
    let decision = args.decision.as_deref().map(|path| read_file_or_stdin(path, MAX_DECISION_BYTES)).transpose()?;
    let purchase =
        PurchasePaymentDocuments::from_documents(decision.as_deref(), None, None).map_err(anyhow::Error::msg)?;
    let decision = purchase.purchase_facts().map(|bought| bought.decision);
    let requires_settlement = args.settled;
    let expected =
        ExpectedReceiptResult { name, receipt, request, decision, requires_settlement, chain, world, proof, issuer };
    let keys = read_trusted_keys(&args.jwks)?;
    let jws = String::from_utf8_lossy(&read_file_or_stdin(&args.jws, MAX_JWS_BYTES)?).into_owned();
    match verify_signed_receipt_result(jws.trim_end_matches(['\r', '\n']), &keys, &expected, SystemClock.now()) {
        Ok(VerifiedReceiptResult { document, state, issuer, key_id }) => {
            let (issuer, key) = (UntrustedText::new(&issuer), UntrustedText::new(&key_id));
            notice::print_notice(format_args!("clresolve: signed by {issuer}, key {key}"));
            let output = OutputSink::new(&OutputFileArguments::default())?;
            output.write_all_and_finish((pretty_json(&document)? + "\n").as_bytes())?;
            Ok(state.into())
        }
        Err(error) => {
            anstream::eprintln!(
                "clresolve: signed receipt verdict rejected: {}",
                UntrustedText::new(&error.to_string())
            );
            Ok(ExitStatus::Untrusted)
        }
    }
}

fn require_configured_memory(args: &NetworkArguments, world: &CommandContext) -> anyhow::Result<()> {
    if args.sandbox {
        bail!("--remember: the sandbox remembers nothing");
    }
    if world.config.memory.path.is_none() {
        bail!("--remember: no memory is configured; the key memory.path names its file");
    }
    Ok(())
}

fn read_purchase_documents(args: &ReceiptVerifyArguments) -> anyhow::Result<PurchaseDocuments> {
    let is_stdin = |path: &Path| path.as_os_str() == "-";
    if is_stdin(&args.receipt) && args.request.as_deref().is_some_and(is_stdin) {
        bail!("the receipt and --request cannot both be read from standard input; name a file for one");
    }
    let file = |path: &Option<PathBuf>, limit, flag| {
        path.as_deref().map(|path| read_file_or_stdin(path, limit).context(flag)).transpose()
    };
    let header = |path, flag| -> anyhow::Result<Option<String>> {
        let text = file(path, MAX_HEADER_BYTES, flag)?.map(String::from_utf8).transpose();
        Ok(text.map_err(|_| anyhow::anyhow!("{flag}: expected a header value"))?.map(|text| text.trim().to_owned()))
    };
    let PurchaseEvidenceArguments { decision, payment, settlement } = &args.purchase;
    Ok(PurchaseDocuments {
        receipt: read_file_or_stdin(&args.receipt, MAX_BYTES)?,
        request: file(&args.request, MAX_BYTES, "--request")?,
        decision: file(decision, MAX_DECISION_BYTES, "--decision")?,
        asked: file(&args.asked, MAX_REQUEST_BYTES, "--asked")?,
        payment: header(payment, "--payment")?,
        settlement: header(settlement, "--settlement")?,
    })
}

pub(super) fn format_receipt_line(found: &ReceiptVerificationDocument, palette: &Palette) -> String {
    let style = palette.state_style(found.state);
    let family = found.family.map_or("-", |family| family.slug);
    let codes = if found.codes.is_empty() { String::new() } else { format!("  {}", found.codes.join(",")) };
    format!("{style}{}{style:#}  {}  {family}{codes}\n", found.state, UntrustedText::new(&found.name))
}

fn format_receipt_result(found: &ReceiptVerificationDocument, palette: &Palette) -> String {
    let advice = match found.state {
        TrustState::Trusted => "",
        TrustState::Untrusted => " Do not rely on this receipt.",
        TrustState::Indeterminate => " Do not rely on this receipt yet.",
    };
    let style = palette.state_style(found.state);
    let checks = format_receipt_checks(found, palette);
    format!("{checks}\n{style}{}{advice}{style:#}\n", UntrustedText::new(&found.summary))
}

/// Each check with the observed value, and each reason.
pub(super) fn format_receipt_checks(found: &ReceiptVerificationDocument, palette: &Palette) -> String {
    let style = palette.state_style(found.state);
    let family = found.family.map_or("of no known family", |family| family.slug);
    let mut text =
        format!("{style}{}{style:#}  receipt of {}, {family}\n", found.state, UntrustedText::new(&found.name));
    for row in &found.checks {
        let word = match row.status {
            StepStatus::Pass => "pass",
            StepStatus::Fail => "fail",
            StepStatus::Unknown => "unknown",
            StepStatus::Skip => "skip",
        };
        let observed = row.observed.as_deref().map(|observed| UntrustedText::new(observed).to_string());
        let line = format!("  {:<10} {word:<8} {}", row.check.as_str(), observed.unwrap_or_default());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if !found.unsigned.is_empty() {
        let places: Vec<_> = found.unsigned.iter().map(|place| UntrustedText::new(place).to_string()).collect();
        let _ = writeln!(text, "  not signed by anybody, so evidence of nothing: {}", places.join(", "));
    }
    if !found.reasons.is_empty() {
        text.push('\n');
    }
    for reason in &found.reasons {
        write_reason(&mut text, reason, palette);
    }
    text
}
