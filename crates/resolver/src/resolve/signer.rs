//! The keys with which a name signs messages. Only this module reads `cl.receipt.signer` and `cl.sig.*`.

pub(super) mod receipts;

use std::sync::Arc;
use std::time::Duration;

use clresolve_core::name::{EnsName, EnsNameError};
use clresolve_core::reading::{ChainBlock, EnsAnswer, NameReading};
use clresolve_core::reason::{Reason, ReasonCode};
use clresolve_core::records::{TextRecord, TextRecordKey, TextRecordSet};
use clresolve_core::state::TrustState;
use clresolve_jose::Ed25519PublicKey;
use clresolve_payment::offer::PublishedSigningKeys;
use clresolve_verdict::check::records::{chain_error_reason, unsettled_reading_reasons};
use clresolve_verdict::gate::GatePolicy;
use clresolve_verdict::published::PublishedPaymentRecords;
use futures_util::future::FutureExt as _;

use super::cached::CachingResolver;
use super::look_ups::{LookupCache, LookupCacheValue, ResolvedVerdictKey};
use super::walk::UncachedResolver;
use crate::cache::{HeadLogEntry, HeadSequenceNumber};
use crate::config::ProofGrade;

/// The signer's records of a name. They are set at a settled block, and unchanged at the newest one. Offers and roots
/// also require more than a single third-party endpoint as the source. Receipts only report that.
pub struct SignerRecords {
    records: TextRecordSet,
    grade: ProofGrade,
    block: ChainBlock,
    /// Codes for parties that influence the records: an off-chain gateway, or an ancestor's resolver.
    lent: Vec<ReasonCode>,
    /// The block number up to which the chain was read. `None` if no head confirms the records, such as those from a
    /// gateway.
    newest: Option<u64>,
}

