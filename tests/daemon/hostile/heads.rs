//! The daemon reads hot names again at each new head: a change closes the gate at once, and one faulty endpoint neither
//! evicts a name, nor keeps one, nor makes honest endpoints answer more requests.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::hex;
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use clresolve_core::name::EnsName;
use clresolve_core::reading::ChainBlock;
use clresolve_resolver::clock::Clock;
use clresolve_resolver::config::{ChainProofMode, Config, ListenAddress};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_resolver::telemetry::PrometheusExposition;
use clresolve_sandbox::ServedChainState;
use clresolve_sandbox::chain::SandboxRpcFault;
use clresolve_server::http::HttpDaemon;
use clresolve_verdict::verdict::VerdictConfirmationSource;
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use url::Url;

use crate::hostile::{HANGS, PATIENCE, spec};
use crate::support::proxy::Proxy;

/// Pause between two polls of an endpoint.
const POLL: Duration = Duration::from_millis(5);

/// A pause that no test reaches: only questions ask for the head.
const NO_POLLS: Duration = Duration::from_secs(3600);

pub(crate) const GOOD: &str = "good.eth";
pub(crate) const OTHER: &str = "other.eth";
const OFF_CHAIN: &str = "offchain.eth";

/// New blocks in which nothing changes.
const BLOCKS: usize = 4;

/// Most calls to an endpoint at one head for hot names that fit in one call. One is enough: the daemon repeats it only
/// while too few endpoints have the block, which takes microseconds here.
const CALLS_PER_HEAD: usize = 3;

/// Newest block of an endpoint that runs backwards. The sandbox's chain begins with as many.
const BACKWARDS_FROM: usize = 5;

/// The faults of one endpoint of three. `None`: it reports ever older blocks.
const FAULTS: [(&str, Option<SandboxRpcFault>); 6] = [
    ("stalled", Some(SandboxRpcFault::Stall)),
    ("silent", Some(SandboxRpcFault::Status(500))),
    ("other records", Some(SandboxRpcFault::OtherRecords)),
    ("other blocks", Some(SandboxRpcFault::OtherBlocks)),
    ("blocks to come", Some(SandboxRpcFault::BlocksToCome(8))),
    ("backwards", None),
];

/// A clock that stands still until it is moved on, by seconds.
struct Standing(Timestamp, AtomicI64);

impl Standing {
    fn advance(&self, seconds: i64) {
        self.1.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        self.0 + SignedDuration::from_secs(self.1.load(Ordering::Relaxed))
    }
}

/// How a tap passes requests on: unchanged, not at all (HTTP status 503 or 429), or with older and older blocks for
/// `latest`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TapBehaviour {
    Unchanged,
    Down,
    Limited,
    Backwards,
}

/// A proxy before an endpoint that records the requests.
#[derive(Clone)]
struct Tap(Arc<Mutex<Wire>>);

struct Wire {
    upstream: Url,
    behaviour: TapBehaviour,
    asked: Vec<Asked>,
}

/// A JSON-RPC request.
struct Asked {
    method: String,
    /// The block: a tag, a number, or the hash of a call.
    at: String,
    /// What is called.
    call: String,
}

impl Asked {
    fn of(request: &Value) -> Self {
        let method = request["method"].as_str().unwrap_or_default().to_owned();
        let is_call = method == "eth_call";
        let block = &request["params"][usize::from(is_call)];
        let at = block["blockHash"].as_str().or_else(|| block.as_str()).unwrap_or_default().to_owned();
        Self { method, at, call: if is_call { request["params"][0].to_string() } else { String::new() } }
    }

    fn is_poll(&self) -> bool {
        self.method == "eth_getBlockByNumber" && self.at == "latest"
    }
}

impl Tap {
    async fn before(upstream: Url) -> (Self, Proxy) {
        let tap = Self(Arc::new(Mutex::new(Wire { upstream, behaviour: TapBehaviour::Unchanged, asked: Vec::new() })));
        let (passing, http) = (tap.clone(), Client::builder().no_proxy().build().unwrap());
        let passes = move |body: Bytes| {
            let (tap, http) = (passing.clone(), http.clone());
            async move { tap.pass(&http, &body).await }
        };
        (tap, Proxy::serving(Router::new().fallback(passes)).await)
    }

