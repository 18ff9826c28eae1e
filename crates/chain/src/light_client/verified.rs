//! What a light client has verified, and whether a newer header can exist. No I/O, no clock.

use std::time::Duration;

use clresolve_beacon::{ChainSpec, VerifiedBeaconHeader};
use jiff::Timestamp;
use metrics::gauge;

use super::status::{SyncCommitteeParticipation, VerifiedHeadersStatus};
use crate::beacon_metrics::{BEACON_FINALIZED_TIME, BEACON_OPTIMISTIC_TIME, BEACON_PARTICIPATION};
use crate::head_age::to_signed_duration;

/// How long an answer about the newest header is used without another request, if a newer header may exist.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// How long an answer about the newest header is used while another request is under way: less than a slot, so that
/// callers seldom wait and never miss more than one block.
const USABLE_FOR: Duration = Duration::from_secs(4);

/// For how many slots an answer about the finalized header is used while another request is under way. A finalized
/// header stays true when a newer one exists.
const FINALITY_USABLE_SLOTS: u64 = 4;

/// Which header is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFinality {
    Finalized,
    Optimistic,
}

/// Whether a header can be used as the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderFreshness {
    /// No newer header exists, or endpoints answered just now.
    Fresh,
    /// It may be used while endpoints are asked again.
    Usable,
    /// Endpoints must be asked first.
    Due,
}

/// The verified headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct VerifiedHeaderPair {
    pub(super) finalized: VerifiedBeaconHeader,
    pub(super) optimistic: VerifiedBeaconHeader,
    /// Signers of the last verified update.
    pub(super) participation: Option<SyncCommitteeParticipation>,
    /// Send time of the latest request in response to which an endpoint proved the finalized header as its newest.
    pub(super) finality_at: Option<Timestamp>,
    /// Send time of the latest request in response to which an endpoint reported the optimistic header as its newest.
    pub(super) optimistic_at: Option<Timestamp>,
}

impl VerifiedHeaderPair {
    pub(super) const fn header_by_finality(&self, wanted: HeaderFinality) -> VerifiedBeaconHeader {
        match wanted {
            HeaderFinality::Finalized => self.finalized,
            HeaderFinality::Optimistic => self.optimistic,
        }
    }

    /// Send time of the latest request in response to which an endpoint reported the wanted header as its newest.
    /// `None` if that is after `now`: the clock was set back.
    pub(super) fn newest_reported_at(&self, wanted: HeaderFinality, now: Timestamp) -> Option<Timestamp> {
        let reported_at = match wanted {
            HeaderFinality::Finalized => self.finality_at,
            HeaderFinality::Optimistic => self.optimistic_at,
        };
        reported_at.filter(|at| *at <= now)
    }

    /// Records a report whose request was sent at `at`. Reports may arrive out of order.
    pub(super) fn note_header_report(&mut self, wanted: HeaderFinality, at: Timestamp, now: Timestamp) {
        let latest = self.newest_reported_at(wanted, now).max(Some(at));
        match wanted {
            HeaderFinality::Finalized => self.finality_at = latest,
            HeaderFinality::Optimistic => self.optimistic_at = latest,
        }
    }

    /// When the optimistic header was last known to be the newest.
    pub(super) fn newest_known_at(&self, spec: &ChainSpec, now: Timestamp) -> Timestamp {
        let next_signed_at = i64::try_from(spec.slot_start_time(self.optimistic.slot() + 2)).unwrap_or(i64::MAX);
        let next_signed_at = Timestamp::from_second(next_signed_at).unwrap_or(Timestamp::MAX);
        self.optimistic_at.unwrap_or(next_signed_at).max(next_signed_at).min(now)
    }

    pub(super) fn header_freshness(&self, wanted: HeaderFinality, spec: &ChainSpec, now: Timestamp) -> HeaderFreshness {
        let (fresh, usable) = match wanted {
            HeaderFinality::Finalized => (slots_duration(1, spec), slots_duration(FINALITY_USABLE_SLOTS, spec)),
            HeaderFinality::Optimistic => (FRESH_FOR, USABLE_FOR),
        };
        let Some(reported_at) = self.newest_reported_at(wanted, now) else { return HeaderFreshness::Due };
        let age = now.duration_since(reported_at);
        match () {
            () if wanted == HeaderFinality::Optimistic && self.is_optimistic_header_newest(spec, now) => {
                HeaderFreshness::Fresh
            }
            () if age < to_signed_duration(fresh) => HeaderFreshness::Fresh,
            () if age < to_signed_duration(usable) => HeaderFreshness::Usable,
            () => HeaderFreshness::Due,
        }
    }

    /// Whether an endpoint reported the optimistic header, and no later one can have been signed: a header is signed in
    /// the slot after its own.
    pub(super) fn is_optimistic_header_newest(&self, spec: &ChainSpec, now: Timestamp) -> bool {
        let is_reported = self.newest_reported_at(HeaderFinality::Optimistic, now).is_some();
        is_reported && self.optimistic.slot() + 1 >= spec.slot_at_time(unix_seconds(now))
    }

    /// Records the metrics.
    pub(super) fn record_metrics(&self, spec: &ChainSpec) {
        gauge!(BEACON_FINALIZED_TIME).set(spec.slot_start_time(self.finalized.slot()) as f64);
        gauge!(BEACON_OPTIMISTIC_TIME).set(spec.slot_start_time(self.optimistic.slot()) as f64);
        if let Some(SyncCommitteeParticipation { participants, size }) = self.participation {
            gauge!(BEACON_PARTICIPATION).set(participants as f64 / size as f64);
        }
    }

    pub(super) fn status(&self, spec: &ChainSpec, now: Timestamp) -> VerifiedHeadersStatus {
        let now = unix_seconds(now);
        VerifiedHeadersStatus {
            finalized_slot: self.finalized.slot(),
            finalized_age: spec.slot_age(self.finalized.slot(), now),
            optimistic_slot: self.optimistic.slot(),
            current_slot: spec.slot_at_time(now),
            participation: self.participation,
        }
    }
}

/// Seconds since 1970; 0 for earlier times.
pub(super) fn unix_seconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_second()).unwrap_or_default()
}

fn slots_duration(count: u64, spec: &ChainSpec) -> Duration {
    Duration::from_secs(count.saturating_mul(spec.seconds_per_slot))
}
