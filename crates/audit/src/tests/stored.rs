//! The JSON report suffices to render every other format.

use super::reading::with_new_digest;
use super::waivers::waiver;
use super::*;
use crate::waiver::MAX_WAIVERS;

/// A report that uses every member.
fn full(rows: &[AuditRow]) -> AuditReport {
    let mut whole = report(rows, AuditEnding::ListFailed(HOSTILE.to_owned()));
    let past =
        |rows: &[AuditRow]| ComparableReport::from_rows(&whole.scope, true, &Listed(rows)).expect("rows in memory");
    let since = AuditDifference::between(&past(&rows[..2]), &past(&rows[1..])).expect("one world");
    assert!(since.changes.len() > 1, "{since:?}");
    let at = |day| ReportStateCounts {
        generated_at: Some(format!("2026-10-{day}T10:05:00Z").parse().expect("a time")),
        checked: Some(format!("2026-10-{day}T10:00:00Z").parse().expect("a time")),
        trusted: 5,
        ..ReportStateCounts::default()
    };
    (whole.since, whole.before, whole.earlier) = (Some(since), Some(at("02")), vec![at("01"), at("02")]);
    whole.generated_at = Some("2026-11-20T10:12:00.25Z".parse().expect("a time"));
    whole.tool.version = "0.0.9".to_owned();
    whole.counts.listed_again = 3;
    whole.flags = vec!["--chain-id".to_owned(), "31337".to_owned()];
    whole.scope.registry = Some(AuditedRegistryManifest {
        manifest: "https://registry.example/manifest.json".to_owned(),
        digest: digest("manifest"),
        proven: true,
        entries: 2,
    });
    whole.scope.schema_layers = true;
    whole.schema_layers = Some(Vec::new());
    let accepted = waiver("a.eth", ReasonCode::ChecksumMismatch, "https, ipfs", Some(&digest("card")), "2026-11-20");
    let today = "2026-11-20".parse().expect("a day");
    whole.waivers = AppliedWaivers::apply(vec![accepted], today, &Listed(rows)).expect("rows in memory");
    whole
}

#[test]
fn every_form_is_rendered_from_the_json_form_alone() {
    let mut listed = misrouted(3);
    listed.registry =
        Some(RegistryChainComparison { entry: Some(1), in_list: true, on_chain: OnChainAgentPresence::Absent });
    let rows =
        [hostile(), AuditRow::from_verdict(2, &wrong_checksum()), listed, AuditRow::from_verdict(4, &changed_host())];
    let whole = full(&rows);
    let json = written_as(&whole, AuditReportFormat::Json, &rows);
    let value = serde_json::from_str(&json).expect("JSON");
    assert!(fits_schema(&value), "{json}");
    assert_eq!(
        (&value["generated_at"], &value["block_time"]),
        (&json!("2026-11-20T10:12:00.25Z"), &json!("2026-11-20T10:00:00Z"))
    );
    let (read, read_rows) = AuditReport::read(io::Cursor::new(&json)).expect("it was just written");
    assert_eq!((&read, &read_rows[..]), (&whole, &rows[..]));
    for format in [
        AuditReportFormat::Json,
        AuditReportFormat::Markdown,
        AuditReportFormat::Html,
        AuditReportFormat::Csv,
        AuditReportFormat::Sarif,
    ] {
        assert_eq!(written_as(&read, format, &read_rows), written_as(&whole, format, &rows), "{format:?}");
    }
    assert!(written_as(&read, AuditReportFormat::Sarif, &read_rows).contains("\"version\":\"0.0.9\""));
    let page = written_as(&read, AuditReportFormat::Html, &read_rows);
    assert!(page.contains("<dt>generated at</dt><dd>2026-11-20T10:12:00Z</dd>"), "{page}");
    assert!(page.contains("<dt>block time</dt><dd>2026-11-20T10:00:00Z</dd>"), "{page}");
}

#[test]
fn contradictory_and_oversize_reports_are_not_rendered() {
    let rows = [misrouted(1)];
    let read = |json: &str| AuditReport::read(io::Cursor::new(json)).map(|_| ());
    let whole = report(&rows, AuditEnding::Complete);
    let json = written_as(&whole, AuditReportFormat::Json, &rows);
    assert!(read(&json).is_ok());
    assert!(read(&with_new_digest(&json.replace("\"complete\": true", "\"complete\": false"))).is_err());
    let many = vec![waiver("a.eth", ReasonCode::ChecksumMismatch, "https", None, "2026-11-20"); MAX_WAIVERS + 1];
    let waivers =
        AppliedWaivers::apply(many, "2026-11-20".parse().expect("a day"), &Listed(&rows)).expect("rows in memory");
    assert!(read(&written_as(&AuditReport { waivers, ..whole }, AuditReportFormat::Json, &rows)).is_err());
}