    async fn pass(&self, http: &Client, body: &[u8]) -> (StatusCode, String) {
        let mut request: Value = serde_json::from_slice(body).unwrap();
        let (upstream, behaviour) = self.record(&mut request);
        match behaviour {
            TapBehaviour::Down => return (StatusCode::SERVICE_UNAVAILABLE, String::new()),
            TapBehaviour::Limited => return (StatusCode::TOO_MANY_REQUESTS, String::new()),
            TapBehaviour::Unchanged | TapBehaviour::Backwards => {}
        }
        match http.post(upstream).body(request.to_string()).send().await {
            Ok(reply) => (reply.status(), reply.text().await.unwrap_or_default()),
            Err(_) => (StatusCode::BAD_GATEWAY, String::new()),
        }
    }

    fn record(&self, request: &mut Value) -> (Url, TapBehaviour) {
        let mut wire = self.0.lock().unwrap();
        let requests = match request {
            Value::Array(requests) => requests.as_mut_slice(),
            request => std::slice::from_mut(request),
        };
        for request in requests {
            let asked = Asked::of(request);
            if asked.is_poll() && wire.behaviour == TapBehaviour::Backwards {
                let number = BACKWARDS_FROM - wire.asked.len() % BACKWARDS_FROM;
                request["params"][0] = json!(format!("{number:#x}"));
            }
            wire.asked.push(asked);
        }
        (wire.upstream.clone(), wire.behaviour)
    }

    fn set(&self, behaviour: TapBehaviour) {
        self.0.lock().unwrap().behaviour = behaviour;
    }

    /// Passes requests on to another endpoint from now on. Returns the previous one.
    fn turn_to(&self, upstream: Url) -> Url {
        std::mem::replace(&mut self.0.lock().unwrap().upstream, upstream)
    }

    fn count(&self, is_counted: impl Fn(&Asked) -> bool) -> usize {
        self.0.lock().unwrap().asked.iter().filter(|asked| is_counted(asked)).count()
    }

    fn polls(&self) -> usize {
        self.count(Asked::is_poll)
    }

    /// Readings of finalized records: one for each resolution.
    fn resolutions(&self) -> usize {
        self.count(|asked| asked.method == "eth_call" && asked.at == "finalized")
    }

    /// Calls at this block, by its hash.
    fn readings(&self, block: &ChainBlock) -> usize {
        self.readings_of("", block)
    }

    /// Calls at this block that contain this label of a name.
    fn readings_of(&self, label: &str, block: &ChainBlock) -> usize {
        let (hash, label) = (block.hash.to_string(), hex::encode(label));
        self.count(|asked| asked.method == "eth_call" && asked.at == hash && asked.call.contains(&label))
    }

    fn methods(&self) -> BTreeSet<String> {
        self.0.lock().unwrap().asked.iter().map(|asked| asked.method.clone()).collect()
    }

    /// Waits until a poll has ended that began after this call. The polls of an endpoint follow each other.
    async fn polled(&self) {
        self.polled_at_least(self.polls() + 2).await;
    }

    /// Waits until this number of polls have begun.
    async fn polled_at_least(&self, count: usize) {
        until("a poll", async || self.polls() >= count).await;
    }
}

/// A daemon whose endpoints are behind taps.
pub(crate) struct Stage {
    pub(crate) world: CustomSandbox,
    clock: Arc<Standing>,
    resolver: Resolver,
    /// One for each endpoint, that of the operator's own endpoint first.
    taps: Vec<Tap>,
    address: String,
    client: Client,
    daemon: JoinHandle<()>,
    _proxies: Vec<Proxy>,
}

