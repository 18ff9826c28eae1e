//! Signed artifacts: the common form of offers and receipts (x402 extension offer-receipt, version 0.6). An artifact is
//! a payload with an EIP-712 or JWS signature. The signature identifies the key that signed, not the owner of the key.

use alloy_primitives::{Address, B256};
use base64::Engine as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use clresolve_core::digest::Digest;
use clresolve_core::json::{JsonLimits, parse_strict_json};
use clresolve_core::mutant;
use clresolve_core::reason::Reason;
use clresolve_core::text::excerpt_text;
use clresolve_jose::{BASE64URL, ED25519_ALGORITHMS, Ed25519PublicKey};

use crate::forms;
use crate::typed_data::{SignerRecoveryError, es256k_signers, recover_signer};

/// Maximum length of an artifact's signature, and of the header and payload of a JWS. Those that the SDK writes take
/// one kilobyte.
pub const MAX_ARTIFACT_BYTES: usize = 16 * 1024;

/// Parser limits for the header and payload of a JWS. The payload is flat; a header may contain a key or certificates,
/// two levels deeper.
const LIMITS: JsonLimits =
    JsonLimits { bytes: MAX_ARTIFACT_BYTES, levels: 4, values: 64, name: 1024, paths: MAX_ARTIFACT_BYTES };

/// The only defined version of payloads.
const VERSION: u64 = 1;

/// The JWS algorithm for the key of an Ethereum address (RFC 8812).
const ES256K: &str = "ES256K";

/// Which kind of published key may have made a signature, derived from its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningKeyKind {
    /// The key of an address: EIP-712, or a JWS with ES256K.
    Address,
    /// An Ed25519 key.
    Ed25519,
    /// A kind of key that no name can publish. Such a signature is not checked.
    Unpublishable,
}

/// The signing keys that a name publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedSigningKeys {
    /// The name's addresses for any coin type. Their keys sign with EIP-712, or JWS with ES256K.
    pub addresses: Vec<Address>,
    /// The keys in `cl.sig.pub` of the name that `cl.receipt.signer` refers to. They sign JWS with Ed25519.
    pub ed25519: Vec<Ed25519PublicKey>,
    /// Why the JWS keys are unknown. `None` if all published keys are listed here.
    pub unread: Option<Box<Reason>>,
}

/// A payload and its signature, which may be invalid or by anyone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedArtifact<P> {
    payload: P,
    signature: ArtifactSignature,
}

/// A payload of a signed artifact.
pub trait ArtifactPayload: DeserializeOwned {
    /// The payload's `version`.
    fn version(&self) -> u64;

    /// The hash that an EIP-712 signature covers.
    fn signing_hash(&self) -> B256;
}

/// Who signed an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactSignerMatch {
    /// A key that the name publishes.
    Published,
    /// Another key. A JWS does not identify its signer, so it may also have no valid signature at all.
    Stranger,
    /// Nobody: no key can produce this signature.
    Nobody,
    /// Unknown: a contract wallet, which only the chain can verify; a build without signature checks; an unsupported
    /// algorithm; or a key that could not be read.
    Undecided,
}

/// The artifact does not conform to version 0.6 of the extension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArtifactParseError(String);

