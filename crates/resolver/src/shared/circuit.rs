//! A circuit breaker: after several consecutive failures, the server is not asked for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Consecutive failures that open the circuit. One may be chance, and three cost a resolution little.
const FAILURES: u32 = 3;

/// How long the circuit stays open: short compared with the freshness of a verdict, long compared with a time limit.
const REST: SignedDuration = SignedDuration::from_secs(5);

/// A circuit breaker that counts consecutive failures.
#[derive(Default)]
pub struct CircuitBreaker(Mutex<ConsecutiveFailures>);

#[derive(Default)]
struct ConsecutiveFailures {
    in_a_row: u32,
    rests_until: Option<Timestamp>,
}

impl CircuitBreaker {
    /// Whether the circuit is open.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.lock_failures().rests_until.is_some_and(|until| now < until)
            && !clresolve_core::mutant!("redis-never-rests")
    }

    /// Records a success.
    pub fn record_success(&self) {
        *self.lock_failures() = ConsecutiveFailures::default();
    }

    /// Records a failure. After the circuit was open, a single failure reopens it.
    pub fn record_failure(&self, now: Timestamp) {
        let mut failures = self.lock_failures();
        failures.in_a_row = failures.in_a_row.saturating_add(1);
        if failures.in_a_row >= FAILURES {
            failures.rests_until = now.checked_add(REST).ok();
        }
    }

    fn lock_failures(&self) -> MutexGuard<'_, ConsecutiveFailures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;

    #[test]
    fn failures_in_a_row_bring_a_rest_that_ends() {
        let (circuit, start) = (CircuitBreaker::default(), Timestamp::UNIX_EPOCH);
        for _ in 1..FAILURES {
            circuit.record_failure(start);
        }
        assert!(!circuit.is_open(start));
        circuit.record_success();
        for _ in 0..FAILURES {
            assert!(!circuit.is_open(start));
            circuit.record_failure(start);
        }
        assert!(circuit.is_open(start) && circuit.is_open(start + 4.seconds()));
        assert!(!circuit.is_open(start + 5.seconds()));
        circuit.record_failure(start + 5.seconds());
        assert!(circuit.is_open(start + 9.seconds()), "it failed again");
        circuit.record_success();
        assert!(!circuit.is_open(start + 9.seconds()));
    }
}
