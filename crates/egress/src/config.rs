//! What the operator says about both doors.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::origin::{ConnectTo, OriginSpec};

/// Time limit of one TCP and TLS handshake, look-up included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit from sending a request to the end of the response head.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest total time limit that is honoured. A longer one means "no limit", and an instant that far ahead may
/// overflow.
const MAX_TOTAL: Duration = Duration::from_secs(24 * 3600);

/// What the operator allows and denies beyond the built-in rules.
#[derive(Clone, Debug)]
pub struct EgressConfig {
    /// Origins for which the foreign door is loosened: private names, addresses and that port. It is `https` only all the
    /// same; [`Egress::plain`](crate::Egress::plain) takes plain `http`.
    pub allow_host: Vec<OriginSpec>,
    /// Detours, for both doors.
    pub connect_to: Vec<ConnectTo>,
    /// PEM files with trust roots beside the platform's.
    pub extra_roots: Vec<Bytes>,
    /// Listeners of this process, reachable through neither door.
    pub denied: Vec<SocketAddr>,
    /// Limit of one TCP and TLS handshake, look-up included.
    pub connect_timeout: Duration,
    /// Limit from sending a request to the end of the response head.
    pub head_timeout: Duration,
    /// Whether servers are asked at a pace that they bear, for lists of names.
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

/// Why an [`Egress`](crate::Egress) cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// An extra root is no PEM file with at least one certificate.
    #[error("extra trust root {0}: not a PEM file with certificates")]
    NotPem(usize),
    /// A certificate of an extra root cannot be a trust anchor.
    #[error("extra trust root {0}: a certificate in it cannot be a trust anchor")]
    NotAnAnchor(usize),
}

/// The deadline of a time limit that begins now.
pub fn deadline_in(limit: Duration) -> Instant {
    Instant::now() + limit.min(MAX_TOTAL)
}

/// How messages name what the operator configured: its host may hold a key.
pub(crate) const CONFIGURED: &str = "the configured endpoint";
