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
mod time;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;
use url::Url;

use self::change::MAX_LISTED;
use super::shape::{self, LazySchema, SchemaRule, schema_rule};
use super::{CardDiscoveryRules, CardLintContext, CardSystemDefinition, is_never_descriptor, no_fixes};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::ReasonCollector;

pub(super) static DEFINITION: CardSystemDefinition = CardSystemDefinition {
    title: "MA²D agent card",
    distinctive: distinctive_members,
    refines: &[],
    version: format_version,
    check: check_anypoint_card,
    order: ORDER,
    fixes: no_fixes,
    changed_at: Some("/metadata/updated_at"),
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
    discovery: CardDiscoveryRules {
        paths: &["/.well-known/agent-card.json", "*.json"],
        unreachable: ReasonCode::AnCardUnreachable,
        absent: None,
        credentialed: None,
        content_type: Some(ReasonCode::AnContentType),
        stale: None,
        is_descriptor: is_never_descriptor,
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

static SCHEMA: LazySchema =
    LazyLock::new(|| shape::compile_schema(include_bytes!("../../schemas/anypoint.agent-card-1.0.schema.json")));

const URL: &str = "an HTTP(S) URL";
const LINES: &[SchemaRule] = &[
    schema_rule("/name", &[ReasonCode::AnNameMalformed], "1 to 50 lower-case letters, digits and hyphens"),
    schema_rule("/version", &[ReasonCode::AnVersionNotSemver], "a semantic version"),
    schema_rule("/description", &[ReasonCode::AnDescriptionLength], "200 to 2000 characters"),
    schema_rule("/homepage", &[ReasonCode::AnUrlMalformed], URL),
    schema_rule("/repository", &[ReasonCode::AnUrlMalformed], URL),
    schema_rule("/skills", &[ReasonCode::AnSkillsEmpty], "a list with at least one skill"),
    schema_rule("/skills/*", &[ReasonCode::AnSkillNameMalformed], "an object with name and description"),
    schema_rule("/skills/*/name", &[ReasonCode::AnSkillNameMalformed], "lower-case letters, digits and underscores"),
    schema_rule("/skills/*/description", &[ReasonCode::AnSkillDescriptionLength], "at least 50 characters"),
    schema_rule("/capabilities", &[ReasonCode::AnCapabilityType], "an object"),
    schema_rule("/capabilities/languages", &[ReasonCode::AnLanguageUnknown], "a list of ISO 639-1 codes"),
    schema_rule("/capabilities/languages/*", &[ReasonCode::AnLanguageUnknown], "an ISO 639-1 code"),
    schema_rule("/capabilities/input_modes", &[ReasonCode::AnInputModeUnknown], "a list of modes"),
    schema_rule("/capabilities/input_modes/*", &[ReasonCode::AnInputModeUnknown], "text, voice, image, video or file"),
    schema_rule("/capabilities/output_modes", &[ReasonCode::AnOutputModeUnknown], "a list of modes"),
    schema_rule(
        "/capabilities/output_modes/*",
        &[ReasonCode::AnOutputModeUnknown],
        "text, json, speech, image, video or file",
    ),
    schema_rule("/capabilities/streaming", &[ReasonCode::AnCapabilityType], "a boolean"),
    schema_rule("/capabilities/async", &[ReasonCode::AnCapabilityType], "a boolean"),
    schema_rule("/capabilities/state_management", &[ReasonCode::AnCapabilityType], "a boolean"),
    schema_rule(
        "/invocation",
        &[ReasonCode::AnProtocolUnknown, ReasonCode::AnEndpointMalformed],
        "an object with protocol and endpoint",
    ),
    schema_rule("/invocation/protocol", &[ReasonCode::AnProtocolUnknown], "mcp, rest, grpc, graphql or websocket"),
    schema_rule("/invocation/endpoint", &[ReasonCode::AnEndpointMalformed], URL),
    schema_rule("/invocation/authentication", &[ReasonCode::AnAuthUnknown], "an object"),
    schema_rule(
        "/invocation/authentication/type",
        &[ReasonCode::AnAuthUnknown],
        "none, bearer, api_key, oauth2, basic or mtls",
    ),
    schema_rule("/invocation/authentication/required", &[ReasonCode::AnAuthUnknown], "a boolean"),
    schema_rule("/invocation/format", &[ReasonCode::AnFormatUnknown], "json-rpc, rest or graphql"),
    schema_rule("/invocation/method", &[ReasonCode::AnMethodUnknown], "a string").with_failure(),
    schema_rule("/examples", &[ReasonCode::AnExampleIncomplete], "a list of examples"),
    schema_rule("/examples/*", &[ReasonCode::AnExampleIncomplete], "an object with skill, input and output"),
    schema_rule("/examples/*/skill", &[ReasonCode::AnExampleIncomplete], "a string"),
    schema_rule("/examples/*/input", &[ReasonCode::AnExampleIncomplete], "an object"),
    schema_rule("/examples/*/output", &[ReasonCode::AnExampleIncomplete], "an object"),
    schema_rule("/metadata", &[ReasonCode::AnTimestampMalformed], "an object"),
    schema_rule("/metadata/created_at", &[ReasonCode::AnTimestampMalformed], TIMESTAMP),
    schema_rule("/metadata/updated_at", &[ReasonCode::AnTimestampMalformed], TIMESTAMP),
];
const TIMESTAMP: &str = "an ISO 8601 date, or date and time";

/// Members that only these cards have. `invocation` is required. The others identify a card that lacks it.
fn distinctive_members(card: &AgentCard) -> Vec<&'static str> {
    let names = |value: &Value, members: &[&str]| members.iter().any(|member| value.get(member).is_some());
    let has = |holder: &str, members| card.get(holder).is_some_and(|value| names(value, members));
    let one_has = |list: &str, members| card.items(list).any(|item| names(item, members));
    let shown = [
        ("invocation", card.get("invocation").is_some()),
        ("capabilities", has("capabilities", &["languages", "input_modes", "output_modes", "state_management"])),
        ("skills", one_has("skills", &["mcp_server", "mcp_tool"])),
        ("examples", one_has("examples", &["skill"])),
    ];
    shown.into_iter().filter(|(_, is_shown)| *is_shown).map(|(member, _)| member).collect()
}

fn format_version(_card: &AgentCard) -> Option<String> {
    Some(VERSION.to_owned())
}

fn check_anypoint_card(card: &AgentCard, rules: &CardLintContext<'_>) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    shape::check_schema(card, &SCHEMA, LINES, &mut found);
    check_urls(card, &mut found);
    check_http_method(card, &mut found);
    check_timestamps(card, &mut found);
    check_skill_names(card, &mut found);
    check_example_skills(card, &mut found);
    if let Some(previous) = rules.previous {
        change::check_version_change(previous, card, &mut found);
    }
    found.with_effects(rules.profile)
}

/// AN-8 and AN-15: reports values that start like a URL but are not valid URLs.
fn check_urls(card: &AgentCard, found: &mut ReasonCollector) {
    let places = [
        ("/invocation/endpoint", ReasonCode::AnEndpointMalformed),
        ("/homepage", ReasonCode::AnUrlMalformed),
        ("/repository", ReasonCode::AnUrlMalformed),
    ];
    for (place, code) in places {
        if let Some(text) = card.value_at(place).and_then(Value::as_str)
            && Url::parse(text).is_err()
        {
            found.add_once(Reason::new(code).expected(URL).observed(excerpt_text(text)).at_place(place));
        }
    }
}

/// AN-23, first half: a string that is not an HTTP method in any case is a warning.
fn check_http_method(card: &AgentCard, found: &mut ReasonCollector) {
    let place = "/invocation/method";
    if let Some(method) = card.value_at(place).and_then(Value::as_str)
        && !METHODS.iter().any(|known| known.eq_ignore_ascii_case(method))
    {
        found.add(
            Reason::new(ReasonCode::AnMethodUnknown)
                .expected(METHODS.join(", "))
                .observed(excerpt_text(method))
                .at_place(place),
        );
    }
}

/// AN-16, for strings. The schema covers other values.
fn check_timestamps(card: &AgentCard, found: &mut ReasonCollector) {
    for place in ["/metadata/created_at", "/metadata/updated_at"] {
        if let Some(text) = card.value_at(place).and_then(Value::as_str)
            && !time::is_iso_8601(text)
        {
            found.add(
                Reason::new(ReasonCode::AnTimestampMalformed)
                    .expected(TIMESTAMP)
                    .observed(excerpt_text(text))
                    .at_place(place),
            );
        }
    }
}

/// AN-23, second half: skill names are unique.
fn check_skill_names(card: &AgentCard, found: &mut ReasonCollector) {
    let mut seen = BTreeSet::new();
    for (at, skill) in card.items("skills").enumerate() {
        if let Some(name) = skill.get("name").and_then(Value::as_str)
            && !seen.insert(name)
        {
            found.add(
                Reason::new(ReasonCode::AnSkillDuplicate)
                    .observed(excerpt_text(name))
                    .at_place(format!("/skills/{at}/name")),
            );
        }
    }
}

/// AN-18.
fn check_example_skills(card: &AgentCard, found: &mut ReasonCollector) {
    let names: BTreeSet<&str> = card.items("skills").filter_map(|skill| skill.get("name")?.as_str()).collect();
    for (at, example) in card.items("examples").enumerate() {
        if let Some(skill) = example.get("skill").and_then(Value::as_str)
            && !names.contains(skill)
            && !found.is_full(ReasonCode::AnExampleSkillUnknown)
        {
            let known = names.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(", ");
            let reason = Reason::new(ReasonCode::AnExampleSkillUnknown)
                .observed(excerpt_text(skill))
                .expected(excerpt_text(&known));
            found.add(reason.at_place(format!("/examples/{at}/skill")));
        }
    }
}
