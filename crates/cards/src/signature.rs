//! Signatures of A2A cards (0.3 and 1.0).
//!
//! `signatures` of a card contains JSON Web Signatures (RFC 7515) without their payload. The payload is the card itself
//! without that member, in RFC 8785 form ([`canonical_payload`]). [`sign_card`] adds one, [`verify_card_signatures`]
//! checks all of them.
//!
//! Keys come only from the [`CardTrustRoots`] that the verifier names: `jku`, `jwk`, `x5u` and `x5c` of a header are
//! never used. A card is verified if at least one signature is valid under a named root. Signers add signatures
//! independently of one another, with keys that not every verifier knows. If another signature is valid, an invalid one
//! is only a warning.
//!
//! This module is pure. The program fetches the keys of roots (`Resolver::trust_root`).

use serde::Serialize;
use serde_json::{Value, json};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;

use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect, ResolutionStep, sort_reasons};

mod canonical;
mod error;
mod header;
mod key;
pub(crate) mod message;
mod root;
mod splice;

pub use canonical::{DefaultFieldOmissionRule, MAX_SIGNATURES, UnsafeIntegerError, canonical_payload};
pub use error::CardSignError;
pub use header::{MAX_HEADER_BYTES, MAX_SIGNATURE_BYTES};
pub use key::{CardSignatureAlgorithm, CardSigner, CardSigningKey};
pub use root::{CardTrustRoot, CardTrustRootError, CardTrustRoots, DidWeb, MAX_ROOTS};
pub use splice::sign_text;

use canonical::SIGNATURES;
use header::{ParsedCardSignature, UnverifiedSignatureHeader};
use key::{CardTrustRootKey, KeyAlgorithmMatch};

/// Maximum number of keys tried for one signature. Several keys are possible only if a root or the signature names
/// none.
const MAX_TRIED_KEYS: usize = 8;

/// Maximum number of verification attempts for the signatures of one card. An attempt is a key with a canonical form.
/// An honest card needs a few.
const MAX_ATTEMPTS: usize = 64;

/// Maximum number of bytes that the attempts hash: enough for a card of 100 KiB with several signatures.
const MAX_HASHED_BYTES: usize = 2 * 1024 * 1024;

/// Returns the card with one more signature, otherwise unchanged.
///
/// # Errors
/// [`CardSignError`].
pub fn sign_card(card: &Value, key: &dyn CardSigner) -> Result<Value, CardSignError> {
    let entry = create_signature(card, key)?;
    let mut card = card.clone();
    let members = card.as_object_mut().ok_or(CardSignError::NotObject)?;
    match members.entry(SIGNATURES).or_insert_with(|| json!([])) {
        Value::Array(list) => list.push(entry),
        _ => return Err(CardSignError::Signatures),
    }
    Ok(card)
}

/// Signs the card. The result is an entry of `signatures`, and does not cover the other entries.
///
/// # Errors
/// [`CardSignError`].
pub fn create_signature(card: &Value, key: &dyn CardSigner) -> Result<Value, CardSignError> {
    let members = card.as_object().ok_or(CardSignError::NotObject)?;
    match members.get(SIGNATURES) {
        Some(Value::Array(list)) if list.len() >= MAX_SIGNATURES => return Err(CardSignError::TooMany),
        None | Some(Value::Array(_)) => {}
        Some(_) => return Err(CardSignError::Signatures),
    }
    let mut header = json!({"alg": key.algorithm(), "kid": key.key_id(), "typ": "JOSE"});
    if let Some(url) = key.key_set_url() {
        header["jku"] = url.into();
    }
    let protected = BASE64URL.encode(header.to_string());
    let signature = key.sign_bytes(&signing_input(&protected, &BASE64URL.encode(canonical_payload(card)?)))?;
    Ok(json!({"protected": protected, "signature": BASE64URL.encode(signature)}))
}

/// Whether the card already has a signature whose header names this key. That signature may cover an earlier state of
/// the card.
pub fn has_signature_by_key(card: &Value, key: &dyn CardSigner) -> bool {
    let kid = |entry: &Value| {
        let header = BASE64URL.decode(entry["protected"].as_str()?).ok()?;
        serde_json::from_slice::<Value>(&header).ok()?["kid"].as_str().map(str::to_owned)
    };
    let entries = card[SIGNATURES].as_array().map_or(&[][..], Vec::as_slice);
    entries.iter().take(MAX_SIGNATURES).any(|entry| kid(entry).as_deref() == Some(key.key_id()))
}

/// The result of verifying a card's signatures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardSignatureVerification {
    /// The state of the card.
    pub state: SignedCardState,
    /// Each signature, in the order of the card.
    pub signatures: Vec<CheckedCardSignature>,
    /// The defects of signatures and roots, sorted. They are warnings if the card is verified.
    pub reasons: Vec<Reason>,
    /// The labels of the roots.
    pub roots: Vec<String>,
}

