//! The source of a manifest that replaces a built-in one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use url::Url;

use super::value::parse_digest;

/// The source of a manifest that replaces a built-in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SchemaManifestTomlTable", into = "SchemaManifestTomlTable")]
#[non_exhaustive]
pub enum SchemaManifestSource {
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
struct SchemaManifestTomlTable {
    file: Option<PathBuf>,
    url: Option<String>,
    digest: Option<String>,
}

impl TryFrom<SchemaManifestTomlTable> for SchemaManifestSource {
    type Error = String;

    fn try_from(table: SchemaManifestTomlTable) -> Result<Self, String> {
        match table {
            SchemaManifestTomlTable { file: Some(path), url: None, digest: None } => Ok(Self::File(path)),
            SchemaManifestTomlTable { file: None, url: Some(url), digest: Some(digest) } => {
                let digest = parse_digest(&digest)?;
                let url = Url::parse(&url).ok().filter(|url| url.scheme() == "https");
                Ok(Self::Url { url: url.ok_or("expected url to be an https URL")?, digest })
            }
            _ => Err("expected file alone, or url with digest".to_owned()),
        }
    }
}

impl From<SchemaManifestSource> for SchemaManifestTomlTable {
    fn from(source: SchemaManifestSource) -> Self {
        match source {
            SchemaManifestSource::File(path) => Self { file: Some(path), ..Self::default() },
            SchemaManifestSource::Url { url, digest } => {
                Self { url: Some(url.into()), digest: Some(digest), ..Self::default() }
            }
        }
    }
}
