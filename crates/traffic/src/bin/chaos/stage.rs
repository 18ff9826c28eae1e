//! The replicas and everything they depend on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clresolve_resolver::config::{ChainProofMode, Config};
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::ServedChainState;
use clresolve_sandbox::chain::SandboxRpcFault;
use clresolve_sandbox::spec::SandboxSpec;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::fleet::{DaemonApiKind, DaemonRequestOutcome, RestartableDaemon};
use crate::line::{SwitchableTcpProxy, TcpProxyMode};
use crate::report::{ChaosTestReport, ParsedGateResponse};
use crate::server::RedisServerProcess;

/// Number of daemons. The first one is never killed.
pub(crate) const DAEMONS: usize = 3;

/// A client's pause between two requests.
const PAUSE: Duration = Duration::from_millis(10);

/// Number of names that lose and regain their trust.
pub(crate) const TURNING: usize = 8;

/// How often endpoints are polled for their newest block.
const POLL: Duration = Duration::from_millis(500);

/// Time between two memory samples.
const LOOK: Duration = Duration::from_secs(1);

const MAC_KEY: &str = "3333333333333333333333333333333333333333333333333333333333333333";

pub(crate) struct ChaosTestEnvironment {
    pub(crate) end: Instant,
    pub(crate) fleet: Vec<RestartableDaemon>,
    /// The proxy to each endpoint, and its normal target.
    pub(crate) endpoints: Vec<(SwitchableTcpProxy, TcpProxyMode)>,
    /// The proxy to all hosts and the gateway, and its normal target.
    pub(crate) hosts: (SwitchableTcpProxy, TcpProxyMode),
    /// The chain endpoint of the lying network, and the address of its hosts and gateway.
    pub(crate) liar: TcpProxyMode,
    pub(crate) lying_hosts: TcpProxyMode,
    pub(crate) redis: std::sync::Mutex<RedisServerProcess>,
    /// Locked while all endpoints stall, and until a change must be known, because no daemon could notice it meanwhile.
    pub(crate) sight: Mutex<CustomSandbox>,
    pub(crate) report: ChaosTestReport,
    _lying: CustomSandbox,
    _folder: tempfile::TempDir,
}

impl ChaosTestEnvironment {
    pub(crate) async fn start(time: Duration) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let world = CustomSandbox::start(&chaos_sandbox_spec(false)).await?;
        let lying = CustomSandbox::start(&chaos_sandbox_spec(true)).await?;
        let redis = RedisServerProcess::start(&[]).context("install redis-server")?;
        let mut config = world.config();
        let endpoints = start_endpoint_proxies(&world, &mut config).await?;
        let hosts = start_hosts_proxy(&mut config).await?;
        let of_liar = lying.config();
        // Its hosts have the same names as the others, so their certificates must be trusted too.
        config.network.ca_pems.extend_from_slice(&of_liar.network.ca_pems);
        config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
        config.http.cold_runs_per_minute = u32::MAX;
        // The sandbox network uses no shared cache, so this network gets another name.
        config.chain.world = "chaos".to_owned();
        config.chain.proof = Some(ChainProofMode::Quorum);
        config.chain.head_poll = POLL;
        config.redis.url = Some(redis.url());
        config.redis.mac_key = Some(redis.write_mac_key_file(&[MAC_KEY]));
        let mut fleet = Vec::new();
        for number in 0..DAEMONS {
            fleet.push(start_daemon(&config, folder.path(), number).await?);
        }
        let liar = lying.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Growing, false).await?;
        Ok(Self {
            end: Instant::now() + time,
            fleet,
            endpoints,
            hosts,
            liar: forwarding_mode(&liar.url)?,
            lying_hosts: TcpProxyMode::To(host_server(&of_liar)?.parse()?),
            redis: std::sync::Mutex::new(redis),
            sight: Mutex::new(world),
            report: ChaosTestReport::default(),
            _lying: lying,
            _folder: folder,
        })
    }

    pub(crate) fn is_running(&self) -> bool {
        Instant::now() < self.end
    }

    /// Makes every daemon resolve the good names, so that a later refusal is significant.
    pub(crate) async fn warm_up(&self) -> anyhow::Result<()> {
        for member in &self.fleet {
            for name in std::iter::once("good.eth".to_owned()).chain((0..TURNING).map(turning_name)) {
                // Unlike the gate, the report API waits for the resolution.
                member.send_request(&DaemonApiKind::Report.request_path(&name)).await;
                let DaemonRequestOutcome::Answer(said) =
                    member.send_request(&DaemonApiKind::Gate.request_path(&name)).await
                else {
                    anyhow::bail!("{name}: no answer")
                };
                ensure!(ParsedGateResponse::parse(&said).is_some_and(|said| said.is_allowed), "{name}: {said}");
            }
        }
        Ok(())
    }

    /// Queries one daemon about every name in a loop.
    pub(crate) async fn run_client(
        self: Arc<Self>,
        member: usize,
        api: DaemonApiKind,
        client: usize,
    ) -> anyhow::Result<()> {
        let names = ["good.eth", "bad.eth", "unproven.eth"].map(str::to_owned);
        let names: Vec<String> = names.into_iter().chain((0..TURNING).map(turning_name)).collect();
        for name in names.iter().cycle().skip(client) {
            if !self.is_running() {
                break;
            }
            let asked = Instant::now();
            let said = self.fleet[member].send_request(&api.request_path(name)).await;
            self.report.record_outcome(api, name, asked, &said);
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Samples the memory of the daemon that is never killed.
    pub(crate) async fn sample_memory(self: Arc<Self>) -> anyhow::Result<()> {
        while self.is_running() {
            for member in &self.fleet {
                member.ensure_alive()?;
            }
            self.report.record_memory(self.fleet[0].resident_memory_kib()?);
            sleep(LOOK).await;
        }
        Ok(())
    }
}

async fn start_daemon(config: &Config, folder: &Path, number: usize) -> anyhow::Result<RestartableDaemon> {
    let file = folder.join(format!("{number}.toml"));
    config.save(&file)?;
    RestartableDaemon::start(file, &format!("fleet-{number}")).await
}

/// Three endpoints of three operators, each behind a proxy.
async fn start_endpoint_proxies(
    world: &CustomSandbox,
    config: &mut Config,
) -> anyhow::Result<Vec<(SwitchableTcpProxy, TcpProxyMode)>> {
    config.chain.endpoints.clear();
    let mut laid = Vec::new();
    for operator in ["one.example", "two.example", "three.example"] {
        let mut endpoint = world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Growing, false).await?;
        let line = forwarding_mode(&endpoint.url)?;
        let before = SwitchableTcpProxy::new(line).await?;
        endpoint.url = format!("http://{}/", before.address).parse()?;
        endpoint.operator = operator.to_owned();
        config.chain.endpoints.push(endpoint);
        laid.push((before, line));
    }
    Ok(laid)
}

