//! Earlier reports: one to compare with, and the counts of all for the chart of states over time.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _};
use std::path::Path;

use anyhow::{Context as _, anyhow, ensure};

use super::rows::Spool;
use crate::cli::args::EarlierReportsArgs;
use crate::cli::input::shown;
use clresolve_audit::difference::{Kind, check_worlds};
use clresolve_audit::history::MAX_EARLIER_REPORTS;
use clresolve_audit::{Difference, Ending, Past, PastCounts, SchemaRow, Scope};

/// Maximum size of a report that is read from a pipe, in bytes. A longer report is not valid.
const MAX_PIPED_BYTES: u64 = 1 << 30;

pub(super) struct History {
    pub(super) last: Option<Past>,
    /// Scope and counts of each report.
    counted: Vec<(Scope, PastCounts)>,
    /// The kinds of changes since the last report that count as failures. Empty means all.
    pub(super) fail_on: Vec<Kind>,
}

impl History {
    /// Reads the report of `--since` and those of `--history`. Of the latter, only one at a time is in memory.
    pub(super) fn read(args: &EarlierReportsArgs) -> anyhow::Result<Self> {
        let EarlierReportsArgs { since, history, fail_on, .. } = args;
        ensure!(
            history.len() < MAX_EARLIER_REPORTS,
            "--history: take at most {} reports, such as one a month",
            MAX_EARLIER_REPORTS - 1
        );
        let last = since.as_deref().map(past).transpose()?;
        let count = |report: &Past| (report.scope.clone(), PastCounts::of(report));
        let mut counted: Vec<_> = last.iter().map(count).collect();
        for file in history {
            counted.push(count(&past(file)?));
        }
        counted.sort_by_key(|(_, counts)| counts.checked);
        counted.dedup();
        Ok(Self { last, counted, fail_on: fail_on.clone() })
    }

    /// Checks that an audit of this scope is comparable with the earlier ones.
    pub(super) fn check_worlds(&self, scope: &Scope) -> anyhow::Result<()> {
        self.counted.iter().try_for_each(|(earlier, _)| check_worlds(earlier, scope).context("--since, --history"))
    }

    /// The changes since the report of `--since`, if there is one.
    pub(super) fn changes(
        &self,
        scope: &Scope,
        ending: &Ending,
        rows: &Spool,
        schema_layers: Option<&[SchemaRow]>,
    ) -> anyhow::Result<Option<Difference>> {
        let Some(earlier) = &self.last else { return Ok(None) };
        let mut now = Past::of(scope, *ending == Ending::Complete, rows).context("cannot read the scratch file")?;
        now.schema_layers = schema_layers.map(<[_]>::to_vec);
        Difference::between(earlier, &now).context("--since").map(Some)
    }

    /// The counts of the previous report: that of `--since`, or else the latest.
    pub(super) fn before(&self) -> Option<PastCounts> {
        let latest = || self.counted.last().map(|(_, counts)| *counts);
        self.last.as_ref().map(PastCounts::of).or_else(latest)
    }

    /// The counts, oldest first.
    pub(super) fn counts(&self) -> Vec<PastCounts> {
        self.counted.iter().map(|(_, counts)| *counts).collect()
    }
}

pub(super) fn past(file: &Path) -> anyhow::Result<Past> {
    let opened = File::open(file).and_then(seekable).with_context(|| shown(file))?;
    Past::read(BufReader::new(opened)).map_err(|error| anyhow!("{} {error}", shown(file)))
}

/// The file, or a temporary copy of what is no regular file, such as a pipe: a report is read twice.
fn seekable(opened: File) -> io::Result<File> {
    if opened.metadata()?.is_file() {
        return Ok(opened);
    }
    let mut copy = tempfile::tempfile()?;
    io::copy(&mut opened.take(MAX_PIPED_BYTES), &mut copy)?;
    copy.rewind()?;
    Ok(copy)
}
