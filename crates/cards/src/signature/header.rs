//! Parses the entries of `signatures` and their protected headers (RFC 7515, 4), and rejects invalid ones.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use serde_json::{Map, Value};

use super::key::CardSignatureAlgorithm;
use clresolve_core::json::{JsonLimits, parse_strict_json};
use clresolve_core::reason::{Reason, ReasonCode};

/// Maximum length of a protected header in decoded bytes. This crate's headers have about a hundred. A certificate
/// chain in `x5c`, which is ignored, takes a few thousand.
pub const MAX_HEADER_BYTES: usize = 8 * 1024;

/// Maximum length of a signature in decoded bytes: twice that of the largest accepted RSA key, so that a signature by a
/// larger key is rejected because of the key.
pub const MAX_SIGNATURE_BYTES: usize = 1024;

/// The accepted values of `typ`, in lower case and without `application/`: those of the A2A text, of RFC 7515 and of
/// proposals for cards, and the default of a common library. A missing `typ` is accepted too.
const TYPES: [&str; 4] = ["jose", "jose+json", "agent-card+jws", "jwt"];

/// An entry with a valid form and header.
pub(super) struct ParsedCardSignature<'c> {
    /// The protected header as written in the card. The signature covers it.
    pub(super) protected: &'c str,
    pub(super) signature: Vec<u8>,
    pub(super) algorithm: CardSignatureAlgorithm,
    pub(super) kid: Option<String>,
}

/// Values from the header of an entry, for reports. Untrusted text, also present for rejected entries.
#[derive(Default)]
pub(super) struct UnverifiedSignatureHeader {
    pub(super) algorithm: Option<String>,
    pub(super) kid: Option<String>,
}

/// Parses an entry, and stores in `stated` the values that could be parsed.
///
/// # Errors
/// The reason for the first rule that the entry violates.
pub(super) fn parse_entry<'c>(
    entry: &'c Value,
    stated: &mut UnverifiedSignatureHeader,
) -> Result<ParsedCardSignature<'c>, Box<Reason>> {
    let malformed = |what: &str| Box::new(Reason::new(ReasonCode::SignatureMalformed).observed(what));
    let members = entry.as_object().ok_or_else(|| malformed("not an object"))?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let protected = text("protected").ok_or_else(|| malformed("protected is missing or not a string"))?;
    let signature = text("signature").ok_or_else(|| malformed("signature is missing or not a string"))?;
    let header = parse_protected_header(protected)?;
    let of_header = |name: &str| header.get(name).and_then(Value::as_str).map(str::to_owned);
    *stated = UnverifiedSignatureHeader { algorithm: of_header("alg"), kid: of_header("kid") };

    check_unprotected_header(members, &header)?;
    let Some(name) = &stated.algorithm else { return Err(malformed("alg is missing or not a string")) };
    let algorithm = CardSignatureAlgorithm::from_name(name).ok_or_else(|| {
        let reason = Reason::new(ReasonCode::SignatureAlgorithmRefused).expected("EdDSA, ES256 or RS256");
        Box::new(reason.observed(name.as_str()))
    })?;
    check_protected_header(&header)?;
    if header.contains_key("kid") && stated.kid.is_none() {
        return Err(malformed("kid is not a string"));
    }
    let signature = decode_base64url(signature, MAX_SIGNATURE_BYTES)
        .ok_or_else(|| malformed("signature is not base64url, or longer than any signature"))?;
    Ok(ParsedCardSignature { protected, signature, algorithm, kid: stated.kid.clone() })
}

fn parse_protected_header(protected: &str) -> Result<Map<String, Value>, Box<Reason>> {
    let malformed = |what: String| Box::new(Reason::new(ReasonCode::SignatureMalformed).observed(what));
    let bytes = decode_base64url(protected, MAX_HEADER_BYTES)
        .ok_or_else(|| malformed(format!("protected is not base64url, or longer than {MAX_HEADER_BYTES} bytes")))?;
    let limits = JsonLimits { bytes: MAX_HEADER_BYTES, ..JsonLimits::CARD };
    match parse_strict_json(&bytes, limits) {
        Ok(Value::Object(header)) => Ok(header),
        Ok(_) => Err(malformed("the protected header is not an object".to_owned())),
        Err(error) => Err(malformed(format!("the protected header: {error}"))),
    }
}

/// Decodes base64url without padding. `None` if the result exceeds `most` bytes.
fn decode_base64url(text: &str, most: usize) -> Option<Vec<u8>> {
    let longest = most.div_ceil(3) * 4;
    if text.len() > longest {
        return None;
    }
    BASE64URL.decode(text).ok().filter(|bytes| bytes.len() <= most)
}

/// Checks the unprotected header. It is not signed, so its values are not used. It must be an object, must not repeat a
/// member of the protected header, and must not have `crit` (RFC 7515, 4.1.11).
fn check_unprotected_header(entry: &Map<String, Value>, protected: &Map<String, Value>) -> Result<(), Box<Reason>> {
    let Some(header) = entry.get("header") else { return Ok(()) };
    let Some(header) = header.as_object() else {
        return Err(Box::new(Reason::new(ReasonCode::SignatureMalformed).observed("header is not an object")));
    };
    if let Some(name) = header.keys().find(|name| protected.contains_key(*name)) {
        let both = format!("{name} is in both headers");
        return Err(Box::new(Reason::new(ReasonCode::SignatureMalformed).observed(both)));
    }
    refuse_critical_members(header)
}

fn check_protected_header(header: &Map<String, Value>) -> Result<(), Box<Reason>> {
    refuse_critical_members(header)?;
    let Some(typ) = header.get("typ") else { return Ok(()) };
    let text = typ.as_str().unwrap_or_default().to_ascii_lowercase();
    if TYPES.contains(&text.strip_prefix("application/").unwrap_or(&text)) {
        return Ok(());
    }
    let observed = typ.as_str().map_or_else(|| "typ is not a string".to_owned(), |typ| format!("typ: {typ}"));
    Err(Box::new(Reason::new(ReasonCode::SignatureHeaderRefused).expected("typ: JOSE").observed(observed)))
}

/// Rejects members that change how a signature is verified. `b64` (RFC 7797) is rejected with any value: a card's
/// payload is always encoded, and the member has no effect without `crit`.
fn refuse_critical_members(header: &Map<String, Value>) -> Result<(), Box<Reason>> {
    match ["crit", "b64"]
        .into_iter()
        .find(|name| header.contains_key(*name) && !clresolve_core::mutant!("critical-members-are-ignored"))
    {
        Some(name) => Err(Box::new(Reason::new(ReasonCode::SignatureHeaderRefused).observed(name))),
        None => Ok(()),
    }
}
