//! Combines queries about many names into one call, for audits and for readings at the head. Each name gets the same
//! answer as it would alone.
//!
//! A query waits briefly for others about the same block (`collector`), and all of them are sent in one call. The
//! result counts for all of them or for none: see [`clresolve_state::BatchedCallResults`]. If it does not count, each
//! name gets its own call. A request that still fails as a whole is halved (`halving`) until the query that causes the
//! failure is isolated.

mod collector;
mod halving;

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes};
use alloy_rpc_client::RpcClient;
use async_trait::async_trait;
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_core::text::excerpt_text;
use clresolve_state::contracts::NameFindings;
use clresolve_state::{BatchedCallResults, batch_call_data};
use tokio::time::timeout;

use self::collector::{BatchCollector, lock_ignoring_poison};
use self::halving::ask_bisecting_failures;
use crate::endpoint::RpcEndpoint;
use crate::exchange::{ChainIdentity, EndpointPinnedAndLatestVotes, VoteOrConflictingBlock};
use crate::failure::EndpointFailure;
use crate::poll::QuorumQuery;
use crate::pool::ChainReaderConfig;
use crate::query::{NameQuery, unusable_batch_failure};
use crate::request::{block_id_by_hash, eth_call_request};

/// How long a query waits for others. The queries of an audit arrive within a few milliseconds of each other.
const WAIT: Duration = Duration::from_millis(20);

/// Divisor of the request timeout that gives the time limit of a combined call. The rest is left for individual calls.
const PATIENCE: u32 = 4;

type ObservationResult = Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure>;

/// Queries by the labels of their endpoints and the call for their records.
type UnbatchableQueries = HashSet<(Vec<String>, Bytes)>;

type FindingsResult = Result<NameFindings, EndpointFailure>;

/// Maximum number of queries that are sent separately because they made a combined call fail. Beyond it, the list is
/// cleared.
const MAX_APART: usize = 1024;

/// Queries that wait for others, and the settings of their combined calls.
pub(crate) struct MulticallNameQueryBatcher {
    multicall3: Address,
    patience: Duration,
    /// Repeated queries that made a combined call fail. `None` if queries are not repeated.
    apart: Option<Arc<Mutex<UnbatchableQueries>>>,
    /// Keyed by endpoint and block.
    readings: BatchCollector<(String, BlockSelector), Arc<NameQuery>, ObservationResult>,
    /// Keyed by endpoints and block.
    findings: BatchCollector<(Vec<String>, B256), Arc<NameQuery>, FindingsResult>,
}

impl MulticallNameQueryBatcher {
    pub(crate) fn new(config: &ChainReaderConfig) -> Self {
        Self {
            multicall3: config.contracts.multicall3,
            patience: config.timeout / PATIENCE,
            apart: None,
            readings: BatchCollector::new(WAIT),
            findings: BatchCollector::new(WAIT),
        }
    }

    /// A batch for repeated queries: a query that made a combined call fail is sent separately from then on.
    pub(crate) fn for_repeated_queries(config: &ChainReaderConfig) -> Self {
        Self { apart: Some(Arc::default()), ..Self::new(config) }
    }

