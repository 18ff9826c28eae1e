//! [`ProvenStateTransport`]: an alloy transport that computes `eth_call` at one block over proven state. It forwards
//! nothing.

use std::sync::Arc;
use std::task::{Context, Poll};

use alloy_json_rpc::{ErrorPayload, RequestPacket, Response, ResponsePacket, ResponsePayload, SerializedRequest};
use alloy_primitives::{Bytes, TxKind};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::{AccessList, BlockId, TransactionRequest};
use alloy_transport::{TransportError, TransportErrorKind, TransportFut};
use clresolve_core::reading::ChainError;
use clresolve_state::{CALL_GAS, EvmCall, EvmCallOutcome, ProvenCallBlame, StateWitness, response_in_callback};
use serde_json::value::RawValue;
use tokio::sync::Mutex;
use tower::Service;

use crate::proof_source::FailoverStateSource;
use crate::prover::{CallProver, CallProverError, CallProverSession, PrefetchedProofs};
use crate::transport::EndpointTransportError;

#[derive(Clone)]
pub(crate) struct ProvenStateTransport(Arc<ProvenTransportInner>);

struct ProvenTransportInner {
    prover: Arc<CallProver>,
    block: BlockId,
    source: FailoverStateSource,
    progress: Mutex<ProvenTransportSession>,
}

struct ProvenTransportSession {
    session: CallProverSession,
    /// The data of a lookup's calls: the query, then the callbacks with the gateways' answers.
    calls: Vec<Bytes>,
    /// Labels of the endpoints whose proofs were invalid, each with the cause.
    lies: Vec<(String, String)>,
}

/// The endpoint errors of a transport, by label.
#[derive(Default)]
pub(crate) struct EndpointComplaints {
    /// The endpoints whose proofs were invalid.
    pub(crate) lies: Vec<(String, String)>,
    /// The endpoints that returned no proof.
    pub(crate) failures: Vec<(String, String)>,
}

impl EndpointComplaints {
    pub(crate) fn extend(&mut self, other: Self) {
        self.lies.extend(other.lies);
        self.failures.extend(other.failures);
    }
}

impl ProvenStateTransport {
    /// Computes at the session's block over what `source` proves.
    pub(crate) fn new(prover: Arc<CallProver>, session: CallProverSession, source: FailoverStateSource) -> Self {
        let block = session.block_id();
        let progress = Mutex::new(ProvenTransportSession { session, calls: Vec::new(), lies: Vec::new() });
        Self(Arc::new(ProvenTransportInner { prover, block, source, progress }))
    }

    /// Creates a transport over another source, with everything proven so far and its own lookup.
    pub(crate) async fn with_separate_source(&self, source: FailoverStateSource) -> Self {
        Self::new(Arc::clone(&self.0.prover), self.0.progress.lock().await.session.clone(), source)
    }

    /// Uses prefetched proofs if they are valid under the session's header.
    pub(crate) async fn adopt_prefetched_proofs(&self, prefetched: PrefetchedProofs) {
        self.0.prover.adopt_prefetched_proofs(&mut self.0.progress.lock().await.session, prefetched).await;
    }

    pub(crate) fn rpc_client(&self) -> RpcClient {
        RpcClient::new(self.clone(), true)
    }

    /// The outcome of the call, using proofs from the first endpoint whose proofs are valid.
    ///
    /// # Errors
    /// [`ChainError::LocalLimit`] if the call cannot be computed here; [`ChainError::Unreachable`] or
    /// [`ChainError::Unproven`] if no endpoint proves what the call reads.
    pub(crate) async fn compute_call(
        &self,
        call: &EvmCall,
        hint: Option<AccessList>,
    ) -> Result<EvmCallOutcome, ChainError> {
        let ProvenTransportInner { prover, source, .. } = &*self.0;
        let mut progress = self.0.progress.lock().await;
        let ProvenTransportSession { session, lies, .. } = &mut *progress;
        loop {
            let error = match prover.compute_call(source, session, call, hint.clone()).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            match error {
                CallProverError::Endpoint(_) => break,
                CallProverError::BrokenOff(_) => {
                    return Err(ChainError::Unreachable(vec![("proven state".to_owned(), error.to_string())]));
                }
                CallProverError::Proof(error) => {
                    if let ProvenCallBlame::LocalLimit(limit) = error.blame() {
                        return Err(ChainError::LocalLimit(limit));
                    }
                    let Some(liar) = source.remove_latest_responder() else { break };
                    tracing::warn!(endpoint = liar.label, "an endpoint's proof is refused: {error}");
                    crate::count_rpc_lie(&liar.label);
                    lies.push((liar.label.clone(), error.to_string()));
                }
            }
        }
        let all = lies.iter().cloned().chain(source.failures()).collect();
        Err(if lies.is_empty() { ChainError::Unreachable(all) } else { ChainError::Unproven(all) })
    }

