//! In-memory accounts, and the execution of calls and contract creations.

use std::convert::Infallible;

use alloy_primitives::{Address, B256, Bytes, Log, U256};
use alloy_rpc_types_eth::{AccessList, AccessListItem, AccessListResult};
use alloy_trie::TrieAccount;
use alloy_trie::root::{state_root_unhashed, storage_root_unhashed};
use revm::context::result::{EVMError, ExecutionResult, Output};
use revm::context::{BlockEnv, CfgEnv, TxEnv};
use revm::database::{CacheDB, EmptyDB};
use revm::primitives::TxKind;
use revm::primitives::hardfork::SpecId;
use revm::state::AccountInfo;
use revm::{Context, DatabaseRef, ExecuteCommitEvm, ExecuteEvm, MainBuilder, MainContext};

/// The chain ID (CAIP-2 `eip155:31337`), which is common for development chains.
pub const CHAIN_ID: u64 = 31_337;

/// Gas limit of a block and of an `eth_call`, as commonly allowed by nodes.
pub(super) const GAS_LIMIT: u64 = 50_000_000;

/// The accounts of the chain at one point in time.
#[derive(Clone, Default)]
pub(super) struct SandboxEvmAccounts(CacheDB<EmptyDB>);

pub(super) struct SandboxEvmCall {
    pub(super) from: Address,
    pub(super) to: Address,
    pub(super) data: Bytes,
    pub(super) gas: u64,
}

#[derive(Debug)]
pub(super) enum SandboxEvmOutcome {
    Returned(Output),
    Reverted(Bytes),
    /// Out of gas, invalid opcode or similar.
    Halted(String),
}

/// The EVM refused to execute because the sender or the gas is invalid. Contains the cause.
#[derive(Debug)]
pub(super) struct InvalidEvmCallError(pub(super) String);

impl SandboxEvmAccounts {
    /// Executes a call in `block` and discards its effects.
    pub(super) fn execute_call(
        &self,
        block: BlockEnv,
        call: SandboxEvmCall,
    ) -> Result<SandboxEvmOutcome, InvalidEvmCallError> {
        let tx = evm_transaction(call.from, TxKind::Call(call.to), call.data, call.gas)?;
        let mut evm =
            Context::mainnet().with_ref_db(&self.0).with_cfg(evm_configuration()).with_block(block).build_mainnet();
        map_execution_result(evm.transact(tx).map(|executed| executed.result))
    }

    /// Executes a call or a creation before any block and keeps its effects. Returns the result with its logs.
    pub(super) fn execute_and_commit(
        &mut self,
        from: Address,
        kind: TxKind,
        data: Bytes,
    ) -> Result<(SandboxEvmOutcome, Vec<Log>), InvalidEvmCallError> {
        let tx = evm_transaction(from, kind, data, GAS_LIMIT)?;
        // Authorisations without a start time are valid from the first second.
        let block = BlockEnv { timestamp: U256::ONE, ..BlockEnv::default() };
        let mut evm =
            Context::mainnet().with_db(&mut self.0).with_cfg(evm_configuration()).with_block(block).build_mainnet();
        let result = evm.transact_commit(tx);
        let logs = result.as_ref().map(|result| result.logs().to_vec()).unwrap_or_default();
        Ok((map_execution_result(result)?, logs))
    }

    /// Moves the account at `from`, with code and storage, to `to`.
    pub(super) fn move_account(&mut self, from: Address, to: Address) {
        if let Some(account) = self.0.cache.accounts.remove(&from) {
            self.0.cache.accounts.insert(to, account);
        }
    }

    /// Makes the hash of this block available to later blocks.
    pub(super) fn insert_block_hash(&mut self, number: u64, hash: B256) {
        self.0.cache.block_hashes.insert(U256::from(number), hash);
    }

    pub(super) fn code(&self, address: Address) -> Bytes {
        let code = self.0.code_by_hash_ref(self.account(address).code_hash);
        code.unwrap_or_else(|never: Infallible| match never {}).original_bytes()
    }

    pub(super) fn storage(&self, address: Address, slot: U256) -> U256 {
        self.0.storage_ref(address, slot).unwrap_or_else(|never: Infallible| match never {})
    }

