//! `memory`: shows and removes the entries of names and of sellers' origins, and accepts proposed identities.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use clresolve_core::name::EnsName;
use clresolve_core::text::Foreign;
use clresolve_payment::check::{self, SeenIdentity, SeenPayee, WebOrigin};
use clresolve_resolver::config::Config;
use clresolve_resolver::memory::{HistoryKey, OriginKey, Store};
use clresolve_verdict::evidence::continuity::History;
use clresolve_verdict::verdict::Depth;
use jiff::Timestamp;
use serde::Serialize;

use super::args::{ForgetArgs, MemoryCommand, ShowArgs, Subject, WorldArgs};
use super::exit::Exit;
use super::notice;
use super::output::{Output, Results};
use super::world::{self, Reader};

/// The memory entry of a name, for programs.
#[derive(Serialize)]
struct Remembered<'h> {
    name: &'h str,
    world: &'h str,
    chain: String,
    remembered: bool,
    #[serde(flatten)]
    history: &'h History,
}

/// The memory entry of an origin, for programs.
#[derive(Serialize)]
struct RememberedOrigin<'h> {
    origin: &'h str,
    world: &'h str,
    chain: String,
    remembered: bool,
    #[serde(flatten)]
    seller: &'h check::Remembered,
}

pub(super) fn run(command: MemoryCommand) -> anyhow::Result<Exit> {
    super::runtime::run_async(async {
        match command {
            MemoryCommand::Show(args) => show(args).await,
            MemoryCommand::Accept { origin, world } => accept(origin, &world).await,
            MemoryCommand::Forget(args) => forget(args).await,
        }
    })
}

async fn show(args: ShowArgs) -> anyhow::Result<Exit> {
    let memory = OpenMemory::open(&args.world).await?;
    let output = Output::new(&args.output.out)?;
    if args.subjects.is_empty() {
        return memory.show_origins(Results::list(output, args.output.form()));
    }
    let mut results = Results::named(output, args.output.form(), args.subjects.len());
    for subject in &args.subjects {
        match subject {
            Subject::Name(name) => {
                let name = parsed(name)?;
                let history = memory.store.recall(&memory.name_key(&name))?;
                let row = memory.of_name(&name, &history);
                results.push(&row, |_| people(&row))?;
            }
            Subject::Origin(origin) => {
                let seller = memory.store.recall_origin(&memory.origin_key(origin))?;
                let row = memory.of_origin(origin.as_str(), &seller);
                results.push(&row, |_| people_of_origin(&row))?;
            }
        }
    }
    results.finish()?;
    Ok(Exit::Trusted)
}

async fn accept(origin: WebOrigin, world: &WorldArgs) -> anyhow::Result<Exit> {
    let memory = OpenMemory::open(world).await?;
    let accepted = memory.store.accept_origin(&memory.origin_key(&origin));
    let accepted = accepted.with_context(|| Foreign::new(origin.as_str()).to_string())?;
    notice::note(format_args!(
        "clresolve: the seller at {} is {}",
        Foreign::new(origin.as_str()),
        Foreign::new(&accepted.to_string())
    ));
    Ok(Exit::Trusted)
}

async fn forget(args: ForgetArgs) -> anyhow::Result<Exit> {
    let memory = OpenMemory::open(&args.world).await?;
    if args.all {
        notice::note(format_args!("clresolve: {} names forgotten", memory.store.forget_all()?));
        return Ok(Exit::Trusted);
    }
    for subject in &args.subjects {
        let (known, shown) = match subject {
            Subject::Name(name) => {
                let name = parsed(name)?;
                (memory.store.forget(&memory.name_key(&name))?, name.as_str().to_owned())
            }
            Subject::Origin(origin) => (memory.store.forget_origin(&memory.origin_key(origin))?, origin.to_string()),
        };
        let said = if known { "forgotten" } else { "was not remembered" };
        notice::note(format_args!("clresolve: {} {said}", Foreign::new(&shown)));
    }
    Ok(Exit::Trusted)
}

