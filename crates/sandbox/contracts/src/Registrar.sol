// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistry} from "./Registry.sol";

/// What the NameWrapper needs of the registrar.
interface IRegistrar {
    function register(uint256 labelhash, address owner, uint256 expires) external;
}

/// The reading face of the `.eth` registrar, over registrations that its controllers write with any expiry.
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

    /// When the registration ends, in seconds of Unix time; 0 when there never was one.
    function nameExpires(uint256 labelhash) external view returns (uint256) {
        return _expiries[labelhash];
    }

    /// Who holds the registration. Reverts once it has expired.
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
