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

use self::addresses::Sighting;
use self::personal::DatumSearch;
use self::secrets::PhraseSearch;
use self::text::{
    Marks, Separators, begins_with, behind_schemes, colons, contains, ends_with, last_run, last_word, split_at_mark,
};
use super::{Findings, MAX_REASONS_PER_CODE};
use crate::card::Card;
use clresolve_core::json::pointer;
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::text::{clipped, excerpt};

/// Adds the findings of the whole card. The card is searched only once, however often it is judged.
pub(super) fn scan(card: &Card, found: &mut Findings) {
    for reason in card.found_in_texts(findings_in) {
        found.add_once(reason.clone());
    }
}

/// The findings in every string and every member name of a document.
fn findings_in(document: &Value) -> Vec<Reason> {
    let mut found = Findings::default();
    let mut walk = Traversal {
        path: Vec::new(),
        found: &mut found,
        mentioned: Vec::new(),
        hits: BTreeMap::new(),
        phrases: PhraseSearch::new(),
        data: DatumSearch::new(),
    };
    walk.value(document);
    let Traversal { mentioned, .. } = walk;
    for reason in mentioned {
        found.add_once(reason);
    }
    found.0
}

/// Searches for credentials only, as other card systems require. `requirement` is the system's own rule id, or empty.
pub fn secrets(card: &Card, requirement: &str, found: &mut Findings) {
    let mut all = Findings::default();
    scan(card, &mut all);
    for mut reason in all.0.into_iter().filter(|reason| reason.code == Code::SecretInCard) {
        reason.requirement = Some(requirement.to_owned()).filter(|requirement| !requirement.is_empty());
        found.add(reason);
    }
}

struct Traversal<'c, 'f> {
    path: Vec<Segment<'c>>,
    found: &'f mut Findings,
    /// Addresses mentioned in prose. They are only warnings, so they must not use up the limit for failures.
    mentioned: Vec<Reason>,
    /// Number of hits per code. Locations that are equal once truncated share one reason, so hits are counted
    /// separately.
    hits: BTreeMap<Code, usize>,
    phrases: PhraseSearch,
    data: DatumSearch,
}

#[derive(Clone, Copy)]
enum Segment<'c> {
    Member(&'c str),
    Item(usize),
}

