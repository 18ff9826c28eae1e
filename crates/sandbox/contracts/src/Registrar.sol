// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./Registry.sol";

/// The functions of the registrar that the NameWrapper needs.
interface IRegistrar {
    function register(uint256 labelhash, address owner, uint256 expires) external;
}

/// The read functions of the `.eth` registrar. Its controllers write registrations with any expiry.
contract Registrar is IRegistrar {
    event NameRegistered(uint256 indexed id, address indexed owner, uint256 expires);

    error Expired(uint256 labelhash);
    error NotController(address caller);

    IRegistry private immutable REGISTRY;
    /// Namehash of the name whose subnames are registered here.
    bytes32 private immutable BASE_NODE;
    address private immutable DEPLOYER;
    address private immutable WRAPPER;

    mapping(uint256 labelhash => address) private _owners;
    mapping(uint256 labelhash => uint256) private _expiries;

    constructor(IRegistry registry, bytes32 baseNode, address wrapper) {
        REGISTRY = registry;
        BASE_NODE = baseNode;
        DEPLOYER = msg.sender;
        WRAPPER = wrapper;
    }

    /// When the registration expires, in seconds of Unix time. 0 if the name was never registered.
    function nameExpires(uint256 labelhash) external view returns (uint256) {
        return _expiries[labelhash];
    }

    /// The holder of the registration. Reverts once it has expired.
    function ownerOf(uint256 labelhash) external view returns (address) {
        if (_expiries[labelhash] <= block.timestamp) revert Expired(labelhash);
        return _owners[labelhash];
    }

    function register(uint256 labelhash, address owner, uint256 expires) external {
        if (msg.sender != DEPLOYER && msg.sender != WRAPPER) revert NotController(msg.sender);
        _owners[labelhash] = owner;
        _expiries[labelhash] = expires;
        REGISTRY.setSubnodeOwner(BASE_NODE, bytes32(labelhash), owner);
        emit NameRegistered(labelhash, owner, expires);
    }
}
