//! A governance log held against what audits saw. Pure: what happened must stand in the log, and what stands there must
//! have happened.

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
use super::{Decided, Difference, Draft};
use clresolve_core::reason::Code;
use clresolve_core::state::State;
use clresolve_core::text::Foreign;

/// The schema identifier of the JSON form.
pub const SCHEMA: &str = "clresolve.audit-resolution/1";

/// What the log lacks, and what it says that was not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogCheck {
    schema: &'static str,
    /// Rows of the log.
    pub rows: usize,
    /// What a reader must know first, such as that the reports were made by different rules.
    pub warnings: Vec<String>,
    /// Whether the reports have all names of their lists.
    pub complete: bool,
    /// Names that the latest report could not decide.
    pub undecided: Vec<String>,
    /// Rows that could not be read, and record nothing.
    pub malformed: Vec<MalformedRow>,
    /// What happened, and has no row.
    pub missing: Vec<Missing>,
    /// Rows that are drafts still, and record nothing.
    pub undecided_rows: Vec<NamedRow>,
    /// Rows of what the reports would show, and do not.
    pub unobserved: Vec<NamedRow>,
    /// Rows that the reports can neither confirm nor deny.
    pub unknown: Vec<NamedRow>,
    /// Rows that are dated after the latest report, about names that lack a row.
    #[serde(skip)]
    pub later: Vec<NamedRow>,
    /// The rows to add, for a person to decide.
    pub drafts: Vec<Draft>,
}

/// Something that happened and has no row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The name.
    pub name: String,
    /// The kind of the row.
    pub kind: LogKind,
    /// What was done, in the words of the published form.
    pub action: Action,
    /// What happened.
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

/// Why a log is not held against reports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogCheckError {
    /// They are about different worlds.
    #[error(transparent)]
    OtherWorld(#[from] OtherWorld),
    /// The earlier one is the later one.
    #[error("the report of --since is the later one: swap the two")]
    Swapped,
}

impl LogCheck {
    /// Holds a log against the latest report and, where there is one, an earlier one: what changed since then has a row of
    /// these days, and each row of these days its change.
    ///
    /// # Errors
    /// [`LogCheckError`]
    pub fn of(log: &GovernanceLog, earlier: Option<&Past>, latest: &Past) -> Result<Self, LogCheckError> {
        let difference = earlier.map(|earlier| Difference::between(earlier, latest)).transpose()?;
        let days = Days::of(earlier, latest)?;
        let changes = difference.as_ref().map_or(&[][..], |difference| &difference.changes);
        let rows = rows(log, &days);
        let judge = Judge {
            undone: undone(&rows, &days),
            rows,
            days,
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
                } else if !judge.days.has(row) && missing.contains(name.as_str()) {
                    check.later.push(named(row, name));
                } else if judge.days.is_new(row) && earlier.is_some() {
                    match judge.seen(row, name) {
                        Some(true) => {}
                        Some(false) => check.unobserved.push(named(row, name)),
                        None => check.unknown.push(named(row, name)),
                    }
                }
            }
        }
        // Where no block was read, nothing dates a row.
        let today = judge.days.last.map(|day| day.to_string());
        check.drafts =
            today.iter().flat_map(|today| check.missing.iter().map(|missing| missing.draft(today))).collect();
        Ok(check)
    }

    /// Whether no row is malformed or missing, and none records what did not happen.
    pub const fn holds(&self) -> bool {
        self.malformed.is_empty() && self.missing.is_empty() && self.unobserved.is_empty()
    }

    /// Whether the reports decide every name and every row.
    pub const fn is_complete(&self) -> bool {
        self.complete && self.undecided.is_empty() && self.unknown.is_empty()
    }
}

/// The days that the reports are about.
struct Days {
    /// That of the earlier report: its rows are of the audit before.
    since: Option<Date>,
    /// That of the latest one: later rows are of the next audit.
    last: Option<Date>,
}

impl Days {
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

    /// Whether a row is of these days. Two audits of one day share its rows.
    fn is_new(&self, row: &LogRow) -> bool {
        self.has(row)
            && self.since.is_none_or(|since| row.date > since || (row.date == since && self.last == self.since))
    }
}

/// The rows that count, by name and in the order of their days.
fn rows<'l>(log: &'l GovernanceLog, days: &Days) -> BTreeMap<&'l str, Vec<&'l LogRow>> {
    let mut rows = log.by_name();
    for rows in rows.values_mut() {
        rows.retain(|row| days.has(row) && !row.is_draft());
        rows.sort_by_key(|row| row.date);
    }
    rows
}

