//! Counts of upstream requests, through the facade `metrics`: without a recorder a call costs almost nothing.
//!
//! No label is foreign text: endpoints and gateways have the labels of the configuration.

use metrics::counter;

/// The counter of upstream requests, by kind, label of the endpoint and outcome.
pub const UPSTREAM_REQUESTS: &str = "clresolve_upstream_requests_total";

/// The label of every host that a name, a card or a contract chose.
pub const FOREIGN: &str = "foreign";

/// The kind of an outbound request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// A JSON-RPC endpoint.
    Rpc,
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
}

/// The outcome of an outbound request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// An answer with a usable status.
    Ok,
    /// The server asked for a pause (429, 503).
    Throttled,
    /// The time limit passed.
    Timeout,
    /// The guard forbade the request.
    Forbidden,
    /// Anything else.
    Failed,
}

/// An outbound request ended. `label` is that of the configuration, or [`FOREIGN`].
pub fn upstream(kind: Upstream, label: &str, outcome: RequestOutcome) {
    let labels =
        [("kind", kind.as_str().to_owned()), ("endpoint", label.to_owned()), ("outcome", outcome.as_str().to_owned())];
    counter!(UPSTREAM_REQUESTS, &labels).increment(1);
}

impl Upstream {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::Gateway => "gateway",
            Self::Card => "card",
            Self::Schema => "schema",
            Self::Ccip => "ccip",
            Self::Keys => "keys",
        }
    }
}

impl RequestOutcome {
    /// The outcome of a response with this HTTP status.
    pub const fn of_status(status: u16) -> Self {
        match status {
            200..=399 => Self::Ok,
            429 | 503 => Self::Throttled,
            _ => Self::Failed,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Throttled => "throttled",
            Self::Timeout => "timeout",
            Self::Forbidden => "forbidden",
            Self::Failed => "failed",
        }
    }
}
