//! MCP over standard input and output: one message per line, for the program that started this process.
//!
//! Reading applies backpressure: it waits for a free call, and for a client that does not read its answers. So memory
//! use does not grow with the client's input.

use std::any::Any;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use clresolve_core::reason::RefusalCode;
use clresolve_resolver::cpu_share::{CpuJobUrgency, CpuTaskContext};
use clresolve_resolver::resolve::{NameQuestion, Resolver, SetupError};
use futures_util::future::BoxFuture;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, ServerInitializeError};
use rmcp::transport::Transport;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};

use super::message::{self, MAX_MESSAGE_BYTES};
use super::{McpBackend, McpServer, McpToolAnswer, McpToolFailure, ResolutionWithResolver};

/// Maximum number of concurrent calls, as for one client of the daemon.
const CALLS: usize = 16;

/// Maximum number of unsent answers before reading stops.
const UNSENT: usize = 16;

/// Asks this process's own resolver.
struct StdioMcpBackend {
    resolver: Resolver,
    default_profile: String,
}

#[async_trait]
impl McpBackend for StdioMcpBackend {
    async fn resolve_question(&self, question: NameQuestion) -> Result<ResolutionWithResolver, RefusalCode> {
        let resolution = self.resolver.resolve_question(&question).await;
        let resolution = resolution.map_err(|_: SetupError| RefusalCode::ProfileUnknown)?;
        Ok(ResolutionWithResolver { resolver: self.resolver.clone(), resolution })
    }

    async fn run_as_resolution(
        &self,
        work: BoxFuture<'static, Result<McpToolAnswer, McpToolFailure>>,
    ) -> Result<McpToolAnswer, McpToolFailure> {
        work.await
    }

    fn message_permit(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::new(())
    }

    fn cpu_task_context(&self, _: CpuJobUrgency) -> Option<CpuTaskContext> {
        None
    }

    fn resolver(&self) -> &Resolver {
        &self.resolver
    }

    fn default_profile(&self) -> &str {
        &self.default_profile
    }
}

/// The client did not begin with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client's first message is not a request, as the protocol requires")]
pub struct McpHandshakeError;

/// Answers messages until the input ends. Questions that name no profile are answered by `default_profile`.
///
/// # Errors
/// [`McpHandshakeError`].
pub async fn serve_stdio<R, W>(
    resolver: Resolver,
    default_profile: String,
    input: R,
    output: W,
) -> Result<(), McpHandshakeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let server = McpServer::new(StdioMcpBackend { resolver, default_profile });
    let running = match rmcp::serve_server(server, McpLineTransport::new(input, output)).await {
        Ok(running) => running,
        // The client has disconnected.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::TransportError { .. }) => return Ok(()),
        Err(_) => return Err(McpHandshakeError),
    };
    // The loop only fails if one of its own tasks was lost, and then nobody can be notified.
    let _ = running.waiting().await;
    Ok(())
}

