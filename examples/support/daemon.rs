//! A daemon in its process, for the programs that put it under load: the one that
//! `CLRESOLVE_BIN` names, else the `clresolve` beside the program that starts it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;

/// How long the daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A daemon, running.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Its log, which nobody reads on.
    _log: BufReader<ChildStderr>,
}

impl Daemon {
    /// Starts it, and waits until it says where it listens.
    pub(crate) async fn start(config: &Path) -> anyhow::Result<Self> {
        let program = program()?;
        let mut command = Command::new(&program);
        command.args(["serve", "--config"]).arg(config).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("{}: build it first", program.display()))?;
        let mut log = BufReader::new(child.stderr.take().context("a pipe")?);
        let mut said = String::new();
        // Warnings may come first, and nothing comes after the end of the process.
        while log.read_line(&mut said).await? > 0 {
            if let Some((_, address)) = said.trim().rsplit_once("listening on http://") {
                return Ok(Self { address: address.parse()?, child, _log: log });
            }
        }
        bail!("the daemon does not listen: {said}")
    }

    /// That its process goes on.
    pub(crate) fn is_alive(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("the daemon ended: {status}"),
            None => Ok(()),
        }
    }

    /// Memory in KiB, by a row of the process's status.
    pub(crate) fn memory(&self, row: &str) -> anyhow::Result<u64> {
        let id = self.child.id().context("the daemon ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(row)).context("no such row")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let id = self.child.id().context("the daemon ended by itself")?;
        let sent = std::process::Command::new("kill").args([signal, &id.to_string()]).status()?;
        ensure!(sent.success(), "kill failed");
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.signal("-TERM")?;
        let status = timeout(PATIENCE, self.child.wait()).await.context("the daemon does not end")??;
        ensure!(status.success(), "the daemon ended with {status}");
        Ok(())
    }
}

fn program() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("CLRESOLVE_BIN") {
        return Ok(named.into());
    }
    let here = std::env::current_exe()?;
    Ok(here.ancestors().nth(2).context("a folder of builds")?.join("clresolve"))
}
