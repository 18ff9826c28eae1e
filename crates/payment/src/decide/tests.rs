//! Tests of whole decisions: each failed check alone turns an allowance into an abort, and the published vectors give
//! their stated results.

mod changed;

use std::collections::{BTreeMap, BTreeSet};

use super::{PaymentDecisionQuery, PaymentKnowledge, PaymentOptionSelection, decide_payment};
use crate::PaymentDecision;
use crate::artifact::PublishedSigningKeys;
use crate::asset::{AssetId, AssetProperties};
use crate::decision::{DecisionOutcome, PaymentCheck};
use crate::limits::{AssetLimit, NetworkAllowlistSource, PaymentLimits};
use crate::network::Caip2Network;
use crate::payee::{Erc8004WalletProvenance, NetworkPayees, PayeeClaim, PayeeClaimSource};
use crate::request::{PaymentDecisionRequest, PaymentDemand};
use crate::route::AgentRoute;
use crate::terms::{
    ExactPrice, PaymentOption, PaymentTerms, SellerHttpReply, StatedEip712Domain, TransferMethod, X402Version,
};
use crate::testing::jws_offer;
use crate::tests::published;
use alloy_primitives::{Address, U256, address};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clresolve_core::payment::{CoinType, EndpointRecordKey};
use clresolve_core::reading::{ProofGrade, ProofStrength};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519SigningKey;
use clresolve_verdict::gate::{GatePolicy, GateVerbs};
use clresolve_verdict::sample;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::{AgentIdentity, AnchorBlock, ChainAnchor};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

const URL: &str = "https://api.sandbox.example/summarize/v1";
const USDC: Address = address!("036CbD53842c5426634e7929541eC2318f3dCF7e");
const PAYEE: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");
const THIEF: Address = address!("3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");

fn network(text: &str) -> Caip2Network {
    text.parse().expect("a CAIP-2 identifier")
}

/// The verdict on an agent that implements two verbs and lists one network.
fn agent(state: TrustState) -> Resolution {
    agent_at(state, "finalized")
}

fn agent_at(state: TrustState, tag: &str) -> Resolution {
    let mut verdict = sample::empty_resolution(state, Timestamp::UNIX_EPOCH, 0).verdict().as_ref().clone();
    verdict.reasons = match state {
        TrustState::Trusted => Vec::new(),
        TrustState::Untrusted => vec![Reason::new(ReasonCode::CidMismatch)],
        TrustState::Indeterminate => vec![Reason::new(ReasonCode::RpcUnreachable)],
    };
    verdict.id = format!("sha256:{state}");
    verdict.name.normalized = Some("summarizeagent.eth".to_owned());
    verdict.freshness.fresh_until = "1970-01-01T00:05:00Z".parse().unwrap();
    verdict.identity = Some(AgentIdentity {
        verbs: vec!["summarize".to_owned(), "classify".to_owned()],
        networks: vec!["eip155:84532".to_owned()],
        ..AgentIdentity::default()
    });
    verdict.anchor = Some(ChainAnchor {
        world: "test".to_owned(),
        chain: "eip155:1".to_owned(),
        block: AnchorBlock { number: 7, hash: String::new(), timestamp: String::new(), tag: tag.to_owned() },
        resolver: None,
        wildcard: None,
        offchain: false,
        proof: ProofStrength { grade: ProofGrade::Quorum, asked: 2, agreed: 2, own: false },
        records_digest: None,
    });
    sample::resolution_of_verdict(verdict, None)
}

fn price() -> ExactPrice {
    ExactPrice {
        network: network("eip155:84532"),
        chain_id: 84_532,
        amount: U256::from(10_000),
        asset: USDC,
        pay_to: PAYEE,
        max_timeout_seconds: 60,
        transfer: TransferMethod::Eip3009,
        domain: domain(Some("USDC"), Some("2")),
    }
}

fn domain(name: Option<&str>, version: Option<&str>) -> StatedEip712Domain {
    StatedEip712Domain { name: name.map(str::to_owned), version: version.map(str::to_owned) }
}

fn terms(prices: Vec<Result<ExactPrice, Box<Reason>>>) -> PaymentTerms {
    let entry =
        |(index, price)| PaymentOption { json: json!({ "index": index }), resource: Some(URL.to_owned()), price };
    let entries = prices.into_iter().enumerate().map(entry).collect();
    let extensions = Map::new();
    PaymentTerms {
        version: X402Version::V2,
        also_v1: false,
        moved: Default::default(),
        resource: None,
        entries,
        extensions,
        offers: Vec::new(),
    }
}

fn limits() -> PaymentLimits {
    let id = AssetId { network: network("eip155:84532"), address: USDC };
    let asset = AssetProperties::find_known(&id).expect("it is in the table");
    let limit = AssetLimit { asset, max_amount: Some(U256::from(50_000)) };
    PaymentLimits {
        set: true,
        networks: [id.network.clone()].into(),
        assets: [(id, limit)].into(),
        ..PaymentLimits::default()
    }
}

fn payees() -> BTreeMap<Caip2Network, NetworkPayees> {
    let record = PayeeClaim::Is(PAYEE, PayeeClaimSource::Record(CoinType::from_chain_id(84_532).expect("it has one")));
    [(network("eip155:84532"), NetworkPayees { record, ..NetworkPayees::default() })].into()
}

/// One test case. The default is allowed.
struct Case {
    state: TrustState,
    tag: &'static str,
    gate: GatePolicy,
    verb: &'static str,
    terms: Result<PaymentTerms, Reason>,
    url: Option<&'static str>,
    selected: Option<PaymentOptionSelection>,
    limits: PaymentLimits,
    route: Result<AgentRoute, Reason>,
    tools: Option<Result<AgentRoute, Reason>>,
    is_http_reply: bool,
    payees: BTreeMap<Caip2Network, NetworkPayees>,
    signed: Option<&'static str>,
    now: Timestamp,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            state: TrustState::Trusted,
            tag: "finalized",
            gate: GatePolicy::default(),
            verb: "summarize",
            terms: Ok(terms(vec![Ok(price())])),
            url: Some(URL),
            selected: None,
            limits: limits(),
            route: Ok(AgentRoute::from_configuration(URL).expect("an https URL")),
            tools: None,
            is_http_reply: false,
            payees: payees(),
            signed: None,
            now: Timestamp::UNIX_EPOCH,
        }
    }
}

