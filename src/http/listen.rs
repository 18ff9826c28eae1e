//! Connections: accepted up to a limit, cut when they stall, drained at the end.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
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
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::stall::StallGuard;
use super::{Shared, answer, router};

/// Longest head of a request, in bytes: a name of 255 bytes may take 9 bytes a character when percent-encoded, and
/// proxies add headers of their own; 16 KiB is also what most servers allow.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// Most headers of a request; more than any proxy sends.
const MAX_HEADERS: usize = 64;

/// Pause after a connection could not be accepted (no file descriptors are left): trying at once would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Who asks, as far as limits per client go: an address, or the first 64 bits of one of IPv6, which one customer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Client(pub(super) IpAddr);

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
            four @ IpAddr::V4(_) => four,
        })
    }
}

/// Serves until `stop` ends, then drains.
pub(super) async fn run(listener: TcpListener, shared: Arc<Shared>, stop: impl Future<Output = ()>) {
    let (end, ended) = watch::channel(false);
    let mut floor = Floor {
        router: router(Arc::clone(&shared)),
        slots: Arc::new(Semaphore::new(shared.http.connections)),
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
        let (router, shared, ended) = (self.router.clone(), Arc::clone(&self.shared), self.ended.clone());
        self.connections.spawn(async move {
            connection(stream, client, router, shared, ended).await;
            drop(slot);
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
    let limit = shared.http.read_timeout;
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, shared) = (router.clone(), Arc::clone(&shared));
        async move {
            let started = Instant::now();
            let response = answer::answer(&shared, router, client, request.map(Body::new), started).await;
            Ok::<Response<Body>, Infallible>(response)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limit).max_buf_size(MAX_HEAD_BYTES).max_headers(MAX_HEADERS);
    let mut serving = pin!(http.serve_connection(TokioIo::new(StallGuard::new(stream, limit)), service));
    // An error here is the client's: it went away, sent what is not HTTP, or was too slow.
    tokio::select! {
        _ = &mut serving => return,
        _ = ended.wait_for(|ended| *ended) => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_ipv6_is_its_network() {
        let client = |text: &str| Client::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
        assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
    }
}
