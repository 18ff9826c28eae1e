// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC165, IMulticoin, IProfiles} from "./Profiles.sol";

/// An ENSv2 resolver: it stores records by record id, and each name links to one. Linking a name to another id changes all
/// of its records at once, without an event about any of them.
contract RecordResolver is IERC165, IMulticoin, IProfiles {
    event Linked(uint256 indexed recordId, bytes32 indexed node, bytes name);
    event AddressUpdated(uint256 indexed recordId, uint256 coinType, bytes newAddress);
    event TextUpdated(uint256 indexed recordId, string indexed indexedKey, string key, string value);

    error Unauthorised();

    /// The coin type of ether. Its address is the address of EIP-137.
    uint256 private constant ETHER = 60;
    address private immutable DEPLOYER = msg.sender;

    mapping(bytes32 node => uint256) private _links;
    mapping(uint256 recordId => mapping(uint256 coinType => bytes)) private _addresses;
    mapping(uint256 recordId => mapping(string key => string)) private _texts;

    modifier authorised() {
        if (msg.sender != DEPLOYER) revert Unauthorised();
        _;
    }

    function link(bytes32 node, bytes calldata name, uint256 recordId) external authorised {
        _links[node] = recordId;
        emit Linked(recordId, node, name);
    }

    function setAddr(uint256 recordId, uint256 coinType, bytes calldata value) external authorised {
        _addresses[recordId][coinType] = value;
        emit AddressUpdated(recordId, coinType, value);
    }

    function setText(uint256 recordId, string calldata key, string calldata value) external authorised {
        _texts[recordId][key] = value;
        emit TextUpdated(recordId, key, key, value);
    }

    function addr(bytes32 node) external view returns (address) {
        bytes memory value = _addresses[_links[node]][ETHER];
        return value.length == 20 ? address(bytes20(value)) : address(0);
    }

    function addr(bytes32 node, uint256 coinType) external view returns (bytes memory) {
        return _addresses[_links[node]][coinType];
    }

    function text(bytes32 node, string calldata key) external view returns (string memory) {
        return _texts[_links[node]][key];
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == type(IERC165).interfaceId || id == IProfiles.addr.selector || id == IProfiles.text.selector
            || id == type(IMulticoin).interfaceId;
    }
}
