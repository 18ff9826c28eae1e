//! The counts, and the findings shared by names.

use super::*;
use crate::counts::{EXAMPLES_PER_REASON, MAX_KINDS_OF_FINDINGS, NAMES_PER_FINDING};
use crate::row::MAX_REASONS_PER_ROW;

#[test]
fn counts_and_groups_are_those_of_the_rows() {
    let mut undecided = trusted();
    undecided.state = State::Indeterminate;
    undecided.reasons = vec![Reason::new(Code::CidUnproven), Reason::new(Code::SingleRpc)];
    undecided.profile.near_misses = vec![NearMiss { profile: "p".to_owned(), would_be: State::Trusted }];
    let mut rows: Vec<Row> = (1..=8).map(|line| Row::of(line, &wrong_checksum())).collect();
    rows.extend([Row::of(9, &trusted()), Row::of(10, &undecided)]);
    let counts = report(&rows, Ending::Complete).counts;
    assert_eq!(
        (counts.names, counts.trusted, counts.untrusted, counts.indeterminate, counts.drifting),
        (10, 1, 8, 1, 8)
    );
    assert_eq!((counts.blocks, counts.near_misses["p"]), (Some((7, 7)), 1));
    let groups: Vec<_> = counts.groups().iter().map(|g| (g.code, g.effect, g.names, g.examples.len())).collect();
    assert_eq!(
        groups,
        [
            (Code::ChecksumMismatch, Effect::Fail, 8, EXAMPLES_PER_REASON),
            (Code::CidUnproven, Effect::Unknown, 1, 1),
            (Code::SingleRpc, Effect::Warn, 2, 2),
        ]
    );
}

#[test]
fn times_span_the_rows_whatever_their_order() {
    let at = |time: &str| Row { checked_at: Some(time.to_owned()), ..Row::unreadable(1, "a", None, "b") };
    let rows = [at("2026-11-20T10:00:05Z"), at("2026-11-20T10:00:01.25Z"), at("2026-11-20T10:00:05.5Z")];
    let text = written(Format::Markdown, &rows, Ending::Complete);
    assert!(text.contains("`2026-11-20T10:00:01Z to 2026-11-20T10:00:05Z`"), "{text}");
}

#[test]
fn a_name_with_the_same_reason_twice_counts_once() {
    let reasons = [Code::SourceOversize, Code::CidMismatch, Code::SourceOversize].map(Reason::new);
    let counts = report(&[Row::of(1, &failing(reasons))], Ending::Complete).counts;
    assert!(counts.groups().iter().all(|group| group.names == 1));
}

#[test]
fn names_with_the_same_defect_share_their_findings() {
    let mut other = misrouted(3);
    other.reasons[0] = other.reasons[0].clone().at("/elsewhere");
    let rows = [misrouted(1), misrouted(2), other, misrouted(4)];
    let text = written(Format::Markdown, &rows, Ending::Complete);
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
        row.reasons[0] = row.reasons[0].clone().at(format!("/{line}"));
        row
    };
    let kinds = u64::try_from(MAX_KINDS_OF_FINDINGS).unwrap();
    let mut rows: Vec<Row> = (1..=kinds + 1).map(unlike).collect();
    rows.push(Row { line: kinds + 2, ..rows[rows.len() - 1].clone() });
    let counts = report(&rows, Ending::Complete).counts;
    assert_eq!((counts.alike.len(), counts.alike(&rows[0]).map(|alike| alike.names)), (MAX_KINDS_OF_FINDINGS, Some(1)));
    assert_eq!(counts.alike(rows.last().unwrap()), None);
    let text = written(Format::Html, &rows, Ending::Complete);
    assert_eq!(text.matches("<article ").count(), MAX_KINDS_OF_FINDINGS);
    assert!(text.contains("2 more sets of findings are omitted. The JSON form has all."), "{text}");
}

#[test]
fn the_names_that_share_findings_are_listed_up_to_a_limit() {
    let all = u64::try_from(NAMES_PER_FINDING).unwrap() + 8;
    let rows: Vec<Row> = (1..=all).map(misrouted).collect();
    let text = written(Format::Markdown, &rows, Ending::Complete);
    assert!(text.contains(&format!("### `n1.eth` and {} more: untrusted", all - 1)), "{text}");
    assert!(text.contains(" and 7 more. The values below"), "{text}");
}

#[test]
fn a_row_is_bounded() {
    let mut verdict = failing((0..500).map(|_| Reason::new(Code::VerbUnknown)));
    verdict.name.input = "a".repeat(5000);
    let row = Row::of(1, &verdict);
    assert_eq!((row.reasons.len(), row.more_reasons), (MAX_REASONS_PER_ROW, 500 - MAX_REASONS_PER_ROW));
    assert!(row.input.len() <= MAX_NAME_BYTES);
}
