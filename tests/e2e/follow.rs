//! Changes on a real chain: how soon the gate of every daemon of a fleet refuses the name, and whether what a plan says to
//! send does what it says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::Bytes;
use alloy_sol_types::{SolCall as _, SolValue as _, sol};
use axum::Router;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::net::TcpListener;

use crate::cards::renamed;
use crate::server::Redis;
use crate::transactions::{call, node, resolver_of, send, set_text};
use crate::world::{Net, text, world};

/// The daemon as shipped, with a node of its own, refuses a name within this time after the block that changes it.
const SOON: Duration = Duration::from_secs(1);

const NAME: &str = "summarizeagent.eth";

/// The name whose change a WebSocket tells of.
const TOLD: &str = "classifyagent.eth";

/// Whose records no test reads.
const PUBLISHERS_NAME: &str = "commandlayer.eth";

sol! {
    function text(bytes32 node, string key) returns (string);
}

/// The key of the MAC that a fleet shares.
const MAC_KEY: &str = "4444444444444444444444444444444444444444444444444444444444444444";

/// What a daemon may take to start, to read the name, and to say what became of it.
const HANGS: Duration = Duration::from_secs(60);

/// Three daemons over one server, each of which follows the chain itself.
struct Fleet {
    daemons: Vec<Daemon>,
    _redis: Redis,
}

impl Fleet {
    /// `rpc` are the endpoints, as the configuration has them. `None`, said aloud, where there is no server.
    fn start(net: &Net, rpc: &str) -> Option<Self> {
        let redis = Redis::start(&[])?;
        let key = redis.key_file(&[MAC_KEY]);
        let shared = format!("[redis]\nurl = \"unix://{}\"\nmac-key = \"{}\"\n", redis.socket(), text(&key));
        let daemons = (0..3).map(|_| Daemon::start(net, &format!("{shared}{rpc}"))).collect();
        Some(Self { daemons, _redis: redis })
    }

    /// Waits until the gate of each daemon gives this answer, and says how long it took.
    async fn until(&self, is_wanted: impl Fn(&(u16, String)) -> bool) -> Duration {
        let began = Instant::now();
        for daemon in &self.daemons {
            loop {
                let said = daemon.gate(NAME).await;
                if is_wanted(&said) {
                    break;
                }
                assert!(began.elapsed() < HANGS, "{said:?}");
            }
        }
        began.elapsed()
    }
}

/// A daemon that follows the node of a net.
struct Daemon {
    child: Child,
    address: String,
    client: Client,
    _files: [NamedTempFile; 2],
}

impl Daemon {
    fn start(net: &Net, settings: &str) -> Self {
        let mut config = NamedTempFile::with_suffix(".toml").expect("a temporary file");
        config.write_all(settings.as_bytes()).expect("a temporary file takes bytes");
        let trust_root = net.trust_root();
        let mut command = net.command(trust_root.path());
        command.args(["--config", text(config.path()), "serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the daemon starts");
        let mut line = String::new();
        let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
        log.read_line(&mut line).expect("UTF-8");
        let address = line.trim().rsplit_once("http://").unwrap_or_else(|| panic!("{line}")).1.to_owned();
        let client = Client::builder().no_proxy().build().expect("a client");
        Self { child, address, client, _files: [config, trust_root] }
    }

    /// Status and code of the gate's answer.
    async fn gate(&self, name: &str) -> (u16, String) {
        let answer = self.client.get(format!("http://{}/v1/gate/{name}", self.address)).send().await;
        let answer = answer.expect("the gate answers");
        let code = answer.headers().get("clresolve-code").map_or("", |code| code.to_str().expect("text"));
        (answer.status().as_u16(), code.to_owned())
    }

    /// What it counts of WebSockets.
    async fn streams(&self) -> Vec<String> {
        let answer = self.client.get(format!("http://{}/metrics", self.address)).send().await.expect("an answer");
        let text = answer.text().await.expect("a whole answer");
        text.lines().filter(|line| line.starts_with("clresolve_follow_stream")).map(str::to_owned).collect()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A node as it stands in the configuration.
fn endpoint(label: &str, url: &str, own: bool) -> String {
    format!("[[rpc]]\nurl = \"{url}\"\nown = {own}\nlabel = \"{label}\"\noperator = \"{label}.example\"\n")
}

/// An endpoint that says what the node says, but that no contract ever logs anything. Gives its URL.
async fn hides_logs(net: &Net) -> String {
    let node = net.rpc().to_owned();
    let exchange = move |body: axum::body::Bytes| {
        let node = node.clone();
        async move {
            let request: Value = serde_json::from_slice(&body).expect("clresolve sends JSON");
            if request["method"] == "eth_getLogs" {
                return json!({"jsonrpc": "2.0", "id": request["id"], "result": []}).to_string();
            }
            let post = Client::builder().no_proxy().build().expect("a client").post(node).body(body);
            let reply = post.header("content-type", "application/json").send().await.expect("the node answers");
            reply.text().await.expect("a whole reply")
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(exchange)).await });
    url
}

/// Each daemon of both fleets has a node of its own. One fleet also asks an endpoint that hides every change, and one
/// that never answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_chain_closes_every_gate_of_a_fleet_within_a_second_of_its_block() {
    let Some(world) = world() else { return };
    let net = &world.changing;
    let own = endpoint("node", net.rpc(), true);
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = endpoint("silent", &format!("http://{}", silent.local_addr().expect("an address")), false);
    let liar = endpoint("liar", &hides_logs(net).await, false);
    let Some(alone) = Fleet::start(net, &own) else { return };
    let Some(besieged) = Fleet::start(net, &format!("{own}{liar}{silent}")) else { return };
    for fleet in [&alone, &besieged] {
        fleet.until(|(status, _)| *status == 200).await;
    }
    set_text(net, NAME, "cl.owner", "thief.eth").await;
    let closed = |fleet: &'static str, time: Duration| {
        println!("{fleet} closed after {} ms", time.as_millis());
        assert!(time < SOON, "{fleet}: {time:?}");
    };
    let is_closed = |(status, _): &(u16, String)| *status != 200;
    let (first, second) = tokio::join!(alone.until(is_closed), besieged.until(is_closed));
    closed("the fleet alone", first);
    closed("the fleet among liars", second);
    for fleet in [&alone, &besieged] {
        fleet.until(|(_, code)| code == "record-pending").await;
    }
}

