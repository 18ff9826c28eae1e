//! The scale of the run: mainnet's times, divided by one factor.

use std::time::Duration;

/// What mainnet's times are divided by. A slot cannot be shorter than a second, since headers count whole seconds.
pub(crate) const FACTOR: u32 = 12;

/// Time between two blocks.
pub(crate) const SLOT: Duration = scaled(12_000);

/// How long an endpoint takes for an answer, beside the work itself: a slow public one.
pub(crate) const LATENCY: Duration = scaled(240);

const _: () = assert!(SLOT.as_secs() > 0 && SLOT.subsec_nanos() == 0, "headers count whole seconds");

const fn scaled(millis: u64) -> Duration {
    Duration::from_micros(millis * 1000 / FACTOR as u64)
}
