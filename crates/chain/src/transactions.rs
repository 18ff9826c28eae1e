//! [`TransactionReader`]: finds a transaction in a chain's finalized blocks.
//!
//! The endpoints agree on a finalized block and on the transaction's inclusion up to that block. Each endpoint's answer
//! must be consistent: the receipt belongs to the transaction, and the block that it refers to is the one at that
//! height. If an endpoint returns all receipts of that block and they match the header's receipts root, the receipt is
//! proven too.

use std::fmt;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, keccak256};
use alloy_rpc_types_eth::{BlockNumberOrTag, Header};
use async_trait::async_trait;
use clresolve_core::execution::ExecutedTransaction;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, ProofStrength};
use clresolve_state::HashedBlockHeader;
use clresolve_state::receipts::{ReceiptInclusionProof, RpcReceiptDocument, TransactionReading};
use serde::Deserialize;

use crate::endpoint::RpcEndpoint;
use crate::exchange::{ChainIdentity, EndpointPinnedAndLatestVotes, VoteOrConflictingBlock};
use crate::failure::EndpointFailure;
use crate::header;
use crate::poll::{QuorumQuery, poll_quorum};
use crate::pool::{ChainReaderConfig, EndpointPool, TimeSource};
use crate::quorum::{QuorumVote, QuorumVotePart};
#[cfg(feature = "state-proof")]
use crate::receipt_proofs::ReceiptInclusionProver;
use crate::transport::JsonRpcHttpClient;

/// Reads the transactions of one chain through its endpoints.
pub struct TransactionReader {
    pool: EndpointPool,
    #[cfg(feature = "state-proof")]
    proofs: ReceiptInclusionProver,
}

impl TransactionReader {
    /// Reads transactions as `config` specifies. Requests go through `http`, the client for the operator's URLs. The
    /// contracts, coin types and CCIP-Read setting of `config` are ignored.
    pub fn new(config: ChainReaderConfig, http: &Arc<dyn JsonRpcHttpClient>, clock: TimeSource) -> Self {
        Self {
            pool: EndpointPool::new(config, http).with_clock(clock),
            #[cfg(feature = "state-proof")]
            proofs: ReceiptInclusionProver::new(),
        }
    }

    /// Looks up the transaction with this hash in the chain up to its finalized block.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn look_up_transaction(&self, hash: B256) -> Result<AgreedTransaction, ChainError> {
        let consensus = poll_quorum(&self.pool, Arc::new(TransactionQuery { hash }), BlockSelector::Finalized).await?;
        let (head, proof) = (consensus.block, consensus.proof_strength(self.pool.demand));
        let TransactionVote(found) = consensus.pinned;
        Ok(AgreedTransaction { head, proof, found, endpoints: consensus.members })
    }

    /// The proof of the receipt, if an endpoint supplies the data for it. The data is megabytes long: set a time limit.
    #[cfg(feature = "state-proof")]
    pub async fn prove_receipt(&self, seen: &AgreedTransaction) -> Option<ReceiptInclusionProof> {
        let TransactionWithBlockHeader { header, execution } = seen.found.as_deref()?;
        self.proofs.prove_receipt(header, execution, &seen.endpoints, self.pool.hedge_delay()).await
    }

    /// Always `None`: this build proves nothing.
    #[cfg(not(feature = "state-proof"))]
    #[expect(clippy::unused_async, reason = "for builds that prove")]
    pub async fn prove_receipt(&self, _: &AgreedTransaction) -> Option<ReceiptInclusionProof> {
        None
    }
}

/// A transaction on which endpoints agree.
pub struct AgreedTransaction {
    head: ChainBlock,
    proof: ProofStrength,
    found: Option<Box<TransactionWithBlockHeader>>,
    #[cfg_attr(not(feature = "state-proof"), expect(dead_code, reason = "for builds that prove"))]
    endpoints: Vec<Arc<RpcEndpoint>>,
}

impl AgreedTransaction {
    /// Returns the reading, with a proof of the receipt if there is one.
    pub fn into_reading(self, receipt_proof: Option<ReceiptInclusionProof>) -> TransactionReading {
        let Self { head, proof, found, .. } = self;
        TransactionReading { head, execution: found.map(|found| found.execution), proof, receipt_proof }
    }
}

struct TransactionQuery {
    hash: B256,
}

/// An endpoint's answer: the block that contains the transaction, if there is one up to the requested block.
#[derive(Clone, PartialEq)]
struct TransactionVote(Option<Box<TransactionWithBlockHeader>>);

/// A transaction and the header of its block.
#[derive(Clone, PartialEq)]
struct TransactionWithBlockHeader {
    execution: ExecutedTransaction,
    header: HashedBlockHeader,
}

impl QuorumVote for TransactionVote {
    fn agrees_on_part(&self, other: &Self, _: QuorumVotePart) -> bool {
        self == other
    }
}

