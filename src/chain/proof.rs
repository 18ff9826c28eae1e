//! Calls computed in this process over state that is proven against a block header.
//!
//! [`Prover::call`] runs a call in a local EVM. Every account, slot and piece of code that it reads was proven by
//! `eth_getProof` (EIP-1186) to stand under the header's state root; what is not proven yet is fetched and the call is
//! run again, until a run meets nothing unproven. The endpoint that gives the state is believed in nothing: it can
//! refuse to answer, but not make a call end otherwise than the chain's own nodes would.
//!
//! What is trusted is the header. Whoever says that it is the chain's stands outside this module.

mod code;
mod evm;
mod header;
mod hints;
mod kept;
mod source;
mod state;
#[cfg(test)]
mod tests;
mod trie;

use std::sync::Arc;

use alloy_primitives::{Address, B256, U256};
use alloy_rpc_types_eth::{AccessList, AccessListItem, BlockId};

pub(super) use self::evm::{Call, Outcome};
pub use self::header::HashedHeader;
pub(super) use self::kept::Ground;
pub use self::kept::Kept;
pub(super) use self::source::{Given, RpcSource, StateSource};
pub(super) use self::state::Wanted;
pub use self::trie::{Flaw, Verified, verify_proof};

use self::code::Codes;
use self::evm::{CALLER, Run};
use self::hints::Hints;
use self::state::Proven;
use super::endpoint::Failure;

/// Most runs of one call. Each goes at least one read deeper; a name whose resolver is a proxy takes ten without a hint.
const MAX_ROUNDS: u32 = 24;

/// Most gas of all runs of one call together: what honest resolvers need in [`MAX_ROUNDS`] runs, many times over. It
/// bounds the time that a hostile resolver costs this process.
const MAX_GAS: u64 = 80_000_000;

/// Most accounts that a call may read. A name takes about ten.
const MAX_ACCOUNTS: usize = 64;

/// Most slots that a call may read: sixteen records of two thousand bytes each. A name takes about fifty.
const MAX_SLOTS: usize = 1024;

/// Runs calls over proven state. Holds the code of contracts, which never changes under its hash, and what calls read
/// the last time.
pub(super) struct Prover {
    chain_id: u64,
    codes: Codes,
    hints: Hints,
}

/// What is proven of one block so far, and its header. Calls in the same block share it.
pub(super) struct Session {
    header: Arc<HashedHeader>,
    proven: Proven,
    /// The proofs themselves, where they are to be handed on.
    kept: Option<Kept>,
}

/// Why a call could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProofError {
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
    /// The endpoint gave no answer to work with.
    #[error("{0}")]
    Endpoint(Failure),
}

impl ProofError {
    /// Whether the endpoint told an untruth, rather than something being impossible or missing.
    pub(super) const fn is_lie(&self) -> bool {
        matches!(self, Self::Header { .. } | Self::Account { .. } | Self::Slot { .. } | Self::Code { .. })
    }
}

impl Prover {
    pub(super) fn new(chain_id: u64) -> Self {
        Self { chain_id, codes: Codes::new(), hints: Hints::new() }
    }

    /// What `call` does in the session's block, computed over state that `source` gives and nobody has to believe.
    ///
    /// `told` says what the call is likely to read, besides what it read the last time. Where nothing is told and nothing
    /// known, the source is asked for it first.
    ///
    /// # Errors
    /// [`ProofError`]. What is proven by then stays in the session.
    pub(super) async fn call(
        &self,
        source: &dyn StateSource,
        session: &mut Session,
        call: &Call,
        told: Option<AccessList>,
    ) -> Result<Outcome, ProofError> {
        let known = match told {
            Some(_) => self.hints.get(call).await,
            None => Some(self.foresee(source, session.header.id(), call).await),
        };
        let hint = known.iter().flat_map(|known| &known.0).chain(told.iter().flat_map(|told| &told.0));
        let mut wanted = first_wanted(call, &session.header, hint);
        session.proven.without_known(&mut wanted);
        let mut gas_left = MAX_GAS;
        for _ in 0..MAX_ROUNDS {
            self.prove(source, session, wanted).await?;
            match self.run(session, call).await? {
                Run::Closed { outcome, read } => {
                    self.hints.learn(call, read).await;
                    return Ok(outcome);
                }
                Run::Open { missed, gas } => {
                    gas_left = gas_left.checked_sub(gas).ok_or(ProofError::TooMuchGas)?;
                    wanted = missed;
                }
            }
        }
        Err(ProofError::TooManyRounds)
    }

