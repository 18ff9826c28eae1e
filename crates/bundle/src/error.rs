//! Why a bundle is refused.

use clresolve_core::digest::Digest;
use clresolve_core::json::JsonError;
use clresolve_state::StateProofError;
use clresolve_state::receipts::ReceiptProofError;

use crate::signed::VerifyError;

/// Why a bundle is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Not strict JSON.
    #[error("not a bundle: {0}")]
    Json(#[from] JsonError),
    /// Another format.
    #[error("the bundle has the format {0:?}, which this version does not read")]
    Format(String),
    /// A member is missing, of another type, or unknown.
    #[error("not a bundle: {0}")]
    Shape(String),
    /// The digest in the bundle is not that of its content.
    #[error("the bundle has the digest {observed}, and says that it is {expected}")]
    Digest {
        /// What the bundle says.
        expected: Digest,
        /// What its content has.
        observed: Digest,
    },
    /// The rules of the bundle are not at hand: profile or manifest and its digest.
    #[error("the rules {0} are not known here")]
    Rules(String),
    /// The header is not that of the block.
    #[error("the header is refused: {0}")]
    Header(&'static str),
    /// The proof of a receipt does not show what the evidence says.
    #[error("the proof of the receipt is refused: {0}")]
    Receipt(#[from] ReceiptProofError),
    /// The proofs of the state do not show what the evidence says.
    #[error("the proofs are refused: {0}")]
    Proof(#[from] StateProofError),
    /// The blocks do not make up the walk that the records lead to.
    #[error("the blocks of {walk} are refused: {detail}")]
    Blocks {
        /// Which walk.
        walk: &'static str,
        /// What is wrong.
        detail: String,
    },
    /// It holds no signature.
    #[error("its verdict is not signed")]
    Unsigned,
    /// The signature of its verdict does not hold.
    #[error("the signature is refused: {0}")]
    Signature(#[from] VerifyError),
    /// The signature is that of another verdict.
    #[error("the signature is refused: it is that of another verdict")]
    OtherSigned,
    /// Parts of the evidence do not fit together: which.
    #[error("the evidence does not fit together: {0}")]
    Inconsistent(&'static str),
    /// The decision on a purchase is not one about what was asked.
    #[error("the decision does not follow from what was asked: {0}")]
    Decision(&'static str),
    /// The verdict is not the one that the evidence gives.
    #[error("the verdict is not the one that the evidence gives: they differ at {at}")]
    Verdict {
        /// JSON Pointer of the first difference.
        at: String,
    },
}

impl BundleError {
    /// The stable class of the error.
    pub const fn class(&self) -> &'static str {
        match self {
            Self::Json(_) | Self::Shape(_) => "bundle-malformed",
            Self::Format(_) => "bundle-format-unknown",
            Self::Digest { .. } => "bundle-digest-mismatch",
            Self::Rules(_) => "bundle-rules-unknown",
            Self::Header(_) => "bundle-header-mismatch",
            Self::Proof(_) | Self::Receipt(_) => "bundle-proof-refused",
            Self::Unsigned => "bundle-unsigned",
            Self::Signature(_) | Self::OtherSigned => "bundle-signature-refused",
            Self::Blocks { .. } => "bundle-blocks-invalid",
            Self::Inconsistent(_) => "bundle-inconsistent",
            Self::Decision(_) => "bundle-decision-differs",
            Self::Verdict { .. } => "bundle-verdict-differs",
        }
    }
}
