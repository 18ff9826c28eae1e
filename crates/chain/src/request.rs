//! Parameters of JSON-RPC requests.

use alloy_primitives::{Address, Bytes};
use alloy_rpc_types_eth::{BlockId, BlockNumberOrTag, RpcBlockHash, TransactionInput, TransactionRequest};
use clresolve_core::reading::{BlockSelector, ChainBlock};
use clresolve_state::CALL_GAS;

/// An `eth_call` with the gas limit [`CALL_GAS`].
pub(crate) fn eth_call_request(to: Address, data: Bytes) -> TransactionRequest {
    let input = TransactionInput { data: Some(data), input: None };
    TransactionRequest::default().to(to).input(input).gas_limit(CALL_GAS)
}

/// Selects the block by its hash (EIP-1898), which a reorganisation cannot replace.
pub(crate) const fn block_id_by_hash(block: &ChainBlock) -> BlockId {
    BlockId::Hash(RpcBlockHash { block_hash: block.hash, require_canonical: Some(true) })
}

pub(crate) const fn block_tag(selector: BlockSelector) -> BlockNumberOrTag {
    match selector {
        BlockSelector::Finalized => BlockNumberOrTag::Finalized,
        BlockSelector::Safe => BlockNumberOrTag::Safe,
        BlockSelector::Latest => BlockNumberOrTag::Latest,
        BlockSelector::Number(number) | BlockSelector::Pinned(number) => BlockNumberOrTag::Number(number),
    }
}

/// The height up to which a reading of `block` covers changes, if the endpoints have `reached` that height.
pub(crate) const fn newest_covered_height(
    selector: BlockSelector,
    block: &ChainBlock,
    reached: Option<u64>,
) -> Option<u64> {
    match selector {
        BlockSelector::Finalized | BlockSelector::Safe | BlockSelector::Pinned(_) => reached,
        BlockSelector::Latest => Some(block.number),
        BlockSelector::Number(_) => None,
    }
}
