//! An audit: its scope, its counts and how it ended.

use jiff::Timestamp;

use super::counts::AuditCounts;
use super::difference::Difference;
use super::history::PastCounts;
use super::layers::PublishedSchema;
use super::scope::{ListOfNames, Scope};
use super::waiver::Waivers;
use super::words;
use clresolve_core::state::State;
use clresolve_verdict::verdict::Tool;

/// An audit: its scope, its counts and how it ended. The caller keeps the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The program that produced the report.
    pub tool: Tool,
    /// When the report was written. `None` in reports of older versions.
    pub generated_at: Option<Timestamp>,
    /// The question and the rules.
    pub scope: Scope,
    /// The counts.
    pub counts: AuditCounts,
    /// What an incomplete report lacks. `None` if the report is complete.
    pub warning: Option<String>,
    /// What changed since an earlier report, where there is one.
    pub since: Option<Difference>,
    /// The counts of the report before: that of `since`, else the last of `earlier`.
    pub before: Option<PastCounts>,
    /// The counts of earlier reports, the oldest first; at most
    /// [`MAX_EARLIER_REPORTS`](crate::history::MAX_EARLIER_REPORTS).
    pub earlier: Vec<PastCounts>,
    /// The list that was audited.
    pub list: ListOfNames,
    /// The published schemas of the rules' layers, where they were looked at.
    pub schema_layers: Option<Vec<PublishedSchema>>,
    /// The flags that lead a command to the world of this audit, each word by itself.
    pub flags: Vec<String>,
    /// The waivers that the audit applied.
    pub waivers: Waivers,
}

impl Report {
    /// Whether the report is complete.
    pub(super) const fn is_complete(&self) -> bool {
        self.warning.is_none()
    }

    /// Time of the newest block that the audit read.
    pub(super) fn block_time(&self) -> Option<Timestamp> {
        self.counts.checked.map(|(_, last)| last)
    }

    /// What registry and chain say of the names, in one sentence; `None` where no registry is audited.
    pub(super) fn completeness(&self) -> Option<String> {
        self.scope.registry.as_ref().map(|registry| self.counts.registry.sentence(registry))
    }

    /// What was found of the schema layers, in one sentence; `None` where they were not looked at.
    pub(super) fn layers(&self) -> Option<String> {
        let schemas = self.schema_layers.as_deref()?;
        let having = |state| schemas.iter().filter(|schema| schema.state == state).count();
        let [agree, differ, unknown] = [State::Trusted, State::Untrusted, State::Indeterminate].map(having);
        Some(format!(
            "Of {} published schemas of the layers {agree} agree with their manifests, {differ} differ, and of {unknown} it is \
             not known.",
            schemas.len()
        ))
    }

    /// The schemas of which there is something to say.
    pub(super) fn schemas_with_findings(&self) -> impl Iterator<Item = &PublishedSchema> {
        self.schema_layers.iter().flatten().filter(|schema| !schema.reasons.is_empty())
    }

    /// The states in the reports before and in this one, the oldest block first: a report of an earlier block may be made
    /// later.
    pub(super) fn over_time(&self) -> Vec<PastCounts> {
        let AuditCounts { trusted, untrusted, indeterminate, checked, .. } = self.counts;
        let (generated_at, checked) = (self.generated_at, checked.map(|(first, _)| first));
        let now = PastCounts { generated_at, checked, trusted, untrusted, indeterminate };
        let mut reports: Vec<PastCounts> = self.earlier.iter().copied().chain([now]).collect();
        reports.sort_by_key(|report| report.checked);
        reports
    }

    /// The blocks that were read.
    pub(super) fn blocks(&self) -> Option<String> {
        let (first, last) = self.counts.blocks?;
        Some(if first == last { format!("block {first}") } else { format!("blocks {first} to {last}") })
    }

    /// The facts at the head of the report: labels and values.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let scope = &self.scope;
        let mut facts = vec![
            ("rules (profile)", format!("{} {}", scope.profile.id, scope.profile.digest)),
            ("depth", format!("{}: {}", scope.depth.as_str(), words::depth(scope.depth))),
            ("world", format!("{}: {}", scope.world, words::chain(&scope.chain))),
        ];
        facts.extend(scope.demands.iter().flat_map(|demands| {
            [("proof demanded", demands.in_words()), ("other settings", demands.settings.clone())]
        }));
        facts.extend(scope.registry.as_ref().map(|registry| ("registry", registry.in_words())));
        facts.extend(self.blocks().map(|blocks| ("read at", format!("{blocks} ({})", scope.block))));
        if let Some((first, last)) = self.counts.checked {
            facts.push(("block time", span(format!("{first:.0}"), format!("{last:.0}"))));
        }
        facts.extend(self.generated_at.map(|at| ("generated at", format!("{at:.0}"))));
        if self.counts.listed_again > 0 {
            facts.push(("names listed again", self.counts.listed_again.to_string()));
        }
        facts.push(("tool", format!("{} {}", self.tool.name, self.tool.version)));
        facts
    }
}

/// From `first` to `last`, which may be the same.
fn span(first: String, last: String) -> String {
    if first == last { first } else { format!("{first} to {last}") }
}
