//! `verify`: names to verdicts.

use futures_util::{StreamExt as _, stream};

use super::args::{Format, VerifyArgs};
use super::exit::Exit;
use super::output::{Output, Results};
use super::progress::Progress;
use super::render::{self, Palette};
use super::world::World;
use crate::text::Foreign;
use crate::verdict::Verdict;

/// Names judged at the same time: enough to hide the round trips, few enough for public endpoints.
const AT_ONCE: usize = 8;

/// How a verdict is written for people.
pub(super) type People = fn(&Verdict, &[String], &Palette) -> String;

pub(super) fn run(args: VerifyArgs) -> anyhow::Result<Exit> {
    super::run_async(judge(args, render::walk))
}

/// Judges each name; they are written in the order in which they were given.
pub(super) async fn judge(args: VerifyArgs, people: People) -> anyhow::Result<Exit> {
    let output = Output::new(args.output.out)?;
    let palette = output.palette();
    let several = args.names.len() > 1;
    let mut results = Results::new(output, args.output.format, several);
    hint_at_commands(&args.names);
    let progress = Progress::start(waiting_for(&args.names));
    let world = World::open(&args.world).await?;
    let mut verdicts = stream::iter(&args.names).map(|name| world.resolver.resolve(name)).buffered(AT_ONCE);
    let mut worst = Exit::Trusted;
    let mut first = true;
    while let Some(resolution) = verdicts.next().await {
        let verdict = &resolution.verdict;
        let unmet = args.expect.unmet(verdict);
        worst = worst.max(exit_of(verdict, &unmet));
        progress.aside(|| {
            if args.output.format != Format::Text {
                report_unmet(verdict, &unmet);
            }
            results.push(verdict.as_ref(), |format| match format {
                Format::Short => render::short(verdict, &palette),
                _ if first => people(verdict, &unmet, &palette),
                _ => format!("\n{}", people(verdict, &unmet, &palette)),
            })
        })?;
        first = false;
    }
    results.finish()?;
    Ok(worst)
}

/// Says on stderr that a word without a dot was taken as a name: it may have been meant as a command.
fn hint_at_commands(names: &[String]) {
    for name in names.iter().filter(|name| !name.is_empty() && !name.contains('.')) {
        anstream::eprintln!(
            "clresolve: `{}` is taken as an ENS name; names end in .eth, and --help lists the commands",
            Foreign::new(name).at_most(60)
        );
    }
}

/// The code of one verdict.
pub(super) fn exit_of(verdict: &Verdict, unmet: &[String]) -> Exit {
    if unmet.is_empty() { verdict.state.into() } else { Exit::Unmet }
}

/// Says on stderr what a trusted verdict does not meet.
pub(super) fn report_unmet(verdict: &Verdict, unmet: &[String]) {
    if !unmet.is_empty() {
        anstream::eprintln!("{}", render::advice(verdict, unmet));
    }
}

/// What the progress line says.
pub(super) fn waiting_for(names: &[String]) -> String {
    match names {
        [name] => format!("asking about {}", Foreign::new(name).at_most(60)),
        names => format!("asking about {} names", names.len()),
    }
}
