//! The source of a manifest that replaces a built-in one.

use std::path::PathBuf;

use url::Url;

/// The source of a manifest that replaces a built-in one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestSource {
    /// A local file.
    File(PathBuf),
    /// An https URL, with the SHA-256 that the downloaded bytes must have.
    Url {
        /// The URL.
        url: Url,
        /// `sha256:` and 64 hex digits.
        digest: String,
    },
}
