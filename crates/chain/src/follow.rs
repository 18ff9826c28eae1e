//! Follows one endpoint: its newest block, and the event logs that show which names may have changed.
//!
//! A [`Follower`] is polled repeatedly. Everything it returns is a hint from its endpoint that a name should be read
//! again. Blocks that it could not read are reported as a gap. If a block was replaced, the changes of both blocks are
//! returned.

mod events;
#[cfg(test)]
mod tests;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use alloy_rpc_types_eth::{Filter, Log};
use alloy_transport::TransportError;
use clresolve_core::reading::{Block, BlockSelector};
use clresolve_state::{Contracts, HashedHeader};

pub use self::events::{Change, Source};
use self::events::{Topics, changes, registration};
pub(crate) use self::events::{first_bytes, subnode};
use self::window::Window;
use crate::endpoint::{Endpoint, RpcEndpoint};
use crate::failure::Failure;
use crate::pool::ChainConfig;
use crate::transport::HttpPost;

/// Number of blocks that are requested again in each round. Behind a load balancer, a server that lacks the newest
/// block returns no logs for it at first, but does so a moment later.
pub const OVERLAP: u64 = 4;

/// Most blocks requested at once: 25 minutes of mainnet. After a longer absence most verdicts have expired, and the
/// rest are read again.
const MAX_RANGE: u64 = 128;

/// Most log requests per round. A request that an endpoint refuses is split, so this is enough to find one full block
/// among the last few, and within it the one contract of many that filled it.
const MAX_LOG_REQUESTS: usize = 48;

/// Most changed places (a contract and a node) kept per round. A mainnet block has a few relevant ones. If the limit is
/// reached, followed places displace others.
const MAX_PLACES: usize = 1024;

/// Most resolvers listed in a request. If there are more, the logs of all contracts are requested.
const MAX_ADDRESSES: usize = 128;

/// Most blocks searched for the point where two chains fork. A deeper reorganisation counts as a gap.
const MAX_DEPTH: usize = 16;

/// Follows one endpoint.
pub struct Follower {
    configured: Endpoint,
    endpoint: RpcEndpoint,
    chain_id: u64,
    contracts: Contracts,
    topics: Topics,
    seen: Window,
    /// The resolvers whose logs were requested.
    asked: BTreeSet<Address>,
}

/// Whether a verdict was read from this place, so that a change there matters.
pub type Follows<'a> = dyn Fn(Source, B256) -> bool + Sync + 'a;

/// The news from an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The endpoint's newest block.
    pub head: Block,
    /// Names that may have changed. Changes in the last few blocks are reported repeatedly.
    pub changes: Vec<Change>,
    /// The lowest block that was replaced. Changes from this height on do not relate to what was read before.
    pub replaced: Option<u64>,
    /// Blocks whose logs could not be read.
    pub missed: Option<RangeInclusive<u64>>,
    /// Number of logs that were not requested.
    pub unasked: usize,
    /// Number of requested logs whose shape does not fit their event.
    pub malformed: usize,
}

/// Why an endpoint could not be followed. The cause does not include its URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FollowError {
    /// There was no answer, or an unusable one.
    #[error("{0}")]
    Unusable(String),
    /// The endpoint answered a log request with something else.
    #[error("{0}")]
    Malformed(String),
}

impl From<Failure> for FollowError {
    fn from(failure: Failure) -> Self {
        Self::Unusable(failure.to_string())
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("endpoint", &self.endpoint.label).finish_non_exhaustive()
    }
}

impl Follower {
    /// One follower for each endpoint of `config`. Followers have their own connections and health state, so following
    /// does not affect reads of names.
    pub fn all(config: &ChainConfig, http: &Arc<dyn HttpPost>) -> Vec<Self> {
        let follower = |endpoint: &Endpoint| Self {
            configured: endpoint.clone(),
            endpoint: RpcEndpoint::new(endpoint.clone(), Arc::clone(http), config.timeout),
            chain_id: config.chain_id,
            contracts: config.contracts,
            topics: Topics::new(),
            seen: Window::default(),
            asked: BTreeSet::new(),
        };
        config.endpoints.iter().map(follower).collect()
    }

