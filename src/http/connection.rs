//! One connection: HTTP/1 by hyper, with limits on the head of a request, and an end that loses no answer, unless the
//! connection has to make room.
//!
//! hyper refuses a malformed or too large head with a bare 4xx, which no proxy takes for the gate's 200.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::activity::{Activity, ArrivingBody, Watched, WatchedBody};
use super::write_timeout::WriteTimeout;
use crate::config::HttpConfig;

/// The least that hyper accepts as the size of its buffer, in bytes.
const LEAST_BUFFER: usize = 8 * 1024;

/// Most bytes of an unread request that are read and thrown away after its answer. To close a connection with unread
/// bytes makes the system reset it, and many clients then lose the answer.
const LINGER_BYTES: usize = 1 << 20;

/// Longest time that is spent on this.
const LINGER_TIME: Duration = Duration::from_secs(2);

/// The answer to a head that does not end in time. As bare as hyper's own refusals, and a denial for each proxy, which
/// silence is not.
const HEAD_IS_LATE: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// How a connection is told to end.
enum End {
    /// By itself or by its client.
    Finished(hyper::Result<()>),
    /// By its client, whose head is late.
    HeadIsLate,
    /// By the daemon, which ends: the request in work is the last.
    Told,
    /// By the daemon, which needs its place for another. It waits for its client.
    MakesRoom,
}

/// Serves one connection to its end. Once `ended` says so, or the connection makes room, the request in work is the
/// last.
///
/// # Errors
/// The client's: it sent no HTTP, was too slow, or went away.
pub(super) async fn serve<S, H, F>(
    stream: S,
    limits: &HttpConfig,
    activity: &Arc<Activity>,
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
        let answered = handle(request.map(|body| Body::new(ArrivingBody::new(body, Arc::clone(&activity)))));
        Box::pin(async {
            let response = answered.await;
            Ok::<_, Infallible>(response.map(|body| WatchedBody::new(body, activity)))
        })
    });
    let stream = Watched::new(WriteTimeout::new(stream, limits.read_timeout), Arc::clone(activity));
    let mut connection = builder(limits).serve_connection(TokioIo::new(stream), service);
    let end = {
        let mut told = pin!(async {
            tokio::select! {
                _ = ended.wait_for(|ended| *ended) => End::Told,
                () = activity.told_to_make_room() => End::MakesRoom,
            }
        });
        let mut due = pin!(sleep_until(Instant::now()));
        let mut is_told = false;
        poll_fn(|context| {
            loop {
                if let Poll::Ready(finished) = connection.poll_without_shutdown(context) {
                    return Poll::Ready(End::Finished(finished));
                }
                if let Poll::Ready(end) = told.as_mut().poll(context) {
                    return Poll::Ready(end);
                }
                if is_told || !activity.ends_after_answer() {
                    break;
                }
                is_told = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            // What the connection does changes only while it is polled, so the time is set anew after each poll.
            let Some(head_is_due) = activity.head_is_due(limits.idle_timeout, limits.head_timeout) else {
                return Poll::Pending;
            };
            if due.deadline() != head_is_due {
                due.as_mut().reset(head_is_due);
            }
            due.as_mut().poll(context).map(|()| End::HeadIsLate)
        })
        .await
    };
    let finished = match end {
        End::Finished(finished) => finished,
        End::HeadIsLate => {
            let mut stream = connection.into_parts().io.into_inner();
            if activity.can_be_refused() && stream.write_all(HEAD_IS_LATE).await.is_ok() {
                linger_for(stream, activity).await;
            }
            return Ok(());
        }
        End::MakesRoom => return Ok(()),
        End::Told => {
            Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|context| connection.poll_without_shutdown(context)).await
        }
    };
    // What makes room is waited for: a client that sent ahead may lose its last answer.
    if !activity.ends_after_answer() && finished.as_ref().err().is_none_or(hyper::Error::is_parse) {
        linger_for(connection.into_parts().io.into_inner(), activity).await;
    }
    finished
}

/// hyper's settings. Its own timer for heads starts where the last answer ended, so [`serve`] has one instead.
fn builder(limits: &HttpConfig) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.header_read_timeout(None)
        .max_headers(limits.headers)
        .max_header_size(limits.head_bytes)
        .max_buf_size(limits.head_bytes.max(LEAST_BUFFER))
        // A client that has sent everything, and says so, still gets its answer.
        .half_close(true);
    http
}

/// Lingers for a client whose answer is written, until the connection is told to make room.
async fn linger_for(stream: impl AsyncRead + AsyncWrite + Unpin, activity: &Activity) {
    tokio::select! {
        () = linger(stream, LINGER_TIME) => {}
        () = activity.told_to_make_room(), if !clresolve_core::mutant!("lingering-connections-stay") => {}
    }
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
