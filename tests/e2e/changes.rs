//! Two audits of a real chain that changes between them: each change is named once and has a drafted row for the
//! governance log.

use std::fs;
use std::path::Path;

use alloy_primitives::{Address, U256, address, keccak256};
use alloy_sol_types::{SolCall as _, sol};
use clresolve_audit::governance_log::{GovernanceLog, GovernanceLogRow};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::Exit;
use crate::transactions::{ask, finalize, node, resolver_of, send, send_as, set_text};
use crate::world::{Net, PUBLISHER, STRANGER, text, world};

/// The registrar of `.eth`.
const REGISTRAR: Address = address!("57f1887a8BF19b14fC0dF6Fd9B2acc9Af147eA85");
const NEW_PAYEE: Address = address!("00000000000000000000000000000000000000aa");
const SECONDS_PER_DAY: u64 = 86_400;

sol! {
    function transferFrom(address from, address to, uint256 tokenId);
    function reclaim(uint256 id, address owner);
    function renew(uint256 id, uint256 duration) returns (uint256);
    function setAddr(bytes32 node, address value);
}

/// The folder of one audit's files, and the chain.
struct Audited<'a> {
    net: &'a Net,
    folder: TempDir,
}

impl<'a> Audited<'a> {
    fn new(net: &'a Net) -> Self {
        let audited = Self { net, folder: TempDir::new().expect("a temporary folder") };
        audited.write("names.txt", &net.names.join("\n"));
        // Addresses are read for the networks that may be paid on.
        let limits = "[limits]\nnetworks = [\"eip155:1\"]\n";
        audited.write("config.toml", &format!("chain-id = {}\nrpc = [{:?}]\n{limits}", net.chain_id, net.rpc()));
        audited
    }

    fn path(&self, name: &str) -> String {
        text(&self.folder.path().join(name)).to_owned()
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.folder.path().join(name), content).expect("a temporary folder takes files");
    }

    /// Runs a command over the list; its exit code and what it wrote, if anything.
    fn run(&self, command: &[&str], out: &str) -> (Exit, String) {
        let (names, config, out) = (self.path("names.txt"), self.path("config.toml"), self.path(out));
        let list = ["--names", &names, "--config", &config, "--profile", crate::RELEASED, "--out", &out];
        let output = self.net.run(&[command, &list].concat());
        let written = fs::read_to_string(Path::new(&out)).unwrap_or_default();
        (output.status.code().into(), written)
    }

    /// What `audit list` lists, spelt by the list of names.
    fn listed(&self, wanted: &[&str]) -> Vec<String> {
        let (known, config) = (self.path("names.txt"), self.path("config.toml"));
        let output =
            self.net.run(&[&["audit", "list", "-o", "short", "--known", &known, "--config", &config], wanted].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let listed = String::from_utf8(output.stdout).expect("names are text");
        listed.lines().filter(|line| !line.starts_with("0x")).map(str::to_owned).collect()
    }

    /// What `audit resolution` says of a log with these rows, between both reports.
    fn resolution(&self, rows: &str) -> (Exit, Value) {
        let head = "| Date | Agent Name(s) | Action | Reason | Resolution | Approver(s) |\n|---|---|---|---|---|---|\n";
        self.write("log.md", &format!("{head}{rows}"));
        let (log, before, after) = (self.path("log.md"), self.path("before.json"), self.path("after.json"));
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_clresolve"));
        let command = command.env_clear().args(["audit", "resolution", "--json", "--log", &log, "--since", &before]);
        let output = command.arg(&after).output().expect("the binary runs");
        let check: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_clresolve"));
        let command = command.env_clear().args(["audit", "resolution", "--log", &log, "--since", &before]);
        let printed = String::from_utf8(command.arg(after).output().expect("the binary runs").stdout).expect("text");
        assert_eq!(json!(printed_drafts(&printed)), check["drafts"], "{printed}");
        (output.status.code().into(), check)
    }
}

/// Gives a name to a stranger, as its holder does in the registrar.
async fn give_away(net: &Net, name: &str) {
    let (from, to) = (PUBLISHER.parse().expect("an address"), STRANGER.parse().expect("an address"));
    let id = token(name);
    send(net, REGISTRAR, transferFromCall { from, to, tokenId: id }.abi_encode()).await;
    ask(net, "anvil_setBalance", json!([STRANGER, "0xde0b6b3a7640000"])).await;
    send_as(net, STRANGER, REGISTRAR, reclaimCall { id, owner: to }.abi_encode()).await;
}

