//! Judges names in groups whose records are read together. A row is complete once the name's sources are read.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clresolve_audit::list_digest::ListDigester;
use clresolve_audit::{AuditCounts, Ending, Past, Presence, Row};
use clresolve_core::digest::Digest;
use clresolve_core::reading::GradeDemand;
use clresolve_core::reason::{Code, Effect, Step};
use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::{Question, Resolver};
use clresolve_verdict::trust::Resolution;
use futures_util::{StreamExt as _, future::ready, stream};
use tokio::sync::Semaphore;

use super::block_pin::{BlockPin, MOST_TRIES};
use super::rows::RowWriter;
use super::sources::{SourceLine, Sources};
use crate::cli::names::{Distinct, Line, NamesError};
use crate::cli::progress::Progress;

/// How the names of a list are judged.
pub(in crate::cli) struct ListAudit<'a> {
    pub(in crate::cli) resolver: &'a Resolver,
    /// The block to read instead of the resolver's own.
    pub(in crate::cli) pin: Option<&'a BlockPin>,
    /// The report with which each row is compared.
    pub(in crate::cli) earlier: Option<&'a Past>,
    pub(in crate::cli) pace: Pace,
}

/// How many names are judged concurrently, and in which groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Pace {
    group: u32,
    most: u32,
}

/// Maximum size of a group: as many names as one call to the chain can read.
const MOST_TOGETHER: u32 = 20;

/// Names in progress per name that reads hosts and gateways. With the default of eight, the next group is read while
/// the sources of the previous one are fetched.
const BEGUN_PER_TURN: u32 = 5;

impl Pace {
    /// The pace for `config`, where `at_once` names read hosts and gateways concurrently. With state proofs, each name
    /// is read separately.
    pub(in crate::cli) fn of(config: &Config, at_once: u8) -> Self {
        let at_once = u32::from(at_once);
        match config.chain.demand() {
            Ok(GradeDemand::SingleRpc | GradeDemand::Quorum(_)) => {
                let most = at_once * BEGUN_PER_TURN;
                Self { group: (most / 2).clamp(1, MOST_TOGETHER), most }
            }
            Ok(GradeDemand::StateProof(_) | GradeDemand::ConsensusProof(_)) | Err(_) => {
                Self { group: 1, most: at_once }
            }
        }
    }

    /// One permit per name in progress.
    fn places(self) -> Semaphore {
        Semaphore::new(self.most as usize)
    }

    /// Waits for the permits of a whole group, so that its names are read together and not as permits become free.
    async fn admit(self, index: usize, places: &Semaphore) {
        if index.is_multiple_of(self.group as usize)
            && let Ok(group) = places.acquire_many(self.group).await
        {
            group.forget();
        }
    }
}

impl ListAudit<'_> {
    /// Judges all names that are not in `writer` yet, until the list ends or `interrupt` completes. Also returns the
    /// digest of the list, if it is known.
    ///
    /// # Errors
    /// If a row cannot be written.
    pub(in crate::cli) async fn run(
        &self,
        sources: Sources,
        writer: &mut RowWriter,
        mut interrupt: impl Future<Output = ()> + Unpin,
    ) -> anyhow::Result<(Ending, Option<Digest>)> {
        let known = sources.digest();
        let last = writer.last();
        let progress = Progress::counting(sources.left(writer.counts.names));
        let mut distinct = Distinct::default();
        let mut listed = ListDigester::default();
        let mut is_due = |asked: &Result<SourceLine, NamesError>| match asked {
            Ok(SourceLine { line, .. }) => {
                listed.add(line.number(), &line.key());
                distinct.is_first(line) && line.number() > last
            }
            // An error of the list itself ends the audit.
            Err(_) => true,
        };
        let (pace, places, served) = (self.pace, &self.pace.places(), &AtomicUsize::new(0));
        let mut rows = Box::pin(
            stream::unfold(sources.read(), |mut lines| async { Some((lines.recv().await?, lines)) })
                .filter(|asked| ready(is_due(asked)))
                .enumerate()
                .then(async |(index, asked)| {
                    pace.admit(index, places).await;
                    asked
                })
                .map(async |asked| {
                    let row = self.judged(asked, served).await;
                    places.add_permits(1);
                    row
                })
                .buffered(pace.most as usize),
        );
        let ending = loop {
            tokio::select! {
                row = rows.next() => match row {
                    None => break Ending::Complete,
                    Some(Err(error)) => break Ending::ListFailed(error.to_string()),
                    Some(Ok(row)) => {
                        if let Err(cause) = writer.push(&row) {
                            break writer.ending(cause)?;
                        }
                        tracing::info!(line = row.line, state = %row.state, "judged");
                        progress.advance(|| counts(&writer.counts));
                    }
                },
                () = &mut interrupt => break Ending::Interrupted,
            }
        };
        drop((rows, progress));
        writer.counts.listed_again = distinct.again;
        let digest = if ending == Ending::Complete { Some(listed.digest()) } else { known };
        Ok((ending, digest))
    }

    /// The verdict on a name. If a server requested a pause, which may be longer than the name's time limit, the name
    /// is judged again after the pause. `served` counts the names that were served after such a wait.
    async fn resolved(&self, name: &str, served: &AtomicUsize) -> anyhow::Result<Resolution> {
        let mut patience = Patience::new(served.load(Ordering::Relaxed));
        loop {
            let began = Instant::now();
            let resolution = self.read(name).await?;
            let Some(rest) = self.rest(&resolution, began.elapsed()) else {
                if patience.has_waited() && undecided(&resolution).next().is_none() {
                    served.fetch_add(1, Ordering::Relaxed);
                }
                return Ok(resolution);
            };
            if !patience.lasts(served.load(Ordering::Relaxed)) {
                return Ok(resolution);
            }
            tokio::time::sleep(rest).await;
        }
    }

    /// How long to wait for a server that paused during a resolution of this length and may have the missing answer.
    /// The pause may already be over.
    fn rest(&self, resolution: &Resolution, run: Duration) -> Option<Duration> {
        if !lacks_an_answer(resolution) {
            return None;
        }
        self.resolver.rest(run).max(self.resolver.gateway_rest(run).filter(|_| lacks_content(resolution)))
    }

    async fn read(&self, name: &str) -> anyhow::Result<Resolution> {
        match self.pin {
            Some(pin) => pin.resolve(name).await,
            None => Ok(self.resolver.ask_anew(&Question::new(name)).await?),
        }
    }

    /// Judges a line and returns its row.
    async fn judged(&self, asked: Result<SourceLine, NamesError>, served: &AtomicUsize) -> anyhow::Result<Row> {
        let SourceLine { line, listed } = asked?;
        let row = match line {
            Line::Name { line, name } => {
                let resolution = self.resolved(&name, served).await?;
                let mut row = Row::of(line, resolution.verdict()).with_card(resolution.card().map(|bytes| &**bytes));
                row.registry = listed.map(|listed| listed.with(Presence::of(resolution.verdict())));
                if let Some(earlier) = self.earlier {
                    row.follow_in(earlier);
                }
                row
            }
            Line::Unreadable { line, start, whole, code: Code::NameInvalid, why } => {
                let registry = listed.map(|listed| listed.with(Presence::Absent));
                Row { registry, ..Row::unreadable(line, &start, whole, &why) }
            }
            Line::Unreadable { line, start, whole, code, why } => Row::of_registry(line, &start, whole, code, &why),
        };
        Ok(row)
    }
}

