//! WebSockets to configured servers, with bounded sizes and rates.
//!
//! The connection uses the operator's door: the guard checks each address, and all clients share one TLS configuration.
//! The read rate is limited, so a flood of messages waits in the server's own socket buffer.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{HeaderValue, USER_AGENT};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::Url;

use crate::stream::{ByteStream, StreamTo};
use crate::{CONFIGURED, Egress, OriginSpec};
use clresolve_core::fetch::{Cause, EgressViolation, FetchError, Forbidden};

/// Longest message in bytes. A block header takes about two thousand.
pub const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// Longest frame in bytes. A message may be a single frame.
const MAX_FRAME_BYTES: usize = MAX_MESSAGE_BYTES;

/// Most bytes read per [`PACE`], after TLS is removed: the longest message and its frame header. Servers that announce
/// blocks send about 200 bytes a second.
const BYTES_AT_A_PACE: usize = MAX_MESSAGE_BYTES + 1024;

/// The period in which at most [`BYTES_AT_A_PACE`] are read.
const PACE: Duration = Duration::from_secs(1);

/// Most bytes in the send buffer: requests and pong frames, each shorter than a kilobyte.
const MAX_UNSENT_BYTES: usize = 16 << 10;

/// Bytes requested from the connection in one read. Each WebSocket keeps a buffer of this size.
const READ_BYTES: usize = 4 << 10;

/// An open WebSocket. Dropping it closes the connection.
pub struct WebSocket {
    stream: WebSocketStream<Paced<Box<dyn ByteStream>>>,
    /// Timeout for sending one message.
    limit: Duration,
}

impl Egress {
    /// Opens a WebSocket to exactly this `ws` or `wss` URL, which the operator configured. A redirect is an error.
    ///
    /// # Errors
    /// The address is a listener of this process, cannot be reached within the connect timeout, or does not accept the
    /// upgrade within the head timeout.
    pub async fn operator_web_socket(&self, url: &Url) -> Result<WebSocket, FetchError> {
        let to = self.web_socket_place(url).map_err(|why| Forbidden { hop: 0, target: CONFIGURED.to_owned(), why })?;
        let stream = Paced::new(self.operator_stream(&to).await?);
        let mut url = url.clone();
        url.set_fragment(None);
        let mut request = url.as_str().into_client_request().map_err(|_| Cause::Connect)?;
        let agent = HeaderValue::from_static(concat!("clresolve/", env!("CARGO_PKG_VERSION")));
        request.headers_mut().insert(USER_AGENT, agent);
        let limit = self.clients.guard.config.head_timeout;
        let accepted = client_async_with_config(request, stream, Some(bounds()));
        // Boxed because the future of a handshake is large.
        let accepted = timeout(limit, Box::pin(accepted)).await.map_err(|_| Cause::Timeout)?;
        let (stream, _) = accepted.map_err(|error| of_handshake(&error))?;
        Ok(WebSocket { stream, limit })
    }

    fn web_socket_place(&self, url: &Url) -> Result<StreamTo, EgressViolation> {
        let mut http = url.clone();
        let (scheme, kind): (_, fn(OriginSpec) -> StreamTo) = match url.scheme() {
            "ws" => ("http", StreamTo::Plain),
            "wss" => ("https", StreamTo::Tls),
            _ => return Err(EgressViolation::Scheme),
        };
        http.set_scheme(scheme).map_err(|()| EgressViolation::Scheme)?;
        let target = self.clients.guard.admit_configured(&http)?;
        Ok(kind(OriginSpec { host: target.host, port: target.port }))
    }
}

impl WebSocket {
    /// Sends a text message.
    ///
    /// # Errors
    /// The connection ended, or does not accept the message within the head timeout.
    pub async fn send(&mut self, text: String) -> Result<(), FetchError> {
        let sent = timeout(self.limit, self.stream.send(Message::text(text))).await;
        sent.map_err(|_| Cause::Timeout)?.map_err(|error| of_message(&error))
    }

