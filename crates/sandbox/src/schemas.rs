//! The schema layers of a sandbox: small schemas, published like Protocol-Commons and Protocol-Commercial. Their
//! manifests have the same form and replace the built-in ones.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::spec::{DefectiveSchema, SchemaDefectKind, VerbProtocolLayer};
use super::web::{ServedFile, WebServerBehaviour};
use clresolve_core::digest::Digest;
use clresolve_ipfs::ContentId;
use clresolve_ipfs::build::{self, BlocksByCid, UnixFsLayout};

/// Host of the schemas, and of the manifests.
pub(crate) const SCHEMAS_HOST: &str = "schemas.sandbox.example";

/// Host of the mirrors of the commercial schemas. Like a gateway, it also serves them under the CID of their release.
pub(crate) const MIRROR_HOST: &str = "mirror.sandbox.example";

/// Verbs and categories of Protocol-Commons 1.0.0.
const COMMONS: [(&str, &str); 10] = [
    ("analyze", "cognition"),
    ("classify", "cognition"),
    ("clean", "transform"),
    ("convert", "transform"),
    ("describe", "cognition"),
    ("explain", "cognition"),
    ("fetch", "io"),
    ("format", "transform"),
    ("parse", "structure"),
    ("summarize", "cognition"),
];

/// Verbs and categories of Protocol-Commercial 1.0.0.
const COMMERCIAL: [(&str, &str); 5] = [
    ("authorize", "payment"),
    ("checkout", "order"),
    ("purchase", "order"),
    ("ship", "logistics"),
    ("verify", "trust"),
];

/// Alternative spellings, which manifests list and checks reject.
const ALIASES: [(&str, &str); 3] = [("analyze", "analyse"), ("authorize", "authorise"), ("summarize", "summarise")];

/// The two layers, and the manifests of the next release line, which contain no schema digests.
#[derive(Clone, Debug)]
pub(crate) struct SandboxSchemaLayers {
    commons: SandboxSchemaLayer,
    commercial: SandboxSchemaLayer,
    next: Vec<SandboxSchemaManifest>,
}

/// The request schema and the receipt schema of a verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VerbSchemaLocations {
    pub(crate) request: SchemaLocation,
    pub(crate) receipt: SchemaLocation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaLocation {
    pub(crate) location: String,
    pub(crate) mirror: String,
}

/// A manifest and its URL.
#[derive(Clone, Debug)]
pub struct SandboxSchemaManifest {
    /// Its URL.
    pub url: String,
    /// `sha256:` and 64 hex digits.
    pub digest: String,
    /// The bytes served there.
    pub bytes: Bytes,
}

/// One layer.
#[derive(Clone, Debug)]
struct SandboxSchemaLayer {
    cid: ContentId,
    blocks: BlocksByCid,
    manifest: SandboxSchemaManifest,
    /// Keyed by host and path.
    documents: BTreeMap<(&'static str, String), ServedFile>,
    /// SHA-256 of each schema, keyed by path.
    digests: BTreeMap<String, String>,
}

impl SandboxSchemaLayers {
    pub(crate) fn with_schema_defects(defects: &[DefectiveSchema]) -> Self {
        Self {
            commons: SandboxSchemaLayer::new(VerbProtocolLayer::Commons, defects),
            commercial: SandboxSchemaLayer::new(VerbProtocolLayer::Commercial, defects),
            next: vec![
                next_release_manifest(VerbProtocolLayer::Commons),
                next_release_manifest(VerbProtocolLayer::Commercial),
            ],
        }
    }

    /// The locations of a verb's schemas, whether or not the layer has the verb.
    pub(crate) fn verb_locations(&self, class: VerbProtocolLayer, verb: &str) -> VerbSchemaLocations {
        let release = self.release_for_class(class);
        let location = |kind: VerbSchemaKind| SchemaLocation {
            location: canonical_url(class, &release.cid, &kind.schema_path(class, verb)),
            mirror: mirror_url(class, &kind.schema_path(class, verb)),
        };
        VerbSchemaLocations { request: location(VerbSchemaKind::Request), receipt: location(VerbSchemaKind::Receipt) }
    }