    /// The configuration of the endpoint.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.configured
    }

    /// Returns the news since the last call, or `None` if the newest block is the same. Resolver logs are limited to
    /// `resolvers`. If this set has gained a member, the last blocks are read again. Places for which `follows` returns
    /// true have priority, so a flood of changes to other names cannot hide them.
    ///
    /// # Errors
    /// [`FollowError`]. The next call starts from the same block.
    pub async fn next(
        &mut self,
        resolvers: &BTreeSet<Address>,
        follows: &Follows<'_>,
    ) -> Result<Option<News>, FollowError> {
        // Only the chain id must be checked: everything else the endpoint says is a hint anyway.
        self.endpoint.show_chain(self.chain_id).await?;
        let (header, head) = self.endpoint.header(BlockSelector::Latest).await?;
        let again = || Beginning { first: head.number.saturating_sub(OVERLAP - 1), replaced: None, missed: None };
        let is_asked = resolvers.is_subset(&self.asked);
        match self.beginning(&header, &head).await?.or_else(|| (!is_asked).then(again)) {
            Some(beginning) => self.gather(head, resolvers, follows, beginning).await.map(Some),
            None => Ok(None),
        }
    }

    /// The block from which logs up to `head` are read. `None` if there are no new logs.
    async fn beginning(&self, header: &HashedHeader, head: &Block) -> Result<Option<Beginning>, Failure> {
        let Some(last) = self.seen.newest() else {
            let first = head.number.saturating_sub(OVERLAP - 1);
            return Ok(Some(Beginning { first, replaced: None, missed: None }));
        };
        let is_behind = head.number < self.seen.oldest();
        if self.seen.has(head) || is_behind && head.number.saturating_add(OVERLAP) > last {
            return Ok(None);
        }
        let common = if is_behind { None } else { self.common(header, head).await? };
        let Some(common) = common else {
            let lowest = self.seen.oldest().min(head.number);
            let missed = Some(lowest..=head.number.max(last));
            return Ok(Some(Beginning { first: head.number, replaced: Some(lowest), missed }));
        };
        let earliest = head.number.saturating_sub(MAX_RANGE - 1);
        Ok(Some(Beginning {
            first: (common + 1).saturating_sub(OVERLAP).max(earliest),
            replaced: (common < last).then_some(common + 1),
            missed: (common + 1 < earliest).then(|| common + 1..=earliest - 1),
        }))
    }

    /// The height of the newest seen block on the chain that ends with `head`. `None` if it is too far back.
    async fn common(&self, header: &HashedHeader, head: &Block) -> Result<Option<u64>, Failure> {
        for seen in self.seen.newest_first().filter(|seen| seen.number < head.number).take(MAX_DEPTH) {
            let is_parent = seen.number + 1 == head.number;
            let hash = if is_parent {
                header.parent_hash()
            } else {
                self.endpoint.header(BlockSelector::Number(seen.number)).await?.1.hash
            };
            if hash == seen.hash {
                return Ok(Some(seen.number));
            }
        }
        Ok(None)
    }

    /// Reads the logs from the given beginning to `head`, and records `head` as seen.
    async fn gather(
        &mut self,
        head: Block,
        resolvers: &BTreeSet<Address>,
        follows: &Follows<'_>,
        beginning: Beginning,
    ) -> Result<News, FollowError> {
        let Beginning { first, replaced, missed } = beginning;
        let mut harvest = Harvest::new(follows, missed);
        let mut requests = MAX_LOG_REQUESTS;
        for wanted in Wanted::groups(&self.contracts, &self.topics, resolvers) {
            self.reap(wanted, first..=head.number, &mut requests, &mut harvest).await?;
        }
        let mut changes = harvest.changes();
        let fresh = changes.clone();
        if let Some(lowest) = replaced {
            let undone = self.seen.cut(lowest);
            if undone.is_cut && !clresolve_core::mutant!("undone-changes-are-forgotten") {
                harvest.miss(lowest.min(head.number)..=head.number);
            }
            // Changes of replaced blocks are to be read again on the chain that ends with this head.
            changes.extend(undone.changes.into_iter().map(|change| Change { block: head.number, ..change }));
        }
        if !self.seen.has(&head) {
            self.seen.push(head, fresh);
        }
        self.asked.clone_from(resolvers);
        let Harvest { missed, unasked, malformed, .. } = harvest;
        Ok(News { head, changes, replaced, missed, unasked, malformed })
    }

    /// Reads the logs of a range in as few requests as the endpoint permits.
    async fn reap(
        &self,
        wanted: Wanted,
        range: RangeInclusive<u64>,
        requests: &mut usize,
        harvest: &mut Harvest<'_>,
    ) -> Result<(), FollowError> {
        let mut open = vec![(wanted, range)];
        // Terminates: each iteration uses up a request, and without requests nothing is added.
        while let Some((wanted, range)) = open.pop() {
            if *requests == 0 {
                harvest.miss(range);
                continue;
            }
            *requests -= 1;
            let filter = wanted.filter(&range);
            match self.endpoint.rpc.request::<_, Vec<Log>>("eth_getLogs", (filter,)).await {
                Ok(logs) => harvest.take(logs, &wanted, &range, &self.contracts),
                Err(error) if !Failure::is_about_the_range(&error) => return Err(self.without_logs(&error)),
                Err(_) => match wanted.parts(&range) {
                    Some(parts) => open.extend(parts),
                    None => harvest.miss(range),
                },
            }
        }
        Ok(())
    }

    /// Classifies an error response to a log request.
    fn without_logs(&self, error: &TransportError) -> FollowError {
        let failure = self.endpoint.failure(error);
        if Failure::is_malformed(error) { FollowError::Malformed(failure.to_string()) } else { failure.into() }
    }
}

