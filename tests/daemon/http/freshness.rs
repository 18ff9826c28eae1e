//! How long answers hold: refreshed before they end, stale for a moment on the report face, and never at the gate.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use clresolve_core::name::EnsName;
use clresolve_core::reading::BlockSelector;
use clresolve_resolver::clock::Clock;
use clresolve_resolver::config::{Config, RpcEndpointConfig};
use clresolve_resolver::resolve::{NameQuestion, Resolver, VerdictCacheKeyStatus};
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_server::http::HttpDaemon;
use clresolve_verdict::verdict::VerdictCopyKind;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

use super::{Daemon, NO_POLLS, PATIENCE, Shifted, answer};

pub(super) const NAME: &str = "good.eth";
pub(super) const OTHER: &str = "other.eth";

const AGENTS: &str = r#"
[[agent]]
name = "good.eth"
about = "A good agent."

[[agent]]
name = "other.eth"
about = "Another good agent."
"#;

/// What the node before the world's own does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeBehaviour {
    /// It passes it on.
    Honest,
    /// It is down.
    Down,
    /// It says that the records are about to change.
    Changing,
    /// It does not answer before it has other behaviours.
    Holding,
    /// It has stopped: its newest block is the finalized one.
    Stalled,
    /// It states other records in every block.
    Lying,
}

/// A world with a clock and a node whose behaviours can be changed, and a resolver that reads it.
pub(super) struct Scene {
    world: CustomSandbox,
    clock: Arc<Shifted>,
    behaviour: watch::Sender<NodeBehaviour>,
    /// Requests that the node got.
    asked: watch::Receiver<u64>,
    config: Config,
    resolver: Resolver,
}

impl Scene {
    pub(super) async fn new(change: impl FnOnce(&mut Config)) -> Self {
        let world = CustomSandbox::start(&SandboxSpec::parse(AGENTS).expect("it is a world")).await.expect("it starts");
        let mut config = world.config();
        config.timeout = PATIENCE;
        config.gate.deadline = PATIENCE;
        config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
        config.http.cold_runs_per_minute = 100_000;
        // The requests of runs are counted.
        config.chain.head_poll = NO_POLLS;
        change(&mut config);
        let (behaviour, behaviours) = watch::channel(NodeBehaviour::Honest);
        let (count, asked) = watch::channel(0);
        let node = node(config.chain.endpoints[0].url.clone(), behaviours, count).await;
        config.chain.endpoints[0] = RpcEndpointConfig { url: node, ..config.chain.endpoints[0].clone() };
        let clock = Arc::new(Shifted::default());
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("a resolver");
        Self { world, clock, behaviour, asked, config, resolver }
    }

    fn at(&self, seconds: i64) {
        self.clock.0.store(seconds, Ordering::Relaxed);
    }

    pub(super) async fn daemon(self) -> (Daemon, Arc<Shifted>, watch::Sender<NodeBehaviour>, watch::Receiver<u64>) {
        let server = HttpDaemon::bind_with_resolver(&self.config, self.resolver).await.expect("a daemon");
        (Daemon::run(server, self.world), self.clock, self.behaviour, self.asked)
    }
}

/// A node that stands before another one.
pub(super) async fn node(upstream: Url, behaviours: watch::Receiver<NodeBehaviour>, count: watch::Sender<u64>) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address")).parse().expect("a URL");
    let http = reqwest::Client::builder().no_proxy().build().expect("a client");
    let (behaviours, count) = (Arc::new(behaviours), Arc::new(count));
    let passes = move |body: Bytes| {
        count.send_modify(|count| *count += 1);
        let (http, upstream, mut behaviours) = (http.clone(), upstream.clone(), watch::Receiver::clone(&behaviours));
        async move {
            let behaviour = *behaviours
                .wait_for(|behaviour| *behaviour != NodeBehaviour::Holding)
                .await
                .expect("the scene goes on");
            if behaviour == NodeBehaviour::Down {
                return Err(StatusCode::SERVICE_UNAVAILABLE);
            }
            let request: Value = serde_json::from_slice(&body).expect("clresolve sends JSON");
            let body = if behaviour == NodeBehaviour::Stalled {
                request.to_string().replace("\"latest\"", "\"finalized\"").into()
            } else {
                body
            };
            let reply = http.post(upstream).body(body).send().await.expect("the world answers");
            let mut reply: Value = serde_json::from_slice(&reply.bytes().await.expect("in whole")).expect("JSON");
            match behaviour {
                NodeBehaviour::Changing => change_records(&request, &mut reply, |block| block == "latest"),
                NodeBehaviour::Lying => change_records(&request, &mut reply, |_| true),
                _ => {}
            }
            Ok(reply.to_string())
        }
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(passes)).await });
    url
}

