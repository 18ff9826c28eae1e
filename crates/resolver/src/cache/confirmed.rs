//! The heads of the chain so far, and how long each of them confirms a verdict. Reads no clock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use clresolve_chain::{ChainHead, NameStateAtHead};
use clresolve_core::reading::{ChainBlock, OffchainScope};
use clresolve_core::reason::RefusalCode;
use clresolve_verdict::trust::Resolution;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::telemetry;

/// Maximum number of remembered heads. Each confirms verdicts for a few seconds after its last report. Far fewer heads
/// follow in that time.
const MAX_HEADS: usize = 32;

/// How long a reading of an off-chain (CCIP-Read) name confirms its verdict. The daemon reads such names every
/// [`OFF_CHAIN_INTERVAL`].
pub(crate) const OFF_CHAIN_CONFIRMED: SignedDuration = SignedDuration::from_secs(75);

/// Time between two readings of a hot off-chain name.
pub(crate) const OFF_CHAIN_INTERVAL: SignedDuration = SignedDuration::from_secs(60);

/// The bounds within which a head confirms verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadConfirmationLimits {
    /// How long after its last report a head still confirms.
    pub max_unconfirmed: Duration,
    /// How old the block of the newest head may be. `None`: unlimited, because the chain's slot time is unknown.
    pub max_head_age: Option<Duration>,
}

impl HeadConfirmationLimits {
    /// Checks that a head confirms verdicts at `now`.
    ///
    /// # Errors
    /// [`RefusalCode::HeadStalled`] or [`RefusalCode::Unconfirmed`].
    pub fn check_head(&self, head: &ChainHead, now: Timestamp) -> Result<(), RefusalCode> {
        self.check_block_age(&head.block, now)?;
        self.check_report_age(head, now)
    }

    fn check_report_age(&self, head: &ChainHead, now: Timestamp) -> Result<(), RefusalCode> {
        let is_old = exceeds_max_age(head.reported_at, now, self.max_unconfirmed);
        if is_old && !clresolve_core::mutant!("old-heads-confirm") {
            return Err(RefusalCode::Unconfirmed);
        }
        Ok(())
    }

    fn check_block_age(&self, head: &ChainBlock, now: Timestamp) -> Result<(), RefusalCode> {
        let is_stalled = self.max_head_age.is_some_and(|most| exceeds_max_age(head.timestamp, now, most));
        if is_stalled && !clresolve_core::mutant!("stalled-heads-open-the-gate") {
            return Err(RefusalCode::HeadStalled);
        }
        Ok(())
    }
}

/// How far a report or a block may lie in the future. If it lies further ahead, the clock was set back.
const MAX_CLOCK_STEP: SignedDuration = SignedDuration::from_secs(15);

/// Identifies a head of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HeadSequenceNumber(u64);

/// A head, and when it was last reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadLogEntry {
    /// Its identifier. A later head has a higher one, even at the same height.
    pub(crate) id: HeadSequenceNumber,
    pub(crate) head: ChainHead,
}

/// Whether a later reading of the name at a head confirms `resolution`. What is with a CCIP-Read gateway is not
/// compared.
pub(crate) fn is_confirming_reading(found: &NameStateAtHead, resolution: &Resolution) -> bool {
    let Some(before) = resolution.newest_name_state() else { return false };
    match found {
        NameStateAtHead::OnChain(later) => before.is_confirmed_by(later),
        NameStateAtHead::PaymentOffChain(later) => {
            before.offchain_scope() == OffchainScope::Payments && before.is_confirmed_but_for_payments_by(later)
        }
        NameStateAtHead::OffChain => before.offchain_scope() == OffchainScope::Records,
        NameStateAtHead::Failing(_) => false,
    }
}

/// The heads so far, the newest last.
#[derive(Default)]
pub(crate) struct HeadLog {
    heads: RwLock<VecDeque<HeadLogEntry>>,
    is_followed: AtomicBool,
    count: AtomicU64,
    bell: Notify,
}

impl HeadLog {
    /// Whether every head is recorded. Otherwise nothing stays confirmed.
    pub(crate) fn follows_heads(&self) -> bool {
        self.is_followed.load(Ordering::Relaxed)
    }

