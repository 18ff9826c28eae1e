//! The lists of a card.

use serde_json::Value;

use clresolve_verdict::card::AgentCard;

/// Maximum number of skills or changes listed in one finding.
pub(super) const MAX_LISTED: usize = 8;

pub(super) fn items<'c>(card: &'c AgentCard, member: &str) -> impl Iterator<Item = &'c Value> {
    card.get(member).and_then(Value::as_array).into_iter().flatten()
}
