//! ENS names. [`EnsName`] is the only name the rest of the crate accepts, and it cannot hold a bad one.

use std::fmt;

use alloy_primitives::B256;

/// Longest name accepted, in bytes, before and after normalisation.
///
/// DNS wire format allows 255 bytes; the cap also bounds the work of normalisation.
pub const MAX_NAME_BYTES: usize = 255;

/// An ENS name in ENSIP-15 normal form: not empty, without empty labels, at most [`MAX_NAME_BYTES`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnsName(String);

impl EnsName {
    /// Normalises `input` under ENSIP-15.
    ///
    /// # Errors
    /// Says which rule the input breaks; the message is safe to print.
    pub fn parse(input: &str) -> Result<Self, NameError> {
        if input.is_empty() {
            return Err(NameError::Empty);
        }
        if input.len() > MAX_NAME_BYTES {
            return Err(NameError::TooLong(input.len()));
        }
        if is_plain(input) {
            return Ok(Self(input.to_owned()));
        }
        if input.split('.').any(str::is_empty) {
            return Err(NameError::EmptyLabel);
        }
        let normal = normalize(input)?;
        if normal.len() > MAX_NAME_BYTES {
            return Err(NameError::TooLong(normal.len()));
        }
        Ok(Self(normal))
    }

    /// The normal form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// EIP-137 namehash of the normal form.
    pub fn node(&self) -> B256 {
        alloy_ens::namehash(&self.0)
    }

    /// DNS wire encoding, as ENSIP-10 resolvers expect it.
    pub fn dns_encoded(&self) -> Vec<u8> {
        alloy_ens::dns_encode(&self.0)
    }

    /// The labels, most specific first.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// The ancestor that begins `offset` bytes into [`EnsName::dns_encoded`], as the Universal Resolver's
    /// `findResolver` reports it; `None` for offset 0 (the name itself) and for an offset that is not a label border.
    pub fn ancestor_at(&self, offset: usize) -> Option<Self> {
        let mut at = 0;
        let mut rest = self.0.as_str();
        while let Some((label, parent)) = rest.split_once('.') {
            at += label.len() + 1;
            rest = parent;
            if at == offset {
                return Some(Self(rest.to_owned()));
            }
        }
        None
    }
}

/// Whether `input` is made of labels of a to z and 0 to 9 alone: such a name is its own normal form, and most names are
/// such. Hyphens are left to [`normalize`], which knows where they may stand.
fn is_plain(input: &str) -> bool {
    let plain =
        |label: &[u8]| !label.is_empty() && label.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    input.as_bytes().split(|byte| *byte == b'.').all(plain)
}

/// ENSIP-15 normal form of any text, the empty name included, as the official vectors state it.
///
/// # Errors
/// [`NameError::NotNormalizable`] with the rule that the text breaks.
pub fn normalize(input: &str) -> Result<String, NameError> {
    // The library puts a left-to-right mark after what it quotes, for terminals; ours get quoted text escaped.
    ens_normalize::normalize(input).map_err(|e| NameError::NotNormalizable(e.to_string().replace('\u{200e}', "")))
}

/// Reads the tables of ENSIP-15, which takes tens of milliseconds. Else the first name beyond ASCII reads them.
pub fn prepare() {
    // What it says of a name is of no interest.
    let _ = ens_normalize::normalize("\u{e9}");
}

impl serde::Serialize for EnsName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for EnsName {
    /// Only what is in normal form already.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let name = Self::parse(&text).map_err(serde::de::Error::custom)?;
        if name.as_str() == text { Ok(name) } else { Err(serde::de::Error::custom("the name is not in normal form")) }
    }
}

impl fmt::Display for EnsName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why an input is not an ENS name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Nothing was given.
    #[error("the name is empty")]
    Empty,
    /// A label between two dots is empty.
    #[error("the name has an empty label")]
    EmptyLabel,
    /// The name, as given or in normal form, has this many bytes.
    #[error("the name has {0} bytes; at most {MAX_NAME_BYTES} are allowed")]
    TooLong(usize),
    /// ENSIP-15 refuses the name.
    #[error("the name does not normalise under ENSIP-15: {0}")]
    NotNormalizable(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_refusal_says_what_is_wrong() {
        assert_eq!(EnsName::parse(""), Err(NameError::Empty));
        for empty in ["a..eth", ".eth", "a.", "."] {
            assert_eq!(EnsName::parse(empty), Err(NameError::EmptyLabel), "{empty}");
        }
        for hidden in ["\u{ad}", "a.\u{ad}.eth", "a b.eth"] {
            assert!(matches!(EnsName::parse(hidden), Err(NameError::NotNormalizable(_))), "{hidden:?}");
        }
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        assert_eq!(EnsName::parse(&long), Err(NameError::TooLong(long.len())));
    }

    proptest! {
        #[test]
        fn a_plain_name_is_its_own_normal_form(name in "[a-z0-9]{1,12}(\\.[a-z0-9]{1,12}){0,4}") {
            prop_assert!(is_plain(&name));
            prop_assert_eq!(normalize(&name), Ok(name));
        }

        #[test]
        fn no_other_name_is_taken_for_plain(name in "[a-zA-Z0-9._ß-]{0,24}") {
            let full = normalize(&name).ok().filter(|normal| normal.split('.').all(|label| !label.is_empty()));
            prop_assert_eq!(EnsName::parse(&name).ok().map(|parsed| parsed.0), full);
        }
    }
}
