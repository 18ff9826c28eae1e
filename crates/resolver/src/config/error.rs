//! Why a configuration is rejected.

/// Why a configuration is rejected. Of a URL, the message contains at most scheme and host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read, is too long or is not UTF-8.
    #[error("{path}: {detail}")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        detail: String,
    },
    /// A key in the file is unknown or has an invalid value.
    #[error("{path}, line {line}, key `{key}`: {detail}")]
    Invalid {
        /// The file.
        path: String,
        /// The line, counted from 1.
        line: usize,
        /// The key or table on that line.
        key: String,
        /// What was expected, and what was found.
        detail: String,
    },
    /// A key has an invalid value in the environment, or conflicts with another key.
    #[error("{key}: {detail}")]
    Conflict {
        /// The key as in the file; with `--` before it, it is the flag.
        key: String,
        /// What was expected.
        detail: String,
    },
    /// The file cannot be written.
    #[error("{path}: {detail}")]
    Unwritable {
        /// The file.
        path: String,
        /// The cause.
        detail: String,
    },
}

impl ConfigError {
    /// The value of `key` conflicts with another key, or is invalid in this source.
    pub(super) fn conflict(key: &str, detail: impl Into<String>) -> Self {
        Self::Conflict { key: key.to_owned(), detail: detail.into() }
    }
}
