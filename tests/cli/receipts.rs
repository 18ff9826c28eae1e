//! The sandbox's receipts through the library, the command and the daemon, and what an agent may send beside.

#[path = "receipts/keys.rs"]
mod keys;
#[path = "receipts/purchase.rs"]
mod purchase;
#[path = "receipts/remembered.rs"]
mod remembered;
#[path = "receipts/settlement.rs"]
mod settlement;

use std::collections::BTreeSet;
use std::process::{Command, Output};

use clresolve_core::name::EnsName;
use clresolve_core::reason::{ReasonCode, ResolutionStep};
use clresolve_core::state::TrustState;
use clresolve_messages::receipt::question::AgentRequest;
use clresolve_messages::receipt::{ReceiptFamily, ReceiptVerificationDocument, ReceiptVerificationRequest};
use clresolve_payment::settlement::PurchasePaymentDocuments;
use clresolve_resolver::config::{BlockSelector, Config, ProofGrade};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::{CustomSandbox, Sandbox};
use clresolve_sandbox::spec::SandboxSpec;
use serde_json::{Value, json};

/// Codes that no receipt gets by itself, with tests of their own.
const ELSEWHERE: [ReasonCode; 1] = [ReasonCode::ReceiptReplayed];

fn question(name: &str, receipt: &str) -> ReceiptVerificationRequest {
    let request = AgentRequest::from_bytes(Sandbox::sample_request().1.as_bytes()).expect("a request");
    let receipt = receipt.as_bytes().to_vec();
    ReceiptVerificationRequest {
        name: name.to_owned(),
        receipt,
        request: Some(request),
        purchase: PurchasePaymentDocuments::default(),
    }
}

fn schema() -> jsonschema::Validator {
    let text = std::fs::read_to_string("schemas/receipt.schema.json").expect("a schema");
    jsonschema::draft202012::new(&serde_json::from_str(&text).expect("JSON")).expect("a schema")
}

/// That what is said is written down as the schema says.
#[track_caller]
fn fits(found: &ReceiptVerificationDocument) {
    let errors: Vec<_> = schema().iter_errors(&found.to_value()).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}: {found:#?}");
}

fn sample(file: &str) -> &'static str {
    Sandbox::sample_receipts().iter().find(|sample| sample.file == file).expect("a receipt of the sandbox").text
}

#[tokio::test(flavor = "multi_thread")]
async fn every_receipt_gets_its_state_and_every_code_is_shown() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let schema = schema();
    let (mut families, mut forged) = (BTreeSet::new(), BTreeSet::new());
    for sample in Sandbox::sample_receipts() {
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
        forged.extend(family.filter(|_| sample.codes.contains(&ReasonCode::ReceiptSignatureInvalid)));
        let document = serde_json::to_value(&found).expect("JSON");
        let errors: Vec<_> = schema.iter_errors(&document).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", sample.file);
    }
    assert_eq!(families, ReceiptFamily::ALL.into());
    // A forged receipt of the shape that E and E2 share is taken for one of E.
    forged.insert(ReceiptFamily::E2);
    assert_eq!(forged, families, "of each family one is forged");
    let replies = Sandbox::sample_settlement_headers();
    let of_replies = replies.iter().flat_map(|reply| reply.codes);
    let of_receipts = Sandbox::sample_receipts().iter().flat_map(|sample| sample.codes);
    let shown: BTreeSet<_> = of_receipts.chain(of_replies).copied().collect();
    let is_shown = |code: &ReasonCode| {
        code.entry().step != ResolutionStep::Receipt || shown.contains(code) || ELSEWHERE.contains(code)
    };
    let missing: Vec<_> = ReasonCode::ALL.iter().filter(|code| !is_shown(code)).collect();
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
            let mut summary = format!("The agent's signer has signed this receipt for {what}.");
            // Those that have no place for the identifier have none for the agent.
            if is_unchecked {
                summary += " Nothing that is signed names the agent, and its signer may sign for others too.";
            }
            assert_eq!((found.state, &found.summary), (TrustState::Trusted, &summary), "{file}");
            for what in ["request_id", "agent"] {
                assert_eq!(found.unchecked.contains(&what), is_unchecked, "{file}: {what}");
            }
        }
    }
}

