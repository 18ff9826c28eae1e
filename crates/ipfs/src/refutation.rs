//! What the result of a walk proves about the content, in the categories that callers distinguish.

use super::budget::Bound;
use super::error::WalkError;

/// What a final error proves: every honest source leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// A directory on the path was read and does not contain the entry, or the path continues below a file.
    PathMissing,
    /// The path ends at a directory.
    NotFile,
    /// A link on the path uses a hash that is not on the allow-list.
    HashForbidden,
    /// The size in the root of the file exceeds [`Budget::total_bytes`](super::Budget::total_bytes).
    Oversize {
        /// The limit in bytes.
        limit: usize,
    },
    /// The content violates the formats or exceeds a bound.
    Invalid,
}

impl WalkError {
    /// What the error proves; `None` if it is the fault of one source, and another source may succeed.
    ///
    /// A bound of the budget counts against the content: it is many times what a file within [`Budget::total_bytes`]
    /// needs, so no honest importer creates blocks beyond it.
    ///
    /// [`Budget::total_bytes`]: super::Budget::total_bytes
    pub const fn refutation(&self) -> Option<Refutation> {
        Some(match self {
            Self::NotFound { .. } | Self::NotADirectory { .. } => Refutation::PathMissing,
            Self::IsADirectory => Refutation::NotFile,
            Self::HashNotAllowed(_) | Self::Limit(Bound::InlineContent) => Refutation::HashForbidden,
            Self::TooLarge { limit, .. } => Refutation::Oversize { limit: *limit },
            Self::BadDagPb { .. } | Self::BadPath(_) | Self::BadUnixfs { .. } | Self::Limit(_) => Refutation::Invalid,
            Self::UnsupportedCodec(_) | Self::UnsupportedType(_) => Refutation::Invalid,
            Self::BadCar(_) | Self::CarLimit(_) | Self::HashMismatch { .. } | Self::Incomplete { .. } => return None,
        })
    }
}