    /// The next text message. The call is cancel-safe: dropping its future loses no message.
    ///
    /// # Errors
    /// [`FetchError::Oversize`] for a message that is too long, [`Cause::Encoding`] for one that is not text,
    /// [`Cause::Truncated`] if the connection ended.
    pub async fn next(&mut self) -> Result<String, FetchError> {
        loop {
            let message = self.stream.next().await.ok_or(Cause::Truncated)?;
            match message.map_err(|error| of_message(&error))? {
                Message::Text(text) => return Ok(text.as_str().to_owned()),
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Close(_) => return Err(Cause::Truncated.into()),
                Message::Binary(_) | Message::Frame(_) => return Err(Cause::Encoding.into()),
            }
        }
    }
}

fn bounds() -> WebSocketConfig {
    let longest =
        if clresolve_core::mutant!("web-socket-messages-without-end") { usize::MAX } else { MAX_MESSAGE_BYTES };
    WebSocketConfig::default()
        .max_message_size(Some(longest))
        .max_frame_size(Some(longest.max(MAX_FRAME_BYTES)))
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(MAX_UNSENT_BYTES)
}

fn of_handshake(error: &Error) -> FetchError {
    match error {
        Error::Http(response) => Cause::Status(response.status().as_u16()).into(),
        Error::Io(_) => Cause::Truncated.into(),
        _ => Cause::Head.into(),
    }
}

fn of_message(error: &Error) -> FetchError {
    match error {
        Error::Capacity(_) => FetchError::Oversize { limit: MAX_MESSAGE_BYTES },
        Error::Utf8(_) => Cause::Encoding.into(),
        _ => Cause::Truncated.into(),
    }
}

