//! The daemon: the report API, which describes, and the gate, which decides.
//!
//! `router.rs` contains the routes, and docs/reference/http.md describes each of them.
//!
//! Errors of the report API are problem documents (RFC 9457) whose `type` is the URI of a code. The gate answers only
//! 200 or 403, because a proxy that fails open would let a request through on a 5xx or a 429. Malformed HTTP gets a
//! bare 4xx.
//!
//! Every question goes through [`Resolver`]. This module never contacts the chain or the web itself.

mod activity;
#[cfg(unix)]
mod admin;
mod admission;
mod agent_requests;
mod agents;
mod answer_limits;
mod api_kind;
mod background;
mod body;
mod caching;
mod cards;
mod checks;
mod client_limits;
mod connection;
mod connection_set;
mod cors;
mod counters;
mod decisions;
mod discover;
mod event_stream;
mod events;
mod explorer;
mod fallback;
mod gate;
mod gate_path;
mod gate_response;
mod head_scan;
mod health;
mod hot_names;
mod in_force;
mod keys;
mod lint;
mod listen;
mod listener;
mod log;
mod mcp;
mod metrics;
mod negotiate;
mod openapi;
mod operator;
mod path;
mod probes;
mod problem;
mod query;
mod readiness;
mod receipts;
mod recent_decisions;
mod registries;
mod reload;
mod rendered;
mod request;
mod request_slot;
mod router;
mod serving;
mod signatures;
mod state;
mod steps;
mod system_cards;
mod systems;
#[cfg(unix)]
mod unix_socket;
mod verdicts;
mod write_timeout;

use std::future::Future;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

#[cfg(unix)]
use clresolve_resolver::config::SocketPath;
use clresolve_resolver::config::{Config, ListenAddress};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sign;
use clresolve_resolver::telemetry;
use jiff::Timestamp;

#[cfg(unix)]
use self::admin::AdminState;
use self::api_kind::ListenerApiScope;
use self::hot_names::{MOST_NAMES, SavedHotNames};
use self::in_force::CurrentService;
use self::listener::Listener;
pub use self::operator::{DaemonOperator, ReloadOutcome};
pub use self::reload::{ConfigReloader, ReloadError, StartupSetting};
use self::serving::build_service;
pub use self::serving::{DaemonStartError, check_serving_config};
use self::signatures::CachingVerdictSigner;
use self::state::AppState;
pub use self::systems::OrlojCardGenerationError;
use self::systems::OrlojCardGenerator;
#[cfg(unix)]
use self::unix_socket::UnixSocketListener;
use crate::port_holder;
use crate::traces::TraceExporter;

/// A bound daemon. It answers requests once it [runs](HttpDaemon::run).
pub struct HttpDaemon {
    listener: Listener,
    address: ListenAddress,
    /// The gate's own listener, if one is configured.
    gate: Option<(Listener, ListenAddress)>,
    config: Config,
    in_force: Arc<CurrentService>,
    /// The hot names of the previous process, if a file is configured for them.
    hot_names: Option<SavedHotNames>,
    started: Timestamp,
    /// The admin socket, after [`bind_admin_socket`](HttpDaemon::bind_admin_socket).
    #[cfg(unix)]
    admin: Option<(UnixSocketListener, AdminState)>,
    /// Exports traces, if a collector is configured.
    traces: Option<TraceExporter>,
}

impl HttpDaemon {
    /// Binds the configured addresses and builds the resolver. Metrics go to the process's recorder (crate `metrics`);
    /// the server installs one unless the program has its own. The resolver never connects to these listeners.
    ///
    /// # Errors
    /// If an address cannot or must not be bound, or the resolver cannot be built.
    pub async fn bind(config: &Config) -> Result<Self, DaemonStartError> {
        check_serving_config(config)?;
        let (listeners, mut config) = (Listeners::bind(config).await?, config.clone());
        config.network.denied.extend(listeners.all.1.tcp_address());
        config.network.denied.extend(listeners.gate.as_ref().and_then(|(_, address)| address.tcp_address()));
        let resolver = Resolver::new(&config).await?;
        Self::with_listeners(listeners, resolver, config)
    }

    /// Binds the configured addresses for an existing resolver, for example one with another clock. Unlike with
    /// [`bind`](HttpDaemon::bind), the resolver may connect to these listeners.
    ///
    /// # Errors
    /// If an address cannot or must not be bound.
    pub async fn bind_with_resolver(config: &Config, resolver: Resolver) -> Result<Self, DaemonStartError> {
        check_serving_config(config)?;
        Self::with_listeners(Listeners::bind(config).await?, resolver, config.clone())
    }

