//! Replaces the configuration of a running daemon, as a whole or not at all.

use std::fmt;
use std::sync::Arc;

use clresolve_resolver::config::Config;

use super::in_force::CurrentService;
use super::serving::{DaemonStartError, build_service, check_serving_config};
use super::state::AppState;
use super::systems::OrlojCardGenerator;

/// Replaces the configuration in force.
pub struct ConfigReloader {
    /// The configuration in force.
    config: Config,
    in_force: Arc<CurrentService>,
}

/// Keys that are read only at startup. A reload keeps their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartupSetting {
    /// `http.listen`.
    Listen,
    /// `gate.listen`.
    GateListen,
    /// `http.connections` and `http.connections-per-client`.
    Connections,
    /// `[sign]`.
    Sign,
    /// `[memory]`.
    Memory,
    /// `[cache]`.
    Cache,
    /// `[redis]`.
    Redis,
    /// `[admin]`.
    Admin,
    /// `[telemetry]`.
    Telemetry,
}

/// Why a configuration was rejected. The previous one stays in force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReloadError {
    /// The configuration selects another network.
    #[error("a change of world, chain-id, genesis or universal-resolver requires a restart")]
    OtherWorld,
    /// The daemon could not serve under the configuration.
    #[error(transparent)]
    Serve(#[from] DaemonStartError),
}

impl ConfigReloader {
    pub(super) const fn new(config: Config, in_force: Arc<CurrentService>) -> Self {
        Self { config, in_force }
    }

    /// The configuration in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Puts `config` in force from the next response on. The cache stays valid if rules and endpoints are unchanged.
    /// Returns the changed keys that require a restart.
    ///
    /// # Errors
    /// [`ReloadError`]. The configuration in force is then unchanged.
    pub async fn reload(&mut self, config: &Config) -> Result<Vec<StartupSetting>, ReloadError> {
        if network_settings(config) != network_settings(&self.config)
            && !clresolve_core::mutant!("reloads-into-another-world")
        {
            return Err(ReloadError::OtherWorld);
        }
        let mut next = config.clone();
        let restart =
            StartupSetting::ALL.into_iter().filter(|keys| keys.copy_setting(&self.config, &mut next)).collect();
        next.network.denied.clone_from(&self.config.network.denied);
        check_serving_config(&next)?;
        let before = self.in_force.state();
        let resolver = before.resolver.reconfigured(&next).await.map_err(DaemonStartError::from)?;
        let systems = OrlojCardGenerator::open(&next.orloj, resolver.now()).map_err(DaemonStartError::from)?;
        let state = AppState::after_reload(&before, resolver, &next, systems);
        self.in_force.replace_service(build_service(state));
        self.config = next;
        Ok(restart)
    }
}

impl StartupSetting {
    const ALL: [Self; 9] = [
        Self::Listen,
        Self::GateListen,
        Self::Connections,
        Self::Sign,
        Self::Memory,
        Self::Cache,
        Self::Redis,
        Self::Admin,
        Self::Telemetry,
    ];

    /// Copies the values of `before` into `next`. Returns whether they differed.
    fn copy_setting(self, before: &Config, next: &mut Config) -> bool {
        match self {
            Self::Listen => copy_if_different(&before.http.listen, &mut next.http.listen),
            Self::GateListen => copy_if_different(&before.gate.listen, &mut next.gate.listen),
            Self::Connections => {
                let all = copy_if_different(&before.http.connections, &mut next.http.connections);
                copy_if_different(&before.http.connections_per_client, &mut next.http.connections_per_client) || all
            }
            Self::Sign => copy_if_different(&before.sign, &mut next.sign),
            Self::Memory => copy_if_different(&before.memory, &mut next.memory),
            Self::Cache => copy_if_different(&before.cache, &mut next.cache),
            Self::Redis => copy_if_different(&before.redis, &mut next.redis),
            Self::Admin => copy_if_different(&before.admin, &mut next.admin),
            Self::Telemetry => copy_if_different(&before.telemetry, &mut next.telemetry),
        }
    }
}

impl fmt::Display for StartupSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listen => "http.listen",
            Self::GateListen => "gate.listen",
            Self::Connections => "http.connections and http.connections-per-client",
            Self::Sign => "[sign]",
            Self::Memory => "[memory]",
            Self::Cache => "[cache]",
            Self::Redis => "[redis]",
            Self::Admin => "[admin]",
            Self::Telemetry => "[telemetry]",
        })
    }
}

fn copy_if_different<T: Clone + PartialEq>(before: &T, next: &mut T) -> bool {
    let other = std::mem::replace(next, before.clone());
    other != *before
}

/// The settings that determine the network of a configuration.
fn network_settings(config: &Config) -> impl PartialEq {
    let chain = &config.chain;
    (chain.world.clone(), chain.id, chain.genesis, chain.universal_resolver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_all_that_takes_a_restart() {
        let document = include_str!("../../../../docs/run.md");
        let (_, section) = document.split_once("\n### Reload\n").expect("the section");
        let section = section.split("\n### ").next().unwrap_or_default();
        for part in StartupSetting::ALL
            .iter()
            .flat_map(|part| part.to_string().split(" and ").map(str::to_owned).collect::<Vec<_>>())
        {
            let key = part.rsplit('.').next().unwrap_or_default();
            assert!(section.contains(&format!("`{key}`")), "{part}");
        }
    }
    use clresolve_resolver::config::ListenAddress;
    use clresolve_resolver::resolve::Resolver;

    fn change(keys: StartupSetting, config: &mut Config) {
        match keys {
            StartupSetting::Listen => config.http.listen = ListenAddress::loopback(1),
            StartupSetting::GateListen => config.gate.listen = Some(ListenAddress::loopback(2)),
            StartupSetting::Connections => config.http.connections += 1,
            StartupSetting::Sign => config.sign.key = Some("other.pem".into()),
            StartupSetting::Memory => config.memory.path = Some("other".into()),
            StartupSetting::Cache => config.cache.trusted += 1,
            StartupSetting::Redis => config.redis.mac_key = Some("other.key".into()),
            StartupSetting::Admin => config.admin.socket = Some("/run/other.sock".parse().expect("a path")),
            StartupSetting::Telemetry => config.telemetry.otlp = Some("http://127.0.0.1:4318".parse().expect("a URL")),
        }
    }

    #[tokio::test]
    async fn what_takes_a_restart_is_named_and_stays_as_it_was() {
        let config = Config::default();
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let state = AppState::new(resolver, &config, None, None);
        let mut reloader = ConfigReloader::new(config.clone(), Arc::new(CurrentService::new(build_service(state))));
        for keys in [
            StartupSetting::Listen,
            StartupSetting::GateListen,
            StartupSetting::Connections,
            StartupSetting::Sign,
            StartupSetting::Memory,
            StartupSetting::Cache,
            StartupSetting::Redis,
            StartupSetting::Admin,
            StartupSetting::Telemetry,
        ] {
            let mut next = config.clone();
            change(keys, &mut next);
            assert_eq!(reloader.reload(&next).await.expect("the rest can be served"), [keys]);
            assert_eq!(*reloader.config(), config, "{keys}");
        }
        let mut other = config.clone();
        other.chain.id += 1;
        assert!(matches!(reloader.reload(&other).await, Err(ReloadError::OtherWorld)));
        assert_eq!(*reloader.config(), config);
    }
}
