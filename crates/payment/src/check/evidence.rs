//! The rows of evidence, and the objections that follow from them.

use alloy_primitives::Address;
use clresolve_core::payment::EndpointRecordKey;
use clresolve_core::reading::EnsAnswer;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_core::records::TextRecord;
use clresolve_core::state::TrustState;
use clresolve_verdict::evidence::links::RegisteredAgentId;
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::published::PaymentRecordStatus;
use clresolve_verdict::trust::Resolution;
use serde_json::{Map, Value, json};
use url::Url;

use super::answer::{Erc8004Outcome, PayeeEvidenceRow, PayeeEvidenceState as Shows};
use super::identity::{
    NamedSellerIdentity, OriginMemoryEntry, PayeeEvidenceKind, SellerIdentity, SellerIdentitySource, WebOrigin,
};
use super::reading::{NameVerdictAndPayees, OriginRegistrationFileReading, RegistrationReading};
use crate::decide::JudgedPaymentOption;
use crate::decision::{PaymentCheck, PaymentObjection};
use crate::payee::{PayeeClaim, PayeeClaimSource, PayeeProofMethod};

/// What the rows are made from.
pub(super) struct PayeeEvidenceInputs<'a> {
    pub(super) named: Option<&'a NamedSellerIdentity>,
    pub(super) verb: Option<&'a str>,
    pub(super) url: Option<&'a str>,
    pub(super) gate: &'a GatePolicy,
    /// Whether the limits alone say which networks are permitted, and not the card.
    pub(super) is_network_of_limits: bool,
    /// Whether the terms contain offers.
    pub(super) offers: bool,
    pub(super) name: Option<&'a NameVerdictAndPayees>,
    pub(super) registration: Option<&'a RegistrationReading>,
    pub(super) file: &'a OriginRegistrationFileReading,
    pub(super) origin: Option<&'a WebOrigin>,
    /// What is remembered about the origin. `None`: unknown.
    pub(super) remembered: Option<&'a OriginMemoryEntry>,
    pub(super) claim: Option<SellerIdentity>,
}

/// Whether the records of a name point to the URL that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameUrlMatch {
    /// A record points to this URL.
    Here,
    /// Every usable record points to another URL, such as this one.
    Elsewhere(String),
    /// No record points anywhere.
    Nowhere,
    /// A record could not be read or is about to change.
    Undecided,
}

