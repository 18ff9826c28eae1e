use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256, address, keccak256};
use alloy_sol_types::{Revert, SolCall, SolError, SolValue, sol};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    CHAIN_ID, CustodyContract, EnsResolverKind, HostileResolverMode, MULTICALL3, NAME_WRAPPER, REGISTRAR, REGISTRY,
    SandboxChain, SandboxChainBuildError, SandboxChainBuilder, SandboxNameRegistration, SandboxRpcFault,
    SandboxRpcServer, UNIVERSAL_RESOLVER,
};
use clresolve_core::name::EnsName;
use clresolve_core::payment::CoinType;

sol! {
    struct Call { address target; bytes callData; }
    struct Executed { bool success; bytes returnData; }
    struct Request { address sender; string[] urls; bytes data; }

    function tryBlockAndAggregate(bool requireSuccess, Call[] calls)
        returns (uint256 blockNumber, bytes32 blockHash, Executed[] results);
    function getCurrentBlockTimestamp() returns (uint256);
    function resolve(bytes name, bytes data) returns (bytes result, address resolver);
    function findResolver(bytes name) returns (address resolver, bytes32 node, uint256 offset);
    function multicall(bytes[] calls) returns (bytes[]);
    function text(bytes32 node, string key) returns (string);
    function addr(bytes32 node) returns (address);
    interface Multicoin {
        function addr(bytes32 node, uint256 coinType) returns (bytes);
    }

    function query(Request[] requests) returns (bool[] failures, bytes[] responses);
    function owner(bytes32 node) returns (address);
    function recordExists(bytes32 node) returns (bool);
    function ownerOf(uint256 id) returns (address);
    function nameExpires(uint256 labelhash) returns (uint256);
    function getData(uint256 node) returns (address owner, uint32 fuses, uint64 expiry);

    error ResolverNotFound(bytes name);
    error ResolverNotContract(bytes name, address resolver);
    error ResolverError(bytes errorData);
    error UnsupportedResolverProfile(bytes4 selector);
    error HttpError(uint16 status, string message);
    error SignatureInvalid();
    error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData);
}

const ALICE: Address = address!("00000000000000000000000000000000000a11ce");
const BOB: Address = address!("0000000000000000000000000000000000000b0b");
const NO_CODE: Address = address!("00000000000000000000000000000000000000ee");
const KEYS: [&str; 3] = ["cl.entry", "cl.owner", "cl.unset"];
const GATEWAY_URL: &str = "https://ccip.sandbox.example/{sender}/{data}.json";

fn name(text: &str) -> EnsName {
    EnsName::parse(text).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn texts<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn agent(text: &str, resolver: EnsResolverKind) -> SandboxNameRegistration {
    let entry = format!("x402://{text}/summarize/v1");
    let texts = texts([("cl.entry", entry.as_str()), ("cl.owner", "owner.eth")]);
    SandboxNameRegistration { resolver, texts, addr: Some(BOB), ..SandboxNameRegistration::new(name(text), ALICE) }
}

fn hostile(mode: HostileResolverMode, arg: &str) -> EnsResolverKind {
    EnsResolverKind::Hostile { mode, arg: arg.to_owned() }
}

/// A chain with one name, with this resolver and an agent's records, in one block.
fn chain_of(registration: &SandboxNameRegistration) -> Arc<SandboxChain> {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(registration).unwrap();
    builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    Arc::new(builder.build().unwrap())
}

struct Client {
    server: SandboxRpcServer,
    http: reqwest::Client,
}

/// The Universal Resolver's result: the elements of a multicall, or the error.
type Resolved = Result<(Vec<Bytes>, Address), Bytes>;

impl Client {
    async fn new(chain: Arc<SandboxChain>) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { server: SandboxRpcServer::bind(chain).await.unwrap(), http }
    }

    async fn of(registration: &SandboxNameRegistration) -> Self {
        Self::new(chain_of(registration)).await
    }

    async fn post(&self, body: String) -> reqwest::Result<reqwest::Response> {
        self.http.post(self.server.url()).body(body).send().await
    }

    async fn send(&self, request: Value) -> Value {
        let reply = self.post(request.to_string()).await.unwrap().bytes().await.unwrap();
        serde_json::from_slice(&reply).unwrap()
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})).await
    }

    async fn call(&self, to: Address, data: impl SolCall, block: Value) -> Result<Bytes, Value> {
        let reply = self.ask("eth_call", json!([{"to": to, "data": Bytes::from(data.abi_encode())}, block])).await;
        match reply.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(serde_json::from_value(reply["result"].clone()).unwrap()),
        }
    }

    async fn get<C: SolCall>(&self, to: Address, data: C) -> C::Return {
        C::abi_decode_returns(&self.call(to, data, json!("latest")).await.unwrap()).unwrap()
    }

    /// Calls the Universal Resolver through Multicall3, like a client that also needs the block's number.
    async fn aggregate(&self, data: Vec<u8>, block: Value) -> (u64, Executed) {
        let calls = vec![Call { target: UNIVERSAL_RESOLVER, callData: data.into() }];
        let aggregate = tryBlockAndAggregateCall { requireSuccess: false, calls };
        let answer = self.call(MULTICALL3, aggregate, block).await.unwrap();
        let mut answer = tryBlockAndAggregateCall::abi_decode_returns(&answer).unwrap();
        assert_eq!(answer.results.len(), 1);
        (answer.blockNumber.to(), answer.results.remove(0))
    }

    async fn texts_at(&self, text: &str, keys: &[&str], block: Value) -> Resolved {
        let node = name(text).namehash();
        let calls = keys.iter().map(|key| textCall { node, key: (*key).to_owned() }.abi_encode().into()).collect();
        let data = multicallCall { calls }.abi_encode().into();
        let resolve = resolveCall { name: name(text).dns_encoded().into(), data };
        resolved(self.aggregate(resolve.abi_encode(), block).await.1)
    }

    async fn texts(&self, text: &str) -> Resolved {
        self.texts_at(text, &KEYS, json!("finalized")).await
    }

    /// The result for `text` on a chain with one such agent.
    async fn texts_of(text: &str, resolver: EnsResolverKind) -> Resolved {
        Self::of(&agent(text, resolver)).await.texts(text).await
    }
}

