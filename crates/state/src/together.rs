//! Calls of many names as one call of Multicall3, which calls itself once for each name. No I/O.
//!
//! The inner calls are byte for byte those that a name is asked with alone, and the contracts see the same caller, so what
//! one returns is what it returns alone, as long as no call of the batch ran out of gas. The gauge shows that: the last
//! call uses up [`GAUGE_GAS`], so so much was left after all others.

use alloy_primitives::{Address, Bytes, address};
use alloy_sol_types::SolCall as _;

use crate::abi::{self, AbiError};
use crate::contracts::{AGGREGATE, CALL_GAS, Call, CallResult, Garbled, tryBlockAndAggregateCall};

/// The gas that must be left after the calls of a batch: a quarter of all. A call that runs out of gas `d` calls deep has
/// used up (63/64)^d of what there was (EIP-150). So a quarter is never left where one did that is up to 18 calls deep. The
/// contracts here nest some ten.
const GAUGE_GAS: u32 = (CALL_GAS / 4) as u32;

/// The precompile that uses one gas for each round that it is told to make (EIP-152).
const GAUGE: Address = address!("0000000000000000000000000000000000000009");
/// Length of its input: rounds, state, message, offset and a flag.
const GAUGE_INPUT_BYTES: usize = 213;
/// Length of its output. An address without code returns nothing.
const GAUGE_OUTPUT_BYTES: usize = 64;

/// Call data for Multicall3 at `multicall3`: `calls` of itself, then the gauge.
pub fn call_together(multicall3: Address, calls: impl IntoIterator<Item = Bytes>) -> Bytes {
    let mut gauge = GAUGE_GAS.to_be_bytes().to_vec();
    gauge.resize(GAUGE_INPUT_BYTES, 0);
    let of_names = calls.into_iter().map(|data| Call { target: multicall3, callData: data });
    let calls = of_names.chain([Call { target: GAUGE, callData: gauge.into() }]).collect();
    tryBlockAndAggregateCall { requireSuccess: false, calls }.abi_encode().into()
}

/// What calls that were made together returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// Height of the block that they ran in.
    pub block: u64,
    /// What each returned, in their order.
    pub results: Vec<Bytes>,
}

/// Why nothing that calls returned together can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spoiled {
    /// A call may have run out of gas because of those before it.
    #[error("the calls used up their gas")]
    Starved,
    /// The result cannot come from Multicall3.
    #[error(transparent)]
    Garbled(#[from] Garbled),
}

impl Together {
    /// Decodes what Multicall3 returned for `count` calls of [`call_together`].
    ///
    /// # Errors
    /// [`Spoiled`].
    pub fn decode(data: &[u8], count: usize) -> Result<Self, Spoiled> {
        abi::check(data, AGGREGATE).map_err(Garbled::from)?;
        let answer = tryBlockAndAggregateCall::abi_decode_returns_validate(data);
        let answer = answer.map_err(|_| Garbled::from(AbiError::BadValue))?;
        let block = u64::try_from(answer.blockNumber).map_err(|_| Garbled::from(AbiError::BadValue))?;
        let mut results = answer.returnData;
        let gauge = results.pop().filter(|_| results.len() == count).ok_or(Garbled::Count)?;
        let is_full = gauge.success && gauge.returnData.len() == GAUGE_OUTPUT_BYTES;
        let is_starved = !is_full || results.iter().any(|result| !result.success);
        if is_starved && !clresolve_core::mutant!("starved-calls-count") {
            return Err(Spoiled::Starved);
        }
        Ok(Self { block, results: results.into_iter().map(|CallResult { returnData, .. }| returnData).collect() })
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::{B256, U256};

    use super::*;
    use crate::contracts::tryBlockAndAggregateReturn;

    fn result(success: bool, data: &[u8]) -> CallResult {
        CallResult { success, returnData: data.to_vec().into() }
    }

    fn returned(results: Vec<CallResult>) -> Vec<u8> {
        let answer =
            tryBlockAndAggregateReturn { blockNumber: U256::from(7), blockHash: B256::ZERO, returnData: results };
        tryBlockAndAggregateCall::abi_encode_returns(&answer)
    }

    #[test]
    fn results_count_only_where_the_gauge_was_full() {
        let full = || result(true, &[0; GAUGE_OUTPUT_BYTES]);
        let sound = returned(vec![result(true, b"one"), result(true, b""), full()]);
        let expected = Together { block: 7, results: vec![b"one".to_vec().into(), Bytes::new()] };
        assert_eq!(Together::decode(&sound, 2), Ok(expected));
        let gauge_failed = returned(vec![result(true, b"one"), result(false, b"")]);
        let no_precompile = returned(vec![result(true, b"one"), result(true, b"")]);
        let call_failed = returned(vec![result(false, b"one"), full()]);
        for starved in [gauge_failed, no_precompile, call_failed] {
            assert_eq!(Together::decode(&starved, 1), Err(Spoiled::Starved));
        }
    }

    #[test]
    fn what_is_not_of_these_calls_is_refused() {
        let one = returned(vec![result(true, &[0; GAUGE_OUTPUT_BYTES])]);
        for count in [1, 2] {
            assert_eq!(Together::decode(&one, count), Err(Garbled::Count.into()));
        }
        assert_eq!(Together::decode(&returned(Vec::new()), 0), Err(Garbled::Count.into()));
        assert!(matches!(Together::decode(b"", 1), Err(Spoiled::Garbled(Garbled::Abi(_)))));
    }

    #[test]
    fn no_call_that_starves_leaves_what_the_gauge_takes() {
        let left = |depth: i32| 1.0 - (63.0_f64 / 64.0).powi(depth);
        assert!(left(18) * CALL_GAS as f64 <= f64::from(GAUGE_GAS));
    }
}
