//! Validates a request against the schema that the agent's card binds.

use std::collections::BTreeSet;

use clresolve_core::digest::Digest;
use clresolve_core::finding::{self, DocumentFinding};
use clresolve_core::json::locate::JsonValueSpans;
use clresolve_core::json::{self, JsonError, JsonLimits, number, pointer};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::schema::bound::BoundSchema;
use serde_json::Value;

use crate::request::question::MAX_BYTES;
use crate::request::template;

/// Maximum number of findings of one kind. A request with more must be fixed in several rounds.
pub const MAX_FINDINGS: usize = 64;

/// Result of judging a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestJudgement {
    /// All findings, in the order of the text.
    pub findings: Vec<DocumentFinding>,
    /// SHA-256 of the request's bytes. `None` if the request exceeds the size limit, because a digest of a part would
    /// mislead.
    pub sha256: Option<Digest>,
}

impl RequestJudgement {
    /// The state that follows from the findings.
    pub fn trust_state(&self) -> TrustState {
        state_from_effects(self.findings.iter().map(|finding| finding.effect))
    }
}

/// The state that follows from effects.
pub(crate) fn state_from_effects(effects: impl Iterator<Item = ReasonEffect>) -> TrustState {
    match effects.min() {
        Some(ReasonEffect::Fail) => TrustState::Untrusted,
        Some(ReasonEffect::Unknown) => TrustState::Indeterminate,
        Some(ReasonEffect::Warn) | None => TrustState::Trusted,
    }
}

/// Judges the bytes of a request. Without a schema, only checks that they are strict JSON.
pub fn judge_request(bytes: &[u8], schema: Option<&BoundSchema>) -> RequestJudgement {
    let text = finding::valid_utf8_prefix(bytes);
    let mut findings = match json::parse_strict_json(bytes, JsonLimits::CARD) {
        Ok(request) => find_defects(&request, text, schema),
        Err(error) => vec![DocumentFinding::from_json_error(parse_error_reason(&error), &error, text)],
    };
    finding::sort_by_position(&mut findings, text);
    RequestJudgement { findings, sha256: (bytes.len() <= MAX_BYTES).then(|| Digest::compute(bytes)) }
}

fn find_defects(request: &Value, text: &str, schema: Option<&BoundSchema>) -> Vec<DocumentFinding> {
    let mut reasons = inexact_number_reasons(request, text);
    if let Some(schema) = schema {
        reasons.extend(schema.every_violation(request).take(MAX_FINDINGS).map(|violation| {
            let requirement = if is_envelope_pointer(&violation.pointer) { "PC-6" } else { "CL-62" };
            let reason = Reason::new(ReasonCode::RequestSchemaInvalid).with_requirement(requirement);
            reason.observed(violation.detail).at_place(violation.pointer)
        }));
        if let Some(place) = template::request_id_path(schema).filter(|place| request.pointer(place).is_none()) {
            reasons.push(Reason::new(ReasonCode::RequestIdMissing).at_place(place));
        }
    }
    finding::locate_findings(reasons, text)
}

fn is_envelope_pointer(place: &str) -> bool {
    ["/x402/verb", "/x402/version"].contains(&place)
}

/// Numbers that a reader with double precision would change.
fn inexact_number_reasons(request: &Value, text: &str) -> Vec<Reason> {
    let mut numbers = BTreeSet::new();
    collect_number_places(request, &mut String::new(), &mut numbers);
    let places = JsonValueSpans::find_all(text, numbers.iter().map(String::as_str));
    let stated = numbers.iter().filter_map(|place| Some((place, &text[places.get(place)?.value.clone()])));
    let others = stated.filter(|(_, numeral)| {
        !number::is_exact_double(numeral) && !clresolve_core::mutant!("requests-state-numbers-loosely")
    });
    let reason = |(place, numeral): (&String, &str)| {
        let reason =
            Reason::new(ReasonCode::RequestSchemaInvalid).message("The number is not the same to all readers.");
        reason
            .expected("a number that a double represents exactly")
            .observed(excerpt_text(numeral))
            .at_place(place.as_str())
    };
    others.take(MAX_FINDINGS).map(reason).collect()
}

/// Collects the positions of all numbers. The parser bounds the depth of the request and therefore the recursion.
fn collect_number_places(value: &Value, place: &mut String, numbers: &mut BTreeSet<String>) {
    let length = place.len();
    let mut below = |segment: &str, value: &Value| {
        pointer::push_pointer_segment(place, segment);
        collect_number_places(value, place, numbers);
        place.truncate(length);
    };
    match value {
        Value::Number(_) => {
            numbers.insert(place.clone());
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| below(&at.to_string(), item)),
        Value::Object(members) => members.iter().for_each(|(name, member)| below(name, member)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The reason for bytes that are not a request.
fn parse_error_reason(error: &JsonError) -> Reason {
    let observed = |code| Reason::new(code).observed(excerpt_text(&error.to_string()));
    match error {
        JsonError::DuplicateKey { pointer, .. } => observed(ReasonCode::RequestDuplicateKey).at_place(pointer.as_str()),
        JsonError::TooLarge { limit, .. } => {
            Reason::new(ReasonCode::RequestTooComplex).observed(format!("more than {limit} bytes"))
        }
        JsonError::TooDeep { .. } => observed(ReasonCode::RequestTooComplex),
        JsonError::TooComplex { .. } => {
            observed(ReasonCode::RequestTooComplex).expected(error.exceeded_limit_text().unwrap_or_default())
        }
        JsonError::NotUtf8 { .. }
        | JsonError::ByteOrderMark
        | JsonError::NotJson { .. }
        | JsonError::NotObject { .. } => {
            observed(ReasonCode::RequestSchemaInvalid).message("The request is not one JSON object in UTF-8.")
        }
    }
}

#[cfg(test)]
mod tests;
