//! Parses receipts as their signers do: strict JSON, plus the values that only ECMAScript accepts.
//!
//! A text keeps its lone surrogates. A number keeps its double if the text states exactly that double. The canonical
//! forms can therefore be printed as the published code prints them, and values that a form would conflate are
//! detected. The JSON library parses each container from its raw text, which it has validated before.

use std::fmt;

use clresolve_core::json::{JsonError, JsonLimits, check_numerals, number, pointer};
use clresolve_core::text::excerpt_text;
use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Limits of a receipt: those of any other judged document. The text of a value is parsed once per enclosing level, so
/// the depth limit also bounds time. The limit on values bounds memory: a value uses several dozen times the two bytes
/// of its text. The limit on a name counts UTF-16 code units.
const LIMITS: JsonLimits = JsonLimits::CARD;

/// Maximum size of a receipt, in bytes. A receipt may contain the whole input and output of a call; the largest
/// published one has 2 KiB.
pub const MAX_BYTES: usize = LIMITS.bytes;

/// Text that may contain lone surrogates, in the JSON library's encoding: UTF-8 with lone surrogates encoded like
/// characters (WTF-8). Equal texts have equal bytes, because the library combines every surrogate pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wtf8Text(Box<[u8]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wtf8Chunk<'t> {
    /// A run of characters.
    Whole(&'t str),
    /// A lone surrogate.
    Lone(u16),
}

impl Wtf8Text {
    pub(crate) fn eq_str(&self, text: &str) -> bool {
        *self.0 == *text.as_bytes()
    }

    /// The text, unless it contains a lone surrogate.
    pub(crate) fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The WTF-8 bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its non-empty pieces.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Wtf8Chunk<'_>> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (piece, tail) = first_chunk(rest)?;
            rest = tail;
            Some(piece)
        })
    }

    /// Its UTF-16 code units.
    pub(crate) fn utf16_units(&self) -> impl Iterator<Item = u16> {
        self.chunks().flat_map(|piece| {
            let (characters, lone) = match piece {
                Wtf8Chunk::Whole(text) => (text, None),
                Wtf8Chunk::Lone(unit) => ("", Some(unit)),
            };
            characters.encode_utf16().chain(lone)
        })
    }

    /// The text for display; lone surrogates become replacement characters.
    pub(crate) fn to_lossy_string(&self) -> String {
        let shown = |piece| match piece {
            Wtf8Chunk::Whole(text) => text,
            Wtf8Chunk::Lone(_) => "\u{fffd}",
        };
        self.chunks().map(shown).collect()
    }

    fn from_wtf8(bytes: &[u8]) -> Option<Self> {
        let text = Self(bytes.into());
        let read: usize = text.chunks().map(Wtf8Chunk::len).sum();
        (read == bytes.len()).then_some(text)
    }
}

impl Wtf8Chunk<'_> {
    /// Length in bytes, both in the text and in its display form.
    const fn len(self) -> usize {
        match self {
            Self::Whole(text) => text.len(),
            Self::Lone(_) => char::REPLACEMENT_CHARACTER.len_utf8(),
        }
    }
}

/// The first piece of WTF-8 and the remaining bytes; `None` at the end or at invalid WTF-8.
fn first_chunk(bytes: &[u8]) -> Option<(Wtf8Chunk<'_>, &[u8])> {
    let whole = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
    };
    if !whole.is_empty() {
        return Some((Wtf8Chunk::Whole(whole), &bytes[whole.len()..]));
    }
    let [0xed, middle, low, tail @ ..] = bytes else { return None };
    Some((Wtf8Chunk::Lone(0xd000 | u16::from(middle & 0x3f) << 6 | u16::from(low & 0x3f)), tail))
}

impl From<&str> for Wtf8Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

/// Position of a value in its container. It is printed only if the value itself has a defect.
#[derive(Clone, Copy)]
pub(crate) enum JsonPathSegment<'n> {
    Member(&'n Wtf8Text),
    Item(usize),
}

