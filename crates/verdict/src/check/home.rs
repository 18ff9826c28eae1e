//! The URLs at which the card states that it and its schema are published: CL-72.
//!
//! Missing members are not a finding. A `$id` under a folder that is forbidden for the card's class is reported by
//! [`super::verbs`] only.

use super::{ReasonCollector, verbs};
use crate::card::AgentCard;
use crate::evidence::{HttpsOutcome, RecordUsability, ResolutionEvidence, is_https_url};
use crate::profile::ConformanceProfile;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::records::TextRecordKey;
use clresolve_core::text::excerpt_text;
use clresolve_core::uri;

const ID: &str = "/$id";
const SCHEMA: &str = "/$schema";

/// Checks the card alone: the folder of its `$id` is its class, and its `$schema` is the profile's base schema.
pub fn check_id_folder_and_schema_url(card: &AgentCard, profile: &ConformanceProfile) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    if let (Some(id), Some(class)) = (well_placed_id(card, profile), card.class())
        && profile.class_rules(class).is_some()
        && last_folder(id) != Some(class)
    {
        found.add(card_id_mismatch_reason(ID, &format!("a URL in the folder {class}"), id));
    }
    if let (Some(schema), Some(known)) = (card.text_at(SCHEMA), profile.card_schema_url())
        && !uri::are_equivalent_uris(schema, known)
    {
        found.add(card_id_mismatch_reason(SCHEMA, known, schema));
    }
    found.with_effects(profile)
}

/// Whether the card's `$id` is the URL under which its name publishes it. A forbidden URL is reported elsewhere.
pub fn compare_id_with_card_url(
    evidence: &ResolutionEvidence,
    card: &AgentCard,
    profile: &ConformanceProfile,
) -> Option<Reason> {
    let url = RecordUsability::from_record(&evidence.resolved_records()?.records, TextRecordKey::Agentcard)
        .text()
        .filter(|url| is_https_url(url))?;
    if matches!(evidence.https, HttpsOutcome::Forbidden(_)) {
        return None;
    }
    let id = well_placed_id(card, profile)?;
    (!uri::are_equivalent_uris(id, url)).then(|| profile.assign_effect(card_id_mismatch_reason(ID, url, id)))
}

/// Drops this file's findings on members that the base schema rejects.
pub fn drop_schema_rejected_findings(reasons: &mut Vec<Reason>) {
    let refused: Vec<_> = reasons
        .iter()
        .filter(|reason| reason.code == ReasonCode::CardSchemaInvalid)
        .map(|reason| reason.place.clone())
        .collect();
    reasons.retain(|reason| reason.code != ReasonCode::CardIdMismatch || !refused.contains(&reason.place));
}

fn well_placed_id<'c>(card: &'c AgentCard, profile: &ConformanceProfile) -> Option<&'c str> {
    card.text_at(ID).filter(|_| !verbs::is_card_id_misplaced(card, profile))
}

/// The last folder in the path of a URL.
fn last_folder(url: &str) -> Option<&str> {
    let path = url.split(['?', '#']).next()?;
    let (_, path) = path.split_once("://")?;
    path.rsplit('/').nth(1)
}

fn card_id_mismatch_reason(place: &str, expected: &str, observed: &str) -> Reason {
    Reason::new(ReasonCode::CardIdMismatch)
        .expected(excerpt_text(expected))
        .observed(excerpt_text(observed))
        .at_place(place)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::sample::{good_card, good_commercial_card, judge_document, judge_document_under};

    fn places(document: &Value) -> Vec<String> {
        judge_document(document, check_id_folder_and_schema_url).into_iter().filter_map(|reason| reason.place).collect()
    }

    #[test]
    fn the_folder_is_the_class() {
        const FOLDERS: &str = "https://cards.example/agents/v1.0.0";
        let with = |id: &str| {
            let mut document = good_card();
            document[&ID[1..]] = json!(id);
            places(&document)
        };
        assert_eq!(with(&format!("{FOLDERS}/commons/a.eth.json")), [""; 0]);
        assert_eq!(with(&format!("{FOLDERS}/commons/a.eth.json?x=/commercial/b#/c/d")), [""; 0]);
        for id in [format!("{FOLDERS}/commercial/a.eth.json"), format!("{FOLDERS}/commons"), "urn:x".to_owned()] {
            assert_eq!(with(&id), [ID], "{id}");
        }
        let mut document = good_commercial_card();
        document[&ID[1..]] = json!(format!("{FOLDERS}/commons/a.eth.json"));
        assert_eq!(places(&document), [""; 0], "that is commercial-as-commons");
        document[&ID[1..]] = json!(format!("{FOLDERS}/other/a.eth.json"));
        assert_eq!(places(&document), [ID]);
    }

    #[test]
    fn the_schema_is_that_of_the_release_line() {
        let mut document = good_card();
        assert_eq!(judge_document_under("agent-cards/1.1.0", &document, check_id_folder_and_schema_url).len(), 1);
        document[&SCHEMA[1..]] = json!("https://commandlayer.org/agent-cards/schemas/v1.1.0/agent.card.schema.json");
        assert_eq!(judge_document_under("agent-cards/1.1.0", &document, check_id_folder_and_schema_url), []);
        assert_eq!(places(&document), [SCHEMA]);
        for member in [&ID[1..], &SCHEMA[1..]] {
            document.as_object_mut().expect("a card").remove(member);
        }
        assert_eq!(places(&document), [""; 0]);
    }
}
