//! Compact JWS (RFC 7515) with Ed25519 (RFC 8037), restricted to one form.
//!
//! The protected header has exactly three members: `alg` (`EdDSA`), `kid` (the key's RFC 7638 thumbprint) and `typ`
//! (RFC 8725, section 3.11). Because `typ` is checked, a signature for one purpose is never accepted for another.

use base64::Engine as _;
use clresolve_core::json::{JsonError, JsonLimits, parse_strict_json};
use serde_json::Value;

use crate::BASE64URL;
use crate::key::{ALGORITHM, Ed25519KeySet};

/// Maximum length of a protected header, in decoded bytes. Headers made here have about a hundred.
const MAX_HEADER_BYTES: usize = 1024;

/// The purpose of a JWS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JwsProfile {
    /// The value of `typ` in the protected header.
    pub typ: &'static str,
    /// Maximum length of a JWS of this kind, in bytes.
    pub max_bytes: usize,
}

/// Verifies header and signature of a compact JWS. Returns the payload and the thumbprint of the key.
pub fn verify_compact_jws(jws: &str, keys: &Ed25519KeySet, kind: &JwsProfile) -> Result<(Vec<u8>, String), JwsError> {
    if jws.len() > kind.max_bytes {
        return Err(JwsError::TooLong { most: kind.max_bytes });
    }
    let (signed, signature) = jws.rsplit_once('.').ok_or(JwsError::NotCompact)?;
    let (header, payload) = signed.split_once('.').ok_or(JwsError::NotCompact)?;
    if payload.contains('.') {
        return Err(JwsError::NotCompact);
    }
    let key_id = parse_header_key_id(&decode_base64url(header)?, kind.typ)?;
    let key = keys.get(&key_id).ok_or_else(|| JwsError::KeyUnknown { kid: key_id.clone() })?;
    if !key.has_signed(signed.as_bytes(), &decode_base64url(signature)?) && !clresolve_core::mutant!("any-signature") {
        return Err(JwsError::Signature);
    }
    Ok((decode_base64url(payload)?, key_id))
}

/// Verifies a detached JWS (RFC 7515, appendix F) over `payload`. Returns the thumbprint of the key.
pub fn verify_detached_jws(
    jws: &str,
    payload: &[u8],
    keys: &Ed25519KeySet,
    kind: &JwsProfile,
) -> Result<String, JwsError> {
    if jws.len() > kind.max_bytes {
        return Err(JwsError::TooLong { most: kind.max_bytes });
    }
    let (header, signature) = jws.split_once("..").ok_or(JwsError::NotDetached)?;
    let whole = format!("{header}.{}.{signature}", BASE64URL.encode(payload));
    let kind = JwsProfile { max_bytes: whole.len(), ..*kind };
    verify_compact_jws(&whole, keys, &kind).map(|(_, key_id)| key_id)
}

fn decode_base64url(part: &str) -> Result<Vec<u8>, JwsError> {
    BASE64URL.decode(part).map_err(|_| JwsError::NotBase64Url)
}

/// The `kid` of a protected header. A header with any other member, such as `jku`, `jwk`, `x5u` or `crit`, is refused.
fn parse_header_key_id(header: &[u8], typ: &str) -> Result<String, JwsError> {
    let limits = JsonLimits { bytes: MAX_HEADER_BYTES, ..JsonLimits::CARD };
    let header = parse_strict_json(header, limits).map_err(JwsError::Header)?;
    let text = |member: &str| header.get(member).and_then(Value::as_str).unwrap_or_default();
    if text("alg") != ALGORITHM && !clresolve_core::mutant!("any-algorithm") {
        return Err(JwsError::Algorithm { observed: text("alg").to_owned() });
    }
    if text("typ") != typ {
        return Err(JwsError::Type { expected: typ.to_owned(), observed: text("typ").to_owned() });
    }
    let members = header.as_object().into_iter().flatten();
    if let Some((member, _)) = members.into_iter().find(|(member, _)| !["alg", "typ", "kid"].contains(&member.as_str()))
    {
        return Err(JwsError::HeaderMember { member: member.clone() });
    }
    Ok(text("kid").to_owned())
}

/// Why a JWS is refused. The message may contain foreign text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwsError {
    /// `alg` is not [`ALGORITHM`]; `none` is never accepted.
    #[error("alg is `{observed}`, not {ALGORITHM}")]
    Algorithm {
        /// The observed value; empty if it is not a string.
        observed: String,
    },
    /// The protected header is not strict JSON.
    #[error("the header is not strict JSON: {0}")]
    Header(JsonError),
    /// The protected header has a member other than `alg`, `kid` and `typ`.
    #[error("the header has a member that is not accepted: `{member}`")]
    HeaderMember {
        /// Name of the member.
        member: String,
    },
    /// No trusted key has the thumbprint in `kid`.
    #[error("no trusted key has the id `{kid}`; fetch the issuer's keys anew if they may have changed")]
    KeyUnknown {
        /// The value of `kid`; empty if the header has no such member.
        kid: String,
    },
    /// A part is not base64url without padding.
    #[error("not base64url")]
    NotBase64Url,
    /// The text does not have three parts separated by dots.
    #[error("not a JWS in compact form: three parts separated by dots")]
    NotCompact,
    /// The text does not have two parts separated by two dots.
    #[error("not a detached JWS: header and signature with two dots between them")]
    NotDetached,
    /// The signature is not valid.
    #[error("the signature is not valid")]
    Signature,
    /// The JWS exceeds the limit of its kind.
    #[error("longer than {most} bytes")]
    TooLong {
        /// The limit in bytes.
        most: usize,
    },
    /// `typ` is not the value required by the kind.
    #[error("typ is `{observed}`, not {expected}")]
    Type {
        /// The expected value.
        expected: String,
        /// The observed value; empty if it is not a string.
        observed: String,
    },
}
