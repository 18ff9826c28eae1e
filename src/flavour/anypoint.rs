//! The MA²D card ("A2A 1.0" in its own words).

mod mapping;

use super::{Rules, System, mends_nothing, present};
use crate::card::Card;
use crate::reason::Reason;

pub(super) static SYSTEM: System = System {
    title: "MA²D agent card",
    tells,
    refines: &[],
    version,
    check,
    order: ORDER,
    mend: mends_nothing,
    changed_at: Some("/metadata/updated_at"),
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
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
