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

use super::shape::{self, Line, OwnSchema, line};
use super::{CardSystem, Definition, DiscoveryRules, Rules, no_descriptor, no_fixes};
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::text::excerpt;
use clresolve_verdict::card::Card;
use clresolve_verdict::check::{Findings, content};
use clresolve_verdict::schema;

pub(super) static DEFINITION: Definition = Definition {
    title: "Orloj agent card",
    distinctive,
    refines: &[CardSystem::A2a],
    version,
    check,
    order: ORDER,
    fixes: no_fixes,
    changed_at: None,
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
    discovery: DiscoveryRules {
        paths: &["/.well-known/agent-card.json", "/v1/agent-systems/{name}/.well-known/agent-card.json"],
        unreachable: Code::OrCardUnreachable,
        absent: Some(Code::OrRootCardAbsent),
        credentialed: Some(Code::OrDiscoveryCredentialed),
        content_type: None,
        stale: Some(Code::OrCardStale),
        is_descriptor: no_descriptor,
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

static SCHEMA: OwnSchema =
    LazyLock::new(|| shape::compiled(include_bytes!("../../schemas/orloj.agent-card.schema.json")));

const LINES: &[Line] = &[
    line("/name", &[Code::OrNameMissing], "a non-empty string"),
    line("/url", &[Code::OrUrlMalformed], "an absolute URI"),
    line("/skills", &[Code::OrSkillIncomplete], "a list of skills"),
    line("/skills/*", &[Code::OrSkillIncomplete], "an object with id and name"),
    line("/skills/*/id", &[Code::OrSkillIncomplete], "a non-empty string"),
    line("/skills/*/name", &[Code::OrSkillIncomplete], "a non-empty string"),
    line("/skills/*/description", &[Code::OrSkillDescriptionEmpty], "a description, or none").by("minLength"),
    line("/skills/*/description", &[Code::OrSkillDescriptionEmpty], "a string, or none").failing(),
    line("/skills/*/inputSchema", &[Code::OrInputSchemaEmpty], "a schema, or none").by("minProperties"),
    line("/skills/*/inputSchema", &[Code::OrInputSchemaInvalid], "an object that is a JSON Schema"),
    line("/capabilities", &[Code::OrCapabilityType], "an object"),
    line("/capabilities/*", &[Code::OrCapabilityType], "true or false"),
    line("/authentication", &[Code::OrAuthType], "an object with a list of schemes"),
    line("/authentication/schemes", &[Code::OrAuthType], "a list of strings"),
    line("/authentication/schemes/*", &[Code::OrAuthType], "a string"),
    line("/provider", &[Code::OrProviderUrlMalformed], "an object with a url"),
    line("/provider/url", &[Code::OrProviderUrlMalformed], "an absolute URI"),
    line("/version", &[Code::OrVersionType], "a string"),
    line("/protocolVersion", &[Code::OrVersionType], "a string"),
];

/// The endpoint's path has a distinctive form (OR-3), which is detected even in an invalid URL. A2A cards need no input
/// schema for a skill. A card that has one, and also has members that A2A requires and Orloj lacks, is an A2A card.
fn distinctive(card: &Card) -> Vec<&'static str> {
    let has_path = |url: &str| url.contains("/v1/agent-systems/");
    let skills = card.get("skills").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let is_a2a = card.get("defaultInputModes").is_some() || card.get("supportedInterfaces").is_some();
    let shown = [
        ("url", card.text("/url").is_some_and(has_path)),
        ("skills", !is_a2a && skills.iter().any(|skill| skill.get("inputSchema").is_some())),
    ];
    shown.into_iter().filter(|(_, is_shown)| *is_shown).map(|(member, _)| member).collect()
}

/// The version of A2A that the server declares. Orloj's specification of the card has no version.
fn version(card: &Card) -> Option<String> {
    card.text("/protocolVersion").map(excerpt)
}

fn check(card: &Card, rules: &Rules<'_>) -> Vec<Reason> {
    let mut found = Findings::default();
    shape::objections(card, &SCHEMA, LINES, &mut found);
    endpoint(card, &mut found);
    input_schemas(card, &mut found);
    protocol_version(card, &mut found);
    content::secrets(card, "OR-7", &mut found);
    found.weighed(rules.profile)
}

/// OR-3.
fn endpoint(card: &Card, found: &mut Findings) {
    let (Some(name), Some(text)) = (card.text("/name"), card.text("/url")) else { return };
    let Ok(url) = Url::parse(text) else { return };
    if found.speak_of("/url", Code::OrUrlNameMismatch) || system_of(&url).as_deref() == Some(name) {
        return;
    }
    let expected = format!("a path that ends in /v1/agent-systems/{}/a2a", excerpt(name));
    found.add(Reason::new(Code::OrUrlNameMismatch).expected(expected).observed(excerpt(text)).at("/url"));
}

/// OR-17: according to the specification this is only a setting of the server.
fn protocol_version(card: &Card, found: &mut Findings) {
    let place = "/protocolVersion";
    if let Some(version) = card.at(place).and_then(Value::as_str).filter(|version| !is_dotted_number(version)) {
        let mut reason =
            Reason::new(Code::OrVersionType).message("The Orloj card's protocolVersion is no dotted number.");
        reason.effect = Effect::Warn;
        found.add(reason.expected("a dotted number, such as 1.0").observed(excerpt(version)).at(place));
    }
}

fn is_dotted_number(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.contains('.') && text.split('.').all(is_number)
}

/// OR-17, except for the type.
fn input_schemas(card: &Card, found: &mut Findings) {
    let skills = card.get("skills").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (at, skill) in skills.iter().enumerate() {
        let schema = skill.get("inputSchema").filter(|schema| schema.is_object());
        if schema.is_some_and(|schema| !schema::is_schema(schema)) {
            let reason = Reason::new(Code::OrInputSchemaInvalid).expected("a schema of JSON Schema 2020-12");
            found.add(reason.at(format!("/skills/{at}/inputSchema")));
        }
    }
}

/// The name of the AgentSystem in an endpoint's path, percent-decoded.
fn system_of(url: &Url) -> Option<String> {
    let (_, below) = url.path().rsplit_once("/v1/agent-systems/")?;
    let segment = below.strip_suffix("/a2a").filter(|segment| !segment.is_empty() && !segment.contains('/'))?;
    percent_decode_str(segment).decode_utf8().ok().map(|name| name.into_owned())
}
