//! The cost of each grade of proof, and the sources of headers. `tests/daemon/hostile/chain.rs` has the liars.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alloy_primitives::{Address, address};
use async_trait::async_trait;
use bytes::Bytes;
use clresolve_chain::ccip::{CcipReadGatewayClient, CcipReadGatewayError, CcipReadRequest};
use clresolve_chain::transport::{HttpRequestError, JsonRpcHttpClient};
use clresolve_chain::{
    BlockHeaderSource, ChainReaderConfig, EnsReader, ProvenEnsReader, QuorumHeaderSource, RpcEndpointSettings,
    RpcEnsReader, TimeSource, VouchedBlockHeader,
};
use clresolve_core::cause::ResolverContractError;
use clresolve_core::name::EnsName;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::{
    BlockSelector, ChainError, ClOwnerReading, EnsAnswer, NameHolder, NameReading, ProofGradeDemand,
};
use clresolve_core::records::TextRecordKey;
use clresolve_resolver::telemetry::PrometheusExposition;
use clresolve_sandbox::chain::{
    CHAIN_ID, EnsResolverKind, SandboxChain, SandboxChainBuilder, SandboxNameRegistration, SandboxRpcServer,
};
use clresolve_state::EnsContractAddresses;
use serde_json::Value;
use url::Url;

use crate::support::proxy::{Altered, Proxy};

const ALICE: Address = address!("00000000000000000000000000000000000a11ce");
const BOB: Address = address!("0000000000000000000000000000000000000b0b");
const ENTRY: &str = "x402://agent.eth/summarize/v1";

/// The way to all endpoints. It counts.
struct Counted {
    http: reqwest::Client,
    /// Requests that are not answered yet.
    open: AtomicUsize,
    /// HTTP requests.
    posts: AtomicUsize,
    /// JSON-RPC requests in them.
    calls: AtomicUsize,
    /// Bytes of the replies.
    bytes: AtomicUsize,
    /// Round trips: requests that overlap count once.
    rounds: AtomicUsize,
}

impl Counted {
    fn new() -> Self {
        let [open, posts, calls, bytes, rounds] = [0; 5].map(AtomicUsize::new);
        Self { http: reqwest::Client::builder().no_proxy().build().unwrap(), open, posts, calls, bytes, rounds }
    }

    /// What was counted since the last time, once all requests are answered.
    async fn counts(&self) -> [usize; 4] {
        while self.open.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
        [&self.posts, &self.calls, &self.bytes, &self.rounds].map(|count| count.swap(0, Ordering::SeqCst))
    }
}

#[async_trait]
impl JsonRpcHttpClient for Counted {
    async fn post_json(&self, url: &Url, body: Bytes, _: usize, timeout: Duration) -> Result<Bytes, HttpRequestError> {
        let round = self.rounds.load(Ordering::SeqCst) + 1;
        self.posts.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        let broken = |error: reqwest::Error| HttpRequestError::Connection(error.without_url().to_string());
        let request: Value = serde_json::from_slice(&body).expect("clresolve sends JSON");
        self.calls.fetch_add(request.as_array().map_or(1, Vec::len), Ordering::SeqCst);
        let reply = self.http.post(url.clone()).body(body).timeout(timeout).send().await.map_err(broken)?;
        let reply = reply.bytes().await.map_err(broken)?;
        self.bytes.fetch_add(reply.len(), Ordering::SeqCst);
        self.rounds.fetch_max(round, Ordering::SeqCst);
        self.open.fetch_sub(1, Ordering::SeqCst);
        Ok(reply)
    }
}

/// A gateway client that goes nowhere.
struct NoGateway;

#[async_trait]
impl CcipReadGatewayClient for NoGateway {
    async fn request_first_response(
        &self,
        _: &CcipReadRequest,
        _: usize,
    ) -> Result<alloy_primitives::Bytes, CcipReadGatewayError> {
        Err(CcipReadGatewayError::new("there is no gateway"))
    }
}

struct World {
    chain: Arc<SandboxChain>,
    server: SandboxRpcServer,
    counted: Arc<Counted>,
}

