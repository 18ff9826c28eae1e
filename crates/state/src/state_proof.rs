//! The recorded proof of a reading with the grade `state-proof` or `consensus-proof`. Anyone who has the header can
//! replay it. No I/O.
//!
//! [`StateProof`] contains the proofs and the responses of CCIP-Read gateways. [`StateProof::verify_under_header`]
//! verifies the proofs against a header. [`StateProofReplay`](crate::StateProofReplay) repeats the calls of the
//! reading, so that the results can be compared.

use std::sync::{Mutex, PoisonError};

use alloy_primitives::Bytes;
use clresolve_core::light_client::LightClientSyncTranscript;
use clresolve_core::payment::RequestedCoinTypes;
use clresolve_core::reading::{ChainError, EnsAnswer, NameHolder};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::contracts::EnsContractAddresses;
use super::error::ProvenCallError;
use super::proof_nodes::StateWitness;

/// Everything from which a reading was computed, and what proves the header to others. The header itself is not
/// included. The field names are part of the bundle format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateProof {
    /// The called contracts.
    pub contracts: EnsContractAddresses,
    /// The state that the calls read.
    pub state: StateWitness,
    /// The requested coin types. `None` if payments were not requested, as in older recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coins: Option<RequestedCoinTypes>,
    /// The gateways' responses to the lookups for the name's records, in order.
    pub name_look_ups: Vec<Bytes>,
    /// The gateways' responses to the lookups for payment records, in order; empty if that lookup failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub payment_look_ups: Vec<Bytes>,
    /// The gateways' responses to the lookups for the address of the name in `cl.owner`, in order.
    pub owner_look_ups: Vec<Bytes>,
    /// What proves the header, if a light client verified it. It is verified separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub light_client: Option<LightClientSyncTranscript>,
}

/// The replayed reading of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvenNameReading {
    /// The resolver's answer.
    pub answer: EnsAnswer,
    /// Who holds the name.
    pub holder: NameHolder,
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
    /// The replay gives a different result for this part.
    #[error("the proofs yield different {0}")]
    Contradicted(&'static str),
    /// The header is malformed.
    #[error("the header cannot be read")]
    Header,
    /// The gateways' responses do not match the calls, for this reason.
    #[error("the responses of gateways are refused: {0}")]
    LookUps(&'static str),
    /// The recording contains no proofs.
    #[error("the proofs of the state are missing")]
    Missing,
    /// This build lacks the feature `state-proof`.
    #[error("this build computes no state proofs: it lacks the feature state-proof")]
    NotBuilt,
    /// The proofs do not prove the state.
    #[error(transparent)]
    State(#[from] ProvenCallError),
}

/// Records the proofs of a chain's readings, for the latest query of each kind.
#[derive(Debug, Default)]
pub struct StateProofRecorder(Mutex<Option<StateProof>>);

impl StateProofRecorder {
    /// Removes and returns what was recorded since the previous call.
    pub fn take_proof(&self) -> Option<StateProof> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Records the query for the name's records, and discards everything recorded before.
    pub fn record_name_query(&self, proof: StateProof) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(proof);
    }

    /// Adds the query for the address of the name in `cl.owner`, which follows the query for the name.
    pub fn record_owner_query(&self, state: StateWitness, look_ups: Vec<Bytes>) {
        if let Some(proof) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            proof.state.extend(state);
            proof.owner_look_ups = look_ups;
        }
    }
}