fn resolved(outcome: Executed) -> Resolved {
    if !outcome.success {
        return Err(outcome.returnData);
    }
    let answer = resolveCall::abi_decode_returns(&outcome.returnData).unwrap();
    Ok((multicallCall::abi_decode_returns(&answer.result).unwrap(), answer.resolver))
}

fn strings(elements: &[Bytes]) -> Vec<String> {
    elements.iter().map(|element| textCall::abi_decode_returns(element).unwrap()).collect()
}

#[tokio::test]
async fn a_public_name_answers_with_its_records_at_the_block_that_the_header_names() {
    let client = Client::of(&agent("agent.eth", EnsResolverKind::Public)).await;

    let (elements, _) = client.texts("agent.eth").await.unwrap();
    assert_eq!(strings(&elements), ["x402://agent.eth/summarize/v1", "owner.eth", ""]);

    let header = client.ask("eth_getBlockByNumber", json!(["finalized", false])).await["result"].clone();
    let (number, outcome) = client.aggregate(getCurrentBlockTimestampCall {}.abi_encode(), json!("finalized")).await;
    assert!(!outcome.success, "the Universal Resolver has no such function");
    assert_eq!(header["number"], json!(format!("{number:#x}")));
    let by_hash = json!({"blockHash": header["hash"], "requireCanonical": true});
    assert_eq!(client.texts_at("agent.eth", &KEYS, by_hash).await.unwrap().0, elements);

    let timestamp = client.get(MULTICALL3, getCurrentBlockTimestampCall {}).await;
    assert_eq!(timestamp, U256::from(time("2026-11-20T12:00:00Z").as_second()));
    let resolve = resolveCall {
        name: name("agent.eth").dns_encoded().into(),
        data: addrCall { node: name("agent.eth").namehash() }.abi_encode().into(),
    };
    let answer = client.get(UNIVERSAL_RESOLVER, resolve).await;
    assert_eq!(addrCall::abi_decode_returns(&answer.result).unwrap(), BOB);
}

