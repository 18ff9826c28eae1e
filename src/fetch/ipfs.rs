//! Content by CID from trustless gateways: bytes are moved here, and proven by [`Walk`](crate::cid::Walk).
//!
//! Each gateway is asked for one CAR that holds the path and the file, then for whatever is still missing block by
//! block. Nothing that a gateway says is believed, neither its status nor its headers. Specification:
//! [trustless gateway](https://specs.ipfs.tech/http-gateways/trustless-gateway/).
//!
//! Gateways are **hedged** (`hedge`): the next one is asked beside the first when that one does not get on, and at
//! once when it fails. All of them feed one walk, so that what one proved need not come from another, the bounds of
//! the walk hold for all of them together, and who wins cannot change what is proven. They are **scored** (`score`):
//! the quick and reliable ones first, a liar not at all for a while.
//!
//! What one retrieval can cost, whatever gateways do: the time of [`Want::total`]; `hedge::AT_ONCE` requests at a
//! time; of one gateway [`Budget::dag_bytes`] in a CAR, as many in blocks, and [`Budget::blocks`] and two requests;
//! twice [`Budget::dag_bytes`] of memory, and a block for each request under way.

mod attempt;
mod hedge;
mod reorder_budget;
mod route;
mod score;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
#[cfg(feature = "cli")]
use futures_util::future::join_all;
use jiff::Timestamp;
use url::{Host, Url};

use self::attempt::Retrieving;
use self::reorder_budget::ReorderBudget;
use self::route::Route;
pub use self::score::Hedging;
use self::score::Scores;
use super::egress::{Egress, deadline_in};
use super::{Cause, EgressViolation, FetchError};
use crate::cid::{Budget, ContentId, ContentPath, Proven, WalkError, WalkedBlocks};

/// How long a gateway that sent a wrong block is not asked again. Long enough that it cannot slow down a daemon, short
/// enough that a repaired one comes back within the hour.
pub const BAN: Duration = Duration::from_secs(3600);

/// Longest rest that a gateway can ask for with `Retry-After`. What asks for more is asked again after this.
pub const MAX_REST: Duration = Duration::from_secs(300);

/// Shortest rest of a gateway that asks for one: "now", and a date that has passed, would mean the next request.
pub const MIN_REST: Duration = Duration::from_secs(1);

/// Rest after a 429 or 503 that names no time.
pub const DEFAULT_REST: Duration = Duration::from_secs(10);

/// A client over a list of gateways. Cheap to clone; clones share what is known of the gateways.
#[derive(Clone, Debug)]
pub struct IpfsClient {
    routes: Arc<[Route]>,
    scores: Arc<Scores>,
    reorder: Arc<ReorderBudget>,
}

impl IpfsClient {
    /// A client of `gateways`, the preferred one first.
    ///
    /// # Errors
    /// [`GatewayError`] for a gateway whose URL is neither `http` nor `https`.
    pub fn new(egress: &Egress, gateways: Vec<Gateway>, hedging: Hedging) -> Result<Self, GatewayError> {
        let routes: Result<Vec<_>, _> = gateways.into_iter().map(|gateway| Route::new(egress, gateway)).collect();
        let routes: Arc<[Route]> = routes?.into();
        let scores = Arc::new(Scores::new(routes.len(), hedging));
        Ok(Self { routes, scores, reorder: Arc::new(ReorderBudget::new()) })
    }

    /// Retrieves and proves the file that `want` names.
    ///
    /// `now` decides which gateways still rest, and how much of old failures is forgotten; time limits run by
    /// themselves.
    pub async fn retrieve(&self, want: &Want<'_>, now: Timestamp) -> Retrieval {
        let retrieving = Retrieving::new(want, &self.routes, &self.scores, &self.reorder, now);
        let turns = retrieving.turns();
        hedge::run(&retrieving, turns, deadline_in(want.total)).await;
        retrieving.finish()
    }

    /// The same of each gateway by itself: by label, in the order of the configuration. Nothing that is remembered of a
    /// gateway counts, and nothing is remembered, but for a rest that it asked for. So what one says of a CID does not
    /// depend on what it was asked before.
    #[cfg(feature = "cli")]
    pub async fn retrieve_from_each(&self, want: &Want<'_>, now: Timestamp) -> Vec<(String, Retrieval)> {
        let of_each = self.routes.iter().enumerate().map(async |(place, route)| {
            let alone = self.scores.of_one(place);
            let retrieving = Retrieving::new(want, std::slice::from_ref(route), &alone, &self.reorder, now);
            let turns = retrieving.turns();
            hedge::run(&retrieving, turns, deadline_in(want.total)).await;
            let retrieval = retrieving.finish();
            if let Some(rest) = retrieval.rest() {
                self.scores.rest(place, now.checked_add(rest).unwrap_or(Timestamp::MAX));
            }
            (route.label.clone(), retrieval)
        });
        join_all(of_each).await
    }
}

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
    fn is_own(&self) -> bool {
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

/// What to retrieve, and within which bounds.
#[derive(Clone, Copy, Debug)]
pub struct Want<'a> {
    /// The root.
    pub cid: ContentId,
    /// The way from the root to the file.
    pub path: &'a ContentPath,
    /// Bytes at hand from elsewhere (the card that `https` served), tried wherever a raw block is wanted.
    pub known: &'a [Bytes],
    /// Bounds of the walk.
    pub budget: Budget,
    /// Time over all gateways.
    pub total: Duration,
}

/// What came of a [`Want`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retrieval {
    /// How the walk ended.
    pub ended: Result<Proven, WalkError>,
    /// Gateways (labels) that sent a wrong block before the walk was over, and the block that was asked for.
    pub liars: Vec<(String, ContentId)>,
    /// Gateways (labels) that gave up or were not asked, in the order of the configuration. The liars are among them;
    /// those that were only slower than the winner are not.
    pub failures: Vec<(String, GatewayFault)>,
    /// Requests made; one that the guard refused counts too.
    pub requests: u32,
    /// The blocks that were proven on the way.
    pub blocks: WalkedBlocks,
}

#[cfg(feature = "cli")]
impl Retrieval {
    /// The rest that a gateway asked for.
    fn rest(&self) -> Option<Duration> {
        self.failures.iter().find_map(|(_, fault)| match fault {
            GatewayFault::Throttled { rest, .. } => Some(*rest),
            _ => None,
        })
    }
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
