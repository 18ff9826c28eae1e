//! Payees on Base. A name publishes its payee on mainnet, by the address record for Base or by the default one for all
//! EVM chains. Only a registration is read from Base itself: here through the public endpoints without keys that
//! wallets and libraries ship for Base, emulated with their reported limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clresolve_payment::PaymentDecisionRequest;
use clresolve_payment::decision::{DecisionOutcome, PaymentDecision};
use clresolve_resolver::config::{ChainId, ChainProofMode, Config, RegistryChainConfig, RpcEndpointConfig};
use clresolve_resolver::resolve::Resolver;
use clresolve_resolver::sandbox::CustomSandbox;
use clresolve_verdict::evidence::links::RegisteredAgentId;
use reqwest::Client;
use serde_json::{Value, json};
use url::Url;

use crate::hostile::{patient, spec};
use crate::support::proxy::Proxy;

const BASE: u64 = 8453;
const USDC: &str = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";

/// The payee of the sandbox's honest sellers.
const PAYEE: &str = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

const NAME: &str = "seller.eth";

/// Maximum age of the newest block. The sandbox adds no block while a test runs.
const HEAD_AGE: Duration = Duration::from_secs(3600);

/// An operator's limits.
#[derive(Clone, Copy)]
struct Limits {
    label: &'static str,
    /// Maximum number of requests in a batch, and the status and error for longer batches.
    batch: Option<(usize, StatusCode, i64, &'static str)>,
    /// Size of the rate limit's token bucket, in requests. It does not refill during a test.
    bucket: Option<usize>,
    /// Whether it refuses HTTP requests that ask for block 0.
    refuses_old_blocks: bool,
}

const UNLIMITED: Limits = Limits { label: "", batch: None, bucket: None, refuses_old_blocks: false };

/// The limit of drpc.org and 1rpc.io, and their answer to a longer batch.
const BATCH_OF_THREE: Option<(usize, StatusCode, i64, &str)> =
    Some((3, StatusCode::INTERNAL_SERVER_ERROR, 31, "Batch of more than 3 requests are not allowed on free plan"));

/// The public endpoints for Base, in the order in which a configuration may name them.
const OPERATORS: [Limits; 4] = [
    // A burst of five, and then one request in two seconds, each request of a batch counted (base/node #390).
    Limits {
        label: "mainnet.base.org",
        batch: Some((10, StatusCode::OK, -32014, "maximum 10 calls in 1 batch")),
        bucket: Some(5),
        ..UNLIMITED
    },
    Limits { label: "base-rpc.publicnode.com", refuses_old_blocks: true, ..UNLIMITED },
    Limits { label: "base.drpc.org", batch: BATCH_OF_THREE, ..UNLIMITED },
    Limits { label: "1rpc.io", batch: BATCH_OF_THREE, ..UNLIMITED },
];

/// An emulated endpoint for Base in front of the sandbox's endpoint.
struct Operator {
    limits: Limits,
    http: Client,
    upstream: Url,
    asked: AtomicUsize,
}

impl Operator {
    async fn answer(&self, body: Bytes) -> (StatusCode, String) {
        let request: Value = serde_json::from_slice(&body).unwrap();
        let requests = request.as_array().map_or_else(|| std::slice::from_ref(&request), Vec::as_slice);
        let before = self.asked.fetch_add(requests.len(), Ordering::Relaxed);
        let is_old = |request: &Value| request["params"][0] == "0x0";
        if self.limits.refuses_old_blocks && requests.iter().any(is_old) {
            return (StatusCode::FORBIDDEN, "Archive requests require a personal token".to_owned());
        }
        if let Some((most, status, code, message)) = self.limits.batch
            && requests.len() > most
        {
            return (status, json!({"jsonrpc": "2.0", "id": null, "error": error(code, message)}).to_string());
        }
        let left = self.limits.bucket.map_or(usize::MAX, |bucket| bucket.saturating_sub(before));
        if left == 0 {
            let refused = json!({"jsonrpc": "2.0", "id": requests[0]["id"], "error": error(-32016, "over rate limit")});
            return (StatusCode::TOO_MANY_REQUESTS, refused.to_string());
        }
        let reply = self.http.post(self.upstream.clone()).body(body).send().await.unwrap();
        let mut answers: Value = serde_json::from_slice(&reply.bytes().await.unwrap()).unwrap();
        for (place, request) in requests.iter().enumerate() {
            let answer = match &mut answers {
                Value::Array(answers) => answers.iter_mut().find(|answer| answer["id"] == request["id"]).unwrap(),
                single => single,
            };
            if place >= left {
                *answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": error(-32016, "over rate limit")});
            } else if request["method"] == "eth_chainId" {
                answer["result"] = json!(format!("{BASE:#x}"));
            }
        }
        (StatusCode::OK, answers.to_string())
    }
}

fn error(code: i64, message: &str) -> Value {
    json!({"code": code, "message": message})
}

/// A world with a seller whose price is on Base, and endpoints for Base.
struct Stage {
    world: CustomSandbox,
    operators: Vec<(Arc<Operator>, Proxy)>,
}

impl Stage {
    /// `addresses` and `keys` are the seller's address records and further keys of its definition.
    async fn new(addresses: &str, keys: &str) -> Self {
        let seller = format!(
            "[[agent]]\nname = \"{NAME}\"\nabout = \"It sells.\"\nstate = \"trusted\"\nseller = \"\"\n\
             addresses = {{ 31337 = \"0x\", 84532 = \"0x\", {addresses} }}\n{keys}\n"
        );
        let world = CustomSandbox::start(&spec(&seller)).await.unwrap();
        let upstream = world.config().chain.endpoints[0].url.clone();
        let mut operators = Vec::new();
        for limits in OPERATORS {
            let http = Client::builder().no_proxy().build().unwrap();
            let operator = Arc::new(Operator { limits, http, upstream: upstream.clone(), asked: AtomicUsize::new(0) });
            let answering = Arc::clone(&operator);
            let answers = move |body: Bytes| {
                let operator = Arc::clone(&answering);
                async move { operator.answer(body).await }
            };
            operators.push((operator, Proxy::serving(Router::new().fallback(answers)).await));
        }
        Self { world, operators }
    }

