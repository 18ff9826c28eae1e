//! The ledger's figures in a card: writes them, and compares them with the card's claims (AE-23, AE-30).

use serde_json::{Map, Value};

use super::{PacrAgentMetrics, PacrLedgerMetrics};
use clresolve_core::json::{JsonError, locate};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::ReasonCollector;

/// Maximum relative difference between a card's figure and the ledger's. Cards are written with six digits.
const TOLERANCE: f64 = 1e-6;

/// The object that contains the figures.
const HOLDER: &str = "/metadata";

/// Why figures cannot be written into a card.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardMetricsInsertionError {
    /// The text is not a card, or becomes too long with the figures.
    #[error(transparent)]
    NotCard(#[from] JsonError),
    /// The card's metadata is not an object.
    #[error("its metadata is not an object; correct it first")]
    NoObject,
}

/// Writes the figures into the `metadata` of a card. Every other byte is preserved.
///
/// # Errors
/// The text is not a card before or after the change, or its metadata is not an object.
pub fn insert_metrics(text: &str, figures: &PacrAgentMetrics) -> Result<String, CardMetricsInsertionError> {
    let card = AgentCard::parse(text.as_bytes())?;
    let held = match (card.value_at(HOLDER), locate::find_value_span(text, HOLDER)) {
        (Some(Value::Object(_)), Some(place)) => text[place.value].to_owned(),
        (None, _) => "{}".to_owned(),
        _ => return Err(CardMetricsInsertionError::NoObject),
    };
    let figures = figures.to_json_members();
    let metadata =
        figures.iter().fold(held, |held, (name, value)| set_member_text(&held, name, &value.to_string(), "\n    "));
    let metadata = if card.value_at(HOLDER).is_some() { metadata } else { metadata.replacen('}', "\n  }", 1) };
    let text = set_member_text(text, "metadata", &metadata, "\n  ");
    AgentCard::parse(text.as_bytes())?;
    Ok(text)
}

/// Sets a member in the text of an object. An existing value is replaced, otherwise the member is appended. `indent` is
/// used for the new member if there is no other member to copy the indentation from.
fn set_member_text(object: &str, name: &str, value: &str, indent: &str) -> String {
    let mut text = object.to_owned();
    if let Some(place) = locate::find_value_span(object, &format!("/{name}")) {
        text.replace_range(place.value, value);
        return text;
    }
    let open = object.find('{').map_or(0, |at| at + 1);
    let members = locate::member_ranges(object).unwrap_or_default();
    let (before, end) = match (members.first(), members.last()) {
        (Some(first), Some(last)) => (format!(",{}", &object[open..first.start]), last.end),
        _ => (indent.to_owned(), open),
    };
    text.insert_str(end, &format!("{before}\"{name}\": {value}"));
    text
}

/// AE-30: reports the card's figures that the ledger refutes. A reputation is neither computed nor compared.
pub(crate) fn check_claims_against_ledger(card: &AgentCard, ledger: &PacrLedgerMetrics, found: &mut ReasonCollector) {
    let agent = card.text_at("/agent_id").unwrap_or_default();
    let known = ledger.agent_metrics(agent).map(PacrAgentMetrics::to_json_members);
    for (name, claimed) in card_metric_claims(card) {
        let figure = known.as_ref().and_then(|known| known.get(name));
        if figure.is_some_and(|figure| figures_agree(claimed, figure)) {
            continue;
        }
        let expected = figure.map_or_else(|| "no record of the agent in the ledger".to_owned(), Value::to_string);
        let reason =
            Reason::new(ReasonCode::AePacrDiffers).expected(expected).observed(excerpt_text(&claimed.to_string()));
        found.add(reason.at_place(format!("{HOLDER}/{name}")));
    }
}

