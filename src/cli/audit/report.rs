//! Reports that are read and written.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use anyhow::{Context as _, anyhow};

use crate::cli::args::ReportFormat;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::report::{AuditCounts, Ending, Format, Past};
use crate::text::Foreign;

/// As for several names, the worst wins; an audit that did not reach the end of its list says so.
pub(super) fn exit(counts: &AuditCounts, ending: &Ending) -> Exit {
    let worst = match counts {
        AuditCounts { untrusted: 1.., .. } => Exit::Untrusted,
        AuditCounts { indeterminate: 1.., .. } => Exit::Indeterminate,
        _ => Exit::Trusted,
    };
    match ending {
        Ending::Complete => worst,
        Ending::ListFailed(_) => Exit::Usage,
        Ending::Interrupted => Exit::Interrupted,
        Ending::RegistryUnread(_) | Ending::ShardsCut(_) | Ending::ShardsLack(_) => worst.max(Exit::Indeterminate),
    }
}

/// Reads the report of a whole list.
pub(super) fn past(file: &Path) -> anyhow::Result<Past> {
    let shown = || Foreign::new(&file.display().to_string()).to_string();
    let opened = File::open(file).with_context(shown)?;
    Past::read(BufReader::new(opened)).and_then(Past::whole).map_err(|error| anyhow!("{} {error}", shown()))
}

/// The results' stream as a writer.
pub(super) struct ToOutput<'a>(pub(super) &'a mut Output);

impl Write for ToOutput<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<ReportFormat> for Format {
    fn from(format: ReportFormat) -> Self {
        match format {
            ReportFormat::Md => Self::Markdown,
            ReportFormat::Json => Self::Json,
            ReportFormat::Csv => Self::Csv,
            ReportFormat::Html => Self::Html,
            ReportFormat::Sarif => Self::Sarif,
            ReportFormat::Junit => Self::Junit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_state_counts_and_an_interrupt_above_all() {
        let counts = |untrusted, indeterminate| {
            let mut counts = AuditCounts::default();
            (counts.untrusted, counts.indeterminate) = (untrusted, indeterminate);
            counts
        };
        assert_eq!(exit(&counts(0, 0), &Ending::Complete), Exit::Trusted);
        assert_eq!(exit(&counts(0, 2), &Ending::Complete), Exit::Indeterminate);
        assert_eq!(exit(&counts(1, 2), &Ending::Complete), Exit::Untrusted);
        assert_eq!(exit(&counts(1, 2), &Ending::ListFailed(String::new())), Exit::Usage);
        assert_eq!(exit(&counts(0, 0), &Ending::RegistryUnread(String::new())), Exit::Indeterminate);
        assert_eq!(exit(&counts(1, 2), &Ending::Interrupted), Exit::Interrupted);
    }
}
