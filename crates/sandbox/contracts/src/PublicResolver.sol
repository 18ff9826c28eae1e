// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {INameWrapper} from "./NameWrapper.sol";
import {IERC165, IMulticallable, IMulticoin, IProfiles} from "./Profiles.sol";
import {IRegistry} from "./Registry.sol";

/// Records that the holder of a name writes.
contract PublicResolver is IERC165, IMulticallable, IMulticoin, IProfiles {
    event AddrChanged(bytes32 indexed node, address a);
    event AddressChanged(bytes32 indexed node, uint256 coinType, bytes newAddress);
    event TextChanged(bytes32 indexed node, string indexed indexedKey, string key, string value);

    error Unauthorised(bytes32 node);

    /// The coin type of ether. Its address is the address of EIP-137.
    uint256 private constant ETHER = 60;

    IRegistry private immutable REGISTRY;
    INameWrapper private immutable WRAPPER;

    mapping(bytes32 node => mapping(uint256 coinType => bytes)) private _addresses;
    mapping(bytes32 node => mapping(string key => string)) private _texts;

    constructor(IRegistry registry, INameWrapper wrapper) {
        REGISTRY = registry;
        WRAPPER = wrapper;
    }

    modifier authorised(bytes32 node) {
        address owner = REGISTRY.owner(node);
        if (owner == address(WRAPPER)) owner = WRAPPER.ownerOf(uint256(node));
        if (owner != msg.sender) revert Unauthorised(node);
        _;
    }

    function addr(bytes32 node) external view returns (address) {
        bytes memory value = _addresses[node][ETHER];
        return value.length == 20 ? address(bytes20(value)) : address(0);
    }

    function addr(bytes32 node, uint256 coinType) external view returns (bytes memory) {
        return _addresses[node][coinType];
    }

    function text(bytes32 node, string calldata key) external view returns (string memory) {
        return _texts[node][key];
    }

    function setAddr(bytes32 node, address value) external authorised(node) {
        _addresses[node][ETHER] = abi.encodePacked(value);
        emit AddrChanged(node, value);
    }

    function setAddr(bytes32 node, uint256 coinType, bytes calldata value) external authorised(node) {
        _addresses[node][coinType] = value;
        emit AddressChanged(node, coinType, value);
    }

    function setText(bytes32 node, string calldata key, string calldata value) external authorised(node) {
        _texts[node][key] = value;
        emit TextChanged(node, key, key, value);
    }

    /// Executes each call on this contract for the same caller. If one fails, all fail.
    function multicall(bytes[] calldata calls) external returns (bytes[] memory results) {
        results = new bytes[](calls.length);
        for (uint256 i; i < calls.length; i++) {
            (bool ok, bytes memory result) = address(this).delegatecall(calls[i]);
            if (!ok) assembly { revert(add(result, 32), mload(result)) }
            results[i] = result;
        }
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == type(IERC165).interfaceId || id == IProfiles.addr.selector || id == IProfiles.text.selector
            || id == type(IMulticoin).interfaceId || id == type(IMulticallable).interfaceId;
    }
}
