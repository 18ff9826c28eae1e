//! Keys of card signatures: public keys of three types with their identifiers, and private keys.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, ParsedPublicKey,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
use ed25519_dalek::pkcs8::spki::der::pem;
use serde::Serialize;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::error::CardSignError;
use clresolve_core::digest::Digest;
use clresolve_jose::{ED25519_ALGORITHMS, SignatureKeyError};

const P256_BYTES: usize = 32;

/// First byte of a point in uncompressed form (SEC 1, 2.3.3).
const UNCOMPRESSED: u8 = 4;

/// Accepted sizes of an RSA modulus in bits: those that issuers use. Smaller moduli can be factored. A modulus of 8192
/// bits takes ten times the work of one of 4096 bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;

/// The accepted RSA public exponent, 65537. Every issuer uses it, and FIPS 186-5 (A.1.1) permits no smaller one.
/// Smaller exponents allow forgery if a padding check is careless. Longer exponents double the work.
const RSA_EXPONENT: [u8; 3] = [1, 0, 1];

/// The accepted algorithms. `none` and algorithms with a shared secret are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum CardSignatureAlgorithm {
    /// Ed25519 (RFC 8037).
    #[serde(rename = "EdDSA")]
    EdDsa,
    /// ECDSA with P-256 and SHA-256 (RFC 7518, 3.4).
    #[serde(rename = "ES256")]
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518, 3.3).
    #[serde(rename = "RS256")]
    Rs256,
}

impl CardSignatureAlgorithm {
    /// Every algorithm.
    pub const ALL: [Self; 3] = [Self::EdDsa, Self::Es256, Self::Rs256];

    /// The value of the header's `alg`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EdDsa => "EdDSA",
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
        }
    }

    /// The algorithm that `alg` names. The spelling must match exactly. Ed25519 has two names (RFC 9864, 2.2).
    pub fn from_name(name: &str) -> Option<Self> {
        if ED25519_ALGORITHMS.contains(&name) {
            return Some(Self::EdDsa);
        }
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }
}

/// A private key that signs cards.
pub trait CardSigner {
    /// The header's `alg`.
    fn algorithm(&self) -> CardSignatureAlgorithm;

    /// The header's `kid`.
    fn key_id(&self) -> &str;

    /// The header's `jku`, if any.
    fn key_set_url(&self) -> Option<&str> {
        None
    }

    /// Signs `message`.
    ///
    /// # Errors
    /// [`CardSignError::Library`].
    fn sign_bytes(&self, message: &[u8]) -> Result<Vec<u8>, CardSignError>;
}

impl fmt::Display for CardSignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A public key of a trust root, and the identifiers by which a signature may refer to it.
#[derive(Clone)]
pub(super) struct CardTrustRootKey {
    /// Accepted values of `kid`. If empty, the root does not name the key, and any value is accepted.
    names: Vec<String>,
    material: AssessedPublicKey,
}

#[derive(Clone)]
enum AssessedPublicKey {
    Usable {
        algorithm: CardSignatureAlgorithm,
        verifier: Box<CardVerificationKey>,
        thumbprint: String,
    },
    Weak(CardSignatureAlgorithm),
    /// A key of another type, or for another use.
    Other,
}

#[derive(Clone)]
enum CardVerificationKey {
    Ed25519(clresolve_jose::Ed25519PublicKey),
    AwsLc(ParsedPublicKey),
}

/// Whether a key matches a signature's algorithm.
pub(super) enum KeyAlgorithmMatch<'k> {
    /// The key matches and is usable.
    Usable(&'k CardTrustRootKey),
    /// The key matches, but is weak.
    Weak,
    /// The key is of another type.
    Unfit,
}

impl CardTrustRootKey {
    /// An Ed25519 key with these identifiers.
    pub(super) fn from_ed25519_key(key: clresolve_jose::Ed25519PublicKey, names: Vec<String>) -> Self {
        let thumbprint = key.thumbprint().to_owned();
        let verifier = Box::new(CardVerificationKey::Ed25519(key));
        Self {
            names,
            material: AssessedPublicKey::Usable { algorithm: CardSignatureAlgorithm::EdDsa, verifier, thumbprint },
        }
    }

