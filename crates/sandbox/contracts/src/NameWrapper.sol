// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IRegistrar} from "./Registrar.sol";
import {IRegistry} from "./Registry.sol";

/// The functions of the wrapper that resolvers need.
interface INameWrapper {
    function ownerOf(uint256 node) external view returns (address);
}

/// The read functions of the NameWrapper. It owns its names in the registry, and stores their holders and their
/// spelling.
contract NameWrapper is INameWrapper {
    struct Wrapped {
        address owner;
        uint32 fuses;
        uint64 expiry;
    }

    event NameWrapped(bytes32 indexed node, bytes name, address owner, uint32 fuses, uint64 expiry);

    error Unauthorised(bytes32 node);

    /// A name with this fuse leaves its holder when it expires.
    uint32 private constant PARENT_CANNOT_CONTROL = 1 << 16;
    uint32 private constant IS_DOT_ETH = 1 << 17;
    /// The holder of a wrapped `.eth` name keeps it for this long after the registration has expired.
    uint64 private constant GRACE_PERIOD = 90 days;

    IRegistry private immutable REGISTRY;
    IRegistrar private immutable REGISTRAR;
    bytes32 private immutable ETH_NODE;
    address private immutable DEPLOYER;

    mapping(uint256 node => Wrapped) private _names;
    /// The names in wire format (ENSIP-10).
    mapping(bytes32 node => bytes) public names;

    constructor(IRegistry registry, IRegistrar registrar, bytes32 ethNode) {
        REGISTRY = registry;
        REGISTRAR = registrar;
        ETH_NODE = ethNode;
        DEPLOYER = msg.sender;
        names[ethNode] = "\x03eth\x00";
    }

    function ownerOf(uint256 node) public view returns (address owner) {
        (owner,,) = getData(node);
    }

    function getData(uint256 node) public view returns (address owner, uint32 fuses, uint64 expiry) {
        Wrapped storage name = _names[node];
        (owner, fuses, expiry) = (name.owner, name.fuses, name.expiry);
        if (expiry >= block.timestamp) return (owner, fuses, expiry);
        return (fuses & PARENT_CANNOT_CONTROL != 0 ? address(0) : owner, 0, expiry);
    }

    function isWrapped(bytes32 node) external view returns (bool) {
        return _names[uint256(node)].owner != address(0) && REGISTRY.owner(node) == address(this);
    }

    /// Registers a second-level `.eth` name until `expires` and wraps it for `owner`.
    function registerAndWrap(string calldata label, address owner, uint64 expires, address resolver) external {
        if (msg.sender != DEPLOYER) revert Unauthorised(ETH_NODE);
        bytes32 labelhash = keccak256(bytes(label));
        REGISTRAR.register(uint256(labelhash), address(this), expires);
        bytes32 node = keccak256(abi.encodePacked(ETH_NODE, labelhash));
        REGISTRY.setResolver(node, resolver);
        wrap(node, ETH_NODE, label, Wrapped(owner, PARENT_CANNOT_CONTROL | IS_DOT_ETH, expires + GRACE_PERIOD));
    }

    /// Creates a wrapped subname that the parent cannot revoke until `expiry`, which is at most the parent's expiry.
    function setSubnodeRecord(bytes32 parent, string calldata label, address owner, address resolver, uint64 expiry)
        external
    {
        if (ownerOf(uint256(parent)) != msg.sender) revert Unauthorised(parent);
        uint64 limit = _names[uint256(parent)].expiry;
        bytes32 labelhash = keccak256(bytes(label));
        REGISTRY.setSubnodeRecord(parent, labelhash, address(this), resolver, 0);
        bytes32 node = keccak256(abi.encodePacked(parent, labelhash));
        wrap(node, parent, label, Wrapped(owner, PARENT_CANNOT_CONTROL, expiry < limit ? expiry : limit));
    }

    function setResolver(bytes32 node, address resolver) external {
        if (ownerOf(uint256(node)) != msg.sender) revert Unauthorised(node);
        REGISTRY.setResolver(node, resolver);
    }

    function wrap(bytes32 node, bytes32 parent, string calldata label, Wrapped memory wrapped) private {
        bytes memory name = abi.encodePacked(uint8(bytes(label).length), label, names[parent]);
        names[node] = name;
        _names[uint256(node)] = wrapped;
        emit NameWrapped(node, name, wrapped.owner, wrapped.fuses, wrapped.expiry);
    }
}
