//! What an audit was about, and how it ended.

use serde::{Deserialize, Serialize};

use super::registry::Registry;
use clresolve_core::digest::Digest;
use clresolve_core::reading::{Grade, GradeDemand};
use clresolve_core::text::excerpt;
use clresolve_verdict::verdict::{Depth, Pinned};

/// The schema identifier of the report's JSON form.
pub const SCHEMA: &str = "clresolve.audit/1";

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
    /// What else decides states; absent in a report of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demands: Option<Demands>,
    /// The registry whose names are audited, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<Registry>,
    /// Whether the schema layers are looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub schema_layers: bool,
}

impl Scope {
    /// Which part of another scope differs from this one; the block does not count.
    pub fn other_part(&self, scope: &Self) -> Option<&'static str> {
        let Self { world, chain, block: _, profile, manifests, depth, demands, registry, schema_layers } = self;
        let digest = |registry: &Option<Registry>| registry.as_ref().map(|registry| registry.digest.clone());
        let proof = |demands: &Option<Demands>| demands.as_ref().map(|demands| (demands.proof, demands.agree));
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

/// What decides states beside the profile and the depth.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demands {
    /// The proof that each answer of the chain must have.
    pub proof: Grade,
    /// How many endpoints of different operators must agree: on the answer, or on the header that it is proven against.
    pub agree: usize,
    /// The digest of the other settings that decide states and findings.
    pub settings: String,
}

impl Demands {
    /// These settings, under the proof that the configuration demands.
    pub fn of(proof: GradeDemand, settings: String) -> Self {
        let (proof, agree) = match proof {
            GradeDemand::SingleRpc => (Grade::SingleRpc, 1),
            GradeDemand::Quorum(agree) => (Grade::Quorum, agree),
            GradeDemand::StateProof(agree) => (Grade::StateProof, agree),
        };
        Self { proof, agree, settings }
    }

    /// The proof, in words.
    pub(super) fn in_words(&self) -> String {
        let Self { proof, agree, .. } = self;
        match proof {
            Grade::Quorum => format!("quorum: {agree} endpoints of different operators say the same"),
            Grade::StateProof if *agree > 1 => {
                format!("state-proof: computed from proven state, under a header that {agree} endpoints have")
            }
            Grade::StateProof => "state-proof: computed from proven state, under one endpoint's header".to_owned(),
            _ => "single-rpc: one endpoint's word".to_owned(),
        }
    }
}

/// The list of an audit, as its report names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOfNames {
    /// The file with the names, as a URI reference. `None` if the names came from standard input.
    pub file: Option<String>,
    /// The digest of the list ([`ListDigester`](crate::list_digest::ListDigester)). `None` if the audit did not read
    /// the list to its end.
    pub digest: Option<Digest>,
}

/// How an audit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every name has its row.
    Complete,
    /// It was interrupted. Later names have no row, or the schema layers were not read to their end.
    Interrupted,
    /// The list of names could not be read to the end.
    ListFailed(String),
    /// The disk took no more rows. Later names have none.
    DiskFull(String),
    /// The registry could not be read, which is a row. Whom it lists is not known.
    RegistryUnread(String),
}

impl Ending {
    /// Whether all that could be read has its row.
    pub const fn has_all_rows(&self) -> bool {
        matches!(self, Self::Complete | Self::RegistryUnread(_))
    }

    /// The warning of an incomplete report.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Complete => None,
            Self::Interrupted => Some("The audit was interrupted: what it had not judged yet is missing.".to_owned()),
            Self::ListFailed(why) => Some(format!("Later names of the list are missing: {}.", excerpt(why))),
            Self::DiskFull(why) => {
                Some(format!("No more rows could be kept, so later names of the list are missing: {}.", excerpt(why)))
            }
            Self::RegistryUnread(why) => Some(format!("The names of the registry are missing: {}.", excerpt(why))),
        }
    }
}