impl JsonPathSegment<'_> {
    /// Length of its printed form in bytes.
    fn printed_len(self) -> usize {
        match self {
            // A replacement character takes as many bytes as a surrogate.
            Self::Member(name) => name.as_bytes().len(),
            Self::Item(at) => at.checked_ilog10().map_or(1, |digits| digits as usize + 1),
        }
    }
}

impl fmt::Display for JsonPathSegment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(name) => f.write_str(&name.to_lossy_string()),
            Self::Item(at) => at.fmt(f),
        }
    }
}

/// A number: the double whose ECMAScript form has the same value as the text. `None` if there is no such double: a
/// signature over the form of the nearest double would cover other numbers too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ExactDouble(pub(crate) Option<f64>);

impl ExactDouble {
    fn from_text(text: &str) -> Self {
        let exact = number::exact_double(text);
        Self(if clresolve_core::mutant!("receipts-state-numbers-loosely") { text.parse().ok() } else { exact })
    }

    /// An integer if the value is integral, however it was written; null if no double has this value.
    fn to_value(self) -> Value {
        const MOST: f64 = 9_007_199_254_740_992.0;
        let Some(value) = self.0 else { return Value::Null };
        #[expect(clippy::cast_possible_truncation, reason = "it is whole, and not beyond what a double counts to")]
        if value.fract() == 0.0 && value.abs() <= MOST {
            return Value::from(value as i64);
        }
        Value::from(value)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonNode {
    Null,
    Bool(bool),
    Number(ExactDouble),
    Text(Wtf8Text),
    List(Vec<JsonNode>),
    /// Members in text order; names are unique.
    Object(Vec<(Wtf8Text, JsonNode)>),
}

impl JsonNode {
    /// The member of this name, if this is an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(known, _)| known.eq_str(name)).map(|(_, value)| value)
    }

    /// The value at a path of member names.
    pub(crate) fn get_path(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, name| value.get(name))
    }

    /// The text, if this is one without a lone surrogate.
    pub(crate) fn as_text(&self) -> Option<&str> {
        let Self::Text(text) = self else { return None };
        text.as_str()
    }

    pub(crate) fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.get_path(path)?.as_text()
    }

    pub(crate) fn has_text_at(&self, path: &[&str], text: &str) -> bool {
        matches!(self.get_path(path), Some(Self::Text(known)) if known.eq_str(text))
    }

    /// The value as other parsers represent it: lone surrogates become replacement characters.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(is) => Value::Bool(*is),
            Self::Number(number) => number.to_value(),
            Self::Text(text) => Value::String(text.to_lossy_string()),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(members) => {
                members.iter().map(|(name, value)| (name.to_lossy_string(), value.to_value())).collect()
            }
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The object reduced to these members.
    pub(crate) fn with_only_members(&self, names: &[&str]) -> Self {
        let Self::Object(members) = self else { return self.clone() };
        let is_kept = |(name, _): &&(Wtf8Text, Self)| names.iter().any(|known| name.eq_str(known));
        Self::Object(members.iter().filter(is_kept).cloned().collect())
    }

    /// The names of the object's members except for these.
    pub(crate) fn other_member_names(&self, names: &[&str]) -> Vec<String> {
        let Self::Object(members) = self else { return Vec::new() };
        let others = members.iter().filter(|(name, _)| !names.iter().any(|known| name.eq_str(known)));
        others.map(|(name, _)| name.to_lossy_string()).collect()
    }

    /// Removes a member of the object; returns whether it existed.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let Self::Object(members) = self else { return false };
        let before = members.len();
        members.retain(|(known, _)| !known.eq_str(name));
        members.len() < before
    }

    pub(crate) fn set(&mut self, name: &str, value: Self) {
        let Self::Object(members) = self else { return };
        match members.iter_mut().find(|(known, _)| known.eq_str(name)) {
            Some((_, place)) => *place = value,
            None => members.push((name.into(), value)),
        }
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Self> {
        let Self::Object(members) = self else { return None };
        members.iter_mut().find(|(known, _)| known.eq_str(name)).map(|(_, value)| value)
    }
}

