//! Why a call over proven state could not be computed, and the bounds of one.

use alloy_primitives::{Address, B256, U256};
use clresolve_core::cause::LocalLimit;

use crate::trie::Flaw;

/// Most runs of one call. Each goes at least one read deeper; a name whose resolver is a proxy takes ten without a hint.
pub const MAX_ROUNDS: u32 = 24;

/// Most gas of all runs of one call together: what honest resolvers need in [`MAX_ROUNDS`] runs, many times over. It
/// bounds the time that a hostile resolver costs this process.
pub const MAX_GAS: u64 = 80_000_000;

/// Most accounts that a call may read. A name takes about ten.
pub const MAX_ACCOUNTS: usize = 64;

/// Most slots that a call may read: sixteen records of two thousand bytes each. A name takes about fifty.
pub const MAX_SLOTS: usize = 1024;

/// Why a call could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The fields of the header do not have the hash of the block.
    #[error("the header is refused: its fields hash to {observed}, not to {expected}")]
    Header {
        /// The hash of the block that was wanted.
        expected: B256,
        /// The hash of what was given.
        observed: B256,
    },
    /// The proof of an account does not hold.
    #[error("the proof of account {address} is refused: {flaw}")]
    Account {
        /// The account.
        address: Address,
        /// What is wrong.
        flaw: Flaw,
    },
    /// The proof of a storage slot does not hold.
    #[error("the proof of slot {slot:#x} of {address} is refused: {flaw}")]
    Slot {
        /// The account.
        address: Address,
        /// The slot.
        slot: U256,
        /// What is wrong.
        flaw: Flaw,
    },
    /// The code does not have the hash that the account is proven to have.
    #[error("the code of {address} is refused: it does not have the proven hash")]
    Code {
        /// The account.
        address: Address,
    },
    /// The code is longer than any that a chain allows.
    #[error("the code of {address} has {bytes} bytes")]
    CodeTooLong {
        /// The account.
        address: Address,
        /// Its length.
        bytes: usize,
    },
    /// The call reads on and on.
    #[error("the call still reads what is not proven after {MAX_ROUNDS} runs")]
    TooManyRounds,
    /// The runs of the call take too much gas together.
    #[error("the call takes more than {MAX_GAS} gas in all its runs")]
    TooMuchGas,
    /// The call reads too many accounts.
    #[error("the call reads more than {MAX_ACCOUNTS} accounts")]
    TooManyAccounts,
    /// The call reads too many slots.
    #[error("the call reads more than {MAX_SLOTS} storage slots")]
    TooManySlots,
    /// The call asks for the hash of a past block that the state does not hold (EIP-2935).
    #[error("the hash of block {0} cannot be proven")]
    BlockHash(u64),
    /// The block is older than the Merge; its rules are not known here.
    #[error("blocks from before the Merge cannot be computed")]
    TooOld,
    /// The EVM did not begin, or broke off.
    #[error("the call cannot be run: {0}")]
    Evm(String),
    /// A node among proofs that were kept is none.
    #[error("a node of the proofs is refused: {0}")]
    Kept(Flaw),
    /// Kept proofs have nodes or code that nothing leads to.
    #[error("the proofs hold nodes or code that nothing leads to")]
    LeftOver,
    /// A call over kept proofs reads what they do not show.
    #[error("the call reads what the proofs do not show")]
    NotKept,
}

impl ProofError {
    /// The bound of this program that the call met, if it is one.
    pub fn local_limit(&self) -> Option<LocalLimit> {
        Some(match self {
            Self::CodeTooLong { address, bytes } => LocalLimit::Code { address: *address, bytes: *bytes },
            Self::TooManyRounds => LocalLimit::Runs(MAX_ROUNDS),
            Self::TooMuchGas => LocalLimit::Gas(MAX_GAS),
            Self::TooManyAccounts => LocalLimit::Accounts(MAX_ACCOUNTS),
            Self::TooManySlots => LocalLimit::Slots(MAX_SLOTS),
            Self::BlockHash(number) => LocalLimit::BlockHash(*number),
            Self::TooOld => LocalLimit::BeforeTheMerge,
            Self::Evm(words) => LocalLimit::Evm(words.clone()),
            Self::Header { .. } | Self::Account { .. } | Self::Slot { .. } | Self::Code { .. } => return None,
            Self::Kept(_) | Self::LeftOver | Self::NotKept => return None,
        })
    }

    /// Whether the endpoint told an untruth, rather than something being impossible or missing.
    pub const fn is_lie(&self) -> bool {
        matches!(self, Self::Header { .. } | Self::Account { .. } | Self::Slot { .. } | Self::Code { .. })
    }
}
