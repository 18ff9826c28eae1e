//! `[admin]`: the socket through which the operator controls a running daemon.

use serde::{Deserialize, Serialize};

use super::{SocketPath, text};

/// The socket through which the operator controls a running daemon. By default there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AdminConfig {
    /// A Unix socket that only the daemon's user may connect to (mode 0600). There is no TCP listener for this.
    #[serde(with = "text::or_empty")]
    pub socket: Option<SocketPath>,
}

#[cfg(test)]
mod tests {
    use crate::config::testing::parse_over_defaults;

    #[test]
    fn the_operator_comes_through_a_socket_alone() {
        assert_eq!(parse_over_defaults("").expect("defaults").admin.socket, None);
        assert_eq!(parse_over_defaults("[admin]\nsocket = \"\"").expect("none").admin.socket, None);
        let socket = parse_over_defaults("[admin]\nsocket = \"/run/a.sock\"").expect("a path").admin.socket;
        assert_eq!(socket.map(|path| path.to_string()).as_deref(), Some("/run/a.sock"));
        for bad in ["127.0.0.1:8404", "unix:/run/a.sock", "a.sock", "/run/"] {
            assert!(parse_over_defaults(&format!("[admin]\nsocket = \"{bad}\"")).is_err(), "{bad}");
        }
    }
}
