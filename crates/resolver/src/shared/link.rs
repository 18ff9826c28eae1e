//! The connection to the server, which may be down, slow, full or faulty.
//!
//! Every request has a time limit and a byte limit. After several consecutive failures the server is not asked for a
//! while, so that resolutions do not wait for it again and again. Connections are opened in the background, never by a
//! resolution.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, FromRedisValue, Pipeline, RedisConnectionInfo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::circuit::CircuitBreaker;
use super::value::MAX_VALUE_BYTES;
use crate::clock::Clock;
use crate::config::RedisConfig;
use crate::fetch::{ByteStream, Egress, TcpTlsOrUnixAddress};
use crate::telemetry;

/// Maximum number of concurrent requests: one for each cold resolution that a daemon runs by default, and as many more.
const MAX_QUESTIONS: usize = 64;

/// Maximum bytes of an answer without a value, and overhead of an answer with one.
const SHORT_ANSWER_BYTES: usize = 1024;

/// Maximum bytes of an answer with a value.
pub const VALUE_ANSWER_BYTES: usize = MAX_VALUE_BYTES + SHORT_ANSWER_BYTES;

/// Maximum bytes that may arrive unrequested: eight of the longest values, or hundreds of usual ones.
const MAX_UNREAD_BYTES: usize = 8 * VALUE_ANSWER_BYTES;

/// The connection and the state of the server.
pub struct RedisClient {
    reach: RedisConnector,
    clock: Arc<dyn Clock>,
    limit: Duration,
    questions: Semaphore,
    circuit: CircuitBreaker,
    connection: Mutex<RedisConnectionState>,
}

/// Address and credentials of the server.
pub struct RedisConnector {
    egress: Egress,
    place: TcpTlsOrUnixAddress,
    login: RedisConnectionInfo,
}

#[derive(Default)]
enum RedisConnectionState {
    #[default]
    None,
    Begun,
    Open(OpenRedisConnection),
}

#[derive(Clone)]
struct OpenRedisConnection {
    connection: MultiplexedConnection,
    budget: RedisReadBudget,
    _driver: Arc<AbortOnDrop>,
}

