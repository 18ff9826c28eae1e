//! Reads the sandbox's chain over HTTP, from endpoints that fail in every known way, and through CCIP-Read.

#[path = "chain/batch.rs"]
mod batch;
#[path = "chain/newest.rs"]
mod newest;
#[path = "chain/payment.rs"]
mod payment;
#[path = "chain/registration.rs"]
mod registration;
#[path = "chain/stalled.rs"]
mod stalled;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::{Address, address};
use async_trait::async_trait;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use bytes::{Bytes, BytesMut};
use clresolve_chain::ccip::{CcipReadGatewayClient, CcipReadGatewayError, CcipReadRequest};
use clresolve_chain::transport::{HttpRequestError, JsonRpcHttpClient, MAX_REPLY_BYTES};
use clresolve_chain::{ChainReaderConfig, EnsReader, ProvenEnsReader, RpcEndpointSettings, RpcEnsReader};
use clresolve_core::name::EnsName;
use clresolve_core::payment::{EndpointRecordKey, RequestedCoinTypes};
use clresolve_core::reading::{
    BlockSelector, CcipLookupError, ChainBlock, ChainError, ClOwnerReading, EnsAnswer, LatestNameState,
    LocalLimitError, NameHolder, NameReading, ProofGrade, ProofGradeDemand, ProofStrength, ResolvedRecords,
    ResolverContractError,
};
use clresolve_core::records::{TextRecord, TextRecordKey};
use clresolve_resolver::telemetry::PrometheusExposition;
use clresolve_sandbox::chain::{
    CHAIN_ID, CustodyContract, EnsResolverKind, HostileResolverMode, SandboxChain, SandboxChainBuilder,
    SandboxNameRegistration, SandboxRpcFault, SandboxRpcServer,
};
use clresolve_state::{EnsContractAddresses, MAX_LOOK_UPS};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use url::Url;

const ALICE: Address = address!("00000000000000000000000000000000000a11ce");
const BOB: Address = address!("0000000000000000000000000000000000000b0b");
const NO_CODE: Address = address!("00000000000000000000000000000000000000ee");
const ENTRY: &str = "x402://summarizeagent.eth/summarize/v1";
const GATEWAY_URL: &str = "https://ccip.sandbox.example/{sender}/{data}.json";
const NOON: &str = "2026-11-20T12:00:00Z";
const LATER: &str = "2026-11-20T12:30:00Z";
const FIRST: BlockSelector = BlockSelector::Finalized;

/// HTTP requests of the first exchange with an endpoint: a batch of three, one for the fourth request, and one for
/// block 0.
const INTRODUCED: u64 = 3;

/// The transport of the operator, without the guards of the real one.
struct PlainPost(reqwest::Client);

