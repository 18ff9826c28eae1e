//! `receipt`: verifies receipts that agents sent.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clresolve_bundle::purchase::Papers;
use clresolve_bundle::signed::{ExpectedVerdict, MAX_JWS_BYTES};
use clresolve_core::digest::Digest;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_messages::receipt::judge::Status;
use clresolve_messages::receipt::{MAX_BYTES, Verification};
use clresolve_payment::request::MAX_REQUEST_BYTES;
use clresolve_payment::settlement::{MAX_DECISION_BYTES, Purchase};
use clresolve_payment::signed::MAX_HEADER_BYTES;
use clresolve_resolver::clock::{Clock as _, SystemClock};
use clresolve_resolver::config::Layer;
use clresolve_resolver::resolve::{ExportError, Question as AgentQuestion};
use clresolve_resolver::sign::{
    ExpectedReceipt, SettlementDemand, VerifiedReceipt, read_trusted_keys, sign_receipt, verify_receipt,
};

use super::args::{
    Format, OutArgs, PurchaseArgs, ReceiptCheckArgs, ReceiptCommand, ReceiptVerifyArgs, VerdictFormat, WorldArgs,
};
use super::exit::Exit;
use super::input::read;
use super::notice;
use super::output::{Output, Results, json, json_line};
use super::progress::Progress;
use super::render::{Palette, write_reason};
use super::verdict::expected;
use super::verify::{signer_and_form, waiting_for};
use super::world::{self, Reader, World};

pub(super) fn run(command: ReceiptCommand) -> anyhow::Result<Exit> {
    match command {
        ReceiptCommand::Verify(args) => super::runtime::run_async(verify(*args)),
        ReceiptCommand::Check(args) => check(&args),
    }
}

async fn verify(args: ReceiptVerifyArgs) -> anyhow::Result<Exit> {
    if let Some(bundle) = &args.bundle {
        return export(&args, bundle).await;
    }
    let output = Output::new(&args.output.out)?;
    let papers = papers(&args)?;
    let question = papers.question(&args.name).map_err(|why| anyhow::anyhow!("--{}", Foreign::new(&why)))?;
    let question = Arc::new(question);
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open_with(&args.world, args.sign.try_into()?).await?;
    let (signer, format) = signer_and_form(&world, args.output.form())?;
    let resolution = world.resolver.resolve(&question.name).await;
    let found = if args.remember {
        check_memory(&args.world, &world)?;
        world.resolver.verify_and_remember_receipt_of(&resolution, question).await
    } else {
        world.resolver.verify_receipt_of(&resolution, question).await
    };
    drop(progress);
    let signed = signer.map(|signer| sign_receipt(&signer, &found, &resolution, world.resolver.now())).transpose();
    let signed = match signed {
        Ok(signed) => signed,
        Err(error) => {
            anstream::eprintln!("clresolve: the receipt is {}, not signed: {error}", found.state);
            return Ok(exit(found.state));
        }
    };
    show(output, format, &found, signed)
}

/// Verifies a receipt and writes a bundle with all evidence. The output reports what the bundle proves.
async fn export(args: &ReceiptVerifyArgs, to: &Path) -> anyhow::Result<Exit> {
    if args.output.form() == VerdictFormat::Jws {
        bail!("--bundle: a purchase bundle cannot be signed; use -o jws without it");
    }
    let output = Output::new(&args.output.out)?;
    let file = Output::file("--bundle", to)?;
    let papers = papers(args)?;
    papers.question(&args.name).map_err(|why| anyhow::anyhow!("--{}", Foreign::new(&why)))?;
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open(&args.world).await?;
    let (_, format) = signer_and_form(&world, args.output.form())?;
    let exported = world.resolver.export_purchase(&AgentQuestion::new(&args.name), &papers).await;
    drop(progress);
    match exported {
        Ok((bundle, found)) => {
            file.write_whole((json_line(&bundle.to_json())? + "\n").as_bytes())?;
            show(output, format, &found, None)
        }
        Err(ExportError::Setup(error)) => Err(error.into()),
        Err(error) => {
            anstream::eprintln!("clresolve: no bundle was written: {}", Foreign::new(&error.to_string()));
            Ok(match error {
                ExportError::Purchase { state: State::Untrusted, .. } => Exit::Untrusted,
                // Without its bundle, a valid receipt is not proven.
                _ => Exit::Indeterminate,
            })
        }
    }
}

fn show(output: Output, format: Format, found: &Verification, signed: Option<String>) -> anyhow::Result<Exit> {
    let palette = output.palette();
    let mut results = Results::one(output, format);
    results.push(found, |format| match (signed, format) {
        (Some(signed), _) => signed + "\n",
        (None, Format::Short) => short(found, &palette),
        (None, _) => people(found, &palette),
    })?;
    results.finish()?;
    Ok(exit(found.state))
}

pub(super) const fn exit(state: State) -> Exit {
    match state {
        State::Trusted => Exit::Trusted,
        State::Untrusted => Exit::Untrusted,
        State::Indeterminate => Exit::Indeterminate,
    }
}

