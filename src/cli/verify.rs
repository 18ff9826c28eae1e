//! `verify`: resolves names to verdicts.

use anyhow::{Context as _, bail};
use clresolve_bundle::signed::{SignError, Signer};
use clresolve_core::text::Foreign;
use clresolve_core::world::SANDBOX;
use clresolve_resolver::config::{ConfigError, Layer};
use clresolve_resolver::sign;
use clresolve_verdict::verdict::Verdict;
use futures_util::{StreamExt as _, stream};

use super::args::{Format, SignArgs, VerdictFormat, VerifyArgs};
use super::exit::Exit;
use super::names;
use super::output::{Output, Results};
use super::progress::Progress;
use super::render::{self, Objections, Palette};
use super::world::World;

/// Number of names judged concurrently: enough to hide latency, few enough for public endpoints.
const AT_ONCE: usize = 8;

/// The format of a verdict for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// One line per step. On a terminal, digests are shortened.
    Walk,
    /// Each step with all of its evidence.
    Trace,
}

impl View {
    fn text(self, verdict: &Verdict, against: Objections<'_>, palette: &Palette) -> String {
        match self {
            Self::Walk => render::walk(verdict, against, palette),
            Self::Trace => render::trace(verdict, against, palette),
        }
    }
}

pub(super) fn run(args: VerifyArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(judge(args, View::Walk))
}

/// Judges each name, and writes the verdicts in the order of the arguments.
pub(super) async fn judge(args: VerifyArgs, view: View) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let palette = output.palette();
    let names = names::given(args.names)?;
    let progress = Progress::start(waiting_for(&names));
    let world = World::open_with(&args.world, args.sign.try_into()?).await?;
    let (signer, format) = signer_and_form(&world, args.output.form())?;
    let mut results = Results::named(output, format, names.len());
    if view == View::Walk {
        results = results.with_short_digests();
    }
    let mut verdicts = stream::iter(&names).map(|name| world.resolver.resolve_confirmed(name)).buffered(AT_ONCE);
    let mut worst = Exit::Trusted;
    let mut first = true;
    while let Some(resolution) = verdicts.next().await {
        let verdict = resolution.verdict();
        let unmet = args.expect.unmet(verdict);
        // The gate decides on the present, so it does not apply to a chosen block.
        let is_present = world.config.chain.block.number().is_none();
        let denied = is_present.then(|| world.resolver.denied(&resolution, None)).flatten();
        let against = Objections { unmet: &unmet, denied };
        worst = worst.max(exit_of(verdict, &unmet));
        progress.aside(|| {
            if format != Format::Text {
                report_unmet(verdict, &unmet);
            }
            let signed = match signer.as_ref().map(|signer| signer.sign(&resolution, world.resolver.now())).transpose()
            {
                Ok(signed) => signed,
                Err(error) => {
                    report_unsigned(verdict, error);
                    return Ok(());
                }
            };
            results.push(verdict.as_ref(), |format| match format {
                _ if signed.is_some() => signed.unwrap_or_default() + "\n",
                Format::Short => render::short(verdict, &palette),
                _ if first => view.text(verdict, against, &palette),
                _ => format!("\n{}", view.text(verdict, against, &palette)),
            })
        })?;
        first = false;
    }
    results.finish()?;
    Ok(worst)
}

/// The signer, if results are signed, and their format.
pub(super) fn signer_and_form(world: &World, form: VerdictFormat) -> anyhow::Result<(Option<Signer>, Format)> {
    Ok(match form {
        VerdictFormat::Jws => (Some(signer(world)?), Format::Short),
        VerdictFormat::Text => (None, Format::Text),
        VerdictFormat::Short => (None, Format::Short),
        VerdictFormat::Json => (None, Format::Json),
        VerdictFormat::Jsonl => (None, Format::Jsonl),
    })
}

fn signer(world: &World) -> anyhow::Result<Signer> {
    if world.config.chain.world == SANDBOX {
        bail!("-o jws: the sandbox signs nothing");
    }
    let signer = sign::open(&world.config.sign)?;
    signer.context(
        "-o jws: expected a key to sign with: --sign-key or sign.key (`clresolve signature key new FILE` makes one)",
    )
}

impl TryFrom<SignArgs> for Layer {
    type Error = ConfigError;

    fn try_from(args: SignArgs) -> Result<Self, ConfigError> {
        let mut layer = Self::default();
        layer.set("sign.key", args.sign_key)?;
        layer.set("sign.issuer", args.sign_issuer)?;
        Ok(layer)
    }
}

/// Reports on standard error why this name has no line.
fn report_unsigned(verdict: &Verdict, error: SignError) {
    anstream::eprintln!("clresolve: {} is {}, not signed: {error}", Foreign::new(&verdict.name.input), verdict.state);
}

pub(super) fn exit_of(verdict: &Verdict, unmet: &[String]) -> Exit {
    if unmet.is_empty() { verdict.state.into() } else { Exit::Unmet }
}

/// Reports on standard error which expectations a trusted verdict does not meet.
pub(super) fn report_unmet(verdict: &Verdict, unmet: &[String]) {
    if !unmet.is_empty() {
        anstream::eprintln!("{}", render::advice(verdict, Objections::of_expectations(unmet)));
    }
}

pub(super) fn waiting_for(names: &[String]) -> String {
    match names {
        [name] => format!("asking about {}", Foreign::new(name).at_most(60)),
        names => format!("asking about {} names", names.len()),
    }
}
