//! Freshness: a record changes in every block. Does the gate close before the next block?
//!
//! ```text
//! just freshness         1,000 changes, in 18 minutes
//! just freshness 60      60 changes
//! ```
//!
//! Slots and latencies are mainnet's, head polls and limits are the defaults, all divided by [`scale::FACTOR`].
//! The gate's deadline and the pauses after failures are not divided. Every fiftieth slot is missed. The chain and the
//! web hosts run in this process, the daemon (the `clresolve` beside this program) in its own.
//!
//! The daemon reads four endpoints of four operators, of which two must agree. Three serve the newest block, and one of
//! these lies: it changes records, reports a head far ahead, and invents blocks. The fourth is honest, but a block
//! behind. A single honest endpoint would not do: it would agree with the one behind only after the next block.
//!
//! Clients continuously ask the gate about twenty hot names. Each block changes one record of one name, and the third
//! block after that restores the record. The gate closes with the first 403 that no 200 follows until then. A 200 is
//! wrong if the gate has already refused the changed name with a code that is not transient. Any status other than 200
//! and 403 is wrong.

mod chain;
mod endpoint;
mod report;
mod scale;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clresolve_resolver::config::{ChainProofMode, Config, ListenAddress};
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_traffic::{DaemonProcess, http_get};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use chain::{ENDPOINTS, NAMES, PUBLISHER, RequestCountSample, SlotPacedSandboxChain, hot_name};
use report::{BlockRecordWrites, FreshnessReport};
use scale::{FACTOR, LATENCY, SLOT};

/// Number of clients, and the pause of each between two requests.
const CLIENTS: usize = 8;
const PAUSE: Duration = Duration::from_millis(5);

/// Maximum age of a head, in slots: the default on mainnet.
const MAX_HEAD_AGE: u32 = 5;

/// Number of blocks before the first change, during which requests are counted separately.
const QUIET_BLOCKS: usize = 20;

/// The budget of each endpoint: header polls per head, and hot names per call.
const POLLS_PER_HEAD: usize = 6;
const NAMES_PER_CALL: usize = 20;

/// Maximum number of consecutive blocks without a write. Within them, the daemon must trust a restored name again.
const IDLE_BLOCKS: usize = 100;

/// Time limit of a response, and of the daemon's start with all hot names.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause before a name is requested again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let changes = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse::<usize>())?;
    ensure!(changes > 0, "expected: freshness [CHANGES]");
    let world = CustomSandbox::start(&freshness_sandbox_spec().map_err(anyhow::Error::msg)?).await?;
    let mut chain = SlotPacedSandboxChain::start(&world).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("clresolve.toml");
    let config = daemon_config(&world, &chain)?;
    config.save(&file)?;
    print_setting(&config);

    let starting = tokio::spawn(start_daemon(file));
    while !starting.is_finished() {
        seal_unchanged_block(&mut chain).await?;
    }
    let mut daemon = starting.await??;
    let report = Arc::new(FreshnessReport::new());
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(query_gate_repeatedly(daemon.address, client, Arc::clone(&report)));
    }
    let begun = chain.sample_request_counts();
    for _ in 0..QUIET_BLOCKS {
        seal_unchanged_block(&mut chain).await?;
    }
    let quiet = chain.sample_request_counts();
    change_records(changes, &mut chain, &report, &mut daemon).await?;
    let ended = chain.sample_request_counts();
    clients.shutdown().await;
    daemon.stop().await?;

    print_request_rates(&begun, &quiet, "nothing changes");
    print_request_rates(&quiet, &ended, "every block changes a name");
    report.print_and_check()
}

/// The hot names and their owner.
fn freshness_sandbox_spec() -> Result<SandboxSpec, String> {
    let mut spec = format!("[[name]]\nname = \"{PUBLISHER}\"\nholder = \"publisher\"\naddr = \"publisher\"\n");
    for index in 0..NAMES {
        spec += &format!("[[agent]]\nname = \"{}\"\nabout = \"It is asked for all the time.\"\n", hot_name(index));
    }
    SandboxSpec::parse(&spec)
}

/// A configuration with the hosts of `world`, the endpoints of `chain`, and the default times at this scale.
fn daemon_config(world: &CustomSandbox, chain: &SlotPacedSandboxChain) -> anyhow::Result<Config> {
    let mut config = world.config();
    config.http.listen = ListenAddress::loopback(0);
    // The daemon sees all clients as one.
    config.http.cold_runs_per_minute = u32::MAX;
    config.chain.genesis = Some(chain.genesis());
    config.chain.endpoints = chain.endpoint_configs()?;
    config.chain.proof = Some(ChainProofMode::Quorum);
    config.chain.max_head_age = Some(SLOT * MAX_HEAD_AGE);
    config.chain.head_poll /= FACTOR;
    config.cache.max_unconfirmed /= FACTOR;
    Ok(config)
}

