//! Decides on payments: this module gathers the input of the pure decision.
//!
//! If address records, the configuration and the name's own endpoints suffice, a decision needs no request beyond those
//! of the verdict. Registrations, and keys for offers, are read only if they could change the decision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::look_ups::ResolvedVerdictKey;
use super::signer;
use super::{Resolver, ResolverState};
use crate::cache::ResolutionStartSnapshot;
use crate::telemetry::{self, DECISIONS};
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;
use clresolve_payment::check::SellerCheckDocument;
use clresolve_payment::decide::{
    PaymentDecisionQuery, PaymentKnowledge, decide_payment, networks_with_undecided_payee,
};
use clresolve_payment::decision::PaymentOptionResult;
use clresolve_payment::limits::PaymentLimits;
use clresolve_payment::network::Caip2Network;
use clresolve_payment::payee::{NetworkPayees, PayeeClaim, PayeeProofMethod};
use clresolve_payment::request::PaymentDemand;
use clresolve_payment::route::AgentRoute;
use clresolve_payment::terms::PaymentTerms;
use clresolve_payment::{PaymentDecision, PaymentDecisionRequest};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::trust::Resolution;
use futures_util::future::join_all;
use jiff::Timestamp;

/// Maximum number of attempts if the verdict expires during the lookups. After that, the decision is made without
/// lookups.
const TRIES: usize = 2;

struct PaymentDecisionInput {
    resolution: Resolution,
    gate: GatePolicy,
    limits: PaymentLimits,
    route: Result<AgentRoute, Box<Reason>>,
    tools: Option<Result<AgentRoute, Box<Reason>>>,
    request: Arc<PaymentDecisionRequest>,
    terms: Result<PaymentTerms, Box<Reason>>,
    payees: BTreeMap<Caip2Network, NetworkPayees>,
    now: Timestamp,
}

impl PaymentDecisionInput {
    fn decide(&self) -> PaymentDecision {
        let question = PaymentDecisionQuery {
            verb: &self.request.verb,
            terms: self.terms.as_ref().map_err(|reason| &**reason),
            is_http_reply: matches!(self.request.demand, PaymentDemand::Reply(_)),
            url: self.request.url.as_deref(),
            selected: self.request.selected.as_ref(),
            signed: self.request.header.as_deref(),
        };
        let known = PaymentKnowledge {
            resolution: &self.resolution,
            gate: &self.gate,
            limits: &self.limits,
            route: self.route.as_ref().map_err(|reason| &**reason),
            tools: self.tools.as_ref().map(|tools| tools.as_ref().map_err(|reason| &**reason)),
            payees: &self.payees,
            now: self.now,
        };
        decide_payment(&question, &known)
    }

    /// The networks of the entries to which only the payee is an objection. Only those make a registration worth a
    /// request. Objections to one entry do not affect another, since a client may choose any entry.
    fn networks_blocked_only_by_payee(&self, decision: &PaymentDecision) -> BTreeSet<Caip2Network> {
        let Ok(terms) = &self.terms else { return BTreeSet::new() };
        if clresolve_core::mutant!("one-bad-entry-stops-look-ups")
            && !decision.entries.iter().all(|row| row.is_but_for_the_payee)
        {
            return BTreeSet::new();
        }
        networks_with_undecided_payee(terms, &decision.entries)
    }

    /// Whether some entry has no objection except the payee, and the name's own key may have signed the offer. Only
    /// then is the key worth a request.
    fn may_need_offer_key(&self, decision: &PaymentDecision) -> bool {
        let is_open = |row: &PaymentOptionResult| {
            row.is_but_for_the_payee && row.codes.iter().any(|slug| slug == ReasonCode::OfferSignerUnproven.slug())
        };
        decision.entries.iter().any(is_open) && self.terms.as_ref().is_ok_and(PaymentTerms::has_jws_offers)
    }
}

