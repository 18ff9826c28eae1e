//! Serves one HTTP/1 connection with hyper. It limits the request head and closes without losing a response, unless the
//! connection has to make room for another.
//!
//! hyper rejects a malformed or oversized head with a bare 4xx, which no proxy mistakes for the gate's 200.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use clresolve_resolver::config::HttpServerConfig;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::activity::{ConnectionActivity, TrackedRequestBody, TrackedResponseBody, TrackedStream};
use super::write_timeout::WriteTimeoutStream;

/// The smallest buffer size that hyper accepts, in bytes.
const LEAST_BUFFER: usize = 8 * 1024;

/// Maximum number of bytes of an unread request that are read and discarded after its response. Closing a connection
/// with unread bytes makes the operating system reset it, and many clients then lose the response.
const LINGER_BYTES: usize = 1 << 20;

/// Maximum time spent on discarding them.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// The response to a head that is not complete in time. It is as bare as hyper's own rejections. A proxy treats it as a
/// denial, unlike a connection that closes silently.
const HEAD_IS_LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

enum ConnectionEnd {
    /// The client closed it, or hyper finished it.
    Finished(hyper::Result<()>),
    /// The client's head was not complete in time.
    HeadIsLate,
    /// The daemon is shutting down: the request in progress is the last.
    Told,
    /// The daemon needs the connection's slot for another one, and this one is waiting for its client.
    MakesRoom,
}

/// Serves one connection until it ends. Once `ended` signals shutdown, or the connection must make room, the request in
/// progress is the last.
///
/// # Errors
/// Returns client errors: the client did not speak HTTP, was too slow, or disconnected.
pub(super) async fn serve_connection<S, H, F>(
    stream: S,
    limits: &HttpServerConfig,
    activity: &Arc<ConnectionActivity>,
    handle: H,
    mut ended: watch::Receiver<bool>,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Body>) -> F + Unpin,
    F: Future<Output = Response<Body>>,
{
    let service = service_fn(|request: Request<Incoming>| {
        let activity = Arc::clone(activity);
        let answered = handle(request.map(|body| Body::new(TrackedRequestBody::new(body, Arc::clone(&activity)))));
        Box::pin(async {
            let response = answered.await;
            Ok::<_, Infallible>(response.map(|body| TrackedResponseBody::new(body, activity)))
        })
    });
    let stream = TrackedStream::new(WriteTimeoutStream::new(stream, limits.read_timeout), Arc::clone(activity));
    let mut connection = http1_builder(limits).serve_connection(TokioIo::new(stream), service);
    let end = {
        let mut told = pin!(async {
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => ConnectionEnd::Told,
                () = activity.wait_for_close_request() => ConnectionEnd::MakesRoom,
            }
        });
        let mut due = pin!(sleep_until(Instant::now()));
        let mut is_told = false;
        poll_fn(|context| {
            loop {
                if let Poll::Ready(finished) = connection.poll_without_shutdown(context) {
                    return Poll::Ready(ConnectionEnd::Finished(finished));
                }
                if let Poll::Ready(end) = told.as_mut().poll(context) {
                    return Poll::Ready(end);
                }
                if is_told || !activity.closes_after_response() {
                    break;
                }
                is_told = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            // The connection's activity changes only while the connection is polled, so the deadline is recomputed
            // after each poll.
            let Some(head_is_due) = activity.head_deadline(limits.idle_timeout, limits.head_timeout) else {
                return Poll::Pending;
            };
            if due.deadline() != head_is_due {
                due.as_mut().reset(head_is_due);
            }
            due.as_mut().poll(context).map(|()| ConnectionEnd::HeadIsLate)
        })
        .await
    };
    let finished = match end {
        ConnectionEnd::Finished(finished) => finished,
        ConnectionEnd::HeadIsLate => {
            let mut stream = connection.into_parts().io.into_inner();
            if activity.may_send_error_response() && stream.write_all(HEAD_IS_LATE).await.is_ok() {
                linger_for_client(stream, activity).await;
            }
            return Ok(());
        }
        ConnectionEnd::MakesRoom => return Ok(()),
        ConnectionEnd::Told => {
            Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|context| connection.poll_without_shutdown(context)).await
        }
    };
    // A connection that makes room does not linger: a client that pipelined requests may lose its last response.
    if !activity.closes_after_response() && finished.as_ref().err().is_none_or(hyper::Error::is_parse) {
        linger_for_client(connection.into_parts().io.into_inner(), activity).await;
    }
    finished
}

/// hyper's settings. hyper's own head timer starts when the last response ended, so [`serve_connection`] implements one
/// instead.
fn http1_builder(limits: &HttpServerConfig) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.header_read_timeout(None)
        .max_headers(limits.headers)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(LEAST_BUFFER))
        // A client that has closed its sending side still gets its response.
        .half_close(true);
    http
}

/// Lingers for a client whose response is written, until the connection has to make room.
async fn linger_for_client(stream: impl AsyncRead + AsyncWrite + Unpin, activity: &ConnectionActivity) {
    tokio::select! {
        () = linger_before_close(stream, LINGER_TIME) => {}
        () = activity.wait_for_close_request(), if !clresolve_core::mutant!("lingering-connections-stay") => {}
    }
}

/// Shuts down the write side, then reads until the client shuts down its own, but at most [`LINGER_BYTES`] and for at
/// most `time`.
async fn linger_before_close(mut stream: impl AsyncRead + AsyncWrite + Unpin, time: Duration) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let discard = async {
        let mut unread = stream.take(LINGER_BYTES as u64);
        // An error means that the client has disconnected, which ends the wait as well.
        let _ = tokio::io::copy(&mut unread, &mut tokio::io::sink()).await;
    };
    // After the timeout the connection is closed, even with bytes unread.
    let _ = timeout(time, discard).await;
}

#[cfg(test)]
mod tests;
