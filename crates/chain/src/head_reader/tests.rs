//! Names read at the head of the sandbox chain, from endpoints that are honest, lag or lie.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use alloy_primitives::Address;
use clresolve_sandbox::chain::{
    CHAIN_ID, EnsResolverKind, HostileResolverMode, SandboxChain, SandboxChainBuilder, SandboxNameRegistration,
    SandboxRpcFault, SandboxRpcServer,
};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::gateway::GuardedCcipReadGatewayClient;
use crate::testing::{UnguardedHttpClient, test_config};
use crate::{EnsReader as _, RpcEnsReader};

const HOLDER: Address = Address::repeat_byte(7);
const BOTH: ProofGradeDemand = ProofGradeDemand::Quorum(2);

fn name(text: &str) -> EnsName {
    EnsName::parse(text).unwrap()
}

fn time() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

/// An agent's name with an address, whose resolver is this one.
fn agent(text: &str, resolver: EnsResolverKind) -> SandboxNameRegistration {
    let texts = [("cl.entry", format!("x402://{text}/summarize/v1")), ("cl.owner", "owner.eth".to_owned())];
    let texts: BTreeMap<_, _> = texts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    SandboxNameRegistration { resolver, texts, addr: Some(HOLDER), ..SandboxNameRegistration::new(name(text), HOLDER) }
}

fn good() -> SandboxNameRegistration {
    agent("good.eth", EnsResolverKind::Public)
}

/// Two chains with these names. The newest block of the second follows that of the first.
fn two_chains(registrations: &[SandboxNameRegistration]) -> [Arc<SandboxChain>; 2] {
    let mut builder = SandboxChainBuilder::new().unwrap();
    for registration in registrations {
        builder.register_name(registration).unwrap();
    }
    [time(), time() + SignedDuration::from_secs(12)].map(|time| {
        builder.seal_block(time).unwrap();
        Arc::new(builder.build().unwrap())
    })
}

fn chain(registrations: &[SandboxNameRegistration]) -> Arc<SandboxChain> {
    let [_, chain] = two_chains(registrations);
    chain
}

fn http() -> Arc<dyn JsonRpcHttpClient> {
    Arc::new(UnguardedHttpClient::new())
}

async fn servers(chains: &[&Arc<SandboxChain>]) -> Vec<SandboxRpcServer> {
    let mut servers = Vec::new();
    for chain in chains {
        servers.push(SandboxRpcServer::bind(Arc::clone(chain)).await.unwrap());
    }
    servers
}

/// Reads from these servers, each of its own operator.
fn reader(servers: &[SandboxRpcServer], demand: ProofGradeDemand) -> Arc<QuorumHeadReader> {
    Arc::new(QuorumHeadReader::new(ChainReaderConfig { demand, ..test_config(servers) }, &http()))
}

/// What an endpoint of `chain` states about the name at the newest block, read like any resolution.
async fn read_alone(chain: &Arc<SandboxChain>, text: &str) -> NameStateAtHead {
    let servers = servers(&[chain]).await;
    let reader =
        RpcEnsReader::new(test_config(&servers), &http(), Arc::new(GuardedCcipReadGatewayClient::refusing_all()));
    let reading = reader.read_name(&name(text), BlockSelector::Latest).await.unwrap();
    assert_eq!(reading.block, chain.latest());
    NameStateAtHead::OnChain(reading.newest_state().unwrap())
}

#[tokio::test]
async fn name_at_the_head_reads_as_at_latest() {
    let bare =
        SandboxNameRegistration { texts: BTreeMap::new(), addr: None, ..agent("bare.eth", EnsResolverKind::None) };
    let chain = chain(&[good(), agent("wild.eth", EnsResolverKind::Wildcard), bare]);
    let servers = servers(&[&chain]).await;
    let reader = reader(&servers, ProofGradeDemand::SingleRpc);
    let head = Arc::clone(&reader).newest_head().await.unwrap().block;
    assert_eq!(head, chain.latest());
    for text in ["good.eth", "sub.wild.eth", "bare.eth", "nobody.eth"] {
        assert_eq!(reader.read_name_state(&name(text), &head).await, Ok(read_alone(&chain, text).await), "{text}");
    }
}

