//! The keys that a name signs messages with: the one place where `cl.receipt.signer` and `cl.sig.*` are read.

#[cfg(feature = "receipts")]
pub(super) mod receipts;

use std::time::Duration;

use alloy_primitives::Address;
use clresolve_jose::PublicKey;
use clresolve_payment::offer::SignerKeys;
use clresolve_verdict::published::{Published, Standing};

use super::walk::Walker;
use crate::chain::{Answer, Block, Reading};
use crate::check::records::{chain_error, unsettled};
use crate::config::Grade;
use crate::name::EnsName;
use crate::reason::{Code, Reason};
use crate::records::{Key, Record, RecordSet};

/// The signer's records of a name: they stand at a settled block, at the newest one too, and more than one endpoint, or
/// the operator's own, vouches for them.
pub(super) struct SignerRecords {
    records: RecordSet,
    grade: Grade,
    block: Block,
    /// Whether they come from a gateway off the chain, or from an ancestor's resolver.
    borrowed: bool,
}

/// Why a name has no signer's records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignerError {
    /// They could not be read, or not settled; asking again may help.
    #[error("{0}")]
    Unavailable(String),
    /// Proven: the name is not registered.
    #[error("the name is not registered")]
    Unregistered,
    /// Proven: the name has no resolver.
    #[error("the name has no resolver")]
    NoResolver,
    /// This record is not set.
    #[error("{0} is not set")]
    Absent(Key),
    /// This record is not UTF-8.
    #[error("{0} is not UTF-8")]
    NotUtf8(Key),
}

impl SignerRecords {
    /// The records of `name`.
    pub(super) async fn read(walker: &Walker, name: &EnsName, limit: Duration) -> Result<Self, SignerError> {
        Self::read_unless(walker, name, limit, |_| true).await
    }

    /// The records of `name`, unless one of the reasons against the reading counts.
    async fn read_unless(
        walker: &Walker,
        name: &EnsName,
        limit: Duration,
        counts: impl Fn(&Reason) -> bool,
    ) -> Result<Self, SignerError> {
        let block = walker.config.chain.block;
        let reading = match tokio::time::timeout(limit, walker.chain.read_keys(name, block, &Key::SIGNER)).await {
            Ok(Ok(reading)) => reading,
            Ok(Err(error)) => return Err(SignerError::Unavailable(chain_error(&error).observed.unwrap_or_default())),
            Err(_) => return Err(SignerError::Unavailable("no answer in time".to_owned())),
        };
        if let Some(reason) = unsettled(&reading, block, walker.now()).iter().find(|reason| counts(reason)) {
            return Err(SignerError::Unavailable(format!("{}: {}", reason.code, reason.message)));
        }
        Self::of(reading)
    }

    fn of(reading: Reading) -> Result<Self, SignerError> {
        match reading.answer {
            Answer::Records(found) => Ok(Self {
                borrowed: found.offchain || found.wildcard.is_some(),
                records: found.records,
                grade: reading.proof.grade,
                block: reading.block,
            }),
            Answer::Unregistered => Err(SignerError::Unregistered),
            Answer::NoResolver(_) => Err(SignerError::NoResolver),
        }
    }

    /// The text under a key; `None` where the record is not set.
    pub(super) fn text(&self, key: Key) -> Result<Option<&str>, SignerError> {
        match self.records.get(key) {
            Record::Text(text) => Ok(Some(text)),
            Record::Absent => Ok(None),
            Record::NotUtf8(_) => Err(SignerError::NotUtf8(key)),
        }
    }

    /// The text of `cl.sig.pub`.
    pub(super) fn public_key(&self) -> Result<&str, SignerError> {
        self.text(Key::SigPub)?.ok_or(SignerError::Absent(Key::SigPub))
    }
}

/// Addresses of the name that stand at the newest block too: they sign by EIP-712.
pub(super) fn addresses(published: &Published) -> SignerKeys {
    let coins = published.settled().addresses.keys();
    let settled = coins.filter_map(|coin| match published.address(*coin) {
        Standing::Settled(address) => Some(address),
        _ => None,
    });
    let mut addresses: Vec<Address> = settled.collect();
    addresses.sort();
    addresses.dedup();
    SignerKeys { addresses, ed25519: Vec::new() }
}

/// The key of the name that `cl.receipt.signer` names, or of the name itself where that record is not set. What cannot
/// be read, or is no key, is no key; nor is one that the gate would not rely on.
pub(super) async fn offer_key(walker: &Walker, name: &EnsName) -> Option<PublicKey> {
    let own = relied_on(walker, name).await?;
    let signer = match own.text(Key::ReceiptSigner).ok()? {
        Some(signer) => EnsName::parse(signer).ok()?,
        None => return PublicKey::from_record(own.public_key().ok()?).ok(),
    };
    let records = if signer == *name { own } else { relied_on(walker, &signer).await? };
    PublicKey::from_record(records.public_key().ok()?).ok()
}

/// Records with the grade of proof that the gate demands, and without what it denies.
async fn relied_on(walker: &Walker, name: &EnsName) -> Option<SignerRecords> {
    let gate = &walker.config.gate;
    let records = SignerRecords::read(walker, name, walker.config.timeout / 2).await.ok()?;
    let denies_borrowed = [Code::RecordOffchain, Code::NameWildcard].iter().any(|code| gate.deny.contains(code));
    let is_weak = gate.min_proof.is_some_and(|least| records.grade < least);
    let is_denied = denies_borrowed && records.borrowed;
    (!is_weak && !is_denied).then_some(records)
}