#[tokio::test]
async fn addresses_by_coin_type_are_answered_and_that_of_ether_is_the_address() {
    let base = CoinType::from_chain_id(8453).unwrap();
    let addresses = [(CoinType::ETHER, Bytes::copy_from_slice(BOB.as_slice())), (base, Bytes::from_static(&[7; 32]))];
    for (text, kind) in [("agent.eth", EnsResolverKind::Public), ("wild.eth", EnsResolverKind::Wildcard)] {
        let registration =
            SandboxNameRegistration { addr: None, addresses: addresses.clone().into(), ..agent(text, kind) };
        let mut builder = SandboxChainBuilder::new().unwrap();
        builder.register_name(&registration).unwrap();
        builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
        builder.set_address(&registration.name, base, &Bytes::new()).unwrap();
        builder.seal_block(time("2026-11-20T12:00:12Z")).unwrap();
        let client = Client::new(Arc::new(builder.build().unwrap())).await;

        let node = registration.name.namehash();
        let asked =
            [60, base.number(), 0x8000_0000].map(|coin| Multicoin::addrCall { node, coinType: U256::from(coin) });
        let at = async |block: &str| {
            let calls = asked.iter().map(|call| call.abi_encode().into()).collect();
            let data = multicallCall { calls }.abi_encode().into();
            let resolve = resolveCall { name: registration.name.dns_encoded().into(), data };
            let (elements, _) = resolved(client.aggregate(resolve.abi_encode(), json!(block)).await.1).unwrap();
            elements.iter().map(|element| Multicoin::addrCall::abi_decode_returns(element).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(at("0x1").await, [addresses[0].1.clone(), addresses[1].1.clone(), Bytes::new()], "{text}");
        assert_eq!(at("0x2").await, [addresses[0].1.clone(), Bytes::new(), Bytes::new()], "{text}");
        if text == "agent.eth" {
            let find = findResolverCall { name: registration.name.dns_encoded().into() };
            let resolver = client.get(UNIVERSAL_RESOLVER, find).await.resolver;
            assert_eq!(client.get(resolver, addrCall { node }).await, BOB);
        }
    }
}

#[tokio::test]
async fn the_header_hashes_to_its_hash_and_commits_to_the_state() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    builder.register_name(&agent("agent.eth", EnsResolverKind::Public)).unwrap();
    builder.seal_block(time("2026-11-20T12:00:12Z")).unwrap();
    let client = Client::new(Arc::new(builder.build().unwrap())).await;

    let mut headers = Vec::new();
    for number in ["0x1", "0x2"] {
        let reply = client.ask("eth_getBlockByNumber", json!([number, false])).await;
        let header: alloy_rpc_types_eth::Header = serde_json::from_value(reply["result"].clone()).unwrap();
        assert_eq!(header.inner.hash_slow(), header.hash);
        let by_hash = client.ask("eth_getBlockByHash", json!([header.hash, false])).await;
        assert_eq!(by_hash["result"], reply["result"]);
        headers.push(header);
    }
    assert_eq!(headers[1].parent_hash, headers[0].hash);
    assert_ne!(headers[1].state_root, headers[0].state_root);
    assert!(client.ask("eth_getBlockByNumber", json!(["0x3", false])).await["result"].is_null());
}

#[tokio::test]
async fn a_wildcard_answers_for_subnames_with_their_label() {
    let mut registration = agent("wild.eth", EnsResolverKind::Wildcard);
    registration.texts.insert("cl.entry".to_owned(), "x402://{label}.wild.eth/{label}/v1".to_owned());
    let client = Client::of(&registration).await;

    let (elements, resolver) = client.texts("sub.wild.eth").await.unwrap();
    assert_eq!(strings(&elements), ["x402://sub.wild.eth/sub/v1", "owner.eth", ""]);
    let find = findResolverCall { name: name("sub.wild.eth").dns_encoded().into() };
    let found = client.get(UNIVERSAL_RESOLVER, find).await;
    assert_eq!(found.resolver, resolver);
    assert_eq!(found.node, name("sub.wild.eth").namehash());
    assert_eq!(name("sub.wild.eth").ancestor_at_dns_offset(found.offset.to()), Some(name("wild.eth")));
}

#[tokio::test]
async fn the_reasons_why_a_name_has_no_answer_differ() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    let bare = |text, resolver| SandboxNameRegistration { resolver, ..SandboxNameRegistration::new(name(text), ALICE) };
    builder.register_name(&bare("empty.eth", EnsResolverKind::None)).unwrap();
    builder.register_name(&bare("nocode.eth", EnsResolverKind::Address(NO_CODE))).unwrap();
    builder.register_name(&agent("agent.eth", EnsResolverKind::Public)).unwrap();
    builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    let client = Client::new(Arc::new(builder.build().unwrap())).await;

    for missing in ["missing.eth", "empty.eth", "sub.agent.eth"] {
        let error = client.texts(missing).await.unwrap_err();
        let not_found = ResolverNotFound::abi_decode(&error).unwrap();
        assert_eq!(not_found.name, name(missing).dns_encoded(), "{missing}");
    }
    let error = client.texts("nocode.eth").await.unwrap_err();
    assert_eq!(ResolverNotContract::abi_decode(&error).unwrap().resolver, NO_CODE);

    let exists = |text| client.get(REGISTRY, recordExistsCall { node: name(text).namehash() });
    assert!(exists("empty.eth").await);
    assert!(!exists("missing.eth").await);
}

