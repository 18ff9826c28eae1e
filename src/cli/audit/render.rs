//! `audit render`: renders a JSON report in other formats, without a network.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context as _, anyhow};
use clresolve_audit::Report;

use super::report::Outputs;
use crate::cli::args::AuditRenderArgs;
use crate::cli::exit::Exit;
use crate::cli::input::shown;

pub(super) fn run(args: &AuditRenderArgs) -> anyhow::Result<Exit> {
    let mut outputs = Outputs::of(&args.output, [("the report", Some(&*args.report))])?;
    let opened = File::open(&args.report).with_context(|| shown(&args.report))?;
    let (report, rows) =
        Report::read(BufReader::new(opened)).map_err(|error| anyhow!("{} {error}", shown(&args.report)))?;
    outputs.write(&report, &rows)?;
    outputs.finish()?;
    Ok(Exit::Trusted)
}
