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
//! Errors of the report face are problems (RFC 9457) whose `type` is the URI of a code. The gate answers 200 or 403
//! only: a proxy that fails open would let a request through on a 5xx or a 429. What is no well-formed HTTP request
//! gets a bare 4xx.
//!
//! Every question goes through [`Resolver`]; nothing here reaches the chain or the web.

mod admission;
mod agents;
mod body;
mod caching;
mod cards;
mod client_limits;
mod connection;
mod counters;
mod discover;
mod face;
mod fallback;
mod gate;
mod gate_response;
mod keys;
mod lint;
mod listen;
mod log;
mod metrics;
mod negotiate;
mod path;
mod problem;
mod registries;
mod rendered;
mod request;
mod router;
mod signatures;
mod state;
mod system_cards;
mod systems;
mod verdicts;
mod write_timeout;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::config::{BlockSelector, Config, ConfigError};
use crate::resolve::{Resolver, SetupError};
use crate::sign::{self, KeyFileError};

use self::signatures::Signatures;
use self::state::AppState;
use self::systems::Systems;
pub use self::systems::SystemsError;

/// `anchor.world` of the embedded world.
const SANDBOX: &str = "sandbox";

/// A daemon that listens, and answers once it [runs](Server::run).
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<AppState>,
}

/// Why the daemon does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configured block is a number.
    #[error(
        "block: expected finalized, safe or latest; the daemon offers no numbered block, because its verdicts never age"
    )]
    NumericBlock,
    /// The configuration offers the embedded world beyond this machine.
    #[error("http.listen: {0} is beyond loopback, where the sandbox never listens, because its verdicts prove nothing")]
    SandboxBeyondLoopback(SocketAddr),
    /// The address cannot be bound.
    #[error("http.listen: {address}: {detail}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        detail: String,
    },
    /// The configuration signs verdicts of the embedded world.
    #[error("sign.key: the sandbox signs nothing, because its verdicts prove nothing")]
    SandboxSigns,
    /// The key to sign with, or one to publish, cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The resources of `[orloj]` make no cards.
    #[error("orloj.resources: {0}")]
    Systems(#[from] SystemsError),
    /// The gate cannot enforce its configuration.
    #[error(transparent)]
    Gate(#[from] ConfigError),
    /// The resolver cannot be built.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Checks that the daemon could serve under `config`. Reads the keys of `[sign]` and the resources of `[orloj]`, and
/// binds nothing.
///
/// # Errors
/// Says which key of the configuration forbids it.
pub fn check(config: &Config) -> Result<(), ServeError> {
    if matches!(config.chain.block, BlockSelector::Number(_)) {
        return Err(ServeError::NumericBlock);
    }
    let address = config.http.listen;
    if config.chain.world == SANDBOX
        && !address.ip().to_canonical().is_loopback()
        && !clresolve_core::mutant!("sandbox-beyond-loopback")
    {
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
    /// Binds the configured address and builds the resolver. Counts go to the process's recorder (of the crate
    /// `metrics`); one is installed unless the program has its own. The resolver never connects to this listener.
    ///
    /// # Errors
    /// When the address cannot or must not be bound, or the resolver cannot be built.
    pub async fn bind(config: &Config) -> Result<Self, ServeError> {
        check(config)?;
        let (listener, address) = listen(config.http.listen).await?;
        let mut config = config.clone();
        config.network.denied.push(address);
        let resolver = Resolver::new(&config).await?;
        Self::over(listener, address, resolver, &config)
    }

    /// Binds the configured address for an existing resolver: one under another clock, or shared with other faces. It
    /// may connect to this listener.
    ///
    /// # Errors
    /// When the address cannot or must not be bound.
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
        let systems = Systems::open(&config.orloj, resolver.now())?;
        let state = Arc::new(AppState::new(resolver, config, signatures, systems));
        Ok(Self { listener, address, state })
    }

    /// The address it listens on. Where port 0 is configured it has the port that the system chose.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` ends, then drains. For the time of the notice new connections are accepted, with 503 from
    /// `readyz` and 403 from the gate. After it none are accepted, and requests in work may finish within the limit.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let router = router::router(Arc::clone(&self.state));
        listen::run(self.listener, router, self.state, stop).await;
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |error: std::io::Error| ServeError::Listen { address, detail: error.to_string() };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

#[cfg(test)]
mod tests {
    use super::*;

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
