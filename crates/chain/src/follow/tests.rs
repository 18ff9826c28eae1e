//! A follower of one endpoint: the sandbox chain and its RPC, which grows, forks and fails as each test requires.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use clresolve_core::name::EnsName;
use clresolve_sandbox::chain::{ChainBuilder, NameRegistration, REGISTRY, RpcFault, RpcServer};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use url::Url;

use super::*;
use crate::testing::{OpenDoor, config};
use crate::transport::PostError;

/// An HTTP client for the endpoint that records the requests sent.
struct Door {
    open: OpenDoor,
    sent: Mutex<Vec<String>>,
    /// A request that contains one of these texts is refused, as if its logs were too long for a reply.
    flooded: Mutex<Vec<String>>,
    /// Falsifies the result of a log request.
    bent: Mutex<Option<fn(&mut Value)>>,
}

impl Door {
    fn is_flooded(&self, request: &str) -> bool {
        let flooded = self.flooded.lock().unwrap();
        request.contains("eth_getLogs") && !flooded.is_empty() && flooded.iter().all(|word| request.contains(word))
    }

    fn bend(&self, reply: Bytes) -> Bytes {
        let Some(bend) = *self.bent.lock().unwrap() else { return reply };
        let mut reply: Value = serde_json::from_slice(&reply).unwrap();
        bend(&mut reply["result"]);
        reply.to_string().into()
    }
}

#[async_trait::async_trait]
impl HttpPost for Door {
    async fn post(&self, url: &Url, body: Bytes, cap: usize, limit: Duration) -> Result<Bytes, PostError> {
        let request = String::from_utf8(body.to_vec()).unwrap();
        let (is_flooded, is_about_logs) = (self.is_flooded(&request), request.contains("eth_getLogs"));
        self.sent.lock().unwrap().push(request);
        if is_flooded {
            return Err(PostError::TooLarge(cap));
        }
        let reply = self.open.post(url, body, cap, limit).await?;
        Ok(if is_about_logs { self.bend(reply) } else { reply })
    }
}

const fn nothing_follows(_: Source, _: B256) -> bool {
    false
}

/// A chain with agents, its endpoint, and a follower of that endpoint.
struct Stage {
    builder: ChainBuilder,
    time: Timestamp,
    server: RpcServer,
    follower: Follower,
    door: Arc<Door>,
    resolvers: BTreeSet<Address>,
}

fn name(text: &str) -> EnsName {
    EnsName::parse(text).unwrap()
}

impl Stage {
    async fn new() -> Self {
        let mut builder = ChainBuilder::new().unwrap();
        for agent in ["one.eth", "two.eth"] {
            builder.register(&NameRegistration::new(name(agent), Address::repeat_byte(7))).unwrap();
        }
        let time: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        builder.seal(time).unwrap();
        let server = RpcServer::bind(Arc::new(builder.build().unwrap())).await.unwrap();
        let open = OpenDoor::new();
        let door = Arc::new(Door { open, sent: Mutex::default(), flooded: Mutex::default(), bent: Mutex::default() });
        let config = config(std::slice::from_ref(&server));
        let follower = Follower::all(&config, &(Arc::clone(&door) as Arc<dyn HttpPost>)).remove(0);
        let resolvers = BTreeSet::from([builder.public_resolver()]);
        Self { builder, time, server, follower, door, resolvers }
    }

    fn write(&mut self, agent: &str, value: &str) {
        self.builder.set_text(&name(agent), "cl.owner", value).unwrap();
    }

    fn seal(&mut self) -> Block {
        self.time += SignedDuration::from_secs(12);
        let block = self.builder.seal(self.time).unwrap();
        self.publish();
        block
    }

    fn publish(&self) {
        self.server.publish(Arc::new(self.builder.build().unwrap()));
    }

    async fn news(&mut self) -> Option<News> {
        self.follower.next(&self.resolvers, &nothing_follows).await.unwrap()
    }

    /// Changes an agent's records in a block that the follower sees, then forks the chain from the block before.
    /// Returns the replaced block.
    async fn write_and_undo(&mut self, agent: &str) -> Block {
        self.seal();
        self.news().await;
        let (fork, time) = (self.builder.clone(), self.time);
        self.write(agent, "other.eth");
        let undone = self.seal();
        self.news().await;
        (self.builder, self.time) = (fork, time + SignedDuration::from_secs(1));
        undone
    }

