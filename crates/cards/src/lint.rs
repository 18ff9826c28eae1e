//! Judges a card before it is published, by every rule that needs no name, no record and no network.
//!
//! ```
//! use clresolve_cards::system::{CardSystem, Rules};
//! use clresolve_cards::lint;
//! use clresolve_verdict::profile::{DEFAULT, Profiles};
//!
//! let profile = Profiles::builtin().get(DEFAULT).unwrap();
//! let report = lint::lint(br#"{"ens": "a.eth"}"#, None, &Rules::of(&profile));
//! assert_eq!((report.system, report.valid), (Some(CardSystem::CommandLayer), false));
//! assert_eq!((report.findings[0].line, report.findings[0].column), (Some(1), Some(1)));
//! ```

mod fix;
mod sarif;

pub use clresolve_core::finding::Finding;
pub use fix::{Fixed, fix, ordered};
pub use sarif::sarif;
use serde::Serialize;

use crate::system;
use crate::system::{CardSystem, Detection, Rules};
use clresolve_core::digest::Digest;
use clresolve_core::finding;
use clresolve_core::json::{JsonError, Limits};
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_verdict::card::Card;
use clresolve_verdict::check::edition;
use clresolve_verdict::evidence::edition::Edition;
use clresolve_verdict::profile::{Profile, Profiles};

/// Number of bytes of a document that [`lint`] needs: one more than a card may have. A caller can stop reading there
/// and still obtain the right report.
pub const MAX_BYTES: usize = Limits::CARD.bytes + 1;

/// The findings for one document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The card system by whose rules the document was judged. `None` if its members indicate no system or several.
    #[serde(rename = "flavour")]
    pub system: Option<CardSystem>,
    /// The version of that system's format, by the document's members or by its own claim.
    pub version: Option<String>,
    /// The profile by which a CommandLayer card was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether no finding has the effect `fail`.
    pub valid: bool,
    /// All findings, in text order.
    pub findings: Vec<Finding>,
}

/// Judges the bytes as a card of `named`, or of the system that their shape indicates.
pub fn lint(bytes: &[u8], named: Option<CardSystem>, rules: &Rules<'_>) -> Report {
    report(&Card::parse(bytes), bytes, named, rules)
}

/// The report on a card that was parsed from `bytes`.
pub(crate) fn report(
    card: &Result<Card, JsonError>,
    bytes: &[u8],
    named: Option<CardSystem>,
    rules: &Rules<'_>,
) -> Report {
    let text = finding::text_of(bytes);
    let (system, mut findings) = match card {
        Err(error) => (named, vec![refused(error, text, rules.profile)]),
        Ok(card) => match named.map_or_else(|| system::detect(card), Detection::One) {
            Detection::One(system) => {
                let reasons = found(system, card, bytes, rules);
                (Some(system), finding::placed(reasons, text))
            }
            other => (None, finding::placed(vec![unrecognised(&other)], text)),
        },
    };
    finding::sort(&mut findings, text);
    Report {
        system,
        version: system.zip(card.as_ref().ok()).and_then(|(system, card)| system.version(card)),
        profile: system.filter(|system| *system == CardSystem::CommandLayer).map(|_| rules.profile.id().to_owned()),
        valid: findings.iter().all(|finding| finding.effect != Effect::Fail),
        findings,
    }
}

/// A report, and the other profiles under which the card is valid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CardJudgement {
    /// The report.
    #[serde(flatten)]
    pub report: Report,
    /// Other profiles under which an invalid CommandLayer card is valid. Empty for other cards.
    pub near_misses: Vec<String>,
}

/// Like [`lint()`], and also lists the profiles among `profiles` under which the card would be valid.
pub fn judge(bytes: &[u8], system: Option<CardSystem>, rules: &Rules<'_>, profiles: &Profiles) -> CardJudgement {
    let card = Card::parse(bytes);
    let report = report(&card, bytes, system, rules);
    let near_misses = match report.system {
        Some(CardSystem::CommandLayer) if !report.valid => near_misses(&card, bytes, rules, profiles),
        _ => Vec::new(),
    };
    CardJudgement { report, near_misses }
}

