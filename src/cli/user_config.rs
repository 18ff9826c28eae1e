//! Your own configuration file: `$XDG_CONFIG_HOME/clresolve/config.toml`, or that under `~/.config`.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clresolve_resolver::config::Layer;

/// The commands that take a configuration and never read this file: programs run them, or everybody must get the same
/// answer from them.
pub(super) const NOT_READ_BY: &[&str] =
    &["serve", "gate", "decide", "mcp", "bundle verify", "receipt check", "verdict verify"];

/// Where the file is, or would be; `None` where the environment names neither folder.
pub(super) fn path() -> Option<PathBuf> {
    path_in(|key| std::env::var_os(key))
}

/// A relative `XDG_CONFIG_HOME` counts as unset, as its specification demands.
fn path_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |key: &str| variable(key).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(base.join("clresolve").join("config.toml"))
}

/// What the file says; `None` where there is no such file.
///
/// # Errors
/// When others may write it, or when it is not a configuration.
pub(super) fn layer() -> anyhow::Result<Option<(PathBuf, Layer)>> {
    let Some(path) = path() else { return Ok(None) };
    match open_checked(&path).with_context(|| format!("{} (--no-config skips it)", path.display()))? {
        Some(file) => Ok(Some((path.clone(), Layer::from_open_file(file, &path)?))),
        None => Ok(None),
    }
}

/// The file at `path`, open, which nobody but you and root can have written; `None` where there is no such file.
///
/// The folder is opened first, then the file in it, and what is checked are these two handles. A path that changes
/// meanwhile therefore cannot put an unchecked file in the place of the checked one.
#[cfg(unix)]
fn open_checked(path: &Path) -> anyhow::Result<Option<File>> {
    use rustix::fs::{Mode, OFlags, openat};

    let real = match path.canonicalize() {
        // A home that is no folder, such as /dev/null of a service account, holds no file either.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        real => real?,
    };
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { bail!("this is not a file") };
    let folder = File::open(parent).with_context(|| parent.display().to_string())?;
    refuse_others(&folder, parent)?;
    // Not blocking: to open a pipe would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(openat(&folder, name, flags, Mode::empty())?);
    refuse_others(&file, &real)?;
    Ok(Some(file))
}

/// Refuses what others could have written: the file says which endpoints are believed.
#[cfg(unix)]
fn refuse_others(opened: &File, place: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    use clresolve_server::exposed_path::WRITABLE_BY_OTHERS;

    let found = opened.metadata()?;
    let place = place.display();
    if found.mode() & WRITABLE_BY_OTHERS != 0 && !clresolve_core::mutant!("loose-configuration-files") {
        bail!("others may write {place}, so it is not read; `chmod go-w {place}` changes that");
    }
    if found.uid() != rustix::process::geteuid().as_raw() && found.uid() != 0 {
        bail!("{place} belongs to another user, so it is not read; --config FILE names another file");
    }
    Ok(())
}

#[cfg(not(unix))]
fn open_checked(path: &Path) -> anyhow::Result<Option<File>> {
    match File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_that_of_the_xdg_specification() {
        let path = |set: &[(&str, &str)]| {
            path_in(|key| set.iter().find(|(known, _)| *known == key).map(|(_, value)| OsString::from(value)))
        };
        let expected = |path: &str| Some(PathBuf::from(path));
        assert_eq!(path(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]), expected("/x/clresolve/config.toml"));
        assert_eq!(path(&[("HOME", "/h")]), expected("/h/.config/clresolve/config.toml"));
        assert_eq!(path(&[("XDG_CONFIG_HOME", "rel"), ("HOME", "/h")]), expected("/h/.config/clresolve/config.toml"));
        assert_eq!(path(&[]), None);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_read_is_what_was_checked() {
        use std::fs::{self, Permissions};
        use std::io::Read as _;
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().canonicalize().expect("a folder").join("config.toml");
        fs::write(&path, "timeout = \"3s\"\n").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        let mut file = open_checked(&path).expect("a good file").expect("a file");
        let other = folder.path().join("other.toml");
        fs::write(&other, "timeout = \"9s\"\n").expect("a file");
        fs::rename(&other, &path).expect("the file is replaced");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("text");
        assert_eq!(text, "timeout = \"3s\"\n");

        assert!(open_checked(&path.join("below")).expect("no error").is_none());
        assert!(open_checked(&folder.path().join("none")).expect("no error").is_none());
    }
}
