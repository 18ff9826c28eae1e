//! Reads a report of an earlier audit, which must be complete and unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, BufRead, Read as _, Seek, SeekFrom};

use jiff::Timestamp;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::known::{CarriedOverFacts, DecidedTrustState, NameSnapshot};
use super::layers::PublishedSchemaRow;
use super::list_digest;
use super::row::{AuditRow, AuditRowSource, MAX_REASONS_PER_ROW, MEMBERS, is_registry_code};
use super::scope::{AuditConditions, NameListReference, SCHEMA};
use super::waiver::AppliedWaivers;
use clresolve_core::digest::{Digest, Digester};
use clresolve_core::reason::{self, ReasonCode, ReasonEffect, ResolutionStep};
use clresolve_core::state::TrustState;
use clresolve_core::text::{UntrustedText, excerpt_text};
use clresolve_verdict::check::edition;
use clresolve_verdict::evidence::edition::CardSuccessionFacts;
use clresolve_verdict::verdict::ToolVersion;

/// Maximum length of a report, in bytes: some hundred thousand names.
pub const MAX_REPORT_BYTES: u64 = 1 << 30;

/// Prefix of the line with the report's digest. No row begins with it.
pub(super) const DIGEST_LINE: &str = "\"digest\": ";

/// The rest of the report after that line.
pub(super) const END: &[u8] = b"}\n";

/// The parts of a report that a later one is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparableReport {
    /// The question and the rules.
    pub scope: AuditConditions,
    /// Whether the report contains every name of the list.
    pub complete: bool,
    /// The names. If a name occurs twice, the first row counts.
    pub names: BTreeMap<String, ComparableName>,
    /// When the report was written. `None` in reports of older versions, and for an audit without a report yet.
    pub generated_at: Option<Timestamp>,
    /// The times of the first and the last block; only of a report that was read.
    pub checked: Option<(Timestamp, Timestamp)>,
    /// The digest of its lines, which identifies it; only of a report that was read.
    pub digest: Option<Digest>,
    /// Number of rows.
    pub rows: u64,
    /// Number of trusted, untrusted and indeterminate rows.
    pub states: [u64; 3],
    /// The published schemas of the layers, if they were checked.
    pub schema_layers: Option<Vec<PublishedSchemaRow>>,
}

/// A name in an earlier report.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ComparableName {
    normalized: Option<String>,
    input: String,
    input_digest: Option<Digest>,
    /// The state.
    pub state: TrustState,
    reasons: Vec<ComparableReason>,
    /// The kept facts besides the verdict.
    #[serde(flatten)]
    pub known: NameSnapshot,
    carried: Option<CarriedOverFacts>,
    checked_at: Option<String>,
    unchanged_since: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct ComparableReason {
    code: ReasonCode,
    effect: ReasonEffect,
}

/// Why a report is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditReportError {
    /// An I/O error.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The report ends before its digest does, or was reformatted.
    #[error(
        "was cut or formatted anew: it does not end with the line \"digest\". Use the file as `clresolve audit` wrote it"
    )]
    Cut,
    /// Data follows after the digest.
    #[error("was changed: data follows its digest. Use the file as `clresolve audit` wrote it")]
    Continued,
    /// The content does not match the digest.
    #[error(
        "was changed: its digest is {written}, that of its lines {counted}. Use the file as `clresolve audit` wrote it"
    )]
    Changed {
        /// The digest in the report.
        written: String,
        /// The digest of its content.
        counted: Digest,
    },
    /// Not a report.
    #[error("is not the report of an audit in its JSON form: {0}")]
    Other(#[from] serde_json::Error),
    /// A report with another schema.
    #[error("is of the schema {0:?}, not {SCHEMA}")]
    Schema(String),
}

impl ComparableReport {
    /// Reads a report.
    ///
    /// # Errors
    /// [`AuditReportError`]
    pub fn read(report: impl BufRead + Seek) -> Result<Self, AuditReportError> {
        let (document, digest): (AuditReportDocument<Vec<ComparableName>>, _) = AuditReportDocument::read(report)?;
        let mut past = Self {
            generated_at: document.generated_at,
            checked: document.counts.checked.map(|checked| (checked.first, checked.last)),
            digest: Some(digest),
            schema_layers: document.schema_layers,
            ..Self::empty(document.scope, document.complete)
        };
        document.rows.into_iter().for_each(|row| past.add(row));
        Ok(past)
    }

    /// The data of a report that is being written.
    ///
    /// # Errors
    /// If a row cannot be read.
    pub fn from_rows(scope: &AuditConditions, complete: bool, rows: &dyn AuditRowSource) -> io::Result<Self> {
        let mut past = Self::empty(scope.clone(), complete);
        rows.for_each_row(&mut |row| {
            past.add(row.into());
            Ok(())
        })?;
        Ok(past)
    }

