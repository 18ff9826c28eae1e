//! Endpoints and gateways that everybody may ask.

/// Public endpoints of mainnet, each of another operator, none with a key, as their operators and public lists document
/// them. Three are asked at the same time, the others take the place of those that fail.
pub(super) const PUBLIC_RPC: [&str; 6] = [
    "https://ethereum-rpc.publicnode.com",
    "https://eth.drpc.org",
    "https://eth.llamarpc.com",
    "https://rpc.mevblocker.io",
    "https://1rpc.io/eth",
    "https://gateway.tenderly.co/public/mainnet",
];

/// Public gateways, each of another operator, that answer path requests for raw blocks and CARs without a redirect.
/// Those that redirect to subdomains or turn programs away are not among them.
pub(super) const PUBLIC_GATEWAYS: [&str; 5] = [
    "https://trustless-gateway.net",
    "https://ipfs.filebase.io",
    "https://4everland.io",
    "https://gateway.pinata.cloud",
    "https://ipfs.orbitor.dev",
];