#[tokio::test]
async fn change_in_the_newest_block_is_read_at_the_head() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&good()).unwrap();
    builder.seal_block(time()).unwrap();
    let before = Arc::new(builder.build().unwrap());
    builder.set_text(&name("good.eth"), "cl.owner", "other.eth").unwrap();
    builder.seal_block(time() + SignedDuration::from_secs(12)).unwrap();
    let after = Arc::new(builder.build().unwrap());

    let servers = servers(&[&before]).await;
    let reader = reader(&servers, ProofGradeDemand::SingleRpc);
    let mut readings = Vec::new();
    for chain in [&before, &after] {
        servers[0].serve_chain(Arc::clone(chain));
        let head = Arc::clone(&reader).newest_head().await.unwrap().block;
        assert_eq!(head, chain.latest());
        let reading = reader.read_name_state(&name("good.eth"), &head).await.unwrap();
        assert_eq!(reading, read_alone(chain, "good.eth").await);
        readings.push(reading);
    }
    assert_ne!(readings[0], readings[1]);
}

#[tokio::test]
async fn name_behind_a_gateway_reads_as_off_chain() {
    let off_chain = EnsResolverKind::Offchain { urls: vec!["https://ccip.example/".to_owned()] };
    let chain = chain(&[agent("off.eth", off_chain)]);
    let servers = servers(&[&chain, &chain]).await;
    assert_eq!(
        reader(&servers, BOTH).read_name_state(&name("off.eth"), &chain.latest()).await,
        Ok(NameStateAtHead::OffChain)
    );
}

#[tokio::test]
async fn failure_of_the_resolver_is_what_endpoints_agree_on() {
    let garbage = EnsResolverKind::Hostile { mode: HostileResolverMode::ExtendedGarbage, arg: String::new() };
    let broken = SandboxNameRegistration { texts: BTreeMap::new(), addr: None, ..agent("broken.eth", garbage) };
    let chain = chain(&[broken]);
    let servers = servers(&[&chain, &chain]).await;
    let found = reader(&servers, BOTH).read_name_state(&name("broken.eth"), &chain.latest()).await;
    assert!(matches!(found, Ok(NameStateAtHead::Failing(ChainError::Resolver(_)))), "{found:?}");
}

#[tokio::test]
async fn liar_is_outvoted_by_two_and_contradicts_one() {
    let chain = chain(&[good()]);
    let mut servers = servers(&[&chain, &chain, &chain]).await;
    servers[0].set_fault(SandboxRpcFault::OtherRecords);
    let read = async |servers: &[SandboxRpcServer]| {
        reader(servers, BOTH).read_name_state(&name("good.eth"), &chain.latest()).await
    };
    assert_eq!(read(&servers).await, Ok(read_alone(&chain, "good.eth").await));
    servers.pop();
    let found = read(&servers).await;
    assert!(matches!(found, Err(ChainError::Disagree(_))), "{found:?}");
}

#[tokio::test]
async fn endpoint_without_the_block_has_no_vote() {
    let [behind, newest] = two_chains(&[good()]);
    let good = name("good.eth");
    let servers = servers(&[&behind, &newest, &newest]).await;
    let honest = reader(&servers, BOTH).read_name_state(&good, &newest.latest()).await;
    assert_eq!(honest, Ok(read_alone(&newest, "good.eth").await));

    let found = reader(&servers[..2], BOTH).read_name_state(&good, &newest.latest()).await;
    let Err(ChainError::TooFew { agree: 2, answered, failed }) = &found else { panic!("{found:?}") };
    assert_eq!(answered, &["node-1"]);
    assert!(matches!(&failed[..], [(label, _)] if label == "node-0"), "{failed:?}");
}