#[async_trait]
impl JsonRpcHttpClient for PlainPost {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let broken = |e: reqwest::Error| match e.is_timeout() {
            true => HttpRequestError::Timeout(timeout),
            false => HttpRequestError::Connection(e.without_url().to_string()),
        };
        let request = self.0.post(url.clone()).header("content-type", "application/json").body(body).timeout(timeout);
        let mut response = request.send().await.map_err(broken)?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            return Err(HttpRequestError::Status(status, response.bytes().await.map_err(broken)?));
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if body.len() + chunk.len() > cap {
                return Err(HttpRequestError::TooLarge(cap));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

fn http() -> Arc<dyn JsonRpcHttpClient> {
    Arc::new(PlainPost(reqwest::Client::builder().no_proxy().build().unwrap()))
}

/// What a gateway makes of a request.
type CcipReadResult = Result<alloy_primitives::Bytes, CcipReadGatewayError>;

/// A gateway client that goes nowhere.
struct Gateway {
    reply: Box<dyn Fn(&CcipReadRequest) -> CcipReadResult + Send + Sync>,
    asked: AtomicUsize,
}

impl Gateway {
    fn new(reply: impl Fn(&CcipReadRequest) -> CcipReadResult + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { reply: Box::new(reply), asked: AtomicUsize::new(0) })
    }

    fn refusing() -> Arc<Self> {
        Self::new(|_| Err(CcipReadGatewayError::new("the host is not public")))
    }

    fn serving(chain: Arc<SandboxChain>) -> Arc<Self> {
        Self::new(move |request| {
            assert_eq!(request.urls, [GATEWAY_URL]);
            chain.answer_ccip_read(request.sender, &request.data).map_err(|e| CcipReadGatewayError::new(e.to_string()))
        })
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl CcipReadGatewayClient for Gateway {
    async fn request_first_response(&self, request: &CcipReadRequest, _: usize) -> CcipReadResult {
        self.asked.fetch_add(1, Ordering::Relaxed);
        (self.reply)(request)
    }
}

fn name(text: &str) -> EnsName {
    EnsName::parse(text).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn registration(text: &str, resolver: EnsResolverKind) -> SandboxNameRegistration {
    let texts = [("cl.entry", ENTRY), ("cl.owner", "owner.eth")];
    let texts = texts.map(|(key, value)| (key.to_owned(), value.to_owned()));
    SandboxNameRegistration {
        resolver,
        texts: BTreeMap::from(texts),
        addr: Some(BOB),
        ..SandboxNameRegistration::new(name(text), ALICE)
    }
}

fn agent() -> SandboxNameRegistration {
    registration("summarizeagent.eth", EnsResolverKind::Public)
}

fn hostile(mode: HostileResolverMode, arg: &str) -> SandboxNameRegistration {
    registration("evil.eth", EnsResolverKind::Hostile { mode, arg: arg.to_owned() })
}

/// A chain with these names in one block.
fn chain_of(registrations: &[SandboxNameRegistration]) -> Arc<SandboxChain> {
    let mut builder = SandboxChainBuilder::new().unwrap();
    for registration in registrations {
        builder.register_name(registration).unwrap();
    }
    builder.seal_block(time(NOON)).unwrap();
    Arc::new(builder.build().unwrap())
}

fn endpoint(label: &str, url: &str) -> RpcEndpointSettings {
    RpcEndpointSettings { label: label.to_owned(), url: url.parse().unwrap(), own: false, operator: label.to_owned() }
}

fn config(endpoints: Vec<RpcEndpointSettings>) -> ChainReaderConfig {
    ChainReaderConfig {
        chain_id: CHAIN_ID,
        genesis: None,
        demand: ProofGradeDemand::SingleRpc,
        contracts: EnsContractAddresses::default(),
        endpoints,
        timeout: Duration::from_secs(8),
        hedge_after: Duration::from_secs(8),
        lookup_timeout: Some(Duration::from_secs(32)),
        coins: RequestedCoinTypes::default(),
        max_head_age: None,
    }
}

fn reader(endpoints: Vec<RpcEndpointSettings>) -> RpcEnsReader {
    RpcEnsReader::new(config(endpoints), &http(), Gateway::refusing())
}

/// A sandbox chain, its endpoint and a reader of it.
struct World {
    chain: Arc<SandboxChain>,
    server: SandboxRpcServer,
    reader: RpcEnsReader,
}

impl World {
    async fn new(chain: Arc<SandboxChain>, gateway: Arc<Gateway>) -> Self {
        let server = SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap();
        let reader = RpcEnsReader::new(config(vec![endpoint("sandbox", &server.url())]), &http(), gateway);
        Self { chain, server, reader }
    }

    async fn of(registrations: &[SandboxNameRegistration]) -> Self {
        Self::new(chain_of(registrations), Gateway::refusing()).await
    }

    async fn answer(&self, text: &str) -> Result<EnsAnswer, ChainError> {
        self.reader.read_name(&name(text), FIRST).await.map(|reading| reading.answer)
    }
}

/// What the newest block says where it says the same.
fn latest_of(reading: &NameReading) -> LatestNameState {
    LatestNameState { answer: reading.answer.clone(), holder: reading.holder }
}

fn found(answer: EnsAnswer) -> ResolvedRecords {
    match answer {
        EnsAnswer::Records(found) => found,
        other => panic!("no records: {other:?}"),
    }
}

#[tokio::test]
async fn one_request_reads_a_name() {
    let expiry = time("2027-06-01T00:00:00Z");
    let world = World::of(&[SandboxNameRegistration { expiry: Some(expiry), ..agent() }]).await;

    let reading = world.reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(world.server.request_count(), INTRODUCED, "the first exchange");
    world.reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
    assert_eq!(world.server.request_count(), INTRODUCED + 1);
    assert_eq!(reading.block, world.chain.finalized());
    assert_eq!(reading.latest, Some(Ok(latest_of(&reading))));
    assert_eq!(reading.holder, NameHolder::Address(ALICE));
    assert_eq!(reading.expiry, Some(expiry));
    assert_eq!(reading.proof, ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: false });
    assert_eq!(reading.failed_endpoints, []);
    let found = found(reading.answer);
    assert_eq!((found.wildcard, found.offchain), (None, false));
    assert_eq!(found.records.text(TextRecordKey::Entry), Some(ENTRY));
    assert_eq!(found.records.text(TextRecordKey::Owner), Some("owner.eth"));
    assert_eq!(found.records.get(TextRecordKey::Checksum), &TextRecord::Absent);
    assert_eq!(found.records.iter().count(), TextRecordKey::ALL.len());
}

#[tokio::test]
async fn the_wrapper_knows_the_holder_of_a_wrapped_name() {
    let expiry = Some(time("2027-06-01T00:00:00Z"));
    let wrapped = |text: &str| SandboxNameRegistration {
        custody: CustodyContract::NameWrapper,
        expiry,
        ..registration(text, EnsResolverKind::Public)
    };
    let world = World::of(&[wrapped("wrapped.eth"), wrapped("sub.wrapped.eth")]).await;

    for text in ["wrapped.eth", "sub.wrapped.eth"] {
        let reading = world.reader.read_name(&name(text), FIRST).await.unwrap();
        assert_eq!(reading.holder, NameHolder::Address(ALICE), "{text}");
        assert_eq!(reading.expiry, expiry, "{text}: without the wrapper's grace period");
    }
}

#[tokio::test]
async fn absence_is_proven_not_assumed() {
    let world = World::of(
        &[
            registration("none.eth", EnsResolverKind::None),
            registration("nocode.eth", EnsResolverKind::Address(NO_CODE)),
            agent(),
        ]
        .map(|r| match r.resolver {
            EnsResolverKind::Public => r,
            _ => SandboxNameRegistration { texts: BTreeMap::new(), addr: None, ..r },
        }),
    )
    .await;

    assert_eq!(world.answer("nobody.eth").await, Ok(EnsAnswer::Unregistered));
    assert_eq!(world.answer("sub.summarizeagent.eth").await, Ok(EnsAnswer::Unregistered));
    assert_eq!(world.answer("none.eth").await, Ok(EnsAnswer::NoResolver(None)));
    assert_eq!(world.answer("nocode.eth").await, Ok(EnsAnswer::NoResolver(Some(NO_CODE))));
}

#[tokio::test]
async fn a_wildcard_names_the_ancestor_that_answers() {
    let world = World::of(&[registration("fleet.eth", EnsResolverKind::Wildcard)]).await;

    let reading = world.reader.read_name(&name("a.b.fleet.eth"), FIRST).await.unwrap();

    assert_eq!(reading.holder, NameHolder::Nobody);
    assert_eq!(reading.expiry, None);
    let found = found(reading.answer);
    assert_eq!(found.wildcard, Some(name("fleet.eth")));
    assert_eq!(found.records.text(TextRecordKey::Entry), Some(ENTRY));
}

/// Two blocks: `NOON`, finalized, and `LATER`, in which the entry is another.
fn changed_chain(resolver: EnsResolverKind) -> Arc<SandboxChain> {
    let agent = registration("summarizeagent.eth", resolver);
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&agent).unwrap();
    builder.seal_block(time(NOON)).unwrap();
    builder.finalize_newest_block().unwrap();
    builder.set_text(&agent.name, "cl.entry", "x402://summarizeagent.eth/other/v1").unwrap();
    builder.seal_block(time(LATER)).unwrap();
    Arc::new(builder.build().unwrap())
}

#[tokio::test]
async fn a_change_at_latest_shows() {
    let world = World::new(changed_chain(EnsResolverKind::Public), Gateway::refusing()).await;

    let reading = world.reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(reading.block.timestamp, time(NOON));
    assert_eq!(found(reading.answer).records.text(TextRecordKey::Entry), Some(ENTRY));
    let latest = found(reading.latest.unwrap().unwrap().answer);
    assert_eq!(latest.records.text(TextRecordKey::Entry), Some("x402://summarizeagent.eth/other/v1"));
}

/// The records of a name that was sold are those of its last holder until the new one sets others.
#[tokio::test]
async fn a_new_holder_at_latest_shows() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    let agent = registration("summarizeagent.eth", EnsResolverKind::Public);
    builder.register_name(&agent).unwrap();
    builder.seal_block(time(NOON)).unwrap();
    builder.finalize_newest_block().unwrap();
    let buyer = Address::repeat_byte(7);
    builder.transfer_name(&agent.name, buyer).unwrap();
    builder.seal_block(time(LATER)).unwrap();
    let world = World::new(Arc::new(builder.build().unwrap()), Gateway::refusing()).await;

    let reading = world.reader.read_name(&agent.name, FIRST).await.unwrap();

    assert_eq!(reading.holder, NameHolder::Address(agent.owner));
    assert_eq!(
        reading.latest,
        Some(Ok(LatestNameState { answer: reading.answer.clone(), holder: NameHolder::Address(buyer) }))
    );
}

#[tokio::test]
async fn numbered_and_newest_blocks_are_not_compared_with_latest() {
    let world = World::new(changed_chain(EnsResolverKind::Public), Gateway::refusing()).await;
    let agent = name("summarizeagent.eth");

    let first = world.reader.read_name(&agent, BlockSelector::Number(1)).await.unwrap();
    let newest = world.reader.read_name(&agent, BlockSelector::Latest).await.unwrap();

    assert_eq!((first.block, first.latest), (world.chain.finalized(), None));
    assert_eq!((newest.block, newest.latest), (world.chain.latest(), None));
    assert_eq!(found(first.answer).records.text(TextRecordKey::Entry), Some(ENTRY));
    let absent = world.reader.read_name(&agent, BlockSelector::Number(99)).await.unwrap_err();
    assert!(matches!(&absent, ChainError::BlockUnavailable { block, .. } if block == "99"), "{absent}");
}

fn offchain() -> EnsResolverKind {
    EnsResolverKind::Offchain { urls: vec![GATEWAY_URL.to_owned()] }
}

#[tokio::test]
async fn offchain_records_come_through_the_gateway_at_both_blocks() {
    let chain = chain_of(&[registration("off.eth", offchain())]);
    let gateway = Gateway::serving(Arc::clone(&chain));
    let world = World::new(chain, Arc::clone(&gateway)).await;

    let reading = world.reader.read_name(&name("off.eth"), FIRST).await.unwrap();

    assert_eq!(reading.latest, Some(Ok(latest_of(&reading))));
    assert_eq!(
        gateway.asked(),
        2 * (TextRecordKey::ALL.len() + RequestedCoinTypes::default().count() + EndpointRecordKey::ALL.len())
    );
    let found = found(reading.answer);
    assert!(found.offchain);
    assert_eq!(found.records.text(TextRecordKey::Entry), Some(ENTRY));
    assert_eq!(found.records.get(TextRecordKey::Checksum), &TextRecord::Absent);
    let holding = world.reader.read_cl_owner(&name("off.eth"), &reading.block, &reading.endpoints).await;
    assert_eq!(holding, Ok(ClOwnerReading { address: Some(BOB), holder: NameHolder::Address(ALICE) }));
}

#[tokio::test]
async fn gateways_that_fail_or_lie_are_ccip_failures() {
    let chain = chain_of(&[registration("off.eth", offchain())]);
    let liar = chain_of(&[registration("off.eth", offchain())]);
    let gateways = [
        Gateway::refusing(),
        Gateway::new(|_| Err(CcipReadGatewayError::with_http_status(404, "not found"))),
        Gateway::new(|_| Ok(Vec::new().into())),
        Gateway::new(|_| Ok(vec![0; 1 << 20].into())),
        Gateway::new(move |request| Ok(liar.answer_ccip_read(request.sender, &request.data).unwrap())),
    ];
    for gateway in gateways {
        let world = World::new(Arc::clone(&chain), gateway).await;
        let error = world.answer("off.eth").await.unwrap_err();
        assert!(matches!(error, ChainError::Ccip(_)), "{error:?}");
        let error = world
            .reader
            .read_cl_owner(&name("off.eth"), &chain.finalized(), &["sandbox".to_owned()])
            .await
            .unwrap_err();
        assert!(matches!(error, ChainError::Ccip(_)), "{error:?}");
    }
}

#[tokio::test]
async fn lookups_can_be_switched_off() {
    let chain = chain_of(&[registration("off.eth", offchain())]);
    let gateway = Gateway::serving(Arc::clone(&chain));
    let server = SandboxRpcServer::bind(chain).await.unwrap();
    let config = ChainReaderConfig { lookup_timeout: None, ..config(vec![endpoint("sandbox", &server.url())]) };
    let reader = RpcEnsReader::new(config, &http(), Arc::clone(&gateway) as _);

    let error = reader.read_name(&name("off.eth"), FIRST).await.unwrap_err();

    assert_eq!(error, ChainError::Ccip(CcipLookupError::SwitchedOff));
    assert_eq!(gateway.asked(), 0);
}

#[tokio::test]
async fn resolvers_that_misbehave_fail_the_reading() {
    use HostileResolverMode::{
        Aliased, BadLength, BadOffset, Burn, Empty, ExtendedGarbage, Garbage, Huge, Invalid, Revert, RevertHuge,
    };
    for mode in
        [Aliased, BadLength, BadOffset, Burn, Empty, ExtendedGarbage, Garbage, Huge, Invalid, Revert, RevertHuge]
    {
        for arg in ["", "cl.owner"] {
            let world = World::of(&[hostile(mode, arg)]).await;
            let error = world.answer("evil.eth").await.unwrap_err();
            assert!(matches!(error, ChainError::Resolver(_)), "{mode:?} {arg}: {error:?}");
            assert!(error.to_string().len() < 400, "{mode:?}");
        }
    }
}

#[tokio::test]
async fn a_reverting_resolver_is_quoted() {
    let world = World::of(&[hostile(HostileResolverMode::Revert, "")]).await;
    let error = world.answer("evil.eth").await.unwrap_err();
    assert_eq!(error, ChainError::Resolver(ResolverContractError::Reverted("hostile resolver".to_owned())));
}

#[tokio::test]
async fn resolvers_that_send_clients_astray_are_ccip_failures() {
    use HostileResolverMode::{Loop, NoUrls, Ssrf};
    for mode in [Loop, NoUrls, Ssrf] {
        let world = World::of(&[hostile(mode, "https://169.254.169.254/{data}")]).await;
        let error = world.answer("evil.eth").await.unwrap_err();
        assert!(matches!(error, ChainError::Ccip(_)), "{mode:?}: {error:?}");
    }
}

#[tokio::test]
async fn an_endless_lookup_ends() {
    let gateway = Gateway::new(|_| Ok(b"again".into()));
    let world =
        World::new(chain_of(&[hostile(HostileResolverMode::Loop, "https://gateway.example/")]), gateway.clone()).await;

    let error = world.answer("evil.eth").await.unwrap_err();

    assert!(matches!(error, ChainError::Ccip(_)), "{error:?}");
    // At two blocks each hop demands one look-up for each record.
    let records = TextRecordKey::ALL.len() + RequestedCoinTypes::default().count() + EndpointRecordKey::ALL.len();
    assert!(gateway.asked() <= 2 * MAX_LOOK_UPS * records, "{}", gateway.asked());
}

#[tokio::test]
async fn a_lookup_in_the_name_of_another_contract_gives_no_records() {
    let gateway = Gateway::new(|_| Ok(b"forged".into()));
    let world =
        World::new(chain_of(&[hostile(HostileResolverMode::Sender, "https://gateway.example/")]), gateway).await;

    let error = world.answer("evil.eth").await.unwrap_err();

    assert!(matches!(error, ChainError::Ccip(_) | ChainError::Resolver(_)), "{error:?}");
}

#[tokio::test]
async fn a_text_that_is_not_utf8_is_kept_as_bytes() {
    let world = World::of(&[hostile(HostileResolverMode::BadUtf8, "cl.owner")]).await;
    let found = found(world.answer("evil.eth").await.unwrap());
    assert_eq!(found.records.get(TextRecordKey::Owner), &TextRecord::NotUtf8(vec![0xff, 0xfe, 0x80, 0xc0, 0xaf]));
    assert_eq!(found.records.text(TextRecordKey::Entry), Some(ENTRY));
}

#[tokio::test]
async fn a_resolver_that_burns_gas_on_its_interfaces_still_answers() {
    let world = World::of(&[hostile(HostileResolverMode::BurnInterface, "")]).await;
    assert_eq!(found(world.answer("evil.eth").await.unwrap()).records.text(TextRecordKey::Entry), Some(ENTRY));
}

#[tokio::test]
async fn the_owners_address_and_holder_are_read_at_the_block() {
    let unset = SandboxNameRegistration { addr: None, ..registration("unset.eth", EnsResolverKind::Public) };
    let none = SandboxNameRegistration {
        texts: BTreeMap::new(),
        addr: None,
        ..registration("none.eth", EnsResolverKind::None)
    };
    let broken =
        SandboxNameRegistration { texts: BTreeMap::new(), ..hostile(HostileResolverMode::ExtendedGarbage, "") };
    let world = World::of(&[agent(), unset, none, broken]).await;
    let block = world.chain.finalized();
    let holding = async |text: &str| world.reader.read_cl_owner(&name(text), &block, &["sandbox".to_owned()]).await;

    assert_eq!(
        holding("summarizeagent.eth").await,
        Ok(ClOwnerReading { address: Some(BOB), holder: NameHolder::Address(ALICE) })
    );
    assert_eq!(world.server.request_count(), 1);
    for text in ["unset.eth", "none.eth"] {
        assert_eq!(
            holding(text).await,
            Ok(ClOwnerReading { address: None, holder: NameHolder::Address(ALICE) }),
            "{text}"
        );
    }
    assert_eq!(holding("nobody.eth").await, Ok(ClOwnerReading::default()));
    assert!(matches!(holding("evil.eth").await, Err(ChainError::Resolver(_))));
    let elsewhere = ChainBlock { hash: alloy_primitives::B256::repeat_byte(1), ..block };
    let error =
        world.reader.read_cl_owner(&name("summarizeagent.eth"), &elsewhere, &["sandbox".to_owned()]).await.unwrap_err();
    assert!(matches!(error, ChainError::BlockUnavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn endpoints_that_give_nothing_usable_are_named_with_the_cause() {
    let world = World::of(&[agent()]).await;
    let cases = [
        (SandboxRpcFault::Status(503), "HTTP status 503"),
        (SandboxRpcFault::Html, "the reply is HTML, not JSON"),
        (SandboxRpcFault::NotJson, "the reply is not JSON-RPC"),
        (SandboxRpcFault::DropConnection, "error sending request"),
        (SandboxRpcFault::ErrorReply, "error -32005: limit exceeded"),
        (SandboxRpcFault::Garbage, "Multicall3's answer is garbage"),
        (SandboxRpcFault::AliasedOffsets, "an ABI array has too many elements"),
    ];
    for (fault, expected) in cases {
        world.server.set_fault(fault);
        match world.answer("summarizeagent.eth").await {
            Err(ChainError::Unreachable(causes)) => {
                assert_eq!(causes[0].0, "sandbox");
                assert!(causes[0].1.contains(expected), "{fault:?}: {}", causes[0].1);
            }
            other => panic!("{fault:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_reply_without_end_is_cut_off() {
    let world = World::of(&[agent()]).await;
    world.server.set_fault(SandboxRpcFault::HugeBody);
    let limit = LocalLimitError::Reply { endpoint: "sandbox".to_owned(), bytes: MAX_REPLY_BYTES };
    assert_eq!(limit.to_string(), "the answer of sandbox has more than 1048576 bytes");
    assert_eq!(world.answer("summarizeagent.eth").await, Err(ChainError::LocalLimit(limit)));
}

#[tokio::test]
async fn an_endpoint_that_floods_is_named_and_rests() {
    let chain = chain_of(&[agent()]);
    let (first, second) =
        (SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap(), SandboxRpcServer::bind(chain).await.unwrap());
    let reader = reader(vec![endpoint("first", &first.url()), endpoint("second", &second.url())]);
    first.set_fault(SandboxRpcFault::HugeBody);
    let cause = format!("the answer of first has more than {MAX_REPLY_BYTES} bytes");
    for failed in [vec![("first".to_owned(), cause)], Vec::new()] {
        let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
        assert_eq!((reading.endpoints, reading.failed_endpoints), (vec!["second".to_owned()], failed));
    }
    assert_eq!(second.request_count(), INTRODUCED + 1);
}

#[tokio::test]
async fn an_endpoint_that_stalls_is_given_up() {
    let server = SandboxRpcServer::bind(chain_of(&[agent()])).await.unwrap();
    server.set_fault(SandboxRpcFault::Stall);
    let config =
        ChainReaderConfig { timeout: Duration::from_millis(200), ..config(vec![endpoint("slow", &server.url())]) };
    let reader = RpcEnsReader::new(config, &http(), Gateway::refusing());

    let error = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap_err();

    let causes = vec![("slow".to_owned(), "no answer within 200 ms".to_owned())];
    assert_eq!(error, ChainError::Unreachable(causes));
}

#[tokio::test]
async fn another_chain_is_refused() {
    let world = World::of(&[agent()]).await;
    world.server.set_fault(SandboxRpcFault::WrongChainId(5));
    let expected = ChainError::WrongChain { endpoint: "sandbox".to_owned(), expected: CHAIN_ID, observed: 5 };
    assert_eq!(world.answer("summarizeagent.eth").await, Err(expected));
}

#[tokio::test]
async fn a_chain_that_begins_with_another_block_is_refused() {
    let chain = chain_of(&[agent()]);
    let observed = chain.genesis().hash;
    let server = SandboxRpcServer::bind(chain).await.unwrap();
    let answer = async |genesis| {
        let config = ChainReaderConfig { genesis: Some(genesis), ..config(vec![endpoint("sandbox", &server.url())]) };
        RpcEnsReader::new(config, &http(), Gateway::refusing())
            .read_name(&name("summarizeagent.eth"), FIRST)
            .await
            .map(|_| ())
    };
    assert_eq!(answer(observed).await, Ok(()));
    let expected = ChainError::WrongGenesis { endpoint: "sandbox".to_owned(), observed };
    assert_eq!(answer(!observed).await, Err(expected));
}

#[tokio::test]
async fn a_chain_without_the_contracts_is_refused() {
    let server = SandboxRpcServer::bind(chain_of(&[agent()])).await.unwrap();
    let standard = EnsContractAddresses::default();
    let cases = [
        (EnsContractAddresses { multicall3: NO_CODE, ..standard }, "there is no Multicall3 at the configured address"),
        (EnsContractAddresses { registry: NO_CODE, ..standard }, "there is no ENS registry at the configured address"),
        (
            EnsContractAddresses { universal_resolver: NO_CODE, ..standard },
            "there is no Universal Resolver at the configured address",
        ),
    ];
    for (contracts, cause) in cases {
        let config = ChainReaderConfig { contracts, ..config(vec![endpoint("sandbox", &server.url())]) };
        let reader = RpcEnsReader::new(config, &http(), Gateway::refusing());
        let error = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap_err();
        assert_eq!(error, ChainError::Unreachable(vec![("sandbox".to_owned(), cause.to_owned())]));
    }
}

#[tokio::test]
async fn a_header_of_another_block_is_made_up_for_by_asking_by_hash() {
    let chain = changed_chain(EnsResolverKind::Public);
    let world = World::new(Arc::clone(&chain), Gateway::refusing()).await;
    world.server.set_fault(SandboxRpcFault::LaggingHeader);

    let reading = world.reader.read_name(&name("summarizeagent.eth"), BlockSelector::Latest).await.unwrap();

    // A batch without a call at the newest block, block 0, and the call by hash.
    assert_eq!(world.server.request_count(), 3);
    assert_eq!(reading.block, chain.finalized());
    assert_eq!(found(reading.answer).records.text(TextRecordKey::Entry), Some(ENTRY));
}

#[tokio::test]
async fn the_owner_is_asked_of_the_endpoint_that_gave_the_reading_and_of_no_other() {
    let chain = chain_of(&[agent()]);
    let (first, second) =
        (SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap(), SandboxRpcServer::bind(chain).await.unwrap());
    let reader = reader(vec![endpoint("first", &first.url()), endpoint("second", &second.url())]);

    let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
    assert_eq!(reading.endpoints, ["first"]);
    first.set_fault(SandboxRpcFault::Html);

    let holding = reader.read_cl_owner(&name("summarizeagent.eth"), &reading.block, &reading.endpoints).await;
    assert!(matches!(holding, Err(ChainError::Unreachable(_))), "{holding:?}");
    assert_eq!(second.request_count(), 0);
}

#[tokio::test]
async fn the_next_endpoint_answers_and_the_failed_one_rests() {
    let chain = chain_of(&[agent()]);
    let (first, second) =
        (SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap(), SandboxRpcServer::bind(chain).await.unwrap());
    let now = Arc::new(AtomicI64::new(1_000_000));
    let clock = Arc::clone(&now);
    let mut endpoints = vec![endpoint("first", &first.url()), endpoint("second", &second.url())];
    endpoints[1].own = true;
    let reader = reader(endpoints)
        .with_clock(Arc::new(move || Timestamp::from_millisecond(clock.load(Ordering::Relaxed)).unwrap()));
    let read = async || reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
    first.set_fault(SandboxRpcFault::Html);

    let reading = read().await;
    assert_eq!(reading.failed_endpoints, [("first".to_owned(), "the reply is HTML, not JSON".to_owned())]);
    assert!(reading.proof.own);

    first.set_fault(SandboxRpcFault::None);
    let reading = read().await;
    assert_eq!((reading.failed_endpoints, reading.endpoints), (Vec::new(), vec!["second".to_owned()]));
    assert_eq!(second.request_count(), INTRODUCED + 1);

    now.fetch_add(30_000, Ordering::Relaxed);
    let reading = read().await;
    assert!(!reading.proof.own);
    assert_eq!((reading.endpoints, second.request_count()), (vec!["first".to_owned()], INTRODUCED + 1));
}

#[tokio::test]
async fn endpoints_that_fail_in_different_ways_are_all_named() {
    let chain = chain_of(&[agent()]);
    let (first, second) =
        (SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap(), SandboxRpcServer::bind(chain).await.unwrap());
    first.set_fault(SandboxRpcFault::WrongChainId(5));
    second.set_fault(SandboxRpcFault::Status(502));
    let reader = reader(vec![endpoint("first", &first.url()), endpoint("second", &second.url())]);

    let error = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap_err();

    let causes = [("first", "it serves chain 5"), ("second", "HTTP status 502")];
    let causes = causes.map(|(label, cause)| (label.to_owned(), cause.to_owned()));
    assert_eq!(error, ChainError::Unreachable(causes.into()));
}

/// What stands between the reader and the sandbox: it gets request and sound reply, and makes the reply.
type Twist = fn(&Value, Value) -> (StatusCode, Value);

struct Twisted {
    upstream: String,
    http: reqwest::Client,
    twist: Twist,
    seen: Mutex<Vec<Value>>,
}

/// An endpoint in front of a sandbox chain with an agent.
struct Proxy {
    _server: SandboxRpcServer,
    url: String,
    twisted: Arc<Twisted>,
}

impl Proxy {
    async fn new(twist: Twist) -> Self {
        let server = SandboxRpcServer::bind(chain_of(&[agent()])).await.unwrap();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let twisted = Arc::new(Twisted { upstream: server.url(), http, twist, seen: Mutex::default() });
        let router = Router::new().fallback(post(forward)).with_state(Arc::clone(&twisted));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v3/0123456789abcdef", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { _server: server, url, twisted }
    }

    fn reader(&self) -> RpcEnsReader {
        reader(vec![endpoint("proxy", &self.url)])
    }

    async fn answer(&self) -> Result<EnsAnswer, ChainError> {
        self.reader().read_name(&name("summarizeagent.eth"), FIRST).await.map(|reading| reading.answer)
    }

    fn seen(&self) -> Vec<Value> {
        self.twisted.seen.lock().unwrap().clone()
    }
}

async fn forward(State(state): State<Arc<Twisted>>, body: Bytes) -> (StatusCode, String) {
    let request: Value = serde_json::from_slice(&body).unwrap();
    state.seen.lock().unwrap().push(request.clone());
    let reply = state.http.post(&state.upstream).body(body).send().await.unwrap().bytes().await.unwrap();
    let (status, reply) = (state.twist)(&request, serde_json::from_slice(&reply).unwrap());
    (status, reply.to_string())
}

async fn unusable(twist: Twist) -> String {
    match Proxy::new(twist).await.answer().await {
        Err(ChainError::Unreachable(causes)) => causes[0].1.clone(),
        other => panic!("{other:?}"),
    }
}

/// The first of the replies to a batch, or the reply to a single request.
fn first(reply: &mut Value) -> &mut Value {
    if reply.is_array() { &mut reply[0] } else { reply }
}

/// The reply to the first request that fits.
fn reply_to<'r>(request: &Value, reply: &'r mut Value, fits: impl Fn(&Value) -> bool) -> Option<&'r mut Value> {
    if !request.is_array() {
        return fits(request).then_some(reply);
    }
    let id = &request.as_array()?.iter().find(|request| fits(request))?["id"];
    reply.as_array_mut()?.iter_mut().find(|reply| reply["id"] == *id)
}

fn is_header(request: &Value) -> bool {
    request["method"] == "eth_getBlockByNumber" && request["params"][0] == "finalized"
}

fn is_call(request: &Value, tag: &str) -> bool {
    request["method"] == "eth_call" && request["params"][1] == tag
}

fn failed(reply: &mut Value, message: &str) {
    *reply = json!({"jsonrpc": "2.0", "id": reply["id"], "error": {"code": -32000, "message": message}});
}

#[tokio::test]
async fn the_order_of_answers_does_not_matter() {
    let proxy = Proxy::new(|_, mut reply| {
        if let Some(replies) = reply.as_array_mut() {
            replies.reverse();
        }
        (StatusCode::OK, reply)
    })
    .await;
    assert_eq!(found(proxy.answer().await.unwrap()).records.text(TextRecordKey::Entry), Some(ENTRY));
}

#[tokio::test]
async fn answers_that_match_no_request_are_refused() {
    let stray = "the reply answers a request that was not made";
    let wrong_id = unusable(|_, mut reply| {
        first(&mut reply)["id"] = json!(999);
        (StatusCode::OK, reply)
    });
    assert_eq!(wrong_id.await, stray);
    let id_as_text = unusable(|_, mut reply| {
        let id = first(&mut reply)["id"].to_string();
        first(&mut reply)["id"] = json!(id);
        (StatusCode::OK, reply)
    });
    assert_eq!(id_as_text.await, stray);
    let twice = unusable(|_, mut reply| {
        let again = first(&mut reply).clone();
        if let Some(replies) = reply.as_array_mut() {
            replies.push(again);
        }
        (StatusCode::OK, reply)
    });
    assert_eq!(twice.await, stray);
    let missing = unusable(|_, mut reply| {
        if let Some(replies) = reply.as_array_mut() {
            replies.remove(2);
        }
        (StatusCode::OK, reply)
    });
    assert_eq!(missing.await, "the reply leaves 1 requests unanswered");
}

#[tokio::test]
async fn a_header_that_does_not_hash_to_its_hash_is_refused() {
    let cause = unusable(|request, mut reply| {
        if let Some(header) = reply_to(request, &mut reply, is_header) {
            header["result"]["timestamp"] = json!("0x1");
        }
        (StatusCode::OK, reply)
    });
    assert_eq!(cause.await, "the header's fields do not hash to its hash");
}

#[tokio::test]
async fn an_endpoint_without_the_block_is_not_an_absent_name() {
    let proxy = Proxy::new(|request, mut reply| {
        if let Some(header) = reply_to(request, &mut reply, is_header) {
            header["result"] = Value::Null;
        }
        (StatusCode::OK, reply)
    })
    .await;
    let error = proxy.answer().await.unwrap_err();
    assert!(matches!(&error, ChainError::BlockUnavailable { block, .. } if block == "finalized"), "{error:?}");

    let proxy = Proxy::new(|request, mut reply| {
        if let Some(call) = reply_to(request, &mut reply, |request| is_call(request, "finalized")) {
            failed(call, "header not found");
        }
        (StatusCode::OK, reply)
    })
    .await;
    let error = proxy.answer().await.unwrap_err();
    assert!(matches!(error, ChainError::BlockUnavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn endpoints_that_refuse_batches_are_asked_one_by_one() {
    let refusals: [Twist; 4] = [
        |request, reply| {
            if !request.is_array() {
                return (StatusCode::OK, reply);
            }
            (StatusCode::BAD_REQUEST, json!({"error": "no batches"}))
        },
        |request, reply| {
            let error = json!({"code": -32600, "message": "unsupported"});
            let refusal = json!({"jsonrpc": "2.0", "id": null, "error": error});
            (StatusCode::OK, if request.is_array() { refusal } else { reply })
        },
        |request, reply| {
            let error = json!({"code": 31, "message": "Batch of more than 3 requests are not allowed"});
            let refusal = json!([{"jsonrpc": "2.0", "id": null, "error": error}]);
            (StatusCode::OK, if request.is_array() { refusal } else { reply })
        },
        |request, reply| {
            let error = json!({"code": 31, "message": "batches are not allowed"});
            let refusal = json!([{"jsonrpc": "2.0", "id": request[0]["id"], "error": error}]);
            (StatusCode::OK, if request.is_array() { refusal } else { reply })
        },
    ];
    for twist in refusals {
        let proxy = Proxy::new(twist).await;
        let reader = proxy.reader();
        for _ in 0..2 {
            let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
            assert_eq!(found(reading.answer).records.text(TextRecordKey::Entry), Some(ENTRY));
        }
        let seen = proxy.seen();
        assert_eq!(seen.iter().filter(|request| request.is_array()).count(), 1);
        assert_eq!(seen.len(), 1 + 5 + 3, "chain id and block 0 are asked for once");
    }
}

#[tokio::test]
async fn a_rate_limit_is_the_cause_once_single_requests_are_limited_too() {
    let proxy = Proxy::new(|_, _| {
        let error = json!({"code": -32005, "message": "daily request count exceeded"});
        (StatusCode::OK, json!({"jsonrpc": "2.0", "id": null, "error": error}))
    })
    .await;
    let error = proxy.answer().await.unwrap_err();
    let cause = "the endpoint refused: daily request count exceeded";
    assert_eq!(error, ChainError::Unreachable(vec![("proxy".to_owned(), cause.to_owned())]));
    assert!(proxy.seen().len() <= 6, "a batch, its three requests, the fourth, and block 0");
}

#[tokio::test]
async fn a_failure_at_latest_alone_does_not_hide_the_reading() {
    let proxy = Proxy::new(|request, mut reply| {
        if let Some(call) = reply_to(request, &mut reply, |request| is_call(request, "latest")) {
            failed(call, "busy");
        }
        (StatusCode::OK, reply)
    })
    .await;

    let reading = proxy.reader().read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(found(reading.answer).records.text(TextRecordKey::Entry), Some(ENTRY));
    let causes = vec![("proxy".to_owned(), "error -32000: busy".to_owned())];
    assert_eq!(reading.latest, Some(Err(ChainError::Unreachable(causes))));
}

#[tokio::test]
async fn a_newest_block_older_than_the_pinned_one_tells_nothing() {
    let proxy = Proxy::new(|request, mut reply| {
        if let Some(call) = reply_to(request, &mut reply, |request| is_call(request, "latest")) {
            let result = call["result"].as_str().unwrap();
            call["result"] = json!(format!("0x{}{}", "0".repeat(64), &result[66..]));
        }
        (StatusCode::OK, reply)
    })
    .await;

    let reading = proxy.reader().read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    let cause = "the newest block is older than the block that was read";
    let causes = vec![("proxy".to_owned(), cause.to_owned())];
    assert_eq!(reading.latest, Some(Err(ChainError::Unreachable(causes))));
}

#[tokio::test]
async fn keys_in_urls_do_not_get_out() {
    let proxy = Proxy::new(|request, _| {
        let error = json!({"code": -32001, "message": "key 0123456789abcdef is exhausted"});
        let failure = |request: &Value| json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
        (StatusCode::OK, request.as_array().map_or_else(|| failure(request), |all| all.iter().map(failure).collect()))
    })
    .await;

    let error = proxy.answer().await.unwrap_err();

    assert_eq!(error.to_string(), "no RPC endpoint answered: proxy: error -32001: key [key] is exhausted");
    assert!(!format!("{:?}", endpoint("proxy", &proxy.url)).contains("0123456789abcdef"));
}

/// A reader of these endpoints, of which `agree` must agree.
fn quorum(agree: usize, endpoints: Vec<RpcEndpointSettings>, http: &Arc<dyn JsonRpcHttpClient>) -> RpcEnsReader {
    let config = ChainReaderConfig { demand: ProofGradeDemand::Quorum(agree), ..config(endpoints) };
    RpcEnsReader::new(config, http, Gateway::refusing())
}

/// Endpoints `a`, `b`, … of as many operators over these chains.
async fn endpoints_of(chains: &[&Arc<SandboxChain>]) -> (Vec<SandboxRpcServer>, Vec<RpcEndpointSettings>) {
    let mut servers = Vec::new();
    let mut endpoints = Vec::new();
    for (chain, label) in chains.iter().zip(["a", "b", "c", "d"]) {
        let server = SandboxRpcServer::bind(Arc::clone(chain)).await.unwrap();
        endpoints.push(endpoint(label, &server.url()));
        servers.push(server);
    }
    (servers, endpoints)
}

fn sorted(labels: &[String]) -> Vec<&str> {
    let labels: std::collections::BTreeSet<&str> = labels.iter().map(String::as_str).collect();
    labels.into_iter().collect()
}

/// A reader with the grade that the configuration demands.
fn graded(
    config: ChainReaderConfig,
    http: &Arc<dyn JsonRpcHttpClient>,
    gateway: Arc<dyn CcipReadGatewayClient>,
) -> Box<dyn EnsReader> {
    match config.demand {
        ProofGradeDemand::StateProof(_) => Box::new(ProvenEnsReader::new(config, http, gateway)),
        _ => Box::new(RpcEnsReader::new(config, http, gateway)),
    }
}

/// A transport that delays requests to the other endpoints until the first endpoint has completed a request and has
/// none pending.
struct FirstFirst {
    http: Arc<dyn JsonRpcHttpClient>,
    first: Url,
    progress: watch::Sender<FirstProgress>,
}

/// The requests to the first endpoint.
#[derive(Default)]
struct FirstProgress {
    pending: usize,
    has_answered: bool,
}

impl FirstFirst {
    fn new(first: Url) -> Self {
        Self { http: http(), first, progress: watch::Sender::default() }
    }
}

#[async_trait]
impl JsonRpcHttpClient for FirstFirst {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        if *url != self.first {
            let mut progress = self.progress.subscribe();
            progress.wait_for(|first| first.has_answered && first.pending == 0).await.expect("the sender is in `self`");
            return self.http.post_json(url, body, cap, timeout).await;
        }
        self.progress.send_modify(|first| first.pending += 1);
        let _pending = PendingFirstRequest(&self.progress);
        self.http.post_json(url, body, cap, timeout).await
    }
}

/// Ends a request to the first endpoint, even if it is dropped.
struct PendingFirstRequest<'p>(&'p watch::Sender<FirstProgress>);

impl Drop for PendingFirstRequest<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|first| {
            first.pending -= 1;
            first.has_answered = true;
        });
    }
}

/// The same, and the first endpoint has another address wherever there is [`BOB`]'s.
struct OtherAddress(FirstFirst);

#[async_trait]
impl JsonRpcHttpClient for OtherAddress {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        let reply = self.0.post_json(url, body, cap, timeout).await?;
        let lies = *url == self.0.first;
        Ok(if lies { String::from_utf8_lossy(&reply).replace("0b0b", "0b0c").into() } else { reply })
    }
}

#[tokio::test]
async fn a_quorum_takes_one_exchange() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain]).await;
    let reader = quorum(2, endpoints, &http());

    let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(servers.iter().map(SandboxRpcServer::request_count).collect::<Vec<_>>(), [INTRODUCED; 2]);
    assert_eq!(reading.proof, ProofStrength { grade: ProofGrade::Quorum, asked: 2, agreed: 2, own: false });
    assert_eq!(reading.latest, Some(Ok(latest_of(&reading))));
    let holding = reader.read_cl_owner(&name("summarizeagent.eth"), &reading.block, &reading.endpoints).await;
    assert_eq!(holding, Ok(ClOwnerReading { address: Some(BOB), holder: NameHolder::Address(ALICE) }));
    let requests: Vec<_> = servers.iter().map(SandboxRpcServer::request_count).collect();
    assert_eq!(requests, [INTRODUCED + 1; 2], "both are asked for the owner");
}

