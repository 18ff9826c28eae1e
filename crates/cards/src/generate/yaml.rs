//! A YAML tree whose values have line numbers, so that errors can report a location.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Options, Spanned};

use super::error::CardGenerationError;
use super::source::OrlojResourcePosition;
use clresolve_core::text::{UntrustedText, excerpt_text};

/// Maximum depth of a document. Schemas in cards are far shallower, and the parser recurses.
const MAX_LEVELS: usize = 32;

/// Maximum nesting of aliases. Each level may add [`MAX_LEVELS`] to the depth of the tree.
const MAX_ALIAS_LEVELS: usize = 3;

/// Maximum number of documents in a file. The largest published example has some dozens.
const MAX_DOCUMENTS: usize = 4096;

/// Maximum number of values in a file, including containers. A resource has about ten.
const MAX_NODES: usize = 200_000;

/// Maximum number of values that all aliases together expand to, so that a few lines cannot expand to millions.
const MAX_REPLAYED: usize = 50_000;

/// Maximum number of anchors, aliases and merge keys. Real resources have a handful.
const MAX_ALIASES: usize = 1000;

/// The largest integer that all JSON parsers represent exactly (RFC 7493, 2.2).
const MAX_WHOLE: u64 = (1 << 53) - 1;

/// A value with its line number.
pub(super) struct YamlNode {
    line: u64,
    /// Byte offset and length of its text, if known.
    written: Option<(u64, u64)>,
    content: YamlContent,
}

enum YamlContent {
    Null,
    Bool(bool),
    Number(Number),
    /// An integer that parsers interpret differently.
    DoubtfulNumber,
    Text(String),
    List(Vec<YamlNode>),
    /// In the order of the file, without duplicate keys.
    Map(Vec<(String, YamlNode)>),
}

/// The documents of a text, which messages refer to as `file`. Empty documents are skipped.
pub(super) fn parse_yaml_documents(file: &str, text: &str) -> Result<Vec<YamlNode>, CardGenerationError> {
    let read = serde_saphyr::from_multiple_with_options(text, yaml_options());
    let mut nodes: Vec<YamlNode> = read.map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        let detail = error.without_snippet().render_with_formatter(&serde_saphyr::UserMessageFormatter);
        CardGenerationError::Yaml {
            place: OrlojResourcePosition::new(file, line),
            detail: UntrustedText::new(&excerpt_text(&detail)).to_string(),
        }
    })?;
    nodes.iter_mut().for_each(|node| node.mark_ambiguous_numbers(text));
    Ok(nodes)
}

impl YamlNode {
    /// Marks the numbers whose value differs from `text`. The parser limits the depth of a tree, which bounds this
    /// recursion.
    fn mark_ambiguous_numbers(&mut self, text: &str) {
        match &mut self.content {
            YamlContent::List(items) => items.iter_mut().for_each(|item| item.mark_ambiguous_numbers(text)),
            YamlContent::Map(members) => members.iter_mut().for_each(|(_, member)| member.mark_ambiguous_numbers(text)),
            YamlContent::Number(number) if is_ambiguous_number(number, source_text(self.written, text)) => {
                self.content = YamlContent::DoubtfulNumber;
            }
            _ => {}
        }
    }
}

fn source_text(place: Option<(u64, u64)>, text: &str) -> Option<&str> {
    let (at, length) = place?;
    let at = usize::try_from(at).ok()?;
    text.get(at..at.checked_add(usize::try_from(length).ok()?)?)
}

/// Whether an integer is too large for some JSON parsers, or was parsed as a fraction. A fraction means that it is too
/// large for the YAML parser, or has a leading zero, which some parsers treat as octal and others as decimal.
fn is_ambiguous_number(number: &Number, written: Option<&str>) -> bool {
    if let Some(whole) = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs)) {
        return whole > MAX_WHOLE;
    }
    let is_whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"+-_".contains(&byte));
    number.as_f64().is_some_and(|number| number.fract() == 0.0) && written.is_none_or(is_whole)
}

