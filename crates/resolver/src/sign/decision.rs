//! Signed decisions, which a guard verifies with the daemon's public key.
//!
//! Like a verdict, a decision is signed as a compact JWS. It has its own type, and its payload is `{"iss", "iat",
//! "exp", "request", "decision": {…}}`. `exp` is the earlier of the ends of the verdict and the decision. `request` is
//! the digest of the request, so that nobody can present an answer about other terms as this one.

use clresolve_bundle::signed::{VerdictIssuer, VerdictSignError, issue_and_expiry_times};
use clresolve_core::digest::Digest;
use clresolve_payment::PaymentDecision;
use jiff::Timestamp;
use serde::Serialize;

use clresolve_verdict::trust::Resolution;

/// `typ` of the protected header.
pub const DECISION_TYPE: &str = "clresolve-decision+jwt";

#[derive(Serialize)]
struct DecisionClaims<'a> {
    iss: &'a str,
    iat: i64,
    exp: i64,
    request: Digest,
    decision: &'a PaymentDecision,
}

/// Signs the decision about an agent, from a live resolution, as a compact JWS issued at `now`. `request` is the digest
/// of the request as sent.
///
/// # Errors
/// If such a verdict is never signed, or if the decision has expired.
pub fn sign_decision(
    signer: &VerdictIssuer,
    decision: &PaymentDecision,
    resolution: &Resolution,
    request: Digest,
    now: Timestamp,
) -> Result<String, VerdictSignError> {
    let (iat, exp) = issue_and_expiry_times(resolution, now)?;
    let exp = decision.valid_until.map_or(exp, |until| exp.min(until.as_second()));
    if exp <= iat {
        return Err(VerdictSignError::NotFresh);
    }
    let claims = DecisionClaims { iss: signer.issuer(), iat, exp, request, decision };
    let payload = serde_json::to_vec(&claims).expect("a decision has a JSON form: its keys are strings");
    Ok(signer.signing_key().sign_compact(DECISION_TYPE, &payload))
}
