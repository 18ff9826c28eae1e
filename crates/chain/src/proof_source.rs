//! [`ProofSource`]: several endpoints as one source of state. The first response is used; its proofs replace trust.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_rpc_types_eth::{AccessList, BlockId};
use alloy_transport::TransportError;
use async_trait::async_trait;
use clresolve_state::{Call, Wanted};
use futures_util::FutureExt as _;

use crate::endpoint::RpcEndpoint;
use crate::failure::Failure;
use crate::fan_out::first;
use crate::pool::Clock;
use crate::prover::{ProverError, RpcSource, StateItem, StateSource};

/// Endpoints that are asked for state, one at first, then others if it stalls or fails.
pub(crate) struct ProofSource {
    candidates: Mutex<Candidates>,
    /// How long an endpoint may stall before the next one is asked too.
    patience: Duration,
    clock: Clock,
}

struct Candidates {
    /// The endpoints that may be asked, the one with the latest response first. Those that lied or failed are removed.
    endpoints: Vec<Arc<RpcEndpoint>>,
    /// Labels of the endpoints that failed, each with the cause.
    failures: Vec<(String, String)>,
}

impl ProofSource {
    pub(crate) fn new(endpoints: Vec<Arc<RpcEndpoint>>, patience: Duration, clock: Clock) -> Self {
        Self { candidates: Mutex::new(Candidates { endpoints, failures: Vec::new() }), patience, clock }
    }

    pub(crate) fn remove_latest(&self) -> Option<Arc<RpcEndpoint>> {
        let mut candidates = self.candidates();
        let latest = (!candidates.endpoints.is_empty()).then(|| candidates.endpoints.remove(0))?;
        latest.failed((self.clock)());
        Some(latest)
    }

    /// Labels of the endpoints that returned no proof, each with the cause.
    pub(crate) fn failures(&self) -> Vec<(String, String)> {
        self.candidates().failures.clone()
    }

    fn candidates(&self) -> MutexGuard<'_, Candidates> {
        self.candidates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prefer(&self, endpoint: &RpcEndpoint) {
        let endpoints = &mut self.candidates().endpoints;
        if let Some(place) = endpoints.iter().position(|other| other.label == endpoint.label) {
            endpoints[..=place].rotate_right(1);
        }
    }

    fn remove_failed(&self, endpoint: &RpcEndpoint, error: &ProverError) {
        let mut candidates = self.candidates();
        candidates.endpoints.retain(|other| other.label != endpoint.label);
        candidates.failures.push((endpoint.label.clone(), format!("it gave no proof: {error}")));
        endpoint.failed((self.clock)());
    }

    /// The first successful response.
    async fn first<T, F>(&self, ask: impl Fn(Arc<RpcEndpoint>) -> F) -> Result<T, ProverError>
    where
        F: Future<Output = Result<T, ProverError>>,
    {
        let endpoints = self.candidates().endpoints.clone();
        // Record each failure immediately: the caller may be cancelled before the next answer.
        let noted = |index: usize| {
            let (endpoint, answer) = (&endpoints[index], ask(Arc::clone(&endpoints[index])));
            answer.map(|answer| answer.inspect_err(|error| self.remove_failed(endpoint, error)))
        };
        let patience = Some(self.patience).filter(|_| !clresolve_core::mutant!("one-endpoint-keeps-proofs-back"));
        let Some((index, success)) = first(endpoints.len(), patience, noted).await.success else {
            return Err(ProverError::Endpoint(Failure::Unusable("no endpoint is left to ask".to_owned())));
        };
        self.prefer(&endpoints[index]);
        Ok(success)
    }
}

#[cfg(test)]
mod tests;

#[async_trait]
impl StateSource for ProofSource {
    /// The first response, even if it is an error. Continuing without a hint is faster than asking another endpoint.
    async fn touched(&self, call: &Call, block: BlockId) -> Result<AccessList, ProverError> {
        let ask = |endpoint: Arc<RpcEndpoint>| async move {
            let explain = |error: &TransportError| endpoint.failure(error);
            Ok(RpcSource { rpc: &endpoint.rpc, explain: &explain }.touched(call, block).await)
        };
        self.first(ask).await?
    }

    async fn fetch(&self, wanted: &Wanted, block: BlockId) -> Result<Vec<StateItem>, ProverError> {
        let ask = |endpoint: Arc<RpcEndpoint>| async move {
            let explain = |error: &TransportError| endpoint.failure(error);
            RpcSource { rpc: &endpoint.rpc, explain: &explain }.fetch(wanted, block).await
        };
        self.first(ask).await
    }
}
