//! Orloj's agent card, generated from AgentSystem resources. It is a kind of A2A card. OR-1 to OR-17.
//!
//! Only Orloj's own rules are applied, not those of A2A cards.
//!
//! Some rules need no reason code. OR-6: discovery sends no credentials. OR-15: a changed card is not a finding, since
//! the server generates cards on request. OR-16: members that the text does not define cause no finding. Discovery
//! checks OR-4 and OR-5.

mod mapping;

use std::sync::LazyLock;

use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;

use super::shape::{self, LazySchema, SchemaRule, schema_rule};
use super::{CardDiscoveryRules, CardLintContext, CardSystem, CardSystemDefinition, is_never_descriptor, no_fixes};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::{ReasonCollector, content};
use clresolve_verdict::schema;

pub(super) static DEFINITION: CardSystemDefinition = CardSystemDefinition {
    title: "Orloj agent card",
    distinctive: distinctive_members,
    refines: &[CardSystem::A2a],
    version: format_version,
    check: check_orloj_card,
    order: ORDER,
    fixes: no_fixes,
    changed_at: None,
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
    discovery: CardDiscoveryRules {
        paths: &["/.well-known/agent-card.json", "/v1/agent-systems/{name}/.well-known/agent-card.json"],
        unreachable: ReasonCode::OrCardUnreachable,
        absent: Some(ReasonCode::OrRootCardAbsent),
        credentialed: Some(ReasonCode::OrDiscoveryCredentialed),
        content_type: None,
        stale: Some(ReasonCode::OrCardStale),
        is_descriptor: is_never_descriptor,
    },
};

const ORDER: &[&str] = &[
    "name",
    "description",
    "url",
    "version",
    "protocolVersion",
    "capabilities",
    "skills",
    "authentication",
    "provider",
];

static SCHEMA: LazySchema =
    LazyLock::new(|| shape::compile_schema(include_bytes!("../../schemas/orloj.agent-card.schema.json")));

const LINES: &[SchemaRule] = &[
    schema_rule("/name", &[ReasonCode::OrNameMissing], "a non-empty string"),
    schema_rule("/url", &[ReasonCode::OrUrlMalformed], "an absolute URI"),
    schema_rule("/skills", &[ReasonCode::OrSkillIncomplete], "a list of skills"),
    schema_rule("/skills/*", &[ReasonCode::OrSkillIncomplete], "an object with id and name"),
    schema_rule("/skills/*/id", &[ReasonCode::OrSkillIncomplete], "a non-empty string"),
    schema_rule("/skills/*/name", &[ReasonCode::OrSkillIncomplete], "a non-empty string"),
    schema_rule("/skills/*/description", &[ReasonCode::OrSkillDescriptionEmpty], "a description, or none")
        .for_keyword("minLength"),
    schema_rule("/skills/*/description", &[ReasonCode::OrSkillDescriptionEmpty], "a string, or none").with_failure(),
    schema_rule("/skills/*/inputSchema", &[ReasonCode::OrInputSchemaEmpty], "a schema, or none")
        .for_keyword("minProperties"),
    schema_rule("/skills/*/inputSchema", &[ReasonCode::OrInputSchemaInvalid], "an object that is a JSON Schema"),
    schema_rule("/capabilities", &[ReasonCode::OrCapabilityType], "an object"),
    schema_rule("/capabilities/*", &[ReasonCode::OrCapabilityType], "true or false"),
    schema_rule("/authentication", &[ReasonCode::OrAuthType], "an object with a list of schemes"),
    schema_rule("/authentication/schemes", &[ReasonCode::OrAuthType], "a list of strings"),
    schema_rule("/authentication/schemes/*", &[ReasonCode::OrAuthType], "a string"),
    schema_rule("/provider", &[ReasonCode::OrProviderUrlMalformed], "an object with a url"),
    schema_rule("/provider/url", &[ReasonCode::OrProviderUrlMalformed], "an absolute URI"),
    schema_rule("/version", &[ReasonCode::OrVersionType], "a string"),
    schema_rule("/protocolVersion", &[ReasonCode::OrVersionType], "a string"),
];

