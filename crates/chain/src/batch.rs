//! Combines queries about many names into one call, for audits and for readings at the head. Each name gets the same
//! answer as it would alone.
//!
//! A query waits briefly for others about the same block (`collector`), and all of them are sent in one call. The
//! result counts for all of them or for none: see [`clresolve_state::Together`]. If it does not count, each name gets
//! its own call. A request that still fails as a whole is halved (`halving`) until the query that causes the failure is
//! isolated.

mod collector;
mod halving;

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes};
use alloy_rpc_client::RpcClient;
use async_trait::async_trait;
use clresolve_core::reading::{Block, BlockSelector};
use clresolve_core::text::excerpt;
use clresolve_state::contracts::Findings;
use clresolve_state::{Together, call_together};
use tokio::time::timeout;

use self::collector::Collector;
use self::halving::halving;
use crate::endpoint::RpcEndpoint;
use crate::exchange::{Attestation, ChainIdentity, Observation};
use crate::failure::Failure;
use crate::poll::Votable;
use crate::pool::ChainConfig;
use crate::query::{Query, spoiled};
use crate::request::{by_hash, eth_call};

/// How long a query waits for others. The queries of an audit arrive within a few milliseconds of each other.
const WAIT: Duration = Duration::from_millis(20);

/// Divisor of the request timeout that gives the time limit of a combined call. The rest is left for individual calls.
const PATIENCE: u32 = 4;

type Observed = Result<Observation<Findings>, Failure>;

/// Queries by the labels of their endpoints and the call for their records.
type Apart = HashSet<(Vec<String>, Bytes)>;

type Answered = Result<Findings, Failure>;

/// Maximum number of queries that are sent separately because they made a combined call fail. Beyond it, the list is
/// cleared.
const MAX_APART: usize = 1024;

/// Queries that wait for others, and the settings of their combined calls.
pub(crate) struct Batches {
    multicall3: Address,
    patience: Duration,
    /// Repeated queries that made a combined call fail. `None` if queries are not repeated.
    apart: Option<Arc<Mutex<Apart>>>,
    /// Keyed by endpoint and block.
    readings: Collector<(String, BlockSelector), Arc<Query>, Observed>,
    /// Keyed by endpoints and block.
    findings: Collector<(Vec<String>, B256), Arc<Query>, Answered>,
}

impl Batches {
    pub(crate) fn new(config: &ChainConfig) -> Self {
        Self {
            multicall3: config.contracts.multicall3,
            patience: config.timeout / PATIENCE,
            apart: None,
            readings: Collector::new(WAIT),
            findings: Collector::new(WAIT),
        }
    }

    /// A batch for repeated queries: a query that made a combined call fail is sent separately from then on.
    pub(crate) fn repeated(config: &ChainConfig) -> Self {
        Self { apart: Some(Arc::default()), ..Self::new(config) }
    }