    /// Nonce, balance and code hash. Those of an empty account if the account does not exist.
    pub(super) fn account(&self, address: Address) -> AccountInfo {
        self.0.basic_ref(address).unwrap_or_else(|never: Infallible| match never {}).unwrap_or_default()
    }

    /// Executes a call in `block` and returns the accounts and slots that it read (`eth_createAccessList`).
    pub(super) fn create_access_list(
        &self,
        block: BlockEnv,
        call: SandboxEvmCall,
    ) -> Result<AccessListResult, InvalidEvmCallError> {
        let apart = [call.from, call.to, block.beneficiary];
        let tx = evm_transaction(call.from, TxKind::Call(call.to), call.data, call.gas)?;
        let mut evm =
            Context::mainnet().with_ref_db(&self.0).with_cfg(evm_configuration()).with_block(block).build_mainnet();
        let executed = evm.transact(tx).map_err(|error| InvalidEvmCallError(error.to_string()))?;
        let mut list: Vec<_> = executed
            .state
            .into_iter()
            .filter(|(address, account)| !apart.contains(address) || !account.storage.is_empty())
            .map(|(address, account)| {
                let mut storage_keys: Vec<B256> = account.storage.keys().map(|slot| B256::from(*slot)).collect();
                storage_keys.sort_unstable();
                AccessListItem { address, storage_keys }
            })
            .collect();
        list.sort_unstable_by_key(|item| item.address);
        Ok(AccessListResult {
            access_list: AccessList(list),
            gas_used: U256::from(executed.result.tx_gas_used()),
            error: (!executed.result.is_success()).then(|| "execution reverted".to_owned()),
        })
    }

    pub(super) fn state_root(&self) -> B256 {
        state_root_unhashed(self.trie_accounts())
    }

    /// The non-empty accounts, as stored in the state trie.
    pub(super) fn trie_accounts(&self) -> impl Iterator<Item = (Address, TrieAccount)> {
        let accounts = self.0.cache.accounts.iter().filter(|(_, account)| !account.info.is_empty());
        accounts.map(|(address, account)| {
            let account = TrieAccount {
                nonce: account.info.nonce,
                balance: account.info.balance,
                storage_root: storage_root_unhashed(self.trie_slots(*address)),
                code_hash: account.info.code_hash,
            };
            (*address, account)
        })
    }

    /// The non-zero slots of an account.
    pub(super) fn trie_slots(&self, address: Address) -> impl Iterator<Item = (B256, U256)> {
        let storage = self.0.cache.accounts.get(&address).map(|account| &account.storage);
        let slots = storage.into_iter().flatten().filter(|(_, value)| !value.is_zero());
        slots.map(|(slot, value)| (B256::from(*slot), *value))
    }
}

fn evm_configuration() -> CfgEnv {
    let mut configuration = CfgEnv::new_with_spec(SpecId::OSAKA);
    configuration.chain_id = CHAIN_ID;
    configuration.disable_nonce_check = true;
    configuration.tx_gas_limit_cap = Some(GAS_LIMIT);
    configuration
}

fn evm_transaction(from: Address, kind: TxKind, data: Bytes, gas: u64) -> Result<TxEnv, InvalidEvmCallError> {
    TxEnv::builder()
        .caller(from)
        .kind(kind)
        .data(data)
        .gas_limit(gas)
        .gas_price(0)
        .chain_id(Some(CHAIN_ID))
        .build()
        .map_err(|error| InvalidEvmCallError(format!("{error:?}")))
}

fn map_execution_result(
    executed: Result<ExecutionResult, EVMError<Infallible>>,
) -> Result<SandboxEvmOutcome, InvalidEvmCallError> {
    match executed.map_err(|error| InvalidEvmCallError(error.to_string()))? {
        ExecutionResult::Success { output, .. } => Ok(SandboxEvmOutcome::Returned(output)),
        ExecutionResult::Revert { output, .. } => Ok(SandboxEvmOutcome::Reverted(output)),
        ExecutionResult::Halt { reason, .. } => Ok(SandboxEvmOutcome::Halted(format!("{reason:?}"))),
    }
}
