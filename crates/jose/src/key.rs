//! Ed25519 keys: PKCS#8 in PEM for private keys, JSON Web Keys (RFC 7517, RFC 8037) for public keys.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _};
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use clresolve_core::digest::Digest;
use clresolve_core::json::{JsonLimits, parse_strict_json};

use crate::BASE64URL;

/// The `alg` of keys and signatures that this crate creates.
pub const ALGORITHM: &str = "EdDSA";

/// The registered names of EdDSA with Ed25519: the name of RFC 8037, and its replacement (RFC 9864, section 2.2).
pub const ED25519_ALGORITHMS: [&str; 2] = [ALGORITHM, "Ed25519"];

/// Maximum number of keys in a set: the current signing key, the next one, and previous ones.
pub const MAX_KEYS: usize = 64;

/// Prefixes of a record with a public key: the documented one, and the one that CommandLayer's SDKs also accept.
const RECORD_PREFIXES: [&str; 2] = ["ed25519:", "ed25519="];

const KEY_BYTES: usize = 32;

const SIGNATURE_BYTES: usize = 64;

/// A private key. Its bytes are zeroed on drop, and it is never printed.
pub struct Ed25519SigningKey {
    secret: ed25519_dalek::SigningKey,
    public: Ed25519PublicKey,
}

impl Ed25519SigningKey {
    /// Generates a key from the system's random number generator.
    ///
    /// # Errors
    /// [`SignatureKeyError::NoRandomness`].
    pub fn generate() -> Result<Self, SignatureKeyError> {
        let mut seed = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *seed).map_err(|_| SignatureKeyError::NoRandomness)?;
        Self::from_dalek_key(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// Parses PKCS#8 in PEM, as `openssl genpkey -algorithm ed25519` writes it.
    ///
    /// # Errors
    /// [`SignatureKeyError::NotPkcs8`], which contains nothing of the input.
    pub fn from_pem(pem: &str) -> Result<Self, SignatureKeyError> {
        Self::from_dalek_key(ed25519_dalek::SigningKey::from_pkcs8_pem(pem).map_err(|_| SignatureKeyError::NotPkcs8)?)
    }

    /// The key as PKCS#8 in PEM.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, SignatureKeyError> {
        // Without the public key: OpenSSL before 3.0 reads only the older form, which lacks it.
        let pair = ed25519_dalek::pkcs8::KeypairBytes { secret_key: self.secret.to_bytes(), public_key: None };
        pair.to_pkcs8_pem(LineEnding::LF).map_err(|_| SignatureKeyError::NotPkcs8)
    }

    fn from_dalek_key(secret: ed25519_dalek::SigningKey) -> Result<Self, SignatureKeyError> {
        let public = Ed25519PublicKey::from_verifying_key(secret.verifying_key())?;
        Ok(Self { secret, public })
    }

    /// The corresponding public key.
    pub const fn public_key(&self) -> &Ed25519PublicKey {
        &self.public
    }

    /// The signature of `message`.
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_BYTES] {
        self.secret.sign(message).to_bytes()
    }

    /// Signs `payload` as a compact JWS with this `typ`.
    pub fn sign_compact(&self, typ: &str, payload: &[u8]) -> String {
        let header = json!({"alg": ALGORITHM, "kid": self.public.id, "typ": typ}).to_string();
        let mut jws = BASE64URL.encode(header);
        jws.push('.');
        BASE64URL.encode_string(payload, &mut jws);
        let signature = self.sign(jws.as_bytes());
        jws.push('.');
        BASE64URL.encode_string(signature, &mut jws);
        jws
    }

    /// Signs `payload` as a detached JWS with this `typ` (RFC 7515, appendix F).
    pub fn sign_detached(&self, typ: &str, payload: &[u8]) -> String {
        let whole = self.sign_compact(typ, payload);
        let (header, rest) = whole.split_once('.').expect("three parts");
        let (_, signature) = rest.split_once('.').expect("three parts");
        format!("{header}..{signature}")
    }
}

impl fmt::Debug for Ed25519SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ed25519SigningKey").field(&self.public.id).finish()
    }
}

/// A public key, and its RFC 7638 thumbprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ed25519PublicKey {
    key: VerifyingKey,
    id: String,
}

impl Ed25519PublicKey {
    /// A key from its 32 bytes.
    ///
    /// # Errors
    /// [`SignatureKeyError::Weak`] if the bytes are not the canonical encoding of a curve point, or if the point has
    /// small order. For a point of small order, anyone can make signatures that verify.
    pub fn from_bytes(bytes: &[u8; KEY_BYTES]) -> Result<Self, SignatureKeyError> {
        Self::from_verifying_key(VerifyingKey::from_bytes(bytes).map_err(|_| SignatureKeyError::Weak)?)
    }

