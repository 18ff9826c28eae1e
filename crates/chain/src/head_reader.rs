//! [`HeadReader`]: polls endpoints for their newest block, and reads names at the head that enough of them report.
//!
//! As in every other reading, enough operators must return the same result. The block is identified by its hash, so an
//! endpoint that lacks it has no vote.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use clresolve_core::name::EnsName;
use clresolve_core::payment::Coins;
use clresolve_core::reading::{Block, BlockSelector, ChainError, GradeDemand, Latest};
use clresolve_state::answer::{self, Response};
use clresolve_state::contracts::Findings;
use clresolve_state::{Contracts, HashedHeader};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};

use crate::batch::Batches;
use crate::endpoint::RpcEndpoint;
use crate::exchange::{Attestation, ChainIdentity, Observation};
use crate::failure::Failure;
use crate::head::{ChainHead, HeadCounter};
use crate::head_age::{self, signed};
use crate::poll::{Votable, poll};
use crate::pool::{ChainConfig, Clock, EndpointPool};
use crate::query::Query;
use crate::transport::HttpPost;

/// Number of poll intervals without enough reports of the head, after which resting endpoints are polled too.
const MAX_MISSED_POLLS: u32 = 2;

/// The state of a name at the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtHead {
    /// Everything on which a verdict about the name rests, except its owner's name.
    OnChain(Latest),
    /// The records come from a CCIP-Read gateway, so the chain does not show whether they have changed.
    OffChain,
    /// The records are on chain, but the payment records come from a CCIP-Read gateway.
    PaymentOffChain(Latest),
    /// The endpoints agree that the name's resolver fails.
    Failing(ChainError),
}

/// A source of heads, and of the state of names there.
#[async_trait]
pub trait Heads: Send + Sync {
    /// The labels of what is polled. [`Heads::ask`] takes an index into this list.
    fn labels(&self) -> Vec<String>;

    /// Whether to poll this source now, given the poll `interval`.
    fn is_due(&self, source: usize, interval: Duration) -> bool;

    /// Asks one source for its newest block. Returns that block and the resulting head.
    ///
    /// # Errors
    /// [`ChainError`] if the source does not serve this chain, does not answer, or reports a block from the future.
    async fn ask(&self, source: usize) -> Result<(Block, Option<ChainHead>), ChainError>;

    /// Asks all sources for their newest block. Returns the head as soon as enough of them have reported it.
    ///
    /// # Errors
    /// [`ChainError`] if too few report the same head.
    async fn newest(self: Arc<Self>) -> Result<ChainHead, ChainError>;

    /// Reads everything on which a verdict about `name` rests, at this block.
    ///
    /// # Errors
    /// [`ChainError`] if too few sources agree.
    async fn read(&self, name: &EnsName, block: &Block) -> Result<AtHead, ChainError>;
}

/// Reads names at the head of a chain, as enough operators state it.
pub struct HeadReader {
    pool: EndpointPool,
    contracts: Contracts,
    coins: Coins,
    batches: Arc<Batches>,
    counter: Mutex<HeadCounter>,
}

impl HeadReader {
    /// Creates a reader with its own connections to the endpoints of `config`. If one endpoint suffices and the
    /// operator runs some, only those count.
    pub fn new(mut config: ChainConfig, http: &Arc<dyn HttpPost>) -> Self {
        let has_own = config.endpoints.iter().any(|endpoint| endpoint.own);
        if config.demand == GradeDemand::SingleRpc && has_own {
            config.endpoints.retain(|endpoint| endpoint.own);
        }
        let (contracts, coins) = (config.contracts, config.coins.clone());
        let batches = Arc::new(Batches::repeated(&config));
        let pool = EndpointPool::new(config, http);
        let operators = pool.endpoints().iter().map(|endpoint| endpoint.operator.clone());
        let counter = Mutex::new(HeadCounter::new(pool.agree(), operators));
        Self { contracts, coins, batches, counter, pool }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { pool: self.pool.with_clock(clock), ..self }
    }

    /// Whether the head needs no resting endpoint: enough operators are ready, and their last report of a head is at
    /// most `longest` old.
    fn is_head_reported(&self, longest: SignedDuration, now: Timestamp) -> bool {
        let ready = self.pool.endpoints().iter().filter(|endpoint| !endpoint.rests(now));
        let operators: BTreeSet<&str> = ready.map(|endpoint| endpoint.operator.as_str()).collect();
        let head = self.counter.lock().unwrap_or_else(PoisonError::into_inner).head();
        let is_recent = head.is_some_and(|head| now.duration_since(head.reported_at) <= longest);
        operators.len() >= self.pool.agree() && is_recent
    }

