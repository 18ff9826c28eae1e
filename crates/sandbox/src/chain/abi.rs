//! The functions of the sandbox's contracts that the builder and the gateway call.

use alloy_sol_types::sol;

sol! {
    interface Registry {
        function setOwner(bytes32 node, address owner);
        function setResolver(bytes32 node, address resolver);
        function setSubnodeOwner(bytes32 node, bytes32 label, address owner) returns (bytes32);
        function setSubnodeRecord(bytes32 node, bytes32 label, address owner, address resolver, uint64 ttl);
    }

    interface Registrar {
        function register(uint256 labelhash, address owner, uint256 expires);
    }

    interface NameWrapper {
        function registerAndWrap(string label, address owner, uint64 expires, address resolver);
        function setResolver(bytes32 node, address resolver);
        function setSubnodeRecord(bytes32 parent, string label, address owner, address resolver, uint64 expiry);
    }

    interface PublicResolver {
        function setAddr(bytes32 node, address value);
        function setText(bytes32 node, string key, string value);
        function multicall(bytes[] calls) returns (bytes[]);
    }

    /// Addresses by coin type (ENSIP-9).
    interface Multicoin {
        function addr(bytes32 node, uint256 coinType) returns (bytes);
        function setAddr(bytes32 node, uint256 coinType, bytes value);
    }

    /// Resolvers with one set of records, written by their deployer.
    interface OwnResolver {
        function setAddr(address value);
        function setText(string key, string value);
    }

    interface OwnMulticoin {
        function setAddr(uint256 coinType, bytes value);
    }

    /// The Universal Resolver of ENSv2, with the resolvers of migrated names.
    interface UniversalResolverV2 {
        function migrate(bytes32 node);
        function setResolver(bytes32 node, address resolver);
    }

    /// The ENSv2 resolver that keys records by id.
    interface RecordResolver {
        function link(bytes32 node, bytes name, uint256 recordId);
        function setAddr(uint256 recordId, uint256 coinType, bytes value);
        function setText(uint256 recordId, string key, string value);
    }

    interface IdentityRegistry {
        function register(string agentURI) returns (uint256 agentId);
        function unsetAgentWallet(uint256 agentId);
    }

    interface Profiles {
        function addr(bytes32 node) returns (address);
        function text(bytes32 node, string key) returns (string);
    }

    interface Gateway {
        function resolve(bytes name, bytes data) returns (bytes result, uint64 expires, bytes signature);
    }
}
