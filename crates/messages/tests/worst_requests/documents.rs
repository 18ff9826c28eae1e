//! Judges the worst-case requests.

#[path = "kinds.rs"]
pub(crate) mod kinds;

use std::hint::black_box;

use clresolve_core::state::TrustState;
use clresolve_messages::request::document::RequestCheckDocumentInputs;
use clresolve_messages::request::{OutgoingAgentRequest, RequestCheckDocument, judge_request};
use clresolve_verdict::sample::{self, sample_bound_schema};
use clresolve_verdict::schema::bound::BoundSchema;
use clresolve_verdict::verdict::Verdict;
use jiff::Timestamp;
use serde_json::json;

/// Test data about the agent.
pub(crate) struct World {
    verdict: Verdict,
    schema: BoundSchema,
}

impl World {
    /// The schema has up to three alternatives per value, like the published request schemas. Each alternative that
    /// rejects a value allocates memory.
    pub(crate) fn new() -> Self {
        let schema = sample_bound_schema(&json!({
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
        }));
        let verdict =
            sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 300).verdict().as_ref().clone();
        Self { verdict, schema }
    }

    /// Processes one question like the daemon: parses it, judges it, and serializes the answer.
    #[inline(never)]
    pub(crate) fn judge_measured(&self, question: &[u8]) -> RequestCheckDocument {
        self.judge(question)
    }

    /// The same under a function name that no instruction counter matches.
    #[inline(never)]
    pub(crate) fn judge(&self, question: &[u8]) -> RequestCheckDocument {
        let question = OutgoingAgentRequest::from_json(question).expect("a question");
        let judgement = judge_request(&question.request, Some(&self.schema));
        let (verdict, verb, bound) = (&self.verdict, &*question.verb, Ok(&self.schema));
        let found = RequestCheckDocument::from_judgement(
            Some(judgement),
            &RequestCheckDocumentInputs { verdict, verb, bound, now: Timestamp::UNIX_EPOCH },
        );
        black_box(serde_json::to_vec(&found).expect("JSON"));
        found
    }
}
