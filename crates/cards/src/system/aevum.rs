//! Aevum AgentCard 1.0: AE-1 to AE-23, AE-30 and AE-31.
//!
//! The specification's text takes precedence. Where it is silent, the schema that it refers to applies: the id of a
//! capability needs no dot (a missing one is a warning), `auth` may have additional members, and tags may be repeated.
//! `input_schema` and `output_schema` must be valid JSON Schema 2020-12, in which unknown keywords are allowed. A
//! schema that declares another dialect in `$schema` is not checked further.
//!
//! Three rules need no reason code. AE-19: metadata without the prefix `pacr:` causes no finding. AE-21: pure functions
//! parse a card, and nothing that it refers to is contacted. A test verifies that this module does no I/O. The second
//! half of AE-17: rules only report `pacr:` members, except AE-18, which limits the reputation to a range, and AE-30,
//! if a ledger is given. Discovery checks AE-20.
//!
//! AE-22 can be strict: a profile whose `effects` make `ae-unknown-member` a failure rejects unknown members.
//!
//! Secrets, private addresses and scripts are not searched for. These rules do not forbid them, and an agent in a
//! private network has a private address.

mod mapping;

use std::sync::LazyLock;

use serde_json::Value;

use super::shape::{self, LazySchema, SchemaRule, schema_rule};
use super::{CardDiscoveryRules, CardLintContext, CardSystemDefinition, is_never_descriptor, no_fixes};
use crate::ledger;
use clresolve_core::json::pointer;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::ReasonCollector;
use clresolve_verdict::schema;

pub(super) static DEFINITION: CardSystemDefinition = CardSystemDefinition {
    title: "Aevum AgentCard",
    distinctive: distinctive_members,
    refines: &[],
    version: format_version,
    check: check_aevum_card,
    order: ORDER,
    fixes: no_fixes,
    changed_at: None,
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
    discovery: CardDiscoveryRules {
        paths: &["/.well-known/agent.json"],
        unreachable: ReasonCode::AeCardUnreachable,
        absent: None,
        credentialed: None,
        content_type: None,
        stale: None,
        is_descriptor: is_never_descriptor,
    },
};

const ORDER: &[&str] = &["agent_id", "name", "version", "capabilities", "endpoint", "pricing", "metadata"];
const CAPABILITY: &[&str] = &["id", "description", "tags", "input_schema", "output_schema"];
const ENDPOINT: &[&str] = &["protocol", "url", "health_url", "auth"];
const PRICING: &[&str] = &["base_cost_joules", "estimated_latency_ms", "currency", "cost_per_request"];

/// The format version that the text describes.
const VERSION: &str = "1.0";
/// The name prefix of metadata that is computed from the causal ledger.
const PACR: &str = "pacr:";
/// The prefix of the member `spec` in older cards. The version of their format follows it.
const OLD_SPEC: &str = "agentcard-spec/";

static SCHEMA: LazySchema =
    LazyLock::new(|| shape::compile_schema(include_bytes!("../../schemas/aevum.agent-card-1.0.schema.json")));