    async fn reported(&self, endpoint: usize) -> Result<(Block, Option<ChainHead>), Failure> {
        let asked = &self.pool.endpoints()[endpoint];
        let reported = self.newest_of(asked).await;
        let now = (self.pool.clock)();
        // Success is not recorded: an endpoint that reports a block may still fail calls.
        if let Err(failure) = &reported {
            asked.note(&reported, now);
            asked.note_head(failure, now);
        }
        let (header, block) = reported?;
        let mut counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
        if counter.is_backwards(endpoint, &block) {
            head_age::count_backwards(&asked.label);
        }
        Ok((block, counter.report(endpoint, &header, block, now)))
    }

    async fn newest_of(&self, endpoint: &RpcEndpoint) -> Result<(HashedHeader, Block), Failure> {
        endpoint.show_chain(self.pool.chain_id).await?;
        let (header, block) = endpoint.header(BlockSelector::Latest).await?;
        self.pool.head_age.check_ahead(block.timestamp, (self.pool.clock)())?;
        Ok((header, block))
    }
}

#[async_trait]
impl Heads for HeadReader {
    fn labels(&self) -> Vec<String> {
        self.pool.endpoints().iter().map(|endpoint| endpoint.label.clone()).collect()
    }

    /// `false` while the endpoint rests after a failure. If the head needs it, because too few other operators are left
    /// or have stopped agreeing on a head, it is polled nevertheless.
    fn is_due(&self, endpoint: usize, interval: Duration) -> bool {
        let now = (self.pool.clock)();
        if !self.pool.endpoints()[endpoint].rests(now) {
            return true;
        }
        let longest = signed(interval.saturating_mul(MAX_MISSED_POLLS));
        !self.is_head_reported(longest, now)
    }

    async fn ask(&self, endpoint: usize) -> Result<(Block, Option<ChainHead>), ChainError> {
        let label = &self.pool.endpoints()[endpoint].label;
        let asked = self.reported(endpoint).await;
        asked.map_err(|failure| failure.into_error(label, "latest", self.pool.chain_id))
    }

    async fn newest(self: Arc<Self>) -> Result<ChainHead, ChainError> {
        let began = (self.pool.clock)();
        let mut answers = FuturesUnordered::new();
        for endpoint in 0..self.pool.endpoints().len() {
            let reader = Arc::clone(&self);
            answers.push(tokio::spawn(async move { (endpoint, reader.reported(endpoint).await) }));
        }
        let (mut answered, mut failed) = (Vec::new(), Vec::new());
        while let Some(answer) = answers.next().await {
            let Ok((endpoint, reported)) = answer else { continue };
            let label = self.pool.endpoints()[endpoint].label.clone();
            match reported {
                Ok((_, Some(head))) if head.reported_at >= began => return Ok(head),
                Ok(_) => answered.push(label),
                Err(failure) => failed.push((label, failure.to_string())),
            }
        }
        Err(ChainError::TooFew { agree: self.pool.agree(), answered, failed })
    }

    /// Concurrent readings share calls.
    async fn read(&self, name: &EnsName, block: &Block) -> Result<AtHead, ChainError> {
        let query = Arc::new(Query::walk(name, &self.contracts, &self.coins));
        let at_head = NameAtHead { query: Arc::clone(&query), block: *block, batches: Arc::clone(&self.batches) };
        let selector = BlockSelector::Pinned(block.number);
        let findings = poll(&self.pool, Arc::new(at_head), selector).await?.pinned;
        Ok(at_head_of(&query, &findings).unwrap_or_else(AtHead::Failing))
    }
}

pub(crate) fn at_head_of(query: &Query, findings: &Findings) -> Result<AtHead, ChainError> {
    let answer = match answer::records_response(findings)? {
        Response::OffChain => return Ok(AtHead::OffChain),
        Response::Complete(answer) => answer,
        Response::Returned(returned) => answer::records(findings, query.keys, &returned)?,
    };
    let holder = findings.holder;
    let payment = match answer::payment_response(findings) {
        Ok(Response::OffChain) => return Ok(AtHead::PaymentOffChain(Latest { answer, holder })),
        Ok(Response::Complete(payment)) => Ok(payment),
        Ok(Response::Returned(returned)) => query.decode_payment(findings, &returned),
        Err(error) => Err(error),
    };
    Ok(AtHead::OnChain(Latest { answer: query.with_payment(answer, payment), holder }))
}

/// A query about a name at a block that is identified by its hash.
struct NameAtHead {
    query: Arc<Query>,
    block: Block,
    batches: Arc<Batches>,
}

#[async_trait]
impl Votable for NameAtHead {
    type Vote = Findings;

    async fn ask_at_own_block(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        _: BlockSelector,
        _: ChainIdentity,
    ) -> Result<Observation<Findings>, Failure> {
        let labels = [endpoint.label.clone()];
        let pinned = self.batches.ask(&endpoint.rpc, &labels, &self.query, &self.block).await?;
        Ok(Observation { block: self.block, pinned, latest: None, genesis: None })
    }

    async fn attest(&self, endpoint: &RpcEndpoint, block: &Block) -> Result<Attestation<Findings>, Failure> {
        endpoint.attest(&self.query, block).await
    }
}
