//! Connections: accepted up to a limit, cut when they stall, drained at the end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::front::Front;
use super::shares::{Client, Shares};
use super::stall::StallGuard;
use super::{Shared, answer, router};
use crate::telemetry;

/// The least that hyper accepts as the size of its buffer, in bytes.
const LEAST_BUFFER: usize = 8 * 1024;

/// Pause after a connection could not be accepted (no file descriptors are left): trying at once would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` ends, then drains.
pub(super) async fn run(listener: TcpListener, shared: Arc<Shared>, stop: impl Future<Output = ()>) {
    let (end, ended) = watch::channel(false);
    let mut floor = Floor {
        router: router(Arc::clone(&shared)),
        slots: Arc::new(Semaphore::new(shared.http.connections)),
        shares: Shares::new(shared.http.connections_per_client),
        connections: JoinSet::new(),
        ended,
        shared: Arc::clone(&shared),
    };
    floor.accept_until(&listener, stop).await;

    tracing::info!("draining");
    shared.draining.store(true, Ordering::Relaxed);
    floor.accept_until(&listener, sleep(shared.http.drain_notice)).await;
    drop(listener);
    end.send_replace(true);
    let all_done = async { while floor.connections.join_next().await.is_some() {} };
    if timeout(shared.http.drain, all_done).await.is_err() {
        tracing::warn!(cut = floor.connections.len(), "the time for draining is over");
    }
}

/// The connections, and what a new one needs.
struct Floor {
    router: Router,
    slots: Arc<Semaphore>,
    shares: Shares,
    connections: JoinSet<()>,
    ended: watch::Receiver<bool>,
    shared: Arc<Shared>,
}

impl Floor {
    async fn accept_until(&mut self, listener: &TcpListener, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                Some(_) = self.connections.join_next() => {}
                accepted = accept(listener, &self.slots) => match accepted {
                    Ok((stream, client, slot)) => self.start(stream, client, slot),
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
    }

    fn start(&mut self, stream: TcpStream, client: Client, slot: OwnedSemaphorePermit) {
        let Some(share) = self.shares.take(client) else {
            telemetry::connection_refused();
            tracing::debug!(client = %client.0, "a connection was closed: its client has too many");
            return;
        };
        let (router, shared, ended) = (self.router.clone(), Arc::clone(&self.shared), self.ended.clone());
        self.connections.spawn(async move {
            connection(stream, client, router, shared, ended).await;
            drop((share, slot));
        });
    }
}

/// The next connection, once there is a slot for it.
async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, Client, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.expect("the slots are never closed");
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer.ip().into(), slot))
}

async fn connection(
    stream: TcpStream,
    client: Client,
    router: Router,
    shared: Arc<Shared>,
    mut ended: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let _open = telemetry::connection_opens();
    let limits = shared.http;
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, shared) = (router.clone(), Arc::clone(&shared));
        async move {
            let started = Instant::now();
            let response = answer::answer(&shared, router, client, request.map(Body::new), started).await;
            Ok::<Response<Body>, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    // Heads are judged, and timed, before they come here. A client that has sent all that it will still gets its answer.
    http.header_read_timeout(None).max_headers(limits.headers).half_close(true);
    http.max_buf_size(limits.head_bytes.max(LEAST_BUFFER));
    let front = Front::new(StallGuard::new(stream, limits.read_timeout), client, limits);
    let mut serving = pin!(http.serve_connection(TokioIo::new(front), service));
    // An error here is the client's: it went away, or was too slow.
    tokio::select! {
        _ = &mut serving => return,
        _ = ended.wait_for(|ended| *ended) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}
