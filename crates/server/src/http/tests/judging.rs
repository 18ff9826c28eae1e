//! Tests of the routes that judge documents: which work runs on the pool, and how much of it one client may use.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT, CONTENT_TYPE, HOST};
use axum::http::{Method, Request, StatusCode};
use clresolve_resolver::cpu_pool::{CpuPool, MAX_THREADS, OccupiedCpuPool};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;

use crate::http::activity::{ConnectionActivity, TrackedStream};
use crate::http::api_kind::ListenerApiScope;
use crate::http::build_service;
use crate::http::client_limits::ClientIdentity;
use crate::http::in_force::CurrentService;
use crate::http::state::AppState;

const NAME: &str = "summarizeagent.eth";

struct Daemon {
    in_force: Arc<CurrentService>,
    resolver: Resolver,
    _sandbox: Sandbox,
}

/// A request that can be sent repeatedly.
#[derive(Clone)]
struct Sent {
    method: Method,
    path: String,
    body: String,
}

impl Sent {
    fn get(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), body: String::new() }
    }

    fn post(path: &str, body: &Value) -> Self {
        Self { method: Method::POST, path: path.to_owned(), body: body.to_string() }
    }

    fn tool(name: &str, arguments: &Value) -> Self {
        let params = json!({"name": name, "arguments": arguments});
        Self::post("/mcp", &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    }
}

impl Daemon {
    async fn start() -> Self {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = sandbox.config();
        config.timeout = Duration::from_secs(120);
        config.gate.deadline = Duration::from_secs(100);
        config.http.discover = true;
        config.mcp.hosts = vec!["localhost".to_owned()];
        let resolver = Resolver::new(&config).await.expect("a resolver");
        let state = AppState::new(resolver.clone(), &config, None, None);
        // A reading at a new head may start a resolution, whose jobs these tests would mistake for theirs.
        state.following.stop();
        let daemon =
            Self { in_force: Arc::new(CurrentService::new(build_service(state))), resolver, _sandbox: sandbox };
        daemon.resolver.resolve(NAME).await;
        daemon
    }

    fn pool(&self) -> &Arc<CpuPool> {
        self.resolver.cpu_pool()
    }

    /// Sends a request from the client at 192.0.2.`last`.
    fn ask(&self, last: u8, Sent { method, path, body }: Sent) -> JoinHandle<(StatusCode, Value)> {
        let client = ClientIdentity::from(IpAddr::from([192, 0, 2, last]));
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        let request = Request::builder().method(method).uri(path).header(HOST, "localhost");
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream").body(Body::from(body));
        let (in_force, request) = (Arc::clone(&self.in_force), request.expect("a request"));
        tokio::spawn(async move {
            let activity = Arc::new(ConnectionActivity::new());
            // The gate refuses a request whose head was not scanned.
            TrackedStream::new(head.as_bytes(), Arc::clone(&activity))
                .read_to_end(&mut Vec::new())
                .await
                .expect("a head");
            let response =
                crate::http::request::answer_request(&in_force, ListenerApiScope::All, client, &activity, request)
                    .await;
            let (status, body) = (response.status(), to_bytes(response.into_body(), 1 << 20).await.expect("a body"));
            (status, serde_json::from_slice(&body).unwrap_or_default())
        })
    }

    async fn answered(&self, asked: Sent) {
        let path = asked.path.clone();
        let (status, answer) = self.ask(1, asked).await.expect("it is answered");
        assert_eq!(status, StatusCode::OK, "{path}: {answer:#}");
        assert!(answer["result"]["isError"] != true, "{path}: {answer:#}");
    }
}

fn lint() -> Sent {
    Sent::post("/v1/lint", &clresolve_verdict::sample::good_card())
}

