//! An audit: its scope, its counts and how it ended.

use serde::{Deserialize, Serialize};

use super::counts::AuditCounts;
use super::difference::Difference;
use super::history::PastCounts;
use super::layers::PublishedSchema;
use super::scope::{Ending, Scope};
use super::words;
use clresolve_core::digest::Digest;
use clresolve_core::state::State;
use clresolve_verdict::verdict::Tool;

/// An audit: its scope, its counts and how it ended. The caller keeps the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The question and the rules.
    pub scope: Scope,
    /// The counts.
    pub counts: AuditCounts,
    /// How the audit ended.
    pub ending: Ending,
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
}

/// The list of an audit, as its report names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOfNames {
    /// The file of the names, as a URI reference; absent where they came from standard input.
    pub file: Option<String>,
    /// The digest of all that was asked for ([`super::list_digest::ListDigester`]); absent where the list was not read to its end.
    pub digest: Option<Digest>,
}

impl Report {
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
        let now = PastCounts { checked: checked.map(|(first, _)| first), trusted, untrusted, indeterminate };
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
            facts.push(("checked", span(format!("{first:.0}"), format!("{last:.0}"))));
        }
        if self.counts.listed_again > 0 {
            facts.push(("names listed again", self.counts.listed_again.to_string()));
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
