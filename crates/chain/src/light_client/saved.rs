//! The file that keeps the verified state of a light client, so that a restart needs no new checkpoint.
//!
//! Whoever can write the file decides what the light client trusts. It is therefore accessible to its owner alone. A
//! file that others can write, a file of another user, and anything but a regular file are ignored.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use alloy_primitives::B256;
use clresolve_beacon::{ChainSpec, LightClientError, LightClientStore};
use tokio::task::JoinError;

/// Maximum length of the file in bytes. A state of mainnet, with two committees of 512 keys, has about 52,000.
const MAX_STATE_BYTES: u64 = 256 << 10;

/// Why a saved state is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SavedStateError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it has more than {MAX_STATE_BYTES} bytes")]
    TooLong,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it belongs to another user")]
    OtherOwner,
    #[error("other users can write it; make it accessible to its owner alone (mode 600)")]
    Writable,
    #[error(transparent)]
    State(#[from] LightClientError),
    #[error("reading it was interrupted: {0}")]
    BrokenOff(#[from] JoinError),
}

/// The state in the file, if it belongs to this network and checkpoint, and is recent enough to continue from at `now`
/// (in seconds since 1970). `None` if there is no file.
pub(super) fn load_saved_state(
    path: &Path,
    spec: ChainSpec,
    checkpoint: B256,
    now: u64,
) -> Result<Option<LightClientStore>, SavedStateError> {
    let file = match open_state_file(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    check_file_access(&file.metadata()?)?;
    let mut bytes = Vec::new();
    file.take(MAX_STATE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_STATE_BYTES {
        return Err(SavedStateError::TooLong);
    }
    let store = LightClientStore::from_bytes(&bytes, spec, checkpoint)?;
    store.check_finalized_header_age(now)?;
    Ok(Some(store))
}

/// Opens the file without following a link. Non-blocking, because opening a named pipe would wait for a writer.
#[cfg(unix)]
fn open_state_file(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

#[cfg(not(unix))]
fn open_state_file(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn check_file_access(found: &Metadata) -> Result<(), SavedStateError> {
    use std::os::unix::fs::MetadataExt as _;

    /// Permission to write for the group and for all others.
    const WRITABLE_BY_OTHERS: u32 = 0o022;

    let is_writable = found.mode() & WRITABLE_BY_OTHERS != 0 && !clresolve_core::mutant!("beacon-loose-state");
    match () {
        () if !found.is_file() => Err(SavedStateError::NotRegular),
        () if found.uid() != rustix::process::geteuid().as_raw() => Err(SavedStateError::OtherOwner),
        () if is_writable => Err(SavedStateError::Writable),
        () => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_file_access(found: &Metadata) -> Result<(), SavedStateError> {
    if found.is_file() { Ok(()) } else { Err(SavedStateError::NotRegular) }
}

/// Replaces the file in one step. The new file is accessible to its owner alone.
pub(super) fn save_state_file(path: &Path, state: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = path_with_suffix(path, &format!(".{}.new", std::process::id()));
    let written = write_new_file(&new, state).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new_file(path: &Path, state: &[u8]) -> io::Result<()> {
    let _ = fs::remove_file(path);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(state)?;
    file.sync_all()
}

fn path_with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
