//! Aevum AgentCard 1.0.

use super::{Rules, System, Whereabouts, mends_nothing, no_descriptor, present};
use crate::card::Card;
use crate::reason::{Code, Reason};

pub(super) static SYSTEM: System = System {
    title: "Aevum AgentCard",
    tells,
    refines: &[],
    version,
    check,
    order: ORDER,
    mend: mends_nothing,
    changed_at: None,
    whereabouts: Whereabouts {
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

fn tells(card: &Card) -> Vec<&'static str> {
    present(card, &["agent_id"])
}

fn version(_card: &Card) -> Option<String> {
    Some("1.0".to_owned())
}

fn check(_card: &Card, _rules: &Rules<'_>) -> Vec<Reason> {
    Vec::new()
}
