//! The `x402://` entry: CL-19 to CL-22.
//!
//! The entry is split bytewise, because a URL parser would repair what must be rejected. A wrong shape yields only
//! `entry-malformed`; in the right shape, each wrong segment has its own code.

use super::ReasonCollector;
use crate::card::AgentCard;
use crate::profile::{ConformanceProfile, EntryRule};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;

const PLACE: &str = "/entry";
const SCHEME: &str = "x402://";

/// All findings on the card's entry. A missing, blank or non-string entry, and a class without a rule, are reported by
/// [`super::card::check_card`].
pub fn check_entry(card: &AgentCard, profile: &ConformanceProfile) -> Vec<Reason> {
    let mut found = ReasonCollector::default();
    if let (Some(entry), Some(rule)) = (card.entry(), profile.entry_rule(card.class())) {
        match rule {
            EntryRule::X402 { routes } => check_x402(card, entry, routes, &mut found),
            EntryRule::Literal { value } => check_literal(entry, value, &mut found),
        }
    }
    found.with_effects(profile)
}

/// Whether this step reports every text that the base schema rejects at `place`.
pub(super) fn reports_schema_rejection_at(card: &AgentCard, place: &str) -> bool {
    place == PLACE && card.entry().is_some()
}

fn check_literal(entry: &str, value: &str, found: &mut ReasonCollector) {
    if entry != value {
        let message = "The card's entry is not the one that the profile names for its class.";
        let reason = Reason::new(ReasonCode::EntryMalformed).message(message);
        found.add(reason.expected(excerpt_text(value)).observed(excerpt_text(entry)).at_place(PLACE));
    }
}

fn check_x402(card: &AgentCard, entry: &str, routes: &[String], found: &mut ReasonCollector) {
    let route = routes.first().map_or("", String::as_str);
    let name = card.ens().unwrap_or("<ens>");
    let verb = card.primary_verb().unwrap_or("<verb>");
    let reason = |code| {
        let expected = format!("{SCHEME}{name}/{verb}/{route}");
        Reason::new(code).expected(excerpt_text(&expected)).observed(excerpt_text(entry)).at_place(PLACE)
    };
    let Some([entry_name, entry_verb, entry_route]) = split_entry(entry) else {
        return found.add(reason(ReasonCode::EntryMalformed));
    };
    if card.ens().is_some_and(|ens| ens != entry_name) {
        found.add(reason(ReasonCode::EntryEnsMismatch));
    }
    if card.primary_verb().is_some_and(|verb| verb != entry_verb) {
        found.add(reason(ReasonCode::EntryVerbMismatch));
    }
    if !routes.iter().any(|route| route == entry_route) {
        found.add(reason(ReasonCode::EntryVersionNoncompliant).expected(routes.join(" or ")));
    }
}