/// The state of a card according to its signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignedCardState {
    /// At least one signature is valid under a key of a named root.
    Verified,
    /// No signature is valid under such a key.
    Refused,
    /// No signature is valid so far, but a root that may contain the key of one could not be fetched.
    Undecided,
}

/// One signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckedCardSignature {
    /// Its index in `signatures`.
    pub index: usize,
    /// `alg` of its header, if it is a string. Untrusted text.
    pub alg: Option<String>,
    /// `kid` of its header, if it is a string. Untrusted text.
    pub kid: Option<String>,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: CardSignatureOutcome,
}

/// The outcome of one signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CardSignatureOutcome {
    /// The signature is valid.
    Verified {
        /// The root that vouches for the key.
        root: String,
        /// RFC 7638 thumbprint of the key.
        key: String,
        /// The canonical form that was signed.
        form: DefaultFieldOmissionRule,
    },
    /// The signature is rejected, for this reason.
    Refused(ReasonCode),
}

/// Verifies the signatures of a card with the keys of these roots.
///
/// The card must come from strict JSON ([`clresolve_core::json::parse_strict_json`]). Otherwise parsers of the signed
/// text may differ in which of two duplicate members they use.
pub fn verify_card_signatures(card: &Value, roots: &CardTrustRoots) -> CardSignatureVerification {
    let labels = || roots.iter().map(|root| root.label().to_owned()).collect();
    let refused = |reason| CardSignatureVerification {
        state: SignedCardState::Refused,
        signatures: Vec::new(),
        reasons: vec![reason],
        roots: labels(),
    };
    let unread = |reason: Reason| refused(reason.at_place(format!("/{SIGNATURES}")));
    let list = match card.get(SIGNATURES) {
        Some(Value::Array(list)) if list.len() > MAX_SIGNATURES => {
            let found = format!("{} signatures", list.len());
            let limit = format!("at most {MAX_SIGNATURES}");
            return unread(Reason::new(ReasonCode::SignatureMalformed).expected(limit).observed(found));
        }
        Some(Value::Array(list)) if !list.is_empty() => list,
        None | Some(Value::Array(_)) => return unread(Reason::new(ReasonCode::SignatureMissing)),
        Some(_) => return unread(Reason::new(ReasonCode::SignatureMalformed).observed("not a list")),
    };
    let payloads = match CardSignaturePayloads::from_card(card) {
        Ok(payloads) => payloads,
        Err(UnsafeIntegerError { place }) => {
            return refused(Reason::new(ReasonCode::SignaturePayloadRefused).at_place(place));
        }
    };
    let mut reasons: Vec<Reason> = roots.iter().filter_map(CardTrustRoot::failure_reason).cloned().collect();
    let mut signatures = Vec::new();
    let mut budget = CardSignatureBudget { attempts: MAX_ATTEMPTS, bytes: MAX_HASHED_BYTES };
    for (index, entry) in list.iter().enumerate() {
        let mut stated = UnverifiedSignatureHeader::default();
        let outcome = header::parse_entry(entry, &mut stated)
            .and_then(|entry| verify_signature(&entry, &payloads, roots, &mut budget));
        let outcome = outcome.unwrap_or_else(|reason| {
            let code = reason.code;
            reasons.push(reason.at_place(format!("/{SIGNATURES}/{index}")));
            CardSignatureOutcome::Refused(code)
        });
        signatures.push(CheckedCardSignature { index, alg: stated.algorithm, kid: stated.kid, outcome });
    }
    let state = signed_card_state(&signatures, roots);
    for reason in &mut reasons {
        reason.effect = reason_effect_in_card_state(reason, state);
    }
    sort_reasons(&mut reasons);
    CardSignatureVerification { state, signatures, reasons, roots: labels() }
}

/// The verification budget that all signatures of one card share.
struct CardSignatureBudget {
    attempts: usize,
    bytes: usize,
}

impl CardSignatureBudget {
    /// Charges one attempt over `input`.
    fn charge_attempt(&mut self, input: &[u8]) -> Result<(), Box<Reason>> {
        let cost = if clresolve_core::mutant!("signatures-without-end") { 0 } else { 1 };
        let left = self.attempts.checked_sub(cost).zip(self.bytes.checked_sub(input.len()));
        let (attempts, bytes) = left.ok_or_else(|| {
            let observed = "more signatures, keys and bytes than one card may have together";
            Box::new(Reason::new(ReasonCode::CardTooComplex).with_step(ResolutionStep::Signature).observed(observed))
        })?;
        *self = Self { attempts, bytes };
        Ok(())
    }
}

/// The payloads that a signature may cover, in base64url.
struct CardSignaturePayloads {
    specification: String,
    /// `None` if it is the same.
    without_empty: Option<String>,
}

