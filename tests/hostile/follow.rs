//! The daemon follows the chain through endpoints that lie, are silent or make up blocks to come: a change evicts all the
//! same, and what is made up changes no answer for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use clresolve_chain::transport::MAX_REPLY_BYTES;
use clresolve_core::name::EnsName;
use clresolve_resolver::clock::Clock;
use clresolve_resolver::config::{Config, ProofDemand};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::chain::RpcFault;
use clresolve_resolver::sandbox::{ChainState, World};
use clresolve_server::http::Server;
use jiff::{SignedDuration, Timestamp};
use reqwest::Client;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use url::Url;

use crate::{HANGS, PATIENCE, spec};

/// How often endpoints are asked here: at once.
pub(crate) const POLL: Duration = Duration::from_millis(5);

pub(crate) const GOOD: &str = "good.eth";

/// A name that the gate never allows.
const BAD: &str = "bad.eth";

/// Hints that an endpoint of a stranger may give at once, and each second after that.
const HINTS_AT_ONCE: u64 = 128;
const HINTS_PER_SECOND: u64 = 4;

/// Places with hints beyond its budget that a liar gives before anything is measured, and again after each step. Each
/// of its rounds names some dozens of places, in 500 logs a reply.
const FLOOD: u64 = 200;

/// Logs that it sends at least in each of these four times. Each is a hint.
const FLOOD_LOGS: u64 = 5_000;

/// Fewest answers of the gate that each of them measures. A liar's budget is a small part of them.
const FLOOD_ANSWERS: usize = 250;

/// Least rate of the liar while it is endured, in logs a second. A build without optimisation, beside other tests, has none
/// that it surely reaches: `just flood` holds the release build to it.
const LEAST_RATE: f64 = 10_000.0;

/// Questions to each of two daemons that are compared.
const QUESTIONS: usize = 100;

/// How much longer the answer from the cache may take beside a liar. Ten times as long is a run.
const MAX_SLOWDOWN: f64 = 3.0;

/// The time of the machine, or one that stands still; moved on by a number of seconds.
#[derive(Default)]
struct Shifted {
    standing: Option<Timestamp>,
    seconds: AtomicI64,
}

impl Shifted {
    fn standing() -> Self {
        Self { standing: Some(Timestamp::now()), seconds: AtomicI64::new(0) }
    }

    fn advance(&self, seconds: u64) {
        self.seconds.fetch_add(seconds.cast_signed(), Ordering::Relaxed);
    }
}

impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        self.standing.unwrap_or_else(Timestamp::now) + SignedDuration::from_secs(self.seconds.load(Ordering::Relaxed))
    }
}

/// A daemon over a world with its own endpoint and others that have these faults.
pub(crate) struct Stage {
    pub(crate) world: World,
    clock: Arc<Shifted>,
    address: String,
    client: Client,
    daemon: JoinHandle<()>,
}

impl Stage {
    async fn new(label: &str, others: &[RpcFault]) -> Self {
        Self::of(label, others, |_| {}).await
    }

    /// The same with other settings.
    pub(crate) async fn of(label: &str, others: &[RpcFault], set: impl FnOnce(&mut Config)) -> Self {
        let agents = [GOOD, "other.eth"].map(good);
        Self::with(label, &agents.concat(), others, Shifted::default(), set).await
    }

    async fn with(
        label: &str,
        agents: &str,
        others: &[RpcFault],
        clock: Shifted,
        set: impl FnOnce(&mut Config),
    ) -> Self {
        let world = World::start(&spec(agents)).await.unwrap();
        let mut config: Config = world.config();
        config.timeout = PATIENCE;
        config.gate.deadline = PATIENCE;
        config.http.listen = clresolve_resolver::config::ListenAt::loopback(0);
        config.http.cold_runs_per_minute = u32::MAX;
        config.chain.proof = Some(ProofDemand::SingleRpc);
        (config.follow.poll, config.follow.poll_public) = (POLL, POLL);
        config.chain.endpoints[0].label = format!("{label}-own");
        for (index, fault) in others.iter().enumerate() {
            let mut endpoint = world.endpoint(*fault, ChainState::Growing, false).await.unwrap();
            endpoint.label = format!("{label}-{index}");
            config.chain.endpoints.push(endpoint);
        }
        set(&mut config);
        let clock = Arc::new(clock);
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.unwrap();
        let server = Server::bind_with(&config, resolver).await.unwrap();
        let address = server.address().to_string();
        let daemon = tokio::spawn(server.run(std::future::pending()));
        Self { world, clock, address, client: Client::builder().no_proxy().build().unwrap(), daemon }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, String, String) {
        let answer = self.client.get(format!("http://{}{path}", self.address)).send().await.unwrap();
        let code = answer.headers().get("clresolve-code").map_or("", |code| code.to_str().unwrap()).to_owned();
        (answer.status().as_u16(), code, answer.text().await.unwrap())
    }

