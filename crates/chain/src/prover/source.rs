//! Requests state from an endpoint. The responses are not verified here.

use std::collections::BTreeSet;

use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::{AccessList, AccessListResult, BlockId, EIP1186AccountProofResponse, TransactionRequest};
use alloy_transport::TransportError;
use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use clresolve_state::{CALLER, EvmCall, WantedState};

use super::error::CallProverError;
use crate::failure::EndpointFailure;
use crate::request::eth_call_request;
use crate::transport::MAX_REPLY_BYTES;

/// Estimated bytes of JSON in a reply for one account: ten nodes of 532 bytes, in hexadecimal.
const ACCOUNT_REPLY_BYTES: usize = 12 << 10;
/// Estimated bytes for one slot: the largest tries of the chain are seven or eight nodes deep.
const SLOT_REPLY_BYTES: usize = 9 << 10;
/// Estimated bytes for the code of one account, at the current maximum size.
const CODE_REPLY_BYTES: usize = 50 << 10;
/// Planned length of a reply: half of the accepted length, since trie depths are estimated.
const PLANNED_REPLY_BYTES: usize = MAX_REPLY_BYTES / 2;
/// Maximum number of slots in one `eth_getProof`, so that the reply to a single request stays short enough.
const MAX_SLOTS_AT_ONCE: usize = 32;
const MAX_IN_FLIGHT: usize = 8;

/// A source of the state at a block. It is not trusted.
#[async_trait]
pub(crate) trait StateSource: Sync {
    /// A hint: the accounts and slots that the call reads (`eth_createAccessList`).
    async fn fetch_access_list(&self, call: &EvmCall, block: BlockId) -> Result<AccessList, CallProverError>;

    async fn fetch_state(&self, wanted: &WantedState, block: BlockId)
    -> Result<Vec<StateProofOrCode>, CallProverError>;
}

/// A proof or piece of code from a source.
pub(crate) enum StateProofOrCode {
    /// The result of `eth_getProof` for these slots of this account.
    Proof(Address, Vec<U256>, Box<EIP1186AccountProofResponse>),
    /// The result of `eth_getCode` for this account.
    Code(Address, Bytes),
}

pub(crate) struct RpcStateSource<'a> {
    pub(crate) rpc: &'a RpcClient,
    pub(crate) explain: &'a (dyn Fn(&TransportError) -> EndpointFailure + Send + Sync),
}

#[async_trait]
impl StateSource for RpcStateSource<'_> {
    async fn fetch_access_list(&self, call: &EvmCall, block: BlockId) -> Result<AccessList, CallProverError> {
        let call = TransactionRequest { from: Some(CALLER), ..eth_call_request(call.to, call.data.clone()) };
        let answer = self.rpc.request::<_, AccessListResult>("eth_createAccessList", (call, block)).await;
        answer.map(|result| result.access_list).map_err(|error| self.endpoint_error(&error))
    }

    async fn fetch_state(
        &self,
        wanted: &WantedState,
        block: BlockId,
    ) -> Result<Vec<StateProofOrCode>, CallProverError> {
        let batches = stream::iter(plan_request_batches(wanted)).map(|requests| self.send_requests(requests, block));
        let items: Vec<Vec<StateProofOrCode>> = batches.buffered(MAX_IN_FLIGHT).try_collect().await?;
        Ok(items.into_iter().flatten().collect())
    }
}

impl RpcStateSource<'_> {
    fn endpoint_error(&self, error: &TransportError) -> CallProverError {
        CallProverError::Endpoint((self.explain)(error))
    }

    async fn send_requests(
        &self,
        requests: Vec<StateProofOrCodeRequest>,
        block: BlockId,
    ) -> Result<Vec<StateProofOrCode>, CallProverError> {
        let mut batch = self.rpc.new_batch();
        let mut proofs = Vec::new();
        let mut codes = Vec::new();
        for request in requests {
            match request {
                StateProofOrCodeRequest::Proof(address, slots) => {
                    let keys: Vec<B256> = slots.iter().map(|slot| B256::from(*slot)).collect();
                    let answer = batch
                        .add_call::<_, Box<EIP1186AccountProofResponse>>("eth_getProof", &(address, keys, block))
                        .map_err(|error| self.endpoint_error(&error))?;
                    proofs.push((address, slots, answer));
                }
                StateProofOrCodeRequest::Code(address) => {
                    let answer = batch
                        .add_call::<_, Bytes>("eth_getCode", &(address, block))
                        .map_err(|error| self.endpoint_error(&error))?;
                    codes.push((address, answer));
                }
            }
        }
        batch.await.map_err(|error| self.endpoint_error(&error))?;
        let mut items = Vec::with_capacity(proofs.len() + codes.len());
        for (address, slots, answer) in proofs {
            items.push(StateProofOrCode::Proof(
                address,
                slots,
                answer.await.map_err(|error| self.endpoint_error(&error))?,
            ));
        }
        for (address, answer) in codes {
            items.push(StateProofOrCode::Code(address, answer.await.map_err(|error| self.endpoint_error(&error))?));
        }
        Ok(items)
    }
}

enum StateProofOrCodeRequest {
    Proof(Address, Vec<U256>),
    Code(Address),
}

impl StateProofOrCodeRequest {
    fn estimated_reply_bytes(&self) -> usize {
        match self {
            Self::Proof(_, slots) => ACCOUNT_REPLY_BYTES + slots.len() * SLOT_REPLY_BYTES,
            Self::Code(_) => CODE_REPLY_BYTES,
        }
    }
}

/// The requests, grouped into batches whose estimated replies fit into [`PLANNED_REPLY_BYTES`].
fn plan_request_batches(wanted: &WantedState) -> Vec<Vec<StateProofOrCodeRequest>> {
    let proofs = wanted.accounts.iter().flat_map(|(address, slots)| proof_requests(*address, slots));
    let mut batches = Vec::new();
    let mut batch = Vec::new();
    let mut bytes = 0;
    for request in proofs.chain(wanted.codes.iter().copied().map(StateProofOrCodeRequest::Code)) {
        if bytes + request.estimated_reply_bytes() > PLANNED_REPLY_BYTES && !batch.is_empty() {
            batches.push(std::mem::take(&mut batch));
            bytes = 0;
        }
        bytes += request.estimated_reply_bytes();
        batch.push(request);
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

fn proof_requests(address: Address, slots: &BTreeSet<U256>) -> Vec<StateProofOrCodeRequest> {
    let slots: Vec<U256> = slots.iter().copied().collect();
    if slots.is_empty() {
        return vec![StateProofOrCodeRequest::Proof(address, slots)];
    }
    slots.chunks(MAX_SLOTS_AT_ONCE).map(|some| StateProofOrCodeRequest::Proof(address, some.to_vec())).collect()
}