const LINES: &[SchemaRule] = &[
    schema_rule("/*", &[ReasonCode::AeFieldMissing], "the member").for_keyword("required"),
    schema_rule("/agent_id", &[ReasonCode::AeAgentIdMalformed], "26 characters of 0-9 and A-Z without I, L, O, U"),
    schema_rule("/name", &[ReasonCode::AeNameLength], "1 to 128 characters"),
    schema_rule("/version", &[ReasonCode::AeVersionNotSemver], "a semantic version"),
    schema_rule("/capabilities", &[ReasonCode::AeCapabilitiesEmpty], "a list with at least one capability"),
    schema_rule("/capabilities/*/*", &[ReasonCode::AeCapabilityIncomplete], "the member").for_keyword("required"),
    schema_rule("/capabilities/*", &[ReasonCode::AeCapabilityIncomplete], "an object with id and description"),
    schema_rule(
        "/capabilities/*/id",
        &[ReasonCode::AeCapabilityIdMalformed],
        "at most 128 letters, digits, dots, hyphens, underscores",
    ),
    schema_rule("/capabilities/*/description", &[ReasonCode::AeDescriptionLength], "1 to 512 characters"),
    schema_rule("/capabilities/*/tags", &[ReasonCode::AeTagsType], "a list of strings"),
    schema_rule("/capabilities/*/tags/*", &[ReasonCode::AeTagsType], "a string"),
    schema_rule("/capabilities/*/input_schema", &[ReasonCode::AeIoSchemaInvalid], "a JSON Schema object, or null"),
    schema_rule("/capabilities/*/output_schema", &[ReasonCode::AeIoSchemaInvalid], "a JSON Schema object, or null"),
    schema_rule(
        "/endpoint",
        &[ReasonCode::AeProtocolUnknown, ReasonCode::AeUrlMalformed],
        "an object with protocol and url",
    ),
    schema_rule(
        "/endpoint/protocol",
        &[ReasonCode::AeProtocolUnknown],
        "http, websocket, sse, grpc, mcp, google_a2a or native",
    ),
    schema_rule("/endpoint/url", &[ReasonCode::AeUrlMalformed], "a URI"),
    schema_rule("/endpoint/health_url", &[ReasonCode::AeUrlMalformed], "a URI"),
    schema_rule("/endpoint/auth", &[ReasonCode::AeAuthUnknown], "null, or an object with a scheme"),
    schema_rule("/endpoint/auth/scheme", &[ReasonCode::AeAuthUnknown], "none, bearer, api_key, oauth2 or mtls"),
    schema_rule("/pricing", &[ReasonCode::AePricingType], "an object, or null"),
    schema_rule("/pricing/base_cost_joules", &[ReasonCode::AeCostBelowLandauer], "at least 2.854e-21")
        .for_keyword("minimum"),
    schema_rule("/pricing/currency", &[ReasonCode::AePricingType], "a string, or null"),
    schema_rule("/pricing/*", &[ReasonCode::AePricingType], "a number that is not negative, or null"),
    schema_rule("/metadata", &[ReasonCode::AeReputationRange], "an object"),
    schema_rule("/metadata/pacr:reputation_score", &[ReasonCode::AeReputationRange], "a number from 0 to 1"),
];

/// Members that only these cards have, including the older cards that the project still serves.
fn distinctive_members(card: &AgentCard) -> Vec<&'static str> {
    let shown = [
        ("agent_id", card.get("agent_id").is_some()),
        ("capabilities", card.value_at("/capabilities/0").is_some_and(Value::is_object)),
        ("endpoint", card.value_at("/endpoint/protocol").is_some()),
        ("pricing", card.value_at("/pricing/base_cost_joules").is_some()),
        ("metadata", pacr_members(card).next().is_some()),
        ("spec", card.text_at("/spec").is_some_and(|spec| spec.starts_with(OLD_SPEC))),
    ];
    shown.into_iter().filter(|(_, is_shown)| *is_shown).map(|(member, _)| member).collect()
}

/// The version that an older card claims, otherwise that of the specification.
fn format_version(card: &AgentCard) -> Option<String> {
    let claimed = card.text_at("/spec").and_then(|spec| spec.strip_prefix(OLD_SPEC));
    Some(excerpt_text(claimed.unwrap_or(VERSION)))
}

fn check_aevum_card(card: &AgentCard, rules: &CardLintContext<'_>) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    shape::check_schema(card, &SCHEMA, LINES, &mut found);
    check_agent_ulid(card, &mut found);
    for (at, capability) in card.items("capabilities").enumerate() {
        let place = format!("/capabilities/{at}");
        check_capability_id(capability, &place, &mut found);
        check_schemas(capability, &place, &mut found);
        report_unknown_members(capability, &place, CAPABILITY, &mut found);
    }
    report_unknown_members(card.document(), "", ORDER, &mut found);
    for (member, known) in [("endpoint", ENDPOINT), ("pricing", PRICING)] {
        report_unknown_members(card.get(member).unwrap_or(&Value::Null), &format!("/{member}"), known, &mut found);
    }
    check_currency(card, &mut found);
    ledger::card::check_claim_types(card, &mut found);
    if let Some(ledger) = rules.ledger {
        ledger::card::check_claims_against_ledger(card, ledger, &mut found);
    }
    report_self_declared_metrics(card, rules.ledger.is_some(), &mut found);
    found.with_effects(rules.profile)
}

/// AE-3.
fn check_agent_ulid(card: &AgentCard, found: &mut ReasonCollector) {
    if let Some(id) = card.text_at("/agent_id")
        && id.starts_with(|first: char| first > '7')
        && !found.has_specific_reason("/agent_id", ReasonCode::AeAgentIdOverflow)
    {
        found.add(
            Reason::new(ReasonCode::AeAgentIdOverflow)
                .expected("0 to 7 at first")
                .observed(excerpt_text(id))
                .at_place("/agent_id"),
        );
    }
}

