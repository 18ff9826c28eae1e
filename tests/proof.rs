//! Endpoints behind a proxy that alters one thing: what each grade of proof makes of it, and what each grade costs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::{Address, B256, address};
use alloy_rpc_types_eth::Header;
use async_trait::async_trait;
use bytes::Bytes;
use clresolve::chain::ccip::{CcipReadGateway, CcipReadGatewayError, CcipReadRequest};
use clresolve::chain::transport::{HttpPost, PostError};
use clresolve::chain::{
    Answer, BlockSelector, Chain, ChainConfig, ChainError, Contracts, Demand, Endpoint, Grade, Head, HeaderSource,
    Holding, ProvenChain, Reading, RpcChain,
};
use clresolve::name::EnsName;
use clresolve::records::Key;
use clresolve::sandbox::chain::{CHAIN_ID, ChainBuilder, Registration, ResolverKind, RpcServer, SandboxChain};
use clresolve::telemetry::Exposition;
use serde_json::{Value, json};
use url::Url;

const ALICE: Address = address!("00000000000000000000000000000000000a11ce");
const BOB: Address = address!("0000000000000000000000000000000000000b0b");
const ENTRY: &str = "x402://agent.eth/summarize/v1";
const LIE: &str = "x403://agent.eth/summarize/v1";

/// What a proxy does to what passes through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Altered {
    Nothing,
    /// The scheme in one record.
    Record,
    /// The value of one slot.
    Slot,
    /// One byte of one contract's code.
    CodeByte,
    /// The state root in the header, with a right hash of the whole.
    Header,
    /// No proof ever comes.
    NoProof,
    /// Nothing ever comes.
    Silent,
}

impl Altered {
    fn apply(self, method: &str, result: &mut Value, is_done: &mut bool) {
        match (self, method) {
            (Self::Record, "eth_call") => {
                let text = result.as_str().unwrap_or_default();
                *result = json!(text.replacen(&hex(ENTRY), &hex(LIE), 1));
            }
            (Self::Slot, "eth_getProof") if !*is_done => {
                if let Some(slot) = result["storageProof"].get_mut(0) {
                    slot["value"] = json!("0x1234567");
                    *is_done = true;
                }
            }
            (Self::CodeByte, "eth_getCode") if !*is_done => {
                let mut code = result.as_str().unwrap_or_default().to_owned();
                if let Some(last) = code.pop().filter(|_| code.len() > 2) {
                    code.push(if last == '0' { '1' } else { '0' });
                    *result = json!(code);
                    *is_done = true;
                }
            }
            (Self::Header, "eth_getBlockByNumber") if result["number"] != "0x0" => {
                result["stateRoot"] = json!(B256::repeat_byte(7));
                let header: Header = serde_json::from_value(result.clone()).expect("a header");
                result["hash"] = json!(header.inner.hash_slow());
            }
            _ => {}
        }
    }
}

/// Lets questions about a block that is made up be answered from the true one.
fn answer_for_made_up_blocks(request: &mut Value) {
    match request {
        Value::Object(members) if members.contains_key("blockHash") => *request = json!("finalized"),
        Value::Object(members) => members.values_mut().for_each(answer_for_made_up_blocks),
        Value::Array(elements) => elements.iter_mut().for_each(answer_for_made_up_blocks),
        _ => {}
    }
}

fn hex(text: &str) -> String {
    alloy_primitives::hex::encode(text)
}

/// The way to all endpoints. What is altered on it is said by the endpoint's path.
struct Proxy {
    http: reqwest::Client,
    /// Requests that are not answered yet.
    open: AtomicUsize,
    /// HTTP requests.
    posts: AtomicUsize,
    /// JSON-RPC requests in them.
    calls: AtomicUsize,
    /// Bytes of the replies.
    bytes: AtomicUsize,
    /// The length of the longest chain of requests of which each began after the one before was answered.
    rounds: AtomicUsize,
    altered: Mutex<BTreeMap<String, Altered>>,
}

impl Proxy {
    /// What was counted since the last time, once all requests are answered.
    async fn counts(&self) -> [usize; 4] {
        while self.open.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        [&self.posts, &self.calls, &self.bytes, &self.rounds].map(|count| count.swap(0, Ordering::SeqCst))
    }
}

