//! Signed verdicts: a verdict that is checked with the signer's public key, without asking again.
//!
//! A signed verdict is a JWS in compact form (RFC 7515) with Ed25519 (RFC 8037). Its protected header has three members and
//! no other: `alg` (`EdDSA`), `kid` (the key's RFC 7638 thumbprint) and `typ` ([`TYPE`], RFC 8725 section 3.11). Its
//! payload is `{"iss", "iat", "exp", "verdict": {…}}`: the verdict stands whole in a member of its own, so that it is what
//! `schemas/verdict.schema.json` describes, no claim can take the place of one of its members, and a library that knows
//! nothing of verdicts still checks the claims.
//!
//! `exp` is the verdict's `fresh_until`. A verdict that is no longer fresh, is about a numbered block, or comes from the
//! embedded world is not signed. [`verify`] is pure: time is an argument.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use clresolve_core::json::{JsonError, Limits, parse};
use clresolve_core::name::EnsName;
use clresolve_core::reading::Grade;
use clresolve_core::reason::Code;
use clresolve_core::world::SANDBOX;
use clresolve_jose::{JwsError, Kind, SigningKey, TrustedKeys, verify_compact};
use clresolve_verdict::trust::{Resolution, Trusted};
use clresolve_verdict::verdict::{Anchor, Depth, SCHEMA, Verdict};

/// `typ` of the protected header. It keeps a JWS that was signed for another purpose from passing for a verdict.
pub const TYPE: &str = "clresolve-verdict+jwt";

/// Media type of a JWS in compact form (RFC 7515, 9.2.1).
pub const MEDIA_TYPE: &str = "application/jose";

/// Longest signed verdict, in bytes. A verdict has some kilobytes; every value in it is cut to a few hundred bytes.
pub const MAX_JWS_BYTES: usize = 1024 * 1024;

/// A signed verdict as a JWS.
const KIND: Kind = Kind { typ: TYPE, max_bytes: MAX_JWS_BYTES };

/// Seconds by which the clocks of signer and verifier may differ: more than clocks that are kept by NTP do, and little
/// beside the minutes for which a verdict is fresh.
pub const SKEW: i64 = 30;

/// Longest time from `iat` to `exp`, in seconds: no verdict is fresh for longer than an hour, so a longer one is a
/// mistake of the signer's.
pub const MAX_LIFETIME: i64 = 3600;

/// Signs verdicts: a key, the keys that are published beside it, and in whose name.
pub struct Signer {
    key: SigningKey,
    issuer: String,
    published: TrustedKeys,
}

impl Signer {
    /// A signer of this key alone.
    pub fn new(key: SigningKey, issuer: impl Into<String>) -> Self {
        let published = TrustedKeys::from(key.public());
        Self { key, issuer: issuer.into(), published }
    }

    /// The same, with more keys to publish beside its own.
    #[must_use]
    pub fn publishing(mut self, others: TrustedKeys) -> Self {
        self.published.extend(others);
        self
    }

    /// The verdict of a live run as a JWS in compact form, issued at `now`.
    ///
    /// # Errors
    /// When such a verdict is not signed; see [`SignError`].
    pub fn sign(&self, resolution: &Resolution, now: Timestamp) -> Result<String, SignError> {
        let (iat, exp) = lifetime(resolution, now)?;
        let claims = Claims { iss: &self.issuer, iat, exp, verdict: resolution.verdict() };
        let payload = serde_json::to_vec(&claims).expect("a verdict has a JSON form: its keys are strings");
        Ok(self.key.sign_compact(TYPE, &payload))
    }

    /// In whose name it signs.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The key that signs.
    pub const fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The thumbprint of the key that signs.
    pub fn key_id(&self) -> &str {
        self.key.public().id()
    }

    /// The keys to publish: the one that signs, then the others.
    pub const fn published(&self) -> &TrustedKeys {
        &self.published
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("issuer", &self.issuer).field("key", &self.key).finish_non_exhaustive()
    }
}

/// `iat` and `exp` of what is signed about the verdict of a live run, in seconds since 1970.
///
/// # Errors
/// When nothing is signed about such a verdict.
pub fn lifetime(resolution: &Resolution, now: Timestamp) -> Result<(i64, i64), SignError> {
    let verdict = resolution.verdict();
    let anchor = verdict.anchor.as_ref();
    if anchor.is_some_and(|anchor| anchor.world == SANDBOX) && !clresolve_core::mutant!("sandbox-is-signed") {
        return Err(SignError::Sandbox);
    }
    if anchor.is_some_and(|anchor| anchor.block.is_chosen_by_number()) {
        return Err(SignError::NumberedBlock);
    }
    let iat = now.as_second();
    let exp = verdict.freshness.fresh_until.as_second();
    if iat < exp { Ok((iat, exp)) } else { Err(SignError::NotFresh) }
}

