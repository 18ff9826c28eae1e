//! Buffers the rows of a running audit in a file, one per line: an unlinked scratch file, or the journal of `--resume`,
//! with which a killed audit continues.
//!
//! The first line of a journal identifies its audit ([`AuditJournalHeader`]). Each further line begins with a digest of
//! the previous digest and of its row, so that the rows up to the first truncated or changed line are known to be
//! intact.

use std::fs::{File, TryLockError};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clresolve_audit::{AuditConditions, AuditCounts, AuditEnding, AuditRow, AuditRowSource};
use clresolve_core::digest::{Digest, Digester};
use clresolve_verdict::verdict::ToolVersion;
use serde::{Deserialize, Serialize};

use crate::cli::input::{STDIN, escaped_path};
use crate::cli::new_file::path_with_extension;
use crate::cli::output::OutputWriteError;

const SCHEMA: &str = "clresolve.audit-journal/1";

/// Maximum length of a journal line, in bytes: a row with the maximum number of reasons, each with the longest values.
const MAX_LINE_BYTES: u64 = 4 << 20;

/// Rows between two syncs to disk. Rows are written in the order of the list. A kill loses the names in progress, and a
/// power failure also loses at most this many rows.
const ROWS_PER_SYNC: u32 = 64;

/// Counts the rows and writes them to a file.
pub(in crate::cli) struct AuditRowSpool {
    pub(in crate::cli) counts: AuditCounts,
    file: File,
    /// The journal. `None` for a scratch file.
    journal: Option<PathBuf>,
    /// Offset of the first row.
    start: u64,
    /// End of the last complete row.
    end: u64,
    /// The digest at the start of the last line.
    chain: Digest,
    /// The line number in the list of the last row.
    last: u64,
    unsynced: u32,
}

impl AuditRowSpool {
    /// Writes rows to a scratch file, which is deleted when the program ends.
    pub(in crate::cli) fn create_scratch_file() -> anyhow::Result<Self> {
        let file = tempfile::tempfile().map_err(|error| OutputWriteError::new("a scratch file", error))?;
        Ok(Self::new(file, None, &[]))
    }

