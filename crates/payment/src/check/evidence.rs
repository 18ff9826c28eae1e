//! The rows of evidence, and the objections that follow from them.

use alloy_primitives::Address;
use clresolve_core::payment::EndpointRecordKey;
use clresolve_core::reading::Answer;
use clresolve_core::reason::{Code, Effect, Reason, Step};
use clresolve_core::records::Record;
use clresolve_core::state::State;
use clresolve_verdict::evidence::links::Registration;
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::published::PublishedRecord;
use clresolve_verdict::trust::Resolution;
use serde_json::{Map, Value, json};
use url::Url;

use super::answer::{EvidenceRow, EvidenceState as Shows, RegistrationOutcome};
use super::identity::{EvidenceKind, Named, NamedBy, Remembered, SellerIdentity, WebOrigin};
use super::reading::{JudgedName, OriginFile, RegistrationReading};
use crate::decide::Judged;
use crate::decision::{Check, Objection};
use crate::payee::{Claim, ClaimSource, ProvenBy};

/// What the rows are made from.
pub(super) struct EvidenceInputs<'a> {
    pub(super) named: Option<&'a Named>,
    pub(super) verb: Option<&'a str>,
    pub(super) url: Option<&'a str>,
    pub(super) gate: &'a GatePolicy,
    /// Whether the limits alone say which networks are permitted, and not the card.
    pub(super) is_network_of_limits: bool,
    /// Whether the terms contain offers.
    pub(super) offers: bool,
    pub(super) name: Option<&'a JudgedName>,
    pub(super) registration: Option<&'a RegistrationReading>,
    pub(super) file: &'a OriginFile,
    pub(super) origin: Option<&'a WebOrigin>,
    /// What is remembered about the origin. `None`: unknown.
    pub(super) remembered: Option<&'a Remembered>,
    pub(super) claim: Option<SellerIdentity>,
}

/// Whether the records of a name point to the URL that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WayBack {
    /// A record points to this URL.
    Here,
    /// Every usable record points to another URL, such as this one.
    Elsewhere(String),
    /// No record points anywhere.
    Nowhere,
    /// A record could not be read or is about to change.
    Undecided,
}

