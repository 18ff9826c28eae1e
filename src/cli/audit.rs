//! `audit`: resolves a list of names and writes a report. Rows are buffered in a file, so that memory does not grow
//! with the list, except for a comparison with an earlier report, which holds both in memory.

mod block_pin;
mod diff;
mod history;
mod judge;
mod list;
mod registry;
mod render;
mod report;
mod resolution;
mod rows;
mod schemas;
mod signing;
mod sources;
mod waivers;

use std::path::Path;
use std::pin::pin;

use anyhow::{Context as _, bail};
use clresolve_audit::{AuditConditions, AuditEnding, NameListReference, StateDecidingSettings};
use clresolve_core::reading::ProofGradeDemand;
use clresolve_core::state::TrustState;
use clresolve_resolver::config::Config;
use clresolve_verdict::verdict::{PinnedDocument, ResolutionDepth, canonical_digest};
use serde_json::json;

pub(super) use self::block_pin::PinnedBlockResolver;
use self::history::EarlierAuditReports;
pub(super) use self::judge::{AuditConcurrencyLimits, NameListAuditor};
use self::registry::RegistryNameList;
use self::report::{AuditReportMetadata, AuditReportOutputs, audit_exit_status};
pub(super) use self::rows::AuditRowSpool;
use self::rows::{AuditJournalHeader, AuditRowFile};
pub(super) use self::sources::AuditNameSources;
use super::args::{AuditArguments, AuditCommand};
use super::exit::ExitStatus;
use super::input;
use super::names;
use super::output::{OutputSink, OutputWriteError, is_same_file};
use super::stop::wait_for_stop_signal;
use super::uri;
use super::world::{CommandContext, CommandInputFiles};

pub(super) fn run(args: AuditArguments) -> anyhow::Result<ExitStatus> {
    match args.command {
        Some(AuditCommand::List(args)) => list::run(*args),
        Some(AuditCommand::Schemas(args)) => schemas::run(*args),
        Some(AuditCommand::Diff(args)) => diff::run(&args),
        Some(AuditCommand::Render(args)) => render::run(&args),
        Some(AuditCommand::Resolution(args)) => resolution::run(&args),
        Some(AuditCommand::Sign(args)) => signing::write_audit_report_signature(&args),
        Some(AuditCommand::Verify(args)) => signing::verify_signed_audit_report(&args),
        None => super::runtime::run_async_to_completion(audit_name_list(args)),
    }
}

async fn audit_name_list(args: AuditArguments) -> anyhow::Result<ExitStatus> {
    let outputs = open_report_outputs(&args)?;
    if let Some(journal) = &args.resume {
        // Checks only that the path is usable. The journal is opened once the audit is known.
        OutputSink::open_file("--resume", journal)?;
    }
    let list = args.names.as_deref().map(names::open_name_list).transpose()?;
    let waivers = args.waive.as_deref().map(waivers::read_waivers).transpose().context("--waive")?.unwrap_or_default();
    let history = EarlierAuditReports::read(&args.earlier)?;
    let mut interrupt = pin!(wait_for_stop_signal());
    let PreparedAudit { world, registry, mut scope, pin, mut writer } = tokio::select! {
        prepared = PreparedAudit::prepare(&args, &history) => prepared?,
        () = &mut interrupt => return Ok(ExitStatus::Interrupted),
    };
    let unread = registry.as_ref().and_then(RegistryNameList::read_error);
    let listed = NameListAuditor {
        resolver: &world.resolver,
        pin: pin.as_ref(),
        earlier: history.last.as_ref(),
        pace: AuditConcurrencyLimits::from_config(&world.config, args.concurrency),
    };
    let (ending, digest) =
        listed.judge_all_names(AuditNameSources { list, registry }, &mut writer, &mut interrupt).await?;
    let ending = match unread {
        Some(why) if ending == AuditEnding::Complete => AuditEnding::RegistryUnread(why),
        _ => ending,
    };
    if let Some(pin) = &pin {
        scope.block = pin.block_numbers().await;
    }
    let list = NameListReference { file: name_list_file_label(args.names.as_deref()), digest };
    let (ending, schema_layers) = if args.schema_layers && ending.has_all_rows() {
        tokio::select! {
            layers = schemas::audit_schema_layers(&world) => (ending, Some(layers?)),
            () = &mut interrupt => match ending {
                AuditEnding::Complete => (AuditEnding::Interrupted, None),
                worse => (worse, None),
            },
        }
    } else {
        (ending, None)
    };
    // The reader of the report may stall, so a second signal ends the program.
    tokio::spawn(async {
        wait_for_stop_signal().await;
        std::process::exit(i32::from(ExitStatus::Interrupted.code()));
    });
    let (flags, generated_at) = (args.world.network_flags(), world.resolver.now());
    let about = AuditReportMetadata { scope, ending, list, schema_layers, flags, waivers, generated_at };
    write_audit_report(writer, about, &history, &args, outputs)
}