/// Gives the records at some blocks another scheme of entries.
fn change_records(request: &Value, reply: &mut Value, is_changed: impl Fn(&Value) -> bool) {
    let requests = request.as_array().map_or_else(|| std::slice::from_ref(request), Vec::as_slice);
    let replies = match reply {
        Value::Array(replies) => replies.as_mut_slice(),
        reply => std::slice::from_mut(reply),
    };
    for request in requests.iter().filter(|request| is_changed(&request["params"][1])) {
        let Some(reply) = replies.iter_mut().find(|reply| reply["id"] == request["id"]) else { continue };
        let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
        let text = reply["result"].as_str().unwrap_or_default();
        if text.contains(&hex("x402://")) {
            reply["result"] = json!(text.replacen(&hex("x402://"), &hex("x403://"), 1));
        }
    }
}

/// The chain is asked each time, the owner's name with it; nobody else is, until an hour has passed.
#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_reads_the_chain_alone_and_the_host_hourly() {
    // A numbered block, since the world's newest one is soon too old.
    let number = Scene::new(|_| {}).await.resolver.read_records(&EnsName::parse(NAME).expect("a name")).await;
    let number = number.expect("it is read").block.number;
    let scene = Scene::new(|config| config.chain.block = BlockSelector::Number(number)).await;
    scene.resolver.resolve(NAME).await;
    let (before, first) = (scene.world.request_counts(), scene.resolver.resolve(NAME).await);
    let mut looks = Vec::new();
    for round in 1..=14 {
        scene.at(round * 280);
        let (asked, known) = (*scene.asked.borrow(), scene.world.request_counts());
        scene.resolver.refresh_expiring_verdicts(|_| true).await;
        assert!(*scene.asked.borrow() - asked <= 2, "one request for the records, one for the owner");
        assert_eq!(scene.world.request_counts().gateway, before.gateway, "what was proven under its CID stays proven");
        looks.extend((scene.world.request_counts().https > known.https).then_some(round * 280));
        let verdict = scene.resolver.resolve(NAME).await;
        let verdict = verdict.verdict();
        assert_eq!(
            (verdict.state, verdict.freshness.served),
            (first.verdict().state, VerdictCopyKind::Cached),
            "{verdict:?}"
        );
        assert_ne!(verdict.freshness.checked_at, first.verdict().freshness.checked_at);
        assert_eq!(verdict.conclusion, first.verdict().conclusion);
    }
    assert_eq!(looks, [3360], "the last round whose verdict would end within an hour was before it");
    scene.at(15 * 280);
    let asked = *scene.asked.borrow();
    scene.resolver.refresh_expiring_verdicts(|_| false).await;
    assert_eq!(*scene.asked.borrow(), asked, "it may not start");
}

