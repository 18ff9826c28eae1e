//! The checks of a receipt and their results.

use clresolve_verdict::verdict::StepStatus;
use serde::Serialize;

/// A check of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiptCheckKind {
    /// The agent is trusted.
    Identity,
    /// The receipt is strict JSON of one known shape.
    Family,
    /// The receipt follows the schemas of its line.
    Schema,
    /// The stated digest equals the recomputed one.
    Hash,
    /// The signature over the recomputed content is valid.
    Signature,
    /// The key id equals the published one.
    Key,
    /// The canonical form is that of the family.
    Canonical,
    /// The signer is the one that the agent's records name.
    Signer,
    /// Agent, entry and verb are those that were called.
    Agent,
    /// Its times are plausible.
    Time,
    /// The receipt is about the request.
    Request,
    /// The receipt is about the payment decision.
    Decision,
    /// The purchase was paid as the decision permitted.
    Settlement,
    /// The receipt was not shown for another request or purchase before.
    Replay,
}

impl ReceiptCheckKind {
    /// The check's stable identifier.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Family => "family",
            Self::Schema => "schema",
            Self::Hash => "hash",
            Self::Signature => "signature",
            Self::Key => "key",
            Self::Canonical => "canonical",
            Self::Signer => "signer",
            Self::Agent => "agent",
            Self::Time => "time",
            Self::Request => "request",
            Self::Decision => "decision",
            Self::Settlement => "settlement",
            Self::Replay => "replay",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiptCheckResult {
    /// The check.
    pub check: ReceiptCheckKind,
    /// How it ended.
    pub status: StepStatus,
    /// The expected value.
    pub expected: Option<String>,
    /// The observed value.
    pub observed: Option<String>,
    /// JSON Pointer into the receipt, or the key of a record.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// The CLAS error code, if there is one.
    pub clas: Option<&'static str>,
}

impl ReceiptCheckResult {
    pub(crate) fn new(check: ReceiptCheckKind, status: StepStatus) -> Self {
        Self { check, status, expected: None, observed: None, place: None, clas: None }
    }
}
