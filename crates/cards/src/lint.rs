//! Judges a card before it is published, by every rule that needs no name, no record and no network.
//!
//! ```
//! use clresolve_cards::system::{CardSystem, CardLintContext};
//! use clresolve_cards::lint;
//! use clresolve_verdict::profile::{DEFAULT, ConformanceProfiles};
//!
//! let profile = ConformanceProfiles::builtin().get(DEFAULT).unwrap();
//! let report = lint::lint_document(br#"{"ens": "a.eth"}"#, None, &CardLintContext::from_profile(&profile));
//! assert_eq!((report.system, report.valid), (Some(CardSystem::CommandLayer), false));
//! assert_eq!((report.findings[0].line, report.findings[0].column), (Some(1), Some(1)));
//! ```

mod fix;
mod sarif;

pub use clresolve_core::finding::DocumentFinding;
pub use fix::{FixedCard, fix_card, reorder_members};
pub use sarif::sarif_report;
use serde::Serialize;

use crate::system;
use crate::system::{CardLintContext, CardSystem, CardSystemDetection};
use clresolve_core::digest::Digest;
use clresolve_core::finding;
use clresolve_core::json::{JsonError, JsonLimits};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::check::edition;
use clresolve_verdict::evidence::edition::CardSuccessionFacts;
use clresolve_verdict::profile::{ConformanceProfile, ConformanceProfiles};

/// Number of bytes of a document that [`lint_document`] needs: one more than a card may have. A caller can stop reading
/// there and still obtain the right report.
pub const MAX_BYTES: usize = JsonLimits::CARD.bytes + 1;

/// The findings for one document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CardLintReport {
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
    pub findings: Vec<DocumentFinding>,
}

/// Judges the bytes as a card of `named`, or of the system that their shape indicates.
pub fn lint_document(bytes: &[u8], named: Option<CardSystem>, rules: &CardLintContext<'_>) -> CardLintReport {
    lint_parsed_card(&AgentCard::parse(bytes), bytes, named, rules)
}

/// The report on a card that was parsed from `bytes`.
pub(crate) fn lint_parsed_card(
    card: &Result<AgentCard, JsonError>,
    bytes: &[u8],
    named: Option<CardSystem>,
    rules: &CardLintContext<'_>,
) -> CardLintReport {
    let text = finding::valid_utf8_prefix(bytes);
    let (system, mut findings) = match card {
        Err(error) => (named, vec![unparsable_finding(error, text, rules.profile)]),
        Ok(card) => match named.map_or_else(|| system::detect_card_system(card), CardSystemDetection::One) {
            CardSystemDetection::One(system) => {
                let reasons = find_violations(system, card, bytes, rules);
                (Some(system), finding::locate_findings(reasons, text))
            }
            other => (None, finding::locate_findings(vec![unrecognised_system_reason(&other)], text)),
        },
    };
    finding::sort_by_position(&mut findings, text);
    CardLintReport {
        system,
        version: system.zip(card.as_ref().ok()).and_then(|(system, card)| system.detect_format_version(card)),
        profile: system.filter(|system| *system == CardSystem::CommandLayer).map(|_| rules.profile.id().to_owned()),
        valid: findings.iter().all(|finding| finding.effect != ReasonEffect::Fail),
        findings,
    }
}

/// A report, and the other profiles under which the card is valid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LintReportWithPassingProfiles {
    /// The report.
    #[serde(flatten)]
    pub report: CardLintReport,
    /// Other profiles under which an invalid CommandLayer card is valid. Empty for other cards.
    pub near_misses: Vec<String>,
}

/// Like [`lint_document()`], and also lists the profiles among `profiles` under which the card would be valid.
pub fn lint_with_passing_profiles(
    bytes: &[u8],
    system: Option<CardSystem>,
    rules: &CardLintContext<'_>,
    profiles: &ConformanceProfiles,
) -> LintReportWithPassingProfiles {
    let card = AgentCard::parse(bytes);
    let report = lint_parsed_card(&card, bytes, system, rules);
    let near_misses = match report.system {
        Some(CardSystem::CommandLayer) if !report.valid => passing_profiles(&card, bytes, rules, profiles),
        _ => Vec::new(),
    };
    LintReportWithPassingProfiles { report, near_misses }
}

/// The other profiles under which the card, parsed from `bytes`, is a valid CommandLayer card.
fn passing_profiles(
    card: &Result<AgentCard, JsonError>,
    bytes: &[u8],
    rules: &CardLintContext<'_>,
    profiles: &ConformanceProfiles,
) -> Vec<String> {
    let others = profiles.iter().filter(|other| other.id() != rules.profile.id());
    let valid = |other: &ConformanceProfile| {
        let reasons = match card {
            Ok(card) => {
                find_violations(CardSystem::CommandLayer, card, bytes, &CardLintContext { profile: other, ..*rules })
            }
            Err(error) => vec![other.assign_effect(error.to_card_reason())],
        };
        reasons.iter().all(|reason| reason.effect != ReasonEffect::Fail)
    };
    others.filter(|other| valid(other)).map(|other| other.id().to_owned()).collect()
}

/// All violations of the rules of a system in a card.
fn find_violations(system: CardSystem, card: &AgentCard, bytes: &[u8], rules: &CardLintContext<'_>) -> Vec<Reason> {
    let mut reasons = system.check_card(card, rules);
    if system == CardSystem::CommandLayer {
        reasons.extend(compare_with_previous(card, bytes, rules));
    }
    reasons
}