impl Stage {
    /// A daemon over the sandbox's own endpoint, and third parties' endpoints with these faults.
    pub(crate) async fn new(agents: &str, others: &[SandboxRpcFault], set: impl FnOnce(&mut Config)) -> Self {
        let clock = Arc::new(Standing(Timestamp::now(), AtomicI64::new(0)));
        let world = CustomSandbox::start(&spec(agents)).await.unwrap();
        let mut config: Config = world.config();
        config.timeout = PATIENCE;
        config.gate.deadline = PATIENCE;
        config.http.listen = ListenAddress::loopback(0);
        config.http.cold_runs_per_minute = u32::MAX;
        config.chain.proof = Some(ChainProofMode::SingleRpc);
        config.chain.head_poll = POLL;
        for fault in others {
            config
                .chain
                .endpoints
                .push(world.start_rpc_endpoint(*fault, ServedChainState::Growing, false).await.unwrap());
        }
        let (mut taps, mut proxies) = (Vec::new(), Vec::new());
        for endpoint in &mut config.chain.endpoints {
            let (tap, proxy) = Tap::before(endpoint.url.clone()).await;
            endpoint.url = proxy.url();
            taps.push(tap);
            proxies.push(proxy);
        }
        set(&mut config);
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.unwrap();
        let server = HttpDaemon::bind_with_resolver(&config, resolver.clone()).await.unwrap();
        let address = server.address().to_string();
        let daemon = tokio::spawn(server.run(std::future::pending()));
        let client = Client::builder().no_proxy().build().unwrap();
        Self { world, clock, resolver, taps, address, client, daemon, _proxies: proxies }
    }

    /// The status and the code of the gate's answer.
    async fn gate(&self, name: &str) -> (u16, String) {
        let answer = self.client.get(format!("http://{}/v1/gate/{name}", self.address)).send().await.unwrap();
        let code = answer.headers().get("clresolve-code").map_or("", |code| code.to_str().unwrap()).to_owned();
        (answer.status().as_u16(), code)
    }

    async fn allows(&self, name: &str) {
        assert_eq!(self.gate(name).await, (200, String::new()), "{name}");
    }

    /// Waits until the gate denies a name that has changed.
    pub(crate) async fn until_denied(&self, name: &str) {
        let wanted = (403, "record-pending".to_owned());
        until(&format!("the change of {name}"), async || self.gate(name).await == wanted).await;
    }

    /// Asks the gate about an unchanged name until this head confirms it. Every answer must be right.
    pub(crate) async fn stays_allowed(&self, name: &str, head: &ChainBlock) {
        let is_confirmed = async || {
            let confirmed = self.resolver.resolve(name).await.verdict().freshness.confirmed;
            self.allows(name).await;
            matches!(confirmed, Some(VerdictConfirmationSource::Head(at)) if at >= head.number)
        };
        until(&format!("block {} confirms {name}", head.number), is_confirmed).await;
    }

    /// Makes names hot, and waits until a new head has confirmed them.
    pub(crate) async fn heat(&mut self, names: &[&str]) {
        for name in names {
            self.allows(name).await;
        }
        self.pass_blocks(1, names).await;
    }

    fn write(&mut self, name: &str, key: &str, value: &str) -> ChainBlock {
        self.world.write_text(&parsed(name), key, value).unwrap()
    }

    /// Seals a block that changes no agent.
    fn seal(&mut self) -> ChainBlock {
        self.write("publisher.eth", "note", "a new block")
    }

    /// Seals blocks that change no agent. Each confirms these names, which stay allowed meanwhile.
    async fn pass_blocks(&mut self, count: usize, names: &[&str]) -> Vec<ChainBlock> {
        let mut blocks = Vec::new();
        for _ in 0..count {
            let block = self.seal();
            for name in names {
                self.stays_allowed(name, &block).await;
            }
            blocks.push(block);
        }
        blocks
    }

    /// Changes [`GOOD`], which closes the gate for it and not for [`OTHER`]. Returns the block of the change.
    async fn change(&mut self) -> ChainBlock {
        let block = self.write(GOOD, "cl.owner", "thief.eth");
        self.until_denied(GOOD).await;
        self.stays_allowed(OTHER, &block).await;
        block
    }