fn yaml_options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_LEVELS,
            flow_nesting_limit: MAX_LEVELS,
            max_documents: MAX_DOCUMENTS,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_anchors: MAX_ALIASES,
            max_aliases: MAX_ALIASES,
            max_merge_keys: MAX_ALIASES,
            max_recorded_anchor_events: MAX_NODES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED,
            max_replay_stack_depth: MAX_ALIAS_LEVELS,
        },
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::Error,
        strict_booleans: true,
        reject_unsupported_tags: !clresolve_core::mutant!("strange-tags"),
        with_snippet: false,
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, defined } = Spanned::<YamlContent>::deserialize(d)?;
        let span = defined.span();
        Ok(Self { line: referenced.line(), written: span.byte_offset().zip(span.byte_len()), content: value })
    }
}

impl<'de> Deserialize<'de> for YamlContent {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(YamlContentVisitor)
    }
}

struct YamlContentVisitor;

impl<'de> Visitor<'de> for YamlContentVisitor {
    type Value = YamlContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<YamlContent, E> {
        Ok(YamlContent::Null)
    }

    fn visit_none<E>(self) -> Result<YamlContent, E> {
        Ok(YamlContent::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<YamlContent, D::Error> {
        YamlContent::deserialize(d)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlContent, E> {
        Ok(YamlContent::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlContent, E> {
        Ok(YamlContent::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlContent, E> {
        Ok(YamlContent::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<YamlContent, E> {
        Number::from_f64(value).map(YamlContent::Number).ok_or_else(|| E::custom("a number that JSON cannot represent"))
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlContent, E> {
        Ok(YamlContent::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<YamlContent, E> {
        Ok(YamlContent::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlContent, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlContent::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<YamlContent, A::Error> {
        let mut map: Vec<(String, YamlNode)> = Vec::new();
        while let Some((key, value)) = members.next_entry::<String, YamlNode>()? {
            map.push((key, value));
        }
        if map.is_empty() {
            return Ok(YamlContent::Map(map));
        }
        let mut keys: Vec<&str> = map.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(A::Error::custom("a key occurs twice"));
        }
        Ok(YamlContent::Map(map))
    }
}

/// A value with its path in the document.
#[derive(Clone)]
pub(super) struct YamlNodeAtPath<'n> {
    file: &'n str,
    node: &'n YamlNode,
    path: String,
}

impl<'n> YamlNodeAtPath<'n> {
    /// The root of a document.
    pub(super) const fn from_document(file: &'n str, node: &'n YamlNode) -> Self {
        Self { file, node, path: String::new() }
    }

    pub(super) fn source_position(&self) -> OrlojResourcePosition {
        OrlojResourcePosition::new(self.file, self.node.line)
    }

    /// The member with this name. `None` if it is absent or null.
    pub(super) fn get(&self, name: &str) -> Result<Option<Self>, CardGenerationError> {
        Ok(self.non_null_members()?.into_iter().find_map(|(key, field)| (key == name).then_some(field)))
    }

    /// The member with this name, or an error if it is absent.
    pub(super) fn require_member(&self, name: &str) -> Result<Self, CardGenerationError> {
        match self.get(name)? {
            Some(field) => Ok(field),
            None => Err(self.invalid_value_error(format_args!("{name} is missing; add it"))),
        }
    }

    /// All members that are not null.
    pub(super) fn non_null_members(&self) -> Result<Vec<(&'n str, Self)>, CardGenerationError> {
        let YamlContent::Map(members) = &self.node.content else { return Err(self.wrong_type_error("a mapping")) };
        let there = members.iter().filter(|(_, node)| !matches!(node.content, YamlContent::Null));
        let field = |(key, node): &'n (String, YamlNode)| {
            (key.as_str(), Self { file: self.file, node, path: self.member_path(key) })
        };
        Ok(there.map(field).collect())
    }

    pub(super) fn require_text(&self) -> Result<&'n str, CardGenerationError> {
        match &self.node.content {
            YamlContent::Text(text) => Ok(text),
            YamlContent::Bool(_) | YamlContent::Number(_) | YamlContent::DoubtfulNumber => {
                Err(self.wrong_type_error("text; put it in quotes"))
            }
            _ => Err(self.wrong_type_error("text")),
        }
    }

    pub(super) fn require_bool(&self) -> Result<bool, CardGenerationError> {
        match self.node.content {
            YamlContent::Bool(flag) => Ok(flag),
            _ => Err(self.wrong_type_error("true or false")),
        }
    }

    pub(super) fn require_items(&self) -> Result<Vec<Self>, CardGenerationError> {
        let YamlContent::List(items) = &self.node.content else { return Err(self.wrong_type_error("a list")) };
        let field = |(at, node)| Self { file: self.file, node, path: format!("{}[{at}]", self.path) };
        Ok(items.iter().enumerate().map(field).collect())
    }

    /// The items of a list of texts.
    pub(super) fn require_texts(&self) -> Result<Vec<&'n str>, CardGenerationError> {
        self.require_items()?.iter().map(Self::require_text).collect()
    }

    /// The members of a mapping as JSON.
    pub(super) fn to_json_object(&self) -> Result<Map<String, Value>, CardGenerationError> {
        match json_from_yaml(self.node) {
            Ok(Value::Object(members)) => Ok(members),
            Ok(_) => Err(self.wrong_type_error("a mapping")),
            Err(line) => Err(CardGenerationError::Invalid {
                place: OrlojResourcePosition::new(self.file, line),
                detail: format!(
                    "{}: a whole number has a zero before it, or is beyond {MAX_WHOLE}, so that readers take it for different \
                     ones; write it otherwise",
                    UntrustedText::new(&self.path)
                ),
            }),
        }
    }

    /// The error for a field with an invalid value.
    pub(super) fn invalid_value_error(&self, detail: impl fmt::Display) -> CardGenerationError {
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        CardGenerationError::Invalid {
            place: self.source_position(),
            detail: format!("{}: {detail}", UntrustedText::new(path)),
        }
    }

    fn wrong_type_error(&self, what: &str) -> CardGenerationError {
        self.invalid_value_error(format_args!("expected {what}, found {}", self.node.content.type_name()))
    }

    fn member_path(&self, name: &str) -> String {
        if self.path.is_empty() { excerpt_text(name) } else { format!("{}.{}", self.path, excerpt_text(name)) }
    }
}

impl YamlContent {
    const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "true or false",
            Self::Number(_) | Self::DoubtfulNumber => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// The node as JSON, or the line of a number that parsers interpret differently. The parser limits the depth of a tree,
/// which bounds this recursion.
fn json_from_yaml(node: &YamlNode) -> Result<Value, u64> {
    Ok(match &node.content {
        YamlContent::Null => Value::Null,
        YamlContent::Bool(flag) => Value::Bool(*flag),
        YamlContent::Number(number) => Value::Number(number.clone()),
        YamlContent::DoubtfulNumber => return Err(node.line),
        YamlContent::Text(text) => Value::String(text.clone()),
        YamlContent::List(items) => items.iter().map(json_from_yaml).collect::<Result<_, _>>()?,
        YamlContent::Map(members) => Value::Object(
            members.iter().map(|(key, node)| Ok((key.clone(), json_from_yaml(node)?))).collect::<Result<_, u64>>()?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refusal(text: &str) -> (u64, String) {
        match parse_yaml_documents("f.yaml", text) {
            Err(CardGenerationError::Yaml { place, detail }) => (place.line, detail),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("accepted: {text}"),
        }
    }

    #[test]
    fn values_know_their_lines() {
        let nodes =
            parse_yaml_documents("f.yaml", "---\n# nothing\n---\na: 1\nb:\n  - x\n  - [true, ~]\n").expect("YAML");
        assert_eq!(nodes.len(), 1);
        let document = YamlNodeAtPath::from_document("f.yaml", &nodes[0]);
        let list = document.require_member("b").expect("b").require_items().expect("a list");
        assert_eq!((list[0].source_position().line, list[1].source_position().line), (6, 7));
        assert_eq!(json_from_yaml(&nodes[0]), Ok(serde_json::json!({"a": 1, "b": ["x", [true, null]]})));
    }

    #[test]
    fn numbers_are_what_is_written_or_in_doubt() {
        let head = "# ü: a comment whose bytes are more than its characters\n---\nx: &x 010\n---\n";
        for (text, value) in [
            ("10", serde_json::json!(10)),
            ("10.0", serde_json::json!(10.0)),
            ("1e22", serde_json::json!(1e22)),
            ("-0.5", serde_json::json!(-0.5)),
            ("0x10", serde_json::json!(16)),
            ("9007199254740991", serde_json::json!(9_007_199_254_740_991_u64)),
            ("'010'", serde_json::json!("010")),
        ] {
            let nodes = parse_yaml_documents("f", &format!("{head}a: {text}\n")).expect("YAML");
            assert_eq!(json_from_yaml(&nodes[1]), Ok(serde_json::json!({ "a": value })), "{text}");
        }
        for text in
            ["010", "-010", "00", "9007199254740992", "-9007199254740992", "18446744073709551616", "[1, {b: 010}]"]
        {
            let nodes = parse_yaml_documents("f", &format!("{head}a: {text}\n")).expect("YAML");
            assert_eq!(json_from_yaml(&nodes[1]), Err(5), "{text}");
        }
        let nodes = parse_yaml_documents("f", "a: &a 010\nb:\n  - *a\nc: &c 10.0\nd: *c\n").expect("YAML");
        let document = YamlNodeAtPath::from_document("f", &nodes[0]);
        let of = |name| json_from_yaml(document.require_member(name).expect("there").node);
        assert_eq!(of("b"), Err(3), "where it is named");
        assert_eq!(of("d"), Ok(serde_json::json!(10.0)));
    }

    #[test]
    fn what_yaml_leaves_open_is_refused() {
        assert_eq!(refusal("a: 1\na: 2\n").0, 2);
        assert_eq!(refusal("a: 1\nb: [1\n").0, 2);
        assert!(parse_yaml_documents("f", "a: !secret x\n").is_err(), "a tag of somebody's own");
        assert!(parse_yaml_documents("f", "a: .nan\n").is_err());
        assert!(parse_yaml_documents("f", &"[".repeat(1000)).is_err());
        assert!(parse_yaml_documents("f", &"a:\n".repeat(10)).is_err());
        let flag = parse_yaml_documents("f", "a: yes\n").expect("YAML");
        let error = YamlNodeAtPath::from_document("f", &flag[0])
            .require_member("a")
            .and_then(|a| a.require_bool())
            .expect_err("text");
        assert_eq!(error.to_string(), "f, line 1: a: expected true or false, found text");
    }

    #[test]
    fn aliases_cannot_name_millions_of_values_or_levels() {
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, of) in ["b", "c", "d", "e", "f", "g", "h"].iter().zip(["a", "b", "c", "d", "e", "f", "g"]) {
            bomb.push_str(&format!("{name}: &{name} [{}]\n", [format!("*{of}").as_str(); 9].join(", ")));
        }
        assert!(parse_yaml_documents("f", &bomb).is_err());
        let mut deep = "a0: &a0 [x]\n".to_owned();
        for level in 1..500 {
            deep.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
        }
        assert!(parse_yaml_documents("f", &deep).is_err());
        assert!(parse_yaml_documents("f", "a: &a {b: 1}\nc: *a\nd: *a\n").is_ok(), "an honest alias");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?s)[a-c:&*!|>\\-\\[\\]{}, \n\"'#~<%@?0-9.]{0,120}") {
            let _ = parse_yaml_documents("f", &text);
        }
    }
}
