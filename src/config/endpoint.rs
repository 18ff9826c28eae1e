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
    /// below one public suffix for one rather than one for several; the address where the host is an IP address, since
    /// one machine has many ports. Whatever this machine or its own network gives a name to is one operator, `localhost`:
    /// addresses that are loopback or unspecified, names of one label, and names below `LOCAL_DOMAINS`.
    pub fn operator_of(url: &Url) -> String {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => address.to_canonical(),
            Some(Host::Domain(name)) => return operator_of_name(name),
            None => return LOCAL.to_owned(),
        };
        if address.is_loopback() || address.is_unspecified() {
            return LOCAL.to_owned();
        }
        match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        }
    }
}

/// The operator of this machine and its own network.
const LOCAL: &str = "localhost";

/// The last labels of names that have a meaning on this machine or its own network alone.
const LOCAL_DOMAINS: [&str; 5] = [LOCAL, "localdomain", "local", "internal", "lan"];

/// The operator of a host name. A URL holds it in lower case.
fn operator_of_name(name: &str) -> String {
    let name = name.trim_end_matches('.');
    let mut dots = name.rmatch_indices('.').map(|(at, _)| at);
    match (dots.next(), dots.next()) {
        (None, _) => LOCAL.to_owned(),
        (Some(dot), _) if LOCAL_DOMAINS.contains(&&name[dot + 1..]) => LOCAL.to_owned(),
        (Some(_), None) => name.to_owned(),
        (Some(_), Some(before)) => name[before + 1..].to_owned(),
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
