//! Checks of sellers without an Agent-Card: the same decision from library, program and daemon.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_payment::check::{SellerCheckDocument, SellerCheckRequest};
use clresolve_payment::request::PaymentDemand;
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::Sandbox;
use clresolve_sandbox::sellers::ExpectedSellerCheck;
use clresolve_server::http::HttpDaemon;
use futures_util::StreamExt as _;
use futures_util::stream;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Daemon, HttpResponse, answer, patient, program, reload};

/// A seller that the sandbox's configuration pins, and a seller that nobody names.
pub(super) const PINNED: &str = "https://honest-pinned.sandbox.example/weather";
const NOBODY: &str = "https://nobody.sandbox.example/weather";

/// How long the client waits for its check before it hangs up.
const BEGUN: Duration = Duration::from_secs(2);

/// How many programs run at once.
const AT_ONCE: usize = 4;

/// A resolver of a sandbox of its own.
async fn resolver() -> (Resolver, Sandbox) {
    let sandbox = Sandbox::start().await.expect("it starts");
    let resolver = Resolver::new(&patient(&sandbox)).await.expect("its configuration is good");
    (resolver, sandbox)
}

/// The reply of the seller at `url`, as a question of a caller who names `name`.
pub(super) async fn asked(resolver: &Resolver, url: &str, name: Option<&str>) -> SellerCheckRequest {
    let asked = resolver.request_seller_terms(&url.parse().expect("a seller's URL"), None).await;
    SellerCheckRequest { name: name.map(str::to_owned), ..asked }
}

/// The same question in the form of the route.
pub(super) fn as_json(request: &SellerCheckRequest) -> Value {
    let PaymentDemand::Reply(reply) = &request.demand else { panic!("the seller answers: {request:?}") };
    json!({
        "name": request.name,
        "url": request.asked,
        "response": {
            "status": reply.status,
            "url": request.url,
            "headers": reply.headers,
            "body_base64": STANDARD.encode(&reply.body),
        },
    })
}

pub(super) async fn post(daemon: &Daemon, body: &Value) -> HttpResponse {
    let request = daemon.request(Method::POST, "/v1/checks").header("content-type", "application/json");
    answer(request.body(body.to_string())).await
}

/// The answer, which must match its schema.
#[track_caller]
fn check(answer: &HttpResponse) -> Value {
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    assert_eq!((answer.header("content-type"), answer.header("cache-control")), ("application/json", "no-store"));
    matching(answer.json())
}

#[track_caller]
fn matching(check: Value) -> Value {
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/check.schema.json")).expect("JSON");
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<_> = schema.iter_errors(&check).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}: {check:#}");
    check
}