/// The lines that name liars, once there is one: they are counted when all answers have come.
async fn lies_when_counted(counts: &PrometheusExposition) -> Vec<String> {
    let counting = async {
        loop {
            let text = counts.render();
            let lies: Vec<_> = text.lines().filter(|line| line.starts_with("clresolve_rpc_lies_total")).collect();
            if !lies.is_empty() {
                return lies.into_iter().map(str::to_owned).collect();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), counting).await.expect("a lie is counted")
}

#[tokio::test]
async fn a_liar_that_answers_first_is_outvoted_and_named() {
    let chain = chain_of(&[agent()]);
    for fault in [SandboxRpcFault::OtherRecords, SandboxRpcFault::OtherBlocks] {
        let counts = PrometheusExposition::default();
        let _counting = metrics::set_default_local_recorder(&counts);
        let (servers, endpoints) = endpoints_of(&[&chain, &chain, &chain]).await;
        servers[0].set_fault(fault);
        let first = endpoints[0].url.clone();
        let transport = FirstFirst::new(first);
        let reader = quorum(2, endpoints, &(Arc::new(transport) as Arc<dyn JsonRpcHttpClient>));

        let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

        assert_eq!(found(reading.answer).records.text(TextRecordKey::Entry), Some(ENTRY), "{fault:?}");
        assert!(!reading.endpoints.contains(&"a".to_owned()), "{fault:?}");
        let [(liar, statement)] = reading.contradicted_by.as_slice() else { panic!("{:?}", reading.contradicted_by) };
        assert_eq!(liar, "a", "{fault:?}");
        assert!(statement.starts_with("block 1 is 0x") && statement.contains("records 0x"), "{statement}");
        assert_eq!(lies_when_counted(&counts).await, [r#"clresolve_rpc_lies_total{endpoint="a"} 1"#], "{fault:?}");
    }
}

#[tokio::test]
async fn a_laggard_is_not_waited_for() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain, &chain]).await;
    servers[0].set_fault(SandboxRpcFault::Stall);
    let config = ChainReaderConfig {
        demand: ProofGradeDemand::Quorum(2),
        timeout: Duration::from_secs(3600),
        ..config(endpoints)
    };
    let reader = RpcEnsReader::new(config, &http(), Gateway::refusing());

    let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(sorted(&reading.endpoints), ["b", "c"]);
    assert_eq!(reading.proof.asked, 3);
}