/// The other profiles under which the card, parsed from `bytes`, is a valid CommandLayer card.
fn near_misses(card: &Result<Card, JsonError>, bytes: &[u8], rules: &Rules<'_>, profiles: &Profiles) -> Vec<String> {
    let others = profiles.iter().filter(|other| other.id() != rules.profile.id());
    let valid = |other: &Profile| {
        let reasons = match card {
            Ok(card) => found(CardSystem::CommandLayer, card, bytes, &Rules { profile: other, ..*rules }),
            Err(error) => vec![other.weigh(error.reason())],
        };
        reasons.iter().all(|reason| reason.effect != Effect::Fail)
    };
    others.filter(|other| valid(other)).map(|other| other.id().to_owned()).collect()
}

/// All violations of the rules of a system in a card.
fn found(system: CardSystem, card: &Card, bytes: &[u8], rules: &Rules<'_>) -> Vec<Reason> {
    let mut reasons = system.check(card, rules);
    if system == CardSystem::CommandLayer {
        reasons.extend(since_previous(card, bytes, rules));
    }
    reasons
}

/// CL-69: compares the card with the earlier card of the same name. Before publication, a difference is a defect.
fn since_previous(card: &Card, bytes: &[u8], rules: &Rules<'_>) -> Vec<Reason> {
    let Some(previous) = rules.previous.filter(|previous| previous.get("ens") == card.get("ens")) else {
        return Vec::new();
    };
    let form = |card: &Card| Digest::of(card.document().to_string().as_bytes());
    let (before, now) = match rules.previous_bytes {
        Some(earlier) => (Digest::of(earlier), Digest::of(bytes)),
        None => (form(previous), form(card)),
    };
    let reasons = edition::since(&Edition::of(previous, before), &Edition::of(card, now));
    reasons.into_iter().map(|reason| Reason { effect: Effect::Fail, ..reason }).collect()
}

/// The finding for a document whose shape does not indicate a single system.
fn unrecognised(detection: &Detection) -> Reason {
    match detection {
        Detection::Several(systems) => {
            let names: Vec<&str> = systems.iter().map(|system| system.slug()).collect();
            Reason::new(Code::FlavourAmbiguous).observed(names.join(", "))
        }
        _ => Reason::new(Code::FlavourUnknown),
    }
    .at("")
}