/// One of the [`CALLS`] permits. The request holds it until its work ends.
#[derive(Clone)]
struct McpCallPermit(#[expect(dead_code, reason = "given back when it is dropped")] Arc<OwnedSemaphorePermit>);

/// Sends and receives messages as lines.
struct McpLineTransport<W> {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    output: Arc<Mutex<W>>,
    unsent: Arc<Semaphore>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> McpLineTransport<W> {
    fn new<R: AsyncRead + Send + Unpin + 'static>(input: R, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        let (send, incoming) = mpsc::channel(1);
        tokio::spawn(forward_messages(BufReader::new(input), Arc::clone(&output), send));
        Self { incoming, output, unsent: Arc::new(Semaphore::new(UNSENT)) }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for McpLineTransport<W> {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        // No permit is left for the calls that were in progress when reading stopped.
        let permit = Arc::clone(&self.unsent).try_acquire_owned().ok();
        async move {
            let written = write_message(&output, &message).await;
            drop(permit);
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        drop(self.unsent.acquire().await);
        self.incoming.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.incoming.close();
        Ok(())
    }
}

/// Reads messages and forwards them one by one. Answers invalid ones itself.
async fn forward_messages<R, W>(mut input: R, output: Arc<Mutex<W>>, send: mpsc::Sender<ClientJsonRpcMessage>)
where
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let calls = Arc::new(Semaphore::new(CALLS));
    let mut line = Vec::new();
    while let Ok(Some(read)) = read_next_line(&mut input, &mut line).await {
        let message = match read {
            McpLineOutcome::Whole if line.trim_ascii().is_empty() => continue,
            McpLineOutcome::Whole => message::parse_message(line.trim_ascii()),
            McpLineOutcome::TooLong => Err(message::too_long_response()),
        };
        let sent = match message {
            Ok(message) => send.send(attach_permit(message, &calls).await).await.is_ok(),
            Err(error) => write_message(&output, &error).await.is_ok(),
        };
        if !sent {
            return;
        }
    }
}

/// If the message is a request, waits for a [`McpCallPermit`] and attaches it.
async fn attach_permit(mut message: ClientJsonRpcMessage, calls: &Arc<Semaphore>) -> ClientJsonRpcMessage {
    if let ClientJsonRpcMessage::Request(request) = &mut message {
        let permit = Arc::clone(calls).acquire_owned().await.expect("the semaphore is never closed");
        request.request.extensions_mut().insert(McpCallPermit(Arc::new(permit)));
    }
    message
}

enum McpLineOutcome {
    Whole,
    /// The line was longer than a message may be, and the rest was skipped.
    TooLong,
}

/// Reads the next line. `None` at the end of the input; a truncated last line is ignored.
async fn read_next_line<R: AsyncBufRead + Unpin>(
    input: &mut R,
    line: &mut Vec<u8>,
) -> io::Result<Option<McpLineOutcome>> {
    line.clear();
    let most = if clresolve_core::mutant!("mcp-lines-unbounded") { usize::MAX } else { MAX_MESSAGE_BYTES + 1 };
    (&mut *input).take(most as u64).read_until(b'\n', line).await?;
    if line.ends_with(b"\n") {
        return Ok(Some(McpLineOutcome::Whole));
    }
    if line.len() < most {
        return Ok(None);
    }
    loop {
        let buffered = input.fill_buf().await?;
        if buffered.is_empty() {
            return Ok(None);
        }
        let end = buffered.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffered.len(), |end| end + 1);
        input.consume(length);
        if end.is_some() {
            return Ok(Some(McpLineOutcome::TooLong));
        }
    }
}

async fn write_message<W: AsyncWrite + Unpin>(output: &Mutex<W>, message: &ServerJsonRpcMessage) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&bytes).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{DuplexStream, Lines as ReadLines, ReadHalf, WriteHalf};

    use super::*;
    use clresolve_resolver::config::Config;

    struct Client {
        write: WriteHalf<DuplexStream>,
        read: ReadLines<BufReader<ReadHalf<DuplexStream>>>,
        served: tokio::task::JoinHandle<Result<(), McpHandshakeError>>,
    }

    impl Client {
        async fn new() -> Self {
            let resolver = Resolver::new(&Config::default()).await.expect("a resolver");
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let (input, output) = tokio::io::split(theirs);
            let served = tokio::spawn(serve_stdio(resolver, "agent-cards/1.0.0".to_owned(), input, output));
            let (read, write) = tokio::io::split(ours);
            Self { write, read: BufReader::new(read).lines(), served }
        }

        async fn initialized() -> Self {
            let mut client = Self::new().await;
            let client_info = json!({"name": "a test", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info});
            let answer = client.ask("initialize", params).await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            client
        }

        async fn send(&mut self, line: &[u8]) {
            self.write.write_all(line).await.expect("the server reads");
            self.write.write_all(b"\n").await.expect("the server reads");
        }

        async fn answer(&mut self) -> Value {
            let line = self.read.next_line().await.expect("the server writes").expect("an answer");
            serde_json::from_str(&line).expect("JSON")
        }

        async fn ask(&mut self, method: &str, params: Value) -> Value {
            let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            self.send(request.to_string().as_bytes()).await;
            self.answer().await
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_answered_and_the_next_one_is_read() {
        let mut client = Client::initialized().await;
        client.send(&vec![b' '; 2 * MAX_MESSAGE_BYTES]).await;
        client.send(b"no JSON").await;
        assert_eq!(client.answer().await["error"]["data"]["code"], "body-too-large");
        let error = client.answer().await;
        assert_eq!(
            (&error["error"]["code"], &error["error"]["data"]["code"]),
            (&json!(-32700), &json!("request-malformed"))
        );
        assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    }

    #[tokio::test]
    async fn both_versions_are_spoken_and_an_older_one_is_answered_with_a_newer() {
        let mut old = Client::new().await;
        let info = json!({"name": "a test", "version": "1"});
        let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": info});
        assert_eq!(old.ask("initialize", params).await["result"]["protocolVersion"], "2025-11-25");
        let mut new = Client::new().await;
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": info,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let found = new.ask("server/discover", json!({"_meta": meta})).await;
        assert_eq!(found["result"]["supportedVersions"], json!(["2025-11-25", "2026-07-28"]), "{found}");
        let listed = new.ask("tools/list", json!({"_meta": meta})).await;
        assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(6), "{listed}");
    }

    /// A client may write as much as it likes: unread answers stop the reading.
    #[tokio::test]
    async fn answers_that_nobody_reads_hold_up_the_reading() {
        let (_ours, theirs) = tokio::io::duplex(1);
        let (input, output) = tokio::io::split(theirs);
        let mut lines = McpLineTransport::new(input, output);
        let mut send = || -> BoxFuture<'static, io::Result<()>> { Box::pin(lines.send(*message::too_long_response())) };
        let unread: Vec<_> = (0..UNSENT).map(|_| send()).collect();
        assert!(futures_util::poll!(Box::pin(lines.receive())).is_pending());
        assert_eq!(lines.unsent.available_permits(), 0);
        drop(unread);
        assert_eq!(lines.unsent.available_permits(), UNSENT);
    }

    #[tokio::test]
    async fn calls_wait_for_a_permit_and_return_it() {
        let calls = Arc::new(Semaphore::new(1));
        let ping = || message::parse_message(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).expect("a request");
        let first = attach_permit(ping(), &calls).await;
        let mut second = Box::pin(attach_permit(ping(), &calls));
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        second.await;
    }

    #[tokio::test]
    async fn a_client_that_goes_ends_the_service() {
        let Client { write, read, served } = Client::initialized().await;
        drop((write, read));
        assert_eq!(served.await.expect("no panic"), Ok(()));
        let mut client = Client::new().await;
        client.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        assert_eq!(client.served.await.expect("no panic"), Err(McpHandshakeError));
    }
}
