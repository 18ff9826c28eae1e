//! Waivers, which accept findings until a date. The exit code of an audit ignores accepted findings. Rows, counts,
//! drafts and states do not change: a waiver never makes a name trusted.

use std::fmt;
use std::io;

use jiff::civil::Date;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::counts::AuditCounts;
use super::row::{AuditRow, AuditRowSource};
use clresolve_core::name::EnsName;
use clresolve_core::reason::{MAX_VALUE_BYTES, Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_core::text::UntrustedText;

/// Maximum number of waivers of an audit. To accept more findings, audit under another profile.
pub const MAX_WAIVERS: usize = 1_000;

/// The last character of a truncated place or value. The rest is unknown, so no waiver covers it.
const CUT: char = '…';

/// The acceptance of one finding until a date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The name, in normal form.
    pub name: EnsName,
    /// The code of the finding.
    pub code: ReasonCode,
    /// The place of the finding, byte for byte. `None` if the finding has none.
    #[serde(default, rename = "where")]
    pub place: Option<String>,
    /// The observed value, byte for byte. `None` if the finding has none.
    #[serde(default)]
    pub observed: Option<String>,
    /// Why the finding is accepted.
    #[serde(deserialize_with = "deserialize_reason")]
    pub reason: String,
    /// The last day of the waiver, in UTC.
    pub until: Date,
}

/// A waiver, compared with the findings of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliedWaiver {
    /// The waiver.
    pub waiver: Waiver,
    /// Whether the waiver has an effect, and why not.
    pub status: WaiverStatus,
    /// The number of findings that the waiver covers.
    pub findings: u64,
}

/// Whether a waiver has an effect, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaiverStatus {
    /// The waiver covers at least one finding, which the exit code ignores.
    Accepted,
    /// The last day of the waiver has passed.
    Expired,
    /// The name has a finding with this code, but with another value or in another place.
    OtherValue,
    /// The name has more findings than the report lists. None of them is accepted.
    UnlistedFindings,
    /// The name has no failure with this code, or the audit does not contain the name.
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
            Self::NoFinding => "the name has no failure with this code: remove the waiver",
        }
    }
}

/// The waivers of an audit, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<AppliedWaiver>")]
pub struct AppliedWaivers(Vec<AppliedWaiver>);

impl From<Vec<AppliedWaiver>> for AppliedWaivers {
    fn from(mut waivers: Vec<AppliedWaiver>) -> Self {
        waivers.sort_by(|one, other| one.waiver.name.as_str().cmp(other.waiver.name.as_str()));
        Self(waivers)
    }
}

