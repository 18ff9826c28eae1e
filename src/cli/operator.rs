//! The operator interface of the daemon, used by SIGHUP and the admin socket.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};
use clresolve_core::digest::Digest;
use clresolve_resolver::config::{Config, MAX_FILE_BYTES, ProofGradeDemand};
use clresolve_server::http::{ConfigReloader, ReloadOutcome};
use clresolve_verdict::verdict::ResolutionDepth;
use tokio::sync::Mutex;
use tokio::time::sleep;

use super::args::ServeArguments;
use super::config_file::ConfigFileLocation;
use super::input;
use super::service_manager;
use super::stop::ReloadSignals;
use super::world::{self, CommandPaymentAuthority};

/// Time between two reads of a configuration file that is reloaded. A file that is being written differs.
const SETTLED: Duration = Duration::from_millis(100);

pub(super) struct ServeDaemonOperator {
    args: ServeArguments,
    current: Mutex<ConfigReloaderState>,
}

struct ConfigReloaderState {
    reloader: ConfigReloader,
    /// The digest of its file.
    digest: Option<Digest>,
}

/// Notifies the service manager on drop that the service is ready again, even if the reload failed.
struct ReloadEndNotifier;

impl Drop for ReloadEndNotifier {
    fn drop(&mut self) {
        service_manager::notify_ready();
    }
}

impl ServeDaemonOperator {
    /// `digest` is that of the initial configuration file, computed before the file was read.
    pub(super) fn new(args: ServeArguments, reloader: ConfigReloader, digest: Option<Digest>) -> Self {
        Self { args, current: Mutex::new(ConfigReloaderState { reloader, digest }) }
    }

    /// Reloads the configuration at each request. Never returns.
    pub(super) async fn reload_on_signals(&self, mut asks: ReloadSignals) {
        loop {
            asks.next().await;
            // The result is logged.
            let _ = self.reload().await;
        }
    }

    async fn reload(&self) -> anyhow::Result<ReloadOutcome> {
        let mut current = self.current.lock().await;
        service_manager::notify_reloading();
        let _ready = ReloadEndNotifier;
        let done = self.apply_config_file(&mut current).await;
        match &done {
            Ok(_) => {
                log_effective_settings(current.reloader.config(), "the configuration was read again and is in force")
            }
            Err(error) => tracing::error!("the configuration stays as it was: {error:#}"),
        }
        done
    }

    async fn apply_config_file(&self, current: &mut ConfigReloaderState) -> anyhow::Result<ReloadOutcome> {
        let (config, file, digest) = read_completely_written_config(&self.args).await?;
        let restart = current.reloader.reload(&config).await?;
        let is_unchanged = current.digest.replace(digest) == Some(digest);
        if is_unchanged {
            tracing::info!("{}: unchanged since it was last read", file.display());
        }
        for keys in &restart {
            tracing::warn!("{keys}: a change requires a restart; the old value stays in force");
        }
        Ok(ReloadOutcome { file, is_unchanged, restart })
    }
}

#[cfg(unix)]
#[async_trait::async_trait]
impl clresolve_server::http::DaemonOperator for ServeDaemonOperator {
    async fn reload_config(&self) -> Result<ReloadOutcome, String> {
        Self::reload(self).await.map_err(|error| format!("{error:#}"))
    }

    async fn settings_in_force(&self) -> std::collections::BTreeMap<String, serde_json::Value> {
        let layer = clresolve_resolver::config::ConfigLayer::from_config(self.current.lock().await.reloader.config());
        let settings = layer.map_err(anyhow::Error::from).and_then(|layer| super::config::flatten_config_layer(&layer));
        settings.unwrap_or_else(|error| {
            tracing::warn!(%error, "the settings cannot be shown");
            std::collections::BTreeMap::new()
        })
    }

    fn log_filter(&self) -> String {
        super::log_filter::current_log_filter()
    }

    fn set_log_filter(&self, filter: &str) -> Result<(), String> {
        super::log_filter::replace_log_filter(filter)
    }
}

