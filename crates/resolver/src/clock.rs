//! The clock, which is injected so that tests can set the time and never sleep.
//!
//! Each [`Resolver`](crate::Resolver) has one and passes it to all code that needs the date. Tokio measures durations
//! within a resolution (deadlines, delays).

use jiff::Timestamp;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
