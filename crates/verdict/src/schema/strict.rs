//! Checks whether a schema is strict in the sense of Ajv's strict mode: every keyword in it has an effect.
//!
//! A traversal of the document, without compiling it, detects:
//! an unknown keyword; an unknown format; a reference to an unavailable schema; a dialect other than 2020-12; `then` or
//! `else` without `if`, and `if` without either; `minContains` or `maxContains` without `contains`; a value that cannot
//! be a schema where one is required.
//!
//! Not checked: Ajv's style rules that change no verdict (`strictTypes`, `strictTuples`, `strictRequired`, ignored
//! defaults, properties that also match a pattern).

use std::collections::BTreeSet;
use std::fmt;

use jsonschema::Draft;
use serde_json::{Map, Value};

use clresolve_core::json::json_type;
use clresolve_core::json::pointer;
use clresolve_core::text::excerpt_text;

/// Maximum number of faults reported for one schema.
pub const MAX_FAULTS: usize = 16;

/// Maximum number of other schemas that one may refer to. The published schemas refer to four, directly and indirectly.
pub const MAX_REFERENCES: usize = 32;

/// Maximum length, in bytes, of an `$id` that serves as the base of relative references. Those of the published schemas
/// have about a hundred bytes.
const MAX_BASE_BYTES: usize = 2048;

/// The dialect of cards and schemas.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The parts of a schema that a strict compiler would reject. One pass finds them, before it is known which other
/// schemas are available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictModeFaults(Vec<StrictModeFault>);

impl StrictModeFaults {
    /// Analyses `schema`.
    pub fn analyse(schema: &Value) -> Self {
        let base = schema_id(schema);
        let url = base.filter(|base| base.len() <= MAX_BASE_BYTES).and_then(|base| url::Url::parse(base).ok());
        let mut walk = StrictModeFaultCollector {
            base,
            url,
            options: jsonschema::options(),
            place: String::new(),
            targets: BTreeSet::new(),
            faults: 0,
            found: Vec::new(),
        };
        walk.visit_schema(schema);
        Self(walk.found)
    }

    /// The faults, at most [`MAX_FAULTS`]. `at_hand` returns whether the schema with this absolute URI (without
    /// fragment) is available. References to the schema itself are always allowed.
    pub fn faults(&self, at_hand: impl Fn(&str) -> bool) -> impl Iterator<Item = &StrictModeFault> {
        let is_refused = move |fault: &&StrictModeFault| !fault.unless_at_hand.as_deref().is_some_and(&at_hand);
        self.0.iter().filter(is_refused).take(MAX_FAULTS)
    }

    /// The absolute URIs, without fragment, of the other schemas that it refers to, at most [`MAX_REFERENCES`].
    pub fn references(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|fault| fault.unless_at_hand.as_deref())
    }
}

/// The `$id` of a schema.
pub fn schema_id(schema: &Value) -> Option<&str> {
    schema.get("$id").and_then(Value::as_str)
}

/// One part of a schema that a strict compiler rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictModeFault {
    /// JSON Pointer into the schema.
    pub pointer: String,
    /// The kind of fault.
    pub kind: StrictModeFaultKind,
    /// There is no fault if the schema with this absolute URI is available.
    unless_at_hand: Option<String>,
}

impl fmt::Display for StrictModeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.kind, self.pointer)
    }
}

/// The kind of a fault in a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrictModeFaultKind {
    /// A keyword that 2020-12 does not define.
    #[error("unknown keyword {0:?}")]
    UnknownKeyword(String),
    /// A format that 2020-12 does not define, or that cannot be asserted here.
    #[error("unknown format {0:?}")]
    UnknownFormat(String),
    /// A reference to an unavailable schema.
    #[error("unresolved reference {0:?}")]
    UnresolvedReference(String),
    /// A dialect other than 2020-12.
    #[error("unknown dialect {0:?}")]
    UnknownDialect(String),
    /// A keyword that has no effect without another one in the same schema.
    #[error("{0} without {1}")]
    Ignored(&'static str, &'static str),
    /// A value that is not a schema where one is required.
    #[error("{0} instead of a schema")]
    NotSchema(&'static str),
}

/// Keywords whose value is a schema.
const ONE: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value maps names to schemas. `definitions` is the old spelling of `$defs`, which Ajv still accepts.
const NAMED: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
/// Keywords that hold a reference.
const REFERENCE: [&str; 2] = ["$dynamicRef", "$ref"];
/// Keywords whose value is validated during compilation, or has no effect on validation.
const PLAIN: [&str; 36] = [
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$id",
    "$schema",
    "$vocabulary",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];