impl Case {
    fn priced(change: impl FnOnce(&mut ExactPrice)) -> Self {
        let mut changed = price();
        change(&mut changed);
        Self { terms: Ok(terms(vec![Ok(changed)])), ..Self::default() }
    }

    fn limited(change: impl FnOnce(&mut PaymentLimits)) -> Self {
        let mut limits = limits();
        change(&mut limits);
        Self { limits, ..Self::default() }
    }

    fn claimed(record: PayeeClaim) -> Self {
        let payees = NetworkPayees { record, ..NetworkPayees::default() };
        Self { payees: [(network("eip155:84532"), payees)].into(), ..Self::default() }
    }

    /// The terms pay `address`, and the name publishes the same address.
    fn named_payee(address: Address) -> Self {
        let coin = CoinType::from_chain_id(84_532).expect("it has one");
        let payees = Self::claimed(PayeeClaim::Is(address, PayeeClaimSource::Record(coin))).payees;
        Self { payees, ..Self::priced(|price| price.pay_to = address) }
    }

    fn decide(&self) -> PaymentDecision {
        self.decide_on(&agent_at(self.state, self.tag))
    }

    fn decide_on(&self, resolution: &Resolution) -> PaymentDecision {
        let question = PaymentDecisionQuery {
            verb: self.verb,
            terms: self.terms.as_ref(),
            is_http_reply: self.is_http_reply,
            url: self.url,
            selected: self.selected.as_ref(),
            signed: self.signed,
        };
        let known = PaymentKnowledge {
            resolution,
            gate: &self.gate,
            limits: &self.limits,
            route: self.route.as_ref(),
            tools: self.tools.as_ref().map(Result::as_ref),
            payees: &self.payees,
            now: self.now,
        };
        decide_payment(&question, &known)
    }
}

#[test]
fn what_passes_every_check_is_allowed() {
    let decision = Case::default().decide();
    assert_eq!((decision.decision, decision.abort), (DecisionOutcome::Allow, false));
    assert_eq!(decision.reason, format!("Pay 0.01 USDC (eip155:84532) to {PAYEE}, proven by addr(name) at block 7."));
    assert_eq!((decision.codes.len(), decision.unchecked.len()), (0, 0));
    assert_eq!(decision.checked.len(), 8);
    assert_eq!(decision.entries[0].index, 0);
    assert!(!decision.entries[0].abort);
    // The terms expire first: the authorisation is valid for a minute, the verdict for five.
    assert_eq!(decision.valid_until, "1970-01-01T00:01:00Z".parse().ok());
    assert_eq!(serde_json::to_value(decision.payee).unwrap()["proven_by"], "addr");
}

/// A wallet on another chain changes independently of the verdict.
#[test]
fn a_decision_ends_with_the_reading_of_a_registration() {
    let until = "1970-01-01T00:00:30Z".parse().expect("a time");
    let read = Erc8004WalletProvenance { agent: U256::from(22), block: 5, until };
    let registration = PayeeClaim::Is(PAYEE, PayeeClaimSource::Registration(Box::new(read)));
    let payees = NetworkPayees { registration, ..NetworkPayees::default() };
    let decision = Case { payees: [(network("eip155:84532"), payees)].into(), ..Case::default() }.decide();
    assert_eq!((decision.decision, decision.valid_until), (DecisionOutcome::Allow, Some(until)));
    let said = "proven by agent 22 of the ERC-8004 registry on eip155:84532 at its block 5.";
    assert!(decision.reason.ends_with(said), "{}", decision.reason);
}

/// The decision expires with the verdict, the offer or the terms, whichever is first.
#[test]
fn a_decision_ends_with_the_offer_that_proves_its_payee() {
    let key = Ed25519SigningKey::generate().expect("a key");
    let offered = |valid_until: u64| {
        let payload = json!({
            "version": 1, "resourceUrl": URL, "scheme": "exact", "network": "eip155:84532", "amount": "10000",
            "asset": USDC.to_string(), "payTo": PAYEE.to_string(), "validUntil": valid_until,
        });
        let mut terms = terms(vec![Ok(price())]);
        terms.offers = vec![jws_offer(&json!({"alg": "EdDSA", "kid": "did:web:a.example#1"}), &payload, &key)];
        let signers =
            PublishedSigningKeys { ed25519: vec![key.public_key().clone()], ..PublishedSigningKeys::default() };
        let payees = NetworkPayees { signers, ..NetworkPayees::default() };
        Case { terms: Ok(terms), payees: [(network("eip155:84532"), payees)].into(), ..Case::default() }.decide()
    };
    let [soon, later] = [20, 200].map(offered);
    assert_eq!((soon.decision, soon.valid_until), (DecisionOutcome::Allow, Timestamp::from_second(20).ok()));
    assert_eq!(
        (later.decision, later.valid_until),
        (DecisionOutcome::Allow, Timestamp::from_second(60).ok()),
        "the terms"
    );
}