#[tokio::test]
async fn an_error_of_one_call_is_an_element_of_the_answer() {
    let (elements, _) = Client::texts_of("bad.eth", hostile(HostileResolverMode::Revert, "")).await.unwrap();
    for element in &elements {
        assert_eq!(Revert::abi_decode(element).unwrap().reason(), "hostile resolver");
    }
    let (elements, _) = Client::texts_of("bad.eth", hostile(HostileResolverMode::Empty, "")).await.unwrap();
    let unsupported = UnsupportedResolverProfile { selector: textCall::SELECTOR.into() }.abi_encode();
    assert_eq!(elements, vec![Bytes::from(unsupported); KEYS.len()]);
}

#[tokio::test]
async fn an_error_of_the_only_call_is_a_revert() {
    let client = Client::of(&agent("bad.eth", hostile(HostileResolverMode::Revert, ""))).await;
    let data = textCall { node: name("bad.eth").namehash(), key: "cl.entry".to_owned() }.abi_encode();
    let resolve = resolveCall { name: name("bad.eth").dns_encoded().into(), data: data.into() };

    let error = client.call(UNIVERSAL_RESOLVER, resolve, json!("latest")).await.unwrap_err();

    assert_eq!(error["code"], 3);
    let data: Bytes = serde_json::from_value(error["data"].clone()).unwrap();
    let inner = ResolverError::abi_decode(&data).unwrap().errorData;
    assert_eq!(Revert::abi_decode(&inner).unwrap().reason(), "hostile resolver");
}

#[tokio::test]
async fn a_resolver_that_takes_all_gas_fails_and_does_not_look_empty() {
    let burnt = Client::texts_of("bad.eth", hostile(HostileResolverMode::Burn, "")).await;
    assert!(burnt.as_ref().is_err_and(|e| e.is_empty()), "{burnt:?}");

    let (elements, _) = Client::texts_of("bad.eth", hostile(HostileResolverMode::Burn, "cl.owner")).await.unwrap();
    assert_eq!(elements[1], Bytes::new());
    assert_eq!(strings(&elements[..1]), ["x402://bad.eth/summarize/v1"]);

    let (elements, _) = Client::texts_of("slow.eth", hostile(HostileResolverMode::BurnInterface, "")).await.unwrap();
    assert_eq!(strings(&elements), ["x402://slow.eth/summarize/v1", "owner.eth", ""]);
}

#[tokio::test]
async fn hostile_answers_come_through_as_they_are() {
    for (mode, expected) in [
        (HostileResolverMode::Garbage, Bytes::from_static(&[0xde, 0xad, 0xbe, 0xef])),
        (HostileResolverMode::BadOffset, (U256::MAX, U256::from(5)).abi_encode().into()),
        (HostileResolverMode::BadLength, (U256::from(32), U256::MAX).abi_encode().into()),
        (HostileResolverMode::BadUtf8, Bytes::from_static(&[0xff, 0xfe, 0x80, 0xc0, 0xaf]).abi_encode().into()),
        (HostileResolverMode::Invalid, Bytes::new()),
    ] {
        let (elements, _) = Client::texts_of("bad.eth", hostile(mode, "cl.owner")).await.unwrap();
        assert_eq!(elements[1], expected, "{mode:?}");
        assert_eq!(strings(&elements[..1]), ["x402://bad.eth/summarize/v1"], "{mode:?}");
    }
    let (elements, _) = Client::texts_of("bad.eth", hostile(HostileResolverMode::Aliased, "")).await.unwrap();
    assert!(elements.iter().all(|element| element.starts_with(B256::ZERO.as_slice())), "the offset is its own length");
    let error = Client::texts_of("bad.eth", hostile(HostileResolverMode::ExtendedGarbage, "")).await.unwrap_err();
    assert_eq!(error, Bytes::new());
}

#[tokio::test]
async fn a_mebibyte_from_one_key_fits_the_gas_limit() {
    let (elements, _) = Client::texts_of("bad.eth", hostile(HostileResolverMode::Huge, "cl.owner")).await.unwrap();
    assert_eq!(textCall::abi_decode_returns(&elements[1]).unwrap(), "A".repeat(1 << 20));

    let (elements, _) =
        Client::texts_of("bad.eth", hostile(HostileResolverMode::RevertHuge, "cl.owner")).await.unwrap();
    assert_eq!(elements[1].len(), 1 << 20);
}

