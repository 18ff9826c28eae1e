// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC165, IExtendedResolver, IMulticoin, IProfiles, OffchainLookup} from "./Profiles.sol";

/// A resolver that misbehaves in one way. If only one key misbehaves, the other records are returned as set.
contract HostileResolver is IERC165, IExtendedResolver, IMulticoin, IProfiles {
    enum Mode {
        Aliased, // a string whose length word is the offset word itself
        BadLength, // a string with a length past the end
        BadOffset, // a string with an offset past the end
        BadUtf8, // a string that is not UTF-8
        Burn, // uses up all gas
        BurnInterface, // uses up all gas when asked for its interfaces, else answers well
        Empty, // no bytes at all
        ExtendedGarbage, // says yes to every interface, then answers ENSIP-10 with garbage
        Garbage, // four bytes
        Huge, // a string of 1 MiB
        Invalid, // runs the invalid opcode
        Loop, // sends the client to the URL again and again
        NoUrls, // sends the client to no URL at all
        Revert, // reverts with a reason
        RevertHuge, // reverts with 1 MiB
        Sender, // sends the client to the URL in the name of another contract
        Ssrf // sends the client to the URL and believes what comes back
    }

    error Unauthorised();

    uint256 private constant HUGE = 1 << 20;
    address private constant STRANGER = address(0xdead);

    address private immutable DEPLOYER = msg.sender;
    Mode private immutable MODE;
    /// The URL of a lookup, or the key that misbehaves (`addr` for addresses by coin type). All keys misbehave if it is
    /// empty.
    string private _arg;

    address private _addr;
    mapping(uint256 coinType => bytes) private _addresses;
    mapping(string key => string) private _texts;

    constructor(Mode mode, string memory arg) {
        MODE = mode;
        _arg = arg;
    }

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

    function addr(bytes32) external view returns (address) {
        return _addr;
    }

    function addr(bytes32, uint256 coinType) external view returns (bytes memory) {
        if (_misbehavesFor("addr")) _misbehave();
        return _addresses[coinType];
    }

    function text(bytes32, string calldata key) external view returns (string memory) {
        if (_misbehavesFor(key)) _misbehave();
        return _texts[key];
    }

    function resolve(bytes calldata, bytes calldata) external view returns (bytes memory) {
        _misbehave();
    }

    function supportsInterface(bytes4 id) external view returns (bool) {
        if (MODE == Mode.BurnInterface) _burn();
        if (MODE == Mode.ExtendedGarbage) return true;
        return id == type(IERC165).interfaceId || id == IProfiles.addr.selector || id == IProfiles.text.selector
            || id == type(IMulticoin).interfaceId;
    }

    /// EIP-3668 callback that always requests another lookup.
    function loopCallback(bytes calldata, bytes calldata) external view {
        _lookup(address(this), _one(_arg), this.loopCallback.selector);
    }

    /// EIP-3668 callback that returns the URL's response as the text without verification.
    function believeCallback(bytes calldata answer, bytes calldata) external pure returns (bytes memory) {
        return answer;
    }

    function _misbehavesFor(string memory key) private view returns (bool) {
        if (MODE == Mode.BurnInterface) return false;
        return _looksUp() || bytes(_arg).length == 0 || keccak256(bytes(key)) == keccak256(bytes(_arg));
    }

    function _looksUp() private view returns (bool) {
        return MODE == Mode.Loop || MODE == Mode.NoUrls || MODE == Mode.Sender || MODE == Mode.Ssrf;
    }

    function _misbehave() private view {
        if (MODE == Mode.Aliased) _answer(abi.encode(uint256(0), uint256(5), bytes32("alias")));
        if (MODE == Mode.BadLength) _answer(abi.encode(uint256(32), type(uint256).max));
        if (MODE == Mode.BadOffset) _answer(abi.encode(type(uint256).max, uint256(5)));
        if (MODE == Mode.BadUtf8) _answer(abi.encode(bytes(hex"fffe80c0af")));
        if (MODE == Mode.Burn) _burn();
        if (MODE == Mode.Empty) _answer("");
        if (MODE == Mode.ExtendedGarbage || MODE == Mode.Garbage) _answer(hex"deadbeef");
        if (MODE == Mode.Huge) _answerHuge();
        if (MODE == Mode.Invalid) assembly { invalid() }
        if (MODE == Mode.Loop) _lookup(address(this), _one(_arg), this.loopCallback.selector);
        if (MODE == Mode.NoUrls) _lookup(address(this), new string[](0), this.believeCallback.selector);
        if (MODE == Mode.RevertHuge) assembly { revert(0, HUGE) }
        if (MODE == Mode.Sender) _lookup(STRANGER, _one(_arg), this.believeCallback.selector);
        if (MODE == Mode.Ssrf) _lookup(address(this), _one(_arg), this.believeCallback.selector);
        revert("hostile resolver");
    }

    function _lookup(address sender, string[] memory urls, bytes4 callback) private pure {
        revert OffchainLookup(sender, urls, hex"01", callback, hex"02");
    }

    function _one(string memory url) private pure returns (string[] memory urls) {
        urls = new string[](1);
        urls[0] = url;
    }

    /// Requests more memory than any gas limit pays for, which uses up all gas at once.
    function _burn() private pure {
        assembly { revert(0, 0xffffffffffff) }
    }

    function _answer(bytes memory data) private pure {
        assembly { return(add(data, 32), mload(data)) }
    }

    /// A string of `HUGE` letters, built in place because copies of it would exceed the gas limit.
    function _answerHuge() private pure {
        assembly {
            let data := mload(0x40)
            mstore(data, 32)
            mstore(add(data, 32), HUGE)
            let end := add(add(data, 64), HUGE)
            for { let at := add(data, 64) } lt(at, end) { at := add(at, 32) } {
                mstore(at, 0x4141414141414141414141414141414141414141414141414141414141414141)
            }
            return(data, add(HUGE, 64))
        }
    }
}
