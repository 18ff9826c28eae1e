//! The card as a document: CL-1 to CL-10, CL-23 to CL-28, CL-31 to CL-34, CL-72 and CL-73.
//!
//! If both the base schema and a rule with its own code reject a member, only the rule's code is reported; all other
//! violations of the base schema are `card-schema-invalid`.

use std::collections::HashSet;

use serde_json::Value;

use super::{ReasonCollector, content, entry, home, licence, verbs};
use crate::card::{AgentCard, parse_instant};
use crate::profile::ConformanceProfile;
use crate::schema::{MAX_OBJECTIONS, SchemaViolation};
use clresolve_core::characters::{HiddenCharacter, find_hidden_character, first_unsafe_character_in_value};
use clresolve_core::json::json_type;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::text::excerpt_text;

const DISPLAY_NAME: &str = "/display_name";
const SLUG: &str = "/slug";
const ID: &str = "/id";
const OWNER: &str = "/owner";
const ENTRY: &str = "/entry";

/// All findings on the card as a document.
pub fn check_card(card: &AgentCard, profile: &ConformanceProfile) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    check_required_members(card, profile, &mut found);
    check_id_slug_and_version(card, &mut found);
    check_class(card, profile, &mut found);
    check_lifecycle_status(card, profile, &mut found);
    check_implements(card, &mut found);
    check_networks(card, &mut found);
    check_characters(card, &mut found);
    found.0.extend(licence::licence_reason(card));
    check_timestamps(card, &mut found);
    check_base_schema(card, profile, &mut found);
    check_duplicates(card, &mut found);
    content::add_content_findings(card, &mut found);
    let mut reasons = found.with_effects(profile);
    reasons.extend(home::check_id_folder_and_schema_url(card, profile));
    home::drop_schema_rejected_findings(&mut reasons);
    reasons
}

/// CL-3, CL-4: required members are present, and no required text is blank. If a member is missing or of the wrong
/// type, its children are not reported as well.
fn check_required_members(card: &AgentCard, profile: &ConformanceProfile, found: &mut ReasonCollector) {
    for member in profile.required_members() {
        let holder = member.rsplit_once('/').map_or("", |(holder, _)| holder);
        if !card.value_at(holder).is_some_and(Value::is_object) {
            continue;
        }
        match card.value_at(member) {
            None => found.add(Reason::new(ReasonCode::CardFieldMissing).at_place(member)),
            Some(Value::String(text)) if text.trim().is_empty() => {
                found.add(Reason::new(ReasonCode::CardFieldEmpty).at_place(member));
            }
            Some(_) => {}
        }
    }
}

/// CL-5, CL-6, CL-7. An id or slug with confusable characters has its own code.
fn check_id_slug_and_version(card: &AgentCard, found: &mut ReasonCollector) {
    if let (Some(id), Some(ens)) = (card.id(), card.ens())
        && id != ens
        && !has_deceptive_characters(ID, id)
    {
        found.add(difference_reason(ReasonCode::IdDiffersFromEns, ID, ens, id));
    }
    if let Some(slug) = card.text_at(SLUG)
        && !is_url_safe(slug)
        && !has_deceptive_characters(SLUG, slug)
    {
        found.add(observed_reason(ReasonCode::SlugNotUrlSafe, SLUG, slug));
    }
    if let Some(version) = card.version()
        && semver::Version::parse(version).is_err()
    {
        found.add(observed_reason(ReasonCode::CardVersionNotSemver, "/version", version));
    }
}

/// CL-6: whether a slug consists of lowercase characters that need no escaping in a URL.
pub fn is_url_safe(slug: &str) -> bool {
    slug.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._~".contains(&b))
}

/// CL-8.
fn check_class(card: &AgentCard, profile: &ConformanceProfile, found: &mut ReasonCollector) {
    if let Some(class) = card.class()
        && profile.class_rules(class).is_none()
    {
        let known: Vec<_> = profile.classes().collect();
        found.add(difference_reason(ReasonCode::ClassUnknown, "/class", &known.join(" or "), class));
    }
}

