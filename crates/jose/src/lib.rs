//! Ed25519 keys, JSON Web Key Sets and compact JWS, for the signatures of verdicts, cards and receipts. No I/O: the
//! caller reads key files.

mod jws;
mod key;

pub use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64URL;
pub use jws::{JwsError, JwsProfile, verify_compact_jws, verify_detached_jws};
pub use key::{
    ALGORITHM, ED25519_ALGORITHMS, Ed25519KeySet, Ed25519PublicKey, Ed25519SigningKey, MAX_KEYS, SignatureKeyError,
    raw_jwks_keys,
};
