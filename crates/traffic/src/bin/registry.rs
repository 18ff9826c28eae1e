//! Audits a registry of many names, one in twenty with each of these defects. Checks that the audit finds every defect
//! and invents none, how many chain requests it sends, and that its memory does not grow with the list. The sandbox's
//! other kinds of defect are audited in a separate list.
//!
//! ```text
//! just registry          300 names
//! just registry 10000
//! ```
//!
//! The sandbox network runs in this process, the audits in their own (the `clresolve` next to this program). A tenth of
//! the list is audited first, to measure how memory grows. Memory is read from `/proc`, so this requires Linux.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_resolver::config::Config;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::chain::SandboxRpcFault;
use clresolve_sandbox::spec::{SandboxAgentSpec, SandboxSpec};
use clresolve_sandbox::{ServedChainState, agents};
use clresolve_traffic::{daemon_program_path, process_memory_kib};
use serde_json::Value;
use tokio::time::{Instant, sleep};

const ONE_IN: usize = 20;

/// The sandbox's agents whose defects are repeated: of chain, records, host, IPFS, card and entry.
const DEFECTS: [&str; 15] = [
    "resolver-missing.eth",
    MUST_BE_ALONE,
    "missing-checksum.eth",
    "value-inexact.eth",
    "url-not-https.eth",
    "host-changed.eth",
    "cid-malformed.eth",
    "cid-mismatch.eth",
    "mirror-malformed.eth",
    "checksum-mismatch.eth",
    "card-not-json.eth",
    "card-field-missing.eth",
    "secret-in-card.eth",
    "entry-record-differs.eth",
    "record-pending.eth",
];

/// The agent that must be queried alone: it uses up all gas, so names in the same call would fail.
const MUST_BE_ALONE: &str = "resolver-burns-gas.eth";

/// The sandbox's agents with findings that are not repeated.
const LEFT_OUT: [&str; 2] = [
    // Its parent's contract resolves it, and these names have no contract.
    "alice.wildcard.eth",
    // The same defect as unregistered.eth, below another name.
    "nobody.raw-cid.eth",
];

/// Number of names of each other kind.
const OF_EACH_OTHER: usize = 3;

/// Maximum number of chain requests per name.
const MOST_REQUESTS: f64 = 0.2;

/// Maximum number of requests per name to each endpoint under a quorum of two. A group that one endpoint answers late
/// is sent to another.
const MOST_REQUESTS_TO_EACH: f64 = 0.3;

/// Number of endpoints under a quorum of two, as in the built-in configuration, and the maximum number of names in that
/// run.
const OF_A_QUORUM: usize = 3;
const MOST_AGREED: usize = 1_000;

/// Number of names in the loop over `verify`, one process each.
const LOOPED: usize = 20;

/// From this number of names on, memory must not exceed [`MOST_GROWTH_PER_CENT`] of that for a tenth of them. Below it,
/// the program's base memory dominates.
const FULL_SIZE: usize = 10_000;
const MOST_GROWTH_PER_CENT: u64 = 110;

/// Time between two memory samples of an audit.
const PAUSE: Duration = Duration::from_millis(10);

