//! The checks of a receipt by name, and how each ended.

use clresolve_verdict::verdict::Status;
use serde::Serialize;

/// A check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReceiptCheck {
    /// The agent that was asked is trusted.
    Identity,
    /// The receipt is strict JSON of one known shape.
    Family,
    /// It is what the schemas of its line demand.
    Schema,
    /// The claimed digest is the recomputed one.
    Hash,
    /// The signature holds over what was recomputed.
    Signature,
    /// The key's id is the published one.
    Key,
    /// The canonical form is the family's.
    Canonical,
    /// The signer is the one that the agent's records name.
    Signer,
    /// The agent, its entry and its verb are those that were asked.
    Agent,
    /// Its times can be right.
    Time,
    /// It is about the request.
    Request,
    /// It is about what was decided.
    Decision,
    /// It was paid for, as it was permitted.
    Settlement,
    /// It was not shown for another request before.
    Replay,
}

impl ReceiptCheck {
    /// The check's stable word.
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

/// One check and its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The check.
    pub check: ReceiptCheck,
    /// How it ended.
    pub status: Status,
    /// What would be right.
    pub expected: Option<String>,
    /// What stands there.
    pub observed: Option<String>,
    /// JSON Pointer into the receipt, or a record's key.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// CLAS's code for it, where it has one.
    pub clas: Option<&'static str>,
}

impl Row {
    pub(crate) fn new(check: ReceiptCheck, status: Status) -> Self {
        Self { check, status, expected: None, observed: None, place: None, clas: None }
    }
}
