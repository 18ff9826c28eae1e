//! The configuration file that every command and the daemon read: the one that `--config` or `CLRESOLVE_CONFIG` names,
//! otherwise the user's file, otherwise the system's.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clresolve_resolver::config::ConfigLayer;

use super::args::RulesArguments;
use super::input::escaped_path;

const VARIABLE: &str = "CLRESOLVE_CONFIG";

/// The system's configuration file, read if the user has none.
const SYSTEM: &str = "/etc/clresolve/config.toml";

/// The configuration file in force, and what selected it.
#[derive(Debug)]
pub(super) struct ConfigFileLocation {
    pub(super) path: PathBuf,
    named_by: ConfigPathSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConfigPathSource {
    Option,
    Variable,
    /// Nothing selected the file; it is in a default place.
    Default,
}

impl ConfigFileLocation {
    /// The file that a command with these options reads. `None` if neither option nor variable names a file, and no
    /// default place has one.
    pub(super) fn find(args: &RulesArguments) -> Option<Self> {
        let named = args
            .config
            .clone()
            .map(|path| Self { path, named_by: ConfigPathSource::Option })
            .or_else(environment_config_file);
        named.or_else(|| if args.no_config { None } else { default_config_file() })
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a configuration. A file in a default place is also refused if other users
    /// can write it.
    pub(super) fn read(&self) -> anyhow::Result<ConfigLayer> {
        let path = &self.path;
        match self.named_by {
            ConfigPathSource::Option => Ok(ConfigLayer::from_file(path)?),
            ConfigPathSource::Variable => ConfigLayer::from_file(path).context(VARIABLE),
            ConfigPathSource::Default => {
                let file = open_protected_file(path).map_err(|error| unusable_file_error(path, error))?;
                Ok(ConfigLayer::from_open_file(file, path)?)
            }
        }
    }
}

/// Where `config init` writes: the file that commands read by default from then on. `None` if the environment names
/// neither a file nor a folder.
pub(super) fn starter_config_path() -> Option<PathBuf> {
    environment_config_file().map(|file| file.path).or_else(user_config_path)
}

fn environment_config_file() -> Option<ConfigFileLocation> {
    let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
    Some(ConfigFileLocation { path: path.into(), named_by: ConfigPathSource::Variable })
}

fn default_config_file() -> Option<ConfigFileLocation> {
    let path = first_existing_path(user_config_path(), SYSTEM.into())?;
    Some(ConfigFileLocation { path, named_by: ConfigPathSource::Default })
}

fn first_existing_path(own: Option<PathBuf>, system: PathBuf) -> Option<PathBuf> {
    own.into_iter().chain([system]).find(|path| may_path_exist(path))
}

/// Whether something is at `path`. If this cannot be determined, reading it reports why.
fn may_path_exist(path: &Path) -> bool {
    // If the home is not a folder, as /dev/null of a service account, it contains no file.
    let is_none = |error: std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !path.metadata().is_err_and(is_none)
}

/// The user's own file: `$XDG_CONFIG_HOME/clresolve/config.toml`, or that under `~/.config`.
fn user_config_path() -> Option<PathBuf> {
    user_config_path_in(|key| std::env::var_os(key))
}

/// A relative `XDG_CONFIG_HOME` counts as unset, as the XDG Base Directory Specification demands.
fn user_config_path_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |key: &str| variable(key).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(base.join("clresolve").join("config.toml"))
}

/// Explains why the file in a default place is not used, and how to continue without it.
fn unusable_file_error(path: &Path, error: anyhow::Error) -> anyhow::Error {
    let place = escaped_path(path);
    if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::PermissionDenied) {
        return error.context(format!(
            "{place}: permission denied: run as its owner, name another file with --config, or use --no-config"
        ));
    }
    error.context(format!("{place} (--no-config skips it)"))
}

/// Opens the file at `path`, if only the user and root can have written it.
///
/// Opens the folder, then the file in it, and checks these two handles. If the path changes in between, the caller
/// still reads the checked file.
#[cfg(unix)]
fn open_protected_file(path: &Path) -> anyhow::Result<File> {
    use rustix::fs::{Mode, OFlags, openat};

    let real = path.canonicalize()?;
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { bail!("this is not a file") };
    let folder = File::open(parent).with_context(|| escaped_path(parent))?;
    reject_file_writable_by_others(&folder, parent)?;
    // Non-blocking, because opening a named pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(openat(&folder, name, flags, Mode::empty()).map_err(io::Error::from)?);
    reject_file_writable_by_others(&file, &real)?;
    Ok(file)
}

/// Refuses a file or folder that other users can write, because the file decides which endpoints are trusted.
#[cfg(unix)]
fn reject_file_writable_by_others(opened: &File, place: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    use clresolve_server::exposed_path::WRITABLE_BY_OTHERS;

    let found = opened.metadata()?;
    let place = escaped_path(place);
    if found.mode() & WRITABLE_BY_OTHERS != 0 && !clresolve_core::mutant!("loose-configuration-files") {
        bail!("other users can write {place}, so clresolve does not read it; run `chmod go-w {place}`");
    }
    if found.uid() != rustix::process::geteuid().as_raw() && found.uid() != 0 {
        bail!("{place} belongs to another user, so clresolve does not read it; name another file with --config FILE");
    }
    Ok(())
}

#[cfg(not(unix))]
fn open_protected_file(path: &Path) -> anyhow::Result<File> {
    Ok(File::open(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_that_of_the_xdg_specification() {
        let path = |set: &[(&str, &str)]| {
            user_config_path_in(|key| {
                set.iter().find(|(known, _)| *known == key).map(|(_, value)| OsString::from(value))
            })
        };
        let expected = |path: &str| Some(PathBuf::from(path));
        assert_eq!(path(&[("XDG_CONFIG_HOME", "/x"), ("HOME", "/h")]), expected("/x/clresolve/config.toml"));
        assert_eq!(path(&[("HOME", "/h")]), expected("/h/.config/clresolve/config.toml"));
        assert_eq!(path(&[("XDG_CONFIG_HOME", "rel"), ("HOME", "/h")]), expected("/h/.config/clresolve/config.toml"));
        assert_eq!(path(&[]), None);
    }

    #[test]
    fn own_file_precedes_that_of_the_system() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [own, system] = ["own", "system"].map(|name| folder.path().join(name));
        let found = || first_existing_path(Some(own.clone()), system.clone());
        assert_eq!(found(), None);
        std::fs::write(&system, "").expect("a file");
        assert_eq!(found(), Some(system.clone()));
        std::fs::write(&own, "").expect("a file");
        assert_eq!((found(), first_existing_path(None, system.clone())), (Some(own.clone()), Some(system.clone())));
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
        let mut file = open_protected_file(&path).expect("a good file");
        let other = folder.path().join("other.toml");
        fs::write(&other, "timeout = \"9s\"\n").expect("a file");
        fs::rename(&other, &path).expect("the file is replaced");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("text");
        assert_eq!(text, "timeout = \"3s\"\n");

        assert!(
            !may_path_exist(&path.join("below"))
                && !may_path_exist(&folder.path().join("none"))
                && may_path_exist(&path)
        );
    }
}
