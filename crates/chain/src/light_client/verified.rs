//! What a light client has verified, and whether a newer header can exist. No I/O, no clock.

use std::time::Duration;

use clresolve_beacon::{ChainSpec, VerifiedHeader};
use jiff::Timestamp;
use metrics::gauge;

use super::status::{HeaderStatus, Participation};
use crate::beacon_metrics::{BEACON_FINALIZED_TIME, BEACON_OPTIMISTIC_TIME, BEACON_PARTICIPATION};
use crate::head_age::signed;

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
pub(super) enum Wanted {
    Finalized,
    Optimistic,
}

/// Whether a header can be used as the newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Currency {
    /// No newer header exists, or endpoints answered just now.
    Fresh,
    /// It may be used while endpoints are asked again.
    Usable,
    /// Endpoints must be asked first.
    Due,
}

/// The verified headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verified {
    pub(super) finalized: VerifiedHeader,
    pub(super) optimistic: VerifiedHeader,
    /// Signers of the last verified update.
    pub(super) participation: Option<Participation>,
    /// Send time of the latest request in response to which an endpoint proved the finalized header as its newest.
    pub(super) finality_at: Option<Timestamp>,
    /// Send time of the latest request in response to which an endpoint reported the optimistic header as its newest.
    pub(super) optimistic_at: Option<Timestamp>,
}

impl Verified {
    pub(super) const fn header(&self, wanted: Wanted) -> VerifiedHeader {
        match wanted {
            Wanted::Finalized => self.finalized,
            Wanted::Optimistic => self.optimistic,
        }
    }

    /// Send time of the latest request in response to which an endpoint reported the wanted header as its newest.
    /// `None` if that is after `now`: the clock was set back.
    pub(super) fn reported_at(&self, wanted: Wanted, now: Timestamp) -> Option<Timestamp> {
        let reported_at = match wanted {
            Wanted::Finalized => self.finality_at,
            Wanted::Optimistic => self.optimistic_at,
        };
        reported_at.filter(|at| *at <= now)
    }

    /// Records a report whose request was sent at `at`. Reports may arrive out of order.
    pub(super) fn note_report(&mut self, wanted: Wanted, at: Timestamp, now: Timestamp) {
        let latest = self.reported_at(wanted, now).max(Some(at));
        match wanted {
            Wanted::Finalized => self.finality_at = latest,
            Wanted::Optimistic => self.optimistic_at = latest,
        }
    }

    /// When the optimistic header was last known to be the newest.
    pub(super) fn newest_at(&self, spec: &ChainSpec, now: Timestamp) -> Timestamp {
        let next_signed_at = i64::try_from(spec.slot_start(self.optimistic.slot() + 2)).unwrap_or(i64::MAX);
        let next_signed_at = Timestamp::from_second(next_signed_at).unwrap_or(Timestamp::MAX);
        self.optimistic_at.unwrap_or(next_signed_at).max(next_signed_at).min(now)
    }

    pub(super) fn currency(&self, wanted: Wanted, spec: &ChainSpec, now: Timestamp) -> Currency {
        let (fresh, usable) = match wanted {
            Wanted::Finalized => (slots(1, spec), slots(FINALITY_USABLE_SLOTS, spec)),
            Wanted::Optimistic => (FRESH_FOR, USABLE_FOR),
        };
        let Some(reported_at) = self.reported_at(wanted, now) else { return Currency::Due };
        let age = now.duration_since(reported_at);
        match () {
            () if wanted == Wanted::Optimistic && self.is_head(spec, now) => Currency::Fresh,
            () if age < signed(fresh) => Currency::Fresh,
            () if age < signed(usable) => Currency::Usable,
            () => Currency::Due,
        }
    }

    /// Whether an endpoint reported the optimistic header, and no later one can have been signed: a header is signed in
    /// the slot after its own.
    pub(super) fn is_head(&self, spec: &ChainSpec, now: Timestamp) -> bool {
        let is_reported = self.reported_at(Wanted::Optimistic, now).is_some();
        is_reported && self.optimistic.slot() + 1 >= spec.slot_at(seconds(now))
    }

    /// Records the metrics.
    pub(super) fn record(&self, spec: &ChainSpec) {
        gauge!(BEACON_FINALIZED_TIME).set(spec.slot_start(self.finalized.slot()) as f64);
        gauge!(BEACON_OPTIMISTIC_TIME).set(spec.slot_start(self.optimistic.slot()) as f64);
        if let Some(Participation { participants, size }) = self.participation {
            gauge!(BEACON_PARTICIPATION).set(participants as f64 / size as f64);
        }
    }

    pub(super) fn status(&self, spec: &ChainSpec, now: Timestamp) -> HeaderStatus {
        let now = seconds(now);
        HeaderStatus {
            finalized_slot: self.finalized.slot(),
            finalized_age: spec.slot_age(self.finalized.slot(), now),
            optimistic_slot: self.optimistic.slot(),
            current_slot: spec.slot_at(now),
            participation: self.participation,
        }
    }
}

/// Seconds since 1970; 0 for earlier times.
pub(super) fn seconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_second()).unwrap_or_default()
}

fn slots(count: u64, spec: &ChainSpec) -> Duration {
    Duration::from_secs(count.saturating_mul(spec.seconds_per_slot))
}
