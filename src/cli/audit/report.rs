//! Writes reports, and determines the exit status.

use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use clresolve_audit::waiver::WaiverStatus;
use clresolve_audit::{
    AppliedWaivers, AuditConditions, AuditCounts, AuditEnding, AuditReport, AuditReportFormat, AuditRowSource,
    NameListReference, PublishedSchemaRow, Waiver,
};
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_verdict::verdict::ToolVersion;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::history::EarlierAuditReports;
use super::rows::AuditRowFile;
use crate::cli::args::AuditReportOutputArguments;
use crate::cli::exit::ExitStatus;
use crate::cli::notice;
use crate::cli::output::{OutputSink, OutputWriteError};

const UNREADABLE: &str = "cannot read the scratch file";

/// As for several names, the worst state wins. An incomplete audit has its own status.
pub(super) fn audit_exit_status(worst: TrustState, ending: &AuditEnding) -> ExitStatus {
    let worst = ExitStatus::from(worst);
    match ending {
        AuditEnding::Complete => worst,
        AuditEnding::ListFailed(_) => ExitStatus::Usage,
        AuditEnding::DiskFull(_) => ExitStatus::Unwritable,
        AuditEnding::Interrupted => ExitStatus::Interrupted,
        AuditEnding::RegistryUnread(_) => worst.max(ExitStatus::Indeterminate),
    }
}

/// The contents of a report besides its rows.
pub(super) struct AuditReportMetadata {
    pub(super) scope: AuditConditions,
    pub(super) ending: AuditEnding,
    pub(super) list: NameListReference,
    pub(super) schema_layers: Option<Vec<PublishedSchemaRow>>,
    pub(super) flags: Vec<String>,
    pub(super) waivers: Vec<Waiver>,
    pub(super) generated_at: Timestamp,
}

impl AuditReportMetadata {
    /// Writes the report of these rows and its comparison with earlier audits. Returns the exit status.
    pub(super) fn write_report(
        self,
        counts: AuditCounts,
        rows: &AuditRowFile,
        history: &EarlierAuditReports,
        outputs: &mut AuditReportOutputs,
    ) -> anyhow::Result<ExitStatus> {
        let Self { scope, ending, list, schema_layers, flags, waivers, generated_at } = self;
        let today = generated_at.to_zoned(TimeZone::UTC).date();
        let waivers = AppliedWaivers::apply(waivers, today, rows).context(UNREADABLE)?;
        let mut exit = audit_exit_status(waivers.worst_unwaived_state(&counts, rows).context(UNREADABLE)?, &ending);
        let warning = ending.warning();
        if let Some(warning) = &warning {
            anstream::eprintln!("clresolve: {}", UntrustedText::new(warning));
        }
        for idle in waivers.as_slice().iter().filter(|applied| applied.status != WaiverStatus::Accepted) {
            notice::print_notice(format_args!("clresolve: {idle}"));
        }
        let since = history.changes_since_last_report(&scope, &ending, rows, schema_layers.as_deref())?;
        if let Some(since) = &since {
            exit = exit.max(since.outcome(&history.fail_on).into());
        }
        let (before, earlier) = (history.previous_state_counts(), history.state_counts());
        let (tool, generated_at) = (ToolVersion::default(), Some(generated_at));
        let report = AuditReport {
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
        outputs.write_report(&report, rows)?;
        Ok(exit)
    }
}

/// The formats of a report, each with its output.
pub(super) struct AuditReportOutputs(Vec<(AuditReportFormat, OutputSink)>);

impl AuditReportOutputs {
    /// Opens the outputs that the arguments name. None of them may be an input file.
    ///
    /// # Errors
    /// If an output is an input file or cannot be written, or if several formats would go to standard output.
    pub(super) fn open_outputs<'a>(
        args: &AuditReportOutputArguments,
        read: impl IntoIterator<Item = (&'a str, Option<&'a Path>)> + Clone,
    ) -> anyhow::Result<Self> {
        let output = |(format, out)| Ok((format, OutputSink::new_unless_input_file(&out, read.clone())?));
        args.formats_with_outputs()?.into_iter().map(output).collect::<anyhow::Result<_>>().map(Self)
    }

    /// Writes a report in each format.
    ///
    /// # Errors
    /// If an output cannot be written.
    pub(super) fn write_report(
        &mut self,
        report: &AuditReport,
        rows: &dyn AuditRowSource,
    ) -> Result<(), OutputWriteError> {
        for (format, output) in &mut self.0 {
            let mut out = BufWriter::new(output);
            let written = report.write(*format, rows, &mut out).and_then(|()| out.flush());
            written.map_err(|error| OutputWriteError::new("the report", error))?;
        }
        Ok(())
    }

    /// Whether the reader of an output has closed the pipe.
    pub(super) fn is_pipe_closed(&self) -> bool {
        self.0.iter().any(|(_, output)| output.is_pipe_closed())
    }

    /// Moves the finished files into place.
    ///
    /// # Errors
    /// If a file cannot be written, for example because the disk is full.
    pub(super) fn finish(self) -> Result<(), OutputWriteError> {
        self.0.into_iter().try_for_each(|(_, output)| output.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_audit::AuditRow;

    #[test]
    fn the_worst_state_counts_and_an_interrupt_above_all() {
        let no_rows = Vec::<AuditRow>::new();
        let exit = |untrusted, indeterminate, ending| {
            let mut counts = AuditCounts::default();
            (counts.untrusted, counts.indeterminate) = (untrusted, indeterminate);
            let worst = AppliedWaivers::default().worst_unwaived_state(&counts, &no_rows).expect("rows in memory");
            audit_exit_status(worst, &ending)
        };
        assert_eq!(exit(0, 0, AuditEnding::Complete), ExitStatus::Trusted);
        assert_eq!(exit(0, 2, AuditEnding::Complete), ExitStatus::Indeterminate);
        assert_eq!(exit(1, 2, AuditEnding::Complete), ExitStatus::Untrusted);
        assert_eq!(exit(1, 2, AuditEnding::ListFailed(String::new())), ExitStatus::Usage);
        assert_eq!(exit(1, 2, AuditEnding::DiskFull(String::new())), ExitStatus::Unwritable);
        assert_eq!(exit(0, 0, AuditEnding::RegistryUnread(String::new())), ExitStatus::Indeterminate);
        assert_eq!(exit(1, 2, AuditEnding::Interrupted), ExitStatus::Interrupted);
    }
}