/// What is wrong with the decision and the codes about a seller.
#[track_caller]
fn difference(by: &str, seller: &ExpectedSellerCheck, check: &Value) -> Option<String> {
    let mut codes: Vec<&str> = check["codes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    codes.sort_unstable();
    let kinds: Vec<_> = check["evidence"].as_array().into_iter().flatten().map(|row| &row["kind"]).collect();
    assert_eq!(kinds, ["card", "name", "erc8004", "offer", "history"], "{by}, {}: {check:#}", seller.url);
    assert_eq!(check["abort"], check["decision"] != "allow", "{by}, {}: {check:#}", seller.url);
    let is_expected = check["decision"] == seller.decision && codes == seller.codes;
    let ExpectedSellerCheck { url, decision, codes: expected, .. } = seller;
    (!is_expected).then(|| format!("{by}, {url}: {} {codes:?} instead of {decision} {expected:?}", check["decision"]))
}

/// What the program prints about a seller of its own sandbox, and its exit status.
fn printed(seller: &ExpectedSellerCheck) -> (Option<i32>, Value) {
    let named = seller.name.iter().flat_map(|name| ["--name", name]);
    let arguments: Vec<&str> = ["check", "--sandbox", &seller.url, "--json"].into_iter().chain(named).collect();
    let output = program(&arguments).output().expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let check = serde_json::from_slice(&output.stdout).unwrap_or_else(|why| panic!("{}: {why}: {error}", seller.url));
    (output.status.code(), check)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_seller_gets_its_decision_from_library_daemon_and_program() {
    let (resolver, _sandbox) = resolver().await;
    let daemon = Daemon::start(|_| {}).await;
    let sellers = Sandbox::expected_seller_checks();
    assert!(sellers.len() > 40, "{}", sellers.len());
    let mut differences = Vec::new();
    for seller in &sellers {
        let request = asked(&resolver, &seller.url, seller.name.as_deref()).await;
        let found: SellerCheckDocument = resolver.check_seller(&request).await;
        differences.extend(difference("library", seller, &matching(serde_json::to_value(&found).expect("JSON"))));
        differences.extend(difference("daemon", seller, &check(&post(&daemon, &as_json(&request)).await)));
    }
    let programs = sellers.iter().cloned().map(|seller| async move {
        let run = move || (printed(&seller), seller);
        tokio::task::spawn_blocking(run).await.expect("it ends")
    });
    let mut programs = stream::iter(programs).buffer_unordered(AT_ONCE);
    while let Some(((status, found), seller)) = programs.next().await {
        let exit = ["allow", "deny", "", "undecided"].iter().position(|decision| found["decision"] == *decision);
        assert_eq!(status.and_then(|status| usize::try_from(status).ok()), exit, "{}", seller.url);
        differences.extend(difference("program", &seller, &matching(found)));
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

/// The same question may come before the payment is signed, and with what was signed.
#[tokio::test(flavor = "multi_thread")]
async fn check_takes_a_signed_payment_too() {
    let (resolver, _sandbox) = resolver().await;
    let daemon = Daemon::start(|_| {}).await;
    let mut question = as_json(&asked(&resolver, PINNED, None).await);
    let unsigned = check(&post(&daemon, &question).await);
    assert_eq!((&unsigned["decision"], &unsigned["identity"]["named_by"]), (&json!("allow"), &json!("configuration")));
    question["header"] = json!("e30=");
    let signed = check(&post(&daemon, &question).await);
    assert_eq!(signed["abort"], true, "{signed:#}");
    assert!(signed["codes"].to_string().contains("payment-signature-mismatch"), "{signed:#}");
    question["header"] = Value::Null;
    question["url"] = json!("https://www.honest-pinned.sandbox.example/weather");
    let redirected = check(&post(&daemon, &question).await);
    assert!(redirected["codes"].to_string().contains("origin-mismatch"), "{redirected:#}");
    let metrics = String::from_utf8(daemon.get("/metrics").await.body).expect("text");
    assert!(metrics.contains("route=\"check\""), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_check_is_a_problem_and_malformed_terms_are_not() {
    let daemon = Daemon::start(|_| {}).await;
    for request in [
        json!({}),
        json!({"name": "a.eth"}),
        json!({"agent": "any", "paymentRequired": {}}),
        json!({"response": {"status": 402}}),
        json!({"paymentRequired": {}, "limits": {"max": "1"}}),
        json!({"name": 5, "paymentRequired": {}}),
    ] {
        post(&daemon, &request).await.is_problem(400, "request-malformed");
    }
    let long = json!({"paymentRequired": {"a": "a".repeat(600_000)}});
    post(&daemon, &long).await.is_problem(413, "body-too-large");
    let plain = daemon.request(Method::POST, "/v1/checks").header("content-type", "text/plain").body("{}");
    answer(plain).await.is_problem(415, "media-type-unsupported");
    for terms in [json!({}), json!({"x402Version": 2, "accepts": "\u{202e}\u{1b}[2J"})] {
        let got = post(&daemon, &json!({"paymentRequired": terms, "url": NOBODY})).await;
        let check = check(&got);
        assert!(check["abort"] == true && check["codes"].to_string().contains("payment-terms-malformed"), "{check:#}");
        let raw = String::from_utf8(got.body).expect("UTF-8");
        assert!(!raw.contains(['\u{202e}', '\u{1b}']), "{raw:?}");
    }
}

/// A check may read names and registrations, so it takes one of the client's resolutions.
#[tokio::test(flavor = "multi_thread")]
async fn check_counts_as_a_resolution() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 1).await;
    let question = json!({"paymentRequired": {}, "url": NOBODY});
    check(&post(&daemon, &question).await);
    post(&daemon, &question).await.is_problem(429, "client-over-quota");
}

/// A check keeps its permit (`http.cold_runs`) until its result is stored, even if its client hangs up.
#[tokio::test(flavor = "multi_thread")]
async fn check_is_stored_even_if_its_client_hangs_up() {
    let sandbox = Sandbox::start().await.expect("it starts");
    let mut config = patient(&sandbox);
    config.http.cold_runs = 1;
    let seller = Resolver::new(&config).await.expect("its configuration is good");
    let question = as_json(&asked(&seller, PINNED, None).await);
    let (node, answers) = reload::held_node(&mut config).await;
    let daemon = Daemon::run(HttpDaemon::bind(&config).await.expect("the daemon starts"), sandbox);
    // The client hangs up before the node has answered.
    assert!(tokio::time::timeout(BEGUN, post(&daemon, &question)).await.is_err(), "the check waits");
    let (held, _) = node.accept().await.expect("the check asks the node");
    let next = async {
        loop {
            let answer = post(&daemon, &question).await;
            if answer.status != 503 {
                break check(&answer);
            }
        }
    };
    let next = tokio::select! {
        next = next => next,
        () = reload::pass_on(&node, held, answers) => unreachable!("it never returns"),
    };
    let history = next["evidence"].as_array().and_then(|rows| rows.last()).expect("a row for each kind");
    assert_eq!(history["state"], "claimed", "{next:#}");
}
