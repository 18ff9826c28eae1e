//! Why a call over proven state could not be computed, and the bounds of such a call.

use alloy_primitives::{Address, B256, U256};
use clresolve_core::cause::LocalLimitError;

/// Maximum number of runs of one call. Each run reads at least one more item; a name whose resolver is a proxy needs
/// ten runs without hints.
pub const MAX_ROUNDS: u32 = 24;

/// Maximum gas of all runs of one call together: many times what honest resolvers need in [`MAX_ROUNDS`] runs. It
/// bounds the CPU time that a hostile resolver can use.
pub const MAX_GAS: u64 = 80_000_000;

/// Maximum number of accounts that one call may read. A name needs about ten.
pub const MAX_ACCOUNTS: usize = 64;

/// Maximum number of slots that one call may read: sixteen records of two thousand bytes each. A name needs about
/// fifty.
pub const MAX_SLOTS: usize = 1024;

/// Maximum number of accounts that are proven because an endpoint hinted at them, whether or not a call reads them.
/// They do not count against [`MAX_ACCOUNTS`].
pub const MAX_HINTED_ACCOUNTS: usize = MAX_ACCOUNTS / 2;
/// Maximum number of slots that are proven because an endpoint hinted at them. They do not count against [`MAX_SLOTS`].
pub const MAX_HINTED_SLOTS: usize = MAX_SLOTS / 2;

/// Maximum number of nodes of one proof: a branch for each of the 64 nibbles of a key, and the leaf.
pub(crate) const MAX_NODES: usize = 65;

/// Maximum length of a node, in bytes: a branch with sixteen hashes has 532. A node embedded in its parent has fewer
/// than 32 bytes and is shorter than its parent, so the depth of decoding is bounded too.
pub(crate) const MAX_NODE_BYTES: usize = 532;

/// Maximum length of a node of a receipts trie, in bytes. It contains a whole receipt, which arrived as hex digits in a
/// reply of at most 1 MiB.
#[cfg(feature = "state-proof")]
pub(crate) const MAX_RECEIPT_BYTES: usize = 512 * 1024;

/// Why a call could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProvenCallError {
    /// The header does not hash to the hash of the block.
    #[error("the header is refused: its fields hash to {observed}, not to {expected}")]
    Header {
        /// The hash of the requested block.
        expected: B256,
        /// The hash of the given header.
        observed: B256,
    },
    /// The proof of an account is invalid.
    #[error("the proof of account {address} is refused: {flaw}")]
    Account {
        /// The account.
        address: Address,
        /// What is wrong with the proof.
        flaw: TrieProofError,
    },
    /// The proof of a storage slot is invalid.
    #[error("the proof of slot {slot:#x} of {address} is refused: {flaw}")]
    Slot {
        /// The account.
        address: Address,
        /// The slot.
        slot: U256,
        /// What is wrong with the proof.
        flaw: TrieProofError,
    },
    /// The code does not match the proven code hash of the account.
    #[error("the code of {address} is refused: it does not have the proven hash")]
    Code {
        /// The account.
        address: Address,
    },
    /// The code is longer than any chain allows.
    #[error("the code of {address} has {bytes} bytes")]
    CodeTooLong {
        /// The account.
        address: Address,
        /// Length of the code in bytes.
        bytes: usize,
    },
    /// After the maximum number of runs, the call still reads unproven state.
    #[error("the call still reads unproven state after {MAX_ROUNDS} runs")]
    TooManyRounds,
    /// The runs of the call together use too much gas.
    #[error("the call uses more than {MAX_GAS} gas in all its runs")]
    TooMuchGas,
    /// The call reads too many accounts.
    #[error("the call reads more than {MAX_ACCOUNTS} accounts")]
    TooManyAccounts,
    /// The call reads too many slots.
    #[error("the call reads more than {MAX_SLOTS} storage slots")]
    TooManySlots,
    /// The call reads the hash of this past block, which the state does not contain (EIP-2935).
    #[error("the hash of block {0} cannot be proven")]
    BlockHash(u64),
    /// The block predates the Merge. Its rules are not implemented.
    #[error("blocks from before the Merge cannot be computed")]
    TooOld,
    /// The EVM did not start, or stopped early, with this message.
    #[error("the call cannot be run: {0}")]
    Evm(String),
    /// A node of a recorded proof is malformed.
    #[error("a node of the proofs is refused: {0}")]
    Node(TrieProofError),
    /// The recorded proofs contain nodes or code that no account or slot needs.
    #[error("the proofs contain nodes or code that no account or slot needs")]
    LeftOver,
    /// A call over recorded proofs reads state that they do not prove.
    #[error("the call reads state that the proofs do not prove")]
    NotProven,
}

