//! The embedded world: a chain, a web and an IPFS gateway in this process, for a first try and for tests.
//!
//! [`World`] is that world; [`agents`] are the ones that the program shows. Everything in it listens on 127.0.0.1 only, its
//! certificate authority is made anew at every start, and its chain is none that exists: a verdict of the sandbox
//! cannot pass for a real one.

pub mod agents;
mod ca;
pub mod chain;
mod discovery;
mod gateway;
mod published;
mod schemas;
pub mod spec;
mod web;
pub mod world;

#[cfg(test)]
mod tests;

pub use self::chain::{CHAIN_ID, UNIVERSAL_RESOLVER};
pub use self::gateway::GatewayManners;
pub use self::web::Manners;
pub use self::world::{At, ChainState, Counts, Manifest, World, WorldError};
