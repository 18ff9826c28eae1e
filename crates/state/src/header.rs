//! A block header with the hash computed in this process.

use std::fmt;

use alloy_consensus::Header;
use alloy_primitives::{B256, Bytes, keccak256};
use alloy_rpc_types_eth::{BlockId, RpcBlockHash};
use jiff::Timestamp;

use super::error::ProvenCallError;
use clresolve_core::reading::ChainBlock;

/// A header and its computed hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedBlockHeader {
    pub(crate) header: Header,
    hash: B256,
}

impl fmt::Display for HashedBlockHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state root {}", self.header.state_root)
    }
}

impl HashedBlockHeader {
    /// Hashes the header.
    pub fn new(header: Header) -> Self {
        Self { hash: header.hash_slow(), header }
    }

    /// The header, if its hash equals `agreed`.
    ///
    /// # Errors
    /// [`ProvenCallError::Header`].
    pub fn with_expected_hash(header: Header, agreed: B256) -> Result<Self, ProvenCallError> {
        let hashed = Self::new(header);
        if hashed.hash == agreed || clresolve_core::mutant!("header-unhashed") {
            Ok(hashed)
        } else {
            Err(ProvenCallError::Header { expected: agreed, observed: hashed.hash })
        }
    }

    /// Decodes a header from its RLP, without trailing bytes.
    pub fn from_rlp(rlp: &[u8]) -> Option<Self> {
        let header: Header = alloy_rlp::decode_exact(rlp).ok()?;
        Some(Self { hash: keccak256(rlp), header })
    }

    /// Hash of the parent block.
    pub const fn parent_hash(&self) -> B256 {
        self.header.parent_hash
    }

    /// The header's RLP encoding, which the block hash covers.
    pub fn rlp(&self) -> Bytes {
        alloy_rlp::encode(&self.header).into()
    }

    /// The computed hash.
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// The block id by hash (EIP-1898).
    pub const fn block_id(&self) -> BlockId {
        BlockId::Hash(RpcBlockHash { block_hash: self.hash, require_canonical: Some(true) })
    }

    /// Root of the state trie.
    pub const fn state_root(&self) -> B256 {
        self.header.state_root
    }

    /// Number, hash and timestamp of the block; `None` if the timestamp is out of range.
    pub fn block(&self) -> Option<ChainBlock> {
        let timestamp = i64::try_from(self.header.timestamp).ok().and_then(|s| Timestamp::from_second(s).ok())?;
        Some(ChainBlock { number: self.header.number, hash: self.hash, timestamp })
    }

    /// The block's number.
    pub const fn number(&self) -> u64 {
        self.header.number
    }
}
