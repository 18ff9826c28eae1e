//! [`RpcChain`]: readings that trust what the endpoints state.
//!
//! With [`GradeDemand::SingleRpc`](clresolve_core::reading::Demand::SingleRpc) one answer is enough, and the endpoints
//! are asked one after another. Otherwise several are asked concurrently, until enough operators agree.

use std::sync::Arc;

use alloy_primitives::Bytes;
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use async_trait::async_trait;
use clresolve_core::name::EnsName;
use clresolve_core::payment::Coins;
use clresolve_core::reading::{Block, BlockSelector, ChainError, Holding, Reading};
use clresolve_core::records::{Key, Record};
use clresolve_state::Contracts;
use clresolve_state::contracts::Findings;
use futures_util::future::{OptionFuture, join};

use crate::answers::Answers;
use crate::batch::{Accompanied, Batches};
use crate::ccip::CcipReadGateway;
use crate::poll::{Consensus, poll};
use crate::pool::{ChainConfig, Clock, EndpointPool};
use crate::query::Query;
use crate::request::{by_hash, newest};
use crate::transport::HttpPost;
use crate::{Chain, TextReading};

/// A [`Chain`] over JSON-RPC. Its readings are the statements of the endpoints that agreed.
pub struct RpcChain {
    pool: EndpointPool,
    contracts: Contracts,
    coins: Coins,
    answers: Answers,
    /// Combines queries about different names, if enabled.
    batches: Option<Arc<Batches>>,
}

impl RpcChain {
    /// Requests go through `http`, the client for the operator's URLs. Lookups are followed through `gateway`, which
    /// must enforce the rules for untrusted URLs.
    pub fn new(config: ChainConfig, http: &Arc<dyn HttpPost>, gateway: Arc<dyn CcipReadGateway>) -> Self {
        Self {
            contracts: config.contracts,
            coins: config.coins.clone(),
            answers: Answers::new(&config, gateway),
            pool: EndpointPool::new(config, http),
            batches: None,
        }
    }

    /// A chain for many names. Queries that arrive within a short time share requests.
    pub fn in_batches(config: ChainConfig, http: &Arc<dyn HttpPost>, gateway: Arc<dyn CcipReadGateway>) -> Self {
        let batches = Some(Arc::new(Batches::new(&config)));
        Self { batches, ..Self::new(config, http, gateway) }
    }

    /// The same with another clock.
    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { pool: self.pool.with_clock(clock), ..self }
    }

    async fn reading(&self, query: Query, selector: BlockSelector) -> Result<Reading, ChainError> {
        let query = Arc::new(query);
        let mut consensus = self.consensus(&query, selector).await?;
        let client = self.pool.client(consensus.members.clone(), consensus.spares.clone());
        let votes = consensus.latest.take();
        let at_latest = votes.map(|votes| self.answers.newest(&query, votes, &self.pool));
        let Consensus { block, pinned, .. } = &consensus;
        let answer = self.answers.both(&client, &query, pinned, Ok(pinned), by_hash(block));
        let (answer, latest) = join(answer, OptionFuture::from(at_latest)).await;
        let answer = answer?;
        let latest = latest.map(|latest| self.answers.beside(&query, latest, &answer, pinned.holder));
        let (latest, reached) = OptionFuture::from(latest).await.unzip();
        Ok(Reading {
            block: *block,
            answer,
            latest,
            newest: newest(selector, block, reached.flatten().or(consensus.newest)),
            holder: pinned.holder,
            expiry: pinned.expiry,
            proof: consensus.proof(self.pool.demand),
            endpoints: consensus.labels(),
            contradicted_by: consensus.contradicted_by,
            failed_endpoints: consensus.failed,
        })
    }

    /// Like [`EndpointPool::findings`], combined with queries about other names if this chain reads in batches.
    async fn findings(
        &self,
        endpoints: &[String],
        query: &Arc<Query>,
        block: &Block,
    ) -> Result<(RpcClient, Findings), ChainError> {
        let Some(batches) = &self.batches else { return self.pool.findings(endpoints, query, block).await };
        let client = self.pool.client_of(endpoints)?;
        let findings = batches.ask(&client, endpoints, query, block).await;
        let findings = findings.map_err(|failure| self.pool.explain(failure, endpoints, block))?;
        Ok((client, findings))
    }

    async fn consensus(&self, query: &Arc<Query>, selector: BlockSelector) -> Result<Consensus<Findings>, ChainError> {
        let query = Arc::clone(query);
        match &self.batches {
            Some(batches) => {
                poll(&self.pool, Arc::new(Accompanied { query, batches: Arc::clone(batches) }), selector).await
            }
            None => poll(&self.pool, query, selector).await,
        }
    }
}

#[async_trait]
impl Chain for RpcChain {
    async fn read(&self, name: &EnsName, block: BlockSelector) -> Result<Reading, ChainError> {
        self.reading(Query::walk(name, &self.contracts, &self.coins), block).await
    }

    async fn read_keys(
        &self,
        name: &EnsName,
        block: BlockSelector,
        keys: &'static [Key],
    ) -> Result<Reading, ChainError> {
        self.reading(Query::records(name, &self.contracts, keys), block).await
    }

    async fn holding(&self, owner: &EnsName, block: &Block, endpoints: &[String]) -> Result<Holding, ChainError> {
        let query = Arc::new(Query::address(owner, &self.contracts));
        let (client, findings) = self.findings(endpoints, &query, block).await?;
        self.answers.holding(&client, &query, &findings, by_hash(block)).await
    }

    async fn texts(
        &self,
        name: &EnsName,
        block: &Block,
        endpoints: &[String],
        keys: &[String],
    ) -> Result<Vec<Record>, ChainError> {
        let query = Arc::new(Query::further_records(name, &self.contracts, keys));
        let (client, findings) = self.findings(endpoints, &query, block).await?;
        self.answers.further_records(&client, &query, &findings, by_hash(block), keys.len()).await
    }

    async fn read_texts(
        &self,
        name: &EnsName,
        block: BlockSelector,
        keys: &[String],
    ) -> Result<TextReading, ChainError> {
        let query = Arc::new(Query::further_records(name, &self.contracts, keys));
        let mut consensus = poll(&self.pool, Arc::clone(&query), block).await?;
        let newest = consensus.latest.take();
        let client = self.pool.client(consensus.members.clone(), consensus.spares.clone());
        let (answers, query, count) = (&self.answers, &*query, keys.len());
        let objection = newest.as_ref().and_then(|newest| newest.records.objection());
        let at_latest = newest.map(|newest| {
            let findings = newest.records.into_vote(self.pool.chain_id);
            let client = self.pool.client(newest.current, Vec::new());
            async move { answers.further_records(&client, query, &findings?, BlockId::latest(), count).await }
        });
        let pinned = answers.further_records(&client, query, &consensus.pinned, by_hash(&consensus.block), count);
        let (records, latest) = join(pinned, OptionFuture::from(at_latest)).await;
        let records = records?;
        let latest = latest.map(|latest| objection.map_or(latest, Err));
        Ok(TextReading { block: consensus.block, records, latest, proof: consensus.proof(self.pool.demand) })
    }

    /// If a fork adds header fields that this program does not know, the hash differs and the header counts as missing.
    async fn header(&self, block: &Block, endpoints: &[String]) -> Option<Bytes> {
        let (members, _) = self.pool.split(endpoints);
        Some(self.pool.header_of(&members, block.hash).await.ok()?.rlp())
    }
}
