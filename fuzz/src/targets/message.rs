//! What is asked about messages: whether a payment may be made, and whether a request may be sent.

use std::sync::LazyLock;

use clresolve_core::state::TrustState;
use clresolve_messages::request::judge::judge_request;
use clresolve_payment::PaymentDecisionRequest;
use clresolve_payment::decide::PaymentOptionSelection;
use clresolve_payment::request::{MAX_URL_BYTES, MAX_WORD_BYTES, PaymentDemand};
use clresolve_payment::terms::MAX_HEADERS;
use clresolve_verdict::sample::sample_bound_schema;
use clresolve_verdict::schema::bound::BoundSchema;
use serde_json::{Value, json};

/// What requests are held against.
static SCHEMA: LazyLock<BoundSchema> = LazyLock::new(|| {
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
});

/// A question about a payment. It is read alike each time, and within its bounds.
pub(crate) fn decision_request(input: &[u8]) {
    let read = PaymentDecisionRequest::from_json(input);
    assert_eq!(read, PaymentDecisionRequest::from_json(input));
    let Ok(request) = read else { return };
    assert!(request.name.len() <= MAX_WORD_BYTES && request.verb.len() <= MAX_WORD_BYTES);
    assert!(request.url.as_ref().is_none_or(|url| url.len() <= MAX_URL_BYTES));
    let asked: Value = serde_json::from_slice(input).expect("what was read is JSON");
    match &request.demand {
        PaymentDemand::Reply(reply) => {
            assert!(reply.headers.len() <= MAX_HEADERS + 1);
            assert_eq!(asked["response"]["status"], reply.status);
        }
        PaymentDemand::PaymentRequired(terms) => {
            assert_eq!(asked["paymentRequired"], serde_json::from_str::<Value>(terms).expect("JSON"));
        }
        PaymentDemand::ToolResult(_) => panic!("the result of a tool is asked about over MCP alone"),
        PaymentDemand::Unasked(reason) => panic!("nobody said so: {reason:?}"),
    }
    match request.selected {
        Some(PaymentOptionSelection::Index(index)) => assert_eq!(asked["selected"], index),
        Some(PaymentOptionSelection::Entry(entry)) => assert!(entry.is_object() && asked["selected"] == entry),
        Some(PaymentOptionSelection::Unreadable(_)) => assert!(!asked["selected"].is_null()),
        None => assert!(asked["selected"].is_null()),
    }
}

/// A request. It is judged alike each time; one that is trusted is for the verb of the schema, in whatever reader;
/// every finding has a place in the text.
pub(crate) fn request(input: &[u8]) {
    let found = judge_request(input, Some(&SCHEMA));
    assert_eq!(found, judge_request(input, Some(&SCHEMA)));
    let lines = input.split(|byte| *byte == b'\n').count();
    assert!(found.findings.iter().all(|finding| finding.line.is_none_or(|line| (1..=lines).contains(&line))));
    if found.trust_state() != TrustState::Trusted {
        assert!(!found.findings.is_empty());
        return;
    }
    let read: Value = serde_json::from_slice(input).expect("strict JSON is JSON");
    assert_eq!((&read["x402"]["verb"], &read["x402"]["version"]), (&json!("sum"), &json!("1.0.0")));
    assert!(read["input"].is_object());
    assert_ne!(judge_request(input, None).trust_state(), TrustState::Untrusted, "a schema takes nothing back");
}
