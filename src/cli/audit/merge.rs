//! `audit merge`: one report of those of all shards.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context as _, anyhow};

use super::history::History;
use super::report::About;
use super::rows::RowWriter;
use crate::cli::args::AuditMergeArgs;
use crate::cli::exit::Exit;
use crate::cli::input::shown;
use crate::cli::output::Output;
use crate::report::merge::{MergeError, ReportReader, Shards};

pub(super) fn run(args: &AuditMergeArgs) -> anyhow::Result<Exit> {
    let read = args.reports.iter().map(|report| ("a report", Some(&**report)));
    let mut output = Output::apart_from(&args.output.out, read.chain(args.earlier.files()))?;
    let history = History::read(&args.earlier)?;
    let of_file = |at: usize, error: MergeError| anyhow!("{} {error}", shown(&args.reports[at]));
    let reports = args.reports.iter().map(|file| open(file)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut shards = Shards::of(reports).map_err(|(at, error)| match at {
        Some(at) => of_file(at, error),
        None => error.into(),
    })?;
    let (scope, ending) = (shards.scope().context("no report")?, shards.ending());
    let (list, flags, schema_layers) = (shards.list(), shards.flags(), shards.schema_layers());
    history.check_worlds(&scope)?;
    let mut writer = RowWriter::scratch()?;
    while let Some(mut row) = shards.next_row().map_err(|(at, error)| of_file(at, error))? {
        if let Some(earlier) = &history.last {
            row.follow_in(earlier);
        }
        writer.push(&row)?;
    }
    writer.counts.listed_again = shards.listed_again();
    let (counts, spool) = writer.finish()?;
    let about = About { scope, ending, shard: None, list, schema_layers, flags };
    let exit = about.write(counts, &spool, &history, args.output.form().into(), &mut output)?;
    output.finish()?;
    Ok(exit)
}

fn open(file: &Path) -> anyhow::Result<ReportReader<BufReader<File>>> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", shown(file)))?;
    ReportReader::open(BufReader::new(opened)).map_err(|error| anyhow!("{} {error}", shown(file)))
}
