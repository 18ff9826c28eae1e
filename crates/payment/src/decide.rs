//! The payment decision: runs every check once and combines the results.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_core::text::excerpt_text;
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::canonical_digest;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::asset::AssetId;
use crate::decision::{
    DecisionOutcome, PayeeDocument, PaymentCheck, PaymentDecision, PaymentObjection, PaymentOptionResult,
    PriceDocument, SCHEMA, objection_codes,
};
use crate::limits::{AssetLimit, NetworkAllowlistSource, PaymentLimits};
use crate::network::Caip2Network;
use crate::offer::{OfferResources, ParsedOffers};
use crate::payee::{NetworkPayees, PayeeProof};
use crate::route::{AgentRoute, RouteSource, is_tool_resource, resource_objection};
use crate::signed::PaymentHeader;
use crate::terms::{ExactPrice, PaymentOption, PaymentTerms, StatedEip712Domain, TransferMethod};

/// The question: may these terms be paid?
#[derive(Clone, Copy, Debug)]
pub struct PaymentDecisionQuery<'a> {
    /// The verb to invoke.
    pub verb: &'a str,
    /// The terms, or why the reply contains none.
    pub terms: Result<&'a PaymentTerms, &'a Reason>,
    /// Whether the terms came in an HTTP reply. Only an MCP result sells tools; an HTTP reply does not.
    pub is_http_reply: bool,
    /// The URL that answered. `None` if the caller does not know it.
    pub url: Option<&'a str>,
    /// The entry that the client has chosen. `None`: any entry.
    pub selected: Option<&'a PaymentOptionSelection>,
    /// The payment header that the client is about to send.
    pub signed: Option<&'a str>,
}

/// The entry that a client has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaymentOptionSelection {
    /// Its index in `accepts`, starting at 0.
    Index(usize),
    /// The entry itself, compared as a JSON value (RFC 8785).
    Entry(Value),
    /// Not an entry. Contains the cause.
    Unreadable(String),
}

/// What is known about the agent, and what the operator permits.
#[derive(Clone, Copy, Debug)]
pub struct PaymentKnowledge<'a> {
    /// The verdict of a live resolution.
    pub resolution: &'a Resolution,
    /// The gate's policy.
    pub gate: &'a GatePolicy,
    /// The limits in force, including those that the caller tightened.
    pub limits: &'a PaymentLimits,
    /// The URL behind the agent's entry, or why it is unknown.
    pub route: Result<&'a AgentRoute, &'a Reason>,
    /// Where the name's tools are called over MCP, or why that is unknown. `None` if the name publishes no such URL.
    pub tools: Option<Result<&'a AgentRoute, &'a Reason>>,
    /// Payees by network. A missing network has no payees.
    pub payees: &'a BTreeMap<Caip2Network, NetworkPayees>,
    /// The current time.
    pub now: Timestamp,
}

/// Decides whether the payment may be made.
pub fn decide_payment(question: &PaymentDecisionQuery<'_>, known: &PaymentKnowledge<'_>) -> PaymentDecision {
    let tools = if question.is_http_reply { None } else { configured_route(question, known).map(Ok).or(known.tools) };
    let known = &PaymentKnowledge { route: effective_route(question, known), tools, ..*known };
    let common = common_objections(question, known);
    let (entries, terms_objection) = judge_terms(question, &PaymentOptionCriteria::from_knowledge(known));
    let mut objections = common.clone();
    objections.extend(terms_objection);
    objections.extend(entries.iter().flat_map(|entry| entry.objections.iter().cloned()));
    build_decision(question, known, &common, &entries, objections)
}

/// What the entries of the terms are compared with.
#[derive(Clone, Copy)]
pub(crate) struct PaymentOptionCriteria<'a> {
    pub(crate) limits: &'a PaymentLimits,
    /// The networks of the card. `None` if no card stands behind the terms.
    pub(crate) card_networks: Option<&'a [String]>,
    pub(crate) tools: Option<Result<&'a AgentRoute, &'a Reason>>,
    pub(crate) payees: &'a BTreeMap<Caip2Network, NetworkPayees>,
    pub(crate) now: Timestamp,
}

