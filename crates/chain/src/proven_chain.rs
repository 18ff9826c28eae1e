//! [`ProvenChain`]: readings that this process computes over proven state.
//!
//! A reading has three inputs. Only the first is trusted: a [`HeaderSource`] selects the header. Any endpoint can prove
//! the state under that header, and endpoints supply [`UnprovenHints`].

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_eth::AccessList;
use async_trait::async_trait;
use clresolve_core::cause::ResolverFault;
use clresolve_core::light_client::LightClientProof;
use clresolve_core::name::EnsName;
use clresolve_core::payment::Coins;
use clresolve_core::reading::{Answer, Block, BlockSelector, ChainError, Holding, Latest, Reading};
use clresolve_core::records::{Key, Record};
use clresolve_state::contracts::{Findings, Resolved};
use clresolve_state::{CALL_GAS, Call, CallOutcome, Contracts, HashedHeader, Recording, StateProof};
use futures_util::future::{OptionFuture, join, try_join};
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
use crate::proven_transport::{Complaints, ProvenTransport};
use crate::prover::{PrefetchedProofs, Prover, Session};
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

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { pool: Arc::new(self.pool.with_clock(clock)), ..self }
    }

    /// Trusts `headers` instead of the endpoints, which then only supply proofs and hints.
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
    /// comes from a hint; if the hint is wrong, the request is wasted.
    fn prefetch_owner(&self, hints: &UnprovenHints, head: &Head) {
        let Some(owner) = hints.owner() else { return };
        let call = self.call_of(&Query::address(&owner, &self.contracts));
        let (source, prover, block) = (self.source(&head.endpoints), Arc::clone(&self.prover), head.header.id());
        tokio::spawn(async move { prover.prefetch(&source, block, &call).await });
    }

    /// Starts to fetch proofs of what a known call read last time, while the header is requested. This saves a round
    /// trip unless a new block arrives in between. Dropping the returned set cancels it.
    fn prefetch_proofs(&self, call: Call, selector: BlockSelector) -> JoinSet<Option<PrefetchedProofs>> {
        let (source, prover, headers) = (self.source(&[]), Arc::clone(&self.prover), self.headers.clone());
        let mut prefetched = JoinSet::new();
        prefetched.spawn(async move {
            let block = match headers {
                Some(headers) => headers.block_id(selector).await.ok()?,
                None => tag(selector).into(),
            };
            prover.prefetch_proofs(&source, block, &call).await
        });
        prefetched
    }

    /// Whether a reading at this block is compared with proven state of the newest block.
    fn proves_newest(&self, selector: BlockSelector) -> bool {
        let is_newest_proven = self.headers.as_ref().is_some_and(|headers| headers.is_newest_proven());
        selector.is_compared_with_latest() && is_newest_proven && !clresolve_core::mutant!("newest-is-stated")
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
            light_client: None,
        });
    }

    /// The header of an earlier reading's block.
    async fn header_of(&self, block: &Block) -> Result<Arc<HashedHeader>, ChainError> {
        if let Some(header) = self.known.get(&block.hash).await {
            return Ok(header);
        }
        self.pool.header_of(&self.pool.in_order(), block.hash).await.map(Arc::new)
    }

    /// The answer at the newest block, if the selector requests it. It is stated, not proven: unless enough operators
    /// state what was computed, the name is withheld.
    async fn stated_newest(
        &self,
        hints: UnprovenHints,
        query: &Query,
        head: &Head,
        pinned: &Findings,
    ) -> Result<(NewestAnswer, Option<u64>), ChainError> {
        let Some(NewestFindings { newest, reached }) = hints.newest(head, pinned).await else {
            let few = "too few endpoints report the state of the newest block".to_owned();
            return Err(ChainError::Unreachable(vec![("newest block".to_owned(), few)]));
        };
        Ok((self.answers.newest(query, newest, &self.pool).await, reached))
    }

    /// What the query finds under this header. `prefetched` and `hint` save round trips.
    async fn found(
        &self,
        query: &Query,
        head: Head,
        mut prefetched: JoinSet<Option<PrefetchedProofs>>,
        hint: AccessList,
    ) -> Result<ProvenFindings, ChainError> {
        let header = Arc::new(head.header.clone());
        self.known.insert(head.block.hash, Arc::clone(&header)).await;
        let transport = self.transport(header, &head.endpoints);
        if let Ok(Some(Ok(Some(prefetched)))) = timeout(self.pool.hedge_after, prefetched.join_next()).await {
            transport.adopt(prefetched).await;
        }
        // A missing hint costs extra runs but no extra exchange: the endpoints were already asked for it.
        let findings = self.findings(&transport, query, &head.block, Some(hint)).await?;
        let apart = match &findings.payment {
            Some(Resolved::Offchain(_)) => Some(transport.apart(self.source(&head.endpoints)).await),
            _ => None,
        };
        Ok(ProvenFindings { head, findings, transport, apart })
    }

    /// The answer that follows from what was found, and whether its payment records were read.
    async fn answered(&self, query: &Query, found: &ProvenFindings) -> Result<(Answer, bool), ChainError> {
        let ProvenFindings { head, findings, transport, apart } = found;
        let block = by_hash(&head.block);
        let (client, payment_client) = (transport.client(), apart.as_ref().unwrap_or(transport).client());
        let answer = self.answers.records(&client, query, findings, block);
        let payment = async { Ok(self.answers.payment(&payment_client, query, findings, block).await) };
        let (answer, payment) = try_join(answer, payment).await?;
        let is_payment_read = payment.is_ok();
        Ok((query.with_payment(answer, payment), is_payment_read))
    }

    /// Starts to request the header of the newest block and proofs under it. Dropping the returned value cancels that.
    fn begin_newest(&self, query: &Query) -> BegunNewest {
        let (chain, selector, mut head) = (self.clone(), BlockSelector::Latest, JoinSet::new());
        head.spawn(async move { chain.head(selector).await });
        BegunNewest { head, prefetched: self.prefetch_proofs(self.call_of(query), selector) }
    }

    /// The name's state at the newest block, computed over proven state.
    async fn proven_newest(&self, query: &Query, begun: BegunNewest, hint: AccessList) -> Newest {
        self.computed_newest(query, begun, hint).await.unwrap_or_else(Newest::failed)
    }

    async fn computed_newest(
        &self,
        query: &Query,
        BegunNewest { mut head, prefetched }: BegunNewest,
        hint: AccessList,
    ) -> Result<Newest, ChainError> {
        let broken_off = || ChainError::Unreachable(vec![("newest block".to_owned(), "it was not read".to_owned())]);
        let head = head.join_next().await.and_then(Result::ok).ok_or_else(broken_off)??;
        let found = self.found(query, head, prefetched, hint).await?;
        let (answer, _) = self.answered(query, &found).await?;
        Ok(Newest {
            latest: Ok(Latest { answer, holder: found.findings.holder }),
            reached: Some(found.head.block.number),
            complaints: found.complaints().await,
        })
    }

    /// The name's state under this header. With `stated`, the endpoints' statements about the newest block are counted.
    async fn pinned(
        &self,
        query: &Query,
        head: Head,
        prefetched: JoinSet<Option<PrefetchedProofs>>,
        hint: AccessList,
        stated: Option<UnprovenHints>,
    ) -> Result<(ProvenFindings, Answer, Option<Newest>), ChainError> {
        let found = self.found(query, head, prefetched, hint).await?;
        let stated = stated.map(|hints| self.stated_newest(hints, query, &found.head, &found.findings));
        let (answered, stated) = join(self.answered(query, &found), OptionFuture::from(stated)).await;
        let (answer, is_payment_read) = answered?;
        self.record(query, &found.transport, found.apart.as_ref().filter(|_| is_payment_read)).await;
        let newest = match stated {
            None => None,
            Some(Err(error)) => Some(Newest::failed(error)),
            Some(Ok((stated, reached))) => {
                let (latest, read_by_each) = self.answers.beside(query, stated, &answer, found.findings.holder).await;
                Some(Newest { latest, reached: read_by_each.or(reached), complaints: Complaints::default() })
            }
        };
        Ok((found, answer, newest))
    }

    async fn reading(&self, query: Query, selector: BlockSelector) -> Result<Reading, ChainError> {
        let query = Arc::new(query);
        let begun_newest = self.proves_newest(selector).then(|| self.begin_newest(&query));
        let prefetched = self.prefetch_proofs(self.call_of(&query), selector);
        let hints = async { Ok(UnprovenHints::gather(&self.pool, Arc::clone(&query), selector).await) };
        let (head, mut hints) = try_join(self.head(selector), hints).await?;
        self.prefetch_owner(&hints, &head);
        let hint = hints.take_touched();
        let is_stated = selector.is_compared_with_latest() && begun_newest.is_none();
        let proven = begun_newest.map(|begun| self.proven_newest(&query, begun, hint.clone()));
        let proven = async { Ok(OptionFuture::from(proven).await) };
        let pinned = self.pinned(&query, head, prefetched, hint, is_stated.then_some(hints));
        let ((found, answer, stated), proven) = try_join(pinned, proven).await?;
        let mut complaints = found.complaints().await;
        let (latest, reached) = match stated.or(proven) {
            Some(newest) => {
                complaints.extend(newest.complaints);
                (Some(newest.latest), newest.reached)
            }
            None => (None, None),
        };
        let proof = found.head.proof();
        let Head { block, endpoints, contradicted_by, failed_endpoints, .. } = found.head;
        Ok(Reading {
            block,
            answer,
            latest,
            newest: newest(selector, &block, reached),
            holder: found.findings.holder,
            expiry: found.findings.expiry,
            proof,
            endpoints,
            contradicted_by: contradicted_by.into_iter().chain(complaints.lies).collect(),
            failed_endpoints: failed_endpoints.into_iter().chain(complaints.failures).collect(),
        })
    }

    /// The findings of the query about a name at a block whose header has this hash, over proven state.
    pub(crate) async fn findings_at(&self, query: &Query, block: &Block) -> Result<Findings, ChainError> {
        let header = self.header_of(block).await?;
        self.known.insert(block.hash, Arc::clone(&header)).await;
        self.findings(&self.transport(header, &[]), query, block, None).await
    }

    /// The query for everything on which a verdict about `name` rests.
    pub(crate) fn walk(&self, name: &EnsName) -> Query {
        Query::walk(name, &self.contracts, &self.coins)
    }
}

