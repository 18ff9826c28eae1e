//! Transaction receipts, and the proof that a receipt is in the receipts trie of a block. No I/O.
//!
//! A receipt contains the logs of a transaction, but not its hash. So the proof shows that *some* transaction at this
//! index of the block emitted these logs. Which transaction it is relies on the endpoints.

use alloy_primitives::{Address, B256, Bloom, Bytes, Log, U64};
use alloy_rlp::{BufMut, Encodable, Header};
use clresolve_core::execution::ExecutedTransaction;
use clresolve_core::reading::{ChainBlock, ProofStrength};
use serde::{Deserialize, Serialize};

use super::header::HashedBlockHeader;

/// Type of OP-chain transactions that are deposited from the parent chain. Their receipts have two additional fields.
const DEPOSIT: u8 = 0x7e;

/// A receipt as returned by endpoints (`eth_getTransactionReceipt`, `eth_getBlockReceipts`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcReceiptDocument {
    /// Hash of the transaction.
    pub transaction_hash: B256,
    /// Index of the transaction within the block.
    pub transaction_index: U64,
    /// Hash of the block.
    pub block_hash: B256,
    /// Number of the block.
    pub block_number: U64,
    /// The called address; `None` for a contract creation.
    pub to: Option<Address>,
    /// 1 if the transaction succeeded. Before Byzantium, receipts had a state root instead, which is not supported.
    pub status: Option<U64>,
    /// The emitted logs.
    pub logs: Vec<RpcLogDocument>,
    #[serde(default, rename = "type")]
    kind: U64,
    cumulative_gas_used: U64,
    logs_bloom: Bloom,
    #[serde(default)]
    deposit_nonce: Option<U64>,
    #[serde(default)]
    deposit_receipt_version: Option<U64>,
}

/// A log as returned by endpoints. Its position in the receipt links it to its transaction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RpcLogDocument {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
}

impl From<RpcLogDocument> for Log {
    fn from(log: RpcLogDocument) -> Self {
        Self::new_unchecked(log.address, log.topics, log.data)
    }
}

impl RpcReceiptDocument {
    /// Whether the transaction succeeded; `None` for an unsupported form of receipt.
    pub fn has_succeeded(&self) -> Option<bool> {
        match self.status?.to::<u64>() {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// The leaf of the receipts trie (EIP-2718); `None` for an unsupported form of receipt.
    pub fn trie_leaf(&self) -> Option<Bytes> {
        let kind = u8::try_from(self.kind.to::<u64>()).ok()?;
        let mut payload = Vec::new();
        self.has_succeeded()?.encode(&mut payload);
        self.cumulative_gas_used.to::<u64>().encode(&mut payload);
        self.logs_bloom.encode(&mut payload);
        let logs: Vec<Log> = self.logs.iter().cloned().map(Log::from).collect();
        logs.encode(&mut payload);
        if kind == DEPOSIT {
            let further = [self.deposit_nonce, self.deposit_receipt_version];
            further.into_iter().flatten().for_each(|number| number.to::<u64>().encode(&mut payload));
        }
        let mut leaf = Vec::with_capacity(payload.len() + 8);
        if kind > 0 {
            leaf.put_u8(kind);
        }
        Header { list: true, payload_length: payload.len() }.encode(&mut leaf);
        leaf.extend_from_slice(&payload);
        Some(leaf.into())
    }
}

/// The result of reading a transaction from a chain. The field names are part of the bundle format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionReading {
    /// The finalized block up to which the chain was read.
    pub head: ChainBlock,
    /// The transaction; `None` if no block up to `head` contains it.
    pub execution: Option<ExecutedTransaction>,
    /// How strongly the endpoints' answer is proven.
    pub proof: ProofStrength,
    /// The proof that the receipt is in its block, if it could be made.
    pub receipt_proof: Option<ReceiptInclusionProof>,
}

/// The proof that a receipt is in a block. The field names are part of the bundle format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptInclusionProof {
    /// RLP of the block's header.
    pub header: Bytes,
    /// The nodes of the receipts trie from its root to the receipt.
    pub nodes: Vec<Bytes>,
}