impl World {
    async fn new() -> Self {
        let mut builder = SandboxChainBuilder::new().unwrap();
        for text in ["agent.eth", "owner.eth", "other.eth"] {
            let texts = [("cl.entry", ENTRY), ("cl.owner", "owner.eth")];
            let texts = texts.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let registration = SandboxNameRegistration {
                resolver: EnsResolverKind::Public,
                texts: BTreeMap::from(texts),
                addr: Some(BOB),
                ..SandboxNameRegistration::new(name(text), ALICE)
            };
            builder.register_name(&registration).unwrap();
        }
        builder.seal_block("2026-11-20T12:00:00Z".parse().unwrap()).unwrap();
        let chain = Arc::new(builder.build().unwrap());
        let server = SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap();
        Self { chain, server, counted: Arc::new(Counted::new()) }
    }

    /// Three operators that are honest.
    fn honest(&self) -> Vec<Url> {
        (0..3).map(|place| format!("{}/endpoint-{place}", self.server.url()).parse().unwrap()).collect()
    }

    /// The endpoint behind proxies.
    async fn before<const N: usize>(&self, altered: [Altered; N]) -> [Proxy; N] {
        let upstream: Url = self.server.url().parse().unwrap();
        futures_util::future::join_all(altered.map(|altered| Proxy::before(upstream.clone(), altered)))
            .await
            .try_into()
            .unwrap_or_else(|_| unreachable!("a proxy for each"))
    }

    fn http(&self) -> Arc<dyn JsonRpcHttpClient> {
        Arc::clone(&self.counted) as _
    }

    fn stated(&self, demand: ProofGradeDemand, urls: Vec<Url>) -> RpcEnsReader {
        RpcEnsReader::new(config(demand, urls), &self.http(), Arc::new(NoGateway))
    }

    fn proven(&self, config: ChainReaderConfig) -> ProvenEnsReader {
        ProvenEnsReader::new(config, &self.http(), Arc::new(NoGateway))
    }
}

/// Endpoints at these URLs, each of an operator of its own.
fn config(demand: ProofGradeDemand, urls: Vec<Url>) -> ChainReaderConfig {
    let endpoint = |(place, url): (usize, Url)| {
        let label = format!("endpoint-{place}");
        RpcEndpointSettings { operator: label.clone(), label, url, own: false }
    };
    ChainReaderConfig {
        chain_id: CHAIN_ID,
        genesis: None,
        contracts: EnsContractAddresses::default(),
        endpoints: urls.into_iter().enumerate().map(endpoint).collect(),
        demand,
        timeout: Duration::from_secs(60),
        hedge_after: Duration::from_secs(60),
        lookup_timeout: Some(Duration::from_secs(240)),
        coins: RequestedCoinTypes::default(),
        max_head_age: None,
    }
}

fn name(text: &str) -> EnsName {
    EnsName::parse(text).unwrap()
}

fn entry(reading: &NameReading) -> Option<&str> {
    match &reading.answer {
        EnsAnswer::Records(found) => found.records.text(TextRecordKey::Entry),
        _ => None,
    }
}

async fn read(chain: &dyn EnsReader) -> Result<NameReading, ChainError> {
    chain.read_name(&name("agent.eth"), BlockSelector::Finalized).await
}

/// A source that knows the header, as a light client would.
struct KnownHeader(VouchedBlockHeader);

