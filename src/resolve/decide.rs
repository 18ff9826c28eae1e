//! Decisions about payments: what the pure decision needs is gathered here.
//!
//! A question that address records, the configuration and the name's own endpoints settle costs no request beside those
//! of the verdict. Registrations and keys for offers are read where they could decide.

use std::collections::BTreeMap;

use clresolve_core::payment::{CoinType, EndpointKey};
use clresolve_payment::decide::{Knowledge, Question, decide};
use clresolve_payment::limits::Limits;
use clresolve_payment::network::Network;
use clresolve_payment::payee::{Claim, ClaimSource, Payees, ProvenBy};
use clresolve_payment::route::Route;
use clresolve_payment::terms::Terms;
use clresolve_payment::{Decision, DecisionRequest};
use clresolve_verdict::published::{Published, Standing};
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::Value;

use super::{Inner, Resolver};
use super::look_ups::Beside;
use super::signer;
use crate::config::BlockSelector;
use crate::reason::{Code, Effect, Reason};
use crate::telemetry::{self, DECISIONS};
use crate::text::Foreign;
use crate::verdict::{GatePolicy, Identity, Resolution};

/// Everything that a decision rests on.
struct Facts {
    resolution: Resolution,
    gate: GatePolicy,
    limits: Limits,
    route: Result<Route, Box<Reason>>,
    request: DecisionRequest,
    terms: Result<Terms, Box<Reason>>,
    payees: BTreeMap<Network, Payees>,
    now: Timestamp,
}

impl Facts {
    fn decide(&self) -> Decision {
        let question = Question {
            verb: &self.request.verb,
            terms: self.terms.as_ref().map_err(|reason| &**reason),
            url: self.request.url.as_deref(),
            selected: self.request.selected.as_ref(),
            signed: self.request.header.as_deref(),
        };
        let known = Knowledge {
            resolution: &self.resolution,
            gate: &self.gate,
            limits: &self.limits,
            route: self.route.as_ref().map_err(|reason| &**reason),
            payees: &self.payees,
            now: self.now,
        };
        decide(&question, &known)
    }

    fn has_signatures(&self) -> bool {
        self.request.header.is_some() || self.terms.as_ref().is_ok_and(|terms| !terms.offers.is_empty())
    }

    /// Whether nothing but the signer of an offer stands against the payment, and the name's own key could settle that.
    /// Only then is a key worth a request.
    fn may_be_settled_by_a_key(&self, decision: &Decision) -> bool {
        let is_jws = |offer: &Value| offer.get("format").and_then(Value::as_str) == Some("jws");
        decision.has(Code::OfferSignerUnproven)
            && has_no_other(decision, &[Code::OfferSignerUnproven, Code::PayeeMismatch, Code::PayeeUnproven])
            && self.terms.as_ref().is_ok_and(|terms| terms.offers.iter().any(is_jws))
    }
}

/// Whether nothing but the payee stands against the payment. Only then is a registration or a key worth a request.
fn may_be_settled_by_a_registration(decision: &Decision) -> bool {
    decision.abort && has_no_other(decision, &OF_THE_PAYEE)
}

/// What is said where neither configuration nor records prove a payee.
const OF_THE_PAYEE: [Code; 4] =
    [Code::PayeeMismatch, Code::PayeeUnproven, Code::OfferInvalid, Code::OfferSignerUnproven];

/// Whether a decision has no code that decides beside these.
fn has_no_other(decision: &Decision, open: &[Code]) -> bool {
    let is_open = |slug: &String| {
        Code::from_slug(slug).is_some_and(|code| open.contains(&code) || code.entry().effect == Effect::Warn)
    };
    decision.codes.iter().all(is_open)
}