/// Requests for the header of the newest block and for proofs under it.
struct BegunNewest {
    head: JoinSet<Result<Head, ChainError>>,
    prefetched: JoinSet<Option<PrefetchedProofs>>,
}

/// A name's state at the newest block, stated or proven.
struct Newest {
    latest: Result<Latest, ChainError>,
    /// The height up to which it is valid.
    reached: Option<u64>,
    complaints: Complaints,
}

impl Newest {
    fn failed(error: ChainError) -> Self {
        Self { latest: Err(error), reached: None, complaints: Complaints::default() }
    }
}

/// What a query found under a header.
struct ProvenFindings {
    head: Head,
    findings: Findings,
    transport: ProvenTransport,
    /// The transport of a payment lookup, if there is one.
    apart: Option<ProvenTransport>,
}

impl ProvenFindings {
    async fn complaints(&self) -> Complaints {
        let mut complaints = self.transport.complaints().await;
        if let Some(apart) = &self.apart {
            complaints.extend(apart.complaints().await);
        }
        complaints
    }
}

#[async_trait]
impl Chain for ProvenChain {
    async fn read(&self, name: &EnsName, block: BlockSelector) -> Result<Reading, ChainError> {
        self.reading(self.walk(name), block).await
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
        if self.headers.as_ref().is_some_and(|headers| headers.is_newest_proven()) {
            let transport = self.transport(self.header_of(block).await?, endpoints);
            let findings = self.findings(&transport, &query, block, None).await?;
            let (client, block) = (transport.client(), by_hash(block));
            return self.answers.further_records(&client, &query, &findings, block, keys.len()).await;
        }
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

    async fn header_proof(&self, block: &Block) -> Result<Option<LightClientProof>, ChainError> {
        match &self.headers {
            Some(headers) => headers.proof_of(block).await,
            None => Ok(None),
        }
    }
}
