//! The format for code hosts.

use super::*;

/// Whether a log satisfies the schema of SARIF 2.1.0, except its pattern for language tags, which is not a regular
/// expression and which no log uses.
pub(super) fn fits_sarif(text: &str) -> Result<(), String> {
    let schema = include_str!("../../../../tests/sarif/sarif-2.1.0-rtm.5.json").replace("{2}]?$", "{2}$");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let log = serde_json::from_str(text).expect("JSON");
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema");
    validator.validate(&log).map_err(|error| format!("{}: {error}", error.instance_path()))
}

#[test]
fn sarif_fits_the_schema_of_sarif() {
    let mut long = AuditRow::from_verdict(9, &changed_host());
    long.reasons.extend(std::iter::repeat_n(long.reasons.clone(), 20).flatten());
    let full = [hostile(), AuditRow::from_verdict(7, &changed_host()), AuditRow::from_verdict(8, &trusted()), long];
    for rows in [&full[..], &full[..1], &[]] {
        for ending in
            [AuditEnding::Complete, AuditEnding::Interrupted, AuditEnding::ListFailed("\u{202e}<b> 'gone'".to_owned())]
        {
            assert_eq!(fits_sarif(&written(AuditReportFormat::Sarif, rows, ending)), Ok(()));
        }
    }
    let other = written(AuditReportFormat::Sarif, &full, AuditEnding::Complete).replace("\"ruleId\"", "\"rule\"");
    assert!(fits_sarif(&other).is_err(), "the schema permits no other member");
}

#[test]
fn sarif_locates_the_line_and_fingerprints_the_finding() {
    let mut twice = AuditRow::from_verdict(7, &changed_host());
    twice.reasons.extend(twice.reasons.clone());
    let rows = [hostile(), twice, AuditRow::from_verdict(8, &trusted())];
    let text = written(AuditReportFormat::Sarif, &rows, AuditEnding::Interrupted);
    assert!(!text.contains('\u{202e}'));
    let log: Value = serde_json::from_str(&text).expect("JSON");
    let run = &log["runs"][0];
    assert_eq!((&log["version"], &run["invocations"][0]["executionSuccessful"]), (&json!("2.1.0"), &json!(false)));
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["version"], env!("CARGO_PKG_VERSION"));
    for rule in driver["rules"].as_array().expect("a list") {
        let help = format!("urn:clresolve:reason:{}", rule["id"].as_str().expect("a code"));
        assert_eq!(rule["helpUri"], help);
    }
    let results = run["results"].as_array().expect("a list");
    let count = rows.iter().map(|row| row.reasons.len()).sum::<usize>();
    assert_eq!(results.len(), count);
    for result in results {
        let index = result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok()).expect("an index");
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
    }
    let message = results[0]["message"]["text"].as_str().expect("a message");
    assert!(message.contains("\\[l\\](http://e)"), "{message}");
    let mismatch = results.iter().find(|result| result["ruleId"] == "cid-mismatch").expect("the host's");
    let place = &mismatch["locations"][0];
    assert_eq!(
        place["physicalLocation"],
        json!({"artifactLocation": {"uri": "names.txt"}, "region": {"startLine": 7}})
    );
    assert_eq!(place["logicalLocations"][0]["fullyQualifiedName"], "a.eth");
    let mut fingerprints: Vec<_> = results.iter().map(|result| result["partialFingerprints"].to_string()).collect();
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), count, "each finding has its own");
    let empty: Value =
        serde_json::from_str(&written(AuditReportFormat::Sarif, &[], AuditEnding::Complete)).expect("JSON");
    assert_eq!(empty["runs"][0]["results"], json!([]));
}
