//! The MA²D card ("A2A 1.0" in its own words).

use super::{Rules, System, Whereabouts, mends_nothing, no_descriptor, present};
use crate::card::Card;
use crate::reason::{Code, Reason};

pub(super) static SYSTEM: System = System {
    title: "MA²D agent card",
    tells,
    refines: &[],
    version,
    check,
    order: ORDER,
    mend: mends_nothing,
    changed_at: Some("/metadata/updated_at"),
    whereabouts: Whereabouts {
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

fn tells(card: &Card) -> Vec<&'static str> {
    present(card, &["invocation"])
}

fn version(_card: &Card) -> Option<String> {
    Some("1.0".to_owned())
}

fn check(_card: &Card, _rules: &Rules<'_>) -> Vec<Reason> {
    Vec::new()
}
