//! The A2A project's agent card, 0.2 to 1.0. The version is detected by the card's shape.
//!
//! A card with the interfaces of 1.0 is judged as a 1.0 card, even if it also has older members for older clients. Its
//! JSON is that of protocol buffers, where a member that is `null` counts as absent. In 0.2 and 0.3 such a member has a
//! wrong type. [`crate::signature`] verifies signatures. This module checks only their shape.

mod mapping;
mod security;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use super::shape::{self, LazySchema, SchemaRule, schema_rule};
use super::{
    CardDiscoveryRules, CardLintContext, CardSystemDefinition, is_never_descriptor, no_fixes, present_members,
};
use crate::signature::message::{self, A2aProtobufFieldPresence, AGENT_CARD};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::{ReasonCollector, content};

pub(super) static DEFINITION: CardSystemDefinition = CardSystemDefinition {
    title: "A2A agent card",
    distinctive: distinctive_members,
    refines: &[],
    version: format_version,
    check: check_a2a_card,
    order: ORDER,
    fixes: no_fixes,
    changed_at: None,
    mapping: mapping::mapping_for_card,
    written: &mapping::CURRENT,
    discovery: CardDiscoveryRules {
        paths: &["/.well-known/agent-card.json", "/.well-known/agent.json"],
        unreachable: ReasonCode::DiscoveryNoCard,
        absent: None,
        credentialed: None,
        content_type: None,
        stale: None,
        is_descriptor: is_never_descriptor,
    },
};

/// The members of every version.
const ORDER: &[&str] = &[
    "protocolVersion",
    "name",
    "description",
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "supportedInterfaces",
    "provider",
    "iconUrl",
    "version",
    "documentationUrl",
    "capabilities",
    "securitySchemes",
    "security",
    "securityRequirements",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
    "supportsAuthenticatedExtendedCard",
    "signatures",
];

static SCHEMA_0_2: LazySchema =
    LazyLock::new(|| shape::compile_schema(include_bytes!("../../schemas/a2a.agent-card-0.2.schema.json")));
static SCHEMA_0_3: LazySchema =
    LazyLock::new(|| shape::compile_schema(include_bytes!("../../schemas/a2a.agent-card-0.3.schema.json")));
static SCHEMA_1_0: LazySchema =
    LazyLock::new(|| shape::compile_schema(include_bytes!("../../schemas/a2a.agent-card-1.0.schema.json")));

/// The versions with distinct shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum A2aRelease {
    /// 0.2.0 to 0.2.5, which had no `protocolVersion`.
    V0_2_0,
    V0_2_6,
    V0_3,
    V1_0,
}

