//! Who is paid, and what proves it, for a seller that may have no Agent-Card. No I/O, no clock.
//!
//! A check starts from the reply of a seller. The caller reads what [`OngoingSellerCheck::next_lookup`] returns,
//! supplies it, and repeats until nothing is wanted. [`OngoingSellerCheck::finish`] returns the answer. A check judges
//! terms and payees as a decision does; a decision is a check that accepts only a trusted card.

mod answer;
mod evidence;
mod identity;
mod reading;
mod request;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use alloy_primitives::Address;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_verdict::evidence::links::{RegisteredAgentId, WELL_KNOWN};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::verdict::canonical_digest;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::decide::{self, JudgedPaymentOption, PaymentDecisionQuery, PaymentOptionCriteria};
use crate::decision::{DecisionOutcome, PaymentCheck, PaymentObjection, objection_codes};
use crate::limits::{NetworkAllowlistSource, PaymentLimits};
use crate::network::Caip2Network;
use crate::payee::{NetworkPayees, PayeeProofMethod};
use crate::request::PaymentDemand;
use crate::route::is_canonical_url;
use crate::terms::{ExactPrice, PaymentTerms};

pub use answer::{Erc8004Outcome, PayeeEvidenceRow, PayeeEvidenceState, SCHEMA, SellerCheckDocument};
use evidence::PayeeEvidenceInputs;
pub use identity::{
    FirstContactPolicy, NamedSellerIdentity, OriginMemoryEntry, PayeeEvidenceKind, PayeeEvidencePolicy,
    ProvenSellerIdentity, RememberedPayee, SellerIdentity, SellerIdentityError, SellerIdentitySource, WebOrigin,
    WebOriginError,
};
pub use reading::{NameVerdictAndPayees, OriginRegistrationFileReading, RegistrationReading};
pub use request::SellerCheckRequest;

/// What the operator permits.
#[derive(Clone, Debug)]
pub struct SellerCheckPolicy {
    /// The identity that the configuration pins for the origin.
    pub pinned: Option<SellerIdentity>,
    /// The accepted evidence.
    pub policy: PayeeEvidencePolicy,
    /// The limits in force, including those that the caller tightened.
    pub limits: PaymentLimits,
    /// The gate's policy.
    pub gate: GatePolicy,
}

/// What a check must read next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextSellerLookup {
    /// The registration file of the origin, at this URL.
    OriginFile(String),
    /// The verdict on a name, and the payment records that the name publishes.
    Name(EnsName),
    /// An entry of an ERC-8004 registry, and its registration file.
    Registration(RegisteredAgentId),
}

/// A check in progress.
#[derive(Debug)]
pub struct OngoingSellerCheck {
    request: Arc<SellerCheckRequest>,
    rules: SellerCheckPolicy,
    remembered: Result<OriginMemoryEntry, Box<Reason>>,
    terms: Result<PaymentTerms, Box<Reason>>,
    origin: Option<WebOrigin>,
    file: OriginRegistrationFileReading,
    name: Option<NameVerdictAndPayees>,
    registration: Option<RegistrationReading>,
}

/// The answer, and what the memory must store.
#[derive(Debug)]
pub struct SellerCheckConclusion {
    /// The answer.
    pub answer: SellerCheckDocument,
    /// The origin, and what the check adds to its entry in the memory. Even an empty addition counts as a use of the
    /// entry. `None` if the memory was not read, or if the terms have no price.
    pub remember: Option<(WebOrigin, OriginMemoryEntry)>,
}

impl OngoingSellerCheck {
    /// Begins a check. `remembered` is the memory's entry for the origin that answered, or why it could not be read.
    pub fn new(
        request: Arc<SellerCheckRequest>,
        rules: SellerCheckPolicy,
        remembered: Result<OriginMemoryEntry, Box<Reason>>,
    ) -> Self {
        let terms = request.parse_terms();
        let origin = request.url.as_deref().and_then(WebOrigin::from_url_text);
        let (file, name, registration) = (OriginRegistrationFileReading::NotAsked, None, None);
        Self { request, rules, remembered, terms, origin, file, name, registration }
    }

