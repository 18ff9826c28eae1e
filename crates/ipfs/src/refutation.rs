//! What the result of a walk proves about the content, in the categories that callers distinguish.

use super::budget::DagWalkLimit;
use super::error::DagWalkError;

/// What a final error proves: every honest source leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvenContentDefect {
    /// A directory on the path was read and does not contain the entry, or the path continues below a file.
    PathMissing,
    /// The path ends at a directory.
    NotFile,
    /// A link on the path uses a hash that is not on the allow-list.
    HashForbidden,
    /// The size in the root of the file exceeds [`DagWalkBudget::total_bytes`](super::DagWalkBudget::total_bytes).
    Oversize {
        /// The limit in bytes.
        limit: usize,
    },
    /// The content violates the formats or exceeds a bound.
    Invalid,
}

impl DagWalkError {
    /// What the error proves; `None` if it is the fault of one source, and another source may succeed.
    ///
    /// A bound of the budget counts against the content: it is many times what a file within
    /// [`DagWalkBudget::total_bytes`] needs, so no honest importer creates blocks beyond it.
    ///
    /// [`DagWalkBudget::total_bytes`]: super::DagWalkBudget::total_bytes
    pub const fn proven_content_defect(&self) -> Option<ProvenContentDefect> {
        Some(match self {
            Self::NotFound { .. } | Self::NotADirectory { .. } => ProvenContentDefect::PathMissing,
            Self::IsADirectory => ProvenContentDefect::NotFile,
            Self::HashNotAllowed(_) | Self::Limit(DagWalkLimit::InlineContent) => ProvenContentDefect::HashForbidden,
            Self::TooLarge { limit, .. } => ProvenContentDefect::Oversize { limit: *limit },
            Self::BadDagPb { .. } | Self::BadPath(_) | Self::BadUnixfs { .. } | Self::Limit(_) => {
                ProvenContentDefect::Invalid
            }
            Self::UnsupportedCodec(_) | Self::UnsupportedType(_) => ProvenContentDefect::Invalid,
            Self::BadCar(_) | Self::CarLimit(_) | Self::HashMismatch { .. } | Self::Incomplete { .. } => return None,
        })
    }
}
