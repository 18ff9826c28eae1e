//! Trust roots: the key sources that a verifier trusts, and how their keys are parsed.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::key::CardTrustRootKey;
use clresolve_core::json::{JsonError, JsonLimits, parse_strict_json};
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_jose::{MAX_KEYS, SignatureKeyError, raw_jwks_keys};

/// Maximum number of roots of a verifier. Each costs a request, and people list them individually.
pub const MAX_ROOTS: usize = 8;

/// Maximum length of a DID in bytes, so that its URL stays below the limit on URLs.
const MAX_DID_BYTES: usize = 1024;

/// The roots that a verifier trusts.
#[derive(Clone, Debug, Default)]
pub struct CardTrustRoots(Vec<CardTrustRoot>);

impl CardTrustRoots {
    /// Creates the set of roots. Their keys are tried in this order.
    ///
    /// # Errors
    /// [`CardTrustRootError::TooMany`].
    pub fn new(roots: Vec<CardTrustRoot>) -> Result<Self, CardTrustRootError> {
        if roots.len() > MAX_ROOTS { Err(CardTrustRootError::TooMany) } else { Ok(Self(roots)) }
    }

    /// The roots.
    pub fn iter(&self) -> impl Iterator<Item = &CardTrustRoot> {
        self.0.iter()
    }
}

impl From<CardTrustRoot> for CardTrustRoots {
    fn from(root: CardTrustRoot) -> Self {
        Self(vec![root])
    }
}

/// A root: its name in reports, and its keys or the reason why it has none.
#[derive(Clone, Debug)]
pub struct CardTrustRoot {
    label: String,
    keys: Result<Vec<CardTrustRootKey>, Reason>,
}

impl CardTrustRoot {
    /// Parses a JSON Web Key Set (RFC 7517). Keys that cannot sign cards are skipped, and so are malformed ones
    /// (section 5).
    ///
    /// # Errors
    /// The bytes are not a key set, contain a private key, or contain malformed keys and no usable one.
    pub fn from_jwks(label: impl Into<String>, bytes: &[u8]) -> Result<Self, CardTrustRootError> {
        let keys =
            drop_malformed_keys(raw_jwks_keys(bytes)?.iter().map(|jwk| CardTrustRootKey::from_jwk(jwk, Vec::new())))?;
        Ok(Self { label: label.into(), keys: Ok(keys) })
    }

    /// Parses the keys of a DID document that have a `publicKeyJwk`: those of `assertionMethod`, or all if the document
    /// has no such member. The identifiers of a key are its id, the fragment of its id, and its `kid`.
    ///
    /// # Errors
    /// The bytes are not the document of `did`, contain a private key, or contain malformed keys and no usable one.
    pub fn from_did_document(did: &DidWeb, bytes: &[u8]) -> Result<Self, CardTrustRootError> {
        let document = parse_strict_json(bytes, JsonLimits::CARD).map_err(CardTrustRootError::Document)?;
        if document.get("id").and_then(Value::as_str) != Some(did.as_str())
            && !clresolve_core::mutant!("document-of-another-did")
        {
            return Err(CardTrustRootError::OtherDid);
        }
        let list = |member: &str| match document.get(member) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) if list.len() <= MAX_KEYS => Ok(list.iter().collect()),
            Some(_) => Err(CardTrustRootError::Methods),
        };
        let assertions: Vec<&Value> = list("assertionMethod")?;
        let is_for_assertions = |id: &str| {
            document.get("assertionMethod").is_none()
                || assertions
                    .iter()
                    .filter_map(|method| method.as_str())
                    .any(|named| did.absolute_verification_method_id(named) == id)
        };
        let mut keys = Vec::new();
        for method in list("verificationMethod")? {
            let id = did.absolute_verification_method_id(method.get("id").and_then(Value::as_str).unwrap_or_default());
            if is_for_assertions(&id) {
                keys.extend(method_key(method, &id));
            }
        }
        for method in assertions.iter().filter(|method| method.is_object()) {
            let id = did.absolute_verification_method_id(method.get("id").and_then(Value::as_str).unwrap_or_default());
            keys.extend(method_key(method, &id));
        }
        Ok(Self { label: did.to_string(), keys: Ok(drop_malformed_keys(keys.into_iter())?) })
    }

    /// Parses the key of a `cl.sig.pub` record: `ed25519:` and 32 bytes in base64, with or without padding, or in
    /// base64url. Its identifier is the value of `cl.sig.kid`. Without that record, any identifier is accepted.
    ///
    /// # Errors
    /// The record has another form, or its key is weak.
    pub fn from_cl_sig_records(
        name: &EnsName,
        public_key: &str,
        key_id: Option<&str>,
    ) -> Result<Self, CardTrustRootError> {
        let key = clresolve_jose::Ed25519PublicKey::from_signer_record(public_key)?;
        let names = key_id.map(str::to_owned).into_iter().collect();
        Ok(Self { label: name.as_str().to_owned(), keys: Ok(vec![CardTrustRootKey::from_ed25519_key(key, names)]) })
    }

    /// A root that provided no keys: [`ReasonCode::SignatureRootUnavailable`] or [`ReasonCode::SignatureRootUnusable`].
    pub fn from_failure_reason(label: impl Into<String>, reason: Reason) -> Self {
        let label = label.into();
        Self { keys: Err(reason.at_place(&label)), label }
    }

    /// The root, or a root without keys that has the error as its reason.
    pub fn from_result_or_failure(root: Result<Self, CardTrustRootError>, label: impl Into<String>) -> Self {
        root.unwrap_or_else(|error| {
            Self::from_failure_reason(label, Reason::new(ReasonCode::SignatureRootUnusable).observed(error.to_string()))
        })
    }

    /// The root's name in reports. Untrusted text if it comes from a web page.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Why the root has no keys. `None` if it has keys.
    pub fn failure_reason(&self) -> Option<&Reason> {
        self.keys.as_ref().err()
    }

    pub(super) fn keys(&self) -> &[CardTrustRootKey] {
        self.keys.as_deref().unwrap_or_default()
    }
}