/// The batch lookup that the Universal Resolver requests, and the inner requests.
fn lookup(resolution: Resolved) -> (OffchainLookup, Vec<Request>) {
    let lookup = OffchainLookup::abi_decode(&resolution.unwrap_err()).unwrap();
    assert_eq!(lookup.sender, UNIVERSAL_RESOLVER);
    assert_eq!(lookup.urls, ["x-batch-gateway:true"]);
    let requests = queryCall::abi_decode(&lookup.callData).unwrap().requests;
    (lookup, requests)
}

/// The call of the Universal Resolver's callback with the batch gateway's responses.
fn callback(lookup: &OffchainLookup, failures: Vec<bool>, responses: Vec<Bytes>) -> Vec<u8> {
    let response = queryCall::abi_encode_returns(&queryReturn { failures, responses });
    let arguments = (Bytes::from(response), lookup.extraData.clone()).abi_encode_params();
    [lookup.callbackFunction.as_slice(), &arguments].concat()
}

fn offchain() -> EnsResolverKind {
    EnsResolverKind::Offchain { urls: vec![GATEWAY_URL.to_owned()] }
}

#[tokio::test]
async fn an_offchain_name_answers_with_what_its_gateway_signed() {
    let chain = chain_of(&agent("far.eth", offchain()));
    let client = Client::new(Arc::clone(&chain)).await;
    let (lookup, requests) = lookup(client.texts("far.eth").await);
    assert_eq!(requests.len(), KEYS.len());
    assert!(requests.iter().all(|request| request.urls == [GATEWAY_URL]));

    let signed: Vec<Bytes> =
        requests.iter().map(|request| chain.answer_ccip_read(request.sender, &request.data).unwrap()).collect();
    let data = callback(&lookup, vec![false; KEYS.len()], signed.clone());
    let (elements, resolver) = resolved(client.aggregate(data, json!("finalized")).await.1).unwrap();
    assert_eq!(strings(&elements), ["x402://far.eth/summarize/v1", "owner.eth", ""]);
    assert_eq!(resolver, requests[0].sender);

    let swapped = vec![signed[1].clone(), signed[0].clone(), signed[2].clone()];
    let data = callback(&lookup, vec![false; KEYS.len()], swapped);
    let (elements, _) = resolved(client.aggregate(data, json!("finalized")).await.1).unwrap();
    assert_eq!(elements[0], SignatureInvalid {}.abi_encode(), "an answer to another question");
    assert_eq!(strings(&elements[2..]), [""]);

    let failed = Bytes::from(HttpError { status: 502, message: "no".to_owned() }.abi_encode());
    let data = callback(&lookup, vec![false, true, false], vec![signed[0].clone(), failed.clone(), signed[2].clone()]);
    let (elements, _) = resolved(client.aggregate(data, json!("finalized")).await.1).unwrap();
    assert_eq!(elements[1], failed);
    assert!(chain.answer_ccip_read(requests[0].sender, b"nonsense").is_err());
}

#[tokio::test]
async fn hostile_lookups_reach_the_client() {
    let url = "https://169.254.169.254/{data}";
    let client = Client::of(&agent("bad.eth", hostile(HostileResolverMode::Ssrf, url))).await;
    let (first, requests) = lookup(client.texts("bad.eth").await);
    assert!(requests.iter().all(|request| request.urls == [url]));
    let believed = Bytes::from("stolen".abi_encode());
    let data = callback(&first, vec![false; KEYS.len()], vec![believed.abi_encode().into(); KEYS.len()]);
    let outcome = client.aggregate(data, json!("latest")).await.1;
    assert!(outcome.success);

    let client = Client::of(&agent("bad.eth", hostile(HostileResolverMode::Loop, url))).await;
    let (first, _) = lookup(client.texts("bad.eth").await);
    let data = callback(&first, vec![false; KEYS.len()], vec![Bytes::new(); KEYS.len()]);
    let (_, again) = lookup(resolved(client.aggregate(data, json!("latest")).await.1));
    assert_eq!(again.len(), KEYS.len());

    let (_, requests) = lookup(Client::texts_of("bad.eth", hostile(HostileResolverMode::NoUrls, "")).await);
    assert!(requests.iter().all(|request| request.urls.is_empty()));
}

