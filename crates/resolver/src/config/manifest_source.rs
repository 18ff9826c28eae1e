//! The source of a manifest that replaces a built-in one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

use super::value::parse_digest;

/// The source of a manifest that replaces a built-in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ManifestTomlTable", into = "ManifestTomlTable")]
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

/// A source as it is written: `file`, or `url` and `digest`.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestTomlTable {
    file: Option<PathBuf>,
    url: Option<String>,
    digest: Option<String>,
}

impl TryFrom<ManifestTomlTable> for ManifestSource {
    type Error = String;

    fn try_from(table: ManifestTomlTable) -> Result<Self, String> {
        match table {
            ManifestTomlTable { file: Some(path), url: None, digest: None } => Ok(Self::File(path)),
            ManifestTomlTable { file: None, url: Some(url), digest: Some(digest) } => {
                let digest = parse_digest(&digest)?;
                let url = Url::parse(&url).ok().filter(|url| url.scheme() == "https");
                Ok(Self::Url { url: url.ok_or("expected url to be an https URL")?, digest })
            }
            _ => Err("expected file alone, or url with digest".to_owned()),
        }
    }
}

impl From<ManifestSource> for ManifestTomlTable {
    fn from(source: ManifestSource) -> Self {
        match source {
            ManifestSource::File(path) => Self { file: Some(path), ..Self::default() },
            ManifestSource::Url { url, digest } => {
                Self { url: Some(url.into()), digest: Some(digest), ..Self::default() }
            }
        }
    }
}