#[tokio::test]
async fn endpoints_one_block_apart_read_at_the_lower_block() {
    let [behind, newest] = two_chains(&[good()]);
    let servers = servers(&[&behind, &newest]).await;
    let reader = reader(&servers, BOTH);
    let head = Arc::clone(&reader).newest_head().await.unwrap().block;
    assert_eq!(head, behind.latest());
    assert_eq!(reader.read_name_state(&name("good.eth"), &head).await, Ok(read_alone(&behind, "good.eth").await));
}

#[tokio::test]
async fn names_read_at_the_same_time_share_one_call() {
    let names = ["one.eth", "two.eth", "three.eth"];
    let chain = chain(&names.map(|text| agent(text, EnsResolverKind::Public)));
    let servers = servers(&[&chain, &chain]).await;
    let reader = reader(&servers, BOTH);
    let head = Arc::clone(&reader).newest_head().await.unwrap().block;
    let before = [servers[0].request_count(), servers[1].request_count()];
    let parsed = names.map(name);
    let found = join_all(parsed.iter().map(|name| reader.read_name_state(name, &head))).await;
    assert_eq!([servers[0].request_count(), servers[1].request_count()], before.map(|requests| requests + 1));
    for (text, found) in names.into_iter().zip(found) {
        assert_eq!(found, Ok(read_alone(&chain, text).await), "{text}");
    }
}

#[tokio::test]
async fn name_that_spoiled_a_call_is_read_apart_from_then_on() {
    let burner = EnsResolverKind::Hostile { mode: HostileResolverMode::Burn, arg: String::new() };
    let burner = SandboxNameRegistration { texts: BTreeMap::new(), addr: None, ..agent("burner.eth", burner) };
    let chain = chain(&[burner, agent("one.eth", EnsResolverKind::Public), agent("two.eth", EnsResolverKind::Public)]);
    let servers = servers(&[&chain]).await;
    let reader = reader(&servers, ProofGradeDemand::SingleRpc);
    let (head, names) = (chain.latest(), ["burner.eth", "one.eth", "two.eth"].map(name));
    // First a request for all names, the burner alone, and the others; then the burner alone, and the others.
    for requests in [3, 2] {
        let before = servers[0].request_count();
        let found = join_all(names.iter().map(|name| reader.read_name_state(name, &head))).await;
        assert_eq!(servers[0].request_count() - before, requests);
        assert!(!matches!(found[0], Ok(NameStateAtHead::OnChain(_))), "{:?}", found[0]);
        for (text, found) in ["one.eth", "two.eth"].into_iter().zip(&found[1..]) {
            assert_eq!(found.as_ref(), Ok(&read_alone(&chain, text).await), "{text}");
        }
    }
}

#[tokio::test]
async fn strangers_are_not_asked_beside_an_own_endpoint() {
    let chain = chain(&[good()]);
    let servers = servers(&[&chain, &chain]).await;
    let mut beside_own = test_config(&servers);
    beside_own.endpoints[0].own = false;
    let mut strangers = beside_own.clone();
    strangers.endpoints[1].own = false;
    let labels = |config: &ChainReaderConfig| QuorumHeadReader::new(config.clone(), &http()).source_labels();
    assert_eq!(labels(&beside_own), ["node-1"]);
    assert_eq!(labels(&strangers), ["node-0", "node-1"]);
    assert_eq!(labels(&ChainReaderConfig { demand: BOTH, ..beside_own.clone() }), ["node-0", "node-1"]);

    let reader = Arc::new(QuorumHeadReader::new(beside_own, &http()));
    let head = Arc::clone(&reader).newest_head().await.unwrap().block;
    assert_eq!(reader.read_name_state(&name("good.eth"), &head).await, Ok(read_alone(&chain, "good.eth").await));
    assert_eq!(servers[0].request_count(), 0);
}

