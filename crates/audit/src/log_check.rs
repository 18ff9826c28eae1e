//! Compares a governance log with the observations of audits. Pure. Every change must be logged, and every logged
//! change must have happened.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::difference::{Change, Kind, OtherWorld};
use super::duty::is_askers_slip;
use super::governance_log::{Action, DRAFT, GovernanceLog, LogKind, LogRow, MalformedRow};
use super::log_words::{self, shortened};
use super::past::{Past, PastName};
use super::{DecidedState, Difference, Draft};
use clresolve_core::reason::Code;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;

/// The schema identifier of the JSON form.
pub const SCHEMA: &str = "clresolve.audit-resolution/1";

/// The differences between a log and the reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogCheck {
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
    pub malformed: Vec<MalformedRow>,
    /// Unlogged changes.
    pub missing: Vec<Missing>,
    /// Rows that are still drafts and record nothing.
    pub undecided_rows: Vec<NamedRow>,
    /// Rows whose event the reports should show but do not.
    pub unobserved: Vec<NamedRow>,
    /// Rows that the reports can neither confirm nor refute.
    pub unknown: Vec<NamedRow>,
    /// Rows dated after the latest report, about names that lack a row.
    #[serde(skip)]
    pub later: Vec<NamedRow>,
    /// Rows to add, which a person decides on.
    pub drafts: Vec<Draft>,
}

/// A change without a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The name.
    pub name: String,
    /// The kind of row that is missing.
    pub kind: LogKind,
    /// The action, in the words of the published form.
    pub action: Action,
    /// Descriptions of the changes.
    pub what: Vec<String>,
}

/// A row of the log, and one of the names in its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedRow {
    /// Its line in the log.
    pub line: usize,
    /// Its day.
    pub date: String,
    /// The name.
    pub name: String,
    /// What it records.
    pub kind: LogKind,
}

/// Why a log cannot be compared with the reports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogCheckError {
    /// The reports are about different networks.
    #[error(transparent)]
    OtherWorld(#[from] OtherWorld),
    /// The earlier report is newer than the later one.
    #[error("the report of --since is the later one: swap the two")]
    Swapped,
}

