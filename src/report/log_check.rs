//! A governance log held against what audits saw. Pure: what happened must stand in the log, and what stands there must
//! have happened.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::difference::{Change, Kind, OtherWorld};
use super::governance_log::{GovernanceLog, LogKind, LogRow};
use super::past::{Past, PastName};
use super::{Decided, Difference, Draft, slugs};
use crate::name::EnsName;
use crate::text::Foreign;
use crate::verdict::State;

/// The schema identifier of the JSON form.
pub const SCHEMA: &str = "clresolve.audit-resolution/1";

/// What the log lacks, and what it says that was not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogCheck {
    schema: &'static str,
    /// Rows of the log.
    pub rows: usize,
    /// Whether all names of the lists were audited.
    pub complete: bool,
    /// What happened, and has no row.
    pub missing: Vec<Missing>,
    /// Rows of what did not happen.
    pub unobserved: Vec<Unjudged>,
    /// Rows about names that were not audited.
    pub unaudited: Vec<Unjudged>,
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
    /// What happened.
    pub what: Vec<String>,
}

/// A row that nothing was seen for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unjudged {
    /// Its line in the log.
    pub line: usize,
    /// Its day.
    pub date: String,
    /// The name.
    pub name: String,
    /// What it records.
    pub kind: LogKind,
}

/// What happened to a name, by the kind of the row that it asks for.
#[derive(Default)]
struct Happened(BTreeMap<LogKind, Vec<String>>);

impl LogCheck {
    /// Holds a log against the latest report and, where there is one, an earlier one: changes since then must have a row
    /// of that day or later, and each row since then its change.
    ///
    /// # Errors
    /// If the reports are about different worlds or chains.
    pub fn of(log: &GovernanceLog, earlier: Option<&Past>, latest: &Past) -> Result<Self, OtherWorld> {
        let difference = earlier.map(|earlier| Difference::between(earlier, latest)).transpose()?;
        let changes = difference.as_ref().map_or(&[][..], |difference| &difference.changes);
        let since = earlier.and_then(|earlier| earlier.checked).map(|(first, _)| day(first));
        let judge = Judge { log, since, changes };
        let mut check = Self {
            schema: SCHEMA,
            rows: log.rows.len(),
            complete: difference.as_ref().map_or(latest.complete, Difference::is_complete),
            missing: Vec::new(),
            unobserved: Vec::new(),
            unaudited: Vec::new(),
            drafts: Vec::new(),
        };
        for (name, now) in &latest.names {
            check.missing.extend(judge.missing(name, Some(now)));
        }
        let gone = earlier.into_iter().flat_map(|earlier| earlier.names.keys());
        for name in gone.filter(|name| !latest.names.contains_key(*name)) {
            check.missing.extend(judge.missing(name, None));
        }
        if let (Some(earlier), Some(since), Some((_, last))) = (earlier, since, latest.checked) {
            for row in log.events().filter(|row| (since..=day(last)).contains(&row.date)) {
                check.judge_row(row, &judge, earlier, latest);
            }
        }
        let today = latest.checked.map(|(_, last)| day(last).to_string()).unwrap_or_default();
        check.drafts = check.missing.iter().map(|missing| missing.draft(latest, &today)).collect();
        Ok(check)
    }

    /// Whether nothing is missing and nothing was made up, as far as it is known.
    pub const fn holds(&self) -> bool {
        self.missing.is_empty() && self.unobserved.is_empty()
    }

    /// Whether all that was asked is known.
    pub const fn is_complete(&self) -> bool {
        self.complete && self.unaudited.is_empty()
    }

    /// Looks for what a row records.
    fn judge_row(&mut self, row: &LogRow, judge: &Judge<'_>, earlier: &Past, latest: &Past) {
        for name in row.words().filter(|word| word.contains('.') && EnsName::parse(word).is_ok()) {
            let found = Unjudged { line: row.line, date: row.date.to_string(), name: name.to_owned(), kind: row.kind };
            match (earlier.names.get(name), latest.names.get(name)) {
                (None, None) => self.unaudited.push(found),
                (_, Some(now)) if now.state == State::Indeterminate => self.unaudited.push(found),
                (before, now) => {
                    let was_broken = [before, now].into_iter().flatten().any(is_broken);
                    let is_seen = match row.kind {
                        LogKind::Incident => was_broken,
                        _ => judge.changes.iter().any(|change| change.name == name && kind(change).is_some()),
                    };
                    if !is_seen {
                        self.unobserved.push(found);
                    }
                }
            }
        }
    }
}

