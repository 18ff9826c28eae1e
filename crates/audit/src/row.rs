use std::io;

use serde::{Deserialize, Serialize};

use super::drift::{self, CardSourceComparison, TextRecordFix};
use super::known::{CarriedOverFacts, NameSnapshot};
use super::list_digest;
use super::on_chain::OnChainFactKind;
use super::registry::RegistryChainComparison;
use clresolve_core::digest::Digest;
use clresolve_core::reason::{Reason, ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;
use clresolve_core::text::{is_unsafe_character, truncate_bytes};
use clresolve_verdict::card::AgentCard;
use clresolve_verdict::evidence::edition::CardSuccessionFacts;
use clresolve_verdict::verdict::Verdict;

/// Maximum number of reasons kept per verdict. Honest cards have a handful of defects; hostile ones can have hundreds,
/// all of which remain in the verdict.
pub(super) const MAX_REASONS_PER_ROW: usize = 64;

/// Maximum length of a name, in bytes. No resolvable name is longer, so no valid name is truncated.
pub const MAX_NAME_BYTES: usize = 512;

/// The members of a row in the JSON form, those of [`NameSnapshot`] too.
pub(super) const MEMBERS: [&str; 22] = [
    "line",
    "input",
    "input_digest",
    "normalized",
    "state",
    "summary",
    "reasons",
    "more_reasons",
    "drift",
    "txt",
    "near_misses",
    "block",
    "checked_at",
    "conclusion",
    "edition",
    "proven",
    "served",
    "records",
    "on_chain",
    "carried",
    "unchanged_since",
    "registry",
];

/// The part of a verdict that the report keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// The line of the list, from 1. For a name that only the registry has: the number of its entry after the list's
    /// lines.
    pub line: u64,
    /// The name as written in the list, possibly truncated.
    pub input: String,
    /// The digest of the untruncated text, if `input` is truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Digest>,
    /// The normal form, if there is one.
    pub normalized: Option<String>,
    /// The state.
    pub state: TrustState,
    /// One plain sentence.
    pub summary: String,
    /// The reasons of the verdict, at most `MAX_REASONS_PER_ROW`.
    pub reasons: Vec<Reason>,
    /// The number of reasons beyond that.
    pub more_reasons: usize,
    /// The comparison of records, host, IPFS and manifest.
    pub drift: CardSourceComparison,
    /// The text records to set, if the CID proves their values.
    pub txt: Vec<TextRecordFix>,
    /// Other profiles under which the same evidence is trusted.
    pub near_misses: Vec<String>,
    /// The block at which the records were read.
    pub block: Option<u64>,
    /// The time of that block, RFC 3339.
    pub checked_at: Option<String>,
    /// `conclusion` of the verdict; `None` if the line is not a name.
    pub conclusion: Option<String>,
    /// The facts that a later audit compares.
    #[serde(flatten)]
    pub known: NameSnapshot,
    /// The parts copied from an earlier audit, because this one could not read or decide them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<CarriedOverFacts>,
    /// Since when no audit saw a change: the time of the block of the first audit with the same facts, if each later
    /// audit was given the previous report (`--since`). RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged_since: Option<String>,
    /// Comparison of registry and chain, if a registry is audited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<RegistryChainComparison>,
}

impl AuditRow {
    /// The row of the verdict on the name at `line`.
    pub fn from_verdict(line: u64, verdict: &Verdict) -> Self {
        let drift = CardSourceComparison::from_verdict(verdict);
        let (input, input_digest) = truncate_input(&verdict.name.input);
        Self {
            line,
            input,
            input_digest,
            known: NameSnapshot::from_verdict(verdict, &drift),
            carried: None,
            unchanged_since: None,
            registry: None,
            normalized: verdict.name.normalized.clone(),
            state: verdict.state,
            summary: verdict.summary.clone(),
            reasons: verdict.reasons.iter().take(MAX_REASONS_PER_ROW).cloned().collect(),
            more_reasons: verdict.reasons.len().saturating_sub(MAX_REASONS_PER_ROW),
            drift,
            txt: drift::text_record_fixes(verdict),
            near_misses: verdict.profile.near_misses.iter().map(|miss| miss.profile.clone()).collect(),
            block: verdict.anchor.as_ref().map(|anchor| anchor.block.number),
            checked_at: verdict.anchor.as_ref().map(|anchor| anchor.block.timestamp.clone()),
            conclusion: Some(verdict.conclusion.clone()),
        }
    }

    /// Adds the edition of the proven card, if there is one.
    #[must_use]
    pub fn with_card_edition(mut self, bytes: Option<&[u8]>) -> Self {
        let card = bytes.and_then(|bytes| Some((AgentCard::parse(bytes).ok()?, Digest::compute(bytes))));
        self.known.edition = card.map(|(card, digest)| CardSuccessionFacts::from_card(&card, digest));
        self
    }

    /// The row of a line that is not a name: `start` is the part to show, `whole` the digest of the text if it is
    /// longer, `why` the cause.
    pub fn from_unreadable_line(line: u64, start: &str, whole: Option<Digest>, why: &str) -> Self {
        Self {
            line,
            input: truncate_bytes(start, MAX_NAME_BYTES),
            input_digest: whole,
            normalized: None,
            state: TrustState::Untrusted,
            summary: format!("This is not an ENS name: {why}."),
            reasons: vec![Reason::new(ReasonCode::NameInvalid).observed(why)],
            more_reasons: 0,
            drift: CardSourceComparison::default(),
            txt: Vec::new(),
            near_misses: Vec::new(),
            block: None,
            checked_at: None,
            conclusion: None,
            known: NameSnapshot::default(),
            carried: None,
            unchanged_since: None,
            registry: None,
        }
    }

