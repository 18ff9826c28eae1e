//! Signed verdicts, and the program's key files.

mod decision;
mod file;
mod receipt;
mod report;

pub use clresolve_bundle::signed::{
    AnchorRequirements, ExpectedVerdict, MEDIA_TYPE, SignedDocumentMismatch, VerdictIssuer, VerdictSignError,
    VerdictVerifyError, VerifiedVerdict, verify_signed_verdict,
};
pub use clresolve_jose::{Ed25519KeySet, Ed25519PublicKey, Ed25519SigningKey, JwsError, SignatureKeyError};
pub use decision::{DECISION_TYPE, sign_decision};
#[doc(hidden)]
pub use file::read_private_key_text;
pub use file::{KeyFileError, read_signing_key, read_trusted_keys, save_signing_key};
pub use receipt::{
    ExpectedReceiptResult, RECEIPT_TYPE, VerifiedReceiptResult, sign_receipt_result, verify_signed_receipt_result,
};
#[doc(hidden)]
pub use report::{MAX_SIGNATURE_BYTES, MAX_SIGNED_REPORT_BYTES, sign_audit_report, verify_audit_report};

use crate::config::SignConfig;

/// Opens the configured signer. Returns `None` if no key is configured.
///
/// # Errors
/// If a key file cannot be used, or if no issuer is configured.
pub fn open_signer(config: &SignConfig) -> Result<Option<VerdictIssuer>, KeyFileError> {
    let Some(path) = &config.key else { return Ok(None) };
    let Some(issuer) = &config.issuer else { return Err(KeyFileError::IssuerMissing) };
    let mut signer = VerdictIssuer::new(read_signing_key(path)?, issuer.clone());
    for path in &config.publish {
        signer = signer.with_published_keys(read_trusted_keys(path)?);
    }
    Ok(Some(signer))
}
