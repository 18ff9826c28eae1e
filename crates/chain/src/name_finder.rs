//! [`EventLogNameFinder`]: finds names in a chain's event logs, to build the list for an audit.
//!
//! Logs contain nodes rather than names, and nothing proves that an endpoint returned all of them. So the results of
//! several endpoints are merged: an endpoint that hides a name cannot hide it from the merged result, and one that
//! invents a name only costs an extra query. The spelling of a node is self-verifying, because the name must hash to
//! that node.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use alloy_json_rpc::RpcError;
use alloy_primitives::{Address, B256, Bytes, keccak256};
use alloy_rpc_types_eth::{BlockId, Filter, Log};
use alloy_transport::{TransportError, TransportErrorKind};
use clresolve_core::name::EnsName;
use clresolve_core::payment::EndpointRecordKey;
use clresolve_core::reading::BlockSelector;
use clresolve_core::records::TextRecordKey;
use clresolve_state::{EnsContractAddresses, name_wrapper};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::pool::ChainReaderConfig;
use crate::request::eth_call_request;
use crate::transport::{EndpointTransportError, HttpRequestError, JsonRpcHttpClient};

/// Maximum number of nodes accepted from one endpoint, about 10 MB: far more than there are agents, and few enough to
/// audit in minutes. It stops an endpoint that invents names endlessly.
const MAX_NODES: usize = 100_000;

/// Maximum number of requests for the same logs to one endpoint: enough for the newest ten million blocks in ranges of
/// ten thousand, the shortest limit among public endpoints. A refused range also uses up a request.
const MAX_REQUESTS: usize = 4096;

/// Time limit for all requests to one endpoint, and for looking up spellings.
const MAX_TIME: Duration = Duration::from_secs(600);

/// Time limit for each of the two record searches, so that a slow first search leaves time for the second. The chain id
/// and the last block are requested before them.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(280);

/// After an endpoint refuses the logs of this many single blocks for one value, it is not asked for that value again.
/// Each such block costs about forty requests, so the limit keeps an endpoint that refuses every block from using up
/// all requests. An attacker who fills that many consecutive blocks with records of one key hides the older records of
/// that key only; the failure is reported.
const MAX_REFUSED: usize = 16;

/// The prefix of the keys of an agent's records.
const AGENT_KEYS: &[u8] = b"cl.";

/// The event of a text record, in its versions without and with the value.
const TEXT_CHANGED: [&str; 2] = ["TextChanged(bytes32,string,string)", "TextChanged(bytes32,string,string,string)"];

/// Maximum number of nodes whose subnames are requested at once. Endpoints refuse longer filters.
const NODES_PER_REQUEST: usize = 64;

/// Number of concurrent spelling lookups. Public endpoints refuse too many requests at once.
const SPELT_AT_ONCE: usize = 8;

/// Maximum number of levels below a name. Agents are one or two levels below their publisher.
const MAX_LEVELS: usize = 8;

/// Finds names through each configured endpoint.
pub struct EventLogNameFinder {
    endpoints: Vec<RpcEndpoint>,
    chain_id: u64,
    contracts: EnsContractAddresses,
}

/// Which names to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameSearchScope {
    /// Names for which a record with a `cl.` key was set in these blocks. Without a last block, the search ends at the
    /// finalized block.
    Changed {
        /// The first block.
        first: u64,
        /// The last block.
        last: Option<u64>,
    },
    /// Currently registered names below this name, at every level.
    Below(EnsName),
}

/// The merged results of the endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundNamehashes {
    /// The nodes, each with the last block in which it appeared.
    pub nodes: BTreeMap<B256, u64>,
    /// Labels of the endpoints that answered completely, each with the last block that it searched.
    pub told: Vec<(String, u64)>,
    /// Labels of the endpoints that answered incompletely or not at all, each with the cause.
    pub failed: Vec<(String, String)>,
}

/// The spellings of nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamehashPreimages {
    /// The names that endpoints know, by node.
    pub names: BTreeMap<B256, EnsName>,
    /// The number of nodes about which no endpoint answered in time.
    pub unanswered: usize,
}

