//! A Unix socket that is listened on: its file is nobody else's, has its mode before anyone can connect, replaces none
//! but what a daemon of ours left behind, and goes when the listener goes.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use tokio::net::{UnixListener, UnixStream};

use crate::config::SocketPath;

/// Most connections that wait to be accepted, as many as tokio lets wait over TCP.
const BACKLOG: u32 = 1024;

/// Write permission of group and others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// In a folder with this bit others may add files, but neither remove nor rename ours.
const STICKY: u32 = 0o1000;

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
        let folder = File::open(path.folder())?;
        refuse_replaceable(&folder.metadata()?)?;
        // Else two that start at once could each take the other's socket, bound and not yet listened on, for left behind.
        folder.try_lock().map_err(|_| io::Error::other("another program starts to listen in its folder"))?;
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
    path: std::path::PathBuf,
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

/// Refuses a folder in which another user could put a socket in the place of ours, and answer for the gate.
fn refuse_replaceable(folder: &Metadata) -> io::Result<()> {
    let may_others_write = folder.mode() & WRITABLE_BY_OTHERS != 0 && folder.mode() & STICKY == 0;
    if may_others_write && !clresolve_core::mutant!("loose-socket-folders") {
        return Err(io::Error::other(
            "others may write its folder, and could answer in its place; chmod go-w the folder",
        ));
    }
    if folder.uid() != 0 && folder.uid() != user() {
        return Err(io::Error::other("its folder belongs to another user, who could answer in its place"));
    }
    Ok(())
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