impl Resolver {
    /// Whether the gate lets requests to an agent pass, for a verb: the question of the daemon's `/v1/gate/NAME/VERB`.
    ///
    /// # Errors
    /// The code of what stands against it.
    pub async fn gate(&self, name: &str, verb: &str) -> Result<(), &'static str> {
        let config = &self.0.walker.config;
        if matches!(config.chain.block, BlockSelector::Number(_)) && !clresolve_core::mutant!("the-past-opens-the-gate") {
            return Err(Code::ChainBehind.slug());
        }
        let resolution = self.resolve(name).await;
        config.gate.policy().objection(&resolution, Some(verb), None).map_or(Ok(()), Err)
    }

    /// Whether a payment may be made: the gate's own decision about name and verb, and that the terms come from the agent
    /// and pay it, within the limits.
    ///
    /// Never fails: what went wrong is in the decision, which then aborts.
    pub async fn decide(&self, request: &DecisionRequest) -> Decision {
        let resolution = self.resolve(&request.name).await;
        let decision = self.decide_on(&resolution, request).await;
        report(&decision);
        decision
    }

    /// The same, about the agent of a verdict that was just asked for. It is not reported yet.
    pub(crate) async fn decide_on(&self, resolution: &Resolution, request: &DecisionRequest) -> Decision {
        let config = &self.0.walker.config;
        let terms = request.terms();
        let payees = match &terms {
            Ok(terms) => self.payees(resolution, terms),
            Err(_) => BTreeMap::new(),
        };
        let facts = Facts {
            resolution: resolution.clone(),
            gate: config.gate.policy(),
            limits: config.limits.limits().tightened(&request.limits),
            route: self.route(resolution, Some(&request.verb)),
            request: request.clone(),
            terms,
            payees,
            now: self.now(),
        };
        let (mut facts, mut decision) = self.judged(facts).await;
        if !may_be_settled_by_a_registration(&decision) {
            return decision;
        }
        let Some(beside) = Beside::of(resolution) else { return decision };
        if self.add_registrations(&beside, &mut facts.payees).await {
            (facts, decision) = self.judged(facts).await;
        }
        if !facts.may_be_settled_by_a_key(&decision) {
            return decision;
        }
        let Inner { walker, offer_keys, .. } = &*self.0;
        let Some(key) = signer::offer_key(offer_keys, walker, &beside).await else { return decision };
        facts.payees.values_mut().for_each(|payees| payees.signers.ed25519.push(key.clone()));
        self.judged(facts).await.1
    }

    /// Adds what the ERC-8004 registrations of the name say about the payees on these networks. Whether any says something.
    async fn add_registrations(&self, beside: &Beside, payees: &mut BTreeMap<Network, Payees>) -> bool {
        let Inner { walker, registries, .. } = &*self.0;
        let claims = payees.iter_mut().map(async |(network, payees)| {
            payees.registration = registries.claim(walker, beside, network).await;
            payees.registration != Claim::None
        });
        join_all(claims).await.contains(&true)
    }

    /// Signatures are checked apart from the threads that answer.
    async fn judged(&self, facts: Facts) -> (Facts, Decision) {
        let judge = |facts: Facts| {
            let decision = facts.decide();
            (facts, decision)
        };
        if facts.has_signatures() { self.0.walker.pool.run(move || judge(facts)).await } else { judge(facts) }
    }

    /// The URL that an agent's entry stands for, for its first verb where none is named (CL-61).
    ///
    /// # Errors
    /// `invoke-no-route`, or `record-pending` where a record that would say so is about to change.
    pub fn route(&self, resolution: &Resolution, verb: Option<&str>) -> Result<Route, Box<Reason>> {
        let verdict = resolution.verdict();
        let agent = verdict.identity.as_ref();
        let name = verdict.name.normalized.as_deref().unwrap_or_default();
        let verb = verb.or_else(|| agent?.verbs.first().map(String::as_str)).unwrap_or_default();
        let routes = &self.0.walker.config.routes;
        let configured = routes.get(&format!("{name}/{verb}")).or_else(|| routes.get(name));
        if let Some(route) = configured.and_then(|url| Route::configured(url)) {
            return Ok(route);
        }
        let entry = agent.and_then(|agent| agent.entry.as_deref());
        if let Some(published) = resolution.payment()
            && let Some(version) = agent.and_then(version_segment)
        {
            for key in EndpointKey::ALL {
                match published.endpoint(key) {
                    Standing::Settled(value) => {
                        return Route::of_record(key, &value, verb, &version)
                            .ok_or_else(|| Box::new(unusable(key).observed(value)));
                    }
                    Standing::Absent | Standing::NotAsked => {}
                    Standing::Pending { .. } => {
                        return Err(Box::new(Reason::new(Code::RecordPending).at(key.as_str())));
                    }
                    Standing::Malformed(_) => return Err(Box::new(unusable(key))),
                    Standing::Failed(cause) => {
                        return Err(Box::new(unusable(key).observed(cause.to_string())));
                    }
                }
            }
        }
        entry.and_then(Route::of_card).ok_or_else(|| Box::new(Reason::new(Code::InvokeNoRoute)))
    }

    /// What is known of the payees on the networks of the terms, without a further request.
    fn payees(&self, resolution: &Resolution, terms: &Terms) -> BTreeMap<Network, Payees> {
        let name = resolution.verdict().name.normalized.as_deref().unwrap_or_default();
        let configured = self.0.walker.config.payees.get(name).map(Vec::as_slice).unwrap_or_default();
        let prices = terms.entries.iter().filter_map(|entry| entry.price.as_ref().ok());
        let of_network = |network: &Network| {
            let accounts = configured.iter().filter(|account| account.network == *network);
            Payees {
                configured: accounts.map(|account| account.address).collect(),
                record: resolution.payment().map_or(Claim::None, |published| record(published, network)),
                registration: Claim::None,
                signers: resolution.payment().map(signer::addresses).unwrap_or_default(),
            }
        };
        prices.map(|price| (price.network.clone(), of_network(&price.network))).collect()
    }
}

