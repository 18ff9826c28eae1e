//! The names of a list, judged a few at the same time; the rows follow the list.

use std::future::Future;

use futures_util::{StreamExt as _, future::ready, stream};
use tokio::sync::mpsc;

use super::rows::RowWriter;
use crate::cli::names::{self, Distinct, Line, List, NamesError};
use crate::cli::progress::Progress;
use crate::report::{Ending, Past, Row, Shard, Tally};
use crate::resolve::Resolver;

/// Lines read ahead of the names that are being judged: enough that reading never holds up the judging.
const READ_AHEAD: usize = 64;

/// How the names of a list are judged.
pub(in crate::cli) struct ListAudit<'a> {
    pub(in crate::cli) resolver: &'a Resolver,
    /// The report against which each row is held.
    pub(in crate::cli) earlier: Option<&'a Past>,
    /// The part of the list that is judged.
    pub(in crate::cli) shard: Option<Shard>,
    /// Names that are judged at the same time.
    pub(in crate::cli) concurrency: u8,
}

impl ListAudit<'_> {
    /// Judges what `kept` does not hold yet, until the list or `interrupt` ends.
    ///
    /// # Errors
    /// If a row cannot be kept.
    pub(in crate::cli) async fn run(
        &self,
        list: List,
        kept: &mut RowWriter,
        mut interrupt: impl Future<Output = ()> + Unpin,
    ) -> anyhow::Result<Ending> {
        let (left, last) = (list.total.map(|total| total.saturating_sub(kept.tally.names)), kept.last());
        let progress = Progress::counting(left.filter(|_| self.shard.is_none()));
        let mut distinct = Distinct::default();
        let mut is_due = |line: &Result<Line, NamesError>| match line {
            Ok(line) => is_in(self.shard, line) && distinct.is_first(line) && line.number() > last,
            // A list that cannot be read on is everybody's matter.
            Err(_) => true,
        };
        let mut rows = Box::pin(
            stream::unfold(read_lines(list.reader), |mut lines| async { Some((lines.recv().await?, lines)) })
                .filter(|line| ready(is_due(line)))
                .map(|line| judged(self.resolver, line, self.earlier))
                .buffered(usize::from(self.concurrency)),
        );
        let ending = loop {
            tokio::select! {
                row = rows.next() => match row {
                    None => break Ending::Complete,
                    Some(Err(error)) => break Ending::ListFailed(error.to_string()),
                    Some(Ok(row)) => {
                        kept.push(&row)?;
                        tracing::info!(line = row.line, state = %row.state, "judged");
                        progress.advance(|| counts(&kept.tally));
                    }
                },
                () = &mut interrupt => break Ending::Interrupted,
            }
        };
        drop((rows, progress));
        kept.tally.listed_again = distinct.again;
        Ok(ending)
    }
}

/// Whether a line is of the shard.
fn is_in(shard: Option<Shard>, line: &Line) -> bool {
    let Some(shard) = shard else { return true };
    match line {
        Line::Name { name, .. } => shard.has(name),
        Line::Unreadable { line, start, .. } => shard.has(&format!("{line} {start}")),
    }
}

/// Reads the list in a thread of its own, since standard input may keep it waiting.
fn read_lines(reader: names::Reader) -> mpsc::Receiver<Result<Line, NamesError>> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        for line in reader {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn judged(resolver: &Resolver, line: Result<Line, NamesError>, earlier: Option<&Past>) -> anyhow::Result<Row> {
    let row = match line? {
        Line::Name { line, name } => {
            let resolution = resolver.resolve(&name).await;
            let mut row = Row::of(line, resolution.verdict()).with_card(resolution.card().map(|bytes| &**bytes));
            if let Some(before) = earlier.and_then(|earlier| earlier.names.get(row.name())) {
                row.follow(before);
            }
            row
        }
        Line::Unreadable { line, start, why } => Row::unreadable(line, &start, &why),
    };
    Ok(row)
}

fn counts(tally: &Tally) -> String {
    let Tally { trusted, untrusted, indeterminate, .. } = tally;
    format!("{trusted} trusted, {untrusted} untrusted, {indeterminate} indeterminate")
}
