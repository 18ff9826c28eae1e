//! Signed documents about a receipt: the result of its verification, to be checked with the public key of the issuer.
//!
//! Like a verdict, it is signed as a compact JWS. It has its own type, and its payload is `{"iss", "iat", "exp",
//! "receipt": {…}}`. `exp` is the end of the verdict on the agent. The document contains the digests of the receipt and
//! the request, so that nobody can present it as being about others.

use clresolve_bundle::signed::{
    AnchorRequirements, MAX_JWS_BYTES, SignedDocumentMismatch, VerdictIssuer, VerdictSignError, VerdictVerifyError,
    check_issue_and_expiry, issue_and_expiry_times,
};
use clresolve_core::digest::Digest;
use clresolve_core::json::{JsonLimits, parse_strict_json};
use clresolve_core::reading::ProofGrade;
use clresolve_jose::{Ed25519KeySet, JwsProfile, verify_compact_jws};
use clresolve_messages::receipt::ReceiptVerificationDocument;
use clresolve_messages::receipt::document::SCHEMA;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use clresolve_core::name::EnsName;
use clresolve_core::state::TrustState;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::{ChainAnchor, document_id};

/// `typ` of the protected header.
pub const RECEIPT_TYPE: &str = "clresolve-receipt+jwt";

const KIND: JwsProfile = JwsProfile { typ: RECEIPT_TYPE, max_bytes: MAX_JWS_BYTES };

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiptResultClaims<S, R> {
    iss: S,
    iat: i64,
    exp: i64,
    receipt: R,
}

/// Signs the result of verifying a receipt, from a live resolution of its agent, as a compact JWS issued at `now`.
///
/// # Errors
/// If such a verdict is never signed.
pub fn sign_receipt_result(
    signer: &VerdictIssuer,
    found: &ReceiptVerificationDocument,
    resolution: &Resolution,
    now: Timestamp,
) -> Result<String, VerdictSignError> {
    let (iat, exp) = issue_and_expiry_times(resolution, now)?;
    let claims = ReceiptResultClaims { iss: signer.issuer(), iat, exp, receipt: found };
    let payload = serde_json::to_vec(&claims).expect("it has a JSON form: its keys are strings");
    Ok(signer.signing_key().sign_compact(RECEIPT_TYPE, &payload))
}

/// What the verifier requires of a signed document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedReceiptResult {
    /// The agent.
    pub name: EnsName,
    /// SHA-256 of the receipt's bytes.
    pub receipt: Digest,
    /// SHA-256 of the bytes of the request; `None` if the receipt was verified without one.
    pub request: Option<Digest>,
    /// SHA-256 over the RFC 8785 form of the decision; `None` if the receipt was verified without one.
    pub decision: Option<String>,
    /// Whether it must state that the settlement of the payment was shown, with the demanded grade of proof.
    pub requires_settlement: bool,
    /// CAIP-2 identifier of the chain.
    pub chain: String,
    /// `anchor.world`, such as `mainnet`.
    pub world: String,
    /// The minimum grade of proof, which also applies to a demanded settlement. `None` accepts any grade except the
    /// answer of a single third party, as for a signed verdict.
    pub proof: Option<ProofGrade>,
    /// The issuer. `None` accepts any issuer whose key is trusted.
    pub issuer: Option<String>,
}

/// A verified document.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedReceiptResult {
    /// The document, as described by `schemas/receipt.schema.json`.
    pub document: Value,
    /// Its state.
    pub state: TrustState,
    /// The issuer.
    pub issuer: String,
    /// Thumbprint of the key.
    pub key_id: String,
}

