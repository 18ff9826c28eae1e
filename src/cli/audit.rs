//! `audit`: a list of names to a report. Rows wait in a file, so that memory does not grow with the list. A comparison
//! with an earlier report is the exception: it holds both.

mod block_pin;
mod diff;
mod history;
mod judge;
mod list;
mod merge;
mod registry;
mod report;
mod resolution;
mod rows;
mod schemas;
mod signing;
mod sources;

use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::pin::pin;

use anyhow::{Context as _, bail};
use serde_json::json;

pub(super) use self::block_pin::BlockPin;
use self::history::History;
pub(super) use self::judge::{ListAudit, Pace};
use self::registry::Registry;
use self::report::{ToOutput, exit};
pub(super) use self::rows::RowWriter;
use self::rows::{Job, Spool};
pub(super) use self::sources::Sources;
use super::args::{AuditArgs, AuditCommand};
use super::exit::Exit;
use super::input;
use super::names;
use super::output::{Output, Unwritable, is_same_file};
use super::stop::asked_to_stop;
use super::uri;
use super::world::{Reader, World, WorldFiles};
use crate::chain::{BlockSelector, GradeDemand};
use crate::config::Config;
use crate::report::{Demands, Ending, ListOfNames, PublishedSchema, Report, Scope};
use crate::text::Foreign;
use crate::verdict::{Depth, Pinned, canonical_digest};

pub(super) fn run(args: AuditArgs) -> anyhow::Result<Exit> {
    match args.command {
        Some(AuditCommand::List(args)) => list::run(*args),
        Some(AuditCommand::Schemas(args)) => schemas::run(*args),
        Some(AuditCommand::Diff(args)) => diff::run(&args),
        Some(AuditCommand::Merge(args)) => merge::run(&args),
        Some(AuditCommand::Resolution(args)) => resolution::run(&args),
        Some(AuditCommand::Sign(args)) => signing::sign(&args),
        Some(AuditCommand::Verify(args)) => signing::verify(&args),
        None => super::runtime::run_to_end(audit(args)),
    }
}

async fn audit(args: AuditArgs) -> anyhow::Result<Exit> {
    let output = output_of(&args)?;
    if let Some(journal) = &args.resume {
        // Only whether it can be one: it is opened once the audit is known.
        Output::file("--resume", journal)?;
    }
    let list = args.names.as_deref().map(names::open).transpose()?;
    let mut interrupt = pin!(asked_to_stop());
    let history = History::read(&args.earlier)?;
    let world = tokio::select! {
        world = World::open_for_list(&args.world, Reader::People, Depth::Schemas, args.concurrency) => world?,
        () = &mut interrupt => return Ok(Exit::Interrupted),
    };
    let registry = tokio::select! {
        registry = Registry::of(&args, &world.resolver) => registry?,
        () = &mut interrupt => return Ok(Exit::Interrupted),
    };
    let survey = if args.agreement { world.resolver.upstream_survey()? } else { None };
    let pin = tokio::select! {
        pin = BlockPin::of(args.pin.as_deref(), &world) => pin?,
        () = &mut interrupt => return Ok(Exit::Interrupted),
    };
    let mut scope = Scope {
        registry: registry.as_ref().and_then(|registry| registry.about.clone()),
        agreement: survey.is_some(),
        schema_layers: args.schema_layers,
        ..scope(&world)?
    };
    if let Some(pin) = &pin {
        scope.block = pin.first().await;
    }
    let unread = registry.as_ref().and_then(Registry::unread);
    let sources = Sources { list, registry };
    if args.shard.is_some() && pin.is_none() && !matches!(world.config.chain.block, BlockSelector::Number(_)) {
        bail!(
            "--shard: all shards read one block; share a file with --pin, or name a block with --block, such as the \
             finalized one of `clresolve doctor`"
        );
    }
    // Before anything is asked: an audit of many names must not fail at its end.
    history.check_worlds(&scope)?;
    let mut kept = kept(&args, &scope)?;
    let pin_file = kept.pin_file()?;
    let pin = match pin {
        Some(pin) => Some(pin),
        None => tokio::select! {
            pin = BlockPin::of_its_own(pin_file.as_deref(), &world.resolver, &world.config.chain) => pin?,
            () = &mut interrupt => return Ok(Exit::Interrupted),
        },
    };
    let pace = Pace::of(&world.config, args.concurrency);
    let listed = ListAudit {
        resolver: &world.resolver,
        pin: pin.as_ref(),
        survey: survey.as_ref(),
        earlier: history.last.as_ref(),
        shard: args.shard,
        pace,
    };
    let (ending, digest) = listed.run(sources, &mut kept, interrupt).await?;
    let ending = match unread {
        Some(why) if ending == Ending::Complete => Ending::RegistryUnread(why),
        _ => ending,
    };
    if let Some(pin) = &pin {
        scope.block = pin.blocks().await;
    }
    // The report may go to a reader that stalls: a second signal ends the program as the first would have.
    tokio::spawn(async {
        asked_to_stop().await;
        std::process::exit(i32::from(Exit::Interrupted.code()));
    });
    let list = ListOfNames { file: list_file(args.names.as_deref()), digest };
    // The layers are the same for all shards: the first one looks at them.
    let looks = args.schema_layers && ending.has_all_rows() && args.shard.is_none_or(|shard| shard.index() == 1);
    let schema_layers = if looks { Some(schemas::layers(&world).await?) } else { None };
    let about = About { scope, ending, list, schema_layers };
    finish(kept, about, &history, &args, output)
}