/// CL-69: compares the card with the earlier card of the same name. Before publication, a difference is a defect.
fn compare_with_previous(card: &AgentCard, bytes: &[u8], rules: &CardLintContext<'_>) -> Vec<Reason> {
    let Some(previous) = rules.previous.filter(|previous| previous.get("ens") == card.get("ens")) else {
        return Vec::new();
    };
    let form = |card: &AgentCard| Digest::compute(card.document().to_string().as_bytes());
    let (before, now) = match rules.previous_bytes {
        Some(earlier) => (Digest::compute(earlier), Digest::compute(bytes)),
        None => (form(previous), form(card)),
    };
    let reasons = edition::check_succession(
        &CardSuccessionFacts::from_card(previous, before),
        &CardSuccessionFacts::from_card(card, now),
    );
    reasons.into_iter().map(|reason| Reason { effect: ReasonEffect::Fail, ..reason }).collect()
}

/// The finding for a document whose shape does not indicate a single system.
fn unrecognised_system_reason(detection: &CardSystemDetection) -> Reason {
    match detection {
        CardSystemDetection::Several(systems) => {
            let names: Vec<&str> = systems.iter().map(|system| system.slug()).collect();
            Reason::new(ReasonCode::FlavourAmbiguous).observed(names.join(", "))
        }
        _ => Reason::new(ReasonCode::FlavourUnknown),
    }
    .at_place("")
}

/// The finding for a text that is not a card.
fn unparsable_finding(error: &JsonError, text: &str, profile: &ConformanceProfile) -> DocumentFinding {
    let reason = profile.assign_effect(error.to_card_reason());
    match error {
        JsonError::TooLarge { limit, .. } => {
            DocumentFinding::from_json_error(reason.observed(format!("more than {limit} bytes")), error, text)
        }
        _ => DocumentFinding::from_json_error(reason, error, text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use clresolve_verdict::profile::DEFAULT;
    use clresolve_verdict::sample::good_card;

    fn judged(bytes: &[u8]) -> CardLintReport {
        lint_document(
            bytes,
            Some(CardSystem::CommandLayer),
            &CardLintContext::from_profile(&ConformanceProfiles::builtin().get(DEFAULT).expect("built in")),
        )
    }

    fn report(text: &str) -> CardLintReport {
        judged(text.as_bytes())
    }

    /// Code, line and column of each finding.
    fn found(text: &str) -> Vec<(&'static str, usize, usize)> {
        let place = |f: &DocumentFinding| (f.code.slug(), f.line.unwrap_or(0), f.column.unwrap_or(0));
        report(text).findings.iter().map(place).collect()
    }

    #[test]
    fn a_good_card_is_valid() {
        let report = report(&format!("{:#}", good_card()));
        assert_eq!((report.valid, report.findings), (true, Vec::new()));
        assert_eq!(report.version.as_deref(), Some("1.0.0"));
    }

    #[test]
    fn findings_stand_where_the_text_has_them() {
        let text = format!("{:#}", good_card());
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
        let mut card = good_card();
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
        assert_eq!(report.findings[0].code, ReasonCode::CardNotUtf8);
    }

    #[test]
    fn a_name_that_is_not_in_normal_form_is_found() {
        let mut card = good_card();
        for member in ["ens", "id"] {
            card[member] = json!("SummarizeAgent.eth");
        }
        card["entry"] = json!("x402://SummarizeAgent.eth/summarize/v1");
        let report = report(&card.to_string());
        assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
        assert_eq!(report.findings[0].code, ReasonCode::CardEnsMismatch);
        assert_eq!(report.findings[0].expected.as_deref(), Some("summarizeagent.eth"));
    }

    #[test]
    fn a_card_is_held_against_the_one_before() {
        let (earlier, profiles) = (format!("{:#}", good_card()), ConformanceProfiles::builtin());
        let profile = profiles.get(DEFAULT).expect("built in");
        let before = AgentCard::parse(earlier.as_bytes()).expect("a card");
        let rules = CardLintContext {
            previous: Some(&before),
            previous_bytes: Some(earlier.as_bytes()),
            ..CardLintContext::from_profile(&profile)
        };
        let judged = |text: &str| {
            let judgement = lint_with_passing_profiles(text.as_bytes(), None, &rules, &profiles);
            let codes: Vec<_> = judgement.report.findings.iter().map(|finding| finding.code.slug()).collect();
            (codes, judgement.report.valid, judgement.near_misses)
        };
        assert_eq!(judged(&earlier), (vec![], true, vec![]));
        let reformatted = good_card().to_string();
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
        let mut card = good_card();
        card["entry"] = json!("x402://summarizeagent.eth/summarize/v1.0.0");
        let profiles = ConformanceProfiles::builtin();
        let profile = profiles.get(DEFAULT).expect("built in");
        let near = lint_with_passing_profiles(
            card.to_string().as_bytes(),
            None,
            &CardLintContext::from_profile(&profile),
            &profiles,
        )
        .near_misses;
        assert_eq!(near, ["agent-cards/1.0.0+released"]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

        #[test]
        fn no_bytes_are_too_odd(at in 0_usize..2000, byte in 0_u8.., cut in 0_usize..2500) {
            let mut bytes = format!("{:#}", good_card()).into_bytes();
            let last = bytes.len() - 1;
            bytes[at.min(last)] = byte;
            bytes.truncate(cut.max(1));
            let report = judged(&bytes);
            proptest::prop_assert!(report.findings.iter().all(|f| f.line.is_some_and(|line| line > 0)));
        }
    }
}
