//! [`BlockHeaderSource`]: supplies the header that a state proof trusts.

use alloy_rpc_types_eth::BlockId;
use async_trait::async_trait;
use clresolve_core::light_client::LightClientSyncTranscript;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, ProofGrade, ProofStrength};
use clresolve_state::HashedBlockHeader;

use crate::request::block_tag;

/// Selects the chain's block. This is all that a state proof trusts. A quorum of endpoints is one possible source
/// ([`QuorumHeaderSource`](crate::QuorumHeaderSource)), a light client of the beacon chain is another
/// ([`ConsensusHeaderSource`](crate::ConsensusHeaderSource)).
#[async_trait]
pub trait BlockHeaderSource: Send + Sync {
    /// The header of the block that `selector` selects.
    async fn select_header(&self, selector: BlockSelector) -> Result<VouchedBlockHeader, ChainError>;

    /// Under which id to prefetch the state of that block before its header is known.
    async fn block_id_for_prefetch(&self, selector: BlockSelector) -> Result<BlockId, ChainError> {
        Ok(block_tag(selector).into())
    }

    /// What proves the block's header to others. `None` if operators vouch for it.
    async fn fetch_header_proof(&self, _block: &ChainBlock) -> Result<Option<LightClientSyncTranscript>, ChainError> {
        Ok(None)
    }

    /// Whether the newest block is proven too ([`BlockSelector::Latest`]), so that a reading is compared with proven
    /// state instead of what endpoints state.
    fn is_newest_block_proven(&self) -> bool {
        false
    }
}

/// A header and the endpoints that vouch for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VouchedBlockHeader {
    /// The header.
    pub header: HashedBlockHeader,
    /// Its block.
    pub block: ChainBlock,
    /// The grade of what is computed from state that is proven against the header.
    pub grade: ProofGrade,
    /// Number of operators asked.
    pub asked: u32,
    /// Number of operators that have this block.
    pub agreed: u32,
    /// Whether all endpoints that have this block are the operator's own.
    pub own: bool,
    /// Labels of the endpoints that have this block.
    pub endpoints: Vec<String>,
    /// Labels of the endpoints that have another block, each with its statement.
    pub contradicted_by: Vec<(String, String)>,
    /// Labels of the endpoints that returned nothing usable, each with the cause.
    pub failed_endpoints: Vec<(String, String)>,
}

impl VouchedBlockHeader {
    /// The proof of what is computed from state that is proven against the header.
    pub(crate) const fn proof_strength(&self) -> ProofStrength {
        ProofStrength { grade: self.grade, asked: self.asked, agreed: self.agreed, own: self.own }
    }

    /// Whether the endpoint contradicts this block or failed to return it.
    pub(crate) fn is_endpoint_excluded(&self, label: &str) -> bool {
        self.contradicted_by.iter().chain(&self.failed_endpoints).any(|(other, _)| other == label)
    }
}
