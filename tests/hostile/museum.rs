//! A museum of RPC endpoints. Each exhibit is a proxy in front of the sandbox's endpoint that emulates known behaviour.
//!
//! Each exhibit serves one resolution alone and one beside two honest endpoints, and is examined by `doctor`. The
//! results are in `docs/reference/endpoints.md`; `MUSEUM=write` regenerates that file.

#[path = "museum/exhibits.rs"]
mod exhibits;

use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use clresolve_resolver::clock::SystemClock;
use clresolve_resolver::config::{Config, Endpoint, ProofDemand};
use clresolve_resolver::resolve::doctor::examine;
use clresolve_resolver::sandbox::World;
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;
use url::Url;

use self::exhibits::{ALL, Exhibit, Name, Reply, Visit};
use crate::proxy::Proxy;
use crate::{expect, patient, spec};

const TABLE: &str = "docs/reference/endpoints.md";

/// Time limit of a question to an endpoint that never answers.
const SHORT: Duration = Duration::from_secs(3);

/// Exhibits that are visited concurrently.
const AT_ONCE: usize = 4;

/// The exhibit, before the endpoint at `upstream`.
async fn exhibited(upstream: Url, answer: fn(&Visit) -> Reply) -> Proxy {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let passes = move |body: Bytes| {
        let (http, upstream) = (http.clone(), upstream.clone());
        async move {
            let request: Value = serde_json::from_slice(&body).expect("clresolve sends JSON");
            let honest = http.post(upstream).body(body).send().await.expect("the endpoint answers");
            let honest = serde_json::from_slice(&honest.bytes().await.unwrap()).expect("it sends JSON");
            sent(answer(&Visit { request, honest })).await
        }
    };
    Proxy::serving(Router::new().fallback(passes)).await
}

fn endpoint(proxy: &Proxy, label: &str) -> Endpoint {
    Endpoint { operator: label.to_owned(), label: label.to_owned(), url: proxy.url(), own: true }
}

