//! Pins a block at which all names of an audit are read. If the audit has a journal (`--resume`), the pin is stored in
//! a file next to it, so that a resumed audit reads the same block. Once nodes have pruned the state of that block, the
//! audit continues at a newer block, which is added to the file.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use clresolve_core::name::EnsName;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError};
use clresolve_core::reason::ReasonCode;
use clresolve_core::text::UntrustedText;
use clresolve_resolver::config::EnsChainConfig;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_verdict::check::records::old_block_reason;
use clresolve_verdict::trust::Resolution;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::cli::input;
use crate::cli::new_file;
use crate::cli::notice;
use crate::cli::output::{self, OutputWriteError};

const SCHEMA: &str = "clresolve.pin/1";

/// Maximum number of blocks of a pin. Nodes keep the state of 128 blocks or more, so the last block is hours newer than
/// the first.
const MOST_BLOCKS: usize = 64;

/// Maximum number of attempts to read a block, if servers request pauses. Also the maximum number of consecutive
/// attempts for a name during which no other name is served.
pub(super) const MOST_TRIES: usize = 4;

/// Maximum size of the file that is read, in bytes. [`MOST_BLOCKS`] take half of it.
const MAX_BYTES: u64 = 16 * 1024;

/// The name that is read to find a block. Every chain with ENS has it.
const ANY_NAME: &str = "eth";

/// A pin, and the resolver that reads its block.
pub(in crate::cli) struct PinnedBlockResolver {
    /// The file, if the audit has a journal.
    path: Option<PathBuf>,
    /// Reads the finalized block.
    unpinned: Resolver,
    state: Mutex<PinnedBlockResolverState>,
}

