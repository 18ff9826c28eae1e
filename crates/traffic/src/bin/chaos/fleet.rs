//! One replica across its restarts, and its responses.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use clresolve_traffic::{DaemonProcess, announce_to_prometheus, http_get};

use crate::line::{SwitchableTcpProxy, TcpProxyMode};

const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon that may be killed and restarted.
pub(crate) struct RestartableDaemon {
    config: PathBuf,
    /// The proxy through which Prometheus finds it after each restart.
    watched: SwitchableTcpProxy,
    lives: Mutex<RestartableDaemonState>,
}

struct RestartableDaemonState {
    started: u64,
    daemon: Option<DaemonProcess>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DaemonApiKind {
    /// Whether a request may pass.
    Gate,
    /// What is proven about a name.
    Report,
}

impl DaemonApiKind {
    /// The path of the query for a name.
    pub(crate) fn request_path(self, name: &str) -> String {
        match self {
            Self::Gate => format!("/v1/gate/{name}/summarize"),
            Self::Report => format!("/v1/verdicts/{name}"),
        }
    }
}

pub(crate) enum DaemonRequestOutcome {
    /// The whole response, head and body.
    Answer(String),
    /// The daemon was down, or was killed before it answered.
    Down,
    /// It is up, but did not answer.
    Unanswered(String),
}

impl RestartableDaemon {
    pub(crate) async fn start(config: PathBuf, instance: &str) -> anyhow::Result<Self> {
        let daemon = DaemonProcess::start(&config).await?;
        let watched = SwitchableTcpProxy::new(TcpProxyMode::To(daemon.address)).await?;
        announce_to_prometheus(instance, watched.address)?;
        Ok(Self { config, watched, lives: Mutex::new(RestartableDaemonState { started: 1, daemon: Some(daemon) }) })
    }

    /// Restarts it after it was killed.
    pub(crate) async fn restart(&self) -> anyhow::Result<()> {
        let daemon = DaemonProcess::start(&self.config).await?;
        self.watched.set_mode(TcpProxyMode::To(daemon.address));
        let mut lives = self.lock_state();
        lives.started += 1;
        lives.daemon = Some(daemon);
        Ok(())
    }

    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        self.take_daemon()?.signal("-KILL")
    }

    /// Sends SIGTERM, and waits until the process has ended.
    pub(crate) async fn stop(&self) -> anyhow::Result<()> {
        self.take_daemon()?.stop().await
    }

    /// Makes it reload its configuration.
    pub(crate) fn reload(&self) -> anyhow::Result<()> {
        self.lock_state().daemon.as_mut().context("it is down")?.signal("-HUP")
    }

    /// Its resident memory in KiB, if it is up.
    pub(crate) fn resident_memory_kib(&self) -> anyhow::Result<u64> {
        self.lock_state().daemon.as_ref().context("it is down")?.memory_kib("VmRSS:")
    }

    /// Fails if the process has ended by itself.
    pub(crate) fn ensure_alive(&self) -> anyhow::Result<()> {
        self.lock_state().daemon.as_mut().map_or(Ok(()), DaemonProcess::ensure_alive)
    }

    /// Sends one request on its own connection.
    pub(crate) async fn send_request(&self, path: &str) -> DaemonRequestOutcome {
        let Some((life, address)) = self.generation_and_address() else { return DaemonRequestOutcome::Down };
        let why = match timeout(PATIENCE, http_get(address, path)).await {
            Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 ") => return DaemonRequestOutcome::Answer(answer),
            Ok(Ok(answer)) => format!("unexpected response {answer:?}"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        if self.generation_and_address() == Some((life, address)) {
            DaemonRequestOutcome::Unanswered(why)
        } else {
            DaemonRequestOutcome::Down
        }
    }

    fn generation_and_address(&self) -> Option<(u64, SocketAddr)> {
        let lives = self.lock_state();
        lives.daemon.as_ref().map(|daemon| (lives.started, daemon.address))
    }

    fn take_daemon(&self) -> anyhow::Result<DaemonProcess> {
        self.lock_state().daemon.take().context("it is down")
    }

    fn lock_state(&self) -> MutexGuard<'_, RestartableDaemonState> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
