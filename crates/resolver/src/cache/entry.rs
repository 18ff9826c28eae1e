//! An entry of the cache: a finished verdict, how long it is served, and where it was last confirmed.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use clresolve_chain::NameStateAtHead;
use clresolve_core::freshness::*;
use clresolve_core::reading::OffchainScope;
use clresolve_core::reason::RefusalCode;
use clresolve_core::state::TrustState;
use clresolve_verdict::published::PublishedPaymentRecords;
use clresolve_verdict::trust::Resolution;
use clresolve_verdict::verdict::{Verdict, VerdictConfirmationSource};
use jiff::{SignedDuration, Timestamp};

use super::confirmed::{
    HeadConfirmationLimits, HeadLog, HeadSequenceNumber, OFF_CHAIN_CONFIRMED, OFF_CHAIN_INTERVAL, is_confirming_reading,
};
use super::evicted::{SurvivedEvictionCount, TotalEvictionCount};
use super::proven::ReusableContent;

/// Estimated memory per byte of a verdict's JSON: its values are small, and each is a separate allocation.
const MEMORY_PER_JSON_BYTE: usize = 3;
/// Minimum memory per value of a verdict's JSON, in bytes: the value and its allocation. For lists of very short
/// values, this exceeds the estimate by bytes.
const MEMORY_PER_JSON_VALUE: usize = 96;
/// Memory of an entry besides its verdict and card, in bytes: the key, which may be a long name, and the pool's
/// overhead.
const ENTRY_BYTES: usize = 1024;

/// A finished verdict, as it is served from the cache.
pub(super) struct CachedVerdict {
    confirmed: RwLock<ConfirmedResolution>,
    pub(super) content: Option<Arc<ReusableContent>>,
    /// The evictions that the answer is known to survive: those before its resolution, and later ones of other names.
    pub(super) permitted: SurvivedEvictionCount,
    refresh_from: Timestamp,
    pub(super) fresh_until: Timestamp,
    /// Until when it may be described as stale.
    stale_until: Timestamp,
    asked: AtomicU32,
    /// How often its predecessors were served, each of them weighted half as much as its successor.
    pub(super) asked_before: u32,
    /// Number of consecutive failures including this one; 0 for a verdict.
    pub(super) failures: u32,
    /// Estimated memory, in bytes.
    pub(super) bytes: usize,
}

/// A resolution, and where it was last confirmed.
struct ConfirmedResolution {
    /// Its verdict contains the confirmation too.
    resolution: Resolution,
    /// The head that confirmed it, if any.
    at: Option<HeadSequenceNumber>,
    /// What a CCIP-Read gateway supplied. No head confirms that, but a resolution of this process does for a while.
    gateway: OffchainScope,
    /// Whether it was resolved by this process.
    is_own: bool,
}

impl ConfirmedResolution {
    fn check_confirmation(
        &self,
        heads: &HeadLog,
        limits: HeadConfirmationLimits,
        now: Timestamp,
    ) -> Result<(), RefusalCode> {
        self.check_gateway_confirmation_age(now)?;
        match self.gateway {
            OffchainScope::Records => heads.check_newest_head_age(limits, now),
            OffchainScope::Nothing | OffchainScope::Payments => heads.check_confirmation(self.at, limits, now),
        }
    }

    fn check_gateway_confirmation_age(&self, now: Timestamp) -> Result<(), RefusalCode> {
        let stands = self.gateway == OffchainScope::Nothing || self.is_own && self.age(now) <= OFF_CHAIN_CONFIRMED;
        if stands { Ok(()) } else { Err(RefusalCode::Unconfirmed) }
    }

    fn age(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.resolution.verdict().freshness.checked_at)
    }
}

/// What a hot name waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredConfirmationMethod {
    /// A reading at the newest head.
    Reading,
    /// Another resolution, because a CCIP-Read gateway supplies the records.
    Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CachedVerdictUse {
    /// As an answer, which may open a gate.
    Answer,
    /// As a description of what was true a moment ago.
    Stale,
}

