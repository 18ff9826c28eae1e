//! The reports of all shards of a list, joined to the report that one run over the list would have given.

use std::io::{self, BufRead, Read as _, Seek, SeekFrom};

use serde::Deserialize;

use super::past::{MAX_REPORT_BYTES, PastError, check_members, check_seal};
use super::shard::Shard;
use super::{Ending, Registry, Row, Scope};

/// Longest line of a report, in bytes: a row with as many reasons as it may have, each with the longest values.
pub(crate) const MAX_LINE_BYTES: u64 = 4 << 20;

/// How the line begins below which the rows stand, one on a line.
const ROWS: &str = "\"rows\": [";

/// A report that is read row by row.
#[derive(Debug)]
pub struct ReportReader<R> {
    lines: io::Take<R>,
    head: Head,
    /// Whether there are further rows.
    has_rows: bool,
    /// The line of the last row.
    last: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct Head {
    complete: bool,
    scope: Scope,
    shard: Option<Shard>,
    counts: Counts,
}

#[derive(Clone, Debug, Deserialize)]
struct Counts {
    listed_again: u64,
}

/// Why reports are not merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// One of them is not used.
    #[error(transparent)]
    Report(#[from] PastError),
    /// One of them is of no shard.
    #[error("is of a whole list, not of a shard")]
    Whole,
    /// The lists were divided differently.
    #[error("is of shard {observed}, but the first report is one of {of}")]
    Divided {
        /// The shard.
        observed: Shard,
        /// How many there are.
        of: u16,
    },
    /// A shard has two reports.
    #[error("is of shard {0}, which another report has too")]
    Twice(Shard),
    /// Shards without a report.
    #[error("reports of these shards are missing: {}", .0.iter().map(u16::to_string).collect::<Vec<_>>().join(", "))]
    Missing(Vec<u16>),
    /// Another question or other rules.
    #[error("has another {0} than the first report")]
    Scope(&'static str),
    /// Rows that do not follow each other, or that two reports have.
    #[error("the row of line {0} is not in its place: the reports are not of one list")]
    Order(u64),
}

impl<R: BufRead + Seek> ReportReader<R> {
    /// Opens a report that is whole and unchanged, up to its rows.
    ///
    /// # Errors
    /// [`PastError`]
    pub fn open(mut report: R) -> Result<Self, PastError> {
        check_seal(&mut report)?;
        report.seek(SeekFrom::Start(0))?;
        check_members(&mut report)?;
        report.seek(SeekFrom::Start(0))?;
        let mut lines = report.take(MAX_REPORT_BYTES);
        let mut text = String::new();
        let has_rows = loop {
            let line = next_line(&mut lines)?;
            if let Some(rest) = line.strip_prefix(ROWS) {
                break rest.trim_end().is_empty();
            }
            if line.is_empty() || text.len() as u64 > MAX_LINE_BYTES {
                return Err(PastError::Cut);
            }
            text.push_str(&line);
        };
        let head: Head = serde_json::from_str(&format!("{}}}", text.trim_end().trim_end_matches(',')))?;
        Ok(Self { lines, head, has_rows, last: 0 })
    }

    /// The next row.
    fn row(&mut self) -> Result<Option<Row>, MergeError> {
        if !self.has_rows {
            return Ok(None);
        }
        let line = next_line(&mut self.lines).map_err(PastError::from)?;
        let row = line.trim_end().trim_end_matches(',');
        if row == "]" {
            self.has_rows = false;
            return Ok(None);
        }
        let row: Row = serde_json::from_str(row).map_err(PastError::from)?;
        if row.line <= self.last {
            return Err(MergeError::Order(row.line));
        }
        self.last = row.line;
        Ok(Some(row))
    }
}

fn next_line(lines: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    lines.take(MAX_LINE_BYTES).read_line(&mut line)?;
    Ok(line)
}

/// The reports of all shards of a list.
#[derive(Debug)]
pub struct Shards<R> {
    /// Each with the row that it gives next.
    reports: Vec<(ReportReader<R>, Option<Row>)>,
}

impl<R: BufRead + Seek> Shards<R> {
    /// Takes the reports of all shards, in any order. An error says which of them it is about.
    ///
    /// # Errors
    /// [`MergeError`]
    pub fn of(reports: Vec<ReportReader<R>>) -> Result<Self, (Option<usize>, MergeError)> {
        let mut seen: Vec<Shard> = Vec::new();
        for (at, report) in reports.iter().enumerate() {
            let shard = report.head.shard.ok_or((Some(at), MergeError::Whole))?;
            let of = seen.first().unwrap_or(&shard).of();
            if shard.of() != of {
                return Err((Some(at), MergeError::Divided { observed: shard, of }));
            }
            if seen.contains(&shard) {
                return Err((Some(at), MergeError::Twice(shard)));
            }
            if let Some(what) = other_rules(&reports[0].head.scope, &report.head.scope) {
                return Err((Some(at), MergeError::Scope(what)));
            }
            seen.push(shard);
        }
        let of = seen.first().map_or(0, |shard| shard.of());
        let missing: Vec<u16> = (1..=of).filter(|index| !seen.iter().any(|shard| shard.index() == *index)).collect();
        if !missing.is_empty() {
            return Err((None, MergeError::Missing(missing)));
        }
        let started = reports.into_iter().enumerate().map(|(at, mut report)| match report.row() {
            Ok(row) => Ok((report, row)),
            Err(error) => Err((Some(at), error)),
        });
        Ok(Self { reports: started.collect::<Result<_, _>>()? })
    }

    /// The question and the rules. Where the reports are of several blocks, it names them all.
    pub fn scope(&self) -> Option<Scope> {
        let blocks = self.reports.iter().flat_map(|(report, _)| report.head.scope.block.split(", "));
        let mut blocks: Vec<&str> = blocks.collect();
        blocks.sort_unstable();
        blocks.dedup();
        let scope = self.reports.first()?.0.head.scope.clone();
        Some(Scope { block: blocks.join(", "), ..scope })
    }

    /// Whether every name of the list has its row.
    pub fn ending(&self) -> Ending {
        let incomplete = self.reports.iter().filter(|(report, _)| !report.head.complete);
        let mut incomplete: Vec<u16> = incomplete.filter_map(|(report, _)| Some(report.head.shard?.index())).collect();
        incomplete.sort_unstable();
        if incomplete.is_empty() { Ending::Complete } else { Ending::ShardsCut(incomplete) }
    }

    /// Lines that list a name again. Spellings of one name are in one shard.
    pub fn listed_again(&self) -> u64 {
        self.reports.iter().fold(0, |sum, (report, _)| sum.saturating_add(report.head.counts.listed_again))
    }

    /// The next row in the order of the list. An error says which report it is about.
    ///
    /// # Errors
    /// [`MergeError`]
    pub fn next_row(&mut self) -> Result<Option<Row>, (usize, MergeError)> {
        let line = |row: &Option<Row>| row.as_ref().map(|row| row.line);
        let first = self.reports.iter().enumerate().filter_map(|(at, (_, row))| Some((line(row)?, at))).min();
        let Some((number, at)) = first else { return Ok(None) };
        if self.reports.iter().filter(|(_, row)| line(row) == Some(number)).count() > 1 {
            return Err((at, MergeError::Order(number)));
        }
        let (report, row) = &mut self.reports[at];
        let next = report.row().map_err(|error| (at, error))?;
        Ok(std::mem::replace(row, next))
    }
}

/// What of a scope is another one, but for the block.
pub(crate) fn other_rules(first: &Scope, scope: &Scope) -> Option<&'static str> {
    let Scope { world, chain, block: _, profile, manifests, depth, registry, agreement } = first;
    let digest = |registry: &Option<Registry>| registry.as_ref().map(|registry| registry.digest.clone());
    let same = [
        ("world", *world == scope.world),
        ("chain", *chain == scope.chain),
        ("profile", *profile == scope.profile),
        ("set of manifests", *manifests == scope.manifests),
        ("depth", *depth == scope.depth),
        ("registry", digest(registry) == digest(&scope.registry)),
        ("set of checks", *agreement == scope.agreement),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
}
