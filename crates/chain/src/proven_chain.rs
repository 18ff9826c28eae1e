//! [`ProvenChain`]: readings that this process computes over proven state.
//!
//! A reading has three inputs. Only the first is trusted: a [`HeaderSource`] selects the header. Any endpoint can prove
//! the state under that header, and endpoints supply [`UnprovenHints`].

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_eth::AccessList;
use async_trait::async_trait;
use clresolve_core::cause::ResolverFault;
use clresolve_core::name::EnsName;
use clresolve_core::payment::Coins;
use clresolve_core::reading::{Block, BlockSelector, ChainError, Grade, Holding, Proof, Reading};
use clresolve_core::records::{Key, Record};
use clresolve_state::contracts::{Findings, Resolved};
use clresolve_state::{CALL_GAS, Call, CallOutcome, Contracts, HashedHeader, Recording, StateProof};
use futures_util::future::{FutureExt as _, OptionFuture, join, try_join};
use moka::future::Cache;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Chain;
use crate::answers::{Answers, NewestAnswer};
use crate::ccip::CcipReadGateway;
use crate::failure::Failure;
use crate::header_source::{Head, HeaderSource};
use crate::pool::{ChainConfig, Clock, EndpointPool};
use crate::proof_source::ProofSource;
use crate::proven_transport::ProvenTransport;
use crate::prover::{Guess, Prover, Session};
use crate::query::Query;
use crate::quorum_headers::QuorumHeaders;
use crate::request::{by_hash, newest, tag};
use crate::transport::HttpPost;
use crate::unproven_hints::{NewestFindings, UnprovenHints};

/// Number of headers kept for queries about the block of an earlier reading.
const KNOWN_HEADERS: u64 = 64;

/// A [`Chain`] that trusts a header and computes the rest.
#[derive(Clone)]
pub struct ProvenChain {
    pool: Arc<EndpointPool>,
    contracts: Contracts,
    coins: Coins,
    answers: Arc<Answers>,
    /// The source of headers. `None`: the endpoints agree on the header.
    headers: Option<Arc<dyn HeaderSource>>,
    prover: Arc<Prover>,
    known: Cache<B256, Arc<HashedHeader>>,
    /// Records the proofs of a reading, if requested.
    recording: Option<Arc<Recording>>,
}

impl ProvenChain {
    /// Creates a chain that trusts the header on which the endpoints agree. Requests go through `http`, the client for
    /// the operator's URLs. Lookups are followed through `gateway`, which must enforce the rules for untrusted URLs.
    pub fn new(config: ChainConfig, http: &Arc<dyn HttpPost>, gateway: Arc<dyn CcipReadGateway>) -> Self {
        let (contracts, coins, answers) = (config.contracts, config.coins.clone(), Answers::new(&config, gateway));
        let pool = Arc::new(EndpointPool::new(config, http));
        Self {
            contracts,
            coins,
            answers: Arc::new(answers),
            headers: None,
            prover: Arc::new(Prover::new(pool.chain_id)),
            pool,
            known: Cache::new(KNOWN_HEADERS),
            recording: None,
        }
    }

