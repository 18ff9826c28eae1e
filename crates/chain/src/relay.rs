//! Several endpoints as one source of proven state: one is asked, and others where it stalls or fails. Whoever answers
//! first will do, since nobody is believed.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_rpc_types_eth::{AccessList, BlockId};
use alloy_transport::TransportError;
use async_trait::async_trait;
use clresolve_state::{Call, Wanted};
use futures_util::stream::FuturesUnordered;

use super::endpoint::{Failure, Node};
use super::hedge::{self, Next};
use super::prover::{Given, ProverError, RpcSource, StateSource};
use super::rpc::Clock;

/// Endpoints that are asked for state.
pub(super) struct Relay {
    roster: Mutex<Roster>,
    /// How long one may stall until the next is asked beside it.
    patience: Duration,
    clock: Clock,
}

struct Roster {
    /// Who may be asked, the preferred one first: who gave the latest answer. Who lied or failed is out.
    nodes: Vec<Arc<Node>>,
    /// Labels of those who failed, with the causes.
    failures: Vec<(String, String)>,
}

impl Relay {
    pub(super) fn new(nodes: Vec<Arc<Node>>, patience: Duration, clock: Clock) -> Self {
        Self { roster: Mutex::new(Roster { nodes, failures: Vec::new() }), patience, clock }
    }

    /// Puts out who gave the latest answer.
    pub(super) fn put_out_latest(&self) -> Option<Arc<Node>> {
        let mut roster = self.roster();
        let latest = (!roster.nodes.is_empty()).then(|| roster.nodes.remove(0))?;
        latest.failed((self.clock)());
        Some(latest)
    }

    /// Labels of those who gave no proof, with the causes.
    pub(super) fn failures(&self) -> Vec<(String, String)> {
        self.roster().failures.clone()
    }

    fn roster(&self) -> MutexGuard<'_, Roster> {
        self.roster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prefer(&self, node: &Node) {
        let nodes = &mut self.roster().nodes;
        if let Some(place) = nodes.iter().position(|other| other.label == node.label) {
            nodes[..=place].rotate_right(1);
        }
    }

    fn put_out(&self, node: &Node, error: &ProverError) {
        let mut roster = self.roster();
        roster.nodes.retain(|other| other.label != node.label);
        roster.failures.push((node.label.clone(), format!("it gave no proof: {error}")));
        node.failed((self.clock)());
    }

    /// The first answer.
    async fn first<T, F>(&self, ask: impl Fn(Arc<Node>) -> F) -> Result<T, ProverError>
    where
        F: Future<Output = (Arc<Node>, Result<T, ProverError>)>,
    {
        let mut waiting = self.roster().nodes.clone().into_iter();
        let mut under_way = FuturesUnordered::new();
        under_way.extend(waiting.next().map(&ask));
        loop {
            let patience = (!waiting.as_slice().is_empty()).then_some(self.patience);
            match hedge::next(&mut under_way, patience).await {
                Next::Answer((node, Ok(answer))) => {
                    self.prefer(&node);
                    return Ok(answer);
                }
                Next::Answer((node, Err(error))) => self.put_out(&node, &error),
                Next::Stall => {}
                Next::Nobody => return Err(ProverError::Endpoint(Failure::Unusable("nobody is left".to_owned()))),
            }
            under_way.extend(waiting.next().map(&ask));
        }
    }
}

#[async_trait]
impl StateSource for Relay {
    /// The word of the first that answers, also where that is an error: to ask others would take longer than to do
    /// without a hint.
    async fn touched(&self, call: &Call, block: BlockId) -> Result<AccessList, ProverError> {
        let ask = |node: Arc<Node>| async move {
            let explain = |error: &TransportError| node.failure(error);
            let touched = RpcSource { rpc: &node.rpc, explain: &explain }.touched(call, block).await;
            (Arc::clone(&node), Ok(touched))
        };
        self.first(ask).await?
    }

    async fn fetch(&self, wanted: &Wanted, block: BlockId) -> Result<Vec<Given>, ProverError> {
        let ask = |node: Arc<Node>| async move {
            let explain = |error: &TransportError| node.failure(error);
            let given = RpcSource { rpc: &node.rpc, explain: &explain }.fetch(wanted, block).await;
            (Arc::clone(&node), given)
        };
        self.first(ask).await
    }
}
