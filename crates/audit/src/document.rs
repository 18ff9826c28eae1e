//! An audit's scope, counts and outcome.

use jiff::Timestamp;

use super::counts::AuditCounts;
use super::difference::AuditDifference;
use super::history::ReportStateCounts;
use super::layers::PublishedSchemaRow;
use super::scope::{AuditConditions, NameListReference};
use super::waiver::AppliedWaivers;
use super::words;
use clresolve_core::state::TrustState;
use clresolve_verdict::verdict::ToolVersion;

/// An audit's scope, counts and outcome. The caller keeps the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditReport {
    /// The program that produced the report.
    pub tool: ToolVersion,
    /// When the report was written. `None` in reports of older versions.
    pub generated_at: Option<Timestamp>,
    /// The scope and the rules.
    pub scope: AuditConditions,
    /// The counts.
    pub counts: AuditCounts,
    /// What an incomplete report lacks. `None` if the report is complete.
    pub warning: Option<String>,
    /// The changes since an earlier report, if one was given.
    pub since: Option<AuditDifference>,
    /// The counts of the previous report: that of `since`, otherwise the last of `earlier`.
    pub before: Option<ReportStateCounts>,
    /// The counts of earlier reports, oldest first, at most
    /// [`MAX_EARLIER_REPORTS`](crate::history::MAX_EARLIER_REPORTS).
    pub earlier: Vec<ReportStateCounts>,
    /// The audited list.
    pub list: NameListReference,
    /// The published schemas of the layers, if they were checked.
    pub schema_layers: Option<Vec<PublishedSchemaRow>>,
    /// The command-line flags that select this audit's network, one word each.
    pub flags: Vec<String>,
    /// The waivers applied.
    pub waivers: AppliedWaivers,
}

impl AuditReport {
    pub(super) const fn is_complete(&self) -> bool {
        self.warning.is_none()
    }

    pub(super) fn last_block_time(&self) -> Option<Timestamp> {
        self.counts.checked.map(|(_, last)| last)
    }

    /// One sentence that compares registry and chain; `None` if no registry is audited.
    pub(super) fn registry_sentence(&self) -> Option<String> {
        self.scope.registry.as_ref().map(|registry| self.counts.registry.summary_sentence(registry))
    }

    /// One sentence on the schema layers; `None` if they were not checked.
    pub(super) fn layers_sentence(&self) -> Option<String> {
        let schemas = self.schema_layers.as_deref()?;
        let having = |state| schemas.iter().filter(|schema| schema.state == state).count();
        let [agree, differ, unknown] =
            [TrustState::Trusted, TrustState::Untrusted, TrustState::Indeterminate].map(having);
        Some(format!(
            "Published schemas of the layers: {}. Matching their manifests: {agree}, \
             different: {differ}, unknown: {unknown}.",
            schemas.len()
        ))
    }

    pub(super) fn schemas_with_findings(&self) -> impl Iterator<Item = &PublishedSchemaRow> {
        self.schema_layers.iter().flatten().filter(|schema| !schema.reasons.is_empty())
    }

    /// The counts of the earlier reports and this one, ordered by block, because a report on an earlier block may have
    /// been written later.
    pub(super) fn counts_over_time(&self) -> Vec<ReportStateCounts> {
        let AuditCounts { trusted, untrusted, indeterminate, checked, .. } = self.counts;
        let (generated_at, checked) = (self.generated_at, checked.map(|(first, _)| first));
        let now = ReportStateCounts { generated_at, checked, trusted, untrusted, indeterminate };
        let mut reports: Vec<ReportStateCounts> = self.earlier.iter().copied().chain([now]).collect();
        reports.sort_by_key(|report| report.checked);
        reports
    }

    /// The range of blocks read.
    pub(super) fn block_range_text(&self) -> Option<String> {
        let (first, last) = self.counts.blocks?;
        Some(if first == last { format!("block {first}") } else { format!("blocks {first} to {last}") })
    }

    /// Labels and values for the head of the report.
    pub(super) fn labelled_facts(&self) -> Vec<(&'static str, String)> {
        let scope = &self.scope;
        let mut facts = vec![
            ("rules (profile)", format!("{} {}", scope.profile.id, scope.profile.digest)),
            ("depth", format!("{}: {}", scope.depth.as_str(), words::depth_phrase(scope.depth))),
            ("network", format!("{}: {}", scope.world, words::chain_label(&scope.chain))),
        ];
        facts.extend(scope.demands.iter().flat_map(|demands| {
            [("proof demanded", demands.in_words()), ("other settings", demands.settings.clone())]
        }));
        facts.extend(scope.registry.as_ref().map(|registry| ("registry", registry.in_words())));
        facts.extend(self.block_range_text().map(|blocks| ("read at", format!("{blocks} ({})", scope.block))));
        if let Some((first, last)) = self.counts.checked {
            facts.push(("block time", range_text(format!("{first:.0}"), format!("{last:.0}"))));
        }
        facts.extend(self.generated_at.map(|at| ("generated at", format!("{at:.0}"))));
        if self.counts.listed_again > 0 {
            facts.push(("names listed again", self.counts.listed_again.to_string()));
        }
        facts.push(("tool", format!("{} {}", self.tool.name, self.tool.version)));
        facts
    }
}

/// A range, or one value if `first` and `last` are equal.
fn range_text(first: String, last: String) -> String {
    if first == last { first } else { format!("{first} to {last}") }
}