struct PreparedAudit {
    world: CommandContext,
    registry: Option<RegistryNameList>,
    scope: AuditConditions,
    pin: Option<PinnedBlockResolver>,
    writer: AuditRowSpool,
}

impl PreparedAudit {
    /// Detects all errors that can be detected early: an audit of many names must not fail at its end.
    async fn prepare(args: &AuditArguments, history: &EarlierAuditReports) -> anyhow::Result<Self> {
        let world = CommandContext::open_for_name_list(&args.world, ResolutionDepth::Schemas, args.concurrency).await?;
        let registry = RegistryNameList::read_from_arguments(args, &world.resolver).await?;
        let scope = AuditConditions {
            registry: registry.as_ref().and_then(|registry| registry.about.clone()),
            schema_layers: args.schema_layers,
            ..audit_conditions(&world)?
        };
        history.check_comparable(&scope)?;
        let writer = open_audit_row_spool(args, &scope)?;
        let pin = PinnedBlockResolver::read_or_create(
            writer.prepare_pin_file()?.as_deref(),
            &world.resolver,
            &world.config.chain,
        )
        .await?;
        Ok(Self { world, registry, scope, pin, writer })
    }
}

/// Opens the outputs of the report. They must not overwrite an input file.
fn open_report_outputs(args: &AuditArguments) -> anyhow::Result<AuditReportOutputs> {
    let files = [
        ("--names", args.names.as_deref()),
        ("--registry", args.registry.as_deref().map(Path::new)),
        ("--resume", args.resume.as_deref()),
        ("--waive", args.waive.as_deref()),
    ];
    let world = CommandInputFiles::from_arguments(&args.world);
    let read: Vec<_> = files.into_iter().chain(args.earlier.report_files()).chain(world.iter()).collect();
    AuditReportOutputs::open_outputs(&args.output, read)
}

/// Writes the report. Returns the exit status.
fn write_audit_report(
    writer: AuditRowSpool,
    about: AuditReportMetadata,
    history: &EarlierAuditReports,
    args: &AuditArguments,
    mut outputs: AuditReportOutputs,
) -> anyhow::Result<ExitStatus> {
    let has_all_rows = about.ending.has_all_rows();
    if writer.counts.names == 0 {
        return end_audit_without_rows(about.ending, args);
    }
    // Printed before the report, whose reader may stall.
    if let (AuditEnding::Interrupted, Some(journal)) = (&about.ending, &args.resume) {
        anstream::eprintln!(
            "clresolve: {} contains the rows so far; the same command continues from here",
            journal.display()
        );
    }
    let (counts, spool) = writer.finish()?;
    let exit =
        about.write_report(counts, &spool, history, &mut outputs).map_err(|error| add_journal_advice(&spool, error))?;
    let is_gone = outputs.is_pipe_closed();
    outputs.finish().map_err(|error| add_journal_advice(&spool, error.into()))?;
    if has_all_rows && !is_gone {
        spool.discard_journal()?;
    }
    Ok(exit)
}

/// Ends an audit without rows, which writes no report.
fn end_audit_without_rows(ending: AuditEnding, args: &AuditArguments) -> anyhow::Result<ExitStatus> {
    match ending {
        AuditEnding::Complete if args.names.is_none() => bail!("--registry: the manifest has no entry"),
        AuditEnding::Complete => bail!("--names: the list contains no name"),
        AuditEnding::ListFailed(why) => bail!("--names: {why}"),
        AuditEnding::DiskFull(why) => Err(AuditRowSpool::disk_full_error(why)),
        ending => Ok(audit_exit_status(TrustState::Trusted, &ending)),
    }
}

/// If the report cannot be written, adds that the journal keeps the rows.
fn add_journal_advice(rows: &AuditRowFile, error: anyhow::Error) -> anyhow::Error {
    match rows.journal_path().filter(|_| error.is::<OutputWriteError>()) {
        Some(journal) => error.context(AuditRowSpool::journal_advice(journal)),
        None => error,
    }
}

