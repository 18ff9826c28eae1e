//! The reports of all shards of a list, joined to the report that one run over the list would have given.

use std::collections::HashSet;
use std::io::{self, BufRead, Read as _, Seek, SeekFrom};

use serde::Deserialize;

use super::layers::PublishedSchema;
use super::past::{MAX_REPORT_BYTES, PastError, check_digest, check_members};
use super::shard::{Shard, identity};
use super::{Demands, Ending, ListOfNames, Registry, Row, Scope};
use crate::digest::Digest;
use crate::text::excerpt;
use crate::verdict::Tool;

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
    tool: Tool,
    complete: bool,
    #[serde(default)]
    warning: Option<String>,
    scope: Scope,
    #[serde(default)]
    list: ListOfNames,
    #[serde(default)]
    flags: Vec<String>,
    shard: Option<Shard>,
    counts: Counts,
    #[serde(default)]
    schema_layers: Option<Vec<PublishedSchema>>,
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
    /// Another version of this program made it, which may judge otherwise.
    #[error("was made by {0}, and this is {1}: merge with the version that audited")]
    Tool(String, String),
    /// It does not say which list it is of.
    #[error("does not say which list it is of: that was not read to its end, or an older version audited it")]
    NoList,
    /// Another question or other rules.
    #[error("has another {0} than the first report")]
    Scope(&'static str),
    /// A row that belongs to another shard.
    #[error("has a row, that of line {0}, which is of another shard")]
    Astray(u64),
    /// A name that has a row already.
    #[error("has a second row of a name, at line {0}")]
    Again(u64),
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
        check_digest(&mut report)?;
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
        if self.head.shard.is_some_and(|shard| !shard.has(&row.key())) {
            return Err(MergeError::Astray(row.line));
        }
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
    /// The names so far.
    seen: HashSet<Digest>,
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
            check_head(&reports[0].head, &report.head).map_err(|error| (Some(at), error))?;
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
        Ok(Self { reports: started.collect::<Result<_, _>>()?, seen: HashSet::new() })
    }

    /// The question and the rules. Where the reports are of several blocks, it names them all.
    pub fn scope(&self) -> Option<Scope> {
        let blocks = self.heads().flat_map(|head| head.scope.block.split(", "));
        let mut blocks: Vec<&str> = blocks.collect();
        blocks.sort_unstable_by_key(|block| (block.parse::<u64>().ok(), *block));
        blocks.dedup();
        let registries = self.heads().filter_map(|head| head.scope.registry.as_ref());
        // The same bytes: who could prove them less, and among these the one that comes first by its name.
        let registry = registries.min_by_key(|registry| (registry.proven, &registry.manifest)).cloned();
        let scope = self.heads().next()?.scope.clone();
        Some(Scope { block: blocks.join(", "), registry, ..scope })
    }

    /// The list. Where the shards read it in other files, it names none.
    pub fn list(&self) -> ListOfNames {
        let mut list = self.heads().next().map(|head| head.list.clone()).unwrap_or_default();
        list.file = list.file.filter(|file| self.heads().all(|head| head.list.file.as_ref() == Some(file)));
        list
    }

    /// What the first shard found of the schema layers.
    pub fn schema_layers(&self) -> Option<Vec<PublishedSchema>> {
        self.heads().find_map(|head| head.schema_layers.clone())
    }

    /// The flags of the world, where all shards had the same.
    pub fn flags(&self) -> Vec<String> {
        let flags = self.heads().next().map(|head| head.flags.clone()).unwrap_or_default();
        if self.heads().all(|head| head.flags == flags) { flags } else { Vec::new() }
    }

    fn heads(&self) -> impl Iterator<Item = &Head> {
        self.reports.iter().map(|(report, _)| &report.head)
    }

    /// Whether every name of the list has its row.
    pub fn ending(&self) -> Ending {
        let incomplete = self.reports.iter().filter(|(report, _)| !report.head.complete);
        let mut incomplete: Vec<u16> = incomplete.filter_map(|(report, _)| Some(report.head.shard?.index())).collect();
        incomplete.sort_unstable();
        let warning = self.heads().next().and_then(|head| head.warning.clone());
        match warning.filter(|warning| self.heads().all(|head| head.warning.as_ref() == Some(warning))) {
            Some(warning) => Ending::ShardsLack(warning),
            None if incomplete.is_empty() => Ending::Complete,
            None => Ending::ShardsCut(incomplete),
        }
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
        let row = std::mem::replace(row, next);
        // A line that cannot be read names nobody, and may stand there twice.
        let name = row.as_ref().filter(|row| !row.is_unreadable()).map(|row| identity(&row.key()));
        if name.is_some_and(|name| !self.seen.insert(name)) {
            return Err((at, MergeError::Again(number)));
        }
        Ok(row)
    }
}

/// Refuses a report that was not made as the first one, or of another list.
fn check_head(first: &Head, head: &Head) -> Result<(), MergeError> {
    let shown = |tool: &Tool| format!("{} {}", excerpt(&tool.name), excerpt(&tool.version));
    let own = Tool::default();
    if head.tool != own {
        return Err(MergeError::Tool(shown(&head.tool), shown(&own)));
    }
    if let Some(what) = other_rules(&first.scope, &head.scope) {
        return Err(MergeError::Scope(what));
    }
    match head.list.digest {
        None => Err(MergeError::NoList),
        digest if digest != first.list.digest => Err(MergeError::Scope("list of names")),
        Some(_) => Ok(()),
    }
}

/// What of a scope is another one, but for the block.
pub(crate) fn other_rules(first: &Scope, scope: &Scope) -> Option<&'static str> {
    let Scope { world, chain, block: _, profile, manifests, depth, demands, registry, schema_layers } = first;
    let digest = |registry: &Option<Registry>| registry.as_ref().map(|registry| registry.digest.clone());
    let proof = |demands: &Option<Demands>| demands.as_ref().map(|demands| (demands.proof, demands.agree));
    let same = [
        ("world", *world == scope.world),
        ("chain", *chain == scope.chain),
        ("profile", *profile == scope.profile),
        ("set of manifests", *manifests == scope.manifests),
        ("depth", *depth == scope.depth),
        ("demanded proof", proof(demands) == proof(&scope.demands)),
        ("set of rules", *demands == scope.demands),
        ("registry", digest(registry) == digest(&scope.registry)),
        ("set of checks", *schema_layers == scope.schema_layers),
    ];
    same.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
}
