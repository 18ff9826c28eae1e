//! What the end of a walk proves about the content, as its callers tell ends apart.

use super::budget::Bound;
use super::error::WalkError;

/// What an error proves that every honest source leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// A directory on the way was read and has no such entry, or the path goes on below a file.
    PathMissing,
    /// The path ends at a directory.
    NotFile,
    /// A link on the way has a hash that proves nothing.
    HashForbidden,
    /// The file is larger than [`Budget::total_bytes`](super::Budget::total_bytes), as its own root says.
    Oversize {
        /// Bytes allowed.
        limit: usize,
    },
    /// The content breaks the formats or goes beyond a bound.
    Invalid,
}

impl WalkError {
    /// What the error proves; `None` where it is the fault of one source, and the next one may do better.
    ///
    /// A bound of the budget counts against the content: it is many times what a file within [`Budget::total_bytes`]
    /// takes, so blocks beyond it are no honest importer's.
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