    /// Parses a JSON Web Key. Its identifiers are its `kid` and those in `further`. A weak key, or one of another type
    /// or use, is not an error, so that a signature that refers to it is rejected for the right reason.
    ///
    /// # Errors
    /// The key is a private key, or a member is missing or not base64url.
    pub(super) fn from_jwk(jwk: &Value, further: Vec<String>) -> Result<Self, SignatureKeyError> {
        let text = |member: &str| jwk.get(member).and_then(Value::as_str);
        let mut names = further;
        names.extend(text("kid").map(str::to_owned));
        let algorithm = match (text("kty"), text("crv")) {
            (Some("OKP"), Some("Ed25519")) => CardSignatureAlgorithm::EdDsa,
            (Some("EC"), Some("P-256")) => CardSignatureAlgorithm::Es256,
            (Some("RSA"), _) => CardSignatureAlgorithm::Rs256,
            _ => return Ok(Self { names, material: AssessedPublicKey::Other }),
        };
        if jwk.get("d").is_some() {
            return Err(SignatureKeyError::Private);
        }
        if !jwk_permits_algorithm(jwk, algorithm) {
            return Ok(Self { names, material: AssessedPublicKey::Other });
        }
        let material = match algorithm {
            CardSignatureAlgorithm::EdDsa => assess_ed25519_key(text("x").unwrap_or_default())?,
            CardSignatureAlgorithm::Es256 => {
                assess_p256_key(&decode_jwk_member(jwk, "x")?, &decode_jwk_member(jwk, "y")?)?
            }
            CardSignatureAlgorithm::Rs256 => {
                assess_rsa_key(&decode_jwk_member(jwk, "n")?, &decode_jwk_member(jwk, "e")?)
            }
        };
        Ok(Self { names, material })
    }

    /// Whether a signature with this `kid` may have been made by this key.
    pub(super) fn matches_key_id(&self, kid: Option<&str>) -> bool {
        let Some(kid) = kid else { return true };
        let is_thumbprint = matches!(&self.material, AssessedPublicKey::Usable { thumbprint, .. } if thumbprint == kid);
        self.names.is_empty() || is_thumbprint || self.names.iter().any(|name| name == kid)
    }

    /// Whether the key can verify signatures.
    pub(super) const fn is_usable(&self) -> bool {
        matches!(self.material, AssessedPublicKey::Usable { .. })
    }

    pub(super) fn match_algorithm(&self, wanted: CardSignatureAlgorithm) -> KeyAlgorithmMatch<'_> {
        match &self.material {
            AssessedPublicKey::Usable { algorithm, .. } if *algorithm == wanted => KeyAlgorithmMatch::Usable(self),
            AssessedPublicKey::Weak(algorithm) if *algorithm == wanted => KeyAlgorithmMatch::Weak,
            _ => KeyAlgorithmMatch::Unfit,
        }
    }

    /// RFC 7638 thumbprint. Empty for an unusable key.
    pub(super) fn thumbprint(&self) -> &str {
        match &self.material {
            AssessedPublicKey::Usable { thumbprint, .. } => thumbprint,
            AssessedPublicKey::Weak(_) | AssessedPublicKey::Other => "",
        }
    }

    pub(super) fn verifies_signature(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            AssessedPublicKey::Usable { verifier, .. } => match &**verifier {
                CardVerificationKey::Ed25519(_) if clresolve_core::mutant!("card-signature-unchecked") => true,
                CardVerificationKey::Ed25519(key) => key.has_signed(message, signature),
                CardVerificationKey::AwsLc(key) => key.verify_sig(message, signature).is_ok(),
            },
            AssessedPublicKey::Weak(_) | AssessedPublicKey::Other => false,
        }
    }
}

impl fmt::Debug for CardTrustRootKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustRootKey").field("names", &self.names).field("thumbprint", &self.thumbprint()).finish()
    }
}

/// Whether `use`, `key_ops` and `alg` of a key, if present, allow it to verify signatures of this algorithm.
fn jwk_permits_algorithm(jwk: &Value, algorithm: CardSignatureAlgorithm) -> bool {
    let is = |member: &str, allowed: &[&str]| {
        jwk.get(member).is_none_or(|value| value.as_str().is_some_and(|value| allowed.contains(&value)))
    };
    let names: &[&str] = match algorithm {
        // RFC 9864 defines a separate name for the same algorithm.
        CardSignatureAlgorithm::EdDsa => &ED25519_ALGORITHMS,
        CardSignatureAlgorithm::Es256 => &["ES256"],
        CardSignatureAlgorithm::Rs256 => &["RS256"],
    };
    let verifies = |operations: &Value| {
        operations.as_array().is_some_and(|list| list.iter().any(|operation| operation == "verify"))
    };
    is("use", &["sig"]) && is("alg", names) && jwk.get("key_ops").is_none_or(verifies)
}

fn decode_jwk_member(jwk: &Value, member: &str) -> Result<Vec<u8>, SignatureKeyError> {
    let text = jwk.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.and_then(|text| BASE64URL.decode(text).ok()).ok_or(SignatureKeyError::NotJwk)
}

