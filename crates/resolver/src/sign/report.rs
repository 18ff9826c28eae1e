//! Signed audit reports: a detached JWS (RFC 7515, appendix F) over the bytes of the JSON form, in a separate file.
//!
//! It has its own type, so that no signature of a verdict or decision can replace it. It contains no time and no name:
//! the report states both, and the key identifies the signer.

use clresolve_jose::{Ed25519KeySet, Ed25519SigningKey, JwsError, JwsProfile, verify_detached_jws};

/// `typ` of the protected header.
const REPORT_TYPE: &str = "clresolve-audit+json";

/// Maximum length of a signature, in bytes: about four hundred bytes of header and signature, and room for a long
/// `kid`.
pub const MAX_SIGNATURE_BYTES: usize = 2048;

/// Maximum size of a report that is signed or verified, in bytes: about fifty thousand names. The report is held in
/// memory, and twice more during verification.
pub const MAX_SIGNED_REPORT_BYTES: usize = 128 << 20;

/// The signature of a report.
pub fn sign_audit_report(key: &Ed25519SigningKey, report: &[u8]) -> String {
    key.sign_detached(REPORT_TYPE, report)
}

/// Verifies the signature of a report. Returns the thumbprint of the key that made it.
///
/// # Errors
/// If the signature does not match these bytes, or if its key is not trusted.
pub fn verify_audit_report(jws: &str, report: &[u8], keys: &Ed25519KeySet) -> Result<String, JwsError> {
    verify_detached_jws(jws, report, keys, &JwsProfile { typ: REPORT_TYPE, max_bytes: MAX_SIGNATURE_BYTES })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_over_its_report_alone() {
        let (key, other) = (Ed25519SigningKey::generate().unwrap(), Ed25519SigningKey::generate().unwrap());
        let keys = |key: &Ed25519SigningKey| {
            Ed25519KeySet::from_jwks(serde_json::json!({"keys": [key.public_key().to_jwk()]}).to_string().as_bytes())
                .unwrap()
        };
        let report = b"{\n\"rows\": []\n}\n";
        let jws = sign_audit_report(&key, report);
        assert_eq!(verify_audit_report(&jws, report, &keys(&key)), Ok(key.public_key().thumbprint().to_owned()));
        for at in 0..report.len() {
            let mut changed = report.to_vec();
            changed[at] ^= 1;
            assert_eq!(verify_audit_report(&jws, &changed, &keys(&key)), Err(JwsError::Signature), "byte {at}");
        }
        assert!(matches!(verify_audit_report(&jws, report, &keys(&other)), Err(JwsError::KeyUnknown { .. })));
        let of_a_verdict = key.sign_detached("clresolve-verdict+jwt", report);
        assert!(matches!(verify_audit_report(&of_a_verdict, report, &keys(&key)), Err(JwsError::Type { .. })));
        let attached = key.sign_compact(REPORT_TYPE, report);
        assert_eq!(verify_audit_report(&attached, report, &keys(&key)), Err(JwsError::NotDetached));
        let long = format!("{}{}", "A".repeat(MAX_SIGNATURE_BYTES), jws);
        assert!(matches!(verify_audit_report(&long, report, &keys(&key)), Err(JwsError::TooLong { .. })));
    }
}
