//! Whether a receipt was shown before, for something else. Who remembers it, and where, is not known here.

use clresolve_core::digest::Digest;
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Code, Effect, Reason};

use crate::family::Family;
use crate::judge::{ReceiptCheck, ReceiptJudgement, ReceiptKnowledge, Row, Status};

/// What a receipt is remembered by. It stays the same however the text is changed where nobody signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Who signed it.
    pub signer: EnsName,
    /// SHA-256 over the key that signed and what is signed.
    pub receipt: Digest,
    /// SHA-256 of what it was shown for.
    pub occasion: Digest,
}

/// What the memory says of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It was not known, and is from now on.
    First,
    /// It was shown for the same before.
    Again,
    /// It was shown for something else before.
    Elsewhere,
}

impl Mark {
    /// The mark of a receipt that was shown for something. Whether it holds is another question, to be asked first: what
    /// anybody can make is not to be remembered.
    pub fn of(judgement: &ReceiptJudgement, known: &ReceiptKnowledge<'_>) -> Option<Self> {
        let (occasion, signed) = (judgement.occasion?, judgement.canonical_sha256?);
        let (signer, key) = match judgement.family? {
            Family::X1 => (&known.agent?.name, "addr"),
            _ => {
                let signer = known.signer.ok()?;
                (&signer.name, signer.key.as_ref().ok()?.id())
            }
        };
        Some(Self { signer: signer.clone(), receipt: Digest::of(format!("{key} {signed}").as_bytes()), occasion })
    }
}

/// The row of the check, and the reason where it did not pass. A memory that failed leaves it undecided.
pub(crate) fn row(seen: Result<Seen, String>) -> (Row, Option<Reason>) {
    let reason = match seen {
        Ok(Seen::First | Seen::Again) => {
            let observed = if seen == Ok(Seen::First) { "never" } else { "for the same" };
            return (Row { observed: Some(observed.to_owned()), ..Row::new(ReceiptCheck::Replay, Status::Pass) }, None);
        }
        Ok(Seen::Elsewhere) => Reason::new(Code::ReceiptReplayed).observed("for something else"),
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
