//! [`RpcEnsReader`]: readings that trust what the endpoints state.
//!
//! With [`ProofGradeDemand::SingleRpc`](clresolve_core::reading::ProofGradeDemand::SingleRpc) one answer is enough, and
//! the endpoints are asked one after another. Otherwise several are asked concurrently, until enough operators agree.

use std::sync::Arc;

use alloy_primitives::Bytes;
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use async_trait::async_trait;
use clresolve_core::name::EnsName;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, ClOwnerReading, NameReading};
use clresolve_core::records::{TextRecord, TextRecordKey};
use clresolve_state::EnsContractAddresses;
use clresolve_state::contracts::NameFindings;
use futures_util::future::{OptionFuture, join};

use crate::answers::CcipReadAnswerResolver;
use crate::batch::{BatchedNameQuery, MulticallNameQueryBatcher};
use crate::ccip::CcipReadGatewayClient;
use crate::poll::{QuorumPollOutcome, poll_quorum};
use crate::pool::{ChainReaderConfig, EndpointPool, TimeSource};
use crate::query::NameQuery;
use crate::request::{block_id_by_hash, newest_covered_height};
use crate::transport::JsonRpcHttpClient;
use crate::{EnsReader, ExtraTextRecords};

/// An [`EnsReader`] over JSON-RPC. Its readings are the statements of the endpoints that agreed.
pub struct RpcEnsReader {
    pool: EndpointPool,
    contracts: EnsContractAddresses,
    coins: RequestedCoinTypes,
    answers: CcipReadAnswerResolver,
    /// Combines queries about different names, if enabled.
    batches: Option<Arc<MulticallNameQueryBatcher>>,
}

impl RpcEnsReader {
    /// Requests go through `http`, the client for the operator's URLs. Lookups are followed through `gateway`, which
    /// must enforce the rules for untrusted URLs.
    pub fn new(
        config: ChainReaderConfig,
        http: &Arc<dyn JsonRpcHttpClient>,
        gateway: Arc<dyn CcipReadGatewayClient>,
    ) -> Self {
        Self {
            contracts: config.contracts,
            coins: config.coins.clone(),
            answers: CcipReadAnswerResolver::new(&config, gateway),
            pool: EndpointPool::new(config, http),
            batches: None,
        }
    }

    /// A chain for many names. Queries that arrive within a short time share requests.
    pub fn new_batching(
        config: ChainReaderConfig,
        http: &Arc<dyn JsonRpcHttpClient>,
        gateway: Arc<dyn CcipReadGatewayClient>,
    ) -> Self {
        let batches = Some(Arc::new(MulticallNameQueryBatcher::new(&config)));
        Self { batches, ..Self::new(config, http, gateway) }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: TimeSource) -> Self {
        Self { pool: self.pool.with_clock(clock), ..self }
    }

    async fn run_name_query(&self, query: NameQuery, selector: BlockSelector) -> Result<NameReading, ChainError> {
        let query = Arc::new(query);
        let mut consensus = self.poll_quorum(&query, selector).await?;
        let client = self.pool.client_for_members(consensus.members.clone(), consensus.spares.clone());
        let votes = consensus.latest.take();
        let at_latest = votes.map(|votes| self.answers.resolve_newest_answer(&query, votes, &self.pool));
        let QuorumPollOutcome { block, pinned, .. } = &consensus;
        let answer =
            self.answers.resolve_records_and_payment(&client, &query, pinned, Ok(pinned), block_id_by_hash(block));
        let (answer, latest) = join(answer, OptionFuture::from(at_latest)).await;
        let answer = answer?;
        let latest =
            latest.map(|latest| self.answers.compare_newest_with_pinned(&query, latest, &answer, pinned.holder));
        let (latest, reached) = OptionFuture::from(latest).await.unzip();
        Ok(NameReading {
            block: *block,
            answer,
            latest,
            newest: newest_covered_height(selector, block, reached.flatten().or(consensus.newest)),
            holder: pinned.holder,
            expiry: pinned.expiry,
            proof: consensus.proof_strength(self.pool.demand),
            endpoints: consensus.member_labels(),
            contradicted_by: consensus.contradicted_by,
            failed_endpoints: consensus.failed,
        })
    }

