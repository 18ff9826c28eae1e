//! [`QuorumHeadReader`]: polls endpoints for their newest block, and reads names at the head that enough of them
//! report.
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
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, LatestNameState, ProofGradeDemand};
use clresolve_state::answer::{self, EnsAnswerStage};
use clresolve_state::contracts::NameFindings;
use clresolve_state::{EnsContractAddresses, HashedBlockHeader};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};

use crate::batch::MulticallNameQueryBatcher;
use crate::endpoint::RpcEndpoint;
use crate::exchange::{ChainIdentity, EndpointPinnedAndLatestVotes, VoteOrConflictingBlock};
use crate::failure::EndpointFailure;
use crate::head::{ChainHead, HeadVoteCounter};
use crate::head_age::{self, to_signed_duration};
use crate::poll::{QuorumQuery, poll_quorum};
use crate::pool::{ChainReaderConfig, EndpointPool, TimeSource};
use crate::query::NameQuery;
use crate::transport::JsonRpcHttpClient;

/// Number of poll intervals without enough reports of the head, after which resting endpoints are polled too.
const MAX_MISSED_POLLS: u32 = 2;

/// The state of a name at the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameStateAtHead {
    /// Everything on which a verdict about the name rests, except its owner's name.
    OnChain(LatestNameState),
    /// The records come from a CCIP-Read gateway, so the chain does not show whether they have changed.
    OffChain,
    /// The records are on chain, but the payment records come from a CCIP-Read gateway.
    PaymentOffChain(LatestNameState),
    /// The endpoints agree that the name's resolver fails.
    Failing(ChainError),
}

/// A source of heads, and of the state of names there.
#[async_trait]
pub trait ChainHeadReader: Send + Sync {
    /// The labels of what is polled. [`ChainHeadReader::poll_head`] takes an index into this list.
    fn source_labels(&self) -> Vec<String>;

    /// Whether to poll this source now, given the poll `interval`.
    fn is_poll_due(&self, source: usize, interval: Duration) -> bool;

    /// Asks one source for its newest block. Returns that block and the resulting head.
    ///
    /// # Errors
    /// [`ChainError`] if the source does not serve this chain, does not answer, or reports a block from the future.
    async fn poll_head(&self, source: usize) -> Result<(ChainBlock, Option<ChainHead>), ChainError>;

    /// Asks all sources for their newest block. Returns the head as soon as enough of them have reported it.
    ///
    /// # Errors
    /// [`ChainError`] if too few report the same head.
    async fn newest_head(self: Arc<Self>) -> Result<ChainHead, ChainError>;

    /// Reads everything on which a verdict about `name` rests, at this block.
    ///
    /// # Errors
    /// [`ChainError`] if too few sources agree.
    async fn read_name_state(&self, name: &EnsName, block: &ChainBlock) -> Result<NameStateAtHead, ChainError>;
}

/// Reads names at the head of a chain, as enough operators state it.
pub struct QuorumHeadReader {
    pool: EndpointPool,
    contracts: EnsContractAddresses,
    coins: RequestedCoinTypes,
    batches: Arc<MulticallNameQueryBatcher>,
    counter: Mutex<HeadVoteCounter>,
}

impl QuorumHeadReader {
    /// Creates a reader with its own connections to the endpoints of `config`. If one endpoint suffices and the
    /// operator runs some, only those count.
    pub fn new(mut config: ChainReaderConfig, http: &Arc<dyn JsonRpcHttpClient>) -> Self {
        let has_own = config.endpoints.iter().any(|endpoint| endpoint.own);
        if config.demand == ProofGradeDemand::SingleRpc && has_own {
            config.endpoints.retain(|endpoint| endpoint.own);
        }
        let (contracts, coins) = (config.contracts, config.coins.clone());
        let batches = Arc::new(MulticallNameQueryBatcher::for_repeated_queries(&config));
        let pool = EndpointPool::new(config, http);
        let operators = pool.endpoints().iter().map(|endpoint| endpoint.operator.clone());
        let counter = Mutex::new(HeadVoteCounter::new(pool.required_operator_count(), operators));
        Self { contracts, coins, batches, counter, pool }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: TimeSource) -> Self {
        Self { pool: self.pool.with_clock(clock), ..self }
    }

    /// Whether the head needs no resting endpoint: enough operators are ready, and their last report of a head is at
    /// most `longest` old.
    fn is_head_recently_reported(&self, longest: SignedDuration, now: Timestamp) -> bool {
        let ready = self.pool.endpoints().iter().filter(|endpoint| !endpoint.has_failed_recently(now));
        let operators: BTreeSet<&str> = ready.map(|endpoint| endpoint.operator.as_str()).collect();
        let head = self.counter.lock().unwrap_or_else(PoisonError::into_inner).head();
        let is_recent = head.is_some_and(|head| now.duration_since(head.reported_at) <= longest);
        operators.len() >= self.pool.required_operator_count() && is_recent
    }

