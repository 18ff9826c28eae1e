//! [`ProvenEnsReader`]: readings that this process computes over proven state.
//!
//! A reading has three inputs. Only the first is trusted: a [`BlockHeaderSource`] selects the header. Any endpoint can
//! prove the state under that header, and endpoints supply [`AccessListHintCollector`].

use std::sync::Arc;

use alloy_primitives::{B256, Bytes};
use alloy_rpc_types_eth::AccessList;
use async_trait::async_trait;
use clresolve_core::cause::ResolverContractError;
use clresolve_core::light_client::LightClientSyncTranscript;
use clresolve_core::name::EnsName;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::{
    BlockSelector, ChainBlock, ChainError, ClOwnerReading, EnsAnswer, LatestNameState, NameReading,
};
use clresolve_core::records::{TextRecord, TextRecordKey};
use clresolve_state::contracts::{NameFindings, UniversalResolverOutcome};
use clresolve_state::{
    CALL_GAS, EnsContractAddresses, EvmCall, EvmCallOutcome, HashedBlockHeader, StateProof, StateProofRecorder,
};
use futures_util::future::{OptionFuture, join, try_join};
use moka::future::Cache;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::EnsReader;
use crate::answers::{CcipReadAnswerResolver, UncomparedNewestAnswer};
use crate::ccip::CcipReadGatewayClient;
use crate::failure::EndpointFailure;
use crate::header_source::{BlockHeaderSource, VouchedBlockHeader};
use crate::pool::{ChainReaderConfig, EndpointPool, TimeSource};
use crate::proof_source::FailoverStateSource;
use crate::proven_transport::{EndpointComplaints, ProvenStateTransport};
use crate::prover::{CallProver, CallProverSession, PrefetchedProofs};
use crate::query::NameQuery;
use crate::quorum_headers::QuorumHeaderSource;
use crate::request::{block_id_by_hash, block_tag, newest_covered_height};
use crate::transport::JsonRpcHttpClient;
use crate::unproven_hints::AccessListHintCollector;

/// Number of headers kept for queries about the block of an earlier reading.
const KNOWN_HEADERS: u64 = 64;

/// An [`EnsReader`] that trusts a header and computes the rest.
#[derive(Clone)]
pub struct ProvenEnsReader {
    pool: Arc<EndpointPool>,
    contracts: EnsContractAddresses,
    coins: RequestedCoinTypes,
    answers: Arc<CcipReadAnswerResolver>,
    /// The source of headers. `None`: the endpoints agree on the header.
    headers: Option<Arc<dyn BlockHeaderSource>>,
    prover: Arc<CallProver>,
    known: Cache<B256, Arc<HashedBlockHeader>>,
    /// Records the proofs of a reading, if requested.
    recording: Option<Arc<StateProofRecorder>>,
}

impl ProvenEnsReader {
    /// Creates a chain that trusts the header on which the endpoints agree. Requests go through `http`, the client for
    /// the operator's URLs. Lookups are followed through `gateway`, which must enforce the rules for untrusted URLs.
    pub fn new(
        config: ChainReaderConfig,
        http: &Arc<dyn JsonRpcHttpClient>,
        gateway: Arc<dyn CcipReadGatewayClient>,
    ) -> Self {
        let (contracts, coins, answers) =
            (config.contracts, config.coins.clone(), CcipReadAnswerResolver::new(&config, gateway));
        let pool = Arc::new(EndpointPool::new(config, http));
        Self {
            contracts,
            coins,
            answers: Arc::new(answers),
            headers: None,
            prover: Arc::new(CallProver::new(pool.chain_id)),
            pool,
            known: Cache::new(KNOWN_HEADERS),
            recording: None,
        }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: TimeSource) -> Self {
        Self { pool: Arc::new(self.pool.with_clock(clock)), ..self }
    }

    /// Trusts `headers` instead of the endpoints, which then only supply proofs and hints.
    #[must_use]
    pub fn with_headers(self, headers: Arc<dyn BlockHeaderSource>) -> Self {
        Self { headers: Some(headers), ..self }
    }

    async fn select_header(&self, selector: BlockSelector) -> Result<VouchedBlockHeader, ChainError> {
        match &self.headers {
            Some(headers) => headers.select_header(selector).await,
            None => QuorumHeaderSource::from_pool(Arc::clone(&self.pool)).select_header(selector).await,
        }
    }

