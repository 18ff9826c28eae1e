//! The query for a header without any calls. The state at the block is read or computed after the endpoints agree on
//! it.

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reading::{Block, BlockSelector};
use clresolve_state::HashedHeader;

use crate::endpoint::RpcEndpoint;
use crate::exchange::{Attestation, ChainIdentity, Observation};
use crate::failure::Failure;
use crate::poll::Votable;

pub(crate) struct HeaderOnly;

#[async_trait]
impl Votable for HeaderOnly {
    type Vote = HashedHeader;

    async fn ask_at_own_block(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<HashedHeader>, Failure> {
        endpoint.observe_header(selector, identity).await
    }

    async fn attest(&self, endpoint: &RpcEndpoint, block: &Block) -> Result<Attestation<HashedHeader>, Failure> {
        endpoint.attest_header(block).await
    }
}
