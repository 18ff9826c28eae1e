//! Each rule about who may name an identity, tested with a seller.

use std::sync::Arc;

use alloy_primitives::{Address, U256, address};
use clresolve_core::payment::{AddressRecord, CoinType, EndpointRecord, EndpointRecordKey, PaymentRecords};
use clresolve_core::reading::{ProofGrade, ProofStrength};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::records::TextRecord;
use clresolve_core::state::TrustState;
use clresolve_verdict::evidence::links::{RegisteredAgentId, RegistrationFile};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::sample;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::{AgentIdentity, AnchorBlock, ChainAnchor};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::asset::{AssetId, AssetProperties};
use crate::limits::{AssetLimit, CallerLimits};
use crate::payee::{self, PayeeClaim, PayeeClaimSource};
use crate::route::AgentRoute;

const URL: &str = "https://shop.example/weather/today";
const USDC: Address = address!("036CbD53842c5426634e7929541eC2318f3dCF7e");
const PAYEE: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");
const THIEF: Address = address!("3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
const REGISTRATION: &str = "eip155:84532:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22";

fn network() -> Caip2Network {
    "eip155:84532".parse().expect("a CAIP-2 identifier")
}

fn limits() -> PaymentLimits {
    let id = AssetId { network: network(), address: USDC };
    let limit = AssetLimit {
        asset: AssetProperties::find_known(&id).expect("it is in the table"),
        max_amount: Some(U256::from(50_000)),
    };
    PaymentLimits { set: true, networks: [network()].into(), assets: [(id, limit)].into(), ..PaymentLimits::default() }
}

/// The address and the endpoints that a name publishes.
type PublishedByName = (Option<Address>, Vec<(EndpointRecordKey, &'static str)>);

/// A seller. The default is honest: a name that the caller gives has the payee and points to the origin.
#[derive(Clone, Debug)]
struct Seller {
    /// `extra` of the entry.
    extra: Value,
    name: Option<&'static str>,
    named_by: SellerIdentitySource,
    verb: Option<&'static str>,
    asked: Option<&'static str>,
    url: Option<&'static str>,
    /// What the name publishes: address and endpoints. `None`: there is no such name.
    published: Option<PublishedByName>,
    offchain: bool,
    /// The networks of the name's trusted card for this URL, if it has one.
    card: Option<&'static str>,
    /// Whether a registration that the name vouches for has the payee as its wallet.
    registered: bool,
    reasons: Vec<ReasonCode>,
    grade: ProofStrength,
    pinned: Option<SellerIdentity>,
    policy: PayeeEvidencePolicy,
    remembered: OriginMemoryEntry,
    registration: Option<RegistrationReading>,
    file: OriginRegistrationFileReading,
    /// The terms, if they differ from [`Seller::terms`].
    terms: Option<String>,
}

impl Default for Seller {
    fn default() -> Self {
        Self {
            extra: json!({}),
            name: Some("shop.eth"),
            named_by: SellerIdentitySource::Caller,
            verb: None,
            asked: None,
            url: Some(URL),
            published: Some((Some(PAYEE), vec![(EndpointRecordKey::X402, "https://shop.example/weather")])),
            offchain: false,
            card: None,
            registered: false,
            reasons: vec![ReasonCode::TxtMissing],
            grade: ProofStrength { grade: ProofGrade::Quorum, asked: 2, agreed: 2, own: false },
            pinned: None,
            policy: PayeeEvidencePolicy::default(),
            remembered: OriginMemoryEntry::default(),
            registration: None,
            file: OriginRegistrationFileReading::Absent,
            terms: None,
        }
    }
}

/// The registration file of [`REGISTRATION`], with this endpoint.
fn listing(endpoint: &str) -> Vec<u8> {
    json!({"services": [{"name": "web", "endpoint": endpoint}]}).to_string().into_bytes()
}

/// A registration file of the origin that names [`REGISTRATION`].
fn naming() -> Vec<u8> {
    let (registry, agent) = REGISTRATION.rsplit_once(':').expect("it has a number");
    json!({"registrations": [{"agentRegistry": registry, "agentId": agent}]}).to_string().into_bytes()
}

fn parsed(file: &[u8]) -> Result<RegistrationFile, Box<Reason>> {
    RegistrationFile::parse(file).map_err(|_| Box::new(Reason::new(ReasonCode::PayeeUnproven)))
}

impl Seller {
    /// The seller with a second entry, which differs in these members.
    fn beside(self, members: &Value) -> Self {
        let mut terms: Value = serde_json::from_str(&self.terms()).expect("JSON");
        let entries = terms["accepts"].as_array_mut().expect("entries");
        let mut second = entries[0].clone();
        second.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
        entries.push(second);
        Self { terms: Some(terms.to_string()), ..self }
    }

    /// The seller with its entries in the opposite order.
    fn reversed(self) -> Self {
        let mut terms: Value = serde_json::from_str(&self.terms()).expect("JSON");
        terms["accepts"].as_array_mut().expect("entries").reverse();
        Self { terms: Some(terms.to_string()), ..self }
    }

    /// The same seller, whose name only the terms give.
    fn claiming() -> Self {
        Self { name: None, extra: json!({"ens": "shop.eth"}), ..Self::default() }
    }

    /// A seller with a registration instead of a name, which only the terms give.
    fn registered(wallet: Option<Address>, lists: &str, owner: Option<Address>) -> Self {
        let entry: RegisteredAgentId = REGISTRATION.parse().expect("a registration");
        let reading = RegistrationReading::Read {
            entry,
            wallet,
            owner,
            file: parsed(&listing(lists)),
            block: 5,
            grade: ProofGrade::Quorum,
            until: Timestamp::from_second(30).expect("a time"),
        };
        Self {
            name: None,
            extra: json!({"erc8004": {"agentRegistry": "eip155:84532:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432", "agentId": 22}}),
            published: None,
            registration: Some(reading),
            file: OriginRegistrationFileReading::Read(parsed(&naming()).expect("strict JSON")),
            ..Self::default()
        }
    }

    fn pinned(mut self, identity: &str) -> Self {
        self.pinned = Some(identity.parse().expect("an identity"));
        self
    }

    fn remembering(mut self, identity: &str) -> Self {
        let identity = identity.parse().expect("an identity");
        self.remembered.identity = Some(ProvenSellerIdentity { identity, at: Timestamp::UNIX_EPOCH, block: None });
        self
    }

    fn resolution(&self) -> Resolution {
        let state = if self.card.is_some() { TrustState::Trusted } else { TrustState::Untrusted };
        let mut verdict = sample::empty_resolution(state, Timestamp::UNIX_EPOCH, 0).verdict().as_ref().clone();
        verdict.identity = self.card.map(|network| AgentIdentity {
            verbs: vec!["weather".to_owned()],
            networks: vec![network.to_owned()],
            ..AgentIdentity::default()
        });
        verdict.reasons = self.reasons.iter().map(|code| Reason::new(*code)).collect();
        verdict.name.normalized = Some("shop.eth".to_owned());
        verdict.freshness.fresh_until = Timestamp::from_second(40).expect("a time");
        verdict.anchor = Some(ChainAnchor {
            world: "test".to_owned(),
            chain: "eip155:1".to_owned(),
            block: AnchorBlock {
                number: 7,
                hash: String::new(),
                timestamp: String::new(),
                tag: "finalized".to_owned(),
            },
            resolver: None,
            wildcard: None,
            offchain: self.offchain,
            proof: self.grade,
            records_digest: None,
        });
        let Some((address, endpoints)) = &self.published else { return sample::resolution_of_verdict(verdict, None) };
        let mut records = PaymentRecords { offchain: self.offchain, ..PaymentRecords::default() };
        let coin = CoinType::from_chain_id(84_532).expect("it has one");
        for coin in [coin, CoinType::EVM_DEFAULT] {
            let record = address.filter(|_| coin != CoinType::EVM_DEFAULT);
            records.addresses.insert(coin, record.map_or(AddressRecord::Absent, AddressRecord::Address));
        }
        for key in EndpointRecordKey::ALL {
            let text = endpoints.iter().find(|(of, _)| *of == key).map(|(_, text)| (*text).to_owned());
            records.endpoints.insert(key, EndpointRecord::Read(text.map_or(TextRecord::Absent, TextRecord::Text)));
        }
        sample::resolution_with_payments(
            verdict,
            sample::published_payments(records.clone(), records).expect("there are records"),
        )
    }

    fn terms(&self) -> String {
        if let Some(terms) = &self.terms {
            return terms.clone();
        }
        let terms = json!({
            "x402Version": 2,
            "resource": {"url": self.url.unwrap_or(URL)},
            "accepts": [{
                "scheme": "exact", "network": network(), "amount": "10000", "asset": USDC, "payTo": PAYEE,
                "maxTimeoutSeconds": 60, "extra": merged(&self.extra),
            }],
        });
        terms.to_string()
    }

    fn checked(&self) -> SellerCheckConclusion {
        self.checked_with(Ok(self.remembered.clone()))
    }

    fn checked_with(&self, remembered: Result<OriginMemoryEntry, Box<Reason>>) -> SellerCheckConclusion {
        let request = SellerCheckRequest {
            name: self.name.map(str::to_owned),
            named_by: self.named_by,
            verb: self.verb.map(str::to_owned),
            asked: self.asked.map(str::to_owned),
            demand: PaymentDemand::PaymentRequired(self.terms()),
            url: self.url.map(str::to_owned),
            selected: None,
            limits: CallerLimits::default(),
            header: None,
        };
        let rules = SellerCheckPolicy {
            pinned: self.pinned.clone(),
            policy: self.policy.clone(),
            limits: limits(),
            gate: GatePolicy::default(),
        };
        let mut checking = OngoingSellerCheck::new(Arc::new(request), rules, remembered);
        while let Some(wanted) = checking.next_lookup() {
            match wanted {
                NextSellerLookup::OriginFile(url) => {
                    assert_eq!(url, "https://shop.example/.well-known/agent-registration.json");
                    checking.supply_origin_file(self.file.clone());
                }
                NextSellerLookup::Name(_) => checking.supply_name(self.reading()),
                NextSellerLookup::Registration(_) => {
                    checking.supply_registration(self.registration.clone().unwrap_or(RegistrationReading::NoIdentity));
                }
            }
        }
        checking.finish(Timestamp::UNIX_EPOCH)
    }

    fn reading(&self) -> NameVerdictAndPayees {
        let resolution = self.resolution();
        let record =
            resolution.payment_records().map_or(PayeeClaim::None, |known| PayeeClaim::from_records(known, &network()));
        let until = Timestamp::from_second(30).expect("a time");
        let read = payee::Erc8004WalletProvenance { agent: U256::from(22), block: 5, until };
        let registration = match self.registered {
            true => PayeeClaim::Is(PAYEE, PayeeClaimSource::Registration(Box::new(read))),
            false => PayeeClaim::None,
        };
        let payees = [(network(), NetworkPayees { record, registration, ..NetworkPayees::default() })].into();
        let route = match self.card {
            Some(_) => Ok(AgentRoute::from_configuration(URL).expect("an https URL")),
            None => Err(Box::new(Reason::new(ReasonCode::InvokeNoRoute))),
        };
        NameVerdictAndPayees { resolution, route, payees }
    }

    fn answer(&self) -> SellerCheckDocument {
        self.checked().answer
    }

    /// Whether the price of the answer is the one that the terms demand, within the limits.
    fn demands(&self, answer: &SellerCheckDocument) -> bool {
        let (Some(price), Ok(terms)) = (&answer.price, serde_json::from_str::<Value>(&self.terms())) else {
            return false;
        };
        let demanded = &terms["accepts"][0];
        let stated = json!({"network": price.network, "asset": price.asset, "amount": price.amount.to_string()});
        let is_stated = ["network", "amount"].iter().all(|member| stated[member] == demanded[member]);
        is_stated && price.asset == USDC && price.amount <= U256::from(50_000)
    }

    /// The seller with one changed byte in one artifact: the terms, what the name publishes, the registration and its
    /// file, or the origin's file.
    fn changed(&self) -> Vec<Self> {
        let mut sellers = Vec::new();
        let mut change = |artifact: &[u8], apply: &dyn Fn(&mut Self, &[u8])| {
            for (at, bits) in (0..artifact.len()).flat_map(|at| [0x01, 0x20, 0x80].map(|bits| (at, bits))) {
                let (mut seller, mut changed) = (self.clone(), artifact.to_owned());
                changed[at] ^= bits;
                apply(&mut seller, &changed);
                sellers.push(seller);
            }
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        change(self.terms().as_bytes(), &|seller, changed| seller.terms = Some(text(changed)));
        if let Some((address, endpoints)) = &self.published {
            change(address.as_ref().map(|address| address.as_slice()).unwrap_or_default(), &|seller, changed| {
                seller.published.as_mut().expect("it is published").0 = Some(Address::from_slice(changed));
            });
            for (at, (_, endpoint)) in endpoints.iter().enumerate() {
                change(endpoint.as_bytes(), &|seller, changed| {
                    seller.published.as_mut().expect("it is published").1[at].1 = text(changed).leak();
                });
            }
        }
        if let Some(RegistrationReading::Read { wallet, file: Ok(listed), .. }) = &self.registration {
            change(wallet.as_ref().map(|address| address.as_slice()).unwrap_or_default(), &|seller, changed| {
                let Some(RegistrationReading::Read { wallet, .. }) = &mut seller.registration else { return };
                *wallet = Some(Address::from_slice(changed));
            });
            change(&listing(listed.service_urls().next().expect("an endpoint")), &|seller, changed| {
                let Some(RegistrationReading::Read { file, .. }) = &mut seller.registration else { return };
                *file = parsed(changed);
            });
            change(&naming(), &|seller, changed| {
                seller.file = parsed(changed)
                    .map_or_else(OriginRegistrationFileReading::Unread, OriginRegistrationFileReading::Read);
            });
        }
        sellers
    }
}

fn merged(extra: &Value) -> Value {
    let mut merged = json!({"name": "USDC", "version": "2"});
    let members = extra.as_object().expect("an object");
    merged.as_object_mut().expect("an object").extend(members.clone());
    merged
}

#[track_caller]
fn is(seller: &Seller, outcome: DecisionOutcome, codes: &[&str]) -> SellerCheckDocument {
    let answer = seller.answer();
    assert_eq!(
        (answer.decision, &*answer.codes),
        (outcome, &*codes.iter().map(|code| (*code).to_owned()).collect::<Vec<_>>()),
        "{answer:#?}"
    );
    assert_eq!(answer.abort, outcome != DecisionOutcome::Allow, "{answer:#?}");
    assert_eq!(answer.evidence.iter().map(|row| row.kind).collect::<Vec<_>>(), PayeeEvidenceKind::ALL);
    answer
}

fn first_contact() -> PayeeEvidencePolicy {
    PayeeEvidencePolicy { first_contact: FirstContactPolicy::Allow, ..PayeeEvidencePolicy::default() }
}

fn state_of(answer: &SellerCheckDocument, kind: PayeeEvidenceKind) -> PayeeEvidenceState {
    answer.evidence_row(kind).expect("there is a row for each kind").state
}

#[test]
fn a_name_that_the_caller_gives_counts_once_its_address_is_the_payee() {
    let answer = is(&Seller::default(), DecisionOutcome::Allow, &[]);
    assert_eq!(answer.reason, format!("Pay 0.01 USDC (eip155:84532) to {PAYEE}, proven by addr(name) at block 7."));
    assert_eq!(answer.valid_until, Timestamp::from_second(40).ok(), "the verdict ends first");
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Name), PayeeEvidenceState::Proven);
    for endpoints in [vec![], vec![(EndpointRecordKey::Url, "https://other.example")]] {
        let seller = Seller { published: Some((Some(PAYEE), endpoints)), ..Seller::default() };
        is(&seller, DecisionOutcome::Allow, &[]);
        is(&Seller { name: None, ..seller.clone() }.pinned("shop.eth"), DecisionOutcome::Allow, &[]);
        is(&Seller { name: None, ..seller }.remembering("shop.eth"), DecisionOutcome::Allow, &[]);
    }
}

#[test]
fn a_name_that_the_seller_gives_allows_nothing_by_itself() {
    let claiming = Seller::claiming();
    let answer = is(&claiming, DecisionOutcome::Undecided, &["identity-claimed"]);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Name), PayeeEvidenceState::Proven);
    for policy in [PayeeEvidencePolicy::default(), first_contact()] {
        let by_model = Seller { named_by: SellerIdentitySource::Seller, policy, ..Seller::default() };
        is(&by_model, DecisionOutcome::Undecided, &["identity-claimed"]);
    }
    let file = RegistrationFile::parse(br#"{"services": [{"name": "ENS", "endpoint": "shop.eth"}]}"#).expect("JSON");
    let by_host = Seller { name: None, file: OriginRegistrationFileReading::Read(file), ..Seller::default() };
    is(&by_host, DecisionOutcome::Undecided, &["identity-claimed"]);
}

#[test]
fn first_contact_may_be_allowed_if_both_directions_are_proven() {
    let seller = Seller { policy: first_contact(), ..Seller::claiming() };
    is(&seller, DecisionOutcome::Allow, &[]);
    let (_, next) = seller.checked().remember.expect("it is remembered");
    let expected = ProvenSellerIdentity {
        identity: "shop.eth".parse().expect("a name"),
        at: Timestamp::UNIX_EPOCH,
        block: Some(7),
    };
    assert_eq!(next.identity.as_ref(), Some(&expected));
    let two = seller.clone().beside(&json!({"amount": "990000"}));
    let outcome = two.checked();
    assert_eq!(outcome.answer.entries.iter().map(|row| row.abort).collect::<Vec<_>>(), [false, true]);
    assert_eq!(outcome.remember.expect("it is remembered").1.identity, Some(expected), "one entry may be paid");
    let alone = Seller { published: Some((Some(PAYEE), vec![])), ..seller };
    let answer = is(&alone, DecisionOutcome::Undecided, &["identity-claimed"]);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Name), PayeeEvidenceState::Claimed);
}

