//! The scenario in which the most expensive requests are decided.

use std::collections::BTreeMap;

use alloy_primitives::{Address, U256};
use clresolve_core::state::State;
use clresolve_jose::SigningKey;
use clresolve_payment::artifact::SignerKeys;
use clresolve_payment::asset::{AssetId, AssetProperties};
use clresolve_payment::decide::{Knowledge, PaymentQuestion, decide};
use clresolve_payment::limits::{AssetLimit, Limits};
use clresolve_payment::network::Network;
use clresolve_payment::payee::Payees;
use clresolve_payment::request::Demand;
use clresolve_payment::route::Route;
use clresolve_payment::{Decision, DecisionRequest};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::sample;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::Identity;
use jiff::Timestamp;

use crate::kinds::{NAME, NETWORK, URL, USDC, VERB};

/// Facts about an agent whose payee only an offer could prove.
pub(crate) struct World {
    resolution: Resolution,
    limits: Limits,
    route: Route,
    signers: SignerKeys,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut verdict = sample::empty(State::Trusted, Timestamp::UNIX_EPOCH, 300).verdict().as_ref().clone();
        verdict.name.normalized = Some(NAME.to_owned());
        let networks = vec![NETWORK.to_owned()];
        verdict.identity = Some(Identity { verbs: vec![VERB.to_owned()], networks, ..Identity::default() });
        let network: Network = NETWORK.parse().expect("CAIP-2");
        let id = AssetId { network: network.clone(), address: USDC.parse().expect("an address") };
        let asset = AssetProperties::known(&id).expect("it is in the table");
        let limit = AssetLimit { asset, max_amount: Some(U256::from(50_000)) };
        Self {
            resolution: sample::live(verdict, None),
            limits: Limits { set: true, networks: [network].into(), assets: [(id, limit)].into(), ..Limits::default() },
            route: Route::configured(URL).expect("an https URL"),
            signers: SignerKeys {
                addresses: vec![Address::repeat_byte(1)],
                ed25519: vec![SigningKey::generate().expect("a key").public().clone()],
                unread: None,
            },
        }
    }

    /// Decides the request. `None` if it is not a valid request.
    #[inline(never)]
    pub(crate) fn judge_measured(&self, question: &[u8]) -> Option<Decision> {
        self.judge(question)
    }

    /// The same, under a name that the instruction counter ignores.
    #[inline(never)]
    pub(crate) fn judge(&self, question: &[u8]) -> Option<Decision> {
        let request = DecisionRequest::from_json(question).ok()?;
        let terms = request.terms();
        let mut payees = Payees { configured: vec![Address::repeat_byte(1)], ..Payees::default() };
        payees.signers = self.signers.clone();
        let question = PaymentQuestion {
            verb: &request.verb,
            terms: terms.as_ref().map_err(|reason| &**reason),
            is_http_reply: matches!(request.demand, Demand::Reply(_)),
            url: request.url.as_deref(),
            selected: request.selected.as_ref(),
            signed: request.header.as_deref(),
        };
        let known = Knowledge {
            resolution: &self.resolution,
            gate: &GatePolicy::default(),
            limits: &self.limits.tightened(&request.limits),
            route: Ok(&self.route),
            tools: None,
            payees: &BTreeMap::from([(NETWORK.parse().expect("CAIP-2"), payees)]),
            now: Timestamp::UNIX_EPOCH,
        };
        let decision = decide(&question, &known);
        serde_json::to_vec(&decision).expect("JSON");
        Some(decision)
    }
}