async fn sent(reply: Reply) -> Response<axum::body::Body> {
    let Reply::Whole { status, headers, body } = reply else { return std::future::pending().await };
    let mut response = Response::new(body.into());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

struct Stage {
    world: World,
    honest: Value,
}

impl Stage {
    async fn new() -> Self {
        let agents = ["on-chain.eth", "off-chain.eth"].map(|name| {
            let chain = match name {
                "off-chain.eth" => {
                    "chain = { resolver = { offchain = [\"https://ccip.sandbox.example/ok/{sender}/{data}.json\"] } }\n"
                }
                _ => "",
            };
            format!("[[agent]]\nname = \"{name}\"\nabout = \"Good.\"\nstate = \"trusted\"\n{chain}")
        });
        let world = World::start(&spec(&agents.concat())).await.unwrap();
        let honest = crate::judged(&patient(&world), Name::OnChain.as_str()).await;
        expect("the honest world", &honest, "trusted", &[]);
        Self { world, honest }
    }

    fn upstream(&self) -> Url {
        self.world.config().chain.endpoints[0].url.clone()
    }

    /// The configuration with these endpoints, of which `quorum` must agree.
    fn config(&self, endpoints: Vec<Endpoint>, quorum: usize) -> Config {
        let mut config = patient(&self.world);
        config.chain.endpoints = endpoints;
        config.chain.proof = Some(if quorum > 1 { ProofDemand::Quorum } else { ProofDemand::SingleRpc });
        config.chain.quorum = (quorum > 1).then_some(quorum);
        config
    }

    /// The row of an exhibit.
    async fn visit(&self, exhibit: &Exhibit) -> String {
        let proxy = exhibited(self.upstream(), exhibit.answer).await;
        let honest = exhibited(self.upstream(), exhibits::honest).await;
        let third = exhibited(self.upstream(), exhibits::honest).await;
        let mut alone = self.config(vec![endpoint(&proxy, "endpoint")], 1);
        if exhibit.is_silent {
            alone.timeout = SHORT;
        }
        let verdict = crate::judged(&alone, exhibit.asked.as_str()).await;
        let among = vec![endpoint(&proxy, "endpoint"), endpoint(&honest, "second"), endpoint(&third, "third")];
        let beside = crate::judged(&self.config(among, 2), Name::OnChain.as_str()).await;
        expect(&format!("{} beside two others", exhibit.name), &beside, "trusted", &[]);
        assert_eq!(beside["conclusion"], self.honest["conclusion"], "{}", exhibit.name);

        let found = examine(&alone, &SystemClock).await.unwrap();
        let mut doctor: Vec<String> =
            found.advice.into_iter().filter(|advice| advice.starts_with("endpoint ")).collect();
        let lacks: Vec<&str> = found.endpoints[0].lacks.iter().map(|lack| lack.as_str()).collect();
        if !lacks.is_empty() && found.endpoints[0].reachable {
            doctor.push(format!("without {}", lacks.join(", ")));
        }
        let code = first_code(&verdict).map(|code| format!(" (`{code}`)")).unwrap_or_default();
        format!(
            "| {} | {} | {} | {}{code} | {} | {} |\n",
            exhibit.name,
            exhibit.what,
            exhibit.seen,
            verdict["state"].as_str().unwrap(),
            cell(cause(&verdict)),
            cell(&doctor.join("; ")),
        )
    }
}

fn first_code(verdict: &Value) -> Option<&str> {
    verdict["reasons"][0]["code"].as_str().filter(|code| *code != "record-offchain")
}

/// The cause that the verdict states.
fn cause(verdict: &Value) -> &str {
    let stated = first_code(verdict).and_then(|_| verdict["reasons"][0]["observed"].as_str()).unwrap_or_default();
    stated.strip_prefix("no RPC endpoint answered: endpoint: ").unwrap_or(stated)
}

fn cell(text: &str) -> String {
    if text.is_empty() { "–".to_owned() } else { format!("`{}`", text.replace('|', "\\|").replace('`', "'")) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_real_endpoints_do_leads_where_the_table_says() {
    let stage = Stage::new().await;
    let rows = ALL.iter().map(|exhibit| stage.visit(exhibit));
    let rows: Vec<String> = stream::iter(rows.collect::<Vec<_>>()).buffered(AT_ONCE).collect().await;
    let table = format!("{}{}", exhibits::HEADING, rows.concat());
    if std::env::var_os("MUSEUM").is_some_and(|word| word == "write") {
        std::fs::write(TABLE, &table).unwrap();
    }
    let kept = std::fs::read_to_string(TABLE).unwrap_or_default();
    for (found, kept) in table.lines().zip(kept.lines()) {
        assert_eq!(found, kept, "run MUSEUM=write cargo test --test hostile museum");
    }
    assert_eq!(table, kept, "run MUSEUM=write cargo test --test hostile museum");
}

/// The six default endpoints with the limits that their operators document, two of them dead.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_endpoints_as_they_are_resolve_a_name_with_two_of_them_dead() {
    let stage = Stage::new().await;
    let mut proxies = Vec::new();
    for answer in exhibits::DEFAULTS {
        proxies.push(exhibited(stage.upstream(), answer).await);
    }
    for dead in [[0, 1], [2, 3], [4, 5], [0, 3], [1, 4]] {
        let down = exhibited(stage.upstream(), exhibits::dead).await;
        let endpoints = proxies.iter().enumerate().map(|(place, proxy)| {
            let proxy = if dead.contains(&place) { &down } else { proxy };
            endpoint(proxy, &format!("operator-{place}"))
        });
        let endpoints = endpoints.collect();
        let verdict = crate::judged(&stage.config(endpoints, 2), Name::OnChain.as_str()).await;
        expect(&format!("{dead:?} dead"), &verdict, "trusted", &[]);
        assert_eq!(verdict["conclusion"], stage.honest["conclusion"]);
    }
}