/// The starting point for reading logs.
struct Beginning {
    first: u64,
    replaced: Option<u64>,
    missed: Option<RangeInclusive<u64>>,
}

/// A set of logs to request: these events of these contracts.
#[derive(Clone)]
struct Wanted {
    /// The relevant contracts. If there are more than [`MAX_ADDRESSES`], the logs of all contracts are requested.
    contracts: BTreeSet<Address>,
    topics: Vec<B256>,
}

impl Wanted {
    fn groups(contracts: &Contracts, topics: &Topics, resolvers: &BTreeSet<Address>) -> Vec<Self> {
        let registration = Self { contracts: registration(contracts).into(), topics: topics.registration.clone() };
        let resolvers = Self { contracts: resolvers.clone(), topics: topics.resolver.clone() };
        if resolvers.contracts.is_empty() { vec![registration] } else { vec![registration, resolvers] }
    }

    fn filter(&self, range: &RangeInclusive<u64>) -> Filter {
        let filter =
            Filter::new().from_block(*range.start()).to_block(*range.end()).event_signature(self.topics.clone());
        if self.names_contracts() { filter.address(self.contracts.iter().copied().collect::<Vec<_>>()) } else { filter }
    }

    fn names_contracts(&self) -> bool {
        self.contracts.len() <= MAX_ADDRESSES
    }

