//! Signed verdicts: verdicts that anyone can verify offline with the signer's public key.
//!
//! A signed verdict is a JWS in compact form (RFC 7515) with Ed25519 (RFC 8037). Its protected header has exactly three
//! members: `alg` (`EdDSA`), `kid` (the key's RFC 7638 thumbprint) and `typ` ([`TYPE`], RFC 8725 section 3.11). Its
//! payload is `{"iss", "iat", "exp", "verdict": {…}}`. The whole verdict is one member, so it conforms to
//! `schemas/verdict.schema.json`, no claim can shadow one of its members, and a generic JWT library can still check the
//! claims.
//!
//! `exp` is the verdict's `fresh_until`. An expired verdict, a verdict about a numbered block, and a verdict from the
//! sandbox are never signed. [`verify_signed_verdict`] is pure: time is an argument.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use clresolve_core::json::{JsonError, JsonLimits, parse_strict_json};
use clresolve_core::name::EnsName;
use clresolve_core::reading::ProofGrade;
use clresolve_core::reason::ReasonCode;
use clresolve_core::world::SANDBOX;
use clresolve_jose::{Ed25519KeySet, Ed25519SigningKey, JwsError, JwsProfile, verify_compact_jws};
use clresolve_verdict::trust::{Resolution, TrustedVerdict};
use clresolve_verdict::verdict::{ChainAnchor, ResolutionDepth, SCHEMA, Verdict};

/// `typ` of the protected header. It prevents a JWS that was signed for another purpose from being accepted as a
/// verdict.
pub const TYPE: &str = "clresolve-verdict+jwt";

/// Media type of a JWS in compact form (RFC 7515, 9.2.1).
pub const MEDIA_TYPE: &str = "application/jose";

/// Maximum length of a signed verdict, in bytes. A verdict has a few kilobytes; every value in it is truncated to a few
/// hundred bytes.
pub const MAX_JWS_BYTES: usize = 1024 * 1024;

/// The JWS parameters of a signed verdict.
const KIND: JwsProfile = JwsProfile { typ: TYPE, max_bytes: MAX_JWS_BYTES };

/// Accepted clock difference between signer and verifier, in seconds. It exceeds the difference of clocks synchronized
/// by NTP, and is small compared with the minutes for which a verdict is fresh.
pub const SKEW: i64 = 30;

/// Maximum time from `iat` to `exp`, in seconds. No verdict is fresh for longer than an hour, so a longer lifetime is
/// the signer's mistake.
pub const MAX_LIFETIME: i64 = 3600;

/// Signs verdicts as an issuer: the signing key, the issuer, and the keys to publish.
pub struct VerdictIssuer {
    key: Ed25519SigningKey,
    issuer: String,
    published: Ed25519KeySet,
}

impl VerdictIssuer {
    /// A signer that publishes only its own key.
    pub fn new(key: Ed25519SigningKey, issuer: impl Into<String>) -> Self {
        let published = Ed25519KeySet::from(key.public_key());
        Self { key, issuer: issuer.into(), published }
    }

    /// Adds keys to publish besides the signing key.
    #[must_use]
    pub fn with_published_keys(mut self, others: Ed25519KeySet) -> Self {
        self.published.extend(others);
        self
    }

    /// Signs the verdict of a live resolution as a JWS in compact form, issued at `now`.
    ///
    /// # Errors
    /// [`VerdictSignError`] if the verdict must not be signed.
    pub fn sign_verdict(&self, resolution: &Resolution, now: Timestamp) -> Result<String, VerdictSignError> {
        let (iat, exp) = issue_and_expiry_times(resolution, now)?;
        let claims = VerdictClaims { iss: &self.issuer, iat, exp, verdict: &**resolution.verdict() };
        let payload = serde_json::to_vec(&claims).expect("a verdict has a JSON form: its keys are strings");
        Ok(self.key.sign_compact(TYPE, &payload))
    }

    /// The `iss` claim of its signatures.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The signing key.
    pub const fn signing_key(&self) -> &Ed25519SigningKey {
        &self.key
    }