    fn with_listeners(listeners: Listeners, resolver: Resolver, config: Config) -> Result<Self, DaemonStartError> {
        let signatures = sign::open_signer(&config.sign)?.map(CachingVerdictSigner::new).map(Arc::new);
        let now = resolver.now();
        let systems = OrlojCardGenerator::open(&config.orloj, now)?;
        let traces = TraceExporter::open(&config, &resolver)?;
        let in_force =
            Arc::new(CurrentService::new(build_service(AppState::new(resolver, &config, signatures, systems))));
        // After the state is built, since that installs the recorder.
        telemetry::record_daemon_start(now);
        let Listeners { all: (listener, address), gate } = listeners;
        let hot_names = config.cache.hot_names.as_deref().map(SavedHotNames::open);
        Ok(Self {
            listener,
            address,
            gate,
            config,
            in_force,
            hot_names,
            started: now,
            #[cfg(unix)]
            admin: None,
            traces,
        })
    }

    /// The address of the listener. If port 0 is configured, it contains the port that the system chose.
    pub const fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// The address of the gate's own listener, if one is configured.
    pub fn gate_address(&self) -> Option<&ListenAddress> {
        self.gate.as_ref().map(|(_, address)| address)
    }

    /// Binds the admin socket, if one is configured, and connects it to `operator`. Returns the path of the socket.
    ///
    /// # Errors
    /// If the socket cannot or must not be bound.
    #[cfg(unix)]
    pub async fn bind_admin_socket(
        &mut self,
        operator: Arc<dyn DaemonOperator>,
    ) -> Result<Option<SocketPath>, DaemonStartError> {
        let Some(path) = &self.config.admin.socket else { return Ok(None) };
        let failed = |error: Error| {
            let is_in_use = error.kind() == ErrorKind::AddrInUse;
            let detail =
                if is_in_use { in_use_message("admin.socket", &error, OTHER_HOLDER) } else { error.to_string() };
            listen_error("admin.socket", &ListenAddress::Unix(path.clone()), detail)
        };
        let mode = if clresolve_core::mutant!("open-admin-socket") { 0o666 } else { admin::MODE };
        let socket = UnixSocketListener::bind(path, mode).await.map_err(failed)?;
        let state = AdminState { in_force: Arc::clone(&self.in_force), operator, started: self.started };
        self.admin = Some((socket, state));
        Ok(Some(path.clone()))
    }

    /// A handle that replaces the configuration while the daemon runs.
    pub fn reloader(&self) -> ConfigReloader {
        ConfigReloader::new(self.config.clone(), Arc::clone(&self.in_force))
    }

    /// Serves until `stop` completes, then drains. During the drain notice, new connections are accepted, but `readyz`
    /// returns 503 and the gate 403. After the notice, no connections are accepted, and requests in progress may finish
    /// within the drain timeout.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let gate = self.gate.map(|(listener, _)| (listener, ListenerApiScope::Gate));
        let listeners = [(self.listener, ListenerApiScope::All)].into_iter().chain(gate);
        let administered = async {
            #[cfg(unix)]
            if let Some((socket, state)) = self.admin {
                return admin::serve_admin_socket(socket, state).await;
            }
            std::future::pending().await
        };
        let exported = async {
            if let Some(exporter) = self.traces {
                return exporter.export_traces().await;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = listen::serve_listeners(listeners, Arc::clone(&self.in_force), stop) => {}
            never = administered => match never {},
            never = exported => match never {},
            never = background::run_background_refreshes(&self.in_force, self.hot_names.as_ref()) => match never {},
            never = background::read_chain_until_ready(&self.in_force) => match never {},
        }
        if let Some(hot_names) = self.hot_names {
            let hot = self.in_force.state().resolver.most_requested_names(MOST_NAMES);
            // Blocking is acceptable here, because this is the last work of the process.
            hot_names.save(hot);
        }
    }
}

struct Listeners {
    all: (Listener, ListenAddress),
    gate: Option<(Listener, ListenAddress)>,
}

impl Listeners {
    async fn bind(config: &Config) -> Result<Self, DaemonStartError> {
        let all = bind_listener("http.listen", &config.http.listen).await?;
        let gate = match &config.gate.listen {
            Some(address) => Some(bind_listener("gate.listen", address).await?),
            None => None,
        };
        Ok(Self { all, gate })
    }
}

async fn bind_listener(
    key: &'static str,
    address: &ListenAddress,
) -> Result<(Listener, ListenAddress), DaemonStartError> {
    match Listener::bind(address).await {
        Ok(bound) => Ok(bound),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let holder = describe_port_holder(address).await;
            Err(listen_error(key, address, in_use_message(key, &error, holder)))
        }
        Err(error) => Err(listen_error(key, address, error.to_string())),
    }
}

/// Describes the process that listens at an address in use.
async fn describe_port_holder(address: &ListenAddress) -> &'static str {
    match address.tcp_address() {
        Some(address) if port_holder::answers_livez(address, health::LIVE).await => {
            "another clresolve, which may be draining,"
        }
        _ => OTHER_HOLDER,
    }
}

const OTHER_HOLDER: &str = "another program";

fn in_use_message(key: &str, error: &Error, holder: &str) -> String {
    let what = if key == "http.listen" { "--listen or this key" } else { "this key" };
    format!("{error}; {holder} listens there: choose another address with {what}")
}

fn listen_error(key: &'static str, address: &ListenAddress, detail: String) -> DaemonStartError {
    DaemonStartError::Listen { key, address: address.clone(), detail }
}

#[cfg(test)]
mod tests;
