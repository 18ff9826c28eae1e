//! Converts a card of one system to a card of another, and lists the values that could not be carried over.
//!
//! No value is made up. If the target requires a member that the source lacks, the member is missing, and the report on
//! the new card contains this finding. A value of the source that the target cannot represent is listed as lost, with
//! its location.
//!
//! ```
//! use clresolve_cards::convert::convert_card;
//! use clresolve_cards::system::{CardSystem, CardLintContext};
//! use clresolve_verdict::card::AgentCard;
//! use clresolve_verdict::profile::{DEFAULT, ConformanceProfiles};
//!
//! let profile = ConformanceProfiles::builtin().get(DEFAULT).unwrap();
//! let text = br#"{"agent_id": "01HZQK3P8EMXR9V7T5N2W4J6C0", "name": "A", "version": "1.0.0"}"#;
//! let card = AgentCard::parse(text).unwrap();
//! let converted = convert_card(&card, CardSystem::Aevum, CardSystem::A2a, &CardLintContext::from_profile(&profile));
//! assert_eq!(converted.card["name"], "A");
//! assert_eq!(converted.lost[0].pointer, "/agent_id");
//! assert!(!converted.report.valid);
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::lint::{CardLintReport, lint_document};
use crate::system::mapping;
use crate::system::mapping::{
    CardFieldMapping, CardFieldRepresentation, CommonCardField, CommonSkillField, SecuritySchemeForm,
};
use crate::system::{CardLintContext, CardSystem};
use clresolve_core::json::pointer;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;

/// Maximum number of losses that are listed individually. A card may have a hundred thousand members.
pub const MAX_LOST: usize = 256;

/// A converted card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardConversion {
    /// The system that the card was read as.
    pub from: CardSystem,
    /// The system that the new card is written for.
    pub to: CardSystem,
    /// The new card.
    pub card: Value,
    /// The values of the old card that are missing from the new one, at most [`MAX_LOST`].
    pub lost: Vec<LostCardValue>,
    /// Number of further losses.
    pub lost_further: usize,
    /// Violations of the target's rules in the new card, such as missing members.
    pub report: CardLintReport,
}

/// A value that could not be carried over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostCardValue {
    /// JSON Pointer in the old card.
    pub pointer: String,
    /// The value, truncated.
    pub value: String,
}

impl CardConversion {
    /// Whether the old card has security requirements that are missing from the new one. If so, the new card must not
    /// be published without review.
    pub fn loses_security_requirements(&self) -> bool {
        const SECURITY: [&str; 6] = [
            "/security",
            "/securityRequirements",
            "/securitySchemes",
            "/authentication",
            "/endpoint/auth",
            "/invocation/authentication",
        ];
        let is_security = |lost: &LostCardValue| {
            let of_skill = ["/security", "/securityRequirements"].iter().any(|end| lost.pointer.ends_with(end));
            of_skill || SECURITY.iter().any(|place| pointer::is_pointer_within(&lost.pointer, place))
        };
        self.lost_further > 0 || self.lost.iter().any(is_security)
    }
}

/// Converts `card` from system `from` to system `to`. A card that already has the target's shape is unchanged.
pub fn convert_card(card: &AgentCard, from: CardSystem, to: CardSystem, rules: &CardLintContext<'_>) -> CardConversion {
    let is_same = from == to && std::ptr::eq(from.field_mapping_for_card(card), to.output_mapping());
    let (new, carried) = if is_same {
        (card.document().clone(), BTreeSet::from([String::new()]))
    } else {
        FormatNeutralCard::from_card(card, from.field_mapping_for_card(card)).write_card(to)
    };
    // Protocol buffers, and A2A since 1.0, treat null as an absent member.
    let is_of_messages = std::ptr::eq(from.field_mapping_for_card(card), CardSystem::A2a.output_mapping());
    let mut lost = LostCardValueFinder { carried, null_is_absent: is_of_messages, listed: Vec::new(), further: 0 };
    lost.find_lost_values(card.document(), &mut String::new());
    let report = lint_document(new.to_string().as_bytes(), Some(to), rules);
    CardConversion { from, to, card: new, lost: lost.listed, lost_further: lost.further, report }
}

/// A value in system-independent terms, with its location.
#[derive(Clone, Debug)]
enum FormatNeutralFieldValue {
    One {
        value: Value,
        at: String,
    },
    Many(Vec<(String, String)>),
    /// An object whose members are read individually.
    Holder,
}

/// The common fields of a card, in system-independent terms.
#[derive(Default)]
struct FormatNeutralCard {
    fields: BTreeMap<CommonCardField, FormatNeutralFieldValue>,
    skills: Vec<BTreeMap<CommonSkillField, FormatNeutralFieldValue>>,
    /// The location of an empty list of skills.
    no_skills: Option<&'static str>,
}

