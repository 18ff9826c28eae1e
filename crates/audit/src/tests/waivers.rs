//! The findings that a waiver covers, and its place in the reports.

use super::*;
use crate::waiver::{Waiver, WaiverStatus};
use clresolve_core::name::EnsName;

pub(super) fn waiver(name: &str, code: ReasonCode, place: &str, observed: Option<&str>, until: &str) -> Waiver {
    Waiver {
        name: EnsName::parse(name).expect("a name"),
        code,
        place: Some(place.to_owned()),
        observed: observed.map(str::to_owned),
        reason: HOSTILE.to_owned(),
        until: until.parse().expect("a day"),
    }
}

const TODAY: &str = "2026-11-20";

/// The location of the finding of [`wrong_checksum`].
const SOURCES: &str = "https, ipfs";

fn applied(given: Vec<Waiver>, rows: &[AuditRow]) -> AppliedWaivers {
    AppliedWaivers::apply(given, TODAY.parse().expect("a day"), &Listed(rows)).expect("rows in memory")
}

/// The status of a waiver, and the worst state that remains.
fn outcome(given: Waiver, rows: &[AuditRow]) -> (WaiverStatus, TrustState) {
    let waivers = applied(vec![given], rows);
    let counts = report(rows, AuditEnding::Complete).counts;
    let worst = waivers.worst_unwaived_state(&counts, &Listed(rows)).expect("rows in memory");
    (waivers.as_slice()[0].status, worst)
}

#[test]
fn waiver_covers_one_value_of_one_finding_until_its_day() {
    let rows = [AuditRow::from_verdict(1, &wrong_checksum())];
    let (code, value) = (ReasonCode::ChecksumMismatch, digest("card"));
    let with = |name, code, observed: &str, until| outcome(waiver(name, code, SOURCES, Some(observed), until), &rows);
    assert_eq!(with("a.eth", code, &value, TODAY), (WaiverStatus::Accepted, TrustState::Trusted));
    assert_eq!(with("a.eth", code, &value, "2026-11-19"), (WaiverStatus::Expired, TrustState::Untrusted));
    assert_eq!(with("a.eth", code, &digest("another"), TODAY), (WaiverStatus::OtherValue, TrustState::Untrusted));
    assert_eq!(with("b.eth", code, &value, TODAY), (WaiverStatus::NoFinding, TrustState::Untrusted));
    assert_eq!(with("a.eth", ReasonCode::CidMismatch, &value, TODAY), (WaiverStatus::NoFinding, TrustState::Untrusted));
    let without_value = waiver("a.eth", code, SOURCES, None, TODAY);
    assert_eq!(outcome(without_value, &rows), (WaiverStatus::OtherValue, TrustState::Untrusted));
    assert_eq!(rows[0].state, TrustState::Untrusted, "a waiver changes no state");
}

#[test]
fn other_findings_of_a_name_still_count() {
    let mut row = AuditRow::from_verdict(1, &changed_host());
    let accepted = || waiver("a.eth", ReasonCode::ChecksumMismatch, "https", None, TODAY);
    let rows = |row: &AuditRow| [row.clone()];
    assert_eq!(outcome(accepted(), &rows(&row)), (WaiverStatus::Accepted, TrustState::Untrusted), "cid-mismatch");
    row.reasons.retain(|reason| reason.code == ReasonCode::ChecksumMismatch);
    row.reasons.push(Reason::new(ReasonCode::RpcUnreachable));
    assert_eq!(outcome(accepted(), &rows(&row)).1, TrustState::Indeterminate);
    row.reasons.pop();
    assert_eq!(outcome(accepted(), &rows(&row)).1, TrustState::Trusted);
    let other = [rows(&AuditRow::from_verdict(1, &wrong_checksum()))[0].clone(), misrouted(2)];
    let accepted = waiver("a.eth", ReasonCode::ChecksumMismatch, SOURCES, Some(&digest("card")), TODAY);
    assert_eq!(outcome(accepted, &other), (WaiverStatus::Accepted, TrustState::Untrusted), "another name");
}