    /// Thumbprint of the signing key.
    pub fn key_id(&self) -> &str {
        self.key.public_key().thumbprint()
    }

    /// The keys to publish: the signing key, then the others.
    pub const fn published_keys(&self) -> &Ed25519KeySet {
        &self.published
    }
}

impl fmt::Debug for VerdictIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerdictIssuer").field("issuer", &self.issuer).field("key", &self.key).finish_non_exhaustive()
    }
}

/// `iat` and `exp` for a signed statement about the verdict of a live resolution, in seconds since 1970.
///
/// # Errors
/// [`VerdictSignError`] if no statement about the verdict may be signed.
pub fn issue_and_expiry_times(resolution: &Resolution, now: Timestamp) -> Result<(i64, i64), VerdictSignError> {
    let verdict = resolution.verdict();
    let anchor = verdict.anchor.as_ref();
    if anchor.is_some_and(|anchor| anchor.world == SANDBOX) && !clresolve_core::mutant!("sandbox-is-signed") {
        return Err(VerdictSignError::Sandbox);
    }
    if anchor.is_some_and(|anchor| anchor.block.is_chosen_by_number()) {
        return Err(VerdictSignError::NumberedBlock);
    }
    let iat = now.as_second();
    let exp = verdict.freshness.fresh_until.as_second();
    if iat < exp { Ok((iat, exp)) } else { Err(VerdictSignError::NotFresh) }
}

/// Why a verdict is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerdictSignError {
    /// The verdict has expired, or was never fresh because the input is not a name.
    #[error("the verdict is not fresh; only a fresh verdict is signed")]
    NotFresh,
    /// The verdict is about a block chosen by number. An `exp` would present the past as current.
    #[error("the verdict is about a numbered block; only the present is signed")]
    NumberedBlock,
    /// The verdict comes from the sandbox.
    #[error("the sandbox signs nothing: its verdicts prove nothing")]
    Sandbox,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerdictClaims<S, V> {
    iss: S,
    iat: i64,
    exp: i64,
    verdict: V,
}

/// What the verifier requires of a signed verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedVerdict {
    /// The name.
    pub name: EnsName,
    /// Identifier of the profile.
    pub profile: String,
    /// Minimum depth.
    pub depth: ResolutionDepth,
    /// CAIP-2 identifier of the chain.
    pub chain: String,
    /// The network, as in `anchor.world`, such as `mainnet`.
    pub world: String,
    /// The issuer; `None` accepts any issuer whose key is trusted.
    pub issuer: Option<String>,
    /// Minimum grade of proof; `None` accepts any. A verdict that rests on a single third-party endpoint is rejected,
    /// as at the gate, unless this is [`ProofGrade::SingleRpc`].
    pub proof: Option<ProofGrade>,
}

/// A verdict whose signature was verified.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedVerdict {
    verdict: Arc<Verdict>,
    /// The `iss` claim.
    pub issuer: String,
    /// Thumbprint of the signing key.
    pub key_id: String,
    /// Expiry in seconds since 1970.
    pub expires: i64,
}

impl VerifiedVerdict {
    /// The verdict.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.verdict
    }

    /// The agent, trusted until the signature expires, if the verdict is trusted.
    pub fn trusted_verdict(&self) -> Option<TrustedVerdict> {
        TrustedVerdict::from_signed(&self.verdict, self.verdict.freshness.fresh_until)
    }
}

