//! `audit merge`: one report of those of all shards.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};

use super::history::History;
use super::report::{ToOutput, exit};
use super::rows::RowWriter;
use crate::cli::args::AuditMergeArgs;
use crate::cli::exit::Exit;
use crate::cli::output::{Output, Unwritable};
use crate::report::Report;
use crate::report::merge::{MergeError, ReportReader, Shards};
use crate::text::Foreign;

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
    let mut kept = RowWriter::scratch()?;
    while let Some(mut row) = shards.next_row().map_err(|(at, error)| of_file(at, error))? {
        if let Some(earlier) = &history.last {
            row.follow_in(earlier);
        }
        kept.push(&row)?;
    }
    let mut exit = exit(&kept.counts, &ending);
    if let Some(warning) = ending.warning() {
        anstream::eprintln!("clresolve: {}", Foreign::new(&warning));
    }
    kept.counts.listed_again = shards.listed_again();
    let (counts, spool) = kept.finish()?;
    let since = history.changes(&scope, &ending, &spool, schema_layers.as_deref())?;
    if let Some(since) = &since {
        exit = exit.max(since.outcome(&args.earlier.fail_on).into());
    }
    let (before, earlier) = (history.before(), history.counts());
    let report = Report { scope, counts, ending, since, before, earlier, shard: None, list, schema_layers, flags };
    let mut out = BufWriter::new(ToOutput(&mut output));
    let written = report.write(args.output.form().into(), &spool, &mut out).and_then(|()| out.flush());
    written.map_err(|error| Unwritable::new("the report", error))?;
    drop(out);
    output.finish()?;
    Ok(exit)
}

fn open(file: &Path) -> anyhow::Result<ReportReader<BufReader<File>>> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", shown(file)))?;
    ReportReader::open(BufReader::new(opened)).map_err(|error| anyhow!("{} {error}", shown(file)))
}

fn shown(file: &Path) -> String {
    Foreign::new(&file.display().to_string()).to_string()
}
