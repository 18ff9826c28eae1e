//! The A2A project's agent card, 0.2 to 1.0.

mod mapping;

use super::{Rules, System, mends_nothing, present};
use crate::card::Card;
use crate::reason::Reason;

pub(super) static SYSTEM: System = System {
    title: "A2A agent card",
    tells,
    refines: &[],
    version,
    check,
    order: ORDER,
    mend: mends_nothing,
    changed_at: None,
    mapping: mapping::mapping,
    written: &mapping::CURRENT,
};

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

fn tells(card: &Card) -> Vec<&'static str> {
    present(card, &["supportedInterfaces", "defaultInputModes", "defaultOutputModes", "protocolVersion"])
}

fn version(_card: &Card) -> Option<String> {
    None
}

fn check(_card: &Card, _rules: &Rules<'_>) -> Vec<Reason> {
    Vec::new()
}