/// The decision if only an offer for `offered` proves the payee, and the terms are for `resource`.
fn offered(resource: &str, offered: &str, rest: Case) -> PaymentDecision {
    let key = Ed25519SigningKey::generate().expect("a key");
    let payload = json!({
        "version": 1, "resourceUrl": offered, "scheme": "exact", "network": "eip155:84532", "amount": "10000",
        "asset": USDC.to_string(), "payTo": PAYEE.to_string(), "validUntil": 0,
    });
    let mut terms = terms(vec![Ok(price())]);
    terms.entries[0].resource = Some(resource.to_owned());
    terms.offers = vec![jws_offer(&json!({"alg": "EdDSA", "kid": "did:web:a.example#1"}), &payload, &key)];
    let signers = PublishedSigningKeys { ed25519: vec![key.public_key().clone()], ..PublishedSigningKeys::default() };
    let payees = [(network("eip155:84532"), NetworkPayees { signers, ..NetworkPayees::default() })].into();
    Case { terms: Ok(terms), payees, ..rest }.decide()
}

/// Sellers sign the resource that their terms state. It may differ from the URL: a proxy terminated TLS, the client
/// added a query, or a tool has no host. Relaying an offer for a resource elsewhere proves nothing.
#[test]
fn an_offer_is_for_what_answered_or_for_the_resource_that_is_taken_for_it() {
    const TOOL: &str = "mcp://tool/summarize";
    const BEHIND_A_PROXY: &str = "http://api.sandbox.example/summarize/v1";
    const ELSEWHERE: &str = "https://evil.example/summarize/v1";
    let case = Case::default;
    let tools = || Case { tools: Some(Ok(tools())), ..case() };
    let asked = || Case { url: Some("https://api.sandbox.example/summarize/v1?q=1"), ..case() };
    let published = || AgentRoute::from_record(EndpointRecordKey::Web, URL, "", "").expect("an https URL");
    let without_tools = || Case { route: Ok(published()), ..case() };
    let cases: [(&str, &str, Case, &[&str]); 11] = [
        (URL, URL, case(), &[]),
        (BEHIND_A_PROXY, BEHIND_A_PROXY, case(), &["resource-differs"]),
        (BEHIND_A_PROXY, URL, case(), &["resource-differs"]),
        (URL, URL, asked(), &["resource-differs"]),
        (TOOL, TOOL, tools(), &["resource-differs"]),
        (TOOL, "mcp://tool/classify", tools(), &["offer-invalid", "resource-differs"]),
        (TOOL, TOOL, case(), &["resource-differs"]),
        (TOOL, TOOL, without_tools(), &["resource-mismatch", "offer-invalid"]),
        (URL, BEHIND_A_PROXY, case(), &["offer-invalid"]),
        (URL, ELSEWHERE, case(), &["offer-invalid"]),
        (ELSEWHERE, ELSEWHERE, case(), &["resource-mismatch", "offer-invalid"]),
    ];
    for (resource, offer, case, codes) in cases {
        let url = case.url;
        let decision = offered(resource, offer, case);
        assert_eq!(decision.codes, codes, "{resource}, an offer for {offer}, answered by {url:?}: {decision:#?}");
        assert_eq!(decision.abort, codes.iter().any(|code| *code != "resource-differs"), "{decision:#?}");
    }
}

/// The URL of the cases, published in the name's tools record.
fn tools() -> AgentRoute {
    AgentRoute::from_record(EndpointRecordKey::Mcp, URL, "", "").expect("an https URL")
}

#[test]
fn what_sells_a_tool_is_called_where_the_tools_of_the_name_are() {
    let runtime =
        || AgentRoute::from_record(EndpointRecordKey::Runtime, "https://runtime.sandbox.example", "summarize", "v1");
    let of = |resources: &[&str], change: fn(&mut Case)| {
        let mut terms = terms(vec![Ok(price()); resources.len()]);
        for (entry, resource) in terms.entries.iter_mut().zip(resources) {
            entry.resource = Some((*resource).to_owned());
        }
        let route = Ok(runtime().expect("an https URL"));
        let mut case = Case { terms: Ok(terms), route, tools: Some(Ok(tools())), ..Case::default() };
        change(&mut case);
        case.decide()
    };
    let codes = |resources: &[&str], change| of(resources, change).codes;
    let tool = &["mcp://tool/summarize"];
    let paid = of(tool, |_| {});
    assert_eq!((paid.decision, paid.codes), (DecisionOutcome::Allow, vec!["resource-differs".to_owned()]));
    assert_eq!(paid.route, Some(tools()));
    assert_eq!(codes(tool, |case| case.route = Err(Reason::new(ReasonCode::RecordPending))), ["resource-differs"]);
    assert_eq!(codes(tool, |case| case.tools = Some(Err(Reason::new(ReasonCode::RecordPending)))), ["record-pending"]);
    assert_eq!(
        codes(tool, |case| case.url = Some("https://evil.example/summarize/v1")),
        ["endpoint-mismatch", "resource-mismatch"]
    );
    // The records determine where tools are sold. Other resources are not sold there.
    assert_eq!(codes(&[URL], |_| {}), ["endpoint-mismatch"]);
    assert_eq!(codes(&[tool[0], URL], |_| {}), ["endpoint-mismatch", "resource-differs"]);
    assert_eq!(codes(tool, |case| case.tools = None), ["endpoint-mismatch", "resource-mismatch"]);
    // The configuration takes precedence over the records.
    for (url, said) in
        [(URL, &["resource-differs"][..]), ("https://a.example/", &["endpoint-mismatch", "resource-differs"])]
    {
        let mut terms = terms(vec![Ok(price())]);
        terms.entries[0].resource = Some(tool[0].to_owned());
        let route = Ok(AgentRoute::from_configuration(url).expect("an https URL"));
        let case = Case { terms: Ok(terms), route, tools: Some(Ok(tools())), ..Case::default() };
        assert_eq!(case.decide().codes, said, "{url}");
    }
}

