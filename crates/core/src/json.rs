//! Strict JSON: exactly one object, no duplicate keys, bounded in size, depth, number of values and length of paths.
//!
//! `serde_json` silently keeps the last of two equal keys. A parser that keeps the first would see a different card
//! under the same checksum. So a custom visitor builds the tree and refuses duplicate keys.

pub mod locate;
pub mod number;
pub mod object;
pub mod pointer;

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use self::number::{MAX_LONG_NUMERALS, MAX_NUMERAL_BYTES, is_long_numeral};
use crate::reason::{Reason, ReasonCode, ResolutionStep};
use crate::text::excerpt_text;

/// The limits for one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLimits {
    /// Maximum length of the text, in bytes.
    pub bytes: usize,
    /// Maximum depth of nested objects and arrays. The outermost object is level 1.
    pub levels: usize,
    /// Maximum number of values of any kind, including objects and arrays.
    pub values: usize,
    /// Maximum length of a member's name, in bytes.
    pub name: usize,
    /// Maximum total length of all values' JSON Pointers, in bytes. Many checks report the pointer of each value that
    /// they reject, so a small text with long names around many values could fill the memory.
    pub paths: usize,
}

impl JsonLimits {
    /// A card (X-8): 256 KiB and 16 levels. The largest published documents that a card may embed, the JSON Schemas of
    /// A2A, have 1,900 values, names of 47 bytes, and as many bytes of paths as of text: all far below these limits.
    /// With these limits, judging the worst card takes at most 20 ms and 16 MiB.
    pub const CARD: Self = Self { bytes: 256 * 1024, levels: 16, values: 8 * 1024, name: 1024, paths: 2 * 1024 * 1024 };

    /// A schema that a publisher serves: no larger than a card, but nested more deeply.
    pub const SCHEMA: Self = Self { levels: 64, ..Self::CARD };

    /// A schema, manifest or profile that this build or the operator chose: larger and deeper than a card, because a
    /// schema nests two or three levels for each level that it describes. 64 levels are far below the 128 at which
    /// `serde_json` stops.
    pub const DOCUMENT: Self =
        Self { bytes: 4 * 1024 * 1024, levels: 64, values: 512 * 1024, name: Self::CARD.name, paths: 64 * 1024 * 1024 };
}

/// Parses `bytes` as exactly one JSON object.
///
/// # Errors
/// The first rule of strict JSON that the bytes violate.
pub fn parse_strict_json(bytes: &[u8], limits: JsonLimits) -> Result<Value, JsonError> {
    if bytes.len() > limits.bytes {
        return Err(JsonError::TooLarge { bytes: bytes.len(), limit: limits.bytes });
    }
    let text = std::str::from_utf8(bytes).map_err(|e| JsonError::NotUtf8 { offset: e.valid_up_to() })?;
    if text.starts_with('\u{feff}') && !mutant!("byte-order-mark") {
        return Err(JsonError::ByteOrderMark);
    }
    check_numerals(text)?;
    let state = JsonParseState { limits, values: Cell::new(0), paths: Cell::new(0), fault: RefCell::new(None) };
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = JsonValueSeed { state: &state, level: 0, path: 0 }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| state.to_json_error(&error))?;
    if value.is_object() { Ok(value) } else { Err(JsonError::NotObject { kind: json_type(&value) }) }
}

