//! The report for programs: `schemas/audit.schema.json`. Each row is one line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::past::{DIGEST_LINE, END};
use super::registry::RegistryChainMismatch;
use super::words::fixer_slug;
use super::{AuditReport, AuditRowSource, LogRowDraft, SCHEMA, page};
use clresolve_core::digest::Digester;
use clresolve_core::text::escape_unsafe_json;

pub(super) fn write_json_report(
    report: &AuditReport,
    rows: &dyn AuditRowSource,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut digesting = DigestWriter { out, written: Digester::default() };
    write_report_lines(report, rows, &mut digesting)?;
    let DigestWriter { out, written } = digesting;
    writeln!(out, "{DIGEST_LINE}{}", safe_json_line(&written.finalize())?)?;
    out.write_all(END)
}

/// Writes all lines except those with the digest over them.
fn write_report_lines(report: &AuditReport, rows: &dyn AuditRowSource, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{{\n\"schema\": {},", safe_json_line(&SCHEMA)?)?;
    writeln!(out, "\"tool\": {},", safe_json_line(&report.tool)?)?;
    writeln!(out, "\"generated_at\": {},", safe_json_line(&report.generated_at)?)?;
    writeln!(out, "\"block_time\": {},", safe_json_line(&report.last_block_time())?)?;
    writeln!(out, "\"complete\": {},", report.is_complete())?;
    writeln!(out, "\"warning\": {},", safe_json_line(&report.warning)?)?;
    writeln!(out, "\"scope\": {},", safe_json_line(&report.scope)?)?;
    writeln!(out, "\"list\": {},", safe_json_line(&report.list)?)?;
    writeln!(out, "\"flags\": {},", safe_json_line(&report.flags)?)?;
    writeln!(out, "\"counts\": {},", safe_json_line(&counts_json(report))?)?;
    writeln!(out, "\"waivers\": {},", safe_json_line(&report.waivers)?)?;
    writeln!(out, "\"reasons\": {},", safe_json_line(&groups_json(report))?)?;
    writeln!(out, "\"schema_layers\": {},", safe_json_line(&report.schema_layers)?)?;
    let mut list = JsonArrayWriter::start(out, "rows")?;
    rows.for_each_row(&mut |row| list.push(row))?;
    list.end(",")?;
    let mut list = JsonArrayWriter::start(out, "resolution")?;
    rows.for_each_row(&mut |row| match LogRowDraft::from_row(report, row) {
        Some(draft) => list.push(&draft),
        None => Ok(()),
    })?;
    list.end(",")?;
    write_registry_comparison(report, rows, out)?;
    writeln!(out, "\"before\": {},", safe_json_line(&report.before)?)?;
    writeln!(out, "\"earlier\": {},", safe_json_line(&report.earlier)?)?;
    writeln!(out, "\"since\": {},", safe_json_line(&report.since)?)
}

/// The names on which registry and chain disagree; null if no registry is audited.
fn write_registry_comparison(report: &AuditReport, rows: &dyn AuditRowSource, out: &mut dyn Write) -> io::Result<()> {
    if report.scope.registry.is_none() {
        return writeln!(out, "\"registry\": null,");
    }
    let counts = &report.counts.registry;
    writeln!(out, "\"registry\": {{\n\"agreeing\": {},", counts.agreeing_names())?;
    for finding in RegistryChainMismatch::ALL {
        writeln!(out, "{}: {},", safe_json_line(&finding.json_member())?, counts.finding_count(finding))?;
    }
    let mut list = JsonArrayWriter::start(out, "findings")?;
    page::for_each_registry_mismatch(rows, &mut |finding, row| {
        let entry = row.registry.and_then(|listing| listing.entry);
        list.push(&json!({"name": row.name(), "finding": finding, "entry": entry}))
    })?;
    list.end("\n},")
}

/// A writer that digests what it forwards.
struct DigestWriter<'a> {
    out: &'a mut dyn Write,
    written: Digester,
}

impl Write for DigestWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = self.out.write(bytes)?;
        self.written.update(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn counts_json(report: &AuditReport) -> Value {
    let counts = &report.counts;
    json!({
        "names": counts.names,
        "listed_again": counts.listed_again,
        "trusted": counts.trusted,
        "untrusted": counts.untrusted,
        "indeterminate": counts.indeterminate,
        "drifting": counts.drifting,
        "holder_unreadable": counts.holder_unreadable,
        "near_misses": counts.near_misses,
        "blocks": counts.blocks.map(|(first, last)| json!({"first": first, "last": last})),
        "checked": counts.checked.map(|(first, last)| json!({"first": first, "last": last})),
    })
}

fn groups_json(report: &AuditReport) -> Vec<Value> {
    let groups = report.counts.sorted_summaries();
    let group = |group: &super::ReasonSummary| {
        let entry = group.code.entry();
        json!({
            "code": group.code,
            "effect": group.effect,
            "requirement": Some(entry.requirement).filter(|r| !r.is_empty()),
            "fixer": fixer_slug(group.code),
            "title": entry.title,
            "names": group.names,
            "examples": group.examples,
        })
    };
    groups.into_iter().map(group).collect()
}

/// An array with one element per line.
pub(super) struct JsonArrayWriter<'a> {
    out: &'a mut dyn Write,
    empty: bool,
}

impl<'a> JsonArrayWriter<'a> {
    pub(super) fn start(out: &'a mut dyn Write, name: &str) -> io::Result<Self> {
        write!(out, "\"{name}\": [")?;
        Ok(Self { out, empty: true })
    }

    pub(super) fn push(&mut self, value: &impl Serialize) -> io::Result<()> {
        let separator = if std::mem::take(&mut self.empty) { "\n" } else { ",\n" };
        write!(self.out, "{separator}{}", safe_json_line(value)?)
    }

    pub(super) fn end(self, after: &str) -> io::Result<()> {
        let before = if self.empty { "" } else { "\n" };
        writeln!(self.out, "{before}]{after}")
    }
}

/// JSON without characters that could mislead a reader of a terminal.
pub(super) fn safe_json_line(value: &impl Serialize) -> io::Result<String> {
    Ok(escape_unsafe_json(&serde_json::to_string(value)?))
}
