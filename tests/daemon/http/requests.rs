//! Requests over HTTP: the same as the library's, judged by the bytes that stand in the body.

use clresolve_resolver::sandbox::Sandbox;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Daemon, HttpResponse, answer};

const ROUTE: &str = "/v1/requests/check";

async fn checked(daemon: &Daemon, body: String) -> HttpResponse {
    answer(daemon.request(Method::POST, ROUTE).header("content-type", "application/json").body(body)).await
}

fn question(request: &str) -> String {
    format!(r#"{{"name":"summarizeagent.eth","verb":"summarize","request":{request}}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_judged_as_in_the_library() {
    let daemon = Daemon::start(|_| {}).await;
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/request.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let good = Sandbox::sample_request().1;
    let twice = good.replacen("\"actor\"", "\"actor\": \"a\", \"actor\"", 1);
    let cases = [(good.to_owned(), "trusted", json!([])), (twice, "untrusted", json!(["request-duplicate-key"]))];
    for (request, state, codes) in cases {
        let answer = checked(&daemon, question(&request)).await;
        assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"));
        let found = answer.json();
        assert_eq!((&found["state"], &found["codes"]), (&json!(state), &codes), "{found:#}");
        assert!(schema.is_valid(&found), "{found:#}");
        if state == "untrusted" {
            assert_eq!((&found["findings"][0]["line"], &found["findings"][0]["column"]), (&json!(7), &json!(17)));
        }
    }
}

/// The verdict is known, and judging goes on costing.
#[tokio::test(flavor = "multi_thread")]
async fn judging_a_request_of_a_known_agent_counts_as_a_run() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 2).await;
    assert_eq!(checked(&daemon, question("{}")).await.status, 200, "a run for the verdict and one for the request");
    checked(&daemon, question("{}")).await.is_problem(429, "client-over-quota");
    assert_eq!(daemon.get("/v1/verdicts/summarizeagent.eth").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_question_about_a_request_gets_a_problem() {
    let daemon = Daemon::start(|_| {}).await;
    for body in ["", "[]", r#"{"name":"a.eth","verb":"sum"}"#, r#"{"name":"a.eth","request":{}}"#] {
        checked(&daemon, body.to_owned()).await.is_problem(400, "request-malformed");
    }
    checked(&daemon, question(&format!("\"{}\"", "x".repeat(300 * 1024)))).await.is_problem(413, "body-too-large");
}
