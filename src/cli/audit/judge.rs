//! Judges names in groups whose records are read together. A row is complete once the name's sources are read.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use clresolve_audit::list_digest::ListDigester;
use clresolve_audit::{
    AuditCounts, AuditEnding, AuditRow, ComparableReport, OnChainAgentPresence, RegistryChainComparison,
};
use clresolve_core::digest::Digest;
use clresolve_core::reading::ProofGradeDemand;
use clresolve_core::reason::{ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_resolver::config::Config;
use clresolve_resolver::resolve::{NameQuestion, Resolver};
use clresolve_verdict::trust::Resolution;
use futures_util::{StreamExt as _, future::ready, stream};
use tokio::sync::Semaphore;

use super::block_pin::{MOST_TRIES, PinnedBlockResolver};
use super::rows::AuditRowSpool;
use super::sources::{AuditNameLine, AuditNameSources};
use crate::cli::names::{DuplicateNameDetector, NameListError, NameListLine};
use crate::cli::progress::ProgressLine;

/// How the names of a list are judged.
pub(in crate::cli) struct NameListAuditor<'a> {
    pub(in crate::cli) resolver: &'a Resolver,
    /// The block to read instead of the resolver's own.
    pub(in crate::cli) pin: Option<&'a PinnedBlockResolver>,
    /// The report with which each row is compared.
    pub(in crate::cli) earlier: Option<&'a ComparableReport>,
    pub(in crate::cli) pace: AuditConcurrencyLimits,
}

/// How many names are judged concurrently, and in which groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct AuditConcurrencyLimits {
    group: u32,
    most: u32,
}

/// Maximum size of a group: as many names as one call to the chain can read.
const MOST_TOGETHER: u32 = 20;

/// Names in progress per name that reads hosts and gateways. With the default of eight, the next group is read while
/// the sources of the previous one are fetched.
const BEGUN_PER_TURN: u32 = 5;

impl AuditConcurrencyLimits {
    /// The pace for `config`, where `at_once` names read hosts and gateways concurrently. With state proofs, each name
    /// is read separately.
    pub(in crate::cli) fn from_config(config: &Config, at_once: u8) -> Self {
        let at_once = u32::from(at_once);
        match config.chain.proof_grade_demand() {
            Ok(ProofGradeDemand::SingleRpc | ProofGradeDemand::Quorum(_)) => {
                let most = at_once * BEGUN_PER_TURN;
                Self { group: (most / 2).clamp(1, MOST_TOGETHER), most }
            }
            Ok(ProofGradeDemand::StateProof(_) | ProofGradeDemand::ConsensusProof(_)) | Err(_) => {
                Self { group: 1, most: at_once }
            }
        }
    }

    /// One permit per name in progress.
    fn name_semaphore(self) -> Semaphore {
        Semaphore::new(self.most as usize)
    }

    /// Waits for the permits of a whole group, so that its names are read together and not as permits become free.
    async fn acquire_group_permits(self, index: usize, places: &Semaphore) {
        if index.is_multiple_of(self.group as usize)
            && let Ok(group) = places.acquire_many(self.group).await
        {
            group.forget();
        }
    }
}