/// A question for each route that judges documents, with the number of pool jobs for its response once all lookups are
/// cached.
fn questions() -> Vec<(&'static str, Sent, usize)> {
    let text = Sandbox::sample_request().1;
    let message: Value = serde_json::from_str(text).expect("JSON");
    let request = json!({"name": NAME, "verb": "summarize", "request": message});
    let receipt = json!({"name": NAME, "receipt": {"signer": NAME}, "request": message});
    let terms = json!({"x402Version": 2, "accepts": []});
    let decision = json!({"name": NAME, "verb": "summarize", "paymentRequired": terms});
    let url = "https://api.sandbox.example/summarize/v1";
    let price = json!({
        "scheme": "exact", "network": "eip155:31337", "amount": "10000", "maxTimeoutSeconds": 60,
        "payTo": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "asset": "0x00000000000000000000000000000000d0114400",
        "extra": {"name": "Sandbox Dollar", "version": "1"},
    });
    let priced = json!({"x402Version": 2, "resource": {"url": url}, "accepts": [price]});
    let check = json!({"name": NAME, "verb": "summarize", "paymentRequired": priced, "url": url});
    let receipt_texts = json!({"name": NAME, "receipt": "{}", "request": text});
    vec![
        ("lint", lint(), 1),
        // One document, and the response.
        ("discover", Sent::get("/v1/discover?url=https%3A%2F%2Fa2a.sandbox.example"), 2),
        ("agents", Sent::get("/v1/agents/summarizeagent.eth/.well-known/agent-card.json"), 1),
        // Parsing, judging and serializing.
        ("requests", Sent::post("/v1/requests/check", &request), 3),
        ("receipts", Sent::post("/v1/receipts/verify", &receipt), 3),
        // Parsing and judging. The response is short enough to serialize elsewhere.
        ("decisions", Sent::post("/v1/decisions", &decision), 2),
        // Parsing the request and the terms, and judging.
        ("checks", Sent::post("/v1/checks", &check), 3),
        // The transport parses the message a second time, and serializes the response.
        ("check_request", Sent::tool("check_request", &json!({"name": NAME, "verb": "summarize", "request": text})), 5),
        ("check_payment", Sent::tool("check_payment", &check), 7),
        ("verify_receipt", Sent::tool("verify_receipt", &receipt_texts), 6),
    ]
}

#[tokio::test]
async fn each_step_of_judging_is_a_job() {
    let daemon = Daemon::start().await;
    for (what, asked, jobs) in questions() {
        let changed = |number: usize| match what {
            // Otherwise the decision from the last second would be reused.
            "decisions" => {
                Sent { body: asked.body.replacen("[]", &format!("[{}]", " ".repeat(number)), 1), ..asked.clone() }
            }
            _ => asked.clone(),
        };
        daemon.answered(changed(1)).await;
        let before = daemon.pool().started_count();
        daemon.answered(changed(2)).await;
        assert_eq!(daemon.pool().started_count() - before, jobs, "{what}");
    }
}

/// While every pool thread is busy, judging waits. The request threads and the gate do not.
#[tokio::test]
async fn messages_are_judged_apart_from_those_who_answer() {
    let daemon = Daemon::start().await;
    for (what, asked, _) in questions() {
        let busy = OccupiedCpuPool::occupy_all(daemon.pool());
        let answer = daemon.ask(1, asked);
        while !OccupiedCpuPool::is_waited_for(daemon.pool()) {
            assert!(!answer.is_finished(), "{what}: it was judged on the thread that answers");
            tokio::task::yield_now().await;
        }
        for path in ["/v1/verdicts/summarizeagent.eth", "/v1/gate/summarizeagent.eth/summarize"] {
            let (status, _) = daemon.ask(2, Sent::get(path)).await.expect("it is answered");
            assert_eq!((status, answer.is_finished()), (StatusCode::OK, false), "{what}: {path}");
        }
        busy.release().await;
        assert_eq!(answer.await.expect("it ends").0, StatusCode::OK, "{what}");
    }
}

async fn wait_for_queue(pool: &CpuPool, jobs: usize) {
    while pool.queued_count() != jobs {
        tokio::task::yield_now().await;
    }
}