#[tokio::test]
async fn head_of_another_chain_is_an_error_and_does_not_count() {
    let chain = chain(&[good()]);
    let servers = servers(&[&chain, &chain]).await;
    servers[0].set_fault(SandboxRpcFault::WrongChainId(1));
    let reader = reader(&servers, BOTH);
    let wrong = ChainError::WrongChain { endpoint: "node-0".to_owned(), expected: CHAIN_ID, observed: 1 };
    assert_eq!(reader.poll_head(0).await, Err(wrong.clone()));
    assert_eq!(reader.poll_head(1).await, Ok((chain.latest(), None)));
    let error = Arc::clone(&reader).newest_head().await.unwrap_err();
    assert!(matches!(&error, ChainError::TooFew { answered, .. } if answered == &["node-1"]), "{error:?}");
    servers[0].set_fault(SandboxRpcFault::None);
    assert_eq!(Arc::clone(&reader).newest_head().await.map(|head| head.block), Ok(chain.latest()));
}

#[tokio::test]
async fn head_of_the_future_is_an_error_and_does_not_count() {
    let chain = chain(&[good()]);
    let servers = servers(&[&chain]).await;
    let ask_all = async |ahead: i64| {
        let config = ChainReaderConfig { max_head_age: Some(Duration::from_secs(60)), ..test_config(&servers) };
        let now = chain.latest().timestamp - SignedDuration::from_secs(ahead);
        Arc::new(QuorumHeadReader::new(config, &http()).with_clock(Arc::new(move || now))).newest_head().await
    };
    let error = ask_all(16).await.unwrap_err();
    assert!(matches!(&error, ChainError::TooFew { failed, .. } if failed[0].1.contains("ahead")), "{error:?}");
    // The caller limits the age of the head.
    for ahead in [15, 0, -3600] {
        assert_eq!(ask_all(ahead).await.map(|head| head.block), Ok(chain.latest()), "{ahead}");
    }
}

#[tokio::test]
async fn endpoint_that_fails_leaves_the_head_to_the_others() {
    let chain = chain(&[good()]);
    let servers = servers(&[&chain, &chain, &chain]).await;
    servers[0].set_fault(SandboxRpcFault::Status(503));
    let reader = reader(&servers, BOTH);
    assert!(reader.poll_head(0).await.is_err());
    assert_eq!(Arc::clone(&reader).newest_head().await.map(|head| head.block), Ok(chain.latest()));
}

/// One of the other two stands still, so they form no newer head.
#[tokio::test]
async fn resting_endpoint_is_due_when_the_others_form_no_newer_head() {
    const POLL: Duration = Duration::from_secs(2);
    let [before, after] = two_chains(&[good()]);
    let servers = servers(&[&before, &before, &before]).await;
    let seconds = Arc::new(AtomicI64::new(0));
    let (start, shift) = (after.latest().timestamp, Arc::clone(&seconds));
    let clock: TimeSource = Arc::new(move || start + SignedDuration::from_secs(shift.load(Ordering::Relaxed)));
    let reader =
        QuorumHeadReader::new(ChainReaderConfig { demand: BOTH, ..test_config(&servers) }, &http()).with_clock(clock);
    servers[2].set_fault(SandboxRpcFault::Status(503));
    assert!(reader.poll_head(2).await.is_err());
    assert!(reader.is_poll_due(2, POLL), "there is no head yet");
    let head_of = async |endpoint| reader.poll_head(endpoint).await.unwrap().1.map(|head| head.block);
    head_of(0).await;
    assert_eq!(head_of(1).await, Some(before.latest()));
    assert!(!reader.is_poll_due(2, POLL));

    servers[0].serve_chain(Arc::clone(&after));
    servers[2].set_fault(SandboxRpcFault::None);
    servers[2].serve_chain(Arc::clone(&after));
    for (second, is_due) in [(2, false), (4, false), (6, true)] {
        seconds.store(second, Ordering::Relaxed);
        assert_eq!([head_of(0).await, head_of(1).await], [Some(before.latest()); 2]);
        // The first endpoint reported the head at second 0 for the last time.
        assert_eq!(reader.is_poll_due(2, POLL), is_due, "after {second} s");
    }
    assert_eq!(head_of(2).await, Some(after.latest()));
    assert!(!reader.is_poll_due(2, POLL), "it rests again while the head is reported");
}
