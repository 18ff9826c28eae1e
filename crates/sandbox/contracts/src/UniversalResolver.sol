// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC165, IExtendedResolver, IMulticallable, OffchainLookup, UnsupportedResolverProfile} from "./Profiles.sol";
import {IRegistry} from "./Registry.sol";

/// ENSIP-21: many EIP-3668 lookups in one request.
interface IBatchGateway {
    struct Request {
        address sender;
        string[] urls;
        bytes data;
    }

    function query(Request[] memory requests)
        external
        view
        returns (bool[] memory failures, bytes[] memory responses);
}

/// The forward half of ENSIP-23, with ENSIP-1, ENSIP-10 and ENSIP-21. `reverse` and ENSIP-22 are not implemented.
contract UniversalResolver is IERC165 {
    error ResolverNotFound(bytes name);
    error ResolverNotContract(bytes name, address resolver);
    error ResolverError(bytes errorData);
    error NameMalformed(bytes name);
    error BatchGatewayMalformed();

    /// The state of one call to the resolver.
    enum Status {
        Pending, // waits for a lookup; `data` is the OffchainLookup
        Answered, // `data` is the answer
        Silent, // answered with no bytes
        Failed, // reverted; `data` is the error
        Unfetched // its lookup failed; `data` is the batch gateway's error
    }

    struct Call {
        bytes4 selector;
        Status status;
        bytes data;
    }

    /// The state of a resolution between two rounds of lookups.
    struct Session {
        address resolver;
        bool extended;
        bool multicall;
        Call[] calls;
    }

    struct Lookup {
        address sender;
        string[] urls;
        bytes callData;
        bytes4 callbackFunction;
        bytes extraData;
    }

    bytes4 private constant INTERFACE_ID = 0xcd191b34;
    /// EIP-165's gas limit for `supportsInterface`.
    uint256 private constant INTERFACE_GAS = 30_000;

    IRegistry private immutable REGISTRY;

    constructor(IRegistry registry) {
        REGISTRY = registry;
    }

    /// The resolver of the nearest ancestor that has one, the namehash of `name`, and the offset of that ancestor in
    /// it.
    function findResolver(bytes calldata name)
        public
        view
        virtual
        returns (address resolver, bytes32 node, uint256 offset)
    {
        return _find(name, 0);
    }

    /// The result of `data`, or of each call in it if it is a `multicall(bytes[])`, and the resolver that returned it.
    function resolve(bytes calldata name, bytes calldata data) external view returns (bytes memory, address) {
        (address resolver,, uint256 offset) = findResolver(name);
        if (resolver == address(0)) revert ResolverNotFound(name);
        Session memory session;
        session.resolver = resolver;
        session.extended = _isExtended(resolver);
        session.multicall = bytes4(data) == IMulticallable.multicall.selector;
        if (!session.extended && offset != 0) revert ResolverNotFound(name);
        if (resolver.code.length == 0) revert ResolverNotContract(name, resolver);

        bytes[] memory calls = _calls(data, session.multicall);
        session.calls = new Call[](calls.length);
        for (uint256 i; i < calls.length; i++) {
            Call memory call = session.calls[i];
            call.selector = bytes4(calls[i]);
            _run(call, resolver, session.extended ? abi.encodeCall(IExtendedResolver.resolve, (name, calls[i])) : calls[i]);
        }
        return _finish(session);
    }

    /// EIP-3668 callback: passes the batch gateway's responses to the resolver's own callbacks.
    function resolveCallback(bytes calldata response, bytes calldata extraData)
        external
        view
        returns (bytes memory, address)
    {
        Session memory session = abi.decode(extraData, (Session));
        (bool[] memory failures, bytes[] memory responses) = abi.decode(response, (bool[], bytes[]));
        if (failures.length != responses.length) revert BatchGatewayMalformed();
        uint256 next;
        for (uint256 i; i < session.calls.length; i++) {
            Call memory call = session.calls[i];
            if (call.status != Status.Pending) continue;
            if (next == responses.length) revert BatchGatewayMalformed();
            if (failures[next]) {
                (call.status, call.data) = (Status.Unfetched, responses[next]);
            } else {
                Lookup memory lookup = _lookup(call.data);
                _run(
                    call,
                    lookup.sender,
                    abi.encodeWithSelector(lookup.callbackFunction, responses[next], lookup.extraData)
                );
            }
            next++;
        }
        if (next != responses.length) revert BatchGatewayMalformed();
        return _finish(session);
    }

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == type(IERC165).interfaceId || id == INTERFACE_ID;
    }

    /// Walks from the root to the label at `start`. The last resolver found is the nearest.
    function _find(bytes calldata name, uint256 start)
        private
        view
        returns (address resolver, bytes32 node, uint256 offset)
    {
        if (start >= name.length) revert NameMalformed(name);
        uint256 next = start + 1 + uint8(name[start]);
        if (next == start + 1) {
            if (next != name.length) revert NameMalformed(name);
            return (REGISTRY.resolver(0), 0, start);
        }
        if (next > name.length) revert NameMalformed(name);
        (resolver, node, offset) = _find(name, next);
        node = keccak256(abi.encodePacked(node, keccak256(name[start + 1:next])));
        address own = REGISTRY.resolver(node);
        if (own != address(0)) (resolver, offset) = (own, start);
    }

    function _isExtended(address resolver) private view returns (bool) {
        (bool ok, bytes memory answer) = resolver.staticcall{gas: INTERFACE_GAS}(
            abi.encodeCall(IERC165.supportsInterface, (type(IExtendedResolver).interfaceId))
        );
        return ok && answer.length >= 32 && bytes32(answer) != 0;
    }

    function _calls(bytes calldata data, bool multicall) private pure returns (bytes[] memory calls) {
        if (multicall) return abi.decode(data[4:], (bytes[]));
        calls = new bytes[](1);
        calls[0] = data;
    }

    function _run(Call memory call, address target, bytes memory data) private view {
        (bool ok, bytes memory answer) = target.staticcall(data);
        call.data = answer;
        if (ok) call.status = answer.length == 0 ? Status.Silent : Status.Answered;
        else call.status = _asksFor(answer, target) ? Status.Pending : Status.Failed;
    }

    /// Whether `answer` is a lookup with `target` as its sender. Another sender is an error (EIP-3668).
    function _asksFor(bytes memory answer, address target) private pure returns (bool) {
        return bytes4(answer) == OffchainLookup.selector && _lookup(answer).sender == target;
    }

    function _finish(Session memory session) private view returns (bytes memory, address) {
        _lookUpPending(session);
        if (!session.multicall) return (_single(session), session.resolver);
        bytes[] memory results = new bytes[](session.calls.length);
        for (uint256 i; i < results.length; i++) {
            results[i] = _element(session, session.calls[i]);
        }
        return (abi.encode(results), session.resolver);
    }

    /// If calls are pending, reverts with one lookup for all of them.
    function _lookUpPending(Session memory session) private view {
        uint256 count;
        for (uint256 i; i < session.calls.length; i++) {
            if (session.calls[i].status == Status.Pending) count++;
        }
        if (count == 0) return;
        IBatchGateway.Request[] memory requests = new IBatchGateway.Request[](count);
        count = 0;
        for (uint256 i; i < session.calls.length; i++) {
            if (session.calls[i].status != Status.Pending) continue;
            Lookup memory lookup = _lookup(session.calls[i].data);
            requests[count++] = IBatchGateway.Request(lookup.sender, lookup.urls, lookup.callData);
        }
        string[] memory gateways = new string[](1);
        gateways[0] = "x-batch-gateway:true";
        revert OffchainLookup(
            address(this),
            gateways,
            abi.encodeCall(IBatchGateway.query, (requests)),
            this.resolveCallback.selector,
            abi.encode(session)
        );
    }

    /// The result of the only call. Reverts if there is none.
    function _single(Session memory session) private pure returns (bytes memory) {
        Call memory call = session.calls[0];
        if (call.status == Status.Silent) revert UnsupportedResolverProfile(call.selector);
        if (call.status == Status.Unfetched) _raise(call.data);
        if (call.status == Status.Failed) {
            if (bytes4(call.data) == UnsupportedResolverProfile.selector) _raise(call.data);
            revert ResolverError(call.data);
        }
        return _element(session, call);
    }

    /// The result of one of several calls, or its error.
    function _element(Session memory session, Call memory call) private pure returns (bytes memory) {
        if (call.status == Status.Silent) {
            return abi.encodeWithSelector(UnsupportedResolverProfile.selector, call.selector);
        }
        if (call.status != Status.Answered || !session.extended) return call.data;
        return abi.decode(call.data, (bytes));
    }

    function _lookup(bytes memory errorData) private pure returns (Lookup memory lookup) {
        bytes memory arguments = new bytes(errorData.length - 4);
        assembly { mcopy(add(arguments, 32), add(errorData, 36), mload(arguments)) }
        (lookup.sender, lookup.urls, lookup.callData, lookup.callbackFunction, lookup.extraData) =
            abi.decode(arguments, (address, string[], bytes, bytes4, bytes));
    }

    function _raise(bytes memory errorData) private pure {
        assembly { revert(add(errorData, 32), mload(errorData)) }
    }
}
