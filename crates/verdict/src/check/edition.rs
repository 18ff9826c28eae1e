//! Compares a card with an earlier card of the same name: CL-69.

use crate::evidence::edition::CardSuccessionFacts;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::excerpt_text;

/// All violations of the rules by which the card `now` may follow the card `before`. A card with the same bytes is not
/// a later card. Unusable values are reported under other codes.
pub fn check_succession(before: &CardSuccessionFacts, now: &CardSuccessionFacts) -> Vec<Reason> {
    if before.card == now.card {
        return Vec::new();
    }
    let text_of = |value: &Option<String>| value.clone().unwrap_or_default();
    let mut reasons = Vec::new();
    if !now.is_later_than(before) {
        let expected = format!("later than {}", text_of(&before.updated_at));
        let reason =
            Reason::new(ReasonCode::UpdatedAtNotAdvanced).expected(expected).observed(text_of(&now.updated_at));
        reasons.push(reason.at_place("/updated_at"));
    }
    if !now.raises_version_of(before) {
        let observed = format!("{}, although {}", text_of(&now.version), before.bindings_broken_by(now).join(", "));
        let reason =
            Reason::new(ReasonCode::VersionNotRaised).expected(format!("higher than {}", text_of(&before.version)));
        reasons.push(reason.observed(excerpt_text(&observed)).at_place("/version"));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::card::AgentCard;
    use crate::sample::{distinct_codes, good_card};
    use clresolve_core::digest::Digest;

    fn edition(document: &Value) -> CardSuccessionFacts {
        let bytes = document.to_string();
        CardSuccessionFacts::from_card(
            &AgentCard::parse(bytes.as_bytes()).expect("a card"),
            Digest::compute(bytes.as_bytes()),
        )
    }

    /// The codes for a successor of the valid card with these members.
    fn after(members: &[(&str, Value)]) -> Vec<&'static str> {
        let mut next = good_card();
        for (member, value) in members {
            next[*member] = value.clone();
        }
        distinct_codes(&check_succession(&edition(&good_card()), &edition(&next)))
    }

    fn later() -> (&'static str, Value) {
        ("updated_at", json!("2025-11-22T00:00:00.000000001Z"))
    }

    #[test]
    fn another_card_has_a_later_time() {
        let other = ("description", json!("Other words."));
        assert_eq!(after(&[]), [""; 0]);
        assert_eq!(after(std::slice::from_ref(&other)), ["updated-at-not-advanced"]);
        assert_eq!(
            after(&[other.clone(), ("updated_at", json!("2025-11-22T01:00:00+01:00"))]),
            ["updated-at-not-advanced"]
        );
        assert_eq!(after(&[other.clone(), ("updated_at", json!("2025-11-21T00:00:00Z"))]), ["updated-at-not-advanced"]);
        assert_eq!(after(&[other.clone(), later()]), [""; 0]);
        assert_eq!(after(&[other, ("updated_at", json!("yesterday"))]), [""; 0], "that has a code of its own");
    }

    #[test]
    fn what_binds_callers_raises_the_version() {
        let raised = ("version", json!("1.0.1"));
        for change in [
            ("owner", json!("other.eth")),
            ("entry", json!("x402://summarizeagent.eth/summarize/v2")),
            ("schemas", json!({"request": "a", "receipt": "b"})),
            ("implements", json!(["clean"])),
        ] {
            assert_eq!(after(&[change.clone(), later()]), ["version-not-raised"], "{change:?}");
            let lower = ("version", json!("0.9.0"));
            assert_eq!(after(&[change.clone(), later(), lower]), ["version-not-raised"], "{change:?}");
            let build = ("version", json!("1.0.0+2"));
            assert_eq!(after(&[change.clone(), later(), build]), ["version-not-raised"], "{change:?}");
            assert_eq!(after(&[change.clone(), later(), raised.clone()]), [""; 0], "{change:?}");
            assert_eq!(after(&[change]), ["updated-at-not-advanced", "version-not-raised"]);
        }
        let added = ("implements", json!(["summarize", "clean"]));
        assert_eq!(after(&[added, later()]), [""; 0], "a further verb breaks nobody");
    }

    #[test]
    fn a_verb_that_is_listed_often_hides_none_behind_it() {
        let mut before = good_card();
        before["implements"] = std::iter::repeat_n("summarize", 1000).chain(["clean"]).collect();
        let mut next = before.clone();
        next["implements"] = json!(["summarize"]);
        next["updated_at"] = later().1;
        assert_eq!(distinct_codes(&check_succession(&edition(&before), &edition(&next))), ["version-not-raised"]);
    }

    #[test]
    fn an_edition_of_any_card_is_small() {
        let mut document = good_card();
        document["implements"] = (0..20_000).map(|number| json!(format!("{number}{}", "x".repeat(300)))).collect();
        document["version"] = json!(format!("1.0.0-{}", "a".repeat(10_000)));
        document["updated_at"] = json!(format!("2025-11-22T00:00:00.{}Z", "1".repeat(10_000)));
        let bytes = document.to_string();
        let card = AgentCard::parse(bytes.as_bytes());
        assert!(card.is_err(), "too large a card");
        document["implements"] = (0..800).map(|number| json!(format!("{number}{}", "x".repeat(250)))).collect();
        let kept = serde_json::to_vec(&edition(&document)).expect("JSON");
        assert!(kept.len() < 24 * 1024, "{} bytes", kept.len());
    }
}
