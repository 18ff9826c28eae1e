//! Test helpers: a configuration whose endpoints serve the sandbox chain, an HTTP client that sends nothing, and one
//! that sends everything.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_core::payment::Coins;
use clresolve_core::reading::GradeDemand;
use clresolve_sandbox::chain::{CHAIN_ID, NAME_WRAPPER, REGISTRY, RpcServer, UNIVERSAL_RESOLVER};
use clresolve_state::Contracts;
use url::Url;

use crate::transport::{HttpPost, PostError};
use crate::{ChainConfig, Endpoint};

/// Longer than any test runs.
const UNHURRIED: Duration = Duration::from_secs(60);

/// An HTTP client that refuses every request.
pub(crate) struct NoDoor;

#[async_trait]
impl HttpPost for NoDoor {
    async fn post(&self, _: &Url, _: Bytes, _: usize, _: Duration) -> Result<Bytes, PostError> {
        Err(PostError::Connection("there is no door".to_owned()))
    }
}

/// An HTTP client that sends every request.
pub(crate) struct OpenDoor(reqwest::Client);

impl OpenDoor {
    pub(crate) fn new() -> Self {
        Self(reqwest::Client::builder().no_proxy().build().unwrap())
    }
}

#[async_trait]
impl HttpPost for OpenDoor {
    async fn post(&self, url: &Url, body: Bytes, cap: usize, _: Duration) -> Result<Bytes, PostError> {
        let broken = |error: reqwest::Error| PostError::Connection(error.to_string());
        let response = self.0.post(url.clone()).body(body).send().await.map_err(broken)?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(PostError::Status(status, response.bytes().await.map_err(broken)?));
        }
        let body = response.bytes().await.map_err(broken)?;
        if body.len() > cap { Err(PostError::TooLarge(cap)) } else { Ok(body) }
    }
}

/// Endpoints `node-0`, `node-1` and so on for these servers, each with its own operator.
pub(crate) fn config(servers: &[RpcServer]) -> ChainConfig {
    let endpoint = |(number, server): (usize, &RpcServer)| Endpoint {
        label: format!("node-{number}"),
        url: server.url().parse().unwrap(),
        own: true,
        operator: format!("operator-{number}"),
    };
    ChainConfig {
        chain_id: CHAIN_ID,
        genesis: None,
        contracts: Contracts {
            universal_resolver: UNIVERSAL_RESOLVER,
            registry: REGISTRY,
            name_wrapper: NAME_WRAPPER,
            ..Contracts::default()
        },
        endpoints: servers.iter().enumerate().map(endpoint).collect(),
        demand: GradeDemand::SingleRpc,
        timeout: UNHURRIED,
        hedge_after: UNHURRIED,
        lookup_timeout: None,
        coins: Coins::default(),
        max_head_age: None,
    }
}
