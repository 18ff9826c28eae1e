//! [`WalkError`]: why a walk ends without the bytes of a file.

use super::budget::Bound;
use super::id::ContentId;
use super::path::PathError;

/// Why a walk gives no bytes.
///
/// Two kinds must be kept apart, see [`WalkError::is_final`]: what follows from the request and hashed blocks, and what
/// only says that one source was no use.
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
    /// The path cannot be one.
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
    /// The source sent a CAR with more in it than the walk can have a use for.
    #[error("the CAR goes beyond {0}")]
    CarLimit(Bound),
    /// The source sent other bytes than those of the wanted block.
    #[error("the bytes sent for {cid} are not its content")]
    HashMismatch {
        /// The wanted block.
        cid: Box<ContentId>,
    },
    /// A link on the way has a hash that proves nothing.
    #[error("a link on the way proves nothing: {0}")]
    HashNotAllowed(String),
    /// The source ended, whole or cut, without a block that is needed.
    #[error("the block {cid} is missing")]
    Incomplete {
        /// The wanted block.
        cid: Box<ContentId>,
    },
    /// The path ends at a directory.
    #[error("the path ends at a directory, not at a file")]
    IsADirectory,
    /// A bound of the budget or of the format is reached, other than the size of the file.
    #[error("the content goes beyond {0}")]
    Limit(Bound),
    /// The path goes on below a file.
    #[error("\"{below}\" lies below a file")]
    NotADirectory {
        /// Beginning of the first name below the file, escaped.
        below: String,
    },
    /// A directory on the path was read and has no such entry.
    #[error("no entry is named \"{name}\"")]
    NotFound {
        /// Beginning of the name, escaped.
        name: String,
    },
    /// The file is larger than [`Budget::total_bytes`], as its own root says.
    #[error("the file has {size} bytes, more than {limit}")]
    TooLarge {
        /// Bytes of the file.
        size: u64,
        /// Bytes allowed.
        limit: usize,
    },
    /// A block on the way is neither raw nor dag-pb.
    #[error("the codec 0x{0:x} is not one of files and directories")]
    UnsupportedCodec(u64),
    /// A symlink, metadata, or a type or hash of sharded directories that is not known, by its code.
    #[error("UnixFS has no file or directory of the type or hash 0x{0:x}")]
    UnsupportedType(u64),
}

impl WalkError {
    /// The stable name of the kind of error, for machines.
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
    /// blocks. The others are the fault of one source, and the next may do better.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::BadCar(_) | Self::CarLimit(_) | Self::HashMismatch { .. } | Self::Incomplete { .. })
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
    fn only_the_fault_of_a_source_leaves_hope() {
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
