//! JSON Schema 2020-12, strict and offline: formats are asserted, references are never fetched, and schemas that a
//! strict compiler would reject are rejected.

pub mod bound;
pub mod served;
pub mod strict;

use jsonschema::{Draft, PatternOptions, Registry, Validator};
use serde_json::Value;

use clresolve_core::digest::Digest;
use clresolve_core::json;
use clresolve_core::json::pointer;
use clresolve_core::json::{JsonError, JsonLimits};
use clresolve_core::text::excerpt_text;

use self::strict::StrictModeFaults;

/// Maximum size of one compiled pattern, in bytes. Patterns run in linear time, so this bounds memory.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// Maximum number of violations reported for one document, if the verdict does not depend on further ones.
pub const MAX_VIOLATIONS: usize = 64;

/// Maximum number of violations evaluated in one document. An honest card of 256 KiB that was written for another
/// version of its schema has a few hundred; a document with more is too complex to judge.
pub const MAX_OBJECTIONS: usize = 4096;

/// A compiled schema that passed the strictness check.
#[derive(Debug)]
pub struct StrictSchema {
    id: Option<String>,
    digest: Digest,
    validator: Validator,
}

impl StrictSchema {
    /// Compiles the schema in `bytes`. Its references may lead to itself and, by `$id`, to the schemas of `bundle`.
    ///
    /// # Errors
    /// [`SchemaError`] if the bytes are not strict JSON, the schema is not strict, or it does not compile.
    pub fn compile(bytes: &[u8], bundle: &[Value]) -> Result<Self, SchemaError> {
        let document = json::parse_strict_json(bytes, JsonLimits::DOCUMENT)?;
        let at_hand = |uri: &str| bundle.iter().any(|schema| strict::schema_id(schema) == Some(uri));
        let faults: Vec<_> = StrictModeFaults::analyse(&document).faults(at_hand).cloned().collect();
        if !faults.is_empty() {
            return Err(SchemaError::NotStrict(faults));
        }
        let validator =
            compile_schema(&document, bundle).map_err(|detail| SchemaError::NotCompiled(excerpt_text(&detail)))?;
        Ok(Self { id: strict::schema_id(&document).map(str::to_owned), digest: Digest::compute(bytes), validator })
    }

    /// The schema's `$id`.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// SHA-256 of the schema's bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Whether `instance` is valid.
    pub fn accepts(&self, instance: &Value) -> bool {
        self.validator.is_valid(instance)
    }

    /// The violations in `instance`, at most [`MAX_VIOLATIONS`]; empty if it is valid.
    pub fn violations(&self, instance: &Value) -> Vec<SchemaViolation> {
        self.every_violation(instance).take(MAX_VIOLATIONS).collect()
    }

    /// All violations in `instance`, up to slightly more than [`MAX_OBJECTIONS`]. A count above [`MAX_OBJECTIONS`]
    /// means that there may be more. For callers that must not miss a violation among less important ones.
    pub fn every_violation<'i>(&'i self, instance: &'i Value) -> impl Iterator<Item = SchemaViolation> + 'i {
        let is_valid = self.accepts(instance);
        let errors = (!is_valid).then(|| self.validator.iter_errors(instance));
        errors.into_iter().flatten().flat_map(|error| SchemaViolation::from_error(&error)).take(MAX_OBJECTIONS + 1)
    }
}

/// Whether `document` is a schema of JSON Schema 2020-12; unknown keywords are allowed. If `$schema` names another
/// dialect, that dialect applies. Nothing is compiled, and references are ignored.
pub fn is_json_schema(document: &Value) -> bool {
    match document.get("$schema").and_then(Value::as_str) {
        Some(dialect) if dialect.trim_end_matches('#') != strict::DIALECT => true,
        _ => jsonschema::draft202012::meta::is_valid(document),
    }
}

/// One violation of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON Pointer to the value; to the member itself if it is missing or not allowed.
    pub pointer: String,
    /// The violated keyword.
    pub keyword: String,
    /// Description in one sentence; untrusted text is truncated.
    pub detail: String,
}

