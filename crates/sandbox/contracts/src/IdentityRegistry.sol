// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// The functions of an ERC-8004 identity registry that clients read: agents, their registration files and their
/// wallets. The account that registers an agent owns it, and is its wallet until the wallet is unset.
contract IdentityRegistry {
    mapping(uint256 => address) private owners;
    mapping(uint256 => string) private uris;
    mapping(uint256 => address) private wallets;
    uint256 private last;

    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);
    event Registered(uint256 indexed agentId, string agentURI, address indexed owner);

    error ERC721NonexistentToken(uint256 tokenId);
    error NotOwner();

    modifier exists(uint256 agentId) {
        if (owners[agentId] == address(0)) revert ERC721NonexistentToken(agentId);
        _;
    }

    function register(string calldata agentURI) external returns (uint256 agentId) {
        agentId = ++last;
        owners[agentId] = msg.sender;
        uris[agentId] = agentURI;
        wallets[agentId] = msg.sender;
        emit Transfer(address(0), msg.sender, agentId);
        emit Registered(agentId, agentURI, msg.sender);
    }

    function unsetAgentWallet(uint256 agentId) external exists(agentId) {
        if (owners[agentId] != msg.sender) revert NotOwner();
        delete wallets[agentId];
    }

    function ownerOf(uint256 tokenId) external view exists(tokenId) returns (address) {
        return owners[tokenId];
    }

    function tokenURI(uint256 tokenId) external view exists(tokenId) returns (string memory) {
        return uris[tokenId];
    }

    function getAgentWallet(uint256 agentId) external view returns (address) {
        return wallets[agentId];
    }
}
