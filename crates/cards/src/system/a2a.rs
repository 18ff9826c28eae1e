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

use super::shape::{self, Line, OwnSchema, line};
use super::{Definition, DiscoveryRules, Rules, no_descriptor, no_fixes, present};
use crate::signature::message::{self, AGENT_CARD, Presence};
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::text::excerpt;
use clresolve_verdict::card::Card;
use clresolve_verdict::check::{Findings, content};

pub(super) static DEFINITION: Definition = Definition {
    title: "A2A agent card",
    distinctive,
    refines: &[],
    version,
    check,
    order: ORDER,
    fixes: no_fixes,
    changed_at: None,
    mapping: mapping::mapping,
    written: &mapping::CURRENT,
    discovery: DiscoveryRules {
        paths: &["/.well-known/agent-card.json", "/.well-known/agent.json"],
        unreachable: Code::DiscoveryNoCard,
        absent: None,
        credentialed: None,
        content_type: None,
        stale: None,
        is_descriptor: no_descriptor,
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

static SCHEMA_0_2: OwnSchema =
    LazyLock::new(|| shape::compiled(include_bytes!("../../schemas/a2a.agent-card-0.2.schema.json")));
static SCHEMA_0_3: OwnSchema =
    LazyLock::new(|| shape::compiled(include_bytes!("../../schemas/a2a.agent-card-0.3.schema.json")));
static SCHEMA_1_0: OwnSchema =
    LazyLock::new(|| shape::compiled(include_bytes!("../../schemas/a2a.agent-card-1.0.schema.json")));

/// The versions with distinct shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Release {
    /// 0.2.0 to 0.2.5, which had no `protocolVersion`.
    V0_2_0,
    V0_2_6,
    V0_3,
    V1_0,
}

impl Release {
    /// The release that the members indicate: 1.0 added `supportedInterfaces`, 0.3 added `signatures`, and 0.2.6 added
    /// `protocolVersion`.
    fn of(card: &Card) -> Self {
        let claimed = card.text("/protocolVersion");
        if card.get("supportedInterfaces").is_some() || card.get("url").is_none() && claimed.is_none() {
            Self::V1_0
        } else if card.get("signatures").is_some() || claimed.is_some_and(|version| is_of(version, "0.3")) {
            Self::V0_3
        } else if claimed.is_none_or(|version| is_of(version, "0.2")) {
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

    fn schema(self) -> &'static OwnSchema {
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
fn is_of(version: &str, line: &str) -> bool {
    version.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

const LINES: &[Line] = &[
    line("/*", &[Code::A2aFieldMissing], "the member").by("required"),
    line("/supportedInterfaces", &[Code::A2aInterfaceMalformed], "a list of interfaces"),
    line("/supportedInterfaces/*", &[Code::A2aInterfaceMalformed], "an object with url and binding"),
    line("/supportedInterfaces/*/*", &[Code::A2aInterfaceMalformed], "the member").by("required"),
    line("/supportedInterfaces/*/url", &[Code::A2aUrlMalformed], "an absolute URI"),
    line("/supportedInterfaces/*/*", &[Code::A2aInterfaceMalformed], "a string"),
    line("/additionalInterfaces", &[Code::A2aInterfaceMalformed], "a list of interfaces"),
    line("/additionalInterfaces/*", &[Code::A2aInterfaceMalformed], "an object with url and transport"),
    line("/additionalInterfaces/*/*", &[Code::A2aInterfaceMalformed], "the member").by("required"),
    line("/additionalInterfaces/*/url", &[Code::A2aUrlMalformed], "an absolute URI"),
    line("/additionalInterfaces/*/*", &[Code::A2aInterfaceMalformed], "a string"),
    line("/url", &[Code::A2aUrlMalformed], "an absolute URI"),
    line("/documentationUrl", &[Code::A2aUrlMalformed], "an absolute URI"),
    line("/iconUrl", &[Code::A2aUrlMalformed], "an absolute URI"),
    line("/provider", &[Code::A2aProviderIncomplete], "an object with organization and url"),
    line("/provider/*", &[Code::A2aProviderIncomplete], "organization and url").by("required"),
    line("/provider/url", &[Code::A2aUrlMalformed], "an absolute URI"),
    line("/skills", &[Code::A2aSkillIncomplete], "a list of skills"),
    line("/skills/*/*", &[Code::A2aSkillIncomplete], "id, name, description and tags").by("required"),
    line("/skills/*", &[Code::A2aSkillIncomplete], "an object with id, name, description and tags"),
    line("/skills/*/id", &[Code::A2aSkillIncomplete], "a string"),
    line("/skills/*/name", &[Code::A2aSkillIncomplete], "a string"),
    line("/skills/*/description", &[Code::A2aSkillIncomplete], "a string"),
    line("/skills/*/tags", &[Code::A2aSkillIncomplete], "a list of strings"),
    line("/skills/*/tags/*", &[Code::A2aSkillIncomplete], "a string"),
    line("/skills/*/inputModes", &[Code::A2aModeNotMediaType], "a list of media types").failing(),
    line("/skills/*/inputModes/*", &[Code::A2aModeNotMediaType], "a media type").failing(),
    line("/skills/*/outputModes", &[Code::A2aModeNotMediaType], "a list of media types").failing(),
    line("/skills/*/outputModes/*", &[Code::A2aModeNotMediaType], "a media type").failing(),
    line("/defaultInputModes", &[Code::A2aModeNotMediaType], "a list of media types").failing(),
    line("/defaultInputModes/*", &[Code::A2aModeNotMediaType], "a media type").failing(),
    line("/defaultOutputModes", &[Code::A2aModeNotMediaType], "a list of media types").failing(),
    line("/defaultOutputModes/*", &[Code::A2aModeNotMediaType], "a media type").failing(),
    line("/capabilities/extensions", &[Code::A2aExtensionMalformed], "a list of extensions"),
    line("/capabilities/extensions/*/*", &[Code::A2aExtensionMalformed], "a URI, and params in an object"),
    line("/capabilities/extensions/*", &[Code::A2aExtensionMalformed], "an object with a URI"),
    line("/securitySchemes/*/*/*", &[Code::A2aFieldMissing], "the member").by("required"),
    line("/securitySchemes/*/*/flows/*/*", &[Code::A2aFieldMissing], "the member").by("required"),
    line("/securityRequirements/*/schemes", &[Code::A2aSecurityMisnamed], "an object, by the names of schemes"),
    line("/securityRequirements/*/schemes/*", &[Code::A2aSecurityMisnamed], "an object with a list of scopes"),
    line(
        "/skills/*/securityRequirements/*/schemes",
        &[Code::A2aSecurityMisnamed],
        "an object, by the names of schemes",
    ),
    line("/skills/*/securityRequirements/*/schemes/*", &[Code::A2aSecurityMisnamed], "an object with a list of scopes"),
];

/// Members that only these cards have.
fn distinctive(card: &Card) -> Vec<&'static str> {
    let mut shown = present(
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
fn version(card: &Card) -> Option<String> {
    let release = Release::of(card);
    let is_known =
        |claimed: &Value| claimed.as_str().is_some_and(|version| KNOWN_CLAIMS.iter().any(|line| is_of(version, line)));
    let is_shown = release == Release::V1_0 || card.get("protocolVersion").is_none_or(is_known);
    is_shown.then(|| release.name().to_owned())
}

fn check(card: &Card, rules: &Rules<'_>) -> Vec<Reason> {
    let release = Release::of(card);
    let is_of_1_0 = release == Release::V1_0;
    let mut found = Findings::default();
    let read = match is_of_1_0 {
        true => Cow::Owned(Card::reduced(message::without_nulls(card.document()))),
        false => Cow::Borrowed(card),
    };
    if is_of_1_0 {
        snake_case(&read, &mut found);
    }
    shape::objections(&read, release.schema(), LINES, &mut found);
    claims(&read, release, &mut found);
    if is_of_1_0 {
        security::schemes(&read, &mut found);
    }
    security::requirements(&read, is_of_1_0, &mut found);
    modes(&read, &mut found);
    skills(&read, &mut found);
    content::secrets(card, "", &mut found);
    found.weighed(rules.profile)
}

/// Reports members of a 1.0 card whose names are those of the message definition, not of its JSON form. This matters if
/// the member is required, or imposes a requirement on callers.
fn snake_case(card: &Card, found: &mut Findings) {
    for member in AGENT_CARD {
        let name = member.snake_case();
        if name == member.name || card.get(member.name).is_some() || card.get(&name).is_none() {
            continue;
        }
        let (code, place) = match member.presence {
            Presence::Required => (Code::A2aFieldMissing, format!("/{}", member.name)),
            _ if member.name.starts_with("security") => (Code::A2aSecurityMisnamed, format!("/{name}")),
            _ => continue,
        };
        let message = "This is an A2A 1.0 card with names in snake_case; its JSON form has names in camelCase.";
        found.add(Reason::new(code).message(message).expected(member.name).observed(name).at(place));
    }
}

/// Reports members that contradict the card's version.
fn claims(card: &Card, release: Release, found: &mut Findings) {
    let claimed = card.text("/protocolVersion");
    if release == Release::V1_0 {
        let has = |member: &str| card.get(member).is_some_and(|value| !value.is_null());
        for member in ["url", "preferredTransport", "additionalInterfaces"] {
            if has(member) {
                found.add(Reason::new(Code::A2aVersionMixed).observed(member).at(format!("/{member}")));
            }
        }
        if has("security") && !has("securityRequirements") {
            // The sample in the specification's text uses the older name.
            let mut reason = Reason::new(Code::A2aSecurityMisnamed).expected("securityRequirements").at("/security");
            reason.effect = Effect::Warn;
            found.add(reason);
        }
        for (at, interface) in items(card, "supportedInterfaces").enumerate() {
            if let Some(version) = interface.get("protocolVersion").and_then(Value::as_str)
                && mapping::line_of(version) != version
            {
                found.add(
                    Reason::new(Code::A2aProtocolVersionUnknown)
                        .message("An interface of the A2A card states a patch number.")
                        .expected(excerpt(mapping::line_of(version)))
                        .observed(excerpt(version))
                        .at(format!("/supportedInterfaces/{at}/protocolVersion")),
                );
            }
        }
    } else if let Some(version) = claimed
        && !KNOWN_CLAIMS.iter().any(|line| is_of(version, line))
    {
        let expected = "0.2 or 0.3; a card of 1.0 has supportedInterfaces";
        found.add(
            Reason::new(Code::A2aProtocolVersionUnknown)
                .expected(expected)
                .observed(excerpt(version))
                .at("/protocolVersion"),
        );
    }
}

/// Checks that modes are media types. Published cards often contain `text`.
fn modes(card: &Card, found: &mut Findings) {
    let mut judge = |modes: Option<&Value>, place: &str| {
        for (at, mode) in modes.and_then(Value::as_array).into_iter().flatten().enumerate() {
            if let Some(mode) = mode.as_str().filter(|mode| !is_media_type(mode)) {
                let reason = Reason::new(Code::A2aModeNotMediaType).expected("a media type, such as text/plain");
                found.add(reason.observed(excerpt(mode)).at(format!("{place}/{at}")));
            }
        }
    };
    for member in ["defaultInputModes", "defaultOutputModes"] {
        judge(card.get(member), &format!("/{member}"));
    }
    for (at, skill) in items(card, "skills").enumerate() {
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
fn skills(card: &Card, found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (at, skill) in items(card, "skills").enumerate() {
        if let Some(id) = skill.get("id").and_then(Value::as_str)
            && !seen.insert(id)
        {
            found.add(Reason::new(Code::A2aSkillDuplicate).observed(excerpt(id)).at(format!("/skills/{at}/id")));
        }
    }
}

fn items<'c>(card: &'c Card, member: &str) -> impl Iterator<Item = &'c Value> {
    card.get(member).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use clresolve_verdict::profile::{DEFAULT, Profiles};

    use super::*;
    use crate::system::{CardSystem, Detection, detect};

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
            let card = Card::parse(card.as_bytes()).expect("strict JSON");
            assert_eq!(Release::of(&card).name(), expected, "{card:?}");
        }
    }

    #[test]
    fn snake_case_card_is_recognised_and_named_as_such() {
        let card =
            br#"{"supported_interfaces": [], "default_input_modes": [], "defaultOutputModes": [], "icon_url": ""}"#;
        let card = Card::parse(card).expect("strict JSON");
        assert_eq!(detect(&card), Detection::One(CardSystem::A2a));
        let profile = Profiles::builtin().get(DEFAULT).expect("built in");
        let reasons = check(&card, &Rules::of(&profile));
        let named: Vec<_> = reasons.iter().filter(|reason| reason.message.contains("snake_case")).collect();
        let observed: Vec<_> = named.iter().filter_map(|reason| reason.observed.as_deref()).collect();
        assert_eq!(observed, ["supported_interfaces", "default_input_modes"]);
        assert!(named.iter().all(|reason| reason.code == Code::A2aFieldMissing));
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