#[test]
fn undecided_finding_is_not_accepted() {
    let mut unread = Reason::new(ReasonCode::RpcUnreachable).at_place("records");
    assert_eq!(unread.effect, ReasonEffect::Unknown);
    let given = || waiver("a.eth", ReasonCode::RpcUnreachable, "records", None, TODAY);
    let mut row = AuditRow::from_verdict(1, &failing([unread.clone()]));
    row.state = TrustState::Indeterminate;
    assert_eq!(outcome(given(), &[row.clone()]), (WaiverStatus::NoFinding, TrustState::Indeterminate));
    unread.effect = ReasonEffect::Fail;
    row.reasons = vec![unread];
    assert_eq!(outcome(given(), &[row]), (WaiverStatus::Accepted, TrustState::Trusted));
}

#[test]
fn waiver_covers_one_place() {
    let missing = |key: &str| Reason::new(ReasonCode::TxtMissing).at_place(key);
    let row = |keys: &[&str]| AuditRow::from_verdict(1, &failing(keys.iter().copied().map(missing)));
    let given = || waiver("a.eth", ReasonCode::TxtMissing, "cl.owner", None, TODAY);
    let both = [row(&["cl.entry", "cl.owner"])];
    let waivers = applied(vec![given()], &both);
    let accepted: Vec<bool> =
        both[0].reasons.iter().map(|it| waivers.accepting_waiver(&both[0], it).is_some()).collect();
    assert_eq!((accepted, waivers.as_slice()[0].findings), (vec![false, true], 1));
    assert_eq!(outcome(given(), &both), (WaiverStatus::Accepted, TrustState::Untrusted));
    assert_eq!(outcome(given(), &[row(&["cl.owner"])]), (WaiverStatus::Accepted, TrustState::Trusted));
    assert_eq!(outcome(given(), &[row(&["cl.entry"])]), (WaiverStatus::OtherValue, TrustState::Untrusted));
    let anywhere = || Waiver { place: None, ..given() };
    assert_eq!(outcome(anywhere(), &both), (WaiverStatus::OtherValue, TrustState::Untrusted));
    let nowhere = [AuditRow::from_verdict(1, &failing([Reason::new(ReasonCode::TxtMissing)]))];
    assert_eq!(outcome(anywhere(), &nowhere), (WaiverStatus::Accepted, TrustState::Trusted));
    assert_eq!(outcome(given(), &nowhere), (WaiverStatus::OtherValue, TrustState::Untrusted));
}

#[test]
fn name_with_unlisted_findings_is_not_accepted() {
    let mut row = AuditRow::from_verdict(1, &wrong_checksum());
    row.more_reasons = 1;
    let rows = [row];
    let given = || waiver("a.eth", ReasonCode::ChecksumMismatch, SOURCES, Some(&digest("card")), TODAY);
    assert_eq!(outcome(given(), &rows), (WaiverStatus::UnlistedFindings, TrustState::Untrusted));
    let mut whole = report(&rows, AuditEnding::Complete);
    whole.waivers = applied(vec![given()], &rows);
    let expected = "no finding is accepted; 1 waiver for a name with more findings than the report lists.";
    let text = written_as(&whole, AuditReportFormat::Markdown, &rows);
    assert!(text.contains(expected), "{text}");
    let log: Value = serde_json::from_str(&written_as(&whole, AuditReportFormat::Sarif, &rows)).expect("JSON");
    assert_eq!(log["runs"][0]["results"][0]["suppressions"], json!([]));
    let value: Value = serde_json::from_str(&written_as(&whole, AuditReportFormat::Json, &rows)).expect("JSON");
    assert_eq!(value["waivers"][0]["status"], "unlisted-findings");
    assert!(fits_schema(&value), "{value:#}");
}

