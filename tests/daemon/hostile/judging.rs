//! The daemon as a process of its own, given the documents that cost most to judge: what it answers, the memory that it
//! uses above idle, and whether the gate still answers.

use clresolve_core::json::JsonLimits;
use clresolve_resolver::sandbox::CustomSandbox;
use futures_util::future::{join, join_all};
use reqwest::{Client, StatusCode};
use serde_json::Value;

use crate::hostile::memory::Daemon;
use crate::hostile::started::{gives_back, holds};
use crate::hostile::worst::{self, Judge, Seed};
use crate::hostile::worst_questions::Kind;
use crate::hostile::{HANGS, codes, spec, worst_receipts, worst_requests};
use crate::support::server::{Server, canary, ok};

/// Requests of one kind at once.
const AT_ONCE: usize = 3;

/// Connections that ask for new names, and how many each asks for.
const CONNECTIONS: usize = 4;
const NAMES_EACH: usize = 25;

const GOOD: &str = "[[agent]]\nname = \"good.eth\"\nabout = \"Is good.\"\n";

/// The known worst documents for `judge`.
pub(crate) fn known(judge: Judge) -> Vec<Vec<u8>> {
    let documents: Vec<_> = worst::known().iter().filter(|seed| seed.judge == judge).map(Seed::document).collect();
    assert!(!documents.is_empty());
    documents
}

/// An agent below whose parent every name has this card.
pub(crate) fn costly(name: &str, card: &[u8]) -> String {
    let text = serde_json::to_string(std::str::from_utf8(card).expect("UTF-8")).expect("a string");
    // A string of JSON is one of TOML, but for a slash that nothing here escapes.
    format!(
        "[[agent]]\nname = \"{name}\"\nabout = \"Is costly.\"\nchain = {{ resolver = \"parent-wildcard\" }}\n\
         card.text = {text}\n"
    )
}