/// A stream from which at most [`BYTES_AT_A_PACE`] bytes are read per [`PACE`].
struct Paced<S> {
    stream: S,
    /// Bytes that may still be read before `until`.
    left: usize,
    until: Instant,
    /// The timer for the next period, set while `left` is zero.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    fn new(stream: S) -> Self {
        Self { stream, left: BYTES_AT_A_PACE, until: Instant::now() + PACE, waiting: None }
    }

    /// How many bytes may be read now. Pending while the allowance is used up.
    fn allowance(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        let now = Instant::now();
        if now >= self.until {
            (self.left, self.until, self.waiting) = (BYTES_AT_A_PACE, now + PACE, None);
        }
        if clresolve_core::mutant!("web-sockets-without-pace") {
            return Poll::Ready(BYTES_AT_A_PACE);
        }
        if self.left > 0 {
            return Poll::Ready(self.left);
        }
        let until = self.until;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep_until(until)));
        ready!(waiting.as_mut().poll(context));
        (self.left, self.until, self.waiting) = (BYTES_AT_A_PACE, Instant::now() + PACE, None);
        Poll::Ready(self.left)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let most = ready!(this.allowance(context)).min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(Pin::new(&mut this.stream).poll_read(context, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        this.left = this.left.saturating_sub(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsAcceptor;
    use tokio_tungstenite::accept_async;

    use super::*;
    use crate::EgressConfig;

    async fn listener() -> (TcpListener, Url) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/SECRET", listener.local_addr().unwrap()).parse().unwrap();
        (listener, url)
    }

    /// An `Egress` with short timeouts.
    fn egress(denied: Vec<std::net::SocketAddr>) -> Egress {
        let head_timeout = Duration::from_millis(300);
        Egress::new(EgressConfig { denied, head_timeout, ..EgressConfig::default() }).unwrap()
    }

    /// A client and the server side of its connection.
    async fn pair() -> (WebSocket, WebSocketStream<TcpStream>) {
        let (listener, url) = listener().await;
        let accept = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
        let egress = egress(Vec::new());
        let (client, server) = tokio::join!(egress.operator_web_socket(&url), accept);
        (client.unwrap(), server)
    }

    #[tokio::test]
    async fn texts_go_both_ways_and_pings_between_them_are_nothing() {
        let (mut client, mut server) = pair().await;
        client.send("question".to_owned()).await.unwrap();
        assert_eq!(server.next().await.unwrap().unwrap(), Message::text("question"));
        server.send(Message::Ping(vec![7].into())).await.unwrap();
        server.send(Message::text("answer")).await.unwrap();
        assert_eq!(client.next().await, Ok("answer".to_owned()));
        assert_eq!(server.close(None).await.ok(), Some(()));
        assert_eq!(client.next().await, Err(Cause::Truncated.into()));
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_or_no_text_is_refused() {
        let (mut client, mut server) = pair().await;
        let long = tokio::spawn(async move { server.send(Message::text("x".repeat(MAX_MESSAGE_BYTES + 1))).await });
        assert_eq!(client.next().await, Err(FetchError::Oversize { limit: MAX_MESSAGE_BYTES }));
        drop(client);
        let _ = long.await;
        let (mut client, mut server) = pair().await;
        server.send(Message::binary(vec![1])).await.unwrap();
        assert_eq!(client.next().await, Err(Cause::Encoding.into()));
    }

    /// In each case the server reads the request, sends this response, and keeps the connection open.
    #[tokio::test]
    async fn what_is_no_web_socket_is_refused_with_its_cause() {
        let redirect = "HTTP/1.1 302 Found\r\nlocation: ws://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";
        let cases = [
            (redirect, Cause::Status(302)),
            ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", Cause::Status(200)),
            ("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n", Cause::Head),
            ("no HTTP at all\r\n\r\n", Cause::Head),
            ("", Cause::Timeout),
        ];
        for (says, expected) in cases {
            let (listener, url) = listener().await;
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 4096]).await.unwrap();
                stream.write_all(says.as_bytes()).await.unwrap();
                stream
            };
            let egress = egress(Vec::new());
            let (opened, _open) = tokio::join!(egress.operator_web_socket(&url), serve);
            assert_eq!(opened.map(|_| ()), Err(expected.into()), "{says:?}");
        }
    }

    #[tokio::test]
    async fn the_guard_judges_a_web_socket_as_any_request() {
        let (listener, url) = listener().await;
        let egress = egress(vec![listener.local_addr().unwrap()]);
        let refused = async |url: &Url| egress.operator_web_socket(url).await.map(|_| ()).unwrap_err();
        let why = |why| FetchError::from(Forbidden { hop: 0, target: CONFIGURED.to_owned(), why });
        assert_eq!(refused(&url).await, why(EgressViolation::OwnListener));
        assert_eq!(refused(&"http://127.0.0.1:1/".parse().unwrap()).await, why(EgressViolation::Scheme));
    }

    /// A WebSocket server over TLS. Its certificate for `host` is its own trust root.
    async fn tls_listener(host: &str) -> (TcpListener, TlsAcceptor, Bytes) {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.into())
            .unwrap();
        let (listener, _) = listener().await;
        (listener, TlsAcceptor::from(Arc::new(config)), made.cert.pem().into())
    }

    #[tokio::test]
    async fn wss_is_refused_unless_the_server_proves_its_host() {
        for (host, is_trusted) in [("localhost", true), ("localhost", false), ("other.example", true)] {
            let (listener, tls, root) = tls_listener(host).await;
            let url = format!("wss://localhost:{}/", listener.local_addr().unwrap().port()).parse().unwrap();
            let extra_roots = if is_trusted { vec![root] } else { Vec::new() };
            let egress = Egress::new(EgressConfig { extra_roots, ..EgressConfig::default() }).unwrap();
            let serve = async {
                let stream = tls.accept(listener.accept().await.unwrap().0).await.ok()?;
                let mut server = accept_async(stream).await.ok()?;
                server.send(Message::text("hello")).await.ok()
            };
            let (opened, _) = tokio::join!(egress.operator_web_socket(&url), serve);
            match (host, is_trusted) {
                ("localhost", true) => assert_eq!(opened.unwrap().next().await, Ok("hello".to_owned())),
                _ => assert!(
                    matches!(opened.map(|_| ()), Err(FetchError::Unavailable(Cause::Tls(_)))),
                    "{host} {is_trusted}"
                ),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_at_a_pace() {
        let (flood, stream) = duplex(1 << 20);
        let flood = tokio::spawn(async move {
            let mut flood = flood;
            let bytes = [0; 4096];
            while flood.write_all(&bytes).await.is_ok() {}
        });
        let (mut paced, began) = (Paced::new(stream), Instant::now());
        let mut bytes = vec![0; BYTES_AT_A_PACE * 10];
        paced.read_exact(&mut bytes).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 9);
        drop(paced);
        flood.await.unwrap();
    }
}