impl EvidenceInputs<'_> {
    /// The rows, in the order of the kinds.
    pub(super) fn rows(&self, entries: &[Judged<'_>]) -> Vec<EvidenceRow> {
        vec![self.card(entries), self.name(entries), self.erc8004(entries), self.offer(entries), self.history()]
    }

    /// The objections to how the identity was read and to where it points, whichever entry is paid.
    pub(super) fn objections(&self) -> Vec<Objection> {
        let identity = |reason| Objection::new(Check::Identity, reason);
        let mut objections = Vec::new();
        if let Some(name) = self.name {
            objections.extend(against_reading(&name.resolution, self.gate));
        }
        let by_seller = self.named.is_some_and(|named| named.named_by == NamedBy::Seller);
        if by_seller {
            let elsewhere = match (self.name.map(|name| self.way_back(name)), self.registration) {
                (Some(WayBack::Elsewhere(url)), _) => Some(url),
                (None, Some(RegistrationReading::Read { file: Ok(file), .. })) if !self.lists_origin(file.urls()) => {
                    Some(file.urls().next().unwrap_or("no endpoint").to_owned())
                }
                _ => None,
            };
            let origin = self.origin.map(WebOrigin::as_str).unwrap_or_default();
            objections.extend(
                elsewhere.map(|url| identity(Reason::new(Code::OriginMismatch).expected(url).observed(origin))),
            );
        }
        objections
    }

    fn card(&self, entries: &[Judged<'_>]) -> EvidenceRow {
        let row = |state, detail: &str| EvidenceRow::new(EvidenceKind::Card, state, detail);
        let Some(name) = self.name else { return row(Shows::Absent, "No name is known for this seller.") };
        let verdict = name.resolution.verdict();
        let codes = || verdict.reasons.iter().filter(|reason| reason.effect != Effect::Warn).map(code_of);
        let has_card = has_card_records(&name.resolution);
        let row = match verdict.state {
            State::Indeterminate => {
                row(Shows::Undecided, "The verdict on the name is indeterminate.").with_codes(codes())
            }
            State::Untrusted if has_card => {
                row(Shows::Contradicted, "The name's card is untrusted.").with_codes(codes())
            }
            State::Untrusted => row(Shows::Absent, "The name publishes no card."),
            State::Trusted => self.trusted_card(name, entries),
        };
        located(row, &name.resolution)
    }

    fn trusted_card(&self, name: &JudgedName, entries: &[Judged<'_>]) -> EvidenceRow {
        let row = |state, detail: &str| EvidenceRow::new(EvidenceKind::Card, state, detail);
        if let Some(code) = self.gate.objection(&name.resolution, self.verb, None) {
            return row(Shows::Contradicted, "The gate denies the agent.").with_codes([code.to_owned()]);
        }
        match (&name.route, self.url) {
            (Ok(route), Some(url)) if route.objection(url).is_none() => {}
            (Ok(_), _) => return row(Shows::Absent, "The card is for another URL.").coded(Code::EndpointMismatch),
            (Err(reason), _) => return row(Shows::Absent, "The card's URL is unknown.").coded(reason.code),
        }
        if entries.iter().any(|entry| entry.proven.is_some() && self.is_on_network_of_card(entry)) {
            return row(Shows::Proven, "A trusted card covers this URL, and the payee is proven.");
        }
        row(Shows::Undecided, "A trusted card covers this URL, but the payee is not proven.")
    }

    /// Whether the name's card lists the network of an entry, unless the limits alone say which networks are permitted.
    pub(super) fn is_on_network_of_card(&self, entry: &Judged<'_>) -> bool {
        let agent = self.name.and_then(|name| name.resolution.verdict().identity.as_ref());
        let networks = agent.map(|agent| agent.networks.as_slice()).unwrap_or_default();
        let of_entry = entry.entry.price.as_ref().map(|price| price.network.as_str());
        self.is_network_of_limits || of_entry.is_ok_and(|network| networks.iter().any(|listed| listed == network))
    }

    fn name(&self, entries: &[Judged<'_>]) -> EvidenceRow {
        let row = |state, detail: String| EvidenceRow::new(EvidenceKind::Name, state, detail);
        let Some(name) = self.name else { return row(Shows::Absent, "No name is known for this seller.".into()) };
        let back = self.way_back(name);
        let by_seller = self.named.is_some_and(|named| named.named_by == NamedBy::Seller);
        let proven = entries.iter().find_map(|entry| entry.proven);
        let row = match (proven.map(|proven| proven.by), &back) {
            (Some(ProvenBy::Addr | ProvenBy::Configured), WayBack::Elsewhere(url)) if by_seller => {
                row(Shows::Contradicted, format!("The name has the payee, but points to {url}."))
                    .coded(Code::OriginMismatch)
            }
            (Some(ProvenBy::Addr | ProvenBy::Configured), WayBack::Nowhere | WayBack::Undecided) if by_seller => {
                row(Shows::Claimed, "The name has the payee, but no record points to this origin.".into())
            }
            (Some(ProvenBy::Addr | ProvenBy::Configured), WayBack::Here) => {
                row(Shows::Proven, "The name has the payee, and points to this origin.".into())
            }
            (Some(ProvenBy::Addr | ProvenBy::Configured), _) => row(Shows::Proven, "The name has the payee.".into()),
            (Some(ProvenBy::Offer), WayBack::Here) => {
                row(Shows::Absent, "The name points to this origin, but its address is not the payee.".into())
            }
            (Some(ProvenBy::Offer | ProvenBy::Erc8004), _) => {
                row(Shows::Absent, "The name's address is not the payee.".into())
            }
            (None, _) => {
                let against = against_payee(entries);
                match against.first().map(|reason| (reason.effect, reason.code)) {
                    Some((Effect::Fail, code)) => {
                        row(Shows::Contradicted, "The name has another payee.".into()).coded(code)
                    }
                    Some((_, code)) => row(Shows::Undecided, "The name does not prove the payee.".into()).coded(code),
                    None => row(Shows::Absent, "The name publishes no payee.".into()),
                }
            }
        };
        located(EvidenceRow { read: Some(records_read(name, entries)), ..row }, &name.resolution)
    }

    fn erc8004(&self, entries: &[Judged<'_>]) -> EvidenceRow {
        use RegistrationOutcome as Is;
        let row = |state, outcome, detail: &str| EvidenceRow {
            outcome,
            ..EvidenceRow::new(EvidenceKind::Erc8004, state, detail)
        };
        let proven = entries.iter().find_map(|entry| entry.proven).map(|proven| proven.by);
        let Some(reading) = self.registration else {
            return match self.name.filter(|_| proven == Some(ProvenBy::Erc8004)) {
                Some(name) => self.registration_of(name),
                None => row(Shows::Absent, None, "No registration is known for this seller."),
            };
        };
        let (entry, wallet, owner, file, block, grade) = match reading {
            RegistrationReading::NotRead(reason) => {
                return row(Shows::Undecided, Some(Is::NotRead), "The registration could not be read.")
                    .coded(reason.code);
            }
            RegistrationReading::NoIdentity => {
                return row(Shows::Absent, Some(Is::NoIdentity), "The registry has no such agent.");
            }
            RegistrationReading::Read { entry, wallet, owner, file, block, grade, .. } => {
                (entry, wallet, owner, file, block, grade)
            }
        };
        let prices = entries.iter().filter_map(|entry| entry.entry.price.as_ref().ok());
        let payees: Vec<Address> = prices.map(|price| price.pay_to).collect();
        let is_owner = |payee: &Address| Some(*payee) == *owner;
        let lists = file.as_ref().ok().map(|file| self.lists_origin(file.urls()));
        let by_seller = self.named.is_some_and(|named| named.named_by == NamedBy::Seller);
        let found = match (proven, wallet) {
            (None, Some(wallet)) if payees.iter().any(|payee| payee != wallet && !is_owner(payee)) => {
                row(Shows::Contradicted, Some(Is::Mismatch), "The agent's wallet is another address.")
                    .coded(Code::PayeeMismatch)
            }
            (None, _) if payees.iter().any(is_owner) => {
                row(Shows::Claimed, Some(Is::OwnerOnly), "The payee owns the registration, but is not its wallet.")
            }
            (_, None) => row(Shows::Absent, Some(Is::NoAgentWallet), "The agent has no wallet."),
            (None, Some(_)) => row(Shows::Undecided, None, "The registration is for another network."),
            (Some(_), Some(_)) if lists == Some(false) && by_seller => {
                let detail = "The payee is the agent's wallet, but its registration does not list this origin.";
                row(Shows::Contradicted, Some(Is::EndpointUnlisted), detail).coded(Code::OriginMismatch)
            }
            (Some(_), Some(_)) if by_seller && (lists.is_none() || !self.is_named_by_origin(entry)) => {
                let detail =
                    "The payee is the agent's wallet, but the origin and the registration do not name each other.";
                row(Shows::Claimed, Some(Is::VerifiedWallet), detail)
            }
            (Some(_), Some(_)) => row(Shows::Proven, Some(Is::VerifiedWallet), "The payee is the agent's wallet."),
        };
        EvidenceRow {
            read: Some(json!({"agentWallet": wallet, "listsOrigin": lists})),
            place: Some(entry.to_string()),
            block: Some(*block),
            grade: Some(*grade),
            ..found
        }
    }

    /// The registration that a name vouches for (ENSIP-25), whose wallet is the payee.
    fn registration_of(&self, name: &JudgedName) -> EvidenceRow {
        let by_seller = self.named.is_some_and(|named| named.named_by == NamedBy::Seller);
        // Its file was not read, so nothing says that the registration is for this origin.
        let state = if by_seller { Shows::Claimed } else { Shows::Proven };
        let detail = "The payee is the wallet of the name's registration.";
        let outcome = Some(RegistrationOutcome::VerifiedWallet);
        let read = name.payees.values().find_map(|payees| match &payees.registration {
            Claim::Is(wallet, ClaimSource::Registration(read)) => Some((*wallet, read.block)),
            _ => None,
        });
        EvidenceRow {
            outcome,
            read: read.map(|(wallet, _)| json!({"agentWallet": wallet})),
            place: name.resolution.verdict().name.normalized.clone(),
            block: read.map(|(_, block)| block),
            ..EvidenceRow::new(EvidenceKind::Erc8004, state, detail)
        }
    }

    fn offer(&self, entries: &[Judged<'_>]) -> EvidenceRow {
        let row = |state, detail: &str| EvidenceRow::new(EvidenceKind::Offer, state, detail);
        if !self.offers {
            return row(Shows::Absent, "The terms carry no signed offer.");
        }
        if entries.iter().any(|entry| entry.proven.is_some_and(|proven| proven.by == ProvenBy::Offer)) {
            return row(Shows::Proven, "A key of the name signed an offer for exactly these terms.");
        }
        let of_offers = [Code::OfferInvalid, Code::OfferSignerUnproven];
        match against_payee(entries).iter().find(|reason| of_offers.contains(&reason.code)) {
            Some(reason) if reason.effect == Effect::Fail => {
                row(Shows::Contradicted, "The signed offer is invalid.").coded(reason.code)
            }
            Some(reason) => {
                row(Shows::Claimed, "The offer is signed by a key that no proven name publishes.").coded(reason.code)
            }
            None => row(Shows::Claimed, "The terms carry a signed offer, which was not needed."),
        }
    }

    fn history(&self) -> EvidenceRow {
        let row = |state, detail: String| EvidenceRow::new(EvidenceKind::History, state, detail);
        let Some(remembered) = self.remembered else {
            return row(Shows::Undecided, "The memory could not be read.".into()).coded(Code::MemoryUnavailable);
        };
        let Some(known) = remembered.identity.as_ref().map(|seen| &seen.identity) else {
            return match &remembered.payee {
                Some(seen) => row(Shows::Claimed, format!("The origin demanded payment to {} before.", seen.address)),
                None => row(Shows::Absent, "Nothing is remembered about this origin.".into()),
            };
        };
        if self.named.is_some_and(|named| named.named_by == NamedBy::Configuration && named.identity != *known) {
            return row(
                Shows::Absent,
                format!("The configuration takes precedence over {known}, which was accepted before."),
            );
        }
        let claim = self.claim.as_ref().or_else(|| self.named.map(|named| &named.identity));
        if claim.is_some_and(|claim| claim != known) {
            return row(Shows::Contradicted, format!("The memory binds this origin to another identity: {known}."))
                .coded(Code::IdentityChanged);
        }
        row(Shows::Proven, format!("The memory binds this origin to {known}."))
    }

    /// Whether the name's records point to the URL that answered.
    pub(super) fn way_back(&self, name: &JudgedName) -> WayBack {
        let (Some(published), Some(url)) = (name.resolution.payment(), self.url) else { return WayBack::Nowhere };
        let mut back = WayBack::Nowhere;
        for key in EndpointRecordKey::ORIGINS {
            match published.endpoint(key) {
                PublishedRecord::Settled(record) if points_to(&record, url) => return WayBack::Here,
                PublishedRecord::Settled(record) if back != WayBack::Undecided => back = WayBack::Elsewhere(record),
                PublishedRecord::Pending { .. } | PublishedRecord::Failed(_) => back = WayBack::Undecided,
                _ => {}
            }
        }
        back
    }

    /// Whether the registration file of the origin names the entry.
    fn is_named_by_origin(&self, entry: &Registration) -> bool {
        self.file.names(entry) || clresolve_core::mutant!("origins-name-any-registration")
    }

    fn lists_origin<'u>(&self, mut urls: impl Iterator<Item = &'u str>) -> bool {
        self.url.is_some_and(|url| urls.any(|listed| points_to(listed, url)))
    }
}

/// Whether a record points to the URL that answered: the same scheme, host and port, and a path that matches whole
/// segments.
fn points_to(record: &str, url: &str) -> bool {
    let (Ok(record), Ok(url)) = (Url::parse(record.trim()), Url::parse(url)) else { return false };
    let (Some(of_record), Some(of_url)) = (WebOrigin::of_url(&record), WebOrigin::of_url(&url)) else { return false };
    if of_record != of_url && !clresolve_core::mutant!("any-origin-is-named") {
        return false;
    }
    let path = record.path().trim_end_matches('/');
    let is_whole =
        |rest: &str| rest.is_empty() || rest.starts_with('/') || clresolve_core::mutant!("segments-match-in-part");
    url.path().strip_prefix(path).is_some_and(is_whole)
}

/// Whether the name has records of a card at the newest block.
fn has_card_records(resolution: &Resolution) -> bool {
    let Some(latest) = resolution.at_newest() else { return false };
    match &latest.answer {
        Answer::Records(found) => found.records.iter().any(|(_, record)| !matches!(record, Record::Absent)),
        Answer::Unregistered | Answer::NoResolver(_) => false,
    }
}

/// The objections to how a name was read, whatever its card: the proof, the newest block, warnings that the policy
/// denies, and a chain that was not read.
fn against_reading(resolution: &Resolution, gate: &GatePolicy) -> Vec<Objection> {
    let verdict = resolution.verdict();
    let mut objections = Vec::new();
    let Some(anchor) = &verdict.anchor else {
        let unread = verdict.reasons.iter().filter(|reason| reason.effect != Effect::Warn);
        objections.extend(unread.map(|reason| Objection::new(Check::Identity, reason.clone())));
        return objections;
    };
    if anchor.block.is_chosen_by_number() {
        objections.push(Objection::of_gate(Effect::Fail, Code::ChainBehind.slug()));
    }
    if !clresolve_core::mutant!("the-gate-is-nothing-to-a-check") {
        objections.extend(gate.against_verdict(verdict).map(|code| Objection::of_gate(Effect::Fail, code)));
    }
    objections.extend(resolution.standing().err().map(|refusal| Objection::of_gate(Effect::Unknown, refusal.slug())));
    // What is unknown about the records is unknown about the payee, too: an old block, or a change that is pending.
    let unknown =
        verdict.reasons.iter().filter(|reason| reason.effect == Effect::Unknown && reason.step == Step::Records);
    if !clresolve_core::mutant!("records-in-doubt-are-paid") {
        objections.extend(unknown.map(|reason| Objection::new(Check::Identity, reason.clone())));
    }
    objections
}

/// The decisive reasons against the payees, the strongest first.
fn against_payee(entries: &[Judged<'_>]) -> Vec<Reason> {
    let objections = entries.iter().flat_map(|entry| entry.objections.iter());
    let of_payee = objections.filter(|objection| objection.check == Check::Payee && objection.decides());
    let mut reasons: Vec<Reason> = of_payee.filter_map(|objection| objection.reason.clone()).collect();
    clresolve_core::reason::sort(&mut reasons);
    reasons
}

/// The payees of the name on the networks of the entries, and its records that may point to the origin.
fn records_read(name: &JudgedName, entries: &[Judged<'_>]) -> Value {
    let mut read = Map::new();
    for price in entries.iter().filter_map(|entry| entry.entry.price.as_ref().ok()) {
        let others = name.payees.get(&price.network).map(|payees| payees.others()).unwrap_or_default();
        read.insert(format!("addr({})", price.network), json!(others));
    }
    for key in EndpointRecordKey::ORIGINS {
        let record = name.resolution.payment().map(|published| published.endpoint(key));
        if let Some(PublishedRecord::Settled(record)) = record {
            read.insert(key.to_string(), json!(record));
        }
    }
    Value::Object(read)
}

fn located(row: EvidenceRow, resolution: &Resolution) -> EvidenceRow {
    let verdict = resolution.verdict();
    let anchor = verdict.anchor.as_ref();
    EvidenceRow {
        place: verdict.name.normalized.clone(),
        block: anchor.map(|anchor| anchor.block.number),
        grade: anchor.map(|anchor| anchor.proof.grade),
        ..row
    }
}

fn code_of(reason: &Reason) -> String {
    reason.code.slug().to_owned()
}
