//! The audit report: many verdicts in, one document out. Pure.
//!
//! A verdict becomes a [`Row`]. [`AuditCounts`] counts it, and the caller keeps it ([`Rows`]), so that memory use does
//! not grow with the number of names. [`Report::write`] writes the document. [`Past`] parses a document, and
//! [`Difference`] compares two of them in memory.

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

pub use self::counts::{AuditCounts, Group};
pub use self::difference::Difference;
pub use self::document::Report;
pub use self::drift::{Agreement, Drift};
pub use self::history::PastCounts;
pub use self::known::{DecidedState, NameSnapshot, SeenCard};
pub use self::layers::SchemaRow;
pub use self::on_chain::OnChain;
pub use self::past::{Past, PastError};
pub use self::registry::{Listing, Presence, Registry};
pub use self::resolution::Draft;
pub use self::row::{MAX_NAME_BYTES, Row, Rows, kept_input};
pub use self::scope::{Demands, Ending, ListOfNames, SCHEMA, Scope};
pub use self::waiver::{Waiver, Waivers};

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people and repositories.
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

impl Report {
    /// Writes the report with its `rows` in a format.
    ///
    /// # Errors
    /// If a row cannot be read or `out` cannot be written.
    pub fn write(&self, format: Format, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Markdown => markdown::write(self, rows, out),
            Format::Json => json::write(self, rows, out),
            Format::Csv => csv::write(self, rows, out),
            Format::Html => html::write(self, rows, out),
            Format::Sarif => sarif::write(self, rows, out),
        }
    }
}

#[cfg(test)]
mod tests;
