//! Earlier reports: one to compare with, and the counts of all for the chart of states over time.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::Path;

use anyhow::{Context as _, anyhow, ensure};

use super::rows::AuditRowFile;
use crate::cli::args::EarlierAuditReportsArguments;
use crate::cli::input::escaped_path;
use clresolve_audit::difference::{AuditChangeKind, check_same_network};
use clresolve_audit::history::MAX_EARLIER_REPORTS;
use clresolve_audit::past::MAX_REPORT_BYTES;
use clresolve_audit::{
    AuditConditions, AuditDifference, AuditEnding, ComparableReport, PublishedSchemaRow, ReportStateCounts,
};

pub(super) struct EarlierAuditReports {
    pub(super) last: Option<ComparableReport>,
    /// Scope and counts of each report.
    counted: Vec<(AuditConditions, ReportStateCounts)>,
    /// The kinds of changes since the last report that count as failures. Empty means all.
    pub(super) fail_on: Vec<AuditChangeKind>,
}

impl EarlierAuditReports {
    /// Reads the report of `--since` and those of `--history`. Of the latter, only one at a time is in memory.
    pub(super) fn read(args: &EarlierAuditReportsArguments) -> anyhow::Result<Self> {
        let EarlierAuditReportsArguments { since, history, fail_on, .. } = args;
        ensure!(
            history.len() < MAX_EARLIER_REPORTS,
            "--history: take at most {} reports, such as one a month",
            MAX_EARLIER_REPORTS - 1
        );
        let last = since.as_deref().map(read_earlier_audit_report).transpose()?;
        let count = |report: &ComparableReport| (report.scope.clone(), ReportStateCounts::from_report(report));
        let mut counted: Vec<_> = last.iter().map(count).collect();
        for file in history {
            counted.push(count(&read_earlier_audit_report(file)?));
        }
        counted.sort_by_key(|(_, counts)| counts.checked);
        counted.dedup();
        Ok(Self { last, counted, fail_on: fail_on.clone() })
    }

    /// Checks that an audit of this scope is comparable with the earlier ones.
    pub(super) fn check_comparable(&self, scope: &AuditConditions) -> anyhow::Result<()> {
        self.counted
            .iter()
            .try_for_each(|(earlier, _)| check_same_network(earlier, scope).context("--since, --history"))
    }

    /// The changes since the report of `--since`, if there is one.
    pub(super) fn changes_since_last_report(
        &self,
        scope: &AuditConditions,
        ending: &AuditEnding,
        rows: &AuditRowFile,
        schema_layers: Option<&[PublishedSchemaRow]>,
    ) -> anyhow::Result<Option<AuditDifference>> {
        let Some(earlier) = &self.last else { return Ok(None) };
        let mut now = ComparableReport::from_rows(scope, *ending == AuditEnding::Complete, rows)
            .context("cannot read the scratch file")?;
        now.schema_layers = schema_layers.map(<[_]>::to_vec);
        AuditDifference::between(earlier, &now).context("--since").map(Some)
    }

    /// The counts of the previous report: that of `--since`, or else the latest.
    pub(super) fn previous_state_counts(&self) -> Option<ReportStateCounts> {
        let latest = || self.counted.last().map(|(_, counts)| *counts);
        self.last.as_ref().map(ReportStateCounts::from_report).or_else(latest)
    }

    /// The counts, oldest first.
    pub(super) fn state_counts(&self) -> Vec<ReportStateCounts> {
        self.counted.iter().map(|(_, counts)| *counts).collect()
    }
}

pub(super) fn read_earlier_audit_report(file: &Path) -> anyhow::Result<ComparableReport> {
    let opened = File::open(file)
        .and_then(|file| make_file_seekable(file, MAX_REPORT_BYTES))
        .with_context(|| escaped_path(file))?;
    ComparableReport::read(BufReader::new(opened)).map_err(|error| anyhow!("{} {error}", escaped_path(file)))
}

/// The file, or a temporary copy if it is not a regular file (for example a pipe), because a report is read twice.
///
/// # Errors
/// If it cannot be read, or has more than `most` bytes.
fn make_file_seekable(opened: File, most: u64) -> io::Result<File> {
    let found = opened.metadata()?;
    let (file, length) = if found.is_file() {
        (opened, found.len())
    } else {
        let mut copy = tempfile::tempfile()?;
        let length = io::copy(&mut opened.take(most + 1), &mut copy)?;
        copy.rewind()?;
        (copy, length)
    };
    if length > most {
        return Err(io::Error::other(format!("the report is larger than {most} bytes")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn oversized_report_is_rejected_not_truncated() {
        use std::os::fd::OwnedFd;

        let piped = || {
            let (reader, mut writer) = io::pipe().expect("a pipe");
            writer.write_all(b"12345").expect("the pipe has room");
            File::from(OwnedFd::from(reader))
        };
        let stored = || {
            let mut file = tempfile::tempfile().expect("a temporary file");
            file.write_all(b"12345").and_then(|()| file.rewind()).expect("the disk has room");
            file
        };
        for open in [&piped as &dyn Fn() -> File, &stored] {
            let error = make_file_seekable(open(), 4).expect_err("one byte too many").to_string();
            assert_eq!(error, "the report is larger than 4 bytes");
            let read = make_file_seekable(open(), 5).and_then(io::read_to_string).expect("it can be read");
            assert_eq!(read, "12345");
        }
    }
}
