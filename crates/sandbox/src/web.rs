//! The HTTPS origin of a sandbox: one listener on loopback that serves every host, by the `Host` header.
//!
//! [`WebServerBehaviour`] describes how a document is served: correctly, or with one of many faults.
//! [`VirtualHostHandler`] answers the requests to every host: of the cards, the schemas, the sellers, the IPFS gateways
//! and the CCIP-Read gateway.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// Maximum number of concurrent connections: many more than a resolver opens, few enough to bound the memory.
const MAX_CONNECTIONS: usize = 512;

/// Maximum number of bytes of an endless body, for a client that never stops reading.
const ENDLESS_BYTES: usize = 128 * 1024 * 1024;

/// Number of bytes of one chunk of an endless body.
const CHUNK: usize = 64 * 1024;

/// Decompressed size of a decompression bomb: well over the limit for a card, and quick to generate.
const BOMB_BYTES: usize = 8 * 1024 * 1024;

/// Timeout for a client to send the head of its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// How a document is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebServerBehaviour {
    /// 200 with the document.
    #[default]
    Ok,
    /// 200 with another version of the document.
    Other,
    /// 200 with a page that says "not found".
    Html,
    /// 200 with the document in a content coding.
    Gzip,
    /// 200 with a few bytes that decompress to many.
    GzipBomb,
    /// 200 with an endless body.
    Endless,
    /// 200 with a body over the size limit and its `Content-Length`.
    Oversize,
    /// 200 with a truncated body.
    Truncated,
    /// This status with a short text.
    Status(u16),
    /// A redirect to this URL.
    Redirect(String),
    /// A redirect to itself.
    RedirectLoop,
    /// This many redirects on the same host, then the document.
    Hops(u8),
    /// The connection is closed without a response.
    Drop,
    /// No response.
    Stall,
}

/// A document with the way in which it is served.
#[derive(Clone, Debug)]
pub(crate) struct ServedFile {
    pub(crate) behaviour: WebServerBehaviour,
    pub(crate) body: Bytes,
    /// The document for [`WebServerBehaviour::Other`].
    pub(crate) other: Bytes,
}

impl ServedFile {
    /// A document that is served correctly.
    pub(crate) fn served_correctly(body: Bytes) -> Self {
        Self { behaviour: WebServerBehaviour::Ok, other: body.clone(), body }
    }

