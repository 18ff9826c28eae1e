//! Off-chain lookups (CCIP-Read, EIP-3668) through an injected gateway client, with limits on count, depth, bytes and
//! time.
//!
//! The Universal Resolver expects its client to split a batch of requests (ENSIP-21); this module does so.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alloy_primitives::{Address, Bytes};
use alloy_rpc_client::RpcClient;
use alloy_rpc_types_eth::BlockId;
use alloy_transport::TransportError;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, StreamExt as _};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use clresolve_state::CcipReadRequest;

use clresolve_core::cause::CcipLookupError;
use clresolve_core::reading::ChainError;
use clresolve_core::text::excerpt_text;
use clresolve_state::contracts::UniversalResolverOutcome;
use clresolve_state::{
    CcipReadLookup, CcipReadLookupError, MAX_LOOK_UP_BYTES, MAX_LOOK_UPS, encode_batch_failure, encode_batch_response,
};

use crate::failure::EndpointFailure;
use crate::request::eth_call_request;
use crate::revert::revert_data;

/// Maximum number of gateway URLs per request. Contracts list one to three.
pub(crate) const MAX_GATEWAYS: usize = 8;

/// Maximum number of gateway URLs and batches per lookup, over all redirects: a few per text key.
const MAX_REQUESTS: usize = 100;

/// Maximum bytes of all batches and responses of one lookup, over all redirects. A batch and its responses can each
/// reach the limit of a single message, so one batch always fits. Honest lookups use about 40 KB.
const MAX_TOTAL_BYTES: usize = 2 * MAX_LOOK_UP_BYTES;

/// Maximum nesting depth of batches. ENSIP-21 needs one level, and a resolver that also batches on its own needs two.
/// Each level keeps a decoded copy of its contents in memory.
const MAX_BATCH_LEVELS: usize = 3;

/// Maximum number of concurrent requests per lookup, so that a name cannot flood a gateway.
const MAX_IN_FLIGHT: usize = 4;

/// A CCIP-Read gateway client.
#[async_trait]
pub trait CcipReadGatewayClient: Send + Sync {
    /// Tries the URLs of the request in order and returns the first response, of at most `cap` bytes.
    async fn request_first_response(
        &self,
        request: &CcipReadRequest,
        cap: usize,
    ) -> Result<Bytes, CcipReadGatewayError>;
}

/// Why a request has no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CcipReadGatewayError {
    /// The HTTP status, if the gateway answered with an error status.
    pub status: Option<u16>,
    /// The cause, which is passed to the contract.
    pub message: String,
}

impl CcipReadGatewayError {
    /// An error other than an HTTP status.
    pub fn new(message: impl Into<String>) -> Self {
        Self { status: None, message: message.into() }
    }

    /// An HTTP error status.
    pub fn with_http_status(status: u16, message: impl Into<String>) -> Self {
        Self { status: Some(status), message: message.into() }
    }
}

impl From<CcipReadLookupError> for CcipReadGatewayError {
    fn from(error: CcipReadLookupError) -> Self {
        Self::new(error.to_string())
    }
}

#[derive(Clone)]
pub(super) struct CcipReadLookupClient {
    gateway: Arc<dyn CcipReadGatewayClient>,
    patience: Duration,
}

impl CcipReadLookupClient {
    /// Follows lookups through `gateway`, each for at most `patience`.
    pub(super) fn new(gateway: Arc<dyn CcipReadGatewayClient>, patience: Duration) -> Self {
        Self { gateway, patience }
    }

    /// The same with another time limit per lookup.
    pub(super) fn with_time_limit(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// The result of `call` to the Universal Resolver at `block`, after all lookups are answered.
    ///
    /// # Errors
    /// [`ChainError::Ccip`]; [`ChainError::Disagree`] if the endpoints behind `rpc` contradict each other;
    /// [`ChainError::Unproven`] if their proofs are invalid.
    pub(super) async fn follow_lookups(
        &self,
        rpc: &RpcClient,
        resolver: Address,
        call: Bytes,
        block: BlockId,
    ) -> Result<Bytes, ChainError> {
        let followed = timeout(self.patience, self.call_until_answered(rpc, resolver, call, block)).await;
        followed.unwrap_or(Err(ChainError::Ccip(CcipLookupError::Late(self.patience))))
    }

    async fn call_until_answered(
        &self,
        rpc: &RpcClient,
        resolver: Address,
        call: Bytes,
        block: BlockId,
    ) -> Result<Bytes, ChainError> {
        let requests = CcipReadLookupSession::new(&*self.gateway);
        let mut data = call;
        let most = if clresolve_core::mutant!("endless-look-ups") { MAX_REQUESTS } else { MAX_LOOK_UPS };
        for redirects in 0..=most {
            let revert = match rpc.request::<_, Bytes>("eth_call", (eth_call_request(resolver, data), block)).await {
                Ok(result) => return Ok(result),
                Err(error) => lookup_revert_data(&error).ok_or_else(|| failed_call_error(&error, block))?,
            };
            if redirects == most {
                break;
            }
            let look_up = CcipReadLookup::decode(&revert, resolver).map_err(refused_lookup_error)?;
            // A gateway may stall for long, so free the revert data now.
            drop(revert);
            let response = requests.fetch_response(&look_up.request, 0).await;
            let response =
                response.map_err(|error| ccip_client_error(&format!("the request to the gateway failed: {error}")))?;
            data = look_up.callback_call(response);
        }
        Err(ccip_client_error(&format!("more than {MAX_LOOK_UPS} lookups in a row")))
    }
}

/// The gateway client and the remaining limits of one lookup.
struct CcipReadLookupSession<'g> {
    gateway: &'g dyn CcipReadGatewayClient,
    /// Number of further requests allowed.
    left: AtomicUsize,
    /// Number of further bytes allowed in batches and responses.
    bytes_left: AtomicUsize,
    in_flight: Semaphore,
}

