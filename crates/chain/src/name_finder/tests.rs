//! Names found in the sandbox chain through endpoints that are honest, hide names, invent names, flood, or limit block
//! ranges.

use alloy_primitives::hex;
use alloy_sol_types::SolValue as _;
use clresolve_sandbox::chain::{
    CustodyContract, SandboxChainBuilder, SandboxNameRegistration, SandboxRpcFault, SandboxRpcServer,
};
use jiff::{SignedDuration, Timestamp};
use url::Url;

use super::*;
use crate::testing::{UnguardedHttpClient, test_config};
use crate::transport::HttpRequestError;

const HOLDER: Address = Address::repeat_byte(7);

struct FaultyTransport {
    open: UnguardedHttpClient,
    /// Maximum number of blocks per log request. Longer ranges are refused, as by public endpoints.
    most_blocks: u64,
    /// Blocks with too many records for one reply, unless a request names their keys.
    full: Option<RangeInclusive<u64>>,
    /// The key of the records that fill these blocks. A request that names it is refused too.
    full_of: Option<&'static str>,
    /// Blocks whose logs do not arrive in time.
    late: Option<RangeInclusive<u64>>,
    /// Text that is replaced in every reply.
    lie: Option<(String, String)>,
    calls: Calls,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    Answered,
    Refused,
    Stalled,
    /// Every request stalls, not only calls.
    AllStalled,
}

#[async_trait::async_trait]
impl JsonRpcHttpClient for FaultyTransport {
    async fn post_json(
        &self,
        url: &Url,
        body: bytes::Bytes,
        cap: usize,
        limit: Duration,
    ) -> Result<bytes::Bytes, HttpRequestError> {
        let request: serde_json::Value = serde_json::from_slice(&body).unwrap();
        if request["method"] == "eth_getLogs" {
            let block = |of: &str| {
                let number = request["params"][0][of].as_str().unwrap();
                u64::from_str_radix(number.trim_start_matches("0x"), 16).unwrap()
            };
            let (first, last) = (block("fromBlock"), block("toBlock"));
            let keys = &request["params"][0]["topics"][2];
            let is_of = |key: &str| keys.to_string().contains(&keccak256(key).to_string());
            let is_few = !keys.is_null() && !self.full_of.is_some_and(is_of);
            let is_among = |blocks: &RangeInclusive<u64>| *blocks.start() <= last && first <= *blocks.end();
            if self.late.as_ref().is_some_and(is_among) {
                return Err(HttpRequestError::Timeout(Duration::from_secs(10)));
            }
            let is_full = self.full.as_ref().is_some_and(is_among);
            let message = if last - first >= self.most_blocks {
                Some("query exceeds max block range")
            } else {
                (is_full && !is_few).then_some("query returned more than 10000 results")
            };
            if let Some(message) = message {
                let error = serde_json::json!({"code": -32005, "message": message});
                let reply = serde_json::json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
                return Ok(reply.to_string().into());
            }
        }
        match self.calls {
            Calls::AllStalled => std::future::pending().await,
            Calls::Refused if request["method"] == "eth_call" => {
                return Err(HttpRequestError::Status(429, bytes::Bytes::new()));
            }
            Calls::Stalled if request["method"] == "eth_call" => std::future::pending().await,
            _ => {}
        }
        let reply = self.open.post_json(url, body, cap, limit).await?;
        let Some((genuine, forged)) = &self.lie else { return Ok(reply) };
        Ok(str::from_utf8(&reply).unwrap().replace(genuine, forged).into())
    }
}

/// A chain with names whose blocks are sealed one by one.
struct Stage {
    builder: SandboxChainBuilder,
    time: Timestamp,
}

fn name(text: &str) -> EnsName {
    EnsName::parse(text).unwrap()
}

fn agent(text: &str) -> SandboxNameRegistration {
    let texts = BTreeMap::from([("cl.owner".to_owned(), "owner.eth".to_owned())]);
    SandboxNameRegistration { texts, ..SandboxNameRegistration::new(name(text), HOLDER) }
}

