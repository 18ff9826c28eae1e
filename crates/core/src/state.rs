//! The three states of a verdict.

use serde::{Deserialize, Serialize};

/// The state of a verdict. The default is indeterminate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrustState {
    /// Every required step passed.
    Trusted,
    /// A value contradicts the rules, or absence was proven.
    Untrusted,
    /// Nothing failed, but a required step could not be decided.
    #[default]
    Indeterminate,
}

impl TrustState {
    /// The state's stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Indeterminate => "indeterminate",
        }
    }

    /// The state of something that depends on two states: trusted if both are trusted, untrusted if either is
    /// untrusted.
    #[must_use]
    pub const fn combine_with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Untrusted, _) | (_, Self::Untrusted) => Self::Untrusted,
            (Self::Trusted, Self::Trusted) => Self::Trusted,
            _ => Self::Indeterminate,
        }
    }
}

impl std::fmt::Display for TrustState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A profile under which the same evidence would have another state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustStateUnderOtherProfile {
    /// Identifier of the profile.
    pub profile: String,
    /// The state under that profile.
    pub would_be: TrustState,
}
