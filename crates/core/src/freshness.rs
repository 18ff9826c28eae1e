//! How long a verdict stays fresh. Callers pass the time in: nothing here reads a clock.

use std::time::Duration;

use crate::state::TrustState;

/// Lifetime of a trusted verdict.
pub const TRUSTED_FRESH: Duration = Duration::from_secs(300);
/// Lifetime of an untrusted verdict, or of proven absence: short, so that a repaired binding is noticed soon.
pub const UNTRUSTED_FRESH: Duration = Duration::from_secs(60);
/// The first pause after a failure. Each further failure doubles it (RFC 9520: at least one second).
pub const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The longest pause after failures (RFC 9520: at most five minutes).
pub const LONGEST_BACKOFF: Duration = Duration::from_secs(300);
/// How long past its freshness an expired trusted verdict may still be reported, marked as stale, if the resolution to
/// replace it failed.
pub const STALE_FOR: Duration = Duration::from_secs(600);
/// Maximum interval between two requests to the card's HTTPS host, however often the chain was read in between.
pub const HTTPS_AGE: Duration = Duration::from_secs(3600);

const _: () = assert!(TRUSTED_FRESH.as_secs() <= 3600 && UNTRUSTED_FRESH.as_secs() <= 300);

/// The age from which a verdict may be refreshed: all but the last tenth of its lifetime `fresh`.
pub fn verdict_refresh_age(fresh: Duration) -> Duration {
    fresh * 9 / 10
}

/// How long a verdict of this state is fresh, after `failures` consecutive failures.
pub fn verdict_fresh_duration(state: TrustState, failures: u32) -> Duration {
    match state {
        TrustState::Trusted => TRUSTED_FRESH,
        TrustState::Untrusted => UNTRUSTED_FRESH,
        TrustState::Indeterminate => {
            FIRST_BACKOFF.checked_mul(1 << failures.min(16)).map_or(LONGEST_BACKOFF, |d| d.min(LONGEST_BACKOFF))
        }
    }
}
