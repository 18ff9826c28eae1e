//! Gateways, and what may be wrong with them.

use std::fmt;
use std::time::Duration;

use url::{Host, Url};

use crate::cid::ContentId;
use crate::fetch::{Cause, EgressViolation, FetchError};

/// How long a gateway that sent a wrong block is not asked again. Long enough that it cannot slow down a daemon, short
/// enough that a repaired one comes back within the hour.
pub const BAN: Duration = Duration::from_secs(3600);

/// Longest rest that a gateway can ask for with `Retry-After`. What asks for more is asked again after this.
pub(super) const MAX_REST: Duration = Duration::from_secs(300);

/// Shortest rest of a gateway that asks for one: "now", and a date that has passed, would mean the next request.
pub(super) const MIN_REST: Duration = Duration::from_secs(1);

/// Rest after a 429 or 503 that names no time.
pub(super) const DEFAULT_REST: Duration = Duration::from_secs(10);

/// Rest of a gateway at which there was no turn in time: long enough that the name knows of it, short enough that those
/// who had theirs are done.
pub(super) const CROWDED_REST: Duration = Duration::from_secs(2);

/// A trustless gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct Gateway {
    /// How reports and logs call it. Never a URL with a key.
    pub label: String,
    /// The URL that `ipfs/CID` is appended to.
    pub url: Url,
    /// Whether it is the operator's own: it may then be anywhere, and speak plain http. A loopback URL says so by itself.
    pub own: bool,
}

impl Gateway {
    pub(super) fn is_own(&self) -> bool {
        let loopback = match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        };
        self.own || loopback
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("label", &self.label).field("own", &self.own).finish_non_exhaustive()
    }
}

/// A gateway that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("gateway {label}: {why}")]
pub struct GatewayError {
    /// Its label.
    pub label: String,
    /// What is wrong with its URL.
    pub why: EgressViolation,
}

/// Why a gateway did not finish a walk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayFault {
    /// No usable answer.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It was not asked: it lied or asked for a rest not long ago.
    #[error("not asked, it is resting")]
    Resting,
    /// 429 or 503.
    #[error("HTTP status {status}, asks for a rest")]
    Throttled {
        /// The status.
        status: u16,
        /// How long it is left alone.
        rest: Duration,
    },
    /// It sent other bytes than those of the block.
    #[error("sent a wrong block for {0}")]
    WrongBlock(Box<ContentId>),
}

impl From<Cause> for GatewayFault {
    fn from(cause: Cause) -> Self {
        Self::Fetch(cause.into())
    }
}
