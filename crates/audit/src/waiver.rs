//! Waivers: findings that somebody accepts until a day. An accepted finding is left out of the exit code of an audit. It
//! stays in rows, counts, drafts and states: a waiver makes no name trusted.

use std::fmt;
use std::io;

use jiff::civil::Date;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::counts::AuditCounts;
use super::row::{Row, Rows};
use clresolve_core::name::EnsName;
use clresolve_core::reason::{Code, Effect, MAX_VALUE_BYTES, Reason};
use clresolve_core::state::State;
use clresolve_core::text::Foreign;

/// Most waivers of an audit: whoever accepts more needs other rules.
pub const MAX_WAIVERS: usize = 1_000;

/// The last character of a value or place that was cut. The rest is not known, so no waiver covers it.
const CUT: char = '…';

/// A finding that somebody accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The name, in its normal form.
    pub name: EnsName,
    /// The code of the finding.
    pub code: Code,
    /// Its place, byte for byte; absent for a finding without one.
    #[serde(default, rename = "where")]
    pub place: Option<String>,
    /// The observed value, byte for byte; absent for a finding without one.
    #[serde(default)]
    pub observed: Option<String>,
    /// Why it is accepted.
    #[serde(deserialize_with = "given_reason")]
    pub reason: String,
    /// The last day on which it is accepted, in UTC.
    pub until: Date,
}

/// A waiver and what an audit found of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedWaiver {
    /// The waiver.
    pub waiver: Waiver,
    /// Whether it is in force.
    pub status: WaiverStatus,
    /// How many findings it covers.
    pub findings: u64,
}

/// Whether a waiver is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaiverStatus {
    /// It covers a finding, which is left out of the exit code.
    Accepted,
    /// Its last day has passed.
    Expired,
    /// The name has the finding, with another value or in another place.
    OtherValue,
    /// The name has more findings than the report lists. None of them is accepted.
    UnlistedFindings,
    /// The audit has no such finding.
    NoFinding,
}

impl WaiverStatus {
    /// The status in words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Expired => "expired",
            Self::OtherValue => "the value or place differs: the finding counts",
            Self::UnlistedFindings => "the name has more findings than the report lists: all of them count",
            Self::NoFinding => "no such finding: remove the waiver",
        }
    }
}

/// The waivers of an audit, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<AppliedWaiver>")]
pub struct Waivers(Vec<AppliedWaiver>);

impl From<Vec<AppliedWaiver>> for Waivers {
    fn from(mut waivers: Vec<AppliedWaiver>) -> Self {
        waivers.sort_by(|one, other| one.waiver.name.as_str().cmp(other.waiver.name.as_str()));
        Self(waivers)
    }
}

