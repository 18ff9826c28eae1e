//! [`QuorumHeaderSource`]: supplies the header on which enough endpoints agree.

use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reading::{BlockSelector, ChainError, ProofGrade};

use crate::header_only::BlockHeaderQuery;
use crate::header_source::{BlockHeaderSource, VouchedBlockHeader};
use crate::poll::poll_quorum;
use crate::pool::{ChainReaderConfig, EndpointPool};
use crate::transport::JsonRpcHttpClient;

/// A header source that selects the block that enough endpoints have.
pub struct QuorumHeaderSource(Arc<EndpointPool>);

impl QuorumHeaderSource {
    /// Asks the endpoints of `config` through `http`, the client for the operator's URLs.
    pub fn new(config: ChainReaderConfig, http: &Arc<dyn JsonRpcHttpClient>) -> Self {
        Self::from_pool(Arc::new(EndpointPool::new(config, http)))
    }

    pub(crate) const fn from_pool(pool: Arc<EndpointPool>) -> Self {
        Self(pool)
    }
}

#[async_trait]
impl BlockHeaderSource for QuorumHeaderSource {
    async fn select_header(&self, selector: BlockSelector) -> Result<VouchedBlockHeader, ChainError> {
        let consensus = poll_quorum(&self.0, Arc::new(BlockHeaderQuery), selector).await?;
        let proof = consensus.proof_strength(self.0.demand);
        Ok(VouchedBlockHeader {
            block: consensus.block,
            grade: ProofGrade::StateProof,
            asked: proof.asked,
            agreed: proof.agreed,
            own: proof.own,
            endpoints: consensus.member_labels(),
            contradicted_by: consensus.contradicted_by,
            failed_endpoints: consensus.failed,
            header: consensus.pinned,
        })
    }
}