/// Further evidence may prove a claimed identity, which can then be accepted.
#[test]
fn claimed_identity_leaves_the_payee_open() {
    let is_open = |seller: &Seller| seller.answer().entries[0].is_but_for_the_payee;
    let silent = Seller { published: Some((None, vec![])), ..Seller::claiming() };
    assert!(is_open(&silent) && is_open(&Seller::claiming()));
    assert!(!is_open(&silent.remembering("other.eth")));
}

#[test]
fn what_was_proven_at_first_contact_waits_to_be_accepted() {
    let (origin, next) = Seller::claiming().checked().remember.expect("it is remembered");
    assert_eq!(origin.as_str(), "https://shop.example");
    assert_eq!(next.identity, None);
    assert_eq!(next.proposed.map(|seen| seen.identity.to_string()).as_deref(), Some("shop.eth"));
    let by_model = Seller { named_by: SellerIdentitySource::Seller, ..Seller::default() };
    let (_, next) = by_model.checked().remember.expect("the payee is remembered");
    assert_eq!((next.identity, next.proposed), (None, None), "the origin did not show it");
    let known = Seller::claiming().remembering("shop.eth");
    let answer = is(&known, DecisionOutcome::Allow, &[]);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::History), PayeeEvidenceState::Proven);
}

#[test]
fn another_identity_than_the_remembered_one_is_a_contradiction() {
    let moved = Seller::claiming().remembering("other.eth");
    is(&moved, DecisionOutcome::Deny, &["identity-changed", "identity-claimed"]);
    let (_, next) = moved.checked().remember.expect("the new one waits to be accepted");
    assert_eq!(next.proposed.map(|seen| seen.identity.to_string()).as_deref(), Some("shop.eth"));
    is(&Seller::default().remembering("other.eth"), DecisionOutcome::Deny, &["identity-changed"]);
    is(&Seller::claiming().remembering("other.eth").pinned("shop.eth"), DecisionOutcome::Allow, &[]);
    let other = is(&Seller::default().pinned("other.eth"), DecisionOutcome::Deny, &["identity-changed"]);
    assert_eq!(other.name.as_deref(), Some("shop.eth"), "the name of the request");
}

