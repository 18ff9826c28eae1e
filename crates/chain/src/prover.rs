//! Executes calls in this process, over state that is proven against a block header.
//!
//! [`CallProver::compute_call`] runs a call in a local EVM. `eth_getProof` (EIP-1186) must prove every account, slot
//! and piece of code that the call reads against the header's state root. If a run reads unproven state, the prover
//! fetches the proofs and runs the call again, until a run reads only proven state. The endpoint that supplies the
//! state is not trusted: it can refuse to answer, but it cannot change the outcome of a call.
//!
//! The header is trusted. Where it comes from is outside this module.

mod code;
mod error;
mod hints;
mod source;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alloy_primitives::{Address, U256};
use alloy_rpc_types_eth::{AccessList, AccessListItem, BlockId};
use clresolve_state::{
    CALLER, EvmCall, EvmCallOutcome, EvmRunResult, HashedBlockHeader, MAX_ACCOUNTS, MAX_GAS, MAX_HINTED_ACCOUNTS,
    MAX_HINTED_SLOTS, MAX_ROUNDS, MAX_SLOTS, ProvenCallError, ProvenStateValues, StateWitness, WantedState,
};

pub(crate) use self::error::CallProverError;
pub(crate) use self::source::{RpcStateSource, StateProofOrCode, StateSource};

use self::code::CodeCache;
use self::hints::AccessListCache;
use crate::run_limit::BlockingJobLimiter;

/// Runs calls over proven state. Caches contract code by hash, and what each call read last time.
pub(super) struct CallProver {
    chain_id: u64,
    codes: CodeCache,
    hints: AccessListCache,
    runs: BlockingJobLimiter,
}

/// A header and the state proven under it so far. Calls at the same block share a session.
#[derive(Clone)]
pub(super) struct CallProverSession {
    header: Arc<HashedBlockHeader>,
    proven: ProvenStateValues,
    /// The accounts and slots that calls have read or tried to read. Only these count against the limits.
    read: WantedState,
    hints_left: HintedProofBudget,
    /// The proofs themselves, if they are kept.
    nodes: Option<StateWitness>,
}

/// Limits what is proven because of hints. It is separate from the limits for calls, so that one endpoint's hint cannot
/// reduce what a call may read with the proofs of others.
#[derive(Clone, Copy)]
struct HintedProofBudget {
    accounts: usize,
    slots: usize,
}

impl HintedProofBudget {
    const FULL: Self = Self { accounts: MAX_HINTED_ACCOUNTS, slots: MAX_HINTED_SLOTS };

    /// Adds as much of the hint to `wanted` as the budget allows.
    fn grant_hinted_state(&mut self, hinted: WantedState, wanted: &mut WantedState) {
        for (address, slots) in hinted.accounts.into_iter().take(self.accounts) {
            let slots: Vec<U256> = slots.into_iter().take(self.slots).collect();
            self.accounts -= 1;
            self.slots -= slots.len();
            wanted.accounts.entry(address).or_default().extend(slots);
        }
    }
}

/// Unverified proofs that a source returned before the header was known.
pub(crate) struct PrefetchedProofs {
    wanted: WantedState,
    items: Vec<StateProofOrCode>,
}

impl CallProver {
    pub(super) fn new(chain_id: u64) -> Self {
        Self {
            chain_id,
            codes: CodeCache::new(),
            hints: AccessListCache::new(),
            runs: BlockingJobLimiter::for_half_of_processors(),
        }
    }