    /// Like [`RpcEndpoint::fetch_pinned_and_latest_votes`], combined with queries about other names.
    async fn fetch_pinned_and_latest_votes(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        query: &Arc<NameQuery>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure> {
        let (multicall3, patience) = (self.multicall3, self.patience);
        let key = (endpoint.label.clone(), selector);
        let endpoint = Arc::clone(endpoint);
        let ask = async move |queries: Vec<Arc<NameQuery>>| {
            if queries.len() > 1 {
                let together = endpoint.fetch_votes_by_multicall(multicall3, &queries, selector, identity);
                match limit_request_time(together, patience).await {
                    Ok(observations) => return observations,
                    Err(failure) => log_batch_failure(queries.len(), &failure),
                }
            }
            ask_bisecting_failures(&queries, &|part| endpoint.fetch_votes_by_separate_calls(part, selector, identity))
                .await
        };
        self.readings.ask_in_batch(key, Arc::clone(query), ask).await.unwrap_or_else(interrupted_request_error)
    }

    /// Like [`NameQuery::fetch_findings`], combined with queries about other names. `endpoints` are the labels of
    /// `client`'s endpoints.
    pub(crate) async fn fetch_findings(
        &self,
        client: &RpcClient,
        endpoints: &[String],
        query: &Arc<NameQuery>,
        block: &ChainBlock,
    ) -> Result<NameFindings, EndpointFailure> {
        let place = || (endpoints.to_vec(), query.resolve.clone());
        if self.apart.as_ref().is_some_and(|apart| lock_ignoring_poison(apart).contains(&place())) {
            return query.fetch_findings(client, block).await;
        }
        let (multicall3, patience, apart) = (self.multicall3, self.patience, self.apart.clone());
        let labels = endpoints.to_vec();
        let key = (labels.clone(), block.hash);
        let (client, block) = (client.clone(), *block);
        let ask = async move |queries: Vec<Arc<NameQuery>>| {
            let (distinct, indices) = deduplicate_queries(queries);
            let (isolated, is_combined) = (Mutex::new(Vec::new()), AtomicBool::new(false));
            let answers = ask_bisecting_failures(&distinct, &|part| {
                let (isolated, is_combined) = (&isolated, &is_combined);
                let asked = fetch_findings_by_multicall(&client, multicall3, part, &block, patience);
                async move {
                    let answers = asked.await;
                    match part {
                        [query] => lock_ignoring_poison(isolated).push(query.resolve.clone()),
                        _ => _ = is_combined.fetch_or(answers.is_ok(), Ordering::Relaxed),
                    }
                    answers
                }
            })
            .await;
            // If every combined call failed, the endpoint is to blame.
            if let Some(apart) = apart.filter(|_| is_combined.into_inner()) {
                let isolated = isolated.into_inner().unwrap_or_else(PoisonError::into_inner);
                remember_unbatchable_queries(&apart, isolated.into_iter().map(|resolve| (labels.clone(), resolve)));
            }
            indices.into_iter().map(|index| answers[index].clone()).collect()
        };
        self.findings.ask_in_batch(key, Arc::clone(query), ask).await.unwrap_or_else(interrupted_request_error)
    }
}

/// The findings of all queries from one combined call. A single query uses its own call.
async fn fetch_findings_by_multicall(
    client: &RpcClient,
    multicall3: Address,
    queries: &[Arc<NameQuery>],
    block: &ChainBlock,
    patience: Duration,
) -> Result<Vec<Result<NameFindings, EndpointFailure>>, EndpointFailure> {
    if let [query] = queries {
        return Ok(vec![query.fetch_findings(client, block).await]);
    }
    let call = eth_call_request(multicall3, batch_call_data(multicall3, queries.iter().map(|query| query.call_data())));
    let request = async {
        let data = client.request::<_, Bytes>("eth_call", (call, block_id_by_hash(block))).await;
        let data = data.map_err(|error| EndpointFailure::from_transport_error(&error, excerpt_text))?;
        BatchedCallResults::decode(&data, queries.len()).map_err(unusable_batch_failure)
    };
    let together =
        limit_request_time(request, patience).await.inspect_err(|failure| log_batch_failure(queries.len(), failure))?;
    Ok(queries.iter().zip(&together.results).map(|(query, data)| query.decode_findings_at_block(block, data)).collect())
}

/// Remembers queries that made a combined call fail.
fn remember_unbatchable_queries<K: Eq + Hash>(apart: &Mutex<HashSet<K>>, isolated: impl Iterator<Item = K>) {
    let mut apart = lock_ignoring_poison(apart);
    for query in isolated {
        if apart.len() >= MAX_APART {
            apart.clear();
        }
        apart.insert(query);
    }
}

/// Removes duplicate queries, and returns the index of each query among those that remain: many names have the same
/// owner.
fn deduplicate_queries(queries: Vec<Arc<NameQuery>>) -> (Vec<Arc<NameQuery>>, Vec<usize>) {
    let mut distinct: Vec<Arc<NameQuery>> = Vec::new();
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
async fn limit_request_time<T>(
    request: impl Future<Output = Result<T, EndpointFailure>>,
    patience: Duration,
) -> Result<T, EndpointFailure> {
    let late = |_| Err(EndpointFailure::Unusable(format!("no answer within {} ms", patience.as_millis())));
    timeout(patience, request).await.unwrap_or_else(late)
}

fn log_batch_failure(names: usize, failure: &EndpointFailure) {
    tracing::debug!(names, %failure, "names that were asked together are asked apart");
}

/// The task that sends the request ended without a result: it panicked, or the runtime is shutting down.
fn interrupted_request_error<T>() -> Result<T, EndpointFailure> {
    Err(EndpointFailure::Unusable("the request ended without a result".to_owned()))
}

/// A query that is combined with queries about other names.
pub(crate) struct BatchedNameQuery {
    pub(crate) query: Arc<NameQuery>,
    pub(crate) batches: Arc<MulticallNameQueryBatcher>,
}

#[async_trait]
impl QuorumQuery for BatchedNameQuery {
    type Vote = NameFindings;

    async fn fetch_pinned_and_latest_votes(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure> {
        self.batches.fetch_pinned_and_latest_votes(endpoint, &self.query, selector, identity).await
    }

    async fn fetch_vote_at_block(
        &self,
        endpoint: &RpcEndpoint,
        block: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<NameFindings>, EndpointFailure> {
        endpoint.fetch_vote_at_block(&self.query, block).await
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
            remember_unbatchable_queries(&apart, calls(number, 1).into_iter());
        }
        assert_eq!(lock_ignoring_poison(&apart).len(), MAX_APART);
        remember_unbatchable_queries(&apart, calls(MAX_APART, 1).into_iter());
        assert_eq!(
            *lock_ignoring_poison(&apart),
            calls(MAX_APART, 1).into_iter().collect::<HashSet<_>>(),
            "the others share again"
        );
    }
}
