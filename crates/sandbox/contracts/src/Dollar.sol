// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// A token that is transferred by signed authorisations (EIP-3009), like the assets of x402. The deployer owns the
/// total supply.
contract Dollar {
    string public constant name = "Sandbox Dollar";
    string public constant version = "1";
    string public constant symbol = "SBD";
    uint8 public constant decimals = 6;
    uint256 public constant totalSupply = 1_000_000e6;

    bytes32 private constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant TRANSFER = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    /// Half the order of secp256k1. Of the two signatures for one message, only the one with the lower `s` is accepted.
    uint256 private constant HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => mapping(bytes32 => bool)) public authorizationState;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    error Outside();
    error Used();
    error WrongSignature();
    error Insufficient();

    constructor(address holder) {
        balanceOf[holder] = totalSupply;
        emit Transfer(address(0), holder, totalSupply);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN, keccak256(bytes(name)), keccak256(bytes(version)), block.chainid, address(this)));
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        if (allowance[from][msg.sender] < value) revert Insufficient();
        allowance[from][msg.sender] -= value;
        move(from, to, value);
        return true;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        if (block.timestamp <= validAfter || block.timestamp >= validBefore) revert Outside();
        if (authorizationState[from][nonce]) revert Used();
        bytes32 message = keccak256(abi.encode(TRANSFER, from, to, value, validAfter, validBefore, nonce));
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), message));
        address signer = uint256(s) <= HALF_ORDER ? ecrecover(digest, v, r, s) : address(0);
        if (signer == address(0) || signer != from) revert WrongSignature();
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        move(from, to, value);
    }

    function move(address from, address to, uint256 value) private {
        if (balanceOf[from] < value || to == address(0)) revert Insufficient();
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}
