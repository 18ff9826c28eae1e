//! `receipt`: does what an agent sent as a receipt hold?

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_receipt::judge::Status;
use clresolve_receipt::question::Request;
use clresolve_receipt::{MAX_BYTES, Question, Verification};

use super::args::{Format, ReceiptCommand, ReceiptVerifyArgs};
use super::decide::read;
use super::exit::Exit;
use super::output::{Output, Results};
use super::progress::Progress;
use super::render::{Palette, write_reason};
use super::verify::waiting_for;
use super::world::World;
use crate::text::Foreign;
use crate::verdict::State;

pub(super) fn run(command: ReceiptCommand) -> anyhow::Result<Exit> {
    match command {
        ReceiptCommand::Verify(args) => super::run_async(verify(args)),
    }
}

async fn verify(args: ReceiptVerifyArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let palette = output.palette();
    let question = question(&args)?;
    let progress = Progress::start(waiting_for(std::slice::from_ref(&args.name)));
    let world = World::open(&args.world).await?;
    let found = world.resolver.verify_receipt(&question).await;
    drop(progress);
    let mut results = Results::new(output, args.output.form(), false);
    results.push(&found, |format| match format {
        Format::Short => short(&found, &palette),
        _ => people(&found, &palette),
    })?;
    results.finish()?;
    Ok(match found.state {
        State::Trusted => Exit::Trusted,
        State::Untrusted => Exit::Untrusted,
        State::Indeterminate => Exit::Indeterminate,
    })
}

fn question(args: &ReceiptVerifyArgs) -> anyhow::Result<Question> {
    let is_stdin = |path: &Path| path.as_os_str() == "-";
    if is_stdin(&args.receipt) && args.request.as_deref().is_some_and(is_stdin) {
        bail!("the receipt and --request cannot both be read from standard input; name a file for one");
    }
    let request = match &args.request {
        Some(path) => {
            let bytes = read(path, MAX_BYTES).context("--request")?;
            let read = Request::from_bytes(&bytes);
            Some(read.map_err(|error| anyhow::anyhow!("--request: {}", Foreign::new(&error.to_string())))?)
        }
        None => None,
    };
    Ok(Question { name: args.name.clone(), receipt: read(&args.receipt, MAX_BYTES)?, request })
}

fn short(found: &Verification, palette: &Palette) -> String {
    let style = palette.state(found.state);
    let family = found.family.map_or("-", |family| family.slug);
    let codes = if found.codes.is_empty() { String::new() } else { format!("  {}", found.codes.join(",")) };
    format!("{style}{}{style:#}  {}  {family}{codes}\n", found.state, Foreign::new(&found.name))
}

fn people(found: &Verification, palette: &Palette) -> String {
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
    let advice = match found.state {
        State::Trusted => "",
        State::Untrusted => " Do not rely on this receipt.",
        State::Indeterminate => " Do not rely on this receipt yet.",
    };
    let _ = writeln!(text, "\n{style}{}{advice}{style:#}", Foreign::new(&found.summary));
    text
}
