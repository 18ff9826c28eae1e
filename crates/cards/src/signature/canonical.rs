//! The payload of a card's signatures: the card's canonical form (RFC 8785) without `signatures`.
//!
//! Before canonicalization, members of a 1.0 card with their default value are omitted, unless they are required or
//! explicitly optional. Members that the message definitions do not contain are always kept, so the signature covers
//! them.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::message::{A2aProtobufField, A2aProtobufFieldPresence, A2aProtobufFieldType, AGENT_CARD};
use clresolve_core::json::pointer;
use clresolve_verdict::canonical;

/// Maximum number of signatures of a card: the publisher's, those of third parties that vouch for it, and those by keys
/// under rotation. Each costs the verifier a public-key operation.
pub const MAX_SIGNATURES: usize = 16;

/// The member that is not signed.
pub(super) const SIGNATURES: &str = "signatures";

/// The largest integer that all JSON parsers represent exactly (RFC 7493, 2.2).
const MAX_INTEGER: u64 = (1 << 53) - 1;

/// Which members with their default value are omitted from a 1.0 card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DefaultFieldOmissionRule {
    /// As specified: all except required and explicitly optional ones.
    Specification,
    /// Like the A2A SDKs, which also omit required and optional members that are empty (`""`, `[]`, `{}`). This applies
    /// only to members in the message definitions. Entries of maps and lists are kept, since their presence has a
    /// meaning.
    WithoutEmpty,
}

/// The bytes to sign, in the form of the specification.
///
/// # Errors
/// [`UnsafeIntegerError`] if other programs would parse one of its numbers differently.
pub fn canonical_payload(card: &Value) -> Result<Vec<u8>, UnsafeIntegerError> {
    payload_in_form(card, DefaultFieldOmissionRule::Specification)
}

fn payload_in_form(card: &Value, form: DefaultFieldOmissionRule) -> Result<Vec<u8>, UnsafeIntegerError> {
    Ok(UnsignedCard::from_card(card)?.take_payload(form))
}

/// The bytes to sign in both forms: that of the specification, and that without empty members.
pub(super) fn canonical_payloads(card: &Value) -> Result<[Vec<u8>; 2], UnsafeIntegerError> {
    let mut signed = UnsignedCard::from_card(card)?;
    // The second form omits a superset of the first.
    Ok([DefaultFieldOmissionRule::Specification, DefaultFieldOmissionRule::WithoutEmpty]
        .map(|form| signed.take_payload(form)))
}

/// A card without its signatures.
struct UnsignedCard {
    card: Value,
    is_of_1_0: bool,
}

impl UnsignedCard {
    fn from_card(card: &Value) -> Result<Self, UnsafeIntegerError> {
        if let Some(place) = unsafe_integer_pointer(card) {
            return Err(UnsafeIntegerError { place });
        }
        let mut card = card.clone();
        let members = card.as_object_mut();
        let is_of_1_0 = members.is_some_and(|members| {
            members.remove(SIGNATURES);
            is_a2a_1_0_card(members)
        });
        Ok(Self { card, is_of_1_0 })
    }

    /// The payload in this form. Omitted members are lost.
    fn take_payload(&mut self, form: DefaultFieldOmissionRule) -> Vec<u8> {
        if let Some(members) = self.card.as_object_mut().filter(|_| self.is_of_1_0) {
            omit_defaults(members, AGENT_CARD, form);
        }
        canonical::canonical_json(&self.card).expect("a JSON value has a form")
    }
}

/// Whether a card is an A2A 1.0 card: a 0.3 card has its own `url` and `protocolVersion`. An empty list of interfaces
/// does not make it a 1.0 card, since the payload may omit such a list.
fn is_a2a_1_0_card(members: &Map<String, Value>) -> bool {
    let has = |name: &str| members.contains_key(name);
    let has_interfaces = members.get("supportedInterfaces").is_some_and(|list| !is_empty_json_value(list));
    has_interfaces || !(has("url") || has("protocolVersion"))
}

