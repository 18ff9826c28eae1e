//! Where a replacing manifest comes from.

use std::path::PathBuf;

use url::Url;

/// Where a replacing manifest comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ManifestSource {
    /// A local file.
    File(PathBuf),
    /// An https URL with the SHA-256 that its bytes must have.
    Url {
        /// Where.
        url: Url,
        /// `sha256:` and 64 hex digits.
        digest: String,
    },
}
