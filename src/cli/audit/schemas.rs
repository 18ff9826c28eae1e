//! `audit schemas`: the published schemas of a profile's layers, held against its manifests.

use std::fmt::Write as _;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use serde::Serialize;

use crate::card::Side;
use crate::check::schemas::published;
use crate::cli::args::{AuditSchemasArgs, Format};
use crate::cli::exit::Exit;
use crate::cli::output::{Output, Results};
use crate::cli::progress::Progress;
use crate::cli::render::Palette;
use crate::cli::world::World;
use crate::evidence::BoundSchema;
use crate::manifest::Verb;
use crate::profile::Profile;
use crate::reason::{Effect, Reason};
use crate::text::Foreign;
use crate::verdict::State;

/// Schemas that are fetched at the same time: all of a layer come from one host and a few gateways.
const AT_ONCE: usize = 4;

pub(super) fn run(args: AuditSchemasArgs) -> anyhow::Result<Exit> {
    crate::cli::runtime::run_async(audit(args))
}

async fn audit(args: AuditSchemasArgs) -> anyhow::Result<Exit> {
    let output = Output::new(&args.output.out)?;
    let palette = output.palette();
    let world = World::open(&args.world).await?;
    let profile = world.resolver.profiles().get(&world.config.rules.profile).context("the profile does not exist")?;
    let sides = |verb| Side::ALL.map(|side| (verb, side));
    let schemas = profile.manifests().flat_map(|layer| layer.verbs().iter().flat_map(sides).map(|of| (layer.id(), of)));
    let judge = async |(layer, (verb, side))| PublishedSchema::judged(&world, &profile, layer, verb, side).await;
    let progress = Progress::counting(None);
    let mut results = Results::new(output, args.output.form(), true);
    let mut worst = Exit::Trusted;
    let mut judged = stream::iter(schemas.collect::<Vec<_>>()).map(judge).buffered(AT_ONCE);
    while let Some(schema) = judged.next().await {
        worst = worst.max(schema.state.into());
        progress.aside(|| results.push(&schema, |format| line(&schema, format, &palette)))?;
    }
    drop(progress);
    results.finish()?;
    Ok(worst)
}

/// A schema of a layer, and what is wrong with it.
#[derive(Debug, Serialize)]
struct PublishedSchema<'a> {
    /// The manifest.
    layer: &'a str,
    verb: &'a str,
    side: Side,
    /// The path in the publisher's repository.
    path: &'a str,
    /// Trusted: the canonical location serves what the manifest pins, and so does each mirror that answers.
    state: State,
    reasons: Vec<Reason>,
}

impl<'a> PublishedSchema<'a> {
    async fn judged(world: &World, profile: &Profile, layer: &'a str, verb: &'a Verb, side: Side) -> Self {
        let entry = verb.schema(side);
        let (canonical, mirrors) = world.resolver.published_schema(entry).await;
        let alone = mirrors.is_empty().then_some(None);
        let mut reasons = Vec::new();
        for mirror in mirrors.into_iter().map(Some).chain(alone) {
            let fetched = BoundSchema { canonical: canonical.clone(), mirror };
            for reason in published(side, &fetched, entry, profile) {
                if !reasons.contains(&reason) {
                    reasons.push(reason);
                }
            }
        }
        let has = |effect| reasons.iter().any(|reason: &Reason| reason.effect == effect);
        let state = match (has(Effect::Fail), has(Effect::Unknown)) {
            (true, _) => State::Untrusted,
            (false, true) => State::Indeterminate,
            (false, false) => State::Trusted,
        };
        Self { layer, verb: &verb.name, side, path: &entry.path, state, reasons }
    }
}

fn line(schema: &PublishedSchema<'_>, format: Format, palette: &Palette) -> String {
    let PublishedSchema { layer, verb, side, path, state, reasons } = schema;
    let mark = match state {
        State::Trusted => "agrees",
        State::Untrusted => "differs",
        State::Indeterminate => "not known",
    };
    let style = palette.state(*state);
    let side = match side {
        Side::Request => "request",
        Side::Receipt => "receipt",
    };
    let mut text = format!("{style}{mark:<9}{style:#}  {layer}  {verb} {side}");
    let mut codes: Vec<_> = reasons.iter().map(|reason| reason.code.slug()).collect();
    codes.dedup();
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