impl EventLogNameFinder {
    /// A finder that asks every endpoint of `config`. Requests go through `http`, the client for the operator's URLs.
    pub fn new(config: &ChainReaderConfig, http: &Arc<dyn JsonRpcHttpClient>) -> Self {
        let endpoint = |endpoint: &crate::RpcEndpointSettings| {
            RpcEndpoint::new(endpoint.clone(), Arc::clone(http), config.timeout)
        };
        Self {
            endpoints: config.endpoints.iter().map(endpoint).collect(),
            chain_id: config.chain_id,
            contracts: config.contracts,
        }
    }

    /// Asks all endpoints and merges their results.
    pub async fn find_names(&self, wanted: &NameSearchScope) -> FoundNamehashes {
        let told = join_all(self.endpoints.iter().map(|endpoint| self.search_endpoint(endpoint, wanted))).await;
        let mut found = FoundNamehashes::default();
        for (endpoint, EndpointFoundNamehashes { nodes, last, failure }) in self.endpoints.iter().zip(told) {
            for (node, block) in nodes {
                record_last_block(&mut found.nodes, node, block);
            }
            match failure {
                None => found.told.push((endpoint.label.clone(), last)),
                Some(cause) => found.failed.push((endpoint.label.clone(), cause)),
            }
        }
        found
    }

    /// Looks up the spellings of these nodes, as stored in the NameWrapper.
    pub async fn fetch_node_names(&self, nodes: BTreeSet<B256>) -> NamehashPreimages {
        let until = Instant::now() + MAX_TIME;
        let ask = async |node| (node, timeout_at(until, self.fetch_node_name(node)).await);
        let mut asked = pin!(stream::iter(nodes).map(ask).buffer_unordered(SPELT_AT_ONCE));
        let mut found = NamehashPreimages::default();
        while let Some((node, answer)) = asked.next().await {
            match answer {
                Ok(Some(Some(name))) => drop(found.names.insert(node, name)),
                Ok(Some(None)) => {}
                Ok(None) | Err(_) => found.unanswered += 1,
            }
        }
        found
    }

    /// The name of a node, from the first endpoint that knows it. `Some(None)` if no endpoint knows it, `None` if none
    /// answers.
    async fn fetch_node_name(&self, node: B256) -> Option<Option<EnsName>> {
        let call = eth_call_request(self.contracts.name_wrapper, name_wrapper::node_name_call(node));
        let mut answer = None;
        for endpoint in self.endpoints.iter().filter(|endpoint| endpoint.is_chain_identified()) {
            let asked = endpoint.rpc.request::<_, Bytes>("eth_call", (call.clone(), BlockId::finalized())).await;
            let Ok(data) = asked else { continue };
            if let Some(name) = name_wrapper::decode_node_name(&data, node) {
                return Some(Some(name));
            }
            answer = Some(None);
        }
        answer
    }

    async fn search_endpoint(&self, endpoint: &RpcEndpoint, wanted: &NameSearchScope) -> EndpointFoundNamehashes {
        let mut reader =
            EndpointEventLogScanner { endpoint, requests: MAX_REQUESTS, telling: EndpointFoundNamehashes::default() };
        let read = timeout(MAX_TIME, reader.search_names(wanted, self)).await;
        let failure = match read {
            Ok(Ok(())) => reader.telling.failure.take(),
            Ok(Err(failure)) => Some(failure.to_string()),
            Err(_) => Some(timeout_message(MAX_TIME)),
        };
        EndpointFoundNamehashes { failure, ..reader.telling }
    }
}

fn timeout_message(time: Duration) -> String {
    format!("it takes longer than {} s", time.as_secs())
}

#[derive(Default)]
struct EndpointFoundNamehashes {
    nodes: BTreeMap<B256, u64>,
    last: u64,
    failure: Option<String>,
}

struct EndpointEventLogScanner<'a> {
    endpoint: &'a RpcEndpoint,
    /// Number of requests left.
    requests: usize,
    telling: EndpointFoundNamehashes,
}