#[async_trait]
impl HttpPost for Proxy {
    async fn post(&self, url: &Url, body: Bytes, _: usize, timeout: Duration) -> Result<Bytes, PostError> {
        let round = self.rounds.load(Ordering::SeqCst) + 1;
        self.posts.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        let broken = |error: reqwest::Error| PostError::Connection(error.without_url().to_string());
        let altered = self.altered.lock().unwrap().get(url.path()).copied().unwrap_or(Altered::Nothing);
        let mut request: Value = serde_json::from_slice(&body).expect("clresolve sends JSON");
        if altered == Altered::Header {
            answer_for_made_up_blocks(&mut request);
        }
        let asks_proof = body.windows(b"eth_getProof".len()).any(|part| part == b"eth_getProof");
        if altered == Altered::Silent || (altered == Altered::NoProof && asks_proof) {
            self.open.fetch_sub(1, Ordering::SeqCst);
            return std::future::pending().await;
        }
        let body = request.to_string();
        let reply = self.http.post(url.clone()).body(body).timeout(timeout).send().await.map_err(broken)?;
        let reply = reply.bytes().await.map_err(broken)?;
        self.bytes.fetch_add(reply.len(), Ordering::SeqCst);
        let mut reply: Value = serde_json::from_slice(&reply).expect("the sandbox sends JSON");
        let mut is_done = false;
        let requests = request.as_array().cloned().unwrap_or_else(|| vec![request.clone()]);
        self.calls.fetch_add(requests.len(), Ordering::SeqCst);
        for request in &requests {
            let own = match &mut reply {
                Value::Array(replies) => replies.iter_mut().find(|reply| reply["id"] == request["id"]),
                single => Some(single),
            };
            if let Some(result) = own.and_then(|own| own.get_mut("result")) {
                altered.apply(request["method"].as_str().unwrap_or_default(), result, &mut is_done);
            }
        }
        self.rounds.fetch_max(round, Ordering::SeqCst);
        self.open.fetch_sub(1, Ordering::SeqCst);
        Ok(reply.to_string().into())
    }
}

/// A gateway client that goes nowhere.
struct NoGateway;

#[async_trait]
impl CcipReadGateway for NoGateway {
    async fn request(&self, _: &CcipReadRequest, _: usize) -> Result<alloy_primitives::Bytes, CcipReadGatewayError> {
        Err(CcipReadGatewayError::new("there is no gateway"))
    }
}

struct World {
    chain: Arc<SandboxChain>,
    server: RpcServer,
    proxy: Arc<Proxy>,
}

impl World {
    async fn new() -> Self {
        let mut builder = ChainBuilder::new().unwrap();
        for text in ["agent.eth", "owner.eth", "other.eth"] {
            let texts = [("cl.entry", ENTRY), ("cl.owner", "owner.eth")];
            let texts = texts.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let registration = Registration {
                resolver: ResolverKind::Public,
                texts: BTreeMap::from(texts),
                addr: Some(BOB),
                ..Registration::new(name(text), ALICE)
            };
            builder.register(&registration).unwrap();
        }
        builder.seal("2026-11-20T12:00:00Z".parse().unwrap()).unwrap();
        let chain = Arc::new(builder.build().unwrap());
        let server = RpcServer::bind(Arc::clone(&chain)).await.unwrap();
        let proxy = Proxy {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            open: AtomicUsize::new(0),
            posts: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            altered: Mutex::default(),
        };
        Self { chain, server, proxy: Arc::new(proxy) }
    }

    fn endpoints(&self, demand: Demand, altered: &[Altered]) -> RpcChain {
        self.endpoints_with(demand, altered, Duration::from_secs(60))
    }

