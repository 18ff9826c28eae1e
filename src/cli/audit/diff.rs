//! `audit diff`: the changes between two reports.

use std::fmt::Write as _;

use clresolve_audit::Difference;
use clresolve_audit::difference::{Change, Comparison, Kind};
use clresolve_core::text::Foreign;

use crate::cli::args::AuditDiffArgs;
use crate::cli::exit::Exit;
use crate::cli::output::{Output, Results};

/// The placeholder for an absent value.
const NOTHING: &str = "nothing";

pub(super) fn run(args: &AuditDiffArgs) -> anyhow::Result<Exit> {
    let read = [&args.before, &args.after].map(|report| ("a report", Some(&**report)));
    let output = Output::apart_from(&args.output.out, read)?;
    let (before, after) = (super::history::past(&args.before)?, super::history::past(&args.after)?);
    let difference = Difference::between(&before, &after)?;
    let mut results = Results::one(output, args.output.form());
    results.push(&difference, |_| people(&difference))?;
    results.finish()?;
    Ok(difference.outcome(&args.fail_on).into())
}

impl From<Comparison> for Exit {
    fn from(outcome: Comparison) -> Self {
        match outcome {
            Comparison::Same => Self::Trusted,
            Comparison::Differs => Self::Untrusted,
            Comparison::Undecided => Self::Indeterminate,
        }
    }
}

/// The changes for people, name by name.
fn people(difference: &Difference) -> String {
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
        let _ = writeln!(text, "{}", Foreign::new(&of_name[0].name));
        for Change { kind, before, after, .. } in of_name {
            let value = |value: &Option<String>| Foreign::new(value.as_deref().unwrap_or(NOTHING)).to_string();
            let _ = match kind {
                Kind::Added | Kind::Removed | Kind::UpdateMissing => {
                    writeln!(text, "  {kind:<14}  {}", value(if after.is_some() { after } else { before }))
                }
                _ => writeln!(text, "  {kind:<14}  {} → {}", value(before), value(after)),
            };
        }
    }
    text
}