impl FormatNeutralCard {
    fn from_card(card: &AgentCard, mapping: &CardFieldMapping) -> Self {
        let read_field = |(field, at, form): &(CommonCardField, &str, CardFieldRepresentation)| {
            Some((*field, read_format_neutral_value(card.value_at(at)?, at, *form)?))
        };
        let listed = card.value_at(mapping.skills).and_then(Value::as_array);
        let skills = listed.map_or(&[][..], Vec::as_slice);
        let skill = |(number, skill): (usize, &Value)| {
            let read_field = |(field, below, form): &(CommonSkillField, &str, CardFieldRepresentation)| {
                let at = format!("{}/{number}{below}", mapping.skills);
                Some((*field, read_format_neutral_value(pointer::find_value_at_pointer(skill, below)?, &at, *form)?))
            };
            mapping.skill.iter().filter_map(read_field).collect()
        };
        let mut outline = Self {
            fields: mapping.fields.iter().filter_map(read_field).collect(),
            skills: skills.iter().enumerate().map(skill).collect(),
            no_skills: listed.filter(|list| list.is_empty()).map(|_| mapping.skills),
        };
        outline.add_defaults(card, mapping);
        let has_schemes = mapping
            .fields
            .iter()
            .any(|(field, at, _)| *field == CommonCardField::SchemeMap && card.value_at(at).is_some());
        if has_schemes && !outline.fields.contains_key(&CommonCardField::SchemeMap) {
            outline.remove_security_requirements();
        }
        outline
    }

    /// Adds values that the card implies by omitting a member.
    fn add_defaults(&mut self, card: &AgentCard, mapping: &CardFieldMapping) {
        if !self.fields.contains_key(&CommonCardField::Endpoint) {
            return;
        }
        for (field, word) in mapping.defaults {
            let absent = mapping.fields.iter().find(|(other, at, _)| other == field && card.value_at(at).is_none());
            if let Some(value) =
                absent.and_then(|(_, at, form)| read_format_neutral_value(&Value::from(*word), at, *form))
            {
                self.fields.insert(*field, value);
            }
        }
    }

    /// Drops the security requirements, which refer to schemes by name and are meaningless without them.
    fn remove_security_requirements(&mut self) {
        self.fields.remove(&CommonCardField::Requirements);
        for skill in &mut self.skills {
            skill.remove(&CommonSkillField::Requirements);
        }
    }

    /// Writes the card for another system. Also returns the locations in the old card that it carries over.
    fn write_card(&self, to: CardSystem) -> (Value, BTreeSet<String>) {
        let mapping = to.output_mapping();
        let mut card =
            ValueWithSourcePointers::from_field_values(Value::Object(Map::new()), &self.fields, mapping.fields);
        let mut skills = Vec::new();
        for skill in self
            .skills
            .iter()
            .map(|skill| ValueWithSourcePointers::from_field_values(Value::Null, skill, mapping.skill))
        {
            card.carries.extend(skill.carries);
            skills.extend(Some(skill.value).filter(|new| !new.is_null()));
        }
        if !skills.is_empty() || self.no_skills.is_some() {
            set_at_pointer(&mut card.value, mapping.skills, skills.into());
        }
        card.carries.extend(self.no_skills.map(str::to_owned));
        (card.value, card.carries.into_iter().collect())
    }
}

/// A value of the new card, with the locations in the old one that it carries over.
struct ValueWithSourcePointers {
    value: Value,
    carries: Vec<String>,
}

