// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC165, IExtendedResolver, IMulticoin, IProfiles, UnsupportedResolverProfile} from "./Profiles.sol";

/// An ENSIP-10 resolver that answers for any name, with the same set of records for all of them. `{label}` in a text
/// stands for the first label of the requested name.
contract WildcardResolver is IERC165, IExtendedResolver {
    error Unauthorised();

    bytes private constant MARK = "{label}";
    address private immutable DEPLOYER = msg.sender;

    address private _addr;
    mapping(uint256 coinType => bytes) private _addresses;
    mapping(string key => string) private _texts;

    function setAddr(address value) external {
        if (msg.sender != DEPLOYER) revert Unauthorised();
        _addr = value;
    }

    function setAddr(uint256 coinType, bytes calldata value) external {
        if (msg.sender != DEPLOYER) revert Unauthorised();
        _addresses[coinType] = value;
    }

    function setText(string calldata key, string calldata value) external {
        if (msg.sender != DEPLOYER) revert Unauthorised();
        _texts[key] = value;
    }

    function resolve(bytes calldata name, bytes calldata data) external view returns (bytes memory) {
        bytes4 selector = bytes4(data);
        if (selector == IProfiles.addr.selector) return abi.encode(_addr);
        if (selector == IMulticoin.addr.selector) {
            (, uint256 coinType) = abi.decode(data[4:], (bytes32, uint256));
            return abi.encode(_addresses[coinType]);
        }
        if (selector != IProfiles.text.selector) revert UnsupportedResolverProfile(selector);
        (, string memory key) = abi.decode(data[4:], (bytes32, string));
        return abi.encode(_fill(bytes(_texts[key]), name[1:1 + uint8(name[0])]));
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == type(IERC165).interfaceId || id == type(IExtendedResolver).interfaceId;
    }

    /// `pattern` with every placeholder replaced by `label`.
    function _fill(bytes memory pattern, bytes calldata label) private pure returns (bytes memory filled) {
        uint256 from;
        uint256 cursor;
        while (cursor + MARK.length <= pattern.length) {
            if (!_markAt(pattern, cursor)) {
                cursor++;
                continue;
            }
            filled = bytes.concat(filled, _slice(pattern, from, cursor), label);
            cursor += MARK.length;
            from = cursor;
        }
        return bytes.concat(filled, _slice(pattern, from, pattern.length));
    }

    function _markAt(bytes memory pattern, uint256 start) private pure returns (bool) {
        for (uint256 i; i < MARK.length; i++) {
            if (pattern[start + i] != MARK[i]) return false;
        }
        return true;
    }

    function _slice(bytes memory data, uint256 from, uint256 to) private pure returns (bytes memory part) {
        part = new bytes(to - from);
        assembly { mcopy(add(part, 32), add(add(data, 32), from), sub(to, from)) }
    }
}
