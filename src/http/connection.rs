//! One connection: HTTP/1 by hyper, with limits on the head of a request, and an end that loses no answer.
//!
//! hyper refuses a malformed or too large head with a bare 4xx, which no proxy takes for the gate's 200.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::timeout;

use super::write_timeout::WriteTimeout;
use crate::config::HttpConfig;

/// The least that hyper accepts as the size of its buffer, in bytes.
const LEAST_BUFFER: usize = 8 * 1024;

/// Most bytes of an unread request that are read and thrown away after its answer. To close a connection with unread
/// bytes makes the system reset it, and many clients then lose the answer.
const LINGER_BYTES: usize = 1 << 20;

/// Longest time that is spent on this.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// Serves one connection to its end. Once `ended` says so, the request in work is the last.
///
/// # Errors
/// The client's: it sent no HTTP, was too slow, or went away.
pub(super) async fn serve<S, H, F>(
    stream: S,
    limits: &HttpConfig,
    handle: H,
    mut ended: watch::Receiver<bool>,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Incoming>) -> F + Unpin,
    F: Future<Output = Response<Body>>,
{
    let service = service_fn(|request| {
        let answered = handle(request);
        Box::pin(async { Ok::<_, Infallible>(answered.await) })
    });
    let stream = TokioIo::new(WriteTimeout::new(stream, limits.read_timeout));
    let mut connection = builder(limits).serve_connection(stream, service);
    let finished = tokio::select! {
        finished = poll_fn(|context| connection.poll_without_shutdown(context)) => Some(finished),
        _ = ended.wait_for(|ended| *ended) => None,
    };
    let finished = match finished {
        Some(finished) => finished,
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|context| connection.poll_without_shutdown(context)).await
        }
    };
    if finished.as_ref().err().is_none_or(hyper::Error::is_parse) {
        linger(connection.into_parts().io.into_inner(), LINGER_TIME).await;
    }
    finished
}

/// hyper's settings. Its one timer for heads starts where the last answer ended, so it allows the time that a
/// connection may be idle and then the time that a head may take.
fn builder(limits: &HttpConfig) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.idle_timeout.saturating_add(limits.head_timeout))
        .max_headers(limits.headers)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(LEAST_BUFFER))
        // A client that has sent everything, and says so, still gets its answer.
        .half_close(true);
    http
}

/// Ends the sending side, then reads what the client still sends until it ends its own, [`LINGER_BYTES`] at most and
/// for `time` at most.
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin, time: Duration) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let discard = async {
        let mut unread = stream.take(LINGER_BYTES as u64);
        // An error means that the client has gone, which ends the wait as well.
        let _ = tokio::io::copy(&mut unread, &mut tokio::io::sink()).await;
    };
    // Past the time the connection is closed whatever is unread.
    let _ = timeout(time, discard).await;
}

#[cfg(test)]
mod tests;
