//! Gateways and their faults.

use std::fmt;
use std::time::Duration;

use clresolve_ipfs::ContentId;
use url::{Host, Url};

use crate::fetch::{EgressViolation, FetchError, SourceUnavailableError};

/// How long a gateway that sent a wrong block is banned: long enough that it cannot slow down a daemon, short enough
/// that a repaired one returns within the hour.
pub const BAN: Duration = Duration::from_secs(3600);

/// Maximum rest that a gateway can request with `Retry-After`. A longer request is shortened to this.
pub(super) const MAX_REST: Duration = Duration::from_secs(300);

/// Minimum rest of a gateway that requests one. Without it, "now" or a past date would allow an immediate request.
pub(super) const MIN_REST: Duration = Duration::from_secs(1);

/// Rest after a 429 or 503 without `Retry-After`.
pub(super) const DEFAULT_REST: Duration = Duration::from_secs(10);

/// Rest of a gateway for which no permit was free in time: long enough to report it for this name, short enough that
/// the permits' holders have finished afterwards.
pub(super) const CROWDED_REST: Duration = Duration::from_secs(2);

/// A trustless gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct IpfsGateway {
    /// Its name in reports and logs. Never a URL that contains a key.
    pub label: String,
    /// The URL that `ipfs/CID` is appended to.
    pub url: Url,
    /// Whether the operator runs the gateway. It may then have any address and use plain http. A loopback URL implies
    /// this.
    pub own: bool,
}

impl IpfsGateway {
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

impl fmt::Debug for IpfsGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpfsGateway").field("label", &self.label).field("own", &self.own).finish_non_exhaustive()
    }
}

/// An unusable gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("gateway {label}: {why}")]
pub struct IpfsGatewayUrlError {
    /// The gateway's label.
    pub label: String,
    /// Why its URL is unusable.
    pub why: EgressViolation,
}

/// Why a gateway did not complete a walk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IpfsGatewayFault {
    /// No usable response.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It was not asked, because it recently sent a wrong block or requested a pause.
    #[error("not asked, it is resting")]
    Resting,
    /// It returned 429 or 503.
    #[error("HTTP status {status}, asks for a rest")]
    Throttled {
        /// The status.
        status: u16,
        /// How long no request is sent to it.
        rest: Duration,
    },
    /// It sent bytes that do not match the block's CID.
    #[error("sent a wrong block for {0}")]
    WrongBlock(Box<ContentId>),
}

impl From<SourceUnavailableError> for IpfsGatewayFault {
    fn from(cause: SourceUnavailableError) -> Self {
        Self::Fetch(cause.into())
    }
}