#[async_trait]
impl BlockHeaderSource for KnownHeader {
    async fn select_header(&self, _: BlockSelector) -> Result<VouchedBlockHeader, ChainError> {
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn another_source_of_headers_takes_the_quorums_place() {
    let world = World::new().await;
    let upstream: Url = world.server.url().parse().unwrap();
    let quorum =
        QuorumHeaderSource::new(config(ProofGradeDemand::StateProof(1), vec![upstream.clone()]), &world.http());
    let head = quorum.select_header(BlockSelector::Finalized).await.unwrap();
    assert_eq!(head.block, world.chain.finalized());
    let known = Arc::new(KnownHeader(VouchedBlockHeader { own: true, ..head }));
    let proxy = Proxy::before(upstream, Altered::HeaderHashRemade).await;
    let proven = || world.proven(config(ProofGradeDemand::StateProof(1), vec![proxy.url()]));
    let headers = || Arc::clone(&known) as Arc<dyn BlockHeaderSource>;
    let clock: TimeSource = Arc::new(jiff::Timestamp::now);
    for proven in [
        proven().with_headers(headers()),
        proven().with_headers(headers()).with_clock(Arc::clone(&clock)),
        proven().with_clock(clock).with_headers(headers()),
    ] {
        let reading = read(&proven).await.unwrap();
        assert_eq!(entry(&reading), Some(ENTRY), "headers of endpoints are not listened to");
        assert!(!reading.proof.relies_on_single_third_party());
    }
}

/// Another contract stands where Multicall3 should: it is proven, and does not know the call.
#[tokio::test]
async fn a_call_that_reverts_as_a_whole_gives_no_records() {
    let world = World::new().await;
    let standard = EnsContractAddresses::default();
    let contracts = EnsContractAddresses { multicall3: standard.registry, ..standard };
    let proven =
        world.proven(ChainReaderConfig { contracts, ..config(ProofGradeDemand::StateProof(2), world.honest()) });
    assert_eq!(read(&proven).await.unwrap_err(), ChainError::Resolver(ResolverContractError::CallReverted));
}

#[tokio::test]
async fn the_cost_of_each_grade_in_requests_and_round_trips() {
    let world = World::new().await;
    let [single, quorum] =
        [ProofGradeDemand::SingleRpc, ProofGradeDemand::Quorum(2)].map(|demand| world.stated(demand, world.honest()));
    let proven = world.proven(config(ProofGradeDemand::StateProof(2), world.honest()));
    let grades: [(&str, &dyn EnsReader, usize); 3] =
        [("single-rpc", &single, 2), ("quorum 2 of 3", &quorum, 2), ("state-proof 2 of 3", &proven, 3)];
    println!("grade, name with its owner: HTTP requests, JSON-RPC requests in them, reply bytes, round trips");
    for (label, chain, most) in grades {
        for text in ["agent.eth", "agent.eth", "other.eth"] {
            world.counted.counts().await;
            let reading = chain.read_name(&name(text), BlockSelector::Finalized).await.unwrap();
            chain.read_cl_owner(&name("owner.eth"), &reading.block, &reading.endpoints).await.unwrap();
            let [posts, calls, bytes, rounds] = world.counted.counts().await;
            println!("{label}, {text}: {posts}, {calls}, {bytes}, {rounds}");
            assert!((2..=most).contains(&rounds), "{label}, {text}: {rounds} round trips, at most {most} expected");
        }
    }
}

#[tokio::test]
async fn a_liar_that_is_asked_for_proofs_is_named_with_its_lie_and_counted() {
    let world = World::new().await;
    for (lie, words) in [(Altered::Slot, "the proof of slot "), (Altered::CodeByte, "the code of ")] {
        let counts = PrometheusExposition::default();
        let _counting = metrics::set_default_local_recorder(&counts);
        let [liar, honest] = world.before([lie, Altered::Nothing]).await;
        // Two endpoints have the header, and the first of them is asked for proofs first.
        let proven = world.proven(config(ProofGradeDemand::StateProof(2), vec![liar.url(), honest.url()]));
        let reading = read(&proven).await.unwrap();
        assert_eq!(entry(&reading), Some(ENTRY));
        let [(label, cause)] = &reading.contradicted_by[..] else { panic!("{:?}", reading.contradicted_by) };
        assert_eq!(label, "endpoint-0");
        assert!(cause.starts_with(words) && cause.contains("is refused"), "{cause}");
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
        let proxies = world.before(altered).await;
        // None of those that say nothing is ever given up, so they are waited for in vain.
        let urls = proxies.iter().map(Proxy::url).collect();
        let hedge_after = Duration::from_millis(1);
        let chain = world.proven(ChainReaderConfig { hedge_after, ..config(ProofGradeDemand::StateProof(2), urls) });
        let reading = tokio::time::timeout(Duration::from_secs(30), read(&chain)).await;
        let reading = reading.expect("nobody waits in vain").unwrap_or_else(|error| panic!("{altered:?}: {error}"));
        assert_eq!(entry(&reading), Some(ENTRY), "{altered:?}");
        let holding = chain.read_cl_owner(&name("owner.eth"), &reading.block, &reading.endpoints).await;
        assert_eq!(
            holding,
            Ok(ClOwnerReading { address: Some(BOB), holder: NameHolder::Address(ALICE) }),
            "{altered:?}"
        );
    }
}
