//! A bound listener of either kind, and how its clients are identified.

use std::io;

use clresolve_resolver::config::ListenAddress;
use tokio::net::{TcpListener, TcpStream};

use super::client_limits::ClientIdentity;
#[cfg(unix)]
use super::unix_socket::UnixSocketListener;

/// File mode of a socket that proxies connect to: for its owner and its group.
#[cfg(unix)]
const MODE: u32 = 0o660;

pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixSocketListener),
}

pub(super) enum SocketStream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl Listener {
    /// Binds to `at`. Also returns the actual address: for port 0, the port that the system chose.
    pub(super) async fn bind(at: &ListenAddress) -> io::Result<(Self, ListenAddress)> {
        match at {
            ListenAddress::Tcp(address) => {
                let listener = TcpListener::bind(address).await?;
                let bound = listener.local_addr()?;
                Ok((Self::Tcp(listener), ListenAddress::Tcp(bound)))
            }
            #[cfg(unix)]
            ListenAddress::Unix(path) => Ok((Self::Unix(UnixSocketListener::bind(path, MODE).await?), at.clone())),
            #[cfg(not(unix))]
            ListenAddress::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Accepts the next connection. Its client is the peer's address, or the user that owns the peer process.
    pub(super) async fn accept(&self) -> io::Result<(SocketStream, ClientIdentity)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // If this fails, small responses may be delayed (Nagle's algorithm), but they still arrive.
                let _ = stream.set_nodelay(true);
                Ok((SocketStream::Tcp(stream), ClientIdentity::from(peer.ip())))
            }
            #[cfg(unix)]
            Self::Unix(socket) => {
                let (stream, user) = socket.accept().await?;
                Ok((SocketStream::Unix(stream), ClientIdentity::User(user)))
            }
        }
    }
}