impl Stage {
    fn new(registrations: &[SandboxNameRegistration]) -> Self {
        let mut stage =
            Self { builder: SandboxChainBuilder::new().unwrap(), time: "2026-11-20T12:00:00Z".parse().unwrap() };
        stage.register(registrations);
        stage
    }

    fn register(&mut self, registrations: &[SandboxNameRegistration]) {
        for registration in registrations {
            self.builder.register_name(registration).unwrap();
            self.seal();
        }
    }

    fn seal(&mut self) {
        self.time += SignedDuration::from_secs(12);
        self.builder.seal_block(self.time).unwrap();
    }

    /// Asks endpoints with these faults. Returns the names found, the finder, and the servers.
    async fn ask(
        mut self,
        faults: &[SandboxRpcFault],
        transport: FaultyTransport,
        wanted: &NameSearchScope,
    ) -> (FoundNamehashes, EventLogNameFinder, Vec<SandboxRpcServer>) {
        self.builder.finalize_newest_block().unwrap();
        let chain = Arc::new(self.builder.build().unwrap());
        let mut servers = Vec::new();
        for fault in faults {
            let server = SandboxRpcServer::bind(Arc::clone(&chain)).await.unwrap();
            server.set_fault(*fault);
            servers.push(server);
        }
        let finder =
            EventLogNameFinder::new(&test_config(&servers), &(Arc::new(transport) as Arc<dyn JsonRpcHttpClient>));
        (finder.find_names(wanted).await, finder, servers)
    }
}

fn faultless_transport() -> FaultyTransport {
    FaultyTransport {
        open: UnguardedHttpClient::new(),
        most_blocks: u64::MAX,
        full: None,
        full_of: None,
        late: None,
        lie: None,
        calls: Calls::Answered,
    }
}

fn changed(first: u64, last: Option<u64>) -> NameSearchScope {
    NameSearchScope::Changed { first, last }
}

/// Which of `names` were found. Fails if any other name was found.
fn of<'a>(found: &FoundNamehashes, names: &[&'a str]) -> Vec<(&'a str, u64)> {
    let known = names.iter().filter_map(|text| Some((*text, *found.nodes.get(&name(text).namehash())?)));
    let known: Vec<_> = known.collect();
    assert_eq!(known.len(), found.nodes.len(), "no others: {found:?}");
    known
}

/// Two agents in blocks 1 and 2, a change of the first in block 3, and a record unrelated to agents in block 4.
fn two_agents() -> Stage {
    let mut stage = Stage::new(&[agent("one.eth"), agent("two.eth")]);
    stage.builder.set_text(&name("one.eth"), "cl.owner", "other.eth").unwrap();
    stage.seal();
    stage.builder.set_text(&name("two.eth"), "avatar", "https://a.example/").unwrap();
    stage.seal();
    stage
}

const AGENTS: [&str; 2] = ["one.eth", "two.eth"];

#[tokio::test]
async fn names_whose_records_changed_are_found_in_their_blocks() {
    for (wanted, expected) in [
        (changed(0, None), vec![("one.eth", 3), ("two.eth", 2)]),
        (changed(2, Some(2)), vec![("two.eth", 2)]),
        (changed(3, Some(99)), vec![("one.eth", 3)]),
        (changed(4, None), vec![]),
        (changed(99, None), vec![]),
    ] {
        let (found, ..) = two_agents().ask(&[SandboxRpcFault::None], faultless_transport(), &wanted).await;
        assert_eq!(of(&found, &AGENTS), expected, "{wanted:?}");
        let last = if wanted == changed(2, Some(2)) { 2 } else { 4 };
        assert_eq!((found.told, found.failed), (vec![("node-0".to_owned(), last)], vec![]), "{wanted:?}");
    }
}

