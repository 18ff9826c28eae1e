//! Signed verdicts, and the program's key files.

mod decision;
mod file;
mod receipt;
mod report;

pub use clresolve_bundle::signed::{
    AnchorDemand, ExpectedVerdict, MEDIA_TYPE, SignError, Signer, VerifiedVerdict, VerifyError, What, verify,
};
pub use clresolve_jose::{JwsError, KeyError, PublicKey, SigningKey, TrustedKeys};
pub use decision::{DECISION_TYPE, sign_decision};
#[doc(hidden)]
pub use file::private_text;
pub use file::{KeyFileError, read_signing_key, read_trusted_keys, save_signing_key};
pub use receipt::{ExpectedReceipt, RECEIPT_TYPE, SettlementDemand, VerifiedReceipt, sign_receipt, verify_receipt};
#[doc(hidden)]
pub use report::{MAX_SIGNATURE_BYTES, MAX_SIGNED_REPORT_BYTES, sign_report, verify_report};

use crate::config::SignConfig;

/// Opens the configured signer. Returns `None` if no key is configured.
///
/// # Errors
/// If a key file cannot be used, or if no issuer is configured.
pub fn open(config: &SignConfig) -> Result<Option<Signer>, KeyFileError> {
    let Some(path) = &config.key else { return Ok(None) };
    let Some(issuer) = &config.issuer else { return Err(KeyFileError::IssuerMissing) };
    let mut signer = Signer::new(read_signing_key(path)?, issuer.clone());
    for path in &config.publish {
        signer = signer.publishing(read_trusted_keys(path)?);
    }
    Ok(Some(signer))
}
