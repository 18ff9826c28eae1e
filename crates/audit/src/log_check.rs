//! Compares a governance log with the observations of audits. Pure. Every change must be logged, and every logged
//! change must have happened.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::difference::{AuditChange, AuditChangeKind, NetworkMismatchError};
use super::duty::only_asker_can_fix;
use super::governance_log::{
    DRAFT, GovernanceAction, GovernanceEventKind, GovernanceLog, GovernanceLogRow, MalformedLogRow,
};
use super::log_words::{self, shorten_value};
use super::past::{ComparableName, ComparableReport};
use super::{AuditDifference, DecidedTrustState, LogRowDraft};
use clresolve_core::reason::ReasonCode;
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;

/// The schema identifier of the JSON form.
pub const SCHEMA: &str = "clresolve.audit-resolution/1";

/// The differences between a log and the reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GovernanceLogCheck {
    schema: &'static str,
    /// Number of rows in the log.
    pub rows: usize,
    /// Caveats, such as that the reports were made by different rules.
    pub warnings: Vec<String>,
    /// Whether the reports contain all names of their lists.
    pub complete: bool,
    /// Names that the latest report could not decide.
    pub undecided: Vec<String>,
    /// Malformed rows, which record nothing.
    pub malformed: Vec<MalformedLogRow>,
    /// Unlogged changes.
    pub missing: Vec<MissingLogRow>,
    /// Rows that are still drafts and record nothing.
    pub undecided_rows: Vec<NamedLogRow>,
    /// Rows whose event the reports should show but do not.
    pub unobserved: Vec<NamedLogRow>,
    /// Rows that the reports can neither confirm nor refute.
    pub unknown: Vec<NamedLogRow>,
    /// Rows dated after the latest report, about names that lack a row.
    #[serde(skip)]
    pub later: Vec<NamedLogRow>,
    /// Rows to add, which a person decides on.
    pub drafts: Vec<LogRowDraft>,
}

/// A change without a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingLogRow {
    /// The name.
    pub name: String,
    /// The kind of row that is missing.
    pub kind: GovernanceEventKind,
    /// The action, in the words of the published form.
    pub action: GovernanceAction,
    /// Descriptions of the changes.
    pub what: Vec<String>,
}

/// A row of the log, and one of the names in its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedLogRow {
    /// Its line in the log.
    pub line: usize,
    /// Its day.
    pub date: String,
    /// The name.
    pub name: String,
    /// What it records.
    pub kind: GovernanceEventKind,
}

/// Why a log cannot be compared with the reports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GovernanceLogCheckError {
    /// The reports are about different networks.
    #[error(transparent)]
    OtherWorld(#[from] NetworkMismatchError),
    /// The earlier report is newer than the later one.
    #[error("the report of --since is the later one: swap the two")]
    Swapped,
}

impl GovernanceLogCheck {
    /// Compares a log with the latest report and, if given, an earlier one. Each change since the earlier report needs
    /// a row of the days between the reports, and each such row needs a change.
    ///
    /// # Errors
    /// [`GovernanceLogCheckError`]
    pub fn compare_with_reports(
        log: &GovernanceLog,
        earlier: Option<&ComparableReport>,
        latest: &ComparableReport,
    ) -> Result<Self, GovernanceLogCheckError> {
        let difference = earlier.map(|earlier| AuditDifference::between(earlier, latest)).transpose()?;
        let span = ReportDaySpan::from_reports(earlier, latest)?;
        let changes = difference.as_ref().map_or(&[][..], |difference| &difference.changes);
        let rows = relevant_rows_by_name(log, &span);
        let judge = GovernanceLogComparer {
            undone: corrected_names(&rows, &span),
            rows,
            span,
            changes: changes.chunk_by(|one, next| one.name == next.name).map(|all| (&*all[0].name, all)).collect(),
            earlier,
            latest,
        };
        let named = |row: &GovernanceLogRow, name: &str| NamedLogRow {
            line: row.line,
            date: row.date.to_string(),
            name: name.to_owned(),
            kind: row.kind,
        };
        let mut check = Self {
            schema: SCHEMA,
            rows: log.rows.len(),
            warnings: difference.as_ref().map_or_else(Vec::new, AuditDifference::warnings),
            complete: difference.as_ref().map_or(latest.complete, AuditDifference::is_complete),
            undecided: Vec::new(),
            malformed: log.malformed.clone(),
            missing: judge.missing_rows(),
            undecided_rows: Vec::new(),
            unobserved: Vec::new(),
            unknown: Vec::new(),
            later: Vec::new(),
            drafts: Vec::new(),
        };
        let undecided = latest.names.iter().filter(|(_, now)| now.state == TrustState::Indeterminate);
        check.undecided = undecided.map(|(name, _)| name.clone()).collect();
        let missing: BTreeSet<&str> = check.missing.iter().map(|missing| missing.name.as_str()).collect();
        for row in log.event_rows() {
            for name in &row.names {
                if row.is_draft() {
                    check.undecided_rows.push(named(row, name));
                } else if !judge.span.is_row_not_after_end(row) && missing.contains(name.as_str()) {
                    check.later.push(named(row, name));
                } else if judge.span.is_within_days(row) && earlier.is_some() {
                    match judge.is_row_observed(row, name) {
                        Some(true) => {}
                        Some(false) => check.unobserved.push(named(row, name)),
                        None => check.unknown.push(named(row, name)),
                    }
                }
            }
        }
        // Without a block, drafts have no date.
        let today = judge.span.last.map(|day| day.to_string());
        check.drafts =
            today.iter().flat_map(|today| check.missing.iter().map(|missing| missing.draft(today))).collect();
        Ok(check)
    }