    fn requests_for_logs(&self) -> usize {
        self.door.sent.lock().unwrap().iter().filter(|body| body.contains("eth_getLogs")).count()
    }

    /// The blocks in which this agent's records changed.
    fn of(&self, agent: &str, news: &News) -> Vec<u64> {
        let is_its = |change: &&Change| change.node == name(agent).node() && change.source != Source::Registration;
        news.changes.iter().filter(is_its).map(|change| change.block).collect()
    }
}

#[tokio::test]
async fn a_change_is_told_with_its_block_and_the_next_round_is_silent() {
    let mut stage = Stage::new().await;
    stage.news().await.expect("the first block is new");
    assert_eq!(stage.news().await, None);
    stage.write("one.eth", "other.eth");
    let block = stage.seal();
    let news = stage.news().await.expect("a new block");
    assert_eq!((news.head, news.replaced, &news.missed, news.unasked), (block, None, &None, 0));
    assert_eq!((stage.of("one.eth", &news), stage.of("two.eth", &news)), (vec![block.number], vec![]));
    assert_eq!(stage.news().await, None);
}

#[tokio::test]
async fn the_last_blocks_are_read_again_for_a_resolver_that_is_new() {
    let mut stage = Stage::new().await;
    let resolvers = std::mem::take(&mut stage.resolvers);
    stage.write("one.eth", "other.eth");
    let block = stage.seal();
    let news = stage.news().await.expect("the first block is new");
    assert_eq!(stage.of("one.eth", &news), [] as [u64; 0]);
    stage.resolvers = resolvers;
    let news = stage.news().await.expect("a new resolver");
    assert_eq!((news.head, stage.of("one.eth", &news)), (block, vec![block.number]));
    assert_eq!(stage.news().await, None);
}

#[tokio::test]
async fn a_change_of_the_registration_is_told_for_its_node() {
    let mut stage = Stage::new().await;
    stage.news().await;
    stage.builder.register(&NameRegistration::new(name("one.eth"), Address::repeat_byte(9))).unwrap();
    let block = stage.seal();
    let news = stage.news().await.expect("a new block");
    let change = Change { source: Source::Registration, node: name("one.eth").node(), block: block.number };
    assert!(news.changes.contains(&change), "{:?}", news.changes);
}

#[tokio::test]
async fn blocks_between_two_rounds_are_read_together() {
    let mut stage = Stage::new().await;
    stage.news().await;
    stage.write("one.eth", "other.eth");
    let changed = stage.seal();
    for _ in 0..20 {
        stage.seal();
    }
    let news = stage.news().await.expect("new blocks");
    assert_eq!((stage.of("one.eth", &news), news.missed), (vec![changed.number], None));
}

#[tokio::test]
async fn a_change_that_is_undone_is_told_as_well_as_the_one_in_its_place() {
    let mut stage = Stage::new().await;
    let undone = stage.write_and_undo("one.eth").await;
    stage.write("two.eth", "other.eth");
    let instead = stage.seal();
    assert_eq!(instead.number, undone.number);
    let news = stage.news().await.expect("another block");
    assert_eq!((news.head, news.replaced, &news.missed), (instead, Some(undone.number), &None));
    assert_eq!((stage.of("one.eth", &news), stage.of("two.eth", &news)), (vec![instead.number], vec![instead.number]));

    stage.seal();
    assert_eq!(stage.news().await.expect("the chain goes on").replaced, None);
}

#[tokio::test]
async fn a_longer_chain_in_place_of_another_is_noticed() {
    let mut stage = Stage::new().await;
    let undone = stage.write_and_undo("one.eth").await;
    for _ in 0..3 {
        stage.seal();
    }
    let news = stage.news().await.expect("another chain");
    assert_eq!(news.replaced, Some(undone.number));
    assert_eq!(stage.of("one.eth", &news), [news.head.number]);
}

#[tokio::test]
async fn after_the_highest_of_all_heights_an_endpoint_is_followed_on() {
    let mut stage = Stage::new().await;
    stage.server.set_fault(RpcFault::BlocksToCome(u64::MAX));
    assert_eq!(stage.news().await.expect("a block").head.number, u64::MAX);
    stage.resolvers.insert(Address::repeat_byte(9));
    assert!(stage.news().await.is_some(), "the last blocks are read for another resolver");
    stage.server.set_fault(RpcFault::None);
    stage.write("one.eth", "other.eth");
    let block = stage.seal();
    let news = stage.news().await.expect("another chain");
    assert_eq!((stage.of("one.eth", &news), news.missed), (vec![block.number], Some(block.number..=u64::MAX)));
}