    /// Computes the outcome of `call` at the session's block, over state that `source` proves.
    ///
    /// `hint` lists what the call is likely to read, in addition to what it read last time. Without a hint, the source
    /// is asked for one unless the call ran before.
    ///
    /// # Errors
    /// [`CallProverError`]. The state proven so far stays in the session.
    pub(super) async fn compute_call(
        &self,
        source: &dyn StateSource,
        session: &mut CallProverSession,
        call: &EvmCall,
        hint: Option<AccessList>,
    ) -> Result<EvmCallOutcome, CallProverError> {
        let known = match hint {
            Some(_) => self.hints.get(call).await,
            None => Some(self.get_or_fetch_access_list(source, session.header.block_id(), call).await),
        };
        let items = known.iter().flat_map(|known| &known.0).chain(hint.iter().flat_map(|hint| &hint.0));
        let mut hinted = hinted_state(items);
        session.proven.remove_proven_state(&mut hinted);
        let mut wanted = always_read_state(call);
        session.proven.remove_proven_state(&mut wanted);
        session.hints_left.grant_hinted_state(hinted, &mut wanted);
        let mut gas_left = MAX_GAS;
        for _ in 0..MAX_ROUNDS {
            self.fetch_and_verify_state(source, session, wanted).await?;
            match self.run_call_once(session, call).await? {
                EvmRunResult::Complete { outcome, read } => {
                    session.note_read_state(&read)?;
                    self.hints.replace_access_list(call, read).await;
                    return Ok(outcome);
                }
                EvmRunResult::Incomplete { missed, gas } => {
                    gas_left = gas_left.checked_sub(gas).ok_or(ProvenCallError::TooMuchGas)?;
                    session.note_read_state(&missed.accounts)?;
                    wanted = missed;
                }
            }
        }
        Err(ProvenCallError::TooManyRounds.into())
    }

    /// Fetches proofs of what `call` read last time, at the block that a tag currently selects. This may differ from
    /// the block whose header is eventually trusted: see [`CallProver::adopt_prefetched_proofs`]. Returns `None` if the
    /// call never ran or the source does not answer.
    pub(super) async fn prefetch_proofs(
        &self,
        source: &dyn StateSource,
        tag: BlockId,
        call: &EvmCall,
    ) -> Option<PrefetchedProofs> {
        let known = self.hints.get(call).await?;
        let mut wanted = always_read_state(call);
        let mut budget = HintedProofBudget::FULL;
        budget.grant_hinted_state(hinted_state(known.0.iter()), &mut wanted);
        self.add_uncached_codes(&ProvenStateValues::default(), &mut wanted).await;
        let items = source.fetch_state(&wanted, tag).await.ok()?;
        Some(PrefetchedProofs { wanted, items })
    }

    /// Adds prefetched proofs to the session if all of them are valid under the session's header. Otherwise they belong
    /// to another block, and all are dropped.
    pub(super) async fn adopt_prefetched_proofs(&self, session: &mut CallProverSession, prefetched: PrefetchedProofs) {
        let mut guessed = session.clone();
        if self.verify_proofs_and_codes(&mut guessed, &prefetched.wanted, prefetched.items).await.is_ok() {
            let HintedProofBudget { accounts, slots } = guessed.hints_left;
            guessed.hints_left = HintedProofBudget {
                accounts: accounts.saturating_sub(prefetched.wanted.accounts.len()),
                slots: slots.saturating_sub(prefetched.wanted.slot_count()),
            };
            *session = guessed;
        }
    }

    /// What the call is likely to read: what it read last time, else the source's hint.
    pub(super) async fn get_or_fetch_access_list(
        &self,
        source: &dyn StateSource,
        block: BlockId,
        call: &EvmCall,
    ) -> Arc<AccessList> {
        // Some nodes return no access list for a call that reverts. The runs then discover what it reads.
        self.hints.get_or_request(call, async { source.fetch_access_list(call, block).await.unwrap_or_default() }).await
    }

    /// Waits for a permit, then runs the call once on a blocking thread.
    async fn run_call_once(
        &self,
        session: &mut CallProverSession,
        call: &EvmCall,
    ) -> Result<EvmRunResult, CallProverError> {
        let permit = self.runs.acquire_permit().await;
        let (proven, header) = (std::mem::take(&mut session.proven), Arc::clone(&session.header));
        let (chain_id, call) = (self.chain_id, call.clone());
        let running = permit.run_job(move || {
            let ran = clresolve_state::run_call(&proven, &header, chain_id, &call);
            (proven, ran)
        });
        let (proven, ran) = running.await?;
        session.proven = proven;
        Ok(ran?)
    }

    /// Fetches the wanted state and verifies the proofs.
    async fn fetch_and_verify_state(
        &self,
        source: &dyn StateSource,
        session: &mut CallProverSession,
        mut wanted: WantedState,
    ) -> Result<(), CallProverError> {
        self.add_uncached_codes(&session.proven, &mut wanted).await;
        if wanted.is_empty() {
            return Ok(());
        }
        let items = source.fetch_state(&wanted, session.header.block_id()).await?;
        self.verify_proofs_and_codes(session, &wanted, items).await
    }