/// Checks a signed receipt verdict without a network.
fn check(args: &ReceiptCheckArgs) -> anyhow::Result<Exit> {
    let digest = |path: &PathBuf| -> anyhow::Result<Digest> {
        let bytes = read(path, MAX_BYTES)?;
        if bytes.len() > MAX_BYTES {
            bail!("{}: longer than {MAX_BYTES} bytes, so nothing is signed that names it", path.display());
        }
        Ok(Digest::of(&bytes))
    };
    let about = WorldArgs { proof: args.proof, ..WorldArgs::default() };
    let config = world::configuration(&about, Reader::Others, Layer::default())?;
    let ExpectedVerdict { name, chain, world, proof, issuer, .. } =
        expected(&args.name, args.chain, args.issuer.clone(), &config)?;
    let receipt = digest(&args.receipt)?;
    let request = args.request.as_ref().map(digest).transpose()?;
    let decision = args.decision.as_deref().map(|path| read(path, MAX_DECISION_BYTES)).transpose()?;
    let purchase = Purchase::read(decision.as_deref(), None, None).map_err(anyhow::Error::msg)?;
    let decision = purchase.bought().map(|bought| bought.decision);
    let settlement = if args.settled { SettlementDemand::Shown } else { SettlementDemand::Any };
    let expected = ExpectedReceipt { name, receipt, request, decision, settlement, chain, world, proof, issuer };
    let keys = read_trusted_keys(&args.jwks)?;
    let jws = String::from_utf8_lossy(&read(&args.jws, MAX_JWS_BYTES)?).into_owned();
    match verify_receipt(jws.trim_end_matches(['\r', '\n']), &keys, &expected, SystemClock.now()) {
        Ok(VerifiedReceipt { document, state, issuer, key_id }) => {
            let (issuer, key) = (Foreign::new(&issuer), Foreign::new(&key_id));
            notice::note(format_args!("clresolve: signed by {issuer}, key {key}"));
            let output = Output::new(&OutArgs::default())?;
            output.write_whole((json(&document)? + "\n").as_bytes())?;
            Ok(exit(state))
        }
        Err(error) => {
            anstream::eprintln!("clresolve: signed receipt verdict rejected: {}", Foreign::new(&error.to_string()));
            Ok(Exit::Untrusted)
        }
    }
}

fn check_memory(args: &WorldArgs, world: &World) -> anyhow::Result<()> {
    if args.sandbox {
        bail!("--remember: the sandbox remembers nothing");
    }
    if world.config.memory.path.is_none() {
        bail!("--remember: no memory is configured; the key memory.path names its file");
    }
    Ok(())
}

fn papers(args: &ReceiptVerifyArgs) -> anyhow::Result<Papers> {
    let is_stdin = |path: &Path| path.as_os_str() == "-";
    if is_stdin(&args.receipt) && args.request.as_deref().is_some_and(is_stdin) {
        bail!("the receipt and --request cannot both be read from standard input; name a file for one");
    }
    let file =
        |path: &Option<PathBuf>, limit, flag| path.as_deref().map(|path| read(path, limit).context(flag)).transpose();
    let header = |path, flag| -> anyhow::Result<Option<String>> {
        let text = file(path, MAX_HEADER_BYTES, flag)?.map(String::from_utf8).transpose();
        Ok(text.map_err(|_| anyhow::anyhow!("{flag}: expected a header value"))?.map(|text| text.trim().to_owned()))
    };
    let PurchaseArgs { decision, payment, settlement } = &args.purchase;
    Ok(Papers {
        receipt: read(&args.receipt, MAX_BYTES)?,
        request: file(&args.request, MAX_BYTES, "--request")?,
        decision: file(decision, MAX_DECISION_BYTES, "--decision")?,
        asked: file(&args.asked, MAX_REQUEST_BYTES, "--asked")?,
        payment: header(payment, "--payment")?,
        settlement: header(settlement, "--settlement")?,
    })
}

pub(super) fn short(found: &Verification, palette: &Palette) -> String {
    let style = palette.state(found.state);
    let family = found.family.map_or("-", |family| family.slug);
    let codes = if found.codes.is_empty() { String::new() } else { format!("  {}", found.codes.join(",")) };
    format!("{style}{}{style:#}  {}  {family}{codes}\n", found.state, Foreign::new(&found.name))
}

fn people(found: &Verification, palette: &Palette) -> String {
    let advice = match found.state {
        State::Trusted => "",
        State::Untrusted => " Do not rely on this receipt.",
        State::Indeterminate => " Do not rely on this receipt yet.",
    };
    let style = palette.state(found.state);
    let checks = checks(found, palette);
    format!("{checks}\n{style}{}{advice}{style:#}\n", Foreign::new(&found.summary))
}

/// Each check with the observed value, and each reason.
pub(super) fn checks(found: &Verification, palette: &Palette) -> String {
    let style = palette.state(found.state);
    let family = found.family.map_or("of no known family", |family| family.slug);
    let mut text = format!("{style}{}{style:#}  receipt of {}, {family}\n", found.state, Foreign::new(&found.name));
    for row in &found.checks {
        let word = match row.status {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Unknown => "unknown",
            Status::Skip => "skip",
        };
        let observed = row.observed.as_deref().map(|observed| Foreign::new(observed).to_string());
        let line = format!("  {:<10} {word:<8} {}", row.check.as_str(), observed.unwrap_or_default());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if !found.unsigned.is_empty() {
        let places: Vec<_> = found.unsigned.iter().map(|place| Foreign::new(place).to_string()).collect();
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
