//! The query for a header without any calls. The state at the block is read or computed after the endpoints agree on
//! it.

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_state::HashedBlockHeader;

use crate::endpoint::RpcEndpoint;
use crate::exchange::{ChainIdentity, EndpointPinnedAndLatestVotes, VoteOrConflictingBlock};
use crate::failure::EndpointFailure;
use crate::poll::QuorumQuery;

pub(crate) struct BlockHeaderQuery;

#[async_trait]
impl QuorumQuery for BlockHeaderQuery {
    type Vote = HashedBlockHeader;

    async fn fetch_pinned_and_latest_votes(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<HashedBlockHeader>, EndpointFailure> {
        endpoint.fetch_header_vote(selector, identity).await
    }

    async fn fetch_vote_at_block(
        &self,
        endpoint: &RpcEndpoint,
        block: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<HashedBlockHeader>, EndpointFailure> {
        endpoint.fetch_header_vote_at_block(block).await
    }
}