    /// The same with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { pool: Arc::new(self.pool.with_clock(clock)), ..self }
    }

    /// Trusts `headers` instead. The endpoints only supply proofs and hints.
    #[must_use]
    pub fn with_headers(self, headers: Arc<dyn HeaderSource>) -> Self {
        Self { headers: Some(headers), ..self }
    }

    async fn head(&self, selector: BlockSelector) -> Result<Head, ChainError> {
        match &self.headers {
            Some(headers) => headers.head(selector).await,
            None => QuorumHeaders::of(Arc::clone(&self.pool)).head(selector).await,
        }
    }

    /// Prefetches what the query about the owner will read, while the records are being computed. The owner's name
    /// comes from a hint; if it is wrong, the request is wasted.
    fn prefetch_owner(&self, hints: &UnprovenHints, head: &Head) {
        let Some(owner) = hints.owner() else { return };
        let call = self.call_of(&Query::address(&owner, &self.contracts));
        let (source, prover, block) = (self.source(&head.endpoints), Arc::clone(&self.prover), head.header.id());
        tokio::spawn(async move { prover.prefetch(&source, block, &call).await });
    }

    /// Starts to fetch proofs of what a known call read the last time, while the header is requested. This saves a
    /// round trip unless a new block arrives in between. Dropping the returned set cancels it.
    fn guess(&self, call: Call, selector: BlockSelector) -> JoinSet<Option<Guess>> {
        let (source, prover) = (self.source(&[]), Arc::clone(&self.prover));
        let mut guess = JoinSet::new();
        guess.spawn(async move { prover.guess(&source, tag(selector).into(), &call).await });
        guess
    }

    fn call_of(&self, query: &Query) -> Call {
        let data = query.call.input.input().cloned().unwrap_or_default();
        Call { to: self.contracts.multicall3, data, gas: CALL_GAS }
    }

    /// The endpoints as a source of state, those with these labels first.
    fn source(&self, labels: &[String]) -> ProofSource {
        let (firsts, others) = self.pool.split(labels);
        let endpoints = firsts.into_iter().chain(others).collect();
        ProofSource::new(endpoints, self.pool.hedge_after, Arc::clone(&self.pool.clock))
    }

    /// A transport that computes under `header` over proofs from endpoints, those with these labels first.
    fn transport(&self, header: Arc<HashedHeader>, labels: &[String]) -> ProvenTransport {
        let session = if self.recording.is_some() { Session::keeping(header) } else { Session::new(header) };
        ProvenTransport::new(Arc::clone(&self.prover), session, self.source(labels))
    }

    /// The findings of the query at the transport's block.
    async fn findings(
        &self,
        transport: &ProvenTransport,
        query: &Query,
        block: &Block,
        hint: Option<AccessList>,
    ) -> Result<Findings, ChainError> {
        let data = match transport.call(&self.call_of(query), hint).await? {
            CallOutcome::Returned(data) => data,
            CallOutcome::Reverted(_) => return Err(ChainError::Resolver(ResolverFault::CallReverted)),
            CallOutcome::Halted(cause) => return Err(ChainError::Resolver(ResolverFault::Halted(cause))),
        };
        let explain = |failure: Failure| failure.into_error("proven state", &block.number.to_string(), 0);
        query.decode_at(block, &data).map_err(explain)
    }

    /// Records the proofs of the calls about a name, if a recording was requested. `payment` is the transport of a
    /// successful payment lookup, if there was one.
    async fn record(&self, query: &Query, transport: &ProvenTransport, payment: Option<&ProvenTransport>) {
        let Some(recording) = &self.recording else { return };
        let Some((mut state, name_look_ups)) = transport.proofs().await else { return };
        let apart = match payment {
            Some(payment) => payment.proofs().await,
            None => None,
        };
        let payment_look_ups = apart.map(|(nodes, look_ups)| {
            state.extend(nodes);
            look_ups
        });
        recording.name(StateProof {
            contracts: self.contracts,
            state,
            coins: query.coins().cloned(),
            name_look_ups,
            payment_look_ups: payment_look_ups.unwrap_or_default(),
            owner_look_ups: Vec::new(),
        });
    }

    /// The header of an earlier reading's block.
    async fn header_of(&self, block: &Block) -> Result<Arc<HashedHeader>, ChainError> {
        if let Some(header) = self.known.get(&block.hash).await {
            return Ok(header);
        }
        self.pool.header_of(&self.pool.in_order(), block.hash).await.map(Arc::new)
    }

    /// The answer at the newest block, if the selector requests it. It is stated, not proven: enough operators must
    /// state what was computed, or the name is withheld.
    async fn newest(
        &self,
        hints: UnprovenHints,
        query: &Query,
        head: &Head,
        pinned: &Findings,
    ) -> Result<(NewestAnswer, Option<u64>), ChainError> {
        let Some(NewestFindings { newest, reached }) = hints.newest(head, pinned).await else {
            let few = "too few endpoints say what the newest block holds".to_owned();
            return Err(ChainError::Unreachable(vec![("newest block".to_owned(), few)]));
        };
        Ok((self.answers.newest(query, newest, &self.pool).await, reached))
    }

    async fn reading(&self, query: Query, selector: BlockSelector) -> Result<Reading, ChainError> {
        let query = Arc::new(query);
        let mut guess = self.guess(self.call_of(&query), selector);
        let hints = async { Ok(UnprovenHints::gather(&self.pool, Arc::clone(&query), selector).await) };
        let (head, mut hints) = try_join(self.head(selector), hints).await?;
        let header = Arc::new(head.header.clone());
        self.known.insert(head.block.hash, Arc::clone(&header)).await;
        self.prefetch_owner(&hints, &head);
        let transport = self.transport(header, &head.endpoints);
        if let Ok(Some(Ok(Some(guess)))) = timeout(self.pool.hedge_after, guess.join_next()).await {
            transport.adopt(guess).await;
        }
        // A missing hint costs extra runs but not an extra exchange, since the endpoints have been asked for it
        // already.
        let pinned = self.findings(&transport, &query, &head.block, Some(hints.take_touched())).await?;
        let latest = selector.is_compared_with_latest().then(|| self.newest(hints, &query, &head, &pinned));
        // The two lookups are recorded separately.
        let apart = match &pinned.payment {
            Some(Resolved::Offchain(_)) => Some(transport.apart(self.source(&head.endpoints)).await),
            _ => None,
        };
        let block = by_hash(&head.block);
        let (client, payment_client) = (transport.client(), apart.as_ref().unwrap_or(&transport).client());
        let answer = self.answers.records(&client, &query, &pinned, block);
        let payment = self.answers.payment(&payment_client, &query, &pinned, block).map(Ok);
        let (answers, latest) = join(try_join(answer, payment), OptionFuture::from(latest)).await;
        let (answer, payment) = answers?;
        let is_payment_read = payment.is_ok();
        let answer = query.with_payment(answer, payment);
        let (latest, reached) = match latest {
            Some(Ok((latest, reached))) => {
                let (latest, read_by_each) = self.answers.beside(&query, latest, &answer, pinned.holder).await;
                (Some(latest), read_by_each.or(reached))
            }
            Some(Err(error)) => (Some(Err(error)), None),
            None => (None, None),
        };
        let mut complaints = transport.complaints().await;
        if let Some(apart) = &apart {
            complaints.extend(apart.complaints().await);
        }
        self.record(&query, &transport, apart.as_ref().filter(|_| is_payment_read)).await;
        Ok(Reading {
            block: head.block,
            answer,
            latest,
            newest: newest(selector, &head.block, reached),
            holder: pinned.holder,
            expiry: pinned.expiry,
            proof: Proof { grade: Grade::StateProof, asked: head.asked, agreed: head.agreed, own: head.own },
            endpoints: head.endpoints,
            contradicted_by: head.contradicted_by.into_iter().chain(complaints.lies).collect(),
            failed_endpoints: head.failed_endpoints.into_iter().chain(complaints.failures).collect(),
        })
    }
}

