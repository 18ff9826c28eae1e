//! The built-in public endpoints and gateways.

/// Public mainnet endpoints without API keys, each of a different operator, that maintained wallets and libraries
/// shipped in 2026. Three are asked concurrently; the others replace those that fail. `tests/daemon/hostile/museum`
/// emulates their limits.
pub(super) const PUBLIC_RPC: [&str; 6] = [
    // Refuses an HTTP request that asks for an old block.
    "https://ethereum-rpc.publicnode.com",
    // Refuses batches of more than three requests.
    "https://eth.drpc.org",
    // viem's default. Limits the rate of requests.
    "https://eth.merkle.io",
    "https://rpc.mevblocker.io",
    // Refuses batches of more than three requests.
    "https://1rpc.io/eth",
    "https://gateway.tenderly.co/public/mainnet",
];

/// Public gateways, each of a different operator, that serve raw blocks and CARs on path requests without a redirect.
/// Gateways that redirect to subdomains or block programs are omitted.
pub(super) const PUBLIC_GATEWAYS: [&str; 5] = [
    "https://trustless-gateway.net",
    "https://ipfs.filebase.io",
    "https://4everland.io",
    "https://gateway.pinata.cloud",
    "https://ipfs.orbitor.dev",
];