/// The configured route and the tools record both specify where tools are called over MCP.
#[test]
fn reply_over_http_sells_no_tool() {
    let configured = || AgentRoute::from_configuration(URL).expect("an https URL");
    let published = || AgentRoute::from_record(EndpointRecordKey::Web, URL, "", "").expect("an https URL");
    for tool in ["mcp://tool/summarize", "x402://summarize"] {
        for route in [configured(), published(), tools()] {
            for tools in [None, Some(Ok(tools())), Some(Err(Reason::new(ReasonCode::RecordPending)))] {
                let mut terms = terms(vec![Ok(price())]);
                terms.entries[0].resource = Some(tool.to_owned());
                let case =
                    Case { terms: Ok(terms), route: Ok(route.clone()), tools, is_http_reply: true, ..Case::default() };
                let decision = case.decide();
                let codes = ["endpoint-mismatch", "resource-mismatch"].map(str::to_owned).to_vec();
                assert_eq!((decision.abort, decision.codes), (true, codes), "{tool} {route:?}");
            }
        }
    }
    let ordinary = Case { is_http_reply: true, ..Case::default() }.decide();
    assert!(!ordinary.abort, "{ordinary:#?}");
}

#[test]
fn configured_route_decides_for_tools_without_a_record() {
    for tools in [None, Some(Err(Reason::new(ReasonCode::RecordPending)))] {
        let mut terms = terms(vec![Ok(price())]);
        terms.entries[0].resource = Some("x402://summarize".to_owned());
        let route = Ok(AgentRoute::from_configuration(URL).expect("an https URL"));
        let decision = Case { terms: Ok(terms), route, tools, ..Case::default() }.decide();
        assert_eq!((decision.abort, decision.codes), (false, vec!["resource-differs".to_owned()]));
    }
}

#[test]
fn unreadable_terms_are_not_held_against_a_route() {
    for url in [URL, "https://tools.sandbox.example/mcp"] {
        let unread =
            Case { terms: Err(Reason::new(ReasonCode::PaymentTermsMalformed)), url: Some(url), ..Case::default() };
        let decision = unread.decide();
        assert_eq!((decision.abort, decision.codes), (true, vec!["payment-terms-malformed".to_owned()]));
        assert_eq!(decision.unchecked.contains(&PaymentCheck::Route), url != URL, "{url}");
        assert_eq!(decision.checked.contains(&PaymentCheck::Route), url == URL, "{url}");
    }
}

#[test]
fn index_that_means_two_entries_selects_none() {
    let mut terms = terms(vec![Ok(price()), Ok(price())]);
    terms.entries[1].json = json!({"index": 1});
    terms.moved = [0].into();
    let selected = |selected| Case { terms: Ok(terms.clone()), selected: Some(selected), ..Case::default() }.decide();
    assert_eq!(selected(PaymentOptionSelection::Index(0)).codes, ["payment-terms-ambiguous"]);
    assert!(selected(PaymentOptionSelection::Index(0)).abort);
    assert!(!selected(PaymentOptionSelection::Index(1)).abort);
    assert!(!selected(PaymentOptionSelection::Entry(json!({"index": 1}))).abort);
}

/// The terms contain no resource and come from another host.
fn elsewhere() -> Case {
    let mut anything = terms(vec![Ok(price())]);
    anything.entries[0].resource = None;
    Case { url: Some("https://evil.example/summarize/v1"), terms: Ok(anything), ..Case::default() }
}

/// Each failed check alone turns the allowance into an abort with its code.
#[test]
fn each_check_alone_aborts() {
    let case = Case::default;
    let deny = |case: Case, code: &str| (case, DecisionOutcome::Deny, code.to_owned());
    let undecided = |case: Case, code: &str| (case, DecisionOutcome::Undecided, code.to_owned());
    let reason = Reason::new;
    let cases = [
        deny(Case { state: TrustState::Untrusted, ..case() }, "cid-mismatch"),
        undecided(Case { state: TrustState::Indeterminate, ..case() }, "rpc-unreachable"),
        deny(Case { verb: "pay", ..case() }, "verb-not-implemented"),
        deny(Case { verb: "classify", ..case() }, "verb-without-entry"),
        deny(
            Case { gate: GatePolicy { min_proof: Some(ProofGrade::StateProof), ..GatePolicy::default() }, ..case() },
            "proof-too-weak",
        ),
        deny(elsewhere(), "endpoint-mismatch"),
        deny(Case::priced(|price| price.max_timeout_seconds = 0), "payment-timeout-excessive"),
        undecided(Case { tag: "21000000", ..case() }, "chain-behind"),
        undecided(Case { url: None, ..case() }, "invoke-no-route"),
        undecided(Case { route: Err(reason(ReasonCode::InvokeNoRoute)), ..case() }, "invoke-no-route"),
        deny(Case { terms: Err(reason(ReasonCode::PaymentTermsMalformed)), ..case() }, "payment-terms-malformed"),
        deny(Case { terms: Err(reason(ReasonCode::PaymentTermsAmbiguous)), ..case() }, "payment-terms-ambiguous"),
        deny(Case { selected: Some(PaymentOptionSelection::Index(1)), ..case() }, "payment-terms-ambiguous"),
        undecided(
            Case { terms: Ok(terms(vec![Err(Box::new(reason(ReasonCode::PaymentSchemeUnchecked)))])), ..case() },
            "payment-scheme-unchecked",
        ),
        undecided(Case::limited(|limits| limits.schemes.clear()), "payment-scheme-unchecked"),
        deny(Case::limited(|limits| limits.networks = [network("eip155:1")].into()), "payment-network-mismatch"),
        deny(Case::priced(|price| price.asset = THIEF), "payment-asset-unlisted"),
        deny(Case::priced(|price| price.domain = domain(Some("USD Coin"), Some("2"))), "payment-asset-unlisted"),
        deny(Case::priced(|price| price.domain = domain(Some("USDC"), Some("1"))), "payment-asset-unlisted"),
        deny(Case::priced(|price| price.domain = domain(Some("USDC"), None)), "payment-asset-unlisted"),
        deny(Case::priced(|price| price.domain = domain(None, Some("2"))), "payment-asset-unlisted"),
        deny(Case::priced(|price| price.domain = domain(None, None)), "payment-asset-unlisted"),
        deny(Case::priced(|price| price.amount = U256::from(50_001)), "payment-amount-exceeds"),
        deny(Case::priced(|price| price.max_timeout_seconds = 301), "payment-timeout-excessive"),
        undecided(
            Case::limited(|limits| limits.assets.values_mut().for_each(|limit| limit.max_amount = None)),
            "payment-limit-missing",
        ),
        undecided(Case { limits: PaymentLimits::default(), ..case() }, "payment-limit-missing"),
        deny(Case::priced(|price| price.pay_to = THIEF), "payee-mismatch"),
        deny(Case::named_payee(Address::ZERO), "payee-mismatch"),
        deny(Case::named_payee(USDC), "payee-mismatch"),
        undecided(Case { payees: BTreeMap::new(), ..case() }, "payee-unproven"),
        undecided(Case::claimed(PayeeClaim::Undecided(Box::new(reason(ReasonCode::RecordPending)))), "record-pending"),
    ];
    for (case, outcome, code) in cases {
        let decision = case.decide();
        assert_eq!((decision.decision, decision.abort), (outcome, true), "{code}: {decision:#?}");
        assert_eq!(decision.codes, std::slice::from_ref(&code), "{decision:#?}");
        assert!(decision.reason.starts_with(&code), "{}", decision.reason);
        assert_eq!(decision.valid_until, None);
        assert!(decision.entries.iter().all(|row| row.abort));
    }
}

