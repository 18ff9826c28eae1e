//! The MA²D card: AN-1 to AN-23. Its specification calls it "A2A 1.0", but it is not the A2A project's card.
//!
//! The text is applied literally: an endpoint is an HTTP(S) URL even if the protocol is websocket. A timestamp is ISO
//! 8601 with at least a day: a calendar date, a date and a time with or without a zone, or a week date. Members that
//! the text does not list are allowed without a finding.
//!
//! AN-19 combines the patterns of AN-1 and AN-5. Discovery checks AN-20. AN-22 (a name is unique within its
//! organisation) applies to a directory and cannot be checked with one card, so it has no code.
//!
//! Secrets, private addresses and scripts are not searched for, since these rules do not forbid them.

mod change;
mod mapping;
mod members;
mod time;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;
use url::Url;

use self::members::{MAX_LISTED, items};
use super::shape::{self, Line, OwnSchema, line};
use super::{Definition, DiscoveryRules, Rules, no_descriptor, no_fixes};
use clresolve_core::reason::{Code, Reason};
use clresolve_core::text::excerpt;
use clresolve_verdict::card::Card;
use clresolve_verdict::check::Findings;

pub(super) static DEFINITION: Definition = Definition {
    title: "MA²D agent card",
    distinctive,
    refines: &[],
    version,
    check,
    order: ORDER,
    fixes: no_fixes,
    changed_at: Some("/metadata/updated_at"),
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
    discovery: DiscoveryRules {
        paths: &["/.well-known/agent-card.json", "*.json"],
        unreachable: Code::AnCardUnreachable,
        absent: None,
        credentialed: None,
        content_type: Some(Code::AnContentType),
        stale: None,
        is_descriptor: no_descriptor,
    },
};

const ORDER: &[&str] = &[
    "name",
    "version",
    "description",
    "author",
    "license",
    "homepage",
    "repository",
    "skills",
    "capabilities",
    "invocation",
    "examples",
    "metadata",
];

/// The version of the specification. Cards do not contain it.
const VERSION: &str = "1.0";

/// The methods of RFC 9110 and RFC 5789.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

static SCHEMA: OwnSchema =
    LazyLock::new(|| shape::compiled(include_bytes!("../../schemas/anypoint.agent-card-1.0.schema.json")));

const URL: &str = "an HTTP(S) URL";
const LINES: &[Line] = &[
    line("/name", &[Code::AnNameMalformed], "1 to 50 lower-case letters, digits and hyphens"),
    line("/version", &[Code::AnVersionNotSemver], "a semantic version"),
    line("/description", &[Code::AnDescriptionLength], "200 to 2000 characters"),
    line("/homepage", &[Code::AnUrlMalformed], URL),
    line("/repository", &[Code::AnUrlMalformed], URL),
    line("/skills", &[Code::AnSkillsEmpty], "a list with at least one skill"),
    line("/skills/*", &[Code::AnSkillNameMalformed], "an object with name and description"),
    line("/skills/*/name", &[Code::AnSkillNameMalformed], "lower-case letters, digits and underscores"),
    line("/skills/*/description", &[Code::AnSkillDescriptionLength], "at least 50 characters"),
    line("/capabilities", &[Code::AnCapabilityType], "an object"),
    line("/capabilities/languages", &[Code::AnLanguageUnknown], "a list of ISO 639-1 codes"),
    line("/capabilities/languages/*", &[Code::AnLanguageUnknown], "an ISO 639-1 code"),
    line("/capabilities/input_modes", &[Code::AnInputModeUnknown], "a list of modes"),
    line("/capabilities/input_modes/*", &[Code::AnInputModeUnknown], "text, voice, image, video or file"),
    line("/capabilities/output_modes", &[Code::AnOutputModeUnknown], "a list of modes"),
    line("/capabilities/output_modes/*", &[Code::AnOutputModeUnknown], "text, json, speech, image, video or file"),
    line("/capabilities/streaming", &[Code::AnCapabilityType], "a boolean"),
    line("/capabilities/async", &[Code::AnCapabilityType], "a boolean"),
    line("/capabilities/state_management", &[Code::AnCapabilityType], "a boolean"),
    line("/invocation", &[Code::AnProtocolUnknown, Code::AnEndpointMalformed], "an object with protocol and endpoint"),
    line("/invocation/protocol", &[Code::AnProtocolUnknown], "mcp, rest, grpc, graphql or websocket"),
    line("/invocation/endpoint", &[Code::AnEndpointMalformed], URL),
    line("/invocation/authentication", &[Code::AnAuthUnknown], "an object"),
    line("/invocation/authentication/type", &[Code::AnAuthUnknown], "none, bearer, api_key, oauth2, basic or mtls"),
    line("/invocation/authentication/required", &[Code::AnAuthUnknown], "a boolean"),
    line("/invocation/format", &[Code::AnFormatUnknown], "json-rpc, rest or graphql"),
    line("/invocation/method", &[Code::AnMethodUnknown], "a string").failing(),
    line("/examples", &[Code::AnExampleIncomplete], "a list of examples"),
    line("/examples/*", &[Code::AnExampleIncomplete], "an object with skill, input and output"),
    line("/examples/*/skill", &[Code::AnExampleIncomplete], "a string"),
    line("/examples/*/input", &[Code::AnExampleIncomplete], "an object"),
    line("/examples/*/output", &[Code::AnExampleIncomplete], "an object"),
    line("/metadata", &[Code::AnTimestampMalformed], "an object"),
    line("/metadata/created_at", &[Code::AnTimestampMalformed], TIMESTAMP),
    line("/metadata/updated_at", &[Code::AnTimestampMalformed], TIMESTAMP),
];
const TIMESTAMP: &str = "an ISO 8601 date, or date and time";