    /// What must be read next. `None` if nothing is missing.
    pub fn next_lookup(&self) -> Option<NextSellerLookup> {
        if self.terms.is_err() || self.origin.is_none() {
            return None;
        }
        let file = || {
            matches!(self.file, OriginRegistrationFileReading::NotAsked).then(|| self.origin_file_lookup()).flatten()
        };
        match self.named_identity() {
            None => file(),
            Some(NamedSellerIdentity { identity: SellerIdentity::Name(name), .. }) => {
                self.name.is_none().then_some(NextSellerLookup::Name(name))
            }
            Some(NamedSellerIdentity { identity: SellerIdentity::Registration(entry), .. })
                if self.registration.is_none() =>
            {
                Some(NextSellerLookup::Registration(entry))
            }
            Some(named) => (named.named_by == SellerIdentitySource::Seller).then(file).flatten(),
        }
    }

    fn origin_file_lookup(&self) -> Option<NextSellerLookup> {
        let origin = self.origin.as_ref().filter(|_| self.request.name.is_none())?;
        Some(NextSellerLookup::OriginFile(format!("{origin}{WELL_KNOWN}")))
    }

    /// Supplies the registration file of the origin.
    pub fn supply_origin_file(&mut self, file: OriginRegistrationFileReading) {
        self.file = file;
    }

    /// Supplies what was read about the name.
    pub fn supply_name(&mut self, reading: NameVerdictAndPayees) {
        self.name = Some(reading);
    }

    /// Supplies what was read about the registration.
    pub fn supply_registration(&mut self, reading: RegistrationReading) {
        self.registration = Some(reading);
    }

    /// Replaces the memory's entry for the origin, or the reason why it is unknown.
    pub fn supply_memory_entry(&mut self, remembered: Result<OriginMemoryEntry, Box<Reason>>) {
        self.remembered = remembered;
    }

    /// The terms.
    ///
    /// # Errors
    /// The reason why the reply contains no valid terms.
    pub fn terms(&self) -> Result<&PaymentTerms, &Reason> {
        self.terms.as_ref().map_err(|reason| &**reason)
    }

    /// The verb to invoke, if the caller names one.
    pub fn verb(&self) -> Option<&str> {
        self.request.verb.as_deref()
    }

    fn remembered_entry(&self) -> Option<&OriginMemoryEntry> {
        self.remembered.as_ref().ok()
    }

    fn remembered_identity(&self) -> Option<&SellerIdentity> {
        Some(&self.remembered_entry()?.identity.as_ref()?.identity)
    }

    /// The block of the name's records or of the registration.
    fn evidence_block(&self) -> Option<u64> {
        match (&self.name, &self.registration) {
            (Some(name), _) => name.records_block(),
            (None, Some(RegistrationReading::Read { block, .. })) => Some(*block),
            _ => None,
        }
    }

    /// The identity that the check is about, and who names it: the configuration, else the caller, else the memory,
    /// else the seller. If the seller names a different identity than the remembered one, the check is about the
    /// seller's.
    pub fn named_identity(&self) -> Option<NamedSellerIdentity> {
        let by = |named_by| move |identity| NamedSellerIdentity { identity, named_by };
        self.origin.as_ref()?;
        let pinned = self.rules.pinned.clone();
        if pinned.is_some() && !clresolve_core::mutant!("pins-count-for-nothing") {
            return pinned.map(by(SellerIdentitySource::Configuration));
        }
        if self.request.name.is_some() && self.request.named_by == SellerIdentitySource::Caller {
            return self.requested_identity().map(by(SellerIdentitySource::Caller));
        }
        let remembered = self.remembered_identity().cloned();
        match (remembered, self.claimed_identity()) {
            (Some(known), None) => Some(known).map(by(SellerIdentitySource::Memory)),
            (Some(known), Some(claim)) if known == claim => Some(known).map(by(SellerIdentitySource::Memory)),
            (_, claim) => claim.map(by(SellerIdentitySource::Seller)),
        }
    }

    /// The identity with the name of the request.
    fn requested_identity(&self) -> Option<SellerIdentity> {
        self.request.name.as_deref()?.parse().ok()
    }

    /// The identity that the seller names: in the call of a model, else in the terms, else in the registration file of
    /// its origin.
    fn claimed_identity(&self) -> Option<SellerIdentity> {
        if self.request.named_by == SellerIdentitySource::Seller && self.request.name.is_some() {
            return self.requested_identity();
        }
        let terms = self.terms.as_ref().ok()?;
        let extras = terms.entries.iter().filter_map(|entry| entry.json.get("extra")?.as_object());
        extras.chain([&terms.extensions]).find_map(parse_claimed_identity).or_else(|| self.file.claimed_identity())
    }

