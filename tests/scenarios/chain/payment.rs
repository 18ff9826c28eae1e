//! What a name publishes about payments, read with its records: by every resolver, under every grade of proof, and
//! never at the cost of the records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{Address, Bytes, hex};
use async_trait::async_trait;
use clresolve_chain::ChainReaderConfig;
use clresolve_chain::ccip::{CcipReadGatewayClient, CcipReadGatewayError, CcipReadRequest};
use clresolve_chain::transport::{HttpRequestError, JsonRpcHttpClient};
use clresolve_core::payment::{
    AddressRecord, CoinType, EndpointRecord, EndpointRecordKey, PaymentRecords, RequestedCoinTypes,
};
use clresolve_core::reading::{
    BlockSelector, ChainError, EnsAnswer, NameReading, ProofGradeDemand, ResolverContractError,
};
use clresolve_core::records::{TextRecord, TextRecordKey};
use clresolve_sandbox::chain::{
    EnsResolverKind, HostileResolverMode, SandboxChain, SandboxChainBuilder, SandboxNameRegistration, SandboxRpcServer,
};
use url::Url;

use super::{
    CcipReadResult, ENTRY, FIRST, FirstFirst, Gateway, LATER, NOON, chain_of, config, endpoints_of, found, graded,
    http, latest_of, name, offchain, registration, sorted, time,
};

const PAYEE: Address = Address::repeat_byte(0x7a);
const THIEF: Address = Address::repeat_byte(0x7b);
const RUNTIME: &str = "https://runtime.example/agents";

/// The selector of `addr(bytes32,uint256)`, which no request for the records has.
const MULTICOIN: [u8; 4] = hex!("f1cb7e06");

fn coin(chain: u64) -> CoinType {
    CoinType::from_chain_id(chain).unwrap()
}

/// The coin types that are always asked for, and those of two chains.
fn coins() -> RequestedCoinTypes {
    RequestedCoinTypes::new([coin(8453), coin(31_337)]).unwrap()
}

fn bytes(address: Address) -> Bytes {
    Bytes::copy_from_slice(address.as_slice())
}

/// A seller with an address on two chains, one of which is none.
fn seller(text: &str, resolver: EnsResolverKind) -> SandboxNameRegistration {
    let mut seller = registration(text, resolver);
    seller.addr = None;
    seller.texts.insert(EndpointRecordKey::Runtime.to_string(), RUNTIME.to_owned());
    seller.addresses = BTreeMap::from([
        (CoinType::ETHER, bytes(PAYEE)),
        (coin(8453), vec![9; 32].into()),
        (coin(31_337), bytes(PAYEE)),
    ]);
    seller
}

/// What [`seller`] publishes.
fn published() -> PaymentRecords {
    let absent = |key| (key, EndpointRecord::Read(TextRecord::Absent));
    let mut endpoints: BTreeMap<_, _> = EndpointRecordKey::ALL.map(absent).into();
    endpoints.insert(EndpointRecordKey::Runtime, EndpointRecord::Read(TextRecord::Text(RUNTIME.to_owned())));
    let addresses = BTreeMap::from([
        (CoinType::ETHER, AddressRecord::Address(PAYEE)),
        (CoinType::EVM_DEFAULT, AddressRecord::Absent),
        (coin(8453), AddressRecord::Malformed(vec![9; 32].into())),
        (coin(31_337), AddressRecord::Address(PAYEE)),
    ]);
    PaymentRecords { addresses, endpoints, offchain: false }
}

const GRADES: [ProofGradeDemand; 3] =
    [ProofGradeDemand::SingleRpc, ProofGradeDemand::Quorum(2), ProofGradeDemand::StateProof(2)];

/// Reads `text` from three honest endpoints of this chain.
async fn read_through(
    demand: ProofGradeDemand,
    chain: &Arc<SandboxChain>,
    text: &str,
    gateway: Arc<dyn CcipReadGatewayClient>,
) -> Result<NameReading, ChainError> {
    let (_servers, endpoints) = endpoints_of(&[chain, chain, chain]).await;
    let config = ChainReaderConfig { demand, coins: coins(), ..config(endpoints) };
    graded(config, &http(), gateway).read_name(&name(text), FIRST).await
}

