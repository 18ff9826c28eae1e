//! Schedules requests to gateways: the next one starts in parallel with one that makes no progress, or immediately
//! after one that failed.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::score::IpfsGatewayCandidate;

/// Number of gateways asked concurrently. It is rare that two fail together, and rarer that three do. Each costs
/// memory.
pub(super) const AT_ONCE: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HedgeAction {
    /// Ask a gateway, which must finish by `until`.
    Ask {
        gateway: usize,
        until: Instant,
    },
    /// Wait for a running gateway, at most until `until`.
    Wait {
        until: Instant,
    },
    End,
}

/// The schedule of a race. Time is an argument.
///
/// The next gateway starts when none has made progress for the patience of the latest one. It starts earlier if later
/// gateways would otherwise have no time left: the first [`AT_ONCE`] may use all the time, and any further ones share
/// it.
pub(super) struct HedgeSchedule {
    turns: VecDeque<IpfsGatewayCandidate>,
    deadline: Instant,
    running: usize,
    /// When the latest gateway was asked.
    asked: Instant,
    /// How long the latest gateway may delay the next one.
    patience: Duration,
}

impl HedgeSchedule {
    pub(super) fn new(turns: Vec<IpfsGatewayCandidate>, now: Instant, deadline: Instant) -> Self {
        Self { turns: turns.into(), deadline, running: 0, asked: now, patience: Duration::ZERO }
    }

    pub(super) fn next_action(&mut self, now: Instant, last_progress: Option<Instant>) -> HedgeAction {
        let may_ask = self.running < if clresolve_core::mutant!("one-gateway-at-a-time") { 1 } else { AT_ONCE }
            && now < self.deadline;
        let due = last_progress.map_or(self.asked, |progress| progress.max(self.asked)) + self.patience;
        match self.turns.front().copied() {
            Some(turn) if may_ask && due <= now => self.start_next_gateway(turn, now),
            Some(_) if may_ask => HedgeAction::Wait { until: due },
            _ if self.running > 0 && now < self.deadline + GRACE => HedgeAction::Wait { until: self.deadline + GRACE },
            _ => HedgeAction::End,
        }
    }

    fn start_next_gateway(&mut self, turn: IpfsGatewayCandidate, now: Instant) -> HedgeAction {
        let (left, waiting) = (self.deadline - now, self.turns.len());
        self.turns.pop_front();
        self.running += 1;
        self.asked = now;
        self.patience = turn.patience.min(gateway_time_share(left, waiting, 1));
        HedgeAction::Ask { gateway: turn.gateway, until: now + gateway_time_share(left, waiting, AT_ONCE) }
    }

    /// Registers that a gateway failed, so that the next one starts immediately.
    pub(super) fn record_failure(&mut self) {
        self.running -= 1;
        self.patience = Duration::ZERO;
    }
}

/// How long a gateway may run past the deadline, so that it can end by itself and report why.
const GRACE: Duration = Duration::from_secs(1);

