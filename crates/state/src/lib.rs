//! Ethereum state by proof, and the calls of the Universal Resolver run over it in this process. No I/O, no clock.
//!
//! Every account, slot and piece of code that a call reads was proven by `eth_getProof` (EIP-1186) to stand under a
//! header's state root. What is trusted is the header: whoever vouches for it stands outside this crate.

mod abi;
pub mod answer;
mod code;
pub mod contracts;
mod error;
mod evm;
mod header;
mod kept;
mod proven;
mod trie;
mod witness;

pub use code::checked_code;
pub use contracts::{BASE_REGISTRAR, CALL_GAS, Contracts, MULTICALL3, NAME_WRAPPER, REGISTRY, UNIVERSAL_RESOLVER};
pub use error::{MAX_ACCOUNTS, MAX_GAS, MAX_ROUNDS, MAX_SLOTS, ProofError};
pub use evm::{CALLER, Call, Outcome, Run, run};
pub use header::HashedHeader;
pub use kept::{Ground, Kept};
pub use proven::{Proven, Wanted};
pub use trie::{Flaw, Refused, Verified, verify, verify_proof};
pub use witness::{
    About, Computed, MAX_LOOK_UP_BYTES, MAX_LOOK_UPS, Recording, Stand, Witness, WitnessError, answer_in,
};