impl CachedVerdict {
    /// Creates an entry for the result of a resolution that started at `began`, confirmed at the head `at`.
    /// `failures_before` is the number of consecutive failures before it.
    pub(super) fn new(
        found: &FinishedResolution,
        failures_before: u32,
        began: ResolutionStartSnapshot,
        at: Option<HeadSequenceNumber>,
    ) -> Self {
        let verdict = found.resolution.verdict();
        let state = verdict.state;
        let fresh_until = verdict.freshness.fresh_until;
        let fresh = verdict_fresh_duration(state, failures_before);
        let card = found.resolution.card_bytes();
        let content = found.content.as_ref().map_or(0, |content| content.byte_count_besides_card(card));
        let confirmed = ConfirmedResolution {
            resolution: found.resolution.marked_as_cached(),
            at,
            gateway: found
                .resolution
                .newest_name_state()
                .map_or(OffchainScope::Nothing, |latest| latest.offchain_scope()),
            is_own: found.reads_chain,
        };
        Self {
            confirmed: RwLock::new(confirmed),
            content: found.content.clone(),
            permitted: began.evictions.into(),
            refresh_from: subtract_from_timestamp(fresh_until, fresh.saturating_sub(verdict_refresh_age(fresh))),
            fresh_until,
            stale_until: add_to_timestamp(fresh_until, STALE_FOR),
            asked: AtomicU32::new(0),
            asked_before: 0,
            failures: if state == TrustState::Indeterminate { failures_before.saturating_add(1) } else { 0 },
            bytes: estimate_entry_bytes(&found.resolution) + content,
        }
    }

    pub(super) fn resolution(&self) -> Resolution {
        self.confirmed.read().unwrap_or_else(PoisonError::into_inner).resolution.clone()
    }

    pub(super) fn verdict(&self) -> Arc<Verdict> {
        Arc::clone(self.confirmed.read().unwrap_or_else(PoisonError::into_inner).resolution.verdict())
    }

    /// The resolution, with its standing at `now`.
    pub(super) fn resolution_with_confirmation(
        &self,
        heads: &HeadLog,
        limits: HeadConfirmationLimits,
        now: Timestamp,
    ) -> Resolution {
        let confirmed = self.confirmed.read().unwrap_or_else(PoisonError::into_inner);
        confirmed.resolution.clone().with_newest_block_confirmation(confirmed.check_confirmation(heads, limits, now))
    }

    /// Compares the entry with a reading and returns whether the reading contradicts it. An equal reading confirms it
    /// at the head `at`, if there is one. A reading that is older than the last one is ignored.
    pub(super) fn compare_and_confirm(
        &self,
        found: &NameStateAtHead,
        at: Option<HeadSequenceNumber>,
        block: u64,
    ) -> bool {
        let mut confirmed = self.confirmed.write().unwrap_or_else(PoisonError::into_inner);
        if at.is_some() && confirmed.at > at {
            return false;
        }
        let is_same = is_confirming_reading(found, &confirmed.resolution);
        if is_same && confirmed.gateway == OffchainScope::Nothing {
            confirmed.resolution = confirmed.resolution.with_confirmation(VerdictConfirmationSource::Head(block));
        }
        if is_same {
            confirmed.at = at;
        }
        !is_same
    }

    /// The head that last confirmed it, if its resolution and `later` read the same.
    pub(super) fn confirming_head_for(&self, later: &Resolution) -> Option<HeadSequenceNumber> {
        let confirmed = self.confirmed.read().unwrap_or_else(PoisonError::into_inner);
        let (before, later) = (confirmed.resolution.newest_name_state()?, later.newest_name_state()?);
        confirmed.at.filter(|_| before == later)
    }

    /// Whether only another resolution can confirm it at `now`.
    pub(super) fn needs_new_resolution(&self, now: Timestamp) -> bool {
        self.confirmed.read().unwrap_or_else(PoisonError::into_inner).check_gateway_confirmation_age(now).is_err()
    }

