//! The audit report: many verdicts in, one document out. Pure.
//!
//! A verdict becomes a [`Row`]. The [`Tally`] counts it, and the caller keeps it ([`Rows`]), so that memory does not
//! grow with the number of names. [`Report::write`] writes the document. [`Past`] reads one again, and [`Difference`] says
//! what changed between two of them, which are in memory.

mod csv;
pub mod difference;
pub mod drift;
mod duty;
pub mod governance_log;
pub mod history;
mod html;
mod json;
mod junit;
mod known;
pub mod log_check;
mod log_words;
mod markdown;
pub mod merge;
mod on_chain;
mod overview;
mod page;
pub mod past;
pub mod payload;
mod registry;
mod resolution;
mod sarif;
pub mod shard;
mod upstreams;

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use self::difference::Difference;
pub use self::drift::{Agreement, Drift, TxtLine};
pub use self::history::PastCounts;
pub use self::known::{Carried, Decided, Known, SeenCard};
pub use self::on_chain::OnChain;
pub use self::past::{Past, PastError, PastName};
pub use self::registry::{Listing, Presence, Registry, RegistryCounts};
pub use self::resolution::Draft;
pub use self::shard::Shard;
pub use self::upstreams::UpstreamCounts;
use crate::card::Card;
use crate::check::edition;
use crate::digest::Digest;
use crate::evidence::edition::Edition;
use crate::reason;
use crate::reason::{Code, Effect, Fixer, Reason};
use crate::text::{clipped, excerpt};
use crate::verdict::{Depth, Pinned, State, Tool, Verdict};
use clresolve_verdict::agreement::UpstreamAgreement;

/// The schema identifier of the report's JSON form.
pub const SCHEMA: &str = "clresolve.audit/1";

/// Most reasons of one verdict that the report keeps. An honest card has a handful of defects. A hostile one can have
/// hundreds, and its verdict still holds all of them.
pub const MAX_REASONS_PER_ROW: usize = 64;

/// Longest name of a row, in bytes: longer than any name that can be resolved, so that no valid name is cut.
pub const MAX_NAME_BYTES: usize = 512;

/// Most names that the report shows as examples of one reason. The rows hold all.
pub const EXAMPLES_PER_REASON: usize = 5;

/// Most sets of findings by which the report groups names. A registry has a handful, by the same mistake in many cards.
/// Further names are not grouped.
pub const MAX_KINDS_OF_FINDINGS: usize = 256;

/// Most names that are listed beside shared findings. The table of names has all.
pub const NAMES_PER_FINDING: usize = 40;

/// An audit: its scope, its counts and how it ended. The caller keeps the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The question and the rules.
    pub scope: Scope,
    /// The counts.
    pub tally: Tally,
    /// How the audit ended.
    pub ending: Ending,
    /// What changed since an earlier report, where there is one.
    pub since: Option<Difference>,
    /// The part of the list that was audited, where it is not the whole.
    pub shard: Option<Shard>,
    /// The counts of the report before: that of `since`, else the last of `earlier`.
    pub before: Option<PastCounts>,
    /// The counts of earlier reports, the oldest first; at most [`history::MAX_EARLIER_REPORTS`].
    pub earlier: Vec<PastCounts>,
    /// The list that was audited.
    pub list: ListOfNames,
    /// The flags that lead a command to the world of this audit.
    pub flags: Vec<String>,
}

/// The list of an audit, as its report names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOfNames {
    /// The file of the names, as a URI reference; absent where they came from standard input.
    pub file: Option<String>,
    /// The digest of all that was asked for ([`shard::ListDigester`]); absent where the list was not read to its end.
    pub digest: Option<Digest>,
}

/// The question and the rules of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// `mainnet`, `sandbox`, or what the configuration names.
    pub world: String,
    /// CAIP-2 identifier of the chain.
    pub chain: String,
    /// The block selector.
    pub block: String,
    /// The profile.
    pub profile: Pinned,
    /// Its manifests.
    pub manifests: Vec<Pinned>,
    /// How deep the walk went.
    pub depth: Depth,
    /// The registry whose names are audited, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<Registry>,
    /// Whether every endpoint and every gateway is asked about each name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agreement: bool,
}

/// How an audit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every name has its row.
    Complete,
    /// It was interrupted. Later names have no row.
    Interrupted,
    /// The list of names could not be read to the end.
    ListFailed(String),
    /// The reports of these shards are incomplete.
    ShardsCut(Vec<u16>),
}

