//! The counts over all rows.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use super::registry::RegistryMismatchCounts;
use super::row::AuditRow;
use clresolve_core::digest::Digest;
use clresolve_core::reason::{ReasonCode, ReasonEffect};
use clresolve_core::state::TrustState;

/// Maximum number of example names per reason. The rows contain all.
pub(super) const EXAMPLES_PER_REASON: usize = 5;

/// Maximum number of distinct sets of findings by which the report groups names. A registry has a handful, since many
/// cards share a mistake. Names with further sets are not grouped.
pub(super) const MAX_KINDS_OF_FINDINGS: usize = 256;

/// Maximum number of names listed for shared findings. The table of names has all.
pub(super) const NAMES_PER_FINDING: usize = 40;

/// The counts over all rows. Their size does not grow with the number of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditCounts {
    /// Names with a row.
    pub names: u64,
    /// Lines, and entries of the registry, that repeat a name.
    pub listed_again: u64,
    /// Those that are trusted.
    pub trusted: u64,
    /// Those that are untrusted.
    pub untrusted: u64,
    /// Those that could not be decided.
    pub indeterminate: u64,
    /// Names of which two sources differ.
    pub drifting: u64,
    /// Names for which the holder, or the holder of the name in `cl.owner`, cannot be read.
    pub holder_unreadable: u64,
    /// Comparison of a registry with the chain.
    pub registry: RegistryMismatchCounts,
    /// Names that would be trusted under another profile, by its identifier.
    pub near_misses: BTreeMap<String, u64>,
    /// The lowest and the highest block read.
    pub blocks: Option<(u64, u64)>,
    /// The times of the first and the last block.
    pub checked: Option<(Timestamp, Timestamp)>,
    groups: BTreeMap<(ReasonEffect, ReasonCode), ReasonSummary>,
    pub(super) alike: BTreeMap<Digest, SameFindingsGroup>,
}

/// Names whose findings differ only in values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameFindingsGroup {
    /// The line of the first name.
    pub line: u64,
    /// Their number.
    pub names: u64,
    /// The names after the first, at most [`NAMES_PER_FINDING`].
    pub others: Vec<String>,
}

/// The names that share a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasonSummary {
    /// The code.
    pub code: ReasonCode,
    /// The effect on the state.
    pub effect: ReasonEffect,
    /// The number of names with this reason.
    pub names: u64,
    /// The first names, at most `EXAMPLES_PER_REASON`.
    pub examples: Vec<String>,
}

impl AuditCounts {
    /// Counts a row.
    pub fn add(&mut self, row: &AuditRow) {
        self.names += 1;
        match row.state {
            TrustState::Trusted => self.trusted += 1,
            TrustState::Untrusted => self.untrusted += 1,
            TrustState::Indeterminate => self.indeterminate += 1,
        }
        self.drifting += u64::from(row.drift.differs());
        let is_unreadable = row.reasons.iter().any(|reason| reason.code == ReasonCode::HolderUnreadable);
        self.holder_unreadable += u64::from(is_unreadable);
        if let Some(listing) = row.registry {
            self.registry.add(listing);
        }
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
        for effect in [ReasonEffect::Fail, ReasonEffect::Unknown, ReasonEffect::Warn] {
            for code in row.codes(effect) {
                self.reason_summary_mut(effect, code).add_name(row.name());
            }
        }
        if let Some(kind) = row.findings_digest() {
            self.count_same_findings(kind, row);
        }
    }

    fn count_same_findings(&mut self, kind: Digest, row: &AuditRow) {
        if let Some(alike) = self.alike.get_mut(&kind) {
            alike.names += 1;
            if alike.others.len() < NAMES_PER_FINDING {
                alike.others.push(row.name().to_owned());
            }
        } else if self.alike.len() < MAX_KINDS_OF_FINDINGS {
            self.alike.insert(kind, SameFindingsGroup { line: row.line, names: 1, others: Vec::new() });
        }
    }

    /// The names with the same findings as an already counted row.
    pub fn same_findings(&self, row: &AuditRow) -> Option<&SameFindingsGroup> {
        self.alike.get(&row.findings_digest()?)
    }

    fn reason_summary_mut(&mut self, effect: ReasonEffect, code: ReasonCode) -> &mut ReasonSummary {
        self.groups.entry((effect, code)).or_insert_with(|| ReasonSummary {
            code,
            effect,
            names: 0,
            examples: Vec::new(),
        })
    }

    /// The names grouped by reason, ordered by effect and then by frequency.
    pub fn sorted_summaries(&self) -> Vec<&ReasonSummary> {
        let mut groups: Vec<&ReasonSummary> = self.groups.values().collect();
        groups.sort_by_key(|group| (group.effect, std::cmp::Reverse(group.names), group.code.slug()));
        groups
    }
}

impl ReasonSummary {
    fn add_name(&mut self, name: &str) {
        self.names += 1;
        if self.examples.len() < EXAMPLES_PER_REASON {
            self.examples.push(name.to_owned());
        }
    }
}
