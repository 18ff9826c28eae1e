//! ENS names. The rest of the crate accepts only [`EnsName`], which is always valid.

use std::fmt;

use alloy_primitives::B256;

/// Maximum length of a name in bytes, before and after normalisation.
///
/// The DNS wire format allows 255 bytes. The limit also bounds the cost of normalisation.
pub const MAX_NAME_BYTES: usize = 255;

/// An ENS name in ENSIP-15 normal form: not empty, without empty labels, at most [`MAX_NAME_BYTES`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EnsName(String);

impl EnsName {
    /// Normalises `input` under ENSIP-15.
    ///
    /// # Errors
    /// The rule that the input violates. The message is safe to print.
    pub fn parse(input: &str) -> Result<Self, EnsNameError> {
        if input.is_empty() {
            return Err(EnsNameError::Empty);
        }
        if input.len() > MAX_NAME_BYTES {
            return Err(EnsNameError::TooLong(input.len()));
        }
        if is_plain_ascii(input) {
            return Ok(Self(input.to_owned()));
        }
        if input.split('.').any(str::is_empty) {
            return Err(EnsNameError::EmptyLabel);
        }
        let normal = normalize_ens_name(input)?;
        if normal.len() > MAX_NAME_BYTES {
            return Err(EnsNameError::TooLong(normal.len()));
        }
        Ok(Self(normal))
    }

    /// The name in normal form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// EIP-137 namehash of the normal form.
    pub fn namehash(&self) -> B256 {
        alloy_ens::namehash(&self.0)
    }

    /// DNS wire encoding, as ENSIP-10 resolvers require.
    pub fn dns_encoded(&self) -> Vec<u8> {
        alloy_ens::dns_encode(&self.0)
    }

    /// The labels, most specific first.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// Whether the name is one label below `eth`, as names of the `.eth` registrar are.
    pub fn is_second_level_eth(&self) -> bool {
        let mut labels = self.labels();
        labels.next_back() == Some("eth") && labels.count() == 1
    }

    /// The ancestor that begins `offset` bytes into [`EnsName::dns_encoded`]. The Universal Resolver's `findResolver`
    /// returns such an offset. `None` for offset 0 (the name itself) and for an offset that is not a label boundary.
    pub fn ancestor_at_dns_offset(&self, offset: usize) -> Option<Self> {
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

/// Whether every label of `input` consists only of a to z and 0 to 9. Such a name is its own normal form, and most
/// names are of this kind. [`normalize_ens_name`] handles hyphens, because it knows where they are allowed.
fn is_plain_ascii(input: &str) -> bool {
    let plain =
        |label: &[u8]| !label.is_empty() && label.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    input.as_bytes().split(|byte| *byte == b'.').all(plain)
}

/// The ENSIP-15 normal form of any text, including the empty name, as the official test vectors define it.
///
/// # Errors
/// [`EnsNameError::NotNormalizable`] with the rule that the text violates.
pub fn normalize_ens_name(input: &str) -> Result<String, EnsNameError> {
    // The library adds a left-to-right mark after quoted text, for terminals. This crate escapes quoted text instead.
    ens_normalize::normalize(input).map_err(|e| EnsNameError::NotNormalizable(e.to_string().replace('\u{200e}', "")))
}

/// Loads the tables of ENSIP-15, which takes tens of milliseconds. Without this call, the first non-ASCII name loads
/// them.
pub fn load_tables() {
    // Only the side effect matters: loading the tables.
    let _ = ens_normalize::normalize("\u{e9}");
}

impl serde::Serialize for EnsName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for EnsName {
    /// Accepts only a name that is already in normal form.
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
pub enum EnsNameError {
    /// The input is empty.
    #[error("the name is empty")]
    Empty,
    /// A label between two dots is empty.
    #[error("the name has an empty label")]
    EmptyLabel,
    /// The name, as given or in normal form, is too long: its length in bytes.
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
        assert_eq!(EnsName::parse(""), Err(EnsNameError::Empty));
        for empty in ["a..eth", ".eth", "a.", "."] {
            assert_eq!(EnsName::parse(empty), Err(EnsNameError::EmptyLabel), "{empty}");
        }
        for hidden in ["\u{ad}", "a.\u{ad}.eth", "a b.eth"] {
            assert!(matches!(EnsName::parse(hidden), Err(EnsNameError::NotNormalizable(_))), "{hidden:?}");
        }
        let long = "a".repeat(MAX_NAME_BYTES + 1);
        assert_eq!(EnsName::parse(&long), Err(EnsNameError::TooLong(long.len())));
    }

    #[test]
    fn only_names_one_label_below_eth_are_second_level() {
        for (name, expected) in [("a.eth", true), ("eth", false), ("a.b.eth", false), ("a.xyz", false)] {
            assert_eq!(EnsName::parse(name).expect("a name").is_second_level_eth(), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_plain_name_is_its_own_normal_form(name in "[a-z0-9]{1,12}(\\.[a-z0-9]{1,12}){0,4}") {
            prop_assert!(is_plain_ascii(&name));
            prop_assert_eq!(normalize_ens_name(&name), Ok(name));
        }

        #[test]
        fn no_other_name_is_taken_for_plain(name in "[a-zA-Z0-9._ß-]{0,24}") {
            let full = normalize_ens_name(&name).ok().filter(|normal| normal.split('.').all(|label| !label.is_empty()));
            prop_assert_eq!(EnsName::parse(&name).ok().map(|parsed| parsed.0), full);
        }
    }
}
