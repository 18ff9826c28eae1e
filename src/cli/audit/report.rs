//! Writes reports, and determines the exit status.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use clresolve_audit::waiver::WaiverStatus;
use clresolve_audit::{AuditCounts, Ending, Format, ListOfNames, Report, Rows, SchemaRow, Scope, Waiver, Waivers};
use clresolve_core::state::State;
use clresolve_core::text::Foreign;
use clresolve_verdict::verdict::Tool;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::history::History;
use super::rows::Spool;
use crate::cli::args::{ReportFormat, ReportOutputArgs};
use crate::cli::exit::Exit;
use crate::cli::notice;
use crate::cli::output::{Output, Unwritable};

const UNREADABLE: &str = "cannot read the scratch file";

/// As for several names, the worst state wins. An incomplete audit has its own status.
pub(super) fn exit(worst: State, ending: &Ending) -> Exit {
    let worst = Exit::from(worst);
    match ending {
        Ending::Complete => worst,
        Ending::ListFailed(_) => Exit::Usage,
        Ending::DiskFull(_) => Exit::Unwritable,
        Ending::Interrupted => Exit::Interrupted,
        Ending::RegistryUnread(_) => worst.max(Exit::Indeterminate),
    }
}

/// The contents of a report besides its rows.
pub(super) struct About {
    pub(super) scope: Scope,
    pub(super) ending: Ending,
    pub(super) list: ListOfNames,
    pub(super) schema_layers: Option<Vec<SchemaRow>>,
    pub(super) flags: Vec<String>,
    pub(super) waivers: Vec<Waiver>,
    pub(super) generated_at: Timestamp,
}

impl About {
    /// Writes the report of these rows and its comparison with earlier audits. Returns the exit status.
    pub(super) fn write(
        self,
        counts: AuditCounts,
        rows: &Spool,
        history: &History,
        outputs: &mut Outputs,
    ) -> anyhow::Result<Exit> {
        let Self { scope, ending, list, schema_layers, flags, waivers, generated_at } = self;
        let today = generated_at.to_zoned(TimeZone::UTC).date();
        let waivers = Waivers::apply(waivers, today, rows).context(UNREADABLE)?;
        let mut exit = exit(waivers.worst_state(&counts, rows).context(UNREADABLE)?, &ending);
        let warning = ending.warning();
        if let Some(warning) = &warning {
            anstream::eprintln!("clresolve: {}", Foreign::new(warning));
        }
        for idle in waivers.all().iter().filter(|applied| applied.status != WaiverStatus::Accepted) {
            notice::note(format_args!("clresolve: {idle}"));
        }
        let since = history.changes(&scope, &ending, rows, schema_layers.as_deref())?;
        if let Some(since) = &since {
            exit = exit.max(since.outcome(&history.fail_on).into());
        }
        let (before, earlier) = (history.before(), history.counts());
        let (tool, generated_at) = (Tool::default(), Some(generated_at));
        let report = Report {
            tool,
            generated_at,
            scope,
            counts,
            warning,
            since,
            before,
            earlier,
            list,
            schema_layers,
            flags,
            waivers,
        };
        outputs.write(&report, rows)?;
        Ok(exit)
    }
}

/// The formats of a report, each with its output.
pub(super) struct Outputs(Vec<(Format, Output)>);

impl Outputs {
    /// Opens the outputs that the arguments name. None of them may be an input file.
    ///
    /// # Errors
    /// If an output is an input file or cannot be written, or if several formats would go to standard output.
    pub(super) fn of<'a>(
        args: &ReportOutputArgs,
        read: impl IntoIterator<Item = (&'a str, Option<&'a Path>)> + Clone,
    ) -> anyhow::Result<Self> {
        let output = |(format, out): (ReportFormat, _)| Ok((format.into(), Output::apart_from(&out, read.clone())?));
        args.targets()?.into_iter().map(output).collect::<anyhow::Result<_>>().map(Self)
    }

    /// Writes a report in each format.
    ///
    /// # Errors
    /// If an output cannot be written.
    pub(super) fn write(&mut self, report: &Report, rows: &dyn Rows) -> Result<(), Unwritable> {
        for (format, output) in &mut self.0 {
            let mut out = BufWriter::new(ToOutput(output));
            let written = report.write(*format, rows, &mut out).and_then(|()| out.flush());
            written.map_err(|error| Unwritable::new("the report", error))?;
        }
        Ok(())
    }

    /// Whether the reader of an output has closed the pipe.
    pub(super) fn is_gone(&self) -> bool {
        self.0.iter().any(|(_, output)| output.is_gone())
    }

    /// Moves the finished files into place.
    ///
    /// # Errors
    /// If a file cannot be written, for example because the disk is full.
    pub(super) fn finish(self) -> Result<(), Unwritable> {
        self.0.into_iter().try_for_each(|(_, output)| output.finish())
    }
}

/// Writes to an output through [`Write`].
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
    use clresolve_audit::Row;

    #[test]
    fn the_worst_state_counts_and_an_interrupt_above_all() {
        let no_rows = Vec::<Row>::new();
        let exit = |untrusted, indeterminate, ending| {
            let mut counts = AuditCounts::default();
            (counts.untrusted, counts.indeterminate) = (untrusted, indeterminate);
            let worst = Waivers::default().worst_state(&counts, &no_rows).expect("rows in memory");
            exit(worst, &ending)
        };
        assert_eq!(exit(0, 0, Ending::Complete), Exit::Trusted);
        assert_eq!(exit(0, 2, Ending::Complete), Exit::Indeterminate);
        assert_eq!(exit(1, 2, Ending::Complete), Exit::Untrusted);
        assert_eq!(exit(1, 2, Ending::ListFailed(String::new())), Exit::Usage);
        assert_eq!(exit(1, 2, Ending::DiskFull(String::new())), Exit::Unwritable);
        assert_eq!(exit(0, 0, Ending::RegistryUnread(String::new())), Exit::Indeterminate);
        assert_eq!(exit(1, 2, Ending::Interrupted), Exit::Interrupted);
    }
}