    /// A configuration that permits payments in USDC on Base, and reads Base through all operators. The endpoints of
    /// operators in `dead` do not answer.
    fn config(&self, dead: &[usize]) -> Config {
        let mut config = patient(&self.world);
        let mut dollar = config.limits.assets.last().unwrap().clone();
        (dollar.network, dollar.address) = (format!("eip155:{BASE}").parse().unwrap(), USDC.parse().unwrap());
        config.limits.assets.push(dollar);
        let endpoint = |(place, (operator, proxy)): (usize, &(Arc<Operator>, Proxy))| {
            let label = operator.limits.label.to_owned();
            let url = if dead.contains(&place) { "http://127.0.0.1:1/".parse().unwrap() } else { proxy.url() };
            RpcEndpointConfig { operator: label.clone(), label, url, own: false }
        };
        let mut base = RegistryChainConfig::new(self.operators.iter().enumerate().map(endpoint).collect());
        base.proof = Some(ChainProofMode::Quorum);
        base.max_head_age = Some(HEAD_AGE);
        base.agents.insert(NAME.to_owned(), 1);
        config.chains.insert(ChainId::new(BASE).unwrap(), base);
        config
    }

    /// The decision about a payment to `pay_to` on Base.
    async fn decided(&self, pay_to: &str, dead: &[usize]) -> PaymentDecision {
        let resolver = Resolver::new(&self.config(dead)).await.unwrap();
        let route = resolver.agent_route(&resolver.resolve(NAME).await, Some("summarize")).unwrap();
        let url = route.url().to_string();
        let mut reply = resolver.send_unpaid_request(&url, Some("{}")).await.unwrap();
        let (_, header) = reply.headers.iter_mut().find(|(name, _)| name == "payment-required").unwrap();
        let mut terms: Value = serde_json::from_slice(&STANDARD.decode(&*header).unwrap()).unwrap();
        terms["accepts"] = json!([{
            "scheme": "exact",
            "network": format!("eip155:{BASE}"),
            "amount": "10000",
            "asset": USDC,
            "payTo": pay_to,
            "maxTimeoutSeconds": 60,
            "extra": {"name": "USD Coin", "version": "2"},
        }]);
        *header = STANDARD.encode(terms.to_string());
        resolver.decide_payment(&PaymentDecisionRequest::from_seller_reply(NAME, "summarize", &url, reply)).await
    }

    /// Requests to all operators so far.
    fn asked(&self) -> usize {
        self.operators.iter().map(|(operator, _)| operator.asked.load(Ordering::Relaxed)).sum()
    }
}

/// The keys of a seller with a registration on Base, whose name has the record of ENSIP-25.
fn registered() -> String {
    let registry = RegistryChainConfig::new(Vec::new()).registry;
    let key = RegisteredAgentId::new(BASE, registry, 1.try_into().unwrap()).ensip25_record_key();
    format!("records.\"{key}\" = \"1\"\nerc8004 = {{ }}")
}

#[tokio::test(flavor = "multi_thread")]
async fn payee_on_base_is_proven_by_either_address_record() {
    let other = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
    for addresses in [format!("{BASE} = \"{PAYEE}\""), format!("default = \"{PAYEE}\"")] {
        let stage = Stage::new(&addresses, "").await;
        let decision = stage.decided(PAYEE, &[]).await;
        assert_eq!(decision.decision, DecisionOutcome::Allow, "{addresses}: {decision:#?}");
        assert_eq!(stage.asked(), 0, "{addresses}: the records are on mainnet");
        let decision = stage.decided(other, &[]).await;
        assert_eq!((decision.decision, decision.codes), (DecisionOutcome::Deny, vec!["payee-mismatch".to_owned()]));
    }
}

/// The address record for Base takes precedence over the default one.
#[tokio::test(flavor = "multi_thread")]
async fn record_for_base_takes_precedence_over_the_default() {
    let stage =
        Stage::new(&format!("{BASE} = \"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC\", default = \"{PAYEE}\""), "")
            .await;
    let decision = stage.decided(PAYEE, &[]).await;
    assert_eq!((decision.decision, decision.codes), (DecisionOutcome::Deny, vec!["payee-mismatch".to_owned()]));
}

/// The rate-limited operator answers too few requests for a registration. Two other operators suffice.
#[tokio::test(flavor = "multi_thread")]
async fn registration_on_base_is_read_through_its_public_endpoints() {
    for dead in [&[][..], &[0], &[1], &[2], &[3], &[0, 1]] {
        let stage = Stage::new("", &registered()).await;
        let decision = stage.decided(PAYEE, dead).await;
        assert_eq!(decision.decision, DecisionOutcome::Allow, "{dead:?}: {decision:#?}");
        let proven = "by agent 1 of the ERC-8004 registry on eip155:8453";
        assert!(decision.reason.contains(proven), "{dead:?}: {}", decision.reason);
        assert!(stage.asked() > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn registration_that_one_operator_reports_proves_nothing() {
    let stage = Stage::new("", &registered()).await;
    let decision = stage.decided(PAYEE, &[0, 1, 2]).await;
    assert_eq!((decision.decision, decision.abort), (DecisionOutcome::Undecided, true), "{decision:#?}");
    assert_eq!(decision.codes, ["payee-unproven"]);
}
