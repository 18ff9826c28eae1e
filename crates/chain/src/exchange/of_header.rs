//! Requests for a block header without any calls.

use std::future::IntoFuture as _;

use alloy_rpc_types_eth::Header;
use clresolve_core::reading::{Block, BlockSelector};
use clresolve_state::HashedHeader;
use futures_util::future::OptionFuture;

use super::{Attestation, ChainIdentity, Observation, needed_beside};
use crate::endpoint::RpcEndpoint;
use crate::failure::Failure;
use crate::header;
use crate::request::tag;

impl RpcEndpoint {
    /// Requests the header that `selector` means.
    pub(crate) async fn observe_header(
        &self,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<HashedHeader>, Failure> {
        let mut batch = self.rpc.new_batch();
        let chain_id = self.request_chain_id(&mut batch)?;
        let genesis = OptionFuture::from(chain_id.is_some().then(|| self.genesis()));
        let header = batch
            .add_call::<_, Option<Header>>("eth_getBlockByNumber", &(tag(selector), false))
            .map_err(|e| self.failure(&e))?;
        let genesis = needed_beside(batch.into_future(), genesis).await.map_err(|e| self.failure(&e))?.flatten();
        self.identify(chain_id, genesis, identity).await?;
        let (header, block) = header::checked(header.await.map_err(|e| self.header_failure(&e))?, selector)?;
        self.set_identified();
        Ok(Observation { block, pinned: header, latest: None, genesis: genesis.flatten() })
    }

    /// Requests the header at the height of `block`.
    pub(crate) async fn attest_header(&self, block: &Block) -> Result<Attestation<HashedHeader>, Failure> {
        let number = BlockSelector::Number(block.number);
        let header = self.rpc.request::<_, Option<Header>>("eth_getBlockByNumber", (tag(number), false)).await;
        let (header, observed) = header::checked(header.map_err(|e| self.failure(&e))?, number)?;
        Ok(if observed == *block { Attestation::Same(header) } else { Attestation::Other(observed) })
    }
}