#[test]
fn a_payee_that_changed_is_shown_where_nobody_is_known() {
    let seen = |address| RememberedPayee { address, network: network(), at: Timestamp::UNIX_EPOCH, block: None };
    let unknown = |address| Seller {
        name: None,
        published: None,
        remembered: OriginMemoryEntry { payee: Some(seen(address)), ..OriginMemoryEntry::default() },
        ..Seller::default()
    };
    let claiming = Seller { remembered: unknown(THIEF).remembered, ..Seller::claiming() };
    is(&claiming, DecisionOutcome::Undecided, &["identity-claimed", "payee-changed"]);
    is(
        &Seller { policy: first_contact(), ..claiming },
        DecisionOutcome::Undecided,
        &["identity-claimed", "payee-changed"],
    );
    is(&unknown(PAYEE), DecisionOutcome::Undecided, &["payee-unproven"]);
    is(&unknown(THIEF), DecisionOutcome::Undecided, &["payee-unproven", "payee-changed"]);
    let (_, next) = unknown(PAYEE).checked().remember.expect("the memory was read");
    assert_eq!(next, OriginMemoryEntry::default(), "nothing changed");
    let rotated = Seller { remembered: unknown(THIEF).remembered, ..Seller::default() };
    is(&rotated, DecisionOutcome::Allow, &[]);
}

