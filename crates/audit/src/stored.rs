//! A report that was written in its JSON form, read again as a whole, so that it can be written in any other form.

use std::io::{BufRead, Seek};

use super::counts::AuditCounts;
use super::difference::Difference;
use super::document::Report;
use super::history::PastCounts;
use super::past::{Document, PastError};
use super::row::Row;

impl Report {
    /// Reads a report with its rows, all of which are in memory. It writes the same bytes as the report that was written.
    ///
    /// # Errors
    /// [`PastError`]
    pub fn read(report: impl BufRead + Seek) -> Result<(Self, Vec<Row>), PastError> {
        let (document, _): (Document<Vec<Row>, Option<Difference>, PastCounts>, _) = Document::read(report)?;
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
