//! Decodes calls to the x402 proxy for Permit2 (`x402ExactPermit2Proxy`).

use alloy_sol_types::{SolCall as _, sol};

sol! {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct Witness {
        address to;
        uint256 validAfter;
    }

    struct EIP2612Permit {
        uint256 value;
        uint256 deadline;
        bytes32 r;
        bytes32 s;
        uint8 v;
    }

    function settle(PermitTransferFrom permit, address owner, Witness witness, bytes signature);

    function settleWithPermit(
        EIP2612Permit permit2612, PermitTransferFrom permit, address owner, Witness witness, bytes signature
    );
}

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
