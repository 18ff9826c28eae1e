//! One run of a call over the state proven so far.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, Bytes, U256};
use revm::context::TxEnv;
use revm::context::result::ExecutionResult;
use revm::primitives::TxKind;
use revm::{Context, ExecuteEvm, MainBuilder, MainContext};

use super::error::ProofError;
use super::header::HashedHeader;
use super::proven::{Proven, View, Wanted};

/// The caller, which nodes use by default.
pub const CALLER: Address = Address::ZERO;

/// A read-only message call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The contract.
    pub to: Address,
    /// The call data.
    pub data: Bytes,
    /// Gas limit. The block's gas limit applies too.
    pub gas: u64,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It returned this data.
    Returned(Bytes),
    /// It reverted with this data.
    Reverted(Bytes),
    /// It ran out of gas, executed an invalid instruction, or the like: the reason.
    Halted(String),
}

/// The result of a run.
pub enum Execution {
    /// Every item that it read was proven.
    Complete {
        /// The outcome of the call.
        outcome: CallOutcome,
        /// The accounts and slots that it read.
        read: BTreeMap<Address, BTreeSet<U256>>,
    },
    /// It read unproven state, so its outcome is meaningless.
    Incomplete {
        /// The unproven state that it read.
        missed: Wanted,
        /// The gas that the run used.
        gas: u64,
    },
}

/// Runs `call` in the header's block.
///
/// # Errors
/// [`ProofError::TooOld`], [`ProofError::BlockHash`] or [`ProofError::Evm`].
pub fn run(proven: &Proven, header: &HashedHeader, chain_id: u64, call: &Call) -> Result<Execution, ProofError> {
    let transaction = TxEnv::builder()
        .caller(CALLER)
        .kind(TxKind::Call(call.to))
        .data(call.data.clone())
        .gas_limit(call.gas.min(header.gas_limit()))
        .gas_price(0)
        .chain_id(Some(chain_id))
        .build()
        .map_err(|error| ProofError::Evm(format!("{error:?}")))?;
    let mut view = View::new(proven, header);
    let executed = Context::mainnet()
        .with_db(&mut view)
        .with_cfg(header.configuration(chain_id)?)
        .with_block(header.environment())
        .build_mainnet()
        .transact(transaction);
    let View { read, missed, unknown_block, .. } = view;
    let result = executed.map_err(|error| ProofError::Evm(error.to_string()))?.result;
    if !missed.is_empty() {
        return Ok(Execution::Incomplete { missed, gas: result.tx_gas_used() });
    }
    if let Some(number) = unknown_block {
        return Err(ProofError::BlockHash(number));
    }
    let outcome = match result {
        ExecutionResult::Success { output, .. } => CallOutcome::Returned(output.into_data()),
        ExecutionResult::Revert { output, .. } => CallOutcome::Reverted(output),
        ExecutionResult::Halt { reason, .. } => CallOutcome::Halted(format!("{reason:?}")),
    };
    Ok(Execution::Complete { outcome, read })
}