/// Why a proof does not prove the receipt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptInclusionError {
    /// The header does not belong to the block.
    #[error("the header is not that of the block")]
    Header,
    /// The nodes do not lead from the header's receipts root to a receipt.
    #[error("the nodes do not lead to a receipt")]
    Nodes,
    /// The proof is for a different receipt.
    #[error("the proven receipt is a different one")]
    OtherReceipt,
    /// This build has no trie support.
    #[error("this build proves no receipts")]
    NotBuilt,
}

impl ReceiptInclusionProof {
    /// Checks that the block of `execution` contains a receipt with its status and its logs at its index.
    ///
    /// # Errors
    /// [`ReceiptInclusionError`].
    pub fn check_inclusion(&self, execution: &ExecutedTransaction) -> Result<(), ReceiptInclusionError> {
        let header = HashedBlockHeader::from_rlp(&self.header).ok_or(ReceiptInclusionError::Header)?;
        if header.block() != Some(execution.block) {
            return Err(ReceiptInclusionError::Header);
        }
        let leaf = tries::look_up_leaf(header.header.receipts_root, execution.index, &self.nodes)?;
        let (has_succeeded, logs) = parse_receipt_leaf(&leaf).ok_or(ReceiptInclusionError::Nodes)?;
        let same = has_succeeded == execution.has_succeeded && logs == execution.logs;
        if same || clresolve_core::mutant!("other-receipts-are-proven") {
            Ok(())
        } else {
            Err(ReceiptInclusionError::OtherReceipt)
        }
    }

    /// Builds the proof for the receipt at `index` from all receipts of the block, in order. `None` if they do not
    /// match the header's receipts root, or if one has an unsupported form.
    pub fn new(header: &HashedBlockHeader, receipts: &[RpcReceiptDocument], index: u64) -> Option<Self> {
        let leaves = receipts.iter().map(RpcReceiptDocument::trie_leaf).collect::<Option<Vec<_>>>()?;
        let nodes = tries::prove_leaf(header.header.receipts_root, &leaves, index)?;
        Some(Self { header: header.rlp(), nodes })
    }
}

fn parse_receipt_leaf(leaf: &[u8]) -> Option<(bool, Vec<Log>)> {
    use alloy_rlp::Decodable as _;
    let mut list = match leaf.first()? {
        0xc0.. => leaf,
        _ => &leaf[1..],
    };
    let mut payload = Header::decode_bytes(&mut list, true).ok()?;
    let has_succeeded = bool::decode(&mut payload).ok()?;
    u64::decode(&mut payload).ok()?;
    Bloom::decode(&mut payload).ok()?;
    let logs = Vec::<Log>::decode(&mut payload).ok()?;
    list.is_empty().then_some((has_succeeded, logs))
}

#[cfg(feature = "state-proof")]
mod tries {
    use alloy_primitives::{B256, Bytes};
    use alloy_trie::proof::ProofRetainer;
    use alloy_trie::{HashBuilder, Nibbles};

    use super::ReceiptInclusionError;
    use crate::trie;

    pub(super) fn look_up_leaf(root: B256, index: u64, nodes: &[Bytes]) -> Result<Vec<u8>, ReceiptInclusionError> {
        let found = trie::look_up_receipt(root, trie_key(index), nodes);
        found.ok().flatten().ok_or(ReceiptInclusionError::Nodes)
    }

    /// The nodes from the root to a leaf; `None` if these leaves have another root.
    pub(super) fn prove_leaf(root: B256, leaves: &[Bytes], index: u64) -> Option<Vec<Bytes>> {
        let mut sorted: Vec<_> = (0..).map(trie_key).zip(leaves).collect();
        sorted.sort_unstable();
        let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(vec![trie_key(index)]));
        sorted.into_iter().for_each(|(path, leaf)| builder.add_leaf(path, leaf));
        let is_whole = builder.root() == root;
        let nodes = builder.take_proof_nodes().into_nodes_sorted().into_iter().map(|(_, node)| node);
        is_whole.then(|| nodes.collect())
    }

    fn trie_key(index: u64) -> Nibbles {
        Nibbles::unpack(alloy_rlp::encode(index))
    }
}

#[cfg(not(feature = "state-proof"))]
mod tries {
    use alloy_primitives::{B256, Bytes};

    use super::ReceiptInclusionError;