impl CardSignaturePayloads {
    fn from_card(card: &Value) -> Result<Self, UnsafeIntegerError> {
        let [specification, without_empty] = canonical::canonical_payloads(card)?;
        let second = (without_empty != specification).then(|| BASE64URL.encode(without_empty));
        Ok(Self { specification: BASE64URL.encode(specification), without_empty: second })
    }

    /// The forms to try, each with the signing input for a signature with this header.
    fn signing_inputs(&self, protected: &str) -> Vec<(DefaultFieldOmissionRule, Vec<u8>)> {
        let second = self.without_empty.iter().map(|payload| (DefaultFieldOmissionRule::WithoutEmpty, payload));
        let forms = std::iter::once((DefaultFieldOmissionRule::Specification, &self.specification)).chain(second);
        forms.map(|(form, payload)| (form, signing_input(protected, payload))).collect()
    }
}

fn signing_input(protected: &str, payload: &str) -> Vec<u8> {
    [protected, payload].join(".").into_bytes()
}

/// Verifies a signature with the keys of all roots.
fn verify_signature(
    entry: &ParsedCardSignature<'_>,
    payloads: &CardSignaturePayloads,
    roots: &CardTrustRoots,
    budget: &mut CardSignatureBudget,
) -> Result<CardSignatureOutcome, Box<Reason>> {
    let kid = entry.kid.as_deref();
    let named: Vec<(&CardTrustRoot, &CardTrustRootKey)> = roots
        .iter()
        .flat_map(|root| root.keys().iter().map(move |key| (root, key)))
        .filter(|(_, key)| key.matches_key_id(kid))
        .collect();
    let observed = format!("kid: {}", kid.unwrap_or("none"));
    if named.is_empty() {
        return Err(Box::new(Reason::new(ReasonCode::SignatureKeyUnknown).observed(observed)));
    }
    let mut fitting = named
        .iter()
        .filter_map(|(root, key)| match key.match_algorithm(entry.algorithm) {
            KeyAlgorithmMatch::Usable(key) => Some((root, key)),
            KeyAlgorithmMatch::Weak | KeyAlgorithmMatch::Unfit => None,
        })
        .peekable();
    if fitting.peek().is_none() {
        let is_weak =
            named.iter().any(|(_, key)| matches!(key.match_algorithm(entry.algorithm), KeyAlgorithmMatch::Weak));
        let code = if is_weak { ReasonCode::SignatureKeyWeak } else { ReasonCode::SignatureKeyUnfit };
        let expected = format!("a key for {}", entry.algorithm);
        return Err(Box::new(Reason::new(code).expected(expected).observed(observed)));
    }
    let inputs = payloads.signing_inputs(entry.protected);
    for (root, key) in fitting.take(MAX_TRIED_KEYS) {
        for (form, input) in &inputs {
            budget.charge_attempt(input)?;
            if key.verifies_signature(input, &entry.signature) {
                let (root, key) = (root.label().to_owned(), key.thumbprint().to_owned());
                return Ok(CardSignatureOutcome::Verified { root, key, form: *form });
            }
        }
    }
    Err(Box::new(Reason::new(ReasonCode::SignatureInvalid).observed(observed)))
}

fn signed_card_state(signatures: &[CheckedCardSignature], roots: &CardTrustRoots) -> SignedCardState {
    let any = |is: fn(&CardSignatureOutcome) -> bool| signatures.iter().any(|checked| is(&checked.outcome));
    let unasked = |root: &CardTrustRoot| {
        root.failure_reason().is_some_and(|reason| reason.code == ReasonCode::SignatureRootUnavailable)
    };
    if any(|outcome| matches!(outcome, CardSignatureOutcome::Verified { .. })) {
        return if clresolve_core::mutant!("one-broken-signature-refuses") {
            SignedCardState::Refused
        } else {
            SignedCardState::Verified
        };
    }
    let is_open = any(|outcome| *outcome == CardSignatureOutcome::Refused(ReasonCode::SignatureKeyUnknown));
    if is_open && roots.iter().any(unasked) { SignedCardState::Undecided } else { SignedCardState::Refused }
}

/// The effect of a reason in a card of this state. A failure does not outweigh a valid signature, or one that may yet
/// be verified.
fn reason_effect_in_card_state(reason: &Reason, state: SignedCardState) -> ReasonEffect {
    let is_open = [ReasonCode::SignatureKeyUnknown, ReasonCode::SignatureRootUnavailable].contains(&reason.code);
    match state {
        SignedCardState::Verified => ReasonEffect::Warn,
        SignedCardState::Undecided if is_open => ReasonEffect::Unknown,
        SignedCardState::Undecided => ReasonEffect::Warn,
        SignedCardState::Refused => reason.effect,
    }
}