/// Puts all hosts, which are one server, behind one proxy.
async fn start_hosts_proxy(config: &mut Config) -> anyhow::Result<(SwitchableTcpProxy, TcpProxyMode)> {
    let server = host_server(config)?;
    let line = TcpProxyMode::To(server.parse()?);
    let before = SwitchableTcpProxy::new(line).await?;
    for rule in &mut config.network.connect_to {
        *rule = rule.to_string().replace(&server, &before.address.to_string()).parse()?;
    }
    Ok((before, line))
}

/// The address of the server behind all hosts of a network.
fn host_server(config: &Config) -> anyhow::Result<String> {
    let rule = config.network.connect_to.first().context("a world has hosts")?.to_string();
    Ok(rule.splitn(3, ':').nth(2).context("HOST:PORT:ADDRESS:PORT")?.to_owned())
}

fn forwarding_mode(url: &url::Url) -> anyhow::Result<TcpProxyMode> {
    Ok(TcpProxyMode::To(url.socket_addrs(|| None)?.into_iter().next().context("an address")?))
}

pub(crate) fn turning_name(number: usize) -> String {
    format!("turning-{number}.eth")
}

/// Good, bad and turning names. In the lying network, the chain makes all of them good, its hosts serve another version
/// of each card, and its gateway serves blocks with one changed byte under the true CIDs.
fn chaos_sandbox_spec(is_lie: bool) -> SandboxSpec {
    let served = if is_lie { "web = \"other\"\nipfs = \"lie\"\n" } else { "" };
    let agent =
        |name: &str, rest: &str| format!("[[agent]]\nname = \"{name}\"\nabout = \"In the chaos.\"\n{served}{rest}\n");
    let bad = |defect: &'static str| if is_lie { "" } else { defect };
    let mut agents = "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n".to_owned();
    agents += &agent("good.eth", "");
    agents += &agent("bad.eth", bad("route = \"v1.0.0\""));
    agents += &agent("unproven.eth", bad("[agent.latest]\n\"cl.owner\" = \"thief.eth\""));
    agents.extend((0..TURNING).map(|number| agent(&turning_name(number), "")));
    SandboxSpec::parse(&agents).expect("it is as the sandbox reads it")
}