    /// Prefetches what the query about the owner will read, while the records are being computed. The owner's name
    /// comes from a hint; if the hint is wrong, the request is wasted.
    fn prefetch_owner(&self, hints: &AccessListHintCollector, head: &VouchedBlockHeader) {
        let Some(owner) = hints.hinted_owner() else { return };
        let call = self.resolution_call(&NameQuery::for_address(&owner, &self.contracts));
        let (source, prover, block) =
            (self.state_source_for_labels(&head.endpoints), Arc::clone(&self.prover), head.header.block_id());
        tokio::spawn(async move { prover.get_or_fetch_access_list(&source, block, &call).await });
    }

    /// Starts to fetch proofs of what a known call read last time, while the header is requested. This saves a round
    /// trip unless a new block arrives in between. Dropping the returned set cancels it.
    fn prefetch_proofs(&self, call: EvmCall, selector: BlockSelector) -> JoinSet<Option<PrefetchedProofs>> {
        let (source, prover, headers) =
            (self.state_source_for_labels(&[]), Arc::clone(&self.prover), self.headers.clone());
        let mut prefetched = JoinSet::new();
        prefetched.spawn(async move {
            let block = match headers {
                Some(headers) => headers.block_id_for_prefetch(selector).await.ok()?,
                None => block_tag(selector).into(),
            };
            prover.prefetch_proofs(&source, block, &call).await
        });
        prefetched
    }

    /// Whether a reading at this block is compared with proven state of the newest block.
    fn is_newest_state_proven(&self, selector: BlockSelector) -> bool {
        let is_newest_proven = self.headers.as_ref().is_some_and(|headers| headers.is_newest_block_proven());
        selector.is_compared_with_latest() && is_newest_proven && !clresolve_core::mutant!("newest-is-stated")
    }

    fn resolution_call(&self, query: &NameQuery) -> EvmCall {
        let data = query.call.input.input().cloned().unwrap_or_default();
        EvmCall { to: self.contracts.multicall3, data, gas: CALL_GAS }
    }

    /// The endpoints as a source of state, those with these labels first.
    fn state_source_for_labels(&self, labels: &[String]) -> FailoverStateSource {
        let (firsts, others) = self.pool.partition_by_labels(labels);
        let endpoints = firsts.into_iter().chain(others).collect();
        FailoverStateSource::new(endpoints, self.pool.hedge_after, Arc::clone(&self.pool.clock))
    }

    /// A transport that computes under `header` over proofs from endpoints, those with these labels first.
    fn build_transport(&self, header: Arc<HashedBlockHeader>, labels: &[String]) -> ProvenStateTransport {
        let session = if self.recording.is_some() {
            CallProverSession::new_keeping_proofs(header)
        } else {
            CallProverSession::new(header)
        };
        ProvenStateTransport::new(Arc::clone(&self.prover), session, self.state_source_for_labels(labels))
    }

    /// The findings of the query at the transport's block.
    async fn compute_findings(
        &self,
        transport: &ProvenStateTransport,
        query: &NameQuery,
        block: &ChainBlock,
        hint: Option<AccessList>,
    ) -> Result<NameFindings, ChainError> {
        let data = match transport.compute_call(&self.resolution_call(query), hint).await? {
            EvmCallOutcome::Returned(data) => data,
            EvmCallOutcome::Reverted(_) => return Err(ChainError::Resolver(ResolverContractError::CallReverted)),
            EvmCallOutcome::Halted(cause) => {
                return Err(ChainError::Resolver(ResolverContractError::Halted(cause)));
            }
        };
        let explain = |failure: EndpointFailure| failure.into_chain_error("proven state", &block.number.to_string(), 0);
        query.decode_findings_at_block(block, &data).map_err(explain)
    }