/// Permit2 signs in its own domain. Wallets may still show the stated domain of the asset, so it must be correct.
#[test]
fn terms_by_permit2_need_not_state_the_domain_and_state_no_other() {
    let codes = |name, version| {
        let of_permit2 = |price: &mut ExactPrice| {
            price.transfer = TransferMethod::Permit2;
            price.domain = domain(name, version);
        };
        Case::priced(of_permit2).decide().codes
    };
    for (name, version) in [(None, None), (Some("USDC"), None), (None, Some("2")), (Some("USDC"), Some("2"))] {
        assert_eq!(codes(name, version), Vec::<String>::new(), "{name:?} {version:?}");
    }
    for (name, version) in [(Some("Evil Dollar"), None), (None, Some("1")), (Some("USDC"), Some("1"))] {
        assert_eq!(codes(name, version), ["payment-asset-unlisted"], "{name:?} {version:?}");
    }
}

#[test]
fn the_cards_networks_count_unless_the_operator_relies_on_the_limits() {
    let change = |source| {
        let mut other = price();
        other.network = network("eip155:8453");
        other.chain_id = 8453;
        other.asset = address!("833589fCD6eDb6E08f4c7C32D4f71b54bdA02913");
        other.domain = domain(Some("USD Coin"), Some("2"));
        let id = AssetId { network: other.network.clone(), address: other.asset };
        let asset = AssetProperties::find_known(&id).expect("it is in the table");
        let assets = [(id.clone(), AssetLimit { asset, max_amount: Some(U256::from(50_000)) })].into();
        let limits = PaymentLimits {
            set: true,
            networks: [id.network.clone()].into(),
            source,
            assets,
            ..PaymentLimits::default()
        };
        let payees = [(id.network, payees().into_values().next().expect("one"))].into();
        Case { terms: Ok(terms(vec![Ok(other)])), limits, payees, ..Case::default() }.decide()
    };
    assert_eq!(change(NetworkAllowlistSource::Card).codes, ["payment-network-mismatch"]);
    assert!(!change(NetworkAllowlistSource::Limits).abort);
}

#[test]
fn one_bad_entry_aborts_unless_another_is_selected() {
    let mut thief = price();
    thief.pay_to = THIEF;
    let both = Case { terms: Ok(terms(vec![Ok(price()), Ok(thief)])), ..Case::default() };
    let decision = both.decide();
    assert!(decision.abort && decision.decision == DecisionOutcome::Deny);
    let rows: Vec<_> = decision.entries.iter().map(|row| (row.index, row.abort, row.codes.len())).collect();
    assert_eq!(rows, [(0, false, 0), (1, true, 1)]);
    let selected = |selected| Case { selected: Some(selected), terms: both.terms.clone(), ..Case::default() }.decide();
    assert!(!selected(PaymentOptionSelection::Index(0)).abort);
    assert_eq!(selected(PaymentOptionSelection::Index(1)).codes, ["payee-mismatch"]);
    assert!(!selected(PaymentOptionSelection::Entry(json!({"index": 0}))).abort);
    assert_eq!(selected(PaymentOptionSelection::Entry(json!({"index": 2}))).codes, ["payment-terms-ambiguous"]);
}

/// No decision outlives the verdict on the agent.
#[test]
fn a_decision_ends_with_the_verdict() {
    let now = "1970-01-01T00:04:30Z".parse().expect("a time");
    let decision = Case { now, ..Case::default() }.decide();
    assert_eq!((decision.abort, decision.valid_until), (false, "1970-01-01T00:05:00Z".parse().ok()));
}

/// A signature for one of two equal entries does not determine which.
#[test]
fn a_selected_entry_that_stands_there_twice_is_ambiguous() {
    let mut twice = terms(vec![Ok(price()), Ok(price())]);
    twice.entries[1].json = twice.entries[0].json.clone();
    let selected = Some(PaymentOptionSelection::Entry(twice.entries[0].json.clone()));
    let decision = Case { terms: Ok(twice), selected, ..Case::default() }.decide();
    assert_eq!((decision.abort, decision.codes), (true, vec!["payment-terms-ambiguous".to_owned()]));
}