#[tokio::test]
async fn an_absence_that_is_too_long_is_a_gap() {
    let mut stage = Stage::new().await;
    let before = stage.news().await.expect("the first block").head.number;
    for _ in 0..MAX_RANGE + 10 {
        stage.time += SignedDuration::from_secs(12);
        stage.builder.seal(stage.time).unwrap();
    }
    stage.publish();
    let news = stage.news().await.expect("new blocks");
    assert_eq!(news.missed, Some(before + 1..=news.head.number - MAX_RANGE));
}

#[tokio::test]
async fn an_endpoint_that_fails_goes_on_where_it_was() {
    let mut stage = Stage::new().await;
    stage.news().await;
    stage.write("one.eth", "other.eth");
    let changed = stage.seal();
    for fault in [RpcFault::Status(503), RpcFault::Html, RpcFault::ErrorReply] {
        stage.server.set_fault(fault);
        assert!(stage.follower.next(&stage.resolvers, &nothing_follows).await.is_err(), "{fault:?}");
    }
    stage.seal();
    stage.server.set_fault(RpcFault::None);
    let news = stage.news().await.expect("new blocks");
    assert_eq!((stage.of("one.eth", &news), news.missed), (vec![changed.number], None));
}

#[tokio::test]
async fn another_chain_is_not_followed() {
    let mut stage = Stage::new().await;
    stage.server.set_fault(RpcFault::WrongChainId(1));
    let error = stage.follower.next(&stage.resolvers, &nothing_follows).await.unwrap_err();
    assert_eq!(error.to_string(), "it serves chain 1");
}

/// The endpoint adds every log of the chain to every reply. Only requested logs count.
#[tokio::test]
async fn logs_that_were_not_asked_for_do_not_count() {
    let mut stage = Stage::new().await;
    stage.news().await;
    stage.server.set_fault(RpcFault::EveryLog);
    let block = stage.seal();
    let news = stage.news().await.expect("a new block");
    assert!(news.unasked > 0);
    assert!(news.changes.iter().all(|change| change.block + OVERLAP > block.number), "{:?}", news.changes);
    assert!(news.changes.iter().all(|change| change.source != Source::Resolver(REGISTRY)));
}

/// Otherwise an endpoint could hide a change in malformed logs without being noticed.
#[tokio::test]
async fn logs_of_another_shape_are_counted() {
    let without_node = |logs: &mut Value| {
        for log in logs.as_array_mut().unwrap() {
            log["topics"].as_array_mut().unwrap().truncate(1);
        }
    };
    let mut stage = Stage::new().await;
    assert_eq!(stage.news().await.expect("the first block is new").malformed, 0);
    stage.write("one.eth", "other.eth");
    stage.seal();
    *stage.door.bent.lock().unwrap() = Some(without_node);
    let news = stage.news().await.expect("a new block");
    assert!(news.malformed > 0);
    assert_eq!((news.unasked, stage.of("one.eth", &news)), (0, vec![]));
}

#[tokio::test]
async fn an_answer_without_logs_is_malformed() {
    let mut stage = Stage::new().await;
    *stage.door.bent.lock().unwrap() = Some(|logs: &mut Value| *logs = "none".into());
    let error = stage.follower.next(&stage.resolvers, &nothing_follows).await.unwrap_err();
    assert!(matches!(error, FollowError::Malformed(_)), "{error}");
    stage.server.set_fault(RpcFault::Status(503));
    let error = stage.follower.next(&stage.resolvers, &nothing_follows).await.unwrap_err();
    assert!(matches!(error, FollowError::Unusable(_)), "{error}");
}

#[tokio::test]
async fn a_flood_of_logs_is_a_gap_in_a_bounded_number_of_requests() {
    let mut stage = Stage::new().await;
    stage.news().await;
    for _ in 0..100 {
        stage.seal();
    }
    stage.server.set_fault(RpcFault::FloodOfLogs);
    let before = stage.requests_for_logs();
    let news = stage.news().await.expect("new blocks");
    assert!(news.missed.is_some());
    assert!(news.changes.len() <= MAX_PLACES, "{}", news.changes.len());
    assert!(stage.requests_for_logs() - before <= MAX_LOG_REQUESTS);
}

