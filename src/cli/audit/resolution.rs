//! `audit resolution`: compares a governance log with the results of audits.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};
use clresolve_audit::governance_log::{Form, GovernanceLog, MAX_LOG_BYTES, MalformedRow};
use clresolve_audit::log_check::{LogCheck, Missing, NamedRow};
use clresolve_core::text::Foreign;

use crate::cli::args::AuditResolutionArgs;
use crate::cli::exit::Exit;
use crate::cli::input;
use crate::cli::output::{Output, Results};

pub(super) fn run(args: &AuditResolutionArgs) -> anyhow::Result<Exit> {
    let read = [("--log", Some(&*args.log)), ("--since", args.since.as_deref()), ("the report", Some(&*args.report))];
    let output = Output::apart_from(&args.output.out, read)?;
    let log = log(&args.log).context("--log")?;
    let earlier = args.since.as_deref().map(super::history::past).transpose()?;
    let check = LogCheck::of(&log, earlier.as_ref(), &super::history::past(&args.report)?)?;
    let mut results = Results::one(output, args.output.form());
    results.push(&check, |_| people(&check, log.form))?;
    results.finish()?;
    Ok(match (check.holds(), check.is_complete()) {
        (false, _) => Exit::Untrusted,
        (true, false) => Exit::Indeterminate,
        (true, true) => Exit::Trusted,
    })
}

fn log(file: &Path) -> anyhow::Result<GovernanceLog> {
    let bytes = input::read(file, MAX_LOG_BYTES)?;
    if bytes.len() > MAX_LOG_BYTES {
        bail!("{} has more than {MAX_LOG_BYTES} bytes", Foreign::new(&input::name(file)));
    }
    Ok(GovernanceLog::parse(bytes))
}

/// The findings, and the rows to add in the format of the log.
fn people(check: &LogCheck, form: Form) -> String {
    let mut text: String = check.warnings.iter().map(|warning| warning.clone() + "\n").collect();
    if !check.complete && check.warnings.is_empty() {
        text.push_str("The report is incomplete: what its missing names did is not known.\n");
    }
    for MalformedRow { line, column, why } in &check.malformed {
        let _ = writeln!(text, "not read   line {line}, column {column}: {why}");
    }
    for Missing { name, kind, what, .. } in &check.missing {
        let what: Vec<_> = what.iter().map(|what| Foreign::new(what).to_string()).collect();
        let _ = writeln!(text, "missing    {}  {}: {}", Foreign::new(name), kind.as_str(), what.join(", "));
    }
    let mut rows = |label: &str, rows: &[NamedRow]| {
        for NamedRow { line, date, name, kind } in rows {
            let _ = writeln!(text, "{label:<9}  line {line}: {date}  {}  {}", Foreign::new(name), kind.as_str());
        }
    };
    rows("not seen", &check.unobserved);
    rows("not known", &check.unknown);
    rows("draft", &check.undecided_rows);
    rows("too late", &check.later);
    for name in &check.undecided {
        let _ = writeln!(text, "not known  {}  indeterminate", Foreign::new(name));
    }
    if !check.later.is_empty() {
        text.push_str("A row that is dated after the report counts in the next audit.\n");
    }
    if check.holds() && check.is_complete() {
        text.push_str("Every incident, correction and change that was seen has its row.\n");
    }
    if !check.drafts.is_empty() {
        text.push_str("\nRows to add, once a person has decided:\n\n");
        text.push_str(&form.head());
        check.drafts.iter().for_each(|draft| {
            let _ = writeln!(text, "{}", draft.markdown(form));
        });
    }
    text
}