    const fn empty(scope: AuditConditions, complete: bool) -> Self {
        Self {
            scope,
            complete,
            names: BTreeMap::new(),
            generated_at: None,
            checked: None,
            digest: None,
            rows: 0,
            states: [0; 3],
            schema_layers: None,
        }
    }

    fn add(&mut self, name: ComparableName) {
        self.rows += 1;
        self.states[name.state as usize] += 1;
        // The row of an unreadable registry is not about a name, so it is neither added nor removed.
        if !name.reasons.iter().any(|reason| is_registry_code(reason.code)) {
            self.names.entry(name.key()).or_insert(name);
        }
    }
}

impl From<&AuditRow> for ComparableName {
    fn from(row: &AuditRow) -> Self {
        Self {
            normalized: row.normalized.clone(),
            input: row.input.clone(),
            input_digest: row.input_digest,
            state: row.state,
            reasons: row
                .reasons
                .iter()
                .map(|reason| ComparableReason { code: reason.code, effect: reason.effect })
                .collect(),
            known: row.known.clone(),
            carried: row.carried.clone(),
            checked_at: row.checked_at.clone(),
            unchanged_since: row.unchanged_since.clone(),
        }
    }
}

impl AuditRow {
    /// Like [`AuditRow::carry_over_from`], with the row of the same name in an earlier report, if there is one.
    pub fn carry_over_from_report(&mut self, earlier: &ComparableReport) {
        if let Some(before) = earlier.names.get(&self.key()).filter(|_| !self.is_unreadable()) {
            self.carry_over_from(before);
        }
    }

    /// Compares the row with that of an earlier audit, and copies what this audit could not read or decide.
    pub fn carry_over_from(&mut self, earlier: &ComparableName) {
        if let Some(before) = &earlier.known.edition {
            self.add_succession_findings(before);
        }
        let members = self.known.copy_missing_from(&earlier.known);
        let state = if self.state == TrustState::Indeterminate { earlier.last_decided_state() } else { None };
        let is_same = self.known == earlier.known
            && state.or_else(|| DecidedTrustState::from_state(self.state)) == earlier.last_decided_state();
        self.carried = (state.is_some() || !members.is_empty()).then_some(CarriedOverFacts { state, members });
        self.unchanged_since = if is_same { earlier.known_since() } else { None };
    }

    /// Adds findings on the card as the successor of the one in an earlier audit (CL-69).
    fn add_succession_findings(&mut self, before: &CardSuccessionFacts) {
        let Some(now) = &self.known.edition else { return };
        for reason in edition::check_succession(before, now) {
            if self.reasons.iter().any(|known| known.code == reason.code) {
                continue;
            }
            if self.reasons.len() < MAX_REASONS_PER_ROW {
                self.reasons.push(reason);
            } else {
                self.more_reasons += 1;
            }
        }
        reason::sort_reasons(&mut self.reasons);
    }
}

impl ComparableName {
    /// The key in reports: [`AuditRow::key`].
    fn key(&self) -> String {
        self.normalized.clone().unwrap_or_else(|| list_digest::row_key(&self.input, self.input_digest))
    }

    /// Since when these facts are known.
    fn known_since(&self) -> Option<String> {
        self.unchanged_since.as_ref().or(self.checked_at.as_ref()).cloned()
    }

    /// The last decided state: from this audit, or the most recent earlier one that decided the name.
    pub fn last_decided_state(&self) -> Option<DecidedTrustState> {
        DecidedTrustState::from_state(self.state).or_else(|| self.carried.as_ref()?.state)
    }

    /// The distinct codes of its findings, sorted by slug. Findings of a comparison with an earlier card are not
    /// included: they disappear with the next comparison although nothing changes.
    pub fn codes(&self) -> Vec<ReasonCode> {
        self.codes_where(|reason| reason.code.entry().step != ResolutionStep::Continuity)
    }

    /// The distinct codes that make it untrusted, sorted by slug.
    pub fn failures(&self) -> Vec<ReasonCode> {
        self.codes_where(|reason| reason.effect == ReasonEffect::Fail)
    }

    fn codes_where(&self, is_wanted: impl Fn(&ComparableReason) -> bool) -> Vec<ReasonCode> {
        let mut codes: Vec<ReasonCode> =
            self.reasons.iter().filter(|reason| is_wanted(reason)).map(|reason| reason.code).collect();
        codes.sort_unstable_by_key(|code| code.slug());
        codes.dedup();
        codes
    }
}

