//! The configuration file of the one who types: `$XDG_CONFIG_HOME/clresolve/config.toml`, or that under `~/.config`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::config::Layer;

/// Where the file is, or would be. None where the environment names neither folder.
pub(super) fn path() -> Option<PathBuf> {
    path_in(|key| std::env::var_os(key))
}

/// A relative `XDG_CONFIG_HOME` counts as unset, as its specification demands.
fn path_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |key: &str| variable(key).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(base.join("clresolve").join("config.toml"))
}

/// What the file says; none where there is no such file.
///
/// # Errors
/// When others may write it, or when it is not a configuration.
pub(super) fn layer() -> anyhow::Result<Option<(PathBuf, Layer)>> {
    let Some(path) = path() else { return Ok(None) };
    match std::fs::metadata(&path) {
        // A home that is no folder, such as /dev/null of a service account, holds no file either.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("{} (--no-config skips it)", path.display())),
        Ok(_) => {}
    }
    refuse_others(&path)?;
    let layer = Layer::from_file(&path)?;
    Ok(Some((path, layer)))
}

/// Refuses a file that others could have written: it names who is believed.
#[cfg(unix)]
fn refuse_others(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    /// Write permission of group and others.
    const WRITABLE_BY_OTHERS: u32 = 0o022;

    let me = rustix::process::geteuid().as_raw();
    for place in std::iter::once(path).chain(path.parent()) {
        let found = std::fs::metadata(place).with_context(|| place.display().to_string())?;
        let place = place.display();
        if found.mode() & WRITABLE_BY_OTHERS != 0 {
            bail!("{place}: others may write it, so it is not read; `chmod go-w {place}`, or use --no-config");
        }
        if found.uid() != me && found.uid() != 0 {
            bail!("{place}: it belongs to another user, so it is not read; use --no-config, or --config FILE");
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_others(_path: &Path) -> anyhow::Result<()> {
    Ok(())
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
}
