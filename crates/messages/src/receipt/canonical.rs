//! The canonical forms that the families sign: JSON as printed by ECMAScript's `JSON.stringify`, with one of three
//! member orders.

use clresolve_core::json::pointer;

use crate::receipt::json::{ExactDouble, JsonNode, JsonPathSegment, Wtf8Chunk, Wtf8Text};

/// Order of the members of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonMemberOrder {
    /// By the UTF-16 code units of their names (RFC 8785).
    Sorted,
    /// Order of an ECMAScript object to which the members were added in text order: integer-like names come first, in
    /// numeric order.
    Rebuilt,
    /// As `Rebuilt`, with all other names sorted by `localeCompare`. Supported for ASCII names only.
    ByLocale,
}

/// Why a value has no reliable canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CanonicalJsonError {
    #[error("the number at {0} shares its canonical form with other numbers")]
    Number(String),
    #[error("the order of the members at {0} depends on the signer's locale")]
    MemberOrder(String),
}

/// The canonical form of `value`. The parser bounds the depth of a receipt and therefore this recursion.
pub(crate) fn canonical_bytes(value: &JsonNode, order: JsonMemberOrder) -> Result<Vec<u8>, CanonicalJsonError> {
    let mut writer = CanonicalJsonWriter { order, bytes: Vec::new(), path: Vec::new() };
    writer.write(value)?;
    Ok(writer.bytes)
}

struct CanonicalJsonWriter<'n> {
    order: JsonMemberOrder,
    bytes: Vec<u8>,
    /// The path to the value, outermost segment first.
    path: Vec<JsonPathSegment<'n>>,
}

impl<'n> CanonicalJsonWriter<'n> {
    fn current_json_pointer(&self) -> String {
        let segments: Vec<_> = self.path.iter().map(ToString::to_string).collect();
        pointer::join_pointer_segments(segments.iter().map(String::as_str))
    }

    fn write(&mut self, value: &'n JsonNode) -> Result<(), CanonicalJsonError> {
        match value {
            JsonNode::Null => self.push_str("null"),
            JsonNode::Bool(true) => self.push_str("true"),
            JsonNode::Bool(false) => self.push_str("false"),
            JsonNode::Number(ExactDouble(None)) => return Err(CanonicalJsonError::Number(self.current_json_pointer())),
            JsonNode::Number(ExactDouble(Some(value))) => self.push_str(ryu_js::Buffer::new().format(*value)),
            JsonNode::Text(text) => self.write_json_string(text),
            JsonNode::List(items) => {
                self.push_str("[");
                for (at, item) in items.iter().enumerate() {
                    self.write_separator(at);
                    self.write_child(JsonPathSegment::Item(at), item)?;
                }
                self.push_str("]");
            }
            JsonNode::Object(members) => {
                self.push_str("{");
                for (at, (name, member)) in self.sort_members(members)?.into_iter().enumerate() {
                    self.write_separator(at);
                    self.write_json_string(name);
                    self.push_str(":");
                    self.write_child(JsonPathSegment::Member(name), member)?;
                }
                self.push_str("}");
            }
        }
        Ok(())
    }

    fn push_str(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn write_separator(&mut self, at: usize) {
        if at > 0 {
            self.push_str(",");
        }
    }

    fn write_child(&mut self, segment: JsonPathSegment<'n>, value: &'n JsonNode) -> Result<(), CanonicalJsonError> {
        self.path.push(segment);
        self.write(value)?;
        self.path.pop();
        Ok(())
    }

    fn sort_members(
        &self,
        members: &'n [(Wtf8Text, JsonNode)],
    ) -> Result<Vec<&'n (Wtf8Text, JsonNode)>, CanonicalJsonError> {
        let mut list: Vec<_> = members.iter().collect();
        match self.order {
            JsonMemberOrder::Sorted => sort_by_code_units(&mut list),
            JsonMemberOrder::Rebuilt => {
                sort_by_code_units(&mut list);
                list.sort_by_key(|(name, _)| array_index(name).unwrap_or(u32::MAX));
            }
            JsonMemberOrder::ByLocale => {
                let names: Option<Vec<_>> = list.iter().map(|(name, _)| collation_key(name)).collect();
                let names = names.ok_or_else(|| CanonicalJsonError::MemberOrder(self.current_json_pointer()))?;
                let mut keyed: Vec<_> = names.into_iter().zip(list).collect();
                keyed.sort_by(|(one, (name, _)), (other, (another, _))| {
                    let indices = array_index(name).unwrap_or(u32::MAX).cmp(&array_index(another).unwrap_or(u32::MAX));
                    indices.then_with(|| one.cmp(other))
                });
                list = keyed.into_iter().map(|(_, member)| member).collect();
            }
        }
        Ok(list)
    }

