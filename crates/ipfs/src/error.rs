//! [`WalkError`]: why a walk ends without the bytes of a file.

use super::budget::Bound;
use super::id::ContentId;
use super::path::PathError;

/// Why a walk gives no bytes.
///
/// There are two kinds, see [`WalkError::is_final`]: some follow from the request and hashed blocks, the others only
/// say that one source failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// The source sent something that is not a CAR.
    #[error("not a CAR: {0}")]
    BadCar(&'static str),
    /// A block is not strict dag-pb.
    #[error("{cid} is not valid dag-pb: {why}")]
    BadDagPb {
        /// The block.
        cid: Box<ContentId>,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The path breaks the rules of paths.
    #[error("{0}")]
    BadPath(PathError),
    /// A node breaks the rules of UnixFS.
    #[error("{cid} is not valid UnixFS: {why}")]
    BadUnixfs {
        /// The node.
        cid: Box<ContentId>,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The source sent a CAR that exceeds a bound.
    #[error("the CAR exceeds the limit on {0}")]
    CarLimit(Bound),
    /// The source sent bytes that do not have the hash of the wanted block.
    #[error("the bytes sent for {cid} do not match its hash")]
    HashMismatch {
        /// The wanted block.
        cid: Box<ContentId>,
    },
    /// A link on the path has a hash that proves nothing.
    #[error("a link on the path proves nothing: {0}")]
    HashNotAllowed(String),
    /// The source ended without a block that the walk needs.
    #[error("the block {cid} is missing")]
    Incomplete {
        /// The wanted block.
        cid: Box<ContentId>,
    },
    /// The path ends at a directory.
    #[error("the path ends at a directory, not at a file")]
    IsADirectory,
    /// A bound of the budget or of the format is exceeded, other than the size of the file.
    #[error("the content exceeds the limit on {0}")]
    Limit(Bound),
    /// The path continues below a file.
    #[error("\"{below}\" is below a file")]
    NotADirectory {
        /// Beginning of the first name below the file, escaped.
        below: String,
    },
    /// A directory on the path has no such entry.
    #[error("no entry is named \"{name}\"")]
    NotFound {
        /// Beginning of the name, escaped.
        name: String,
    },
    /// The file is larger than [`Budget::total_bytes`](crate::Budget::total_bytes), by the size that its root states.
    #[error("the file has {size} bytes, more than {limit}")]
    TooLarge {
        /// Bytes of the file.
        size: u64,
        /// Bytes allowed.
        limit: usize,
    },
    /// A block on the path is neither raw nor dag-pb.
    #[error("the codec 0x{0:x} is neither raw nor dag-pb")]
    UnsupportedCodec(u64),
    /// The code of a UnixFS type that is not read (symlinks, metadata, unknown types), or of an unknown hash of shards.
    #[error("the UnixFS type or hash function 0x{0:x} is not supported")]
    UnsupportedType(u64),
}

impl WalkError {
    /// The stable name of this kind of error, for programs.
    pub fn class(&self) -> &'static str {
        match self {
            Self::BadCar(_) => "bad-car",
            Self::BadDagPb { .. } => "bad-dag-pb",
            Self::BadPath(_) => "bad-path",
            Self::BadUnixfs { .. } => "bad-unixfs",
            Self::CarLimit(_) | Self::Limit(_) | Self::TooLarge { .. } => "limit",
            Self::HashMismatch { .. } => "hash-mismatch",
            Self::HashNotAllowed(_) => "hash-not-allowed",
            Self::Incomplete { .. } => "incomplete",
            Self::IsADirectory => "is-a-directory",
            Self::NotADirectory { .. } => "not-a-directory",
            Self::NotFound { .. } => "not-found",
            Self::UnsupportedCodec(_) => "unsupported-codec",
            Self::UnsupportedType(_) => "unsupported-type",
        }
    }

    /// Whether every honest source leads to the same error, because it follows from the request, the budget and hashed
    /// blocks. Other errors are the fault of one source, and the next source may succeed.
    pub const fn is_final(&self) -> bool {
        self.refutation().is_some()
    }
}

impl From<PathError> for WalkError {
    fn from(error: PathError) -> Self {
        match error {
            PathError::TooLong | PathError::TooManySegments => Self::Limit(Bound::Path),
            error => Self::BadPath(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fault_of_a_source_is_not_final() {
        let cid = Box::new(ContentId::raw_of(b""));
        assert!(!WalkError::HashMismatch { cid: cid.clone() }.is_final());
        assert!(!WalkError::Incomplete { cid }.is_final());
        assert!(!WalkError::CarLimit(Bound::Visits).is_final());
        assert!(!WalkError::BadCar("").is_final());
        assert!(WalkError::Limit(Bound::Visits).is_final());
        assert!(WalkError::IsADirectory.is_final());
        assert_eq!(WalkError::from(PathError::TooManySegments).class(), "limit");
        assert_eq!(WalkError::from(PathError::DotSegment).class(), "bad-path");
    }
}
