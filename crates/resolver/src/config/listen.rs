//! The address of a listener: an IP address and port, or a Unix socket.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

const UNIX: &str = "unix:";

/// Maximum length of a Unix socket's path, in bytes. Every system has room for it and the final NUL (macOS has 104
/// bytes, Linux 108).
const MAX_SOCKET_PATH_BYTES: usize = 103;

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address and port.
    Tcp(SocketAddr),
    /// A Unix socket on this machine.
    Unix(SocketPath),
}

/// The absolute path of a Unix socket, short enough for every system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPath(PathBuf);

impl ListenAddress {
    /// A port on loopback. With 0, the system chooses the port.
    pub const fn loopback(port: u16) -> Self {
        Self::Tcp(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// The IP address and port; `None` for a Unix socket.
    pub const fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Whether other machines can reach it.
    pub fn is_beyond_loopback(&self) -> bool {
        self.tcp_address().is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }
}

impl SocketPath {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The folder of the socket.
    pub fn folder(&self) -> &Path {
        self.0.parent().unwrap_or_else(|| Path::new("/"))
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if let Some(path) = s.strip_prefix(UNIX) {
            return path.parse().map(Self::Unix);
        }
        // `localhost:8402`, `:8402` and `8402` mean loopback. Other interfaces require an address.
        let port = s.strip_prefix("localhost:").or_else(|| s.strip_prefix(':')).unwrap_or(s);
        if let Ok(port) = port.parse() {
            return Ok(Self::loopback(port));
        }
        let expected = "expected an address and a port such as 127.0.0.1:8402, or a Unix socket such as \
                        unix:/run/clresolve/clresolve.sock";
        s.parse().map(Self::Tcp).map_err(|_| expected.to_owned())
    }
}

impl FromStr for SocketPath {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let path = PathBuf::from(s);
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        if !path.is_absolute() || path.file_name().is_none() || goes_up || s.ends_with('/') || s.contains('\0') {
            return Err("expected the absolute path of a Unix socket such as /run/clresolve/clresolve.sock".to_owned());
        }
        if s.len() > MAX_SOCKET_PATH_BYTES {
            return Err(format!("expected the path of a Unix socket, of at most {MAX_SOCKET_PATH_BYTES} bytes"));
        }
        Ok(Self(path))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{path}"),
        }
    }
}

impl fmt::Display for SocketPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_without_an_address_is_one_of_loopback() {
        for text in ["8402", ":8402", "localhost:8402"] {
            assert_eq!(text.parse(), Ok(ListenAddress::loopback(8402)), "{text}");
        }
        for text in ["", ":", "localhost", "localhost:", "host:8402", "127.0.0.1", "70000"] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_listener_is_an_address_or_an_absolute_path() {
        for text in ["127.0.0.1:8402", "[::1]:0", "unix:/run/clresolve/clresolve.sock"] {
            assert_eq!(text.parse::<ListenAddress>().map(|at| at.to_string()).as_deref(), Ok(text));
        }
        let long = format!("unix:/{}", "x".repeat(MAX_SOCKET_PATH_BYTES));
        for text in ["", "unix:", "unix:/", "unix:/run/", "unix:a.sock", "unix:/a/../b.sock", "unix:/a\0b", &long] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
        assert!(long[..long.len() - 1].parse::<ListenAddress>().is_ok());
    }

    #[test]
    fn only_addresses_are_reached_from_elsewhere() {
        for (text, expected) in [("0.0.0.0:1", true), ("[::ffff:127.0.0.1]:1", false), ("unix:/a.sock", false)] {
            assert_eq!(text.parse::<ListenAddress>().expect("a listener").is_beyond_loopback(), expected, "{text}");
        }
    }
}
