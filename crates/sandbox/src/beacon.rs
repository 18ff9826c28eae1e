//! The sandbox's beacon chain: it signs the blocks of the EVM chain, and serves the beacon API for light clients on
//! loopback.
//!
//! [`SandboxBeaconChain`] is the chain. [`SandboxBeaconServer`] is one endpoint of it, with the behaviour that a test
//! needs.

mod behaviour;
mod chain;
mod signer;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use bytes::Bytes;
use clresolve_beacon::{ConsensusFork, LightClientCodec};
use futures_util::stream;
use jiff::Timestamp;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::form_urlencoded;

pub use self::behaviour::SandboxBeaconBehaviour;

use self::chain::LazySandboxBeaconChain;
use crate::chain::SandboxChain;

/// Maximum number of updates in a response, as in the beacon API.
const MAX_UPDATES: u64 = 128;

/// The fork of the whole chain.
const FORK: ConsensusFork = ConsensusFork::Electra;

/// A part of an endless response.
const ENDLESS_PART: &[u8] = &[b'['; 1024];

/// The beacon chain beside an EVM chain. Its keys are public. It derives them for the first signature.
#[derive(Clone)]
pub struct SandboxBeaconChain {
    chain: Arc<Mutex<LazySandboxBeaconChain>>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl SandboxBeaconChain {
    /// A beacon chain whose checkpoint has the finalized block of `chain`.
    pub fn new(chain: Arc<SandboxChain>) -> Self {
        Self { chain: Arc::new(Mutex::new(LazySandboxBeaconChain::new(chain))), clock: Arc::new(Timestamp::now) }
    }

    /// Replaces the clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self { clock, ..self }
    }

    /// Signs the blocks of another chain from the next request on.
    pub fn follow_chain(&self, chain: Arc<SandboxChain>) {
        self.chain().follow_chain(chain);
    }

    /// The block root from which a light client can start.
    pub fn checkpoint_root(&self) -> B256 {
        self.chain().checkpoint_root()
    }

    /// Starts an endpoint on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start_server(&self, behaviour: SandboxBeaconBehaviour) -> io::Result<SandboxBeaconServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let router = beacon_router(SandboxBeaconApiState { beacon: self.clone(), behaviour });
        let task = tokio::spawn(async move {
            // `serve` retries after an error, so it ends only with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(SandboxBeaconServer { address, task })
    }

    fn chain(&self) -> MutexGuard<'_, LazySandboxBeaconChain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running endpoint. Dropping it stops the server.
#[derive(Debug)]
pub struct SandboxBeaconServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl SandboxBeaconServer {
    /// The base URL, without `/eth/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for SandboxBeaconServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The endpoints of a sandbox's beacon chain.
pub(crate) struct SandboxBeaconServers {
    beacon: SandboxBeaconChain,
    honest: SandboxBeaconServer,
    /// Further endpoints keep running.
    further: Mutex<Vec<SandboxBeaconServer>>,
}

impl SandboxBeaconServers {
    /// Starts an honest endpoint.
    pub(crate) async fn start(chain: Arc<SandboxChain>) -> io::Result<Self> {
        let beacon = SandboxBeaconChain::new(chain);
        let honest = beacon.start_server(SandboxBeaconBehaviour::Honest).await?;
        Ok(Self { beacon, honest, further: Mutex::default() })
    }

    pub(crate) fn follow_chain(&self, chain: Arc<SandboxChain>) {
        self.beacon.follow_chain(chain);
    }

    pub(crate) fn checkpoint_root(&self) -> B256 {
        self.beacon.checkpoint_root()
    }

    /// The URL of the honest endpoint.
    pub(crate) fn honest_url(&self) -> String {
        self.honest.url()
    }

    /// Starts an endpoint that behaves like this, and returns its URL.
    pub(crate) async fn start_endpoint(&self, behaviour: SandboxBeaconBehaviour) -> io::Result<String> {
        let server = self.beacon.start_server(behaviour).await?;
        let url = server.url();
        self.further.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        Ok(url)
    }
}

fn beacon_router(api: SandboxBeaconApiState) -> Router {
    let routes = Router::new()
        .route("/bootstrap/{root}", get(serve_bootstrap))
        .route("/updates", get(serve_updates))
        .route("/finality_update", get(serve_finality_update))
        .route("/optimistic_update", get(serve_optimistic_update));
    Router::new().nest("/eth/v1/beacon/light_client", routes).with_state(api)
}

/// What an endpoint answers.
#[derive(Clone)]
struct SandboxBeaconApiState {
    beacon: SandboxBeaconChain,
    behaviour: SandboxBeaconBehaviour,
}

/// Reads a number from a query.
fn query_number(query: &str, key: &str) -> Option<u64> {
    form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == key)?.1.parse().ok()
}

async fn serve_bootstrap(State(api): State<SandboxBeaconApiState>, Path(root): Path<String>) -> Response {
    if api.behaviour == SandboxBeaconBehaviour::Silent {
        return pending().await;
    }
    api.answer_blocking(move |chain, _| chain.bootstrap(root.parse().ok()?).map(|found| found.to_json(FORK))).await
}

async fn serve_updates(State(api): State<SandboxBeaconApiState>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let (Some(first), Some(count)) = (query_number(&query, "start_period"), query_number(&query, "count")) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    api.answer_or_stall(move |chain, behaviour, now| {
        let periods = first..first.saturating_add(count.min(MAX_UPDATES));
        let found = periods.map_while(|period| chain.light_client_update(period, now, behaviour));
        Some(found.map(|update| update.to_json(FORK)).collect())
    })
    .await
}

async fn serve_finality_update(State(api): State<SandboxBeaconApiState>) -> Response {
    api.answer_or_stall(|chain, behaviour, _| Some(chain.finality_update(behaviour).to_json(FORK))).await
}

async fn serve_optimistic_update(State(api): State<SandboxBeaconApiState>) -> Response {
    api.answer_or_stall(|chain, behaviour, _| Some(chain.optimistic_update(behaviour).to_json(FORK))).await
}

impl SandboxBeaconApiState {
    async fn answer_or_stall(
        self,
        find: impl FnOnce(&mut LazySandboxBeaconChain, SandboxBeaconBehaviour, Timestamp) -> Option<Value> + Send + 'static,
    ) -> Response {
        match self.behaviour {
            SandboxBeaconBehaviour::Silent => pending().await,
            SandboxBeaconBehaviour::Endless => endless_response(),
            behaviour => self.answer_blocking(move |chain, now| find(chain, behaviour, now)).await,
        }
    }

    /// Answers in a thread for blocking work, since it signs.
    async fn answer_blocking(
        self,
        find: impl FnOnce(&mut LazySandboxBeaconChain, Timestamp) -> Option<Value> + Send + 'static,
    ) -> Response {
        let now = (self.beacon.clock)();
        match tokio::task::spawn_blocking(move || find(&mut self.beacon.chain(), now)).await {
            Ok(Some(found)) => Json(found).into_response(),
            Ok(None) => StatusCode::NOT_FOUND.into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

fn endless_response() -> Response {
    let parts = stream::repeat(Ok::<_, Infallible>(Bytes::from_static(ENDLESS_PART)));
    ([(CONTENT_TYPE, "application/json")], Body::from_stream(parts)).into_response()
}
