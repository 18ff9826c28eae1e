//! [`HeaderSource`]: supplies the header that a state proof trusts.

use async_trait::async_trait;
use clresolve_core::reading::{Block, BlockSelector, ChainError};
use clresolve_state::HashedHeader;

/// Selects the chain's block. This is all that a state proof trusts. A quorum of endpoints is one possible source
/// ([`QuorumHeaders`](crate::QuorumHeaders)); a consensus light client could be another.
#[async_trait]
pub trait HeaderSource: Send + Sync {
    /// The header of the block that `selector` selects.
    async fn head(&self, selector: BlockSelector) -> Result<Head, ChainError>;
}

/// A header and the endpoints that vouch for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The header.
    pub header: HashedHeader,
    /// Its block.
    pub block: Block,
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

impl Head {
    /// Whether the endpoint contradicts this block or failed to give it.
    pub(crate) fn excludes(&self, label: &str) -> bool {
        self.contradicted_by.iter().chain(&self.failed_endpoints).any(|(other, _)| other == label)
    }
}
