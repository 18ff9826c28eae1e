//! Aevum AgentCard 1.0.

mod mapping;

use super::{Rules, System, mends_nothing, present};
use crate::card::Card;
use crate::reason::Reason;

pub(super) static SYSTEM: System = System {
    title: "Aevum AgentCard",
    tells,
    refines: &[],
    version,
    check,
    order: ORDER,
    mend: mends_nothing,
    changed_at: None,
    mapping: |_| &mapping::MAPPING,
    written: &mapping::MAPPING,
};

const ORDER: &[&str] = &["agent_id", "name", "version", "capabilities", "endpoint", "pricing", "metadata"];

fn tells(card: &Card) -> Vec<&'static str> {
    present(card, &["agent_id"])
}

fn version(_card: &Card) -> Option<String> {
    Some("1.0".to_owned())
}

fn check(_card: &Card, _rules: &Rules<'_>) -> Vec<Reason> {
    Vec::new()
}
