//! Changes on a real chain: how soon the gate of every daemon of a fleet refuses the name, and whether what a plan says
//! to send does what it says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::Bytes;
use alloy_sol_types::{SolCall as _, SolValue as _, sol};
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::cards::renamed;
use crate::support::redis::RedisServerProcess;
use crate::transactions::{call, node, resolver_of, send, set_text};
use crate::world::{Net, text, world};

/// Two polls of a daemon as shipped. Within this time after the block that changes a name, the gate refuses it.
const SOON: Duration = Duration::from_secs(4);

const NAME: &str = "summarizeagent.eth";

/// The name that changes while Redis is stopped.
const OTHER: &str = "classifyagent.eth";

/// Whose records no test reads.
const PUBLISHERS_NAME: &str = "commandlayer.eth";

sol! {
    function text(bytes32 node, string key) returns (string);
}

/// The key of the MAC that a fleet shares.
const MAC_KEY: &str = "4444444444444444444444444444444444444444444444444444444444444444";

/// What a daemon may take to start, to read the name, and to say what became of it.
const HANGS: Duration = Duration::from_secs(60);

/// Two daemons that share evidence in Redis. Each reads the chain itself.
struct Fleet {
    daemons: [Daemon; 2],
    redis: RedisServerProcess,
}

impl Fleet {
    /// `None`, said aloud, where there is no server.
    fn start(net: &Net) -> Option<Self> {
        let redis = RedisServerProcess::start(&[])?;
        let key = redis.write_mac_key_file(&[MAC_KEY]);
        let shared = format!("[redis]\nurl = \"unix://{}\"\nmac-key = \"{}\"\n", redis.socket_path(), text(&key));
        let own = format!("[[rpc]]\nurl = \"{}\"\nown = true\n", net.rpc());
        let daemons = [(); 2].map(|()| Daemon::start(net, &format!("{shared}{own}")));
        Some(Self { daemons, redis })
    }

    /// Waits until the gate of each daemon gives this answer about a name, and says how long it took.
    async fn until(&self, name: &str, is_wanted: impl Fn(&(u16, String)) -> bool) -> Duration {
        let began = Instant::now();
        for daemon in &self.daemons {
            loop {
                let said = daemon.gate(name).await;
                if is_wanted(&said) {
                    break;
                }
                assert!(began.elapsed() < HANGS, "{said:?}");
            }
        }
        began.elapsed()
    }

    /// Changes a name that the gate of each daemon admits, and waits until each refuses it.
    async fn refuses_in_time(&self, net: &Net, name: &str) {
        set_text(net, name, "cl.owner", "thief.eth").await;
        let time = self.until(name, |(status, _)| *status != 200).await;
        println!("closed after {} ms", time.as_millis());
        assert!(time < SOON, "{time:?}");
        self.until(name, |(_, code)| code == "record-pending").await;
    }
}

/// A daemon that reads the node of a net.
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
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_closes_every_gate_of_a_fleet_within_two_polls() {
    let Some(world) = world() else { return };
    let net = &world.changing;
    let Some(fleet) = Fleet::start(net) else { return };
    fleet.until(NAME, |(status, _)| *status == 200).await;
    fleet.refuses_in_time(net, NAME).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_closes_every_gate_while_redis_is_stopped() {
    let Some(world) = world() else { return };
    let net = &world.changing;
    let Some(fleet) = Fleet::start(net) else { return };
    fleet.until(OTHER, |(status, _)| *status == 200).await;
    fleet.redis.signal("-STOP");
    fleet.refuses_in_time(net, OTHER).await;
}

/// Sends the call data of `plan` unchanged to the name's resolver, which is the official contract.
#[tokio::test(flavor = "multi_thread")]
async fn the_call_data_of_a_plan_sets_its_records() {
    let Some(world) = world() else { return };
    let net = &world.changing;
    let url = "https://planned.example/card.json";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let card = renamed(net.card(NAME), PUBLISHERS_NAME, url);
    std::fs::write(folder.path().join("card.json"), card).expect("a temporary folder takes files");
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.args(["plan", text(folder.path()), "--url", "https://planned.example/", "-o", "json", "--calldata"]);
    let file = folder.path().join("call.txt");
    command.arg(&file);
    let output = command.output().expect("the binary runs");
    let plan: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let resolver = resolver_of(net, PUBLISHERS_NAME).await;
    let line = std::fs::read_to_string(file).expect("the call data was written");
    let (_name, data) = line.trim_end().split_once(' ').expect("a name and its call data");
    let data: Bytes = data.parse().expect("bytes");
    send(net, resolver, data.to_vec()).await;
    let node = node(PUBLISHERS_NAME);
    let records = plan["records"].as_object().expect("records");
    assert_eq!((records.len(), &records["cl.agentcard"]), (6, &json!(url)));
    for (key, value) in records {
        let said = call(net, resolver, textCall { node, key: key.clone() }.abi_encode()).await;
        assert_eq!(String::abi_decode(&said).expect("a text"), *value, "{key}");
    }
}