impl<'a> PaymentOptionCriteria<'a> {
    fn from_knowledge(known: &PaymentKnowledge<'a>) -> Self {
        let agent = known.resolution.verdict().identity.as_ref();
        let card_networks = Some(agent.map(|agent| agent.networks.as_slice()).unwrap_or_default());
        Self { limits: known.limits, card_networks, tools: known.tools, payees: known.payees, now: known.now }
    }
}

/// Judges the entries that the question is about. Without any, returns the objection to the terms.
pub(crate) fn judge_terms<'t>(
    question: &PaymentDecisionQuery<'t>,
    measure: &PaymentOptionCriteria<'_>,
) -> (Vec<JudgedPaymentOption<'t>>, Option<PaymentObjection>) {
    let judged = match question.terms {
        Ok(terms) => selected_options(terms, question.selected)
            .map(|entries| judge_all_options(terms, &entries, question, measure)),
        Err(reason) => Err(Box::new(reason.clone())),
    };
    let entries = match judged {
        Ok(entries) => entries,
        Err(reason) => return (Vec::new(), Some(PaymentObjection::new(PaymentCheck::Amount, *reason))),
    };
    // A payment header signs one entry. If the client selected none, it is the entry whose terms the header satisfies.
    let kept = question
        .signed
        .and_then(|_| entries.iter().position(|entry| !entry.objections.iter().any(PaymentObjection::is_decisive)));
    let entries = match kept {
        Some(place) => entries.into_iter().skip(place).take(1).collect(),
        None => entries,
    };
    (entries, None)
}

/// The networks of the open entries (see [`PaymentOptionResult::is_but_for_the_payee`]). Querying further sources of
/// payees can help only these entries.
pub fn networks_with_undecided_payee(terms: &PaymentTerms, rows: &[PaymentOptionResult]) -> BTreeSet<Caip2Network> {
    let open = rows.iter().filter(|row| row.abort && row.is_but_for_the_payee);
    let prices = open.filter_map(|row| terms.entries.get(row.index)?.price.as_ref().ok());
    prices.map(|price| price.network.clone()).collect()
}

/// The URL behind the entry for these terms. If every entry sells a tool, this is the URL of the name's tools, even if
/// another record would otherwise take precedence. The configuration takes precedence over both.
fn effective_route<'a>(
    question: &PaymentDecisionQuery<'_>,
    known: &PaymentKnowledge<'a>,
) -> Result<&'a AgentRoute, &'a Reason> {
    let is_configured = known.route.is_ok_and(|route| route.source() == RouteSource::Configured);
    let sells_tool = |entry: &PaymentOption| entry.resource.as_deref().is_some_and(is_tool_resource);
    let sells_tools = |terms: &PaymentTerms| !terms.entries.is_empty() && terms.entries.iter().all(sells_tool);
    match known.tools.filter(|_| !question.is_http_reply) {
        Some(tools) if !is_configured && question.terms.is_ok_and(sells_tools) => tools,
        Some(_) | None => known.route,
    }
}

/// The configured route, if it is the URL that answered. For tools it takes precedence over the name's record.
fn configured_route<'a>(question: &PaymentDecisionQuery<'_>, known: &PaymentKnowledge<'a>) -> Option<&'a AgentRoute> {
    let has_answered = |route: &&AgentRoute| question.url.is_some_and(|url| route.url_objection(url).is_none());
    known.route.ok().filter(|route| route.source() == RouteSource::Configured).filter(has_answered)
}

/// One entry with the results of its checks.
pub(crate) struct JudgedPaymentOption<'a> {
    pub(crate) index: usize,
    pub(crate) entry: &'a PaymentOption,
    pub(crate) proven: Option<PayeeProof>,
    pub(crate) objections: Vec<PaymentObjection>,
    /// Checks that could not run because the limit for the price is missing.
    pub(crate) unmade: Vec<PaymentCheck>,
}