    /// The response to a request for `uri`.
    pub(crate) fn reaction_to(&self, uri: &Uri) -> HostReaction {
        match &self.behaviour {
            WebServerBehaviour::Ok => json_reaction(self.body.clone()),
            WebServerBehaviour::Other => json_reaction(self.other.clone()),
            WebServerBehaviour::Html => html_reaction(StatusCode::OK),
            WebServerBehaviour::Gzip => gzip_reaction(&self.body),
            WebServerBehaviour::GzipBomb => gzip_reaction(&vec![b' '; BOMB_BYTES]),
            WebServerBehaviour::Endless => endless_reaction("application/json"),
            WebServerBehaviour::Oversize => json_reaction(Bytes::from(vec![b' '; 300 * 1024])),
            WebServerBehaviour::Truncated => truncated_reaction("application/json", &self.body),
            WebServerBehaviour::Status(code) => {
                html_reaction(StatusCode::from_u16(*code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
            }
            WebServerBehaviour::Redirect(to) => redirect_reaction(to),
            WebServerBehaviour::RedirectLoop => redirect_reaction(uri.path()),
            WebServerBehaviour::Hops(hops) => match hop_number(uri) {
                done if done >= *hops => json_reaction(self.body.clone()),
                done => redirect_reaction(&format!("{}?hop={}", uri.path(), done + 1)),
            },
            WebServerBehaviour::Drop => HostReaction::Drop,
            WebServerBehaviour::Stall => HostReaction::Stall,
        }
    }
}

/// How a host reacts to a request.
pub(crate) enum HostReaction {
    Answer(Response<Body>),
    Drop,
    /// Keeps the client waiting.
    Stall,
}

/// All hosts of a sandbox behind one listener. The `Host` header selects one.
pub(crate) trait VirtualHostHandler: Send + Sync + 'static {
    /// The response to a request for `host`. `body` is empty except for a POST.
    fn react_to_request(&self, host: &str, request: &Request<()>, body: &Bytes) -> HostReaction;
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub(crate) struct SandboxHttpsServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl SandboxHttpsServer {
    /// Serves `hosts` on a free port of 127.0.0.1. No other address can be bound.
    pub(crate) async fn start(
        tls: Arc<rustls::ServerConfig>,
        hosts: Arc<dyn VirtualHostHandler>,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(accept_connections(listener, TlsAcceptor::from(tls), hosts));
        Ok(Self { address, task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for SandboxHttpsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections until the task is aborted, which also closes every connection.
async fn accept_connections(listener: TcpListener, tls: TlsAcceptor, hosts: Arc<dyn VirtualHostHandler>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (tls, hosts) = (tls.clone(), Arc::clone(&hosts));
        connections.spawn(async move {
            serve_connection(stream, tls, hosts).await;
            drop(slot);
        });
    }
}

async fn serve_connection(stream: TcpStream, tls: TlsAcceptor, hosts: Arc<dyn VirtualHostHandler>) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(move |request| {
        let hosts = Arc::clone(&hosts);
        async move { answer_request(&*hosts, request).await }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    // An error means that the client closed the connection, or that the host dropped it on purpose.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}

#[derive(Debug, thiserror::Error)]
#[error("the connection is dropped on purpose")]
pub(crate) struct DroppedConnectionError;

async fn answer_request(
    hosts: &dyn VirtualHostHandler,
    request: Request<Incoming>,
) -> Result<Response<Body>, DroppedConnectionError> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(Body::new(body), CHUNK).await.map_err(|_| DroppedConnectionError)?;
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    let request = Request::from_parts(head, ());
    match hosts.react_to_request(&host, &request, &body) {
        HostReaction::Answer(response) => Ok(response),
        HostReaction::Drop => Err(DroppedConnectionError),
        HostReaction::Stall => std::future::pending().await,
    }
}

pub(crate) fn json_reaction(body: Bytes) -> HostReaction {
    bytes_reaction("application/json", body)
}

pub(crate) fn bytes_reaction(content_type: &str, body: Bytes) -> HostReaction {
    HostReaction::Answer(response_with_headers(StatusCode::OK, &[(CONTENT_TYPE, content_type)], Body::from(body)))
}

/// 402 with a JSON body, and a header `PAYMENT-REQUIRED` for each of `terms`.
pub(crate) fn payment_required_reaction(terms: &[String], body: &str) -> HostReaction {
    let name = hyper::header::HeaderName::from_static("payment-required");
    let headers = [(CONTENT_TYPE, "application/json")];
    let mut response = response_with_headers(StatusCode::PAYMENT_REQUIRED, &headers, Body::from(body.to_owned()));
    for value in terms.iter().filter_map(|terms| terms.parse().ok()) {
        response.headers_mut().append(name.clone(), value);
    }
    HostReaction::Answer(response)
}

/// An HTML page with that status.
pub(crate) fn html_reaction(status: StatusCode) -> HostReaction {
    let page = "<!doctype html><title>sandbox</title><p>There is no such thing here.</p>";
    HostReaction::Answer(response_with_headers(status, &[(CONTENT_TYPE, "text/html")], Body::from(page)))
}

pub(crate) fn redirect_reaction(to: &str) -> HostReaction {
    HostReaction::Answer(response_with_headers(StatusCode::FOUND, &[(LOCATION, to)], Body::empty()))
}

pub(crate) fn endless_reaction(content_type: &str) -> HostReaction {
    endless_reaction_after(content_type, Bytes::new())
}

/// 200 with `start`, followed by endless bytes.
pub(crate) fn endless_reaction_after(content_type: &str, start: Bytes) -> HostReaction {
    let filler = Bytes::from(vec![b' '; CHUNK]);
    let body = stream::once(async { start }).chain(stream::repeat(filler).take(ENDLESS_BYTES / CHUNK));
    let body = Body::from_stream(body.map(Ok::<_, Infallible>));
    HostReaction::Answer(response_with_headers(StatusCode::OK, &[(CONTENT_TYPE, content_type)], body))
}

/// 200 with the `Content-Length` of `body`, but only its first half. Then the connection closes.
pub(crate) fn truncated_reaction(content_type: &str, body: &Bytes) -> HostReaction {
    let length = body.len().to_string();
    let half = Ok(body.slice(..body.len() / 2));
    let cut = async {
        // The first half must be sent before the connection closes: the server flushes when the body is pending.
        tokio::task::yield_now().await;
        Err(DroppedConnectionError)
    };
    let headers = [(CONTENT_TYPE, content_type), (CONTENT_LENGTH, length.as_str())];
    let body = Body::from_stream(stream::iter([half]).chain(stream::once(cut)));
    HostReaction::Answer(response_with_headers(StatusCode::OK, &headers, body))
}

fn gzip_reaction(body: &[u8]) -> HostReaction {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let packed = encoder.write_all(body).and_then(|()| encoder.finish());
    let Ok(packed) = packed else { return HostReaction::Drop };
    let headers = [(CONTENT_TYPE, "application/json"), (CONTENT_ENCODING, "gzip")];
    HostReaction::Answer(response_with_headers(StatusCode::OK, &headers, Body::from(packed)))
}

fn response_with_headers(
    status: StatusCode,
    headers: &[(hyper::header::HeaderName, &str)],
    body: Body,
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// The number in `?hop=N`, or 0.
fn hop_number(uri: &Uri) -> u8 {
    uri.query().and_then(|query| query.strip_prefix("hop=")).and_then(|n| n.parse().ok()).unwrap_or(0)
}
