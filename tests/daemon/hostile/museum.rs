//! Museums of RPC endpoints, CCIP-Read gateways, IPFS gateways and card hosts. Each exhibit emulates known behaviour of
//! real ones, in place of the sandbox's own.
//!
//! Each exhibit serves one resolution alone and one beside an honest source. An RPC endpoint is also examined by
//! `doctor`. The results are in `docs/reference/`; `MUSEUM=write` regenerates these tables.

#[path = "museum/card_hosts.rs"]
mod card_hosts;
#[path = "museum/ccip_gateways.rs"]
mod ccip_gateways;
#[path = "museum/endpoints.rs"]
mod endpoints;
#[path = "museum/exhibit.rs"]
mod exhibit;
#[path = "museum/ipfs_gateways.rs"]
mod ipfs_gateways;

use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use clresolve_resolver::clock::SystemClock;
use clresolve_resolver::config::{ChainProofMode, Config, HedgeDelay, IpfsGateway, RpcEndpointConfig};
use clresolve_resolver::fetch::{Egress, EgressConfig};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::resolve::doctor::examine_upstreams;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_sandbox::IpfsGatewayBehaviour;
use serde_json::Value;
use url::Url;

use self::card_hosts::CardRequest;
use self::ccip_gateways::Lookup;
use self::endpoints::{OFF_CHAIN, ON_CHAIN, Reply, Visit};
use self::exhibit::{Exhibit, Row, cell, hold, outcome};
use crate::hostile::gateways::{Deep, LIMIT};
use crate::hostile::{expect, patient, spec};
use crate::support::faults::{Fault, GatewayQuery};
use crate::support::proxy::Proxy;
use crate::support::server::{Answer, Server};

/// Time limit of a question to an endpoint that never answers.
const SHORT: Duration = Duration::from_secs(3);

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

fn endpoint(proxy: &Proxy, label: &str) -> RpcEndpointConfig {
    RpcEndpointConfig { operator: label.to_owned(), label: label.to_owned(), url: proxy.url(), own: true }
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
    world: CustomSandbox,
    honest: Value,
}

impl Stage {
    async fn new() -> Self {
        let agents = [ON_CHAIN, OFF_CHAIN].map(|name| {
            let chain = match name {
                OFF_CHAIN => {
                    "chain = { resolver = { offchain = [\"https://ccip.sandbox.example/ok/{sender}/{data}.json\"] } }\n"
                }
                _ => "",
            };
            format!("[[agent]]\nname = \"{name}\"\nabout = \"Good.\"\nstate = \"trusted\"\n{chain}")
        });
        let world = CustomSandbox::start(&spec(&agents.concat())).await.unwrap();
        let honest = crate::hostile::judged(&patient(&world), ON_CHAIN).await;
        expect("the honest world", &honest, "trusted", &[]);
        Self { world, honest }
    }

    fn upstream(&self) -> Url {
        self.world.config().chain.endpoints[0].url.clone()
    }

    /// The configuration with these endpoints, of which `quorum` must agree.
    fn config(&self, endpoints: Vec<RpcEndpointConfig>, quorum: usize) -> Config {
        let mut config = patient(&self.world);
        config.chain.endpoints = endpoints;
        config.chain.proof = Some(if quorum > 1 { ChainProofMode::Quorum } else { ChainProofMode::SingleRpc });
        config.chain.quorum = (quorum > 1).then_some(quorum);
        config
    }

    /// The row of an exhibit.
    async fn visit(&self, exhibit: &Exhibit<fn(&Visit) -> Reply>) -> Row {
        let proxy = exhibited(self.upstream(), exhibit.answer).await;
        let honest = exhibited(self.upstream(), endpoints::honest).await;
        let third = exhibited(self.upstream(), endpoints::honest).await;
        let mut alone = self.config(vec![endpoint(&proxy, "endpoint")], 1);
        if exhibit.is_silent {
            alone.timeout = SHORT;
        }
        let verdict = crate::hostile::judged(&alone, exhibit.asked).await;
        let among = vec![endpoint(&proxy, "endpoint"), endpoint(&honest, "second"), endpoint(&third, "third")];
        let beside = crate::hostile::judged(&self.config(among, 2), ON_CHAIN).await;
        expect(&format!("{} beside two others", exhibit.name), &beside, "trusted", &[]);
        assert_eq!(beside["conclusion"], self.honest["conclusion"], "{}", exhibit.name);

        let found = examine_upstreams(&alone, &SystemClock).await.unwrap();
        let mut doctor: Vec<String> =
            found.advice.iter().filter_map(|advice| advice.strip_prefix("endpoint ")).map(finding).collect();
        let lacks: Vec<&str> = found.endpoints[0].lacks.iter().map(|lack| lack.as_str()).collect();
        if !lacks.is_empty() && found.endpoints[0].reachable {
            doctor.push(format!("without {}", lacks.join(", ")));
        }
        exhibit.row(outcome(&verdict), [cell(exhibit.cause(&verdict)), cell(&doctor.join("; "))])
    }
}

