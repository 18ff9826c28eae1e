//! [`WalkOutcome`]: the results of a walk that callers distinguish.

use super::budget::Bound;
use super::error::WalkError;
use super::walk::Proven;

/// The result of a walk. All but [`WalkOutcome::Unproven`] follow from hashed blocks and the request alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkOutcome {
    /// The file, proven block by block.
    Proven(Proven),
    /// A directory on the path has no such entry, or the path continues below a file.
    PathMissing(String),
    /// The path ends at a directory.
    NotFile,
    /// The content breaks its format or exceeds a bound.
    Invalid {
        /// Stable name of the kind of error, see [`WalkError::class`].
        class: &'static str,
        /// The error message.
        detail: String,
    },
    /// A link on the path has a hash that proves nothing. Holds the error message.
    HashForbidden(String),
    /// The file is larger than [`Budget::total_bytes`](super::Budget::total_bytes), by the size that its root states.
    Oversize {
        /// Bytes of the file.
        size: u64,
        /// Bytes allowed.
        limit: usize,
    },
    /// No source gave all the blocks that the walk needs.
    Unproven,
}

impl WalkOutcome {
    /// The outcome of a finished walk.
    pub fn of(ended: Result<Proven, WalkError>) -> Self {
        let error = match ended {
            Ok(proven) => return Self::Proven(proven),
            Err(error) if !error.is_final() => return Self::Unproven,
            Err(error) => error,
        };
        match &error {
            WalkError::NotFound { .. } | WalkError::NotADirectory { .. } => Self::PathMissing(error.to_string()),
            WalkError::IsADirectory => Self::NotFile,
            WalkError::HashNotAllowed(_) | WalkError::Limit(Bound::InlineContent) => {
                Self::HashForbidden(error.to_string())
            }
            WalkError::TooLarge { size, limit } => Self::Oversize { size: *size, limit: *limit },
            _ => Self::Invalid { class: error.class(), detail: error.to_string() },
        }
    }
}