/// Maximum number of attempts for a name: more than the default number of names in progress, so that each of the others
/// may be served first. A gateway may pause for five minutes each time, which makes five hours.
const MOST_TRIES_IN_ALL: usize = 64;

/// Decides how often a name is judged again after servers requested pauses.
///
/// A server with a low rate limit requests pauses because of other names, so a pause is no failure. As long as other
/// waiting names are served, the name is retried, up to [`MOST_TRIES_IN_ALL`] times. The audit gives up on it after
/// [`MOST_TRIES`] consecutive attempts during which no other waiting name was served. Names that never waited do not
/// count, because they may have used another server.
struct Patience {
    tries: usize,
    /// Number of attempts since another waiting name was served.
    in_vain: usize,
    /// Number of names served by the end of the last attempt.
    served: usize,
}

impl Patience {
    const fn new(served: usize) -> Self {
        Self { tries: 0, in_vain: 0, served }
    }

    const fn has_waited(&self) -> bool {
        self.tries > 0
    }

    /// Whether to judge the name again. `served` is the number of names served so far.
    const fn lasts(&mut self, served: usize) -> bool {
        self.tries += 1;
        self.in_vain = if served > self.served { 0 } else { self.in_vain + 1 };
        self.served = served;
        self.in_vain < MOST_TRIES && self.tries < MOST_TRIES_IN_ALL
    }
}

/// Whether an unanswered request may succeed later.
fn lacks_an_answer(resolution: &Resolution) -> bool {
    resolution.verdict().reasons.iter().any(|reason| reason.code.entry().retryable)
}

/// Whether it is undecided because gateways lack content. If another source has the content, there is nothing to wait
/// for.
fn lacks_content(resolution: &Resolution) -> bool {
    undecided(resolution)
        .any(|step| matches!(step, Step::FetchHttps | Step::FetchIpfs | Step::Integrity | Step::Schemas))
}

/// The steps that are undecided because of a request that may succeed later.
fn undecided(resolution: &Resolution) -> impl Iterator<Item = Step> {
    let reasons = resolution.verdict().reasons.iter().filter(|reason| reason.effect == Effect::Unknown);
    reasons.map(|reason| reason.code.entry()).filter(|entry| entry.retryable).map(|entry| entry.step)
}

fn counts(counts: &AuditCounts) -> String {
    let AuditCounts { trusted, untrusted, indeterminate, .. } = counts;
    format!("{trusted} trusted, {untrusted} untrusted, {indeterminate} indeterminate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_waits_as_long_as_others_are_served() {
        let mut patience = Patience::new(7);
        assert!(!patience.has_waited());
        assert!((8..18).all(|served| patience.lasts(served)), "in each rest another name was served");
        assert!(patience.has_waited());
        let in_vain = (0..).take_while(|_| patience.lasts(17)).count();
        assert_eq!(in_vain, MOST_TRIES - 1, "the fruitful try before them does not count: the fourth in vain ends it");
        let mut patience = Patience::new(7);
        assert_eq!((0..).take_while(|_| patience.lasts(7)).count(), MOST_TRIES - 1);
        let mut patience = Patience::new(7);
        assert_eq!((8..).take_while(|served| patience.lasts(*served)).count(), MOST_TRIES_IN_ALL - 1);
    }

    #[test]
    fn progress_counts_the_names_of_each_state() {
        let mut counted = AuditCounts::default();
        assert_eq!(counts(&counted), "0 trusted, 0 untrusted, 0 indeterminate");
        (counted.trusted, counted.untrusted, counted.indeterminate) = (30, 2, 1);
        assert_eq!(counts(&counted), "30 trusted, 2 untrusted, 1 indeterminate");
    }
}
