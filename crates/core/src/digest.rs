//! SHA-256 digests in the text form that records, manifests and verdicts use.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn compute(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Checks that `bytes` have this digest.
    ///
    /// # Errors
    /// [`DigestMismatchError`] with the digest of `bytes`.
    pub fn verify_bytes(self, bytes: &[u8]) -> Result<(), DigestMismatchError> {
        let observed = Self::compute(bytes);
        if observed == self { Ok(()) } else { Err(DigestMismatchError { expected: self, observed }) }
    }

    /// The digest as 64 lower-case hex digits.
    pub fn to_hex(self) -> String {
        alloy_primitives::hex::encode(self.0)
    }

    /// The 32 bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Computes a digest incrementally.
#[derive(Clone, Debug, Default)]
pub struct Digester(Sha256);

impl Digester {
    /// Appends `bytes` to the input.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of the whole input.
    pub fn finalize(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestParseError;

    /// Parses 64 hex digits in any case, with or without the prefix `sha256:`.
    fn from_str(text: &str) -> Result<Self, DigestParseError> {
        let hex = text.strip_prefix("sha256:").unwrap_or(text).as_bytes();
        if hex.len() != 64 {
            return Err(DigestParseError);
        }
        let nibble =
            |digit: u8| (digit as char).to_digit(16).and_then(|n| u8::try_from(n).ok()).ok_or(DigestParseError);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The text is not a SHA-256 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not 64 hex digits, with or without the prefix sha256:")]
pub struct DigestParseError;

/// The bytes do not have the expected digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the digest is {observed}, not {expected}")]
pub struct DigestMismatchError {
    /// The expected digest.
    pub expected: Digest,
    /// The digest of the bytes.
    pub observed: Digest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_is_64_hex_digits_with_an_optional_prefix() {
        let digest = Digest::compute(b"");
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!((digest.to_hex(), digest.to_string()), (hex.to_owned(), format!("sha256:{hex}")));
        assert_eq!(hex.parse(), Ok(digest));
        assert_eq!(format!("sha256:{}", hex.to_uppercase()).parse(), Ok(digest));
        for bad in [&hex[1..], &format!("sha512:{hex}"), &format!("{hex}0"), "", &"zz".repeat(32), &"é".repeat(32)] {
            assert_eq!(bad.parse::<Digest>(), Err(DigestParseError), "{bad}");
        }
    }
}
