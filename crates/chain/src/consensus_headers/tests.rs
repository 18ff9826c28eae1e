//! Readings of the sandbox chain under headers that a light client verified.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alloy_primitives::Address;
use bytes::Bytes;
use clresolve_beacon::ExecutionPayloadHeader;
use clresolve_core::name::EnsName;
use clresolve_core::reading::{EnsAnswer, NameReading, ProofStrength};
use clresolve_core::records::TextRecordKey;
use clresolve_sandbox::chain::{
    EnsResolverKind, SandboxChain, SandboxChainBuilder, SandboxNameRegistration, SandboxRpcServer,
};
use jiff::SignedDuration;
use tokio::time::sleep;
use url::Url;

use super::*;
use crate::EnsReader;
use crate::gateway::GuardedCcipReadGatewayClient;
use crate::head_reader::{ChainHeadReader, NameStateAtHead, QuorumHeadReader};
use crate::light_client::LightClientConfig;
use crate::light_client::tests::{BeaconChain, BeaconServer, Lie, LoopbackGet, TestClock, client_config};
use crate::proven_chain::ProvenEnsReader;
use crate::proven_heads::ProvenHeadReader;
use crate::quorum_headers::QuorumHeaderSource;
use crate::testing::{UnguardedHttpClient, test_config};
use crate::transport::HttpRequestError;

/// The current slot. The newest execution block is of the slot before.
const NOW: u64 = 300;

fn name(text: &str) -> EnsName {
    EnsName::parse(text).unwrap()
}

fn time() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

/// A chain with `agent.eth`, whose second block is the newest one and changes a record. `salt` gives another history.
fn chains(salt: u8) -> [Arc<SandboxChain>; 2] {
    let mut builder = SandboxChainBuilder::new().unwrap();
    let texts = [("cl.entry", "x402://agent.eth/summarize/v1"), ("cl.owner", "owner.eth")];
    let texts: BTreeMap<_, _> = texts.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let holder = Address::repeat_byte(salt);
    let registration = SandboxNameRegistration {
        resolver: EnsResolverKind::Public,
        texts,
        ..SandboxNameRegistration::new(name("agent.eth"), holder)
    };
    builder.register_name(&registration).unwrap();
    builder.seal_block(time() - SignedDuration::from_secs(6)).unwrap();
    builder.finalize_newest_block().unwrap();
    let before = Arc::new(builder.build().unwrap());
    builder.set_text(&name("agent.eth"), "cl.owner", "other.eth").unwrap();
    builder.seal_block(time()).unwrap();
    [before, Arc::new(builder.build().unwrap())]
}

struct World {
    before: Arc<SandboxChain>,
    chain: Arc<SandboxChain>,
    rpc: Vec<SandboxRpcServer>,
    beacon: BeaconServer,
    clock: TestClock,
    light_client: LightClientConfig,
}

impl World {
    /// Endpoints that serve the same chain, and a beacon endpoint with its blocks.
    async fn new(endpoints: usize) -> Self {
        let [before, chain] = chains(7);
        let mut rpc = Vec::new();
        for _ in 0..endpoints {
            rpc.push(SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap());
        }
        let headers = QuorumHeaderSource::new(test_config(&rpc[..1]), &http());
        let [finalized, newest] =
            [BlockSelector::Finalized, BlockSelector::Latest].map(|selector| headers.select_header(selector));
        let (finalized, newest) = (payload(&finalized.await.unwrap()), payload(&newest.await.unwrap()));
        let execution = move |slot: u64| if slot < NOW - 1 { finalized.clone() } else { newest.clone() };
        let mut beacon_chain = BeaconChain::with_execution(Arc::new(execution));
        beacon_chain.spec.genesis_time = u64::try_from(time().as_second()).unwrap() - 6 * (NOW - 1);
        let beacon = BeaconServer::start(&beacon_chain, NOW, Lie::Nothing).await;
        let clock = TestClock::at(&beacon_chain, NOW);
        let light_client = client_config(&beacon_chain, &[&beacon], None);
        Self { before, chain, rpc, beacon, clock, light_client }
    }

    fn config(&self, demand: ProofGradeDemand) -> ChainReaderConfig {
        ChainReaderConfig { demand, max_head_age: Some(Duration::from_secs(60)), ..test_config(&self.rpc) }
    }

    fn headers(&self, demand: ProofGradeDemand, http: &Arc<dyn JsonRpcHttpClient>) -> Arc<ConsensusHeaderSource> {
        let clock = self.clock.clock();
        let light_client =
            LightClient::new(self.light_client.clone(), Arc::new(LoopbackGet::new()), Arc::clone(&clock));
        Arc::new(ConsensusHeaderSource::new(Arc::new(light_client), self.config(demand), http).with_clock(clock))
    }

    fn proven(&self, demand: ProofGradeDemand, http: &Arc<dyn JsonRpcHttpClient>) -> ProvenEnsReader {
        let chain =
            ProvenEnsReader::new(self.config(demand), http, Arc::new(GuardedCcipReadGatewayClient::refusing_all()));
        chain.with_clock(self.clock.clock()).with_headers(self.headers(demand, http))
    }