fn build_decision(
    question: &PaymentDecisionQuery<'_>,
    known: &PaymentKnowledge<'_>,
    common: &[PaymentObjection],
    entries: &[JudgedPaymentOption<'_>],
    objections: Vec<PaymentObjection>,
) -> PaymentDecision {
    let verdict = known.resolution.verdict();
    let outcome = if entries.is_empty() {
        DecisionOutcome::from_objections(&objections).undecided_if_allowed()
    } else {
        DecisionOutcome::from_objections(&objections)
    };
    let unchecked = all_skipped_checks(question, known, entries, &objections);
    let abort = outcome != DecisionOutcome::Allow || !unchecked.is_empty();
    let until = (!abort).then(|| decision_expiry(known, entries)).flatten();
    let end = |entries: &[JudgedPaymentOption<'_>]| decision_expiry(known, entries);
    let rows = entries.iter().map(|judged| option_result(common, judged, end, until)).collect();
    let shown = entries.iter().find(|judged| judged.proven.is_some()).or_else(|| entries.first());
    let name = verdict.name.normalized.clone().unwrap_or_else(|| verdict.name.input.clone());
    let mut reasons: Vec<Reason> = objections.iter().filter_map(|objection| objection.reason.clone()).collect();
    clresolve_core::reason::sort_reasons(&mut reasons);
    reasons.dedup();
    let (stated, payees) = (decision_subject(question, entries), payees_digest(known.payees));
    let terms_digest = (!entries.is_empty()).then(|| canonical_digest(&stated));
    PaymentDecision {
        schema: SCHEMA,
        id: compute_decision_id(question, known, &name, stated, &payees),
        reason: decision_sentence(known, shown, &objections, outcome),
        codes: objection_codes(&objections),
        reasons,
        state: verdict.state,
        verdict: verdict.id.clone(),
        terms_digest,
        entries: rows,
        price: shown.and_then(price_document),
        payee: shown.and_then(|judged| payee_document(judged, payees)),
        route: known.route.ok().cloned(),
        checked: ALL
            .into_iter()
            .filter(|check| is_check_applicable(*check, question) && !unchecked.contains(check))
            .collect(),
        valid_until: until,
        unchecked: unchecked.into_iter().collect(),
        name,
        verb: question.verb.to_owned(),
        decision: outcome,
        abort,
    }
}

pub(crate) const ALL: [PaymentCheck; 9] = [
    PaymentCheck::Identity,
    PaymentCheck::Route,
    PaymentCheck::Resource,
    PaymentCheck::Network,
    PaymentCheck::Asset,
    PaymentCheck::Amount,
    PaymentCheck::Timeout,
    PaymentCheck::Payee,
    PaymentCheck::Signature,
];

/// Checks that require the price of an entry.
const OF_PRICE: [PaymentCheck; 5] =
    [PaymentCheck::Network, PaymentCheck::Asset, PaymentCheck::Amount, PaymentCheck::Timeout, PaymentCheck::Payee];

pub(crate) fn is_check_applicable(check: PaymentCheck, question: &PaymentDecisionQuery<'_>) -> bool {
    check != PaymentCheck::Signature || question.signed.is_some()
}

fn all_skipped_checks(
    question: &PaymentDecisionQuery<'_>,
    known: &PaymentKnowledge<'_>,
    entries: &[JudgedPaymentOption<'_>],
    objections: &[PaymentObjection],
) -> BTreeSet<PaymentCheck> {
    let mut unchecked = skipped_checks(question, entries, objections);
    if question.terms.is_err() && route_objection(question, known).is_some() {
        unchecked.insert(PaymentCheck::Route);
    }
    unchecked
}

/// The checks that could not run, whatever stands behind the terms.
pub(crate) fn skipped_checks(
    question: &PaymentDecisionQuery<'_>,
    entries: &[JudgedPaymentOption<'_>],
    objections: &[PaymentObjection],
) -> BTreeSet<PaymentCheck> {
    let mut unchecked: BTreeSet<PaymentCheck> = objections
        .iter()
        .filter(|objection| objection.effect == ReasonEffect::Unknown)
        .map(|objection| objection.check)
        .collect();
    if question.url.is_none() {
        unchecked.extend([PaymentCheck::Route, PaymentCheck::Resource]);
    }
    if entries.is_empty() {
        unchecked.insert(PaymentCheck::Resource);
        unchecked.extend(OF_PRICE);
        unchecked.insert(PaymentCheck::Signature);
    }
    unchecked.extend(entries.iter().flat_map(|judged| judged.unmade.iter()));
    unchecked.retain(|check| is_check_applicable(*check, question));
    unchecked
}

/// Objections that apply to every entry: identity and route.
fn common_objections(question: &PaymentDecisionQuery<'_>, known: &PaymentKnowledge<'_>) -> Vec<PaymentObjection> {
    let mut objections: Vec<PaymentObjection> = gate_objection(question, known).into_iter().collect();
    match (known.route, question.url) {
        // A tool is called at another URL, and without terms it is unknown whether they sell one.
        (Ok(_), Some(_)) if question.terms.is_err() => {}
        (Ok(_), Some(_)) => {
            objections.extend(
                route_objection(question, known).map(|reason| PaymentObjection::new(PaymentCheck::Route, reason)),
            );
        }
        (Err(reason), _) => objections.push(PaymentObjection::new(PaymentCheck::Route, reason.clone())),
        (Ok(route), None) => {
            let unknown = Reason::new(ReasonCode::InvokeNoRoute).expected(route.url().as_str());
            let unknown = unknown.message("The request does not contain the URL that answered.");
            objections.push(PaymentObjection::new(PaymentCheck::Route, unknown));
        }
    }
    objections
}

/// The objection to the URL that answered.
fn route_objection(question: &PaymentDecisionQuery<'_>, known: &PaymentKnowledge<'_>) -> Option<Reason> {
    known.route.ok()?.url_objection(question.url?)
}

/// The decision of the gate.
fn gate_objection(question: &PaymentDecisionQuery<'_>, known: &PaymentKnowledge<'_>) -> Option<PaymentObjection> {
    let Some(code) = known.gate.request_objection(known.resolution, Some(question.verb), None) else {
        return numbered_block_objection(known);
    };
    if clresolve_core::mutant!("the-gate-is-not-asked") {
        return None;
    }
    let effect = match known.resolution.verdict().state {
        TrustState::Indeterminate => ReasonEffect::Unknown,
        TrustState::Trusted | TrustState::Untrusted => ReasonEffect::Fail,
    };
    Some(PaymentObjection::from_gate(effect, code))
}

/// A decision applies to the present, so a block that was chosen by number is not accepted.
fn numbered_block_objection(known: &PaymentKnowledge<'_>) -> Option<PaymentObjection> {
    let block = &known.resolution.verdict().anchor.as_ref()?.block;
    if !block.is_chosen_by_number() || clresolve_core::mutant!("the-past-is-paid") {
        return None;
    }
    let reason = Reason::new(ReasonCode::ChainBehind)
        .message("A decision applies to the present, but this block was chosen by number.");
    Some(PaymentObjection::new(PaymentCheck::Identity, reason.observed(block.tag.as_str())))
}

/// The entries to decide about, with their indices.
pub(crate) fn selected_options<'t>(
    terms: &'t PaymentTerms,
    selected: Option<&PaymentOptionSelection>,
) -> Result<Vec<(usize, &'t PaymentOption)>, Box<Reason>> {
    let all = terms.entries.iter().enumerate();
    let entries: Vec<_> = match selected {
        None => return Ok(all.collect()),
        Some(PaymentOptionSelection::Index(index)) if terms.moved.contains(index) => {
            let message = "Another place of the reply has a different entry at the index that the client selected.";
            let reason =
                Reason::new(ReasonCode::PaymentTermsAmbiguous).message(message).at_place(format!("/accepts/{index}"));
            return Err(Box::new(reason.expected("the entry itself").observed(index.to_string())));
        }
        Some(PaymentOptionSelection::Index(index)) => all.filter(|(place, _)| place == index).collect(),
        Some(PaymentOptionSelection::Entry(entry)) => {
            let wanted = canonical_digest(entry);
            all.filter(|(_, entry)| canonical_digest(&entry.json) == wanted).collect()
        }
        Some(PaymentOptionSelection::Unreadable(_)) => Vec::new(),
    };
    if entries.len() == 1 || clresolve_core::mutant!("any-selection") {
        return Ok(entries);
    }
    let count = entries.len();
    let reason = Reason::new(ReasonCode::PaymentTermsAmbiguous)
        .message("The client's selection does not match exactly one entry.")
        .expected("1 entry")
        .observed(format!("{count} entries"));
    Err(Box::new(reason))
}

fn judge_all_options<'t>(
    terms: &PaymentTerms,
    entries: &[(usize, &'t PaymentOption)],
    question: &PaymentDecisionQuery<'_>,
    measure: &PaymentOptionCriteria<'_>,
) -> Vec<JudgedPaymentOption<'t>> {
    let offers = ParsedOffers::from_values(&terms.offers);
    let payment = question.signed.map(|header| PaymentHeader::parse_for_terms(header, terms));
    entries.iter().map(|(index, entry)| judge_option(&offers, &payment, *index, entry, question, measure)).collect()
}

fn judge_option<'t>(
    offers: &ParsedOffers,
    payment: &Option<Result<PaymentHeader, Box<Reason>>>,
    index: usize,
    entry: &'t PaymentOption,
    question: &PaymentDecisionQuery<'_>,
    measure: &PaymentOptionCriteria<'_>,
) -> JudgedPaymentOption<'t> {
    let mut objections = Vec::new();
    let resource = entry.resource.as_deref();
    objections.extend(
        tool_over_http_objection(question, resource).map(|reason| PaymentObjection::new(PaymentCheck::Route, reason)),
    );
    let differs = question.url.and_then(|url| resource_objection(resource, url, measure.tools));
    let is_elsewhere = differs.as_ref().is_some_and(|reason| reason.code == ReasonCode::ResourceMismatch)
        && !clresolve_core::mutant!("offers-for-any-host");
    let resources = OfferResources::from_texts(question.url.into_iter().chain(resource.filter(|_| !is_elsewhere)));
    objections.extend(differs.map(|reason| PaymentObjection::new(PaymentCheck::Resource, reason)));
    let price = match &entry.price {
        Ok(price) => price,
        Err(reason) => {
            objections.push(PaymentObjection::new(PaymentCheck::Amount, (**reason).clone()));
            let unmade = OF_PRICE.into_iter().chain([PaymentCheck::Signature]).collect();
            return JudgedPaymentOption { index, entry, proven: None, objections, unmade };
        }
    };
    objections
        .extend(network_objection(price, measure).map(|reason| PaymentObjection::new(PaymentCheck::Network, reason)));
    let id = AssetId { network: price.network.clone(), address: price.asset };
    let limit = measure.limits.assets.get(&id);
    objections.extend(price_objections(price, limit, measure.limits));
    let nobody = NetworkPayees::default();
    let payees = measure.payees.get(&price.network).unwrap_or(&nobody);
    let proven = match payees.prove_payee(price, offers, &resources, measure.now) {
        Ok(proven) => Some(proven),
        Err(reasons) => {
            objections.extend(reasons.into_iter().map(|reason| PaymentObjection::new(PaymentCheck::Payee, reason)));
            None
        }
    };
    let refused = match (payment, limit) {
        (Some(Err(reason)), _) => Some(reason.clone()),
        (Some(Ok(payment)), Some(limit)) => {
            payment.check_against_price(&entry.json, price, &limit.asset, measure.now).err()
        }
        (Some(Ok(_)), None) | (None, _) => None,
    };
    let unmade = skipped_option_checks(measure.limits, limit, payment);
    objections.extend(refused.map(|reason| PaymentObjection::new(PaymentCheck::Signature, *reason)));
    JudgedPaymentOption { index, entry, proven, objections, unmade }
}

/// Tools are called over MCP, so a tool's terms in an HTTP reply come from a different place.
fn tool_over_http_objection(question: &PaymentDecisionQuery<'_>, resource: Option<&str>) -> Option<Reason> {
    let tool = resource.filter(|resource| question.is_http_reply && is_tool_resource(resource))?;
    let message = "An HTTP reply names an MCP tool as its resource.";
    Some(Reason::new(ReasonCode::EndpointMismatch).message(message).expected("the URL that answered").observed(tool))
}

/// The checks that could not run because this entry's price has no limit.
fn skipped_option_checks(
    limits: &PaymentLimits,
    limit: Option<&AssetLimit>,
    payment: &Option<Result<PaymentHeader, Box<Reason>>>,
) -> Vec<PaymentCheck> {
    if limit.is_some() {
        return Vec::new();
    }
    let of_limits: &[PaymentCheck] = if limits.set { &[] } else { &[PaymentCheck::Network, PaymentCheck::Asset] };
    let of_header = matches!(payment, Some(Ok(_))).then_some(PaymentCheck::Signature);
    [PaymentCheck::Amount].into_iter().chain(of_limits.iter().copied()).chain(of_header).collect()
}

/// Rule CL-71, applied to the payment's network.
fn network_objection(price: &ExactPrice, measure: &PaymentOptionCriteria<'_>) -> Option<Reason> {
    let (network, limits) = (&price.network, measure.limits);
    let of_card = measure.card_networks.filter(|_| limits.source == NetworkAllowlistSource::Card);
    let in_card = of_card.is_none_or(|networks| networks.iter().any(|listed| listed == network.as_str()));
    // If nothing is configured at all, the missing limit is the reason, not the network.
    let in_limits = limits.networks.contains(network) || !limits.set;
    if (in_card && in_limits) || clresolve_core::mutant!("pays-on-any-network") {
        return None;
    }
    let permitted: Vec<&str> = limits.networks.iter().map(Caip2Network::as_str).collect();
    let expected = match of_card {
        None => format!("one of the limits: {}", permitted.join(", ")),
        Some(of_card) => {
            format!("one of the card ({}) and of the limits ({})", of_card.join(", "), permitted.join(", "))
        }
    };
    Some(Reason::new(ReasonCode::PaymentNetworkMismatch).expected(expected).observed(network.as_str()))
}

/// Compares scheme, asset, amount and timeout with the limits.
fn price_objections(price: &ExactPrice, limit: Option<&AssetLimit>, limits: &PaymentLimits) -> Vec<PaymentObjection> {
    let mut objections = Vec::new();
    if limits.schemes.is_empty() && !clresolve_core::mutant!("no-scheme-is-every-scheme") {
        let reason =
            Reason::new(ReasonCode::PaymentSchemeUnchecked).expected("a scheme of the limits: none").observed("exact");
        objections.push(PaymentObjection::new(PaymentCheck::Amount, reason));
    }
    let most = limits.max_timeout_seconds;
    if price.max_timeout_seconds == 0 && !clresolve_core::mutant!("no-time-is-enough") {
        let reason =
            Reason::new(ReasonCode::PaymentTimeoutExcessive).message("The terms leave no time to pay.").observed("0 s");
        objections.push(PaymentObjection::new(PaymentCheck::Timeout, reason));
    }
    if price.max_timeout_seconds > most && !clresolve_core::mutant!("valid-for-years") {
        let reason = Reason::new(ReasonCode::PaymentTimeoutExcessive)
            .expected(format!("at most {most} s"))
            .observed(format!("{} s", price.max_timeout_seconds));
        objections.push(PaymentObjection::new(PaymentCheck::Timeout, reason));
    }
    let Some(limit) = limit else {
        objections.extend(unlisted_asset_objections(price, limits));
        return objections;
    };
    objections.extend(domain_objection(price, limit).map(|reason| PaymentObjection::new(PaymentCheck::Asset, reason)));
    match limit.max_amount {
        None if clresolve_core::mutant!("no-limit-is-needed") => {}
        None => {
            objections.push(PaymentObjection::new(PaymentCheck::Amount, Reason::new(ReasonCode::PaymentLimitMissing)))
        }
        Some(most) if price.amount > most && !clresolve_core::mutant!("pays-any-amount") => {
            let reason = Reason::new(ReasonCode::PaymentAmountExceeds)
                .expected(format!("at most {most}"))
                .observed(price.amount.to_string());
            objections.push(PaymentObjection::new(PaymentCheck::Amount, reason));
        }
        Some(_) => {}
    }
    objections
}

/// The objection to an asset that the limits do not list.
fn unlisted_asset_objections(price: &ExactPrice, limits: &PaymentLimits) -> Vec<PaymentObjection> {
    if clresolve_core::mutant!("every-asset-is-listed") {
        return Vec::new();
    }
    let missing = PaymentObjection::new(PaymentCheck::Amount, Reason::new(ReasonCode::PaymentLimitMissing));
    if !limits.set {
        return vec![missing];
    }
    let reason = Reason::new(ReasonCode::PaymentAssetUnlisted).observed(price.asset.to_string());
    let listed = limits.assets.keys().filter(|id| id.network == price.network).map(|id| id.address.to_string());
    let reason = match listed.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => reason,
        listed => reason.expected(listed),
    };
    vec![PaymentObjection::new(PaymentCheck::Asset, reason)]
}

