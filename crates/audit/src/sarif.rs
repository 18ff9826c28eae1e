//! The report in SARIF 2.1.0 (OASIS), for code hosts: a result for each finding, at the name's line in the list.

use std::io::{self, Write};

use clresolve_core::sarif::{SCHEMA, VERSION, sarif_level, sarif_message, sarif_tool};
use serde_json::{Value, json};

use super::json::{JsonArrayWriter, safe_json_line};
use super::waiver::{Waiver, WaiverStatus};
use super::{AuditReport, AuditRow, AuditRowSource};
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::text::UntrustedText;

/// Identifies a finding across audits by name, code, location and its index among equal ones.
const FINGERPRINT: &str = "clresolve/finding/v1";

pub(super) fn write_sarif_report(
    report: &AuditReport,
    rows: &dyn AuditRowSource,
    out: &mut dyn Write,
) -> io::Result<()> {
    let rules = report_codes(report);
    writeln!(out, "{{\n\"$schema\": {},\n\"version\": {},", safe_json_line(&SCHEMA)?, safe_json_line(&VERSION)?)?;
    let mut tool = sarif_tool(rules.iter().copied());
    for member in ["version", "semanticVersion"] {
        tool["driver"][member] = UntrustedText::new(&report.tool.version).to_string().into();
    }
    writeln!(out, "\"runs\": [{{\n\"tool\": {},", safe_json_line(&tool)?)?;
    writeln!(out, "\"invocations\": [{}],", safe_json_line(&sarif_invocation(report))?)?;
    writeln!(out, "\"properties\": {},", safe_json_line(&sarif_properties(report)?)?)?;
    let mut list = JsonArrayWriter::start(out, "results")?;
    rows.for_each_row(&mut |row| {
        (0..row.reasons.len()).try_for_each(|index| list.push(&sarif_result(report, &rules, row, index)))
    })?;
    list.end("\n}]\n}")
}

/// The distinct codes of the report.
fn report_codes(report: &AuditReport) -> Vec<ReasonCode> {
    let mut rules: Vec<ReasonCode> = report.counts.sorted_summaries().into_iter().map(|group| group.code).collect();
    rules.sort_unstable_by_key(|code| code.slug());
    rules.dedup();
    rules
}

fn sarif_invocation(report: &AuditReport) -> Value {
    let notice = |level: &str, text: &str| json!({"level": level, "message": sarif_message(text, None, None)});
    let cut = report.warning.iter().map(|warning| notice("error", warning));
    let idle = report.waivers.as_slice().iter().filter(|applied| applied.status != WaiverStatus::Accepted);
    let idle = idle.map(|applied| notice("warning", &applied.to_string()));
    let notices: Vec<Value> = cut.chain(idle).collect();
    json!({"executionSuccessful": report.is_complete(), "toolExecutionNotifications": notices})
}

/// The scope and rules of the audit, and its times.
fn sarif_properties(report: &AuditReport) -> io::Result<Value> {
    let mut properties = serde_json::to_value(&report.scope)?;
    properties["generated_at"] = json!(report.generated_at);
    properties["block_time"] = json!(report.last_block_time());
    Ok(properties)
}

/// The reason of a row at `index`.
fn sarif_result(report: &AuditReport, rules: &[ReasonCode], row: &AuditRow, index: usize) -> Value {
    let reason = &row.reasons[index];
    let sentence = format!("{}: {}", row.name(), reason.message);
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": row.name(), "kind": "resource"}]});
    if let Some(physical) = physical_location(report, row) {
        location["physicalLocation"] = physical;
    }
    let mut result = json!({
        "ruleId": reason.code.slug(),
        "ruleIndex": rules.iter().position(|code| *code == reason.code),
        "level": sarif_level(reason.effect),
        "message": sarif_message(&sentence, reason.expected.as_deref(), reason.observed.as_deref()),
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: result_fingerprint(row, index)},
        "properties": {"more_reasons": row.more_reasons},
    });
    // Either every result of a run has `suppressions`, or none has (SARIF 3.27.23).
    if !report.waivers.as_slice().is_empty() {
        let accepting = report.waivers.accepting_waiver(row, reason);
        result["suppressions"] = accepting.into_iter().map(sarif_suppression).collect();
    }
    result
}

fn sarif_suppression(waiver: &Waiver) -> Value {
    let justification = format!("{} (until {})", waiver.reason, waiver.until);
    json!({"kind": "external", "status": "accepted", "justification": UntrustedText::new(&justification).to_string()})
}

/// The location in the list's file. Entries of a registry have no line.
fn physical_location(report: &AuditReport, row: &AuditRow) -> Option<Value> {
    if row.registry_finding_code().is_some() {
        return None;
    }
    if row.registry_only_entry().is_some() {
        let registry = report.scope.registry.as_ref()?;
        return Some(json!({"artifactLocation": {"uri": registry.manifest}}));
    }
    let list = report.list.file.as_ref()?;
    Some(json!({"artifactLocation": {"uri": list}, "region": {"startLine": row.line}}))
}

fn result_fingerprint(row: &AuditRow, index: usize) -> String {
    let Reason { code, place, .. } = &row.reasons[index];
    let same = row.reasons[..index].iter().filter(|other| other.code == *code && other.place == *place).count();
    let finding = [row.name(), code.slug(), place.as_deref().unwrap_or_default(), &same.to_string()].join("\0");
    Digest::compute(finding.as_bytes()).to_hex()
}
