//! One run of a call over the state proven so far.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, Bytes, U256};
use revm::context::TxEnv;
use revm::context::result::ExecutionResult;
use revm::primitives::TxKind;
use revm::{Context, ExecuteEvm, MainBuilder, MainContext};

use super::error::ProvenCallError;
use super::header::HashedBlockHeader;
use super::proven::{ProvenStateDatabase, ProvenStateValues, WantedState};

/// The caller, which nodes use by default.
pub const CALLER: Address = Address::ZERO;

/// A read-only message call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvmCall {
    /// The contract.
    pub to: Address,
    /// The call data.
    pub data: Bytes,
    /// Gas limit. The block's gas limit applies too.
    pub gas: u64,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvmCallOutcome {
    /// It returned this data.
    Returned(Bytes),
    /// It reverted with this data.
    Reverted(Bytes),
    /// It ran out of gas, executed an invalid instruction, or the like: the reason.
    Halted(String),
}

/// The result of a run.
pub enum EvmRunResult {
    /// Every item that it read was proven.
    Complete {
        /// The outcome of the call.
        outcome: EvmCallOutcome,
        /// The accounts and slots that it read.
        read: BTreeMap<Address, BTreeSet<U256>>,
    },
    /// It read unproven state, so its outcome is meaningless.
    Incomplete {
        /// The unproven state that it read.
        missed: WantedState,
        /// The gas that the run used.
        gas: u64,
    },
}

/// Runs `call` in the header's block.
///
/// # Errors
/// [`ProvenCallError::TooOld`], [`ProvenCallError::BlockHash`] or [`ProvenCallError::Evm`].
pub fn run_call(
    proven: &ProvenStateValues,
    header: &HashedBlockHeader,
    chain_id: u64,
    call: &EvmCall,
) -> Result<EvmRunResult, ProvenCallError> {
    let transaction = TxEnv::builder()
        .caller(CALLER)
        .kind(TxKind::Call(call.to))
        .data(call.data.clone())
        .gas_limit(call.gas.min(header.gas_limit()))
        .gas_price(0)
        .chain_id(Some(chain_id))
        .build()
        .map_err(|error| ProvenCallError::Evm(format!("{error:?}")))?;
    let mut view = ProvenStateDatabase::new(proven, header);
    let executed = Context::mainnet()
        .with_db(&mut view)
        .with_cfg(header.evm_configuration(chain_id)?)
        .with_block(header.block_environment())
        .build_mainnet()
        .transact(transaction);
    let ProvenStateDatabase { read, missed, unknown_block, .. } = view;
    let result = executed.map_err(|error| ProvenCallError::Evm(error.to_string()))?.result;
    if !missed.is_empty() {
        return Ok(EvmRunResult::Incomplete { missed, gas: result.tx_gas_used() });
    }
    if let Some(number) = unknown_block {
        return Err(ProvenCallError::BlockHash(number));
    }
    let outcome = match result {
        ExecutionResult::Success { output, .. } => EvmCallOutcome::Returned(output.into_data()),
        ExecutionResult::Revert { output, .. } => EvmCallOutcome::Reverted(output),
        ExecutionResult::Halt { reason, .. } => EvmCallOutcome::Halted(format!("{reason:?}")),
    };
    Ok(EvmRunResult::Complete { outcome, read })
}
