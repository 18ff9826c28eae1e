//! `audit schemas`: compares the published schemas of a profile's layers with its manifests.

use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Context as _;
use clresolve_audit::SchemaRow;
use clresolve_core::reason::Reason;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_verdict::card::Side;
use clresolve_verdict::check::schemas::published;
use clresolve_verdict::evidence::SchemaAnswers;
use clresolve_verdict::manifest::Verb;
use clresolve_verdict::profile::Profile;
use futures_util::{Stream, StreamExt as _, stream};

use crate::cli::args::{AuditSchemasArgs, Format};
use crate::cli::exit::Exit;
use crate::cli::output::{Output, Results};
use crate::cli::progress::Progress;
use crate::cli::render::Palette;
use crate::cli::world::{World, WorldFiles};

/// Number of schemas fetched concurrently: all schemas of a layer come from one host and a few gateways.
const AT_ONCE: usize = 4;

pub(super) fn run(args: AuditSchemasArgs) -> anyhow::Result<Exit> {
    crate::cli::runtime::run_async(audit(args))
}

async fn audit(args: AuditSchemasArgs) -> anyhow::Result<Exit> {
    let output = Output::apart_from(&args.output.out, WorldFiles::of(&args.world).iter())?;
    let palette = output.palette();
    let world = World::open(&args.world).await?;
    let profile = profile(&world)?;
    let progress = Progress::counting(None);
    let mut results = Results::list(output, args.output.form());
    let mut worst = Exit::Trusted;
    let mut judged = pin!(judged(&world, &profile));
    while let Some(schema) = judged.next().await {
        worst = worst.max(schema.state.into());
        progress.aside(|| results.push(&schema, |format| line(&schema, format, &palette)))?;
    }
    drop(progress);
    results.finish()?;
    Ok(worst)
}

pub(super) async fn layers(world: &World) -> anyhow::Result<Vec<SchemaRow>> {
    let profile = profile(world)?;
    Ok(judged(world, &profile).collect().await)
}

fn profile(world: &World) -> anyhow::Result<Arc<Profile>> {
    world.resolver.profiles().get(&world.config.rules.profile).context("the profile does not exist")
}

/// Compares each schema with its manifest, in the order of the layers.
fn judged<'a>(world: &'a World, profile: &'a Profile) -> impl Stream<Item = SchemaRow> + 'a {
    let sides = |verb| Side::ALL.map(|side| (verb, side));
    let schemas =
        profile.manifests().flat_map(move |layer| layer.verbs().iter().flat_map(sides).map(|of| (layer.id(), of)));
    let judge = move |(layer, (verb, side)): (&'a str, (&'a Verb, Side))| async move {
        SchemaRow::of(layer, verb, side, found(world, profile, verb, side).await)
    };
    stream::iter(schemas.collect::<Vec<_>>()).map(judge).buffered(AT_ONCE)
}

/// The faults of a schema at its canonical location and at all mirrors.
async fn found(world: &World, profile: &Profile, verb: &Verb, side: Side) -> Vec<Reason> {
    let entry = verb.schema(side);
    let (canonical, mirrors) = world.resolver.published_schema(entry).await;
    let alone = mirrors.is_empty().then_some(None);
    let mut reasons = Vec::new();
    for mirror in mirrors.into_iter().map(Some).chain(alone) {
        let fetched = SchemaAnswers { canonical: canonical.clone(), mirror };
        for reason in published(side, &fetched, entry, profile) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    reasons
}

fn line(schema: &SchemaRow, format: Format, palette: &Palette) -> String {
    let SchemaRow { layer, verb, path, state, reasons, .. } = schema;
    let (mark, side) = (schema.standing(), schema.side_in_words());
    let style = palette.state(*state);
    let mut text = format!("{style}{mark:<9}{style:#}  {layer}  {verb} {side}");
    let codes: Vec<_> = schema.codes().iter().map(|code| code.slug()).collect();
    if !codes.is_empty() {
        let _ = write!(text, "  {}", codes.join(", "));
    }
    text.push('\n');
    if format == Format::Short || *state == State::Trusted {
        return text;
    }
    let _ = writeln!(text, "  {}", Foreign::new(path));
    for reason in reasons {
        let values = [("expected", &reason.expected), ("observed", &reason.observed)];
        let said =
            values.into_iter().filter_map(|(what, value)| Some(format!("{what} {}", Foreign::new(value.as_deref()?))));
        let _ = writeln!(text, "  {}: {}", reason.code, said.collect::<Vec<_>>().join(", "));
    }
    text
}