/// The names with an incident and a correction of these days.
fn undone<'l>(rows: &BTreeMap<&'l str, Vec<&'l LogRow>>, days: &Days) -> BTreeSet<&'l str> {
    let has = |rows: &[&LogRow], kind| rows.iter().any(|row| row.kind == kind && days.is_new(row));
    let is_undone = |rows: &[&LogRow]| has(rows, LogKind::Incident) && has(rows, LogKind::Correction);
    rows.iter().filter(|(_, rows)| is_undone(rows)).map(|(name, _)| *name).collect()
}

/// What the names are held against.
struct Judge<'a> {
    rows: BTreeMap<&'a str, Vec<&'a LogRow>>,
    /// What happened to these was undone.
    undone: BTreeSet<&'a str>,
    days: Days,
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

    /// What an earlier report knows of a name.
    fn before(&self, name: &str) -> Option<&PastName> {
        self.earlier?.names.get(name)
    }

    /// Of every name of the latest report, and of those that are listed no longer.
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

    /// What was done to a name of the latest report.
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

    /// Whether the list alone is wrong: no audit before found the name trusted, and nothing of it is its publisher's to mend.
    fn is_slip(&self, name: &str, now: &PastName) -> bool {
        let was_trusted = self.before(name).is_some_and(|before| before.decided() == Some(Decided::Trusted));
        !was_trusted && is_list_keepers(now)
    }

    /// The changes that the log must tell of.
    fn logged(&self, name: &str) -> impl Iterator<Item = &Change> {
        self.changes_of(name).iter().filter(|change| change.kind.is_logged())
    }

    /// Whether the audit before found it broken, or the log says so.
    fn was_broken(&self, name: &str) -> bool {
        self.before(name).is_some_and(is_broken)
            || self.last_event(name).is_some_and(|row| row.kind == LogKind::Incident)
    }

    /// Whether a row of these days tells of a change. An incident or a correction may say what came with it.
    fn has_row(&self, name: &str, change: &Change, is_broken: bool) -> bool {
        let kinds = [LogKind::Change, if is_broken { LogKind::Incident } else { LogKind::Correction }];
        let mut rows = self.rows_about(name).iter().filter(|row| self.days.is_new(row) && kinds.contains(&row.kind));
        let card = self.logged(name).find(|other| other.kind == Kind::Bytes && change.kind == Kind::Records);
        // Another card has other records: who tells of the one has told of the other.
        rows.any(|row| [Some(change), card].into_iter().flatten().any(|told| log_words::tells_of_change(row, told)))
    }

    /// Whether an incident since the last correction names a code: one of these days, where the audit before decided the
    /// name and had not found it. One that could not decide the name has no codes, and shows of none that it is new.
    fn is_logged(&self, name: &str, code: Code) -> bool {
        let rows = self.rows_about(name);
        let corrected = rows.iter().rposition(|row| row.kind == LogKind::Correction);
        let since = &rows[corrected.map_or(0, |at| at + 1)..];
        let is_new = |before: &PastName| before.state != State::Indeterminate && !before.failures().contains(&code);
        let is_of_these_days = self.before(name).is_some_and(is_new);
        let incidents = since.iter().filter(|row| row.kind == LogKind::Incident);
        let mut incidents = incidents.filter(|row| self.days.is_new(row) || !is_of_these_days);
        incidents.any(|row| log_words::names_code(row, code))
    }

    /// Whether the last row that says whether the name is broken says that it is not.
    fn is_corrected(&self, name: &str, now: &PastName) -> bool {
        let is_of_these_days = self.before(name).is_some_and(|before| before.decided() != now.decided());
        self.last_event(name).is_some_and(|row| {
            row.kind == LogKind::Correction
                && (self.days.is_new(row) || !is_of_these_days)
                && self.tells_of_correction(row, name)
        })
    }

    /// Whether a row says what was corrected: that the name is trusted, what was wrong with it, or what was set.
    fn tells_of_correction(&self, row: &LogRow, name: &str) -> bool {
        log_words::tells_of_trust(row)
            || Code::ALL.iter().any(|code| log_words::names_code(row, *code))
            || self.logged(name).any(|change| log_words::tells_of_change(row, change))
    }

    /// The last row that says whether the name is broken.
    fn last_event(&self, name: &str) -> Option<&LogRow> {
        let rows = self.rows_about(name).iter().copied();
        rows.rev().find(|row| matches!(row.kind, LogKind::Incident | LogKind::Correction))
    }

    /// Whether the reports show what a row records; `None` where they cannot.
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
        // What happened and was undone between the two reports is seen by neither.
        let is_hidden = !is_broken(before) && !is_broken(now) && self.undone.contains(name);
        // What an earlier audit found wrong is not known where this one's report only carries its state.
        let is_carried = row.kind == LogKind::Incident && before.state == State::Indeterminate && is_broken(before);
        (is_seen || !(is_hidden || is_carried)).then_some(is_seen)
    }
}

fn is_broken(name: &PastName) -> bool {
    name.decided() == Some(Decided::Untrusted)
}

/// Whether nothing of a broken name is its publisher's to mend.
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