#[tokio::test]
async fn a_lookup_in_the_name_of_another_contract_is_an_error_of_its_key() {
    let resolver = hostile(HostileResolverMode::Sender, "https://169.254.169.254/{data}");
    let (elements, _) = Client::texts_of("bad.eth", resolver).await.unwrap();
    for element in elements {
        let lookup = OffchainLookup::abi_decode(&element).unwrap();
        assert_eq!(lookup.sender, address!("000000000000000000000000000000000000dEaD"));
    }
}

#[tokio::test]
async fn holders_and_expiries_are_read_where_mainnet_keeps_them() {
    let expiry = time("2026-11-01T00:00:00Z");
    let mut builder = SandboxChainBuilder::new().unwrap();
    let plain =
        SandboxNameRegistration { expiry: Some(expiry), ..SandboxNameRegistration::new(name("plain.eth"), ALICE) };
    builder.register_name(&plain).unwrap();
    let wrapped = SandboxNameRegistration {
        custody: CustodyContract::NameWrapper,
        expiry: Some(time("2027-01-01T00:00:00Z")),
        ..agent("wrapped.eth", EnsResolverKind::Public)
    };
    builder.register_name(&wrapped).unwrap();
    let sub = SandboxNameRegistration {
        custody: CustodyContract::NameWrapper,
        ..agent("sub.wrapped.eth", EnsResolverKind::Public)
    };
    builder.register_name(&sub).unwrap();
    let wrong = SandboxNameRegistration::new(name("other.wrapped.eth"), BOB);
    assert_eq!(builder.register_name(&wrong), Err(SandboxChainBuildError::Custody("other.wrapped.eth".to_owned())));
    builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    let client = Client::new(Arc::new(builder.build().unwrap())).await;

    let id = U256::from_be_bytes(keccak256("plain").0);
    assert_eq!(client.get(REGISTRY, ownerCall { node: name("plain.eth").namehash() }).await, ALICE);
    assert_eq!(client.get(REGISTRAR, nameExpiresCall { labelhash: id }).await, U256::from(expiry.as_second()));
    assert!(client.call(REGISTRAR, ownerOfCall { id }, json!("latest")).await.is_err(), "it has expired");

    for text in ["wrapped.eth", "sub.wrapped.eth"] {
        let node = name(text).namehash();
        assert_eq!(client.get(REGISTRY, ownerCall { node }).await, NAME_WRAPPER, "{text}");
        let data = client.get(NAME_WRAPPER, getDataCall { node: node.into() }).await;
        assert_eq!(data.owner, ALICE, "{text}");
        let grace = 90 * 24 * 60 * 60;
        assert_eq!(i64::try_from(data.expiry).unwrap(), time("2027-01-01T00:00:00Z").as_second() + grace, "{text}");
        let (elements, _) = client.texts(text).await.unwrap();
        assert_eq!(strings(&elements)[1], "owner.eth", "{text}");
    }
}

#[tokio::test]
async fn blocks_keep_their_state_and_tags_point_at_them() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&agent("agent.eth", EnsResolverKind::Public)).unwrap();
    let old = builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    builder.finalize_newest_block().unwrap();
    builder.set_text(&name("agent.eth"), "cl.owner", "new.eth").unwrap();
    let new = builder.seal_block(time("2026-11-20T12:13:00Z")).unwrap();
    let chain = Arc::new(builder.build().unwrap());
    assert_eq!((chain.finalized(), chain.latest()), (old, new));
    let client = Client::new(chain).await;

    for (block, expected) in [
        (json!("finalized"), "owner.eth"),
        (json!("safe"), "owner.eth"),
        (json!("latest"), "new.eth"),
        (json!("0x1"), "owner.eth"),
        (json!({"blockHash": new.hash}), "new.eth"),
    ] {
        let (elements, _) = client.texts_at("agent.eth", &["cl.owner"], block.clone()).await.unwrap();
        assert_eq!(strings(&elements), [expected], "{block}");
    }
    let resolve = || resolveCall { name: name("agent.eth").dns_encoded().into(), data: Bytes::new() };
    let error = client.call(UNIVERSAL_RESOLVER, resolve(), json!("0x99")).await.unwrap_err();
    assert_eq!(error["message"], "header not found");

    builder.set_resolver(&name("agent.eth"), &EnsResolverKind::None).unwrap();
    builder.seal_block(time("2026-11-20T12:13:12Z")).unwrap();
    client.server.serve_chain(Arc::new(builder.build().unwrap()));
    assert!(client.texts_at("agent.eth", &KEYS, json!("latest")).await.is_err());
    assert!(client.texts("agent.eth").await.is_ok());
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    assert_eq!(builder.build().err(), Some(SandboxChainBuildError::NoBlock));
    let eth = SandboxNameRegistration::new(name("eth"), ALICE);
    assert_eq!(builder.register_name(&eth), Err(SandboxChainBuildError::Reserved("eth".to_owned())));
    let unset = builder.set_text(&name("agent.eth"), "cl.owner", "x");
    assert_eq!(unset, Err(SandboxChainBuildError::Unregistered("agent.eth".to_owned())));
    let mute = agent("mute.eth", EnsResolverKind::None);
    assert_eq!(builder.register_name(&mute), Err(SandboxChainBuildError::NoRecords("mute.eth".to_owned())));
    let at = time("2026-11-20T12:00:00Z");
    builder.seal_block(at).unwrap();
    assert_eq!(builder.seal_block(at), Err(SandboxChainBuildError::Time(at)));
}

