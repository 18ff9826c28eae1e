//! Faults of configured endpoints, and where an operator sees each: in `doctor`, in verdicts and in metrics.
//!
//! Each test runs on a single thread, so that its thread-local recorder counts this test only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use clresolve_resolver::clock::{Clock, SystemClock};
use clresolve_resolver::config::{ChainProofMode, Config, RpcEndpointConfig};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::resolve::doctor::examine_upstreams;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_resolver::telemetry::PrometheusExposition;
use clresolve_sandbox::ServedChainState;
use clresolve_sandbox::chain::SandboxRpcFault;
use jiff::{SignedDuration, Timestamp};
use reqwest::Client;
use serde_json::{Value, json};
use url::Url;

use crate::hostile::{HANGS, patient, resolved, spec};
use crate::support::proxy::Proxy;

const NAME: &str = "good.eth";

/// A clock that is ahead by this number of minutes.
struct Ahead(i64);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_mins(self.0)
    }
}

async fn world() -> CustomSandbox {
    CustomSandbox::start(&spec(&format!("[[agent]]\nname = \"{NAME}\"\nabout = \"Good.\"\nstate = \"trusted\"\n")))
        .await
        .unwrap()
}

/// The world's configuration with these endpoints. One endpoint suffices for a resolution.
fn config(world: &CustomSandbox, endpoints: Vec<RpcEndpointConfig>) -> Config {
    let mut config = patient(world);
    config.chain.endpoints = endpoints;
    config.chain.proof = Some(ChainProofMode::SingleRpc);
    config
}

/// A proxy for the world's endpoint that changes each request.
async fn before(
    world: &CustomSandbox,
    change: impl Fn(&mut Value) + Send + Sync + 'static,
) -> (RpcEndpointConfig, Proxy) {
    let upstream: Url = world.config().chain.endpoints[0].url.clone();
    let (http, change) = (Client::builder().no_proxy().build().unwrap(), Arc::new(change));
    let passes = move |body: Bytes| {
        let (http, upstream, change) = (http.clone(), upstream.clone(), Arc::clone(&change));
        async move {
            let mut request: Value = serde_json::from_slice(&body).unwrap();
            match &mut request {
                Value::Array(requests) => requests.iter_mut().for_each(|request| change(request)),
                request => change(request),
            }
            let reply = http.post(upstream).body(request.to_string()).send().await.unwrap();
            reply.text().await.unwrap()
        }
    };
    let proxy = Proxy::serving(Router::new().fallback(passes)).await;
    (RpcEndpointConfig { label: "bad".to_owned(), operator: "bad".to_owned(), url: proxy.url(), own: true }, proxy)
}

/// The advice of `doctor`, as one text.
async fn advice(config: &Config, clock: &dyn Clock) -> String {
    examine_upstreams(config, clock).await.unwrap().advice.join("\n")
}

