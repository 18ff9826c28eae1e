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
use clresolve_beacon::{LightClientSyncTranscript, VerifiedBeaconHeader};
use clresolve_core::reading::{BlockSelector, ChainError, LightClientHeaderError};
use futures_util::future::{BoxFuture, FutureExt as _, Shared};
use jiff::Timestamp;
use tokio::task::{AbortHandle, JoinError};
use tokio::time::Instant;

pub use self::config::{BeaconEndpointSettings, LightClientConfig};
pub use self::http::{BEACON_ACCEPT, BeaconHttpClient, BeaconResponse};
pub use self::status::{
    BeaconEndpointDemotion, BeaconEndpointStatus, LightClientStatus, SyncCommitteeParticipation, VerifiedHeadersStatus,
};

use self::follower::{BackgroundBeaconRequests, BeaconChainFollower};
use self::verified::{HeaderFinality, HeaderFreshness, VerifiedHeaderPair, unix_seconds};
use crate::pool::TimeSource;

/// Minimum time between two synchronizations if the first one failed. It bounds the load of questions on endpoints that
/// do not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// A light client of the beacon chain. One per process and network.
pub struct LightClient {
    follower: Arc<BeaconChainFollower>,
    syncing: Mutex<Option<SharedSyncTask>>,
    /// Requests that may outlive a synchronization, locked by the synchronization in progress. No task of the follower
    /// owns them, so dropping the light client ends them all.
    background: Arc<tokio::sync::Mutex<BackgroundBeaconRequests>>,
}

/// A synchronization that all callers share and that no single caller owns. Dropping this ends it.
struct SharedSyncTask {
    task: AbortHandle,
    began: Instant,
    outcome: Shared<BoxFuture<'static, Result<(), LightClientHeaderError>>>,
}

impl LightClient {
    /// A light client that sends requests through `http`, the client for the operator's URLs. Sends none yet.
    pub fn new(config: LightClientConfig, http: Arc<dyn BeaconHttpClient>, clock: TimeSource) -> Self {
        Self::from_follower(BeaconChainFollower::new(config, &http, clock))
    }

    /// As [`LightClient::new`], but never writes the file. For examinations, which may run as another user.
    pub fn new_read_only(config: LightClientConfig, http: Arc<dyn BeaconHttpClient>, clock: TimeSource) -> Self {
        Self::from_follower(BeaconChainFollower::new(config, &http, clock).into_read_only())
    }

    fn from_follower(follower: BeaconChainFollower) -> Self {
        Self { follower: Arc::new(follower), syncing: Mutex::default(), background: Arc::default() }
    }

    /// Continues from what `before` has verified, if network and checkpoint are the same. For a reload.
    pub fn adopt_progress(&self, before: &Self) {
        self.follower.adopt_progress(&before.follower);
    }

    /// The verified header that `selector` selects: the optimistic one for [`BlockSelector::Latest`], the finalized one
    /// for [`BlockSelector::Finalized`] and [`BlockSelector::Safe`]. Endpoints are asked unless they answered lately.
    ///
    /// # Errors
    /// [`ChainError::HeaderUnproven`].
    pub async fn fetch_verified_header(&self, selector: BlockSelector) -> Result<VerifiedBeaconHeader, ChainError> {
        let wanted = match selector {
            BlockSelector::Finalized | BlockSelector::Safe => HeaderFinality::Finalized,
            BlockSelector::Latest => HeaderFinality::Optimistic,
            BlockSelector::Number(_) | BlockSelector::Pinned(_) => {
                return Err(ChainError::HeaderUnproven(LightClientHeaderError::Block(selector.to_string())));
            }
        };
        match self.usable_headers(wanted) {
            Some((HeaderFreshness::Fresh, verified)) => return Ok(verified.header_by_finality(wanted)),
            Some((HeaderFreshness::Usable, verified)) => {
                drop(self.join_or_start_synchronization());
                return Ok(verified.header_by_finality(wanted));
            }
            _ => {}
        }
        Ok(self.synchronize_headers(wanted).await?.header_by_finality(wanted))
    }

