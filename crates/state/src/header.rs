//! A block header with the hash that this process computed, and the environment of calls in its block.

use std::fmt;

use alloy_consensus::Header;
use alloy_primitives::{Address, B256, Bytes, U256, keccak256};
use alloy_rpc_types_eth::{BlockId, RpcBlockHash};
use jiff::Timestamp;
use revm::context::{BlockEnv, CfgEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::primitives::hardfork::SpecId;

use super::error::ProofError;
use clresolve_core::reading::Block;

/// Start of Osaka, in seconds since 1970, by chain id. The header does not show it. Other chains are taken to have
/// Osaka from their first block.
const OSAKA: [(u64, u64); 3] = [(1, 1_764_798_551), (11_155_111, 1_760_427_360), (560_048, 1_761_677_592)];

/// A header and its computed hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedHeader {
    header: Header,
    hash: B256,
}

impl fmt::Display for HashedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state root {}", self.header.state_root)
    }
}

impl HashedHeader {
    /// Hashes the header.
    pub fn new(header: Header) -> Self {
        Self { hash: header.hash_slow(), header }
    }

    /// The header, if its hash is `agreed`.
    ///
    /// # Errors
    /// [`ProofError::Header`].
    pub fn checked(header: Header, agreed: B256) -> Result<Self, ProofError> {
        let hashed = Self::new(header);
        if hashed.hash == agreed || clresolve_core::mutant!("header-unhashed") {
            Ok(hashed)
        } else {
            Err(ProofError::Header { expected: agreed, observed: hashed.hash })
        }
    }

    /// Decodes a header from its RLP, without trailing bytes.
    pub(crate) fn from_rlp(rlp: &[u8]) -> Option<Self> {
        let header: Header = alloy_rlp::decode_exact(rlp).ok()?;
        Some(Self { hash: keccak256(rlp), header })
    }

    /// Its RLP, whose hash is the header's.
    pub fn rlp(&self) -> Bytes {
        alloy_rlp::encode(&self.header).into()
    }

    /// The computed hash.
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// The block by its hash (EIP-1898).
    pub const fn id(&self) -> BlockId {
        BlockId::Hash(RpcBlockHash { block_hash: self.hash, require_canonical: Some(true) })
    }

    /// Root of the state trie.
    pub const fn state_root(&self) -> B256 {
        self.header.state_root
    }

    /// The block's gas limit.
    pub(crate) const fn gas_limit(&self) -> u64 {
        self.header.gas_limit
    }

    /// The block; `None` where the timestamp is out of range.
    pub fn block(&self) -> Option<Block> {
        let timestamp = i64::try_from(self.header.timestamp).ok().and_then(|s| Timestamp::from_second(s).ok())?;
        Some(Block { number: self.header.number, hash: self.hash, timestamp })
    }

    /// The block's number.
    pub const fn number(&self) -> u64 {
        self.header.number
    }

    /// Hash of the parent block.
    pub(crate) const fn parent_hash(&self) -> B256 {
        self.header.parent_hash
    }

    /// Whether the chain keeps the hashes of its blocks in its state (EIP-2935).
    pub(crate) const fn keeps_block_hashes(&self) -> bool {
        self.header.requests_hash.is_some()
    }

    /// The EVM rules of the block.
    ///
    /// # Errors
    /// [`ProofError::TooOld`] for a block from before the Merge.
    pub(crate) fn configuration(&self, chain_id: u64) -> Result<CfgEnv, ProofError> {
        let mut configuration = CfgEnv::new_with_spec(self.rules(chain_id).ok_or(ProofError::TooOld)?);
        configuration.chain_id = chain_id;
        configuration.disable_nonce_check = true;
        Ok(configuration)
    }

    /// The newest fork that the header shows. Every fork but Osaka added a member to it.
    fn rules(&self, chain_id: u64) -> Option<SpecId> {
        let header = &self.header;
        let osaka = OSAKA.iter().find(|(chain, _)| *chain == chain_id).map_or(0, |(_, begin)| *begin);
        if header.block_access_list_hash.is_some() {
            Some(SpecId::AMSTERDAM)
        } else if header.requests_hash.is_some() {
            Some(if header.timestamp >= osaka { SpecId::OSAKA } else { SpecId::PRAGUE })
        } else if header.parent_beacon_block_root.is_some() {
            Some(SpecId::CANCUN)
        } else if header.withdrawals_root.is_some() {
            Some(SpecId::SHANGHAI)
        } else {
            (header.base_fee_per_gas.is_some() && header.difficulty.is_zero()).then_some(SpecId::MERGE)
        }
    }

    /// The block as contracts see it. Both base fees are zero, as nodes set them for calls that pay nothing.
    pub(crate) fn environment(&self) -> BlockEnv {
        let header = &self.header;
        let excess_blob_gas = header.excess_blob_gas.unwrap_or_default();
        BlockEnv {
            number: U256::from(header.number),
            beneficiary: header.beneficiary,
            timestamp: U256::from(header.timestamp),
            gas_limit: header.gas_limit,
            basefee: 0,
            difficulty: header.difficulty,
            prevrandao: Some(header.mix_hash),
            blob_excess_gas_and_price: Some(BlobExcessGasAndPrice { excess_blob_gas, blob_gasprice: 0 }),
            slot_num: header.slot_number.unwrap_or_default(),
        }
    }

    /// The account that receives the block's fees.
    pub const fn beneficiary(&self) -> Address {
        self.header.beneficiary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_from_before_the_merge_are_refused() {
        let header = HashedHeader::new(Header { difficulty: U256::from(1), ..Header::default() });
        assert_eq!(header.configuration(1).unwrap_err(), ProofError::TooOld);
    }
}