/// Each kind of agent record on its own: those of the card, the signer and the runtime endpoint.
#[tokio::test]
async fn each_record_of_an_agent_tells_of_its_name() {
    let keys: Vec<&str> = TextRecordKey::ALL.iter().chain(&TextRecordKey::SIGNER).map(|key| key.as_str()).collect();
    for key in keys.into_iter().chain(["cl.endpoint.runtime"]) {
        let mut stage = two_agents();
        stage.builder.set_text(&name("two.eth"), key, "https://a.example/").unwrap();
        stage.seal();
        let (found, ..) = stage.ask(&[SandboxRpcFault::None], faultless_transport(), &changed(5, None)).await;
        assert_eq!(of(&found, &AGENTS), [("two.eth", 5)], "{key}");
    }
}

/// An unspecified `cl.` key may be a misspelt one.
#[tokio::test]
async fn any_cl_key_tells_of_its_name() {
    let keys = [("cl.agent-card", true), ("cl.", true), ("avatar", false), ("clx.a", false), ("cl", false)];
    for (key, is_found) in keys {
        let mut stage = two_agents();
        stage.builder.set_text(&name("two.eth"), key, "https://a.example/").unwrap();
        stage.seal();
        let (found, ..) = stage.ask(&[SandboxRpcFault::None], faultless_transport(), &changed(5, None)).await;
        let expected = if is_found { vec![("two.eth", 5)] } else { vec![] };
        assert_eq!(of(&found, &AGENTS), expected, "{key}");
        assert!(found.failed.is_empty(), "{key}: {found:?}");
    }
    // A key that does not match its hash is ignored.
    let transport =
        FaultyTransport { lie: Some((hex::encode("avatar"), hex::encode("cl.abc"))), ..faultless_transport() };
    let (found, ..) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(4, None)).await;
    assert!(found.nodes.is_empty() && found.failed.is_empty(), "{found:?}");
}

/// The oldest resolvers emit the key twice in plain text, but not its hash.
#[test]
fn a_log_without_a_hash_says_its_key_in_clear() {
    let says = |key: &str, hash: Option<B256>| {
        let topics = [B256::ZERO, B256::ZERO].into_iter().chain(hash).collect();
        let data = (key.to_owned(), key.to_owned()).abi_encode_params().into();
        let inner = alloy_primitives::Log::new(Address::ZERO, topics, data).unwrap();
        log_has_agent_record_key(&Log { inner, ..Log::default() })
    };
    let hash = |key: &str| Some(keccak256(key));
    assert!(says("cl.owner", None) && says("cl.owner", hash("cl.owner")));
    assert!(!says("avatar", None) && !says("cl.owner", hash("avatar")) && !says("avatar", hash("cl.owner")));
}

/// Some resolvers emit the value in the place of the key.
#[tokio::test]
async fn a_known_key_is_known_by_its_hash_alone() {
    let transport =
        FaultyTransport { lie: Some((hex::encode("cl.owner"), hex::encode("cl.other"))), ..faultless_transport() };
    let (found, ..) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(3, Some(3))).await;
    assert_eq!(of(&found, &AGENTS), [("one.eth", 3)]);
}

/// An attacker who fills a block with records hides only misspelt keys in it.
#[tokio::test]
async fn full_block_is_searched_for_records_of_known_keys() {
    for (full, expected) in [(2, [("one.eth", 5), ("two.eth", 2)]), (5, [("one.eth", 3), ("two.eth", 2)])] {
        let mut stage = two_agents();
        stage.builder.set_text(&name("one.eth"), "cl.agent-card", "https://a.example/").unwrap();
        stage.seal();
        let transport = FaultyTransport { full: Some(full..=full), ..faultless_transport() };
        let (found, ..) = stage.ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
        assert_eq!(of(&found, &AGENTS), expected, "{full}");
        let said = format!(
            "records of other keys than the specification's were not all read: it does not give the logs of block {full}: "
        );
        assert!(found.told.is_empty() && found.failed[0].1.starts_with(&said), "{found:?}");
    }
}