impl LogCheck {
    /// Compares a log with the latest report and, if given, an earlier one. Each change since the earlier report needs
    /// a row of the days between the reports, and each such row needs a change.
    ///
    /// # Errors
    /// [`LogCheckError`]
    pub fn of(log: &GovernanceLog, earlier: Option<&Past>, latest: &Past) -> Result<Self, LogCheckError> {
        let difference = earlier.map(|earlier| Difference::between(earlier, latest)).transpose()?;
        let span = LogSpan::of(earlier, latest)?;
        let changes = difference.as_ref().map_or(&[][..], |difference| &difference.changes);
        let rows = rows(log, &span);
        let judge = Judge {
            undone: undone(&rows, &span),
            rows,
            span,
            changes: changes.chunk_by(|one, next| one.name == next.name).map(|all| (&*all[0].name, all)).collect(),
            earlier,
            latest,
        };
        let named = |row: &LogRow, name: &str| NamedRow {
            line: row.line,
            date: row.date.to_string(),
            name: name.to_owned(),
            kind: row.kind,
        };
        let mut check = Self {
            schema: SCHEMA,
            rows: log.rows.len(),
            warnings: difference.as_ref().map_or_else(Vec::new, Difference::warnings),
            complete: difference.as_ref().map_or(latest.complete, Difference::is_complete),
            undecided: Vec::new(),
            malformed: log.malformed.clone(),
            missing: judge.all_missing(),
            undecided_rows: Vec::new(),
            unobserved: Vec::new(),
            unknown: Vec::new(),
            later: Vec::new(),
            drafts: Vec::new(),
        };
        let undecided = latest.names.iter().filter(|(_, now)| now.state == State::Indeterminate);
        check.undecided = undecided.map(|(name, _)| name.clone()).collect();
        let missing: BTreeSet<&str> = check.missing.iter().map(|missing| missing.name.as_str()).collect();
        for row in log.events() {
            for name in &row.names {
                if row.is_draft() {
                    check.undecided_rows.push(named(row, name));
                } else if !judge.span.has(row) && missing.contains(name.as_str()) {
                    check.later.push(named(row, name));
                } else if judge.span.is_new(row) && earlier.is_some() {
                    match judge.seen(row, name) {
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
    pub const fn holds(&self) -> bool {
        self.malformed.is_empty() && self.missing.is_empty() && self.unobserved.is_empty()
    }

    /// Whether the reports decide every name and every row.
    pub const fn is_complete(&self) -> bool {
        self.complete && self.undecided.is_empty() && self.unknown.is_empty()
    }
}

/// The span of days that the reports cover.
struct LogSpan {
    /// The day of the earlier report. Its rows belong to the previous audit.
    since: Option<Date>,
    /// The day of the latest report. Later rows belong to the next audit.
    last: Option<Date>,
}

impl LogSpan {
    fn of(earlier: Option<&Past>, latest: &Past) -> Result<Self, LogCheckError> {
        let last = |report: &Past| report.checked.map(|(_, last)| last);
        let (before, now) = (earlier.and_then(last), last(latest));
        if before.zip(now).is_some_and(|(before, now)| before > now) {
            return Err(LogCheckError::Swapped);
        }
        Ok(Self { since: before.map(day), last: now.map(day) })
    }

    fn has(&self, row: &LogRow) -> bool {
        self.last.is_none_or(|last| row.date <= last)
    }

    /// Whether a row belongs to these days. Two audits of one day share its rows.
    fn is_new(&self, row: &LogRow) -> bool {
        self.has(row)
            && self.since.is_none_or(|since| row.date > since || (row.date == since && self.last == self.since))
    }
}

/// The rows that count, by name and ordered by day.
fn rows<'l>(log: &'l GovernanceLog, span: &LogSpan) -> BTreeMap<&'l str, Vec<&'l LogRow>> {
    let mut rows = log.by_name();
    for rows in rows.values_mut() {
        rows.retain(|row| span.has(row) && !row.is_draft());
        rows.sort_by_key(|row| row.date);
    }
    rows
}

/// The names with both an incident and a correction in these days.
fn undone<'l>(rows: &BTreeMap<&'l str, Vec<&'l LogRow>>, span: &LogSpan) -> BTreeSet<&'l str> {
    let has = |rows: &[&LogRow], kind| rows.iter().any(|row| row.kind == kind && span.is_new(row));
    let is_undone = |rows: &[&LogRow]| has(rows, LogKind::Incident) && has(rows, LogKind::Correction);
    rows.iter().filter(|(_, rows)| is_undone(rows)).map(|(name, _)| *name).collect()
}

/// The data with which names are compared.
struct Judge<'a> {
    rows: BTreeMap<&'a str, Vec<&'a LogRow>>,
    /// Names whose incident was corrected within these days.
    undone: BTreeSet<&'a str>,
    span: LogSpan,
    changes: BTreeMap<&'a str, &'a [Change]>,
    earlier: Option<&'a Past>,
    latest: &'a Past,
}

impl Judge<'_> {
    fn rows_about(&self, name: &str) -> &[&LogRow] {
        self.rows.get(name).map_or(&[], Vec::as_slice)
    }

    fn changes_of(&self, name: &str) -> &[Change] {
        self.changes.get(name).copied().unwrap_or_default()
    }

    /// The name's entry in the earlier report.
    fn before(&self, name: &str) -> Option<&PastName> {
        self.earlier?.names.get(name)
    }

    /// The missing rows for every name of the latest report, and for names removed since.
    fn all_missing(&self) -> Vec<Missing> {
        let removed = |(name, changes): (&&str, &&[Change])| {
            let change = changes.iter().find(|change| change.kind == Kind::Removed)?;
            let was = self.before(name).filter(|was| !is_list_keepers(was))?;
            let is_missing = !self.has_row(name, change, is_broken(was));
            is_missing.then(|| Missing::of(name, LogKind::Change, Action::Removed, vec![shown(change)]))
        };
        let mut missing: Vec<_> = self.latest.names.iter().flat_map(|(name, now)| self.missing(name, now)).collect();
        missing.extend(self.changes.iter().filter_map(removed));
        missing
    }

    fn missing(&self, name: &str, now: &PastName) -> Vec<Missing> {
        if self.is_slip(name, now) {
            return Vec::new();
        }
        let changes = self.logged(name).filter(|change| !self.has_row(name, change, is_broken(now))).map(shown);
        let codes = now.failures().into_iter().filter(|code| !self.is_logged(name, *code));
        let codes = codes.map(|code| code.slug().to_owned()).collect();
        let happened = match now.state {
            State::Untrusted => Some((LogKind::Incident, codes)),
            State::Trusted if self.was_broken(name) && !self.is_corrected(name, now) => {
                Some((LogKind::Correction, vec!["it is trusted again".to_owned()]))
            }
            _ => None,
        };
        let missing = happened.into_iter().chain([(LogKind::Change, changes.collect::<Vec<_>>())]);
        let missing = missing.filter(|(_, what)| !what.is_empty());
        missing.map(|(kind, what)| Missing::of(name, kind, self.action(name, kind, now), what)).collect()
    }

    /// The action on a name of the latest report.
    fn action(&self, name: &str, kind: LogKind, now: &PastName) -> Action {
        let is_added = self.changes_of(name).iter().any(|change| change.kind == Kind::Added);
        match kind {
            LogKind::Change if is_added => Action::Added,
            LogKind::Correction => Action::Updated,
            _ => {
                let before = self.before(name).map(PastName::codes).unwrap_or_default();
                Action::of(now.codes().into_iter().filter(|code| !before.contains(code)))
            }
        }
    }

    /// Whether only the list is wrong: no earlier audit found the name trusted, and its publisher has nothing to fix.
    fn is_slip(&self, name: &str, now: &PastName) -> bool {
        let was_trusted = self.before(name).is_some_and(|before| before.decided() == Some(DecidedState::Trusted));
        !was_trusted && is_list_keepers(now)
    }

    /// The changes that must be logged.
    fn logged(&self, name: &str) -> impl Iterator<Item = &Change> {
        self.changes_of(name).iter().filter(|change| change.kind.is_logged())
    }

    /// Whether the previous audit or the log says that the name was broken.
    fn was_broken(&self, name: &str) -> bool {
        self.before(name).is_some_and(is_broken)
            || self.last_event(name).is_some_and(|row| row.kind == LogKind::Incident)
    }

    /// Whether a row of these days mentions a change. The row of an incident or correction may also mention related
    /// changes.
    fn has_row(&self, name: &str, change: &Change, is_broken: bool) -> bool {
        let kinds = [LogKind::Change, if is_broken { LogKind::Incident } else { LogKind::Correction }];
        let mut rows = self.rows_about(name).iter().filter(|row| self.span.is_new(row) && kinds.contains(&row.kind));
        let card = self.logged(name).find(|other| other.kind == Kind::Bytes && change.kind == Kind::Records);
        // A new card implies new records, so a row about the card covers both.
        rows.any(|row| [Some(change), card].into_iter().flatten().any(|change| log_words::tells_of_change(row, change)))
    }

    /// Whether an incident since the last correction names a code. If the previous audit decided the name without
    /// finding the code, only rows of these days count. An undecided name has no codes, which does not make a code
    /// new.
    fn is_logged(&self, name: &str, code: Code) -> bool {
        let rows = self.rows_about(name);
        let corrected = rows.iter().rposition(|row| row.kind == LogKind::Correction);
        let since = &rows[corrected.map_or(0, |at| at + 1)..];
        let is_new = |before: &PastName| before.state != State::Indeterminate && !before.failures().contains(&code);
        let is_of_these_days = self.before(name).is_some_and(is_new);
        let incidents = since.iter().filter(|row| row.kind == LogKind::Incident);
        let mut incidents = incidents.filter(|row| self.span.is_new(row) || !is_of_these_days);
        incidents.any(|row| log_words::names_code(row, code))
    }

    /// Whether the last incident or correction of the name is a matching correction.
    fn is_corrected(&self, name: &str, now: &PastName) -> bool {
        let is_of_these_days = self.before(name).is_some_and(|before| before.decided() != now.decided());
        self.last_event(name).is_some_and(|row| {
            row.kind == LogKind::Correction
                && (self.span.is_new(row) || !is_of_these_days)
                && self.tells_of_correction(row, name)
        })
    }

    /// Whether a row states what was corrected: trust, a finding's code, or a changed value.
    fn tells_of_correction(&self, row: &LogRow, name: &str) -> bool {
        log_words::tells_of_trust(row)
            || Code::ALL.iter().any(|code| log_words::names_code(row, *code))
            || self.logged(name).any(|change| log_words::tells_of_change(row, change))
    }

    /// The last incident or correction of the name.
    fn last_event(&self, name: &str) -> Option<&LogRow> {
        let rows = self.rows_about(name).iter().copied();
        rows.rev().find(|row| matches!(row.kind, LogKind::Incident | LogKind::Correction))
    }

    /// Whether the reports show what a row records; `None` if they cannot.
    fn seen(&self, row: &LogRow, name: &str) -> Option<bool> {
        let tells_of_change = self.logged(name).any(|change| log_words::tells_of_change(row, change));
        let (Some(before), Some(now)) = (self.before(name), self.latest.names.get(name)) else {
            return (row.kind == LogKind::Change && tells_of_change).then_some(true);
        };
        if now.state == State::Indeterminate {
            return None;
        }
        let is_seen = match row.kind {
            LogKind::Incident => {
                let mut codes = [before, now].into_iter().filter(|name| is_broken(name)).flat_map(PastName::failures);
                codes.any(|code| log_words::names_code(row, code)) || (tells_of_change && is_broken(now))
            }
            LogKind::Correction => is_broken(before) && !is_broken(now) && self.tells_of_correction(row, name),
            LogKind::Change | LogKind::Decision => {
                let is_read = |name: &PastName| name.known.on_chain.is_some() && name.known.read_records().is_some();
                if !(is_read(before) && is_read(now)) {
                    return None;
                }
                tells_of_change
            }
        };
        // A change that was undone between the reports appears in neither.
        let is_hidden = !is_broken(before) && !is_broken(now) && self.undone.contains(name);
        // The earlier report carries over the state of an older audit, but not its findings.
        let is_carried = row.kind == LogKind::Incident && before.state == State::Indeterminate && is_broken(before);
        (is_seen || !(is_hidden || is_carried)).then_some(is_seen)
    }
}

fn is_broken(name: &PastName) -> bool {
    name.decided() == Some(DecidedState::Untrusted)
}

/// Whether a broken name's publisher has nothing to fix.
fn is_list_keepers(name: &PastName) -> bool {
    name.state == State::Untrusted && is_askers_slip(&name.failures())
}

fn shown(change: &Change) -> String {
    let value = |value: &Option<String>| value.as_deref().map_or_else(|| "nothing".to_owned(), shortened);
    format!("{}: {} → {}", change.kind, value(&change.before), value(&change.after))
}

impl Missing {
    fn of(name: &str, kind: LogKind, action: Action, what: Vec<String>) -> Self {
        Self { name: name.to_owned(), kind, action, what }
    }

    /// The row to add.
    fn draft(&self, today: &str) -> Draft {
        let decision = match self.kind {
            LogKind::Correction => "bound to its card and entry again",
            LogKind::Incident => "not to be called or paid until its publisher has corrected what it published",
            LogKind::Change | LogKind::Decision => "accepted, or not to be paid until its publisher has announced it",
        };
        let what: Vec<String> = self.what.iter().map(|what| Foreign::new(what).markdown().to_string()).collect();
        Draft {
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
pub(super) fn draft_of(change: &Change) -> Draft {
    let missing = Missing::of(&change.name, LogKind::Change, Action::Updated, vec![shown(change)]);
    missing.draft("2026-11-20")
}

fn day(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;
    use clresolve_verdict::verdict::{Depth, Pinned};

    fn past(second: i64) -> Past {
        let at = Timestamp::from_second(second).expect("a time");
        let scope = Scope {
            world: "lab".to_owned(),
            chain: "eip155:31337".to_owned(),
            block: "finalized".to_owned(),
            profile: Pinned { id: "agent-cards/1.0.0".to_owned(), digest: "sha256:00".to_owned() },
            manifests: Vec::new(),
            depth: Depth::Identity,
            demands: None,
            registry: None,
            schema_layers: false,
        };
        let (names, checked) = (BTreeMap::new(), Some((at, at)));
        Past {
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
        let held = |earlier, latest| LogCheck::of(&log, Some(&past(earlier)), &past(latest)).map(|check| check.holds());
        assert_eq!(held(1, 2), Ok(true));
        assert_eq!(held(2, 1), Err(LogCheckError::Swapped));
    }
}
