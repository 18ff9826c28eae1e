//! The sandbox's beacon chain: it signs the blocks of the EVM chain, and serves the beacon API for light clients on
//! loopback.
//!
//! [`SandboxBeaconChain`] is the chain. [`BeaconServer`] is one endpoint of it, with the behaviour that a test needs.

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

pub use self::behaviour::BeaconBehaviour;

use self::chain::BeaconChain;
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
    chain: Arc<Mutex<BeaconChain>>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl SandboxBeaconChain {
    /// A beacon chain whose checkpoint has the finalized block of `chain`.
    pub fn new(chain: Arc<SandboxChain>) -> Self {
        Self { chain: Arc::new(Mutex::new(BeaconChain::new(chain))), clock: Arc::new(Timestamp::now) }
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
    pub fn checkpoint(&self) -> B256 {
        self.chain().checkpoint()
    }

    /// Starts an endpoint on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn serve(&self, behaviour: BeaconBehaviour) -> io::Result<BeaconServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let router = router(BeaconApiState { beacon: self.clone(), behaviour });
        let task = tokio::spawn(async move {
            // `serve` retries after an error, so it ends only with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(BeaconServer { address, task })
    }

    fn chain(&self) -> MutexGuard<'_, BeaconChain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running endpoint. Dropping it stops the server.
#[derive(Debug)]
pub struct BeaconServer {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl BeaconServer {
    /// The base URL, without `/eth/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for BeaconServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The endpoints of a sandbox's beacon chain.
pub(crate) struct BeaconServers {
    beacon: SandboxBeaconChain,
    honest: BeaconServer,
    /// Further endpoints keep running.
    further: Mutex<Vec<BeaconServer>>,
}

impl BeaconServers {
    /// Starts an honest endpoint.
    pub(crate) async fn start(chain: Arc<SandboxChain>) -> io::Result<Self> {
        let beacon = SandboxBeaconChain::new(chain);
        let honest = beacon.serve(BeaconBehaviour::Honest).await?;
        Ok(Self { beacon, honest, further: Mutex::default() })
    }

    pub(crate) fn follow_chain(&self, chain: Arc<SandboxChain>) {
        self.beacon.follow_chain(chain);
    }

    pub(crate) fn checkpoint(&self) -> B256 {
        self.beacon.checkpoint()
    }

    /// The URL of the honest endpoint.
    pub(crate) fn honest_url(&self) -> String {
        self.honest.url()
    }

    /// Starts an endpoint that behaves like this, and returns its URL.
    pub(crate) async fn start_endpoint(&self, behaviour: BeaconBehaviour) -> io::Result<String> {
        let server = self.beacon.serve(behaviour).await?;
        let url = server.url();
        self.further.lock().unwrap_or_else(PoisonError::into_inner).push(server);
        Ok(url)
    }
}

fn router(api: BeaconApiState) -> Router {
    let routes = Router::new()
        .route("/bootstrap/{root}", get(bootstrap))
        .route("/updates", get(updates))
        .route("/finality_update", get(finality_update))
        .route("/optimistic_update", get(optimistic_update));
    Router::new().nest("/eth/v1/beacon/light_client", routes).with_state(api)
}

/// What an endpoint answers.
#[derive(Clone)]
struct BeaconApiState {
    beacon: SandboxBeaconChain,
    behaviour: BeaconBehaviour,
}

/// Reads a number from a query.
fn number(query: &str, key: &str) -> Option<u64> {
    form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == key)?.1.parse().ok()
}

async fn bootstrap(State(api): State<BeaconApiState>, Path(root): Path<String>) -> Response {
    if api.behaviour == BeaconBehaviour::Silent {
        return pending().await;
    }
    api.answer(move |chain, _| chain.bootstrap(root.parse().ok()?).map(|found| found.to_json(FORK))).await
}

async fn updates(State(api): State<BeaconApiState>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let (Some(first), Some(count)) = (number(&query, "start_period"), number(&query, "count")) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    api.answer_or_stall(move |chain, behaviour, now| {
        let periods = first..first.saturating_add(count.min(MAX_UPDATES));
        let found = periods.map_while(|period| chain.update(period, now, behaviour));
        Some(found.map(|update| update.to_json(FORK)).collect())
    })
    .await
}

async fn finality_update(State(api): State<BeaconApiState>) -> Response {
    api.answer_or_stall(|chain, behaviour, _| Some(chain.finality_update(behaviour).to_json(FORK))).await
}

async fn optimistic_update(State(api): State<BeaconApiState>) -> Response {
    api.answer_or_stall(|chain, behaviour, _| Some(chain.optimistic_update(behaviour).to_json(FORK))).await
}

impl BeaconApiState {
    async fn answer_or_stall(
        self,
        find: impl FnOnce(&mut BeaconChain, BeaconBehaviour, Timestamp) -> Option<Value> + Send + 'static,
    ) -> Response {
        match self.behaviour {
            BeaconBehaviour::Silent => pending().await,
            BeaconBehaviour::Endless => endless(),
            behaviour => self.answer(move |chain, now| find(chain, behaviour, now)).await,
        }
    }

    /// Answers in a thread for blocking work, since it signs.
    async fn answer(
        self,
        find: impl FnOnce(&mut BeaconChain, Timestamp) -> Option<Value> + Send + 'static,
    ) -> Response {
        let now = (self.beacon.clock)();
        match tokio::task::spawn_blocking(move || find(&mut self.beacon.chain(), now)).await {
            Ok(Some(found)) => Json(found).into_response(),
            Ok(None) => StatusCode::NOT_FOUND.into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

fn endless() -> Response {
    let parts = stream::repeat(Ok::<_, Infallible>(Bytes::from_static(ENDLESS_PART)));
    ([(CONTENT_TYPE, "application/json")], Body::from_stream(parts)).into_response()
}