    /// The answer at `now`.
    pub fn finish(&self, now: Timestamp) -> SellerCheckConclusion {
        let payees = self.payees_by_network();
        let tools = self.name.as_ref().and_then(NameVerdictAndPayees::mcp_route);
        let measure = PaymentOptionCriteria {
            limits: &self.rules.limits,
            card_networks: None,
            tools: tools.as_ref().map(|tools| tools.as_ref().map_err(|reason| &**reason)),
            payees: &payees,
            now,
        };
        let question = self.decision_query();
        let (mut entries, against_terms) = decide::judge_terms(&question, &measure);
        let named = self.named_identity();
        let inputs = self.evidence_inputs(named.as_ref());
        let rows = inputs.evidence_rows(&entries);
        self.reject_unaccepted_proofs(&mut entries, &rows, &inputs);
        let mut common = self.origin_objections();
        common.extend(inputs.identity_reading_objections());
        common.extend(self.identity_objections(named.as_ref(), &rows));
        common.extend(contradiction_objections(&rows, &common, &entries));
        let of_entries = entries.iter().flat_map(|entry| entry.objections.iter());
        let objections: Vec<_> = common.iter().chain(&against_terms).chain(of_entries).cloned().collect();
        let judgement = SellerCheckFindings { named, rows, common, entries, objections };
        let answer = self.build_document(&question, &measure, judgement);
        let remember = self.memory_addition(&answer, now);
        SellerCheckConclusion { answer, remember }
    }

