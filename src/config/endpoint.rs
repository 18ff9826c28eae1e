//! An RPC endpoint of the configuration, and whose it is.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

/// An RPC endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The name under which it appears in verdicts and logs. [`Endpoint::UNNAMED`] is shown with its place in the list:
    /// `rpc-1` and so on.
    pub label: String,
    /// Where it is asked. It may hold a key, also in the host name, and is shown nowhere.
    pub url: Url,
    /// Whether the operator runs it himself.
    pub own: bool,
    /// Whose it is. Endpoints of one operator count once in a quorum.
    pub operator: String,
    /// Its WebSocket, over which it tells the daemon of new blocks; none where it is only asked. It is shown as little as
    /// `url`.
    pub ws: Option<Url>,
}

impl Endpoint {
    /// The label of an endpoint that has none.
    pub const UNNAMED: &str = "rpc";

    /// The operator of an endpoint of which nothing is said: the last two labels of its host, which takes strangers
    /// below one public suffix for one rather than one for several; host and port where the host is an IP address or
    /// `localhost`, since there the port tells nodes and tunnels apart. All addresses of this machine are `localhost`.
    pub fn operator_of(url: &Url) -> String {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(address.to_canonical()),
            Some(Host::Domain(_)) | None => None,
        };
        let name = match address {
            Some(address) if address.is_loopback() => "localhost",
            Some(_) => "",
            None => url.host_str().unwrap_or_default().trim_end_matches('.'),
        };
        let dots: Vec<usize> = name.rmatch_indices('.').map(|(at, _)| at).collect();
        match dots.as_slice() {
            [] => {
                let port = url.port_or_known_default().map_or_else(String::new, |port| format!(":{port}"));
                let address = match address.filter(|_| name.is_empty()) {
                    Some(IpAddr::V4(address)) => address.to_string(),
                    Some(IpAddr::V6(address)) => format!("[{address}]"),
                    None => String::new(),
                };
                format!("{name}{address}{port}")
            }
            [_] => name.to_owned(),
            [_, before, ..] => name[before + 1..].to_owned(),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("label", &self.label)
            .field("own", &self.own)
            .field("operator", &self.operator)
            .field("ws", &self.ws.is_some())
            .finish_non_exhaustive()
    }
}

impl From<Endpoint> for clresolve_chain::Endpoint {
    fn from(Endpoint { label, url, own, operator, ws }: Endpoint) -> Self {
        Self { label, url, own, operator, ws }
    }
}