/// A reader with a quorum of two, whose requests may take an hour.
fn patient(hedge_after: Duration, endpoints: Vec<RpcEndpointSettings>) -> RpcEnsReader {
    let timeout = Duration::from_secs(3600);
    let config = ChainReaderConfig { demand: ProofGradeDemand::Quorum(2), timeout, hedge_after, ..config(endpoints) };
    RpcEnsReader::new(config, &http(), Gateway::refusing())
}

#[tokio::test]
async fn spare_endpoints_are_asked_beside_those_that_stall() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain, &chain, &chain]).await;
    servers[0].set_fault(SandboxRpcFault::Stall);
    servers[1].set_fault(SandboxRpcFault::Stall);
    let reader = patient(Duration::from_millis(1), endpoints);

    let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(sorted(&reading.endpoints), ["c", "d"]);
    assert_eq!(reading.proof, ProofStrength { grade: ProofGrade::Quorum, asked: 4, agreed: 2, own: false });
}

#[tokio::test]
async fn endpoints_that_stall_and_lie_do_not_outlast_the_list() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain, &chain, &chain]).await;
    servers[0].set_fault(SandboxRpcFault::Stall);
    servers[1].set_fault(SandboxRpcFault::OtherRecords);
    servers[2].set_fault(SandboxRpcFault::Html);
    let timeout = Duration::from_millis(300);
    let config = ChainReaderConfig { timeout, hedge_after: Duration::from_millis(1), ..config(endpoints) };
    let config = ChainReaderConfig { demand: ProofGradeDemand::Quorum(2), ..config };
    let reader = RpcEnsReader::new(config, &http(), Gateway::refusing());

    let error = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap_err();

    assert!(matches!(error, ChainError::Disagree(_)), "{error}");
    let most = 2 * INTRODUCED;
    assert!(servers.iter().all(|server| server.request_count() <= most), "no endpoint is asked again and again");
}

