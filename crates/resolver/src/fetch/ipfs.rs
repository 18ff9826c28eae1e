//! Retrieves content by CID from trustless gateways. This module transfers bytes, and
//! [`DagWalk`](clresolve_ipfs::DagWalk) verifies them.
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
//! Whatever gateways do, one retrieval costs at most: the time of [`IpfsRetrievalRequest::total`]; `hedge::AT_ONCE`
//! concurrent requests; from each gateway, `DagWalkBudget::dag_bytes` in a CAR and as many in blocks, with
//! `DagWalkBudget::blocks` plus two requests; and memory of twice `DagWalkBudget::dag_bytes` plus one block for each
//! concurrent request.

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

use self::attempt::GatewayRace;
use self::gateway::MAX_REST;
pub use self::gateway::{BAN, IpfsGateway, IpfsGatewayFault, IpfsGatewayUrlError};
use self::reorder_budget::CarReorderBudget;
pub use self::retrieval::{IpfsRetrieval, IpfsRetrievalRequest};
use self::route::IpfsGatewayClient;
pub use self::score::HedgeDelay;
use self::score::IpfsGatewayScoreboard;
use super::egress::{Egress, deadline_in};

/// A client for a list of gateways. Cheap to clone. Clones share the gateways' scores.
#[derive(Clone, Debug)]
pub struct IpfsClient {
    routes: Arc<[IpfsGatewayClient]>,
    scores: Arc<IpfsGatewayScoreboard>,
    reorder: Arc<CarReorderBudget>,
}

impl IpfsClient {
    /// Creates a client for `gateways`, in order of preference.
    ///
    /// # Errors
    /// [`IpfsGatewayUrlError`] for a gateway whose URL is neither `http` nor `https`.
    pub fn new(egress: &Egress, gateways: Vec<IpfsGateway>, hedging: HedgeDelay) -> Result<Self, IpfsGatewayUrlError> {
        let routes: Result<Vec<_>, _> =
            gateways.into_iter().map(|gateway| IpfsGatewayClient::new(egress, gateway)).collect();
        let routes: Arc<[IpfsGatewayClient]> = routes?.into();
        let scores = Arc::new(IpfsGatewayScoreboard::new(routes.len(), hedging));
        Ok(Self { routes, scores, reorder: Arc::new(CarReorderBudget::new()) })
    }

    /// Retrieves and verifies the file that `want` names.
    ///
    /// `now` determines which gateways are resting and how far old failures have decayed. Timeouts use the runtime's
    /// own clock.
    pub async fn retrieve(&self, want: &IpfsRetrievalRequest<'_>, now: Timestamp) -> IpfsRetrieval {
        let retrieving = GatewayRace::new(want, &self.routes, &self.scores, &self.reorder, now);
        let turns = retrieving.gateway_candidates();
        retrieving.run(turns, deadline_in(want.total)).await;
        retrieving.into_retrieval()
    }

    /// How long until the first gateway may be asked again, among those whose rest fell within the last `past`. A
    /// gateway rests because it asked for a pause, or as the last part of a ban. Zero if the rest is over, `None` if no
    /// gateway rested.
    pub fn time_until_gateway_available(&self, now: Timestamp, past: Duration) -> Option<Duration> {
        self.scores.time_until_gateway_available(now, past, MAX_REST)
    }
}