    /// Whether no row is malformed or missing, and none records an event that did not happen.
    pub const fn is_consistent(&self) -> bool {
        self.malformed.is_empty() && self.missing.is_empty() && self.unobserved.is_empty()
    }

    /// Whether the reports decide every name and every row.
    pub const fn is_complete(&self) -> bool {
        self.complete && self.undecided.is_empty() && self.unknown.is_empty()
    }
}

/// The span of days that the reports cover.
struct ReportDaySpan {
    /// The day of the earlier report. Its rows belong to the previous audit.
    since: Option<Date>,
    /// The day of the latest report. Later rows belong to the next audit.
    last: Option<Date>,
}

impl ReportDaySpan {
    fn from_reports(
        earlier: Option<&ComparableReport>,
        latest: &ComparableReport,
    ) -> Result<Self, GovernanceLogCheckError> {
        let last = |report: &ComparableReport| report.checked.map(|(_, last)| last);
        let (before, now) = (earlier.and_then(last), last(latest));
        if before.zip(now).is_some_and(|(before, now)| before > now) {
            return Err(GovernanceLogCheckError::Swapped);
        }
        Ok(Self { since: before.map(utc_date), last: now.map(utc_date) })
    }

    fn is_row_not_after_end(&self, row: &GovernanceLogRow) -> bool {
        self.last.is_none_or(|last| row.date <= last)
    }

    /// Whether a row belongs to these days. Two audits of one day share its rows.
    fn is_within_days(&self, row: &GovernanceLogRow) -> bool {
        self.is_row_not_after_end(row)
            && self.since.is_none_or(|since| row.date > since || (row.date == since && self.last == self.since))
    }
}

/// The rows that count, by name and ordered by day.
fn relevant_rows_by_name<'l>(
    log: &'l GovernanceLog,
    span: &ReportDaySpan,
) -> BTreeMap<&'l str, Vec<&'l GovernanceLogRow>> {
    let mut rows = log.rows_by_name();
    for rows in rows.values_mut() {
        rows.retain(|row| span.is_row_not_after_end(row) && !row.is_draft());
        rows.sort_by_key(|row| row.date);
    }
    rows
}

/// The names with both an incident and a correction in these days.
fn corrected_names<'l>(rows: &BTreeMap<&'l str, Vec<&'l GovernanceLogRow>>, span: &ReportDaySpan) -> BTreeSet<&'l str> {
    let has = |rows: &[&GovernanceLogRow], kind| rows.iter().any(|row| row.kind == kind && span.is_within_days(row));
    let is_undone = |rows: &[&GovernanceLogRow]| {
        has(rows, GovernanceEventKind::Incident) && has(rows, GovernanceEventKind::Correction)
    };
    rows.iter().filter(|(_, rows)| is_undone(rows)).map(|(name, _)| *name).collect()
}

