//! Signed artifacts: the common form of offers and receipts (x402 extension offer-receipt, version 0.6). An artifact is
//! a payload with an EIP-712 or JWS signature. The signature identifies the key that signed, not the owner of the key.

use alloy_primitives::{Address, B256};
use base64::Engine as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use clresolve_core::digest::Digest;
use clresolve_core::json::{Limits, parse};
use clresolve_core::mutant;
use clresolve_core::reason::Reason;
use clresolve_core::text::excerpt;
use clresolve_jose::{BASE64URL, ED25519_ALGORITHMS, PublicKey};

use crate::forms;
use crate::typed_data::{NoSigner, es256k_signers, signer};

/// Maximum length of an artifact's signature, and of the header and payload of a JWS. Those that the SDK writes take
/// one kilobyte.
pub const MAX_ARTIFACT_BYTES: usize = 16 * 1024;

/// Parser limits for the header and payload of a JWS. The payload is flat; a header may contain a key or certificates,
/// two levels deeper.
const LIMITS: Limits =
    Limits { bytes: MAX_ARTIFACT_BYTES, levels: 4, values: 64, name: 1024, paths: MAX_ARTIFACT_BYTES };

/// The only defined version of payloads.
const VERSION: u64 = 1;

/// The JWS algorithm for the key of an Ethereum address (RFC 8812).
const ES256K: &str = "ES256K";

/// Which kind of published key may have made a signature, derived from its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// The key of an address: EIP-712, or a JWS with ES256K.
    Address,
    /// An Ed25519 key.
    Ed25519,
    /// A kind of key that no name can publish. Such a signature is not checked.
    Unpublishable,
}

/// The signing keys that a name publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignerKeys {
    /// The name's addresses for any coin type. Their keys sign with EIP-712, or JWS with ES256K.
    pub addresses: Vec<Address>,
    /// The keys in `cl.sig.pub` of the name that `cl.receipt.signer` refers to. They sign JWS with Ed25519.
    pub ed25519: Vec<PublicKey>,
    /// Why the JWS keys are unknown. `None` if all published keys are listed here.
    pub unread: Option<Box<Reason>>,
}

/// A payload and its signature, which may be invalid or by anyone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact<P> {
    payload: P,
    signature: Signature,
}

/// A payload of a signed artifact.
pub trait Payload: DeserializeOwned {
    /// The payload's `version`.
    fn version(&self) -> u64;

    /// The hash that an EIP-712 signature covers.
    fn signing_hash(&self) -> B256;
}

/// Who signed an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedBy {
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
pub struct Malformed(String);