/// The state of the verdict, and its reasons as one text.
async fn verdict(config: &Config, clock: Arc<dyn Clock>) -> (String, String) {
    let resolver = Resolver::with_clock(config, clock).await.unwrap();
    let verdict = crate::hostile::json(&resolved(&resolver, NAME).await);
    (verdict["state"].as_str().unwrap().to_owned(), verdict["reasons"].to_string())
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Checks that `doctor`, the verdict and the metrics show the fault of the only endpoint.
async fn shows(config: &Config, minutes: i64, doctor: &str, reasons: &[&str], metric: &str) {
    let counts = PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    assert_says(&advice(config, &Ahead(minutes)).await, &[doctor]);
    let (state, found) = verdict(config, Arc::new(Ahead(minutes))).await;
    assert_eq!(state, "indeterminate", "{found}");
    assert_says(&found, reasons);
    assert_says(&counts.render(), &[metric]);
}

#[tokio::test]
async fn endpoint_on_another_chain() {
    let world = world().await;
    let other =
        world.start_rpc_endpoint(SandboxRpcFault::WrongChainId(5), ServedChainState::Growing, true).await.unwrap();
    let config = config(&world, vec![RpcEndpointConfig { label: "bad".to_owned(), ..other }]);
    let metric = "clresolve_rpc_answers_refused_total{endpoint=\"bad\",why=\"wrong-chain\"}";
    shows(&config, 0, "bad serves chain 5, not chain 31337", &["chain 5"], metric).await;
}

#[tokio::test]
async fn endpoint_that_answers_for_another_block() {
    let world = world().await;
    let (endpoint, _proxy) = before(&world, |request| {
        if request["method"] == "eth_call" {
            request["params"][1] = json!("latest");
        }
    })
    .await;
    let cause = "a call by block hash ran in another block";
    let doctor = format!("bad answers, but resolutions through it fail ({cause}): take it out");
    let metric = "clresolve_rpc_answers_refused_total{endpoint=\"bad\",why=\"other-block\"}";
    shows(&config(&world, vec![endpoint]), 0, &doctor, &["rpc-unreachable", cause], metric).await;
}

/// `tests/daemon/hostile/heads.rs` tests that such an endpoint beside two others changes no verdict.
#[tokio::test]
async fn head_that_runs_backwards() {
    let counts = PrometheusExposition::default();
    let _counting = metrics::set_default_local_recorder(&counts);
    let (world, asked) = (world().await, AtomicUsize::new(0));
    let (endpoint, _proxy) = before(&world, move |request| {
        let is_poll = request["method"] == "eth_getBlockByNumber" && request["params"][0] == "latest";
        if is_poll && asked.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            request["params"][0] = json!("0x1");
        }
    })
    .await;
    let mut config = config(&world, vec![endpoint]);
    let found = advice(&config, &SystemClock).await;
    assert_says(&found, &["bad runs backwards, its newest block was ", " and then 1: take it out"]);
    config.chain.head_poll = Duration::from_millis(1);
    let resolver = Resolver::new(&config).await.unwrap();
    let _following = resolver.follow_heads();
    let metric = "clresolve_rpc_heads_refused_total{endpoint=\"bad\",why=\"backwards\"}";
    let counted = async {
        while !counts.render().contains(metric) {
            // This makes the name hot.
            let _ = resolver.check_gate(NAME, "summarize").await;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANGS, counted).await.expect("the step back is counted");
}

#[tokio::test]
async fn head_that_never_advances() {
    let world = world().await;
    let mut config = patient(&world);
    config.chain.max_head_age = Some(Duration::from_secs(60));
    let label = config.chain.endpoints[0].label.clone();
    let metric = format!("clresolve_rpc_heads_refused_total{{endpoint=\"{label}\",why=\"old\"}}");
    let doctor = format!("{label} is behind, its finalized block is ");
    shows(&config, 46, &doctor, &["chain-behind"], &metric).await;
    let doctor = format!("{label} stands still, its newest block ");
    shows(&config, 2, &doctor, &["at most 60 s are allowed"], &metric).await;
}

/// Two endpoints of one operator agree, and the other operator is down.
#[tokio::test]
async fn operator_that_is_listed_twice() {
    let world = world().await;
    let own = world.config().chain.endpoints[0].clone();
    let of = |label: &str, operator: &str, url: &Url| RpcEndpointConfig {
        label: label.to_owned(),
        operator: operator.to_owned(),
        url: url.clone(),
        own: false,
    };
    let down = "http://127.0.0.1:1".parse().unwrap();
    let endpoints = vec![of("first", "one", &own.url), of("second", "one", &own.url), of("third", "two", &down)];
    let mut config = config(&world, endpoints);
    config.chain.proof = Some(ChainProofMode::Quorum);
    let doctor = "endpoints of 2 operators are needed, and 1 can be used (first and second count once)";
    let metric = "clresolve_upstream_up{kind=\"rpc\",endpoint=\"third\"} 0";
    shows(&config, 0, doctor, &["rpc-unreachable", "third"], metric).await;
}