/// AE-30: reports figures that no ledger can produce.
pub(crate) fn check_claim_types(card: &AgentCard, found: &mut ReasonCollector) {
    for (name, claimed) in card_metric_claims(card) {
        let (is_figure, expected) = match name {
            "pacr:interaction_count" => {
                let is_count = |figure: f64| figure >= 0.0 && figure.fract() == 0.0;
                (claimed.as_f64().is_some_and(is_count), "an integer of 0 or more")
            }
            "pacr:influence_rank" | "pacr:critical_score" => {
                (claimed.as_f64().is_some_and(|figure| (0.0..=1.0).contains(&figure)), "a number from 0 to 1")
            }
            _ => (claimed.as_f64().is_some_and(|figure| figure >= 0.0), "a number of 0 or more"),
        };
        if !is_figure {
            let reason =
                Reason::new(ReasonCode::AePacrType).expected(expected).observed(excerpt_text(&claimed.to_string()));
            found.add(reason.at_place(format!("{HOLDER}/{name}")));
        }
    }
}

/// The card's members whose figures a ledger can produce.
fn card_metric_claims(card: &AgentCard) -> impl Iterator<Item = (&str, &Value)> {
    let members = card.value_at(HOLDER).and_then(Value::as_object).into_iter().flatten();
    members.map(|(name, value)| (name.as_str(), value)).filter(|(name, _)| is_ledger_metric(name))
}

/// Whether a ledger produces the figure of this member.
pub(crate) fn is_ledger_metric(name: &str) -> bool {
    PacrAgentMetrics::default().to_json_members().contains_key(name)
}

fn figures_agree(claimed: &Value, figure: &Value) -> bool {
    let (Some(claimed), Some(figure)) = (claimed.as_f64(), figure.as_f64()) else { return false };
    (claimed - figure).abs() <= TOLERANCE * figure.abs()
}

impl PacrLedgerMetrics {
    /// The figures of an agent, if any of the used records involves it.
    #[must_use]
    pub fn agent_metrics(&self, agent: &str) -> Option<&PacrAgentMetrics> {
        self.agents.iter().find(|known| known.agent_id.as_str() == agent).map(|known| &known.metadata)
    }
}

impl PacrAgentMetrics {
    /// The figures, keyed by member name.
    #[must_use]
    pub fn to_json_members(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(members)) => members,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: PacrAgentMetrics = PacrAgentMetrics {
        interaction_count: 2,
        avg_latency_ms: 1.5,
        avg_cost_joules: 1e-20,
        influence_rank: 0.5,
        critical_score: 0.0,
    };

    #[test]
    fn figures_are_written_and_nothing_else_is_changed() {
        let text = "{\n  \"agent_id\": \"A\",\n  \"metadata\": {\n    \"team\": \"a\",\n    \"pacr:interaction_count\": 1\n  },\n  \"x\": 1e2\n}\n";
        let written = insert_metrics(text, &FIGURES).expect("a card");
        let expected = "{\n  \"agent_id\": \"A\",\n  \"metadata\": {\n    \"team\": \"a\",\n    \"pacr:interaction_count\": 2,\n    \"pacr:avg_cost_joules\": 1e-20,\n    \"pacr:avg_latency_ms\": 1.5,\n    \"pacr:critical_score\": 0.0,\n    \"pacr:influence_rank\": 0.5\n  },\n  \"x\": 1e2\n}\n";
        assert_eq!(written, expected);
        assert_eq!(insert_metrics(&written, &FIGURES).expect("a card"), written);
    }

    #[test]
    fn a_card_without_metadata_gets_it() {
        for (text, start) in [
            ("{\"agent_id\": \"A\"}", "{\"agent_id\": \"A\",\"metadata\": {\n"),
            ("{}", "{\n  \"metadata\": {\n"),
            ("{\n \"a\": 1\n}", "{\n \"a\": 1,\n \"metadata\": {\n"),
        ] {
            let written = insert_metrics(text, &FIGURES).expect("a card");
            assert!(written.starts_with(start), "{written}");
            let card = AgentCard::parse(written.as_bytes()).expect("a card");
            assert_eq!(card.value_at(HOLDER), Some(&Value::Object(FIGURES.to_json_members())));
        }
        assert!(matches!(insert_metrics("{\"metadata\": []}", &FIGURES), Err(CardMetricsInsertionError::NoObject)));
        assert!(matches!(insert_metrics("[]", &FIGURES), Err(CardMetricsInsertionError::NotCard(_))));
    }
}
