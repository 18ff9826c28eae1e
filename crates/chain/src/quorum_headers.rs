//! [`QuorumHeaders`]: supplies the header on which enough endpoints agree.

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reading::{BlockSelector, ChainError, Grade};

use crate::header_only::HeaderOnly;
use crate::header_source::{Head, HeaderSource};
use crate::poll::poll;
use crate::pool::{ChainConfig, EndpointPool};
use crate::transport::HttpPost;

/// A header source that selects the block that enough endpoints have.
pub struct QuorumHeaders(Arc<EndpointPool>);

impl QuorumHeaders {
    /// Asks the endpoints of `config` through `http`, the client for the operator's URLs.
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
            grade: Grade::StateProof,
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
