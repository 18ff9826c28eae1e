//! The forks of the beacon chain, and what each changed for light clients.

use std::fmt;

/// A fork of the beacon chain, oldest first. Earlier forks have no execution payload in their light-client headers.
///
/// [`ConsensusFork::Fulu`] changes nothing for light clients according to its specification. No test has run on Fulu
/// data. [`ConsensusFork::Gloas`] is a draft: data of this fork is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConsensusFork {
    /// Added the execution payload header.
    Capella,
    /// Added blob gas to the execution payload header.
    Deneb,
    /// Moved the fields of the state one level deeper.
    Electra,
    /// No change for light clients.
    Fulu,
    /// Replaces the execution payload header by the hash of the block (draft).
    Gloas,
}

/// Positions of the proven fields, as generalized indices: those of a state, and that of the execution payload in a
/// block body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneralizedIndices {
    /// `finalized_checkpoint.root` in the state.
    pub finalized_root: u64,
    /// `current_sync_committee` in the state.
    pub current_sync_committee: u64,
    /// `next_sync_committee` in the state.
    pub next_sync_committee: u64,
    /// `execution_payload` in the block body; from Gloas on, the hash of the parent's payload.
    pub execution: u64,
}

const CAPELLA: GeneralizedIndices =
    GeneralizedIndices { finalized_root: 105, current_sync_committee: 54, next_sync_committee: 55, execution: 25 };
const ELECTRA: GeneralizedIndices =
    GeneralizedIndices { finalized_root: 169, current_sync_committee: 86, next_sync_committee: 87, execution: 25 };
const GLOAS: GeneralizedIndices = GeneralizedIndices {
    finalized_root: 735,
    current_sync_committee: 2945,
    next_sync_committee: 2946,
    execution: 2856,
};

impl ConsensusFork {
    /// All forks, oldest first.
    pub const ALL: [Self; 5] = [Self::Capella, Self::Deneb, Self::Electra, Self::Fulu, Self::Gloas];

    /// The name that the beacon API uses in `version`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capella => "capella",
            Self::Deneb => "deneb",
            Self::Electra => "electra",
            Self::Fulu => "fulu",
            Self::Gloas => "gloas",
        }
    }

    /// The fork with this name in the beacon API.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fork| fork.name() == name)
    }

    /// Where this fork keeps the proven fields.
    pub const fn generalized_indices(self) -> GeneralizedIndices {
        match self {
            Self::Capella | Self::Deneb => CAPELLA,
            Self::Electra | Self::Fulu => ELECTRA,
            Self::Gloas => GLOAS,
        }
    }

    /// Whether the execution payload header of this fork has blob gas.
    pub(crate) fn has_blob_gas(self) -> bool {
        self >= Self::Deneb
    }
}

impl fmt::Display for ConsensusFork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