/// The finding for a text that is not a card.
fn refused(error: &JsonError, text: &str, profile: &Profile) -> Finding {
    let reason = profile.weigh(error.reason());
    match error {
        JsonError::TooLarge { limit, .. } => {
            Finding::refused(reason.observed(format!("more than {limit} bytes")), error, text)
        }
        _ => Finding::refused(reason, error, text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use clresolve_verdict::profile::DEFAULT;
    use clresolve_verdict::sample::good;

    fn judged(bytes: &[u8]) -> Report {
        lint(bytes, Some(CardSystem::CommandLayer), &Rules::of(&Profiles::builtin().get(DEFAULT).expect("built in")))
    }

    fn report(text: &str) -> Report {
        judged(text.as_bytes())
    }

    /// Code, line and column of each finding.
    fn found(text: &str) -> Vec<(&'static str, usize, usize)> {
        let place = |f: &Finding| (f.code.slug(), f.line.unwrap_or(0), f.column.unwrap_or(0));
        report(text).findings.iter().map(place).collect()
    }

    #[test]
    fn a_good_card_is_valid() {
        let report = report(&format!("{:#}", good()));
        assert_eq!((report.valid, report.findings), (true, Vec::new()));
        assert_eq!(report.version.as_deref(), Some("1.0.0"));
    }

    #[test]
    fn findings_stand_where_the_text_has_them() {
        let text = format!("{:#}", good());
        let line = |needle: &str| 1 + text.lines().position(|line| line.contains(needle)).expect("there");
        let with = |from: &str, to: &str| found(&text.replacen(from, to, 1));
        assert_eq!(with("eth/summarize/v1", "eth/summarize/v2"), [("entry-version-noncompliant", line("x402"), 12)]);
        assert_eq!(with("\"summarize\"\n", "\"übersetze\"\n")[1], ("verb-unknown", line("implements") + 1, 5));
        assert_eq!(with("\"slug\": \"summarizeagent\",", ""), [("card-field-missing", 1, 1)]);
        assert_eq!(with("\"slug\":", "\"ü\": 1, \"x\": 2, \"slug\":").len(), 2);
        assert_eq!(with("\"slug\":", "\"ü\": 1, \"x\": 2, \"slug\":")[1], ("card-schema-invalid", line("slug"), 11));
    }

    #[test]
    fn what_is_missing_in_a_member_stands_at_its_name() {
        let mut card = good();
        card["schemas"].as_object_mut().expect("an object").remove("receipt");
        let text = format!("{card:#}");
        let line = 1 + text.lines().position(|line| line.contains("\"schemas\"")).expect("there");
        assert_eq!(found(&text), [("card-field-missing", line, 3)]);
    }

    #[test]
    fn texts_that_are_no_card_have_one_finding() {
        assert_eq!(found(""), [("card-not-json", 1, 1)]);
        assert_eq!(found("[]"), [("card-not-json", 1, 1)]);
        assert_eq!(found("{\n  \"ü\": 1,,\n}"), [("card-not-json", 2, 10)]);
        assert_eq!(found("{\"a\": {\n \"b\": 1, \"\\u0062\": 2"), [("card-duplicate-key", 2, 10)]);
        assert_eq!(found(&" ".repeat(MAX_BYTES)), [("source-oversize", 0, 0)]);
        assert_eq!(found(&format!("{{\"a\":\n{}", "[".repeat(20)))[0].0, "card-too-deep");
        let report = judged(b"{\n\"a\": \"\xff\"}");
        assert_eq!((report.findings[0].line, report.findings[0].column), (Some(2), Some(7)));
        assert_eq!(report.findings[0].code, Code::CardNotUtf8);
    }

    #[test]
    fn a_name_that_is_not_in_normal_form_is_found() {
        let mut card = good();
        for member in ["ens", "id"] {
            card[member] = json!("SummarizeAgent.eth");
        }
        card["entry"] = json!("x402://SummarizeAgent.eth/summarize/v1");
        let report = report(&card.to_string());
        assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
        assert_eq!(report.findings[0].code, Code::CardEnsMismatch);
        assert_eq!(report.findings[0].expected.as_deref(), Some("summarizeagent.eth"));
    }

    #[test]
    fn a_card_is_held_against_the_one_before() {
        let (earlier, profiles) = (format!("{:#}", good()), Profiles::builtin());
        let profile = profiles.get(DEFAULT).expect("built in");
        let before = Card::parse(earlier.as_bytes()).expect("a card");
        let rules = Rules { previous: Some(&before), previous_bytes: Some(earlier.as_bytes()), ..Rules::of(&profile) };
        let judged = |text: &str| {
            let judgement = judge(text.as_bytes(), None, &rules, &profiles);
            let codes: Vec<_> = judgement.report.findings.iter().map(|finding| finding.code.slug()).collect();
            (codes, judgement.report.valid, judgement.near_misses)
        };
        assert_eq!(judged(&earlier), (vec![], true, vec![]));
        let reformatted = good().to_string();
        assert_eq!(judged(&reformatted), (vec!["updated-at-not-advanced"], false, vec![]));
        let owner = earlier.replace("commandlayer.eth", "other.eth");
        assert_eq!(judged(&owner), (vec!["updated-at-not-advanced", "version-not-raised"], false, vec![]));
        let proper = owner
            .replace("\"version\": \"1.0.0\"", "\"version\": \"1.1.0\"")
            .replace("\"updated_at\": \"2025-11-22", "\"updated_at\": \"2025-11-23");
        assert_eq!(judged(&proper), (vec![], true, vec![]));
        let another = earlier.replace("summarizeagent.eth", "otheragent.eth");
        assert_eq!(judged(&another), (vec![], true, vec![]), "no earlier card of this name");
    }

    #[test]
    fn other_profiles_are_tried() {
        let mut card = good();
        card["entry"] = json!("x402://summarizeagent.eth/summarize/v1.0.0");
        let profiles = Profiles::builtin();
        let profile = profiles.get(DEFAULT).expect("built in");
        let near = judge(card.to_string().as_bytes(), None, &Rules::of(&profile), &profiles).near_misses;
        assert_eq!(near, ["agent-cards/1.0.0+released"]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn no_bytes_are_too_odd(at in 0_usize..2000, byte in 0_u8.., cut in 0_usize..2500) {
            let mut bytes = format!("{:#}", good()).into_bytes();
            let last = bytes.len() - 1;
            bytes[at.min(last)] = byte;
            bytes.truncate(cut.max(1));
            let report = judged(&bytes);
            proptest::prop_assert!(report.findings.iter().all(|f| f.line.is_some_and(|line| line > 0)));
        }
    }
}
