//! Why a configuration is refused.

/// Why a configuration is refused. The message holds no part of a URL but its scheme and host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read, is too long or is not UTF-8.
    #[error("{path}: {detail}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        detail: String,
    },
    /// A key of the file is unknown or holds what it must not.
    #[error("{path}, line {line}, key `{key}`: {detail}")]
    Invalid {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// The key or table that stands there.
        key: String,
        /// What was expected, and what was found.
        detail: String,
    },
    /// A key holds what it must not, in the environment or together with another key.
    #[error("{key}: {detail}")]
    Conflict {
        /// The key, as in the file and, after two dashes, as a flag.
        key: String,
        /// What was expected.
        detail: String,
    },
    /// The file cannot be written.
    #[error("{path}: {detail}")]
    Unwritable {
        /// The file.
        path: String,
        /// Why.
        detail: String,
    },
}