fn as_strings(codes: &[&str]) -> Vec<String> {
    codes.iter().map(|code| (*code).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_verifiers_come_to_the_same_conclusion() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let verified = async || -> ReceiptVerificationDocument {
        let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
        resolver.verify_receipt(&question("summarizeagent.eth", sample("agent-sdk.json"))).await
    };
    let (one, other) = (verified().await, verified().await);
    assert_eq!(one.conclusion, other.conclusion);
    assert_ne!(one.id, other.id, "they were made at two times");
    assert_eq!(one.signer.expect("it is known").name, "runtime.sandbox.eth");
}

/// An agent whose receipts are those of the sandbox, signed by a name that can write its records.
async fn world_with_its_signer() -> CustomSandbox {
    let spec = "[[agent]]\nname = \"agent.eth\"\nabout = \"Good.\"\nrecords.\"cl.receipt.signer\" = \
                \"runtime.sandbox.eth\"\n\n[[agent]]\nname = \"runtime.sandbox.eth\"\nabout = \"It signs.\"\n\
                records.\"cl.sig.pub\" = \"ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=\"\n\
                records.\"cl.sig.kid\" = \"test-key-7\"\n";
    CustomSandbox::start(&SandboxSpec::parse(spec).expect("it is a world")).await.expect("it starts")
}

/// The agent itself is on the chain, so nothing else would tell that a gateway says who signs for it.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_signer_s_records_come_from_is_told() {
    let spec = "[[agent]]\nname = \"agent.eth\"\nabout = \"Good.\"\nrecords.\"cl.receipt.signer\" = \
                \"runtime.sandbox.eth\"\n\n[[agent]]\nname = \"runtime.sandbox.eth\"\nabout = \"It signs.\"\n\
                records.\"cl.sig.pub\" = \"ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=\"\n\
                records.\"cl.sig.kid\" = \"test-key-7\"\n\
                chain = { resolver = { offchain = [\"https://ccip.sandbox.example/ok/{sender}/{data}.json\"] } }\n";
    let world = CustomSandbox::start(&SandboxSpec::parse(spec).expect("it is a world")).await.expect("it starts");
    let mut config = world.config();
    let verified = async |config: &Config| {
        let resolver = Resolver::new(config).await.expect("its configuration is good");
        resolver.verify_receipt(&question("agent.eth", sample("agent-sdk.json"))).await
    };
    let found = verified(&config).await;
    assert_eq!(found.state, TrustState::Trusted, "{found:#?}");
    assert!(found.warnings.contains(&"record-offchain"), "{:?}", found.warnings);
    config.gate.deny = vec![ReasonCode::RecordOffchain];
    let denied = verified(&config).await;
    assert_eq!((denied.state, denied.codes), (TrustState::Indeterminate, as_strings(&["receipt-key-unpublished"])));
    let on_chain = world_with_its_signer().await;
    assert!(!verified(&on_chain.config()).await.warnings.contains(&"record-offchain"));
}

/// An address of the agent has signed: who signs for it by a key need not be known.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_by_an_address_of_the_agent_needs_no_signer() {
    let spec = "[[agent]]\nname = \"agent.eth\"\nabout = \"It sells.\"\nseller = \"\"\n\
                records.\"cl.receipt.signer\" = \"not a name\"\n";
    let world = CustomSandbox::start(&SandboxSpec::parse(spec).expect("it is a world")).await.expect("it starts");
    let unasked = ReceiptVerificationRequest { request: None, ..question("agent.eth", sample("x402-eip712.json")) };
    let verified = async |config: &Config| {
        let resolver = Resolver::new(config).await.expect("its configuration is good");
        resolver.verify_receipt(&unasked).await
    };
    let mut config = world.config();
    let found = verified(&config).await;
    assert_eq!((found.state, &found.signer), (TrustState::Trusted, &None), "{found:#?}");
    fits(&found);
    config.gate.min_proof = Some(ProofGrade::Quorum);
    let found = verified(&config).await;
    assert_eq!((found.state, found.codes), (TrustState::Indeterminate, as_strings(&["receipt-key-unpublished"])));
}