/// Why bytes cannot be judged as a receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiptParseError {
    /// A limit is exceeded.
    #[error("more than {limit} {what}")]
    TooMuch {
        /// The limited quantity.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Not exactly one JSON object in UTF-8.
    #[error("not one strict JSON object: {0}")]
    NotJson(String),
    /// Its numbers are too expensive to parse.
    #[error("{0}")]
    TooCostly(JsonError),
    /// An object has the same member twice.
    #[error("the member {pointer} occurs twice")]
    DuplicateKey {
        /// JSON Pointer of the member.
        pointer: String,
    },
}

/// Parses exactly one JSON object.
pub(crate) fn parse_receipt_object(bytes: &[u8]) -> Result<JsonNode, ReceiptParseError> {
    if bytes.len() > MAX_BYTES {
        return Err(ReceiptParseError::TooMuch { what: "bytes", limit: MAX_BYTES });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ReceiptParseError::NotJson(error.to_string()))?;
    check_numerals(text).map_err(ReceiptParseError::TooCostly)?;
    // `RawValue` validates the JSON grammar, except for surrogates and the range of numbers.
    let raw: &RawValue =
        serde_json::from_str(text).map_err(|error| ReceiptParseError::NotJson(excerpt_text(&error.to_string())))?;
    if count_commas(text) >= LIMITS.values {
        return Err(ReceiptParseError::TooMuch { what: "values", limit: LIMITS.values });
    }
    let mut reader = JsonNodeReader { values: 0, levels: 0, path_bytes: 0, paths: 0, fault: None };
    match reader.read_value(raw.get()) {
        Ok(node) if node.is_object() => Ok(node),
        Ok(_) => Err(ReceiptParseError::NotJson("expected an object".to_owned())),
        Err(error) => Err(match reader.fault {
            Some(ReceiptParseError::DuplicateKey { pointer }) => {
                ReceiptParseError::DuplicateKey { pointer: excerpt_text(&pointer) }
            }
            Some(fault) => fault,
            None => ReceiptParseError::NotJson(excerpt_text(&error.to_string())),
        }),
    }
}

/// Number of commas outside of strings in a valid JSON text. It has more values than that, and each enclosing container
/// is one more pass over all of them.
fn count_commas(text: &str) -> usize {
    let (mut commas, mut is_in_string, mut bytes) = (0, false, text.bytes());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_in_string = !is_in_string,
            b'\\' => _ = bytes.next(),
            b',' if !is_in_string => commas += 1,
            _ => {}
        }
    }
    commas
}

struct JsonNodeReader {
    values: usize,
    /// Number of enclosing containers.
    levels: usize,
    /// Length in bytes of the path to the current value.
    path_bytes: usize,
    /// Total length in bytes of the paths of all values so far.
    paths: usize,
    /// Our own error, because the library's error can carry only text.
    fault: Option<ReceiptParseError>,
}

impl JsonNodeReader {
    fn record_fault<E: serde::de::Error>(&mut self, fault: ReceiptParseError) -> E {
        self.fault = Some(fault);
        E::custom("refused")
    }

    fn read_value(&mut self, text: &str) -> Result<JsonNode, serde_json::Error> {
        self.values += 1;
        if self.values > LIMITS.values {
            return Err(self.record_fault(ReceiptParseError::TooMuch { what: "values", limit: LIMITS.values }));
        }
        let mut library = serde_json::Deserializer::from_str(text);
        match text.as_bytes().first() {
            Some(b'{') => self.read_container(|reader| library.deserialize_map(reader)),
            Some(b'[') => self.read_container(|reader| library.deserialize_seq(reader)),
            Some(b'"') => library.deserialize_bytes(Wtf8TextVisitor).map(JsonNode::Text),
            Some(b'n') => Ok(JsonNode::Null),
            Some(b't') => Ok(JsonNode::Bool(true)),
            Some(b'f') => Ok(JsonNode::Bool(false)),
            _ => Ok(JsonNode::Number(ExactDouble::from_text(text))),
        }
    }

