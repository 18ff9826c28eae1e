//! Draft rows for the governance log.

use super::*;
use crate::governance_log::{GovernanceAction, GovernanceTableLayout};

#[test]
fn a_draft_says_who_has_to_do_what() {
    let fixing = draft(&wrong_checksum());
    let why = format!("checksum-mismatch (CL-50); `agent-cards/1.0.0`, block 7, conclusion {}", trusted().conclusion);
    let what = format!(
        "draft: not to be called or paid until its publisher has set `cl.checksum.agentcard={}`",
        digest("card")
    );
    let published = format!("| 2026-11-20 | `a.eth` | Updated | incident: {why} | {what} | — |");
    assert_eq!(fixing.markdown(GovernanceTableLayout::Published), published);
    assert_eq!(
        fixing.markdown(GovernanceTableLayout::Plain),
        format!("| 2026-11-20 | `a.eth` | incident | {what} | {why} |")
    );
    let ended = failing([Reason::new(ReasonCode::StatusRevoked)]);
    assert_eq!(draft(&ended).action, GovernanceAction::Deprecated);
    assert!(draft(&changed_host()).decision.ends_with("has restored the released bytes at the card's URL"));
    let mut both = wrong_checksum();
    both.reasons.push(Reason::new(ReasonCode::SchemaTxtMismatch).at_place("cl.verb"));
    assert!(draft(&both).decision.ends_with("` and corrected the rest"));
    let defect = failing([Reason::new(ReasonCode::EntryMalformed)]);
    assert!(draft(&defect).decision.ends_with("has corrected what it published"));
    let unregistered = failing([Reason::new(ReasonCode::NameUnregistered)]);
    assert_eq!(draft(&unregistered).decision, "draft: take the name off the list, or correct its spelling");
}

#[test]
fn what_names_nobody_or_has_no_date_drafts_no_incident() {
    let rows = [AuditRow::from_unreadable_line(1, "0x00", None, "it is the hash of a name that nobody has spelt")];
    let invalid = AuditRow {
        checked_at: None,
        block: None,
        ..AuditRow::from_verdict(2, &failing([Reason::new(ReasonCode::NameInvalid)]))
    };
    let of = |rows: &[AuditRow]| {
        rows.iter()
            .filter_map(|row| LogRowDraft::from_row(&report(rows, AuditEnding::Complete), row))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&rows), []);
    assert_eq!(of(std::slice::from_ref(&invalid)), []);
    let dated = of(&[rows[0].clone(), invalid, AuditRow::from_verdict(3, &trusted())]);
    assert_eq!(dated.iter().map(|draft| &*draft.date).collect::<Vec<_>>(), ["2026-11-20"], "the day of the run");
}

#[test]
fn draft_of_a_stored_report_has_no_foreign_markup() {
    let mut row = AuditRow::from_verdict(1, &wrong_checksum());
    row.conclusion = Some(HOSTILE.to_owned());
    row.reasons[0].requirement = Some(HOSTILE.to_owned());
    row.checked_at = Some("[a](//b.c)".to_owned());
    let rows = [row, AuditRow::from_verdict(2, &trusted())];
    let text = LogRowDraft::from_row(&report(&rows, AuditEnding::Complete), &rows[0])
        .expect("a draft")
        .markdown(GovernanceTableLayout::Published);
    assert!(text.starts_with("| 2026-11-20 |") && !text.contains("script"), "{text}");
}