impl ArtifactParseError {
    fn new(cause: impl ToString) -> Self {
        Self(excerpt_text(&cause.to_string()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ArtifactSignature {
    /// `0x` and hexadecimal digits.
    Eip712(String),
    Jws(Jws),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Jws {
    algorithm: String,
    /// The encoded header and payload, as they were signed.
    signed: String,
    signature: Vec<u8>,
}

/// The fields around the payload in both formats. `acceptIndex` is not signed, so it is ignored.
#[derive(Deserialize)]
struct ArtifactEnvelope {
    format: String,
    payload: Option<Value>,
    signature: String,
}

impl<P: ArtifactPayload> SignedArtifact<P> {
    /// Parses an artifact. Unknown members of the payload are rejected.
    ///
    /// # Errors
    /// The first rule that the artifact violates.
    pub fn from_value(artifact: &Value) -> Result<Self, ArtifactParseError> {
        if !artifact.is_object() {
            return Err(ArtifactParseError::new("no object"));
        }
        let envelope = ArtifactEnvelope::deserialize(artifact).map_err(ArtifactParseError::new)?;
        if envelope.signature.len() > MAX_ARTIFACT_BYTES {
            return Err(ArtifactParseError::new(format_args!("a signature of more than {MAX_ARTIFACT_BYTES} bytes")));
        }
        let (payload, signature) = match (envelope.format.as_str(), envelope.payload) {
            ("eip712", Some(payload)) => (payload, ArtifactSignature::Eip712(envelope.signature)),
            ("jws", None) => parse_jws(&envelope.signature)?,
            ("eip712", None) => return Err(ArtifactParseError::new("a signature without a payload")),
            ("jws", Some(_)) => return Err(ArtifactParseError::new("a payload in addition to the one in the JWS")),
            _ => return Err(ArtifactParseError::new("a format other than eip712 or jws")),
        };
        let payload: P = forms::deserialize_without_lists(&payload).map_err(ArtifactParseError::new)?;
        if payload.version() != VERSION {
            return Err(ArtifactParseError::new(format_args!("a payload of version {}", payload.version())));
        }
        Ok(Self { payload, signature })
    }

    /// The signed payload.
    pub const fn payload(&self) -> &P {
        &self.payload
    }

    /// The `alg` of a JWS. `None` for an EIP-712 signature.
    pub fn algorithm(&self) -> Option<&str> {
        match &self.signature {
            ArtifactSignature::Eip712(_) => None,
            ArtifactSignature::Jws(jws) => Some(&jws.algorithm),
        }
    }

    /// Which kind of key can have signed it.
    pub fn key_kind(&self) -> SigningKeyKind {
        match self.algorithm() {
            None | Some(ES256K) => SigningKeyKind::Address,
            Some(algorithm) if ED25519_ALGORITHMS.contains(&algorithm) => SigningKeyKind::Ed25519,
            Some(_) => SigningKeyKind::Unpublishable,
        }
    }

    /// Determines who signed it. The key information in a JWS header (`kid`, `jwk` and the like) is ignored.
    pub fn find_signer(&self, keys: &PublishedSigningKeys) -> ArtifactSignerMatch {
        match &self.signature {
            ArtifactSignature::Eip712(signature) => find_address_signer(
                recover_signer(self.payload.signing_hash(), signature).map(|signer| vec![signer]),
                keys,
            ),
            ArtifactSignature::Jws(jws) if jws.is_unsigned() => ArtifactSignerMatch::Nobody,
            ArtifactSignature::Jws(jws) => match self.key_kind() {
                SigningKeyKind::Address => {
                    find_address_signer(es256k_signers(jws.es256k_signing_hash(), &jws.signature), keys)
                }
                SigningKeyKind::Ed25519 => jws.find_ed25519_signer(keys),
                SigningKeyKind::Unpublishable => ArtifactSignerMatch::Undecided,
            },
        }
    }
}

/// Looks for a published key. `signers` are the candidates, one of which signed.
fn find_address_signer(
    signers: Result<Vec<Address>, SignerRecoveryError>,
    keys: &PublishedSigningKeys,
) -> ArtifactSignerMatch {
    match signers {
        Ok(signers) if signers.iter().any(|signer| keys.addresses.contains(signer)) || mutant!("any-address-signs") => {
            ArtifactSignerMatch::Published
        }
        Ok(_) => ArtifactSignerMatch::Stranger,
        Err(SignerRecoveryError::Contract | SignerRecoveryError::NotBuilt) => ArtifactSignerMatch::Undecided,
        Err(SignerRecoveryError::Malformed) => ArtifactSignerMatch::Nobody,
    }
}

impl Jws {
    /// Whether it has no signature.
    fn is_unsigned(&self) -> bool {
        self.algorithm == "none" || self.signature.is_empty()
    }

    /// The hash that an ES256K signature covers.
    fn es256k_signing_hash(&self) -> B256 {
        B256::from(*Digest::compute(self.signed.as_bytes()).as_bytes())
    }

    fn find_ed25519_signer(&self, keys: &PublishedSigningKeys) -> ArtifactSignerMatch {
        let has_signed = |key: &Ed25519PublicKey| key.has_signed(self.signed.as_bytes(), &self.signature);
        match keys.ed25519.iter().any(has_signed) {
            true => ArtifactSignerMatch::Published,
            false if keys.unread.is_some() => ArtifactSignerMatch::Undecided,
            false => ArtifactSignerMatch::Stranger,
        }
    }
}

/// The payload and signature of a JWS in compact serialization.
fn parse_jws(compact: &str) -> Result<(Value, ArtifactSignature), ArtifactParseError> {
    let parts: Vec<&str> = compact.splitn(4, '.').collect();
    let [header, payload, signature] = parts[..] else {
        return Err(ArtifactParseError::new("no JWS in compact form: three parts separated by dots"));
    };
    let decoded =
        |part: &str| BASE64URL.decode(part).map_err(|_| ArtifactParseError::new("a JWS that is not base64url"));
    let object = |part: &str| parse_strict_json(&decoded(part)?, LIMITS).map_err(ArtifactParseError::new);
    let members = object(header)?;
    if members.get("crit").is_some() {
        return Err(ArtifactParseError::new("a JWS whose header has critical members"));
    }
    let text = |member: &str| members.get(member).and_then(Value::as_str);
    let (Some(algorithm), Some(_)) = (text("alg"), text("kid")) else {
        return Err(ArtifactParseError::new("a JWS whose header has no alg or no kid"));
    };
    let jws =
        Jws { algorithm: algorithm.to_owned(), signed: format!("{header}.{payload}"), signature: decoded(signature)? };
    Ok((object(payload)?, ArtifactSignature::Jws(jws)))
}
