// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// The resolver profiles of the sandbox's resolvers.
interface IProfiles {
    /// EIP-137.
    function addr(bytes32 node) external view returns (address);
    /// ENSIP-5.
    function text(bytes32 node, string calldata key) external view returns (string memory);
}

/// ENSIP-9: addresses by coin type.
interface IMulticoin {
    function addr(bytes32 node, uint256 coinType) external view returns (bytes memory);
}

/// EIP-165.
interface IERC165 {
    function supportsInterface(bytes4 id) external view returns (bool);
}

/// ENSIP-10.
interface IExtendedResolver {
    function resolve(bytes calldata name, bytes calldata data) external view returns (bytes memory);
}

/// Several calls to one contract in a single call.
interface IMulticallable {
    function multicall(bytes[] calldata calls) external returns (bytes[] memory);
}

/// EIP-3668: request one of `urls` with `callData` and pass the response to `callbackFunction`.
error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData);

/// A call that the resolver does not support.
error UnsupportedResolverProfile(bytes4 selector);
