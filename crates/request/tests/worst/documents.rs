//! What judges the worst requests.

#[path = "kinds.rs"]
pub(crate) mod kinds;

use clresolve_request::{RequestJudgement, judge};
use clresolve_verdict::sample::bound;
use clresolve_verdict::schema::bound::CompiledSchema;
use serde_json::json;

/// What a request is held against: up to three alternatives for a value, as in the published schemas of requests. Each that
/// refuses a value takes room.
pub(crate) struct World(CompiledSchema);

impl World {
    pub(crate) fn new() -> Self {
        Self(bound(&json!({
            "$id": "https://schemas.example/request.json",
            "type": "object",
            "required": ["x402", "input"],
            "additionalProperties": false,
            "properties": {
                "x402": {"type": "object", "properties": {
                    "verb": {"const": "sum"}, "version": {"const": "1.1.0"}, "request_id": {"type": "string"}}},
                "input": {"type": "object"},
                "any": {"type": "object"},
                "values": {"type": "array", "items": {
                    "anyOf": [{"type": "number", "minimum": 2}, {"type": "object"}, {"const": 0}]}},
                "objects": {"type": "array", "items": {"type": "object", "required": ["a", "b", "c"],
                    "additionalProperties": false, "properties": {"a": {}, "b": {}, "c": {}}}},
                "named": {"type": "object", "propertyNames": {"pattern": "^([a-z]+[0-9]?)*$"},
                    "patternProperties": {"^a.*[a-m]$": {"const": 1}, "[0-9]{9}[a-z]$": {"const": 0}}},
                "text": {"type": "string", "maxLength": 1000, "allOf": [
                    {"pattern": "^([a-z]+[0-9]?)*[A-Z]$"}, {"pattern": "(a|b|ab)*c[^c]{20}$"}, {"pattern": "\\S+@\\S+"}]},
                "formats": {"type": "array", "items": {
                    "anyOf": [{"format": "uri"}, {"format": "date-time"}, {"format": "email", "maxLength": 9}]}},
                "unique": {"type": "array", "uniqueItems": true},
                "deep": {"$ref": "#/$defs/deep"},
            },
            "$defs": {"deep": {"type": "object", "additionalProperties": false,
                "properties": {"deep": {"anyOf": [{"$ref": "#/$defs/deep"}, {"type": "array", "items": {"type": "string"}}]}}}},
        })))
    }

    /// Judges the request.
    #[inline(never)]
    pub(crate) fn judge_measured(&self, request: &[u8]) -> RequestJudgement {
        self.judge(request)
    }

    /// The same, under a name that no counter looks for.
    #[inline(never)]
    pub(crate) fn judge(&self, request: &[u8]) -> RequestJudgement {
        judge(request, Some(&self.0))
    }
}
