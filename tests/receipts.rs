//! The sandbox's receipts through the library, the command and the daemon, and what an agent may send beside.

#[path = "receipts/purchase.rs"]
mod purchase;
#[path = "receipts/remembered.rs"]
mod remembered;
#[path = "receipts/settlement.rs"]
mod settlement;

use std::collections::BTreeSet;
use std::process::{Command, Output};

use clresolve::payment::settlement::Purchase;
use clresolve::reason::{Code, Step};
use clresolve::resolve::Resolver;
use clresolve::sandbox::spec::Spec;
use clresolve::sandbox::{Sandbox, World};
use clresolve::verdict::State;
use clresolve::verdict::receipt::question::Request;
use clresolve::verdict::receipt::{Family, ReceiptQuestion, Verification};
use serde_json::{Value, json};

/// Codes that no receipt gets by itself, with tests of their own.
const ELSEWHERE: [Code; 1] = [Code::ReceiptReplayed];

fn question(name: &str, receipt: &str) -> ReceiptQuestion {
    let request = Request::from_bytes(Sandbox::request().1.as_bytes()).expect("a request");
    let receipt = receipt.as_bytes().to_vec();
    ReceiptQuestion { name: name.to_owned(), receipt, request: Some(request), purchase: Purchase::default() }
}

fn schema() -> jsonschema::Validator {
    let text = std::fs::read_to_string("schemas/receipt.schema.json").expect("a schema");
    jsonschema::draft202012::new(&serde_json::from_str(&text).expect("JSON")).expect("a schema")
}

fn sample(file: &str) -> &'static str {
    Sandbox::receipts().iter().find(|sample| sample.file == file).expect("a receipt of the sandbox").text
}

#[tokio::test(flavor = "multi_thread")]
async fn every_receipt_gets_its_state_and_every_code_is_shown() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let schema = schema();
    let (mut families, mut forged) = (BTreeSet::new(), BTreeSet::new());
    for sample in Sandbox::receipts() {
        let found = resolver.verify_receipt(&question(sample.name, sample.text)).await;
        let codes: Vec<_> = sample.codes.iter().map(|code| code.slug()).collect();
        assert_eq!(
            (found.state, found.codes.clone()),
            (sample.state, as_strings(&codes)),
            "{}: {found:#?}",
            sample.file
        );
        let family = found.family.map(|family| family.id);
        families.extend(family);
        forged.extend(family.filter(|_| sample.codes.contains(&Code::ReceiptSignatureInvalid)));
        let document = serde_json::to_value(&found).expect("JSON");
        let errors: Vec<_> = schema.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", sample.file);
    }
    assert_eq!(families, Family::ALL.into());
    assert_eq!(forged, families, "of each family one is forged");
    let replies = Sandbox::replies();
    let of_replies = replies.iter().flat_map(|reply| reply.codes);
    let of_receipts = Sandbox::receipts().iter().flat_map(|sample| sample.codes);
    let shown: BTreeSet<_> = of_receipts.chain(of_replies).copied().collect();
    let is_shown = |code: &Code| code.entry().step != Step::Receipt || shown.contains(code) || ELSEWHERE.contains(code);
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !is_shown(code)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The request of the sandbox has an identifier. Most families have no place for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_said_to_be_for_the_request_only_where_it_repeats_its_identifier() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    for (files, what, is_unchecked) in [
        (&["sdk.json", "runtime.json", "runtime-core-hash-bound.json"][..], "this request", false),
        (
            &["agent-sdk.json", "website.json", "mcp-server.json", "runtime-core.json"],
            "a request with this input",
            true,
        ),
    ] {
        for file in files {
            let found = resolver.verify_receipt(&question("summarizeagent.eth", sample(file))).await;
            let summary = format!("The agent's signer has signed this receipt for {what}.");
            assert_eq!((found.state, &found.summary), (State::Trusted, &summary), "{file}");
            assert_eq!(found.unchecked.contains(&"request_id"), is_unchecked, "{file}");
        }
    }
}

fn as_strings(codes: &[&str]) -> Vec<String> {
    codes.iter().map(|code| (*code).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_verifiers_come_to_the_same_conclusion() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let verified = async || -> Verification {
        let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
        resolver.verify_receipt(&question("summarizeagent.eth", sample("agent-sdk.json"))).await
    };
    let (one, other) = (verified().await, verified().await);
    assert_eq!(one.conclusion, other.conclusion);
    assert_ne!(one.id, other.id, "they were made at two times");
    assert_eq!(one.signer.expect("it is known").name, "runtime.sandbox.eth");
}

/// Whoever sends receipts about one agent over and over makes no request to the chain with them.
#[tokio::test(flavor = "multi_thread")]
async fn the_signer_is_read_once_beside_a_verdict() {
    let agents = ["agent.eth", "signer.eth"].map(|name| format!("[[agent]]\nname = \"{name}\"\nabout = \"Good.\"\n"));
    let spec = format!("{}records.\"cl.receipt.signer\" = \"signer.eth\"\n{}", agents[0], agents[1]);
    let world = World::start(&Spec::parse(&spec).expect("it is a world")).await.expect("it starts");
    let resolver = Resolver::new(&world.config()).await.expect("its configuration is good");
    let verify = async || {
        let before = world.counts().rpc;
        resolver.verify_receipt(&question("agent.eth", sample("agent-sdk.json"))).await;
        world.counts().rpc - before
    };
    assert!(verify().await > 0);
    assert_eq!(verify().await, 0);
}

/// What is signed well is worth nothing where the agent itself is not trusted.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_of_an_agent_that_is_not_trusted_is_not_trusted() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    for name in ["host-changed.eth", "unregistered.eth", "not a name"] {
        let found = resolver.verify_receipt(&question(name, sample("agent-sdk.json"))).await;
        assert_eq!(found.state, State::Untrusted, "{name}: {found:#?}");
    }
}

#[test]
fn the_command_says_what_the_library_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).display().to_string();
    let listed = run(&["sandbox", "--receipts", &path(""), "-o", "json"]);
    let rows: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(Sandbox::receipts().len() + Sandbox::replies().len()));
    for (file, code) in [("agent-sdk.json", 0), ("receipt-hash-mismatch.json", 1), ("receipt-family-unknown.json", 3)] {
        let (receipt, request) = (path(file), path("request.json"));
        let arguments =
            ["receipt", "verify", &receipt, "--name", "summarizeagent.eth", "--sandbox", "--request", &request];
        let document = run(&[&arguments[..], &["-o", "json"]].concat());
        assert_eq!(document.status.code(), Some(code), "{document:?}");
        let document: Value = serde_json::from_slice(&document.stdout).expect("JSON");
        assert!(schema().is_valid(&document));
    }
    let missing = run(&["receipt", "verify", &path("none.json"), "--name", "a.eth", "--sandbox"]);
    assert_eq!(missing.status.code(), Some(2));
    let unwritable = run(&["sandbox", "--receipts", &path("sdk.json")]);
    assert_eq!(unwritable.status.code(), Some(74), "a file stands where a folder is to be: {unwritable:?}");
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_clresolve")).args(arguments).output().expect("the program runs")
}

#[test]
fn a_question_in_json_keeps_the_bytes_of_the_receipt() {
    let body = json!({"name": "a.eth"}).to_string();
    let body = format!(r#"{},"receipt":{}}}"#, &body[..body.len() - 1], sample("receipt-duplicate-key.json"));
    let question = ReceiptQuestion::from_json(body.as_bytes()).expect("a question");
    assert_eq!(question.receipt, sample("receipt-duplicate-key.json").trim().as_bytes());
}