/// Aborts a task when its last owner is dropped.
pub struct AbortOnDrop(pub AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The server did not answer. The cause is counted where it is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedisUnavailableError;

impl RedisConnector {
    /// Reads the configuration. `None` if no server is configured.
    pub fn new(config: &RedisConfig, egress: Egress) -> Option<Self> {
        let url = config.url.as_ref()?;
        let mut login = RedisConnectionInfo::default().set_db(url.database().into()).set_skip_set_lib_name();
        if let Some(user) = url.user() {
            login = login.set_username(user);
        }
        if let Some(password) = url.password() {
            login = login.set_password(password);
        }
        Some(Self { egress, place: url.stream_address(), login })
    }

    async fn open_connection(&self) -> Result<OpenRedisConnection, RedisUnavailableError> {
        let stream = self.egress.connect_stream(&self.place).await.map_err(|error| {
            tracing::debug!(%error, "the shared cache cannot be reached");
            RedisUnavailableError
        })?;
        let budget = RedisReadBudget::default();
        let stream = ByteLimitedStream { stream, budget: budget.clone() };
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let made = MultiplexedConnection::new_with_config(&self.login, stream, config).await;
        let (connection, driver) = made.map_err(|error| {
            tracing::debug!(kind = ?error.kind(), "the shared tier refuses the connection");
            RedisUnavailableError
        })?;
        let driver = Arc::new(AbortOnDrop(tokio::spawn(driver).abort_handle()));
        Ok(OpenRedisConnection { connection, budget, _driver: driver })
    }
}

impl RedisClient {
    /// A link that is not yet connected. `limit` is the time limit of connecting.
    pub fn new(reach: RedisConnector, limit: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            reach,
            clock,
            limit,
            questions: Semaphore::new(MAX_QUESTIONS),
            circuit: CircuitBreaker::default(),
            connection: Mutex::default(),
        }
    }

    /// Sends `commands` and returns the server's short answer, if it arrives within `limit`. If there is no connection,
    /// one is opened in the background and this request fails.
    ///
    /// # Errors
    /// [`RedisUnavailableError`].
    pub async fn send_commands<T: FromRedisValue>(
        self: &Arc<Self>,
        commands: &Pipeline,
        limit: Duration,
    ) -> Result<T, RedisUnavailableError> {
        self.send_commands_with_limit(commands, limit, SHORT_ANSWER_BYTES).await
    }

    /// Like [`RedisClient::send_commands`], with a maximum answer length in bytes.
    ///
    /// # Errors
    /// [`RedisUnavailableError`].
    pub async fn send_commands_with_limit<T: FromRedisValue>(
        self: &Arc<Self>,
        commands: &Pipeline,
        limit: Duration,
        bytes: usize,
    ) -> Result<T, RedisUnavailableError> {
        let _place = self.questions.try_acquire().map_err(|_| RedisUnavailableError)?;
        let mut open = self.connection_or_connect().ok_or(RedisUnavailableError)?;
        open.budget.grant_bytes(bytes);
        let asked = timeout(limit, commands.query_async(&mut open.connection)).await;
        match asked {
            Ok(Ok(answer)) => {
                telemetry::set_redis_up(true);
                self.circuit.record_success();
                Ok(answer)
            }
            // The server is up but refuses: it is out of memory (`OOM`, which has no kind), is loading its data, or
            // forbids the command.
            Ok(Err(error)) if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
                tracing::debug!(code = error.code(), "the shared tier refuses a command");
                Err(RedisUnavailableError)
            }
            Ok(Err(_)) | Err(_) => {
                self.drop_connection();
                Err(RedisUnavailableError)
            }
        }
    }

    /// Tries to connect now.
    pub async fn connect(&self) {
        let opened = timeout(self.limit, self.reach.open_connection()).await.unwrap_or(Err(RedisUnavailableError));
        match opened {
            Ok(open) => {
                telemetry::set_redis_up(true);
                *self.lock_connection() = RedisConnectionState::Open(open);
            }
            Err(RedisUnavailableError) => self.drop_connection(),
        }
    }

    /// The connection, if there is one and the circuit is closed. Starts connecting if there is none.
    fn connection_or_connect(self: &Arc<Self>) -> Option<OpenRedisConnection> {
        if self.circuit.is_open(self.clock.now()) {
            return None;
        }
        let mut connection = self.lock_connection();
        match &*connection {
            RedisConnectionState::Open(open) => Some(open.clone()),
            RedisConnectionState::Begun => None,
            RedisConnectionState::None => {
                *connection = RedisConnectionState::Begun;
                let link = Arc::clone(self);
                tokio::spawn(async move { link.connect().await });
                None
            }
        }
    }

    /// Drops the connection: a late answer must not be taken for the answer to another request.
    fn drop_connection(&self) {
        telemetry::set_redis_up(false);
        *self.lock_connection() = RedisConnectionState::None;
        self.circuit.record_failure(self.clock.now());
    }

    fn lock_connection(&self) -> MutexGuard<'_, RedisConnectionState> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many more bytes may be read from the connection. The Redis client has no limit of its own.
#[derive(Clone)]
struct RedisReadBudget(Arc<AtomicUsize>);

impl Default for RedisReadBudget {
    /// Enough for the answers while the connection is set up.
    fn default() -> Self {
        Self(Arc::new(SHORT_ANSWER_BYTES.into()))
    }
}

impl RedisReadBudget {
    /// Permits `bytes` more bytes, up to [`MAX_UNREAD_BYTES`] in all.
    fn grant_bytes(&self, bytes: usize) {
        let more = |left: usize| Some(left.saturating_add(bytes).min(MAX_UNREAD_BYTES));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// Uses `bytes` of the budget. Returns false if less is left.
    fn consume_bytes(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// A stream that fails when the budget is exceeded.
struct ByteLimitedStream {
    stream: Box<dyn ByteStream>,
    budget: RedisReadBudget,
}

impl AsyncRead for ByteLimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        if self.budget.consume_bytes(read) || clresolve_core::mutant!("redis-answers-unbounded") {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(io::Error::other("more bytes than were asked for")))
    }
}

impl AsyncWrite for ByteLimitedStream {
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