#[tokio::test]
async fn no_spare_endpoint_is_asked_while_none_stalls() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain, &chain, &chain]).await;
    let reader = patient(Duration::from_secs(3600), endpoints);

    let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
    reader.read_cl_owner(&name("summarizeagent.eth"), &reading.block, &reading.endpoints).await.unwrap();

    assert_eq!(reading.proof.asked, 3);
    assert_eq!(servers[3].request_count(), 0);
}

#[tokio::test]
async fn others_take_the_place_of_those_that_stall_or_fail_when_the_owner_is_asked_for() {
    let chain = chain_of(&[agent()]);
    for fault in [SandboxRpcFault::Stall, SandboxRpcFault::Html, SandboxRpcFault::Garbage] {
        let (servers, endpoints) = endpoints_of(&[&chain, &chain, &chain, &chain]).await;
        let reader = patient(Duration::from_millis(1), endpoints);
        let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
        let faulty = servers.iter().zip(["a", "b", "c", "d"]).find(|(_, label)| reading.endpoints[0] == **label);
        faulty.expect("one of them").0.set_fault(fault);

        let holding = reader.read_cl_owner(&name("summarizeagent.eth"), &reading.block, &reading.endpoints).await;

        assert_eq!(holding, Ok(ClOwnerReading { address: Some(BOB), holder: NameHolder::Address(ALICE) }), "{fault:?}");
    }
}