/// Why a verdict is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// It is no longer fresh, or never was (the input is not a name).
    #[error("the verdict is not fresh; only a fresh verdict is signed")]
    NotFresh,
    /// It is about a block that was chosen by number: its `exp` would make the past look like the present.
    #[error("the verdict is about a numbered block; only the present is signed")]
    NumberedBlock,
    /// It comes from the embedded world.
    #[error("the sandbox signs nothing: its verdicts prove nothing")]
    Sandbox,
}

/// The payload, as it is written.
#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    iat: i64,
    exp: i64,
    verdict: &'a Verdict,
}

/// The payload, as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForeignClaims {
    iss: String,
    iat: i64,
    exp: i64,
    verdict: Verdict,
}

/// What a verifier asked for, and holds a signed verdict to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedVerdict {
    /// The name.
    pub name: EnsName,
    /// Identifier of the profile.
    pub profile: String,
    /// The least depth.
    pub depth: Depth,
    /// CAIP-2 identifier of the chain.
    pub chain: String,
    /// `anchor.world`, such as `mainnet`.
    pub world: String,
    /// The issuer; with `None` any whose key is trusted.
    pub issuer: Option<String>,
    /// The least grade of proof; with `None` any. One stranger's word is refused, as the gate does, unless
    /// [`Grade::SingleRpc`] says that it is enough.
    pub proof: Option<Grade>,
}

/// A signed verdict that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct VerifiedVerdict {
    verdict: Arc<Verdict>,
    /// The issuer.
    pub issuer: String,
    /// Thumbprint of the key.
    pub key_id: String,
    /// From when on it may not be relied on, in seconds since 1970.
    pub expires: i64,
}

impl VerifiedVerdict {
    /// The verdict.
    pub const fn verdict(&self) -> &Arc<Verdict> {
        &self.verdict
    }

    /// The agent as long as the signature holds, if the verdict is trusted.
    pub fn trusted(&self) -> Option<Trusted> {
        Trusted::signed(&self.verdict, self.verdict.freshness.fresh_until)
    }
}

/// Checks a signed verdict: form, header, signature, time, and that it answers the question that was asked.
///
/// Nothing of the payload is read before the signature holds.
///
/// # Errors
/// The first check that it does not pass.
pub fn verify(
    jws: &str,
    keys: &TrustedKeys,
    expected: &ExpectedVerdict,
    now: Timestamp,
) -> Result<VerifiedVerdict, VerifyError> {
    let (payload, key_id) = verify_compact(jws, keys, &KIND)?;
    let limits = Limits { bytes: MAX_JWS_BYTES, ..Limits::DOCUMENT };
    let payload = parse(&payload, limits).map_err(VerifyError::Payload)?;
    let claims: ForeignClaims =
        serde_json::from_value(payload).map_err(|error| VerifyError::Claims { detail: error.to_string() })?;
    check_times(claims.iat, claims.exp, now)?;
    let ForeignClaims { iss: issuer, exp: expires, verdict, .. } = claims;
    if verdict.freshness.fresh_until.as_second() != expires {
        return Err(VerifyError::Lifetime);
    }
    if let Some(expected) = expected.issuer.as_ref().filter(|expected| **expected != issuer) {
        return Err(VerifyError::Issuer { expected: expected.clone(), observed: issuer });
    }
    check_verdict(&verdict, expected)?;
    Ok(VerifiedVerdict { verdict: Arc::new(verdict), issuer, key_id, expires })
}

/// Checks `iat` and `exp` of what is signed about a verdict, in seconds since 1970: they are at most [`MAX_LIFETIME`]
/// apart, and `now` is between them, give or take [`SKEW`].
///
/// # Errors
/// Says which of them does not hold.
pub fn check_times(iat: i64, exp: i64, now: Timestamp) -> Result<(), VerifyError> {
    let now = now.as_second();
    if !exp.checked_sub(iat).is_some_and(|seconds| (1..=MAX_LIFETIME).contains(&seconds)) {
        return Err(VerifyError::Lifetime);
    }
    if now >= exp.saturating_add(SKEW) && !clresolve_core::mutant!("late-replay") {
        return Err(VerifyError::Expired { ago: now.saturating_sub(exp) });
    }
    if iat > now.saturating_add(SKEW) {
        return Err(VerifyError::IssuedInTheFuture);
    }
    Ok(())
}

fn check_verdict(verdict: &Verdict, expected: &ExpectedVerdict) -> Result<(), VerifyError> {
    if verdict.schema != SCHEMA || !verdict.has_right_digests() {
        return Err(VerifyError::WrongDigests);
    }
    same(What::Name, expected.name.as_str(), verdict.name.normalized.as_deref())?;
    same(What::Profile, &expected.profile, Some(&verdict.profile.id))?;
    let ExpectedVerdict { chain, world, proof, .. } = expected;
    let warns = |code| verdict.reasons.iter().any(|reason| reason.code == code);
    AnchorDemand { chain, world, proof: *proof }.check(verdict.anchor.as_ref(), warns)?;
    if (expected.depth, verdict.profile.depth) == (Depth::Schemas, Depth::Identity) {
        return Err(VerifyError::Shallow);
    }
    Ok(())
}

