//! `memory`: shows and removes the entries of names and of sellers' origins, and accepts proposed identities.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use clresolve_core::name::EnsName;
use clresolve_core::text::UntrustedText;
use clresolve_payment::check::{self, ProvenSellerIdentity, RememberedPayee, WebOrigin};
use clresolve_resolver::config::Config;
use clresolve_resolver::memory::{MemoryFile, NameHistoryKey, OriginKey};
use clresolve_verdict::evidence::continuity::NameHistory;
use clresolve_verdict::verdict::ResolutionDepth;
use jiff::Timestamp;
use serde::Serialize;

use super::args::{MemoryCommand, MemoryForgetArguments, MemoryShowArguments, MemorySubject, NetworkArguments};
use super::exit::ExitStatus;
use super::notice;
use super::output::{OutputSink, ResultWriter};
use super::world::{self, CommandPaymentAuthority};

/// The memory entry of a name, for programs.
#[derive(Serialize)]
struct NameMemoryRow<'h> {
    name: &'h str,
    world: &'h str,
    chain: String,
    remembered: bool,
    #[serde(flatten)]
    history: &'h NameHistory,
}

/// The memory entry of an origin, for programs.
#[derive(Serialize)]
struct OriginMemoryRow<'h> {
    origin: &'h str,
    world: &'h str,
    chain: String,
    remembered: bool,
    #[serde(flatten)]
    seller: &'h check::OriginMemoryEntry,
}

pub(super) fn run(command: MemoryCommand) -> anyhow::Result<ExitStatus> {
    super::runtime::run_async_until_interrupt(async {
        match command {
            MemoryCommand::Show(args) => show_memory_entries(args).await,
            MemoryCommand::Accept { origin, world } => accept_seller_identity(origin, &world).await,
            MemoryCommand::Forget(args) => forget_memory_entry(args).await,
        }
    })
}

async fn show_memory_entries(args: MemoryShowArguments) -> anyhow::Result<ExitStatus> {
    let memory = ConfiguredMemory::open(&args.world).await?;
    let output = OutputSink::new(&args.output.out)?;
    if args.subjects.is_empty() {
        return memory.show_origins(ResultWriter::for_result_list(output, args.output.output_format()));
    }
    let mut results = ResultWriter::for_requested_results(output, args.output.output_format(), args.subjects.len());
    for subject in &args.subjects {
        match subject {
            MemorySubject::Name(name) => {
                let name = parse_ens_name(name)?;
                let history = memory.store.recall_history(&memory.name_history_key(&name))?;
                let row = memory.name_row(&name, &history);
                results.push(&row, |_| format_name_memory_row(&row))?;
            }
            MemorySubject::Origin(origin) => {
                let seller = memory.store.recall_origin(&memory.origin_key(origin))?;
                let row = memory.origin_row(origin.as_str(), &seller);
                results.push(&row, |_| format_origin_memory_row(&row))?;
            }
        }
    }
    results.finish()?;
    Ok(ExitStatus::Trusted)
}

async fn accept_seller_identity(origin: WebOrigin, world: &NetworkArguments) -> anyhow::Result<ExitStatus> {
    let memory = ConfiguredMemory::open(world).await?;
    let accepted = memory.store.accept_proposed_identity(&memory.origin_key(&origin));
    let accepted = accepted.with_context(|| UntrustedText::new(origin.as_str()).to_string())?;
    notice::print_notice(format_args!(
        "clresolve: the seller at {} is {}",
        UntrustedText::new(origin.as_str()),
        UntrustedText::new(&accepted.to_string())
    ));
    Ok(ExitStatus::Trusted)
}

async fn forget_memory_entry(args: MemoryForgetArguments) -> anyhow::Result<ExitStatus> {
    let memory = ConfiguredMemory::open(&args.world).await?;
    if args.all {
        notice::print_notice(format_args!("clresolve: {} names forgotten", memory.store.forget_all_histories()?));
        return Ok(ExitStatus::Trusted);
    }
    for subject in &args.subjects {
        let (known, shown) = match subject {
            MemorySubject::Name(name) => {
                let name = parse_ens_name(name)?;
                (memory.store.forget_history(&memory.name_history_key(&name))?, name.as_str().to_owned())
            }
            MemorySubject::Origin(origin) => {
                (memory.store.forget_origin(&memory.origin_key(origin))?, origin.to_string())
            }
        };
        let said = if known { "forgotten" } else { "was not remembered" };
        notice::print_notice(format_args!("clresolve: {} {said}", UntrustedText::new(&shown)));
    }
    Ok(ExitStatus::Trusted)
}

/// The configured memory, and the configuration that selects its network and chain.
struct ConfiguredMemory {
    config: Config,
    store: MemoryFile,
}