/// What the doctor finds, without the cause and the advice.
fn finding(advice: &str) -> String {
    let end = advice.find([':', '(']).unwrap_or(advice.len());
    advice[..end].trim_end().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_real_endpoints_do_leads_where_the_table_says() {
    let stage = Stage::new().await;
    let rows = endpoints::ALL.iter().map(|exhibit| stage.visit(exhibit)).collect();
    hold("docs/reference/endpoints.md", endpoints::HEADING, &endpoints::COLUMNS, rows).await;
}

/// The six default endpoints with the limits that their operators document, two of them dead.
#[tokio::test(flavor = "multi_thread")]
async fn the_default_endpoints_as_they_are_resolve_a_name_with_two_of_them_dead() {
    let stage = Stage::new().await;
    let mut proxies = Vec::new();
    for answer in endpoints::DEFAULTS {
        proxies.push(exhibited(stage.upstream(), answer).await);
    }
    for dead in [[0, 1], [2, 3], [4, 5], [0, 3], [1, 4]] {
        let down = exhibited(stage.upstream(), endpoints::dead).await;
        let endpoints = proxies.iter().enumerate().map(|(place, proxy)| {
            let proxy = if dead.contains(&place) { &down } else { proxy };
            endpoint(proxy, &format!("operator-{place}"))
        });
        let endpoints = endpoints.collect();
        let verdict = crate::hostile::judged(&stage.config(endpoints, 2), ON_CHAIN).await;
        expect(&format!("{dead:?} dead"), &verdict, "trusted", &[]);
        assert_eq!(verdict["conclusion"], stage.honest["conclusion"]);
    }
}

/// Three HTTP requests read the records: a batch of three, one request that follows, and block 0. One more reads the
/// owner's address.
#[tokio::test(flavor = "multi_thread")]
async fn cold_resolution_sends_each_default_endpoint_four_requests_at_most() {
    let stage = Stage::new().await;
    let mut proxies = Vec::new();
    for answer in endpoints::DEFAULTS {
        proxies.push(exhibited(stage.upstream(), answer).await);
    }
    let endpoints =
        proxies.iter().enumerate().map(|(place, proxy)| endpoint(proxy, &format!("operator-{place}"))).collect();
    let verdict = crate::hostile::judged(&stage.config(endpoints, 2), ON_CHAIN).await;
    expect("the defaults", &verdict, "trusted", &[]);
    let requests: Vec<usize> = proxies.iter().map(Proxy::requests).collect();
    assert!(requests[..3].iter().all(|count| (1..=4).contains(count)), "{requests:?}");
    assert_eq!(requests[3..], [0; 3], "three are asked concurrently");
}

/// The configuration with `server` instead of `host`, and with a shorter timeout if the exhibit never answers.
fn led_to<A>(mut config: Config, server: &Server, host: &str, exhibit: &Exhibit<A>) -> Config {
    config.network.connect_to.insert(0, server.detour(&format!("{host}:443")).parse().unwrap());
    config.network.ca_pems.push(String::from_utf8(server.root.to_vec()).unwrap());
    if exhibit.is_silent {
        config.timeout = LIMIT;
    }
    config
}

struct OffChainStage {
    world: CustomSandbox,
    upstream: Egress,
}

impl OffChainStage {
    /// For each template, one agent whose only gateway is the exhibit, and one with an honest gateway after it.
    async fn new() -> Self {
        let agents = ccip_gateways::AGENTS.map(|(name, template)| {
            let agent = |name: &str, urls: &[&str]| {
                format!(
                    "[[agent]]\nname = {name:?}\nabout = \"Good.\"\nstate = \"trusted\"\n\
                     chain = {{ resolver = {{ offchain = {urls:?} }} }}\n"
                )
            };
            agent(name, &[template]) + &agent(&format!("next-{name}"), &[template, ccip_gateways::HONEST])
        });
        let world = CustomSandbox::start(&spec(&agents.concat())).await.unwrap();
        let network = world.config().network;
        let upstream = EgressConfig {
            connect_to: network.connect_to,
            extra_roots: network.ca_pems.into_iter().map(Bytes::from).collect(),
            ..EgressConfig::default()
        };
        Self { upstream: Egress::new(upstream).unwrap(), world }
    }

    async fn visit(&self, exhibit: &Exhibit<fn(&Lookup) -> Answer>) -> Row {
        let (upstream, answer) = (self.upstream.clone(), exhibit.answer);
        let server =
            Server::tls(&[ccip_gateways::HOST], move |request| answer(&Lookup::of(request, upstream.clone()))).await;
        let config = led_to(patient(&self.world), &server, ccip_gateways::HOST, exhibit);
        let alone = crate::hostile::judged(&config, exhibit.asked).await;
        assert!(server.connections() > 0, "{}", exhibit.name);
        let before = crate::hostile::judged(&config, &format!("next-{}", exhibit.asked)).await;
        let verdicts = format!("{}; before an honest gateway: {}", outcome(&alone), outcome(&before));
        exhibit.row(verdicts, [cell(exhibit.cause(&alone))])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_real_ccip_gateways_do_leads_where_the_table_says() {
    let stage = OffChainStage::new().await;
    let rows = ccip_gateways::ALL.iter().map(|exhibit| stage.visit(exhibit)).collect();
    hold("docs/reference/ccip-gateways.md", ccip_gateways::HEADING, &ccip_gateways::COLUMNS, rows).await;
}

async fn visit_ipfs_gateway(deep: &Deep, exhibit: &Exhibit<Fault>) -> Row {
    let (content, answer) = (deep.content.clone(), exhibit.answer);
    let server = Server::tls(&[ipfs_gateways::HOST], move |head| answer(&GatewayQuery::of(&content, head))).await;
    let url = format!("https://{}/", ipfs_gateways::HOST).parse().unwrap();
    let gateway = IpfsGateway { label: "gateway".to_owned(), url, own: false };
    let with = |gateways| led_to(deep.with_gateways(gateways), &server, ipfs_gateways::HOST, exhibit);
    let alone = crate::hostile::judged(&with(vec![gateway.clone()]), exhibit.asked).await;
    assert!(server.connections() > 0, "{}", exhibit.name);

    let mut among = with(vec![gateway, deep.world.ipfs_gateway(IpfsGatewayBehaviour::Ok)]);
    among.network.hedging = HedgeDelay::Learnt;
    let beside = crate::hostile::judged(&among, exhibit.asked).await;
    assert_eq!(beside["conclusion"], deep.conclusion, "{}: {:#}", exhibit.name, beside["reasons"]);
    exhibit.row(outcome(&alone), [cell(exhibit.cause(&alone))])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_real_ipfs_gateways_do_leads_where_the_table_says() {
    let deep = Deep::new().await;
    let rows = ipfs_gateways::ALL.iter().map(|exhibit| visit_ipfs_gateway(&deep, exhibit)).collect();
    hold("docs/reference/ipfs-gateways.md", ipfs_gateways::HEADING, &ipfs_gateways::COLUMNS, rows).await;
}

struct CardStage {
    world: CustomSandbox,
    card: Bytes,
}

impl CardStage {
    async fn new() -> Self {
        let name = card_hosts::NAME;
        let agent = format!("[[agent]]\nname = {name:?}\nabout = \"Good.\"\nstate = \"trusted\"\n");
        let world = CustomSandbox::start(&spec(&agent)).await.unwrap();
        let resolver = Resolver::new(&patient(&world)).await.unwrap();
        let card = crate::hostile::resolved(&resolver, name).await.card_bytes().cloned().unwrap();
        Self { world, card }
    }

    async fn visit(&self, exhibit: &Exhibit<fn(&CardRequest) -> Answer>) -> Row {
        let (card, answer) = (self.card.clone(), exhibit.answer);
        let server = Server::tls(&card_hosts::HOSTS, move |head| answer(&CardRequest { head, card: &card })).await;
        let mut config = patient(&self.world);
        for host in card_hosts::HOSTS {
            config = led_to(config, &server, host, exhibit);
        }
        let beside = crate::hostile::judged(&config, exhibit.asked).await;
        assert!(server.connections() > 0, "{}", exhibit.name);
        config.gateways = vec![self.world.ipfs_gateway(IpfsGatewayBehaviour::Missing)];
        let alone = crate::hostile::judged(&config, exhibit.asked).await;
        let verdicts = format!("{}; with a gateway: {}", outcome(&alone), outcome(&beside));
        exhibit.row(verdicts, [cell(exhibit.cause(&alone))])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_real_card_hosts_do_leads_where_the_table_says() {
    let stage = CardStage::new().await;
    let rows = card_hosts::ALL.iter().map(|exhibit| stage.visit(exhibit)).collect();
    hold("docs/reference/card-hosts.md", card_hosts::HEADING, &card_hosts::COLUMNS, rows).await;
}