/// What signed words must rest on.
#[derive(Clone, Copy, Debug)]
pub struct AnchorDemand<'a> {
    /// CAIP-2 identifier of the chain.
    pub chain: &'a str,
    /// `anchor.world`, such as `mainnet`.
    pub world: &'a str,
    /// The least grade of proof, as in [`ExpectedVerdict::proof`].
    pub proof: Option<Grade>,
}

impl AnchorDemand<'_> {
    /// Checks where the agent was read, and how far that is vouched for, also by what the verdict warns of.
    ///
    /// # Errors
    /// The first check that it does not pass.
    pub fn check(&self, anchor: Option<&Anchor>, warns: impl Fn(Code) -> bool) -> Result<(), VerifyError> {
        if anchor.is_some_and(|anchor| anchor.world == SANDBOX) {
            return Err(VerifyError::Sandbox);
        }
        same(What::Chain, self.chain, anchor.map(|anchor| anchor.chain.as_str()))?;
        same(What::World, self.world, anchor.map(|anchor| anchor.world.as_str()))?;
        let Some(Anchor { proof, .. }) = anchor else { return Ok(()) };
        if self.proof.is_some_and(|least| proof.grade < least) {
            return Err(VerifyError::ProofTooWeak);
        }
        // A state can be proven against a header that one stranger made up, so a high grade alone is not enough.
        if warns(Code::SingleRpc) && self.proof != Some(Grade::SingleRpc) {
            return Err(VerifyError::OneStrangersWord);
        }
        Ok(())
    }
}

/// That one part is what was asked for.
///
/// # Errors
/// [`VerifyError::Other`].
fn same(what: What, expected: &str, observed: Option<&str>) -> Result<(), VerifyError> {
    if observed == Some(expected) {
        return Ok(());
    }
    let observed = observed.unwrap_or_default().to_owned();
    Err(VerifyError::Other { what, expected: expected.to_owned(), observed })
}

/// The part of a verdict that differs from what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The chain.
    Chain,
    /// The decision, of a document about a receipt.
    Decision,
    /// The name.
    Name,
    /// The profile.
    Profile,
    /// The receipt, of a document about one.
    Receipt,
    /// The request, of a document about a receipt.
    Request,
    /// The settlement, of a document about a receipt.
    Settlement,
    /// The world.
    World,
}

impl fmt::Display for What {
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

/// Why a signed verdict is refused. The text in it is foreign.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// Form, header or signature are refused.
    #[error(transparent)]
    Jws(#[from] JwsError),
    /// The payload is not the four members that it should be.
    #[error("the payload is not a signed verdict: {detail}")]
    Claims {
        /// What is wrong.
        detail: String,
    },
    /// It may no longer be relied on.
    #[error("it expired {ago} s ago; ask for a new one")]
    Expired {
        /// Seconds since then.
        ago: i64,
    },
    /// It was issued after `now`.
    #[error("it was issued in the future; one of the clocks is wrong")]
    IssuedInTheFuture,
    /// Another issuer than the one expected.
    #[error("issued by `{observed}`, not by `{expected}`")]
    Issuer {
        /// The expected issuer.
        expected: String,
        /// The issuer in the claims.
        observed: String,
    },
    /// `exp` is not `fresh_until`, or not within [`MAX_LIFETIME`] after `iat`.
    #[error("iat and exp do not fit the verdict")]
    Lifetime,
    /// The verdict's `id` and `conclusion` are not the digests of what it says.
    #[error("the verdict's id and conclusion are not the digests of what it says")]
    WrongDigests,
    /// The verdict answers another question.
    #[error("the {what} is `{observed}`, not `{expected}`")]
    Other {
        /// What differs.
        what: What,
        /// What was asked for.
        expected: String,
        /// What the verdict has; empty where it has none.
        observed: String,
    },
    /// A single endpoint that is not the operator's own stands behind it.
    #[error("it rests on one stranger's word (single-rpc); to accept that, ask for proof single-rpc")]
    OneStrangersWord,
    /// The payload is not strict JSON.
    #[error("the payload is not strict JSON: {0}")]
    Payload(JsonError),
    /// Its grade of proof is lower than was asked for.
    #[error("its grade of proof is lower than was asked for")]
    ProofTooWeak,
    /// It comes from the embedded world.
    #[error("it comes from the sandbox, whose verdicts prove nothing")]
    Sandbox,
    /// The verdict is of a lower depth than was asked for.
    #[error("the depth is `identity`, not `schemas`")]
    Shallow,
}
