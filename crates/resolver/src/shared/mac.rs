//! The MAC of shared data: HMAC-SHA-256 with a key that every daemon has and the server does not.

use std::fmt;
use std::path::Path;

use alloy_primitives::hex;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::sign::{KeyFileError, read_private_key_text};

/// Length of a MAC, in bytes.
pub const MAC_BYTES: usize = 32;

/// Minimum length of a key, in bytes: that of the hash, so that guessing the key is no easier than guessing a MAC.
const MIN_KEY_BYTES: usize = 32;

/// Maximum length of a key, in bytes: the block size of the hash. HMAC hashes longer keys first, which gains nothing.
const MAX_KEY_BYTES: usize = 64;

/// The current key, which creates and verifies MACs, and the previous one, which only verifies.
pub struct MacKeys {
    new: MacKey,
    old: Option<MacKey>,
}

type MacKey = Zeroizing<Vec<u8>>;

/// Why the key file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MacKeyError {
    /// The file cannot be read, or users other than its owner can read it.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The content is not a key.
    #[error(
        "expected one line with a key of {} to {} hex digits, such as `openssl rand -hex 32` prints, and at most one more \
         with the key before it",
        2 * MIN_KEY_BYTES,
        2 * MAX_KEY_BYTES
    )]
    Form,
}

impl MacKeys {
    /// Reads the key file, which only its owner may be able to read.
    ///
    /// # Errors
    /// [`MacKeyError`].
    pub fn from_key_file(path: &Path) -> Result<Self, MacKeyError> {
        Self::parse(&read_private_key_text(path)?)
    }

    /// Parses a key file: the current key on the first line, and optionally the previous one on the second.
    ///
    /// # Errors
    /// [`MacKeyError::Form`].
    pub fn parse(text: &str) -> Result<Self, MacKeyError> {
        let mut lines = text.lines();
        let new = parse_mac_key(lines.next().unwrap_or_default())?;
        let old = lines.next().filter(|line| !line.trim().is_empty()).map(parse_mac_key).transpose()?;
        if lines.all(|line| line.trim().is_empty()) { Ok(Self { new, old }) } else { Err(MacKeyError::Form) }
    }

    /// The MAC over `fields` with the current key. `what` separates domains: a MAC for one purpose is invalid for any
    /// other.
    pub fn compute_mac(&self, what: &str, fields: &[&[u8]]) -> [u8; MAC_BYTES] {
        mac_over_fields(&self.new, what, fields).finalize().into_bytes().into()
    }

    /// Whether `tag` is a MAC over `fields` with one of the keys. Compares in constant time.
    pub fn verify_mac(&self, what: &str, fields: &[&[u8]], tag: &[u8]) -> bool {
        let keys = [Some(&self.new), self.old.as_ref()].into_iter().flatten();
        keys.into_iter().any(|key| mac_over_fields(key, what, fields).verify_slice(tag).is_ok())
    }
}

impl fmt::Debug for MacKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKeys(…)")
    }
}

fn parse_mac_key(line: &str) -> Result<MacKey, MacKeyError> {
    let bytes = hex::decode(line.trim()).map(Zeroizing::new).map_err(|_| MacKeyError::Form)?;
    if (MIN_KEY_BYTES..=MAX_KEY_BYTES).contains(&bytes.len()) { Ok(bytes) } else { Err(MacKeyError::Form) }
}

/// Each field is prefixed with its length, so that no two lists of fields have the same encoding.
fn mac_over_fields(key: &[u8], what: &str, fields: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    for field in [what.as_bytes()].iter().chain(fields) {
        mac.update(&(field.len() as u64).to_be_bytes());
        mac.update(field);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lines: &[&str]) -> MacKeys {
        MacKeys::parse(&lines.join("\n")).expect("good keys")
    }

    #[test]
    fn the_old_key_still_verifies_and_the_new_one_signs() {
        let [first, second, third] = ["11", "22", "33"].map(|byte| byte.repeat(32));
        let (before, between, after) = (keys(&[&first]), keys(&[&second, &first, ""]), keys(&[&third, &second]));
        let (by_first, by_second) = (before.compute_mac("a", &[b"x"]), between.compute_mac("a", &[b"x"]));
        assert!(between.verify_mac("a", &[b"x"], &by_first) && between.verify_mac("a", &[b"x"], &by_second));
        assert!(after.verify_mac("a", &[b"x"], &by_second));
        assert!(!after.verify_mac("a", &[b"x"], &by_first) && !before.verify_mac("a", &[b"x"], &by_second));
    }

    #[test]
    fn a_mac_is_one_of_its_kind_and_of_these_fields() {
        let keys = keys(&[&"11".repeat(32)]);
        let tag = keys.compute_mac("a", &[b"xy", b"z"]);
        assert!(keys.verify_mac("a", &[b"xy", b"z"], &tag));
        for (what, fields) in [("b", [b"xy".as_slice(), b"z"]), ("a", [b"x", b"yz"]), ("a", [b"xy", b"Z"])] {
            assert!(!keys.verify_mac(what, &fields, &tag));
        }
        assert!(!keys.verify_mac("a", &[b"xy", b"z"], &tag[..31]) && !keys.verify_mac("a", &[b"xy", b"z"], &[]));
    }

    #[test]
    fn files_without_a_key_of_good_length_are_refused() {
        let good = "ab".repeat(32);
        for bad in [
            String::new(),
            "ab".repeat(31),
            "ab".repeat(65),
            "xy".repeat(32),
            format!("{good}\n{}", "ab".repeat(8)),
            format!("{good}\n{good}\n{good}"),
        ] {
            assert_eq!(MacKeys::parse(&bad).err(), Some(MacKeyError::Form), "{bad}");
        }
        assert!(MacKeys::parse(&format!("{good}\n")).is_ok());
    }
}