impl A2aRelease {
    /// The release that the members indicate: 1.0 added `supportedInterfaces`, 0.3 added `signatures`, and 0.2.6 added
    /// `protocolVersion`.
    fn detect_release(card: &AgentCard) -> Self {
        let claimed = card.text_at("/protocolVersion");
        if card.get("supportedInterfaces").is_some() || card.get("url").is_none() && claimed.is_none() {
            Self::V1_0
        } else if card.get("signatures").is_some() || claimed.is_some_and(|version| is_release_of_line(version, "0.3"))
        {
            Self::V0_3
        } else if claimed.is_none_or(|version| is_release_of_line(version, "0.2")) {
            if claimed.is_some() { Self::V0_2_6 } else { Self::V0_2_0 }
        } else {
            Self::V0_3
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::V0_2_0 => "0.2.0",
            Self::V0_2_6 => "0.2.6",
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    fn schema(self) -> &'static LazySchema {
        match self {
            Self::V0_2_0 | Self::V0_2_6 => &SCHEMA_0_2,
            Self::V0_3 => &SCHEMA_0_3,
            Self::V1_0 => &SCHEMA_1_0,
        }
    }
}

/// The values of `protocolVersion` in cards before 1.0.
const KNOWN_CLAIMS: [&str; 2] = ["0.2", "0.3"];

/// Whether `version` is `line` or a patch release of it.
fn is_release_of_line(version: &str, line: &str) -> bool {
    version.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

const LINES: &[SchemaRule] = &[
    schema_rule("/*", &[ReasonCode::A2aFieldMissing], "the member").for_keyword("required"),
    schema_rule("/supportedInterfaces", &[ReasonCode::A2aInterfaceMalformed], "a list of interfaces"),
    schema_rule("/supportedInterfaces/*", &[ReasonCode::A2aInterfaceMalformed], "an object with url and binding"),
    schema_rule("/supportedInterfaces/*/*", &[ReasonCode::A2aInterfaceMalformed], "the member").for_keyword("required"),
    schema_rule("/supportedInterfaces/*/url", &[ReasonCode::A2aUrlMalformed], "an absolute URI"),
    schema_rule("/supportedInterfaces/*/*", &[ReasonCode::A2aInterfaceMalformed], "a string"),
    schema_rule("/additionalInterfaces", &[ReasonCode::A2aInterfaceMalformed], "a list of interfaces"),
    schema_rule("/additionalInterfaces/*", &[ReasonCode::A2aInterfaceMalformed], "an object with url and transport"),
    schema_rule("/additionalInterfaces/*/*", &[ReasonCode::A2aInterfaceMalformed], "the member")
        .for_keyword("required"),
    schema_rule("/additionalInterfaces/*/url", &[ReasonCode::A2aUrlMalformed], "an absolute URI"),
    schema_rule("/additionalInterfaces/*/*", &[ReasonCode::A2aInterfaceMalformed], "a string"),
    schema_rule("/url", &[ReasonCode::A2aUrlMalformed], "an absolute URI"),
    schema_rule("/documentationUrl", &[ReasonCode::A2aUrlMalformed], "an absolute URI"),
    schema_rule("/iconUrl", &[ReasonCode::A2aUrlMalformed], "an absolute URI"),
    schema_rule("/provider", &[ReasonCode::A2aProviderIncomplete], "an object with organization and url"),
    schema_rule("/provider/*", &[ReasonCode::A2aProviderIncomplete], "organization and url").for_keyword("required"),
    schema_rule("/provider/url", &[ReasonCode::A2aUrlMalformed], "an absolute URI"),
    schema_rule("/skills", &[ReasonCode::A2aSkillIncomplete], "a list of skills"),
    schema_rule("/skills/*/*", &[ReasonCode::A2aSkillIncomplete], "id, name, description and tags")
        .for_keyword("required"),
    schema_rule("/skills/*", &[ReasonCode::A2aSkillIncomplete], "an object with id, name, description and tags"),
    schema_rule("/skills/*/id", &[ReasonCode::A2aSkillIncomplete], "a string"),
    schema_rule("/skills/*/name", &[ReasonCode::A2aSkillIncomplete], "a string"),
    schema_rule("/skills/*/description", &[ReasonCode::A2aSkillIncomplete], "a string"),
    schema_rule("/skills/*/tags", &[ReasonCode::A2aSkillIncomplete], "a list of strings"),
    schema_rule("/skills/*/tags/*", &[ReasonCode::A2aSkillIncomplete], "a string"),
    schema_rule("/skills/*/inputModes", &[ReasonCode::A2aModeNotMediaType], "a list of media types").with_failure(),
    schema_rule("/skills/*/inputModes/*", &[ReasonCode::A2aModeNotMediaType], "a media type").with_failure(),
    schema_rule("/skills/*/outputModes", &[ReasonCode::A2aModeNotMediaType], "a list of media types").with_failure(),
    schema_rule("/skills/*/outputModes/*", &[ReasonCode::A2aModeNotMediaType], "a media type").with_failure(),
    schema_rule("/defaultInputModes", &[ReasonCode::A2aModeNotMediaType], "a list of media types").with_failure(),
    schema_rule("/defaultInputModes/*", &[ReasonCode::A2aModeNotMediaType], "a media type").with_failure(),
    schema_rule("/defaultOutputModes", &[ReasonCode::A2aModeNotMediaType], "a list of media types").with_failure(),
    schema_rule("/defaultOutputModes/*", &[ReasonCode::A2aModeNotMediaType], "a media type").with_failure(),
    schema_rule("/capabilities/extensions", &[ReasonCode::A2aExtensionMalformed], "a list of extensions"),
    schema_rule("/capabilities/extensions/*/*", &[ReasonCode::A2aExtensionMalformed], "a URI, and params in an object"),
    schema_rule("/capabilities/extensions/*", &[ReasonCode::A2aExtensionMalformed], "an object with a URI"),
    schema_rule("/securitySchemes/*/*/*", &[ReasonCode::A2aFieldMissing], "the member").for_keyword("required"),
    schema_rule("/securitySchemes/*/*/flows/*/*", &[ReasonCode::A2aFieldMissing], "the member").for_keyword("required"),
    schema_rule(
        "/securityRequirements/*/schemes",
        &[ReasonCode::A2aSecurityMisnamed],
        "an object, by the names of schemes",
    ),
    schema_rule(
        "/securityRequirements/*/schemes/*",
        &[ReasonCode::A2aSecurityMisnamed],
        "an object with a list of scopes",
    ),
    schema_rule(
        "/skills/*/securityRequirements/*/schemes",
        &[ReasonCode::A2aSecurityMisnamed],
        "an object, by the names of schemes",
    ),
    schema_rule(
        "/skills/*/securityRequirements/*/schemes/*",
        &[ReasonCode::A2aSecurityMisnamed],
        "an object with a list of scopes",
    ),
];

/// Members that only these cards have.
fn distinctive_members(card: &AgentCard) -> Vec<&'static str> {
    let mut shown = present_members(
        card,
        &[
            "supportedInterfaces",
            "additionalInterfaces",
            "preferredTransport",
            "defaultInputModes",
            "defaultOutputModes",
            "supported_interfaces",
            "default_input_modes",
            "default_output_modes",
        ],
    );
    if card.get("protocolVersion").is_some() && card.get("url").is_some() {
        shown.push("protocolVersion");
    }
    shown
}

/// `None` if the card claims a version whose shape it does not have.
fn format_version(card: &AgentCard) -> Option<String> {
    let release = A2aRelease::detect_release(card);
    let is_known = |claimed: &Value| {
        claimed.as_str().is_some_and(|version| KNOWN_CLAIMS.iter().any(|line| is_release_of_line(version, line)))
    };
    let is_shown = release == A2aRelease::V1_0 || card.get("protocolVersion").is_none_or(is_known);
    is_shown.then(|| release.name().to_owned())
}

fn check_a2a_card(card: &AgentCard, rules: &CardLintContext<'_>) -> Vec<Reason> {
    let release = A2aRelease::detect_release(card);
    let is_of_1_0 = release == A2aRelease::V1_0;
    let mut found = ReasonCollector::default();
    let read = match is_of_1_0 {
        true => Cow::Owned(AgentCard::from_partial_document(message::without_null_protobuf_fields(card.document()))),
        false => Cow::Borrowed(card),
    };
    if is_of_1_0 {
        check_snake_case(&read, &mut found);
    }
    shape::check_schema(&read, release.schema(), LINES, &mut found);
    check_version_claims(&read, release, &mut found);
    if is_of_1_0 {
        security::check_security_schemes(&read, &mut found);
    }
    security::check_security_requirements(&read, is_of_1_0, &mut found);
    check_input_output_modes(&read, &mut found);
    check_skill_ids(&read, &mut found);
    content::scan_secrets(card, "", &mut found);
    found.with_effects(rules.profile)
}

/// Reports members of a 1.0 card whose names are those of the message definition, not of its JSON form. This matters if
/// the member is required, or imposes a requirement on callers.
fn check_snake_case(card: &AgentCard, found: &mut ReasonCollector) {
    for member in AGENT_CARD {
        let name = member.snake_case();
        if name == member.name || card.get(member.name).is_some() || card.get(&name).is_none() {
            continue;
        }
        let (code, place) = match member.presence {
            A2aProtobufFieldPresence::Required => (ReasonCode::A2aFieldMissing, format!("/{}", member.name)),
            _ if member.name.starts_with("security") => (ReasonCode::A2aSecurityMisnamed, format!("/{name}")),
            _ => continue,
        };
        let message = "This is an A2A 1.0 card with names in snake_case; its JSON form has names in camelCase.";
        found.add(Reason::new(code).message(message).expected(member.name).observed(name).at_place(place));
    }
}

/// Reports members that contradict the card's version.
fn check_version_claims(card: &AgentCard, release: A2aRelease, found: &mut ReasonCollector) {
    let claimed = card.text_at("/protocolVersion");
    if release == A2aRelease::V1_0 {
        let has = |member: &str| card.get(member).is_some_and(|value| !value.is_null());
        for member in ["url", "preferredTransport", "additionalInterfaces"] {
            if has(member) {
                found.add(Reason::new(ReasonCode::A2aVersionMixed).observed(member).at_place(format!("/{member}")));
            }
        }
        if has("security") && !has("securityRequirements") {
            // The sample in the specification's text uses the older name.
            let mut reason =
                Reason::new(ReasonCode::A2aSecurityMisnamed).expected("securityRequirements").at_place("/security");
            reason.effect = ReasonEffect::Warn;
            found.add(reason);
        }
        for (at, interface) in card.items("supportedInterfaces").enumerate() {
            if let Some(version) = interface.get("protocolVersion").and_then(Value::as_str)
                && mapping::version_without_patch(version) != version
            {
                found.add(
                    Reason::new(ReasonCode::A2aProtocolVersionUnknown)
                        .message("An interface of the A2A card states a patch number.")
                        .expected(excerpt_text(mapping::version_without_patch(version)))
                        .observed(excerpt_text(version))
                        .at_place(format!("/supportedInterfaces/{at}/protocolVersion")),
                );
            }
        }
    } else if let Some(version) = claimed
        && !KNOWN_CLAIMS.iter().any(|line| is_release_of_line(version, line))
    {
        let expected = "0.2 or 0.3; a card of 1.0 has supportedInterfaces";
        found.add(
            Reason::new(ReasonCode::A2aProtocolVersionUnknown)
                .expected(expected)
                .observed(excerpt_text(version))
                .at_place("/protocolVersion"),
        );
    }
}

/// Checks that modes are media types. Published cards often contain `text`.
fn check_input_output_modes(card: &AgentCard, found: &mut ReasonCollector) {
    let mut judge = |modes: Option<&Value>, place: &str| {
        for (at, mode) in modes.and_then(Value::as_array).into_iter().flatten().enumerate() {
            if let Some(mode) = mode.as_str().filter(|mode| !is_media_type(mode)) {
                let reason = Reason::new(ReasonCode::A2aModeNotMediaType).expected("a media type, such as text/plain");
                found.add(reason.observed(excerpt_text(mode)).at_place(format!("{place}/{at}")));
            }
        }
    };
    for member in ["defaultInputModes", "defaultOutputModes"] {
        judge(card.get(member), &format!("/{member}"));
    }
    for (at, skill) in card.items("skills").enumerate() {
        for member in ["inputModes", "outputModes"] {
            judge(skill.get(member), &format!("/skills/{at}/{member}"));
        }
    }
}

/// Whether the text is a type and a subtype in the characters of RFC 6838, with or without parameters.
fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+*".contains(&b));
    essence.split_once('/').is_some_and(|(kind, subtype)| is_name(kind) && is_name(subtype))
}

