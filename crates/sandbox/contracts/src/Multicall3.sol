// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// The functions of Multicall3 that clients of the sandbox call.
contract Multicall3 {
    struct Call {
        address target;
        bytes callData;
    }

    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    error CallFailed(uint256 index);

    /// Executes the calls and returns the number of the block in which they ran. The block's hash is unknown during
    /// execution and remains zero.
    function tryBlockAndAggregate(bool requireSuccess, Call[] calldata calls)
        external
        payable
        returns (uint256 blockNumber, bytes32 blockHash, Result[] memory results)
    {
        (blockNumber, blockHash) = (block.number, blockhash(block.number));
        results = new Result[](calls.length);
        for (uint256 i; i < calls.length; i++) {
            results[i] = _run(i, calls[i].target, calls[i].callData, !requireSuccess);
        }
    }

    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i; i < calls.length; i++) {
            results[i] = _run(i, calls[i].target, calls[i].callData, calls[i].allowFailure);
        }
    }

    function getBlockNumber() external view returns (uint256) {
        return block.number;
    }

    function getBlockHash(uint256 blockNumber) external view returns (bytes32) {
        return blockhash(blockNumber);
    }

    function getCurrentBlockTimestamp() external view returns (uint256) {
        return block.timestamp;
    }

    function getChainId() external view returns (uint256) {
        return block.chainid;
    }

    function _run(uint256 index, address target, bytes calldata data, bool allowFailure)
        private
        returns (Result memory result)
    {
        (result.success, result.returnData) = target.call(data);
        if (!result.success && !allowFailure) revert CallFailed(index);
    }
}