/// Maximum number of wrong rows that are printed.
const SHOWN: usize = 20;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let count = std::env::args().nth(1).map_or(Ok(300), |text| text.parse::<usize>())?;
    ensure!(count >= 10 * LOOPED, "expected: registry [NAMES], at least {}", 10 * LOOPED);
    let sandbox = agents::sandbox_spec();
    let others = other_defective_agents(&sandbox);
    let spec = registry_sandbox_spec(&sandbox, count, &others)?;
    let expected: Vec<ExpectedAuditRow> = spec.agents.iter().map(ExpectedAuditRow::from_spec).collect();
    let world = CustomSandbox::start(&spec).await?;
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("clresolve.toml");
    world.config().save(&config)?;
    let quorum = folder.path().join("quorum.toml");
    quorum_config(&world).await?.save(&quorum)?;

    let tenth = run_audit(&world, &config, folder.path(), &expected[..count / 10]).await?;
    let whole = run_audit(&world, &config, folder.path(), &expected[..count]).await?;
    let beside = run_audit(&world, &config, folder.path(), &expected[count..]).await?;
    let agreed = count.min(MOST_AGREED);
    let by_quorum = run_audit(&world, &quorum, folder.path(), &expected[..agreed]).await?;
    let looped = time_verify_loop(&config, &expected[..LOOPED])?;

    let growth = whole.peak_kib * 100 / tenth.peak_kib.max(1);
    let rate = count as f64 / whole.took.as_secs_f64();
    let requests = whole.requests as f64 / count as f64;
    let of_each = by_quorum.requests as f64 / (agreed * OF_A_QUORUM) as f64;
    println!("names                  {count}");
    println!("defects                {} kinds, one name in {ONE_IN} each", DEFECTS.len());
    println!("other defects          {} kinds, {OF_EACH_OTHER} names each", others.len());
    let wrong: Vec<&String> =
        [&tenth, &whole, &beside, &by_quorum].into_iter().flat_map(|audited| &audited.wrong).collect();
    println!("wrong rows             {}", wrong.len());
    println!("requests to the chain  {requests:.2} a name");
    println!("under a quorum of two  {of_each:.2} a name to each of {OF_A_QUORUM} endpoints");
    println!("peak memory            {} KiB, {growth} % of that for {} names", whole.peak_kib, count / 10);
    println!("names a second         {rate:.0}, {:.0} times those of a loop over `verify`", rate / looped);
    for wrong in wrong.iter().take(SHOWN) {
        println!("  {wrong}");
    }
    ensure!(wrong.is_empty(), "an audit overlooked a defect, or invented one");
    ensure!(requests <= MOST_REQUESTS, "names are not batched");
    ensure!(of_each <= MOST_REQUESTS_TO_EACH, "names are not batched under a quorum");
    ensure!(count < FULL_SIZE || growth <= MOST_GROWTH_PER_CENT, "memory grows with the list");
    Ok(())
}

/// The other agents with findings at depth `identity`.
fn other_defective_agents(sandbox: &SandboxSpec) -> Vec<&SandboxAgentSpec> {
    let is_told = |name: &str| DEFECTS.contains(&name) || LEFT_OUT.contains(&name);
    sandbox.agents.iter().filter(|agent| !agent.codes.is_empty() && !is_told(&agent.name)).collect()
}

/// A network with `count` names, where each defect affects one in [`ONE_IN`], followed by names with other defects.
fn registry_sandbox_spec(
    sandbox: &SandboxSpec,
    count: usize,
    others: &[&SandboxAgentSpec],
) -> anyhow::Result<SandboxSpec> {
    let good = SandboxSpec::parse("[[agent]]\nname = \"good.eth\"\nabout = \"Good.\"\nstate = \"trusted\"\n");
    let good = good.map_err(anyhow::Error::msg)?.agents.remove(0);
    let find = |name: &&str| sandbox.agents.iter().find(|agent| agent.name == *name).context("no such agent");
    let bad: Vec<&SandboxAgentSpec> = DEFECTS.iter().map(find).collect::<anyhow::Result<_>>()?;
    let listed = (0..count).map(|number| bad.get(number % ONE_IN).copied().unwrap_or(&good));
    let beside = (0..others.len() * OF_EACH_OTHER).map(|number| others[number % others.len()]);
    let named = |(number, like): (usize, &SandboxAgentSpec)| SandboxAgentSpec {
        name: format!("agent-{number}.eth"),
        ..like.clone()
    };
    let agents = listed.chain(beside).enumerate().map(named).collect();
    Ok(SandboxSpec { agents, names: sandbox.names.clone(), ..SandboxSpec::default() })
}

