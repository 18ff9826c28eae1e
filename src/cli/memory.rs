//! `memory`: what is remembered of names, and how to forget it.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use clresolve_core::name::EnsName;
use clresolve_core::text::Foreign;
use clresolve_resolver::config::Config;
use clresolve_resolver::memory::{HistoryKey, Store};
use clresolve_verdict::evidence::continuity::History;
use clresolve_verdict::verdict::Depth;
use serde::Serialize;

use super::args::{ForgetArgs, MemoryArgs, MemoryCommand, ShowArgs, WorldArgs};
use super::exit::Exit;
use super::notice;
use super::output::{Output, Results};
use super::world::{self, Reader};

/// What is remembered of one name, for programs.
#[derive(Serialize)]
struct Remembered<'h> {
    name: &'h str,
    world: &'h str,
    chain: String,
    remembered: bool,
    #[serde(flatten)]
    history: &'h History,
}

pub(super) fn run(args: MemoryArgs) -> anyhow::Result<Exit> {
    super::runtime::run_async(async {
        match args.command {
            MemoryCommand::Show(args) => show(args).await,
            MemoryCommand::Forget(args) => forget(args).await,
        }
    })
}

async fn show(args: ShowArgs) -> anyhow::Result<Exit> {
    let (config, store) = open(&args.world).await?;
    let mut results = Results::named(Output::new(&args.output.out)?, args.output.form(), args.names.len());
    for name in names(&args.names)? {
        let history = store.recall(&place(&config, &name))?;
        let (world, chain) = (config.chain.world.as_str(), format!("eip155:{}", config.chain.id));
        let remembered = !history.is_empty();
        let said = Remembered { name: name.as_str(), world, chain, remembered, history: &history };
        results.push(&said, |_| people(&said))?;
    }
    results.finish()?;
    Ok(Exit::Trusted)
}

async fn forget(args: ForgetArgs) -> anyhow::Result<Exit> {
    let (config, store) = open(&args.world).await?;
    if args.all {
        notice::note(format_args!("clresolve: {} names forgotten", store.forget_all()?));
        return Ok(Exit::Trusted);
    }
    for name in names(&args.names)? {
        let known = store.forget(&place(&config, &name))?;
        let said = if known { "forgotten" } else { "was not remembered" };
        notice::note(format_args!("clresolve: {} {said}", Foreign::new(name.as_str())));
    }
    Ok(Exit::Trusted)
}

async fn open(args: &WorldArgs) -> anyhow::Result<(Config, Store)> {
    let (config, _sandbox) = world::settings(args, Reader::Others, Depth::default()).await?;
    if args.sandbox {
        bail!("--sandbox: the sandbox remembers nothing");
    }
    let path = config.memory.path.as_deref().context("no memory is configured; the key memory.path names its file")?;
    if !path.exists() {
        bail!("{}: there is no such file, so nothing is remembered yet", path.display());
    }
    let store = Store::open(path, config.memory.names)?;
    Ok((config, store))
}

fn names(typed: &[String]) -> anyhow::Result<Vec<EnsName>> {
    let parse = |name: &String| EnsName::parse(name).with_context(|| Foreign::new(name).to_string());
    typed.iter().map(parse).collect()
}

fn place(config: &Config, name: &EnsName) -> HistoryKey {
    HistoryKey::new(&config.chain.world, config.chain.id, name)
}

fn people(said: &Remembered<'_>) -> String {
    let Remembered { name, world, chain, history, .. } = said;
    if !said.remembered {
        return format!("{}  nothing is remembered ({world} {chain})\n", Foreign::new(name));
    }
    let (first, last) = (history.first_block, history.last_block);
    let mut text = format!("{}  known from block {first} to {last} ({world} {chain})\n", Foreign::new(name));
    for seen in &history.versions {
        let version = Foreign::new(&seen.version);
        let _ = writeln!(text, "  version {version}  {}  first seen at block {}", Foreign::new(&seen.card), seen.block);
    }
    for (key, record) in &history.records {
        if let Some(block) = record.changed {
            let _ = writeln!(text, "  {}  changed, seen at block {block}", Foreign::new(key));
        }
    }
    text
}
