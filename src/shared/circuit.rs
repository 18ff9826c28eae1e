//! When to leave the server alone: after some failures in a row, for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Failures in a row after which it is left alone: one may be chance, and three cost a run little.
const FAILURES: u32 = 3;

/// For how long: short beside the freshness of a verdict, long beside a time limit.
const REST: SignedDuration = SignedDuration::from_secs(5);

/// Failures in a row, and the rest after them.
#[derive(Default)]
pub struct Circuit(Mutex<Failures>);

#[derive(Default)]
struct Failures {
    in_a_row: u32,
    rests_until: Option<Timestamp>,
}

impl Circuit {
    /// Whether it is not the time to try.
    pub fn rests(&self, now: Timestamp) -> bool {
        self.failures().rests_until.is_some_and(|until| now < until) && !clresolve_core::mutant!("redis-never-rests")
    }

    /// A try that succeeded.
    pub fn succeeded(&self) {
        *self.failures() = Failures::default();
    }

    /// A try that failed. After a rest one more failure is enough for the next.
    pub fn failed(&self, now: Timestamp) {
        let mut failures = self.failures();
        failures.in_a_row = failures.in_a_row.saturating_add(1);
        if failures.in_a_row >= FAILURES {
            failures.rests_until = now.checked_add(REST).ok();
        }
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;

    use super::*;

    #[test]
    fn failures_in_a_row_bring_a_rest_that_ends() {
        let (circuit, start) = (Circuit::default(), Timestamp::UNIX_EPOCH);
        for _ in 1..FAILURES {
            circuit.failed(start);
        }
        assert!(!circuit.rests(start));
        circuit.succeeded();
        for _ in 0..FAILURES {
            assert!(!circuit.rests(start));
            circuit.failed(start);
        }
        assert!(circuit.rests(start) && circuit.rests(start + 4.seconds()));
        assert!(!circuit.rests(start + 5.seconds()));
        circuit.failed(start + 5.seconds());
        assert!(circuit.rests(start + 9.seconds()), "it failed again");
        circuit.succeeded();
        assert!(!circuit.rests(start + 9.seconds()));
    }
}
