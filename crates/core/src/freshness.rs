//! How long a verdict may be relied on. Time is the caller's: nothing here reads a clock.

use std::time::Duration;

use crate::state::State;

/// How long a trusted verdict is fresh.
pub const TRUSTED_FRESH: Duration = Duration::from_secs(300);
/// How long an untrusted verdict, or proven absence, is fresh: shorter, so that a repaired binding is soon seen.
pub const UNTRUSTED_FRESH: Duration = Duration::from_secs(60);
/// The first pause after a failure; each further failure doubles it (RFC 9520: at least one second).
pub const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The longest pause after failures (RFC 9520: at most five minutes).
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(300);

/// How long a verdict of this state is fresh, after `failures` failures in a row before it.
pub fn fresh_for(state: State, failures: u32) -> Duration {
    match state {
        State::Trusted => TRUSTED_FRESH,
        State::Untrusted => UNTRUSTED_FRESH,
        State::Indeterminate => {
            FIRST_BACKOFF.checked_mul(1 << failures.min(16)).map_or(LONGEST_BACKOFF, |d| d.min(LONGEST_BACKOFF))
        }
    }
}