impl<'g> CcipReadLookupSession<'g> {
    fn new(gateway: &'g dyn CcipReadGatewayClient) -> Self {
        Self {
            gateway,
            left: AtomicUsize::new(MAX_REQUESTS),
            bytes_left: AtomicUsize::new(MAX_TOTAL_BYTES),
            in_flight: Semaphore::new(MAX_IN_FLIGHT),
        }
    }

    /// The response to a request, which may be a batch. `level` is the number of batches that contain the request.
    fn fetch_response<'r>(
        &'r self,
        request: &'r CcipReadRequest,
        level: usize,
    ) -> BoxFuture<'r, Result<Bytes, CcipReadGatewayError>> {
        Box::pin(async move {
            if request.urls.len() > MAX_GATEWAYS {
                return Err(CcipReadGatewayError::new(format!("more than {MAX_GATEWAYS} gateway URLs")));
            }
            let response = if request.is_batch() {
                self.request_batch_response(request, level).await?
            } else {
                self.request_single_response(request).await?
            };
            if response.len() > MAX_LOOK_UP_BYTES {
                let cause = format!("the gateway's response has more than {MAX_LOOK_UP_BYTES} bytes");
                return Err(CcipReadGatewayError::new(cause));
            }
            Ok(response)
        })
    }

    /// A gateway's response. Its bytes count against the limit.
    async fn request_single_response(&self, request: &CcipReadRequest) -> Result<Bytes, CcipReadGatewayError> {
        self.spend_request_budget(request.urls.len().max(1))?;
        let _permit = self.in_flight.acquire().await.expect("it is never closed");
        let bytes_left = self.bytes_left.load(Ordering::Relaxed);
        if bytes_left == 0 {
            return Err(too_many_bytes_error());
        }
        let response = self.gateway.request_first_response(request, bytes_left.min(MAX_LOOK_UP_BYTES)).await?;
        self.spend_byte_budget(response.len())?;
        Ok(response)
    }

    /// The response to a batch: one response or failure per request.
    ///
    /// Its bytes are not counted again, since the individual responses already are.
    async fn request_batch_response(
        &self,
        batch: &CcipReadRequest,
        level: usize,
    ) -> Result<Bytes, CcipReadGatewayError> {
        if level == MAX_BATCH_LEVELS && !clresolve_core::mutant!("endless-batches") {
            return Err(CcipReadGatewayError::new(format!("batch nesting exceeds {MAX_BATCH_LEVELS} levels")));
        }
        self.spend_request_budget(1)?;
        self.spend_byte_budget(batch.data.len())?;
        let requests = batch.batch_requests()?;
        let answers: Vec<_> = requests.iter().map(|request| self.fetch_response(request, level + 1)).collect();
        let answers: Vec<_> = stream::iter(answers).buffered(MAX_IN_FLIGHT).collect().await;
        let failure = |error: CcipReadGatewayError| encode_batch_failure(error.status, &error.message);
        Ok(encode_batch_response(answers.into_iter().map(|answer| answer.map_err(failure)).collect()))
    }

    fn spend_request_budget(&self, count: usize) -> Result<(), CcipReadGatewayError> {
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(count));
        taken.map(drop).map_err(|_| CcipReadGatewayError::new(format!("more than {MAX_REQUESTS} gateway requests")))
    }

    fn spend_byte_budget(&self, bytes: usize) -> Result<(), CcipReadGatewayError> {
        if clresolve_core::mutant!("look-up-bytes-uncounted") {
            return Ok(());
        }
        let spent = self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        spent.map(drop).map_err(|_| too_many_bytes_error())
    }
}

fn too_many_bytes_error() -> CcipReadGatewayError {
    CcipReadGatewayError::new(format!("batches and responses exceed {MAX_TOTAL_BYTES} bytes in total"))
}

/// The revert data, if the error requests a lookup.
fn lookup_revert_data(error: &TransportError) -> Option<Bytes> {
    revert_data(error.as_error_resp()?).filter(|data| CcipReadLookup::is_lookup_demanded(data))
}

fn refused_lookup_error(error: CcipReadLookupError) -> ChainError {
    match error {
        CcipReadLookupError::Sender => ChainError::Ccip(CcipLookupError::Sender),
        error => ccip_client_error(&error.to_string()),
    }
}

fn ccip_client_error(cause: &str) -> ChainError {
    ChainError::Ccip(CcipLookupError::Client(excerpt_text(cause)))
}

/// The error of a call that failed without requesting a lookup. Only failures inside the call are attributed to the
/// name.
fn failed_call_error(error: &TransportError, block: BlockId) -> ChainError {
    let Some(data) = error.as_error_resp().and_then(revert_data) else {
        return match EndpointFailure::from_transport_error(error, excerpt_text) {
            EndpointFailure::CallFailed(_) => ccip_client_error(&error.to_string()),
            // No error of a call reports the chain id.
            failure => failure.into_chain_error("the endpoints", &block.to_string(), 0),
        };
    };
    ChainError::Ccip(match UniversalResolverOutcome::from_revert(&data) {
        UniversalResolverOutcome::Failed(fault) => CcipLookupError::Callback(fault),
        UniversalResolverOutcome::Gateway(fault) => fault,
        _ => CcipLookupError::NotTaken,
    })
}