struct PinnedBlockResolverState {
    file: BlockPinFile,
    resolver: Resolver,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockPinFile {
    schema: String,
    world: String,
    chain: u64,
    /// The first block, followed by its replacements.
    blocks: Vec<PinnedBlock>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinnedBlock {
    number: u64,
    hash: String,
    timestamp: Timestamp,
}

impl PinnedBlockResolver {
    /// Reads the pin from `file`, if an earlier run wrote one. Otherwise pins the current finalized block, and writes
    /// it to `file`.
    ///
    /// Returns `None` if a block other than `finalized` is configured. Also returns `None`, with a notice, if the
    /// finalized block cannot be determined: each name is then read at the block that is finalized at that time.
    pub(super) async fn read_or_create(
        file: Option<&Path>,
        resolver: &Resolver,
        chain: &EnsChainConfig,
    ) -> anyhow::Result<Option<Self>> {
        if chain.block != BlockSelector::Finalized {
            return Ok(None);
        }
        let shown = || file.map(input::escaped_path).unwrap_or_default();
        let found = match file.map(BlockPinFile::read).transpose().with_context(shown)?.flatten() {
            Some(found) => found,
            None => match (BlockPinFile::from_finalized_block(resolver, chain).await, file) {
                (Err(error), _) => {
                    let error = UntrustedText::new(&format!("{error:#}")).to_string();
                    notice::print_notice(format_args!(
                        "clresolve: no block is pinned ({error}); names may be read at different blocks"
                    ));
                    return Ok(None);
                }
                (Ok(begun), None) => begun,
                (Ok(begun), Some(path)) => {
                    begun.write(path)?;
                    begun
                }
            },
        };
        Self::from_pin_file(found, file, resolver, chain).await.with_context(shown).map(Some)
    }

    async fn from_pin_file(
        file: BlockPinFile,
        path: Option<&Path>,
        resolver: &Resolver,
        chain: &EnsChainConfig,
    ) -> anyhow::Result<Self> {
        file.check_network(chain)?;
        let unpinned = resolver.clone();
        let state = Mutex::new(PinnedBlockResolverState { resolver: file.pinned_resolver(&unpinned), file });
        let pin = Self { path: path.map(Path::to_owned), unpinned, state };
        if pin.path.is_some() {
            pin.check_block_hash().await?;
        }
        Ok(pin)
    }

    /// Rejects a pin whose block is not in the chain. If no endpoint answers, the rows will report that.
    async fn check_block_hash(&self) -> anyhow::Result<()> {
        let state = self.state.lock().await;
        let pinned = state.file.last_block();
        match read_block(&state.resolver).await {
            Ok(block) if block.hash.to_string() != pinned.hash => {
                bail!(
                    "block {} of the chain is {}, not {}",
                    pinned.number,
                    block.hash,
                    UntrustedText::new(&pinned.hash)
                )
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// All blocks of the pin, as listed in a report.
    pub(in crate::cli) async fn block_numbers(&self) -> String {
        let numbers =
            self.state.lock().await.file.blocks.iter().map(|block| block.number.to_string()).collect::<Vec<_>>();
        numbers.join(", ")
    }

    /// The replacement of a block whose state was pruned, and its resolver. `None` if there is none.
    ///
    /// # Errors
    /// If the file cannot be written.
    async fn replace_pruned_block(&self, gone: u64) -> anyhow::Result<Option<(u64, Resolver)>> {
        let mut state = self.state.lock().await;
        if state.file.last_block().number != gone {
            return Ok(Some(state.last_block_and_resolver()));
        }
        let Some(file) = self.extend_pin(&state.file).await? else { return Ok(None) };
        let next = file.last_block().number;
        notice::print_notice(format_args!(
            "clresolve: the endpoints no longer have the state of block {gone}; the audit continues at block {next}"
        ));
        *state = PinnedBlockResolverState { resolver: file.pinned_resolver(&self.unpinned), file };
        Ok(Some(state.last_block_and_resolver()))
    }

    /// Extends the pin by the current finalized block, and writes the file.
    async fn extend_pin(&self, file: &BlockPinFile) -> anyhow::Result<Option<BlockPinFile>> {
        let Ok(block) = read_finalized_block(&self.unpinned, file.chain).await else { return Ok(None) };
        if block.number <= file.last_block().number || file.blocks.len() >= MOST_BLOCKS {
            return Ok(None);
        }
        let mut next = file.clone();
        next.blocks.push(PinnedBlock::from_block(&block));
        if let Some(path) = &self.path {
            next.write(path)?;
        }
        Ok(Some(next))
    }

    /// The verdict on a name at the pinned block, or at its replacement.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) async fn resolve_at_pin(&self, name: &str) -> anyhow::Result<Resolution> {
        let (mut block, mut resolver) = self.state.lock().await.last_block_and_resolver();
        loop {
            let resolution = resolver.resolve_question_anew(&NameQuestion::new(name)).await?;
            if !is_pinned_block_unavailable(&resolution) {
                return Ok(resolution);
            }
            match self.replace_pruned_block(block).await? {
                Some(next) => (block, resolver) = next,
                None => return Ok(resolution),
            }
        }
    }
}

fn is_pinned_block_unavailable(resolution: &Resolution) -> bool {
    resolution.verdict().reasons.iter().any(|reason| reason.code == ReasonCode::BlockUnavailable)
}

/// The finalized block, unless it is too old.
async fn read_finalized_block(resolver: &Resolver, chain_id: u64) -> anyhow::Result<ChainBlock> {
    let block = read_block_with_retry(resolver).await.context("the finalized block is not known")?;
    match old_block_reason(&block, BlockSelector::Finalized, chain_id, resolver.now()) {
        Some(reason) => bail!("the finalized block is {}", reason.observed.unwrap_or_default()),
        None => Ok(block),
    }
}

/// The block that a resolver reads. Retries after the pauses that servers request.
async fn read_block_with_retry(resolver: &Resolver) -> Result<ChainBlock, ChainError> {
    let mut tries = 1;
    loop {
        let began = Instant::now();
        let read = read_block(resolver).await;
        match resolver.longest_remaining_server_pause(began.elapsed()).filter(|_| read.is_err()) {
            Some(rest) if tries < MOST_TRIES => tokio::time::sleep(rest).await,
            _ => return read,
        }
        tries += 1;
    }
}

async fn read_block(resolver: &Resolver) -> Result<ChainBlock, ChainError> {
    let name = EnsName::parse(ANY_NAME).expect("it is a name in normal form");
    Ok(resolver.read_records(&name).await?.block)
}

impl PinnedBlockResolverState {
    /// The number of the last block, and the resolver that reads it.
    fn last_block_and_resolver(&self) -> (u64, Resolver) {
        (self.file.last_block().number, self.resolver.clone())
    }
}

impl BlockPinFile {
    /// Reads the pin in the file. `None` if the file does not exist.
    fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        let text = match std::fs::File::open(path) {
            Ok(file) => io::read_to_string(io::Read::take(file, MAX_BYTES))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let file: Self = serde_json::from_str(&text).map_err(|error| anyhow!("is not a pin file: {error}"))?;
        let is_ascending = file.blocks.is_sorted_by(|before, after| before.number < after.number);
        if file.schema != SCHEMA || file.blocks.is_empty() || !is_ascending {
            bail!("is not a pin file in the format {SCHEMA}");
        }
        Ok(Some(file))
    }

    /// A new pin of the finalized block.
    async fn from_finalized_block(resolver: &Resolver, chain: &EnsChainConfig) -> anyhow::Result<Self> {
        let block = read_finalized_block(resolver, chain.id).await?;
        Ok(Self {
            schema: SCHEMA.to_owned(),
            world: chain.world.clone(),
            chain: chain.id,
            blocks: vec![PinnedBlock::from_block(&block)],
        })
    }

    fn write(&self, path: &Path) -> anyhow::Result<()> {
        let written = new_file::replace_file(path, self.to_json_text()?.as_bytes());
        written.map_err(|error| OutputWriteError::new(path.display().to_string(), error).into())
    }

    /// Rejects a pin of another network.
    fn check_network(&self, chain: &EnsChainConfig) -> anyhow::Result<()> {
        if (&self.world, self.chain) != (&chain.world, chain.id) {
            let own = UntrustedText::new(&self.world);
            bail!("it is of {own} eip155:{}, and this is {} eip155:{}", self.chain, chain.world, chain.id);
        }
        Ok(())
    }

    fn last_block(&self) -> &PinnedBlock {
        self.blocks.last().expect("a pin has a block")
    }

    fn pinned_resolver(&self, unpinned: &Resolver) -> Resolver {
        unpinned.at_block(BlockSelector::Pinned(self.last_block().number))
    }

    fn to_json_text(&self) -> anyhow::Result<String> {
        output::json_line(self)
    }
}

impl PinnedBlock {
    fn from_block(block: &ChainBlock) -> Self {
        Self { number: block.number, hash: block.hash.to_string(), timestamp: block.timestamp }
    }
}