fn print_setting(config: &Config) {
    println!("freshness, with mainnet's times divided by {FACTOR}");
    println!("slot                   {SLOT:?}, one in fifty missed; latency {LATENCY:?}");
    let (poll, unconfirmed) = (config.chain.head_poll, config.cache.max_unconfirmed);
    println!("limits                 head poll {poll:.0?}, max-unconfirmed {unconfirmed:?}");
    println!("not divided            gate deadline {:?}", config.gate.deadline);
    for (label, conduct) in ENDPOINTS {
        println!("endpoint               {label}: {conduct:?}");
    }
    println!("load                   {NAMES} hot names, {CLIENTS} clients");
}

/// Starts the daemon, and waits until its gate allows every hot name.
async fn start_daemon(config: PathBuf) -> anyhow::Result<DaemonProcess> {
    let daemon = DaemonProcess::start(&config).await?;
    let is_warm = async {
        for name in 0..NAMES {
            while !http_get(daemon.address, &gate_path(name)).await?.starts_with("HTTP/1.1 200 ") {
                sleep(ASK_AGAIN).await;
            }
        }
        anyhow::Ok(())
    };
    timeout(PATIENCE, is_warm).await.context("the gate does not allow the hot names")??;
    Ok(daemon)
}

/// Seals a block without a change.
async fn seal_unchanged_block(chain: &mut SlotPacedSandboxChain) -> anyhow::Result<()> {
    chain.wait_for_next_slot().await;
    chain.seal()?;
    chain.publish();
    Ok(())
}

/// Changes a record in every block, and restores each, until `changes` records are restored.
async fn change_records(
    changes: usize,
    chain: &mut SlotPacedSandboxChain,
    report: &FreshnessReport,
    daemon: &mut DaemonProcess,
) -> anyhow::Result<()> {
    let mut idle = 0;
    while report.restored_change_count() < changes {
        daemon.ensure_alive()?;
        chain.wait_for_next_slot().await;
        let plan = report.plan(report.change_count() < changes);
        idle = if is_plan_empty(&plan) { idle + 1 } else { 0 };
        ensure!(idle <= IDLE_BLOCKS, "no hot name is trusted again");
        for record in &plan.restored {
            chain.restore(*record)?;
        }
        if let Some(record) = plan.changed {
            chain.change(record)?;
        }
        chain.seal()?;
        report.record_sealed_block(&plan);
        chain.publish();
    }
    Ok(())
}

fn is_plan_empty(plan: &BlockRecordWrites) -> bool {
    plan.changed.is_none() && plan.restored.is_empty()
}

/// Queries the gate about every hot name in a loop.
async fn query_gate_repeatedly(daemon: SocketAddr, client: usize, report: Arc<FreshnessReport>) {
    // At any time, the clients query different names.
    let first = client * NAMES / CLIENTS;
    for name in (0..NAMES).cycle().skip(first) {
        let asked = Instant::now();
        match timeout(PATIENCE, http_get(daemon, &gate_path(name))).await {
            Ok(Ok(answer)) => report.record_response(name, asked, &answer),
            Ok(Err(error)) => report.record_missing_response(name, &error.to_string()),
            Err(_) => report.record_missing_response(name, "none in time"),
        }
        sleep(PAUSE).await;
    }
}

fn gate_path(name: usize) -> String {
    format!("/v1/gate/{}/summarize", hot_name(name))
}

/// Prints the number of requests to each endpoint per head and hot name between two samples.
fn print_request_rates(from: &RequestCountSample, to: &RequestCountSample, meanwhile: &str) {
    let heads = f64::from(to.heads - from.heads);
    let per_name = |requests: f64| requests / NAMES as f64;
    let calls = NAMES.div_ceil(NAMES_PER_CALL);
    println!("requests per head and hot name while {meanwhile}");
    let budget = per_name((POLLS_PER_HEAD + calls) as f64);
    println!("  budget               {budget:.2} ({POLLS_PER_HEAD} polls and {calls} calls per head)");
    for ((label, _), (from, to)) in ENDPOINTS.iter().zip(from.requests.iter().zip(&to.requests)) {
        let per_head = |from: u64, to: u64| (to - from) as f64 / heads;
        let (polls, others) = (per_head(from.polls, to.polls), per_head(from.others, to.others));
        let requests = per_name(polls + others);
        println!("  {label:<20} {requests:.2} ({polls:.1} polls and {others:.1} other requests per head)");
    }
}
