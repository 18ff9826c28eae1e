//! Content that a card must not contain: credentials, private addresses, personal data, scripts (CL-31 to CL-34).
//!
//! These are heuristics over every string and every member name, and honest cards must pass. Each rule therefore uses
//! a closed list of patterns: credentials by their issuer's format or by their member's name, addresses in URLs and
//! hosts, scripts as a browser or shell would run them. Percent-encoding, HTML entities and escapes are decoded first.
//! Digests, fingerprints, public keys and CIDs do not match. Reasons never repeat a credential or personal data.

mod addresses;
mod decode;
mod personal;
mod scripts;
mod secrets;
mod text;

use std::collections::BTreeMap;

use serde_json::Value;

use self::addresses::PrivateAddressMatch;
use self::personal::PersonalDataSearchBudget;
use self::secrets::SeedPhraseSearch;
use self::text::{
    CharacterClasses, TokenSeparators, colon_positions, contains_ignore_case, ends_with_ignore_case, last_word,
    longest_matching_suffix, split_at_mark, starts_with_ignore_case, texts_after_schemes,
};
use super::{MAX_REASONS_PER_CODE, ReasonCollector};
use crate::card::AgentCard;
use clresolve_core::json::pointer;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::text::{excerpt_text, truncate_bytes};

/// Adds the findings of the whole card. The card is searched only once, however often it is judged.
pub(super) fn add_content_findings(card: &AgentCard, found: &mut ReasonCollector) {
    for reason in card.cached_text_findings(content_findings) {
        found.add_once(reason.clone());
    }
}

/// The findings in every string and every member name of a document.
fn content_findings(document: &Value) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    let mut walk = ForbiddenContentScanner {
        path: Vec::new(),
        found: &mut found,
        mentioned: Vec::new(),
        hits: BTreeMap::new(),
        phrases: SeedPhraseSearch::new(),
        data: PersonalDataSearchBudget::new(),
    };
    walk.scan_value(document);
    let ForbiddenContentScanner { mentioned, .. } = walk;
    for reason in mentioned {
        found.add_once(reason);
    }
    found.0
}

/// Searches for credentials only, as other card systems require. `requirement` is the system's own rule id, or empty.
pub fn scan_secrets(card: &AgentCard, requirement: &str, found: &mut ReasonCollector) {
    let mut all = ReasonCollector::default();
    add_content_findings(card, &mut all);
    for mut reason in all.0.into_iter().filter(|reason| reason.code == ReasonCode::SecretInCard) {
        reason.requirement = Some(requirement.to_owned()).filter(|requirement| !requirement.is_empty());
        found.add(reason);
    }
}

struct ForbiddenContentScanner<'c, 'f> {
    path: Vec<PointerSegment<'c>>,
    found: &'f mut ReasonCollector,
    /// Addresses mentioned in prose. They are only warnings, so they must not use up the limit for failures.
    mentioned: Vec<Reason>,
    /// Number of hits per code. Locations that are equal once truncated share one reason, so hits are counted
    /// separately.
    hits: BTreeMap<ReasonCode, usize>,
    phrases: SeedPhraseSearch,
    data: PersonalDataSearchBudget,
}

#[derive(Clone, Copy)]
enum PointerSegment<'c> {
    Member(&'c str),
    Item(usize),
}