    fn read_container(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<JsonNode, serde_json::Error>,
    ) -> Result<JsonNode, serde_json::Error> {
        if self.levels == LIMITS.levels {
            return Err(self.record_fault(ReceiptParseError::TooMuch { what: "levels", limit: LIMITS.levels }));
        }
        read(self)
    }

    /// Parses the value at this segment of the current container.
    fn read_child<E: serde::de::Error>(&mut self, segment: JsonPathSegment<'_>, raw: &RawValue) -> Result<JsonNode, E> {
        let bytes = segment.printed_len() + 1;
        self.levels += 1;
        self.path_bytes += bytes;
        self.paths += self.path_bytes;
        if self.paths > LIMITS.paths && !clresolve_core::mutant!("receipts-of-long-paths") {
            let what = "bytes in the paths of all values";
            return Err(self.record_fault(ReceiptParseError::TooMuch { what, limit: LIMITS.paths }));
        }
        let value = self.read_value(raw.get()).map_err(|error| {
            if let Some(ReceiptParseError::DuplicateKey { pointer }) = &mut self.fault {
                *pointer = pointer::join_pointer_segments([segment.to_string().as_str()]) + pointer;
            }
            E::custom(error)
        })?;
        self.levels -= 1;
        self.path_bytes -= bytes;
        Ok(value)
    }
}

impl<'de> Visitor<'de> for &mut JsonNodeReader {
    type Value = JsonNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<JsonNode, A::Error> {
        let mut list = Vec::new();
        while let Some(raw) = items.next_element::<&RawValue>()? {
            list.push(self.read_child(JsonPathSegment::Item(list.len()), raw)?);
        }
        Ok(JsonNode::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonNode, A::Error> {
        let mut names = std::collections::HashSet::new();
        let mut object = Vec::new();
        while let Some(name) = members.next_key::<Wtf8Text>()? {
            if name.as_bytes().len() > LIMITS.name && name.utf16_units().count() > LIMITS.name {
                return Err(
                    self.record_fault(ReceiptParseError::TooMuch { what: "code units in a name", limit: LIMITS.name })
                );
            }
            if !names.insert(name.clone()) && !clresolve_core::mutant!("receipts-say-things-twice") {
                return Err(self.record_fault(ReceiptParseError::DuplicateKey {
                    pointer: pointer::join_pointer_segments([name.to_lossy_string().as_str()]),
                }));
            }
            let value = self.read_child(JsonPathSegment::Member(&name), members.next_value()?)?;
            object.push((name, value));
        }
        Ok(JsonNode::Object(object))
    }
}

impl<'de> serde::Deserialize<'de> for Wtf8Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Wtf8TextVisitor)
    }
}

struct Wtf8TextVisitor;

