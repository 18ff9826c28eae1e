//! Block headers: where they come from, and whether one that an endpoint gave is consistent.

use alloy_rpc_types_eth::Header;
use async_trait::async_trait;
use clresolve_core::reading::{Block, BlockSelector, ChainError};
use clresolve_state::HashedHeader;

/// Selects the chain's block. A state proof trusts this and nothing else. A quorum of endpoints is one source
/// ([`QuorumHeaders`](crate::QuorumHeaders)); a consensus light client can be another.
#[async_trait]
pub trait HeaderSource: Send + Sync {
    /// The header of the block that `selector` means.
    async fn head(&self, selector: BlockSelector) -> Result<Head, ChainError>;
}

/// A header and the endpoints that vouch for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The header.
    pub header: HashedHeader,
    /// Its block.
    pub block: Block,
    /// Number of operators that were asked.
    pub asked: u32,
    /// Number of operators that have this block.
    pub agreed: u32,
    /// Whether all endpoints that have this block are the operator's own.
    pub own: bool,
    /// Labels of the endpoints that have this block.
    pub endpoints: Vec<String>,
    /// Labels of the endpoints that have another block, with their statement.
    pub contradicted_by: Vec<(String, String)>,
    /// Labels of the endpoints that gave nothing usable, with the cause.
    pub failed_endpoints: Vec<(String, String)>,
}

impl Head {
    /// Whether the endpoint contradicts this block or failed to give it.
    pub(crate) fn excludes(&self, label: &str) -> bool {
        self.contradicted_by.iter().chain(&self.failed_endpoints).any(|(other, _)| other == label)
    }
}

/// Why a header is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    /// The endpoint returned `null`.
    #[error("the endpoint knows no such block")]
    Missing,
    /// The fields do not hash to the stated hash.
    #[error("the header's fields do not hash to its hash")]
    Hash,
    /// The header has another number than the requested one.
    #[error("the header is that of another block")]
    Number,
    /// The timestamp is out of range.
    #[error("the header's timestamp is out of range")]
    Time,
}

/// The header and its block, if the fields hash to the stated hash and the header is the requested one.
///
/// # Errors
/// [`HeaderError`].
pub(crate) fn checked(header: Option<Header>, selector: BlockSelector) -> Result<(HashedHeader, Block), HeaderError> {
    let header = header.ok_or(HeaderError::Missing)?;
    let header = HashedHeader::checked(header.inner, header.hash).map_err(|_| HeaderError::Hash)?;
    if matches!(selector, BlockSelector::Number(number) if number != header.number()) {
        return Err(HeaderError::Number);
    }
    let block = header.block().ok_or(HeaderError::Time)?;
    Ok((header, block))
}