    /// The schema binding records for a verb.
    pub(crate) fn schema_records(&self, class: VerbProtocolLayer, verb: &str) -> BTreeMap<String, String> {
        let release = self.release_for_class(class);
        let bound = self.verb_locations(class, verb);
        [
            ("cl.verb", verb.to_owned()),
            ("cl.version", "1.0.0".to_owned()),
            ("cl.schema.request", bound.request.location),
            ("cl.schema.receipt", bound.receipt.location),
            ("cl.cid.schemas", release.cid.to_string()),
            ("cl.schemas.mirror.ipfs", format!("ipfs://{}", release.cid)),
            ("cl.checksum.request", format!("sha256:{}", self.request_digest(class, verb))),
            ("cl.checksum.receipt", format!("sha256:{}", self.receipt_digest(class, verb))),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// SHA-256 of the request schema of `verb`. Empty if there is none.
    pub(crate) fn request_digest(&self, class: VerbProtocolLayer, verb: &str) -> String {
        self.release_for_class(class)
            .digests
            .get(&VerbSchemaKind::Request.schema_path(class, verb))
            .cloned()
            .unwrap_or_default()
    }

    /// SHA-256 of the receipt schema of `verb`. Empty if there is none.
    pub(crate) fn receipt_digest(&self, class: VerbProtocolLayer, verb: &str) -> String {
        self.release_for_class(class)
            .digests
            .get(&VerbSchemaKind::Receipt.schema_path(class, verb))
            .cloned()
            .unwrap_or_default()
    }

    /// The digest that the schema of `verb` would have with CRLF line endings.
    pub(crate) fn request_schema_crlf_digest(&self, class: VerbProtocolLayer, verb: &str) -> String {
        let path = VerbSchemaKind::Request.schema_path(class, verb);
        let document = self.release_for_class(class).documents.iter().find(|((_, at), _)| at.ends_with(&path));
        document.map(|(_, document)| Digest::compute(&with_crlf_endings(&document.body)).to_hex()).unwrap_or_default()
    }

    /// The CID of a layer's directory.
    pub(crate) fn layer_cid(&self, class: VerbProtocolLayer) -> ContentId {
        self.release_for_class(class).cid
    }

    pub(crate) fn manifests(&self) -> impl Iterator<Item = &SandboxSchemaManifest> {
        [&self.commons.manifest, &self.commercial.manifest].into_iter().chain(&self.next)
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = &BlocksByCid> {
        [&self.commons.blocks, &self.commercial.blocks].into_iter()
    }

    /// All documents served over https, by host and path.
    pub(crate) fn documents(&self) -> impl Iterator<Item = ((&'static str, String), ServedFile)> {
        let released = self.commons.documents.iter().chain(&self.commercial.documents);
        let released = released.map(|((host, path), document)| ((*host, path.clone()), document.clone()));
        released.chain(self.next.iter().map(|manifest| {
            let path = manifest.url.trim_start_matches("https://").trim_start_matches(SCHEMAS_HOST);
            ((SCHEMAS_HOST, path.to_owned()), ServedFile::served_correctly(manifest.bytes.clone()))
        }))
    }

    fn release_for_class(&self, class: VerbProtocolLayer) -> &SandboxSchemaLayer {
        match class {
            VerbProtocolLayer::Commons => &self.commons,
            VerbProtocolLayer::Commercial => &self.commercial,
        }
    }
}

impl SandboxSchemaLayer {
    fn new(class: VerbProtocolLayer, defects: &[DefectiveSchema]) -> Self {
        let verbs = class_verbs(class);
        let fault = |verb: &str, kind: VerbSchemaKind| {
            defects
                .iter()
                .find(|defect| defect.verb == verb && kind == VerbSchemaKind::Request)
                .map(|defect| defect.defect)
        };
        let mut files: BTreeMap<String, Bytes> = BTreeMap::new();
        let mut faults: BTreeMap<String, SchemaDefectKind> = BTreeMap::new();
        for (verb, _) in verbs {
            for kind in VerbSchemaKind::BOTH {
                let path = kind.schema_path(class, verb);
                let fault = fault(verb, kind);
                files.insert(path.clone(), kind.verb_schema(class, verb, fault));
                faults.extend(fault.map(|fault| (path, fault)));
            }
        }
        files.insert(SHARED.to_owned(), shared_schema());

        let (cid, mut blocks) = build::build_directory_tree(&files, UnixFsLayout::default());
        let mut documents = BTreeMap::new();
        for (path, body) in &files {
            let fault = faults.get(path).copied();
            if class == VerbProtocolLayer::Commons && fault == Some(SchemaDefectKind::Unavailable) {
                blocks.remove(&ContentId::from_raw_block(body));
            }
            for (host, behaviour) in serving_hosts(class, fault) {
                let other = mutated_schema(body);
                let document = ServedFile { behaviour, body: body.clone(), other };
                if host == MIRROR_HOST {
                    documents.insert((host, format!("/ipfs/{cid}/{path}")), document.clone());
                }
                documents.insert((host, schema_url_path(path)), document);
            }
        }
        let digests = files.iter().map(|(path, body)| (path.clone(), Digest::compute(body).to_hex())).collect();
        let manifest = release_manifest(class, verbs, &cid, &files);
        let path = manifest.url.trim_start_matches("https://").trim_start_matches(SCHEMAS_HOST).to_owned();
        documents.insert((SCHEMAS_HOST, path), ServedFile::served_correctly(manifest.bytes.clone()));
        Self { cid, blocks, manifest, documents, digests }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VerbSchemaKind {
    Request,
    Receipt,
}

impl VerbSchemaKind {
    const BOTH: [Self; 2] = [Self::Request, Self::Receipt];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Receipt => "receipt",
        }
    }

    /// The path of a verb's schema within the layer's directory.
    fn schema_path(self, class: VerbProtocolLayer, verb: &str) -> String {
        let kind = self.as_str();
        format!("{}/{verb}/{kind}s/{verb}.{kind}.schema.json", class.as_str())
    }

    /// The required and the optional members of a message, besides the envelope: a subset of those in the published
    /// schemas.
    fn message_members(self) -> (Value, Value) {
        let text = json!({"type": "string", "minLength": 1, "maxLength": 128});
        match self {
            Self::Request => {
                let modalities = json!({"type": "array", "items": {"enum": ["text", "json", "file"]}, "minItems": 1});
                let members = json!({
                    "actor": {"type": "string", "description": "Who asks.", "minLength": 1, "maxLength": 256},
                    "limits": {"type": "object", "properties": {"max_output_tokens": {"type": "integer", "minimum": 1}}},
                    "channel": {"type": "object", "properties": {
                        "protocol": {"enum": ["https", "http"]},
                        "input_modalities": modalities,
                        "output_modalities": modalities,
                    }},
                    "input": {"type": "object", "required": ["content"], "properties": {
                        "content": {"type": "string", "description": "What it is done to.", "minLength": 1},
                    }},
                });
                (json!(["x402", "actor", "input"]), members)
            }
            Self::Receipt => {
                let time = json!({"type": "string", "format": "date-time"});
                let members = json!({
                    "trace": {"type": "object", "required": ["trace_id"], "properties": {
                        "trace_id": text,
                        "started_at": time,
                        "completed_at": time,
                    }},
                    "status": {"enum": ["success", "error", "delegated"]},
                    "result": {"type": "object"},
                    "error": {"type": "object"},
                    "metadata": {"type": "object"},
                });
                (json!(["x402", "trace", "status"]), members)
            }
        }
    }

    fn verb_schema(self, class: VerbProtocolLayer, verb: &str, fault: Option<SchemaDefectKind>) -> Bytes {
        let path = self.schema_path(class, verb);
        let body = match self {
            Self::Request => "input",
            Self::Receipt => "result",
        };
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": schema_id(&path),
            "title": format!("{verb} {}, as the sandbox has it", self.as_str()),
            "type": "object",
            "additionalProperties": false,
        });
        let (required, mut properties) = self.message_members();
        properties["x402"] = json!({"allOf": [
            {"$ref": schema_id(SHARED)},
            {"properties": {"verb": {"const": verb}, "version": {"const": "1.0.0"}}},
        ]});
        schema["required"] = required;
        schema["properties"] = properties;
        match fault {
            Some(SchemaDefectKind::UnknownKeyword) => schema["requiredAtNoon"] = json!(true),
            Some(SchemaDefectKind::ForeignReference) => {
                schema["properties"][body] = json!({"$ref": "https://elsewhere.sandbox.example/other.schema.json"});
            }
            Some(SchemaDefectKind::WrongId) => schema["$id"] = json!(schema_id("commons/elsewhere.schema.json")),
            _ => {}
        }
        pretty_json(&schema)
    }
}

/// Path of the schema that the others refer to. Both layers contain the same file.
const SHARED: &str = "_shared/x402.schema.json";

fn shared_schema() -> Bytes {
    pretty_json(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": schema_id(SHARED),
        "title": "x402 envelope, as the sandbox has it",
        "type": "object",
        "additionalProperties": false,
        "required": ["verb", "version"],
        "properties": {
            "verb": {"type": "string"},
            "version": {"type": "string"},
            "entry": {"type": "string", "format": "uri"},
            "request_id": {"type": "string", "minLength": 1, "maxLength": 128},
        },
    }))
}

/// The hosts that serve a schema, and how.
fn serving_hosts(class: VerbProtocolLayer, fault: Option<SchemaDefectKind>) -> Vec<(&'static str, WebServerBehaviour)> {
    let canonical = match fault {
        Some(SchemaDefectKind::Unavailable) => WebServerBehaviour::Status(503),
        Some(SchemaDefectKind::Mutated) => WebServerBehaviour::Other,
        _ => WebServerBehaviour::Ok,
    };
    let mirror = match fault {
        Some(SchemaDefectKind::Unavailable | SchemaDefectKind::MirrorDown) => WebServerBehaviour::Status(503),
        Some(SchemaDefectKind::MirrorOther) => WebServerBehaviour::Other,
        _ => WebServerBehaviour::Ok,
    };
    match class {
        VerbProtocolLayer::Commons => vec![(SCHEMAS_HOST, mirror)],
        VerbProtocolLayer::Commercial => vec![(SCHEMAS_HOST, canonical), (MIRROR_HOST, mirror)],
    }
}

fn release_manifest(
    class: VerbProtocolLayer,
    verbs: &[(&str, &str)],
    cid: &ContentId,
    files: &BTreeMap<String, Bytes>,
) -> SandboxSchemaManifest {
    let layer = class.as_str();
    let file = |path: &str| {
        let body = files.get(path).cloned().unwrap_or_default();
        let mut entry = json!({
            "path": schema_url_path(path).trim_start_matches('/'),
            "id": schema_id(path),
            "bytes": body.len(),
            "sha256": Digest::compute(&body).to_hex(),
        });
        if class == VerbProtocolLayer::Commons {
            entry["published_crlf_sha256"] = json!(Digest::compute(&with_crlf_endings(&body)).to_hex());
        }
        entry
    };
    let schema = |kind: VerbSchemaKind, verb: &str| {
        let path = kind.schema_path(class, verb);
        let mut entry = file(&path);
        entry["canonical"] = json!(canonical_url(class, cid, &path));
        entry["mirrors"] = json!([mirror_url(class, &path)]);
        entry
    };
    let verbs: Vec<Value> = verbs
        .iter()
        .map(|(verb, category)| {
            let aliases: Vec<&str> = ALIASES.iter().filter(|(of, _)| of == verb).map(|(_, alias)| *alias).collect();
            json!({
                "name": verb,
                "category": category,
                "aliases": aliases,
                "request": schema(VerbSchemaKind::Request, verb),
                "receipt": schema(VerbSchemaKind::Receipt, verb),
            })
        })
        .collect();
    let bytes = pretty_json(&json!({
        "schema": "clresolve.manifest/1",
        "id": format!("protocol-{layer}/1.0.0"),
        "class": layer,
        "version": "1.0.0",
        "source": {"repository": "sandbox", "commit": "none", "licence": "Apache-2.0"},
        "directory_cid": cid.to_string(),
        "verbs": verbs,
        "shared": [file(SHARED)],
    }));
    let url = format!("https://{SCHEMAS_HOST}/manifests/protocol-{layer}-1.0.0.json");
    SandboxSchemaManifest { url, digest: Digest::compute(&bytes).to_string(), bytes }
}

const fn class_verbs(class: VerbProtocolLayer) -> &'static [(&'static str, &'static str)] {
    match class {
        VerbProtocolLayer::Commons => &COMMONS,
        VerbProtocolLayer::Commercial => &COMMERCIAL,
    }
}

