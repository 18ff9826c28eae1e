//! A budget by the clock: so many at once, then so many a second.

use jiff::Timestamp;

/// Most names that an endpoint may hint at in one go. One block of mainnet touches a few.
pub(super) const HINTS_AT_ONCE: i64 = 128;

/// Names a second that an endpoint may hint at on end.
pub(super) const HINTS_PER_SECOND: i64 = 4;

/// Most names that are read again because of a gap, each second. A full cache then takes longer than its verdicts are
/// fresh, and no endpoint notices it.
const STALE_PER_SECOND: i64 = 4;

/// Hints of one endpoint, or readings after a gap.
pub(super) struct Budget {
    per_second: i64,
    most: i64,
    /// Thousandths of one.
    left: i64,
    at: Option<Timestamp>,
}

impl Budget {
    /// That of the hints of one endpoint.
    pub(super) const fn of_hints() -> Self {
        Self::new(HINTS_PER_SECOND, HINTS_AT_ONCE)
    }

    /// That of readings after a gap.
    pub(super) const fn of_readings() -> Self {
        Self::new(STALE_PER_SECOND, STALE_PER_SECOND)
    }

    const fn new(per_second: i64, most: i64) -> Self {
        Self { per_second, most, left: most * 1000, at: None }
    }

    /// Takes one, if there is one. A clock that was set back adds none.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        let since = self.at.map_or(0, |at| now.as_millisecond().saturating_sub(at.as_millisecond()).max(0));
        self.at = Some(now);
        self.left = self.left.saturating_add(since.saturating_mul(self.per_second)).min(self.most * 1000);
        if self.left < 1000 {
            return false;
        }
        self.left -= 1000;
        true
    }
}
