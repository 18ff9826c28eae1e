//! Sends one query to endpoints until enough of them agree.
//!
//! The [`QuorumCounter`] counts each endpoint's observation. An endpoint that is ahead is asked again about the block
//! of the others. The poll ends as soon as enough operators agree.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use alloy_primitives::B256;
use async_trait::async_trait;
use clresolve_core::cause::HostConnectionError;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ChainError, ProofGrade, ProofGradeDemand, ProofStrength, max_finalized_header_age,
};
use clresolve_state::contracts::NameFindings;
use futures_util::future::{BoxFuture, FutureExt as _};

use crate::endpoint::RpcEndpoint;
use crate::exchange::{ChainIdentity, EndpointPinnedAndLatestVotes, VoteOrConflictingBlock};
use crate::failure::EndpointFailure;
use crate::fan_out::{FanOutEvent, FanOutNeed, FanOutScheduler, RequestFanOut};
use crate::head_age::HeadAgeLimit;
use crate::pool::{EndpointPool, TimeSource};
use crate::query::NameQuery;
use crate::quorum::{
    DecisiveNewestVoters, ProvisionalAgreementGap, QuorumAgreement, QuorumCounter, QuorumStatus, QuorumVote,
    QuorumVotePart,
};

/// Asks endpoints until enough of them agree on a block and its contents.
///
/// # Errors
/// [`ChainError`] if too few agree.
pub(crate) async fn poll_quorum<Q: QuorumQuery>(
    pool: &EndpointPool,
    query: Arc<Q>,
    selector: BlockSelector,
) -> Result<QuorumPollOutcome<Q::Vote>, ChainError> {
    let mut poll = QuorumPoll::new(pool, query, selector);
    poll.run_until_settled().await;
    match poll.count.counter.status() {
        QuorumStatus::Settled(agreement) | QuorumStatus::Provisional(agreement, _) => Ok(poll.into_result(&agreement)),
        QuorumStatus::Open { .. } => {
            let error = poll.disagreement_error();
            poll.mark_contradicting_endpoints(None);
            Err(error)
        }
    }
}

