//! Keeps a record of each gateway: whether it is resting, how long it takes to respond, and how often it failed.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::gateway::BAN;

/// When the next gateway is asked in parallel with one that makes no progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HedgeDelay {
    /// After the 90th percentile of the gateway's recent response times. The fastest and most reliable gateways come
    /// first.
    #[default]
    Learnt,
    /// After this time, always in the order of the configuration, so that requests do not depend on the past. A time as
    /// long as the limit of a retrieval gives every gateway an equal share of it.
    After(Duration),
}

impl fmt::Display for HedgeDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learnt => f.write_str("learnt"),
            Self::After(time) => humantime::format_duration(*time).fmt(f),
        }
    }
}

/// A gateway that may be asked, identified by its index in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpfsGatewayCandidate {
    pub(super) gateway: usize,
    /// How long to wait for it before another gateway is asked too.
    pub(super) patience: Duration,
}

/// Patience with a gateway without a record: a cold connection to another continent, and a DHT lookup.
const UNKNOWN: Duration = Duration::from_millis(500);

/// Minimum patience. Below it, the jitter of one round trip would double the requests.
pub(super) const LEAST: Duration = Duration::from_millis(50);

/// Maximum patience. A longer delay is no better than a failure.
const MOST: Duration = Duration::from_secs(2);

/// Number of response times kept per gateway: enough for a meaningful 90th percentile, few enough to follow changes
/// over a day.
const REMEMBERED: usize = 20;

/// The weight of a failure relative to waiting: as much as the maximum patience.
const FAILURE: Duration = MOST;

/// Maximum number of failures that count. A gateway that was down for one night must not be avoided for another.
const MOST_FAILURES: f64 = 8.0;

const HALF_LIFE: Duration = Duration::from_secs(300);

/// How far in the future the end of a rest may be. A later end was recorded before the clock was set back and is
/// ignored. Otherwise a machine that booted with a wrong year would avoid a gateway until that year.
const MOST_AHEAD: Duration = Duration::from_secs(2 * BAN.as_secs());

/// What one process remembers about its gateways. Time is an argument.
#[derive(Debug)]
pub(super) struct IpfsGatewayScoreboard {
    hedging: HedgeDelay,
    records: Mutex<Vec<IpfsGatewayScore>>,
}

#[derive(Clone, Debug, Default)]
struct IpfsGatewayScore {
    rests_until: Option<Timestamp>,
    /// Times from the request to the first proven block, newest last, at most [`REMEMBERED`].
    waits: VecDeque<Duration>,
    failures: f64,
    failed_at: Option<Timestamp>,
}

impl IpfsGatewayScoreboard {
    pub(super) fn new(gateways: usize, hedging: HedgeDelay) -> Self {
        Self { hedging, records: Mutex::new(vec![IpfsGatewayScore::default(); gateways]) }
    }

    /// The gateways that may be asked at `now`, best first. Equal ones are in the order of the configuration.
    pub(super) fn ranked_candidates(&self, now: Timestamp) -> Vec<IpfsGatewayCandidate> {
        let records = self.lock_scores();
        let mut able: Vec<_> = records.iter().enumerate().filter(|(_, record)| !record.is_resting(now)).collect();
        if self.hedging == HedgeDelay::Learnt {
            able.sort_by_key(|(_, record)| record.expected_cost(now));
        }
        let patience = |record: &IpfsGatewayScore| match self.hedging {
            HedgeDelay::Learnt => record.p90_response_time(),
            HedgeDelay::After(time) => time,
        };
        able.into_iter().map(|(gateway, record)| IpfsGatewayCandidate { gateway, patience: patience(record) }).collect()
    }

    /// Records that a gateway supplied its first proven block after `wait`.
    pub(super) fn record_first_block(&self, gateway: usize, wait: Duration) {
        self.update_score(gateway, |record| record.record_response_time(wait));
    }

    /// Records that a gateway had supplied nothing after `wait`, when another one finished. This is a lower bound for
    /// its response time.
    pub(super) fn record_lost_race(&self, gateway: usize, wait: Duration) {
        self.update_score(gateway, |record| {
            if wait >= record.p90_response_time() {
                record.record_response_time(wait);
            }
        });
    }

    pub(super) fn record_failure(&self, gateway: usize, now: Timestamp) {
        self.update_score(gateway, |record| {
            record.failures = (record.decayed_failure_count(now) + 1.0).min(MOST_FAILURES);
            record.failed_at = Some(now);
        });
    }

