//! Content that a trusted resolution proved, for reuse by a refresh that finds the same records on chain.

use alloy_primitives::Address;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};

use clresolve_core::freshness::{HTTPS_AGE, TRUSTED_FRESH};
use clresolve_core::name::EnsName;
use clresolve_core::reading::{EnsAnswer, NameHolder, NameReading};
use clresolve_verdict::build::{EvidenceWithStepDurations, records_digest};
use clresolve_verdict::evidence::{
    CanonicalAndMirrorSchema, ContentProofSource, HttpsOutcome, IpfsWalkOutcome, SchemaEvidence,
};

/// Content that is valid while the records on chain are unchanged, and for at most [`HTTPS_AGE`].
#[derive(Clone, Debug)]
pub struct ReusableContent {
    named_by: RecordStateAtFetch,
    /// When the content was fetched. Reuse by a refresh does not change this time.
    fetched_at: Timestamp,
    https: HttpsOutcome,
    ipfs: IpfsWalkOutcome,
    mirror: IpfsWalkOutcome,
    schemas: Option<SchemaEvidence<Bytes>>,
}

/// The records on chain when the content was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordStateAtFetch {
    resolver: Address,
    wildcard: Option<EnsName>,
    offchain: bool,
    records: String,
    holder: NameHolder,
    expiry: Option<Timestamp>,
}

impl RecordStateAtFetch {
    fn from_reading(reading: &NameReading) -> Option<Self> {
        let EnsAnswer::Records(found) = &reading.answer else { return None };
        Some(Self {
            resolver: found.resolver,
            wildcard: found.wildcard.clone(),
            offchain: found.offchain,
            records: records_digest(&found.records),
            holder: reading.holder,
            expiry: reading.expiry,
        })
    }
}

impl ReusableContent {
    /// The content of a resolution, if every queried source returned all of it. Missing content must be requested
    /// again.
    pub fn from_evidence(run: &EvidenceWithStepDurations) -> Option<Self> {
        let evidence = &run.evidence;
        let schemas_are_whole = evidence.schemas.as_ref().is_none_or(|schemas| {
            [&schemas.request, &schemas.receipt]
                .into_iter()
                .all(|bound| bound.canonical.is_ok() && bound.mirror.as_ref().is_none_or(Result::is_ok))
        });
        if !matches!(evidence.https, HttpsOutcome::NotAsked | HttpsOutcome::Body { .. }) || !schemas_are_whole {
            return None;
        }
        let card = evidence.card_bytes()?;
        Some(Self {
            named_by: RecordStateAtFetch::from_reading(evidence.reading.as_ref().ok()?)?,
            fetched_at: run.content_fetched_at.unwrap_or(evidence.now),
            https: match evidence.https.clone() {
                HttpsOutcome::Body { bytes, url } => HttpsOutcome::Body { bytes: share_equal_bytes(bytes, card), url },
                other => other,
            },
            ipfs: reusable_ipfs_outcome(&evidence.ipfs, card)?,
            mirror: reusable_ipfs_outcome(&evidence.mirror, card)?,
            schemas: evidence.schemas.as_ref().map(SchemaEvidence::reduce_to_bytes),
        })
    }

    /// Whether a resolution at `now` would fetch the same content. The records must be unchanged, and the verdict's
    /// lifetime must end before the content reaches [`HTTPS_AGE`], so that the host is queried again in time.
    pub fn is_reusable_for(&self, reading: &NameReading, now: Timestamp) -> bool {
        let age = SignedDuration::try_from(HTTPS_AGE.saturating_sub(TRUSTED_FRESH)).unwrap_or_default();
        let is_young =
            now.duration_since(self.fetched_at) < age || clresolve_core::mutant!("https-is-never-compared-again");
        let is_named = RecordStateAtFetch::from_reading(reading).is_some_and(|named_by| named_by == self.named_by);
        is_young && (is_named || clresolve_core::mutant!("content-of-other-records"))
    }

    /// When the content was fetched.
    pub const fn fetched_at(&self) -> Timestamp {
        self.fetched_at
    }

    /// The document that the card's URL served.
    pub const fn https_source(&self) -> &HttpsOutcome {
        &self.https
    }

    /// The content at the name's CID, and at the CID of its mirror.
    pub const fn ipfs_outcomes(&self) -> (&IpfsWalkOutcome, &IpfsWalkOutcome) {
        (&self.ipfs, &self.mirror)
    }

    /// The bound schemas, if the depth includes them.
    pub const fn schemas(&self) -> Option<&SchemaEvidence<Bytes>> {
        self.schemas.as_ref()
    }

    /// Number of bytes in addition to those of the card, which the resolution already holds.
    pub fn byte_count_besides_card(&self, card: Option<&Bytes>) -> usize {
        let schemas = self.schemas.iter().flat_map(|schemas| [&schemas.request, &schemas.receipt]);
        let of_card = [self.https.bytes(), self.ipfs.bytes(), self.mirror.bytes()];
        let held = schemas.flat_map(CanonicalAndMirrorSchema::served_documents).chain(of_card.into_iter().flatten());
        held.filter(|bytes| card.is_none_or(|card| !is_same_memory(bytes, card))).map(Bytes::len).sum()
    }
}