/// The text by which a log request up to this block is recognised.
fn ends_with(block: Block) -> String {
    format!("\"toBlock\":\"{:#x}\"", block.number)
}

/// Otherwise an attacker could fill a block with one contract's logs to hide changes in the same block.
#[tokio::test]
async fn a_block_with_too_many_logs_is_asked_for_in_parts() {
    let mut stage = Stage::new().await;
    stage.resolvers.extend((0..MAX_ADDRESSES - 1).map(|n| Address::with_last_byte(n as u8)));
    let flooding = Address::with_last_byte(77);
    stage.news().await;
    stage.write("one.eth", "other.eth");
    let block = stage.seal();
    let before = stage.requests_for_logs();
    *stage.door.flooded.lock().unwrap() = vec![format!("{flooding:#x}"), ends_with(block)];
    let news = stage.news().await.expect("a new block");
    assert_eq!(stage.of("one.eth", &news), [block.number]);
    assert_eq!(news.missed, Some(block.number..=block.number));
    assert!(stage.requests_for_logs() - before <= MAX_LOG_REQUESTS);
}

/// The same for a single event of that very contract.
#[tokio::test]
async fn a_contract_with_too_many_logs_is_asked_for_event_by_event() {
    let mut stage = Stage::new().await;
    stage.news().await;
    stage.write("one.eth", "other.eth");
    let block = stage.seal();
    let event = alloy_primitives::keccak256("AddrChanged(bytes32,address)");
    *stage.door.flooded.lock().unwrap() = vec![format!("{event:#x}"), ends_with(block)];
    let news = stage.news().await.expect("a new block");
    assert_eq!(stage.of("one.eth", &news), [block.number]);
    assert_eq!(news.missed, Some(block.number..=block.number));
}

fn node(number: usize) -> B256 {
    B256::from(alloy_primitives::U256::from(number))
}

/// Otherwise a publisher could crowd out the changes of others in the same blocks.
#[test]
fn a_log_that_a_contract_repeats_counts_once() {
    let mut harvest = Harvest::new(&nothing_follows, None);
    let mut note = |number, block| {
        harvest.note(Change { block, source: Source::Registration, node: node(number) });
        (harvest.changes().len(), harvest.missed.clone())
    };
    for block in 0..=MAX_PLACES as u64 {
        assert_eq!(note(0, block), (1, None));
    }
    for number in 1..MAX_PLACES {
        assert_eq!(note(number, 0), (number + 1, None));
    }
    assert_eq!(note(MAX_PLACES, 9), (MAX_PLACES, Some(9..=9)));
    assert_eq!(harvest.changes().iter().map(|change| change.block).max(), Some(MAX_PLACES as u64));
}

/// The blocks of changes at `followed` amid a flood of this many invented changes before and after, and the blocks
/// missed.
fn amid_a_flood(followed: &[(Source, B256)], flood: usize) -> (Vec<u64>, Option<RangeInclusive<u64>>) {
    let follows = |source, node| followed.contains(&(source, node));
    let mut harvest = Harvest::new(&follows, None);
    let made_up = |number| Change { block: 3, source: Source::Resolver(Address::repeat_byte(6)), node: node(number) };
    (0..flood).for_each(|number| harvest.note(made_up(number)));
    for (source, node) in followed {
        harvest.note(Change { block: 4, source: *source, node: *node });
    }
    (flood..2 * flood).for_each(|number| harvest.note(made_up(number)));
    let (changes, missed) = (harvest.changes(), harvest.missed.clone());
    assert!(changes.len() <= MAX_PLACES);
    let is_followed = |change: &&Change| followed.contains(&(change.source, change.node));
    (changes.iter().take_while(is_followed).map(|change| change.block).collect(), missed)
}

