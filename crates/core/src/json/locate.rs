//! Finds the position of a JSON Pointer's target in the text of a card, for findings with line and column.
//!
//! The text must be strict JSON, at least up to the searched position. In any other text a search finds less, but it
//! stays safe: each search is one pass over the text, with no recursion or with bounded recursion.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::pointer;

/// Maximum depth that [`JsonValueSpans`] searches. A card has at most 16 levels.
const MAX_LEVELS: usize = 64;

/// A position in a text, as byte ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonValueSpan {
    /// The member's name with its quotes; `None` for the outermost value and for array items.
    pub key: Option<Range<usize>>,
    /// The value.
    pub value: Range<usize>,
}

/// The position of the value at `pointer`; `None` if the text has no such value.
pub fn find_value_span(text: &str, pointer: &str) -> Option<JsonValueSpan> {
    JsonScanner::new(text).find_pointer_span(pointer, 0)
}

/// The position of the second member with that name, for a duplicate key.
pub fn find_second_member_span(text: &str, pointer: &str) -> Option<JsonValueSpan> {
    JsonScanner::new(text).find_pointer_span(pointer, 1)
}

/// The positions of many values, found in one pass over the text.
#[derive(Debug)]
pub struct JsonValueSpans<'p>(HashMap<&'p str, Option<JsonValueSpan>>);

impl<'p> JsonValueSpans<'p> {
    /// Finds the values at these pointers and the values that contain them.
    pub fn find_all(text: &str, pointers: impl IntoIterator<Item = &'p str>) -> Self {
        let mut wanted = HashMap::new();
        for pointer in pointers {
            // If a pointer is known, so are those of its containing values.
            let _ = enclosing_pointers(pointer).find(|pointer| wanted.insert(*pointer, None).is_some());
        }
        let mut search = JsonSpanSearch { places: Self(wanted), path: String::new() };
        let mut scanner = JsonScanner::new(text);
        scanner.skip_whitespace();
        // In a truncated text fewer values are found.
        let _ = scanner.record_value_spans(&mut search, None, MAX_LEVELS);
        search.places
    }

    /// The position of the value at one of the pointers; `None` if the text has no such value.
    pub fn get(&self, pointer: &str) -> Option<&JsonValueSpan> {
        self.0.get(pointer)?.as_ref()
    }

    /// The position of the value at one of the pointers, or of the innermost value that contains it.
    pub fn get_or_enclosing(&self, pointer: &str) -> Option<&JsonValueSpan> {
        enclosing_pointers(pointer).find_map(|pointer| self.get(pointer))
    }
}

/// The pointer, then the pointers of its containing values, innermost first.
fn enclosing_pointers(pointer: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(pointer), |inner| Some(inner.rsplit_once('/')?.0))
}

/// The state of a search for many values.
struct JsonSpanSearch<'p> {
    places: JsonValueSpans<'p>,
    path: String,
}

/// Converts ascending offsets to lines and columns in one pass over the text.
#[derive(Debug)]
pub struct LineColumnTracker<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    column: usize,
}

impl<'t> LineColumnTracker<'t> {
    /// Starts at the beginning of the text.
    pub const fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1, column: 1 }
    }

    /// Line and column of a byte offset, both from 1. Columns count characters. Offsets must not decrease between
    /// calls.
    pub fn advance(&mut self, offset: usize) -> (usize, usize) {
        let end = self.text.floor_char_boundary(offset).max(self.at);
        let passed = &self.text[self.at..end];
        if let Some(last) = passed.rfind('\n') {
            self.line += passed.bytes().filter(|byte| *byte == b'\n').count();
            self.column = passed[last + 1..].chars().count() + 1;
        } else {
            self.column += passed.chars().count();
        }
        self.at = end;
        (self.line, self.column)
    }
}

/// The members of the text's only object, in order, each from its name to the end of its value; `None` if the text is
/// not one object.
pub fn member_ranges(text: &str) -> Option<Vec<Range<usize>>> {
    JsonScanner::new(text).skip_members()
}

/// The range of the quoted name in a text that begins with a member; `None` if the text does not.
pub fn member_name_range(member: &str) -> Option<Range<usize>> {
    JsonScanner::new(member).skip_string()
}

/// Line and column of a byte offset, both from 1. Columns count characters.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    LineColumnTracker::new(text).advance(offset)
}