    /// Asks the gate about a name until it gives this answer.
    pub(crate) async fn until_gate(&self, name: &str, wanted: (u16, &str)) {
        let asking = async {
            loop {
                let (status, code, _) = self.get(&format!("/v1/gate/{name}")).await;
                if (status, code.as_str()) == wanted {
                    return;
                }
            }
        };
        timeout(HANGS, asking).await.unwrap_or_else(|_| panic!("the gate never answers {wanted:?} for {name}"));
    }

    /// Why the gate refuses [`BAD`].
    async fn refusal(&self) -> String {
        let (status, code, _) = self.get(&format!("/v1/gate/{BAD}")).await;
        assert_eq!(status, 403, "{BAD} is allowed");
        code
    }

    /// The value of a metric; 0 where there is none.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let (.., metrics) = self.get("/metrics").await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned));
        line.map_or(0, |value| value.parse().unwrap())
    }

    pub(crate) async fn until_metric(&self, name: &str, least: u64) {
        let asking = async { while self.metric(name).await < least {} };
        timeout(HANGS, asking).await.unwrap_or_else(|_| panic!("{name} is never {least}"));
    }

    /// How long the gate takes to allow a name.
    async fn time_to_allow(&self, name: &str) -> Duration {
        let began = Instant::now();
        let (status, code, _) = self.get(&format!("/v1/gate/{name}")).await;
        let time = began.elapsed();
        assert_eq!((status, code.as_str()), (200, ""), "{name}");
        time
    }

    pub(crate) fn write(&mut self, name: &str, value: &str) {
        self.world.write_text(&EnsName::parse(name).unwrap(), "cl.owner", value).unwrap();
    }
}

/// An agent about whom nothing is wrong.
fn good(name: &str) -> String {
    format!("[[agent]]\nname = \"{name}\"\nabout = \"Good.\"\nstate = \"trusted\"\n")
}

/// A daemon with an endpoint that makes up changes of all names without end.
struct Siege {
    stage: Stage,
    names: Vec<String>,
    /// Hints of the liar that its budget permits so far.
    budget: u64,
    /// Logs that the liar has sent.
    logs: Arc<AtomicU64>,
    /// How many of them while it was endured, and for how long that was.
    endured: (u64, Duration),
    /// How long each answer of the gate took meanwhile, and the slowest one of `livez`.
    times: Vec<Duration>,
    livez: Duration,
}

/// What stands before an endpoint, and counts the logs that it sends.
fn counted(upstream: Url, logs: Arc<AtomicU64>) -> Url {
    relay(upstream, move |_, reply| {
        logs.fetch_add(reply.matches("\"logIndex\"").count() as u64, Ordering::Relaxed);
        reply
    })
}

/// What stands before an endpoint, and sends what `hear` makes of each request and its reply.
fn relay(upstream: Url, hear: impl Fn(&[u8], String) -> String + Clone + Send + Sync + 'static) -> Url {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let http = Client::builder().no_proxy().build().unwrap();
    let passes = move |body: Bytes| {
        let (http, upstream, hear) = (http.clone(), upstream.clone(), hear.clone());
        async move {
            let reply = http.post(upstream).body(body.clone()).send().await.unwrap().text().await.unwrap();
            hear(&body, reply)
        }
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(passes)).await });
    url
}

impl Siege {
    const HINTS: &str = "clresolve_follow_hints_total{endpoint=\"siege-0\"}";
    const IGNORED: &str = "clresolve_follow_hints_ignored_total{endpoint=\"siege-0\",cause=\"budget\"}";

    /// Lets the liar go on while clients ask for all names, and compares what was taken of it with its budget.
    async fn endure(&mut self) {
        let until = self.stage.metric(Self::IGNORED).await + FLOOD;
        let (sent, answered, began) = (self.logs.load(Ordering::Relaxed), self.times.len(), Instant::now());
        let asking = async {
            while self.stage.metric(Self::IGNORED).await < until
                || self.logs.load(Ordering::Relaxed) < sent + FLOOD_LOGS
                || self.times.len() < answered + FLOOD_ANSWERS
            {
                for name in &self.names {
                    let (asked, (status, ..)) = (Instant::now(), self.stage.get(&format!("/v1/gate/{name}")).await);
                    self.times.push(asked.elapsed());
                    assert!([200, 403].contains(&status), "{status}");
                }
                self.stage.refusal().await;
                let (asked, _) = (Instant::now(), self.stage.get("/livez").await);
                self.livez = self.livez.max(asked.elapsed());
                let taken = self.stage.metric(Self::HINTS).await;
                assert!(taken <= self.budget, "{taken} hints were taken, and {} are permitted", self.budget);
            }
        };
        timeout(HANGS, asking).await.expect("the liar is ignored and counted");
        self.endured.0 += self.logs.load(Ordering::Relaxed) - sent;
        self.endured.1 += began.elapsed();
    }

