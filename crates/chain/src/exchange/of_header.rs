//! Requests for a block header without any calls.

use std::future::IntoFuture as _;

use alloy_rpc_types_eth::Header;
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_state::HashedBlockHeader;
use futures_util::future::OptionFuture;

use super::{ChainIdentity, EndpointPinnedAndLatestVotes, VoteOrConflictingBlock, join_needed_and_optional};
use crate::endpoint::RpcEndpoint;
use crate::failure::EndpointFailure;
use crate::header;
use crate::request::block_tag;

impl RpcEndpoint {
    /// Requests the header that `selector` means.
    pub(crate) async fn fetch_header_vote(
        &self,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<HashedBlockHeader>, EndpointFailure> {
        let mut batch = self.rpc.new_batch();
        let chain_id = self.add_chain_id_request(&mut batch)?;
        let genesis = OptionFuture::from(chain_id.is_some().then(|| self.fetch_genesis_hash()));
        let header = batch
            .add_call::<_, Option<Header>>("eth_getBlockByNumber", &(block_tag(selector), false))
            .map_err(|e| self.failure_from_transport_error(&e))?;
        let genesis = join_needed_and_optional(batch.into_future(), genesis)
            .await
            .map_err(|e| self.failure_from_transport_error(&e))?
            .flatten();
        self.check_chain_identity(chain_id, genesis, identity).await?;
        let (header, block) =
            header::check_requested_header(header.await.map_err(|e| self.failure_from_block_tag_error(&e))?, selector)?;
        self.note_chain_identified();
        Ok(EndpointPinnedAndLatestVotes { block, pinned: header, latest: None, genesis: genesis.flatten() })
    }

    /// Requests the header at the height of `block`.
    pub(crate) async fn fetch_header_vote_at_block(
        &self,
        block: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<HashedBlockHeader>, EndpointFailure> {
        let number = BlockSelector::Number(block.number);
        let header = self.rpc.request::<_, Option<Header>>("eth_getBlockByNumber", (block_tag(number), false)).await;
        let (header, observed) =
            header::check_requested_header(header.map_err(|e| self.failure_from_transport_error(&e))?, number)?;
        Ok(if observed == *block {
            VoteOrConflictingBlock::Same(header)
        } else {
            VoteOrConflictingBlock::Other(observed)
        })
    }
}