/// The walk's result as a later resolution reports it. `None` if the content is missing.
fn reusable_ipfs_outcome(walked: &IpfsWalkOutcome, card: &Bytes) -> Option<IpfsWalkOutcome> {
    match walked {
        IpfsWalkOutcome::NotAsked => Some(IpfsWalkOutcome::NotAsked),
        IpfsWalkOutcome::Proven { bytes, .. } => Some(IpfsWalkOutcome::Proven {
            bytes: share_equal_bytes(bytes.clone(), card),
            by: ContentProofSource::EarlierRun,
            blocks: 0,
        }),
        IpfsWalkOutcome::Refuted(_) | IpfsWalkOutcome::Unproven(_) => None,
    }
}

/// Returns the bytes of the card if they are equal, so that sources that agree share memory.
fn share_equal_bytes(bytes: Bytes, card: &Bytes) -> Bytes {
    if bytes == *card { card.clone() } else { bytes }
}

fn is_same_memory(one: &Bytes, other: &Bytes) -> bool {
    one.as_ptr() == other.as_ptr() && one.len() == other.len()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clresolve_core::fetch::SourceUnavailableError;
    use clresolve_verdict::sample::{faultless_evidence, good_card};
    use jiff::ToSpan as _;

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn run() -> EvidenceWithStepDurations {
        let card = Bytes::from(good_card().to_string());
        EvidenceWithStepDurations {
            evidence: faultless_evidence(&good_card(), &card, START),
            milliseconds: BTreeMap::new(),
            content_fetched_at: None,
        }
    }

    fn reading(change: impl FnOnce(&mut NameReading)) -> NameReading {
        let mut reading = run().evidence.reading.expect("it was read");
        change(&mut reading);
        reading
    }

    #[test]
    fn content_is_used_again_for_less_than_an_hour_however_often_it_was() {
        let first = run();
        let content = ReusableContent::from_evidence(&first).expect("it is whole");
        let later = EvidenceWithStepDurations { content_fetched_at: Some(content.fetched_at()), ..run() };
        let again = ReusableContent::from_evidence(&later).expect("it is whole");
        for content in [content, again] {
            assert!(content.is_reusable_for(&reading(|_| ()), START + 3299.seconds()));
            assert!(
                !content.is_reusable_for(&reading(|_| ()), START + 3300.seconds()),
                "its host is due before the verdict ends"
            );
        }
    }

    #[test]
    fn content_is_not_used_again_where_the_chain_says_something_else() {
        let content = ReusableContent::from_evidence(&run()).expect("it is whole");
        assert!(content.is_reusable_for(&reading(|reading| reading.block.number += 1), START));
        let changes: [fn(&mut NameReading); 5] = [
            |reading| reading.holder = NameHolder::Nobody,
            |reading| reading.expiry = Some(START),
            |reading| reading.answer = EnsAnswer::Unregistered,
            |reading| {
                let EnsAnswer::Records(found) = &mut reading.answer else { panic!("it has records") };
                found.resolver = Address::ZERO;
            },
            |reading| {
                let EnsAnswer::Records(found) = &mut reading.answer else { panic!("it has records") };
                found.records = std::iter::empty().collect();
            },
        ];
        for change in changes {
            assert!(!content.is_reusable_for(&reading(change), START));
        }
    }

    #[test]
    fn what_was_not_had_is_asked_for_again() {
        let changes: [fn(&mut EvidenceWithStepDurations); 3] = [
            |run| run.evidence.https = HttpsOutcome::Unavailable(SourceUnavailableError::Connect.into()),
            |run| run.evidence.ipfs = IpfsWalkOutcome::Unproven(Vec::new()),
            |run| run.evidence.mirror = IpfsWalkOutcome::Unproven(Vec::new()),
        ];
        for change in changes {
            let mut run = run();
            change(&mut run);
            assert!(ReusableContent::from_evidence(&run).is_none());
        }
    }

    #[test]
    fn sources_that_agree_are_held_once() {
        let mut run = run();
        let card = run.evidence.card_bytes().expect("a card").clone();
        let HttpsOutcome::Body { bytes, .. } = &mut run.evidence.https else { panic!("it was served") };
        *bytes = Bytes::copy_from_slice(&card);
        assert_eq!(ReusableContent::from_evidence(&run).expect("it is whole").byte_count_besides_card(Some(&card)), 0);
        run.evidence.mirror =
            IpfsWalkOutcome::Proven { bytes: vec![0; 1000].into(), by: ContentProofSource::Gateway, blocks: 1 };
        assert_eq!(
            ReusableContent::from_evidence(&run).expect("it is whole").byte_count_besides_card(Some(&card)),
            1000
        );
    }
}
