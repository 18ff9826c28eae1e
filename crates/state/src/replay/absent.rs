//! Replays are refused in a build without the feature `state-proof`.

use clresolve_core::name::EnsName;
use clresolve_core::reading::ClOwnerReading;

use super::state_proof::{ProvenNameReading, StateProof, StateProofError};

/// A state proof that was verified against its header. It cannot exist in this build.
pub enum StateProofReplay {}

impl StateProof {
    /// # Errors
    /// [`StateProofError::NotBuilt`].
    pub fn verify_under_header(&self, _header: &[u8], _chain_id: u64) -> Result<StateProofReplay, StateProofError> {
        Err(StateProofError::NotBuilt)
    }
}

impl StateProofReplay {
    /// The reading of a name.
    ///
    /// # Errors
    /// None, because no context can exist.
    pub fn replay_reading(&self, _name: &EnsName) -> Result<ProvenNameReading, StateProofError> {
        match *self {}
    }

    /// Address and holder of an owner.
    ///
    /// # Errors
    /// None, because no context can exist.
    pub fn replay_owner_details(&self, _owner: &EnsName) -> Result<ClOwnerReading, StateProofError> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EnsContractAddresses, StateWitness};

    #[test]
    fn a_state_proof_is_refused_by_name() {
        let proof = StateProof {
            contracts: EnsContractAddresses::default(),
            state: StateWitness::default(),
            coins: None,
            name_look_ups: Vec::new(),
            payment_look_ups: Vec::new(),
            owner_look_ups: Vec::new(),
            light_client: None,
        };
        let error = proof.verify_under_header(&[], 1).err();
        assert_eq!(error, Some(StateProofError::NotBuilt));
        let words = "this build computes no state proofs: it lacks the feature state-proof";
        assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(words));
    }
}