/// Verifies a signed verdict: form, header, signature, times, and whether the verdict matches `expected`.
///
/// The payload is parsed only after the signature has been verified.
///
/// # Errors
/// The first check that fails.
pub fn verify_signed_verdict(
    jws: &str,
    keys: &Ed25519KeySet,
    expected: &ExpectedVerdict,
    now: Timestamp,
) -> Result<VerifiedVerdict, VerdictVerifyError> {
    let (payload, key_id) = verify_compact_jws(jws, keys, &KIND)?;
    let limits = JsonLimits { bytes: MAX_JWS_BYTES, ..JsonLimits::DOCUMENT };
    let payload = parse_strict_json(&payload, limits).map_err(VerdictVerifyError::Payload)?;
    let claims: VerdictClaims<String, Verdict> =
        serde_json::from_value(payload).map_err(|error| VerdictVerifyError::Claims { detail: error.to_string() })?;
    check_issue_and_expiry(claims.iat, claims.exp, now)?;
    let VerdictClaims { iss: issuer, exp: expires, verdict, .. } = claims;
    if verdict.freshness.fresh_until.as_second() != expires {
        return Err(VerdictVerifyError::Lifetime);
    }
    if let Some(expected) = expected.issuer.as_ref().filter(|expected| **expected != issuer) {
        return Err(VerdictVerifyError::Issuer { expected: expected.clone(), observed: issuer });
    }
    check_expected_verdict(&verdict, expected)?;
    Ok(VerifiedVerdict { verdict: Arc::new(verdict), issuer, key_id, expires })
}

/// Checks `iat` and `exp` of a signed statement, in seconds since 1970: they are at most [`MAX_LIFETIME`] apart, and
/// `now` lies between them within [`SKEW`].
///
/// # Errors
/// [`VerdictVerifyError::Lifetime`], [`VerdictVerifyError::Expired`] or [`VerdictVerifyError::IssuedInTheFuture`].
pub fn check_issue_and_expiry(iat: i64, exp: i64, now: Timestamp) -> Result<(), VerdictVerifyError> {
    let now = now.as_second();
    if !exp.checked_sub(iat).is_some_and(|seconds| (1..=MAX_LIFETIME).contains(&seconds)) {
        return Err(VerdictVerifyError::Lifetime);
    }
    if now >= exp.saturating_add(SKEW) && !clresolve_core::mutant!("late-replay") {
        return Err(VerdictVerifyError::Expired { ago: now.saturating_sub(exp) });
    }
    if iat > now.saturating_add(SKEW) {
        return Err(VerdictVerifyError::IssuedInTheFuture);
    }
    Ok(())
}

fn check_expected_verdict(verdict: &Verdict, expected: &ExpectedVerdict) -> Result<(), VerdictVerifyError> {
    if verdict.schema != SCHEMA || !verdict.has_valid_digests() {
        return Err(VerdictVerifyError::WrongDigests);
    }
    check_expected_part(SignedDocumentMismatch::Name, expected.name.as_str(), verdict.name.normalized.as_deref())?;
    check_expected_part(SignedDocumentMismatch::Profile, &expected.profile, Some(&verdict.profile.id))?;
    let ExpectedVerdict { chain, world, proof, .. } = expected;
    let warns = |code| verdict.reasons.iter().any(|reason| reason.code == code);
    AnchorRequirements { chain, world, proof: *proof }.check_anchor(verdict.anchor.as_ref(), warns)?;
    if (expected.depth, verdict.profile.depth) == (ResolutionDepth::Schemas, ResolutionDepth::Identity) {
        return Err(VerdictVerifyError::Shallow);
    }
    Ok(())
}

/// Requirements on the anchor of a signed statement.
#[derive(Clone, Copy, Debug)]
pub struct AnchorRequirements<'a> {
    /// CAIP-2 identifier of the chain.
    pub chain: &'a str,
    /// The network, as in `anchor.world`, such as `mainnet`.
    pub world: &'a str,
    /// Minimum grade of proof, as in [`ExpectedVerdict::proof`].
    pub proof: Option<ProofGrade>,
}

impl AnchorRequirements<'_> {
    /// Checks chain, network and grade of proof. `warns` returns whether the verdict has a warning.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn check_anchor(
        &self,
        anchor: Option<&ChainAnchor>,
        warns: impl Fn(ReasonCode) -> bool,
    ) -> Result<(), VerdictVerifyError> {
        if anchor.is_some_and(|anchor| anchor.world == SANDBOX) {
            return Err(VerdictVerifyError::Sandbox);
        }
        check_expected_part(SignedDocumentMismatch::Chain, self.chain, anchor.map(|anchor| anchor.chain.as_str()))?;
        check_expected_part(SignedDocumentMismatch::World, self.world, anchor.map(|anchor| anchor.world.as_str()))?;
        let Some(ChainAnchor { proof, .. }) = anchor else { return Ok(()) };
        if self.proof.is_some_and(|least| proof.grade < least) {
            return Err(VerdictVerifyError::ProofTooWeak);
        }
        // A state can be proven against a header that one third party invented, so a high grade alone is not enough.
        if warns(ReasonCode::SingleRpc) && self.proof != Some(ProofGrade::SingleRpc) {
            return Err(VerdictVerifyError::OneStrangersWord);
        }
        Ok(())
    }
}