/// A manifest of the 1.1.0 line: flat paths, and no schema digests.
fn next_release_manifest(class: VerbProtocolLayer) -> SandboxSchemaManifest {
    let layer = class.as_str();
    let schema = |verb: &str, kind: VerbSchemaKind| {
        let path = format!("schemas/v1.1.0/{layer}/{verb}/{verb}.{}.schema.json", kind.as_str());
        let id = format!("https://{SCHEMAS_HOST}/{path}");
        json!({"canonical": id, "mirrors": [], "path": path, "id": id})
    };
    let verb = |(verb, category): &(&str, &str)| {
        json!({
            "name": verb,
            "category": category,
            "request": schema(verb, VerbSchemaKind::Request),
            "receipt": schema(verb, VerbSchemaKind::Receipt),
        })
    };
    let bytes = pretty_json(&json!({
        "schema": "clresolve.manifest/1",
        "id": format!("protocol-{layer}/1.1.0"),
        "class": layer,
        "version": "1.1.0",
        "source": {"repository": "sandbox", "commit": "none", "licence": "Apache-2.0"},
        "verbs": class_verbs(class).iter().map(verb).collect::<Vec<_>>(),
        "shared": [],
    }));
    let url = format!("https://{SCHEMAS_HOST}/manifests/protocol-{layer}-1.1.0.json");
    SandboxSchemaManifest { url, digest: Digest::compute(&bytes).to_string(), bytes }
}

