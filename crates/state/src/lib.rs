//! Ethereum state by proof, and the calls of the Universal Resolver run over it in this process. No I/O, no clock.
//!
//! Every account, slot and piece of code that a call reads was proven by `eth_getProof` (EIP-1186) to stand under a
//! header's state root. The header is trusted; its source stands outside this crate.
//!
//! Without the feature `state-proof` no call is run here: what remains is what readings from endpoints need, and the form
//! of a recorded proof, which is refused by name.

mod abi;
pub mod agent_registry;
pub mod answer;
pub mod contracts;
mod error;
mod header;
mod look_up;
pub mod name_wrapper;
mod proof_nodes;
pub mod receipts;
mod state_proof;
mod together;

#[cfg(feature = "state-proof")]
mod code;
#[cfg(feature = "state-proof")]
mod environment;
#[cfg(feature = "state-proof")]
mod evm;
#[cfg(feature = "state-proof")]
mod proven;
#[cfg(feature = "state-proof")]
mod proven_state;
#[cfg(feature = "state-proof")]
mod replay;
#[cfg(not(feature = "state-proof"))]
#[path = "replay/absent.rs"]
mod replay;
#[cfg(feature = "state-proof")]
mod trie;

pub use contracts::{CALL_GAS, Contracts, MULTICALL3, UNIVERSAL_RESOLVER};
pub use error::{
    Blame, Flaw, MAX_ACCOUNTS, MAX_GAS, MAX_HINTED_ACCOUNTS, MAX_HINTED_SLOTS, MAX_ROUNDS, MAX_SLOTS, ProofError,
};
pub use header::HashedHeader;
pub use look_up::{
    CcipReadRequest, LookUp, LookUpError, MAX_LOOK_UP_BYTES, MAX_LOOK_UPS, batch_failure, batch_response,
    callback_answer,
};
pub use proof_nodes::ProofNodes;
pub use replay::ReplayContext;
pub use state_proof::{ProvenReading, Recording, StateProof, StateProofError};
pub use together::{Spoiled, Together, call_together};

#[cfg(feature = "state-proof")]
pub use self::{
    code::checked_code,
    evm::{CALLER, Call, CallOutcome, Execution, run},
    proven::{Proven, Wanted},
    trie::{Verified, verify_proof},
};