/// Checks that skill ids are unique.
fn check_skill_ids(card: &AgentCard, found: &mut ReasonCollector) {
    let mut seen = BTreeSet::new();
    for (at, skill) in card.items("skills").enumerate() {
        if let Some(id) = skill.get("id").and_then(Value::as_str)
            && !seen.insert(id)
        {
            found.add(
                Reason::new(ReasonCode::A2aSkillDuplicate)
                    .observed(excerpt_text(id))
                    .at_place(format!("/skills/{at}/id")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};

    use super::*;
    use crate::system::{CardSystem, CardSystemDetection, detect_card_system};

    #[test]
    fn the_version_is_recognised_by_the_members() {
        for (card, expected) in [
            (r#"{"supportedInterfaces": [], "protocolVersion": "0.3.0", "url": "u"}"#, "1.0"),
            (r#"{"url": "u", "protocolVersion": "0.3.0"}"#, "0.3"),
            (r#"{"url": "u", "protocolVersion": "0.2.9", "signatures": []}"#, "0.3"),
            (r#"{"url": "u", "protocolVersion": "0.2.9"}"#, "0.2.6"),
            (r#"{"url": "u", "protocolVersion": "0.30"}"#, "0.3"),
            (r#"{"url": "u"}"#, "0.2.0"),
            (r#"{"defaultInputModes": []}"#, "1.0"),
        ] {
            let card = AgentCard::parse(card.as_bytes()).expect("strict JSON");
            assert_eq!(A2aRelease::detect_release(&card).name(), expected, "{card:?}");
        }
    }

    #[test]
    fn snake_case_card_is_recognised_and_named_as_such() {
        let card =
            br#"{"supported_interfaces": [], "default_input_modes": [], "defaultOutputModes": [], "icon_url": ""}"#;
        let card = AgentCard::parse(card).expect("strict JSON");
        assert_eq!(detect_card_system(&card), CardSystemDetection::One(CardSystem::A2a));
        let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
        let reasons = check_a2a_card(&card, &CardLintContext::from_profile(&profile));
        let named: Vec<_> = reasons.iter().filter(|reason| reason.message.contains("snake_case")).collect();
        let observed: Vec<_> = named.iter().filter_map(|reason| reason.observed.as_deref()).collect();
        assert_eq!(observed, ["supported_interfaces", "default_input_modes"]);
        assert!(named.iter().all(|reason| reason.code == ReasonCode::A2aFieldMissing));
    }

    #[test]
    fn media_types_have_two_parts() {
        for text in ["text/plain", "application/vnd.api+json; charset=utf-8", "image/*"] {
            assert!(is_media_type(text), "{text}");
        }
        for text in ["", "text", "text/", "/plain", "text/pl ain"] {
            assert!(!is_media_type(text), "{text}");
        }
    }
}