impl Visitor<'_> for Wtf8TextVisitor {
    type Value = Wtf8Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Wtf8Text, E> {
        Wtf8Text::from_wtf8(bytes).ok_or_else(|| E::custom("not a text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_members_are_refused_at_any_depth_and_in_any_spelling() {
        for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"{"\ud800":1,"\uD800":2}"#] {
            assert!(
                matches!(parse_receipt_object(text.as_bytes()), Err(ReceiptParseError::DuplicateKey { .. })),
                "{text}"
            );
        }
        let below = parse_receipt_object(br#"{"x":[0,{"y/z":1,"y/z":2}]}"#);
        assert_eq!(below, Err(ReceiptParseError::DuplicateKey { pointer: "/x/1/y~1z".to_owned() }));
    }

    #[test]
    fn the_bytes_of_a_segment_are_those_that_are_written() {
        let lone = ["a\u{e9}\u{ffff}\u{1f600}".as_bytes(), &[0xed, 0xa0, 0x80]].concat();
        let lone = Wtf8Text::from_wtf8(&lone).expect("a lone surrogate at the end");
        let items = [0, 9, 10, 99, 100, usize::MAX].map(JsonPathSegment::Item);
        for segment in items.into_iter().chain([JsonPathSegment::Member(&lone), JsonPathSegment::Member(&"".into())]) {
            assert_eq!(segment.printed_len(), segment.to_string().len(), "{segment}");
        }
    }

    #[test]
    fn a_text_keeps_its_lone_surrogates() {
        let node = parse_receipt_object(br#"{"a":"x\ud800y\ude00\ud83d\ude00"}"#).expect("an object");
        let Some(JsonNode::Text(text)) = node.get("a") else { panic!("a text") };
        assert_eq!(text.utf16_units().collect::<Vec<_>>(), [0x78, 0xd800, 0x79, 0xde00, 0xd83d, 0xde00]);
        assert!(text.as_bytes().ends_with("\u{1f600}".as_bytes()), "a pair is one character");
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let limit = |text: String| match parse_receipt_object(text.as_bytes()) {
            Err(ReceiptParseError::TooMuch { limit, .. }) => limit,
            other => panic!("{other:?}"),
        };
        assert_eq!(limit(" ".repeat(MAX_BYTES + 1)), MAX_BYTES);
        assert_eq!(limit(format!("{}{}", r#"{"a":"#.repeat(5000), "1}".to_owned() + &"}".repeat(4999))), LIMITS.levels);
        assert_eq!(limit(format!(r#"{{"a":[0{}]}}"#, ",0".repeat(LIMITS.values))), LIMITS.values);
        let most = format!(r#"{{"a":[0{}]}}"#, ",0".repeat(LIMITS.values - 3));
        let commas = ",\\\"".repeat(LIMITS.values);
        for text in [most, format!(r#"{{"a":"{commas}","b":"{commas}"}}"#)] {
            assert!(parse_receipt_object(text.as_bytes()).is_ok());
        }
        for unit in ["n", "\u{ff61}", r"\ud800"] {
            let named = |units: usize| format!(r#"{{"{}":0}}"#, unit.repeat(units));
            assert!(parse_receipt_object(named(LIMITS.name).as_bytes()).is_ok(), "{unit}");
            assert_eq!(limit(named(LIMITS.name + 1)), LIMITS.name, "{unit}");
        }
    }

    /// Error reports print the path of a value, so the total is bounded.
    #[test]
    fn the_paths_of_all_values_are_bounded_together() {
        let named = |units: usize| {
            parse_receipt_object(format!(r#"{{"{}":[0{}]}}"#, "n".repeat(units), ",0".repeat(7_000)).as_bytes())
        };
        assert!(named(250).is_ok());
        let what = "bytes in the paths of all values";
        assert_eq!(named(350), Err(ReceiptParseError::TooMuch { what, limit: LIMITS.paths }));
    }

    #[test]
    fn only_one_object_is_read() {
        for text in
            ["", "[]", "null", "{} {}", "{'a':1}", "{\"a\":\"\n\"}", "{\"a\":01}", "\u{feff}{}", "{\"a\":\"\\ud8\"}"]
        {
            assert!(matches!(parse_receipt_object(text.as_bytes()), Err(ReceiptParseError::NotJson(_))), "{text}");
        }
        assert!(matches!(parse_receipt_object(b"{\"a\":\"\xed\xa0\x80\"}"), Err(ReceiptParseError::NotJson(_))));
        let long = format!("{{\"a\": 1{}}}", "0".repeat(400));
        assert!(matches!(parse_receipt_object(long.as_bytes()), Err(ReceiptParseError::TooCostly(_))));
    }
}
