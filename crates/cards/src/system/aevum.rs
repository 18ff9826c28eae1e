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

use super::shape::{self, Line, OwnSchema, line};
use super::{Definition, DiscoveryRules, Rules, no_descriptor, no_fixes};
use crate::ledger;
use clresolve_core::json::pointer;
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::text::excerpt;
use clresolve_verdict::card::Card;
use clresolve_verdict::check::Findings;
use clresolve_verdict::schema;

pub(super) static DEFINITION: Definition = Definition {
    title: "Aevum AgentCard",
    distinctive,
    refines: &[],
    version,
    check,
    order: ORDER,
    fixes: no_fixes,
    changed_at: None,
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
    discovery: DiscoveryRules {
        paths: &["/.well-known/agent.json"],
        unreachable: Code::AeCardUnreachable,
        absent: None,
        credentialed: None,
        content_type: None,
        stale: None,
        is_descriptor: no_descriptor,
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

static SCHEMA: OwnSchema =
    LazyLock::new(|| shape::compiled(include_bytes!("../../schemas/aevum.agent-card-1.0.schema.json")));

const LINES: &[Line] = &[
    line("/*", &[Code::AeFieldMissing], "the member").by("required"),
    line("/agent_id", &[Code::AeAgentIdMalformed], "26 characters of 0-9 and A-Z without I, L, O, U"),
    line("/name", &[Code::AeNameLength], "1 to 128 characters"),
    line("/version", &[Code::AeVersionNotSemver], "a semantic version"),
    line("/capabilities", &[Code::AeCapabilitiesEmpty], "a list with at least one capability"),
    line("/capabilities/*/*", &[Code::AeCapabilityIncomplete], "the member").by("required"),
    line("/capabilities/*", &[Code::AeCapabilityIncomplete], "an object with id and description"),
    line(
        "/capabilities/*/id",
        &[Code::AeCapabilityIdMalformed],
        "at most 128 letters, digits, dots, hyphens, underscores",
    ),
    line("/capabilities/*/description", &[Code::AeDescriptionLength], "1 to 512 characters"),
    line("/capabilities/*/tags", &[Code::AeTagsType], "a list of strings"),
    line("/capabilities/*/tags/*", &[Code::AeTagsType], "a string"),
    line("/capabilities/*/input_schema", &[Code::AeIoSchemaInvalid], "a JSON Schema object, or null"),
    line("/capabilities/*/output_schema", &[Code::AeIoSchemaInvalid], "a JSON Schema object, or null"),
    line("/endpoint", &[Code::AeProtocolUnknown, Code::AeUrlMalformed], "an object with protocol and url"),
    line("/endpoint/protocol", &[Code::AeProtocolUnknown], "http, websocket, sse, grpc, mcp, google_a2a or native"),
    line("/endpoint/url", &[Code::AeUrlMalformed], "a URI"),
    line("/endpoint/health_url", &[Code::AeUrlMalformed], "a URI"),
    line("/endpoint/auth", &[Code::AeAuthUnknown], "null, or an object with a scheme"),
    line("/endpoint/auth/scheme", &[Code::AeAuthUnknown], "none, bearer, api_key, oauth2 or mtls"),
    line("/pricing", &[Code::AePricingType], "an object, or null"),
    line("/pricing/base_cost_joules", &[Code::AeCostBelowLandauer], "at least 2.854e-21").by("minimum"),
    line("/pricing/currency", &[Code::AePricingType], "a string, or null"),
    line("/pricing/*", &[Code::AePricingType], "a number that is not negative, or null"),
    line("/metadata", &[Code::AeReputationRange], "an object"),
    line("/metadata/pacr:reputation_score", &[Code::AeReputationRange], "a number from 0 to 1"),
];

/// Members that only these cards have, including the older cards that the project still serves.
fn distinctive(card: &Card) -> Vec<&'static str> {
    let shown = [
        ("agent_id", card.get("agent_id").is_some()),
        ("capabilities", card.at("/capabilities/0").is_some_and(Value::is_object)),
        ("endpoint", card.at("/endpoint/protocol").is_some()),
        ("pricing", card.at("/pricing/base_cost_joules").is_some()),
        ("metadata", pacr_members(card).next().is_some()),
        ("spec", card.text("/spec").is_some_and(|spec| spec.starts_with(OLD_SPEC))),
    ];
    shown.into_iter().filter(|(_, is_shown)| *is_shown).map(|(member, _)| member).collect()
}

/// The version that an older card claims, otherwise that of the specification.
fn version(card: &Card) -> Option<String> {
    let claimed = card.text("/spec").and_then(|spec| spec.strip_prefix(OLD_SPEC));
    Some(excerpt(claimed.unwrap_or(VERSION)))
}

fn check(card: &Card, rules: &Rules<'_>) -> Vec<Reason> {
    let mut found = Findings::default();
    shape::objections(card, &SCHEMA, LINES, &mut found);
    ulid(card, &mut found);
    for (at, capability) in capabilities(card).enumerate() {
        let place = format!("/capabilities/{at}");
        id(capability, &place, &mut found);
        schemas(capability, &place, &mut found);
        unknown(capability, &place, CAPABILITY, &mut found);
    }
    unknown(card.document(), "", ORDER, &mut found);
    for (member, known) in [("endpoint", ENDPOINT), ("pricing", PRICING)] {
        unknown(card.get(member).unwrap_or(&Value::Null), &format!("/{member}"), known, &mut found);
    }
    currency(card, &mut found);
    ledger::card::types(card, &mut found);
    if let Some(ledger) = rules.ledger {
        ledger::card::compare(card, ledger, &mut found);
    }
    self_declared(card, rules.ledger.is_some(), &mut found);
    found.weighed(rules.profile)
}

fn capabilities(card: &Card) -> impl Iterator<Item = &Value> {
    card.get("capabilities").and_then(Value::as_array).into_iter().flatten()
}

/// AE-3.
fn ulid(card: &Card, found: &mut Findings) {
    if let Some(id) = card.text("/agent_id")
        && id.starts_with(|first: char| first > '7')
        && !found.speak_of("/agent_id", Code::AeAgentIdOverflow)
    {
        found.add(
            Reason::new(Code::AeAgentIdOverflow).expected("0 to 7 at first").observed(excerpt(id)).at("/agent_id"),
        );
    }
}

/// AE-8, the conventions: a namespace, and no upper case. The published schema forbids upper case, the text does not.
fn id(capability: &Value, place: &str, found: &mut Findings) {
    let place = format!("{place}/id");
    let Some(id) = capability.get("id").and_then(Value::as_str) else { return };
    if found.speak_of(&place, Code::DocumentSchemaInvalid) {
        return;
    }
    let mut warn = |message: &str, expected: &str| {
        let mut reason = Reason::new(Code::AeCapabilityIdMalformed).message(message).expected(expected);
        reason.effect = Effect::Warn;
        found.add(reason.observed(excerpt(id)).at(place.clone()));
    };
    if !(id.contains('.') && id.split('.').all(|part| !part.is_empty())) {
        warn("The id of a capability has no namespace.", "a namespace, a dot and a name");
    }
    if id.bytes().any(|byte| byte.is_ascii_uppercase()) {
        warn("The id of a capability has upper case.", "lower case");
    }
}

/// AE-31.
fn currency(card: &Card, found: &mut Findings) {
    let place = "/pricing/currency";
    if let Some(currency) = card.at(place).and_then(Value::as_str).filter(|currency| !is_currency(currency)) {
        let reason = Reason::new(Code::AeCurrencyUnknown).expected("a code of ISO 4217, or a token's symbol");
        found.add(reason.observed(excerpt(currency)).at(place));
    }
}

/// `^[A-Z][A-Z0-9]{2,9}$`. Every code of ISO 4217 matches too.
fn is_currency(text: &str) -> bool {
    let is_of_symbols = text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    (3..=10).contains(&text.len()) && is_of_symbols && text.starts_with(|first: char| first.is_ascii_uppercase())
}

/// AE-11, except for the type.
fn schemas(capability: &Value, place: &str, found: &mut Findings) {
    for member in ["input_schema", "output_schema"] {
        let Some(schema) = capability.get(member).filter(|schema| schema.is_object()) else { continue };
        if !schema::is_schema(schema) {
            let reason = Reason::new(Code::AeIoSchemaInvalid).expected("a schema of JSON Schema 2020-12");
            found.add(reason.at(format!("{place}/{member}")));
        }
    }
}

/// AE-22.
fn unknown(holder: &Value, place: &str, known: &[&str], found: &mut Findings) {
    for name in holder.as_object().into_iter().flat_map(|members| members.keys()) {
        if !known.contains(&name.as_str()) {
            found.add(Reason::new(Code::AeUnknownMember).observed(excerpt(name)).at(below(place, name)));
        }
    }
}

/// AE-17, for the members that are not compared with a ledger (AE-30).
fn self_declared(card: &Card, has_ledger: bool, found: &mut Findings) {
    for name in pacr_members(card).filter(|name| !(has_ledger && ledger::card::is_computed(name))) {
        found.add(Reason::new(Code::AePacrSelfDeclared).observed(excerpt(name)).at(below("/metadata", name)));
    }
}

fn pacr_members(card: &Card) -> impl Iterator<Item = &String> {
    let members = card.get("metadata").and_then(Value::as_object);
    members.into_iter().flat_map(|members| members.keys()).filter(|name| name.starts_with(PACR))
}

fn below(place: &str, name: &str) -> String {
    let mut place = place.to_owned();
    pointer::push(&mut place, name);
    excerpt(&place)
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
