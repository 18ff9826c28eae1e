//! The query for a header alone: what is read in its block is asked for, or computed, once the block is agreed on.

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reading::{Block, BlockSelector};
use clresolve_state::HashedHeader;

use crate::endpoint::RpcEndpoint;
use crate::exchange::{Attestation, ChainIdentity, Observation};
use crate::failure::Failure;
use crate::poll::Votable;

/// The query for the header alone.
pub(crate) struct HeaderOnly;

#[async_trait]
impl Votable for HeaderOnly {
    type Vote = HashedHeader;

    async fn observe(
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