impl Resolver {
    /// Whether the gate admits requests to an agent for a verb, like the daemon's `/v1/gate/NAME/VERB`. The route
    /// accepts only a name in normal form, since other servers compare its path. This function normalizes the name.
    ///
    /// # Errors
    /// The code of the objection. It is `chain-behind` for a block chosen by number, since the gate decides on the
    /// present.
    pub async fn check_gate(&self, name: &str, verb: &str) -> Result<(), &'static str> {
        let resolution = self.resolve_confirmed(name).await;
        self.gate_denial_reason(&resolution, Some(verb)).map_or(Ok(()), Err)
    }

    /// Resolves `input` and confirms the verdict for the gate. See [`Resolver::confirm_for_gate`].
    pub async fn resolve_confirmed(&self, input: &str) -> Resolution {
        self.confirm_for_gate(self.resolve(input).await).await
    }

    /// Confirms a resolution under the configured rules for the gate: reads the newest block unless it already confirms
    /// the resolution. A name that has changed is resolved again. Returns the resolution with its
    /// [standing](Resolution::newest_block_confirmation).
    pub async fn confirm_for_gate(&self, resolution: Resolution) -> Resolution {
        if resolution.verdict().state == TrustState::Trusted {
            self.record_hot_name(&resolution);
        }
        self.0.cached.confirm_resolution(resolution, &self.0.configured, &[TrustState::Trusted]).await
    }

    /// Notes a request for the name, which is then reread at each new head.
    pub(super) fn record_hot_name(&self, resolution: &Resolution) {
        if let Some(name) = resolution.verdict().name.normalized.as_deref() {
            self.0.cached.cache.hot_names.record_request(name, self.now());
        }
    }

    /// Why the gate denies requests to the agent of a verdict for a verb. `None` if it admits them.
    pub fn gate_denial_reason(&self, resolution: &Resolution, verb: Option<&str>) -> Option<&'static str> {
        let config = &self.0.walker.config;
        if config.chain.block.number().is_some() && !clresolve_core::mutant!("the-past-opens-the-gate") {
            return Some(ReasonCode::ChainBehind.slug());
        }
        config.gate.gate_policy().request_objection(resolution, verb, None)
    }

    /// Decides whether a payment may be made. The gate must admit the name and verb, and the terms must come from the
    /// agent, pay it, and stay within the limits.
    ///
    /// Never fails: errors are part of the decision, which then aborts.
    pub async fn decide_payment(&self, request: &PaymentDecisionRequest) -> PaymentDecision {
        let resolution = self.resolve(&request.name).await;
        let (decision, _) = self.decide_payment_unreported(resolution, &Arc::new(request.clone())).await;
        DecisionLogEvent::from_decision(&decision).count_and_log();
        decision
    }

    /// Like [`Resolver::decide_payment`], for the agent of a verdict that was just obtained. The decision is not
    /// reported yet. Lookups take time: if the verdict is no longer valid after them, it is obtained again. Also
    /// returns the verdict on which the decision rests.
    pub async fn decide_payment_unreported(
        &self,
        resolution: Resolution,
        request: &Arc<PaymentDecisionRequest>,
    ) -> (PaymentDecision, Resolution) {
        let resolution = self.0.cached.with_current_confirmation(resolution, &self.0.configured).await;
        let mut resolution = self.confirm_for_gate(resolution).await;
        for _ in 0..TRIES {
            let began = self.0.cached.cache.snapshot_resolution_start();
            let (facts, decision) = self.decide_with_lookups(resolution, request).await;
            // Entries are paid separately, so there may be one to pay even if the decision aborts.
            if decision.payable_options().next().is_none() || self.is_still_valid(&facts.resolution, began).await {
                return (decision, facts.resolution);
            }
            resolution = self.resolve_confirmed(&request.name).await;
        }
        let (facts, decision) = self.decide_without_lookups(resolution, request).await;
        (decision, facts.resolution)
    }

    /// The decision and its input, including lookups that could change the decision.
    async fn decide_with_lookups(
        &self,
        resolution: Resolution,
        request: &Arc<PaymentDecisionRequest>,
    ) -> (PaymentDecisionInput, PaymentDecision) {
        let (mut facts, mut decision) = self.decide_without_lookups(resolution, request).await;
        let open = facts.networks_blocked_only_by_payee(&decision);
        if open.is_empty() {
            return (facts, decision);
        }
        let Some(beside) = ResolvedVerdictKey::from_resolution(&facts.resolution) else { return (facts, decision) };
        if self.add_registrations(&beside, &open, &mut facts.payees).await {
            facts.now = self.now();
            (facts, decision) = self.judge_input(|| facts).await;
        }
        if !facts.may_need_offer_key(&decision) {
            return (facts, decision);
        }
        let ResolverState { cached, offer_keys, .. } = &*self.0;
        let key = signer::read_offer_key(offer_keys, cached, &beside).await;
        facts.payees.values_mut().for_each(|payees| key.add_to_signer_keys(&mut payees.signers));
        facts.now = self.now();
        self.judge_input(|| facts).await
    }

    /// The input of a decision that needs no further request.
    fn decision_input(&self, resolution: Resolution, request: Arc<PaymentDecisionRequest>) -> PaymentDecisionInput {
        let config = &self.0.walker.config;
        let terms = request.parse_terms();
        let payees = terms.as_ref().map(|terms| self.payees_of_terms(&resolution, terms)).unwrap_or_default();
        PaymentDecisionInput {
            gate: config.gate.gate_policy(),
            limits: config.limits.payment_limits().tightened_by_caller(&request.limits),
            route: self.agent_route(&resolution, Some(&request.verb)),
            tools: resolution.payment_records().and_then(AgentRoute::from_tools_record),
            resolution,
            request,
            terms,
            payees,
            now: self.now(),
        }
    }

    /// Whether a verdict is fresh, and its name was not evicted since the lookups began.
    pub(super) async fn is_still_valid(&self, resolution: &Resolution, began: ResolutionStartSnapshot) -> bool {
        let cached = &self.0.cached;
        let is_fresh = self.now() < resolution.verdict().freshness.fresh_until;
        let is_standing =
            name_of_resolution(resolution).is_some_and(|name| cached.cache.is_unevicted_since(&name, began));
        if clresolve_core::mutant!("look-ups-outlive-verdicts") {
            return true;
        }
        is_fresh
            && is_standing
            && cached
                .with_current_confirmation(resolution.clone(), &self.0.configured)
                .await
                .newest_block_confirmation()
                .is_ok()
    }

    /// Adds what the ERC-8004 registrations of the name state about the payees on the open networks. Returns whether
    /// any registration states something.
    pub(super) async fn add_registrations(
        &self,
        beside: &ResolvedVerdictKey,
        open: &BTreeSet<Caip2Network>,
        payees: &mut BTreeMap<Caip2Network, NetworkPayees>,
    ) -> bool {
        let ResolverState { walker, registries, .. } = &*self.0;
        let claims = payees.iter_mut().filter(|(network, _)| open.contains(network)).map(async |(network, payees)| {
            payees.registration = registries.look_up_payee_claim(walker, beside, network).await;
            payees.registration != PayeeClaim::None
        });
        join_all(claims).await.contains(&true)
    }

    /// The decision from what is known without a further request.
    async fn decide_without_lookups(
        &self,
        resolution: Resolution,
        request: &Arc<PaymentDecisionRequest>,
    ) -> (PaymentDecisionInput, PaymentDecision) {
        let (resolver, request) = (self.clone(), Arc::clone(request));
        self.judge_input(move || resolver.decision_input(resolution, request)).await
    }

    /// The decision from these facts. Terms are parsed and judged off the threads that answer requests.
    async fn judge_input(
        &self,
        facts: impl FnOnce() -> PaymentDecisionInput + Send + 'static,
    ) -> (PaymentDecisionInput, PaymentDecision) {
        let judge = move || {
            let facts = facts();
            let decision = facts.decide();
            (facts, decision)
        };
        if clresolve_core::mutant!("decisions-hold-up-the-gate") {
            return judge();
        }
        self.0.walker.pool.run(judge).await
    }

    /// The URL for an agent's entry, for its first verb if none is given (CL-61).
    ///
    /// # Errors
    /// `invoke-no-route`, or `record-pending` if a relevant record is about to change.
    pub fn agent_route(&self, resolution: &Resolution, verb: Option<&str>) -> Result<AgentRoute, Box<Reason>> {
        let verdict = resolution.verdict();
        let agent = verdict.identity.as_ref();
        let name = verdict.name.normalized.as_deref().unwrap_or_default();
        let verb = verb.or_else(|| agent?.verbs.first().map(String::as_str)).unwrap_or_default();
        let routes = &self.0.walker.config.routes;
        let configured = routes.get(&format!("{name}/{verb}")).or_else(|| routes.get(name));
        if let Some(route) = configured.and_then(|url| AgentRoute::from_configuration(url)) {
            return Ok(route);
        }
        AgentRoute::from_published(agent, resolution.payment_records(), Some(verb))
    }

    /// The payees on the networks of the terms, from what is known without a further request.
    pub(super) fn payees_of_terms(
        &self,
        resolution: &Resolution,
        terms: &PaymentTerms,
    ) -> BTreeMap<Caip2Network, NetworkPayees> {
        let name = resolution.verdict().name.normalized.as_deref().unwrap_or_default();
        let configured = self.0.walker.config.payees.get(name).map(Vec::as_slice).unwrap_or_default();
        let prices = terms.entries.iter().filter_map(|entry| entry.price.as_ref().ok());
        let of_network = |network: &Caip2Network| {
            let accounts = configured.iter().filter(|account| account.network == *network);
            NetworkPayees {
                configured: accounts.map(|account| account.address).collect(),
                record: resolution
                    .payment_records()
                    .map_or(PayeeClaim::None, |published| PayeeClaim::from_records(published, network)),
                signers: resolution.payment_records().map(signer::signer_keys_from_addresses).unwrap_or_default(),
                ..NetworkPayees::default()
            }
        };
        prices.map(|price| (price.network.clone(), of_network(&price.network))).collect()
    }
}

