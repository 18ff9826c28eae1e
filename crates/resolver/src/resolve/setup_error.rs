//! Why a resolver cannot be built.

use std::fmt::Display;

/// Why a [`Resolver`](super::Resolver) cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The value of a configuration key, or what it names, is unusable.
    #[error("{what}: {detail}")]
    Invalid {
        /// The configuration key.
        what: String,
        /// Why the value is unusable.
        detail: String,
    },
}

impl SetupError {
    pub(super) fn invalid(what: &str, detail: impl Display) -> Self {
        Self::Invalid { what: what.to_owned(), detail: detail.to_string() }
    }
}
