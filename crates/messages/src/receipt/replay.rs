//! Detects whether a receipt was shown before for another request or purchase. The caller stores the history.

use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Code, Effect, Reason};

use crate::receipt::judge::{ReceiptCheck, ReceiptJudgement, ReceiptKnowledge, Row, Status};

/// Key under which a receipt is stored. It does not change if unsigned parts of the text change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The signer's name.
    pub signer: EnsName,
    /// SHA-256 over the signing key and the signed content.
    pub receipt: Digest,
    /// SHA-256 of the request and purchase for which the receipt was shown.
    pub occasion: Digest,
}

/// What the history contains about a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayStatus {
    /// The receipt was unknown and is now stored.
    First,
    /// The receipt was shown before for the same request and purchase.
    Again,
    /// The receipt was shown before for another request or purchase.
    Elsewhere,
}

impl Mark {
    /// The key of a receipt that was shown for a request or purchase; `None` otherwise. Verify the receipt before
    /// storing it, so that forgeries by third parties do not fill the history.
    pub fn of(judgement: &ReceiptJudgement, known: &ReceiptKnowledge<'_>) -> Option<Self> {
        let (occasion, signed) = (judgement.occasion?, judgement.canonical_sha256?);
        let (signer, key) = if judgement.is_by_address {
            (&known.agent?.name, "addr")
        } else {
            let signer = known.signer.ok()?;
            (&signer.name, signer.key.as_ref().ok()?.id())
        };
        Some(Self { signer: signer.clone(), receipt: Digest::of(format!("{key} {signed}").as_bytes()), occasion })
    }
}

/// The row of the replay check, and the reason if it did not pass. If the history is unavailable, the check is
/// undecided.
pub(crate) fn row(seen: Result<ReplayStatus, String>) -> (Row, Option<Reason>) {
    let reason = match seen {
        Ok(ReplayStatus::First | ReplayStatus::Again) => {
            let observed = if seen == Ok(ReplayStatus::First) { "never" } else { "for the same" };
            return (Row { observed: Some(observed.to_owned()), ..Row::new(ReceiptCheck::Replay, Status::Pass) }, None);
        }
        Ok(ReplayStatus::Elsewhere) => Reason::new(Code::ReceiptReplayed).observed("for something else"),
        Err(cause) => Reason { effect: Effect::Unknown, ..Reason::new(Code::ReceiptReplayed) }
            .message("Whether the receipt was shown before is not known.")
            .observed(cause),
    };
    let reason = reason.expected("never shown, or for the same");
    let status = if reason.effect == Effect::Fail { Status::Fail } else { Status::Unknown };
    let row = Row {
        expected: reason.expected.clone(),
        observed: reason.observed.clone(),
        ..Row::new(ReceiptCheck::Replay, status)
    };
    (row, Some(reason))
}
