//! The daemon: the report face, which describes, and the gate face, which decides.
//!
//! | route | answer |
//! |---|---|
//! | `GET /v1/verdicts/{name}` `?profile=&depth=` | 200 and the verdict, whatever its state |
//! | `POST /v1/verdicts` `{"names": […]}` | NDJSON, a verdict a line as they complete |
//! | any method `/v1/gate/{name}`, `/v1/gate/{name}/{verb}`, `/v1/envoy/{name}/{verb}/{*ignored}` | 200 empty or 403 |
//! | `GET /v1/cards/{name}` | the exact verified bytes of the card; 409 when it is not trusted |
//! | `GET /v1/discover` `?url=&as=&system=&bind=` | 200 and the cards of a host, judged; where `http.discover` is on |
//! | `GET /v1/reasons`, `/v1/profiles` | the registries |
//! | `GET /.well-known/jwks.json` | the public keys of signed verdicts, where a key is configured |
//! | `GET /.well-known/agent-card.json`, `/v1/agent-systems/{name}/.well-known/agent-card.json` | Orloj's agent cards, where resources are configured |
//! | `GET /livez`, `/readyz`, `/metrics` | health, and counts for Prometheus |
//!
//! Errors of the report face are problems (RFC 9457) whose `type` is the URI of a code. The gate knows 200 and 403 only:
//! behind a proxy that fails open a 5xx or a 429 would let the request through.
//!
//! Everything is asked through [`Resolver`]; nothing here reaches the chain or the web.

mod agents;
mod answer;
mod body;
mod cards;
mod desk;
mod discover;
mod front;
mod gate;
mod head;
mod lint;
mod listen;
mod metrics;
mod negotiate;
mod problem;
mod registries;
mod shares;
mod signed;
mod stall;
mod systems;
mod verdicts;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::Uri;
use axum::routing::{any, get};
use moka::future::Cache;
use percent_encoding::percent_decode_str;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::config::{BlockSelector, Config, ConfigError, GateConfig, HttpConfig};
use crate::resolve::{Resolver, SetupError};
use crate::sign::{self, KeyFileError};

use self::desk::Desk;
use self::metrics::Counters;
use self::signed::Signatures;
use self::systems::Systems;
pub use self::systems::SystemsError;
use self::verdicts::Rendered;

/// Most bytes of JSON kept; a verdict has a few thousand, so this is one for each of some thousand names.
const RENDERED_BYTES: u64 = 32 * 1024 * 1024;

/// `anchor.world` of the embedded world.
const SANDBOX: &str = "sandbox";

/// A daemon that listens, and answers once it [runs](Server::run).
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What all requests share.
struct Shared {
    resolver: Resolver,
    desk: Desk,
    http: HttpConfig,
    gate: GateConfig,
    default_profile: String,
    requests: Arc<Semaphore>,
    /// Apart from the others, so that whoever keeps the report face busy does not close the gate.
    gate_requests: Arc<Semaphore>,
    /// Verdicts that were served from the cache, as they are sent, by id.
    rendered: Cache<String, Rendered>,
    /// What signs verdicts, where a key is configured.
    signatures: Option<Signatures>,
    /// Orloj's agent cards, where resources are configured.
    systems: Option<Systems>,
    counters: Counters,
    draining: AtomicBool,
}