impl fmt::Display for TransactionVote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(found) = &self.0 else { return f.write_str("no such transaction") };
        let ExecutedTransaction { block, has_succeeded, logs, .. } = &found.execution;
        let logs: Vec<u8> = logs.iter().flat_map(|log| keccak256(&log.data.data)).collect();
        let status = if *has_succeeded { "success" } else { "failure" };
        write!(f, "{status} in block {} {}, logs {}", block.number, block.hash, keccak256(logs))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RpcTransactionDocument {
    hash: B256,
    block_hash: Option<B256>,
    to: Option<Address>,
    input: Bytes,
}

#[async_trait]
impl QuorumQuery for TransactionQuery {
    type Vote = TransactionVote;

    async fn fetch_pinned_and_latest_votes(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<EndpointPinnedAndLatestVotes<TransactionVote>, EndpointFailure> {
        let head = endpoint.fetch_header_vote(selector, identity).await?;
        let pinned = self.find_transaction(endpoint, &head.block).await?;
        Ok(EndpointPinnedAndLatestVotes { block: head.block, pinned, latest: None, genesis: head.genesis })
    }

    async fn fetch_vote_at_block(
        &self,
        endpoint: &RpcEndpoint,
        block: &ChainBlock,
    ) -> Result<VoteOrConflictingBlock<TransactionVote>, EndpointFailure> {
        match endpoint.fetch_header_vote_at_block(block).await? {
            VoteOrConflictingBlock::Other(other) => Ok(VoteOrConflictingBlock::Other(other)),
            VoteOrConflictingBlock::Same(_) => {
                self.find_transaction(endpoint, block).await.map(VoteOrConflictingBlock::Same)
            }
        }
    }
}

impl TransactionQuery {
    /// Finds the transaction in the chain up to `head`.
    async fn find_transaction(
        &self,
        endpoint: &RpcEndpoint,
        head: &ChainBlock,
    ) -> Result<TransactionVote, EndpointFailure> {
        let failed = |error| endpoint.failure_from_transport_error(&error);
        let mut batch = endpoint.rpc.new_batch();
        let receipt = batch.add_call::<_, Option<RpcReceiptDocument>>("eth_getTransactionReceipt", &(self.hash,));
        let receipt = receipt.map_err(failed)?;
        let transaction =
            batch.add_call::<_, Option<RpcTransactionDocument>>("eth_getTransactionByHash", &(self.hash,));
        let transaction = transaction.map_err(failed)?;
        batch.await.map_err(failed)?;
        let (receipt, transaction) = (receipt.await.map_err(failed)?, transaction.await.map_err(failed)?);
        let (receipt, transaction) = match (receipt, transaction) {
            (Some(receipt), Some(transaction)) => (receipt, transaction),
            (Some(_), None) if !clresolve_core::mutant!("receipts-without-transactions") => {
                return Err(unusable_failure("it has a receipt of a transaction that it does not know"));
            }
            _ => return Ok(TransactionVote(None)),
        };
        let number = receipt.block_number.to::<u64>();
        let is_deep = number <= head.number || clresolve_core::mutant!("open-blocks-settle");
        if !is_deep {
            return Ok(TransactionVote(None));
        }
        let of_block = (BlockNumberOrTag::Number(number), false);
        let header =
            endpoint.rpc.request::<_, Option<Header>>("eth_getBlockByNumber", of_block).await.map_err(failed)?;
        let (header, block) = header::check_requested_header(header, BlockSelector::Number(number))?;
        self.check_execution(receipt, transaction, block)
            .map(|execution| TransactionVote(Some(Box::new(TransactionWithBlockHeader { execution, header }))))
    }

    /// The transaction in its block, if all of the endpoint's statements are consistent.
    fn check_execution(
        &self,
        receipt: RpcReceiptDocument,
        transaction: RpcTransactionDocument,
        block: ChainBlock,
    ) -> Result<ExecutedTransaction, EndpointFailure> {
        let is_other = receipt.transaction_hash != self.hash || transaction.hash != self.hash;
        if is_other && !clresolve_core::mutant!("any-receipt-of-a-transaction") {
            return Err(unusable_failure("the receipt is that of another transaction"));
        }
        let is_elsewhere = receipt.block_hash != block.hash || transaction.block_hash != Some(block.hash);
        if is_elsewhere && !clresolve_core::mutant!("receipts-of-any-block") {
            return Err(unusable_failure("the receipt names a block that is not in the chain"));
        }
        if receipt.to != transaction.to {
            return Err(unusable_failure("receipt and transaction call two contracts"));
        }
        let has_succeeded = receipt.has_succeeded().ok_or_else(|| unusable_failure("the receipt has no status"))?;
        Ok(ExecutedTransaction {
            transaction: self.hash,
            block,
            index: receipt.transaction_index.to(),
            has_succeeded,
            to: transaction.to,
            input: transaction.input,
            logs: receipt.logs.into_iter().map(Into::into).collect(),
        })
    }
}

fn unusable_failure(cause: &str) -> EndpointFailure {
    EndpointFailure::Unusable(cause.to_owned())
}
