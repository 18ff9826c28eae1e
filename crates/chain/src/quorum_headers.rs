//! [`QuorumHeaders`]: the header that enough endpoints agree on.

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reading::{Block, BlockSelector, ChainError};
use clresolve_state::HashedHeader;

use crate::endpoint::RpcEndpoint;
use crate::exchange::{Attestation, ChainIdentity, Observation};
use crate::failure::Failure;
use crate::header_source::{Head, HeaderSource};
use crate::poll::{Votable, poll};
use crate::pool::{ChainConfig, EndpointPool};
use crate::transport::HttpPost;

/// Selects the block that enough endpoints have.
pub struct QuorumHeaders(Arc<EndpointPool>);

impl QuorumHeaders {
    /// Asks the endpoints of `config` through `http`, the door for the operator's URLs.
    pub fn new(config: ChainConfig, http: &Arc<dyn HttpPost>) -> Self {
        Self::of(Arc::new(EndpointPool::new(config, http)))
    }

    pub(crate) const fn of(pool: Arc<EndpointPool>) -> Self {
        Self(pool)
    }
}

#[async_trait]
impl HeaderSource for QuorumHeaders {
    async fn head(&self, selector: BlockSelector) -> Result<Head, ChainError> {
        let consensus = poll(&self.0, Arc::new(HeaderOnly), selector).await?;
        let proof = consensus.proof(self.0.demand);
        Ok(Head {
            block: consensus.block,
            asked: proof.asked,
            agreed: proof.agreed,
            own: proof.own,
            endpoints: consensus.labels(),
            contradicted_by: consensus.contradicted_by,
            failed_endpoints: consensus.failed,
            header: consensus.pinned,
        })
    }
}

/// The query for the header alone.
struct HeaderOnly;

#[async_trait]
impl Votable for HeaderOnly {
    type Vote = HashedHeader;

    async fn observe(
        &self,
        endpoint: &RpcEndpoint,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<HashedHeader>, Failure> {
        endpoint.observe_header(selector, identity).await
    }

    async fn attest(&self, endpoint: &RpcEndpoint, block: &Block) -> Result<Attestation<HashedHeader>, Failure> {
        endpoint.attest_header(block).await
    }
}