/// A report: its rows, its changes since an earlier report, and the counts of each earlier report. Unknown and
/// duplicate members are rejected.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditReportDocument<R, D = IgnoredAny, C = IgnoredAny> {
    schema: String,
    pub(super) tool: ToolVersion,
    #[serde(default)]
    pub(super) generated_at: Option<Timestamp>,
    #[serde(rename = "block_time", default)]
    _block_time: IgnoredAny,
    pub(super) complete: bool,
    pub(super) warning: Option<String>,
    pub(super) scope: AuditConditions,
    #[serde(default)]
    pub(super) list: NameListReference,
    #[serde(default)]
    pub(super) flags: Vec<String>,
    pub(super) counts: AuditCountsDocument,
    #[serde(default)]
    pub(super) waivers: AppliedWaivers,
    #[serde(default)]
    pub(super) schema_layers: Option<Vec<PublishedSchemaRow>>,
    #[serde(rename = "reasons")]
    _reasons: IgnoredAny,
    pub(super) rows: R,
    #[serde(rename = "resolution")]
    _resolution: IgnoredAny,
    #[serde(rename = "registry")]
    _registry: IgnoredAny,
    pub(super) before: Option<C>,
    #[serde(default = "Vec::new")]
    pub(super) earlier: Vec<C>,
    pub(super) since: D,
    #[serde(rename = "digest")]
    _digest: IgnoredAny,
}

impl<R, D, C> AuditReportDocument<R, D, C>
where
    R: DeserializeOwned,
    D: DeserializeOwned,
    C: DeserializeOwned,
{
    /// Reads a report, and returns it with the digest of its lines.
    pub(super) fn read(mut report: impl BufRead + Seek) -> Result<(Self, Digest), AuditReportError> {
        let digest = check_digest(&mut report)?;
        report.seek(SeekFrom::Start(0))?;
        check_members(&mut report)?;
        report.seek(SeekFrom::Start(0))?;
        Ok((serde_json::from_reader(report.take(MAX_REPORT_BYTES))?, digest))
    }
}

/// Checks the members of a report and of its rows, without keeping them.
fn check_members(report: impl BufRead) -> Result<(), AuditReportError> {
    let document: AuditReportDocument<Vec<RowMemberValidator>> =
        serde_json::from_reader(report.take(MAX_REPORT_BYTES))?;
    if document.schema == SCHEMA { Ok(()) } else { Err(AuditReportError::Schema(document.schema)) }
}

/// A row with known members and without duplicates. It takes no memory, and its values are ignored.
struct RowMemberValidator;

impl<'de> Deserialize<'de> for RowMemberValidator {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for RowMemberValidator {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut row: A) -> Result<Self, A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(member) = row.next_key::<String>()? {
            let Some(known) = MEMBERS.iter().find(|known| **known == member) else {
                return Err(A::Error::custom(format_args!("unknown field `{}` of a row", UntrustedText::new(&member))));
            };
            if !seen.insert(*known) {
                return Err(A::Error::duplicate_field(known));
            }
            row.next_value::<IgnoredAny>()?;
        }
        Ok(self)
    }
}

#[derive(Deserialize)]
pub(super) struct AuditCountsDocument {
    pub(super) listed_again: u64,
    checked: Option<CheckTimeSpan>,
}

/// Time of the first and of the last check.
#[derive(Deserialize)]
struct CheckTimeSpan {
    first: Timestamp,
    last: Timestamp,
}

/// Checks and returns the digest of the lines. Only the end of the report may follow it.
fn check_digest(report: &mut impl BufRead) -> Result<Digest, AuditReportError> {
    let mut report = report.take(MAX_REPORT_BYTES);
    let (mut lines, mut line) = (Digester::default(), Vec::new());
    let digest_line = loop {
        line.clear();
        if report.read_until(b'\n', &mut line)? == 0 {
            return Err(AuditReportError::Cut);
        }
        if let Some(digest) = line.strip_prefix(DIGEST_LINE.as_bytes()) {
            break digest;
        }
        lines.update(&line);
    };
    let counted = lines.finalize();
    let Some(written) = digest_line.strip_suffix(b"\n") else { return Err(AuditReportError::Cut) };
    if written != format!("\"{counted}\"").as_bytes() && !clresolve_core::mutant!("changed-reports") {
        let written = excerpt_text(&String::from_utf8_lossy(written));
        return Err(AuditReportError::Changed { written, counted });
    }
    let mut end = Vec::new();
    report.take(END.len() as u64 + 1).read_to_end(&mut end)?;
    match end {
        end if end == END || clresolve_core::mutant!("reports-go-on-behind-their-digest") => Ok(counted),
        end if END.starts_with(&end) => Err(AuditReportError::Cut),
        _ => Err(AuditReportError::Continued),
    }
}
