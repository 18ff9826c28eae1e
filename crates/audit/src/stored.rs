//! Reads a whole JSON report, to render it in any other format.

use std::io::{BufRead, Seek};

use serde::de::Error as _;

use super::counts::AuditCounts;
use super::difference::AuditDifference;
use super::document::AuditReport;
use super::history::ReportStateCounts;
use super::past::{AuditReportDocument, AuditReportError};
use super::row::AuditRow;
use super::waiver::MAX_WAIVERS;

impl AuditReport {
    /// Reads a report and all its rows into memory. Rendering them yields the same bytes as rendering the original.
    ///
    /// # Errors
    /// [`AuditReportError`]
    pub fn read(report: impl BufRead + Seek) -> Result<(Self, Vec<AuditRow>), AuditReportError> {
        let (document, _): (AuditReportDocument<Vec<AuditRow>, Option<AuditDifference>, ReportStateCounts>, _) =
            AuditReportDocument::read(report)?;
        if document.waivers.as_slice().len() > MAX_WAIVERS {
            return Err(serde_json::Error::custom(format_args!("it has more than {MAX_WAIVERS} waivers")).into());
        }
        if document.complete != document.warning.is_none() {
            return Err(serde_json::Error::custom("`complete` and `warning` contradict each other").into());
        }
        let mut counts = AuditCounts::default();
        document.rows.iter().for_each(|row| counts.add(row));
        counts.listed_again = document.counts.listed_again;
        let report = Self {
            tool: document.tool,
            generated_at: document.generated_at,
            scope: document.scope,
            counts,
            warning: document.warning,
            since: document.since,
            before: document.before,
            earlier: document.earlier,
            list: document.list,
            schema_layers: document.schema_layers,
            flags: document.flags,
            waivers: document.waivers,
        };
        Ok((report, document.rows))
    }
}
