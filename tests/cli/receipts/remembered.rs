//! Receipts that are remembered: one receipt holds for one request, and nothing is written unasked.

use std::path::Path;
use std::process::Command;

use clresolve_core::state::TrustState;
use clresolve_messages::receipt::judge::{ReceiptCheckKind, StepStatus};
use clresolve_messages::receipt::question::AgentRequest;
use clresolve_messages::receipt::{ReceiptVerificationDocument, ReceiptVerificationRequest};
use clresolve_payment::settlement::{PurchasePaymentDocuments, StoredDecision};
use clresolve_resolver::Config;
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_verdict::verdict::canonical_digest;
use serde_json::{Value, json};

use super::{sample, schema};

const NAME: &str = "summarizeagent.eth";

/// The agent's own place.
const HOME: &str = "https://api.sandbox.example/summarize/v1";

/// It repeats the request's identifier, and not its input: so it fits many requests.
const RECEIPT: &str = "runtime.json";

/// The request of the sandbox, with a note that no receipt repeats.
fn request(note: &str) -> String {
    let mut request: Value = serde_json::from_str(Sandbox::sample_request().1).expect("JSON");
    request["note"] = note.into();
    request.to_string()
}

fn question(receipt: &str, request: &str) -> ReceiptVerificationRequest {
    let request = Some(AgentRequest::from_bytes(request.as_bytes()).expect("a request"));
    ReceiptVerificationRequest {
        name: NAME.to_owned(),
        receipt: receipt.as_bytes().to_vec(),
        request,
        purchase: PurchasePaymentDocuments::default(),
    }
}

/// The document of a decision that allowed a payment.
fn decision(id: &str, name: &str, network: &str, url: &str) -> Vec<u8> {
    const ADDRESS: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
    let document = json!({"schema": "clresolve.decision/1", "id": id, "name": name, "verb": "summarize", "abort": false,
        "entries": [{"index": 0}], "price": {"network": network, "asset": ADDRESS, "amount": "10000"}, "payee": {"address": ADDRESS},
        "route": {"url": url}});
    document.to_string().into_bytes()
}

fn config(sandbox: &Sandbox, folder: &Path) -> Config {
    let mut config = sandbox.config();
    config.memory.path = Some(folder.join("memory"));
    config
}

fn outcome(found: &ReceiptVerificationDocument) -> (TrustState, Vec<&str>) {
    (found.state, found.codes.iter().map(String::as_str).collect())
}

