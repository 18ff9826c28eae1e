//! The bound schema of a card, compiled to validate messages. Its bytes are proven by the digest that the manifest
//! pins, and so are those of the schemas that it refers to.
//!
//! Every reference must lead to a schema of the same manifest; otherwise the schema is rejected. No reference is
//! followed anywhere else.

use std::collections::BTreeMap;

use clresolve_core::digest::Digest;
use clresolve_core::json::{self, JsonLimits};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;
use serde::Serialize;
use serde_json::Value;

use super::served::ServedSchema;
use super::strict;
use super::{SchemaError, SchemaViolation, StrictSchema};
use crate::manifest::{BoundSchemaEntry, SchemaReleaseManifest};

/// Maximum number of directly and indirectly referenced schemas. The published schemas refer to four.
pub const MAX_REFERENCES: usize = 32;

/// A compiled bound schema.
#[derive(Debug)]
pub struct BoundSchema {
    name: BoundSchemaIdentity,
    schema: StrictSchema,
    document: Value,
    shared: Vec<Value>,
}

/// Identity of a bound schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoundSchemaIdentity {
    /// Its `$id`.
    pub id: String,
    /// The canonical location in the card.
    pub location: String,
    /// SHA-256 of the schema's bytes.
    pub sha256: Digest,
    /// The manifest that pins the bytes.
    pub manifest: String,
}

impl BoundSchema {
    /// Identity of the schema.
    pub const fn identity(&self) -> &BoundSchemaIdentity {
        &self.name
    }

    /// The violations in a message, in order; [`StrictSchema::every_violation`] defines their maximum number.
    pub fn every_violation<'i>(&'i self, message: &'i Value) -> impl Iterator<Item = SchemaViolation> + 'i {
        self.schema.every_violation(message)
    }

    /// The schema's JSON document.
    pub const fn document(&self) -> &Value {
        &self.document
    }

    /// The target of a reference in `within`: the document, and the schema in it. `within` is this schema or one that
    /// it refers to.
    pub fn resolve_reference<'s>(&'s self, within: &'s Value, reference: &str) -> Option<(&'s Value, &'s Value)> {
        let (target, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = match target {
            "" => within,
            target => self.documents().find(|document| strict::schema_id(document) == Some(target))?,
        };
        Some((document, document.pointer(fragment)?))
    }

    fn documents(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.document).chain(&self.shared)
    }
}

/// A referenced schema of the same manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiblingSchema<'m> {
    id: &'m str,
    path: &'m str,
    sha256: Digest,
}

/// Collects the schemas that a bound schema needs.
#[derive(Debug)]
pub struct ReferencedSchemaCollector<'m> {
    manifest: &'m SchemaReleaseManifest,
    entry: &'m BoundSchemaEntry,
    schema: ServedSchema,
    siblings: BTreeMap<&'m str, ServedSchema>,
}

impl<'m> ReferencedSchemaCollector<'m> {
    /// Starts with the schema itself, whose bytes are proven.
    pub const fn new(manifest: &'m SchemaReleaseManifest, entry: &'m BoundSchemaEntry, schema: ServedSchema) -> Self {
        Self { manifest, entry, schema, siblings: BTreeMap::new() }
    }

