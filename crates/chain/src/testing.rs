//! A configuration of endpoints that serve the sandbox's chain, and a door that nothing goes through.

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

/// Longer than any test waits.
const UNHURRIED: Duration = Duration::from_secs(60);

/// A door that nothing goes through.
pub(crate) struct NoDoor;

#[async_trait]
impl HttpPost for NoDoor {
    async fn post(&self, _: &Url, _: Bytes, _: usize, _: Duration) -> Result<Bytes, PostError> {
        Err(PostError::Connection("there is no door".to_owned()))
    }
}

/// The servers as endpoints `node-0`, `node-1` and so on, each of an operator of its own.
pub(crate) fn config(servers: &[RpcServer]) -> ChainConfig {
    let endpoint = |(number, server): (usize, &RpcServer)| Endpoint {
        label: format!("node-{number}"),
        url: server.url().parse().unwrap(),
        own: true,
        operator: format!("operator-{number}"),
        ws: None,
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
        ccip: false,
        coins: Coins::default(),
        max_head_age: None,
    }
}
