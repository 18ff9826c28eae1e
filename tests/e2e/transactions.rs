//! What a test asks of a chain's node, and the transactions that change the chain.

use alloy_primitives::{Address, B256, Bytes, address};
use alloy_sol_types::{SolCall as _, SolValue as _, sol};
use clresolve_core::name::EnsName;
use reqwest::Client;
use serde_json::{Value, json};

use crate::world::{Net, PUBLISHER};

pub(crate) const REGISTRY: Address = address!("00000000000C2E074eC69A0dFb2997BA6C7d2e1e");

/// How far anvil's finalized block is behind the newest, and one more.
const UNTIL_FINAL: u64 = 65;

sol! {
    function resolver(bytes32 node) returns (address);
    function setText(bytes32 node, string key, string value);
}

/// Asks the chain's node.
pub(crate) async fn ask(net: &Net, method: &str, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let reply = Client::builder().no_proxy().build().expect("a client").post(net.rpc()).body(request.to_string());
    let reply = reply.header("content-type", "application/json").send().await.expect("the node answers");
    let reply: Value = serde_json::from_slice(&reply.bytes().await.expect("a whole reply")).expect("JSON");
    assert!(reply["error"].is_null(), "{method}: {reply}");
    reply["result"].clone()
}

/// The node of a name.
pub(crate) fn node(name: &str) -> B256 {
    EnsName::parse(name).expect("a name").namehash()
}

/// Sets a text record as the publisher does. It is in a block when this returns.
pub(crate) async fn set_text(net: &Net, name: &str, key: &str, value: &str) {
    let set = setTextCall { node: node(name), key: key.to_owned(), value: value.to_owned() };
    send(net, resolver_of(net, name).await, set.abi_encode()).await;
}

pub(crate) async fn resolver_of(net: &Net, name: &str) -> Address {
    let resolver = call(net, REGISTRY, resolverCall { node: node(name) }.abi_encode()).await;
    Address::abi_decode(&resolver).expect("an address")
}

/// What a contract answers at the newest block.
pub(crate) async fn call(net: &Net, to: Address, data: Vec<u8>) -> Bytes {
    let call = json!([{"to": to, "data": Bytes::from(data)}, "latest"]);
    serde_json::from_value(ask(net, "eth_call", call).await).expect("bytes")
}

/// Sends a transaction of the publisher. It is in a block when this returns.
pub(crate) async fn send(net: &Net, to: Address, data: Vec<u8>) {
    send_as(net, PUBLISHER, to, data).await;
}

/// Sends a transaction of `from`, whose key the node does not ask for. It is in a block when this returns.
pub(crate) async fn send_as(net: &Net, from: &str, to: Address, data: Vec<u8>) {
    mined(net, json!({"from": from, "to": to, "data": Bytes::from(data), "gas": "0x1e8480"})).await;
}

/// Deploys a contract, from its creation code.
pub(crate) async fn deploy(net: &Net, creation: Bytes) -> Address {
    let accounts = ask(net, "eth_accounts", json!([])).await;
    let receipt = mined(net, json!({"from": accounts[0], "data": creation, "gas": "0x4c4b40"})).await;
    serde_json::from_value(receipt["contractAddress"].clone()).expect("an address")
}

/// Makes what has happened so far final.
pub(crate) async fn finalize(net: &Net) {
    ask(net, "anvil_mine", json!([UNTIL_FINAL])).await;
}

/// Sends a transaction and gives its receipt. It has succeeded.
async fn mined(net: &Net, transaction: Value) -> Value {
    let hash = ask(net, "eth_sendTransaction", json!([transaction])).await;
    let mut receipt = Value::Null;
    while receipt.is_null() {
        receipt = ask(net, "eth_getTransactionReceipt", json!([hash])).await;
    }
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt
}
