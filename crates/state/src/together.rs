//! Batches the calls of many names into one Multicall3 call, which calls itself once per name. No I/O.
//!
//! The inner calls are byte for byte those for a single name, and the contracts see the same caller. So each returns
//! the same as it would alone, as long as no call of the batch ran out of gas. The last call of the batch, the gauge,
//! proves that: it uses up [`GAUGE_GAS`], so at least that much gas was left after all other calls.

use alloy_primitives::{Address, Bytes, address};
use alloy_sol_types::SolCall as _;

use crate::abi::{self, AbiError};
use crate::contracts::{
    AGGREGATE, CALL_GAS, ContractDecodeError, MulticallCall, MulticallResult, tryBlockAndAggregateCall,
};

/// Gas that must be left after the calls of a batch: a quarter of the limit. A call that runs out of gas at call depth
/// `d` has used up (63/64)^d of the gas (EIP-150). So if a call runs out of gas at a depth of up to 18, less than a
/// quarter is left. The contracts here nest about ten calls.
const GAUGE_GAS: u32 = (CALL_GAS / 4) as u32;

/// The precompile that uses one gas per requested round (EIP-152).
const GAUGE: Address = address!("0000000000000000000000000000000000000009");
/// Length of the gauge's input in bytes: rounds, state, message, offset and a flag.
const GAUGE_INPUT_BYTES: usize = 213;
/// Length of the gauge's output in bytes. An address without code returns nothing.
const GAUGE_OUTPUT_BYTES: usize = 64;

/// Call data for Multicall3 at `multicall3`: `calls` to itself, then the gauge.
pub fn batch_call_data(multicall3: Address, calls: impl IntoIterator<Item = Bytes>) -> Bytes {
    let mut gauge = GAUGE_GAS.to_be_bytes().to_vec();
    gauge.resize(GAUGE_INPUT_BYTES, 0);
    let of_names = calls.into_iter().map(|data| MulticallCall { target: multicall3, callData: data });
    let calls = of_names.chain([MulticallCall { target: GAUGE, callData: gauge.into() }]).collect();
    tryBlockAndAggregateCall { requireSuccess: false, calls }.abi_encode().into()
}

/// The results of a batch of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchedCallResults {
    /// Number of the block in which they ran.
    pub block: u64,
    /// The return data of each call, in order.
    pub results: Vec<Bytes>,
}

/// Why the results of a whole batch cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchedCallError {
    /// A call may have run out of gas because of the calls before it.
    #[error("the calls used up their gas")]
    Starved,
    /// The result cannot come from Multicall3.
    #[error(transparent)]
    Garbled(#[from] ContractDecodeError),
}

impl BatchedCallResults {
    /// Decodes the result of Multicall3 for [`batch_call_data`] with `count` calls.
    ///
    /// # Errors
    /// [`BatchedCallError`].
    pub fn decode(data: &[u8], count: usize) -> Result<Self, BatchedCallError> {
        abi::check_abi_parameters(data, AGGREGATE).map_err(ContractDecodeError::from)?;
        let answer = tryBlockAndAggregateCall::abi_decode_returns_validate(data);
        let answer = answer.map_err(|_| ContractDecodeError::from(AbiError::BadValue))?;
        let block = u64::try_from(answer.blockNumber).map_err(|_| ContractDecodeError::from(AbiError::BadValue))?;
        let mut results = answer.returnData;
        let gauge = results.pop().filter(|_| results.len() == count).ok_or(ContractDecodeError::Count)?;
        let is_full = gauge.success && gauge.returnData.len() == GAUGE_OUTPUT_BYTES;
        let is_starved = !is_full || results.iter().any(|result| !result.success);
        if is_starved && !clresolve_core::mutant!("starved-calls-count") {
            return Err(BatchedCallError::Starved);
        }
        Ok(Self { block, results: results.into_iter().map(|MulticallResult { returnData, .. }| returnData).collect() })
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{B256, U256};

    use super::*;
    use crate::contracts::tryBlockAndAggregateReturn;

    fn result(success: bool, data: &[u8]) -> MulticallResult {
        MulticallResult { success, returnData: data.to_vec().into() }
    }

    fn returned(results: Vec<MulticallResult>) -> Vec<u8> {
        let answer =
            tryBlockAndAggregateReturn { blockNumber: U256::from(7), blockHash: B256::ZERO, returnData: results };
        tryBlockAndAggregateCall::abi_encode_returns(&answer)
    }

    #[test]
    fn results_count_only_where_the_gauge_was_full() {
        let full = || result(true, &[0; GAUGE_OUTPUT_BYTES]);
        let sound = returned(vec![result(true, b"one"), result(true, b""), full()]);
        let expected = BatchedCallResults { block: 7, results: vec![b"one".to_vec().into(), Bytes::new()] };
        assert_eq!(BatchedCallResults::decode(&sound, 2), Ok(expected));
        let gauge_failed = returned(vec![result(true, b"one"), result(false, b"")]);
        let no_precompile = returned(vec![result(true, b"one"), result(true, b"")]);
        let call_failed = returned(vec![result(false, b"one"), full()]);
        for starved in [gauge_failed, no_precompile, call_failed] {
            assert_eq!(BatchedCallResults::decode(&starved, 1), Err(BatchedCallError::Starved));
        }
    }

    #[test]
    fn what_is_not_of_these_calls_is_refused() {
        let one = returned(vec![result(true, &[0; GAUGE_OUTPUT_BYTES])]);
        for count in [1, 2] {
            assert_eq!(BatchedCallResults::decode(&one, count), Err(ContractDecodeError::Count.into()));
        }
        assert_eq!(BatchedCallResults::decode(&returned(Vec::new()), 0), Err(ContractDecodeError::Count.into()));
        assert!(matches!(
            BatchedCallResults::decode(b"", 1),
            Err(BatchedCallError::Garbled(ContractDecodeError::Abi(_)))
        ));
    }

    #[test]
    fn no_call_that_starves_leaves_what_the_gauge_takes() {
        let left = |depth: i32| 1.0 - (63.0_f64 / 64.0).powi(depth);
        assert!(left(18) * CALL_GAS as f64 <= f64::from(GAUGE_GAS));
    }
}