    /// Parses the value of the record `cl.sig.pub`: `ed25519:` or `ed25519=`, then the key's 32 bytes in base64 (any
    /// common alphabet) or as 64 hex digits, with or without `0x`. Hex digits may also appear without the prefix. No
    /// text can be read in two ways.
    ///
    /// # Errors
    /// [`SignatureKeyError::NotRecord`], or [`SignatureKeyError::Weak`].
    pub fn from_signer_record(value: &str) -> Result<Self, SignatureKeyError> {
        let encoded = RECORD_PREFIXES.iter().find_map(|prefix| value.strip_prefix(prefix));
        if let Some(bytes) = parse_hex_key(encoded.unwrap_or(value)) {
            return Self::from_bytes(&bytes);
        }
        let decoders = [&STANDARD, &STANDARD_NO_PAD, &BASE64URL];
        let encoded = encoded.ok_or(SignatureKeyError::NotRecord)?;
        let bytes = decoders.into_iter().find_map(|decoder| decoder.decode(encoded).ok());
        let bytes: [u8; KEY_BYTES] =
            bytes.and_then(|bytes| bytes.try_into().ok()).ok_or(SignatureKeyError::NotRecord)?;
        Self::from_bytes(&bytes)
    }

    fn from_verifying_key(key: VerifyingKey) -> Result<Self, SignatureKeyError> {
        let canonical = key.to_edwards().compress();
        if !clresolve_core::mutant!("weak-keys") && (key.is_weak() || canonical.as_bytes() != key.as_bytes()) {
            return Err(SignatureKeyError::Weak);
        }
        let x = BASE64URL.encode(key.as_bytes());
        // RFC 7638: the required members, sorted by name, without white space.
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
        let id = BASE64URL.encode(Digest::compute(canonical.as_bytes()).as_bytes());
        Ok(Self { key, id })
    }

    /// The RFC 7638 thumbprint: 43 characters of base64url.
    pub fn thumbprint(&self) -> &str {
        &self.id
    }

    /// The key's 32 bytes.
    pub fn to_bytes(&self) -> [u8; KEY_BYTES] {
        self.key.to_bytes()
    }

    /// The key as a JSON Web Key.
    pub fn to_jwk(&self) -> Value {
        json!({
            "kty": "OKP", "crv": "Ed25519", "x": BASE64URL.encode(self.key.as_bytes()),
            "kid": self.id, "use": "sig", "alg": ALGORITHM,
        })
    }

    /// Whether this key signed `message`. Stricter than RFC 8032: malleable signatures are refused.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        Signature::from_slice(signature).is_ok_and(|signature| self.key.verify_strict(message, &signature).is_ok())
    }

    /// Parses the member `x` of a JSON Web Key.
    pub fn from_jwk_x(x: &str) -> Result<Self, SignatureKeyError> {
        let bytes = BASE64URL.decode(x).ok().and_then(|bytes| bytes.try_into().ok());
        Self::from_bytes(&bytes.ok_or(SignatureKeyError::NotJwk)?)
    }

    /// Parses a JSON Web Key; `None` for another key type, which a set may also contain (RFC 7517, section 5).
    fn from_jwk(jwk: &Value) -> Result<Option<Self>, SignatureKeyError> {
        let text = |member: &str| jwk.get(member).and_then(Value::as_str);
        if text("kty") != Some("OKP") || text("crv") != Some("Ed25519") {
            return Ok(None);
        }
        if jwk.get("d").is_some() {
            return Err(SignatureKeyError::Private);
        }
        let forbids = |member: &str, allowed: &[&str]| {
            jwk.get(member).is_some_and(|value| !value.as_str().is_some_and(|value| allowed.contains(&value)))
        };
        if forbids("use", &["sig"]) || forbids("alg", &ED25519_ALGORITHMS) {
            return Ok(None);
        }
        let key = Self::from_jwk_x(text("x").unwrap_or_default())?;
        if jwk.get("kid").is_some_and(|kid| kid.as_str() != Some(key.thumbprint())) {
            return Err(SignatureKeyError::OtherId);
        }
        Ok(Some(key))
    }
}

/// The public keys that a verifier trusts, or an issuer publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ed25519KeySet(Vec<Ed25519PublicKey>);