/// A query whose answers are counted as votes.
#[async_trait]
pub(crate) trait QuorumQuery: Send + Sync + 'static {
    /// An endpoint's statement about a block.
    type Vote: QuorumVote + Clone + fmt::Display + Send + Sync + 'static;

    /// Asks an endpoint about the block that it selects.
    async fn fetch_pinned_and_latest_votes(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<Self::Vote>, EndpointFailure>;

    /// Asks an endpoint about a block that others reported.
    async fn fetch_vote_at_block(
        &self,
        endpoint: &RpcEndpoint,
        block: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<Self::Vote>, EndpointFailure>;
}

#[async_trait]
impl QuorumQuery for NameQuery {
    type Vote = NameFindings;

    async fn fetch_pinned_and_latest_votes(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<NameFindings>, EndpointFailure> {
        endpoint.fetch_pinned_and_latest_votes(self, selector, identity).await
    }

    async fn fetch_vote_at_block(
        &self,
        endpoint: &RpcEndpoint,
        block: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<NameFindings>, EndpointFailure> {
        endpoint.fetch_vote_at_block(self, block).await
    }
}

pub(crate) struct QuorumPollOutcome<V> {
    pub(crate) block: ChainBlock,
    pub(crate) pinned: V,
    pub(crate) latest: Option<NewestBlockVoteSummary<V>>,
    /// Height that enough endpoints have reached with the same records at their newest block.
    pub(crate) newest: Option<u64>,
    /// The endpoints to ask about the block from now on: first those that agreed, then the other asked ones that
    /// neither contradicted the result nor failed.
    pub(crate) members: Vec<Arc<RpcEndpoint>>,
    pub(crate) spares: Vec<Arc<RpcEndpoint>>,
    /// Labels of the endpoints that contradict the result, each with its statement.
    pub(crate) contradicted_by: Vec<(String, String)>,
    /// Labels of the endpoints that failed, each with the cause.
    pub(crate) failed: Vec<(String, String)>,
    asked: Vec<Arc<RpcEndpoint>>,
    agreed: Vec<Arc<RpcEndpoint>>,
}

/// The votes on a name at the newest block, compared with the pinned reading.
pub(crate) struct NewestBlockVoteSummary<V> {
    pub(crate) records: DecisiveNewestVote<V>,
    pub(crate) payment: DecisiveNewestVote<V>,
    /// All votes that equal the pinned reading except for off-chain lookups, each with its endpoint. Endpoints that
    /// contradicted anything in this reading are excluded.
    pub(crate) look_ups: Vec<(Arc<RpcEndpoint>, V)>,
    /// The endpoints that may be asked about the newest block: their vote on it counts and agrees, and they
    /// contradicted nothing in this reading.
    pub(crate) current: Vec<Arc<RpcEndpoint>>,
    /// The endpoints that have not voted on the newest block and contradicted nothing in this reading.
    pub(crate) unheard: Vec<Arc<RpcEndpoint>>,
    /// Height of the pinned block. A newest block below it does not count.
    pub(crate) floor: u64,
}

impl<V: QuorumVote + Clone> NewestBlockVoteSummary<V> {
    /// Compares the counted votes with the pinned reading. Keeps only lookups from usable endpoints of `order`.
    pub(crate) fn from_counter(
        at: DecisiveNewestVoters,
        counter: &QuorumCounter<V>,
        pinned: &V,
        order: &[Arc<RpcEndpoint>],
        is_usable: impl Fn(&usize) -> bool,
    ) -> Option<Self> {
        let of = |endpoint: usize, part: QuorumVotePart| {
            let (vote, label) = (counter.latest_vote(endpoint)?.clone(), order[endpoint].label.clone());
            Some(DecisiveNewestVote { label, vote, is_objection: counter.is_objection(endpoint, pinned, part) })
        };
        let look_ups = counter.votes_agreeing_except_lookups(pinned).filter(|(endpoint, _)| is_usable(endpoint));
        let endpoints = |indices: &mut dyn Iterator<Item = usize>| {
            indices.filter(&is_usable).map(|endpoint| Arc::clone(&order[endpoint])).collect()
        };
        let current = endpoints(&mut counter.endpoints_matching_newest_vote(at, pinned).into_iter());
        let unheard = endpoints(&mut (0..order.len()).filter(|endpoint| counter.latest_vote(*endpoint).is_none()));
        Some(Self {
            records: of(at.records, QuorumVotePart::Records)?,
            payment: of(at.payment, QuorumVotePart::Payment)?,
            look_ups: look_ups.map(|(endpoint, vote)| (Arc::clone(&order[endpoint]), vote.clone())).collect(),
            current,
            unheard,
            floor: pinned.block_height().unwrap_or_default(),
        })
    }
}

#[derive(Clone)]
pub(crate) struct DecisiveNewestVote<V> {
    /// Label of the endpoint that voted.
    pub(crate) label: String,
    pub(crate) vote: Result<V, EndpointFailure>,
    /// Whether it differs from the pinned reading and is shared by too few operators.
    pub(crate) is_objection: bool,
}

impl<V: fmt::Display> DecisiveNewestVote<V> {
    /// The objection as an error: the endpoint and its statement.
    pub(crate) fn objection_error(&self) -> Option<ChainError> {
        let vote = self.vote.as_ref().ok().filter(|_| self.is_objection)?;
        Some(ChainError::Disagree(vec![(self.label.clone(), format!("in the newest block: {vote}"))]))
    }

    /// The vote.
    ///
    /// # Errors
    /// [`ChainError`] if the endpoint failed to vote.
    pub(crate) fn into_vote(self, chain_id: u64) -> Result<V, ChainError> {
        self.vote.map_err(|failure| failure.into_chain_error(&self.label, "latest", chain_id))
    }
}

impl<V> QuorumPollOutcome<V> {
    /// How far the endpoints vouch for the result.
    pub(crate) fn proof_strength(&self, demand: ProofGradeDemand) -> ProofStrength {
        let grade = match demand {
            ProofGradeDemand::SingleRpc => ProofGrade::SingleRpc,
            ProofGradeDemand::Quorum(_) => ProofGrade::Quorum,
            ProofGradeDemand::StateProof(_) => ProofGrade::StateProof,
            // What operators state is not what the light client verified.
            ProofGradeDemand::ConsensusProof(0) => ProofGrade::SingleRpc,
            ProofGradeDemand::ConsensusProof(_) => ProofGrade::Quorum,
        };
        let own = grade != ProofGrade::Quorum && self.agreed.iter().all(|endpoint| endpoint.own);
        let asked = if grade == ProofGrade::SingleRpc { 1 } else { count_operators(&self.asked) };
        ProofStrength { grade, asked, agreed: count_operators(&self.agreed), own }
    }

    /// The endpoints that agreed, and those that have not shown that they have the block.
    pub(crate) fn into_agreed_and_unchecked(self) -> (Vec<Arc<RpcEndpoint>>, Vec<Arc<RpcEndpoint>>) {
        let Self { agreed, members, spares, .. } = self;
        let others = members.into_iter().skip(agreed.len()).chain(spares).collect();
        (agreed, others)
    }

    pub(crate) fn member_labels(&self) -> Vec<String> {
        self.agreed.iter().map(|endpoint| endpoint.label.clone()).collect()
    }
}

fn count_operators(endpoints: &[Arc<RpcEndpoint>]) -> u32 {
    let operators: HashSet<&str> = endpoints.iter().map(|endpoint| endpoint.operator.as_str()).collect();
    u32::try_from(operators.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

struct QuorumPoll<'p, Q: QuorumQuery> {
    pool: &'p EndpointPool,
    request: QuorumPollParameters<Q>,
    fan_out: RequestFanOut<BoxFuture<'static, QuorumPollReply<Q::Vote>>>,
    count: QuorumPollState<Q::Vote>,
}

struct QuorumPollState<V> {
    /// The endpoints in the order in which they are asked. Indices of endpoints refer to this list.
    order: Vec<Arc<RpcEndpoint>>,
    counter: QuorumCounter<V>,
    /// Indices of the endpoints that failed.
    failures: Vec<(usize, EndpointFailure)>,
    /// Hash of block 0, for each endpoint that returned it.
    genesis: Vec<(usize, B256)>,
}

/// A reply with the index of its endpoint.
struct QuorumPollReply<V> {
    endpoint: usize,
    statement: EndpointStatement<V>,
}

enum EndpointStatement<V> {
    Observed(Box<Result<EndpointPinnedAndLatestVotes<V>, EndpointFailure>>),
    /// About a block of others.
    Attested(ChainBlock, Box<Result<VoteOrConflictingBlock<V>, EndpointFailure>>),
}

impl<'p, Q: QuorumQuery> QuorumPoll<'p, Q> {
    fn new(pool: &'p EndpointPool, query: Arc<Q>, selector: BlockSelector) -> Self {
        let order = pool.endpoints_in_order();
        let plan = FanOutScheduler::new(order.len(), pool.concurrent_request_count(), pool.concurrent_request_count());
        Self {
            pool,
            request: QuorumPollParameters {
                query,
                selector,
                identity: pool.chain_identity(),
                clock: Arc::clone(&pool.clock),
                head_age: pool.head_age,
            },
            fan_out: RequestFanOut::new(plan, pool.hedge_delay()),
            count: QuorumPollState {
                order,
                counter: QuorumCounter::new(pool.required_operator_count()),
                failures: Vec::new(),
                genesis: Vec::new(),
            },
        }
    }

    /// Asks until the count is settled or no further answer can arrive.
    async fn run_until_settled(&mut self) {
        loop {
            self.requery_endpoints_ahead();
            let need = self.fan_out_need();
            let Self { fan_out, request, count, .. } = self;
            let ask = |index: usize| request.spawn_pinned_and_latest_request(index, Arc::clone(&count.order[index]));
            match fan_out.next_event(need, ask).await {
                FanOutEvent::Answer(reply) => count.add_reply(reply),
                FanOutEvent::Stall => match count.counter.status() {
                    // An endpoint that reports a much newer block and then stalls must not delay the agreement of
                    // others.
                    QuorumStatus::Provisional(..) if !clresolve_core::mutant!("laggards-are-waited-for") => break,
                    _ => count.counter.stop_awaiting_answers(),
                },
                FanOutEvent::Stop => break,
            }
        }
        // Answers arrive in any order; failures are reported in the order of the endpoints.
        self.count.failures.sort_by_key(|(endpoint, _)| *endpoint);
    }

    fn fan_out_need(&self) -> FanOutNeed {
        match self.count.counter.status() {
            // In single-RPC mode only the first endpoint that answers is trusted.
            QuorumStatus::Provisional(..) if self.pool.demand == ProofGradeDemand::SingleRpc => FanOutNeed::Nothing,
            // An agreement on so old a block is useless, and an endpoint that has not answered may have a newer one.
            QuorumStatus::Provisional(agreement, ProvisionalAgreementGap::RecentBlock)
                if self.is_block_too_old(&agreement.block) =>
            {
                FanOutNeed::Answers { in_sight: 1 }
            }
            _ => self.count.counter.fan_out_need(),
        }
    }

    fn is_block_too_old(&self, block: &ChainBlock) -> bool {
        let age = (self.request.clock)().duration_since(block.timestamp);
        self.request.selector.number().is_none() && age > max_finalized_header_age(self.pool.chain_id)
    }

    /// Asks the endpoints that are ahead about the block of others.
    fn requery_endpoints_ahead(&mut self) {
        let Self { fan_out, request, count, .. } = self;
        let QuorumStatus::Open { repeats, .. } = count.counter.status() else { return };
        for (endpoint, block) in repeats {
            count.counter.note_repeat_request(endpoint, block);
            fan_out.add_repeated_request(request.spawn_vote_at_block_request(
                endpoint,
                Arc::clone(&count.order[endpoint]),
                block,
            ));
        }
    }

    fn into_result(self, agreement: &QuorumAgreement) -> QuorumPollOutcome<Q::Vote> {
        let QuorumPollState { order, counter, .. } = &self.count;
        let QuorumAgreement { block, endpoints, latest } = agreement;
        let (asked, spares) = order.split_at(self.fan_out.asked_count());
        let contradictions = self.count.contradictions(agreement);
        let is_usable = |index: &usize| {
            let is_contrary = contradictions.iter().any(|(endpoint, _)| endpoint == index);
            !is_contrary && !self.count.failures.iter().any(|(endpoint, _)| endpoint == index)
        };
        let others = (0..asked.len()).filter(|index| !endpoints.contains(index)).filter(is_usable);
        let of = |index: usize| Arc::clone(&order[index]);
        let label = |endpoint: usize| self.count.endpoint_label(endpoint);
        let pinned = endpoints.first().and_then(|endpoint| counter.vote_at_block(*endpoint, block)).cloned();
        let pinned = pinned.expect("an endpoint that agrees has voted");
        let reached = latest.and_then(|at| counter.newest_quorum_height(at));
        let latest = latest.and_then(|at| NewestBlockVoteSummary::from_counter(at, counter, &pinned, order, is_usable));
        let consensus = QuorumPollOutcome {
            block: *block,
            pinned,
            latest,
            newest: reached,
            members: endpoints.iter().copied().chain(others).map(of).collect(),
            spares: spares.to_vec(),
            contradicted_by: contradictions.iter().map(|(index, words)| (label(*index), words.clone())).collect(),
            failed: self.count.labelled_failures(),
            asked: asked.to_vec(),
            agreed: endpoints.iter().copied().map(of).collect(),
        };
        if self.pool.demand != ProofGradeDemand::SingleRpc {
            self.remember_agreed_genesis(endpoints);
            self.mark_contradicting_endpoints(Some(agreement.clone()));
        }
        consensus
    }

    /// The error if too few endpoints agree: the contradiction if there is one, else the failures.
    fn disagreement_error(&self) -> ChainError {
        let QuorumPollState { counter, failures, .. } = &self.count;
        if counter.has_conflicting_votes() {
            return ChainError::Disagree(self.count.labelled_statements());
        }
        let answered: Vec<String> = counter.endpoints().map(|endpoint| self.count.endpoint_label(endpoint)).collect();
        let all_wrong = !failures.is_empty() && failures.iter().all(|(_, failure)| failure.is_wrong_chain());
        if answered.is_empty() || all_wrong {
            return self.all_failed_error();
        }
        ChainError::TooFew {
            agree: self.pool.required_operator_count(),
            answered,
            failed: self.count.labelled_failures(),
        }
    }

    /// The error if every endpoint failed. A failed call or a missing block explains more than an unreachable endpoint.
    fn all_failed_error(&self) -> ChainError {
        let failures = &self.count.failures;
        let all_wrong = failures.iter().all(|(_, failure)| failure.is_wrong_chain());
        let decisive = failures.iter().find(|(_, failure)| match failure {
            EndpointFailure::CallFailed(_) | EndpointFailure::LocalLimit(_) => true,
            failure => all_wrong && failure.is_wrong_chain(),
        });
        let decisive = decisive.or_else(|| failures.iter().find(|(_, f)| matches!(f, EndpointFailure::NoBlock(_))));
        let Some((endpoint, failure)) = decisive else {
            let unreachable = || ChainError::Unreachable(self.count.labelled_failures());
            return self.count.shared_connection_failure().map_or_else(unreachable, ChainError::NoNetwork);
        };
        let block = self.request.selector.to_string();
        failure.clone().into_chain_error(&self.count.endpoint_label(*endpoint), &block, self.pool.chain_id)
    }

    /// If all agreeing endpoints report the same block 0, compares later endpoints with it.
    fn remember_agreed_genesis(&self, endpoints: &[usize]) {
        let genesis = &self.count.genesis;
        let of = |endpoint: &usize| genesis.iter().find(|(other, _)| other == endpoint).map(|(_, hash)| *hash);
        let mut hashes = endpoints.iter().map(of);
        if let Some(Some(first)) = hashes.next()
            && hashes.all(|hash| hash == Some(first))
        {
            self.pool.remember_agreed_genesis(first);
        }
    }

    /// Counts endpoints that contradict the agreement, including those that answer late, and marks them as failed.
    fn mark_contradicting_endpoints(self, agreement: Option<QuorumAgreement>) {
        let Self { request, mut fan_out, mut count, .. } = self;
        let clock = request.clock;
        tokio::spawn(async move {
            while let Some(reply) = fan_out.next_pending_answer().await {
                count.add_reply(reply);
            }
            for (endpoint, ChainBlock { number: block, .. }) in
                count.counter.contradicting_endpoints(agreement.as_ref())
            {
                let liar = &count.order[endpoint];
                liar.mark_failed(clock());
                crate::count_rpc_lie(&liar.label);
                tracing::warn!(endpoint = liar.label, block, "endpoint contradicts the quorum");
            }
        });
    }
}

impl<V: QuorumVote + fmt::Display> QuorumPollState<V> {
    fn add_reply(&mut self, QuorumPollReply { endpoint, statement }: QuorumPollReply<V>) {
        match statement {
            EndpointStatement::Observed(observation) => match *observation {
                Ok(EndpointPinnedAndLatestVotes { block, pinned, latest, genesis }) => {
                    self.genesis.extend(genesis.map(|hash| (endpoint, hash)));
                    self.counter.add_votes(endpoint, &self.order[endpoint].operator, block, pinned, latest);
                }
                Err(failure) => self.failures.push((endpoint, failure)),
            },
            EndpointStatement::Attested(block, attestation) => match *attestation {
                Ok(VoteOrConflictingBlock::Same(vote)) => self.counter.add_vote_at_block(endpoint, block, vote),
                Ok(VoteOrConflictingBlock::Other(other)) => self.counter.add_conflicting_block(endpoint, other),
                Err(failure) => {
                    self.counter.note_unanswered_block(endpoint, block);
                    self.failures.push((endpoint, failure));
                }
            },
        }
    }

    /// Why no connection was opened, if several operators on the Internet were tried.
    fn shared_connection_failure(&self) -> Option<HostConnectionError> {
        let mut public = HashSet::new();
        let mut why = HostConnectionError::Name;
        for (endpoint, failure) in &self.failures {
            let EndpointFailure::Unconnected(unconnected) = failure else { return None };
            let endpoint = &self.order[*endpoint];
            if endpoint.is_public {
                public.insert(endpoint.operator.as_str());
            }
            if *unconnected == HostConnectionError::Host {
                why = HostConnectionError::Host;
            }
        }
        (public.len() > 1).then_some(why)
    }

    /// The endpoints that contradict the agreement, each with its statement.
    fn contradictions(&self, agreement: &QuorumAgreement) -> Vec<(usize, String)> {
        let describe = |(endpoint, other): (usize, ChainBlock)| {
            let vote = self.counter.vote_at_block(endpoint, &other);
            (endpoint, vote.map_or_else(|| format_block_height(&other), |vote| format_vote_statement(&other, vote)))
        };
        self.counter.contradicting_endpoints(Some(agreement)).into_iter().map(describe).collect()
    }

    fn labelled_statements(&self) -> Vec<(String, String)> {
        let mut votes: Vec<_> = self.counter.votes().collect();
        votes.sort_by_key(|(endpoint, ..)| *endpoint);
        votes
            .into_iter()
            .map(|(endpoint, block, vote)| (self.endpoint_label(endpoint), format_vote_statement(&block, vote)))
            .collect()
    }

    fn labelled_failures(&self) -> Vec<(String, String)> {
        self.failures.iter().map(|(endpoint, failure)| (self.endpoint_label(*endpoint), failure.to_string())).collect()
    }

    fn endpoint_label(&self, endpoint: usize) -> String {
        self.order[endpoint].label.clone()
    }
}

struct QuorumPollParameters<Q> {
    query: Arc<Q>,
    selector: BlockSelector,
    identity: ChainIdentity,
    clock: TimeSource,
    head_age: HeadAgeLimit,
}

/// Each request runs as its own task and outlives the poll, so that the connection stays open and the endpoint's health
/// is recorded.
impl<Q: QuorumQuery> QuorumPollParameters<Q> {
    fn spawn_pinned_and_latest_request(
        &self,
        index: usize,
        endpoint: Arc<RpcEndpoint>,
    ) -> BoxFuture<'static, QuorumPollReply<Q::Vote>> {
        let (query, clock) = (Arc::clone(&self.query), Arc::clone(&self.clock));
        let (selector, identity, head_age) = (self.selector, self.identity, self.head_age);
        let task = tokio::spawn(async move {
            let observed = query.fetch_pinned_and_latest_votes(&endpoint, selector, identity).await;
            let observation = observed.and_then(|observed| observed.check_block_ages(head_age, selector, clock()));
            endpoint.record_response_outcome(&observation, clock());
            let failure = match &observation {
                Ok(observation) => observation.latest.as_ref().and_then(|latest| latest.as_ref().err()),
                Err(failure) => Some(failure),
            };
            failure.into_iter().for_each(|failure| endpoint.note_refused_head(failure, clock()));
            observation
        });
        let ended = task.map(|ended| ended.unwrap_or_else(|error| Err(EndpointFailure::from_join_error(&error))));
        ended
            .map(move |it| QuorumPollReply { endpoint: index, statement: EndpointStatement::Observed(Box::new(it)) })
            .boxed()
    }

    fn spawn_vote_at_block_request(
        &self,
        index: usize,
        endpoint: Arc<RpcEndpoint>,
        block: ChainBlock,
    ) -> BoxFuture<'static, QuorumPollReply<Q::Vote>> {
        let (query, clock) = (Arc::clone(&self.query), Arc::clone(&self.clock));
        let task = tokio::spawn(async move {
            let attestation = query.fetch_vote_at_block(&endpoint, &block).await;
            endpoint.record_response_outcome(&attestation, clock());
            attestation
        });
        let ended = task.map(|ended| ended.unwrap_or_else(|error| Err(EndpointFailure::from_join_error(&error))));
        ended
            .map(move |it| QuorumPollReply {
                endpoint: index,
                statement: EndpointStatement::Attested(block, Box::new(it)),
            })
            .boxed()
    }
}

fn format_block_height(block: &ChainBlock) -> String {
    format!("block {} is {}", block.number, block.hash)
}

fn format_vote_statement(block: &ChainBlock, vote: &impl fmt::Display) -> String {
    format!("{}: {vote}", format_block_height(block))
}
