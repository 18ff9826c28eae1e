//! Decodes calls to the x402 proxy for Permit2 (`x402ExactPermit2Proxy`).

use alloy_sol_types::SolCall as _;

use crate::typed_data::{settleCall, settleWithPermitCall};

/// The permit that this call settles, or `None`. Like the contract, ignores data after the arguments. Takes time and
/// memory proportional to the input, and copies only one argument.
pub(super) fn decode_settle_call(input: &[u8]) -> Option<settleCall> {
    if let Ok(call) = settleCall::abi_decode_validate(input) {
        return Some(call);
    }
    let settleWithPermitCall { permit, owner, witness, signature, .. } =
        settleWithPermitCall::abi_decode_validate(input).ok()?;
    Some(settleCall { permit, owner, witness, signature })
}
