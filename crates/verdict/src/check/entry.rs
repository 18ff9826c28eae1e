//! The `x402://` entry: CL-19 to CL-22.
//!
//! The entry is split bytewise, because a URL parser would repair what must be rejected. A wrong shape yields only
//! `entry-malformed`; in the right shape, each wrong segment has its own code.

use super::Findings;
use crate::card::Card;
use crate::profile::{EntryRule, Profile};
use clresolve_core::reason::{Code, Reason};
use clresolve_core::text::excerpt;

const PLACE: &str = "/entry";
const SCHEME: &str = "x402://";

/// All findings on the card's entry. A missing, blank or non-string entry, and a class without a rule, are reported by
/// [`super::card`].
pub fn entry(card: &Card, profile: &Profile) -> Vec<Reason> {
    let mut found = Findings::default();
    if let (Some(entry), Some(rule)) = (card.entry(), profile.entry(card.class())) {
        match rule {
            EntryRule::X402 { routes } => x402(card, entry, routes, &mut found),
            EntryRule::Literal { value } => literal(entry, value, &mut found),
        }
    }
    found.weighed(profile)
}

/// Whether this step reports every text that the base schema rejects at `place`.
pub(super) fn judges(card: &Card, place: &str) -> bool {
    place == PLACE && card.entry().is_some()
}

fn literal(entry: &str, value: &str, found: &mut Findings) {
    if entry != value {
        let message = "The card's entry is not the one that the profile names for its class.";
        let reason = Reason::new(Code::EntryMalformed).message(message);
        found.add(reason.expected(excerpt(value)).observed(excerpt(entry)).at(PLACE));
    }
}

fn x402(card: &Card, entry: &str, routes: &[String], found: &mut Findings) {
    let route = routes.first().map_or("", String::as_str);
    let name = card.ens().unwrap_or("<ens>");
    let verb = card.primary_verb().unwrap_or("<verb>");
    let reason = |code| {
        let expected = format!("{SCHEME}{name}/{verb}/{route}");
        Reason::new(code).expected(excerpt(&expected)).observed(excerpt(entry)).at(PLACE)
    };
    let Some(parts) = cut(entry) else {
        return found.add(reason(Code::EntryMalformed));
    };
    if card.ens().is_some_and(|ens| ens != parts.name) {
        found.add(reason(Code::EntryEnsMismatch));
    }
    if card.primary_verb().is_some_and(|verb| verb != parts.verb) {
        found.add(reason(Code::EntryVerbMismatch));
    }
    if !routes.iter().any(|route| route == parts.route) {
        found.add(reason(Code::EntryVersionNoncompliant).expected(routes.join(" or ")));
    }
}

struct Parts<'e> {
    name: &'e str,
    verb: &'e str,
    route: &'e str,
}

/// Name, verb and route, if the entry has the scheme and exactly three non-empty segments without white space, control
/// characters, or the delimiters of a port, user, query, fragment or escape.
fn cut(entry: &str) -> Option<Parts<'_>> {
    let rest = entry.strip_prefix(SCHEME)?;
    if rest.chars().any(|c| c.is_whitespace() || c.is_control() || ":@?#%\\".contains(c)) {
        return None;
    }
    let mut segments = rest.split('/');
    let parts = Parts { name: segments.next()?, verb: segments.next()?, route: segments.next()? };
    let whole = ![parts.name, parts.verb, parts.route].contains(&"");
    (whole && segments.next().is_none()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample::{codes, good, judged, judged_under};

    fn with(entry: &str) -> Vec<&'static str> {
        let mut document = good();
        document["entry"] = json!(entry);
        let own = codes(&judged(&document, super::entry));
        let as_document = codes(&judged(&document, super::super::card::card));
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
        let mut document = good();
        document["ens"] = json!("");
        document["implements"] = json!([]);
        assert_eq!(judged(&document, entry), []);
        document["entry"] = json!(5);
        assert_eq!(judged(&document, entry), []);
    }

    #[test]
    fn a_literal_entry_is_that_url_and_no_other() {
        const NEXT: &str = "agent-cards/1.1.0";
        let mut document = good();
        for (entry, expected) in [
            ("https://runtime.commandlayer.org/execute", &[][..]),
            ("https://runtime.commandlayer.org/execute/", &["entry-malformed"]),
            ("https://runtime.commandlayer.org/Execute", &["entry-malformed"]),
            ("x402://summarizeagent.eth/summarize/v1.1.0", &["entry-malformed"]),
        ] {
            document["entry"] = json!(entry);
            assert_eq!(codes(&judged_under(NEXT, &document, super::entry)), expected, "{entry}");
        }
        document["class"] = json!("commercial");
        for (route, expected) in [("v1.1.0", &[][..]), ("v1", &["entry-version-noncompliant"])] {
            document["entry"] = json!(format!("x402://summarizeagent.eth/summarize/{route}"));
            assert_eq!(codes(&judged_under(NEXT, &document, super::entry)), expected, "{route}");
        }
        document["class"] = json!("free");
        assert_eq!(judged_under(NEXT, &document, super::entry), []);
    }

    #[test]
    fn the_released_route_is_a_matter_of_the_profile() {
        let mut document = good();
        document["entry"] = json!("x402://summarizeagent.eth/summarize/v1.0.0");
        assert_eq!(codes(&judged(&document, entry)), ["entry-version-noncompliant"]);
        assert_eq!(judged_under("agent-cards/1.0.0+released", &document, entry), []);
        document["entry"] = json!("x402://summarizeagent.eth/summarize/v1.0");
        assert_eq!(
            codes(&judged_under("agent-cards/1.0.0+released", &document, entry)),
            ["entry-version-noncompliant"]
        );
    }
}
