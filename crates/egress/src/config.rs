//! The operator's settings for both classes.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::origin::{ConnectToRule, HostPort};

/// Timeout for connecting: DNS lookup, TCP and TLS handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout from sending a request to the end of the response head.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum total timeout. A longer one means "no limit", and adding it to an instant may overflow.
const MAX_TOTAL: Duration = Duration::from_secs(24 * 3600);

/// What the operator allows and denies in addition to the built-in rules.
#[derive(Clone, Debug)]
pub struct EgressConfig {
    /// Origins for which the foreign class accepts private names, private addresses and that port. Only `https` is
    /// allowed through it; [`Egress::send_plain_http`](crate::Egress::send_plain_http) sends plain `http`.
    pub allow_host: Vec<HostPort>,
    /// Connection overrides for both classes.
    pub connect_to: Vec<ConnectToRule>,
    /// PEM files with trust roots in addition to the platform's.
    pub extra_roots: Vec<Bytes>,
    /// Listeners of this process, to which neither class connects.
    pub denied: Vec<SocketAddr>,
    /// Timeout for connecting: DNS lookup, TCP and TLS handshake.
    pub connect_timeout: Duration,
    /// Timeout from sending a request to the end of the response head.
    pub head_timeout: Duration,
    /// Whether requests are paced per server, for lists of names.
    pub is_paced: bool,
}

impl Default for EgressConfig {
    fn default() -> Self {
        Self {
            allow_host: Vec::new(),
            connect_to: Vec::new(),
            extra_roots: Vec::new(),
            denied: Vec::new(),
            connect_timeout: CONNECT_TIMEOUT,
            head_timeout: HEAD_TIMEOUT,
            is_paced: false,
        }
    }
}

/// Why an [`Egress`](crate::Egress) cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressSetupError {
    /// The extra root at this index is not a PEM file with at least one certificate.
    #[error("extra trust root {0}: not a PEM file with certificates")]
    NotPem(usize),
    /// The extra root at this index contains a certificate that cannot be a trust anchor.
    #[error("extra trust root {0}: a certificate in it cannot be a trust anchor")]
    NotAnAnchor(usize),
}

/// The deadline for a timeout that starts now.
pub fn deadline_in(limit: Duration) -> Instant {
    Instant::now() + limit.min(MAX_TOTAL)
}

/// How messages refer to a configured endpoint, whose host may contain an API key.
pub(crate) const CONFIGURED: &str = "the configured endpoint";