/// Where the report goes: not over a file that is read.
fn output_of(args: &AuditArgs) -> anyhow::Result<Output> {
    let files = [
        ("--names", args.names.as_deref()),
        ("--registry", args.registry.as_deref().map(Path::new)),
        ("--pin", args.pin.as_deref()),
        ("--resume", args.resume.as_deref()),
    ];
    let world = WorldFiles::of(&args.world, Reader::People);
    Output::apart_from(&args.output.out, files.into_iter().chain(args.earlier.files()).chain(world.iter()))
}

/// What a report says beside its rows.
struct About {
    scope: Scope,
    ending: Ending,
    list: ListOfNames,
    schema_layers: Option<Vec<PublishedSchema>>,
}

/// Writes the report; its exit code.
fn finish(
    kept: RowWriter,
    about: About,
    history: &History,
    args: &AuditArgs,
    mut output: Output,
) -> anyhow::Result<Exit> {
    let About { scope, ending, list, schema_layers } = about;
    let mut exit = exit(&kept.counts, &ending);
    if kept.counts.names == 0 && (args.shard.is_none() || !ending.has_all_rows()) {
        return match ending {
            Ending::Complete if args.names.is_none() => bail!("--registry: the manifest has no entry"),
            Ending::Complete => bail!("--names: the list holds no name"),
            Ending::ListFailed(why) => bail!("--names: {why}"),
            Ending::Interrupted | Ending::RegistryUnread(_) | Ending::ShardsCut(_) | Ending::ShardsLack(_) => Ok(exit),
        };
    }
    if let Some(warning) = ending.warning() {
        anstream::eprintln!("clresolve: {}", Foreign::new(&warning));
    }
    if let (Ending::Interrupted, Some(journal)) = (&ending, &args.resume) {
        anstream::eprintln!(
            "clresolve: the same command goes on from here; {} holds what is judged",
            journal.display()
        );
    }
    let (counts, spool) = kept.finish()?;
    let since = history.changes(&scope, &ending, &spool, schema_layers.as_deref())?;
    if let Some(since) = &since {
        exit = exit.max(since.outcome(&args.earlier.fail_on).into());
    }
    let (before, earlier) = (history.before(), history.counts());
    let flags = args.world.flags();
    let report =
        Report { scope, counts, ending, since, before, earlier, shard: args.shard, list, schema_layers, flags };
    let mut out = BufWriter::new(ToOutput(&mut output));
    let written = report.write(args.output.form().into(), &spool, &mut out).and_then(|()| out.flush());
    written.map_err(|error| unwritable(&spool, Unwritable::new("the report", error)))?;
    drop(out);
    let is_gone = output.is_gone();
    output.finish().map_err(|error| unwritable(&spool, error))?;
    if report.ending.has_all_rows() && !is_gone {
        spool.discard()?;
    }
    Ok(exit)
}

