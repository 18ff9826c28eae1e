//! [`QuorumTransport`]: combines several endpoints into one alloy transport that returns the response on which
//! enough of them agree.
//!
//! The first exchange with the endpoints pins a block. Follow-up requests at that block use this transport: queries
//! about the owner, and the steps of an off-chain lookup. If calls are computed locally,
//! [`ProvenStateTransport`](crate::proven_transport::ProvenStateTransport) replaces it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alloy_json_rpc::{RequestPacket, Response, ResponsePacket, ResponsePayload};
use alloy_primitives::Bytes;
use alloy_transport::{TransportError, TransportErrorKind, TransportFut};
use clresolve_state::contracts::short_digest;
use serde_json::value::RawValue;
use tower::Service;

use crate::endpoint::RpcEndpoint;
use crate::fan_out::{FanOutEvent, FanOutNeed, FanOutScheduler, RequestFanOut};
use crate::revert::revert_data;
use crate::transport::EndpointTransportError;

/// Endpoints that get the same request concurrently.
#[derive(Clone)]
pub(crate) struct QuorumTransport(Arc<QuorumTransportInner>);

struct QuorumTransportInner {
    /// The members, then the spares. Spares are asked if members stall, fail or contradict each other.
    endpoints: Vec<Arc<RpcEndpoint>>,
    members: usize,
    agree: usize,
    /// How long endpoints may stall before the next spare is asked.
    patience: Duration,
}

impl QuorumTransport {
    pub(crate) fn new(
        members: Vec<Arc<RpcEndpoint>>,
        spares: Vec<Arc<RpcEndpoint>>,
        agree: usize,
        patience: Duration,
    ) -> Self {
        let count = members.len();
        let endpoints = members.into_iter().chain(spares).collect();
        Self(Arc::new(QuorumTransportInner { endpoints, members: count, agree, patience }))
    }
}

impl Service<RequestPacket> for QuorumTransport {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> Self::Future {
        let quorum = Arc::clone(&self.0);
        Box::pin(async move { quorum.ask_quorum(packet).await })
    }
}

/// The part of a response that is compared. Error messages are excluded, since they differ between node
/// implementations.
#[derive(PartialEq)]
enum ComparableResponse {
    Result(String),
    Reverted(Bytes),
}

impl ComparableResponse {
    fn from_response(response: &Response) -> Option<Self> {
        match &response.payload {
            ResponsePayload::Success(result) => Some(Self::Result(result.get().to_ascii_lowercase())),
            ResponsePayload::Failure(error) => revert_data(error).map(Self::Reverted),
        }
    }
}

impl fmt::Display for ComparableResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Result(result) => write!(f, "an answer {}", short_digest(result.as_bytes())),
            Self::Reverted(data) => write!(f, "a revert {}", short_digest(data)),
        }
    }
}

impl QuorumTransportInner {
    /// The response on which enough operators agree, else the contradiction, else the first failure.
    async fn ask_quorum(&self, packet: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let plan = FanOutScheduler::new(self.endpoints.len(), self.members, self.agree);
        let mut fan_out = RequestFanOut::new(plan, Some(self.patience));
        let ask = |index: usize| {
            let (mut transport, packet) = (self.endpoints[index].transport.clone(), packet.clone());
            async move { (index, transport.call(packet).await) }
        };
        let mut responses: Vec<(usize, ComparableResponse)> = Vec::new();
        let mut failure = None;
        loop {
            let need = FanOutNeed::Answers { in_sight: self.largest_agreement(&responses) };
            let FanOutEvent::Answer((index, answer)) = fan_out.next_event(need, ask).await else { break };
            let response = match answer {
                Ok(ResponsePacket::Single(response)) => response,
                Ok(ResponsePacket::Batch(_)) => return Err(unusable_response_error("a batch has no single answer")),
                Err(error) => {
                    failure.get_or_insert(Err(error));
                    continue;
                }
            };
            let Some(comparable) = ComparableResponse::from_response(&response) else {
                failure.get_or_insert(Ok(ResponsePacket::Single(response)));
                continue;
            };
            responses.push((index, comparable));
            let (_, latest) = &responses[responses.len() - 1];
            if self.count_operators(&responses, latest) >= self.agree {
                if is_request_pinned_by_hash(&packet) {
                    let others = responses.iter().filter(|(_, other)| other != latest);
                    others.for_each(|(index, _)| report_endpoint_contradiction(&self.endpoints[*index]));
                }
                return Ok(ResponsePacket::Single(response));
            }
        }
        if responses.windows(2).any(|pair| pair[0].1 != pair[1].1) {
            let label = |index: usize| self.endpoints[index].label.clone();
            let statements = responses.iter().map(|(index, response)| (label(*index), response.to_string())).collect();
            return Err(TransportErrorKind::custom(EndpointTransportError::Divided(statements)));
        }
        failure.unwrap_or_else(|| Err(unusable_response_error("too few endpoints answered")))
    }

    /// Largest number of operators that return the same response.
    fn largest_agreement(&self, responses: &[(usize, ComparableResponse)]) -> usize {
        responses.iter().map(|(_, response)| self.count_operators(responses, response)).max().unwrap_or(0)
    }

    fn count_operators(&self, responses: &[(usize, ComparableResponse)], response: &ComparableResponse) -> usize {
        let alike = responses.iter().filter(|(_, other)| other == response);
        alike.map(|(index, _)| self.endpoints[*index].operator.as_str()).collect::<BTreeSet<_>>().len()
    }
}

/// Whether the request selects a block by its hash. Only then does a different response prove that an endpoint lies:
/// honest endpoints may disagree about the newest block.
fn is_request_pinned_by_hash(packet: &RequestPacket) -> bool {
    let names_hash = |params: &RawValue| params.get().contains("\"blockHash\"");
    matches!(packet, RequestPacket::Single(request) if request.params().is_some_and(names_hash))
}

fn report_endpoint_contradiction(endpoint: &RpcEndpoint) {
    crate::count_rpc_lie(&endpoint.label);
    tracing::warn!(endpoint = endpoint.label, "endpoint contradicts the quorum");
}

fn unusable_response_error(cause: &str) -> TransportError {
    TransportErrorKind::custom_str(cause)
}