    /// The verdict that the report API returns.
    pub(crate) async fn report(&self, name: &str) -> Value {
        let answer = self.client.get(format!("http://{}/v1/verdicts/{name}", self.address)).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{name}");
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    async fn decision(&self, question: &str) -> Value {
        let request = self.client.post(format!("http://{}/v1/decisions", self.address));
        let request = request.header("content-type", "application/json").body(question.to_owned());
        serde_json::from_slice(&request.send().await.unwrap().bytes().await.unwrap()).unwrap()
    }

    /// Resolutions so far, and requests for cards and IPFS blocks.
    fn cost(&self) -> (usize, u64) {
        let counts = self.world.request_counts();
        (self.taps[0].resolutions(), counts.https + counts.gateway)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.daemon.abort();
    }
}

/// Waits until this holds.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANGS, waiting).await.unwrap_or_else(|_| panic!("not within {HANGS:?}: {what}"));
}

pub(crate) fn parsed(name: &str) -> EnsName {
    EnsName::parse(name).unwrap()
}

/// Two of the endpoints' operators must agree.
pub(crate) fn quorum(config: &mut Config) {
    config.chain.proof = Some(ChainProofMode::Quorum);
}

/// An agent about which nothing is wrong. Further keys may follow.
pub(crate) fn good(name: &str) -> String {
    format!("[[agent]]\nname = \"{name}\"\nabout = \"Good.\"\nstate = \"trusted\"\n")
}

fn two() -> String {
    [GOOD, OTHER].map(good).concat()
}

fn off_chain() -> String {
    format!("{}chain.resolver.offchain = [\"https://ccip.sandbox.example/ok\"]\n", good(OFF_CHAIN))
}