#[tokio::test]
async fn who_contradicts_the_others_about_the_owner_is_counted() {
    let chain = chain_of(&[agent()]);
    let (_servers, endpoints) = endpoints_of(&[&chain, &chain, &chain]).await;
    let (counts, first) = (PrometheusExposition::default(), endpoints[0].url.clone());
    let _counting = metrics::set_default_local_recorder(&counts);
    let reading = quorum(2, endpoints.clone(), &http()).read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
    let transport = OtherAddress(FirstFirst::new(first));
    let reader = quorum(2, endpoints, &(Arc::new(transport) as Arc<dyn JsonRpcHttpClient>));

    let all = ["a", "b", "c"].map(str::to_owned);
    let holding = reader.read_cl_owner(&name("summarizeagent.eth"), &reading.block, &all).await;

    assert_eq!(holding, Ok(ClOwnerReading { address: Some(BOB), holder: NameHolder::Address(ALICE) }));
    assert_eq!(lies_when_counted(&counts).await, [r#"clresolve_rpc_lies_total{endpoint="a"} 1"#]);
}

#[tokio::test]
async fn endpoints_that_straddle_an_epoch_meet_at_the_block_that_both_have() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&agent()).unwrap();
    builder.seal_block(time(NOON)).unwrap();
    builder.finalize_newest_block().unwrap();
    let behind = Arc::new(builder.build().unwrap());
    builder.seal_block(time("2026-11-20T12:06:24Z")).unwrap();
    builder.finalize_newest_block().unwrap();
    let ahead = Arc::new(builder.build().unwrap());
    let (servers, endpoints) = endpoints_of(&[&ahead, &behind]).await;

    let reading = quorum(2, endpoints, &http()).read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(reading.block, behind.finalized());
    let requests: Vec<_> = servers.iter().map(SandboxRpcServer::request_count).collect();
    assert_eq!(requests, [INTRODUCED + 1, INTRODUCED]);
    assert_eq!(reading.contradicted_by, []);
}