    /// Prints a text as `JSON.stringify` does: like the JSON library, but with lone surrogates escaped.
    fn write_json_string(&mut self, text: &Wtf8Text) {
        if let Some(text) = text.as_str() {
            return self.write_json_str(text);
        }
        self.push_str("\"");
        for piece in text.chunks() {
            match piece {
                Wtf8Chunk::Whole(text) => {
                    let before = self.bytes.len();
                    self.write_json_str(text);
                    self.bytes.pop();
                    self.bytes.remove(before);
                }
                Wtf8Chunk::Lone(unit) => self.write_unicode_escape(unit),
            }
        }
        self.push_str("\"");
    }

    fn write_json_str(&mut self, text: &str) {
        serde_json::to_writer(&mut self.bytes, text).expect("a text has a JSON form, and a vector takes it");
    }

    /// Four lower-case hex digits, written without allocation: a receipt may have forty thousand escapes.
    fn write_unicode_escape(&mut self, unit: u16) {
        self.push_str("\\u");
        self.bytes.extend([12, 8, 4, 0].map(|shift| b"0123456789abcdef"[usize::from(unit >> shift & 0xf)]));
    }
}

/// Sorts members by the UTF-16 code units of their names. This equals byte order unless a name has a character beyond
/// U+FFFF, which is encoded as surrogates.
fn sort_by_code_units(members: &mut [&(Wtf8Text, JsonNode)]) {
    const FIRST_OF_PAIRS: u8 = 0xf0;
    if members.iter().any(|(name, _)| name.as_bytes().iter().any(|byte| *byte >= FIRST_OF_PAIRS)) {
        members.sort_by_cached_key(|(name, _)| name.utf16_units().collect::<Vec<_>>());
    } else {
        members.sort_by_key(|(name, _)| name.as_bytes());
    }
}

/// The array index that ECMAScript reads in a name: a decimal below 2^32 - 1 without leading zeros.
fn array_index(name: &Wtf8Text) -> Option<u32> {
    const MAX_DIGITS: usize = 10;
    let digits = name.as_bytes();
    if digits.is_empty() || digits.len() > MAX_DIGITS || (digits[0] == b'0' && digits.len() > 1) {
        return None;
    }
    let value = digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        Some(value * 10 + u64::from(digit))
    })?;
    u32::try_from(value).ok().filter(|index| *index < u32::MAX)
}

/// The printable ASCII characters in the order of the root collation (CLDR); upper-case letters are next to their
/// lower-case forms.
const COLLATION: &str =
    " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ";