    pub(super) fn look_up_leaf(_: B256, _: u64, _: &[Bytes]) -> Result<Vec<u8>, ReceiptInclusionError> {
        Err(ReceiptInclusionError::NotBuilt)
    }

    pub(super) fn prove_leaf(_: B256, _: &[Bytes], _: u64) -> Option<Vec<Bytes>> {
        None
    }
}

#[cfg(all(test, feature = "state-proof"))]
mod tests {
    use alloy_consensus::{Eip658Value, Header, Receipt, ReceiptWithBloom};
    use alloy_primitives::logs_bloom;
    use alloy_trie::root::ordered_trie_root_with_encoder;
    use serde_json::{Value, json};

    use super::*;

    fn log(byte: u8) -> Log {
        Log::new_unchecked(Address::repeat_byte(byte), vec![B256::repeat_byte(byte)], vec![byte; 40].into())
    }

    fn stated(index: u64, kind: u64, logs: &[Log]) -> Value {
        let logs_json: Vec<_> = logs
            .iter()
            .map(
                |log| json!({"address": log.address, "topics": log.topics(), "data": log.data.data, "logIndex": "0x0"}),
            )
            .collect();
        json!({
            "transactionHash": B256::with_last_byte(index as u8), "transactionIndex": U64::from(index),
            "blockHash": B256::ZERO, "blockNumber": "0x7", "to": null, "status": "0x1", "logs": logs_json,
            "type": U64::from(kind), "cumulativeGasUsed": U64::from(21_000 * (index + 1)),
            "logsBloom": logs_bloom(logs), "effectiveGasPrice": "0x1",
        })
    }

    fn receipt(index: u64, kind: u64, logs: &[Log]) -> RpcReceiptDocument {
        serde_json::from_value(stated(index, kind, logs)).expect("a receipt")
    }

    fn block_of(receipts: &[RpcReceiptDocument]) -> HashedBlockHeader {
        let leaves: Vec<_> = receipts.iter().map(|receipt| receipt.trie_leaf().expect("a leaf")).collect();
        let receipts_root = ordered_trie_root_with_encoder(&leaves, |leaf, out| out.put_slice(leaf));
        HashedBlockHeader::new(Header { number: 7, receipts_root, ..Header::default() })
    }

    fn execution(header: &HashedBlockHeader, receipt: &RpcReceiptDocument) -> ExecutedTransaction {
        ExecutedTransaction {
            transaction: receipt.transaction_hash,
            block: header.block().expect("a block"),
            index: receipt.transaction_index.to(),
            has_succeeded: true,
            to: None,
            input: Bytes::new(),
            logs: receipt.logs.iter().cloned().map(Log::from).collect(),
        }
    }

    #[test]
    fn leaves_are_those_of_the_protocol() {
        let logs = vec![log(1), log(2)];
        let inner = Receipt { status: Eip658Value::Eip658(true), cumulative_gas_used: 21_000, logs: logs.clone() };
        let untyped = alloy_rlp::encode(ReceiptWithBloom { logs_bloom: logs_bloom(&logs), receipt: inner });
        let of_type = |kind| receipt(0, kind, &logs).trie_leaf().expect("a leaf");
        assert_eq!(of_type(0), untyped);
        assert_eq!(of_type(2), [vec![2], untyped].concat());
    }

    #[test]
    fn each_receipt_of_a_block_is_proven_and_no_other() {
        let receipts: Vec<_> = (0..200).map(|index| receipt(index, index % 3, &[log(index as u8)])).collect();
        let header = block_of(&receipts);
        for index in [0, 1, 127, 128, 199] {
            let proof =
                ReceiptInclusionProof::new(&header, &receipts, index).expect("the receipts are those of the block");
            let honest = execution(&header, &receipts[index as usize]);
            assert_eq!(proof.check_inclusion(&honest), Ok(()), "{index}");
            let other = execution(&header, &receipts[(index as usize + 1) % 200]);
            assert_eq!(
                proof.check_inclusion(&other),
                Err(ReceiptInclusionError::Nodes),
                "its path leads to no node of the proof"
            );
            let further = ExecutedTransaction { logs: [honest.logs.clone(), vec![log(9)]].concat(), ..honest.clone() };
            assert_eq!(proof.check_inclusion(&further), Err(ReceiptInclusionError::OtherReceipt));
            let failed = ExecutedTransaction { has_succeeded: false, ..honest.clone() };
            assert_eq!(proof.check_inclusion(&failed), Err(ReceiptInclusionError::OtherReceipt));
            let block = ChainBlock { number: 8, ..honest.block };
            assert_eq!(
                proof.check_inclusion(&ExecutedTransaction { block, ..honest.clone() }),
                Err(ReceiptInclusionError::Header)
            );
            let moved = ExecutedTransaction { index: index + 1, ..honest.clone() };
            assert_eq!(proof.check_inclusion(&moved), Err(ReceiptInclusionError::Nodes));
            let nothing = ReceiptInclusionProof { nodes: Vec::new(), ..proof };
            assert_eq!(nothing.check_inclusion(&honest), Err(ReceiptInclusionError::Nodes));
        }
    }

