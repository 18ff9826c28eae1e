//! A proxy in front of a node: it delays every request as the network would, and counts it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::serve::ListenerExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::scale::LATENCY;

/// Number of HTTP requests that an endpoint has received. A batch counts as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointRequestCounts {
    /// For the newest block alone.
    pub(crate) polls: u64,
    pub(crate) others: u64,
}

/// A running proxy. It ends with the program.
pub(crate) struct EndpointProxy {
    pub(crate) address: SocketAddr,
    upstream: Arc<EndpointProxyState>,
}

struct EndpointProxyState {
    node: SocketAddr,
    polls: AtomicU64,
    others: AtomicU64,
}

impl EndpointProxy {
    pub(crate) async fn start(node: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let upstream = Arc::new(EndpointProxyState { node, polls: AtomicU64::new(0), others: AtomicU64::new(0) });
        let listener = listener.tap_io(|stream| {
            // A failure only makes answers slower.
            let _ = stream.set_nodelay(true);
        });
        let router = Router::new().fallback(forward).with_state(Arc::clone(&upstream));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, upstream })
    }

    pub(crate) fn counts(&self) -> EndpointRequestCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EndpointRequestCounts { polls: count(&self.upstream.polls), others: count(&self.upstream.others) }
    }
}

async fn forward(
    State(upstream): State<Arc<EndpointProxyState>>,
    body: Bytes,
) -> Result<impl IntoResponse, StatusCode> {
    upstream.count(&body);
    sleep(LATENCY).await;
    let answer = upstream.forward_to_node(&body).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], answer))
}

impl EndpointProxyState {
    fn count(&self, request: &[u8]) {
        let contains = |text: &str| request.windows(text.len()).any(|part| part == text.as_bytes());
        let is_poll = contains("\"eth_getBlockByNumber\"") && contains("\"latest\"") && !contains("\"eth_call\"");
        let counter = if is_poll { &self.polls } else { &self.others };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The body of the node's answer.
    async fn forward_to_node(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(self.node).await?;
        let length = request.len();
        let head = format!("POST / HTTP/1.1\r\nhost: node\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        stream.write_all(&[head.as_bytes(), request].concat()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
        Ok(answer.split_off(end + 4))
    }
}