/// Sort key of `localeCompare` in the root locale: first the letters, then, as a tie-breaker, their case with lower
/// case first. `None` for a name that is not printable ASCII.
fn collation_key(name: &Wtf8Text) -> Option<(Vec<usize>, Vec<bool>)> {
    let letters: Vec<char> = name.as_str()?.chars().collect();
    let weights: Option<Vec<usize>> =
        letters.iter().map(|letter| COLLATION.find(letter.to_ascii_lowercase())).collect();
    Some((weights?, letters.iter().map(char::is_ascii_uppercase).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipt::json::parse_receipt_object;

    fn formed(text: &str, order: JsonMemberOrder) -> String {
        let value = parse_receipt_object(text.as_bytes()).expect("an object");
        String::from_utf8(canonical_bytes(&value, order).expect("it has a form")).expect("UTF-8")
    }

    #[test]
    fn index_like_names_come_first_only_in_rebuilt_objects() {
        let text = r#"{"b":1,"10":2,"9":3,"01":4,"4294967294":5,"4294967295":6,"-1":7,"":8}"#;
        assert_eq!(
            formed(text, JsonMemberOrder::Rebuilt),
            r#"{"9":3,"10":2,"4294967294":5,"":8,"-1":7,"01":4,"4294967295":6,"b":1}"#
        );
        assert_eq!(
            formed(text, JsonMemberOrder::Sorted),
            r#"{"":8,"-1":7,"01":4,"10":2,"4294967294":5,"4294967295":6,"9":3,"b":1}"#
        );
    }

    #[test]
    fn names_are_ordered_by_code_units_and_not_by_characters() {
        let text = "{\"\u{ff61}\":1,\"\u{1f600}\":2,\"\\ud800\":3}";
        assert_eq!(formed(text, JsonMemberOrder::Sorted), "{\"\\ud800\":3,\"\u{1f600}\":2,\"\u{ff61}\":1}");
        let without_pairs = "{\"\u{ff61}\":1,\"\\ud800\":2,\"\u{e9}\":3,\"z\":4}";
        let expected = "{\"z\":4,\"\u{e9}\":3,\"\\ud800\":2,\"\u{ff61}\":1}";
        assert_eq!(formed(without_pairs, JsonMemberOrder::Sorted), expected);
        let rebuilt = "{\"\u{ff61}\":1,\"\u{1f600}\":2,\"7\":3}";
        assert_eq!(formed(rebuilt, JsonMemberOrder::Rebuilt), "{\"7\":3,\"\u{1f600}\":2,\"\u{ff61}\":1}");
    }

    #[test]
    fn values_are_written_as_ecmascript_writes_them() {
        let text = r#"{"a":[-0,1.0,1e21,1E-7,123456789012345680000],"b":"\u0000\u001F\b\u007f\/\u2028\"\\"}"#;
        let expected =
            "{\"a\":[0,1,1e+21,1e-7,123456789012345680000],\"b\":\"\\u0000\\u001f\\b\u{7f}/\u{2028}\\\"\\\\\"}";
        assert_eq!(formed(text, JsonMemberOrder::Sorted), expected);
        let lone = "{\"a\":\"\\udfff\\\"\\uD800\u{e9}\\n\"}";
        assert_eq!(formed(lone, JsonMemberOrder::Sorted), "{\"a\":\"\\udfff\\\"\\ud800\u{e9}\\n\"}");
    }

    #[test]
    fn a_member_that_is_named_as_the_prototype_is_a_member() {
        assert_eq!(formed(r#"{"__proto__":{"x":1}}"#, JsonMemberOrder::Rebuilt), r#"{"__proto__":{"x":1}}"#);
    }

    #[test]
    fn numbers_that_share_a_form_have_none() {
        let refused = |text: &str| {
            canonical_bytes(&parse_receipt_object(text.as_bytes()).expect("an object"), JsonMemberOrder::Sorted)
        };
        assert_eq!(refused(r#"{"a":[9007199254740993]}"#), Err(CanonicalJsonError::Number("/a/0".to_owned())));
        assert_eq!(refused(r#"{"a":1e400}"#), Err(CanonicalJsonError::Number("/a".to_owned())));
    }

    #[test]
    fn an_order_that_depends_on_the_locale_is_none() {
        assert_eq!(
            formed(r#"{"Z":1,"a":2,"A":3,"_":4,"z":5,"9":6}"#, JsonMemberOrder::ByLocale),
            r#"{"9":6,"_":4,"a":2,"A":3,"z":5,"Z":1}"#
        );
        let foreign = parse_receipt_object("{\"x\":{\"ä\":1}}".as_bytes()).expect("an object");
        assert_eq!(
            canonical_bytes(&foreign, JsonMemberOrder::ByLocale),
            Err(CanonicalJsonError::MemberOrder("/x".to_owned()))
        );
    }
}
