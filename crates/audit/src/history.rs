//! The counts of earlier reports, for the picture of states over time.

use jiff::Timestamp;

use super::Past;

/// Most earlier reports of a picture: two years of one a month, and a column is still wide enough for a phone.
pub const MAX_EARLIER_REPORTS: usize = 24;

/// The states in an earlier report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PastCounts {
    /// When its first name was checked.
    pub checked: Option<Timestamp>,
    /// Names that were trusted.
    pub trusted: u64,
    /// Those that were untrusted.
    pub untrusted: u64,
    /// Those that could not be decided.
    pub indeterminate: u64,
}

impl PastCounts {
    /// Counts an earlier report.
    pub fn of(past: &Past) -> Self {
        let [trusted, untrusted, indeterminate] = past.states;
        Self { checked: past.checked.map(|(first, _)| first), trusted, untrusted, indeterminate }
    }

    /// The counts of the states, in the order of the report.
    pub const fn states(&self) -> [u64; 3] {
        [self.trusted, self.untrusted, self.indeterminate]
    }
}
