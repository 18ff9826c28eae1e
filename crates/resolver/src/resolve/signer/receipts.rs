//! Who signs receipts for an agent.

use std::fmt::Display;

use clresolve_core::name::EnsName;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::records::TextRecordKey;
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519PublicKey;
use clresolve_messages::receipt::judge::PublishedReceiptSigner;

use super::{
    SignerLookupCache, SignerRecords, SignerRecordsError, SignerRecordsResult, look_up_signer, read_accepted_signer,
};
use crate::resolve::cached::CachingResolver;
use crate::resolve::look_ups::{LookupCacheValue, ResolvedVerdictKey};
use crate::resolve::walk::UncachedResolver;

/// The signer of an agent's receipts, or why it is unknown.
type ReceiptSignerResult = Result<PublishedReceiptSigner, Box<Reason>>;

/// In-flight readings of receipt signers, and recent results.
pub(in crate::resolve) type ReceiptSignerCache = SignerLookupCache<ReceiptSignerResult>;

impl LookupCacheValue for ReceiptSignerResult {
    fn lifetime_state(&self) -> TrustState {
        if self.as_ref().is_ok_and(|signer| signer.key.is_ok()) {
            TrustState::Trusted
        } else {
            TrustState::Indeterminate
        }
    }

    fn undecided(cause: &str) -> Self {
        Err(unpublished_key_reason(TextRecordKey::ReceiptSigner, &cause))
    }
}

/// Returns who signs receipts for the agent of a verdict.
///
/// # Errors
/// `receipt-key-unpublished` if the signer is unknown.
pub(in crate::resolve) async fn receipt_signer_of_agent(
    signers: &ReceiptSignerCache,
    cached: &CachingResolver,
    beside: &ResolvedVerdictKey,
) -> ReceiptSignerResult {
    look_up_signer(signers, cached, beside, counts_as_objection, receipt_signer_from_records).await
}

/// Reads the signer from the chain. The records of the agent and of its signer are from the same block.
pub(in crate::resolve) async fn read_receipt_signer(walker: &UncachedResolver, agent: &EnsName) -> ReceiptSignerResult {
    receipt_signer_from_records(read_accepted_signer(walker, agent, counts_as_objection).await)
}

/// A reading from a single third-party endpoint is reported in the verdict, and is not a reason to refuse.
fn counts_as_objection(reason: &Reason) -> bool {
    reason.effect != ReasonEffect::Warn
}

fn receipt_signer_from_records(signer: SignerRecordsResult) -> ReceiptSignerResult {
    match signer {
        Ok((name, records)) => Ok(records.into_receipt_signer(name)),
        Err(error) => Err(unpublished_key_reason(TextRecordKey::ReceiptSigner, &error)),
    }
}

fn unpublished_key_reason(key: TextRecordKey, why: &dyn Display) -> Box<Reason> {
    Box::new(Reason::new(ReasonCode::ReceiptKeyUnpublished).at_place(key.as_str()).observed(why.to_string()))
}

impl SignerRecords {
    fn into_receipt_signer(self, name: EnsName) -> PublishedReceiptSigner {
        let key = self
            .signing_public_key()
            .map_err(|error| unpublished_key_reason(TextRecordKey::SigPub, &error))
            .and_then(|text| {
                Ed25519PublicKey::from_signer_record(text)
                    .map_err(|error| unpublished_key_reason(TextRecordKey::SigPub, &error))
            });
        let kid = self.signing_key_id().map_err(|error| unpublished_key_reason(TextRecordKey::SigKid, &error));
        let kid = kid.and_then(|kid| {
            kid.ok_or_else(|| {
                unpublished_key_reason(TextRecordKey::SigKid, &SignerRecordsError::Absent(TextRecordKey::SigKid))
            })
        });
        PublishedReceiptSigner {
            name,
            key,
            kid: kid.map(str::to_owned),
            canonical: self.text_record(TextRecordKey::SigCanonical).ok().flatten().map(str::to_owned),
            block: self.block.number,
            lent: self.lent,
        }
    }
}

#[cfg(test)]
mod tests {
    use clresolve_core::records::TextRecord;
    use clresolve_jose::SignatureKeyError;

    use super::super::read_signer_at_one_block;
    use super::super::tests::{InTurn, records};
    use super::*;

    /// The block at which the signer was read, or why it was not, and how many names were read.
    async fn read_at(blocks: &[u8]) -> (Result<u64, ReasonCode>, usize) {
        let chain = InTurn::at(blocks);
        let signer =
            receipt_signer_from_records(read_signer_at_one_block(&chain.agent(), |name| chain.read(&name)).await);
        (signer.map(|signer| signer.block).map_err(|why| why.code), chain.reads())
    }

    /// Otherwise the key of a former signer, or a former key of the signer, would be accepted as the current one.
    #[tokio::test]
    async fn both_names_are_read_at_one_block() {
        assert_eq!(read_at(&[1, 1]).await, (Ok(1), 2));
        assert_eq!(read_at(&[1, 2, 2, 2]).await, (Ok(2), 4), "the block moved on once");
        let (known, _) = read_at(&[1, 2, 3, 4, 5, 6]).await;
        assert_eq!(known, Err(ReasonCode::ReceiptKeyUnpublished), "it moved on each time");
    }

    /// With a key of low order, anyone can produce a valid signature for some message.
    #[test]
    fn a_key_of_low_order_is_none() {
        let (of_order_two, identity) = (format!("ec{}7f", "ff".repeat(30)), format!("01{}", "00".repeat(31)));
        for key in [of_order_two, identity] {
            let key = TextRecord::Text(format!("ed25519:{key}"));
            let signer =
                records([(TextRecordKey::SigPub, key)]).into_receipt_signer(EnsName::parse("a.eth").expect("a name"));
            let reason = signer.key.expect_err("no key");
            let observed = reason.observed.unwrap_or_default();
            assert_eq!(
                (reason.code, observed),
                (ReasonCode::ReceiptKeyUnpublished, SignatureKeyError::Weak.to_string())
            );
        }
    }

    /// An unreadable record is not known to be absent.
    #[test]
    fn a_key_id_that_is_not_set_or_not_utf_8_says_so() {
        let observed = |kid| {
            let signer =
                records([(TextRecordKey::SigKid, kid)]).into_receipt_signer(EnsName::parse("a.eth").expect("a name"));
            let reason = signer.kid.expect_err("it is none");
            (reason.code, reason.effect, reason.observed.unwrap_or_default())
        };
        let unpublished =
            |observed: &str| (ReasonCode::ReceiptKeyUnpublished, ReasonEffect::Unknown, observed.to_owned());
        assert_eq!(observed(TextRecord::Absent), unpublished("cl.sig.kid is not set"));
        assert_eq!(observed(TextRecord::NotUtf8(vec![0xff])), unpublished("cl.sig.kid is not UTF-8"));
    }
}
