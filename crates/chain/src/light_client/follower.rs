//! Keeps the store of a light client up to date.
//!
//! One synchronization runs at a time. It needs one honest endpoint: data that a rule refuses changes nothing, and the
//! next endpoint is asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use alloy_primitives::B256;
use clresolve_beacon::{
    ChainSpec, LightClientBootstrap, LightClientError, LightClientFinalityUpdate, LightClientOptimisticUpdate,
    LightClientStore, LightClientUpdate, MAX_CHECKPOINT_AGE, SyncAggregate,
};
use clresolve_core::reading::LightClientHeaderError;
use futures_util::future::{OptionFuture, join};
use jiff::Timestamp;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::config::{BeaconEndpointSettings, LightClientConfig};
use super::endpoint::{BeaconEndpointClient, BeaconEndpointError};
use super::history::LightClientUpdateHistory;
use super::http::BeaconHttpClient;
use super::request::{BeaconRequest, MAX_UPDATES_AT_ONCE, decode_response, decode_updates_response};
use super::saved;
use super::status::SyncCommitteeParticipation;
use super::verified::{HeaderFinality, HeaderFreshness, VerifiedHeaderPair, unix_seconds};
use crate::fan_out::ask_until_success;
use crate::pool::TimeSource;

/// Maximum number of requests for updates in one synchronization. With periods as short as in the preset `minimal`, two
/// weeks have about 1,600.
const MAX_ROUNDS: usize = 512;

/// Maximum wait for a newer header than that of the first valid answer: shorter than an answer can be used.
const WAIT_FOR_NEWER: Duration = Duration::from_secs(3);

/// Number of finalized headers whose proof is kept for bundles. One lasts for an epoch.
const MAX_FINALITY_UPDATES: usize = 16;

pub(super) struct BeaconChainFollower {
    pub(super) config: LightClientConfig,
    pub(super) endpoints: Vec<Arc<BeaconEndpointClient>>,
    clock: TimeSource,
    /// Lock order: this lock is acquired before all others.
    store: Mutex<Option<LightClientStore>>,
    /// What the store has verified, for readers.
    verified: RwLock<Option<VerifiedHeaderPair>>,
    /// Slot of the checkpoint, once an endpoint has proven it.
    checkpoint_slot: Mutex<Option<u64>>,
    /// The finality updates of the latest finalized headers, by the hash of the execution block.
    finality_updates: Mutex<VecDeque<(B256, LightClientFinalityUpdate)>>,
    /// The data from the checkpoint on, once a bundle needed it.
    pub(super) history: tokio::sync::Mutex<Option<LightClientUpdateHistory>>,
    /// The state that this process last read from or wrote to the file.
    saved: Mutex<Option<(B256, u64)>>,
    /// Whether the file is only read.
    is_observer: bool,
}

/// Requests that may outlive the synchronization that sent them: the store accepts their late answers. Dropping this
/// cancels them.
#[derive(Default)]
pub(super) struct BackgroundBeaconRequests {
    /// Requests for the newest headers, at most one per endpoint.
    newest: JoinSet<()>,
    /// The request for a committee that is not needed yet, and the epoch in which it was sent.
    committee: Option<(u64, JoinSet<bool>)>,
}

/// The next updates that a store needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UpdatePeriodRange {
    start_period: u64,
    count: u64,
    /// Whether no later header can be verified without them.
    are_needed: bool,
}

/// What a verified response adds to the snapshot for readers.
#[derive(Clone, Copy, Debug, Default)]
struct NewestHeaderReport {
    /// Which header the endpoint reports as its newest, and when the request was sent.
    newest: Option<(HeaderFinality, Timestamp)>,
    participation: Option<SyncCommitteeParticipation>,
}

impl BeaconChainFollower {
    pub(super) fn new(config: LightClientConfig, http: &Arc<dyn BeaconHttpClient>, clock: TimeSource) -> Self {
        let asked = |endpoint: &BeaconEndpointSettings| {
            Arc::new(BeaconEndpointClient::new(endpoint.clone(), Arc::clone(http), Arc::clone(&clock), config.timeout))
        };
        let endpoints = config.endpoints.iter().map(asked).collect();
        Self {
            endpoints,
            config,
            clock,
            store: Mutex::default(),
            verified: RwLock::default(),
            checkpoint_slot: Mutex::default(),
            finality_updates: Mutex::default(),
            history: tokio::sync::Mutex::default(),
            saved: Mutex::default(),
            is_observer: false,
        }
    }