/// The name of a verdict. `None` if the name is invalid.
fn name_of_resolution(resolution: &Resolution) -> Option<EnsName> {
    EnsName::parse(resolution.verdict().name.normalized.as_deref()?).ok()
}

/// The log fields of a decision. They are stored as text, since writing an address with its checksum needs a hash each
/// time.
#[derive(Debug)]
pub struct DecisionLogEvent {
    id: String,
    decision: &'static str,
    name: String,
    verb: String,
    network: Option<String>,
    asset: Option<String>,
    amount: Option<String>,
    payee: Option<String>,
    proven_by: Option<&'static str>,
    codes: String,
    verdict: String,
}

impl DecisionLogEvent {
    /// The log fields of a decision.
    pub fn from_decision(decision: &PaymentDecision) -> Self {
        let PaymentDecision { price, payee, .. } = decision;
        Self {
            id: decision.id.clone(),
            decision: decision.decision.as_str(),
            name: UntrustedText::new(&decision.name).to_string(),
            verb: UntrustedText::new(&decision.verb).to_string(),
            network: price.as_ref().map(|price| price.network.as_str().to_owned()),
            asset: price.as_ref().map(|price| price.asset.to_string()),
            amount: price.as_ref().map(|price| price.amount.to_string()),
            payee: payee.as_ref().map(|payee| payee.address.to_string()),
            proven_by: payee.as_ref().and_then(|payee| payee.proven_by).map(PayeeProofMethod::as_str),
            codes: decision.codes.join(","),
            verdict: decision.verdict.clone(),
        }
    }

