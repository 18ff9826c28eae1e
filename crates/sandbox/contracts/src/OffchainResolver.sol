// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC165, IExtendedResolver, OffchainLookup} from "./Profiles.sol";

/// The gateway's response: the result, its expiry, and a signature over both and the request.
interface IGateway {
    function resolve(bytes calldata name, bytes calldata data)
        external
        view
        returns (bytes memory result, uint64 expires, bytes memory signature);
}

/// An ENSIP-10 resolver whose records come from a gateway (EIP-3668) and are accepted only with the gateway's
/// signature.
contract OffchainResolver is IERC165, IExtendedResolver {
    error SignatureExpired(uint64 expires);
    error SignatureInvalid();

    /// Half the order of secp256k1. A larger `s` is another encoding of the same signature.
    uint256 private constant MAX_S = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    address public immutable SIGNER;
    string[] private _urls;

    constructor(address signer, string[] memory urls) {
        SIGNER = signer;
        _urls = urls;
    }

    function resolve(bytes calldata name, bytes calldata data) external view returns (bytes memory) {
        bytes memory request = abi.encodeCall(IGateway.resolve, (name, data));
        revert OffchainLookup(address(this), _urls, request, this.resolveCallback.selector, request);
    }

    /// Verifies the gateway's response to `request` and returns the result in it.
    function resolveCallback(bytes calldata answer, bytes calldata request) external view returns (bytes memory) {
        (bytes memory result, uint64 expires, bytes memory signature) = abi.decode(answer, (bytes, uint64, bytes));
        if (expires < block.timestamp) revert SignatureExpired(expires);
        bytes32 digest = keccak256(
            abi.encodePacked(hex"1900", address(this), expires, keccak256(request), keccak256(result))
        );
        if (_signer(digest, signature) != SIGNER) revert SignatureInvalid();
        return result;
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == type(IERC165).interfaceId || id == type(IExtendedResolver).interfaceId;
    }

    function _signer(bytes32 digest, bytes memory signature) private pure returns (address signer) {
        if (signature.length != 65) revert SignatureInvalid();
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
            v := byte(0, mload(add(signature, 96)))
        }
        if (uint256(s) > MAX_S) revert SignatureInvalid();
        signer = ecrecover(digest, v, r, s);
        if (signer == address(0)) revert SignatureInvalid();
    }
}