    /// Like [`RpcEndpoint::ask_at_own_block`], combined with queries about other names.
    async fn ask_at_own_block(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        query: &Arc<Query>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<Findings>, Failure> {
        let (multicall3, patience) = (self.multicall3, self.patience);
        let key = (endpoint.label.clone(), selector);
        let endpoint = Arc::clone(endpoint);
        let ask = async move |queries: Vec<Arc<Query>>| {
            if queries.len() > 1 {
                let together = endpoint.observe_together(multicall3, &queries, selector, identity);
                match in_time(together, patience).await {
                    Ok(observations) => return observations,
                    Err(failure) => note(queries.len(), &failure),
                }
            }
            halving(&queries, &|part| endpoint.observe_apart(part, selector, identity)).await
        };
        self.readings.join(key, Arc::clone(query), ask).await.unwrap_or_else(broken_off)
    }

    /// Like [`Query::ask`], combined with queries about other names. `endpoints` are the labels of `client`'s
    /// endpoints.
    pub(crate) async fn ask(
        &self,
        client: &RpcClient,
        endpoints: &[String],
        query: &Arc<Query>,
        block: &Block,
    ) -> Result<Findings, Failure> {
        let place = || (endpoints.to_vec(), query.resolve.clone());
        if self.apart.as_ref().is_some_and(|apart| lock(apart).contains(&place())) {
            return query.ask(client, block).await;
        }
        let (multicall3, patience, apart) = (self.multicall3, self.patience, self.apart.clone());
        let labels = endpoints.to_vec();
        let key = (labels.clone(), block.hash);
        let (client, block) = (client.clone(), *block);
        let ask = async move |queries: Vec<Arc<Query>>| {
            let (distinct, indices) = distinct(queries);
            let (isolated, is_combined) = (Mutex::new(Vec::new()), AtomicBool::new(false));
            let answers = halving(&distinct, &|part| {
                let (isolated, is_combined) = (&isolated, &is_combined);
                let asked = ask_all(&client, multicall3, part, &block, patience);
                async move {
                    let answers = asked.await;
                    match part {
                        [query] => lock(isolated).push(query.resolve.clone()),
                        _ => _ = is_combined.fetch_or(answers.is_ok(), Ordering::Relaxed),
                    }
                    answers
                }
            })
            .await;
            // If every combined call failed, the endpoint is to blame.
            if let Some(apart) = apart.filter(|_| is_combined.into_inner()) {
                let isolated = isolated.into_inner().unwrap_or_else(PoisonError::into_inner);
                blame(&apart, isolated.into_iter().map(|resolve| (labels.clone(), resolve)));
            }
            indices.into_iter().map(|index| answers[index].clone()).collect()
        };
        self.findings.join(key, Arc::clone(query), ask).await.unwrap_or_else(broken_off)
    }
}

/// The findings of all queries from one combined call. A single query uses its own call.
async fn ask_all(
    client: &RpcClient,
    multicall3: Address,
    queries: &[Arc<Query>],
    block: &Block,
    patience: Duration,
) -> Result<Vec<Result<Findings, Failure>>, Failure> {
    if let [query] = queries {
        return Ok(vec![query.ask(client, block).await]);
    }
    let call = eth_call(multicall3, call_together(multicall3, queries.iter().map(|query| query.call_data())));
    let request = async {
        let data = client.request::<_, Bytes>("eth_call", (call, by_hash(block))).await;
        let data = data.map_err(|error| Failure::of(&error, excerpt))?;
        Together::decode(&data, queries.len()).map_err(spoiled)
    };
    let together = in_time(request, patience).await.inspect_err(|failure| note(queries.len(), failure))?;
    Ok(queries.iter().zip(&together.results).map(|(query, data)| query.decode_at(block, data)).collect())
}

/// Remembers queries that made a combined call fail.
fn blame<K: Eq + Hash>(apart: &Mutex<HashSet<K>>, isolated: impl Iterator<Item = K>) {
    let mut apart = lock(apart);
    for query in isolated {
        if apart.len() >= MAX_APART {
            apart.clear();
        }
        apart.insert(query);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes duplicate queries, and returns the index of each query among those that remain: many names have the same
/// owner.
fn distinct(queries: Vec<Arc<Query>>) -> (Vec<Arc<Query>>, Vec<usize>) {
    let mut distinct: Vec<Arc<Query>> = Vec::new();
    let mut indices = Vec::with_capacity(queries.len());
    for query in queries {
        let index = distinct.iter().position(|other| other.call == query.call).unwrap_or(distinct.len());
        if index == distinct.len() {
            distinct.push(query);
        }
        indices.push(index);
    }
    (distinct, indices)
}

/// Limits a combined request to the time that its names share.
async fn in_time<T>(request: impl Future<Output = Result<T, Failure>>, patience: Duration) -> Result<T, Failure> {
    let late = |_| Err(Failure::Unusable(format!("no answer within {} ms", patience.as_millis())));
    timeout(patience, request).await.unwrap_or_else(late)
}

fn note(names: usize, failure: &Failure) {
    tracing::debug!(names, %failure, "names that were asked together are asked apart");
}

/// The task that sends the request ended without a result: it panicked, or the runtime is shutting down.
fn broken_off<T>() -> Result<T, Failure> {
    Err(Failure::Unusable("the request ended without a result".to_owned()))
}

/// A query that is combined with queries about other names.
pub(crate) struct Accompanied {
    pub(crate) query: Arc<Query>,
    pub(crate) batches: Arc<Batches>,
}

#[async_trait]
impl Votable for Accompanied {
    type Vote = Findings;

    async fn ask_at_own_block(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<Findings>, Failure> {
        self.batches.ask_at_own_block(endpoint, &self.query, selector, identity).await
    }

    async fn attest(&self, endpoint: &RpcEndpoint, block: &Block) -> Result<Attestation<Findings>, Failure> {
        endpoint.attest(&self.query, block).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` calls, numbered from `first`.
    fn calls(first: usize, count: usize) -> Vec<Bytes> {
        (first..first + count).map(|number| number.to_be_bytes().to_vec().into()).collect()
    }

    #[test]
    fn remembered_queries_are_bounded() {
        let apart = Mutex::default();
        for number in 0..MAX_APART {
            blame(&apart, calls(number, 1).into_iter());
        }
        assert_eq!(lock(&apart).len(), MAX_APART);
        blame(&apart, calls(MAX_APART, 1).into_iter());
        assert_eq!(*lock(&apart), calls(MAX_APART, 1).into_iter().collect::<HashSet<_>>(), "the others share again");
    }
}