#[test]
fn an_address_that_is_not_the_payee_contradicts() {
    let thief = |seller: Seller| Seller { published: seller.published.map(|(_, back)| (Some(THIEF), back)), ..seller };
    is(&thief(Seller::default()), DecisionOutcome::Deny, &["payee-mismatch"]);
    let answer = is(&thief(Seller::claiming()), DecisionOutcome::Deny, &["payee-mismatch", "identity-claimed"]);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Name), PayeeEvidenceState::Contradicted);
    let silent = Seller { published: Some((None, vec![])), ..Seller::default() };
    is(&silent, DecisionOutcome::Undecided, &["payee-unproven"]);
}

#[test]
fn origins_are_compared_whole_and_paths_by_segments() {
    for (record, is_here) in [
        ("https://shop.example", true),
        ("https://SHOP.example:443/weather/", true),
        ("https://shop.example/weather/today", true),
        ("https://shop.example/weath", false),
        ("https://www.shop.example", false),
        ("http://shop.example", false),
        ("https://shop.example:8443", false),
        ("https://shop.example.thief.example", false),
        ("https://user@shop.example", false),
        ("shop.example", false),
    ] {
        let seller =
            Seller { published: Some((Some(PAYEE), vec![(EndpointRecordKey::Web, record)])), ..Seller::claiming() };
        let expected: &[&str] = if is_here { &["identity-claimed"] } else { &["origin-mismatch", "identity-claimed"] };
        assert_eq!(seller.answer().codes, expected, "{record}");
    }
    for asked in ["https://www.shop.example/", "http://shop.example/", "https://shop.example:444/"] {
        is(&Seller { asked: Some(asked), ..Seller::default() }, DecisionOutcome::Deny, &["origin-mismatch"]);
    }
    is(&Seller { asked: Some("https://shop.example/other"), ..Seller::default() }, DecisionOutcome::Allow, &[]);
    for url in [
        "http://shop.example/",
        "https://u:p@shop.example/",
        "https://shop.example./",
        "https://shop.example\\@thief.example/",
        "https://shop.example/weather/%2e%2e/other",
        "https://shop.example/weather/../other",
        "https://shop.exam\tple/",
    ] {
        let answer = Seller { url: Some(url), ..Seller::default() }.answer();
        assert!(answer.abort && answer.has_reason(ReasonCode::OriginMismatch), "{answer:#?}");
    }
    assert!(Seller { url: None, ..Seller::default() }.answer().abort);
}

