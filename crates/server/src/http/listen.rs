//! Listeners: they accept connections, serve them, and drain them at shutdown.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use clresolve_resolver::telemetry;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::activity::ConnectionActivity;
use super::api_kind::ListenerApiScope;
use super::client_limits::ClientIdentity;
use super::connection_set::{BoundedConnectionSet, ConnectionSetMember};
use super::in_force::CurrentService;
use super::listener::{Listener, SocketStream};
use super::{connection, request};

/// Pause after accepting a connection failed (no file descriptors left). Retrying at once would busy-loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves on all listeners until `stop` completes, then drains.
pub(super) async fn serve_listeners(
    listeners: impl IntoIterator<Item = (Listener, ListenerApiScope)>,
    in_force: Arc<CurrentService>,
    stop: impl Future<Output = ()>,
) {
    let (close, closed) = watch::channel(false);
    let (end, ended) = watch::channel(false);
    let mut open = JoinSet::new();
    for (listener, role) in listeners {
        let set = BoundedConnectionSet::new(&in_force.state().http);
        let service = ListenerContext { role, in_force: Arc::clone(&in_force), ended: ended.clone() };
        open.spawn(accept_until_closed(listener, set, service, closed.clone()));
    }
    stop.await;

    tracing::info!("draining");
    let state = in_force.state();
    state.announce_drain();
    sleep(state.http.drain_notice).await;
    close.send_replace(true);
    end.send_replace(true);
    let all_done = async { while open.join_next().await.is_some() {} };
    if timeout(state.http.drain, all_done).await.is_err() {
        tracing::warn!("the drain timeout has expired; closing connections with requests in progress");
    }
}

/// What is needed to serve a connection.
#[derive(Clone)]
struct ListenerContext {
    role: ListenerApiScope,
    in_force: Arc<CurrentService>,
    ended: watch::Receiver<bool>,
}

/// Accepts connections until the listener is closed, then waits for the open ones.
async fn accept_until_closed(
    listener: Listener,
    set: BoundedConnectionSet,
    service: ListenerContext,
    mut closed: watch::Receiver<bool>,
) {
    let mut open = JoinSet::new();
    {
        let mut closed = pin!(closed.wait_for(|closed| *closed));
        let mut arriving = pin!(accept_admitted_connection(&listener, &set));
        loop {
            tokio::select! {
                _ = &mut closed => break,
                Some(_) = open.join_next() => {}
                (stream, client, member) = &mut arriving => {
                    open.spawn(serve_stream(stream, client, member, service.clone()));
                    arriving.set(accept_admitted_connection(&listener, &set));
                }
            }
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

/// The next connection, once the set has room for it.
async fn accept_admitted_connection(
    listener: &Listener,
    set: &BoundedConnectionSet,
) -> (SocketStream, ClientIdentity, ConnectionSetMember) {
    loop {
        let (stream, client) = match listener.accept().await {
            Ok(arrived) => arrived,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Some(member) = set.admit_connection(client).await {
            return (stream, client, member);
        }
        telemetry::count_refused_connection();
        tracing::debug!(client = %client, "a connection was closed: its client has too many");
    }
}

async fn serve_stream(
    stream: SocketStream,
    client: ClientIdentity,
    member: ConnectionSetMember,
    service: ListenerContext,
) {
    match stream {
        SocketStream::Tcp(stream) => serve_http_stream(stream, client, member, service).await,
        #[cfg(unix)]
        SocketStream::Unix(stream) => serve_http_stream(stream, client, member, service).await,
    }
}

async fn serve_http_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    client: ClientIdentity,
    member: ConnectionSetMember,
    service: ListenerContext,
) {
    let _open = telemetry::track_open_connection();
    let ListenerContext { role, in_force, ended } = service;
    let limits = in_force.state().http.clone();
    let activity: &Arc<ConnectionActivity> = &member.activity;
    let handle = |request: hyper::Request<Body>| {
        let (in_force, activity) = (Arc::clone(&in_force), Arc::clone(activity));
        async move { request::answer_request(&in_force, role, client, &activity, request).await }
    };
    match connection::serve_connection(stream, &limits, activity, handle, ended).await {
        Err(error) if error.is_parse() => {
            telemetry::count_refused_request_head();
            tracing::info!(%error, client = %client, "the head of a request was refused");
        }
        // Any other error means that the client was too slow or disconnected.
        Ok(()) | Err(_) => {}
    }
}
