//! Ethereum state verified by proofs, and the Universal Resolver's calls run over it in this process. No I/O, no clock.
//!
//! Every account, slot and contract code that a call reads is proven by `eth_getProof` (EIP-1186) under a header's
//! state root. This crate trusts the header; the caller must verify where it comes from.
//!
//! Without the feature `state-proof`, no call runs here. The crate then contains only what readings from endpoints
//! need, and the format of a recorded proof, which such a build refuses with `StateProofError::NotBuilt`.

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

pub use contracts::{CALL_GAS, EnsContractAddresses, MULTICALL3, UNIVERSAL_RESOLVER};
pub use error::{
    MAX_ACCOUNTS, MAX_GAS, MAX_HINTED_ACCOUNTS, MAX_HINTED_SLOTS, MAX_ROUNDS, MAX_SLOTS, ProvenCallBlame,
    ProvenCallError, TrieProofError,
};
pub use header::HashedBlockHeader;
pub use look_up::{
    CcipReadLookup, CcipReadLookupError, CcipReadRequest, MAX_LOOK_UP_BYTES, MAX_LOOK_UPS, encode_batch_failure,
    encode_batch_response, response_in_callback,
};
pub use proof_nodes::StateWitness;
pub use replay::StateProofReplay;
pub use state_proof::{ProvenNameReading, StateProof, StateProofError, StateProofRecorder};
pub use together::{BatchedCallError, BatchedCallResults, batch_call_data};

#[cfg(feature = "state-proof")]
pub use self::{
    code::verify_account_code,
    evm::{CALLER, EvmCall, EvmCallOutcome, EvmRunResult, run_call},
    proven::{ProvenStateValues, WantedState},
    trie::{VerifiedAccount, verify_account_proof},
};
