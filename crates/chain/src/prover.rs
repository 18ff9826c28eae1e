//! Calls computed in this process over state that is proven against a block header.
//!
//! [`Prover::call`] runs a call in a local EVM. Every account, slot and piece of code that it reads was proven by
//! `eth_getProof` (EIP-1186) to stand under the header's state root; what is not proven yet is fetched and the call is
//! run again, until a run meets nothing unproven. The endpoint that gives the state is believed in nothing: it can
//! refuse to answer, but not make a call end otherwise than the chain's own nodes would.
//!
//! What is trusted is the header. Whoever says that it is the chain's stands outside this module.

mod code;
mod hints;
mod source;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use alloy_primitives::{Address, U256};
use alloy_rpc_types_eth::{AccessList, AccessListItem, BlockId};
use clresolve_state::{
    CALLER, Call, HashedHeader, Kept, MAX_ACCOUNTS, MAX_GAS, MAX_ROUNDS, MAX_SLOTS, Outcome, ProofError, Proven, Run,
    Wanted,
};

pub(crate) use self::source::{Given, RpcSource, StateSource};

use self::code::Codes;
use self::hints::Hints;
use crate::endpoint::Failure;

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
pub(crate) enum ProverError {
    /// The call or a proof is refused.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// The endpoint gave no answer to work with.
    #[error("{0}")]
    Endpoint(Failure),
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
    /// [`ProverError`]. What is proven by then stays in the session.
    pub(super) async fn call(
        &self,
        source: &dyn StateSource,
        session: &mut Session,
        call: &Call,
        told: Option<AccessList>,
    ) -> Result<Outcome, ProverError> {
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
        Err(ProofError::TooManyRounds.into())
    }

    /// What the call is likely to read: what it read the last time, else what the source says.
    pub(super) async fn foresee(&self, source: &dyn StateSource, block: BlockId, call: &Call) -> Arc<AccessList> {
        // Some nodes answer nothing for a call that reverts. Then the runs find out.
        self.hints.get_or(call, async { source.touched(call, block).await.unwrap_or_default() }).await
    }

    /// One run, away from the threads that serve connections.
    async fn run(&self, session: &mut Session, call: &Call) -> Result<Run, ProverError> {
        let (proven, header) = (std::mem::take(&mut session.proven), Arc::clone(&session.header));
        let (chain_id, call) = (self.chain_id, call.clone());
        let running = tokio::task::spawn_blocking(move || {
            let ran = clresolve_state::run(&proven, &header, chain_id, &call);
            (proven, ran)
        });
        let (proven, ran) = running.await.map_err(|error| ProofError::Evm(error.to_string()))?;
        session.proven = proven;
        Ok(ran?)
    }

    /// Fetches and checks what is wanted.
    async fn prove(
        &self,
        source: &dyn StateSource,
        session: &mut Session,
        mut wanted: Wanted,
    ) -> Result<(), ProverError> {
        if session.proven.accounts() + wanted.accounts.len() > MAX_ACCOUNTS {
            return Err(ProofError::TooManyAccounts.into());
        }
        if session.proven.slots() + wanted.slots() > MAX_SLOTS {
            return Err(ProofError::TooManySlots.into());
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
                    let verified = clresolve_state::verify(session.header.state_root(), address, &slots, &answer)
                        .map_err(ProofError::from)?;
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
                return Err(ProofError::Code { address }.into());
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
        Some(self.kept.clone()?.with_codes_of(&self.proven))
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