    pub(crate) async fn complaints(&self) -> EndpointComplaints {
        EndpointComplaints { lies: self.0.progress.lock().await.lies.clone(), failures: self.0.source.failures() }
    }

    /// The proofs that the calls used and the gateways' answers, if the session keeps them.
    pub(crate) async fn recorded_proofs(&self) -> Option<(StateWitness, Vec<Bytes>)> {
        let progress = self.0.progress.lock().await;
        let look_ups = progress.calls.iter().skip(1).filter_map(|call| response_in_callback(call)).collect();
        Some((progress.session.kept_proofs()?, look_ups))
    }

    async fn respond_to_request(&self, request: SerializedRequest) -> Result<Response, TransportError> {
        let call = self
            .requested_call(&request)
            .ok_or_else(|| TransportErrorKind::custom_str("the request is no call in the proven block"))?;
        self.0.progress.lock().await.calls.push(call.data.clone());
        let failure = |code, message: String, data| {
            ResponsePayload::Failure(ErrorPayload { code, message: message.into(), data })
        };
        let payload = match self.compute_call(&call, None).await {
            Ok(EvmCallOutcome::Returned(data)) => ResponsePayload::Success(bytes_to_json(&data)?),
            Ok(EvmCallOutcome::Reverted(data)) => {
                failure(3, "execution reverted".to_owned(), Some(bytes_to_json(&data)?))
            }
            Ok(EvmCallOutcome::Halted(cause)) => failure(-32000, cause, None),
            Err(ChainError::LocalLimit(limit)) => {
                return Err(TransportErrorKind::custom(EndpointTransportError::LocalLimit(limit)));
            }
            Err(ChainError::Unproven(causes)) => {
                return Err(TransportErrorKind::custom(EndpointTransportError::Unproven(causes)));
            }
            Err(error) => return Err(TransportErrorKind::custom_str(&error.to_string())),
        };
        Ok(Response { id: request.id().clone(), payload })
    }

    fn requested_call(&self, request: &SerializedRequest) -> Option<EvmCall> {
        if request.method() != "eth_call" {
            return None;
        }
        let parameters: Vec<serde_json::Value> = serde_json::from_str(request.params()?.get()).ok()?;
        let block: BlockId = serde_json::from_value(parameters.get(1)?.clone()).ok()?;
        let call: TransactionRequest = serde_json::from_value(parameters.first()?.clone()).ok()?;
        let Some(TxKind::Call(to)) = call.to else { return None };
        let gas = call.gas.unwrap_or(CALL_GAS);
        (block == self.0.block).then(|| EvmCall { to, data: call.input.into_input().unwrap_or_default(), gas })
    }
}

impl Service<RequestPacket> for ProvenStateTransport {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> Self::Future {
        let transport = self.clone();
        Box::pin(async move {
            match packet {
                RequestPacket::Single(request) => {
                    transport.respond_to_request(request).await.map(ResponsePacket::Single)
                }
                RequestPacket::Batch(_) => Err(TransportErrorKind::custom_str("a batch is not computed")),
            }
        })
    }
}

fn bytes_to_json(data: &Bytes) -> Result<Box<RawValue>, TransportError> {
    serde_json::value::to_raw_value(data).map_err(TransportError::ser_err)
}
