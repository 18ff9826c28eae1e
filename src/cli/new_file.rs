//! A file that takes the place of another at once, so that neither a reader nor a crash meets half of it.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// A file beside the one whose place it takes. Without [`keep`](Self::keep) it goes away again.
pub(super) struct NewFile {
    file: NamedTempFile,
    place: PathBuf,
}

impl NewFile {
    /// An empty file for the place `path`, with the permissions of the file that is there. A link stays one.
    pub(super) fn beside(path: &Path) -> io::Result<Self> {
        let place = if path.exists() { path.canonicalize()? } else { path.to_owned() };
        let folder = folder_of(&place);
        let file = if place.exists() {
            let file = NamedTempFile::new_in(folder)?;
            file.as_file().set_permissions(std::fs::metadata(&place)?.permissions())?;
            file
        } else {
            as_any_new_file().tempfile_in(folder)?
        };
        Ok(Self { file, place })
    }

    /// The file to write to.
    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Puts it in its place, on the disk too.
    pub(super) fn keep(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        self.file.persist(&self.place)?;
        sync_folder(folder_of(&self.place))
    }
}

/// Puts a file with these bytes in the place of another.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = NewFile::beside(path)?;
    new.file().write_all(bytes)?;
    new.keep()
}

/// The file that stands beside another, with a further ending.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// The folder that a path names a file in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// What the process's mask leaves of read and write for everybody.
#[cfg(unix)]
fn as_any_new_file() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.permissions(<Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o666));
    builder
}

#[cfg(not(unix))]
fn as_any_new_file() -> Builder<'static, 'static> {
    Builder::new()
}

/// Has the disk keep the new name too.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Where a folder cannot be opened, the system keeps names as it likes.
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
        replace(&path, b"old").unwrap();
        let new = NewFile::beside(&path).unwrap();
        new.file().write_all(b"half").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        drop(new);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        replace(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
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
        replace(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