    /// Asks the endpoints for the newest header, unless none can be newer than the known one. Returns the header with
    /// the time when an endpoint last reported it as its newest.
    ///
    /// # Errors
    /// [`ChainError::HeaderUnproven`].
    pub async fn fetch_newest_header(&self) -> Result<(VerifiedBeaconHeader, Timestamp), ChainError> {
        let (spec, now) = (self.follower.spec(), self.follower.now());
        let verified =
            match self.follower.verified_headers().filter(|verified| verified.is_optimistic_header_newest(spec, now)) {
                Some(verified) => verified,
                None => self.synchronize_headers(HeaderFinality::Optimistic).await?,
            };
        Ok((verified.optimistic, verified.newest_known_at(spec, self.follower.now())))
    }

    /// What the light client knows.
    pub fn status(&self) -> LightClientStatus {
        let (follower, now) = (&self.follower, self.follower.now());
        LightClientStatus {
            checkpoint: follower.config.checkpoint,
            checkpoint_age: follower.checkpoint_slot().map(|slot| follower.spec().slot_age(slot, unix_seconds(now))),
            headers: follower.verified_headers().map(|verified| verified.status(follower.spec(), now)),
            endpoints: follower.endpoints.iter().map(|endpoint| endpoint.status()).collect(),
        }
    }

    /// What proves that the execution block with this hash is finalized, from the checkpoint on. Endpoints are asked
    /// for the updates that this process has not fetched yet.
    ///
    /// # Errors
    /// [`ChainError::HeaderUnproven`] if the block is none of those that were finalized lately, or no endpoint has
    /// the data.
    pub async fn prove_finality(&self, block_hash: B256) -> Result<LightClientSyncTranscript, ChainError> {
        self.follower.prove_finality(block_hash).await.map_err(ChainError::HeaderUnproven)
    }

    /// The verified headers after a synchronization. If it fails, only if the wanted header is still usable.
    async fn synchronize_headers(&self, wanted: HeaderFinality) -> Result<VerifiedHeaderPair, ChainError> {
        let outcome = self.join_or_start_synchronization().await;
        match (self.usable_headers(wanted), outcome) {
            (Some((_, verified)), Ok(())) | (Some((HeaderFreshness::Fresh | HeaderFreshness::Usable, verified)), _) => {
                Ok(verified)
            }
            (_, Err(fault)) => Err(ChainError::HeaderUnproven(fault)),
            (None, Ok(())) => Err(ChainError::HeaderUnproven(self.follower.endpoint_failures_error())),
        }
    }

    fn usable_headers(&self, wanted: HeaderFinality) -> Option<(HeaderFreshness, VerifiedHeaderPair)> {
        let verified = self.follower.verified_headers()?;
        Some((verified.header_freshness(wanted, self.follower.spec(), self.follower.now()), verified))
    }

    /// The outcome of a synchronization: the one under way, or else a new one. One that failed is repeated after
    /// [`PAUSE`] at the earliest.
    fn join_or_start_synchronization(&self) -> Shared<BoxFuture<'static, Result<(), LightClientHeaderError>>> {
        let mut syncing = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_shared = |last: &&SharedSyncTask| !last.task.is_finished() || last.has_failed_recently();
        if let Some(last) = syncing.as_ref().filter(is_shared) {
            return last.outcome.clone();
        }
        let (follower, background) = (Arc::clone(&self.follower), Arc::clone(&self.background));
        let task = tokio::spawn(async move { follower.sync_store(&mut *background.lock().await).await });
        let abort = task.abort_handle();
        let broken_off = |error: JoinError| Err(LightClientHeaderError::Refused(error.to_string()));
        let outcome = task.map(move |ended| ended.unwrap_or_else(broken_off)).boxed().shared();
        *syncing = Some(SharedSyncTask { task: abort, began: Instant::now(), outcome: outcome.clone() });
        outcome
    }
}

impl SharedSyncTask {
    fn has_failed_recently(&self) -> bool {
        self.began.elapsed() < PAUSE && matches!(self.outcome.peek(), Some(Err(_)))
    }
}

impl Drop for SharedSyncTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
pub(crate) mod tests;
