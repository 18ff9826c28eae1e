//! The daemon on real sockets, with the sandbox as its network.

#[cfg(unix)]
#[path = "http/admin.rs"]
mod admin;
#[path = "http/checks.rs"]
mod checks;
#[path = "http/consensus.rs"]
mod consensus;
#[path = "http/decisions.rs"]
mod decisions;
#[path = "http/events.rs"]
mod events;
#[path = "http/explorer.rs"]
mod explorer;
#[path = "http/freshness.rs"]
mod freshness;
#[path = "http/mcp.rs"]
mod mcp;
#[path = "http/openapi.rs"]
mod openapi;
#[cfg(target_os = "linux")]
#[path = "http/overload.rs"]
mod overload;
#[path = "http/receipts.rs"]
mod receipts;
#[cfg(unix)]
#[path = "http/reload.rs"]
mod reload;
#[path = "http/requests.rs"]
mod requests;
#[cfg(unix)]
#[path = "http/service.rs"]
mod service;
#[path = "http/stalled.rs"]
mod stalled;
#[path = "http/traces.rs"]
mod traces;
#[cfg(unix)]
#[path = "http/unix.rs"]
mod unix;

use std::any::Any;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use clresolve_bundle::signed::{ExpectedVerdict, verify_signed_verdict};
use clresolve_chain::EnsReader;
use clresolve_core::cause::ResolverContractError;
use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{BlockSelector, ChainBlock, ChainError, ClOwnerReading, NameReading};
use clresolve_core::reason::RefusalCode;
use clresolve_core::records::TextRecordKey;
use clresolve_core::state::TrustState;
use clresolve_ipfs::{ContentId, DagWalkBudget, UnixFsPath};
use clresolve_jose::{Ed25519KeySet, Ed25519SigningKey};
use clresolve_resolver::clock::Clock;
use clresolve_resolver::config::{Config, IpfsGateway, ProofGrade};
use clresolve_resolver::fetch::{FetchError, SourceUnavailableError};
use clresolve_resolver::resolve::{ContentFetcher, IpfsPathResult, Resolver};
use clresolve_resolver::sandbox::Sandbox;
use clresolve_server::http::{DaemonStartError, HttpDaemon};
use clresolve_verdict::evidence::{HttpsOutcome, IpfsWalkOutcome};
use clresolve_verdict::gate::GateVerbs;
use clresolve_verdict::profile::ConformanceProfiles;
use clresolve_verdict::verdict::ResolutionDepth;
use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Generous, because a busy machine is not a defect.
const PATIENCE: Duration = Duration::from_secs(120);

/// Maximum time in which the program rejects a configuration.
const START: Duration = Duration::from_secs(30);

/// A poll interval that no test reaches: the daemon asks for a new head only when a question needs one.
const NO_POLLS: Duration = Duration::from_secs(3600);

const GOOD: &str = "summarizeagent.eth";
const BAD: &str = "entry-version.eth";

/// A daemon and its network.
struct Daemon {
    authority: String,
    client: Client,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
    world: Box<dyn Any>,
}

/// A response.
struct HttpResponse {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Daemon {
    async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let sandbox = Sandbox::start().await.expect("the sandbox starts");
        let mut config = patient(&sandbox);
        change(&mut config);
        let server = HttpDaemon::bind(&config).await.expect("the daemon starts");
        Self::run(server, sandbox)
    }

