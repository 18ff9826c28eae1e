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
use clresolve_core::execution::Execution;
use clresolve_core::reading::{Block, BlockSelector, ChainError, Proof};
use clresolve_state::HashedHeader;
use clresolve_state::receipts::{ReceiptProof, StatedReceipt, TransactionReading};
use serde::Deserialize;

use crate::endpoint::RpcEndpoint;
use crate::exchange::{Attestation, ChainIdentity, Observation};
use crate::failure::Failure;
use crate::header;
use crate::poll::{Votable, poll};
use crate::pool::{ChainConfig, Clock, EndpointPool};
use crate::quorum::{Vote, VotePart};
#[cfg(feature = "state-proof")]
use crate::receipt_proofs::ReceiptProofs;
use crate::transport::HttpPost;

/// Reads the transactions of one chain through its endpoints.
pub struct TransactionReader {
    pool: EndpointPool,
    #[cfg(feature = "state-proof")]
    proofs: ReceiptProofs,
}

impl TransactionReader {
    /// Reads transactions as `config` specifies. Requests go through `http`, the client for the operator's URLs. The
    /// contracts, coin types and CCIP-Read setting of `config` are ignored.
    pub fn new(config: ChainConfig, http: &Arc<dyn HttpPost>, clock: Clock) -> Self {
        Self {
            pool: EndpointPool::new(config, http).with_clock(clock),
            #[cfg(feature = "state-proof")]
            proofs: ReceiptProofs::new(),
        }
    }

    /// Looks up the transaction with this hash in the chain up to its finalized block.
    ///
    /// # Errors
    /// [`ChainError`].
    pub async fn transaction(&self, hash: B256) -> Result<SeenTransaction, ChainError> {
        let consensus = poll(&self.pool, Arc::new(Search { hash }), BlockSelector::Finalized).await?;
        let (head, proof) = (consensus.block, consensus.proof(self.pool.demand));
        let Held(found) = consensus.pinned;
        Ok(SeenTransaction { head, proof, found, endpoints: consensus.members })
    }

    /// The proof of the receipt, if an endpoint supplies the data for it. The data is megabytes long: set a time limit.
    #[cfg(feature = "state-proof")]
    pub async fn prove(&self, seen: &SeenTransaction) -> Option<ReceiptProof> {
        let InBlock { header, execution } = seen.found.as_deref()?;
        self.proofs.of(header, execution, &seen.endpoints, self.pool.patience()).await
    }

    /// Always `None`: this build proves nothing.
    #[cfg(not(feature = "state-proof"))]
    #[expect(clippy::unused_async, reason = "for builds that prove")]
    pub async fn prove(&self, _: &SeenTransaction) -> Option<ReceiptProof> {
        None
    }
}

/// A transaction on which endpoints agree.
pub struct SeenTransaction {
    head: Block,
    proof: Proof,
    found: Option<Box<InBlock>>,
    #[cfg_attr(not(feature = "state-proof"), expect(dead_code, reason = "for builds that prove"))]
    endpoints: Vec<Arc<RpcEndpoint>>,
}

impl SeenTransaction {
    /// Returns the reading, with a proof of the receipt if there is one.
    pub fn reading(self, receipt_proof: Option<ReceiptProof>) -> TransactionReading {
        let Self { head, proof, found, .. } = self;
        TransactionReading { head, execution: found.map(|found| found.execution), proof, receipt_proof }
    }
}

struct Search {
    hash: B256,
}

/// An endpoint's answer: the block that contains the transaction, if there is one up to the requested block.
#[derive(Clone, PartialEq)]
struct Held(Option<Box<InBlock>>);

/// A transaction and the header of its block.
#[derive(Clone, PartialEq)]
struct InBlock {
    execution: Execution,
    header: HashedHeader,
}