#[tokio::test]
async fn json_rpc_is_answered_as_nodes_do() {
    let client = Client::of(&agent("agent.eth", EnsResolverKind::Public)).await;

    let replies = client
        .send(json!([
            {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []},
            {"jsonrpc": "2.0", "id": "two", "method": "eth_nonsense"},
            {"jsonrpc": "2.0", "id": 3, "method": "eth_call", "params": []},
            {"jsonrpc": "2.0", "id": 4, "method": "net_version"},
            {"jsonrpc": "2.0", "id": 5, "method": "eth_blockNumber"},
            {"jsonrpc": "2.0", "id": 6, "method": "eth_getLogs", "params": [{"address": ALICE}]},
            {"jsonrpc": "2.0", "id": 7, "method": "eth_getBalance", "params": [ALICE, "latest"]},
            {"jsonrpc": "2.0", "id": 8, "method": "eth_getTransactionCount", "params": [BOB, "latest"]},
            {"jsonrpc": "2.0", "id": 9, "method": "eth_getStorageAt", "params": [REGISTRY, "0x0", "latest"]},
            17
        ]))
        .await;

    assert_eq!(replies[0]["result"], "0x7a69");
    assert_eq!((&replies[1]["error"]["code"], &replies[1]["id"]), (&json!(-32601), &json!("two")));
    assert_eq!(replies[2]["error"]["code"], -32602);
    assert_eq!(replies[3]["result"], CHAIN_ID.to_string());
    assert_eq!(replies[4]["result"], "0x1");
    assert_eq!(replies[5]["result"], json!([]));
    assert_eq!((&replies[6]["result"], &replies[7]["result"]), (&json!("0x0"), &json!("0x0")));
    assert_eq!(replies[8]["result"], json!(B256::ZERO));
    assert_eq!(replies[9]["error"]["code"], -32600);
    let code = client.ask("eth_getCode", json!([UNIVERSAL_RESOLVER, "latest"])).await;
    assert!(code["result"].as_str().unwrap().len() > 1000);
    assert_eq!(client.ask("eth_getCode", json!([NO_CODE, "latest"])).await["result"], "0x");
    assert_eq!(client.post("{".to_owned()).await.unwrap().status(), 200);
    assert_eq!(client.post(" ".repeat(1 << 21)).await.map(|r| r.status().as_u16()).unwrap_or(413), 413);
    assert_eq!(client.http.get(client.server.url()).send().await.unwrap().status(), 405);
    assert_eq!(client.server.request_count(), 6);
}

#[tokio::test]
async fn logs_are_those_that_the_contracts_wrote() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&agent("agent.eth", EnsResolverKind::Public)).unwrap();
    builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    builder.set_text(&name("agent.eth"), "cl.owner", "other.eth").unwrap();
    let block = builder.seal_block(time("2026-11-20T12:00:12Z")).unwrap();
    let client = Client::new(Arc::new(builder.build().unwrap())).await;

    let text_changed = keccak256("TextChanged(bytes32,string,string,string)");
    let node = name("agent.eth").namehash();
    let written = client.ask("eth_getLogs", json!([{"fromBlock": "0x1", "topics": [text_changed]}])).await;
    let written = written["result"].as_array().unwrap().clone();
    assert_eq!(written.len(), 1 + agent("agent.eth", EnsResolverKind::Public).texts.len());
    let log = written.last().unwrap();
    assert_eq!((&log["blockHash"], &log["blockNumber"]), (&json!(block.hash), &json!("0x2")));
    assert_eq!((&log["topics"][1], &log["topics"][2]), (&json!(node), &json!(keccak256("cl.owner"))));

    let of = async |filter: serde_json::Value| {
        let logs = client.ask("eth_getLogs", json!([filter])).await;
        logs["result"].as_array().unwrap().len()
    };
    assert_eq!(of(json!({"blockHash": block.hash})).await, 1);
    assert_eq!(of(json!({"fromBlock": "0x2", "toBlock": "0x9"})).await, 1, "later blocks have none yet");
    assert_eq!(of(json!({"fromBlock": "0x2", "address": REGISTRY})).await, 0);
    let backwards = client.ask("eth_getLogs", json!([{"fromBlock": "0x2", "toBlock": "0x1"}])).await;
    assert_eq!(backwards["error"]["code"], -32000);
}