#[test]
fn the_word_of_a_gateway_counts_only_if_the_operator_says_so() {
    let seller = Seller { offchain: true, ..Seller::default() };
    is(&seller, DecisionOutcome::Undecided, &["payee-unproven"]);
    let policy = PayeeEvidencePolicy { offchain: true, ..PayeeEvidencePolicy::default() };
    is(&Seller { policy, ..seller.clone() }, DecisionOutcome::Allow, &[]);
    // Nor do a key or a registration that a gateway names.
    let told = Seller { registered: true, published: Some((None, vec![])), ..seller };
    is(&told, DecisionOutcome::Undecided, &["payee-unproven"]);
    is(&Seller { offchain: false, ..told }, DecisionOutcome::Allow, &[]);
}

/// Whoever controls the terms can make a name that points to this origin and to any registration.
#[test]
fn registration_of_a_sellers_name_allows_no_first_contact() {
    let mut told = Seller { registered: true, policy: first_contact(), ..Seller::claiming() };
    told.published.as_mut().expect("the name publishes").0 = None;
    let answer = is(&told, DecisionOutcome::Undecided, &["identity-claimed"]);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Erc8004), PayeeEvidenceState::Claimed);
}

#[test]
fn a_released_name_and_one_strangers_word_prove_nobody() {
    let released = Seller { reasons: vec![ReasonCode::TxtMissing, ReasonCode::NameReleased], ..Seller::default() };
    is(&released, DecisionOutcome::Deny, &["name-released"]);
    for unknown in [ReasonCode::ChainBehind, ReasonCode::RecordPending] {
        let seller = Seller { reasons: vec![ReasonCode::TxtMissing, unknown], ..Seller::default() };
        is(&seller, DecisionOutcome::Undecided, &[unknown.slug()]);
    }
    let grade = ProofStrength { grade: ProofGrade::SingleRpc, asked: 1, agreed: 1, own: false };
    is(&Seller { grade, ..Seller::default() }, DecisionOutcome::Deny, &["single-rpc"]);
}