/// Chains of the same agent: the first ends with the first of these blocks, each further one has one block more; all
/// blocks are finalized.
fn ever_longer(times: &[&str]) -> Vec<Arc<SandboxChain>> {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&agent()).unwrap();
    let mut chains = Vec::new();
    for at in times {
        builder.seal_block(time(at)).unwrap();
        builder.finalize_newest_block().unwrap();
        chains.push(Arc::new(builder.build().unwrap()));
    }
    chains
}

#[tokio::test]
async fn one_that_claims_a_much_newer_block_makes_nobody_wait_for_a_laggard() {
    let chains = ever_longer(&[NOON, "2026-11-20T14:00:00Z"]);
    let (servers, endpoints) = endpoints_of(&[&chains[1], &chains[0], &chains[0], &chains[0]]).await;
    servers[3].set_fault(SandboxRpcFault::Stall);

    // The claim is known before the others agree. They have answered long before any of them counts as stalled.
    let transport = FirstFirst::new(endpoints[0].url.clone());
    let (timeout, hedge_after) = (Duration::from_secs(3600), Duration::from_secs(1));
    let config = ChainReaderConfig { demand: ProofGradeDemand::Quorum(2), timeout, hedge_after, ..config(endpoints) };
    let reader = RpcEnsReader::new(config, &(Arc::new(transport) as Arc<dyn JsonRpcHttpClient>), Gateway::refusing());
    let reader = reader.with_clock(Arc::new(|| time(LATER)));
    let agent = name("summarizeagent.eth");
    let reading = tokio::time::timeout(Duration::from_secs(30), reader.read_name(&agent, FIRST)).await;
    let reading = reading.expect("the laggard is not waited for").unwrap();

    assert_eq!(reading.block, chains[0].finalized());
    assert!(!reading.endpoints.contains(&"d".to_owned()));
}

/// A block that is too old to rely on is no answer as long as a slow endpoint may have a newer one.
#[tokio::test]
async fn slow_endpoint_is_waited_for_where_others_have_too_old_a_block() {
    let chains = ever_longer(&[NOON, "2026-11-20T14:00:00Z"]);
    let (_servers, endpoints) = endpoints_of(&[&chains[1], &chains[0], &chains[1]]).await;
    let transport =
        LastLast { transport: http(), last: endpoints[0].url.clone(), answered: tokio::sync::Semaphore::new(0) };
    let (timeout, hedge_after) = (Duration::from_secs(3600), Duration::from_millis(1));
    let config = ChainReaderConfig { demand: ProofGradeDemand::Quorum(2), timeout, hedge_after, ..config(endpoints) };
    let reader = RpcEnsReader::new(config, &(Arc::new(transport) as Arc<dyn JsonRpcHttpClient>), Gateway::refusing());
    let reader = reader.with_clock(Arc::new(|| time("2026-11-20T14:10:00Z")));

    let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(reading.block, chains[1].finalized());
    assert_eq!(sorted(&reading.endpoints), ["a", "c"]);
}

