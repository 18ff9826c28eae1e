//! The counts, and the findings shared by names.

use super::*;
use crate::counts::{EXAMPLES_PER_REASON, MAX_KINDS_OF_FINDINGS, NAMES_PER_FINDING};
use crate::row::MAX_REASONS_PER_ROW;

#[test]
fn counts_and_groups_are_those_of_the_rows() {
    let mut undecided = trusted();
    undecided.state = TrustState::Indeterminate;
    undecided.reasons = vec![Reason::new(ReasonCode::CidUnproven), Reason::new(ReasonCode::SingleRpc)];
    undecided.profile.near_misses =
        vec![TrustStateUnderOtherProfile { profile: "p".to_owned(), would_be: TrustState::Trusted }];
    let mut rows: Vec<AuditRow> = (1..=8).map(|line| AuditRow::from_verdict(line, &wrong_checksum())).collect();
    rows.extend([AuditRow::from_verdict(9, &trusted()), AuditRow::from_verdict(10, &undecided)]);
    let counts = report(&rows, AuditEnding::Complete).counts;
    assert_eq!(
        (counts.names, counts.trusted, counts.untrusted, counts.indeterminate, counts.drifting),
        (10, 1, 8, 1, 8)
    );
    assert_eq!((counts.blocks, counts.near_misses["p"]), (Some((7, 7)), 1));
    let groups: Vec<_> =
        counts.sorted_summaries().iter().map(|g| (g.code, g.effect, g.names, g.examples.len())).collect();
    assert_eq!(
        groups,
        [
            (ReasonCode::ChecksumMismatch, ReasonEffect::Fail, 8, EXAMPLES_PER_REASON),
            (ReasonCode::CidUnproven, ReasonEffect::Unknown, 1, 1),
            (ReasonCode::SingleRpc, ReasonEffect::Warn, 2, 2),
        ]
    );
}

#[test]
fn times_span_the_rows_whatever_their_order() {
    let at = |time: &str| AuditRow {
        checked_at: Some(time.to_owned()),
        ..AuditRow::from_unreadable_line(1, "a", None, "b")
    };
    let rows = [at("2026-11-20T10:00:05Z"), at("2026-11-20T10:00:01.25Z"), at("2026-11-20T10:00:05.5Z")];
    let text = written(AuditReportFormat::Markdown, &rows, AuditEnding::Complete);
    assert!(text.contains("`2026-11-20T10:00:01Z to 2026-11-20T10:00:05Z`"), "{text}");
}

#[test]
fn a_name_with_the_same_reason_twice_counts_once() {
    let reasons = [ReasonCode::SourceOversize, ReasonCode::CidMismatch, ReasonCode::SourceOversize].map(Reason::new);
    let counts = report(&[AuditRow::from_verdict(1, &failing(reasons))], AuditEnding::Complete).counts;
    assert!(counts.sorted_summaries().iter().all(|group| group.names == 1));
}

#[test]
fn names_with_the_same_defect_share_their_findings() {
    let mut other = misrouted(3);
    other.reasons[0] = other.reasons[0].clone().at_place("/elsewhere");
    let rows = [misrouted(1), misrouted(2), other, misrouted(4)];
    let text = written(AuditReportFormat::Markdown, &rows, AuditEnding::Complete);
    let findings: Vec<&str> = text.lines().filter(|line| line.starts_with("### ")).collect();
    assert_eq!(findings, ["### `n1.eth` and 2 more: untrusted", "### `n3.eth`: untrusted"]);
    assert!(text.contains("Same findings: `n2.eth`, `n4.eth`. "), "{text}");
    assert!(text.contains("  - at `/entry`: observed `n1.eth`\n") && !text.contains("observed `n2.eth`"), "{text}");
    for name in ["n1", "n2", "n3", "n4"] {
        assert!(text.contains(&format!("| `{name}.eth` | Updated | incident: ")), "{name}: {text}");
    }
}

#[test]
fn a_name_beyond_the_known_kinds_has_its_findings_to_itself() {
    let unlike = |line: u64| {
        let mut row = misrouted(line);
        row.reasons[0] = row.reasons[0].clone().at_place(format!("/{line}"));
        row
    };
    let kinds = u64::try_from(MAX_KINDS_OF_FINDINGS).unwrap();
    let mut rows: Vec<AuditRow> = (1..=kinds + 1).map(unlike).collect();
    rows.push(AuditRow { line: kinds + 2, ..rows[rows.len() - 1].clone() });
    let counts = report(&rows, AuditEnding::Complete).counts;
    assert_eq!(
        (counts.alike.len(), counts.same_findings(&rows[0]).map(|alike| alike.names)),
        (MAX_KINDS_OF_FINDINGS, Some(1))
    );
    assert_eq!(counts.same_findings(rows.last().unwrap()), None);
    let text = written(AuditReportFormat::Html, &rows, AuditEnding::Complete);
    assert_eq!(text.matches("<article ").count(), MAX_KINDS_OF_FINDINGS);
    assert!(text.contains("2 more sets of findings are omitted. The JSON form has all."), "{text}");
}

#[test]
fn the_names_that_share_findings_are_listed_up_to_a_limit() {
    let all = u64::try_from(NAMES_PER_FINDING).unwrap() + 8;
    let rows: Vec<AuditRow> = (1..=all).map(misrouted).collect();
    let text = written(AuditReportFormat::Markdown, &rows, AuditEnding::Complete);
    assert!(text.contains(&format!("### `n1.eth` and {} more: untrusted", all - 1)), "{text}");
    assert!(text.contains(" and 7 more. The values below"), "{text}");
}

#[test]
fn a_row_is_bounded() {
    let mut verdict = failing((0..500).map(|_| Reason::new(ReasonCode::VerbUnknown)));
    verdict.name.input = "a".repeat(5000);
    let row = AuditRow::from_verdict(1, &verdict);
    assert_eq!((row.reasons.len(), row.more_reasons), (MAX_REASONS_PER_ROW, 500 - MAX_REASONS_PER_ROW));
    assert!(row.input.len() <= MAX_NAME_BYTES);
}