    fn decision_query(&self) -> PaymentDecisionQuery<'_> {
        let request = &*self.request;
        PaymentDecisionQuery {
            verb: request.verb.as_deref().unwrap_or_default(),
            terms: self.terms(),
            is_http_reply: matches!(request.demand, PaymentDemand::Reply(_)),
            url: request.url.as_deref(),
            selected: request.selected.as_ref(),
            signed: request.header.as_deref(),
        }
    }

    fn evidence_inputs<'a>(&'a self, named: Option<&'a NamedSellerIdentity>) -> PayeeEvidenceInputs<'a> {
        PayeeEvidenceInputs {
            named,
            verb: self.request.verb.as_deref(),
            url: self.request.url.as_deref(),
            gate: &self.rules.gate,
            is_network_of_limits: self.rules.limits.source == NetworkAllowlistSource::Limits,
            offers: self.terms.as_ref().is_ok_and(|terms| !terms.offers.is_empty()),
            name: self.name.as_ref(),
            registration: self.registration.as_ref(),
            file: &self.file,
            origin: self.origin.as_ref(),
            remembered: self.remembered_entry(),
            claim: self.claimed_identity(),
        }
    }

    /// The payees of the identity on the networks of the terms.
    fn payees_by_network(&self) -> BTreeMap<Caip2Network, NetworkPayees> {
        let Ok(terms) = &self.terms else { return BTreeMap::new() };
        let prices = terms.entries.iter().filter_map(|entry| entry.price.as_ref().ok());
        let of = |price: &ExactPrice| match (&self.name, &self.registration) {
            (Some(name), _) => name.payees_on(&price.network, self.rules.policy.offchain),
            (None, Some(registration)) => registration.payees_on(&price.network),
            (None, None) => NetworkPayees::default(),
        };
        prices.map(|price| (price.network.clone(), of(price))).collect()
    }

    /// Objects to each payee whose only proof is of a kind that the operator does not accept.
    fn reject_unaccepted_proofs(
        &self,
        entries: &mut [JudgedPaymentOption<'_>],
        rows: &[PayeeEvidenceRow],
        inputs: &PayeeEvidenceInputs<'_>,
    ) {
        let has_card =
            rows.iter().any(|row| row.kind == PayeeEvidenceKind::Card && row.state == PayeeEvidenceState::Proven);
        let accept = &self.rules.policy.accept;
        for entry in entries {
            let Some(proven) = entry.proven else { continue };
            let kind = match proven.by {
                PayeeProofMethod::Configured | PayeeProofMethod::Addr => PayeeEvidenceKind::Name,
                PayeeProofMethod::Erc8004 => PayeeEvidenceKind::Erc8004,
                PayeeProofMethod::Offer => PayeeEvidenceKind::Offer,
            };
            let by_card = has_card && accept.contains(&PayeeEvidenceKind::Card) && inputs.is_on_network_of_card(entry);
            if by_card || accept.contains(&kind) || clresolve_core::mutant!("any-evidence-is-accepted") {
                continue;
            }
            let message = format!("The configuration does not accept evidence of the kind `{kind}`.");
            entry.objections.push(PaymentObjection::new(
                PaymentCheck::Payee,
                Reason::new(ReasonCode::PayeeUnproven).message(message),
            ));
            entry.proven = None;
        }
    }

    /// The objection to the URL that answered.
    fn origin_objections(&self) -> Vec<PaymentObjection> {
        let objection = |reason| vec![PaymentObjection::new(PaymentCheck::Route, reason)];
        let mismatch = Reason::new(ReasonCode::OriginMismatch);
        let Some(url) = self.request.url.as_deref() else {
            let unknown =
                Reason::new(ReasonCode::InvokeNoRoute).message("The request does not contain the URL that answered.");
            return objection(unknown);
        };
        let Some(origin) = &self.origin else {
            return objection(mismatch.expected("an https URL without credentials").observed(url));
        };
        if !is_canonical_url(url) {
            return objection(mismatch.expected(origin.as_str()).observed(url));
        }
        match self.request.asked.as_deref() {
            Some(asked)
                if WebOrigin::from_url_text(asked).as_ref() != Some(origin)
                    && !clresolve_core::mutant!("any-origin-answers") =>
            {
                objection(mismatch.expected(asked).observed(origin.as_str()))
            }
            _ => Vec::new(),
        }
    }

    /// The objections to the identity and to who names it.
    fn identity_objections(
        &self,
        named: Option<&NamedSellerIdentity>,
        rows: &[PayeeEvidenceRow],
    ) -> Vec<PaymentObjection> {
        let objection = |reason| PaymentObjection::new(PaymentCheck::Identity, reason);
        let mut objections = Vec::new();
        if let Some(given) = self.request.name.as_deref().filter(|name| name.parse::<SellerIdentity>().is_err()) {
            objections.push(objection(Reason::new(ReasonCode::NameInvalid).observed(given)));
        }
        // The unread entry may bind the origin to another identity.
        if let Err(reason) = &self.remembered
            && !clresolve_core::mutant!("unread-memory-binds-nobody")
        {
            objections.push(PaymentObjection::from_gate(ReasonEffect::Unknown, reason.code.slug()));
        }
        if let Some((known, other)) = self.conflicting_identities(named)
            && !clresolve_core::mutant!("identities-may-change")
        {
            let reason =
                Reason::new(ReasonCode::IdentityChanged).expected(known.to_string()).observed(other.to_string());
            objections.push(objection(reason));
        }
        let trusts_asker = named.is_some_and(|named| {
            matches!(named.named_by, SellerIdentitySource::Configuration | SellerIdentitySource::Caller)
        });
        let is_known = trusts_asker || self.remembered_identity().is_some();
        let is_seen = !is_known && !clresolve_core::mutant!("payees-change-unseen");
        let other_payee = self.replaced_payee().filter(|_| is_seen);
        if let Some(before) = other_payee {
            let reason = Reason::new(ReasonCode::PayeeChanged).expected(before.to_string());
            objections.push(PaymentObjection::new(PaymentCheck::Payee, reason));
        }
        let Some(NamedSellerIdentity { identity, named_by: SellerIdentitySource::Seller }) = named else {
            return objections;
        };
        let may_be_first = other_payee.is_none() && self.rules.policy.first_contact == FirstContactPolicy::Allow;
        let is_allowed = may_be_first && self.may_be_bound(rows);
        if !is_allowed && !clresolve_core::mutant!("sellers-name-themselves") {
            objections.push(objection(Reason::new(ReasonCode::IdentityClaimed).observed(identity.to_string())));
        }
        objections
    }

    /// Whether an identity that the seller names may be bound to the origin. It must be proven in both directions, and
    /// the origin must have presented it: a name in the request, which a model may have chosen, does not count.
    fn may_be_bound(&self, rows: &[PayeeEvidenceRow]) -> bool {
        let is_shown = self.request.name.is_none() || clresolve_core::mutant!("models-propose-identities");
        is_shown && is_proven_both_ways(rows)
    }

    /// The name in the request, in normal form if it has one.
    fn requested_name(&self) -> Option<String> {
        let given = self.request.name.as_deref()?;
        Some(EnsName::parse(given).map_or_else(|_| given.to_owned(), |name| name.as_str().to_owned()))
    }

    /// The pinned or remembered identity, and the different one that the caller or the seller names now.
    fn conflicting_identities(&self, named: Option<&NamedSellerIdentity>) -> Option<(SellerIdentity, SellerIdentity)> {
        let named = named?;
        if named.named_by == SellerIdentitySource::Configuration {
            let given: SellerIdentity = self.request.name.as_deref()?.parse().ok()?;
            return (given != named.identity).then(|| (named.identity.clone(), given));
        }
        let known = self.remembered_identity()?.clone();
        let claim = self.claimed_identity().filter(|claim| *claim != known);
        let other = claim.or_else(|| Some(named.identity.clone()).filter(|identity| *identity != known))?;
        Some((known, other))
    }

    /// The payee that was demanded before, if no entry of the terms demands it now.
    fn replaced_payee(&self) -> Option<Address> {
        let before = self.remembered_entry()?.payee.as_ref()?;
        let terms = self.terms.as_ref().ok()?;
        let mut payees = terms.entries.iter().filter_map(|entry| entry.price.as_ref().ok()).map(|price| price.pay_to);
        payees.all(|payee| payee != before.address).then_some(before.address)
    }

    fn build_document(
        &self,
        question: &PaymentDecisionQuery<'_>,
        measure: &PaymentOptionCriteria<'_>,
        judgement: SellerCheckFindings<'_>,
    ) -> SellerCheckDocument {
        let SellerCheckFindings { named, rows: evidence, common, entries, objections } = judgement;
        let (entries, objections) = (entries.as_slice(), objections.as_slice());
        let of_objections = DecisionOutcome::from_objections(objections);
        let outcome = if entries.is_empty() { of_objections.undecided_if_allowed() } else { of_objections };
        let unchecked = decide::skipped_checks(question, entries, objections);
        let abort = outcome != DecisionOutcome::Allow || !unchecked.is_empty();
        let verdict = self.name.as_ref().map(|name| name.resolution.verdict());
        let fresh_until = verdict.map(|verdict| verdict.freshness.fresh_until);
        let end = |entries: &[JudgedPaymentOption<'_>]| decide::earliest_expiry(fresh_until, entries, measure.now);
        let valid_until = (!abort).then(|| end(entries)).flatten();
        let shown = entries.iter().find(|judged| judged.proven.is_some()).or_else(|| entries.first());
        let (stated, payees) = (decide::decision_subject(question, entries), decide::payees_digest(measure.payees));
        let mut reasons: Vec<Reason> = objections.iter().filter_map(|objection| objection.reason.clone()).collect();
        clresolve_core::reason::sort_reasons(&mut reasons);
        reasons.dedup();
        SellerCheckDocument {
            schema: SCHEMA,
            id: self.compute_id(named.as_ref(), &stated, &payees),
            name: self.requested_name().or_else(|| named.as_ref()?.identity.ens_name()),
            origin: self.origin.clone(),
            identity: named,
            verb: self.request.verb.clone(),
            reason: self.answer_sentence(measure, shown, objections, outcome),
            codes: objection_codes(objections),
            reasons,
            state: verdict.map(|verdict| verdict.state),
            verdict: verdict.map(|verdict| verdict.id.clone()),
            terms_digest: (!entries.is_empty()).then(|| canonical_digest(&stated)),
            entries: entries.iter().map(|judged| decide::option_result(&common, judged, end, valid_until)).collect(),
            price: shown.and_then(decide::price_document),
            payee: shown.and_then(|judged| decide::payee_document(judged, payees)),
            checked: decide::ALL
                .into_iter()
                .filter(|check| decide::is_check_applicable(*check, question) && !unchecked.contains(check))
                .collect(),
            unchecked: unchecked.into_iter().collect(),
            valid_until,
            decision: outcome,
            abort,
            evidence,
        }
    }

    fn compute_id(&self, named: Option<&NamedSellerIdentity>, stated: &Value, payees: &str) -> String {
        let SellerCheckPolicy { policy, limits, gate, .. } = &self.rules;
        let deny: Vec<_> = gate.deny.iter().map(|code| code.slug()).collect();
        canonical_digest(&json!({
            "schema": SCHEMA,
            "origin": self.origin,
            "identity": named,
            "verb": self.request.verb,
            "signed": self.request.header,
            "limits": limits,
            "policy": {
                "accept": policy.accept, "first-contact": policy.first_contact, "offchain": policy.offchain,
                "deny": deny, "min-proof": gate.min_proof, "verbs": gate.verbs,
            },
            "payees": payees,
            "verdict": self.name.as_ref().map(|name| &name.resolution.verdict().id),
            "remembered": self.remembered_entry(),
            "terms": stated,
        }))
    }

    fn answer_sentence(
        &self,
        measure: &PaymentOptionCriteria<'_>,
        shown: Option<&JudgedPaymentOption<'_>>,
        objections: &[PaymentObjection],
        outcome: DecisionOutcome,
    ) -> String {
        let priced = shown.and_then(|judged| Some((judged.entry.price.as_ref().ok()?, judged.proven?)));
        let first = objections.iter().min_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        match (outcome, priced, first) {
            (DecisionOutcome::Allow, Some((price, proven)), _) => {
                decide::payment_phrase(measure, price, proven, self.evidence_block())
            }
            (_, _, Some(first)) => format!("{}: {}", first.code, first.message),
            _ => String::new(),
        }
    }

    /// The origin and what the memory must add to its entry.
    fn memory_addition(&self, answer: &SellerCheckDocument, now: Timestamp) -> Option<(WebOrigin, OriginMemoryEntry)> {
        let origin = self.origin.clone()?;
        let (named, price, payee) = (answer.identity.as_ref(), answer.price.as_ref()?, answer.payee.as_ref()?);
        let known = self.remembered_entry()?;
        let mut next = OriginMemoryEntry::default();
        let is_seen = |seen: &RememberedPayee| (seen.address, &seen.network) == (payee.address, &price.network);
        if !known.payee.as_ref().is_some_and(is_seen) {
            let (address, network) = (payee.address, price.network.clone());
            next.payee = Some(RememberedPayee { address, network, at: now, block: self.evidence_block() });
        }
        let by_seller = |named: &&NamedSellerIdentity| {
            named.named_by == SellerIdentitySource::Seller && self.may_be_bound(&answer.evidence)
        };
        if let Some(named) = named.filter(by_seller) {
            let seen = ProvenSellerIdentity { identity: named.identity.clone(), at: now, block: self.evidence_block() };
            // Each entry is paid on its own, so a single passing entry binds the origin.
            if known.identity.is_none() && answer.entries.iter().any(|row| !row.abort) {
                next.identity = Some(seen);
            } else {
                next.proposed = Some(seen);
            }
        }
        Some((origin, next))
    }
}

struct SellerCheckFindings<'a> {
    named: Option<NamedSellerIdentity>,
    rows: Vec<PayeeEvidenceRow>,
    /// The objections that apply to every entry.
    common: Vec<PaymentObjection>,
    entries: Vec<JudgedPaymentOption<'a>>,
    objections: Vec<PaymentObjection>,
}

