//! Errors of bundles.

use alloy_primitives::B256;
use clresolve_core::digest::Digest;
use clresolve_core::json::JsonError;
use clresolve_state::StateProofError;
use clresolve_state::receipts::ReceiptInclusionError;

use crate::signed::VerdictVerifyError;

/// Why the reader's checkpoint does not decide whether the header is that of a finalized block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The reader names no checkpoint.
    #[error(
        "name a checkpoint that you trust, with --checkpoint or `beacon.checkpoint`; the bundle starts from {observed}"
    )]
    Unnamed {
        /// The block root from which the bundle starts.
        observed: B256,
    },
    /// No light client is known for this chain.
    #[error("chain eip155:{0} has no beacon chain that this version knows")]
    UnknownChain(u64),
    /// The proof has no path from the reader's checkpoint to the header.
    #[error("{0}")]
    NoPath(String),
    /// The path leads to another block.
    #[error("the checkpoint leads to block {observed}, not to block {expected}")]
    OtherBlock {
        /// The bundle's block.
        expected: u64,
        /// The block that the proof finalizes.
        observed: u64,
    },
}

/// Why a bundle is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// Not strict JSON.
    #[error("not a bundle: {0}")]
    Json(#[from] JsonError),
    /// The format is unknown.
    #[error("the bundle has the format {0:?}, which this version does not read")]
    Format(String),
    /// A member is missing, unknown, or of the wrong type.
    #[error("not a bundle: {0}")]
    Shape(String),
    /// The digest does not match the content.
    #[error("the bundle has the digest {observed}, but states {expected}")]
    Digest {
        /// The digest in the bundle.
        expected: Digest,
        /// The digest of its content.
        observed: Digest,
    },
    /// The rules that the bundle names are unavailable: a profile, or a manifest with its digest.
    #[error("the rules {0} are not known here")]
    Rules(String),
    /// The header does not belong to the block.
    #[error("the header is refused: {0}")]
    Header(&'static str),
    /// The proof of a transaction receipt does not show what the evidence claims.
    #[error("the proof of the receipt is refused: {0}")]
    Receipt(#[from] ReceiptInclusionError),
    /// The state proofs do not show what the evidence claims.
    #[error("the proofs are refused: {0}")]
    Proof(#[from] StateProofError),
    /// The proof of a light client violates a rule.
    #[error("the light client's proof is refused: {0}")]
    LightClient(String),
    /// The grade is `consensus-proof`, and nothing proves the header to this reader.
    #[error("the block is unproven: {0}")]
    CheckpointUnrelated(#[from] CheckpointError),
    /// The blocks do not form the IPFS walk to which the records lead.
    #[error("the blocks of {walk} are refused: {detail}")]
    Blocks {
        /// The label of the walk.
        walk: &'static str,
        /// The defect.
        detail: String,
    },
    /// The verdict is not signed.
    #[error("its verdict is not signed")]
    Unsigned,
    /// The signature of the verdict is invalid.
    #[error("the signature is refused: {0}")]
    Signature(#[from] VerdictVerifyError),
    /// The signature belongs to another verdict.
    #[error("the signature is refused: it is that of another verdict")]
    OtherSigned,
    /// Parts of the evidence contradict each other.
    #[error("the evidence is inconsistent: {0}")]
    Inconsistent(&'static str),
    /// The payment decision does not belong to the request in the bundle.
    #[error("the decision does not match its request: {0}")]
    Decision(&'static str),
    /// The verdict does not follow from the evidence.
    #[error("the verdict does not follow from the evidence: they differ at {at}")]
    Verdict {
        /// JSON Pointer of the first difference.
        at: String,
    },
}

impl BundleError {
    /// Whether the bundle may be valid for another reader: it is neither verified nor refused.
    pub const fn is_undecided(&self) -> bool {
        matches!(self, Self::CheckpointUnrelated(_))
    }

    /// The stable error class.
    pub const fn error_class(&self) -> &'static str {
        match self {
            Self::Json(_) | Self::Shape(_) => "bundle-malformed",
            Self::Format(_) => "bundle-format-unknown",
            Self::Digest { .. } => "bundle-digest-mismatch",
            Self::Rules(_) => "bundle-rules-unknown",
            Self::Header(_) => "bundle-header-mismatch",
            Self::Proof(_) | Self::Receipt(_) | Self::LightClient(_) => "bundle-proof-refused",
            Self::CheckpointUnrelated(_) => "checkpoint-unrelated",
            Self::Unsigned => "bundle-unsigned",
            Self::Signature(_) | Self::OtherSigned => "bundle-signature-refused",
            Self::Blocks { .. } => "bundle-blocks-invalid",
            Self::Inconsistent(_) => "bundle-inconsistent",
            Self::Decision(_) => "bundle-decision-differs",
            Self::Verdict { .. } => "bundle-verdict-differs",
        }
    }
}