/// The data with which names are compared.
struct GovernanceLogComparer<'a> {
    rows: BTreeMap<&'a str, Vec<&'a GovernanceLogRow>>,
    /// Names whose incident was corrected within these days.
    undone: BTreeSet<&'a str>,
    span: ReportDaySpan,
    changes: BTreeMap<&'a str, &'a [AuditChange]>,
    earlier: Option<&'a ComparableReport>,
    latest: &'a ComparableReport,
}

impl GovernanceLogComparer<'_> {
    fn rows_about(&self, name: &str) -> &[&GovernanceLogRow] {
        self.rows.get(name).map_or(&[], Vec::as_slice)
    }

    fn changes_of(&self, name: &str) -> &[AuditChange] {
        self.changes.get(name).copied().unwrap_or_default()
    }

    /// The name's entry in the earlier report.
    fn earlier_name(&self, name: &str) -> Option<&ComparableName> {
        self.earlier?.names.get(name)
    }

    /// The missing rows for every name of the latest report, and for names removed since.
    fn missing_rows(&self) -> Vec<MissingLogRow> {
        let removed = |(name, changes): (&&str, &&[AuditChange])| {
            let change = changes.iter().find(|change| change.kind == AuditChangeKind::Removed)?;
            let was = self.earlier_name(name).filter(|was| !only_list_is_wrong(was))?;
            let is_missing = !self.has_row_for_change(name, change, is_untrusted_name(was));
            is_missing.then(|| {
                MissingLogRow::new(
                    name,
                    GovernanceEventKind::Change,
                    GovernanceAction::Removed,
                    vec![change_text(change)],
                )
            })
        };
        let mut missing: Vec<_> =
            self.latest.names.iter().flat_map(|(name, now)| self.missing_rows_of(name, now)).collect();
        missing.extend(self.changes.iter().filter_map(removed));
        missing
    }

    fn missing_rows_of(&self, name: &str, now: &ComparableName) -> Vec<MissingLogRow> {
        if self.is_list_mistake(name, now) {
            return Vec::new();
        }
        let changes = self
            .changes_to_log(name)
            .filter(|change| !self.has_row_for_change(name, change, is_untrusted_name(now)))
            .map(change_text);
        let codes = now.failures().into_iter().filter(|code| !self.is_code_logged(name, *code));
        let codes = codes.map(|code| code.slug().to_owned()).collect();
        let happened = match now.state {
            TrustState::Untrusted => Some((GovernanceEventKind::Incident, codes)),
            TrustState::Trusted if self.was_broken(name) && !self.is_correction_logged(name, now) => {
                Some((GovernanceEventKind::Correction, vec!["it is trusted again".to_owned()]))
            }
            _ => None,
        };
        let missing = happened.into_iter().chain([(GovernanceEventKind::Change, changes.collect::<Vec<_>>())]);
        let missing = missing.filter(|(_, what)| !what.is_empty());
        missing
            .map(|(kind, what)| MissingLogRow::new(name, kind, self.governance_action(name, kind, now), what))
            .collect()
    }

    /// The action on a name of the latest report.
    fn governance_action(&self, name: &str, kind: GovernanceEventKind, now: &ComparableName) -> GovernanceAction {
        let is_added = self.changes_of(name).iter().any(|change| change.kind == AuditChangeKind::Added);
        match kind {
            GovernanceEventKind::Change if is_added => GovernanceAction::Added,
            GovernanceEventKind::Correction => GovernanceAction::Updated,
            _ => {
                let before = self.earlier_name(name).map(ComparableName::codes).unwrap_or_default();
                GovernanceAction::from_codes(now.codes().into_iter().filter(|code| !before.contains(code)))
            }
        }
    }

    /// Whether only the list is wrong: no earlier audit found the name trusted, and its publisher has nothing to fix.
    fn is_list_mistake(&self, name: &str, now: &ComparableName) -> bool {
        let was_trusted = self
            .earlier_name(name)
            .is_some_and(|before| before.last_decided_state() == Some(DecidedTrustState::Trusted));
        !was_trusted && only_list_is_wrong(now)
    }

    /// The changes that must be logged.
    fn changes_to_log(&self, name: &str) -> impl Iterator<Item = &AuditChange> {
        self.changes_of(name).iter().filter(|change| change.kind.is_logged())
    }

    /// Whether the previous audit or the log says that the name was broken.
    fn was_broken(&self, name: &str) -> bool {
        self.earlier_name(name).is_some_and(is_untrusted_name)
            || self.last_incident_or_correction(name).is_some_and(|row| row.kind == GovernanceEventKind::Incident)
    }

    /// Whether a row of these days mentions a change. The row of an incident or correction may also mention related
    /// changes.
    fn has_row_for_change(&self, name: &str, change: &AuditChange, is_broken: bool) -> bool {
        let kinds = [
            GovernanceEventKind::Change,
            if is_broken { GovernanceEventKind::Incident } else { GovernanceEventKind::Correction },
        ];
        let mut rows =
            self.rows_about(name).iter().filter(|row| self.span.is_within_days(row) && kinds.contains(&row.kind));
        let card = self
            .changes_to_log(name)
            .find(|other| other.kind == AuditChangeKind::Bytes && change.kind == AuditChangeKind::Records);
        // A new card implies new records, so a row about the card covers both.
        rows.any(|row| [Some(change), card].into_iter().flatten().any(|change| log_words::mentions_change(row, change)))
    }

    /// Whether an incident since the last correction names a code. If the previous audit decided the name without
    /// finding the code, only rows of these days count. An undecided name has no codes, which does not make a code
    /// new.
    fn is_code_logged(&self, name: &str, code: ReasonCode) -> bool {
        let rows = self.rows_about(name);
        let corrected = rows.iter().rposition(|row| row.kind == GovernanceEventKind::Correction);
        let since = &rows[corrected.map_or(0, |at| at + 1)..];
        let is_new =
            |before: &ComparableName| before.state != TrustState::Indeterminate && !before.failures().contains(&code);
        let is_of_these_days = self.earlier_name(name).is_some_and(is_new);
        let incidents = since.iter().filter(|row| row.kind == GovernanceEventKind::Incident);
        let mut incidents = incidents.filter(|row| self.span.is_within_days(row) || !is_of_these_days);
        incidents.any(|row| log_words::mentions_code(row, code))
    }

    /// Whether the last incident or correction of the name is a matching correction.
    fn is_correction_logged(&self, name: &str, now: &ComparableName) -> bool {
        let is_of_these_days =
            self.earlier_name(name).is_some_and(|before| before.last_decided_state() != now.last_decided_state());
        self.last_incident_or_correction(name).is_some_and(|row| {
            row.kind == GovernanceEventKind::Correction
                && (self.span.is_within_days(row) || !is_of_these_days)
                && self.mentions_correction(row, name)
        })
    }

    /// Whether a row states what was corrected: trust, a finding's code, or a changed value.
    fn mentions_correction(&self, row: &GovernanceLogRow, name: &str) -> bool {
        log_words::mentions_trust(row)
            || ReasonCode::ALL.iter().any(|code| log_words::mentions_code(row, *code))
            || self.changes_to_log(name).any(|change| log_words::mentions_change(row, change))
    }

    /// The last incident or correction of the name.
    fn last_incident_or_correction(&self, name: &str) -> Option<&GovernanceLogRow> {
        let rows = self.rows_about(name).iter().copied();
        rows.rev().find(|row| matches!(row.kind, GovernanceEventKind::Incident | GovernanceEventKind::Correction))
    }

    /// Whether the reports show what a row records; `None` if they cannot.
    fn is_row_observed(&self, row: &GovernanceLogRow, name: &str) -> Option<bool> {
        let tells_of_change = self.changes_to_log(name).any(|change| log_words::mentions_change(row, change));
        let (Some(before), Some(now)) = (self.earlier_name(name), self.latest.names.get(name)) else {
            return (row.kind == GovernanceEventKind::Change && tells_of_change).then_some(true);
        };
        if now.state == TrustState::Indeterminate {
            return None;
        }
        let is_seen = match row.kind {
            GovernanceEventKind::Incident => {
                let mut codes =
                    [before, now].into_iter().filter(|name| is_untrusted_name(name)).flat_map(ComparableName::failures);
                codes.any(|code| log_words::mentions_code(row, code)) || (tells_of_change && is_untrusted_name(now))
            }
            GovernanceEventKind::Correction => {
                is_untrusted_name(before) && !is_untrusted_name(now) && self.mentions_correction(row, name)
            }
            GovernanceEventKind::Change | GovernanceEventKind::Decision => {
                let is_read =
                    |name: &ComparableName| name.known.on_chain.is_some() && name.known.records_digest().is_some();
                if !(is_read(before) && is_read(now)) {
                    return None;
                }
                tells_of_change
            }
        };
        // A change that was undone between the reports appears in neither.
        let is_hidden = !is_untrusted_name(before) && !is_untrusted_name(now) && self.undone.contains(name);
        // The earlier report carries over the state of an older audit, but not its findings.
        let is_carried = row.kind == GovernanceEventKind::Incident
            && before.state == TrustState::Indeterminate
            && is_untrusted_name(before);
        (is_seen || !(is_hidden || is_carried)).then_some(is_seen)
    }
}

