//! Asking an endpoint for state. Nothing that it gives is believed here.

use std::collections::BTreeSet;

use alloy_primitives::{Address, Bytes, U256};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::{AccessList, AccessListResult, BlockId, EIP1186AccountProofResponse, TransactionRequest};
use alloy_transport::TransportError;
use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use clresolve_state::{CALLER, Call, Wanted};

use super::ProverError;
use crate::endpoint::{Failure, eth_call};
use crate::transport::MAX_REPLY_BYTES;

/// What a reply is taken to need for one account, in bytes of JSON: ten nodes of 532 bytes, in hex.
const ACCOUNT_REPLY_BYTES: usize = 12 << 10;
/// The same for one slot: the largest tries of the chain are seven or eight nodes deep.
const SLOT_REPLY_BYTES: usize = 9 << 10;
/// The same for the code of one account, of the largest size today.
const CODE_REPLY_BYTES: usize = 50 << 10;
/// What a reply is planned to have at most: half of what it may have, since depths are a guess.
const PLANNED_REPLY_BYTES: usize = MAX_REPLY_BYTES / 2;
/// Most slots in one `eth_getProof`, so that one account does not need more than a reply.
const MAX_SLOTS_AT_ONCE: usize = 32;
/// Most batches on the way at once.
const MAX_IN_FLIGHT: usize = 8;

/// Somebody who can be asked for the state of a block.
#[async_trait]
pub(crate) trait StateSource: Sync {
    /// Which accounts and slots the call touches (`eth_createAccessList`): a hint, no more.
    async fn touched(&self, call: &Call, block: BlockId) -> Result<AccessList, ProverError>;

    /// Proofs and code, as far as they were asked for.
    async fn fetch(&self, wanted: &Wanted, block: BlockId) -> Result<Vec<Given>, ProverError>;
}

/// One thing that a source gave.
pub(crate) enum Given {
    /// For `eth_getProof` of these slots of this account.
    Proof(Address, Vec<U256>, Box<EIP1186AccountProofResponse>),
    /// For `eth_getCode` of this account.
    Code(Address, Bytes),
}

/// An endpoint as a source.
pub(crate) struct RpcSource<'a> {
    /// Its connection.
    pub(crate) rpc: &'a RpcClient,
    /// What an error of it means.
    pub(crate) explain: &'a (dyn Fn(&TransportError) -> Failure + Send + Sync),
}

#[async_trait]
impl StateSource for RpcSource<'_> {
    async fn touched(&self, call: &Call, block: BlockId) -> Result<AccessList, ProverError> {
        let request = TransactionRequest { from: Some(CALLER), ..eth_call(call.to, call.data.clone()) };
        let answer = self.rpc.request::<_, AccessListResult>("eth_createAccessList", (request, block)).await;
        answer.map(|result| result.access_list).map_err(|error| self.failed(&error))
    }

    async fn fetch(&self, wanted: &Wanted, block: BlockId) -> Result<Vec<Given>, ProverError> {
        let batches = stream::iter(plan(wanted)).map(|questions| self.ask(questions, block));
        let given: Vec<Vec<Given>> = batches.buffered(MAX_IN_FLIGHT).try_collect().await?;
        Ok(given.into_iter().flatten().collect())
    }
}

impl RpcSource<'_> {
    fn failed(&self, error: &TransportError) -> ProverError {
        ProverError::Endpoint((self.explain)(error))
    }

    async fn ask(&self, questions: Vec<Question>, block: BlockId) -> Result<Vec<Given>, ProverError> {
        let mut batch = self.rpc.new_batch();
        let mut proofs = Vec::new();
        let mut codes = Vec::new();
        for question in questions {
            match question {
                Question::Proof(address, slots) => {
                    let keys: Vec<_> = slots.iter().map(|slot| slot.to_be_bytes::<32>().into()).collect();
                    let keys: Vec<alloy_primitives::B256> = keys;
                    let answer = batch
                        .add_call::<_, Box<EIP1186AccountProofResponse>>("eth_getProof", &(address, keys, block))
                        .map_err(|error| self.failed(&error))?;
                    proofs.push((address, slots, answer));
                }
                Question::Code(address) => {
                    let answer = batch
                        .add_call::<_, Bytes>("eth_getCode", &(address, block))
                        .map_err(|error| self.failed(&error))?;
                    codes.push((address, answer));
                }
            }
        }
        batch.await.map_err(|error| self.failed(&error))?;
        let mut given = Vec::with_capacity(proofs.len() + codes.len());
        for (address, slots, answer) in proofs {
            given.push(Given::Proof(address, slots, answer.await.map_err(|error| self.failed(&error))?));
        }
        for (address, answer) in codes {
            given.push(Given::Code(address, answer.await.map_err(|error| self.failed(&error))?));
        }
        Ok(given)
    }
}

enum Question {
    Proof(Address, Vec<U256>),
    Code(Address),
}

impl Question {
    fn reply_bytes(&self) -> usize {
        match self {
            Self::Proof(_, slots) => ACCOUNT_REPLY_BYTES + slots.len() * SLOT_REPLY_BYTES,
            Self::Code(_) => CODE_REPLY_BYTES,
        }
    }
}

/// The questions, in batches whose replies have room.
fn plan(wanted: &Wanted) -> Vec<Vec<Question>> {
    let proofs = wanted.accounts.iter().flat_map(|(address, slots)| proofs(*address, slots));
    let mut batches = Vec::new();
    let mut batch = Vec::new();
    let mut bytes = 0;
    for question in proofs.chain(wanted.codes.iter().copied().map(Question::Code)) {
        if bytes + question.reply_bytes() > PLANNED_REPLY_BYTES && !batch.is_empty() {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += question.reply_bytes();
        batch.push(question);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

fn proofs(address: Address, slots: &BTreeSet<U256>) -> Vec<Question> {
    let slots: Vec<U256> = slots.iter().copied().collect();
    if slots.is_empty() {
        return vec![Question::Proof(address, slots)];
    }
    slots.chunks(MAX_SLOTS_AT_ONCE).map(|some| Question::Proof(address, some.to_vec())).collect()
}