    /// Splits the request in two: by block range, else by contracts, else by events. An attacker who fills a block with
    /// logs of one contract thus hides only that contract's logs of the same event. `None` if the request cannot be
    /// split.
    fn parts(&self, range: &RangeInclusive<u64>) -> Option<[(Self, RangeInclusive<u64>); 2]> {
        let (first, last) = (*range.start(), *range.end());
        if first < last {
            let middle = first + (last - first) / 2;
            return Some([(self.clone(), first..=middle), (self.clone(), middle + 1..=last)]);
        }
        let parts = if clresolve_core::mutant!("full-blocks-are-gaps") {
            return None;
        } else if let Some(at) =
            self.contracts.iter().nth(self.contracts.len() / 2).filter(|_| self.contracts.len() > 1)
        {
            let mut earlier = self.contracts.clone();
            let later = earlier.split_off(at);
            [earlier, later].map(|contracts| Self { contracts, topics: self.topics.clone() })
        } else if self.topics.len() > 1 {
            let (some, others) = self.topics.split_at(self.topics.len() / 2);
            [some, others].map(|topics| Self { contracts: self.contracts.clone(), topics: topics.into() })
        } else {
            return None;
        };
        Some(parts.map(|part| (part, range.clone())))
    }

    /// Whether the request covers this log.
    fn asks_for(&self, log: &Log, range: &RangeInclusive<u64>) -> bool {
        let is_of_range = log.block_number.is_some_and(|number| range.contains(&number));
        let is_of_kind = log.topic0().is_some_and(|topic| self.topics.contains(topic));
        let is_of_contract = !self.names_contracts() || self.contracts.contains(&log.address());
        is_of_range && is_of_kind && is_of_contract && !log.removed
    }
}

/// The results of the log requests of one round.
struct Harvest<'a> {
    follows: &'a Follows<'a>,
    /// The block of the latest change at each followed place. Keyed by place, because a contract may repeat an event as
    /// often as gas permits.
    followed: Places,
    /// Changes at other places. A resolution in progress may concern one of them.
    others: Places,
    unasked: usize,
    malformed: usize,
    missed: Option<RangeInclusive<u64>>,
}

type Places = BTreeMap<(Source, B256), u64>;

impl<'a> Harvest<'a> {
    const fn new(follows: &'a Follows<'a>, missed: Option<RangeInclusive<u64>>) -> Self {
        Self { follows, followed: BTreeMap::new(), others: BTreeMap::new(), unasked: 0, malformed: 0, missed }
    }

    /// All changes, the followed ones first.
    fn changes(&self) -> Vec<Change> {
        let change = |(&(source, node), &block): (&(Source, B256), &u64)| Change { block, source, node };
        self.followed.iter().chain(&self.others).map(change).collect()
    }

    fn take(&mut self, logs: Vec<Log>, wanted: &Wanted, range: &RangeInclusive<u64>, contracts: &Contracts) {
        for log in &logs {
            if !wanted.asks_for(log, range) && !clresolve_core::mutant!("unasked-logs-count") {
                self.unasked += 1;
                continue;
            }
            if wanted.contracts.contains(&log.address()) || clresolve_core::mutant!("unasked-logs-count") {
                let Some(changes) = changes(log, contracts) else {
                    self.malformed += 1;
                    continue;
                };
                for change in changes {
                    self.note(change);
                }
            }
        }
    }

    fn note(&mut self, Change { source, node, block }: Change) {
        let place = (source, node);
        if let Some(known) = self.followed.get_mut(&place).or_else(|| self.others.get_mut(&place)) {
            *known = block.max(*known);
            return;
        }
        let is_followed = (self.follows)(source, node) && !clresolve_core::mutant!("all-places-are-alike");
        if !self.has_room() {
            let dropped = if is_followed { self.others.pop_last().map(|(_, block)| block) } else { None };
            self.miss(dropped.map_or(block..=block, |dropped| dropped..=dropped));
            if dropped.is_none() {
                return;
            }
        }
        let places = if is_followed { &mut self.followed } else { &mut self.others };
        places.insert(place, block);
    }

    fn has_room(&self) -> bool {
        self.followed.len() + self.others.len() < MAX_PLACES || clresolve_core::mutant!("places-without-end")
    }

    /// Records blocks whose logs could not be read.
    fn miss(&mut self, range: RangeInclusive<u64>) {
        let missed = self.missed.take().unwrap_or_else(|| range.clone());
        self.missed = Some(*missed.start().min(range.start())..=*missed.end().max(range.end()));
    }
}
