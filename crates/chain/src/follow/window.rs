//! The newest blocks that an endpoint has shown, so that one that was replaced is noticed.

use std::collections::VecDeque;

use alloy_primitives::B256;
use clresolve_core::reading::Block;

use super::events::Change;

/// Blocks that are remembered: two epochs, after which a block of mainnet is final.
const DEPTH: usize = 64;

/// Most changes that are remembered of a block. Where there are more, those beyond are not read again after a
/// reorganisation, and keep their time.
const MAX_CHANGES: usize = 256;

/// A block that was seen as the newest.
pub(super) struct Seen {
    pub(super) number: u64,
    pub(super) hash: B256,
    /// The changes that were read with it.
    changes: Vec<Change>,
}

/// The newest blocks seen, oldest first.
#[derive(Default)]
pub(super) struct Window(VecDeque<Seen>);

impl Window {
    /// The height of the newest block.
    pub(super) fn newest(&self) -> Option<u64> {
        self.0.back().map(|seen| seen.number)
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &Seen> {
        self.0.iter().rev()
    }

    /// The lowest height that is remembered.
    pub(super) fn oldest(&self) -> u64 {
        self.0.front().map_or(0, |seen| seen.number)
    }

    /// Whether this very block was seen.
    pub(super) fn has(&self, block: &Block) -> bool {
        self.0.iter().any(|seen| (seen.number, seen.hash) == (block.number, block.hash))
    }

    /// Forgets the blocks from this height on, and gives their changes.
    pub(super) fn cut(&mut self, lowest: u64) -> impl Iterator<Item = Change> {
        let kept = self.0.iter().take_while(|seen| seen.number < lowest).count();
        self.0.split_off(kept).into_iter().flat_map(|seen| seen.changes).filter(move |change| change.block >= lowest)
    }

    pub(super) fn push(&mut self, block: Block, mut changes: Vec<Change>) {
        changes.truncate(MAX_CHANGES);
        if self.0.len() == DEPTH {
            self.0.pop_front();
        }
        self.0.push_back(Seen { number: block.number, hash: block.hash, changes });
    }
}
