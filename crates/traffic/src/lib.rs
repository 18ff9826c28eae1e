//! What the load programs share: starting a daemon process (the program in `CLRESOLVE_BIN`, or else the `clresolve`
//! next to the current program), and the worst documents.

pub mod documents;
pub mod worst;

use std::io::{self, BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// Time limit for the daemon to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two checks of a stopping daemon.
const PAUSE: Duration = Duration::from_millis(20);

/// The allocator settings of the shipped unit and image. By default, glibc raises its mmap threshold once a large block
/// is freed, so floods of large documents leave holes in its heaps that nothing else fills. It also creates more heaps
/// than there are processors, each with its own holes.
const ALLOCATOR: [(&str, &str); 2] = [("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_ARENA_MAX", "2")];

/// The address of a client, in the benchmark range (RFC 2544). The daemon counts all loopback addresses as one client.
#[must_use]
pub const fn client_address(group: u8, number: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, group, number)
}

/// # Errors
/// If the addresses of [`client_address`] do not belong to this machine.
pub fn ensure_client_addresses() -> anyhow::Result<()> {
    TcpListener::bind((client_address(0, 1), 0))
        .context("198.18.0.0/15 is not local: start with crates/traffic/own-network")?;
    Ok(())
}

/// A running daemon. Dropping this kills it.
#[derive(Debug)]
pub struct DaemonProcess {
    child: Child,
    /// The address it listens on.
    pub address: SocketAddr,
    /// Its log. It is not read any further.
    _log: BufReader<ChildStderr>,
}

impl DaemonProcess {
    /// Starts it, and waits until it reports its address.
    ///
    /// # Errors
    /// If the program is missing, or ends before it listens.
    pub async fn start(config: &Path) -> anyhow::Result<Self> {
        let program = daemon_program_path()?;
        let mut command = Command::new(&program);
        command.args(["serve", "--config"]).arg(config).envs(ALLOCATOR).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("{}: build it first", program.display()))?;
        spawn_blocking(|| Self::wait_until_listening(child)).await?
    }

    fn wait_until_listening(mut child: Child) -> anyhow::Result<Self> {
        let mut log = BufReader::new(child.stderr.take().context("a pipe")?);
        let mut said = String::new();
        // Warnings may precede the address. End of file means that the process has ended.
        while log.read_line(&mut said)? > 0 {
            if let Some((_, address)) = said.trim().rsplit_once("listening on http://") {
                return Ok(Self { address: address.parse()?, child, _log: log });
            }
        }
        bail!("the daemon does not listen: {said}")
    }

    /// Checks that the process is running.
    ///
    /// # Errors
    /// If it has ended.
    pub fn ensure_alive(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("the daemon ended: {status}"),
            None => Ok(()),
        }
    }

    /// The id of its process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Memory in KiB, from this row of the process's status.
    ///
    /// # Errors
    /// If the daemon ended or there is no such row.
    pub fn memory_kib(&self, row: &str) -> anyhow::Result<u64> {
        process_memory_kib(self.child.id(), row)
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// If it has ended.
    pub fn signal(&mut self, signal: &str) -> anyhow::Result<()> {
        self.ensure_alive()?;
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status()?;
        ensure!(sent.success(), "kill failed");
        Ok(())
    }

    /// Sends SIGTERM, and waits until it has ended.
    ///
    /// # Errors
    /// If it takes longer than thirty seconds, or reports a failure.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.signal("-TERM")?;
        let status = timeout(PATIENCE, self.wait_for_exit()).await.context("the daemon does not end")??;
        ensure!(status.success(), "the daemon ended with {status}");
        Ok(())
    }

    async fn wait_for_exit(&mut self) -> anyhow::Result<ExitStatus> {
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(status),
                None => sleep(PAUSE).await,
            }
        }
    }
}

impl Drop for DaemonProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Announces the daemon's address to Prometheus, as a file in the folder named by `TARGETS`, if that is set.
///
/// # Errors
/// If the file cannot be written.
pub fn announce_to_prometheus(instance: &str, address: SocketAddr) -> anyhow::Result<()> {
    let Some(folder) = std::env::var_os("TARGETS") else { return Ok(()) };
    let targets = json!([{"targets": [address.to_string()], "labels": {"instance": instance}}]);
    let file = Path::new(&folder).join(instance).with_extension("json");
    std::fs::write(&file, targets.to_string()).with_context(|| file.display().to_string())
}

/// Memory of a process in KiB, from this row of its status.
///
/// # Errors
/// If it ended or there is no such row.
pub fn process_memory_kib(process: u32, row: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(row)).context("no such row")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The response to one request for `path`, on its own connection.
///
/// # Errors
/// If the connection fails.
pub async fn http_get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: traffic\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The program: the one in `CLRESOLVE_BIN`, or else the `clresolve` next to the current program.
///
/// # Errors
/// If the path of the current program is unknown.
pub fn daemon_program_path() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("CLRESOLVE_BIN") {
        return Ok(named.into());
    }
    let here = std::env::current_exe()?;
    Ok(here.with_file_name("clresolve"))
}

/// A free address of this machine.
///
/// # Errors
/// If the system has none.
pub fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