#[test]
fn only_accepted_evidence_allows() {
    let policy = PayeeEvidencePolicy {
        accept: [PayeeEvidenceKind::Card, PayeeEvidenceKind::Offer].into(),
        ..PayeeEvidencePolicy::default()
    };
    is(&Seller { policy, ..Seller::default() }, DecisionOutcome::Undecided, &["payee-unproven"]);
    let invalid = Seller { name: Some("not a name"), ..Seller::default() };
    assert!(invalid.answer().has_reason(ReasonCode::NameInvalid) && invalid.answer().abort);
}

#[test]
fn a_card_proves_the_payee_on_the_networks_that_it_lists() {
    let accept_card =
        PayeeEvidencePolicy { accept: [PayeeEvidenceKind::Card].into(), ..PayeeEvidencePolicy::default() };
    let with_card = |network| Seller { card: Some(network), reasons: vec![], ..Seller::default() };
    let here = Seller { policy: accept_card.clone(), ..with_card("eip155:84532") };
    let answer = is(&here, DecisionOutcome::Allow, &[]);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Card), PayeeEvidenceState::Proven);
    let elsewhere = with_card("eip155:1");
    let answer = is(&elsewhere, DecisionOutcome::Allow, &[]);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Card), PayeeEvidenceState::Undecided, "the name proves the payee");
    is(&Seller { policy: accept_card, ..elsewhere }, DecisionOutcome::Undecided, &["payee-unproven"]);
    let denied = Seller { reasons: vec![ReasonCode::StatusWithdrawn], ..with_card("eip155:84532") };
    let answer = is(&denied, DecisionOutcome::Deny, &["status-withdrawn"]);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Card), PayeeEvidenceState::Contradicted);
}

