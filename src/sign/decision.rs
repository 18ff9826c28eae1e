//! Signed decisions: a decision that a guard checks with the daemon's public key.
//!
//! It is signed as a verdict is: a compact JWS of a type of its own, whose payload is
//! `{"iss", "iat", "exp", "request", "decision": {…}}`. `exp` is the first end of the verdict and of the decision.
//! `request` is the digest of what was asked, so that nobody can pass an answer about other terms for this one.

use clresolve_bundle::signed::{SignError, Signer, lifetime};
use clresolve_core::digest::Digest;
use clresolve_payment::Decision;
use jiff::Timestamp;
use serde::Serialize;

use clresolve_verdict::trust::Resolution;

/// `typ` of the protected header.
pub const DECISION_TYPE: &str = "clresolve-decision+jwt";

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    iat: i64,
    exp: i64,
    request: Digest,
    decision: &'a Decision,
}

/// The decision about the agent of a live run as a JWS in compact form, issued at `now`. `request` is the digest of
/// the request that it answers, as it was sent.
///
/// # Errors
/// When nothing is signed about such a verdict, or the decision holds no longer.
pub fn sign_decision(
    signer: &Signer,
    decision: &Decision,
    resolution: &Resolution,
    request: Digest,
    now: Timestamp,
) -> Result<String, SignError> {
    let (iat, exp) = lifetime(resolution, now)?;
    let exp = decision.valid_until.map_or(exp, |until| exp.min(until.as_second()));
    if exp <= iat {
        return Err(SignError::NotFresh);
    }
    let claims = Claims { iss: signer.issuer(), iat, exp, request, decision };
    let payload = serde_json::to_vec(&claims).expect("a decision has a JSON form: its keys are strings");
    Ok(signer.key().sign_compact(DECISION_TYPE, &payload))
}