impl Malformed {
    fn new(cause: impl ToString) -> Self {
        Self(excerpt(&cause.to_string()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Signature {
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
struct Envelope {
    format: String,
    payload: Option<Value>,
    signature: String,
}

impl<P: Payload> Artifact<P> {
    /// Parses an artifact. Unknown members of the payload are rejected.
    ///
    /// # Errors
    /// The first rule that the artifact violates.
    pub fn read(artifact: &Value) -> Result<Self, Malformed> {
        if !artifact.is_object() {
            return Err(Malformed::new("no object"));
        }
        let envelope = Envelope::deserialize(artifact).map_err(Malformed::new)?;
        if envelope.signature.len() > MAX_ARTIFACT_BYTES {
            return Err(Malformed::new(format_args!("a signature of more than {MAX_ARTIFACT_BYTES} bytes")));
        }
        let (payload, signature) = match (envelope.format.as_str(), envelope.payload) {
            ("eip712", Some(payload)) => (payload, Signature::Eip712(envelope.signature)),
            ("jws", None) => jws(&envelope.signature)?,
            ("eip712", None) => return Err(Malformed::new("a signature without a payload")),
            ("jws", Some(_)) => return Err(Malformed::new("a payload in addition to the one in the JWS")),
            _ => return Err(Malformed::new("a format other than eip712 or jws")),
        };
        let payload: P = forms::record(&payload).map_err(Malformed::new)?;
        if payload.version() != VERSION {
            return Err(Malformed::new(format_args!("a payload of version {}", payload.version())));
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
            Signature::Eip712(_) => None,
            Signature::Jws(jws) => Some(&jws.algorithm),
        }
    }

    /// Which kind of key can have signed it.
    pub fn key_kind(&self) -> KeyKind {
        match self.algorithm() {
            None | Some(ES256K) => KeyKind::Address,
            Some(algorithm) if ED25519_ALGORITHMS.contains(&algorithm) => KeyKind::Ed25519,
            Some(_) => KeyKind::Unpublishable,
        }
    }

    /// Determines who signed it. The key information in a JWS header (`kid`, `jwk` and the like) is ignored.
    pub fn signed_by(&self, keys: &SignerKeys) -> SignedBy {
        match &self.signature {
            Signature::Eip712(signature) => {
                by_address(signer(self.payload.signing_hash(), signature).map(|signer| vec![signer]), keys)
            }
            Signature::Jws(jws) if jws.is_nobodys() => SignedBy::Nobody,
            Signature::Jws(jws) => match self.key_kind() {
                KeyKind::Address => by_address(es256k_signers(jws.hash(), &jws.signature), keys),
                KeyKind::Ed25519 => jws.signed_by_ed25519(keys),
                KeyKind::Unpublishable => SignedBy::Undecided,
            },
        }
    }
}

/// Looks for a published key. `signers` are the candidates, one of which signed.
fn by_address(signers: Result<Vec<Address>, NoSigner>, keys: &SignerKeys) -> SignedBy {
    match signers {
        Ok(signers) if signers.iter().any(|signer| keys.addresses.contains(signer)) || mutant!("any-address-signs") => {
            SignedBy::Published
        }
        Ok(_) => SignedBy::Stranger,
        Err(NoSigner::Contract | NoSigner::NotBuilt) => SignedBy::Undecided,
        Err(NoSigner::Malformed) => SignedBy::Nobody,
    }
}

impl Jws {
    /// Whether it has no signature.
    fn is_nobodys(&self) -> bool {
        self.algorithm == "none" || self.signature.is_empty()
    }

    /// The hash that an ES256K signature covers.
    fn hash(&self) -> B256 {
        B256::from(*Digest::of(self.signed.as_bytes()).as_bytes())
    }

    fn signed_by_ed25519(&self, keys: &SignerKeys) -> SignedBy {
        let has_signed = |key: &PublicKey| key.has_signed(self.signed.as_bytes(), &self.signature);
        match keys.ed25519.iter().any(has_signed) {
            true => SignedBy::Published,
            false if keys.unread.is_some() => SignedBy::Undecided,
            false => SignedBy::Stranger,
        }
    }
}

/// The payload and signature of a JWS in compact serialization.
fn jws(compact: &str) -> Result<(Value, Signature), Malformed> {
    let parts: Vec<&str> = compact.splitn(4, '.').collect();
    let [header, payload, signature] = parts[..] else {
        return Err(Malformed::new("no JWS in compact form: three parts separated by dots"));
    };
    let decoded = |part: &str| BASE64URL.decode(part).map_err(|_| Malformed::new("a JWS that is not base64url"));
    let object = |part: &str| parse(&decoded(part)?, LIMITS).map_err(Malformed::new);
    let members = object(header)?;
    if members.get("crit").is_some() {
        return Err(Malformed::new("a JWS whose header has critical members"));
    }
    let text = |member: &str| members.get(member).and_then(Value::as_str);
    let (Some(algorithm), Some(_)) = (text("alg"), text("kid")) else {
        return Err(Malformed::new("a JWS whose header has no alg or no kid"));
    };
    let jws =
        Jws { algorithm: algorithm.to_owned(), signed: format!("{header}.{payload}"), signature: decoded(signature)? };
    Ok((object(payload)?, Signature::Jws(jws)))
}