/// Opens the buffer for rows. A journal may already contain rows of an interrupted run.
fn open_audit_row_spool(args: &AuditArguments, scope: &AuditConditions) -> anyhow::Result<AuditRowSpool> {
    let Some(journal) = &args.resume else { return AuditRowSpool::create_scratch_file() };
    let job = AuditJournalHeader::from_inputs(scope.clone(), args.names.as_deref(), args.earlier.since.as_deref())?;
    let writer = AuditRowSpool::resume_journal(journal, &job)?;
    // The journal may not have existed when the files were compared.
    let mut files = args.output.formats_with_outputs()?.into_iter().filter_map(|(_, out)| out.file);
    if files.any(|report| is_same_file(&report, journal)) {
        bail!("--resume {}: --out names the same file; name another", journal.display());
    }
    Ok(writer)
}

/// The file of the list, as a report refers to it.
pub(super) fn name_list_file_label(names: Option<&Path>) -> Option<String> {
    let file = names.filter(|file| *file != Path::new(input::STDIN))?;
    Some(uri::escaped_uri_reference(&file.display().to_string()))
}

/// The digest of all settings that affect states and findings, except profile, depth and required proof.
fn judgement_settings_digest(config: &Config) -> String {
    let (chain, rules) = (&config.chain, &config.rules);
    let mut publishers = rules.allowed_publishers.clone();
    publishers.sort_unstable();
    publishers.dedup();
    // A single endpoint causes a warning, unless it is the operator's own.
    let believes_own =
        matches!(chain.proof_grade_demand(), Ok(ProofGradeDemand::SingleRpc)) && chain.endpoints.iter().all(|e| e.own);
    canonical_digest(&json!({
        "universal_resolver": chain.universal_resolver.to_string(),
        "genesis": chain.genesis.map(|hash| hash.to_string()),
        "max_head_age": chain.effective_max_head_age(),
        "ccip_read": chain.ccip_read,
        "own_endpoint": believes_own,
        "require_all_sources": rules.require_all_sources,
        "allowed_publishers": publishers,
        "links": rules.links,
        "record_rest": config.memory.record_rest,
    }))
}

/// The question and the rules of an audit of this world.
pub(super) fn audit_conditions(world: &CommandContext) -> anyhow::Result<AuditConditions> {
    let config = &world.config;
    let profile = world.resolver.profiles().get(&config.rules.profile).context("the profile does not exist")?;
    let manifest = |m: &clresolve_verdict::manifest::SchemaReleaseManifest| PinnedDocument {
        id: m.id().to_owned(),
        digest: m.digest().to_string(),
    };
    Ok(AuditConditions {
        world: config.chain.world.clone(),
        chain: format!("eip155:{}", config.chain.id),
        block: config.chain.block.to_string(),
        profile: PinnedDocument { id: profile.id().to_owned(), digest: profile.digest().to_string() },
        manifests: profile.manifests().map(manifest).collect(),
        depth: config.rules.depth,
        demands: Some(StateDecidingSettings::from_grade_demand(
            config.chain.proof_grade_demand()?,
            judgement_settings_digest(config),
        )),
        registry: None,
        schema_layers: false,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_setting_that_decides_states_gives_other_rules() {
        let with = |change: &dyn Fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            judgement_settings_digest(&config)
        };
        let usual = with(&|_| {});
        let changes: [&dyn Fn(&mut Config); 9] = [
            &|config| config.chain.universal_resolver = [1; 20].into(),
            &|config| config.chain.genesis = Some([1; 32].into()),
            &|config| config.chain.ccip_read ^= true,
            &|config| config.chain.max_head_age = Some(Duration::from_secs(90)),
            &|config| {
                config.chain.endpoints.truncate(1);
                config.chain.endpoints[0].own = true;
            },
            &|config| config.rules.require_all_sources ^= true,
            &|config| config.rules.allowed_publishers = vec!["a.eth".to_owned()],
            &|config| config.rules.links ^= true,
            &|config| config.memory.record_rest += 1,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert_ne!(with(change), usual, "{number}");
        }
        let publishers = |names: &[&str]| {
            with(&|config| config.rules.allowed_publishers = names.iter().map(|name| (*name).to_owned()).collect())
        };
        assert_eq!(publishers(&["a.eth", "b.eth"]), publishers(&["b.eth", "a.eth"]));
        assert_eq!(with(&|config| config.cache.refresh_runs += 1), usual);
    }
}