    async fn poll_endpoint(&self, endpoint: usize) -> Result<(ChainBlock, Option<ChainHead>), EndpointFailure> {
        let asked = &self.pool.endpoints()[endpoint];
        let reported = self.fetch_newest_header(asked).await;
        let now = (self.pool.clock)();
        // Success is not recorded: an endpoint that reports a block may still fail calls.
        if let Err(failure) = &reported {
            asked.record_response_outcome(&reported, now);
            asked.note_refused_head(failure, now);
        }
        let (header, block) = reported?;
        let mut counter = self.counter.lock().unwrap_or_else(PoisonError::into_inner);
        if counter.is_head_regression(endpoint, &block) {
            head_age::count_head_regression(&asked.label);
        }
        Ok((block, counter.add_head_report(endpoint, &header, block, now)))
    }

    async fn fetch_newest_header(
        &self,
        endpoint: &RpcEndpoint,
    ) -> Result<(HashedBlockHeader, ChainBlock), EndpointFailure> {
        endpoint.check_chain_id(self.pool.chain_id).await?;
        let (header, block) = endpoint.fetch_header(BlockSelector::Latest).await?;
        self.pool.head_age.check_not_in_future(block.timestamp, (self.pool.clock)())?;
        Ok((header, block))
    }
}

#[async_trait]
impl ChainHeadReader for QuorumHeadReader {
    fn source_labels(&self) -> Vec<String> {
        self.pool.endpoints().iter().map(|endpoint| endpoint.label.clone()).collect()
    }

    /// `false` while the endpoint rests after a failure. If the head needs it, because too few other operators are left
    /// or have stopped agreeing on a head, it is polled nevertheless.
    fn is_poll_due(&self, endpoint: usize, interval: Duration) -> bool {
        let now = (self.pool.clock)();
        if !self.pool.endpoints()[endpoint].has_failed_recently(now) {
            return true;
        }
        let longest = to_signed_duration(interval.saturating_mul(MAX_MISSED_POLLS));
        !self.is_head_recently_reported(longest, now)
    }

    async fn poll_head(&self, endpoint: usize) -> Result<(ChainBlock, Option<ChainHead>), ChainError> {
        let label = &self.pool.endpoints()[endpoint].label;
        let asked = self.poll_endpoint(endpoint).await;
        asked.map_err(|failure| failure.into_chain_error(label, "latest", self.pool.chain_id))
    }

    async fn newest_head(self: Arc<Self>) -> Result<ChainHead, ChainError> {
        let began = (self.pool.clock)();
        let mut answers = FuturesUnordered::new();
        for endpoint in 0..self.pool.endpoints().len() {
            let reader = Arc::clone(&self);
            answers.push(tokio::spawn(async move { (endpoint, reader.poll_endpoint(endpoint).await) }));
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
        Err(ChainError::TooFew { agree: self.pool.required_operator_count(), answered, failed })
    }

    /// Concurrent readings share calls.
    async fn read_name_state(&self, name: &EnsName, block: &ChainBlock) -> Result<NameStateAtHead, ChainError> {
        let query = Arc::new(NameQuery::for_resolution(name, &self.contracts, &self.coins));
        let at_head =
            NameAtBlockHashQuery { query: Arc::clone(&query), block: *block, batches: Arc::clone(&self.batches) };
        let selector = BlockSelector::Pinned(block.number);
        let findings = poll_quorum(&self.pool, Arc::new(at_head), selector).await?.pinned;
        Ok(name_state_from_findings(&query, &findings).unwrap_or_else(NameStateAtHead::Failing))
    }
}

pub(crate) fn name_state_from_findings(
    query: &NameQuery,
    findings: &NameFindings,
) -> Result<NameStateAtHead, ChainError> {
    let answer = match answer::records_answer_stage(findings)? {
        EnsAnswerStage::OffChain => return Ok(NameStateAtHead::OffChain),
        EnsAnswerStage::Complete(answer) => answer,
        EnsAnswerStage::Returned(returned) => answer::decode_returned_records(findings, query.keys, &returned)?,
    };
    let holder = findings.holder;
    let payment = match answer::payment_answer_stage(findings) {
        Ok(EnsAnswerStage::OffChain) => {
            return Ok(NameStateAtHead::PaymentOffChain(LatestNameState { answer, holder }));
        }
        Ok(EnsAnswerStage::Complete(payment)) => Ok(payment),
        Ok(EnsAnswerStage::Returned(returned)) => query.decode_payment(findings, &returned),
        Err(error) => Err(error),
    };
    Ok(NameStateAtHead::OnChain(LatestNameState { answer: query.add_payment_to_answer(answer, payment), holder }))
}

/// A query about a name at a block that is identified by its hash.
struct NameAtBlockHashQuery {
    query: Arc<NameQuery>,
    block: ChainBlock,
    batches: Arc<MulticallNameQueryBatcher>,
}

#[async_trait]
impl QuorumQuery for NameAtBlockHashQuery {
    type Vote = NameFindings;

    async fn fetch_pinned_and_latest_votes(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        _: BlockSelector,
        _: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure> {
        let labels = [endpoint.label.clone()];
        let pinned = self.batches.fetch_findings(&endpoint.rpc, &labels, &self.query, &self.block).await?;
        Ok(EndpointPinnedAndLatestVotes { block: self.block, pinned, latest: None, genesis: None })
    }

    async fn fetch_vote_at_block(
        &self,
        endpoint: &RpcEndpoint,
        block: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<NameFindings>, EndpointFailure> {
        endpoint.fetch_vote_at_block(&self.query, block).await
    }
}
