//! Test helpers: a configuration whose endpoints serve the sandbox chain, an HTTP client that sends nothing, and one
//! that sends everything.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::ProofGradeDemand;
use clresolve_sandbox::chain::{CHAIN_ID, NAME_WRAPPER, REGISTRY, SandboxRpcServer, UNIVERSAL_RESOLVER};
use clresolve_state::EnsContractAddresses;
use url::Url;

use crate::transport::{HttpRequestError, JsonRpcHttpClient};
use crate::{ChainReaderConfig, RpcEndpointSettings};

/// Longer than any test runs.
const UNHURRIED: Duration = Duration::from_secs(60);

/// An HTTP client that refuses every request.
pub(crate) struct RefusingHttpClient;

#[async_trait]
impl JsonRpcHttpClient for RefusingHttpClient {
    async fn post_json(&self, _: &Url, _: Bytes, _: usize, _: Duration) -> Result<Bytes, HttpRequestError> {
        Err(HttpRequestError::Connection("there is no transport".to_owned()))
    }
}

/// An HTTP client that sends every request.
pub(crate) struct UnguardedHttpClient(reqwest::Client);

impl UnguardedHttpClient {
    pub(crate) fn new() -> Self {
        Self(reqwest::Client::builder().no_proxy().build().unwrap())
    }
}

#[async_trait]
impl JsonRpcHttpClient for UnguardedHttpClient {
    async fn post_json(&self, url: &Url, body: Bytes, cap: usize, _: Duration) -> Result<Bytes, HttpRequestError> {
        let broken = |error: reqwest::Error| HttpRequestError::Connection(error.to_string());
        let response = self.0.post(url.clone()).body(body).send().await.map_err(broken)?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(HttpRequestError::Status(status, response.bytes().await.map_err(broken)?));
        }
        let body = response.bytes().await.map_err(broken)?;
        if body.len() > cap { Err(HttpRequestError::TooLarge(cap)) } else { Ok(body) }
    }
}

/// Endpoints `node-0`, `node-1` and so on for these servers, each with its own operator.
pub(crate) fn test_config(servers: &[SandboxRpcServer]) -> ChainReaderConfig {
    let endpoint = |(number, server): (usize, &SandboxRpcServer)| RpcEndpointSettings {
        label: format!("node-{number}"),
        url: server.url().parse().unwrap(),
        own: true,
        operator: format!("operator-{number}"),
    };
    ChainReaderConfig {
        chain_id: CHAIN_ID,
        genesis: None,
        contracts: EnsContractAddresses {
            universal_resolver: UNIVERSAL_RESOLVER,
            registry: REGISTRY,
            name_wrapper: NAME_WRAPPER,
            ..EnsContractAddresses::default()
        },
        endpoints: servers.iter().enumerate().map(endpoint).collect(),
        demand: ProofGradeDemand::SingleRpc,
        timeout: UNHURRIED,
        hedge_after: UNHURRIED,
        lookup_timeout: None,
        coins: RequestedCoinTypes::default(),
        max_head_age: None,
    }
}
