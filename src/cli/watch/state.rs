//! What a watch keeps between rounds: the last report whose changes were told, and the id of a message on its way.
//!
//! The report is that of `audit --json`, with its digest at its end. Beside it stand a file that is locked for as long as a watch
//! runs, and while changes could not be told, one with their id.

use std::fs::{File, TryLockError};
use std::io::{self, BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use alloy_primitives::hex;
use anyhow::{Context as _, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::cli::input::{self, shown};
use crate::cli::new_file::{self, NewFile, beside};
use crate::cli::output::{Output, Unwritable};
use crate::digest::Digest;
use crate::report::{Difference, Format, Past, Report, Rows};

/// Random bytes of an id, so many that no two messages share one.
const ID_BYTES: usize = 16;

/// Longest file with the id of a message, in bytes: several times what is written.
const MAX_MESSAGE_BYTES: usize = 1024;

/// The report that stands for what was told.
pub(super) struct StateFile {
    path: PathBuf,
    _lock: File,
}

/// The report that takes the place of the last one, once its changes are told.
pub(super) struct Successor {
    pub(super) report: Past,
    file: NewFile,
    shown: String,
}

/// The message whose delivery failed, or was not seen to succeed.
#[derive(Debug, Serialize, Deserialize)]
struct Untold {
    id: String,
    /// The digest of what it tells: the changes, and the report that they are counted from.
    changes: Digest,
}

impl StateFile {
    /// The state at `path`, which no other watch uses.
    ///
    /// # Errors
    /// If another one does, or it can be no file.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        Output::file("--state", path)?;
        let [lock, _] = files_beside(path);
        let opened = File::options().write(true).create(true).truncate(false).open(&lock);
        let file = opened.map_err(|error| Unwritable::new(shown(&lock), error))?;
        // Where the file system has no locks, nothing is known of other watches.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            bail!("--state {}: another watch uses it; wait for its end, or name another file", shown(path));
        }
        Ok(Self { path: path.to_owned(), _lock: file })
    }

    /// The last report whose changes were told; none before the first round.
    ///
    /// # Errors
    /// If it was cut or changed, or lacks names.
    pub(super) fn read(&self) -> anyhow::Result<Option<Past>> {
        let context = || format!("--state {}", shown(&self.path));
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.with_context(context)?,
        };
        let report = Past::read(BufReader::new(file)).and_then(Past::whole);
        let report = report.map_err(|error| anyhow!("{} {error}", context()))?;
        if !report.complete {
            bail!("{} is incomplete: what it lacks may have changed. Take a report of the whole list", context());
        }
        Ok(Some(report))
    }

    /// Writes a report beside the state, and reads it back.
    ///
    /// # Errors
    /// [`Unwritable`]
    pub(super) fn successor(&self, report: &Report, rows: &dyn Rows) -> anyhow::Result<Successor> {
        let shown = shown(&self.path);
        let written = || {
            let new = NewFile::beside(&self.path)?;
            let mut out = BufWriter::new(new.file());
            report.write(Format::Json, rows, &mut out)?;
            out.flush()?;
            drop(out);
            new.file().sync_all()?;
            new.file().rewind()?;
            let report = Past::read(BufReader::new(new.file())).map_err(io::Error::other)?;
            Ok((new, report))
        };
        let (file, report) = written().map_err(|error| Unwritable::new(shown.clone(), error))?;
        Ok(Successor { report, file, shown })
    }

    /// The id under which changes since a report are told: that of the last message, where it told the same.
    ///
    /// # Errors
    /// [`Unwritable`]
    pub(super) fn message_id(&self, earlier: &Past, changes: &Difference) -> anyhow::Result<String> {
        let [_, path] = files_beside(&self.path);
        let changes = Digest::of(serde_json::to_string(&(earlier.digest, &changes.changes))?.as_bytes());
        // A file that cannot be read costs the receiver a second message, and no change.
        let last = input::read(&path, MAX_MESSAGE_BYTES).ok().and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(Untold { id, .. }) = last.filter(|last: &Untold| last.changes == changes && is_id(&last.id)) {
            return Ok(id);
        }
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).context("the system gives no randomness")?;
        let id = format!("{ID_PREFIX}{}", hex::encode(random));
        let text = serde_json::to_vec(&Untold { id: id.clone(), changes })?;
        new_file::replace(&path, &text).map_err(|error| Unwritable::new(shown(&path), error))?;
        Ok(id)
    }

    /// Forgets the last message, which was told.
    pub(super) fn forget_message(&self) {
        // One that stays is known by the report that it counts from, which is another now.
        let [_, untold] = files_beside(&self.path);
        let _ = std::fs::remove_file(untold);
    }
}

impl Successor {
    /// Puts it in the place of the last report.
    ///
    /// # Errors
    /// [`Unwritable`]
    pub(super) fn keep(self) -> anyhow::Result<()> {
        self.file.keep().map_err(|error| Unwritable::new(self.shown, error).into())
    }
}

/// How an id begins.
const ID_PREFIX: &str = "msg_";

/// Whether a text is such an id as is written: it becomes a header.
fn is_id(text: &str) -> bool {
    text.strip_prefix(ID_PREFIX).is_some_and(|random| random.len() == 2 * ID_BYTES && hex::check_raw(random))
}

/// The files that stand beside a state: its lock, and the id of a message on its way.
pub(super) fn files_beside(state: &Path) -> [PathBuf; 2] {
    ["lock", "untold"].map(|ending| beside(state, ending))
}