    /// How long after `now` the first gateway may be asked again, among those that rested within the last `past`. Rests
    /// longer than `most` are ignored.
    pub(super) fn time_until_gateway_available(
        &self,
        now: Timestamp,
        past: Duration,
        most: Duration,
    ) -> Option<Duration> {
        let records = self.lock_scores();
        let ends = records
            .iter()
            .filter_map(|record| record.rests_until)
            .filter(|until| elapsed_between(*until, now) < past || now < *until);
        ends.map(|until| elapsed_between(now, until)).filter(|rest| *rest <= most).min()
    }

    pub(super) fn pause_gateway(&self, gateway: usize, until: Timestamp) {
        self.update_score(gateway, |record| record.rests_until = record.rests_until.max(Some(until)));
    }

    fn update_score(&self, gateway: usize, change: impl FnOnce(&mut IpfsGatewayScore)) {
        if let Some(record) = self.lock_scores().get_mut(gateway) {
            change(record);
        }
    }

    fn lock_scores(&self) -> MutexGuard<'_, Vec<IpfsGatewayScore>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IpfsGatewayScore {
    fn is_resting(&self, now: Timestamp) -> bool {
        self.rests_until.is_some_and(|until| now < until && elapsed_between(now, until) <= MOST_AHEAD)
    }

    fn record_response_time(&mut self, wait: Duration) {
        if self.waits.len() == REMEMBERED {
            self.waits.pop_front();
        }
        self.waits.push_back(wait);
    }

    /// The 90th percentile of the recorded response times, within bounds.
    fn p90_response_time(&self) -> Duration {
        let mut waits: Vec<_> = self.waits.iter().copied().collect();
        waits.sort_unstable();
        let ninth_tenth = (waits.len() * 9).div_ceil(10).checked_sub(1).and_then(|index| waits.get(index));
        ninth_tenth.map_or(UNKNOWN, |wait| (*wait).clamp(LEAST, MOST))
    }

    fn decayed_failure_count(&self, now: Timestamp) -> f64 {
        let Some(failed_at) = self.failed_at else { return 0.0 };
        let halvings = elapsed_between(failed_at, now).as_secs_f64() / HALF_LIFE.as_secs_f64();
        self.failures * (-halvings).exp2()
    }

    /// The expected cost of asking the gateway: its response time, plus a penalty for each failure.
    fn expected_cost(&self, now: Timestamp) -> Duration {
        self.p90_response_time() + FAILURE.mul_f64(self.decayed_failure_count(now))
    }
}

