// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// The function of Permit2 that transfers a token by a signature with a witness.
interface IPermit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    function permitWitnessTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 witness,
        string calldata witnessType,
        bytes calldata signature
    ) external;
}

/// The spender of x402's payments by Permit2: it transfers exactly the permitted amount to the witness's `to`. It has
/// the interface of x402's own contract and replaces it on test chains, since no package contains that contract's code.
contract ExactPermit2Proxy {
    IPermit2 private constant PERMIT2 = IPermit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);
    string private constant WITNESS_TYPE =
        "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,uint256 validAfter)";
    bytes32 private constant WITNESS = keccak256("Witness(address to,uint256 validAfter)");

    struct Witness {
        address to;
        uint256 validAfter;
    }

    event Settled();

    error InvalidAmount();
    error InvalidOwner();
    error InvalidDestination();
    error PaymentTooEarly();

    function settle(
        IPermit2.PermitTransferFrom calldata permit,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) external {
        uint256 amount = permit.permitted.amount;
        if (amount == 0) revert InvalidAmount();
        if (owner == address(0)) revert InvalidOwner();
        if (witness.to == address(0)) revert InvalidDestination();
        if (block.timestamp < witness.validAfter) revert PaymentTooEarly();
        PERMIT2.permitWitnessTransferFrom(
            permit,
            IPermit2.SignatureTransferDetails(witness.to, amount),
            owner,
            keccak256(abi.encode(WITNESS, witness.to, witness.validAfter)),
            WITNESS_TYPE,
            signature
        );
        emit Settled();
    }
}
