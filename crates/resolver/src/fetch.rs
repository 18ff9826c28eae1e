//! Content from the network: cards over HTTPS, and over IPFS through gateways that are not trusted. All requests go
//! through `clresolve-egress`; the caller maps outcomes to reasons.

pub mod https;
pub mod ipfs;

pub use clresolve_chain::gateway as ccip;
pub use clresolve_egress as egress;
pub use clresolve_egress::*;