    async fn read(&self, demand: ProofGradeDemand) -> Result<NameReading, ChainError> {
        self.proven(demand, &http()).read_name(&name("agent.eth"), BlockSelector::Finalized).await
    }
}

fn http() -> Arc<dyn JsonRpcHttpClient> {
    Arc::new(UnguardedHttpClient::new())
}

fn payload(head: &VouchedBlockHeader) -> ExecutionPayloadHeader {
    ExecutionPayloadHeader {
        block_hash: head.block.hash,
        block_number: head.block.number,
        state_root: head.header.state_root(),
        timestamp: u64::try_from(head.block.timestamp.as_second()).unwrap(),
        ..ExecutionPayloadHeader::default()
    }
}

fn owner(answer: &EnsAnswer) -> Option<&str> {
    match answer {
        EnsAnswer::Records(found) => found.records.text(TextRecordKey::Owner),
        _ => None,
    }
}

const ALONE: ProofGradeDemand = ProofGradeDemand::ConsensusProof(0);

#[tokio::test]
async fn reading_rests_on_no_operator() {
    let world = World::new(1).await;
    let reading = world.read(ALONE).await.unwrap();
    assert_eq!(reading.proof, ProofStrength { grade: ProofGrade::ConsensusProof, asked: 0, agreed: 0, own: false });
    assert!(!reading.proof.relies_on_single_third_party());
    assert_eq!((reading.block, reading.newest), (world.chain.finalized(), Some(world.chain.latest().number)));
    assert_eq!(owner(&reading.answer), Some("owner.eth"));
    let latest = reading.latest.unwrap().unwrap();
    assert_eq!(owner(&latest.answer), Some("other.eth"), "the newest block is computed too");
}

#[tokio::test]
async fn endpoint_that_hides_the_newest_block_confirms_nothing() {
    let world = World::new(1).await;
    world.rpc[0].serve_chain(Arc::clone(&world.before));
    let reading = world.read(ALONE).await.unwrap();
    assert_eq!(reading.block, world.chain.finalized());
    assert!(matches!(reading.latest, Some(Err(ChainError::Unreachable(_)))), "{:?}", reading.latest);
    assert_eq!(reading.newest, None);
}

#[tokio::test]
async fn beacon_endpoint_that_fails_gives_no_reading() {
    for demand in [ALONE, ProofGradeDemand::ConsensusProof(2)] {
        let world = World::new(2).await;
        world.beacon.set_lie(Lie::NotFound);
        let error = world.read(demand).await.unwrap_err();
        assert!(matches!(error, ChainError::HeaderUnproven(LightClientHeaderError::Endpoints(_))), "{error:?}");
    }
}

#[tokio::test]
async fn quorum_may_be_demanded_too() {
    let world = World::new(3).await;
    let reading = world.read(ProofGradeDemand::ConsensusProof(2)).await.unwrap();
    assert_eq!((reading.proof.grade, reading.proof.agreed), (ProofGrade::ConsensusProof, 2));
    assert!(reading.proof.asked >= 2 && matches!(reading.latest, Some(Ok(_))));
    let head = world.headers(ProofGradeDemand::ConsensusProof(2), &http()).newest_head().await;
    assert_eq!(head.unwrap().block, world.chain.latest());
}

#[tokio::test]
async fn quorum_for_another_block_is_a_contradiction() {
    let world = World::new(2).await;
    let [_, fork] = chains(8);
    world.rpc.iter().for_each(|rpc| rpc.serve_chain(Arc::clone(&fork)));
    let newest = world.headers(ProofGradeDemand::ConsensusProof(2), &http()).newest_head().await;
    for error in [world.read(ProofGradeDemand::ConsensusProof(2)).await.unwrap_err(), newest.unwrap_err()] {
        let ChainError::Disagree(statements) = error else { panic!("{error:?}") };
        let mut labels: Vec<&str> = statements.iter().map(|(label, _)| label.as_str()).collect();
        labels.sort_unstable();
        assert_eq!(labels, ["light client", "node-0", "node-1"]);
    }
    assert!(world.read(ALONE).await.is_err(), "no endpoint has the verified block");
}

#[tokio::test]
async fn stalled_chain_gives_header_unproven() {
    let world = World::new(1).await;
    let headers = world.headers(ALONE, &http());
    // An hour later, beacon blocks still contain the same execution block.
    world.clock.advance(3600);
    world.beacon.set_slot(NOW + 600);
    for selector in [BlockSelector::Finalized, BlockSelector::Latest] {
        let error = headers.select_header(selector).await.unwrap_err();
        assert!(
            matches!(error, ChainError::HeaderUnproven(LightClientHeaderError::Stalled(_))),
            "{selector}: {error:?}"
        );
    }
}

