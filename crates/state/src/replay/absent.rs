//! Replays are refused in a build without the feature `state-proof`.

use clresolve_core::name::EnsName;
use clresolve_core::reading::Holding;

use super::state_proof::{ProvenReading, StateProof, StateProofError};

/// A state proof that was verified against its header. It cannot exist in this build.
pub enum ReplayContext {}

impl StateProof {
    /// # Errors
    /// [`StateProofError::NotBuilt`].
    pub fn open(&self, _header: &[u8], _chain_id: u64) -> Result<ReplayContext, StateProofError> {
        Err(StateProofError::NotBuilt)
    }
}

impl ReplayContext {
    /// The reading of a name.
    ///
    /// # Errors
    /// None, because no context can exist.
    pub fn read(&self, _name: &EnsName) -> Result<ProvenReading, StateProofError> {
        match *self {}
    }

    /// Address and holder of an owner.
    ///
    /// # Errors
    /// None, because no context can exist.
    pub fn holding(&self, _owner: &EnsName) -> Result<Holding, StateProofError> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Contracts, ProofNodes};

    #[test]
    fn a_state_proof_is_refused_by_name() {
        let proof = StateProof {
            contracts: Contracts::default(),
            state: ProofNodes::default(),
            coins: None,
            name_look_ups: Vec::new(),
            payment_look_ups: Vec::new(),
            owner_look_ups: Vec::new(),
            light_client: None,
        };
        let error = proof.open(&[], 1).err();
        assert_eq!(error, Some(StateProofError::NotBuilt));
        let words = "this build computes no state proofs: it lacks the feature state-proof";
        assert_eq!(error.map(|error| error.to_string()).as_deref(), Some(words));
    }
}