    /// Like [`EndpointPool::fetch_findings`], combined with queries about other names if this chain reads in batches.
    async fn fetch_findings(
        &self,
        endpoints: &[String],
        query: &Arc<NameQuery>,
        block: &ChainBlock,
    ) -> Result<(RpcClient, NameFindings), ChainError> {
        let Some(batches) = &self.batches else { return self.pool.fetch_findings(endpoints, query, block).await };
        let client = self.pool.client_for_labels(endpoints)?;
        let findings = batches.fetch_findings(&client, endpoints, query, block).await;
        let findings = findings.map_err(|failure| self.pool.failure_to_chain_error(failure, endpoints, block))?;
        Ok((client, findings))
    }

    async fn poll_quorum(
        &self,
        query: &Arc<NameQuery>,
        selector: BlockSelector,
    ) -> Result<QuorumPollOutcome<NameFindings>, ChainError> {
        let query = Arc::clone(query);
        match &self.batches {
            Some(batches) => {
                poll_quorum(&self.pool, Arc::new(BatchedNameQuery { query, batches: Arc::clone(batches) }), selector)
                    .await
            }
            None => poll_quorum(&self.pool, query, selector).await,
        }
    }
}

#[async_trait]
impl EnsReader for RpcEnsReader {
    async fn read_name(&self, name: &EnsName, block: BlockSelector) -> Result<NameReading, ChainError> {
        self.run_name_query(NameQuery::for_resolution(name, &self.contracts, &self.coins), block).await
    }

    async fn read_selected_records(
        &self,
        name: &EnsName,
        block: BlockSelector,
        keys: &'static [TextRecordKey],
    ) -> Result<NameReading, ChainError> {
        self.run_name_query(NameQuery::for_records(name, &self.contracts, keys), block).await
    }

    async fn read_cl_owner(
        &self,
        owner: &EnsName,
        block: &ChainBlock,
        endpoints: &[String],
    ) -> Result<ClOwnerReading, ChainError> {
        let query = Arc::new(NameQuery::for_address(owner, &self.contracts));
        let (client, findings) = self.fetch_findings(endpoints, &query, block).await?;
        self.answers.resolve_cl_owner(&client, &query, &findings, block_id_by_hash(block)).await
    }

    async fn read_texts_at_block(
        &self,
        name: &EnsName,
        block: &ChainBlock,
        endpoints: &[String],
        keys: &[String],
    ) -> Result<Vec<TextRecord>, ChainError> {
        let query = Arc::new(NameQuery::for_extra_text_records(name, &self.contracts, keys));
        let (client, findings) = self.fetch_findings(endpoints, &query, block).await?;
        self.answers.resolve_extra_text_records(&client, &query, &findings, block_id_by_hash(block), keys.len()).await
    }

    async fn read_extra_texts(
        &self,
        name: &EnsName,
        block: BlockSelector,
        keys: &[String],
    ) -> Result<ExtraTextRecords, ChainError> {
        let query = Arc::new(NameQuery::for_extra_text_records(name, &self.contracts, keys));
        let mut consensus = poll_quorum(&self.pool, Arc::clone(&query), block).await?;
        let newest = consensus.latest.take();
        let client = self.pool.client_for_members(consensus.members.clone(), consensus.spares.clone());
        let (answers, query, count) = (&self.answers, &*query, keys.len());
        let objection = newest.as_ref().and_then(|newest| newest.records.objection_error());
        let at_latest = newest.map(|newest| {
            let findings = newest.records.into_vote(self.pool.chain_id);
            let client = self.pool.client_for_members(newest.current, Vec::new());
            async move { answers.resolve_extra_text_records(&client, query, &findings?, BlockId::latest(), count).await }
        });
        let pinned = answers.resolve_extra_text_records(
            &client,
            query,
            &consensus.pinned,
            block_id_by_hash(&consensus.block),
            count,
        );
        let (records, latest) = join(pinned, OptionFuture::from(at_latest)).await;
        let records = records?;
        let latest = latest.map(|latest| objection.map_or(latest, Err));
        Ok(ExtraTextRecords {
            block: consensus.block,
            records,
            latest,
            proof: consensus.proof_strength(self.pool.demand),
        })
    }

    /// If a fork adds header fields that this program does not know, the hash differs and the header counts as missing.
    async fn fetch_header_rlp(&self, block: &ChainBlock, endpoints: &[String]) -> Option<Bytes> {
        let (members, _) = self.pool.partition_by_labels(endpoints);
        Some(self.pool.fetch_header_by_hash(&members, block.hash).await.ok()?.rlp())
    }
}