/// The key of a verification method, if it is a JSON Web Key.
fn method_key(method: &Value, id: &str) -> Option<Result<CardTrustRootKey, SignatureKeyError>> {
    let jwk = method.get("publicKeyJwk")?;
    let fragment = id.rsplit_once('#').map(|(_, fragment)| fragment.to_owned());
    let names = [id.to_owned()].into_iter().chain(fragment).collect();
    Some(CardTrustRootKey::from_jwk(jwk, names))
}

/// The keys without malformed ones, which RFC 7517 (section 5) ignores: a defect of one key does not affect the others.
/// If no other key is usable, the defect is the error.
fn drop_malformed_keys(
    keys: impl Iterator<Item = Result<CardTrustRootKey, SignatureKeyError>>,
) -> Result<Vec<CardTrustRootKey>, SignatureKeyError> {
    let (mut good, mut is_one_malformed) = (Vec::new(), false);
    for key in keys {
        match key {
            Ok(key) => good.push(key),
            Err(SignatureKeyError::NotJwk) => is_one_malformed = true,
            Err(error) => return Err(error),
        }
    }
    if is_one_malformed && !good.iter().any(CardTrustRootKey::is_usable) {
        Err(SignatureKeyError::NotJwk)
    } else {
        Ok(good)
    }
}

/// A DID of the method `web`: a host, with an optional port and an optional path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DidWeb {
    did: String,
    url: String,
}

impl DidWeb {
    /// The DID as it was given.
    pub fn as_str(&self) -> &str {
        &self.did
    }

    /// The URL of its document (did:web, 3.2).
    pub fn document_url(&self) -> &str {
        &self.url
    }

    /// The absolute id of a verification method. The document may contain a relative one.
    fn absolute_verification_method_id(&self, id: &str) -> String {
        if id.starts_with('#') { format!("{}{id}", self.did) } else { id.to_owned() }
    }
}

impl fmt::Display for DidWeb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.did)
    }
}

impl FromStr for DidWeb {
    type Err = CardTrustRootError;

    fn from_str(did: &str) -> Result<Self, CardTrustRootError> {
        let rest =
            did.strip_prefix("did:web:").filter(|_| did.len() <= MAX_DID_BYTES).ok_or(CardTrustRootError::NoDid)?;
        let mut segments = rest.split(':');
        let host = segments.next().unwrap_or_default();
        // In the host part, only the colon before the port may be percent-encoded.
        let (host, port) = match host.split_once("%3A").or_else(|| host.split_once("%3a")) {
            Some((host, port)) => (host, Some(port)),
            None => (host, None),
        };
        let is_plain = |segment: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !segment.is_empty() && segment.bytes().all(plain) && segment.bytes().any(|byte| byte != b'.')
        };
        let path: Vec<&str> = segments.collect();
        let is_port = |port: &str| port.parse::<u16>().is_ok();
        if !is_plain(host) || !port.is_none_or(is_port) || !path.iter().all(|segment| is_plain(segment)) {
            return Err(CardTrustRootError::NoDid);
        }
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        let path = if path.is_empty() { ".well-known".to_owned() } else { path.join("/") };
        Ok(Self { did: did.to_owned(), url: format!("https://{host}{port}/{path}/did.json") })
    }
}

/// Why a root is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CardTrustRootError {
    /// The DID document is not strict JSON.
    #[error("the DID document: {0}")]
    Document(JsonError),
    /// Its keys are unusable.
    #[error(transparent)]
    Keys(#[from] SignatureKeyError),
    /// `verificationMethod` or `assertionMethod` is not a list, or is too long.
    #[error("the DID document has no list of at most {MAX_KEYS} methods")]
    Methods,
    /// Not a DID of the method `web`.
    #[error("expected a DID such as did:web:example.com or did:web:example.com:agents:a")]
    NoDid,
    /// The document's `id` is not the DID.
    #[error("the document belongs to another DID")]
    OtherDid,
    /// More than [`MAX_ROOTS`].
    #[error("at most {MAX_ROOTS} roots can be named")]
    TooMany,
}
