//! One replica across its restarts, and its responses.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use clresolve_traffic::{Daemon, announce, exchange};

use crate::line::{Laid, Line};

const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon that may be killed and restarted.
pub(crate) struct Member {
    config: PathBuf,
    /// The proxy through which Prometheus finds it after each restart.
    watched: Laid,
    lives: Mutex<Lives>,
}

struct Lives {
    started: u64,
    daemon: Option<Daemon>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiKind {
    /// Whether a request may pass.
    Gate,
    /// What is proven about a name.
    Report,
}

impl ApiKind {
    /// The path of the query for a name.
    pub(crate) fn path(self, name: &str) -> String {
        match self {
            Self::Gate => format!("/v1/gate/{name}/summarize"),
            Self::Report => format!("/v1/verdicts/{name}"),
        }
    }
}

pub(crate) enum DaemonReply {
    /// The whole response, head and body.
    Answer(String),
    /// The daemon was down, or was killed before it answered.
    Down,
    /// It is up, but did not answer.
    Unanswered(String),
}

impl Member {
    pub(crate) async fn start(config: PathBuf, instance: &str) -> anyhow::Result<Self> {
        let daemon = Daemon::start(&config).await?;
        let watched = Laid::new(Line::To(daemon.address)).await?;
        announce(instance, watched.address)?;
        Ok(Self { config, watched, lives: Mutex::new(Lives { started: 1, daemon: Some(daemon) }) })
    }

    /// Restarts it after it was killed.
    pub(crate) async fn start_again(&self) -> anyhow::Result<()> {
        let daemon = Daemon::start(&self.config).await?;
        self.watched.set(Line::To(daemon.address));
        let mut lives = self.lives();
        lives.started += 1;
        lives.daemon = Some(daemon);
        Ok(())
    }

    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        self.take()?.signal("-KILL")
    }

    /// Sends SIGTERM, and waits until the process has ended.
    pub(crate) async fn stop(&self) -> anyhow::Result<()> {
        self.take()?.stop().await
    }

    /// Makes it reload its configuration.
    pub(crate) fn reload(&self) -> anyhow::Result<()> {
        self.lives().daemon.as_mut().context("it is down")?.signal("-HUP")
    }

    /// Its resident memory in KiB, if it is up.
    pub(crate) fn memory(&self) -> anyhow::Result<u64> {
        self.lives().daemon.as_ref().context("it is down")?.memory("VmRSS:")
    }

    /// Fails if the process has ended by itself.
    pub(crate) fn is_alive(&self) -> anyhow::Result<()> {
        self.lives().daemon.as_mut().map_or(Ok(()), Daemon::is_alive)
    }

    /// Sends one request on its own connection.
    pub(crate) async fn ask(&self, path: &str) -> DaemonReply {
        let Some((life, address)) = self.place() else { return DaemonReply::Down };
        let why = match timeout(PATIENCE, exchange(address, path)).await {
            Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 ") => return DaemonReply::Answer(answer),
            Ok(Ok(answer)) => format!("unexpected response {answer:?}"),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer in time".to_owned(),
        };
        if self.place() == Some((life, address)) { DaemonReply::Unanswered(why) } else { DaemonReply::Down }
    }

    fn place(&self) -> Option<(u64, SocketAddr)> {
        let lives = self.lives();
        lives.daemon.as_ref().map(|daemon| (lives.started, daemon.address))
    }

    fn take(&self) -> anyhow::Result<Daemon> {
        self.lives().daemon.take().context("it is down")
    }

    fn lives(&self) -> MutexGuard<'_, Lives> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
