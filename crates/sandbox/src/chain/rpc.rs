//! The sandbox's JSON-RPC endpoint: HTTP on a loopback port, with faults that tests can enable.

mod fault;
mod methods;
mod response;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

pub use self::fault::SandboxRpcFault;

use self::methods::SandboxRpcNode;
use self::response::{json_http_response, status_response};
use super::SandboxChain;
use crate::web::DroppedConnectionError;

/// Maximum size of a request body in bytes: more than enough for a batch of resolutions.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Maximum number of concurrent connections. Further ones are closed at once. This bounds the memory that clients can
/// use.
const MAX_CONNECTIONS: usize = 256;
/// Pause after a failed accept (for example, out of file descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A running endpoint. Dropping it stops the server and closes its connections.
pub struct SandboxRpcServer {
    address: SocketAddr,
    serving: watch::Sender<SandboxRpcNode>,
    requests: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

/// The endpoint could not open its port. Contains the operating system's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox cannot open a loopback port: {0}")]
pub struct SandboxRpcBindError(String);

impl SandboxRpcServer {
    /// Serves `chain` on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// [`SandboxRpcBindError`] if no port can be opened.
    pub async fn bind(chain: Arc<SandboxChain>) -> Result<Self, SandboxRpcBindError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(|error| SandboxRpcBindError(error.to_string()))?;
        let address = listener.local_addr().map_err(|error| SandboxRpcBindError(error.to_string()))?;
        let (serving, watched) = watch::channel(SandboxRpcNode { chain, fault: SandboxRpcFault::None });
        let requests = Arc::new(AtomicU64::new(0));
        let accepting = tokio::spawn(accept_connections(listener, watched, Arc::clone(&requests)));
        Ok(Self { address, serving, requests, accepting })
    }

    /// The endpoint's URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves another chain from the next request on.
    pub fn serve_chain(&self, chain: Arc<SandboxChain>) {
        self.serving.send_modify(|serving| serving.chain = chain);
    }

    /// Enables this fault from the next request on.
    pub fn set_fault(&self, fault: SandboxRpcFault) {
        self.serving.send_modify(|serving| serving.fault = fault);
    }

    /// Number of HTTP requests received so far. A batch counts as one.
    pub fn request_count(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for SandboxRpcServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Accepts connections until aborted, which also closes them.
async fn accept_connections(listener: TcpListener, serving: watch::Receiver<SandboxRpcNode>, requests: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = listener.accept().await;
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) if connections.len() < MAX_CONNECTIONS => {
                connections.spawn(serve_connection(stream, serving.clone(), Arc::clone(&requests)));
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn serve_connection(stream: TcpStream, serving: watch::Receiver<SandboxRpcNode>, requests: Arc<AtomicU64>) {
    let service = service_fn(|request| {
        requests.fetch_add(1, Ordering::Relaxed);
        let serving = serving.borrow().clone();
        answer_http_request(request, serving)
    });
    // An error is caused by the client, or by a fault.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer_http_request(
    request: Request<Incoming>,
    serving: SandboxRpcNode,
) -> Result<Response<Body>, DroppedConnectionError> {
    if request.method() != Method::POST {
        return Ok(status_response(StatusCode::METHOD_NOT_ALLOWED));
    }
    let Ok(body) = to_bytes(Body::new(request.into_body()), MAX_REQUEST_BYTES).await else {
        return Ok(status_response(StatusCode::PAYLOAD_TOO_LARGE));
    };
    if let Some(spoiled) = serving.fault.apply_to_transport(&body).await? {
        return Ok(spoiled);
    }
    let answered = tokio::task::spawn_blocking(move || serving.answer_json_rpc(&body)).await;
    Ok(answered.map_or_else(|_| status_response(StatusCode::INTERNAL_SERVER_ERROR), json_http_response))
}