#[tokio::test]
async fn one_request_reads_the_addresses_and_endpoints_too() {
    let chain = chain_of(&[seller("seller.eth", EnsResolverKind::Public)]);
    let (servers, endpoints) = endpoints_of(&[&chain]).await;
    let reader = graded(ChainReaderConfig { coins: coins(), ..config(endpoints) }, &http(), Gateway::refusing());

    let reading = reader.read_name(&name("seller.eth"), FIRST).await.unwrap();

    assert_eq!(servers[0].request_count(), crate::chain::INTRODUCED);
    assert_eq!(reading.latest, Some(Ok(latest_of(&reading))));
    assert_eq!(found(reading.answer).payment, published());
}

#[tokio::test]
async fn every_resolver_and_every_grade_gives_the_same() {
    let kinds =
        [("public.eth", EnsResolverKind::Public), ("fleet.eth", EnsResolverKind::Wildcard), ("off.eth", offchain())];
    let chain = chain_of(&kinds.map(|(text, kind)| seller(text, kind)));
    for text in ["public.eth", "a.fleet.eth", "off.eth"] {
        for demand in GRADES {
            let reading = read_through(demand, &chain, text, Gateway::serving(Arc::clone(&chain))).await;
            let reading = reading.unwrap_or_else(|error| panic!("{text}, {demand:?}: {error}"));
            assert_eq!(reading.latest, Some(Ok(latest_of(&reading))), "{text}, {demand:?}");
            let found = found(reading.answer);
            let expected = PaymentRecords { offchain: text == "off.eth", ..published() };
            assert_eq!(found.payment, expected, "{text}, {demand:?}");
            assert_eq!((found.records.text(TextRecordKey::Entry), found.offchain), (Some(ENTRY), text == "off.eth"));
        }
    }
}

#[tokio::test]
async fn readings_of_other_records_do_not_ask_for_payments() {
    let chain = chain_of(&[seller("seller.eth", EnsResolverKind::Public), seller("off.eth", offchain())]);
    for demand in GRADES {
        let (_servers, endpoints) = endpoints_of(&[&chain, &chain]).await;
        let gateway = Gateway::serving(Arc::clone(&chain));
        let reader = graded(ChainReaderConfig { demand, ..config(endpoints) }, &http(), Arc::clone(&gateway) as _);
        for text in ["seller.eth", "off.eth"] {
            let reading = reader.read_selected_records(&name(text), FIRST, &TextRecordKey::SIGNER).await.unwrap();
            assert_eq!(found(reading.answer).payment, PaymentRecords::default(), "{text}, {demand:?}");
        }
        assert_eq!(gateway.asked(), 2 * TextRecordKey::SIGNER.len(), "{demand:?}");
    }
}

#[tokio::test]
async fn a_name_without_records_has_no_addresses_either() {
    let chain = chain_of(&[seller("seller.eth", EnsResolverKind::Public)]);
    for demand in GRADES {
        let reading = read_through(demand, &chain, "nobody.eth", Gateway::refusing()).await.unwrap();
        assert_eq!(reading.answer, EnsAnswer::Unregistered, "{demand:?}");
    }
}

