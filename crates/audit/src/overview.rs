//! The data of the report's charts, gathered in one pass over the rows. Its size does not grow with their number.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::cause::DefectCategory;
use super::duty::{ACTORS, AWAITED, is_actor_needed};
use super::on_chain::OnChainFactKind;
use super::owners::OwnerSummaries;
use super::{AuditReport, AuditRow, AuditRowSource, CardSourceComparison, SourceAgreement};
use clresolve_core::reason::{FixerRole, Reason, ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_core::state::TrustState;
use clresolve_verdict::verdict::StepStatus;

/// Number of months in the timeline of expiries: names are registered for at least a year.
pub(super) const MONTHS: usize = 12;

/// Number of days before its expiry from which a name is listed, as long as the grace period of `.eth` after it.
pub(super) const NOTICE_DAYS: i64 = 90;

/// Maximum number of names listed by expiry. The timeline counts all.
const MAX_EXPIRIES_LISTED: usize = 20;

/// Maximum number of names in the page's table, which phones still scroll, filter and sort without delay.
pub(super) const MAX_NAMES_SHOWN: usize = 2_000;

/// The states, those that need attention first.
pub(super) const ORDER: [TrustState; 3] = [TrustState::Untrusted, TrustState::Indeterminate, TrustState::Trusted];

/// The counted checks: both depths, then the pairs of sources.
pub(super) const CHECKS: [&str; 2 + CardSourceComparison::PAIRS.len()] = [
    "identity checks",
    "schema checks",
    CardSourceComparison::PAIRS[0],
    CardSourceComparison::PAIRS[1],
    CardSourceComparison::PAIRS[2],
    CardSourceComparison::PAIRS[3],
    CardSourceComparison::PAIRS[4],
    CardSourceComparison::PAIRS[5],
];

#[derive(Debug, Default)]
pub(super) struct AuditOverview {
    /// Number of names that wait for each of [`AWAITED`].
    pub(super) due: [u64; AWAITED.len()],
    /// Number of names on which several of them must act.
    pub(super) shared: u64,
    /// The causes, with their numbers of names.
    pub(super) causes: [BTreeMap<DefectCategory, u64>; AWAITED.len()],
    /// The owners of the names on which publishers must act.
    pub(super) owners: OwnerSummaries,
    /// The first lines of the list in each state of [`ORDER`].
    first_lines: [Vec<u64>; ORDER.len()],
    /// Names that would be trusted under other profiles, by profile.
    pub(super) near_misses: BTreeMap<String, ProfileNearMissCounts>,
    /// For each of [`CHECKS`]: the numbers of names that pass, fail, and are undecided.
    pub(super) checks: [[u64; 3]; CHECKS.len()],
    /// When names expire; `None` if the report has no date.
    pub(super) expiries: Option<ExpiryTimeline>,
}

/// Names that would be trusted under another profile.
#[derive(Debug, Default)]
pub(super) struct ProfileNearMissCounts {
    /// The number of names.
    pub(super) names: u64,
    /// The findings that prevent trust under the report's profile, with their numbers of names.
    pub(super) codes: BTreeMap<(ReasonEffect, ReasonCode), u64>,
}

/// Expiries relative to the date of the report.
#[derive(Debug)]
pub(super) struct ExpiryTimeline {
    /// The date of the report.
    pub(super) from: Timestamp,
    /// Names that have expired.
    pub(super) expired: u64,
    /// Names that expire in the report's month and in each month after it.
    pub(super) months: [u64; MONTHS],
    /// Names that expire later.
    pub(super) later: u64,
    /// The soonest of the expired and soon expiring names: expiry, line, name, and a note if the expiry was copied
    /// from the previous report.
    pub(super) soonest: BTreeSet<(Timestamp, u64, String, &'static str)>,
    /// Number of such names beyond the limit.
    pub(super) over: u64,
}

impl AuditOverview {
    pub(super) fn from_rows(report: &AuditReport, rows: &dyn AuditRowSource) -> io::Result<Self> {
        let mut overview = Self {
            expiries: report.counts.checked.map(|(from, _)| ExpiryTimeline::starting_at(from)),
            ..Self::default()
        };
        rows.for_each_row(&mut |row| {
            overview.add(row);
            Ok(())
        })?;
        Ok(overview)
    }

    /// The lines of the list in the page's table.
    pub(super) fn shown_list_lines(&self) -> BTreeSet<u64> {
        self.first_lines.iter().flatten().copied().take(MAX_NAMES_SHOWN).collect()
    }

    /// The causes for an actor, the most frequent first.
    pub(super) fn causes_of(&self, actor: FixerRole) -> Vec<(DefectCategory, u64)> {
        let of_actor = AWAITED.iter().zip(&self.causes).filter(|(of, _)| **of == actor);
        let mut causes: Vec<_> =
            of_actor.flat_map(|(_, causes)| causes.iter().map(|(cause, names)| (*cause, *names))).collect();
        causes.sort_by_key(|(_, names)| std::cmp::Reverse(*names));
        causes
    }

    /// The actor who must act on the most names, and their number; `None` if nobody must act.
    pub(super) fn busiest_actor(&self) -> Option<(FixerRole, u64)> {
        let most = ACTORS.into_iter().zip(self.due).rev().max_by_key(|(_, due)| *due);
        most.filter(|(_, due)| *due > 0)
    }

    /// Number of names that need time, alone or among other things.
    pub(super) fn waiting_names(&self) -> u64 {
        AWAITED.into_iter().zip(self.due).filter(|(who, _)| *who == FixerRole::Nobody).map(|(_, names)| names).sum()
    }

    fn add(&mut self, row: &AuditRow) {
        for profile in &row.near_misses {
            self.near_misses.entry(profile.clone()).or_default().add(row);
        }
        for ((count, causes), actor) in self.due.iter_mut().zip(&mut self.causes).zip(AWAITED) {
            if let Some(cause) = DefectCategory::for_actor(actor, row) {
                *count += 1;
                *causes.entry(cause).or_default() += 1;
            }
        }
        self.shared += u64::from(ACTORS.into_iter().filter(|actor| is_actor_needed(*actor, row)).count() > 1);
        if is_actor_needed(FixerRole::Publisher, row) {
            self.owners.add(row);
        }
        for (lines, state) in self.first_lines.iter_mut().zip(ORDER) {
            if row.state == state && lines.len() < MAX_NAMES_SHOWN {
                lines.push(row.line);
            }
        }
        let depths = [identity_check_status(row), schema_check_status(row)].map(SourceAgreement::from);
        for (counts, agreement) in self.checks.iter_mut().zip(depths.into_iter().chain(row.drift.agreements())) {
            counts[agreement as usize] += 1;
        }
        let expiry = row.known.on_chain.as_ref().and_then(|chain| chain.expiry.as_deref()?.parse().ok());
        if let (Some(expiries), Some(expiry)) = (&mut self.expiries, expiry) {
            expiries.add(expiry, row);
        }
    }
}

impl ProfileNearMissCounts {
    fn add(&mut self, row: &AuditRow) {
        self.names += 1;
        for effect in [ReasonEffect::Fail, ReasonEffect::Unknown] {
            for code in row.codes(effect) {
                *self.codes.entry((effect, code)).or_default() += 1;
            }
        }
    }
}

impl ExpiryTimeline {
    const fn starting_at(from: Timestamp) -> Self {
        Self { from, expired: 0, months: [0; MONTHS], later: 0, soonest: BTreeSet::new(), over: 0 }
    }

    pub(super) fn known_expiries(&self) -> u64 {
        self.expired + self.later + self.months.iter().sum::<u64>()
    }

    fn add(&mut self, expiry: Timestamp, row: &AuditRow) {
        if expiry <= self.from {
            self.expired += 1;
        } else if let Some(names) = self.months.get_mut(months_between(self.from, expiry)) {
            *names += 1;
        } else {
            self.later += 1;
        }
        if days_between(self.from, expiry) <= NOTICE_DAYS {
            self.soonest.insert((
                expiry,
                row.line,
                row.name().to_owned(),
                row.copied_fact_note(OnChainFactKind::Expiry),
            ));
        }
        if self.soonest.len() > MAX_EXPIRIES_LISTED {
            self.soonest.pop_last();
            self.over += 1;
        }
    }
}

/// Whole days from one time to another; negative if the second is earlier.
pub(super) fn days_between(from: Timestamp, to: Timestamp) -> i64 {
    const DAY: i64 = 24 * 60 * 60;
    to.as_second().saturating_sub(from.as_second()).div_euclid(DAY)
}

/// Number of months between the month of `from` and that of a later time.
fn months_between(from: Timestamp, to: Timestamp) -> usize {
    let month = |at: Timestamp| {
        let date = at.to_zoned(TimeZone::UTC).date();
        i32::from(date.year()) * 12 + i32::from(date.month())
    };
    usize::try_from(month(to) - month(from)).unwrap_or(0)
}

/// The result of the checks of depth `identity` for a name.
pub(super) fn identity_check_status(row: &AuditRow) -> StepStatus {
    let found = depth_check_status(row, |reason| reason.step != ResolutionStep::Schemas);
    // An omitted reason could be from a check of this depth.
    if found == StepStatus::Pass && row.more_reasons > 0 { StepStatus::Unknown } else { found }
}

/// The result of the checks that depth `schemas` adds; skipped at depth `identity`, and without a card.
pub(super) fn schema_check_status(row: &AuditRow) -> StepStatus {
    match (depth_check_status(row, |reason| reason.step == ResolutionStep::Schemas), row.drift.schemas_manifest) {
        (StepStatus::Pass, SourceAgreement::Open) => StepStatus::Skip,
        (StepStatus::Pass, SourceAgreement::Differ) => StepStatus::Fail,
        (found, _) => found,
    }
}

fn depth_check_status(row: &AuditRow, of_depth: impl Fn(&Reason) -> bool) -> StepStatus {
    let has = |effect| row.reasons.iter().any(|reason| reason.effect == effect && of_depth(reason));
    if has(ReasonEffect::Fail) {
        return StepStatus::Fail;
    }
    if has(ReasonEffect::Unknown) { StepStatus::Unknown } else { StepStatus::Pass }
}