/// A transport through which block 0 does not come the first time.
struct LateGenesis {
    transport: Arc<dyn JsonRpcHttpClient>,
    asked: AtomicUsize,
}

#[async_trait]
impl JsonRpcHttpClient for LateGenesis {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        if String::from_utf8_lossy(&body).contains("\"0x0\"") && self.asked.fetch_add(1, Ordering::Relaxed) == 0 {
            return Err(HttpRequestError::Timeout(timeout));
        }
        self.transport.post_json(url, body, cap, timeout).await
    }
}

#[tokio::test]
async fn block_0_that_did_not_come_is_asked_for_again() {
    let (_servers, endpoints) = endpoints_of(&[&chain_of(&[agent()])]).await;
    let transport: Arc<dyn JsonRpcHttpClient> = Arc::new(LateGenesis { transport: http(), asked: AtomicUsize::new(0) });
    let config = ChainReaderConfig { genesis: Some(alloy_primitives::B256::repeat_byte(1)), ..config(endpoints) };
    let reader = RpcEnsReader::new(config, &transport, Gateway::refusing());
    let read = async || reader.read_name(&name("summarizeagent.eth"), FIRST).await;

    read().await.unwrap();
    assert!(matches!(read().await, Err(ChainError::WrongGenesis { .. })));
}

/// A transport through which one endpoint answers once, and then never.
struct OnceOnly {
    transport: Arc<dyn JsonRpcHttpClient>,
    silent: Url,
    asked: AtomicUsize,
}

#[async_trait]
impl JsonRpcHttpClient for OnceOnly {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        if *url == self.silent && self.asked.fetch_add(1, Ordering::Relaxed) > 0 {
            std::future::pending::<()>().await;
        }
        self.transport.post_json(url, body, cap, timeout).await
    }
}

#[tokio::test]
async fn one_that_is_ahead_and_falls_silent_holds_up_nobody() {
    let chains = ever_longer(&[NOON, "2026-11-20T12:06:24Z", "2026-11-20T12:12:48Z"]);
    let (_servers, endpoints) = endpoints_of(&[&chains[2], &chains[1], &chains[0]]).await;
    let transport = OnceOnly { transport: http(), silent: endpoints[0].url.clone(), asked: AtomicUsize::new(0) };
    let timeout = Duration::from_secs(3600);
    let hedge_after = Duration::from_millis(1);
    let config = ChainReaderConfig { demand: ProofGradeDemand::Quorum(2), timeout, hedge_after, ..config(endpoints) };
    let reader = RpcEnsReader::new(config, &(Arc::new(transport) as Arc<dyn JsonRpcHttpClient>), Gateway::refusing());
    let reader = reader.with_clock(Arc::new(|| time(LATER)));

    let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

    assert_eq!(reading.block, chains[0].finalized());
    assert_eq!(sorted(&reading.endpoints), ["b", "c"]);
}

/// A transport through which one endpoint answers only after two others have.
struct LastLast {
    transport: Arc<dyn JsonRpcHttpClient>,
    last: Url,
    answered: tokio::sync::Semaphore,
}

#[async_trait]
impl JsonRpcHttpClient for LastLast {
    async fn post_json(
        &self,
        url: &Url,
        body: Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<Bytes, HttpRequestError> {
        if *url == self.last {
            self.answered.acquire_many(2).await.unwrap().forget();
        }
        let reply = self.transport.post_json(url, body, cap, timeout).await;
        if *url != self.last {
            self.answered.add_permits(1);
        }
        reply
    }
}

#[tokio::test]
async fn one_that_objects_to_the_newest_block_and_one_that_fails_withhold_no_name() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&agent()).unwrap();
    builder.seal_block(time(NOON)).unwrap();
    builder.finalize_newest_block().unwrap();
    let honest = Arc::new(builder.build().unwrap());
    builder.set_text(&agent().name, "cl.entry", "x402://summarizeagent.eth/other/v1").unwrap();
    builder.seal_block(time(LATER)).unwrap();
    let objecting = Arc::new(builder.build().unwrap());
    let (servers, endpoints) = endpoints_of(&[&honest, &objecting, &honest, &honest]).await;
    servers[2].set_fault(SandboxRpcFault::Html);

    for demand in [ProofGradeDemand::Quorum(2), ProofGradeDemand::StateProof(2)] {
        let config = ChainReaderConfig { demand, ..config(endpoints.clone()) };
        let last = endpoints[2].url.clone();
        let transport = LastLast { transport: http(), last, answered: tokio::sync::Semaphore::new(0) };
        let (transport, gateway): (Arc<dyn JsonRpcHttpClient>, _) = (Arc::new(transport), Gateway::refusing());
        let reader: Box<dyn EnsReader> = match demand {
            ProofGradeDemand::StateProof(_) => Box::new(ProvenEnsReader::new(config, &transport, gateway)),
            _ => Box::new(RpcEnsReader::new(config, &transport, gateway)),
        };
        let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();

        assert_eq!(found(reading.answer).records.text(TextRecordKey::Entry), Some(ENTRY), "{demand:?}");
        let latest = found(reading.latest.unwrap().unwrap().answer);
        assert_eq!(latest.records.text(TextRecordKey::Entry), Some(ENTRY), "{demand:?}");
    }
}

#[tokio::test]
async fn endpoints_that_contradict_each_other_are_quoted() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain]).await;
    servers[1].set_fault(SandboxRpcFault::OtherBlocks);

    let error = quorum(2, endpoints, &http()).read_name(&name("summarizeagent.eth"), FIRST).await.unwrap_err();

    let ChainError::Disagree(statements) = &error else { panic!("{error:?}") };
    assert_eq!(statements.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(statements.iter().all(|(_, words)| words.starts_with("block 1 is 0x")), "{error}");
}

#[tokio::test]
async fn too_few_endpoints_are_named_with_the_causes() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain]).await;
    servers[1].set_fault(SandboxRpcFault::Html);

    let error = quorum(2, endpoints, &http()).read_name(&name("summarizeagent.eth"), FIRST).await.unwrap_err();

    assert_eq!(
        error.to_string(),
        "2 endpoints of different operators must agree, but only a answered; b: the reply is HTML, not JSON"
    );
}

#[tokio::test]
async fn the_owner_needs_a_quorum_too() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain]).await;
    let reader = quorum(2, endpoints, &http());
    let reading = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
    for fault in [SandboxRpcFault::Html, SandboxRpcFault::Garbage, SandboxRpcFault::OtherBlocks] {
        servers[1].set_fault(fault);
        let holding = reader.read_cl_owner(&name("summarizeagent.eth"), &reading.block, &reading.endpoints).await;
        assert!(holding.is_err(), "{fault:?}: {holding:?}");
    }
}

#[tokio::test]
async fn the_first_block_that_a_quorum_names_is_held_against_later_endpoints() {
    let chain = chain_of(&[agent()]);
    let (servers, endpoints) = endpoints_of(&[&chain, &chain, &chain]).await;
    servers[2].set_fault(SandboxRpcFault::Html);
    let reader = quorum(2, endpoints, &http());
    reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap();
    servers[1].set_fault(SandboxRpcFault::Html);
    servers[2].set_fault(SandboxRpcFault::OtherGenesis);

    let error = reader.read_name(&name("summarizeagent.eth"), FIRST).await.unwrap_err();

    let ChainError::TooFew { answered, failed, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*answered, ["a"]);
    assert!(failed.iter().any(|(label, cause)| label == "c" && cause.contains("begins with block 0x")), "{error}");
}
