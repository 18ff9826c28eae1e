//! Reads ledgers from files and standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::Context as _;
use clresolve_cards::ledger::{MAX_LINE_BYTES, MAX_RECORDS, PacrLedger, PacrLedgerError, PacrLedgerMetrics};
use clresolve_resolver::clock::{Clock as _, SystemClock};

use super::args::LedgerDecayArguments;
use super::input::escaped_path;

/// Computes the figures of a ledger. The outer error is an I/O error, the inner one concerns the contents.
pub(super) fn compute_ledger_metrics(
    file: &Path,
    weights: LedgerDecayArguments,
) -> anyhow::Result<Result<PacrLedgerMetrics, PacrLedgerError>> {
    let at = weights.at.unwrap_or_else(|| SystemClock.now());
    let cannot = || format!("cannot read {}", escaped_path(file));
    let mut ledger = PacrLedger::default();
    let read = if file == Path::new("-") {
        read_ledger_lines(io::stdin().lock(), &mut ledger)
    } else {
        read_ledger_lines(BufReader::new(File::open(file).with_context(cannot)?), &mut ledger)
    };
    Ok(read.with_context(cannot)?.and_then(|()| ledger.compute_metrics(at, weights.lambda.unwrap_or_default())))
}

/// Maximum number of lines, including empty ones, so that a ledger without records ends too.
const MAX_LINES: usize = 2 * MAX_RECORDS;

/// Pushes every line. The outer error is an I/O error, the inner one concerns the contents.
fn read_ledger_lines(mut from: impl BufRead, ledger: &mut PacrLedger) -> io::Result<Result<(), PacrLedgerError>> {
    let mut line = Vec::new();
    for _ in 0..MAX_LINES {
        line.clear();
        // A longer line is truncated, but still too long for the ledger.
        if from.by_ref().take(MAX_LINE_BYTES as u64 + 2).read_until(b'\n', &mut line)? == 0 {
            return Ok(Ok(()));
        }
        if let Err(refused) = ledger.add_line(&line) {
            return Ok(Err(refused));
        }
    }
    Ok(Err(PacrLedgerError::TooMany { line: MAX_LINES + 1, what: "lines", limit: MAX_LINES }))
}