/// Members that only these cards have. `invocation` is required. The others identify a card that lacks it.
fn distinctive(card: &Card) -> Vec<&'static str> {
    let names = |value: &Value, members: &[&str]| members.iter().any(|member| value.get(member).is_some());
    let has = |holder: &str, members| card.get(holder).is_some_and(|value| names(value, members));
    let one_has = |list: &str, members| items(card, list).any(|item| names(item, members));
    let shown = [
        ("invocation", card.get("invocation").is_some()),
        ("capabilities", has("capabilities", &["languages", "input_modes", "output_modes", "state_management"])),
        ("skills", one_has("skills", &["mcp_server", "mcp_tool"])),
        ("examples", one_has("examples", &["skill"])),
    ];
    shown.into_iter().filter(|(_, is_shown)| *is_shown).map(|(member, _)| member).collect()
}

fn version(_card: &Card) -> Option<String> {
    Some(VERSION.to_owned())
}

fn check(card: &Card, rules: &Rules<'_>) -> Vec<Reason> {
    let mut found = Findings::default();
    shape::objections(card, &SCHEMA, LINES, &mut found);
    urls(card, &mut found);
    method(card, &mut found);
    timestamps(card, &mut found);
    skills(card, &mut found);
    examples(card, &mut found);
    if let Some(previous) = rules.previous {
        change::against(previous, card, &mut found);
    }
    found.weighed(rules.profile)
}

/// AN-8 and AN-15: reports values that start like a URL but are not valid URLs.
fn urls(card: &Card, found: &mut Findings) {
    let places = [
        ("/invocation/endpoint", Code::AnEndpointMalformed),
        ("/homepage", Code::AnUrlMalformed),
        ("/repository", Code::AnUrlMalformed),
    ];
    for (place, code) in places {
        if let Some(text) = card.at(place).and_then(Value::as_str)
            && Url::parse(text).is_err()
        {
            found.add_once(Reason::new(code).expected(URL).observed(excerpt(text)).at(place));
        }
    }
}

/// AN-23, first half: a string that is not an HTTP method in any case is a warning.
fn method(card: &Card, found: &mut Findings) {
    let place = "/invocation/method";
    if let Some(method) = card.at(place).and_then(Value::as_str)
        && !METHODS.iter().any(|known| known.eq_ignore_ascii_case(method))
    {
        found.add(Reason::new(Code::AnMethodUnknown).expected(METHODS.join(", ")).observed(excerpt(method)).at(place));
    }
}

/// AN-16, for strings. The schema covers other values.
fn timestamps(card: &Card, found: &mut Findings) {
    for place in ["/metadata/created_at", "/metadata/updated_at"] {
        if let Some(text) = card.at(place).and_then(Value::as_str)
            && !time::is_iso_8601(text)
        {
            found.add(Reason::new(Code::AnTimestampMalformed).expected(TIMESTAMP).observed(excerpt(text)).at(place));
        }
    }
}

/// AN-23, second half: skill names are unique.
fn skills(card: &Card, found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (at, skill) in items(card, "skills").enumerate() {
        if let Some(name) = skill.get("name").and_then(Value::as_str)
            && !seen.insert(name)
        {
            found.add(Reason::new(Code::AnSkillDuplicate).observed(excerpt(name)).at(format!("/skills/{at}/name")));
        }
    }
}

/// AN-18.
fn examples(card: &Card, found: &mut Findings) {
    let names: BTreeSet<&str> = items(card, "skills").filter_map(|skill| skill.get("name")?.as_str()).collect();
    for (at, example) in items(card, "examples").enumerate() {
        if let Some(skill) = example.get("skill").and_then(Value::as_str)
            && !names.contains(skill)
            && !found.full(Code::AnExampleSkillUnknown)
        {
            let known = names.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(", ");
            let reason = Reason::new(Code::AnExampleSkillUnknown).observed(excerpt(skill)).expected(excerpt(&known));
            found.add(reason.at(format!("/examples/{at}/skill")));
        }
    }
}
