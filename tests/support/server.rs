//! A server with scripted responses.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use url::Url;

/// What a server does with a request. Every connection serves one.
pub(crate) enum Answer {
    /// These bytes, then an orderly end.
    Whole(Vec<u8>),
    /// These bytes, then the connection breaks.
    Cut(Vec<u8>),
    /// These bytes, then nothing more until the client gives up.
    Stall(Vec<u8>),
    /// The first bytes at once, then the second ones one by one with this pause between them.
    Drip(Vec<u8>, Vec<u8>, Duration),
    /// The first bytes, then the second ones over and over until the client gives up.
    Endless(Vec<u8>, Vec<u8>),
}

/// A free port of the loopback address.
pub(crate) const ANYWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

type Handler = Arc<dyn Fn(&str) -> Answer + Send + Sync>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    hung_up: Arc<Notify>,
    pub(crate) root: Bytes,
}

impl Server {
    pub(crate) async fn plain(handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(None, Bytes::new(), Arc::new(handler)).await
    }

    /// With a certificate for `names` that is its own trust root.
    pub(crate) async fn tls(names: &[&str], handler: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        Self::start(Some(TlsAcceptor::from(Arc::new(config))), made.cert.pem().into(), Arc::new(handler)).await
    }

    /// One that closes every connection before it has read what was sent, which resets it.
    pub(crate) async fn slamming(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let _ = stream.readable().await;
            }
        });
        Self { address, heads: Arc::default(), connections, hung_up: Arc::default(), root: Bytes::new() }
    }

    async fn start(tls: Option<TlsAcceptor>, root: Bytes, handler: Handler) -> Self {
        let listener = TcpListener::bind(ANYWHERE).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (heads, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let hung_up = Arc::new(Notify::new());
        let tell = Arc::clone(&hung_up);
        let (log, count) = (Arc::clone(&heads), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (tls, handler, log, hung_up) =
                    (tls.clone(), Arc::clone(&handler), Arc::clone(&log), Arc::clone(&tell));
                tokio::spawn(async move {
                    let _ = match tls {
                        None => serve(stream, &handler, &log, &hung_up).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &handler, &log, &hung_up).await,
                            Err(error) => Err(error),
                        },
                    };
                });
            }
        });
        Self { address, heads, connections, hung_up, root }
    }

    /// The heads of the requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// The request lines so far, without method and version.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.heads().iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect()
    }

    /// Waits until a client has hung up on an [`Answer::Stall`].
    pub(crate) async fn hung_up(&self) {
        self.hung_up.notified().await;
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn detour(&self, name_and_port: &str) -> String {
        format!("{name_and_port}:{}", self.address)
    }

    pub(crate) fn url(&self) -> Url {
        format!("http://{}/", self.address).parse().unwrap()
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    handler: &Handler,
    log: &Mutex<Vec<String>>,
    hung_up: &Notify,
) -> io::Result<()> {
    let mut request = Vec::new();
    while !is_whole(&request) {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8(request).unwrap();
    log.lock().unwrap().push(request.clone());
    match handler(&request) {
        Answer::Whole(bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
        Answer::Cut(bytes) => {
            stream.write_all(&bytes).await?;
            stream.flush().await
        }
        Answer::Stall(bytes) => {
            stream.write_all(&bytes).await?;
            stream.flush().await?;
            let _ = stream.read_u8().await;
            hung_up.notify_one();
            Ok(())
        }
        Answer::Drip(head, body, pause) => {
            stream.write_all(&head).await?;
            for byte in body {
                stream.write_all(&[byte]).await?;
                stream.flush().await?;
                tokio::time::sleep(pause).await;
            }
            stream.shutdown().await
        }
        Answer::Endless(head, piece) => {
            stream.write_all(&head).await?;
            loop {
                stream.write_all(&piece).await?;
            }
        }
    }
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    request.len() >= end + 4 + length
}

pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

pub(crate) fn ok(body: &[u8]) -> Answer {
    Answer::Whole(answer("200 OK", "Content-Type: application/json\r\n", body))
}

pub(crate) fn status(status: &str) -> Answer {
    Answer::Whole(answer(status, "", b"no"))
}

pub(crate) fn redirect(location: &str) -> Answer {
    Answer::Whole(answer("302 Found", &format!("Location: {location}\r\n"), b""))
}

/// A listener that no request may reach.
pub(crate) async fn canary() -> Server {
    Server::plain(|_| ok(b"reached")).await
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