/// It is judged each time, and takes nobody's place.
#[tokio::test]
async fn an_answer_about_no_name_is_not_kept_and_counted() {
    let counts = clresolve_resolver::telemetry::PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let scene = Scene::new(|_| {}).await;
    for _ in 0..2 {
        scene.resolver.resolve("no name").await;
    }
    let counted = counts.render();
    assert!(counted.contains("\nclresolve_cache_not_stored_total{why=\"invalid-name\"} 2\n"), "{counted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_of_no_runs_refreshes_nothing() {
    let scene = Scene::new(|config| config.cache.refresh_runs = 0).await;
    scene.resolver.resolve(NAME).await;
    scene.resolver.resolve(NAME).await;
    scene.at(280);
    let asked = *scene.asked.borrow();
    scene.resolver.refresh_expiring_verdicts(|_| true).await;
    assert_eq!(*scene.asked.borrow(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn refreshes_keep_to_their_number_of_runs() {
    let scene = Scene::new(|config| config.cache.refresh_runs = 1).await;
    for name in [NAME, OTHER, NAME, OTHER] {
        scene.resolver.resolve(name).await;
    }
    scene.at(280);
    scene.behaviour.send_replace(NodeBehaviour::Holding);
    let asked = *scene.asked.borrow();
    let resolver = scene.resolver.clone();
    let refreshing = tokio::spawn(async move { resolver.refresh_expiring_verdicts(|_| true).await });
    let mut requests = scene.asked.clone();
    requests.wait_for(|requests| *requests > asked).await.expect("the first refresh reads the chain");
    let under_way = async |name| {
        let status = scene.resolver.cache_status(&NameQuestion::new(name)).await.expect("the profile exists");
        (status, *scene.asked.borrow() - asked)
    };
    assert_eq!(under_way(OTHER).await.1, 1, "the other one waits");
    scene.behaviour.send_replace(NodeBehaviour::Honest);
    refreshing.await.expect("both are refreshed");
    scene.at(400);
    for name in [NAME, OTHER] {
        assert!(matches!(under_way(name).await.0, VerdictCacheKeyStatus::Fresh(_)), "{name}");
    }
}

/// The clients cause requests only while the head is not confirmed: one for the head, and at most one reading each.
#[tokio::test(flavor = "multi_thread")]
async fn the_daemon_refreshes_under_load_and_no_answer_is_wrong() {
    const CLIENTS: u64 = 8;
    let scene = Scene::new(|_| {}).await;
    let confirmed_for = scene.config.cache.max_unconfirmed.as_secs();
    let (daemon, clock, _manner, asked) = scene.daemon().await;
    let path = format!("/v1/gate/{NAME}");
    assert_eq!(daemon.get(&path).await.status, 200);
    let (cold, mut requests, began) = (*asked.borrow(), asked.clone(), Instant::now());
    let (stop, stopped) = watch::channel(false);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (client, url, stopped) =
                (daemon.client.clone(), format!("http://{}{path}", daemon.authority), stopped.clone());
            tokio::spawn(async move {
                let mut answers = 0;
                while !*stopped.borrow() {
                    let said = client.get(&url).send().await.expect("an answer");
                    assert_eq!(
                        said.headers().get("clresolve-state").map(|state| state.as_bytes()),
                        Some(&b"trusted"[..])
                    );
                    answers += 1;
                }
                answers
            })
        })
        .collect();
    for round in 1..=2 {
        let before = *requests.borrow_and_update();
        clock.0.store(round * 280, Ordering::Relaxed);
        requests.wait_for(|requests| *requests > before).await.expect("it is refreshed");
        let is_refreshed = async || daemon.get(&format!("/v1/verdicts/{NAME}")).await.header("age").len() < 3;
        while !is_refreshed().await {}
    }
    stop.send_replace(true);
    for client in clients {
        assert!(client.await.expect("every answer was right") > 0);
    }
    // The head is unconfirmed at first, after each step of the clock, and when its last report is too old.
    let readings = 3 + began.elapsed().as_secs() / confirmed_for;
    let (requests, most) = (*asked.borrow() - cold, 4 + readings * (1 + CLIENTS));
    assert!((2..=most).contains(&requests), "{requests} requests for two refreshes and {readings} readings");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_stale_after_a_failure_where_it_is_described_and_nowhere_else() {
    let (daemon, clock, behaviour, _asked) = Scene::new(|_| {}).await.daemon().await;
    let path = format!("/v1/verdicts/{NAME}");
    let first = daemon.get(&path).await.json();
    assert_eq!(first["state"], "trusted");
    behaviour.send_replace(NodeBehaviour::Down);
    clock.0.store(400, Ordering::Relaxed);
    daemon.get(&format!("/v1/gate/{NAME}")).await.is_closed_gate("rpc-unreachable");

    for _ in 0..2 {
        let stale = daemon.get(&path).await;
        let (verdict, age) = (stale.json(), stale.header("age").parse::<u64>().expect("seconds"));
        assert_eq!((&verdict["state"], &verdict["freshness"]["served"]), (&json!("trusted"), &json!("stale")));
        assert_eq!((&verdict["id"], &verdict["conclusion"]), (&first["id"], &first["conclusion"]));
        assert_eq!(stale.header("cache-status"), format!("clresolve; hit; ttl=-{}; detail=refresh-failed", age - 300));
        assert_eq!((stale.header("cache-control"), stale.header("etag")), ("no-store", ""));
        assert!(!stale.header("retry-after").is_empty());
    }
    let known = answer(daemon.request(Method::GET, &path).header("if-none-match", "*")).await;
    assert_eq!((known.status, &known.json()["freshness"]["served"]), (200, &json!("stale")));
    let batch = daemon.post("application/json", json!({"names": [NAME]}).to_string()).await;
    assert_eq!(batch.lines()[0]["freshness"]["served"], "stale");

    daemon.get(&format!("/v1/gate/{NAME}")).await.is_closed_gate("rpc-unreachable");
    daemon.get(&format!("/v1/cards/{NAME}")).await.is_problem(409, "rpc-unreachable");
    daemon.get(&format!("/v1/agents/{NAME}/.well-known/agent-card.json")).await.is_problem(409, "rpc-unreachable");
    let forced = answer(daemon.request(Method::GET, &path).header("cache-control", "no-cache")).await.json();
    assert_eq!(forced["state"], "indeterminate", "whoever demands a run gets what it found");
    let request = json!({"name": NAME, "verb": "summarize", "response": {"status": 402, "url": "https://a.example", "headers": {}}});
    let decision = daemon.request(Method::POST, "/v1/decisions").header("content-type", "application/json");
    let decision = answer(decision.body(request.to_string())).await.json();
    assert_eq!((&decision["abort"], &decision["state"]), (&json!(true), &json!("indeterminate")), "{decision}");

    clock.0.store(900, Ordering::Relaxed);
    assert_eq!(daemon.get(&path).await.json()["state"], "indeterminate", "ten minutes are over");
    behaviour.send_replace(NodeBehaviour::Honest);
    clock.0.store(1300, Ordering::Relaxed);
    assert_eq!(daemon.get(&path).await.json()["freshness"]["served"], "fresh");
}

/// The decision on a demand without terms.
async fn decide(daemon: &Daemon) -> Value {
    let reply = json!({"status": 402, "url": "https://a.example", "headers": {}});
    let question = json!({"name": NAME, "verb": "summarize", "response": reply}).to_string();
    let request = daemon.request(Method::POST, "/v1/decisions").header("content-type", "application/json");
    answer(request.body(question)).await.json()
}

/// Where the second run takes a second this shows nothing, since then the decision is made anew anyway.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_the_last_second_falls_with_its_verdict() {
    let scene = Scene::new(|_| {}).await;
    let resolver = scene.resolver.clone();
    let (daemon, _clock, behaviour, _asked) = scene.daemon().await;
    assert_eq!(decide(&daemon).await["state"], "trusted");
    behaviour.send_replace(NodeBehaviour::Changing);
    resolver.evict_name(&EnsName::parse(NAME).expect("a name"));
    assert_eq!(decide(&daemon).await["state"], "indeterminate");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_about_to_change_is_neither_allowed_nor_stale() {
    let (daemon, clock, behaviour, _asked) = Scene::new(|_| {}).await.daemon().await;
    let (path, gate) = (format!("/v1/verdicts/{NAME}"), format!("/v1/gate/{NAME}"));
    assert_eq!(daemon.get(&gate).await.status, 200);
    clock.0.store(100, Ordering::Relaxed);
    behaviour.send_replace(NodeBehaviour::Changing);
    let seen = answer(daemon.request(Method::GET, &path).header("cache-control", "no-cache")).await.json();
    assert_eq!(seen["reasons"][0]["code"], "record-pending", "{seen}");
    daemon.get(&gate).await.is_closed_gate("record-pending");
    behaviour.send_replace(NodeBehaviour::Down);
    clock.0.store(310, Ordering::Relaxed);
    assert_eq!(daemon.get(&path).await.json()["state"], "indeterminate");
    daemon.get(&gate).await.is_closed_gate("rpc-unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_names_that_were_hot_are_asked_again_after_a_start_and_nothing_else_is_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hot-names");
    let start = async |behaviour: NodeBehaviour| {
        let scene = Scene::new(|config| {
            config.cache.hot_names = Some(path.clone());
            config.http.drain_notice = Duration::from_millis(1);
        })
        .await;
        scene.behaviour.send_replace(behaviour);
        let resolver = scene.resolver.clone();
        (scene.daemon().await, resolver)
    };
    let stop = async |daemon: Daemon| {
        daemon.stop.send(()).expect("the daemon runs");
        daemon.ended.await.expect("it ends");
        std::fs::read_to_string(&path).expect("it keeps the names")
    };
    let ((daemon, ..), _) = start(NodeBehaviour::Honest).await;
    for (name, times) in [(NAME, 2), (OTHER, 3), ("bad.name.eth", 3)] {
        for _ in 0..times {
            daemon.get(&format!("/v1/verdicts/{name}")).await;
        }
    }
    assert_eq!(stop(daemon).await, format!("{OTHER}\n{NAME}\n"));

    let ((daemon, _, _, mut asked), resolver) = start(NodeBehaviour::Down).await;
    assert_eq!(daemon.get("/livez").await.status, 200, "it does not wait for the names");
    asked.wait_for(|asked| *asked > 0).await.expect("a name is asked again");
    daemon.get(&format!("/v1/gate/{OTHER}")).await.is_closed_gate("rpc-unreachable");
    let status = async |name| resolver.cache_status(&NameQuestion::new(name)).await.expect("the profile exists");
    while !matches!(status(NAME).await, VerdictCacheKeyStatus::Fresh(_)) {
        tokio::task::yield_now().await;
    }
    assert_eq!(stop(daemon).await, format!("{OTHER}\n{NAME}\n"), "of which nothing is known stays on the list");

    let ((daemon, ..), resolver) = start(NodeBehaviour::Honest).await;
    let status = async |name| resolver.cache_status(&NameQuestion::new(name)).await.expect("the profile exists");
    for name in [OTHER, NAME] {
        while !matches!(status(name).await, VerdictCacheKeyStatus::Fresh(_)) {
            tokio::task::yield_now().await;
        }
    }
    let known = daemon.get(&format!("/v1/verdicts/{NAME}")).await;
    assert!(known.header("cache-status").starts_with("clresolve; hit"), "{}", known.header("cache-status"));
    assert_eq!(known.json()["state"], "trusted");
}
