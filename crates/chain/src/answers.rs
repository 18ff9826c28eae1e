//! From findings to answers. What the findings leave to a look-up off the chain is looked up.

use std::sync::Arc;

use alloy_primitives::{Address, Bytes};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use clresolve_core::cause::CcipFault;
use clresolve_core::reading::{Answer, Block, ChainError, Holding};
use clresolve_core::records::Record;
use clresolve_state::answer;
use clresolve_state::answer::Response;
use clresolve_state::contracts::Findings;

use crate::ccip::{CcipReadGateway, Lookups};
use crate::pool::{ChainConfig, EndpointPool};
use crate::query::Query;
use crate::request::by_hash;

/// Reads answers out of findings.
pub(crate) struct Answers {
    universal_resolver: Address,
    /// `None` where look-ups off the chain are switched off.
    lookups: Option<Lookups>,
}

impl Answers {
    /// Follows look-ups through `gateway`, if the configuration says so.
    pub(crate) fn new(config: &ChainConfig, gateway: Arc<dyn CcipReadGateway>) -> Self {
        Self {
            universal_resolver: config.contracts.universal_resolver,
            lookups: config.ccip.then(|| Lookups::new(gateway, config.timeout)),
        }
    }

    /// The answer about a name's records at `block`. A look-up asks `rpc`.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn records(
        &self,
        rpc: &RpcClient,
        query: &Query,
        findings: &Findings,
        block: BlockId,
    ) -> Result<Answer, ChainError> {
        let (data, offchain) = match answer::records_response(findings)? {
            Response::Complete(answer) => return Ok(answer),
            Response::Encoded(data) => (data, false),
            Response::OffChain => (self.look_up(rpc, query, block).await?, true),
        };
        match answer::records(findings, query.keys, &data, offchain) {
            Err(_) if offchain && clresolve_core::mutant!("failed-gateway-is-absence") => Ok(Answer::NoResolver(None)),
            answer => answer,
        }
    }

    /// The `count` further records that `query` requests at `block`, as the endpoints with these labels state them.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn further_records(
        &self,
        pool: &EndpointPool,
        labels: &[String],
        query: &Query,
        block: &Block,
        count: usize,
    ) -> Result<Vec<Record>, ChainError> {
        let (rpc, findings) = pool.findings(labels, query, block).await?;
        let (data, offchain) = match answer::records_response(&findings)? {
            Response::Complete(_) => return Ok(vec![Record::Absent; count]),
            Response::Encoded(data) => (data, false),
            Response::OffChain => (self.look_up(&rpc, query, by_hash(block)).await?, true),
        };
        answer::further_records(&data, count, offchain)
    }

    /// Address and holder of an owner's name at `block`.
    ///
    /// # Errors
    /// [`ChainError`].
    pub(crate) async fn holding(
        &self,
        rpc: &RpcClient,
        query: &Query,
        findings: &Findings,
        block: BlockId,
    ) -> Result<Holding, ChainError> {
        let (data, offchain) = match answer::holding_response(findings)? {
            Response::Complete(holding) => return Ok(holding),
            Response::Encoded(data) => (data, false),
            Response::OffChain => (self.look_up(rpc, query, block).await?, true),
        };
        answer::holding(findings, &data, offchain)
    }

    async fn look_up(&self, rpc: &RpcClient, query: &Query, block: BlockId) -> Result<Bytes, ChainError> {
        let Some(lookups) = &self.lookups else {
            return Err(ChainError::Ccip(CcipFault::SwitchedOff));
        };
        lookups.follow(rpc, self.universal_resolver, query.resolve.clone(), block).await
    }
}