    /// A referenced schema that has not been supplied; `None` if all have been.
    ///
    /// # Errors
    /// `schema-not-strict` if a schema is not JSON or refers to a schema that the manifest does not pin.
    pub fn next_missing_sibling(&self) -> Result<Option<SiblingSchema<'m>>, Box<Reason>> {
        for served in std::iter::once(&self.schema).chain(self.siblings.values()) {
            let document = served.parsed_schema().map_err(|error| not_strict_reason(&error.clone().into()))?;
            let known = |id: &str| id == self.entry.id || self.siblings.contains_key(id);
            if let Some(id) = document.strict_mode.references().find(|id| !known(id)) {
                return self.find_sibling(id).map(Some);
            }
        }
        Ok(None)
    }

    fn find_sibling(&self, id: &str) -> Result<SiblingSchema<'m>, Box<Reason>> {
        let refused = |why: String| Box::new(Reason::new(ReasonCode::SchemaNotStrict).observed(why));
        if self.siblings.len() == MAX_REFERENCES {
            return Err(refused(format!("it refers to more than {MAX_REFERENCES} others")));
        }
        let shared =
            self.manifest.shared_schemas().iter().map(|shared| (&shared.id, &shared.path, Some(shared.sha256)));
        let verbs = self.manifest.verbs().iter().flat_map(|verb| [&verb.request, &verb.receipt]);
        let mut all = shared.chain(verbs.map(|entry| (&entry.id, &entry.path, entry.sha256)));
        match all.find(|(known, ..)| *known == id) {
            Some((id, path, Some(sha256))) => Ok(SiblingSchema { id, path, sha256 }),
            _ => Err(refused(format!("the manifest pins no schema {:?}", excerpt_text(id)))),
        }
    }

    /// Locations of a sibling: next to each location of the schema itself.
    pub fn sibling_locations(&self, sibling: &SiblingSchema<'_>) -> Vec<String> {
        let own = std::iter::once(&self.entry.canonical).chain(&self.entry.mirrors);
        own.filter_map(|location| sibling_location(location, &self.entry.path, sibling.path)).collect()
    }

    /// Supplies what one of those locations served. Returns whether the bytes are the pinned ones.
    pub fn supply_sibling(&mut self, sibling: SiblingSchema<'m>, served: ServedSchema) -> bool {
        let is_pinned = served.digest() == sibling.sha256 || clresolve_core::mutant!("siblings-of-anybody");
        if is_pinned {
            self.siblings.insert(sibling.id, served);
        }
        is_pinned
    }

    /// The collected schemas, ready to compile.
    pub fn into_bundle(self) -> SchemaBundle {
        let name = BoundSchemaIdentity {
            id: self.entry.id.clone(),
            location: self.entry.canonical.clone(),
            sha256: self.schema.digest(),
            manifest: self.manifest.id().to_owned(),
        };
        SchemaBundle { name, schema: self.schema, siblings: self.siblings.into_values().collect() }
    }
}

/// A schema with all schemas that it refers to.
#[derive(Debug)]
pub struct SchemaBundle {
    name: BoundSchemaIdentity,
    schema: ServedSchema,
    siblings: Vec<ServedSchema>,
}

impl SchemaBundle {
    /// Compiles the schema.
    ///
    /// # Errors
    /// `schema-not-strict` if a strict compiler would reject it or one that it refers to.
    pub fn compile(self) -> Result<BoundSchema, Box<Reason>> {
        let document = parse_served(&self.schema)?;
        let read = self.siblings.iter().filter_map(|sibling| sibling.parsed_schema().ok());
        let faults: Vec<_> = read.flat_map(|document| document.strict_mode.faults(|_| true)).cloned().collect();
        if !faults.is_empty() {
            return Err(not_strict_reason(&SchemaError::NotStrict(faults)));
        }
        let shared = self.siblings.iter().map(parse_served).collect::<Result<Vec<_>, _>>()?;
        let schema = StrictSchema::compile(self.schema.bytes(), &shared).map_err(|error| not_strict_reason(&error))?;
        Ok(BoundSchema { name: self.name, schema, document, shared })
    }
}

fn parse_served(served: &ServedSchema) -> Result<Value, Box<Reason>> {
    json::parse_strict_json(served.bytes(), JsonLimits::SCHEMA).map_err(|error| not_strict_reason(&error.into()))
}

fn not_strict_reason(error: &SchemaError) -> Box<Reason> {
    Box::new(Reason::new(ReasonCode::SchemaNotStrict).observed(excerpt_text(&error.to_string())))
}

