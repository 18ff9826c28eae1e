//! [`FailoverStateSource`]: several endpoints as one source of state. The first response is used; its proofs replace
//! trust.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_rpc_types_eth::{AccessList, BlockId};
use alloy_transport::TransportError;
use async_trait::async_trait;
use clresolve_state::{EvmCall, WantedState};
use futures_util::FutureExt as _;

use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::fan_out::ask_until_success;
use crate::pool::TimeSource;
use crate::prover::{CallProverError, RpcStateSource, StateProofOrCode, StateSource};

/// Endpoints that are asked for state, one at first, then others if it stalls or fails.
pub(crate) struct FailoverStateSource {
    candidates: Mutex<StateSourceCandidates>,
    /// How long an endpoint may stall before the next one is asked too.
    patience: Duration,
    clock: TimeSource,
}

struct StateSourceCandidates {
    /// The endpoints that may be asked, the one with the latest response first. Those that lied or failed are removed.
    endpoints: Vec<Arc<RpcEndpoint>>,
    /// Labels of the endpoints that failed, each with the cause.
    failures: Vec<(String, String)>,
}

impl FailoverStateSource {
    pub(crate) fn new(endpoints: Vec<Arc<RpcEndpoint>>, patience: Duration, clock: TimeSource) -> Self {
        Self { candidates: Mutex::new(StateSourceCandidates { endpoints, failures: Vec::new() }), patience, clock }
    }

    pub(crate) fn remove_latest_responder(&self) -> Option<Arc<RpcEndpoint>> {
        let mut candidates = self.lock_candidates();
        let latest = (!candidates.endpoints.is_empty()).then(|| candidates.endpoints.remove(0))?;
        latest.mark_failed((self.clock)());
        Some(latest)
    }

    /// Labels of the endpoints that returned no proof, each with the cause.
    pub(crate) fn failures(&self) -> Vec<(String, String)> {
        self.lock_candidates().failures.clone()
    }

    fn lock_candidates(&self) -> MutexGuard<'_, StateSourceCandidates> {
        self.candidates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prefer_endpoint(&self, endpoint: &RpcEndpoint) {
        let endpoints = &mut self.lock_candidates().endpoints;
        if let Some(place) = endpoints.iter().position(|other| other.label == endpoint.label) {
            endpoints[..=place].rotate_right(1);
        }
    }

    fn remove_failed_endpoint(&self, endpoint: &RpcEndpoint, error: &CallProverError) {
        let mut candidates = self.lock_candidates();
        candidates.endpoints.retain(|other| other.label != endpoint.label);
        candidates.failures.push((endpoint.label.clone(), format!("it gave no proof: {error}")));
        endpoint.mark_failed((self.clock)());
    }

    /// The first successful response.
    async fn fetch_first_success<T, F>(&self, ask: impl Fn(Arc<RpcEndpoint>) -> F) -> Result<T, CallProverError>
    where
        F: Future<Output = Result<T, CallProverError>>,
    {
        let endpoints = self.lock_candidates().endpoints.clone();
        // Record each failure immediately: the caller may be cancelled before the next answer.
        let noted = |index: usize| {
            let (endpoint, answer) = (&endpoints[index], ask(Arc::clone(&endpoints[index])));
            answer.map(|answer| answer.inspect_err(|error| self.remove_failed_endpoint(endpoint, error)))
        };
        let patience = Some(self.patience).filter(|_| !clresolve_core::mutant!("one-endpoint-keeps-proofs-back"));
        let Some((index, success)) = ask_until_success(endpoints.len(), patience, noted).await.success else {
            return Err(CallProverError::Endpoint(EndpointFailure::Unusable("no endpoint is left to ask".to_owned())));
        };
        self.prefer_endpoint(&endpoints[index]);
        Ok(success)
    }
}

#[cfg(test)]
mod tests;

#[async_trait]
impl StateSource for FailoverStateSource {
    /// The first response, even if it is an error. Continuing without a hint is faster than asking another endpoint.
    async fn fetch_access_list(&self, call: &EvmCall, block: BlockId) -> Result<AccessList, CallProverError> {
        let ask = |endpoint: Arc<RpcEndpoint>| async move {
            let explain = |error: &TransportError| endpoint.failure_from_transport_error(error);
            Ok(RpcStateSource { rpc: &endpoint.rpc, explain: &explain }.fetch_access_list(call, block).await)
        };
        self.fetch_first_success(ask).await?
    }

    async fn fetch_state(
        &self,
        wanted: &WantedState,
        block: BlockId,
    ) -> Result<Vec<StateProofOrCode>, CallProverError> {
        let ask = |endpoint: Arc<RpcEndpoint>| async move {
            let explain = |error: &TransportError| endpoint.failure_from_transport_error(error);
            RpcStateSource { rpc: &endpoint.rpc, explain: &explain }.fetch_state(wanted, block).await
        };
        self.fetch_first_success(ask).await
    }
}
