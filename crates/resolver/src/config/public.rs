//! The built-in public endpoints and gateways.

/// Public mainnet endpoints without API keys, each of a different operator, as documented by their operators and public
/// lists. Three are asked concurrently; the others replace those that fail.
pub(super) const PUBLIC_RPC: [&str; 6] = [
    "https://ethereum-rpc.publicnode.com",
    "https://eth.drpc.org",
    "https://eth.llamarpc.com",
    "https://rpc.mevblocker.io",
    "https://1rpc.io/eth",
    "https://gateway.tenderly.co/public/mainnet",
];

/// Public gateways, each of a different operator, that serve raw blocks and CARs on path requests without a redirect.
/// Gateways that redirect to subdomains or block programs are left out.
pub(super) const PUBLIC_GATEWAYS: [&str; 5] = [
    "https://trustless-gateway.net",
    "https://ipfs.filebase.io",
    "https://4everland.io",
    "https://gateway.pinata.cloud",
    "https://ipfs.orbitor.dev",
];