/// An objection for each contradicted row that has none yet: no row that speaks against the payment is ever dropped.
fn contradiction_objections(
    rows: &[PayeeEvidenceRow],
    common: &[PaymentObjection],
    entries: &[JudgedPaymentOption<'_>],
) -> Vec<PaymentObjection> {
    let of_entries = entries.iter().flat_map(|entry| entry.objections.iter());
    let made: Vec<&str> =
        common.iter().chain(of_entries).filter(|one| one.is_decisive()).map(|one| &*one.code).collect();
    let dropped = clresolve_core::mutant!("contradicted-rows-are-dropped");
    let contradicted = rows.iter().filter(|row| row.state == PayeeEvidenceState::Contradicted && !dropped);
    let missing = contradicted.filter(|row| !row.codes.iter().any(|code| made.contains(&&**code)));
    let code = |row: &PayeeEvidenceRow| {
        row.codes.first().cloned().unwrap_or_else(|| ReasonCode::PayeeMismatch.slug().to_owned())
    };
    missing.map(|row| PaymentObjection::from_gate(ReasonEffect::Fail, &code(row))).collect()
}

/// Whether the name or the registration is proven in both directions.
fn is_proven_both_ways(rows: &[PayeeEvidenceRow]) -> bool {
    let kinds = [PayeeEvidenceKind::Name, PayeeEvidenceKind::Erc8004];
    if clresolve_core::mutant!("one-way-is-both-ways") {
        return rows.iter().any(|row| kinds.contains(&row.kind) && row.state == PayeeEvidenceState::Claimed);
    }
    rows.iter().any(|row| kinds.contains(&row.kind) && row.state == PayeeEvidenceState::Proven)
}

/// The identity that `extra` of an entry, or `extensions` of the terms, names: its member `erc8004`, else `ens`.
fn parse_claimed_identity(extra: &Map<String, Value>) -> Option<SellerIdentity> {
    let registration = extra.get("erc8004").and_then(RegisteredAgentId::from_json).map(SellerIdentity::Registration);
    registration.or_else(|| extra.get("ens")?.as_str()?.parse().ok())
}