/// The card contains a number whose canonical form equals that of another number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number at {place} exceeds 2^53 - 1")]
pub struct UnsafeIntegerError {
    /// JSON Pointer of the number.
    pub place: String,
}

/// Removes members that have their default value and may be omitted. Messages do not contain themselves, so the
/// recursion ends.
fn omit_defaults(members: &mut Map<String, Value>, message: &[A2aProtobufField], form: DefaultFieldOmissionRule) {
    members.retain(|name, value| {
        let Some(member) = message.iter().find(|member| member.name == name) else { return true };
        omit_nested_defaults(value, member.kind, form);
        match member.presence {
            A2aProtobufFieldPresence::Implicit => !is_protobuf_default(value, member.kind),
            A2aProtobufFieldPresence::Explicit if value.is_null() => false,
            A2aProtobufFieldPresence::Explicit => {
                form == DefaultFieldOmissionRule::Specification || !is_empty_text(value)
            }
            A2aProtobufFieldPresence::Required => {
                form == DefaultFieldOmissionRule::Specification || !is_empty_json_value(value)
            }
        }
    });
}

/// Applies [`omit_defaults`] to the messages in a value. A value of an unexpected type is unchanged.
fn omit_nested_defaults(value: &mut Value, kind: A2aProtobufFieldType, form: DefaultFieldOmissionRule) {
    kind.for_each_message(value, |value, message| {
        if let Some(members) = value.as_object_mut() {
            omit_defaults(members, message, form);
        }
    });
}

fn is_protobuf_default(value: &Value, kind: A2aProtobufFieldType) -> bool {
    match (kind, value) {
        (_, Value::Null) | (A2aProtobufFieldType::Flag, Value::Bool(false)) => true,
        (A2aProtobufFieldType::Text, Value::String(text)) => text.is_empty(),
        (A2aProtobufFieldType::Texts | A2aProtobufFieldType::Messages(_), Value::Array(list)) => list.is_empty(),
        (A2aProtobufFieldType::Map(_) | A2aProtobufFieldType::TextMap, Value::Object(map)) => map.is_empty(),
        _ => false,
    }
}

fn is_empty_text(value: &Value) -> bool {
    value.as_str().is_some_and(str::is_empty)
}

fn is_empty_json_value(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// JSON Pointer of the first integer beyond ±[`MAX_INTEGER`], in any notation. Integers that exceed 64 bits and numbers
/// such as `1e300` are doubles here. The signatures are skipped.
fn unsafe_integer_pointer(card: &Value) -> Option<String> {
    let is_unsafe = |number: &Number| match number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs)) {
        Some(integer) => integer > MAX_INTEGER,
        // A double beyond that bound is an integer.
        None => number.as_f64().is_none_or(|double| double.abs() > MAX_INTEGER as f64),
    };
    let members = card.as_object().into_iter().flatten().filter(|(name, _)| *name != SIGNATURES);
    let mut path = Vec::new();
    let mut values = members.map(|(name, member)| (CardPointerSegment::Member(name), member));
    values.any(|(segment, value)| find_unsafe_integer(segment, value, &is_unsafe, &mut path)).then(|| {
        pointer::join_pointer_segments(
            path.iter().map(CardPointerSegment::pointer_text).collect::<Vec<_>>().iter().map(AsRef::as_ref),
        )
    })
}

enum CardPointerSegment<'c> {
    Member(&'c str),
    Item(usize),
}

impl CardPointerSegment<'_> {
    fn pointer_text(&self) -> Cow<'_, str> {
        match self {
            Self::Member(name) => Cow::Borrowed(name),
            Self::Item(at) => Cow::Owned(at.to_string()),
        }
    }
}