fn assess_ed25519_key(x: &str) -> Result<AssessedPublicKey, SignatureKeyError> {
    match clresolve_jose::Ed25519PublicKey::from_jwk_x(x) {
        Ok(key) => {
            let thumbprint = key.thumbprint().to_owned();
            let verifier = Box::new(CardVerificationKey::Ed25519(key));
            Ok(AssessedPublicKey::Usable { algorithm: CardSignatureAlgorithm::EdDsa, verifier, thumbprint })
        }
        Err(SignatureKeyError::Weak) => Ok(AssessedPublicKey::Weak(CardSignatureAlgorithm::EdDsa)),
        Err(error) => Err(error),
    }
}

fn assess_p256_key(x: &[u8], y: &[u8]) -> Result<AssessedPublicKey, SignatureKeyError> {
    if x.len() != P256_BYTES || y.len() != P256_BYTES {
        return Err(SignatureKeyError::NotJwk);
    }
    let point = [&[UNCOMPRESSED], x, y].concat();
    let Ok(key) = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &point) else {
        return Ok(AssessedPublicKey::Weak(CardSignatureAlgorithm::Es256));
    };
    let thumbprint = p256_thumbprint(x, y);
    Ok(AssessedPublicKey::Usable {
        algorithm: CardSignatureAlgorithm::Es256,
        verifier: Box::new(CardVerificationKey::AwsLc(key)),
        thumbprint,
    })
}

fn assess_rsa_key(n: &[u8], e: &[u8]) -> AssessedPublicKey {
    let (n, e) = (without_leading_zeros(n), without_leading_zeros(e));
    let bits = n.first().map_or(0, |first| n.len() * 8 - first.leading_zeros() as usize);
    let is_usual = RSA_BITS.contains(&bits) && e == RSA_EXPONENT;
    if !is_usual && !clresolve_core::mutant!("rsa-keys-of-any-size") {
        return AssessedPublicKey::Weak(CardSignatureAlgorithm::Rs256);
    }
    match (rsa::PublicKeyComponents { n, e }).to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256) {
        Ok(key) => AssessedPublicKey::Usable {
            algorithm: CardSignatureAlgorithm::Rs256,
            verifier: Box::new(CardVerificationKey::AwsLc(key)),
            thumbprint: rsa_thumbprint(n, e),
        },
        Err(_) => AssessedPublicKey::Weak(CardSignatureAlgorithm::Rs256),
    }
}

/// Removes leading zero bytes. Some programs prepend one to a number whose first bit is set.
fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..]
}

/// The RFC 7638 thumbprint: the digest of the required members, sorted by name, without whitespace.
fn p256_thumbprint(x: &[u8], y: &[u8]) -> String {
    let (x, y) = (BASE64URL.encode(x), BASE64URL.encode(y));
    sha256_base64url(&format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#))
}

fn rsa_thumbprint(n: &[u8], e: &[u8]) -> String {
    let (n, e) = (BASE64URL.encode(n), BASE64URL.encode(e));
    sha256_base64url(&format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#))
}

fn sha256_base64url(canonical: &str) -> String {
    BASE64URL.encode(Digest::compute(canonical.as_bytes()).as_bytes())
}

/// A private key that signs cards. It is never printed.
pub struct CardSigningKey {
    secret: CardSecretKey,
    kid: String,
    jku: Option<String>,
}

enum CardSecretKey {
    Ed25519(Box<clresolve_jose::Ed25519SigningKey>),
    P256(Box<EcdsaKeyPair>),
    Rsa(Box<rsa::KeyPair>),
}

impl CardSigningKey {
    /// Parses PKCS#8 in PEM: Ed25519, P-256, or RSA of 2048 to 4096 bits. The key's `kid` is its RFC 7638 thumbprint.
    ///
    /// # Errors
    /// [`SignatureKeyError::NotCardKey`] for anything else. The error contains no part of the input.
    pub fn from_pem(text: &str) -> Result<Self, SignatureKeyError> {
        if let Ok(key) = clresolve_jose::Ed25519SigningKey::from_pem(text) {
            return Ok(Self::from(key));
        }
        let (label, der) = pem::decode_vec(text.as_bytes()).map_err(|_| SignatureKeyError::NotCardKey)?;
        let der = Zeroizing::new(der);
        if label != "PRIVATE KEY" {
            return Err(SignatureKeyError::NotCardKey);
        }
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der) {
            let (x, y) = public_point_coordinates(&pair);
            let kid = p256_thumbprint(x, y);
            return Ok(Self { secret: CardSecretKey::P256(Box::new(pair)), kid, jku: None });
        }
        let pair = rsa::KeyPair::from_pkcs8(&der).map_err(|_| SignatureKeyError::NotCardKey)?;
        let public = pair.public_key();
        let (n, e) = (public.modulus(), public.exponent());
        match assess_rsa_key(n.big_endian_without_leading_zero(), e.big_endian_without_leading_zero()) {
            AssessedPublicKey::Usable { thumbprint: kid, .. } => {
                Ok(Self { secret: CardSecretKey::Rsa(Box::new(pair)), kid, jku: None })
            }
            AssessedPublicKey::Weak(_) | AssessedPublicKey::Other => Err(SignatureKeyError::NotCardKey),
        }
    }

    /// The public part as a JSON Web Key.
    pub fn public_jwk(&self) -> Value {
        let encode = |bytes: &[u8]| BASE64URL.encode(bytes);
        match &self.secret {
            CardSecretKey::Ed25519(key) => key.public_key().to_jwk(),
            CardSecretKey::P256(pair) => {
                let (x, y) = public_point_coordinates(pair);
                json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y), "kid": self.kid, "use": "sig",
                    "alg": CardSignatureAlgorithm::Es256})
            }
            CardSecretKey::Rsa(pair) => {
                let (n, e) = (pair.public_key().modulus(), pair.public_key().exponent());
                let (n, e) = (n.big_endian_without_leading_zero(), e.big_endian_without_leading_zero());
                json!({"kty": "RSA", "n": encode(n), "e": encode(e), "kid": self.kid, "use": "sig",
                    "alg": CardSignatureAlgorithm::Rs256})
            }
        }
    }

    /// The same key with another `kid`, as listed in the verifier's root.
    #[must_use]
    pub fn with_key_id(mut self, kid: impl Into<String>) -> Self {
        self.kid = kid.into();
        self
    }

    /// Adds the URL of the key set to the header, for verifiers that use it. clresolve never does.
    #[must_use]
    pub fn with_key_set_url(mut self, jku: impl Into<String>) -> Self {
        self.jku = Some(jku.into());
        self
    }
}