impl Ed25519KeySet {
    /// Parses a JSON Web Key Set (RFC 7517). Keys that are not for Ed25519 signatures are skipped.
    ///
    /// # Errors
    /// The text is not a JSON Web Key Set, it contains no Ed25519 key, or one of its keys is private, is weak, or has a
    /// `kid` other than its thumbprint.
    pub fn from_jwks(bytes: &[u8]) -> Result<Self, SignatureKeyError> {
        let list = raw_jwks_keys(bytes)?;
        let keys: Vec<_> =
            list.iter().filter_map(|jwk| Ed25519PublicKey::from_jwk(jwk).transpose()).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(SignatureKeyError::NoKey) } else { Ok(Self(keys)) }
    }

    /// The keys as a JSON Web Key Set.
    pub fn to_jwks(&self) -> Value {
        json!({ "keys": self.0.iter().map(Ed25519PublicKey::to_jwk).collect::<Vec<_>>() })
    }

    /// The key with this thumbprint.
    pub fn get(&self, id: &str) -> Option<&Ed25519PublicKey> {
        self.0.iter().find(|key| key.id == id)
    }

    /// Adds the keys of `more` that are not in this set yet.
    pub fn extend(&mut self, more: Self) {
        for key in more.0 {
            if self.get(key.thumbprint()).is_none() {
                self.0.push(key);
            }
        }
    }
}

/// The keys of a JSON Web Key Set as unparsed JSON, of any key type.
///
/// # Errors
/// [`SignatureKeyError::NotJwks`].
pub fn raw_jwks_keys(bytes: &[u8]) -> Result<Vec<Value>, SignatureKeyError> {
    if bytes.trim_ascii_start().starts_with(b"-----BEGIN") {
        let detail = "it is PEM; `clresolve signature key public FILE` makes a key set of a key".to_owned();
        return Err(SignatureKeyError::NotJwks { detail });
    }
    let mut set = parse_strict_json(bytes, JsonLimits::CARD)
        .map_err(|error| SignatureKeyError::NotJwks { detail: error.to_string() })?;
    let Some(Value::Array(list)) = set.get_mut("keys").map(Value::take) else {
        return Err(SignatureKeyError::NotJwks { detail: "expected an object with the member keys".to_owned() });
    };
    if list.len() > MAX_KEYS {
        return Err(SignatureKeyError::NotJwks { detail: format!("at most {MAX_KEYS} keys are allowed") });
    }
    Ok(list)
}

impl From<&Ed25519PublicKey> for Ed25519KeySet {
    fn from(key: &Ed25519PublicKey) -> Self {
        Self(vec![key.clone()])
    }
}

/// The bytes of 64 hex digits, with or without `0x`. Base64 cannot be mistaken for them: 64 base64 digits encode 48
/// bytes.
fn parse_hex_key(text: &str) -> Option<[u8; KEY_BYTES]> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16);
    let mut bytes = [0; KEY_BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::try_from(nibble(pair[0])? << 4 | nibble(pair[1])?).ok()?;
    }
    Some(bytes)
}

/// Why a private key, a public key or a set of public keys is refused. No error contains any part of a private key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureKeyError {
    /// The set contains no Ed25519 key for signatures.
    #[error("the set has no Ed25519 key for signatures")]
    NoKey,
    /// The system's random number generator failed.
    #[error("the system has no randomness")]
    NoRandomness,
    /// The text is not a private key that can sign cards.
    #[error("expected a key as PKCS#8 in PEM: Ed25519, P-256 or RSA of 2048 to 4096 bits with the exponent 65537")]
    NotCardKey,
    /// A member of a public key is missing or malformed.
    #[error("a member of a key is missing, or not base64url of the right length")]
    NotJwk,
    /// The text is not a JSON Web Key Set.
    #[error("not a JSON Web Key Set: {detail}")]
    NotJwks {
        /// What is wrong.
        detail: String,
    },
    /// The text does not have the form of a `cl.sig.pub` record.
    #[error("expected ed25519: and 32 bytes in base64")]
    NotRecord,
    /// The text is not a private Ed25519 key in PKCS#8.
    #[error(
        "expected an Ed25519 key as PKCS#8 in PEM, as `clresolve signature key new` or `openssl genpkey -algorithm ed25519` write it"
    )]
    NotPkcs8,
    /// `kid` is not the key's thumbprint.
    #[error("the `kid` of a key is not its RFC 7638 thumbprint")]
    OtherId,
    /// A private key where public keys are expected.
    #[error("the set contains a private key (`d`); publish public keys only, and treat that key as compromised")]
    Private,
    /// The key has small order, or is not the canonical encoding of a point.
    #[error("a key is weak: it is not a point of the curve, has small order, or is not in canonical form")]
    Weak,
}
