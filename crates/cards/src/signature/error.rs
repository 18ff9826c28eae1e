//! Why a card is not signed.

use clresolve_core::json::JsonError;

use super::canonical::{MAX_SIGNATURES, UnsafeIntegerError};

/// Why a card is not signed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardSignError {
    /// The text of the card is not strict JSON.
    #[error("the card is not strict JSON: {0}")]
    Json(JsonError),
    /// The cryptographic library failed.
    #[error("the signature could not be made")]
    Library,
    /// The card is not a JSON object.
    #[error("the card is not a JSON object")]
    NotObject,
    /// The card has no canonical form.
    #[error("the card cannot be signed: {0}")]
    Payload(#[from] UnsafeIntegerError),
    /// `signatures` is not a list.
    #[error("the member signatures of the card is not a list")]
    Signatures,
    /// The card already has [`MAX_SIGNATURES`] signatures.
    #[error("the card already has {MAX_SIGNATURES} signatures, the maximum that verifiers accept")]
    TooMany,
}
