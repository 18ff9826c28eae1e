//! A daemon under grade `quorum` whose endpoints lie or have stopped: the gate opens only for what enough of them
//! state.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clresolve_resolver::clock::Clock;
use clresolve_resolver::config::{ChainProofMode, Config, ListenAddress, RpcEndpointConfig};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::spec::SandboxSpec;
use clresolve_server::http::HttpDaemon;
use tokio::sync::watch;

use super::freshness::{NodeBehaviour, node};
use super::{Daemon, NO_POLLS, PATIENCE, Shifted};

const ON_CHAIN: &str = "good.eth";
const OFF_CHAIN: &str = "offchain.eth";

const AGENTS: &str = r#"
[[agent]]
name = "good.eth"
about = "Its records are on chain."

[[agent]]
name = "offchain.eth"
about = "Its records are off the chain."
chain.resolver.offchain = ["https://ccip.sandbox.example/ok"]
"#;

/// Longer than the newest block is old here, and shorter than the finalized one is.
const MAX_HEAD_AGE: Duration = Duration::from_mins(12);

/// A daemon that reads the world through nodes.
struct Scene {
    daemon: Daemon,
    clock: Arc<Shifted>,
    behaviours: Vec<watch::Sender<NodeBehaviour>>,
}

async fn world() -> CustomSandbox {
    CustomSandbox::start(&SandboxSpec::parse(AGENTS).expect("it is a world")).await.expect("it starts")
}

impl Scene {
    /// The nodes are of different operators, two of which must agree, and are asked in this order.
    async fn new(world: &CustomSandbox, behaviours: &[NodeBehaviour]) -> Self {
        let mut config: Config = world.config();
        let own = config.chain.endpoints[0].clone();
        let (mut endpoints, mut senders) = (Vec::new(), Vec::new());
        for (number, behaviour) in behaviours.iter().enumerate() {
            let (sender, receiver) = watch::channel(*behaviour);
            let url = node(own.url.clone(), receiver, watch::channel(0).0).await;
            let (label, operator) = (format!("node-{number}"), format!("operator-{number}"));
            endpoints.push(RpcEndpointConfig { label, url, operator, own: false });
            senders.push(sender);
        }
        config.chain.endpoints = endpoints;
        config.chain.proof = Some(ChainProofMode::Quorum);
        config.chain.max_head_age = Some(MAX_HEAD_AGE);
        config.timeout = PATIENCE;
        config.gate.deadline = PATIENCE;
        config.http.listen = ListenAddress::loopback(0);
        config.http.cold_runs_per_minute = 100_000;
        config.chain.head_poll = NO_POLLS;
        let clock = Arc::new(Shifted::default());
        let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("a resolver");
        let server = HttpDaemon::bind_with_resolver(&config, resolver).await.expect("a daemon");
        Self { daemon: Daemon::run(server, ()), clock, behaviours: senders }
    }

    /// Whether the gate opens for the names, with its code.
    async fn gate(&self) -> [(u16, String); 2] {
        let mut answers = [(0, String::new()), (0, String::new())];
        for (name, answer) in [ON_CHAIN, OFF_CHAIN].into_iter().zip(&mut answers) {
            let got = self.daemon.get(&format!("/v1/gate/{name}")).await;
            let code = got.headers.get("clresolve-code").and_then(|code| code.to_str().ok()).unwrap_or_default();
            *answer = (got.status, code.to_owned());
        }
        answers
    }
}

fn orders([a, b, c]: [NodeBehaviour; 3]) -> [[NodeBehaviour; 3]; 6] {
    [[a, b, c], [a, c, b], [b, a, c], [b, c, a], [c, a, b], [c, b, a]]
}

/// The records change in the newest block, as the honest endpoint says; the liar says that they do not.
const HIDDEN_CHANGE: [NodeBehaviour; 3] = [NodeBehaviour::Changing, NodeBehaviour::Stalled, NodeBehaviour::Honest];

#[tokio::test(flavor = "multi_thread")]
async fn gate_is_shut_where_a_liar_and_a_stalled_endpoint_hide_a_change() {
    let world = world().await;
    for behaviours in orders(HIDDEN_CHANGE) {
        for (status, code) in Scene::new(&world, &behaviours).await.gate().await {
            assert_eq!(status, 403, "{behaviours:?}: {code}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refresh_shuts_the_gate_where_a_liar_and_a_stalled_endpoint_hide_a_change() {
    let world = world().await;
    for behaviours in orders(HIDDEN_CHANGE) {
        let scene = Scene::new(&world, &[NodeBehaviour::Honest; 3]).await;
        for (status, code) in scene.gate().await {
            assert_eq!(status, 200, "{code}");
        }
        for (sender, behaviour) in scene.behaviours.iter().zip(behaviours) {
            sender.send_replace(behaviour);
        }
        scene.clock.0.store(310, Ordering::Relaxed);
        for (status, code) in scene.gate().await {
            assert_eq!(status, 403, "{behaviours:?}: {code}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_endpoint_that_stalls_or_lies_shuts_no_gate() {
    let world = world().await;
    for third in [NodeBehaviour::Stalled, NodeBehaviour::Lying] {
        for at in 0..3 {
            let mut behaviours = [NodeBehaviour::Honest; 3];
            behaviours[at] = third;
            for (status, code) in Scene::new(&world, &behaviours).await.gate().await {
                assert_eq!(status, 200, "{behaviours:?}: {code}");
            }
        }
    }
}

/// The liar passes on what gateways are asked, and changes what they answered.
#[tokio::test(flavor = "multi_thread")]
async fn look_up_through_a_liar_and_one_other_endpoint_opens_no_gate() {
    let world = world().await;
    for behaviours in [[NodeBehaviour::Honest, NodeBehaviour::Lying], [NodeBehaviour::Lying, NodeBehaviour::Honest]] {
        for (status, code) in Scene::new(&world, &behaviours).await.gate().await {
            assert_eq!(status, 403, "{behaviours:?}: {code}");
        }
    }
    for behaviours in orders([NodeBehaviour::Honest, NodeBehaviour::Stalled, NodeBehaviour::Lying]) {
        let [_, (status, code)] = Scene::new(&world, &behaviours).await.gate().await;
        assert_eq!(status, 403, "{behaviours:?}: {code}");
    }
}