fn is_broken(name: &PastName) -> bool {
    name.decided() == Some(Decided::Untrusted)
}

/// The kind of row that a change asks for. States that are open, and findings, ask for none of their own.
const fn kind(change: &Change) -> Option<LogKind> {
    match change.kind {
        Kind::State | Kind::Findings => None,
        Kind::NewlyBroken => Some(LogKind::Incident),
        Kind::NewlyTrusted => Some(LogKind::Correction),
        _ => Some(LogKind::Change),
    }
}

/// What the names are held against.
struct Judge<'a> {
    log: &'a GovernanceLog,
    /// The day of the earlier report.
    since: Option<Date>,
    changes: &'a [Change],
}

impl Judge<'_> {
    fn missing(&self, name: &str, now: Option<&PastName>) -> Vec<Missing> {
        let happened = self.happened(name, now);
        let missing = happened.0.into_iter().filter(|(kind, _)| !self.is_logged(name, *kind, now));
        missing.map(|(kind, what)| Missing { name: name.to_owned(), kind, what }).collect()
    }

    fn happened(&self, name: &str, now: Option<&PastName>) -> Happened {
        let mut happened = Happened::default();
        for change in self.changes.iter().filter(|change| change.name == name) {
            if let Some(kind) = kind(change) {
                happened.0.entry(kind).or_default().push(told(change));
            }
        }
        let Some(now) = now else { return happened };
        match now.state {
            State::Untrusted => {
                happened.0.entry(LogKind::Incident).or_default().push(slugs(&now.codes(), ", "));
            }
            State::Trusted if self.last_event(name).is_some_and(|row| row.kind == LogKind::Incident) => {
                happened.0.entry(LogKind::Correction).or_default().push("it is trusted again".to_owned());
            }
            _ => {}
        }
        happened
    }

    fn is_logged(&self, name: &str, kind: LogKind, now: Option<&PastName>) -> bool {
        let is_new = |row: &&LogRow| self.since.is_none_or(|since| row.date >= since);
        match kind {
            LogKind::Incident => {
                let is_newly_broken =
                    self.changes.iter().any(|change| change.name == name && change.kind == Kind::NewlyBroken);
                let last = self.last_event(name).filter(|row| row.kind == LogKind::Incident);
                last.is_some_and(|row| !is_newly_broken || is_new(&row))
            }
            LogKind::Correction => {
                let last = self.last_event(name).filter(|row| row.kind == LogKind::Correction);
                last.is_some_and(|row| is_new(&row)) && now.is_some()
            }
            LogKind::Change => self.log.about(name).any(|row| is_new(&row)),
            LogKind::Decision => true,
        }
    }

    /// The last row that says whether the name is broken.
    fn last_event<'s>(&'s self, name: &'s str) -> Option<&'s LogRow> {
        self.log.about(name).rfind(|row| matches!(row.kind, LogKind::Incident | LogKind::Correction))
    }
}

fn told(change: &Change) -> String {
    let mut text = change.kind.as_str().to_owned();
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let _ = write!(text, ": {} → {}", value(&change.before), value(&change.after));
    text
}

impl Missing {
    fn draft(&self, latest: &Past, today: &str) -> Draft {
        let of_report = latest.drafts.iter().find(|draft| draft.subject == self.name && draft.kind == self.kind);
        if let Some(draft) = of_report {
            return draft.clone();
        }
        let decision = match self.kind {
            LogKind::Correction => "draft: may be called and paid again",
            LogKind::Incident => "draft: not to be called or paid until its publisher has corrected what it published",
            LogKind::Change | LogKind::Decision => "draft: the change was announced, and is accepted",
        };
        let what: Vec<String> = self.what.iter().map(|what| Foreign::new(what).markdown().to_string()).collect();
        Draft {
            date: today.to_owned(),
            subject: self.name.clone(),
            kind: self.kind,
            decision: decision.to_owned(),
            reason: what.join(", "),
        }
    }
}

fn day(at: jiff::Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}