/// Who or what caused a [`ProvenCallError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvenCallBlame {
    /// The endpoint returned state that contradicts its own proof, or the block.
    Endpoint,
    /// The call reached this bound of this program.
    LocalLimit(LocalLimitError),
    /// The recorded proofs do not belong to the calls.
    Recording,
}

impl ProvenCallError {
    /// Who or what caused the error.
    pub fn blame(&self) -> ProvenCallBlame {
        ProvenCallBlame::LocalLimit(match self {
            Self::Header { .. } | Self::Account { .. } | Self::Slot { .. } | Self::Code { .. } => {
                return ProvenCallBlame::Endpoint;
            }
            Self::Node(_) | Self::LeftOver | Self::NotProven => return ProvenCallBlame::Recording,
            Self::CodeTooLong { address, bytes } => LocalLimitError::Code { address: *address, bytes: *bytes },
            Self::TooManyRounds => LocalLimitError::Runs(MAX_ROUNDS),
            Self::TooMuchGas => LocalLimitError::Gas(MAX_GAS),
            Self::TooManyAccounts => LocalLimitError::Accounts(MAX_ACCOUNTS),
            Self::TooManySlots => LocalLimitError::Slots(MAX_SLOTS),
            Self::BlockHash(number) => LocalLimitError::BlockHash(*number),
            Self::TooOld => LocalLimitError::BeforeTheMerge,
            Self::Evm(words) => LocalLimitError::Evm(words.clone()),
        })
    }
}

/// What is wrong with a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrieProofError {
    /// It has more nodes than a path can have.
    #[error("it has more than {MAX_NODES} nodes")]
    TooManyNodes,
    /// A node is longer than any valid node.
    #[error("a node has more than {MAX_NODE_BYTES} bytes")]
    NodeTooLong,
    /// A node does not have the hash that the root or its parent states.
    #[error("a node does not have the hash that leads to it")]
    WrongHash,
    /// A node is not the RLP of a branch, an extension or a leaf.
    #[error("a node is malformed")]
    Malformed,
    /// The proof ends before the key does.
    #[error("it ends too early")]
    Truncated,
    /// Nodes follow after the end of the path.
    #[error("it has nodes that lead nowhere")]
    Surplus,
    /// The leaf does not contain an account or a word.
    #[error("the value has the wrong type")]
    BadValue,
    /// The values that the endpoint states differ from the proven values.
    #[error("the stated values differ from the proven ones")]
    OtherValues,
    /// The proof is for an account or slots that were not requested.
    #[error("it is for another account or slot")]
    OtherRequest,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bound of this program does not count against the endpoint or the publisher.
    #[test]
    fn a_bound_that_a_call_meets_is_one_of_this_program() {
        let address = Address::repeat_byte(7);
        for (error, limit) in [
            (ProvenCallError::CodeTooLong { address, bytes: 9 }, LocalLimitError::Code { address, bytes: 9 }),
            (ProvenCallError::TooManyRounds, LocalLimitError::Runs(MAX_ROUNDS)),
            (ProvenCallError::TooMuchGas, LocalLimitError::Gas(MAX_GAS)),
            (ProvenCallError::TooManyAccounts, LocalLimitError::Accounts(MAX_ACCOUNTS)),
            (ProvenCallError::TooManySlots, LocalLimitError::Slots(MAX_SLOTS)),
            (ProvenCallError::BlockHash(9), LocalLimitError::BlockHash(9)),
            (ProvenCallError::TooOld, LocalLimitError::BeforeTheMerge),
        ] {
            assert_eq!(error.blame(), ProvenCallBlame::LocalLimit(limit));
        }
    }
}
