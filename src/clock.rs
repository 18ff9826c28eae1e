//! The clock: injected, so that tests set the time and never sleep.
//!
//! A [`Resolver`](crate::Resolver) has one, and hands it to everything that asks for the date. Durations within a run
//! (deadlines, pauses) are measured by tokio.

use jiff::Timestamp;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
