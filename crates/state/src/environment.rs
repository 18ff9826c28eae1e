//! The EVM environment of calls in a header's block, and the rules of that block.

use alloy_primitives::U256;
use revm::context::{BlockEnv, CfgEnv};
use revm::context_interface::block::BlobExcessGasAndPrice;
use revm::primitives::hardfork::SpecId;

use super::error::ProvenCallError;
use super::header::HashedBlockHeader;

/// Start of Osaka in seconds since 1970, by chain id, because the header does not show this fork. Other chains are
/// assumed to have Osaka from their first block.
const OSAKA: [(u64, u64); 3] = [(1, 1_764_798_551), (11_155_111, 1_760_427_360), (560_048, 1_761_677_592)];

impl HashedBlockHeader {
    pub(crate) const fn gas_limit(&self) -> u64 {
        self.header.gas_limit
    }

    /// Whether the chain stores the hashes of its blocks in its state (EIP-2935).
    pub(crate) const fn keeps_block_hashes(&self) -> bool {
        self.header.requests_hash.is_some()
    }

    /// The EVM rules of the block.
    ///
    /// # Errors
    /// [`ProvenCallError::TooOld`] for a block before the Merge.
    pub(crate) fn evm_configuration(&self, chain_id: u64) -> Result<CfgEnv, ProvenCallError> {
        let mut configuration = CfgEnv::new_with_spec(self.evm_spec_id(chain_id).ok_or(ProvenCallError::TooOld)?);
        configuration.chain_id = chain_id;
        configuration.disable_nonce_check = true;
        // A call pays no fees, so the account that receives the block's fees need not be proven.
        configuration.disable_fee_charge = true;
        Ok(configuration)
    }

    /// The newest fork visible in the header. Every fork except Osaka added a header field.
    fn evm_spec_id(&self, chain_id: u64) -> Option<SpecId> {
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

    /// The block as contracts see it. Both base fees are zero, as nodes set them for calls without a fee.
    pub(crate) fn block_environment(&self) -> BlockEnv {
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
}

#[cfg(test)]
mod tests {
    use alloy_consensus::Header;

    use super::*;

    #[test]
    fn blocks_from_before_the_merge_are_refused() {
        let header = HashedBlockHeader::new(Header { difficulty: U256::from(1), ..Header::default() });
        assert_eq!(header.evm_configuration(1).unwrap_err(), ProvenCallError::TooOld);
    }
}
