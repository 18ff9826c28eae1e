//! What endpoints are asked where the reading is computed over proven state: the header alone, and hints.

use alloy_rpc_types_eth::{AccessList, AccessListResult, BlockId, Header};
use clresolve_core::reading::{Block, BlockSelector};
use clresolve_state::HashedHeader;
use clresolve_state::contracts::Findings;

use super::{Attestation, ChainIdentity, Observation};
use crate::endpoint::RpcEndpoint;
use crate::failure::Failure;
use crate::header;
use crate::query::Query;
use crate::request::tag;

/// What an endpoint states without proof.
pub(crate) struct Hint {
    /// What the call is likely to read.
    pub(crate) touched: Option<AccessList>,
    /// The result of the call at the newest block. `None` where that was not requested.
    pub(crate) latest: Option<Result<Findings, Failure>>,
}

impl RpcEndpoint {
    /// Requests the header alone.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) async fn observe_header(
        &self,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<HashedHeader>, Failure> {
        let mut batch = self.rpc.new_batch();
        let chain_id = self.request_chain_id(&mut batch)?;
        let header = batch
            .add_call::<_, Option<Header>>("eth_getBlockByNumber", &(tag(selector), false))
            .map_err(|e| self.failure(&e))?;
        let introduction = self.request_genesis(&mut batch, chain_id)?;
        batch.await.map_err(|e| self.failure(&e))?;
        let genesis = self.identify(introduction, identity).await?;
        let (header, block) = header::checked(header.await.map_err(|e| self.failure(&e))?, selector)?;
        self.set_identified();
        Ok(Observation { block, pinned: header, latest: None, genesis })
    }

    /// Requests the header at that height.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) async fn attest_header(&self, block: &Block) -> Result<Attestation<HashedHeader>, Failure> {
        let number = BlockSelector::Number(block.number);
        let header = self.rpc.request::<_, Option<Header>>("eth_getBlockByNumber", (tag(number), false)).await;
        let (header, observed) = header::checked(header.map_err(|e| self.failure(&e))?, number)?;
        Ok(if observed == *block { Attestation::Same(header) } else { Attestation::Other(observed) })
    }

    /// Requests, in one exchange, what the call is likely to read and its result at the newest block. Neither is proven.
    ///
    /// # Errors
    /// [`Failure`], where no response came at all.
    pub(crate) async fn hint(&self, query: &Query, selector: BlockSelector) -> Result<Hint, Failure> {
        let mut batch = self.rpc.new_batch();
        let touched = batch
            .add_call::<_, AccessListResult>("eth_createAccessList", &(&query.call, BlockId::from(tag(selector))))
            .map_err(|e| self.failure(&e))?;
        let latest = self.request_latest(&mut batch, query, selector)?;
        batch.await.map_err(|e| self.failure(&e))?;
        let touched = touched.await.ok().map(|result| result.access_list);
        let latest = match latest {
            Some(response) => Some(self.findings(query, response.await)),
            None => None,
        };
        Ok(Hint { touched, latest })
    }
}
