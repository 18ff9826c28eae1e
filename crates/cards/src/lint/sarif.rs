//! Reports as SARIF 2.1.0 (OASIS), which code hosts and editors display next to the text.

use serde_json::{Value, json};

use super::{CardLintReport, DocumentFinding};
use clresolve_core::json::locate;
use clresolve_core::reason::ReasonCode;
use clresolve_core::sarif::{SCHEMA, VERSION, sarif_level, sarif_message, sarif_tool};

/// One SARIF run over documents, each with its URI reference, its text and its report.
pub fn sarif_report<'r>(reports: impl IntoIterator<Item = (&'r str, &'r str, &'r CardLintReport)>) -> Value {
    // In the order in which the rules are listed.
    let mut rules = Vec::new();
    let mut results = Vec::new();
    for (uri, text, report) in reports {
        results.extend(report.findings.iter().map(|finding| sarif_result(finding, uri, text, &mut rules)));
    }
    json!({
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [{
            "tool": sarif_tool(rules),
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// The index of the code's rule, which is listed if it is not yet.
fn rule_index_or_insert(rules: &mut Vec<ReasonCode>, code: ReasonCode) -> usize {
    rules.iter().position(|other| *other == code).unwrap_or_else(|| {
        rules.push(code);
        rules.len() - 1
    })
}

fn sarif_result(finding: &DocumentFinding, uri: &str, text: &str, rules: &mut Vec<ReasonCode>) -> Value {
    let mut location = json!({"physicalLocation": {"artifactLocation": {"uri": uri}}});
    if let Some(region) = sarif_region(finding, text) {
        location["physicalLocation"]["region"] = region;
    }
    if let Some(pointer) = &finding.pointer {
        location["logicalLocations"] = json!([{"fullyQualifiedName": pointer, "kind": "member"}]);
    }
    json!({
        "ruleId": finding.code.slug(),
        "ruleIndex": rule_index_or_insert(rules, finding.code),
        "level": sarif_level(finding.effect),
        "message": sarif_message(&finding.message, finding.expected.as_deref(), finding.observed.as_deref()),
        "locations": [location],
    })
}

fn sarif_region(finding: &DocumentFinding, text: &str) -> Option<Value> {
    let (line, column) = (finding.line?, finding.column?);
    let end = finding.span.as_ref().map_or((line, column), |span| locate::line_and_column(text, span.end));
    Some(json!({"startLine": line, "startColumn": column, "endLine": end.0, "endColumn": end.1}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::lint_document;
    use crate::system::{CardLintContext, CardSystem};
    use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};

    #[test]
    fn a_finding_has_its_rule_and_its_region() {
        let text = "{\n  \"ens\": \"A.eth\"\n}\n";
        let profile = ConformanceProfiles::builtin().get(DEFAULT).expect("built in");
        let report =
            lint_document(text.as_bytes(), Some(CardSystem::CommandLayer), &CardLintContext::from_profile(&profile));
        let log = sarif_report([("cards/a.json", text, &report)]);
        let run = &log["runs"][0];
        let result = run["results"].as_array().expect("a list").iter().find(|r| r["ruleId"] == "card-ens-mismatch");
        let result = result.expect("the name is not in normal form");
        let rule = &run["tool"]["driver"]["rules"][usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], "card-ens-mismatch");
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "cards/a.json");
        assert_eq!(place["region"], json!({"startLine": 2, "startColumn": 10, "endLine": 2, "endColumn": 17}));
        assert_eq!(result["level"], "error");
    }
}