/// What a resolver makes of the question for addresses changes nothing about the records.
#[tokio::test]
async fn a_resolver_that_fails_for_addresses_alone_keeps_its_records() {
    use HostileResolverMode::{
        Aliased, BadLength, BadOffset, BadUtf8, Burn, Empty, Garbage, Huge, Invalid, Revert, RevertHuge,
    };
    let failing = [Aliased, BadLength, BadOffset, Burn, Empty, Garbage, Huge, Invalid, Revert, RevertHuge, BadUtf8];
    for arg in ["addr", "cl.endpoint.runtime", "agent-endpoint[a2a]"] {
        for mode in failing {
            let kind = EnsResolverKind::Hostile { mode, arg: arg.to_owned() };
            let chain = chain_of(&[seller("evil.eth", kind)]);
            for demand in [ProofGradeDemand::SingleRpc, ProofGradeDemand::StateProof(1)] {
                let reading = read_through(demand, &chain, "evil.eth", Gateway::refusing()).await;
                let reading = reading.unwrap_or_else(|error| panic!("{mode:?} {arg} {demand:?}: {error}"));
                let found = found(reading.answer);
                assert_eq!(found.records.text(TextRecordKey::Entry), Some(ENTRY), "{mode:?} {arg}");
                assert_eq!(found.records.get(TextRecordKey::Checksum), &TextRecord::Absent, "{mode:?} {arg}");
                nothing_is_made_up(&found.payment, &format!("{mode:?} {arg}"));
                assert_eq!(found.payment.addresses.len(), coins().count(), "{mode:?} {arg}");
                let fails = match arg {
                    "addr" => !is_address(&found.payment, CoinType::ETHER),
                    "cl.endpoint.runtime" => {
                        found.payment.endpoints[&EndpointRecordKey::Runtime]
                            != published().endpoints[&EndpointRecordKey::Runtime]
                    }
                    _ => found.payment.endpoints[&EndpointRecordKey::A2a] != EndpointRecord::Read(TextRecord::Absent),
                };
                assert!(fails, "{mode:?} {arg}: {:?}", found.payment);
            }
        }
    }
}

fn is_address(payment: &PaymentRecords, coin: CoinType) -> bool {
    matches!(payment.addresses[&coin], AddressRecord::Address(_))
}

/// No record that is set reads as one that is not, and no address as another.
fn nothing_is_made_up(payment: &PaymentRecords, case: &str) {
    for (coin, expected) in published().addresses {
        let read = &payment.addresses[&coin];
        let usable = matches!(read, AddressRecord::Address(_) | AddressRecord::Absent);
        assert!(!usable || *read == expected, "{case}: {coin} is {read}");
    }
    for (key, expected) in published().endpoints {
        let read = &payment.endpoints[&key];
        let usable = matches!(read, EndpointRecord::Read(TextRecord::Absent));
        assert!(!usable || *read == expected, "{case}: {key} is {read:?}");
    }
}

/// Two blocks: `NOON`, finalized, and `LATER`, in which address and endpoint are others.
fn moving_chain() -> Arc<SandboxChain> {
    let seller = seller("seller.eth", EnsResolverKind::Public);
    let mut builder = SandboxChainBuilder::new().unwrap();
    builder.register_name(&seller).unwrap();
    builder.seal_block(time(NOON)).unwrap();
    builder.finalize_newest_block().unwrap();
    builder.set_address(&seller.name, CoinType::ETHER, &bytes(THIEF)).unwrap();
    builder.set_text(&seller.name, EndpointRecordKey::Runtime.as_str(), "https://thief.example").unwrap();
    builder.seal_block(time(LATER)).unwrap();
    Arc::new(builder.build().unwrap())
}

#[tokio::test]
async fn a_change_of_addresses_at_latest_shows_and_leaves_the_records_as_they_are() {
    let chain = moving_chain();
    for demand in GRADES {
        let reading = read_through(demand, &chain, "seller.eth", Gateway::refusing()).await.unwrap();
        let latest = reading.latest.unwrap().unwrap();
        assert!(latest.answer.has_same_records(&reading.answer), "{demand:?}");
        assert_eq!(found(reading.answer).payment, published(), "{demand:?}");
        let mut changed = published();
        changed.addresses.insert(CoinType::ETHER, AddressRecord::Address(THIEF));
        let thief = TextRecord::Text("https://thief.example".to_owned());
        changed.endpoints.insert(EndpointRecordKey::Runtime, EndpointRecord::Read(thief));
        assert_eq!(found(latest.answer).payment, changed, "{demand:?}");
    }
    for block in [BlockSelector::Latest, BlockSelector::Number(1)] {
        let (_servers, endpoints) = endpoints_of(&[&chain]).await;
        let reader = graded(config(endpoints), &http(), Gateway::refusing());
        assert_eq!(reader.read_name(&name("seller.eth"), block).await.unwrap().latest, None);
    }
}

