//! The scenario in which the most expensive requests are decided.

use std::collections::BTreeMap;

use alloy_primitives::{Address, U256};
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519SigningKey;
use clresolve_payment::artifact::PublishedSigningKeys;
use clresolve_payment::asset::{AssetId, AssetProperties};
use clresolve_payment::decide::{PaymentDecisionQuery, PaymentKnowledge, decide_payment};
use clresolve_payment::limits::{AssetLimit, PaymentLimits};
use clresolve_payment::network::Caip2Network;
use clresolve_payment::payee::NetworkPayees;
use clresolve_payment::request::PaymentDemand;
use clresolve_payment::route::AgentRoute;
use clresolve_payment::{PaymentDecision, PaymentDecisionRequest};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::sample;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::AgentIdentity;
use jiff::Timestamp;

use crate::kinds::{NAME, NETWORK, URL, USDC, VERB};

/// Facts about an agent whose payee only an offer could prove.
pub(crate) struct World {
    resolution: Resolution,
    limits: PaymentLimits,
    route: AgentRoute,
    signers: PublishedSigningKeys,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut verdict =
            sample::empty_resolution(TrustState::Trusted, Timestamp::UNIX_EPOCH, 300).verdict().as_ref().clone();
        verdict.name.normalized = Some(NAME.to_owned());
        let networks = vec![NETWORK.to_owned()];
        verdict.identity = Some(AgentIdentity { verbs: vec![VERB.to_owned()], networks, ..AgentIdentity::default() });
        let network: Caip2Network = NETWORK.parse().expect("CAIP-2");
        let id = AssetId { network: network.clone(), address: USDC.parse().expect("an address") };
        let asset = AssetProperties::find_known(&id).expect("it is in the table");
        let limit = AssetLimit { asset, max_amount: Some(U256::from(50_000)) };
        Self {
            resolution: sample::resolution_of_verdict(verdict, None),
            limits: PaymentLimits {
                set: true,
                networks: [network].into(),
                assets: [(id, limit)].into(),
                ..PaymentLimits::default()
            },
            route: AgentRoute::from_configuration(URL).expect("an https URL"),
            signers: PublishedSigningKeys {
                addresses: vec![Address::repeat_byte(1)],
                ed25519: vec![Ed25519SigningKey::generate().expect("a key").public_key().clone()],
                unread: None,
            },
        }
    }

    /// Decides the request. `None` if it is not a valid request.
    #[inline(never)]
    pub(crate) fn judge_measured(&self, question: &[u8]) -> Option<PaymentDecision> {
        self.judge(question)
    }

    /// The same, under a name that the instruction counter ignores.
    #[inline(never)]
    pub(crate) fn judge(&self, question: &[u8]) -> Option<PaymentDecision> {
        let request = PaymentDecisionRequest::from_json(question).ok()?;
        let terms = request.parse_terms();
        let mut payees = NetworkPayees { configured: vec![Address::repeat_byte(1)], ..NetworkPayees::default() };
        payees.signers = self.signers.clone();
        let question = PaymentDecisionQuery {
            verb: &request.verb,
            terms: terms.as_ref().map_err(|reason| &**reason),
            is_http_reply: matches!(request.demand, PaymentDemand::Reply(_)),
            url: request.url.as_deref(),
            selected: request.selected.as_ref(),
            signed: request.header.as_deref(),
        };
        let known = PaymentKnowledge {
            resolution: &self.resolution,
            gate: &GatePolicy::default(),
            limits: &self.limits.tightened_by_caller(&request.limits),
            route: Ok(&self.route),
            tools: None,
            payees: &BTreeMap::from([(NETWORK.parse().expect("CAIP-2"), payees)]),
            now: Timestamp::UNIX_EPOCH,
        };
        let decision = decide_payment(&question, &known);
        serde_json::to_vec(&decision).expect("JSON");
        Some(decision)
    }
}