    fn run(server: HttpDaemon, world: impl Any) -> Self {
        let (stop, stopped) = oneshot::channel();
        let authority = server.address().to_string();
        let ended = tokio::spawn(server.run(async { stopped.await.unwrap_or_default() }));
        let client = Client::builder().no_proxy().build().expect("a client");
        Self { authority, client, stop, ended, world: Box::new(world) }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.authority))
    }

    async fn get(&self, path: &str) -> HttpResponse {
        answer(self.request(Method::GET, path)).await
    }

    /// Waits until it has read its chain.
    async fn ready(&self) -> HttpResponse {
        loop {
            let answer = self.get("/readyz").await;
            if answer.status == 200 {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn post(&self, media: &str, body: impl Into<reqwest::Body>) -> HttpResponse {
        answer(self.request(Method::POST, "/v1/verdicts").header("content-type", media).body(body)).await
    }

    async fn raw(&self, bytes: impl AsRef<[u8]>) -> TcpStream {
        let mut stream = TcpStream::connect(&self.authority).await.expect("the daemon listens");
        stream.write_all(bytes.as_ref()).await.expect("the daemon reads");
        stream
    }
}

/// The sandbox's configuration, with a free port and limits that a busy machine does not reach.
fn patient(sandbox: &Sandbox) -> Config {
    let mut config = sandbox.config();
    config.timeout = PATIENCE;
    config.http.listen = clresolve_resolver::config::ListenAddress::loopback(0);
    config.http.cold_runs_per_minute = 100_000;
    config.gate.deadline = PATIENCE;
    config
}

async fn answer(request: RequestBuilder) -> HttpResponse {
    let response = request.send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    HttpResponse { status, headers, body: response.bytes().await.expect("a whole answer").to_vec() }
}

impl HttpResponse {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    #[track_caller]
    fn is_problem(&self, status: u16, code: &str) {
        let body = self.json();
        assert_eq!((self.status, &body["code"]), (status, &json!(code)), "{body}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(body["type"], format!("urn:clresolve:reason:{code}"));
        assert_eq!(body["status"], status);
        assert!(body["title"].as_str().is_some_and(|title| title.ends_with('.')), "{body}");
    }

    #[track_caller]
    fn is_closed_gate(&self, code: &str) {
        assert_eq!((self.status, self.header("clresolve-code")), (403, code));
        assert!(self.body.is_empty());
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).expect("UTF-8");
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }
}

/// Reads to the end of the stream or to a reset.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

fn percent_encoded(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_name_of_the_sandbox_passes_the_gate_only_if_it_is_trusted() {
    let daemon = Daemon::start(|_| {}).await;
    for expected in Sandbox::expected_verdicts() {
        let about = &expected.name;
        let report = daemon.get(&format!("/v1/verdicts/{}", percent_encoded(about))).await;
        let verdict = report.json();
        assert_eq!((report.status, &verdict["state"]), (200, &json!(expected.state)), "{about}: {verdict}");
        let gate = daemon.get(&format!("/v1/gate/{about}")).await;
        assert!(gate.body.is_empty(), "{about}");
        assert_eq!(gate.header("clresolve-state"), expected.state.as_str(), "{about}");
        assert_eq!(gate.header("cache-control"), "no-store", "{about}");
        assert_eq!(gate.header("clresolve-verdict"), verdict["id"], "{about}");
        let card = daemon.get(&format!("/v1/cards/{about}")).await;
        if expected.state == TrustState::Trusted {
            assert_eq!((gate.status, gate.headers.get("clresolve-code")), (200, None), "{about}");
            let sha256 = gate.header("clresolve-card-sha256");
            assert_eq!((card.status, Digest::compute(&card.body).to_hex().as_str()), (200, sha256), "{about}");
        } else {
            assert_eq!((gate.status, card.status), (403, 409), "{about}");
            assert!(expected.codes.iter().any(|code| code.slug() == gate.header("clresolve-code")), "{about}");
            assert_eq!(gate.headers.get("clresolve-card-sha256"), None, "{about}");
            card.is_problem(409, verdict["reasons"][0]["code"].as_str().expect("a code"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_answers_any_method_and_its_own_verbs_only() {
    let daemon = Daemon::start(|_| {}).await;
    for path in ["/v1/gate/summarizeagent.eth", "/v1/gate/summarizeagent.eth/summarize"] {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            assert_eq!(answer(daemon.request(method.clone(), path)).await.status, 200, "{method} {path}");
        }
    }
    for ignored in ["", "/", "/x402/invoke", "/a/b?profile=none&block=1&network=none"] {
        let path = format!("/v1/envoy/{GOOD}/summarize{ignored}");
        assert_eq!(daemon.get(&path).await.status, 200, "{path}");
    }
    daemon.get("/v1/gate/summarizeagent.eth/pay").await.is_closed_gate("verb-not-implemented");
    daemon.get("/v1/gate/summarizeagent.eth/Summarize").await.is_closed_gate("verb-not-implemented");
    daemon.get("/v1/envoy/summarizeagent.eth/pay/summarize").await.is_closed_gate("verb-not-implemented");
    daemon.get("/v1/gate/no%20name").await.is_closed_gate("name-invalid");
    daemon.get("/v1/gate/%ff.eth").await.is_closed_gate("name-invalid");
    daemon.get("/v1/gate/").await.is_closed_gate("name-invalid");
    for path in ["/v1/gate/summarizeagent.eth/", "/v1/gate/summarizeagent.eth/summarize/"] {
        assert_eq!(daemon.get(path).await.status, 200, "{path}");
    }
    for path in ["/v1/gate", "/v1/gate/a.eth/b/c", "/v1/envoy/a.eth"] {
        daemon.get(path).await.is_closed_gate("route-unknown");
    }
    // A client's choice of profile does not affect the gate.
    assert_eq!(daemon.get(&format!("/v1/gate/{BAD}?profile=agent-cards/1.0.0%2Breleased")).await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gate_takes_a_network_and_no_other_parameter() {
    let daemon = Daemon::start(|_| {}).await;
    let listed = daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json()["identity"]["networks"][0].clone();
    let listed = listed.as_str().expect("a good agent has a network");
    for path in [format!("/v1/gate/{GOOD}"), format!("/v1/gate/{GOOD}/summarize")] {
        assert_eq!(daemon.get(&format!("{path}?network={listed}")).await.status, 200, "{path}");
        let other = daemon.get(&format!("{path}?network=eip155:99999")).await;
        other.is_closed_gate("network-not-listed");
        assert_eq!(other.header("clresolve-state"), "trusted");
        for query in [format!("network={listed}&network={listed}"), "netwrok=x".to_owned(), "network=".to_owned()] {
            daemon.get(&format!("{path}?{query}")).await.is_closed_gate("request-malformed");
        }
    }
    daemon.get(&format!("/v1/gate/{BAD}?network={listed}")).await.is_closed_gate("entry-version-noncompliant");
}

/// The gate would read each of them as one agent, and the next hop could read another.
#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_could_be_another_agents_is_refused() {
    let daemon = Daemon::start(|_| {}).await;
    assert_eq!(daemon.get(&format!("/v1/gate/{GOOD}/summarize")).await.status, 200, "the name is known and trusted");
    for path in [
        format!("/v1/envoy/{GOOD}/summarize/../../evil.eth/pay"),
        format!("/v1/envoy/{GOOD}/summarize/..;/..;/evil.eth/pay"),
        format!("/v1/envoy/{GOOD}/summarize/%2e%2e/%2E%2E/evil.eth/pay"),
        format!("/v1/envoy/{GOOD}/summarize/%252e%252e/evil.eth/pay"),
        format!("/v1/envoy/{GOOD}/summarize/..%2f..%2fevil.eth/pay"),
        format!("/v1/envoy/{GOOD}/summarize//evil.eth/pay"),
        format!("/v1/envoy/{GOOD}/summarize\\..\\evil.eth"),
        format!("/v1/envoy/{GOOD}/summarize#/../../evil.eth/pay"),
        format!("/v1/envoy/{GOOD}//summarize"),
        format!("/v1/gate/{GOOD}/summarize//"),
        "/v1/gate/SummarizeAgent.eth".to_owned(),
        "/v1/gate/%53ummarizeagent.eth/summarize".to_owned(),
    ] {
        let said = said_to(&daemon, format!("GET {path} HTTP/1.1\r\n\r\n")).await;
        is_shut(&said, "request-ambiguous");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gates_own_listener_serves_the_gate_and_health_alone() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let mut config = patient(&sandbox);
    config.gate.listen = Some("127.0.0.1:0".parse().expect("an address"));
    (config.http.connections, config.http.connections_per_client) = (2, 2);
    let server = HttpDaemon::bind(&config).await.expect("the daemon starts");
    let gate = server.gate_address().expect("it is configured").to_string();
    let daemon = Daemon::run(server, sandbox);
    let _all = [daemon.raw("GET /livez HTTP/1.1\r\nx: ").await, daemon.raw("").await];
    let ask = async |path: &str| answer(daemon.client.get(format!("http://{gate}{path}"))).await;
    while ask("/readyz").await.status != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(ask(&format!("/v1/gate/{GOOD}")).await.status, 200);
    assert_eq!(ask(&format!("/v1/envoy/{GOOD}/summarize/x")).await.status, 200);
    assert_eq!((ask("/livez").await.status, ask("/readyz").await.status), (200, 200));
    for path in [&format!("/v1/verdicts/{GOOD}"), "/", "/v1/reasons"] {
        ask(path).await.is_closed_gate("route-unknown");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_tells_which_upstream_is_down() {
    let daemon = Daemon::start(|config| {
        // The state of an upstream is kept by its label, for all daemons of this process.
        config.chain.endpoints.iter_mut().for_each(|endpoint| endpoint.label.insert_str(0, "own-"));
        config.gateways.iter_mut().for_each(|gateway| gateway.label.insert_str(0, "own-"));
        config.beacon.endpoints.iter_mut().for_each(|endpoint| endpoint.label.insert_str(0, "own-"));
        let mut spare: clresolve_resolver::config::RpcEndpointConfig =
            "http://127.0.0.1:1".parse().expect("an endpoint");
        spare.label = "gone-node".to_owned();
        config.chain.endpoints.insert(0, spare);
        let url = "http://127.0.0.1:1".parse().expect("a URL");
        config.gateways.insert(0, IpfsGateway { label: "gone-gateway".to_owned(), url, own: false });
        config.chain.proof = Some(clresolve_resolver::config::ChainProofMode::SingleRpc);
    })
    .await;
    daemon.get(&format!("/v1/verdicts/{GOOD}")).await;
    let ready = daemon.ready().await;
    let text = String::from_utf8(ready.body).expect("UTF-8");
    assert_eq!((ready.status, text.as_str()), (200, "ready\ndown: gateway gone-gateway\ndown: rpc gone-node\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_cannot_read_its_chain_is_not_ready() {
    let daemon = Daemon::start(|config| {
        config.chain.endpoints = vec!["http://127.0.0.1:1".parse().expect("an endpoint")];
        config.chain.proof = Some(clresolve_resolver::config::ChainProofMode::SingleRpc);
    })
    .await;
    let cause = "no RPC endpoint answered: rpc-1: no connection";
    loop {
        let answer = daemon.get("/readyz").await;
        answer.is_problem(503, "not-ready");
        if answer.json()["detail"] == cause {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(daemon.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_strangers_word_does_not_open_the_gate() {
    let daemon = Daemon::start(|config| config.chain.endpoints.iter_mut().for_each(|e| e.own = false)).await;
    assert_eq!(daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json()["state"], "trusted");
    let gate = daemon.get(&format!("/v1/gate/{GOOD}")).await;
    gate.is_closed_gate("single-rpc");
    assert_eq!(gate.header("clresolve-state"), "trusted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proof_weaker_than_demanded_does_not_open_the_gate() {
    let daemon = Daemon::start(|config| config.gate.min_proof = Some(ProofGrade::Quorum)).await;
    let gate = daemon.get(&format!("/v1/gate/{GOOD}")).await;
    gate.is_closed_gate("proof-too-weak");
    assert_eq!(gate.header("clresolve-state"), "trusted");
}

#[tokio::test(flavor = "multi_thread")]
async fn past_its_deadline_the_gate_refuses_and_the_run_goes_on() {
    let daemon = Daemon::start(|config| config.gate.deadline = Duration::from_millis(1)).await;
    let gate = daemon.get(&format!("/v1/gate/{GOOD}")).await;
    gate.is_closed_gate("deadline-passed");
    assert_eq!(gate.header("clresolve-state"), "indeterminate");
    assert_eq!(gate.headers.get("clresolve-verdict"), None);
    assert_eq!(daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json()["state"], "trusted");
    let opens = async {
        loop {
            let gate = daemon.get(&format!("/v1/gate/{GOOD}")).await;
            if gate.status == 200 {
                return;
            }
            // The head confirms the verdict meanwhile.
            assert!(["unconfirmed", "deadline-passed"].contains(&gate.header("clresolve-code")), "{:?}", gate.headers);
        }
    };
    timeout(PATIENCE, opens).await.expect("the gate opens");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_tells_caches_what_they_need_to_know() {
    let (clock, sandbox) = (Arc::new(Shifted::default()), Sandbox::start().await.expect("the sandbox starts"));
    let config = patient(&sandbox);
    let resolver = Resolver::with_clock(&config, Arc::clone(&clock) as Arc<dyn Clock>).await.expect("a resolver");
    let daemon = Daemon::run(HttpDaemon::bind_with_resolver(&config, resolver).await.expect("a daemon"), sandbox);
    let path = format!("/v1/verdicts/{GOOD}");
    let anew = || answer(daemon.request(Method::GET, &path).header("cache-control", "max-age=0, No-Cache"));

    let first = daemon.get(&path).await;
    assert_eq!(first.header("cache-status"), "clresolve; fwd=miss; stored");
    assert_eq!(first.header("cache-control"), "private, max-age=300");
    assert_eq!(first.header("content-type"), "application/json");
    assert_eq!(first.header("x-content-type-options"), "nosniff");
    assert_eq!(first.header("etag"), format!("W/{}", first.json()["id"]));

    let refused = anew().await;
    assert!(refused.header("cache-status").starts_with("clresolve; hit; ttl="), "{}", refused.header("cache-status"));
    assert!(refused.header("cache-status").ends_with("; detail=forced-run-refused"));
    assert_eq!(refused.json()["id"], first.json()["id"]);

    clock.0.store(40, Ordering::Relaxed);
    let known = daemon.get(&path).await;
    let age: u64 = known.header("age").parse().expect("seconds");
    assert!((40..60).contains(&age), "{age}");
    assert_eq!(known.header("cache-status"), format!("clresolve; hit; ttl={}", 300 - age));
    assert_eq!(known.json()["freshness"]["served"], "cached");
    let same = answer(daemon.request(Method::GET, &path).header("if-none-match", known.header("etag"))).await;
    assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, first.header("etag")));

    let forced = anew().await;
    assert_eq!(forced.header("cache-status"), "clresolve; fwd=request; stored");
    assert_ne!(forced.json()["id"], first.json()["id"]);
    assert!(anew().await.header("cache-status").ends_with("forced-run-refused"));

    let nonsense = daemon.get("/v1/verdicts/no%20name").await;
    assert_eq!(nonsense.header("cache-control"), "private, max-age=0");
    assert_eq!(nonsense.header("cache-status"), "clresolve; fwd=bypass");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_name_is_a_verdict_and_a_bad_question_is_a_problem() {
    let daemon = Daemon::start(|_| {}).await;
    let long = percent_encoded(&"é".repeat(500));
    for name in ["", "%20", "a%2Fb.eth", "%00", "%ff", "..", "a..eth", "%25", long.as_str()] {
        let answer = daemon.get(&format!("/v1/verdicts/{name}")).await;
        let verdict = answer.json();
        if name == ".." {
            // Clients resolve it as a parent folder in the path.
            answer.is_problem(404, "route-unknown");
            continue;
        }
        assert_eq!((answer.status, &verdict["reasons"][0]["code"]), (200, &json!("name-invalid")), "{name}");
    }
    let released = daemon.get(&format!("/v1/verdicts/{GOOD}?profile=agent-cards/1.0.0%2Breleased&depth=schemas")).await;
    assert_eq!(released.json()["profile"]["id"], "agent-cards/1.0.0+released");
    assert_eq!(released.json()["profile"]["depth"], "schemas");
    let problem = |query: &'static str| {
        let daemon = &daemon;
        async move { daemon.get(&format!("/v1/verdicts/{GOOD}?{query}")).await }
    };
    problem("profile=none/1").await.is_problem(400, "profile-unknown");
    problem("depth=deep").await.is_problem(400, "request-malformed");
    problem("block=17").await.is_problem(400, "request-malformed");
    problem("depth=schemas&depth=identity").await.is_problem(400, "request-malformed");
    daemon.get("/v1/verdicts/a.eth/b").await.is_problem(404, "route-unknown");
    daemon.get("/nowhere").await.is_problem(404, "route-unknown");
    daemon.get("/v1/verdicts").await.is_problem(405, "method-unsupported");
    answer(daemon.request(Method::DELETE, "/v1/cards/a.eth")).await.is_problem(405, "method-unsupported");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_a_verdict_a_line() {
    let daemon = Daemon::start(|_| {}).await;
    let names = [GOOD, BAD, "no name", GOOD, ""];
    let batch = daemon.post("application/json; charset=utf-8", json!({ "names": names }).to_string()).await;
    assert_eq!((batch.status, batch.header("content-type")), (200, "application/x-ndjson"));
    let mut states: Vec<(String, String)> = batch
        .lines()
        .iter()
        .map(|verdict| (verdict["name"]["input"].to_string(), verdict["state"].to_string()))
        .collect();
    states.sort();
    let expected =
        [("", "untrusted"), (BAD, "untrusted"), ("no name", "untrusted"), (GOOD, "trusted"), (GOOD, "trusted")];
    assert_eq!(states, expected.map(|(name, state)| (format!("\"{name}\""), format!("\"{state}\""))));
    let deep = daemon.post("application/json", json!({"names": [GOOD], "depth": "schemas"}).to_string()).await;
    assert_eq!(deep.lines()[0]["profile"]["depth"], "schemas");

    let many = |count: usize| json!({ "names": vec![GOOD; count] }).to_string();
    assert_eq!(daemon.post("application/json", many(100)).await.lines().len(), 100);
    for body in [many(0), many(101), "{".to_owned(), "[]".to_owned(), r#"{"names":["a"],"names":["b"]}"#.to_owned()] {
        daemon.post("application/json", body).await.is_problem(400, "request-malformed");
    }
    for body in
        [r#"{"names":["a.eth"],"block":5}"#, r#"{"names":"a.eth"}"#, r#"{"names":["a.eth"],"depth":"x"}"#, "\u{0}"]
    {
        daemon.post("application/json", body).await.is_problem(400, "request-malformed");
    }
    let unknown = json!({"names": [GOOD], "profile": "none/1"}).to_string();
    daemon.post("application/json", unknown).await.is_problem(400, "profile-unknown");
    daemon.post("text/plain", many(1)).await.is_problem(415, "media-type-unsupported");
    daemon.post("application/json", vec![b' '; 65 * 1024]).await.is_problem(413, "body-too-large");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_is_handed_out_byte_for_byte() {
    let daemon = Daemon::start(|_| {}).await;
    let card = daemon.get(&format!("/v1/cards/{GOOD}")).await;
    let digest = Digest::compute(&card.body);
    assert_eq!(card.json()["ens"], GOOD);
    assert_eq!(card.header("etag"), format!("\"{}\"", digest.to_hex()));
    assert_eq!(card.header("x-content-type-options"), "nosniff");
    assert!(card.header("content-security-policy").starts_with("default-src 'none'"));
    let repr = card.header("repr-digest");
    assert!(repr.starts_with("sha-256=:") && repr.ends_with("=:") && repr.len() == 9 + 44 + 1, "{repr}");
    let same =
        answer(daemon.request(Method::GET, &format!("/v1/cards/{GOOD}")).header("if-none-match", card.header("etag")));
    assert_eq!(same.await.status, 304);
    let head = answer(daemon.request(Method::HEAD, &format!("/v1/cards/{GOOD}"))).await;
    assert_eq!((head.status, head.body.len(), head.header("etag")), (200, 0, card.header("etag")));
}

#[tokio::test(flavor = "multi_thread")]
async fn trusted_agents_are_projected_to_a2a_cards() {
    let daemon = Daemon::start(|_| {}).await;
    let path = |name: &str| format!("/v1/agents/{name}/.well-known/agent-card.json");
    let answer = daemon.get(&path(GOOD)).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    let card = answer.json();
    let verdict = daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json();
    let said = &card["capabilities"]["extensions"][0]["params"];
    assert_eq!(said["conclusion"], verdict["conclusion"]);
    assert_eq!((&said["world"], &said["state"]), (&json!("sandbox"), &json!("trusted")));
    assert_eq!(card["supportedInterfaces"][0]["url"], verdict["identity"]["entry"]);
    assert_eq!(card["supportedInterfaces"][0]["protocolBinding"], "x402");
    assert_eq!(card["skills"][0]["id"], verdict["identity"]["verbs"][0]);
    assert!(answer.header("cache-control").starts_with("private, max-age="), "{}", answer.header("cache-control"));
    for when in ["checked_at", "fresh_until"] {
        assert_eq!(said[when], verdict["freshness"][when]);
    }
    assert_eq!(card["signatures"], Value::Null, "nothing of the sandbox is signed");
    assert_eq!((&said["warnings"], &said["status"]), (&Value::Null, &json!("active")));
    let retiring = daemon.get(&path("deprecated.eth")).await.json();
    let said = &retiring["capabilities"]["extensions"][0]["params"];
    assert_eq!((&said["warnings"], &said["status"]), (&json!(["status-deprecated"]), &json!("deprecated")));
    // CL-70: the caller of a card does not ask the gate, which denies verbs without an entry.
    let verbs = async |daemon: &Daemon| {
        let card = daemon.get(&path("several-verbs.eth")).await.json();
        let skills = card["skills"].as_array().expect("a list").iter();
        skills.map(|skill| skill["id"].as_str().expect("a verb").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(verbs(&daemon).await, ["summarize"]);
    let lenient = Daemon::start(|config| config.gate.verbs = GateVerbs::Implemented).await;
    assert_eq!(verbs(&lenient).await, ["summarize", "classify", "format"]);
    let bad = daemon.get(&path("entry-version.eth")).await;
    bad.is_problem(409, "entry-version-noncompliant");
    daemon.get(&path("cid-unproven.eth")).await.is_problem(409, "cid-unproven");
    let weak =
        Daemon::start(|config| config.gate.min_proof = Some(clresolve_core::reading::ProofGrade::StateProof)).await;
    weak.get(&path(GOOD)).await.is_problem(409, "proof-too-weak");
}

/// The cards of 1.1.0 have neither a name for people nor a description, and commons agents are called on the web.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_card_does_not_say_is_projected_from_the_verdict() {
    let daemon = Daemon::start(|config| config.rules.profile = "agent-cards/1.1.0".to_owned()).await;
    let card = daemon.get("/v1/agents/next-line.eth/.well-known/agent-card.json").await.json();
    assert_eq!(card["name"], "next-line.eth");
    assert_eq!(card["description"], "The agent next-line.eth of CommandLayer's class commons; its verbs: summarize.");
    let interface = &card["supportedInterfaces"][0];
    assert_eq!(interface["url"], "https://runtime.commandlayer.org/execute");
    assert_eq!(
        (&interface["protocolBinding"], &card["skills"][0]["tags"]),
        (&json!("https"), &json!(["commons", "https"]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cards_of_every_system_are_linted() {
    let daemon = Daemon::start(|_| {}).await;
    let lint = async |query: &str, media: &str, body: Vec<u8>| {
        answer(daemon.request(Method::POST, &format!("/v1/lint{query}")).header("content-type", media).body(body)).await
    };
    let card = daemon.get(&format!("/v1/cards/{GOOD}")).await.body;
    let report = lint("", "application/json", card.clone()).await;
    let body = report.json();
    assert_eq!((report.status, &body["flavour"], &body["valid"]), (200, &json!("commandlayer"), &json!(true)));
    assert_eq!((&body["findings"], &body["near_misses"]), (&json!([]), &json!([])));
    let released = String::from_utf8_lossy(&card).replace("/summarize/v1\"", "/summarize/v1.0.0\"");
    let near = lint("", "application/json", released.into_bytes()).await.json();
    assert_eq!(near["near_misses"], json!(["agent-cards/1.0.0+released"]));
    let bad = lint("", "application/json; charset=utf-8", b"{\"agent_id\": 5".to_vec()).await.json();
    assert_eq!((&bad["valid"], &bad["findings"][0]["code"]), (&json!(false), &json!("card-not-json")));
    let named = lint("?as=anypoint&profile=agent-cards/1.1.0", "application/json", card.clone()).await.json();
    assert_eq!(named["flavour"], "anypoint");

    lint("", "text/plain", card.clone()).await.is_problem(415, "media-type-unsupported");
    lint("", "application/json", vec![b' '; 256 * 1024 + 1]).await.is_problem(413, "body-too-large");
    lint("?as=acme", "application/json", card.clone()).await.is_problem(400, "request-malformed");
    lint("?as=a2a&as=a2a", "application/json", card.clone()).await.is_problem(400, "request-malformed");
    lint("?fix=true", "application/json", card.clone()).await.is_problem(400, "request-malformed");
    lint("?profile=no/such", "application/json", card).await.is_problem(400, "profile-unknown");
    daemon.get("/v1/lint").await.is_problem(405, "method-unsupported");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_registries_are_complete() {
    let daemon = Daemon::start(|_| {}).await;
    let reasons = daemon.get("/v1/reasons").await.json();
    let rows = |key: &str| reasons[key].as_array().expect("a list").clone();
    assert_eq!(rows("reasons").len(), clresolve_core::reason::ReasonCode::ALL.len());
    assert_eq!(rows("refusals").len(), clresolve_core::reason::RefusalCode::ALL.len());
    for row in [rows("reasons"), rows("refusals")].concat() {
        assert_eq!(row["type"], format!("urn:clresolve:reason:{}", row["code"].as_str().expect("a slug")));
    }
    let profiles = daemon.get("/v1/profiles").await.json();
    let default: Vec<&Value> =
        profiles["profiles"].as_array().expect("a list").iter().filter(|p| p["default"] == true).collect();
    assert_eq!(default.len(), 1);
    assert_eq!(default[0]["id"], "agent-cards/1.0.0");
    assert_eq!((daemon.get("/livez").await.status, daemon.ready().await.status), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn lint_counts_as_a_run() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 1).await;
    let lint = async || {
        answer(daemon.request(Method::POST, "/v1/lint").header("content-type", "application/json").body("{}")).await
    };
    assert_eq!(lint().await.status, 200);
    lint().await.is_problem(429, "client-over-quota");
    daemon.get(&format!("/v1/verdicts/{GOOD}")).await.is_problem(429, "client-over-quota");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_too_complex_to_lint_is_a_problem() {
    let daemon = Daemon::start(|_| {}).await;
    let body = format!("{{\"ens\": \"a.eth\", \"implements\": [0{}]}}", ",0".repeat(20_000));
    let request = daemon.request(Method::POST, "/v1/lint").header("content-type", "application/json");
    let refused = answer(request.body(body)).await;
    refused.is_problem(422, "card-too-complex");
    let detail = refused.json()["detail"].as_str().expect("a text").to_owned();
    assert!(detail.ends_with("more than 8192 values"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_over_its_quota_still_gets_what_is_known() {
    let daemon = Daemon::start(|config| config.http.cold_runs_per_minute = 1).await;
    assert_eq!(daemon.get(&format!("/v1/verdicts/{GOOD}")).await.status, 200);
    let over = daemon.get(&format!("/v1/verdicts/{BAD}")).await;
    over.is_problem(429, "client-over-quota");
    assert_eq!(over.header("retry-after"), "60");
    daemon.get(&format!("/v1/gate/{BAD}")).await.is_closed_gate("client-over-quota");
    daemon.get(&format!("/v1/cards/{BAD}")).await.is_problem(429, "client-over-quota");
    assert_eq!(daemon.get(&format!("/v1/gate/{GOOD}")).await.status, 200);
    assert_eq!(daemon.get("/v1/verdicts/no%20name").await.status, 200);
    let batch = daemon.post("application/json", json!({"names": [BAD]}).to_string()).await;
    let line = &batch.lines()[0];
    assert_eq!((batch.status, &line["code"], &line["name"]), (200, &json!("client-over-quota"), &json!(BAD)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_takes_no_place() {
    let daemon = Daemon::start(|config| config.http.requests = 1).await;
    let head = format!(
        "POST /v1/verdicts HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n",
        daemon.authority
    );
    let mut comes_late = daemon.raw(head).await;
    for _ in 0..10 {
        assert_eq!(daemon.get(&format!("/v1/verdicts/{GOOD}")).await.status, 200);
    }
    let body = json!({"names": [GOOD]}).to_string();
    comes_late.write_all(format!("{body:99}").as_bytes()).await.expect("the daemon reads");
    let mut said = [0; 12];
    comes_late.read_exact(&mut said).await.expect("it answers");
    assert_eq!(&said, b"HTTP/1.1 200");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_every_run_or_every_place_of_a_client_is_taken_the_daemon_refuses_at_once() {
    let node = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", node.local_addr().expect("an address"));
    let daemon = Daemon::start(|config| {
        config.chain.endpoints = vec![url.parse().expect("an endpoint")];
        // Only the resolution may ask the node here.
        config.chain.head_poll = NO_POLLS;
        config.http.cold_runs = 1;
        config.http.requests = 8;
    })
    .await;
    let stalled = tokio::spawn(daemon.request(Method::GET, &format!("/v1/verdicts/{GOOD}")).send());
    // The daemon's first reading of its chain connects too.
    let _held = asked_about(&node, GOOD).await;
    let refused = daemon.get(&format!("/v1/verdicts/{BAD}")).await;
    refused.is_problem(503, "overloaded");
    assert_eq!(refused.header("retry-after"), "1");
    daemon.get(&format!("/v1/gate/{BAD}")).await.is_closed_gate("overloaded");
    assert_eq!(daemon.get("/v1/verdicts/no%20name").await.status, 200);
    // A request that waits for the same resolution takes this client's second permit, of eight in all.
    let waits = tokio::spawn(daemon.request(Method::GET, &format!("/v1/verdicts/{GOOD}")).send());
    let is_full = async { while daemon.get("/v1/profiles").await.status == 200 {} };
    timeout(PATIENCE / 4, is_full).await.expect("it has no third place");
    daemon.get("/v1/profiles").await.is_problem(429, "client-over-quota");
    daemon.get("/v1/gate/no%20name").await.is_closed_gate("name-invalid");
    assert_eq!(daemon.get("/livez").await.status, 200);
    waits.abort();
    while daemon.get("/v1/profiles").await.status == 429 {}
    stalled.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_endless_and_malformed_requests_are_cut_and_harm_nobody() {
    let daemon = Daemon::start(|config| {
        let brief = Duration::from_millis(200);
        (config.http.read_timeout, config.http.head_timeout, config.http.idle_timeout) = (brief, brief, brief);
    })
    .await;
    let host = &daemon.authority;
    let post = format!("POST /v1/verdicts HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n");
    let slow_body = daemon.raw(format!("{post}content-length: 99\r\n\r\n{{")).await;
    let slow_head = daemon.raw("GET /v1/gate/summarizeagent.eth HTTP/1.1\r\nhost: ").await;
    let silent = daemon.raw("").await;
    let announced = daemon.raw(format!("{post}content-length: 9999999999\r\n\r\n")).await;
    // Most of the long head is unread when it is rejected, but the response must still arrive.
    let long_head = daemon.raw(format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(500_000))).await;
    let long_target =
        daemon.raw(format!("GET /v1/verdicts/{} HTTP/1.1\r\nhost: {host}\r\n\r\n", "y".repeat(15_000))).await;
    let many_headers = daemon.raw(format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(100))).await;
    let garbage = daemon.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n").await;
    let smuggled = daemon.raw(format!("{post}content-length: 5\r\ncontent-length: 6\r\n\r\n{{}}")).await;
    let chunk = format!("{post}transfer-encoding: chunked\r\n\r\nfff0\r\n{}\r\n", " ".repeat(0xfff0));
    let mut endless = daemon.raw(&chunk).await;
    let _ = endless.write_all(format!("fff0\r\n{}\r\n", " ".repeat(0xfff0)).as_bytes()).await;

    let late = rest(slow_body).await;
    let slug = RefusalCode::RequestTimeout.slug();
    assert!(late.starts_with("HTTP/1.1 408 ") && late.contains(&format!("\"code\":\"{slug}\"")), "{late}");
    is_bare(&rest(slow_head).await, 408);
    assert_eq!(rest(silent).await, "");
    assert!(rest(announced).await.starts_with("HTTP/1.1 413 "));
    assert!(rest(endless).await.starts_with("HTTP/1.1 413 "));
    for too_large in [long_head, many_headers] {
        is_bare(&rest(too_large).await, 431);
    }
    assert!(rest(long_target).await.starts_with("HTTP/1.1 200 "), "too long for a name, not for a request");
    is_bare(&rest(garbage).await, 400);
    is_bare(&rest(smuggled).await, 400);
    let cut_off = daemon.raw(format!("{post}transfer-encoding: chunked\r\n\r\nnot a length\r\n")).await;
    assert!(rest(cut_off).await.starts_with("HTTP/1.1 400 "), "malformed chunks are not a body that is too large");
    assert_eq!(daemon.get(&format!("/v1/gate/{GOOD}")).await.status, 200);
}

/// The response to a single message, after which the client sends nothing more.
async fn said_to(daemon: &Daemon, sent: impl AsRef<[u8]>) -> String {
    let mut stream = daemon.raw(sent).await;
    stream.shutdown().await.expect("the daemon reads");
    rest(stream).await
}

#[track_caller]
fn is_shut(said: &str, code: &str) {
    assert!(said.starts_with("HTTP/1.1 403 ") || said.starts_with("HTTP/1.0 403 "), "{said}");
    assert!(said.contains(&format!("clresolve-code: {code}\r\n")), "{code}: {said}");
    assert!(said.contains("clresolve-state: indeterminate\r\n") && said.contains("content-length: 0\r\n"), "{said}");
}

/// A rejection by the HTTP library: a status without a body, after which the connection ends.
#[track_caller]
fn is_bare(said: &str, status: u16) {
    assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {said}");
    assert!(said.contains("content-length: 0\r\n") && said.contains("connection: close\r\n"), "{said}");
    assert!(said.ends_with("\r\n\r\n") && !said.contains("clresolve"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_head_never_opens_the_gate() {
    let daemon = Daemon::start(|_| {}).await;
    let gate = format!("/v1/gate/{GOOD}");
    assert_eq!(daemon.get(&gate).await.status, 200, "what follows is denied although the name is known and trusted");
    for (request, status) in [
        (format!("GET {gate} HTTP/1.1\r\nno header\r\n\r\n"), 400),
        (format!("GET {gate} HTTP/9.9\r\n\r\n"), 400),
        (format!("GET {gate}\r\n\r\n"), 400),
        (format!("GET {gate} HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n"), 400),
        (format!("GET {gate} HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"), 400),
        (format!("GET {gate} HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(20_000)), 431),
        (format!("GET /v1/gate/{} HTTP/1.1\r\n\r\n", "y".repeat(20_000)), 431),
        (format!("GET {gate} HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(65)), 431),
        ("\u{16}\u{3}\u{1}".to_owned(), 400),
    ] {
        is_bare(&said_to(&daemon, &request).await, status);
    }
    for cut_off in
        [format!("GET {gate} HTTP/1.1\r\nhost: x"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), "GET".to_owned()]
    {
        assert_eq!(said_to(&daemon, &cut_off).await, "", "{cut_off}");
    }
    let metrics = String::from_utf8(daemon.get("/metrics").await.body).expect("UTF-8");
    let refused = metrics.lines().find_map(|line| line.strip_prefix("clresolve_http_heads_refused_total "));
    assert!(refused.and_then(|count| count.parse::<u32>().ok()).is_some_and(|count| count >= 9), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_sent_to_the_gate_it_says_200_or_403() {
    let daemon = Daemon::start(|_| {}).await;
    let gate = format!("/v1/gate/{GOOD}");
    for (request, code) in [
        (format!("CONNECT {gate} HTTP/1.1\r\n\r\n"), "method-unsupported"),
        (format!("GET /{gate} HTTP/1.1\r\n\r\n"), "route-unknown"),
        (format!("GET /v1//gate/{GOOD} HTTP/1.1\r\n\r\n"), "route-unknown"),
        (format!("GET /v1/%67ate/{GOOD} HTTP/1.1\r\n\r\n"), "route-unknown"),
        (format!("GET /V1/Gate/{GOOD} HTTP/1.1\r\n\r\n"), "route-unknown"),
        (format!("GET /v1/verdicts/..%2Fgate%2F{GOOD} HTTP/1.1\r\n\r\n"), "route-unknown"),
        ("GET /v1/gate/../../livez HTTP/1.1\r\n\r\n".to_owned(), "request-ambiguous"),
        // With either length, a second request could be hidden.
        (
            format!(
                "PUT {gate} HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET {gate}/pay HTTP/1.1\r\n\r\n"
            ),
            "request-malformed",
        ),
        (
            format!(
                "PUT {gate} HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\nGET {gate}/pay HTTP/1.1\r\n\r\n"
            ),
            "request-malformed",
        ),
    ] {
        let said = said_to(&daemon, &request).await;
        is_shut(&said, code);
        assert_eq!(said.matches("HTTP/1.").count(), 1, "{request}: {said}");
    }
    for request in [
        format!("GET {gate} HTTP/1.0\r\n\r\n"),
        format!("GET http://elsewhere.example{gate} HTTP/1.1\r\n\r\n"),
        format!("TRACE {gate} HTTP/1.1\r\n\r\n"),
        format!("OPTIONS {gate} HTTP/1.1\r\n\r\n"),
        format!("PUT {gate} HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc"),
        format!("PUT {gate} HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"),
        format!("PUT {gate} HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nnot a length"),
        format!(
            "GET {gate} HTTP/1.1\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n"
        ),
        format!("GET {gate} HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"),
        format!("\r\nGET {gate} HTTP/1.1\nhost: x\n\n"),
    ] {
        let said = said_to(&daemon, &request).await;
        assert!(said[9..].starts_with("200 ") && said.contains("clresolve-state: trusted\r\n"), "{request}: {said}");
        assert_eq!(said.matches("HTTP/1.").count(), 1, "{request}: {said}");
    }
    let both = said_to(
        &daemon,
        format!("GET {gate} HTTP/1.1\r\n\r\nGET {gate}/pay HTTP/1.1\r\n\r\nGET {gate} HTTP/2\r\n\r\n"),
    );
    let statuses: Vec<String> = both.await.split("HTTP/1.1 ").skip(1).map(|answer| answer[..3].to_owned()).collect();
    assert_eq!(statuses, ["200", "403", "400"]);
}

/// hyper removes the fragment of a target, even from a head that arrives early.
#[tokio::test]
async fn a_fragment_in_a_head_that_is_sent_ahead_is_refused() {
    let daemon = Daemon::start(|_| {}).await;
    assert_eq!(
        daemon.get(&format!("/v1/gate/{GOOD}")).await.status,
        200,
        "what follows is denied although it is known"
    );
    let body = json!({"names": [GOOD]}).to_string();
    let post = format!(
        "POST /v1/verdicts HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (begin, end) = (format!("GET /v1/gate/{GOOD}#"), format!("/../{BAD} HTTP/1.1\r\nconnection: close\r\n\r\n"));
    for at in [post.len() - 1, post.len(), post.len() + 1] {
        let sent = format!("{post}{begin}");
        let (before, with_the_end_of_the_body) = sent.split_at(at);
        let mut stream = daemon.raw(before).await;
        stream.write_all(with_the_end_of_the_body.as_bytes()).await.expect("the daemon reads");
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.expect("the first answer");
        stream.write_all(end.as_bytes()).await.expect("the daemon reads");
        let said = rest(stream).await;
        let (_, gate) = said.split_once("HTTP/1.1 ").expect("the second answer");
        is_shut(&format!("HTTP/1.1 {gate}"), "request-ambiguous");
    }
    let question = format!("GET /v1/gate/{GOOD}#/../{BAD} HTTP/1.1\r\nconnection: close\r\n\r\n");
    let said = said_to(&daemon, &format!("GET /livez HTTP/1.1\r\n\r\n{question}")).await;
    let (live, gate) = said.split_once("live\n").expect("the first answer has a body");
    assert!(live.starts_with("HTTP/1.1 200 "), "{said}");
    is_shut(gate, "request-ambiguous");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_two_hosts_is_malformed() {
    let daemon = Daemon::start(|_| {}).await;
    let gate = format!("/v1/gate/{GOOD}");
    assert_eq!(daemon.get(&gate).await.status, 200, "what follows is denied although it is known");
    for (authority, headers) in [
        ("", "host: a.example\r\nhost: b.example\r\n"),
        ("", "Host: a.example\r\nx: y\r\nHOST: a.example\r\n"),
        ("", "host: user@a.example\r\n"),
        ("", "host: user:secret@a.example:80\r\n"),
        ("", "host: a.example@b.example\r\n"),
        ("", "host: a.example,b.example\r\n"),
        ("", "host: a.example b.example\r\n"),
        ("", "host: a.example/b\r\n"),
        ("", "host: a.\u{e9}xample\r\n"),
        ("http://b.example", "host: a.example\r\n"),
        ("http://a.example:8402", "host: a.example\r\n"),
        ("http://user@a.example", "host: a.example\r\n"),
        ("http://user@a.example", "host: user@a.example\r\n"),
        ("http://user@a.example", ""),
    ] {
        let ask = async |path: &str| {
            said_to(&daemon, format!("GET {authority}{path} HTTP/1.1\r\n{headers}connection: close\r\n\r\n")).await
        };
        is_shut(&ask(&gate).await, "request-malformed");
        is_shut(&ask(&format!("/v1//gate/{GOOD}")).await, "request-malformed");
        for path in ["/v1/verdicts/a.eth", "/livez", "/mcp", "/nowhere"] {
            let said = ask(path).await;
            assert!(said.starts_with("HTTP/1.1 400 ") && said.contains("\"request-malformed\""), "{headers}: {said}");
        }
    }
    for (authority, headers) in [("", ""), ("http://A.example", "host: a.EXAMPLE\r\n"), ("", "host: \r\n")] {
        let said = said_to(&daemon, format!("GET {authority}{gate} HTTP/1.1\r\n{headers}connection: close\r\n\r\n"));
        assert!(said.await.starts_with("HTTP/1.1 200 "), "{authority} {headers}");
    }
}

/// A browser on this machine has the same address as a runtime.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_start_no_resolution() {
    let daemon = Daemon::start(|config| config.cors.origins = vec!["https://app.example".to_owned()]).await;
    let foreign = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ];
    let own = format!("http://{}", daemon.authority);
    let of_page =
        |method: Method, path: &str, (name, value): (&str, &str)| daemon.request(method, path).header(name, value);
    let message = json!({"name": GOOD, "verb": "summarize", "paymentRequired": {"x402Version": 2, "accepts": []}});
    for page in foreign {
        for path in [
            format!("/v1/verdicts/{GOOD}"),
            format!("/v1/cards/{GOOD}"),
            format!("/v1/agents/{GOOD}/.well-known/agent-card.json"),
        ] {
            let request = of_page(Method::GET, &path, page);
            answer(request.header("cache-control", "no-cache")).await.is_problem(403, "host-unexpected");
            let watched = of_page(Method::GET, &path, page).header("accept", "text/event-stream");
            answer(watched).await.is_problem(403, "host-unexpected");
        }
        assert_eq!(answer(of_page(Method::GET, &format!("/?name={GOOD}"), page)).await.status, 403);
        let decision = of_page(Method::POST, "/v1/decisions", page).header("content-type", "application/json");
        answer(decision.body(message.to_string())).await.is_problem(403, "host-unexpected");
        let batch = of_page(Method::POST, "/v1/verdicts", page).header("content-type", "application/json");
        let lines = answer(batch.body(json!({"names": [GOOD]}).to_string())).await;
        assert_eq!((lines.status, &lines.json()["code"]), (200, &json!("host-unexpected")));
        let lint = of_page(Method::POST, "/v1/lint", page).header("content-type", "application/json");
        answer(lint.body("{}")).await.is_problem(403, "host-unexpected");
    }
    for (page, name) in [
        (("origin", "https://app.example"), GOOD),
        (("origin", &*own), BAD),
        (("sec-fetch-site", "same-origin"), "third.eth"),
        (("sec-fetch-site", "none"), "fourth.eth"),
    ] {
        assert_eq!(answer(of_page(Method::GET, &format!("/v1/verdicts/{name}"), page)).await.status, 200, "{name}");
    }
    for page in foreign {
        let known = answer(of_page(Method::GET, &format!("/v1/verdicts/{GOOD}"), page)).await;
        assert_eq!((known.status, &known.json()["state"]), (200, &json!("trusted")), "the cache has it");
    }
    let at_the_gate = answer(of_page(Method::GET, "/v1/gate/checkoutagent.eth", foreign[0])).await;
    assert_eq!(at_the_gate.status, 200, "a buyer's browser sends the headers that a proxy passes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_odd_but_not_for_the_gate_is_a_problem() {
    let daemon = Daemon::start(|_| {}).await;
    for (request, status, code) in [
        ("CONNECT example.com:443 HTTP/1.1\r\n\r\n", 405, "method-unsupported"),
        ("CONNECT /livez HTTP/1.1\r\n\r\n", 405, "method-unsupported"),
        ("TRACE /v1/verdicts/a.eth HTTP/1.1\r\n\r\n", 405, "method-unsupported"),
        (
            "POST /v1/verdicts HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n",
            400,
            "request-malformed",
        ),
        ("GET /v1/gates HTTP/1.1\r\n\r\n", 404, "route-unknown"),
    ] {
        let said = said_to(&daemon, request).await;
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {said}");
        assert!(said.contains(&format!("urn:clresolve:reason:{code}\"")), "{request}: {said}");
        assert_eq!(said.contains("\r\nallow: "), status == 405, "{request}: {said}");
    }
    let said = said_to(&daemon, "OPTIONS * HTTP/1.1\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.1 204 "), "{said}");
    let said = said_to(&daemon, "GET http://elsewhere.example/livez HTTP/1.0\r\n\r\n").await;
    assert!(said.starts_with("HTTP/1.0 200 "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_body_does_not_hold_the_gate_up() {
    let daemon = Daemon::start(|_| {}).await;
    for framing in ["content-length: 9999999999\r\n\r\n", "transfer-encoding: chunked\r\n\r\nfffffff\r\n"] {
        let stream = daemon.raw(format!("POST /v1/gate/{GOOD} HTTP/1.1\r\n{framing}")).await;
        let (mut reader, mut writer) = stream.into_split();
        let sending = tokio::spawn(async move { while writer.write_all(&[b'x'; 4096]).await.is_ok() {} });
        let mut start = [0; 12];
        reader.read_exact(&mut start).await.expect("an answer");
        assert_eq!(&start, b"HTTP/1.1 200");
        sending.await.expect("the daemon takes no more");
    }
}

/// A connection from another loopback address, which counts as another client.
#[cfg(target_os = "linux")]
async fn from(address: &str, daemon: &Daemon) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{address}:0").parse().expect("an address")).expect("an address of this machine");
    socket.connect(daemon.authority.parse().expect("an address")).await.expect("the daemon listens")
}

#[cfg(target_os = "linux")]
async fn ask_from(address: &str, daemon: &Daemon, path: &str) -> String {
    let mut stream = from(address, daemon).await;
    let request = format!("GET {path} HTTP/1.1\r\nconnection: close\r\n\r\n");
    if stream.write_all(request.as_bytes()).await.is_err() {
        return String::new();
    }
    rest(stream).await
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn all_addresses_of_this_machine_share_one_clients_connections() {
    let daemon = Daemon::start(|config| (config.http.connections, config.http.connections_per_client) = (4, 2)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = from("127.0.0.2", &daemon).await;
        stream.write_all(b"GET /livez HTTP/1.1\r\n\r\n").await.expect("the daemon reads");
        let mut start = [0; 12];
        stream.read_exact(&mut start).await.expect("an answer");
        held.push(stream);
    }
    for last in 2..20 {
        assert_eq!(ask_from(&format!("127.0.{last}.{last}"), &daemon, "/livez").await, "");
    }
    drop(held);
    while ask_from("127.0.0.2", &daemon, "/livez").await.is_empty() {}
}

/// Accepts connections, which stay open without an answer, until one asks about the name.
async fn asked_about(node: &tokio::net::TcpListener, name: &str) -> Vec<(TcpStream, Vec<u8>)> {
    let label = alloy_primitives::hex::encode(name.split('.').next().expect("a label"));
    let is_about = |(_, request): &(TcpStream, Vec<u8>)| String::from_utf8_lossy(request).contains(&label);
    let mut connections: Vec<(TcpStream, Vec<u8>)> = Vec::new();
    let accepting = async {
        while !connections.iter().any(is_about) {
            // On a busy machine, a request arrives long after its connection, so every connection is read again.
            if let Ok(accepted) = timeout(Duration::from_millis(20), node.accept()).await {
                connections.push((accepted.expect("a connection").0, Vec::new()));
            }
            for (connection, request) in &mut connections {
                while matches!(connection.try_read_buf(request), Ok(1..)) {}
            }
        }
    };
    timeout(PATIENCE, accepting).await.expect("the resolution asks the node");
    connections
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_asks_for_slow_names_leaves_runs_to_others() {
    let node = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", node.local_addr().expect("an address"));
    let daemon = Daemon::start(|config| {
        config.chain.endpoints = vec![url.parse().expect("an endpoint")];
        // Only the resolution may ask the node here.
        config.chain.head_poll = NO_POLLS;
        (config.http.cold_runs, config.http.cold_runs_per_client) = (2, 1);
    })
    .await;
    let mut slow = from("127.0.0.2", &daemon).await;
    slow.write_all(format!("GET /v1/gate/{GOOD} HTTP/1.1\r\n\r\n").as_bytes()).await.expect("the daemon reads");
    let _first = asked_about(&node, GOOD).await;
    let said = ask_from("127.0.0.2", &daemon, &format!("/v1/verdicts/{BAD}")).await;
    assert!(said.starts_with("HTTP/1.1 429 ") && said.contains("client-over-quota"), "{said}");
    is_shut(&ask_from("127.0.0.2", &daemon, &format!("/v1/gate/{BAD}")).await, "client-over-quota");
    // The proxy forwards the headers of a buyer's browser.
    let question = format!("GET /v1/gate/{BAD} HTTP/1.1\r\nsec-fetch-site: cross-site\r\n\r\n");
    let _other = daemon.raw(&question).await;
    let _second = asked_about(&node, BAD).await;
    let again = question.replace(BAD, "third.eth").replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    is_shut(&said_to(&daemon, again).await, "client-over-quota");
}

/// A chain whose reader has a bug.
struct Broken;

#[async_trait::async_trait]
impl EnsReader for Broken {
    async fn read_selected_records(
        &self,
        _: &EnsName,
        _: BlockSelector,
        _: &'static [TextRecordKey],
    ) -> Result<NameReading, ChainError> {
        panic!("a bug")
    }

    async fn read_cl_owner(&self, _: &EnsName, _: &ChainBlock, _: &[String]) -> Result<ClOwnerReading, ChainError> {
        panic!("a bug")
    }
}

/// A chain that is read, and in which the resolver of every name fails.
struct WithoutRecords;

#[async_trait::async_trait]
impl EnsReader for WithoutRecords {
    async fn read_selected_records(
        &self,
        _: &EnsName,
        _: BlockSelector,
        _: &'static [TextRecordKey],
    ) -> Result<NameReading, ChainError> {
        Err(ChainError::Resolver(ResolverContractError::CallReverted))
    }

    async fn read_cl_owner(&self, _: &EnsName, _: &ChainBlock, _: &[String]) -> Result<ClOwnerReading, ChainError> {
        Err(ChainError::Resolver(ResolverContractError::CallReverted))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_is_ready_although_the_resolver_of_a_name_fails() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let config = patient(&sandbox);
    let parts = (ConformanceProfiles::builtin(), Arc::new(WithoutRecords), Arc::new(Nowhere));
    let resolver = Resolver::from_chain_and_content(config.clone(), parts.0, parts.1, parts.2).expect("a resolver");
    Daemon::run(HttpDaemon::bind_with_resolver(&config, resolver).await.expect("a daemon"), sandbox).ready().await;
}

/// No network.
struct Nowhere;

#[async_trait::async_trait]
impl ContentFetcher for Nowhere {
    async fn fetch_card(&self, _: &str, _: Duration) -> HttpsOutcome {
        HttpsOutcome::NotAsked
    }

    async fn walk_ipfs_path(
        &self,
        _: &ContentId,
        _: &UnixFsPath,
        _: &[bytes::Bytes],
        _: DagWalkBudget,
        _: Duration,
    ) -> IpfsPathResult {
        IpfsWalkOutcome::NotAsked.into()
    }

    async fn fetch_schema(&self, _: &str, _: Duration) -> Result<bytes::Bytes, FetchError> {
        Err(SourceUnavailableError::Connect.into())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bug_closes_the_gate_and_the_daemon_goes_on() {
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let config = patient(&sandbox);
    let parts = (ConformanceProfiles::builtin(), Arc::new(Broken), Arc::new(Nowhere));
    let resolver = Resolver::from_chain_and_content(config.clone(), parts.0, parts.1, parts.2).expect("a resolver");
    let daemon = Daemon::run(HttpDaemon::bind_with_resolver(&config, resolver).await.expect("a daemon"), sandbox);
    for _ in 0..2 {
        daemon.get(&format!("/v1/gate/{GOOD}")).await.is_closed_gate("internal-error");
        daemon.get(&format!("/v1/verdicts/{GOOD}")).await.is_problem(500, "internal-error");
        daemon.get(&format!("/v1/cards/{GOOD}")).await.is_problem(500, "internal-error");
    }
    daemon.get("/readyz").await.is_problem(503, "not-ready");
    assert_eq!(daemon.get("/v1/verdicts/no%20name").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_longer_than_the_drain_is_cut() {
    let daemon = Daemon::start(|config| {
        config.http.drain_notice = Duration::from_millis(1);
        config.http.drain = Duration::from_millis(50);
        config.http.read_timeout = PATIENCE;
    })
    .await;
    let mut in_work = daemon.raw("GET /livez HTTP/1.1\r\n\r\n").await;
    let mut start = [0; 12];
    in_work.read_exact(&mut start).await.expect("an answer");
    let head = "POST /v1/verdicts HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n";
    in_work.write_all(head.as_bytes()).await.expect("the daemon reads");
    daemon.stop.send(()).expect("the daemon runs");
    daemon.ended.await.expect("the daemon ends although a request is in work");
    assert!(!rest(in_work).await.contains("application/x-ndjson"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_is_announced_before_it_comes() {
    let daemon = Daemon::start(|config| config.http.drain_notice = PATIENCE).await;
    assert_eq!(daemon.get(&format!("/v1/gate/{GOOD}")).await.status, 200);
    daemon.ready().await;
    daemon.stop.send(()).expect("the daemon runs");
    let draining = async |path: &str| answer(daemon.client.get(format!("http://{}{path}", daemon.authority))).await;
    while draining("/readyz").await.status == 200 {}
    draining("/readyz").await.is_problem(503, "draining");
    draining(&format!("/v1/gate/{GOOD}")).await.is_closed_gate("draining");
    assert_eq!(draining("/livez").await.status, 200);
    assert_eq!(draining(&format!("/v1/verdicts/{GOOD}")).await.json()["state"], "trusted");
    daemon.ended.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_work_are_answered_before_the_end() {
    let daemon = Daemon::start(|config| {
        config.http.drain_notice = Duration::from_millis(1);
        config.http.drain = PATIENCE;
        config.http.read_timeout = PATIENCE;
    })
    .await;
    let body = json!({ "names": [GOOD] }).to_string();
    let head = format!(
        "POST /v1/verdicts HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // The response to the first request shows that the second one on its connection is in progress.
    let mut in_work = daemon.raw("GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut start = [0; 12];
    in_work.read_exact(&mut start).await.expect("an answer");
    assert_eq!(&start, b"HTTP/1.1 200");
    in_work.write_all(head.as_bytes()).await.expect("the daemon reads");
    in_work.write_all(&body.as_bytes()[..5]).await.expect("the daemon reads");
    daemon.get("/livez").await;
    daemon.stop.send(()).expect("the daemon runs");
    while TcpStream::connect(&daemon.authority).await.is_ok() {}
    in_work.write_all(&body.as_bytes()[5..]).await.expect("the daemon reads");
    let said = rest(in_work).await;
    assert!(said.contains("\"state\":\"trusted\""), "{said}");
    daemon.ended.await.expect("the daemon ends by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_leads_the_resolver_back_to_the_daemon() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
    let daemon = Daemon::start(|config| {
        config.http.listen = clresolve_resolver::config::ListenAddress::loopback(port);
        for rule in config.network.connect_to.iter_mut().filter(|rule| rule.to_string().starts_with("cards.")) {
            let from: String = rule.to_string().split_inclusive(':').take(2).collect();
            *rule = format!("{from}127.0.0.1:{port}").parse().expect("a rule");
        }
    })
    .await;
    let verdict = daemon.get(&format!("/v1/verdicts/{GOOD}")).await.json();
    assert!(verdict.to_string().contains("the address is a listener of this process"), "{verdict:#}");
    assert_eq!(verdict["state"], "untrusted");
}

/// The program, without any configuration from the environment.
fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clresolve"));
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Mutant tests disable the same code in the program.
    command.envs(std::env::var_os("MUTANT").map(|switch| ("MUTANT", switch)));
    command
}

#[tokio::test]
async fn what_must_not_be_served_is_refused_at_the_start() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the folder can be written");
        path.display().to_string()
    };
    let (good, bad) =
        (file("good.toml", "[gate]\ndeadline = \"100ms\"\n"), file("bad.toml", "[http]\nlisten = \"here\"\n"));
    for (arguments, code, said) in [
        (vec!["serve", "--sandbox", "--listen", "0.0.0.0:0"], 2, "beyond loopback"),
        (vec!["serve", "--block", "17"], 2, "block: expected finalized, safe or latest"),
        (vec!["serve", "--listen", "here"], 2, "--listen"),
        (vec!["serve", "--check-config", "--config", &good], 0, "the configuration is good"),
        (vec!["serve", "--check-config", "--config", &bad], 2, "line 2, key `listen`"),
        (vec!["serve", "--check-config", "--profile", "none/1"], 2, "no profile none/1"),
    ] {
        let ended = tokio::process::Command::from(program(&arguments)).kill_on_drop(true).output();
        let output = timeout(START, ended).await.unwrap_or_else(|_| panic!("{arguments:?} is served"));
        let output = output.expect("the program runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.contains(said), "{arguments:?}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn the_program_serves_logs_and_drains_at_sigterm() {
    let mut child = program(&["serve", "--sandbox", "--listen", "127.0.0.1:0", "--timeout", "2m"])
        .spawn()
        .expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    log.read_line(&mut line).expect("a line");
    let address = line.trim().rsplit_once("http://").map(|(_, address)| address.to_owned()).expect("the address");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let ask = |path: &str| {
        let client = Client::builder().no_proxy().build().expect("a client");
        runtime.block_on(answer(client.get(format!("http://{address}{path}"))))
    };
    let verdict = ask(&format!("/v1/verdicts/{GOOD}")).json();
    assert_eq!((&verdict["state"], &verdict["anchor"]["world"]), (&json!("trusted"), &json!("sandbox")));
    assert_eq!(ask("/v1/gate/a%1b%5B31mb%0a.eth").status, 403);
    assert_eq!(ask("//v1/gate/summarizeagent.eth").status, 403);
    is_counted(&String::from_utf8(ask("/metrics").body).expect("UTF-8"));
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let mut said = String::new();
    log.read_to_string(&mut said).expect("UTF-8");
    assert_eq!(child.wait().expect("the program ends").code(), Some(0), "{said}");
    for part in [
        "name=summarizeagent.eth state=\"trusted\"",
        "status=200",
        "/v1/gate/a%1b%5B31mb%0a.eth",
        "request-ambiguous",
        "draining",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let started = said.lines().find(|line| line.contains(" started ")).unwrap_or_else(|| panic!("{said}"));
    for held in [
        &*format!("version=\"{}\"", env!("CARGO_PKG_VERSION")),
        "world=\"sandbox\"",
        "profile=\"agent-cards/1.0.0\"",
        "endpoints=\"sandbox-rpc\"",
        "cache=10000 trusted, 10000 untrusted, 134217728 bytes",
    ] {
        assert!(started.contains(held), "{held}: {started}");
    }
}

/// The counts after one verdict of a run, one ambiguous path at the gate, and a path that only looks like the gate's.
fn is_counted(metrics: &str) {
    for line in [
        "clresolve_http_requests_total{route=\"verdict\",class=\"2xx\"} 1",
        "clresolve_http_requests_total{route=\"gate\",class=\"4xx\"} 1",
        "clresolve_http_requests_total{route=\"gate\",class=\"2xx\"} 0",
        "clresolve_gate_decisions_total{code=\"request-ambiguous\"} 1",
        "clresolve_gate_decisions_total{code=\"route-unknown\"} 1",
        "clresolve_gate_decisions_total{code=\"allow\"} 0",
        "clresolve_verdicts_total{state=\"trusted\"} 1",
        "clresolve_runs_in_flight 0",
        "clresolve_http_requests_total{route=\"agent\",class=\"4xx\"} 0",
        "clresolve_http_requests_total{route=\"lint\",class=\"2xx\"} 0",
        "clresolve_http_request_seconds_count{route=\"verdict\"} 1",
        "clresolve_http_request_seconds_bucket{route=\"gate\",le=\"+Inf\"} 1",
        "clresolve_cache_misses_total{cache=\"verdicts\"} 1",
        "clresolve_upstream_requests_total{kind=\"card\",endpoint=\"foreign\",outcome=\"ok\"} 1",
        "# TYPE clresolve_http_connections gauge",
    ] {
        assert!(metrics.lines().any(|counted| counted == line), "{line}: {metrics}");
    }
    assert!(!metrics.contains(GOOD), "{metrics}");
    for kind in ["rpc", "gateway"] {
        assert!(metrics.contains(&format!("{{kind=\"{kind}\",endpoint=\"")), "{kind}: {metrics}");
    }
    for line in metrics.lines().filter(|line| !line.starts_with('#')) {
        let value = line.rsplit_once(' ').map(|(_, value)| value.parse::<f64>());
        assert!(matches!(value, Some(Ok(0.0..))), "{line}");
    }
}

#[cfg(unix)]
#[test]
fn whoever_asks_twice_for_the_end_gets_it_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("c.toml");
    std::fs::write(&config, "[http]\ndrain-notice = \"1m\"\n").expect("the folder can be written");
    let mut child =
        program(&["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&config).spawn().expect("the program starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let terminate = || Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill runs");
    // Endpoints that are not reached may be told of first.
    assert!(log.any(|line| line.contains("listening")));
    assert!(terminate().success());
    assert!(log.any(|line| line.contains("draining")));
    assert!(terminate().success());
    assert!(log.any(|line| line.contains("asked twice to stop")));
    assert_eq!(child.wait().expect("the program ends").code(), Some(130));
}

/// The system time, shifted by a number of seconds.
#[derive(Default)]
struct Shifted(AtomicI64);

impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_with_a_key_signs_for_whoever_asks_and_publishes_its_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, old) = (folder.path().join("k.pem"), folder.path().join("old.json"));
    let (key, before) = (Ed25519SigningKey::generate().expect("a key"), Ed25519SigningKey::generate().expect("a key"));
    clresolve_resolver::sign::save_signing_key(&key, &path).expect("written");
    std::fs::write(&old, Ed25519KeySet::from(before.public_key()).to_jwks().to_string()).expect("written");
    let sign = |config: &mut Config| {
        // Any network but the sandbox, for which nothing is signed.
        config.chain.world = "lab".to_owned();
        config.sign.key = Some(path.clone());
        config.sign.issuer = Some("https://clresolve.example".to_owned());
        config.sign.publish = vec![old.clone()];
    };
    let daemon = Daemon::start(sign).await;
    let verdict = format!("/v1/verdicts/{GOOD}");
    let accepting =
        |path: &str, accept: &'static str| answer(daemon.request(Method::GET, path).header("accept", accept));

    let keys = daemon.get("/.well-known/jwks.json").await;
    assert_eq!((keys.status, keys.header("content-type")), (200, "application/jwk-set+json"));
    assert_eq!(keys.header("cache-control"), "public, max-age=600");
    assert_eq!(keys.json()["keys"].as_array().map(Vec::len), Some(2));
    assert!(keys.json()["keys"].as_array().is_some_and(|keys| keys.iter().all(|key| key.get("d").is_none())));
    let known = daemon.request(Method::GET, "/.well-known/jwks.json").header("if-none-match", keys.header("etag"));
    assert_eq!(answer(known).await.status, 304);
    let trusted = Ed25519KeySet::from_jwks(&keys.body).expect("a key set");

    let expected = ExpectedVerdict {
        name: EnsName::parse(GOOD).expect("a name"),
        profile: "agent-cards/1.0.0".to_owned(),
        depth: ResolutionDepth::Identity,
        chain: "eip155:31337".to_owned(),
        world: "lab".to_owned(),
        issuer: Some("https://clresolve.example".to_owned()),
        proof: None,
    };
    let (first, second, third) = (
        accepting(&verdict, "application/jose").await,
        accepting(&verdict, "application/jose").await,
        accepting(&verdict, "application/jose").await,
    );
    for signed in [&first, &second, &third] {
        assert_eq!((signed.status, signed.header("content-type")), (200, "application/jose"));
        assert_eq!(signed.header("vary"), "accept");
        let jws = std::str::from_utf8(&signed.body).expect("ASCII");
        let verified = verify_signed_verdict(jws, &trusted, &expected, Timestamp::now()).expect("it holds");
        assert_eq!(
            (verified.verdict().state, verified.key_id.as_str()),
            (TrustState::Trusted, key.public_key().thumbprint())
        );
    }
    assert_eq!(second.body, third.body, "what is served from the cache is signed once");
    let plain = daemon.get(&verdict).await;
    assert_eq!((plain.header("content-type"), plain.header("vary")), ("application/json", "accept"));
    assert_ne!(plain.header("etag"), second.header("etag"));
    let same = daemon.request(Method::GET, &verdict).header("accept", "application/jose");
    let same = answer(same.header("if-none-match", second.header("etag"))).await;
    assert_eq!((same.status, same.header("vary")), (304, "accept"));

    // A verdict that is never fresh is never signed.
    accepting("/v1/verdicts/no%20name", "application/jose").await.is_problem(406, "not-acceptable");
    let either = accepting("/v1/verdicts/no%20name", "application/jose, application/json;q=0.5").await;
    assert_eq!((either.status, either.header("content-type")), (200, "application/json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_without_a_key_has_no_signed_form_and_no_keys() {
    let daemon = Daemon::start(|_| {}).await;
    let signed = daemon.request(Method::GET, &format!("/v1/verdicts/{GOOD}")).header("accept", "application/jose");
    answer(signed).await.is_problem(406, "not-acceptable");
    let keys = daemon.get("/.well-known/jwks.json").await;
    keys.is_problem(404, "route-unknown");
    let said = keys.json()["detail"].as_str().expect("a detail").to_owned();
    assert!(said.contains("switched off; sign.key"), "{said}");
    let sandbox = Sandbox::start().await.expect("the sandbox starts");
    let mut config = patient(&sandbox);
    config.sign.key = Some("k.pem".into());
    assert!(matches!(HttpDaemon::bind(&config).await, Err(DaemonStartError::SandboxSigns)));
}

#[tokio::test]
async fn hosts_are_asked_for_cards_only_where_that_is_configured_and_within_the_limits_of_runs() {
    let path = "/v1/discover?url=https%3A%2F%2Fa2a.sandbox.example";
    let closed = Daemon::start(|_| {}).await;
    closed.get(path).await.is_problem(404, "route-unknown");

    let open = Daemon::start(|config| config.http.discover = true).await;
    let found = open.get(path).await;
    assert_eq!((found.status, found.header("cache-control")), (200, "no-store"));
    let body = found.json();
    assert_eq!((&body["schema"], &body["outcome"]), (&json!("clresolve.discovery/1"), &json!("valid")));
    assert_eq!((&body["cards"][0]["flavour"], &body["ens_bound"]), (&json!("a2a"), &Value::Null));
    let bound = open.get("/v1/discover?url=commandlayer.sandbox.example&bind=true").await.json();
    assert_eq!(bound["ens_bound"]["name"], GOOD);
    let system = open.get("/v1/discover?url=orloj.sandbox.example&system=research&as=orloj").await.json();
    assert_eq!(system["outcome"], "valid");
    let inside = open.get(&format!("/v1/discover?url=https%3A%2F%2F{}", open.authority)).await.json();
    assert_eq!(inside["outcome"], "undecided");
    assert_eq!(inside["places"][0]["outcome"], "forbidden");
    for bad in ["", "?url=http%3A%2F%2Fa.example", "?url=a.example&as=acme", "?url=a.example&x=1"] {
        open.get(&format!("/v1/discover{bad}")).await.is_problem(400, "request-malformed");
    }
    open.request(Method::POST, path).send().await.map(|answer| assert_eq!(answer.status(), 405)).expect("an answer");

    let spent = Daemon::start(|config| {
        config.http.discover = true;
        config.http.cold_runs_per_minute = 0;
    })
    .await;
    spent.get(path).await.is_problem(429, "client-over-quota");
}