/// AE-8, the conventions: a namespace, and no upper case. The published schema forbids upper case, the text does not.
fn check_capability_id(capability: &Value, place: &str, found: &mut ReasonCollector) {
    let place = format!("{place}/id");
    let Some(id) = capability.get("id").and_then(Value::as_str) else { return };
    if found.has_specific_reason(&place, ReasonCode::DocumentSchemaInvalid) {
        return;
    }
    let mut warn = |message: &str, expected: &str| {
        let mut reason = Reason::new(ReasonCode::AeCapabilityIdMalformed).message(message).expected(expected);
        reason.effect = ReasonEffect::Warn;
        found.add(reason.observed(excerpt_text(id)).at_place(place.clone()));
    };
    if !(id.contains('.') && id.split('.').all(|part| !part.is_empty())) {
        warn("The id of a capability has no namespace.", "a namespace, a dot and a name");
    }
    if id.bytes().any(|byte| byte.is_ascii_uppercase()) {
        warn("The id of a capability has upper case.", "lower case");
    }
}

/// AE-31.
fn check_currency(card: &AgentCard, found: &mut ReasonCollector) {
    let place = "/pricing/currency";
    if let Some(currency) = card.value_at(place).and_then(Value::as_str).filter(|currency| !is_currency(currency)) {
        let reason = Reason::new(ReasonCode::AeCurrencyUnknown).expected("a code of ISO 4217, or a token's symbol");
        found.add(reason.observed(excerpt_text(currency)).at_place(place));
    }
}

/// `^[A-Z][A-Z0-9]{2,9}$`. Every code of ISO 4217 matches too.
fn is_currency(text: &str) -> bool {
    let is_of_symbols = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    (3..=10).contains(&text.len()) && is_of_symbols && text.starts_with(|first: char| first.is_ascii_uppercase())
}

/// AE-11, except for the type.
fn check_schemas(capability: &Value, place: &str, found: &mut ReasonCollector) {
    for member in ["input_schema", "output_schema"] {
        let Some(schema) = capability.get(member).filter(|schema| schema.is_object()) else { continue };
        if !schema::is_json_schema(schema) {
            let reason = Reason::new(ReasonCode::AeIoSchemaInvalid).expected("a schema of JSON Schema 2020-12");
            found.add(reason.at_place(format!("{place}/{member}")));
        }
    }
}

/// AE-22.
fn report_unknown_members(holder: &Value, place: &str, known: &[&str], found: &mut ReasonCollector) {
    for name in holder.as_object().into_iter().flat_map(|members| members.keys()) {
        if !known.contains(&name.as_str()) {
            found.add(
                Reason::new(ReasonCode::AeUnknownMember)
                    .observed(excerpt_text(name))
                    .at_place(member_pointer(place, name)),
            );
        }
    }
}

/// AE-17, for the members that are not compared with a ledger (AE-30).
fn report_self_declared_metrics(card: &AgentCard, has_ledger: bool, found: &mut ReasonCollector) {
    for name in pacr_members(card).filter(|name| !(has_ledger && ledger::card::is_ledger_metric(name))) {
        found.add(
            Reason::new(ReasonCode::AePacrSelfDeclared)
                .observed(excerpt_text(name))
                .at_place(member_pointer("/metadata", name)),
        );
    }
}

fn pacr_members(card: &AgentCard) -> impl Iterator<Item = &String> {
    let members = card.get("metadata").and_then(Value::as_object);
    members.into_iter().flat_map(|members| members.keys()).filter(|name| name.starts_with(PACR))
}

fn member_pointer(place: &str, name: &str) -> String {
    let mut place = place.to_owned();
    pointer::push_pointer_segment(&mut place, name);
    excerpt_text(&place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_are_those_of_the_schema() {
        let schema: Value =
            serde_json::from_slice(include_bytes!("../../schemas/aevum.agent-card-1.0.schema.json")).expect("JSON");
        for (place, known) in
            [("", ORDER), ("/$defs/capability", CAPABILITY), ("/$defs/endpoint", ENDPOINT), ("/$defs/pricing", PRICING)]
        {
            let properties = schema.pointer(&format!("{place}/properties")).and_then(Value::as_object);
            let mut listed: Vec<&str> = properties.expect("an object").keys().map(String::as_str).collect();
            let mut known = known.to_vec();
            listed.sort_unstable();
            known.sort_unstable();
            assert_eq!(listed, known, "{place}");
        }
    }
}
