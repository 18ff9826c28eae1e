//! Validates a request against the schema that the agent's card binds.

use std::collections::BTreeSet;

use clresolve_core::digest::Digest;
use clresolve_core::finding::{self, Finding};
use clresolve_core::json::locate::Places;
use clresolve_core::json::{self, JsonError, Limits, number, pointer};
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::state::State;
use clresolve_core::text::excerpt;
use clresolve_verdict::schema::bound::CompiledSchema;
use serde_json::Value;

use crate::request::question::MAX_BYTES;
use crate::request::template;

/// Maximum number of findings of one kind. A request with more must be fixed in several rounds.
pub const MAX_FINDINGS: usize = 64;

/// Result of judging a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestJudgement {
    /// All findings, in the order of the text.
    pub findings: Vec<Finding>,
    /// SHA-256 of the request's bytes. `None` if the request exceeds the size limit, because a digest of a part would
    /// mislead.
    pub sha256: Option<Digest>,
}

impl RequestJudgement {
    /// The state that follows from the findings.
    pub fn state(&self) -> State {
        state(self.findings.iter().map(|finding| finding.effect))
    }
}

/// The state that follows from effects.
pub(crate) fn state(effects: impl Iterator<Item = Effect>) -> State {
    match effects.min() {
        Some(Effect::Fail) => State::Untrusted,
        Some(Effect::Unknown) => State::Indeterminate,
        Some(Effect::Warn) | None => State::Trusted,
    }
}

/// Judges the bytes of a request. Without a schema, only checks that they are strict JSON.
pub fn judge(bytes: &[u8], schema: Option<&CompiledSchema>) -> RequestJudgement {
    let text = finding::text_of(bytes);
    let mut findings = match json::parse(bytes, Limits::CARD) {
        Ok(request) => found(&request, text, schema),
        Err(error) => vec![Finding::refused(unreadable(&error), &error, text)],
    };
    finding::sort(&mut findings, text);
    RequestJudgement { findings, sha256: (bytes.len() <= MAX_BYTES).then(|| Digest::of(bytes)) }
}

fn found(request: &Value, text: &str, schema: Option<&CompiledSchema>) -> Vec<Finding> {
    let mut reasons = inexact(request, text);
    if let Some(schema) = schema {
        reasons.extend(schema.every_violation(request).take(MAX_FINDINGS).map(|violation| {
            let requirement = if is_of_the_envelope(&violation.pointer) { "PC-6" } else { "CL-62" };
            let reason = Reason::new(Code::RequestSchemaInvalid).requirement(requirement);
            reason.observed(violation.detail).at(violation.pointer)
        }));
        if let Some(place) = template::request_id(schema).filter(|place| request.pointer(place).is_none()) {
            reasons.push(Reason::new(Code::RequestIdMissing).at(place));
        }
    }
    finding::placed(reasons, text)
}

fn is_of_the_envelope(place: &str) -> bool {
    ["/x402/verb", "/x402/version"].contains(&place)
}

/// Numbers that a reader with double precision would change.
fn inexact(request: &Value, text: &str) -> Vec<Reason> {
    let mut numbers = BTreeSet::new();
    collect(request, &mut String::new(), &mut numbers);
    let places = Places::of(text, numbers.iter().map(String::as_str));
    let stated = numbers.iter().filter_map(|place| Some((place, &text[places.get(place)?.value.clone()])));
    let others = stated.filter(|(_, numeral)| {
        !number::is_exact(numeral) && !clresolve_core::mutant!("requests-state-numbers-loosely")
    });
    let reason = |(place, numeral): (&String, &str)| {
        let reason = Reason::new(Code::RequestSchemaInvalid).message("The number is not the same to all readers.");
        reason.expected("a number that a double represents exactly").observed(excerpt(numeral)).at(place.as_str())
    };
    others.take(MAX_FINDINGS).map(reason).collect()
}

/// Collects the positions of all numbers. The parser bounds the depth of the request and therefore the recursion.
fn collect(value: &Value, place: &mut String, numbers: &mut BTreeSet<String>) {
    let length = place.len();
    let mut below = |segment: &str, value: &Value| {
        pointer::push(place, segment);
        collect(value, place, numbers);
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
fn unreadable(error: &JsonError) -> Reason {
    let observed = |code| Reason::new(code).observed(excerpt(&error.to_string()));
    match error {
        JsonError::DuplicateKey { pointer, .. } => observed(Code::RequestDuplicateKey).at(pointer.as_str()),
        JsonError::TooLarge { limit, .. } => {
            Reason::new(Code::RequestTooComplex).observed(format!("more than {limit} bytes"))
        }
        JsonError::TooDeep { .. } => observed(Code::RequestTooComplex),
        JsonError::TooComplex { .. } => observed(Code::RequestTooComplex).expected(error.at_most().unwrap_or_default()),
        JsonError::NotUtf8 { .. }
        | JsonError::ByteOrderMark
        | JsonError::NotJson { .. }
        | JsonError::NotObject { .. } => {
            observed(Code::RequestSchemaInvalid).message("The request is not one JSON object in UTF-8.")
        }
    }
}

#[cfg(test)]
mod tests;