/// Checks that one part equals the expected value.
///
/// # Errors
/// [`VerdictVerifyError::Other`] if it differs.
fn check_expected_part(
    what: SignedDocumentMismatch,
    expected: &str,
    observed: Option<&str>,
) -> Result<(), VerdictVerifyError> {
    if observed == Some(expected) {
        return Ok(());
    }
    let observed = observed.unwrap_or_default().to_owned();
    Err(VerdictVerifyError::Other { what, expected: expected.to_owned(), observed })
}

/// The part of a signed document that differs from what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedDocumentMismatch {
    /// The chain.
    Chain,
    /// The payment decision, in a document about a receipt.
    Decision,
    /// The ENS name.
    Name,
    /// The profile.
    Profile,
    /// The receipt, in a document about a receipt.
    Receipt,
    /// The request, in a document about a receipt.
    Request,
    /// The settlement, in a document about a receipt.
    Settlement,
    /// The network.
    World,
}

impl fmt::Display for SignedDocumentMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chain => "chain",
            Self::Decision => "decision",
            Self::Name => "name",
            Self::Profile => "profile",
            Self::Receipt => "receipt",
            Self::Request => "request",
            Self::Settlement => "settlement",
            Self::World => "world",
        })
    }
}

/// Why a signed verdict is rejected. The texts in it come from untrusted input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerdictVerifyError {
    /// Form, header or signature is invalid.
    #[error(transparent)]
    Jws(#[from] JwsError),
    /// The payload is not an object with exactly the four expected members.
    #[error("the payload is not a signed verdict: {detail}")]
    Claims {
        /// The parser's message.
        detail: String,
    },
    /// The signature has expired.
    #[error("it expired {ago} s ago; ask for a new one")]
    Expired {
        /// Seconds since expiry.
        ago: i64,
    },
    /// `iat` is after `now`.
    #[error("it was issued in the future; one of the clocks is wrong")]
    IssuedInTheFuture,
    /// The issuer differs from the expected one.
    #[error("issued by `{observed}`, not by `{expected}`")]
    Issuer {
        /// The expected issuer.
        expected: String,
        /// The issuer in the claims.
        observed: String,
    },
    /// `exp` differs from `fresh_until`, or is not within [`MAX_LIFETIME`] after `iat`.
    #[error("iat and exp do not fit the verdict")]
    Lifetime,
    /// The verdict's `id` or `conclusion` does not match its content.
    #[error("the verdict's id or conclusion does not match its content")]
    WrongDigests,
    /// The verdict is about something else than expected.
    #[error("the {what} is `{observed}`, not `{expected}`")]
    Other {
        /// The part that differs.
        what: SignedDocumentMismatch,
        /// The expected value.
        expected: String,
        /// The verdict's value; empty if it has none.
        observed: String,
    },
    /// The verdict rests on a single endpoint that is not the operator's own.
    #[error("it rests on a single third-party endpoint; to accept that, require the proof single-rpc")]
    OneStrangersWord,
    /// The payload is not strict JSON.
    #[error("the payload is not strict JSON: {0}")]
    Payload(JsonError),
    /// The grade of proof is below the required minimum.
    #[error("its grade of proof is lower than required")]
    ProofTooWeak,
    /// The verdict comes from the sandbox.
    #[error("it comes from the sandbox, whose verdicts prove nothing")]
    Sandbox,
    /// The verdict's depth is below the required minimum.
    #[error("the depth is `identity`, not `schemas`")]
    Shallow,
}