struct StrictModeFaultCollector<'s> {
    base: Option<&'s str>,
    url: Option<url::Url>,
    options: jsonschema::ValidationOptions<'static>,
    place: String,
    /// The other schemas that are referred to.
    targets: BTreeSet<&'s str>,
    faults: usize,
    found: Vec<StrictModeFault>,
}

impl<'s> StrictModeFaultCollector<'s> {
    /// The parser bounds the depth of the document and therefore the recursion.
    fn visit_schema(&mut self, schema: &'s Value) {
        match schema {
            Value::Bool(_) => {}
            Value::Object(object) => self.visit_object(object),
            other => self.add_fault(StrictModeFaultKind::NotSchema(json_type(other))),
        }
    }

    fn visit_object(&mut self, object: &'s Map<String, Value>) {
        self.check_keyword_pairs(object);
        for (keyword, value) in object {
            if self.faults == MAX_FAULTS {
                return;
            }
            self.visit_below_segment(keyword, |walk| walk.visit_keyword(keyword, value));
        }
    }

    fn visit_keyword(&mut self, keyword: &str, value: &'s Value) {
        if ONE.contains(&keyword) {
            self.visit_schema(value);
        } else if LIST.contains(&keyword) {
            for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                self.visit_below_segment(&at.to_string(), |walk| walk.visit_schema(item));
            }
        } else if NAMED.contains(&keyword) {
            for (name, item) in value.as_object().into_iter().flatten() {
                self.visit_below_segment(name, |walk| walk.visit_schema(item));
            }
        } else if let Some(text) = value.as_str() {
            self.visit_text_keyword(keyword, text);
        } else if !PLAIN.contains(&keyword) && !REFERENCE.contains(&keyword) {
            self.add_fault(StrictModeFaultKind::UnknownKeyword(excerpt_text(keyword)));
        }
    }

    fn visit_text_keyword(&mut self, keyword: &str, text: &'s str) {
        match keyword {
            "$ref" | "$dynamicRef" => self.record_reference(text),
            "$schema" if text.trim_end_matches('#') != DIALECT => {
                self.add_fault(StrictModeFaultKind::UnknownDialect(excerpt_text(text)));
            }
            "format" if !self.options.is_known_format(Draft::Draft202012, text) => {
                self.add_fault(StrictModeFaultKind::UnknownFormat(excerpt_text(text)));
            }
            known if PLAIN.contains(&known) => {}
            _ => self.add_fault(StrictModeFaultKind::UnknownKeyword(excerpt_text(keyword))),
        }
    }

    /// Records each target once.
    fn record_reference(&mut self, reference: &'s str) {
        let target = reference.split_once('#').map_or(reference, |(target, _)| target);
        if target.is_empty() || self.base == Some(target) || self.targets.contains(target) {
            return;
        }
        let kind = StrictModeFaultKind::UnresolvedReference(excerpt_text(reference));
        if self.targets.len() == MAX_REFERENCES {
            return self.add_fault(kind);
        }
        self.targets.insert(target);
        let unless_at_hand = Some(self.absolute_uri(target));
        self.found.push(StrictModeFault { pointer: excerpt_text(&self.place), kind, unless_at_hand });
    }

    fn absolute_uri(&self, target: &str) -> String {
        let joined = self.url.as_ref().and_then(|base| base.join(target).ok());
        joined.map_or_else(|| target.to_owned(), String::from)
    }

    fn check_keyword_pairs(&mut self, object: &Map<String, Value>) {
        let has = |keyword: &str| object.contains_key(keyword);
        let rules = [
            (has("then") && !has("if"), "then", "if"),
            (has("else") && !has("if"), "else", "if"),
            (has("if") && !has("then") && !has("else"), "if", "then or else"),
            (has("minContains") && !has("contains"), "minContains", "contains"),
            (has("maxContains") && !has("contains"), "maxContains", "contains"),
        ];
        for (_, keyword, other) in rules.into_iter().filter(|(broken, ..)| *broken) {
            self.add_fault(StrictModeFaultKind::Ignored(keyword, other));
        }
    }

    fn visit_below_segment(&mut self, segment: &str, walk: impl FnOnce(&mut Self)) {
        let length = self.place.len();
        pointer::push_pointer_segment(&mut self.place, segment);
        walk(self);
        self.place.truncate(length);
    }

    fn add_fault(&mut self, kind: StrictModeFaultKind) {
        if self.faults < MAX_FAULTS {
            self.faults += 1;
            self.found.push(StrictModeFault { pointer: excerpt_text(&self.place), kind, unless_at_hand: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn only(schema: &Value) -> (String, StrictModeFaultKind) {
        let strictness = StrictModeFaults::analyse(schema);
        let mut faults: Vec<_> = strictness.faults(|uri| uri == "https://schemas.example/known").cloned().collect();
        assert_eq!(faults.len(), 1, "{faults:?}");
        let fault = faults.remove(0);
        (fault.pointer, fault.kind)
    }

    #[test]
    fn each_fault_is_found_where_it_stands() {
        let cases = [
            (
                json!({"properties": {"a": {"minLenght": 1}}}),
                "/properties/a/minLenght",
                StrictModeFaultKind::UnknownKeyword("minLenght".into()),
            ),
            (json!({"dependencies": {}}), "/dependencies", StrictModeFaultKind::UnknownKeyword("dependencies".into())),
            (
                json!({"markdownDescription": "x"}),
                "/markdownDescription",
                StrictModeFaultKind::UnknownKeyword("markdownDescription".into()),
            ),
            (
                json!({"items": {"format": "phone"}}),
                "/items/format",
                StrictModeFaultKind::UnknownFormat("phone".into()),
            ),
            (
                json!({"allOf": [{"$ref": "https://other.example/x#/a"}]}),
                "/allOf/0/$ref",
                StrictModeFaultKind::UnresolvedReference("https://other.example/x#/a".into()),
            ),
            (
                json!({"$schema": "http://json-schema.org/draft-07/schema#"}),
                "/$schema",
                StrictModeFaultKind::UnknownDialect("http://json-schema.org/draft-07/schema#".into()),
            ),
            (json!({"if": {}}), "", StrictModeFaultKind::Ignored("if", "then or else")),
            (json!({"then": {}}), "", StrictModeFaultKind::Ignored("then", "if")),
            (json!({"not": {"maxContains": 1}}), "/not", StrictModeFaultKind::Ignored("maxContains", "contains")),
            (json!({"items": [{}]}), "/items", StrictModeFaultKind::NotSchema("a list")),
        ];
        for (schema, pointer, kind) in cases {
            assert_eq!(only(&schema), (pointer.to_owned(), kind), "{schema}");
        }
    }

    #[test]
    fn names_and_values_are_not_mistaken_for_keywords() {
        let schema = json!({"$id": "https://schemas.example/me", "$ref": "#/$defs/a", "$defs": {"a": {"enum": [{"x": 1}]}},
            "properties": {"format": {"const": {"y": 2}}, "if": {"$ref": "known"}, "me": {"$ref": "me#/$defs/a"}},
            "default": {"z": 3}, "if": true, "then": false});
        let at_hand = |uri: &str| ["https://schemas.example/known", "https://schemas.example/me"].contains(&uri);
        assert_eq!(StrictModeFaults::analyse(&schema).faults(at_hand).count(), 0);
    }

    #[test]
    fn faults_are_bounded() {
        let many: Map<String, Value> = (0..100).map(|at| (format!("x{at}"), Value::Null)).collect();
        assert_eq!(StrictModeFaults::analyse(&Value::Object(many)).faults(|_| false).count(), MAX_FAULTS);
    }

    #[test]
    fn references_to_others_are_bounded() {
        let to = |count: usize| -> Vec<Value> { (0..count).map(|at| json!({"$ref": format!("s{at}#/x")})).collect() };
        let many = |count: usize| json!({"$id": "https://schemas.example/me", "allOf": to(count), "anyOf": to(count)});
        let allowed = StrictModeFaults::analyse(&many(MAX_REFERENCES));
        assert_eq!(allowed.references().count(), MAX_REFERENCES);
        assert_eq!(allowed.references().next(), Some("https://schemas.example/s0"));
        assert_eq!(allowed.faults(|_| true).count(), 0);
        let beyond = StrictModeFaults::analyse(&many(MAX_REFERENCES + 1));
        assert_eq!(beyond.references().count(), MAX_REFERENCES);
        assert!(beyond.faults(|_| true).count() > 0);
    }

    /// Regression: a base of 200 KB was parsed once for each of thousands of references.
    #[test]
    fn no_reference_starts_from_an_endless_base() {
        let schema = |id: String| json!({"$id": id, "$ref": "other"});
        let base = "https://schemas.example/";
        let from =
            |id: String| StrictModeFaults::analyse(&schema(id)).references().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(from(base.to_owned()), [format!("{base}other")]);
        assert_eq!(from(format!("{base}{}", "x".repeat(MAX_BASE_BYTES))), ["other"]);
    }
}
