//! The transactions of the sandbox's blocks. They are not signed: the builder sends them on behalf of any account.

use alloy_consensus::{Eip658Value, Receipt, ReceiptWithBloom};
use alloy_primitives::{Address, B256, Bytes, Log, U64, keccak256, logs_bloom};
use alloy_rlp::Encodable as _;
use alloy_trie::root::ordered_trie_root_with_encoder;
use revm::primitives::TxKind;
use serde_json::{Value, json};

use clresolve_core::reading::ChainBlock;

/// The reported gas use of each transaction.
const GAS: u64 = 21_000;

/// A transaction that succeeded.
#[derive(Clone)]
pub(super) struct MinedTransaction {
    pub(super) hash: B256,
    from: Address,
    pub(super) to: Option<Address>,
    input: Bytes,
    pub(super) logs: Vec<Log>,
}

impl MinedTransaction {
    pub(super) fn new(from: Address, kind: TxKind, input: Bytes, logs: Vec<Log>) -> Self {
        let to = kind.to().copied();
        Self { hash: transaction_hash(from, to, &input), from, to, input, logs }
    }

    fn receipt(&self, index: usize) -> ReceiptWithBloom<Receipt> {
        let cumulative_gas_used = GAS * (index as u64 + 1);
        let receipt = Receipt { status: Eip658Value::Eip658(true), cumulative_gas_used, logs: self.logs.clone() };
        ReceiptWithBloom { logs_bloom: logs_bloom(&self.logs), receipt }
    }

    /// The format of `eth_getTransactionReceipt`.
    pub(super) fn receipt_json(&self, block: &ChainBlock, index: usize) -> Value {
        let receipt = self.receipt(index);
        let (transaction, place) = (self.hash, U64::from(index));
        let logs = receipt.receipt.logs.iter().map(|log| {
            json!({
                "address": log.address, "topics": log.topics(), "data": log.data.data, "removed": false,
                "transactionHash": transaction, "transactionIndex": place, "logIndex": "0x0",
                "blockHash": block.hash, "blockNumber": U64::from(block.number),
            })
        });
        json!({
            "transactionHash": transaction, "transactionIndex": place, "from": self.from, "to": self.to,
            "blockHash": block.hash, "blockNumber": U64::from(block.number), "type": "0x0", "status": "0x1",
            "cumulativeGasUsed": U64::from(receipt.receipt.cumulative_gas_used), "gasUsed": U64::from(GAS),
            "effectiveGasPrice": "0x0", "contractAddress": null, "logsBloom": receipt.logs_bloom,
            "logs": logs.collect::<Vec<_>>(),
        })
    }

    /// The format of `eth_getTransactionByHash`.
    pub(super) fn json(&self, block: &ChainBlock, index: usize) -> Value {
        json!({
            "hash": self.hash, "from": self.from, "to": self.to, "input": self.input, "type": "0x0", "nonce": "0x0",
            "blockHash": block.hash, "blockNumber": U64::from(block.number),
            "transactionIndex": U64::from(index), "gas": U64::from(GAS), "gasPrice": "0x0", "value": "0x0",
        })
    }
}

/// The hash of a transaction, computed from all its contents.
pub(crate) fn transaction_hash(from: Address, to: Option<Address>, input: &[u8]) -> B256 {
    keccak256([from.as_slice(), to.unwrap_or_default().as_slice(), input].concat())
}

pub(super) fn receipts_root(transactions: &[MinedTransaction]) -> B256 {
    let receipts: Vec<_> = transactions.iter().enumerate().map(|(index, mined)| mined.receipt(index)).collect();
    ordered_trie_root_with_encoder(&receipts, |receipt, out| receipt.encode(out))
}
