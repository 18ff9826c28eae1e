//! The query for a header without any calls. The state at the block is read or computed after the endpoints agree on
//! it.

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_state::HashedBlockHeader;

use crate::endpoint::RpcEndpoint;
use crate::exchange::{ChainIdentity, EndpointAttestation, EndpointObservation};
use crate::failure::EndpointFailure;
use crate::poll::QuorumQuery;

pub(crate) struct BlockHeaderQuery;

#[async_trait]
impl QuorumQuery for BlockHeaderQuery {
    type Vote = HashedBlockHeader;

    async fn observe_own_block(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointObservation<HashedBlockHeader>, EndpointFailure> {
        endpoint.observe_header(selector, identity).await
    }

    async fn attest_block(
        &self,
        endpoint: &RpcEndpoint,
        block: &ChainBlock,
    ) -> Result<EndpointAttestation<HashedBlockHeader>, EndpointFailure> {
        endpoint.attest_header(block).await
    }
}
