//! Accounts in memory and the execution of calls and creations on them.

use std::convert::Infallible;

use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_trie::TrieAccount;
use alloy_trie::root::{state_root_unhashed, storage_root_unhashed};
use revm::context::result::{EVMError, ExecutionResult, Output};
use revm::context::{BlockEnv, CfgEnv, TxEnv};
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::TxKind;
use revm::primitives::hardfork::SpecId;
use revm::state::AccountInfo;
use revm::{Context, DatabaseRef, ExecuteCommitEvm, ExecuteEvm, MainBuilder, MainContext};

use super::{CHAIN_ID, GAS_LIMIT};

/// The accounts of the chain at one moment.
#[derive(Clone, Default)]
pub(super) struct State(CacheDB<EmptyDB>);

/// A message call.
pub(super) struct Call {
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) data: Bytes,
    pub(super) gas: u64,
}

/// How an execution ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Returned(Output),
    Reverted(Bytes),
    /// Out of gas, an invalid opcode and the like.
    Halted(String),
}

/// The EVM did not begin to execute: the sender or the gas is impossible. The cause, in words.
#[derive(Debug)]
pub(super) struct Rejected(pub(super) String);

impl State {
    /// Executes a call in `block` and forgets its effects.
    pub(super) fn call(&self, block: BlockEnv, call: Call) -> Result<Outcome, Rejected> {
        let tx = transaction(call.from, TxKind::Call(call.to), call.data, call.gas)?;
        let mut evm =
            Context::mainnet().with_ref_db(&self.0).with_cfg(configuration()).with_block(block).build_mainnet();
        outcome(evm.transact(tx).map(|executed| executed.result))
    }

    /// Executes a call or a creation before any block and keeps its effects.
    pub(super) fn transact(&mut self, from: Address, kind: TxKind, data: Bytes) -> Result<Outcome, Rejected> {
        let tx = transaction(from, kind, data, GAS_LIMIT)?;
        let block = BlockEnv { timestamp: U256::ZERO, ..BlockEnv::default() };
        let mut evm =
            Context::mainnet().with_db(&mut self.0).with_cfg(configuration()).with_block(block).build_mainnet();
        outcome(evm.transact_commit(tx))
    }

    /// Moves the account at `from`, with code and storage, to `to`.
    pub(super) fn relocate(&mut self, from: Address, to: Address) {
        if let Some(account) = self.0.cache.accounts.remove(&from) {
            self.0.cache.accounts.insert(to, account);
        }
    }

    /// Lets later blocks ask for the hash of this one.
    pub(super) fn remember_block(&mut self, number: u64, hash: B256) {
        self.0.cache.block_hashes.insert(U256::from(number), hash);
    }

    pub(super) fn code(&self, address: Address) -> Bytes {
        let code = self.0.code_by_hash_ref(self.account(address).code_hash);
        code.unwrap_or_else(|never: Infallible| match never {}).original_bytes()
    }

    pub(super) fn storage(&self, address: Address, slot: U256) -> U256 {
        self.0.storage_ref(address, slot).unwrap_or_else(|never: Infallible| match never {})
    }

    /// Nonce, balance and code hash; those of an empty account where there is none.
    pub(super) fn account(&self, address: Address) -> AccountInfo {
        self.0.basic_ref(address).unwrap_or_else(|never: Infallible| match never {}).unwrap_or_default()
    }

    /// The root of the state trie.
    pub(super) fn root(&self) -> B256 {
        let accounts = self.0.cache.accounts.iter().filter(|(_, account)| !account.info.is_empty());
        state_root_unhashed(accounts.map(|(address, account)| {
            let slots = account.storage.iter().filter(|(_, value)| !value.is_zero());
            let account = TrieAccount {
                nonce: account.info.nonce,
                balance: account.info.balance,
                storage_root: storage_root_unhashed(slots.map(|(slot, value)| (B256::from(*slot), *value))),
                code_hash: account.info.code_hash,
            };
            (*address, account)
        }))
    }
}

fn configuration() -> CfgEnv {
    let mut configuration = CfgEnv::new_with_spec(SpecId::OSAKA);
    configuration.chain_id = CHAIN_ID;
    configuration.disable_nonce_check = true;
    configuration.tx_gas_limit_cap = Some(GAS_LIMIT);
    configuration
}

fn transaction(from: Address, kind: TxKind, data: Bytes, gas: u64) -> Result<TxEnv, Rejected> {
    TxEnv::builder()
        .caller(from)
        .kind(kind)
        .data(data)
        .gas_limit(gas)
        .gas_price(0)
        .chain_id(Some(CHAIN_ID))
        .build()
        .map_err(|error| Rejected(format!("{error:?}")))
}

fn outcome(executed: Result<ExecutionResult, EVMError<Infallible>>) -> Result<Outcome, Rejected> {
    match executed.map_err(|error| Rejected(error.to_string()))? {
        ExecutionResult::Success { output, .. } => Ok(Outcome::Returned(output)),
        ExecutionResult::Revert { output, .. } => Ok(Outcome::Reverted(output)),
        ExecutionResult::Halt { reason, .. } => Ok(Outcome::Halted(format!("{reason:?}"))),
    }
}
