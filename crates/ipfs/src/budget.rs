//! The cost limits of a walk: [`DagWalkBudget`], and the [`DagWalkLimit`] that a walk exceeded.

use std::fmt;

use super::id::MAX_DIGEST_BYTES;

/// The cost limits of a walk. A walk that exceeds one fails; it never returns a shortened result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DagWalkBudget {
    /// Maximum number of distinct blocks.
    pub blocks: usize,
    /// Maximum length of a block, in bytes. The specifications ask publishers to stay within 2 MiB.
    pub block_size: usize,
    /// Maximum total length of all blocks, and of the part of a CAR that has to be read for them, in bytes.
    pub dag_bytes: usize,
    /// Maximum length of the file, in bytes.
    pub total_bytes: usize,
    /// Maximum depth of nodes below the root of the file.
    pub depth: usize,
    /// Maximum number of visits to nodes, and of sections read from a CAR. No other bound stops a small graph that
    /// repeats its nodes and contains no bytes.
    pub visits: usize,
}

impl DagWalkBudget {
    /// Largest block that a client must expect under the trustless gateway specification.
    pub const MAX_BLOCK_BYTES: usize = 2 << 20;
    /// Maximum depth of a file. A balanced tree with 174 links per node contains 2^60 bytes in 6 levels; narrow trees
    /// of small chunks need a few more.
    pub const MAX_DEPTH: usize = 32;

    /// The budget for an Agent-Card: 256 KiB, a file of a few kilobytes in any layout, in a few directories of any
    /// size.
    pub const fn for_agent_card() -> Self {
        Self {
            blocks: 1024,
            block_size: Self::MAX_BLOCK_BYTES,
            dag_bytes: 8 << 20,
            total_bytes: 256 << 10,
            depth: Self::MAX_DEPTH,
            visits: 4096,
        }
    }

    /// The budget for `clresolve cat`: 64 MiB, in chunks of 1 KiB or more.
    pub const fn for_cat_command() -> Self {
        Self {
            blocks: 1 << 17,
            block_size: Self::MAX_BLOCK_BYTES,
            dag_bytes: 128 << 20,
            total_bytes: 64 << 20,
            depth: Self::MAX_DEPTH,
            visits: 1 << 17,
        }
    }
}

/// An exceeded bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DagWalkLimit {
    /// [`DagWalkBudget::block_size`].
    BlockSize,
    /// [`DagWalkBudget::blocks`].
    Blocks,
    /// The header of a CAR is longer than 32 KiB.
    CarHeader,
    /// [`DagWalkBudget::dag_bytes`].
    DagBytes,
    /// [`DagWalkBudget::depth`].
    Depth,
    /// A shard has more than 1024 buckets.
    Fanout,
    /// An identity CID contains more than [`MAX_DIGEST_BYTES`].
    InlineContent,
    /// [`UnixFsPathError::TooLong`](crate::UnixFsPathError::TooLong) or
    /// [`UnixFsPathError::TooManySegments`](crate::UnixFsPathError::TooManySegments).
    Path,
    /// Shards are nested in more levels than the hash has bits for.
    ShardDepth,
    /// [`DagWalkBudget::visits`].
    Visits,
}

impl fmt::Display for DagWalkLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BlockSize => f.write_str("the size of one block"),
            Self::Blocks => f.write_str("the number of blocks"),
            Self::CarHeader => f.write_str("the size of a header"),
            Self::DagBytes => f.write_str("the size of all blocks"),
            Self::Depth => f.write_str("the depth of the file"),
            Self::Fanout => f.write_str("the width of a sharded directory"),
            Self::InlineContent => write!(f, "inline content ({MAX_DIGEST_BYTES} bytes in a CID)"),
            Self::Path => f.write_str("the length of the path"),
            Self::ShardDepth => f.write_str("the depth of a sharded directory"),
            Self::Visits => f.write_str("the number of visits"),
        }
    }
}
