//! Remembers the newest blocks that an endpoint has shown, to detect replaced blocks.

use std::collections::VecDeque;

use alloy_primitives::B256;
use clresolve_core::reading::Block;

use super::events::Change;

/// Number of blocks remembered: two epochs, after which a mainnet block is final.
const DEPTH: usize = 64;

/// Most changes remembered per block, so that the changes of all blocks take less than one mebibyte. If a block has
/// more, a reorganisation of it counts as a gap.
const MAX_CHANGES: usize = 256;

/// A block that was the newest when it was seen.
pub(super) struct Seen {
    pub(super) number: u64,
    pub(super) hash: B256,
    /// The changes that were read with it.
    changes: Vec<Change>,
    /// Whether some of its changes were dropped.
    is_cut: bool,
}

/// The changes that were read with replaced blocks.
pub(super) struct Undone {
    pub(super) changes: Vec<Change>,
    /// Whether some changes were dropped.
    pub(super) is_cut: bool,
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

    /// The lowest height remembered.
    pub(super) fn oldest(&self) -> u64 {
        self.0.front().map_or(0, |seen| seen.number)
    }

    /// Whether exactly this block was seen.
    pub(super) fn has(&self, block: &Block) -> bool {
        self.0.iter().any(|seen| (seen.number, seen.hash) == (block.number, block.hash))
    }

    /// Forgets the blocks from this height on, and returns their changes.
    pub(super) fn cut(&mut self, lowest: u64) -> Undone {
        let kept = self.0.iter().take_while(|seen| seen.number < lowest).count();
        let cut = self.0.split_off(kept);
        let is_cut = cut.iter().any(|seen| seen.is_cut);
        let changes = cut.into_iter().flat_map(|seen| seen.changes).filter(|change| change.block >= lowest);
        Undone { changes: changes.collect(), is_cut }
    }

    pub(super) fn push(&mut self, block: Block, mut changes: Vec<Change>) {
        let is_cut = changes.len() > MAX_CHANGES;
        changes.truncate(MAX_CHANGES);
        if self.0.len() == DEPTH {
            self.0.pop_front();
        }
        self.0.push_back(Seen { number: block.number, hash: block.hash, changes, is_cut });
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U256;

    use super::super::events::Source;
    use super::*;

    /// The changes undone with block 7, which had `count` changes.
    fn undone(count: usize) -> Undone {
        let block = |number: u64| Block {
            number,
            hash: B256::from(U256::from(number)),
            timestamp: jiff::Timestamp::UNIX_EPOCH,
        };
        let change = |node| Change { block: 7, source: Source::Registration, node: B256::from(U256::from(node)) };
        let mut window = Window::default();
        window.push(block(6), Vec::new());
        window.push(block(7), (0..count).map(change).collect());
        window.cut(7)
    }

    #[test]
    fn what_is_not_remembered_of_a_block_is_said_when_it_is_undone() {
        for (count, is_cut) in [(MAX_CHANGES, false), (MAX_CHANGES + 1, true)] {
            let undone = undone(count);
            assert_eq!((undone.changes.len(), undone.is_cut), (MAX_CHANGES, is_cut));
        }
    }
}