/// Refuses a JSON text with a numeral that is too long, or with too many long ones. Syntax errors are left to the
/// parser.
///
/// # Errors
/// [`JsonError::TooComplex`] for the first numeral that exceeds a bound.
pub fn check_numerals(text: &str) -> Result<(), JsonError> {
    let bytes = text.as_bytes();
    let (mut at, mut long) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let is_inside = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at += bytes[at..].iter().take_while(|byte| is_inside(byte)).count();
                if at - start > MAX_NUMERAL_BYTES {
                    return Err(numeral_limit_error(text, start, ExceededJsonLimit::NumeralBytes, MAX_NUMERAL_BYTES));
                }
                long += usize::from(is_long_numeral(&text[start..at]));
                if long > MAX_LONG_NUMERALS {
                    return Err(numeral_limit_error(text, start, ExceededJsonLimit::LongNumerals, MAX_LONG_NUMERALS));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The offset after the string whose first character is at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

/// The numeral at `offset` exceeds a bound.
fn numeral_limit_error(text: &str, offset: usize, excess: ExceededJsonLimit, limit: usize) -> JsonError {
    let before = &text[..offset];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = offset - before.rfind('\n').map_or(0, |newline| newline + 1) + 1;
    JsonError::TooComplex { line, column, excess, limit }
}

/// The JSON type of a value, with its article.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Why bytes are not strict JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is longer than [`JsonLimits::bytes`].
    #[error("{bytes} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Length of the text in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The bytes are not valid UTF-8.
    #[error("not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Offset of the first invalid byte.
        offset: usize,
    },
    /// The text begins with a byte order mark.
    #[error("a byte order mark precedes the JSON text")]
    ByteOrderMark,
    /// A syntax error, or data after the value.
    #[error("line {line}, column {column}: {detail}")]
    NotJson {
        /// Line, from 1.
        line: usize,
        /// Column, from 1; 0 at the start of a line.
        column: usize,
        /// The parser's message.
        detail: String,
    },
    /// The value is not an object.
    #[error("the JSON text is {kind}, not an object")]
    NotObject {
        /// The JSON type of the value.
        kind: &'static str,
    },
    /// More levels than [`JsonLimits::levels`].
    #[error("line {line}, column {column}: more than {limit} levels")]
    TooDeep {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The limit.
        limit: usize,
    },
    /// The text exceeds a limit on its complexity.
    #[error("line {line}, column {column}: more than {limit} {excess}")]
    TooComplex {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The exceeded limit.
        excess: ExceededJsonLimit,
        /// The limit.
        limit: usize,
    },
    /// An object contains the same key twice, after unescaping.
    #[error("line {line}, column {column}: the member {pointer} occurs twice")]
    DuplicateKey {
        /// The duplicate key, unescaped.
        key: String,
        /// JSON Pointer of the member.
        pointer: String,
        /// Line of the second occurrence, from 1.
        line: usize,
        /// Column of the second occurrence, from 1.
        column: usize,
    },
}

/// A limit on complexity that a text exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExceededJsonLimit {
    /// More than [`JsonLimits::values`].
    #[error("values")]
    Values,
    /// More than [`JsonLimits::name`].
    #[error("bytes in the name of a member")]
    Name,
    /// More than [`JsonLimits::paths`].
    #[error("bytes in the paths of all values")]
    Paths,
    /// More than [`MAX_NUMERAL_BYTES`].
    #[error("bytes in a number")]
    NumeralBytes,
    /// More than [`MAX_LONG_NUMERALS`].
    #[error("numbers of more than {} significant digits", number::DOUBLE_DIGITS)]
    LongNumerals,
}

impl ExceededJsonLimit {
    const fn limit(self, limits: JsonLimits) -> usize {
        match self {
            Self::Values => limits.values,
            Self::Name => limits.name,
            Self::Paths => limits.paths,
            Self::NumeralBytes => MAX_NUMERAL_BYTES,
            Self::LongNumerals => MAX_LONG_NUMERALS,
        }
    }
}

impl JsonError {
    /// Line and column of the excess; `None` for other errors.
    pub fn exceeded_limit_position(&self) -> Option<String> {
        let Self::TooComplex { line, column, .. } = self else { return None };
        Some(format!("line {line}, column {column}"))
    }

    /// The exceeded limit as text; `None` for other errors.
    pub fn exceeded_limit_text(&self) -> Option<String> {
        let Self::TooComplex { excess, limit, .. } = self else { return None };
        Some(format!("at most {limit} {excess}"))
    }

    /// The reason that a verdict reports for a card with this error.
    pub fn to_card_reason(&self) -> Reason {
        let (code, place) = match self {
            Self::NotUtf8 { .. } => (ReasonCode::CardNotUtf8, None),
            Self::TooDeep { .. } => (ReasonCode::CardTooDeep, None),
            Self::DuplicateKey { pointer, .. } => (ReasonCode::CardDuplicateKey, Some(pointer)),
            Self::TooComplex { .. } => (ReasonCode::CardTooComplex, None),
            Self::TooLarge { .. } => (ReasonCode::SourceOversize, None),
            Self::NotJson { .. } | Self::ByteOrderMark | Self::NotObject { .. } => (ReasonCode::CardNotJson, None),
        };
        let reason = Reason::new(code).with_step(ResolutionStep::Card).observed(excerpt_text(&self.to_string()));
        let reason = match self.exceeded_limit_text() {
            Some(most) => reason.expected(most),
            None => reason,
        };
        match place {
            Some(place) => reason.at_place(place),
            None => reason,
        }
    }
}

