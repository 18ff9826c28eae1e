//! Counts upstream requests through the `metrics` facade. Without a recorder, a call costs almost nothing.
//!
//! No label contains foreign text: the labels of endpoints and gateways come from the configuration.

use clresolve_core::fetch::{FetchError, SourceUnavailableError};
use metrics::{counter, gauge};

/// Counter of upstream requests, by kind, endpoint label and outcome.
pub const UPSTREAM_REQUESTS: &str = "clresolve_upstream_requests_total";

/// Gauge of upstreams, by kind and endpoint label: 1 if the latest request was answered, otherwise 0.
pub const UPSTREAM_UP: &str = "clresolve_upstream_up";

/// The label of every host that comes from a name, a card or a contract.
pub const FOREIGN: &str = "foreign";

/// The kind of an outbound request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamKind {
    /// A JSON-RPC endpoint.
    Rpc,
    /// A beacon endpoint.
    Beacon,
    /// An IPFS gateway.
    Gateway,
    /// The host of a card.
    Card,
    /// The host of a schema.
    Schema,
    /// A CCIP-Read gateway.
    Ccip,
    /// The host of a trust root's keys.
    Keys,
    /// The host behind an agent's entry.
    Seller,
}

/// The outcome of an outbound request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// An answer with a usable status.
    Ok,
    /// The server asked for a pause (status 429 or 503).
    Throttled,
    /// The time limit passed.
    Timeout,
    /// The egress guard refused the request.
    Forbidden,
    /// The request got no permit in time and was never sent.
    Unsent,
    /// Any other failure.
    Failed,
}

/// Counts a finished request. `label` comes from the configuration, or is [`FOREIGN`]. Requests that were never sent
/// are not counted.
pub fn count_request(kind: UpstreamKind, label: &str, outcome: RequestOutcome) {
    let Some(word) = outcome.as_str() else { return };
    let labels = [("kind", kind.as_str().to_owned()), ("endpoint", label.to_owned()), ("outcome", word.to_owned())];
    counter!(UPSTREAM_REQUESTS, &labels).increment(1);
    // A request that the guard refused gives no information about the upstream. Foreign hosts have no gauge.
    if label != FOREIGN && outcome != RequestOutcome::Forbidden {
        let up = if outcome == RequestOutcome::Ok { 1.0 } else { 0.0 };
        gauge!(UPSTREAM_UP, &labels[..2]).set(up);
    }
}

impl UpstreamKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::Beacon => "beacon",
            Self::Gateway => "gateway",
            Self::Card => "card",
            Self::Schema => "schema",
            Self::Ccip => "ccip",
            Self::Keys => "keys",
            Self::Seller => "seller",
        }
    }
}

impl From<&FetchError> for RequestOutcome {
    fn from(error: &FetchError) -> Self {
        match error {
            FetchError::Forbidden(_) => Self::Forbidden,
            FetchError::Unavailable(SourceUnavailableError::Timeout) => Self::Timeout,
            FetchError::Unavailable(SourceUnavailableError::NoTurn) => Self::Unsent,
            FetchError::Unavailable(SourceUnavailableError::Status(status)) => Self::from_status(*status),
            FetchError::Oversize { .. } | FetchError::Unavailable(_) => Self::Failed,
        }
    }
}

impl RequestOutcome {
    /// The outcome of a response with this HTTP status.
    pub const fn from_status(status: u16) -> Self {
        match status {
            200..=399 => Self::Ok,
            429 | 503 => Self::Throttled,
            _ => Self::Failed,
        }
    }

    /// The label value; `None` for an outcome that is not counted.
    const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Ok => Some("ok"),
            Self::Throttled => Some("throttled"),
            Self::Timeout => Some("timeout"),
            Self::Forbidden => Some("forbidden"),
            Self::Failed => Some("failed"),
            Self::Unsent => None,
        }
    }
}