    /// That it was a flood. An answer of the gate is late, after its deadline and what an answer takes here at all, only
    /// where a hint that was taken has its name read again: so no more are late than the budget permits.
    fn was_endured(&self) {
        let (logs, time) = self.endured;
        let rate = logs as f64 / time.as_secs_f64();
        let in_time = Config::default().gate.deadline + self.livez;
        let late = self.times.iter().filter(|time| **time > in_time).count();
        let (asked, slowest) = (self.times.len(), self.times.iter().max());
        println!("{logs} logs of the liar in {time:?}: {rate:.0} a second");
        println!("{late} of {asked} answers of the gate took longer than {in_time:?}, the slowest {slowest:?}");
        assert!(cfg!(debug_assertions) || rate >= LEAST_RATE, "{rate} logs a second");
        assert!(asked as u64 >= 5 * self.budget, "{asked} answers say little about {} hints", self.budget);
        assert!(late as u64 <= self.budget, "{late} late answers, and {} hints", self.budget);
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.daemon.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_chain_closes_the_gate_before_any_time_ends() {
    let mut stage = Stage::new("change", &[]).await;
    stage.until_gate(GOOD, (200, "")).await;
    stage.until_gate("other.eth", (200, "")).await;
    stage.write(GOOD, "thief.eth");
    stage.until_gate(GOOD, (403, "record-pending")).await;
    assert_eq!(stage.get("/v1/gate/other.eth").await.0, 200);
    assert_eq!(stage.metric("clresolve_cache_evictions_total{pool=\"trusted\",cause=\"changed\"}").await, 1);
}

/// One honest endpoint is enough: those that say nothing hide nothing.
#[tokio::test(flavor = "multi_thread")]
async fn silent_endpoints_hide_no_change() {
    let faults = [RpcFault::Stall, RpcFault::NoLogs, RpcFault::FloodOfLogs, RpcFault::EveryLog, RpcFault::Status(500)];
    let mut stage = Stage::new("silent", &faults).await;
    stage.until_gate(GOOD, (200, "")).await;
    stage.write(GOOD, "thief.eth");
    stage.until_gate(GOOD, (403, "record-pending")).await;
}

/// Where the only endpoint answers each question for logs with more than is read, no log tells of a change.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_no_endpoint_gives_logs_of_is_found_by_reading_again() {
    let mut stage = Stage::of("no-logs", &[], |config| {
        let only = &mut config.chain.endpoints[0].url;
        *only = relay(only.clone(), |request, reply| {
            let is_about_logs = String::from_utf8_lossy(request).contains("eth_getLogs");
            if is_about_logs { " ".repeat(MAX_REPLY_BYTES + 1) } else { reply }
        });
    })
    .await;
    let gaps = "clresolve_follow_gaps_total{endpoint=\"no-logs-own\"}";
    stage.until_gate(GOOD, (200, "")).await;
    let before = stage.metric(gaps).await;
    stage.write(GOOD, "thief.eth");
    stage.until_gate(GOOD, (403, "record-pending")).await;
    assert!(stage.metric(gaps).await > before);
    assert_eq!(stage.metric("clresolve_follow_hints_total{endpoint=\"no-logs-own\"}").await, 0);
}

/// Without a node, or without logs at all, an answer hides what has changed.
#[tokio::test(flavor = "multi_thread")]
async fn logs_that_say_nothing_are_counted() {
    type Bend = fn(&mut Value);
    let without_node: Bend = |logs| {
        for log in logs.as_array_mut().unwrap() {
            log["topics"].as_array_mut().unwrap().truncate(1);
        }
    };
    let without_logs: Bend = |logs| *logs = "none".into();
    for (label, bend) in [("without-node", without_node), ("without-logs", without_logs)] {
        let mut stage = Stage::of(label, &[], |config| {
            let only = &mut config.chain.endpoints[0].url;
            *only = relay(only.clone(), move |request, reply| {
                if !String::from_utf8_lossy(request).contains("eth_getLogs") {
                    return reply;
                }
                let mut reply: Value = serde_json::from_str(&reply).unwrap();
                bend(&mut reply["result"]);
                reply.to_string()
            });
        })
        .await;
        stage.until_gate(GOOD, (200, "")).await;
        stage.write(GOOD, "thief.eth");
        let ignored = format!("clresolve_follow_hints_ignored_total{{endpoint=\"{label}-own\",cause=\"malformed\"}}");
        stage.until_metric(&ignored, 1).await;
    }
}

/// Blocks that are too far ahead are nobody's: no name is withheld for them.
#[tokio::test(flavor = "multi_thread")]
async fn changes_in_blocks_of_the_far_future_are_ignored() {
    let stage = Stage::new("far", &[RpcFault::BlocksToCome(1_000_000)]).await;
    stage.until_gate(GOOD, (200, "")).await;
    stage.until_metric("clresolve_follow_hints_ignored_total{endpoint=\"far-0\",cause=\"too-far\"}", 1).await;
    assert_eq!(stage.get(&format!("/v1/gate/{GOOD}")).await.0, 200);
    assert_eq!(stage.metric("clresolve_follow_hints_total{endpoint=\"far-0\"}").await, 0);
}

/// An endpoint that announces changes in blocks to come withholds a name for a while, once.
#[tokio::test(flavor = "multi_thread")]
async fn changes_in_blocks_that_do_not_come_withhold_a_name_for_a_short_time() {
    let mut stage = Stage::new("ahead", &[RpcFault::BlocksToCome(8)]).await;
    let hints = "clresolve_follow_hints_total{endpoint=\"ahead-0\"}";
    stage.until_gate(GOOD, (403, "block-unavailable")).await;
    let taken = stage.metric(hints).await;
    stage.clock.advance(60);
    stage.until_gate(GOOD, (200, "")).await;
    // Its next block: the name is read again, and nothing is waited for.
    stage.write("other.eth", "thief.eth");
    stage.until_metric(hints, taken + 1).await;
    stage.until_gate(GOOD, (200, "")).await;
    stage.until_gate("other.eth", (403, "record-pending")).await;
    assert_eq!(stage.get(&format!("/v1/gate/{GOOD}")).await.0, 200);
}

/// Thousands of made-up changes cost no more than the liar's budget: names are evicted within it. Beyond it answers
/// stay what they are and come as soon as from a daemon without a liar, and the honest endpoint's word still counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_made_up_changes_costs_no_more_than_its_budget() {
    let names: Vec<String> = (0..16).map(|number| format!("agent-{number}.eth")).collect();
    let bad = format!(
        "[[agent]]\nname = \"{BAD}\"\nabout = \"Bad.\"\nstate = \"untrusted\"\n\
         codes = [\"resolver-missing\"]\nchain = {{ resolver = \"none\" }}\n"
    );
    let agents: String = names.iter().map(|name| good(name)).chain([bad]).collect();
    let alone = Stage::with("alone", &agents, &[], Shifted::standing(), |_| {}).await;
    let logs = Arc::<AtomicU64>::default();
    let stage = Stage::with("siege", &agents, &[RpcFault::InventedBlocks], Shifted::standing(), |config| {
        config.gate.deadline = Config::default().gate.deadline;
        let liar = &mut config.chain.endpoints[1].url;
        *liar = counted(liar.clone(), Arc::clone(&logs));
    })
    .await;
    for stage in [&alone, &stage] {
        for name in &names {
            stage.until_gate(name, (200, "")).await;
        }
    }
    let (endured, times, livez) = Default::default();
    let mut siege = Siege { stage, names: names.clone(), budget: HINTS_AT_ONCE, logs, endured, times, livez };
    siege.endure().await;
    siege.stage.clock.advance(10);
    siege.budget += 10 * HINTS_PER_SECOND;
    siege.endure().await;

    for name in &names {
        siege.stage.until_gate(name, (200, "")).await;
    }
    let (mut calm, mut besieged) = (Vec::new(), Vec::new());
    for name in names.iter().cycle().take(QUESTIONS) {
        calm.push(alone.time_to_allow(name).await);
        besieged.push(siege.stage.time_to_allow(name).await);
        let is_known = async { while siege.stage.refusal().await != "resolver-missing" {} };
        timeout(HANGS, is_known).await.expect("the gate says what is wrong with a bad name");
    }
    let slowdown = median(besieged).as_secs_f64() / median(calm).as_secs_f64();
    println!("an answer beside the liar takes {slowdown:.2} of one without it");
    assert!(slowdown < MAX_SLOWDOWN, "{slowdown}");
    siege.endure().await;

    siege.stage.write(&names[0], "thief.eth");
    siege.stage.until_gate(&names[0], (403, "record-pending")).await;
    siege.endure().await;
    siege.was_endured();
}
