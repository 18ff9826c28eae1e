//! Payees by ERC-8004 on a real chain: the wallet of a registry's agent is paid where the name vouches for the agent
//! and the agent's registration names the name back.

use std::fs;

use alloy_primitives::{Address, Bytes, U256, hex};
use alloy_sol_types::{SolCall as _, sol};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::transactions::{ask, deploy, finalize, send, send_as, set_text};
use crate::world::{Net, PUBLISHER, STRANGER, text, world};

const NAME: &str = "summarizeagent.eth";
const URL: &str = "https://api.example/summarize";
/// Nobody asks it for anything.
const ASSET: &str = "0x00000000000000000000000000000000000000d1";

sol! {
    function register(string agentURI) returns (uint256);
    function unsetAgentWallet(uint256 agentId);
}

/// The chain with a registry on it, and the files of the command.
struct Paying<'a> {
    net: &'a Net,
    registry: Address,
    folder: TempDir,
}

impl<'a> Paying<'a> {
    async fn new(net: &'a Net) -> Self {
        let registry = deploy(net, creation("IdentityRegistry")).await;
        Self { net, registry, folder: TempDir::new().expect("a temporary folder") }
    }

    /// Enters an agent into the registry whose registration names this name. Its holder is its wallet.
    async fn register(&self, holder: &str, ens: &str) {
        let file = json!({
            "type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
            "name": "An agent",
            "services": [{"name": "ENS", "endpoint": ens}],
        });
        let uri = format!("data:application/json;base64,{}", STANDARD.encode(file.to_string()));
        send_as(self.net, holder, self.registry, registerCall { agentURI: uri }.abi_encode()).await;
    }

    /// Lets the name vouch for an agent (ENSIP-25), whose registry is named as ERC-7930 says.
    async fn vouch(&self, agent: u64) {
        let chain = self.net.chain_id;
        assert!((0x100..0x1_0000).contains(&chain), "a chain of two bytes");
        let registry = format!("0x0001000002{chain:04x}14{}", hex::encode(self.registry));
        set_text(self.net, NAME, &format!("agent-registration[{registry}][{agent}]"), "1").await;
    }

    /// Outcome, codes and sentence of a decision to pay this account, where the operator names this agent.
    fn decided(&self, pay_to: &str, agent: u64) -> (String, Vec<String>, String) {
        let (config, terms) = (self.folder.path().join("config.toml"), self.folder.path().join("terms.json"));
        fs::write(&config, self.config(agent)).expect("a temporary folder takes files");
        fs::write(&terms, self.terms(pay_to)).expect("a temporary folder takes files");
        let trust_root = self.net.trust_root();
        let mut command = self.net.command(trust_root.path());
        command.args(["--config", text(&config), "decide", NAME, "summarize", "--url", URL, "--terms", text(&terms)]);
        let output = command.args(["-o", "json"]).output().expect("the binary runs");
        let decision: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let of = |member: &str| decision[member].as_str().expect("a text").to_owned();
        let codes = decision["codes"].as_array().expect("a list").iter();
        let codes = codes.map(|code| code.as_str().expect("a code").to_owned()).collect();
        (of("decision"), codes, of("reason"))
    }

    fn terms(&self, pay_to: &str) -> String {
        let entry = json!({
            "scheme": "exact", "network": self.network(), "amount": "10000", "asset": ASSET, "payTo": pay_to,
            "maxTimeoutSeconds": 60, "extra": {"name": "Dollar", "version": "1"},
        });
        json!({"x402Version": 2, "resource": {"url": URL}, "accepts": [entry]}).to_string()
    }

    fn config(&self, agent: u64) -> String {
        let (id, network, rpc, registry) = (self.net.chain_id, self.network(), self.net.rpc(), self.registry);
        format!(
            r#"
chain-id = {id}

[[rpc]]
url = "{rpc}"
own = true

[routes]
"{NAME}/summarize" = "{URL}"

[limits]
networks = "limits"

[[limits.assets]]
network = "{network}"
address = "{ASSET}"
max-amount = "10000"
name = "Dollar"
version = "1"
decimals = 6
symbol = "D"

[chains.{id}]
rpc = [{{ url = "{rpc}", own = true }}]
registry = "{registry}"
agents = {{ "{NAME}" = {agent} }}
"#
        )
    }

    fn network(&self) -> String {
        format!("eip155:{}", self.net.chain_id)
    }
}

/// The creation code of a contract of the project's own.
fn creation(contract: &str) -> Bytes {
    let artifacts = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/sandbox/contracts/artifacts.json");
    let artifacts = fs::read(artifacts).expect("the contracts are compiled");
    let mut artifacts: Value = serde_json::from_slice(&artifacts).expect("JSON");
    serde_json::from_value(artifacts["creation"][contract].take()).expect("bytes")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wallet_of_a_registered_agent_is_paid_and_nobody_else() {
    let Some(world) = world() else { return };
    let net = &world.paid;
    let paying = Paying::new(net).await;
    ask(net, "anvil_setBalance", json!([STRANGER, "0xde0b6b3a7640000"])).await;
    paying.register(PUBLISHER, NAME).await;
    paying.register(STRANGER, NAME).await;
    paying.register(PUBLISHER, "other.eth").await;
    for agent in [1, 3] {
        paying.vouch(agent).await;
    }
    let (outcome, codes, reason) = paying.decided(PUBLISHER, 1);
    assert_eq!((&*outcome, codes), ("undecided", vec!["record-pending".to_owned()]), "{reason}");
    finalize(net).await;

    let (outcome, codes, reason) = paying.decided(PUBLISHER, 1);
    assert_eq!((&*outcome, codes), ("allow", Vec::new()), "{reason}");
    let said = format!("proven by agent 1 of the ERC-8004 registry on {} at its block ", paying.network());
    assert!(reason.contains(&said), "{reason}");
    let refused = |pay_to: &str, agent: u64, outcome: &str, code: &str| {
        let (found, codes, reason) = paying.decided(pay_to, agent);
        assert_eq!((&*found, codes), (outcome, vec![code.to_owned()]), "{reason}");
    };
    // The registry says that the agent is paid elsewhere.
    refused(STRANGER, 1, "deny", "payee-mismatch");
    // One whose registration names the name, and for which the name does not vouch.
    refused(STRANGER, 2, "undecided", "payee-unproven");
    // One for which the name vouches, and whose registration names another.
    refused(PUBLISHER, 3, "undecided", "payee-unproven");

    send(net, paying.registry, unsetAgentWalletCall { agentId: U256::from(1) }.abi_encode()).await;
    refused(PUBLISHER, 1, "undecided", "record-pending");
    finalize(net).await;
    refused(PUBLISHER, 1, "undecided", "payee-unproven");
}