/// CL-9. Case does not matter for words of withdrawal: a variant must not pass as an unknown status. They do not apply
/// if the profile lists words of revocation.
fn check_lifecycle_status(card: &AgentCard, profile: &ConformanceProfile, found: &mut ReasonCollector) {
    let Some(status) = card.status() else { return };
    let among = |words: &[String]| words.iter().any(|word| word == status);
    let words = profile.lifecycle_statuses();
    if among(&words.revoked) {
        found.add(observed_reason(ReasonCode::StatusRevoked, "/status", status));
    } else if words.revoked.is_empty() && is_withdrawn(status, &words.withdrawn) {
        found.add(observed_reason(ReasonCode::StatusWithdrawn, "/status", status));
    } else if among(&words.deprecated) {
        found.add(observed_reason(ReasonCode::StatusDeprecated, "/status", status));
    } else if !among(&words.known) {
        found.add(difference_reason(ReasonCode::StatusUnknown, "/status", &words.known.join(", "), status));
    }
}

/// Whether the status contains a word of withdrawal, alone or among other words such as a reason.
fn is_withdrawn(status: &str, withdrawn: &[String]) -> bool {
    let mut words = status.split(|c: char| !c.is_alphanumeric());
    words.any(|word| withdrawn.iter().any(|known| known.eq_ignore_ascii_case(word)))
}

/// CL-10.
fn check_implements(card: &AgentCard, found: &mut ReasonCollector) {
    let Some(verbs) = card.get("implements").and_then(Value::as_array) else {
        return;
    };
    let odd = verbs.iter().find(|verb| !verb.is_string());
    let seen = match odd {
        Some(odd) => json_type(odd),
        None if verbs.is_empty() => "an empty list",
        None => return,
    };
    found.add(difference_reason(ReasonCode::ImplementsEmpty, "/implements", "at least one string", seen));
}

/// CL-24, CL-25. The base schema reports an entry that is not a string.
fn check_networks(card: &AgentCard, found: &mut ReasonCollector) {
    let Some(networks) = card.get("networks").and_then(Value::as_array) else {
        return;
    };
    if networks.is_empty() {
        found.add(Reason::new(ReasonCode::NetworksEmpty).at_place("/networks"));
    }
    for (at, network) in networks.iter().enumerate() {
        if let Some(network) = network.as_str()
            && !is_caip2(network)
            && !found.is_full(ReasonCode::NetworkNotCaip2)
        {
            found.add(observed_reason(ReasonCode::NetworkNotCaip2, &format!("/networks/{at}"), network));
        }
    }
}

/// Whether this is a CAIP-2 identifier: `namespace:reference`.
pub fn is_caip2(text: &str) -> bool {
    let Some((namespace, reference)) = text.split_once(':') else {
        return false;
    };
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let any = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (3..=8).contains(&namespace.len())
        && namespace.bytes().all(lower)
        && (1..=32).contains(&reference.len())
        && reference.bytes().all(any)
}

/// CL-73: repeated list entries. Judged after the base schema, because a warning must not replace its rejection.
fn check_duplicates(card: &AgentCard, found: &mut ReasonCollector) {
    for list in ["implements", "networks"] {
        let mut seen = HashSet::new();
        let entries = card.items(list).enumerate();
        for (at, entry) in entries.filter_map(|(at, entry)| Some((at, entry.as_str()?))) {
            if !seen.insert(entry) && !found.is_full(ReasonCode::CardDuplicateEntry) {
                found.add(observed_reason(ReasonCode::CardDuplicateEntry, &format!("/{list}/{at}"), entry));
            }
        }
    }
}

/// CL-73: texts that identify the agent and contain confusable characters.
fn check_characters(card: &AgentCard, found: &mut ReasonCollector) {
    if let Some(text) = card.text_at(DISPLAY_NAME)
        && let Some(hidden) = find_hidden_character(text)
        && !clresolve_core::mutant!("lookalikes-pass")
    {
        let mut reason = observed_reason(ReasonCode::CardUnsafeCharacters, DISPLAY_NAME, text);
        if matches!(hidden, HiddenCharacter::Direction(_)) {
            reason = reason.message("The display name contains a bidirectional control character.");
            reason.effect = ReasonEffect::Warn;
        }
        found.add(reason);
    }
    for place in [SLUG, ID, OWNER, ENTRY] {
        if let Some(text) = card.text_at(place)
            && has_deceptive_characters(place, text)
            && !clresolve_core::mutant!("lookalikes-pass")
        {
            found.add(observed_reason(ReasonCode::CardUnsafeCharacters, place, text));
        }
    }
}