/// Each entry is paid separately, so each has its own expiry, even if other entries fail and the decision as a whole
/// aborts.
#[test]
fn each_entry_that_may_be_paid_ends_by_itself() {
    let lives = |seconds| Ok(ExactPrice { max_timeout_seconds: seconds, ..price() });
    let thiefs = Ok(ExactPrice { pay_to: THIEF, ..price() });
    let end = |seconds| Timestamp::from_second(seconds).expect("a time");
    let of = |prices| Case { terms: Ok(terms(prices)), ..Case::default() }.decide();

    let mixed = of(vec![lives(60), lives(30), thiefs]);
    assert_eq!((mixed.abort, mixed.valid_until), (true, None));
    assert_eq!(mixed.payable_options().collect::<Vec<_>>(), [(0, end(60)), (1, end(30))]);
    assert_eq!(mixed.entries[2].valid_until, None);

    let all = of(vec![lives(60), lives(30)]);
    assert_eq!((all.abort, all.valid_until), (false, Some(end(30))));
    assert_eq!(all.payable_options().collect::<Vec<_>>(), [(0, end(60)), (1, end(30))]);
    // The expiry of the decision is not repeated for an entry.
    assert_eq!(all.entries[1].valid_until, None);
}

#[test]
fn a_warning_is_reported_and_decides_nothing() {
    let mut near = terms(vec![Ok(price())]);
    near.entries[0].resource = Some(format!("{URL}?x=1"));
    let decision = Case { terms: Ok(near), ..Case::default() }.decide();
    assert_eq!((decision.abort, decision.codes), (false, vec!["resource-differs".to_owned()]));
    let mut far = terms(vec![Ok(price())]);
    far.entries[0].resource = Some("https://evil.example/".to_owned());
    assert_eq!(Case { terms: Ok(far), ..Case::default() }.decide().codes, ["resource-mismatch"]);
}

#[test]
fn what_was_not_asked_is_unchecked() {
    let decision = Case { url: None, ..Case::default() }.decide();
    assert_eq!(decision.unchecked, [PaymentCheck::Route, PaymentCheck::Resource]);
    let decision = Case { terms: Err(Reason::new(ReasonCode::PaymentTermsMalformed)), ..Case::default() }.decide();
    assert_eq!(decision.checked, [PaymentCheck::Identity, PaymentCheck::Route]);
}

/// An asset without a limit cannot be compared with one, and a signature over it cannot be verified.
#[test]
fn what_could_not_be_checked_is_not_said_to_be() {
    let unlisted = || Case::priced(|price| price.asset = THIEF);
    assert_eq!(unlisted().decide().unchecked, [PaymentCheck::Amount]);
    let unreadable = Case { signed: Some("e30="), ..unlisted() }.decide();
    assert_eq!(unreadable.unchecked, [PaymentCheck::Amount]);
    assert!(unreadable.codes.contains(&"payment-signature-mismatch".to_owned()), "{unreadable:#?}");
    let unlimited = Case { limits: PaymentLimits::default(), ..Case::default() }.decide();
    assert_eq!(unlimited.unchecked, [PaymentCheck::Network, PaymentCheck::Asset, PaymentCheck::Amount]);
}

#[test]
fn the_id_follows_everything_that_was_decided_about() {
    let id = |case: Case| case.decide().id;
    let same = id(Case::default());
    assert_eq!(id(Case::default()), same);
    let others = [
        Case { verb: "classify", ..Case::default() },
        Case { url: Some("https://evil.example/"), ..Case::default() },
        Case { selected: Some(PaymentOptionSelection::Index(3)), ..Case::default() },
        Case { state: TrustState::Untrusted, ..Case::default() },
        Case::limited(|limits| limits.max_timeout_seconds = 1),
        Case { gate: GatePolicy { deny: Vec::new(), ..GatePolicy::default() }, ..Case::default() },
        Case { gate: GatePolicy { min_proof: Some(ProofGrade::Quorum), ..GatePolicy::default() }, ..Case::default() },
        Case { gate: GatePolicy { verbs: GateVerbs::Implemented, ..GatePolicy::default() }, ..Case::default() },
        Case {
            route: Ok(AgentRoute::from_configuration("https://api.sandbox.example/").expect("a URL")),
            ..Case::default()
        },
        Case { route: Err(Reason::new(ReasonCode::InvokeNoRoute)), ..Case::default() },
        Case { payees: BTreeMap::new(), ..Case::default() },
        Case { signed: Some("e30="), ..Case::default() },
    ];
    let ids: BTreeSet<String> = others.into_iter().map(id).chain([same]).collect();
    assert_eq!(ids.len(), 13, "one for each");
}

/// What the scenario of a vector permits, and which payees its name publishes. Unstated facts are absent.
struct VectorWorld {
    agent: Resolution,
    verb: String,
    route: Result<AgentRoute, Reason>,
    limits: PaymentLimits,
    payees: BTreeMap<Caip2Network, NetworkPayees>,
    now: Timestamp,
}

impl VectorWorld {
    fn of(vector: &Value) -> Self {
        let world = &vector["world"];
        let entry = world["entry"].as_str().unwrap_or_default();
        let verb = entry.split('/').nth(3).unwrap_or("summarize").to_owned();
        let mut verdict = agent(TrustState::Trusted).verdict().as_ref().clone();
        verdict.name.normalized = world["agent"].as_str().map(str::to_owned);
        verdict.identity.as_mut().expect("an agent").verbs = vec![verb.clone()];
        let now = Timestamp::from_second(world["now"].as_i64().unwrap_or_default()).expect("a time");
        verdict.freshness.fresh_until = now + jiff::SignedDuration::from_mins(5);
        let route = world["route"].as_str().map(|url| AgentRoute::from_configuration(url).expect("a route"));
        Self {
            agent: sample::resolution_of_verdict(verdict, None),
            verb,
            route: route.ok_or_else(|| Reason::new(ReasonCode::InvokeNoRoute)),
            limits: Self::limits(vector),
            payees: Self::payees(vector),
            now,
        }
    }

