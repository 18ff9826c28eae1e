//! Manifests of the schema layers: the verbs, the locations of their schemas, and the schemas' digests.
//!
//! A manifest is data, pinned by the SHA-256 of its bytes. Four are compiled in. Configuration can replace them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use crate::card::SchemaRole;
use clresolve_core::digest::Digest;
use clresolve_core::json;
use clresolve_core::json::{JsonError, JsonLimits};
use clresolve_core::text::excerpt_text;

/// Version of the manifest format that this crate reads.
pub const FORMAT: &str = "clresolve.manifest/1";

/// Maximum number of verbs in one layer. The existing layers have ten and five. The limit keeps a replaced manifest
/// from slowing every check.
pub const MAX_VERBS: usize = 1024;

/// A manifest of one release of one schema layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaReleaseManifest {
    digest: Digest,
    file: SchemaReleaseManifestDocument,
}

impl SchemaReleaseManifest {
    /// Parses a manifest and computes the digest of its bytes.
    ///
    /// # Errors
    /// [`SchemaReleaseManifestError`] if the bytes are not strict JSON, have another format, or contradict themselves.
    pub fn load(bytes: &[u8]) -> Result<Self, SchemaReleaseManifestError> {
        let document = json::parse_strict_json(bytes, JsonLimits::DOCUMENT)?;
        let mut file: SchemaReleaseManifestDocument = serde_json::from_value(document)
            .map_err(|e| SchemaReleaseManifestError::Shape(excerpt_text(&e.to_string())))?;
        file.verbs.sort_by(|a, b| a.name.cmp(&b.name));
        file.validate()?;
        Ok(Self { digest: Digest::compute(bytes), file })
    }

    /// SHA-256 of the manifest's bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Identifier of layer and release, such as `protocol-commons/1.0.0`.
    pub fn id(&self) -> &str {
        &self.file.id
    }

    /// The class of the cards that use the layer's verbs.
    pub fn class(&self) -> &str {
        &self.file.class
    }

    /// The release, as in `cl.version`.
    pub fn version(&self) -> &str {
        &self.file.version
    }

    /// CID of the release's directory, if one was published.
    pub fn directory_cid(&self) -> Option<&str> {
        self.file.directory_cid.as_deref()
    }

    /// All verbs, sorted by name.
    pub fn verbs(&self) -> &[ManifestVerb] {
        &self.file.verbs
    }

    /// The verb with exactly this name.
    pub fn verb(&self, name: &str) -> Option<&ManifestVerb> {
        let at = self.file.verbs.binary_search_by(|verb| verb.name.as_str().cmp(name)).ok()?;
        self.file.verbs.get(at)
    }

    /// The verb that is meant by another spelling: other case, surrounding space, or a known alias.
    pub fn verb_by_alias(&self, spelling: &str) -> Option<&ManifestVerb> {
        let spelling = spelling.trim();
        let means = |name: &String| name.eq_ignore_ascii_case(spelling);
        self.file.verbs.iter().find(|verb| means(&verb.name) || verb.aliases.iter().any(means))
    }

    /// The schemas that other schemas refer to.
    pub fn shared_schemas(&self) -> &[SharedSchemaEntry] {
        &self.file.shared
    }

    /// The `$id` of every schema of the release, to which a `$ref` may refer.
    pub fn schema_ids(&self) -> impl Iterator<Item = &str> {
        let bound = self.file.verbs.iter().flat_map(|verb| [&verb.request.id, &verb.receipt.id]);
        bound.chain(self.file.shared.iter().map(|schema| &schema.id)).map(String::as_str)
    }
}

/// One verb of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestVerb {
    /// The verb, as in the name of its schema directory.
    pub name: String,
    /// The publisher's category, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Common alternative spellings. They are not accepted, but reported with the correct verb.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The request schema.
    pub request: BoundSchemaEntry,
    /// The receipt schema.
    pub receipt: BoundSchemaEntry,
}

impl ManifestVerb {
    /// The schema of one side.
    pub fn schema(&self, side: SchemaRole) -> &BoundSchemaEntry {
        match side {
            SchemaRole::Request => &self.request,
            SchemaRole::Receipt => &self.receipt,
        }
    }
}

/// A schema that a card binds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundSchemaEntry {
    /// The canonical location that a card must name.
    pub canonical: String,
    /// Other locations at which the publisher serves the schema.
    pub mirrors: Vec<String>,
    /// Path in the publisher's repository.
    pub path: String,
    /// The canonical URL of the path, which is also the schema's `$id`.
    pub id: String,
    /// Length in bytes, if the bytes are pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// SHA-256 of the served bytes; `None` if the publisher changes them, so that nothing is pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    /// The digest in the publisher's checksum list, if that was computed with CRLF line ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_crlf_sha256: Option<Digest>,
}

