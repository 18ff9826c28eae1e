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
#[cfg(feature = "unstable")]
pub use self::gateway::BAN;
use self::gateway::MAX_REST;
pub use self::gateway::{Gateway, GatewayError, GatewayFault};
use self::reorder_budget::ReorderBudget;
pub use self::retrieval::{Retrieval, Want};
use self::route::Route;
pub use self::score::Hedging;
use self::score::Scores;
use super::egress::{Egress, deadline_in};

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

    /// How long until the first gateway may be asked again that has rested within the last `past`, because it asked for that
    /// or for the last of a ban; zero where its rest is over, `None` where none has rested.
    pub fn rest(&self, now: Timestamp, past: Duration) -> Option<Duration> {
        self.scores.shortest_rest(now, past, MAX_REST)
    }
}