fn is_untrusted_name(name: &ComparableName) -> bool {
    name.last_decided_state() == Some(DecidedTrustState::Untrusted)
}

/// Whether a broken name's publisher has nothing to fix.
fn only_list_is_wrong(name: &ComparableName) -> bool {
    name.state == TrustState::Untrusted && only_asker_can_fix(&name.failures())
}

fn change_text(change: &AuditChange) -> String {
    let value = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), shorten_value);
    format!("{}: {} → {}", change.kind, value(&change.before), value(&change.after))
}

impl MissingLogRow {
    fn new(name: &str, kind: GovernanceEventKind, action: GovernanceAction, what: Vec<String>) -> Self {
        Self { name: name.to_owned(), kind, action, what }
    }

    /// The row to add.
    fn draft(&self, today: &str) -> LogRowDraft {
        let decision = match self.kind {
            GovernanceEventKind::Correction => "bound to its card and entry again",
            GovernanceEventKind::Incident => {
                "not to be called or paid until its publisher has corrected what it published"
            }
            GovernanceEventKind::Change | GovernanceEventKind::Decision => {
                "accepted, or not to be paid until its publisher has announced it"
            }
        };
        let what: Vec<String> =
            self.what.iter().map(|what| UntrustedText::new(what).to_markdown_code_span().to_string()).collect();
        LogRowDraft {
            date: today.to_owned(),
            subject: self.name.clone(),
            kind: self.kind,
            action: self.action,
            decision: format!("{DRAFT} {decision}"),
            reason: what.join(", "),
        }
    }
}

