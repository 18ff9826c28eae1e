//! The serialized form of a decision. Command line, HTTP API and library share one JSON schema
//! (`schemas/decision.schema.json`).

use std::fmt;

use alloy_primitives::{Address, U256};
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect, RefusalCode};
use clresolve_core::state::TrustState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::forms;
use crate::network::Caip2Network;
use crate::payee::PayeeProofMethod;
use crate::route::AgentRoute;
use crate::terms::ExactPrice;

/// The schema identifier.
pub const SCHEMA: &str = "clresolve.decision/1";

/// Whether a payment may be made, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PaymentDecision {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// SHA-256 of the RFC 8785 form of everything that the decision depends on: name, verb, terms, payment header,
    /// limits, route, payees, policy, verdict and anchor.
    pub id: String,
    /// The agent in canonical form, or as requested if the name has no canonical form.
    pub name: String,
    /// The verb to invoke.
    pub verb: String,
    /// The outcome.
    pub decision: DecisionOutcome,
    /// Whether the payment must not be made. False only if every check ran and passed.
    pub abort: bool,
    /// One sentence: what is paid to whom, or the first reason against it.
    pub reason: String,
    /// The codes of all reasons, by effect and then in the order of the checks. `reason` begins with the first code,
    /// unless it states what is paid.
    pub codes: Vec<String>,
    /// All reasons except those of the gate, by effect.
    pub reasons: Vec<Reason>,
    /// The state of the verdict.
    pub state: TrustState,
    /// The `id` of the verdict.
    pub verdict: String,
    /// SHA-256 of the RFC 8785 form of the terms: URL, version, offers, and the entries that were decided about.
    pub terms_digest: Option<String>,
    /// One row per entry that was decided about.
    pub entries: Vec<PaymentOptionResult>,
    /// The price of the first entry with a proven payee, or else of the first entry.
    pub price: Option<PriceDocument>,
    /// The payee of that price.
    pub payee: Option<PayeeDocument>,
    /// The URL behind the agent's entry.
    pub route: Option<AgentRoute>,
    /// Checks that ran.
    pub checked: Vec<PaymentCheck>,
    /// Checks that could not run.
    pub unchecked: Vec<PaymentCheck>,
    /// When the decision expires: the earliest expiry of the verdict, the terms, and the proof of the payee. Absent if
    /// the decision aborts.
    pub valid_until: Option<Timestamp>,
}

/// The outcome of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DecisionOutcome {
    /// Every check ran and passed.
    Allow,
    /// A check failed.
    Deny,
    /// No check failed, but some could not run.
    Undecided,
}

/// The result for one entry of the terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PaymentOptionResult {
    /// Its index in `accepts`.
    pub index: usize,
    /// Whether this entry must not be paid.
    pub abort: bool,
    /// The codes of the reasons, by effect.
    pub codes: Vec<String>,
    /// When permission to pay it expires. Absent if it must not be paid, or if it expires with the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Timestamp>,
    /// Whether all obstacles concern the payee, or an identity that only the seller names. Looking up further payees
    /// could then settle the entry, or show more about the identity. Not serialized.
    #[serde(skip)]
    pub is_but_for_the_payee: bool,
}

/// The price that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceDocument {
    /// The network of the payment.
    pub network: Caip2Network,
    /// The asset's contract.
    #[serde(deserialize_with = "forms::deserialize_address")]
    pub asset: Address,
    /// Atomic units, in decimal.
    #[serde(serialize_with = "forms::serialize_decimal_amount", deserialize_with = "forms::deserialize_amount")]
    pub amount: U256,
}

impl PriceDocument {
    pub(crate) fn from_price(price: &ExactPrice) -> Self {
        Self { network: price.network.clone(), asset: price.asset, amount: price.amount }
    }
}

/// The recipient of the payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PayeeDocument {
    /// The address.
    pub address: Address,
    /// The network of the payment.
    pub network: Caip2Network,
    /// How the address was proven to be the agent's.
    pub proven_by: Option<PayeeProofMethod>,
    /// SHA-256 of the RFC 8785 form of everything that the name and the configuration specify about payees.
    pub digest: String,
}