#[tokio::test]
async fn faults_are_switched_on_and_off() {
    let client = Client::of(&agent("agent.eth", EnsResolverKind::Public)).await;
    let post = async |fault| {
        client.server.set_fault(fault);
        client.post(json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}).to_string()).await
    };

    assert_eq!(post(SandboxRpcFault::Status(503)).await.unwrap().status(), 503);
    assert_eq!(post(SandboxRpcFault::Html).await.unwrap().headers()["content-type"], "text/html");
    assert_eq!(post(SandboxRpcFault::NotJson).await.unwrap().text().await.unwrap(), "this is not JSON");
    assert!(post(SandboxRpcFault::DropConnection).await.is_err());
    let huge = post(SandboxRpcFault::HugeBody).await.unwrap().bytes().await.unwrap();
    assert_eq!(huge.len() >> 20, 64);
    for (fault, expected) in [
        (SandboxRpcFault::ErrorReply, r#"{"error":{"code":-32005,"message":"limit exceeded"},"id":1,"jsonrpc":"2.0"}"#),
        (SandboxRpcFault::WrongChainId(1), r#"{"id":1,"jsonrpc":"2.0","result":"0x1"}"#),
        (SandboxRpcFault::None, r#"{"id":1,"jsonrpc":"2.0","result":"0x7a69"}"#),
    ] {
        assert_eq!(post(fault).await.unwrap().text().await.unwrap(), expected);
    }

    let read = || client.call(MULTICALL3, getCurrentBlockTimestampCall {}, json!("latest"));
    client.server.set_fault(SandboxRpcFault::Garbage);
    assert_eq!(read().await.unwrap(), Bytes::from_static(&[0xde, 0xad, 0xbe, 0xef]));
    client.server.set_fault(SandboxRpcFault::AliasedOffsets);
    let aliased = read().await.unwrap();
    assert!(aliased.len() < 256 << 10);
    let decoded = tryBlockAndAggregateCall::abi_decode_returns(&aliased).unwrap();
    assert_eq!(decoded.results.iter().map(|result| result.returnData.len()).sum::<usize>(), 64 << 20);
}

#[tokio::test]
async fn a_stalled_request_ends_with_the_server() {
    let client = Client::of(&agent("agent.eth", EnsResolverKind::Public)).await;
    client.server.set_fault(SandboxRpcFault::Stall);
    let request = client.http.post(client.server.url()).body("{}").send();
    let stalled = tokio::spawn(request);
    while client.server.request_count() == 0 {
        tokio::task::yield_now().await;
    }

    drop(client.server);

    assert!(stalled.await.unwrap().is_err());
}

#[tokio::test]
async fn a_lagging_header_is_the_one_before() {
    let mut builder = SandboxChainBuilder::new().unwrap();
    let old = builder.seal_block(time("2026-11-20T12:00:00Z")).unwrap();
    let new = builder.seal_block(time("2026-11-20T12:00:12Z")).unwrap();
    let client = Client::new(Arc::new(builder.build().unwrap())).await;
    client.server.set_fault(SandboxRpcFault::LaggingHeader);

    for (block, expected) in [("latest", old), ("0x2", new)] {
        let header = client.ask("eth_getBlockByNumber", json!([block, false])).await;
        assert_eq!(header["result"]["hash"], json!(expected.hash), "{block}");
    }
}

#[test]
fn faults_and_modes_are_named_in_kebab_case() {
    let fault = |text: Value| serde_json::from_value::<SandboxRpcFault>(text).unwrap();
    assert_eq!(fault(json!("drop-connection")), SandboxRpcFault::DropConnection);
    assert_eq!(fault(json!({"wrong-chain-id": 5})), SandboxRpcFault::WrongChainId(5));
    let kind: EnsResolverKind = serde_json::from_value(json!({"hostile": {"mode": "bad-utf8"}})).unwrap();
    assert_eq!(kind, hostile(HostileResolverMode::BadUtf8, ""));
}
