//! Validates requests against a test schema and checks the position of each finding.

use clresolve_verdict::sample::sample_bound_schema;
use serde_json::json;

use super::*;
use crate::request::template::RequestTemplate;

fn schema() -> BoundSchema {
    sample_bound_schema(&json!({
        "$id": "https://schemas.example/request.json",
        "type": "object",
        "additionalProperties": false,
        "required": ["x402", "input"],
        "properties": {
            "x402": {"type": "object", "required": ["verb", "version"], "properties": {
                "verb": {"const": "sum"}, "version": {"const": "1.0.0"}, "request_id": {"type": "string"}}},
            "input": {"type": "object", "properties": {"n": {"type": "number"}, "text": {"type": "string", "maxLength": 4}}},
        },
    }))
}

fn judged(text: &str) -> RequestJudgement {
    judge_request(text.as_bytes(), Some(&schema()))
}

/// Code, line and column of each finding.
fn found(text: &str) -> Vec<(&'static str, usize, usize)> {
    let place = |f: &DocumentFinding| (f.code.slug(), f.line.unwrap_or(0), f.column.unwrap_or(0));
    judged(text).findings.iter().map(place).collect()
}

const GOOD: &str =
    "{\n  \"x402\": {\"verb\": \"sum\", \"version\": \"1.0.0\", \"request_id\": \"r\"},\n  \"input\": {\"n\": 1.5}\n}";

#[test]
fn a_request_that_the_schema_allows_is_trusted() {
    let found = judged(GOOD);
    assert_eq!((found.trust_state(), found.findings), (TrustState::Trusted, vec![]));
    assert_eq!(found.sha256, Some(Digest::compute(GOOD.as_bytes())));
}

#[test]
fn what_the_schema_objects_to_stands_at_its_place() {
    let with = |from: &str, to: &str| found(&GOOD.replacen(from, to, 1));
    let invalid = "request-schema-invalid";
    assert_eq!(with("\"sum\"", "\"som\""), [(invalid, 2, 12)]);
    assert_eq!(with("\"n\": 1.5", "\"text\": \"longer\""), [(invalid, 3, 13)]);
    assert_eq!(with("{\"n\": 1.5}", "{}, \"ü\": 1"), [(invalid, 3, 16)]);
    assert_eq!(with(",\n  \"input\": {\"n\": 1.5}", ""), [(invalid, 1, 1)]);
    let other = judged(&GOOD.replacen("1.0.0", "1.1.0", 1));
    assert_eq!(other.trust_state(), TrustState::Untrusted);
    assert_eq!(other.findings[0].requirement.as_deref(), Some("PC-6"));
}

#[test]
fn a_request_without_an_identifier_is_noted() {
    let found = judged(&GOOD.replacen(", \"request_id\": \"r\"", "", 1));
    assert_eq!(found.trust_state(), TrustState::Trusted);
    let codes: Vec<_> = found.findings.iter().map(|finding| (finding.code, finding.line)).collect();
    assert_eq!(codes, [(ReasonCode::RequestIdMissing, Some(2))]);
}

#[test]
fn what_is_no_strict_json_is_refused_where_it_stops() {
    let invalid = "request-schema-invalid";
    assert_eq!(found(""), [(invalid, 1, 1)]);
    assert_eq!(found("[]"), [(invalid, 1, 1)]);
    assert_eq!(found("\u{feff}{}"), [(invalid, 1, 1)]);
    assert_eq!(found("{\n\"a\": \"\\ud800\"}")[0].1, 2);
    assert_eq!(found("{\n\"a\": 1e400}")[0].1, 2);
    assert_eq!(judge_request(b"{\"a\": \"\xff\"}", Some(&schema())).findings[0].code, ReasonCode::RequestSchemaInvalid);
}

#[test]
fn a_member_that_stands_there_twice_is_refused_at_the_second() {
    let twice = GOOD.replacen("\"n\": 1.5", "\"n\": 1, \"\\u006e\": 2", 1);
    assert_eq!(found(&twice), [("request-duplicate-key", 3, 21)]);
    let proto = GOOD.replacen("\"n\": 1.5}", "\"n\": 1.5}, \"__proto__\": {\"input\": 1}", 1);
    assert_eq!(found(&proto)[0].0, "request-schema-invalid", "a member like any other");
}