/// The location of the file `other` in a release that serves the file `path` at `location`. A location may contain only
/// the end of the path, because a release's IPFS directory starts below the repository's root.
fn sibling_location(location: &str, path: &str, other: &str) -> Option<String> {
    let ends = path.match_indices('/').map(|(at, _)| at + 1);
    let (above, root) = std::iter::once(0).chain(ends).find_map(|cut| {
        let (above, below) = path.split_at(cut);
        let root = location.strip_suffix(below).filter(|root| root.ends_with('/'))?;
        Some((above, root))
    })?;
    Some(format!("{root}{}", other.strip_prefix(above)?))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;

    const OWN: &str = "https://schemas.example/v1/commons/sum/sum.request.schema.json";
    const SHARED: &str = "https://schemas.example/v1/_shared/x402.schema.json";

    fn bytes(document: &Value) -> Bytes {
        document.to_string().into()
    }

    fn served(document: &Value) -> ServedSchema {
        ServedSchema::from_bytes(bytes(document))
    }

    fn own() -> Value {
        json!({"$id": OWN, "type": "object", "properties": {"x402": {"$ref": format!("{SHARED}#/$defs/envelope")}}})
    }

    fn shared() -> Value {
        json!({"$id": SHARED, "$defs": {"envelope": {"type": "object", "required": ["verb"]}}})
    }

    fn manifest(own: &Value, shared: &Value) -> SchemaReleaseManifest {
        let entry = |side: &str, of: &Value| {
            let path = format!("v1/commons/sum/sum.{side}.schema.json");
            json!({"canonical": format!("ipfs://CID/{}", &path[3..]), "mirrors": [format!("https://schemas.example/{path}")],
                "id": format!("https://schemas.example/{path}"), "path": path, "sha256": Digest::compute(&bytes(of))})
        };
        let shared = json!({"path": "v1/_shared/x402.schema.json", "id": SHARED, "bytes": 1, "sha256": Digest::compute(&bytes(shared))});
        let file = json!({"schema": "clresolve.manifest/1", "id": "protocol-commons/1", "class": "commons", "version": "1",
            "verbs": [{"name": "sum", "request": entry("request", own), "receipt": entry("receipt", &json!({}))}], "shared": [shared]});
        SchemaReleaseManifest::load(file.to_string().as_bytes()).expect("a manifest")
    }

    fn compiled(own: &Value, shared: &Value) -> Result<BoundSchema, Box<Reason>> {
        let manifest = manifest(own, shared);
        let mut gathering = ReferencedSchemaCollector::new(&manifest, &manifest.verbs()[0].request, served(own));
        while let Some(sibling) = gathering.next_missing_sibling()? {
            assert!(gathering.supply_sibling(sibling, served(shared)));
        }
        gathering.into_bundle().compile()
    }

    #[test]
    fn siblings_are_gathered_and_judge() {
        let bound = compiled(&own(), &shared()).expect("it compiles");
        assert_eq!(bound.every_violation(&json!({"x402": {"verb": "sum"}})).count(), 0);
        assert_eq!(bound.every_violation(&json!({"x402": {}})).count(), 1);
        let (document, schema) =
            bound.resolve_reference(bound.document(), &format!("{SHARED}#/$defs/envelope")).expect("it is there");
        assert_eq!((document, &schema["required"]), (&shared(), &json!(["verb"])));
        assert!(bound.resolve_reference(document, "#/$defs/other").is_none());
    }

    #[test]
    fn other_bytes_than_the_pinned_ones_are_no_sibling() {
        let manifest = manifest(&own(), &shared());
        let mut gathering = ReferencedSchemaCollector::new(&manifest, &manifest.verbs()[0].request, served(&own()));
        let sibling = gathering.next_missing_sibling().expect("it is pinned").expect("one is referred to");
        let other = json!({"$id": SHARED, "$defs": {"envelope": true}});
        assert!(!gathering.supply_sibling(sibling, served(&other)));
        assert_eq!(gathering.next_missing_sibling().expect("it is pinned"), Some(sibling));
        let locations = gathering.sibling_locations(&sibling);
        assert_eq!(locations, ["ipfs://CID/_shared/x402.schema.json", SHARED]);
    }

    #[test]
    fn a_reference_to_elsewhere_and_a_loose_sibling_are_refused() {
        let mut elsewhere = own();
        elsewhere["properties"]["x402"] = json!({"$ref": "https://elsewhere.example/x.schema.json"});
        let mut loose = shared();
        loose["requiredAtNoon"] = json!(true);
        for (own, shared) in [(elsewhere, shared()), (own(), loose)] {
            let refused = compiled(&own, &shared).expect_err("it is not strict");
            assert_eq!(refused.code, ReasonCode::SchemaNotStrict);
        }
    }

    #[test]
    fn siblings_stand_beside_the_schema() {
        let other = "schemas/v1/_shared/b.json";
        let at = |location: &str| sibling_location(location, "schemas/v1/commons/a.json", other);
        assert_eq!(
            at("https://h.example/schemas/v1/commons/a.json").as_deref(),
            Some("https://h.example/schemas/v1/_shared/b.json")
        );
        assert_eq!(at("ipfs://CID/commons/a.json").as_deref(), Some("ipfs://CID/_shared/b.json"));
        assert_eq!(at("https://h.example/tree/main/a.json"), None, "it stands in a folder that the other does not");
        assert_eq!(at("https://h.example/xa.json"), None);
    }
}