#[test]
fn cut_value_or_place_is_not_accepted() {
    let mut row = AuditRow::from_verdict(1, &wrong_checksum());
    row.reasons[0] = row.reasons[0].clone().observed("x".repeat(600));
    let cut = row.reasons[0].observed.clone().expect("a value");
    let given = waiver("a.eth", ReasonCode::ChecksumMismatch, SOURCES, Some(&cut), TODAY);
    assert_eq!(outcome(given, std::slice::from_ref(&row)), (WaiverStatus::OtherValue, TrustState::Untrusted));
    row.reasons[0] = Reason::new(ReasonCode::ChecksumMismatch).at_place("/skills…");
    let given = waiver("a.eth", ReasonCode::ChecksumMismatch, "/skills…", None, TODAY);
    assert_eq!(outcome(given, &[row]), (WaiverStatus::OtherValue, TrustState::Untrusted));
}

#[test]
fn every_form_lists_accepted_findings_and_idle_waivers() {
    let rows = [AuditRow::from_verdict(1, &wrong_checksum()), misrouted(2)];
    let mut whole = report(&rows, AuditEnding::Complete);
    let plain = |format| written_as(&report(&rows, AuditEnding::Complete), format, &rows);
    for (format, word) in [
        (AuditReportFormat::Markdown, "Waivers"),
        (AuditReportFormat::Html, "id=\"waivers\""),
        (AuditReportFormat::Sarif, "suppress"),
    ] {
        assert!(!plain(format).contains(word), "without waivers there is no section");
    }
    let given = vec![
        waiver("n2.eth", ReasonCode::EntryVersionNoncompliant, "/entry", Some("n2.eth"), "2026-11-01"),
        waiver("a.eth", ReasonCode::ChecksumMismatch, SOURCES, Some(&digest("card")), TODAY),
    ];
    whole.waivers = applied(given, &rows);
    let written = |format| written_as(&whole, format, &rows);
    let expected = "1 finding is accepted and does not affect the exit code; 1 waiver expired.";
    for (format, cells) in [
        (AuditReportFormat::Markdown, "| `/entry` | `n2.eth` | 2026-11-01 | expired |"),
        (AuditReportFormat::Html, "data-label=\"where\"><code>/entry</code>"),
    ] {
        let text = written(format);
        assert!(text.contains(expected) && text.contains(cells), "{text}");
        assert!(!text.contains('\u{202e}'), "{text}");
    }
    assert!(!written(AuditReportFormat::Html).contains("<script>alert"), "{}", written(AuditReportFormat::Html));
    for line in written(AuditReportFormat::Markdown).lines() {
        let outside: String = line.split('`').step_by(2).collect();
        assert!(!outside.contains("script"), "{line}");
    }
    let table = written(AuditReportFormat::Csv);
    assert!(table.contains("checksum-mismatch at https, ipfs until 2026-11-20, accepted: =x"), "{table}");
    assert!(table.contains("entry-version-noncompliant at /entry until 2026-11-01, expired"), "{table}");
    let log: Value = serde_json::from_str(&written(AuditReportFormat::Sarif)).expect("JSON");
    super::sarif::fits_sarif(&log.to_string()).expect("a log");
    let results = log["runs"][0]["results"].as_array().expect("results");
    for result in results {
        let suppressions = result["suppressions"].as_array().expect("each result has the member");
        assert_eq!(suppressions.len(), usize::from(result["ruleId"] == "checksum-mismatch"), "{result:#}");
    }
    let suppression = &results[0]["suppressions"][0];
    assert_eq!((&suppression["kind"], &suppression["status"]), (&json!("external"), &json!("accepted")));
    let why = suppression["justification"].as_str().expect("a text");
    assert!(why.ends_with("(until 2026-11-20)") && !why.contains('\u{202e}'), "{why}");
    let notices = log["runs"][0]["invocations"][0]["toolExecutionNotifications"].to_string();
    assert!(notices.contains("n2.eth at /entry, ") && notices.contains("expired"), "{notices}");
    let value: Value = serde_json::from_str(&written(AuditReportFormat::Json)).expect("JSON");
    assert!(fits_schema(&value), "{value:#}");
    assert_eq!(value["waivers"][0]["status"], "accepted");
    assert_eq!(value["waivers"][0]["waiver"]["where"], SOURCES);
    assert_eq!(value["counts"]["untrusted"], 2, "a waiver changes no state");
}