    fn limits(vector: &Value) -> PaymentLimits {
        let policy = &vector["world"]["policy"];
        let networks = policy["networks"].as_array().into_iter().flatten();
        let max_amount = policy["max_amount"].as_str().map(|text| text.parse().expect("a number"));
        let mut limits = PaymentLimits {
            set: policy.is_object(),
            networks: networks.map(|id| network(id.as_str().expect("a text"))).collect(),
            source: NetworkAllowlistSource::Limits,
            ..PaymentLimits::default()
        };
        if let Some(schemes) = policy.get("schemes") {
            limits.schemes = serde_json::from_value(schemes.clone()).expect("schemes");
        }
        if let Some(seconds) = policy["max_timeout_seconds"].as_u64() {
            limits.max_timeout_seconds = seconds;
        }
        for (chain, contracts) in policy["assets"].as_object().into_iter().flatten() {
            for contract in contracts.as_array().into_iter().flatten() {
                let address = contract.as_str().and_then(|text| text.parse().ok()).expect("an address");
                let id = AssetId { network: network(chain), address };
                let asset = AssetProperties::find_known(&id).unwrap_or_else(|| Self::stated(vector, address));
                limits.assets.insert(id, AssetLimit { asset, max_amount });
            }
        }
        limits
    }

    /// An asset missing from the built-in table, configured as an honest seller states it.
    fn stated(vector: &Value, address: Address) -> AssetProperties {
        let terms = Self::request(vector, "").parse_terms().ok();
        let prices = terms.into_iter().flat_map(|terms| terms.entries).filter_map(|entry| entry.price.ok());
        let domain = prices.into_iter().find(|price| price.asset == address).map(|price| price.domain);
        let StatedEip712Domain { name, version } = domain.unwrap_or_default();
        let text = |stated: Option<String>| stated.unwrap_or_else(|| "of its own".to_owned()).into();
        AssetProperties { name: text(name), version: text(version), decimals: 6, symbol: "".into() }
    }

    /// The name's claims on the networks of the terms: its address there, and all of its addresses, which sign offers.
    fn payees(vector: &Value) -> BTreeMap<Caip2Network, NetworkPayees> {
        let stated = vector["world"]["addresses_of_the_name"].as_object().into_iter().flatten();
        let address = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).expect("an address");
        let published: BTreeMap<Caip2Network, Address> =
            stated.map(|(chain, value)| (network(chain), address(value))).collect();
        let signers = PublishedSigningKeys {
            addresses: published.values().copied().collect(),
            ..PublishedSigningKeys::default()
        };
        let of_network = |network: Caip2Network| {
            let coin = network.chain_id().and_then(CoinType::from_chain_id);
            let record = match (published.get(&network), coin) {
                (Some(address), Some(coin)) => PayeeClaim::Is(*address, PayeeClaimSource::Record(coin)),
                _ => PayeeClaim::None,
            };
            (network, NetworkPayees { record, signers: signers.clone(), ..NetworkPayees::default() })
        };
        let terms = Self::request(vector, "").parse_terms().ok();
        let prices = terms.into_iter().flat_map(|terms| terms.entries).filter_map(|entry| entry.price.ok());
        prices.map(|price| of_network(price.network)).collect()
    }

    fn request(vector: &Value, verb: &str) -> PaymentDecisionRequest {
        let request = json!({
            "name": vector["world"]["agent"],
            "verb": verb,
            "response": vector["response"],
            "selected": vector["selected_index"],
        });
        PaymentDecisionRequest::from_json(request.to_string().as_bytes()).expect("a request")
    }

    fn decide(&self, vector: &Value) -> PaymentDecision {
        let request = Self::request(vector, &self.verb);
        let terms = request.parse_terms();
        let question = PaymentDecisionQuery {
            verb: &self.verb,
            terms: terms.as_ref().map_err(|reason| &**reason),
            is_http_reply: matches!(request.demand, PaymentDemand::Reply(_)),
            url: request.url.as_deref(),
            selected: request.selected.as_ref(),
            signed: None,
        };
        let known = PaymentKnowledge {
            resolution: &self.agent,
            gate: &GatePolicy::default(),
            limits: &self.limits,
            route: self.route.as_ref(),
            tools: None,
            payees: &self.payees,
            now: self.now,
        };
        decide_payment(&question, &known)
    }
}

#[track_caller]
fn assert_stated_result(name: &str, vector: &Value) -> PaymentDecision {
    let decision = VectorWorld::of(vector).decide(vector);
    let honest = vector["honest"].as_bool().expect("it says");
    assert_eq!(!decision.abort, honest, "{name}: {} {decision:#?}", vector["why"]);
    assert!(honest || !decision.codes.is_empty(), "{name}");
    decision
}

#[test]
fn x402_vectors_of_terms_are_allowed_only_where_they_are_honest() {
    let Some(folder) = published("vectors/payment-required") else { return };
    let mut count = 0;
    for file in std::fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a file").path();
        let vector: Value = serde_json::from_slice(&std::fs::read(&path).expect("readable")).expect("JSON");
        let name = path.display().to_string();
        let decision = assert_stated_result(&name, &vector);
        println!("{name}: {} {:?}", decision.decision, decision.codes);
        count += 1;
    }
    assert!(count > 0, "no vector was found");
}