    /// Opens a journal, and continues after its rows.
    ///
    /// # Errors
    /// If the file is no journal or that of another audit, or another process writes it.
    pub(super) fn resume_journal(path: &Path, job: &AuditJournalHeader) -> anyhow::Result<Self> {
        let context = || format!("--resume {}", escaped_path(path));
        let head = format!("{}\n", serde_json::to_string(job)?).into_bytes();
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = opened.map_err(|error| OutputWriteError::new(escaped_path(path), error))?;
        // On a file system without locks, other runs cannot be detected.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            bail!("--resume {}: another run writes it; wait for its end", escaped_path(path));
        }
        let mut lines = BufReader::new(file.try_clone().with_context(context)?);
        let mut rows = Self::new(file, Some(path.to_owned()), &head);
        let found = read_journal_line(&mut lines).with_context(context)?;
        if found != head {
            if !head.starts_with(&found) {
                bail!("--resume {}: {}; name another file", escaped_path(path), job.mismatch_message(&found));
            }
            // A previous run ended while it wrote this line.
            rows.write_journal_header(&head)?;
        }
        rows.recover_rows(&mut lines).with_context(context)?;
        Ok(rows)
    }

    fn new(file: File, journal: Option<PathBuf>, head: &[u8]) -> Self {
        let (chain, start) = (Digest::compute(head), head.len() as u64);
        Self { counts: AuditCounts::default(), file, journal, start, end: start, chain, last: 0, unsynced: 0 }
    }

    /// The pin file next to the journal. The file of a previous audit, whose journal is gone, is removed.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(super) fn prepare_pin_file(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(journal) = &self.journal else { return Ok(None) };
        let pin = block_pin_file_path(journal);
        if self.last > 0 {
            return Ok(Some(pin));
        }
        match std::fs::remove_file(&pin) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(OutputWriteError::new(escaped_path(&pin), error).into())
            }
            _ => Ok(Some(pin)),
        }
    }

    /// The line number in the list of the last row, or 0.
    pub(super) const fn last_line_number(&self) -> u64 {
        self.last
    }

    /// Writes a row.
    ///
    /// # Errors
    /// [`OutputWriteError`], with what to do next.
    pub(super) fn push(&mut self, row: &AuditRow) -> anyhow::Result<()> {
        let text = serde_json::to_string(row).context("a row")?;
        let chain = chained_row_digest(self.chain, text.as_bytes());
        let line = format!("{chain} {text}\n");
        self.write_bytes(line.as_bytes())?;
        self.end += line.len() as u64;
        self.count_row(row, chain);
        self.unsynced += 1;
        if self.unsynced >= ROWS_PER_SYNC { self.sync() } else { Ok(()) }
    }

    /// How an audit ends if the next row cannot be written: with the rows so far, unless they are in a journal.
    ///
    /// # Errors
    /// The cause, if they are in a journal: the same command continues the audit.
    pub(super) fn ending_after_error(&self, cause: anyhow::Error) -> anyhow::Result<AuditEnding> {
        let is_cut = || self.file.set_len(self.end).is_ok();
        if self.journal.is_some() || !cause.is::<OutputWriteError>() || !is_cut() {
            return Err(cause);
        }
        Ok(AuditEnding::DiskFull(cause.root_cause().to_string()))
    }

    /// The error of an audit that has no rows because the disk is full.
    pub(in crate::cli) fn disk_full_error(why: String) -> anyhow::Error {
        OutputWriteError::new("the scratch file", io::Error::other(why)).into()
    }

    pub(in crate::cli) fn finish(mut self) -> anyhow::Result<(AuditCounts, AuditRowFile)> {
        self.sync()?;
        Ok((self.counts, AuditRowFile { file: self.file, journal: self.journal, start: self.start }))
    }

    /// What to do if results cannot be written.
    pub(super) fn journal_advice(journal: &Path) -> String {
        format!("{} contains the rows so far; free disk space and run the same command again", escaped_path(journal))
    }

    fn count_row(&mut self, row: &AuditRow, chain: Digest) {
        self.counts.add(row);
        (self.last, self.chain) = (row.line, chain);
    }

    fn write_journal_header(&mut self, head: &[u8]) -> anyhow::Result<()> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|error| self.row_write_error(error))?;
        self.write_bytes(head)
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(bytes).map_err(|error| self.row_write_error(error))
    }

    fn sync(&mut self) -> anyhow::Result<()> {
        self.unsynced = 0;
        if self.journal.is_none() {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| self.row_write_error(error))
    }

    fn row_write_error(&self, error: io::Error) -> anyhow::Error {
        match &self.journal {
            None => OutputWriteError::new("the scratch file", error).into(),
            Some(path) => {
                anyhow::Error::new(OutputWriteError::new(escaped_path(path), error)).context(Self::journal_advice(path))
            }
        }
    }

    /// Reads the rows up to the first damaged line, and truncates the file there. The names after it are judged again.
    fn recover_rows(&mut self, lines: &mut impl BufRead) -> io::Result<()> {
        let mut end = self.start;
        loop {
            let line = read_journal_line(lines)?;
            let Some((row, chain)) =
                parse_intact_journal_line(&line, self.chain).filter(|(row, _)| row.line > self.last)
            else {
                break;
            };
            end += line.len() as u64;
            self.count_row(&row, chain);
        }
        let dropped = self.file.metadata()?.len().saturating_sub(end);
        if dropped > 0 {
            let last = self.last;
            tracing::warn!(dropped, "the journal is whole up to line {last} of the list; later lines are judged again");
            self.file.set_len(end)?;
        }
        self.file.seek(SeekFrom::Start(end))?;
        self.end = end;
        Ok(())
    }
}

/// The rows of a finished audit, in a file.
pub(in crate::cli) struct AuditRowFile {
    file: File,
    journal: Option<PathBuf>,
    start: u64,
}

impl AuditRowFile {
    /// The journal. `None` for a scratch file.
    pub(super) fn journal_path(&self) -> Option<&Path> {
        self.journal.as_deref()
    }

    /// Removes the journal after the report is written.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(super) fn discard_journal(self) -> anyhow::Result<()> {
        let Some(path) = self.journal else { return Ok(()) };
        drop(self.file);
        std::fs::remove_file(&path).with_context(|| format!("the report is written; {} stays", escaped_path(&path)))?;
        // If this fails, the next audit removes the file.
        let _ = std::fs::remove_file(block_pin_file_path(&path));
        Ok(())
    }
}

impl AuditRowSource for AuditRowFile {
    fn for_each_row(&self, see: &mut dyn FnMut(&AuditRow) -> io::Result<()>) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(self.start))?;
        for line in BufReader::new(file).lines() {
            let line = line?;
            let (_, row) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
            see(&serde_json::from_str(row)?)?;
        }
        Ok(())
    }
}

/// Identifies an audit. A journal can only continue the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuditJournalHeader {
    schema: String,
    tool: ToolVersion,
    scope: AuditConditions,
    list: Option<Digest>,
    since: Option<Digest>,
}

