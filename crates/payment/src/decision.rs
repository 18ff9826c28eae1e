//! The written form of a decision. One JSON schema (`schemas/decision.schema.json`) for command line, HTTP and library.

use std::fmt;

use alloy_primitives::Address;
use clresolve_core::reason::{Code, Effect, Reason};
use clresolve_core::state::State;
use jiff::Timestamp;
use serde::Serialize;

use crate::network::Network;
use crate::payee::ProvenBy;
use crate::route::Route;

/// The schema identifier.
pub const SCHEMA: &str = "clresolve.decision/1";

/// Whether a payment may be made, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// SHA-256 over the RFC 8785 form of everything that was decided about: name, verb, terms, payment header, limits, route,
    /// payees, policy, verdict and anchor.
    pub id: String,
    /// The agent, in normal form; as it was asked for where it has none.
    pub name: String,
    /// The verb.
    pub verb: String,
    /// What was decided.
    pub decision: Outcome,
    /// Whether the payment must not be made: false only where every check was made and passed.
    pub abort: bool,
    /// One sentence: what is paid to whom, or the first reason against it.
    pub reason: String,
    /// The codes of all reasons, by effect and then in the order of the checks: `reason` begins with the first,
    /// unless it says what is paid.
    pub codes: Vec<String>,
    /// All reasons but the gate's own, by effect.
    pub reasons: Vec<Reason>,
    /// State of the verdict.
    pub state: State,
    /// `id` of the verdict.
    pub verdict: String,
    /// SHA-256 over the RFC 8785 form of the terms: URL, version, offers, and the entries that were decided about.
    pub terms_digest: Option<String>,
    /// A row for each entry that was decided about.
    pub entries: Vec<EntryRow>,
    /// What the first of them asks for whose payee is proven, else the first.
    pub price: Option<PriceRow>,
    /// Who is paid by it.
    pub payee: Option<PayeeRow>,
    /// The URL behind the agent's entry.
    pub route: Option<Route>,
    /// Checks that were made.
    pub checked: Vec<Check>,
    /// Checks that could not be made.
    pub unchecked: Vec<Check>,
    /// Until when the decision holds: the first end of verdict, terms, and what proves the payee. Absent where it aborts.
    pub valid_until: Option<Timestamp>,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Every check was made and passed.
    Allow,
    /// A check failed.
    Deny,
    /// None failed, but not every one could be made.
    Undecided,
}

/// One entry of the terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EntryRow {
    /// Its place in `accepts`.
    pub index: usize,
    /// Whether it must not be paid.
    pub abort: bool,
    /// Why, by effect.
    pub codes: Vec<String>,
    /// Until when it may be paid; absent where it must not be, and where that is the end of the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<Timestamp>,
    /// Whether nothing but the payee stands against it, if anything does. What is looked up could settle that. It is not
    /// written.
    #[serde(skip)]
    pub is_but_for_the_payee: bool,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PriceRow {
    /// On this network.
    pub network: Network,
    /// The asset's contract.
    pub asset: Address,
    /// Atomic units, in decimal.
    pub amount: String,
}

/// Who is paid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PayeeRow {
    /// The address.
    pub address: Address,
    /// On this network.
    pub network: Network,
    /// How it is known to be the agent's.
    pub proven_by: Option<ProvenBy>,
    /// SHA-256 over the RFC 8785 form of everything that the name and the configuration say about payees.
    pub digest: String,
}

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
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
    /// The authorisation is short-lived.
    Timeout,
    /// The payee is the agent's.
    Payee,
    /// What was signed is what was decided.
    Signature,
}

/// A reason against a payment: one of the registry's, or what the gate has against the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Objection {
    pub(crate) check: Check,
    pub(crate) effect: Effect,
    pub(crate) code: String,
    pub(crate) message: String,
    /// The registry's reason; `None` for one of the gate's.
    pub(crate) reason: Option<Reason>,
}

impl Objection {
    pub(crate) fn new(check: Check, reason: Reason) -> Self {
        let (effect, code) = (reason.effect, reason.code.slug().to_owned());
        Self { check, effect, code, message: reason.message.clone(), reason: Some(reason) }
    }

    pub(crate) fn decides(&self) -> bool {
        self.effect != Effect::Warn
    }

    /// What is said first: by effect, then in the order of the checks, then by name.
    pub(crate) fn rank(&self) -> (Effect, Check, &str) {
        (self.effect, self.check, &self.code)
    }
}

impl Outcome {
    /// What objections lead to.
    pub(crate) fn of(objections: &[Objection]) -> Self {
        match objections.iter().map(|objection| objection.effect).min() {
            Some(Effect::Fail) => Self::Deny,
            Some(Effect::Unknown) => Self::Undecided,
            Some(Effect::Warn) | None => Self::Allow,
        }
    }
}

impl Outcome {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Undecided => "undecided",
        }
    }

    /// The same, unless nothing stood to be decided about: what holds no terms is never allowed.
    pub(crate) fn without_terms(self) -> Self {
        if self == Self::Allow { Self::Undecided } else { self }
    }
}

/// The codes of objections, each once, in their [rank](Objection::rank).
pub(crate) fn codes(objections: &[Objection]) -> Vec<String> {
    let mut sorted: Vec<&Objection> = objections.iter().collect();
    sorted.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let mut codes = Vec::new();
    for Objection { code, .. } in sorted {
        if !codes.contains(code) {
            codes.push(code.clone());
        }
    }
    codes
}

impl Decision {
    /// Whether `code` is among the reasons.
    pub fn has(&self, code: Code) -> bool {
        self.codes.iter().any(|known| known == code.slug())
    }

    /// The places of the entries that may be paid, each with the time until when. There may be some where the decision
    /// aborts: others do not pass then.
    pub fn passing(&self) -> impl Iterator<Item = (usize, Timestamp)> {
        let passes = self.entries.iter().filter(|row| !row.abort);
        passes.filter_map(|row| Some((row.index, row.valid_until.or(self.valid_until)?)))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