impl SchemaViolation {
    fn from_error(error: &jsonschema::ValidationError<'_>) -> Vec<Self> {
        use jsonschema::error::ValidationErrorKind as Kind;

        let place = error.instance_path().as_str();
        let keyword = error.kind().keyword();
        let at = |pointer: String, detail: String| Self { pointer, keyword: keyword.to_owned(), detail };
        let member = |name: &str, detail: &str| {
            let mut pointer = place.to_owned();
            pointer::push_pointer_segment(&mut pointer, name);
            at(pointer, detail.to_owned())
        };
        match error.kind() {
            Kind::Required { property } => {
                vec![member(property.as_str().unwrap_or_default(), "a required member is missing")]
            }
            Kind::AdditionalProperties { unexpected } => unexpected
                .iter()
                .take(MAX_VIOLATIONS)
                .map(|name| member(name, "the schema does not define this member"))
                .collect(),
            _ => vec![at(place.to_owned(), excerpt_text(&error.masked().to_string()))],
        }
    }
}

/// Why bytes are not a usable schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Not strict JSON.
    #[error("not a schema: {0}")]
    Json(#[from] JsonError),
    /// A strict compiler would reject it.
    #[error("not a strict schema: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NotStrict(Vec<strict::StrictModeFault>),
    /// It does not compile.
    #[error("the schema does not compile: {0}")]
    NotCompiled(String),
}

/// A retriever that never finds anything: a referenced schema is bundled or rejected.
struct RefusingRetriever;

impl jsonschema::Retrieve for RefusingRetriever {
    fn retrieve(&self, uri: &jsonschema::Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(excerpt_text(&format!("{uri} is not bundled")).into())
    }
}

fn compile_schema(document: &Value, bundle: &[Value]) -> Result<Validator, String> {
    let mut resources = Registry::new().retriever(RefusingRetriever);
    for schema in bundle {
        let id = strict::schema_id(schema).ok_or("a bundled schema has no $id")?;
        resources = resources.add(id, schema).map_err(|e| e.to_string())?;
    }
    let registry = resources.prepare().map_err(|e| e.to_string())?;
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(false)
        .with_retriever(RefusingRetriever)
        .with_registry(&registry)
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES))
        .build(document)
        .map_err(|e| e.masked().to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(document: &Value) -> Result<StrictSchema, SchemaError> {
        StrictSchema::compile(document.to_string().as_bytes(), &[])
    }

    #[test]
    fn formats_are_asserted() {
        let schema = schema(&json!({"type": "object", "properties": {
            "u": {"type": "string", "format": "uri"}, "t": {"type": "string", "format": "date-time"}}}))
        .expect("a strict schema");
        assert!(schema.accepts(&json!({"u": "ipfs://x/y", "t": "2025-11-22T00:00:00Z"})));
        let violations = schema.violations(&json!({"u": "no uri", "t": "yesterday"}));
        let mut places: Vec<_> = violations.iter().map(|v| (v.pointer.as_str(), v.keyword.as_str())).collect();
        places.sort_unstable();
        assert_eq!(places, [("/t", "format"), ("/u", "format")]);
    }

    #[test]
    fn missing_and_extra_members_are_named_by_their_own_pointer() {
        let schema = schema(&json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false}))
        .expect("a strict schema");
        let pointers: Vec<_> =
            schema.violations(&json!({"x/y": 1, "z": 2})).into_iter().map(|violation| violation.pointer).collect();
        assert_eq!(pointers.len(), 3);
        for pointer in ["/a", "/x~1y", "/z"] {
            assert!(pointers.iter().any(|p| p == pointer), "{pointer} of {pointers:?}");
        }
    }

    #[test]
    fn references_lead_into_the_bundle_and_nowhere_else() {
        let shared = json!({"$id": "https://schemas.example/text", "type": "string"});
        let document = json!({"$ref": "https://schemas.example/text"}).to_string();
        let schema = StrictSchema::compile(document.as_bytes(), &[shared]).expect("a bundled reference");
        assert!(schema.accepts(&json!("x")) && !schema.accepts(&json!(1)));
        assert!(matches!(StrictSchema::compile(document.as_bytes(), &[]), Err(SchemaError::NotStrict(_))));
    }

    #[test]
    fn patterns_that_need_backtracking_are_refused() {
        assert!(matches!(schema(&json!({"type": "string", "pattern": "(a)\\1"})), Err(SchemaError::NotCompiled(_))));
        assert!(matches!(schema(&json!({"type": "strin"})), Err(SchemaError::NotCompiled(_))));
    }
}
