//! Retrieves content by CID from trustless gateways. This module transfers bytes, and [`Walk`](clresolve_ipfs::Walk)
//! verifies them.
//!
//! The client asks each gateway for one CAR with the path and the file, then for each missing block separately. It
//! trusts nothing from a gateway, neither its status nor its headers. Specification: [trustless
//! gateway](https://specs.ipfs.tech/http-gateways/trustless-gateway/).
//!
//! Requests are **hedged** (`hedge`): the next gateway is asked in parallel when the first makes no progress, and at
//! once when it fails. All gateways feed one walk. A block proven by one need not come from another, the bounds of the
//! walk apply to all of them together, and the result does not depend on which gateway is fastest. Gateways are
//! **scored** (`score`): fast and reliable ones come first, and a gateway that sent a wrong block is banned for a
//! while.
//!
//! Whatever gateways do, one retrieval costs at most: the time of [`Want::total`]; `hedge::AT_ONCE` concurrent
//! requests; from each gateway, `Budget::dag_bytes` in a CAR and as many in blocks, with `Budget::blocks` plus two
//! requests; and memory of twice `Budget::dag_bytes` plus one block for each concurrent request.

mod attempt;
mod gateway;
mod hedge;
mod reorder_budget;
mod retrieval;
mod route;
mod score;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use self::attempt::Retrieving;
use self::gateway::MAX_REST;
pub use self::gateway::{BAN, Gateway, GatewayError, GatewayFault};
use self::reorder_budget::ReorderBudget;
pub use self::retrieval::{Retrieval, Want};
use self::route::Route;
pub use self::score::Hedging;
use self::score::Scores;
use super::egress::{Egress, deadline_in};

/// A client for a list of gateways. Cheap to clone. Clones share the gateways' scores.
#[derive(Clone, Debug)]
pub struct IpfsClient {
    routes: Arc<[Route]>,
    scores: Arc<Scores>,
    reorder: Arc<ReorderBudget>,
}

impl IpfsClient {
    /// Creates a client for `gateways`, in order of preference.
    ///
    /// # Errors
    /// [`GatewayError`] for a gateway whose URL is neither `http` nor `https`.
    pub fn new(egress: &Egress, gateways: Vec<Gateway>, hedging: Hedging) -> Result<Self, GatewayError> {
        let routes: Result<Vec<_>, _> = gateways.into_iter().map(|gateway| Route::new(egress, gateway)).collect();
        let routes: Arc<[Route]> = routes?.into();
        let scores = Arc::new(Scores::new(routes.len(), hedging));
        Ok(Self { routes, scores, reorder: Arc::new(ReorderBudget::new()) })
    }

    /// Retrieves and verifies the file that `want` names.
    ///
    /// `now` determines which gateways are resting and how far old failures have decayed. Timeouts use the runtime's
    /// own clock.
    pub async fn retrieve(&self, want: &Want<'_>, now: Timestamp) -> Retrieval {
        let retrieving = Retrieving::new(want, &self.routes, &self.scores, &self.reorder, now);
        let turns = retrieving.turns();
        retrieving.run(turns, deadline_in(want.total)).await;
        retrieving.finish()
    }

    /// How long until the first gateway may be asked again, among those whose rest fell within the last `past`. A
    /// gateway rests because it asked for a pause, or as the last part of a ban. Zero if the rest is over, `None` if no
    /// gateway rested.
    pub fn rest(&self, now: Timestamp, past: Duration) -> Option<Duration> {
        self.scores.shortest_rest(now, past, MAX_REST)
    }
}
