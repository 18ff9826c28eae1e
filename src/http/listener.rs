//! A bound listener of either kind, and who its clients are.

use std::io;

use tokio::net::{TcpListener, TcpStream};

use super::client_limits::Client;
#[cfg(unix)]
use super::unix_socket::UnixSocket;
use crate::config::ListenAt;

/// The mode of a socket that proxies connect to: for its owner and its group.
#[cfg(unix)]
const MODE: u32 = 0o660;

/// What connections arrive at.
pub(super) enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixSocket),
}

/// A connection that has arrived.
pub(super) enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl Listener {
    /// Binds it. Gives where it listens too: where port 0 is asked for, the port that the system chose.
    pub(super) async fn bind(at: &ListenAt) -> io::Result<(Self, ListenAt)> {
        match at {
            ListenAt::Tcp(address) => {
                let listener = TcpListener::bind(address).await?;
                let bound = listener.local_addr()?;
                Ok((Self::Tcp(listener), ListenAt::Tcp(bound)))
            }
            #[cfg(unix)]
            ListenAt::Unix(path) => Ok((Self::Unix(UnixSocket::bind(path, MODE).await?), at.clone())),
            #[cfg(not(unix))]
            ListenAt::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The next connection, and its client: the address of its peer, or the user whose process it is.
    pub(super) async fn accept(&self) -> io::Result<(Stream, Client)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Without it small answers may wait for the client's acknowledgement; they arrive all the same.
                let _ = stream.set_nodelay(true);
                Ok((Stream::Tcp(stream), Client::from(peer.ip())))
            }
            #[cfg(unix)]
            Self::Unix(socket) => {
                let (stream, user) = socket.accept().await?;
                Ok((Stream::Unix(stream), Client::User(user)))
            }
        }
    }
}