impl EndpointEventLogScanner<'_> {
    async fn search_names(
        &mut self,
        wanted: &NameSearchScope,
        finder: &EventLogNameFinder,
    ) -> Result<(), EndpointFailure> {
        self.endpoint.check_chain_id(finder.chain_id).await?;
        let finalized = self.endpoint.fetch_header(BlockSelector::Finalized).await?.1.number;
        match wanted {
            NameSearchScope::Changed { first, last } => {
                self.telling.last = last.unwrap_or(finalized).min(finalized);
                self.read_changed_names(*first..=self.telling.last).await;
            }
            NameSearchScope::Below(parent) => {
                self.telling.last = finalized;
                self.read_subnames(parent.namehash(), finder.contracts.registry).await;
            }
        }
        Ok(())
    }

    /// Requests the records of known keys first, by the hashes of these keys, then the records of any key. Blocks
    /// filled with records of other keys thus hide none of the known ones.
    async fn read_changed_names(&mut self, blocks: RangeInclusive<u64>) {
        let signatures = TEXT_CHANGED.map(keccak256).to_vec();
        let any_key = EventLogSearch {
            filter: Filter::new(),
            with_values: Filter::event_signature::<Vec<B256>>,
            values: signatures.clone(),
        };
        let known_keys = EventLogSearch {
            filter: Filter::new().event_signature(signatures),
            with_values: Filter::topic2::<Vec<B256>>,
            values: agent_record_key_hashes(),
        };
        let of_known_keys = self
            .read_text_record_logs(&known_keys, blocks.clone(), &mut |telling, log| telling.note_text_record_log(log))
            .await;
        self.requests = MAX_REQUESTS;
        let mut note_agents = |telling: &mut EndpointFoundNamehashes, log: &Log| {
            if log_has_agent_record_key(log) {
                telling.note_text_record_log(log);
            }
        };
        let of_others = self.read_text_record_logs(&any_key, blocks, &mut note_agents).await;
        let of_others =
            of_others.map(|cause| format!("records of other keys than the specification's were not all read: {cause}"));
        let causes: Vec<_> = of_known_keys.into_iter().chain(of_others).collect();
        self.telling.failure = (!causes.is_empty()).then(|| causes.join("; "));
    }

    /// Passes on each matching record, within the time of one search. Returns why records are missing, if any are.
    async fn read_text_record_logs(
        &mut self,
        search: &EventLogSearch,
        blocks: RangeInclusive<u64>,
        take: &mut (dyn FnMut(&mut EndpointFoundNamehashes, &Log) + Send),
    ) -> Option<String> {
        let read = timeout(MAX_SEARCH_TIME, self.read_logs(search, blocks, take)).await;
        let gap = read.unwrap_or_else(|_| Some(timeout_message(MAX_SEARCH_TIME)));
        self.telling.failure.take().or(gap)
    }

    /// Searches level by level. A name without an owner is not recorded, but its subnames are searched.
    async fn read_subnames(&mut self, parent: B256, registry: Address) {
        let new_owner = Filter::new().address(registry).event_signature(keccak256("NewOwner(bytes32,bytes32,address)"));
        let blocks = 0..=self.telling.last;
        let mut seen = BTreeSet::from([parent]);
        let (mut level, mut gap) = (vec![parent], None);
        for _ in 0..MAX_LEVELS {
            let mut owners: BTreeMap<B256, NameOwnershipChange> = BTreeMap::new();
            for parents in level.chunks(NODES_PER_REQUEST) {
                let search = EventLogSearch {
                    filter: new_owner.clone(),
                    with_values: Filter::topic1::<Vec<B256>>,
                    values: parents.to_vec(),
                };
                let mut note = |telling: &mut EndpointFoundNamehashes, log: &Log| {
                    let Some((node, ownership)) = NameOwnershipChange::from_log(log) else { return };
                    if seen.len() + owners.len() > MAX_NODES && !owners.contains_key(&node) {
                        return telling.record_failure(format!("it reports more than {MAX_NODES} names"));
                    }
                    let known = owners.entry(node).or_insert(ownership);
                    *known = ownership.max(*known);
                };
                gap = gap.or(self.read_logs(&search, blocks.clone(), &mut note).await);
            }
            level = owners.keys().copied().filter(|node| seen.insert(*node)).collect();
            for (node, NameOwnershipChange { position: (block, _), is_held }) in owners {
                if is_held {
                    self.telling.note_node_at_block(node, block);
                }
            }
            if level.is_empty() || self.telling.failure.is_some() {
                break;
            }
        }
        if !level.is_empty() {
            self.telling.record_failure(format!("names are more than {MAX_LEVELS} levels below"));
        }
        if let Some(cause) = gap {
            self.telling.record_failure(cause);
        }
    }

    /// Passes on each matching log of these blocks, newest blocks first. A refused range is split; a refused single
    /// block is split by values. Returns why a block is missing, if one is; the remaining blocks are still requested. A
    /// failure ends this search and all later ones.
    async fn read_logs(
        &mut self,
        search: &EventLogSearch,
        blocks: RangeInclusive<u64>,
        take: &mut (dyn FnMut(&mut EndpointFoundNamehashes, &Log) + Send),
    ) -> Option<String> {
        let mut open = vec![(blocks, search.values.clone())];
        let (mut refusals, mut first_cause) = (BTreeMap::<B256, usize>::new(), None);
        // Terminates: each iteration uses up a request or shrinks what is open, and it stops when no request is left.
        while let Some((blocks, mut values)) = open.pop().filter(|_| self.telling.failure.is_none()) {
            values.retain(|value| refusals.get(value).is_none_or(|blocks| *blocks < MAX_REFUSED));
            if blocks.is_empty() || values.is_empty() {
                continue;
            }
            match self.request_logs(&search.filter_for_values(&values), &blocks).await {
                Ok(logs) => logs.iter().for_each(|log| take(&mut self.telling, log)),
                Err(MissingLogsReason::Range) => {
                    let (first, last) = (*blocks.start(), *blocks.end());
                    let middle = first + (last - first) / 2;
                    open.extend([(first..=middle, values.clone()), (middle + 1..=last, values)]);
                }
                Err(MissingLogsReason::FullBlock(_)) if values.len() > 1 => {
                    let others = values.split_off(values.len() / 2);
                    open.extend([(blocks.clone(), others), (blocks, values)]);
                }
                Err(MissingLogsReason::FullBlock(cause) | MissingLogsReason::LateBlock(cause)) => {
                    values.into_iter().for_each(|value| *refusals.entry(value).or_default() += 1);
                    first_cause.get_or_insert(cause);
                }
                Err(MissingLogsReason::All(cause)) => self.telling.record_failure(cause),
            }
        }
        first_cause
    }

    /// The logs of these blocks that match the filter, in one request.
    async fn request_logs(
        &mut self,
        filter: &Filter,
        blocks: &RangeInclusive<u64>,
    ) -> Result<Vec<Log>, MissingLogsReason> {
        if self.requests == 0 {
            return Err(MissingLogsReason::All(format!(
                "it returns the logs of few blocks at a time: {MAX_REQUESTS} requests"
            )));
        }
        self.requests -= 1;
        let (first, last) = (*blocks.start(), *blocks.end());
        let part = filter.clone().from_block(first).to_block(last);
        let is_asked = |log: &Log| {
            let is_of_blocks = log.block_number.is_some_and(|number| blocks.contains(&number));
            is_of_blocks && !log.removed && filter.matches(&log.inner)
        };
        match self.endpoint.rpc.request::<_, Vec<Log>>("eth_getLogs", (part,)).await {
            Ok(logs) => Ok(logs.into_iter().filter(is_asked).collect()),
            Err(error) => {
                let cause = self.endpoint.failure_from_transport_error(&error);
                let of_block = || format!("it does not give the logs of block {first}: {cause}");
                Err(
                    match (
                        EndpointFailure::may_succeed_with_smaller_range(&error),
                        is_timeout_error(&error),
                        first == last,
                    ) {
                        (false, false, _) => MissingLogsReason::All(cause.to_string()),
                        (_, _, false) => MissingLogsReason::Range,
                        (true, _, true) => MissingLogsReason::FullBlock(of_block()),
                        (false, true, true) => MissingLogsReason::LateBlock(of_block()),
                    },
                )
            }
        }
    }
}