/// Time alone would ask the node again after an hour: the block that its WebSocket tells of closes the gate.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_a_web_socket_tells_of_closes_the_gate_within_a_second() {
    let Some(world) = world() else { return };
    let net = &world.changing;
    let stream = format!("ws = \"{}\"\n", net.rpc().replacen("http", "ws", 1));
    let settings = format!("[follow]\npoll = \"1h\"\n{}{stream}", endpoint("node", net.rpc(), true));
    let daemon = Daemon::start(net, &settings);
    let began = Instant::now();
    let up = "clresolve_follow_stream_up{endpoint=\"node\"} 1".to_owned();
    while daemon.gate(TOLD).await.0 != 200 || !daemon.streams().await.contains(&up) {
        assert!(began.elapsed() < HANGS, "{:?}, {:?}", daemon.gate(TOLD).await, daemon.streams().await);
    }
    set_text(net, TOLD, "cl.owner", "thief.eth").await;
    let changed = Instant::now();
    while daemon.gate(TOLD).await.0 == 200 {
        assert!(changed.elapsed() < SOON, "the gate is still open");
    }
    println!("closed after {} ms", changed.elapsed().as_millis());
    while daemon.gate(TOLD).await.1 != "record-pending" {
        assert!(changed.elapsed() < HANGS, "{:?}", daemon.gate(TOLD).await);
    }
}

/// What `plan` prints is sent as it stands to a name's resolver, the official one.
#[tokio::test(flavor = "multi_thread")]
async fn the_transaction_of_a_plan_sets_its_records() {
    let Some(world) = world() else { return };
    let net = &world.changing;
    let url = "https://planned.example/card.json";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let card = renamed(net.card(NAME), PUBLISHERS_NAME, url);
    std::fs::write(folder.path().join("card.json"), card).expect("a temporary folder takes files");
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.args(["plan", text(folder.path()), "--url", "https://planned.example/", "-o", "json"]);
    let output = command.output().expect("the binary runs");
    let plan: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let resolver = resolver_of(net, PUBLISHERS_NAME).await;
    let data: Bytes = serde_json::from_value(plan["transaction"]["data"].clone()).expect("bytes");
    send(net, resolver, data.to_vec()).await;
    let node = node(PUBLISHERS_NAME);
    let records = plan["records"].as_object().expect("records");
    assert_eq!((records.len(), &records["cl.agentcard"]), (6, &json!(url)));
    for (key, value) in records {
        let said = call(net, resolver, textCall { node, key: key.clone() }.abi_encode()).await;
        assert_eq!(String::abi_decode(&said).expect("a text"), *value, "{key}");
    }
}
