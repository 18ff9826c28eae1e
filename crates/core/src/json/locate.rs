//! Where in the text of a card a JSON Pointer leads: for findings with line and column.
//!
//! Made for texts that are strict JSON, or are so up to the place that is looked for. On any other text it finds
//! less, and nothing worse: each search is one pass over the text, without recursion.

use std::ops::Range;

/// A place in a text, as byte ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The member's name with its quotes; none for the outermost value and for items of lists.
    pub key: Option<Range<usize>>,
    /// The value.
    pub value: Range<usize>,
}

/// The place of the value at `pointer`; `None` where the text has none.
pub fn find(text: &str, pointer: &str) -> Option<Place> {
    Scanner::new(text).walk(pointer, 0)
}

/// The place of the second member of that name: what a duplicate key is about.
pub fn find_second(text: &str, pointer: &str) -> Option<Place> {
    Scanner::new(text).walk(pointer, 1)
}

/// The place of the value at `pointer`, or of the nearest value around it that is there.
pub fn find_nearest(text: &str, pointer: &str) -> Option<Place> {
    let mut pointer = pointer;
    loop {
        if let Some(place) = find(text, pointer) {
            return Some(place);
        }
        pointer = pointer.rsplit_once('/')?.0;
    }
}

/// The members of the text's one object, in its order, each from its name to the end of its value; `None` where the text
/// is not one object.
pub fn members(text: &str) -> Option<Vec<Range<usize>>> {
    Scanner::new(text).members()
}

/// Where the name with its quotes stands in a text that begins with a member; `None` where it does not.
pub fn key(member: &str) -> Option<Range<usize>> {
    Scanner::new(member).string()
}

/// Line and column of a byte offset, both from 1; a column is a character.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Follows `pointer`; of members of the last name the one after `skip` others.
    fn walk(&mut self, pointer: &str, skip: usize) -> Option<Place> {
        self.space();
        let mut key = None;
        let mut segments = pointer.split('/').skip(1).peekable();
        while let Some(segment) = segments.next() {
            let skip = if segments.peek().is_none() { skip } else { 0 };
            key = match self.peek()? {
                b'{' => Some(self.member(&segment.replace("~1", "/").replace("~0", "~"), skip)?),
                b'[' => {
                    self.item(segment.parse().ok()?)?;
                    None
                }
                _ => return None,
            };
        }
        Some(Place { key, value: self.value()? })
    }

    /// Over the members of an object.
    fn members(&mut self) -> Option<Vec<Range<usize>>> {
        let mut members = Vec::new();
        self.space();
        self.expect(b'{')?;
        loop {
            self.space();
            if self.peek()? == b'}' {
                return Some(members);
            }
            let key = self.string()?;
            self.space();
            self.expect(b':')?;
            self.space();
            members.push(key.start..self.value()?.end);
            self.space();
            if self.peek()? == b',' {
                self.at += 1;
            }
        }
    }

    /// From the start of an object to the value of a member; gives where its name stands.
    fn member(&mut self, name: &str, skip: usize) -> Option<Range<usize>> {
        let mut skip = skip;
        self.at += 1;
        loop {
            self.space();
            let key = self.string()?;
            self.space();
            self.expect(b':')?;
            self.space();
            if is_named(&self.text[key.clone()], name) {
                match skip.checked_sub(1) {
                    None => return Some(key),
                    Some(rest) => skip = rest,
                }
            }
            self.next()?;
        }
    }

    /// From the start of a list to its item number `index`.
    fn item(&mut self, index: usize) -> Option<()> {
        self.at += 1;
        self.space();
        for _ in 0..index {
            self.next()?;
            self.space();
        }
        (self.peek()? != b']').then_some(())
    }

    /// Over a value and the comma after it.
    fn next(&mut self) -> Option<()> {
        self.value()?;
        self.space();
        self.expect(b',')
    }

    fn value(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        match self.peek()? {
            b'"' => return self.string(),
            b'{' | b'[' => self.container()?,
            _ => {
                let rest = &self.text[start..];
                let end = rest.find(|c: char| c.is_ascii_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
                self.at += end;
            }
        }
        (self.at > start).then_some(start..self.at)
    }

    /// Over an object or a list and everything in it.
    fn container(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
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

    fn string(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.expect(b'"')?;
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

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
}

/// Whether a name in its quotes is `name`, escapes resolved.
fn is_named(quoted: &str, name: &str) -> bool {
    if quoted.contains('\\') {
        serde_json::from_str::<String>(quoted).is_ok_and(|plain| plain == name)
    } else {
        quoted.len() == name.len() + 2 && &quoted[1..quoted.len() - 1] == name
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::json::pointer;

    const TEXT: &str = r#" {"a": [1, {"b/c": "x\"}", "é": [] }, -2.5e3],
  "\u0064": {"a": null, "a": true}, "": {}}"#;

    fn value(pointer: &str) -> Option<&'static str> {
        find(TEXT, pointer).map(|place| &TEXT[place.value])
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
        let key = find(TEXT, "/d").and_then(|place| place.key).expect("a member");
        assert_eq!(&TEXT[key], r#""\u0064""#);
    }

    #[test]
    fn the_second_of_two_members_and_the_nearest_value_are_found() {
        assert_eq!(find_second(TEXT, "/d/a").map(|place| &TEXT[place.value]), Some("true"));
        assert_eq!(find_second(TEXT, "/a"), None);
        assert_eq!(find_nearest(TEXT, "/a/1/é/7/x").map(|place| &TEXT[place.value]), Some("[]"));
        assert_eq!(find_nearest("", "/a"), None);
    }

    #[test]
    fn members_are_listed_with_their_names() {
        let listed = |text: &'static str| members(text).map(|m| m.into_iter().map(|m| &text[m]).collect::<Vec<_>>());
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
    }

    fn check(text: &str, value: &Value, at: &str) {
        let place = find(text, at).unwrap_or_else(|| panic!("{at} in {text}"));
        assert_eq!(serde_json::from_str::<Value>(&text[place.value]).expect("JSON"), *value, "{at} in {text}");
        let below = |name: &str| {
            let mut below = at.to_owned();
            pointer::push(&mut below, name);
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
            let place = find(&text, &pointer);
            proptest::prop_assert!(place.is_none_or(|place| text.get(place.value).is_some()));
            let _ = (find_second(&text, &pointer), find_nearest(&text, &pointer));
        }
    }
}