/// Whether the text at `place` contains unsafe characters, or is a slug that a path reads as a folder. Control
/// characters in the entry are reported by [`entry`] alone.
fn has_deceptive_characters(place: &str, text: &str) -> bool {
    if place == ENTRY && text.contains(char::is_control) {
        return false;
    }
    first_unsafe_character_in_value(text).is_some() || place == SLUG && matches!(text, "." | "..")
}

/// CL-27, CL-28.
fn check_timestamps(card: &AgentCard, found: &mut ReasonCollector) {
    let [created, updated] = ["/created_at", "/updated_at"].map(|place| {
        let text = card.text_at(place)?;
        let instant = parse_instant(text);
        if instant.is_none() {
            found.add(observed_reason(ReasonCode::TimestampMalformed, place, text));
        }
        instant.map(|instant| (instant, text))
    });
    if let (Some((created, since)), Some((updated, text))) = (created, updated)
        && updated < created
    {
        found.add(difference_reason(
            ReasonCode::TimestampsReversed,
            "/updated_at",
            &format!("not before {since}"),
            text,
        ));
    }
}

/// CL-1, CL-23: violations of the base schema that no rule reports under its own code.
fn check_base_schema(card: &AgentCard, profile: &ConformanceProfile, found: &mut ReasonCollector) {
    for (number, violation) in profile.base_schema().every_violation(card.document()).enumerate() {
        if number == MAX_OBJECTIONS && !clresolve_core::mutant!("objections-unbounded") {
            found.add(
                Reason::new(ReasonCode::CardTooComplex).observed(format!("more than {MAX_OBJECTIONS} violations")),
            );
            break;
        }
        if found.is_full(ReasonCode::CardSchemaInvalid) {
            break;
        }
        if !is_reported_by_own_rule(&violation, card, profile, found) {
            let reason = Reason::new(ReasonCode::CardSchemaInvalid)
                .observed(violation.detail)
                .at_place(excerpt_text(&violation.pointer));
            let free = ["/capabilities", "/meta"].contains(&violation.pointer.as_str());
            found.add(if free { reason.with_requirement("CL-23") } else { reason });
        }
    }
}

/// Whether a rule with its own code reports this violation: a finding in `found` at the member or one of its parents,
/// or one of the steps entry and verbs, which report every text that the schema rejects there.
fn is_reported_by_own_rule(
    violation: &SchemaViolation,
    card: &AgentCard,
    profile: &ConformanceProfile,
    found: &ReasonCollector,
) -> bool {
    let place = violation.pointer.as_str();
    found.has_specific_reason(place, ReasonCode::CardSchemaInvalid)
        || entry::reports_schema_rejection_at(card, place)
        || verbs::reports_schema_rejection_at(card, profile, place)
}

fn observed_reason(code: ReasonCode, place: &str, text: &str) -> Reason {
    Reason::new(code).observed(excerpt_text(text)).at_place(place)
}

