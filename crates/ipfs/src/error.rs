//! [`DagWalkError`]: why a walk ends without a file.

use super::budget::DagWalkLimit;
use super::id::ContentId;
use super::path::UnixFsPathError;

/// Why a walk returns no bytes.
///
/// There are two kinds, which [`DagWalkError::is_final`] distinguishes. Some errors follow from the request and
/// verified blocks; the others only mean that one source failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DagWalkError {
    /// The source sent data that is not a CAR.
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
    /// The path violates the rules of [`UnixFsPath`](crate::UnixFsPath).
    #[error("{0}")]
    BadPath(UnixFsPathError),
    /// A node violates the rules of UnixFS.
    #[error("{cid} is not valid UnixFS: {why}")]
    BadUnixfs {
        /// The node.
        cid: Box<ContentId>,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The source sent a CAR that exceeds a bound.
    #[error("the CAR exceeds the limit on {0}")]
    CarLimit(DagWalkLimit),
    /// The source sent bytes that do not match the hash of the wanted block.
    #[error("the bytes sent for {cid} do not match its hash")]
    HashMismatch {
        /// The wanted block.
        cid: Box<ContentId>,
    },
    /// A link on the path uses a hash that is not on the allow-list.
    #[error("a link on the path proves nothing: {0}")]
    HashNotAllowed(String),
    /// The source ended before it sent a block that the walk needs.
    #[error("the block {cid} is missing")]
    Incomplete {
        /// The wanted block.
        cid: Box<ContentId>,
    },
    /// The path ends at a directory.
    #[error("the path ends at a directory, not at a file")]
    IsADirectory,
    /// A bound of the budget or of the format is exceeded, except for the size of the file.
    #[error("the content exceeds the limit on {0}")]
    Limit(DagWalkLimit),
    /// The path continues below a file.
    #[error("\"{below}\" is below a file")]
    NotADirectory {
        /// The first name below the file, truncated and escaped.
        below: String,
    },
    /// A directory on the path does not contain this entry.
    #[error("no entry is named \"{name}\"")]
    NotFound {
        /// The name, truncated and escaped.
        name: String,
    },
    /// The size in the root of the file exceeds [`DagWalkBudget::total_bytes`](crate::DagWalkBudget::total_bytes).
    #[error("the file has {size} bytes, more than {limit}")]
    TooLarge {
        /// Size of the file in bytes.
        size: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// A block on the path has a codec other than raw and dag-pb.
    #[error("the codec 0x{0:x} is neither raw nor dag-pb")]
    UnsupportedCodec(u64),
    /// The code of an unsupported UnixFS type (symlinks, metadata, unknown types), or of an unsupported shard hash.
    #[error("the UnixFS type or hash function 0x{0:x} is not supported")]
    UnsupportedType(u64),
}

impl DagWalkError {
    /// The stable name of the error's kind, for programs.
    pub fn error_class_name(&self) -> &'static str {
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

    /// Whether every honest source leads to the same error, because it follows from the request, the budget and
    /// verified blocks. Other errors are the fault of one source, and another source may succeed.
    pub const fn is_final(&self) -> bool {
        self.proven_content_defect().is_some()
    }
}

impl From<UnixFsPathError> for DagWalkError {
    fn from(error: UnixFsPathError) -> Self {
        match error {
            UnixFsPathError::TooLong | UnixFsPathError::TooManySegments => Self::Limit(DagWalkLimit::Path),
            error => Self::BadPath(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fault_of_a_source_is_not_final() {
        let cid = Box::new(ContentId::from_raw_block(b""));
        assert!(!DagWalkError::HashMismatch { cid: cid.clone() }.is_final());
        assert!(!DagWalkError::Incomplete { cid }.is_final());
        assert!(!DagWalkError::CarLimit(DagWalkLimit::Visits).is_final());
        assert!(!DagWalkError::BadCar("").is_final());
        assert!(DagWalkError::Limit(DagWalkLimit::Visits).is_final());
        assert!(DagWalkError::IsADirectory.is_final());
        assert_eq!(DagWalkError::from(UnixFsPathError::TooManySegments).error_class_name(), "limit");
        assert_eq!(DagWalkError::from(UnixFsPathError::DotSegment).error_class_name(), "bad-path");
    }
}