fn replay(found: &ReceiptVerificationDocument) -> StepStatus {
    found.checks.iter().find(|row| row.check == ReceiptCheckKind::Replay).expect("the row is always there").status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_holds_for_one_request_alone_after_a_restart_too() {
    let (sandbox, folder) = (Sandbox::start().await.expect("it starts"), tempfile::tempdir().expect("a folder"));
    let config = config(&sandbox, folder.path());
    let receipt = sample(RECEIPT);
    let first = Resolver::new(&config).await.expect("its configuration is good");
    let unremembered = first.verify_receipt(&question(receipt, &request("one"))).await;
    let remembered = first.verify_and_remember_receipt(&question(receipt, &request("one"))).await;
    assert_eq!((outcome(&remembered), replay(&remembered)), ((TrustState::Trusted, vec![]), StepStatus::Pass));
    assert_eq!(remembered.conclusion, unremembered.conclusion, "others remember other things");
    drop(first);

    let again = Resolver::new(&config).await.expect("its configuration is good");
    let spaced: Value = serde_json::from_str(&request("one")).expect("JSON");
    let spaced = serde_json::to_string_pretty(&spaced).expect("JSON");
    let same = again.verify_and_remember_receipt(&question(receipt, &spaced)).await;
    assert_eq!(outcome(&same), (TrustState::Trusted, vec![]), "the same request, however it is written");
    let unsigned = receipt.replacen('{', r#"{"receipt_id_of_nobody":1,"#, 1);
    assert_ne!(
        again.verify_receipt(&question(&unsigned, &request("one"))).await.state,
        TrustState::Trusted,
        "all is signed"
    );
    let mut rewritten: Value = serde_json::from_str(receipt).expect("JSON");
    rewritten["metadata"]["receipt_id"] = "another".into();
    for receipt in [receipt, &rewritten.to_string()] {
        let other = again.verify_and_remember_receipt(&question(receipt, &request("two"))).await;
        assert_eq!(
            (outcome(&other), replay(&other)),
            ((TrustState::Untrusted, vec!["receipt-replayed"]), StepStatus::Fail)
        );
        assert!(super::schema().is_valid(&other.to_value()), "{other:#?}");
        let unremembered = again.verify_receipt(&question(receipt, &request("two"))).await;
        assert_eq!(other.conclusion, unremembered.conclusion, "others remember other things");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn verifying_alone_writes_nothing() {
    let (sandbox, folder) = (Sandbox::start().await.expect("it starts"), tempfile::tempdir().expect("a folder"));
    let config = config(&sandbox, folder.path());
    let resolver = Resolver::new(&config).await.expect("its configuration is good");
    resolver.resolve(NAME).await;
    let written = || std::fs::read(folder.path().join("memory")).expect("a file");
    let before = written();
    for note in ["one", "two"] {
        let found = resolver.verify_receipt(&question(sample(RECEIPT), &request(note))).await;
        assert_eq!((outcome(&found), replay(&found)), ((TrustState::Trusted, vec![]), StepStatus::Skip));
    }
    assert!(written() == before, "something was written");
    resolver.verify_and_remember_receipt(&question(sample(RECEIPT), &request("one"))).await;
    assert!(written() != before, "nothing was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_requests_at_once_one_is_a_replay() {
    let (sandbox, folder) = (Sandbox::start().await.expect("it starts"), tempfile::tempdir().expect("a folder"));
    let resolver = Resolver::new(&config(&sandbox, folder.path())).await.expect("its configuration is good");
    let questions = ["one", "two"].map(|note| question(sample(RECEIPT), &request(note)));
    let (one, two) = tokio::join!(
        resolver.verify_and_remember_receipt(&questions[0]),
        resolver.verify_and_remember_receipt(&questions[1])
    );
    let mut states = [one.state, two.state];
    states.sort_by_key(|state| *state == TrustState::Untrusted);
    assert_eq!(states, [TrustState::Trusted, TrustState::Untrusted]);
}

/// Else anybody could use up a receipt before it is shown.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_hold_is_not_remembered() {
    let (sandbox, folder) = (Sandbox::start().await.expect("it starts"), tempfile::tempdir().expect("a folder"));
    let resolver = Resolver::new(&config(&sandbox, folder.path())).await.expect("its configuration is good");
    let mut forged: Value = serde_json::from_str(sample(RECEIPT)).expect("JSON");
    forged["metadata"]["proof"]["signature_b64"] = "AAAA".into();
    let found = resolver.verify_and_remember_receipt(&question(&forged.to_string(), &request("two"))).await;
    assert_eq!((found.state, replay(&found)), (TrustState::Untrusted, StepStatus::Skip));
    let honest = resolver.verify_and_remember_receipt(&question(sample(RECEIPT), &request("one"))).await;
    assert_eq!(outcome(&honest), (TrustState::Trusted, vec![]));
}

/// Who asked to remember is not told that a receipt is new where nobody knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_memory_that_cannot_be_used_leaves_it_undecided() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let found = resolver.verify_and_remember_receipt(&question(sample(RECEIPT), &request("one"))).await;
    assert_eq!(
        (outcome(&found), replay(&found)),
        ((TrustState::Indeterminate, vec!["receipt-replayed"]), StepStatus::Unknown)
    );
    let question = ReceiptVerificationRequest { request: None, ..question(sample(RECEIPT), "{}") };
    let found = resolver.verify_and_remember_receipt(&question).await;
    assert_eq!(
        (outcome(&found), replay(&found)),
        ((TrustState::Indeterminate, vec!["receipt-replayed"]), StepStatus::Unknown)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_remembers_where_it_is_told_to() {
    let (sandbox, folder) = (Sandbox::start().await.expect("it starts"), tempfile::tempdir().expect("a folder"));
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the folder can be written");
        path.display().to_string()
    };
    let receipt = file("receipt.json", sample(RECEIPT));
    let requests = ["one", "two"].map(|note| file(note, &request(note)));
    let with_memory = folder.path().join("memory.toml");
    config(&sandbox, folder.path()).save(&with_memory).expect("the folder can be written");
    let without = folder.path().join("none.toml");
    sandbox.config().save(&without).expect("the folder can be written");
    let code = |config: &Path, further: &[&str]| {
        let arguments = ["receipt", "verify", &receipt, "--name", NAME, "-o", "short"];
        let mut program = Command::new(env!("CARGO_BIN_EXE_clresolve"));
        program.env_clear().arg("--config").arg(config).args(arguments).args(further);
        program.output().expect("the program runs").status.code()
    };
    assert_eq!(code(&with_memory, &["--request", &requests[0], "--remember"]), Some(0));
    assert_eq!(code(&with_memory, &["--request", &requests[0], "--remember"]), Some(0));
    assert_eq!(code(&with_memory, &["--request", &requests[1]]), Some(0), "nothing is asked of the memory");
    assert_eq!(code(&with_memory, &["--request", &requests[1], "--remember"]), Some(1));
    assert_eq!(code(&with_memory, &["--remember"]), Some(2), "for no request");
    assert_eq!(code(&without, &["--request", &requests[0], "--remember"]), Some(2), "in no memory");
}

/// What CommandLayer signs names no decision, so it is not remembered for one.
#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_that_is_shown_for_nothing_is_not_said_to_be_new() {
    let (sandbox, folder) = (Sandbox::start().await.expect("it starts"), tempfile::tempdir().expect("a folder"));
    let resolver = Resolver::new(&config(&sandbox, folder.path())).await.expect("its configuration is good");
    let bought = decision("one", NAME, "eip155:31337", HOME);
    for purchase in [
        PurchasePaymentDocuments::default(),
        PurchasePaymentDocuments::from_documents(Some(&bought), None, None).expect("a decision"),
    ] {
        let asked = ReceiptVerificationRequest { request: None, purchase, ..question(sample(RECEIPT), "{}") };
        assert_eq!(outcome(&resolver.verify_receipt(&asked).await), (TrustState::Trusted, vec![]));
        let found = resolver.verify_and_remember_receipt(&asked).await;
        assert_eq!(
            (outcome(&found), replay(&found)),
            ((TrustState::Indeterminate, vec!["receipt-replayed"]), StepStatus::Unknown)
        );
    }
}

/// x402's own receipts are held against the decision, and remembered for it.
#[tokio::test(flavor = "multi_thread")]
async fn x402_s_own_receipt_is_about_one_decision() {
    let (sandbox, folder) = (Sandbox::start().await.expect("it starts"), tempfile::tempdir().expect("a folder"));
    let resolver = Resolver::new(&config(&sandbox, folder.path())).await.expect("its configuration is good");
    let own = |id: &str| decision(id, NAME, "eip155:31337", HOME);
    let asked = |file: &str, decision: &[u8]| {
        let purchase = PurchasePaymentDocuments::from_documents(Some(decision), None, None).expect("a decision");
        ReceiptVerificationRequest { request: None, purchase, ..question(sample(file), "{}") }
    };
    for file in ["x402-eip712.json", "x402-jws.json"] {
        for (other, place) in [
            (decision("one", "thief.eth", "eip155:31337", HOME), "decision: /name"),
            (decision("one", NAME, "eip155:8453", HOME), "/payload/network"),
            (decision("one", NAME, "eip155:31337", "https://api.sandbox.example/analyze/v1"), "/payload/resourceUrl"),
        ] {
            let found = resolver.verify_receipt(&asked(file, &other)).await;
            assert_eq!(outcome(&found), (TrustState::Untrusted, vec!["receipt-request-mismatch"]), "{file}: {place}");
            assert_eq!(found.reasons[0].place.as_deref(), Some(place), "{file}");
        }
        let remember = async |id| resolver.verify_and_remember_receipt(&asked(file, &own(id))).await;
        assert_eq!(outcome(&remember("one").await), (TrustState::Trusted, vec![]), "{file}");
        assert_eq!(outcome(&remember("one").await), (TrustState::Trusted, vec![]), "{file}");
        assert_eq!(outcome(&remember("two").await), (TrustState::Untrusted, vec!["receipt-replayed"]), "{file}");
        let mut restated: Value = serde_json::from_slice(&own("one")).expect("JSON");
        let spaced = serde_json::to_vec_pretty(&restated).expect("JSON");
        restated["summary"] = "another decision with the same id".into();
        for (document, state) in
            [(spaced, TrustState::Trusted), (restated.to_string().into_bytes(), TrustState::Untrusted)]
        {
            let found = resolver.verify_and_remember_receipt(&asked(file, &document)).await;
            assert_eq!(found.state, state, "{file}: {found:#?}");
        }
    }
    let denied = json!({"schema": "clresolve.decision/1", "id": "x", "name": NAME, "verb": "summarize", "entries": [],
        "abort": true});
    assert!(StoredDecision::from_bytes(denied.to_string().as_bytes()).is_err());
}

/// Two decisions may state one id: what binds is the document.
#[tokio::test(flavor = "multi_thread")]
async fn a_verification_names_the_decision_that_it_was_judged_by() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&sandbox.config()).await.expect("its configuration is good");
    let verified = async |decision: Option<&Value>| {
        let document = decision.map(|decision| decision.to_string().into_bytes());
        let purchase = PurchasePaymentDocuments::from_documents(document.as_deref(), None, None).expect("a decision");
        let asked = ReceiptVerificationRequest { purchase, ..question(sample(RECEIPT), &request("")) };
        resolver.verify_receipt(&asked).await
    };
    let own: Value = serde_json::from_slice(&decision("one", NAME, "eip155:31337", HOME)).expect("JSON");
    let mut dearer = own.clone();
    dearer["price"]["amount"] = "999999".into();
    let (one, other, none) = (verified(Some(&own)).await, verified(Some(&dearer)).await, verified(None).await);
    assert_eq!((one.state, other.state, none.state), (TrustState::Trusted, TrustState::Trusted, TrustState::Trusted));
    assert_eq!(one.decision, Some(canonical_digest(&own)));
    assert_eq!(other.decision, Some(canonical_digest(&dearer)));
    assert_eq!(none.decision, None);
    assert!(one.conclusion != other.conclusion && one.conclusion != none.conclusion);
    let document = one.to_value();
    assert!(schema().is_valid(&document), "{document:#}");
}