/// Verifies a signed document: format, header, signature and time. Then checks that it is about the expected agent,
/// receipt and request, and has the expected chain, world and grade of proof. The payload is not interpreted before the
/// signature is verified.
///
/// # Errors
/// The first check that fails.
pub fn verify_signed_receipt_result(
    jws: &str,
    keys: &Ed25519KeySet,
    expected: &ExpectedReceiptResult,
    now: Timestamp,
) -> Result<VerifiedReceiptResult, VerdictVerifyError> {
    let (payload, key_id) = verify_compact_jws(jws, keys, &KIND)?;
    let limits = JsonLimits { bytes: MAX_JWS_BYTES, ..JsonLimits::DOCUMENT };
    let payload = parse_strict_json(&payload, limits).map_err(VerdictVerifyError::Payload)?;
    let ReceiptResultClaims::<String, Value> { iss: issuer, iat, exp, receipt: document } =
        serde_json::from_value(payload).map_err(|error| VerdictVerifyError::Claims { detail: error.to_string() })?;
    if !clresolve_core::mutant!("late-receipts") {
        check_issue_and_expiry(iat, exp, now)?;
    }
    if let Some(expected) = expected.issuer.as_ref().filter(|expected| **expected != issuer) {
        return Err(VerdictVerifyError::Issuer { expected: expected.clone(), observed: issuer });
    }
    let state = check_claims(&document, expected)?;
    Ok(VerifiedReceiptResult { document, state, issuer, key_id })
}

/// The state of the document, if it is about what is expected.
fn check_claims(document: &Value, expected: &ExpectedReceiptResult) -> Result<TrustState, VerdictVerifyError> {
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    if text("/schema") != Some(SCHEMA) || text("/id") != Some(&document_id(document)) {
        return Err(VerdictVerifyError::WrongDigests);
    }
    let request = expected.request.map(|request| request.to_string());
    let digest = expected.receipt.to_string();
    for (what, expected, pointer) in [
        (SignedDocumentMismatch::Name, Some(expected.name.as_str()), "/name"),
        (SignedDocumentMismatch::Receipt, Some(digest.as_str()), "/receipt/sha256"),
        (SignedDocumentMismatch::Request, request.as_deref(), "/request"),
        (SignedDocumentMismatch::Decision, expected.decision.as_deref(), "/decision"),
    ] {
        let observed = text(pointer);
        if observed != expected && !clresolve_core::mutant!("receipts-are-said-of-others") {
            let shown = |text: Option<&str>| text.unwrap_or_default().to_owned();
            return Err(VerdictVerifyError::Other { what, expected: shown(expected), observed: shown(observed) });
        }
    }
    let ExpectedReceiptResult { chain, world, proof, .. } = expected;
    if expected.requires_settlement {
        check_settlement(document, *proof)?;
    }
    let anchor: Option<ChainAnchor> = document_member(document, "anchor")?;
    let warnings: Vec<String> = document_member(document, "warnings")?;
    if !clresolve_core::mutant!("receipts-of-any-world") {
        AnchorRequirements { chain, world, proof: *proof }
            .check_anchor(anchor.as_ref(), |code| warnings.iter().any(|it| it == code.slug()))?;
    }
    document_member(document, "state")
}

/// Rejects a document that does not show the settlement, or only with a weaker grade than demanded.
fn check_settlement(document: &Value, least: Option<ProofGrade>) -> Result<(), VerdictVerifyError> {
    let shown_by = document.pointer("/settlement/shown_by").and_then(Value::as_str);
    let Some(shown_by) = shown_by else {
        let (expected, observed) = ("shown".to_owned(), String::new());
        return Err(VerdictVerifyError::Other { what: SignedDocumentMismatch::Settlement, expected, observed });
    };
    let reported = document.pointer("/settlement/proof/grade").and_then(|grade| ProofGrade::deserialize(grade).ok());
    // Logs that are proven against a header are as strong as proven state.
    let vouched = if shown_by == "proven" { Some(ProofGrade::StateProof) } else { reported };
    if vouched < least { Err(VerdictVerifyError::ProofTooWeak) } else { Ok(()) }
}

fn document_member<T: DeserializeOwned>(document: &Value, name: &str) -> Result<T, VerdictVerifyError> {
    let value = document.get(name).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| VerdictVerifyError::Claims { detail: error.to_string() })
}