/// A schema that other schemas refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedSchemaEntry {
    /// Path in the publisher's repository.
    pub path: String,
    /// The schema's `$id`.
    pub id: String,
    /// Length in bytes.
    pub bytes: usize,
    /// SHA-256 of the served bytes.
    pub sha256: Digest,
    /// The digest in the publisher's checksum list, if that was computed with CRLF line ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_crlf_sha256: Option<Digest>,
}

/// Why bytes are not a manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaReleaseManifestError {
    /// Not strict JSON.
    #[error("not a manifest: {0}")]
    Json(#[from] JsonError),
    /// A member is missing, unknown, or of the wrong type.
    #[error("not a manifest: {0}")]
    Shape(String),
    /// The format version is unsupported.
    #[error("the manifest has the format {0:?}; this version reads {FORMAT:?}")]
    Format(String),
    /// There is no verb, or there are more than [`MAX_VERBS`].
    #[error("the manifest has {0} verbs; 1 to {MAX_VERBS} are allowed")]
    VerbCount(usize),
    /// A verb or `$id` occurs twice.
    #[error("the manifest names {0:?} twice")]
    Duplicate(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaReleaseManifestDocument {
    schema: String,
    id: String,
    class: String,
    version: String,
    /// Sources of the manifest's facts, for human readers.
    #[serde(default)]
    source: serde_json::Value,
    #[serde(default)]
    directory_cid: Option<String>,
    verbs: Vec<ManifestVerb>,
    shared: Vec<SharedSchemaEntry>,
}

impl SchemaReleaseManifestDocument {
    fn validate(&self) -> Result<(), SchemaReleaseManifestError> {
        if self.schema != FORMAT {
            return Err(SchemaReleaseManifestError::Format(excerpt_text(&self.schema)));
        }
        if !(1..=MAX_VERBS).contains(&self.verbs.len()) {
            return Err(SchemaReleaseManifestError::VerbCount(self.verbs.len()));
        }
        let names = self.verbs.iter().map(|verb| &verb.name);
        let ids = self.verbs.iter().flat_map(|verb| [&verb.request.id, &verb.receipt.id]);
        let shared = self.shared.iter().map(|schema| &schema.id);
        let mut seen = BTreeSet::new();
        match names.chain(ids).chain(shared).find(|name| !seen.insert(name.as_str())) {
            Some(twice) => Err(SchemaReleaseManifestError::Duplicate(excerpt_text(twice))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMONS: &[u8] = include_bytes!("../manifests/protocol-commons-1.0.0.json");
    const COMMERCIAL: &[u8] = include_bytes!("../manifests/protocol-commercial-1.0.0.json");

    fn names(manifest: &SchemaReleaseManifest) -> Vec<&str> {
        manifest.verbs().iter().map(|verb| verb.name.as_str()).collect()
    }

    #[test]
    fn the_verbs_are_those_of_the_checklist() {
        let commons = SchemaReleaseManifest::load(COMMONS).expect("our own manifest");
        let listed = "analyze classify clean convert describe explain fetch format parse summarize";
        assert_eq!(names(&commons).join(" "), listed);
        let commercial = SchemaReleaseManifest::load(COMMERCIAL).expect("our own manifest");
        assert_eq!(names(&commercial).join(" "), "authorize checkout purchase ship verify");
    }

    #[test]
    fn verbs_are_found_by_name_and_by_alias() {
        let commons = SchemaReleaseManifest::load(COMMONS).expect("our own manifest");
        assert_eq!(commons.verb("clean").and_then(|verb| verb.category.as_deref()), Some("transform"));
        assert!(commons.verb("Clean").is_none() && commons.verb("summarise").is_none());
        for (alias, name) in [("Clean", "clean"), (" clean", "clean"), ("summarise", "summarize")] {
            assert_eq!(commons.verb_by_alias(alias).map(|verb| verb.name.as_str()), Some(name));
        }
        assert!(commons.verb_by_alias("translate").is_none());
    }

    #[test]
    fn manifests_that_contradict_themselves_are_refused() {
        let text = String::from_utf8(COMMERCIAL.to_vec()).expect("UTF-8");
        let load = |text: &str| SchemaReleaseManifest::load(text.as_bytes()).expect_err("a bad manifest");
        assert_eq!(
            load(&text.replace("manifest/1", "manifest/2")),
            SchemaReleaseManifestError::Format("clresolve.manifest/2".into())
        );
        let twice = text.replace(r#""name": "ship""#, r#""name": "verify""#);
        assert_eq!(load(&twice), SchemaReleaseManifestError::Duplicate("verify".into()));
        assert!(matches!(load(&text.replace("\"version\"", "\"verison\"")), SchemaReleaseManifestError::Shape(_)));
        assert!(matches!(load("[]"), SchemaReleaseManifestError::Json(_)));
        for count in [0, MAX_VERBS + 1] {
            let mut manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            manifest["verbs"] = vec![manifest["verbs"][0].clone(); count].into();
            assert_eq!(load(&manifest.to_string()), SchemaReleaseManifestError::VerbCount(count));
        }
    }
}