fn canonical_url(class: VerbProtocolLayer, cid: &ContentId, path: &str) -> String {
    match class {
        VerbProtocolLayer::Commons => format!("ipfs://{cid}/{path}"),
        VerbProtocolLayer::Commercial => schema_id(path),
    }
}

fn mirror_url(class: VerbProtocolLayer, path: &str) -> String {
    match class {
        VerbProtocolLayer::Commons => schema_id(path),
        VerbProtocolLayer::Commercial => format!("https://{MIRROR_HOST}{}", schema_url_path(path)),
    }
}

/// The URL path of the file at `path` of a layer.
fn schema_url_path(path: &str) -> String {
    format!("/schemas/v1.0.0/{path}")
}

/// The `$id` of the schema at `path`.
fn schema_id(path: &str) -> String {
    format!("https://{SCHEMAS_HOST}/schemas/v1.0.0/{path}")
}

/// The same schema with another title.
fn mutated_schema(schema: &[u8]) -> Bytes {
    Bytes::from(String::from_utf8_lossy(schema).replacen("\"title\": \"", "\"title\": \"Not ", 1))
}

fn pretty_json(value: &Value) -> Bytes {
    Bytes::from(format!("{value:#}\n"))
}

fn with_crlf_endings(text: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(text).replace('\n', "\r\n").into_bytes()
}