/// The draft of a row about one change.
#[cfg(test)]
pub(super) fn draft_of(change: &AuditChange) -> LogRowDraft {
    let missing = MissingLogRow::new(
        &change.name,
        GovernanceEventKind::Change,
        GovernanceAction::Updated,
        vec![change_text(change)],
    );
    missing.draft("2026-11-20")
}

fn utc_date(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AuditConditions;
    use clresolve_verdict::verdict::{PinnedDocument, ResolutionDepth};

    fn past(second: i64) -> ComparableReport {
        let at = Timestamp::from_second(second).expect("a time");
        let scope = AuditConditions {
            world: "lab".to_owned(),
            chain: "eip155:31337".to_owned(),
            block: "finalized".to_owned(),
            profile: PinnedDocument { id: "agent-cards/1.0.0".to_owned(), digest: "sha256:00".to_owned() },
            manifests: Vec::new(),
            depth: ResolutionDepth::Identity,
            demands: None,
            registry: None,
            schema_layers: false,
        };
        let (names, checked) = (BTreeMap::new(), Some((at, at)));
        ComparableReport {
            scope,
            complete: true,
            names,
            generated_at: None,
            checked,
            digest: None,
            rows: 0,
            states: [0; 3],
            schema_layers: None,
        }
    }

    #[test]
    fn the_report_of_since_is_the_earlier_one() {
        let head = "# Log\n\n| Date | subject | kind | decision | reason |\n|---|---|---|---|---|\n";
        let log = GovernanceLog::parse(head);
        let held = |earlier, latest| {
            GovernanceLogCheck::compare_with_reports(&log, Some(&past(earlier)), &past(latest))
                .map(|check| check.is_consistent())
        };
        assert_eq!(held(1, 2), Ok(true));
        assert_eq!(held(2, 1), Err(GovernanceLogCheckError::Swapped));
    }
}