/// Name, verb and route, if the entry has the scheme and exactly three non-empty segments without white space, control
/// characters, or the delimiters of a port, user, query, fragment or escape.
fn split_entry(entry: &str) -> Option<[&str; 3]> {
    let rest = entry.strip_prefix(SCHEME)?;
    if rest.chars().any(|c| c.is_whitespace() || c.is_control() || ":@?#%\\".contains(c)) {
        return None;
    }
    let mut segments = rest.split('/');
    let parts = [segments.next()?, segments.next()?, segments.next()?];
    (!parts.contains(&"") && segments.next().is_none()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::{distinct_codes, good_card, judge_document, judge_document_under};

    fn with(entry: &str) -> Vec<&'static str> {
        let mut document = good_card();
        document["entry"] = json!(entry);
        let own = distinct_codes(&judge_document(&document, super::check_entry));
        let as_document = distinct_codes(&judge_document(&document, super::super::card::check_card));
        assert!(as_document.is_empty(), "{entry:?} must have the codes of this step alone, not {as_document:?}");
        own
    }

    #[test]
    fn the_canonical_form_passes() {
        assert_eq!(with("x402://summarizeagent.eth/summarize/v1"), [""; 0]);
    }

    #[test]
    fn a_wrong_segment_gives_its_own_code_only() {
        assert_eq!(with("x402://other.eth/summarize/v1"), ["entry-ens-mismatch"]);
        assert_eq!(with("x402://SummarizeAgent.eth/summarize/v1"), ["entry-ens-mismatch"]);
        assert_eq!(with("x402://summarizeagent.eth/clean/v1"), ["entry-verb-mismatch"]);
        for route in ["v1.0.0", "v1.1.0", "v2", "V1", "v01", "1", "latest"] {
            assert_eq!(with(&format!("x402://summarizeagent.eth/summarize/{route}")), ["entry-version-noncompliant"]);
        }
        let all = ["entry-ens-mismatch", "entry-verb-mismatch", "entry-version-noncompliant"];
        assert_eq!(with("x402://other.eth/clean/v2"), all);
    }

    #[test]
    fn a_wrong_shape_is_malformed_and_nothing_else() {
        for entry in [
            "x402://summarizeagent.eth/summarize/v1/",
            "x402://summarizeagent.eth/summarize/v1?x=1",
            "x402://summarizeagent.eth/summarize/v1#x",
            "x402://summarizeagent.eth:443/summarize/v1",
            "x402://user@summarizeagent.eth/summarize/v1",
            "x402://summarizeagent.eth//v1",
            "x402:///summarize/v1",
            "x402://summarizeagent.eth/summarize",
            "x402://summarizeagent.eth/summarize/v1/extra",
            "x402://summarizeagent.eth/summarize/v1\n",
            " x402://summarizeagent.eth/summarize/v1",
            "x402://summarizeagent.eth/summ%61rize/v1",
            "X402://summarizeagent.eth/summarize/v1",
            "x402:/summarizeagent.eth/summarize/v1",
            "https://summarizeagent.eth/summarize/v1",
            "summarizeagent.eth",
            "\\",
        ] {
            assert_eq!(with(entry), ["entry-malformed"], "{entry:?}");
        }
    }

    #[test]
    fn entry_without_a_reference_is_reported_by_another_step() {
        let mut document = good_card();
        document["ens"] = json!("");
        document["implements"] = json!([]);
        assert_eq!(judge_document(&document, check_entry), []);
        document["entry"] = json!(5);
        assert_eq!(judge_document(&document, check_entry), []);
    }

    #[test]
    fn a_literal_entry_is_that_url_and_no_other() {
        const NEXT: &str = "agent-cards/1.1.0";
        let mut document = good_card();
        for (entry, expected) in [
            ("https://runtime.commandlayer.org/execute", &[][..]),
            ("https://runtime.commandlayer.org/execute/", &["entry-malformed"]),
            ("https://runtime.commandlayer.org/Execute", &["entry-malformed"]),
            ("x402://summarizeagent.eth/summarize/v1.1.0", &["entry-malformed"]),
        ] {
            document["entry"] = json!(entry);
            assert_eq!(distinct_codes(&judge_document_under(NEXT, &document, super::check_entry)), expected, "{entry}");
        }
        document["class"] = json!("commercial");
        for (route, expected) in [("v1.1.0", &[][..]), ("v1", &["entry-version-noncompliant"])] {
            document["entry"] = json!(format!("x402://summarizeagent.eth/summarize/{route}"));
            assert_eq!(distinct_codes(&judge_document_under(NEXT, &document, super::check_entry)), expected, "{route}");
        }
        document["class"] = json!("free");
        assert_eq!(judge_document_under(NEXT, &document, super::check_entry), []);
    }

    #[test]
    fn the_released_route_is_a_matter_of_the_profile() {
        let mut document = good_card();
        document["entry"] = json!("x402://summarizeagent.eth/summarize/v1.0.0");
        assert_eq!(distinct_codes(&judge_document(&document, check_entry)), ["entry-version-noncompliant"]);
        assert_eq!(judge_document_under("agent-cards/1.0.0+released", &document, check_entry), []);
        document["entry"] = json!("x402://summarizeagent.eth/summarize/v1.0");
        assert_eq!(
            distinct_codes(&judge_document_under("agent-cards/1.0.0+released", &document, check_entry)),
            ["entry-version-noncompliant"]
        );
    }
}