/// Whether the request timed out. A range of fewer blocks may be faster.
fn is_timeout_error(error: &TransportError) -> bool {
    let RpcError::Transport(TransportErrorKind::Custom(cause)) = error else { return false };
    matches!(cause.downcast_ref(), Some(EndpointTransportError::Post(HttpRequestError::Timeout(_))))
}

/// Logs to search for: those that match a filter and have one of these values in one topic.
struct EventLogSearch {
    filter: Filter,
    /// Adds the values to the filter, at that topic.
    with_values: fn(Filter, Vec<B256>) -> Filter,
    values: Vec<B256>,
}

impl EventLogSearch {
    /// The filter for logs with one of these values.
    fn filter_for_values(&self, values: &[B256]) -> Filter {
        (self.with_values)(self.filter.clone(), values.to_vec())
    }
}

/// Why an endpoint did not return logs.
enum MissingLogsReason {
    /// The range may be too long.
    Range,
    /// A single block may contain too many logs with these values.
    FullBlock(String),
    /// The logs of a single block do not arrive in time. Each further request for them may take as long.
    LateBlock(String),
    /// The endpoint will not return any other logs either.
    All(String),
}

/// The hashes of the keys that an agent's records may have.
fn agent_record_key_hashes() -> Vec<B256> {
    let keys = TextRecordKey::ALL.iter().chain(&TextRecordKey::SIGNER).map(|key| key.as_str());
    keys.chain([EndpointRecordKey::Runtime.as_str()]).map(keccak256).collect()
}