    fn endpoints_with(&self, demand: Demand, altered: &[Altered], hedge_after: Duration) -> RpcChain {
        let endpoint = |(place, altered): (usize, &Altered)| {
            let label = format!("endpoint-{place}");
            self.proxy.altered.lock().unwrap().insert(format!("/{label}"), *altered);
            let url = format!("{}/{label}", self.server.url()).parse().unwrap();
            Endpoint { operator: label.clone(), label, url, own: false }
        };
        let config = ChainConfig {
            chain_id: CHAIN_ID,
            genesis: None,
            contracts: Contracts::default(),
            endpoints: altered.iter().enumerate().map(endpoint).collect(),
            demand,
            timeout: Duration::from_secs(60),
            hedge_after,
            ccip: true,
        };
        let http: Arc<dyn HttpPost> = Arc::clone(&self.proxy) as _;
        RpcChain::new(config, &http, Arc::new(NoGateway))
    }

    fn told(&self, agree: usize, altered: &[Altered]) -> RpcChain {
        self.endpoints(Demand::Quorum(agree), altered)
    }

    fn proven(&self, agree: usize, altered: &[Altered]) -> ProvenChain {
        ProvenChain::new(self.endpoints(Demand::StateProof(agree), altered))
    }
}

fn name(text: &str) -> EnsName {
    EnsName::parse(text).unwrap()
}

fn entry(reading: &Reading) -> Option<&str> {
    match &reading.answer {
        Answer::Records(found) => found.records.text(Key::Entry),
        _ => None,
    }
}

async fn read(chain: &dyn Chain) -> Result<Reading, ChainError> {
    chain.read(&name("agent.eth"), BlockSelector::Finalized).await
}

const LIES: [Altered; 4] = [Altered::Record, Altered::Slot, Altered::CodeByte, Altered::Header];

#[tokio::test]
async fn one_liar_of_three_changes_nothing_under_state_proof_and_is_named() {
    let world = World::new().await;
    for lie in LIES {
        let chain = world.proven(2, &[lie, Altered::Nothing, Altered::Nothing]);
        let reading = read(&chain).await.unwrap_or_else(|error| panic!("{lie:?}: {error}"));
        assert_eq!(entry(&reading), Some(ENTRY), "{lie:?}");
        assert_eq!(reading.proof.grade, Grade::StateProof);
        assert_eq!(reading.latest, Some(Ok(reading.answer.clone())), "{lie:?}");
        let holding = chain.holding(&name("owner.eth"), &reading.block, &reading.endpoints).await;
        assert_eq!(holding, Ok(Holding { address: Some(BOB), holder: Some(ALICE) }), "{lie:?}");
    }
}

#[tokio::test]
async fn a_liar_that_is_asked_for_proofs_is_named_with_its_lie() {
    let world = World::new().await;
    for (lie, words) in [(Altered::Slot, "the proof of slot "), (Altered::CodeByte, "the code of ")] {
        let counts = Exposition::default();
        let _counting = metrics::set_default_local_recorder(&counts);
        // Two endpoints have the header, and the first of them is asked for proofs first.
        let reading = read(&world.proven(2, &[lie, Altered::Nothing])).await.unwrap();
        assert_eq!(entry(&reading), Some(ENTRY));
        let [(label, said)] = &reading.contradicted_by[..] else { panic!("{:?}", reading.contradicted_by) };
        assert_eq!(label, "endpoint-0");
        assert!(said.starts_with(words) && said.contains("is refused"), "{said}");
        assert!(counts.render().contains("clresolve_rpc_lies_total{endpoint=\"endpoint-0\"} 1\n"), "{lie:?}");
    }
}

#[tokio::test]
async fn spare_endpoints_prove_what_others_keep_back() {
    let world = World::new().await;
    let lame = [
        [Altered::Silent, Altered::Silent, Altered::Nothing, Altered::Nothing],
        [Altered::NoProof, Altered::NoProof, Altered::NoProof, Altered::Nothing],
        [Altered::NoProof, Altered::Slot, Altered::Silent, Altered::Nothing],
    ];
    for altered in lame {
        // None of those that say nothing is ever given up, so they are waited for in vain.
        let endpoints = world.endpoints_with(Demand::StateProof(2), &altered, Duration::from_millis(1));
        let chain = ProvenChain::new(endpoints);
        let reading = read(&chain).await.unwrap_or_else(|error| panic!("{altered:?}: {error}"));
        assert_eq!(entry(&reading), Some(ENTRY), "{altered:?}");
        let holding = chain.holding(&name("owner.eth"), &reading.block, &reading.endpoints).await;
        assert_eq!(holding, Ok(Holding { address: Some(BOB), holder: Some(ALICE) }), "{altered:?}");
    }
}

