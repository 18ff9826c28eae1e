//! Reading reports.

use super::*;

fn json_of(report: &AuditReport, rows: &[AuditRow]) -> String {
    let mut out = Vec::new();
    report.write(AuditReportFormat::Json, &Listed(rows), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn reports_under_other_rules_are_compared_with_a_warning() {
    let rows: Vec<AuditRow> = (1..=20).map(misrouted).collect();
    let first = json_of(&report(&rows, AuditEnding::Complete), &rows);
    let settings = format!("\"settings\":\"{}\"", digest("settings"));
    for (then, now) in [
        ("\"proof\":\"quorum\"", "\"proof\":\"single-rpc\"".to_owned()),
        ("\"agree\":2", "\"agree\":3".to_owned()),
        (&settings, format!("\"settings\":\"{}\"", digest("others"))),
    ] {
        let other = with_new_digest(&first.replace(then, &now));
        let past = |report: &str| ComparableReport::read(io::Cursor::new(report)).expect("a report");
        let difference = AuditDifference::between(&past(&first), &past(&other)).expect("one world");
        assert!(difference.warnings()[0].contains("different rules"), "{then}");
    }
}

/// The error for this report.
fn refusal(report: &str) -> AuditReportError {
    ComparableReport::read(io::Cursor::new(report)).expect_err(report)
}

#[test]
fn a_report_ends_with_its_digest_and_nothing_stands_behind_it() {
    let rows = [misrouted(1)];
    let whole = json_of(&report(&rows, AuditEnding::Complete), &rows);
    assert!(ComparableReport::read(io::Cursor::new(&whole)).is_ok());
    let last_lines: usize = whole.lines().rev().take(3).map(|line| line.len() + 1).sum();
    for cut in whole.len() - last_lines..whole.len() {
        let why = refusal(&whole[..cut]);
        assert!(matches!(why, AuditReportError::Cut | AuditReportError::Changed { .. }), "{cut}: {why}");
    }
    let inner = whole.strip_suffix("\n}\n").expect("its end");
    let members = "\"resolution\": [], \"reasons\": [], \"since\": null, \"warning\": \"all good\"";
    for behind in [" ", "\n", "}\n", "\0", "garbage", &whole] {
        assert!(matches!(refusal(&format!("{whole}{behind}")), AuditReportError::Continued), "{behind}");
    }
    for changed in [format!("{inner}, {members}}}\n"), format!("{inner}\r\n}}\n")] {
        assert!(matches!(refusal(&changed), AuditReportError::Changed { .. }), "{changed}");
    }
    let continued = format!("{inner}\n, {members}\n}}\n");
    assert!(matches!(refusal(&continued), AuditReportError::Continued), "{continued}");
    for behind in [" }\n", "}", "}\r\n", "}\n ", "\n}\n"] {
        refusal(&format!("{inner}\n{behind}"));
    }
}

#[test]
fn members_that_a_report_does_not_have_or_has_twice_are_refused() {
    let rows = [misrouted(1)];
    let whole = json_of(&report(&rows, AuditEnding::Complete), &rows);
    for (member, why) in [("\"since\": null,\n", "duplicate field `since`"), ("\"all\": 1,\n", "unknown field `all`")] {
        let changed = with_new_digest(&whole.replace("\"since\": null,\n", &format!("{member}\"since\": null,\n")));
        let refusal = refusal(&changed);
        assert!(
            matches!(&refusal, AuditReportError::Other(error) if error.to_string().contains(why)),
            "{why}: {refusal}"
        );
    }
    for (member, why) in [
        ("\"line\":1", "duplicate field `line`"),
        ("\"summary\":\"all is well\"", "duplicate field `summary`"),
        ("\"edition\":null,\"edition\":null", "duplicate field `edition`"),
        ("\"all\":1", "unknown field `all` of a row"),
        ("\"\\u001b[2J\":1", "unknown field `\\u{1b}[2J` of a row"),
    ] {
        let changed = with_new_digest(&whole.replace("{\"line\":1,", &format!("{{{member},\"line\":1,")));
        let refusal = refusal(&changed);
        assert!(
            matches!(&refusal, AuditReportError::Other(error) if error.to_string().contains(why)),
            "{why}: {refusal}"
        );
    }
    let other = with_new_digest(&whole.replace(SCHEMA, "clresolve.audit/0"));
    let refusal = refusal(&other);
    assert!(matches!(&refusal, AuditReportError::Schema(schema) if schema == "clresolve.audit/0"), "{refusal}");
}

/// The JSON schema, which every report satisfies, names the same members.
#[test]
fn the_members_of_rows_are_those_of_the_schema() {
    let schema: Value = serde_json::from_str(include_str!("../../../../schemas/audit.schema.json")).expect("JSON");
    let named = schema["$defs"]["row"]["properties"].as_object().expect("the members");
    let named: std::collections::BTreeSet<&str> = named.keys().map(String::as_str).collect();
    assert_eq!(named, std::collections::BTreeSet::from(row::MEMBERS));
}

/// A report with a recomputed digest of its lines.
pub(super) fn with_new_digest(report: &str) -> String {
    let (lines, _) = report.split_once("\"digest\": ").expect("a digest");
    format!("{lines}\"digest\": \"{}\"\n}}\n", Digest::compute(lines.as_bytes()))
}
