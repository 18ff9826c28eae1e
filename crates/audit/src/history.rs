//! The counts of earlier reports, for the picture of states over time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Past;

/// Most earlier reports of a picture: two years of one a month, and a column is still wide enough for a phone.
pub const MAX_EARLIER_REPORTS: usize = 24;

/// The states in an earlier report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCounts {
    /// When the report was written. `None` in reports of older versions.
    pub generated_at: Option<Timestamp>,
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
        let (generated_at, checked) = (past.generated_at, past.checked.map(|(first, _)| first));
        Self { generated_at, checked, trusted, untrusted, indeterminate }
    }

    /// The counts of the states, in the order of the report.
    pub const fn states(&self) -> [u64; 3] {
        [self.trusted, self.untrusted, self.indeterminate]
    }
}