impl NameListAuditor<'_> {
    /// Judges all names that are not in `writer` yet, until the list ends or `interrupt` completes. Also returns the
    /// digest of the list, if it is known.
    ///
    /// # Errors
    /// If a row cannot be written.
    pub(in crate::cli) async fn judge_all_names(
        &self,
        sources: AuditNameSources,
        writer: &mut AuditRowSpool,
        mut interrupt: impl Future<Output = ()> + Unpin,
    ) -> anyhow::Result<(AuditEnding, Option<Digest>)> {
        let known = sources.digest_of_all_lines();
        let last = writer.last_line_number();
        let progress = ProgressLine::start_counter(sources.remaining_name_count(writer.counts.names));
        let mut distinct = DuplicateNameDetector::default();
        let mut listed = ListDigester::default();
        let mut is_due = |asked: &Result<AuditNameLine, NameListError>| match asked {
            Ok(AuditNameLine { line, .. }) => {
                listed.add(line.line_number(), &line.digest_key());
                distinct.insert_line(line) && line.line_number() > last
            }
            // An error of the list itself ends the audit.
            Err(_) => true,
        };
        let (pace, places, served) = (self.pace, &self.pace.name_semaphore(), &AtomicUsize::new(0));
        let mut rows = Box::pin(
            stream::unfold(sources.read_lines_in_thread(), |mut lines| async { Some((lines.recv().await?, lines)) })
                .filter(|asked| ready(is_due(asked)))
                .enumerate()
                .then(async |(index, asked)| {
                    pace.acquire_group_permits(index, places).await;
                    asked
                })
                .map(async |asked| {
                    let row = self.judge_name_line(asked, served).await;
                    places.add_permits(1);
                    row
                })
                .buffered(pace.most as usize),
        );
        let ending = loop {
            tokio::select! {
                row = rows.next() => match row {
                    None => break AuditEnding::Complete,
                    Some(Err(error)) => break AuditEnding::ListFailed(error.to_string()),
                    Some(Ok(row)) => {
                        if let Err(cause) = writer.push(&row) {
                            break writer.ending_after_error(cause)?;
                        }
                        tracing::info!(line = row.line, state = %row.state, "judged");
                        progress.advance(|| format_audit_counts(&writer.counts));
                    }
                },
                () = &mut interrupt => break AuditEnding::Interrupted,
            }
        };
        drop((rows, progress));
        writer.counts.listed_again = distinct.again;
        let digest = if ending == AuditEnding::Complete { Some(listed.digest()) } else { known };
        Ok((ending, digest))
    }

    /// The verdict on a name. If a server requested a pause, which may be longer than the name's time limit, the name
    /// is judged again after the pause. `served` counts the names that were served after such a wait.
    async fn resolve_with_retries(&self, name: &str, served: &AtomicUsize) -> anyhow::Result<Resolution> {
        let mut patience = NameRetryBudget::new(served.load(Ordering::Relaxed));
        loop {
            let began = Instant::now();
            let resolution = self.resolve_once(name).await?;
            let Some(rest) = self.retry_pause(&resolution, began.elapsed()) else {
                if patience.has_retried() && undecided_steps(&resolution).next().is_none() {
                    served.fetch_add(1, Ordering::Relaxed);
                }
                return Ok(resolution);
            };
            if !patience.try_consume_retry(served.load(Ordering::Relaxed)) {
                return Ok(resolution);
            }
            tokio::time::sleep(rest).await;
        }
    }

    /// How long to wait for a server that paused during a resolution of this length and may have the missing answer.
    /// The pause may already be over.
    fn retry_pause(&self, resolution: &Resolution, run: Duration) -> Option<Duration> {
        if !has_retryable_reason(resolution) {
            return None;
        }
        self.resolver
            .longest_remaining_server_pause(run)
            .max(self.resolver.time_until_gateway_available(run).filter(|_| is_content_fetch_undecided(resolution)))
    }

    async fn resolve_once(&self, name: &str) -> anyhow::Result<Resolution> {
        match self.pin {
            Some(pin) => pin.resolve_at_pin(name).await,
            None => Ok(self.resolver.resolve_question_anew(&NameQuestion::new(name)).await?),
        }
    }

    /// Judges a line and returns its row.
    async fn judge_name_line(
        &self,
        asked: Result<AuditNameLine, NameListError>,
        served: &AtomicUsize,
    ) -> anyhow::Result<AuditRow> {
        let AuditNameLine { line, listed } = asked?;
        let row = match line {
            NameListLine::Name { line, name } => {
                let resolution = self.resolve_with_retries(&name, served).await?;
                let mut row = AuditRow::from_verdict(line, resolution.verdict())
                    .with_card_edition(resolution.card_bytes().map(|bytes| &**bytes));
                let on_chain = OnChainAgentPresence::from_verdict(resolution.verdict());
                row.registry = listed.map(|listed| RegistryChainComparison { on_chain, ..listed });
                if let Some(earlier) = self.earlier {
                    row.carry_over_from_report(earlier);
                }
                row
            }
            NameListLine::Unreadable { line, start, whole, code: ReasonCode::NameInvalid, why } => {
                let registry =
                    listed.map(|listed| RegistryChainComparison { on_chain: OnChainAgentPresence::Absent, ..listed });
                AuditRow { registry, ..AuditRow::from_unreadable_line(line, &start, whole, &why) }
            }
            NameListLine::Unreadable { line, start, whole, code, why } => {
                AuditRow::from_unreadable_registry(line, &start, whole, code, &why)
            }
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
struct NameRetryBudget {
    tries: usize,
    /// Number of attempts since another waiting name was served.
    in_vain: usize,
    /// Number of names served by the end of the last attempt.
    served: usize,
}

impl NameRetryBudget {
    const fn new(served: usize) -> Self {
        Self { tries: 0, in_vain: 0, served }
    }

    const fn has_retried(&self) -> bool {
        self.tries > 0
    }

    /// Whether to judge the name again. `served` is the number of names served so far.
    const fn try_consume_retry(&mut self, served: usize) -> bool {
        self.tries += 1;
        self.in_vain = if served > self.served { 0 } else { self.in_vain + 1 };
        self.served = served;
        self.in_vain < MOST_TRIES && self.tries < MOST_TRIES_IN_ALL
    }
}

/// Whether an unanswered request may succeed later.
fn has_retryable_reason(resolution: &Resolution) -> bool {
    resolution.verdict().reasons.iter().any(|reason| reason.code.entry().retryable)
}

/// Whether it is undecided because gateways lack content. If another source has the content, there is nothing to wait
/// for.
fn is_content_fetch_undecided(resolution: &Resolution) -> bool {
    undecided_steps(resolution).any(|step| {
        matches!(
            step,
            ResolutionStep::FetchHttps
                | ResolutionStep::FetchIpfs
                | ResolutionStep::Integrity
                | ResolutionStep::Schemas
        )
    })
}

/// The steps that are undecided because of a request that may succeed later.
fn undecided_steps(resolution: &Resolution) -> impl Iterator<Item = ResolutionStep> {
    let reasons = resolution.verdict().reasons.iter().filter(|reason| reason.effect == ReasonEffect::Unknown);
    reasons.map(|reason| reason.code.entry()).filter(|entry| entry.retryable).map(|entry| entry.step)
}

fn format_audit_counts(counts: &AuditCounts) -> String {
    let AuditCounts { trusted, untrusted, indeterminate, .. } = counts;
    format!("{trusted} trusted, {untrusted} untrusted, {indeterminate} indeterminate")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_waits_as_long_as_others_are_served() {
        let mut patience = NameRetryBudget::new(7);
        assert!(!patience.has_retried());
        assert!((8..18).all(|served| patience.try_consume_retry(served)), "in each rest another name was served");
        assert!(patience.has_retried());
        let in_vain = (0..).take_while(|_| patience.try_consume_retry(17)).count();
        assert_eq!(in_vain, MOST_TRIES - 1, "the fruitful try before them does not count: the fourth in vain ends it");
        let mut patience = NameRetryBudget::new(7);
        assert_eq!((0..).take_while(|_| patience.try_consume_retry(7)).count(), MOST_TRIES - 1);
        let mut patience = NameRetryBudget::new(7);
        assert_eq!((8..).take_while(|served| patience.try_consume_retry(*served)).count(), MOST_TRIES_IN_ALL - 1);
    }

    #[test]
    fn progress_counts_the_names_of_each_state() {
        let mut counted = AuditCounts::default();
        assert_eq!(format_audit_counts(&counted), "0 trusted, 0 untrusted, 0 indeterminate");
        (counted.trusted, counted.untrusted, counted.indeterminate) = (30, 2, 1);
        assert_eq!(format_audit_counts(&counted), "30 trusted, 2 untrusted, 1 indeterminate");
    }
}
