//! How long a verdict may be relied on. Time is the caller's: nothing here reads a clock.

use std::time::Duration;

use crate::state::State;

/// How long a trusted verdict is fresh; never more than an hour.
pub const TRUSTED_FRESH: Duration = Duration::from_secs(300);
/// How long an untrusted verdict, or proven absence, is fresh: shorter, so that a repaired binding is soon seen; at most
/// five minutes.
pub const UNTRUSTED_FRESH: Duration = Duration::from_secs(60);
/// The first pause after a failure; each further failure doubles it (RFC 9520: at least one second).
pub const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The longest pause after failures (RFC 9520: at most five minutes).
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(300);
/// How long beyond its freshness a trusted verdict may still be described, marked as stale, after the run for it failed.
pub const STALE_FOR: Duration = Duration::from_secs(600);
/// The longest time between two looks at what a card's host serves, however often the chain was read meanwhile.
pub const HTTPS_AGE: Duration = Duration::from_secs(3600);

const _: () = assert!(TRUSTED_FRESH.as_secs() <= 3600 && UNTRUSTED_FRESH.as_secs() <= 300);

/// How long after its run a verdict may be refreshed, of one that is fresh for so long: its last tenth is left.
pub fn refresh_after(fresh: Duration) -> Duration {
    fresh * 9 / 10
}

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