    /// Records the proofs of the calls about a name, if a recording was requested. `payment` is the transport of a
    /// successful payment lookup, if there was one.
    async fn record_proofs(
        &self,
        query: &NameQuery,
        transport: &ProvenStateTransport,
        payment: Option<&ProvenStateTransport>,
    ) {
        let Some(recording) = &self.recording else { return };
        let Some((mut state, name_look_ups)) = transport.recorded_proofs().await else { return };
        let apart = match payment {
            Some(payment) => payment.recorded_proofs().await,
            None => None,
        };
        let payment_look_ups = apart.map(|(nodes, look_ups)| {
            state.extend(nodes);
            look_ups
        });
        recording.record_name_query(StateProof {
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
    async fn fetch_block_header(&self, block: &ChainBlock) -> Result<Arc<HashedBlockHeader>, ChainError> {
        if let Some(header) = self.known.get(&block.hash).await {
            return Ok(header);
        }
        self.pool.fetch_header_by_hash(&self.pool.endpoints_in_order(), block.hash).await.map(Arc::new)
    }

    /// The answer at the newest block, if the selector requests it. It is stated, not proven: unless enough operators
    /// state what was computed, the name is withheld.
    async fn fetch_stated_newest_answer(
        &self,
        hints: AccessListHintCollector,
        query: &NameQuery,
        head: &VouchedBlockHeader,
        pinned: &NameFindings,
    ) -> Result<(UncomparedNewestAnswer, Option<u64>), ChainError> {
        let Some((newest, reached)) = hints.count_newest_findings(head, pinned).await else {
            let few = "too few endpoints report the state of the newest block".to_owned();
            return Err(ChainError::Unreachable(vec![("newest block".to_owned(), few)]));
        };
        Ok((self.answers.resolve_newest_answer(query, newest, &self.pool).await, reached))
    }

    /// What the query finds under this header. `prefetched` and `hint` save round trips.
    async fn compute_findings_under_header(
        &self,
        query: &NameQuery,
        head: VouchedBlockHeader,
        mut prefetched: JoinSet<Option<PrefetchedProofs>>,
        hint: AccessList,
    ) -> Result<ProvenNameFindings, ChainError> {
        let header = Arc::new(head.header.clone());
        self.known.insert(head.block.hash, Arc::clone(&header)).await;
        let transport = self.build_transport(header, &head.endpoints);
        if let Ok(Some(Ok(Some(prefetched)))) = timeout(self.pool.hedge_after, prefetched.join_next()).await {
            transport.adopt_prefetched_proofs(prefetched).await;
        }
        // A missing hint costs extra runs but no extra exchange: the endpoints were already asked for it.
        let findings = self.compute_findings(&transport, query, &head.block, Some(hint)).await?;
        let apart = match &findings.payment {
            Some(UniversalResolverOutcome::Offchain(_)) => {
                Some(transport.with_separate_source(self.state_source_for_labels(&head.endpoints)).await)
            }
            _ => None,
        };
        Ok(ProvenNameFindings { head, findings, transport, apart })
    }

    /// The answer that follows from what was found, and whether its payment records were read.
    async fn answer_from_findings(
        &self,
        query: &NameQuery,
        found: &ProvenNameFindings,
    ) -> Result<(EnsAnswer, bool), ChainError> {
        let ProvenNameFindings { head, findings, transport, apart } = found;
        let block = block_id_by_hash(&head.block);
        let (client, payment_client) = (transport.rpc_client(), apart.as_ref().unwrap_or(transport).rpc_client());
        let answer = self.answers.resolve_records(&client, query, findings, block);
        let payment = async { Ok(self.answers.resolve_payment(&payment_client, query, findings, block).await) };
        let (answer, payment) = try_join(answer, payment).await?;
        let is_payment_read = payment.is_ok();
        Ok((query.add_payment_to_answer(answer, payment), is_payment_read))
    }

    /// Starts to request the header of the newest block and proofs under it. Dropping the returned value cancels that.
    fn start_newest_block_requests(&self, query: &NameQuery) -> NewestBlockRequests {
        let (chain, selector, mut head) = (self.clone(), BlockSelector::Latest, JoinSet::new());
        head.spawn(async move { chain.select_header(selector).await });
        NewestBlockRequests { head, prefetched: self.prefetch_proofs(self.resolution_call(query), selector) }
    }

    /// The name's state at the newest block, computed over proven state.
    async fn prove_newest_state(
        &self,
        query: &NameQuery,
        begun: NewestBlockRequests,
        hint: AccessList,
    ) -> LatestNameStateOutcome {
        self.compute_newest_state(query, begun, hint).await.unwrap_or_else(LatestNameStateOutcome::from_error)
    }

    async fn compute_newest_state(
        &self,
        query: &NameQuery,
        NewestBlockRequests { mut head, prefetched }: NewestBlockRequests,
        hint: AccessList,
    ) -> Result<LatestNameStateOutcome, ChainError> {
        let broken_off = || ChainError::Unreachable(vec![("newest block".to_owned(), "it was not read".to_owned())]);
        let head = head.join_next().await.and_then(Result::ok).ok_or_else(broken_off)??;
        let found = self.compute_findings_under_header(query, head, prefetched, hint).await?;
        let (answer, _) = self.answer_from_findings(query, &found).await?;
        Ok(LatestNameStateOutcome {
            latest: Ok(LatestNameState { answer, holder: found.findings.holder }),
            reached: Some(found.head.block.number),
            complaints: found.complaints().await,
        })
    }

    /// The name's state under this header. With `stated`, the endpoints' statements about the newest block are counted.
    async fn compute_pinned_state(
        &self,
        query: &NameQuery,
        head: VouchedBlockHeader,
        prefetched: JoinSet<Option<PrefetchedProofs>>,
        hint: AccessList,
        stated: Option<AccessListHintCollector>,
    ) -> Result<(ProvenNameFindings, EnsAnswer, Option<LatestNameStateOutcome>), ChainError> {
        let found = self.compute_findings_under_header(query, head, prefetched, hint).await?;
        let stated = stated.map(|hints| self.fetch_stated_newest_answer(hints, query, &found.head, &found.findings));
        let (answered, stated) = join(self.answer_from_findings(query, &found), OptionFuture::from(stated)).await;
        let (answer, is_payment_read) = answered?;
        self.record_proofs(query, &found.transport, found.apart.as_ref().filter(|_| is_payment_read)).await;
        let newest = match stated {
            None => None,
            Some(Err(error)) => Some(LatestNameStateOutcome::from_error(error)),
            Some(Ok((stated, reached))) => {
                let (latest, read_by_each) =
                    self.answers.compare_newest_with_pinned(query, stated, &answer, found.findings.holder).await;
                Some(LatestNameStateOutcome {
                    latest,
                    reached: read_by_each.or(reached),
                    complaints: EndpointComplaints::default(),
                })
            }
        };
        Ok((found, answer, newest))
    }

    async fn run_name_query(&self, query: NameQuery, selector: BlockSelector) -> Result<NameReading, ChainError> {
        let query = Arc::new(query);
        let begun_newest = self.is_newest_state_proven(selector).then(|| self.start_newest_block_requests(&query));
        let prefetched = self.prefetch_proofs(self.resolution_call(&query), selector);
        let hints = async { Ok(AccessListHintCollector::gather_hints(&self.pool, Arc::clone(&query), selector).await) };
        let (head, mut hints) = try_join(self.select_header(selector), hints).await?;
        self.prefetch_owner(&hints, &head);
        let hint = hints.take_access_list();
        let is_stated = selector.is_compared_with_latest() && begun_newest.is_none();
        let proven = begun_newest.map(|begun| self.prove_newest_state(&query, begun, hint.clone()));
        let proven = async { Ok(OptionFuture::from(proven).await) };
        let pinned = self.compute_pinned_state(&query, head, prefetched, hint, is_stated.then_some(hints));
        let ((found, answer, stated), proven) = try_join(pinned, proven).await?;
        let mut complaints = found.complaints().await;
        let (latest, reached) = match stated.or(proven) {
            Some(newest) => {
                complaints.extend(newest.complaints);
                (Some(newest.latest), newest.reached)
            }
            None => (None, None),
        };
        let proof = found.head.proof_strength();
        let VouchedBlockHeader { block, endpoints, contradicted_by, failed_endpoints, .. } = found.head;
        Ok(NameReading {
            block,
            answer,
            latest,
            newest: newest_covered_height(selector, &block, reached),
            holder: found.findings.holder,
            expiry: found.findings.expiry,
            proof,
            endpoints,
            contradicted_by: contradicted_by.into_iter().chain(complaints.lies).collect(),
            failed_endpoints: failed_endpoints.into_iter().chain(complaints.failures).collect(),
        })
    }

    /// The findings of the query about a name at a block whose header has this hash, over proven state.
    pub(crate) async fn compute_findings_at(
        &self,
        query: &NameQuery,
        block: &ChainBlock,
    ) -> Result<NameFindings, ChainError> {
        let header = self.fetch_block_header(block).await?;
        self.known.insert(block.hash, Arc::clone(&header)).await;
        self.compute_findings(&self.build_transport(header, &[]), query, block, None).await
    }

    /// The query for everything on which a verdict about `name` rests.
    pub(crate) fn resolution_query(&self, name: &EnsName) -> NameQuery {
        NameQuery::for_resolution(name, &self.contracts, &self.coins)
    }
}

/// Requests for the header of the newest block and for proofs under it.
struct NewestBlockRequests {
    head: JoinSet<Result<VouchedBlockHeader, ChainError>>,
    prefetched: JoinSet<Option<PrefetchedProofs>>,
}

/// A name's state at the newest block, stated or proven.
struct LatestNameStateOutcome {
    latest: Result<LatestNameState, ChainError>,
    /// The height up to which it is valid.
    reached: Option<u64>,
    complaints: EndpointComplaints,
}

impl LatestNameStateOutcome {
    fn from_error(error: ChainError) -> Self {
        Self { latest: Err(error), reached: None, complaints: EndpointComplaints::default() }
    }
}

/// What a query found under a header.
struct ProvenNameFindings {
    head: VouchedBlockHeader,
    findings: NameFindings,
    transport: ProvenStateTransport,
    /// The transport of a payment lookup, if there is one.
    apart: Option<ProvenStateTransport>,
}

impl ProvenNameFindings {
    async fn complaints(&self) -> EndpointComplaints {
        let mut complaints = self.transport.complaints().await;
        if let Some(apart) = &self.apart {
            complaints.extend(apart.complaints().await);
        }
        complaints
    }
}

#[async_trait]
impl EnsReader for ProvenEnsReader {
    async fn read_name(&self, name: &EnsName, block: BlockSelector) -> Result<NameReading, ChainError> {
        self.run_name_query(self.resolution_query(name), block).await
    }

    async fn read_selected_records(
        &self,
        name: &EnsName,
        selector: BlockSelector,
        keys: &'static [TextRecordKey],
    ) -> Result<NameReading, ChainError> {
        self.run_name_query(NameQuery::for_records(name, &self.contracts, keys), selector).await
    }

    async fn read_cl_owner(
        &self,
        owner: &EnsName,
        block: &ChainBlock,
        endpoints: &[String],
    ) -> Result<ClOwnerReading, ChainError> {
        let query = NameQuery::for_address(owner, &self.contracts);
        let transport = self.build_transport(self.fetch_block_header(block).await?, endpoints);
        let findings = self.compute_findings(&transport, &query, block, None).await?;
        let holding =
            self.answers.resolve_cl_owner(&transport.rpc_client(), &query, &findings, block_id_by_hash(block)).await?;
        if let (Some(recording), Some((nodes, look_ups))) = (&self.recording, transport.recorded_proofs().await) {
            recording.record_owner_query(nodes, look_ups);
        }
        Ok(holding)
    }

    async fn read_texts_at_block(
        &self,
        name: &EnsName,
        block: &ChainBlock,
        endpoints: &[String],
        keys: &[String],
    ) -> Result<Vec<TextRecord>, ChainError> {
        let query = NameQuery::for_extra_text_records(name, &self.contracts, keys);
        if self.headers.as_ref().is_some_and(|headers| headers.is_newest_block_proven()) {
            let transport = self.build_transport(self.fetch_block_header(block).await?, endpoints);
            let findings = self.compute_findings(&transport, &query, block, None).await?;
            let (client, block) = (transport.rpc_client(), block_id_by_hash(block));
            return self.answers.resolve_extra_text_records(&client, &query, &findings, block, keys.len()).await;
        }
        let (client, findings) = self.pool.fetch_findings(endpoints, &query, block).await?;
        self.answers.resolve_extra_text_records(&client, &query, &findings, block_id_by_hash(block), keys.len()).await
    }

    fn with_proof_recorder(&self) -> Option<(Arc<dyn EnsReader>, Arc<StateProofRecorder>)> {
        let recording = Arc::new(StateProofRecorder::default());
        let chain = Self { recording: Some(Arc::clone(&recording)), ..self.clone() };
        Some((Arc::new(chain), recording))
    }

    async fn fetch_header_rlp(&self, block: &ChainBlock, _endpoints: &[String]) -> Option<Bytes> {
        Some(self.fetch_block_header(block).await.ok()?.rlp())
    }

    async fn fetch_header_proof(&self, block: &ChainBlock) -> Result<Option<LightClientSyncTranscript>, ChainError> {
        match &self.headers {
            Some(headers) => headers.fetch_header_proof(block).await,
            None => Ok(None),
        }
    }
}
