//! The time scale: mainnet's times, divided by one factor.

use std::time::Duration;

/// The divisor. A slot cannot be shorter than a second, since headers count whole seconds.
pub(crate) const FACTOR: u32 = 12;

/// Time between two blocks.
pub(crate) const SLOT: Duration = scaled(12_000);

/// Latency of an endpoint, excluding its processing time: that of a slow public one.
pub(crate) const LATENCY: Duration = scaled(240);

const _: () = assert!(SLOT.as_secs() > 0 && SLOT.subsec_nanos() == 0, "headers count whole seconds");

const fn scaled(millis: u64) -> Duration {
    Duration::from_micros(millis * 1000 / FACTOR as u64)
}