    /// What the entry needs to stay confirmed; `None` if it needs nothing now. Records from a CCIP-Read gateway need
    /// another resolution, if the last one is [`OFF_CHAIN_INTERVAL`] old or was not made by this process. Records on
    /// chain need a reading, unless the head `newest` has already confirmed the entry.
    pub(super) fn required_confirmation(
        &self,
        newest: HeadSequenceNumber,
        now: Timestamp,
    ) -> Option<RequiredConfirmationMethod> {
        let confirmed = self.confirmed.read().unwrap_or_else(PoisonError::into_inner);
        let is_due = !confirmed.is_own || confirmed.age(now) >= OFF_CHAIN_INTERVAL;
        match confirmed.gateway {
            OffchainScope::Records | OffchainScope::Payments if is_due => Some(RequiredConfirmationMethod::Run),
            OffchainScope::Nothing | OffchainScope::Payments if confirmed.at != Some(newest) => {
                Some(RequiredConfirmationMethod::Reading)
            }
            _ => None,
        }
    }

    /// Whether it is young enough to be served in this way at `now`.
    pub(super) fn is_young_enough_to_serve(&self, now: Timestamp, how: CachedVerdictUse) -> bool {
        match how {
            CachedVerdictUse::Answer => {
                now < self.fresh_until || (clresolve_core::mutant!("stale-opens-the-gate") && now < self.stale_until)
            }
            CachedVerdictUse::Stale => now < self.stale_until,
        }
    }

    /// Whether it is due for a refresh at `now`, if it may still be served.
    pub(super) fn is_due_for_refresh(&self, now: Timestamp) -> bool {
        self.asked.load(Ordering::Relaxed) > 0 && now >= self.refresh_from
    }

    /// Counts an answer. Concurrent answers may count as one: an exact count would cost each answer too much.
    pub(super) fn count_request(&self) {
        self.asked.store(self.asked.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
    }

    pub(super) fn request_count(&self) -> u32 {
        self.asked.load(Ordering::Relaxed).saturating_add(self.asked_before)
    }
}

fn add_to_timestamp(moment: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| moment.checked_add(time).ok()).unwrap_or(moment)
}

fn subtract_from_timestamp(moment: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| moment.checked_sub(time).ok()).unwrap_or(moment)
}

/// The result of a resolution.
#[derive(Clone, Debug)]
pub struct FinishedResolution {
    /// Its answer.
    pub resolution: Resolution,
    /// The proven content, if a refresh may reuse it.
    pub content: Option<Arc<ReusableContent>>,
    /// Whether the name was evicted during the resolution; a new one would take that into account.
    pub is_overtaken: bool,
    /// Whether this process read the chain. Then the head at the start of the resolution confirms the result.
    pub reads_chain: bool,
    /// A later head that confirms the result too, if it was compared with one.
    pub(crate) confirmed_at: Option<HeadSequenceNumber>,
    /// Whether this resolution replaces an earlier result that a head contradicted.
    pub is_after_change: bool,
}

impl From<Resolution> for FinishedResolution {
    fn from(resolution: Resolution) -> Self {
        Self {
            resolution,
            content: None,
            is_overtaken: false,
            reads_chain: false,
            confirmed_at: None,
            is_after_change: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResolutionStartSnapshot {
    /// The evictions before it.
    pub(super) evictions: TotalEvictionCount,
    /// The head at that time, if any.
    pub(super) head: Option<HeadSequenceNumber>,
    /// Identifies the resolution.
    pub(super) run: u64,
}

/// Estimated memory of an entry, in bytes.
pub(super) fn estimate_entry_bytes(resolution: &Resolution) -> usize {
    let json = resolution.json();
    let values = json.iter().filter(|byte| **byte == b',').count();
    let verdict = (json.len() * MEMORY_PER_JSON_BYTE).max(json.len() + values * MEMORY_PER_JSON_VALUE);
    let payment = resolution.payment_records().map_or(0, PublishedPaymentRecords::estimated_bytes);
    let read =
        resolution.newest_name_state().map(|latest| serde_json::to_vec(&latest.answer).unwrap_or_default().len());
    let read = read.unwrap_or_default() * MEMORY_PER_JSON_BYTE;
    ENTRY_BYTES + verdict + json.len() + resolution.card_bytes().map_or(0, Bytes::len) + payment + read
}
