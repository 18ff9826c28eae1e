// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// The functions of the registry that the other contracts need.
interface IRegistry {
    function owner(bytes32 node) external view returns (address);
    function resolver(bytes32 node) external view returns (address);
    function setResolver(bytes32 node, address resolver) external;
    function setSubnodeOwner(bytes32 node, bytes32 label, address owner) external returns (bytes32);
    function setSubnodeRecord(bytes32 node, bytes32 label, address owner, address resolver, uint64 ttl) external;
}

/// The ENS registry (ENSIP-1, EIP-137).
contract Registry is IRegistry {
    struct Record {
        address owner;
        address resolver;
        uint64 ttl;
    }

    event NewOwner(bytes32 indexed node, bytes32 indexed label, address owner);
    event Transfer(bytes32 indexed node, address owner);
    event NewResolver(bytes32 indexed node, address resolver);

    error Unauthorised(bytes32 node);

    mapping(bytes32 node => Record) private _records;

    /// The deployer owns the root.
    constructor() {
        _records[0].owner = msg.sender;
    }

    modifier authorised(bytes32 node) {
        if (_records[node].owner != msg.sender) revert Unauthorised(node);
        _;
    }

    function owner(bytes32 node) external view returns (address) {
        return _records[node].owner;
    }

    function resolver(bytes32 node) external view returns (address) {
        return _records[node].resolver;
    }

    function ttl(bytes32 node) external view returns (uint64) {
        return _records[node].ttl;
    }

    function recordExists(bytes32 node) external view returns (bool) {
        return _records[node].owner != address(0);
    }

    function setOwner(bytes32 node, address newOwner) external authorised(node) {
        _records[node].owner = newOwner;
        emit Transfer(node, newOwner);
    }

    function setResolver(bytes32 node, address newResolver) external authorised(node) {
        _records[node].resolver = newResolver;
        emit NewResolver(node, newResolver);
    }

    function setTTL(bytes32 node, uint64 newTtl) external authorised(node) {
        _records[node].ttl = newTtl;
    }

    function setSubnodeOwner(bytes32 node, bytes32 label, address newOwner)
        external
        authorised(node)
        returns (bytes32 subnode)
    {
        subnode = keccak256(abi.encodePacked(node, label));
        _records[subnode].owner = newOwner;
        emit NewOwner(node, label, newOwner);
    }

    function setSubnodeRecord(bytes32 node, bytes32 label, address newOwner, address newResolver, uint64 newTtl)
        external
        authorised(node)
    {
        bytes32 subnode = keccak256(abi.encodePacked(node, label));
        _records[subnode] = Record(newOwner, newResolver, newTtl);
        emit NewOwner(node, label, newOwner);
        emit NewResolver(subnode, newResolver);
    }
}
