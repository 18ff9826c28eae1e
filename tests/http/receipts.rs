//! Receipts over HTTP: the same as the library's, judged by the bytes that stand in the body.

use clresolve::sandbox::Sandbox;
use reqwest::Method;
use serde_json::Value;

use super::{Answer, Daemon, answer};

const ROUTE: &str = "/v1/receipts/verify";

async fn verified(daemon: &Daemon, body: String) -> Answer {
    answer(daemon.request(Method::POST, ROUTE).header("content-type", "application/json").body(body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_receipt_is_judged_as_in_the_library() {
    let daemon = Daemon::start(|_| {}).await;
    let schema: Value = serde_json::from_str(include_str!("../../schemas/receipt.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let (_, request) = Sandbox::request();
    for sample in Sandbox::receipts() {
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
async fn what_is_no_question_gets_a_problem() {
    let daemon = Daemon::start(|_| {}).await;
    for body in ["", "[]", r#"{"name":"a.eth"}"#, r#"{"name":"a.eth","receipt":{},"request":1}"#] {
        verified(&daemon, body.to_owned()).await.is_problem(400, "request-malformed");
    }
    let long = format!(r#"{{"name":"a.eth","receipt":"{}"}}"#, "x".repeat(600 * 1024));
    verified(&daemon, long).await.is_problem(413, "body-too-large");
    let plain = daemon.request(Method::POST, ROUTE).header("content-type", "text/plain").body("{}");
    answer(plain).await.is_problem(415, "media-type-unsupported");
}