/// The coordinates of the public point, which the library returns in uncompressed form.
fn public_point_coordinates(pair: &EcdsaKeyPair) -> (&[u8], &[u8]) {
    pair.public_key().as_ref()[1..].split_at(P256_BYTES)
}

impl From<clresolve_jose::Ed25519SigningKey> for CardSigningKey {
    fn from(key: clresolve_jose::Ed25519SigningKey) -> Self {
        let kid = key.public_key().thumbprint().to_owned();
        Self { secret: CardSecretKey::Ed25519(Box::new(key)), kid, jku: None }
    }
}

impl fmt::Debug for CardSigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CardSigningKey")
            .field("algorithm", &self.algorithm())
            .field("kid", &self.kid)
            .finish_non_exhaustive()
    }
}

impl CardSigner for CardSigningKey {
    fn algorithm(&self) -> CardSignatureAlgorithm {
        match self.secret {
            CardSecretKey::Ed25519(_) => CardSignatureAlgorithm::EdDsa,
            CardSecretKey::P256(_) => CardSignatureAlgorithm::Es256,
            CardSecretKey::Rsa(_) => CardSignatureAlgorithm::Rs256,
        }
    }

    fn key_id(&self) -> &str {
        &self.kid
    }

    fn key_set_url(&self) -> Option<&str> {
        self.jku.as_deref()
    }

    fn sign_bytes(&self, message: &[u8]) -> Result<Vec<u8>, CardSignError> {
        let failed = |_| CardSignError::Library;
        match &self.secret {
            CardSecretKey::Ed25519(key) => Ok(key.sign(message).to_vec()),
            CardSecretKey::P256(pair) => {
                Ok(pair.sign(&SystemRandom::new(), message).map_err(failed)?.as_ref().to_vec())
            }
            CardSecretKey::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

impl CardSigner for clresolve_jose::Ed25519SigningKey {
    fn algorithm(&self) -> CardSignatureAlgorithm {
        CardSignatureAlgorithm::EdDsa
    }

    fn key_id(&self) -> &str {
        self.public_key().thumbprint()
    }

    fn sign_bytes(&self, message: &[u8]) -> Result<Vec<u8>, CardSignError> {
        Ok(self.sign(message).to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ed25519_has_two_names_and_no_other_spelling() {
        for name in ["EdDSA", "Ed25519"] {
            assert_eq!(CardSignatureAlgorithm::from_name(name), Some(CardSignatureAlgorithm::EdDsa), "{name}");
        }
        for name in ["ed25519", "EDDSA", "Ed448", "none", "HS256"] {
            assert_eq!(CardSignatureAlgorithm::from_name(name), None, "{name}");
        }
    }
}