/// The EIP-712 domain stated in the terms must be that of the asset. With Permit2 it may be missing, since Permit2 has
/// its own domain.
fn domain_objection(price: &ExactPrice, limit: &AssetLimit) -> Option<Reason> {
    let StatedEip712Domain { name, version } = &price.domain;
    let is_optional = price.transfer == TransferMethod::Permit2;
    let agrees = |stated: &Option<String>, known: &str| stated.as_deref().map_or(is_optional, |stated| stated == known);
    let asset = &limit.asset;
    if (agrees(name, &asset.name) && agrees(version, &asset.version)) || clresolve_core::mutant!("any-domain") {
        return None;
    }
    let shown = |stated: &Option<String>| stated.as_deref().map_or_else(|| "missing".to_owned(), excerpt_text);
    let observed = format!("extra.name {}, extra.version {}", shown(name), shown(version));
    let expected = format!("extra.name {}, extra.version {}", asset.name, asset.version);
    Some(Reason::new(ReasonCode::PaymentAssetUnlisted).expected(expected).observed(observed))
}

/// The row of an entry. `until` computes when permission to pay some entries expires, `end` is the expiry of the whole
/// decision.
pub(crate) fn option_result(
    common: &[PaymentObjection],
    judged: &JudgedPaymentOption<'_>,
    until: impl Fn(&[JudgedPaymentOption<'_>]) -> Option<Timestamp>,
    end: Option<Timestamp>,
) -> PaymentOptionResult {
    let objections = [common, judged.objections.as_slice()].concat();
    let abort = objections.iter().any(PaymentObjection::is_decisive);
    let own = (!abort).then(|| until(std::slice::from_ref(judged))).flatten();
    let mut decisive = objections.iter().filter(|objection| objection.is_decisive());
    PaymentOptionResult {
        index: judged.index,
        abort,
        codes: objection_codes(&objections),
        valid_until: own.filter(|_| own != end),
        is_but_for_the_payee: decisive.all(PaymentObjection::may_depend_on_payee),
    }
}

pub(crate) fn price_document(judged: &JudgedPaymentOption<'_>) -> Option<PriceDocument> {
    judged.entry.price.as_ref().ok().map(PriceDocument::from_price)
}

pub(crate) fn payee_document(judged: &JudgedPaymentOption<'_>, payees: String) -> Option<PayeeDocument> {
    let price = judged.entry.price.as_ref().ok()?;
    Some(PayeeDocument {
        address: price.pay_to,
        network: price.network.clone(),
        proven_by: judged.proven.map(|proven| proven.by),
        digest: payees,
    })
}

fn decision_sentence(
    known: &PaymentKnowledge<'_>,
    shown: Option<&JudgedPaymentOption<'_>>,
    objections: &[PaymentObjection],
    outcome: DecisionOutcome,
) -> String {
    let first = objections.iter().min_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    let priced = shown.and_then(|judged| Some((judged.entry.price.as_ref().ok()?, judged.proven?)));
    match (outcome, priced, first) {
        (DecisionOutcome::Allow, Some((price, proven)), _) => {
            let block = known.resolution.verdict().anchor.as_ref().map(|anchor| anchor.block.number);
            payment_phrase(&PaymentOptionCriteria::from_knowledge(known), price, proven, block)
        }
        (_, _, Some(first)) => format!("{}: {}", first.code, first.message),
        _ => String::new(),
    }
}

/// A phrase that states the payment: what is paid to whom.
pub(crate) fn payment_phrase(
    measure: &PaymentOptionCriteria<'_>,
    price: &ExactPrice,
    proven: PayeeProof,
    block: Option<u64>,
) -> String {
    let id = AssetId { network: price.network.clone(), address: price.asset };
    let amount = match measure.limits.assets.get(&id) {
        Some(limit) => format!("{} {}", limit.asset.format_units(price.amount), limit.asset.symbol),
        None => format!("{} of {}", price.amount, price.asset),
    };
    let nobody = NetworkPayees::default();
    let payees = measure.payees.get(&price.network).unwrap_or(&nobody);
    let (network, provenance) = (&price.network, payees.describe_proof(proven.by, &price.network, block));
    format!("Pay {amount} ({network}) to {}, {provenance}.", price.pay_to)
}

/// The subject of the decision: the terms, or why there are none.
pub(crate) fn decision_subject(question: &PaymentDecisionQuery<'_>, entries: &[JudgedPaymentOption<'_>]) -> Value {
    if let (Ok(terms), false) = (question.terms, entries.is_empty()) {
        let entries: Vec<&PaymentOption> = entries.iter().map(|judged| judged.entry).collect();
        return terms_subject(question.url, terms, &entries);
    }
    let selected = question.selected.map(|selected| match selected {
        PaymentOptionSelection::Index(index) => json!(index),
        PaymentOptionSelection::Entry(entry) => entry.clone(),
        PaymentOptionSelection::Unreadable(why) => json!({"unreadable": why}),
    });
    json!({
        "url": question.url,
        "version": question.terms.ok().map(|terms| terms.version.version_number()),
        "entries": [],
        "offers": question.terms.ok().map(|terms| &terms.offers),
        "selected": selected,
        "unreadable": question.terms.err(),
    })
}

/// The subject of the decision, if it consists of these entries of the terms.
pub(crate) fn terms_subject(url: Option<&str>, terms: &PaymentTerms, entries: &[&PaymentOption]) -> Value {
    let entry = |entry: &&PaymentOption| json!({"entry": entry.json, "resource": entry.resource});
    json!({
        "url": url,
        "version": terms.version.version_number(),
        "entries": entries.iter().map(entry).collect::<Vec<_>>(),
        "offers": terms.offers,
        "selected": null,
        "unreadable": null,
    })
}

fn compute_decision_id(
    question: &PaymentDecisionQuery<'_>,
    known: &PaymentKnowledge<'_>,
    name: &str,
    stated: Value,
    payees: &str,
) -> String {
    let (verdict, gate) = (known.resolution.verdict(), known.gate);
    let deny: Vec<_> = gate.deny.iter().map(|code| code.slug()).collect();
    let mut decided = json!({
        "schema": SCHEMA,
        "name": name,
        "verb": question.verb,
        "signed": question.signed,
        "limits": known.limits,
        "policy": {"deny": deny, "min-proof": gate.min_proof, "verbs": gate.verbs},
        "route": known.route.ok(),
        "payees": payees,
        "verdict": verdict.id,
        "anchor": verdict.anchor,
    });
    // Moved instead of copied: the terms are the longest part, and the macro would copy them.
    decided["terms"] = stated;
    canonical_digest(&decided)
}

/// The digest of everything that the name and the configuration specify about payees, and of the keys that sign offers.
pub(crate) fn payees_digest(payees: &BTreeMap<Caip2Network, NetworkPayees>) -> String {
    let named = |(network, payees): (&Caip2Network, &NetworkPayees)| {
        let keys: Vec<_> = payees.signers.ed25519.iter().map(|key| key.thumbprint().to_owned()).collect();
        json!({"network": network, "payees": payees.known_addresses(), "addresses": payees.signers.addresses, "keys": keys})
    };
    canonical_digest(&json!(payees.iter().map(named).collect::<Vec<_>>()))
}

fn decision_expiry(known: &PaymentKnowledge<'_>, entries: &[JudgedPaymentOption<'_>]) -> Option<Timestamp> {
    earliest_expiry(Some(known.resolution.verdict().freshness.fresh_until), entries, known.now)
}

/// The earliest expiry of the verdict, the proofs of the payees, and the terms.
pub(crate) fn earliest_expiry(
    verdict: Option<Timestamp>,
    entries: &[JudgedPaymentOption<'_>],
    now: Timestamp,
) -> Option<Timestamp> {
    let proofs = entries.iter().filter_map(|judged| judged.proven?.until);
    let prices = entries.iter().filter_map(|judged| judged.entry.price.as_ref().ok());
    let terms = prices.filter_map(|price| {
        let seconds = i64::try_from(price.max_timeout_seconds).ok()?;
        now.checked_add(SignedDuration::from_secs(seconds)).ok()
    });
    verdict.into_iter().chain(proofs).chain(terms).min()
}
