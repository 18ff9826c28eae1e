//! Orloj's agent card: computed from AgentSystem resources, a kind of A2A card.

mod mapping;

use url::Url;

use super::{Flavour, Rules, System, mends_nothing};
use crate::card::Card;
use crate::reason::Reason;

pub(super) static SYSTEM: System = System {
    title: "Orloj agent card",
    tells,
    refines: &[Flavour::A2a],
    version,
    check,
    order: ORDER,
    mend: mends_nothing,
    changed_at: None,
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
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

/// The endpoint's path has a form of its own (OR-3).
fn tells(card: &Card) -> Vec<&'static str> {
    let url = card.text("/url").and_then(|url| Url::parse(url).ok());
    let path = url.as_ref().map_or("", Url::path);
    let system = path.split_once("/v1/agent-systems/").and_then(|(_, rest)| rest.strip_suffix("/a2a"));
    if system.is_some_and(|name| !name.is_empty() && !name.contains('/')) { vec!["url"] } else { Vec::new() }
}

fn version(card: &Card) -> Option<String> {
    card.text("/protocolVersion").map(crate::text::excerpt)
}

fn check(_card: &Card, _rules: &Rules<'_>) -> Vec<Reason> {
    Vec::new()
}
