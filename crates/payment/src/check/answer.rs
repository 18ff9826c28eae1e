//! The answer of a check: the members of a decision, and the evidence. Its JSON schema is `schemas/check.schema.json`.

use clresolve_core::reading::ProofGrade;
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::state::TrustState;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::identity::{NamedSellerIdentity, PayeeEvidenceKind, WebOrigin};
use crate::decision::{DecisionOutcome, PayeeDocument, PaymentCheck, PaymentOptionResult, PriceDocument};

/// The schema identifier.
pub const SCHEMA: &str = "clresolve.check/1";

/// Who is paid, what proves it, and whether the payment may be made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SellerCheckDocument {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// SHA-256 of the RFC 8785 form of everything that the answer depends on: origin, identity, terms, payment header,
    /// limits, policy, payees, verdict and memory.
    pub id: String,
    /// The origin that answered. `None` if it is unknown, or is neither https nor on loopback.
    pub origin: Option<WebOrigin>,
    /// The identity that the check is about. `None` if nobody names one.
    pub identity: Option<NamedSellerIdentity>,
    /// The name in the request, in normal form if it has one; else the identity, if it is a name.
    pub name: Option<String>,
    /// The verb to invoke, if the caller names one.
    pub verb: Option<String>,
    /// The outcome.
    pub decision: DecisionOutcome,
    /// Whether the payment must not be made. False only if every check ran and passed.
    pub abort: bool,
    /// One sentence: what is paid to whom and what proves it, or the first reason against it.
    pub reason: String,
    /// The codes of all reasons, by effect and then in the order of the checks.
    pub codes: Vec<String>,
    /// All reasons from the registry, by effect.
    pub reasons: Vec<Reason>,
    /// The state of the name's verdict.
    pub state: Option<TrustState>,
    /// The `id` of the name's verdict.
    pub verdict: Option<String>,
    /// SHA-256 of the RFC 8785 form of the terms, as in a decision.
    pub terms_digest: Option<String>,
    /// One row per entry that was checked.
    pub entries: Vec<PaymentOptionResult>,
    /// The price of the first entry with a proven payee, or else of the first entry.
    pub price: Option<PriceDocument>,
    /// The payee of that price.
    pub payee: Option<PayeeDocument>,
    /// Checks that ran.
    pub checked: Vec<PaymentCheck>,
    /// Checks that could not run.
    pub unchecked: Vec<PaymentCheck>,
    /// When the answer expires. `None` if it aborts.
    pub valid_until: Option<Timestamp>,
    /// One row per kind of evidence, in the order of [`PayeeEvidenceKind::ALL`].
    pub evidence: Vec<PayeeEvidenceRow>,
}

impl SellerCheckDocument {
    /// Whether `code` is among the reasons.
    pub fn has_reason(&self, code: ReasonCode) -> bool {
        self.codes.iter().any(|known| known == code.slug())
    }

    /// The row of this kind.
    pub fn evidence_row(&self, kind: PayeeEvidenceKind) -> Option<&PayeeEvidenceRow> {
        self.evidence.iter().find(|row| row.kind == kind)
    }
}

/// What one kind of evidence shows about the payee.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PayeeEvidenceRow {
    /// The kind.
    pub kind: PayeeEvidenceKind,
    /// What it shows.
    pub state: PayeeEvidenceState,
    /// One sentence about it.
    pub detail: String,
    /// The result for an ERC-8004 registration, in the terms of the draft ERC-8478 of 2026-10-30.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Erc8004Outcome>,
    /// What was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Value>,
    /// Where it was read: a name, or an entry of a registry.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The block at which it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// The grade of the proof.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<ProofGrade>,
    /// The codes of the reasons.
    pub codes: Vec<String>,
}

impl PayeeEvidenceRow {
    pub(crate) fn new(kind: PayeeEvidenceKind, state: PayeeEvidenceState, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self {
            kind,
            state,
            detail,
            outcome: None,
            read: None,
            place: None,
            block: None,
            grade: None,
            codes: Vec::new(),
        }
    }

    pub(crate) fn with_code(self, code: ReasonCode) -> Self {
        self.with_codes([code.slug().to_owned()])
    }

    pub(crate) fn with_codes(self, codes: impl IntoIterator<Item = String>) -> Self {
        Self { codes: codes.into_iter().collect(), ..self }
    }
}

/// What evidence shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PayeeEvidenceState {
    /// The payee is proven.
    Proven,
    /// Only the seller claims it.
    Claimed,
    /// The evidence contradicts the payment.
    Contradicted,
    /// There is no evidence of this kind.
    Absent,
    /// It could not be read or decided.
    Undecided,
}

impl PayeeEvidenceState {
    /// The serialized form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proven => "proven",
            Self::Claimed => "claimed",
            Self::Contradicted => "contradicted",
            Self::Absent => "absent",
            Self::Undecided => "undecided",
        }
    }
}

/// The result for an ERC-8004 registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Erc8004Outcome {
    /// The payee is the agent's wallet.
    VerifiedWallet,
    /// The agent's wallet is another address.
    Mismatch,
    /// The registration file does not list the origin.
    EndpointUnlisted,
    /// The payee owns the registration, but is not its wallet.
    OwnerOnly,
    /// The agent has no wallet.
    NoAgentWallet,
    /// The registry has no such agent.
    NoIdentity,
    /// The registration could not be read.
    NotRead,
}