impl Waivers {
    /// Compares waivers with the rows of an audit, on a day in UTC.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn apply(given: Vec<Waiver>, today: Date, rows: &dyn Rows) -> io::Result<Self> {
        let status =
            |waiver: &Waiver| if waiver.until < today { WaiverStatus::Expired } else { WaiverStatus::NoFinding };
        let waivers = given.into_iter().map(|waiver| AppliedWaiver { status: status(&waiver), waiver, findings: 0 });
        let mut waivers = Self::from(waivers.collect::<Vec<_>>());
        if waivers.0.is_empty() {
            return Ok(waivers);
        }
        rows.each(&mut |row| {
            let range = waivers.range_of(row);
            waivers.0[range].iter_mut().for_each(|waiver| waiver.compare(row));
            Ok(())
        })?;
        Ok(waivers)
    }

    /// All of them.
    pub fn all(&self) -> &[AppliedWaiver] {
        &self.0
    }

    /// Those about the name of a row.
    pub(super) fn of(&self, row: &Row) -> &[AppliedWaiver] {
        &self.0[self.range_of(row)]
    }

    /// The waiver that accepts a finding of a row; none if the row lacks reasons of its verdict.
    pub(super) fn accepting(&self, row: &Row, reason: &Reason) -> Option<&Waiver> {
        if row.more_reasons > 0 {
            return None;
        }
        let in_force = self.of(row).iter().filter(|applied| applied.status == WaiverStatus::Accepted);
        in_force.map(|applied| &applied.waiver).find(|waiver| waiver.covers(reason))
    }

    /// The worst state of the names, without the findings that are accepted.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn worst_state(&self, counts: &AuditCounts, rows: &dyn Rows) -> io::Result<State> {
        if self.0.is_empty() {
            return Ok(worst(counts.untrusted > 0, counts.indeterminate > 0));
        }
        let (mut has_untrusted, mut has_indeterminate) = (false, false);
        rows.each(&mut |row| {
            let state = self.state_of(row);
            has_untrusted |= state == State::Untrusted;
            has_indeterminate |= state == State::Indeterminate;
            Ok(())
        })?;
        Ok(worst(has_untrusted, has_indeterminate))
    }

    /// The state with which a name counts.
    fn state_of(&self, row: &Row) -> State {
        let is_accepted = |reason: &Reason| self.accepting(row, reason).is_some();
        if !decisive(row).any(is_accepted) {
            return row.state;
        }
        let counts = |effect| decisive(row).any(|reason| reason.effect == effect && !is_accepted(reason));
        worst(counts(Effect::Fail), counts(Effect::Unknown))
    }

    fn range_of(&self, row: &Row) -> std::ops::Range<usize> {
        let Some(name) = row.normalized.as_deref() else { return 0..0 };
        let first = self.0.partition_point(|applied| applied.waiver.name.as_str() < name);
        let end = self.0.partition_point(|applied| applied.waiver.name.as_str() <= name);
        first..end
    }
}

impl fmt::Display for AppliedWaiver {
    /// Says in one line whether it is in force.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiver { name, code, place, until, .. } = &self.waiver;
        write!(f, "waiver of {code} of {}", Foreign::new(name.as_str()))?;
        if let Some(place) = place {
            write!(f, " at {}", Foreign::new(place))?;
        }
        write!(f, ", until {until}: {}", self.status.in_words())
    }
}

impl AppliedWaiver {
    /// Takes the findings of a row of its name into account.
    fn compare(&mut self, row: &Row) {
        if self.status == WaiverStatus::Expired {
            return;
        }
        if row.more_reasons > 0 {
            self.status = WaiverStatus::UnlistedFindings;
            return;
        }
        for reason in decisive(row).filter(|reason| reason.code == self.waiver.code) {
            if self.waiver.covers(reason) {
                self.status = WaiverStatus::Accepted;
                self.findings += 1;
            } else if self.status == WaiverStatus::NoFinding {
                self.status = WaiverStatus::OtherValue;
            }
        }
    }
}

impl Waiver {
    /// Whether it is about this finding of its name: one that decides the state, with this code, place and value.
    fn covers(&self, reason: &Reason) -> bool {
        let is_cut = |text: &Option<String>| text.as_deref().is_some_and(|text| text.ends_with(CUT));
        let is_same = reason.code == self.code && reason.place == self.place && reason.observed == self.observed;
        decides(reason) && is_same && !is_cut(&reason.place) && !is_cut(&reason.observed)
    }
}

/// The findings of a row that decide its state.
fn decisive(row: &Row) -> impl Iterator<Item = &Reason> {
    row.reasons.iter().filter(|reason| decides(reason))
}

fn decides(reason: &Reason) -> bool {
    matches!(reason.effect, Effect::Fail | Effect::Unknown)
}

const fn worst(has_untrusted: bool, has_indeterminate: bool) -> State {
    match (has_untrusted, has_indeterminate) {
        (true, _) => State::Untrusted,
        (false, true) => State::Indeterminate,
        (false, false) => State::Trusted,
    }
}

fn given_reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let reason = String::deserialize(deserializer)?;
    match reason.trim().len() {
        0 => Err(D::Error::custom("the reason is empty")),
        1..=MAX_VALUE_BYTES => Ok(reason.trim().to_owned()),
        _ => Err(D::Error::custom(format_args!("the reason has more than {MAX_VALUE_BYTES} bytes"))),
    }
}