/// A vector in the published form whose agent, verb and network differ from most. The terms are in the body (version 1)
/// or in the header.
fn vector(honest: bool, terms: &Value) -> Value {
    let url = "https://api.other.example/translate/v1";
    let mut terms = terms.clone();
    let response = if terms["x402Version"] == 1 {
        terms["accepts"][0]["resource"] = url.into();
        json!({"status": 402, "url": url, "headers": {}, "body": terms.to_string()})
    } else {
        terms["resource"] = json!({"url": url});
        json!({"status": 402, "url": url, "headers": {"payment-required": STANDARD.encode(terms.to_string())}})
    };
    let policy = json!({
        "max_amount": "50000", "networks": ["eip155:8453"], "schemes": ["exact"], "max_timeout_seconds": 300,
        "assets": {"eip155:8453": [THIEF, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"]},
    });
    json!({"honest": honest, "why": "", "response": response, "selected_index": 0, "world": {
        "request_url": url, "agent": "translateagent.eth", "entry": "x402://translateagent.eth/translate/v1",
        "addresses_of_the_name": {"eip155:8453": PAYEE}, "route": url, "policy": policy, "now": 1_767_225_600,
    }})
}

/// Further vectors in the published form need no code, regardless of their asset, agent or verb.
#[test]
fn vectors_of_every_form_get_their_result() {
    let usdc = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
    let entry = |asset: &str, extra: Value| {
        json!({"scheme": "exact", "network": "eip155:8453", "amount": "10000", "asset": asset, "payTo": PAYEE,
            "maxTimeoutSeconds": 60, "extra": extra})
    };
    let of_v2 = |entry: Value| json!({"x402Version": 2, "accepts": [entry]});
    let of_v1 = |extra: Value| {
        json!({"x402Version": 1, "accepts": [{"scheme": "exact", "network": "base", "maxAmountRequired": "10000",
            "asset": usdc, "payTo": PAYEE, "maxTimeoutSeconds": 60, "extra": extra}]})
    };
    let other = THIEF.to_string();
    let named = json!({"name": "Other Dollar", "version": "7"});
    let permit2 = json!({"assetTransferMethod": "permit2"});
    let domain = json!({"name": "USD Coin", "version": "2"});
    let cases = [
        ("an asset that the table does not have", true, of_v2(entry(&other, named.clone()))),
        ("an asset that nobody listed", false, of_v2(entry(&USDC.to_string(), named))),
        ("Permit2 without a domain", true, of_v2(entry(usdc, permit2.clone()))),
        ("Permit2 of an asset that the table does not have", true, of_v2(entry(&other, permit2))),
        ("no domain, and not Permit2", false, of_v2(entry(&other, json!({})))),
        ("version 1", true, of_v1(domain)),
        ("version 1, another domain", false, of_v1(json!({"name": "USD Coin", "version": "1"}))),
    ];
    for (name, honest, terms) in cases {
        assert_stated_result(name, &vector(honest, &terms));
    }
    let mut nowhere = vector(false, &of_v2(entry(usdc, json!({"name": "USD Coin", "version": "2"}))));
    for (member, code) in [("route", "invoke-no-route"), ("addresses_of_the_name", "payee-unproven")] {
        let kept = nowhere["world"].as_object_mut().expect("a world").remove(member).expect("it is there");
        assert_eq!(assert_stated_result(member, &nowhere).codes, [code]);
        nowhere["world"][member] = kept;
    }
}

/// Any address of the name signs its offers, regardless of the chain: in a vector as in the resolver.
#[test]
fn vectors_of_offers_get_their_result() {
    // The offer in `offer-eip712-by-payee.json` of the published vectors.
    let offer = json!({
        "format": "eip712",
        "acceptIndex": 0,
        "payload": {
            "version": 1,
            "resourceUrl": URL,
            "scheme": "exact",
            "network": "eip155:84532",
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "payTo": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "amount": "10000",
            "validUntil": 1_795_296_421,
        },
        "signature": "0xc087865ee83dbac5fb3ad0ffa750dadcc820f3bb19073f97b584b2458175974d2d44b6e8fd7e49e9baf2a90067b5c\
                      4142eca21c4cdcb237ac6338912ff5d29801b",
    });
    let entry = json!({"scheme": "exact", "network": "eip155:84532", "amount": "10000", "asset": USDC, "payTo": PAYEE,
        "maxTimeoutSeconds": 60, "extra": {"name": "USDC", "version": "2"}});
    let terms = json!({"x402Version": 2, "resource": {"url": URL}, "accepts": [entry],
        "extensions": {"offer-receipt": {"info": {"offers": [offer]}}}});
    for (address, honest, codes) in [(PAYEE, true, &[][..]), (THIEF, false, &["offer-signer-unproven"])] {
        let mut vector = vector(honest, &terms);
        vector["response"]["url"] = URL.into();
        vector["response"]["headers"]["payment-required"] = STANDARD.encode(terms.to_string()).into();
        vector["world"]["addresses_of_the_name"] = json!({"eip155:1": address});
        vector["world"]["route"] = URL.into();
        vector["world"]["policy"]["networks"] = json!(["eip155:84532"]);
        vector["world"]["policy"]["assets"] = json!({"eip155:84532": [USDC]});
        assert_eq!(assert_stated_result(&address.to_string(), &vector).codes, codes);
    }
}

/// x402 v1 clients sign EIP-3009 regardless of the terms.
#[test]
fn version_1_knows_no_permit2() {
    let terms = |method: &str| {
        let extra = json!({"name": "USD Coin", "version": "2", "assetTransferMethod": method});
        json!({"x402Version": 1, "accepts": [{"scheme": "exact", "network": "base", "maxAmountRequired": "10000",
            "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "payTo": PAYEE, "maxTimeoutSeconds": 60,
            "extra": extra}]})
    };
    assert_stated_result("eip3009", &vector(true, &terms("eip3009")));
    let decision = assert_stated_result("permit2", &vector(false, &terms("permit2")));
    assert_eq!(
        (decision.decision, decision.codes),
        (DecisionOutcome::Undecided, vec!["payment-scheme-unchecked".to_owned()])
    );
}

#[test]
fn a_reply_that_is_far_too_long_gets_a_decision() {
    let reply = SellerHttpReply { status: 402, headers: Vec::new(), body: vec![b'['; 100_000] };
    let request = PaymentDecisionRequest::from_seller_reply("a.eth", "summarize", URL, reply);
    assert!(matches!(request.demand, PaymentDemand::Reply(_)));
    assert_eq!(request.parse_terms().unwrap_err().code, ReasonCode::PaymentTermsMalformed);
}