fn difference_reason(code: ReasonCode, place: &str, expected: &str, text: &str) -> Reason {
    observed_reason(code, place, text).expected(excerpt_text(expected))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::{distinct_codes, good_card, judge_document};

    /// The codes that `card` reports for the valid card with `value` at a top-level member.
    fn with(member: &str, value: Value) -> Vec<&'static str> {
        let mut document = good_card();
        document[member] = value;
        distinct_codes(&judge_document(&document, check_card))
    }

    fn without(member: &str) -> Vec<&'static str> {
        let mut document = good_card();
        document.as_object_mut().expect("a card").remove(member);
        distinct_codes(&judge_document(&document, check_card))
    }

    #[test]
    fn a_good_card_gives_no_reason() {
        assert_eq!(judge_document(&good_card(), check_card), []);
    }

    #[test]
    fn each_missing_member_gives_one_code() {
        for member in good_card().as_object().expect("a card").keys() {
            let optional = ["$schema", "$id", "schemas_mirror", "capabilities", "meta"].contains(&member.as_str());
            let expected: &[&str] = if optional { &[] } else { &["card-field-missing"] };
            assert_eq!(without(member), expected, "{member}");
        }
    }

    #[test]
    fn each_blank_text_gives_one_code() {
        for (member, value) in good_card().as_object().expect("a card") {
            if value.is_string() && !member.starts_with('$') {
                assert_eq!(with(member, json!("")), ["card-field-empty"], "{member}");
                assert_eq!(with(member, json!(" \t")), ["card-field-empty"], "{member}");
            }
        }
    }

    #[test]
    fn each_wrong_type_is_the_schema_s_matter() {
        for member in good_card().as_object().expect("a card").keys() {
            for value in [json!(7), json!(null), json!(true)] {
                assert_eq!(with(member, value), ["card-schema-invalid"], "{member}");
            }
        }
    }

    #[test]
    fn members_of_schemas_are_required_too() {
        let mut document = good_card();
        document["schemas"].as_object_mut().expect("an object").remove("receipt");
        let reasons = judge_document(&document, check_card);
        assert_eq!(distinct_codes(&reasons), ["card-field-missing"]);
        assert_eq!(reasons[0].place.as_deref(), Some("/schemas/receipt"));
        assert_eq!(with("schemas", json!({"request": "", "receipt": 5})), ["card-field-empty", "card-schema-invalid"]);
    }

    #[test]
    fn rules_with_their_own_code_speak_alone() {
        for (member, value, code) in [
            ("id", json!("other.eth"), "id-differs-from-ens"),
            ("slug", json!("Summarize Agent"), "slug-not-url-safe"),
            ("version", json!("v1"), "card-version-not-semver"),
            ("version", json!("1.0"), "card-version-not-semver"),
            ("class", json!("Commons"), "class-unknown"),
            ("class", json!("free"), "class-unknown"),
            ("status", json!("sleeping"), "status-unknown"),
            ("status", json!("deprecated"), "status-deprecated"),
            ("status", json!("revoked"), "status-withdrawn"),
            ("status", json!("disabled"), "status-withdrawn"),
            ("status", json!("retired"), "status-withdrawn"),
            ("status", json!("suspended"), "status-withdrawn"),
            ("status", json!("Compromised"), "status-withdrawn"),
            ("status", json!("withdrawn"), "status-withdrawn"),
            ("implements", json!([]), "implements-empty"),
            ("implements", json!(["summarize", 5]), "implements-empty"),
            ("networks", json!([]), "networks-empty"),
            ("networks", json!(["mainnet"]), "network-not-caip2"),
            ("networks", json!(["eip155:1", ""]), "network-not-caip2"),
            ("networks", json!(["eip155:1", 5]), "card-schema-invalid"),
            ("license", json!("Proprietary"), "license-unrecognized"),
            ("license", json!("CC-BY-NC-4.0"), "license-not-open"),
            ("implements", json!(["summarize", "clean", "summarize"]), "card-duplicate-entry"),
            ("networks", json!(["eip155:1", "eip155:1"]), "card-duplicate-entry"),
            ("display_name", json!("Summarize\u{200b}Agent"), "card-unsafe-characters"),
            ("display_name", json!("Agent\u{202e}tnegA"), "card-unsafe-characters"),
            ("owner", json!("command\u{200d}layer.eth"), "card-unsafe-characters"),
            ("entry", json!("x402://summarize\u{200d}agent.eth/summarize/v1"), "card-unsafe-characters"),
            ("slug", json!("summarize\u{ad}agent"), "card-unsafe-characters"),
            ("slug", json!(".."), "card-unsafe-characters"),
            ("id", json!("summarizeagent\u{2060}.eth"), "card-unsafe-characters"),
            ("$id", json!("https://commandlayer.org/agents/summarizeagent.eth.json"), "card-id-mismatch"),
            ("$schema", json!("https://commandlayer.org/schema.json"), "card-id-mismatch"),
            ("created_at", json!("2025-11-22"), "timestamp-malformed"),
            ("updated_at", json!("2025-11-21T23:59:59Z"), "timestamps-reversed"),
            ("updated_at", json!("2025-11-22T00:30:00+01:00"), "timestamps-reversed"),
            ("extra", json!(1), "card-schema-invalid"),
        ] {
            assert_eq!(with(member, value.clone()), [code], "{member}: {value}");
        }
    }

    #[test]
    fn display_name_may_hold_emoji_and_warns_of_directions() {
        let named = |name: &str| {
            let mut document = good_card();
            document["display_name"] = json!(name);
            judge_document(&document, check_card)
        };
        assert_eq!(named("👨\u{200d}👩\u{200d}👧 می\u{200c}خواهم"), []);
        let effects = |name: &str| named(name).iter().map(|reason| reason.effect).collect::<Vec<_>>();
        assert_eq!(effects("Agent\u{202e}tnegA"), [ReasonEffect::Warn]);
        assert_eq!(effects("Agent\u{202e}tneg\u{200b}A"), [ReasonEffect::Fail]);
    }

    #[test]
    fn a_warning_does_not_speak_for_the_base_schema() {
        assert_eq!(with("$id", json!("no uri")), ["card-schema-invalid"]);
        assert_eq!(with("$schema", json!("no uri")), ["card-schema-invalid"]);
        assert_eq!(with("networks", json!([5, 5])), ["card-schema-invalid"]);
    }

    #[test]
    fn a_list_that_repeats_itself_is_named_but_not_without_end() {
        let mut document = good_card();
        document["networks"] = Value::Array(vec![json!("eip155:1"); 8_000]);
        let reasons = judge_document(&document, check_card);
        assert_eq!(reasons.len(), crate::check::MAX_REASONS_PER_CODE);
        assert_eq!(reasons[0].place.as_deref(), Some("/networks/1"));
    }

    #[test]
    fn values_at_the_edge_of_what_is_allowed_pass() {
        for (member, value) in [
            ("version", json!("1.0.0-rc.1+build.5")),
            ("status", json!("active")),
            ("display_name", json!("Résumé-Agent 要約")),
            ("slug", json!("...")),
            (
                "networks",
                json!([
                    "eip155:1",
                    "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
                    "bip122:000000000019d6689c085ae165831e93"
                ]),
            ),
            ("license", json!("MIT OR Apache-2.0")),
            ("license", json!("LicenseRef-CommandLayer-1")),
            ("license", json!("GPL-2.0")),
            ("license", json!("https://commandlayer.org/licence.txt")),
            ("updated_at", json!("2025-11-22T01:00:00+01:00")),
            ("updated_at", json!("2025-11-22t00:00:00.0000000000001z")),
            ("updated_at", json!("2026-12-31T23:59:60Z")),
        ] {
            assert_eq!(with(member, value.clone()), [""; 0], "{member}: {value}");
        }
    }

    #[test]
    fn instants_follow_rfc_3339() {
        for text in ["2025-11-22T00:00:00Z", "2025-11-22T00:00:00.5-23:59", "2024-02-29T12:00:00+00:00"] {
            assert!(parse_instant(text).is_some(), "{text}");
        }
        for text in [
            "2025-11-22T00:00Z",
            "2025-11-22 00:00:00Z",
            "2025-11-22T00:00:00",
            "2025-02-29T00:00:00Z",
            "2025-11-22T24:00:00Z",
            "2025-11-22T00:00:00+24:00",
            "2025-11-22T00:00:00+0100",
            "2025-11-22T00:00:00.Z",
            "2025-11-22T00:00:00Z[UTC]",
            "20251122T000000Z",
            "２025-11-22T00:00:00Z",
            "",
        ] {
            assert!(parse_instant(text).is_none(), "{text}");
        }
    }

    #[test]
    fn capabilities_and_meta_are_named_by_their_requirement() {
        let mut document = good_card();
        document["meta"] = json!("free text");
        let reasons = judge_document(&document, check_card);
        assert_eq!(reasons[0].requirement.as_deref(), Some("CL-23"));
    }

    #[test]
    fn more_violations_than_are_looked_at_make_a_card_too_complex() {
        let codes = |verbs: usize| with("implements", json!(vec![0; verbs]));
        assert!(codes(2 * MAX_OBJECTIONS - 200).contains(&"card-too-complex"));
        assert!(!codes(MAX_OBJECTIONS - 200).contains(&"card-too-complex"));
    }

    #[test]
    fn a_card_with_many_defects_gives_them_all_but_not_without_end() {
        let mut document = good_card();
        for at in 0..1000 {
            document[format!("extra{at}")] = json!(at);
        }
        document["class"] = json!("x");
        document["networks"] = Value::Array(vec![json!("x"); 1000]);
        let reasons = judge_document(&document, check_card);
        let found = ["card-duplicate-entry", "card-schema-invalid", "class-unknown", "network-not-caip2"];
        assert_eq!(distinct_codes(&reasons), found);
        assert!(reasons.len() <= found.len() * crate::check::MAX_REASONS_PER_CODE);
    }
}
