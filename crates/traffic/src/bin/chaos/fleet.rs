//! One daemon of the fleet through all its lives, and what it says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::timeout;

use clresolve_traffic::{Daemon, announce, exchange};

use crate::line::{Laid, Line};

/// What an answer takes at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon that may be killed and started again.
pub(crate) struct Member {
    config: PathBuf,
    /// Where a Prometheus that watches finds it in all its lives.
    watched: Laid,
    lives: Mutex<Lives>,
}

struct Lives {
    /// How often it was started.
    started: u64,
    /// `None` while it is down.
    daemon: Option<Daemon>,
}

/// Which face of a daemon is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// May a request pass?
    Gate,
    /// What is proven?
    Report,
}

impl Face {
    /// Where it is asked about a name.
    pub(crate) fn path(self, name: &str) -> String {
        match self {
            Self::Gate => format!("/v1/gate/{name}/summarize"),
            Self::Report => format!("/v1/verdicts/{name}"),
        }
    }
}

/// What came of a question.
pub(crate) enum DaemonReply {
    /// The whole answer, head and body.
    Answer(String),
    /// The daemon was down, or was killed meanwhile.
    Down,
    /// It lives, and did not answer.
    Unanswered(String),
}

impl Member {
    pub(crate) async fn start(config: PathBuf, instance: &str) -> anyhow::Result<Self> {
        let daemon = Daemon::start(&config).await?;
        let watched = Laid::new(Line::To(daemon.address)).await?;
        announce(instance, watched.address)?;
        Ok(Self { config, watched, lives: Mutex::new(Lives { started: 1, daemon: Some(daemon) }) })
    }

    /// Starts it again, after it was killed.
    pub(crate) async fn start_again(&self) -> anyhow::Result<()> {
        let daemon = Daemon::start(&self.config).await?;
        self.watched.set(Line::To(daemon.address));
        let mut lives = self.lives();
        lives.started += 1;
        lives.daemon = Some(daemon);
        Ok(())
    }

    /// Ends its process at once.
    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        self.take()?.signal("-KILL")
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn stop(&self) -> anyhow::Result<()> {
        self.take()?.stop().await
    }

    /// Has it read its configuration again.
    pub(crate) fn reload(&self) -> anyhow::Result<()> {
        self.lives().daemon.as_mut().context("it is down")?.signal("-HUP")
    }

    /// Its memory in KiB, where it is up.
    pub(crate) fn memory(&self) -> anyhow::Result<u64> {
        self.lives().daemon.as_ref().context("it is down")?.memory("VmRSS:")
    }

    /// That its process has not ended by itself.
    pub(crate) fn is_alive(&self) -> anyhow::Result<()> {
        self.lives().daemon.as_mut().map_or(Ok(()), Daemon::is_alive)
    }

    /// One question on a connection of its own.
    pub(crate) async fn ask(&self, path: &str) -> DaemonReply {
        let Some((life, address)) = self.place() else { return DaemonReply::Down };
        let why = match timeout(PATIENCE, exchange(address, path)).await {
            Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 ") => return DaemonReply::Answer(answer),
            Ok(Ok(answer)) => format!("no answer but {answer:?}"),
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
