//! A light client over HTTP, with a clock that the test sets.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use url::Url;

use super::beacon_chain::{BeaconChain, CHECKPOINT};
use super::server::BeaconServer;
use crate::light_client::{
    BEACON_ACCEPT, BeaconEndpointSettings, BeaconHttpClient, BeaconResponse, LightClient, LightClientConfig,
};
use crate::pool::TimeSource;
use crate::transport::HttpRequestError;

/// An HTTP client that sends every request.
pub(crate) struct LoopbackGet(reqwest::Client);

impl LoopbackGet {
    pub(crate) fn new() -> Self {
        Self(reqwest::Client::builder().no_proxy().build().unwrap())
    }

    async fn get(&self, url: &Url, cap: usize) -> Result<BeaconResponse, HttpRequestError> {
        let broken = |error: reqwest::Error| HttpRequestError::Connection(error.without_url().to_string());
        let mut response = self.0.get(url.clone()).header("accept", BEACON_ACCEPT).send().await.map_err(broken)?;
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let (content_type, version) = (header("content-type"), header("eth-consensus-version"));
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            body.extend_from_slice(&chunk);
            if body.len() > cap {
                return Err(HttpRequestError::TooLarge(cap));
            }
        }
        if !status.is_success() {
            return Err(HttpRequestError::Status(status.as_u16(), body.into()));
        }
        Ok(BeaconResponse { content_type, version, body: body.into() })
    }
}

#[async_trait]
impl BeaconHttpClient for LoopbackGet {
    async fn get(&self, url: &Url, cap: usize, timeout: Duration) -> Result<BeaconResponse, HttpRequestError> {
        let response = tokio::time::timeout(timeout, self.get(url, cap)).await;
        response.unwrap_or(Err(HttpRequestError::Timeout(timeout)))
    }
}

#[derive(Clone)]
pub(crate) struct TestClock(Arc<AtomicI64>);

impl TestClock {
    /// The start of a slot.
    pub(crate) fn at(chain: &BeaconChain, slot: u64) -> Self {
        let clock = Self(Arc::default());
        clock.set(chain, slot);
        clock
    }

    pub(crate) fn set(&self, chain: &BeaconChain, slot: u64) {
        self.0.store(i64::try_from(chain.spec.slot_start_time(slot)).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> TimeSource {
        let now = Arc::clone(&self.0);
        Arc::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap())
    }
}

/// A light client that asks these servers, in this order.
pub(crate) fn client(
    chain: &BeaconChain,
    servers: &[&BeaconServer],
    clock: &TestClock,
    file: Option<PathBuf>,
) -> LightClient {
    LightClient::new(config(chain, servers, file), Arc::new(LoopbackGet::new()), clock.clock())
}

/// A silent endpoint must not delay tests, and a busy machine must not make honest ones time out.
pub(crate) fn config(chain: &BeaconChain, servers: &[&BeaconServer], file: Option<PathBuf>) -> LightClientConfig {
    let endpoint = |(number, server): (usize, &&BeaconServer)| BeaconEndpointSettings {
        label: format!("beacon-{number}"),
        url: server.url().parse().unwrap(),
    };
    LightClientConfig {
        spec: chain.spec.clone(),
        checkpoint: chain.block(CHECKPOINT).block_root(),
        endpoints: servers.iter().enumerate().map(endpoint).collect(),
        file,
        timeout: Duration::from_secs(20),
        hedge_after: Duration::from_millis(300),
    }
}