/// Why a name has no signer's records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignerRecordsError {
    /// They could not be read, or are not settled. Asking again may help.
    #[error("{0}")]
    Unavailable(String),
    /// They are about to change: `record-pending`.
    #[error("{}: {}", .0.code, .0.message)]
    Pending(Box<Reason>),
    /// Proven: the name is not registered.
    #[error("the name is not registered")]
    Unregistered,
    /// Proven: the name has no resolver.
    #[error("the name has no resolver")]
    NoResolver,
    /// This record is not set.
    #[error("{0} is not set")]
    Absent(TextRecordKey),
    /// This record is not UTF-8.
    #[error("{0} is not UTF-8")]
    NotUtf8(TextRecordKey),
    /// The gate would not accept them, for this cause.
    #[error("{0}")]
    NotReliedOn(&'static str),
    /// The value of `cl.receipt.signer` is not a valid name.
    #[error(transparent)]
    NoName(#[from] EnsNameError),
    /// The records of a name and of its signer were read at different blocks. Asking again may help.
    #[error("the two names were read at different blocks")]
    TwoBlocks,
}

/// The name that signs for a name, with its records.
type SignerRecordsResult = Result<(EnsName, SignerRecords), SignerRecordsError>;

impl SignerRecords {
    /// Reads the records of `name`. Any objection to the reading is an error.
    pub(super) async fn read_records(
        walker: &UncachedResolver,
        name: &EnsName,
        limit: Duration,
    ) -> Result<Self, SignerRecordsError> {
        Self::read_records_unless_objection(walker, name, limit, |_| true).await
    }

    /// Reads the records of `name`. An objection to the reading is an error if it counts.
    async fn read_records_unless_objection(
        walker: &UncachedResolver,
        name: &EnsName,
        limit: Duration,
        counts: impl Fn(&Reason) -> bool,
    ) -> Result<Self, SignerRecordsError> {
        let block = walker.config.chain.block;
        let reading =
            match tokio::time::timeout(limit, walker.chain.read_selected_records(name, block, &TextRecordKey::SIGNER))
                .await
            {
                Ok(Ok(reading)) => reading,
                Ok(Err(error)) => {
                    return Err(SignerRecordsError::Unavailable(
                        chain_error_reason(&error).observed.unwrap_or_default(),
                    ));
                }
                Err(_) => return Err(SignerRecordsError::Unavailable("no answer in time".to_owned())),
            };
        match unsettled_reading_reasons(&reading, block, walker.config.chain.id, walker.now())
            .into_iter()
            .find(|reason| counts(reason))
        {
            Some(reason) if reason.code == ReasonCode::RecordPending => {
                Err(SignerRecordsError::Pending(Box::new(reason)))
            }
            Some(reason) => Err(SignerRecordsError::Unavailable(format!("{}: {}", reason.code, reason.message))),
            None => Self::from_reading(reading),
        }
    }

    fn from_reading(reading: NameReading) -> Result<Self, SignerRecordsError> {
        match reading.answer {
            EnsAnswer::Records(found) => Ok(Self {
                lent: [
                    (found.offchain, ReasonCode::RecordOffchain),
                    (found.wildcard.is_some(), ReasonCode::NameWildcard),
                ]
                .into_iter()
                .filter_map(|(is_lent, code)| is_lent.then_some(code))
                .collect(),
                records: found.records,
                grade: reading.proof.grade,
                block: reading.block,
                newest: reading.newest.filter(|_| !found.offchain),
            }),
            EnsAnswer::Unregistered => Err(SignerRecordsError::Unregistered),
            EnsAnswer::NoResolver(_) => Err(SignerRecordsError::NoResolver),
        }
    }

    /// The text under a key. `None` if the record is not set.
    fn text_record(&self, key: TextRecordKey) -> Result<Option<&str>, SignerRecordsError> {
        match self.records.get(key) {
            TextRecord::Text(text) => Ok(Some(text)),
            TextRecord::Absent => Ok(None),
            TextRecord::NotUtf8(_) => Err(SignerRecordsError::NotUtf8(key)),
        }
    }

    /// The text of `cl.sig.pub`.
    pub fn signing_public_key(&self) -> Result<&str, SignerRecordsError> {
        self.text_record(TextRecordKey::SigPub)?.ok_or(SignerRecordsError::Absent(TextRecordKey::SigPub))
    }

    /// The text of `cl.sig.kid`. `None` if the record is not set.
    pub fn signing_key_id(&self) -> Result<Option<&str>, SignerRecordsError> {
        self.text_record(TextRecordKey::SigKid)
    }
}

/// The name that signs for `name`, with its records: the name in `cl.receipt.signer`, or `name` itself if that record
/// is not set. `records_of` reads the records of a name. The records of both names are from the same block.
async fn read_signer_at_one_block<F: Future<Output = Result<SignerRecords, SignerRecordsError>>>(
    name: &EnsName,
    records_of: impl Fn(EnsName) -> F,
) -> SignerRecordsResult {
    let mut own = records_of(name.clone()).await?;
    // The settled block advances about every six minutes, so two readings see different blocks at most once. The newest
    // block may advance twice, and then the result is an error.
    for _ in 0..2 {
        let signer = match own.text_record(TextRecordKey::ReceiptSigner)? {
            Some(text) => EnsName::parse(text)?,
            None => name.clone(),
        };
        if signer == *name {
            return Ok((signer, own));
        }
        let records = records_of(signer.clone()).await?;
        if records.block.hash == own.block.hash || clresolve_core::mutant!("signers-at-two-blocks") {
            return Ok((signer, SignerRecords { newest: records.newest.min(own.newest), ..records }));
        }
        own = records_of(name.clone()).await?;
    }
    Err(SignerRecordsError::TwoBlocks)
}

/// Addresses of the name that are unchanged at the newest block. They sign by EIP-712. The key that signs by JWS has
/// not been read yet.
pub(super) fn signer_keys_from_addresses(published: &PublishedPaymentRecords) -> PublishedSigningKeys {
    let addresses = published.settled_addresses();
    PublishedSigningKeys { addresses, ed25519: Vec::new(), unread: Some(unread_key_reason("it was not asked for")) }
}

/// The key that signs the offers of a name.
#[derive(Clone, Debug)]
pub(super) enum OfferSigningKeyStatus {
    Is(Box<Ed25519PublicKey>),
    /// The name has no key, or none that the gate would accept.
    None,
    /// It could not be read, or is about to change.
    Unread(Box<Reason>),
}

impl OfferSigningKeyStatus {
    /// The key in the records of the signing name, or the consequence of the error in reading them.
    fn from_signer(signer: SignerRecordsResult) -> Self {
        let key = signer
            .and_then(|(_, records)| Ok(Ed25519PublicKey::from_signer_record(records.signing_public_key()?).ok()));
        match key {
            Ok(Some(key)) => Self::Is(Box::new(key)),
            Ok(None) | Err(SignerRecordsError::Unregistered | SignerRecordsError::NoResolver) => Self::None,
            Err(SignerRecordsError::Absent(_) | SignerRecordsError::NotUtf8(_)) => Self::None,
            Err(SignerRecordsError::NotReliedOn(_) | SignerRecordsError::NoName(_)) => Self::None,
            Err(error @ (SignerRecordsError::Unavailable(_) | SignerRecordsError::TwoBlocks)) => {
                Self::undecided(&error.to_string())
            }
            Err(SignerRecordsError::Pending(reason)) => Self::Unread(reason),
        }
    }

    /// Adds the result for this key to the keys of the name.
    pub(super) fn add_to_signer_keys(&self, keys: &mut PublishedSigningKeys) {
        keys.unread = None;
        match self {
            Self::Is(key) => keys.ed25519.push((**key).clone()),
            Self::None => {}
            Self::Unread(reason) => keys.unread = Some(reason.clone()),
        }
    }
}

fn unread_key_reason(cause: &str) -> Box<Reason> {
    let message = "The key with which the name signs its offers was not read.";
    let reason = Reason::new(ReasonCode::OfferSignerUnproven).message(message).observed(cause);
    Box::new(Reason { retryable: true, ..reason })
}

impl LookupCacheValue for OfferSigningKeyStatus {
    fn lifetime_state(&self) -> TrustState {
        match self {
            Self::Is(_) => TrustState::Trusted,
            Self::None => TrustState::Untrusted,
            Self::Unread(_) => TrustState::Indeterminate,
        }
    }

    fn undecided(cause: &str) -> Self {
        Self::Unread(unread_key_reason(cause))
    }
}

/// In-flight readings of offer keys, and recent results.
pub(super) type OfferSigningKeyCache = SignerLookupCache<OfferSigningKeyStatus>;

/// Reads the key of the name in `cl.receipt.signer`, or of the name itself if that record is not set. Returns no key if
/// the record has none, or if the gate would not accept the records.
pub(super) async fn read_offer_key(
    keys: &OfferSigningKeyCache,
    cached: &CachingResolver,
    beside: &ResolvedVerdictKey,
) -> OfferSigningKeyStatus {
    look_up_signer(keys, cached, beside, |_| true, OfferSigningKeyStatus::from_signer).await
}

/// In-flight readings of signers, and recent results.
pub(super) type SignerLookupCache<V> = LookupCache<(), SignerLookupWithHead<V>>;

/// A result that depends on a signer's records.
#[derive(Clone)]
pub(super) struct SignerLookupWithHead<V> {
    value: V,
    /// The newest head before the reading, if it confirms the records: they are on chain, and were read up to its
    /// height.
    confirmed_at: Option<HeadSequenceNumber>,
}

impl<V: LookupCacheValue> LookupCacheValue for SignerLookupWithHead<V> {
    fn confirming_head(&self) -> Option<HeadSequenceNumber> {
        self.confirmed_at
    }

    fn lifetime_state(&self) -> TrustState {
        self.value.lifetime_state()
    }

    fn undecided(cause: &str) -> Self {
        Self { value: V::undecided(cause), confirmed_at: None }
    }
}

/// Returns what the records of a name's signer show. Records that the newest head confirms are read once under it,
/// others for each question.
async fn look_up_signer<V: LookupCacheValue>(
    look_ups: &SignerLookupCache<V>,
    cached: &CachingResolver,
    beside: &ResolvedVerdictKey,
    counts: fn(&Reason) -> bool,
    decode: fn(SignerRecordsResult) -> V,
) -> V {
    let head = cached.followed_head().ok();
    let (walker, name) = (Arc::clone(&cached.walker), beside.name.clone());
    let read = async move {
        let signer = read_accepted_signer(&walker, &name, counts).await;
        let newest = signer.as_ref().ok().and_then(|(_, records)| records.newest);
        SignerLookupWithHead {
            value: decode(signer),
            confirmed_at: head.and_then(|seen| head_if_confirming(seen, newest)),
        }
    };
    let read = read.boxed();
    let head = head.map(|seen| seen.id);
    look_ups.get_or_look_up_at_head(head, beside.clone(), (), &cached.walker.clock, read).await.value
}

/// The head, if it confirms records that were read up to the block number `newest` after it was known.
fn head_if_confirming(seen: HeadLogEntry, newest: Option<u64>) -> Option<HeadSequenceNumber> {
    (newest >= Some(seen.head.block.number)).then_some(seen.id)
}

/// Reads the name in `cl.receipt.signer`, or the name itself if that record is not set, with its records if the gate
/// would accept them. An objection to a reading is an error if it counts.
async fn read_accepted_signer(
    walker: &UncachedResolver,
    name: &EnsName,
    counts: fn(&Reason) -> bool,
) -> SignerRecordsResult {
    read_signer_at_one_block(name, |name| read_accepted_records(walker, name, counts)).await
}

/// Reads the records of a name if the gate would accept them. An objection to the reading is an error if it counts.
async fn read_accepted_records(
    walker: &UncachedResolver,
    name: EnsName,
    counts: impl Fn(&Reason) -> bool,
) -> Result<SignerRecords, SignerRecordsError> {
    let records =
        SignerRecords::read_records_unless_objection(walker, &name, walker.config.timeout / 2, counts).await?;
    records.require_gate_acceptance(&walker.config.gate.gate_policy())
}

impl SignerRecords {
    /// These records, if the gate would accept them.
    fn require_gate_acceptance(self, gate: &GatePolicy) -> Result<Self, SignerRecordsError> {
        match self.gate_objection(gate) {
            Some(why) => Err(SignerRecordsError::NotReliedOn(why)),
            None => Ok(self),
        }
    }

    /// Why the gate would not accept them: a weaker grade of proof than it requires, or their source.
    fn gate_objection(&self, gate: &GatePolicy) -> Option<&'static str> {
        if gate.min_proof.is_some_and(|least| self.grade < least) {
            return Some("the grade of proof is lower than the gate demands");
        }
        let denies = |code: &ReasonCode| gate.deny.contains(code) && !clresolve_core::mutant!("anybody-lends-keys");
        self.lent
            .iter()
            .any(denies)
            .then_some("the records come from off the chain or from an ancestor's resolver, which gate.deny refuses")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Ready, ready};

    use alloy_primitives::B256;
    use jiff::Timestamp;

    use super::*;

    const AGENT: &str = "agent.eth";

    pub(super) fn records(of: impl IntoIterator<Item = (TextRecordKey, TextRecord)>) -> SignerRecords {
        let block = ChainBlock { number: 7, hash: B256::ZERO, timestamp: Timestamp::UNIX_EPOCH };
        SignerRecords {
            records: of.into_iter().collect(),
            grade: ProofGrade::Quorum,
            block,
            lent: Vec::new(),
            newest: Some(9),
        }
    }

    /// An agent that names a signer. The records of both are read in turn, each time at the next block of a list.
    pub(super) struct InTurn<'a> {
        blocks: &'a [u8],
        reads: Cell<usize>,
    }

    impl<'a> InTurn<'a> {
        pub(super) fn at(blocks: &'a [u8]) -> Self {
            Self { blocks, reads: Cell::new(0) }
        }

        pub(super) fn agent(&self) -> EnsName {
            EnsName::parse(AGENT).expect("a name")
        }

        pub(super) fn reads(&self) -> usize {
            self.reads.get()
        }

        pub(super) fn read(&self, name: &EnsName) -> Ready<Result<SignerRecords, SignerRecordsError>> {
            let number = self.blocks[self.reads.get()];
            self.reads.set(self.reads.get() + 1);
            let names_signer = (TextRecordKey::ReceiptSigner, "signer.eth");
            let has_key = (TextRecordKey::SigPub, "ed25519:6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=");
            let (key, text) = if name.as_str() == AGENT { names_signer } else { has_key };
            let mut found = records([(key, TextRecord::Text(text.to_owned()))]);
            found.block = ChainBlock { number: number.into(), hash: B256::repeat_byte(number), ..found.block };
            ready(Ok(found))
        }
    }

    /// The key of the agent's offers, read at these blocks, and how many names were read for it.
    async fn offer_key_at(blocks: &[u8]) -> (OfferSigningKeyStatus, usize) {
        let chain = InTurn::at(blocks);
        let key = OfferSigningKeyStatus::from_signer(
            read_signer_at_one_block(&chain.agent(), |name| chain.read(&name)).await,
        );
        (key, chain.reads())
    }

    /// Otherwise the key of a former signer, or a former key of the signer, would prove a payee today.
    #[tokio::test]
    async fn both_names_of_an_offer_are_read_at_one_block() {
        for (blocks, count) in [(&[1, 1][..], 2), (&[1, 2, 2, 2], 4)] {
            let (key, reads) = offer_key_at(blocks).await;
            assert!(matches!(key, OfferSigningKeyStatus::Is(_)), "{blocks:?}: {key:?}");
            assert_eq!(reads, count, "{blocks:?}");
        }
        let (key, _) = offer_key_at(&[1, 2, 3, 4, 5, 6]).await;
        let OfferSigningKeyStatus::Unread(reason) = key else { panic!("it moved on each time: {key:?}") };
        let said = (reason.code, reason.observed, reason.retryable);
        assert_eq!(said, (ReasonCode::OfferSignerUnproven, Some(SignerRecordsError::TwoBlocks.to_string()), true));
    }

    #[test]
    fn only_what_was_not_read_leaves_open_who_signs_offers() {
        for none in [
            SignerRecordsError::Unregistered,
            SignerRecordsError::NoResolver,
            SignerRecordsError::Absent(TextRecordKey::SigPub),
            SignerRecordsError::NotUtf8(TextRecordKey::ReceiptSigner),
            SignerRecordsError::NotReliedOn("a reason"),
            SignerRecordsError::NoName(EnsNameError::Empty),
        ] {
            let key = OfferSigningKeyStatus::from_signer(Err(none.clone()));
            assert!(matches!(key, OfferSigningKeyStatus::None), "{none}: {key:?}");
        }
        for open in [SignerRecordsError::Unavailable("it is down".to_owned()), SignerRecordsError::TwoBlocks] {
            let key = OfferSigningKeyStatus::from_signer(Err(open.clone()));
            let OfferSigningKeyStatus::Unread(reason) = key else { panic!("{open}: {key:?}") };
            assert_eq!(reason.observed, Some(open.to_string()));
        }
    }

    #[test]
    fn keys_are_relied_on_as_the_gate_says() {
        let own = records([]);
        let lent = |code| SignerRecords { lent: vec![code], ..records([]) };
        let gate =
            |deny: &[ReasonCode], min_proof| GatePolicy { deny: deny.to_vec(), min_proof, ..GatePolicy::default() };
        let objects = |records: &SignerRecords, gate: GatePolicy| records.gate_objection(&gate).is_some();
        let codes = [ReasonCode::RecordOffchain, ReasonCode::NameWildcard];
        for (code, other) in codes.into_iter().zip(codes.into_iter().rev()) {
            assert!(objects(&lent(code), gate(&[code], None)) && !objects(&own, gate(&[code], None)), "{code}");
            assert!(!objects(&lent(code), gate(&[other], None)) && !objects(&lent(code), gate(&[], None)), "{code}");
        }
        assert!(
            objects(&own, gate(&[], Some(ProofGrade::StateProof)))
                && !objects(&own, gate(&[], Some(ProofGrade::Quorum)))
        );
    }

    #[test]
    fn a_key_that_is_not_set_or_no_text_is_none() {
        let of = |record| records([(TextRecordKey::SigPub, record)]).signing_public_key().map(str::to_owned);
        assert_eq!(of(TextRecord::Text("ed25519:AA".to_owned())), Ok("ed25519:AA".to_owned()));
        assert_eq!(of(TextRecord::Absent), Err(SignerRecordsError::Absent(TextRecordKey::SigPub)));
        assert_eq!(of(TextRecord::NotUtf8(vec![0xff])), Err(SignerRecordsError::NotUtf8(TextRecordKey::SigPub)));
    }

    #[cfg(feature = "sandbox")]
    #[tokio::test(flavor = "multi_thread")]
    async fn a_key_that_the_newest_block_does_not_repeat_is_pending() {
        let spec = "[[agent]]\nname = \"leaving.eth\"\nabout = \"Its key changes.\"\nrecords.\"cl.sig.pub\" = \
                    \"ed25519:AA\"\nlatest.\"cl.sig.pub\" = \"ed25519:AB\"\n";
        let spec = clresolve_sandbox::spec::SandboxSpec::parse(spec).expect("it is a world");
        let world = crate::sandbox::CustomSandbox::start(&spec).await.expect("it starts");
        let resolver = crate::Resolver::new(&world.config()).await.expect("its configuration is good");
        let walker = &resolver.0.walker;
        let name = EnsName::parse("leaving.eth").expect("a name");
        let read = SignerRecords::read_records(walker, &name, walker.config.timeout).await.map(|_| ());
        let Err(SignerRecordsError::Pending(reason)) = read else { panic!("{read:?}") };
        assert_eq!(reason.code, ReasonCode::RecordPending);
    }

    /// Otherwise each receipt and each decision would cost requests to every endpoint.
    #[cfg(feature = "sandbox")]
    #[tokio::test(flavor = "multi_thread")]
    async fn signer_is_read_once_under_each_head() {
        const HOUR: Duration = Duration::from_secs(3600);
        let spec = "[[agent]]\nname = \"good.eth\"\nabout = \"Good.\"\nrecords.\"cl.sig.pub\" = \
                    \"ed25519:6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw\"\n";
        let spec = crate::sandbox::SandboxSpec::parse(spec).expect("it is a world");
        let mut world = crate::sandbox::CustomSandbox::start(&spec).await.expect("it starts");
        let mut config = world.config();
        (config.chain.head_poll, config.cache.max_unconfirmed) = (HOUR, HOUR);
        let resolver = crate::Resolver::new(&config).await.expect("its configuration is good");
        let beside = ResolvedVerdictKey::from_resolution(&resolver.resolve("good.eth").await).expect("a name");
        let cached = &resolver.0.cached;
        let asked = async |world: &crate::sandbox::CustomSandbox| {
            let before = world.request_counts().rpc;
            let key = read_offer_key(&resolver.0.offer_keys, cached, &beside).await;
            (matches!(key, OfferSigningKeyStatus::Is(_)), world.request_counts().rpc > before)
        };
        assert_eq!([asked(&world).await, asked(&world).await], [(true, true); 2], "no head is followed");

        let _following = resolver.follow_heads();
        let reader = resolver.0.walker.heads.as_ref().expect("it has endpoints");
        let follow = async || cached.cache.heads.record_head(Arc::clone(reader).newest_head().await.expect("a head"));
        follow().await;
        assert_eq!([asked(&world).await, asked(&world).await], [(true, true), (true, false)]);
        let name = EnsName::parse("good.eth").expect("a name");
        world.write_text(&name, "cl.sig.pub", "ed25519:AB").expect("it has a resolver");
        follow().await;
        assert_eq!(asked(&world).await, (false, true), "the next head may have changed it");
    }

    #[test]
    fn a_head_confirms_only_what_was_read_up_to_it() {
        let heads = crate::cache::HeadLog::default();
        let block = ChainBlock { number: 7, hash: B256::ZERO, timestamp: Timestamp::UNIX_EPOCH };
        heads.record_head(clresolve_chain::ChainHead { block, reported_at: Timestamp::UNIX_EPOCH });
        let seen = heads.newest_head().expect("it was noted");
        let confirmed = [None, Some(6), Some(7), Some(8)].map(|newest| head_if_confirming(seen, newest).is_some());
        assert_eq!(confirmed, [false, false, true, true]);
    }

    /// A head says nothing about a gateway, nor about a name that was read up to an earlier block only.
    #[tokio::test]
    async fn both_names_of_a_signer_must_be_read_up_to_the_head() {
        let newest = async |own, signers| {
            let agent = EnsName::parse(AGENT).expect("a name");
            let found = read_signer_at_one_block(&agent, |name| {
                let (key, text, newest) = if name.as_str() == AGENT {
                    (TextRecordKey::ReceiptSigner, "signer.eth", own)
                } else {
                    (TextRecordKey::SigPub, "ed25519:AB", signers)
                };
                ready(Ok(SignerRecords { newest, ..records([(key, TextRecord::Text(text.to_owned()))]) }))
            });
            found.await.expect("a signer").1.newest
        };
        assert_eq!(newest(Some(9), Some(8)).await, Some(8));
        assert_eq!(newest(Some(7), Some(8)).await, Some(7));
        assert_eq!(newest(None, Some(8)).await, None);
        assert_eq!(newest(Some(9), None).await, None);
    }

    #[cfg(feature = "sandbox")]
    #[tokio::test(flavor = "multi_thread")]
    async fn a_name_without_records_is_told_from_one_that_was_not_read() {
        let sandbox = crate::sandbox::Sandbox::start().await.expect("it starts");
        let resolver = crate::resolve::Resolver::new(&sandbox.config()).await.expect("its configuration is good");
        let limit = resolver.0.walker.config.timeout;
        let read = async |resolver: &crate::Resolver, name: &str, limit| {
            let name = EnsName::parse(name).expect("a name");
            SignerRecords::read_records(&resolver.0.walker, &name, limit).await.map(|_| ())
        };
        assert_eq!(read(&resolver, "summarizeagent.eth", limit).await, Ok(()));
        assert_eq!(read(&resolver, "nobody-has-this.eth", limit).await, Err(SignerRecordsError::Unregistered));
        assert_eq!(read(&resolver, "resolver-missing.eth", limit).await, Err(SignerRecordsError::NoResolver));
        let (_world, stalled) = crate::resolve::tests::stalled().await;
        let late = SignerRecordsError::Unavailable("no answer in time".to_owned());
        assert_eq!(read(&stalled, "summarizeagent.eth", Duration::ZERO).await, Err(late));
    }
}