#[test]
fn numbers_that_readers_read_differently_are_refused() {
    for number in ["9007199254740993", "12345678901234567890", "0.1000000000000000000001", "-1e-400"] {
        assert_eq!(found(&GOOD.replacen("1.5", number, 1)), [("request-schema-invalid", 3, 13)], "{number}");
    }
    for number in ["9007199254740992", "-0", "1e300", "0.1", "2e0"] {
        assert_eq!(found(&GOOD.replacen("1.5", number, 1)), [], "{number}");
    }
}

#[test]
fn what_is_larger_than_what_is_judged_is_undecided() {
    let nested =
        GOOD.replacen("{\"n\": 1.5}", &format!("{}{}", "{\"a\":".repeat(20), "1".to_owned() + &"}".repeat(20)), 1);
    for text in
        [" ".repeat(crate::request::question::MAX_BYTES + 1), nested, format!("{{\"a\":[0{}]}}", ",0".repeat(9000))]
    {
        let found = judged(&text);
        assert_eq!(found.trust_state(), TrustState::Indeterminate);
        assert_eq!(found.findings[0].code, ReasonCode::RequestTooComplex);
        assert_eq!(found.sha256.is_some(), text.len() <= crate::request::question::MAX_BYTES, "no digest of a part");
    }
}

#[test]
fn without_a_schema_the_json_alone_is_judged() {
    assert_eq!(judge_request(b"{}", None).trust_state(), TrustState::Trusted);
    assert_eq!(judge_request(b"{\"a\":1,\"a\":1}", None).trust_state(), TrustState::Untrusted);
}

#[test]
fn a_template_passes_and_says_what_is_to_be_filled_in() {
    let made = RequestTemplate::from_schema(&schema(), "fresh", jiff::Timestamp::UNIX_EPOCH);
    assert_eq!(made.request, json!({"x402": {"verb": "sum", "version": "1.0.0", "request_id": "fresh"}, "input": {}}));
    assert!(made.is_valid && made.blanks.is_empty());
}

#[test]
fn a_template_follows_references_alternatives_and_conditions() {
    let schema = sample_bound_schema(&json!({
        "$id": "https://schemas.example/request.json",
        "$defs": {"money": {"type": "object", "required": ["amount", "currency"], "properties": {
            "amount": {"type": "string", "pattern": "^(0|[1-9][0-9]*)$"}, "currency": {"type": "string", "minLength": 3}}}},
        "type": "object",
        "required": ["kind", "items", "at", "step"],
        "properties": {
            "request_id": {"type": "string"},
            "kind": {"type": "string", "enum": ["order", "gift"], "description": "What it is."},
            "items": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/money"}},
            "at": {"type": "string", "format": "date-time"},
            "step": {"type": "integer", "minimum": 7, "multipleOf": 5},
            "strict": {"type": "boolean", "default": true},
            "note": {"type": "string", "maxLength": 3},
        },
        "anyOf": [{"required": ["strict"]}, {"required": ["note"]}],
        "if": {"properties": {"kind": {"const": "order"}}},
        "then": {"required": ["note"]},
    }));
    let made = RequestTemplate::from_schema(&schema, "fresh", jiff::Timestamp::UNIX_EPOCH);
    let money = json!({"amount": "0", "currency": "<currency>"});
    let expected = json!({"request_id": "fresh", "kind": "order", "items": [money, money], "at": "1970-01-01T00:00:00Z",
        "step": 10, "strict": true, "note": "<no"});
    assert_eq!(made.request, expected);
    assert!(made.is_valid);
    let places: Vec<_> = made.blanks.iter().map(|blank| blank.pointer.as_str()).collect();
    let expected =
        ["/kind", "/items/0/amount", "/items/0/currency", "/items/1/amount", "/items/1/currency", "/step", "/note"];
    assert_eq!(places, expected);
    assert_eq!(made.blanks[0].hint, r#"one of ["order","gift"]; What it is."#);
}