#[tokio::test]
async fn endpoint_without_logs_of_any_key_returns_known_keys() {
    let transport = FaultyTransport { full: Some(0..=u64::MAX), ..faultless_transport() };
    let (found, finder, _servers) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
    assert_eq!(of(&found, &AGENTS), [("one.eth", 3), ("two.eth", 2)]);
    let mut reader = EndpointEventLogScanner {
        endpoint: &finder.endpoints[0],
        requests: 100,
        telling: EndpointFoundNamehashes::default(),
    };
    let gap = reader.read_logs(&any_key(), 0..=63, &mut |_, _| {}).await;
    let (ranges, blocks) = (17, 16 * 3);
    assert_eq!(reader.requests, 100 - ranges - blocks, "down to the sixteenth block, and each block for both events");
    assert!(gap.is_some() && reader.telling.failure.is_none());
}

#[tokio::test]
async fn late_block_is_requested_once_and_not_split_by_value() {
    let transport = FaultyTransport { late: Some(2..=2), ..faultless_transport() };
    let (found, ..) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
    assert_eq!(of(&found, &AGENTS), [("one.eth", 3)], "the other blocks are read");
    assert!(found.failed[0].1.starts_with("it does not give the logs of block 2: "), "{found:?}");

    let transport = FaultyTransport { late: Some(0..=u64::MAX), ..faultless_transport() };
    let (_, finder, _servers) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
    let mut reader = EndpointEventLogScanner {
        endpoint: &finder.endpoints[0],
        requests: 100,
        telling: EndpointFoundNamehashes::default(),
    };
    assert!(reader.read_logs(&any_key(), 0..=63, &mut |_, _| {}).await.is_some());
    let (ranges, blocks) = (17, 16);
    assert_eq!(reader.requests, 100 - ranges - blocks);
}

fn any_key() -> EventLogSearch {
    EventLogSearch {
        filter: Filter::new(),
        with_values: Filter::event_signature::<Vec<B256>>,
        values: TEXT_CHANGED.map(keccak256).to_vec(),
    }
}

/// An attacker who fills blocks with records of one key hides other records of that key, but no name that has a record
/// of another key.
#[tokio::test]
async fn blocks_that_are_full_of_one_key_hide_no_record_of_another() {
    let texts = ["cl.owner", "cl.entry"].map(|key| (key.to_owned(), "x".to_owned())).into();
    let old = SandboxNameRegistration { texts, ..SandboxNameRegistration::new(name("old.eth"), HOLDER) };
    let mut stage = Stage::new(&[
        old,
        SandboxNameRegistration::new(name("among.eth"), HOLDER),
        SandboxNameRegistration::new(name("filler.eth"), HOLDER),
    ]);
    let full = 4..=4 + 2 * MAX_REFUSED as u64;
    for block in full.clone() {
        stage.builder.set_text(&name("filler.eth"), "cl.owner", "owner.eth").unwrap();
        if block == 9 {
            stage.builder.set_text(&name("among.eth"), "cl.version", "1.0.0").unwrap();
        }
        stage.seal();
    }
    let first_cause = format!("it does not give the logs of block {}: ", full.end());
    let transport = FaultyTransport { full: Some(full), full_of: Some("cl.owner"), ..faultless_transport() };
    let (found, ..) = stage.ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
    assert_eq!(of(&found, &["among.eth", "old.eth"]), [("among.eth", 9), ("old.eth", 1)]);
    assert!(found.told.is_empty() && found.failed[0].1.starts_with(&first_cause), "{found:?}");
}

#[tokio::test]
async fn a_range_that_is_refused_is_parted() {
    let transport = FaultyTransport { most_blocks: 1, ..faultless_transport() };
    let (found, _, servers) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
    assert_eq!(of(&found, &AGENTS), [("one.eth", 3), ("two.eth", 2)]);
    assert!(found.failed.is_empty() && servers[0].request_count() == 2 + 2 * 5, "{found:?}");
    let transport = FaultyTransport { most_blocks: 0, ..faultless_transport() };
    let (found, ..) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
    assert!(found.told.is_empty() && found.failed[0].1.contains("logs of block 4"), "{found:?}");
}

