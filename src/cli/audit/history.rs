//! Earlier reports: one to compare with, and the counts of all for the picture of states over time.

use anyhow::{Context as _, ensure};

use super::report::past;
use super::rows::Spool;
use crate::cli::args::EarlierReportsArgs;
use crate::report::difference::check_worlds;
use crate::report::history::MAX_EARLIER_REPORTS;
use crate::report::{Difference, Ending, Past, PastCounts, PublishedSchema, Scope};

/// What earlier audits found.
pub(super) struct History {
    /// The report of `--since`.
    pub(super) last: Option<Past>,
    /// Scope and counts of all.
    counted: Vec<(Scope, PastCounts)>,
}

impl History {
    /// Reads the report of `--since` and those of `--history`. Of these only one at a time is in memory.
    pub(super) fn read(args: &EarlierReportsArgs) -> anyhow::Result<Self> {
        let EarlierReportsArgs { since, history, .. } = args;
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
        Ok(Self { last, counted })
    }

    /// Whether an audit of this scope can be compared with them.
    pub(super) fn check_worlds(&self, scope: &Scope) -> anyhow::Result<()> {
        self.counted.iter().try_for_each(|(earlier, _)| check_worlds(earlier, scope).context("--since, --history"))
    }

    /// What changed since the report of `--since`, where there is one.
    pub(super) fn changes(
        &self,
        scope: &Scope,
        ending: &Ending,
        rows: &Spool,
        schema_layers: Option<&[PublishedSchema]>,
    ) -> anyhow::Result<Option<Difference>> {
        let Some(earlier) = &self.last else { return Ok(None) };
        let mut now = Past::of(scope, *ending == Ending::Complete, rows).context("cannot read the scratch file")?;
        now.schema_layers = schema_layers.map(<[_]>::to_vec);
        Difference::between(earlier, &now).context("--since").map(Some)
    }

    /// The counts of the report before: that of `--since`, else the latest.
    pub(super) fn before(&self) -> Option<PastCounts> {
        let latest = || self.counted.last().map(|(_, counts)| *counts);
        self.last.as_ref().map(PastCounts::of).or_else(latest)
    }

    /// The counts, the oldest first.
    pub(super) fn counts(&self) -> Vec<PastCounts> {
        self.counted.iter().map(|(_, counts)| *counts).collect()
    }
}
