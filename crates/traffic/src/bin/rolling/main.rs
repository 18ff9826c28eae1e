//! Rolling restart: three daemons behind nginx are replaced one after the other while clients send requests. No request
//! may be lost.
//!
//! ```text
//! just rolling        a minute
//! just rolling 300    five minutes
//! ```
//!
//! Each restart follows docs/run.md: remove the daemon from the proxy, send SIGTERM, start it, wait until it is ready
//! and has resolved the hot names, and add it back. nginx runs with `deploy/nginx.conf`, which never retries on a
//! second daemon, because the gate has its own deadline. Each request is sent once, on its own connection. A request
//! without the expected response is lost.

mod nginx;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use axum::Router;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_traffic::{DaemonProcess, free_address, http_get};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use nginx::NginxProcess;

const DAEMONS: usize = 3;

/// Number of clients for the good name and for the bad one, each, and their pause between two requests.
const CLIENTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(5);

const GOOD: &str = "summarizeagent.eth";
const BAD: &str = "entry-version.eth";

/// Time limit of a response, and of a daemon's start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time between two checks of a starting daemon.
const LOOK: Duration = Duration::from_millis(20);

/// Maximum number of lost requests that are printed.
const SHOWN: usize = 20;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let seconds = std::env::args().nth(1).map_or(Ok(60), |text| text.parse::<u64>())?;
    ensure!(seconds > 0, "expected: rolling [SECONDS]");
    let folder = tempfile::tempdir()?;
    let sandbox = Sandbox::start().await.context("the sandbox does not start")?;
    let mut fleet = Vec::new();
    for number in 0..DAEMONS {
        let mut config = sandbox.config();
        config.http.listen = clresolve_resolver::config::ListenAddress::Tcp(free_address()?);
        let file = folder.path().join(format!("{number}.toml"));
        config.save(&file)?;
        fleet.push(FleetDaemon::start(file).await?);
    }
    let addresses = fleet.iter().map(|member| member.daemon.address).collect();
    let nginx = NginxProcess::start(folder.path(), start_agent_runtime().await?, addresses).await?;

    let seen = Arc::new(RollingRestartReport::default());
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        for (name, status) in [(GOOD, "200"), (BAD, "403")] {
            clients.spawn(send_requests_until(nginx.address, name, status, end, Arc::clone(&seen)));
        }
    }
    let mut restarts = 0;
    while Instant::now() < end {
        let number = restarts % DAEMONS;
        let member = fleet.swap_remove(number);
        nginx.exclude_daemon(Some(number)).await?;
        fleet.push(member.restart().await?);
        fleet.swap(number, DAEMONS - 1);
        nginx.exclude_daemon(None).await?;
        restarts += 1;
    }
    while let Some(client) = clients.join_next().await {
        client?;
    }
    seen.print_and_check(seconds, restarts)
}

/// One daemon process of the fleet.
struct FleetDaemon {
    file: PathBuf,
    daemon: DaemonProcess,
}

impl FleetDaemon {
    /// Starts it, and waits until it is ready and has resolved the hot names.
    async fn start(file: PathBuf) -> anyhow::Result<Self> {
        let daemon = DaemonProcess::start(&file).await?;
        let is_ready = async {
            while status_code_text(&http_get(daemon.address, "/readyz").await?) != "200" {
                sleep(LOOK).await;
            }
            for name in [GOOD, BAD] {
                http_get(daemon.address, &format!("/v1/verdicts/{name}")).await?;
            }
            anyhow::Ok(())
        };
        timeout(PATIENCE, is_ready).await.context("a daemon does not become ready")??;
        Ok(Self { file, daemon })
    }

    async fn restart(self) -> anyhow::Result<Self> {
        self.daemon.stop().await?;
        Self::start(self.file).await
    }
}

/// The agent runtime behind the proxy.
async fn start_agent_runtime() -> anyhow::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(async || "paid")).await });
    Ok(address)
}

async fn send_requests_until(
    proxy: SocketAddr,
    name: &'static str,
    deserved: &'static str,
    end: Instant,
    seen: Arc<RollingRestartReport>,
) {
    while Instant::now() < end {
        let began = Instant::now();
        let said = timeout(PATIENCE, http_get(proxy, &format!("/agents/{name}/summarize/v1"))).await;
        let lost = match &said {
            Ok(Ok(answer)) if status_code_text(answer) == deserved => None,
            Ok(Ok(answer)) => Some(answer.lines().next().unwrap_or("an empty answer").to_owned()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("no answer in time".to_owned()),
        };
        seen.record_result(name, lost, began.elapsed());
        sleep(PAUSE).await;
    }
}

fn status_code_text(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[derive(Default)]
struct RollingRestartReport(Mutex<RollingRestartCounts>);

#[derive(Default)]
struct RollingRestartCounts {
    /// Expected responses, by name.
    answered: BTreeMap<&'static str, u64>,
    times: Vec<Duration>,
    lost: Vec<String>,
}

impl RollingRestartReport {
    fn record_result(&self, name: &'static str, lost: Option<String>, time: Duration) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.times.push(time);
        match lost {
            Some(why) => counts.lost.push(format!("{name}: {why}")),
            None => *counts.answered.entry(name).or_default() += 1,
        }
    }

    fn print_and_check(&self, seconds: u64, restarts: usize) -> anyhow::Result<()> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.times.sort_unstable();
        let at = |share: usize| counts.times.get(counts.times.len().saturating_sub(1) * share / 1000).copied();
        println!("rolling restart of {DAEMONS} daemons behind nginx, for {seconds} s");
        println!("restarts               {restarts}");
        for (name, status) in [(GOOD, 200), (BAD, 403)] {
            println!("{name:<22} {} answers of {status}", counts.answered.get(name).copied().unwrap_or_default());
        }
        for (what, share) in [("median", 500), ("99 of 100 within", 990), ("slowest", 1000)] {
            println!("{what:<22} {:.1?}", at(share).unwrap_or_default());
        }
        println!("lost                   {}", counts.lost.len());
        for lost in counts.lost.iter().take(SHOWN) {
            println!("  {lost}");
        }
        ensure!(restarts >= DAEMONS, "not every daemon was restarted: run it for longer");
        ensure!(counts.lost.is_empty(), "{} requests were lost", counts.lost.len());
        Ok(())
    }
}