/// Many documents of different clients arrive at once, each of unknown duration. The gate does not wait for them, even
/// for a name that one of those clients requested first. Each step of a decision waits only for the document in
/// progress.
#[tokio::test(flavor = "multi_thread")]
async fn dear_documents_hold_up_neither_the_gate_nor_decisions() {
    const DOCUMENTS: usize = 32;
    let daemon = Daemon::start().await;
    let mut dear = OccupiedCpuPool::occupy_with_documents(daemon.pool(), DOCUMENTS);
    OccupiedCpuPool::wait_for_jobs(daemon.pool(), DOCUMENTS).await;
    let threads = daemon.pool().thread_count();
    wait_for_queue(daemon.pool(), DOCUMENTS - threads).await;
    for path in ["/v1/gate/checkoutagent.eth", "/v1/gate/raw-cid.eth"] {
        let (status, _) = daemon.ask(9, Sent::get(path)).await.expect("it is answered");
        assert_eq!(status, StatusCode::OK, "{path}");
    }
    let first = daemon.ask(1, Sent::get("/v1/verdicts/file-cid.eth"));
    while daemon.pool().queued_count() == DOCUMENTS - threads {
        tokio::task::yield_now().await;
    }
    let (status, _) = daemon.ask(9, Sent::get("/v1/gate/file-cid.eth")).await.expect("it is answered");
    assert_eq!(status, StatusCode::OK, "a document's client asked first");
    assert_eq!(first.await.expect("it is answered").0, StatusCode::OK);

    let terms = json!({"x402Version": 2, "accepts": []});
    let question = json!({"name": NAME, "verb": "summarize", "paymentRequired": terms});
    let deciding = daemon.ask(9, Sent::post("/v1/decisions", &question));
    while !deciding.is_finished() {
        dear.release_one_if_waited_for(daemon.pool());
        tokio::task::yield_now().await;
    }
    assert_eq!(deciding.await.expect("it is answered").0, StatusCode::OK);
    dear.release().await;
}

/// Each step, including the parsing of the message, waits only for the document in progress.
#[tokio::test(flavor = "multi_thread")]
async fn decision_over_mcp_comes_before_documents() {
    const DOCUMENTS: usize = 32;
    let daemon = Daemon::start().await;
    let mut dear = OccupiedCpuPool::occupy_with_documents(daemon.pool(), DOCUMENTS);
    OccupiedCpuPool::wait_for_jobs(daemon.pool(), DOCUMENTS).await;
    let threads = daemon.pool().thread_count();
    wait_for_queue(daemon.pool(), DOCUMENTS - threads).await;
    let terms = json!({"x402Version": 2, "accepts": []});
    let question = json!({"name": NAME, "verb": "summarize", "paymentRequired": terms});
    let deciding = daemon.ask(9, Sent::tool("check_payment", &question));
    while !deciding.is_finished() {
        dear.release_one_if_waited_for(daemon.pool());
        tokio::task::yield_now().await;
    }
    assert_eq!(deciding.await.expect("it is answered").0, StatusCode::OK);
    dear.release().await;
}

/// Eighty questions of one client occupy that client's share of slots. Other clients still get slots for any question.
#[tokio::test]
async fn one_client_leaves_others_their_places() {
    let daemon = Daemon::start().await;
    for (at, (what, asked, _)) in questions().into_iter().enumerate() {
        let busy = OccupiedCpuPool::occupy_all(daemon.pool());
        let most = MAX_THREADS + daemon.pool().permits_per_client();
        let flood: Vec<_> = (0..80).map(|_| daemon.ask(1, asked.clone())).collect();
        while daemon.pool().unfinished_job_count() < most {
            tokio::task::yield_now().await;
        }
        // A verdict needs a resolution, as the gate does.
        let of_others =
            [lint(), Sent::get(&format!("/v1/verdicts/n{at}.wildcard.eth"))].map(|asked| daemon.ask(2, asked));
        while daemon.pool().unfinished_job_count() < most + of_others.len() {
            assert!(
                daemon.pool().unfinished_job_count() <= most + daemon.pool().permits_per_client(),
                "{what} takes more than its places"
            );
            assert!(!of_others.iter().any(JoinHandle::is_finished), "{what} leaves others no place");
            tokio::task::yield_now().await;
        }
        busy.release().await;
        for answer in of_others {
            assert_eq!(answer.await.expect("it ends").0, StatusCode::OK, "{what}");
        }
        for answer in flood {
            let status = answer.await.expect("it ends").0;
            assert!([StatusCode::OK, StatusCode::TOO_MANY_REQUESTS].contains(&status), "{what}: {status}");
        }
    }
}
