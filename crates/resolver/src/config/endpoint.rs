//! A configured RPC endpoint and its operator, and a beacon endpoint.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

/// An RPC endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct RpcEndpointConfig {
    /// The name in verdicts and logs. [`Self::UNNAMED`] is replaced by `rpc-` and the position in the list, such as
    /// `rpc-1`.
    pub label: String,
    /// The URL. It may contain an API key, even in the host name, so it is never displayed.
    pub url: Url,
    /// Whether the operator of clresolve runs this endpoint.
    pub own: bool,
    /// Who runs the endpoint. Endpoints of one operator count once in a quorum.
    pub operator: String,
}

impl RpcEndpointConfig {
    /// The label of an endpoint for which none is configured.
    pub const UNNAMED: &str = "rpc";

    /// The default operator of an endpoint, by its host. For a name, it is the last two labels: unrelated operators
    /// below one public suffix then count as one, which is safe. For an IP address, it is the address, since one
    /// machine has many ports. Hosts on this machine or its local network are all `localhost`: loopback and unspecified
    /// addresses, single-label names, and names below `LOCAL_DOMAINS`.
    pub fn operator_from_url(url: &Url) -> String {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => address.to_canonical(),
            Some(Host::Domain(name)) => return operator_from_host_name(name),
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

/// The operator of hosts on this machine and its local network.
const LOCAL: &str = "localhost";

/// Top-level labels that only have a meaning on this machine or its local network.
const LOCAL_DOMAINS: [&str; 5] = [LOCAL, "localdomain", "local", "internal", "lan"];

/// The operator of a host name, which must be in lower case, as in a parsed URL.
fn operator_from_host_name(name: &str) -> String {
    let name = name.trim_end_matches('.');
    let mut dots = name.rmatch_indices('.').map(|(at, _)| at);
    match (dots.next(), dots.next()) {
        (None, _) => LOCAL.to_owned(),
        (Some(dot), _) if LOCAL_DOMAINS.contains(&&name[dot + 1..]) => LOCAL.to_owned(),
        (Some(_), None) => name.to_owned(),
        (Some(_), Some(before)) => name[before + 1..].to_owned(),
    }
}

impl fmt::Debug for RpcEndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcEndpointConfig")
            .field("label", &self.label)
            .field("own", &self.own)
            .field("operator", &self.operator)
            .finish_non_exhaustive()
    }
}

impl From<RpcEndpointConfig> for clresolve_chain::RpcEndpointSettings {
    fn from(RpcEndpointConfig { label, url, own, operator }: RpcEndpointConfig) -> Self {
        Self { label, url, own, operator }
    }
}

/// A beacon endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct BeaconEndpointConfig {
    /// The name in logs. [`BeaconEndpointConfig::UNNAMED`] is replaced by `beacon-` and the position in the list.
    pub label: String,
    /// The base URL, without `/eth/v1`. It may contain an API key, so it is never displayed.
    pub url: Url,
}

impl BeaconEndpointConfig {
    /// The label of an endpoint for which none is configured.
    pub const UNNAMED: &str = "beacon";
}

impl fmt::Debug for BeaconEndpointConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BeaconEndpointConfig").field("label", &self.label).finish_non_exhaustive()
    }
}