/// The share of the time `left` for the first of `waiting` gateways, if `at_once` are asked concurrently.
fn gateway_time_share(left: Duration, waiting: usize, at_once: usize) -> Duration {
    left / u32::try_from(waiting.div_ceil(at_once)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The behaviour of a scripted gateway, in milliseconds after it was asked.
    #[derive(Clone, Copy)]
    enum Does {
        Win(u64),
        Fail(u64),
        /// Makes progress at this interval, and never ends.
        Drip(u64),
        Stall,
    }

    #[derive(Debug, Default)]
    struct HedgeRun {
        /// The gateway, when it was asked, and the time it was given.
        asked: Vec<(usize, u64, u64)>,
        won: Option<u64>,
    }

    /// Simulates a race with a patience of 100 ms for each gateway and a total of 9 s, on its own clock.
    fn race(does: &[Does]) -> HedgeRun {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let ms = |instant: Instant| u64::try_from((instant - start).as_millis()).unwrap();
        let patience = Duration::from_millis(100);
        let turns = (0..does.len()).map(|gateway| IpfsGatewayCandidate { gateway, patience }).collect();
        let mut plan = HedgeSchedule::new(turns, start, at(9000));
        let (mut now, mut progress, mut seen) = (0, None, HedgeRun::default());
        // When each running gateway acts next, what it does, and its deadline.
        let mut running: Vec<(u64, Does, u64)> = Vec::new();
        loop {
            let until = match plan.next_action(at(now), progress) {
                HedgeAction::End => return seen,
                HedgeAction::Ask { gateway, until } => {
                    let until = ms(until);
                    seen.asked.push((gateway, now, until - now));
                    let after = match does[gateway] {
                        Does::Win(after) | Does::Fail(after) | Does::Drip(after) => after,
                        Does::Stall => u64::MAX - now,
                    };
                    running.push(((now + after).min(until), does[gateway], until));
                    assert!(running.len() <= AT_ONCE);
                    continue;
                }
                HedgeAction::Wait { until } => ms(until),
            };
            let first = (0..running.len()).min_by_key(|index| running[*index].0);
            let Some(index) = first.filter(|index| running[*index].0 <= until) else {
                now = until;
                continue;
            };
            let (when, what, limit) = running[index];
            now = when;
            match what {
                _ if when == limit => {}
                Does::Win(_) => return HedgeRun { won: Some(now), ..seen },
                Does::Drip(every) => {
                    progress = Some(at(now));
                    running[index].0 = (now + every).min(limit);
                    continue;
                }
                Does::Fail(_) | Does::Stall => {}
            }
            running.remove(index);
            plan.record_failure();
        }
    }

    #[test]
    fn a_quick_gateway_is_asked_alone() {
        let seen = race(&[Does::Win(99), Does::Win(1)]);
        assert_eq!((seen.asked, seen.won), (vec![(0, 0, 9000)], Some(99)));
    }

    #[test]
    fn next_gateway_starts_after_patience_and_first_answer_wins() {
        let seen = race(&[Does::Stall, Does::Win(50)]);
        assert_eq!((seen.asked, seen.won), (vec![(0, 0, 9000), (1, 100, 8900)], Some(150)));
        let seen = race(&[Does::Win(120), Does::Win(50)]);
        assert_eq!(seen.won, Some(120), "the hedge does not take the first one's place");
        let seen = race(&[Does::Stall, Does::Stall, Does::Win(10)]);
        assert_eq!((seen.asked[2], seen.won), ((2, 200, 8800), Some(210)));
    }

    #[test]
    fn a_failure_starts_the_next_one_at_once() {
        let seen = race(&[Does::Fail(30), Does::Fail(20), Does::Win(10)]);
        assert_eq!(seen.asked.iter().map(|asked| asked.1).collect::<Vec<_>>(), [0, 30, 50]);
        assert_eq!(seen.won, Some(60));
        let seen = race(&[Does::Fail(1), Does::Fail(1)]);
        assert_eq!((seen.asked.len(), seen.won), (2, None));
    }

    #[test]
    fn progress_holds_the_hedge_off() {
        let seen = race(&[Does::Drip(90), Does::Win(1)]);
        assert_eq!(seen.asked.len(), 1, "a gateway that gets on is waited for");
        let seen = race(&[Does::Drip(110), Does::Win(1)]);
        assert_eq!(seen.asked[1].1, 100);
    }

    #[test]
    fn stalling_gateways_leave_time_for_all() {
        let seen = race(&[Does::Stall, Does::Stall, Does::Stall, Does::Stall, Does::Win(5)]);
        assert_eq!(seen.asked[..3], [(0, 0, 4500), (1, 100, 4450), (2, 200, 8800)]);
        assert_eq!(seen.asked[3].1, 4500, "when the first one's share is over");
        assert_eq!(seen.won, Some(4555), "the second one's share ends just after");
        let seen = race(&[Does::Stall; 2]);
        assert_eq!((seen.asked.len(), seen.won), (2, None), "the time limit ends it");
        assert!(race(&[]).asked.is_empty());
    }

    #[test]
    fn without_hedging_each_has_an_equal_share_before_the_next() {
        let start = Instant::now();
        let turns = (0..3).map(|gateway| IpfsGatewayCandidate { gateway, patience: Duration::MAX }).collect();
        let mut plan = HedgeSchedule::new(turns, start, start + Duration::from_secs(9));
        let until = start + Duration::from_secs(9);
        assert_eq!(plan.next_action(start, None), HedgeAction::Ask { gateway: 0, until });
        assert_eq!(plan.next_action(start, None), HedgeAction::Wait { until: start + Duration::from_secs(3) });
    }
}