/// Whether the log of a text record contains the key of an agent's record in plain text. A key that does not match its
/// hash in the topics is ignored; the oldest resolvers emit no hash.
fn log_has_agent_record_key(log: &Log) -> bool {
    let key = decode_first_abi_bytes(&log.data().data).filter(|key| key.starts_with(AGENT_KEYS));
    key.is_some_and(|key| log.topics().get(2).is_none_or(|hash| *hash == keccak256(key)))
}

impl EndpointFoundNamehashes {
    /// Records the node of a text record's log.
    fn note_text_record_log(&mut self, log: &Log) {
        if let ([_, node, ..], Some(block)) = (log.topics(), log.block_number) {
            self.note_node_at_block(*node, block);
        }
    }

    fn note_node_at_block(&mut self, node: B256, block: u64) {
        let is_full = self.nodes.len() >= MAX_NODES && !clresolve_core::mutant!("nodes-without-end");
        if is_full && !self.nodes.contains_key(&node) {
            return self.record_failure(format!("it reports more than {MAX_NODES} names"));
        }
        record_last_block(&mut self.nodes, node, block);
    }

    /// Records a failure. The first one is kept, since later ones may follow from it.
    fn record_failure(&mut self, cause: String) {
        self.failure.get_or_insert(cause);
    }
}

/// Records the last block with a log about a node.
fn record_last_block(nodes: &mut BTreeMap<B256, u64>, node: B256, block: u64) {
    let last = nodes.entry(node).or_default();
    *last = block.max(*last);
}

/// Whether a name has an owner after a log. Ordered like the logs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NameOwnershipChange {
    /// Block number, and log index within it.
    position: (u64, u64),
    is_held: bool,
}

impl NameOwnershipChange {
    /// The node that a `NewOwner` log is about, and whether it has an owner from then on.
    fn from_log(log: &Log) -> Option<(B256, Self)> {
        let node = subname_node(*log.topics().get(1)?, *log.topics().get(2)?);
        let is_held = log.data().data.iter().any(|byte| *byte != 0);
        Some((node, Self { position: (log.block_number?, log.log_index?), is_held }))
    }
}

/// The node of the name with this label hash below `node` (EIP-137).
fn subname_node(node: B256, label: B256) -> B256 {
    keccak256([node, label].concat())
}

/// The `bytes` or `string` value whose offset is the first word.
fn decode_first_abi_bytes(data: &[u8]) -> Option<&[u8]> {
    let start = decode_abi_usize(data, 0)?;
    let length = decode_abi_usize(data, start)?;
    data.get(start.checked_add(32)?..)?.get(..length)
}

fn decode_abi_usize(data: &[u8], at: usize) -> Option<usize> {
    let (high, low) = data.get(at..at.checked_add(32)?)?.split_last_chunk::<8>()?;
    let low = usize::try_from(u64::from_be_bytes(*low)).ok()?;
    high.iter().all(|byte| *byte == 0).then_some(low)
}