impl PayeeEvidenceInputs<'_> {
    /// The rows, in the order of the kinds.
    pub(super) fn evidence_rows(&self, entries: &[JudgedPaymentOption<'_>]) -> Vec<PayeeEvidenceRow> {
        vec![
            self.card_row(entries),
            self.name_row(entries),
            self.erc8004_row(entries),
            self.offer_row(entries),
            self.history_row(),
        ]
    }

    /// The objections to how the identity was read and to where it points, whichever entry is paid.
    pub(super) fn identity_reading_objections(&self) -> Vec<PaymentObjection> {
        let identity = |reason| PaymentObjection::new(PaymentCheck::Identity, reason);
        let mut objections = Vec::new();
        if let Some(name) = self.name {
            objections.extend(name_reading_objections(&name.resolution, self.gate));
        }
        let by_seller = self.named.is_some_and(|named| named.named_by == SellerIdentitySource::Seller);
        if by_seller {
            let elsewhere = match (self.name.map(|name| self.name_url_match(name)), self.registration) {
                (Some(NameUrlMatch::Elsewhere(url)), _) => Some(url),
                (None, Some(RegistrationReading::Read { file: Ok(file), .. }))
                    if !self.is_answering_url_in(file.service_urls()) =>
                {
                    Some(file.service_urls().next().unwrap_or("no endpoint").to_owned())
                }
                _ => None,
            };
            let origin = self.origin.map(WebOrigin::as_str).unwrap_or_default();
            objections.extend(
                elsewhere.map(|url| identity(Reason::new(ReasonCode::OriginMismatch).expected(url).observed(origin))),
            );
        }
        objections
    }

    fn card_row(&self, entries: &[JudgedPaymentOption<'_>]) -> PayeeEvidenceRow {
        let row = |state, detail: &str| PayeeEvidenceRow::new(PayeeEvidenceKind::Card, state, detail);
        let Some(name) = self.name else { return row(Shows::Absent, "No name is known for this seller.") };
        let verdict = name.resolution.verdict();
        let codes =
            || verdict.reasons.iter().filter(|reason| reason.effect != ReasonEffect::Warn).map(reason_code_text);
        let has_card = has_card_records(&name.resolution);
        let row = match verdict.state {
            TrustState::Indeterminate => {
                row(Shows::Undecided, "The verdict on the name is indeterminate.").with_codes(codes())
            }
            TrustState::Untrusted if has_card => {
                row(Shows::Contradicted, "The name's card is untrusted.").with_codes(codes())
            }
            TrustState::Untrusted => row(Shows::Absent, "The name publishes no card."),
            TrustState::Trusted => self.trusted_card_row(name, entries),
        };
        row_with_anchor(row, &name.resolution)
    }

    fn trusted_card_row(&self, name: &NameVerdictAndPayees, entries: &[JudgedPaymentOption<'_>]) -> PayeeEvidenceRow {
        let row = |state, detail: &str| PayeeEvidenceRow::new(PayeeEvidenceKind::Card, state, detail);
        if let Some(code) = self.gate.request_objection(&name.resolution, self.verb, None) {
            return row(Shows::Contradicted, "The gate denies the agent.").with_codes([code.to_owned()]);
        }
        match (&name.route, self.url) {
            (Ok(route), Some(url)) if route.url_objection(url).is_none() => {}
            (Ok(_), _) => {
                return row(Shows::Absent, "The card is for another URL.").with_code(ReasonCode::EndpointMismatch);
            }
            (Err(reason), _) => return row(Shows::Absent, "The card's URL is unknown.").with_code(reason.code),
        }
        if entries.iter().any(|entry| entry.proven.is_some() && self.is_on_network_of_card(entry)) {
            return row(Shows::Proven, "A trusted card covers this URL, and the payee is proven.");
        }
        row(Shows::Undecided, "A trusted card covers this URL, but the payee is not proven.")
    }

    /// Whether the name's card lists the network of an entry, unless the limits alone say which networks are permitted.
    pub(super) fn is_on_network_of_card(&self, entry: &JudgedPaymentOption<'_>) -> bool {
        let agent = self.name.and_then(|name| name.resolution.verdict().identity.as_ref());
        let networks = agent.map(|agent| agent.networks.as_slice()).unwrap_or_default();
        let of_entry = entry.entry.price.as_ref().map(|price| price.network.as_str());
        self.is_network_of_limits || of_entry.is_ok_and(|network| networks.iter().any(|listed| listed == network))
    }

    fn name_row(&self, entries: &[JudgedPaymentOption<'_>]) -> PayeeEvidenceRow {
        let row = |state, detail: String| PayeeEvidenceRow::new(PayeeEvidenceKind::Name, state, detail);
        let Some(name) = self.name else { return row(Shows::Absent, "No name is known for this seller.".into()) };
        let back = self.name_url_match(name);
        let by_seller = self.named.is_some_and(|named| named.named_by == SellerIdentitySource::Seller);
        let proven = entries.iter().find_map(|entry| entry.proven);
        let row = match (proven.map(|proven| proven.by), &back) {
            (Some(PayeeProofMethod::Addr | PayeeProofMethod::Configured), NameUrlMatch::Elsewhere(url))
                if by_seller =>
            {
                row(Shows::Contradicted, format!("The name has the payee, but points to {url}."))
                    .with_code(ReasonCode::OriginMismatch)
            }
            (
                Some(PayeeProofMethod::Addr | PayeeProofMethod::Configured),
                NameUrlMatch::Nowhere | NameUrlMatch::Undecided,
            ) if by_seller => {
                row(Shows::Claimed, "The name has the payee, but no record points to this origin.".into())
            }
            (Some(PayeeProofMethod::Addr | PayeeProofMethod::Configured), NameUrlMatch::Here) => {
                row(Shows::Proven, "The name has the payee, and points to this origin.".into())
            }
            (Some(PayeeProofMethod::Addr | PayeeProofMethod::Configured), _) => {
                row(Shows::Proven, "The name has the payee.".into())
            }
            (Some(PayeeProofMethod::Offer), NameUrlMatch::Here) => {
                row(Shows::Absent, "The name points to this origin, but its address is not the payee.".into())
            }
            (Some(PayeeProofMethod::Offer | PayeeProofMethod::Erc8004), _) => {
                row(Shows::Absent, "The name's address is not the payee.".into())
            }
            (None, _) => {
                let against = payee_objections(entries);
                match against.first().map(|reason| (reason.effect, reason.code)) {
                    Some((ReasonEffect::Fail, code)) => {
                        row(Shows::Contradicted, "The name has another payee.".into()).with_code(code)
                    }
                    Some((_, code)) => {
                        row(Shows::Undecided, "The name does not prove the payee.".into()).with_code(code)
                    }
                    None => row(Shows::Absent, "The name publishes no payee.".into()),
                }
            }
        };
        row_with_anchor(PayeeEvidenceRow { read: Some(name_evidence_json(name, entries)), ..row }, &name.resolution)
    }

    fn erc8004_row(&self, entries: &[JudgedPaymentOption<'_>]) -> PayeeEvidenceRow {
        use Erc8004Outcome as Is;
        let row = |state, outcome, detail: &str| PayeeEvidenceRow {
            outcome,
            ..PayeeEvidenceRow::new(PayeeEvidenceKind::Erc8004, state, detail)
        };
        let proven = entries.iter().find_map(|entry| entry.proven).map(|proven| proven.by);
        let Some(reading) = self.registration else {
            return match self.name.filter(|_| proven == Some(PayeeProofMethod::Erc8004)) {
                Some(name) => self.vouched_registration_row(name),
                None => row(Shows::Absent, None, "No registration is known for this seller."),
            };
        };
        let (entry, wallet, owner, file, block, grade) = match reading {
            RegistrationReading::NotRead(reason) => {
                return row(Shows::Undecided, Some(Is::NotRead), "The registration could not be read.")
                    .with_code(reason.code);
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
        let lists = file.as_ref().ok().map(|file| self.is_answering_url_in(file.service_urls()));
        let by_seller = self.named.is_some_and(|named| named.named_by == SellerIdentitySource::Seller);
        let found = match (proven, wallet) {
            (None, Some(wallet)) if payees.iter().any(|payee| payee != wallet && !is_owner(payee)) => {
                row(Shows::Contradicted, Some(Is::Mismatch), "The agent's wallet is another address.")
                    .with_code(ReasonCode::PayeeMismatch)
            }
            (None, _) if payees.iter().any(is_owner) => {
                row(Shows::Claimed, Some(Is::OwnerOnly), "The payee owns the registration, but is not its wallet.")
            }
            (_, None) => row(Shows::Absent, Some(Is::NoAgentWallet), "The agent has no wallet."),
            (None, Some(_)) => row(Shows::Undecided, None, "The registration is for another network."),
            (Some(_), Some(_)) if lists == Some(false) && by_seller => {
                let detail = "The payee is the agent's wallet, but its registration does not list this origin.";
                row(Shows::Contradicted, Some(Is::EndpointUnlisted), detail).with_code(ReasonCode::OriginMismatch)
            }
            (Some(_), Some(_)) if by_seller && (lists.is_none() || !self.is_named_by_origin(entry)) => {
                let detail =
                    "The payee is the agent's wallet, but the origin and the registration do not name each other.";
                row(Shows::Claimed, Some(Is::VerifiedWallet), detail)
            }
            (Some(_), Some(_)) => row(Shows::Proven, Some(Is::VerifiedWallet), "The payee is the agent's wallet."),
        };
        PayeeEvidenceRow {
            read: Some(json!({"agentWallet": wallet, "listsOrigin": lists})),
            place: Some(entry.to_string()),
            block: Some(*block),
            grade: Some(*grade),
            ..found
        }
    }

    /// The registration that a name vouches for (ENSIP-25), whose wallet is the payee.
    fn vouched_registration_row(&self, name: &NameVerdictAndPayees) -> PayeeEvidenceRow {
        let by_seller = self.named.is_some_and(|named| named.named_by == SellerIdentitySource::Seller);
        // Its file was not read, so nothing says that the registration is for this origin.
        let state = if by_seller { Shows::Claimed } else { Shows::Proven };
        let detail = "The payee is the wallet of the name's registration.";
        let outcome = Some(Erc8004Outcome::VerifiedWallet);
        let read = name.payees.values().find_map(|payees| match &payees.registration {
            PayeeClaim::Is(wallet, PayeeClaimSource::Registration(read)) => Some((*wallet, read.block)),
            _ => None,
        });
        PayeeEvidenceRow {
            outcome,
            read: read.map(|(wallet, _)| json!({"agentWallet": wallet})),
            place: name.resolution.verdict().name.normalized.clone(),
            block: read.map(|(_, block)| block),
            ..PayeeEvidenceRow::new(PayeeEvidenceKind::Erc8004, state, detail)
        }
    }

    fn offer_row(&self, entries: &[JudgedPaymentOption<'_>]) -> PayeeEvidenceRow {
        let row = |state, detail: &str| PayeeEvidenceRow::new(PayeeEvidenceKind::Offer, state, detail);
        if !self.offers {
            return row(Shows::Absent, "The terms carry no signed offer.");
        }
        if entries.iter().any(|entry| entry.proven.is_some_and(|proven| proven.by == PayeeProofMethod::Offer)) {
            return row(Shows::Proven, "A key of the name signed an offer for exactly these terms.");
        }
        let of_offers = [ReasonCode::OfferInvalid, ReasonCode::OfferSignerUnproven];
        match payee_objections(entries).iter().find(|reason| of_offers.contains(&reason.code)) {
            Some(reason) if reason.effect == ReasonEffect::Fail => {
                row(Shows::Contradicted, "The signed offer is invalid.").with_code(reason.code)
            }
            Some(reason) => row(Shows::Claimed, "The offer is signed by a key that no proven name publishes.")
                .with_code(reason.code),
            None => row(Shows::Claimed, "The terms carry a signed offer, which was not needed."),
        }
    }

    fn history_row(&self) -> PayeeEvidenceRow {
        let row = |state, detail: String| PayeeEvidenceRow::new(PayeeEvidenceKind::History, state, detail);
        let Some(remembered) = self.remembered else {
            return row(Shows::Undecided, "The memory could not be read.".into())
                .with_code(ReasonCode::MemoryUnavailable);
        };
        let Some(known) = remembered.identity.as_ref().map(|seen| &seen.identity) else {
            return match &remembered.payee {
                Some(seen) => row(Shows::Claimed, format!("The origin demanded payment to {} before.", seen.address)),
                None => row(Shows::Absent, "Nothing is remembered about this origin.".into()),
            };
        };
        if self
            .named
            .is_some_and(|named| named.named_by == SellerIdentitySource::Configuration && named.identity != *known)
        {
            return row(
                Shows::Absent,
                format!("The configuration takes precedence over {known}, which was accepted before."),
            );
        }
        let claim = self.claim.as_ref().or_else(|| self.named.map(|named| &named.identity));
        if claim.is_some_and(|claim| claim != known) {
            return row(Shows::Contradicted, format!("The memory binds this origin to another identity: {known}."))
                .with_code(ReasonCode::IdentityChanged);
        }
        row(Shows::Proven, format!("The memory binds this origin to {known}."))
    }

    /// Whether the name's records point to the URL that answered.
    pub(super) fn name_url_match(&self, name: &NameVerdictAndPayees) -> NameUrlMatch {
        let (Some(published), Some(url)) = (name.resolution.payment_records(), self.url) else {
            return NameUrlMatch::Nowhere;
        };
        let mut back = NameUrlMatch::Nowhere;
        for key in EndpointRecordKey::ORIGINS {
            match published.payment_endpoint_status(key) {
                PaymentRecordStatus::Settled(record) if points_to_url(&record, url) => return NameUrlMatch::Here,
                PaymentRecordStatus::Settled(record) if back != NameUrlMatch::Undecided => {
                    back = NameUrlMatch::Elsewhere(record)
                }
                PaymentRecordStatus::Pending { .. } | PaymentRecordStatus::Failed(_) => back = NameUrlMatch::Undecided,
                _ => {}
            }
        }
        back
    }

    /// Whether the registration file of the origin names the entry.
    fn is_named_by_origin(&self, entry: &RegisteredAgentId) -> bool {
        self.file.names_registration(entry) || clresolve_core::mutant!("origins-name-any-registration")
    }

    fn is_answering_url_in<'u>(&self, mut urls: impl Iterator<Item = &'u str>) -> bool {
        self.url.is_some_and(|url| urls.any(|listed| points_to_url(listed, url)))
    }
}

/// Whether a record points to the URL that answered: the same scheme, host and port, and a path that matches whole
/// segments.
fn points_to_url(record: &str, url: &str) -> bool {
    let (Ok(record), Ok(url)) = (Url::parse(record.trim()), Url::parse(url)) else { return false };
    let (Some(of_record), Some(of_url)) = (WebOrigin::from_url(&record), WebOrigin::from_url(&url)) else {
        return false;
    };
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
    let Some(latest) = resolution.newest_name_state() else { return false };
    match &latest.answer {
        EnsAnswer::Records(found) => found.records.iter().any(|(_, record)| !matches!(record, TextRecord::Absent)),
        EnsAnswer::Unregistered | EnsAnswer::NoResolver(_) => false,
    }
}

/// The objections to how a name was read, whatever its card: the proof, the newest block, warnings that the policy
/// denies, and a chain that was not read.
fn name_reading_objections(resolution: &Resolution, gate: &GatePolicy) -> Vec<PaymentObjection> {
    let verdict = resolution.verdict();
    let mut objections = Vec::new();
    let Some(anchor) = &verdict.anchor else {
        let unread = verdict.reasons.iter().filter(|reason| reason.effect != ReasonEffect::Warn);
        objections.extend(unread.map(|reason| PaymentObjection::new(PaymentCheck::Identity, reason.clone())));
        return objections;
    };
    if anchor.block.is_chosen_by_number() {
        objections.push(PaymentObjection::from_gate(ReasonEffect::Fail, ReasonCode::ChainBehind.slug()));
    }
    if !clresolve_core::mutant!("the-gate-is-nothing-to-a-check") {
        objections
            .extend(gate.verdict_objection(verdict).map(|code| PaymentObjection::from_gate(ReasonEffect::Fail, code)));
    }
    objections.extend(
        resolution
            .newest_block_confirmation()
            .err()
            .map(|refusal| PaymentObjection::from_gate(ReasonEffect::Unknown, refusal.slug())),
    );
    // What is unknown about the records is unknown about the payee, too: an old block, or a change that is pending.
    let unknown = verdict
        .reasons
        .iter()
        .filter(|reason| reason.effect == ReasonEffect::Unknown && reason.step == ResolutionStep::Records);
    if !clresolve_core::mutant!("records-in-doubt-are-paid") {
        objections.extend(unknown.map(|reason| PaymentObjection::new(PaymentCheck::Identity, reason.clone())));
    }
    objections
}

/// The decisive reasons against the payees, the strongest first.
fn payee_objections(entries: &[JudgedPaymentOption<'_>]) -> Vec<Reason> {
    let objections = entries.iter().flat_map(|entry| entry.objections.iter());
    let of_payee = objections.filter(|objection| objection.check == PaymentCheck::Payee && objection.is_decisive());
    let mut reasons: Vec<Reason> = of_payee.filter_map(|objection| objection.reason.clone()).collect();
    clresolve_core::reason::sort_reasons(&mut reasons);
    reasons
}

/// The payees of the name on the networks of the entries, and its records that may point to the origin.
fn name_evidence_json(name: &NameVerdictAndPayees, entries: &[JudgedPaymentOption<'_>]) -> Value {
    let mut read = Map::new();
    for price in entries.iter().filter_map(|entry| entry.entry.price.as_ref().ok()) {
        let others = name.payees.get(&price.network).map(|payees| payees.known_addresses()).unwrap_or_default();
        read.insert(format!("addr({})", price.network), json!(others));
    }
    for key in EndpointRecordKey::ORIGINS {
        let record = name.resolution.payment_records().map(|published| published.payment_endpoint_status(key));
        if let Some(PaymentRecordStatus::Settled(record)) = record {
            read.insert(key.to_string(), json!(record));
        }
    }
    Value::Object(read)
}

fn row_with_anchor(row: PayeeEvidenceRow, resolution: &Resolution) -> PayeeEvidenceRow {
    let verdict = resolution.verdict();
    let anchor = verdict.anchor.as_ref();
    PayeeEvidenceRow {
        place: verdict.name.normalized.clone(),
        block: anchor.map(|anchor| anchor.block.number),
        grade: anchor.map(|anchor| anchor.proof.grade),
        ..row
    }
}

fn reason_code_text(reason: &Reason) -> String {
    reason.code.slug().to_owned()
}