impl ConfiguredMemory {
    async fn open(args: &NetworkArguments) -> anyhow::Result<Self> {
        let (config, _sandbox) =
            world::read_config_with_sandbox(args, CommandPaymentAuthority::Others, ResolutionDepth::default()).await?;
        if args.sandbox {
            bail!("--sandbox: the sandbox has no memory file");
        }
        let path =
            config.memory.path.as_deref().context("no memory is configured; the key memory.path names its file")?;
        if !path.exists() {
            bail!("{}: there is no such file, so nothing is remembered yet", path.display());
        }
        let store = MemoryFile::open(path, config.memory.names)?;
        Ok(Self { config, store })
    }

    fn chain_network_name(&self) -> &str {
        &self.config.chain.world
    }

    fn chain_id(&self) -> u64 {
        self.config.chain.id
    }

    fn name_history_key(&self, name: &EnsName) -> NameHistoryKey {
        NameHistoryKey::new(self.chain_network_name(), self.chain_id(), name)
    }

    fn origin_key(&self, origin: &WebOrigin) -> OriginKey {
        OriginKey::new(self.chain_network_name(), self.chain_id(), origin)
    }

    fn name_row<'h>(&'h self, name: &'h EnsName, history: &'h NameHistory) -> NameMemoryRow<'h> {
        let (world, chain) = (self.chain_network_name(), format!("eip155:{}", self.chain_id()));
        NameMemoryRow { name: name.as_str(), world, chain, remembered: !history.is_empty(), history }
    }

    fn origin_row<'h>(&'h self, origin: &'h str, seller: &'h check::OriginMemoryEntry) -> OriginMemoryRow<'h> {
        let (world, chain) = (self.chain_network_name(), format!("eip155:{}", self.chain_id()));
        OriginMemoryRow { origin, world, chain, remembered: *seller != check::OriginMemoryEntry::default(), seller }
    }

    /// Shows every origin. Names an unreadable entry on standard error, and fails after the others.
    fn show_origins(&self, mut results: ResultWriter) -> anyhow::Result<ExitStatus> {
        let mut unreadable = 0_usize;
        for (origin, seller) in self.store.list_origins(self.chain_network_name(), self.chain_id())? {
            match seller {
                Ok(seller) => {
                    let row = self.origin_row(&origin, &seller);
                    results.push(&row, |_| format_origin_memory_row(&row))?;
                }
                Err(error) => {
                    unreadable += 1;
                    notice::print_notice(format_args!("clresolve: {}: {error}", UntrustedText::new(&origin)));
                }
            }
        }
        results.finish()?;
        if unreadable > 0 {
            bail!("{unreadable} entries cannot be read");
        }
        Ok(ExitStatus::Trusted)
    }
}

fn parse_ens_name(name: &str) -> anyhow::Result<EnsName> {
    EnsName::parse(name).with_context(|| UntrustedText::new(name).to_string())
}

fn format_name_memory_row(said: &NameMemoryRow<'_>) -> String {
    let NameMemoryRow { name, world, chain, history, .. } = said;
    if !said.remembered {
        return format!("{}  nothing is remembered ({world} {chain})\n", UntrustedText::new(name));
    }
    let (first, last) = (history.first_block, history.last_block);
    let mut text = format!("{}  known from block {first} to {last} ({world} {chain})\n", UntrustedText::new(name));
    for seen in &history.versions {
        let version = UntrustedText::new(&seen.version);
        let _ = writeln!(
            text,
            "  version {version}  {}  first seen at block {}",
            UntrustedText::new(&seen.card),
            seen.block
        );
    }
    for (key, record) in &history.records {
        if let Some(block) = record.changed {
            let _ = writeln!(text, "  {}  changed, seen at block {block}", UntrustedText::new(key));
        }
    }
    text
}

fn format_origin_memory_row(row: &OriginMemoryRow<'_>) -> String {
    let OriginMemoryRow { origin, world, chain, remembered, seller } = row;
    let origin = UntrustedText::new(origin);
    if !remembered {
        return format!("{origin}  nothing is remembered ({world} {chain})\n");
    }
    let mut text = format!("{origin}  ({world} {chain})\n");
    if let Some(ProvenSellerIdentity { identity, at, block }) = &seller.identity {
        let _ =
            writeln!(text, "  identity {}  {}", UntrustedText::new(&identity.to_string()), first_seen_text(at, *block));
    }
    if let Some(ProvenSellerIdentity { identity, at, block }) = &seller.proposed {
        let _ =
            writeln!(text, "  proposed {}  {}", UntrustedText::new(&identity.to_string()), first_seen_text(at, *block));
        let _ = writeln!(text, "  `clresolve memory accept {origin}` accepts it");
    }
    if let Some(RememberedPayee { address, network, at, block }) = &seller.payee {
        let _ = writeln!(text, "  payee {address} on {network}  {}", first_seen_text(at, *block));
    }
    text
}

fn first_seen_text(at: &Timestamp, block: Option<u64>) -> String {
    let block = block.map(|block| format!(", block {block}")).unwrap_or_default();
    format!("first seen at {at}{block}")
}
