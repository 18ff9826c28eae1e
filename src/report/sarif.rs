//! The report in SARIF 2.1.0 (OASIS), for code hosts: a result for each finding, at the name's line of the list.

use std::io::{self, Write};

use clresolve_core::sarif::{SCHEMA, VERSION, level, message, tool};
use serde_json::{Value, json};

use super::json::{List, line};
use super::{Report, Row, Rows};
use crate::digest::Digest;
use crate::reason::{Code, Reason};

/// What tells a finding from every other of its list, whatever was observed: the next audit finds it again by this.
const FINGERPRINT: &str = "clresolve/finding/v1";

pub(super) fn write(report: &Report, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
    let rules = rules(report);
    writeln!(out, "{{\n\"$schema\": {},\n\"version\": {},", line(&SCHEMA)?, line(&VERSION)?)?;
    writeln!(out, "\"runs\": [{{\n\"tool\": {},", line(&tool(rules.iter().copied()))?)?;
    writeln!(out, "\"invocations\": [{}],", line(&invocation(report))?)?;
    writeln!(out, "\"properties\": {},", line(&report.scope)?)?;
    let mut list = List::start(out, "results")?;
    rows.each(&mut |row| row.reasons.iter().try_for_each(|reason| list.push(&result(report, &rules, row, reason))))?;
    list.end("\n}]\n}")
}

/// The codes that occur, each once.
fn rules(report: &Report) -> Vec<Code> {
    let mut rules: Vec<Code> = report.tally.groups().into_iter().map(|group| group.code).collect();
    rules.sort_unstable_by_key(|code| code.slug());
    rules.dedup();
    rules
}

fn invocation(report: &Report) -> Value {
    let warning = report.ending.warning();
    let notices: Vec<Value> =
        warning.iter().map(|warning| json!({"level": "error", "message": message(warning, None, None)})).collect();
    json!({"executionSuccessful": warning.is_none(), "toolExecutionNotifications": notices})
}

fn result(report: &Report, rules: &[Code], row: &Row, reason: &Reason) -> Value {
    let sentence = format!("{}: {}", row.name(), reason.message);
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": row.name(), "kind": "resource"}]});
    if let Some(list) = &report.list {
        location["physicalLocation"] =
            json!({"artifactLocation": {"uri": list}, "region": {"startLine": row.line}});
    }
    json!({
        "ruleId": reason.code.slug(),
        "ruleIndex": rules.iter().position(|code| *code == reason.code),
        "level": level(reason.effect),
        "message": message(&sentence, reason.expected.as_deref(), reason.observed.as_deref()),
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: fingerprint(row, reason)},
    })
}

fn fingerprint(row: &Row, reason: &Reason) -> String {
    let finding = [row.name(), reason.code.slug(), reason.place.as_deref().unwrap_or_default()].join("\0");
    Digest::of(finding.as_bytes()).hex()
}
