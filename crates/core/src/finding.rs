//! Findings: reasons with a position in a text, as compilers report them.

use std::ops::Range;

use serde::Serialize;

use crate::json::JsonError;
use crate::json::locate::{self, JsonValueSpans, LineColumnTracker};
use crate::reason::{Reason, ReasonCode, ReasonEffect};

/// A reason and its position in a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentFinding {
    /// The stable code.
    pub code: ReasonCode,
    /// The effect. [`ReasonEffect::Fail`] makes the document invalid.
    pub effect: ReasonEffect,
    /// The rule behind it.
    pub requirement: Option<String>,
    /// One plain sentence.
    pub message: String,
    /// JSON Pointer of the value or the missing member; `None` for the document as a whole.
    pub pointer: Option<String>,
    /// Line, from 1; `None` if the finding has no position in the text.
    pub line: Option<usize>,
    /// Column, from 1, in characters.
    pub column: Option<usize>,
    /// What the rules require.
    pub expected: Option<String>,
    /// The value that was found.
    pub observed: Option<String>,
    /// The bytes that the finding is about, for programs that display the text.
    #[serde(skip)]
    pub span: Option<Range<usize>>,
}

impl DocumentFinding {
    /// The finding for a text that is not strict JSON, at the position where the parser stopped.
    pub fn from_json_error(reason: Reason, error: &JsonError, text: &str) -> Self {
        let span = match error {
            JsonError::TooLarge { .. } => None,
            JsonError::NotUtf8 { offset } => Some(*offset..*offset),
            JsonError::ByteOrderMark | JsonError::NotObject { .. } => Some(0..0),
            JsonError::DuplicateKey { pointer, line, column, .. } => {
                let key = locate::find_second_member_span(text, pointer).and_then(|place| place.key);
                Some(key.unwrap_or_else(|| character_range(text, *line, *column)))
            }
            JsonError::NotJson { line, column, .. }
            | JsonError::TooDeep { line, column, .. }
            | JsonError::TooComplex { line, column, .. } => Some(character_range(text, *line, *column)),
        };
        Self::new(reason, span)
    }

    /// A finding about these bytes of the text. [`sort_by_position`] sets line and column.
    pub fn new(reason: Reason, span: Option<Range<usize>>) -> Self {
        Self {
            code: reason.code,
            effect: reason.effect,
            requirement: reason.requirement,
            message: reason.message,
            pointer: reason.place,
            line: None,
            column: None,
            expected: reason.expected,
            observed: reason.observed,
            span,
        }
    }
}

/// The findings for these reasons, each at the position of its pointer in the text.
pub fn locate_findings(reasons: Vec<Reason>, text: &str) -> Vec<DocumentFinding> {
    let pointers: Vec<String> = reasons.iter().filter_map(|reason| reason.place.clone()).collect();
    let places = JsonValueSpans::find_all(text, pointers.iter().map(String::as_str));
    reasons.into_iter().map(|reason| locate_finding(reason, &places)).collect()
}

/// Sorts findings by position in the text, and sets their lines and columns.
pub fn sort_by_position(findings: &mut [DocumentFinding], text: &str) {
    findings.sort_by_key(|finding| (finding.span.as_ref().map(|span| span.start), finding.effect, finding.code.slug()));
    let mut positions = LineColumnTracker::new(text);
    for finding in findings {
        let position = finding.span.as_ref().map(|span| positions.advance(span.start));
        (finding.line, finding.column) = position.unzip();
    }
}

/// The longest UTF-8 prefix of `bytes`: the text in which findings have their positions.
pub fn valid_utf8_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

fn locate_finding(reason: Reason, places: &JsonValueSpans<'_>) -> DocumentFinding {
    let place = reason.place.as_deref().and_then(|pointer| {
        let exact = places.get(pointer).map(|place| match (reason.code, &place.key) {
            (
                ReasonCode::CardSchemaInvalid | ReasonCode::DocumentSchemaInvalid | ReasonCode::RequestSchemaInvalid,
                Some(key),
            ) => key.start..place.value.end,
            _ => place.value.clone(),
        });
        exact.or_else(|| missing_member_range(places, pointer))
    });
    DocumentFinding::new(reason, place)
}

/// Where a missing member belongs: the name of the value that lacks it, or the start of the text's outermost object.
fn missing_member_range(places: &JsonValueSpans<'_>, pointer: &str) -> Option<Range<usize>> {
    let place = places.get_or_enclosing(pointer)?;
    Some(place.key.clone().unwrap_or(place.value.start..place.value.start + 1))
}

/// The character at the line and column that a JSON parser reports. The parser counts columns in bytes.
fn character_range(text: &str, line: usize, column: usize) -> Range<usize> {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let offset = text.floor_char_boundary((start + column.saturating_sub(1)).min(text.len()));
    offset..offset
}