    /// Never writes the file.
    pub(super) fn into_read_only(self) -> Self {
        Self { is_observer: true, ..self }
    }

    /// Takes over what `before` has verified, unless it follows another chain or began at another checkpoint.
    pub(super) fn adopt_progress(&self, before: &Self) {
        let origin = |follower: &Self| (follower.config.spec.clone(), follower.config.checkpoint);
        if origin(self) != origin(before) {
            return;
        }
        // While the store is locked, all copies belong to the same state.
        let store = lock_ignoring_poison(&before.store);
        (*lock_ignoring_poison(&self.store)).clone_from(&store);
        *lock_ignoring_poison(&self.checkpoint_slot) = *lock_ignoring_poison(&before.checkpoint_slot);
        (*lock_ignoring_poison(&self.finality_updates)).clone_from(&lock_ignoring_poison(&before.finality_updates));
        *self.verified.write().unwrap_or_else(PoisonError::into_inner) = before.verified_headers();
    }

    pub(super) fn verified_headers(&self) -> Option<VerifiedHeaderPair> {
        *self.verified.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(super) const fn spec(&self) -> &ChainSpec {
        &self.config.spec
    }

    pub(super) fn checkpoint_slot(&self) -> Option<u64> {
        *lock_ignoring_poison(&self.checkpoint_slot)
    }

    /// The finality update that finalized the execution block with this hash.
    pub(super) fn finality_update_for_block(&self, block_hash: B256) -> Option<LightClientFinalityUpdate> {
        let updates = lock_ignoring_poison(&self.finality_updates);
        updates.iter().find(|(hash, _)| *hash == block_hash).map(|(_, update)| update.clone())
    }

    /// The endpoints in the order of asking: as configured, but those that failed lately last. Endpoints whose data
    /// violated a rule are asked only if all others failed lately.
    pub(super) fn endpoints_in_order(&self) -> Vec<Arc<BeaconEndpointClient>> {
        let endpoints = self.endpoints.iter().cloned();
        let (honest, mut set_aside): (Vec<_>, Vec<_>) =
            endpoints.partition(|endpoint| endpoint.has_no_recent_violation());
        let (resting, ready): (Vec<_>, Vec<_>) =
            honest.into_iter().partition(|endpoint| endpoint.has_failed_recently());
        if !ready.is_empty() {
            set_aside.clear();
        }
        [ready, resting, set_aside].concat()
    }

    /// Why the endpoints brought nothing.
    pub(super) fn endpoint_failures_error(&self) -> LightClientHeaderError {
        LightClientHeaderError::Endpoints(
            self.endpoints.iter().filter_map(|endpoint| endpoint.last_failure()).collect(),
        )
    }

    /// Updates the store with the newest data that an endpoint proves.
    pub(super) async fn sync_store(
        self: &Arc<Self>,
        background: &mut BackgroundBeaconRequests,
    ) -> Result<(), LightClientHeaderError> {
        if !self.has_recent_store() {
            self.load_or_bootstrap_store().await?;
        }
        let synchronized = match self.fetch_missing_updates().await {
            Ok(()) => self.ask_for_newest_headers(&mut background.newest).await,
            failed => failed,
        };
        self.prefetch_next_committee(&mut background.committee);
        self.save_state().await;
        synchronized
    }

    fn has_recent_store(&self) -> bool {
        let now = unix_seconds(self.now());
        lock_ignoring_poison(&self.store).as_ref().is_some_and(|store| store.check_finalized_header_age(now).is_ok())
    }

    /// Continues from the file, or else starts from the checkpoint.
    async fn load_or_bootstrap_store(self: &Arc<Self>) -> Result<(), LightClientHeaderError> {
        let store = match self.load_store().await {
            Some(store) => store,
            None => self.bootstrap_store().await?,
        };
        let verified = VerifiedHeaderPair {
            finalized: store.finalized_header(),
            optimistic: store.optimistic_header(),
            participation: None,
            finality_at: None,
            optimistic_at: None,
        };
        let mut current = lock_ignoring_poison(&self.store);
        *current = Some(store);
        *self.verified.write().unwrap_or_else(PoisonError::into_inner) = Some(verified);
        Ok(())
    }

    async fn load_store(self: &Arc<Self>) -> Option<LightClientStore> {
        let path = self.config.file.clone()?;
        let (spec, checkpoint, now) = (self.spec().clone(), self.config.checkpoint, unix_seconds(self.now()));
        let shown = path.display().to_string();
        match run_on_blocking_thread(move || saved::load_saved_state(&path, spec, checkpoint, now)).await {
            Ok(store) => {
                *lock_ignoring_poison(&self.saved) = store.as_ref().map(saved_state_key);
                store
            }
            Err(error) => {
                tracing::warn!(file = shown, "the light client's state file is not used: {error}");
                None
            }
        }
    }

    async fn bootstrap_store(self: &Arc<Self>) -> Result<LightClientStore, LightClientHeaderError> {
        let (store, _) = self.fetch_bootstrap().await?;
        let now = unix_seconds(self.now());
        match store.check_finalized_header_age(now) {
            Ok(()) => Ok(store),
            Err(LightClientError::CheckpointTooOld { .. }) => {
                let age = self.spec().slot_age(store.finalized_header().slot(), now);
                Err(LightClientHeaderError::CheckpointTooOld { age, limit: MAX_CHECKPOINT_AGE })
            }
            Err(error) => Err(LightClientHeaderError::Refused(error.to_string())),
        }
    }

    /// A store at the checkpoint, and the bootstrap, from the first endpoint that has a valid one.
    pub(super) async fn fetch_bootstrap(
        self: &Arc<Self>,
    ) -> Result<(LightClientStore, LightClientBootstrap), LightClientHeaderError> {
        let endpoints = self.endpoints_in_order();
        let ask = |index: usize| self.run_and_record_outcome(Arc::clone(&endpoints[index]), Self::fetch_bootstrap_from);
        let asked = ask_until_success(endpoints.len(), Some(self.config.hedge_after), ask).await;
        let (_, started) = asked.success.ok_or_else(|| self.endpoint_failures_error())?;
        *lock_ignoring_poison(&self.checkpoint_slot) = Some(started.0.finalized_header().slot());
        Ok(started)
    }

    async fn fetch_bootstrap_from(
        self: Arc<Self>,
        endpoint: Arc<BeaconEndpointClient>,
    ) -> Result<(LightClientStore, LightClientBootstrap), BeaconEndpointError> {
        let response = endpoint.send_request(BeaconRequest::Bootstrap(self.config.checkpoint)).await?;
        run_on_blocking_thread(move || {
            let spec = self.spec();
            let bootstrap: LightClientBootstrap = decode_response(&response, spec)?;
            let store = LightClientStore::from_bootstrap(spec.clone(), self.config.checkpoint, bootstrap.clone())?;
            Ok((store, bootstrap))
        })
        .await
    }

    /// Runs `ask` and records its outcome for the endpoint.
    pub(super) async fn run_and_record_outcome<T, F: Future<Output = Result<T, BeaconEndpointError>>>(
        self: &Arc<Self>,
        endpoint: Arc<BeaconEndpointClient>,
        ask: impl FnOnce(Arc<Self>, Arc<BeaconEndpointClient>) -> F,
    ) -> Result<T, BeaconEndpointError> {
        let outcome = ask(Arc::clone(self), Arc::clone(&endpoint)).await;
        match &outcome {
            Ok(_) => endpoint.note_success(),
            Err(fault) => endpoint.note_fault(fault),
        }
        outcome
    }

    /// Fetches the updates without which no later header can be verified.
    async fn fetch_missing_updates(self: &Arc<Self>) -> Result<(), LightClientHeaderError> {
        for _ in 0..MAX_ROUNDS {
            let Some(needed) = self.wanted_update_periods().filter(|wanted| wanted.are_needed) else { return Ok(()) };
            if !self.fetch_wanted_updates(needed).await {
                return Err(self.endpoint_failures_error());
            }
        }
        Err(LightClientHeaderError::Refused(format!("more than {MAX_ROUNDS} requests for updates are needed")))
    }

    /// Fetches the committee of the next period in the background. It is needed only when that period begins; until
    /// then, one request an epoch is enough.
    fn prefetch_next_committee(self: &Arc<Self>, asked: &mut Option<(u64, JoinSet<bool>)>) {
        let Some(wanted) = self.wanted_update_periods().filter(|wanted| !wanted.are_needed) else { return };
        let epoch = self.spec().slot_at_time(unix_seconds(self.now())) / self.spec().preset.slots_per_epoch;
        if asked.as_ref().is_none_or(|(last, _)| *last != epoch) {
            let this = Arc::clone(self);
            let request = async move { this.fetch_wanted_updates(wanted).await };
            *asked = Some((epoch, [request].into_iter().collect()));
        }
    }

    /// Asks endpoints for updates until one of them has supplied some.
    async fn fetch_wanted_updates(self: &Arc<Self>, wanted: UpdatePeriodRange) -> bool {
        let endpoints = self.endpoints_in_order();
        let ask = |index: usize| {
            self.run_and_record_outcome(Arc::clone(&endpoints[index]), move |this, endpoint| {
                this.fetch_updates_from(endpoint, wanted)
            })
        };
        ask_until_success(endpoints.len(), Some(self.config.hedge_after), ask).await.success.is_some()
    }

    fn wanted_update_periods(&self) -> Option<UpdatePeriodRange> {
        let store = lock_ignoring_poison(&self.store);
        let store = store.as_ref()?;
        let current_period = self.spec().period_at_slot(self.spec().slot_at_time(unix_seconds(self.now())));
        let start_period = store.next_update_period();
        let are_needed = start_period < current_period;
        let are_useful = start_period == current_period && start_period == store.finalized_period();
        let count = current_period.saturating_sub(start_period).saturating_add(1).min(MAX_UPDATES_AT_ONCE);
        (are_needed || are_useful).then_some(UpdatePeriodRange { start_period, count, are_needed })
    }

    async fn fetch_updates_from(
        self: Arc<Self>,
        endpoint: Arc<BeaconEndpointClient>,
        wanted: UpdatePeriodRange,
    ) -> Result<(), BeaconEndpointError> {
        let UpdatePeriodRange { start_period, count, are_needed } = wanted;
        let response = endpoint.send_request(BeaconRequest::Updates { start_period, count }).await?;
        self.run_blocking_store_job(move |store, slot| {
            for update in decode_updates_response(&response, count, store.spec())? {
                process_update_unless_known(store, &update, slot)?;
            }
            // The committee may have arrived in the background in the meantime.
            if are_needed && store.next_update_period() <= start_period {
                return Err(BeaconEndpointError::NoUpdate(start_period));
            }
            Ok(NewestHeaderReport::default())
        })
        .await
    }

    /// Asks all endpoints for the newest headers. Ends as soon as one of them has brought what is due, or a while after
    /// the first valid answer. Fails if no endpoint has proven what is due since it began.
    async fn ask_for_newest_headers(self: &Arc<Self>, pending: &mut JoinSet<()>) -> Result<(), LightClientHeaderError> {
        let (Some(known), began) = (self.verified_headers(), self.now()) else {
            return Err(self.endpoint_failures_error());
        };
        let is_finality_due =
            known.header_freshness(HeaderFinality::Finalized, self.spec(), began) != HeaderFreshness::Fresh;
        for endpoint in self.endpoints_in_order().into_iter().filter(|endpoint| !endpoint.has_pending_newest_request())
        {
            let request = Arc::clone(self).fetch_newest_headers_from(Arc::clone(&endpoint), known, is_finality_due);
            endpoint.set_pending_newest_request(pending.spawn(request));
        }
        let mut answered_at = None;
        loop {
            let ended = match answered_at {
                Some(at) => {
                    timeout_at(at + self.pending_request_time_limit(), pending.join_next()).await.ok().flatten()
                }
                None => pending.join_next().await,
            };
            if ended.is_none() || self.has_newest_headers(&known, is_finality_due) {
                break;
            }
            if self.has_newest_header_report_since(HeaderFinality::Optimistic, began) {
                answered_at.get_or_insert_with(Instant::now);
            }
        }
        let is_answered = self.has_newest_header_report_since(HeaderFinality::Optimistic, began)
            && (!is_finality_due || self.has_newest_header_report_since(HeaderFinality::Finalized, began));
        if is_answered { Ok(()) } else { Err(self.endpoint_failures_error()) }
    }

    /// Whether an endpoint that was asked at `began` or later has proven its newest header.
    fn has_newest_header_report_since(&self, wanted: HeaderFinality, began: Timestamp) -> bool {
        let reported_at = self.verified_headers().and_then(|verified| verified.newest_reported_at(wanted, self.now()));
        reported_at.is_some_and(|at| at >= began)
    }

    /// How long the pending requests may take after the first valid answer. A newer head is worth waiting for, but not
    /// a newer finalized header alone, nor an endpoint that failed lately.
    fn pending_request_time_limit(&self) -> Duration {
        let is_head = self
            .verified_headers()
            .is_some_and(|verified| verified.is_optimistic_header_newest(self.spec(), self.now()));
        let may_bring_head = !is_head
            && self
                .endpoints
                .iter()
                .any(|endpoint| endpoint.has_pending_newest_request() && !endpoint.has_failed_recently());
        if may_bring_head { WAIT_FOR_NEWER } else { self.config.hedge_after.min(WAIT_FOR_NEWER) }
    }

    /// Whether nothing newer can be brought. A newer header alone is not enough: otherwise a fast endpoint that lags
    /// would hold back the headers of the others.
    fn has_newest_headers(&self, before: &VerifiedHeaderPair, is_finality_due: bool) -> bool {
        let Some(verified) = self.verified_headers() else { return false };
        let is_first_enough = verified.is_optimistic_header_newest(self.spec(), self.now())
            || clresolve_core::mutant!("beacon-laggards-win");
        is_first_enough && (!is_finality_due || verified.finalized.slot() > before.finalized.slot())
    }

    /// Asks one endpoint for the newest headers, and records one outcome for both.
    pub(super) async fn fetch_newest_headers_from(
        self: Arc<Self>,
        endpoint: Arc<BeaconEndpointClient>,
        known: VerifiedHeaderPair,
        is_finality_due: bool,
    ) {
        let at = self.now();
        let optimistic = Arc::clone(&self).fetch_optimistic_update_from(Arc::clone(&endpoint), known, at);
        let finality = is_finality_due.then(|| self.fetch_finality_update_from(Arc::clone(&endpoint), known, at));
        let (optimistic, finality) = join(optimistic, OptionFuture::from(finality)).await;
        let faults = [finality.and_then(Result::err), optimistic.err()];
        if faults.iter().all(Option::is_none) {
            endpoint.note_success();
        }
        faults.iter().flatten().for_each(|fault| endpoint.note_fault(fault));
    }

    async fn fetch_optimistic_update_from(
        self: Arc<Self>,
        endpoint: Arc<BeaconEndpointClient>,
        known: VerifiedHeaderPair,
        at: Timestamp,
    ) -> Result<(), BeaconEndpointError> {
        let response = endpoint.send_request(BeaconRequest::OptimisticUpdate).await?;
        self.run_blocking_store_job(move |store, slot| {
            let update: LightClientOptimisticUpdate = decode_response(&response, store.spec())?;
            let beacon = &update.attested_header.beacon;
            check_newest_slot_not_behind(beacon.slot, known.optimistic.slot())?;
            let newest = Some((HeaderFinality::Optimistic, at));
            // A report of the known header needs no second verification, unless the clock was set back.
            if beacon.slot < slot && beacon.hash_tree_root() == store.optimistic_header().beacon_root() {
                return Ok(NewestHeaderReport { newest, participation: None });
            }
            store.process_optimistic_update(&update, slot)?;
            // Another endpoint may have brought a later header in the meantime.
            if beacon.slot < store.optimistic_header().slot() {
                return Ok(NewestHeaderReport::default());
            }
            Ok(NewestHeaderReport {
                newest,
                participation: Some(committee_participation(&update.sync_aggregate, store.spec())),
            })
        })
        .await
    }

    async fn fetch_finality_update_from(
        self: Arc<Self>,
        endpoint: Arc<BeaconEndpointClient>,
        known: VerifiedHeaderPair,
        at: Timestamp,
    ) -> Result<(), BeaconEndpointError> {
        let response = endpoint.send_request(BeaconRequest::FinalityUpdate).await?;
        let this = Arc::clone(&self);
        self.run_blocking_store_job(move |store, slot| {
            let update: LightClientFinalityUpdate = decode_response(&response, store.spec())?;
            let beacon = &update.finalized_header.beacon;
            check_newest_slot_not_behind(beacon.slot, known.finalized.slot())?;
            store.process_finality_update(&update, slot)?;
            if beacon.hash_tree_root() != store.finalized_header().beacon_root() {
                return Ok(NewestHeaderReport::default());
            }
            let participation = Some(committee_participation(&update.sync_aggregate, store.spec()));
            this.keep_finality_update(store.finalized_header().block_hash(), update);
            Ok(NewestHeaderReport { newest: Some((HeaderFinality::Finalized, at)), participation })
        })
        .await
    }

    /// Runs a job on the store in a thread for blocking work, then publishes what the store has verified.
    async fn run_blocking_store_job(
        self: Arc<Self>,
        job: impl FnOnce(&mut LightClientStore, u64) -> Result<NewestHeaderReport, BeaconEndpointError> + Send + 'static,
    ) -> Result<(), BeaconEndpointError> {
        run_on_blocking_thread(move || {
            let slot = self.spec().slot_at_time(unix_seconds(self.now()));
            let mut store = lock_ignoring_poison(&self.store);
            let store = store.as_mut().ok_or_else(|| BeaconEndpointError::BrokenOff("there is no store".to_owned()))?;
            let report = job(store, slot);
            self.publish_headers(store, report.as_ref().copied().unwrap_or_default());
            report.map(drop)
        })
        .await
    }

    fn publish_headers(&self, store: &LightClientStore, report: NewestHeaderReport) {
        let now = self.now();
        let mut verified = self.verified.write().unwrap_or_else(PoisonError::into_inner);
        let Some(verified) = verified.as_mut() else { return };
        (verified.finalized, verified.optimistic) = (store.finalized_header(), store.optimistic_header());
        verified.participation = report.participation.or(verified.participation);
        if let Some((wanted, at)) = report.newest {
            verified.note_header_report(wanted, at, now);
        }
        verified.record_metrics(self.spec());
    }

    /// Keeps the first finality update of a block for bundles. A later one may be signed after the time of a bundle.
    fn keep_finality_update(&self, block_hash: B256, update: LightClientFinalityUpdate) {
        let mut updates = lock_ignoring_poison(&self.finality_updates);
        if updates.iter().any(|(hash, _)| *hash == block_hash) {
            return;
        }
        if updates.len() == MAX_FINALITY_UPDATES {
            updates.pop_front();
        }
        updates.push_back((block_hash, update));
    }

    /// Writes the state to the file if the finalized header or a committee is new.
    async fn save_state(self: &Arc<Self>) {
        let Some(path) = self.config.file.clone().filter(|_| !self.is_observer) else { return };
        let (state, bytes) = {
            let store = lock_ignoring_poison(&self.store);
            let Some(store) = store.as_ref() else { return };
            let state = saved_state_key(store);
            if *lock_ignoring_poison(&self.saved) == Some(state) {
                return;
            }
            (state, store.to_bytes())
        };
        let shown = path.display().to_string();
        match run_on_blocking_thread(move || saved::save_state_file(&path, &bytes)).await {
            Ok(()) => *lock_ignoring_poison(&self.saved) = Some(state),
            Err(error) => tracing::warn!(file = shown, %error, "the light client's state is not saved"),
        }
    }
}

/// Processes an update of a list. What the store knows already is skipped.
pub(super) fn process_update_unless_known(
    store: &mut LightClientStore,
    update: &LightClientUpdate,
    current_slot: u64,
) -> Result<(), LightClientError> {
    match store.process_update(update, current_slot) {
        Ok(_) | Err(LightClientError::NothingNew { .. } | LightClientError::PeriodPast { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What distinguishes the saved states of one checkpoint: the finalized header, and the next period whose committee is
/// not known.
fn saved_state_key(store: &LightClientStore) -> (B256, u64) {
    (store.finalized_header().beacon_root(), store.next_update_period())
}

/// Verifies that the newest header of an endpoint is not older than the known one. An older one is no report that the
/// known one is still the newest.
fn check_newest_slot_not_behind(observed: u64, known: u64) -> Result<(), BeaconEndpointError> {
    if observed < known && !clresolve_core::mutant!("beacon-replays-are-reports") {
        return Err(BeaconEndpointError::Behind { observed, known });
    }
    Ok(())
}

fn committee_participation(aggregate: &SyncAggregate, spec: &ChainSpec) -> SyncCommitteeParticipation {
    SyncCommitteeParticipation { participants: aggregate.participant_count(), size: spec.preset.sync_committee_size }
}

/// Runs a job on a thread for blocking work. Returns an error if the job panics.
pub(super) async fn run_on_blocking_thread<T: Send + 'static, E: From<JoinError> + Send + 'static>(
    job: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    tokio::task::spawn_blocking(job).await.unwrap_or_else(|error| Err(error.into()))
}

pub(super) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
