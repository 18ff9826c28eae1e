//! Each format with hostile text, and the information that it keeps.

use super::*;

#[test]
fn markdown_holds_its_form_against_hostile_text() {
    let text = written(
        AuditReportFormat::Markdown,
        &[hostile(), AuditRow::from_verdict(2, &changed_host())],
        AuditEnding::Interrupted,
    );
    assert!(!text.contains('\u{202e}') && text.contains("**Incomplete.**"));
    for line in text.lines().filter(|line| line.contains("script")) {
        let outside: String = line.split('`').step_by(2).collect();
        assert!(!outside.contains("script") && !outside.contains("http"), "{line}");
        assert_eq!(line.matches('`').count() % 2, 0, "{line}");
    }
    let mut columns = 0;
    for line in text.lines() {
        if !line.starts_with('|') {
            columns = 0;
            continue;
        }
        let pipes = line.matches('|').count();
        assert!(columns == 0 || pipes == columns, "{line}");
        columns = pipes;
    }
    assert_eq!(text.matches("\n# ").count(), 0);
}

#[test]
fn html_holds_no_foreign_markup() {
    let text = written(
        AuditReportFormat::Html,
        &[hostile(), AuditRow::from_verdict(2, &changed_host())],
        AuditEnding::Interrupted,
    );
    assert!(text.matches("<script").count() == 1 && !text.contains("alert(1)<") && !text.contains('\u{202e}'));
    assert!(text.contains("&lt;script&gt;") && text.contains("Incomplete."));
    for tag in ["article", "table", "ul", "li", "dl", "pre", "code", "tr", "td", "p"] {
        let opened = text.matches(&format!("<{tag}>")).count() + text.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, text.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    for outside in [" src=", "url(", "@import", "<link", "http://e)\"", " style=", " onclick="] {
        assert!(!text.contains(outside), "{outside}");
    }
    for (anchor, _) in text.match_indices(" href=\"") {
        assert!(text[anchor..].starts_with(" href=\"#"), "{}", &text[anchor..anchor + 40]);
    }
}

#[test]
fn csv_cells_are_no_formulas() {
    let text = written(
        AuditReportFormat::Csv,
        &[hostile(), AuditRow::from_verdict(2, &changed_host())],
        AuditEnding::Interrupted,
    );
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 4);
    let columns = lines[0].split(',').count();
    for line in &lines[1..] {
        let cells: Vec<&str> = line.strip_prefix('"').unwrap().strip_suffix('"').unwrap().split("\",\"").collect();
        assert_eq!(cells.len(), columns, "{line}");
        assert!(cells.iter().all(|cell| !cell.starts_with(['=', '+', '-', '@'])), "{line}");
    }
    assert!(lines[1].contains("\"'=x|`a`\\u{a}#") && lines[3].contains("interrupted"));
}

#[test]
fn json_keeps_the_values_and_fits_its_schema() {
    let rows = [hostile(), AuditRow::from_verdict(2, &wrong_checksum()), AuditRow::from_verdict(3, &trusted())];
    let text = written(AuditReportFormat::Json, &rows, AuditEnding::ListFailed("gone".to_owned()));
    assert!(!text.contains('\u{202e}'));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["schema"], &value["complete"]), (&json!(SCHEMA), &json!(false)));
    assert_eq!(value["rows"][0]["input"], HOSTILE);
    assert_eq!(value["counts"]["names"], 3);
    assert_eq!(value["resolution"].as_array().unwrap().len(), 1, "the line that is no name is no incident");
    let schema: Value = serde_json::from_str(include_str!("../../../../schemas/audit.schema.json")).unwrap();
    let validator = jsonschema::options().build(&schema).unwrap();
    let errors: Vec<_> = validator.iter_errors(&value).map(|e| format!("{} {e}", e.instance_path())).collect();
    assert_eq!(errors, [""; 0]);
    let empty: Value = serde_json::from_str(&written(AuditReportFormat::Json, &[], AuditEnding::Complete)).unwrap();
    assert!(validator.is_valid(&empty), "{empty}");
}