/// A name of 64 KiB above tens of thousands of values that a schema refuses one by one.
fn long_name() -> Vec<u8> {
    let (name, items) = ("n".repeat(64 << 10), ",0".repeat(90_000));
    format!(r#"{{"url":"https://a.example/","protocolVersion":"0.3.0","security":[{{"{name}":[0{items}]}}]}}"#).into()
}

/// A card that promises as many verbs as fit, none of them a text.
fn verbs() -> Vec<u8> {
    let head = r#"{"ens":"a.worst.eth","class":"commons","implements":[0"#;
    let items = ",0".repeat((JsonLimits::CARD.bytes - head.len() - 2) / 2);
    format!("{head}{items}]}}").into()
}

fn client() -> Client {
    Client::builder().no_proxy().timeout(HANGS).build().expect("a client")
}

/// That the attacks have cost a daemon little memory, and that it gives most of that back.
#[track_caller]
fn withstood(what: &str, idle: u64, daemon: &Daemon) {
    holds(what, idle, daemon.peak());
    gives_back(what, idle, daemon.now());
}

async fn lint(client: &Client, daemon: &Daemon, document: Vec<u8>) -> (StatusCode, Value) {
    let request = client.post(format!("http://{}/v1/lint", daemon.address)).header("content-type", "application/json");
    let response = request.body(document).send().await.expect("an answer");
    (response.status(), serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON"))
}

/// Lints one good card, after which the idle daemon has its schemas and tables.
async fn warmed(client: &Client, daemon: &Daemon) {
    for card in [
        include_str!("../../../crates/sandbox/src/discovery/a2a.json"),
        r#"{"url":"u","protocolVersion":"0.3.0","defaultInputModes":[]}"#,
    ] {
        assert_eq!(lint(client, daemon, card.into()).await.0, StatusCode::OK);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_worst_documents_at_once_cost_lint_at_most_64_mib() {
    let proxy = canary().await;
    let world = CustomSandbox::start(&spec(GOOD)).await.unwrap();
    let daemon = Daemon::start(world.config(), &proxy);
    let client = client();
    warmed(&client, &daemon).await;
    let idle = daemon.peak();
    let hostile = [long_name(), verbs()];
    for document in &hostile {
        for (status, answer) in join_all((0..AT_ONCE).map(|_| lint(&client, &daemon, document.clone()))).await {
            assert_eq!((status, &answer["code"]), (StatusCode::UNPROCESSABLE_ENTITY, &"card-too-complex".into()));
            assert_eq!(answer["type"], "urn:clresolve:reason:card-too-complex");
        }
    }
    for document in known(Judge::Lint) {
        for (status, answer) in join_all((0..AT_ONCE).map(|_| lint(&client, &daemon, document.clone()))).await {
            assert!([StatusCode::OK, StatusCode::UNPROCESSABLE_ENTITY].contains(&status), "{status} {answer}");
        }
    }
    withstood("lint", idle, &daemon);
    let good = include_str!("../../../crates/sandbox/src/discovery/a2a.json");
    let (status, answer) = lint(&client, &daemon, good.into()).await;
    assert_eq!((status, &answer["valid"]), (StatusCode::OK, &Value::Bool(true)), "the next request is served");
}

/// What a seller sends is decided about, however much there is of it, and costs the gate nothing.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_worst_terms_at_once_cost_decisions_at_most_64_mib() {
    let proxy = canary().await;
    let world = CustomSandbox::start(&spec(GOOD)).await.unwrap();
    let daemon = Daemon::start(world.config(), &proxy);
    let client = client();
    warmed(&client, &daemon).await;
    let decide = async |route: &str, question: Vec<u8>| {
        let request = client.post(format!("http://{}{route}", daemon.address));
        let response =
            request.header("content-type", "application/json").body(question).send().await.expect("an answer");
        let status = response.status();
        (status, serde_json::from_slice::<Value>(&response.bytes().await.expect("a body")).expect("JSON"))
    };
    let small = br#"{"name":"good.eth","verb":"summarize","paymentRequired":{}}"#;
    assert_eq!(decide("/v1/decisions", small.to_vec()).await.0, StatusCode::OK);
    let idle = daemon.peak();
    for kind in Kind::ALL {
        let route = if kind == Kind::Signed { "/v1/decisions/signed" } else { "/v1/decisions" };
        for (status, answer) in join_all((0..AT_ONCE).map(|_| decide(route, kind.question()))).await {
            assert_eq!((status, &answer["abort"]), (StatusCode::OK, &Value::Bool(true)), "{kind:?}: {answer:#}");
        }
    }
    withstood("decisions", idle, &daemon);
    let (status, answer) = decide("/v1/decisions", small.to_vec()).await;
    assert_eq!((status, &answer["abort"]), (StatusCode::OK, &Value::Bool(true)), "the next question is answered");
}

/// What is sent about requests and receipts, however much there is of it, is judged, and costs little.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_worst_requests_and_receipts_at_once_cost_at_most_64_mib() {
    let proxy = canary().await;
    let world = CustomSandbox::start(&spec(GOOD)).await.unwrap();
    let daemon = Daemon::start(world.config(), &proxy);
    let client = client();
    warmed(&client, &daemon).await;
    let judge = async |route: &str, question: Vec<u8>| {
        let request = client.post(format!("http://{}{route}", daemon.address));
        let response =
            request.header("content-type", "application/json").body(question).send().await.expect("an answer");
        let status = response.status();
        (status, serde_json::from_slice::<Value>(&response.bytes().await.expect("a body")).expect("JSON"))
    };
    let small = [
        ("/v1/requests/check", r#"{"name":"good.eth","verb":"summarize","request":{}}"#),
        ("/v1/receipts/verify", r#"{"name":"good.eth","receipt":{},"request":{}}"#),
    ];
    for (route, question) in small {
        assert_eq!(judge(route, question.into()).await.0, StatusCode::OK, "{route}");
    }
    let idle = daemon.peak();
    let requests = worst_requests::Kind::ALL.map(|kind| (small[0].0, kind.question("good.eth", "summarize")));
    let receipts = worst_receipts::Kind::ALL.map(|kind| (small[1].0, kind.question("good.eth")));
    for (route, question) in requests.into_iter().chain(receipts) {
        for (status, answer) in join_all((0..AT_ONCE).map(|_| judge(route, question.clone()))).await {
            assert_eq!(status, StatusCode::OK, "{route}: {answer:#}");
            assert_ne!(answer["state"], "trusted", "{route}: {answer:#}");
        }
    }
    withstood("requests and receipts", idle, &daemon);
    for (route, question) in small {
        assert_eq!(judge(route, question.into()).await.0, StatusCode::OK, "{route}: the next question is answered");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_host_of_the_worst_documents_costs_discovery_at_most_64_mib() {
    const HOST: &str = "agent.example";
    let proxy = canary().await;
    let world = CustomSandbox::start(&spec(GOOD)).await.unwrap();
    let mut documents = known(Judge::Lint);
    documents.insert(0, long_name());
    // Each path has a document of its own, so that each is judged.
    let host = Server::tls(&[HOST], move |head| {
        let path = head.split(' ').nth(1).unwrap_or_default();
        ok(&documents[path.len() % documents.len()])
    })
    .await;
    let mut config = world.config();
    config.http.discover = true;
    config.network.connect_to.push(host.detour(&format!("{HOST}:443")).parse().unwrap());
    config.network.ca_pems.push(String::from_utf8(host.root.to_vec()).unwrap());
    let daemon = Daemon::start(config, &proxy);
    let client = client();
    warmed(&client, &daemon).await;
    let idle = daemon.peak();
    let discover = async || {
        let url = format!("http://{}/v1/discover?url=https://{HOST}", daemon.address);
        let response = client.get(url).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK);
        serde_json::from_slice::<Value>(&response.bytes().await.expect("a body")).expect("JSON")
    };
    for found in join_all((0..AT_ONCE).map(|_| discover())).await {
        assert_eq!(found["outcome"], "invalid", "{found:#}");
    }
    assert!(host.connections() > 0);
    withstood("discover", idle, &daemon);
    assert_eq!(discover().await["outcome"], "invalid", "the next question is answered");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn worst_cards_under_a_wildcard_leave_the_gate_its_cached_answers() {
    let proxy = canary().await;
    let worst = known(Judge::Verdict);
    let agents = [GOOD.to_owned(), costly("a.worst.eth", &verbs()), costly("b.worse.eth", &worst[0])].concat();
    let world = CustomSandbox::start(&spec(&agents)).await.unwrap();
    let mut config = world.config();
    config.gate.deadline = HANGS;
    let daemon = Daemon::start(config, &proxy);
    let client = client();
    let verdict = async |name: &str| {
        let response = client.get(format!("http://{}/v1/verdicts/{name}", daemon.address)).send().await.unwrap();
        serde_json::from_slice::<Value>(&response.bytes().await.unwrap()).unwrap()
    };
    let gate = async |name: &str| {
        let response = client.get(format!("http://{}/v1/gate/{name}", daemon.address)).send().await.unwrap();
        let code = response.headers().get("clresolve-code").map(|code| code.to_str().unwrap().to_owned());
        (response.status(), code)
    };
    assert_eq!(verdict("good.eth").await["state"], "trusted");
    let refused = verdict("a.worst.eth").await;
    assert_eq!(refused["state"], "untrusted");
    assert!(codes(&refused).contains("card-too-complex"), "{refused:#}");
    let (status, code) = gate("a.worst.eth").await;
    assert_eq!((status, code.as_deref()), (StatusCode::FORBIDDEN, Some("card-too-complex")));

    let idle = daemon.peak();
    let asking = join_all((0..CONNECTIONS).map(|connection| async move {
        for number in 0..NAMES_EACH {
            let parent = ["worst", "worse"][number % 2];
            assert_eq!(verdict(&format!("n{connection}-{number}.{parent}.eth")).await["state"], "untrusted");
        }
    }));
    let asked = std::sync::atomic::AtomicBool::new(false);
    let answered = async {
        let mut answers = 0;
        while !asked.load(std::sync::atomic::Ordering::Relaxed) {
            assert_eq!(gate("good.eth").await, (StatusCode::OK, None));
            answers += 1;
        }
        answers
    };
    let attack = async {
        asking.await;
        asked.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let (answers, ()) = join(answered, attack).await;
    // An answer that waited for judgements would come after them. Each line waits for one verdict at a time.
    let verdicts = CONNECTIONS * NAMES_EACH;
    println!("{answers} answers of the gate during {verdicts} verdicts");
    assert!(answers >= verdicts, "{answers} cached answers during {verdicts} verdicts");
    withstood("cards under a wildcard", idle, &daemon);
    assert_eq!(verdict("other.eth").await["state"], "untrusted", "the next question is answered");
}