struct JsonParseState {
    limits: JsonLimits,
    values: Cell<usize>,
    paths: Cell<usize>,
    fault: RefCell<Option<JsonFault>>,
}

/// An error found by the visitor. It is stored beside the parser's error, which can only contain text.
struct JsonFault {
    kind: JsonFaultKind,
    /// Keys and indices, innermost first.
    path: Vec<String>,
}

enum JsonFaultKind {
    TooDeep,
    TooComplex(ExceededJsonLimit),
    DuplicateKey(String),
}

impl JsonParseState {
    fn record_fault<E: serde::de::Error>(&self, kind: JsonFaultKind) -> E {
        *self.fault.borrow_mut() = Some(JsonFault { kind, path: Vec::new() });
        E::custom("refused")
    }

    /// Counts a value whose path has `path` bytes.
    fn count_value<E: serde::de::Error>(&self, path: usize) -> Result<(), E> {
        self.values.set(self.values.get() + 1);
        self.paths.set(self.paths.get() + path);
        if self.values.get() > self.limits.values && !mutant!("json-values-unbounded") {
            return Err(self.record_fault(JsonFaultKind::TooComplex(ExceededJsonLimit::Values)));
        }
        if self.paths.get() > self.limits.paths && !mutant!("json-paths-unbounded") {
            return Err(self.record_fault(JsonFaultKind::TooComplex(ExceededJsonLimit::Paths)));
        }
        Ok(())
    }

    /// While a fault propagates outwards, records the member or item that contains it.
    fn record_path_segment(&self, segment: impl FnOnce() -> String) {
        if let Some(fault) = self.fault.borrow_mut().as_mut() {
            fault.path.push(segment());
        }
    }