/// Whether `value` contains an unsafe integer. If so, `path` leads to the first one. All values share one path. The
/// card's parser limits the depth, which bounds the recursion.
fn find_unsafe_integer<'c>(
    segment: CardPointerSegment<'c>,
    value: &'c Value,
    is_unsafe: &impl Fn(&Number) -> bool,
    path: &mut Vec<CardPointerSegment<'c>>,
) -> bool {
    path.push(segment);
    let found = match value {
        Value::Number(number) => is_unsafe(number),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .any(|(at, item)| find_unsafe_integer(CardPointerSegment::Item(at), item, is_unsafe, path)),
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| find_unsafe_integer(CardPointerSegment::Member(name), member, is_unsafe, path)),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    };
    if !found {
        path.pop();
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn text(card: &Value, form: DefaultFieldOmissionRule) -> String {
        String::from_utf8(payload_in_form(card, form).expect("it has one")).expect("UTF-8")
    }

    fn card(change: impl FnOnce(&mut Value)) -> Value {
        let mut card = json!({"supportedInterfaces": []});
        change(&mut card);
        card
    }

    #[test]
    fn the_form_is_rfc_8785() {
        let value = json!({
            "\u{20ac}": 1, "\r": 2, "\u{1f600}": 3, "\u{fb33}": 4, "1": [56.0, 4.5, 2e-3, 1e-27, -0.0],
            "s": "\u{20ac}$\u{f}\nA'B\"\\\\\"/", "signatures": [1e300, 9_007_199_254_740_993_u64],
        });
        let expected = concat!(
            "{\"\\r\":2,\"1\":[56,4.5,0.002,1e-27,0],\"s\":\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\",",
            "\"\u{20ac}\":1,\"\u{1f600}\":3,\"\u{fb33}\":4}"
        );
        assert_eq!(text(&value, DefaultFieldOmissionRule::Specification), expected);
    }

    proptest! {
        #[test]
        fn both_forms_together_are_those_of_the_card(members in prop::collection::btree_map(
            prop::sample::select(vec!["name", "skills", "capabilities", "provider", "iconUrl", "securitySchemes"]),
            prop::sample::select(vec![
                json!(""), json!([]), json!({}), json!(null), json!([{"id": "", "tags": []}]), json!({"k": {"list": []}}),
                json!({"extensions": [{"uri": "", "description": "", "params": {}}]}), json!({"organization": ""}),
            ]),
            0..6,
        )) {
            let card: Value = members.into_iter().collect();
            let alone = [DefaultFieldOmissionRule::Specification, DefaultFieldOmissionRule::WithoutEmpty].map(|form| payload_in_form(&card, form));
            prop_assert_eq!(canonical_payloads(&card), Ok(alone.map(|payload| payload.expect("no number is in it"))));
        }
    }

    #[test]
    fn defaults_are_left_out_unless_they_count() {
        let cases = [
            // Implicit: equivalent to an absent member.
            (json!({"securitySchemes": {}, "securityRequirements": []}), json!({})),
            (json!({"capabilities": {"extensions": []}}), json!({"capabilities": {}})),
            (
                json!({"capabilities": {"extensions": [{"uri": "u", "description": "", "required": false}]}}),
                json!({"capabilities": {"extensions": [{"uri": "u"}]}}),
            ),
            (
                json!({"securityRequirements": [{"schemes": {"k": {"list": []}}}]}),
                json!({"securityRequirements": [{"schemes": {"k": {}}}]}),
            ),
            (json!({"securitySchemes": null}), json!({})),
            // Explicitly optional: presence has a meaning.
            (json!({"documentationUrl": "", "iconUrl": ""}), json!({"documentationUrl": "", "iconUrl": ""})),
            (json!({"capabilities": {"streaming": false}}), json!({"capabilities": {"streaming": false}})),
            (json!({"provider": {}}), json!({"provider": {}})),
            (json!({"provider": null, "iconUrl": null}), json!({})),
            // Required: must be present.
            (
                json!({"name": "", "skills": [], "capabilities": {}}),
                json!({"name": "", "skills": [], "capabilities": {}}),
            ),
            (
                json!({"skills": [{"id": "", "tags": [], "examples": [], "inputModes": []}]}),
                json!({"skills": [{"id": "", "tags": []}]}),
            ),
            // Unknown members, values of another type, and `Any` are unchanged.
            (json!({"x": "", "y": [], "z": false}), json!({"x": "", "y": [], "z": false})),
            (json!({"securitySchemes": [], "capabilities": 1}), json!({"securitySchemes": [], "capabilities": 1})),
            (
                json!({"capabilities": {"extensions": [{"uri": "u", "params": {"a": "", "b": {}}}]}}),
                json!({"capabilities": {"extensions": [{"uri": "u", "params": {"a": "", "b": {}}}]}}),
            ),
        ];
        for (given, expected) in cases {
            let with = |members: &Value| {
                card(|card| card.as_object_mut().unwrap().extend(members.as_object().unwrap().clone()))
            };
            let plain = String::from_utf8(canonical::canonical_json(&with(&expected)).unwrap()).unwrap();
            assert_eq!(text(&with(&given), DefaultFieldOmissionRule::Specification), plain, "{given}");
        }
    }

    #[test]
    fn a_card_of_0_3_is_taken_as_it_is() {
        let card = json!({"url": "u", "skills": [], "capabilities": {"extensions": []}, "signatures": []});
        assert_eq!(
            text(&card, DefaultFieldOmissionRule::Specification),
            r#"{"capabilities":{"extensions":[]},"skills":[],"url":"u"}"#
        );
        assert_eq!(
            text(&card, DefaultFieldOmissionRule::WithoutEmpty),
            text(&card, DefaultFieldOmissionRule::Specification)
        );
        // Adding members does not make it a 1.0 card, whose members may be omitted.
        let mut grown = card.clone();
        grown["supportedInterfaces"] = json!([]);
        for form in [DefaultFieldOmissionRule::Specification, DefaultFieldOmissionRule::WithoutEmpty] {
            assert_ne!(text(&grown, form), text(&card, form));
        }
    }

    #[test]
    fn sdk_form_omits_empty_members_but_no_entries() {
        let given = json!({
            "supportedInterfaces": [], "name": "n", "description": "", "capabilities": {}, "iconUrl": "", "x": "",
            "skills": [{"id": "", "name": "s"}],
            "securityRequirements": [{"schemes": {"k": {}}}], "securitySchemes": {"m": {"mtlsSecurityScheme": {}}},
        });
        assert_eq!(
            text(&given, DefaultFieldOmissionRule::WithoutEmpty),
            concat!(
                r#"{"name":"n","securityRequirements":[{"schemes":{"k":{}}}],"#,
                r#""securitySchemes":{"m":{"mtlsSecurityScheme":{}}},"skills":[{"name":"s"}],"x":""}"#
            )
        );
    }

    #[test]
    fn integers_that_others_read_differently_are_refused() {
        let at = |value: Value| {
            canonical_payload(&card(|card| card["x"] = json!([0, value]))).err().map(|error| error.place)
        };
        assert_eq!(at(json!(9_007_199_254_740_991_u64)), None);
        assert_eq!(at(json!(-9_007_199_254_740_991_i64)), None);
        assert_eq!(at(json!(9_007_199_254_740_992_u64)).as_deref(), Some("/x/1"));
        assert_eq!(at(json!(i64::MIN)).as_deref(), Some("/x/1"));
        let read = |text: &str| at(serde_json::from_str(text).expect("JSON"));
        for long in ["18446744073709551616", "-9223372036854775809", "1e300", "9007199254740992.0"] {
            assert_eq!(read(long).as_deref(), Some("/x/1"), "{long}");
        }
        assert_eq!(read("9007199254740991.0"), None);
        assert_eq!(read("4503599627370495.5"), None);
    }
}