/// One of the checks of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PaymentCheck {
    /// The gate's own decision about name and verb.
    Identity,
    /// The URL that answered is the agent's.
    Route,
    /// The terms are for a resource on that host.
    Resource,
    /// The network is permitted.
    Network,
    /// The asset is permitted, under its own EIP-712 domain.
    Asset,
    /// The amount is permitted.
    Amount,
    /// The authorisation expires soon enough.
    Timeout,
    /// The payee is the agent's.
    Payee,
    /// The signed payment matches the decision.
    Signature,
}

/// A reason against a payment, either from the registry of reasons or from the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PaymentObjection {
    pub(crate) check: PaymentCheck,
    pub(crate) effect: ReasonEffect,
    pub(crate) code: String,
    pub(crate) message: String,
    /// The registry's reason. `None` if the objection comes from the gate.
    pub(crate) reason: Option<Reason>,
}

impl PaymentObjection {
    pub(crate) fn new(check: PaymentCheck, reason: Reason) -> Self {
        let (effect, code) = (reason.effect, reason.code.slug().to_owned());
        Self { check, effect, code, message: reason.message.clone(), reason: Some(reason) }
    }

    /// An objection of the gate or of its policy to the identity.
    pub(crate) fn from_gate(effect: ReasonEffect, code: &str) -> Self {
        let refusal =
            || RefusalCode::ALL.into_iter().find(|refusal| refusal.slug() == code).map_or("", RefusalCode::title);
        let title = ReasonCode::from_slug(code).map_or_else(refusal, |code| code.entry().title);
        Self { check: PaymentCheck::Identity, effect, code: code.to_owned(), message: title.to_owned(), reason: None }
    }

    pub(crate) fn is_decisive(&self) -> bool {
        self.effect != ReasonEffect::Warn
    }

    /// Whether the objection concerns the payee, or an identity that is not yet proven and accepted.
    pub(crate) fn may_depend_on_payee(&self) -> bool {
        self.check == PaymentCheck::Payee || self.code == ReasonCode::IdentityClaimed.slug()
    }

    /// Sort key: by effect, then in the order of the checks, then by code.
    pub(crate) fn sort_key(&self) -> (ReasonEffect, PaymentCheck, &str) {
        (self.effect, self.check, &self.code)
    }
}

impl DecisionOutcome {
    /// The outcome that results from these objections.
    pub(crate) fn from_objections(objections: &[PaymentObjection]) -> Self {
        match objections.iter().map(|objection| objection.effect).min() {
            Some(ReasonEffect::Fail) => Self::Deny,
            Some(ReasonEffect::Unknown) => Self::Undecided,
            Some(ReasonEffect::Warn) | None => Self::Allow,
        }
    }
}

impl DecisionOutcome {
    /// The serialized form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Undecided => "undecided",
        }
    }

    /// The outcome without any terms: it is never `Allow`.
    pub(crate) fn undecided_if_allowed(self) -> Self {
        if self == Self::Allow { Self::Undecided } else { self }
    }
}

/// The codes of the objections without duplicates, in [rank](PaymentObjection::sort_key) order.
pub(crate) fn objection_codes(objections: &[PaymentObjection]) -> Vec<String> {
    let mut sorted: Vec<&PaymentObjection> = objections.iter().collect();
    sorted.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    let mut codes = Vec::new();
    for PaymentObjection { code, .. } in sorted {
        if !codes.contains(code) {
            codes.push(code.clone());
        }
    }
    codes
}

impl PaymentDecision {
    /// Whether `code` is among the reasons.
    pub fn has_reason(&self, code: ReasonCode) -> bool {
        self.codes.iter().any(|known| known == code.slug())
    }

    /// The indices of the entries that may be paid, each with its expiry. There may be some even if the decision
    /// aborts, because other entries do not pass.
    pub fn payable_options(&self) -> impl Iterator<Item = (usize, Timestamp)> {
        let passes = self.entries.iter().filter(|row| !row.abort);
        passes.filter_map(|row| Some((row.index, row.valid_until.or(self.valid_until)?)))
    }
}

impl fmt::Display for DecisionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
