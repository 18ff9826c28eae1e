//! Completeness: what a registry lists, held against what the chain says of its names and of others.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use clresolve_core::reason::Step;
use clresolve_verdict::verdict::Verdict;

/// The registry whose names are audited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registry {
    /// Where its manifest was read, without user info, query and fragment.
    pub manifest: String,
    /// The digest of the manifest.
    pub digest: String,
    /// Whether a CID proves the manifest. Otherwise it is the word of a host or of a file.
    pub proven: bool,
    /// The number of its entries.
    pub entries: u64,
}

impl Registry {
    /// The manifest, and who vouches for it.
    pub(super) fn in_words(&self) -> String {
        let proof = if self.proven { "proven by its CID" } else { "not proven by a CID" };
        format!("{} {}, {proof}", self.manifest, self.digest)
    }
}

/// What a registry and the chain say of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The first entry of the manifest with the name, from 1; absent where none has it.
    pub entry: Option<u64>,
    /// Whether the list of names has it. The row's `line` is that of the list then.
    pub in_list: bool,
    /// What the chain says.
    pub on_chain: Presence,
}

/// Whether a name is an agent on the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// It has records of an agent.
    Agent,
    /// Nobody holds it, or it has none of these records.
    Absent,
    /// The chain could not be asked.
    #[default]
    Unknown,
}

impl Presence {
    /// What the evidence of a verdict shows.
    pub fn of(verdict: &Verdict) -> Self {
        if verdict.name.normalized.is_none() {
            return Self::Absent;
        }
        let step = verdict.steps.iter().find(|report| report.step == Step::Records);
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

/// Where registry and chain do not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Finding {
    /// The registry lists what is no agent on the chain.
    #[serde(rename = "not-on-chain")]
    AbsentOnChain,
    /// An agent on the chain has no entry in the registry.
    #[serde(rename = "not-in-registry")]
    Unlisted,
    /// Whether it is an agent could not be asked.
    #[serde(rename = "not-known")]
    Unknown,
}

impl Finding {
    /// Every finding, in the order of reports.
    pub(super) const ALL: [Self; 3] = [Self::AbsentOnChain, Self::Unlisted, Self::Unknown];

    /// What is found of a name.
    pub(super) const fn of(listing: Listing) -> Option<Self> {
        match (listing.entry, listing.on_chain) {
            (Some(_), Presence::Absent) => Some(Self::AbsentOnChain),
            (None, Presence::Agent) => Some(Self::Unlisted),
            (_, Presence::Unknown) => Some(Self::Unknown),
            (Some(_), Presence::Agent) | (None, Presence::Absent) => None,
        }
    }

    /// The member of the JSON form that counts it.
    pub(super) const fn member(self) -> &'static str {
        match self {
            Self::AbsentOnChain => "not_on_chain",
            Self::Unlisted => "not_in_registry",
            Self::Unknown => "not_known",
        }
    }

    /// What it says, of one name or of many.
    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::AbsentOnChain => "in the registry, and no agent on the chain",
            Self::Unlisted => "an agent on the chain, and not in the registry",
            Self::Unknown => "the chain could not be asked",
        }
    }
}

/// How many names have each finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistryCounts {
    agreeing: u64,
    findings: [u64; Finding::ALL.len()],
}

impl RegistryCounts {
    /// Counts a name.
    pub(super) fn add(&mut self, listing: Listing) {
        match Finding::of(listing) {
            Some(finding) => self.findings[finding as usize] += 1,
            None => self.agreeing += u64::from(listing.entry.is_some()),
        }
    }

    /// Names that are in the registry and agents on the chain.
    pub(super) const fn agreeing(&self) -> u64 {
        self.agreeing
    }

    /// Names with a finding.
    pub(super) const fn of(&self, finding: Finding) -> u64 {
        self.findings[finding as usize]
    }

    /// The counts in one sentence.
    pub(super) fn sentence(&self, registry: &Registry) -> String {
        let entries =
            if registry.entries == 1 { "1 entry".to_owned() } else { format!("{} entries", registry.entries) };
        let mut parts = vec![format!("{} on the chain as an agent", self.agreeing)];
        let found = Finding::ALL.into_iter().filter(|finding| self.of(*finding) > 0);
        parts.extend(found.map(|finding| format!("{} {}", self.of(finding), finding.in_words())));
        format!("The registry has {entries}: {}.", parts.join("; "))
    }
}
