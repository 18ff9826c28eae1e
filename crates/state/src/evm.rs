//! One run of a call over the state that is proven so far.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, Bytes, U256};
use revm::context::TxEnv;
use revm::context::result::ExecutionResult;
use revm::primitives::TxKind;
use revm::{Context, ExecuteEvm, MainBuilder, MainContext};

use super::error::ProofError;
use super::header::HashedHeader;
use super::proven::{Proven, View, Wanted};

/// Who calls, as nodes have it where a call does not say.
pub const CALLER: Address = Address::ZERO;

/// A message call that changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The contract.
    pub to: Address,
    /// What it is told.
    pub data: Bytes,
    /// Most gas that it may use. Never more than the block's limit is given.
    pub gas: u64,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned this.
    Returned(Bytes),
    /// It reverted with this.
    Reverted(Bytes),
    /// It ran out of gas, met an invalid instruction, and the like.
    Halted(String),
}

/// What a run came to.
pub enum Run {
    /// All that it read was proven: these accounts and slots.
    Closed {
        /// What the call did.
        outcome: Outcome,
        /// The accounts and slots that it read.
        read: BTreeMap<Address, BTreeSet<U256>>,
    },
    /// It met what is not proven; its outcome means nothing.
    Open {
        /// What it met unproven.
        missed: Wanted,
        /// The gas that the run took.
        gas: u64,
    },
}

/// Runs `call` in the header's block.
///
/// # Errors
/// [`ProofError::TooOld`], [`ProofError::BlockHash`] or [`ProofError::Evm`].
pub fn run(proven: &Proven, header: &HashedHeader, chain_id: u64, call: &Call) -> Result<Run, ProofError> {
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
        return Ok(Run::Open { missed, gas: result.tx_gas_used() });
    }
    if let Some(number) = unknown_block {
        return Err(ProofError::BlockHash(number));
    }
    let outcome = match result {
        ExecutionResult::Success { output, .. } => Outcome::Returned(output.into_data()),
        ExecutionResult::Revert { output, .. } => Outcome::Reverted(output),
        ExecutionResult::Halt { reason, .. } => Outcome::Halted(format!("{reason:?}")),
    };
    Ok(Run::Closed { outcome, read })
}
