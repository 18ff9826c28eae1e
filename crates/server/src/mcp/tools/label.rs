//! A short text argument: a name, a verb, a code or a profile. Answers repeat it, so its length is limited.

use std::fmt;

use clresolve_core::name::MAX_NAME_BYTES;
use serde::Deserialize;

use crate::mcp::answer::Failure;

/// A text of at most [`MAX_NAME_BYTES`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Label(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a name, verb, code or profile has at most {MAX_NAME_BYTES} bytes")
    }
}

impl From<TooLong> for Failure {
    fn from(error: TooLong) -> Self {
        Self::malformed(&error.to_string())
    }
}

impl TryFrom<String> for Label {
    type Error = TooLong;

    fn try_from(text: String) -> Result<Self, TooLong> {
        if text.len() > MAX_NAME_BYTES && !clresolve_core::mutant!("mcp-labels-unbounded") {
            return Err(TooLong);
        }
        Ok(Self(text))
    }
}

impl From<Label> for String {
    fn from(label: Label) -> Self {
        label.0
    }
}

impl AsRef<str> for Label {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