    /// Declares that every head is recorded from now on.
    pub(crate) fn mark_as_followed(&self) {
        self.is_followed.store(true, Ordering::Relaxed);
        self.heads.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn record_head(&self, head: ChainHead) {
        let mut heads = self.heads.write().unwrap_or_else(PoisonError::into_inner);
        let newest = heads.back_mut();
        if newest.as_ref().is_some_and(|newest| is_out_of_order_head(&head, &newest.head)) {
            return;
        }
        if let Some(newest) = newest.filter(|newest| newest.head.block == head.block) {
            newest.head.reported_at = head.reported_at;
            return;
        }
        if heads.len() == MAX_HEADS {
            heads.pop_front();
        }
        let id = HeadSequenceNumber(self.count.fetch_add(1, Ordering::Relaxed));
        heads.push_back(HeadLogEntry { id, head });
        telemetry::set_head_block_time(head.block.timestamp);
        self.bell.notify_one();
    }

    /// Waits for a new head. Returns at once if one arrived since the last wait.
    pub(crate) async fn wait_for_head(&self) {
        self.bell.notified().await;
    }

    pub(crate) fn newest_head(&self) -> Option<HeadLogEntry> {
        self.read_lock_heads().back().copied()
    }

    /// Checks that the newest head, if there is one, is recent.
    ///
    /// # Errors
    /// [`RefusalCode::HeadStalled`]
    pub(crate) fn check_newest_head_age(
        &self,
        limits: HeadConfirmationLimits,
        now: Timestamp,
    ) -> Result<(), RefusalCode> {
        self.newest_head().map_or(Ok(()), |newest| limits.check_block_age(&newest.head.block, now))
    }

    /// Whether a verdict that was last confirmed at this head counts as confirmed at `now`.
    ///
    /// # Errors
    /// [`RefusalCode::HeadStalled`] or [`RefusalCode::Unconfirmed`].
    pub(crate) fn check_confirmation(
        &self,
        at: Option<HeadSequenceNumber>,
        limits: HeadConfirmationLimits,
        now: Timestamp,
    ) -> Result<(), RefusalCode> {
        let heads = self.read_lock_heads();
        let newest = heads.back().ok_or(RefusalCode::Unconfirmed)?;
        limits.check_block_age(&newest.head.block, now)?;
        // The newest first, since most verdicts are confirmed there.
        let seen = heads.iter().rev().find(|seen| Some(seen.id) == at).ok_or(RefusalCode::Unconfirmed)?;
        limits.check_report_age(&seen.head, now)
    }

    fn read_lock_heads(&self) -> RwLockReadGuard<'_, VecDeque<HeadLogEntry>> {
        self.heads.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `head` is older than `newest`, but was reported later: endpoints answer concurrently.
fn is_out_of_order_head(head: &ChainHead, newest: &ChainHead) -> bool {
    let before = newest.reported_at.duration_since(head.reported_at);
    before > SignedDuration::ZERO && before <= MAX_CLOCK_STEP && head.block.number <= newest.block.number
}

/// Whether `moment` is more than `most` ago, or so far in the future that the clock must have been set back.
fn exceeds_max_age(moment: Timestamp, now: Timestamp, most: Duration) -> bool {
    let age = now.duration_since(moment);
    age < -MAX_CLOCK_STEP || SignedDuration::try_from(most).is_ok_and(|most| age > most)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clresolve_core::cause::ResolverContractError;
    use clresolve_core::payment::{AddressRecord, CoinType, PaymentRecords};
    use clresolve_core::reading::{ChainError, EnsAnswer, LatestNameState, NameHolder, ResolvedRecords};
    use clresolve_core::records::{TextRecord, TextRecordKey};
    use clresolve_verdict::build::{self, EvidenceWithStepDurations, VerdictContext};
    use clresolve_verdict::check::JudgementPolicy;
    use clresolve_verdict::profile::{ConformanceProfiles, DEFAULT};
    use clresolve_verdict::sample;

    use super::*;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn seconds(seconds: i64) -> SignedDuration {
        SignedDuration::from_secs(seconds)
    }

    fn head(number: u64, fork: u8, reported: i64) -> ChainHead {
        let timestamp = START + seconds(i64::try_from(number).unwrap() * 12);
        ChainHead {
            block: ChainBlock { number, hash: [fork; 32].into(), timestamp },
            reported_at: START + seconds(reported),
        }
    }

    const LIMITS: HeadConfirmationLimits = HeadConfirmationLimits {
        max_unconfirmed: Duration::from_secs(15),
        max_head_age: Some(Duration::from_secs(60)),
    };

    fn standing(log: &HeadLog, at: HeadSequenceNumber, now: i64) -> Result<(), RefusalCode> {
        log.check_confirmation(Some(at), LIMITS, START + seconds(now))
    }

    #[test]
    fn a_head_confirms_until_its_last_report_is_too_old() {
        let log = HeadLog::default();
        log.record_head(head(1, 1, 12));
        let first = log.newest_head().unwrap().id;
        assert_eq!(standing(&log, first, 27), Ok(()));
        assert_eq!(standing(&log, first, 28), Err(RefusalCode::Unconfirmed));
        log.record_head(head(1, 1, 20));
        assert_eq!(log.newest_head().map(|seen| seen.id), Some(first), "a missed slot: the same head again");
        assert_eq!(standing(&log, first, 35), Ok(()));
        log.record_head(head(2, 2, 24));
        assert_eq!(standing(&log, first, 35), Ok(()), "it counts from the last report of its own head");
        assert_eq!(standing(&log, first, 36), Err(RefusalCode::Unconfirmed));
    }

    #[test]
    fn another_block_at_the_same_height_is_another_head() {
        let log = HeadLog::default();
        log.record_head(head(1, 1, 12));
        let first = log.newest_head();
        log.record_head(head(1, 2, 13));
        assert_ne!(log.newest_head().map(|seen| seen.id), first.map(|seen| seen.id));
    }

    #[test]
    fn nothing_is_confirmed_at_a_head_that_does_not_advance() {
        let log = HeadLog::default();
        log.record_head(head(1, 1, 12));
        let id = log.newest_head().unwrap().id;
        log.record_head(head(1, 1, 72));
        assert_eq!(standing(&log, id, 72), Ok(()));
        log.record_head(head(1, 1, 73));
        assert_eq!(standing(&log, id, 73), Err(RefusalCode::HeadStalled));
        let unlimited = HeadConfirmationLimits { max_head_age: None, ..LIMITS };
        assert_eq!(log.check_confirmation(Some(id), unlimited, START + seconds(73)), Ok(()));
    }

    #[test]
    fn heads_before_the_first_or_beyond_the_log_confirm_nothing() {
        let log = HeadLog::default();
        assert_eq!(log.check_confirmation(None, LIMITS, START), Err(RefusalCode::Unconfirmed));
        log.record_head(head(1, 1, 12));
        let first = log.newest_head().unwrap().id;
        for fork in 2..=u8::try_from(MAX_HEADS).unwrap() + 1 {
            log.record_head(head(1, fork, 12));
        }
        assert_eq!(log.read_lock_heads().len(), MAX_HEADS);
        assert_eq!(standing(&log, first, 12), Err(RefusalCode::Unconfirmed));
    }

    #[test]
    fn report_before_a_clock_reset_confirms_nothing() {
        let log = HeadLog::default();
        log.record_head(head(1, 1, 1000));
        let id = log.newest_head().unwrap().id;

        assert_eq!(standing(&log, id, 30), Err(RefusalCode::Unconfirmed));
        log.record_head(head(1, 1, 30));
        assert_eq!(standing(&log, id, 30), Ok(()));
    }

    #[test]
    fn an_older_report_that_comes_late_is_ignored() {
        let log = HeadLog::default();
        log.record_head(head(2, 2, 24));
        let newest = log.newest_head();
        log.record_head(head(1, 1, 23));
        assert_eq!(log.newest_head(), newest);
    }

    /// Records with this owner and this payee.
    fn latest(owner: &str, payee: u8) -> LatestNameState {
        let found = ResolvedRecords {
            resolver: [1; 20].into(),
            wildcard: None,
            offchain: false,
            records: [(TextRecordKey::Owner, TextRecord::Text(owner.to_owned()))].into_iter().collect(),
            payment: PaymentRecords {
                addresses: [(CoinType::ETHER, AddressRecord::Address([payee; 20].into()))].into(),
                ..PaymentRecords::default()
            },
        };
        LatestNameState { answer: EnsAnswer::Records(found), holder: NameHolder::Address([3; 20].into()) }
    }

    /// The same records from a CCIP-Read gateway.
    fn off_chain(mut latest: LatestNameState) -> LatestNameState {
        if let EnsAnswer::Records(found) = &mut latest.answer {
            found.offchain = true;
        }
        latest
    }

    fn sold(latest: LatestNameState) -> LatestNameState {
        LatestNameState { holder: NameHolder::Address([4; 20].into()), ..latest }
    }

    fn failure() -> ChainError {
        ChainError::Resolver(ResolverContractError::CallReverted)
    }

    /// Compares a resolution that read `before` at the newest block with a later reading.
    fn compared(before: Result<LatestNameState, ChainError>, found: &NameStateAtHead) -> bool {
        let (agent, profiles, policy) =
            (sample::good_card(), ConformanceProfiles::builtin(), JudgementPolicy::default());
        let mut evidence = sample::faultless_evidence(&agent, &agent.to_string().into(), START);
        evidence.reading.as_mut().expect("it was read").latest = Some(before);
        let profile = profiles.get(DEFAULT).expect("it is built in");
        let reporter =
            VerdictContext { world: "mainnet", chain_id: 1, profiles: &profiles, profile: &profile, policy: &policy };
        let run = EvidenceWithStepDurations { evidence, milliseconds: BTreeMap::new(), content_fetched_at: None };
        is_confirming_reading(found, &build::build_resolution(&reporter, &run, 0))
    }

    #[test]
    fn reading_on_chain_confirms_what_it_equals() {
        let before = latest("a.eth", 1);
        for (later, expected) in [
            (latest("a.eth", 1), true),
            (latest("b.eth", 1), false),
            (latest("a.eth", 2), false),
            (sold(latest("a.eth", 1)), false),
            (off_chain(latest("a.eth", 1)), false),
            (LatestNameState { answer: EnsAnswer::Unregistered, holder: NameHolder::Nobody }, false),
        ] {
            let found = NameStateAtHead::OnChain(later);
            assert_eq!(compared(Ok(before.clone()), &found), expected, "{found:?}");
        }
    }

    #[test]
    fn payments_that_leave_the_chain_have_changed() {
        let before = latest("a.eth", 1);
        let with_gateway = |mut latest: LatestNameState| {
            if let EnsAnswer::Records(found) = &mut latest.answer {
                found.payment.offchain = true;
            }
            latest
        };
        for (later, is_confirmed) in [
            (latest("a.eth", 1), true),
            (latest("a.eth", 2), true),
            (latest("b.eth", 1), false),
            (sold(latest("a.eth", 1)), false),
        ] {
            let found = NameStateAtHead::PaymentOffChain(later);
            assert_eq!(compared(Ok(with_gateway(before.clone())), &found), is_confirmed, "{found:?}");
            assert!(!compared(Ok(before.clone()), &found), "{found:?}");
        }
    }

    #[test]
    fn records_that_leave_the_chain_have_changed() {
        let before = latest("a.eth", 1);
        assert!(compared(Ok(off_chain(before.clone())), &NameStateAtHead::OffChain));
        assert!(!compared(Ok(before), &NameStateAtHead::OffChain));
        let absent = LatestNameState { answer: EnsAnswer::Unregistered, holder: NameHolder::Nobody };
        assert!(!compared(Ok(absent), &NameStateAtHead::OffChain));
    }

    #[test]
    fn failing_resolver_confirms_nothing() {
        for before in [latest("a.eth", 1), off_chain(latest("a.eth", 1))] {
            assert!(!compared(Ok(before), &NameStateAtHead::Failing(failure())));
        }
    }

    #[test]
    fn resolution_without_the_newest_block_is_not_confirmed() {
        let later = latest("a.eth", 1);
        for found in [
            NameStateAtHead::OnChain(later.clone()),
            NameStateAtHead::PaymentOffChain(later),
            NameStateAtHead::OffChain,
        ] {
            assert!(!compared(Err(failure()), &found), "{found:?}");
        }
    }
}