impl ValueWithSourcePointers {
    /// Writes the values into an empty document.
    fn from_field_values<F: Ord>(
        empty: Value,
        values: &BTreeMap<F, FormatNeutralFieldValue>,
        places: &[(F, &'static str, CardFieldRepresentation)],
    ) -> Self {
        let mut written: Vec<(&str, Self)> = Vec::new();
        let mut following = Vec::new();
        for (field, at, form) in places {
            let Some(new) = values.get(field).and_then(|value| write_target_value(value, *form)) else { continue };
            if matches!(form, CardFieldRepresentation::Following) {
                following.push((at, new));
                continue;
            }
            match written.iter_mut().find(|(taken, _)| taken == at) {
                // Two fields with the same location: the later one is written. The earlier one is carried over if it is
                // equal.
                Some((_, earlier)) if earlier.value == new.value => earlier.carries.extend(new.carries),
                Some((_, earlier)) => *earlier = new,
                None => written.push((at, new)),
            }
        }
        let mut sheet = Self { value: empty, carries: Vec::new() };
        for (at, new) in written {
            set_at_pointer(&mut sheet.value, at, new.value);
            sheet.carries.extend(new.carries);
        }
        for (at, new) in following {
            append_interfaces(&mut sheet.value, at, new.value);
            sheet.carries.extend(new.carries);
        }
        sheet
    }
}

/// Reads a value in system-independent terms. `None` if it has another type, or is a word that only its system has.
fn read_format_neutral_value(
    value: &Value,
    at: &str,
    form: CardFieldRepresentation,
) -> Option<FormatNeutralFieldValue> {
    let one = |value: Value| FormatNeutralFieldValue::One { value, at: at.to_owned() };
    let common = |own: &str, words: mapping::CardVocabularyMap| {
        let mut fitting = words.iter().filter(|(word, _)| *word == own).map(|(_, common)| (*common).to_owned());
        // A word that corresponds to several common ones is ambiguous.
        fitting.next().filter(|_| fitting.next().is_none())
    };
    let many = |texts: Vec<(String, String)>| (!texts.is_empty()).then_some(FormatNeutralFieldValue::Many(texts));
    match form {
        CardFieldRepresentation::Text | CardFieldRepresentation::Fitting(_) | CardFieldRepresentation::Rewritten(_) => {
            value.as_str().map(|text| one(text.into()))
        }
        CardFieldRepresentation::Flag => value.as_bool().map(|flag| one(flag.into())),
        CardFieldRepresentation::Object => value.as_object().map(|_| one(value.clone())),
        CardFieldRepresentation::Holder => value.as_object().map(|members| match members.is_empty() {
            true => one(value.clone()),
            false => FormatNeutralFieldValue::Holder,
        }),
        // An empty list is not the same as a missing one.
        CardFieldRepresentation::Texts if value.as_array().is_some_and(Vec::is_empty) => Some(one(value.clone())),
        CardFieldRepresentation::List | CardFieldRepresentation::Requirements => {
            value.as_array().map(|_| one(value.clone()))
        }
        CardFieldRepresentation::Older(current) => current(value).map(one),
        CardFieldRepresentation::Following => None,
        CardFieldRepresentation::Texts => {
            many(strings_with_pointers(value, at).map(|(text, at)| (text.to_owned(), at)).collect())
        }
        CardFieldRepresentation::Word(words) => many(vec![(common(value.as_str()?, words)?, at.to_owned())]),
        CardFieldRepresentation::WordList(words) => {
            many(strings_with_pointers(value, at).filter_map(|(own, at)| Some((common(own, words)?, at))).collect())
        }
        CardFieldRepresentation::Schemes(form) => many(
            value
                .as_object()?
                .iter()
                .filter_map(|(name, scheme)| {
                    let mut at = at.to_owned();
                    pointer::push_pointer_segment(&mut at, name);
                    let (word, place) = mapping::word_for_security_scheme(scheme, form)?;
                    // Other members of a scheme are not part of the word.
                    at.push_str(place);
                    Some((word.to_owned(), at))
                })
                .collect(),
        ),
    }
}

/// The strings of a list, each with its location.
fn strings_with_pointers<'v>(list: &'v Value, at: &str) -> impl Iterator<Item = (&'v str, String)> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().enumerate().filter_map(move |(number, item)| Some((item.as_str()?, format!("{at}/{number}"))))
}

/// Writes a common value in the target's form.
fn write_target_value(
    value: &FormatNeutralFieldValue,
    form: CardFieldRepresentation,
) -> Option<ValueWithSourcePointers> {
    let own = |common: &str, words: mapping::CardVocabularyMap| {
        words.iter().find(|(_, word)| *word == common).map(|(own, _)| Value::from(*own))
    };
    match (value, form) {
        (FormatNeutralFieldValue::One { value, .. }, CardFieldRepresentation::Fitting(fits))
            if !value.as_str().is_some_and(fits) =>
        {
            None
        }
        (FormatNeutralFieldValue::One { value, at }, CardFieldRepresentation::Rewritten(own)) => {
            Some(ValueWithSourcePointers { value: own(value.as_str()?).into(), carries: vec![at.clone()] })
        }
        (FormatNeutralFieldValue::Holder, CardFieldRepresentation::Holder) => {
            Some(ValueWithSourcePointers { value: json!({}), carries: Vec::new() })
        }
        (
            FormatNeutralFieldValue::One { value, at },
            CardFieldRepresentation::Text
            | CardFieldRepresentation::Fitting(_)
            | CardFieldRepresentation::Flag
            | CardFieldRepresentation::Object
            | CardFieldRepresentation::Holder
            | CardFieldRepresentation::List
            | CardFieldRepresentation::Texts
            | CardFieldRepresentation::Requirements
            | CardFieldRepresentation::Following,
        ) => Some(ValueWithSourcePointers { value: value.clone(), carries: vec![at.clone()] }),
        (FormatNeutralFieldValue::Many(texts), CardFieldRepresentation::Word(words)) => {
            let (value, at) = texts.iter().find_map(|(common, at)| Some((own(common, words)?, at)))?;
            // A word that corresponds to several common ones is ambiguous.
            let is_exact = words.iter().filter(|(own, _)| value == *own).count() == 1;
            Some(ValueWithSourcePointers { value, carries: Vec::from_iter(is_exact.then(|| at.clone())) })
        }
        (FormatNeutralFieldValue::Many(texts), CardFieldRepresentation::Texts) => {
            convert_words(texts, |text| Some(Value::from(text)))
        }
        (FormatNeutralFieldValue::Many(texts), CardFieldRepresentation::WordList(words)) => {
            convert_distinct_words(texts, |common| own(common, words))
        }
        // One scheme is sufficient, since requirements are alternatives.
        (FormatNeutralFieldValue::Many(texts), CardFieldRepresentation::Requirements) => {
            convert_distinct_words(texts, |word| {
                mapping::security_scheme_for_word(word, SecuritySchemeForm::OneOf)?;
                Some(json!({"schemes": {word: {"list": []}}}))
            })
        }
        (FormatNeutralFieldValue::Many(texts), CardFieldRepresentation::Schemes(form)) => {
            let scheme = |(word, at): &(String, String)| {
                Some(((word.clone(), mapping::security_scheme_for_word(word, form)?), at.clone()))
            };
            let (schemes, carries): (Map<_, _>, Vec<_>) = texts.iter().filter_map(scheme).unzip();
            (!schemes.is_empty()).then_some(ValueWithSourcePointers { value: schemes.into(), carries })
        }
        _ => None,
    }
}

fn convert_words(texts: &[(String, String)], own: impl Fn(&str) -> Option<Value>) -> Option<ValueWithSourcePointers> {
    let (list, carries): (Vec<_>, Vec<_>) =
        texts.iter().filter_map(|(text, at)| Some((own(text)?, at.clone()))).unzip();
    (!list.is_empty()).then_some(ValueWithSourcePointers { value: list.into(), carries })
}

/// Like [`convert_words`], but without duplicates.
fn convert_distinct_words(
    texts: &[(String, String)],
    own: impl Fn(&str) -> Option<Value>,
) -> Option<ValueWithSourcePointers> {
    let mut written = convert_words(texts, own)?;
    if let Value::Array(list) = &mut written.value {
        let mut seen = Vec::new();
        list.retain(|value| {
            !seen.contains(value) && {
                seen.push(value.clone());
                true
            }
        });
    }
    Some(written)
}

/// Sets the value at a pointer and creates the objects and lists that contain it.
fn set_at_pointer(document: &mut Value, at: &str, value: Value) {
    let mut place = document;
    for segment in at.split('/').skip(1) {
        place = match segment.parse::<usize>() {
            Ok(number) => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let Value::Array(items) = place else { return };
                items.resize(items.len().max(number + 1), Value::Null);
                &mut items[number]
            }
            Err(_) => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                let Value::Object(members) = place else { return };
                members.entry(segment).or_insert(Value::Null)
            }
        };
    }
    *place = value;
}

