//! Each rule about who may name an identity, tested with a seller.

use std::sync::Arc;

use alloy_primitives::{Address, U256, address};
use clresolve_core::payment::{AddressRecord, CoinType, EndpointRecord, EndpointRecordKey, PaymentRecords};
use clresolve_core::reading::{Grade, Proof};
use clresolve_core::reason::{Code, Reason};
use clresolve_core::records::Record;
use clresolve_core::state::State;
use clresolve_verdict::evidence::links::{Registration, RegistrationFile};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::sample;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::{Anchor, AnchorBlock, Identity};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::asset::{AssetId, AssetProperties};
use crate::limits::{AssetLimit, CallerLimits};
use crate::payee::{self, Claim, ClaimSource};
use crate::route::Route;

const URL: &str = "https://shop.example/weather/today";
const USDC: Address = address!("036CbD53842c5426634e7929541eC2318f3dCF7e");
const PAYEE: Address = address!("70997970C51812dc3A010C7d01b50e0d17dc79C8");
const THIEF: Address = address!("3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
const REGISTRATION: &str = "eip155:84532:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22";

fn network() -> Network {
    "eip155:84532".parse().expect("a CAIP-2 identifier")
}

fn limits() -> Limits {
    let id = AssetId { network: network(), address: USDC };
    let limit = AssetLimit {
        asset: AssetProperties::known(&id).expect("it is in the table"),
        max_amount: Some(U256::from(50_000)),
    };
    Limits { set: true, networks: [network()].into(), assets: [(id, limit)].into(), ..Limits::default() }
}

/// The address and the endpoints that a name publishes.
type PublishedByName = (Option<Address>, Vec<(EndpointRecordKey, &'static str)>);

/// A seller. The default is honest: a name that the caller gives has the payee and points to the origin.
#[derive(Clone, Debug)]
struct Seller {
    /// `extra` of the entry.
    extra: Value,
    name: Option<&'static str>,
    named_by: NamedBy,
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
    reasons: Vec<Code>,
    grade: Proof,
    pinned: Option<SellerIdentity>,
    policy: CheckPolicy,
    remembered: Remembered,
    registration: Option<RegistrationReading>,
    file: OriginFile,
    /// The terms, if they differ from [`Seller::terms`].
    terms: Option<String>,
}

impl Default for Seller {
    fn default() -> Self {
        Self {
            extra: json!({}),
            name: Some("shop.eth"),
            named_by: NamedBy::Caller,
            verb: None,
            asked: None,
            url: Some(URL),
            published: Some((Some(PAYEE), vec![(EndpointRecordKey::X402, "https://shop.example/weather")])),
            offchain: false,
            card: None,
            registered: false,
            reasons: vec![Code::TxtMissing],
            grade: Proof { grade: Grade::Quorum, asked: 2, agreed: 2, own: false },
            pinned: None,
            policy: CheckPolicy::default(),
            remembered: Remembered::default(),
            registration: None,
            file: OriginFile::Absent,
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
    RegistrationFile::parse(file).map_err(|_| Box::new(Reason::new(Code::PayeeUnproven)))
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
        let entry: Registration = REGISTRATION.parse().expect("a registration");
        let reading = RegistrationReading::Read {
            entry,
            wallet,
            owner,
            file: parsed(&listing(lists)),
            block: 5,
            grade: Grade::Quorum,
            until: Timestamp::from_second(30).expect("a time"),
        };
        Self {
            name: None,
            extra: json!({"erc8004": {"agentRegistry": "eip155:84532:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432", "agentId": 22}}),
            published: None,
            registration: Some(reading),
            file: OriginFile::Read(parsed(&naming()).expect("strict JSON")),
            ..Self::default()
        }
    }

    fn pinned(mut self, identity: &str) -> Self {
        self.pinned = Some(identity.parse().expect("an identity"));
        self
    }

    fn remembering(mut self, identity: &str) -> Self {
        let identity = identity.parse().expect("an identity");
        self.remembered.identity = Some(SeenIdentity { identity, at: Timestamp::UNIX_EPOCH, block: None });
        self
    }

    fn resolution(&self) -> Resolution {
        let state = if self.card.is_some() { State::Trusted } else { State::Untrusted };
        let mut verdict = sample::empty(state, Timestamp::UNIX_EPOCH, 0).verdict().as_ref().clone();
        verdict.identity = self.card.map(|network| Identity {
            verbs: vec!["weather".to_owned()],
            networks: vec![network.to_owned()],
            ..Identity::default()
        });
        verdict.reasons = self.reasons.iter().map(|code| Reason::new(*code)).collect();
        verdict.name.normalized = Some("shop.eth".to_owned());
        verdict.freshness.fresh_until = Timestamp::from_second(40).expect("a time");
        verdict.anchor = Some(Anchor {
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
        let Some((address, endpoints)) = &self.published else { return sample::live(verdict, None) };
        let mut records = PaymentRecords { offchain: self.offchain, ..PaymentRecords::default() };
        let coin = CoinType::of_chain(84_532).expect("it has one");
        for coin in [coin, CoinType::EVM_DEFAULT] {
            let record = address.filter(|_| coin != CoinType::EVM_DEFAULT);
            records.addresses.insert(coin, record.map_or(AddressRecord::Absent, AddressRecord::Address));
        }
        for key in EndpointRecordKey::ALL {
            let text = endpoints.iter().find(|(of, _)| *of == key).map(|(_, text)| (*text).to_owned());
            records.endpoints.insert(key, EndpointRecord::Read(text.map_or(Record::Absent, Record::Text)));
        }
        sample::paid(verdict, sample::published(records.clone(), records).expect("there are records"))
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

    fn checked(&self) -> CheckOutcome {
        self.checked_with(Ok(self.remembered.clone()))
    }

    fn checked_with(&self, remembered: Result<Remembered, Box<Reason>>) -> CheckOutcome {
        let request = CheckRequest {
            name: self.name.map(str::to_owned),
            named_by: self.named_by,
            verb: self.verb.map(str::to_owned),
            asked: self.asked.map(str::to_owned),
            demand: Demand::PaymentRequired(self.terms()),
            url: self.url.map(str::to_owned),
            selected: None,
            limits: CallerLimits::default(),
            header: None,
        };
        let rules = CheckRules {
            pinned: self.pinned.clone(),
            policy: self.policy.clone(),
            limits: limits(),
            gate: GatePolicy::default(),
        };
        let mut checking = Checking::new(Arc::new(request), rules, remembered);
        while let Some(wanted) = checking.wanted() {
            match wanted {
                Wanted::OriginFile(url) => {
                    assert_eq!(url, "https://shop.example/.well-known/agent-registration.json");
                    checking.supply_file(self.file.clone());
                }
                Wanted::Name(_) => checking.supply_name(self.reading()),
                Wanted::Registration(_) => {
                    checking.supply_registration(self.registration.clone().unwrap_or(RegistrationReading::NoIdentity));
                }
            }
        }
        checking.finish(Timestamp::UNIX_EPOCH)
    }

    fn reading(&self) -> JudgedName {
        let resolution = self.resolution();
        let record = resolution.payment().map_or(Claim::None, |known| Claim::of_records(known, &network()));
        let until = Timestamp::from_second(30).expect("a time");
        let read = payee::RegistrationSource { agent: U256::from(22), block: 5, until };
        let registration = match self.registered {
            true => Claim::Is(PAYEE, ClaimSource::Registration(Box::new(read))),
            false => Claim::None,
        };
        let payees = [(network(), Payees { record, registration, ..Payees::default() })].into();
        let route = match self.card {
            Some(_) => Ok(Route::configured(URL).expect("an https URL")),
            None => Err(Box::new(Reason::new(Code::InvokeNoRoute))),
        };
        JudgedName { resolution, route, payees }
    }

    fn answer(&self) -> CheckAnswer {
        self.checked().answer
    }

    /// Whether the price of the answer is the one that the terms demand, within the limits.
    fn demands(&self, answer: &CheckAnswer) -> bool {
        let (Some(price), Ok(terms)) = (&answer.price, serde_json::from_str::<Value>(&self.terms())) else {
            return false;
        };
        let demanded = &terms["accepts"][0];
        let stated = json!({"network": price.network, "asset": price.asset, "amount": price.amount});
        let is_stated = ["network", "amount"].iter().all(|member| stated[member] == demanded[member]);
        is_stated && price.asset == USDC && price.amount.parse().is_ok_and(|amount: u64| amount <= 50_000)
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
            change(&listing(listed.urls().next().expect("an endpoint")), &|seller, changed| {
                let Some(RegistrationReading::Read { file, .. }) = &mut seller.registration else { return };
                *file = parsed(changed);
            });
            change(&naming(), &|seller, changed| {
                seller.file = parsed(changed).map_or_else(OriginFile::Unread, OriginFile::Read);
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
fn is(seller: &Seller, outcome: Outcome, codes: &[&str]) -> CheckAnswer {
    let answer = seller.answer();
    assert_eq!(
        (answer.decision, &*answer.codes),
        (outcome, &*codes.iter().map(|code| (*code).to_owned()).collect::<Vec<_>>()),
        "{answer:#?}"
    );
    assert_eq!(answer.abort, outcome != Outcome::Allow, "{answer:#?}");
    assert_eq!(answer.evidence.iter().map(|row| row.kind).collect::<Vec<_>>(), EvidenceKind::ALL);
    answer
}

fn first_contact() -> CheckPolicy {
    CheckPolicy { first_contact: FirstContact::Allow, ..CheckPolicy::default() }
}

fn state_of(answer: &CheckAnswer, kind: EvidenceKind) -> EvidenceState {
    answer.evidence(kind).expect("there is a row for each kind").state
}

#[test]
fn a_name_that_the_caller_gives_counts_once_its_address_is_the_payee() {
    let answer = is(&Seller::default(), Outcome::Allow, &[]);
    assert_eq!(answer.reason, format!("Pay 0.01 USDC (eip155:84532) to {PAYEE}, proven by addr(name) at block 7."));
    assert_eq!(answer.valid_until, Timestamp::from_second(40).ok(), "the verdict ends first");
    assert_eq!(state_of(&answer, EvidenceKind::Name), EvidenceState::Proven);
    for endpoints in [vec![], vec![(EndpointRecordKey::Url, "https://other.example")]] {
        let seller = Seller { published: Some((Some(PAYEE), endpoints)), ..Seller::default() };
        is(&seller, Outcome::Allow, &[]);
        is(&Seller { name: None, ..seller.clone() }.pinned("shop.eth"), Outcome::Allow, &[]);
        is(&Seller { name: None, ..seller }.remembering("shop.eth"), Outcome::Allow, &[]);
    }
}

#[test]
fn a_name_that_the_seller_gives_allows_nothing_by_itself() {
    let claiming = Seller::claiming();
    let answer = is(&claiming, Outcome::Undecided, &["identity-claimed"]);
    assert_eq!(state_of(&answer, EvidenceKind::Name), EvidenceState::Proven);
    for policy in [CheckPolicy::default(), first_contact()] {
        let by_model = Seller { named_by: NamedBy::Seller, policy, ..Seller::default() };
        is(&by_model, Outcome::Undecided, &["identity-claimed"]);
    }
    let file = RegistrationFile::parse(br#"{"services": [{"name": "ENS", "endpoint": "shop.eth"}]}"#).expect("JSON");
    let by_host = Seller { name: None, file: OriginFile::Read(file), ..Seller::default() };
    is(&by_host, Outcome::Undecided, &["identity-claimed"]);
}

#[test]
fn first_contact_may_be_allowed_if_both_directions_are_proven() {
    let seller = Seller { policy: first_contact(), ..Seller::claiming() };
    is(&seller, Outcome::Allow, &[]);
    let (_, next) = seller.checked().remember.expect("it is remembered");
    let expected =
        SeenIdentity { identity: "shop.eth".parse().expect("a name"), at: Timestamp::UNIX_EPOCH, block: Some(7) };
    assert_eq!(next.identity.as_ref(), Some(&expected));
    let two = seller.clone().beside(&json!({"amount": "990000"}));
    let outcome = two.checked();
    assert_eq!(outcome.answer.entries.iter().map(|row| row.abort).collect::<Vec<_>>(), [false, true]);
    assert_eq!(outcome.remember.expect("it is remembered").1.identity, Some(expected), "one entry may be paid");
    let alone = Seller { published: Some((Some(PAYEE), vec![])), ..seller };
    let answer = is(&alone, Outcome::Undecided, &["identity-claimed"]);
    assert_eq!(state_of(&answer, EvidenceKind::Name), EvidenceState::Claimed);
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
    let by_model = Seller { named_by: NamedBy::Seller, ..Seller::default() };
    let (_, next) = by_model.checked().remember.expect("the payee is remembered");
    assert_eq!((next.identity, next.proposed), (None, None), "the origin did not show it");
    let known = Seller::claiming().remembering("shop.eth");
    let answer = is(&known, Outcome::Allow, &[]);
    assert_eq!(state_of(&answer, EvidenceKind::History), EvidenceState::Proven);
}

#[test]
fn another_identity_than_the_remembered_one_is_a_contradiction() {
    let moved = Seller::claiming().remembering("other.eth");
    is(&moved, Outcome::Deny, &["identity-changed", "identity-claimed"]);
    let (_, next) = moved.checked().remember.expect("the new one waits to be accepted");
    assert_eq!(next.proposed.map(|seen| seen.identity.to_string()).as_deref(), Some("shop.eth"));
    is(&Seller::default().remembering("other.eth"), Outcome::Deny, &["identity-changed"]);
    is(&Seller::claiming().remembering("other.eth").pinned("shop.eth"), Outcome::Allow, &[]);
    let other = is(&Seller::default().pinned("other.eth"), Outcome::Deny, &["identity-changed"]);
    assert_eq!(other.name.as_deref(), Some("shop.eth"), "the name of the request");
}

#[test]
fn a_payee_that_changed_is_shown_where_nobody_is_known() {
    let seen = |address| SeenPayee { address, network: network(), at: Timestamp::UNIX_EPOCH, block: None };
    let unknown = |address| Seller {
        name: None,
        published: None,
        remembered: Remembered { payee: Some(seen(address)), ..Remembered::default() },
        ..Seller::default()
    };
    let claiming = Seller { remembered: unknown(THIEF).remembered, ..Seller::claiming() };
    is(&claiming, Outcome::Undecided, &["identity-claimed", "payee-changed"]);
    is(&Seller { policy: first_contact(), ..claiming }, Outcome::Undecided, &["identity-claimed", "payee-changed"]);
    is(&unknown(PAYEE), Outcome::Undecided, &["payee-unproven"]);
    is(&unknown(THIEF), Outcome::Undecided, &["payee-unproven", "payee-changed"]);
    let (_, next) = unknown(PAYEE).checked().remember.expect("the memory was read");
    assert_eq!(next, Remembered::default(), "nothing changed");
    let rotated = Seller { remembered: unknown(THIEF).remembered, ..Seller::default() };
    is(&rotated, Outcome::Allow, &[]);
}

#[test]
fn an_address_that_is_not_the_payee_contradicts() {
    let thief = |seller: Seller| Seller { published: seller.published.map(|(_, back)| (Some(THIEF), back)), ..seller };
    is(&thief(Seller::default()), Outcome::Deny, &["payee-mismatch"]);
    let answer = is(&thief(Seller::claiming()), Outcome::Deny, &["payee-mismatch", "identity-claimed"]);
    assert_eq!(state_of(&answer, EvidenceKind::Name), EvidenceState::Contradicted);
    let silent = Seller { published: Some((None, vec![])), ..Seller::default() };
    is(&silent, Outcome::Undecided, &["payee-unproven"]);
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
        is(&Seller { asked: Some(asked), ..Seller::default() }, Outcome::Deny, &["origin-mismatch"]);
    }
    is(&Seller { asked: Some("https://shop.example/other"), ..Seller::default() }, Outcome::Allow, &[]);
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
        assert!(answer.abort && answer.has(Code::OriginMismatch), "{answer:#?}");
    }
    assert!(Seller { url: None, ..Seller::default() }.answer().abort);
}

#[test]
fn the_word_of_a_gateway_counts_only_if_the_operator_says_so() {
    let seller = Seller { offchain: true, ..Seller::default() };
    is(&seller, Outcome::Undecided, &["payee-unproven"]);
    let policy = CheckPolicy { offchain: true, ..CheckPolicy::default() };
    is(&Seller { policy, ..seller.clone() }, Outcome::Allow, &[]);
    // Nor do a key or a registration that a gateway names.
    let told = Seller { registered: true, published: Some((None, vec![])), ..seller };
    is(&told, Outcome::Undecided, &["payee-unproven"]);
    is(&Seller { offchain: false, ..told }, Outcome::Allow, &[]);
}

/// Whoever controls the terms can make a name that points to this origin and to any registration.
#[test]
fn registration_of_a_sellers_name_allows_no_first_contact() {
    let mut told = Seller { registered: true, policy: first_contact(), ..Seller::claiming() };
    told.published.as_mut().expect("the name publishes").0 = None;
    let answer = is(&told, Outcome::Undecided, &["identity-claimed"]);
    assert_eq!(state_of(&answer, EvidenceKind::Erc8004), EvidenceState::Claimed);
}

#[test]
fn a_released_name_and_one_strangers_word_prove_nobody() {
    let released = Seller { reasons: vec![Code::TxtMissing, Code::NameReleased], ..Seller::default() };
    is(&released, Outcome::Deny, &["name-released"]);
    for unknown in [Code::ChainBehind, Code::RecordPending] {
        let seller = Seller { reasons: vec![Code::TxtMissing, unknown], ..Seller::default() };
        is(&seller, Outcome::Undecided, &[unknown.slug()]);
    }
    let grade = Proof { grade: Grade::SingleRpc, asked: 1, agreed: 1, own: false };
    is(&Seller { grade, ..Seller::default() }, Outcome::Deny, &["single-rpc"]);
}

#[test]
fn only_accepted_evidence_allows() {
    let policy = CheckPolicy { accept: [EvidenceKind::Card, EvidenceKind::Offer].into(), ..CheckPolicy::default() };
    is(&Seller { policy, ..Seller::default() }, Outcome::Undecided, &["payee-unproven"]);
    let invalid = Seller { name: Some("not a name"), ..Seller::default() };
    assert!(invalid.answer().has(Code::NameInvalid) && invalid.answer().abort);
}

#[test]
fn a_card_proves_the_payee_on_the_networks_that_it_lists() {
    let accept_card = CheckPolicy { accept: [EvidenceKind::Card].into(), ..CheckPolicy::default() };
    let with_card = |network| Seller { card: Some(network), reasons: vec![], ..Seller::default() };
    let here = Seller { policy: accept_card.clone(), ..with_card("eip155:84532") };
    let answer = is(&here, Outcome::Allow, &[]);
    assert_eq!(state_of(&answer, EvidenceKind::Card), EvidenceState::Proven);
    let elsewhere = with_card("eip155:1");
    let answer = is(&elsewhere, Outcome::Allow, &[]);
    assert_eq!(state_of(&answer, EvidenceKind::Card), EvidenceState::Undecided, "the name proves the payee");
    is(&Seller { policy: accept_card, ..elsewhere }, Outcome::Undecided, &["payee-unproven"]);
    let denied = Seller { reasons: vec![Code::StatusWithdrawn], ..with_card("eip155:84532") };
    let answer = is(&denied, Outcome::Deny, &["status-withdrawn"]);
    assert_eq!(state_of(&answer, EvidenceKind::Card), EvidenceState::Contradicted);
}

#[test]
fn registration_has_the_outcomes_of_the_draft() {
    use RegistrationOutcome as Is;
    let outcome = |seller: &Seller| seller.answer().evidence(EvidenceKind::Erc8004).and_then(|row| row.outcome);
    let here = "https://shop.example";
    let honest = Seller::registered(Some(PAYEE), here, None);
    is(&honest, Outcome::Undecided, &["identity-claimed"]);
    assert_eq!(outcome(&honest), Some(Is::VerifiedWallet));
    is(&honest.clone().pinned(REGISTRATION), Outcome::Allow, &[]);
    let allowed = Seller { policy: first_contact(), ..honest };
    is(&allowed, Outcome::Allow, &[]);
    is(&Seller { file: OriginFile::Absent, ..allowed }, Outcome::Undecided, &["identity-claimed"]);

    let elsewhere = Seller::registered(Some(PAYEE), "https://other.example", None);
    is(&elsewhere, Outcome::Deny, &["origin-mismatch", "identity-claimed"]);
    assert_eq!(outcome(&elsewhere), Some(Is::EndpointUnlisted));
    is(&elsewhere.pinned(REGISTRATION), Outcome::Allow, &[]);

    let other = Seller::registered(Some(THIEF), here, None).pinned(REGISTRATION);
    is(&other, Outcome::Deny, &["payee-mismatch"]);
    assert_eq!(outcome(&other), Some(Is::Mismatch));
    let owner = Seller::registered(Some(THIEF), here, Some(PAYEE)).pinned(REGISTRATION);
    is(&owner, Outcome::Undecided, &["payee-unproven"]);
    assert_eq!(outcome(&owner), Some(Is::OwnerOnly));
    let none = Seller::registered(None, here, None).pinned(REGISTRATION);
    is(&none, Outcome::Undecided, &["payee-unproven"]);
    assert_eq!(outcome(&none), Some(Is::NoAgentWallet));
    let nobody = Seller { registration: Some(RegistrationReading::NoIdentity), ..none.clone() };
    assert_eq!(outcome(&nobody), Some(Is::NoIdentity));
    let unread = RegistrationReading::NotRead(Box::new(Reason::new(Code::PayeeUnproven)));
    let unread = Seller { registration: Some(unread), ..none };
    is(&unread, Outcome::Undecided, &["payee-unproven"]);
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
        let row = seller.answer().evidence(EvidenceKind::Erc8004).cloned().expect("there is a row for each kind");
        assert_eq!(row.outcome, Some(RegistrationOutcome::Mismatch));
    }
}

#[test]
fn registration_counts_on_its_own_chain_only() {
    let mut seller = Seller::registered(Some(PAYEE), "https://shop.example", None);
    let elsewhere: Registration = REGISTRATION.replace("84532", "8453").parse().expect("a registration");
    let Some(RegistrationReading::Read { entry, .. }) = &mut seller.registration else { panic!("it is read") };
    *entry = elsewhere.clone();
    is(&seller.pinned(&elsewhere.to_string()), Outcome::Undecided, &["payee-unproven"]);
}

#[test]
fn memory_that_cannot_be_read_may_bind_the_origin_to_another_identity() {
    let unread = Err(Box::new(Reason::new(Code::MemoryUnavailable)));
    let answer = Seller::default().checked_with(unread).answer;
    assert_eq!((answer.decision, &*answer.codes), (Outcome::Undecided, &["memory-unavailable".to_owned()][..]));
    assert_eq!(state_of(&answer, EvidenceKind::History), EvidenceState::Undecided);
}

/// The gate denies this verb of the agent, although the address of its name proves the payee.
#[test]
fn contradicted_row_denies_whatever_the_others_prove() {
    let denied = Seller { reasons: vec![], verb: Some("classify"), ..Seller::default() };
    let answer = Seller { card: Some("eip155:84532"), ..denied }.answer();
    assert_eq!(state_of(&answer, EvidenceKind::Name), EvidenceState::Proven);
    assert_eq!(state_of(&answer, EvidenceKind::Card), EvidenceState::Contradicted);
    assert_eq!(answer.decision, Outcome::Deny, "{answer:#?}");
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
        Seller { reasons: vec![Code::NameReleased], ..Seller::default() },
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