#[test]
fn registration_has_the_outcomes_of_the_draft() {
    use Erc8004Outcome as Is;
    let outcome =
        |seller: &Seller| seller.answer().evidence_row(PayeeEvidenceKind::Erc8004).and_then(|row| row.outcome);
    let here = "https://shop.example";
    let honest = Seller::registered(Some(PAYEE), here, None);
    is(&honest, DecisionOutcome::Undecided, &["identity-claimed"]);
    assert_eq!(outcome(&honest), Some(Is::VerifiedWallet));
    is(&honest.clone().pinned(REGISTRATION), DecisionOutcome::Allow, &[]);
    let allowed = Seller { policy: first_contact(), ..honest };
    is(&allowed, DecisionOutcome::Allow, &[]);
    is(
        &Seller { file: OriginRegistrationFileReading::Absent, ..allowed },
        DecisionOutcome::Undecided,
        &["identity-claimed"],
    );

    let elsewhere = Seller::registered(Some(PAYEE), "https://other.example", None);
    is(&elsewhere, DecisionOutcome::Deny, &["origin-mismatch", "identity-claimed"]);
    assert_eq!(outcome(&elsewhere), Some(Is::EndpointUnlisted));
    is(&elsewhere.pinned(REGISTRATION), DecisionOutcome::Allow, &[]);

    let other = Seller::registered(Some(THIEF), here, None).pinned(REGISTRATION);
    is(&other, DecisionOutcome::Deny, &["payee-mismatch"]);
    assert_eq!(outcome(&other), Some(Is::Mismatch));
    let owner = Seller::registered(Some(THIEF), here, Some(PAYEE)).pinned(REGISTRATION);
    is(&owner, DecisionOutcome::Undecided, &["payee-unproven"]);
    assert_eq!(outcome(&owner), Some(Is::OwnerOnly));
    let none = Seller::registered(None, here, None).pinned(REGISTRATION);
    is(&none, DecisionOutcome::Undecided, &["payee-unproven"]);
    assert_eq!(outcome(&none), Some(Is::NoAgentWallet));
    let nobody = Seller { registration: Some(RegistrationReading::NoIdentity), ..none.clone() };
    assert_eq!(outcome(&nobody), Some(Is::NoIdentity));
    let unread = RegistrationReading::NotRead(Box::new(Reason::new(ReasonCode::PayeeUnproven)));
    let unread = Seller { registration: Some(unread), ..none };
    is(&unread, DecisionOutcome::Undecided, &["payee-unproven"]);
    assert_eq!(outcome(&unread), Some(Is::NotRead));
}

