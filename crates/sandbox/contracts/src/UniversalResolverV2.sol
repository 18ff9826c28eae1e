// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./Registry.sol";
import {UniversalResolver} from "./UniversalResolver.sol";

/// The Universal Resolver of ENSv2. A flat list of resolvers stands for the tree of its registries. At a migrated name and
/// below it, what the ENSv1 registry says is ignored.
contract UniversalResolverV2 is UniversalResolver {
    error Unauthorised();

    address private immutable DEPLOYER = msg.sender;

    mapping(bytes32 node => bool) private _migrated;
    mapping(bytes32 node => address) private _resolvers;

    constructor(IRegistry registry) UniversalResolver(registry) {}

    /// Migrates a name and all names below it.
    function migrate(bytes32 node) external {
        if (msg.sender != DEPLOYER) revert Unauthorised();
        _migrated[node] = true;
    }

    /// Sets the resolver of a migrated name. Zero deletes the name.
    function setResolver(bytes32 node, address resolver) external {
        if (msg.sender != DEPLOYER) revert Unauthorised();
        _resolvers[node] = resolver;
    }

    function findResolver(bytes calldata name)
        public
        view
        override
        returns (address resolver, bytes32 node, uint256 offset)
    {
        (resolver, node, offset) = super.findResolver(name);
        (bool migrated, address found,, uint256 start) = _findMigrated(name, 0);
        if (migrated) (resolver, offset) = (found, start);
    }

    /// Walks from the root to the label at `start` of a well-formed name.
    function _findMigrated(bytes calldata name, uint256 start)
        private
        view
        returns (bool migrated, address resolver, bytes32 node, uint256 offset)
    {
        uint256 next = start + 1 + uint8(name[start]);
        if (next == start + 1) return (false, address(0), 0, start);
        (migrated, resolver, node, offset) = _findMigrated(name, next);
        node = keccak256(abi.encodePacked(node, keccak256(name[start + 1:next])));
        migrated = migrated || _migrated[node];
        address own = _resolvers[node];
        if (own != address(0)) (resolver, offset) = (own, start);
    }
}
