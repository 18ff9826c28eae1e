//! The query for a header without any calls. The state at the block is read or computed after the endpoints agree on
//! it.

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_state::HashedBlockHeader;

use crate::endpoint::RpcEndpoint;
use crate::exchange::{ChainIdentity, EndpointBlockAttestation, EndpointObservation};
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

    async fn fetch_block_attestation(
        &self,
        endpoint: &RpcEndpoint,
        block: &ChainBlock,
    ) -> Result<EndpointBlockAttestation<HashedBlockHeader>, EndpointFailure> {
        endpoint.fetch_header_attestation(block).await
    }
}