/// The number of calls at each of some heads, for hot names of which none changes. `last` are keys of the last one.
async fn calls_at_heads(count: usize, last: &str) -> Vec<usize> {
    let names: Vec<String> = (0..count).map(|number| format!("agent-{number}.eth")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let agents = names.iter().map(|name| good(name)).collect::<String>() + last;
    let mut stage = Stage::new(&agents, &[], |_| {}).await;
    stage.heat(&names).await;
    let cost = stage.cost();
    let blocks = stage.pass_blocks(BLOCKS, &names).await;
    assert_eq!(stage.cost(), cost);
    blocks.iter().map(|block| stage.taps[0].readings(block)).collect()
}

/// On one thread, so that its counts are its own.
#[tokio::test]
async fn change_closes_the_gate_before_any_time_ends() {
    let counts = PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let mut stage = Stage::new(&two(), &[], |_| {}).await;
    stage.heat(&[GOOD, OTHER]).await;
    stage.change().await;
    let counted = counts.render();
    for line in [
        "clresolve_cache_evictions_total{pool=\"trusted\",cause=\"changed\"} 1",
        "clresolve_confirmations_total{outcome=\"changed\"} 1",
        "clresolve_eviction_delay_seconds_count{} 1",
    ] {
        assert!(counted.lines().any(|found| found == line), "{line}: {counted}");
    }
}

/// The head is the newest block that the light client verified, and names are computed there over proven state.
#[tokio::test(flavor = "multi_thread")]
async fn change_closes_the_gate_under_consensus_proof() {
    let consensus = |config: &mut Config| config.chain.proof = Some(ChainProofMode::ConsensusProof);
    let mut stage = Stage::new(&two(), &[], consensus).await;
    stage.heat(&[GOOD, OTHER]).await;
    let resolutions = stage.cost();
    let blocks = stage.pass_blocks(BLOCKS, &[GOOD, OTHER]).await;
    assert_eq!(stage.cost(), resolutions, "nothing changed");
    let changed = stage.change().await;
    let stated = |block: &ChainBlock| stage.taps[0].readings(block);
    assert_eq!(blocks.iter().chain([&changed]).map(stated).sum::<usize>(), 0, "no statement confirms a name");
    assert_eq!(stage.taps[0].polls(), 0, "no operator is asked for the head");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_faulty_endpoint_of_three_changes_nothing() {
    for (what, fault) in FAULTS {
        let mut stage = Stage::new(&two(), &[SandboxRpcFault::None, fault.unwrap_or_default()], quorum).await;
        if fault.is_none() {
            stage.taps[2].set(TapBehaviour::Backwards);
        }
        stage.heat(&[GOOD, OTHER]).await;
        let honest = [stage.taps[0].clone(), stage.taps[1].clone()];
        let calls = |block: &ChainBlock| honest.each_ref().map(|tap| tap.readings(block));
        let resolutions = || honest.each_ref().map(Tap::resolutions);
        let resolved = resolutions();
        let mut blocks = stage.pass_blocks(BLOCKS, &[GOOD, OTHER]).await;
        assert_eq!(resolutions(), resolved, "{what}: unchanged names were resolved again");
        blocks.push(stage.change().await);
        let calls: Vec<[usize; 2]> = blocks.iter().map(calls).collect();
        assert!(calls.as_flattened().iter().all(|calls| *calls <= CALLS_PER_HEAD), "{what}: {calls:?}");
        // A question that comes between the eviction and the daemon's own resolution starts another one.
        let further = resolutions().into_iter().zip(resolved).map(|(now, before)| now - before);
        assert!(further.max() <= Some(2), "{what}: {resolved:?}, {:?}", resolutions());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn third_parties_beside_an_own_node_are_not_asked() {
    let faults = [SandboxRpcFault::BlocksToCome(1_000_000), SandboxRpcFault::OtherRecords];
    let mut stage = Stage::new(&two(), &faults, |_| {}).await;
    stage.heat(&[GOOD, OTHER]).await;
    stage.pass_blocks(BLOCKS, &[GOOD, OTHER]).await;
    let block = stage.change().await;
    assert!(stage.taps[0].readings(&block) <= CALLS_PER_HEAD);
    assert!(stage.taps[1..].iter().all(|tap| tap.methods().is_empty()));
}

/// The resolver emits no events, one endpoint hides all logs, and another returns every log there is.
#[tokio::test(flavor = "multi_thread")]
async fn change_without_events_closes_the_gate() {
    let wildcard = format!("{}chain.resolver = \"parent-wildcard\"\n", good("a.wild.eth"));
    let mut stage = Stage::new(&wildcard, &[SandboxRpcFault::NoLogs, SandboxRpcFault::EveryLog], quorum).await;
    stage.heat(&["a.wild.eth"]).await;
    stage.write("wild.eth", "cl.owner", "thief.eth");
    stage.until_denied("a.wild.eth").await;
    for method in stage.taps.iter().flat_map(Tap::methods) {
        assert!(!["Logs", "Filter", "subscribe"].iter().any(|part| method.contains(part)), "{method}");
    }
}

/// Two branches end at the same height, and a name has changed in one of them.
#[tokio::test(flavor = "multi_thread")]
async fn reorganisation_costs_a_hot_name_one_resolution_at_most() {
    let mut stage = Stage::new(&two(), &[], |_| {}).await;
    let tap = stage.taps[0].clone();
    stage.allows(GOOD).await;
    stage.allows(OTHER).await;
    stage.change().await;
    let resolved = tap.resolutions();
    let calls = || tap.count(|asked| asked.method == "eth_call");
    let before = calls();
    let branch = stage.world.start_rpc_endpoint(SandboxRpcFault::None, ServedChainState::Ahead, true).await.unwrap();
    let first = tap.turn_to(branch.url);
    until("the other branch is read", async || calls() > before).await;
    stage.allows(OTHER).await;
    // After the pause that follows a failure.
    stage.clock.advance(10);
    tap.polled().await;
    stage.allows(GOOD).await;
    stage.allows(OTHER).await;
    assert!(tap.resolutions() <= resolved + 1);
    tap.turn_to(first);
    stage.until_denied(GOOD).await;
    stage.allows(OTHER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missed_slot_expires_nothing_and_a_stalled_head_denies() {
    let age = |config: &mut Config| config.chain.max_head_age = Some(Duration::from_secs(60));
    let mut stage = Stage::new(&good(GOOD), &[], age).await;
    stage.heat(&[GOOD]).await;
    let cost = stage.cost();
    stage.clock.advance(30);
    stage.taps[0].polled().await;
    stage.allows(GOOD).await;
    // The newest block is twelve seconds old at the start.
    stage.clock.advance(25);
    stage.taps[0].polled().await;
    assert_eq!(stage.gate(GOOD).await, (403, "head-stalled".to_owned()));
    assert_eq!(stage.report(GOOD).await["state"], "trusted");
    assert_eq!(stage.cost(), cost);
}

#[tokio::test(flavor = "multi_thread")]
async fn outage_of_all_endpoints_denies_after_15_seconds() {
    let mut stage = Stage::new(&good(GOOD), &[SandboxRpcFault::None; 2], quorum).await;
    stage.heat(&[GOOD]).await;
    let cost = stage.cost();
    for tap in &stage.taps {
        tap.set(TapBehaviour::Down);
    }
    for tap in &stage.taps {
        tap.polled().await;
    }
    stage.clock.advance(14);
    stage.allows(GOOD).await;
    stage.clock.advance(2);
    assert_eq!(stage.gate(GOOD).await, (403, "unconfirmed".to_owned()));
    assert_eq!(stage.report(GOOD).await["state"], "trusted");
    for tap in &stage.taps {
        tap.set(TapBehaviour::Unchanged);
    }
    until("the gate allows again", async || stage.gate(GOOD).await.0 == 200).await;
    assert_eq!(stage.cost(), cost);
}

/// Otherwise each poll would prolong the operator's rate limit.
#[tokio::test(flavor = "multi_thread")]
async fn limited_endpoint_is_not_polled_while_it_rests() {
    let mut stage = Stage::new(&good(GOOD), &[SandboxRpcFault::None; 2], quorum).await;
    stage.heat(&[GOOD]).await;
    let [first, second, limited] = &stage.taps[..] else { panic!("three endpoints") };
    let (first, second, limited) = (first.clone(), second.clone(), limited.clone());
    limited.set(TapBehaviour::Limited);
    let before = limited.polls();
    stage.pass_blocks(BLOCKS, &[GOOD]).await;
    for _ in 0..BLOCKS {
        first.polled().await;
    }
    // One poll may have been in flight when the limit began.
    let asked = limited.polls();
    assert!(asked <= before + 2, "{before}, {asked}");
    // The limit ends before the next poll: a refused poll would start another rest.
    limited.set(TapBehaviour::Unchanged);
    stage.clock.advance(31);
    limited.polled_at_least(asked + 2).await;
    // The reports from before the clock was advanced are too old: each endpoint reports the head again.
    for tap in [&first, &second, &first, &second] {
        tap.polled().await;
    }
    // Two operators must agree, so this endpoint is needed when another one fails.
    second.set(TapBehaviour::Down);
    stage.pass_blocks(1, &[GOOD]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_hot_names_share_two_calls_per_head() {
    let calls = calls_at_heads(40, "").await;
    // A call is sent after 20 ms. On a busy machine some names are ready only later.
    assert!(calls.iter().min() <= Some(&4) && calls.iter().max() <= Some(&10), "{calls:?}");
}

/// The gas that the resolver burns spoils the call for all names in it. The records themselves are sound.
#[tokio::test(flavor = "multi_thread")]
async fn name_that_burns_gas_is_read_alone_after_one_spoiled_call() {
    let burns = "chain = { resolver = { hostile = { mode = \"burn\", arg = \"addr\" } } }\n";
    let calls = calls_at_heads(16, burns).await;
    // The burner, up to two that were read with it last, and the others together. A spoiled call leads to nine calls.
    assert!(calls[1..].iter().min() <= Some(&4) && calls[1..].iter().max() <= Some(&8), "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn demands_that_arrive_together_share_one_reading() {
    let mut stage = Stage::new(&good(GOOD), &[], |config| config.chain.head_poll = NO_POLLS).await;
    stage.allows(GOOD).await;
    let (block, tap) = (stage.seal(), &stage.taps[0]);
    let (resolved, polls) = (tap.resolutions(), tap.polls());
    for answer in join_all((0..50).map(|_| stage.gate(GOOD))).await {
        assert_eq!(answer, (200, String::new()));
    }
    assert_eq!((tap.polls() - polls, tap.resolutions()), (1, resolved));
    // One is enough. A demand that is held up until the reading has ended reads once more.
    assert!((1..=2).contains(&tap.readings(&block)), "{}", tap.readings(&block));
}

#[tokio::test(flavor = "multi_thread")]
async fn off_chain_name_is_resolved_each_minute_and_not_at_heads() {
    let mut stage = Stage::new(&(good(GOOD) + &off_chain()), &[], |_| {}).await;
    stage.allows(OFF_CHAIN).await;
    stage.heat(&[GOOD]).await;
    let asked = stage.world.request_counts().ccip;
    stage.clock.advance(59);
    stage.taps[0].polled().await;
    let block = stage.pass_blocks(1, &[GOOD]).await[0];
    stage.allows(OFF_CHAIN).await;
    assert_eq!((stage.taps[0].readings_of("offchain", &block), stage.world.request_counts().ccip), (0, asked));
    assert_eq!(stage.report(OFF_CHAIN).await["freshness"]["confirmed"], "off-chain");
    // Nobody asks for it.
    stage.clock.advance(2);
    until("the gateway is asked again", async || stage.world.request_counts().ccip > asked).await;
    stage.allows(OFF_CHAIN).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn off_chain_name_is_resolved_on_demand_after_75_seconds() {
    let stage = Stage::new(&off_chain(), &[], |config| config.chain.head_poll = NO_POLLS).await;
    stage.allows(OFF_CHAIN).await;
    let resolved = stage.taps[0].resolutions();
    for (seconds, resolutions) in [(74, 0), (2, 1)] {
        stage.clock.advance(seconds);
        stage.allows(OFF_CHAIN).await;
        assert_eq!(stage.taps[0].resolutions(), resolved + resolutions);
    }
}

/// Otherwise each question would start a resolution for as long as a gateway or the chain fails.
#[tokio::test(flavor = "multi_thread")]
async fn off_chain_name_that_cannot_be_resolved_is_not_tried_by_each_question() {
    let stage = Stage::new(&off_chain(), &[], |config| config.chain.head_poll = NO_POLLS).await;
    stage.allows(OFF_CHAIN).await;
    stage.taps[0].set(TapBehaviour::Down);
    stage.clock.advance(76);
    assert_eq!(stage.gate(OFF_CHAIN).await.0, 403);
    let asked = stage.taps[0].count(|_| true);
    for _ in 0..5 {
        assert_eq!(stage.gate(OFF_CHAIN).await, (403, "unconfirmed".to_owned()));
    }
    assert_eq!(stage.taps[0].count(|_| true), asked);
}

/// The gate is not asked: decisions make names hot too.
#[tokio::test(flavor = "multi_thread")]
async fn decision_about_a_changed_name_aborts() {
    let mut stage = Stage::new(&format!("{}seller = \"\"\n", good(GOOD)), &[], |_| {}).await;
    let route = stage.resolver.agent_route(&stage.resolver.resolve(GOOD).await, Some("summarize")).unwrap();
    let url = route.url().to_string();
    let reply = stage.resolver.send_unpaid_request(&url, Some("{}")).await.unwrap();
    let body = String::from_utf8_lossy(&reply.body);
    let response = json!({"status": reply.status, "url": url, "headers": reply.headers, "body": body});
    let question = json!({"name": GOOD, "verb": "summarize", "response": response}).to_string();
    let allowed = stage.decision(&question).await;
    assert_eq!(allowed["abort"], false, "{allowed}");
    stage.write(GOOD, "cl.owner", "thief.eth");
    until("a decision aborts", async || stage.decision(&question).await["abort"] == true).await;
    let aborted = stage.decision(&question).await;
    assert!(aborted["codes"].as_array().unwrap().contains(&json!("record-pending")), "{aborted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn report_names_the_head_that_confirmed_the_verdict() {
    let mut stage = Stage::new(&good(GOOD), &[], |_| {}).await;
    stage.heat(&[GOOD]).await;
    for _ in 0..BLOCKS {
        let block = stage.seal();
        let expected = json!({"head": block.number});
        let is_confirmed = async || stage.report(GOOD).await["freshness"]["confirmed"] == expected;
        until(&format!("the report names block {}", block.number), is_confirmed).await;
    }
}
