//! Connections: accepted up to a limit, and drained at the end.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::client_limits::{Client, ClientLimits};
use super::state::AppState;
use super::{connection, request};
use crate::telemetry;

/// Pause after a connection could not be accepted (no file descriptors are left): trying at once would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` ends, then drains.
pub(super) async fn run(listener: TcpListener, router: Router, state: Arc<AppState>, stop: impl Future<Output = ()>) {
    let (end, ended) = watch::channel(false);
    let mut connections = ConnectionSet {
        router,
        slots: Arc::new(Semaphore::new(state.http.connections)),
        per_client: ClientLimits::new(state.http.connections_per_client),
        open: JoinSet::new(),
        ended,
        state: Arc::clone(&state),
    };
    connections.accept_until(&listener, stop).await;

    tracing::info!("draining");
    state.drain();
    connections.accept_until(&listener, sleep(state.http.drain_notice)).await;
    drop(listener);
    end.send_replace(true);
    let all_done = async { while connections.open.join_next().await.is_some() {} };
    if timeout(state.http.drain, all_done).await.is_err() {
        tracing::warn!(cut = connections.open.len(), "the time for draining is over");
    }
}

/// The open connections, and what a new one needs.
struct ConnectionSet {
    router: Router,
    slots: Arc<Semaphore>,
    per_client: ClientLimits,
    open: JoinSet<()>,
    ended: watch::Receiver<bool>,
    state: Arc<AppState>,
}

impl ConnectionSet {
    async fn accept_until(&mut self, listener: &TcpListener, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => return,
                Some(_) = self.open.join_next() => {}
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
        let Some(permit) = self.per_client.take(client) else {
            telemetry::connection_refused();
            tracing::debug!(client = %client.0, "a connection was closed: its client has too many");
            return;
        };
        let (router, state, ended) = (self.router.clone(), Arc::clone(&self.state), self.ended.clone());
        self.open.spawn(async move {
            serve(stream, client, router, state, ended).await;
            drop((permit, slot));
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

async fn serve(stream: TcpStream, client: Client, router: Router, state: Arc<AppState>, ended: watch::Receiver<bool>) {
    // Without it small answers may wait for the client's acknowledgement; they arrive all the same.
    let _ = stream.set_nodelay(true);
    let _open = telemetry::connection_opens();
    let limits = state.http;
    let handle = |received: hyper::Request<hyper::body::Incoming>| {
        let (router, state) = (router.clone(), Arc::clone(&state));
        async move { request::answer(&state, router, client, received.map(Body::new)).await }
    };
    match connection::serve(stream, &limits, handle, ended).await {
        Err(error) if error.is_parse() => {
            telemetry::head_refused();
            tracing::info!(%error, client = %client.0, "the head of a request was refused");
        }
        // Any other error means that the client was too slow or went away.
        Ok(()) | Err(_) => {}
    }
}