/// What the address records say of a network: its own coin type, else ENSIP-19's default of all EVM chains.
fn record(published: &Published, network: &Network) -> Claim {
    let own = network.chain_id().and_then(CoinType::of_chain);
    for coin in own.into_iter().chain([CoinType::EVM_DEFAULT]) {
        match published.address(coin) {
            Standing::Settled(address) => return Claim::Is(address, ClaimSource::Record(coin)),
            Standing::Absent => {}
            Standing::Pending { .. } => return undecided(Code::RecordPending, coin, None),
            Standing::Malformed(bytes) => return undecided(Code::PayeeUnproven, coin, Some(bytes.to_string())),
            Standing::Failed(cause) => return undecided(Code::PayeeUnproven, coin, Some(cause.to_string())),
            // Without the network's own record nothing is known of a default.
            Standing::NotAsked => return Claim::None,
        }
    }
    Claim::None
}

fn undecided(code: Code, coin: CoinType, observed: Option<String>) -> Claim {
    let reason = Reason::new(code).at(format!("addr({coin})"));
    Claim::Undecided(Box::new(match observed {
        Some(observed) => reason.observed(observed),
        None => reason,
    }))
}

fn unusable(key: EndpointKey) -> Reason {
    Reason::new(Code::InvokeNoRoute).message("The record that names the route cannot be used.").at(key.as_str())
}

/// The version as it stands behind the verb: that of the x402 entry, else that of the card.
fn version_segment(agent: &Identity) -> Option<String> {
    let of_entry = agent.entry.as_deref().and_then(|entry| entry.strip_prefix("x402://")?.split('/').nth(2));
    of_entry.map(str::to_owned).or_else(|| agent.version.as_ref().map(|version| format!("v{version}")))
}

/// Counts a decision, and writes one event about it: each is reported once, also where an answer is given again.
pub(crate) fn report(decision: &Decision) {
    telemetry::payment_decision(decision.decision.as_str());
    let Decision { price, payee, .. } = decision;
    tracing::info!(
        target: DECISIONS,
        id = decision.id,
        decision = decision.decision.as_str(),
        name = %Foreign::new(&decision.name),
        verb = %Foreign::new(&decision.verb),
        network = price.as_ref().map(|price| price.network.as_str()),
        asset = price.as_ref().map(|price| tracing::field::display(price.asset)),
        amount = price.as_ref().map(|price| price.amount.as_str()),
        payee = payee.as_ref().map(|payee| tracing::field::display(payee.address)),
        proven_by = payee.as_ref().and_then(|payee| payee.proven_by).map(ProvenBy::as_str),
        codes = decision.codes.join(","),
        verdict = decision.verdict,
        "decision"
    );
}
