//! nginx in front of the daemons, with the shipped configuration.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clresolve_traffic::free_address;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Time limit for nginx to start, or to stop the workers of an old configuration.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time between two checks.
const LOOK: Duration = Duration::from_millis(20);

const SHIPPED: &str = include_str!("../../../linked/nginx.conf");

pub(crate) struct NginxProcess {
    master: Child,
    pub(crate) address: SocketAddr,
    folder: PathBuf,
    runtime: SocketAddr,
    daemons: Vec<SocketAddr>,
}

impl Drop for NginxProcess {
    fn drop(&mut self) {
        // At SIGTERM, the master stops its workers. It may have ended already.
        let _ = Command::new("kill").args(["-TERM", &self.master.id().to_string()]).status();
        let _ = self.master.wait();
    }
}

impl NginxProcess {
    pub(crate) async fn start(folder: &Path, runtime: SocketAddr, daemons: Vec<SocketAddr>) -> anyhow::Result<Self> {
        let address = free_address()?;
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration(folder, address, runtime, &daemons, None)?)?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder).args(["-e", "stderr", "-c"]).arg(&file).stderr(Stdio::null());
        let master = command.spawn().context("install nginx")?;
        let nginx = Self { master, address, folder: folder.to_owned(), runtime, daemons };
        let listens = async {
            while TcpStream::connect(address).await.is_err() {
                sleep(LOOK).await;
            }
        };
        timeout(PATIENCE, listens).await.context("nginx does not listen")?;
        Ok(nginx)
    }

    /// Removes one daemon from the configuration, or adds all, and waits until the old workers have ended.
    pub(crate) async fn exclude_daemon(&self, out: Option<usize>) -> anyhow::Result<()> {
        let text = configuration(&self.folder, self.address, self.runtime, &self.daemons, out)?;
        std::fs::write(self.folder.join("nginx.conf"), text)?;
        let before = self.workers()?;
        let asked = Command::new("kill").args(["-HUP", &self.master.id().to_string()]).status()?;
        ensure!(asked.success(), "nginx has ended");
        let gone = async {
            while !self.workers()?.is_disjoint(&before) {
                sleep(LOOK).await;
            }
            anyhow::Ok(())
        };
        timeout(PATIENCE, gone).await.context("nginx keeps its workers")?
    }

    fn workers(&self) -> anyhow::Result<BTreeSet<u32>> {
        let master = self.master.id();
        let children = std::fs::read_to_string(format!("/proc/{master}/task/{master}/children"))?;
        children.split_whitespace().map(|id| Ok(id.parse()?)).collect()
    }
}

/// The shipped configuration with the daemons of the fleet, except `out`.
fn configuration(
    folder: &Path,
    address: SocketAddr,
    runtime: SocketAddr,
    daemons: &[SocketAddr],
    out: Option<usize>,
) -> anyhow::Result<String> {
    let servers: Vec<String> = daemons
        .iter()
        .enumerate()
        .map(|(at, daemon)| format!("server {daemon}{};", if out == Some(at) { " down" } else { "" }))
        .collect();
    let mut gate = SHIPPED.to_owned();
    for (from, to) in [
        ("server 127.0.0.1:8402;", servers.join(" ")),
        ("server 127.0.0.1:4021;", format!("server {runtime};")),
        ("listen 127.0.0.1:8083;", format!("listen {address};")),
    ] {
        ensure!(gate.contains(from), "deploy/nginx.conf does not contain `{from}`");
        gate = gate.replace(from, &to);
    }
    let folder = folder.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .concat();
    Ok(format!(
        "daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n\
         http {{ access_log off; {temporary}{gate} }}\n"
    ))
}