    /// Adds to `wanted` the code of accounts that are not proven yet and whose last known code is not cached.
    async fn add_uncached_codes(&self, proven: &ProvenStateValues, wanted: &mut WantedState) {
        for address in wanted.accounts.keys() {
            // Every call reads the account of its caller, which seldom has code.
            let may_run = !proven.has_proven_account(*address) && *address != CALLER;
            if may_run && !self.codes.has_last_code(*address).await {
                wanted.codes.insert(*address);
            }
        }
    }

    /// Verifies the proofs of the wanted state, and keeps what they prove.
    async fn verify_proofs_and_codes(
        &self,
        session: &mut CallProverSession,
        wanted: &WantedState,
        items: Vec<StateProofOrCode>,
    ) -> Result<(), CallProverError> {
        let mut codes = Vec::new();
        for item in items {
            match item {
                StateProofOrCode::Proof(address, slots, answer) => {
                    let root = session.header.state_root();
                    let verified = clresolve_state::verify_account_proof(root, address, &slots, &answer)?;
                    if let Some(nodes) = &mut session.nodes {
                        nodes.add_proof(address, &slots, &answer);
                    }
                    session.proven.insert_account(address, verified);
                }
                StateProofOrCode::Code(address, code) => codes.push((address, code)),
            }
        }
        for (address, code) in codes {
            if let Some(hash) = session.proven.code_hash(address) {
                session.proven.insert_code(hash, self.codes.verify_and_cache(address, hash, code).await?);
            } else if !code.is_empty() {
                return Err(ProvenCallError::Code { address }.into());
            }
        }
        for address in wanted.accounts.keys() {
            if let Some(hash) = session.proven.code_hash(*address) {
                self.codes.set_last_code_hash(*address, hash).await;
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

impl CallProverSession {
    pub(super) fn new(header: Arc<HashedBlockHeader>) -> Self {
        let (read, hints_left) = (WantedState::default(), HintedProofBudget::FULL);
        Self { header, proven: ProvenStateValues::default(), read, hints_left, nodes: None }
    }

    /// Counts what a call has read or tried to read.
    fn note_read_state(&mut self, read: &BTreeMap<Address, BTreeSet<U256>>) -> Result<(), ProvenCallError> {
        for (address, slots) in read {
            self.read.accounts.entry(*address).or_default().extend(slots);
        }
        if self.read.accounts.len() > MAX_ACCOUNTS {
            return Err(ProvenCallError::TooManyAccounts);
        }
        if self.read.slot_count() > MAX_SLOTS && !clresolve_core::mutant!("endless-slots") {
            return Err(ProvenCallError::TooManySlots);
        }
        Ok(())
    }

    /// Like [`CallProverSession::new`], but keeps the proofs.
    pub(super) fn new_keeping_proofs(header: Arc<HashedBlockHeader>) -> Self {
        Self { nodes: Some(StateWitness::default()), ..Self::new(header) }
    }

    pub(super) fn block_id(&self) -> BlockId {
        self.header.block_id()
    }

    /// The proofs, if they are kept.
    pub(super) fn kept_proofs(&self) -> Option<StateWitness> {
        Some(self.nodes.clone()?.with_codes_of(&self.proven))
    }
}

/// What every call reads.
fn always_read_state(call: &EvmCall) -> WantedState {
    let accounts = [call.to, CALLER].map(|address| (address, BTreeSet::new()));
    WantedState { accounts: accounts.into(), ..WantedState::default() }
}

/// The hinted accounts and slots, up to the largest possible hint budget.
fn hinted_state<'h>(hint: impl Iterator<Item = &'h AccessListItem>) -> WantedState {
    let mut wanted = WantedState::default();
    let mut room = MAX_HINTED_SLOTS;
    for item in hint.take(MAX_HINTED_ACCOUNTS) {
        let slots = item.storage_keys.iter().take(room).map(|key| U256::from_be_bytes(key.0));
        let known = wanted.accounts.entry(item.address).or_default();
        let before = known.len();
        known.extend(slots);
        room -= known.len() - before;
    }
    wanted
}
