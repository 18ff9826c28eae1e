//! `audit resolution`: compares a governance log with the results of audits.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_audit::governance_log::{GovernanceLog, GovernanceTableLayout, MAX_LOG_BYTES, MalformedLogRow};
use clresolve_audit::log_check::{GovernanceLogCheck, MissingLogRow, NamedLogRow};
use clresolve_core::text::UntrustedText;

use crate::cli::args::AuditResolutionArguments;
use crate::cli::exit::ExitStatus;
use crate::cli::input;
use crate::cli::output::{OutputSink, ResultWriter};

pub(super) fn run(args: &AuditResolutionArguments) -> anyhow::Result<ExitStatus> {
    let read = [("--log", Some(&*args.log)), ("--since", args.since.as_deref()), ("the report", Some(&*args.report))];
    let output = OutputSink::new_unless_input_file(&args.output.out, read)?;
    let log = read_governance_log(&args.log).context("--log")?;
    let earlier = args.since.as_deref().map(super::history::read_earlier_audit_report).transpose()?;
    let check = GovernanceLogCheck::compare_with_reports(
        &log,
        earlier.as_ref(),
        &super::history::read_earlier_audit_report(&args.report)?,
    )?;
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    results.push(&check, |_| format_governance_check(&check, log.form))?;
    results.finish()?;
    Ok(match (check.is_consistent(), check.is_complete()) {
        (false, _) => ExitStatus::Untrusted,
        (true, false) => ExitStatus::Indeterminate,
        (true, true) => ExitStatus::Trusted,
    })
}

fn read_governance_log(file: &Path) -> anyhow::Result<GovernanceLog> {
    let bytes = input::read_file_or_stdin(file, MAX_LOG_BYTES)?;
    if bytes.len() > MAX_LOG_BYTES {
        bail!("{} has more than {MAX_LOG_BYTES} bytes", UntrustedText::new(&input::input_label(file)));
    }
    Ok(GovernanceLog::parse(bytes))
}

/// The findings, and the rows to add in the format of the log.
fn format_governance_check(check: &GovernanceLogCheck, form: GovernanceTableLayout) -> String {
    let mut text: String = check.warnings.iter().map(|warning| warning.clone() + "\n").collect();
    if !check.complete && check.warnings.is_empty() {
        text.push_str("The report is incomplete: what its missing names did is not known.\n");
    }
    for MalformedLogRow { line, column, why } in &check.malformed {
        let _ = writeln!(text, "not read   line {line}, column {column}: {why}");
    }
    for MissingLogRow { name, kind, what, .. } in &check.missing {
        let what: Vec<_> = what.iter().map(|what| UntrustedText::new(what).to_string()).collect();
        let _ = writeln!(text, "missing    {}  {}: {}", UntrustedText::new(name), kind.as_str(), what.join(", "));
    }
    let mut rows = |label: &str, rows: &[NamedLogRow]| {
        for NamedLogRow { line, date, name, kind } in rows {
            let _ = writeln!(text, "{label:<9}  line {line}: {date}  {}  {}", UntrustedText::new(name), kind.as_str());
        }
    };
    rows("not seen", &check.unobserved);
    rows("not known", &check.unknown);
    rows("draft", &check.undecided_rows);
    rows("too late", &check.later);
    for name in &check.undecided {
        let _ = writeln!(text, "not known  {}  indeterminate", UntrustedText::new(name));
    }
    if !check.later.is_empty() {
        text.push_str("A row that is dated after the report counts in the next audit.\n");
    }
    if check.is_consistent() && check.is_complete() {
        text.push_str("Every incident, correction and change that was seen has its row.\n");
    }
    if !check.drafts.is_empty() {
        text.push_str("\nRows to add, once a person has decided:\n\n");
        text.push_str(&form.table_head_markdown());
        check.drafts.iter().for_each(|draft| {
            let _ = writeln!(text, "{}", draft.markdown(form));
        });
    }
    text
}
