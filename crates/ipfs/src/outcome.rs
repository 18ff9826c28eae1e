//! How a walk ended, as its callers tell endings apart.

use super::budget::Bound;
use super::error::WalkError;
use super::walk::Proven;

/// The result of a walk. All but [`WalkOutcome::Unproven`] follow from hashed blocks and the request alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalkOutcome {
    /// The file, proven block by block.
    Proven(Proven),
    /// A directory on the way was read and has no such entry, or the path goes on below a file.
    PathMissing(String),
    /// The path ends at a directory.
    NotFile,
    /// The content breaks the formats or goes beyond a bound.
    Invalid {
        /// Stable name of the kind of error, see [`WalkError::class`].
        class: &'static str,
        /// In words.
        detail: String,
    },
    /// A link on the way has a hash that proves nothing. In words.
    HashForbidden(String),
    /// The file is larger than [`Budget::total_bytes`](super::Budget::total_bytes), as its own root says.
    Oversize {
        /// Bytes of the file.
        size: u64,
        /// Bytes allowed.
        limit: usize,
    },
    /// Blocks that are needed were not to be had.
    Unproven,
}

impl WalkOutcome {
    /// What it means that a walk ended so.
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