impl AppliedWaivers {
    /// Compares waivers with the rows of an audit. `today` is the day in UTC.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn apply(given: Vec<Waiver>, today: Date, rows: &dyn AuditRowSource) -> io::Result<Self> {
        let status =
            |waiver: &Waiver| if waiver.until < today { WaiverStatus::Expired } else { WaiverStatus::NoFinding };
        let waivers = given.into_iter().map(|waiver| AppliedWaiver { status: status(&waiver), waiver, findings: 0 });
        let mut waivers = Self::from(waivers.collect::<Vec<_>>());
        if waivers.0.is_empty() {
            return Ok(waivers);
        }
        rows.for_each_row(&mut |row| {
            let range = waivers.waiver_index_range(row);
            waivers.0[range].iter_mut().for_each(|waiver| waiver.update_from_row(row));
            Ok(())
        })?;
        Ok(waivers)
    }

    /// All waivers.
    pub fn as_slice(&self) -> &[AppliedWaiver] {
        &self.0
    }

    /// The waivers for the name of a row.
    pub(super) fn for_row(&self, row: &AuditRow) -> &[AppliedWaiver] {
        &self.0[self.waiver_index_range(row)]
    }

    /// The waiver that accepts a finding of a row. `None` if the row does not list all findings of its name.
    pub(super) fn accepting_waiver(&self, row: &AuditRow, reason: &Reason) -> Option<&Waiver> {
        if row.more_reasons > 0 {
            return None;
        }
        let in_force = self.for_row(row).iter().filter(|applied| applied.status == WaiverStatus::Accepted);
        in_force.map(|applied| &applied.waiver).find(|waiver| waiver.covers(reason))
    }

    /// The worst state of the names, without accepted findings.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn worst_unwaived_state(&self, counts: &AuditCounts, rows: &dyn AuditRowSource) -> io::Result<TrustState> {
        if self.0.is_empty() {
            return Ok(state_from_flags(counts.untrusted > 0, counts.indeterminate > 0));
        }
        let (mut has_untrusted, mut has_indeterminate) = (false, false);
        rows.for_each_row(&mut |row| {
            let state = self.unwaived_state(row);
            has_untrusted |= state == TrustState::Untrusted;
            has_indeterminate |= state == TrustState::Indeterminate;
            Ok(())
        })?;
        Ok(state_from_flags(has_untrusted, has_indeterminate))
    }

    /// The state of a name without its accepted findings.
    fn unwaived_state(&self, row: &AuditRow) -> TrustState {
        let is_accepted = |reason: &Reason| self.accepting_waiver(row, reason).is_some();
        if !decisive_reasons(row).any(is_accepted) {
            return row.state;
        }
        let counts = |effect| decisive_reasons(row).any(|reason| reason.effect == effect && !is_accepted(reason));
        state_from_flags(counts(ReasonEffect::Fail), counts(ReasonEffect::Unknown))
    }

    fn waiver_index_range(&self, row: &AuditRow) -> std::ops::Range<usize> {
        let Some(name) = row.normalized.as_deref() else { return 0..0 };
        let first = self.0.partition_point(|applied| applied.waiver.name.as_str() < name);
        let end = self.0.partition_point(|applied| applied.waiver.name.as_str() <= name);
        first..end
    }
}

impl fmt::Display for AppliedWaiver {
    /// Writes one line: the finding, the last day, and whether the waiver has an effect.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Waiver { name, code, place, until, .. } = &self.waiver;
        write!(f, "waiver of {code} of {}", UntrustedText::new(name.as_str()))?;
        if let Some(place) = place {
            write!(f, " at {}", UntrustedText::new(place))?;
        }
        write!(f, ", until {until}: {}", self.status.in_words())
    }
}

impl AppliedWaiver {
    /// Updates status and count from a row of the waiver's name.
    fn update_from_row(&mut self, row: &AuditRow) {
        if self.status == WaiverStatus::Expired {
            return;
        }
        if row.more_reasons > 0 {
            self.status = WaiverStatus::UnlistedFindings;
            return;
        }
        for reason in
            row.reasons.iter().filter(|reason| reason.effect == ReasonEffect::Fail && reason.code == self.waiver.code)
        {
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
    /// Whether the waiver covers this finding of its name: the finding is a failure, and code, place and observed value
    /// are equal. What could not be decided has no value that anyone could accept.
    fn covers(&self, reason: &Reason) -> bool {
        let is_cut = |text: &Option<String>| text.as_deref().is_some_and(|text| text.ends_with(CUT));
        let is_same = reason.code == self.code && reason.place == self.place && reason.observed == self.observed;
        reason.effect == ReasonEffect::Fail && is_same && !is_cut(&reason.place) && !is_cut(&reason.observed)
    }
}

/// The findings that decide the state of a row.
fn decisive_reasons(row: &AuditRow) -> impl Iterator<Item = &Reason> {
    row.reasons.iter().filter(|reason| is_decisive(reason))
}

fn is_decisive(reason: &Reason) -> bool {
    matches!(reason.effect, ReasonEffect::Fail | ReasonEffect::Unknown)
}

const fn state_from_flags(has_untrusted: bool, has_indeterminate: bool) -> TrustState {
    match (has_untrusted, has_indeterminate) {
        (true, _) => TrustState::Untrusted,
        (false, true) => TrustState::Indeterminate,
        (false, false) => TrustState::Trusted,
    }
}

fn deserialize_reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let reason = String::deserialize(deserializer)?;
    match reason.trim().len() {
        0 => Err(D::Error::custom("the reason is empty")),
        1..=MAX_VALUE_BYTES => Ok(reason.trim().to_owned()),
        _ => Err(D::Error::custom(format_args!("the reason has more than {MAX_VALUE_BYTES} bytes"))),
    }
}
