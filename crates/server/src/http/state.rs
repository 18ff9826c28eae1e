//! State shared by all requests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clresolve_resolver::config::{
    Config, CorsConfig, EnsChainConfig, ExplorerPageConfig, GateConfig, HttpServerConfig, McpConfig,
};
use clresolve_resolver::cpu_share::{CpuJobUrgency, CpuTaskContext};
use clresolve_resolver::resolve::{HeadFollower, Resolver};

use super::admission::AdmissionControl;
use super::answer_limits::ResponseMemorySlots;
use super::client_limits::{BodyMemoryLimits, ClientCpuJobShare, ClientCpuJobSlots, ClientIdentity, SharedSlotPool};
use super::counters::RequestCounters;
use super::event_stream::EventStreamSlots;
use super::readiness::Readiness;
use super::recent_decisions::RecentDecisionCache;
use super::signatures::CachingVerdictSigner;
use super::systems::OrlojCardGenerator;

/// The reciprocal of the share of all request slots that one client may use, so that it leaves room for others. A proxy
/// counts as one client.
const PART_OF_REQUESTS: usize = 4;

/// The state that the handlers of all routes share.
pub(super) struct AppState {
    pub(super) resolver: Resolver,
    pub(super) admission: AdmissionControl,
    pub(super) http: HttpServerConfig,
    pub(super) cors: CorsConfig,
    pub(super) explorer: ExplorerPageConfig,
    /// The network that is queried, for the explorer.
    pub(super) chain: EnsChainConfig,
    pub(super) gate: GateConfig,
    pub(super) mcp: McpConfig,
    pub(super) default_profile: String,
    /// Slots for requests to the report API. Gate requests are limited only by the number of connections.
    pub(super) requests: SharedSlotPool,
    /// Decisions from the last second.
    pub(super) recent_decisions: RecentDecisionCache,
    /// Signs verdicts, if a key is configured.
    pub(super) signatures: Option<Arc<CachingVerdictSigner>>,
    /// Orloj's agent cards, if resources are configured.
    pub(super) systems: Option<OrlojCardGenerator>,
    pub(super) remembers_receipts: bool,
    /// Permits for event streams, which survive a reload.
    pub(super) event_streams: Arc<EventStreamSlots>,
    /// Each client's share of the pool's queue.
    job_slots: Arc<ClientCpuJobSlots>,
    /// Memory for documents to judge.
    pub(super) documents: BodyMemoryLimits,
    /// Memory for responses that are not written yet.
    pub(super) answers: ResponseMemorySlots,
    pub(super) counters: RequestCounters,
    /// Labels of the configured endpoints and gateways.
    pub(super) upstreams: BTreeSet<String>,
    /// Keeps the cache in sync with the chain.
    pub(super) following: HeadFollower,
    /// Whether the chain was read.
    pub(super) readiness: Arc<Readiness>,
    draining: Arc<AtomicBool>,
}

impl AppState {
    pub(super) fn new(
        resolver: Resolver,
        config: &Config,
        signatures: Option<Arc<CachingVerdictSigner>>,
        systems: Option<OrlojCardGenerator>,
    ) -> Self {
        Self {
            // First, because counts before the recorder is installed are lost.
            counters: RequestCounters::new(),
            admission: AdmissionControl::new(resolver.clone(), config),
            following: resolver.follow_heads(),
            job_slots: Arc::new(ClientCpuJobSlots::new(resolver.cpu_pool().permits_per_client())),
            resolver,
            http: config.http.clone(),
            cors: config.cors.clone(),
            explorer: config.explorer.clone(),
            chain: config.chain.clone(),
            gate: config.gate.clone(),
            mcp: config.mcp.clone(),
            default_profile: config.rules.profile.clone(),
            requests: SharedSlotPool::new(config.http.requests, max_client_requests(config)),
            recent_decisions: RecentDecisionCache::new(),
            signatures,
            systems,
            remembers_receipts: config.receipts.remember,
            event_streams: Arc::new(EventStreamSlots::new(config.http.connections)),
            documents: BodyMemoryLimits::new(),
            answers: ResponseMemorySlots::new(),
            upstreams: upstream_labels(config),
            readiness: Arc::new(Readiness::new()),
            draining: Arc::default(),
        }
    }

    /// The state that replaces `earlier` after a reload. A drain that was announced stays announced. Only one state at
    /// a time follows the chain. A chain that was read under the same settings need not be read again.
    pub(super) fn after_reload(
        earlier: &Self,
        resolver: Resolver,
        config: &Config,
        systems: Option<OrlojCardGenerator>,
    ) -> Self {
        earlier.following.stop();
        let signatures = earlier.signatures.clone();
        let replaced = Self::new(resolver, config, signatures, systems);
        let is_same_chain = earlier.chain == replaced.chain;
        Self {
            readiness: Arc::clone(if is_same_chain { &earlier.readiness } else { &replaced.readiness }),
            draining: Arc::clone(&earlier.draining),
            event_streams: Arc::clone(&earlier.event_streams),
            job_slots: Arc::clone(&earlier.job_slots),
            ..replaced
        }
    }

    /// A handle for work on behalf of `client`, within its share of the pool's queue.
    pub(super) fn cpu_task_context(&self, client: ClientIdentity, urgency: CpuJobUrgency) -> CpuTaskContext {
        CpuTaskContext::new(Arc::new(ClientCpuJobShare { client, slots: Arc::clone(&self.job_slots) }), urgency)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Announces the shutdown: from now on `readyz` and the gate refuse, and event streams end.
    pub(super) fn announce_drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.event_streams.end_streams();
    }
}

fn max_client_requests(config: &Config) -> usize {
    let part = if clresolve_core::mutant!("one-client-takes-all-places") { 1 } else { PART_OF_REQUESTS };
    (config.http.requests / part).max(1)
}

/// The labels of all configured endpoints, of every chain, of the beacon endpoints, and of all gateways.
fn upstream_labels(config: &Config) -> BTreeSet<String> {
    let of_chains = config.chains.values().flat_map(|chain| &chain.endpoints);
    let endpoints =
        config.chain.labelled_endpoints().into_iter().chain(of_chains.cloned()).map(|endpoint| endpoint.label);
    let beacon = config.beacon.endpoints.iter().map(|endpoint| endpoint.label.clone());
    endpoints.chain(beacon).chain(config.gateways.iter().map(|gateway| gateway.label.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clresolve_resolver::config::ConfigLayer;

    #[test]
    fn endpoints_of_every_chain_are_upstreams() {
        let text = "rpc = [\"https://a.example\"]\n[chains.8453]\nrpc = [{ url = \"https://b.example\", own = true }]\n\
                    registry = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"\n[beacon]\n\
                    endpoints = [\"https://c.example\"]\n";
        let config = Config::default()
            .with_layers([ConfigLayer::from_toml(text, "f.toml").expect("a configuration")])
            .unwrap_or_else(|e| panic!("{e}"));
        let upstreams = upstream_labels(&config);
        assert!(["rpc-1", "rpc-8453-1", "beacon-1"].iter().all(|label| upstreams.contains(*label)), "{upstreams:?}");
    }
}
