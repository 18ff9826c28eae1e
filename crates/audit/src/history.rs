//! The counts of earlier reports, for the chart of states over time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ComparableReport;

/// Maximum number of earlier reports in a chart: two years of monthly reports, whose columns still fit on a phone.
pub const MAX_EARLIER_REPORTS: usize = 24;

/// The counts of the states in an earlier report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportStateCounts {
    /// When the report was written. `None` in reports of older versions.
    pub generated_at: Option<Timestamp>,
    /// When its first name was checked.
    pub checked: Option<Timestamp>,
    /// Number of trusted names.
    pub trusted: u64,
    /// Number of untrusted names.
    pub untrusted: u64,
    /// Number of undecided names.
    pub indeterminate: u64,
}

impl ReportStateCounts {
    /// The counts of an earlier report.
    pub fn from_report(past: &ComparableReport) -> Self {
        let [trusted, untrusted, indeterminate] = past.states;
        let (generated_at, checked) = (past.generated_at, past.checked.map(|(first, _)| first));
        Self { generated_at, checked, trusted, untrusted, indeterminate }
    }

    /// The counts of the states, in the order of the report.
    pub const fn state_counts(&self) -> [u64; 3] {
        [self.trusted, self.untrusted, self.indeterminate]
    }
}
