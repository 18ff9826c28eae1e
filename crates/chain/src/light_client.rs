//! [`LightClient`]: follows the beacon chain through endpoints that it does not trust.
//!
//! It starts from a configured checkpoint, and verifies everything that it receives (see [`clresolve_beacon`]). Any
//! honest endpoint is enough. An endpoint whose data violates a rule is named, and for a while it is asked only if all
//! others failed lately.

mod config;
mod endpoint;
mod follower;
mod history;
mod http;
mod proof;
mod request;
mod saved;
mod status;
mod verified;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::B256;
use clresolve_beacon::{LightClientProof, VerifiedHeader};
use clresolve_core::reading::{BlockSelector, ChainError, HeaderFault};
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use jiff::Timestamp;
use tokio::task::{AbortHandle, JoinError};
use tokio::time::Instant;

pub use self::config::{BeaconEndpoint, LightClientConfig};
pub use self::http::{BEACON_ACCEPT, BeaconGet, BeaconResponse};
pub use self::status::{BeaconEndpointStatus, HeaderStatus, LightClientStatus, Participation, SetAside};

use self::follower::Follower;
use self::verified::{Currency, Wanted, seconds};
use crate::pool::Clock;

/// Minimum time between two synchronizations if the first one failed. It bounds the load of questions on endpoints that
/// do not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// A light client of the beacon chain. One per process and network.
pub struct LightClient {
    follower: Arc<Follower>,
    syncing: Mutex<Option<Synchronization>>,
}

/// The outcome of a synchronization, for all callers that wait for it.
type SyncOutcome = Shared<BoxFuture<'static, Result<(), HeaderFault>>>;

/// A synchronization that belongs to none of its callers.
struct Synchronization {
    task: AbortHandle,
    began: Instant,
    outcome: SyncOutcome,
}

impl LightClient {
    /// A light client that sends requests through `http`, the client for the operator's URLs. Sends none yet.
    pub fn new(config: LightClientConfig, http: Arc<dyn BeaconGet>, clock: Clock) -> Self {
        Self { follower: Arc::new(Follower::new(config, &http, clock)), syncing: Mutex::default() }
    }

    /// As [`LightClient::new`], but never writes the file. For examinations, which may run as another user.
    pub fn observer(config: LightClientConfig, http: Arc<dyn BeaconGet>, clock: Clock) -> Self {
        Self { follower: Arc::new(Follower::new(config, &http, clock).observing()), syncing: Mutex::default() }
    }

    /// Continues from what `before` has verified, if network and checkpoint are the same. For a reload.
    pub fn continue_from(&self, before: &Self) {
        self.follower.adopt(&before.follower);
    }

    /// The verified header that `selector` selects: the optimistic one for [`BlockSelector::Latest`], the finalized one
    /// for [`BlockSelector::Finalized`] and [`BlockSelector::Safe`]. Endpoints are asked unless they answered lately.
    ///
    /// # Errors
    /// [`ChainError::HeaderUnproven`].
    pub async fn header(&self, selector: BlockSelector) -> Result<VerifiedHeader, ChainError> {
        let wanted = match selector {
            BlockSelector::Finalized | BlockSelector::Safe => Wanted::Finalized,
            BlockSelector::Latest => Wanted::Optimistic,
            BlockSelector::Number(_) | BlockSelector::Pinned(_) => {
                return Err(ChainError::HeaderUnproven(HeaderFault::Block(selector.to_string())));
            }
        };
        match self.current(wanted) {
            (Currency::Fresh, Some(header)) => return Ok(header),
            (Currency::Usable, Some(header)) => {
                drop(self.synchronized());
                return Ok(header);
            }
            _ => {}
        }
        let synchronized = self.synchronized().await;
        match self.current(wanted) {
            (Currency::Fresh | Currency::Usable, Some(header)) => Ok(header),
            _ => Err(ChainError::HeaderUnproven(synchronized.err().unwrap_or_else(|| self.follower.fault()))),
        }
    }

    /// Asks the endpoints for the newest header, unless none can be newer than the known one. Returns the header with
    /// the time when an endpoint last reported it as its newest.
    ///
    /// # Errors
    /// [`ChainError::HeaderUnproven`].
    pub async fn newest(&self) -> Result<(VerifiedHeader, Timestamp), ChainError> {
        if let Some(head) = self.head() {
            return Ok(head);
        }
        let synchronized = self.synchronized().await;
        if let Some(head) = self.head() {
            return Ok(head);
        }
        let at = self.follower.verified().and_then(|verified| verified.optimistic_at);
        match (self.current(Wanted::Optimistic), at) {
            ((Currency::Fresh | Currency::Usable, Some(header)), Some(at)) => Ok((header, at)),
            _ => Err(ChainError::HeaderUnproven(synchronized.err().unwrap_or_else(|| self.follower.fault()))),
        }
    }

    /// What the light client knows.
    pub fn status(&self) -> LightClientStatus {
        let (follower, now) = (&self.follower, self.follower.now());
        LightClientStatus {
            checkpoint: follower.config.checkpoint,
            checkpoint_age: follower.checkpoint_slot().map(|slot| follower.spec().slot_age(slot, seconds(now))),
            headers: follower.verified().map(|verified| verified.status(follower.spec(), now)),
            endpoints: follower.endpoints.iter().map(|endpoint| endpoint.status()).collect(),
        }
    }

    /// What proves that the execution block with this hash is finalized, from the checkpoint on. Endpoints are asked
    /// for the updates that this process has not fetched yet.
    ///
    /// # Errors
    /// [`ChainError::HeaderUnproven`] if the block is none of those that were finalized lately, or no endpoint has the
    /// data.
    pub async fn proof_of(&self, block_hash: B256) -> Result<LightClientProof, ChainError> {
        self.follower.proof_of(block_hash).await.map_err(ChainError::HeaderUnproven)
    }

    /// The optimistic header and the current time, if no later header can have been signed.
    fn head(&self) -> Option<(VerifiedHeader, Timestamp)> {
        let (verified, now) = (self.follower.verified()?, self.follower.now());
        let is_head = verified.optimistic_at.is_some() && verified.is_head(self.follower.spec(), now);
        is_head.then_some((verified.optimistic, now))
    }

    fn current(&self, wanted: Wanted) -> (Currency, Option<VerifiedHeader>) {
        let Some(verified) = self.follower.verified() else { return (Currency::Due, None) };
        let currency = verified.currency(wanted, self.follower.spec(), self.follower.now());
        (currency, Some(verified.header(wanted)))
    }

    /// The outcome of a synchronization: the one under way, or else a new one. One that failed is repeated after
    /// [`PAUSE`] at the earliest.
    fn synchronized(&self) -> SyncOutcome {
        let mut syncing = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_shared = |last: &&Synchronization| !last.task.is_finished() || last.has_failed_lately();
        if let Some(last) = syncing.as_ref().filter(is_shared) {
            return last.outcome.clone();
        }
        let follower = Arc::clone(&self.follower);
        let task = tokio::spawn(async move { follower.sync().await });
        let abort = task.abort_handle();
        let broken_off = |error: JoinError| Err(HeaderFault::Refused(error.to_string()));
        let outcome = task.map(move |ended| ended.unwrap_or_else(broken_off)).boxed().shared();
        *syncing = Some(Synchronization { task: abort, began: Instant::now(), outcome: outcome.clone() });
        outcome
    }
}

impl Synchronization {
    fn has_failed_lately(&self) -> bool {
        self.began.elapsed() < PAUSE && matches!(self.outcome.peek(), Some(Err(_)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