/// A contract from which a cached verdict was read may emit arbitrary logs.
#[test]
fn a_flood_of_other_names_hides_no_change_of_a_name_that_is_followed() {
    let victims = [(Source::Resolver(Address::repeat_byte(7)), node(1)), (Source::Registration, node(2))];
    assert_eq!(amid_a_flood(&victims, 2), (vec![4, 4], None));
    assert_eq!(amid_a_flood(&victims, MAX_PLACES), (vec![4, 4], Some(3..=3)), "runs under way may miss the others");
    let many: Vec<_> = (0..=MAX_PLACES).map(|number| (Source::Registration, node(number))).collect();
    assert_eq!(amid_a_flood(&many, 1), (vec![4; MAX_PLACES], Some(3..=4)));
}

/// Otherwise the changes of a block beyond the remembered number would be lost when it is replaced.
#[tokio::test]
async fn a_block_with_too_many_changes_that_is_replaced_is_a_gap() {
    let mut stage = Stage::new().await;
    let undone = stage.write_and_undo("one.eth").await;
    let many = (0..MAX_PLACES).map(|number| {
        let source = Source::Registration;
        Change { block: undone.number, source, node: node(number) }
    });
    stage.follower.seen.cut(undone.number);
    stage.follower.seen.push(undone, many.collect());
    let instead = stage.seal();
    let news = stage.news().await.expect("another block");
    assert_eq!((news.replaced, news.missed), (Some(undone.number), Some(undone.number..=instead.number)));
}

/// The combinations of contract and event that a log request covers.
fn asked_for(request: &str) -> BTreeSet<(Address, B256)> {
    let request: Value = serde_json::from_str(request).unwrap();
    let filter = &request["params"][0];
    let (contracts, events) = (texts(&filter["address"]), texts(&filter["topics"][0]));
    let mut asked = BTreeSet::new();
    for contract in contracts {
        asked.extend(events.iter().map(|event| (contract.parse::<Address>().unwrap(), event.parse::<B256>().unwrap())));
    }
    asked
}

/// A single text, or the texts of an array.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

/// An honest endpoint returns only the logs that it was asked for.
#[tokio::test]
async fn every_event_is_asked_for_of_its_contract() {
    let mut stage = Stage::new().await;
    stage.news().await.expect("the first block is new");
    let sent = stage.door.sent.lock().unwrap().clone();
    let asked: BTreeSet<_> =
        sent.iter().filter(|request| request.contains("eth_getLogs")).flat_map(|request| asked_for(request)).collect();
    let Contracts { registry, base_registrar, name_wrapper, .. } = stage.follower.contracts;
    let resolver = stage.builder.public_resolver();
    let events: [(Address, &[&str]); 4] = [
        (registry, &["NewOwner(bytes32,bytes32,address)", "NewResolver(bytes32,address)", "Transfer(bytes32,address)"]),
        (
            base_registrar,
            &[
                "NameRegistered(uint256,address,uint256)",
                "NameRenewed(uint256,uint256)",
                "Transfer(address,address,uint256)",
            ],
        ),
        (
            name_wrapper,
            &[
                "ExpiryExtended(bytes32,uint64)",
                "FusesSet(bytes32,uint32)",
                "NameUnwrapped(bytes32,address)",
                "NameWrapped(bytes32,bytes,address,uint32,uint64)",
                "TransferBatch(address,address,address,uint256[],uint256[])",
                "TransferSingle(address,address,address,uint256,uint256)",
            ],
        ),
        (
            resolver,
            &[
                "AddrChanged(bytes32,address)",
                "AddressChanged(bytes32,uint256,bytes)",
                "ContenthashChanged(bytes32,bytes)",
                "TextChanged(bytes32,string,string)",
                "TextChanged(bytes32,string,string,string)",
                "VersionChanged(bytes32,uint64)",
            ],
        ),
    ];
    for (contract, events) in events {
        for event in events {
            let topic = alloy_primitives::keccak256(event);
            assert!(asked.contains(&(contract, topic)), "{event} of {contract}");
        }
    }
}

#[tokio::test]
async fn many_resolvers_are_not_named_one_by_one() {
    let mut stage = Stage::new().await;
    stage.resolvers.extend((0..=MAX_ADDRESSES).map(|n| Address::from_word(alloy_primitives::U256::from(n).into())));
    stage.news().await;
    stage.write("one.eth", "other.eth");
    let block = stage.seal();
    let news = stage.news().await.expect("a new block");
    assert_eq!(stage.of("one.eth", &news), [block.number]);
    let longest = stage.door.sent.lock().unwrap().iter().map(String::len).max();
    assert!(longest.unwrap() < 4096, "{longest:?}");
}
