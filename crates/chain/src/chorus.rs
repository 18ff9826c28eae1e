//! Several endpoints as one: an alloy transport whose answer is the one that enough of them give.
//!
//! What is asked at a pinned block after the first exchange (the owner, the steps of a look-up off the chain) goes
//! through here, and nothing else knows how many stand behind a call. A reader that computes calls from proven state
//! takes this transport's place.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alloy_json_rpc::{RequestPacket, Response, ResponsePacket, ResponsePayload};
use alloy_primitives::Bytes;
use alloy_transport::{TransportError, TransportErrorKind, TransportFut};
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tower::Service;

use super::endpoint::Node;
use super::hedge::{self, Next};
use super::transport::TransportFault;
use clresolve_state::contracts::short_digest;

/// Endpoints that are asked the same at the same time.
#[derive(Clone)]
pub(super) struct Chorus(Arc<Members>);

struct Members {
    nodes: Vec<Arc<Node>>,
    /// Those who are asked in turn where these stall, fail or contradict each other.
    spares: Vec<Arc<Node>>,
    /// Operators that must say the same.
    agree: usize,
    /// How long nobody may answer until the next spare one is asked.
    patience: Duration,
}

impl Chorus {
    pub(super) fn new(nodes: Vec<Arc<Node>>, spares: Vec<Arc<Node>>, agree: usize, patience: Duration) -> Self {
        Self(Arc::new(Members { nodes, spares, agree, patience }))
    }

    /// One endpoint, whose word is enough.
    pub(super) fn of(node: Arc<Node>) -> Self {
        Self::new(vec![node], Vec::new(), 1, Duration::MAX)
    }
}

impl Service<RequestPacket> for Chorus {
    type Response = ResponsePacket;
    type Error = TransportError;
    type Future = TransportFut<'static>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, packet: RequestPacket) -> Self::Future {
        let members = Arc::clone(&self.0);
        Box::pin(async move { members.ask(packet).await })
    }
}

/// What an endpoint says, as far as two can be compared: the words of an error differ from program to program.
#[derive(PartialEq)]
enum Said {
    Result(String),
    Reverted(Bytes),
}

impl Members {
    /// What enough members say. Where that is nothing: that they contradict each other, else the first one's failure.
    async fn ask(&self, packet: RequestPacket) -> Result<ResponsePacket, TransportError> {
        let ask = |node: &'_ Arc<Node>| {
            let (node, packet) = (Arc::clone(node), packet.clone());
            let mut transport = node.transport.clone();
            async move { (node, transport.call(packet).await) }
        };
        let mut under_way: FuturesUnordered<_> = self.nodes.iter().map(ask).collect();
        let mut spares = self.spares.iter();
        let mut heard: Vec<(Arc<Node>, Said)> = Vec::new();
        let mut failure = None;
        loop {
            let patience = (!spares.as_slice().is_empty()).then_some(self.patience);
            let (node, answer) = match hedge::next(&mut under_way, patience).await {
                Next::Answer(answer) => answer,
                Next::Stall | Next::Nobody => match spares.next() {
                    Some(spare) => {
                        under_way.push(ask(spare));
                        continue;
                    }
                    None => break,
                },
            };
            let response = match answer {
                Ok(ResponsePacket::Single(response)) => redacted(&node, response),
                Ok(ResponsePacket::Batch(_)) => return Err(unusable("a batch has no single answer")),
                Err(error) => {
                    failure.get_or_insert(Err(error));
                    continue;
                }
            };
            let Some(said) = said(&response) else {
                failure.get_or_insert(Ok(ResponsePacket::Single(response)));
                continue;
            };
            let alike = heard.iter().filter(|(_, other)| *other == said).map(|(node, _)| node.operator.as_str());
            let mut operators: Vec<&str> = alike.chain([node.operator.as_str()]).collect();
            operators.sort_unstable();
            operators.dedup();
            if operators.len() >= self.agree {
                if is_about_one_block(&packet) {
                    heard.iter().filter(|(_, other)| *other != said).for_each(|(node, _)| accuse(node));
                }
                return Ok(ResponsePacket::Single(response));
            }
            heard.push((node, said));
        }
        if heard.windows(2).any(|pair| pair[0].1 != pair[1].1) {
            let said = heard.iter().map(|(node, said)| (node.label.clone(), said.to_string())).collect();
            return Err(TransportErrorKind::custom(TransportFault::Divided(said)));
        }
        failure.unwrap_or_else(|| Err(unusable("too few endpoints answered")))
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Result(result) => write!(f, "an answer {}", short_digest(result.as_bytes())),
            Self::Reverted(data) => write!(f, "a revert {}", short_digest(data)),
        }
    }
}

/// Whether a block is named by its hash. At the newest one honest endpoints may say different things.
fn is_about_one_block(packet: &RequestPacket) -> bool {
    let names_hash = |params: &RawValue| params.get().contains("\"blockHash\"");
    matches!(packet, RequestPacket::Single(request) if request.params().is_some_and(names_hash))
}

fn accuse(node: &Node) {
    crate::rpc_lied(&node.label);
    tracing::warn!(endpoint = node.label, "endpoint contradicts the quorum");
}

fn said(response: &Response) -> Option<Said> {
    match &response.payload {
        ResponsePayload::Success(result) => Some(Said::Result(result.get().to_ascii_lowercase())),
        ResponsePayload::Failure(error) => error.as_revert_data().map(Said::Reverted),
    }
}

/// The response without what may be a key in the words of an error.
fn redacted(node: &Node, mut response: Response) -> Response {
    if let ResponsePayload::Failure(error) = &mut response.payload {
        error.message = node.redact(&error.message).into();
    }
    response
}

fn unusable(cause: &str) -> TransportError {
    TransportErrorKind::custom_str(cause)
}
