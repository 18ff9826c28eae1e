//! `audit diff`: the changes between two reports.

use std::fmt::Write as _;

use clresolve_audit::AuditDifference;
use clresolve_audit::difference::{AuditChange, AuditChangeKind, ReportComparisonOutcome};
use clresolve_core::text::UntrustedText;

use crate::cli::args::AuditDiffArguments;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{OutputSink, ResultWriter};

/// The placeholder for an absent value.
const NOTHING: &str = "nothing";

pub(super) fn run(args: &AuditDiffArguments) -> anyhow::Result<ExitStatus> {
    let read = [&args.before, &args.after].map(|report| ("a report", Some(&**report)));
    let output = OutputSink::new_unless_input_file(&args.output.out, read)?;
    let (before, after) = (
        super::history::read_earlier_audit_report(&args.before)?,
        super::history::read_earlier_audit_report(&args.after)?,
    );
    let difference = AuditDifference::between(&before, &after)?;
    let mut results = ResultWriter::for_single_result(output, args.output.output_format());
    results.push(&difference, |_| format_audit_changes(&difference))?;
    results.finish()?;
    Ok(difference.outcome(&args.fail_on).into())
}

impl From<ReportComparisonOutcome> for ExitStatus {
    fn from(outcome: ReportComparisonOutcome) -> Self {
        match outcome {
            ReportComparisonOutcome::Same => Self::Trusted,
            ReportComparisonOutcome::Differs => Self::Untrusted,
            ReportComparisonOutcome::Undecided => Self::Indeterminate,
        }
    }
}

/// The changes for people, name by name.
fn format_audit_changes(difference: &AuditDifference) -> String {
    let mut text = String::new();
    for warning in difference.warnings() {
        let _ = writeln!(text, "{warning}");
    }
    if difference.changes.is_empty() {
        let nothing =
            if difference.is_complete() { "Nothing changed.\n" } else { "No change was found in the names of both.\n" };
        return text + nothing;
    }
    for of_name in difference.changes.chunk_by(|one, next| one.name == next.name) {
        let _ = writeln!(text, "{}", UntrustedText::new(&of_name[0].name));
        for AuditChange { kind, before, after, .. } in of_name {
            let value = |value: &Option<String>| UntrustedText::new(value.as_deref().unwrap_or(NOTHING)).to_string();
            let _ = match kind {
                AuditChangeKind::Added | AuditChangeKind::Removed | AuditChangeKind::UpdateMissing => {
                    writeln!(text, "  {kind:<14}  {}", value(if after.is_some() { after } else { before }))
                }
                _ => writeln!(text, "  {kind:<14}  {} → {}", value(before), value(after)),
            };
        }
    }
    text
}
