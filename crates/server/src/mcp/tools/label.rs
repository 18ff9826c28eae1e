//! A short text argument: a name, a verb, a code or a profile. Answers repeat it, so its length is limited.

use clresolve_core::name::MAX_NAME_BYTES;
use serde::Deserialize;

/// A text of at most [`MAX_NAME_BYTES`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct BoundedText(String);

impl TryFrom<String> for BoundedText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.len() > MAX_NAME_BYTES && !clresolve_core::mutant!("mcp-labels-unbounded") {
            return Err(format!("a name, verb, code or profile has at most {MAX_NAME_BYTES} bytes"));
        }
        Ok(Self(text))
    }
}

impl From<BoundedText> for String {
    fn from(label: BoundedText) -> Self {
        label.0
    }
}

impl AsRef<str> for BoundedText {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