    /// What the call is likely to read: what it read the last time, else what the source says.
    pub(super) async fn foresee(&self, source: &dyn StateSource, block: BlockId, call: &Call) -> Arc<AccessList> {
        // Some nodes answer nothing for a call that reverts. Then the runs find out.
        self.hints.get_or(call, async { source.touched(call, block).await.unwrap_or_default() }).await
    }

    /// One run, away from the threads that serve connections.
    async fn run(&self, session: &mut Session, call: &Call) -> Result<Run, ProofError> {
        let (proven, header) = (std::mem::take(&mut session.proven), Arc::clone(&session.header));
        let (chain_id, call) = (self.chain_id, call.clone());
        let running = tokio::task::spawn_blocking(move || {
            let ran = evm::run(&proven, &header, chain_id, &call);
            (proven, ran)
        });
        let (proven, ran) = running.await.map_err(|error| ProofError::Evm(error.to_string()))?;
        session.proven = proven;
        ran
    }

    /// Fetches and checks what is wanted.
    async fn prove(
        &self,
        source: &dyn StateSource,
        session: &mut Session,
        mut wanted: Wanted,
    ) -> Result<(), ProofError> {
        if session.proven.accounts() + wanted.accounts.len() > MAX_ACCOUNTS {
            return Err(ProofError::TooManyAccounts);
        }
        if session.proven.slots() + wanted.slots() > MAX_SLOTS {
            return Err(ProofError::TooManySlots);
        }
        for address in wanted.accounts.keys() {
            let is_new = !session.proven.knows(*address);
            if is_new && !is_unlikely_to_run(*address, &session.header) && !self.codes.has_last_of(*address).await {
                wanted.codes.insert(*address);
            }
        }
        let given = source.fetch(&wanted, session.header.id()).await?;
        let mut codes = Vec::new();
        for given in given {
            match given {
                Given::Proof(address, slots, answer) => {
                    let verified = trie::verify(session.header.state_root(), address, &slots, &answer)?;
                    if let Some(kept) = &mut session.kept {
                        kept.add(address, &slots, &answer);
                    }
                    session.proven.insert(address, verified);
                }
                Given::Code(address, code) => codes.push((address, code)),
            }
        }
        for (address, code) in codes {
            if let Some(hash) = session.proven.code_hash(address) {
                session.proven.insert_code(hash, self.codes.put(address, hash, code).await?);
            } else if !code.is_empty() {
                return Err(ProofError::Code { address });
            }
        }
        for address in wanted.accounts.keys() {
            if let Some(hash) = session.proven.code_hash(*address) {
                self.codes.saw(*address, hash).await;
                if !session.proven.has_code(hash)
                    && let Some(code) = self.codes.get(hash).await
                {
                    session.proven.insert_code(hash, code);
                }
            }
        }
        Ok(())
    }
}

impl Session {
    /// Nothing is proven yet of the header's block.
    pub(super) fn new(header: Arc<HashedHeader>) -> Self {
        Self { header, proven: Proven::default(), kept: None }
    }

    /// The same; what proves it is kept.
    pub(super) fn keeping(header: Arc<HashedHeader>) -> Self {
        Self { kept: Some(Kept::default()), ..Self::new(header) }
    }

    /// What proves what was proven, where that was kept.
    pub(super) fn kept(&self) -> Option<Kept> {
        let mut kept = self.kept.clone()?;
        let hashes = kept.accounts.keys().filter_map(|address| self.proven.code_hash(*address));
        kept.codes = hashes.filter_map(|hash| self.proven.code(hash)).collect();
        Some(kept)
    }
}

/// Accounts that every call reads, but seldom the code of.
fn is_unlikely_to_run(address: Address, header: &HashedHeader) -> bool {
    address == CALLER || address == header.beneficiary()
}

/// What is hinted at, as far as there is room for it, and what every call reads.
fn first_wanted<'h>(call: &Call, header: &HashedHeader, hint: impl Iterator<Item = &'h AccessListItem>) -> Wanted {
    let mut wanted = Wanted::default();
    for address in [call.to, CALLER, header.beneficiary()] {
        wanted.accounts.entry(address).or_default();
    }
    let mut room = MAX_SLOTS / 2;
    for item in hint.take(MAX_ACCOUNTS / 2) {
        let slots = item.storage_keys.iter().take(room).map(|key| U256::from_be_bytes(key.0));
        let known = wanted.accounts.entry(item.address).or_default();
        let before = known.len();
        known.extend(slots);
        room -= known.len() - before;
    }
    wanted
}
