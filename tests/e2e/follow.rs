//! A change on a real chain: how soon the daemon's gate refuses the name.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use alloy_primitives::{Address, B256, Bytes, address};
use alloy_sol_types::{SolCall as _, SolValue as _, sol};
use clresolve::name::EnsName;
use reqwest::Client;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::world::{Net, PUBLISHER, text, world};

/// The daemon as shipped, with a node of its own, refuses a name within this time after the block that changes it.
const SOON: Duration = Duration::from_secs(1);

const REGISTRY: Address = address!("00000000000C2E074eC69A0dFb2997BA6C7d2e1e");
const NAME: &str = "summarizeagent.eth";

sol! {
    function resolver(bytes32 node) returns (address);
    function setText(bytes32 node, string key, string value);
}

/// A daemon that follows the node of a net.
struct Daemon {
    child: Child,
    address: String,
    client: Client,
    _files: [NamedTempFile; 2],
}

impl Daemon {
    fn start(net: &Net) -> Self {
        let mut config = NamedTempFile::with_suffix(".toml").expect("a temporary file");
        let node = format!("[[rpc]]\nurl = \"{}\"\nown = true\nlabel = \"node\"\n", net.rpc());
        config.write_all(node.as_bytes()).expect("a temporary file takes bytes");
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
    async fn gate(&self) -> (u16, String) {
        let answer = self.client.get(format!("http://{}/v1/gate/{NAME}", self.address)).send().await;
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

/// Asks the chain's node.
async fn ask(net: &Net, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let reply = Client::builder().no_proxy().build().expect("a client").post(net.rpc()).body(request.to_string());
    let reply = reply.header("content-type", "application/json").send().await.expect("the node answers");
    let reply: Value = serde_json::from_slice(&reply.bytes().await.expect("a whole reply")).expect("JSON");
    assert!(reply["error"].is_null(), "{method}: {reply}");
    reply["result"].clone()
}

/// Sets a text record as the publisher does. It is in a block when this returns.
async fn set_text(net: &Net, key: &str, value: &str) {
    let node: B256 = EnsName::parse(NAME).expect("a name").node();
    let call = json!([{"to": REGISTRY, "data": Bytes::from(resolverCall { node }.abi_encode())}, "latest"]);
    let resolver: Bytes = serde_json::from_value(ask(net, "eth_call", call).await).expect("bytes");
    let resolver = Address::abi_decode(&resolver).expect("an address");
    let data: Bytes = setTextCall { node, key: key.to_owned(), value: value.to_owned() }.abi_encode().into();
    let transaction = json!([{"from": PUBLISHER, "to": resolver, "data": data, "gas": "0xf4240"}]);
    let hash = ask(net, "eth_sendTransaction", transaction).await;
    let mut receipt = Value::Null;
    while receipt.is_null() {
        receipt = ask(net, "eth_getTransactionReceipt", json!([hash])).await;
    }
    assert_eq!(receipt["status"], "0x1", "{receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_on_chain_closes_the_gate_within_a_second_of_its_block() {
    let Some(world) = world() else { return };
    let net = &world.changing;
    let daemon = Daemon::start(net);
    let started = Instant::now();
    while daemon.gate().await.0 != 200 {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", daemon.gate().await);
    }
    set_text(net, "cl.owner", "thief.eth").await;
    let changed = Instant::now();
    while daemon.gate().await.0 == 200 {
        assert!(changed.elapsed() < 4 * SOON, "it is open");
    }
    let closed = changed.elapsed();
    println!("closed after {} ms", closed.as_millis());
    assert!(closed < SOON, "{closed:?}");
    while daemon.gate().await.1 != "record-pending" {
        assert!(changed.elapsed() < Duration::from_secs(60), "{:?}", daemon.gate().await);
    }
}