/// Why the daemon does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configured block is a number.
    #[error("block: expected finalized, safe or latest; the daemon offers no numbered block, whose verdicts never age")]
    NumericBlock,
    /// The embedded world is to be offered beyond this machine.
    #[error("http.listen: {0} is beyond loopback, and the sandbox never is: its verdicts prove nothing")]
    SandboxBeyondLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("http.listen: {address}: {detail}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        detail: String,
    },
    /// The embedded world is to be signed for.
    #[error("sign.key: the sandbox signs nothing: its verdicts prove nothing")]
    SandboxSigns,
    /// The key to sign with, or one to publish, cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The resources of `[orloj]` make no cards.
    #[error("orloj.resources: {0}")]
    Systems(#[from] SystemsError),
    /// The gate cannot be kept.
    #[error(transparent)]
    Gate(#[from] ConfigError),
    /// The resolver cannot be built.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Whether the daemon could serve under `config`. Nothing is bound; the keys of `[sign]` and the resources of `[orloj]` are
/// read.
///
/// # Errors
/// Says which key of the configuration forbids it.
pub fn check(config: &Config) -> Result<(), ServeError> {
    if matches!(config.chain.block, BlockSelector::Number(_)) {
        return Err(ServeError::NumericBlock);
    }
    let address = config.http.listen;
    if config.chain.world == SANDBOX && !address.ip().to_canonical().is_loopback() {
        return Err(ServeError::SandboxBeyondLoopback(address));
    }
    if config.chain.world == SANDBOX && config.sign.key.is_some() {
        return Err(ServeError::SandboxSigns);
    }
    config.check_gate()?;
    sign::open(&config.sign)?;
    systems::read(&config.orloj)?;
    Ok(())
}

impl Server {
    /// Binds the configured address and builds the resolver. Counts go to the recorder of the process (of the crate
    /// `metrics`), for which one is installed unless the program has done so. The resolver's doors never lead back to this listener.
    ///
    /// # Errors
    /// When the address cannot be had or must not be, or the resolver cannot be built.
    pub async fn bind(config: &Config) -> Result<Self, ServeError> {
        check(config)?;
        let (listener, address) = listen(config.http.listen).await?;
        let mut config = config.clone();
        config.network.denied.push(address);
        let resolver = Resolver::new(&config).await?;
        Self::over(listener, address, resolver, &config)
    }

    /// Binds the configured address for a resolver that exists: one under another clock, or shared with other faces.
    /// Its doors may lead to this listener.
    ///
    /// # Errors
    /// When the address cannot be had or must not be.
    pub async fn bind_with(config: &Config, resolver: Resolver) -> Result<Self, ServeError> {
        check(config)?;
        let (listener, address) = listen(config.http.listen).await?;
        Self::over(listener, address, resolver, config)
    }

    fn over(
        listener: TcpListener,
        address: SocketAddr,
        resolver: Resolver,
        config: &Config,
    ) -> Result<Self, ServeError> {
        let signatures = sign::open(&config.sign)?.map(Signatures::new);
        let resolver_time = resolver.now();
        let shared = Shared {
            desk: Desk::new(resolver.clone(), config),
            resolver,
            http: config.http,
            gate: config.gate.clone(),
            default_profile: config.rules.profile.clone(),
            requests: Arc::new(Semaphore::new(config.http.requests)),
            gate_requests: Arc::new(Semaphore::new(config.http.requests)),
            rendered: Cache::builder()
                .max_capacity(RENDERED_BYTES)
                .weigher(|_, rendered: &Rendered| u32::try_from(rendered.body.len()).unwrap_or(u32::MAX))
                .build(),
            systems: Systems::open(&config.orloj, resolver_time)?,
            signatures,
            counters: Counters::new(),
            draining: AtomicBool::new(false),
        };
        Ok(Self { listener, address, shared: Arc::new(shared) })
    }

    /// Where it listens: the configured address, with the port that the system chose if that was 0.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` ends. Then drains: `readyz` says 503 and the gate 403 while new connections are still
    /// answered for the announced time; then no new ones, and those with a request in work may finish within the limit.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        listen::run(self.listener, self.shared, stop).await;
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |error: std::io::Error| ServeError::Listen { address, detail: error.to_string() };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

impl Shared {
    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// The table of routes.
fn router(shared: Arc<Shared>) -> Router {
    let gate = any(gate::of_name);
    let gate_for_verb = any(gate::of_verb);
    let mut router = Router::new();
    if shared.signatures.is_some() {
        router = router.route("/.well-known/jwks.json", get(signed::key_set));
    }
    if shared.systems.is_some() {
        router = router
            .route("/.well-known/agent-card.json", get(systems::root))
            .route("/v1/agent-systems/{name}/.well-known/agent-card.json", get(systems::one));
    }
    if shared.http.discover {
        router = router.route("/v1/discover", get(discover::host));
    }
    router
        .route("/v1/verdicts", axum::routing::post(verdicts::batch))
        .route("/v1/verdicts/", get(verdicts::one))
        .route("/v1/verdicts/{name}", get(verdicts::one))
        .route("/v1/gate/", gate.clone())
        .route("/v1/gate/{name}", gate)
        .route("/v1/gate/{name}/{verb}", gate_for_verb.clone())
        .route("/v1/envoy/{name}/{verb}", gate_for_verb.clone())
        .route("/v1/envoy/{name}/{verb}/", gate_for_verb.clone())
        .route("/v1/envoy/{name}/{verb}/{*ignored}", gate_for_verb)
        .route("/v1/cards/", get(cards::one))
        .route("/v1/cards/{name}", get(cards::one))
        .route("/v1/agents/{name}/.well-known/agent-card.json", get(agents::card))
        .route("/v1/lint", axum::routing::post(lint::card))
        .route("/v1/reasons", get(registries::reasons))
        .route("/v1/profiles", get(registries::profiles))
        .route("/livez", get(registries::livez))
        .route("/readyz", get(registries::readyz))
        .route("/metrics", get(metrics::all))
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .with_state(shared)
}

/// The segment of the path after `/v1/{face}`, percent-decoded once. What is not UTF-8 becomes U+FFFD, which is in no
/// name: it is for the resolver to say so.
fn segment(uri: &Uri, number: usize) -> String {
    let segment = uri.path().split('/').nth(3 + number).unwrap_or_default();
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_decoded_once() {
        let uri: Uri = "/v1/gate/a%2525%2Fb.eth/sum%6Darize?x=1".parse().unwrap();
        assert_eq!((segment(&uri, 0), segment(&uri, 1)), ("a%25/b.eth".to_owned(), "summarize".to_owned()));
        assert_eq!(segment(&"/v1/gate/%ff".parse().unwrap(), 0), "\u{fffd}");
        assert_eq!(segment(&"/v1/verdicts/".parse().unwrap(), 0), "");
    }

    #[test]
    fn the_sandbox_stays_on_this_machine_and_numbered_blocks_stay_off_http() {
        let mut config = Config::default();
        config.http.listen = "0.0.0.0:0".parse().unwrap();
        assert_eq!(check(&config), Ok(()));
        config.chain.world = SANDBOX.to_owned();
        assert_eq!(check(&config), Err(ServeError::SandboxBeyondLoopback(config.http.listen)));
        config.http.listen = "[::1]:0".parse().unwrap();
        assert_eq!(check(&config), Ok(()));
        config.chain.block = BlockSelector::Number(5);
        assert_eq!(check(&config), Err(ServeError::NumericBlock));
    }
}