    /// The log fields of a check.
    pub fn from_seller_check(answer: &SellerCheckDocument) -> Self {
        let SellerCheckDocument { price, payee, .. } = answer;
        let identity = answer.identity.as_ref().map(|named| named.identity.to_string());
        Self {
            id: answer.id.clone(),
            decision: answer.decision.as_str(),
            name: UntrustedText::new(&identity.unwrap_or_default()).to_string(),
            verb: UntrustedText::new(answer.verb.as_deref().unwrap_or_default()).to_string(),
            network: price.as_ref().map(|price| price.network.as_str().to_owned()),
            asset: price.as_ref().map(|price| price.asset.to_string()),
            amount: price.as_ref().map(|price| price.amount.to_string()),
            payee: payee.as_ref().map(|payee| payee.address.to_string()),
            proven_by: payee.as_ref().and_then(|payee| payee.proven_by).map(PayeeProofMethod::as_str),
            codes: answer.codes.join(","),
            verdict: answer.verdict.clone().unwrap_or_default(),
        }
    }

    /// Counts the decision and writes one event for it. Each decision is reported once, even if it was reused.
    pub fn count_and_log(&self) {
        telemetry::count_payment_decision(self.decision);
        tracing::info!(
            target: DECISIONS,
            id = self.id,
            decision = self.decision,
            name = %self.name,
            verb = %self.verb,
            network = self.network,
            asset = self.asset.as_ref().map(tracing::field::display),
            amount = self.amount,
            payee = self.payee.as_ref().map(tracing::field::display),
            proven_by = self.proven_by,
            codes = self.codes,
            verdict = self.verdict,
            "decision"
        );
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::Value;

    use super::*;
    use crate::cpu_pool::{MAX_THREADS, OccupiedCpuPool};
    use crate::sandbox::CustomSandbox;
    use clresolve_sandbox::spec::SandboxSpec;

    pub(in crate::resolve) const NAME: &str = "summarizeagent.eth";

    /// Number of requests of a lookup: one for the name's record, and four for the registry (one for the block, three
    /// for its contents).
    pub(in crate::resolve) const OF_A_LOOK_UP: u64 = 5;

    /// Number of requests that confirm a cached verdict: one for the head, and one for the name.
    pub(in crate::resolve) const OF_A_CONFIRMATION: u64 = 2;

    /// A network with an agent whose payee is proven only by its registration, and the seller's terms: one price, and
    /// one above every limit.
    pub(in crate::resolve) struct PaymentDecisionFixture {
        pub(in crate::resolve) world: CustomSandbox,
        pub(in crate::resolve) resolver: Resolver,
        pub(in crate::resolve) request: PaymentDecisionRequest,
    }

    impl PaymentDecisionFixture {
        pub(in crate::resolve) async fn open() -> Self {
            let key = "agent-registration[0x00010000027a69148004a169fb4a3325136eb29fa0ceb6d2e539a432][1]";
            let spec = format!(
                "[[name]]\nname = \"publisher.eth\"\nholder = \"publisher\"\naddr = \"publisher\"\n\n[[agent]]\nname = \
                 \"{NAME}\"\nabout = \"It sells.\"\nstate = \"trusted\"\nseller = \"\"\naddresses = {{ 31337 = \"0x\", 84532 \
                 = \"0x\" }}\nrecords.\"{key}\" = \"1\"\nerc8004 = {{ }}\n"
            );
            let world =
                CustomSandbox::start(&SandboxSpec::parse(&spec).expect("it is a world")).await.expect("it starts");
            let mut config = world.config();
            config.timeout = Duration::from_secs(120);
            let resolver = Resolver::new(&config).await.expect("its configuration is good");
            let route =
                resolver.agent_route(&resolver.resolve(NAME).await, Some("summarize")).expect("its card names one");
            let url = route.url().to_string();
            let mut reply = resolver.send_unpaid_request(&url, Some("{}")).await.expect("the seller answers");
            let mut headers = reply.headers.iter_mut();
            let (_, terms) = headers.find(|(name, _)| name == "payment-required").expect("its terms");
            let mut changed: Value = serde_json::from_slice(&STANDARD.decode(&*terms).expect("base64")).expect("JSON");
            let accepts = changed["accepts"].as_array_mut().expect("entries");
            let mut beyond = accepts[0].clone();
            beyond["amount"] = "9".repeat(30).into();
            accepts.push(beyond);
            *terms = STANDARD.encode(changed.to_string());
            let request = PaymentDecisionRequest::from_seller_reply(NAME, "summarize", &url, reply);
            Self { world, resolver, request }
        }
    }

    /// Lookups take as long as hosts choose. An eviction during them stops the payment, even of an entry listed beside
    /// one that nobody pays.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_change_during_a_look_up_stops_the_payment() {
        let mut shop = PaymentDecisionFixture::open().await;
        let (resolver, request) = (shop.resolver.clone(), shop.request.clone());
        let honest = resolver.decide_payment(&request).await;
        assert_eq!(honest.payable_options().map(|(place, _)| place).collect::<Vec<_>>(), [0], "{honest:#?}");
        resolver.resolve_question_anew(&crate::NameQuestion::new(NAME)).await.expect("a verdict");
        let pool = Arc::clone(shop.resolver.cpu_pool());
        let before = shop.world.request_counts().rpc + OF_A_CONFIRMATION;
        let first = OccupiedCpuPool::occupy_all(&pool);
        OccupiedCpuPool::wait_for_jobs(&pool, MAX_THREADS).await;
        let (resolver, request) = (shop.resolver.clone(), shop.request.clone());
        let deciding = tokio::spawn(async move { resolver.decide_payment(&request).await });
        OccupiedCpuPool::wait_for_jobs(&pool, MAX_THREADS + 1).await;
        assert_eq!(shop.world.request_counts().rpc, before, "terms were judged where the answers are given");
        // The facts known at once are judged between the two jobs, and the registration after them.
        let busy = OccupiedCpuPool::occupy_all(&pool);
        OccupiedCpuPool::wait_for_jobs(&pool, 2 * MAX_THREADS + 1).await;
        first.release().await;
        while shop.world.request_counts().rpc < before + OF_A_LOOK_UP || pool.unfinished_job_count() != MAX_THREADS + 1
        {
            assert!(!deciding.is_finished(), "a registration was read where the answers are given");
            tokio::task::yield_now().await;
        }
        let name = EnsName::parse(NAME).expect("a name");
        shop.world.write_text(&name, "cl.owner", "thief.eth").expect("it has a resolver");
        shop.resolver.evict_name(&name);
        busy.release().await;
        let decision = deciding.await.expect("it ends");
        assert!(decision.payable_options().next().is_none(), "{decision:#?}");
        assert!(decision.codes.contains(&"record-pending".to_owned()), "{decision:#?}");
    }
}