/// Where a liar writes the thief's address in place of the payee's.
#[derive(Clone, Copy)]
enum Lie {
    /// Wherever it stands.
    Everywhere,
    /// At the newest block alone.
    AtLatest,
}

/// A transport through which the first endpoint answers before the others are asked, and lies.
struct OtherPayee(FirstFirst, Lie);

#[async_trait]
impl JsonRpcHttpClient for OtherPayee {
    async fn post_json(
        &self,
        url: &Url,
        body: bytes::Bytes,
        cap: usize,
        timeout: Duration,
    ) -> Result<bytes::Bytes, HttpRequestError> {
        let is_latest = String::from_utf8_lossy(&body).contains("\"latest\"");
        let reply = self.0.post_json(url, body, cap, timeout).await?;
        if *url != self.0.first {
            return Ok(reply);
        }
        let lie = |text: &str| text.replace(&hex::encode(PAYEE), &hex::encode(THIEF));
        Ok(match self.1 {
            Lie::Everywhere => lie(&String::from_utf8_lossy(&reply)).into(),
            Lie::AtLatest => {
                // The call at the newest block is sent alone in the first exchange.
                if !is_latest {
                    return Ok(reply);
                }
                lie(&String::from_utf8_lossy(&reply)).into()
            }
        })
    }
}

/// Reads the seller through honest endpoints beside one that lies, which answers first.
async fn read_beside_a_liar(demand: ProofGradeDemand, lie: Lie, honest: usize) -> Result<NameReading, ChainError> {
    let chain = chain_of(&[seller("seller.eth", EnsResolverKind::Public)]);
    let (_servers, endpoints): (Vec<SandboxRpcServer>, _) = endpoints_of(&vec![&chain; honest + 1]).await;
    let first = endpoints[0].url.clone();
    let transport = OtherPayee(FirstFirst::new(first), lie);
    let config = ChainReaderConfig { demand, coins: coins(), ..config(endpoints) };
    graded(config, &(Arc::new(transport) as _), Gateway::refusing()).read_name(&name("seller.eth"), FIRST).await
}

#[tokio::test]
async fn one_endpoints_word_is_believed_alone_and_no_further() {
    let reading = read_beside_a_liar(ProofGradeDemand::SingleRpc, Lie::Everywhere, 0).await.unwrap();
    assert!(reading.proof.relies_on_single_third_party());
    assert_eq!(found(reading.answer).payment.addresses[&CoinType::ETHER], AddressRecord::Address(THIEF));
}

#[tokio::test]
async fn a_liar_about_an_address_alone_is_outvoted_and_named() {
    let reading = read_beside_a_liar(ProofGradeDemand::Quorum(2), Lie::Everywhere, 2).await.unwrap();

    assert_eq!(sorted(&reading.endpoints), ["b", "c"]);
    let [(liar, statement)] = reading.contradicted_by.as_slice() else { panic!("{:?}", reading.contradicted_by) };
    assert!(liar == "a" && statement.contains(", payments 0x"), "{statement}");
    assert_eq!(found(reading.answer).payment, published());

    let error = read_beside_a_liar(ProofGradeDemand::Quorum(2), Lie::Everywhere, 1).await.unwrap_err();
    assert!(matches!(error, ChainError::Disagree(_)), "{error}");
}

#[tokio::test]
async fn a_liar_about_an_address_cannot_prove_it() {
    let reading = read_beside_a_liar(ProofGradeDemand::StateProof(2), Lie::Everywhere, 2).await.unwrap();

    let [(liar, cause)] = reading.contradicted_by.as_slice() else { panic!("{:?}", reading.contradicted_by) };
    assert!(liar == "a" && cause.contains("the proof of slot "), "{cause}");
    assert_eq!(found(reading.answer).payment, published());
    assert_eq!(found(reading.latest.unwrap().unwrap().answer).payment, published());
}