#[tokio::test]
async fn header_with_an_impossible_time_is_refused() {
    let mut world = World::new(1).await;
    let execution = |_| ExecutionPayloadHeader { timestamp: u64::MAX, ..ExecutionPayloadHeader::default() };
    let mut chain = BeaconChain::with_execution(Arc::new(execution));
    chain.spec.genesis_time = world.light_client.spec.genesis_time;
    let beacon = BeaconServer::start(&chain, NOW, Lie::Nothing).await;
    world.light_client = client_config(&chain, &[&beacon], None);
    let error = world.headers(ALONE, &http()).select_header(BlockSelector::Finalized).await.unwrap_err();
    assert!(matches!(error, ChainError::HeaderUnproven(LightClientHeaderError::Refused(_))), "{error:?}");
}

#[tokio::test]
async fn proven_head_is_read_like_a_stated_one() {
    let world = World::new(1).await;
    let stated =
        QuorumHeadReader::new(world.config(ProofGradeDemand::SingleRpc), &http()).with_clock(world.clock.clock());
    let heads: Arc<dyn ChainHeadReader> =
        Arc::new(ProvenHeadReader::new(world.proven(ALONE, &http()), world.headers(ALONE, &http())));
    let head = Arc::clone(&heads).newest_head().await.unwrap();
    assert_eq!((head.block, head.reported_at), (world.chain.latest(), world.clock.clock()()));
    assert_eq!(heads.poll_head(0).await, Ok((head.block, Some(head))));
    let found = heads.read_name_state(&name("agent.eth"), &head.block).await.unwrap();
    assert_eq!(Ok(&found), stated.read_name_state(&name("agent.eth"), &head.block).await.as_ref());
    let NameStateAtHead::OnChain(latest) = found else { panic!("{found:?}") };
    assert_eq!(owner(&latest.answer), Some("other.eth"));
    world.beacon.set_lie(Lie::NotFound);
    world.clock.advance(30);
    assert!(Arc::clone(&heads).newest_head().await.is_err(), "endpoints that are down report no head");
}

#[tokio::test]
async fn further_records_are_proven() {
    let world = World::new(1).await;
    let chain = world.proven(ALONE, &http());
    let reading = chain.read_name(&name("agent.eth"), BlockSelector::Finalized).await.unwrap();
    let keys = ["cl.owner".to_owned(), "url".to_owned()];
    let texts = chain.read_texts_at_block(&name("agent.eth"), &reading.block, &[], &keys).await.unwrap();
    assert_eq!(
        texts,
        [
            clresolve_core::records::TextRecord::Text("owner.eth".to_owned()),
            clresolve_core::records::TextRecord::Absent
        ]
    );
}

#[tokio::test]
async fn finalized_block_may_be_selected_by_number_later() {
    let world = World::new(1).await;
    let headers = world.headers(ALONE, &http());
    let pinned = BlockSelector::Pinned(world.chain.finalized().number);
    assert!(matches!(
        headers.select_header(pinned).await,
        Err(ChainError::HeaderUnproven(LightClientHeaderError::Block(_)))
    ));
    let head = headers.select_header(BlockSelector::Finalized).await.unwrap();
    world.beacon.set_lie(Lie::NotFound);
    world.clock.advance(3600);
    assert_eq!(headers.select_header(pinned).await, Ok(head), "its age is not judged");
}

/// Counts round trips: requests that overlap count once.
struct Rounds {
    http: UnguardedHttpClient,
    rounds: AtomicUsize,
    open: AtomicUsize,
}

#[async_trait]
impl JsonRpcHttpClient for Rounds {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let round = self.rounds.load(Ordering::SeqCst) + 1;
        self.open.fetch_add(1, Ordering::SeqCst);
        // Concurrent requests are all sent before one is answered.
        sleep(Duration::from_millis(50)).await;
        let answer = self.http.post_json(url, body, cap, timeout).await;
        self.rounds.fetch_max(round, Ordering::SeqCst);
        self.open.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

impl Rounds {
    async fn of(self: &Arc<Self>, chain: &ProvenEnsReader) -> usize {
        self.rounds.store(0, Ordering::SeqCst);
        chain.read_name(&name("agent.eth"), BlockSelector::Finalized).await.unwrap();
        while self.open.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        self.rounds.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn warm_light_client_costs_no_round_trip() {
    let world = World::new(1).await;
    let rounds =
        Arc::new(Rounds { http: UnguardedHttpClient::new(), rounds: AtomicUsize::new(0), open: AtomicUsize::new(0) });
    let http: Arc<dyn JsonRpcHttpClient> = Arc::clone(&rounds) as _;
    let state_proof = ProvenEnsReader::new(
        world.config(ProofGradeDemand::StateProof(1)),
        &http,
        Arc::new(GuardedCcipReadGatewayClient::refusing_all()),
    )
    .with_clock(world.clock.clock());
    let headers = world.headers(ALONE, &http);
    let consensus_proof = world.proven(ALONE, &http).with_headers(Arc::clone(&headers) as _);
    for selector in [BlockSelector::Finalized, BlockSelector::Latest] {
        headers.block_id_for_prefetch(selector).await.unwrap();
    }
    for reading in ["first", "second", "third"] {
        let (expected, observed) = (rounds.of(&state_proof).await, rounds.of(&consensus_proof).await);
        println!("{reading} reading: {expected} round trips under state-proof, {observed} under consensus-proof");
        assert!(observed <= expected, "{reading}: {observed} instead of {expected} round trips");
    }
}
