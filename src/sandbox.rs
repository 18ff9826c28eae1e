//! The embedded world: a chain, a web and an IPFS gateway in this process, for a first try and for tests.

pub mod chain;
pub mod unixfs;
