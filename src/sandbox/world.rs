//! A running world: the chain, the web, the IPFS gateways and the CCIP-Read gateway of a [`Spec`], on loopback.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::{Address, Bytes as AbiBytes, hex, keccak256};
use bytes::Bytes;
use hyper::{Request, StatusCode};
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinHandle;

use super::ca;
use super::chain::{
    BuildError, CHAIN_ID, ChainBuilder, Registration, ResolverKind, RpcFault, RpcServer, SandboxChain,
    UNIVERSAL_RESOLVER,
};
use super::gateway::{GatewayManners, Store};
use super::schemas::{MIRROR_HOST, Manifest, SCHEMAS_HOST, Schemas};
use super::spec::{Agent, CARDS_HOST, Published, Resolver, Spec, SpecError};
use super::unixfs::Blocks;
use super::web::{self, Document, Reply, Server, Site};
use crate::config::{ChainConfig, Config, ConnectTo, Endpoint, Gateway, ManifestSource, NetworkConfig};
use crate::name::EnsName;

/// Host of the gateway without faults; those with faults are below it.
const GATEWAY_HOST: &str = "gateway.sandbox.example";

/// Host of the CCIP-Read gateway.
const CCIP_HOST: &str = "ccip.sandbox.example";

/// A host that the servers' certificate does not cover.
const UNTRUSTED_HOST: &str = "untrusted.cards.sandbox.example";

/// Port of every https URL.
const HTTPS: u16 = 443;

/// How far the finalized block is behind the clock: as on mainnet.
const FINALITY: SignedDuration = SignedDuration::from_mins(13);

/// How far the newest block is behind the clock.
const NEWEST: SignedDuration = SignedDuration::from_secs(12);

/// How old the finalized block of a stopped chain is.
const STOPPED: SignedDuration = SignedDuration::from_hours(3);

/// How often a long-lived world seals a block; well within the age at which a chain counts as stopped.
const SEAL_EVERY: Duration = Duration::from_secs(300);

/// A running world. It stops when this is dropped.
pub struct World {
    ca_pem: String,
    server: Server,
    rpc: RpcServer,
    /// Endpoints that were asked for with a fault.
    faulty: Mutex<Vec<RpcServer>>,
    chain: Arc<SandboxChain>,
    stopped: Arc<SandboxChain>,
    site: Arc<Hosts>,
    manifests: Vec<Manifest>,
    sealing: JoinHandle<()>,
}

/// Why a world cannot start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The data does not describe a world.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The chain refuses what the data says.
    #[error("{agent}: {error}")]
    Chain {
        /// The name at fault.
        agent: String,
        /// What the chain says.
        error: BuildError,
    },
    /// A port of the loopback address cannot be had, or no certificate can be made.
    #[error("the sandbox cannot listen on 127.0.0.1: {0}")]
    Listen(String),
}

/// Requests received so far, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// For cards.
    pub https: u64,
    /// For blocks and CARs.
    pub gateway: u64,
    /// JSON-RPC, to all endpoints; a batch counts as one.
    pub rpc: u64,
    /// To the CCIP-Read gateway.
    pub ccip: u64,
    /// For schemas and manifests.
    pub schemas: u64,
}

/// What an endpoint reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChainState {
    /// A chain that grows.
    #[default]
    Growing,
    /// The same chain, whose newest block is hours old.
    Stopped,
}

impl World {
    /// Builds the world and starts its servers on free ports of 127.0.0.1.
    ///
    /// # Errors
    /// When `spec` describes no world, or when a port cannot be had.
    pub async fn start(spec: &Spec) -> Result<Self, WorldError> {
        let schemas = Schemas::publish(&spec.schemas);
        let published = publish(&spec.agents, &schemas)?;
        let now = Timestamp::now();
        let drafted = draft(spec, &published, now)?;
        let chain = Arc::new(drafted.growing(now)?);
        let stopped = Arc::new(drafted.stopped(now)?);

        let identity = ca::issue(&hosts()).map_err(|error| WorldError::Listen(error.to_string()))?;
        let site = Arc::new(Hosts::new(&published, &schemas, Arc::clone(&chain)));
        let server = Server::start(identity.tls, Arc::clone(&site) as Arc<dyn Site>)
            .await
            .map_err(|error| WorldError::Listen(error.to_string()))?;
        let rpc = bind(&chain, RpcFault::None).await?;
        let manifests = schemas.manifests().map(Clone::clone).to_vec();
        let sealing = tokio::spawn(std::future::pending());
        Ok(Self {
            ca_pem: identity.ca_pem,
            server,
            rpc,
            faulty: Mutex::default(),
            chain,
            stopped,
            site,
            manifests,
            sealing,
        })
    }
}

/// Every host of a world that its certificate covers.
fn hosts() -> [&'static str; 6] {
    [CARDS_HOST, SCHEMAS_HOST, MIRROR_HOST, CCIP_HOST, GATEWAY_HOST, "*.gateway.sandbox.example"]
}
