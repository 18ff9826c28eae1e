//! `verify`: resolves names to verdicts.

use anyhow::{Context as _, bail};
use clresolve_bundle::signed::{VerdictIssuer, VerdictSignError};
use clresolve_core::text::UntrustedText;
use clresolve_core::world::SANDBOX;
use clresolve_resolver::config::{ConfigError, ConfigLayer};
use clresolve_resolver::sign;
use clresolve_verdict::verdict::Verdict;
use futures_util::{StreamExt as _, stream};

use super::args::{OutputFormat, VerdictOutputFormat, VerdictSigningArguments, VerifyArguments};
use super::exit::ExitStatus;
use super::names;
use super::output::{OutputSink, ResultWriter};
use super::progress::ProgressLine;
use super::render::{self, ObjectionsToAgent, Palette};
use super::world::CommandContext;

/// Number of names judged concurrently: enough to hide latency, few enough for public endpoints.
const AT_ONCE: usize = 8;

/// The format of a verdict for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerdictView {
    /// One line per step. On a terminal, digests are shortened.
    Walk,
    /// Each step with all of its evidence.
    Trace,
}

impl VerdictView {
    fn format_verdict(self, verdict: &Verdict, against: ObjectionsToAgent<'_>, palette: &Palette) -> String {
        match self {
            Self::Walk => render::format_verdict_walk(verdict, against, palette),
            Self::Trace => render::format_verdict_trace(verdict, against, palette),
        }
    }
}

pub(super) fn run(args: VerifyArguments) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(judge_names_and_write_verdicts(args, VerdictView::Walk))
}

/// Judges each name, and writes the verdicts in the order of the arguments.
pub(super) async fn judge_names_and_write_verdicts(
    args: VerifyArguments,
    view: VerdictView,
) -> anyhow::Result<ExitStatus> {
    let output = OutputSink::new(&args.output.out)?;
    let palette = output.palette();
    let names = names::expand_stdin_names(args.names)?;
    let progress = ProgressLine::start(verify_progress_message(&names));
    let world = CommandContext::open_with_layer(&args.world, args.sign.try_into()?).await?;
    let (signer, format) = verdict_signer_and_format(&world, args.output.output_format())?;
    let mut results = ResultWriter::for_requested_results(output, format, names.len());
    if view == VerdictView::Walk {
        results = results.with_short_digests();
    }
    let mut verdicts = stream::iter(&names).map(|name| world.resolver.resolve_confirmed(name)).buffered(AT_ONCE);
    let mut worst = ExitStatus::Trusted;
    let mut first = true;
    while let Some(resolution) = verdicts.next().await {
        let verdict = resolution.verdict();
        let unmet = args.expect.unmet_expectations(verdict);
        // The gate decides on the present, so it does not apply to a chosen block.
        let is_present = world.config.chain.block.number().is_none();
        let denied = is_present.then(|| world.resolver.gate_denial_reason(&resolution, None)).flatten();
        let against = ObjectionsToAgent { unmet: &unmet, denied };
        worst = worst.max(verdict_exit_status(verdict, &unmet));
        progress.with_line_hidden(|| {
            if format != OutputFormat::Text {
                report_unmet_expectations(verdict, &unmet);
            }
            let signed = match signer
                .as_ref()
                .map(|signer| signer.sign_verdict(&resolution, world.resolver.now()))
                .transpose()
            {
                Ok(signed) => signed,
                Err(error) => {
                    report_unsigned_verdict(verdict, error);
                    return Ok(());
                }
            };
            results.push(verdict.as_ref(), |format| match format {
                _ if signed.is_some() => signed.unwrap_or_default() + "\n",
                OutputFormat::Short => render::format_verdict_line(verdict, &palette),
                _ if first => view.format_verdict(verdict, against, &palette),
                _ => format!("\n{}", view.format_verdict(verdict, against, &palette)),
            })
        })?;
        first = false;
    }
    results.finish()?;
    Ok(worst)
}

/// The signer, if results are signed, and their format.
pub(super) fn verdict_signer_and_format(
    world: &CommandContext,
    form: VerdictOutputFormat,
) -> anyhow::Result<(Option<VerdictIssuer>, OutputFormat)> {
    Ok(match form {
        VerdictOutputFormat::Jws => (Some(verdict_issuer(world)?), OutputFormat::Short),
        VerdictOutputFormat::Text => (None, OutputFormat::Text),
        VerdictOutputFormat::Short => (None, OutputFormat::Short),
        VerdictOutputFormat::Json => (None, OutputFormat::Json),
        VerdictOutputFormat::Jsonl => (None, OutputFormat::Jsonl),
    })
}

fn verdict_issuer(world: &CommandContext) -> anyhow::Result<VerdictIssuer> {
    if world.config.chain.world == SANDBOX {
        bail!("-o jws: the sandbox signs nothing");
    }
    let signer = sign::open_signer(&world.config.sign)?;
    signer.context(
        "-o jws: expected a key to sign with: --sign-key or sign.key (`clresolve signature key new FILE` makes one)",
    )
}

impl TryFrom<VerdictSigningArguments> for ConfigLayer {
    type Error = ConfigError;

    fn try_from(args: VerdictSigningArguments) -> Result<Self, ConfigError> {
        let mut layer = Self::default();
        layer.set_key("sign.key", args.sign_key)?;
        layer.set_key("sign.issuer", args.sign_issuer)?;
        Ok(layer)
    }
}

/// Reports on standard error why this name has no line.
fn report_unsigned_verdict(verdict: &Verdict, error: VerdictSignError) {
    anstream::eprintln!(
        "clresolve: {} is {}, not signed: {error}",
        UntrustedText::new(&verdict.name.input),
        verdict.state
    );
}

pub(super) fn verdict_exit_status(verdict: &Verdict, unmet: &[String]) -> ExitStatus {
    if unmet.is_empty() { verdict.state.into() } else { ExitStatus::Unmet }
}

/// Reports on standard error which expectations a trusted verdict does not meet.
pub(super) fn report_unmet_expectations(verdict: &Verdict, unmet: &[String]) {
    if !unmet.is_empty() {
        anstream::eprintln!("{}", render::verdict_advice(verdict, ObjectionsToAgent::from_unmet_expectations(unmet)));
    }
}

pub(super) fn verify_progress_message(names: &[String]) -> String {
    match names {
        [name] => format!("asking about {}", UntrustedText::new(name).with_limit(60)),
        names => format!("asking about {} names", names.len()),
    }
}
