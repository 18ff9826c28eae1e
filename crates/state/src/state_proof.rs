//! The recorded proof of a reading of the grade `state-proof`. Everyone who has the header can replay it. No I/O.
//!
//! [`StateProof`] holds the proofs and the responses of CCIP-Read gateways. [`StateProof::open`] checks the proofs against a
//! header. [`ReplayContext`](crate::ReplayContext) makes the calls of the reading again, so that the results can be compared.

use std::sync::{Mutex, PoisonError};

use alloy_primitives::{Address, Bytes};
use clresolve_core::payment::Coins;
use clresolve_core::reading::{Answer, ChainError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::contracts::Contracts;
use super::error::ProofError;
use super::proof_nodes::ProofNodes;

/// Everything that a reading was computed from, except the header. Its member names are part of the bundle format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateProof {
    /// The contracts that were called.
    pub contracts: Contracts,
    /// The state that they read.
    pub state: ProofNodes,
    /// The coin types that were asked for. `None`: payments were not, as in what older versions recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coins: Option<Coins>,
    /// The gateways' responses in the look-up of the name's records, in order.
    pub name_look_ups: Vec<Bytes>,
    /// The same for what the name says about payments; none where that look-up failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payment_look_ups: Vec<Bytes>,
    /// The same for the address of the name in `cl.owner`.
    pub owner_look_ups: Vec<Bytes>,
}

/// The replayed reading of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenReading {
    /// The resolver's answer.
    pub answer: Answer,
    /// The address that holds the name.
    pub holder: Option<Address>,
    /// Expiry of the registration.
    pub expiry: Option<Timestamp>,
}

/// Why a state proof is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateProofError {
    /// A call over the proven state failed.
    #[error("the calls fail: {0}")]
    Call(ChainError),
    /// The replay gives another result: of what.
    #[error("the proofs give other {0}")]
    Contradicted(&'static str),
    /// The header is malformed.
    #[error("the header cannot be read")]
    Header,
    /// The gateways' responses do not match the calls.
    #[error("the responses of gateways are refused: {0}")]
    LookUps(&'static str),
    /// There are no proofs.
    #[error("the proofs of the state are missing")]
    Missing,
    /// This build lacks the feature `state-proof`.
    #[error("this build computes no state proofs: it lacks the feature state-proof")]
    NotBuilt,
    /// The proofs do not prove the state: why.
    #[error(transparent)]
    State(#[from] ProofError),
}

/// Records the proofs of a chain's readings: the latest one of each query.
#[derive(Debug, Default)]
pub struct Recording(Mutex<Option<StateProof>>);

impl Recording {
    /// What was recorded since the last time.
    pub fn take(&self) -> Option<StateProof> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Records the query about the name's records, in place of all before it.
    pub fn name(&self, proof: StateProof) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(proof);
    }

    /// Adds the query about the address of the name in `cl.owner`, which follows the one about the name.
    pub fn owner(&self, state: ProofNodes, look_ups: Vec<Bytes>) {
        if let Some(proof) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            proof.state.extend(state);
            proof.owner_look_ups = look_ups;
        }
    }
}
