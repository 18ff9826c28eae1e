//! A report that was written earlier, read again: whole and unchanged, or not at all.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _, Seek, SeekFrom};

use clresolve_verdict::agreement::UpstreamAgreement;
use jiff::Timestamp;
use serde::Deserialize;

use super::known::{Carried, Decided, Known};
use super::row::{MAX_REASONS_PER_ROW, Row, Rows};
use super::scope::{SCHEMA, Scope};
use crate::check::edition;
use crate::digest::{Digest, Digester};
use crate::evidence::edition::Edition;
use crate::reason::{self, Code, Step};
use crate::verdict::State;

/// Longest report that is read, in bytes: that of some hundred thousand names.
pub const MAX_REPORT_BYTES: u64 = 1 << 30;

/// How the line with the digest of a report begins. No line of a row begins so.
pub(super) const DIGEST_LINE: &str = "\"digest\": ";

/// A report, as far as a later one is compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// The question and the rules.
    pub scope: Scope,
    /// Whether every name of the list has its row.
    pub complete: bool,
    /// What is known of each name. Of a name that stands there twice the first row counts.
    pub names: BTreeMap<String, PastName>,
    /// The times of the first and the last block; of a report that was read.
    pub checked: Option<(Timestamp, Timestamp)>,
    /// The digest of its lines, by which it is known; of a report that was read.
    pub digest: Option<Digest>,
}

/// A name in an earlier report.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PastName {
    normalized: Option<String>,
    input: String,
    /// The state.
    pub state: State,
    reasons: Vec<PastReason>,
    /// What the report keeps of it beside the verdict.
    #[serde(flatten)]
    pub known: Known,
    carried: Option<Carried>,
    /// What each endpoint and each gateway said of it, where they were asked.
    pub agreement: Option<UpstreamAgreement>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct PastReason {
    code: Code,
}

/// Why a report is not used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PastError {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It ends before its digest, or it was formatted anew.
    #[error("was cut or formatted anew: it has no line \"digest\" at its end. Take the file as audit wrote it")]
    Cut,
    /// It is not what was written.
    #[error("was changed: its digest is {written}, that of its lines {counted}. Take the file as audit wrote it")]
    Changed {
        /// The digest that stands in it.
        written: String,
        /// The digest of what is in it.
        counted: Digest,
    },
    /// It is no report.
    #[error("is not the report of an audit in its JSON form: {0}")]
    Other(#[from] serde_json::Error),
    /// It is of another schema.
    #[error("is of the schema {0:?}, not {SCHEMA}")]
    Schema(String),
}

impl Past {
    /// Reads a report.
    ///
    /// # Errors
    /// [`PastError`]
    pub fn read(mut report: impl BufRead + Seek) -> Result<Self, PastError> {
        let digest = check_digest(&mut report)?;
        report.seek(SeekFrom::Start(0))?;
        let document: Document = serde_json::from_reader(report.take(MAX_REPORT_BYTES))?;
        if document.schema != SCHEMA {
            return Err(PastError::Schema(document.schema));
        }
        let mut past = Self {
            checked: document.counts.checked.map(|checked| (checked.first, checked.last)),
            digest: Some(digest),
            ..Self::empty(document.scope, document.complete)
        };
        document.rows.into_iter().for_each(|row| past.add(row));
        Ok(past)
    }

    /// A report that is being written.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn of(scope: &Scope, complete: bool, rows: &dyn Rows) -> io::Result<Self> {
        let mut past = Self::empty(scope.clone(), complete);
        rows.each(&mut |row| {
            past.add(row.into());
            Ok(())
        })?;
        Ok(past)
    }

    const fn empty(scope: Scope, complete: bool) -> Self {
        Self { scope, complete, names: BTreeMap::new(), checked: None, digest: None }
    }

    fn add(&mut self, name: PastName) {
        self.names.entry(name.name().to_owned()).or_insert(name);
    }
}

impl From<&Row> for PastName {
    fn from(row: &Row) -> Self {
        Self {
            normalized: row.normalized.clone(),
            input: row.input.clone(),
            state: row.state,
            reasons: row.reasons.iter().map(|reason| PastReason { code: reason.code }).collect(),
            known: row.known.clone(),
            carried: row.carried.clone(),
            agreement: row.agreement.clone(),
        }
    }
}

impl Row {
    /// Holds the row against that of an earlier audit, and takes over from it what this one could not read or decide.
    pub fn follow(&mut self, earlier: &PastName) {
        if let Some(before) = &earlier.known.edition {
            self.hold_against(before);
        }
        let members = self.known.complete_from(&earlier.known);
        let state = if self.state == State::Indeterminate { earlier.decided() } else { None };
        self.carried = (state.is_some() || !members.is_empty()).then_some(Carried { state, members });
    }

    /// Adds what is wrong with the card as a successor of the one in an earlier audit (CL-69).
    fn hold_against(&mut self, before: &Edition) {
        let Some(now) = &self.known.edition else { return };
        for reason in edition::since(before, now) {
            if self.reasons.iter().any(|known| known.code == reason.code) {
                continue;
            }
            if self.reasons.len() < MAX_REASONS_PER_ROW {
                self.reasons.push(reason);
            } else {
                self.more_reasons += 1;
            }
        }
        reason::sort(&mut self.reasons);
    }
}

impl PastName {
    /// Its normal form, or what was typed.
    pub fn name(&self) -> &str {
        self.normalized.as_deref().unwrap_or(&self.input)
    }

    /// Its normal form; none of a line that is no name.
    pub fn normalized(&self) -> Option<&str> {
        self.normalized.as_deref()
    }

    /// The state that was decided last: by this audit, or by the last one before it that could.
    pub fn decided(&self) -> Option<Decided> {
        Decided::of(self.state).or_else(|| self.carried.as_ref()?.state)
    }

    /// The codes of its findings, each once, by slug. What came of comparing with an earlier card is no state of the name:
    /// it ends with the next comparison, although nothing changes.
    pub fn codes(&self) -> Vec<Code> {
        let codes = self.reasons.iter().map(|reason| reason.code);
        let mut codes: Vec<Code> = codes.filter(|code| code.entry().step != Step::Continuity).collect();
        codes.sort_unstable_by_key(|code| code.slug());
        codes.dedup();
        codes
    }
}

#[derive(Deserialize)]
struct Document {
    schema: String,
    complete: bool,
    scope: Scope,
    counts: Counts,
    rows: Vec<PastName>,
}

#[derive(Deserialize)]
struct Counts {
    checked: Option<Checked>,
}

#[derive(Deserialize)]
struct Checked {
    first: Timestamp,
    last: Timestamp,
}

/// Compares the lines with the digest below them, and gives it.
pub(super) fn check_digest(report: &mut impl BufRead) -> Result<Digest, PastError> {
    let mut report = report.take(MAX_REPORT_BYTES);
    let (mut lines, mut line) = (Digester::default(), Vec::new());
    loop {
        line.clear();
        if report.read_until(b'\n', &mut line)? == 0 {
            return Err(PastError::Cut);
        }
        let Some(written) = line.strip_prefix(DIGEST_LINE.as_bytes()) else {
            lines.update(&line);
            continue;
        };
        let counted = lines.digest();
        let written = String::from_utf8_lossy(written.trim_ascii()).into_owned();
        let is_same = written == format!("\"{counted}\"");
        return if is_same || clresolve_core::mutant!("changed-reports") {
            Ok(counted)
        } else {
            Err(PastError::Changed { written, counted })
        };
    }
}
