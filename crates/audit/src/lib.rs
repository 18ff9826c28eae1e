//! The audit report: many verdicts in, one document out. Pure.
//!
//! A verdict becomes an [`AuditRow`]. [`AuditCounts`] counts it, and the caller keeps it ([`AuditRowSource`]), so that
//! memory use does not grow with the number of names. [`AuditReport::write`] writes the document. [`ComparableReport`]
//! parses a document, and [`AuditDifference`] compares two of them in memory.

mod cause;
mod counts;
mod csv;
pub mod difference;
mod document;
pub mod drift;
mod duty;
pub mod governance_log;
pub mod history;
mod html;
mod json;
mod known;
mod layers;
pub mod list_digest;
pub mod log_check;
mod log_words;
mod markdown;
mod on_chain;
mod opening;
mod overview;
mod owners;
mod page;
pub mod past;
mod registry;
mod resolution;
mod row;
mod sarif;
mod scope;
mod stored;
pub mod waiver;
mod words;

use std::io::{self, Write};

pub use self::counts::{AuditCounts, ReasonSummary};
pub use self::difference::AuditDifference;
pub use self::document::AuditReport;
pub use self::drift::{CardSourceComparison, SourceAgreement};
pub use self::history::ReportStateCounts;
pub use self::known::{CardSnapshot, DecidedTrustState, NameSnapshot};
pub use self::layers::PublishedSchemaRow;
pub use self::on_chain::OnChainSnapshot;
pub use self::past::{AuditReportError, ComparableReport};
pub use self::registry::{AuditedRegistryManifest, OnChainAgentPresence, RegistryChainComparison};
pub use self::resolution::LogRowDraft;
pub use self::row::{AuditRow, AuditRowSource, MAX_NAME_BYTES, truncate_input};
pub use self::scope::{AuditConditions, AuditEnding, NameListReference, SCHEMA, StateDecidingSettings};
pub use self::waiver::{AppliedWaivers, Waiver};

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditReportFormat {
    /// For people and repositories.
    #[default]
    Markdown,
    /// For programs: `schemas/audit.schema.json`.
    Json,
    /// A row per name, for spreadsheets.
    Csv,
    /// One page without external resources, for people and printers. It is complete without its script.
    Html,
    /// SARIF 2.1.0 (OASIS), for code hosts.
    Sarif,
}

impl AuditReport {
    /// Writes the report with its `rows` in a format.
    ///
    /// # Errors
    /// If a row cannot be read or `out` cannot be written.
    pub fn write(&self, format: AuditReportFormat, rows: &dyn AuditRowSource, out: &mut dyn Write) -> io::Result<()> {
        match format {
            AuditReportFormat::Markdown => markdown::write_markdown_report(self, rows, out),
            AuditReportFormat::Json => json::write_json_report(self, rows, out),
            AuditReportFormat::Csv => csv::write_csv_report(self, rows, out),
            AuditReportFormat::Html => html::write_html_report(self, rows, out),
            AuditReportFormat::Sarif => sarif::write_sarif_report(self, rows, out),
        }
    }
}

#[cfg(test)]
mod tests;
