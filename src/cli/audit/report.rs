//! Reports that are written, and what they are worth.

use std::io::{self, BufWriter, Write};

use clresolve_audit::{AuditCounts, Ending, Format, ListOfNames, PublishedSchema, Report, Scope};
use clresolve_core::text::Foreign;

use super::history::History;
use super::rows::Spool;
use crate::cli::args::ReportFormat;
use crate::cli::exit::Exit;
use crate::cli::output::{Output, Unwritable};

/// As for several names, the worst wins; an audit that did not reach the end of its list says so.
pub(super) fn exit(counts: &AuditCounts, ending: &Ending) -> Exit {
    let worst = match counts {
        AuditCounts { untrusted: 1.., .. } => Exit::Untrusted,
        AuditCounts { indeterminate: 1.., .. } => Exit::Indeterminate,
        _ => Exit::Trusted,
    };
    match ending {
        Ending::Complete => worst,
        Ending::ListFailed(_) => Exit::Usage,
        Ending::DiskFull(_) => Exit::Unwritable,
        Ending::Interrupted => Exit::Interrupted,
        Ending::RegistryUnread(_) => worst.max(Exit::Indeterminate),
    }
}

/// What a report says beside its rows.
pub(super) struct About {
    pub(super) scope: Scope,
    pub(super) ending: Ending,
    pub(super) list: ListOfNames,
    pub(super) schema_layers: Option<Vec<PublishedSchema>>,
    pub(super) flags: Vec<String>,
}

impl About {
    /// Writes the report of these rows, compared with what earlier audits found; its exit code.
    pub(super) fn write(
        self,
        counts: AuditCounts,
        rows: &Spool,
        history: &History,
        format: Format,
        output: &mut Output,
    ) -> anyhow::Result<Exit> {
        let Self { scope, ending, list, schema_layers, flags } = self;
        let mut exit = exit(&counts, &ending);
        if let Some(warning) = ending.warning() {
            anstream::eprintln!("clresolve: {}", Foreign::new(&warning));
        }
        let since = history.changes(&scope, &ending, rows, schema_layers.as_deref())?;
        if let Some(since) = &since {
            exit = exit.max(since.outcome(&history.fail_on).into());
        }
        let (before, earlier) = (history.before(), history.counts());
        let report = Report { scope, counts, ending, since, before, earlier, list, schema_layers, flags };
        let mut out = BufWriter::new(ToOutput(output));
        let written = report.write(format, rows, &mut out).and_then(|()| out.flush());
        written.map_err(|error| Unwritable::new("the report", error))?;
        Ok(exit)
    }
}

/// The results' stream as a writer.
struct ToOutput<'a>(&'a mut Output);

impl Write for ToOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<ReportFormat> for Format {
    fn from(format: ReportFormat) -> Self {
        match format {
            ReportFormat::Md => Self::Markdown,
            ReportFormat::Json => Self::Json,
            ReportFormat::Csv => Self::Csv,
            ReportFormat::Html => Self::Html,
            ReportFormat::Sarif => Self::Sarif,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_counts_and_an_interrupt_above_all() {
        let counts = |untrusted, indeterminate| {
            let mut counts = AuditCounts::default();
            (counts.untrusted, counts.indeterminate) = (untrusted, indeterminate);
            counts
        };
        assert_eq!(exit(&counts(0, 0), &Ending::Complete), Exit::Trusted);
        assert_eq!(exit(&counts(0, 2), &Ending::Complete), Exit::Indeterminate);
        assert_eq!(exit(&counts(1, 2), &Ending::Complete), Exit::Untrusted);
        assert_eq!(exit(&counts(1, 2), &Ending::ListFailed(String::new())), Exit::Usage);
        assert_eq!(exit(&counts(1, 2), &Ending::DiskFull(String::new())), Exit::Unwritable);
        assert_eq!(exit(&counts(0, 0), &Ending::RegistryUnread(String::new())), Exit::Indeterminate);
        assert_eq!(exit(&counts(1, 2), &Ending::Interrupted), Exit::Interrupted);
    }
}