#[tokio::test]
async fn one_endpoint_alone_withholds_no_address() {
    let reading = read_beside_a_liar(ProofGradeDemand::Quorum(2), Lie::AtLatest, 2).await.unwrap();

    assert_eq!(reading.contradicted_by, []);
    assert_eq!(reading.latest, Some(Ok(latest_of(&reading))));
    assert_eq!(found(reading.answer).payment, published());

    let reading = read_beside_a_liar(ProofGradeDemand::Quorum(2), Lie::AtLatest, 1).await.unwrap();
    let latest = reading.latest.unwrap().unwrap();
    assert!(latest.answer.has_same_records(&reading.answer), "an objection to an address is none to the records");
    let AddressRecord::Failed(cause) = &found(latest.answer).payment.addresses[&CoinType::ETHER] else {
        panic!("what one endpoint says alone may hide what others say");
    };
    assert!(matches!(cause, ChainError::Disagree(said) if said[0].0 == "a"), "{cause}");
}

/// A gateway that answers for the records, and does something else where addresses are asked for.
struct Partial {
    chain: Arc<SandboxChain>,
    /// The answer to a request for an address; `None`: it never comes.
    address: Option<CcipReadResult>,
}

#[async_trait]
impl CcipReadGatewayClient for Partial {
    async fn request_first_response(&self, request: &CcipReadRequest, _: usize) -> CcipReadResult {
        if !request.data.windows(MULTICOIN.len()).any(|part| part == MULTICOIN) {
            let answer = self.chain.answer_ccip_read(request.sender, &request.data);
            return answer.map_err(|error| CcipReadGatewayError::new(error.to_string()));
        }
        match &self.address {
            Some(reply) => reply.clone(),
            None => std::future::pending().await,
        }
    }
}

#[tokio::test]
async fn a_gateway_that_fails_for_addresses_alone_keeps_the_records() {
    let chain = chain_of(&[seller("off.eth", offchain())]);
    let replies: [(Option<CcipReadResult>, &str); 4] = [
        (Some(Err(CcipReadGatewayError::with_http_status(404, "not found"))), "the gateway answered status 404"),
        (Some(Ok(vec![0; 1 << 20].into())), "exceed 524288 bytes in total"),
        (Some(Ok(vec![0; 64].into())), "reverted"),
        (None, "the lookup took more than 0.2 s"),
    ];
    for (address, words) in replies {
        for demand in GRADES {
            let gateway = Arc::new(Partial { chain: Arc::clone(&chain), address: address.clone() });
            let (_servers, endpoints) = endpoints_of(&[&chain, &chain, &chain]).await;
            let timeout = if address.is_none() { Duration::from_millis(400) } else { Duration::from_secs(8) };
            let config = ChainReaderConfig { demand, timeout, ..config(endpoints) };
            let reading = graded(config, &http(), gateway).read_name(&name("off.eth"), FIRST).await;
            let reading = reading.unwrap_or_else(|error| panic!("{words} {demand:?}: {error}"));

            let found = found(reading.answer);
            assert_eq!(found.records.text(TextRecordKey::Entry), Some(ENTRY), "{words} {demand:?}");
            let AddressRecord::Failed(cause) = &found.payment.addresses[&CoinType::ETHER] else {
                panic!("{words} {demand:?}: {:?}", found.payment)
            };
            assert!(matches!(cause, ChainError::Ccip(_)) && cause.to_string().contains(words), "{cause}");
        }
    }
}

#[tokio::test]
async fn a_resolver_that_does_not_know_coin_types_says_so() {
    // The resolver of an address that was never told of coin types answers that way for each of them.
    let kind = EnsResolverKind::Hostile { mode: HostileResolverMode::Empty, arg: "addr".to_owned() };
    let chain = chain_of(&[seller("old.eth", kind)]);
    let reading = read_through(ProofGradeDemand::SingleRpc, &chain, "old.eth", Gateway::refusing()).await.unwrap();
    let unknown = AddressRecord::Failed(ChainError::Resolver(ResolverContractError::UnknownRecords));
    let payment = found(reading.answer).payment;
    assert!(payment.addresses.values().all(|record| *record == unknown), "{payment:?}");
    assert_eq!(payment.endpoints, published().endpoints);
}