impl Ending {
    /// The warning of an incomplete report.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some("The audit was interrupted: later names of the list are missing.".to_owned()),
            Self::ListFailed(why) => Some(format!("Later names of the list are missing: {}.", excerpt(why))),
            Self::ShardsCut(shards) => {
                let shards: Vec<String> = shards.iter().map(u16::to_string).collect();
                Some(format!("Later names of the shards {} are missing.", shards.join(", ")))
            }
        }
    }
}

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people and repositories.
    Markdown,
    /// For programs: `schemas/audit.schema.json`.
    Json,
    /// A row per name, for spreadsheets.
    Csv,
    /// One page without external resources, for people and printers. It is complete without its script.
    Html,
    /// SARIF 2.1.0 (OASIS), for code hosts.
    Sarif,
    /// JUnit's XML, for continuous integration.
    Junit,
}

/// The rows of a report, in the order of the list. They can be read several times.
pub trait Rows {
    /// Passes each row to `see`.
    ///
    /// # Errors
    /// If a row cannot be read, or the error of `see`.
    fn each(&self, see: &mut dyn FnMut(&Row) -> io::Result<()>) -> io::Result<()>;
}

impl Rows for [Row] {
    fn each(&self, see: &mut dyn FnMut(&Row) -> io::Result<()>) -> io::Result<()> {
        self.iter().try_for_each(see)
    }
}

impl Report {
    /// Writes the report, with its `rows`, in a form.
    ///
    /// # Errors
    /// If a row cannot be read or `out` cannot be written.
    pub fn write(&self, format: Format, rows: &dyn Rows, out: &mut dyn Write) -> io::Result<()> {
        match format {
            Format::Markdown => markdown::write(self, rows, out),
            Format::Json => json::write(self, rows, out),
            Format::Csv => csv::write(self, rows, out),
            Format::Html => html::write(self, rows, out),
            Format::Sarif => sarif::write(self, rows, out),
            Format::Junit => junit::write(self, rows, out),
        }
    }

    /// The facts at the head of the report: labels and values.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let scope = &self.scope;
        let depth = match scope.depth {
            Depth::Identity => "identity (no schema was fetched)",
            Depth::Schemas => "schemas",
        };
        let mut facts = vec![
            ("profile", format!("{} {}", scope.profile.id, scope.profile.digest)),
            ("depth", depth.to_owned()),
            ("world", format!("{} {}", scope.world, scope.chain)),
        ];
        if let Some(shard) = self.shard {
            facts.push(("shard", shard.to_string()));
        }
        facts.extend(scope.registry.as_ref().map(|registry| ("registry", registry.in_words())));
        if let Some((first, last)) = self.tally.blocks {
            let blocks = span(first.to_string(), last.to_string());
            facts.push(("blocks", format!("{blocks} ({})", scope.block)));
        }
        if let Some((first, last)) = self.tally.checked {
            facts.push(("checked", span(format!("{first:.0}"), format!("{last:.0}"))));
        }
        if self.tally.listed_again > 0 {
            facts.push(("names listed again", self.tally.listed_again.to_string()));
        }
        let tool = Tool::default();
        facts.push(("tool", format!("{} {}", tool.name, tool.version)));
        facts
    }
}

/// From `first` to `last`, which may be the same.
fn span(first: String, last: String) -> String {
    if first == last { first } else { format!("{first} to {last}") }
}

/// The part of a verdict that the report keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The line of the list, from 1. Where only the registry has the name, the number of its entry after the lines of the
    /// list.
    pub line: u64,
    /// The name as it is written there, or its start.
    pub input: String,
    /// The digest of what is written there, where `input` is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Digest>,
    /// Its normal form; absent if it has none.
    pub normalized: Option<String>,
    /// The state.
    pub state: State,
    /// One plain sentence.
    pub summary: String,
    /// The reasons of the verdict, at most [`MAX_REASONS_PER_ROW`].
    pub reasons: Vec<Reason>,
    /// How many more the verdict has.
    pub more_reasons: usize,
    /// Which of record, host, IPFS and manifest agree.
    pub drift: Drift,
    /// The text records to set, if the CID proves their values.
    pub txt: Vec<TxtLine>,
    /// Other profiles under which the same evidence is trusted.
    pub near_misses: Vec<String>,
    /// The block at which the records were read.
    pub block: Option<u64>,
    /// The time of that block, RFC 3339.
    pub checked_at: Option<String>,
    /// `conclusion` of the verdict; absent if the line could not be read as a name.
    pub conclusion: Option<String>,
    /// What a later audit is compared with.
    #[serde(flatten)]
    pub known: Known,
    /// What of it is of an earlier audit, because this one could not read or decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
    /// What registry and chain say of it, where a registry is audited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<Listing>,
    /// What each endpoint and each gateway says of it, where they are asked. The state does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<UpstreamAgreement>,
}