struct JsonScanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> JsonScanner<'t> {
    const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Follows `pointer`. If several members have its last name, skips the first `skip` of them.
    fn find_pointer_span(&mut self, pointer: &str, skip: usize) -> Option<JsonValueSpan> {
        self.skip_whitespace();
        let mut key = None;
        let mut segments = pointer.split('/').skip(1).peekable();
        while let Some(segment) = segments.next() {
            let skip = if segments.peek().is_none() { skip } else { 0 };
            key = match self.peek()? {
                b'{' => Some(self.seek_member(&segment.replace("~1", "/").replace("~0", "~"), skip)?),
                b'[' => {
                    self.seek_item(segment.parse().ok()?)?;
                    None
                }
                _ => return None,
            };
        }
        Some(JsonValueSpan { key, value: self.skip_value()? })
    }

    /// Skips a value and everything in it, and records the positions that are searched for.
    fn record_value_spans(
        &mut self,
        search: &mut JsonSpanSearch<'_>,
        key: Option<Range<usize>>,
        levels: usize,
    ) -> Option<()> {
        let start = self.at;
        match self.peek()? {
            b'{' => self.record_member_spans(search, levels.checked_sub(1)?)?,
            b'[' => self.record_item_spans(search, levels.checked_sub(1)?)?,
            _ => {
                self.skip_value()?;
            }
        }
        if let Some(place) = search.places.0.get_mut(search.path.as_str()) {
            *place = Some(JsonValueSpan { key, value: start..self.at });
        }
        Some(())
    }

    fn record_member_spans(&mut self, search: &mut JsonSpanSearch<'_>, levels: usize) -> Option<()> {
        self.at += 1;
        let length = search.path.len();
        loop {
            self.skip_whitespace();
            if self.peek()? == b'}' {
                self.at += 1;
                return Some(());
            }
            let key = self.skip_string()?;
            self.skip_whitespace();
            self.expect_byte(b':')?;
            self.skip_whitespace();
            pointer::push_pointer_segment(&mut search.path, &unquote_member_name(&self.text[key.clone()])?);
            self.record_value_spans(search, Some(key), levels)?;
            search.path.truncate(length);
            self.skip_comma()?;
        }
    }

    fn record_item_spans(&mut self, search: &mut JsonSpanSearch<'_>, levels: usize) -> Option<()> {
        self.at += 1;
        let length = search.path.len();
        for index in 0_usize.. {
            self.skip_whitespace();
            if self.peek()? == b']' {
                break;
            }
            pointer::push_pointer_segment(&mut search.path, &index.to_string());
            self.record_value_spans(search, None, levels)?;
            search.path.truncate(length);
            self.skip_comma()?;
        }
        self.at += 1;
        Some(())
    }

    /// Skips the comma after a member or an item, if there is one.
    fn skip_comma(&mut self) -> Option<()> {
        self.skip_whitespace();
        if self.peek()? == b',' {
            self.at += 1;
        }
        Some(())
    }

    /// Skips the members of an object and returns their ranges.
    fn skip_members(&mut self) -> Option<Vec<Range<usize>>> {
        let mut members = Vec::new();
        self.skip_whitespace();
        self.expect_byte(b'{')?;
        loop {
            self.skip_whitespace();
            if self.peek()? == b'}' {
                return Some(members);
            }
            let key = self.skip_string()?;
            self.skip_whitespace();
            self.expect_byte(b':')?;
            self.skip_whitespace();
            members.push(key.start..self.skip_value()?.end);
            self.skip_comma()?;
        }
    }

    /// Moves from the start of an object to the value of a member, and returns the range of its name.
    fn seek_member(&mut self, name: &str, skip: usize) -> Option<Range<usize>> {
        let mut skip = skip;
        self.at += 1;
        loop {
            self.skip_whitespace();
            let key = self.skip_string()?;
            self.skip_whitespace();
            self.expect_byte(b':')?;
            self.skip_whitespace();
            if quoted_name_equals(&self.text[key.clone()], name) {
                match skip.checked_sub(1) {
                    None => return Some(key),
                    Some(rest) => skip = rest,
                }
            }
            self.skip_item()?;
        }
    }

    /// Moves from the start of an array to the item at `index`.
    fn seek_item(&mut self, index: usize) -> Option<()> {
        self.at += 1;
        self.skip_whitespace();
        for _ in 0..index {
            self.skip_item()?;
            self.skip_whitespace();
        }
        (self.peek()? != b']').then_some(())
    }

    /// Skips a value and the comma after it.
    fn skip_item(&mut self) -> Option<()> {
        self.skip_value()?;
        self.skip_whitespace();
        self.expect_byte(b',')
    }

    fn skip_value(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        match self.peek()? {
            b'"' => return self.skip_string(),
            b'{' | b'[' => self.skip_container()?,
            _ => {
                let rest = &self.text[start..];
                let end = rest.find(|c: char| c.is_ascii_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
                self.at += end;
            }
        }
        (self.at > start).then_some(start..self.at)
    }

    /// Skips an object or array and everything in it.
    fn skip_container(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.skip_string()?;
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Some(());
            }
        }
    }

    fn skip_string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.expect_byte(b'"')?;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(start..self.at)
    }

    fn expect_byte(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Whether a quoted name equals `name` after unescaping.
fn quoted_name_equals(quoted: &str, name: &str) -> bool {
    unquote_member_name(quoted).is_some_and(|plain| plain == name)
}

/// A name without its quotes, unescaped.
fn unquote_member_name(quoted: &str) -> Option<Cow<'_, str>> {
    if quoted.contains('\\') {
        return serde_json::from_str(quoted).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(quoted.get(1..quoted.len() - 1)?))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::json::pointer;

    const TEXT: &str = r#" {"a": [1, {"b/c": "x\"}", "é": [] }, -2.5e3],
  "\u0064": {"a": null, "a": true}, "": {}}"#;

    fn value(pointer: &str) -> Option<&'static str> {
        find_value_span(TEXT, pointer).map(|place| &TEXT[place.value])
    }

    #[test]
    fn pointers_lead_to_values_and_names() {
        for (pointer, expected) in [
            ("/a/0", "1"),
            ("/a/1/b~1c", r#""x\"}""#),
            ("/a/1/é", "[]"),
            ("/a/2", "-2.5e3"),
            ("/d/a", "null"),
            ("/", "{}"),
            ("", TEXT.trim()),
        ] {
            assert_eq!(value(pointer), Some(expected), "{pointer}");
        }
        for pointer in ["/b", "/a/3", "/a/x", "/a/0/b", "/a/1/é/0", "/d/b", "/a/1/b"] {
            assert_eq!(value(pointer), None, "{pointer}");
        }
        let key = find_value_span(TEXT, "/d").and_then(|place| place.key).expect("a member");
        assert_eq!(&TEXT[key], r#""\u0064""#);
    }

    #[test]
    fn the_second_of_two_members_and_the_nearest_value_are_found() {
        assert_eq!(find_second_member_span(TEXT, "/d/a").map(|place| &TEXT[place.value]), Some("true"));
        assert_eq!(find_second_member_span(TEXT, "/a"), None);
        let nearest = |text: &'static str, pointer: &'static str| {
            JsonValueSpans::find_all(text, [pointer]).get_or_enclosing(pointer).map(|place| &text[place.value.clone()])
        };
        assert_eq!(nearest(TEXT, "/a/1/é/7/x"), Some("[]"));
        assert_eq!(nearest(TEXT, "/a/1/b~1c"), Some(r#""x\"}""#));
        assert_eq!(nearest("", "/a"), None);
        assert_eq!(nearest("{\"a\": [1, 2", "/a/1"), Some("2"));
        assert_eq!(nearest("{\"a\": [1, 2", "/a/2"), None);
    }

    #[test]
    fn a_text_deeper_than_the_bound_has_fewer_places() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(JsonValueSpans::find_all(&nested(MAX_LEVELS), [""]).get("").is_some());
        assert!(JsonValueSpans::find_all(&nested(MAX_LEVELS + 1), [""]).get("").is_none());
        assert!(JsonValueSpans::find_all(&nested(1_000_000), [""]).get("").is_none());
    }

    #[test]
    fn members_are_listed_with_their_names() {
        let listed =
            |text: &'static str| member_ranges(text).map(|m| m.into_iter().map(|m| &text[m]).collect::<Vec<_>>());
        assert_eq!(listed(" {\"a\": [1, 2],\n \"b\" : {}}"), Some(vec!["\"a\": [1, 2]", "\"b\" : {}"]));
        assert_eq!(listed("{}"), Some(vec![]));
        for text in ["", "[1]", "{\"a\"", "{\"a\": 1"] {
            assert_eq!(listed(text), None, "{text}");
        }
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let at = |needle: &str| line_and_column(TEXT, TEXT.find(needle).expect("there"));
        assert_eq!(at(" {"), (1, 1));
        assert_eq!(at("[] }"), (1, 33));
        assert_eq!(at("true"), (2, 30));
        assert_eq!(line_and_column("é", 1), (1, 1));
        let mut positions = LineColumnTracker::new(TEXT);
        for needle in [" {", "x", "[] }", "\n", "  \"", "true"] {
            let offset = TEXT.find(needle).expect("there");
            assert_eq!(positions.advance(offset), line_and_column(TEXT, offset), "{needle}");
        }
    }

    fn check(text: &str, value: &Value, at: &str) {
        let place = find_value_span(text, at).unwrap_or_else(|| panic!("{at} in {text}"));
        assert_eq!(JsonValueSpans::find_all(text, [at]).get(at), Some(&place), "{at} in {text}");
        assert_eq!(serde_json::from_str::<Value>(&text[place.value]).expect("JSON"), *value, "{at} in {text}");
        let below = |name: &str| {
            let mut below = at.to_owned();
            pointer::push_pointer_segment(&mut below, name);
            below
        };
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| check(text, value, &below(name))),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, value)| check(text, value, &below(&n.to_string())));
            }
            _ => {}
        }
    }

    fn json() -> impl proptest::strategy::Strategy<Value = Value> {
        use proptest::prelude::{Just, Strategy as _, any, prop_oneof};
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a\"\\\\/~{}\\[\\],: é\n]{0,5}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a\"\\\\/~{}\\[\\],: é\n]{0,3}", inner, 0..4)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

        #[test]
        fn every_value_is_found(value in json()) {
            check(&value.to_string(), &value, "");
            check(&format!("{value:#}"), &value, "");
        }

        #[test]
        fn no_text_is_too_odd(text in "[{}\\[\\],:\"\\\\a0 é]{0,40}", pointer in "(/[a0é]?){0,3}") {
            let place = find_value_span(&text, &pointer);
            proptest::prop_assert!(place.is_none_or(|place| text.get(place.value).is_some()));
            let _ = (find_second_member_span(&text, &pointer), JsonValueSpans::find_all(&text, [pointer.as_str()]).get_or_enclosing(&pointer));
        }
    }
}
