//! `audit render`: renders a JSON report in other formats, without a network.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context as _, anyhow};
use clresolve_audit::AuditReport;

use super::report::AuditReportOutputs;
use crate::cli::args::AuditRenderArguments;
use crate::cli::exit::ExitStatus;
use crate::cli::input::escaped_path;

pub(super) fn run(args: &AuditRenderArguments) -> anyhow::Result<ExitStatus> {
    let mut outputs = AuditReportOutputs::open_outputs(&args.output, [("the report", Some(&*args.report))])?;
    let opened = File::open(&args.report).with_context(|| escaped_path(&args.report))?;
    let (report, rows) =
        AuditReport::read(BufReader::new(opened)).map_err(|error| anyhow!("{} {error}", escaped_path(&args.report)))?;
    outputs.write_report(&report, &rows)?;
    outputs.finish()?;
    Ok(ExitStatus::Trusted)
}