impl Row {
    /// The row of the verdict on the name at `line`.
    pub fn of(line: u64, verdict: &Verdict) -> Self {
        let drift = Drift::of(verdict);
        let (input, input_digest) = shard::kept(&verdict.name.input);
        Self {
            line,
            input,
            input_digest,
            known: Known::of(verdict, &drift),
            carried: None,
            registry: None,
            agreement: None,
            normalized: verdict.name.normalized.clone(),
            state: verdict.state,
            summary: verdict.summary.clone(),
            reasons: verdict.reasons.iter().take(MAX_REASONS_PER_ROW).cloned().collect(),
            more_reasons: verdict.reasons.len().saturating_sub(MAX_REASONS_PER_ROW),
            drift,
            txt: drift::fixing_lines(verdict),
            near_misses: verdict.profile.near_misses.iter().map(|miss| miss.profile.clone()).collect(),
            block: verdict.anchor.as_ref().map(|anchor| anchor.block.number),
            checked_at: verdict.anchor.as_ref().map(|anchor| anchor.block.timestamp.clone()),
            conclusion: Some(verdict.conclusion.clone()),
        }
    }

    /// The row with the proven card, where there is one.
    #[must_use]
    pub fn with_card(mut self, bytes: Option<&[u8]>) -> Self {
        let card = bytes.and_then(|bytes| Some((Card::parse(bytes).ok()?, Digest::of(bytes))));
        self.known.edition = card.map(|(card, digest)| Edition::of(&card, digest));
        self
    }

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

    /// The row of a line that cannot be read as a name: `start` is the part to show, `whole` the digest of all where that is
    /// more, `why` the cause.
    pub fn unreadable(line: u64, start: &str, whole: Option<Digest>, why: &str) -> Self {
        Self {
            line,
            input: clipped(start, MAX_NAME_BYTES),
            input_digest: whole,
            normalized: None,
            state: State::Untrusted,
            summary: format!("This is not an ENS name: {why}."),
            reasons: vec![Reason::new(Code::NameInvalid).observed(why)],
            more_reasons: 0,
            drift: Drift::default(),
            txt: Vec::new(),
            near_misses: Vec::new(),
            block: None,
            checked_at: None,
            conclusion: None,
            known: Known::default(),
            carried: None,
            registry: None,
            agreement: None,
        }
    }

    /// The name to show: its normal form, or what was typed.
    pub fn name(&self) -> &str {
        self.normalized.as_deref().unwrap_or(&self.input)
    }

    /// Whether the line could not be read as a name, or as what may be meant for one.
    pub const fn is_unreadable(&self) -> bool {
        self.conclusion.is_none()
    }

    /// What the row is known by in other reports, and by which it is in one shard.
    pub fn key(&self) -> String {
        self.normalized.clone().unwrap_or_else(|| shard::key(&self.input, self.input_digest))
    }

    /// The entry of the registry that alone has the name.
    fn entry(&self) -> Option<u64> {
        self.registry.filter(|listing| !listing.in_list)?.entry
    }

    /// Where the name stands, in words.
    fn place(&self) -> String {
        match self.entry() {
            Some(entry) => format!("entry {entry} of the registry"),
            None => format!("line {}", self.line),
        }
    }

    /// The codes of an effect, each once.
    pub fn codes(&self, effect: Effect) -> Vec<Code> {
        let mut codes = Vec::new();
        for reason in self.reasons.iter().filter(|reason| reason.effect == effect) {
            if !codes.contains(&reason.code) {
                codes.push(reason.code);
            }
        }
        codes
    }

    /// Whether the report has more to say about the name than the row of the table.
    fn has_findings(&self) -> bool {
        self.state != State::Trusted || self.drift.differs()
    }

    /// A digest that names share if their findings differ only in values. A line that is not a name has none.
    fn kind_of_findings(&self) -> Option<Digest> {
        self.normalized.as_ref().filter(|_| self.has_findings())?;
        let findings: Vec<_> =
            self.reasons.iter().map(|reason| (reason.effect, reason.code, &reason.place)).collect();
        let kind = (self.state, findings, self.more_reasons, self.drift.agreements(), &self.near_misses);
        Some(Digest::of(format!("{kind:?}").as_bytes()))
    }
}

