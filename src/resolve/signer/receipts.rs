//! Who signs receipts for an agent.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use clresolve_jose::PublicKey;
use clresolve_receipt::judge::Signer;

use super::{SignerError, SignerRecords};
use crate::name::EnsName;
use crate::reason::{Code, Effect, Reason};
use crate::records::Key;
use crate::resolve::look_ups::{Beside, Found, LookUps};
use crate::resolve::walk::Walker;
use crate::verdict::State;

/// Who signs receipts for an agent, or why that is not known.
type Known = Result<Signer, Box<Reason>>;

/// Who signs receipts for agents, as it was read a moment ago.
pub(in crate::resolve) type ReceiptSigners = LookUps<(), Known>;

impl Found for Known {
    fn state(&self) -> State {
        if self.as_ref().is_ok_and(|signer| signer.key.is_ok()) { State::Trusted } else { State::Indeterminate }
    }

    fn undecided(cause: &str) -> Self {
        Err(unpublished(Key::ReceiptSigner, &cause))
    }
}

/// Who signs receipts for the agent of a verdict. It is read once beside the verdict.
///
/// # Errors
/// `receipt-key-unpublished`, where it is not known who signs.
pub(in crate::resolve) async fn of(signers: &ReceiptSigners, walker: &Arc<Walker>, beside: &Beside) -> Known {
    let (asking, name) = (Arc::clone(walker), beside.name.clone());
    signers.answer(beside.clone(), (), &walker.clock, async move { read(&asking, &name).await }).await
}

/// The name that `cl.receipt.signer` of the agent names, or the agent itself where that record is not set. The records of
/// both are those of one block.
async fn read(walker: &Walker, agent: &EnsName) -> Known {
    let limit = walker.config.timeout / 2;
    let records_of = async |name: &EnsName| {
        SignerRecords::read_as_verdicts(walker, name, limit).await.map_err(|error| unpublished(Key::ReceiptSigner, &error))
    };
    let mut own = records_of(agent).await?;
    // The settled block moves on about every six minutes: two readings fall into two of them once at most.
    for _ in 0..2 {
        let name = match own.text(Key::ReceiptSigner).map_err(|error| unpublished(Key::ReceiptSigner, &error))? {
            Some(text) => EnsName::parse(text).map_err(|error| unpublished(Key::ReceiptSigner, &error))?,
            None => agent.clone(),
        };
        if name == *agent {
            return Ok(own.into_signer(name));
        }
        let records = records_of(&name).await?;
        if records.block.hash == own.block.hash {
            return Ok(records.into_signer(name));
        }
        own = records_of(agent).await?;
    }
    Err(unpublished(Key::ReceiptSigner, &"the two names were read at two blocks"))
}

fn unpublished(key: Key, why: &dyn Display) -> Box<Reason> {
    Box::new(Reason::new(Code::ReceiptKeyUnpublished).at(key.as_str()).observed(why.to_string()))
}

impl SignerRecords {
    /// As [`SignerRecords::read`], by what a verdict would rely on: one stranger's word is reported there, and refuses
    /// nothing.
    async fn read_as_verdicts(walker: &Walker, name: &EnsName, limit: Duration) -> Result<Self, SignerError> {
        Self::read_unless(walker, name, limit, |reason| reason.effect != Effect::Warn).await
    }

    fn into_signer(self, name: EnsName) -> Signer {
        let key = self.public_key().map_err(|error| unpublished(Key::SigPub, &error)).and_then(|text| {
            PublicKey::from_record(text).map_err(|error| unpublished(Key::SigPub, &error))
        });
        let text = |key| self.text(key).ok().flatten().map(str::to_owned);
        Signer {
            name,
            key,
            kid: text(Key::SigKid),
            canonical: text(Key::SigCanonical),
            block: self.block.number,
        }
    }
}
