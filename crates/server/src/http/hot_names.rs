//! The most requested names, stored in a file across restarts of the daemon.
//!
//! The file holds only names. Each is resolved again, so no verdict is trusted from disk. The file is untrusted input:
//! invalid lines are counted and skipped.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clresolve_core::name::{EnsName, MAX_NAME_BYTES};
use clresolve_resolver::telemetry;
use tempfile::NamedTempFile;

/// Maximum number of names in the file. All are resolved within minutes of a start, at a few seconds each.
pub(super) const MOST_NAMES: usize = 1000;

/// Maximum number of bytes that are read: that many names of maximum length, each with its line end.
const MOST_BYTES: usize = MOST_NAMES * (MAX_NAME_BYTES + 1);

/// The names of the previous process, until they have been resolved.
pub(super) struct SavedHotNames {
    path: PathBuf,
    waiting: Mutex<UnresolvedNames>,
}

/// Names without a verdict yet.
#[derive(Default)]
struct UnresolvedNames {
    /// Names that have not been requested yet.
    cold: VecDeque<EnsName>,
    /// Names that were requested and have no verdict yet.
    undecided: Vec<EnsName>,
}

impl SavedHotNames {
    /// Reads the names in the file at `path`. If the file is missing or not a list of names, the list is empty.
    pub(super) fn open(path: &Path) -> Self {
        let cold = match read_regular_file(path) {
            Ok(bytes) => parse_names(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => VecDeque::new(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the hot names file cannot be read");
                VecDeque::new()
            }
        };
        Self { path: path.to_owned(), waiting: Mutex::new(UnresolvedNames { cold, undecided: Vec::new() }) }
    }

    /// The next name to resolve. It stays on the list until it has a verdict.
    pub(super) fn next_unresolved_name(&self) -> Option<EnsName> {
        let mut waiting = self.lock_unresolved();
        let name = waiting.cold.pop_front()?;
        waiting.undecided.push(name.clone());
        Some(name)
    }

    /// Removes a name that has a verdict. From now on, current requests determine whether it is hot.
    pub(super) fn remove_decided(&self, name: &EnsName) {
        self.lock_unresolved().undecided.retain(|undecided| undecided != name);
    }

    fn lock_unresolved(&self) -> MutexGuard<'_, UnresolvedNames> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the file: `hot` first, then the names of the previous process that have no verdict yet.
    pub(super) fn save(&self, hot: Vec<EnsName>) {
        let UnresolvedNames { cold, undecided } = std::mem::take(&mut *self.lock_unresolved());
        let mut known = HashSet::new();
        let all = hot.into_iter().chain(undecided).chain(cold).filter(|name| known.insert(name.clone()));
        match replace_hot_names_file(&self.path, all.take(MOST_NAMES)) {
            Ok(()) => tracing::info!(path = %self.path.display(), "the hot names are saved"),
            Err(error) => tracing::warn!(path = %self.path.display(), %error, "the hot names cannot be saved"),
        }
    }
}

/// Reads a regular file. Reading a pipe would block.
fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let most = if clresolve_core::mutant!("hot-names-without-end") { usize::MAX / 2 } else { MOST_BYTES };
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The distinct names in the first lines. Invalid lines are counted.
fn parse_names(bytes: &[u8]) -> VecDeque<EnsName> {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let mut known = HashSet::new();
    let name = |line: &&[u8]| {
        let text = std::str::from_utf8(line).ok()?;
        EnsName::parse(text).ok().filter(|name| name.as_str() == text && known.insert(name.clone()))
    };
    let names: VecDeque<EnsName> = lines.iter().take(MOST_NAMES).filter_map(name).collect();
    let ignored = lines.len() - names.len();
    if ignored > 0 {
        tracing::warn!(
            ignored,
            "ignored lines of the hot names file: not a name in normal form, repeated, or beyond the limit"
        );
        telemetry::count_ignored_hot_names(ignored);
    }
    names
}

/// Atomically replaces the file. Only its owner can read the new one.
fn replace_hot_names_file(path: &Path, names: impl Iterator<Item = EnsName>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let text: String = names.flat_map(|name| [name.as_str().to_owned(), "\n".to_owned()]).collect();
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bytes: impl AsRef<[u8]>) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names");
        std::fs::write(&path, bytes).expect("the file is written");
        let hot = SavedHotNames::open(&path);
        std::iter::from_fn(|| hot.next_unresolved_name()).map(|name| name.as_str().to_owned()).collect()
    }

    #[test]
    fn what_is_no_name_in_normal_form_is_passed_over() {
        let long = format!("{}.eth\n", "a".repeat(300));
        let lines =
            [b"a.eth\n".as_slice(), b"B.eth\n", b"\xff\n", long.as_bytes(), b"\n", b"a.eth\n", b" c.eth\n", b"d.eth"];
        assert_eq!(opened(lines.concat()), ["a.eth", "d.eth"]);
        assert!(opened("").is_empty());
    }

    #[test]
    fn the_list_is_bounded_in_names_and_in_bytes() {
        let many = |count: usize| (0..count).map(|number| format!("a{number}.eth\n")).collect::<String>();
        assert_eq!(opened(many(MOST_NAMES + 5)).len(), MOST_NAMES);
        assert!(opened(many(3) + &"\n".repeat(MOST_BYTES)).is_empty(), "no list of ours is as long");
        assert_eq!(opened("\n".repeat(MOST_BYTES - 6) + "a.eth\n"), ["a.eth"]);
    }

    #[test]
    fn what_cannot_be_read_is_no_list() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [folder.path().join("missing"), folder.path().to_owned()] {
            assert_eq!(SavedHotNames::open(&path).next_unresolved_name(), None);
        }
    }

    #[test]
    fn the_hottest_are_kept_first_then_those_of_which_nothing_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("names");
        std::fs::write(&path, "undecided.eth\nanswered.eth\nhot.eth\nunasked.eth\n").expect("the file is written");
        let hot = SavedHotNames::open(&path);
        hot.next_unresolved_name().expect("undecided.eth");
        hot.remove_decided(&hot.next_unresolved_name().expect("answered.eth"));
        let name = |text: &str| EnsName::parse(text).expect("a name");
        hot.save(vec![name("new.eth"), name("hot.eth")]);
        let kept = std::fs::read_to_string(&path).expect("it is there");
        assert_eq!(kept, "new.eth\nhot.eth\nundecided.eth\nunasked.eth\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&path).expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "who is asked for is nobody else's business");
        }
        let many: Vec<EnsName> = (0..MOST_NAMES + 5).map(|number| name(&format!("a{number}.eth"))).collect();
        hot.save(many);
        assert_eq!(std::fs::read_to_string(&path).expect("it is there").lines().count(), MOST_NAMES);
    }
}