    #[test]
    fn receipts_of_another_block_prove_nothing() {
        let receipts: Vec<_> = (0..3).map(|index| receipt(index, 2, &[log(index as u8)])).collect();
        let header = block_of(&receipts);
        assert!(ReceiptInclusionProof::new(&header, &receipts[..2], 0).is_none());
        assert!(ReceiptInclusionProof::new(&header, &[], 0).is_none());
        let mut changed = receipts.clone();
        changed[1].logs.push(receipts[0].logs[0].clone());
        assert!(ReceiptInclusionProof::new(&header, &changed, 0).is_none());
    }

    #[test]
    fn deposits_of_op_chains_have_two_members_more() {
        let mut deposit = stated(0, u64::from(DEPOSIT), &[]);
        let short = serde_json::from_value::<RpcReceiptDocument>(deposit.clone())
            .expect("a receipt")
            .trie_leaf()
            .expect("a leaf");
        (deposit["depositNonce"], deposit["depositReceiptVersion"]) = (json!("0x5"), json!("0x1"));
        let whole =
            serde_json::from_value::<RpcReceiptDocument>(deposit).expect("a receipt").trie_leaf().expect("a leaf");
        assert_eq!((short[0], whole.len() - short.len()), (DEPOSIT, 2));
        assert_eq!(whole[whole.len() - 2..], [5, 1]);
    }

    #[test]
    fn no_changed_byte_of_a_proof_holds() {
        let receipts: Vec<_> = (0..20).map(|index| receipt(index, 2, &[log(index as u8)])).collect();
        let header = block_of(&receipts);
        let proof = ReceiptInclusionProof::new(&header, &receipts, 3).expect("a proof");
        let honest = execution(&header, &receipts[3]);
        for node in 0..proof.nodes.len() {
            for place in 0..proof.nodes[node].len() {
                let mut changed = proof.clone();
                let mut bytes = changed.nodes[node].to_vec();
                bytes[place] ^= 1;
                changed.nodes[node] = bytes.into();
                assert!(changed.check_inclusion(&honest).is_err(), "{node} {place}");
            }
        }
        for place in 0..proof.header.len() {
            let mut bytes = proof.header.to_vec();
            bytes[place] ^= 1;
            assert!(
                ReceiptInclusionProof { header: bytes.into(), ..proof.clone() }.check_inclusion(&honest).is_err(),
                "{place}"
            );
        }
    }

    #[test]
    fn what_is_no_leaf_is_not_read() {
        for leaf in [&[][..], &[2], &[0x80], &[0xc0], &[2, 0xc0], &[0xff; 40]] {
            assert_eq!(parse_receipt_leaf(leaf), None);
        }
    }
}

#[cfg(all(test, not(feature = "state-proof")))]
mod tests_without_tries {
    use super::*;

    #[test]
    fn a_build_without_tries_proves_no_receipt() {
        let header = HashedBlockHeader::new(alloy_consensus::Header::default());
        let proof = ReceiptInclusionProof { header: header.rlp(), nodes: Vec::new() };
        let execution = ExecutedTransaction {
            transaction: B256::ZERO,
            block: header.block().expect("a block"),
            index: 0,
            has_succeeded: true,
            to: None,
            input: Bytes::new(),
            logs: Vec::new(),
        };
        assert_eq!(proof.check_inclusion(&execution), Err(ReceiptInclusionError::NotBuilt));
    }
}