/// Prolongs a name by a year, as the controller of the registrar does.
async fn renew(net: &Net, name: &str) {
    let accounts = ask(net, "eth_accounts", json!([])).await;
    let renewal = renewCall { id: token(name), duration: U256::from(365 * SECONDS_PER_DAY) };
    send_as(net, accounts[0].as_str().expect("an address"), REGISTRAR, renewal.abi_encode()).await;
}

/// The registrar's number of a second-level name.
fn token(name: &str) -> U256 {
    let (label, _) = name.split_once('.').expect("a second-level name");
    keccak256(label).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_between_two_audits_is_named_once_and_has_its_drafted_row() {
    let Some(world) = world() else { return };
    let net = &world.audited;
    let audited = Audited::new(net);
    let [bytes, owner, expiry, payee] = [0, 1, 2, 3].map(|i| net.cards[i].name.as_str());
    send(net, resolver_of(net, payee).await, setAddrCall { node: node(payee), value: Address::ZERO }.abi_encode())
        .await;
    finalize(net).await;
    let (exit, earlier) = audited.run(&["audit", "--json"], "before.json");
    assert_eq!(exit, Exit::Trusted);
    let earlier: Value = serde_json::from_str(&earlier).expect("JSON");
    let next_block = earlier["counts"]["blocks"]["last"].as_u64().expect("a number") + 1;
    fs::copy(audited.path("before.json"), audited.path("state.json")).expect("a report");

    for (key, value) in world.next_records.as_object().expect("records") {
        set_text(net, bytes, key, value.as_str().expect("a text")).await;
    }
    give_away(net, owner).await;
    renew(net, expiry).await;
    send(net, resolver_of(net, payee).await, setAddrCall { node: node(payee), value: NEW_PAYEE }.abi_encode()).await;
    finalize(net).await;

    assert_eq!(audited.listed(&["--changed", &format!("{next_block}..")]), [bytes], "whose text records were set");
    let below = audited.listed(&["--below", "eth"]);
    assert!(net.names.iter().all(|name| below.contains(name)), "{below:?}");

    let before = audited.path("before.json");
    let (exit, after) = audited.run(&["audit", "--json", "--since", &before], "after.json");
    let report: Value = serde_json::from_str(&after).expect("JSON");
    let changes = report["since"]["changes"].as_array().expect("a list");
    let found: Vec<_> =
        changes.iter().map(|change| ["name", "kind"].map(|of| change[of].as_str().expect("a text"))).collect();
    let expected = [
        [payee, "payee"],
        [bytes, "findings"],
        [bytes, "bytes"],
        [bytes, "records"],
        [bytes, "update-missing"],
        [bytes, "update-missing"],
        [owner, "findings"],
        [owner, "owner"],
        [expiry, "expiry"],
    ];
    assert_eq!((exit, found), (Exit::Untrusted, expected.to_vec()), "{changes:#?}");

    let (exit, check) = audited.resolution("");
    let missing = check["missing"].as_array().expect("a list");
    let missing: Vec<_> = missing.iter().map(|missing| missing["name"].as_str().expect("a name")).collect();
    assert_eq!((exit, missing), (Exit::Untrusted, vec![payee, bytes, owner, expiry]), "{check:#}");
    let (exit, check) = audited.resolution(&decided(&check));
    assert_eq!(exit, Exit::Trusted, "{check:#}");
}

/// The drafts that are printed for people, read back as rows of a log.
fn printed_drafts(printed: &str) -> Vec<Value> {
    let Some((_, drafts)) = printed.split_once("once a person has decided:\n\n") else { return Vec::new() };
    let log = GovernanceLog::parse(drafts);
    let row = |row: GovernanceLogRow| {
        let GovernanceLogRow { date, subject, kind, action, decision, reason, .. } = row;
        json!({"date": date, "subject": subject, "kind": kind, "action": action, "decision": decision, "reason": reason})
    };
    log.rows.into_iter().map(row).collect()
}

/// The drafted rows, which are all about changes, as if a person had decided them.
fn decided(check: &Value) -> String {
    let cell = |draft: &Value, of: &str| draft[of].as_str().expect("a text").replace("draft: ", "");
    let row = |draft: &Value| {
        assert_eq!(draft["kind"], "change");
        let cells = ["date", "subject", "action", "reason", "decision"].map(|of| cell(draft, of));
        format!("| {} | publisher.eth |\n", cells.join(" | "))
    };
    check["drafts"].as_array().expect("a list").iter().map(row).collect()
}
