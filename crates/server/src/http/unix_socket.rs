//! A listening Unix socket. Its directory must be safe from other users, and its file has the right mode before anyone
//! can connect. It replaces only a file that an earlier daemon left behind, and removes its file when the listener is
//! dropped.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clresolve_resolver::config::SocketPath;
use rustix::fs::{Mode, OFlags};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use crate::exposed_path::{STICKY, WRITABLE_BY_OTHERS, folders_along_path};

/// Backlog of connections that wait to be accepted, equal to tokio's for TCP.
const BACKLOG: u32 = 1024;

/// Maximum wait for another daemon that is binding the same socket.
const PATIENCE: Duration = Duration::from_secs(2);

const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A Unix socket that is listened on.
pub(super) struct UnixSocketListener {
    // Declared before the listener, so that it is dropped first. While the listener is open, no other daemon considers
    // the file stale, and its inode is not reused.
    _file: SocketFile,
    listener: UnixListener,
}

impl UnixSocketListener {
    /// Binds `path` with `mode`. An existing file is removed if it is a socket of this user that nobody is listening
    /// on.
    pub(super) async fn bind(path: &SocketPath, mode: u32) -> io::Result<Self> {
        check_socket_folder_safety(path.folder())?;
        // Otherwise two daemons that start at once could each consider the other's socket stale while it is bound but
        // not yet listening.
        let _only_one_starts = open_and_lock_file(&socket_lock_file_path(path.as_path())).await?;
        remove_stale_socket(path.as_path()).await?;
        let socket = tokio::net::UnixSocket::new_stream()?;
        socket.bind(path.as_path())?;
        let file = SocketFile::from_path(path.as_path())?;
        // Nobody can connect before the socket listens.
        fs::set_permissions(path.as_path(), Permissions::from_mode(mode))?;
        Ok(Self { _file: file, listener: socket.listen(BACKLOG)? })
    }

    /// Accepts the next connection. Also returns the user of the peer process.
    pub(super) async fn accept(&self) -> io::Result<(UnixStream, u32)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            // Some systems cannot identify the peer of a connection that has already ended.
            if let Ok(peer) = stream.peer_cred() {
                return Ok((stream, peer.uid()));
            }
        }
    }
}

/// The file of a socket. Dropping this removes the file.
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn from_path(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        if is_ours {
            // A file that could not be removed here is removed at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Rejects a directory in which another user could replace the socket and answer for the gate, and a path that another
/// user could redirect.
fn check_socket_folder_safety(folder: &Path) -> io::Result<()> {
    for above in folders_along_path(folder)? {
        let found = fs::metadata(&above)?;
        if let Some(why) = unsafe_folder_reason(found.mode(), found.uid(), process_user()) {
            return Err(io::Error::other(format!("{}: {why}, who could replace the socket", above.display())));
        }
    }
    Ok(())
}

/// Why a directory with this mode and owner is unsafe for a socket of `user`.
fn unsafe_folder_reason(mode: u32, owner: u32, user: u32) -> Option<&'static str> {
    let may_others_write = mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0;
    if may_others_write && !clresolve_core::mutant!("loose-socket-folders") {
        return Some("the directory is writable by other users (chmod go-w)");
    }
    let is_of_another = owner != 0 && owner != user;
    if is_of_another && !clresolve_core::mutant!("foreign-socket-folders") {
        return Some("the directory belongs to another user");
    }
    None
}

/// The lock file that guards binding the socket.
fn socket_lock_file_path(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Locks a file that only this user may open. If others could read it, they could hold the lock. The file is not
/// removed, since a waiting process has it open.
async fn open_and_lock_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != process_user() {
        return Err(io::Error::other(format!("{} is not a regular file of this user", path.display())));
    }
    let mode = if clresolve_core::mutant!("loose-socket-locks") { 0o644 } else { 0o600 };
    file.set_permissions(Permissions::from_mode(mode))?;
    let waiting = async {
        while let Err(error) = file.try_lock() {
            match error {
                TryLockError::WouldBlock => sleep(BETWEEN_TRIES).await,
                TryLockError::Error(error) => return Err(error),
            }
        }
        Ok(())
    };
    let locked = timeout(PATIENCE, waiting).await;
    locked.map_err(|_| io::Error::other("another daemon of this user is starting on this socket; try again"))??;
    Ok(file)
}

/// Removes a stale socket of this user at `path`.
async fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let is_ours = found.file_type().is_socket() && found.uid() == process_user();
    if !is_ours && !clresolve_core::mutant!("sockets-replace-files") {
        return Err(io::Error::other("the file exists and is not a socket of this user; it is left unchanged"));
    }
    let is_answered =
        !matches!(UnixStream::connect(path).await, Err(error) if error.kind() == ErrorKind::ConnectionRefused);
    if is_answered && !clresolve_core::mutant!("sockets-taken-over") {
        return Err(io::Error::other("another program answers there"));
    }
    fs::remove_file(path)
}

fn process_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_user_is_refused() {
        for (mode, owner, is_good) in
            [(0o755, 0, true), (0o755, 33, true), (0o755, 34, false), (0o1777, 34, false), (0o775, 33, false)]
        {
            assert_eq!(unsafe_folder_reason(mode, owner, 33).is_none(), is_good, "{mode:o} of {owner}");
        }
    }
}