#[async_trait]
impl Chain for ProvenChain {
    async fn read(&self, name: &EnsName, block: BlockSelector) -> Result<Reading, ChainError> {
        self.reading(Query::walk(name, &self.contracts, &self.coins), block).await
    }

    async fn read_keys(
        &self,
        name: &EnsName,
        selector: BlockSelector,
        keys: &'static [Key],
    ) -> Result<Reading, ChainError> {
        self.reading(Query::records(name, &self.contracts, keys), selector).await
    }

    async fn holding(&self, owner: &EnsName, block: &Block, endpoints: &[String]) -> Result<Holding, ChainError> {
        let query = Query::address(owner, &self.contracts);
        let transport = self.transport(self.header_of(block).await?, endpoints);
        let findings = self.findings(&transport, &query, block, None).await?;
        let holding = self.answers.holding(&transport.client(), &query, &findings, by_hash(block)).await?;
        if let (Some(recording), Some((nodes, look_ups))) = (&self.recording, transport.proofs().await) {
            recording.owner(nodes, look_ups);
        }
        Ok(holding)
    }

    async fn texts(
        &self,
        name: &EnsName,
        block: &Block,
        endpoints: &[String],
        keys: &[String],
    ) -> Result<Vec<Record>, ChainError> {
        let query = Query::further_records(name, &self.contracts, keys);
        let (client, findings) = self.pool.findings(endpoints, &query, block).await?;
        self.answers.further_records(&client, &query, &findings, by_hash(block), keys.len()).await
    }

    fn recording(&self) -> Option<(Arc<dyn Chain>, Arc<Recording>)> {
        let recording = Arc::new(Recording::default());
        let chain = Self { recording: Some(Arc::clone(&recording)), ..self.clone() };
        Some((Arc::new(chain), recording))
    }

    async fn header(&self, block: &Block, _endpoints: &[String]) -> Option<Bytes> {
        Some(self.header_of(block).await.ok()?.rlp())
    }
}
