//! Atomically replaces files, so that neither a reader nor a crash leaves a partial one.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A temporary file next to the one that it will replace. Dropping it without [`replace_target`](Self::replace_target)
/// removes it.
pub(super) struct ReplacementFile {
    file: NamedTempFile,
    place: PathBuf,
}

impl ReplacementFile {
    /// Creates an empty file that will replace `path`, with the same permissions. If `path` is a link, its target is
    /// replaced.
    pub(super) fn create_beside(path: &Path) -> io::Result<Self> {
        let place = if path.exists() { path.canonicalize()? } else { path.to_owned() };
        let folder = parent_folder(&place);
        let file = if place.exists() {
            let file = NamedTempFile::new_in(folder)?;
            file.as_file().set_permissions(std::fs::metadata(&place)?.permissions())?;
            file
        } else {
            temporary_file_builder().tempfile_in(folder)?
        };
        Ok(Self { file, place })
    }

    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Replaces the file, and syncs to disk.
    pub(super) fn replace_target(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.place)?;
        sync_folder(parent_folder(&self.place))
    }
}

pub(super) fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = ReplacementFile::create_beside(path)?;
    new.file().write_all(bytes)?;
    new.replace_target()
}

/// Creates the file with these bytes, in one step: no reader sees a partial file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if `path` exists. What is there stays unchanged.
pub(super) fn create_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = parent_folder(path);
    let mut new = temporary_file_builder().tempfile_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist_noclobber(path)?;
    sync_folder(folder)
}

/// The path next to a file, with an additional extension.
pub(super) fn path_with_extension(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

pub(super) fn parent_folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Requests read and write permission for everybody, which the umask restricts.
#[cfg(unix)]
fn temporary_file_builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder
}

#[cfg(not(unix))]
fn temporary_file_builder() -> Builder<'static, 'static> {
    Builder::new()
}

/// Syncs the directory entry to disk.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// On systems where a folder cannot be opened, it cannot be synced.
#[cfg(not(unix))]
const fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stays_as_it_is_until_the_new_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        replace_file(&path, b"old").unwrap();
        let new = ReplacementFile::create_beside(&path).unwrap();
        new.file().write_all(b"half").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        drop(new);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        replace_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn file_is_created_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("card");
        let created = std::thread::scope(|scope| {
            let threads =
                [0_u8; 8].map(|_| scope.spawn(move || create_file(path, b"new").map_err(|error| error.kind())));
            threads.map(|thread| thread.join().unwrap())
        });
        let refused = created.iter().filter(|created| **created == Err(io::ErrorKind::AlreadyExists)).count();
        assert_eq!((refused, created.iter().filter(|created| created.is_ok()).count()), (7, 1));
        assert_eq!(std::fs::read(path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn file_is_not_created_over_a_dangling_link() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("card"), folder.path().join("target"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(create_file(&link, b"new").map_err(|error| error.kind()), Err(io::ErrorKind::AlreadyExists));
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink() && !target.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_permissions_of_the_old_one_and_a_link_stays_one() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("state"), folder.path().join("link"));
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace_file(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