impl AuditJournalHeader {
    /// The audit of the names in a file and in the registry of the scope, and of the comparison with an earlier report,
    /// if there is one.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn from_inputs(
        scope: AuditConditions,
        list: Option<&Path>,
        since: Option<&Path>,
    ) -> anyhow::Result<Self> {
        if list == Some(Path::new(STDIN)) {
            bail!("--resume needs a list in a file: standard input cannot be read again");
        }
        let list = list
            .map(|list| compute_file_digest(list).with_context(|| format!("--names {}", escaped_path(list))))
            .transpose()?;
        let since = since
            .map(|report| compute_file_digest(report).with_context(|| format!("--since {}", escaped_path(report))))
            .transpose()?;
        Ok(Self { schema: SCHEMA.to_owned(), tool: ToolVersion::default(), scope, list, since })
    }

    /// Why the journal that starts with `head` is not that of this audit.
    fn mismatch_message(&self, head: &[u8]) -> String {
        let Ok(other) = serde_json::from_slice::<Self>(head) else {
            return "this is not an audit journal".to_owned();
        };
        let Self { schema, tool, scope, list, since } = self;
        let same = [
            ("form", *schema == other.schema),
            ("version of clresolve", *tool == other.tool),
            ("list of names", *list == other.list),
            ("block", scope.block == other.scope.block),
            ("earlier report", *since == other.since),
        ];
        let what = same.into_iter().find(|(_, same)| !same).map(|(what, _)| what);
        let what = what.or_else(|| scope.first_difference(&other.scope)).unwrap_or("first line");
        format!("this is the journal of an audit with another {what}")
    }
}

/// The digest at the start of a row's line.
fn chained_row_digest(before: Digest, row: &[u8]) -> Digest {
    let mut both = Digester::default();
    both.update(before.as_bytes());
    both.update(row);
    both.finalize()
}

/// The row of a line and its digest, if the line is intact.
fn parse_intact_journal_line(line: &[u8], before: Digest) -> Option<(AuditRow, Digest)> {
    let (written, row) = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.split_once(' ')?;
    let chain = chained_row_digest(before, row.as_bytes());
    let is_whole = written.parse() == Ok(chain) || clresolve_core::mutant!("changed-journals");
    is_whole.then(|| Some((serde_json::from_str(row).ok()?, chain)))?
}

fn read_journal_line(lines: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    lines.take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    Ok(line)
}

fn compute_file_digest(path: &Path) -> anyhow::Result<Digest> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        bail!("--resume needs a file, which can be read again");
    }
    let (mut file, mut read) = (BufReader::new(file), Digester::default());
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(read.finalize());
        }
        read.update(bytes);
        let length = bytes.len();
        file.consume(length);
    }
}

