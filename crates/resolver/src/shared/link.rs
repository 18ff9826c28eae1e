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

use super::circuit::Circuit;
use super::value::MAX_VALUE_BYTES;
use crate::clock::Clock;
use crate::config::RedisConfig;
use crate::fetch::{ByteStream, Egress, StreamTo};
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
pub struct Link {
    reach: Reach,
    clock: Arc<dyn Clock>,
    limit: Duration,
    questions: Semaphore,
    circuit: Circuit,
    connection: Mutex<Connection>,
}

/// Address and credentials of the server.
pub struct Reach {
    egress: Egress,
    place: StreamTo,
    login: RedisConnectionInfo,
}

#[derive(Default)]
enum Connection {
    #[default]
    None,
    Begun,
    Open(Open),
}

#[derive(Clone)]
struct Open {
    connection: MultiplexedConnection,
    allowance: Allowance,
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
pub struct Gone;

impl Reach {
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
        Some(Self { egress, place: url.place(), login })
    }

    async fn open(&self) -> Result<Open, Gone> {
        let stream = self.egress.operator_stream(&self.place).await.map_err(|error| {
            tracing::debug!(%error, "the shared cache cannot be reached");
            Gone
        })?;
        let allowance = Allowance::default();
        let stream = ByteLimitedStream { stream, allowance: allowance.clone() };
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let made = MultiplexedConnection::new_with_config(&self.login, stream, config).await;
        let (connection, driver) = made.map_err(|error| {
            tracing::debug!(kind = ?error.kind(), "the shared tier refuses the connection");
            Gone
        })?;
        let driver = Arc::new(AbortOnDrop(tokio::spawn(driver).abort_handle()));
        Ok(Open { connection, allowance, _driver: driver })
    }
}

impl Link {
    /// A link that is not yet connected. `limit` is the time limit of connecting.
    pub fn new(reach: Reach, limit: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            reach,
            clock,
            limit,
            questions: Semaphore::new(MAX_QUESTIONS),
            circuit: Circuit::default(),
            connection: Mutex::default(),
        }
    }

    /// Sends `commands` and returns the server's short answer, if it arrives within `limit`. If there is no connection,
    /// one is opened in the background and this request fails.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn ask<T: FromRedisValue>(self: &Arc<Self>, commands: &Pipeline, limit: Duration) -> Result<T, Gone> {
        self.ask_at_length(commands, limit, SHORT_ANSWER_BYTES).await
    }

    /// Like [`Link::ask`], with a maximum answer length in bytes.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn ask_at_length<T: FromRedisValue>(
        self: &Arc<Self>,
        commands: &Pipeline,
        limit: Duration,
        bytes: usize,
    ) -> Result<T, Gone> {
        let _place = self.questions.try_acquire().map_err(|_| Gone)?;
        let mut open = self.opened().ok_or(Gone)?;
        open.allowance.grant(bytes);
        let asked = timeout(limit, commands.query_async(&mut open.connection)).await;
        match asked {
            Ok(Ok(answer)) => {
                telemetry::redis_is_up(true);
                self.circuit.succeeded();
                Ok(answer)
            }
            // The server is up but refuses: it is out of memory (`OOM`, which has no kind), is loading its data, or
            // forbids the command.
            Ok(Err(error)) if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => {
                tracing::debug!(code = error.code(), "the shared tier refuses a command");
                Err(Gone)
            }
            Ok(Err(_)) | Err(_) => {
                self.failed();
                Err(Gone)
            }
        }
    }

    /// Tries to connect now.
    pub async fn connect(&self) {
        let opened = timeout(self.limit, self.reach.open()).await.unwrap_or(Err(Gone));
        match opened {
            Ok(open) => {
                telemetry::redis_is_up(true);
                *self.connection() = Connection::Open(open);
            }
            Err(Gone) => self.failed(),
        }
    }

    /// The connection, if there is one and the circuit is closed. Starts connecting if there is none.
    fn opened(self: &Arc<Self>) -> Option<Open> {
        if self.circuit.rests(self.clock.now()) {
            return None;
        }
        let mut connection = self.connection();
        match &*connection {
            Connection::Open(open) => Some(open.clone()),
            Connection::Begun => None,
            Connection::None => {
                *connection = Connection::Begun;
                let link = Arc::clone(self);
                tokio::spawn(async move { link.connect().await });
                None
            }
        }
    }

    /// Drops the connection: a late answer must not be taken for the answer to another request.
    fn failed(&self) {
        telemetry::redis_is_up(false);
        *self.connection() = Connection::None;
        self.circuit.failed(self.clock.now());
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many more bytes may be read from the connection. The Redis client has no limit of its own.
#[derive(Clone)]
struct Allowance(Arc<AtomicUsize>);

impl Default for Allowance {
    /// Enough for the answers while the connection is set up.
    fn default() -> Self {
        Self(Arc::new(SHORT_ANSWER_BYTES.into()))
    }
}

impl Allowance {
    /// Permits `bytes` more bytes, up to [`MAX_UNREAD_BYTES`] in all.
    fn grant(&self, bytes: usize) {
        let more = |left: usize| Some(left.saturating_add(bytes).min(MAX_UNREAD_BYTES));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// Uses `bytes` of the allowance. Returns false if less is left.
    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// A stream that ends when the allowance is exceeded.
struct ByteLimitedStream {
    stream: Box<dyn ByteStream>,
    allowance: Allowance,
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
        if self.allowance.take(read) || clresolve_core::mutant!("redis-answers-unbounded") {
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
