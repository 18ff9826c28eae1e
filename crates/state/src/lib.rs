//! Ethereum state by proof, and the calls of the Universal Resolver run over it in this process. No I/O, no clock.
//!
//! Every account, slot and piece of code that a call reads was proven by `eth_getProof` (EIP-1186) to stand under a
//! header's state root. The header is trusted; its source stands outside this crate.

mod abi;
pub mod answer;
mod code;
pub mod contracts;
mod error;
mod evm;
mod header;
mod proof_nodes;
mod proven;
mod state_proof;
mod trie;

pub use code::checked_code;
pub use contracts::{CALL_GAS, Contracts, MULTICALL3, UNIVERSAL_RESOLVER};
pub use error::{Flaw, MAX_ACCOUNTS, MAX_GAS, MAX_ROUNDS, MAX_SLOTS, ProofError};
pub use evm::{CALLER, Call, CallOutcome, Execution, run};
pub use header::HashedHeader;
pub use proof_nodes::ProofNodes;
pub use proven::{Proven, Wanted};
pub use state_proof::{
    About, MAX_LOOK_UP_BYTES, MAX_LOOK_UPS, ProvenReading, Recording, ReplayContext, StateProof, StateProofError,
    callback_answer,
};
pub use trie::{Verified, verify_proof};
