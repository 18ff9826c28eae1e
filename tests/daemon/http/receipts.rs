//! Receipts over HTTP: the same as the library's, judged by the bytes that stand in the body.

use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_jose::{Ed25519KeySet, Ed25519SigningKey};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_resolver::sign::{ExpectedReceiptResult, save_signing_key, verify_signed_receipt_result};
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Daemon, GOOD, HttpResponse, answer};

const ROUTE: &str = "/v1/receipts/verify";

const NO_PAYMENT: &str = r#"{"name":"a.eth","receipt":{},"payment":"e30="}"#;

async fn verified(daemon: &Daemon, body: String) -> HttpResponse {
    answer(daemon.request(Method::POST, ROUTE).header("content-type", "application/json").body(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_receipt_is_judged_as_in_the_library() {
    let daemon = Daemon::start(|_| {}).await;
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/receipt.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let (_, request) = Sandbox::sample_request();
    for sample in Sandbox::sample_receipts() {
        let body = format!(r#"{{"name":"{}","receipt":{},"request":{request}}}"#, sample.name, sample.text);
        let answer = verified(&daemon, body).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"), "{}", sample.file);
        let found = answer.json();
        let codes: Vec<Value> = sample.codes.iter().map(|code| code.slug().into()).collect();
        assert_eq!((&found["state"], &found["codes"]), (&sample.state.as_str().into(), &codes.into()), "{found:#}");
        assert!(schema.is_valid(&found), "{}", sample.file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_is_judged_as_in_the_library() {
    let daemon = Daemon::start(|_| {}).await;
    let receipt =
        Sandbox::sample_receipts().iter().find(|sample| sample.file == "agent-sdk.json").expect("it is there").text;
    let (_, payment) = Sandbox::sample_payment();
    for reply in Sandbox::sample_settlement_headers() {
        let (name, settlement) = ("summarizeagent.eth", &reply.header);
        let body =
            format!(r#"{{"name":"{name}","receipt":{receipt},"payment":"{payment}","settlement":"{settlement}"}}"#);
        let found = verified(&daemon, body).await.json();
        let codes: Vec<Value> = reply.codes.iter().map(|code| code.slug().into()).collect();
        assert_eq!((&found["state"], &found["codes"]), (&reply.state.as_str().into(), &codes.into()), "{found:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_question_gets_a_problem() {
    let daemon = Daemon::start(|_| {}).await;
    for body in ["", "[]", r#"{"name":"a.eth"}"#, r#"{"name":"a.eth","receipt":{},"request":1}"#, NO_PAYMENT] {
        verified(&daemon, body.to_owned()).await.is_problem(400, "request-malformed");
    }
    let long = format!(r#"{{"name":"a.eth","receipt":"{}"}}"#, "x".repeat(700 * 1024));
    verified(&daemon, long).await.is_problem(413, "body-too-large");
    let plain = daemon.request(Method::POST, ROUTE).header("content-type", "text/plain").body("{}");
    answer(plain).await.is_problem(415, "media-type-unsupported");
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_are_remembered_where_the_configuration_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory");
    let daemon = Daemon::start(|config| {
        config.memory.path = Some(path);
        config.receipts.remember = true;
    })
    .await;
    let receipt =
        Sandbox::sample_receipts().iter().find(|sample| sample.file == "runtime.json").expect("a receipt").text;
    let shown_for = async |note: &str| {
        let mut request: Value = serde_json::from_str(Sandbox::sample_request().1).expect("JSON");
        request["note"] = note.into();
        let body = format!(r#"{{"name":"summarizeagent.eth","receipt":{receipt},"request":{request}}}"#);
        verified(&daemon, body).await.json()["codes"].clone()
    };
    assert_eq!(shown_for("one").await, json!([]));
    assert_eq!(shown_for("one").await, json!([]));
    assert_eq!(shown_for("two").await, json!(["receipt-replayed"]));
    let for_nothing = verified(&daemon, format!(r#"{{"name":"summarizeagent.eth","receipt":{receipt}}}"#)).await.json();
    assert_eq!((&for_nothing["state"], &for_nothing["codes"]), (&json!("indeterminate"), &json!(["receipt-replayed"])));
}

/// The verdict is known, and judging goes on costing.
#[tokio::test(flavor = "multi_thread")]
async fn judging_a_receipt_of_a_known_agent_counts_as_a_run() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 2).await;
    let body = r#"{"name":"summarizeagent.eth","receipt":{}}"#;
    assert_eq!(verified(&daemon, body.to_owned()).await.status, 200, "a run for the verdict and one for the receipt");
    verified(&daemon, body.to_owned()).await.is_problem(429, "client-over-quota");
    assert_eq!(daemon.get("/v1/verdicts/summarizeagent.eth").await.status, 200);
}

/// The sandbox signs nothing: who accepts nothing else gets nothing, as for a decision.
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_a_key_signs_nothing_that_it_says_of_a_receipt() {
    let daemon = Daemon::start(|_| {}).await;
    let body = r#"{"name":"summarizeagent.eth","receipt":{}}"#;
    let asked = async |accept: &str| {
        let request = daemon.request(Method::POST, ROUTE).header("content-type", "application/json");
        answer(request.header("accept", accept).body(body)).await
    };
    asked("application/jose").await.is_problem(406, "not-acceptable");
    let plain = asked("application/jose, application/json;q=0.5").await;
    assert_eq!((plain.status, plain.header("vary")), (200, "accept"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_with_a_key_signs_what_it_says_of_a_receipt() {
    const ISSUER: &str = "https://clresolve.example";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("k.pem");
    save_signing_key(&Ed25519SigningKey::generate().expect("a key"), &path).expect("written");
    let daemon = Daemon::start(|config| {
        // Another world than the sandbox's, which is never signed for.
        config.chain.world = "lab".to_owned();
        config.sign.key = Some(path);
        config.sign.issuer = Some(ISSUER.to_owned());
    })
    .await;
    let keys = Ed25519KeySet::from_jwks(&daemon.get("/.well-known/jwks.json").await.body).expect("a key set");
    let request = Sandbox::sample_request().1.trim();
    for file in ["agent-sdk.json", "receipt-hash-mismatch.json"] {
        let sample = Sandbox::sample_receipts().iter().find(|sample| sample.file == file).expect("a receipt");
        let receipt = sample.text.trim();
        let body = format!(r#"{{"name":"{GOOD}","receipt":{receipt},"request":{request}}}"#);
        let asked = daemon.request(Method::POST, ROUTE).header("content-type", "application/json");
        let signed = answer(asked.header("accept", "application/jose").body(body)).await;
        assert_eq!((signed.status, signed.header("content-type")), (200, "application/jose"), "{file}");
        assert_eq!((signed.header("cache-control"), signed.header("vary")), ("no-store", "accept"));
        let expected = ExpectedReceiptResult {
            name: EnsName::parse(GOOD).expect("a name"),
            receipt: Digest::compute(receipt.as_bytes()),
            request: Some(Digest::compute(request.as_bytes())),
            decision: None,
            requires_settlement: false,
            chain: "eip155:31337".to_owned(),
            world: "lab".to_owned(),
            proof: None,
            issuer: Some(ISSUER.to_owned()),
        };
        let jws = std::str::from_utf8(&signed.body).expect("ASCII");
        let found = verify_signed_receipt_result(jws, &keys, &expected, Timestamp::now()).expect("it holds");
        let codes: Vec<Value> = sample.codes.iter().map(|code| code.slug().into()).collect();
        assert_eq!((found.state, &found.document["codes"]), (sample.state, &codes.into()), "{file}");
    }
}
