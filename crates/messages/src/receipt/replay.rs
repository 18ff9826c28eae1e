//! Detects whether a receipt was shown before for another request or purchase. The caller stores the history.

use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};

use crate::receipt::judge::{ReceiptCheckKind, ReceiptCheckResult, ReceiptJudgement, ReceiptKnowledge, StepStatus};

/// Key under which a receipt is stored. It does not change if unsigned parts of the text change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiptReplayKey {
    /// The signer's name.
    pub signer: EnsName,
    /// SHA-256 over the signing key and the signed content.
    pub receipt: Digest,
    /// SHA-256 of the request and purchase for which the receipt was shown.
    pub occasion: Digest,
}

/// What the history contains about a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptReplayStatus {
    /// The receipt was unknown and is now stored.
    First,
    /// The receipt was shown before for the same request and purchase.
    Again,
    /// The receipt was shown before for another request or purchase.
    Elsewhere,
}

impl ReceiptReplayKey {
    /// The key of a receipt that was shown for a request or purchase; `None` otherwise. Verify the receipt before
    /// storing it, so that forgeries by third parties do not fill the history.
    pub fn from_judgement(judgement: &ReceiptJudgement, known: &ReceiptKnowledge<'_>) -> Option<Self> {
        let (occasion, signed) = (judgement.occasion?, judgement.canonical_sha256?);
        let (signer, key) = if judgement.is_by_address {
            (&known.agent?.name, "addr")
        } else {
            let signer = known.signer.ok()?;
            (&signer.name, signer.key.as_ref().ok()?.thumbprint())
        };
        Some(Self { signer: signer.clone(), receipt: Digest::compute(format!("{key} {signed}").as_bytes()), occasion })
    }
}

/// The row of the replay check, and the reason if it did not pass. If the history is unavailable, the check is
/// undecided.
pub(crate) fn replay_check_result(seen: Result<ReceiptReplayStatus, String>) -> (ReceiptCheckResult, Option<Reason>) {
    let reason = match seen {
        Ok(ReceiptReplayStatus::First | ReceiptReplayStatus::Again) => {
            let observed = if seen == Ok(ReceiptReplayStatus::First) { "never" } else { "for the same" };
            return (
                ReceiptCheckResult {
                    observed: Some(observed.to_owned()),
                    ..ReceiptCheckResult::new(ReceiptCheckKind::Replay, StepStatus::Pass)
                },
                None,
            );
        }
        Ok(ReceiptReplayStatus::Elsewhere) => Reason::new(ReasonCode::ReceiptReplayed).observed("for something else"),
        Err(cause) => Reason { effect: ReasonEffect::Unknown, ..Reason::new(ReasonCode::ReceiptReplayed) }
            .message("Whether the receipt was shown before is not known.")
            .observed(cause),
    };
    let reason = reason.expected("never shown, or for the same");
    let status = if reason.effect == ReasonEffect::Fail { StepStatus::Fail } else { StepStatus::Unknown };
    let row = ReceiptCheckResult {
        expected: reason.expected.clone(),
        observed: reason.observed.clone(),
        ..ReceiptCheckResult::new(ReceiptCheckKind::Replay, status)
    };
    (row, Some(reason))
}