/// The endpoint's path has a distinctive form (OR-3), which is detected even in an invalid URL. A2A cards need no input
/// schema for a skill. A card that has one, and also has members that A2A requires and Orloj lacks, is an A2A card.
fn distinctive_members(card: &AgentCard) -> Vec<&'static str> {
    let has_path = |url: &str| url.contains("/v1/agent-systems/");
    let skills = card.get("skills").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_a2a = card.get("defaultInputModes").is_some() || card.get("supportedInterfaces").is_some();
    let shown = [
        ("url", card.text_at("/url").is_some_and(has_path)),
        ("skills", !is_a2a && skills.iter().any(|skill| skill.get("inputSchema").is_some())),
    ];
    shown.into_iter().filter(|(_, is_shown)| *is_shown).map(|(member, _)| member).collect()
}

/// The version of A2A that the server declares. Orloj's specification of the card has no version.
fn format_version(card: &AgentCard) -> Option<String> {
    card.text_at("/protocolVersion").map(excerpt_text)
}

fn check_orloj_card(card: &AgentCard, rules: &CardLintContext<'_>) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    shape::check_schema(card, &SCHEMA, LINES, &mut found);
    check_name_in_endpoint_url(card, &mut found);
    check_input_schemas(card, &mut found);
    check_protocol_version(card, &mut found);
    content::scan_secrets(card, "OR-7", &mut found);
    found.with_effects(rules.profile)
}

/// OR-3.
fn check_name_in_endpoint_url(card: &AgentCard, found: &mut ReasonCollector) {
    let (Some(name), Some(text)) = (card.text_at("/name"), card.text_at("/url")) else { return };
    let Ok(url) = Url::parse(text) else { return };
    if found.has_specific_reason("/url", ReasonCode::OrUrlNameMismatch)
        || agent_system_in_url(&url).as_deref() == Some(name)
    {
        return;
    }
    let expected = format!("a path that ends in /v1/agent-systems/{}/a2a", excerpt_text(name));
    found.add(
        Reason::new(ReasonCode::OrUrlNameMismatch).expected(expected).observed(excerpt_text(text)).at_place("/url"),
    );
}

/// OR-17: according to the specification this is only a setting of the server.
fn check_protocol_version(card: &AgentCard, found: &mut ReasonCollector) {
    let place = "/protocolVersion";
    if let Some(version) = card.value_at(place).and_then(Value::as_str).filter(|version| !is_numeric_version(version)) {
        let mut reason =
            Reason::new(ReasonCode::OrVersionType).message("The Orloj card's protocolVersion is no dotted number.");
        reason.effect = ReasonEffect::Warn;
        found.add(reason.expected("a dotted number, such as 1.0").observed(excerpt_text(version)).at_place(place));
    }
}

fn is_numeric_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.contains('.') && text.split('.').all(is_number)
}

/// OR-17, except for the type.
fn check_input_schemas(card: &AgentCard, found: &mut ReasonCollector) {
    let skills = card.get("skills").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (at, skill) in skills.iter().enumerate() {
        let schema = skill.get("inputSchema").filter(|schema| schema.is_object());
        if schema.is_some_and(|schema| !schema::is_json_schema(schema)) {
            let reason = Reason::new(ReasonCode::OrInputSchemaInvalid).expected("a schema of JSON Schema 2020-12");
            found.add(reason.at_place(format!("/skills/{at}/inputSchema")));
        }
    }
}

/// The name of the AgentSystem in an endpoint's path, percent-decoded.
fn agent_system_in_url(url: &Url) -> Option<String> {
    let (_, below) = url.path().rsplit_once("/v1/agent-systems/")?;
    let segment = below.strip_suffix("/a2a").filter(|segment| !segment.is_empty() && !segment.contains('/'))?;
    percent_decode_str(segment).decode_utf8().ok().map(|name| name.into_owned())
}