/// Logs version, network, rules, and sources. Endpoints and gateways are identified by labels, since URLs may contain
/// keys.
pub(super) fn log_effective_settings(config: &Config, message: &str) {
    let Config { chain, rules, cache, .. } = config;
    let endpoints: Vec<&str> = chain.endpoints.iter().map(|endpoint| endpoint.label.as_str()).collect();
    let gateways: Vec<&str> = config.gateways.iter().map(|gateway| gateway.label.as_str()).collect();
    let proof = match chain.proof_grade_demand() {
        Ok(ProofGradeDemand::SingleRpc) => "single-rpc".to_owned(),
        Ok(ProofGradeDemand::Quorum(operators)) => format!("quorum of {operators}"),
        Ok(ProofGradeDemand::StateProof(operators)) => format!("state-proof, headers of {operators}"),
        Ok(ProofGradeDemand::ConsensusProof(0)) => "consensus-proof".to_owned(),
        Ok(ProofGradeDemand::ConsensusProof(operators)) => format!("consensus-proof, headers of {operators}"),
        // No resolver is built for such a configuration.
        Err(error) => error.to_string(),
    };
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        world = chain.world,
        chain = chain.id,
        block = %chain.block,
        profile = rules.profile,
        depth = rules.depth.as_str(),
        proof,
        endpoints = endpoints.join(", "),
        gateways = gateways.join(", "),
        cache = %format_args!("{} trusted, {} untrusted, {} bytes", cache.trusted, cache.untrusted, cache.verdict_bytes),
        shared = config.redis.url.is_some(),
        "{message}"
    );
    if let Some(gap) = super::config::missing_payment_setting(config) {
        tracing::warn!("{gap}");
    }
}

/// The digest of the configuration file. `None` if there is none, or it is a pipe, which cannot be read twice.
pub(super) fn config_file_digest(args: &ServeArguments) -> Option<Digest> {
    let path = config_file_path(args)?;
    let is_file = std::fs::metadata(&path).ok()?.is_file();
    if is_file { Some(Digest::compute(&input::read_file_or_stdin(&path, MAX_FILE_BYTES).ok()?)) } else { None }
}

/// Reads the configuration from a complete file: it ends with a line end, and nobody is writing it. Returns also the
/// path and the digest of the file.
async fn read_completely_written_config(args: &ServeArguments) -> anyhow::Result<(Config, PathBuf, Digest)> {
    let Some(path) = config_file_path(args) else {
        bail!("there is no configuration file to reload: start the daemon with --config FILE")
    };
    let read = || input::read_file_or_stdin(&path, MAX_FILE_BYTES);
    let before = read()?;
    ensure!(before.ends_with(b"\n"), "{}: the file is empty, or its last line has no end", path.display());
    let mut config = world::read_merged_config(
        &args.world,
        CommandPaymentAuthority::Payers,
        world::default_depth_layer(ResolutionDepth::default())?,
    )?;
    config.http.listen = args.listen.clone().unwrap_or(config.http.listen);
    sleep(SETTLED).await;
    let is_settled = read()? == before || clresolve_core::mutant!("half-written-files-are-read");
    ensure!(is_settled, "{}: the file is being written", path.display());
    Ok((config, path, Digest::compute(&before)))
}

/// The path of the configuration file, if there is one.
pub(super) fn config_file_path(args: &ServeArguments) -> Option<PathBuf> {
    if args.world.sandbox { None } else { ConfigFileLocation::find(&args.world.rules).map(|file| file.path) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::*;
    use crate::cli::args::{self, CliCommand};

    fn serving(file: &Path) -> ServeArguments {
        let arguments = [OsStr::new("clresolve"), OsStr::new("serve"), OsStr::new("--config"), file.as_os_str()];
        match args::parse_command_line(arguments.map(OsStr::to_owned).into()).expect("arguments").command {
            CliCommand::Serve(args) => args,
            other => panic!("{other:?}"),
        }
    }

    /// The first half of a file, up to a line end, may be a valid but different configuration.
    #[tokio::test(start_paused = true)]
    async fn a_file_that_grows_between_two_looks_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("clresolve.toml");
        let first = "[gate]\n";
        std::fs::write(&file, first).expect("the folder can be written");
        let args = serving(&file);
        assert!(read_completely_written_config(&args).await.is_ok(), "what nobody writes is read");
        let written = async {
            std::fs::write(&file, format!("{first}deny = [\"status-deprecated\"]\n")).expect("it can be written");
        };
        let (read, ()) = tokio::join!(read_completely_written_config(&args), written);
        let error = read.expect_err("it was read before it was whole").to_string();
        assert!(error.ends_with("the file is being written"), "{error}");
        assert!(read_completely_written_config(&args).await.is_ok(), "it is whole");
    }
}