fn unwritable(rows: &Spool, error: Unwritable) -> anyhow::Error {
    let error = anyhow::Error::new(error);
    match rows.journal() {
        Some(journal) => error.context(RowWriter::advice(journal)),
        None => error,
    }
}

/// Where rows are kept, with those of a run that was killed.
fn kept(args: &AuditArgs, scope: &Scope) -> anyhow::Result<RowWriter> {
    let Some(journal) = &args.resume else { return RowWriter::scratch() };
    let job = Job::of(scope.clone(), args.shard, args.names.as_deref(), args.earlier.since.as_deref())?;
    let kept = RowWriter::resume(journal, &job)?;
    // It may be new since the files were compared.
    if args.output.out.file.as_deref().is_some_and(|report| is_same_file(report, journal)) {
        bail!("--resume {}: --out names the same file; name another", journal.display());
    }
    Ok(kept)
}

/// The file of the list, as reports name it.
pub(super) fn list_file(names: Option<&Path>) -> Option<String> {
    let file = names.filter(|file| *file != Path::new(input::STDIN))?;
    Some(uri::reference(&file.display().to_string()))
}

/// The digest of the settings that decide states and findings, beside profile, depth and the demanded proof.
fn settings_digest(config: &Config) -> String {
    let (chain, rules) = (&config.chain, &config.rules);
    let mut publishers = rules.allowed_publishers.clone();
    publishers.sort_unstable();
    publishers.dedup();
    // One endpoint's word is a warning, unless it is the operator's own.
    let believes_own = matches!(chain.demand(), Ok(GradeDemand::SingleRpc)) && chain.endpoints.iter().all(|e| e.own);
    canonical_digest(&json!({
        "universal_resolver": chain.universal_resolver.to_string(),
        "genesis": chain.genesis.map(|hash| hash.to_string()),
        "ccip_read": chain.ccip_read,
        "own_endpoint": believes_own,
        "require_all_sources": rules.require_all_sources,
        "allowed_publishers": publishers,
        "links": rules.links,
        "record_rest": config.memory.record_rest,
    }))
}

/// The question and the rules of an audit of this world.
pub(super) fn scope(world: &World) -> anyhow::Result<Scope> {
    let config = &world.config;
    let profile = world.resolver.profiles().get(&config.rules.profile).context("the profile does not exist")?;
    let manifest = |m: &crate::manifest::Manifest| Pinned { id: m.id().to_owned(), digest: m.digest().to_string() };
    Ok(Scope {
        world: config.chain.world.clone(),
        chain: format!("eip155:{}", config.chain.id),
        block: config.chain.block.to_string(),
        profile: Pinned { id: profile.id().to_owned(), digest: profile.digest().to_string() },
        manifests: profile.manifests().map(manifest).collect(),
        depth: config.rules.depth,
        demands: Some(Demands::of(config.chain.demand()?, settings_digest(config))),
        registry: None,
        agreement: false,
        schema_layers: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_that_decides_states_gives_other_rules() {
        let with = |change: &dyn Fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            settings_digest(&config)
        };
        let usual = with(&|_| {});
        let changes: [&dyn Fn(&mut Config); 8] = [
            &|config| config.chain.universal_resolver = [1; 20].into(),
            &|config| config.chain.genesis = Some([1; 32].into()),
            &|config| config.chain.ccip_read ^= true,
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