#[test]
fn order_of_entries_does_not_affect_the_payee() {
    let seller = Seller::registered(Some(PAYEE), "https://shop.example", Some(THIEF)).pinned(REGISTRATION);
    let to_owner = seller.clone().beside(&json!({"payTo": THIEF}));
    let codes = |seller: &Seller| seller.answer().entries.into_iter().map(|row| row.codes).collect::<Vec<_>>();
    assert_eq!(codes(&to_owner), [vec![], vec!["payee-unproven"]]);
    assert_eq!(codes(&to_owner.clone().reversed()), [vec!["payee-unproven"], vec![]]);
    let to_another = seller.beside(&json!({"payTo": Address::repeat_byte(7)}));
    assert_eq!(codes(&to_another), [vec![], vec!["payee-mismatch"]]);
    let unpaid = Seller::registered(Some(Address::repeat_byte(7)), "https://shop.example", Some(PAYEE));
    let unpaid = unpaid.pinned(REGISTRATION).beside(&json!({"payTo": THIEF}));
    for seller in [unpaid.clone(), unpaid.reversed()] {
        let row =
            seller.answer().evidence_row(PayeeEvidenceKind::Erc8004).cloned().expect("there is a row for each kind");
        assert_eq!(row.outcome, Some(Erc8004Outcome::Mismatch));
    }
}

#[test]
fn registration_counts_on_its_own_chain_only() {
    let mut seller = Seller::registered(Some(PAYEE), "https://shop.example", None);
    let elsewhere: RegisteredAgentId = REGISTRATION.replace("84532", "8453").parse().expect("a registration");
    let Some(RegistrationReading::Read { entry, .. }) = &mut seller.registration else { panic!("it is read") };
    *entry = elsewhere.clone();
    is(&seller.pinned(&elsewhere.to_string()), DecisionOutcome::Undecided, &["payee-unproven"]);
}

#[test]
fn memory_that_cannot_be_read_may_bind_the_origin_to_another_identity() {
    let unread = Err(Box::new(Reason::new(ReasonCode::MemoryUnavailable)));
    let answer = Seller::default().checked_with(unread).answer;
    assert_eq!((answer.decision, &*answer.codes), (DecisionOutcome::Undecided, &["memory-unavailable".to_owned()][..]));
    assert_eq!(state_of(&answer, PayeeEvidenceKind::History), PayeeEvidenceState::Undecided);
}

/// The gate denies this verb of the agent, although the address of its name proves the payee.
#[test]
fn contradicted_row_denies_whatever_the_others_prove() {
    let denied = Seller { reasons: vec![], verb: Some("classify"), ..Seller::default() };
    let answer = Seller { card: Some("eip155:84532"), ..denied }.answer();
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Name), PayeeEvidenceState::Proven);
    assert_eq!(state_of(&answer, PayeeEvidenceKind::Card), PayeeEvidenceState::Contradicted);
    assert_eq!(answer.decision, DecisionOutcome::Deny, "{answer:#?}");
}

#[test]
fn changed_byte_never_allows_another_payment() {
    let first_contact = first_contact();
    let thief = |seller: Seller| Seller { published: seller.published.map(|(_, back)| (Some(THIEF), back)), ..seller };
    let pointing = |record| Seller {
        published: Some((Some(PAYEE), vec![(EndpointRecordKey::X402, record)])),
        ..Seller::claiming()
    };
    let registered = |wallet, lists| Seller::registered(Some(wallet), lists, None);
    let (here, elsewhere) = ("https://shop.example", "https://thief.example");
    let sellers = [
        Seller::default(),
        Seller { policy: first_contact.clone(), ..Seller::claiming() },
        Seller::claiming().remembering("shop.eth"),
        registered(PAYEE, here).pinned(REGISTRATION),
        Seller { policy: first_contact.clone(), ..registered(PAYEE, here) },
        Seller::claiming(),
        thief(Seller::default()),
        Seller { policy: first_contact.clone(), ..pointing(elsewhere) },
        Seller { policy: first_contact.clone(), ..pointing("https://shop.example/we") },
        Seller { policy: first_contact.clone(), ..registered(PAYEE, elsewhere) },
        Seller { policy: first_contact, ..registered(THIEF, here) },
        Seller::registered(Some(THIEF), here, Some(PAYEE)).pinned(REGISTRATION),
        Seller { offchain: true, ..Seller::default() },
        Seller { reasons: vec![ReasonCode::NameReleased], ..Seller::default() },
    ];
    for (number, seller) in sellers.iter().enumerate() {
        let may_be_paid = !seller.answer().abort;
        assert_eq!(may_be_paid, number < 5, "{number}: {:#?}", seller.answer());
        for changed in seller.changed() {
            let answer = changed.answer();
            let is_same = may_be_paid && answer.payee.as_ref().is_some_and(|payee| payee.address == PAYEE);
            assert!(answer.abort || (is_same && changed.demands(&answer)), "{number}: {changed:#?}: {answer:#?}");
        }
    }
}