/// The counts over all rows. Its size does not grow with their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Names with a row.
    pub names: u64,
    /// Lines, and entries of the registry, that list a name again.
    pub listed_again: u64,
    /// Those that are trusted.
    pub trusted: u64,
    /// Those that are untrusted.
    pub untrusted: u64,
    /// Those that could not be decided.
    pub indeterminate: u64,
    /// Those with two sources that differ.
    pub drifting: u64,
    /// What a registry and the chain say of them.
    pub registry: RegistryCounts,
    /// What each endpoint and each gateway says of them.
    pub upstreams: UpstreamCounts,
    /// Those that would be trusted under another profile, by its identifier.
    pub near_misses: BTreeMap<String, u64>,
    /// The lowest and the highest block that was read.
    pub blocks: Option<(u64, u64)>,
    /// The times of the first and the last block.
    pub checked: Option<(Timestamp, Timestamp)>,
    groups: BTreeMap<(Effect, Code), Group>,
    alike: BTreeMap<Digest, Alike>,
}

/// Names whose findings differ only in values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// The line of the first of them.
    pub line: u64,
    /// Their number.
    pub names: u64,
    /// Those after the first, at most [`NAMES_PER_FINDING`].
    pub others: Vec<String>,
}

/// The names that share a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The code.
    pub code: Code,
    /// The effect on the state.
    pub effect: Effect,
    /// The number of names with this reason.
    pub names: u64,
    /// The first of them, at most [`EXAMPLES_PER_REASON`].
    pub examples: Vec<String>,
}

impl Tally {
    /// Counts a row.
    pub fn add(&mut self, row: &Row) {
        self.names += 1;
        match row.state {
            State::Trusted => self.trusted += 1,
            State::Untrusted => self.untrusted += 1,
            State::Indeterminate => self.indeterminate += 1,
        }
        self.drifting += u64::from(row.drift.differs());
        self.registry.add(row);
        self.upstreams.add(row);
        for profile in &row.near_misses {
            *self.near_misses.entry(profile.clone()).or_default() += 1;
        }
        if let Some(block) = row.block {
            let (first, last) = self.blocks.unwrap_or((block, block));
            self.blocks = Some((first.min(block), last.max(block)));
        }
        if let Some(at) = row.checked_at.as_ref().and_then(|at| at.parse::<Timestamp>().ok()) {
            let (first, last) = self.checked.unwrap_or((at, at));
            self.checked = Some((first.min(at), last.max(at)));
        }
        for effect in [Effect::Fail, Effect::Unknown, Effect::Warn] {
            for code in row.codes(effect) {
                self.group(effect, code).count(row.name());
            }
        }
        if let Some(kind) = row.kind_of_findings() {
            self.count_alike(kind, row);
        }
    }

    fn count_alike(&mut self, kind: Digest, row: &Row) {
        if let Some(alike) = self.alike.get_mut(&kind) {
            alike.names += 1;
            if alike.others.len() < NAMES_PER_FINDING {
                alike.others.push(row.name().to_owned());
            }
        } else if self.alike.len() < MAX_KINDS_OF_FINDINGS {
            self.alike.insert(kind, Alike { line: row.line, names: 1, others: Vec::new() });
        }
    }

    /// The names whose findings are like those of a row that was counted.
    pub fn alike(&self, row: &Row) -> Option<&Alike> {
        self.alike.get(&row.kind_of_findings()?)
    }

    fn group(&mut self, effect: Effect, code: Code) -> &mut Group {
        self.groups.entry((effect, code)).or_insert_with(|| Group { code, effect, names: 0, examples: Vec::new() })
    }

    /// The names by reason: by effect, then the most frequent first.
    pub fn groups(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by_key(|group| (group.effect, std::cmp::Reverse(group.names), group.code.slug()));
        groups
    }
}

impl Group {
    fn count(&mut self, name: &str) {
        self.names += 1;
        if self.examples.len() < EXAMPLES_PER_REASON {
            self.examples.push(name.to_owned());
        }
    }
}

/// The slugs of codes.
fn slugs(codes: &[Code], separator: &str) -> String {
    codes.iter().map(|code| code.slug()).collect::<Vec<_>>().join(separator)
}

/// The rules behind reasons, without duplicates.
fn rules<'a>(reasons: impl IntoIterator<Item = &'a Reason>) -> Vec<&'a str> {
    let mut rules: Vec<&str> = reasons.into_iter().filter_map(|reason| reason.requirement.as_deref()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// The word for an effect.
const fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Fail => "fail",
        Effect::Unknown => "unknown",
        Effect::Warn => "warn",
    }
}

/// Who can fix a reason.
const fn fixer(code: Code) -> &'static str {
    role(code.entry().fixer)
}

/// The word for who can fix reasons.
const fn role(fixer: Fixer) -> &'static str {
    match fixer {
        Fixer::Asker => "asker",
        Fixer::Publisher => "publisher",
        Fixer::Operator => "operator",
    }
}

#[cfg(test)]
mod tests;