/// The time from `then` to `now`, or zero if the clock was set back.
fn elapsed_between(then: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(then).max(SignedDuration::ZERO).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    fn order(scores: &IpfsGatewayScoreboard, now: Timestamp) -> Vec<usize> {
        scores.ranked_candidates(now).iter().map(|turn| turn.gateway).collect()
    }

    fn patience(scores: &IpfsGatewayScoreboard) -> Duration {
        scores.ranked_candidates(Timestamp::UNIX_EPOCH)[0].patience
    }

    #[test]
    fn the_shortest_rest_is_that_of_a_gateway_that_is_back_soon() {
        let scores = IpfsGatewayScoreboard::new(3, HedgeDelay::Learnt);
        let (now, most) = (Timestamp::UNIX_EPOCH, ms(300_000));
        assert_eq!(scores.time_until_gateway_available(now, Duration::ZERO, most), None);
        scores.pause_gateway(0, now + BAN);
        assert_eq!(scores.time_until_gateway_available(now, Duration::ZERO, most), None, "a liar is not waited for");
        scores.pause_gateway(1, now + ms(20_000));
        scores.pause_gateway(2, now + ms(10_000));
        assert_eq!(scores.time_until_gateway_available(now, Duration::ZERO, most), Some(ms(10_000)));
        assert_eq!(scores.time_until_gateway_available(now + ms(15_000), Duration::ZERO, most), Some(ms(5_000)));
        assert_eq!(scores.time_until_gateway_available(now + ms(20_000), Duration::ZERO, most), None);
        assert_eq!(
            scores.time_until_gateway_available(now + ms(20_000), ms(1), most),
            Some(Duration::ZERO),
            "it has rested until now"
        );
    }

    #[test]
    fn patience_follows_nine_of_ten_answers_within_bounds() {
        let scores = IpfsGatewayScoreboard::new(1, HedgeDelay::Learnt);
        assert_eq!(patience(&scores), UNKNOWN);
        scores.record_first_block(0, ms(300));
        assert_eq!(patience(&scores), ms(300));
        for wait in 101..=120 {
            scores.record_first_block(0, ms(wait));
        }
        assert_eq!(patience(&scores), ms(118), "the 18th of 20; the oldest is forgotten");
        for _ in 0..REMEMBERED {
            scores.record_first_block(0, ms(1));
        }
        assert_eq!(patience(&scores), LEAST);
        for _ in 0..REMEMBERED {
            scores.record_first_block(0, ms(60_000));
        }
        assert_eq!(patience(&scores), MOST);
    }

    #[test]
    fn who_is_outrun_was_at_least_that_slow() {
        let scores = IpfsGatewayScoreboard::new(1, HedgeDelay::Learnt);
        scores.record_lost_race(0, ms(20));
        assert_eq!(patience(&scores), UNKNOWN, "dropped too early to tell");
        scores.record_lost_race(0, ms(900));
        assert_eq!(patience(&scores), ms(900));
    }

    #[test]
    fn the_quick_and_the_reliable_go_first() {
        let (scores, now) = (IpfsGatewayScoreboard::new(3, HedgeDelay::Learnt), Timestamp::UNIX_EPOCH);
        assert_eq!(order(&scores, now), [0, 1, 2], "as configured");
        scores.record_first_block(0, ms(800));
        scores.record_first_block(2, ms(80));
        assert_eq!(order(&scores, now), [2, 1, 0]);
        scores.record_failure(2, now);
        assert_eq!(order(&scores, now), [1, 0, 2]);
        assert_eq!(order(&scores, now + HALF_LIFE * 2), [1, 2, 0], "a failure is forgotten in time");
        assert_eq!(order(&scores, now + HALF_LIFE * 6), [2, 1, 0]);
    }

    #[test]
    fn failures_are_capped() {
        let (scores, now) = (IpfsGatewayScoreboard::new(2, HedgeDelay::Learnt), Timestamp::UNIX_EPOCH);
        for _ in 0..1000 {
            scores.record_failure(0, now);
        }
        scores.record_first_block(1, ms(1000));
        assert_eq!(order(&scores, now), [1, 0]);
        assert_eq!(order(&scores, now + HALF_LIFE * 6), [0, 1]);
    }

    #[test]
    fn who_rests_is_not_asked() {
        let (scores, now) = (IpfsGatewayScoreboard::new(2, HedgeDelay::Learnt), Timestamp::UNIX_EPOCH);
        scores.pause_gateway(0, now + ms(100));
        scores.pause_gateway(0, now + ms(50));
        scores.pause_gateway(1, now + ms(200));
        assert!(order(&scores, now).is_empty());
        assert!(order(&scores, now + ms(99)).is_empty());
        assert_eq!(order(&scores, now + ms(100)), [0]);
        assert_eq!(order(&scores, now + ms(200)), [0, 1]);
    }

    #[test]
    fn a_clock_that_is_set_back_bans_nobody_for_longer() {
        let (scores, wrong) = (
            IpfsGatewayScoreboard::new(1, HedgeDelay::Learnt),
            Timestamp::UNIX_EPOCH + SignedDuration::from_hours(9999),
        );
        scores.record_failure(0, wrong);
        scores.pause_gateway(0, wrong + BAN);
        assert_eq!(order(&scores, wrong - BAN), Vec::<usize>::new(), "set back by less than a ban");
        assert_eq!(order(&scores, wrong - BAN - ms(1)), [0]);
        assert_eq!(order(&scores, Timestamp::MIN), [0]);
    }

    #[test]
    fn a_fixed_time_leaves_the_past_out() {
        let (scores, now) = (IpfsGatewayScoreboard::new(2, HedgeDelay::After(ms(7))), Timestamp::UNIX_EPOCH);
        scores.record_first_block(0, ms(900));
        scores.record_failure(0, now);
        let expected = [
            IpfsGatewayCandidate { gateway: 0, patience: ms(7) },
            IpfsGatewayCandidate { gateway: 1, patience: ms(7) },
        ];
        assert_eq!(scores.ranked_candidates(now), expected);
    }
}
