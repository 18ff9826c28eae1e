//! Checks whether the daemon may serve under a configuration, and builds what it serves.

use std::sync::Arc;

use clresolve_core::world::SANDBOX;
use clresolve_resolver::config::{Config, ConfigError, ListenAddress};
use clresolve_resolver::resolve::SetupError;
use clresolve_resolver::sign::{self, KeyFileError};

use super::cors::CrossOriginPolicy;
use super::in_force::ConfiguredService;
use super::router;
use super::state::AppState;
use super::systems::{self, OrlojCardGenerationError};

/// Why the daemon does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DaemonStartError {
    /// The configured block is a number.
    #[error(
        "block: expected finalized, safe or latest; the daemon offers no numbered block, because its verdicts never age"
    )]
    NumericBlock,
    /// The configuration exposes the sandbox network beyond this machine.
    #[error("http.listen: {0} is beyond loopback, where the sandbox never listens, because its verdicts prove nothing")]
    SandboxBeyondLoopback(ListenAddress),
    /// The address or socket cannot be bound.
    #[error("{key}: {address}: {detail}")]
    Listen {
        /// The configuration key of the address.
        key: &'static str,
        /// The address or socket.
        address: ListenAddress,
        /// The operating system's error.
        detail: String,
    },
    /// The configuration signs verdicts of the sandbox network.
    #[error("sign.key: the sandbox signs nothing, because its verdicts prove nothing")]
    SandboxSigns,
    /// The signing key, or a key to publish, is unusable.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The resources in `[orloj]` define no cards.
    #[error("orloj.resources: {0}")]
    Systems(#[from] OrlojCardGenerationError),
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
/// The configuration key that prevents serving.
pub fn check_serving_config(config: &Config) -> Result<(), DaemonStartError> {
    if config.chain.block.number().is_some() {
        return Err(DaemonStartError::NumericBlock);
    }
    for address in [Some(&config.http.listen), config.gate.listen.as_ref()].into_iter().flatten() {
        if config.chain.world == SANDBOX
            && address.is_beyond_loopback()
            && !clresolve_core::mutant!("sandbox-beyond-loopback")
        {
            return Err(DaemonStartError::SandboxBeyondLoopback(address.clone()));
        }
    }
    if config.chain.world == SANDBOX && config.sign.key.is_some() {
        return Err(DaemonStartError::SandboxSigns);
    }
    config.check_gate()?;
    sign::open_signer(&config.sign)?;
    systems::generate_cards(&config.orloj)?;
    Ok(())
}

/// Combines a state with its routes.
pub(super) fn build_service(state: AppState) -> ConfiguredService {
    let state = Arc::new(state);
    let pages = CrossOriginPolicy::new(&state.cors, &state.mcp);
    ConfiguredService { router: router::build_router(Arc::clone(&state)), state, pages }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_stays_on_this_machine_and_numbered_blocks_stay_off_http() {
        let mut config = Config::default();
        config.http.listen = "0.0.0.0:0".parse().unwrap();
        assert_eq!(check_serving_config(&config), Ok(()));
        config.chain.world = SANDBOX.to_owned();
        assert_eq!(
            check_serving_config(&config),
            Err(DaemonStartError::SandboxBeyondLoopback(config.http.listen.clone()))
        );
        config.http.listen = "[::1]:0".parse().unwrap();
        assert_eq!(check_serving_config(&config), Ok(()));
        config.chain.block = clresolve_resolver::config::BlockSelector::Number(5);
        assert_eq!(check_serving_config(&config), Err(DaemonStartError::NumericBlock));
    }
}
