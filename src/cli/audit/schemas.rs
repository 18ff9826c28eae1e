//! `audit schemas`: compares the published schemas of a profile's layers with its manifests.

use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;

use anyhow::Context as _;
use clresolve_audit::PublishedSchemaRow;
use clresolve_core::reason::Reason;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_verdict::card::SchemaRole;
use clresolve_verdict::check::schemas::check_published_schema;
use clresolve_verdict::evidence::CanonicalAndMirrorSchema;
use clresolve_verdict::manifest::ManifestVerb;
use clresolve_verdict::profile::ConformanceProfile;
use futures_util::{Stream, StreamExt as _, stream};

use crate::cli::args::{AuditSchemasArguments, OutputFormat};
use crate::cli::exit::ExitStatus;
use crate::cli::output::{OutputSink, ResultWriter};
use crate::cli::progress::ProgressLine;
use crate::cli::render::Palette;
use crate::cli::world::{CommandContext, CommandInputFiles};

/// Number of schemas fetched concurrently: all schemas of a layer come from one host and a few gateways.
const AT_ONCE: usize = 4;

pub(super) fn run(args: AuditSchemasArguments) -> anyhow::Result<ExitStatus> {
    crate::cli::runtime::run_async_until_interrupt(write_schema_audit(args))
}

async fn write_schema_audit(args: AuditSchemasArguments) -> anyhow::Result<ExitStatus> {
    let output =
        OutputSink::new_unless_input_file(&args.output.out, CommandInputFiles::from_arguments(&args.world).iter())?;
    let palette = output.palette();
    let world = CommandContext::open(&args.world).await?;
    let profile = configured_profile(&world)?;
    let progress = ProgressLine::start_counter(None);
    let mut results = ResultWriter::for_result_list(output, args.output.output_format());
    let mut worst = ExitStatus::Trusted;
    let mut judged = pin!(judge_schemas(&world, &profile));
    while let Some(schema) = judged.next().await {
        worst = worst.max(schema.state.into());
        progress.with_line_hidden(|| results.push(&schema, |format| format_schema_row(&schema, format, &palette)))?;
    }
    drop(progress);
    results.finish()?;
    Ok(worst)
}

pub(super) async fn audit_schema_layers(world: &CommandContext) -> anyhow::Result<Vec<PublishedSchemaRow>> {
    let profile = configured_profile(world)?;
    Ok(judge_schemas(world, &profile).collect().await)
}

fn configured_profile(world: &CommandContext) -> anyhow::Result<Arc<ConformanceProfile>> {
    world.resolver.profiles().get(&world.config.rules.profile).context("the profile does not exist")
}

/// Compares each schema with its manifest, in the order of the layers.
fn judge_schemas<'a>(
    world: &'a CommandContext,
    profile: &'a ConformanceProfile,
) -> impl Stream<Item = PublishedSchemaRow> + 'a {
    let sides = |verb| SchemaRole::ALL.map(|side| (verb, side));
    let schemas =
        profile.manifests().flat_map(move |layer| layer.verbs().iter().flat_map(sides).map(|of| (layer.id(), of)));
    let judge = move |(layer, (verb, side)): (&'a str, (&'a ManifestVerb, SchemaRole))| async move {
        PublishedSchemaRow::new(layer, verb, side, schema_faults(world, profile, verb, side).await)
    };
    stream::iter(schemas.collect::<Vec<_>>()).map(judge).buffered(AT_ONCE)
}

/// The faults of a schema at its canonical location and at all mirrors.
async fn schema_faults(
    world: &CommandContext,
    profile: &ConformanceProfile,
    verb: &ManifestVerb,
    side: SchemaRole,
) -> Vec<Reason> {
    let entry = verb.schema(side);
    let (canonical, mirrors) = world.resolver.fetch_published_schema(entry).await;
    let alone = mirrors.is_empty().then_some(None);
    let mut reasons = Vec::new();
    for mirror in mirrors.into_iter().map(Some).chain(alone) {
        let fetched = CanonicalAndMirrorSchema { canonical: canonical.clone(), mirror };
        for reason in check_published_schema(side, &fetched, entry, profile) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    reasons
}

fn format_schema_row(schema: &PublishedSchemaRow, format: OutputFormat, palette: &Palette) -> String {
    let PublishedSchemaRow { layer, verb, path, state, reasons, .. } = schema;
    let (mark, side) = (schema.state_in_words(), schema.side_in_words());
    let style = palette.state_style(*state);
    let mut text = format!("{style}{mark:<9}{style:#}  {layer}  {verb} {side}");
    let codes: Vec<_> = schema.codes().iter().map(|code| code.slug()).collect();
    if !codes.is_empty() {
        let _ = write!(text, "  {}", codes.join(", "));
    }
    text.push('\n');
    if format == OutputFormat::Short || *state == TrustState::Trusted {
        return text;
    }
    let _ = writeln!(text, "  {}", UntrustedText::new(path));
    for reason in reasons {
        let values = [("expected", &reason.expected), ("observed", &reason.observed)];
        let said = values
            .into_iter()
            .filter_map(|(what, value)| Some(format!("{what} {}", UntrustedText::new(value.as_deref()?))));
        let _ = writeln!(text, "  {}: {}", reason.code, said.collect::<Vec<_>>().join(", "));
    }
    text
}