impl<'c> Traversal<'c, '_> {
    /// The parser bounds the depth of a card and therefore the recursion.
    fn value(&mut self, value: &'c Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Number(number) => {
                self.credential(secrets::in_number(self.member(), number));
                if self.looks_for(Code::PiiInCard) && !self.in_contact() {
                    let name = self.own_member();
                    let found = personal::in_number(name, number, &mut self.data);
                    self.hit(Code::PiiInCard, found);
                }
            }
            Value::Array(items) => {
                let found = secrets::in_list(self.member(), items, &mut self.phrases);
                self.credential(found);
                for (at, item) in items.iter().enumerate() {
                    self.below(Segment::Item(at), |walk| walk.value(item));
                }
            }
            Value::Object(members) => {
                self.credential(secrets::in_object(self.member(), members));
                for (name, member) in members {
                    self.below(Segment::Member(name), |walk| {
                        walk.forms("", name, Marks::of(name));
                        walk.value(member);
                    });
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn text(&mut self, text: &str) {
        let marks = Marks::of(text);
        if self.looks_for(Code::SecretInCard) {
            if !self.names_members(text) {
                self.credential(secrets::in_member(self.member(), text));
            }
            let found = secrets::seed_phrase(text, &mut self.phrases);
            self.credential(found);
        }
        self.forms(self.member(), text, marks);
        if self.looks_for(Code::PiiInCard) && !self.in_contact() {
            let name = self.own_member();
            let found = personal::find(text, marks, &mut self.data);
            let named = if found.is_none() { personal::in_member(name, text, &mut self.data) } else { None };
            self.hit(Code::PiiInCard, found.as_deref().or(named));
        }
    }

    /// The patterns that apply to both values and names; `member` is empty for a name.
    fn forms(&mut self, member: &str, text: &str, marks: Marks) {
        self.plain_forms(member, text, marks);
        if let Some(plain) = decode::decoded(text, marks) {
            self.plain_forms(member, &plain, Marks::of(&plain));
        }
    }

    fn plain_forms(&mut self, member: &str, text: &str, marks: Marks) {
        if self.looks_for(Code::SecretInCard) {
            self.credential(secrets::in_text(text, marks));
        }
        if self.looks_for(Code::PrivateAddressInCard) {
            match addresses::find(member, text, marks) {
                Some(Sighting::Stated(address)) => self.hit(Code::PrivateAddressInCard, Some(address)),
                Some(Sighting::Mentioned(address)) => self.mention(address),
                None => {}
            }
        }
        if self.looks_for(Code::ScriptInCard) {
            self.hit(Code::ScriptInCard, scripts::find(text, marks));
        }
    }

    /// Whether another reason with this code can be added.
    fn looks_for(&self, code: Code) -> bool {
        !self.found.full(code) && self.hits.get(&code).is_none_or(|hits| *hits < MAX_HITS)
    }

    fn credential(&mut self, kind: Option<&'static str>) {
        self.hit(Code::SecretInCard, kind);
    }

    /// Adds at most one reason per location and code.
    fn hit(&mut self, code: Code, observed: Option<&str>) {
        let Some(observed) = observed else { return };
        if self.looks_for(code) {
            *self.hits.entry(code).or_default() += 1;
            self.found.add_once(Reason::new(code).observed(excerpt(observed)).at(self.place()));
        }
    }

    fn mention(&mut self, address: &str) {
        if self.mentioned.len() < MAX_REASONS_PER_CODE {
            let mut reason = Reason::new(Code::PrivateAddressInCard).message("A text mentions a private address.");
            reason.effect = Effect::Warn;
            self.mentioned.push(reason.observed(excerpt(address)).at(self.place()));
        }
    }

    fn below(&mut self, segment: Segment<'c>, walk: impl FnOnce(&mut Self)) {
        self.path.push(segment);
        walk(self);
        self.path.pop();
    }

    /// Whether the text is a member name listed in `dependentRequired` of a skill's JSON Schema, which may resemble a
    /// key.
    fn names_members(&self, text: &str) -> bool {
        let is_name = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
        let is_listed = matches!(
            self.path.as_slice(),
            [.., Segment::Member("dependentRequired"), Segment::Member(_), Segment::Item(_)]
        );
        let schemas = ["inputSchema", "input_schema", "output_schema"];
        let is_schema = |segment: &Segment<'_>| matches!(segment, Segment::Member(name) if schemas.contains(name));
        is_listed && is_name && self.path.iter().any(is_schema)
    }

    /// The name of the member that holds the value, directly or in a list. In a JSON Schema, a property's `default`,
    /// `const`, `enum` and `examples` count as values of the property.
    fn member(&self) -> &'c str {
        let mut names = self.path.iter().rev().filter_map(|segment| match segment {
            Segment::Member(name) => Some(*name),
            Segment::Item(_) => None,
        });
        match (names.next(), names.next(), names.next()) {
            (Some("default" | "const" | "enum" | "examples"), Some(property), Some("properties")) => property,
            (name, ..) => name.unwrap_or(""),
        }
    }

    /// The name of the member that holds the value, directly or in a list.
    fn own_member(&self) -> &'c str {
        let mut names = self.path.iter().rev();
        names
            .find_map(|segment| match segment {
                Segment::Member(name) => Some(*name),
                Segment::Item(_) => None,
            })
            .unwrap_or("")
    }

    /// Whether the value is in a member of `meta` that holds the publisher's contact.
    fn in_contact(&self) -> bool {
        let mut names = self.path.iter();
        matches!(names.next(), Some(Segment::Member("meta")))
            && names.any(|segment| matches!(segment, Segment::Member(name) if personal::is_contact(name)))
    }

    /// The JSON Pointer of the value, truncated to what a reason shows: a hostile card has ten thousand values with
    /// long member names.
    fn place(&self) -> String {
        let mut place = String::new();
        for segment in &self.path {
            match segment {
                Segment::Member(name) => pointer::push(&mut place, &clipped(name, MAX_PLACE_BYTES)),
                Segment::Item(at) => pointer::push(&mut place, &at.to_string()),
            }
            if place.len() > MAX_PLACE_BYTES {
                break;
            }
        }
        excerpt(&place)
    }
}

/// Maximum number of locations recorded per code, of which [`MAX_REASONS_PER_CODE`] are kept.
const MAX_HITS: usize = 4 * MAX_REASONS_PER_CODE;

/// Maximum length of a location before truncation, in bytes; longer than the result of [`excerpt`].
const MAX_PLACE_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use crate::check::card::card;
    use crate::profile::{DEFAULT, Profiles};
    use crate::sample::{codes, good, judged};
    use clresolve_core::reason::Effect;

    fn with(pointer: &str, value: Value) -> Vec<&'static str> {
        let mut document = good();
        let (holder, member) = pointer.rsplit_once('/').expect("a pointer");
        document.pointer_mut(holder).expect("a holder")[member] = value;
        codes(&judged(&document, card))
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
        let mut document = good();
        document["meta"]["keys"] = json!({"a/b": [token]});
        let reasons = judged(&document, card);
        assert_eq!(reasons.len(), 1);
        assert_eq!(reasons[0].place.as_deref(), Some("/meta/keys/a~1b/0"));
        assert!(!format!("{reasons:?}").contains("ghp_"));
    }

    #[test]
    fn one_place_gives_one_reason_of_a_code() {
        let mut document = good();
        document["meta"]["api_key"] = json!(format!("ghp_{}", "a1B2".repeat(9)));
        assert_eq!(judged(&document, card).len(), 1);
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
            let mut document = good();
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
            let rules = [card, crate::check::entry::entry, crate::check::verbs::verbs];
            let fails = rules.iter().flat_map(|rule| judged(&document, *rule)).any(|reason| reason.effect == Effect::Fail);
            let profile = Profiles::builtin().get(DEFAULT).expect("built in");
            prop_assert!(fails || profile.base_schema().accepts(&document), "refused by the schema, but by no rule");
        }
    }
}
