//! The scope of an audit, and its outcome.

use serde::{Deserialize, Serialize};

use super::registry::AuditedRegistryManifest;
use clresolve_core::digest::Digest;
use clresolve_core::reading::{ProofGrade, ProofGradeDemand};
use clresolve_core::text::excerpt_text;
use clresolve_verdict::verdict::{PinnedDocument, ResolutionDepth};

/// The schema identifier of the report's JSON form.
pub const SCHEMA: &str = "clresolve.audit/1";

/// The scope and rules of an audit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditConditions {
    /// `mainnet`, `sandbox`, or the name from the configuration.
    pub world: String,
    /// CAIP-2 identifier of the chain.
    pub chain: String,
    /// The block selector.
    pub block: String,
    /// The profile.
    pub profile: PinnedDocument,
    /// Its manifests.
    pub manifests: Vec<PinnedDocument>,
    /// The depth of the audit.
    pub depth: ResolutionDepth,
    /// Other settings that decide states; `None` in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demands: Option<StateDecidingSettings>,
    /// The audited registry, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<AuditedRegistryManifest>,
    /// Whether the schema layers are checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schema_layers: bool,
}

impl AuditConditions {
    /// The first part that differs from another scope, ignoring the block.
    pub fn first_difference(&self, scope: &Self) -> Option<&'static str> {
        let Self { world, chain, block: _, profile, manifests, depth, demands, registry, schema_layers } = self;
        let digest =
            |registry: &Option<AuditedRegistryManifest>| registry.as_ref().map(|registry| registry.digest.clone());
        let proof =
            |demands: &Option<StateDecidingSettings>| demands.as_ref().map(|demands| (demands.proof, demands.agree));
        let same = [
            ("world", *world == scope.world),
            ("chain", *chain == scope.chain),
            ("profile", *profile == scope.profile),
            ("set of manifests", *manifests == scope.manifests),
            ("depth", *depth == scope.depth),
            ("demanded proof", proof(demands) == proof(&scope.demands)),
            ("set of rules", *demands == scope.demands),
            ("registry", digest(registry) == digest(&scope.registry)),
            ("set of checks", *schema_layers == scope.schema_layers),
        ];
        same.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
    }
}

/// The settings besides profile and depth that decide states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateDecidingSettings {
    /// The required proof of each chain response.
    pub proof: ProofGrade,
    /// Number of endpoints of different operators that must agree on the response, or on the header against which it
    /// is proven. 0 if the light client alone proves the header.
    pub agree: usize,
    /// The digest of the other settings that affect states and findings.
    pub settings: String,
}

impl StateDecidingSettings {
    /// The settings for the configured proof.
    pub fn from_grade_demand(proof: ProofGradeDemand, settings: String) -> Self {
        let (proof, agree) = match proof {
            ProofGradeDemand::SingleRpc => (ProofGrade::SingleRpc, 1),
            ProofGradeDemand::Quorum(agree) => (ProofGrade::Quorum, agree),
            ProofGradeDemand::StateProof(agree) => (ProofGrade::StateProof, agree),
            ProofGradeDemand::ConsensusProof(agree) => (ProofGrade::ConsensusProof, agree),
        };
        Self { proof, agree, settings }
    }

    pub(super) fn in_words(&self) -> String {
        let Self { proof, agree, .. } = self;
        match proof {
            ProofGrade::Quorum => format!("quorum: {agree} endpoints of different operators agree"),
            ProofGrade::StateProof if *agree > 1 => {
                format!("state-proof: computed from proven state, under a header that {agree} endpoints have")
            }
            ProofGrade::StateProof => "state-proof: computed from proven state, under one endpoint's header".to_owned(),
            ProofGrade::ConsensusProof if *agree > 0 => format!(
                "consensus-proof: computed from proven state, under a header that validators signed and {agree} \
                 endpoints have"
            ),
            ProofGrade::ConsensusProof => {
                "consensus-proof: computed from proven state, under a header that validators signed".to_owned()
            }
            _ => "single-rpc: one endpoint's word".to_owned(),
        }
    }
}

/// The audited list, as named in the report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameListReference {
    /// The file with the names, as a URI reference. `None` if the names came from standard input.
    pub file: Option<String>,
    /// The digest of the list ([`ListDigester`](crate::list_digest::ListDigester)). `None` if the audit did not read
    /// the list to its end.
    pub digest: Option<Digest>,
}

/// How an audit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditEnding {
    /// Every name has a row.
    Complete,
    /// Interrupted: later names have no row, or the schema layers were not completely checked.
    Interrupted,
    /// The list of names could not be read completely.
    ListFailed(String),
    /// The disk is full. Later names have no row.
    DiskFull(String),
    /// The registry could not be read, which a row reports. Its names are unknown.
    RegistryUnread(String),
}

impl AuditEnding {
    /// Whether every name that could be read has a row.
    pub const fn has_all_rows(&self) -> bool {
        matches!(self, Self::Complete | Self::RegistryUnread(_))
    }

    /// The warning of an incomplete report.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some("The audit was interrupted: later names or schemas are missing.".to_owned()),
            Self::ListFailed(why) => Some(format!("Later names of the list are missing: {}.", excerpt_text(why))),
            Self::DiskFull(why) => Some(format!(
                "No more rows could be kept, so later names of the list are missing: {}.",
                excerpt_text(why)
            )),
            Self::RegistryUnread(why) => Some(format!("The names of the registry are missing: {}.", excerpt_text(why))),
        }
    }
}
