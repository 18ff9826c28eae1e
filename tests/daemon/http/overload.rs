//! Where every run or every place is taken: what is known is served on the report face, and what is not is refused at
//! once with the time to ask again.

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::freshness::{NAME, NodeBehaviour, OTHER, Scene};
use super::{Daemon, HttpResponse, PATIENCE, answer, ask_from, from, rest};

fn verdict(name: &str) -> String {
    format!("/v1/verdicts/{name}")
}

#[track_caller]
fn is_served(found: &HttpResponse) {
    assert_eq!((found.status, &found.json()["state"]), (200, &json!("trusted")));
    assert!(found.header("cache-status").starts_with("clresolve; hit"), "{}", found.header("cache-status"));
}

#[track_caller]
fn is_refused(refused: &HttpResponse) {
    refused.is_problem(503, "overloaded");
    assert_eq!(refused.header("retry-after"), "1");
}

/// Sends a batch of as many unknown names as one may have, and reads nothing.
async fn batch_from(address: &str, daemon: &Daemon) -> TcpStream {
    let names: Vec<String> = (0..100).map(|number| format!("n{number}.of-{}.eth", address.replace('.', "-"))).collect();
    let body = json!({ "names": names }).to_string();
    let head = format!(
        "POST /v1/verdicts HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = from(address, daemon).await;
    stream.write_all((head + &body).as_bytes()).await.expect("the daemon reads");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_name_is_served_while_every_run_is_taken() {
    // What the head confirms now stays confirmed while the node is silent.
    let limits = |config: &mut clresolve_resolver::config::Config| {
        (config.http.cold_runs, config.cache.max_unconfirmed) = (1, PATIENCE);
    };
    let (daemon, _clock, behaviour, mut asked) = Scene::new(limits).await.daemon().await;
    for path in [verdict(NAME), format!("/v1/gate/{NAME}")] {
        assert_eq!(daemon.get(&path).await.status, 200, "{path}");
    }
    behaviour.send_replace(NodeBehaviour::Holding);
    let before = *asked.borrow_and_update();
    let taken = tokio::spawn(daemon.request(Method::GET, &verdict(OTHER)).send());
    asked.wait_for(|asked| *asked > before).await.expect("the run asks the node");
    for _ in 0..3 {
        is_refused(&daemon.get(&verdict("third.eth")).await);
        is_served(&daemon.get(&verdict(NAME)).await);
        assert_eq!(daemon.get(&format!("/v1/gate/{NAME}")).await.status, 200);
        daemon.get("/v1/gate/third.eth").await.is_closed_gate("overloaded");
    }
    assert_eq!(*asked.borrow(), before + 1, "nothing else was run");
    behaviour.send_replace(NodeBehaviour::Honest);
    assert_eq!(taken.await.expect("no panic").expect("an answer").status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_name_is_served_while_every_place_is_taken() {
    let (daemon, _clock, behaviour, mut asked) = Scene::new(|config| config.http.requests = 1).await.daemon().await;
    let known = daemon.get(&verdict(NAME)).await;
    behaviour.send_replace(NodeBehaviour::Holding);
    let before = *asked.borrow_and_update();
    let holds = daemon.raw(format!("GET {} HTTP/1.1\r\nconnection: close\r\n\r\n", verdict(OTHER))).await;
    asked.wait_for(|asked| *asked > before).await.expect("the run asks the node");

    // Another client: the pages of other sites.
    let of_page = |method: Method, path: &str| daemon.request(method, path).header("sec-fetch-site", "cross-site");
    let get = async |path: &str| answer(of_page(Method::GET, path)).await;
    is_served(&get(&verdict(NAME)).await);
    is_served(&get(&format!("{}/", verdict(NAME))).await);
    is_served(&answer(of_page(Method::GET, &verdict(NAME)).header("cache-control", "no-cache")).await);
    let head = answer(of_page(Method::HEAD, &verdict(NAME))).await;
    assert_eq!((head.status, head.header("etag")), (200, known.header("etag")));
    // What takes a run, work or a place for long is refused, about a known name too.
    for path in ["/v1/profiles", &verdict("third.eth"), &verdict(OTHER), &format!("{}?profile=none", verdict(NAME))] {
        is_refused(&get(path).await);
    }
    for accept in ["text/event-stream", "application/jose"] {
        is_refused(&answer(of_page(Method::GET, &verdict(NAME)).header("accept", accept)).await);
    }
    let batch = of_page(Method::POST, "/v1/verdicts").header("content-type", "application/json");
    is_refused(&answer(batch.body(json!({"names": [NAME]}).to_string())).await);
    assert_eq!(*asked.borrow(), before + 1, "nothing else was run");

    behaviour.send_replace(NodeBehaviour::Honest);
    assert!(rest(holds).await.starts_with("HTTP/1.1 200 "));
    let is_free = async { while daemon.get("/v1/profiles").await.status != 200 {} };
    timeout(PATIENCE, is_free).await.expect("the place is given back");
}

/// What a refusal says must reach the page that is to wait, and a page that may not even ask would not know why.
#[tokio::test(flavor = "multi_thread")]
async fn pages_may_ask_and_read_refusals_while_every_place_is_taken() {
    const PAGE: &str = "https://app.example";
    const PERMITTED: &str = "access-control-allow-origin";
    let limits = |config: &mut clresolve_resolver::config::Config| {
        (config.http.requests, config.cors.origins) = (1, vec![PAGE.to_owned()]);
    };
    let (daemon, _clock, behaviour, mut asked) = Scene::new(limits).await.daemon().await;
    behaviour.send_replace(NodeBehaviour::Holding);
    let holds = daemon.raw(format!("GET {} HTTP/1.1\r\nconnection: close\r\n\r\n", verdict(OTHER))).await;
    asked.wait_for(|asked| *asked > 0).await.expect("the run asks the node");

    let of_page = |method: Method, path: &str| daemon.request(method, path).header("origin", PAGE);
    for path in [&*verdict(NAME), "/v1/lint", "/v1/nothing"] {
        let preflight = of_page(Method::OPTIONS, path).header("access-control-request-method", "POST");
        let preflight = answer(preflight).await;
        assert_eq!((preflight.status, preflight.header(PERMITTED)), (200, PAGE), "{path}");
        let refused = answer(of_page(Method::GET, path)).await;
        refused.is_problem(429, "client-over-quota");
        assert_eq!(refused.header(PERMITTED), PAGE, "{path}");
        assert!(refused.header("access-control-expose-headers").contains("retry-after"), "{path}");
    }
    let gate = of_page(Method::GET, "/v1/gate/no%20name");
    let gate = answer(gate).await;
    assert_eq!((gate.status, gate.header(PERMITTED)), (403, ""));

    behaviour.send_replace(NodeBehaviour::Honest);
    assert!(rest(holds).await.starts_with("HTTP/1.1 200 "));
    let unknown = answer(of_page(Method::GET, "/v1/nothing")).await;
    unknown.is_problem(404, "route-unknown");
    assert_eq!(unknown.header(PERMITTED), PAGE);
}

/// Four batches are in work, and may run two names at once. No further one waits for them anywhere.
#[tokio::test(flavor = "multi_thread")]
async fn cold_batches_wait_for_runs_within_their_places_and_others_are_refused() {
    let limits = |config: &mut clresolve_resolver::config::Config| {
        // A client has a quarter of the places.
        (config.http.requests, config.http.cold_runs, config.http.cold_runs_per_client) = (16, 2, 2);
    };
    let (daemon, _clock, behaviour, mut asked) = Scene::new(limits).await.daemon().await;
    assert_eq!(daemon.get(&verdict(NAME)).await.status, 200);
    behaviour.send_replace(NodeBehaviour::Holding);
    let before = *asked.borrow_and_update();
    let mut batches = Vec::new();
    for last in 2..6 {
        batches.push(batch_from(&format!("127.0.0.{last}"), &daemon).await);
    }
    for batch in &mut batches {
        let mut begin = [0; 12];
        timeout(PATIENCE, batch.read_exact(&mut begin)).await.expect("the answer begins").expect("all of it");
        assert_eq!(&begin, b"HTTP/1.1 200", "its place is taken");
    }
    daemon.get("/v1/profiles").await.is_problem(429, "client-over-quota");
    let both_ask = timeout(PATIENCE, asked.wait_for(|asked| *asked == before + 2)).await;
    both_ask.expect("both runs begin").expect("the runs ask the node");
    for last in 6..9 {
        let refused = rest(batch_from(&format!("127.0.0.{last}"), &daemon).await).await;
        assert!(refused.starts_with("HTTP/1.1 429 ") && refused.contains("\"client-over-quota\""), "{refused}");
    }
    is_served(&daemon.get(&verdict(NAME)).await);
    assert!(ask_from("127.0.0.9", &daemon, "/livez").await.starts_with("HTTP/1.1 200 "));
    assert_eq!(*asked.borrow(), before + 2, "seven hundred names, and two runs");

    behaviour.send_replace(NodeBehaviour::Honest);
    for batch in batches {
        let said = rest(batch).await;
        assert_eq!(said.matches("\"schema\":\"clresolve.verdict/1\"").count(), 100, "{said}");
    }
}