#[tokio::test]
async fn a_liar_alone_gets_nothing_believed_under_state_proof() {
    let world = World::new().await;
    for lie in [Altered::Slot, Altered::CodeByte, Altered::Header] {
        let error = read(&world.proven(1, &[lie])).await.unwrap_err();
        assert!(matches!(&error, ChainError::Unproven(causes) if causes.len() == 1), "{lie:?}: {error}");
    }
    let reading = read(&world.proven(1, &[Altered::Record])).await.unwrap();
    assert_eq!(entry(&reading), Some(ENTRY), "records are computed, not told");
    assert_ne!(reading.latest, Some(Ok(reading.answer.clone())), "what is told of the newest block only holds back");
    assert!(reading.proof.is_one_strangers_word());
}

#[tokio::test]
async fn a_quorum_catches_what_it_uses_unless_as_many_lie_as_must_agree() {
    let world = World::new().await;
    for lie in LIES {
        let reading = read(&world.told(2, &[lie, Altered::Nothing, Altered::Nothing])).await.unwrap();
        assert_eq!(entry(&reading), Some(ENTRY), "{lie:?}");
    }
    for lie in [Altered::Record, Altered::Header] {
        let error = read(&world.told(2, &[lie, Altered::Nothing])).await.unwrap_err();
        assert!(matches!(error, ChainError::Disagree(_)), "{lie:?}: {error}");
    }
    let two_of_three = [Altered::Record, Altered::Record, Altered::Nothing];
    let reading = read(&world.told(2, &two_of_three[..2])).await.unwrap();
    assert_eq!(entry(&reading), Some(LIE), "this is what k liars can do to a quorum");
    let reading = read(&world.proven(2, &two_of_three)).await.unwrap();
    assert_eq!(entry(&reading), Some(ENTRY), "and not to a state proof");
}

/// As a light client would: it knows the header, and asks nobody.
struct KnownHeader(Head);

#[async_trait]
impl HeaderSource for KnownHeader {
    async fn head(&self, _: BlockSelector) -> Result<Head, ChainError> {
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn another_source_of_headers_takes_the_quorums_place() {
    let world = World::new().await;
    let head =
        world.endpoints(Demand::StateProof(1), &[Altered::Nothing]).head(BlockSelector::Finalized).await.unwrap();
    assert_eq!(head.block, world.chain.finalized());
    let known = Arc::new(KnownHeader(Head { own: true, ..head }));
    let endpoints = Arc::new(world.endpoints(Demand::StateProof(1), &[Altered::Header]));
    let reading = read(&ProvenChain::with_headers(endpoints, known)).await.unwrap();
    assert_eq!(entry(&reading), Some(ENTRY), "headers of endpoints are not listened to");
    assert!(!reading.proof.is_one_strangers_word());
}

#[tokio::test]
async fn the_cost_of_each_grade_in_requests_and_round_trips() {
    let world = World::new().await;
    let honest = [Altered::Nothing; 3];
    let single = world.endpoints(Demand::SingleRpc, &honest);
    let (quorum, proven) = (world.told(2, &honest), world.proven(2, &honest));
    let grades: [(&str, &dyn Chain, usize); 3] =
        [("single-rpc", &single, 2), ("quorum 2 of 3", &quorum, 2), ("state-proof 2 of 3", &proven, 3)];
    println!("grade, name with its owner: HTTP requests, JSON-RPC requests in them, reply bytes, round trips");
    for (label, chain, most) in grades {
        for text in ["agent.eth", "agent.eth", "other.eth"] {
            world.proxy.counts().await;
            let reading = chain.read(&name(text), BlockSelector::Finalized).await.unwrap();
            chain.holding(&name("owner.eth"), &reading.block, &reading.endpoints).await.unwrap();
            let [posts, calls, bytes, rounds] = world.proxy.counts().await;
            println!("{label}, {text}: {posts}, {calls}, {bytes}, {rounds}");
            assert!((2..=most).contains(&rounds), "{label}, {text}: {rounds} round trips, at most {most} expected");
        }
    }
}
