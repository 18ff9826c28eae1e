//! Completeness: compares the names that a registry lists with those that are agents on the chain.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use clresolve_core::reason::ResolutionStep;
use clresolve_verdict::verdict::Verdict;

/// The registry whose names are audited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditedRegistryManifest {
    /// The manifest's location, without user info, query and fragment.
    pub manifest: String,
    /// The digest of the manifest.
    pub digest: String,
    /// Whether a CID proves the manifest. Otherwise a host or file vouches for it.
    pub proven: bool,
    /// The number of its entries.
    pub entries: u64,
}

impl AuditedRegistryManifest {
    /// The manifest, and who vouches for it.
    pub(super) fn in_words(&self) -> String {
        let proof = if self.proven { "proven by its CID" } else { "not proven by a CID" };
        format!("{} {}, {proof}", self.manifest, self.digest)
    }
}

/// Registry and chain, for one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryChainComparison {
    /// The first entry of the manifest with the name, from 1; `None` without one.
    pub entry: Option<u64>,
    /// Whether the list contains the name. If so, the row's `line` refers to the list.
    pub in_list: bool,
    /// Whether the name is an agent on the chain.
    pub on_chain: OnChainAgentPresence,
}

/// Whether a name is an agent on the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnChainAgentPresence {
    /// The name has records of an agent.
    Agent,
    /// The name has no holder, or none of these records.
    Absent,
    /// The chain could not be read.
    #[default]
    Unknown,
}

impl OnChainAgentPresence {
    /// The presence according to a verdict's evidence.
    pub fn from_verdict(verdict: &Verdict) -> Self {
        if verdict.name.normalized.is_none() {
            return Self::Absent;
        }
        let step = verdict.steps.iter().find(|report| report.step == ResolutionStep::Records);
        match step.and_then(|step| Some((step.evidence["answer"].as_str()?, &step.evidence["records"]))) {
            None => Self::Unknown,
            Some(("records", records)) if has_agent_records(records) => Self::Agent,
            Some(_) => Self::Absent,
        }
    }
}

/// Whether a record of an agent is set, usable or not.
fn has_agent_records(records: &Value) -> bool {
    let mut records = records.as_object().into_iter().flatten();
    records.any(|(key, value)| key.starts_with("cl.") && !value.is_null())
}

/// A disagreement between registry and chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum RegistryChainMismatch {
    /// The registry lists a name that is not an agent on the chain.
    #[serde(rename = "not-on-chain")]
    AbsentOnChain,
    /// An agent on the chain is not in the registry.
    #[serde(rename = "not-in-registry")]
    Unlisted,
    /// The chain could not be read.
    #[serde(rename = "not-known")]
    Unknown,
}

impl RegistryChainMismatch {
    /// Every finding, in the order of reports.
    pub(super) const ALL: [Self; 3] = [Self::AbsentOnChain, Self::Unlisted, Self::Unknown];

    pub(super) const fn from_listing(listing: RegistryChainComparison) -> Option<Self> {
        match (listing.entry, listing.on_chain) {
            (Some(_), OnChainAgentPresence::Absent) => Some(Self::AbsentOnChain),
            (None, OnChainAgentPresence::Agent) => Some(Self::Unlisted),
            (_, OnChainAgentPresence::Unknown) => Some(Self::Unknown),
            (Some(_), OnChainAgentPresence::Agent) | (None, OnChainAgentPresence::Absent) => None,
        }
    }

    /// The member of the JSON form with the count.
    pub(super) const fn json_member(self) -> &'static str {
        match self {
            Self::AbsentOnChain => "not_on_chain",
            Self::Unlisted => "not_in_registry",
            Self::Unknown => "not_known",
        }
    }

    /// The finding in words, for one name or many.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::AbsentOnChain => "in the registry but not on the chain as an agent",
            Self::Unlisted => "on the chain as an agent but not in the registry",
            Self::Unknown => "the chain could not be read",
        }
    }
}

/// The number of names with each finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryMismatchCounts {
    agreeing: u64,
    findings: [u64; RegistryChainMismatch::ALL.len()],
}

impl RegistryMismatchCounts {
    pub(super) fn add(&mut self, listing: RegistryChainComparison) {
        match RegistryChainMismatch::from_listing(listing) {
            Some(finding) => self.findings[finding as usize] += 1,
            None => self.agreeing += u64::from(listing.entry.is_some()),
        }
    }

    /// Number of names that are in the registry and agents on the chain.
    pub(super) const fn agreeing_names(&self) -> u64 {
        self.agreeing
    }

    pub(super) const fn finding_count(&self, finding: RegistryChainMismatch) -> u64 {
        self.findings[finding as usize]
    }

    pub(super) fn summary_sentence(&self, registry: &AuditedRegistryManifest) -> String {
        let entries =
            if registry.entries == 1 { "1 entry".to_owned() } else { format!("{} entries", registry.entries) };
        let mut parts = vec![format!("{} on the chain as an agent", self.agreeing)];
        let found = RegistryChainMismatch::ALL.into_iter().filter(|finding| self.finding_count(*finding) > 0);
        parts.extend(found.map(|finding| format!("{} {}", self.finding_count(finding), finding.in_words())));
        format!("The registry has {entries}: {}.", parts.join("; "))
    }
}