/// The configured memory, and the configuration that selects its network and chain.
struct OpenMemory {
    config: Config,
    store: Store,
}

impl OpenMemory {
    async fn open(args: &WorldArgs) -> anyhow::Result<Self> {
        let (config, _sandbox) = world::settings(args, Reader::Others, Depth::default()).await?;
        if args.sandbox {
            bail!("--sandbox: the sandbox has no memory file");
        }
        let path =
            config.memory.path.as_deref().context("no memory is configured; the key memory.path names its file")?;
        if !path.exists() {
            bail!("{}: there is no such file, so nothing is remembered yet", path.display());
        }
        let store = Store::open(path, config.memory.names)?;
        Ok(Self { config, store })
    }

    fn world(&self) -> &str {
        &self.config.chain.world
    }

    fn chain(&self) -> u64 {
        self.config.chain.id
    }

    fn name_key(&self, name: &EnsName) -> HistoryKey {
        HistoryKey::new(self.world(), self.chain(), name)
    }

    fn origin_key(&self, origin: &WebOrigin) -> OriginKey {
        OriginKey::new(self.world(), self.chain(), origin)
    }

    fn of_name<'h>(&'h self, name: &'h EnsName, history: &'h History) -> Remembered<'h> {
        let (world, chain) = (self.world(), format!("eip155:{}", self.chain()));
        Remembered { name: name.as_str(), world, chain, remembered: !history.is_empty(), history }
    }

    fn of_origin<'h>(&'h self, origin: &'h str, seller: &'h check::Remembered) -> RememberedOrigin<'h> {
        let (world, chain) = (self.world(), format!("eip155:{}", self.chain()));
        RememberedOrigin { origin, world, chain, remembered: *seller != check::Remembered::default(), seller }
    }

    /// Shows every origin. Names an unreadable entry on standard error, and fails after the others.
    fn show_origins(&self, mut results: Results) -> anyhow::Result<Exit> {
        let mut unreadable = 0_usize;
        for (origin, seller) in self.store.origins(self.world(), self.chain())? {
            match seller {
                Ok(seller) => {
                    let row = self.of_origin(&origin, &seller);
                    results.push(&row, |_| people_of_origin(&row))?;
                }
                Err(error) => {
                    unreadable += 1;
                    notice::note(format_args!("clresolve: {}: {error}", Foreign::new(&origin)));
                }
            }
        }
        results.finish()?;
        if unreadable > 0 {
            bail!("{unreadable} entries cannot be read");
        }
        Ok(Exit::Trusted)
    }
}

fn parsed(name: &str) -> anyhow::Result<EnsName> {
    EnsName::parse(name).with_context(|| Foreign::new(name).to_string())
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

fn people_of_origin(row: &RememberedOrigin<'_>) -> String {
    let RememberedOrigin { origin, world, chain, remembered, seller } = row;
    let origin = Foreign::new(origin);
    if !remembered {
        return format!("{origin}  nothing is remembered ({world} {chain})\n");
    }
    let mut text = format!("{origin}  ({world} {chain})\n");
    if let Some(SeenIdentity { identity, at, block }) = &seller.identity {
        let _ = writeln!(text, "  identity {}  {}", Foreign::new(&identity.to_string()), first_seen(at, *block));
    }
    if let Some(SeenIdentity { identity, at, block }) = &seller.proposed {
        let _ = writeln!(text, "  proposed {}  {}", Foreign::new(&identity.to_string()), first_seen(at, *block));
        let _ = writeln!(text, "  `clresolve memory accept {origin}` accepts it");
    }
    if let Some(SeenPayee { address, network, at, block }) = &seller.payee {
        let _ = writeln!(text, "  payee {address} on {network}  {}", first_seen(at, *block));
    }
    text
}

fn first_seen(at: &Timestamp, block: Option<u64>) -> String {
    let block = block.map(|block| format!(", block {block}")).unwrap_or_default();
    format!("first seen at {at}{block}")
}