fn block_pin_file_path(journal: &Path) -> PathBuf {
    path_with_extension(journal, "pin")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_audit::{AuditedRegistryManifest, StateDecidingSettings};
    use clresolve_core::reading::ProofGradeDemand;
    use clresolve_verdict::verdict::{PinnedDocument, ResolutionDepth};

    fn row(line: u64) -> AuditRow {
        AuditRow::from_unreadable_line(line, "a\u{202e}b", None, "not UTF-8")
    }

    fn rows_of(spool: &AuditRowFile) -> Vec<AuditRow> {
        let mut rows = Vec::new();
        let seen = spool.for_each_row(&mut |row| {
            rows.push(row.clone());
            Ok(())
        });
        seen.unwrap();
        rows
    }

    fn demands(proof: ProofGradeDemand, settings: &str) -> Option<StateDecidingSettings> {
        Some(StateDecidingSettings::from_grade_demand(proof, Digest::compute(settings.as_bytes()).to_string()))
    }

    fn job() -> AuditJournalHeader {
        let pinned =
            |id: &str| PinnedDocument { id: id.to_owned(), digest: Digest::compute(id.as_bytes()).to_string() };
        let scope = AuditConditions {
            world: "sandbox".to_owned(),
            chain: "eip155:31337".to_owned(),
            block: "7".to_owned(),
            profile: pinned("profile"),
            manifests: vec![pinned("manifest")],
            depth: ResolutionDepth::Identity,
            demands: demands(ProofGradeDemand::Quorum(2), "rules"),
            registry: None,
            schema_layers: false,
        };
        AuditJournalHeader {
            schema: SCHEMA.to_owned(),
            tool: ToolVersion::default(),
            scope,
            list: Some(Digest::compute(b"list")),
            since: None,
        }
    }

    fn registry() -> AuditedRegistryManifest {
        let digest = Digest::compute(b"manifest").to_string();
        AuditedRegistryManifest { manifest: "manifest.json".to_owned(), digest, proven: false, entries: 1 }
    }

    /// Writes a journal with the rows of these lines, as left by a killed run.
    fn written(path: &Path, lines: std::ops::RangeInclusive<u64>) {
        let mut kept = AuditRowSpool::resume_journal(path, &job()).unwrap();
        lines.for_each(|line| kept.push(&row(line)).unwrap());
    }

    fn refused(path: &Path, job: &AuditJournalHeader) -> String {
        AuditRowSpool::resume_journal(path, job).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn kept_rows_come_back_in_order_and_more_than_once() {
        let mut kept = AuditRowSpool::create_scratch_file().unwrap();
        (1..=3).for_each(|line| kept.push(&row(line)).unwrap());
        let (counts, spool) = kept.finish().unwrap();
        assert_eq!((counts.names, counts.untrusted), (3, 3));
        for _ in 0..2 {
            assert_eq!(rows_of(&spool), [row(1), row(2), row(3)]);
        }
    }

    #[test]
    fn an_audit_goes_on_after_the_last_whole_row_wherever_the_journal_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        written(&path, 1..=3);
        let whole = std::fs::read(&path).unwrap();
        let ends: Vec<usize> =
            whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut kept = AuditRowSpool::resume_journal(&path, &job()).unwrap();
            let last = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1) as u64;
            assert_eq!((kept.last_line_number(), kept.counts.names), (last, last), "cut at {cut}");
            (last + 1..=3).for_each(|line| kept.push(&row(line)).unwrap());
            let (_, spool) = kept.finish().unwrap();
            assert_eq!(rows_of(&spool), [row(1), row(2), row(3)]);
            drop(spool);
            assert!(std::fs::read(&path).unwrap() == whole, "cut at {cut}");
        }
    }

    #[test]
    fn rows_count_up_to_the_first_that_was_changed_moved_or_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        written(&path, 1..=3);
        let whole = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = whole.split_inclusive('\n').collect();
        let forged = lines[2].replace("untrusted", "trusted");
        for changed in [
            [lines[0], lines[1], &forged, lines[3]].concat(),
            [lines[0], lines[1], lines[3]].concat(),
            [lines[0], lines[1], lines[3], lines[2]].concat(),
            [lines[0], lines[1], lines[1], lines[2]].concat(),
            [lines[0], lines[1], "\0\0\0\n", lines[2]].concat(),
        ] {
            std::fs::write(&path, changed).unwrap();
            let kept = AuditRowSpool::resume_journal(&path, &job()).unwrap();
            assert_eq!(kept.last_line_number(), 1);
            assert_eq!(kept.file.metadata().unwrap().len(), (lines[0].len() + lines[1].len()) as u64);
        }
    }

    #[test]
    fn the_journal_of_another_audit_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        written(&path, 1..=1);
        let whole = std::fs::read(&path).unwrap();
        let with = |change: &dyn Fn(&mut AuditJournalHeader)| {
            let mut job = job();
            change(&mut job);
            job
        };
        for (other, what) in [
            (with(&|job| job.tool.version = "0".to_owned()), "version of clresolve"),
            (with(&|job| job.list = Some(Digest::compute(b"other"))), "list of names"),
            (with(&|job| job.scope.block = "8".to_owned()), "block"),
            (with(&|job| job.since = job.list), "earlier report"),
            (with(&|job| job.scope.profile.id = "other".to_owned()), "profile"),
            (with(&|job| job.scope.depth = ResolutionDepth::Schemas), "depth"),
            (with(&|job| job.scope.registry = Some(registry())), "registry"),
            (with(&|job| job.scope.demands = demands(ProofGradeDemand::Quorum(3), "rules")), "demanded proof"),
            (with(&|job| job.scope.demands = demands(ProofGradeDemand::Quorum(2), "other")), "set of rules"),
            (with(&|job| job.scope.schema_layers = true), "set of checks"),
        ] {
            let why = refused(&path, &other);
            assert!(why.contains(&format!("of an audit with another {what}; name another file")), "{why}");
        }
        std::fs::write(folder.path().join("names"), "a.eth\nb.eth\n").unwrap();
        assert!(refused(&folder.path().join("names"), &job()).contains("this is not an audit journal"));
        assert_eq!(std::fs::read(folder.path().join("names")).unwrap(), b"a.eth\nb.eth\n");
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn two_runs_never_write_one_journal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let first = AuditRowSpool::resume_journal(&path, &job()).unwrap();
        assert!(refused(&path, &job()).contains("another run writes it"));
        drop(first);
        assert!(AuditRowSpool::resume_journal(&path, &job()).is_ok());
    }

    #[test]
    fn a_list_that_cannot_be_read_again_has_no_journal() {
        let folder = tempfile::tempdir().unwrap();
        for list in [Path::new(STDIN), folder.path()] {
            let why = format!("{:#}", AuditJournalHeader::from_inputs(job().scope, Some(list), None).unwrap_err());
            assert!(why.contains("read again"), "{why}");
        }
    }
}