impl Vote for Held {
    fn same(&self, other: &Self, _: VotePart) -> bool {
        self == other
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(found) = &self.0 else { return f.write_str("no such transaction") };
        let Execution { block, has_succeeded, logs, .. } = &found.execution;
        let logs: Vec<u8> = logs.iter().flat_map(|log| keccak256(&log.data.data)).collect();
        let status = if *has_succeeded { "success" } else { "failure" };
        write!(f, "{status} in block {} {}, logs {}", block.number, block.hash, keccak256(logs))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatedTransaction {
    hash: B256,
    block_hash: Option<B256>,
    to: Option<Address>,
    input: Bytes,
}

#[async_trait]
impl Votable for Search {
    type Vote = Held;

    async fn ask_at_own_block(
        &self,
        endpoint: &Arc<RpcEndpoint>,
        selector: BlockSelector,
        identity: ChainIdentity,
    ) -> Result<Observation<Held>, Failure> {
        let head = endpoint.observe_header(selector, identity).await?;
        let pinned = self.held(endpoint, &head.block).await?;
        Ok(Observation { block: head.block, pinned, latest: None, genesis: head.genesis })
    }

    async fn attest(&self, endpoint: &RpcEndpoint, block: &Block) -> Result<Attestation<Held>, Failure> {
        match endpoint.attest_header(block).await? {
            Attestation::Other(other) => Ok(Attestation::Other(other)),
            Attestation::Same(_) => self.held(endpoint, block).await.map(Attestation::Same),
        }
    }
}

impl Search {
    /// Finds the transaction in the chain up to `head`.
    async fn held(&self, endpoint: &RpcEndpoint, head: &Block) -> Result<Held, Failure> {
        let failed = |error| endpoint.failure(&error);
        let mut batch = endpoint.rpc.new_batch();
        let receipt = batch.add_call::<_, Option<StatedReceipt>>("eth_getTransactionReceipt", &(self.hash,));
        let receipt = receipt.map_err(failed)?;
        let transaction = batch.add_call::<_, Option<StatedTransaction>>("eth_getTransactionByHash", &(self.hash,));
        let transaction = transaction.map_err(failed)?;
        batch.await.map_err(failed)?;
        let (receipt, transaction) = (receipt.await.map_err(failed)?, transaction.await.map_err(failed)?);
        let (receipt, transaction) = match (receipt, transaction) {
            (Some(receipt), Some(transaction)) => (receipt, transaction),
            (Some(_), None) if !clresolve_core::mutant!("receipts-without-transactions") => {
                return Err(unusable("it has a receipt of a transaction that it does not know"));
            }
            _ => return Ok(Held(None)),
        };
        let number = receipt.block_number.to::<u64>();
        let is_deep = number <= head.number || clresolve_core::mutant!("open-blocks-settle");
        if !is_deep {
            return Ok(Held(None));
        }
        let of_block = (BlockNumberOrTag::Number(number), false);
        let header =
            endpoint.rpc.request::<_, Option<Header>>("eth_getBlockByNumber", of_block).await.map_err(failed)?;
        let (header, block) = header::checked(header, BlockSelector::Number(number))?;
        self.executed(receipt, transaction, block).map(|execution| Held(Some(Box::new(InBlock { execution, header }))))
    }

    /// The transaction in its block, if all of the endpoint's statements are consistent.
    fn executed(
        &self,
        receipt: StatedReceipt,
        transaction: StatedTransaction,
        block: Block,
    ) -> Result<Execution, Failure> {
        let is_other = receipt.transaction_hash != self.hash || transaction.hash != self.hash;
        if is_other && !clresolve_core::mutant!("any-receipt-of-a-transaction") {
            return Err(unusable("the receipt is that of another transaction"));
        }
        let is_elsewhere = receipt.block_hash != block.hash || transaction.block_hash != Some(block.hash);
        if is_elsewhere && !clresolve_core::mutant!("receipts-of-any-block") {
            return Err(unusable("the receipt names a block that is not in the chain"));
        }
        if receipt.to != transaction.to {
            return Err(unusable("receipt and transaction call two contracts"));
        }
        let has_succeeded = receipt.has_succeeded().ok_or_else(|| unusable("the receipt has no status"))?;
        Ok(Execution {
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

fn unusable(cause: &str) -> Failure {
    Failure::Unusable(cause.to_owned())
}