/// A configuration with these endpoints and a quorum of two.
async fn quorum_config(world: &CustomSandbox) -> anyhow::Result<Config> {
    let mut config = world.config();
    config.chain.endpoints.clear();
    for _ in 0..OF_A_QUORUM {
        config
            .chain
            .endpoints
            .push(world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::default(), false).await?);
    }
    config.chain.quorum = Some(2);
    Ok(config)
}

struct ExpectedAuditRow {
    name: String,
    state: Option<TrustState>,
    codes: Vec<ReasonCode>,
}

impl ExpectedAuditRow {
    fn from_spec(agent: &SandboxAgentSpec) -> Self {
        let mut codes = agent.codes.clone();
        codes.sort_by_key(|code| code.slug());
        Self { name: agent.name.clone(), state: agent.state, codes }
    }

    /// How its row differs from the expected one.
    fn describe_difference(&self, row: &Value) -> Option<String> {
        let reasons = row["reasons"].as_array().into_iter().flatten();
        let mut codes: Vec<&str> = reasons.filter_map(|reason| reason["code"].as_str()).collect();
        codes.sort_unstable();
        codes.dedup();
        let is_right = row["normalized"] == self.name.as_str()
            && row["state"].as_str() == self.state.map(TrustState::as_str)
            && codes.iter().copied().eq(self.codes.iter().map(|code| code.slug()));
        (!is_right).then(|| format!("{}: {} {codes:?}, expected {:?}", self.name, row["state"], self.codes))
    }
}

/// The results and costs of an audit.
struct AuditRunResult {
    wrong: Vec<String>,
    took: Duration,
    requests: u64,
    peak_kib: u64,
}

async fn run_audit(
    world: &CustomSandbox,
    config: &Path,
    folder: &Path,
    expected: &[ExpectedAuditRow],
) -> anyhow::Result<AuditRunResult> {
    let (names, report) = (folder.join("names.txt"), folder.join("report.json"));
    let list: Vec<&str> = expected.iter().map(|expected| expected.name.as_str()).collect();
    std::fs::write(&names, list.join("\n"))?;
    let asked = || world.request_counts().rpc + world.request_counts().further_rpc;
    let (before, began) = (asked(), Instant::now());
    let mut command = Command::new(daemon_program_path()?);
    command.arg("audit").arg("--config").arg(config).arg("--names").arg(&names).arg("--out").arg(&report);
    let mut child = command.args(["--depth", "identity", "--json", "--timeout", "2m"]).stderr(Stdio::null()).spawn()?;
    let mut peak_kib = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        peak_kib = peak_kib.max(process_memory_kib(child.id(), "VmHWM:").unwrap_or(0));
        sleep(PAUSE).await;
    };
    let (took, requests) = (began.elapsed(), asked() - before);
    ensure!(status.code() == Some(1), "the audit ended with {status}");
    let report: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
    let rows = report["rows"].as_array().context("a report without rows")?;
    let mut wrong: Vec<_> =
        expected.iter().zip(rows).filter_map(|(expected, row)| expected.describe_difference(row)).collect();
    if rows.len() != expected.len() {
        wrong.push(format!("{} rows for {} names", rows.len(), expected.len()));
    }
    Ok(AuditRunResult { wrong, took, requests, peak_kib })
}

/// Names per second of consecutive `verify` processes.
fn time_verify_loop(config: &Path, expected: &[ExpectedAuditRow]) -> anyhow::Result<f64> {
    let began = Instant::now();
    for ExpectedAuditRow { name, .. } in expected {
        let mut command = Command::new(daemon_program_path()?);
        command.args(["verify", name.as_str(), "--timeout", "2m", "--config"]).arg(config);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        ensure!(status.code().is_some_and(|code| matches!(code, 0 | 1 | 3)), "verify ended with {status}");
    }
    Ok(expected.len() as f64 / began.elapsed().as_secs_f64())
}