/// Appends interfaces to the list at a pointer. An interface without a version gets the version of the first.
/// Duplicates are omitted, because A2A 0.3 lists its main interface among the additional ones.
fn append_interfaces(document: &mut Value, at: &str, interfaces: Value) {
    let mut all = match pointer::find_value_at_pointer(document, at) {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    let version = all.first().and_then(|first| first.get("protocolVersion")).cloned();
    let Value::Array(interfaces) = interfaces else { return };
    let mut seen: BTreeSet<String> = all.iter().map(interface_key).collect();
    for mut interface in interfaces {
        if !seen.insert(interface_key(&interface)) {
            continue;
        }
        if let (Some(members), Some(version)) = (interface.as_object_mut(), &version) {
            members.entry("protocolVersion").or_insert_with(|| version.clone());
        }
        all.push(interface);
    }
    set_at_pointer(document, at, all.into());
}

/// URL and binding, which identify an interface.
fn interface_key(interface: &Value) -> String {
    json!([interface.get("url"), interface.get("protocolBinding")]).to_string()
}

/// The values of a document that are not carried over.
struct LostCardValueFinder {
    carried: BTreeSet<String>,
    null_is_absent: bool,
    listed: Vec<LostCardValue>,
    further: usize,
}

impl LostCardValueFinder {
    /// Lists the outermost values of which nothing is carried over. The depth limit of cards bounds the recursion.
    fn find_lost_values(&mut self, value: &Value, at: &mut String) {
        if self.carried.contains(at.as_str()) || self.null_is_absent && value.is_null() {
            return;
        }
        if !self.has_carried_descendant(at) {
            self.add_lost_value(value, at);
            return;
        }
        let length = at.len();
        let mut below = |losses: &mut Self, name: &str, value: &Value| {
            pointer::push_pointer_segment(at, name);
            losses.find_lost_values(value, at);
            at.truncate(length);
        };
        match value {
            Value::Object(members) => members.iter().for_each(|(name, value)| below(self, name, value)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(number, value)| below(self, &number.to_string(), value));
            }
            _ => {}
        }
    }

    fn has_carried_descendant(&self, at: &str) -> bool {
        let below = format!("{at}/");
        let from = (Bound::Included(below.as_str()), Bound::Unbounded);
        at.is_empty() || self.carried.range::<str, _>(from).next().is_some_and(|next| next.starts_with(&below))
    }

    fn add_lost_value(&mut self, value: &Value, at: &str) {
        if self.listed.len() == MAX_LOST {
            self.further += 1;
            return;
        }
        self.listed.push(LostCardValue { pointer: excerpt_text(at), value: excerpt_text(&value.to_string()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
    use clresolve_verdict::sample::good_card;

    fn converted(card: &Value, from: CardSystem, to: CardSystem) -> CardConversion {
        let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
        convert_card(
            &AgentCard::parse(card.to_string().as_bytes()).expect("strict JSON"),
            from,
            to,
            &CardLintContext::from_profile(&profile),
        )
    }

    fn lost(conversion: &CardConversion) -> Vec<&str> {
        conversion.lost.iter().map(|lost| lost.pointer.as_str()).collect()
    }

    #[test]
    fn what_is_said_in_other_words_is_carried() {
        let card = json!({
            "name": "tide-forecaster", "version": "1.2.0", "description": "d", "author": "Harbour",
            "skills": [{"name": "read_tide", "description": "s", "parameters": {"place": "a place"}}],
            "capabilities": {"input_modes": ["text", "voice"], "output_modes": ["json"], "streaming": true, "async": true},
            "invocation": {"protocol": "rest", "endpoint": "https://t.example", "authentication": {"type": "bearer"}},
        });
        let conversion = converted(&card, CardSystem::Anypoint, CardSystem::A2a);
        let expected = json!({
            "name": "tide-forecaster", "version": "1.2.0", "description": "d", "provider": {"organization": "Harbour"},
            "skills": [{"id": "read_tide", "name": "read_tide", "description": "s"}],
            "capabilities": {"streaming": true},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["application/json"],
            "supportedInterfaces": [{"url": "https://t.example"}],
            "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
            "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        });
        assert_eq!(conversion.card, expected);
        let expected =
            ["/capabilities/async", "/capabilities/input_modes/1", "/invocation/protocol", "/skills/0/parameters"];
        assert_eq!(lost(&conversion), expected);
    }

    #[test]
    fn a_web_address_is_no_entry_and_a_firm_no_owner() {
        let card =
            json!({"name": "A", "url": "https://a.example", "provider": {"organization": "Acme"}, "version": "1.0.0"});
        let conversion = converted(&card, CardSystem::A2a, CardSystem::CommandLayer);
        assert_eq!(conversion.card, json!({"display_name": "A", "version": "1.0.0"}));
        assert_eq!(lost(&conversion), ["/provider", "/url"]);
        assert!(!conversion.report.valid);
    }

    #[test]
    fn one_word_for_several_says_none_of_them() {
        let card = json!({"agent_id": "x", "endpoint": {"protocol": "google_a2a", "url": "https://a.example"}});
        let conversion = converted(&card, CardSystem::Aevum, CardSystem::A2a);
        assert_eq!(conversion.card, json!({"supportedInterfaces": [{"url": "https://a.example"}]}));
        assert_eq!(lost(&conversion), ["/agent_id", "/endpoint/protocol"]);
        let card = json!({"supportedInterfaces": [{"url": "https://a.example", "protocolBinding": "GRPC"}]});
        let back = converted(&card, CardSystem::A2a, CardSystem::Aevum);
        assert_eq!(lost(&back), ["/supportedInterfaces/0/protocolBinding"]);
        assert_eq!(back.card, json!({"endpoint": {"protocol": "google_a2a", "url": "https://a.example"}}));
    }

    #[test]
    fn a_card_that_has_the_shape_already_stays_as_it_is() {
        let current = json!({"supportedInterfaces": [{}, 5], "securitySchemes": {"a": {}}, "further": [1]});
        for (card, system) in [(good_card(), CardSystem::CommandLayer), (current, CardSystem::A2a)] {
            let conversion = converted(&card, system, system);
            assert_eq!((conversion.card, conversion.lost), (card, Vec::new()));
        }
        let older = json!({"name": "A", "url": "https://a.example", "additionalInterfaces": [{}], "security": ["odd"]});
        let conversion = converted(&older, CardSystem::A2a, CardSystem::A2a);
        assert_eq!(conversion.card["supportedInterfaces"][0]["url"], "https://a.example");
        assert_eq!(lost(&conversion), ["/additionalInterfaces", "/security"]);
        assert!(conversion.loses_security_requirements());
        let open = converted(&json!({"name": "A", "url": "https://a.example"}), CardSystem::A2a, CardSystem::A2a);
        assert!(!open.loses_security_requirements());
    }

    #[test]
    fn security_of_an_older_card_is_converted_to_the_current_shape() {
        let older = json!({
            "name": "A", "url": "https://a.example", "protocolVersion": "0.3.0",
            "securitySchemes": {"main": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
            "security": [{"main": []}],
            "skills": [{"id": "s", "inputModes": ["text/plain"], "security": [{"main": ["write"]}]}],
        });
        let conversion = converted(&older, CardSystem::A2a, CardSystem::A2a);
        assert_eq!(lost(&conversion), Vec::<&str>::new());
        let expected = json!({"main": {"httpAuthSecurityScheme": {"scheme": "bearer", "bearerFormat": "JWT"}}});
        assert_eq!(conversion.card["securitySchemes"], expected);
        assert_eq!(conversion.card["securityRequirements"], json!([{"schemes": {"main": {"list": []}}}]));
        let elsewhere = converted(&older, CardSystem::A2a, CardSystem::Aevum);
        assert_eq!(elsewhere.card["endpoint"]["auth"]["scheme"], "bearer");
        assert!(lost(&elsewhere).contains(&"/securitySchemes/main/bearerFormat"));
    }

    #[test]
    fn what_is_demanded_of_callers_stays_demanded() {
        let card = json!({
            "url": "https://o.example/v1/agent-systems/a/a2a", "authentication": {"schemes": ["basic", "api_key"]},
        });
        let conversion = converted(&card, CardSystem::Orloj, CardSystem::A2a);
        assert_eq!(conversion.card["securityRequirements"], json!([{"schemes": {"basic": {"list": []}}}]));
        assert_eq!(lost(&conversion), ["/authentication/schemes/1"]);
        assert!(conversion.loses_security_requirements());
        // A scheme that the old card declares but does not require is not required by the new card either.
        let older = json!({"url": "https://a.example", "securitySchemes": {"a": {"type": "mutualTLS"}}});
        let upgraded = converted(&older, CardSystem::A2a, CardSystem::A2a);
        assert_eq!(upgraded.card["securitySchemes"], json!({"a": {"mtlsSecurityScheme": {}}}));
        assert_eq!(upgraded.card.get("securityRequirements"), None);
        let two = json!({"url": "https://a.example", "securitySchemes": {
            "a": {"type": "http", "scheme": "bearer"}, "b": {"type": "http", "scheme": "Bearer", "description": "d"},
        }});
        let conversion = converted(&two, CardSystem::A2a, CardSystem::Orloj);
        assert_eq!(conversion.card["authentication"]["schemes"], json!(["bearer"]));
        assert_eq!(lost(&conversion), ["/securitySchemes/b/description", "/securitySchemes/b/type"]);
    }

    #[test]
    fn what_is_needed_names_the_schemes_that_are_carried() {
        let older = json!({
            "url": "https://a.example", "security": [{"a": []}], "skills": [{"id": "s", "security": [{"b": []}]}],
            "securitySchemes": {"a": {"type": "http", "scheme": "bearer"}, "b": {"type": "dance"}},
        });
        let conversion = converted(&older, CardSystem::A2a, CardSystem::A2a);
        assert_eq!(
            conversion.card["securitySchemes"],
            json!({"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}})
        );
        assert_eq!(lost(&conversion), ["/security", "/securitySchemes/b", "/skills/0/security"]);
        assert!(conversion.loses_security_requirements() && conversion.card.get("securityRequirements").is_none());
    }

    #[test]
    fn additional_interfaces_survive_and_signatures_are_lost() {
        let card = json!({
            "name": "A", "url": "https://a.example", "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
            "additionalInterfaces": [
                {"url": "https://a.example", "transport": "JSONRPC"},
                {"url": "https://a.example/grpc", "transport": "GRPC"},
            ],
            "signatures": [{"protected": "e30", "signature": "AA"}],
        });
        let conversion = converted(&card, CardSystem::A2a, CardSystem::A2a);
        let expected = json!([
            {"url": "https://a.example", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
            {"url": "https://a.example/grpc", "protocolBinding": "GRPC", "protocolVersion": "0.3"},
        ]);
        assert_eq!(conversion.card["supportedInterfaces"], expected);
        assert_eq!(lost(&conversion), ["/signatures"]);
        let malformed = json!({"url": "https://a.example", "additionalInterfaces": [{"url": "https://b.example"}]});
        assert_eq!(lost(&converted(&malformed, CardSystem::A2a, CardSystem::A2a)), ["/additionalInterfaces"]);
    }

    #[test]
    fn required_members_that_are_empty_are_kept() {
        let older = |capabilities: Value, skills: Value| {
            json!({
                "name": "A", "description": "d", "version": "1.0.0", "url": "https://a.example", "protocolVersion": "0.3.1",
                "preferredTransport": "GRPC", "capabilities": capabilities, "defaultInputModes": [], "defaultOutputModes": [],
                "skills": skills,
            })
        };
        let skill = json!([{"id": "s", "name": "s", "description": "d", "tags": []}]);
        for (capabilities, skills, gone) in [
            (json!({}), skill.clone(), vec![]),
            (json!({}), json!([]), vec![]),
            (json!({"stateTransitionHistory": true}), skill, vec!["/capabilities"]),
        ] {
            let card = older(capabilities, skills.clone());
            let conversion = converted(&card, CardSystem::A2a, CardSystem::A2a);
            assert_eq!((lost(&conversion), conversion.report.findings.as_slice()), (gone, &[][..]));
            assert_eq!((&conversion.card["capabilities"], &conversion.card["skills"]), (&json!({}), &skills));
            assert_eq!(conversion.card["defaultInputModes"], json!([]));
        }
        let unread =
            converted(&json!({"url": "https://a.example", "capabilities": 5}), CardSystem::A2a, CardSystem::A2a);
        assert_eq!((unread.card.get("capabilities"), lost(&unread)), (None, vec!["/capabilities"]));
    }

    #[test]
    fn null_of_a_1_0_card_is_no_loss() {
        let card = json!({"supportedInterfaces": [], "securityRequirements": null, "iconUrl": null, "name": "A"});
        let conversion = converted(&card, CardSystem::A2a, CardSystem::Orloj);
        assert_eq!(
            (lost(&conversion), conversion.loses_security_requirements()),
            (vec!["/supportedInterfaces"], false)
        );
        let older = json!({"url": "https://a.example", "security": null});
        assert!(converted(&older, CardSystem::A2a, CardSystem::Orloj).loses_security_requirements());
    }

    #[test]
    fn a_binding_that_an_older_card_leaves_out_is_json_rpc() {
        let binding = |card: Value| {
            let conversion = converted(&card, CardSystem::A2a, CardSystem::A2a);
            conversion.card.pointer("/supportedInterfaces/0/protocolBinding").cloned()
        };
        assert_eq!(binding(json!({"url": "https://a.example"})), Some("JSONRPC".into()));
        assert_eq!(binding(json!({"url": "https://a.example", "preferredTransport": "pigeon"})), None);
        assert_eq!(binding(json!({"url": 5})), None);
        let elsewhere = converted(&json!({"url": "https://a.example"}), CardSystem::A2a, CardSystem::Aevum);
        assert_eq!(elsewhere.card["endpoint"]["protocol"], "google_a2a");
    }

    #[test]
    fn of_two_values_for_one_place_the_other_is_lost() {
        let card = json!({"supportedInterfaces": [], "skills": [{"id": "a", "name": "b"}, {"id": "c", "name": "c"}]});
        let conversion = converted(&card, CardSystem::A2a, CardSystem::CommandLayer);
        assert_eq!(conversion.card, json!({"implements": ["a", "c"]}));
        assert_eq!(lost(&conversion), ["/skills/0/name", "/supportedInterfaces"]);
    }

    /// A card with a distinct text at every location of a mapping.
    fn told_apart(mapping: &CardFieldMapping) -> Value {
        let mut number = 0;
        let mut text = |fits: &dyn Fn(&str) -> bool| {
            number += 1;
            let texts = [
                format!("u{number}u"),
                format!("x402://u{number}u"),
                format!("https://u{number}u"),
                format!("u{number}u.eth"),
            ];
            Value::from(texts.into_iter().find(|text| fits(text)).expect("a text that fits"))
        };
        let mut value = |form: CardFieldRepresentation| match form {
            CardFieldRepresentation::Text | CardFieldRepresentation::Rewritten(_) => text(&|_| true),
            CardFieldRepresentation::Holder => json!({}),
            CardFieldRepresentation::Fitting(fits) => text(&fits),
            CardFieldRepresentation::Flag => Value::Bool(true),
            CardFieldRepresentation::Texts => json!([text(&|_| true), text(&|_| true)]),
            CardFieldRepresentation::Object => json!({"a": text(&|_| true)}),
            CardFieldRepresentation::List | CardFieldRepresentation::Requirements => json!([{"a": text(&|_| true)}]),
            CardFieldRepresentation::Older(_) => json!([{"a": [text(&|_| true)]}]),
            CardFieldRepresentation::Following => Value::Null,
            CardFieldRepresentation::Word(words) => words[0].0.into(),
            CardFieldRepresentation::WordList(words) => json!([words[0].0, text(&|_| true)]),
            CardFieldRepresentation::Schemes(_) => {
                json!({"a": {"type": "http", "scheme": "bearer", "description": text(&|_| true)}})
            }
        };
        let mut card = json!({});
        for (_, at, form) in
            mapping.fields.iter().filter(|(_, _, form)| !matches!(form, CardFieldRepresentation::Following))
        {
            set_at_pointer(&mut card, at, value(*form));
        }
        let mut skill = || {
            let mut skill = Value::Null;
            mapping.skill.iter().for_each(|(_, at, form)| set_at_pointer(&mut skill, at, value(*form)));
            skill
        };
        let skills = json!([skill(), skill()]);
        set_at_pointer(&mut card, mapping.skills, skills);
        card
    }

    /// The strings of a document with their locations.
    fn leaves(value: &Value, at: &str) -> Vec<(String, String)> {
        match value {
            Value::String(text) => vec![(at.to_owned(), text.clone())],
            Value::Array(items) => {
                items.iter().enumerate().flat_map(|(number, item)| leaves(item, &format!("{at}/{number}"))).collect()
            }
            Value::Object(members) => {
                members.iter().flat_map(|(name, member)| leaves(member, &format!("{at}/{name}"))).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_text_stands_in_the_new_card_or_among_the_losses() {
        let older =
            told_apart(CardSystem::A2a.field_mapping_for_card(&AgentCard::parse(br#"{"url": ""}"#).expect("JSON")));
        let cards = CardSystem::ALL.iter().map(|from| (*from, told_apart(from.output_mapping())));
        for (from, card) in cards.chain([(CardSystem::A2a, older)]) {
            for to in CardSystem::ALL {
                let conversion = converted(&card, from, *to);
                let new: Vec<String> = leaves(&conversion.card, "").into_iter().map(|(_, text)| text).collect();
                for (at, text) in leaves(&card, "").into_iter().filter(|(_, text)| text.contains('u')) {
                    let is_lost = conversion.lost.iter().any(|lost| pointer::is_pointer_within(&at, &lost.pointer));
                    let is_word = !text.ends_with('u') && !text.ends_with(".eth");
                    assert!(is_lost || is_word || new.contains(&text), "{from} to {to}: {at} {text}");
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn every_value_is_carried_or_lost(
            names in proptest::collection::vec("[a-z]{1,3}", 0..6), number in 0_i64.., from in 0_usize..5, to in 0_usize..5,
        ) {
            let mut card = good_card();
            card["skills"] = json!([{"id": names, "name": number}, null, 5, {"name": "a"}]);
            card["url"] = json!(names);
            let conversion = converted(&card, CardSystem::ALL[from], CardSystem::ALL[to]);
            for lost in &conversion.lost {
                proptest::prop_assert!(card.pointer(&lost.pointer).is_some(), "{}", lost.pointer);
            }
            let top: Vec<&str> = conversion.lost.iter().map(|lost| lost.pointer.split('/').nth(1).unwrap_or("")).collect();
            let mapped = |name: &str| {
                let mapping = CardSystem::ALL[from].field_mapping_for_card(&AgentCard::parse(card.to_string().as_bytes()).expect("JSON"));
                let at = format!("/{name}");
                mapping.fields.iter().any(|(_, p, _)| pointer::is_pointer_within(p, &at)) || mapping.skills == at
            };
            for name in card.as_object().expect("an object").keys().filter(|name| !mapped(name)) {
                proptest::prop_assert!(top.contains(&name.as_str()) || conversion.card.get(name) == card.get(name), "{name} is gone without a word");
            }
        }
    }
}