impl<'c> ForbiddenContentScanner<'c, '_> {
    /// The parser bounds the depth of a card and therefore the recursion.
    fn scan_value(&mut self, value: &'c Value) {
        match value {
            Value::String(text) => self.scan_text(text),
            Value::Number(number) => {
                self.add_credential(secrets::find_password_in_number(self.property_name(), number));
                if self.has_room_for(ReasonCode::PiiInCard) && !self.is_in_contact() {
                    let name = self.enclosing_member_name();
                    let found = personal::find_personal_data_in_number(name, number, &mut self.data);
                    self.add_finding(ReasonCode::PiiInCard, found);
                }
            }
            Value::Array(items) => {
                let found = secrets::find_secret_in_list(self.property_name(), items, &mut self.phrases);
                self.add_credential(found);
                for (at, item) in items.iter().enumerate() {
                    self.visit_below_segment(PointerSegment::Item(at), |walk| walk.scan_value(item));
                }
            }
            Value::Object(members) => {
                self.add_credential(secrets::find_secret_in_object(self.property_name(), members));
                for (name, member) in members {
                    self.visit_below_segment(PointerSegment::Member(name), |walk| {
                        walk.scan_raw_and_decoded_text("", name, CharacterClasses::from_text(name));
                        walk.scan_value(member);
                    });
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn scan_text(&mut self, text: &str) {
        let marks = CharacterClasses::from_text(text);
        if self.has_room_for(ReasonCode::SecretInCard) {
            if !self.is_dependent_required_name(text) {
                self.add_credential(secrets::find_secret_in_member(self.property_name(), text));
            }
            let found = secrets::find_seed_phrase(text, &mut self.phrases);
            self.add_credential(found);
        }
        self.scan_raw_and_decoded_text(self.property_name(), text, marks);
        if self.has_room_for(ReasonCode::PiiInCard) && !self.is_in_contact() {
            let name = self.enclosing_member_name();
            let found = personal::find_personal_datum(text, marks, &mut self.data);
            let named =
                if found.is_none() { personal::find_personal_data_in_member(name, text, &mut self.data) } else { None };
            self.add_finding(ReasonCode::PiiInCard, found.as_deref().or(named));
        }
    }

    /// The patterns that apply to both values and names; `member` is empty for a name.
    fn scan_raw_and_decoded_text(&mut self, member: &str, text: &str, marks: CharacterClasses) {
        self.scan_forbidden_patterns(member, text, marks);
        if let Some(plain) = decode::decode_escaped_text(text, marks) {
            self.scan_forbidden_patterns(member, &plain, CharacterClasses::from_text(&plain));
        }
    }

    fn scan_forbidden_patterns(&mut self, member: &str, text: &str, marks: CharacterClasses) {
        if self.has_room_for(ReasonCode::SecretInCard) {
            self.add_credential(secrets::find_secret_in_text(text, marks));
        }
        if self.has_room_for(ReasonCode::PrivateAddressInCard) {
            match addresses::find_private_address(member, text, marks) {
                Some(PrivateAddressMatch::Stated(address)) => {
                    self.add_finding(ReasonCode::PrivateAddressInCard, Some(address))
                }
                Some(PrivateAddressMatch::Mentioned(address)) => self.add_mention(address),
                None => {}
            }
        }
        if self.has_room_for(ReasonCode::ScriptInCard) {
            self.add_finding(ReasonCode::ScriptInCard, scripts::find_script(text, marks));
        }
    }

    /// Whether another reason with this code can be added.
    fn has_room_for(&self, code: ReasonCode) -> bool {
        !self.found.is_full(code) && self.hits.get(&code).is_none_or(|hits| *hits < MAX_HITS)
    }

    fn add_credential(&mut self, kind: Option<&'static str>) {
        self.add_finding(ReasonCode::SecretInCard, kind);
    }

    /// Adds at most one reason per location and code.
    fn add_finding(&mut self, code: ReasonCode, observed: Option<&str>) {
        let Some(observed) = observed else { return };
        if self.has_room_for(code) {
            *self.hits.entry(code).or_default() += 1;
            self.found.add_once(Reason::new(code).observed(excerpt_text(observed)).at_place(self.value_pointer()));
        }
    }

    fn add_mention(&mut self, address: &str) {
        if self.mentioned.len() < MAX_REASONS_PER_CODE {
            let mut reason =
                Reason::new(ReasonCode::PrivateAddressInCard).message("A text mentions a private address.");
            reason.effect = ReasonEffect::Warn;
            self.mentioned.push(reason.observed(excerpt_text(address)).at_place(self.value_pointer()));
        }
    }

    fn visit_below_segment(&mut self, segment: PointerSegment<'c>, walk: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        walk(self);
        self.path.pop();
    }

    /// Whether the text is a member name listed in `dependentRequired` of a skill's JSON Schema, which may resemble a
    /// key.
    fn is_dependent_required_name(&self, text: &str) -> bool {
        let is_name = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
        let is_listed = matches!(
            self.path.as_slice(),
            [.., PointerSegment::Member("dependentRequired"), PointerSegment::Member(_), PointerSegment::Item(_)]
        );
        let schemas = ["inputSchema", "input_schema", "output_schema"];
        let is_schema =
            |segment: &PointerSegment<'_>| matches!(segment, PointerSegment::Member(name) if schemas.contains(name));
        is_listed && is_name && self.path.iter().any(is_schema)
    }

    /// The name of the member that holds the value, directly or in a list. In a JSON Schema, a property's `default`,
    /// `const`, `enum` and `examples` count as values of the property.
    fn property_name(&self) -> &'c str {
        let mut names = self.path.iter().rev().filter_map(|segment| match segment {
            PointerSegment::Member(name) => Some(*name),
            PointerSegment::Item(_) => None,
        });
        match (names.next(), names.next(), names.next()) {
            (Some("default" | "const" | "enum" | "examples"), Some(property), Some("properties")) => property,
            (name, ..) => name.unwrap_or(""),
        }
    }

    /// The name of the member that holds the value, directly or in a list.
    fn enclosing_member_name(&self) -> &'c str {
        let mut names = self.path.iter().rev();
        names
            .find_map(|segment| match segment {
                PointerSegment::Member(name) => Some(*name),
                PointerSegment::Item(_) => None,
            })
            .unwrap_or("")
    }

    /// Whether the value is in a member of `meta` that holds the publisher's contact.
    fn is_in_contact(&self) -> bool {
        let mut names = self.path.iter();
        matches!(names.next(), Some(PointerSegment::Member("meta")))
            && names.any(|segment| matches!(segment, PointerSegment::Member(name) if personal::is_contact_member(name)))
    }

    /// The JSON Pointer of the value, truncated to what a reason shows: a hostile card has ten thousand values with
    /// long member names.
    fn value_pointer(&self) -> String {
        let mut place = String::new();
        for segment in &self.path {
            match segment {
                PointerSegment::Member(name) => {
                    pointer::push_pointer_segment(&mut place, &truncate_bytes(name, MAX_PLACE_BYTES))
                }
                PointerSegment::Item(at) => pointer::push_pointer_segment(&mut place, &at.to_string()),
            }
            if place.len() > MAX_PLACE_BYTES {
                break;
            }
        }
        excerpt_text(&place)
    }
}

/// Maximum number of locations recorded per code, of which [`MAX_REASONS_PER_CODE`] are kept.
const MAX_HITS: usize = 4 * MAX_REASONS_PER_CODE;

/// Maximum length of a location before truncation, in bytes; longer than the result of [`excerpt_text`].
const MAX_PLACE_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::check::card::check_card;
    use crate::profile::{ConformanceProfiles, DEFAULT};
    use crate::sample::{distinct_codes, good_card, judge_document};
    use clresolve_core::reason::ReasonEffect;

    fn with(pointer: &str, value: Value) -> Vec<&'static str> {
        let mut document = good_card();
        let (holder, member) = pointer.rsplit_once('/').expect("a pointer");
        document.pointer_mut(holder).expect("a holder")[member] = value;
        distinct_codes(&judge_document(&document, check_card))
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn every_string_and_every_name_is_looked_at() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        assert_eq!(with("/description", json!(token)), ["secret-in-card"]);
        assert_eq!(with("/meta/deep", json!([{"list": [[token]]}])), ["secret-in-card"]);
        assert_eq!(with("/meta/named", json!({token.as_str(): 1})), ["secret-in-card"]);
    }

    #[test]
    fn reasons_name_the_place_and_hide_the_secret() {
        let token = format!("ghp_{}", "a1B2".repeat(9));
        let mut document = good_card();
        document["meta"]["keys"] = json!({"a/b": [token]});
        let reasons = judge_document(&document, check_card);
        assert_eq!(reasons.len(), 1);
        assert_eq!(reasons[0].place.as_deref(), Some("/meta/keys/a~1b/0"));
        assert!(!format!("{reasons:?}").contains("ghp_"));
    }

    #[test]
    fn one_place_gives_one_reason_of_a_code() {
        let mut document = good_card();
        document["meta"]["api_key"] = json!(format!("ghp_{}", "a1B2".repeat(9)));
        assert_eq!(judge_document(&document, check_card).len(), 1);
    }

    #[test]
    fn contact_members_of_meta_may_name_the_publisher() {
        for pointer in ["/meta/contact", "/meta/security_contact", "/meta/publisher", "/meta/support"] {
            assert_eq!(with(pointer, json!("Jane <jane@commandlayer.org>, +1 415 555 2671")), NONE, "{pointer}");
        }
        assert_eq!(with("/meta/publisher", json!({"name": "x", "email": "jane@commandlayer.org"})), NONE);
        assert_eq!(with("/meta/notes", json!("ask jane@commandlayer.org")), ["pii-in-card"]);
        assert_eq!(with("/description", json!("ask jane@commandlayer.org")), ["pii-in-card"]);
        assert_eq!(with("/capabilities/contact", json!("jane@commandlayer.org")), ["pii-in-card"]);
    }

    #[test]
    fn contact_members_hide_no_secret() {
        assert_eq!(with("/meta/contact", json!("https://me:pa55word@commandlayer.org/")), ["secret-in-card"]);
    }

    #[test]
    fn honest_metadata_passes() {
        for value in [
            json!("sha256:739e0a399de539f0d9ba584e675d82572ccd0df7d5e60e54d834f20190879bac"),
            json!("739e0a399de539f0d9ba584e675d82572ccd0df7d5e60e54d834f20190879bac"),
            json!("5016 D496 9F38 22B2 C5A2 FA40 99A2 6950 197D AB0A"),
            json!("bafybeigvf6nkzws7dblos74dqqjkguwkrwn4a2c27ieygoxmgofyzdkz6m"),
            json!("QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWKPBdG"),
            json!("0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
            json!("ed25519:hhyCuPNoMk4JtEvGEV8F6nMZ4uDO1EcyizPufmnJTOY="),
            json!("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEZ\n-----END PGP PUBLIC KEY BLOCK-----"),
            json!("2025-11-22T00:00:00+00:00"),
            json!("Runs JavaScript: see https://commandlayer.org/docs#javascript"),
            json!("Send the API key in the header X-API-Key. Password: required."),
            json!({"auth": {"api_key": "required", "scheme": "bearer", "token_url": "https://auth.example.org/token"}}),
            json!({"token": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "max_tokens": 32768, "secret": "none"}),
            json!({"blocked": ["10.0.0.0/8", "localhost is refused", "fc00::/7"]}),
            json!("eip155:1:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"),
            json!("npm install @commandlayer/agent-cards@1.0.0"),
            json!("x402://summarizeagent.eth/summarize/v1"),
            json!("git@github.com:commandlayer/agent-cards.git"),
            json!("1.2.3.4 and std::io::Error, 12:30:45, 1::2"),
            json!("data:image/png;base64,iVBORw0KGgo="),
            json!("a < b, c > d, #1 in the list!"),
            json!("released 2025-11-22, build +20251122, ISBN 978-3-16-148410-0"),
        ] {
            assert_eq!(with("/meta/note", value.clone()), NONE, "{value}");
        }
    }

    /// Texts that mix the detectors' marker characters with non-ASCII characters.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("://".to_owned()),
            Just("javascript:".to_owned()),
            Just("data:text/html,".to_owned()),
            Just("<script".to_owned()),
            Just("[::1%25]:".to_owned()),
            Just("10.0.0.1/8".to_owned()),
            Just("localhost:".to_owned()),
            Just("Bearer ".to_owned()),
            Just("api_key=".to_owned()),
            Just("-----BEGIN ".to_owned()),
            Just("+1 (415) 555-2671".to_owned()),
            "[\\PC]{0,4}",
            "[-:@/%.<>+= é0-9a-z\\[\\]\n]{0,8}",
        ];
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_text_panics_or_escapes_between_two_rules(text in texts(), name in texts(), which in 0..13_usize) {
            let mut document = good_card();
            document["meta"] = json!({name.as_str(): [text.as_str()]});
            let request = document["schemas"]["request"].clone();
            let path = "commons/summarize/requests/summarize.request.schema.json";
            let (member, value) = match which {
                0 => ("schemas", json!({"request": text, "receipt": format!("ipfs://{text}")})),
                1 => ("schemas", json!({"request": request, "receipt": text})),
                2 => ("schemas_mirror", json!({"request": format!("https://{text}/ipfs/x/{path}")})),
                3 => ("schemas_mirror", json!({"request": format!("https://a.example/ipfs/{text}/{path}")})),
                4 => ("implements", json!(["summarize", text])),
                5 => ("networks", json!([text])),
                other => (["slug", "version", "license", "entry", "created_at", "$id", "ens"][other - 6], json!(text)),
            };
            document[member] = value;
            let rules = [check_card, crate::check::entry::check_entry, crate::check::verbs::check_verbs];
            let fails = rules.iter().flat_map(|rule| judge_document(&document, *rule)).any(|reason| reason.effect == ReasonEffect::Fail);
            let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
            prop_assert!(fails || profile.base_schema().accepts(&document), "refused by the schema, but by no rule");
        }
    }
}
