//! The end of a daemon in its process, for the programs that put it under load.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long the daemon may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks it to stop, and waits until it has.
pub(crate) async fn stop(mut child: Child) -> anyhow::Result<()> {
    let id = child.id().context("the daemon ended by itself")?;
    ensure!(Command::new("kill").arg(id.to_string()).status().await?.success(), "kill failed");
    let status = timeout(PATIENCE, child.wait()).await.context("the daemon does not end")??;
    ensure!(status.success(), "the daemon ended with {status}");
    Ok(())
}
