//! The MAC under which a fleet shares: HMAC-SHA-256 with a key that every daemon of it has, and the server has not.

use std::fmt;
use std::path::Path;

use alloy_primitives::hex;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::sign::{KeyFileError, private_text};

/// Bytes of a MAC.
pub const MAC_BYTES: usize = 32;

/// Fewest bytes of a key: as many as the hash has, so that guessing the key is no easier than guessing a MAC.
const MIN_KEY_BYTES: usize = 32;

/// Most bytes of a key: the block of the hash. A longer one would be hashed first, and gain nothing.
const MAX_KEY_BYTES: usize = 64;

/// The key that makes MACs and verifies them, and the one before it, which only verifies.
pub struct MacKeys {
    new: Key,
    old: Option<Key>,
}

type Key = Zeroizing<Vec<u8>>;

/// Why the key file is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MacKeyError {
    /// The file cannot be read, or others can.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// It does not hold what it should.
    #[error(
        "expected one line with a key of {} to {} hex digits, such as `openssl rand -hex 32` prints, and at most one more \
         with the key before it",
        2 * MIN_KEY_BYTES,
        2 * MAX_KEY_BYTES
    )]
    Form,
}

impl MacKeys {
    /// Reads the file, which nobody but its owner may be able to read.
    ///
    /// # Errors
    /// [`MacKeyError`].
    pub fn read(path: &Path) -> Result<Self, MacKeyError> {
        Self::parse(&private_text(path)?)
    }

    /// Reads the text of such a file: the new key on the first line, the old one on the second, if there is one.
    ///
    /// # Errors
    /// [`MacKeyError::Form`].
    pub fn parse(text: &str) -> Result<Self, MacKeyError> {
        let mut lines = text.lines();
        let new = key(lines.next().unwrap_or_default())?;
        let old = lines.next().filter(|line| !line.trim().is_empty()).map(key).transpose()?;
        if lines.all(|line| line.trim().is_empty()) { Ok(Self { new, old }) } else { Err(MacKeyError::Form) }
    }

    /// The MAC over `fields`, by the new key. `what` says what they are, so that a MAC of one kind is none of another.
    pub fn sign(&self, what: &str, fields: &[&[u8]]) -> [u8; MAC_BYTES] {
        mac(&self.new, what, fields).finalize().into_bytes().into()
    }

    /// Whether `tag` is the MAC over `fields` by one of the keys. Takes the same time wherever they differ.
    pub fn verify(&self, what: &str, fields: &[&[u8]], tag: &[u8]) -> bool {
        let keys = [Some(&self.new), self.old.as_ref()].into_iter().flatten();
        keys.into_iter().any(|key| mac(key, what, fields).verify_slice(tag).is_ok())
    }
}

impl fmt::Debug for MacKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKeys(…)")
    }
}

fn key(line: &str) -> Result<Key, MacKeyError> {
    let bytes = hex::decode(line.trim()).map(Zeroizing::new).map_err(|_| MacKeyError::Form)?;
    if (MIN_KEY_BYTES..=MAX_KEY_BYTES).contains(&bytes.len()) { Ok(bytes) } else { Err(MacKeyError::Form) }
}

/// Each field stands behind its length, so that no two lists of fields are one text.
fn mac(key: &[u8], what: &str, fields: &[&[u8]]) -> Hmac<Sha256> {
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
        let (by_first, by_second) = (before.sign("a", &[b"x"]), between.sign("a", &[b"x"]));
        assert!(between.verify("a", &[b"x"], &by_first) && between.verify("a", &[b"x"], &by_second));
        assert!(after.verify("a", &[b"x"], &by_second));
        assert!(!after.verify("a", &[b"x"], &by_first) && !before.verify("a", &[b"x"], &by_second));
    }

    #[test]
    fn a_mac_is_one_of_its_kind_and_of_these_fields() {
        let keys = keys(&[&"11".repeat(32)]);
        let tag = keys.sign("a", &[b"xy", b"z"]);
        assert!(keys.verify("a", &[b"xy", b"z"], &tag));
        for (what, fields) in [("b", [b"xy".as_slice(), b"z"]), ("a", [b"x", b"yz"]), ("a", [b"xy", b"Z"])] {
            assert!(!keys.verify(what, &fields, &tag));
        }
        assert!(!keys.verify("a", &[b"xy", b"z"], &tag[..31]) && !keys.verify("a", &[b"xy", b"z"], &[]));
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