/// The signer's key is another one from the next block on.
fn rotate_the_key(world: &mut CustomSandbox) {
    let signer = EnsName::parse("runtime.sandbox.eth").expect("a name");
    let key = "ed25519:hhyCuPNoMk4JtEvGEV8F6nMZ4uDO1EcyizPufmnJTOY=";
    world.write_text(&signer, "cl.sig.pub", key).expect("it has a resolver");
}

/// A resolver that reads the world at this block.
async fn resolver_at(world: &CustomSandbox, block: BlockSelector) -> Resolver {
    let mut config = world.config();
    config.chain.block = block;
    Resolver::new(&config).await.expect("its configuration is good")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_is_judged_by_the_key_of_the_block_that_is_named() {
    let mut world = world_with_its_signer().await;
    let at = async |world: &CustomSandbox, block| {
        let resolver = resolver_at(world, block).await;
        resolver.verify_receipt(&question("agent.eth", sample("agent-sdk.json"))).await
    };
    let before = at(&world, BlockSelector::Latest).await;
    let block = before.signer.as_ref().expect("it is known").block;
    assert_eq!(before.state, TrustState::Trusted, "{before:#?}");
    rotate_the_key(&mut world);
    let now = at(&world, BlockSelector::Latest).await;
    assert_eq!((now.state, now.codes), (TrustState::Untrusted, as_strings(&["receipt-signature-invalid"])));
    assert!(now.signer.expect("it is known").block > block);
    let then = at(&world, BlockSelector::Number(block)).await;
    assert_eq!(
        (then.state, then.signer.map(|signer| signer.block)),
        (TrustState::Trusted, Some(block)),
        "{:?}",
        then.codes
    );
    let pending = at(&world, BlockSelector::Finalized).await;
    assert_eq!((pending.state, pending.codes), (TrustState::Indeterminate, as_strings(&["receipt-key-unpublished"])));
}

/// No head confirms the signer's name, so each receipt reads the key anew, although the verdict is cached.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_counts_no_longer() {
    let mut world = world_with_its_signer().await;
    let resolver = resolver_at(&world, BlockSelector::Latest).await;
    let state = async || resolver.verify_receipt(&question("agent.eth", sample("agent-sdk.json"))).await.state;
    assert_eq!(state().await, TrustState::Trusted);
    rotate_the_key(&mut world);
    assert_eq!(state().await, TrustState::Untrusted);
}

/// What is signed well is worth nothing where the agent itself is not trusted.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_of_an_agent_that_is_not_trusted_is_not_trusted() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    for name in ["host-changed.eth", "unregistered.eth", "not a name"] {
        let found = resolver.verify_receipt(&question(name, sample("agent-sdk.json"))).await;
        assert_eq!(found.state, TrustState::Untrusted, "{name}: {found:#?}");
    }
}

#[test]
fn the_command_says_what_the_library_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |file: &str| folder.path().join(file).display().to_string();
    let listed = run(&["sandbox", "--receipts", &path(""), "-o", "json"]);
    let rows: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(
        rows.as_array().map(Vec::len),
        Some(Sandbox::sample_receipts().len() + Sandbox::sample_settlement_headers().len())
    );
    for (file, code) in [("agent-sdk.json", 0), ("receipt-hash-mismatch.json", 1), ("receipt-family-unknown.json", 3)] {
        let (receipt, request) = (path(file), path("request.json"));
        let arguments =
            ["receipt", "verify", &receipt, "--name", "summarizeagent.eth", "--sandbox", "--request", &request];
        let document = run(&[&arguments[..], &["-o", "json"]].concat());
        assert_eq!(document.status.code(), Some(code), "{document:?}");
        let document: Value = serde_json::from_slice(&document.stdout).expect("JSON");
        assert!(schema().is_valid(&document));
    }
    let (receipt, at) =
        (path("agent-sdk.json"), ["--name", "summarizeagent.eth", "--sandbox", "--block", "1", "-o", "json"]);
    let past = run(&[&["receipt", "verify", &receipt][..], &at].concat());
    let document: Value = serde_json::from_slice(&past.stdout).expect("JSON");
    assert_eq!((past.status.code(), &document["signer"]["block"]), (Some(0), &json!(1)), "{document:#}");
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
    let question = ReceiptVerificationRequest::from_json(body.as_bytes()).expect("a question");
    assert_eq!(question.receipt, sample("receipt-duplicate-key.json").trim().as_bytes());
}