    fn to_json_error(&self, error: &serde_json::Error) -> JsonError {
        let (line, column) = (error.line(), error.column());
        match self.fault.take() {
            None => JsonError::NotJson { line, column, detail: excerpt_text(&error.to_string()) },
            Some(JsonFault { kind: JsonFaultKind::TooDeep, .. }) => {
                JsonError::TooDeep { line, column, limit: self.limits.levels }
            }
            Some(JsonFault { kind: JsonFaultKind::TooComplex(excess), .. }) => {
                JsonError::TooComplex { line, column, excess, limit: excess.limit(self.limits) }
            }
            Some(JsonFault { kind: JsonFaultKind::DuplicateKey(key), path }) => {
                let place = path.iter().rev().map(String::as_str).chain([key.as_str()]);
                JsonError::DuplicateKey {
                    pointer: excerpt_text(&pointer::join_pointer_segments(place)),
                    key: excerpt_text(&key),
                    line,
                    column,
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct JsonValueSeed<'s> {
    state: &'s JsonParseState,
    level: usize,
    /// Length of the value's path in bytes, without escapes.
    path: usize,
}

impl JsonValueSeed<'_> {
    fn enter_container<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.level == self.state.limits.levels && !mutant!("json-levels-unbounded") {
            return Err(self.state.record_fault(JsonFaultKind::TooDeep));
        }
        Ok(Self { level: self.level + 1, ..self })
    }

    /// The seed for a value inside a container, after a path segment of `bytes` bytes.
    const fn child_seed(self, bytes: usize) -> Self {
        Self { path: self.path + 1 + bytes, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for JsonValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.state.count_value(self.path)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let seed = self.enter_container()?;
        let mut list = Vec::new();
        loop {
            match items.next_element_seed(seed.child_seed(decimal_digit_count(list.len()))) {
                Ok(Some(item)) => list.push(item),
                Ok(None) => return Ok(Value::Array(list)),
                Err(error) => {
                    self.state.record_path_segment(|| list.len().to_string());
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let seed = self.enter_container()?;
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if key.len() > self.state.limits.name && !mutant!("json-names-unbounded") {
                return Err(self.state.record_fault(JsonFaultKind::TooComplex(ExceededJsonLimit::Name)));
            }
            let entry = match object.entry(key) {
                Entry::Occupied(first) if !mutant!("duplicate-members") => {
                    return Err(self.state.record_fault(JsonFaultKind::DuplicateKey(first.key().clone())));
                }
                entry => entry,
            };
            let value = members.next_value_seed(seed.child_seed(entry.key().len()));
            match (value, entry) {
                (Ok(value), Entry::Vacant(entry)) => drop(entry.insert(value)),
                (Ok(value), Entry::Occupied(mut entry)) => drop(entry.insert(value)),
                (Err(error), entry) => {
                    self.state.record_path_segment(|| entry.key().clone());
                    return Err(error);
                }
            }
        }
        Ok(Value::Object(object))
    }
}

/// The number of decimal digits of an index.
fn decimal_digit_count(index: usize) -> usize {
    index.checked_ilog10().unwrap_or(0) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(text: &str) -> Result<Value, JsonError> {
        parse_strict_json(text.as_bytes(), JsonLimits::CARD)
    }

    fn nested(levels: usize) -> String {
        format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn an_object_parses_to_the_tree_that_serde_json_builds() {
        let text = r#"{"a":[1,-2,3.5,1e3,true,null,"\u0062"],"c":{"d":18446744073709551615}}"#;
        assert_eq!(card(text), Ok(serde_json::from_str(text).expect("valid JSON")));
    }

    #[test]
    fn numbers_arrive_as_numbers() {
        // With serde_json's feature `arbitrary_precision`, a number would arrive as an object with one special member.
        // The text of a number would be kept, so huge numbers would be accepted.
        let value = card(r#"{"n":1.5,"m":7}"#).expect("valid JSON");
        assert!(value["n"].is_f64() && value["m"].is_u64());
        assert!(matches!(card(r#"{"n":1e999}"#), Err(JsonError::NotJson { .. })));
    }

    #[test]
    fn duplicate_keys_are_refused_at_any_depth_and_in_any_spelling() {
        let error = |text| match card(text) {
            Err(JsonError::DuplicateKey { key, pointer, line, column }) => (key, pointer, line, column),
            other => panic!("{other:?}"),
        };
        assert_eq!(error(r#"{"a":1,"a":1}"#), ("a".into(), "/a".into(), 1, 10));
        assert_eq!(error(r#"{"b":1,"\u0062":2}"#).1, "/b");
        assert_eq!(error("{\"x\":[0,{\"y/z\":1,\n\"y/z\":2}]}").1, "/x/1/y~1z");
    }

    #[test]
    fn sixteen_levels_pass_and_seventeen_do_not() {
        assert!(card(&nested(16)).is_ok());
        assert!(matches!(card(&nested(17)), Err(JsonError::TooDeep { limit: 16, line: 1, .. })));
        assert!(matches!(card(&"[".repeat(10_000)), Err(JsonError::TooDeep { .. })));
        assert!(matches!(card(&nested(10_000)), Err(JsonError::TooDeep { .. })));
    }

    #[test]
    fn only_one_object_and_nothing_around_it() {
        assert_eq!(card("[]"), Err(JsonError::NotObject { kind: "a list" }));
        assert_eq!(card("null"), Err(JsonError::NotObject { kind: "null" }));
        assert_eq!(card("\u{feff}{}"), Err(JsonError::ByteOrderMark));
        for text in ["", "{", "{}x", "{} {}", "{'a':1}", "{\"a\":1,}", r#"{"a":"\ud800"}"#, "<html>", "{\"a\":NaN}"] {
            assert!(matches!(card(text), Err(JsonError::NotJson { .. })), "{text}");
        }
        assert!(card(" \r\n{}\n").is_ok());
    }

    #[test]
    fn bytes_and_values_are_bounded() {
        assert_eq!(parse_strict_json(b"{\"a\":\"\xff\"}", JsonLimits::CARD), Err(JsonError::NotUtf8 { offset: 6 }));
        let limits = JsonLimits { bytes: 20, levels: 4, values: 3, name: 4, paths: 100 };
        assert!(parse_strict_json(br#"{"a":[1]}"#, limits).is_ok());
        assert_eq!(parse_strict_json(&[b' '; 21], limits), Err(JsonError::TooLarge { bytes: 21, limit: 20 }));
        let excess = |text: &str| match parse_strict_json(text.as_bytes(), limits) {
            Err(JsonError::TooComplex { excess, limit, .. }) => Some((excess, limit)),
            _ => None,
        };
        assert_eq!(excess(r#"{"a":[1,2]}"#), Some((ExceededJsonLimit::Values, 3)));
        assert_eq!((excess(r#"{"abcd":1}"#), excess(r#"{"abcde":1}"#)), (None, Some((ExceededJsonLimit::Name, 4))));

        let costly = |text: String| match parse_strict_json(text.as_bytes(), JsonLimits::CARD) {
            Err(JsonError::TooComplex { excess, limit, .. }) => Some((excess, limit)),
            _ => None,
        };
        let digits = "1".repeat(MAX_NUMERAL_BYTES);
        let bytes = Some((ExceededJsonLimit::NumeralBytes, MAX_NUMERAL_BYTES));
        assert_eq!((costly(format!(r#"{{"a":{digits}}}"#)), costly(format!(r#"{{"a":{digits}1}}"#))), (None, bytes));
        let long = vec!["1.000000000000000001"; MAX_LONG_NUMERALS + 1].join(",");
        let count = Some((ExceededJsonLimit::LongNumerals, MAX_LONG_NUMERALS));
        assert_eq!(costly(format!(r#"{{"a":[{long}]}}"#)), count);
    }

    #[test]
    fn the_paths_of_all_values_are_bounded_together() {
        // The paths are "", /ab, /ab/0 and /ab/1: 13 bytes.
        let limits = |paths| JsonLimits { paths, ..JsonLimits::CARD };
        let text = br#"{"ab":[1,2]}"#;
        assert!(parse_strict_json(text, limits(13)).is_ok());
        assert!(matches!(
            parse_strict_json(text, limits(12)),
            Err(JsonError::TooComplex { excess: ExceededJsonLimit::Paths, limit: 12, .. })
        ));
        assert_eq!([0, 9, 10, 99, 100].map(decimal_digit_count), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn each_error_has_its_reason() {
        let code = |text: &[u8]| parse_strict_json(text, JsonLimits::CARD).expect_err("bad JSON").to_card_reason().code;
        assert_eq!(code(b"\xff"), ReasonCode::CardNotUtf8);
        assert_eq!(code(b"[]"), ReasonCode::CardNotJson);
        assert_eq!(code(b"\xef\xbb\xbf{}"), ReasonCode::CardNotJson);
        assert_eq!(code(nested(17).as_bytes()), ReasonCode::CardTooDeep);
        assert_eq!(
            code(format!(r#"{{"a":[0{}]}}"#, ",0".repeat(JsonLimits::CARD.values)).as_bytes()),
            ReasonCode::CardTooComplex
        );
        assert_eq!(code(br#"{"a":1,"a":2}"#), ReasonCode::CardDuplicateKey);
        assert_eq!(code(&vec![b' '; 256 * 1024 + 1]), ReasonCode::SourceOversize);
    }

    #[test]
    fn numerals_of_a_document_are_bounded() {
        let excess = |text: &str| match check_numerals(text) {
            Err(JsonError::TooComplex { line, column, excess, .. }) => Some((line, column, excess)),
            _ => None,
        };
        let list = |numeral: &str, count: usize| format!("[\n{}]", vec![numeral; count].join(","));
        for long in [
            "8.43387743279489105278063e-294",
            "-123456789012345678",
            "0.000123456789012345678",
            "1e99999999999999999999",
        ] {
            assert_eq!(excess(&list(long, MAX_LONG_NUMERALS)), None, "{long}");
            let (line, _, excess) = excess(&list(long, MAX_LONG_NUMERALS + 1)).expect(long);
            assert_eq!((line, excess), (2, ExceededJsonLimit::LongNumerals), "{long}");
        }
        let zeros = "0".repeat(60);
        for short in [format!("1.3{zeros}"), format!("0.{zeros}1"), format!("-7{zeros}"), format!("0.{zeros}")] {
            assert_eq!(excess(&list(&short, 2 * MAX_LONG_NUMERALS)), None, "{short}");
        }
        let digits = "1".repeat(MAX_NUMERAL_BYTES);
        assert_eq!(excess(&format!("[{digits}]")), None);
        let too_long = Some((1, 2, ExceededJsonLimit::NumeralBytes));
        assert_eq!(excess(&format!("[{digits}1]")), too_long);
        assert_eq!(excess(&format!("[\"{digits}1\\\"{digits}1\", {}]", f64::MIN_POSITIVE / 4.0)), None);
    }
}