#[tokio::test]
async fn restamped_logs_say_a_later_block_at_most() {
    let restamped = [2, 3].map(|block| format!(r#""blockNumber":"{block:#x}""#)).into();
    let transport = FaultyTransport { lie: Some(restamped), ..faultless_transport() };
    let (found, ..) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(0, Some(3))).await;
    assert_eq!(of(&found, &AGENTS), [("one.eth", 3), ("two.eth", 3)]);
}

#[tokio::test]
async fn who_hides_a_name_hides_nothing_and_who_invents_logs_adds_nothing_unasked() {
    let faults = [
        SandboxRpcFault::NoLogs,
        SandboxRpcFault::EveryLog,
        SandboxRpcFault::ErrorReply,
        SandboxRpcFault::FloodOfLogs,
        SandboxRpcFault::None,
        SandboxRpcFault::WrongChainId(1),
    ];
    let (found, ..) = two_agents().ask(&faults, faultless_transport(), &changed(0, Some(3))).await;
    assert_eq!(of(&found, &AGENTS), [("one.eth", 3), ("two.eth", 2)]);
    let labels = |list: &[(String, u64)]| list.iter().map(|(label, _)| label.clone()).collect::<Vec<_>>();
    assert_eq!(labels(&found.told), ["node-0", "node-1", "node-4"], "{:?}", found.failed);
    let failed: Vec<_> = found.failed.iter().map(|(label, why)| format!("{label}: {why}")).collect();
    assert_eq!(failed[0], "node-2: error -32005: limit exceeded");
    assert!(failed[1].starts_with("node-3: it does not give the logs of block 3: "), "{failed:?}");
    assert!(failed.len() == 3 && failed[2].starts_with("node-5: "), "{failed:?}");
}

#[tokio::test]
async fn subnames_of_every_level_are_found_and_wrapped_ones_are_spelt() {
    let wrapped = |text: &str| SandboxNameRegistration { custody: CustodyContract::NameWrapper, ..agent(text) };
    let names = ["a.publisher.eth", "b.a.publisher.eth", "gone.publisher.eth", "x.publisher.eth"];
    let mut stage = Stage::new(&[agent("publisher.eth"), agent("other.eth"), agent("sub.other.eth")]);
    stage.register(&names.map(agent));
    stage.register(&[SandboxNameRegistration::new(name("gone.publisher.eth"), Address::ZERO)]);
    let (found, finder, _servers) = stage
        .ask(&[SandboxRpcFault::None], faultless_transport(), &NameSearchScope::Below(name("publisher.eth")))
        .await;
    assert_eq!(of(&found, &names), [("a.publisher.eth", 4), ("b.a.publisher.eth", 5), ("x.publisher.eth", 7)]);
    assert_eq!(spelt(&finder, "a.publisher.eth").await, (None, 0), "nobody has said how it is spelt");

    let stage = Stage::new(&[wrapped("wrapped.eth"), wrapped("sub.wrapped.eth")]);
    let (found, finder, _servers) =
        stage.ask(&[SandboxRpcFault::None], faultless_transport(), &NameSearchScope::Below(name("wrapped.eth"))).await;
    assert_eq!(of(&found, &["sub.wrapped.eth"]), [("sub.wrapped.eth", 2)]);
    assert_eq!(spelt(&finder, "sub.wrapped.eth").await, (Some(name("sub.wrapped.eth")), 0));
}

#[tokio::test]
async fn a_block_that_is_refused_hides_no_deeper_level() {
    let names = ["a.publisher.eth", "b.a.publisher.eth", "x.publisher.eth"];
    let mut stage = Stage::new(&[agent("publisher.eth")]);
    stage.register(&names.map(agent));
    let transport = FaultyTransport { full: Some(4..=4), ..faultless_transport() };
    let (found, ..) =
        stage.ask(&[SandboxRpcFault::None], transport, &NameSearchScope::Below(name("publisher.eth"))).await;
    assert_eq!(of(&found, &names), [("a.publisher.eth", 2), ("b.a.publisher.eth", 3)]);
    assert!(found.failed[0].1.starts_with("it does not give the logs of block 4: "), "{found:?}");
}

/// The spelling of a name, and the number of unanswered lookups.
async fn spelt(finder: &EventLogNameFinder, text: &str) -> (Option<EnsName>, usize) {
    let NamehashPreimages { mut names, unanswered } =
        finder.fetch_node_names(BTreeSet::from([name(text).namehash()])).await;
    (names.remove(&name(text).namehash()), unanswered)
}

#[tokio::test]
async fn whether_a_name_is_spelt_is_not_known_where_nobody_answers() {
    for calls in [Calls::Refused, Calls::Stalled] {
        let wrapped = SandboxNameRegistration { custody: CustodyContract::NameWrapper, ..agent("wrapped.eth") };
        let transport = FaultyTransport { calls, ..faultless_transport() };
        let (found, finder, _servers) =
            Stage::new(&[wrapped]).ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
        assert_eq!(found.nodes.len(), 1);
        tokio::time::pause();
        assert_eq!(spelt(&finder, "wrapped.eth").await, (None, 1));
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_name_of_another_node_is_not_believed() {
    let wrapped = SandboxNameRegistration { custody: CustodyContract::NameWrapper, ..agent("wrapped.eth") };
    let lie = Some((hex::encode("wrapped"), hex::encode("swapped")));
    let (_, finder, _servers) = Stage::new(&[wrapped])
        .ask(&[SandboxRpcFault::None], FaultyTransport { lie, ..faultless_transport() }, &changed(0, None))
        .await;
    assert_eq!(spelt(&finder, "wrapped.eth").await, (None, 0));
}

#[tokio::test]
async fn an_endpoint_has_a_bound_on_requests_levels_and_time() {
    let transport = FaultyTransport { most_blocks: 1, ..faultless_transport() };
    let (_, finder, _servers) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
    let mut reader = EndpointEventLogScanner {
        endpoint: &finder.endpoints[0],
        requests: 3,
        telling: EndpointFoundNamehashes::default(),
    };
    reader.read_logs(&any_key(), 0..=63, &mut |_, _| {}).await;
    assert_eq!(reader.requests, 0);
    assert!(reader.telling.failure.expect("it is not all").contains("few blocks at a time"));

    let deep = Stage::new(&[agent("9.8.7.6.5.4.3.2.1.publisher.eth")]);
    let below = NameSearchScope::Below(name("publisher.eth"));
    let (found, ..) = deep.ask(&[SandboxRpcFault::None], faultless_transport(), &below).await;
    assert!(found.nodes.len() == MAX_LEVELS && found.failed[0].1.contains("more than 8 levels"), "{found:?}");

    tokio::time::pause();
    let transport = FaultyTransport { calls: Calls::AllStalled, ..faultless_transport() };
    let (found, finder, _servers) = two_agents().ask(&[SandboxRpcFault::None], transport, &changed(0, None)).await;
    assert_eq!(found.failed, [("node-0".to_owned(), "it takes longer than 600 s".to_owned())]);
    let mut reader = EndpointEventLogScanner {
        endpoint: &finder.endpoints[0],
        requests: 3,
        telling: EndpointFoundNamehashes::default(),
    };
    reader.read_changed_names(0..=4).await;
    let late = "it takes longer than 280 s";
    let both = format!("{late}; records of other keys than the specification's were not all read: {late}");
    assert_eq!(reader.telling.failure, Some(both), "a slow search leaves time for the other");
}

#[test]
fn an_endpoint_that_invents_names_without_end_is_cut_off() {
    let mut telling = EndpointFoundNamehashes::default();
    for number in 0..=MAX_NODES as u64 {
        telling.note_node_at_block(B256::left_padding_from(&number.to_be_bytes()), number);
    }
    assert_eq!(telling.nodes.len(), MAX_NODES);
    assert_eq!(telling.failure.as_deref(), Some("it reports more than 100000 names"));
}