    /// The row of an unreadable registry, which replaces those of its names: `start` is the part of its location to
    /// show, `whole` the digest of the location if it is longer, `code` the finding and `why` the cause.
    pub fn from_unreadable_registry(
        line: u64,
        start: &str,
        whole: Option<Digest>,
        code: ReasonCode,
        why: &str,
    ) -> Self {
        let reason = Reason::new(code).observed(why);
        let is_contradicted = reason.effect == ReasonEffect::Fail;
        Self {
            state: if is_contradicted { TrustState::Untrusted } else { TrustState::Indeterminate },
            summary: format!("The registry cannot be read: {why}."),
            reasons: vec![reason],
            ..Self::from_unreadable_line(line, start, whole, why)
        }
    }

    /// The finding on the registry, if this is its row.
    pub(super) fn registry_finding_code(&self) -> Option<ReasonCode> {
        self.reasons.iter().map(|reason| reason.code).find(|code| is_registry_code(*code))
    }

    /// The name to show: the normal form, or the typed text.
    pub fn name(&self) -> &str {
        self.normalized.as_deref().unwrap_or(&self.input)
    }

    /// Whether the line is not a name and has no suggestion for one.
    pub const fn is_unreadable(&self) -> bool {
        self.conclusion.is_none()
    }

    /// The row's key in other reports.
    pub fn key(&self) -> String {
        self.normalized.clone().unwrap_or_else(|| list_digest::row_key(&self.input, self.input_digest))
    }

    /// A note if a fact on the chain was copied from the previous report; otherwise empty.
    pub(super) fn copied_fact_note(&self, fact: OnChainFactKind) -> &'static str {
        let is_carried = self.carried.as_ref().is_some_and(|carried| carried.contains_fact(fact));
        if is_carried { AS_OF_BEFORE } else { "" }
    }

    /// The entry of the registry, if only the registry has the name.
    pub(super) fn registry_only_entry(&self) -> Option<u64> {
        self.registry.filter(|listing| !listing.in_list)?.entry
    }

    /// The name's location, in words.
    pub(super) fn place_in_words(&self) -> String {
        match (self.registry_finding_code(), self.registry_only_entry()) {
            (Some(_), _) => "--registry".to_owned(),
            (None, Some(entry)) => format!("entry {entry} of the registry"),
            (None, None) => format!("line {}", self.line),
        }
    }

    /// The anchor in the page: the name if it can be one, so that it is the same in every report, otherwise the line,
    /// because invalid lines may have the same start. It needs no escaping.
    pub(super) fn anchor(&self) -> String {
        let is_letter = |c: char| !c.is_ascii() && !c.is_whitespace() && !is_unsafe_character(c);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') || is_letter(c);
        match &self.normalized {
            Some(name) if name.len() <= MAX_NAME_BYTES && name.chars().all(fits) => format!("name-{name}"),
            _ => format!("line-{}", self.line),
        }
    }

    /// The distinct codes with an effect.
    pub fn codes(&self, effect: ReasonEffect) -> Vec<ReasonCode> {
        let mut codes = Vec::new();
        for reason in self.reasons.iter().filter(|reason| reason.effect == effect) {
            if !codes.contains(&reason.code) {
                codes.push(reason.code);
            }
        }
        codes
    }

    /// Whether the report contains more about the name than the table's row.
    pub(super) fn has_details(&self) -> bool {
        self.state != TrustState::Trusted || self.drift.differs()
    }

    /// Equal for names whose findings differ only in values. `None` for a line that is not a name.
    pub(super) fn findings_digest(&self) -> Option<Digest> {
        self.normalized.as_ref().filter(|_| self.has_details())?;
        let findings: Vec<_> = self.reasons.iter().map(|reason| (reason.effect, reason.code, &reason.place)).collect();
        let kind = (self.state, findings, self.more_reasons, self.drift.agreements(), &self.near_misses);
        Some(Digest::compute(format!("{kind:?}").as_bytes()))
    }
}

/// The note on a fact copied from the previous report.
pub(super) const AS_OF_BEFORE: &str = "as of the previous report";

/// Whether a code concerns an unreadable registry.
pub(super) const fn is_registry_code(code: ReasonCode) -> bool {
    matches!(code, ReasonCode::RegistryUnreachable | ReasonCode::RegistryMalformed)
}

/// A text truncated for a row, and the digest of the whole text if it was longer.
pub fn truncate_input(text: &str) -> (String, Option<Digest>) {
    let start = truncate_bytes(text, MAX_NAME_BYTES);
    let whole = (start != text).then(|| Digest::compute(text.as_bytes()));
    (start, whole)
}

/// The rows of a report in the order of the list. They can be iterated several times.
pub trait AuditRowSource {
    /// Passes each row to `see`.
    ///
    /// # Errors
    /// If a row cannot be read, or the error of `see`.
    fn for_each_row(&self, see: &mut dyn FnMut(&AuditRow) -> io::Result<()>) -> io::Result<()>;
}

impl AuditRowSource for Vec<AuditRow> {
    fn for_each_row(&self, see: &mut dyn FnMut(&AuditRow) -> io::Result<()>) -> io::Result<()> {
        self.iter().try_for_each(see)
    }
}
