//! A Unix socket that is listened on: its file is nobody else's, has its mode before anyone can connect, replaces none
//! but what a daemon of ours left behind, and goes when the listener goes.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use crate::config::SocketPath;
use crate::exposed_path::{STICKY, WRITABLE_BY_OTHERS, led_through};

/// Most connections that wait to be accepted, as many as tokio lets wait over TCP.
const BACKLOG: u32 = 1024;

/// Longest wait for another daemon that binds the same socket, which takes it a moment.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two tries to begin.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A Unix socket that is listened on.
pub(super) struct UnixSocket {
    // Before the listener: while that is open, no other daemon takes the file for left behind, and its inode is not
    // given to another file.
    _file: SocketFile,
    listener: UnixListener,
}

impl UnixSocket {
    /// Binds `path`, with `mode`. What stands there is removed where it is a socket of this user that nobody answers on.
    pub(super) async fn bind(path: &SocketPath, mode: u32) -> io::Result<Self> {
        refuse_replaceable(path.folder())?;
        // Else two that start at once could each take the other's socket, bound and not yet listened on, for left behind.
        let _only_one_starts = lock(&beside(path.as_path())).await?;
        remove_left_behind(path.as_path()).await?;
        let socket = tokio::net::UnixSocket::new_stream()?;
        socket.bind(path.as_path())?;
        let file = SocketFile::at(path.as_path())?;
        // Nobody can connect before the socket is listened on.
        fs::set_permissions(path.as_path(), Permissions::from_mode(mode))?;
        Ok(Self { _file: file, listener: socket.listen(BACKLOG)? })
    }

    /// The next connection, with the user whose process connected.
    pub(super) async fn accept(&self) -> io::Result<(UnixStream, u32)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            // Some systems do not know whose a connection was that has ended already.
            if let Ok(peer) = stream.peer_cred() {
                return Ok((stream, peer.uid()));
            }
        }
    }
}

/// The file of a socket, removed with this.
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours =
            fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode));
        if is_ours {
            // What stays is removed at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Refuses a folder in which another user could put a socket in the place of ours, and answer for the gate; and one whose
/// path another user could lead elsewhere.
fn refuse_replaceable(folder: &Path) -> io::Result<()> {
    for above in led_through(folder)? {
        let found = fs::metadata(&above)?;
        if let Some(why) = objection(found.mode(), found.uid(), user()) {
            return Err(io::Error::other(format!("{}: {why}, and they could answer in its place", above.display())));
        }
    }
    Ok(())
}

/// Why a folder of this mode and owner is not safe for a socket of `user`.
fn objection(mode: u32, owner: u32, user: u32) -> Option<&'static str> {
    let may_others_write = mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0;
    if may_others_write && !clresolve_core::mutant!("loose-socket-folders") {
        return Some("this folder may be written by others (chmod go-w)");
    }
    let is_of_another = owner != 0 && owner != user;
    if is_of_another && !clresolve_core::mutant!("foreign-socket-folders") {
        return Some("this folder belongs to others");
    }
    None
}

/// The file that is locked while a socket is bound.
fn beside(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// Locks a file that this user alone may open: of a file that others may read, they could hold the lock. It stays, since
/// who waits for it has it open.
async fn lock(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != user() {
        return Err(io::Error::other(format!("{} is no file of this user", path.display())));
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
    locked.map_err(|_| io::Error::other("another daemon of this user starts to listen there, and does not end"))??;
    Ok(file)
}

/// Removes what a daemon of this user left behind at `path`.
async fn remove_left_behind(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let is_ours = found.file_type().is_socket() && found.uid() == user();
    if !is_ours && !clresolve_core::mutant!("sockets-replace-files") {
        return Err(io::Error::other("something stands there that is no socket of this user, and is left as it is"));
    }
    let is_answered =
        !matches!(UnixStream::connect(path).await, Err(error) if error.kind() == ErrorKind::ConnectionRefused);
    if is_answered && !clresolve_core::mutant!("sockets-taken-over") {
        return Err(io::Error::other("another program answers there"));
    }
    fs::remove_file(path)
}

fn user() -> u32 {
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
            assert_eq!(objection(mode, owner, 33).is_none(), is_good, "{mode:o} of {owner}");
        }
    }
}
